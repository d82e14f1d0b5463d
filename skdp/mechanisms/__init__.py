"""Noise mechanisms and samplers with their privacy events, and sums with bounded contributions.

- `gaussian`: Gaussian mechanism, and the base class of all mechanisms
- `discrete_noise`: mechanisms with integer-valued noise
- `sampling`: Poisson sampling of rows
- `bounded_sum`: sums over records with bounded contributions, also for groups
- `second_moments`: sums of products
- `streams`: cryptographic random streams for noise and samples
- `release_log`: record of releases and samples for audits
"""

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
