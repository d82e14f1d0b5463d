"""Upper bounds of epsilon, delta and whole profiles from weighted losses and grids.

Each direction of neighbors is composed on a grid around the losses that decide delta. If the guess of these losses was
inaccurate, the composition is repeated.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skdp.accounting.pld.grid import Composed, compose_on_grid, deltas_of
from skdp.accounting.pld.pairs import AtomsPair
from skdp.accounting.pld.profiles import AnyPair, Directed
from skdp.accounting.pld.tilting import WORK, Tilt, ceiling, choose_grid, deviation, find_tilt

_SAFE = 1.0 + 1e-12  # covers rounding of sums, and the error of a quadrature
ROUGH = 1e-3  # accuracy of the first evaluation of the second direction
_BENT = 3e-5  # fraction of epsilon that the width of the grid may cost before a finer one is tried
_LEAST_EPSILON = 1e-4  # below, errors are no longer relative


# --- sums of weighted losses ---


def hockey_stick(loss: np.ndarray, mass: np.ndarray, epsilon: float) -> float:
    """Return the sum of mass (1 - e^{epsilon - loss}) over the losses above epsilon.

    Parameters
    ----------
    loss, mass : array
    epsilon : float

    Returns
    -------
    float
    """
    above = int(np.searchsorted(loss, epsilon, side="right"))
    return float(mass[above:] @ -np.expm1(epsilon - loss[above:]))


def epsilon_of(loss: np.ndarray, mass: np.ndarray, goal: float) -> float:
    """Return the smallest epsilon at which the hockey-stick sum of the masses is at most `goal`.

    Parameters
    ----------
    loss, mass : array
        Labels, increasing, and their masses.
    goal : float
        Above 0.

    Returns
    -------
    float
        Solution of the linear equation in e^epsilon within one grid cell; an end of `loss` if it lies
        beyond.
    """
    tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # mass at and above each point: delta(epsilon) is below it
    high = int(np.searchsorted(-tail[:-1], -goal, side="left"))
    if high == 0:
        return float(loss[0])
    if high == loss.size:
        return float(loss[-1])
    # Delta(e) >= (1 - e^{e - l}) tail(l) for every l, so no solution lies below the largest l + log(1 - goal / tail(l))
    # Where the tail is 10,000 times delta, the label alone says nearly where delta is reached.
    near = slice(max(int(np.searchsorted(-tail[:high], -goal * 1e4, side="right")) - 1, 0), high)
    least = float((loss[near] + np.log1p(-goal / tail[near])).max())
    low = max(int(np.searchsorted(loss, least)) - 1, 0)
    if loss[high] - loss[low] > 500.0:
        return float(loss[high])
    origin = loss[low]
    weighted = np.append(np.cumsum((mass[low:] * np.exp(origin - loss[low:]))[::-1])[::-1], 0.0)
    growth = np.exp(loss[low : high + 1] - origin)
    # delta at a point is what the masses above it say: its own, which may be far larger, has no part in it
    at_point = tail[low + 1 : high + 2] - growth * weighted[1 : high + 2 - low]
    cell = int(np.searchsorted(-at_point, -goal, side="left"))
    if cell == 0:
        return float(loss[low])
    below, above = float(loss[low + cell - 1]), float(loss[low + cell])
    part = float(growth[cell] * weighted[cell])
    if not 0.0 < part < math.inf:
        return above
    share = float(tail[low + cell] - goal) / part
    if share <= 0.0:
        return below
    return min(max(above + math.log(share), below), above)


def delta_of_atoms(pair: AtomsPair, epsilon: float) -> float:
    """Delta of one release, a sum."""
    return min(1.0, hockey_stick(*pair.raised, epsilon) * _SAFE + pair.infinite * _SAFE)


def epsilon_of_atoms(pair: AtomsPair, delta: float) -> float:
    """Epsilon of one release."""
    left = (delta - pair.infinite * _SAFE) / _SAFE
    if left <= 0.0:
        return math.inf
    if delta_of_atoms(pair, 0.0) <= delta:
        return 0.0
    loss, mass = pair.raised
    epsilon = max(0.0, epsilon_of(loss, mass, left))
    if epsilon == loss[-1] and left < mass[-1]:  # below the last loss, where none but its mass counts
        epsilon = max(0.0, *loss[-2:-1].tolist(), float(loss[-1]) + math.log1p(-left / float(mass[-1])))
    for step in (1e-14, 1e-12, 1e-10):  # no rounding in finding it puts it too low
        if delta_of_atoms(pair, epsilon) <= delta:
            return epsilon
        epsilon += step * max(epsilon, 1.0)
    return float(pair.raised[0][np.searchsorted(pair.raised[0], epsilon)])


# --- epsilon at delta, and delta at epsilon ---


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
    """Epsilon at `delta` with everything that was omitted taken from delta."""
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
    # otherwise the first label that fits: the sum falls as epsilon increases
    labels = range(int(np.searchsorted(composed.loss, epsilon, side="right")), composed.loss.size - 1)

    def fits(label: int) -> bool:
        return hockey_stick(composed.loss, composed.mass, float(composed.loss[label])) <= goal

    first = labels.start + bisect_left(labels, True, key=fits)
    return max(float(composed.loss[min(first, composed.loss.size - 1)]), composed.floor)


def _look(tilt: Tilt, delta: float, error: float, work: int, widest: float = math.inf) -> tuple[Solved, bool, float]:
    """Epsilon at `delta` on one grid; whether one centered on that would give less, and the width that would."""
    least = max(tilt.epsilon - 10.0 / tilt.theta, 0.0)  # down to which the grid is read
    composed = compose_on_grid(choose_grid(tilt, least, error, widest, work))
    epsilon = _upper(composed, delta)
    solved = Solved(tilt, composed, epsilon)
    if not least <= max(epsilon, 0.0) < composed.loss[-1] or abs(epsilon - tilt.epsilon) * tilt.order > 2.0:
        return solved, True, math.inf
    if epsilon <= 0.0:
        return solved, False, math.inf
    if tilt.epsilon > 0.0 and not 0.5 < epsilon / tilt.epsilon < 2.0:
        return solved, True, math.inf
    doubtful, bent = _flaws(composed, epsilon)
    if bent > max(3.0 * error, _BENT * epsilon):
        return solved, True, composed.width * math.sqrt(0.2 * _BENT * epsilon / bent)
    return solved, doubtful > max(3.0 * error, 1e-5 * epsilon), math.inf


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
    best, poor, widest = _look(tilt, delta, accuracy * max(tilt.epsilon, _LEAST_EPSILON), work)
    for _ in range(5):
        # if all of delta is omitted, no grid can be centered on what is read
        if not poor or best.epsilon == math.inf:
            break
        if widest == math.inf:
            tilt = find_tilt(tilt.pairs, tilt.log_delta, max(best.epsilon, 0.0))
        solved, poor, widest = _look(tilt, delta, accuracy * max(tilt.epsilon, _LEAST_EPSILON), work, widest)
        gained = best.epsilon - solved.epsilon
        if gained > 0.0:
            best = solved
        if widest == math.inf and not gained > 1e-4 * best.epsilon:
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
        Bound on one grid, as in `choose_grid`.

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


def read_delta(
    directed: Directed, infinite: float, epsilon: float, delta: float, accuracy: float
) -> tuple[float, float]:
    """Delta at `epsilon` on grids that are centered on where `delta` is reached, and a better guess of `delta`.

    Parameters
    ----------
    directed : list of tuple of pairs
    infinite : float
        Probability of infinite loss.
    epsilon : float
        In nats, at least 0.
    delta : float
        A guess, above `infinite`.
    accuracy : float
        Relative error of epsilon aimed at.

    Returns
    -------
    tuple of float
        An upper bound whatever the guess; the guess is better still where `epsilon` is not on the grid.
    """
    worst = guess = 0.0
    for pairs in directed:
        tilt = find_tilt(pairs, math.log(delta - infinite))
        for fine in (max(accuracy, ROUGH), accuracy) if worst > 0.0 else (accuracy,):
            solved = _epsilon_at(tilt, delta, fine, WORK)
            found = min(float(deltas_of(solved.composed, np.array([epsilon]))[0]), total_variation(pairs))
            if found <= worst:
                break
        if found > worst:
            beyond = solved.tilt.order * (solved.epsilon - epsilon)
            worst, guess = found, found if found < 1.0 else delta * math.exp(min(beyond, 30.0))
    return worst, min(guess, worst)


# --- profiles ---

Curve = tuple[float, Callable[[np.ndarray], np.ndarray]]  # the epsilon to read it up to, and delta at epsilons


def _kept_look(tilt: Tilt, least: float, error: float, work: int) -> Composed:
    """One of several looks that are kept: without what only a lower bound needs."""
    look = compose_on_grid(choose_grid(tilt, least, error, work=work))
    return look._replace(untilt=look.untilt[:0], releases=())


def compose_curve(directed: Directed, log_floor: float, accuracy: float, work: int) -> Curve:
    """Profile of a composition, from looks at several places: every one is a bound everywhere.

    Parameters
    ----------
    directed : list of tuple of pairs
        One tuple for each direction.
    log_floor : float
        Log of the delta down to which the profile is followed.
    accuracy : float
        Relative error of epsilon aimed at.
    work : int
        Bound on all looks together, as in `choose_grid`.

    Returns
    -------
    tuple of float and callable
        The epsilon up to which to read the profile, and delta at an array of epsilons.
    """
    by_direction: list[list[Composed]] = []
    reach = math.sqrt(-2.0 * log_floor)
    # a look every 2.8 standard deviations: rounding spoils what is further off
    steps, top = max(2, math.ceil(reach / 2.8)), 0.0
    each = min(WORK, max(work // (steps * len(directed)), 1 << 18))
    for pairs in directed:
        if any(pair.infinite >= 1.0 for pair in pairs):
            return 0.0, lambda at: np.ones(at.shape)
        tilt, last = find_tilt(pairs, None, 0.0), 0.0
        looks = [_kept_look(tilt, 0.0, accuracy * deviation(tilt), each)]
        for k in range(2, steps + 1):
            tilt = find_tilt(pairs, -0.5 * (reach * k / steps) ** 2)
            looks.append(_kept_look(tilt, 0.8 * last, accuracy * max(tilt.epsilon, 1e-9), each))
            last = max(tilt.epsilon, 0.0)
        last = max(last, min(ceiling(tilt), 2.0 * last))
        by_direction.append(looks)
        top = max(top, last)

    def read(epsilons: np.ndarray) -> np.ndarray:
        lowest = [np.min([deltas_of(look, epsilons) for look in part], axis=0) for part in by_direction]
        return np.max(lowest, axis=0)

    return top, read
