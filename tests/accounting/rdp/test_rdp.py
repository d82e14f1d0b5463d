"""Rényi prices against the published series, dp-accounting and the figures of the design."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from accounting_reference import dpsgd
from combinations import over_rows

from skdp.accounting import (
    ComposedDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
    get_delta,
    get_epsilon,
    to_dp_accounting,
)
from skdp.accounting.formulas.selection_law import halting_probability
from skdp.accounting.rdp import sampled as _rdp_sampled
from skdp.accounting.rdp.rdp import rdp
from skdp.accounting.rdp.sampled import log_moment
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


def test_never_looser_than_dp_accounting():
    pytest.importorskip("dp_accounting")
    from dp_accounting import rdp

    from skdp.accounting import to_dp_accounting

    rng = np.random.default_rng(5)
    for _ in range(10):
        q, sigma, steps = 10 ** rng.uniform(-4, 0), 10 ** rng.uniform(-0.3, 1.5), int(10 ** rng.uniform(0, 4))
        event = SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)
        theirs = rdp.RdpAccountant().compose(to_dp_accounting(event)).get_epsilon(1e-6)
        assert get_epsilon(event, 1e-6, method="rdp") <= theirs * (1.0 + 1e-9) + 1e-300


def test_rdp_is_above_pld_and_delta_inverts_epsilon():
    event = ComposedDpEvent(
        (SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(1.3)), 700), GaussianDpEvent(4.0))
    )
    for delta in (1e-3, 1e-6, 1e-10):
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


REPLACED = [
    (1.01, 1e-4, 5.0),
    (2.0, 0.01, 1.0),
    (9.3, 0.3, 0.7),
    (64.0, 0.02, 3.0),
    (1.5, 1e-6, 50.0),
    (33.0, 0.9, 2.0),
]


@over_rows(("alpha", "q", "sigma"), REPLACED)
def test_replaced_record_is_the_integral(alpha, q, sigma):
    assert log_moment(alpha, q, sigma, replace_one=True) == pytest.approx(replaced(alpha, q, sigma), rel=1e-11)


@over_rows(("alpha", "q", "sigma"), [*REPLACED, (3.5, 0.05, 0.1), (2500.0, 0.3, 1.0), (1e6, 1e-3, 1e3)])
def test_bound_of_a_replaced_record_beyond_the_integral_is_above_it(alpha, q, sigma):
    bound = _rdp_sampled._by_removal(alpha, q, sigma)
    exact = _rdp_sampled._log_moment_quadrature(alpha, q, 1.0 / sigma, True)
    assert exact <= bound * (1.0 + 1e-12)
    assert log_moment(alpha, q, sigma) <= exact * (1.0 + 1e-12)


def test_price_of_a_replaced_record_is_between_pld_and_the_doubled_shift():
    for q, sigma, steps in [(0.01, 4.0, 10_000), (0.001, 1.0, 100_000), (0.2, 5.0, 300), (0.9, 30.0, 50)]:
        event = dpsgd(q, sigma, steps)
        for delta in (1e-3, 1e-6, 1e-10):
            ours = get_epsilon(event, delta, method="rdp", adjacency="replace_one")
            exact = get_epsilon(event, delta, adjacency="replace_one")
            assert exact < ours < 1.2 * exact
            assert get_epsilon(event, delta, method="rdp") < ours
            assert ours <= get_epsilon(
                SelfComposedDpEvent(GaussianDpEvent(sigma), steps), delta, method="rdp", adjacency="replace_one"
            )
            assert get_delta(event, ours, method="rdp", adjacency="replace_one") == pytest.approx(delta, rel=1e-4)


# --- events other than the Gaussian ------------------------------------------------------------------------


def their_rdp(event, orders, replace=False):
    """Divergences by dp-accounting."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    relation = NeighboringRelation.REPLACE_ONE if replace else NeighboringRelation.ADD_OR_REMOVE_ONE
    return RdpAccountant(list(orders), relation).compose(to_dp_accounting(event)).rdp


@over_rows(("n", "m", "sigma"), [(1000, 10, 4.0), (50, 5, 2.0), (10, 3, 10.0), (100_000, 30, 1.4)])
def test_without_replacement_agrees_with_dp_accounting(n, m, sigma):
    orders = (2.0, 3.0, 4.0, 7.5, 33.0, 256.0, 300.0)
    # theirs takes the noise relative to the sensitivity of the relation, ours to one record's contribution
    theirs = their_rdp(SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(sigma / 2)), orders, replace=True)
    event = releases(SampledWithoutReplacementDpEvent(n, m, GaussianDpEvent(sigma)))
    for alpha, expected in zip(orders, theirs, strict=True):
        found = rdp(event, alpha, replace_one=True)
        unsampled = alpha * 2 / sigma**2
        assert found == pytest.approx(min(expected, unsampled), rel=1e-6)


@over_rows("shape", [0.0, 0.5, 1.0, 5.0])
@over_rows("mean", [1.0, 1.001, 2.0, 10.0, 1e5])
def test_halting_probability_agrees_with_dp_accounting_on_the_safe_side(mean, shape):
    pytest.importorskip("dp_accounting")
    from dp_accounting.rdp.rdp_privacy_accountant import _gamma_truncated_negative_binomial

    theirs = _gamma_truncated_negative_binomial(shape, mean, tolerance=1e-12)
    assert halting_probability(mean, shape) == pytest.approx(theirs, rel=1e-10)


SELECTIONS = [
    (RepeatAndSelectDpEvent(GaussianDpEvent(3.0), 5.0, 1.0), 0.25),
    (RepeatAndSelectDpEvent(SelfComposedDpEvent(GaussianDpEvent(20.0), 10), 10.0, 0.0), 0.25),
    (RepeatAndSelectDpEvent(GaussianDpEvent(3.0), 5.0, math.inf), 0.05),
    (SelfComposedDpEvent(RepeatAndSelectDpEvent(GaussianDpEvent(10.0), 3.0, 0.5), 4), 0.45),
]


@over_rows(("event", "within"), SELECTIONS)
def test_selection_never_costs_more_than_by_dp_accounting(event, within):
    # they take one order for every chance of being beaten (Papernot & Steinke 2022, Theorem 2), ours the best for each
    pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import RdpAccountant

    theirs = RdpAccountant([1.0 + 10.0 ** (k / 60.0) for k in range(-120, 200)])
    theirs = theirs.compose(to_dp_accounting(event)).get_epsilon(1e-6)
    ours = get_epsilon(event, 1e-6, method="rdp")
    assert theirs * (1 - within) <= ours <= theirs * (1 + 1e-9)


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


def test_replaced_records_double_the_shift_of_laplace_but_not_a_statement():
    def price(event):
        return get_epsilon(event, 1e-6, method="rdp", adjacency="replace_one")

    assert price(LaplaceDpEvent(4.0)) == pytest.approx(get_epsilon(LaplaceDpEvent(2.0), 1e-6, method="rdp"))
    for event in (ZCDpEvent(0.1), EpsilonDeltaDpEvent(0.5, 0.0)):
        assert price(event) == get_epsilon(event, 1e-6, method="rdp")
