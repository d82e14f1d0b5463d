"""What draws: noise and sampling, each with its event, from secret streams; second moments as one vector to release."""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "DiscreteGaussianMechanism": "skdp.mechanisms.discrete_noise",
        "DiscreteLaplaceMechanism": "skdp.mechanisms.discrete_noise",
        "GaussianMechanism": "skdp.mechanisms.gaussian",
    },
)
