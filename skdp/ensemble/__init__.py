"""Random trees, drawn from public knowledge and from noisy counts, and one linear model over their leaves."""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DPIsolationForest": "skdp.ensemble.isolation_forest",
        "DPRandomTreesClassifier": "skdp.ensemble.classifier",
        "DPRandomTreesRegressor": "skdp.ensemble.regressor",
        "PublicTreesEmbedding": "skdp.ensemble.embedding",
    },
)
