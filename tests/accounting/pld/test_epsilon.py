"""PLD costs against an exact contour integral, two other accountants, and the algebra they must obey."""

import math

import pytest
from accounting_reference import SMOOTH, best_order, contour_delta, dpsgd
from combinations import over_rows
from work import calls_at_most

from skdp.accounting import (
    ComposedDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    compose,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.gaussian import gaussian_epsilon


@over_rows("kind", ["remove", "replace"])
@over_rows(("parts", "delta"), SMOOTH)
def test_epsilon_and_its_bracket_hold_the_contour_integral(parts, delta, kind):
    event = ComposedDpEvent(tuple(dpsgd(*part) for part in parts))
    adjacency = "replace_one" if kind == "replace" else "zero_out"
    epsilon = get_epsilon(event, delta, adjacency=adjacency)
    low, high = get_epsilon_bounds(event, delta, adjacency=adjacency)
    assert high == epsilon
    assert 0.0 < high - low <= 1e-3 * high
    theta = best_order(parts, kind, delta)
    worst = [contour_delta(parts, low, each, theta) for each in ((kind, "add") if kind == "remove" else (kind,))]
    assert max(worst) >= delta * (1.0 - 1e-9)
    assert contour_delta(parts, epsilon, kind, theta) <= delta * (1.0 + 1e-9)
    assert contour_delta(parts, epsilon * (1.0 - 5e-5), kind, theta) > delta
    if kind == "remove":
        assert contour_delta(parts, epsilon, "add", best_order(parts, "add", delta)) <= delta


@over_rows("parts", [SMOOTH[2][0], SMOOTH[-1][0]])
def test_delta_is_the_truth_and_never_below(parts):
    event = ComposedDpEvent(tuple(dpsgd(*part) for part in parts))
    for epsilon in (0.05, 0.7, 2.0):
        truth = max(
            contour_delta(parts, epsilon, kind, best_order(parts, kind, epsilon=epsilon)) for kind in ("remove", "add")
        )
        assert truth * (1.0 - 1e-9) <= get_delta(event, epsilon) <= truth * (1.0 + 2e-3)


@over_rows(
    ("q", "sigma", "steps", "printed", "digits"),
    [(0.01, 4.0, 10_000, 0.94687, 5), (0.01, 1.1, 6_000, 3.8998, 4), (1.0, 20.0, 100, 1.99309, 5)],
)
def test_table_of_targets(q, sigma, steps, printed, digits):
    assert round(get_epsilon(dpsgd(q, sigma, steps), 1e-5), digits) == printed


def test_table_of_targets_where_losses_are_rare_and_large():
    # printed 12.2880 (truth 12.28798) and 1.12922 (an upper bound on a coarser grid than ours)
    assert 12.28798 <= get_epsilon(dpsgd(128 / 60_000, 0.5, 18_760), 1e-5) <= 12.2880 * (1 + 5e-5)
    assert 1.1289 <= get_epsilon(dpsgd(1024 / 1e6, 0.8, 20_000), 1e-5) <= 1.12922


# --- algebra -----------------------------------------------------------------------------------------------


def test_composition_counts():
    step = PoissonSampledDpEvent(0.02, GaussianDpEvent(1.2))
    counted = get_epsilon(SelfComposedDpEvent(step, 300), 1e-6)
    assert get_epsilon(ComposedDpEvent((step,) * 300), 1e-6) == counted
    assert get_epsilon(ComposedDpEvent((SelfComposedDpEvent(step, 100),) * 3), 1e-6) == counted
    assert get_epsilon(SelfComposedDpEvent(SelfComposedDpEvent(step, 3), 100), 1e-6) == counted


@over_rows(("q", "sigma", "steps"), [(1e-12, 0.05, 1), (0.5, 1e6, 1000), (1 - 1e-12, 0.05, 1), (0.5, 1e-5, 10**9)])
def test_extreme_input_ends_in_time_and_below_the_unsampled_price(q, sigma, steps):
    with calls_at_most(8_000_000):
        for delta in (1e-15, 0.3):
            low, epsilon = get_epsilon_bounds(dpsgd(q, sigma, steps), delta)
            assert 0.0 <= low <= epsilon
            assert 0.0 < epsilon <= get_epsilon(dpsgd(1.0, sigma, steps), delta)
        for epsilon in (0.0, 1.0, 1e4):
            assert 0.0 < get_delta(dpsgd(q, sigma, steps), epsilon) <= 1.0


# --- Gaussian releases with a threshold's delta: closed form ---


@over_rows("adjacency", ["zero_out", "replace_one"])
@over_rows(("deltas", "delta"), [((1e-7, 2e-7, 3e-7), 1e-6), ((0.01,), 0.02)])
def test_what_is_revealed_outright_is_taken_from_delta(adjacency, deltas, delta):
    """The profile is r + (1 - r) times that of the Gaussian, r the probability that any of the events fails."""
    event = compose([GaussianDpEvent(5.0), *(EpsilonDeltaDpEvent(0.0, each) for each in deltas), GaussianDpEvent(7.0)])
    r = 1.0 - math.prod(1.0 - each for each in deltas)
    mu = math.sqrt(1 / 25 + 1 / 49) * (2.0 if adjacency == "replace_one" else 1.0)
    found = get_epsilon(event, delta, adjacency=adjacency)
    exact = gaussian_epsilon((delta - r) / (1.0 - r), mu)
    assert exact * (1.0 - 1e-12) <= found <= exact * (1.0 + 1e-9)
    lower, upper = get_epsilon_bounds(event, delta, adjacency=adjacency)
    assert (lower, upper) == (pytest.approx(found, rel=1e-6), found)
    assert get_delta(event, found, adjacency=adjacency) == pytest.approx(delta, rel=1e-6)
    assert get_epsilon(event, 0.999 * r, adjacency=adjacency) == math.inf
