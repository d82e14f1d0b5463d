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

__all__ = ["MAX_SHIFT", "closed_form", "directions", "pure", "revealed", "solve", "unsampled"]

# Losses of noise multipliers below 1/_MAX_SHIFT are priced without the help of sampling: still a bound.
MAX_SHIFT = 1000.0
_COARSE = 3e-5  # relative error of epsilon accepted before the grid grows further
_PREFERRED, _LARGEST = 1 << 18, 1 << 21  # grid points
_ROUGH = 5e-4  # accuracy from which on a profile has few points
_POINTS = (250, 1000)
_LEAST_EPSILON = 1e-9  # shortest profile
_STRIDE = 2.8  # between looks at one profile, in standard deviations: rounding spoils what is further off

Runs = tuple[Releases, ...]
Curve = tuple[float, Callable[[Floats], Floats]]  # the epsilon to read it up to, and delta at epsilons


def solve(tilt: Tilt, least: float, error: float, widest: float = math.inf) -> Composed:
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
    bounded = (pair for pair in tilt.pairs if isinstance(pair, (LaplacePair, ResponsePair)))
    sizes = {pair.size for pair in bounded if pair.size > 0.0}
    if len(sizes) == 1:
        # both ends of a bounded loss on grid points: they have masses of their own
        (size,) = sizes
        h = 2.0 * size / max(1, math.ceil(2.0 * size / h))
    return compose_on_grid(tilt, max(h, 1e-300), extent, order)


def unsampled(found: Releases, replace: bool) -> float:
    """Mean shift of all Gaussian releases without sampling: never cheaper (joint convexity)."""
    total = found.mu_squared + sum(count / s**2 for _, s, count in found.sampled)
    return math.sqrt(total) * (2.0 if replace else 1.0)


def pure(found: Releases, replace: bool) -> float:
    """Sum of the epsilons of what is not Gaussian."""
    laplace = sum(count / b for b, count in found.laplace) * (2.0 if replace else 1.0)
    return (laplace + sum(count * e for e, _, count in found.epsilon_delta)) * (1.0 + 1e-13)


def closed_form(found: Releases) -> bool:
    """Whether one Gaussian is the whole answer: nothing but Gaussians, unsampled or too loud for sampling to help."""
    if found.laplace or found.epsilon_delta or found.selected:
        return False
    return all(q == 1.0 for q, _, _ in found.sampled) or all(1.0 / s > MAX_SHIFT for _, s, _ in found.sampled)


def _composed_curve(found: Releases, replace: bool, log_floor: float, accuracy: float) -> Curve:
    """Profile of a composition, from looks at several places: every one is a bound everywhere."""
    by_direction: list[list[Composed]] = []
    reach = math.sqrt(-2.0 * log_floor)
    steps, top = max(2, math.ceil(reach / _STRIDE)), 0.0
    for pairs in directions(found, replace, log_floor, accuracy):
        tilt, last = find_tilt(pairs, None, 0.0), 0.0
        looks = [solve(tilt, 0.0, accuracy * deviation(tilt))]
        for k in range(2, steps + 1):
            tilt = find_tilt(pairs, -0.5 * (reach * k / steps) ** 2, 0.0)
            looks.append(solve(tilt, 0.8 * last, accuracy * max(tilt.epsilon, _LEAST_EPSILON)))
            last = max(tilt.epsilon, 0.0)
        by_direction.append(looks)
        top = max(top, last)

    def read(epsilons: Floats) -> Floats:
        each = [np.min([deltas_of(look, epsilons) for look in part], axis=0) for part in by_direction]
        result: Floats = np.max(each, axis=0)
        return result

    return top, read


def _curve(found: Releases, replace: bool, log_floor: float, accuracy: float) -> Curve:
    """Profile of one try, read until it is e^log_floor above what is revealed outright."""
    if closed_form(found):
        mu = unsampled(found, replace)
        return gaussian_epsilon(math.exp(log_floor), mu), lambda at: np.array([gaussian_delta(e, mu) for e in at])
    outright = revealed(found)
    if not found.selected and unsampled(found, replace) == 0.0 and pure(found, replace) == 0.0:
        return 0.0, lambda at: np.full(at.shape, outright)
    if outright >= 1.0:
        return 0.0, lambda at: np.ones(at.shape)
    return _composed_curve(found, replace, log_floor, accuracy)


@lru_cache(maxsize=512)
def _selected_profile(
    runs: Runs, mean: float, shape: float, replace: bool, log_floor: float, accuracy: float
) -> Profile:
    """Profile of the best of several tries, each the worst of `runs`."""
    floor = max(log_floor - math.log(mean), -700.0)
    curves = [_curve(run, replace, floor, accuracy) for run in runs]
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
