"""A composition as pairs to compose: one list for each direction of neighbours, selections included.

The profile of a try is composed as any other release and read at all epsilons; `_profiles` makes of it the
profile of the best try and a pair, which is composed with the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from ._bounded import AnyPair, LaplacePair, ResponsePair
from ._composition import Releases
from ._gaussian import gaussian_delta, gaussian_epsilon
from ._grid import Composed, compose_on_grid, deltas_of
from ._pairs import Floats, Pair
from ._profiles import Profile, ProfilePair, selected
from ._repeats import NumberOfTries
from ._tilting import Tilt, deviation, find_tilt, width_for, window

__all__ = [
    "MAX_SHIFT",
    "WORK",
    "closed_form",
    "directions",
    "finest",
    "pure",
    "revealed",
    "solve",
    "steep",
    "unsampled",
]

# Losses of noise multipliers below 1/_MAX_SHIFT are priced without the help of sampling: still a bound.
MAX_SHIFT = 1000.0
_STEEPEST = 1e14
_COARSE = 3e-5  # relative error of epsilon accepted before the grid grows further
_PREFERRED = 1 << 18  # grid points
# Work is counted in grid points times Fourier transforms, one of which each kind of release takes, and one leads back.
WORK, _LARGEST = 5 << 20, 1 << 21  # in one grid, and its points
_LOOKS, _LEAST_LOOK = 12 << 20, 1 << 18  # in all looks at the tries of a selection; in one, if they are that many
_REACH = 1 << 20  # grid points within the losses of one release: each is some nodes of a quadrature
_ROUGH = 5e-4  # accuracy from which on a profile has few points
_POINTS = (250, 1000)
_LEAST_EPSILON = 1e-9  # shortest profile
_STRIDE = 2.8  # between looks at one profile, in standard deviations: rounding spoils what is further off

Runs = tuple[Releases, ...]
Curve = tuple[float, Callable[[Floats], Floats]]  # the epsilon to read it up to, and delta at epsilons


def _most_points(tilt: Tilt, work: int) -> int:
    """Grid points that may be laid; the rest is for rounding up to a size that suits the transform."""
    return min(work // (len(tilt.pairs) + 1), _LARGEST) - 64


def finest(tilt: Tilt, extent: float, work: int) -> float:
    """Least width of a grid on a window of `extent` nats that takes at most `work`."""
    reach = max(float(np.ptp(atoms.loss)) for atoms in tilt.atoms)
    return max(extent / _most_points(tilt, work), reach / _REACH)


def solve(tilt: Tilt, least: float, error: float, widest: float = math.inf, work: int = WORK) -> Composed:
    """Choose grid and window for one direction, and compose it.

    A grid coarser than `error` asks for, because the work is bounded, gives a looser bound, never a lower one.

    Parameters
    ----------
    tilt : Tilt
    least : float
        Loss below which nothing will be read, in nats.
    error : float
        Error of epsilon aimed at.
    widest : float
        Bound on the grid's width.
    work : int
        Bound on its number of points times Fourier transforms.
    """
    bottom, top, order = window(tilt, least)
    extent = max(top - bottom, deviation(tilt)) * 1.01  # what is read may lie above the window
    h = width_for(tilt, error)
    if extent / h > _PREFERRED:
        h = max(width_for(tilt, max(error, _COARSE * tilt.epsilon)), min(h, extent / _PREFERRED))
    h = min(h, 0.01 * tilt.epsilon if tilt.epsilon > 0.0 else h)
    # grid positions must stay exact in doubles
    highest = max(float(np.abs(atoms.loss[[0, -1]]).max()) for atoms in tilt.atoms)
    allowed = finest(tilt, extent, work)
    h = max(min(h, max(widest, extent / _PREFERRED)), allowed, 1e-11 * highest)
    bounded = (pair for pair in tilt.pairs if isinstance(pair, (LaplacePair, ResponsePair)))
    sizes = {pair.size for pair in bounded if pair.size > 0.0}
    if len(sizes) == 1 and allowed < max(sizes):
        # both ends of a bounded loss on grid points: they have masses of their own. A loss too small for that
        # lies in one cell below the point on which its upper end is, and costs more than it does, never less.
        (size,) = sizes
        cells = max(1, math.ceil(2.0 * size / h))
        if cells * allowed > 2.0 * size:
            cells -= 1  # to stay within the work
        h = 2.0 * size / max(1, cells)
    return compose_on_grid(tilt, max(h, 1e-300), extent, order)


def unsampled(found: Releases, replace: bool) -> float:
    """Mean shift of all Gaussian releases without sampling: never cheaper (joint convexity)."""
    total = found.mu_squared + sum(count / s**2 for _, s, count in found.sampled)
    return math.sqrt(total) * (2.0 if replace else 1.0)


def pure(found: Releases, replace: bool) -> float:
    """Sum of the epsilons of what is not Gaussian."""
    laplace = sum(count / b for b, count in found.laplace) * (2.0 if replace else 1.0)
    return (laplace + sum(count * e for e, _, count in found.epsilon_delta)) * (1.0 + 1e-13)


def steep(found: Releases, replace: bool) -> bool:
    """Whether losses are so large that doubles do not tell them apart: no grid, and simple bounds alone."""
    loud = found.mu_squared + sum(count / s**2 for _, s, count in found.sampled if 1.0 / s > MAX_SHIFT)
    return loud > _STEEPEST or pure(found, replace) > _STEEPEST


def closed_form(found: Releases) -> bool:
    """Whether one Gaussian is the whole answer: nothing but Gaussians, unsampled or too loud for sampling to help."""
    if found.laplace or found.epsilon_delta or found.selected:
        return False
    return all(q == 1.0 for q, _, _ in found.sampled) or all(1.0 / s > MAX_SHIFT for _, s, _ in found.sampled)


def _look(tilt: Tilt, least: float, error: float, work: int) -> Composed:
    """`solve` for one of several looks that are kept: without what only a lower bound needs."""
    look = solve(tilt, least, error, work=work)
    return look._replace(untilt=look.untilt[:0], steps=())


def _composed_curve(found: Releases, replace: bool, log_floor: float, accuracy: float, work: int) -> Curve:
    """Profile of a composition, from looks at several places: every one is a bound everywhere."""
    by_direction: list[list[Composed]] = []
    reach = math.sqrt(-2.0 * log_floor)
    steps, top = max(2, math.ceil(reach / _STRIDE)), 0.0
    directed = directions(found, replace, log_floor, accuracy)
    each = min(WORK, max(work // (steps * len(directed)), _LEAST_LOOK))
    for pairs in directed:
        if any(pair.infinite >= 1.0 for pair in pairs):
            return 0.0, lambda at: np.ones(at.shape)
        tilt, last = find_tilt(pairs, None, 0.0), 0.0
        looks = [_look(tilt, 0.0, accuracy * deviation(tilt), each)]
        for k in range(2, steps + 1):
            tilt = find_tilt(pairs, -0.5 * (reach * k / steps) ** 2, 0.0)
            looks.append(_look(tilt, 0.8 * last, accuracy * max(tilt.epsilon, _LEAST_EPSILON), each))
            last = max(tilt.epsilon, 0.0)
        by_direction.append(looks)
        top = max(top, last)

    def read(epsilons: Floats) -> Floats:
        lowest = [np.min([deltas_of(look, epsilons) for look in part], axis=0) for part in by_direction]
        result: Floats = np.max(lowest, axis=0)
        return result

    return top, read


def _curve(found: Releases, replace: bool, log_floor: float, accuracy: float, work: int) -> Curve:
    """Profile of one try, read until it is e^log_floor above what is revealed outright."""
    if closed_form(found):
        mu = unsampled(found, replace)
        return gaussian_epsilon(math.exp(log_floor), mu), lambda at: np.array([gaussian_delta(e, mu) for e in at])
    outright = revealed(found)
    if not found.selected and unsampled(found, replace) == 0.0 and pure(found, replace) == 0.0:
        return 0.0, lambda at: np.full(at.shape, outright)
    if outright >= 1.0 or steep(found, replace):
        return 0.0, lambda at: np.ones(at.shape)
    return _composed_curve(found, replace, log_floor, accuracy, work)


@lru_cache(maxsize=512)
def _selected_profile(
    runs: Runs, mean: float, shape: float, replace: bool, log_floor: float, accuracy: float
) -> Profile:
    """Profile of the best of several tries, each the worst of `runs`."""
    floor = max(log_floor - math.log(mean), -700.0)
    curves = [_curve(run, replace, floor, accuracy, _LOOKS // len(runs)) for run in runs]
    points = _POINTS[accuracy < _ROUGH]
    grid = np.linspace(0.0, max(_LEAST_EPSILON, *(top for top, _ in curves)), points + 1)
    delta = np.minimum(np.max([read(grid) for _, read in curves], axis=0), 1.0)
    # a bound at one place is one above it
    delta = np.minimum.accumulate(delta)
    return selected(Profile(grid, delta), NumberOfTries(mean, shape))


def directions(
    found: Releases, replace: bool, log_floor: float = -30.0, accuracy: float = 1e-6
) -> list[tuple[AnyPair, ...]]:
    """The pairs to compose, for each direction; one if both are the same.

    Parameters
    ----------
    found : Releases
    replace : bool
        Whether neighbours replace a record.
    log_floor : float
        Log of a delta that does not matter: how far profiles of selections are followed.
    accuracy : float
        Relative error of epsilon aimed at.

    Returns
    -------
    list of tuple of pairs
    """
    twice = 2.0 if replace else 1.0
    sampled = [(q, 1.0 / s, count) for q, s, count in found.sampled]
    gaussian = found.mu_squared + sum(count * m * m for _, m, count in sampled if m > MAX_SHIFT)
    others: list[AnyPair] = [Pair("remove", 1.0, math.sqrt(gaussian) * twice, 1)] if gaussian > 0.0 else []
    others += [LaplacePair(twice / b, count) for b, count in found.laplace]
    others += [ResponsePair(e, d, count) for e, d, count in found.epsilon_delta if d < 1.0]
    for runs, mean, shape, count in found.selected:
        floor = log_floor - math.log(count)
        others.append(ProfilePair.of(_selected_profile(runs, mean, shape, replace, floor, accuracy), count))
    result: list[tuple[AnyPair, ...]] = []
    for kind in ("replace",) if replace else ("remove", "add"):
        pairs: list[AnyPair] = [Pair(kind, q, m, count) for q, m, count in sampled if m <= MAX_SHIFT]
        result.append((*pairs, *others))
    return result[:1] if all(pair.symmetric for pair in result[0]) else result


def revealed(found: Releases) -> float:
    """Probability that an (epsilon, delta) event reveals something outright."""
    if any(d >= 1.0 for _, d, _ in found.epsilon_delta):
        return 1.0
    if [count for _, _, count in found.epsilon_delta] == [1]:
        return found.epsilon_delta[0][1]
    return -math.expm1(sum(count * math.log1p(-d) for _, d, count in found.epsilon_delta))
