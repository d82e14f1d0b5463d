"""Where to look at a composition: the tilt for epsilon at a given delta, or for delta at a given epsilon.

On every line Re z = theta > 0

    delta(epsilon) = 1 / (2 pi i) int e^{K(z) - z epsilon} / (z (z + 1)) dz,

as 1 / (z (z + 1)) is the transform of (1 - e^{-x})_+. The saddle point

    K'(theta) = epsilon + 1 / theta + 1 / (1 + theta)

centres the sum on the losses that decide delta at epsilon, and the integrand's curvature there says about how large
delta is. Both are guesses, of where to look; what is read is a bound wherever one looks.

Losses far above epsilon count in full, so they are taken as infinite. If A is the event that one of the losses is above
its end, that raises delta by at most e^epsilon Q(A): with f = (1 - e^{epsilon - S})_+, it adds E_P[1 - f; A], which is
at most E_P[e^{epsilon - S}; A]. Such losses would take most of the grid, and where they are rare they would draw the
tilt away from epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .bounded import AnyPair
from .pairs import Atoms
from .tilting import (
    LEAST_LOG_DELTA,
    Tilt,
    cumulants,
    deviation,
    log_moment,
    lost_above,
    orders_for,
    root,
    total,
    window,
)

__all__ = ["find_tilt"]

_FIRST_REACH, _LAST_REACH = 4.0, 1e16  # epsilon at which losses far above it are first taken as infinite; and last
_FIRST_TARGET, _MOST_MOVES = -30.0, 8  # log of the delta that is first supposed, and how often another one is
_LEAST_SPREAD, _MOST_SPREAD = 0.3, 0.5
_ROUNDING, _FAR_BELOW = 1e-14, -14.0  # of one mass on the grid; log of the share of delta that it may be
_LEAST_THETA = 0.1


class _Saddle(NamedTuple):
    """Where the integrand of delta is stationary at `theta`, and about how large delta is there."""

    epsilon: float
    log_delta: float


def _saddle(pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...], theta: float) -> _Saddle:
    k, mean, variance = cumulants(pairs, all_atoms, theta)
    epsilon = mean - 1.0 / theta - 1.0 / (1.0 + theta)
    curvature = variance + (1.0 / theta) ** 2 + (1.0 / (1.0 + theta)) ** 2
    height = k - theta * epsilon - math.log(theta) - math.log1p(theta)
    return _Saddle(epsilon, height - 0.5 * math.log(2.0 * math.pi * curvature))


def find_tilt(pairs: tuple[AnyPair, ...], log_delta: float | None, epsilon: float | None = None) -> Tilt:
    """The tilt for what is asked.

    Parameters
    ----------
    pairs : tuple of pairs
    log_delta : float or None
        Log of delta, less what is revealed outright; None where it is not known.
    epsilon : float, optional
        Where to look. Not known if None.

    Returns
    -------
    Tilt
    """
    if epsilon is not None:
        found = _look_at(pairs, log_delta, epsilon)
    elif log_delta is not None:
        found = _look_for(pairs, log_delta)
    else:
        raise ValueError("log_delta=None, epsilon=None: one of them has to be known.")
    found = _relax(found)
    # losses so low that after tilting they do not matter, even if all mass were there
    spans = []
    for pair, span, atoms in zip(pairs, found.spans, found.atoms, strict=True):
        lowest = (log_moment(atoms, found.theta) - 26.0 - math.log(pair.count)) / found.theta
        spans.append(pair.raise_span(span, lowest))
    all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
    return found._replace(spans=tuple(spans), atoms=all_atoms)


def _relax(tilt: Tilt) -> Tilt:
    """Less of a tilt where the saddle point says little, as long as rounding stays far below delta.

    At the largest of bounded losses the tilt grows without bound; where losses are rare and large the tilted sum
    spreads over many multiples of them, and takes a longer window than it need.
    """
    log_unit = math.log(_ROUNDING * (1.0 + sum(pair.count for pair in tilt.pairs)))

    def is_enough(theta: float) -> bool:
        log_peak = theta * math.log(theta) - (1.0 + theta) * math.log1p(theta)
        return total(tilt, theta)[0] - theta * tilt.epsilon + log_peak + log_unit <= tilt.log_delta + _FAR_BELOW

    def extent(at: Tilt) -> float:
        bottom, top, _ = window(at, max(tilt.epsilon - 10.0 / at.theta, 0.0))
        return top - bottom

    spread, size = tilt.theta * deviation(tilt), math.inf
    if spread > _MOST_SPREAD + 1.15 * math.sqrt(-2.0 * tilt.log_delta):
        size = extent(tilt)
    elif spread > _LEAST_SPREAD:
        return tilt
    while tilt.theta > _LEAST_THETA and is_enough(0.5 * tilt.theta):
        half = tilt._replace(theta=0.5 * tilt.theta)
        if size < math.inf:
            less = extent(half)
            if less > 0.9 * size:
                break
            size = less
        tilt = half
    return tilt


def _spans(pairs: tuple[AnyPair, ...], log_delta: float, reach: float) -> tuple[tuple[float, float], ...]:
    """Range of each loss that matters to a delta of e^log_delta at an epsilon of `reach` or less."""
    steps = math.log(sum(pair.count for pair in pairs))
    return tuple(pair.span(-24.0 - steps, log_delta - steps - 17.0, log_delta - steps - 14.0 - reach) for pair in pairs)


def _order_at(
    pairs: tuple[AnyPair, ...], all_atoms: tuple[Atoms, ...], rising: Callable[[_Saddle], float], log_delta: float
) -> float:
    """The order whose saddle point is where `rising` is 0; about as many deviations out as delta is of a normal."""
    low, high = orders_for(pairs, all_atoms)
    start = math.sqrt(1.0 - 2.0 * log_delta) * 1e4 * low
    return root(lambda theta: rising(_saddle(pairs, all_atoms, theta)), low, high, start)


def _look_for(pairs: tuple[AnyPair, ...], log_delta: float) -> Tilt:
    """Epsilon at delta: higher losses are let in until they are high enough for it."""
    reach, delta = _FIRST_REACH, math.exp(log_delta)
    while True:
        spans = _spans(pairs, log_delta, reach)
        left = delta - lost_above(pairs, spans)
        if left < 0.1 * delta and reach < _LAST_REACH:
            reach *= 2.0
            continue
        log_left = math.log(max(left, 0.1 * delta))
        all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
        theta = _order_at(pairs, all_atoms, lambda at: log_left - at.log_delta, log_left)  # noqa: B023
        epsilon = _saddle(pairs, all_atoms, theta).epsilon
        if epsilon < reach + 6.0 or reach >= _LAST_REACH:
            break
        reach = epsilon
    if epsilon <= 0.0:
        return _look_at(pairs, log_delta, 0.0)
    return Tilt(pairs, spans, all_atoms, theta, log_delta, epsilon, theta)


def _look_at(pairs: tuple[AnyPair, ...], log_delta: float | None, epsilon: float) -> Tilt:
    """Delta at epsilon: where it is not known beforehand, spans are moved until they suit it."""
    target = log_delta if log_delta is not None else _FIRST_TARGET
    for _ in range(_MOST_MOVES):
        spans = _spans(pairs, target, epsilon)
        all_atoms = tuple(pair.atoms(*span) for pair, span in zip(pairs, spans, strict=True))
        theta = _order_at(pairs, all_atoms, lambda at: at.epsilon - epsilon, target)
        if log_delta is not None:
            return Tilt(pairs, spans, all_atoms, theta, log_delta, epsilon, theta)
        guess, lost = _saddle(pairs, all_atoms, theta).log_delta, math.log(lost_above(pairs, spans) + 1e-320)
        reached = min(max(float(np.logaddexp(guess, lost)) - 3.0, LEAST_LOG_DELTA), 0.0)
        if target <= reached <= target + 12.0 or reached == target == LEAST_LOG_DELTA:
            break
        # what is left out because it is small says nothing about delta
        target = min(max((guess if lost < target - 12.0 else reached) - 4.0, LEAST_LOG_DELTA), -4.0)
    return Tilt(pairs, spans, all_atoms, theta, reached, epsilon, theta)
