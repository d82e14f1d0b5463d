"""PLD prices against an exact contour integral, two other accountants, and the algebra they must obey."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    get_delta,
    get_epsilon,
)


def dpsgd(q: float, sigma: float, steps: int) -> DpEvent:
    return SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


def close(value: float, truth: float, rel: float = 1e-3, absolute: float = 1e-4) -> bool:
    return abs(value - truth) <= max(rel * truth, absolute)


# --- an oracle of another kind: no discretisation of the loss at all ---------------------------------------


def pair_losses(q: float, sigma: float, kind: str, step: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Density of P times the step, and the loss log(P/Q), on a grid of x."""
    step = step or sigma / 100
    x = np.arange(-13 * sigma - 1, 13 * sigma + 1, step)

    def mixture(shift: float) -> np.ndarray:
        return (
            np.logaddexp(math.log1p(-q), math.log(q) + (2 * x * shift - 1) / (2 * sigma**2))
            if q < 1
            else ((2 * x * shift - 1) / (2 * sigma**2))
        )

    base = -0.5 * (x / sigma) ** 2 - 0.5 * math.log(2 * math.pi) + math.log(step / sigma)
    if kind == "remove":
        return np.exp(base + mixture(1)), mixture(1)
    if kind == "add":
        return np.exp(base), -mixture(1)
    return np.exp(base + mixture(1)), mixture(1) - mixture(-1)


def contour_delta(parts: list[tuple[float, float, int]], epsilon: float, kind: str, theta: float) -> float:
    """delta(eps) = 1/(2 pi i) int e^{sum T K(z) - z eps} / (z (z + 1)) dz over Re z = theta (trapezoid)."""
    losses = [(*pair_losses(q, sigma, kind), count) for q, sigma, count in parts]
    scale = log_peak = 0.0
    for mass, loss, count in losses:
        weight = mass * np.exp(theta * loss)
        mean = weight @ loss / weight.sum()
        scale += count * float(weight @ (loss - mean) ** 2 / weight.sum())
        log_peak += count * math.log(weight.sum())
    t = np.arange(0, 8000) * (2 * math.pi / 60) / max(math.sqrt(scale), 1 / theta)
    total = np.zeros(t.size)
    for start in range(0, t.size, 200):
        z = theta + 1j * t[start : start + 200]
        power = np.ones(z.size, dtype=complex)
        for mass, loss, count in losses:
            tilted = mass * np.exp(theta * loss)
            power *= (np.exp(1j * np.outer(z.imag, loss)) @ (tilted / tilted.sum())) ** count
        total[start : start + 200] = (power * np.exp(-1j * z.imag * epsilon) / (z * (z + 1))).real
        if np.abs(power).max() < 1e-15:
            break
    else:
        raise AssertionError("the contour integral has not converged; choose a smoother case")
    total[0] /= 2
    return float(total.sum() * t[1] / math.pi * math.exp(log_peak - theta * epsilon))


def best_order(parts: list[tuple[float, float, int]], kind: str, delta: float = 0.0, epsilon: float = 0.0) -> float:
    """Order of Chernoff's bound on epsilon at `delta`, or on delta at `epsilon`: where the integral is tame."""
    losses = [(*pair_losses(q, sigma, kind), count) for q, sigma, count in parts]
    orders = np.geomspace(0.2, 300, 120)
    orders = orders[orders * max(float(x.max()) for _, x, _ in losses) < 600]
    moments = np.array([sum(c * math.log(m @ np.exp(o * x)) for m, x, c in losses) for o in orders])
    bounds = (moments - math.log(delta)) / orders if delta else moments - orders * epsilon
    return float(orders[int(np.argmin(bounds))])


SMOOTH = [
    ([(0.01, 4.0, 10_000)], 1e-5),
    ([(4096 / 60_000, 3.04, 560)], 1e-5),
    ([(0.01, 1.1, 6_000)], 1e-5),
    ([(0.2, 5.0, 300)], 1e-12),
    ([(0.53, 33.6, 78_982)], 3.8e-11),
    ([(0.001, 1.0, 100_000)], 1e-9),
    ([(0.05, 2.0, 400), (0.01, 1.0, 3_000)], 1e-7),
    ([(0.02, 1.5, 2_000), (1.0, 5.0, 1)], 1e-6),
]


@pytest.mark.parametrize("kind", ["remove", "replace"])
@pytest.mark.parametrize(("parts", "delta"), SMOOTH)
def test_epsilon_is_the_truth_and_never_below(parts, delta, kind):
    event = ComposedDpEvent(tuple(dpsgd(*part) for part in parts))
    adjacency = "replace_one" if kind == "replace" else "zero_out"
    epsilon = get_epsilon(event, delta, adjacency=adjacency)
    theta = best_order(parts, kind, delta)
    assert contour_delta(parts, epsilon, kind, theta) <= delta * (1.0 + 1e-9)
    assert contour_delta(parts, epsilon * (1.0 - 5e-5), kind, theta) > delta
    if kind == "remove":
        assert contour_delta(parts, epsilon, "add", best_order(parts, "add", delta)) <= delta


@pytest.mark.parametrize("parts", [parts for parts, _ in SMOOTH])
def test_delta_is_the_truth_and_never_below(parts):
    event = ComposedDpEvent(tuple(dpsgd(*part) for part in parts))
    for epsilon in (0.05, 0.7, 2.0):
        truth = max(
            contour_delta(parts, epsilon, kind, best_order(parts, kind, epsilon=epsilon)) for kind in ("remove", "add")
        )
        assert truth * (1.0 - 1e-9) <= get_delta(event, epsilon) <= truth * (1.0 + 2e-3)


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "printed", "digits"),
    [
        (0.01, 4.0, 10_000, 0.94687, 5),
        (4096 / 60_000, 3.04, 560, 2.25392, 5),
        (0.01, 1.1, 6_000, 3.8998, 4),
        (1.0, 20.0, 100, 1.99309, 5),
    ],
)
def test_table_of_targets(q, sigma, steps, printed, digits):
    assert round(get_epsilon(dpsgd(q, sigma, steps), 1e-5), digits) == printed


def test_table_of_targets_where_losses_are_rare_and_large():
    # printed 12.2880 (truth 12.28798) and 1.12922 (an upper bound on a coarser grid than ours)
    assert 12.28798 <= get_epsilon(dpsgd(128 / 60_000, 0.5, 18_760), 1e-5) <= 12.2880 * (1 + 5e-5)
    assert 1.1289 <= get_epsilon(dpsgd(1024 / 1e6, 0.8, 20_000), 1e-5) <= 1.12922


def few_steps_delta(q: float, sigma: float, steps: int, epsilon: float) -> float:
    """Upper bound on delta by direct convolution of a fine grid with losses rounded up; also for rare losses."""
    mass, loss = pair_losses(q, sigma, "remove", sigma / 4000)
    width = 1e-3
    index = np.ceil(loss / width).astype(int)
    one = np.bincount(index - index.min(), mass)
    total, start = one, index.min() * steps
    for _ in range(steps - 1):
        total = np.convolve(total, one)
    at = width * (np.arange(total.size) + start)
    return float(total[at > epsilon] @ -np.expm1(epsilon - at[at > epsilon]))


@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.0117, 1.28, 3), (0.3, 0.8, 2), (1e-3, 0.7, 1), (0.9, 1.5, 2)])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_few_steps_against_direct_convolution(q, sigma, steps, delta):
    epsilon = get_epsilon(dpsgd(q, sigma, steps), delta)
    if epsilon < 1e-2:
        pytest.skip("delta covers it")
    # rounding up moves a sum of losses by at most steps * 1e-3: a bound from either side
    assert few_steps_delta(q, sigma, steps, epsilon + 1e-3 * steps) <= delta * (1.0 + 1e-6)
    assert few_steps_delta(q, sigma, steps, epsilon * (1 - 1e-4) - 1e-4) >= delta


# --- other people's accountants ----------------------------------------------------------------------------


def drawn_cases(seed: int, number: int) -> list[tuple[float, float, int, float, str]]:
    """Cases whose epsilon is of interest and which dp-accounting computes in a second or so."""
    rng = np.random.default_rng(seed)
    cases: list[tuple[float, float, int, float, str]] = []
    while len(cases) < number:
        q = 1.0 if rng.random() < 0.1 else 10 ** rng.uniform(-5, 0)
        sigma, steps = 10 ** rng.uniform(math.log10(0.3), 2), int(10 ** rng.uniform(0, 5))
        delta, adjacency = 10 ** rng.uniform(-12, -4), "replace_one" if rng.random() < 0.25 else "add_remove"
        if 0.05 < get_epsilon(dpsgd(q, sigma, steps), delta, adjacency=adjacency) < 40:
            cases.append((q, sigma, steps, delta, adjacency))
    return cases


def check_against_dp_accounting(q, sigma, steps, delta, adjacency):
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld

    name = "REPLACE_ONE" if adjacency == "replace_one" else "ADD_OR_REMOVE_ONE"
    relation = getattr(dp_accounting.NeighboringRelation, name)
    ours = get_epsilon(dpsgd(q, sigma, steps), delta, adjacency=adjacency)
    width = 1e-4 if ours < 8 else 5e-4
    theirs = (
        pld.from_gaussian_mechanism(
            sigma, sampling_prob=q, value_discretization_interval=width, neighboring_relation=relation
        )
        .self_compose(steps)
        .get_epsilon_for_delta(delta)
    )
    # its own rounding of the FFT is of this order, relative to delta, and moves its figure either way
    slack = 3e-16 * steps / delta + 1e-15 * math.sqrt(steps) / delta
    assert ours <= theirs * (1.0 + 1e-3 + slack) + 1e-4, (ours, theirs)
    # theirs is an upper bound too: it lies above by what its grid adds to the variance, steps * width^2 / 6
    order = -2.0 * math.log(delta) / max(theirs, 1e-9)
    assert ours >= theirs * (1.0 - 1e-3 - slack) - 1e-4 - (1.0 + order) * steps * width**2 / 6, (ours, theirs)


def test_drawn_table_against_dp_accounting():
    pytest.importorskip("dp_accounting")
    for case in drawn_cases(seed=11, number=40):
        check_against_dp_accounting(*case)


@pytest.mark.slow
def test_large_drawn_table_against_dp_accounting():
    pytest.importorskip("dp_accounting")
    for case in drawn_cases(seed=12, number=250):
        check_against_dp_accounting(*case)


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "delta"), [(0.01, 1.1, 1_000, 1e-5), (0.05, 2.0, 300, 1e-6), (0.001, 0.7, 2_000, 1e-7)]
)
def test_within_the_certified_interval_of_prv_accountant(q, sigma, steps, delta):
    prv = pytest.importorskip("prv_accountant")
    mechanism = prv.PoissonSubsampledGaussianMechanism(sampling_probability=q, noise_multiplier=sigma)
    accountant = prv.PRVAccountant(
        prvs=[mechanism], max_self_compositions=[steps], eps_error=0.02, delta_error=delta * 1e-3
    )
    low, _, high = accountant.compute_epsilon(delta, [steps])
    assert low <= get_epsilon(dpsgd(q, sigma, steps), delta) <= high + 1e-4


def test_mixed_composition_against_dp_accounting():
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = [(0.05, 1.5, 200), (0.01, 0.9, 1000), (1.0, 6.0, 3)]
    theirs = None
    for q, sigma, count in parts:
        one = pld.from_gaussian_mechanism(sigma, sampling_prob=q, value_discretization_interval=1e-4)
        one = one.self_compose(count)
        theirs = one if theirs is None else theirs.compose(one)
    event = ComposedDpEvent(tuple(dpsgd(*part) for part in parts))
    assert close(get_epsilon(event, 1e-6), theirs.get_epsilon_for_delta(1e-6), rel=2e-4)
    assert get_delta(event, 2.0) == pytest.approx(theirs.get_delta_for_epsilon(2.0), rel=2e-3)


# --- algebra -----------------------------------------------------------------------------------------------


def test_composition_counts():
    step = PoissonSampledDpEvent(0.02, GaussianDpEvent(1.2))
    counted = get_epsilon(SelfComposedDpEvent(step, 300), 1e-6)
    assert get_epsilon(ComposedDpEvent((step,) * 300), 1e-6) == counted
    assert get_epsilon(ComposedDpEvent((SelfComposedDpEvent(step, 100),) * 3), 1e-6) == counted
    assert get_epsilon(SelfComposedDpEvent(SelfComposedDpEvent(step, 3), 100), 1e-6) == counted


def test_zero_out_has_the_price_of_add_remove_and_replace_one_more():
    event = dpsgd(0.05, 1.5, 200)
    assert get_epsilon(event, 1e-6) == get_epsilon(event, 1e-6, adjacency="add_remove")
    assert get_epsilon(event, 1e-6, adjacency="replace_one") > get_epsilon(event, 1e-6)


def test_sampling_with_probability_one_is_the_closed_form():
    for adjacency in ("zero_out", "replace_one"):
        plain = get_epsilon(SelfComposedDpEvent(GaussianDpEvent(5.0), 10), 1e-6, adjacency=adjacency)
        assert get_epsilon(dpsgd(1.0, 5.0, 10), 1e-6, adjacency=adjacency) == plain
        assert close(get_epsilon(dpsgd(1.0 - 1e-9, 5.0, 10), 1e-6, adjacency=adjacency), plain, rel=1e-5)


LOG_Q, LOG_SIGMA, LOG_STEPS, LOG_DELTA = (st.floats(*ends) for ends in ((-4, 0), (-0.4, 1.5), (0, 4), (-10, -2)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(LOG_Q, LOG_SIGMA, LOG_STEPS, LOG_DELTA, st.floats(0.05, 0.5))
def test_monotone_in_everything(log_q, log_sigma, log_steps, log_delta, more):
    q, sigma, steps, delta = 10**log_q, 10**log_sigma, int(10**log_steps), 10**log_delta
    base = get_epsilon(dpsgd(q, sigma, steps), delta)
    slack = 1.0 - 3e-4
    assert base > 0.0
    assert get_epsilon(dpsgd(q, sigma, math.ceil(steps * (1 + more))), delta) >= base * slack
    assert get_epsilon(dpsgd(min(1.0, q * (1 + more)), sigma, steps), delta) >= base * slack
    assert get_epsilon(dpsgd(q, sigma / (1 + more), steps), delta) >= base * slack
    assert get_epsilon(dpsgd(q, sigma, steps), delta / (1 + more)) >= base * slack
    assert base <= get_epsilon(dpsgd(q, sigma, steps), delta, method="rdp") * (1 + 1e-4) + 1e-5


@settings(max_examples=25, deadline=None, derandomize=True)
@given(LOG_Q, LOG_SIGMA, LOG_STEPS, LOG_DELTA)
def test_delta_at_epsilon_gives_delta_back(log_q, log_sigma, log_steps, log_delta):
    event, delta = dpsgd(10**log_q, 10**log_sigma, int(10**log_steps)), 10**log_delta
    epsilon = get_epsilon(event, delta)
    if epsilon > 1e-3:
        # epsilon is an upper bound to about 1e-5; delta there may lie below by that times its slope
        assert get_delta(event, epsilon * (1 - 1e-3) - 1e-4) > delta * (1 - 1e-6)
        assert get_delta(event, epsilon * (1 + 1e-3) + 1e-4) < delta * (1 + 1e-6)


@pytest.mark.parametrize("q", [1e-12, 1e-5, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("sigma", [1e-3, 0.05, 1e6])
@pytest.mark.parametrize("steps", [1, 10**9])
def test_extreme_input_ends_in_time_and_below_the_unsampled_price(q, sigma, steps):
    start = time.perf_counter()
    for delta in (1e-15, 0.3):
        epsilon = get_epsilon(dpsgd(q, sigma, steps), delta)
        assert 0.0 < epsilon <= get_epsilon(dpsgd(1.0, sigma, steps), delta)
    for epsilon in (0.0, 1.0, 1e4):
        assert 0.0 < get_delta(dpsgd(q, sigma, steps), epsilon) <= 1.0
    assert time.perf_counter() - start < 30.0


def test_reading_twice_is_the_same_and_quick():
    event = dpsgd(0.01, 4.0, 10_000)
    first = get_epsilon(event, 1e-5)
    start = time.perf_counter()
    assert all(get_epsilon(dpsgd(0.01, 4.0, 10_000), 1e-5) == first for _ in range(100))
    assert time.perf_counter() - start < 0.05
