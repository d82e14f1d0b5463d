"""Selection by random stopping: laws of the number of trials, costs against exact laws of the output, calibration."""

import math
import random

import numpy as np
import pytest
from accounting_reference import hockey
from combinations import over_rows
from scipy.stats import chi2, norm
from work import calls_at_most

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    NumberOfTrials,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    calibrate_noise_multiplier,
    calibrate_selection,
    compose,
    fewest_trials,
    flatten,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.gaussian import gaussian_delta
from skdp.accounting.pld.profiles import Profile, ProfilePair
from skdp.accounting.rdp.rdp import rdp
from skdp.accounting.releases import releases

INF = math.inf
LAWS = [(10.0, 0.0), (10.0, 1.0), (4.0, 0.5), (5.0, INF), (1.0, 0.0)]
G = GaussianDpEvent(4.0)


def dpsgd(sigma, q=0.02, steps=500):
    return SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


# --- laws ---


@over_rows(("mean", "shape"), LAWS)
def test_law_is_one_law(mean, shape):
    law = NumberOfTrials(mean, shape)
    k = np.arange(4000)
    mass = law.pmf(k)
    assert mass.sum() == pytest.approx(1.0, rel=1e-11)
    assert mass @ k == pytest.approx(mean, rel=1e-10)
    assert mass[0] == pytest.approx(law.none, rel=1e-12)
    for x in (0.0, 0.3, 0.9, 1.0):
        assert mass @ x**k == pytest.approx(law.pgf(x), rel=1e-10, abs=1e-14)
        at = np.array([1.0 - x])
        assert mass[1:] @ (k[1:] * x ** (k[1:] - 1.0)) == pytest.approx(law.slope(at)[0], rel=1e-9)
        second = mass[2:] @ (k[2:] * (k[2:] - 1.0) * x ** (k[2:] - 2.0))
        assert second == pytest.approx(law.bend(at)[0], rel=1e-8, abs=1e-12)
    assert np.all(law.pmf([-1, 0.5]) == 0.0)


def test_number_of_tries_matches_known_laws():
    k = np.arange(1, 50)
    geometric, logarithmic = NumberOfTrials(8.0, 1.0), NumberOfTrials(8.0, 0.0)
    np.testing.assert_allclose(geometric.pmf(k), (1 / 8) * (7 / 8) ** (k - 1.0), rtol=1e-11)
    gamma = logarithmic.gamma
    np.testing.assert_allclose(logarithmic.pmf(k), (1 - gamma) ** k / k / math.log(1 / gamma), rtol=1e-11)
    assert NumberOfTrials(8.0, INF).pmf(3) == pytest.approx(math.exp(-8) * 8**3 / 6, rel=1e-12)


@over_rows(("mean", "shape"), LAWS)
def test_draws_invert_the_law_into_the_tail(mean, shape):
    law = NumberOfTrials(mean, shape)
    assert law.draw((0, 0)) == (0 if law.poisson else 1)
    if mean == 1.0 and not law.poisson:
        assert law.draw((2**64 - 1, 2**64 - 1)) == 1
        return
    k = np.arange(20_000)
    above = np.cumsum(law.pmf(k)[::-1])[::-1]  # P(K >= k)
    for bits in (3, 10, 40, 70, 120):
        drawn = law.draw(divmod(2**128 - 2 ** (128 - bits), 2**64))
        # the largest numbers, of probability 2^-bits together
        assert above[drawn + 1] < 2.0**-bits * (1 + 1e-9)
        assert above[drawn] > 2.0**-bits * (1 - 1e-9)


def test_what_cannot_be_drawn_is_rejected():
    with pytest.raises(ValueError, match=r"`mean` must be at most 10000 .* got 100000"):
        NumberOfTrials(1e5, 0.0).draw((1, 2))
    for words in ((), (-1,), (2**64,)):
        with pytest.raises(ValueError, match="words"):
            NumberOfTrials(3.0, 0.0).draw(words)


# --- costs against exact laws ---


def best_of(mass, law):
    """Law of the best of K outputs, worst first; `none` at the end."""
    beaten = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # chance of being this good or better
    pgf = np.array([law.pgf(max(0.0, 1.0 - t)) for t in beaten])
    return np.append(np.diff(pgf), law.none)


def responses(epsilon, count, pieces):
    """Randomized responses under two neighbors: number of ones, each output in equal pieces (ties told apart)."""
    p = 1.0 / (1.0 + math.exp(-epsilon))
    choose = np.array([math.comb(count, k) for k in range(count + 1)], float)
    k = np.arange(count + 1)
    one, other = choose * p**k * (1 - p) ** (count - k), choose * (1 - p) ** k * p ** (count - k)
    return np.repeat(one / pieces, pieces), np.repeat(other / pieces, pieces)


def orders(size, source):
    """Orders of scores: rising and falling in the loss, at random, and falling with the top put in between."""
    yield np.arange(size)
    yield np.arange(size)[::-1]
    for _ in range(2):
        yield np.array(source.sample(range(size), size))
    for cut in range(1, size // 2, max(1, size // 12)):
        for place in range(0, size - cut, max(1, size // 12)):
            rest = np.arange(size - cut)[::-1]
            yield np.concatenate([rest[:place], np.arange(size - cut, size), rest[place:]])


def laws_of_the_best(law, one, other, source):
    """Laws of the best output under two neighbors, for each order of the scores."""
    return [(best_of(one[order], law), best_of(other[order], law)) for order in orders(one.size, source)]


@over_rows(("mean", "shape"), [(10.0, 1.0), (3.0, 2.5), (5.0, INF)])
def test_never_below_the_exact_law_of_a_toy(mean, shape):
    law, source = NumberOfTrials(mean, shape), random.Random(7)
    for size, count, pieces in ((0.4, 4, 3), (0.15, 16, 1)):
        event = law.event(SelfComposedDpEvent(EpsilonDeltaDpEvent(size, 0.0), count))
        outcomes = laws_of_the_best(law, *responses(size, count, pieces), source)
        for epsilon in (0.0, 0.2, 0.7, 1.2, 2.0):
            worst = max(hockey(*pair, epsilon) for a, b in outcomes for pair in ((a, b), (b, a)))
            by_profile, by_renyi = (get_delta(event, epsilon, method=method) for method in ("pld", "rdp"))
            assert worst <= by_profile * (1 + 1e-12)
            assert worst <= by_renyi * (1 + 1e-12)
            if pieces == 1 and 1e-9 < worst < 0.04:  # losses in fine steps: one order comes close
                assert get_epsilon(event, worst) <= 1.25 * epsilon


@over_rows(
    ("mean", "shape", "toy", "rest"),
    [(6.0, 1.0, (0.15, 16, 1), None), (3.0, INF, (0.5, 1, 6), (LaplaceDpEvent(2.0), GaussianDpEvent(3.0)))],
)
def test_composition_is_never_below_the_exact_law(mean, shape, toy, rest):
    law, (size, count, pieces) = NumberOfTrials(mean, shape), toy
    choice = law.event(SelfComposedDpEvent(EpsilonDeltaDpEvent(size, 0.0), count))
    event = compose([choice, choice] if rest is None else [choice, *rest])
    outcomes = laws_of_the_best(law, *responses(size, count, pieces), random.Random(3))
    outcomes = [(a[b > 0.0], b[b > 0.0]) for a, b in outcomes]
    for epsilon in (0.8, 2.5):
        if rest is None:
            worst = max(hockey(np.outer(a, a), np.outer(b, b), epsilon) for a, b in outcomes)
        else:  # at least the last of the rest, exactly
            worst = max(float(a @ gaussian(epsilon - np.log(a / b), 1.0 / 3.0)) for a, b in outcomes)
        assert worst <= get_delta(event, epsilon)
        assert worst <= get_delta(event, epsilon, method="rdp")
        if pieces == 1 and worst < 0.03 and (rest is None or len(rest) == 1):
            assert get_epsilon(event, worst) <= 1.3 * epsilon


def gaussian(epsilon, mu):
    """Delta of the Gaussian mechanism at epsilons of either sign."""
    return norm.cdf(0.5 * mu - epsilon / mu) - np.exp(epsilon) * norm.cdf(-0.5 * mu - epsilon / mu)


def test_a_profile_as_a_pair_is_a_distribution_with_that_profile():
    grid = np.linspace(0.0, 4.0, 801)
    delta = np.array([gaussian_delta(e, 0.7) for e in grid])
    pair = ProfilePair.of(Profile(grid, delta), 1)
    atoms = pair.atoms(0.0, 0.0)
    mass, loss = np.exp(atoms.log_weight), atoms.loss
    assert mass.sum() + pair.infinite == pytest.approx(1.0, rel=1e-10)
    assert (mass * np.exp(-loss)).sum() == pytest.approx(1.0 - pair.infinite, rel=1e-9)
    for epsilon in (0.0, 0.1, 1.003, 3.0):
        read = float(mass @ np.maximum(-np.expm1(epsilon - loss), 0.0)) + pair.infinite
        exact = gaussian_delta(epsilon, 0.7)
        assert exact * (1 - 1e-9) <= read <= exact * (1 + 1e-4) + pair.infinite
        assert pair.delta_at(epsilon) == pytest.approx(read, rel=1e-6)
        assert pair.epsilon_at(pair.delta_at(epsilon)) == pytest.approx(epsilon, abs=1e-6)


# --- figures ---


@over_rows(("make", "delta"), [(GaussianDpEvent, 1e-5), (dpsgd, 1e-6)])
def test_ten_expected_candidates_cost_what_is_published_or_less(make, delta):
    run = make(calibrate_noise_multiplier(make, 1.0, delta))
    one = {method: get_epsilon(run, delta, method=method) for method in ("pld", "rdp")}
    ten = {m: get_epsilon(RepeatAndSelectDpEvent(run, 10.0, 0.0), delta, method=m) for m in one}
    assert 1.3 <= ten["pld"] / one["pld"] <= 1.6
    assert ten["pld"] < ten["rdp"]
    assert ten["rdp"] / one["rdp"] <= 1.75
    assert ten["rdp"] / one["pld"] <= 1.75
    five = get_epsilon(RepeatAndSelectDpEvent(run, 5.0, INF), delta)
    assert 1.36 <= five / one["pld"] <= 1.53


@over_rows("shape", [0.0, 1.0, INF])
def test_the_renyi_price_has_all_its_parts(shape):
    """One try, the expected number of them, and the gain, which only loud outputs make large: at some order above."""
    run, mean = GaussianDpEvent(100.0), 10.0
    for order in (2.0, 6.0, 30.0):
        parts = [order * x * 0.5e-4 + math.log(mean) / (order * x - 1.0) for x in np.geomspace(1.0, 1e4, 2000)]
        cost = rdp(releases(RepeatAndSelectDpEvent(run, mean, shape)), order)
        assert min(parts) * (1 - 1e-3) <= cost <= min(parts) + mean * 0.01
    louder = rdp(releases(RepeatAndSelectDpEvent(GaussianDpEvent(3.0), mean, shape)), 8.0)
    assert louder > rdp(releases(GaussianDpEvent(3.0)), 8.0) + math.log(mean) / 7.0


def test_selection_epsilon_is_monotone():
    for shape in (0.0, INF):
        by_mean = [get_epsilon(RepeatAndSelectDpEvent(G, mean, shape), 1e-6) for mean in (1.5, 5.0, 200.0)]
        assert by_mean == sorted(by_mean)
    event = compose([RepeatAndSelectDpEvent(G, 5.0, 0.0), G])
    assert get_epsilon(event, 1e-5) < get_epsilon(event, 1e-6) < get_epsilon(compose([event, G]), 1e-6)
    assert get_delta(event, get_epsilon(event, 1e-6)) == pytest.approx(1e-6, rel=2e-3)


@over_rows("method", ["pld", "rdp"])
def test_one_try_costs_one_run(method):
    for run in (G, compose([G, LaplaceDpEvent(9.0)])):
        cost = get_epsilon(run, 1e-5, method=method)
        for shape in (0.0, 0.3):
            assert get_epsilon(RepeatAndSelectDpEvent(run, 1.0, shape), 1e-5, method=method) == cost
        nearly = get_epsilon(RepeatAndSelectDpEvent(run, 1.0 + 1e-9, 1.0), 1e-5, method=method)
        assert cost * (1 - 1e-4) <= nearly <= cost * (1 + 2e-3)
    assert get_epsilon(RepeatAndSelectDpEvent(G, 1.0, INF), 1e-5, method=method) > get_epsilon(G, 1e-5, method=method)


def test_the_end_of_every_scale_has_a_price_in_finite_time():
    for run, mean, shape in (
        (GaussianDpEvent(1e-3), 1e6, 0.0),
        (dpsgd(0.3), 1e6, INF),
        (EpsilonDeltaDpEvent(0.0, 1e-9), 2.0, 50.0),
    ):
        event = RepeatAndSelectDpEvent(run, mean, shape)
        with calls_at_most(1_000_000):
            assert get_epsilon(event, 1e-5) >= get_epsilon(run, 1e-5) * (1 - 1e-9)
            assert get_epsilon(compose([event, G]), 1e-5) >= get_epsilon(G, 1e-5)
            assert 0.0 < get_delta(event, 3.0) <= 1.0


def test_search_delta_inverts_epsilon_in_few_calls():
    """Floors, profiles and Rényi divergences that do not decide delta are not computed."""
    runs = WorstOfDpEvent(tuple(dpsgd(1.0 + 0.3 * k, 0.01 * (1 + k), 100) for k in range(4)))
    selected = NumberOfTrials(10.0, 1.0).event(runs)
    for event in (selected, compose([selected, GaussianDpEvent(5.0)])):
        with calls_at_most(400_000):
            delta = get_delta(event, 4.0)
        assert get_epsilon(event, delta) == pytest.approx(4.0, rel=2e-5)


def test_replaced_records():
    event = RepeatAndSelectDpEvent(GaussianDpEvent(8.0), 10.0, 0.0)
    half = RepeatAndSelectDpEvent(GaussianDpEvent(4.0), 10.0, 0.0)
    for method in ("pld", "rdp"):
        assert get_epsilon(event, 1e-6, method=method, adjacency="replace_one") == pytest.approx(
            get_epsilon(half, 1e-6, method=method), rel=1e-9
        )


# --- the worst of several ---


def test_worst_of_is_the_pointwise_largest():
    narrow, wide = GaussianDpEvent(2.0), EpsilonDeltaDpEvent(1.2, 0.0)
    both = WorstOfDpEvent((narrow, wide))
    for epsilon in (0.1, 2.0):
        most = max(get_delta(event, epsilon) for event in (narrow, wide))
        assert most * (1 - 1e-9) <= get_delta(both, epsilon) <= most * (1 + 1e-3) + 1e-12
    search = RepeatAndSelectDpEvent(both, 6.0, 0.0)
    for method in ("pld", "rdp"):
        most = max(get_epsilon(RepeatAndSelectDpEvent(e, 6.0, 0.0), 1e-6, method=method) for e in (narrow, wide))
        assert get_epsilon(search, 1e-6, method=method) >= most * (1 - 1e-9)


def test_worst_of_in_its_simplest_form():
    assert flatten(WorstOfDpEvent((G, G))) == {G: 1}
    assert flatten(WorstOfDpEvent((NoOpDpEvent(),))) == {}
    assert flatten(RepeatAndSelectDpEvent(compose([G] * 3), 1.0, 0.0)) == {G: 3}
    assert get_epsilon(WorstOfDpEvent((G, NonPrivateDpEvent())), 1e-6) == INF
    for broken in ((), (1,), G):
        with pytest.raises((TypeError, ValueError), match="WorstOfDpEvent"):
            WorstOfDpEvent(broken)


# --- calibration, bounds, ledgers ---


@over_rows(("make", "method"), [(GaussianDpEvent, "rdp"), (dpsgd, "pld")])
def test_noise_of_a_whole_search(make, method):
    def whole(trials, sigma):
        return compose(
            [trials.event(compose([make(sigma), GaussianDpEvent(60.0)])), GaussianDpEvent(40.0), make(sigma)]
        )

    with calls_at_most(2_500_000):
        trials, noise = calibrate_selection(whole, 10.0, 1.0, 1e-5, method=method)
    assert (1 - 3e-4) <= get_epsilon(whole(trials, noise), 1e-5, method=method) <= 1.0
    found, cost = fewest_trials(lambda law: whole(law, noise), 10.0, 1e-5, method=method)
    assert found == trials
    assert cost == get_epsilon(whole(trials, noise), 1e-5, method=method)
    alone = calibrate_noise_multiplier(lambda s: RepeatAndSelectDpEvent(make(s), 10.0, 0.0), 1.0, 1e-5, method=method)
    assert alone < noise


def test_bounds_hold_a_selection_between_one_run_and_its_price():
    event = compose([RepeatAndSelectDpEvent(WorstOfDpEvent((G, GaussianDpEvent(9.0))), 10.0, 0.0), dpsgd(3.0)])
    low, high = get_epsilon_bounds(event, 1e-6)
    assert high == get_epsilon(event, 1e-6)
    assert low == pytest.approx(get_epsilon(compose([G, dpsgd(3.0)]), 1e-6), rel=2e-3)


@over_rows(("mean", "shape"), [(6.0, 0.0), (2.0, INF)])
def test_the_mechanism_itself_run_many_times(mean, shape):
    """Draw K, make K responses, keep the best: frequencies against the exact law, at a false-alarm rate of 1e-6."""
    law, source, runs = NumberOfTrials(mean, shape), np.random.default_rng(11), 20_000
    p, _ = responses(0.4, 4, 1)
    order = np.array([3, 0, 4, 1, 2])  # worst first
    rank = np.argsort(order)
    counts = np.zeros(6)
    for _ in range(runs):
        trials = law.draw(int(word) for word in source.integers(0, 2**64, 2, dtype=np.uint64))
        outputs = rank[source.choice(5, size=trials, p=p)]
        counts[outputs.max() if trials else 5] += 1
    expected = runs * best_of(p[order], law)
    kept = expected > 0.0
    assert counts[~kept].sum() == 0
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic <= chi2.isf(1e-6, kept.sum() - 1)
