"""One Poisson-sampled Gaussian release in closed form.

*A record is removed or added.* With H the profile of the Gaussian by tau = e^epsilon, that of the pair "remove" is q
H((tau - 1 + q) / q) for tau >= 1 - q (Balle, Barthe & Gaboardi 2018, Theorem 2). For tau >= 1 that of "add" is no
larger: let h(a, b) be the supremum over events of a P - b Q. "Remove" has h(a + d, b + d) and "add" h(a, b), with a =
1 - tau (1 - q), b = tau q and d = (tau - 1) (1 - q), and at the best event A of the latter h(a + d, b + d) >= a P(A) -
b Q(A) + d (P(A) - Q(A)), where P(A) >= Q(A), as A is a half-line.

*A record is replaced.* At the place z where the loss of the pair "replace" is epsilon, with a = z - m, R Mills' ratio
and phi the normal density,

    delta = q phi(a) (u (R(a) - R(a + m)) + v (R(a) - R(a + 2 m))),

where u and v, which sum to 1, are the shares of (1-q) (tau - 1) phi(z) and of tau q phi(z + m) in their sum, which is
q phi(z - m). No term cancels.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from ..formulas.gaussian import LOG_SQRT_2PI, gaussian_delta, gaussian_epsilon, mills_drop
from ..formulas.numeric import bisect, sampled_loss
from .pairs import Pair

__all__ = ["single_delta", "single_epsilon"]

_SAFE = 1e-11  # covers rounding
_LEAST = -30.0  # least a: below it, nearly all that is sampled is distinguished


def _log_delta(pair: Pair, epsilon: float) -> float:
    """Log of delta of a pair "replace"."""
    z = float(pair.place(np.array([epsilon]))[0])
    a = z - pair.m
    if a < _LEAST:
        return math.log(pair.q) + _SAFE
    v = math.exp(min(epsilon - 2.0 * pair.m * z, 0.0))
    drop = (1.0 - v) * mills_drop(a, pair.m) + v * mills_drop(a, 2.0 * pair.m)
    return math.log(pair.q) - 0.5 * a * a - LOG_SQRT_2PI + math.log(drop) + _SAFE if drop > 0.0 else -math.inf


def single_epsilon(q: float, noise: float, delta: float, replace_one: bool) -> float:
    """Epsilon of one release at `delta`, rounded up.

    Parameters
    ----------
    q : float
        Sampling probability, below 1.
    noise : float
        Noise multiplier.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        In nats, at least 0.
    """
    m = 1.0 / noise
    if delta >= q:
        return 0.0
    if not replace_one:
        inner = gaussian_epsilon(delta / q * (1.0 - _SAFE), m)
        return float(sampled_loss(q, np.array([inner]))[0]) * (1.0 + _SAFE)
    pair, log_delta = Pair("replace", q, m, 1), math.log(delta)
    top = gaussian_epsilon(delta, 2.0 * m)
    if top == 0.0 or _log_delta(pair, 0.0) <= log_delta:
        return 0.0
    return bisect(lambda at: _log_delta(pair, at) > log_delta, 0.0, top, relative=1e-13)[1] * (1.0 + _SAFE)


def single_delta(q: float, noise: float, epsilon: float, replace_one: bool) -> float:
    """Delta of one release at `epsilon`, rounded up; the arguments are those of `single_epsilon`."""
    if replace_one:
        log_delta = _log_delta(Pair("replace", q, 1.0 / noise, 1), epsilon)
        return min(q, max(math.exp(log_delta), sys.float_info.min))
    if epsilon == 0.0:
        return q * gaussian_delta(0.0, 1.0 / noise)
    inner = float(np.logaddexp(0.0, epsilon + math.log(-math.expm1(-epsilon)) - math.log(q)))
    return q * gaussian_delta(inner * (1.0 - _SAFE), 1.0 / noise)
