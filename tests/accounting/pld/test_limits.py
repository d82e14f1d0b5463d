"""Counts at their cap and losses of next to nothing: never below the truth, never without bound in time or memory."""

from __future__ import annotations

import math
import tracemalloc

import mpmath
import numpy as np
import pytest
from accounting_reference import dpsgd
from combinations import over_rows
from scipy.stats import norm
from work import calls_at_most

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    compose,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting import methods as _methods
from skdp.accounting.events.composition import MOST_RELEASES
from skdp.accounting.formulas.gaussian import gaussian_epsilon
from skdp.accounting.pld import directions as _directions
from skdp.accounting.pld import lower_bounds as _lower_bounds
from skdp.accounting.pld import reading as _reading
from skdp.accounting.pld.directions import directions
from skdp.accounting.pld.grid import compose_on_grid, deltas_of
from skdp.accounting.pld.reading import _upper
from skdp.accounting.pld.tilting import choose_grid, find_tilt
from skdp.accounting.releases import releases


def loss_moments(q: float, sigma: float, shift: int) -> tuple[float, float, float]:
    """Mean, deviation and third absolute central moment of one loss under P (shift 1) or Q (shift 0)."""
    with mpmath.workdps(30):
        q_, m = mpmath.mpf(q), 1 / mpmath.mpf(sigma)

        def loss(z):
            return mpmath.log1p(q_ * mpmath.expm1(m * z - m * m / 2))

        def mean_of(f):
            def integrand(z):
                density = mpmath.npdf(z)
                density = (1 - q_) * density + q_ * mpmath.npdf(z, m) if shift else density
                return density * f(loss(z))

            return mpmath.quad(integrand, mpmath.linspace(-14, 14 + m, 29))

        mean = mean_of(lambda x: x)
        deviation = mpmath.sqrt(mean_of(lambda x: (x - mean) ** 2))
        return float(mean), float(deviation), float(mean_of(lambda x: abs(x - mean) ** 3))


def delta_at_least(q: float, sigma: float, count: int, epsilon: float) -> float:
    """Lower bound of delta(epsilon) = P(L > epsilon) - e^epsilon Q(L > epsilon), by Berry & Esseen with 0.4748."""
    tails = []
    for shift in (1, 0):
        mean, deviation, third = loss_moments(q, sigma, shift)
        tail = float(norm.sf((epsilon - count * mean) / (deviation * math.sqrt(count))))
        tails.append((tail, 0.4748 * third / (deviation**3 * math.sqrt(count))))
    (above_p, off_p), (above_q, off_q) = tails
    return above_p - off_p - math.exp(epsilon) * (above_q + off_q)


# --- the cap of counts ---------------------------------------------------------------------------------------


@over_rows(
    ("q", "count", "adjacency"),
    [(0.01, 10**10, "replace_one"), (0.5, MOST_RELEASES, "zero_out")],
)
def test_many_tiny_steps_are_above_their_limit(q, count, adjacency):
    # the composed loss is a Gaussian's of mu = 1 but for parts of 1e-5
    change = 2.0 if adjacency == "replace_one" else 1.0
    event = dpsgd(q, q * change * math.sqrt(count), count)
    for delta in (1e-3, 1e-6):
        limit = gaussian_epsilon(delta, 1.0)
        assert limit * (1.0 - 1e-4) < get_epsilon(event, delta, adjacency=adjacency) < 1.2 * limit


def test_more_than_the_cap_is_refused_however_it_is_nested():
    step = PoissonSampledDpEvent(0.1, GaussianDpEvent(1e6))
    most = SelfComposedDpEvent(step, MOST_RELEASES)
    assert get_epsilon(most, 1e-5) > 0.0
    nested = SelfComposedDpEvent(SelfComposedDpEvent(step, 10**7), 10**7)
    deep = step
    for _ in range(30):
        deep = SelfComposedDpEvent(deep, 10**18)
    for event in (
        SelfComposedDpEvent(step, MOST_RELEASES + 1),
        nested,
        deep,
        compose([most, step]),
        RepeatAndSelectDpEvent(nested, 3.0, 1.0),
        WorstOfDpEvent((nested, step)),
        PoissonSampledDpEvent(0.1, SelfComposedDpEvent(SelfComposedDpEvent(GaussianDpEvent(1.0), 10**7), 10**7)),
    ):
        with pytest.raises(ValueError, match=r"^count: [^\n]*make at most 10\^12 releases of a kind\.$"):
            get_epsilon(event, 1e-5)


def test_below_the_window_only_the_safe_bound_is_read():
    pairs = directions(releases(dpsgd(0.01, 1.0, 2_000)), False)[0]
    tilt = find_tilt(pairs, math.log(1e-9))
    found = compose_on_grid(choose_grid(tilt, 5.0, 1e-4)._replace(width=1e-3, extent=2.0))
    assert found.floor > 2.0
    assert deltas_of(found, np.array([found.floor + found.width]))[0] < 1.0
    below = deltas_of(found, np.linspace(0.0, found.floor - 1e-6, 20))
    assert np.all(below == 1.0)
    assert _upper(found, 0.5) >= found.floor


# --- losses of next to nothing -------------------------------------------------------------------------------

RUN = dpsgd(0.01, 1.0, 1_000)


@over_rows(
    ("base", "small"),
    [
        *((base, LaplaceDpEvent(b)) for base in (GaussianDpEvent(1.0), RUN) for b in (1e6, 1e8, 1e100)),
        *((RUN, EpsilonDeltaDpEvent(e, 1e-9)) for e in (1e-6, 1e-12)),
        (GaussianDpEvent(0.01), SelfComposedDpEvent(LaplaceDpEvent(1e5), 10_000)),
        (GaussianDpEvent(1.0), SelfComposedDpEvent(EpsilonDeltaDpEvent(1e-7, 0.0), 10**6)),
    ],
)
def test_a_tiny_loss_costs_little_and_not_less_than_nothing(base, small):
    tracemalloc.start()
    with calls_at_most(250_000):
        price, delta = get_epsilon(compose([base, small]), 1e-5), get_delta(compose([base, small]), 2.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6
    lower, upper = get_epsilon_bounds(base, 1e-5)
    assert lower <= price <= upper * (1.0 + 1e-3) + get_epsilon(small, 1e-5, method="naive")
    assert delta >= get_delta(base, 2.0) * (1.0 - 1e-3)


def test_tiny_losses_add_up():
    # a million losses of 1e-3 and noise that hides them: the composed loss is that of a Gaussian of mu e0 sqrt(T)
    small = SelfComposedDpEvent(EpsilonDeltaDpEvent(1e-3, 0.0), 10**6)
    limit = gaussian_epsilon(1e-5, math.hypot(1.0, 1.0))
    assert limit * (1.0 - 1e-3) < get_epsilon(compose([GaussianDpEvent(1.0), small]), 1e-5) < 1.01 * limit


@pytest.mark.parametrize(
    "epsilon", [1e-100, *(pytest.param(each, marks=pytest.mark.slow) for each in (1.0, 1e3, 1e100))]
)
def test_delta_has_an_answer_at_any_epsilon(epsilon):
    rare = dpsgd(3e-6, 0.9, 1_700_000)
    hidden = compose([dpsgd(5e-10, 10.0, 1_000_000), SelfComposedDpEvent(LaplaceDpEvent(7e40), 48_000)])
    loud = compose([EpsilonDeltaDpEvent(0.0, 1e-99), dpsgd(1e-68, 4e-57, 3)])
    certain = EpsilonDeltaDpEvent(1e279, 0.0)
    for event in (rare, hidden, loud, RepeatAndSelectDpEvent(loud, 3.0, 1.0), SelfComposedDpEvent(certain, 10**5)):
        delta = get_delta(event, epsilon)
        assert 0.0 < delta <= 1.0
        assert delta >= get_delta(event, 2.0 * epsilon) * (1.0 - 1e-6)
        assert get_epsilon(event, 1e-9) > 0.0
        assert get_epsilon(WorstOfDpEvent((event, GaussianDpEvent(1.0))), 1e-9) > 5.0
    revealing = compose([rare, EpsilonDeltaDpEvent(0.1, 1e-7)])
    assert get_delta(revealing, epsilon) >= 1e-7


def test_more_tries_than_can_be_told_apart_are_refused():
    with pytest.raises(ValueError, match=r"mean=[^\n]*from 1 to 1e12"):
        RepeatAndSelectDpEvent(GaussianDpEvent(1.0), 1e13, 1.0)


# --- any price within bounds ---------------------------------------------------------------------------------


def many(event, count):
    return SelfComposedDpEvent(event, count)


# The slowest and the largest of some hundred random mixtures, before work was bounded.
HEAVY = [
    (  # looks at tries with half a million labels, and others at two kinds without a common grid
        compose(
            [
                RepeatAndSelectDpEvent(
                    compose([dpsgd(0.0107, 1.73, 5), many(EpsilonDeltaDpEvent(2.4e-4, 6.4e-9), 26_000_000)]),
                    426.0,
                    math.inf,
                ),
                WorstOfDpEvent(
                    (
                        dpsgd(2e-5, 2.5, 100),
                        compose([dpsgd(2e-7, 5.0, 3_000), many(LaplaceDpEvent(100.0), 10**9)]),
                    )
                ),
            ]
        ),
        1e-13,
        20.0,
        "zero_out",
    ),
    (  # two kinds on the largest grid, in both directions and again for a lower bound
        compose(
            [
                WorstOfDpEvent((dpsgd(5.4e-7, 15.8, 1_395), dpsgd(0.0213, 1.23, 65))),
                many(LaplaceDpEvent(1_273.0), 836_882_423),
            ]
        ),
        3.5e-8,
        14.1,
        "zero_out",
    ),
    (  # deep tails of a try whose losses are large
        RepeatAndSelectDpEvent(compose([many(LaplaceDpEvent(0.3), 357_889), dpsgd(0.0044, 0.558, 3_428)]), 1.25, 1.0),
        2e-243,
        13.4,
        "replace_one",
    ),
]
MOST_WORK, MOST_MEMORY = 30 << 20, 300e6  # grid points times transforms, each up to 0.05 microseconds; bytes
ASKED = [(0, "epsilon"), (0, "bounds"), (1, "bounds"), (2, "delta")]


@pytest.mark.parametrize(("case", "ask"), ASKED)
def test_the_work_and_the_memory_of_a_price_are_bounded(monkeypatch, case, ask):
    event, delta, epsilon, adjacency = HEAVY[case]
    work = []

    def counted(plan):
        found = compose_on_grid(plan)
        work.append(found.loss.size * (len(plan.tilt.pairs) + 1))
        return found

    for module in (_reading, _lower_bounds):
        monkeypatch.setattr(module, "compose_on_grid", counted)
    for cached in (_methods._epsilon, _methods._delta, _lower_bounds.pld_bounds, _directions._selected_profile):
        cached.cache_clear()
    tracemalloc.start()
    try:
        if ask == "epsilon":
            get_epsilon(event, delta, adjacency=adjacency)
        elif ask == "delta":
            get_delta(event, epsilon, adjacency=adjacency)
        else:
            get_epsilon_bounds(event, delta, adjacency=adjacency)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < sum(work) < MOST_WORK
    assert peak < MOST_MEMORY


# --- deltas far below the rounding of doubles -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "epsilon"),
    [(0.5, 0.5), *(pytest.param(*each, marks=pytest.mark.slow) for each in [(0.5, 3.0), (1e-6, 0.5), (1e-6, 3.0)])],
)
def test_at_the_cap_nothing_is_below_the_truth(q, epsilon):
    sigma = q * math.sqrt(MOST_RELEASES)
    run = dpsgd(q, sigma, MOST_RELEASES)
    truth = delta_at_least(q, sigma, MOST_RELEASES, epsilon)
    assert truth > 1e-3
    worst = WorstOfDpEvent((run, LaplaceDpEvent(1e9)))
    best = RepeatAndSelectDpEvent(run, 3.0, 1.0)
    for event in (run, worst, best):
        assert get_delta(event, epsilon) >= truth
        assert epsilon <= get_epsilon(event, truth) < 3.0 * epsilon + 3.0
    assert get_epsilon_bounds(run, truth)[0] <= get_epsilon(run, truth)
