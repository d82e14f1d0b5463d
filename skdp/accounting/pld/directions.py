"""A composition as pairs to compose: one list for each direction of neighbours, selections included.

The profile of a trial is composed as any other release and read at all epsilons; `profiles` makes of it the
profile of the best try and a pair, which is composed with the rest.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..formulas.gaussian import gaussian_delta, gaussian_epsilon
from ..formulas.selection_law import NumberOfTrials
from ..releases import Releases, Runs
from .closed_forms import MAX_SHIFT, Simple
from .pairs import LaplacePair, Pair, ResponsePair, atoms_pairs
from .profiles import AnyPair, Directed, Profile, ProfilePair, select_best
from .reading import Curve, compose_curve

_LOOKS = 12 << 20  # work of all looks at the trials of a selection
_ROUGH = 5e-4  # accuracy from which on a profile has few points
_POINTS = (250, 1000)
_LEAST_EPSILON = 1e-9  # shortest profile


def curve_of(found: Releases, replace_one: bool, log_floor: float, accuracy: float, work: int) -> Curve:
    """Profile of one trial, read until it is e^log_floor above what is revealed outright."""
    simple = Simple.of(found, replace_one)
    if simple.closed and simple.revealed == 0.0:
        mu = simple.mu
        return gaussian_epsilon(math.exp(log_floor), mu), lambda at: np.array([gaussian_delta(e, mu) for e in at])
    if not found.selected and simple.mu == 0.0 and simple.pure == 0.0:
        return 0.0, lambda at: np.full(at.shape, simple.revealed)
    if simple.revealed >= 1.0 or simple.steep:
        return 0.0, lambda at: np.ones(at.shape)
    return compose_curve(directions(found, replace_one, log_floor, accuracy), log_floor, accuracy, work)


@lru_cache(maxsize=512)
def _selected_profile(
    runs: Runs, trials: NumberOfTrials | None, replace_one: bool, log_floor: float, accuracy: float
) -> Profile:
    """Profile of the best of several trials, each the worst of `runs`; of one of them where there are no trials."""
    floor = log_floor if trials is None else max(log_floor - math.log(trials.mean), -700.0)
    curves = [curve_of(run, replace_one, floor, accuracy, _LOOKS // len(runs)) for run in runs]
    points = _POINTS[accuracy < _ROUGH]
    grid = np.linspace(0.0, max(_LEAST_EPSILON, *(top for top, _ in curves)), points + 1)
    delta = np.minimum(np.max([read(grid) for _, read in curves], axis=0), 1.0)
    # a bound at one place is one above it
    delta = np.minimum.accumulate(delta)
    profile = Profile(grid, delta)
    return profile if trials is None else select_best(profile, trials)


def profile_pair(found: Releases, replace_one: bool, log_floor: float, accuracy: float = 1e-5) -> ProfilePair:
    """The profile of a composition, convex: the larger of both directions.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbours replace a record.
    log_floor : float
        Log of the delta down to which it is followed.
    accuracy : float
        Relative error of epsilon aimed at.

    Returns
    -------
    ProfilePair
    """
    return ProfilePair.of(_selected_profile((found,), None, replace_one, log_floor, accuracy), 1)


def directions(found: Releases, replace_one: bool, log_floor: float = -30.0, accuracy: float = 1e-6) -> Directed:
    """The pairs to compose, for each direction; one if both are the same.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbours replace a record.
    log_floor : float
        Log of a delta that does not matter: how far profiles of selections are followed.
    accuracy : float
        Relative error of epsilon aimed at.

    Returns
    -------
    list of tuple of pairs
    """
    twice = 2.0 if replace_one else 1.0
    sampled = [(rate, 1.0 / noise, count) for rate, noise, count in found.sampled]
    gaussian = found.mu_squared + sum(count * m * m for _, m, count in sampled if m > MAX_SHIFT)
    others: list[AnyPair] = [Pair("remove", 1.0, math.sqrt(gaussian) * twice, 1)] if gaussian > 0.0 else []
    others += [LaplacePair(twice / noise, count) for noise, count in found.laplace]
    others += [ResponsePair(epsilon, delta, count) for epsilon, delta, count in found.epsilon_delta if delta < 1.0]
    for runs, trials, count in found.selected:
        floor = log_floor - math.log(count)
        others.append(ProfilePair.of(_selected_profile(runs, trials, replace_one, floor, accuracy), count))
    result: Directed = []
    weighted = atoms_pairs(found, replace_one)
    for direction, kind in enumerate(("replace",) if replace_one else ("remove", "add")):
        pairs: list[AnyPair] = [Pair(kind, q, m, count) for q, m, count in sampled if m <= MAX_SHIFT]
        result.append((*pairs, *others, *weighted[direction]))
    return result[:1] if all(pair.symmetric for pair in result[0]) else result
