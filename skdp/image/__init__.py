"""Data-independent features of images.

- `base`: base class: validation, chunks, threads and files.
- `features`: computation of features, one image at a time.
- `reading`: image layouts, and simulated public images.
- `transformers`: `ScatteringTransformer` and `PatchTransformer`.
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"PatchTransformer": "skdp.image.transformers", "ScatteringTransformer": "skdp.image.transformers"}
)
