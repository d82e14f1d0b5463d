"""Private synthetic data.

- `DPMarginalSynthesizer`: tables with the two-way marginals of the private ones.
"""

from __future__ import annotations

from skdp.synthesis.marginals import DPMarginalSynthesizer

__all__ = ["DPMarginalSynthesizer"]
