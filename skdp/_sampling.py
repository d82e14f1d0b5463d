"""Samplers of rows: the sampler that is priced is the sampler that runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp._random import SecretStream
from skdp.accounting import DpEvent, PoissonSampledDpEvent


@dataclass(frozen=True)
class PoissonSampling:
    """Each row is in a lot with probability `rate`, independently of all others.

    Parameters
    ----------
    rate : float
        q in (0, 1).
    """

    rate: float

    def rows(self, n: int, stream: SecretStream) -> NDArray[np.int64]:
        """The rows of one lot, ascending; there may be none."""
        return stream.poisson_rows(n, self.rate)

    def event(self, inner: DpEvent) -> DpEvent:
        return PoissonSampledDpEvent(self.rate, inner)


@dataclass(frozen=True)
class FullBatch:
    """Every row is in every lot."""

    @property
    def rate(self) -> float:
        return 1.0

    def rows(self, n: int, stream: SecretStream) -> None:
        """None, which stands for all rows."""
        return None

    def event(self, inner: DpEvent) -> DpEvent:
        return inner


Sampling = PoissonSampling | FullBatch


def sampling_at(rate: float) -> Sampling:
    """Poisson sampling, which at rate 1 is the full batch."""
    return FullBatch() if rate == 1.0 else PoissonSampling(rate)
