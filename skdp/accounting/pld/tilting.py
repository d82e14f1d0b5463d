"""Exponential tilting of a composition: what a sum of privacy losses looks like near the losses that matter.

K(theta) = log E_P[e^{theta L}] is summed over all releases. Tilted by theta, the sum is centred on K'(theta). From K
come the window outside which next to nothing lies, and the grid width at which connect-the-dots is as accurate as
asked for. `saddle` finds the tilt.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skdp._typing import Doubles

from .bounded import AnyPair, LaplacePair, ResponsePair
from .pairs import Atoms

__all__ = [
    "LEAST_LOG_DELTA",
    "OUTSIDE",
    "Tilt",
    "ceiling",
    "centres",
    "cumulants",
    "deviation",
    "log_moment",
    "lost_above",
    "orders_for",
    "root",
    "total",
    "width_for",
    "window",
]

_CLOSE = 0.02  # between the logs of two numbers that are as good as one
_FAINTEST = -600.0  # least log weight that is computed with: arithmetic below 1e-308 is a hundred times slower
LEAST_LOG_DELTA = -700.0  # of delta at an epsilon, below which no grid is laid
OUTSIDE = -18.5  # log of the share of delta that may lie above the window


class Tilt(NamedTuple):
    """A composition under the tilt `theta` (per nat), which centres it on what decides delta at epsilon.

    One of `log_delta` and `epsilon` was given, the other is a guess of it. `order` is theta at the saddle point, which
    suits Chernoff bounds; theta itself may be less.
    """

    pairs: tuple[AnyPair, ...]
    spans: tuple[tuple[float, float], ...]
    atoms: tuple[Atoms, ...]
    theta: float
    log_delta: float
    epsilon: float
    order: float


def log_moment(atoms: Atoms, theta: float) -> float:
    """K(theta) = log E_P[e^{theta L}] over the atoms."""
    logs = atoms.log_weight + theta * atoms.loss
    top = float(logs.max())
    return top + math.log(float(np.exp(np.maximum(logs - top, _FAINTEST)).sum()))


def _tilt(atoms: Atoms, theta: float) -> tuple[float, float, Doubles]:
    """K(theta), its derivative, and the tilted probabilities."""
    logs = atoms.log_weight + theta * atoms.loss
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, _FAINTEST))
    total = float(weights.sum())
    weights /= total
    return top + math.log(total), float(weights @ atoms.loss), weights


def root(rising: Callable[[float], float], low: float, high: float, start: float) -> float:
    """Zero of a rising function to a hundredth, from a guess of it; an end if there is none between."""
    ends, at, step = (math.log(low), math.log(high)), min(max(math.log(start), math.log(low)), math.log(high)), 0.7
    value = rising(math.exp(at))
    sign = 1.0 if value < 0.0 else -1.0
    end = ends[value < 0.0]
    while True:  # out to where the sign changes
        if at == end:
            return math.exp(at)
        last, before = at, value
        at = end if abs(end - at) <= step else at + sign * step
        value = rising(math.exp(at))
        if sign * value >= 0.0:
            break
        step *= 2.0
    while abs(at - last) > _CLOSE:  # the secant, kept away from both ends
        share = value / (value - before) if math.isfinite(value - before) and value != before else 0.5
        place = at + min(max(share, 0.1), 0.9) * (last - at)
        found = rising(math.exp(place))
        if (found < 0.0) == (value < 0.0):
            at, value = place, found
        else:
            last, before = place, found
    return math.exp(0.5 * (at + last))


def cumulants(pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...], theta: float) -> tuple[float, float, float]:
    """K(theta) and its first two derivatives, summed over all releases."""
    value = slope = bend = 0.0
    for pair, atoms in zip(pairs, all_atoms, strict=True):
        k, mean, weights = _tilt(atoms, theta)
        value += pair.count * k
        slope += pair.count * mean
        bend += pair.count * float(weights @ (atoms.loss - mean) ** 2)
    return value, slope, bend


def orders_for(pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...]) -> tuple[float, float]:
    """Range of orders that suit a sum of these losses."""
    scale = math.sqrt(max(cumulants(pairs, all_atoms, 0.0)[2], 1e-300))
    return 1e-4 / scale, 1e6 / scale


def _order_of_tail(tilt: Tilt, log_mass: float) -> float:
    """Order of the least Chernoff bound on the loss that is passed with probability e^log_mass."""

    def rising(theta: float) -> float:
        k, mean = total(tilt, theta)
        return theta * mean - k + log_mass

    return root(rising, *orders_for(tilt.pairs, tilt.atoms), tilt.order)


def total(tilt: Tilt, theta: float) -> tuple[float, float]:
    """K(theta) and its derivative, summed over all releases.

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
    """Chernoff bound on where all but e^{-share} of the tilted sum lies, above (sign 1) or below (sign -1)."""
    base = total(tilt, tilt.theta)[0]

    def rising(t: float) -> float:
        k, mean = total(tilt, tilt.theta + sign * t)
        return base - k + sign * t * mean - share

    scale = deviation(tilt)
    t = root(rising, 1e-3 / scale, 1e3 / scale, math.sqrt(2.0 * share) / scale)
    return sign * (total(tilt, tilt.theta + sign * t)[0] - base + share) / t


def lost_above(pairs: tuple[AnyPair, ...], spans: tuple[tuple[float, float], ...]) -> float:
    """Bound on the probability that one of the losses is taken as infinite because it is high."""
    return math.fsum(pair.count * pair.above(span)[0] for pair, span in zip(pairs, spans, strict=True))


def ceiling(tilt: Tilt) -> float:
    """Bound on epsilon at the delta of `tilt`: Chernoff's, with the largest (1 - e^{-x}) e^{-order x} for its factor.

    That is the conversion of Rényi divergences of Canonne, Kamath & Steinke 2020, Proposition 12.
    """
    order = tilt.order
    log_peak = order * math.log(order) - (1.0 + order) * math.log1p(order)
    left = math.exp(tilt.log_delta) - lost_above(tilt.pairs, tilt.spans)
    return (total(tilt, order)[0] + log_peak - math.log(left)) / order if left > 0.0 else math.inf


def window(tilt: Tilt, least: float) -> tuple[float, float, float]:
    """Lowest and highest loss of the window, and the Chernoff order that bounds what lies above.

    Mass above the window is bounded in `grid` and added. Mass outside wraps around. From below it lands
    at the upper end, where tilting back shrinks it; from above it lands below `least`, where it does not
    count, unless it lies a whole window above. Either way it only adds to delta, and little.
    """
    log_outside = tilt.log_delta + OUTSIDE
    order = _order_of_tail(tilt, log_outside)
    top = (total(tilt, order)[0] - log_outside) / order
    above = tilt.theta * max(0.0, top - tilt.epsilon)
    bottom = _outer(tilt, -1.0, max(12.0, 23.0 - 0.5 * above))
    bottom = min(bottom, top - (_outer(tilt, 1.0, 23.0) - least))
    return min(bottom, least - 0.01 * (top - least)), top, order


def deviation(tilt: Tilt) -> float:
    """Standard deviation of the tilted sum, kept above 0."""
    return math.sqrt(max(cumulants(tilt.pairs, tilt.atoms, tilt.theta)[2], 1e-300))


def centres(tilt: Tilt) -> tuple[float, ...]:
    """Median of each release's tilted loss: a grid point is put there.

    At a small sampling probability nearly all losses crowd around one value; on a grid point they cost
    nothing, however wide the grid. Of a bounded loss it is the largest, which has a mass of its own.
    """
    found = []
    for pair, atoms in zip(tilt.pairs, tilt.atoms, strict=True):
        if isinstance(pair, (LaplacePair, ResponsePair)):
            found.append(float(atoms.loss[-1]))
            continue
        weights = _tilt(atoms, tilt.theta)[2]
        found.append(float(atoms.loss[min(int(np.searchsorted(np.cumsum(weights), 0.5)), weights.size - 1)]))
    return tuple(found)


def width_for(tilt: Tilt, error: float) -> float:
    """Grid width at which connect-the-dots moves epsilon by about `error`.

    Splitting a loss at distance f h above a grid point raises E[e^{theta L}] by the factor
    1 + theta (1 + theta) f (1 - f) h^2 / 2: on average h^2 / 6 for f (1 - f) h^2, and at most h |L| for
    the losses next to a grid point on which they crowd (see `centres`).
    """
    orders = {tilt.theta, tilt.order}
    return min(_width_at(tilt, theta, error) for theta in orders)


def _width_at(tilt: Tilt, theta: float, error: float) -> float:
    found = [
        (p.count, np.abs(a.loss - centre), _tilt(a, theta)[2])
        for p, a, centre in zip(tilt.pairs, tilt.atoms, centres(tilt), strict=True)
    ]

    def rising(h: float) -> float:
        each = (count * float(w @ np.minimum(h * h / 12.0, 0.5 * h * size)) for count, size, w in found)
        return (1.0 + theta) * sum(each) - error

    steps = sum(p.count for p in tilt.pairs)
    low = max(math.sqrt(12.0 * error / (steps * (1.0 + theta))), 1e-290)
    return root(rising, 0.99 * low, 1e6 * low, low)
