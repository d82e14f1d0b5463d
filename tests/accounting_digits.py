"""Exact hockey-stick divergences of sampled Gaussians, alone and beside others, in as many digits as it takes."""

from __future__ import annotations

import mpmath

DIGITS = 130


def of_one(kind: str, q: float, sigma: float, log_tau: mpmath.mpf) -> mpmath.mpf:
    """Of the pair `kind` of one Poisson-sampled Gaussian, at any e^epsilon: P - tau Q of the best half-line."""
    q, m, tau = mpmath.mpf(q), 1 / mpmath.mpf(sigma), mpmath.exp(log_tau)
    upper = lambda z: mpmath.ncdf(-z)  # noqa: E731
    if kind == "remove":
        if tau <= 1 - q:
            return 1 - tau
        z = mpmath.log((tau - 1 + q) / q) / m + m / 2
        return q * upper(z - m) - (tau - 1 + q) * upper(z)
    if kind == "add":
        if tau * (1 - q) >= 1:
            return mpmath.mpf(0)
        z = -(mpmath.log((1 / tau - 1 + q) / q) / m + m / 2)
        return upper(z) - tau * ((1 - q) * upper(z) + q * upper(z + m))
    c, d = q * mpmath.exp(-m * m / 2), (1 - q) * (1 - tau)
    z = mpmath.log((mpmath.sqrt(d * d + 4 * c * c * tau) - d) / (2 * c)) / m
    return d * upper(z) + q * upper(z - m) - tau * q * upper(z + m)


def kinds(replace_one: bool) -> tuple[str, ...]:
    return ("replace",) if replace_one else ("remove", "add")


def beside_responses(q: float, sigma: float, size: float, count: int, epsilon: float, replace_one: bool) -> mpmath.mpf:
    """Delta of one sampled Gaussian and `count` randomized responses of epsilon `size`."""
    with mpmath.workdps(DIGITS):
        size, lie = mpmath.mpf(size), 1 / (1 + mpmath.exp(mpmath.mpf(size)))
        found = []
        for kind in kinds(replace_one):
            parts = []
            for lies in range(count + 1):
                chance = mpmath.binomial(count, lies) * lie**lies * (1 - lie) ** (count - lies)
                parts.append(chance * of_one(kind, q, sigma, epsilon - (count - 2 * lies) * size))
            found.append(mpmath.fsum(parts))
        return max(found)
