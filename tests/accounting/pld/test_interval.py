"""Certified brackets: they hold the exact value and are narrow, and bad input is refused in one line."""

from __future__ import annotations

import math

import pytest
from accounting_reference import dpsgd
from combinations import over_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ComposedDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    SelfComposedDpEvent,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.gaussian import gaussian_delta


@over_rows("mu", [1e-3, 30.0])
@over_rows("delta", [1e-12, 1e-5, 0.1])
def test_plain_gaussians_are_known(mu, delta):
    low, high = get_epsilon_bounds(GaussianDpEvent(1.0 / mu), delta)
    assert high - low <= 2e-9 * (1.0 + high)
    if low > 0.0:
        assert gaussian_delta(low, mu) >= delta


EVENTS = st.one_of(
    st.builds(
        dpsgd, st.floats(-4, 0).map(lambda x: 10**x), st.floats(-0.4, 1.5).map(lambda x: 10**x), st.integers(1, 3000)
    ),
    st.builds(lambda b, n: SelfComposedDpEvent(LaplaceDpEvent(b), n), st.floats(0.3, 50.0), st.integers(1, 60)),
    st.builds(
        lambda e, d, n: SelfComposedDpEvent(EpsilonDeltaDpEvent(e, d), n),
        st.floats(0.01, 2.0),
        st.sampled_from([0.0, 1e-9, 1e-7]),
        st.integers(1, 60),
    ),
)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(EVENTS, EVENTS, st.floats(-9, -3).map(lambda x: 10**x), st.sampled_from(["zero_out", "replace_one"]))
def test_brackets_hold_each_other(one, other, delta, adjacency):
    """More is never cheaper: the bracket of a part cannot lie above that of the whole."""
    low, high = get_epsilon_bounds(one, delta, adjacency=adjacency)
    joint = get_epsilon_bounds(ComposedDpEvent((one, other)), delta, adjacency=adjacency)
    assert low <= high
    assert joint[0] <= joint[1]
    assert low <= joint[1] * (1.0 + 1e-9)
    assert (
        joint[0]
        <= get_epsilon_bounds(SelfComposedDpEvent(ComposedDpEvent((one, other)), 2), delta, adjacency=adjacency)[1]
    )


def test_nothing_everything_and_what_delta_does_not_cover():
    assert get_epsilon_bounds(NoOpDpEvent(), 1e-5) == (0.0, 0.0)
    assert get_epsilon_bounds(NonPrivateDpEvent(), 1e-5) == (math.inf, math.inf)
    assert get_epsilon_bounds(SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 1e-6), 20), 1e-5) == (math.inf, math.inf)
    assert get_epsilon_bounds(EpsilonDeltaDpEvent(0.1, 1e-6), 1e-6)[1] == pytest.approx(0.1)
    low, high = get_epsilon_bounds(dpsgd(1e-9, 1.0, 1), 1e-5)
    assert low == 0.0
    assert high > 0.0
