"""Samplers of rows. The sampler that is priced is the sampler that runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp._random import SecretStream
from skdp.accounting import DpEvent, PoissonSampledDpEvent


@dataclass(frozen=True)
class PoissonSampling:
    """Poisson sampling: each row is in a lot with probability `rate`, independently of all others.

    Parameters
    ----------
    rate : float
        Sampling probability q in (0, 1).
    """

    rate: float

    def rows(self, n: int, stream: SecretStream) -> NDArray[np.int64]:
        """Draw the rows of one lot, ascending. A lot may be empty."""
        return stream.poisson_rows(n, self.rate)

    def event(self, inner: DpEvent) -> DpEvent:
        """Return the event of `inner` applied to one lot."""
        return PoissonSampledDpEvent(self.rate, inner)


@dataclass(frozen=True)
class FullBatch:
    """Full batch: every row is in every lot."""

    @property
    def rate(self) -> float:
        return 1.0

    def rows(self, n: int, stream: SecretStream) -> None:
        """Return None, which stands for all rows."""
        return None

    def event(self, inner: DpEvent) -> DpEvent:
        """Return `inner`: all rows take part."""
        return inner


Sampling = PoissonSampling | FullBatch


def sampling_at(rate: float) -> Sampling:
    """Return Poisson sampling at a rate, or the full batch at rate 1."""
    return FullBatch() if rate == 1.0 else PoissonSampling(rate)
