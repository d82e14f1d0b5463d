"""Numerical methods: one-dimensional searches (`bisect`, `Secant`, `minimize`) and quadrature.

Integer searches use `bisect` of the standard library over a `range`.

**Gauss-Legendre quadrature** of densities, with a proven bound on its relative error.

*One cell.* Let f be e^g on a cell of half width r, with g(x + r t) = g(x) + b t - c t^2 / 2 for t from -1 to 1, |b| <=
s and 0 <= c <= (s / 3)^2. With k nodes the error is at most 64 M rho^{-2k} / (15 (1 - rho^-2)) for every rho > 1, M
the maximum of |f| over the ellipse with foci -1 and 1 and semiaxes A = (rho + 1/rho) / 2 and B = (rho - 1/rho) / 2
(Trefethen 2019, *Approximation Theory and Approximation Practice*, Theorem 19.3). There log |f| <= g(x) + s A + c B^2
/ 2, and by Jensen's inequality the integral over t is at least 2 e^{g(x) - c/6}. So the relative error is at most

    (32 / 15) rho^{-2k} / (1 - rho^-2) exp(s A + (s / 3)^2 (B^2 / 2 + 1 / 6)).

`MOST` holds, for numbers of nodes k, the largest s at which the best rho makes that `ERROR` or less. A normal density
with its center at a distance of up to d from the cell has s = r (d + 3), as c = r^2; an exponential e^{a x} has s = r
a.

*Mixtures.* The error of a sum of such densities with positive weights is bounded as that of each.

*A pair.* Let P and Q have densities p and q of which the loss log(p / q) increases, with cells that end at every loss
where H(tau) = sup over events of P - tau Q is asked for. By quadrature, the mass of P above log tau, and that of Q,
have relative errors of at most u = `ERROR`, so H is too low by at most u (P + tau Q)(above) = u (H + 2 tau Q(above)).
Masses that are larger by the factor 1 + u, with losses that are larger by 2 u, make up for it: to raise all losses by
v raises H by v tau Q(above). A pair of a Poisson sample is itself a mixture of which a share is common to both, and
errs in the rest alone: with sampling probability q, P = (1-q) Q + q P1,

    P - tau Q = q P1 - (tau - 1 + q) Q,

which errs by at most 2 u q P1(above) = 2 u (H + (tau - 1 + q) Q(above)). As tau - 1 + q <= tau (1 - (1-q) / tau) <= tau
(q + |log tau|), losses l that are larger by 2 u min(1, q + |l|) make up for it; likewise in the other direction (with
the fraction of what is sampled in Q), and where a record is replaced (with the larger of both shares). The rounding of
a loss is in proportion to the same, as d l / d (log P1 / Q) is that share. So `pld.pairs.Atoms.lift` serves both.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Function = Callable[[float], float]
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def sampled_loss(q: float, loss: np.ndarray) -> np.ndarray:
    """Return log(1 - q + q e^loss), accurate near 0 and without overflow."""
    if q == 1.0:
        return loss
    near: np.ndarray = np.log1p(q * np.expm1(np.minimum(loss, 30.0)))
    if q > 0.99:  # the exact 1 - q is lost in the rounding of q
        near = np.where(loss < -1.0, np.log(1.0 - q + q * np.exp(np.minimum(loss, 0.0))), near)
    if loss.size and loss.max() <= 30.0:
        return near
    far = loss + math.log(q) + np.log1p((1.0 - q) / q * np.exp(-np.maximum(loss, 30.0)))
    return np.where(loss <= 30.0, near, far)


def log_sum(logs: np.ndarray, width: float = 1.0) -> float:
    """Return log(width * sum of e^logs) without overflow."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()) * width)


def bisect(
    is_below: Callable[[float], bool],
    low: float,
    high: float,
    *,
    absolute: float = 0.0,
    relative: float = 0.0,
    steps: int = 2200,  # sufficient for any bracket of doubles
) -> tuple[float, float]:
    """Bisect for the point where a condition ceases to hold.

    Parameters
    ----------
    is_below : callable
        Condition, True from `low` up to this point and False up to `high`. It is not evaluated at both ends.
    low, high : float
    absolute, relative : float
        Width at which to stop, the larger of `absolute` and `relative` times the upper end; if both are 0, neighboring
        doubles.
    steps : int
        Largest number of halvings.

    Returns
    -------
    low, high : float
        Ends of the bracket. The condition was evaluated at each end that changed.
    """
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if high - low <= max(absolute, relative * high) or middle in (low, high):
            break
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high


class Secant:
    """Secant method for the zero of a monotone function.

    Parameters
    ----------
    slope : float
        First guess of the slope, with the sign of the slope.
    least, most : float
        Range of the absolute slope.
    longest : float
        Largest step.
    apart : float
        Smallest distance of two points for an update of the slope.
    """

    def __init__(self, slope: float, least: float, most: float, longest: float, apart: float = 0.0) -> None:
        self.slope = slope
        self._least, self._most, self._longest, self._apart = least, most, longest, apart
        self._last: tuple[float, float] | None = None

    def move(self, at: float, value: float) -> float:
        """Return the step from `at`, where the function is `value`."""
        if self._last is not None and abs(at - self._last[0]) > self._apart:
            sign = math.copysign(1.0, self.slope)
            size = sign * (value - self._last[1]) / (at - self._last[0])
            # a secant with the wrong sign results from nearly equal values: the function is flat here
            self.slope = sign * min(max(size, self._least), self._most) if size > 0.0 else 0.25 * self.slope
        self._last = at, value
        return -min(max(value / self.slope, -self._longest), self._longest)


def minimize(objective: Function, low: float, high: float, *, scan: int = 24, steps: int = 30) -> float:
    """Return the smallest value on [low, high] of a scan and a golden-section search around its best point.

    Parameters
    ----------
    objective : callable
        Function whose every value is a valid bound.
    low, high : float
    scan, steps : int
        Numbers of points.

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
    """Return an upper bound of the smallest delta at which a method's epsilon is at most `epsilon`.

    Parameters
    ----------
    epsilon_at : callable
        Function of delta in (0, 1) that returns epsilon; it decreases.
    epsilon : float
        In nats, at least 0.

    Returns
    -------
    float
        Delta in (0, 1] with a relative error of 1e-6; 1 if no delta below 1 - 1e-9 suffices.
    """
    low, high = math.log(1e-300), math.log1p(-1e-9)
    if epsilon_at(math.exp(high)) > epsilon:
        return 1.0
    if epsilon_at(math.exp(low)) <= epsilon:
        return math.exp(low)
    return math.exp(bisect(lambda at: epsilon_at(math.exp(at)) > epsilon, low, high, absolute=1e-6)[1])


# Largest relative error of the quadrature.
ERROR = 1e-15

# Largest steepness s for each number of nodes.
MOST = {2: 3.6e-4, 3: 9.8e-3, 5: 0.158, 8: 0.855, 16: 4.25, 32: 11.7}

# Nodes and weights on the interval from -1 to 1, for each number of nodes.
GAUSS_LEGENDRE = {k: np.polynomial.legendre.leggauss(k) for k in MOST}
_IN_CELLS = (2, 3, 5, 8)


def number_of_nodes(steepness: float) -> int:
    """Return the smallest sufficient number of nodes for a steepness, or the largest number."""
    return next((k for k, most in MOST.items() if steepness <= most), max(MOST))


def _split(knots: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return midpoints, half widths and steepness of cells after dividing the cells that are too steep."""
    half = 0.5 * np.diff(knots)
    steepness = half * slope
    parts = np.maximum(1, np.ceil(steepness / MOST[_IN_CELLS[-1]])).astype(np.int64)
    if parts.max(initial=1) == 1:
        return knots[:-1] + half, half, steepness
    place = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    half = np.repeat(half / parts, parts)
    return np.repeat(knots[:-1], parts) + half * (2.0 * place + 1.0), half, np.repeat(steepness / parts, parts)


def nodes(knots: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of a quadrature over cells, in arbitrary order.

    Parameters
    ----------
    knots : array of shape (n + 1,)
        Ends of the cells, increasing.
    slope : array of shape (n,)
        Largest slope of the log density in each cell, plus 3 for a normal density.

    Returns
    -------
    place, weight : array
    """
    middle, half, steepness = _split(knots, slope)
    number = np.searchsorted([MOST[k] for k in _IN_CELLS[:-1]], steepness)
    places, weights = [], []
    for at, k in enumerate(_IN_CELLS):
        kept = number == at
        node, weight = GAUSS_LEGENDRE[k]
        places.append((middle[kept, None] + half[kept, None] * node).ravel())
        weights.append((half[kept, None] * weight).ravel())
    return np.concatenate(places), np.concatenate(weights)


def rounding(least: float, loss: float, size: float = 0.0) -> float:
    """Return a bound on the relative rounding error of masses, and of losses per `min(1, q + |loss|)`.

    Parameters
    ----------
    least : float
        Smallest log of a mass.
    loss : float
        Largest absolute loss.
    size : float
        Largest operand of a subtraction in their computation.

    Returns
    -------
    float
    """
    unit = 1.2e-16  # above the relative rounding of one operation
    return unit * (8.0 * (abs(least) + loss + size) + 64.0)
