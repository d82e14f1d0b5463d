"""Private synthetic data.

- `synthesize`: a raw table as a synthetic one, in one line.
- `synthesize_linked`: a table of households and one of their persons, linked by a key.
- `DPMarginalSynthesizer`: tables with the two-way marginals of the private ones.
- `DPClassMixtureGenerator`: rows of numbers with labels, such as images, by a mixture of normal rows for each class.
- `DPWGAN`: images and other numeric rows by a generative adversarial network, for comparison.
- `evaluate_synthesis`: how far a synthetic table is from the private one, as a paid release.
- `combine_estimates`: intervals for estimates on several synthetic tables.
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
