"""Gaussian differential privacy: the central limit approximation. It can be too small and is never charged.

The losses of many small steps add up to nearly a Gaussian loss, so a composition is taken for one Gaussian
mechanism of shift mu, with mu^2 a sum over the steps:

    Gaussian                        1 / s^2                                 exact (Dong, Roth & Su 2022, Cor. 3.3)
    Poisson-sampled Gaussian        q^2 (e^{1/s^2} - 1)                     Bu, Dong, Long & Su 2020
    sample of fixed size, replace   2 q^2 (e^{m^2} Phi(3m/2) + 3 Phi(-m/2) - 2)   Dong, Roth & Su 2022, Section 5

with m the shift of one step in units of its noise. The error has either sign and no bound that is of use here.
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from ..formulas.gaussian import gaussian_delta, gaussian_epsilon
from ..releases import Releases


def gdp_mu(found: Releases, *, replace_one: bool = False) -> float:
    """Shift of the Gaussian mechanism that a composition is taken for.

    Parameters
    ----------
    found : Releases
        Gaussians, plain, Poisson-sampled (not under `replace_one`), or on samples of fixed size.
    replace_one : bool
        Whether neighbours replace a record.

    Returns
    -------
    float
        inf where the noise is too small for the formula.
    """
    change = 2.0 if replace_one else 1.0
    total = change * change * found.mu_squared
    for rate, noise, count in found.sampled:
        total += count * rate * rate * math.expm1(noise**-2) if noise > 0.04 else math.inf
    for share, noise, count in found.without_replacement:
        m = change / noise
        if m > 25.0:
            return math.inf
        excess = math.exp(m * m) * float(ndtr(1.5 * m)) + 3.0 * float(ndtr(-0.5 * m)) - 2.0
        total += count * 2.0 * share * share * excess
    return math.sqrt(total)


def gdp_epsilon(found: Releases, delta: float, *, replace_one: bool = False) -> float:
    """Approximate epsilon at `delta`: not a guarantee."""
    mu = gdp_mu(found, replace_one=replace_one)
    return gaussian_epsilon(delta, mu) if mu < 1e150 else math.inf


def gdp_delta(found: Releases, epsilon: float, *, replace_one: bool = False) -> float:
    """Approximate delta at `epsilon`: not a guarantee."""
    mu = gdp_mu(found, replace_one=replace_one)
    return gaussian_delta(epsilon, mu) if mu < 1e150 else 1.0
