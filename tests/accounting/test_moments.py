"""The moments accountant as published, against plain integration, and the approximation of its Lemma 3."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accounting_reference import dpsgd
from combinations import over_rows

from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, get_epsilon
from skdp.accounting.classic import log_moments
from skdp.accounting.releases import releases

LAMBDAS = np.arange(1, 33)


def test_the_papers_case():
    event = dpsgd(0.01, 4.0, 10_000)
    assert get_epsilon(event, 1e-5, method="moments") == pytest.approx(1.2586, abs=5e-5)
    _, moments = log_moments(releases(event))
    assert LAMBDAS[np.argmin((moments + math.log(1e5)) / LAMBDAS)] == 19


def integrals(q: float, sigma: float, lam: int) -> tuple[float, float]:
    """log E1 and log E2 by their definitions, on a dense grid in log space."""
    x = np.arange(-16.0 * sigma, (lam + 17.0) * max(1.0, sigma), sigma / 256)
    mu0 = -0.5 * (x / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))
    mu = np.logaddexp(
        math.log1p(-q) + mu0, math.log(q) - 0.5 * ((x - 1) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))
    )
    e1 = np.logaddexp.reduce(mu0 + lam * (mu0 - mu)) + math.log(sigma / 256)
    e2 = np.logaddexp.reduce(mu + lam * (mu - mu0)) + math.log(sigma / 256)
    return float(e1), float(e2)


@over_rows("q", [1e-3, 0.9])
@over_rows("sigma", [0.2, 4.0])
@over_rows("lam", [1, 32])
def test_log_moments_are_their_definition(q, sigma, lam):
    e1, e2 = integrals(q, sigma, lam)
    found = log_moments(releases(dpsgd(q, sigma, 1)))[1][lam - 1]
    assert found == pytest.approx(max(e1, e2), rel=1e-7, abs=1e-11)


def test_plain_gaussians_and_replaced_records():
    event = SelfComposedDpEvent(GaussianDpEvent(5.0), 3)
    assert log_moments(releases(event))[1] == pytest.approx(LAMBDAS * (LAMBDAS + 1) * 3 / 50, rel=2e-11)
    doubled = get_epsilon(event, 1e-6, method="moments", adjacency="replace_one")
    half = get_epsilon(SelfComposedDpEvent(GaussianDpEvent(2.5), 3), 1e-6, method="moments")
    assert doubled == pytest.approx(half, rel=1e-12)


def test_asymptotic_bound_is_the_formula():
    q, sigma, steps, delta = 0.01, 4.0, 10_000, 1e-5
    lambdas = np.arange(1, math.floor(sigma**2 * math.log(1 / (q * sigma))) + 1)
    moments = steps * q * q * lambdas * (lambdas + 1) / ((1 - q) * sigma**2)
    expected = min((moments + math.log(1 / delta)) / lambdas)
    assert get_epsilon(dpsgd(q, sigma, steps), delta, method="moments_asymptotic") == pytest.approx(expected, rel=1e-12)


@over_rows(("q", "sigma", "condition"), [(0.001, 0.9, "sigma >= 1"), (0.05, 4.0, r"q < 1 / \(16 sigma\)")])
def test_asymptotic_conditions_are_named(q, sigma, condition):
    with pytest.raises(ValueError, match=f"violates the condition {condition}.*Use method='pld'") as error:
        get_epsilon(dpsgd(q, sigma, 10), 1e-5, method="moments_asymptotic")
    assert "\n" not in str(error.value)
