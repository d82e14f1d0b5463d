"""The display of accountants, and the example that draws the paper's picture."""

import pytest

from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, get_epsilon
from skdp.plotting import AccountantComparisonDisplay


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
