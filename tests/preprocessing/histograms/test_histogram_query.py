"""What a query of edges, bounds and categories costs, what one row changes of it, and what it finds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from reference import best_partition, joint_estimate
from replay import recording
from scipy.stats import binom, norm

from skdp.accounting import EpsilonDeltaDpEvent, GaussianDpEvent, get_epsilon
from skdp.accounting.releases import releases
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.cell_tree import (
    OCTAVES,
    Cells,
    _best_partition,
    equal_mass_edges,
    median_cell,
    occupied_octaves,
)
from skdp.preprocessing.histogram_query import HistogramQuery, observed_counts, stability_threshold

FALSE_ALARM = 1e-6
N = 400


def query(n_numbers=2, n_words=2, **fields):
    given = {"n_bins": 8, "max_categories": 5, "adjacency": "zero_out", "bounds": ()}
    given["threshold_delta"] = 1e-6 if n_words else 0.0
    return HistogramQuery(n_numbers, n_words, **{**given, **fields})


def stream(seed=0):
    return SecretStream.from_random_state(seed, "test")


def released(estimated, numbers, words=(), noise=0.01, n=None):
    return estimated.release(numbers, words, noise, n or len(numbers[0] if numbers else words[0][0]), stream())


# --- the cost ---


@pytest.mark.parametrize(
    ("n_numbers", "n_words", "bounds"),
    [(3, 2, ()), (0, 4, ()), (5, 0, ()), (2, 0, ((0, 1), (0, 2))), (2, 1, ((0, 1), (0, 2))), (2, 3, (None, (0, 9)))],
)
def test_all_rounds_cost_one_gaussian_release_and_the_threshold(n_numbers, n_words, bounds):
    found = releases(query(n_numbers, n_words, bounds=bounds).event_at(7.0))
    assert found.mu_squared == pytest.approx(1 / 49, rel=1e-12)
    assert found.epsilon_delta == (((0.0, 1e-6, 1),) if n_words else ())
    assert set(found.kinds) <= {"gaussian", "epsilon_delta"}


def test_the_price_is_that_of_the_gaussian_at_what_the_threshold_leaves_of_delta():
    """The profile of the composition is t + (1 - t) times that of the Gaussian."""
    t, delta = 1e-6, 1e-5
    whole = get_epsilon(query(threshold_delta=t).event_at(5.0), delta)
    alone = get_epsilon(GaussianDpEvent(5.0), (delta - t) / (1 - t))
    assert whole == pytest.approx(alone, rel=1e-9)


# --- what one row changes ---


def rounds(estimated, *tables):
    """Releases of a query of D, and of D', which sees the noisy counts of D; both must have the same words."""
    found = []
    for each in tables:
        with recording(found[0] if found else []) as seen:
            estimated.release(*each, 3.0, N, stream())
        found.append(seen)
    return found


def table(row, width=3, seed=0):
    """Columns of numbers and of words, where the first row holds what is given; None is a null row."""
    rng = np.random.default_rng(seed)
    numbers = [rng.normal(0, 10.0**j, N) for j in range(width)]
    words = [(rng.integers(0, 4, N), list("abcd")) for _ in range(width)]
    for x, (codes, _) in zip(numbers, words, strict=True):
        x[0], codes[0] = (np.nan, -1) if row is None else row
    return numbers, words


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("row", [(0.0, 0), (1e300, 1), (-np.inf, 2), (np.nan, 3), (5.0, -1)])
def test_a_row_moves_each_round_by_its_sensitivity_at_most(adjacency, row):
    """Under replace_one by twice of it: the cost is that of twice the sensitivity."""
    estimated = query(3, 3, adjacency=adjacency, bounds=(None, None, (-50.0, 50.0)))
    other = None if adjacency == "zero_out" else (-3.0, 3)
    one, two = rounds(estimated, table(row), table(other))
    assert len(one) == 3
    allowed = 2.0 if adjacency == "replace_one" else 1.0
    for a, b in zip(one, two, strict=True):
        assert np.linalg.norm(a.exact - b.exact) <= allowed * a.sensitivity * (1 + 1e-12)


def test_the_bound_is_attained():
    """A row with no gap, whose cells and words differ from those of its neighbor everywhere."""
    for adjacency, other, allowed in (("zero_out", None, 1.0), ("replace_one", (1e20, 1), 2.0)):
        one, two = rounds(query(3, 3, adjacency=adjacency), table((-1e20, 0)), table(other))
        for a, b in zip(one, two, strict=True):
            assert np.linalg.norm(a.exact - b.exact) == pytest.approx(allowed * a.sensitivity, rel=1e-12)


def test_noise_is_that_of_the_event(released):
    estimated = query(3, 3)
    rounds(estimated, table((1.0, 1)))
    charged = sorted(each.noise for each in releases(estimated.event_at(3.0)).gaussian for _ in range(each.times))
    assert sorted(mechanism.noise_multiplier for _, mechanism in released) == charged


def test_a_gap_is_counted_nowhere():
    (seen,) = rounds(query(3, 3), table(None))
    assert [each.exact.sum() for each in seen] == [6.0 * (N - 1), 3.0 * (N - 1), 3.0 * (N - 1)]


# --- categories ---


@pytest.mark.parametrize("columns", [1, 2, 50, 1000])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_the_words_of_one_row_are_named_with_probability_delta_in_all_columns_together(columns, delta):
    threshold = stability_threshold(37.0, delta, columns)
    shown = -math.expm1(columns * norm.logsf(-(threshold - 1.0) / 37.0))
    assert 0.99 * delta < shown <= delta * (1 + 1e-9)


def test_a_row_with_a_word_of_its_own_in_each_column_is_seen_as_rarely_as_delta_says():
    delta, runs = 0.05, 4000
    estimated = query(0, 3, threshold_delta=delta)
    words = [(np.array([0]), ["rare"])] * 3
    seen = sum(any(estimated.release([], words, 1.0, 1, stream(seed)).categories) for seed in range(runs))
    assert binom.ppf(FALSE_ALARM, runs, delta) <= seen <= binom.ppf(1 - FALSE_ALARM, runs, delta)


@pytest.mark.parametrize("noise", [0.5, 40.0, 1e5])
def test_threshold_uses_standard_deviation_of_drawn_noise(monkeypatch, noise):
    """A smaller one lets a category of one row pass with more than the part of delta that is charged for it."""
    drawn, used, noisy = [], [], SecretStream.noisy
    monkeypatch.setattr(
        SecretStream, "noisy", lambda *given: drawn.append(Fraction(given[2]) * Fraction(given[3])) or noisy(*given)
    )
    monkeypatch.setattr(
        "skdp.preprocessing.histogram_query.named_categories", lambda *given: used.append(given[2]) or []
    )
    planned = query(0, 1, threshold_delta=1e-6)
    planned.release([], [(np.arange(100), [f"{i:02}" for i in range(100)])], noise, 100, stream())
    expected = stability_threshold(float(drawn[0]), 1e-6, 1)
    assert used == [planned.threshold_at(noise)] == [expected]


def test_words_are_named_sorted_whatever_their_order():
    codes = np.repeat(np.arange(4), [300, 200, 100, 5])
    for keys in itertools.permutations(["pear", "fig", "apple", "quince"]):
        (named,) = released(query(0, 1, threshold_delta=1e-3), [], [(codes, keys)], noise=5.0).categories
        assert named == sorted(named)
        assert set(keys[:3]) <= set(named)  # the rare one may pass the threshold


def test_the_order_of_rows_and_of_keys_changes_nothing():
    rng = np.random.default_rng(0)
    codes, keys = rng.integers(0, 6, N), ["f", "b", "d", "a", "c", "e"]
    turned = [5, 3, 1, 0, 2, 4]
    places = np.argsort(turned)
    other = places[codes][rng.permutation(N)], [keys[i] for i in turned]
    estimated = query(0, 1, max_categories=3, threshold_delta=0.1)
    assert released(estimated, [], [(codes, keys)], 20.0) == released(estimated, [], [other], 20.0)


def test_a_word_that_nobody_has_is_not_counted():
    keys, counts = observed_counts(np.array([0, 0, 2, -1]), ["b", "none", "a"])
    assert (keys, counts.tolist()) == (["a", "b"], [1.0, 2.0])
    named = [released(query(0, 1, threshold_delta=0.5), [], [(np.array([0]), ["a", "none"])], 1.0) for _ in range(9)]
    assert all("none" not in each.categories[0] for each in named)


# --- edges and bounds ---


def shares(x, edges):
    present = x[~np.isnan(x)]
    return np.bincount(np.searchsorted(edges, present, side="right"), minlength=len(edges) + 1) / len(present)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: 1.5e9 + rng.uniform(0, 3e7, n),
        lambda rng, n: -np.exp(rng.normal(8, 2, n)),
        lambda rng, n: rng.normal(1e-6, 1e-7, n),
        lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, rng.lognormal(0, 3, n)),
    ],
    ids=["seconds", "negative", "small", "tails-and-gaps"],
)
def test_bins_have_nearly_equal_mass(draw):
    x = draw(np.random.default_rng(0), 20_000)
    (edges,), ((low, high),), *_ = released(query(1, 0, n_bins=16), [x], noise=10.0)
    assert len(edges) == 15
    assert (np.diff(edges) > 0).all()
    assert shares(x, edges).min() > 0.03
    assert shares(x, edges).max() < 0.10
    assert np.nanmean((x >= low) & (x <= high)) > 0.45 if np.isnan(x).any() else np.mean((x >= low) & (x <= high)) > 0.9


@pytest.mark.parametrize("codes", [(-2, -1, 0, 1, 2), (1, 7), (2, 4, 8, 16)])
def test_few_distinct_numbers_get_a_bin_each(codes):
    x = np.random.default_rng(0).choice(codes, 20_000).astype(float)
    (edges,), *_ = released(query(1, 0, n_bins=16), [x], noise=10.0)
    bins = [int(np.searchsorted(edges, code, side="right")) for code in codes]
    assert len(set(bins)) == len(codes)


def test_a_number_that_most_rows_have_is_one_bin_and_the_others_divide_the_rest():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(50_000) < 0.9, 0.0, rng.lognormal(8, 1, 50_000))
    (edges,), (bounds,), *_ = released(query(1, 0, n_bins=9), [x], noise=5.0)
    found = shares(x, edges)
    assert found.max() == pytest.approx(0.9, abs=0.01)
    assert len(found) >= 6
    assert bounds[0] == 0.0


@pytest.mark.parametrize(
    ("x", "known"),
    [
        (np.zeros(5000), (0.0, 0.0)),
        (np.full(5000, 7.0), (7.0, 7.0)),
        (np.full(5000, np.nan), None),
        (np.array([3.0]), None),
        (np.full(5000, np.inf), (2.0**128, 2.0**128)),
    ],
    ids=["zeros", "constant", "gaps", "one row", "infinity"],
)
def test_columns_with_nothing_to_divide(x, known):
    (edges,), ((low, high),), *_ = released(query(1, 0), [x], noise=20.0)
    assert math.isfinite(low)
    assert low < high < math.inf
    assert len(np.unique(np.searchsorted(edges, x[~np.isnan(x)], side="right"))) <= 1
    if known is None:
        assert (low, high, len(edges)) == (-1.0, 1.0, 0)
    else:
        assert low <= known[0]
        assert high >= known[1]


def test_public_bounds_are_kept_and_numbers_beyond_them_go_to_the_outer_bins():
    x = np.concatenate([np.random.default_rng(0).uniform(18, 90, 20_000), np.full(500, 1e9), np.full(500, -np.inf)])
    (edges,), (bounds,), *_ = released(query(1, 0, bounds=((18, 90),)), [x], noise=5.0)
    assert bounds == (18, 90)
    assert edges[0] > 18
    assert edges[-1] <= 90
    assert shares(x, edges).max() < 0.16


def test_medians_of_whole_numbers_are_exact_and_lie_within_bounds():
    rng = np.random.default_rng(0)
    columns = [rng.choice([0.0, 5.0], 20_000, p=[0.9, 0.1]), rng.integers(1, 8, 20_000) * 1.0, np.full(20_000, np.nan)]
    assert released(query(3, 0), columns, noise=5.0).medians == [0.0, 4.0, 0.0]
    assert released(query(1, 0, bounds=((6.0, 9.0),)), columns[1:2], noise=5.0).medians == [6.0]


def test_cells_between_subnormal_bounds_are_made():
    for high in (5e-324, 2e-321, 1e-310):
        breaks = Cells.between(0.0, high).breaks
        assert breaks[0] == 0.0
        assert breaks[-1] == high


# --- against plain readings ---


def nested(rng):
    coarse = Cells.of(np.array([0.0, 1.0, 4.0]), rng.normal(50, 9, 4), rng.uniform(1, 9, 4))
    finer = coarse.refined(np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0]), rng.normal(20, 3, 7), 4.0)
    return finer.refined(np.array([0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 3.5, 4.0]), rng.normal(20, 3, 9), 2.0)


def test_the_estimate_is_that_of_least_squares():
    for seed in range(5):
        cells = nested(np.random.default_rng(seed))
        np.testing.assert_allclose(cells.estimate(), joint_estimate(cells), rtol=1e-9)


def test_the_partition_is_the_best_of_all():
    for seed in range(20):
        mass = np.random.default_rng(seed).uniform(-1, 5, 8)
        before = np.concatenate([[0.0], np.cumsum(mass)])
        assert _best_partition(before, 4, 1.5).tolist() == best_partition(mass, 4, 1.5)


def test_noise_alone_has_no_range():
    found = [occupied_octaves(np.random.default_rng(s).normal(0, 9.0, len(OCTAVES) + 1), 9.0) for s in range(300)]
    assert sum(each is not None for each in found) <= binom.ppf(1 - FALSE_ALARM, 300, 0.02)


def test_noise_alone_makes_one_bin():
    breaks = np.arange(100.0)
    for seed in range(5):
        counts = np.random.default_rng(seed).normal(0, 1.0, 101)
        cells = Cells.of(breaks, counts, np.ones(101))
        assert len(equal_mass_edges(cells, 16, 3.0)) <= 1


# --- rejections ---


def test_the_event_of_words_alone():
    event = query(0, 2).event_at(4.0)
    assert event.events == (GaussianDpEvent(4.0), EpsilonDeltaDpEvent(0.0, 1e-6))


@pytest.mark.parametrize("total", [-5.0, 0.0, 5.0])
def test_a_median_is_a_break_whatever_the_noise_leaves(total):
    counts = np.array([0.0, 1.0, -3.0, total + 2.0, 0.0])
    cells = Cells.of(np.array([0.0, 1.0, 2.0, 3.0]), counts, np.ones(5))
    assert median_cell(cells) in (0.0, 1.0, 2.0, 3.0)
    assert median_cell(Cells.of(np.array([0.0, 1.0]), np.array([-3.0, 0.0, 1.0]), np.ones(3))) in (0.0, 1.0)
