"""Private evaluation: how good a model is on private rows, from one noisy table of counts.

- `replicates`: noisy tables of counts, what they are projected to, and intervals by a parametric bootstrap
- `scored_rows`: scores of private rows by a fitted model, block by block, and the counts that they go to
- `binary`: metrics of two classes, from counts of scores in bins
- `histogram_evaluation`: evaluations that are post-processing of one noisy table of counts: its fit, and its price
- `comparison`: `compare`: how two models of two classes differ on the same private rows, from one noisy table of
  pairs of scores
- `multiclass`: `MulticlassEvaluation`: how good a model of several classes is on private rows, from one noisy
  confusion matrix
- `regression`: `RegressionEvaluation`: how good a regressor is on private rows, from counts of errors and two sums of
  targets
- `private_evaluation`: `evaluate`: how good a model is on private rows, privately
- `functions`: metrics of scikit-learn on private labels and scores, each in a line; `evaluate` gives all of them at
  one price
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "PrivateComparison": "skdp.metrics.comparison",
        "compare": "skdp.metrics.comparison",
        "EstimatedCurve": "skdp.base.estimates",
        "Estimate": "skdp.base.estimates",
        "MulticlassEvaluation": "skdp.metrics.multiclass",
        "MultilabelEvaluation": "skdp.metrics.multiclass",
        "OneVsRestEvaluation": "skdp.metrics.multiclass",
        "RegressionEvaluation": "skdp.metrics.regression",
        "PrivateEvaluation": "skdp.metrics.private_evaluation",
        "private_roc_auc_score": "skdp.metrics.functions",
        "private_average_precision_score": "skdp.metrics.functions",
        "private_brier_score_loss": "skdp.metrics.functions",
        "private_log_loss": "skdp.metrics.functions",
        "private_accuracy_score": "skdp.metrics.functions",
        "private_precision_score": "skdp.metrics.functions",
        "private_recall_score": "skdp.metrics.functions",
        "private_f1_score": "skdp.metrics.functions",
        "private_confusion_matrix": "skdp.metrics.functions",
        "private_roc_curve": "skdp.metrics.functions",
        "private_precision_recall_curve": "skdp.metrics.functions",
        "private_calibration_curve": "skdp.metrics.functions",
        "private_r2_score": "skdp.metrics.functions",
        "private_mean_squared_error": "skdp.metrics.functions",
        "private_mean_absolute_error": "skdp.metrics.functions",
        "evaluate": "skdp.metrics.private_evaluation",
    },
)
