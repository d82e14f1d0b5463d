"""PLD prices against exact values: never below, and by no more than .1 % or 1e-5 above.

Compositions of Gaussian, Poisson-sampled Gaussian, Laplace, randomised response and (epsilon, delta) events are drawn,
with delta from 1e-15 to 1e-1. Exact values are those of `accounting_exact`.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from accounting_exact import Drawn, Part, binomial_delta, drawn, event_of, lattice_delta
from combinations import over_rows

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    compose,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.gaussian import gaussian_delta, gaussian_epsilon
from skdp.accounting.pld.directions import directions
from skdp.accounting.pld.lower_bounds import lower_epsilon
from skdp.accounting.pld.reading import epsilon_of as epsilon_of_masses
from skdp.accounting.pld.reading import solve_directions
from skdp.accounting.releases import releases

RELATIVE, ABSOLUTE = 1e-3, 1e-5
FAST = drawn(14, seed=41)


def in_closed_form(parts: tuple[Part, ...]) -> bool:
    """Whether `binomial_delta` prices it, and in little memory."""
    if any(kind == "laplace" or (kind == "gaussian" and value[0] < 1.0) for kind, value, _ in parts):
        return False
    return math.prod(n + 1 for kind, _, n in parts if kind == "response") < 10**6


def exact_delta(case: Drawn, epsilon: float) -> float:
    if in_closed_form(case.parts):
        return binomial_delta(case.parts, epsilon, case.replace_one)
    return lattice_delta(case.parts, epsilon, case.delta, case.replace_one)


def lower(epsilon: float) -> float:
    return epsilon * (1.0 - RELATIVE) - ABSOLUTE


def is_tight(case: Drawn, epsilon: float) -> bool:
    """Whether the exact epsilon is above `lower(epsilon)`."""
    return lower(epsilon) <= 0.0 or exact_delta(case, lower(epsilon)) > case.delta


def check_never_below(case: Drawn, epsilon: float) -> None:
    # the lattice is known to some 1e-4 of delta; epsilon is a double, and delta may be a small part of the top mass
    slack = 1e-9 if in_closed_form(case.parts) else 2e-4
    assert exact_delta(case, epsilon * (1.0 + 1e-12)) <= case.delta * (1.0 + slack), (case, epsilon)


def epsilon_of(case: Drawn) -> float:
    return get_epsilon(event_of(case.parts), case.delta, adjacency=case.adjacency)


@over_rows("number", range(len(FAST)))
def test_epsilon_is_exact(number):
    case = FAST[number]
    epsilon = epsilon_of(case)
    check_never_below(case, epsilon)
    assert is_tight(case, epsilon), (case, epsilon)


def is_limited_by_rounding(case: Drawn) -> bool:
    """Rare losses at a delta that is a few hundred times the rounding of doubles: the bound on that shows."""
    return case.delta < 1e-10 and any(kind == "gaussian" and value[0] < 1e-4 for kind, value, _ in case.parts)


@pytest.mark.slow
def test_epsilon_is_exact_on_a_thousand():
    limited = []
    for case in drawn(1000, seed=5):
        epsilon = epsilon_of(case)
        check_never_below(case, epsilon)
        if not is_tight(case, epsilon):
            assert is_limited_by_rounding(case), (case, epsilon)
            limited.append(case)
    assert len(limited) <= 5, limited


def check_consistent(case: Drawn) -> None:
    event, epsilon = event_of(case.parts), epsilon_of(case)
    above = get_delta(event, epsilon * (1.0 + RELATIVE) + ABSOLUTE, adjacency=case.adjacency)
    assert above <= case.delta * (1.0 + 1e-6), (case, epsilon)
    if lower(epsilon) > 0.0:
        assert get_delta(event, lower(epsilon), adjacency=case.adjacency) >= case.delta * (1.0 - 1e-6), (case, epsilon)


def test_delta_agrees_with_epsilon():
    for case in FAST[::4]:
        check_consistent(case)


def more(part: Part, factor: float) -> list[Part]:
    """The same release with less noise, oftener, and of more of the rows."""
    kind, value, n = part
    oftener = (kind, value, math.ceil(n * factor))
    if kind == "laplace":
        return [oftener, (kind, value / factor, n)]
    if kind == "response":
        return [oftener, (kind, (value[0] * factor, value[1]), n)]
    q, sigma = value
    return [oftener, (kind, (q, sigma / factor), n), (kind, (min(1.0, q * factor), sigma), n)]


def check_monotone(case: Drawn, factor: float) -> None:
    epsilon = epsilon_of(case)
    for place, part in enumerate(case.parts):
        for louder in more(part, factor):
            parts = (*case.parts[:place], louder, *case.parts[place + 1 :])
            dearer = epsilon_of(case._replace(parts=parts))
            assert dearer >= epsilon * (1.0 - 1e-4) - 1e-6, (case, louder)


@over_rows("factor", [1.01])
def test_more_is_never_cheaper(factor):
    for case in FAST[:4]:
        check_monotone(case, factor)


def check_brackets(cases: list[Drawn]) -> None:
    gaps = []
    for case in cases:
        low, high = get_epsilon_bounds(event_of(case.parts), case.delta, adjacency=case.adjacency)
        assert high == epsilon_of(case)
        assert 0.0 <= low <= high
        if low > 0.0:
            assert exact_delta(case, low * (1.0 - 1e-6)) >= case.delta * (1.0 - 2e-4), (case, low)
        gaps.append(0.0 if high - low <= ABSOLUTE else (high - low) / high)
    assert np.median(gaps) <= 1e-3
    assert np.quantile(gaps, 0.99) <= 1e-2


def test_brackets_hold_the_exact_value_and_are_narrow():
    check_brackets(FAST[:9])


# --- what was wrong ------------------------------------------------------------------------------------------


def check_exact(parts: tuple[Part, ...], delta: float, replace_one: bool = False) -> float:
    case = Drawn(parts, delta, replace_one)
    epsilon = epsilon_of(case)
    check_never_below(case, epsilon)
    assert is_tight(case, epsilon), epsilon
    return epsilon


@over_rows(
    ("parts", "delta"),
    [
        ((("laplace", 1 / 0.03, 15),), 1e-5),
        ((("response", (0.02, 4e-5), 4),), 5e-3),
        ((("response", (0.001, 0.0), 10), ("laplace", 500.0, 3)), 1e-4),
        ((("gaussian", (1e-6, 0.6), 10),), 1e-9),
        ((("response", (1.8, 0.0), 6), ("gaussian", (3.3e-6, 0.52), 71)), 1.9e-5),
        ((("laplace", 3.0, 5), ("response", (0.0045, 0.0), 6), ("laplace", 3.3, 13)), 1.9e-11),
    ],
)
def test_small_deltas_and_bounded_or_rare_losses(parts, delta):
    epsilon = check_exact(parts, delta)
    assert epsilon <= get_epsilon(event_of(parts), delta, method="rdp") * (1.0 + 1e-9)


def test_a_price_does_not_rise_with_noise():
    delta, prices = 0.07185912, []
    for sigma in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0):
        run = SelfComposedDpEvent(PoissonSampledDpEvent(0.004734, GaussianDpEvent(sigma)), 6)
        event = compose([run, EpsilonDeltaDpEvent(0.2214, 0.1 * delta)])
        prices.append(get_epsilon(event, delta, adjacency="replace_one"))
    assert all(later <= earlier for earlier, later in itertools.pairwise(prices)), prices


def test_one_rare_step_of_little_noise_costs_its_chance():
    """Beside steps whose limit is a Gaussian's of mu = 1."""
    rate, q, sigma, steps = 1e-6, 0.5, 0.05, 10**4
    run = SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(q * math.sqrt(steps))), steps)
    event = compose([PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), run])
    # with the chance of `rate` it tells all, in the limit of no noise
    least, most = gaussian_delta(3.0, 1.0), get_delta(run, 3.0) + rate
    assert least <= get_delta(event, 3.0) <= most * (1.0 + 2e-2)
    assert gaussian_epsilon(1e-5, 1.0) <= get_epsilon(event, 1e-5) <= get_epsilon(run, 1e-5 - 1.001 * rate) * 1.001
    low, high = get_epsilon_bounds(event, 1e-5)
    assert high - low <= 1e-2 * high


def test_losses_taken_as_infinite_count_in_full():
    """With the chance of 1e-3 a record is in the sample, and noise is so little that this tells all."""
    event = PoissonSampledDpEvent(1e-3, GaussianDpEvent(0.01))
    assert get_delta(event, 1.0) == pytest.approx(1e-3, rel=1e-6)
    assert get_delta(event, 1.0) >= 1e-3 * (1.0 - 1e-9)
    assert get_epsilon(event, 1.001e-3) < 1e-2
    assert get_epsilon(event, 0.999e-3) > 1e3


def test_rare_step_bracket_holds_the_exact_value():
    """A third of delta is the chance of a step that tells all."""
    parts = (("gaussian", (3e-6, 0.05), 1), ("response", (0.2, 0.0), 12))
    low, high = get_epsilon_bounds(event_of(parts), 1e-5)
    exact = binomial_delta(parts[1:], low)
    assert 3e-6 + (1.0 - 3e-6) * exact >= 1e-5 * (1.0 - 1e-6)
    assert high - low <= 1e-3 * high
    # by itself, before it is kept below the upper bound
    for each in solve_directions(directions(releases(event_of(parts)), False), 0.0, 1e-5, 1e-6):
        assert lower_epsilon(each.tilt, each.composed, 1e-5) <= each.epsilon


@over_rows("kept", [1e-2, 1e-5])
def test_both_ends_are_close_where_delta_is_close_to_one(kept):
    parts = (("response", (1.5, 0.0), 40),)
    low, high = get_epsilon_bounds(event_of(parts), 1.0 - kept)
    assert 1.0 - binomial_delta(parts, high) == pytest.approx(kept, rel=1e-5)
    assert kept * (1.0 - 2e-3) <= 1.0 - binomial_delta(parts, low) <= kept


def test_epsilon_is_read_off_masses_of_many_orders():
    """Rounding, tilted back, may be far larger just below where epsilon is read; it has no part in it."""
    loss, mass = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1e90, 1e40, 0.1, 0.0])
    assert epsilon_of_masses(loss, mass, 1e-6) == pytest.approx(2.0 + math.log1p(-1e-5), abs=1e-14)


@over_rows("epsilon", [0.0, 0.3, 1.5])
def test_randomised_response_in_closed_form(epsilon):
    for size, revealed, count in [(0.1, 0.0, 30), (0.4, 1e-4, 7), (1.0, 1e-9, 200)]:
        event = SelfComposedDpEvent(EpsilonDeltaDpEvent(size, revealed), count)
        exact = binomial_delta((("response", (size, revealed), count),), epsilon)
        assert exact * (1.0 - 1e-9) <= get_delta(event, epsilon) <= exact * (1.0 + 1e-8)


def test_a_statement_that_delta_covers_is_free():
    """In every way of asking, to the last bit: delta at epsilon 0 is .0163."""
    event, delta = EpsilonDeltaDpEvent(0.032587332815781696, 1.1028112710672291e-05), 0.01991902856143515
    assert get_delta(event, 0.0) < delta
    assert get_epsilon(event, delta) <= 1e-300
    assert get_epsilon_bounds(event, delta)[1] == get_epsilon(event, delta)


@pytest.mark.slow
def test_delta_agrees_with_epsilon_on_a_thousand():
    for case in drawn(1000, seed=6):
        if not is_limited_by_rounding(case):
            check_consistent(case)


@pytest.mark.slow
def test_more_is_never_cheaper_on_hundreds():
    for case in drawn(300, seed=7):
        if not is_limited_by_rounding(case):
            check_monotone(case, 1.1)


@pytest.mark.slow
def test_a_thousand_brackets_hold_the_exact_value_and_are_narrow():
    check_brackets(drawn(1000, seed=8))


def test_rare_losses_at_a_delta_near_rounding():
    """Exact: .00688; what is above is the bound on the rounding of the transform."""
    event = event_of((("gaussian", (1e-6, 0.6), 10),))
    assert 0.00688 < get_epsilon(event, 1e-11) < 0.00692


def test_more_is_revealed_than_delta_allows():
    """Two kinds of (epsilon, delta) event: no closed form, and no epsilon at a delta below what they reveal."""
    event = compose([EpsilonDeltaDpEvent(0.1, 1e-5), EpsilonDeltaDpEvent(0.2, 2e-5)])
    assert get_epsilon(event, 2.9e-5) == math.inf
    assert get_epsilon(event, 3.1e-5) == pytest.approx(0.3, rel=1e-4)
