"""Rényi curves, privacy profiles and trade-off functions; groups of records."""

import itertools
import math
import warnings

import numpy as np
import pytest
from accounting_reference import fixed_outputs, gauss, hockey, poisson_outputs
from combinations import over_rows
from scipy.stats import norm

from skdp.accounting import (
    ComposedDpEvent,
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    PrivacyProfile,
    RenyiCurve,
    RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    ZCDpEvent,
    get_delta,
    get_epsilon,
)

G = GaussianDpEvent(1.0)
RUN = SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(1.2)), 300)
FIXED = SampledWithoutReplacementDpEvent(200, 10, GaussianDpEvent(2.0))


# --- curves -------------------------------------------------------------------------------------------------------


def test_the_renyi_curve_of_a_gaussian_is_a_line():
    curve = RenyiCurve(GaussianDpEvent(2.0))
    orders = np.array([[1.5, 2.0], [10.0, 300.0]])
    np.testing.assert_allclose(curve(orders), orders / 8.0, rtol=1e-10)
    assert isinstance(curve(2.0), float)
    np.testing.assert_allclose(RenyiCurve(GaussianDpEvent(2.0), adjacency="replace_one")(orders), orders / 2.0)
    assert curve.epsilon(1e-5) == get_epsilon(GaussianDpEvent(2.0), 1e-5, method="rdp")
    assert RenyiCurve(NonPrivateDpEvent())(2.0) == math.inf


def test_mu_of_a_gaussian_is_its_shift_over_its_noise():
    """Two sensitivities apart where a record is exchanged; the best test has power Phi(mu + Phi^-1(alpha))."""
    for adjacency, mu in (("zero_out", 0.25), ("replace_one", 0.5)):
        profile = PrivacyProfile(GaussianDpEvent(4.0), adjacency=adjacency)
        assert mu <= profile.mu() <= mu * (1.0 + 1e-11)
        assert profile.true_positive_rate(0.05) == pytest.approx(norm.cdf(mu + norm.ppf(0.05)), rel=1e-9)


def test_renyi_curves_reject_what_has_none():
    with pytest.raises(TypeError, match=r"with delta > 0 has no Rényi divergence. Use PrivacyProfile"):
        RenyiCurve(ComposedDpEvent((G, EpsilonDeltaDpEvent(0.1, 1e-6))))
    with pytest.raises(ValueError, match=r"requires adjacency='replace_one'. Use PrivacyProfile"):
        RenyiCurve(FIXED)


@over_rows(
    ("event", "adjacency"),
    [(RUN, "zero_out"), (ComposedDpEvent((RUN, LaplaceDpEvent(3.0), EpsilonDeltaDpEvent(0.1, 1e-6))), "zero_out")],
)
def test_profiles_are_above_the_price_and_close_to_it(event, adjacency):
    profile = PrivacyProfile(event, adjacency=adjacency)
    for epsilon in np.linspace(0.0, 0.9 * profile.epsilons[-1], 4):
        delta = get_delta(event, float(epsilon), adjacency=adjacency)
        assert profile(epsilon) >= delta * (1.0 - 1e-3)  # both are bounds from above
        assert profile(epsilon) <= delta * 1.02 + 1e-11
    assert np.all(np.diff(profile.epsilons) > 0.0)
    assert np.all(np.diff(profile.deltas) <= 0.0)
    many = profile(np.array([[0.1, 0.2]]))
    assert many.shape == (1, 2)
    assert many[0, 0] == profile(0.1)
    delta = 1e-3
    assert profile.epsilon(delta) == pytest.approx(get_epsilon(event, delta, adjacency=adjacency), rel=5e-3)


def test_profile_by_method_is_the_delta_of_that_method():
    profile, delta = PrivacyProfile(G, method="rdp"), get_delta(G, 1.0, method="rdp")
    assert delta > 1.5 * get_delta(G, 1.0)
    assert delta * (1.0 - 1e-9) <= profile(1.0) <= delta * 1.01


def test_profile_of_sparse_points_is_above_delta_between_them():
    """With little noise, points are more than 600 nats apart, and no chord is drawn between them."""
    profile = PrivacyProfile(GaussianDpEvent(1e-3))
    middles = 0.5 * (profile.epsilons[1:] + profile.epsilons[:-1])
    falling = (profile.deltas[:-1] < 0.99) & (profile.deltas[1:] > 0.01)
    assert falling.sum() >= 3
    assert all(profile(at) >= get_delta(profile.event, at) for at in middles[falling])


# --- groups -------------------------------------------------------------------------------------------------------


def test_groups_of_sums_have_as_many_times_the_shift():
    for one, three in (
        (GaussianDpEvent(6.0), GaussianDpEvent(2.0)),
        (LaplaceDpEvent(6.0), LaplaceDpEvent(2.0)),
        (DiscreteLaplaceDpEvent(0.2, 2), DiscreteLaplaceDpEvent(0.2, 6)),
        (DiscreteGaussianDpEvent(9.0, 2), DiscreteGaussianDpEvent(9.0, 6)),
        (SelfComposedDpEvent(LaplaceDpEvent(6.0), 5), SelfComposedDpEvent(LaplaceDpEvent(2.0), 5)),
        (WorstOfDpEvent((GaussianDpEvent(6.0), LaplaceDpEvent(6.0))),
         WorstOfDpEvent((GaussianDpEvent(2.0), LaplaceDpEvent(2.0)))),
        (RepeatAndSelectDpEvent(GaussianDpEvent(6.0), 3.0, 1.0),
         RepeatAndSelectDpEvent(GaussianDpEvent(2.0), 3.0, 1.0)),
    ):  # fmt: skip
        for method in ("pld", "rdp"):
            assert get_epsilon(one, 1e-5, method=method, group_size=3) == get_epsilon(three, 1e-5, method=method)
            assert get_delta(one, 0.5, method=method, group_size=3) == get_delta(three, 0.5, method=method)
    assert get_epsilon(ZCDpEvent(0.1), 1e-5, method="rdp", group_size=3) == get_epsilon(
        ZCDpEvent(9 * 0.1), 1e-5, method="rdp"
    )
    assert get_epsilon(NonPrivateDpEvent(), 1e-5, group_size=3) == math.inf


@over_rows(("adjacency", "k"), [("zero_out", 3), ("replace_one", 2)])
def test_groups_on_a_poisson_sample_by_summation(adjacency, k):
    q, sigma = 0.3, 1.2
    event, law = PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), gauss(sigma)
    all_of_it = poisson_outputs(law, [1] * k, q)
    mixed = poisson_outputs(law, [1, -1, 1][:k], q)
    other = poisson_outputs(law, [] if adjacency == "zero_out" else [-1] * k, q)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        cost = get_delta(event, epsilon, adjacency=adjacency, group_size=k)
        truth = max(hockey(all_of_it, other, epsilon), hockey(other, all_of_it, epsilon))
        assert truth * (1.0 - 1e-6) <= cost <= truth * 1.001
        assert cost >= max(hockey(mixed, other, epsilon), hockey(other, mixed, epsilon)) * (1.0 - 1e-6)


def test_groups_of_mixtures_are_sums_of_independent_draws():
    shifts, shares, law = (0.0, 1.0, 2.5), (0.6, 0.3, 0.1), gauss(1.3)
    mixture = MixtureOfGaussiansDpEvent(1.3, shifts, shares)
    draws = itertools.product(zip(shares, shifts, strict=True), repeat=2)
    p = sum(a * b * law(c + d) for (a, c), (b, d) in draws)
    for epsilon in (0.0, 0.5, 1.5):
        truth = max(hockey(p, law(0), epsilon), hockey(law(0), p, epsilon))
        assert get_delta(mixture, epsilon, group_size=2) == pytest.approx(truth, rel=1e-3)


def test_groups_of_statements_add_up_what_a_chain_loses():
    epsilon, delta, k = 0.3, 1e-4, 4
    event, chain = EpsilonDeltaDpEvent(epsilon, delta), delta * math.expm1(k * epsilon) / math.expm1(epsilon)
    assert get_delta(event, k * epsilon, group_size=k) == pytest.approx(chain, rel=1e-8)
    assert get_epsilon(EpsilonDeltaDpEvent(3.0, 0.2), 1e-5, group_size=3) == math.inf


def test_groups_of_fixed_samples_are_bounded_by_the_profile():
    options = {"adjacency": "replace_one"}
    costs = [get_epsilon(FIXED, 1e-5, group_size=k, **options) for k in (1, 2, 3, 6)]
    assert costs == sorted(costs)
    assert costs[-1] < math.inf
    assert get_delta(FIXED, costs[2], group_size=3, **options) <= 1e-5 * 1.05
    # two records of a fixed sample, written out: the sum of 2 of 5 records
    p, q = (fixed_outputs(gauss(2.0), [-1.0, -1.0, -1.0, end, end], 2) for end in (1.0, -1.0))
    event = SampledWithoutReplacementDpEvent(5, 2, GaussianDpEvent(2.0))
    for epsilon in (0.0, 0.3, 1.0):
        assert get_delta(event, epsilon, group_size=2, **options) >= max(hockey(p, q, epsilon), hockey(q, p, epsilon))
    with pytest.raises(TypeError, match=r"group_size=2 is not supported by method='rdp'. Use method='pld'"):
        get_epsilon(FIXED, 1e-5, group_size=2, method="rdp", **options)


@over_rows("event", [RUN, LaplaceDpEvent(1.0), PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0))])
def test_renyi_curves_are_infinite_at_orders_that_are_too_large(event):
    with warnings.catch_warnings(action="error"):
        values = RenyiCurve(event)([1.0 + 1e-9, 1e9, 1e300, math.inf])
    assert values[2:].tolist() == [math.inf, math.inf]
    assert 0.0 < values[0] <= values[1]
