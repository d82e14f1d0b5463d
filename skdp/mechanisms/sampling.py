"""Samplers of rows, each with its privacy event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp._kernels.bits import LARGEST_POWER, add_counts, binomial_tables
from skdp.accounting import DpEvent, PoissonSampledDpEvent
from skdp.mechanisms.streams import SecretStream


@dataclass(frozen=True)
class PoissonSampling:
    """Poisson sampling: a lot contains each row with probability `rate`, independently of all others.

    Parameters
    ----------
    rate : float
        Sampling probability q in (0, 1).
    """

    rate: float

    def rows(self, n: int, stream: SecretStream) -> NDArray[np.int64]:
        """Draw the rows of one lot in increasing order. A lot can be empty."""
        rows = stream.poisson_rows(n, self.rate)
        return rows if stream.track is None else stream.track.rows(self.rate, n, rows)

    def counter(self, copies: NDArray[np.int64]) -> Callable[[SecretStream], NDArray[np.float64]]:
        """Return a sampler of the number of copies of each distinct row in a lot: Binomial(copies, rate).

        Time and number of random words depend on the copies (`skdp._kernels.bits`).
        """
        bits = [np.flatnonzero(copies >> j & 1) for j in range(LARGEST_POWER)]
        bits.append(np.repeat(np.arange(len(copies)), copies >> LARGEST_POWER))
        used = [j for j, groups in enumerate(bits) if len(groups)]
        tables = binomial_tables([1 << j for j in used], self.rate)
        groups = np.concatenate(bits)
        first_draw = np.cumsum([0, *(len(bits[j]) for j in used)])

        def draw(stream: SecretStream) -> NDArray[np.float64]:
            counts = np.zeros(len(copies))
            add_counts(stream.words(2 * len(groups)).reshape(2, -1), groups, first_draw, tables, counts)
            return counts if stream.track is None else stream.track.counts(self.rate, copies, counts)

        return draw

    def event(self, inner: DpEvent) -> DpEvent:
        """Return the event of `inner` applied to one lot."""
        return PoissonSampledDpEvent(self.rate, inner)


@dataclass(frozen=True)
class FullBatch:
    """Full batch: every lot contains all rows."""

    rate = 1.0

    def rows(self, n: int, stream: SecretStream) -> None:
        """Return None, which represents all rows."""
        return None

    def counter(self, copies: NDArray[np.int64]) -> Callable[[SecretStream], NDArray[np.float64]]:
        """Return a function that returns all copies, which are in every lot."""
        counts = copies.astype(np.float64)
        return lambda stream: counts

    def event(self, inner: DpEvent) -> DpEvent:
        """Return `inner`, as all rows are used."""
        return inner


Sampling = PoissonSampling | FullBatch


def sampling_at(rate: float) -> Sampling:
    """Return Poisson sampling at a rate, or the full batch at rate 1."""
    return FullBatch() if rate == 1.0 else PoissonSampling(rate)
