"""Trade-off function of a profile (a polygon), the largest power of a test, and the smallest mu.

A test with false positive rate a has a true positive rate of at most a + x, with the *excess* x(a) = min over epsilon
of delta(epsilon) + a (e^epsilon - 1), and the same with the data sets exchanged. So the trade-off function is a
symmetric and convex polygon, and every point of the profile is one of its lines (Wasserman & Zhou 2010). Two
neighboring lines meet in a corner,

    a = (delta_k - delta_{k+1}) / (e^{epsilon_{k+1}} - e^{epsilon_k}),    x = delta_k + a (e^{epsilon_k} - 1).

Points are added adaptively: another point cuts off a corner whose distance from the line between its neighbors exceeds
a small fraction of the excess and of the false negative rate.

**The smallest mu.** G_mu(a) = Phi(Phi^-1(1 - a) - mu) is the trade-off function of a Gaussian shifted by mu standard
deviations (Dong, Roth & Su 2022). It is convex, so that over a straight piece of the polygon G_mu less the polygon is
convex too, and at most 0 if it is so at both ends: mu is the largest Phi^-1(1 - a) - Phi^-1(b) of the corners with
a, b >= alpha_min and of the place where a is alpha_min. As the polygon lies below the trade-off function, this is no
smaller than the exact mu.

**Lower bound.** A test with errors of at most a and b, both at least alpha_min, requires a mu of at least that of the
curve through (a, b). The same holds for a random mixture of two tests, whose errors lie on the line between theirs. The
tests are based on the sum of labels (below). If a test has both errors below alpha_min, mu is infinite.

**Tests by the sum of labels** of a composition on a grid, whose power any attacker can achieve.

Connect-the-dots sends each loss at random to one of its two neighboring labels, under P and under Q alike: a label is a
post-processing of the output, and the sum of all labels is a statistic. Its distributions under P and under Q are both
known, each by a transform of its own. A test that rejects where the sum is large, or where a loss is above its span,
has an error of the first kind that is Q's mass there, and finds P's. The true loss at a label is not quite the label,
so that this is not quite the best test: it is a test, and no bound is needed of how far labels are off.

Q is tilted by e^{(theta + 1) l}, which is about P tilted by e^{theta l}. Mass that wraps around, and all rounding, is
taken off from what is found and added to the errors. A release whose loss is so low that its span leaves it out is
never rejected.
"""

from __future__ import annotations

import math
from dataclasses import replace as replace_fields
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skdp.accounting.pld.closed_forms import MAX_SHIFT, Simple
from skdp.accounting.pld.epsilon import curve_of, directions, known_delta
from skdp.accounting.pld.grid import Composed, compose_on_grid, release_moment, releases_on_grid
from skdp.accounting.pld.lower_bounds import bound_wrapped, own_mass, pld_bounds, sure_mass, too_high, without_selection
from skdp.accounting.pld.profiles import Profile, ProfilePair
from skdp.accounting.pld.tilting import Tilt, choose_grid, deviation, find_tilt
from skdp.accounting.releases import Releases


class ErrorsOfTests(NamedTuple):
    """Of tests, each more careful than the last: errors of the first kind from above, finds from below.

    The first one rejects always.
    """

    type_1: np.ndarray
    found: np.ndarray


def errors_near(
    found: Releases, replace_one: bool, epsilon: float, delta: float, finer: int = 1
) -> list[ErrorsOfTests]:
    """Return errors of tests that reject above a loss of about `epsilon`, for each direction of neighbors.

    Parameters
    ----------
    found : Releases
        Releases; those with upper bounds only are ignored, which is conservative.
    replace_one : bool
        Whether neighbors replace a record.
    epsilon, delta : float
        In nats, at least 0; about delta there.
    finer : int
        Cells of the grid in place of one, where there is room for so many.

    Returns
    -------
    list of ErrorsOfTests
        None without a result.
    """
    exact = replace_fields(found, others=(), sampled_pure=(), without_replacement=())
    if exact.selected:
        number = max(len(selection.runs) for selection in exact.selected)
        runs = [without_selection(exact, which) for which in range(number)]
        return [
            ErrorsOfTests(each.type_1 * sure * (1.0 + 1e-11), each.found * sure)
            for run, sure in runs
            for each in errors_near(run, replace_one, epsilon, delta, finer)
        ]
    simple = Simple.of(exact, replace_one)
    if exact.empty or simple.steep or any(1.0 / each.noise > MAX_SHIFT for each in exact.sampled):
        return []
    if simple.mu == simple.pure == 0.0:
        return [ErrorsOfTests(np.array([1.0, 0.0]), np.array([1.0, simple.revealed * (1.0 - 1e-12)]))]
    # nothing lies beyond the largest loss
    place = epsilon if simple.mu > 0.0 else min(epsilon, (1.0 - 1e-9) * simple.pure)
    left = min(delta, 0.5) - simple.revealed
    log_delta = math.log(left) if left > 1e-6 * delta and place == epsilon else None
    tilts = (find_tilt(pairs, log_delta, place) for pairs in directions(exact, replace_one))
    return [errors for tilt in tilts if (errors := _errors(tilt, finer)) is not None]


def _errors(tilt: Tilt, finer: int) -> ErrorsOfTests | None:
    """Return errors of the tests of one direction; None if no grid is fine enough."""
    least = max(tilt.epsilon - 3.0 / tilt.order, 0.0)  # tests go a little below the place
    plan = choose_grid(tilt, least, 3e-5 * max(tilt.epsilon, deviation(tilt)), work=1 << 19)
    if plan.width > 700.0:  # no double holds its exponential
        return None
    # a window so long that mass that wraps around from below shrinks by e^-30
    extent = min(max(plan.extent, 30.0 / tilt.theta), 4.0 * plan.extent)
    plan = plan._replace(width=plan.width / max(1, min(finer, int((1 << 19) * plan.width / extent))), extent=extent)
    # without what truncation moved up
    releases = tuple(each._replace(log_mass=np.log(own_mass(each)), low=0.0) for each in releases_on_grid(plan))
    there = compose_on_grid(plan, releases)
    away, outside = _away(there)
    sure, unlikely = sure_mass(tilt)
    first = max(1, int(np.searchsorted(there.loss, max(least, there.floor, away.floor) + plan.width)))
    wrapped = math.exp(min(bound_wrapped(tilt, there, float(there.loss[first - 1])), 0.0))
    # by how much, in proportion, masses and their losses may be off
    off = [pair.count * (2.0 * (it.room + it.lift) + 1e-13) for pair, it in zip(tilt.pairs, releases, strict=True)]
    rounded = math.exp(min(math.fsum(off), 50.0))
    found = _above(there, first, -1.0) / ((1.0 + there.slack) * rounded) - wrapped
    type_1 = _above(away, first, 1.0) * ((1.0 + away.slack) * rounded) + outside
    type_1, found = np.minimum(type_1 + unlikely, 1.0), np.minimum(np.maximum(found, 0.0) + sure, 1.0)
    return ErrorsOfTests(np.append(1.0, type_1), np.append(1.0, found))


def _away(there: Composed) -> tuple[Composed, float]:
    """The same window under Q, and a bound on the mass above it: by orders that are larger by 1."""
    plan, width = there.plan, there.width
    # the same labels: masses under Q follow from the true loss at a label
    losses = [each.offset + width * each.position - too_high(each, width) for each in there.releases]
    parts = zip(there.releases, losses, strict=True)
    others = tuple(each._replace(log_mass=each.log_mass - loss) for each, loss in parts)
    order, counts = plan.order + 1.0, [pair.count for pair in plan.tilt.pairs]
    base = math.fsum(count * each.offset for count, each in zip(counts, others, strict=True))
    moment = math.fsum(count * release_moment(each, order, width) for count, each in zip(counts, others, strict=True))
    top = round((float(there.loss[-1]) - base) / width)
    tilt, log_above = plan.tilt._replace(theta=plan.tilt.theta + 1.0), moment - order * width * top
    # half a cell lower, as the top is rounded up
    window = plan._replace(tilt=tilt, order=order, log_outside=log_above + 0.5 * order * width)
    return compose_on_grid(window, others), math.exp(min(log_above, 0.0))


def _above(composed: Composed, first: int, side: float) -> np.ndarray:
    """Mass at each label from number `first` on and above it; what rounding may have done is on this side of it.

    By Cauchy's inequality that is the norm of all errors of tilted masses, times that of what tilting back multiplies
    them by. Far above, where that is not known, masses count on the upper side alone.
    """
    untilt, mass = composed.untilt[first:], composed.mass[first:] - composed.doubt * composed.untilt[first:]
    if side < 0.0:
        mass[max(composed.last - first, 0) :] = 0.0
    unit = float(untilt[0]) if untilt.size else 1.0
    off = composed.norm * unit * np.sqrt(_sums((untilt / unit) ** 2))
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(_sums(mass) + side * off, 0.0)) + composed.log_scale
    return np.exp(np.minimum(logs, 0.0))


def _sums(values: np.ndarray) -> np.ndarray:
    """Return sums of each value and all later ones, followed by 0."""
    return np.cumsum(np.append(values, 0.0)[::-1])[::-1]


_FARTHEST = 60.0  # nats, beyond which corners have no false positives that a double can represent
_SAFE = 1.0 + 1e-9  # covers the rounding of corners


def _corners(profile: Profile) -> tuple[np.ndarray, np.ndarray]:
    """Return false positive rate and excess of the corners, with decreasing false positive rates."""
    near = max(1, int(np.searchsorted(profile.loss, _FARTHEST, side="right")))
    loss, delta = profile.loss[: near + 1], profile.delta[: near + 1]
    with np.errstate(over="ignore"):
        alpha = np.exp(-loss[:-1]) * -np.diff(delta) / np.expm1(np.minimum(np.diff(loss), 700.0))
    return alpha, delta[:-1] + alpha * np.expm1(loss[:-1])


def _bent(profile: Profile) -> NDArray[np.intp]:
    """Return the cells whose corner is far from the line between the adjacent corners."""
    alpha, excess = _corners(profile)
    if alpha.size == 0:
        return np.zeros(0, dtype=np.intp)
    beta = np.maximum(1.0 - alpha - excess, 0.0)
    before = np.append(max(beta[0], alpha[0]), alpha[:-1]), np.append(excess[0], excess[:-1])
    after = np.append(alpha[1:], 0.0), np.append(excess[1:], profile.delta[alpha.size])
    width = np.maximum(before[0] - after[0], 1e-300)
    straight = after[1] + (before[1] - after[1]) * np.clip((alpha - after[0]) / width, 0.0, 1.0)
    # by this part of the excess, and of the false negatives, as 4 times the error; down to these false positives
    found = (excess - straight > 4e-4 * np.minimum(excess, beta)) & (alpha >= 1e-13)
    return np.flatnonzero(found & (np.diff(profile.loss)[: alpha.size] > 1e-12))


@lru_cache(maxsize=64)
def fine_profile(found: Releases, replace_one: bool, log_floor: float) -> ProfilePair:
    """Return the profile of a composition with as many points as its trade-off function requires.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbors replace a record.
    log_floor : float
        Log of the smallest delta of the profile.

    Returns
    -------
    ProfilePair
    """
    top, read = curve_of(found, replace_one, log_floor, 1e-5, 12 << 20)
    if not Simple.of(found, replace_one).closed and known_delta(found, 0.0, replace_one) is not None:
        # there is a formula for delta
        read = np.vectorize(lambda epsilon: known_delta(found, float(epsilon), replace_one), otypes=[np.float64])
    loss = np.linspace(0.0, max(1e-9, top), 400 + 1)
    pair = ProfilePair.of(Profile(loss, read(loss)), 1)
    for _ in range(9):
        cells = _bent(pair.profile)
        if cells.size == 0 or pair.profile.loss.size > 6000:
            break
        more = 0.5 * (pair.profile.loss[cells] + pair.profile.loss[cells + 1])
        loss, first = np.unique(np.append(pair.profile.loss, more), return_index=True)
        pair = ProfilePair.of(Profile(loss, np.append(pair.profile.delta, read(more))[first]), 1)
    return pair


def largest_excess(profile: Profile, alpha: float) -> float:
    """Return the largest true positive rate at the false positive rate `alpha`, minus `alpha`.

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
    """Return mu of the Gaussian trade-off curve through these errors."""
    with np.errstate(invalid="ignore"):
        result: np.ndarray = ndtri(np.minimum(alpha + excess, 1.0)) - ndtri(alpha)
    return np.maximum(result, 0.0)


def least_mu(profile: Profile, alpha_min: float) -> float:
    """Return the smallest mu whose curve lies below the polygon if both errors are at least `alpha_min`.

    Parameters
    ----------
    profile : Profile
        Convex.
    alpha_min : float
        In (0, 0.5).

    Returns
    -------
    float
        Mu, rounded up; inf if a test can have both errors below `alpha_min`.
    """
    at_end = largest_excess(profile, alpha_min)
    if 1.0 - alpha_min - at_end < alpha_min:
        return math.inf
    alpha, excess = _corners(profile)
    kept = alpha >= alpha_min
    errors = np.append(alpha[kept], alpha_min), np.append(excess[kept], at_end)
    return float(_mu_at(*errors).max()) * _SAFE


def lower_mu(found: Releases, replace_one: bool, log_floor: float, alpha_min: float) -> float:
    """Return a lower bound of mu.

    Parameters
    ----------
    found : Releases
    replace_one : bool
        Whether neighbors replace a record.
    log_floor : float
        As for `fine_profile`.
    alpha_min : float
        In (0, 0.5).

    Returns
    -------
    float
        Lower bound; 0 if there is none.
    """
    profile = fine_profile(found, replace_one, log_floor).profile
    best, upper = 0.0, least_mu(profile, alpha_min)
    # If delta(e) > 1 - 2 alpha_min at an e of at least 0, the errors of some test sum to less than 2 alpha_min. So do
    # those of the mirrored test, and half of each lies above the trade-off function, which is convex: a test surely
    # has both errors below alpha_min.
    if upper == math.inf and pld_bounds(found, 1.0 - 2.0 * alpha_min / _SAFE, replace_one)[0] > 0.0:
        return math.inf
    places = _places(profile, alpha_min) if upper < math.inf else [0]
    for finer in (1, 8, 64):
        for k in places:
            errors = errors_near(found, replace_one, float(profile.loss[k]), float(profile.delta[k]), finer)
            best = max([best, *(_mu_of_tests(each, alpha_min) for each in errors)])
            if best * 1.0001 >= upper:
                return best
    return best


def _places(profile: Profile, alpha_min: float) -> list[int]:
    """Points of the profile at its worst corners, first the steepest, and where false positives are about `alpha_min`.

    Grids are finest in proportion far from an epsilon of 0.
    """
    alpha, excess = _corners(profile)
    mu = np.where(alpha >= alpha_min, _mu_at(alpha, excess), 0.0)
    near = np.flatnonzero(mu * 1.0004 >= mu.max())
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
    return float(mu.max(initial=0.0)) / _SAFE - 2e-14 if kept.any() else 0.0
