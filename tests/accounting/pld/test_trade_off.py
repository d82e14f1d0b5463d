"""What attackers gain: against closed forms, exact sums, and from both sides."""

import math

import numpy as np
import pytest
from accounting_exact import drawn, event_of, lattice_delta
from combinations import over_rows
from scipy.stats import laplace, norm

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    PrivacyProfile,
    SelfComposedDpEvent,
    compose,
)

SAMPLED = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 200)
FPR = np.array([1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9])


def gaussian_rate(fpr, mu):
    return norm.sf(norm.isf(fpr) - mu)


def laplace_rate(fpr, epsilon):
    """True positives of the likelihood ratio between Laplace laws that are epsilon apart."""
    low = fpr <= 0.5 * math.exp(-epsilon)
    middle = 1.0 - 0.25 * math.exp(-epsilon) / fpr
    return np.where(low, math.exp(epsilon) * fpr, np.where(fpr <= 0.5, middle, 1.0 - math.exp(-epsilon) * (1.0 - fpr)))


def test_a_gaussian_has_its_closed_forms():
    profile = PrivacyProfile(SelfComposedDpEvent(GaussianDpEvent(3.0), 4))
    mu = 2.0 / 3.0
    assert profile.advantage() == pytest.approx(2.0 * norm.cdf(mu / 2.0) - 1.0, rel=1e-9)
    assert profile.true_positive_rate(FPR) == pytest.approx(gaussian_rate(FPR, mu), rel=1e-9)
    trade_off, exact = profile.trade_off(FPR), 1.0 - gaussian_rate(FPR, mu)
    assert np.all((exact - 1e-4 <= trade_off) & (trade_off <= exact + 1e-12))
    assert profile.trade_off([0.0, 1.0]) == pytest.approx([1.0, 0.0], abs=1e-11)
    assert profile.mu_bounds() == pytest.approx((mu, mu), rel=1e-9)


@over_rows("epsilon", [0.2, 3.0])
def test_a_laplace_has_its_closed_form_from_above(epsilon):
    profile = PrivacyProfile(LaplaceDpEvent(1.0 / epsilon))
    exact = laplace_rate(FPR, epsilon)
    found = profile.true_positive_rate(FPR)
    assert np.all(found >= exact * (1.0 - 1e-12))
    assert found == pytest.approx(exact, rel=2e-4)
    assert profile.advantage() == pytest.approx(-math.expm1(-epsilon / 2.0), rel=1e-4)


def test_of_both_directions_the_one_in_which_more_is_found_counts():
    rate, sigma, scale = 0.2, 2.0, 5.0
    z, y = np.linspace(-20.0, 21.0, 1201), np.linspace(0.0, 1.0, 401)
    absent, drawn_in = norm.pdf(z / sigma), norm.pdf((z - 1.0) / sigma)
    drawn_in = (1.0 - rate) * absent / absent.sum() + rate * drawn_in / drawn_in.sum()

    def cells(shift):
        tail = laplace.cdf(y - shift, scale=scale)
        return np.concatenate([tail[:1], np.diff(tail), 1.0 - tail[-1:]])

    there = np.multiply.outer(drawn_in, cells(1.0)).ravel()
    away = np.multiply.outer(absent / absent.sum(), cells(0.0)).ravel()
    order = np.argsort(away / there)
    exact = np.interp(0.01, np.cumsum(away[order]), np.cumsum(there[order]))
    other = np.interp(0.01, np.cumsum(there[order[::-1]]), np.cumsum(away[order[::-1]]))
    event = compose([PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), LaplaceDpEvent(scale)])
    assert other < 0.95 * exact
    assert exact * (1.0 - 1e-3) <= PrivacyProfile(event).true_positive_rate(0.01) <= exact * (1.0 + 1e-3)


@over_rows("case", drawn(2, seed=32))
def test_no_figure_is_below_the_exact_one(case):
    profile = PrivacyProfile(event_of(case.parts), adjacency=case.adjacency)
    for at in (0.0, 0.5):
        delta = profile(at)
        assert lattice_delta(case.parts, at, max(delta, 1e-12), case.replace_one) <= delta * (1.0 + 1e-9) + 1e-13


S = SelfComposedDpEvent
ADD, REPLACE = "add_remove", "replace_one"
BRACKETED = [
    (SAMPLED, ADD),
    (S(LaplaceDpEvent(0.175), 7), ADD),  # a test that errs seldom
    (S(PoissonSampledDpEvent(3.3e-6, GaussianDpEvent(0.361)), 1970), ADD),
    (S(PoissonSampledDpEvent(1.1e-5, GaussianDpEvent(0.341)), 73), REPLACE),
    (S(EpsilonDeltaDpEvent(0.0265, 1.37e-4), 6), REPLACE),
    (S(EpsilonDeltaDpEvent(0.0, 1e-4), 3), ADD),
]


@over_rows(("event", "adjacency"), BRACKETED)
def test_mu_is_bracketed(event, adjacency):
    profile = PrivacyProfile(event, adjacency=adjacency)
    for alpha_min in (1e-3, 1e-6):
        lower, upper = profile.mu_bounds(alpha_min)
        assert 0.0 < lower <= upper <= lower * 1.001


def test_the_curve_of_mu_lies_below_the_trade_off_function_where_it_is_promised_and_no_smaller_one_does():
    profile, alpha_min = PrivacyProfile(SAMPLED), 1e-4
    mu = profile.mu(alpha_min)
    alpha = np.geomspace(alpha_min, 0.5, 400)
    beta = np.asarray(profile.trade_off(alpha))
    assert np.all(norm.cdf(norm.isf(alpha) - mu) <= beta + 1e-12)
    assert np.any(norm.cdf(norm.isf(alpha) - 0.998 * mu) > beta)


def test_mu_is_infinite_where_a_test_hardly_errs():
    heavy = SelfComposedDpEvent(LaplaceDpEvent(0.5), 40)
    assert PrivacyProfile(heavy).mu_bounds(1e-3) == (math.inf, math.inf)
    assert PrivacyProfile(NonPrivateDpEvent()).mu() == math.inf
    assert PrivacyProfile(NoOpDpEvent()).mu_bounds() == (0.0, 0.0)


@over_rows("prior", [0.1, 0.7])
def test_the_least_error_of_a_guess_about_a_gaussian_is_the_integral_of_the_smaller_density(prior):
    z = np.linspace(-9.0, 10.0, 200_001)
    smaller = np.minimum(prior * norm.pdf(z - 1.0), (1.0 - prior) * norm.pdf(z))
    exact = float(smaller.sum() * (z[1] - z[0]))
    assert PrivacyProfile(GaussianDpEvent(1.0)).bayes_risk(prior) == pytest.approx(exact, rel=1e-4)


def test_reconstruction_and_singling_out_are_bounded_by_the_trade_off_function():
    profile = PrivacyProfile(SAMPLED)
    assert profile.reconstruction(0.01) == pytest.approx(1.0 - profile.trade_off(0.01), rel=1e-12)
    assert profile.singling_out([0.01, 1e-4]).tolist() == profile.reconstruction([0.01, 1e-4]).tolist()
