"""The moments accountant as published (Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang 2016).

With mu0 = N(0, s^2), mu = (1 - q) N(0, s^2) + q N(1, s^2), the log moment of one step is

    alpha(lambda) = log max(E1, E2),  E1 = E_{mu0}[(mu0 / mu)^lambda],  E2 = E_{mu}[(mu / mu0)^lambda]

(their Section 3.2), by numerical integration at whole lambda up to 32. Log moments add up over steps
(Theorem 2, composability) and give delta = min over lambda of exp(alpha(lambda) - lambda epsilon) (tail bound).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..formulas.gaussian import mixture_loss
from ..rdp.sampled import log_moment
from ..releases import Releases

LARGEST = 32
_LAMBDAS = np.arange(1.0, LARGEST + 1.0)
_MOST_SHIFT = 16.0


def _log_e1(q: float, noise_multiplier: float) -> np.ndarray:
    """log E1 at all lambda, by the trapezoid rule in log space.

    E_{mu0}[mu / mu0 - 1] = 0, so E1 - 1 is the mean of v^-lambda - 1 + lambda (v - 1) >= 0 with v = mu / mu0.
    """
    m = 1.0 / noise_multiplier
    if m > _MOST_SHIFT:
        return -_LAMBDAS * math.log1p(-q)  # mu0 / mu <= 1 / (1 - q) everywhere; E2 is far above it
    step = min(1.0 / 32.0, 0.2 / m)
    z = np.arange(-14.0, m + 14.0, step)
    w = mixture_loss(q, m, z)
    x = -_LAMBDAS[:, None] * w
    near = np.abs(x) < 0.05
    small = np.where(near, w, 0.0)
    lam = _LAMBDAS[:, None]
    # e^x - 1 + lambda (e^w - 1), x = -lambda w, to fifth order: relative error below 1e-7 of a tiny part
    series = lam * small**2 * ((lam + 1.0) / 2.0 - (lam**2 - 1.0) * small / 6.0 + (lam**3 + 1.0) * small**2 / 24.0)
    series -= lam * (lam**4 - 1.0) * small**5 / 120.0
    with np.errstate(over="ignore"):
        far = np.expm1(np.minimum(x, 600.0)) + lam * np.expm1(np.minimum(w, 600.0))
    log_excess = np.log(np.maximum(np.where(near, series, far), 1e-320))
    log_excess = np.where(x > 500.0, x, log_excess)
    logs = log_excess - 0.5 * z * z
    top = logs.max(axis=1)
    total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1) * step) - 0.5 * math.log(2.0 * math.pi)
    return np.logaddexp(0.0, total) if total.max() > 1.0 else np.log1p(np.exp(total))


@lru_cache(maxsize=1024)
def _sampled(q: float, noise_multiplier: float) -> np.ndarray:
    """Log moments of one sampled step: the larger of both directions."""
    # E2 is the moment of order lambda + 1 under mu0, by the quadrature that Rényi accounting uses
    log_e2 = np.array([log_moment(1.0 + lam, q, noise_multiplier) for lam in _LAMBDAS])
    return np.maximum(log_e2, _log_e1(q, noise_multiplier))


def _pure(epsilon: float) -> np.ndarray:
    """Bound on the log moments of an epsilon-private mechanism, from the mean and the range of its loss."""
    if epsilon > 300.0:
        return np.full(LARGEST, math.inf)
    grown = math.expm1(epsilon)
    return _LAMBDAS * epsilon * grown + 0.5 * (_LAMBDAS * epsilon * math.exp(epsilon)) ** 2


def log_moments(found: Releases, *, replace_one: bool = False) -> np.ndarray:
    """alpha(lambda) of a composition at lambda = 1, ..., 32.

    Parameters
    ----------
    found : Releases
        Gaussians, with and without Poisson sampling, and pure mechanisms.
    replace_one : bool
        Whether neighbours replace a record; not with sampling.

    Returns
    -------
    ndarray of shape (32,)
        In nats.
    """
    change = 2.0 if replace_one else 1.0
    total = 0.5 * _LAMBDAS * (_LAMBDAS + 1.0) * change * change * found.mu_squared
    for rate, noise, count in found.sampled:
        total = total + count * _sampled(rate, noise)
    for noise, count in found.laplace:
        total = total + count * _pure(change / noise)
    for statement in found.epsilon_delta:
        total = total + statement.times * _pure(statement.epsilon)
    return total * _UP


_UP = 1.0 + 1e-11  # covers the rounding of a moment; the tail bound on delta cancels and has its own


def _epsilon(lambdas: np.ndarray, moments: np.ndarray, delta: float) -> float:
    return max(0.0, float(np.min((moments - math.log(delta)) / lambdas)))


def _delta(lambdas: np.ndarray, moments: np.ndarray, epsilon: float) -> float:
    exponent = moments - lambdas * epsilon + 9e-16 * (moments + lambdas * epsilon)
    return math.exp(min(0.0, float(np.min(exponent))))


def moments_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Epsilon at `delta` by the tail bound, solved for epsilon.

    Parameters
    ----------
    found : Releases
    delta : float
        In (0, 1).
    replace_one : bool

    Returns
    -------
    float
        In nats, at least 0.
    """
    return _epsilon(_LAMBDAS, log_moments(found, replace_one=replace_one), delta)


def moments_delta(found: Releases, epsilon: float, *, replace_one: bool = False) -> float:
    """Delta at `epsilon` by the tail bound.

    Parameters
    ----------
    found : Releases
    epsilon : float
        In nats, at least 0.
    replace_one : bool

    Returns
    -------
    float
        In [0, 1].
    """
    return _delta(_LAMBDAS, log_moments(found, replace_one=replace_one), epsilon)


def moments_refusal(found: Releases, replace_one: bool) -> Exception | None:
    """Why log moments have no price for a composition, without a remedy; None if they have one."""
    if any(statement.delta > 0.0 for statement in found.epsilon_delta):
        return TypeError("event=EpsilonDeltaDpEvent with delta > 0 has no price here by method='moments'")
    return None


def asymptotic_refusal(found: Releases, replace_one: bool) -> Exception | None:
    """Which condition of Lemma 3 a composition breaks, without a remedy; None if it keeps them all."""
    for rate, noise, _ in found.sampled:
        if noise < 1.0:
            return ValueError(
                f"noise_multiplier={noise:g} breaks the condition sigma >= 1 of method='moments_asymptotic'"
            )
        if not rate < 1.0 / (16.0 * noise):
            return ValueError(
                f"sampling_probability={rate:g} breaks the condition q < 1 / (16 sigma) = {1.0 / (16.0 * noise):g} of "
                "method='moments_asymptotic'"
            )
    return None


def _asymptotic(found: Releases, change: float) -> tuple[np.ndarray, np.ndarray]:
    """Lambdas that Lemma 3 admits and the leading term of the log moments there."""
    # q < 1/(16 sigma) and sigma >= 1 leave at least lambda = 2
    most = min((s * s * -math.log(q * s) for q, s, _ in found.sampled), default=1e4)
    lambdas = np.arange(1.0, min(math.floor(most), 100_000) + 1.0)
    total = 0.5 * lambdas * (lambdas + 1.0) * change * change * found.mu_squared
    for q, s, count in found.sampled:
        total = total + count * q * q * lambdas * (lambdas + 1.0) / ((1.0 - q) * s * s)
    return lambdas, total


def asymptotic_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Epsilon at `delta` from the leading term of the log moment (Lemma 3): not a guarantee.

    The lemma's bound is q^2 lambda (lambda + 1) / ((1 - q) sigma^2) + O(q^3 lambda^3 / sigma^3) for sigma >= 1,
    q < 1 / (16 sigma) and lambda <= sigma^2 log(1 / (q sigma)); the remainder has no constant and is left out.

    Parameters
    ----------
    found : Releases
        That `asymptotic_refusal` has nothing against.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record; not with sampling.

    Returns
    -------
    float
        In nats, at least 0.
    """
    return _epsilon(*_asymptotic(found, 2.0 if replace_one else 1.0), delta)


def asymptotic_delta(found: Releases, epsilon: float, *, replace_one: bool = False) -> float:
    """Delta at `epsilon` from the leading term of the log moment; see `asymptotic_epsilon`."""
    return _delta(*_asymptotic(found, 2.0 if replace_one else 1.0), epsilon)
