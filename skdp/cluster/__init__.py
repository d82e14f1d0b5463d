"""Differentially private clustering."""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(__name__, {"DPKMeans": "skdp.cluster.kmeans"})
