"""What draws: noise and sampling, each with its event, from secret streams; second moments as one vector to release."""

from __future__ import annotations

from skdp._lazy import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DiscreteGaussianMechanism": "skdp.mechanisms.discrete_gaussian",
        "DiscreteLaplaceMechanism": "skdp.mechanisms.discrete_laplace",
        "GaussianMechanism": "skdp.mechanisms.gaussian",
    },
)
