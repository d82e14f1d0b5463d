"""Epsilon and delta of a composition by privacy loss distributions: a tight upper bound, and a lower one.

`_tilting` finds where to look and how finely, `_grid` composes, `_bounds` turns what was composed into a
lower bound. Here they are put together, for both directions of neighbours.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ._bounded import AnyPair, LaplacePair, ResponsePair
from ._bounds import lower_epsilon, single_epsilon
from ._composition import Releases
from ._gaussian import gaussian_delta, gaussian_epsilon
from ._grid import Composed, compose_on_grid, delta_of, epsilon_of, hockey_stick
from ._pairs import Pair
from ._tilting import Tilt, deviation, find_tilt, width_for, window

__all__ = ["FINE", "PLD_KINDS", "pld_bounds", "pld_delta", "pld_epsilon"]

PLD_KINDS = ("gaussian", "sampled", "laplace", "epsilon_delta")

# Losses of noise multipliers below 1/_MAX_SHIFT are priced without the help of sampling: still a bound.
_MAX_SHIFT = 1000.0
FINE, _COARSE = 2e-6, 3e-5  # relative error of epsilon aimed at, and accepted before the grid grows further
_ROUGH = 1e-3  # accuracy at which the second direction is first looked at
_PREFERRED, _LARGEST = 1 << 18, 1 << 21  # grid points
_GAP, _FINEST = 8e-4, 1 << 20  # relative gap from which on a lower bound is worth a finer grid, and how fine


class _Solved(NamedTuple):
    """One direction composed, and its epsilon."""

    tilt: Tilt
    composed: Composed
    epsilon: float


def _solve(tilt: Tilt, least: float, error: float, widest: float = math.inf) -> Composed:
    """Choose grid and window for one direction, and compose it.

    Parameters
    ----------
    tilt : Tilt
    least : float
        Loss below which nothing will be read, in nats.
    error : float
        Error of epsilon aimed at.
    widest : float
        Bound on the grid's width.
    """
    bottom, top, order = window(tilt, least)
    extent = (top - bottom) * 1.01
    reach = max(float(np.ptp(atoms.loss)) for atoms in tilt.atoms)
    h = width_for(tilt, error)
    if extent / h > _PREFERRED:
        h = max(width_for(tilt, max(error, _COARSE * tilt.epsilon)), min(h, extent / _PREFERRED))
    h = min(h, 0.01 * tilt.epsilon if tilt.epsilon > 0.0 else h)
    # grid positions must stay exact in doubles
    largest = max(float(np.abs(atoms.loss[[0, -1]]).max()) for atoms in tilt.atoms)
    h = max(min(h, max(widest, extent / _PREFERRED)), extent / (_LARGEST - 64), reach / _LARGEST, 1e-11 * largest)
    sizes = {pair.size for pair in tilt.pairs if not isinstance(pair, Pair) and pair.size > 0.0}
    if len(sizes) == 1:
        # both ends of a bounded loss on grid points: they have masses of their own
        (size,) = sizes
        h = 2.0 * size / max(1, math.ceil(2.0 * size / h))
    return compose_on_grid(tilt, max(h, 1e-300), extent, order)


def _check_kinds(found: Releases) -> None:
    strange = [kind for kind in found.kinds if kind not in PLD_KINDS]
    if strange:
        raise TypeError(f"method='pld' has no price for {', '.join(strange)}; use method='rdp'.")


def _directions(found: Releases, replace: bool) -> list[tuple[AnyPair, ...]]:
    """The pairs to compose: one list for each direction."""
    _check_kinds(found)
    twice = 2.0 if replace else 1.0
    sampled = [(q, 1.0 / s, count) for q, s, count in found.sampled]
    gaussian = found.mu_squared + sum(count * m * m for _, m, count in sampled if m > _MAX_SHIFT)
    others: list[AnyPair] = [Pair("remove", 1.0, math.sqrt(gaussian) * twice, 1)] if gaussian > 0.0 else []
    others += [LaplacePair(twice / b, count) for b, count in found.laplace]
    others += [ResponsePair(e, d, count) for e, d, count in found.epsilon_delta if d < 1.0]
    result: list[tuple[AnyPair, ...]] = []
    for kind in ("replace",) if replace else ("remove", "add"):
        pairs: list[AnyPair] = [Pair(kind, q, m, count) for q, m, count in sampled if m <= _MAX_SHIFT]
        result.append((*pairs, *others))
    return result[:1] if all(pair.symmetric for pair in result[0]) else result


def _infinite(found: Releases) -> float:
    """Probability that something is revealed outright: the least delta there is."""
    if any(d >= 1.0 for _, d, _ in found.epsilon_delta):
        return 1.0
    if [count for _, _, count in found.epsilon_delta] == [1]:
        return found.epsilon_delta[0][1]
    return -math.expm1(sum(count * math.log1p(-d) for _, d, count in found.epsilon_delta))


def _unsampled(found: Releases, replace: bool) -> float:
    """Mean shift of all Gaussian releases without sampling: never cheaper (joint convexity)."""
    total = found.mu_squared + sum(count / s**2 for _, s, count in found.sampled)
    return math.sqrt(total) * (2.0 if replace else 1.0)


def _pure(found: Releases, replace: bool) -> float:
    """Sum of the epsilons of what is not Gaussian."""
    laplace = sum(count / b for b, count in found.laplace) * (2.0 if replace else 1.0)
    return (laplace + sum(count * e for e, _, count in found.epsilon_delta)) * (1.0 + 1e-13)


def _promised(found: Releases) -> float:
    """Sum of the deltas of `EpsilonDeltaDpEvent`s, rounded up unless there is only one."""
    parts = [count * d for _, d, count in found.epsilon_delta]
    return sum(parts) * (1.0 if [count for *_, count in found.epsilon_delta] == [1] else 1.0 + 1e-14)


def _simple_epsilon(found: Releases, delta: float, replace: bool) -> float:
    """Epsilon without sampling, the rest by basic composition."""
    left, mu = delta - _promised(found), _unsampled(found, replace)
    if left < 0.0 or (left == 0.0 and mu > 0.0):
        return math.inf
    return (gaussian_epsilon(left, mu) if mu > 0.0 else 0.0) + _pure(found, replace)


def _only_gaussian(found: Releases) -> bool:
    """Whether the closed form is the whole answer."""
    return not found.laplace and not found.epsilon_delta and all(q == 1.0 for q, _, _ in found.sampled)


def _without_help(found: Releases) -> bool:
    """Whether all noise is so small that it is priced without the help of sampling."""
    return all(1.0 / s > _MAX_SHIFT for _, s, _ in found.sampled)


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
            return epsilon
        epsilon += step * max(abs(epsilon), composed.width)
    # otherwise the first label that fits: the sum falls as epsilon rises
    low, high = int(np.searchsorted(composed.loss, epsilon, side="right")), composed.loss.size - 1
    while low < high:
        middle = (low + high) // 2
        fits = hockey_stick(composed.loss, composed.mass, float(composed.loss[middle])) <= goal
        low, high = (low, middle) if fits else (middle + 1, high)
    return float(composed.loss[min(low, composed.loss.size - 1)])


def _epsilon_at(tilt: Tilt, delta: float, error: float) -> _Solved:
    """Epsilon of one direction at `delta`, to about `error`."""
    least = tilt.epsilon - 10.0 / tilt.theta
    composed = _solve(tilt, least, error)
    epsilon = _upper(composed, delta)
    if epsilon > max(least, 0.3 * tilt.epsilon):
        return _Solved(tilt, composed, epsilon)
    # Few, rare, large losses: epsilon lies far below Chernoff's bound. Look again, further down and finer.
    finer = error * max(epsilon / tilt.epsilon, 0.01)
    composed = _solve(tilt, 0.0, finer, max(epsilon, 1e-3 * tilt.epsilon) / 200.0)
    return _Solved(tilt, composed, min(epsilon, _upper(composed, delta)))


def _solved(found: Releases, delta: float, replace: bool, accuracy: float) -> list[_Solved]:
    """The directions that may decide epsilon."""
    result: list[_Solved] = []
    worst = 0.0
    for pairs in _directions(found, replace):
        tilt = find_tilt(pairs, math.log(delta - _infinite(found)), 0.0)
        # Chernoff's bound and a rough look are upper bounds too, and the second direction is mostly well below
        if result and (
            tilt.epsilon * (1.0 + 1e-6) <= worst
            or _epsilon_at(tilt, delta, _ROUGH * max(worst, 1e-3 * tilt.epsilon)).epsilon <= worst
        ):
            continue
        result.append(_epsilon_at(tilt, delta, accuracy * tilt.epsilon))
        worst = max(worst, result[-1].epsilon)
    return result


def _closed_form(found: Releases, delta: float, replace: bool) -> float | None:
    """Epsilon where nothing has to be composed."""
    _check_kinds(found)
    if _only_gaussian(found) or (_without_help(found) and not found.laplace and not found.epsilon_delta):
        return gaussian_epsilon(delta, _unsampled(found, replace))
    left, mu = delta - _infinite(found), _unsampled(found, replace)
    if left < 0.0 or (left == 0.0 and mu > 0.0):
        return math.inf
    if left == 0.0 or (mu == 0.0 and _pure(found, replace) == 0.0):
        return _pure(found, replace)
    if max(_total_variation(pairs) for pairs in _directions(found, replace)) <= delta:
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
    known = _closed_form(found, delta, replace)
    if known is not None:
        return known
    simple = _simple_epsilon(found, delta, replace)
    return min(simple, max(0.0, *(each.epsilon for each in _solved(found, delta, replace, accuracy))))


def _lower(solved: _Solved, delta: float, upper: float) -> float:
    """Lower bound of one direction, on a finer grid where the first is too coarse for it."""
    tilt, composed, _ = solved
    lower = lower_epsilon(tilt, composed, delta)
    gap = upper - lower
    extent = composed.width * composed.loss.size
    finest = extent / (_FINEST - 64)
    if gap <= _GAP * upper or (lower == 0.0 and upper < 1e-6) or composed.width <= 1.5 * finest:
        return lower
    width = max(composed.width * max((0.6 * _GAP * upper / gap) ** 0.7, 1.0 / 16.0), finest)
    finer = compose_on_grid(tilt, width, extent, composed.order)
    return max(lower, lower_epsilon(tilt, finer, delta))


@lru_cache(maxsize=1024)
def pld_bounds(found: Releases, delta: float, replace: bool) -> tuple[float, float]:
    """Epsilon at `delta` from below and from above.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace : bool
        Whether neighbours replace a record.

    Returns
    -------
    tuple of float
        Lower and upper bound in nats; the upper one is `pld_epsilon`.
    """
    known = _closed_form(found, delta, replace)
    if known is not None and (known == math.inf or _only_gaussian(found)):
        # the closed form is rounded up by 1e-11 relative and as much of delta
        return max(0.0, known * (1.0 - 1e-9) - 1e-9), known
    lower = _single(found, delta, replace)
    if known is not None:
        return min(lower, known), known
    solved = _solved(found, delta, replace, FINE)
    upper = min(_simple_epsilon(found, delta, replace), max(0.0, *(each.epsilon for each in solved)))
    if all(1.0 / s <= _MAX_SHIFT for _, s, _ in found.sampled):  # else what was composed is not the exact pair
        lower = max(lower, *(_lower(each, delta, upper) for each in solved))
    return min(lower, upper), upper


def _delta_at(pairs: tuple[AnyPair, ...], epsilon: float, accuracy: float) -> float:
    tilt = find_tilt(pairs, None, epsilon)
    # an error in epsilon moves delta by the slope of its logarithm: theta, but never less than 1 / deviation
    return delta_of(_solve(tilt, epsilon, 10.0 * accuracy * min(1.0 / tilt.theta, deviation(tilt))), epsilon)


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
    mu, infinite = _unsampled(found, replace), _infinite(found)
    if _only_gaussian(found) or (_without_help(found) and not found.laplace and not found.epsilon_delta):
        return gaussian_delta(epsilon, mu)
    if infinite >= 1.0:
        return 1.0
    left = epsilon - _pure(found, replace)
    simple = _promised(found) + (gaussian_delta(left, mu) if left >= 0.0 else 1.0)
    if left >= 0.0 and mu == 0.0:
        return min(1.0, infinite * (1.0 + 1e-12))
    directions = _directions(found, replace)
    worst = 0.0
    for pairs in directions:
        if worst == 0.0 or _delta_at(pairs, epsilon, _ROUGH) > worst:
            worst = max(worst, _delta_at(pairs, epsilon, accuracy))
    return min(worst, simple, _total_variation(directions[0]))
