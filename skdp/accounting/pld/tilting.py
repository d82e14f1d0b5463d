"""Exponential tilting of a composition, which centers the sum of privacy losses on the losses that decide delta.

K(theta) = log E_P[e^{theta L}] is summed over all releases. Tilted by theta, the sum is centered on K'(theta). K
determines the window outside which almost no mass lies, and the grid width at which connect-the-dots has the requested
accuracy. `find_tilt` finds the tilt.

**Choice of the tilt** for epsilon at a given delta, or for delta at a given epsilon. On every line Re z = theta > 0

    delta(epsilon) = 1 / (2 pi i) int e^{K(z) - z epsilon} / (z (z + 1)) dz,

as 1 / (z (z + 1)) is the transform of (1 - e^{-x})_+. The saddle point

    K'(theta) = epsilon + 1 / theta + 1 / (1 + theta)

centers the sum on the losses that decide delta at epsilon, and the curvature of the integrand there estimates delta.
Both are only guesses of the relevant range; the result is a valid bound for any tilt.

Losses far above epsilon are treated as infinite. If A is the event that one of the losses is above its limit, this
increases delta by at most e^epsilon Q(A): with f = (1 - e^{epsilon - S})_+, it adds E_P[1 - f; A], which is at most
E_P[e^{epsilon - S}; A]. Otherwise such losses would require most of the grid and, if rare, shift the tilt away from
epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skdp.accounting.pld.pairs import Atoms
from skdp.accounting.pld.profiles import AnyPair

LEAST_LOG_DELTA = -700.0  # smallest log delta for which a grid is computed
_OUTSIDE = -18.5  # log of the fraction of delta that may lie above the window


class Tilt(NamedTuple):
    """A composition under the tilt `theta` (per nat), which centers it on the losses that decide delta at epsilon.

    Either `log_delta` or `epsilon` is given, and the other one is a guess. `order` is theta at the saddle point, for
    Chernoff bounds; theta itself can be smaller.
    """

    pairs: tuple[AnyPair, ...]
    spans: tuple[tuple[float, float], ...]
    atoms: tuple[Atoms, ...]
    theta: float
    log_delta: float
    epsilon: float
    order: float


def _tilt(atoms: Atoms, theta: float) -> tuple[float, float, np.ndarray]:
    """Return K(theta) = log E_P[e^{theta L}] over the atoms, its derivative, and the tilted probabilities."""
    logs = atoms.log_weight + theta * atoms.loss
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, -600.0))  # arithmetic below 1e-308 is a hundred times slower
    total = float(weights.sum())
    weights /= total
    return top + math.log(total), float(weights @ atoms.loss), weights


def root(rising: Callable[[float], float], low: float, high: float, start: float) -> float:
    """Return the zero of an increasing function to 0.01, from a first guess; an end of the range if there is none."""
    ends, at, step = (math.log(low), math.log(high)), min(max(math.log(start), math.log(low)), math.log(high)), 0.7
    value = rising(math.exp(at))
    sign = 1.0 if value < 0.0 else -1.0
    end = ends[value < 0.0]
    while True:  # expand until the sign changes
        if at == end:
            return math.exp(at)
        last, before = at, value
        at = end if abs(end - at) <= step else at + sign * step
        value = rising(math.exp(at))
        if sign * value >= 0.0:
            break
        step *= 2.0
    while abs(at - last) > 0.02:  # secant steps, kept away from both ends
        share = value / (value - before) if math.isfinite(value - before) and value != before else 0.5
        place = at + min(max(share, 0.1), 0.9) * (last - at)
        found = rising(math.exp(place))
        if (found < 0.0) == (value < 0.0):
            at, value = place, found
        else:
            last, before = place, found
    return math.exp(0.5 * (at + last))


def cumulants(pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...], theta: float) -> tuple[float, float, float]:
    """Return K(theta) and its first two derivatives, summed over all releases."""
    value = slope = bend = 0.0
    for pair, atoms in zip(pairs, all_atoms, strict=True):
        k, mean, weights = _tilt(atoms, theta)
        value += pair.count * k
        slope += pair.count * mean
        bend += pair.count * float(weights @ (atoms.loss - mean) ** 2)
    return value, slope, bend


def orders_for(pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...]) -> tuple[float, float]:
    """Return the range of suitable orders for a sum of these losses."""
    scale = math.sqrt(max(cumulants(pairs, all_atoms, 0.0)[2], 1e-300))
    return 1e-4 / scale, 1e6 / scale


def total(tilt: Tilt, theta: float) -> tuple[float, float]:
    """Return K(theta) and its derivative, summed over all releases.

    Parameters
    ----------
    tilt : Tilt
    theta : float

    Returns
    -------
    tuple of float
    """
    each = [(pair.count, *_tilt(atoms, theta)[:2]) for pair, atoms in zip(tilt.pairs, tilt.atoms, strict=True)]
    return sum(count * k for count, k, _ in each), sum(count * mean for count, _, mean in each)


def _outer(tilt: Tilt, sign: float, share: float) -> float:
    """Return a Chernoff bound that the tilted sum exceeds (sign 1) or falls below (sign -1) with mass e^{-share}."""
    base = total(tilt, tilt.theta)[0]

    def rising(t: float) -> float:
        k, mean = total(tilt, tilt.theta + sign * t)
        return base - k + sign * t * mean - share

    scale = deviation(tilt)
    t = root(rising, 1e-3 / scale, 1e3 / scale, math.sqrt(2.0 * share) / scale)
    return sign * (total(tilt, tilt.theta + sign * t)[0] - base + share) / t


def lost_above(pairs: tuple[AnyPair, ...], spans: tuple[tuple[float, float], ...]) -> float:
    """Return a bound on the probability that one of the losses is treated as infinite."""
    return math.fsum(pair.count * pair.above(span)[0] for pair, span in zip(pairs, spans, strict=True))


def log_peak(order: float) -> float:
    """Return the log of the maximum over x of (1 - e^{-x}) e^{-order x}."""
    return order * math.log(order) - (1.0 + order) * math.log1p(order) if order > 0.0 else 0.0


def ceiling(tilt: Tilt) -> float:
    """Return a Chernoff bound on epsilon at the delta of `tilt`.

    It is the conversion of Rényi divergences of Canonne, Kamath & Steinke 2020, Proposition 12.
    """
    order = tilt.order
    left = math.exp(tilt.log_delta) - lost_above(tilt.pairs, tilt.spans)
    return (total(tilt, order)[0] + log_peak(order) - math.log(left)) / order if left > 0.0 else math.inf


def window(tilt: Tilt, least: float) -> tuple[float, float, float]:
    """Return the lowest and highest loss of the window, and the Chernoff order that bounds the mass above it.

    The mass above the window is bounded in `grid` and added. Mass outside wraps around. Mass from below appears at the
    upper end, where tilting back shrinks it. Mass from above appears below `least`, where it does not count, unless it
    lies a whole window above. In both cases it only adds a little to delta.
    """
    log_outside = tilt.log_delta + _OUTSIDE

    def rising(theta: float) -> float:
        k, mean = total(tilt, theta)
        return theta * mean - k + log_outside

    # order of the least Chernoff bound on the loss that is passed with that probability
    order = root(rising, *orders_for(tilt.pairs, tilt.atoms), tilt.order)
    top = (total(tilt, order)[0] - log_outside) / order
    above = tilt.theta * max(0.0, top - tilt.epsilon)
    bottom = _outer(tilt, -1.0, max(12.0, 23.0 - 0.5 * above))
    bottom = min(bottom, top - (_outer(tilt, 1.0, 23.0) - least))
    return min(bottom, least - 0.01 * (top - least)), top, order


def deviation(tilt: Tilt) -> float:
    """Return the standard deviation of the tilted sum, above 0."""
    return math.sqrt(max(cumulants(tilt.pairs, tilt.atoms, tilt.theta)[2], 1e-300))


def centers(tilt: Tilt) -> tuple[float, ...]:
    """Return the median of each release's tilted loss, on which a grid point is placed.

    At a small sampling probability nearly all losses are close to one value; on a grid point they cause no error for
    any grid width. For a bounded loss it is the largest loss, which has a point mass.
    """
    found = []
    for pair, atoms in zip(tilt.pairs, tilt.atoms, strict=True):
        if pair.size > 0.0:
            found.append(float(atoms.loss[-1]))
            continue
        weights = _tilt(atoms, tilt.theta)[2]
        found.append(float(atoms.loss[min(int(np.searchsorted(np.cumsum(weights), 0.5)), weights.size - 1)]))
    return tuple(found)


def width_for(tilt: Tilt, error: float) -> float:
    """Return the grid width at which connect-the-dots changes epsilon by about `error`.

    Splitting a loss at distance f h above a grid point increases E[e^{theta L}] by the factor 1 + theta (1 + theta) f
    (1 - f) h^2 / 2. The mean of f (1 - f) h^2 is h^2 / 6; it is at most h |L| for losses next to a grid point of
    `centers`.
    """
    return min(_width_at(tilt, theta, error) for theta in {tilt.theta, tilt.order})


def _width_at(tilt: Tilt, theta: float, error: float) -> float:
    found = [
        (p.count, np.abs(a.loss - center), _tilt(a, theta)[2])
        for p, a, center in zip(tilt.pairs, tilt.atoms, centers(tilt), strict=True)
    ]

    def rising(h: float) -> float:
        each = (count * float(w @ np.minimum(h * h / 12.0, 0.5 * h * size)) for count, size, w in found)
        return (1.0 + theta) * sum(each) - error

    steps = sum(p.count for p in tilt.pairs)
    low = max(math.sqrt(12.0 * error / (steps * (1.0 + theta))), 1e-290)
    return root(rising, 0.99 * low, 1e6 * low, low)


_FIRST_REACH, _LAST_REACH = 4.0, 1e16  # first and last epsilon above which losses are treated as infinite
_FIRST_TARGET, _MOST_MOVES = -30.0, 8  # log of the first guess of delta, and the largest number of guesses
_LEAST_SPREAD, _MOST_SPREAD = 0.3, 0.5
_ROUNDING, _FAR_BELOW = 1e-14, -14.0  # of one mass on the grid; log of the largest fraction of delta that it can be


def _saddle(pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...], theta: float) -> tuple[float, float]:
    """Return the epsilon for which the integrand of delta is stationary at `theta`, and an estimate of log delta."""
    k, mean, variance = cumulants(pairs, all_atoms, theta)
    epsilon = mean - 1.0 / theta - 1.0 / (1.0 + theta)
    curvature = variance + (1.0 / theta) ** 2 + (1.0 / (1.0 + theta)) ** 2
    height = k - theta * epsilon - math.log(theta) - math.log1p(theta)
    return epsilon, height - 0.5 * math.log(2.0 * math.pi * curvature)


def find_tilt(pairs: tuple[AnyPair, ...], log_delta: float | None, epsilon: float | None = None) -> Tilt:
    """Return the tilt for a given delta or epsilon.

    Parameters
    ----------
    pairs : tuple of pairs
    log_delta : float or None
        Log of delta without the mass of infinite loss; None if it is unknown.
    epsilon : float, optional
        Epsilon; None if it is unknown.

    Returns
    -------
    Tilt
    """
    if epsilon is not None:
        found = _look_at(pairs, log_delta, epsilon)
    elif log_delta is not None:
        found = _look_for(pairs, log_delta)
    else:
        raise ValueError("Either `log_delta` or `epsilon` must be set.")
    found = _relax(found)
    # losses that are negligible after tilting, even with all mass
    spans = []
    for pair, span, atoms in zip(pairs, found.spans, found.atoms, strict=True):
        lowest = (_tilt(atoms, found.theta)[0] - 26.0 - math.log(pair.count)) / found.theta
        spans.append(pair.raise_span(span, lowest))
    all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
    return found._replace(spans=tuple(spans), atoms=all_atoms)


def _relax(tilt: Tilt) -> Tilt:
    """Return a smaller tilt if the saddle point is uninformative, as long as rounding errors stay far below delta.

    At the largest of bounded losses the tilt is unbounded. If losses are rare and large, the tilted sum spreads over
    many multiples of them and requires an unnecessarily long window.
    """
    log_unit = math.log(_ROUNDING * (1.0 + sum(pair.count for pair in tilt.pairs)))

    def is_enough(theta: float) -> bool:
        bound = total(tilt, theta)[0] - theta * tilt.epsilon + log_peak(theta) + log_unit
        return bound <= tilt.log_delta + _FAR_BELOW

    def extent(at: Tilt) -> float:
        bottom, top, _ = window(at, max(tilt.epsilon - 10.0 / at.theta, 0.0))
        return top - bottom

    spread, size = tilt.theta * deviation(tilt), math.inf
    if spread > _MOST_SPREAD + 1.15 * math.sqrt(-2.0 * tilt.log_delta):
        size = extent(tilt)
    elif spread > _LEAST_SPREAD:
        return tilt
    while tilt.theta > 0.1 and is_enough(0.5 * tilt.theta):
        half = tilt._replace(theta=0.5 * tilt.theta)
        if size < math.inf:
            less = extent(half)
            if less > 0.9 * size:
                break
            size = less
        tilt = half
    return tilt


def _spans(pairs: tuple[AnyPair, ...], log_delta: float, reach: float) -> tuple[tuple[float, float], ...]:
    """Return the range of each loss that affects a delta of e^log_delta at an epsilon of at most `reach`."""
    steps = math.log(sum(pair.count for pair in pairs))
    return tuple(pair.span(-24.0 - steps, log_delta - steps - 17.0, log_delta - steps - 14.0 - reach) for pair in pairs)


def _order_at(
    pairs: tuple[AnyPair, ...],
    all_atoms: tuple[Atoms, ...],
    rising: Callable[[tuple[float, float]], float],
    log_delta: float,
) -> float:
    """The order whose saddle point is where `rising` is 0, starting from the quantile of a normal distribution."""
    low, high = orders_for(pairs, all_atoms)
    start = math.sqrt(1.0 - 2.0 * log_delta) * 1e4 * low
    return root(lambda theta: rising(_saddle(pairs, all_atoms, theta)), low, high, start)


def _look_for(pairs: tuple[AnyPair, ...], log_delta: float) -> Tilt:
    """Return the tilt for epsilon at delta; the range of losses is extended until it suffices."""
    reach, delta = _FIRST_REACH, math.exp(log_delta)
    while True:
        spans = _spans(pairs, log_delta, reach)
        left = delta - lost_above(pairs, spans)
        if left < 0.1 * delta and reach < _LAST_REACH:
            reach *= 2.0
            continue
        log_left = math.log(max(left, 0.1 * delta))
        all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
        theta = _order_at(pairs, all_atoms, lambda at: log_left - at[1], log_left)  # noqa: B023
        epsilon = _saddle(pairs, all_atoms, theta)[0]
        if epsilon < reach + 6.0 or reach >= _LAST_REACH:
            break
        reach = epsilon
    if epsilon <= 0.0:
        return _look_at(pairs, log_delta, 0.0)
    return Tilt(pairs, spans, all_atoms, theta, log_delta, epsilon, theta)


def _look_at(pairs: tuple[AnyPair, ...], log_delta: float | None, epsilon: float) -> Tilt:
    """Return the tilt for delta at epsilon; the range of losses is adjusted to the estimate of delta."""
    target = log_delta if log_delta is not None else _FIRST_TARGET
    for _ in range(_MOST_MOVES):
        spans = _spans(pairs, target, epsilon)
        all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
        theta = _order_at(pairs, all_atoms, lambda at: at[0] - epsilon, target)
        if log_delta is not None:
            return Tilt(pairs, spans, all_atoms, theta, log_delta, epsilon, theta)
        guess, lost = _saddle(pairs, all_atoms, theta)[1], math.log(lost_above(pairs, spans) + 1e-320)
        reached = min(max(float(np.logaddexp(guess, lost)) - 3.0, LEAST_LOG_DELTA), 0.0)
        if target <= reached <= target + 12.0 or reached == target == LEAST_LOG_DELTA:
            break
        # a negligible mass does not indicate the size of delta
        target = min(max((guess if lost < target - 12.0 else reached) - 4.0, LEAST_LOG_DELTA), -4.0)
    return Tilt(pairs, spans, all_atoms, theta, reached, epsilon, theta)


_PREFERRED = 1 << 18  # grid points
# Work is counted in grid points times Fourier transforms: one for each type of release, and one inverse.
WORK, _LARGEST = 5 << 20, 1 << 21  # of one grid, and its largest number of points


class GridPlan(NamedTuple):
    """A grid for a tilted composition.

    Attributes
    ----------
    tilt : Tilt
    width, extent : float
        Width of a cell, and of the window, in nats.
    order : float
        Order of the Chernoff bound on the mass above the window.
    log_outside : float
        Log of this bound.
    centers : tuple of float
        Loss of each release on which a grid point lies.
    """

    tilt: Tilt
    width: float
    extent: float
    order: float
    log_outside: float
    centers: tuple[float, ...]


def finest(tilt: Tilt, extent: float, work: int) -> float:
    """Return the smallest grid width on a window of `extent` nats with at most `work`."""
    reach = max(float(np.ptp(atoms.loss)) for atoms in tilt.atoms)
    points = min(work // (len(tilt.pairs) + 1), _LARGEST) - 64  # the margin is for rounding up to a transform size
    return max(extent / points, reach / (1 << 20))  # each point within the losses requires several quadrature nodes


def choose_grid(tilt: Tilt, least: float, error: float, widest: float = math.inf, work: int = WORK) -> GridPlan:
    """Choose grid and window for one direction.

    If the bounded work requires a coarser grid than `error`, the bound is looser but valid.

    Parameters
    ----------
    tilt : Tilt
    least : float
        Smallest loss to read, in nats.
    error : float
        Target error of epsilon.
    widest : float
        Bound on the grid width.
    work : int
        Bound on its number of points times Fourier transforms.

    Returns
    -------
    GridPlan
    """
    bottom, top, order = window(tilt, least)
    extent = max(top - bottom, deviation(tilt)) * 1.01  # the result can lie above the window
    h = max(width_for(tilt, error), 1e-290)
    if extent / h > _PREFERRED:
        # accept a slightly larger error before the grid grows further
        h = max(width_for(tilt, max(error, 3e-5 * tilt.epsilon)), min(h, extent / _PREFERRED))
    h = min(h, 0.01 * tilt.epsilon if tilt.epsilon > 0.0 else h)
    # grid positions must be exact doubles
    highest = max(float(np.abs(atoms.loss[[0, -1]]).max()) for atoms in tilt.atoms)
    allowed = finest(tilt, extent, work)
    h = max(min(h, max(widest, extent / _LARGEST)), allowed, 1e-11 * highest)
    sizes = {pair.size for pair in tilt.pairs if pair.size > 0.0}
    if len(sizes) == 1 and allowed < max(sizes):
        # both ends of a bounded loss lie on grid points, as they have point masses. A smaller loss lies in one cell
        # below the grid point of its upper end, which overestimates its cost.
        (size,) = sizes
        cells = max(1, math.ceil(2.0 * size / h))
        if cells * allowed > 2.0 * size:
            cells -= 1  # to limit the work
        h = 2.0 * size / max(1, cells)
    return GridPlan(tilt, max(h, 1e-300), extent, order, tilt.log_delta + _OUTSIDE, centers(tilt))
