"""Features of images that are computed from each image alone.

- `base`: tables of images, blocks of them, threads and files.
- `features`: planes of pixels to rows of features, one image at a time.
- `reading`: images of any layout as planes, and simulated public images.
- `transformers`: `ScatteringTransformer` and `PatchTransformer`.
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"PatchTransformer": "skdp.image.transformers", "ScatteringTransformer": "skdp.image.transformers"}
)
