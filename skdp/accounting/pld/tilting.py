"""Exponential tilting of a composition: where to look at a sum of privacy losses, and how finely.

K(theta) = log E_P[e^{theta L}] is summed over all releases. The Chernoff-optimal theta centres the sum on
the losses that decide epsilon at delta; from the same K come the window outside which next to nothing
lies, and the grid width at which connect-the-dots is as accurate as asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..numeric import Floats, bisect
from .bounded import AnyPair, LaplacePair, ResponsePair
from .pairs import Atoms

__all__ = ["LEAST_LOG_DELTA", "OUTSIDE", "Tilt", "centres", "deviation", "find_tilt", "total", "width_for", "window"]

_FAINTEST = -600.0  # least log weight that is computed with: arithmetic below 1e-308 is a hundred times slower
LEAST_LOG_DELTA = -700.0  # of delta at an epsilon, below which no grid is laid
OUTSIDE = -18.5  # log of the share of delta that may lie above the window


class Tilt(NamedTuple):
    """A composition under the Chernoff-optimal tilt `theta` (per nat)."""

    pairs: tuple[AnyPair, ...]
    spans: tuple[tuple[float, float], ...]
    atoms: tuple[Atoms, ...]
    theta: float
    log_delta: float
    epsilon: float


def _log_moment(atoms: Atoms, theta: float) -> float:
    """K(theta) = log E_P[e^{theta L}] over the atoms."""
    logs = atoms.log_weight + theta * atoms.loss
    top = float(logs.max())
    return top + math.log(float(np.exp(np.maximum(logs - top, _FAINTEST)).sum()))


def _tilt(atoms: Atoms, theta: float) -> tuple[float, float, Floats]:
    """K(theta), its derivative, and the tilted probabilities."""
    logs = atoms.log_weight + theta * atoms.loss
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, _FAINTEST))
    total = float(weights.sum())
    weights /= total
    return top + math.log(total), float(weights @ atoms.loss), weights


def _root(rising: Callable[[float], float], low: float, high: float, steps: int = 18) -> float:
    """Bisection in log scale for the zero of a rising function; an end if there is none between."""
    a, b = bisect(lambda at: rising(math.exp(at)) < 0.0, math.log(low), math.log(high), steps=steps)
    return math.exp(0.5 * (a + b))


def _chernoff(
    pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...], log_delta: float | None, epsilon: float
) -> float:
    """Tilt that minimises the Chernoff bound on epsilon at delta, or on delta at epsilon."""

    def rising(theta: float) -> float:
        value = 0.0
        for pair, atoms in zip(pairs, all_atoms, strict=True):
            k, mean, _ = _tilt(atoms, theta)
            value += pair.count * (theta * mean - k if log_delta is not None else mean)
        return value + log_delta if log_delta is not None else value - epsilon

    variance = 0.0
    for pair, atoms in zip(pairs, all_atoms, strict=True):
        _, mean, weights = _tilt(atoms, 0.0)
        variance += pair.count * float(weights @ (atoms.loss - mean) ** 2)
    scale = math.sqrt(max(variance, 1e-300))
    return _root(rising, 1e-3 / scale, 1e3 / scale)


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
    t = _root(rising, 1e-3 / scale, 1e3 / scale, 16)
    return sign * (total(tilt, tilt.theta + sign * t)[0] - base + share) / t


def window(tilt: Tilt, least: float) -> tuple[float, float, float]:
    """Lowest and highest loss of the window, and the Chernoff order that bounds what lies above.

    Mass above the window is bounded in `grid` and added. Mass outside wraps around. From below it lands
    at the upper end, where tilting back shrinks it; from above it lands below `least`, where it does not
    count, unless it lies a whole window above. Either way it only adds to delta, and little.
    """
    log_outside = tilt.log_delta + OUTSIDE
    order = _chernoff(tilt.pairs, tilt.atoms, log_outside, 0.0)
    top = (total(tilt, order)[0] - log_outside) / order
    above = tilt.theta * max(0.0, top - tilt.epsilon)
    bottom = _outer(tilt, -1.0, max(12.0, 23.0 - 0.5 * above))
    bottom = min(bottom, top - (_outer(tilt, 1.0, 23.0) - least))
    return min(bottom, least - 0.01 * (top - least)), top, order


def deviation(tilt: Tilt) -> float:
    """Standard deviation of the tilted sum, kept above 0."""
    variance = 0.0
    for pair, atoms in zip(tilt.pairs, tilt.atoms, strict=True):
        _, mean, weights = _tilt(atoms, tilt.theta)
        variance += pair.count * float(weights @ (atoms.loss - mean) ** 2)
    return math.sqrt(max(variance, 1e-300))


def centres(tilt: Tilt) -> tuple[float, ...]:
    """Median of each release's tilted loss: a grid point is put there.

    At a small sampling probability nearly all losses crowd around one value; on a grid point they cost
    nothing, however wide the grid. Of a bounded loss it is the largest, which has a mass of its own.
    """
    found = []
    for pair, atoms in zip(tilt.pairs, tilt.atoms, strict=True):
        if isinstance(pair, (LaplacePair, ResponsePair)):
            found.append(pair.size)
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
    found = [
        (p.count, np.abs(a.loss - centre), _tilt(a, tilt.theta)[2])
        for p, a, centre in zip(tilt.pairs, tilt.atoms, centres(tilt), strict=True)
    ]

    def rising(h: float) -> float:
        each = (count * float(w @ np.minimum(h * h / 12.0, 0.5 * h * size)) for count, size, w in found)
        return (1.0 + tilt.theta) * sum(each) - error

    steps = sum(p.count for p in tilt.pairs)
    low = math.sqrt(12.0 * error / (steps * (1.0 + tilt.theta)))
    return _root(rising, 0.99 * low, 1e6 * low, 16) if rising(1e6 * low) > 0.0 else 1e6 * low


def find_tilt(pairs: tuple[AnyPair, ...], log_delta: float | None, epsilon: float) -> Tilt:
    """Truncate each pair so that nothing visible is lost, and find the tilt.

    Where epsilon is given, delta is not known beforehand: it is estimated by Chernoff's bound less a
    margin, from a truncation that is moved outwards until it suffices.
    """
    steps = sum(pair.count for pair in pairs)
    target = log_delta if log_delta is not None else -40.0
    while True:
        spans = tuple(pair.span(-24.0 - math.log(steps), target - math.log(steps) - 18.0) for pair in pairs)
        all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
        theta = _chernoff(pairs, all_atoms, log_delta, epsilon)
        moments = [_log_moment(atoms, theta) for atoms in all_atoms]
        log_total = sum(pair.count * k for pair, k in zip(pairs, moments, strict=True))
        reached = log_total - theta * epsilon
        if log_delta is not None or reached - 8.0 >= target or target <= LEAST_LOG_DELTA:
            break
        target = max(reached - 12.0, LEAST_LOG_DELTA)
    # losses so low that after tilting they do not matter, even if all mass were there
    lowest = [(k - 26.0 - math.log(pair.count)) / theta for pair, k in zip(pairs, moments, strict=True)]
    spans = tuple(p.raise_span(span, loss) for p, span, loss in zip(pairs, spans, lowest, strict=True))
    all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
    if log_delta is not None:
        return Tilt(pairs, spans, all_atoms, theta, log_delta, (log_total - log_delta) / theta)
    return Tilt(pairs, spans, all_atoms, theta, max(reached - 8.0, LEAST_LOG_DELTA), epsilon)
