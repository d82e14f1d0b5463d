"""Epsilon and delta of a composition by privacy loss distributions: a tight upper bound, and a lower one.

`_tilting` finds where to look and how finely, `_grid` composes, `_bounds` turns what was composed into a
lower bound. Here they are put together, for both directions of neighbours.
"""

from __future__ import annotations

import math
from dataclasses import replace as replace_fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._bounded import AnyPair, LaplacePair, ResponsePair
from ._bounds import lower_epsilon, single_epsilon
from ._composition import MOST_RELEASES, Releases, joined, repeated
from ._directions import MAX_SHIFT, WORK, closed_form, directions, finest, pure, revealed, solve, steep, unsampled
from ._gaussian import gaussian_delta, gaussian_epsilon
from ._grid import Composed, compose_on_grid, delta_of, epsilon_of, hockey_stick
from ._pairs import Pair
from ._profiles import ProfilePair
from ._rdp import rdp_delta, rdp_epsilon, rdp_refusal
from ._repeats import NumberOfTries
from ._tilting import LEAST_LOG_DELTA, Tilt, deviation, find_tilt

__all__ = ["FINE", "PLD_KINDS", "pld_bounds", "pld_delta", "pld_epsilon"]

PLD_KINDS = ("gaussian", "sampled", "laplace", "epsilon_delta", "selected")

FINE = 2e-6  # relative error of epsilon aimed at
_PROFILE = 1e-5  # relative error of the profile of one try
_NEGLIGIBLE = 14.0  # log of how far below delta a profile is followed
_FLOORS = (-25.0, -60.0, -200.0, -690.0)  # how far that is if delta is not known, one after the other
_ROUGH = 1e-3  # accuracy at which the second direction is first looked at
_NOTHING = 1e-300  # above e^-692
_MANY = 10**9  # releases from which on the grid is so coarse that Rényi divergences may be the better bound
_MANY_SELECTED = 10**7  # the same within a selection, which is looked at in many places on smaller grids
_LEAST_WORK = 1 << 17  # in one grid of a lower bound
_GAP, _FINEST = 8e-4, 1 << 20  # relative gap from which on a lower bound is worth a finer grid, and how fine


Directed = list[tuple[AnyPair, ...]]


class _Solved(NamedTuple):
    """One direction composed, and its epsilon."""

    tilt: Tilt
    composed: Composed
    epsilon: float


def _by_renyi(found: Releases, replace: bool) -> bool:
    """Whether Rényi divergences are asked too: a bound of their own."""
    return found.most > (_MANY_SELECTED if found.selected else _MANY) and rdp_refusal(found, doubled=replace) is None


def _check_kinds(found: Releases) -> None:
    strange = [kind for kind in found.kinds if kind not in PLD_KINDS]
    if strange:
        raise TypeError(f"method='pld' has no price for {', '.join(strange)}; use method='rdp'.")


def _promised(found: Releases) -> float:
    """Sum of the deltas of `EpsilonDeltaDpEvent`s, rounded up unless there is only one."""
    parts = [count * d for _, d, count in found.epsilon_delta]
    return sum(parts) * (1.0 if [count for *_, count in found.epsilon_delta] == [1] else 1.0 + 1e-14)


def _simple_epsilon(found: Releases, delta: float, replace: bool) -> float:
    """Epsilon without sampling, the rest by basic composition."""
    left, mu = delta - _promised(found), unsampled(found, replace)
    if left < 0.0 or (left == 0.0 and mu > 0.0):
        return math.inf
    return (gaussian_epsilon(left, mu) if mu > 0.0 else 0.0) + pure(found, replace)


def _single(found: Releases, delta: float, replace: bool) -> float:
    """What the costliest release alone costs at least; under replacement a record may give way to an empty one."""
    twice = 2.0 if replace else 1.0
    pairs: list[AnyPair] = [Pair("remove", q, 1.0 / s, 1) for q, s, _ in found.sampled]
    if found.mu_squared > 0.0:
        pairs.append(Pair("remove", 1.0, math.sqrt(found.mu_squared) * twice, 1))
    pairs += [LaplacePair(twice / b, 1) for b, _ in found.laplace]
    pairs += [ResponsePair(e, d, 1) for e, d, _ in found.epsilon_delta if d < 1.0]
    return max((single_epsilon(pair, delta) for pair in pairs), default=0.0)


def _total_variation(pairs: tuple[AnyPair, ...]) -> float:
    """Bound on delta at epsilon 0: the sum of the total variations."""
    return sum(p.count * p.variation for p in pairs) * (1.0 + 1e-12)


def _upper(composed: Composed, delta: float) -> float:
    """Epsilon at `delta` with everything that was left out taken from delta."""
    left = delta - composed.lost - math.exp(min(composed.log_outside, 0.0))
    if left <= 0.0:
        return math.inf
    goal = math.exp(min(math.log(left) - composed.log_scale, 700.0)) / (1.0 + composed.slack)
    epsilon = epsilon_of(composed.loss, composed.mass, goal)
    # the solution is tried, so that no rounding in finding it can put it too low
    for step in (1e-13, 1e-10, 1e-7):
        if hockey_stick(composed.loss, composed.mass, epsilon) <= goal * (1.0 + 1e-9):
            return max(epsilon, composed.floor)
        epsilon += step * max(abs(epsilon), composed.width)
    # otherwise the first label that fits: the sum falls as epsilon rises
    low, high = int(np.searchsorted(composed.loss, epsilon, side="right")), composed.loss.size - 1
    while low < high:
        middle = (low + high) // 2
        fits = hockey_stick(composed.loss, composed.mass, float(composed.loss[middle])) <= goal
        low, high = (low, middle) if fits else (middle + 1, high)
    return max(float(composed.loss[min(low, composed.loss.size - 1)]), composed.floor)


def _epsilon_at(tilt: Tilt, delta: float, error: float, work: int) -> _Solved:
    """Epsilon of one direction at `delta`, to about `error`."""
    least = tilt.epsilon - 10.0 / tilt.theta
    composed = solve(tilt, least, error, work=work)
    epsilon = _upper(composed, delta)
    if epsilon > max(least, 0.3 * tilt.epsilon):
        return _Solved(tilt, composed, epsilon)
    # Few, rare, large losses: epsilon lies far below Chernoff's bound. Look again, further down and finer.
    finer = error * max(epsilon / tilt.epsilon, 0.01)
    composed = solve(tilt, 0.0, finer, max(epsilon, 1e-3 * tilt.epsilon) / 200.0, work)
    return _Solved(tilt, composed, min(epsilon, _upper(composed, delta)))


def _solved(directed: Directed, infinite: float, delta: float, accuracy: float, work: int = WORK) -> list[_Solved]:
    """The directions that may decide epsilon."""
    result: list[_Solved] = []
    worst = 0.0
    for pairs in directed:
        tilt = find_tilt(pairs, math.log(delta - infinite), 0.0)
        # Chernoff's bound and a rough look are upper bounds too, and the second direction is mostly well below
        if result and (
            tilt.epsilon * (1.0 + 1e-6) <= worst
            or _epsilon_at(tilt, delta, _ROUGH * max(worst, 1e-3 * tilt.epsilon), work).epsilon <= worst
        ):
            continue
        result.append(_epsilon_at(tilt, delta, accuracy * tilt.epsilon, work))
        worst = max(worst, result[-1].epsilon)
    return result


def _alone(directed: Directed) -> ProfilePair | None:
    """The profile of a single selection and nothing else, which is read as it is."""
    pair = directed[0][0]
    return pair if len(directed[0]) == 1 and isinstance(pair, ProfilePair) and pair.count == 1 else None


def _infinite(found: Releases, pairs: tuple[AnyPair, ...]) -> float:
    """Probability of infinite loss: what is revealed outright, and where profiles were cut off."""
    cut = math.fsum(p.count * math.log1p(-p.infinite) for p in pairs if isinstance(p, ProfilePair) and p.infinite < 1.0)
    if any(isinstance(pair, ProfilePair) and pair.infinite >= 1.0 for pair in pairs):
        return 1.0
    return revealed(found) - (1.0 - revealed(found)) * math.expm1(cut) * (1.0 + 1e-14)


def _selected_epsilon(found: Releases, delta: float, replace: bool, accuracy: float) -> float:
    """Epsilon of a composition in which something was selected."""
    floor = max(math.log(delta) - _NEGLIGIBLE, -700.0)
    directed = directions(found, replace, floor, max(accuracy, _PROFILE))
    alone, infinite = _alone(directed), _infinite(found, directed[0])
    if alone is not None:
        return alone.epsilon_at(delta)
    if infinite >= delta:
        return math.inf
    if max(_total_variation(pairs) for pairs in directed) <= delta:
        return 0.0
    return max(0.0, *(each.epsilon for each in _solved(directed, infinite, delta, accuracy)))


def _selected_delta(found: Releases, epsilon: float, replace: bool, accuracy: float) -> float:
    """Delta of a composition in which something was selected: profiles are followed further until it suffices."""
    if revealed(found) >= 1.0:
        return 1.0
    best = rdp_delta(found, epsilon, doubled=replace) if _by_renyi(found, replace) else 1.0
    for floor in _FLOORS:
        if best < math.exp(floor + _NEGLIGIBLE) and floor > _FLOORS[-1]:
            continue  # a bound is already below all that this floor can tell
        directed = directions(found, replace, floor, max(accuracy, _PROFILE))
        alone = _alone(directed)
        if alone is not None:
            value = alone.delta_at(epsilon)
        elif _infinite(found, directed[0]) >= 1.0:
            value = 1.0
        else:
            value = max(_delta_at(pairs, epsilon, accuracy) for pairs in directed)
        best = min(best, value, *(_total_variation(pairs) for pairs in directed))
        if best > math.exp(floor + _NEGLIGIBLE):
            break
        if floor == _FLOORS[0] and rdp_refusal(found, doubled=replace) is None:
            best = min(best, rdp_delta(found, epsilon, doubled=replace))
    return best


def _closed_form(found: Releases, delta: float, replace: bool) -> float | None:
    """Epsilon where nothing has to be composed."""
    if closed_form(found):
        return gaussian_epsilon(delta, unsampled(found, replace))
    left, mu = delta - revealed(found), unsampled(found, replace)
    if left < 0.0 or (left == 0.0 and mu > 0.0):
        return math.inf
    if left == 0.0 or (mu == 0.0 and pure(found, replace) == 0.0):
        return pure(found, replace)
    if max(_total_variation(pairs) for pairs in directions(found, replace)) <= delta:
        return 0.0
    return None


def pld_epsilon(found: Releases, delta: float, *, replace: bool = False, accuracy: float = FINE) -> float:
    """Epsilon at `delta`, an upper bound.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace : bool
        Whether neighbours replace a record.
    accuracy : float
        Relative error aimed at; a coarser grid is quicker and stays an upper bound.

    Returns
    -------
    float
        In nats, at least 0.
    """
    _check_kinds(found)
    value = _grid_epsilon(found, delta, replace, accuracy)
    return min(value, rdp_epsilon(found, delta, doubled=replace)) if _by_renyi(found, replace) else value


def _grid_epsilon(found: Releases, delta: float, replace: bool, accuracy: float) -> float:
    if found.selected:
        return _selected_epsilon(found, delta, replace, accuracy)
    known = _closed_form(found, delta, replace)
    if known is not None:
        return known
    simple = _simple_epsilon(found, delta, replace)
    if steep(found, replace):
        return simple
    solved = _solved(directions(found, replace), revealed(found), delta, accuracy)
    return min(simple, max(0.0, *(each.epsilon for each in solved)))


def _lower(solved: _Solved, delta: float, upper: float, work: int) -> float:
    """Lower bound of one direction, on a finer grid where the first is too coarse for it."""
    tilt, composed, _ = solved
    lower = lower_epsilon(tilt, composed, delta)
    gap = upper - lower
    extent = composed.width * composed.loss.size
    least = max(extent / (_FINEST - 64), finest(tilt, extent, work))
    if gap <= _GAP * upper or (lower == 0.0 and upper < 1e-6) or composed.width <= 1.5 * least:
        return lower
    width = max(composed.width * max((0.6 * _GAP * upper / gap) ** 0.7, 1.0 / 16.0), least)
    finer = compose_on_grid(tilt, width, extent, composed.order)
    return max(lower, lower_epsilon(tilt, finer, delta))


def _without_selection(found: Releases, which: int) -> tuple[Releases, float]:
    """A composition that costs no more, with one run in place of each selection, and the chance that there was one.

    Scores may all be equal: the best is then any one of the tries.
    """
    sure, parts = 1.0, [replace_fields(found, selected=())]
    for runs, mean, shape, count in found.selected:
        tries = NumberOfTries(mean, shape)
        sure *= math.exp(count * math.log1p(-tries.none))
        run, inner = _without_selection(runs[which % len(runs)], which)
        sure *= inner**count
        # fewer cost less
        parts.append(repeated(run, min(count, MOST_RELEASES // max(run.most, 1))))
    return joined(parts), sure * (1.0 - 1e-12)


def _selected_bounds(found: Releases, delta: float, replace: bool) -> tuple[float, float]:
    """Bounds of a composition in which something was selected; the lower one is that of single runs."""
    upper = pld_epsilon(found, delta, replace=replace)
    lower, number = 0.0, max(len(runs) for runs, *_ in found.selected)
    work = max(WORK // number, _LEAST_WORK)
    for which in range(number):
        once, sure = _without_selection(found, which)
        if delta < sure and not once.empty:
            lower = max(lower, pld_bounds(once, delta / sure, replace, work)[0])
    return min(lower, upper), upper


@lru_cache(maxsize=1024)
def pld_bounds(found: Releases, delta: float, replace: bool, work: int = WORK) -> tuple[float, float]:
    """Epsilon at `delta` from below and from above.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace : bool
        Whether neighbours replace a record.
    work : int
        Bound on one grid, as in `solve`.

    Returns
    -------
    tuple of float
        Lower and upper bound in nats; the upper one is `pld_epsilon`.
    """
    _check_kinds(found)
    if found.selected:
        return _selected_bounds(found, delta, replace)
    known = _closed_form(found, delta, replace)
    if known is not None and (known == math.inf or (closed_form(found) and all(q == 1.0 for q, _, _ in found.sampled))):
        # the closed form is rounded up by 1e-11 relative and as much of delta
        return max(0.0, known * (1.0 - 1e-9) - 1e-9), known
    lower = _single(found, delta, replace)
    if known is None and steep(found, replace):
        known = _simple_epsilon(found, delta, replace)
    if known is not None:
        return min(lower, known), known
    solved = _solved(directions(found, replace), revealed(found), delta, FINE, work)
    upper = min(_simple_epsilon(found, delta, replace), max(0.0, *(each.epsilon for each in solved)))
    upper = min(upper, rdp_epsilon(found, delta, doubled=replace)) if _by_renyi(found, replace) else upper
    if all(1.0 / s <= MAX_SHIFT for _, s, _ in found.sampled):  # else what was composed is not the exact pair
        lower = max(lower, *(_lower(each, delta, upper, work) for each in solved))
    return min(lower, upper), upper


def _delta_at(pairs: tuple[AnyPair, ...], epsilon: float, accuracy: float) -> float:
    tilt = find_tilt(pairs, None, epsilon)
    if tilt.log_delta <= LEAST_LOG_DELTA:
        # Chernoff's bound is below e^-692, and that on what was cut off far below
        return _NOTHING + sum(pair.count * pair.infinite for pair in pairs) * (1.0 + 1e-12)
    # an error in epsilon moves delta by the slope of its logarithm: theta, but never less than 1 / deviation
    return delta_of(solve(tilt, epsilon, 10.0 * accuracy * min(1.0 / tilt.theta, deviation(tilt))), epsilon)


def pld_delta(found: Releases, epsilon: float, *, replace: bool = False, accuracy: float = FINE) -> float:
    """Delta at `epsilon`, an upper bound.

    Parameters
    ----------
    found : Releases
    epsilon : float
        In nats, at least 0.
    replace : bool
        Whether neighbours replace a record.
    accuracy : float
        Relative error aimed at.

    Returns
    -------
    float
        In [0, 1].
    """
    _check_kinds(found)
    value = _grid_delta(found, epsilon, replace, accuracy)
    return min(value, rdp_delta(found, epsilon, doubled=replace)) if _by_renyi(found, replace) else value


def _grid_delta(found: Releases, epsilon: float, replace: bool, accuracy: float) -> float:
    if found.selected:
        return _selected_delta(found, epsilon, replace, accuracy)
    mu, infinite = unsampled(found, replace), revealed(found)
    if closed_form(found):
        return gaussian_delta(epsilon, mu)
    if infinite >= 1.0:
        return 1.0
    left = epsilon - pure(found, replace)
    simple = _promised(found) + (gaussian_delta(left, mu) if left >= 0.0 else 1.0)
    if left >= 0.0 and mu == 0.0:
        return min(1.0, infinite * (1.0 + 1e-12))
    directed = directions(found, replace)
    if steep(found, replace):
        return min(simple, _total_variation(directed[0]))
    worst = 0.0
    for pairs in directed:
        if worst == 0.0 or _delta_at(pairs, epsilon, _ROUGH) > worst:
            worst = max(worst, _delta_at(pairs, epsilon, accuracy))
    return min(worst, simple, _total_variation(directed[0]))
