"""The plain Gaussian against its definition, in plain formulas and by numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from combinations import over_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.accounting.formulas import gaussian
from skdp.accounting.formulas.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu

LOG_MU = st.floats(-6.0, 3.0)
LOG_DELTA = st.floats(-15.0, -0.01)


def integrated_delta(epsilon: float, mu: float) -> float:
    """E_P[(1 - e^{eps - L})_+] with L ~ N(mu^2/2, mu^2), by the trapezoid rule in z."""
    start = epsilon / mu - mu / 2.0
    z = start + (np.arange(400_000) + 0.5) * (12.0 / 400_000)
    return float(np.sum(-np.expm1(-mu * (z - start)) * np.exp(-0.5 * z * z)) * 3e-5 / math.sqrt(2 * math.pi))


CASES = [
    (mu, shift)
    for mu in (1e-3, 0.05, 0.4, 1.0, 3.0, 30.0)
    for shift in (-1.0, 0.0, 2.0, 5.0, 7.5)
    if shift + mu / 2.0 >= 0.0  # epsilon is at least 0
]


@over_rows(("mu", "shift"), CASES)
def test_delta_is_the_integral(mu, shift):
    epsilon = mu * (shift + mu / 2.0)
    assert gaussian_delta(epsilon, mu) == pytest.approx(integrated_delta(epsilon, mu), rel=2e-8)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(LOG_MU, LOG_DELTA)
def test_epsilon_and_delta_are_inverse(log_mu, log_delta):
    mu, delta = 10.0**log_mu, 10.0**log_delta
    epsilon = gaussian_epsilon(delta, mu)
    assert 0.0 <= epsilon < math.inf
    if epsilon > 1e-9:
        assert gaussian_delta(epsilon, mu) <= delta * (1.0 + 1e-6)
        assert gaussian_delta(epsilon * (1.0 - 1e-8), mu) > delta * (1.0 - 1e-7)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(-4.0, 4.0), LOG_DELTA)
def test_mu_is_the_inverse_on_the_safe_side(log_epsilon, log_delta):
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_epsilon(delta, mu) <= epsilon
    assert gaussian_epsilon(delta, mu * (1.0 + 1e-8)) > epsilon * (1.0 - 1e-9)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-12])
def test_mu_of_delta_near_one_takes_few_steps(gap, monkeypatch):
    steps, one = [], gaussian.gaussian_epsilon
    monkeypatch.setattr(gaussian, "gaussian_epsilon", lambda *given: steps.append(given) or one(*given))
    mu = gaussian_mu(0.0, 1.0 - gap)
    assert one(1.0 - gap, mu) == 0.0
    assert len(steps) <= 50
    assert gaussian_delta(0.0, mu) >= 1.0 - 1.01 * gap - 1e-10


def test_extremes_stay_finite_and_ordered():
    for mu in (1e-300, 1e-9, 1e3, 1e6, 1e150):
        for epsilon in (0.0, 1e-12, 1.0, 1e6):
            assert 0.0 < gaussian_delta(epsilon, mu) <= 1.0
        for delta in (1e-300, 1e-15, 0.5, 1.0 - 1e-12):
            assert 0.0 <= gaussian_epsilon(delta, mu) < math.inf


def test_mu_of_the_largest_epsilon_is_finite():
    # The search for an upper end did not stop, as squares of mu overflow.
    assert 1e150 < gaussian_mu(1e308, 1e-6) < 2e150
