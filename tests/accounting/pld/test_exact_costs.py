"""PLD costs against exact values: never below, and by no more than .1 % or 1e-5 above.

Compositions of Gaussian, Poisson-sampled Gaussian, Laplace, randomized response and (epsilon, delta) events are drawn,
with delta from 1e-15 to 1e-1. Exact values are those of `accounting_exact`.
"""

from __future__ import annotations

import math

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

RELATIVE, ABSOLUTE = 1e-3, 1e-5
FAST = drawn(6, seed=41)


def in_closed_form(parts: tuple[Part, ...]) -> bool:
    """Whether `binomial_delta` costs it, and in little memory."""
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


def gap_of_bracket(case: Drawn) -> float:
    """Check that the bracket holds the exact epsilon; return its relative width."""
    low, high = get_epsilon_bounds(event_of(case.parts), case.delta, adjacency=case.adjacency)
    assert high == epsilon_of(case)
    assert 0.0 <= low <= high
    check_never_below(case, high)
    if low > 0.0:
        assert exact_delta(case, low * (1.0 - 1e-6)) >= case.delta * (1.0 - 2e-4), (case, low)
    return 0.0 if high - low <= ABSOLUTE else (high - low) / high


@over_rows("case", FAST)
def test_bracket_holds_exact_epsilon_and_is_narrow(case):
    assert gap_of_bracket(case) <= RELATIVE


@pytest.mark.slow
def test_epsilon_is_exact_on_a_thousand():
    """Up to five may be loose: rare losses at a delta of a few hundred times the rounding of doubles."""
    limited = []
    for case in drawn(1000, seed=5):
        epsilon = epsilon_of(case)
        check_never_below(case, epsilon)
        if not is_tight(case, epsilon):
            assert case.delta < 1e-10, (case, epsilon)
            assert any(kind == "gaussian" and value[0] < 1e-4 for kind, value, _ in case.parts), (case, epsilon)
            limited.append(case)
    assert len(limited) <= 5, limited


def test_delta_agrees_with_epsilon():
    for case in FAST[::4]:
        event, epsilon = event_of(case.parts), epsilon_of(case)
        above = get_delta(event, epsilon * (1.0 + RELATIVE) + ABSOLUTE, adjacency=case.adjacency)
        assert above <= case.delta * (1.0 + 1e-6), (case, epsilon)
        if lower(epsilon) > 0.0:
            below = get_delta(event, lower(epsilon), adjacency=case.adjacency)
            assert below >= case.delta * (1.0 - 1e-6), (case, epsilon)


# --- what was wrong ------------------------------------------------------------------------------------------


@over_rows(
    ("parts", "delta"),
    [
        ((("laplace", 1 / 0.03, 15),), 1e-5),
        ((("response", (0.02, 4e-5), 4),), 5e-3),
        ((("gaussian", (1e-6, 0.6), 10),), 1e-9),
        ((("response", (1.8, 0.0), 6), ("gaussian", (3.3e-6, 0.52), 71)), 1.9e-5),
    ],
)
def test_small_deltas_and_bounded_or_rare_losses(parts, delta):
    case = Drawn(parts, delta, False)
    epsilon = epsilon_of(case)
    check_never_below(case, epsilon)
    assert is_tight(case, epsilon), epsilon
    assert epsilon <= get_epsilon(event_of(parts), delta, method="rdp") * (1.0 + 1e-9)


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


def test_both_ends_are_close_where_delta_is_close_to_one():
    kept = 1e-5
    parts = (("response", (1.5, 0.0), 40),)
    low, high = get_epsilon_bounds(event_of(parts), 1.0 - kept)
    assert 1.0 - binomial_delta(parts, high) == pytest.approx(kept, rel=1e-5)
    assert kept * (1.0 - 2e-3) <= 1.0 - binomial_delta(parts, low) <= kept


def test_randomized_response_in_closed_form():
    for epsilon, size, revealed, count in [(0.0, 0.1, 0.0, 30), (0.3, 0.4, 1e-4, 7), (1.5, 1.0, 1e-9, 200)]:
        event = SelfComposedDpEvent(EpsilonDeltaDpEvent(size, revealed), count)
        exact = binomial_delta((("response", (size, revealed), count),), epsilon)
        assert exact * (1.0 - 1e-9) <= get_delta(event, epsilon) <= exact * (1.0 + 1e-8)


def test_a_statement_that_delta_covers_is_free():
    """In every way of asking, to the last bit: delta at epsilon 0 is .0163."""
    event, delta = EpsilonDeltaDpEvent(0.032587332815781696, 1.1028112710672291e-05), 0.01991902856143515
    assert get_delta(event, 0.0) < delta
    assert get_epsilon(event, delta) <= 1e-300
    assert get_epsilon_bounds(event, delta)[1] == get_epsilon(event, delta)


def test_more_is_revealed_than_delta_allows():
    """Two kinds of (epsilon, delta) event: no closed form, and no epsilon at a delta below what they reveal."""
    event = compose([EpsilonDeltaDpEvent(0.1, 1e-5), EpsilonDeltaDpEvent(0.2, 2e-5)])
    assert get_epsilon(event, 2.9e-5) == math.inf
    assert get_epsilon(event, 3.1e-5) == pytest.approx(0.3, rel=1e-4)
