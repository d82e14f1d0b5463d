"""A table described, and single figures of it, with differential privacy."""

from __future__ import annotations

from skdp._lazy import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "PrivateDescription": "skdp.statistics.description",
        "describe": "skdp.statistics.describing",
    },
)
