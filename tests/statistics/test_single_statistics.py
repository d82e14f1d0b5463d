"""Single figures: near the truth, with intervals, at the cost that was asked for."""

import numpy as np
import pandas as pd
import pytest
from replay import recording
from scipy.stats import binom

from skdp import PrivacyAccountant, describe
from skdp import statistics as st
from skdp.accounting import compose, get_epsilon
from skdp.mechanisms import DiscreteGaussianMechanism
from skdp.statistics.describer import TableDescriber

N = 3000
RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 91, N)
PAY = np.where(RNG.random(N) < 0.1, np.nan, np.clip(AGE / 2 + RNG.normal(20, 8, N), 0, 100))
JOB = RNG.choice(["clerk", "nurse", "cook"], N, p=[0.6, 0.3, 0.1])
SEX = RNG.choice(["f", "m"], N)
JOBS, SEXES = ["clerk", "nurse", "cook"], ["f", "m"]
R = np.corrcoef(AGE, np.nan_to_num(PAY, nan=np.nanmean(PAY)))[0, 1]

FIGURES = {
    "mean": (lambda **s: st.private_mean(PAY, bounds=(0, 100), **s), np.nanmean(PAY)),
    "sum": (lambda **s: st.private_sum(PAY, bounds=(0, 100), **s), np.nansum(PAY)),
    "count": (lambda **s: st.private_count(AGE > 65, **s), (AGE > 65).sum()),
    "quantile": (
        lambda **s: st.private_quantile(AGE, 0.3, bounds=(18, 90), **s),
        np.quantile(AGE, 0.3, method="inverted_cdf"),
    ),
    "correlation": (lambda **s: st.private_correlation(AGE, PAY, bounds=[(18, 90), (0, 100)], **s), R),
}
FRAMES = {
    "histogram": lambda **s: st.private_histogram(JOB, categories=JOBS, **s),
    "histogram of numbers": lambda **s: st.private_histogram(AGE, bounds=(18, 90), **s),
    "top": lambda **s: st.private_top_k(JOB, 2, categories=JOBS, **s),
    "crosstab": lambda **s: st.private_crosstab(JOB, SEX, categories=[JOBS, SEXES], **s),
}
ALL = {name: call for name, (call, _) in FIGURES.items()} | FRAMES


@pytest.mark.parametrize("name", ALL)
def test_a_figure_is_charged_once_at_the_price_that_was_asked_for(name):
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    with recording([]) as releases:
        ALL[name](epsilon=0.5, accountant=accountant)
    assert len(accountant.history) == 1
    assert get_epsilon(accountant.history[0].event, 1e-5) == pytest.approx(0.5, rel=1e-3)
    assert 1 <= len(releases) <= 2


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_near_the_truth_within_their_intervals(name):
    """Of 40 intervals of 95 %, as many as chance lets hold, but for one in a million."""
    call, exact = FIGURES[name]
    found = [call(epsilon=0.5, random_state=seed) for seed in range(40)]
    assert sum(each.low - 1e-9 <= exact <= each.high + 1e-9 for each in found) >= binom.ppf(1e-6, 40, 0.95)
    assert np.mean([each.value for each in found]) == pytest.approx(exact, rel=0.05)
    assert all(each.low <= each.value <= each.high for each in found)


def test_frames_are_near_the_truth():
    counts = pd.Series(JOB).value_counts()
    np.testing.assert_allclose(
        FRAMES["histogram"](epsilon=100.0, random_state=0)["count"].iloc[:3], counts[JOBS], atol=2.0
    )
    assert list(FRAMES["top"](epsilon=100.0, random_state=0).index) == list(counts.index[:2])
    ages = FRAMES["histogram of numbers"](epsilon=100.0, random_state=0)
    np.testing.assert_allclose(ages["count"].iloc[:-1], np.bincount(AGE)[18:], atol=2.0)
    assert ages["count"].sum() == pytest.approx(N)
    table = FRAMES["crosstab"](epsilon=100.0, random_state=0)
    np.testing.assert_allclose(table.iloc[:3, :2], pd.crosstab(JOB, SEX).loc[JOBS, SEXES], atol=2.0)
    assert (table.index.name, table.columns.name) == ("x", "y")


def test_missing_bounds_are_estimated():
    assert st.private_mean(AGE, epsilon=2.0, random_state=0).value == pytest.approx(AGE.mean(), abs=5.0)
    assert list(st.private_top_k(JOB, 2, epsilon=2.0, random_state=0).index) == ["clerk", "nurse"]
    assert "left" in st.private_histogram(AGE, epsilon=2.0, random_state=0)
    assert {"clerk", "nurse"} <= set(st.private_crosstab(JOB, SEX, epsilon=2.0, random_state=0).index)


def test_several_quantiles_ascend_and_cost_what_one_does():
    accountant = PrivacyAccountant()
    low, middle, high = st.private_quantile(PAY, [0.25, 0.5, 0.75], bounds=(0, 100), epsilon=0.1, accountant=accountant)
    assert low.value <= middle.value <= high.value
    assert len(accountant.history) == 1


def test_a_list_has_no_type():
    """Whether its numbers are whole would follow from its cells: a gap in one of them would change all bins."""
    whole = [20, 30] * 50
    one, other = (st.private_histogram(each, bounds=(0, 100), random_state=0) for each in (whole, [None, *whole[1:]]))
    assert list(one.index) == list(other.index)
    assert len(st.private_histogram(np.array(whole), bounds=(0, 100), random_state=0)) == 102


REJECTED = {
    "two dimensions": (lambda **s: st.private_mean(np.ones((3, 2)), bounds=(0, 1), **s), "shape"),
    "different lengths": (lambda **s: st.private_crosstab(JOB, SEX[:3], **s), "equal length"),
    "one pair of bounds for two": (lambda **s: st.private_correlation(AGE, PAY, bounds=(0, 1), **s), "two pairs"),
    "one list for two": (lambda **s: st.private_crosstab(JOB, SEX, categories="f", **s), "pair of lists"),
    "bounds and categories": (
        lambda **s: st.private_histogram(AGE, bounds=(0, 1), categories=[1], **s),
        "must be None with",
    ),
    "quantile": (lambda **s: st.private_quantile(AGE, 1.5, bounds=(0, 1), **s), "quantiles"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejections_are_one_line_and_cost_nothing(name):
    call, words = REJECTED[name]
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match=words) as rejection:
        call(accountant=accountant)
    assert "\n" not in str(rejection.value)
    assert accountant.history == ()


def test_rejected_nested_cell_is_recorded():
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match="nested cells"):
        st.private_mean([1.0, [2.0]], bounds=(0, 1), accountant=accountant)
    assert [entry.kind for entry in accountant.entries] == ["rejection"]


# --- discrete noise ---

COUNTED = ["count", "histogram", "histogram of numbers", "top", "crosstab"]
NEIGHBORS = {
    "count": lambda **s: st.private_count(np.append(AGE[1:], 20) > 65, **s),
    "crosstab": lambda **s: st.private_crosstab(np.append("cook", JOB[1:]), SEX, categories=[JOBS, SEXES], **s),
}


@pytest.mark.parametrize("name", COUNTED)
def test_discrete_noise_is_charged_at_the_events_of_what_draws_it(name, monkeypatch):
    accountant, drawn, add_noise = PrivacyAccountant(1.0, 1e-5), [], DiscreteGaussianMechanism._add_noise
    monkeypatch.setattr(
        DiscreteGaussianMechanism, "_add_noise", lambda self, *given: drawn.append(self) or add_noise(self, *given)
    )
    ALL[name](epsilon=0.5, noise="discrete", accountant=accountant)
    charged = accountant.history[0].event
    assert 0.49 < get_epsilon(charged, 1e-5) <= 0.5
    assert charged == compose([each.event for each in drawn])
    assert [each.n_counts for each in drawn] == ([2, 1] if name == "crosstab" else [1])


@pytest.mark.parametrize("name", NEIGHBORS)
def test_discrete_noise_is_on_whole_counts_of_which_one_row_moves_as_many_as_are_priced(name):
    """One row in the place of another takes 1 from a count of each table, and adds 1 to another one."""
    with recording([]) as first:
        ALL[name](epsilon=0.5, noise="discrete")
    with recording(first) as second:
        NEIGHBORS[name](epsilon=0.5, noise="discrete")
    for one, other in zip(first, second, strict=True):
        assert one.exact.dtype == other.exact.dtype == one.noisy.dtype == np.int64
        moved = np.abs(other.exact - one.exact)
        assert moved.max() == 1
        assert moved.sum() <= 2 * round(one.sensitivity**2)


NO_COUNTS = {
    "mean": (lambda **s: ALL["mean"](**s), "numeric columns have moments"),
    "estimated": (lambda **s: st.private_histogram(AGE, **s), "would be estimated privately"),
    "groups": (lambda **s: ALL["count"](groups=np.arange(N), **s), "weights and groups have fractional counts"),
    "weights": (
        lambda **s: describe(
            CATEGORIES, schema=LEVELS, correlation=False, sample_weight=np.ones(N), weight_bound=2.0, **s
        ),
        "weights and groups have fractional counts",
    ),
    "correlation": (lambda **s: describe(CATEGORIES, schema=LEVELS, **s), "Set correlation=False"),
    "by": (
        lambda **s: describe(CATEGORIES, schema=LEVELS, correlation=False, by="job", **s),
        "requires private subgroups",
    ),
    "too much": (
        lambda **s: ALL["count"](**{**s, "epsilon": None, "noise_multiplier": 1e6}),
        "`standard_deviation` must be .*, got 1000000.0",
    ),
}
CATEGORIES, LEVELS = pd.DataFrame({"job": JOB, "sex": SEX}), {"job": JOBS, "sex": SEXES}


@pytest.mark.parametrize("name", NO_COUNTS)
def test_discrete_noise_is_rejected_where_there_are_no_counts(name):
    accountant = PrivacyAccountant(1.0, 1e-5, unit="person" if name == "groups" else "row")
    call, why = NO_COUNTS[name]
    with pytest.raises(ValueError, match=why) as error:
        call(epsilon=0.5, noise="discrete", accountant=accountant)
    assert "\n" not in str(error.value)
    assert not accountant.history


def test_discrete_noise_is_rejected_where_columns_are_not_those_that_are_priced(monkeypatch):
    monkeypatch.setattr(TableDescriber, "_n_columns", lambda self: 1)
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="the columns of X differ from those of `schema`"):
        describe(CATEGORIES, schema=LEVELS, correlation=False, noise="discrete", accountant=accountant)
    assert not accountant.history
