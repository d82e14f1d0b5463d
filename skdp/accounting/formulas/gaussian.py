"""Gaussian mechanism in closed form (Balle & Wang 2018, Theorem 8).

With mean shift mu in units of the noise, a = eps/mu - mu/2 and b = a + mu,

    delta(eps) = Q(a) - e^eps Q(b) = phi(a) (R(a) - R(b)),

where Q is the normal upper tail, phi its density and R = Q/phi Mills' ratio. All equations are solved for `a`, which is
of order 1 to 40 for any mu, because eps/mu - mu/2 suffers from cancellation.

**Repeated randomized response** is the exact worst case of epsilon-private mechanisms (Kairouz, Oh & Viswanath 2017,
Theorem 3.3). The loss is a function of a binomial number, so delta is a difference of two binomial tails, and its curve
has corners at the values of the loss.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from skdp.accounting.formulas.numeric import bisect, sampled_loss

# Relative slack that covers rounding; results are rounded conservatively by it.
_SAFE = 1e-11
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def _mills(x: float) -> float:
    """Return Mills' ratio Q(x) / phi(x) for x >= -30."""
    return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))


def mills_drop(a: float, mu: float) -> float:
    """Return R(a) - R(a + mu) without cancellation, for a > -30."""
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
    """Return the log of delta at eps = mu (a + mu/2).

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
    """Return the smallest delta of the Gaussian mechanism at `epsilon`, rounded up.

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
    # eps/mu - mu/2 has an error of about 1e-16 (eps/mu + mu/2), which is subtracted.
    a -= 4e-16 * (epsilon / mu + mu / 2.0) if epsilon > 0.0 else 0.0
    value = math.exp(log_delta_at(max(a, -mu / 2.0), mu)) * (1.0 + _SAFE)
    return min(1.0, max(value, sys.float_info.min))


def _solve_a(log_delta: float, mu: float) -> float:
    """Return the a with log delta(a) = log_delta, by Newton steps inside a bracket."""
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
    """Return the smallest epsilon of the Gaussian mechanism at `delta`, rounded up.

    Parameters
    ----------
    delta : float
        In (0, 1).
    mu : float
        Mean shift in standard deviations of the noise, at least 0.

    Returns
    -------
    float
        Epsilon in nats; 0 if delta alone covers the mechanism.
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
    """Return the largest mean shift whose Gaussian mechanism is (epsilon, delta)-private, rounded down.

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
    log_delta, epsilon = math.log(delta), min(epsilon, 1e300)  # squares of a larger mu overflow

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
        mu, less = mu * (1.0 - less), 2.0 * less  # near a delta of 1, a step of the rounding error hardly changes delta
    return mu


def mixture_loss(q: float, m: float, z: np.ndarray) -> np.ndarray:
    """log(1 - q + q e^{m z - m^2/2}), to full relative accuracy near 0 and without overflow."""
    return sampled_loss(q, m * z - 0.5 * m * m)


_ROUNDING = 1e-9  # of sums over many terms; results are rounded conservatively by it


@lru_cache(maxsize=32)
def _tails(epsilon: float, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the losses of repeated randomized response, and the log tails of their distributions under P and Q.

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


def randomized_response_epsilon(epsilon: float, count: int, delta: float) -> float:
    """Return the exact epsilon of `count` epsilon-private mechanisms (Kairouz, Oh & Viswanath 2017, Theorem 3.3).

    Randomized response is the worst case, so the curve is that of a binomial loss: delta(x) = P[loss > x] - e^x Q[loss
    > x]. The theorem lists its corners; between two corners the equation is solved for e^x.

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
    """Return the largest loss, rounded up."""
    exact, most = count * Fraction(epsilon), count * epsilon
    return most if Fraction(most) >= exact else math.nextafter(most, math.inf)


def _tail_rounding(loss: np.ndarray, count: int, epsilon: float) -> float:
    """Return a bound on the rounding error of `_tails` for each loss."""
    return 2.3e-16 * loss.size * (4000.0 + count * epsilon)


def randomized_response_delta(epsilon: float, count: int, at: float) -> float:
    """Return delta of `count` epsilon-private mechanisms at an epsilon of `at`; see `randomized_response_epsilon`.

    Parameters
    ----------
    epsilon : float
        Epsilon of each mechanism, at least 0, below 300.
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
    if first == loss.size:  # between the largest loss and its rounded value
        return math.exp(under_p[-1] + off) * -math.expm1(at - _most(epsilon, count))
    return min(1.0, max(0.0, math.exp(under_p[first] + off) - math.exp(min(at + under_q[first], under_p[first]) - off)))
