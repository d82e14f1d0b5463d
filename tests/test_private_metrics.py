"""Metrics in one line are the figures of `evaluate`, by which they are charged."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", metrics.__all__)
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
