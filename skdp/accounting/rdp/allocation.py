"""Rényi divergences of random allocation: each record takes part in some of t Gaussian steps, drawn unseen.

*One of t steps.* In each step the record moves the sum by at most C = m standard deviations, in a direction that may
depend on all that was shown. Along that direction the output is m [step i is the record's] plus a standard normal
number (for a shorter move, a post-processing of it: scaled down, with noise added), across it there is noise alone. So
all outputs are a post-processing of

    P = (1/t) sum_i N(m e_i, I_t)   against   Q = N(0, I_t),   P / Q = S = (1/t) sum_i X_i,  X_i = e^{m z_i - m^2/2}.

*Record removed*, whole orders: E_Q[S^alpha] is t^-alpha alpha! times the coefficient of x^alpha in the t-th power of
sum_n e^{m^2 n (n-1) / 2} x^n / n!, as E[X^n] = e^{m^2 n (n-1) / 2}: positive terms, by repeated squaring (a
multinomial sum as in Feldman & Shenfeld 2025). Between whole orders log E is convex, so its chord is a bound.

*Record added*: E_Q[S^-b], b = alpha - 1, is the integral of u^{b-1} E[e^{-u X / t}]^t / Gamma(b) over u > 0, of
positive terms. Both inner integrals are trapezoid sums, which converge geometrically here.

*Beyond the largest order* an unsampled step is a bound, by joint convexity over the steps.

*k of t steps.* Drop t mod k steps at random, and cut the others at random into k equal parts: one step of each part is
a uniformly drawn set of k. By joint convexity over the cut, the worst cut is a bound, and for a given one the parts
are independent: k allocations of one step out of floor(t / k), between which the order of steps does not matter, as
Q's and P's laws above do not depend on what was shown. `composition.flatten` takes an allocation apart in that way.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from skdp._typing import Doubles

from .mechanisms import log_factorial_rounding

__all__ = ["allocation_rdp"]

_LARGEST = 512
_MOST_SHIFT = 20.0
_FURTHEST = 60.0  # nats
_STEP = 0.7  # of the integral over log u, in units of 1 / sqrt(b), at most 1/8


def _times(first: Doubles, second: Doubles) -> Doubles:
    """Log coefficients of the product of two power series, up to their common length."""
    n = first.size
    result = np.empty(n)
    for k in range(n):
        logs = first[: k + 1] + second[k::-1]
        top = logs.max()
        result[k] = top + math.log(np.exp(logs - top).sum()) if top > -math.inf else -math.inf
    return result


@lru_cache(maxsize=64)
def _log_moments(m: float, steps: int) -> Doubles:
    """log E_Q[S^n] for n = 0 .. `_LARGEST`, rounded up."""
    n = np.arange(_LARGEST + 1.0)
    base = 0.5 * n * (n - 1.0) * m * m - gammaln(n + 1.0)
    power, square, left = np.where(n == 0.0, 0.0, -np.inf), base, steps
    while left:
        if left & 1:
            power = _times(power, square)
        left >>= 1
        square = _times(square, square) if left else square
    rounding = log_factorial_rounding(_LARGEST) + 1e-13 * math.log2(steps + 1.0) * n
    result: Doubles = np.maximum(power + gammaln(n + 1.0) - n * math.log(steps), 0.0) + rounding
    result[:2] = 0.0
    return result


@lru_cache(maxsize=64)
def _log_inverse_moments(m: float, steps: int) -> Doubles:
    """log E_Q[S^-b] for b = 0, 1, .., as far as the integrals are short, rounded up."""
    most = max(1, min(_LARGEST - 1, int(_FURTHEST * steps / (m * m))))
    # under the tilt of S^-b each z_i moves by about -b m / t, and log S by m times that
    moved = most * m / steps
    top = math.log(most) + m * moved + 0.5 * m * m + 14.0 * m + 5.0
    # at its peak the log of the integrand bends by b at most: its width is 1 / sqrt(b) or more
    step = min(1.0 / 8.0, _STEP / math.sqrt(most))
    v = np.arange(-36.0, top, step)
    z = np.arange(-14.0 - 2.0 * moved - m, 14.0, min(1.0 / 16.0, 0.25 / m))
    log_x, weight = m * z - 0.5 * m * m - math.log(steps), np.exp(-0.5 * z * z)
    log_weight = -0.5 * z * z - math.log(float(weight.sum()))
    weight /= weight.sum()
    log_phi = np.empty(v.size)
    for k in range(0, v.size, 256):
        x = np.exp(np.minimum(v[k : k + 256, None] + log_x, 700.0))
        lost, logs = -np.expm1(-x) @ weight, log_weight - x
        peak = logs.max(axis=1)  # the mean of e^-x may be far below what a double holds
        kept = peak + np.log(np.exp(logs - peak[:, None]).sum(axis=1))
        log_phi[k : k + 256] = np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), kept)
    b = np.arange(1.0, most + 1.0)[:, None]
    logs = b * v + steps * log_phi
    peak = logs.max(axis=1)
    total = peak + np.log(np.exp(logs - peak[:, None]).sum(axis=1) * step) - gammaln(b[:, 0])
    return np.concatenate([[0.0], np.maximum(total, 0.0) + 1e-12 * (3.0 + b[:, 0])])


def _between(logs: Doubles, order: float) -> float:
    """The chord of convex values at whole orders; infinite beyond the last."""
    low, high = math.floor(order), math.ceil(order)
    if high >= logs.size:
        return math.inf
    return float(logs[low]) if low == high else float((high - order) * logs[low] + (order - low) * logs[high])


def allocation_rdp(alpha: float, noise_multiplier: float, steps: int) -> float:
    """Rényi divergence of Gaussian steps in one of which, drawn unseen, the record takes part.

    Parameters
    ----------
    alpha : float
        Order, above 1.
    noise_multiplier : float
        Standard deviation of the noise of a step divided by the bound on one record's contribution.
    steps : int
        Number of steps.

    Returns
    -------
    float
        In nats, the larger of both directions, rounded up.
    """
    m = 1.0 / noise_multiplier
    unsampled = 0.5 * alpha * m * m
    if alpha > _LARGEST or m > _MOST_SHIFT:
        return unsampled
    removed = _between(_log_moments(m, steps), alpha)
    added = _between(_log_inverse_moments(m, steps), alpha - 1.0)
    return min(unsampled, max(removed, added) / (alpha - 1.0))
