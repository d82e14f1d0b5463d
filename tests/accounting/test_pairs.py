"""Events beyond the Gaussian: mechanisms written out on small data sets, other accountants, and how costs move.

A mechanism written out gives the true delta of two neighbors: no cost may be below it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from accounting_reference import Z, fixed_outputs, gauss, hockey, poisson_outputs
from combinations import over_rows

from skdp.accounting import (
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    flatten,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.events import specifications
from skdp.accounting.events.kinds import EVENT_KINDS, Kind
from skdp.accounting.events.specifications import DpEvent
from skdp.accounting.formulas import dominating
from skdp.accounting.rdp.rdp import rdp, rdp_rejection
from skdp.accounting.releases import releases
from skdp.exceptions import BudgetExceededError

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.0)


def renyi(p, q, alpha):
    kept = (p > 1e-280) & (q > 1e-280)  # what is left out makes the truth smaller
    logs = alpha * np.log(p[kept]) + (1.0 - alpha) * np.log(q[kept])
    return float(np.logaddexp.reduce(logs)) / (alpha - 1.0)


def check(event, adjacency, p, q, tight=None, orders=(1.5, 3.0, 8.0)):
    """Both directions of two neighbors' outputs are covered, by each method; the worst case is met to `tight`."""
    for epsilon in EPSILONS:
        truth = max(hockey(p, q, epsilon), hockey(q, p, epsilon))
        cost = get_delta(event, epsilon, adjacency=adjacency)
        assert cost >= truth * (1.0 - 1e-6) - 1e-12, (event, epsilon, truth, cost)
        if tight is not None and truth > 1e-9:
            assert cost <= truth * (1.0 + tight), (event, epsilon, truth, cost)
    for alpha in orders:
        truth = max(renyi(p, q, alpha), renyi(q, p, alpha))
        assert rdp(releases(event), alpha, replace_one=adjacency == "replace_one") >= truth * (1.0 - 1e-6) - 1e-12


WHOLE = np.arange(-400, 401)


def laplace(scale):
    """Masses of cells, as the density has an edge."""

    def cdf(x):
        return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1.0 - 0.5 * np.exp(-np.maximum(x, 0)))

    half = 0.5 * (Z[1] - Z[0])
    return lambda shift: cdf((Z + half - shift) / scale) - cdf((Z - half - shift) / scale)


def discrete_laplace(a):
    return lambda shift: math.tanh(a / 2) * np.exp(-a * np.abs(WHOLE - shift))


def discrete_gauss(sigma):
    def law(shift):
        mass = np.exp(-0.5 * ((WHOLE - shift) / sigma) ** 2)
        return mass / np.exp(-0.5 * (WHOLE / sigma) ** 2).sum()

    return law


NOISE = {
    "gaussian": (GaussianDpEvent(1.5), gauss(1.5)),
    "laplace": (LaplaceDpEvent(0.8), laplace(0.8)),
    "discrete laplace": (DiscreteLaplaceDpEvent(0.7, 1), discrete_laplace(0.7)),
    "discrete gaussian": (DiscreteGaussianDpEvent(1.5, 1), discrete_gauss(1.5)),
}


OTHERS = ([], [1, -1], [-1, -1, 1])


@over_rows("name", NOISE)
def test_noise_on_all_records(name):
    event, law = NOISE[name]
    check(event, "zero_out", law(1), law(0), tight=1e-4)
    check(event, "replace_one", law(1), law(-1), tight=1e-4)
    assert get_delta(event, 0.3, adjacency="replace_one") > 1.1 * get_delta(event, 0.3)


@over_rows("name", NOISE)
def test_noise_on_a_poisson_sample(name):
    q, (inner, law) = 0.3, NOISE[name]
    event = PoissonSampledDpEvent(q, inner)
    for others in OTHERS:
        tight = 1e-3 if not others else None
        check(event, "zero_out", poisson_outputs(law, [*others, 1], q), poisson_outputs(law, others, q), tight)
        check(
            event, "replace_one", poisson_outputs(law, [*others, 1], q), poisson_outputs(law, [*others, -1], q), tight
        )


@over_rows("name", NOISE)
def test_noise_on_a_sample_of_fixed_size(name):
    size, (inner, law) = 2, NOISE[name]
    for others in OTHERS[1:]:
        n = len(others) + 1
        p, q = fixed_outputs(law, [*others, 1], size), fixed_outputs(law, [*others, -1], size)
        check(SampledWithoutReplacementDpEvent(n, size, inner), "replace_one", p, q)
    # attained where all others lie at the one end: H of the pair at epsilon >= 0
    rows = [-1] * 4
    p, q = fixed_outputs(law, [*rows, 1], 1), fixed_outputs(law, [*rows, -1], 1)
    event = SampledWithoutReplacementDpEvent(5, 1, inner)
    for epsilon in EPSILONS:
        truth = hockey(p, q, epsilon)
        assert get_delta(event, epsilon, adjacency="replace_one") == pytest.approx(truth, rel=2e-4)
        assert get_delta(event, epsilon, adjacency="replace_one") >= truth * (1.0 - 1e-6) - 1e-12


def test_mixtures_of_gaussians():
    law, shifts, shares = gauss(1.3), (0.0, 1.0, 2.5), (0.7, 0.2, 0.1)
    event = MixtureOfGaussiansDpEvent(1.3, shifts, shares)
    p = sum(w * law(c) for w, c in zip(shares, shifts, strict=True))
    check(event, "zero_out", p, law(0), tight=1e-3)
    check(event, "replace_one", p, sum(w * law(-c) for w, c in zip(shares, shifts, strict=True)), tight=1e-3)
    check(event, "zero_out", sum(w * law(c) for w, c in zip(shares, (0.0, -1.0, 2.0), strict=True)), law(0))
    sampled = PoissonSampledDpEvent(0.3, event)
    check(sampled, "zero_out", 0.7 * law(0) + 0.3 * p, law(0), tight=1e-3)
    as_sample = MixtureOfGaussiansDpEvent(2.0, (0.0, 2.0), (0.9, 0.1))
    plain = PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    for method in ("pld", "rdp"):
        cost, same = (get_epsilon(S(each, 20), 1e-6, method=method) for each in (as_sample, plain))
        assert cost == pytest.approx(same, rel=1e-4)
        assert cost >= same * (1.0 - 1e-9)


@over_rows("delta", [0.0, 0.03])
def test_statements_on_samples(delta):
    epsilon, q = 0.9, 0.3
    # the most revealing mechanism: all with probability delta, else one of two
    rest = (1.0 - delta) / (1.0 + math.exp(epsilon))
    p = np.array([delta, 0.0, rest * math.exp(epsilon), rest])
    r = np.array([0.0, delta, rest, rest * math.exp(epsilon)])
    event = PoissonSampledDpEvent(q, EpsilonDeltaDpEvent(epsilon, delta))
    for at in EPSILONS:
        removed = max(hockey((1 - q) * r + q * p, r, at), hockey(r, (1 - q) * r + q * p, at))
        assert get_delta(event, at) == pytest.approx(max(removed, 5e-324), rel=1e-9, abs=1e-300)
        # of replaced records alone: a mechanism that shows whether the record was drawn
        shown = hockey(np.append(q * p, 1 - q), np.append(q * r, 1 - q), at)
        assert get_delta(event, at, adjacency="replace_one") == pytest.approx(shown, rel=1e-9, abs=1e-300)
        for method in ("naive", "optimal", "strong", "optimal_exact"):
            assert get_delta(event, at, method=method, adjacency="replace_one") >= shown * (1.0 - 1e-9)
    # the mixture of both cases, where the sample without the record is as far from either
    fixed = SampledWithoutReplacementDpEvent(10, 3, EpsilonDeltaDpEvent(epsilon, delta))
    for at in EPSILONS:
        assert get_delta(fixed, at, adjacency="replace_one") == pytest.approx(
            hockey((1 - q) * r + q * p, r, at), rel=1e-9, abs=1e-300
        )


S = SelfComposedDpEvent


def pld_cases():
    from dp_accounting.pld import privacy_loss_distribution as pld

    fine, coarse = {"value_discretization_interval": 1e-4}, {"value_discretization_interval": 1e-3}
    integer = {"use_connect_dots": True, **fine}
    sampled, mixture = PoissonSampledDpEvent, ((0.0, 1.0, 2.0), (0.81, 0.18, 0.01))
    return (
        (sampled(0.1, LaplaceDpEvent(0.5)), 100, pld.from_laplace_mechanism(0.5, sampling_prob=0.1, **fine)),
        (DiscreteLaplaceDpEvent(0.5, 3), 9, pld.from_discrete_laplace_mechanism(0.5, 3, **integer)),
        (DiscreteGaussianDpEvent(3.0, 2), 10, pld.from_discrete_gaussian_mechanism(3.0, 2, **integer)),
        (MixtureOfGaussiansDpEvent(1.5, *mixture), 50, pld.from_mixture_gaussian_mechanism(1.5, *mixture, **coarse)),
    )


def test_compositions_against_dp_accounting():
    pytest.importorskip("dp_accounting")
    for event, count, theirs in pld_cases():
        truth = theirs.self_compose(count).get_epsilon_for_delta(1e-6)
        cost = get_epsilon(S(event, count), 1e-6)
        assert cost == pytest.approx(truth, rel=1e-3), event
        assert get_epsilon(S(event, count), 1e-6, method="rdp") > 0.999 * cost, event
        low, high = get_epsilon_bounds(S(event, count), 1e-6)
        assert 0.0 <= low <= high == cost


# --- how costs move ----------------------------------------------------------------------------------------------

ALL = {
    "discrete Laplace": (lambda s: DiscreteLaplaceDpEvent(1.0 / s, 2), "zero_out"),
    "discrete Gaussian": (lambda s: DiscreteGaussianDpEvent(2.0 * s, 1), "zero_out"),
    "mixture": (lambda s: MixtureOfGaussiansDpEvent(s, (0.0, 1.0, 2.0), (0.8, 0.15, 0.05)), "zero_out"),
    "fixed": (lambda s: SampledWithoutReplacementDpEvent(100, 5, GaussianDpEvent(2 * s)), "replace_one"),
    "sampled Laplace, replaced": (lambda s: PoissonSampledDpEvent(0.1, LaplaceDpEvent(s)), "replace_one"),
    "sampled statement": (lambda s: PoissonSampledDpEvent(0.1, EpsilonDeltaDpEvent(1.0 / s, 1e-9)), "zero_out"),
}


@over_rows("name", ALL)
def test_epsilon_falls_with_noise_and_agrees_with_delta(name):
    make, adjacency = ALL[name]
    options = {"adjacency": adjacency}
    by_noise = [get_epsilon(S(make(s), 4), 1e-5, **options) for s in (0.7, 3.0)]
    assert by_noise == sorted(by_noise, reverse=True)
    by_steps = [get_epsilon(S(make(2.0), k), 1e-5, **options) for k in (1, 60)]
    assert by_steps == sorted(by_steps)
    event = S(make(1.5), 60)
    epsilon = get_epsilon(event, 1e-4, **options)
    assert get_epsilon(event, 1e-2, **options) < epsilon
    assert get_delta(event, epsilon, **options) <= 1e-4 * (1.0 + 1e-3)
    assert get_delta(event, 0.97 * epsilon, **options) > 0.99e-4


def test_events_without_effect_are_left_out():
    nothing = (
        DiscreteLaplaceDpEvent(1.0, 0),
        DiscreteGaussianDpEvent(1.0, 0),
        MixtureOfGaussiansDpEvent(1.0, (0.0, 1.0), (1.0, 0.0)),
    )
    for event in nothing:
        assert flatten(event) == {}, event
    for inner in (LaplaceDpEvent(2.0), GaussianDpEvent(2.0), DiscreteLaplaceDpEvent(0.3, 2)):
        assert flatten(PoissonSampledDpEvent(1.0, inner)) == {inner: 1}


EXTREMES = [
    SampledWithoutReplacementDpEvent(10**18, 1, GaussianDpEvent(1e-100)),
    DiscreteGaussianDpEvent(0.01, 10**6),
    DiscreteLaplaceDpEvent(1e-9, 10**6),
    PoissonSampledDpEvent(1e-300, LaplaceDpEvent(1e-3)),
    PoissonSampledDpEvent(0.5, LaplaceDpEvent(1e100)),
]


@over_rows("event", EXTREMES)
def test_extremes_have_a_price(event):
    for method in ("pld", "rdp"):
        epsilon = get_epsilon(event, 1e-5, adjacency="replace_one", method=method)
        assert epsilon > 0.0
        assert 0.0 < get_delta(event, 1.0, adjacency="replace_one", method=method) <= 1.0


@over_rows("pair", [dominating.laplace(0.5), dominating.laplace(200.0), dominating.discrete_gaussian(9.0, 2)])
def test_both_distributions_of_a_pair_have_mass_one(pair):
    for each in (pair, pair.reversed()):
        assert np.exp(each.log_weight).sum() + each.infinite == pytest.approx(1.0, rel=1e-12)


# --- what was wrong -----------------------------------------------------------------------------------------------

LOUD = LaplaceDpEvent(1e-10)


@over_rows(
    "event",
    [
        PoissonSampledDpEvent(0.01, LOUD),
        SampledWithoutReplacementDpEvent(100, 1, LOUD),
        MixtureOfGaussiansDpEvent(1e-5, (0.0, 1.0), (0.99, 0.01)),
    ],
)
def test_what_is_revealed_is_not_free_by_renyi(event):
    """A record that takes part shows: delta is at least its chance, 1 %, and no finite Rényi divergence says so."""
    options = {"adjacency": "replace_one", "method": "rdp"}
    assert get_epsilon(event, 1e-5, **options) > 20.0
    assert get_delta(event, 1.0, **options) >= 0.01
    assert rdp(releases(event), 1.0001, replace_one=True) > 1e4 / 2


@over_rows("delta", [1e-12, 0.3])
@over_rows("a", [1.0, 5.0])
def test_the_epsilon_of_one_discrete_laplace_release_is_below_its_largest_loss(a, delta):
    """Of sensitivity 1, losses are a and -a: delta(epsilon) = (1 - e^(epsilon - a)) / (1 + e^-a) from -a to a."""
    event = DiscreteLaplaceDpEvent(a, 1)
    exact = a + math.log1p(-delta * (1.0 + math.exp(-a)))
    assert exact <= get_epsilon(event, delta) <= min(exact * (1.0 + 1e-9), a)
    assert get_delta(event, get_epsilon(event, delta)) <= delta
    low, high = get_epsilon_bounds(event, delta)
    assert low <= exact <= high


@dataclass(frozen=True)
class OnlyPairDpEvent(DpEvent):
    """Says the truth of a bit with probability `p`: an event of which no more than the pair is known."""

    p: float


specifications._OWN.add(OnlyPairDpEvent)


@pytest.fixture
def only_pair(monkeypatch):
    def pairs(event, change, order):
        return (dominating.statement(math.log(event.p / (1.0 - event.p)), 0.0),)

    monkeypatch.setitem(EVENT_KINDS, OnlyPairDpEvent, Kind(OnlyPairDpEvent, "randomized response"))
    monkeypatch.setitem(dominating.LAWS, OnlyPairDpEvent, dominating.Law(pairs))
    return OnlyPairDpEvent(0.7)


def test_event_with_only_a_pair_has_a_price_on_samples(only_pair):
    stated = EpsilonDeltaDpEvent(math.log(0.7 / 0.3), 0.0)
    for adjacency in ("zero_out", "replace_one"):
        ours, known = (PoissonSampledDpEvent(0.1, each) for each in (only_pair, stated))
        assert get_delta(ours, 0.05, adjacency=adjacency) == pytest.approx(get_delta(known, 0.05, adjacency=adjacency))


def test_event_without_renyi_divergence_is_rejected_with_a_remedy(only_pair):
    for event in (only_pair, PoissonSampledDpEvent(0.1, only_pair)):
        assert "is not supported by Rényi accounting" in str(rdp_rejection(releases(event)))
        with pytest.raises(TypeError, match=r"is not supported by Rényi accounting. Use method='pld'"):
            get_epsilon(event, 1e-5, method="rdp")
        accountant = PrivacyAccountant(epsilon=3.0, delta=1e-5)
        accountant.spend(GaussianDpEvent(20.0))
        with pytest.raises(BudgetExceededError, match=r"has no Rényi divergence.* as one ComposedDpEvent"):
            accountant.spend(event)
        accountant = PrivacyAccountant(epsilon=3.0, delta=1e-5)
        accountant.spend(event)
        assert len(accountant.history) == 1
