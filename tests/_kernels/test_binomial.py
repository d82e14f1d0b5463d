"""Binomial counts: tables against exact fractions, draws against the tables, and counts against their law."""

import hashlib

import numpy as np
import pytest
import reference
from combinations import over_rows
from scipy.stats import binom, chi2

from skdp._kernels.bits import add_counts, binomial_tables, distribution
from skdp.mechanisms.sampling import FullBatch, PoissonSampling
from skdp.mechanisms.streams import SecretStream

FALSE_ALARM = 1e-6
WHOLE = 2**128
RATES = [1e-9, 0.1, 0.5, 2 / 3, 0.999, float(np.nextafter(1.0, 0.0))]


def stream(name):
    return SecretStream(hashlib.sha256(repr(name).encode()).digest())


def value_at(size, rate, k):
    """The distribution function at k by a table, as a fraction of 2**128."""
    first, bounds = distribution(size, rate)
    return 0 if k < first else bounds[min(k - first, len(bounds) - 1)]


@over_rows("rate", RATES)
@over_rows("size", [1, 4, 256])
def test_tables_are_the_exact_distribution_function_to_128_bits(size, rate):
    for k, exact in enumerate(reference.binomial_distribution(size, rate)):
        assert abs(value_at(size, rate, k) - exact * WHOLE) <= 1 + 2.0**-20, k


def test_a_rate_beyond_128_bits_draws_nothing():
    """Its counts have a probability that no delta notices, and no table is empty."""
    assert distribution(4, 1e-60) == (0, [WHOLE - 1])


def numbers_of_interest(bounds):
    """Numbers at, just below and just above every value, and at the ends."""
    near = {value + off for value in bounds for off in (-1, 0, 1, 2**64, -(2**64))}
    return sorted(number for number in near | {0, WHOLE - 1} if 0 <= number < WHOLE)


@over_rows("rate", RATES)
@over_rows("size", [1, 64])
def test_a_draw_is_the_number_of_values_that_its_number_exceeds(size, rate):
    first, bounds = distribution(size, rate)
    numbers = numbers_of_interest(bounds)
    numbers += [int.from_bytes(hashlib.sha256(bytes([k])).digest()[:16]) for k in range(60)]
    words = np.array([[number >> 64 for number in numbers], [number % 2**64 for number in numbers]], np.uint64)
    counts = np.zeros(len(numbers))
    add_counts(words, np.arange(len(numbers)), np.array([0, len(numbers)]), binomial_tables([size], rate), counts)
    assert counts.tolist() == [first + sum(bound < number for bound in bounds) for number in numbers]


def test_tables_lie_one_after_the_other():
    """Draws from several tables at once are those from each alone."""
    sizes, rate = [1, 4, 16, 1024], 0.3
    words = stream("several").words(800).reshape(2, 400)
    together = np.zeros(400)
    add_counts(words, np.arange(400), np.arange(0, 401, 100), binomial_tables(sizes, rate), together)
    for number, size in enumerate(sizes):
        part, alone = slice(100 * number, 100 * (number + 1)), np.zeros(100)
        own = np.ascontiguousarray(words[:, part])
        add_counts(own, np.arange(100), np.array([0, 100]), binomial_tables([size], rate), alone)
        np.testing.assert_array_equal(together[part], alone)


def chi_square(counts, law, n_classes=24):
    """P-value of a chi-squared test over classes of nearly equal probability."""
    edges = np.unique(law.ppf(np.linspace(0, 1, n_classes + 1)[1:-1]))
    below = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    expected = np.diff(below) * len(counts)
    found = np.bincount(np.searchsorted(edges, counts, side="left"), minlength=len(edges) + 1)
    kept = expected > 0
    assert not found[~kept].any()
    statistic = float(((found - expected)[kept] ** 2 / expected[kept]).sum())
    return float(chi2.sf(statistic, max(1, kept.sum() - 1)))


@pytest.mark.compiled  # 60 million draws from tables
@over_rows("rate", [1e-4, 0.125, 0.9])
@over_rows(("copies", "n_draws"), [(1, 50_000), (7, 50_000), (300, 50_000), (65_541, 20_000), (10**9, 600)])
def test_counts_have_the_binomial_law(copies, n_draws, rate):
    """At a false alarm of 1e-6 for all of these cases together, with fixed seeds."""
    groups = min(n_draws, 200 if copies > 10**6 else n_draws)
    draw, source = PoissonSampling(rate).counter(np.full(groups, copies)), stream((copies, rate))
    counts = np.concatenate([draw(source) for _ in range(n_draws // groups)])
    n_classes = 24 if n_draws > 1000 else 8
    assert chi_square(counts, binom(copies, rate), n_classes) > FALSE_ALARM / 15
    assert (counts == np.rint(counts)).all()
    assert 0 <= counts.min() <= counts.max() <= copies


@over_rows("rate", [0.05, 0.4])
def test_copies_are_in_at_the_rate_of_the_event_and_independently(rate):
    """Property 10 for groups: means, variances and covariances of counts, each within 6.4 standard errors.

    A false alarm of 1e-6 for the 63 figures; the fourth moment bounds the error of a variance.
    """
    copies, lots = np.array([1, 3, 3, 40, 129, 1, 2]), 20_000
    draw, source = PoissonSampling(rate).counter(copies), stream(("together", rate))
    counts = np.array([draw(source) for _ in range(lots)])
    centered = counts - copies * rate
    for i, m in enumerate(copies):
        law = binom(m, rate)
        assert abs(centered[:, i].mean()) < 6.4 * law.std() / np.sqrt(lots)
        spread = (centered[:, i] ** 2).std() / np.sqrt(lots)
        assert abs((centered[:, i] ** 2).mean() - law.var()) < 6.4 * spread
        for j in range(i):
            deviation = law.std() * binom(copies[j], rate).std() / np.sqrt(lots)
            assert abs((centered[:, i] * centered[:, j]).mean()) < 6.4 * deviation


def test_a_full_batch_has_all_copies_and_draws_no_word():
    copies, source = np.array([3, 1, 10**9]), stream("full")
    counts = FullBatch().counter(copies)(source)
    np.testing.assert_array_equal(counts, copies)
    assert counts.dtype == np.float64
    assert source.position == (0, 0)
    assert PoissonSampling(0.3).counter(np.empty(0, np.int64))(source).shape == (0,)
