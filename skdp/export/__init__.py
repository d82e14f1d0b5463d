"""Fitted models in forms that other programs read: ONNX and skops.

- `facts`: what every form says of the guarantee, an explicit list
- `onnx_model`: `to_onnx`; `onnx_graph` writes nodes and constants, `onnx_rows` is what comes in, `onnx_table` columns
  of a schema, `onnx_trees` leaves, `onnx_steps` transformers, `onnx_models` predictions, `onnx_foreign` the steps of
  scikit-learn
- `skops_types`: the types to trust in files of skops, whose content is that of `skdp.base.saved_state`
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"skops_types": "skdp.export.trusted_types", "to_onnx": "skdp.export.onnx_model"}
)
