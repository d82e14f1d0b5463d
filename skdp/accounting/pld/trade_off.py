"""The trade-off function of a profile, a polygon: its corners, what a test finds at most, and the smallest mu.

A test with false positives a finds at most a + x, with the *excess* x(a) = min over epsilon of delta(epsilon) + a
(e^epsilon - 1), and, with the data sets exchanged, the same mirrored: of the errors (a, b) the worst are those of a
polygon, which is symmetric and convex. Every point of the profile is one of its lines (Wasserman & Zhou 2010). Two
neighbouring lines meet in a corner,

    a = (delta_k - delta_{k+1}) / (e^{epsilon_{k+1}} - e^{epsilon_k}),    x = delta_k + a (e^{epsilon_k} - 1).

The points are placed where the polygon needs them: a corner that stands out from the line between its neighbours
by more than a small part of the excess and of the false negatives is cut off by another point.

**The smallest mu.** G_mu(a) = Phi(Phi^-1(1 - a) - mu) is the trade-off function of a Gaussian shifted by mu standard
deviations (Dong, Roth & Su 2022). It is convex, so that over a straight piece of the polygon G_mu less the polygon is
convex too, and at most 0 if it is so at both ends: mu is the largest Phi^-1(1 - a) - Phi^-1(b) of the corners with
a, b >= alpha_min and of the place where a is alpha_min. As the polygon lies below the trade-off function, this is no
smaller than the exact mu.

**From below.** A test whose errors are a and b at most, both of at least alpha_min, asks for a mu of at least that of
the curve through (a, b); so does a test drawn at random from two, whose errors lie on the line between theirs. The
tests are those by the sum of labels (`label_tests`). Where one has both errors below alpha_min there is no mu.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..releases import Releases
from .closed_forms import Simple
from .directions import curve_of
from .epsilon import known_delta
from .label_tests import ErrorsOfTests, errors_near
from .lower_bounds import pld_bounds
from .profiles import Profile, ProfilePair

Reader = Callable[[np.ndarray], np.ndarray]

_ACCURACY = 1e-5  # relative error of epsilon aimed at
_SHORTEST = 1e-9  # profile
_POINTS = 400  # to begin with
_MOST_POINTS = 6000
_ROUNDS = 9  # of halving cells
_BENT = 4e-4  # share of the excess, and of the false negatives, by which a corner may stand out: four times the error
_LEAST_ALPHA = 1e-13  # false positives down to which corners are cut off
_FARTHEST = 60.0  # nats, beyond which corners have no false positives that a double can tell
_SAFE = 1.0 + 1e-9  # covers the rounding of corners
_ROUNDED = 2e-14  # of the quantiles of which mu is the difference
_NEARLY = 1.0 + 1e-4  # a lower bound within this of the upper one is not improved
_CLOSELY = 1.0 + 4e-4  # how much smaller the mu of another corner may be to be tried
_FINER = (1, 8, 64)  # cells of a grid in place of one, for a lower bound
_WORK = 12 << 20  # of all looks at one profile


def _corners(profile: Profile) -> tuple[np.ndarray, np.ndarray]:
    """False positives and excess where neighbouring lines meet, false positives falling."""
    near = max(1, int(np.searchsorted(profile.loss, _FARTHEST, side="right")))
    loss, delta = profile.loss[: near + 1], profile.delta[: near + 1]
    with np.errstate(over="ignore"):
        alpha = np.exp(-loss[:-1]) * -np.diff(delta) / np.expm1(np.minimum(np.diff(loss), 700.0))
    return alpha, delta[:-1] + alpha * np.expm1(loss[:-1])


def _bent(profile: Profile) -> NDArray[np.intp]:
    """Numbers of the cells whose corner stands out from the line between the corners beside it."""
    alpha, excess = _corners(profile)
    if alpha.size == 0:
        return np.zeros(0, dtype=np.intp)
    beta = np.maximum(1.0 - alpha - excess, 0.0)
    before = np.append(max(beta[0], alpha[0]), alpha[:-1]), np.append(excess[0], excess[:-1])
    after = np.append(alpha[1:], 0.0), np.append(excess[1:], profile.delta[alpha.size])
    width = np.maximum(before[0] - after[0], 1e-300)
    straight = after[1] + (before[1] - after[1]) * np.clip((alpha - after[0]) / width, 0.0, 1.0)
    found = (excess - straight > _BENT * np.minimum(excess, beta)) & (alpha >= _LEAST_ALPHA)
    return np.flatnonzero(found & (np.diff(profile.loss)[: alpha.size] > 1e-12))


@lru_cache(maxsize=64)
def fine_profile(found: Releases, replace_one: bool, log_floor: float) -> ProfilePair:
    """The profile of a composition with as many points as its trade-off function needs.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbours replace a record.
    log_floor : float
        Log of the delta down to which it is followed.

    Returns
    -------
    ProfilePair
    """
    top, read = curve_of(found, replace_one, log_floor, _ACCURACY, _WORK)
    if not Simple.of(found, replace_one).closed and known_delta(found, 0.0, replace_one) is not None:
        read = _known_curve(found, replace_one)
    loss = np.linspace(0.0, max(_SHORTEST, top), _POINTS + 1)
    pair = ProfilePair.of(Profile(loss, read(loss)), 1)
    for _ in range(_ROUNDS):
        cells = _bent(pair.profile)
        if cells.size == 0 or pair.profile.loss.size > _MOST_POINTS:
            break
        pair = _with_points(pair, read, 0.5 * (pair.profile.loss[cells] + pair.profile.loss[cells + 1]))
    return pair


def _with_points(pair: ProfilePair, read: Reader, more: np.ndarray) -> ProfilePair:
    """The same with more points."""
    loss, first = np.unique(np.append(pair.profile.loss, more), return_index=True)
    return ProfilePair.of(Profile(loss, np.append(pair.profile.delta, read(more))[first]), 1)


def _known_curve(found: Releases, replace_one: bool) -> Reader:
    """Delta by its formula, at many epsilons."""

    def read(epsilons: np.ndarray) -> np.ndarray:
        return np.array([known_delta(found, float(epsilon), replace_one) for epsilon in epsilons], dtype=np.float64)

    return read


def largest_excess(profile: Profile, alpha: float) -> float:
    """What a test with false positives `alpha` finds at most beyond `alpha`.

    Parameters
    ----------
    profile : Profile
        Convex.
    alpha : float
        In [0, 1].

    Returns
    -------
    float
        In [0, 1 - `alpha`].
    """
    with np.errstate(over="ignore", invalid="ignore"):
        grown = np.where(profile.loss > 0.0, alpha * np.expm1(np.minimum(profile.loss, 709.0)), 0.0)
        ahead = float((profile.delta + grown).min())
    exchanged = 1.0 - alpha - np.exp(-profile.loss) * (1.0 - profile.delta - alpha)
    return min(max(0.0, min(ahead, float(exchanged.min()))), 1.0 - alpha)


def _mu_at(alpha: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Mu of the Gaussian trade-off curve through these errors."""
    with np.errstate(invalid="ignore"):
        result: np.ndarray = ndtri(np.minimum(alpha + excess, 1.0)) - ndtri(alpha)
    return np.maximum(result, 0.0)


def least_mu(profile: Profile, alpha_min: float) -> float:
    """Smallest mu whose curve lies below the polygon wherever both errors are at least `alpha_min`.

    Parameters
    ----------
    profile : Profile
        Convex.
    alpha_min : float
        In (0, 0.5).

    Returns
    -------
    float
        Rounded up; inf where a test may keep both errors below `alpha_min`.
    """
    at_end = largest_excess(profile, alpha_min)
    if 1.0 - alpha_min - at_end < alpha_min:
        return math.inf
    alpha, excess = _corners(profile)
    kept = alpha >= alpha_min
    errors = np.append(alpha[kept], alpha_min), np.append(excess[kept], at_end)
    return float(_mu_at(*errors).max()) * _SAFE


def lower_mu(found: Releases, replace_one: bool, log_floor: float, alpha_min: float) -> float:
    """A mu that is not above the exact one.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbours replace a record.
    log_floor : float
        As for `fine_profile`.
    alpha_min : float
        In (0, 0.5).

    Returns
    -------
    float
        0 where nothing can be said.
    """
    profile = fine_profile(found, replace_one, log_floor).profile
    best, upper = 0.0, least_mu(profile, alpha_min)
    if upper == math.inf and _errs_less(found, replace_one, alpha_min):
        return math.inf
    places = _places(profile, alpha_min) if upper < math.inf else [0]
    for finer in _FINER:
        for k in places:
            errors = errors_near(found, replace_one, float(profile.loss[k]), float(profile.delta[k]), finer)
            best = max([best, *(_mu_of_tests(each, alpha_min) for each in errors)])
            if best * _NEARLY >= upper:
                return best
    return best


def _errs_less(found: Releases, replace_one: bool, alpha_min: float) -> bool:
    """Whether a test surely has both errors below `alpha_min`.

    If delta(e) > 1 - 2 alpha_min at an e of at least 0, the errors of some test add up to less than 2 alpha_min. So do
    those of the mirrored test, and half of each lies above the trade-off function, which is convex.
    """
    return pld_bounds(found, 1.0 - 2.0 * alpha_min / _SAFE, replace_one)[0] > 0.0


def _places(profile: Profile, alpha_min: float) -> list[int]:
    """Points of the profile at its worst corners, first the steepest, and where false positives are about `alpha_min`.

    Grids are finest in proportion far from an epsilon of 0.
    """
    alpha, excess = _corners(profile)
    mu = np.where(alpha >= alpha_min, _mu_at(alpha, excess), 0.0)
    near = np.flatnonzero(mu * _CLOSELY >= mu.max())
    with np.errstate(over="ignore"):
        least = int(np.argmin(profile.delta + alpha_min * np.expm1(np.minimum(profile.loss, _FARTHEST))))
    return list(dict.fromkeys((int(near[-1]), least, int(near[near.size // 2]), int(np.argmax(mu)))))


def _mu_of_tests(errors: ErrorsOfTests, alpha_min: float) -> float:
    """The mu that tests ask for, and tests drawn at random from two of them where false positives are `alpha_min`."""
    type_1, found = errors
    if np.any((type_1 < alpha_min) & (1.0 - found < alpha_min)):
        return math.inf
    if type_1[-1] < alpha_min < type_1[0]:
        between = np.interp(alpha_min, type_1[::-1], found[::-1])
        type_1, found = np.append(type_1, alpha_min), np.append(found, between)
    kept = (type_1 >= alpha_min) & (1.0 - found >= alpha_min)
    with np.errstate(invalid="ignore"):
        mu = ndtri(found[kept]) - ndtri(type_1[kept])
    return float(mu.max(initial=0.0)) / _SAFE - _ROUNDED if kept.any() else 0.0
