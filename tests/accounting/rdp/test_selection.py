"""Selection by random stopping: laws of the number of tries, prices against exact laws of the output, calibration."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from combinations import over_rows
from scipy.stats import chi2, norm
from work import calls_at_most

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    NumberOfTries,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
    WorstOfDpEvent,
    calibrate_noise_multiplier,
    calibrate_selection,
    cheapest_tries,
    compose,
    flatten,
    get_delta,
    get_epsilon,
    get_epsilon_bounds,
)
from skdp.accounting.formulas.gaussian import gaussian_delta
from skdp.accounting.ledger.filters import rule_for
from skdp.accounting.pld.profiles import Profile, ProfilePair, select_best
from skdp.accounting.rdp.rdp import rdp
from skdp.accounting.releases import releases

INF = math.inf
LAWS = [(10.0, 0.0), (10.0, 1.0), (4.0, 0.5), (3.0, 2.5), (1.3, 0.0), (5.0, INF), (1.0, INF), (1.0, 0.0)]
G = GaussianDpEvent(4.0)


def dpsgd(sigma, q=0.02, steps=500):
    return SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


# --- laws ---


@over_rows(("mean", "shape"), LAWS)
def test_law_is_one_law(mean, shape):
    law = NumberOfTries(mean, shape)
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


def test_known_laws():
    k = np.arange(1, 50)
    geometric, logarithmic = NumberOfTries(8.0, 1.0), NumberOfTries(8.0, 0.0)
    np.testing.assert_allclose(geometric.pmf(k), (1 / 8) * (7 / 8) ** (k - 1.0), rtol=1e-11)
    gamma = logarithmic.gamma
    np.testing.assert_allclose(logarithmic.pmf(k), (1 - gamma) ** k / k / math.log(1 / gamma), rtol=1e-11)
    assert NumberOfTries(8.0, INF).pmf(3) == pytest.approx(math.exp(-8) * 8**3 / 6, rel=1e-12)


@over_rows(("mean", "shape"), LAWS)
def test_draws_invert_the_law_into_the_tail(mean, shape):
    law = NumberOfTries(mean, shape)
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
    many = [law.draw((word << 59,)) for word in range(32)]
    assert many == sorted(many)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="mean=100000"):
        NumberOfTries(1e5, 0.0).draw((1, 2))
    for words in ((), (-1,), (2**64,)):
        with pytest.raises(ValueError, match="words"):
            NumberOfTries(3.0, 0.0).draw(words)
    with pytest.raises(ValueError, match=r"mean=0\.5"):
        NumberOfTries(0.5, 0.0)


# --- prices against exact laws ---


def best_of(mass, law):
    """Law of the best of K outputs, worst first; `none` at the end."""
    beaten = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # chance of being this good or better
    pgf = np.array([law.pgf(max(0.0, 1.0 - t)) for t in beaten])
    return np.append(np.diff(pgf), law.none)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def responses(epsilon, count, pieces):
    """Randomised responses under two neighbours: number of ones, each output in equal pieces (ties told apart)."""
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
    """Laws of the best output under two neighbours, for each order of the scores."""
    return [(best_of(one[order], law), best_of(other[order], law)) for order in orders(one.size, source)]


@over_rows(("mean", "shape"), [(10.0, 1.0), (3.0, 2.5), (5.0, INF)])
def test_never_below_the_exact_law_of_a_toy(mean, shape):
    law, source = NumberOfTries(mean, shape), random.Random(7)
    for size, count, pieces in ((1.0, 1, 8), (0.4, 4, 3), (0.15, 16, 1)):
        event = law.event(SelfComposedDpEvent(EpsilonDeltaDpEvent(size, 0.0), count))
        outcomes = laws_of_the_best(law, *responses(size, count, pieces), source)
        for epsilon in (0.0, 0.2, 0.7, 1.2, 2.0):
            worst = max(hockey_stick(*pair, epsilon) for a, b in outcomes for pair in ((a, b), (b, a)))
            by_profile, by_renyi = (get_delta(event, epsilon, method=method) for method in ("pld", "rdp"))
            assert worst <= by_profile * (1 + 1e-12)
            assert worst <= by_renyi * (1 + 1e-12)
            if pieces == 1 and 1e-9 < worst < 0.04:  # losses in fine steps: one order comes close
                assert get_epsilon(event, worst) <= 1.25 * epsilon


def gaussian_adversary(mu, law, cuts):
    """Outputs of a Gaussian under neighbours; below the loudest a pile of loud ones, so that u runs ahead of u'."""
    z = np.linspace(-8.0, 9.0, 8001)

    def mass(shift):
        return np.where(z[:-1] > shift, -np.diff(norm.sf(z - shift)), np.diff(norm.cdf(z - shift)))

    p, q = mass(mu), mass(0.0)
    for cut in cuts:
        for start in np.linspace(-2.5, 2.5, 21):
            at = z[:-1]
            parts = [np.flatnonzero(part)[::-1] for part in ((at > start) & (at <= cut), at > cut, at <= start)]
            order = np.concatenate(parts)
            yield smooth(p[order], law), smooth(q[order], law)


def smooth(mass, law):
    """`best_of`, to full relative accuracy: each mass times the mean of phi' over it (Simpson)."""
    t = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    middle = 0.5 * (t[:-1] + t[1:])
    return mass * (law.slope(t[:-1]) + 4.0 * law.slope(middle) + law.slope(t[1:])) / 6.0


@over_rows(("mean", "shape"), [(10.0, 0.0), (5.0, INF)])
def test_close_to_what_one_order_of_gaussian_scores_reveals(mean, shape):
    law, mu = NumberOfTries(mean, shape), 0.28
    event = law.event(GaussianDpEvent(1.0 / mu))
    for delta in (1e-5, 1e-6):
        epsilon = get_epsilon(event, delta)
        cuts = (2.5, 3.0, 3.5, 4.0, 4.5)
        worst = max(hockey_stick(p, q, epsilon) for p, q in gaussian_adversary(mu, law, cuts))
        assert worst <= delta * (1 + 1e-9)
        assert worst >= 0.75 * delta
        assert worst <= get_delta(event, epsilon, method="rdp")


@over_rows(
    ("mean", "shape", "toy", "rest"),
    [
        (6.0, 0.0, (0.5, 1, 6), (GaussianDpEvent(3.0),)),
        (6.0, 1.0, (0.15, 16, 1), None),
        (3.0, INF, (0.5, 1, 6), (LaplaceDpEvent(2.0), GaussianDpEvent(3.0))),
    ],
)
def test_composition_is_never_below_the_exact_law(mean, shape, toy, rest):
    law, (size, count, pieces) = NumberOfTries(mean, shape), toy
    choice = law.event(SelfComposedDpEvent(EpsilonDeltaDpEvent(size, 0.0), count))
    event = compose([choice, choice] if rest is None else [choice, *rest])
    outcomes = laws_of_the_best(law, *responses(size, count, pieces), random.Random(3))
    outcomes = [(a[b > 0.0], b[b > 0.0]) for a, b in outcomes]
    for epsilon in (0.8, 2.5):
        if rest is None:
            worst = max(hockey_stick(np.outer(a, a), np.outer(b, b), epsilon) for a, b in outcomes)
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


def test_a_profile_that_is_not_convex_is_replaced_by_its_hull():
    grid = np.linspace(0.0, 2.0, 101)
    bumpy = np.minimum(1.0, 0.9 * np.exp(-2.0 * grid) * (1.0 + 0.2 * (np.arange(101) % 3 == 1)))
    smooth_one = 0.9 * np.exp(-2.0 * grid)
    pair = ProfilePair.of(Profile(grid, bumpy), 1)
    atoms = pair.atoms(0.0, 0.0)
    mass = np.exp(atoms.log_weight)
    assert 1.0 <= mass.sum() + pair.infinite <= 1.0 + 4e-12  # raised by what rounding may lack
    for epsilon, least in zip(grid, smooth_one, strict=True):
        assert pair.delta_at(float(epsilon)) <= 1.3 * least
    full = ProfilePair.of(Profile(np.array([0.0, 0.5, 1.0]), np.array([1.0, 1.0, 0.0])), 1).atoms(0.0, 0.0)
    assert np.exp(full.log_weight).sum() == pytest.approx(1.0)
    assert float(np.exp(full.log_weight) @ np.exp(-full.loss)) == pytest.approx(1.0)


# --- figures ---


@over_rows(("shape", "delta"), [(0.0, 0.3), (1.0, 0.03), (INF, 0.1), (0.0, 1e-5)])
def test_a_selection_whose_losses_vanish_costs_next_to_nothing(shape, delta):
    """Its profile is short: its start is nearly as low as what is followed. delta(0) of a try is mu / sqrt(2 pi)."""
    for noise in (1e5, 1e12):
        run = WorstOfDpEvent((SelfComposedDpEvent(GaussianDpEvent(3.76 * noise), 3), GaussianDpEvent(2.17 * noise)))
        for event in (run, compose([run, GaussianDpEvent(1e14)])):
            search = RepeatAndSelectDpEvent(event, 2.0, shape)
            assert get_epsilon(search, delta) <= 10.0 / noise
            assert get_epsilon(compose([search, GaussianDpEvent(1e14)]), delta) <= 10.0 / noise


def test_a_short_profile_is_moved_no_further_than_it_allows():
    for mean, shape in ((2.0, 0.0), (8.0, 1.0), (8.0, INF)):
        law = NumberOfTries(mean, shape)
        for mu in (1e-8, 1e-5, 0.3):
            long = np.linspace(0.0, 6.0 * mu, 501)
            base = Profile(long, np.array([gaussian_delta(e, mu) for e in long]))
            short = Profile(long[:2] * 0.01, np.array([gaussian_delta(e, mu) for e in long[:2] * 0.01]))
            fine, crude = ProfilePair.of(select_best(base, law), 1), ProfilePair.of(select_best(short, law), 1)
            assert crude.delta_at(0.0) <= 10.0 * mean * mean * mu
            for epsilon in np.linspace(0.0, 6.0 * mu, 25):
                assert fine.delta_at(epsilon) <= crude.delta_at(epsilon)


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
        price = rdp(releases(RepeatAndSelectDpEvent(run, mean, shape)), order)
        assert min(parts) * (1 - 1e-3) <= price <= min(parts) + mean * 0.01
    louder = rdp(releases(RepeatAndSelectDpEvent(GaussianDpEvent(3.0), mean, shape)), 8.0)
    assert louder > rdp(releases(GaussianDpEvent(3.0)), 8.0) + math.log(mean) / 7.0


def test_price_is_monotone():
    for shape in (0.0, 1.0, INF):
        prices = [get_epsilon(RepeatAndSelectDpEvent(G, mean, shape), 1e-6) for mean in (1.5, 2.0, 5.0, 20.0, 200.0)]
        assert prices == sorted(prices)
        noises = [
            get_epsilon(RepeatAndSelectDpEvent(GaussianDpEvent(s), 5.0, shape), 1e-6) for s in (9.0, 4.0, 1.0, 0.1)
        ]
        assert noises == sorted(noises)
    event = compose([RepeatAndSelectDpEvent(G, 5.0, 0.0), G])
    assert get_epsilon(event, 1e-5) < get_epsilon(event, 1e-6) < get_epsilon(compose([event, G]), 1e-6)
    assert get_delta(event, 2.0) < get_delta(event, 1.0)
    assert get_delta(event, get_epsilon(event, 1e-6)) == pytest.approx(1e-6, rel=2e-3)


@over_rows("method", ["pld", "rdp"])
def test_one_try_costs_one_run(method):
    for run in (G, dpsgd(2.0), compose([G, LaplaceDpEvent(9.0)])):
        price = get_epsilon(run, 1e-5, method=method)
        for shape in (0.0, 1.0, 0.3):
            assert get_epsilon(RepeatAndSelectDpEvent(run, 1.0, shape), 1e-5, method=method) == price
        nearly = get_epsilon(RepeatAndSelectDpEvent(run, 1.0 + 1e-9, 1.0), 1e-5, method=method)
        assert price * (1 - 1e-4) <= nearly <= price * (1 + 2e-3)
    assert get_epsilon(RepeatAndSelectDpEvent(G, 1.0, INF), 1e-5, method=method) > get_epsilon(G, 1e-5, method=method)


def test_composition_with_next_to_nothing_changes_next_to_nothing():
    event = RepeatAndSelectDpEvent(G, 10.0, 0.0)
    alone = get_epsilon(event, 1e-6)
    assert alone * (1 - 1e-4) <= get_epsilon(compose([event, GaussianDpEvent(1e4)]), 1e-6) <= alone * (1 + 1e-3)
    whole = compose([event, GaussianDpEvent(20.0), dpsgd(2.0)])
    apart = get_epsilon(event, 1e-6) + get_epsilon(GaussianDpEvent(20.0), 1e-6) + get_epsilon(dpsgd(2.0), 1e-6)
    assert alone < get_epsilon(whole, 1e-6) < 0.8 * apart
    assert get_epsilon(whole, 1e-6) < get_epsilon(whole, 1e-6, method="rdp")


def test_the_end_of_every_scale_has_a_price_in_finite_time():
    runs = (
        GaussianDpEvent(1e-3),
        dpsgd(0.3),
        EpsilonDeltaDpEvent(0.0, 1e-9),
        LaplaceDpEvent(0.01),
    )
    laws = itertools.cycle(((1e6, 0.0), (1e6, INF), (2.0, 50.0)))
    for run, (mean, shape) in zip(runs, laws, strict=False):
        event = RepeatAndSelectDpEvent(run, mean, shape)
        with calls_at_most(1_000_000):
            assert get_epsilon(event, 1e-5) >= get_epsilon(run, 1e-5) * (1 - 1e-9)
            assert get_epsilon(compose([event, G]), 1e-5) >= get_epsilon(G, 1e-5)
            assert 0.0 < get_delta(event, 3.0) <= 1.0


def test_replaced_records():
    event = RepeatAndSelectDpEvent(GaussianDpEvent(8.0), 10.0, 0.0)
    half = RepeatAndSelectDpEvent(GaussianDpEvent(4.0), 10.0, 0.0)
    for method in ("pld", "rdp"):
        assert get_epsilon(event, 1e-6, method=method, adjacency="replace_one") == pytest.approx(
            get_epsilon(half, 1e-6, method=method), rel=1e-9
        )
    sampled = RepeatAndSelectDpEvent(dpsgd(2.0), 10.0, 0.0)
    assert get_epsilon(sampled, 1e-6, adjacency="replace_one") > get_epsilon(sampled, 1e-6)


# --- the worst of several ---


def test_worst_of_is_the_pointwise_largest():
    narrow, wide = GaussianDpEvent(2.0), EpsilonDeltaDpEvent(1.2, 0.0)
    both = WorstOfDpEvent((narrow, wide))
    for method in ("pld", "rdp"):
        for delta in (1e-3, 1e-9):
            each = [get_epsilon(event, delta, method=method) for event in (narrow, wide)]
            assert max(each) * (1 - 1e-9) <= get_epsilon(both, delta, method=method)
    assert get_epsilon(both, 1e-9) == pytest.approx(get_epsilon(narrow, 1e-9), rel=1e-3)
    for epsilon in (0.1, 1.0, 2.0):
        most = max(get_delta(event, epsilon) for event in (narrow, wide))
        assert most * (1 - 1e-9) <= get_delta(both, epsilon) <= most * (1 + 1e-3) + 1e-12
    search = RepeatAndSelectDpEvent(both, 6.0, 0.0)
    for method in ("pld", "rdp"):
        most = max(get_epsilon(RepeatAndSelectDpEvent(e, 6.0, 0.0), 1e-6, method=method) for e in (narrow, wide))
        assert get_epsilon(search, 1e-6, method=method) >= most * (1 - 1e-9)


def test_worst_of_covers_candidates_drawn_at_random():
    """Two candidates of equal chance, outputs of both in any order: exact law of the best of K."""
    law = NumberOfTries(5.0, 0.0)
    event = law.event(
        WorstOfDpEvent((EpsilonDeltaDpEvent(1.0, 0.0), SelfComposedDpEvent(EpsilonDeltaDpEvent(0.3, 0.0), 3)))
    )
    pairs = responses(1.0, 1, 4), responses(0.3, 3, 2)
    p, q = (np.concatenate([0.5 * pair[side] for pair in pairs]) for side in (0, 1))
    by_loss = np.argsort(p / q, kind="stable")
    p, q = p[by_loss], q[by_loss]
    for epsilon in (0.1, 0.6, 1.1):
        for order in orders(p.size, random.Random(5)):
            exact = hockey_stick(best_of(p[order], law), best_of(q[order], law), epsilon)
            assert exact <= get_delta(event, epsilon)
            assert exact <= get_delta(event, epsilon, method="rdp")


def test_worst_of_in_its_simplest_form():
    assert flatten(WorstOfDpEvent((G, G))) == {G: 1}
    assert flatten(WorstOfDpEvent([G, NoOpDpEvent()])) == {G: 1}
    assert flatten(WorstOfDpEvent((NoOpDpEvent(),))) == {}
    assert flatten(RepeatAndSelectDpEvent(compose([G] * 3), 1.0, 0.0)) == {G: 3}
    nested = WorstOfDpEvent((WorstOfDpEvent((G, LaplaceDpEvent(3.0))), GaussianDpEvent(2.0)))
    flat = WorstOfDpEvent((G, LaplaceDpEvent(3.0), GaussianDpEvent(2.0)))
    assert get_epsilon(nested, 1e-6) == get_epsilon(flat, 1e-6)
    assert get_epsilon(WorstOfDpEvent((G, NonPrivateDpEvent())), 1e-6) == INF
    for broken in ((), (1,), G):
        with pytest.raises((TypeError, ValueError), match="WorstOfDpEvent"):
            WorstOfDpEvent(broken)


# --- calibration, bounds, ledgers ---


@over_rows(("make", "method"), [(GaussianDpEvent, "rdp"), (dpsgd, "pld")])
def test_noise_of_a_whole_search(make, method):
    def whole(tries, sigma):
        return compose([tries.event(compose([make(sigma), GaussianDpEvent(60.0)])), GaussianDpEvent(40.0), make(sigma)])

    with calls_at_most(2_500_000):
        tries, noise = calibrate_selection(whole, 10.0, 1.0, 1e-5, method=method)
    assert (1 - 3e-4) <= get_epsilon(whole(tries, noise), 1e-5, method=method) <= 1.0
    for shape in (0.0, 1.0, INF):
        law = NumberOfTries(10.0, shape)
        assert get_epsilon(whole(law, noise), 1e-5, method=method) >= 1.0 - 3e-4
    found, price = cheapest_tries(lambda law: whole(law, noise), 10.0, 1e-5, method=method)
    assert found == tries
    assert price == get_epsilon(whole(tries, noise), 1e-5, method=method)
    alone = calibrate_noise_multiplier(lambda s: RepeatAndSelectDpEvent(make(s), 10.0, 0.0), 1.0, 1e-5, method=method)
    assert alone < noise


def test_bounds_hold_a_selection_between_one_run_and_its_price():
    event = compose([RepeatAndSelectDpEvent(WorstOfDpEvent((G, GaussianDpEvent(9.0))), 10.0, 0.0), dpsgd(3.0)])
    low, high = get_epsilon_bounds(event, 1e-6)
    assert high == get_epsilon(event, 1e-6)
    assert low == pytest.approx(get_epsilon(compose([G, dpsgd(3.0)]), 1e-6), rel=2e-3)
    low, high = get_epsilon_bounds(RepeatAndSelectDpEvent(G, 2.0, INF), 1e-6)
    assert 0.0 < low < get_epsilon(G, 1e-6) < high


@pytest.mark.parametrize(("mean", "shape"), [(6.0, 0.0), (2.0, INF)])
def test_the_mechanism_itself_run_many_times(mean, shape):
    """Draw K, make K responses, keep the best: frequencies against the exact law, at a false-alarm rate of 1e-6."""
    law, source, runs = NumberOfTries(mean, shape), np.random.default_rng(11), 20_000
    p, _ = responses(0.4, 4, 1)
    order = np.array([3, 0, 4, 1, 2])  # worst first
    rank = np.argsort(order)
    counts = np.zeros(6)
    for _ in range(runs):
        tries = law.draw(int(word) for word in source.integers(0, 2**64, 2, dtype=np.uint64))
        outputs = rank[source.choice(5, size=tries, p=p)]
        counts[outputs.max() if tries else 5] += 1
    expected = runs * best_of(p[order], law)
    kept = expected > 0.0
    assert counts[~kept].sum() == 0
    statistic = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic <= chi2.isf(1e-6, kept.sum() - 1)


def test_both_directions_of_a_sampled_try_are_covered():
    event = RepeatAndSelectDpEvent(dpsgd(0.6, 0.05, 3), 1.0 + 1e-9, 1.0)
    for epsilon in (0.05, 0.3, 1.0, 2.5):
        one = get_delta(dpsgd(0.6, 0.05, 3), epsilon)
        assert one * (1 - 1e-9) <= get_delta(event, epsilon) <= one * (1 + 1e-3)


def test_a_ceiling_takes_searches():
    search = compose(
        [RepeatAndSelectDpEvent(WorstOfDpEvent((G, GaussianDpEvent(5.0))), 5.0, 0.0), GaussianDpEvent(30.0)]
    )
    for first in (search, G):
        *others, limit = rule_for(releases(first), 20.0, 1e-5, False, "auto").filters(20.0, False)
        assert limit.order is not None
        assert 0.0 < limit.cost(releases(search)) < limit.budget
    (gaussian,) = others
    assert not gaussian.covers(releases(search))
    ledger = PrivacyAccountant(epsilon=get_epsilon(search, 1e-5) * 1.0001, delta=1e-5)
    ledger.spend(search, label="one plan, admitted by its own price")
    assert ledger.get_epsilon(1e-5) == get_epsilon(search, 1e-5)


def test_reading_is_deterministic():
    event = compose([RepeatAndSelectDpEvent(dpsgd(1.7), 7.0, 0.0), G])
    first = get_epsilon(event, 3e-6)
    from skdp.accounting import methods as _methods
    from skdp.accounting.pld import directions as _directions

    _directions._selected_profile.cache_clear()
    _methods._epsilon.cache_clear()
    assert get_epsilon(event, 3e-6) == first
