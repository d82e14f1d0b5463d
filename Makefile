# On a fresh machine with python3 and make: `make demo` trains on census records, `make test` runs the tests.

PYTHON ?= python3
OLDEST_PYTHON ?= python3.11
BIN := .venv/bin
OLD := .venv-oldest
REF ?= main
# Requirements with hashes, as of .github/requirements.txt: nothing else is installed then. The workflows do so.
PINS ?=
# Versions of what the wheel is tested with, as of tests/oldest.txt; the newest if empty.
CONSTRAINT ?=
# Processes that share the tests.
JOBS ?= 2

.PHONY: demo smoke test coverage test-slow lint docs readme layers mutants mutants-check jit-off oldest nightly bench scaling benchmarks bench-compare package sbom pins clean

demo: .venv/demo
	$(BIN)/python examples/plot_census_pums.py --output census_privacy_utility.png

# One test of each kind, for every edit; the first run compiles the kernels that it calls.
smoke: .venv/test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) @tests/smoke.txt

test: .venv/test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist worksteal $(COV)

# Two fifths of the time of these tests are coverage's, but from Python 3.12 on, where it measures by sys.monitoring.
coverage: export COVERAGE_CORE = $(shell $(PYTHON) -c 'import sys; print("ctrace" if sys.version_info < (3, 12) else "sysmon")')
coverage: COV = --cov --cov-report=term
coverage: test

test-slow: .venv/test
	$(BIN)/python -m pytest -m slow

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

# The pages into build/docs/index.html, in two minutes. Warnings are errors, dead links within the site among them.
docs: .venv/docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/docs

# The code of README.md, after the install command that README.md gives and nothing else.
readme:
	$(PYTHON) -m venv --clear build/readme
	build/readme/bin/$$(grep -om1 'python -m pip install .*' README.md | tr -d '"') --quiet
	cd $$(mktemp -d) && MPLBACKEND=agg $(CURDIR)/build/readme/bin/python $(CURDIR)/tests/pages.py README.md

layers: .venv/test
	$(BIN)/python -m pytest -q -s tests/test_layers.py

mutants: .venv/test
	$(BIN)/python tests/mutants

mutants-check:
	$(PYTHON) tests/mutants --check

# Kernels as plain Python, which coverage can see. float32 rows of linear models are left out: NumPy takes a float32 with
# a Python float for float32, Numba for float64, so without the compiler their sums are rounded otherwise.
jit-off: export NUMBA_DISABLE_JIT = 1
jit-off: export COVERAGE_FILE = .coverage.jit-off
jit-off: .venv/test
	$(BIN)/python -m coverage run -m pytest -m "not slow and not compiled" -k "not (linear_kernels and float32)" \
	    tests/_kernels/test_linear.py tests/_kernels/test_dense.py tests/mechanisms/test_second_moments.py tests/_kernels/test_bits.py \
	    tests/ensemble/test_embedding.py tests/synthesis/gan/test_critic.py tests/synthesis/gan/test_convolutions.py \
	    tests/_dpsgd/test_optimizers.py tests/mechanisms/test_sampling.py
	$(BIN)/python -m coverage report --omit='skdp/_kernels/caching.py' --include='skdp/_kernels/*'

# What skdp demands of scikit-learn, NumPy and Numba, on the oldest that it supports.
oldest: $(OLD)/ready
	$(OLD)/bin/python -m pytest -m "not slow" tests/test_contract_estimators.py tests/accounting/events/test_specifications.py \
	    tests/base/test_foreign_fits.py tests/base/test_public_rules.py tests/base/test_public_steps.py tests/_checks/test_rows.py \
	    tests/linear_model/test_logistic_tools.py tests/_kernels/test_linear.py tests/_kernels/test_bits.py tests/test_package.py

nightly: coverage oldest jit-off test-slow mutants

# skdp and its peers in turns, into the tables of benchmarks/README.md. BENCH='--only TASK' measures one of them again.
bench: .venv/test
	$(BIN)/python benchmarks/environments.py diffprivlib jax torch
	$(BIN)/python benchmarks/bench.py $(BENCH)

scaling: .venv/test
	$(BIN)/python benchmarks/scaling.py

benchmarks: bench
	$(BIN)/python benchmarks/bench_pca.py
	$(BIN)/python benchmarks/bench_budget.py
	$(BIN)/python benchmarks/bench_selection.py
	$(BIN)/python benchmarks/bench_quality.py

bench-compare: .venv/test
	$(BIN)/python benchmarks/compare.py $(REF) $(BENCH)

# The files of a release into dist/, looked at, and installed into an empty environment, where the first tests pass.
package: .venv/package
	rm -rf dist build/package
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	mkdir -p build/package && tar -xzf dist/skdp-*.tar.gz -C build/package --strip-components 1
	$(PYTHON) -m venv --clear build/package/.venv
	build/package/.venv/bin/python -m pip install --quiet $(addprefix --constraint ,$(CONSTRAINT)) "$$(ls dist/skdp-*.whl)[test]"
	cd build/package && rm -rf skdp && .venv/bin/python -m pytest -q -m "not slow" tests/test_package.py tests/mechanisms
	cd build/package && .venv/bin/python -m pytest -q --collect-only tests > /dev/null

# What an installation consists of, without extras, as CycloneDX in build/sbom.json.
sbom: .venv/package
	$(PYTHON) -m venv --clear --without-pip build/sbom
	$(BIN)/python -m pip --python build/sbom install --quiet dist/skdp-*.whl
	$(BIN)/cyclonedx-py environment --output-file build/sbom.json build/sbom/bin/python

# Anew, by uv: the newest versions that setup.py admits, for all of its extras, systems and Pythons. The difference is read.
pins:
	printf 'setuptools>=77\n' | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	    --no-header --no-annotate --no-emit-index-url --all-extras setup.py - --output-file .github/requirements.txt

clean:
	rm -rf .venv $(OLD) build dist docs/generated docs/auto_examples docs/sg_execution_times.rst *.egg-info .pytest_cache .mypy_cache .ruff_cache .coverage*

.venv/bin/python:
	$(PYTHON) -m venv .venv

# One stamp an extra: it is installed once, and anew when the requirements change.
.venv/demo .venv/test .venv/dev .venv/docs .venv/package: .venv/%: setup.py pyproject.toml | .venv/bin/python
	$(if $(PINS),$(BIN)/python -m pip install --quiet --require-hashes --requirement $(PINS))
	$(BIN)/python -m pip install --quiet $(if $(PINS),--no-deps --no-build-isolation) --editable ".[$*]"
	touch $@

$(OLD)/ready: tests/oldest.txt setup.py
	$(OLDEST_PYTHON) -m venv --clear $(OLD)
	$(OLD)/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[test]"
	touch $@
