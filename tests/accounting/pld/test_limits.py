"""Counts at their cap and losses of next to nothing: never below the truth, never without bound in time or memory."""

import math
import tracemalloc

import pytest
from accounting_reference import dpsgd
from combinations import over_rows
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
    methods,
)
from skdp.accounting.events.composition import MOST_RELEASES
from skdp.accounting.formulas.gaussian import gaussian_epsilon
from skdp.accounting.pld import epsilon as _directions
from skdp.accounting.pld import lower_bounds, reading
from skdp.accounting.pld.grid import compose_on_grid

# --- the cap of counts ---------------------------------------------------------------------------------------


@over_rows(("q", "count", "adjacency"), [(0.01, 10**10, "replace_one"), (0.5, MOST_RELEASES, "zero_out")])
def test_many_tiny_steps_are_above_their_limit(q, count, adjacency):
    # the composed loss is a Gaussian's of mu = 1 but for parts of 1e-5
    change = 2.0 if adjacency == "replace_one" else 1.0
    event = dpsgd(q, q * change * math.sqrt(count), count)
    limit = gaussian_epsilon(1e-5, 1.0)
    assert limit * (1.0 - 1e-4) < get_epsilon(event, 1e-5, adjacency=adjacency) < 1.2 * limit
    for more in (WorstOfDpEvent((event, LaplaceDpEvent(1e9))), RepeatAndSelectDpEvent(event, 3.0, 1.0)):
        assert get_epsilon(more, 1e-5, adjacency=adjacency) > limit * (1.0 - 1e-4)


def test_more_than_the_cap_is_rejected_however_it_is_nested():
    step = PoissonSampledDpEvent(0.1, GaussianDpEvent(1e6))
    most = SelfComposedDpEvent(step, MOST_RELEASES)
    assert get_epsilon(most, 1e-5) > 0.0
    nested = SelfComposedDpEvent(SelfComposedDpEvent(step, 10**7), 10**7)
    deep = step
    for _ in range(30):
        deep = SelfComposedDpEvent(deep, 10**18)
    for event in (
        deep,
        compose([most, step]),
        RepeatAndSelectDpEvent(nested, 3.0, 1.0),
        WorstOfDpEvent((nested, step)),
    ):
        with pytest.raises(ValueError, match=r"^The number of [^\n]* must be at most 10\^12, got about [^\n]*\.$"):
            get_epsilon(event, 1e-5)


# --- losses of next to nothing -------------------------------------------------------------------------------

RUN = dpsgd(0.01, 1.0, 1_000)


@over_rows(
    ("base", "small"),
    [
        *((RUN, LaplaceDpEvent(b)) for b in (1e6, 1e100)),
        (RUN, EpsilonDeltaDpEvent(1e-12, 1e-9)),
        (GaussianDpEvent(0.01), SelfComposedDpEvent(LaplaceDpEvent(1e5), 10_000)),
    ],
)
def test_a_tiny_loss_costs_little_and_not_less_than_nothing(base, small):
    tracemalloc.start()
    with calls_at_most(250_000):
        cost, delta = get_epsilon(compose([base, small]), 1e-5), get_delta(compose([base, small]), 2.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6
    lower, upper = get_epsilon_bounds(base, 1e-5)
    assert lower <= cost <= upper * (1.0 + 1e-3) + get_epsilon(small, 1e-5, method="naive")
    assert delta >= get_delta(base, 2.0) * (1.0 - 1e-3)


def test_tiny_losses_add_up():
    # a million losses of 1e-3 and noise that hides them: the composed loss is that of a Gaussian of mu e0 sqrt(T)
    small = SelfComposedDpEvent(EpsilonDeltaDpEvent(1e-3, 0.0), 10**6)
    limit = gaussian_epsilon(1e-5, math.hypot(1.0, 1.0))
    assert limit * (1.0 - 1e-3) < get_epsilon(compose([GaussianDpEvent(1.0), small]), 1e-5) < 1.01 * limit


def test_delta_at_tiny_epsilon_is_finite():
    epsilon = 1e-100
    rare = dpsgd(3e-6, 0.9, 1_700_000)
    hidden = compose([dpsgd(5e-10, 10.0, 1_000_000), SelfComposedDpEvent(LaplaceDpEvent(7e40), 48_000)])
    loud = compose([EpsilonDeltaDpEvent(0.0, 1e-99), dpsgd(1e-68, 4e-57, 3)])
    certain = EpsilonDeltaDpEvent(1e279, 0.0)
    for event in (hidden, loud, RepeatAndSelectDpEvent(loud, 3.0, 1.0), SelfComposedDpEvent(certain, 10**5)):
        delta = get_delta(event, epsilon)
        assert 0.0 < delta <= 1.0
        assert delta >= get_delta(event, 2.0 * epsilon) * (1.0 - 1e-6)
        assert get_epsilon(event, 1e-9) > 0.0
        assert get_epsilon(WorstOfDpEvent((event, GaussianDpEvent(1.0))), 1e-9) > 5.0
    revealing = compose([rare, EpsilonDeltaDpEvent(0.1, 1e-7)])
    assert get_delta(revealing, epsilon) >= 1e-7


# --- any cost within bounds ---------------------------------------------------------------------------------


def many(event, count):
    return SelfComposedDpEvent(event, count)


HEAVY = compose(
    [
        RepeatAndSelectDpEvent(
            compose([dpsgd(0.0107, 1.73, 5), many(EpsilonDeltaDpEvent(2.4e-4, 6.4e-9), 26_000_000)]), 426.0, math.inf
        ),
        WorstOfDpEvent((dpsgd(2e-5, 2.5, 100), compose([dpsgd(2e-7, 5.0, 3_000), many(LaplaceDpEvent(100.0), 10**9)]))),
    ]
)
"""Trials with half a million labels, and two kinds of release without a common grid."""
MOST_WORK, MOST_MEMORY = 30 << 20, 300e6  # grid points times transforms, each up to 0.05 microseconds; bytes


def test_work_and_memory_of_bounds_are_limited(monkeypatch):
    work = []

    def counted(plan):
        found = compose_on_grid(plan)
        work.append(found.loss.size * (len(plan.tilt.pairs) + 1))
        return found

    for module in (reading, lower_bounds):
        monkeypatch.setattr(module, "compose_on_grid", counted)
    for cached in (methods._epsilon, methods._delta, lower_bounds.pld_bounds, _directions._selected_profile):
        cached.cache_clear()
    tracemalloc.start()
    try:
        get_epsilon_bounds(HEAVY, 1e-13)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < sum(work) < MOST_WORK
    assert peak < MOST_MEMORY


# --- deltas far below the rounding of doubles -------------------------------------------------------------------
