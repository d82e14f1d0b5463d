"""Private model evaluation from noisy histograms of scores.

- `replicates`: noisy histograms, their projections, and intervals by a parametric bootstrap
- `scored_rows`: scores of private rows by a fitted model, in chunks, and their bins
- `binary`: metrics of binary classifiers, from counts of scores in bins
- `histogram_evaluation`: base of all evaluations: fit, accounting, and post-processing of one noisy histogram
- `comparison`: `compare`: difference of two binary classifiers on the same private rows
- `multiclass`: `MulticlassEvaluation`: evaluation of multiclass and multilabel classifiers
- `regression`: `RegressionEvaluation`: evaluation of regressors, from counts of errors and two sums of targets
- `private_evaluation`: `evaluate`: evaluation of any model
- `functions`: single metrics with the names of scikit-learn
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
