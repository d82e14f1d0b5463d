"""Fitted models in forms that other programs read: ONNX and skops.

- `onnx_model`: `to_onnx`, what an export says of the guarantee, and steps of scikit-learn
- `onnx_graph`: nodes, constants and inputs; `onnx_tables`: columns of a schema, and leaves of trees; `onnx_steps`:
  transformers and predictions
- `trusted_types`: the types to trust in files of skops, whose content is that of `skdp.base.saved_state`
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"skops_types": "skdp.export.trusted_types", "to_onnx": "skdp.export.onnx_model"}
)
