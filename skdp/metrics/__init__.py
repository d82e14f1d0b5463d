"""Private evaluation: how good a model is on private rows, from one noisy table of counts.

- `private_evaluation`: `evaluate`, `PrivateEvaluation`; `functions`: a private counterpart of each metric
- `histogram_evaluation`: the fit of all evaluations, its price and its sensitivity; `scored_rows`: scores by blocks
- `binary`, `multiclass`, `regression`: what follows from a table of two classes, of more or of labels, and of errors
- `comparison`: how two models differ on the same rows
- `replicates`: what all figures share, projection of noisy tables, and the bootstrap
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
