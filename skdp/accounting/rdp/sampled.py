"""Rényi divergence of the Poisson-sampled Gaussian, for records that are added, removed or replaced.

In units of the noise, with q the sampling probability and m = 1 / noise multiplier, the pairs (of `pld.pairs`) are

    remove    P = (1-q) N(0,1) + q N(m,1)   Q = N(0,1)
    replace   P = (1-q) N(0,1) + q N(m,1)   Q = (1-q) N(0,1) + q N(-m,1)

and with v = log(P / Q) the log moment is log A(alpha), A = E_Q[e^{alpha v}]; the divergence is log A / (alpha - 1).
The other direction of `remove` costs less (Mironov, Talwar & Zhang 2019), that of `replace` the same, as z -> -z
exchanges P and Q. As E_Q[e^v - 1] = 0,

    A - 1 = E_Q[e^{alpha v} - 1 - alpha (e^v - 1)],

a mean of non-negative terms: small divergences keep all their digits. That the pairs dominate is proved in `pld.pairs`;
what dominates in every hockey-stick divergence does so in Rényi's, whose moments are mixtures of them.

The integrand is e^{-z^2 / 2} times a function that is analytic for |Im z| < pi / m, so the trapezoid rule converges
geometrically. On the log of P^alpha Q^{1-alpha} the slope lies between -z and c - z, where c = alpha m (remove) or
(2 alpha - 1) m (replace): what is cut off 12 beyond 0, -m and c is below e^-70 of the whole.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln

from ..formulas.gaussian import mixture_loss
from .mechanisms import log_factorial_rounding

_MAX_NODES = 1 << 16


def log_excess(alpha: float, v: np.ndarray) -> np.ndarray:
    """Log of e^{alpha v} - 1 - alpha (e^v - 1), elementwise, -inf where it is 0."""
    w = alpha * v
    series, term = np.zeros_like(v), np.ones_like(v)
    small = np.abs(np.clip(v, -1.0, 1.0)) * alpha < 0.1
    vs = np.where(small, v, 0.0)
    for k in range(2, 11):
        term = vs ** (k - 2) / math.factorial(k)
        series = series + alpha * (alpha ** (k - 1) - 1.0) * term
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_small = 2.0 * np.log(np.abs(vs)) + np.log(series)
        direct = np.expm1(np.minimum(w, 600.0)) - alpha * np.expm1(np.minimum(v, 600.0))
        log_mid = np.log(np.maximum(direct, 0.0))
        ratio = np.exp(np.minimum(v - w, 0.0)) * alpha
        log_big = w + np.log1p(-np.minimum(ratio, 0.5))
    return np.where(small, log_small, np.where(w > 500.0, log_big, log_mid))


def log1p_exp(x: float) -> float:
    """log(1 + e^x)."""
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


def _log_moment_integer(alpha: int, q: float, m: float) -> float:
    """log A for a whole order by the binomial series, rounded up; terms 0 and 1 drop out of A - 1."""
    k = np.arange(2, alpha + 1, dtype=float)
    exponent = 0.5 * k * (k - 1.0) * m * m
    log_grown = np.where(exponent < 30.0, np.log(np.expm1(np.minimum(exponent, 30.0))), exponent)
    choose = gammaln(alpha + 1.0) - gammaln(k + 1.0) - gammaln(alpha - k + 1.0)
    logs = choose + (alpha - k) * math.log1p(-q) + k * math.log(q) + log_grown
    top = float(logs.max())
    return log1p_exp(top + math.log(float(np.exp(logs - top).sum())) + log_factorial_rounding(alpha))


def _log_moment_quadrature(alpha: float, q: float, m: float, replace_one: bool) -> float:
    """log A by the trapezoid rule."""
    step = min(1.0 / 16.0, 0.4 / m)
    z = np.arange(-12.0 - m * replace_one, _last(alpha, m, replace_one) + 12.0, step)
    loss, log_q = mixture_loss(q, m, z), -0.5 * z * z
    if replace_one:
        mirrored = mixture_loss(q, m, -z)
        loss, log_q = loss - mirrored, log_q + mirrored
    logs = log_excess(alpha, loss) + log_q
    top = float(logs.max())
    if top == -math.inf:
        return 0.0
    total = math.log(float(np.exp(logs - top).sum()) * step) - 0.5 * math.log(2.0 * math.pi)
    return log1p_exp(top + total)


def _last(alpha: float, m: float, replace_one: bool) -> float:
    """Beyond this z the integrand falls as a Gaussian does."""
    return (2.0 * alpha - 1.0) * m if replace_one else alpha * m


def _by_removal(alpha: float, q: float, noise_multiplier: float) -> float:
    """Upper bound of log A of `replace`: Q >= (1 - q) N(0, 1); and sampling never costs (joint convexity)."""
    m = 2.0 / noise_multiplier
    removed = log_moment(alpha, q, noise_multiplier) - (alpha - 1.0) * math.log1p(-q)
    return min(removed, 0.5 * alpha * (alpha - 1.0) * m * m)


@lru_cache(maxsize=1 << 14)
def log_moment(alpha: float, q: float, noise_multiplier: float, *, replace_one: bool = False) -> float:
    """log A(alpha) of the Poisson-sampled Gaussian, the larger of its two directions.

    Parameters
    ----------
    alpha : float
        Order, above 1.
    q : float
        Sampling probability in (0, 1].
    noise_multiplier : float
        Above 0; standard deviation of the noise divided by the bound on one record's contribution.
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats; an upper bound where the order is too large for the integral, inf where it has none.
    """
    m = 1.0 / noise_multiplier
    if q == 1.0:
        shift = 2.0 * m if replace_one else m
        return 0.5 * alpha * (alpha - 1.0) * shift * shift
    if (_last(alpha, m, replace_one) + m * replace_one + 24.0) * max(16.0, 2.5 * m) <= _MAX_NODES:
        return _log_moment_quadrature(alpha, q, m, replace_one)
    if replace_one:
        return _by_removal(alpha, q, noise_multiplier)
    if alpha > _MAX_NODES:
        return math.inf
    # log A is convex in the order: the chord between whole orders lies above it, and log A(1) = 0.
    low, high = math.floor(alpha), math.ceil(alpha)
    at_high = _log_moment_integer(high, q, m)
    if low == high:
        return at_high
    at_low = 0.0 if low == 1 else _log_moment_integer(low, q, m)
    return (high - alpha) * at_low + (alpha - low) * at_high
