"""Tests with the noise in their null distributions: charged once, of the right level, and with power."""

from types import SimpleNamespace

import numpy as np
import pytest
from replay import moves, recording, replay
from scipy.stats import binom, chi2, chi2_contingency

from skdp import PrivacyAccountant
from skdp import statistics as st
from skdp.accounting import get_epsilon
from skdp.statistics.cells import Merged
from skdp.statistics.hypothesis_tests import _compare, _mean_of, independence_test
from skdp.statistics.table_release import MomentsOfNumbers, NoisyTable

FALSE_ALARM = 1e-6
N = 4_000
RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], N, p=[0.6, 0.4])
AGE = RNG.integers(18, 91, N).astype(float)
JOB = RNG.choice(["clerk", "nurse", "cook"], N)
EFFECT = np.clip(AGE + 10.0 * (SEX == "m"), 18, 90)
SETTINGS = {"random_state": 0, "delta": 1e-5}
TESTS = {
    "mean": lambda x, by, **s: st.private_mean_difference(x, by, categories=["f", "m"], bounds=(18, 90), **s),
    "distribution": lambda x, by, **s: st.private_two_sample_test(x, by, categories=["f", "m"], bounds=(18, 90), **s),
    "categories": lambda x, by, **s: st.private_chi2_test(
        np.where(x > 50, "old", "young"), by, categories=[["old", "young"], ["f", "m"]], **s
    ),
}
ALL = pytest.mark.parametrize("name", TESTS)


@ALL
def test_a_test_is_charged_once_and_finds_what_is_there(name):
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    with recording([]) as releases:
        found = TESTS[name](EFFECT, SEX, epsilon=0.5, accountant=accountant, **SETTINGS)
    assert len(accountant.history) == 1
    assert get_epsilon(accountant.history[0].event, 1e-5) == pytest.approx(0.5, rel=1e-3)
    assert 1 <= len(releases) <= 3  # counts of a number between bounds are released twice
    assert found.p_value < 0.01
    assert TESTS[name](AGE, SEX, epsilon=0.5, **SETTINGS).p_value > 0.01


@ALL
def test_one_row_moves_each_release_by_its_sensitivity(name):
    muted = EFFECT.copy()
    muted[7] = np.nan
    one, other = replay(lambda x: _Kept(TESTS[name](x, SEX, epsilon=0.5, **SETTINGS)), EFFECT, muted)
    assert max(moves(one, other)) <= 2.0 + 1e-9


class _Kept:
    def __init__(self, test):
        self.statistic = test.statistic


def test_a_difference_is_that_of_the_means_with_its_error():
    found = TESTS["mean"](EFFECT, SEX, epsilon=50.0, **SETTINGS)
    parts = [EFFECT[each == SEX] for each in ("f", "m")]
    error = np.sqrt(sum(part.var() / len(part) for part in parts))
    assert found.difference.value == pytest.approx(parts[1].mean() - parts[0].mean(), abs=0.1 * error)
    assert found.difference.standard_error == pytest.approx(error, rel=0.05)
    reach = found.difference.high - found.difference.low
    assert reach == pytest.approx(2 * 1.959964 * found.difference.standard_error)


def test_a_difference_has_the_law_of_sampling_and_noise():
    """The sum of squared statistics is chi-squared under the null hypothesis: of 60 releases, but one in a million."""
    rng, squares = np.random.default_rng(0), []
    for seed in range(60):
        x, by = rng.integers(18, 91, 800).astype(float), rng.choice(["f", "m"], 800, p=[0.7, 0.3])
        found = TESTS["mean"](x, by, epsilon=0.25, delta=1e-5, random_state=seed)
        squares.append(found.statistic**2)
    low, high = chi2.interval(1 - FALSE_ALARM, 60)
    assert low < sum(squares) < high


def test_a_difference_of_truth_values_is_one_of_proportions():
    is_old = EFFECT > 60
    found = st.private_mean_difference(is_old, SEX, categories=["f", "m"], bounds=(0, 1), epsilon=50.0, **SETTINGS)
    exact = is_old[SEX == "m"].mean() - is_old[SEX == "f"].mean()
    assert found.difference.value == pytest.approx(exact, abs=0.005)


def table(counts, deviation):
    padded = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1))
    padded[:-1, :-1] = counts
    rows, columns = (Merged([str(k) for k in range(size)], np.arange(size + 1)) for size in counts.shape)
    return NoisyTable(rows, columns, padded, deviation)


def test_without_noise_it_is_pearsons():
    counts = np.array([[50.0, 30.0, 20.0], [40.0, 45.0, 35.0]])
    found, exact = independence_test(table(counts, 0.0)), chi2_contingency(counts, correction=False)
    assert found.statistic == pytest.approx(exact.statistic)
    assert found.p_value == pytest.approx(exact.pvalue, abs=0.05)


def test_the_level_is_kept_under_noise_that_pearson_would_take_for_an_effect():
    """Of 200 tables of independent columns 5 %, but for one in a million; by the law of chi-squared, most."""
    rng, deviation, repeats = np.random.default_rng(0), 25.0, 200
    shares = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    drawn = rng.multinomial(1_000, shares.ravel(), repeats).reshape(-1, 3, 2)
    noisy = drawn + deviation * rng.standard_normal(drawn.shape)
    rejected = sum(independence_test(table(each, deviation), 400).p_value < 0.05 for each in noisy)
    naive = sum(chi2_contingency(np.maximum(each, 1.0), correction=False).pvalue < 0.05 for each in noisy)
    assert binom.isf(1 - FALSE_ALARM / 2, repeats, 0.05) <= rejected <= binom.isf(FALSE_ALARM / 2, repeats, 0.05)
    assert naive > repeats / 2


def noisy_part(n, rng):
    """Noisy sums of n numbers of mean 0 without a gap, with the noise that 1,000 rows have at an epsilon of .3."""
    z, noise, of_gaps = np.clip(rng.normal(0.0, 0.4, n), -1, 1), 27.0, 55.0
    sums = np.array([[n, z.sum()], [z.sum(), z @ z]]) + noise * rng.standard_normal((2, 2)) * [[1, 0.5**0.5], [0, 1]]
    gap = float(rng.normal(0.0, 0.15))
    moments = MomentsOfNumbers(sums, noise, 1.0, np.array([gap]))
    return SimpleNamespace(moments=moments, counts=[of_gaps * rng.standard_normal(1)], deviation=of_gaps)


def mean_of(tally):
    return _mean_of(SimpleNamespace(_tally=tally))


def test_the_level_of_a_difference_of_means_is_kept_under_much_noise():
    """Of 3,000 pairs 5 %, but for one in a million; half of that with gaps cut at 0 and errors at noisy means."""
    rng, repeats = np.random.default_rng(0), 3_000
    pairs = ([mean_of(noisy_part(n, rng)) for n in (700, 300)] for _ in range(repeats))
    rejected = sum(_compare(*pair, 1.0).p_value < 0.05 for pair in pairs)
    assert binom.isf(1 - FALSE_ALARM / 2, repeats, 0.05) <= rejected <= binom.isf(FALSE_ALARM / 2, repeats, 0.05)


def test_a_difference_of_means_has_the_errors_of_the_null_hypothesis():
    """Its statistic, and not its interval; and as many gaps as the noise says, be they fewer than none."""
    tally = noisy_part(700, np.random.default_rng(0))
    first, second = (
        mean_of(SimpleNamespace(**{**vars(tally), "counts": [np.array([gaps])]})) for gaps in (-50.0, 50.0)
    )
    assert first.n == pytest.approx(second.n + 100.0)
    second = second._replace(mean=first.mean + 1.0)
    found, common = _compare(first, second, 1.0), first.mean + second.n / (first.n + second.n)
    assert found.statistic == pytest.approx(1.0 / np.hypot(first.error(common), second.error(common)))
    error = np.hypot(first.error(first.mean), second.error(second.mean))
    assert found.difference.standard_error == pytest.approx(error)
    assert found.statistic > 1.1 / error


def test_a_table_of_noise_alone_says_nothing():
    assert independence_test(table(np.full((2, 2), -3.0), 5.0)).p_value > 0.05


REJECTED = {
    "no bounds": (lambda s: st.private_mean_difference(AGE, SEX, categories=["f", "m"], **s), "got None"),
    "three": (
        lambda s: st.private_mean_difference(AGE, SEX, categories=["f", "m", "x"], bounds=(0, 1), **s),
        "two subgroups",
    ),
    "no pair": (lambda s: st.private_chi2_test(JOB, SEX, categories=["f"], **s), "pair of lists"),
    "lengths": (lambda s: TESTS["categories"](AGE, SEX[:-1], **s), "equal length"),
}


@pytest.mark.parametrize("why", REJECTED)
def test_bad_input_is_rejected_in_one_line_before_any_charge(why):
    call, words = REJECTED[why]
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match=words) as rejection:
        call({"accountant": accountant})
    assert "\n" not in str(rejection.value)
    assert accountant.history == ()
