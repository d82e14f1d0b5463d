"""Export of fitted models to ONNX and skops, and of plans of fits to JSON.

- `onnx_graph`: an ONNX graph under construction: nodes, constants, and shared formulas
- `plans`: `plan_to_json`, `plan_from_json`, `plan_cost`: unfitted estimators and their privacy cost
- `trusted_types`: the types in skops files; see `skdp.base.saved_state` for their content
- `onnx_tables`: columns of a schema in a graph: `Block` in ONNX
- `onnx_steps`: predictions and transformers in a graph
- `onnx_model`: `to_onnx`: a fitted model as one ONNX graph, from raw columns to predictions
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        **dict.fromkeys(("PlanCost", "plan_cost", "plan_from_json", "plan_to_json"), "skdp.export.plans"),
        "skops_types": "skdp.export.trusted_types",
        "to_onnx": "skdp.export.onnx_model",
    },
)
