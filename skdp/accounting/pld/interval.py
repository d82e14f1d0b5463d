"""Epsilon of a composition from both sides: the upper bound that is charged, and a certified lower one."""

from __future__ import annotations

import math
from dataclasses import replace as replace_fields
from functools import lru_cache

from ..events.composition import MOST_RELEASES
from ..releases import Releases, join, repeat
from .bounded import AnyPair, LaplacePair, ResponsePair
from .closed_forms import MAX_SHIFT, Simple
from .directions import directions
from .epsilon import FINE, check_kinds, closed_epsilon, least_with_renyi, pld_epsilon
from .grid import WORK, compose_on_grid, finest
from .lower_bounds import lower_epsilon, single_epsilon
from .pairs import Pair
from .reading import Solved, is_negligible, solve_directions

__all__ = ["pld_bounds"]

_LEAST_WORK = 1 << 17  # in one grid of a lower bound
_NOTHING = 1e-60  # an epsilon below which no grid is laid for a lower end
_GAP, _FINEST = 8e-4, 1 << 20  # relative gap from which on a lower bound is worth a finer grid, and how fine


def _single(found: Releases, delta: float, replace_one: bool) -> float:
    """What the costliest release alone costs at least; under replacement a record may give way to an empty one."""
    twice = 2.0 if replace_one else 1.0
    pairs: list[AnyPair] = [Pair("remove", each.rate, 1.0 / each.noise, 1) for each in found.sampled]
    if found.mu_squared > 0.0:
        pairs.append(Pair("remove", 1.0, math.sqrt(found.mu_squared) * twice, 1))
    pairs += [LaplacePair(twice / each.noise, 1) for each in found.laplace]
    pairs += [ResponsePair(each.epsilon, each.delta, 1) for each in found.epsilon_delta if each.delta < 1.0]
    return max((single_epsilon(pair, delta) for pair in pairs), default=0.0)


def _lower(solved: Solved, delta: float, upper: float, work: int) -> float:
    """Lower bound of one direction, on a finer grid where the first is too coarse for it."""
    tilt, composed, _ = solved
    lower = lower_epsilon(tilt, composed, delta)
    gap = upper - lower
    extent = composed.width * composed.loss.size
    least = max(extent / (_FINEST - 64), finest(tilt, extent, work))
    if gap <= _GAP * upper or (lower == 0.0 and upper < 1e-6) or composed.width <= 1.5 * least:
        return lower
    width = max(composed.width * max((0.6 * _GAP * upper / gap) ** 0.7, 1.0 / 16.0), least)
    finer = compose_on_grid(tilt, width, extent, composed.order)
    return max(lower, lower_epsilon(tilt, finer, delta))


def _without_selection(found: Releases, which: int) -> tuple[Releases, float]:
    """A composition that costs no more, with one run in place of each selection, and the chance that there was one.

    Scores may all be equal: the best is then any one of the tries.
    """
    sure, parts = 1.0, [replace_fields(found, selected=())]
    for runs, tries, count in found.selected:
        sure *= 1.0 if tries is None else math.exp(count * math.log1p(-tries.none))
        run, inner = _without_selection(runs[which % len(runs)], which)
        sure *= inner**count
        # fewer cost less
        parts.append(repeat(run, min(count, MOST_RELEASES // max(run.most, 1))))
    return join(parts), sure * (1.0 - 1e-12)


def _selected_bounds(found: Releases, delta: float, replace_one: bool) -> tuple[float, float]:
    """Bounds of a composition in which something was selected; the lower one is that of single runs."""
    upper = pld_epsilon(found, delta, replace_one=replace_one)
    lower, number = 0.0, max(len(selection.runs) for selection in found.selected)
    work = max(WORK // number, _LEAST_WORK)
    for which in range(number):
        once, sure = _without_selection(found, which)
        if delta < sure and not once.empty:
            lower = max(lower, pld_bounds(once, delta / sure, replace_one, work)[0])
    return min(lower, upper), upper


def _paired_bounds(found: Releases, delta: float, replace_one: bool, work: int) -> tuple[float, float]:
    """Bounds of a composition with pairs of weighted losses, which bound from above: below it is that of the rest."""
    upper = pld_epsilon(found, delta, replace_one=replace_one)
    rest = replace_fields(found, others=(), sampled_pure=(), without_replacement=())
    return min(0.0 if rest.empty else pld_bounds(rest, delta, replace_one, work)[0], upper), upper


@lru_cache(maxsize=1024)
def pld_bounds(found: Releases, delta: float, replace_one: bool, work: int = WORK) -> tuple[float, float]:
    """Epsilon at `delta` from below and from above.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.
    work : int
        Bound on one grid, as in `solve`.

    Returns
    -------
    tuple of float
        Lower and upper bound in nats; the upper one is `pld_epsilon`.
    """
    check_kinds(found)
    if found.paired or found.without_replacement:
        return _paired_bounds(found, delta, replace_one, work)
    if found.selected:
        return _selected_bounds(found, delta, replace_one)
    simple = Simple.of(found, replace_one)
    known = simple.known_epsilon(delta)
    if known is not None and (known == math.inf or (simple.closed and all(each.rate == 1.0 for each in found.sampled))):
        # the closed form is rounded up by 1e-11 relative and as much of delta
        return max(0.0, known * (1.0 - 1e-9) - 1e-9), known
    lower, directed = _single(found, delta, replace_one), directions(found, replace_one)
    if known is None and is_negligible(directed, delta):
        known = 0.0
    if known is None and simple.steep:
        known = simple.epsilon_at(delta)
    if known is not None:
        return min(lower, known), known
    closed = closed_epsilon(found, simple, delta, replace_one)
    if closed is not None and closed < _NOTHING:
        return 0.0, closed
    solved = solve_directions(directed, simple.revealed, delta, FINE, work)
    upper = min(simple.epsilon_at(delta), max(0.0, *(each.epsilon for each in solved)))
    upper = least_with_renyi(upper, found, delta, replace_one)
    upper = upper if closed is None else closed
    if all(1.0 / each.noise <= MAX_SHIFT for each in found.sampled):  # else what was composed is not the exact pair
        lower = max(lower, *(_lower(each, delta, upper, work) for each in solved))
    return min(lower, upper), upper
