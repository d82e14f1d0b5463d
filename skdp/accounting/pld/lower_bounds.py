"""Certified lower and upper bounds of the epsilon of a composition.

The lower bound uses the grid of the upper bound. Connect-the-dots sends each loss l at random to one of its two
neighboring labels, in the same way under P and Q, so the label J is a post-processing of the output. Therefore the
exact pair dominates the pair (P', Q') of the distributions of J, also under composition. The true loss at label j is
not h j but

    log P'(j) / Q'(j) = h j + d_j,    d_j = -log1p(((e^h - 1) B_{j-1} - (1 - e^{-h}) B_j) / P'(j)),

where B_j is the sum of w s (1 - s) over the losses between j and j + 1, with mass w and fraction s of the upper label,
because Q' adds w e^{-l} where P' adds w. With S = h sum J, which the grid contains, and D = sum d_J,

    delta(e) >= E[(1 - e^{e - S - D})_+] >= E[(1 - e^{e + g - S})_+] - E[(1 - e^{e + g - S})_+; D < -g]

for every g, and by Chernoff, for every theta, lambda > 0, with c = theta^theta / (1 + theta)^{1 + theta},
the maximum of (1 - e^{-x}) e^{-theta x},

    E[(1 - e^{x0 - S})_+; D < -g] <= c exp(sum log E[e^{theta h J - lambda d_J}] - theta x0 - lambda g).

d_j is of second order in h and its mean nearly cancels, so g is small. Chernoff bounds of the following masses are
subtracted: the mass that wrapped around the window, from above and from below, and the mass that the truncation moved
up. Mass above the window is omitted. If A is the event that one of the losses is above its truncation, delta also
contains P(A) - e^epsilon Q(A), because A and the labels are a post-processing, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace as replace_fields
from functools import lru_cache

import numpy as np

from skdp.accounting.events.composition import MOST_RELEASES
from skdp.accounting.formulas.gaussian import gaussian_epsilon
from skdp.accounting.pld.closed_forms import MAX_SHIFT, Simple, closed_epsilon
from skdp.accounting.pld.epsilon import FINE, check_kinds, directions, least_with_renyi, pld_epsilon
from skdp.accounting.pld.grid import Composed, GridRelease, compose_on_grid, release_moment
from skdp.accounting.pld.pairs import LaplacePair, Pair, ResponsePair
from skdp.accounting.pld.reading import Solved, epsilon_of, hockey_stick, is_negligible, solve_directions
from skdp.accounting.pld.tilting import WORK, Tilt, deviation, finest, log_peak, total
from skdp.accounting.releases import Releases, join, repeat

_TINY = 1e-9  # covers rounding and the quadrature of one release
_WIDEST = 700.0  # width of a grid from which on no double holds its exponential, and nothing can be said

_Exact = Pair | LaplacePair | ResponsePair  # no bound from above, as profiles and weighted losses are


def own_mass(release: GridRelease) -> np.ndarray:
    """Return the mass at each label without the mass that the truncation moved to the second label."""
    mass = np.exp(release.log_mass)
    if release.low > 0.0 and mass.size > 1:
        mass[1] = max(mass[1] - release.low, 0.0) + 1e-15 * release.low
    return mass


def too_high(release: GridRelease, h: float) -> np.ndarray:
    """Return -d_j, the difference of each label and the true loss."""
    below, above = release.spread
    ratio = (math.expm1(h) * below + math.expm1(-h) * above) / own_mass(release)
    return np.log1p(np.clip(ratio, math.expm1(-h), math.expm1(h)))


def _bound_shift(tilt: Tilt, found: Composed, at: float, log_share: float) -> float:
    """Least g by some orders; where losses are rare and large those below the one that suits delta are better."""
    best = math.inf
    for part in (1.0, 0.65, 0.4):
        best = min(best, _bound_shift_by(tilt, found, at, log_share, part * tilt.order))
        if best <= 1e-4 * at:
            break
    return best


def _bound_shift_by(tilt: Tilt, found: Composed, at: float, log_share: float, theta: float) -> float:
    """The g for which labels that are too high in sum by more than g cost at most e^{log_share}.

    Half of that goes to releases that meet one of the labels that are most too high, at the ends of the
    grid; half to the sum over all others.
    """
    h = found.width
    moments = [release_moment(release, theta, h) for release in found.releases]
    plain = math.fsum(
        p.count * (k + theta * s.offset) for p, s, k in zip(tilt.pairs, found.releases, moments, strict=True)
    )
    excess = max(plain - theta * at + log_peak(theta) - log_share + math.log(2.0), 1.0)
    each = math.exp(-min(excess, 700.0)) / len(found.releases)
    parts = []  # how often, tilted mass and by how much too high, without the labels that are most too high
    mean = variance = 0.0
    for p, s, k in zip(tilt.pairs, found.releases, moments, strict=True):
        weight, shift = np.exp(np.log(own_mass(s)) + theta * h * s.position - k), too_high(s, h)
        highest = np.argsort(-shift)
        met = p.count * np.cumsum(weight[highest])  # at most `each` for those that are omitted
        kept = highest[int(np.searchsorted(met, each)) :]
        weight, shift = weight[kept], shift[kept]
        mean += p.count * float(weight @ shift)
        variance += p.count * float(weight @ shift**2)
        parts.append((p.count, weight, shift))
    if variance == 0.0:
        return mean
    best = math.inf
    for factor in (1.0, 0.6, 0.35, 0.1):
        slope = factor * math.sqrt(2.0 * excess / variance)
        if slope == math.inf or max(slope * float(shift.max(initial=0.0)) for _, _, shift in parts) > 600.0:
            continue
        # log E e^{slope d} <= E[e^{slope d} - 1], also where some labels were dropped
        grown = math.fsum(count * float(weight @ np.expm1(slope * shift)) for count, weight, shift in parts)
        value = (grown + excess) / slope
        if value > best:
            break
        best = value
    return best


def _moment_at(tilt: Tilt, found: Composed, order: float) -> float:
    """Return log E_P[e^{order S}] of the composed labels."""
    return math.fsum(
        pair.count * (release_moment(release, order, found.width) + order * release.offset)
        for pair, release in zip(tilt.pairs, found.releases, strict=True)
    )


def _orders(tilt: Tilt, found: Composed) -> list[float]:
    extent = found.width * found.loss.size
    return [float(t) for t in np.geomspace(1.0 / extent, 300.0 / deviation(tilt), 21)]


def _bound_wrapped_down(tilt: Tilt, found: Composed, at: float, peak: Callable[[float], float]) -> float:
    """Log of a bound on what lies above the window, and wrapped around, adds to delta at `at`; see `bound_wrapped`."""
    extent = found.width * found.loss.size
    t = min(_orders(tilt, found), key=lambda t: total(tilt, tilt.theta + t)[0] - t * at - t * extent)
    order, once = tilt.theta + t, math.exp(-min(t * extent, 700.0))
    moment = _moment_at(tilt, found, order)
    return moment - order * at + peak(order) - t * extent - math.log1p(-min(once, 0.5))


def _bound_wrapped_up(tilt: Tilt, found: Composed, at: float, peak: Callable[[float], float]) -> float:
    """Log of a bound on what lies below the window, and wrapped around, adds to delta at `at`.

    Either by an order of at least 0 where it lands, or as the mass below the window, tilted back.
    """
    extent, bottom = found.width * found.loss.size, float(found.loss[0])
    shrink = -tilt.theta * extent
    low = min(_orders(tilt, found), key=lambda order: total(tilt, -order)[0] + order * bottom)
    below = _moment_at(tilt, found, -low) + low * bottom + shrink
    high = min(
        (tilt.theta * part for part in (0.0, 0.2, 0.4, 0.6, 0.8)),
        key=lambda order: total(tilt, order)[0] - order * (at - extent),
    )
    landed = _moment_at(tilt, found, high) - high * (at - extent) + peak(high) + shrink
    once = math.exp(-min((tilt.theta - high) * extent, 700.0))
    return min(below, landed) - math.log1p(-min(once, 0.5))


def bound_wrapped(tilt: Tilt, found: Composed, at: float) -> float:
    """Log of a bound on the mass that is read above `at` and is there by wrapping around the window alone.

    That is what it adds to delta at `at`, without the factor 1 - e^{at - loss} and so without its largest (1 - e^{-x})
    e^{-order x}.
    """
    down, up = (bound(tilt, found, at, lambda order: 0.0) for bound in (_bound_wrapped_down, _bound_wrapped_up))
    return float(np.logaddexp(down, up))


def _bound_lifted(tilt: Tilt, found: Composed, at: float) -> float:
    """Log of a bound on what the mass moved up by the truncation adds to delta at `at`."""
    theta, h, share, plain = tilt.order, found.width, 0.0, 0.0
    for pair, release in zip(tilt.pairs, found.releases, strict=True):
        k = release_moment(release, theta, h)
        plain += pair.count * (k + theta * release.offset)
        if release.low > 0.0:
            second = float(release.position[min(1, release.position.size - 1)])
            share += pair.count * math.exp(min(math.log(release.low) + theta * h * second - k, 0.0))
    return plain - theta * at + log_peak(theta) + math.log(share) if share > 0.0 else -math.inf


def sure_mass(tilt: Tilt) -> tuple[float, float]:
    """P(A) from below and Q(A) from above, A the event that one of the losses is infinite or far above epsilon."""
    log_none = unlikely = 0.0
    for pair, span in zip(tilt.pairs, tilt.spans, strict=True):
        log_none += pair.count * math.log1p(-pair.infinite)
        mass, other = pair.above(span)
        if mass > math.exp(min(tilt.epsilon, 700.0)) * other:  # else it does not raise delta
            log_none += pair.count * math.log1p(-min(mass, 1.0 - 1e-16))
            unlikely += pair.count * other
    return -math.expm1(log_none) * (1.0 - 1e-12), unlikely * (1.0 + 1e-12)


def lower_epsilon(tilt: Tilt, found: Composed, delta: float) -> float:
    """Return a lower bound of epsilon in one direction.

    Parameters
    ----------
    tilt : Tilt
    found : Composed
        `tilt` on a grid.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Lower bound in nats; 0 if there is none.
    """
    if found.width > _WIDEST:
        return 0.0
    sure, unlikely = sure_mass(tilt)
    needed = delta - sure
    if needed <= 0.0:
        return math.inf
    # labels were moved up by the rounding of their sum: twice that, to be below
    count = sum(pair.count for pair in tilt.pairs)
    exact = found.loss - 1e-15 * sum(p.count * abs(s.offset) for p, s in zip(tilt.pairs, found.releases, strict=True))
    share = min(3e-5, 1e-3 * (1.0 - delta))  # part of delta given to labels that are too high; no mass is beyond 1
    room = sum(p.count * s.room for p, s in zip(tilt.pairs, found.releases, strict=True)) + 1e-13 * count
    lift = sum(p.count * s.lift for p, s in zip(tilt.pairs, found.releases, strict=True))
    mass = np.maximum(found.mass - 2.0 * found.doubt * found.untilt, 0.0)
    mass[found.last :] = 0.0
    shrunk = (1.0 + found.slack) * math.exp(min(2.0 * room, 50.0))

    def read(goal: float) -> float:
        scaled = math.exp(min(math.log(goal) - found.log_scale, 700.0)) * shrunk
        epsilon = epsilon_of(exact, mass, scaled)
        for back in (1e-12, 0.0, 1.0, 8.0, 64.0, 512.0):
            at = epsilon * (1.0 - 1e-12) - back * found.width
            if exact[0] < at and hockey_stick(exact, mass, at) >= scaled:
                return at
        return -math.inf

    rough = read(needed * (1.0 + 2.0 * share))
    if rough <= -math.inf:
        return 0.0
    needed += math.exp(min(rough, 700.0)) * unlikely  # epsilon is below `rough`
    # every correction falls as the place it is read at increases: it is taken a little below the final one
    place = rough - min(1.0 / tilt.order, 1e-3 * abs(rough))
    parts = (
        _bound_wrapped_down(tilt, found, place, log_peak),
        _bound_wrapped_up(tilt, found, place, log_peak),
        _bound_lifted(tilt, found, place),
    )
    if max(parts) >= 0.0:  # mass that wrapped around is no probability once tilted back: it may be all that was read
        return 0.0
    at = read(needed * (1.0 + share) + sum(map(math.exp, parts)))
    if at < place:
        return 0.0
    return max(0.0, at - _bound_shift(tilt, found, place, math.log(share * needed)) - 2.0 * lift - _TINY * abs(at))


def _epsilon_of_one(pair: _Exact, delta: float) -> float:
    """Return a lower bound of epsilon of one release, which holds for any composition with it."""
    if isinstance(pair, ResponsePair):
        # delta = infinite + (1 - infinite) (e^size - e^eps) / (1 + e^size)
        rest = (delta - pair.infinite) / (1.0 - pair.infinite)
        inside = 1.0 - rest * (1.0 + math.exp(-pair.size)) if rest >= 0.0 else 1.0
        return max(0.0, pair.size + math.log(inside) - _TINY) if inside > 0.0 else 0.0
    if isinstance(pair, LaplacePair):
        return max(0.0, pair.size + 2.0 * math.log1p(-delta) - _TINY)
    shift = pair.m
    if pair.q < 1.0:
        # delta(eps) = q delta_Gauss(eps') with e^eps = 1 - q + q e^eps' (Balle, Barthe & Gaboardi 2018)
        if delta >= pair.q:
            return 0.0
        inner = gaussian_epsilon(delta / pair.q, shift) * (1.0 - _TINY) - _TINY
        if inner <= 0.0:
            return 0.0
        return inner + math.log(pair.q + (1.0 - pair.q) * math.exp(-inner)) - _TINY
    return max(0.0, gaussian_epsilon(delta, shift) * (1.0 - _TINY) - _TINY)


def _single(found: Releases, delta: float, replace_one: bool) -> float:
    """Return the largest lower bound of a single release; a replacement can be an empty record."""
    twice = 2.0 if replace_one else 1.0
    pairs: list[_Exact] = [Pair("remove", each.rate, 1.0 / each.noise, 1) for each in found.sampled]
    if found.mu_squared > 0.0:
        pairs.append(Pair("remove", 1.0, math.sqrt(found.mu_squared) * twice, 1))
    pairs += [LaplacePair(twice / each.noise, 1) for each in found.laplace]
    pairs += [ResponsePair(each.epsilon, each.delta, 1) for each in found.epsilon_delta]
    return max((_epsilon_of_one(pair, delta) for pair in pairs), default=0.0)


def _lower(solved: Solved, delta: float, upper: float, work: int, close: float) -> float:
    """Return the lower bound of one direction, on a finer grid if the first is too coarse."""
    tilt, composed, _ = solved
    lower = lower_epsilon(tilt, composed, delta)
    gap = upper - lower
    extent = composed.width * composed.loss.size
    least = max(extent / ((1 << 20) - 64), finest(tilt, extent, work))
    if gap <= close * upper or (lower == 0.0 and upper < 1e-6) or composed.width <= 1.5 * least:
        return lower
    width = max(composed.width * max((0.6 * close * upper / gap) ** 0.7, 1.0 / 16.0), least)
    finer = compose_on_grid(composed.plan._replace(width=width, extent=extent))
    return max(lower, lower_epsilon(tilt, finer, delta))


def without_selection(found: Releases, which: int) -> tuple[Releases, float]:
    """Return a composition with at most the cost, with one run for each selection, and the probability of a run.

    If all scores are equal, the best trial is any of the trials.
    """
    sure, parts = 1.0, [replace_fields(found, selected=())]
    for runs, trials, count in found.selected:
        sure *= 1.0 if trials is None else math.exp(count * math.log1p(-trials.none))
        run, inner = without_selection(runs[which % len(runs)], which)
        sure *= inner**count
        # fewer cost less
        parts.append(repeat(run, min(count, MOST_RELEASES // max(run.most, 1))))
    return join(parts), sure * (1.0 - 1e-12)


def _selected_bounds(found: Releases, delta: float, replace_one: bool, close: float) -> tuple[float, float]:
    """Return bounds of a composition with a selection; the lower bound is that of single runs."""
    upper = pld_epsilon(found, delta, replace_one=replace_one)
    lower, number = 0.0, max(len(selection.runs) for selection in found.selected)
    work = max(WORK // number, 1 << 17)
    for which in range(number):
        once, sure = without_selection(found, which)
        if delta < sure and not once.empty:
            lower = max(lower, pld_bounds(once, delta / sure, replace_one, work, close)[0])
    return min(lower, upper), upper


@lru_cache(maxsize=1024)
def pld_bounds(
    found: Releases, delta: float, replace_one: bool, work: int = WORK, close: float = 8e-4
) -> tuple[float, float]:
    """Return lower and upper bounds of epsilon at `delta`.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record.
    work : int
        Bound on one grid, as in `choose_grid`.
    close : float
        Relative gap above which a finer grid is used for the lower bound.

    Returns
    -------
    tuple of float
        Lower and upper bound in nats; the upper one is `pld_epsilon`.
    """
    check_kinds(found)
    if found.paired or found.without_replacement:
        # pairs of weighted losses bound from above: below it is that of the rest
        upper = pld_epsilon(found, delta, replace_one=replace_one)
        rest = replace_fields(found, others=(), sampled_pure=(), without_replacement=())
        return min(0.0 if rest.empty else pld_bounds(rest, delta, replace_one, work, close)[0], upper), upper
    if found.selected:
        return _selected_bounds(found, delta, replace_one, close)
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
    if closed is not None and closed < 1e-60:
        return 0.0, closed
    solved = solve_directions(directed, simple.revealed, delta, FINE, work)
    upper = min(simple.epsilon_at(delta), max(0.0, *(each.epsilon for each in solved)))
    upper = least_with_renyi(upper, found, delta, replace_one)
    upper = upper if closed is None else closed
    if all(1.0 / each.noise <= MAX_SHIFT for each in found.sampled):  # else what was composed is not the exact pair
        lower = max(lower, *(_lower(each, delta, upper, work, close) for each in solved))
    return min(lower, upper), upper
