"""Rényi costs against the published series, dp-accounting and the figures of the design."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from combinations import over_rows

from skdp.accounting import (
    ComposedDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    get_delta,
    get_epsilon,
    to_dp_accounting,
)
from skdp.accounting.rdp import mechanisms
from skdp.accounting.rdp.mechanisms import log_moment
from skdp.accounting.rdp.rdp import rdp
from skdp.accounting.releases import releases


def dense(alpha: float, q: float, sigma: float) -> float:
    """log A(alpha) by the plain definition on a dense grid."""
    step = 2.0**-11
    z = np.arange(-14.0, alpha / sigma + 14.0, step)
    logs = alpha * np.logaddexp(math.log1p(-q), math.log(q) + z / sigma - 0.5 / sigma**2) - 0.5 * z * z
    return float(np.logaddexp.reduce(logs)) + math.log(step) - 0.5 * math.log(2 * math.pi)


@over_rows("q", [1e-3, 0.5])
@over_rows("sigma", [0.1, 4.0])
@over_rows("alpha", [1.1, 2.5, 33.7])
def test_fractional_orders_are_the_definition(q, sigma, alpha):
    assert log_moment(alpha, q, sigma) == pytest.approx(dense(alpha, q, sigma), rel=1e-9, abs=1e-11)


def test_small_divergences_keep_their_digits():
    # A - 1 = q^2 alpha (alpha - 1) (e^{1/sigma^2} - 1) / 2 to leading order: 1e-18 here, below what 1 + x can hold
    q, sigma, alpha = 1e-8, 10.0, 2.0
    assert log_moment(alpha, q, sigma) == pytest.approx(q * q * math.expm1(1 / sigma**2), rel=1e-9)
    assert log_moment(2.5, q, sigma) == pytest.approx(q * q * 1.875 * math.expm1(1 / sigma**2), rel=1e-6)


def test_rdp_is_above_pld_and_delta_inverts_epsilon():
    event = ComposedDpEvent(
        (SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(1.3)), 700), GaussianDpEvent(4.0))
    )
    for delta in (1e-3, 1e-10):
        epsilon = get_epsilon(event, delta, method="rdp")
        assert epsilon >= get_epsilon(event, delta)
        assert get_delta(event, epsilon, method="rdp") == pytest.approx(delta, rel=1e-4)
        assert get_delta(event, epsilon, method="rdp") >= get_delta(event, epsilon)


# --- Poisson sampling of a Gaussian when a record is replaced ------------------------------------------------


def replaced(alpha: float, q: float, sigma: float) -> float:
    """log A(alpha) of the antipodal pair by the definition, to 30 digits.

    A sum at steps of 1/8 is exact but for e^(-16 pi d) where the integrand is analytic within d of the real line, and
    d = pi sigma is 2.2 at the least.
    """
    with mpmath.workdps(30):
        order, q_, m = mpmath.mpf(alpha), mpmath.mpf(q), 1 / mpmath.mpf(sigma)

        def mixture(z, shift):
            return (1 - q_) * mpmath.npdf(z) + q_ * mpmath.npdf(z, shift)

        end = (2 * order - 1) * m + 16
        points = mpmath.arange(-16 - m, end, 0.125)
        total = mpmath.fsum(mixture(z, m) ** order * mixture(z, -m) ** (1 - order) for z in points)
        return float(mpmath.log(total / 8))


REPLACED = [(1.01, 1e-4, 5.0), (9.3, 0.3, 0.7), (64.0, 0.02, 3.0)]


@over_rows(("alpha", "q", "sigma"), REPLACED)
def test_replaced_record_is_the_integral(alpha, q, sigma):
    assert log_moment(alpha, q, sigma, replace_one=True) == pytest.approx(replaced(alpha, q, sigma), rel=1e-11)


@over_rows(("alpha", "q", "sigma"), [*REPLACED, (3.5, 0.05, 0.1), (2500.0, 0.3, 1.0), (1e6, 1e-3, 1e3)])
def test_bound_of_a_replaced_record_beyond_the_integral_is_above_it(alpha, q, sigma):
    bound = mechanisms._by_removal(alpha, q, sigma)
    exact = mechanisms._log_moment_quadrature(alpha, q, 1.0 / sigma, True)
    assert exact <= bound * (1.0 + 1e-12)
    assert log_moment(alpha, q, sigma) <= exact * (1.0 + 1e-12)


# --- events other than the Gaussian ------------------------------------------------------------------------


def their_rdp(event, orders, replace=False):
    """Divergences by dp-accounting."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    relation = NeighboringRelation.REPLACE_ONE if replace else NeighboringRelation.ADD_OR_REMOVE_ONE
    return RdpAccountant(list(orders), relation).compose(to_dp_accounting(event)).rdp


@over_rows(("n", "m", "sigma"), [(50, 5, 2.0), (100_000, 30, 1.4)])
def test_without_replacement_agrees_with_dp_accounting(n, m, sigma):
    orders = (2.0, 3.0, 4.0, 7.5, 33.0, 256.0, 300.0)
    # theirs takes the noise relative to the sensitivity of the relation, ours to one record's contribution
    theirs = their_rdp(SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(sigma / 2)), orders, replace=True)
    event = releases(SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(sigma)))
    for alpha, expected in zip(orders, theirs, strict=True):
        found = rdp(event, alpha, replace_one=True)
        unsampled = alpha * 2 / sigma**2
        assert found == pytest.approx(min(expected, unsampled), rel=1e-6)


def test_pure_events_need_no_delta_and_deltas_are_set_aside():
    event = SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 0.0), 50)
    broken = SelfComposedDpEvent(EpsilonDeltaDpEvent(0.1, 1e-8), 50)
    taken = -math.expm1(50 * math.log1p(-1e-8))
    left = (1e-5 - taken) / (1.0 - taken)
    set_aside = get_epsilon(event, left, method="rdp")
    assert set_aside <= get_epsilon(broken, 1e-5, method="rdp") <= set_aside * (1 + 1e-9)
    assert get_delta(broken, 3.0, method="rdp") == pytest.approx(
        taken + (1 - taken) * get_delta(event, 3.0, method="rdp")
    )
    assert get_epsilon(broken, 1e-5) <= get_epsilon(broken, 1e-5, method="rdp")
