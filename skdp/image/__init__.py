"""Features of images that are computed from each image alone.

A public name is loaded when it is first used.
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"PatchTransformer": "skdp.image.transformers", "ScatteringTransformer": "skdp.image.transformers"}
)
