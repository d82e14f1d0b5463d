"""What draws: noise and sampling, each with its event, from secret streams; second moments as one vector to release.

- `gaussian`: normal noise, and what all mechanisms share
- `discrete_noise`: noise in whole numbers
- `sampling`: samplers of rows
- `bounded_sum`: sums over records, bounded and with groups
- `second_moments`: sums of products
- `streams`: secret words, normals and samples
- `release_log`: what audits record of them
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
