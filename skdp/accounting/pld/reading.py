"""Epsilon and delta of pairs that are composed: upper bounds, direction by direction."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from .bounded import AnyPair
from .directions import Directed
from .discrete import AtomsPair
from .grid import Composed, delta_of, epsilon_of, hockey_stick
from .resolution import WORK, solve
from .saddle import find_tilt
from .tilting import LEAST_LOG_DELTA, Tilt, deviation

__all__ = ["ROUGH", "Solved", "is_negligible", "read_delta", "read_epsilon", "solve_directions", "total_variation"]

ROUGH = 1e-3  # accuracy at which the second direction is first looked at
_NOTHING = 1e-300  # above e^-692
_FAR = 10.0  # from where a grid is centred, in units of 1 / theta, up to which it is read
_NEAR = 2.0  # the same for a guess that was good
_LOOKS = 5  # at most, after the first
_BENT = 3e-5  # share of epsilon that the width of the grid may cost before a finer one is tried
_LEAST_EPSILON = 1e-4  # below it errors are no longer in proportion
_LARGE, _DOUBTFUL = 300.0, 0.2  # epsilon, and log of delta above its guess, from which on another look is taken
_LAST_PLACES = 1e-15  # relative rounding of a loss that is read off as it is


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


class _Look(NamedTuple):
    """What is read of one grid, whether one centred on that would say less, and the width that would."""

    solved: Solved
    poor: bool
    widest: float


def _look(tilt: Tilt, delta: float, error: float, work: int, widest: float = math.inf) -> _Look:
    """Epsilon at `delta` on one grid."""
    least = max(tilt.epsilon - _FAR / tilt.theta, 0.0)
    composed = solve(tilt, least, error, widest, work)
    epsilon = _upper(composed, delta)
    solved = Solved(tilt, composed, epsilon)
    if not least <= max(epsilon, 0.0) < composed.loss[-1] or abs(epsilon - tilt.epsilon) * tilt.order > _NEAR:
        return _Look(solved, True, math.inf)
    if epsilon <= 0.0:
        return _Look(solved, False, math.inf)
    if tilt.epsilon > 0.0 and not 0.5 < epsilon / tilt.epsilon < 2.0:
        return _Look(solved, True, math.inf)
    doubtful, bent = _flaws(composed, epsilon)
    if bent > max(3.0 * error, _BENT * epsilon):
        return _Look(solved, True, composed.width * math.sqrt(0.2 * _BENT * epsilon / bent))
    return _Look(solved, doubtful > max(3.0 * error, 1e-5 * epsilon), math.inf)


def _flaws(composed: Composed, epsilon: float) -> tuple[float, float]:
    """By how much rounding may have raised epsilon, and by how much the width of the grid about has.

    Of a grid with every second label, delta is straight in e^epsilon between those: the two such chords around epsilon
    tell how it bends.
    """
    loss, mass = composed.loss, composed.mass
    above = int(np.searchsorted(loss, epsilon, side="right"))
    shrunk = np.exp(epsilon - loss[above:])
    tail, weighted = float(mass[above:].sum()), float(mass[above:] @ shrunk)
    total = max(tail - weighted, 1e-300)
    doubtful = composed.doubt * float(composed.untilt[above:] @ (1.0 - shrunk)) / max(weighted, 1e-300)

    def delta_at(label: int) -> float:
        """Delta at a label near epsilon: the labels between are moved in or out of the sums."""
        low, high, sign = (label + 1, above, 1.0) if label < above else (above, label + 1, -1.0)
        moved, shares = mass[low:high], np.exp(epsilon - loss[low:high])
        over = weighted + sign * float(moved @ shares)
        return tail + sign * float(moved.sum()) - math.exp(loss[label] - epsilon) * over

    bent = 0.0
    for first in (above - 2, above - 1):  # a chord over two cells, whose inner label is below epsilon or above
        if first < 0 or first + 2 >= loss.size or composed.width > 300.0:
            continue
        before, after = delta_at(first), delta_at(first + 2)
        if before > max(total, after):
            share = (before - total) / (before - after)
            rise = math.log1p(share * math.expm1(loss[first + 2] - loss[first]))
            bent = max(bent, float(loss[first]) + rise - epsilon)
    return doubtful, bent / 3.0  # the chords of this grid bend a quarter of that


def _epsilon_at(tilt: Tilt, delta: float, accuracy: float, work: int) -> Solved:
    """Epsilon of one direction at `delta`: where the guess of it or the grid was not good, another look."""
    found = _look(tilt, delta, accuracy * max(tilt.epsilon, _LEAST_EPSILON), work)
    best = found.solved
    for _ in range(_LOOKS):
        if not found.poor:
            break
        if found.widest == math.inf:
            tilt = find_tilt(tilt.pairs, tilt.log_delta, max(best.epsilon, 0.0))
        found = _look(tilt, delta, accuracy * max(tilt.epsilon, _LEAST_EPSILON), work, found.widest)
        gained = best.epsilon - found.solved.epsilon
        if gained > 0.0:
            best = found.solved
        if found.widest == math.inf and not gained > 1e-4 * best.epsilon:
            break
    return best


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
        tilt = find_tilt(pairs, math.log(delta - infinite))
        # a rough look is an upper bound too, and the second direction is mostly well below
        if result and _epsilon_at(tilt, delta, ROUGH, work).epsilon <= worst:
            continue
        result.append(_epsilon_at(tilt, delta, accuracy, work))
        worst = max(worst, result[-1].epsilon)
    return result


def read_epsilon(directed: Directed, infinite: float, delta: float, accuracy: float) -> float:
    """Epsilon of all directions at `delta`; the arguments are those of `solve_directions`."""
    if is_negligible(directed, delta):
        return 0.0
    return max(0.0, *(each.epsilon for each in solve_directions(directed, infinite, delta, accuracy)))


def read_delta(pairs: tuple[AnyPair, ...], epsilon: float, accuracy: float) -> float:
    """Delta of one direction at `epsilon`; an epsilon off by about `accuracy` in proportion would give it exactly.

    That of a single release of weighted losses is a sum, and needs no grid.
    """
    if len(pairs) == 1 and pairs[0].count == 1 and isinstance(pairs[0], AtomsPair):
        # losses are known to some units of their last place
        return min(pairs[0].pair.profile(epsilon * (1.0 - _LAST_PLACES)) * (1.0 + 1e-11), 1.0)
    tilt = find_tilt(pairs, None, epsilon)
    if tilt.log_delta <= LEAST_LOG_DELTA:
        # Chernoff's bound is below e^-692, and that on what was cut off far below
        return _NOTHING + sum(pair.count * pair.infinite for pair in pairs) * (1.0 + 1e-12)
    best = 1.0
    for _ in range(_LOOKS):
        # an error in epsilon moves delta by the slope of its logarithm: theta, but never less than 1 / deviation
        error = 10.0 * accuracy * min(1.0 / tilt.order, deviation(tilt))
        best = min(best, delta_of(solve(tilt, epsilon, error), epsilon))
        log_delta = max(math.log(best), LEAST_LOG_DELTA)
        if log_delta > tilt.log_delta - 1.0:
            break
        # the guess by which it was looked at was too high
        tilt = find_tilt(pairs, log_delta, epsilon)
    # at an end of the losses the saddle point may be far from any tilt that suits: look as `read_epsilon` does
    guess = min(tilt.log_delta + 3.0, math.log(best) if best > 0.0 else LEAST_LOG_DELTA)
    if guess > LEAST_LOG_DELTA and (epsilon > _LARGE or math.log(best) > guess + _DOUBTFUL):
        tilt = find_tilt(pairs, guess)
        error = accuracy * max(tilt.epsilon, _LEAST_EPSILON)
        for look in (tilt, find_tilt(pairs, guess, epsilon)):
            best = min(best, delta_of(solve(look, min(epsilon, look.epsilon), error), epsilon))
    return best
