"""The profile of a whole composition, and that of groups of several records from it.

With D_k the profile for groups of k, H(e^epsilon) as in `profiles`, and a chain of neighbours P, R, Q, of which R
differs from P in i records and from Q in j,

    P - e^x Q = (P - e^a R) + e^a (R - e^{x-a} Q)  gives  D_{i+j}(x) <= D_i(a) + e^a D_j(x - a)

for every a. The least over a from 0 to x is taken.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._typing import Doubles

from ..releases import Releases
from .directions import whole_profile
from .profiles import Profile, ProfilePair

__all__ = ["group_delta", "group_epsilon", "group_profile", "profile_pair"]

_POINTS = 400
_BELOW = 14.0  # log of how far below delta a profile is followed
_DEEPEST = -690.0


def profile_pair(found: Releases, replace_one: bool, log_floor: float, accuracy: float = 1e-5) -> ProfilePair:
    """The profile of a composition, convex.

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
    return ProfilePair.of(whole_profile(found, replace_one, log_floor, accuracy), 1)


def _read(pair: ProfilePair, at: Doubles) -> Doubles:
    """Delta at many epsilons of at least 0."""
    return np.array([pair.delta_at(float(x)) for x in at])


def _join(first: ProfilePair, second: ProfilePair) -> ProfilePair:
    """The profile of a chain of two."""
    top = float(first.profile.loss[-1] + second.profile.loss[-1])
    grid = np.linspace(0.0, top, _POINTS + 1)
    a = np.linspace(0.0, float(first.profile.loss[-1]), _POINTS + 1)
    own = _read(first, a)
    best = np.ones(grid.size)
    for k, x in enumerate(grid):
        kept = a <= x
        # the delta at the point below is no smaller
        point = np.searchsorted(second.profile.loss, x - a[kept], side="right") - 1
        other = second.profile.delta[point]
        with np.errstate(over="ignore"):
            best[k] = min(1.0, float((own[kept] + np.exp(np.minimum(a[kept], 700.0)) * other).min()))
    return ProfilePair.of(Profile(grid, best), 1)


def group_profile(pair: ProfilePair, k: int) -> ProfilePair:
    """The profile for groups of k records, from that for one.

    Parameters
    ----------
    pair : ProfilePair
    k : int
        1 or more.

    Returns
    -------
    ProfilePair
    """
    result, power, left = None, pair, k
    while left:
        if left & 1:
            result = power if result is None else _join(result, power)
        left >>= 1
        power = _join(power, power) if left else power
    assert result is not None
    return result


def group_epsilon(found: Releases, delta: float, k: int, replace_one: bool) -> float:
    """Epsilon at `delta` for groups of k records.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    k : int
    replace_one : bool

    Returns
    -------
    float
        In nats; inf where the profile is not followed far enough.
    """
    floor = max(math.log(delta) - _BELOW, _DEEPEST)
    while True:
        epsilon = group_profile(profile_pair(found, replace_one, floor), k).epsilon_at(delta)
        # what is left of a profile at its end counts e^epsilon times at most
        needed = max(math.log(delta) - _BELOW - min(epsilon, 2.0 * k * abs(floor)), _DEEPEST)
        if floor <= needed:
            return epsilon
        floor = max(2.0 * floor, needed, _DEEPEST) if epsilon == math.inf else needed


def group_delta(found: Releases, epsilon: float, k: int, replace_one: bool) -> float:
    """Delta at `epsilon` for groups of k records; the arguments are those of `group_epsilon`."""
    floor = max(-40.0 - epsilon, _DEEPEST)
    return group_profile(profile_pair(found, replace_one, floor), k).delta_at(epsilon)
