"""The plain Gaussian mechanism in closed form (Balle & Wang 2018, Theorem 8).

With mean shift mu in units of the noise, a = eps/mu - mu/2 and b = a + mu,

    delta(eps) = Q(a) - e^eps Q(b) = phi(a) (R(a) - R(b)),

Q the normal upper tail, phi its density and R = Q/phi Mills' ratio. Everything is solved in `a`: it
stays of order 1 to 40 however large mu is, where eps/mu - mu/2 would cancel.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from .numeric import bisect, sampled_loss

# Relative slack that covers the rounding of what is computed here; results are moved by it to the safe side.
_SAFE = 1e-11
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def _mills(x: float) -> float:
    """Mills' ratio Q(x) / phi(x) for x >= -30 or so."""
    return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))


def mills_drop(a: float, mu: float) -> float:
    """R(a) - R(a + mu) without cancellation, for a > -30."""
    if mu > 0.5:
        return _mills(a) - _mills(a + mu)
    # -R'(x) = 1 - x R(x): R falls by its integral, smooth on this short interval. Far out 1 - x R(x)
    # cancels as well and its asymptotic series takes over.
    x = a + mu * (_NODES + 1.0) / 2.0
    slope = 1.0 - x * math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0))
    far = np.maximum(np.abs(x), 1.0) ** -2.0
    slope = np.where(x > 200.0, far * (1.0 - 3.0 * far * (1.0 - 5.0 * far)), slope)
    return mu / 2.0 * float(_WEIGHTS @ slope)


def log_delta_at(a: float, mu: float) -> float:
    """Log of delta at eps = mu (a + mu/2).

    Parameters
    ----------
    a : float
        Position of the threshold on the scale of the noise, at least -mu/2.
    mu : float
        Mean shift in standard deviations, above 0.

    Returns
    -------
    float
    """
    if a > -30.0:
        drop = mills_drop(a, mu)
        return -0.5 * a * a - LOG_SQRT_2PI + math.log(drop) if drop > 0.0 else -math.inf
    b = a + mu
    log_tail = 0.5 * (b * b - a * a) + float(log_ndtr(-b))
    return math.log1p(-float(ndtr(a)) - math.exp(log_tail)) if log_tail < 0.0 else -math.inf


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Smallest delta of the Gaussian mechanism at `epsilon`, rounded up.

    Parameters
    ----------
    epsilon : float
        At least 0, in nats.
    mu : float
        Mean shift in standard deviations of the noise, at least 0.

    Returns
    -------
    float
        In [0, 1]; 0 only for mu = 0.
    """
    if mu == 0.0:
        return 0.0
    if not mu < math.inf:
        return 1.0
    a = epsilon / mu - mu / 2.0
    # eps/mu - mu/2 is known to about 1e-16 (eps/mu + mu/2): move it down by that.
    a -= 4e-16 * (epsilon / mu + mu / 2.0) if epsilon > 0.0 else 0.0
    value = math.exp(log_delta_at(max(a, -mu / 2.0), mu)) * (1.0 + _SAFE)
    return min(1.0, max(value, sys.float_info.min))


def _solve_a(log_delta: float, mu: float) -> float:
    """The a at which log delta(a) = log_delta: Newton's steps, as the slope is known, inside a bracket."""
    low, high = -mu / 2.0, max(1.0, -mu / 2.0 + 1.0, math.sqrt(-2.0 * log_delta))
    while log_delta_at(high, mu) > log_delta:
        low, high = high, 2.0 * high
    a = min(max(low, math.sqrt(-2.0 * log_delta) - 1.0), high)
    for _ in range(200):
        value = log_delta_at(a, mu)
        low, high = (a, high) if value > log_delta else (low, a)
        log_slope = math.log(mu) - 0.5 * a * a - LOG_SQRT_2PI + math.log(max(_mills(a + mu), 1e-308)) - value
        step = (value - log_delta) * math.exp(-log_slope) if abs(log_slope) < 600.0 else math.inf
        nxt = a + step
        nxt = nxt if low < nxt < high else 0.5 * (low + high)
        if abs(nxt - a) <= 4e-16 * abs(a) or nxt in (low, high):
            return nxt
        a = nxt
    return high


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest epsilon of the Gaussian mechanism at `delta`, rounded up.

    Parameters
    ----------
    delta : float
        In (0, 1).
    mu : float
        Mean shift in standard deviations of the noise, at least 0.

    Returns
    -------
    float
        In nats; 0 where delta alone covers the mechanism.
    """
    log_delta = math.log(delta)
    if not mu < math.inf:
        return math.inf
    if mu == 0.0 or log_delta_at(-mu / 2.0, mu) <= log_delta - _SAFE:
        return 0.0
    a = _solve_a(log_delta, mu)
    rounding = 1e-15 * mu * (abs(a) + mu)
    return max(0.0, mu * (a + mu / 2.0) * (1.0 + _SAFE) + rounding)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mean shift whose Gaussian mechanism is (epsilon, delta)-private, rounded down.

    Parameters
    ----------
    epsilon : float
        At least 0, in nats.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Such that `gaussian_epsilon(delta, mu) <= epsilon`.
    """
    log_delta = math.log(delta)

    def fits(mu: float) -> bool:
        a = max(-mu / 2.0, epsilon / mu - mu / 2.0)
        return log_delta_at(a, mu) <= log_delta

    low = high = 1.0
    while fits(high):
        low, high = high, 2.0 * high
    while not fits(low):
        low, high = 0.5 * low, low
    mu, less = bisect(fits, low, high, relative=4e-16)[0] * (1.0 - _SAFE), _SAFE
    while gaussian_epsilon(delta, mu) > epsilon:
        mu, less = mu * (1.0 - less), 2.0 * less  # near a delta of 1 a step of the rounding alone hardly moves delta
    return mu


def mixture_loss(q: float, m: float, z: np.ndarray) -> np.ndarray:
    """log(1 - q + q e^{m z - m^2/2}), to full relative accuracy near 0 and without overflow."""
    return sampled_loss(q, m * z - 0.5 * m * m)
