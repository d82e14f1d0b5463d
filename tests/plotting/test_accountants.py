"""The display of accountants, and the example that draws the paper's picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skdp.accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, get_epsilon
from skdp.plotting import AccountantComparisonDisplay

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "plot_moments_vs_strong.py"


def after(steps):
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(4.0)), steps)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_lines_hold_the_prices(plt):
    display = AccountantComparisonDisplay.from_event(after, [10, 100], 1e-5, methods=("moments", "strong_2016", "pld"))
    assert list(display.lines_) == ["moments", "strong_2016", "pld"]
    for method, line in display.lines_.items():
        assert list(line.get_xdata()) == [10, 100]
        assert list(line.get_ydata()) == [get_epsilon(after(steps), 1e-5, method=method) for steps in (10, 100)]
    assert display.lines_["strong_2016"].get_linestyle() == "--"
    assert "not a guarantee" in display.lines_["strong_2016"].get_label()
    assert display.lines_["pld"].get_linestyle() == "-"
    assert display.ax_.figure is display.figure_
    assert "1e-05" in display.ax_.get_ylabel()


def test_given_axes_and_options_are_used(plt):
    figure, ax = plt.subplots()
    display = AccountantComparisonDisplay.from_event(
        after, [10, 100], 1e-5, methods=["rdp"], xlabel="epoch", ax=ax, color="k"
    )
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.lines_["rdp"].get_color() == "k"
    assert ax.get_xlabel() == "epoch"
    again = display.plot(linestyle=":")
    assert again is display
    assert display.ax_ is not ax
    assert display.lines_["rdp"].get_linestyle() == ":"


def test_refusals_come_through(plt):
    with pytest.raises(ValueError, match=r"'prv' is not known"):
        AccountantComparisonDisplay.from_event(after, [1], 1e-5, methods=["pld", "prv"])
    with pytest.raises(TypeError, match="LaplaceDpEvent has no price"):
        AccountantComparisonDisplay.from_event(lambda _: LaplaceDpEvent(1.0), [1], 1e-5, methods=["gdp"])


def test_import_is_light():
    code = (
        "import sys, skdp.plotting; bad = {'matplotlib', 'sklearn', 'numba', 'pandas'} & set(sys.modules);"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def run(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_example_prints_the_papers_case_and_draws(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    done = run("--quick", "--output", picture)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    rows = {m[1]: (float(m[2]), m[3]) for m in re.finditer(r"^(\w+) +([\d.]+)  (yes|no)$", done.stdout, re.M)}
    expected = {"strong": 16.844, "strong_2016": 9.353, "moments": 1.2586, "rdp": 1.0354, "pld": 0.9469}
    for method, epsilon in expected.items():
        assert rows[method][0] == pytest.approx(epsilon, abs=2e-3)
        assert rows[method][1] == ("no" if method == "strong_2016" else "yes")
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(content) > 20_000


def test_example_refuses_a_path_in_one_line(tmp_path):
    done = run("--output", tmp_path / "nowhere" / "picture.png")
    assert done.returncode != 0
    (line,) = done.stderr.strip().splitlines()
    assert "nowhere" in line
