"""Survival curves: release and charge, coverage of the intervals, level and power of the log-rank test."""

from decimal import Decimal

import numpy as np
import pytest
from replay import moves, recording, replay
from scipy.stats import binom

from skdp import PrivacyAccountant
from skdp.exceptions import QualityWarning
from skdp.plotting import PrivateSurvivalDisplay
from skdp.statistics import private_survival
from skdp.statistics.survival import _cells_of, kaplan_meier, log_rank_test

FALSE_ALARM = 1e-6
EDGES = np.linspace(0.0, 20.0, 11)
SETTINGS = {"random_state": 0, "delta": 1e-5}


def censored(hazard, n, rng):
    """Exponential times to an event, with uniform censoring."""
    time, end = rng.exponential(1.0 / hazard, n), rng.uniform(5.0, 25.0, n)
    return np.minimum(time, end), time <= end


def test_survival_charged_once_with_one_release():
    time, event = censored(0.1, 4_000, np.random.default_rng(0))
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    with recording([]) as releases:
        found = private_survival(time, event, bins=EDGES, epsilon=0.5, accountant=accountant, **SETTINGS)
    assert len(releases) == len(accountant.history) == 1
    assert found.epsilon_ == pytest.approx(0.5, rel=1e-3)
    assert found.description.privacy_unit_ == "row"


@pytest.mark.parametrize("changed", [(np.nan, 1.0), (30.0, 1.0), (7.0, 5.0), (7.0, 0.0)])
def test_survival_one_record_changes_release_by_sensitivity(changed):
    time, event = censored(0.1, 500, np.random.default_rng(0))
    others = time.copy(), event.astype(float)
    others[0][7], others[1][7] = changed
    by = np.resize(["a", "b"], 500)

    def fit(given):
        found = private_survival(*given, bins=EDGES, by=by, categories=["a", "b"], epsilon=0.5, **SETTINGS)
        return _Released(found)

    assert max(moves(*replay(fit, (time, event.astype(float)), others))) <= 2.0 + 1e-9


class _Released:
    def __init__(self, estimate):
        self.privacy_event_ = estimate.description.privacy_event_


def test_survival_without_noise_equals_actuarial_estimate():
    # Four records in two bins: one event and one censored in the first, one event in the second, one beyond.
    cells = _cells_of([1.0, 1.5, 3.0, 9.0], [1, 0, 1, 1], np.array([0.0, 2.0, 4.0]))
    assert cells.tolist() == [2.0, 0.0, 3.0, 4.0]
    value, low, high = kaplan_meier(np.bincount(cells.astype(int), minlength=5).astype(float), 0.0, 0.95)
    assert value == pytest.approx([1 - 1 / 3.5, (1 - 1 / 3.5) * (1 - 1 / 2)])
    assert np.all(low < value)
    assert np.all(value < high)


@pytest.mark.parametrize("odd", [1j, 10**400, Decimal("sNaN"), [1.0], np.longdouble("1e400"), "x", None])
def test_survival_odd_cell_changes_no_other_record(odd):
    time = np.resize(np.array(["no", 1.0, 3.0], object), 300)
    other = time.copy()
    other[0] = odd
    edges = np.array([0.0, 2.0, 4.0])
    for event in (np.ones(300), np.resize(np.array([1, "no"], object), 300)):
        one, two = _cells_of(time, event, edges), _cells_of(other, event, edges)
        np.testing.assert_array_equal(one[1:], two[1:])
        assert _cells_of(list(other), event, edges)[1:] == pytest.approx(one[1:], nan_ok=True)
    masked = np.ma.masked_array([1.0, 3.0], [True, False])
    assert np.isnan(_cells_of(masked, np.ones(2), edges)).tolist() == [True, False]


def test_survival_categories_of_any_type_and_internal_parameters():
    time, event = censored(0.1, 400, np.random.default_rng(0))
    found = private_survival(time, event, bins=EDGES, by=np.resize([1.0, 2.0], 400), categories=[1.0, 2.0], **SETTINGS)
    assert len(found.subgroups) == 2
    with pytest.raises(ValueError, match="`categories` must be a list"):
        private_survival(time, event, bins=EDGES, by=np.resize([1, 2], 400), categories=iter([1, 2]))
    with pytest.raises(TypeError, match="has no parameter 'shares'"):
        private_survival(time, event, bins=EDGES, shares=(1e8, 0.0, 0.0))


def test_survival_left_out_records_are_in_no_cell():
    given = [1.0, np.nan, "x", 2.0, 2.0, None], [1, 1, 1, "y", None, 0]
    assert np.isnan(_cells_of(*given, np.array([0.0, 2.0]))).tolist() == [False, *[True] * 5]


@pytest.mark.parametrize("hazard", [0.05, 0.2])
@pytest.mark.parametrize("n", [200, 1_000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [37.0, 7.4, 3.7, 0.93])  # epsilon 0.1, 0.5, 1 and 4 at delta 1e-5
def test_survival_interval_coverage(hazard, n, noise):
    """Mean coverage over the edges is at least 0.94; 1e-6 is the rate of false alarms if it were exactly that."""
    rng, truth, repeats = np.random.default_rng(1), np.exp(-hazard * EDGES[1:]), 1_000
    covered = np.zeros(len(truth))
    for _ in range(repeats):
        counts = np.bincount(_cells_of(*censored(hazard, n, rng), EDGES).astype(int), minlength=21)
        _, low, high = kaplan_meier(counts + noise * rng.standard_normal(21), noise, 0.95)
        covered += (low <= truth) & (truth <= high)
    assert covered.min() >= binom.ppf(FALSE_ALARM / len(truth), repeats, 0.94)
    assert covered.mean() >= 0.94 * repeats


def two_tables(hazards, n, noise, rng):
    tables = [np.bincount(_cells_of(*censored(h, n, rng), EDGES).astype(int), minlength=21) for h in hazards]
    return np.array(tables) + noise * rng.standard_normal((2, 21))


@pytest.mark.parametrize(("n", "noise"), [(100, 3.7), (500, 7.4), (5_000, 3.7)])
def test_log_rank_level_and_power(n, noise):
    rng, repeats = np.random.default_rng(2), 200
    same = [log_rank_test(two_tables((0.1, 0.1), n, noise, rng), noise, 200).p_value < 0.05 for _ in range(repeats)]
    assert sum(same) <= binom.isf(FALSE_ALARM, repeats, 0.05)
    found = [log_rank_test(two_tables((0.05, 0.2), n, noise, rng), noise, 200).p_value < 0.05 for _ in range(20)]
    assert n == 100 or sum(found) >= 15


def test_survival_subgroups_frame_and_display():
    rng = np.random.default_rng(0)
    by = rng.choice(["a", "b"], 4_000)
    time, event = censored(np.where(by == "a", 0.05, 0.2), 4_000, rng)
    found = private_survival(time, event, bins=EDGES, by=by, categories=["a", "b"], epsilon=1.0, **SETTINGS)
    assert found.log_rank.p_value < 0.01
    frame = found.to_frame()
    assert list(frame.index.get_level_values(0).unique()) == ["a", "b"]
    at_10 = frame.loc["a"].loc[10.0]
    assert at_10["survival_low"] < np.exp(-0.5) < at_10["survival_high"]
    assert at_10["cumulative_hazard_low"] < 0.5 < at_10["cumulative_hazard_high"]
    display = PrivateSurvivalDisplay.from_estimate(found)
    assert [line.get_label() for line in display.lines_] == ["a", "b"]
    assert display.lines_[0].get_ydata()[0] == 1.0


def test_survival_groups_count_once_and_weights_scale():
    time, event = censored(0.1, 2_000, np.random.default_rng(0))
    settings = {"bins": EDGES, "epsilon": 8.0, **SETTINGS}
    grouped = private_survival(np.repeat(time, 3), np.repeat(event, 3), groups=np.repeat(range(2_000), 3), **settings)
    assert grouped.counts.sum() == pytest.approx(2_000, abs=30)
    assert grouped.description.privacy_unit_ == "group"
    weighted = private_survival(time, event, sample_weight=np.full(2_000, 2.0), weight_bound=4.0, **settings)
    assert weighted.counts.sum() == pytest.approx(1_000, abs=30)


@pytest.mark.parametrize("bins", [[3, 2], "months", [0, None], [0.0], [0, np.inf]])
def test_survival_bins_invalid_rejected_before_charge(bins):
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="`bins` must be at least two ascending numbers"):
        private_survival([1.0], [1], bins=bins, accountant=accountant)
    assert not accountant.history


def test_survival_by_without_categories_rejected():
    with pytest.raises(ValueError, match="`by` and `categories` must be passed together"):
        private_survival([1.0], [1], bins=[0, 1], by=["a"])


@pytest.mark.parametrize("event", [np.resize([1, 2], 1_000), np.resize(np.array(["dead", "alive"], object), 1_000)])
def test_survival_invalid_event_coding_warns(event):
    with pytest.warns(QualityWarning, match="`event` must be 1") as told:
        private_survival(np.arange(1_000) % 10, event, bins=[0, 5, 10], epsilon=1.0)
    assert len(told) == 1  # and none about the computed column


@pytest.mark.parametrize("time", [np.arange(4).astype("datetime64[D]"), np.array(["1", "2", "3", "4"])])
def test_survival_dates_and_strings_rejected_before_charge(time):
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="`time` must contain numbers"):
        private_survival(time, [0, 1, 0, 1], bins=[0, 1], accountant=accountant)
    assert not accountant.history
