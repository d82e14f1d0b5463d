"""Differentially private synthetic data.

- `adversaries`: training of a critic and a generator, and convolutional critics.
- `class_generator`: `DPClassMixtureGenerator`, numeric rows with labels, such as images, by Gaussian mixtures.
- `class_mixture`: rows between public bounds, and the mixture of noisy moments.
- `class_moments`: sums over rows with classes, and the releases for a mixture.
- `critic`: dense critics with a gradient penalty, and clipped sums of their gradients.
- `generator`: base class of private generators, and the generator network.
- `linking`: `synthesize_linked`, a table of households and one of their persons.
- `marginals`: `synthesize` and `DPMarginalSynthesizer`, tables with the two-way marginals of the private ones, and
  `combine_estimates`, intervals for estimates on several of them.
- `pair_quality`: `evaluate_synthesis`, a private estimate of the distance between a synthetic and the private table.
- `wgan`: `DPWGAN`, a generative adversarial network, for comparison.
"""

from __future__ import annotations

from skdp import lazy_face

__getattr__, __dir__, __all__ = lazy_face(
    __name__,
    {
        "CombinedEstimates": "skdp.synthesis.marginals.sampled_tables",
        "DPClassMixtureGenerator": "skdp.synthesis.class_generator",
        "DPMarginalSynthesizer": "skdp.synthesis.marginals.synthesizer",
        "DPWGAN": "skdp.synthesis.wgan",
        "SynthesisEvaluation": "skdp.synthesis.pair_quality",
        "evaluate_synthesis": "skdp.synthesis.pair_quality",
        "combine_estimates": "skdp.synthesis.marginals.sampled_tables",
        "synthesize": "skdp.synthesis.marginals.synthesizer",
        "synthesize_linked": "skdp.synthesis.linking",
    },
)
