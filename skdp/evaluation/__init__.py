"""Private evaluation: how good a model is on private rows, from one noisy table of counts.

- `private_evaluation`: `evaluate`, `PrivateEvaluation`
- `counted`: the fit of all evaluations by counts, its price and its sensitivity; `scored_rows`: scores, block by block;
  `amounts`: what a row or a unit adds
- `replicates`: projection of noisy tables, and the bootstrap; `estimates`: figures with intervals
- `binary_figures`, `binary_metrics`: what follows from a table of two classes
"""

from __future__ import annotations

from skdp._lazy import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "EstimatedCurve": "skdp.evaluation.estimates",
        "Estimate": "skdp.evaluation.estimates",
        "PrivateEvaluation": "skdp.evaluation.private_evaluation",
        "evaluate": "skdp.evaluation.private_evaluation",
    },
)
