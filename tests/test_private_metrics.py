"""Metrics in one line are the figures of `evaluate`, by which they are charged."""

import numpy as np
import pytest

from skdp import PrivacyAccountant, PrivacyLeakWarning, evaluate, metrics

FIGURES = {
    "private_roc_auc_score": lambda found: found.roc_auc,
    "private_average_precision_score": lambda found: found.average_precision,
    "private_brier_score_loss": lambda found: found.brier_score,
    "private_log_loss": lambda found: found.log_loss,
    "private_accuracy_score": lambda found: found.accuracy(0.5),
    "private_precision_score": lambda found: found.precision(0.5),
    "private_recall_score": lambda found: found.recall(0.5),
    "private_f1_score": lambda found: found.f1(0.5),
    "private_confusion_matrix": lambda found: found.confusion_matrix(0.5),
    "private_roc_curve": lambda found: found.roc_curve(),
    "private_precision_recall_curve": lambda found: found.precision_recall_curve(),
    "private_calibration_curve": lambda found: found.calibration_curve(8),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_metric_is_a_figure_of_an_evaluation(name):
    scores = np.random.default_rng(0).uniform(size=500)
    y = (np.random.default_rng(1).uniform(size=500) < scores).astype(int)
    accountant = PrivacyAccountant(2.0, 1e-6)
    with pytest.warns(PrivacyLeakWarning):
        found = getattr(metrics, name)(y, scores, epsilon=1.0, random_state=0, accountant=accountant)
    with pytest.warns(PrivacyLeakWarning):
        whole = evaluate(None, scores, y, epsilon=1.0, random_state=0)
    for one, other in zip(found, FIGURES[name](whole), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [charge.event for charge in accountant.history] == [whole.privacy_event_]


OF_CLASSES = {
    "private_accuracy_score": "accuracy",
    "private_confusion_matrix": "confusion_matrix",
}
OF_NUMBERS = {
    "private_r2_score": "r2",
    "private_mean_squared_error": "mean_squared_error",
    "private_mean_absolute_error": "mean_absolute_error",
}


@pytest.mark.parametrize("name", [*OF_CLASSES, *OF_NUMBERS])
def test_a_metric_of_classes_or_numbers_is_a_figure_of_an_evaluation(name):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=500)
    guess = np.where(rng.uniform(size=500) < 0.7, y, rng.integers(3, size=500))
    terms = {"classes": [0, 1, 2]} if name in OF_CLASSES else {"y_bounds": (0, 2)}
    with pytest.warns(PrivacyLeakWarning):
        found = getattr(metrics, name)(y, guess, epsilon=1.0, random_state=0, **terms)
    with pytest.warns(PrivacyLeakWarning):
        whole = evaluate(None, guess, y, epsilon=1.0, random_state=0, **terms)
    expected = getattr(whole, {**OF_CLASSES, **OF_NUMBERS}[name])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_metric_is_compared():
    assert {*FIGURES, *OF_CLASSES, *OF_NUMBERS} == {name for name in metrics.__all__ if name.startswith("private_")}


SCORES = np.random.default_rng(0).dirichlet([1, 1, 1], 300)
KINDS = SCORES.argmax(1)
SEVERAL = {"private_roc_auc_score", "private_average_precision_score", "private_brier_score_loss", "private_log_loss"}


@pytest.mark.parametrize("name", sorted(SEVERAL))
@pytest.mark.parametrize("labels", [False, True])
def test_a_metric_of_scores_of_several_is_a_figure_of_an_evaluation(name, labels):
    y, terms = (np.eye(3, dtype=int)[KINDS], {}) if labels else (KINDS, {"classes": [0, 1, 2]})
    ovr = {"multi_class": "ovr"} if name == "private_roc_auc_score" and not labels else {}
    one_vs_rest = {} if labels else {"one_vs_rest": True}
    with pytest.warns(PrivacyLeakWarning):
        found = getattr(metrics, name)(y, SCORES, epsilon=1.0, random_state=0, **terms, **ovr)
    with pytest.warns(PrivacyLeakWarning):
        whole = evaluate(None, SCORES, y, epsilon=1.0, random_state=0, **one_vs_rest, **terms)
    assert found == FIGURES[name](whole)
    if name == "private_average_precision_score":
        with pytest.warns(PrivacyLeakWarning):
            each = getattr(metrics, name)(y, SCORES, epsilon=1.0, random_state=0, average=None, **terms)
        np.testing.assert_array_equal(each.low, [one.average_precision.low for one in whole.each.values()])


@pytest.mark.parametrize(
    ("terms", "message"),
    [({}, "must be 'ovr' for multiclass scores"), ({"multi_class": "ovo"}, "must be 'ovr', got 'ovo'"),
     ({"multi_class": "ovr", "average": "micro"}, "got 'micro'")],
)  # fmt: skip
def test_what_is_not_counted_of_several_classes_is_rejected_before_a_charge(terms, message):
    accountant = PrivacyAccountant(2.0, 1e-6)
    with pytest.raises(ValueError, match=message):
        metrics.private_roc_auc_score(KINDS, SCORES, epsilon=1.0, classes=[0, 1, 2], accountant=accountant, **terms)
    assert not accountant.history
