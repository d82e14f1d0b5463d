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

**From below.** Let delta(e) >= d at an e of at least 0 (`lower_bounds`). The tangent of slope -e^e touches the exact
trade-off function f at some a, where f(a) = 1 - delta(e) - e^e a <= 1 - d - e^e a. So mu is at least that of the curve
through a and this bound, provided that a >= alpha_min (f(a) >= a follows by symmetry, as the slope there is -1 or
steeper). The delta of a profile is convex in e^epsilon with slope -a, so a is at least (d - delta(e')) / (e^{e'} -
e^e) for every e' above e, and at most the same for every e' below e. Between the two the mu of the curve is smallest
where the curve touches the tangent, or at the end nearest to that place: as G_mu less a line is convex, the a at which
mu suffices are an interval. At a = alpha_min, the excess is the least of delta(e) + alpha_min (e^e - 1), convex in e^e.
It lies between a tangent that touches above alpha_min and one that touches below; and between two neighbours of those
laid there, above the line that falls from the first as fast as may be, and above the one that falls to the second as
slowly as may be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skdp._typing import Doubles

from ..formulas.gaussian import gaussian_mu
from ..releases import Releases
from .closed_forms import Simple
from .directions import curve_of
from .epsilon import known_delta
from .lower_bounds import pld_bounds
from .profiles import Profile, ProfilePair

__all__ = ["fine_profile", "largest_excess", "least_mu", "lower_mu"]

Reader = Callable[[Doubles], Doubles]

_ACCURACY = 1e-5  # relative error of epsilon aimed at
_SHORTEST = 1e-9  # profile
_POINTS = 400  # to begin with
_MOST_POINTS = 6000
_ROUNDS = 9  # of halving cells
_BENT = 4e-4  # share of the excess, and of the false negatives, by which a corner may stand out: four times the error
_LEAST_ALPHA = 1e-13  # false positives down to which corners are cut off
_FARTHEST = 60.0  # nats, beyond which corners have no false positives that a double can tell
_SAFE = 1.0 + 1e-9  # covers the rounding of corners
_ROUNDED = 1e-13  # of deltas, whose differences are read
_CLOSE = 5e-5  # relative gap of epsilon from which on a tangent is looked for on a finer grid
_NEARLY = 1.0 + 1e-4  # a lower bound within this of the upper one is not improved
_CLOSELY = 1.0 + 4e-4  # how much smaller the mu of another corner may be to be tried
_APART = ((1.0,), (4.0,), (2.0, 0.5, 0.0))  # cells from a place at which tangents are laid, more each time
_WORK = 12 << 20  # of all looks at one profile


def _corners(profile: Profile) -> tuple[Doubles, Doubles]:
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
    return _refined(found, replace_one, log_floor)[0]


@lru_cache(maxsize=64)
def _refined(found: Releases, replace_one: bool, log_floor: float) -> tuple[ProfilePair, Reader]:
    """`fine_profile`, and how delta is read elsewhere."""
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
    return pair, read


def _with_points(pair: ProfilePair, read: Reader, more: Doubles) -> ProfilePair:
    """The same with more points."""
    loss, first = np.unique(np.append(pair.profile.loss, more), return_index=True)
    return ProfilePair.of(Profile(loss, np.append(pair.profile.delta, read(more))[first]), 1)


def _known_curve(found: Releases, replace_one: bool) -> Reader:
    """Delta by its formula, at many epsilons."""

    def read(epsilons: Doubles) -> Doubles:
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


def _mu_at(alpha: Doubles, excess: Doubles) -> Doubles:
    """Mu of the Gaussian trade-off curve through these errors."""
    with np.errstate(invalid="ignore"):
        result: Doubles = -ndtri(alpha) - ndtri(np.maximum(1.0 - alpha - excess, 0.0))
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
    pair, read = _refined(found, replace_one, log_floor)
    best, upper = 0.0, least_mu(pair.profile, alpha_min)
    if upper == math.inf:
        return math.inf if _errs_less(found, replace_one, alpha_min) else 0.0
    for at, width in _steep_places(pair.profile, alpha_min):
        best = max(best, _mu_of_tangent(_touch(found, replace_one, read, at, width), alpha_min))
        if best * _NEARLY >= upper:
            return best
    at, width = _place_of(pair.profile, alpha_min)
    touches: list[_Touch] = []
    for apart in _APART:
        ends = {at + side * cells * width for cells in apart for side in (-1.0, 1.0)}
        touches += filter(None, (_touch(found, replace_one, read, end, width) for end in sorted(ends)))
        best = max(best, _mu_along(touches, alpha_min))
        if best * _NEARLY >= upper:
            break
    return best


def _errs_less(found: Releases, replace_one: bool, alpha_min: float) -> bool:
    """Whether a test surely has both errors below `alpha_min`.

    If delta(e) > 1 - 2 alpha_min at an e of at least 0, the errors of some test add up to less than 2 alpha_min. So do
    those of the mirrored test, and half of each lies above the trade-off function, which is convex.
    """
    return pld_bounds(found, 1.0 - 2.0 * alpha_min / _SAFE, replace_one, close=_CLOSE)[0] > 0.0


class _Place(NamedTuple):
    """An epsilon, and the length over which the profile bends there."""

    epsilon: float
    width: float


class _Touch(NamedTuple):
    """A tangent that lies below the profile: delta is at least `delta` at `epsilon`, where the false positives are from
    `first` to `last`."""

    epsilon: float
    delta: float
    first: float
    last: float


def _steep_places(profile: Profile, alpha_min: float) -> list[_Place]:
    """Where mu is nearly the largest of all corners, and the curve of that mu as steep as the tangent."""
    alpha, excess = _corners(profile)
    mu = np.where(alpha >= alpha_min, _mu_at(alpha, excess), 0.0)
    if not mu.size or not 0.0 < mu.max() < math.inf:
        return []
    near = np.flatnonzero(mu * _NEARLY >= mu.max())
    steeper = np.flatnonzero(mu * _CLOSELY >= mu.max())  # tangents that are steep are known best
    found = []
    for k in dict.fromkeys((int(np.argmax(mu)), int(near[near.size // 2]), int(near[-1]), int(steeper[-1]))):
        low, high = float(profile.loss[k]), float(profile.loss[k + 1])
        steep = float(mu[k] * (-ndtri(alpha[k]) - 0.5 * mu[k]))
        found.append(_Place(min(max(steep, low + 0.25 * (high - low)), high), high - low))
    return found


def _place_of(profile: Profile, alpha: float) -> _Place:
    """Where the tangent touches at about `alpha`."""
    with np.errstate(over="ignore"):
        k = int(np.argmin(profile.delta + alpha * np.expm1(np.minimum(profile.loss, _FARTHEST))))
    low, high = float(profile.loss[max(k - 1, 0)]), float(profile.loss[min(k + 1, profile.loss.size - 1)])
    return _Place(float(profile.loss[k]), 0.5 * (high - low))


def _touch(found: Releases, replace_one: bool, read: Reader, at: float, width: float) -> _Touch | None:
    """The tangent near an epsilon; None where nothing is known of it."""
    if not 0.0 < at < _FARTHEST:
        return None
    delta = float(read(np.array([at]))[0])
    epsilon = pld_bounds(found, delta, replace_one, close=_CLOSE)[0] if 0.0 < delta < 1.0 else 0.0
    if not 0.0 < epsilon <= at:
        return None
    steps = max(width, 1e-12) * np.geomspace(1e-2, 1e2, 41)
    above, below = at + steps, at - steps[::-1]  # both rise
    below = np.append(0.0, below[(below > 0.0) & (below < epsilon)])
    low = delta * (1.0 - _ROUNDED)
    with np.errstate(over="ignore"):  # of so long a way, which tells nothing
        first = (low - read(above)) / (math.exp(epsilon) * np.expm1(above - epsilon))
    last = (read(below) * (1.0 + _ROUNDED) - low) / (math.exp(epsilon) * -np.expm1(below - epsilon))
    return _Touch(epsilon, delta, float(first.max()) / _SAFE, float(last.min()) * _SAFE)


def _mu_of_tangent(touch: _Touch | None, alpha_min: float) -> float:
    """The mu that a tangent asks for; 0 if it may touch at false positives below `alpha_min`."""
    if touch is None or not alpha_min <= touch.first <= touch.last:
        return 0.0
    mu = gaussian_mu(touch.epsilon, touch.delta)
    alpha = np.array([min(max(float(ndtr(-touch.epsilon / mu - 0.5 * mu)), touch.first), touch.last)])
    return float(_mu_at(alpha, touch.delta + alpha * math.expm1(touch.epsilon))[0]) / _SAFE


def _mu_along(touches: list[_Touch], alpha: float) -> float:
    """The mu that the excess at `alpha` asks for, of tangents between which it is decided; else 0."""
    before = [touch for touch in touches if touch.first >= alpha]
    after = [touch for touch in touches if touch.last <= alpha]
    if not before or not after:
        return 0.0
    start, end = max(touch.epsilon for touch in before), min(touch.epsilon for touch in after)
    along = sorted(touch for touch in touches if start <= touch.epsilon <= end)
    if start >= end:
        return 0.0
    excess = min(_least_between(*pair, alpha) for pair in itertools.pairwise(along))
    return float(_mu_at(np.array([alpha]), np.array([excess]))[0]) / _SAFE


def _least_between(before: _Touch, after: _Touch, alpha: float) -> float:
    """What delta(e) + alpha (e^e - 1) is at least between two tangents: the larger of two lines, at its least."""
    length = math.exp(before.epsilon) * math.expm1(after.epsilon - before.epsilon)
    start = before.delta + alpha * math.expm1(before.epsilon)
    end = after.delta + alpha * math.expm1(after.epsilon)
    falls, rises = before.last - alpha, alpha - after.first

    def larger(along: float) -> float:
        return max(start - falls * along, end - rises * (length - along))

    meet = (start - end + rises * length) / max(falls + rises, 1e-300)
    return min(larger(0.0), larger(length), larger(min(max(meet, 0.0), length)))
