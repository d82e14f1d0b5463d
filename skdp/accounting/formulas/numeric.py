"""Arrays of doubles, losses of sampled releases, and searches in one dimension: `bisect`, `Secant`, `minimize`.

Whole numbers are searched by `bisect` of the standard library, over a `range`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_NEARLY_ALL = 0.99  # sampling probability q from which on 1 - q, which is exact, is lost beside the rounding of q

Function = Callable[[float], float]
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
_HALVINGS = 2200  # more than any bracket of doubles takes


def sampled_loss(q: float, loss: np.ndarray) -> np.ndarray:
    """log(1 - q + q e^loss), to full relative accuracy near 0 and without overflow."""
    if q == 1.0:
        return loss
    near: np.ndarray = np.log1p(q * np.expm1(np.minimum(loss, 30.0)))
    if q > _NEARLY_ALL:
        near = np.where(loss < -1.0, np.log(1.0 - q + q * np.exp(np.minimum(loss, 0.0))), near)
    if loss.size and loss.max() <= 30.0:
        return near
    far = loss + math.log(q) + np.log1p((1.0 - q) / q * np.exp(-np.maximum(loss, 30.0)))
    return np.where(loss <= 30.0, near, far)


def bisect(
    is_below: Callable[[float], bool],
    low: float,
    high: float,
    *,
    absolute: float = 0.0,
    relative: float = 0.0,
    steps: int = _HALVINGS,
) -> tuple[float, float]:
    """Narrow a bracket of the place where a condition ceases to hold.

    Parameters
    ----------
    is_below : callable
        True from `low` up to that place, False from there up to `high`. Neither end is looked at.
    low, high : float
    absolute, relative : float
        Width at which to stop, the larger of `absolute` and `relative` times the upper end; if both are 0, neighbouring
        doubles.
    steps : int
        Most halvings.

    Returns
    -------
    low, high : float
        Whichever of them was moved was looked at, so a caller takes the end at which its condition was seen to hold.
    """
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if high - low <= max(absolute, relative * high) or middle in (low, high):
            break
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high


class Secant:
    """Moves towards the zero of a monotone function, each along the secant through the last two places.

    Parameters
    ----------
    slope : float
        First guess of the function's slope. Its sign is that of the function.
    least, most : float
        Size that the slope keeps to.
    longest : float
        Bound on a move.
    apart : float
        Two places no further apart than this say nothing about the slope.
    """

    def __init__(self, slope: float, least: float, most: float, longest: float, apart: float = 0.0) -> None:
        self.slope = slope
        self._least, self._most, self._longest, self._apart = least, most, longest, apart
        self._last: tuple[float, float] | None = None

    def move(self, at: float, value: float) -> float:
        """How far to go from `at`, where the function is `value`."""
        if self._last is not None and abs(at - self._last[0]) > self._apart:
            sign = math.copysign(1.0, self.slope)
            size = sign * (value - self._last[1]) / (at - self._last[0])
            # a secant of the wrong sign comes from values that hardly differ: the function is flat here
            self.slope = sign * min(max(size, self._least), self._most) if size > 0.0 else 0.25 * self.slope
        self._last = at, value
        return -min(max(value / self.slope, -self._longest), self._longest)


def minimize(objective: Function, low: float, high: float, *, scan: int = 24, steps: int = 30) -> float:
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
    return math.exp(bisect(lambda at: epsilon_at(math.exp(at)) > epsilon, low, high, absolute=1e-6)[1])
