"""Tests by the sum of labels: what an attacker surely finds, of a composition on a grid.

Connect-the-dots sends each loss at random to one of its two neighbouring labels, under P and under Q alike: a label is
a post-processing of the output, and the sum of all labels is a statistic. Its laws under P and under Q are both known,
each by a transform of its own. A test that rejects where the sum is large, or where a loss is above its span, has an
error of the first kind that is Q's mass there, and finds P's. The true loss at a label is not quite the label, so that
this is not quite the best test: it is a test, and no bound is needed of how far labels are off.

Q is tilted by e^{(theta + 1) l}, which is about P tilted by e^{theta l}. Mass that wraps around, and all rounding, is
taken off from what is found and added to the errors. A release whose loss is so low that its span leaves it out is
never rejected.
"""

from __future__ import annotations

import math
from dataclasses import replace as replace_fields
from typing import NamedTuple

import numpy as np

from ..releases import Releases
from .closed_forms import MAX_SHIFT, Simple
from .directions import directions
from .grid import Composed, GridRelease, compose_on_grid, release_moment, releases_on_grid
from .lower_bounds import bound_wrapped, own_mass, sure_mass, too_high, without_selection
from .tilting import Tilt, choose_grid, deviation, find_tilt

_ACCURACY = 3e-5  # relative error of epsilon aimed at
_BELOW = 3.0  # how far below a place its tests go, in units of 1 / order
_WORK = 1 << 19  # in the first grid, as in `choose_grid`
_FINEST = 1 << 19  # cells of a finer grid, at most
_UNWRAPPED = 30.0  # least length of the window, in units of 1 / theta: what wraps around from below shrinks by e^-30
_WIDEST = 700.0  # width of a grid from which on no double holds its exponential
_MOST = 1.0 - 1e-9  # of the largest loss of all, beyond which there is nothing to look at


class ErrorsOfTests(NamedTuple):
    """Of tests, each more careful than the last: errors of the first kind from above, finds from below.

    The first one rejects always.
    """

    type_1: np.ndarray
    found: np.ndarray


def errors_near(
    found: Releases, replace_one: bool, epsilon: float, delta: float, finer: int = 1
) -> list[ErrorsOfTests]:
    """Errors of tests that reject from about a loss of `epsilon` on, for each direction of neighbours.

    Parameters
    ----------
    found : Releases
        Of what is known by bounds from above alone, nothing is used: less is found than might be.
    replace_one : bool
        Whether neighbours replace a record.
    epsilon, delta : float
        In nats, at least 0; about delta there.
    finer : int
        Cells of the grid in place of one, where there is room for so many.

    Returns
    -------
    list of ErrorsOfTests
        None where nothing can be said.
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
    place = epsilon if simple.mu > 0.0 else min(epsilon, _MOST * simple.pure)
    left = min(delta, 0.5) - simple.revealed
    log_delta = math.log(left) if left > 1e-6 * delta and place == epsilon else None
    tilts = (find_tilt(pairs, log_delta, place) for pairs in directions(exact, replace_one))
    return [errors for tilt in tilts if (errors := _errors(tilt, finer)) is not None]


def _errors(tilt: Tilt, finer: int) -> ErrorsOfTests | None:
    """Errors of the tests of one direction; None where no grid is fine enough."""
    least = max(tilt.epsilon - _BELOW / tilt.order, 0.0)
    plan = choose_grid(tilt, least, _ACCURACY * max(tilt.epsilon, deviation(tilt)), work=_WORK)
    if plan.width > _WIDEST:
        return None
    extent = min(max(plan.extent, _UNWRAPPED / tilt.theta), 4.0 * plan.extent)
    plan = plan._replace(width=plan.width / max(1, min(finer, int(_FINEST * plan.width / extent))), extent=extent)
    releases = tuple(_of_own(each) for each in releases_on_grid(plan))
    there = compose_on_grid(plan, releases)
    away, outside = _away(there)
    sure, unlikely = sure_mass(tilt)
    first = max(1, int(np.searchsorted(there.loss, max(least, there.floor, away.floor) + plan.width)))
    wrapped = math.exp(min(bound_wrapped(tilt, there, float(there.loss[first - 1])), 0.0))
    rounded = _rounded(tilt, releases)
    found = _above(there, first, -1.0) / ((1.0 + there.slack) * rounded) - wrapped
    type_1 = _above(away, first, 1.0) * ((1.0 + away.slack) * rounded) + outside
    type_1, found = np.minimum(type_1 + unlikely, 1.0), np.minimum(np.maximum(found, 0.0) + sure, 1.0)
    return ErrorsOfTests(np.append(1.0, type_1), np.append(1.0, found))


def _of_own(release: GridRelease) -> GridRelease:
    """A release without what truncation moved up."""
    return release._replace(log_mass=np.log(own_mass(release)), low=0.0)


def _of_other(release: GridRelease, width: float) -> GridRelease:
    """The same labels under Q, whose masses tell the true loss at a label."""
    loss = release.offset + width * release.position - too_high(release, width)
    return release._replace(log_mass=release.log_mass - loss)


def _away(there: Composed) -> tuple[Composed, float]:
    """The same window under Q, and a bound on the mass above it: by orders that are larger by 1."""
    plan, width = there.plan, there.width
    others = tuple(_of_other(each, width) for each in there.releases)
    order, counts = plan.order + 1.0, [pair.count for pair in plan.tilt.pairs]
    base = math.fsum(count * each.offset for count, each in zip(counts, others, strict=True))
    moment = math.fsum(count * release_moment(each, order, width) for count, each in zip(counts, others, strict=True))
    top = round((float(there.loss[-1]) - base) / width)
    tilt, log_above = plan.tilt._replace(theta=plan.tilt.theta + 1.0), moment - order * width * top
    # half a cell lower, as the top is rounded up
    window = plan._replace(tilt=tilt, order=order, log_outside=log_above + 0.5 * order * width)
    return compose_on_grid(window, others), math.exp(min(log_above, 0.0))


def _rounded(tilt: Tilt, releases: tuple[GridRelease, ...]) -> float:
    """By how much, in proportion, masses and their losses may be off."""
    each = (pair.count * (2.0 * (it.room + it.lift) + 1e-13) for pair, it in zip(tilt.pairs, releases, strict=True))
    return math.exp(min(math.fsum(each), 50.0))


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
    """Sums of each value and all after it; 0 behind the last."""
    return np.cumsum(np.append(values, 0.0)[::-1])[::-1]
