"""Arrays of doubles, and the one-dimensional searches that the methods share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "least_delta", "minimum"]

Floats = NDArray[np.float64]

Function = Callable[[float], float]
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def minimum(objective: Function, low: float, high: float, *, scan: int = 24, steps: int = 30) -> float:
    """Smallest value found on [low, high]: a scan, then golden section around its best point.

    Parameters
    ----------
    objective : callable
        Every value it takes has to be valid: none is extrapolated.
    low, high : float
    scan, steps : int
        Numbers of points looked at.

    Returns
    -------
    float
    """
    points = [low + (high - low) * k / (scan - 1) for k in range(scan)]
    values = [objective(point) for point in points]
    at = min(range(scan), key=values.__getitem__)
    best, left, right = values[at], points[max(at - 1, 0)], points[min(at + 1, scan - 1)]
    if not best < math.inf:
        return best
    first, second = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    f_first, f_second = objective(first), objective(second)
    for _ in range(steps):
        best = min(best, f_first, f_second)
        if f_first < f_second:
            right, second, f_second = second, first, f_first
            first = right - _GOLDEN * (right - left)
            f_first = objective(first)
        else:
            left, first, f_first = first, second, f_second
            second = left + _GOLDEN * (right - left)
            f_second = objective(second)
    return min(best, f_first, f_second)


def least_delta(epsilon_at: Function, epsilon: float) -> float:
    """Smallest delta at which a method's epsilon is at most `epsilon`, from above.

    Parameters
    ----------
    epsilon_at : callable
        Epsilon at a delta in (0, 1); falls with it.
    epsilon : float
        In nats, at least 0.

    Returns
    -------
    float
        In (0, 1], to a relative 1e-6; 1 if no delta below 1 - 1e-9 will do.
    """
    low, high = math.log(1e-300), math.log1p(-1e-9)
    if epsilon_at(math.exp(high)) > epsilon:
        return 1.0
    if epsilon_at(math.exp(low)) <= epsilon:
        return math.exp(low)
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if epsilon_at(math.exp(middle)) > epsilon else (low, middle)
    return math.exp(high)
