"""Repeated randomised response in closed form: the exact worst case of mechanisms that are epsilon-private.

Kairouz, Oh & Viswanath 2017, Theorem 3.3. The loss is that of a binomial number, so delta is a difference of two
binomial tails, and its curve has corners where the loss takes a value.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

_ROUNDING = 1e-9  # of sums over many terms; results are moved by it to the safe side


@lru_cache(maxsize=32)
def _tails(epsilon: float, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses of repeated randomised response, and the log tails of their distributions under P and Q.

    The loss is (2 B - count) epsilon with B binomial of probability 1 / (1 + e^-epsilon) under P.
    """
    p = 1.0 / (1.0 + math.exp(-epsilon))
    mode = min(count, math.floor((count + 1) * p))
    reach = math.ceil(40.0 * math.sqrt(count * p * (1.0 - p))) + 60
    b = np.arange(max(0, mode - reach), min(count, mode + reach) + 1, dtype=float)
    rise = np.log(count - b[:-1]) - np.log(b[:-1] + 1.0) + epsilon
    logs = np.concatenate(([0.0], np.cumsum(rise)))
    logs -= float(np.logaddexp.reduce(logs))
    loss = (2.0 * b - count) * epsilon
    under_p = np.logaddexp.accumulate(logs[::-1])[::-1]
    under_q = np.logaddexp.accumulate((logs - loss)[::-1])[::-1]
    return loss, under_p, under_q


def randomised_response_epsilon(epsilon: float, count: int, delta: float) -> float:
    """Epsilon of `count` epsilon-private mechanisms at `delta`: exact (Kairouz, Oh & Viswanath 2017, Theorem 3.3).

    They show that randomised response is the worst of them, so the curve is that of a binomial loss:
    delta(x) = P[loss > x] - e^x Q[loss > x]. Their theorem lists its corners; between two of them the equation
    is solved for e^x.

    Parameters
    ----------
    epsilon : float
        At least 0, below 300.
    count : int
    delta : float
        In (0, 1).

    Returns
    -------
    float
        In nats, rounded up by 1e-9.
    """
    if epsilon == 0.0:
        return 0.0
    loss, under_p, under_q = _tails(epsilon, count)
    off = _tail_rounding(loss, count, epsilon)
    at_loss = np.exp(under_p + off) - np.exp(np.minimum(loss + under_q, under_p) - off)
    at_loss = np.maximum.accumulate(at_loss[::-1])[::-1]
    cell = int(np.searchsorted(-at_loss, -delta, side="left"))
    if cell == 0:
        return max(0.0, float(loss[0]))
    if cell == loss.size:
        return _most(epsilon, count)
    within = math.exp(under_p[cell] + off) - delta
    value = math.log(within) - float(under_q[cell]) + off if within > 0.0 else float(loss[cell - 1])
    value = min(max(value, float(loss[cell - 1])), float(loss[cell]))
    return min(_most(epsilon, count), max(0.0, value + _ROUNDING * (abs(value) + epsilon)))


def _most(epsilon: float, count: int) -> float:
    """The largest loss, rounded up."""
    exact, most = count * Fraction(epsilon), count * epsilon
    return most if Fraction(most) >= exact else math.nextafter(most, math.inf)


def _tail_rounding(loss: np.ndarray, count: int, epsilon: float) -> float:
    """Bound on the rounding of `_tails`: one for each loss, a unit of the logs, below 2000 for P and the loss for Q."""
    return 2.3e-16 * loss.size * (4000.0 + count * epsilon)


def randomised_response_delta(epsilon: float, count: int, at: float) -> float:
    """Delta of `count` epsilon-private mechanisms at an epsilon of `at`: the curve of `randomised_response_epsilon`.

    Parameters
    ----------
    epsilon : float
        Of each, at least 0, below 300.
    count : int
    at : float
        In nats, at least 0.

    Returns
    -------
    float
        In [0, 1], rounded up.
    """
    if at >= _most(epsilon, count):
        return 0.0
    loss, under_p, under_q = _tails(epsilon, count)
    first = int(np.searchsorted(loss, at, side="right"))
    off = _tail_rounding(loss, count, epsilon)
    if first == loss.size:  # between the largest loss and what it is rounded to
        return math.exp(under_p[-1] + off) * -math.expm1(at - _most(epsilon, count))
    return min(1.0, max(0.0, math.exp(under_p[first] + off) - math.exp(min(at + under_q[first], under_p[first]) - off)))
