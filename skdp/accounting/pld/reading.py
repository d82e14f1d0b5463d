"""Epsilon and delta of pairs that are composed: upper bounds, direction by direction."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from .bounded import AnyPair
from .directions import Directed
from .grid import Composed, delta_of, epsilon_of, hockey_stick
from .resolution import WORK, solve
from .tilting import LEAST_LOG_DELTA, Tilt, deviation, find_tilt

__all__ = ["ROUGH", "Solved", "is_negligible", "read_delta", "read_epsilon", "solve_directions", "total_variation"]

ROUGH = 1e-3  # accuracy at which the second direction is first looked at
_NOTHING = 1e-300  # above e^-692


class Solved(NamedTuple):
    """One direction composed, and its epsilon."""

    tilt: Tilt
    composed: Composed
    epsilon: float


def total_variation(pairs: tuple[AnyPair, ...]) -> float:
    """Bound on delta at epsilon 0: the sum of the total variations."""
    return sum(p.count * p.variation for p in pairs) * (1.0 + 1e-12)


def is_negligible(directed: Directed, delta: float) -> bool:
    """Whether `delta` alone covers everything, so that epsilon is 0."""
    return max(total_variation(pairs) for pairs in directed) <= delta


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
    labels = range(int(np.searchsorted(composed.loss, epsilon, side="right")), composed.loss.size - 1)

    def fits(label: int) -> bool:
        return hockey_stick(composed.loss, composed.mass, float(composed.loss[label])) <= goal

    first = labels.start + bisect_left(labels, True, key=fits)
    return max(float(composed.loss[min(first, composed.loss.size - 1)]), composed.floor)


def _epsilon_at(tilt: Tilt, delta: float, error: float, work: int) -> Solved:
    """Epsilon of one direction at `delta`, to about `error`."""
    least = tilt.epsilon - 10.0 / tilt.theta
    composed = solve(tilt, least, error, work=work)
    epsilon = _upper(composed, delta)
    if epsilon > max(least, 0.3 * tilt.epsilon):
        return Solved(tilt, composed, epsilon)
    # Few, rare, large losses: epsilon lies far below Chernoff's bound. Look again, further down and finer.
    finer = error * max(epsilon / tilt.epsilon, 0.01)
    composed = solve(tilt, 0.0, finer, max(epsilon, 1e-3 * tilt.epsilon) / 200.0, work)
    return Solved(tilt, composed, min(epsilon, _upper(composed, delta)))


def solve_directions(
    directed: Directed, infinite: float, delta: float, accuracy: float, work: int = WORK
) -> list[Solved]:
    """Compose the directions that may decide epsilon.

    Parameters
    ----------
    directed : list of tuple of pairs
    infinite : float
        Probability of infinite loss, below `delta`.
    delta : float
        In (0, 1).
    accuracy : float
        Relative error of epsilon aimed at.
    work : int
        Bound on one grid, as in `solve`.

    Returns
    -------
    list of Solved
        At least one.
    """
    result: list[Solved] = []
    worst = 0.0
    for pairs in directed:
        tilt = find_tilt(pairs, math.log(delta - infinite), 0.0)
        # Chernoff's bound and a rough look are upper bounds too, and the second direction is mostly well below
        if result and (
            tilt.epsilon * (1.0 + 1e-6) <= worst
            or _epsilon_at(tilt, delta, ROUGH * max(worst, 1e-3 * tilt.epsilon), work).epsilon <= worst
        ):
            continue
        result.append(_epsilon_at(tilt, delta, accuracy * tilt.epsilon, work))
        worst = max(worst, result[-1].epsilon)
    return result


def read_epsilon(directed: Directed, infinite: float, delta: float, accuracy: float) -> float:
    """Epsilon of all directions at `delta`; the arguments are those of `solve_directions`."""
    if is_negligible(directed, delta):
        return 0.0
    return max(0.0, *(each.epsilon for each in solve_directions(directed, infinite, delta, accuracy)))


def read_delta(pairs: tuple[AnyPair, ...], epsilon: float, accuracy: float) -> float:
    """Delta of one direction at `epsilon`; an epsilon off by about `accuracy` in proportion would give it exactly."""
    tilt = find_tilt(pairs, None, epsilon)
    if tilt.log_delta <= LEAST_LOG_DELTA:
        # Chernoff's bound is below e^-692, and that on what was cut off far below
        return _NOTHING + sum(pair.count * pair.infinite for pair in pairs) * (1.0 + 1e-12)
    # an error in epsilon moves delta by the slope of its logarithm: theta, but never less than 1 / deviation
    return delta_of(solve(tilt, epsilon, 10.0 * accuracy * min(1.0 / tilt.theta, deviation(tilt))), epsilon)
