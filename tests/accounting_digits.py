"""Exact hockey-stick divergences of sampled Gaussians, alone and beside others, in as many digits as it takes."""

from __future__ import annotations

import mpmath

__all__ = ["DIGITS", "beside_responses", "of_one", "of_two"]

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
    """Delta of one sampled Gaussian and `count` randomised responses of epsilon `size`."""
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


def of_two(q: float, sigma: float, epsilon: float, replace_one: bool) -> mpmath.mpf:
    """Delta of two sampled Gaussians: an integral over the first, of the closed form of the second."""
    with mpmath.workdps(DIGITS):
        m, rate, found = 1 / mpmath.mpf(sigma), mpmath.mpf(q), []

        def mixture(z):
            return 1 - rate + rate * mpmath.exp(m * z - m * m / 2)

        def density(kind, z):
            return mpmath.npdf(z) * (1 if kind == "add" else mixture(z))

        def loss(kind, z):
            below = 1 if kind == "remove" else mixture(-z)
            above = 1 if kind == "add" else mixture(z)
            return mpmath.log(above / below)

        for kind in kinds(replace_one):
            # closer and closer ends around where the profile of the second bends
            if loss(kind, mpmath.mpf(35)) < epsilon:
                bend = mpmath.mpf(6)
            else:
                bend = mpmath.findroot(lambda z: loss(kind, z) - epsilon, (-20, 35), solver="anderson", tol=1e-20)  # noqa: B023
            ends = [bend + sign * mpmath.mpf(2) ** -k for k in range(20) for sign in (-1, 1)]
            ends = sorted([*ends, *range(-22, int(bend) - 1), *range(int(bend) + 3, 36)])

            def integrand(z):
                return density(kind, z) * of_one(kind, q, sigma, epsilon - loss(kind, z))  # noqa: B023

            found.append(mpmath.quad(integrand, ends, method="gauss-legendre", maxdegree=4))
        return max(found)
