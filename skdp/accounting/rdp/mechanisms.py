"""Rényi divergences of events other than the (Poisson-sampled) Gaussian: Laplace, pure, fixed-size samples, selection.

As in `rdp`, a moment A = E[e^{(alpha - 1) loss}] is written as 1 plus non-negative terms, so that small
divergences keep their digits; phi(x) = e^x - 1 - x is the building block.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

# Of this power on, sampling without replacement is priced by the simpler of the two bounds: cost grows as its square.
_MOST_DIFFERENCES = 512
_MAX_NODES = 1 << 16
_LARGEST_ORDER = 1 << 16


def _phi(x: float) -> float:
    """e^x - 1 - x, to full relative accuracy."""
    if abs(x) > 0.5:
        return math.expm1(x) - x
    term, total = 0.5 * x * x, 0.0
    for k in range(3, 20):
        total += term
        term *= x / k
    return total


def log_factorial_rounding(order: float) -> float:
    """Bound on the rounding of log binomial coefficients of `order`, and of a sum over them: 16 units of log order!."""
    return 4e-15 * (order + 1.0) * (1.0 + math.log(order + 1.0))


def laplace_rdp(alpha: float, epsilon: float) -> float:
    """Rényi divergence of the Laplace mechanism (Mironov 2017, Proposition 6).

    Parameters
    ----------
    alpha : float
        Order, above 1.
    epsilon : float
        Sensitivity divided by the scale of the noise, above 0.

    Returns
    -------
    float
        log(alpha/(2 alpha - 1) e^{(alpha-1) epsilon} + (alpha-1)/(2 alpha - 1) e^{-alpha epsilon}) / (alpha - 1).
    """
    a = alpha - 1.0
    up, down = alpha / (2.0 * alpha - 1.0), a / (2.0 * alpha - 1.0)
    if a * epsilon > 30.0:
        return epsilon + math.log(up + down * math.exp(-(2.0 * alpha - 1.0) * epsilon)) / a
    # the two linear terms cancel: up (alpha - 1) = down alpha
    return math.log1p(up * _phi(a * epsilon) + down * _phi(-alpha * epsilon)) / a


def pure_rdp(alpha: float, epsilon: float) -> float:
    """Largest Rényi divergence of any epsilon-private mechanism: randomised response's.

    Its divergence is the bound of Bun & Steinke 2016, Proposition 3.3, before it is rounded to alpha epsilon^2 / 2.
    Restated and proved here: under Q the ratio of densities has mean 1 and lies from e^-epsilon to e^epsilon. Its
    power alpha is convex, so that its mean is largest if the ratio takes the two ends alone: randomised response.

    Parameters
    ----------
    alpha : float
        Order, above 1.
    epsilon : float
        At least 0.

    Returns
    -------
    float
        log(p e^{(alpha-1) epsilon} + (1-p) e^{-(alpha-1) epsilon}) / (alpha - 1), p = 1 / (1 + e^{-epsilon}).
    """
    x = (alpha - 1.0) * epsilon
    p = 1.0 / (1.0 + math.exp(-epsilon))
    if x > 30.0:
        return epsilon + math.log(p + (1.0 - p) * math.exp(-2.0 * x)) / (alpha - 1.0)
    return math.log1p(p * _phi(x) + (1.0 - p) * _phi(-x) + math.tanh(0.5 * epsilon) * x) / (alpha - 1.0)


@lru_cache(maxsize=1 << 13)
def _log_difference(order: int, mu: float) -> float:
    """log E_Q[(P/Q - 1)^order] for P = N(mu, 1), Q = N(0, 1) and an even order.

    The forward difference of Wang et al. 2019, Theorem 27, as the integral of a non-negative function
    instead of an alternating sum.
    """
    step = min(1.0 / 16.0, 0.4 / mu, 0.5 / math.sqrt(order))
    z = np.arange(-14.0, order * mu + 14.0, step)
    y = mu * z - 0.5 * mu * mu
    with np.errstate(divide="ignore", over="ignore"):
        log_size = np.where(y > 30.0, y, np.log(np.abs(np.expm1(np.minimum(y, 30.0)))))
    logs = order * log_size - 0.5 * z * z
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()) * step) - 0.5 * math.log(2.0 * math.pi)


@lru_cache(maxsize=1 << 13)
def _log_moment_without_replacement(alpha: int, share: float, mu: float) -> float:
    """log A of a whole order, rounded up: Theorem 27 of Wang et al. 2019; its terms 0 and 1 are 1 and 0.

    Power by power the lesser of both bounds: those of high powers are needed for few of the records alone.
    """
    if alpha <= 1:
        return 0.0
    j = np.arange(2, alpha + 1)
    choose = gammaln(alpha + 1.0) - gammaln(j + 1.0) - gammaln(alpha - j + 1.0)
    bounds = math.log(2.0) + 0.5 * j * (j - 1.0) * mu * mu
    last = min(alpha, _MOST_DIFFERENCES, int((_MAX_NODES / max(16.0, 2.5 * mu) - 28.0) / mu))
    if last >= 2:
        even = [_log_difference(2 * k, mu) for k in range(1, (last + 1) // 2 + 1)]
        pairs = [math.log(4.0) + 0.5 * (even[n // 2 - 1] + even[(n + 1) // 2 - 1]) for n in range(2, last + 1)]
        bounds[: last - 1] = np.minimum(bounds[: last - 1], pairs)
    logs = choose + j * math.log(share) + bounds
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum())) + log_factorial_rounding(alpha)
    return total + math.log1p(math.exp(-total)) if total > 0.0 else math.log1p(math.exp(total))


def without_replacement_rdp(alpha: float, share: float, mu: float) -> float:
    """Rényi divergence of a Gaussian on a sample of fixed size, one record replaced (Wang et al. 2019, Theorem 27).

    Parameters
    ----------
    alpha : float
        Order, above 1. Between whole orders the log moment is interpolated, which is an upper bound as it is
        convex (Corollary 10 there).
    share : float
        Sample size / source size, in (0, 1).
    mu : float
        Shift between neighbours in units of the noise; of *replaced* records, so 2 / noise_multiplier.

    Returns
    -------
    float
        In nats; never above that of the unsampled Gaussian.
    """
    unsampled = 0.5 * alpha * mu * mu
    if alpha > _LARGEST_ORDER:
        return unsampled
    low, high = math.floor(alpha), math.ceil(alpha)
    value = _log_moment_without_replacement(high, share, mu)
    if low != high:
        below = _log_moment_without_replacement(low, share, mu)
        value = (high - alpha) * below + (alpha - low) * value
    return min(unsampled, value / (alpha - 1.0))


def log_poisson_delta(alpha: float, orders: np.ndarray, values: np.ndarray) -> float:
    """log delta of one run at epsilon = log(1 + 1 / (alpha - 1)), for Theorem 6 of Papernot & Steinke 2022.

    Parameters
    ----------
    alpha : float
        Order at which the repeated run is priced, above 1.
    orders, values : ndarray
        Orders, and the Rényi divergences of one run there.

    Returns
    -------
    float
        The best of the orders, and of total variation <= sqrt(1 - e^-KL) (Bretagnolle & Huber).
    """
    at = (orders - 1.0) * (values - math.log1p(1.0 / (alpha - 1.0)) + np.log1p(-1.0 / orders)) - np.log(orders)
    by_kl = 0.5 * math.log(-math.expm1(-max(float(values[0]), 1e-300)))
    return min(0.0, float(at.min()), by_kl)
