"""Differentially private neural networks."""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__, {"DPMLPClassifier": "skdp.neural_network.classifier", "DPMLPRegressor": "skdp.neural_network.regressor"}
)
