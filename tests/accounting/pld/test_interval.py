"""Certified brackets: they hold the exact value and are narrow, and bad input is refused in one line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_reference import SMOOTH, best_order, contour_delta, dpsgd
from combinations import over_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from work import calls_at_most

from skdp.accounting import (
    ComposedDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    get_delta,
    get_epsilon,
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


@over_rows(("q", "sigma"), [(0.3, 0.8), (1e-3, 0.7)])
@over_rows("delta", [1e-4, 1e-7])
def test_one_release_in_closed_form(q, sigma, delta):
    # delta(eps) = q delta_Gauss(log(1 + (e^eps - 1) / q)) for a removed record, the worse direction
    low, high = get_epsilon_bounds(dpsgd(q, sigma, 1), delta)

    def exact(epsilon):
        return q * gaussian_delta(math.log1p(math.expm1(epsilon) / q), 1.0 / sigma)

    assert exact(high) <= delta * (1.0 + 1e-6)
    assert exact(low) >= delta * (1.0 - 1e-6)
    assert high - low <= 2e-3 * high


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


@over_rows(
    ("q", "sigma", "steps"),
    [(1e-12, 1e-5, 1), (1e-12, 1e6, 10**9), (0.5, 1e6, 1), (0.5, 1e-5, 10**9), (1 - 1e-12, 1e6, 10**9)],
)
def test_extreme_input_gives_a_finite_bracket_in_time(q, sigma, steps):
    for delta in (1e-15, 0.3):
        with calls_at_most(250_000):
            low, high = get_epsilon_bounds(dpsgd(q, sigma, steps), delta)
        assert 0.0 <= low <= high < math.inf


LINES = [
    (lambda delta=delta: get_epsilon_bounds(GaussianDpEvent(1.0), delta), f"delta={delta!r}")
    for delta in (0.0, 1.0, -1e-5, 2.0, math.nan, math.inf, "1e-5", None, True)
]
LINES += [
    (lambda value=value: PoissonSampledDpEvent(value, GaussianDpEvent(1.0)), "sampling_probability=")
    for value in (-0.1, 1.1, math.nan, math.inf, "0.1", None)
]
LINES += [
    (lambda make=make, value=value: make(value), "noise_multiplier=")
    for make in (GaussianDpEvent, LaplaceDpEvent)
    for value in (0.0, -1.0, math.nan, "1", None)
]
LINES += [
    (lambda value=value: SelfComposedDpEvent(GaussianDpEvent(1.0), value), "count=")
    for value in (-1, 1.5, "3", math.nan)
]
LINES += [
    (lambda: get_epsilon_bounds(GaussianDpEvent(1.0), 1e-5, adjacency="rows"), "adjacency='rows'"),
    (lambda: get_delta(GaussianDpEvent(1.0), -1.0), "epsilon=-1.0"),
    (lambda: calibrate_noise_multiplier(GaussianDpEvent, "1", 1e-5), "epsilon='1'"),
    (lambda: PrivacyAccountant(1.0, 1e-5, unit=""), "unit=''"),
    (lambda: PrivacyAccountant(1.0, 1e-5, filter_family="rdp "), "filter_family='rdp '"),
]


@over_rows("number", range(len(LINES)))
def test_bad_input_is_one_line_that_names_it(number):
    work, named = LINES[number]
    with pytest.raises((ValueError, TypeError)) as error:
        work()
    assert named in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["remove", "replace"])
@pytest.mark.parametrize(("parts", "delta"), SMOOTH)
def test_the_contour_integral_lies_within(parts, delta, kind):
    event = ComposedDpEvent(tuple(dpsgd(*part) for part in parts))
    adjacency = "replace_one" if kind == "replace" else "zero_out"
    low, high = get_epsilon_bounds(event, delta, adjacency=adjacency)
    assert high == get_epsilon(event, delta, adjacency=adjacency)
    assert 0.0 < high - low <= 1e-3 * high
    theta = best_order(parts, kind, delta)
    worst = [contour_delta(parts, low, each, theta) for each in ((kind, "add") if kind == "remove" else (kind,))]
    assert max(worst) >= delta * (1.0 - 1e-9)
    assert contour_delta(parts, high, kind, theta) <= delta * (1.0 + 1e-9)


def test_brackets_are_narrow_in_the_median():
    rng, gaps = np.random.default_rng(21), []
    get_epsilon_bounds(dpsgd(0.0123, 1.3, 77), 1e-5)
    while len(gaps) < 40:
        q, sigma = 10 ** rng.uniform(-5, 0), 10 ** rng.uniform(math.log10(0.3), 2)
        event, delta = dpsgd(q, sigma, int(10 ** rng.uniform(0, 6))), 10 ** rng.uniform(-12, -4)
        low, high = get_epsilon_bounds(event, delta)
        if high < 1e-3:
            continue
        assert 0.0 <= low <= high
        gaps.append((high - low) / high)
    assert np.median(gaps) < 3e-4
    assert np.mean(np.array(gaps) <= 1e-3) > 0.8
