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

from skdp._lazy import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "PrivateComparison": "skdp.evaluation.comparison",
        "compare": "skdp.evaluation.comparison",
        "EstimatedCurve": "skdp.evaluation.estimates",
        "Estimate": "skdp.evaluation.estimates",
        "MulticlassEvaluation": "skdp.evaluation.multiclass",
        "MultilabelEvaluation": "skdp.evaluation.one_vs_rest",
        "OneVsRestEvaluation": "skdp.evaluation.one_vs_rest",
        "RegressionEvaluation": "skdp.evaluation.regression",
        "PrivateEvaluation": "skdp.evaluation.private_evaluation",
        "evaluate": "skdp.evaluation.private_evaluation",
    },
)
