# On a fresh machine with python3 and make: `make demo` trains on census records, `make test` runs the tests.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow lint layers mutants mutants-check benchmarks clean

demo: .venv/demo
	$(BIN)/python examples/plot_census_pums.py

# From Python 3.12 on coverage measures by sys.monitoring, which costs less and leaves tracing to the tests.
test: .venv/test
	$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' && export COVERAGE_CORE=sysmon; \
	$(BIN)/python -m coverage run -m pytest -m "not slow"
	$(BIN)/python -m coverage report

test-slow: .venv/test
	$(BIN)/python -m pytest -m slow

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

layers: .venv/test
	$(BIN)/python -m pytest -q tests/test_layers.py

mutants: .venv/test
	$(BIN)/python tests/mutants

mutants-check:
	$(PYTHON) tests/mutants --check

benchmarks: .venv/test
	$(BIN)/python benchmarks/bench_speed.py
	$(BIN)/python benchmarks/bench_pca.py
	$(BIN)/python benchmarks/bench_budget.py
	$(BIN)/python benchmarks/bench_selection.py
	$(BIN)/python benchmarks/bench_quality.py

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .coverage*

.venv/bin/python:
	$(PYTHON) -m venv .venv

# One stamp an extra: it is installed once, and anew when the requirements change.
.venv/demo .venv/test .venv/dev: .venv/%: setup.py pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@
