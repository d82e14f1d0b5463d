"""Fitted models in forms that other programs read: ONNX and skops.

- `onnx_graph`: an ONNX graph while it is written: nodes, constants, and formulas that several models share
- `trusted_types`: the types that files of skops consist of; see `skdp.base.saved_state` for their content
- `onnx_tables`: columns of a schema in a graph: what `Block` does to cells, in ONNX
- `onnx_steps`: predictions and transformers in a graph
- `onnx_model`: `to_onnx`: a fitted model as one ONNX graph, from raw columns to predictions
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"skops_types": "skdp.export.trusted_types", "to_onnx": "skdp.export.onnx_model"}
)
