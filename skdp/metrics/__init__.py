"""Private evaluation: how good a model is on private rows, from one noisy table of counts.

- `private_evaluation`: `evaluate`, `PrivateEvaluation`
- `counted`: the fit of all evaluations by counts, its price and its sensitivity; `scored_rows`: scores, block by block;
  `amounts`: what a row or a unit adds
- `figures`: what all figures share; `binary_figures`, `binary_metrics`: what follows from a table of two classes
- `comparison`: how two models differ on the same rows
- `one_vs_rest`: of each of several classes or labels, by their scores
- `multiclass`: from a confusion matrix; `regression`, `error_metrics`: from counts of errors
- `scale`: the scale of score bins
- `replicates`: projection of noisy tables, and the bootstrap; `estimates`: figures with intervals
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
