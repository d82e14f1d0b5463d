"""Certified brackets: they hold the exact value and are narrow, and bad input is rejected in one line."""

import math

import pytest
from accounting_reference import dpsgd
from combinations import over_rows

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    SelfComposedDpEvent,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.gaussian import gaussian_delta


@over_rows(("mu", "delta"), [(1e-3, 1e-5), (30.0, 1e-12), (30.0, 0.1)])
def test_plain_gaussians_are_known(mu, delta):
    low, high = get_epsilon_bounds(GaussianDpEvent(1.0 / mu), delta)
    assert high - low <= 2e-9 * (1.0 + high)
    if low > 0.0:
        assert gaussian_delta(low, mu) >= delta


def test_nothing_everything_and_what_delta_does_not_cover():
    assert get_epsilon_bounds(NoOpDpEvent(), 1e-5) == (0.0, 0.0)
    assert get_epsilon_bounds(NonPrivateDpEvent(), 1e-5) == (math.inf, math.inf)
    assert get_epsilon_bounds(SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 1e-6), 20), 1e-5) == (math.inf, math.inf)
    assert get_epsilon_bounds(EpsilonDeltaDpEvent(0.1, 1e-6), 1e-6)[1] == pytest.approx(0.1)
    low, high = get_epsilon_bounds(dpsgd(1e-9, 1.0, 1), 1e-5)
    assert low == 0.0
    assert high > 0.0
