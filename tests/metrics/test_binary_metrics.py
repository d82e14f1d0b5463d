"""Figures of two classes: what they are where there is no noise, and what the intervals cover."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn import metrics

from skdp.metrics import binary, evaluate
from skdp.metrics.replicates import project
from skdp.metrics.scored_rows import FARTHEST, places_of, scores_at

N = 20_000
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    scores = rng.beta(1.2, 2.0, N)
    return scores, (rng.uniform(size=N) < 0.9 * scores).astype(int)


@pytest.fixture(scope="module")
def found(people):
    return evaluate(None, *people, epsilon=1e3, n_bins=64)


def test_figures_are_those_of_scikit_learn_but_for_the_width_of_a_bin(people, found):
    scores, y = people
    predicted = scores >= 0.5
    exact = {
        found.roc_auc: (metrics.roc_auc_score(y, scores), 1e-4),
        found.average_precision: (metrics.average_precision_score(y, scores), 2e-3),
        found.brier_score: (metrics.brier_score_loss(y, scores), 1e-4),
        found.log_loss: (metrics.log_loss(y, scores), 1e-3),
        found.positive_rate: (y.mean(), 1e-12),
        found.accuracy(): (metrics.accuracy_score(y, predicted), 1e-12),
        found.precision(): (metrics.precision_score(y, predicted), 1e-12),
        found.recall(): (metrics.recall_score(y, predicted), 1e-12),
        found.f1(): (metrics.f1_score(y, predicted), 1e-12),
        found.accuracy(0.237): (metrics.accuracy_score(y, scores >= 0.237), 1e-3),
    }
    for estimate, (value, room) in exact.items():
        assert estimate.value == pytest.approx(value, abs=room)
        assert estimate.low < estimate.value < estimate.high
        assert estimate.noise_error <= estimate.sampling_error
    np.testing.assert_allclose(found.confusion_matrix().value, metrics.confusion_matrix(y, predicted))


def test_curves_are_those_of_scikit_learn(people, found):
    scores, y = people
    curve = found.roc_curve()
    for k, axis in ((0, curve.x), (1, curve.y)):
        np.testing.assert_allclose(axis[1:-1], [(scores[y == k] >= t).mean() for t in curve.thresholds[1:-1]])
    assert (curve.x[0], curve.y[0], curve.x[-1], curve.y[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert np.all(curve.low <= curve.y)
    assert np.all(curve.y <= curve.high)
    calibration = found.calibration_curve(n_bins=8)
    group = np.minimum((places_of(scores) * 8).astype(int), 7)
    held = np.unique(group)
    np.testing.assert_allclose(calibration.y[held], [y[group == k].mean() for k in held])
    np.testing.assert_allclose(calibration.x[held], [scores[group == k].mean() for k in held], atol=1e-3)
    pr = found.precision_recall_curve()
    k = int(np.flatnonzero(pr.thresholds == 0.5)[0])
    assert pr.x[k] == pytest.approx(metrics.recall_score(y, scores >= 0.5))
    assert pr.y[k] == pytest.approx(metrics.precision_score(y, scores >= 0.5))
    lift = found.lift_curve()
    assert lift.x[k] == pytest.approx((scores >= 0.5).mean())
    assert lift.y[k] == pytest.approx(metrics.precision_score(y, scores >= 0.5) / y.mean())


def test_decisions_follow_from_the_table(people, found):
    scores, y = people
    edges = scores_at(np.arange(65) / 64)
    costs = [(5.0 * ((scores < t) & (y == 1)) + ((scores >= t) & (y == 0))).mean() for t in edges]
    assert found.best_threshold(1.0, 5.0).value == edges[np.argmin(costs)]
    chances = np.where(y == 1, scores, 1.0 - scores)
    q = np.quantile(1.0 - chances, np.ceil((N + 1) * 0.9) / N, method="higher")
    assert found.conformal_quantile(0.1).value == pytest.approx(q, abs=1 / 256)
    assert (1.0 - chances <= found.conformal_quantile(0.1).high).mean() >= 0.9
    twice = found.estimate(lambda tables: 2.0 * binary.positive_rate(tables))
    assert twice.value == 2.0 * found.positive_rate.value


@pytest.mark.parametrize("bad", [-0.1, "a", np.nan])
def test_a_threshold_that_is_none_is_rejected(found, bad):
    with pytest.raises(ValueError, match="threshold"):
        found.accuracy(bad)
    with pytest.raises(ValueError, match="alpha"):
        found.conformal_quantile(bad if bad == "a" else 1.5)
    with pytest.raises(ValueError, match="cost"):
        found.best_threshold(-1.0)
    with pytest.raises(ValueError, match="n_bins"):
        found.calibration_curve(0)


@pytest.mark.parametrize("total", [None, 50.0])
def test_projection_gives_the_nearest_counts(total):
    rng = np.random.default_rng(0)
    tables = rng.normal(3.0, 5.0, (7, 2, 3, 4))
    found = project(tables, total)
    assert found.min() >= 0.0
    if total is None:
        np.testing.assert_array_equal(found, np.maximum(tables, 0.0))
        return
    np.testing.assert_allclose(found.sum((1, 2, 3)), total)
    for table, projected in zip(tables, found, strict=True):
        shift = (table - projected)[projected > 0]
        np.testing.assert_allclose(shift, shift[0])
        assert np.all(table[projected == 0] <= shift[0] + 1e-9)


def test_intervals_cover_the_figures_of_the_population():
    """Nominally 95 %: at most so few misses as happen once in a million at 90 %."""
    rng, repeats, n_covered = np.random.default_rng(1), 30, np.zeros(3)
    # of the logistic scores of two normals; a population as large as none is
    side = np.repeat([0.0, 1.0], [950_000, 50_000])
    scores = 1.0 / (1.0 + np.exp(-(rng.standard_normal(len(side)) + 1.5 * side - 1.0)))
    truth = (
        metrics.roc_auc_score(side, scores),
        metrics.brier_score_loss(side, scores),
        ((scores >= 0.5) == side).mean(),
    )
    for _ in range(repeats):
        drawn = rng.integers(0, len(side), 4000)
        found = evaluate(None, scores[drawn], side[drawn].astype(int), epsilon=0.2)
        estimates = found.roc_auc, found.brier_score, found.accuracy()
        n_covered += [each.low <= value <= each.high for each, value in zip(estimates, truth, strict=True)]
    assert n_covered.min() >= binom.ppf(FALSE_ALARM, repeats, 0.9)


# --- rare classes, extreme and tied scores ---


def drawn(rate, steep=1.0, n=20_000, seed=0):
    """Scores and classes: log-odds are normal, and those of the scores `steep` times as large."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(np.log(rate) - 1.0, 1.5, n)
    return 1 / (1 + np.exp(-steep * logits)), (rng.uniform(size=n) < 1 / (1 + np.exp(-logits))).astype(int)


@pytest.mark.parametrize(("rate", "steep"), [(0.01, 1.0), (0.3, 6.0)])
def test_intervals_of_extreme_scores_cover_exact_metrics(rate, steep):
    """Nominally 95% and more, as the rows are fixed: few enough misses for 90% at a false-alarm rate of 1e-6."""
    repeats, covered = 15, np.zeros(3)
    for seed in range(repeats):
        scores, y = drawn(rate, steep, seed=seed)
        found = evaluate(None, scores, y, epsilon=1.0, random_state=seed)
        exact = [each(y, scores) for each in (metrics.roc_auc_score, metrics.average_precision_score, metrics.log_loss)]
        shown = found.roc_auc, found.average_precision, found.log_loss
        covered += [each.low <= value <= each.high for each, value in zip(shown, exact, strict=True)]
        assert found.roc_auc.high - found.roc_auc.low < 0.15
    assert covered.min() >= binom.ppf(FALSE_ALARM, repeats, 0.9)


def test_average_precision_of_tied_scores_is_exact():
    rng = np.random.default_rng(0)
    scores = rng.choice(np.linspace(0.1, 0.9, 4), 5_000)
    y = (rng.uniform(size=5_000) < scores).astype(int)
    found = evaluate(None, scores, y, epsilon=1e3)
    assert found.average_precision.value == pytest.approx(metrics.average_precision_score(y, scores), abs=1e-3)
    assert found.roc_auc.value == pytest.approx(metrics.roc_auc_score(y, scores), abs=1e-3)


def test_tied_scores_at_threshold_widen_recall():
    """The table does not resolve whether scores in the bin of the threshold are above it."""
    scores, y = np.repeat([0.2, 0.31], 5_000), np.tile([0, 1], 5_000)
    for threshold, exact in ((0.31, 0.5), (0.3101, 0.0)):
        found = evaluate(None, scores, y, epsilon=1e3).recall(threshold)
        assert found.low <= exact <= found.high


def test_few_cases_leave_no_interval():
    scores, y = drawn(0.3)
    cases = np.flatnonzero(y)
    y[cases[20:]] = 0
    found = evaluate(None, scores, y, epsilon=1.0)
    for each in (found.roc_auc, found.average_precision, found.recall(0.2), found.precision(0.2), found.f1(0.2)):
        assert (each.low, each.high) == (0.0, 1.0)
    assert found.log_loss.high == FARTHEST
    assert found.brier_score.high < 0.5  # cases matter little
    assert found.accuracy().low > 0.5


def test_places_ascend_and_resolve_both_ends():
    scores = np.concatenate([[0.0], np.logspace(-15, -1, 200), np.linspace(0.11, 0.89, 100), [1 - 1e-9, 1.0]])
    places = places_of(scores)
    assert (np.diff(places) > 0).all()
    np.testing.assert_allclose(scores_at(places), scores, rtol=1e-3)
    np.testing.assert_array_equal(places_of([np.nan, -1.0, 0.5, 2.0, np.inf]), [0.0, 0.0, 0.5, 1.0, 1.0])
    assert np.diff(places_of([1e-4, 1e-3, 1e-2])).min() > 1 / 64
