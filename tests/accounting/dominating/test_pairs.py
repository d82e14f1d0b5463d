"""Events beyond the Gaussian: mechanisms written out on small data sets, other accountants, and how prices move.

A mechanism written out gives the true delta of two neighbours: no price may be below it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from combinations import over_rows

from skdp.accounting import (
    ComposedDpEvent,
    DiscreteGaussianDpEvent,
    DiscreteLaplaceDpEvent,
    EpsilonDeltaDpEvent,
    ExponentialMechanismDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomAllocationDpEvent,
    RandomizedResponseDpEvent,
    ReportNoisyMaxDpEvent,
    SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent,
    SelfComposedDpEvent,
    SingleEpochTreeAggregationDpEvent,
    TruncatedSubsampledGaussianDpEvent,
    ZCDpEvent,
    flatten,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
    to_dp_accounting,
)
from skdp.accounting.dominating import noise as _noise
from skdp.accounting.rdp.rdp import rdp
from skdp.accounting.releases import releases

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.0)


def hockey(p, q, epsilon):
    """sum (p - e^epsilon q)_+, of masses."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def renyi(p, q, alpha):
    kept = (p > 1e-280) & (q > 1e-280)  # what is left out makes the truth smaller
    logs = alpha * np.log(p[kept]) + (1.0 - alpha) * np.log(q[kept])
    return float(np.logaddexp.reduce(logs)) / (alpha - 1.0)


def check(event, adjacency, p, q, tight=None, orders=(1.5, 3.0, 8.0)):
    """Both directions of two neighbours' outputs are covered, by each method; the worst case is met to `tight`."""
    for epsilon in EPSILONS:
        truth = max(hockey(p, q, epsilon), hockey(q, p, epsilon))
        price = get_delta(event, epsilon, adjacency=adjacency)
        assert price >= truth * (1.0 - 1e-6) - 1e-12, (event, epsilon, truth, price)
        if tight is not None and truth > 1e-9:
            assert price <= truth * (1.0 + tight), (event, epsilon, truth, price)
    for alpha in orders:
        truth = max(renyi(p, q, alpha), renyi(q, p, alpha))
        assert rdp(releases(event), alpha, replace_one=adjacency == "replace_one") >= truth * (1.0 - 1e-6) - 1e-12


Z = np.linspace(-60.0, 60.0, 120_001)
WHOLE = np.arange(-400, 401)


def gauss(sigma):
    return lambda shift: np.exp(-0.5 * ((Z - shift) / sigma) ** 2) / sigma / math.sqrt(2 * math.pi) * (Z[1] - Z[0])


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


def poisson_outputs(law, records, q):
    """The law of the output of a sum over a Poisson sample of records that are numbers."""
    total = 0.0
    for drawn in itertools.product((0, 1), repeat=len(records)):
        share = math.prod(q if each else 1 - q for each in drawn)
        total = total + share * law(sum(r for r, each in zip(records, drawn, strict=True) if each))
    return total


def fixed_outputs(law, records, size):
    subsets = list(itertools.combinations(range(len(records)), size))
    return sum(law(sum(records[i] for i in subset)) for subset in subsets) / len(subsets)


def replacing_outputs(law, records, size):
    places = list(itertools.product(range(len(records)), repeat=size))
    return sum(law(sum(records[i] for i in each)) for each in places) / len(places)


def truncated_outputs(law, records, q, most):
    total = 0.0
    for drawn in itertools.product((0, 1), repeat=len(records)):
        share = math.prod(q if each else 1 - q for each in drawn)
        rows = [r for r, each in zip(records, drawn, strict=True) if each]
        total = total + share * (fixed_outputs(law, rows, most) if len(rows) > most else law(sum(rows)))
    return total


OTHERS = ([], [1, -1], [-1, -1, 1])


@over_rows("name", NOISE)
def test_noise_on_all_records(name):
    event, law = NOISE[name]
    check(event, "zero_out", law(1), law(0), tight=1e-4)
    check(event, "replace_one", law(1), law(-1), tight=1e-4)
    assert get_delta(event, 0.3, adjacency="replace_one") > 1.1 * get_delta(event, 0.3)


@over_rows("name", NOISE)
@over_rows("q", [0.3])
def test_noise_on_a_poisson_sample(name, q):
    inner, law = NOISE[name]
    event = PoissonSampledDpEvent(q, inner)
    for others in OTHERS:
        tight = 1e-3 if not others else None
        check(event, "zero_out", poisson_outputs(law, [*others, 1], q), poisson_outputs(law, others, q), tight)
        check(
            event, "replace_one", poisson_outputs(law, [*others, 1], q), poisson_outputs(law, [*others, -1], q), tight
        )


@over_rows("name", NOISE)
@over_rows("size", [2])
def test_noise_on_a_sample_of_fixed_size(name, size):
    inner, law = NOISE[name]
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


@over_rows("name", NOISE)
@over_rows("size", [1, 3])
def test_noise_on_a_sample_with_replacement(name, size):
    inner, law = NOISE[name]
    for others in OTHERS[1:]:
        n = len(others) + 1
        p, q = replacing_outputs(law, [*others, 1], size), replacing_outputs(law, [*others, -1], size)
        check(SampledWithReplacementDpEvent(n, size, inner), "replace_one", p, q)
    # nearly attained, where all others lie at the one end: how often the record was drawn does not show
    p, q = replacing_outputs(law, [-1, -1, 1], size), replacing_outputs(law, [-1, -1, -1], size)
    event = SampledWithReplacementDpEvent(3, size, inner)
    for epsilon in (0.05, 0.3):
        price, truth = get_delta(event, epsilon, adjacency="replace_one"), hockey(p, q, epsilon)
        assert truth * (1.0 - 1e-6) <= price <= truth * (1.001 if size == 1 else 1.06)


@over_rows("most", [1, 2])
def test_truncated_samples(most):
    law, q = gauss(1.2), 0.4
    for others in OTHERS[1:]:
        event = TruncatedSubsampledGaussianDpEvent(len(others) + 1, q, most, 1.2)
        whole = truncated_outputs(law, [*others, 1], q, most)
        check(event, "add_remove", whole, truncated_outputs(law, others, q, most))
        check(event, "zero_out", whole, truncated_outputs(law, [*others, 0], q, most))
        check(event, "replace_one", whole, truncated_outputs(law, [*others, -1], q, most))
    # others who lie at the other end make room for the record: more than without them
    assert get_delta(TruncatedSubsampledGaussianDpEvent(3, q, 1, 1.2), 1.0) > 2.0 * get_delta(
        PoissonSampledDpEvent(q, GaussianDpEvent(1.2)), 1.0
    )


def test_a_truncation_that_never_happens_is_free():
    event, plain = TruncatedSubsampledGaussianDpEvent(5, 0.1, 5, 1.0), PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    for method in ("pld", "rdp"):
        assert get_epsilon(event, 1e-5, method=method) == pytest.approx(
            get_epsilon(plain, 1e-5, method=method), rel=1e-4
        )


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
    for adjacency in ("zero_out", "replace_one"):
        for method in ("pld", "rdp"):
            price = get_epsilon(SelfComposedDpEvent(as_sample, 20), 1e-6, method=method, adjacency=adjacency)
            same = get_epsilon(SelfComposedDpEvent(plain, 20), 1e-6, method=method, adjacency=adjacency)
            assert price == pytest.approx(same, rel=1e-4)
            assert price >= same * (1.0 - 1e-9)


@over_rows(("noise", "buckets"), [(0.1, 2), (0.6, 5)])
def test_randomised_response(noise, buckets):
    p, q = np.full(buckets, noise / buckets), np.full(buckets, noise / buckets)
    p[0] += 1.0 - noise
    q[1] += 1.0 - noise
    event = RandomizedResponseDpEvent(noise, buckets)
    check(event, "replace_one", p, q, tight=1e-9)
    for alpha in (1.5, 3.0):
        assert rdp(releases(event), alpha, replace_one=True) == pytest.approx(renyi(p, q, alpha), rel=1e-8)
    with pytest.raises(ValueError, match="under adjacency='replace_one' alone; use adjacency='replace_one'"):
        get_epsilon(event, 1e-5)


def test_vectors_of_integer_and_laplace_noise_are_covered_by_one_coordinate():
    small = np.arange(-60, 61)

    def product(shift, law):
        return np.multiply.outer(law(small - shift[0]), law(small - shift[1]))

    def laplace_law(x):
        return math.tanh(0.35) * np.exp(-0.7 * np.abs(x))

    for shift in ((3, 0), (2, 1), (-1, 2), (1, -2)):
        p, q = product(shift, laplace_law).ravel(), product((0, 0), laplace_law).ravel()
        check(DiscreteLaplaceDpEvent(0.7, 3), "zero_out", p, q, tight=1e-9 if 0 in shift else None)


def test_any_mechanism_of_bounded_range_is_covered():
    rng = np.random.default_rng(3)
    epsilon = 1.2
    event = ExponentialMechanismDpEvent(epsilon)
    for _ in range(40):
        scores, moves = rng.normal(size=5) * rng.exponential(), rng.uniform(-1.0, 1.0, size=5)
        moves = np.sign(moves) if rng.random() < 0.5 else moves
        p, q = np.exp(0.5 * epsilon * scores), np.exp(0.5 * epsilon * (scores + moves))
        check(event, "zero_out", p / p.sum(), q / q.sum())
    # attained: two losses, t and t - epsilon, with the best t for an epsilon of delta
    for x in (-0.5, 0.0, 0.7):
        t = 0.5 * (x + epsilon)
        share = math.expm1(t - epsilon) / math.expm1(-epsilon)
        p = np.array([share, 1.0 - share])
        q = p * np.exp([-t, epsilon - t])
        assert q.sum() == pytest.approx(1.0)
        if x >= 0.0:
            assert get_delta(event, x) == pytest.approx(hockey(p, q, x), rel=1e-4)
        check(event, "zero_out", p, q)


FAMILY = {
    "exponential": (lambda z: np.exp(-np.maximum(z, 0.0)) * (z >= 0.0), lambda z: -np.expm1(-np.maximum(z, 0.0))),
    "laplace": (
        lambda z: 0.5 * np.exp(-np.abs(z)),
        lambda z: np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0))),
    ),
    "gumbel": (lambda z: np.exp(-z - np.exp(-z)), lambda z: np.exp(-np.exp(-z))),
}


def noisy_maximum(scores, family):
    """Probabilities that each score is the largest with noise of scale 1, by the midpoint rule."""
    density, distribution = FAMILY[family]
    edges = np.linspace(scores.min() - 10.0, scores.max() + 40.0, 60_001)
    step = edges[1] - edges[0]
    x = edges[:-1] + 0.5 * step
    each = [np.prod([distribution(x - s) for s in np.delete(scores, i)], axis=0) for i in range(len(scores))]
    masses = np.array([density(x - s) @ others for s, others in zip(scores, each, strict=True)]) * step
    return masses / masses.sum()


@over_rows("family", FAMILY)
@over_rows("one_sided", [False, True])
def test_any_noisy_maximum_is_covered(family, one_sided):
    rng = np.random.default_rng(4)
    epsilon = 1.2
    for _ in range(3):
        scores = rng.normal(size=4) * rng.exponential(2.0)
        moves = rng.choice([0.0, 1.0] if one_sided else [-0.5, 0.5], size=4) * epsilon
        check(
            ReportNoisyMaxDpEvent(epsilon),
            "zero_out",
            noisy_maximum(scores, family),
            noisy_maximum(scores + moves, family),
        )


def test_two_candidates_with_exponential_noise_are_the_worst_case():
    epsilon = 1.2
    for x in (0.0, 0.4, 1.0):
        p, q = 1.0 - 0.5 * math.exp(-0.5 * (epsilon - x)), 0.5 * math.exp(-0.5 * (epsilon + x))
        exact = p - math.exp(x) * q
        assert get_delta(ReportNoisyMaxDpEvent(epsilon), x) == pytest.approx(exact, rel=1e-4)
        scores = np.array([0.5 * (epsilon - x), 0.0])
        assert noisy_maximum(scores, "exponential")[0] == pytest.approx(p, rel=1e-3)
        assert noisy_maximum(scores - [epsilon, 0.0], "exponential")[0] == pytest.approx(q, rel=1e-3)


def test_the_renyi_divergence_of_a_bounded_range_is_that_of_its_worst_loss():
    epsilon = 1.5
    for alpha in (1.2, 2.0, 5.0, 40.0):
        truth = 0.0
        for t in np.linspace(1e-6, epsilon - 1e-6, 20_001):
            share = math.expm1(t - epsilon) / math.expm1(-epsilon)
            moment = share * math.exp((alpha - 1) * t) + (1 - share) * math.exp((alpha - 1) * (t - epsilon))
            truth = max(truth, math.log(moment) / (alpha - 1))
        price = rdp(releases(ExponentialMechanismDpEvent(epsilon)), alpha)
        assert truth * (1.0 - 1e-9) <= price <= truth * (1.0 + 1e-6)
    # of a narrow range log E is epsilon^2 alpha (alpha - 1) / 8 to leading order, and is not rounded down
    for narrow, alpha in ((0.0010099891056123325, 1.000348247340614), (0.00146, 1.00015), (0.0039, 1.02165)):
        assert rdp(releases(ExponentialMechanismDpEvent(narrow)), alpha) >= alpha * narrow**2 / 8 * (1.0 - narrow**2)


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
        for method in ("naive", "optimal"):
            assert get_delta(event, at, method=method, adjacency="replace_one") >= shown * (1.0 - 1e-9)
    for method in ("naive", "optimal", "strong", "optimal_exact"):
        options = {"method": method, "adjacency": "replace_one"}
        assert get_delta(event, 0.7, **options) >= hockey(np.append(q * p, 1 - q), np.append(q * r, 1 - q), 0.7)
        assert get_epsilon(event, q * delta + 1e-9, **options) >= epsilon
    # the mixture of both cases, where the sample without the record is as far from either
    fixed = SampledWithoutReplacementDpEvent(10, 3, EpsilonDeltaDpEvent(epsilon, delta))
    for at in EPSILONS:
        assert get_delta(fixed, at, adjacency="replace_one") == pytest.approx(
            hockey((1 - q) * r + q * p, r, at), rel=1e-9, abs=1e-300
        )


def test_two_statements_on_samples():
    """Losses that are infinite count in full when they are composed too."""
    epsilon, q, delta = 0.9, 0.3, 0.01
    rest = (1.0 - delta) / (1.0 + math.exp(epsilon))
    p = np.array([delta, 0.0, rest * math.exp(epsilon), rest])
    r = np.array([0.0, delta, rest, rest * math.exp(epsilon)])
    mixed = (1 - q) * r + q * p
    twice, none = np.multiply.outer(mixed, mixed).ravel(), np.multiply.outer(r, r).ravel()
    event = SelfComposedDpEvent(PoissonSampledDpEvent(q, EpsilonDeltaDpEvent(epsilon, delta)), 2)
    for at in (0.1, 0.7):
        exact = max(hockey(twice, none, at), hockey(none, twice, at))
        assert exact * (1.0 - 1e-12) <= get_delta(event, at) <= exact * 1.01 + 1e-9


# --- random allocation, and trees ---------------------------------------------------------------------------------


def allocation_moments(m, steps, selected, alpha):
    """log E_Q[S^alpha] and log E_Q[S^(1 - alpha)] by a sum over a grid in as many dimensions as steps.

    Such a sum over a smooth integrand is exact but for e^(-2 pi d / 0.3), with d >= pi / m how far the integrand is
    analytic: below 1e-19 here.
    """
    z = np.arange(-24.0, 24.0, 0.3)
    grids = np.meshgrid(*[z] * steps, indexing="ij", sparse=True)
    weight = 1.0
    for each in grids:
        weight = weight * np.exp(-0.5 * each**2)
    sets = list(itertools.combinations(range(steps), selected))
    ratio = sum(np.exp(sum(m * grids[i] - 0.5 * m * m for i in chosen)) for chosen in sets) / len(sets)
    total = weight.sum()
    return [math.log(float((weight * ratio**power).sum() / total)) for power in (alpha, 1.0 - alpha)]


@over_rows(("steps", "selected"), [(2, 1), (3, 1), (3, 2), (2, 2)])
@over_rows("noise", [0.7, 3.0])
def test_random_allocation_by_summation(steps, selected, noise):
    event = RandomAllocationDpEvent(noise, steps, selected)
    for alpha in (1.3, 3.0):
        removed, added = (each / (alpha - 1.0) for each in allocation_moments(1.0 / noise, steps, selected, alpha))
        price = rdp(releases(event), alpha)
        assert price >= max(removed, added) * (1.0 - 1e-9)
        if selected in (1, steps) and alpha == round(alpha):
            assert price == pytest.approx(max(removed, added), rel=1e-7)


def test_random_allocation_lies_between_its_neighbours():
    for noise, steps in ((1.0, 100), (0.6, 20)):
        price = get_epsilon(RandomAllocationDpEvent(noise, steps), 1e-6, method="rdp")
        sampled = SelfComposedDpEvent(PoissonSampledDpEvent(1.0 / steps, GaussianDpEvent(noise)), steps)
        assert price < get_epsilon(GaussianDpEvent(noise), 1e-6, method="rdp")
        assert price < 1.1 * get_epsilon(sampled, 1e-6, method="rdp")
    more = [get_epsilon(RandomAllocationDpEvent(1.0, 60, k), 1e-6, method="rdp") for k in (1, 2, 3, 7, 20, 60)]
    assert more == sorted(more)
    fewer = [get_epsilon(RandomAllocationDpEvent(1.0, t), 1e-6, method="rdp") for t in (1, 2, 3, 10, 100, 10_000)]
    assert fewer == sorted(fewer, reverse=True)
    with pytest.raises(ValueError, match="zero_out' or 'add_remove' alone"):
        get_epsilon(RandomAllocationDpEvent(1.0, 60), 1e-6, method="rdp", adjacency="replace_one")


@over_rows("steps", [1, 2, 3, 4, 31, 32])
def test_a_record_moves_as_many_nodes_of_a_tree_as_are_priced(steps):
    moved = []
    for leaf in range(steps):
        nodes = 0
        for height in range(10):
            first = leaf >> height << height
            nodes += first + (1 << height) <= steps  # the node is complete, and comes out
        moved.append(nodes)
    event = SingleEpochTreeAggregationDpEvent(4.0, steps)
    assert event.height == max(moved) == math.ceil(math.log2(steps + 1))
    assert get_epsilon(event, 1e-6) == get_epsilon(GaussianDpEvent(4.0 / math.sqrt(max(moved))), 1e-6)
    several = SingleEpochTreeAggregationDpEvent(4.0, (steps, 1))
    assert get_epsilon(several, 1e-6) == get_epsilon(event, 1e-6)


# --- other accountants --------------------------------------------------------------------------------------------

S = SelfComposedDpEvent


def pld_cases():
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    fine, coarse = {"value_discretization_interval": 1e-4}, {"value_discretization_interval": 1e-3}
    integer = {"use_connect_dots": True, **fine}
    sampled, mixture = PoissonSampledDpEvent, ((0.0, 1.0, 2.0), (0.81, 0.18, 0.01))
    truncated = (1000, 0.1, 115, 1.0)
    for event, count, theirs in (
        (sampled(0.1, LaplaceDpEvent(0.5)), 100, pld.from_laplace_mechanism(0.5, sampling_prob=0.1, **fine)),
        (DiscreteLaplaceDpEvent(0.5, 3), 9, pld.from_discrete_laplace_mechanism(0.5, 3, **integer)),
        (DiscreteGaussianDpEvent(3.0, 2), 10, pld.from_discrete_gaussian_mechanism(3.0, 2, **integer)),
        (
            sampled(0.2, DiscreteGaussianDpEvent(3.0, 2)),
            100,
            pld.from_discrete_gaussian_mechanism(3.0, 2, sampling_prob=0.2, **integer),
        ),
        (MixtureOfGaussiansDpEvent(1.5, *mixture), 50, pld.from_mixture_gaussian_mechanism(1.5, *mixture, **coarse)),
        (
            TruncatedSubsampledGaussianDpEvent(*truncated),
            50,
            pld.from_truncated_subsampled_gaussian_mechanism(*truncated, **coarse),
        ),
    ):
        yield event, count, "zero_out", theirs
    yield RandomizedResponseDpEvent(0.9, 4), 50, "replace_one", pld.from_randomized_response(0.9, 4, **fine)
    replaced = {"neighboring_relation": NeighboringRelation.REPLACE_ONE, **coarse}
    theirs = pld.from_truncated_subsampled_gaussian_mechanism(*truncated, **replaced)
    yield TruncatedSubsampledGaussianDpEvent(*truncated), 50, "replace_one", theirs


def test_compositions_against_dp_accounting():
    pytest.importorskip("dp_accounting")
    for event, count, adjacency, theirs in pld_cases():
        truth = theirs.self_compose(count).get_epsilon_for_delta(1e-6)
        price = get_epsilon(S(event, count), 1e-6, adjacency=adjacency)
        assert price == pytest.approx(truth, rel=1e-3), event
        assert get_epsilon(S(event, count), 1e-6, adjacency=adjacency, method="rdp") > 0.999 * price, event
        low, high = get_epsilon_bounds(S(event, count), 1e-6, adjacency=adjacency)
        assert 0.0 <= low <= high == price


# --- how prices move ----------------------------------------------------------------------------------------------

ALL = {
    "randomised response": (lambda s: RandomizedResponseDpEvent(1.0 / (1.0 + 2.0 / s), 4), "replace_one"),
    "discrete Laplace": (lambda s: DiscreteLaplaceDpEvent(1.0 / s, 2), "zero_out"),
    "discrete Gaussian": (lambda s: DiscreteGaussianDpEvent(2.0 * s, 1), "zero_out"),
    "exponential": (lambda s: ExponentialMechanismDpEvent(1.0 / s), "zero_out"),
    "noisy maximum": (lambda s: ReportNoisyMaxDpEvent(1.0 / s), "zero_out"),
    "mixture": (lambda s: MixtureOfGaussiansDpEvent(s, (0.0, 1.0, 2.0), (0.8, 0.15, 0.05)), "zero_out"),
    "truncated": (lambda s: TruncatedSubsampledGaussianDpEvent(200, 0.1, 25, s), "zero_out"),
    "with replacement": (lambda s: SampledWithReplacementDpEvent(100, 5, GaussianDpEvent(2 * s)), "replace_one"),
    "fixed": (lambda s: SampledWithoutReplacementDpEvent(100, 5, GaussianDpEvent(2 * s)), "replace_one"),
    "sampled Laplace": (lambda s: PoissonSampledDpEvent(0.1, LaplaceDpEvent(s)), "zero_out"),
    "sampled Laplace, replaced": (lambda s: PoissonSampledDpEvent(0.1, LaplaceDpEvent(s)), "replace_one"),
    "sampled statement": (lambda s: PoissonSampledDpEvent(0.1, EpsilonDeltaDpEvent(1.0 / s, 1e-9)), "zero_out"),
    "tree": (lambda s: SingleEpochTreeAggregationDpEvent(4.0 * s, 30), "zero_out"),
    "allocation": (lambda s: RandomAllocationDpEvent(s, 20, 3), "zero_out"),
}


def method_of(name):
    return "rdp" if name == "allocation" else "pld"


@over_rows("name", ALL)
def test_prices_fall_with_noise_and_delta_and_rise_with_steps(name):
    make, adjacency = ALL[name]
    options = {"adjacency": adjacency, "method": method_of(name)}
    by_noise = [get_epsilon(S(make(s), 4), 1e-5, **options) for s in (0.7, 1.0, 3.0)]
    assert by_noise == sorted(by_noise, reverse=True)
    by_steps = [get_epsilon(S(make(2.0), k), 1e-5, **options) for k in (1, 3, 60)]
    assert by_steps == sorted(by_steps)
    by_delta = [get_epsilon(S(make(2.0), 3), delta, **options) for delta in (1e-2, 1e-7)]
    assert by_delta == sorted(by_delta)


@over_rows("name", ALL)
def test_epsilon_and_delta_agree(name):
    make, adjacency = ALL[name]
    options = {"adjacency": adjacency, "method": method_of(name)}
    event = S(make(1.5), 60)
    epsilon = get_epsilon(event, 1e-4, **options)
    assert get_delta(event, epsilon, **options) <= 1e-4 * (1.0 + 1e-3)
    assert get_delta(event, 0.97 * epsilon, **options) > 0.99e-4


def test_everything_composes_with_concentrated_privacy_by_renyi():
    for name, (make, adjacency) in ALL.items():
        event = make(2.0)
        if name == "sampled statement":
            event = PoissonSampledDpEvent(0.1, EpsilonDeltaDpEvent(0.5, 0.0))
        together = ComposedDpEvent((ZCDpEvent(0.02), event))
        alone = [get_epsilon(each, 1e-5, adjacency=adjacency, method="rdp") for each in (ZCDpEvent(0.02), event)]
        price = get_epsilon(together, 1e-5, adjacency=adjacency, method="rdp")
        assert max(alone) < price < sum(alone), name


def test_events_without_effect_and_without_guarantee():
    nothing = (
        RandomizedResponseDpEvent(1.0, 3),
        RandomizedResponseDpEvent(0.0, 1),
        DiscreteLaplaceDpEvent(1.0, 0),
        DiscreteGaussianDpEvent(1.0, 0),
        ExponentialMechanismDpEvent(0.0),
        ReportNoisyMaxDpEvent(0.0),
        MixtureOfGaussiansDpEvent(1.0, (0.0, 1.0), (1.0, 0.0)),
        TruncatedSubsampledGaussianDpEvent(10, 0.0, 3, 1.0),
        TruncatedSubsampledGaussianDpEvent(10, 0.5, 0, 1.0),
        SampledWithReplacementDpEvent(10, 0, GaussianDpEvent(1.0)),
        SampledWithReplacementDpEvent(10, 3, NoOpDpEvent()),
        RandomAllocationDpEvent(1.0, 3, 0),
    )
    for event in nothing:
        assert flatten(event) == {}, event
    for event in (RandomizedResponseDpEvent(0.0, 2), SampledWithReplacementDpEvent(10, 3, NonPrivateDpEvent())):
        assert get_epsilon(event, 1e-5) == math.inf


def test_a_record_that_is_always_drawn_costs_as_without_sampling():
    law = gauss(1.5)
    event = SampledWithReplacementDpEvent(1, 3, GaussianDpEvent(1.5))
    check(event, "replace_one", law(3), law(-3), tight=1e-3)
    for inner in (LaplaceDpEvent(2.0), GaussianDpEvent(2.0), DiscreteLaplaceDpEvent(0.3, 2)):
        assert flatten(PoissonSampledDpEvent(1.0, inner)) == {inner: 1}


def test_more_copies_than_are_counted_reveal_the_record():
    options = {"adjacency": "replace_one"}
    assert get_epsilon(SampledWithReplacementDpEvent(3, 100_000, GaussianDpEvent(1e3)), 1e-5, **options) == math.inf
    few = get_epsilon(SampledWithReplacementDpEvent(100, 2_000, GaussianDpEvent(50.0)), 1e-5, **options)
    # about 20 copies of the record, and hardly more than 45
    assert get_epsilon(GaussianDpEvent(50.0 / 20.0), 1e-5, **options) < few
    assert few < get_epsilon(GaussianDpEvent(50.0 / 45.0), 1e-5, **options)


EXTREMES = [
    TruncatedSubsampledGaussianDpEvent(10**12, 1e-6, 10**6 + 5000, 1.0),
    TruncatedSubsampledGaussianDpEvent(5, 1.0, 2, 1.0),
    TruncatedSubsampledGaussianDpEvent(100, 0.1, 12, 1e-100),
    TruncatedSubsampledGaussianDpEvent(100, 0.1, 12, 1e100),
    SampledWithReplacementDpEvent(10**12, 10**6, GaussianDpEvent(3.0)),
    SampledWithReplacementDpEvent(100, 10, GaussianDpEvent(1e-100)),
    SampledWithoutReplacementDpEvent(10**18, 1, GaussianDpEvent(1e-100)),
    DiscreteGaussianDpEvent(0.01, 10**6),
    DiscreteLaplaceDpEvent(1e-9, 10**6),
    DiscreteLaplaceDpEvent(1e9, 10**6),
    PoissonSampledDpEvent(0.1, DiscreteLaplaceDpEvent(1e9, 10**6)),
    MixtureOfGaussiansDpEvent(1e-100, (0.0, 1.0), (0.5, 0.5)),
    MixtureOfGaussiansDpEvent(1e100, (0.0, 1.0), (0.5, 0.5)),
    ExponentialMechanismDpEvent(1e300),
    ExponentialMechanismDpEvent(1e-300),
    PoissonSampledDpEvent(0.5, ExponentialMechanismDpEvent(1e5)),
    PoissonSampledDpEvent(1e-300, LaplaceDpEvent(1e-3)),
    PoissonSampledDpEvent(0.5, LaplaceDpEvent(1e-100)),
    PoissonSampledDpEvent(0.5, LaplaceDpEvent(1e100)),
    RandomizedResponseDpEvent(1e-300, 10**18),
    RandomizedResponseDpEvent(1.0 - 1e-16, 2),
]


@over_rows("event", EXTREMES)
def test_extremes_have_a_price(event):
    for method in ("pld", "rdp"):
        epsilon = get_epsilon(event, 1e-5, adjacency="replace_one", method=method)
        assert epsilon > 0.0
        assert 0.0 < get_delta(event, 1.0, adjacency="replace_one", method=method) <= 1.0


def test_refusals_of_pairs_name_a_substitute():
    wide = DiscreteGaussianDpEvent(1e6, 1000)
    with pytest.raises(
        TypeError, match=r"with standard_deviation above 20000 has no price here by method='pld'; use m"
    ):
        get_epsilon(wide, 1e-5)
    assert get_epsilon(wide, 1e-5, method="rdp") == pytest.approx(
        get_epsilon(ZCDpEvent(0.5e-6), 1e-5, method="rdp"), rel=1e-9
    )
    for sampled in (
        lambda event: PoissonSampledDpEvent(0.1, event),
        lambda event: SampledWithoutReplacementDpEvent(10, 2, event),
        lambda event: SampledWithReplacementDpEvent(10, 2, event),
    ):
        for method in ("pld", "rdp"):
            with pytest.raises(TypeError, match=r"DiscreteGaussianDpEvent with standard_deviation above 20000 has no"):
                get_epsilon(sampled(wide), 1e-5, adjacency="replace_one", method=method)
    for event in (
        PoissonSampledDpEvent(0.1, SingleEpochTreeAggregationDpEvent(1.0, 3)),
        PoissonSampledDpEvent(0.1, RandomAllocationDpEvent(1.0, 3)),
        SampledWithReplacementDpEvent(10, 2, EpsilonDeltaDpEvent(1.0, 0.0)),
        SampledWithReplacementDpEvent(10, 2, RandomizedResponseDpEvent(0.5, 2)),
    ):
        with pytest.raises(TypeError, match="has no price here by any method"):
            get_epsilon(event, 1e-5, adjacency="replace_one")


# --- what was wrong -----------------------------------------------------------------------------------------------

LOUD = LaplaceDpEvent(1e-10)


@over_rows(
    "event",
    [
        PoissonSampledDpEvent(0.01, LOUD),
        PoissonSampledDpEvent(0.01, ExponentialMechanismDpEvent(2e9)),
        SampledWithoutReplacementDpEvent(100, 1, LOUD),
        SampledWithReplacementDpEvent(100, 1, LOUD),
        SampledWithReplacementDpEvent(1000, 300_000, LaplaceDpEvent(3.0)),
        MixtureOfGaussiansDpEvent(1e-5, (0.0, 1.0), (0.99, 0.01)),
    ],
)
def test_what_is_revealed_is_not_free_by_renyi(event):
    """A record that takes part shows: delta is at least its chance, 1 %, and no finite Rényi divergence says so."""
    options = {"adjacency": "replace_one", "method": "rdp"}
    assert get_epsilon(event, 1e-5, **options) > 20.0
    assert get_delta(event, 1.0, **options) >= 0.01
    assert rdp(releases(event), 1.0001, replace_one=True) > 1e4 / 2


def test_a_bounded_range_beside_what_is_revealed_costs_what_that_does():
    """The composition asks Rényi divergences too, and takes the lesser price."""
    event = ComposedDpEvent((ExponentialMechanismDpEvent(1.0), PoissonSampledDpEvent(0.01, LOUD)))
    assert get_epsilon(event, 1e-5) == math.inf
    assert get_delta(event, 3.0) >= 0.01


@over_rows(("n", "size", "sigma"), [(1000, 50, 1.0), (10, 9, 8.0)])
@over_rows("alpha", [1.1, 1.3, 2.0, 5.0])
def test_renyi_divergences_count_every_copy_of_a_record(n, size, sigma, alpha):
    """Ten copies are all but impossible, and yet at some orders they are nearly all of the divergence."""
    z = np.arange(-60.0, 60.0 + 2.0 * alpha * size / sigma, 0.01)
    k = np.arange(size + 1.0)
    logs = np.array([math.log(math.comb(size, int(j))) for j in k]) - k * math.log(n)
    logs += (size - k) * math.log1p(-1.0 / n)
    ratio = np.full(z.size, -np.inf)
    for j, log_share in zip(k, logs, strict=True):  # all others lie at the other end
        ratio = np.logaddexp(ratio, log_share + 2.0 * j / sigma * z - 2.0 * (j / sigma) ** 2)
    base = -0.5 * z * z + math.log(0.01) - 0.5 * math.log(2.0 * math.pi)
    truth = float(np.logaddexp.reduce(alpha * ratio + base)) / (alpha - 1.0)
    event = SampledWithReplacementDpEvent(n, size, GaussianDpEvent(sigma))
    assert rdp(releases(event), alpha, replace_one=True) >= truth * (1.0 - 1e-9)


def test_the_number_of_copies_keeps_its_digits_in_large_samples():
    from scipy.special import gammaln

    from skdp.accounting.dominating.pairs import copies

    for size, n in ((10**12, 10**12), (10**10, 3 * 10**9), (50, 100)):
        mass, beyond, drawn = copies(SampledWithReplacementDpEvent(n, size, GaussianDpEvent(1.0)))
        k = np.arange(1.0, mass.size + 1.0)
        if size > 10**9:  # a Poisson number but for a share of 1 / n
            poisson = np.exp(k * math.log(size / n) - size / n - gammaln(k + 1.0)) / drawn
            np.testing.assert_allclose(mass, poisson, rtol=1e-6)
        assert math.fsum(mass) + beyond == pytest.approx(1.0, rel=1e-12)


@over_rows("q", [1.0 - 4.1e-14, 1.0 - 2.2e-13, 1.0 - 1e-15])
def test_a_sample_of_nearly_all_records_costs_its_closed_form(q):
    """1 - q is exact, and was lost beside q e^l - q."""
    event, size, a = PoissonSampledDpEvent(q, DiscreteLaplaceDpEvent(17.854651636253568, 2)), 2, 17.854651636253568
    top = math.log(1.0 - q + q * math.exp(a * size)) - math.log(1.0 - q + q * math.exp(-a * size))
    mass = math.exp(-a * size) / (1.0 + math.exp(-a)) * (1.0 - q + q * math.exp(a * size))
    for part in (1e-6, 0.5):
        epsilon = top + math.log1p(-part)
        assert get_delta(event, epsilon, adjacency="replace_one") >= mass * part * (1.0 - 1e-9)
    assert get_epsilon(event, 1e-6 * mass, adjacency="replace_one") >= (top + math.log1p(-1e-6)) * (1.0 - 1e-12)


def test_delta_at_a_corner_is_not_rounded_down():
    """Just below a loss that has a mass of its own, delta is in proportion to how far below."""
    q, a = 0.9999883250587227, 26.575215831023332
    event = PoissonSampledDpEvent(q, DiscreteLaplaceDpEvent(a, 2))
    assert get_delta(event, 64.50848577087035, adjacency="replace_one") >= 3.70819484722607e-10 * (1.0 - 1e-9)


def test_negative_moments_of_an_allocation_are_integrated_to_the_last():
    """At high orders the integrand is narrow, and the mean of e^-x below what a double holds."""
    from skdp.accounting.rdp.allocation import _log_inverse_moments, _log_moments

    for m in (0.3, 0.5, 1.0):  # of one step S^-b is a log-normal number
        found = _log_inverse_moments(m, 1)
        b = np.arange(float(found.size))
        np.testing.assert_allclose(found[1:], (0.5 * b * (b + 1.0) * m * m)[1:], rtol=1e-9)
    for m, steps in ((0.01, 1000), (0.1, 1000), (0.1, 10)):
        found, moments = _log_inverse_moments(m, steps), _log_moments(m, steps)
        # both are log moments of nearly normal losses; log E[S^-b] is convex in b
        np.testing.assert_allclose(found[1:480], moments[2:481], rtol=1e-2)
        assert np.all(np.diff(found, 2) >= 0.0)


def test_so_many_integers_that_they_do_not_fit_count_as_revealed(monkeypatch):
    """Of few copies of the record they fit, of many not. At a sixteenth of the size all arrays are small."""
    monkeypatch.setattr(_noise, "_MOST_FAR", _noise._MOST_FAR // 16)
    event = SampledWithReplacementDpEvent(100, 20, DiscreteGaussianDpEvent(2e4 / 16, 10**6 // 16))
    assert get_epsilon(event, 1e-5, adjacency="replace_one") > 5000.0


def test_noise_of_a_group_below_the_least_is_none():
    for event in (GaussianDpEvent(1e-99), LaplaceDpEvent(1e-99)):
        assert get_epsilon(event, 1e-5, group_size=1000) == math.inf
        assert get_epsilon(event, 1e-5, group_size=10) < math.inf


@over_rows(
    ("event", "delta", "above"),
    [
        (S(RandomizedResponseDpEvent(1.7406345985711546e-06, 2), 31), 1.55e-12, 1e-6),
        (S(RandomizedResponseDpEvent(5.335905288374274e-05, 2), 2635), 8.3e-6, 0.1),
        (S(PoissonSampledDpEvent(0.9998945624823414, EpsilonDeltaDpEvent(16.65946319736866, 0.0)), 5344), 7.6e-5, 1e-6),
        (
            S(PoissonSampledDpEvent(0.49162489346995397, EpsilonDeltaDpEvent(23.377914486161423, 0.0)), 659),
            1.1e-5,
            0.01,
        ),
    ],
)
def test_delta_at_a_large_epsilon_is_near_the_delta_it_was_found_for(event, delta, above):
    """Losses below the least that matters were raised beyond the largest, and delta came out as 1."""
    adjacency = "replace_one" if isinstance(event.event, RandomizedResponseDpEvent) else "zero_out"
    epsilon = get_epsilon(event, delta, adjacency=adjacency)
    assert epsilon > 300.0
    assert get_delta(event, epsilon, adjacency=adjacency) <= delta * (1.0 + above)


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


def test_renyi_prices_against_dp_accounting():
    pytest.importorskip("dp_accounting")
    from dp_accounting import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    orders = [1.5, 2.0, 5.0, 20.0]
    for event, relation in (
        (RandomizedResponseDpEvent(0.3, 4), "REPLACE_ONE"),
        (SingleEpochTreeAggregationDpEvent(3.0, (9, 20)), "REPLACE_SPECIAL"),
    ):
        theirs = RdpAccountant(orders, getattr(NeighboringRelation, relation)).compose(to_dp_accounting(event)).rdp
        ours = [rdp(releases(event), alpha, replace_one=relation == "REPLACE_ONE") for alpha in orders]
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_the_least_and_most_noise_of_an_allocation():
    for noise, low, high in ((1e-100, 1e199, 1e201), (1e100, 0.0, 1e-90), (5.0, 0.0, 0.1)):
        assert low <= get_epsilon(RandomAllocationDpEvent(noise, 10**6), 1e-5, method="rdp") <= high
