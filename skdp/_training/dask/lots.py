"""The sample of one partition in one step, drawn where the rows lie."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from skdp.mechanisms.sampling import FullBatch, Sampling
from skdp.mechanisms.streams import SecretStream
from skdp.mechanisms.tape import Track


@dataclass(frozen=True)
class PartitionLot:
    """Lot of one partition in one step, of which a worker gets no more than this.

    Parameters
    ----------
    sampling : PoissonSampling or FullBatch
        Public.
    key : bytes
        Key of the stream that draws this lot and nothing else; empty for the full batch. Whoever knows it knows who is
        in the lot, and nothing of other lots or of the noise.
    heard : ndarray of int64 or None, default=None
        The numbers of the rows, where an audit heard the lot.
    """

    sampling: Sampling
    key: bytes = field(repr=False)
    heard: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)

    def rows(self, n_rows: int) -> NDArray[np.int64] | None:
        """Return the numbers of the rows of the lot, among those of its partition; None for all of them.

        The same lot gives the same rows, however often it is asked: a step that is computed again is the same step.
        """
        if self.heard is not None:
            return self.heard
        return self.sampling.rows(n_rows, SecretStream(self.key)) if self.key else None


def lots_of_step(sampling: Sampling, stream: SecretStream, step: int, n_partitions: int) -> list[PartitionLot]:
    """Return the lots of all partitions in a step; nothing is drawn from `stream`, of which each lot has a child.

    Notes
    -----
    **Guarantees.** Every row is in the lot of a step with probability `sampling.rate`, independently of all other rows
    and steps. Who knows the key of a lot learns from it neither another lot nor the noise.

    Proof. Keys of (step, partition) are those of independent streams, and within a partition the sampler is the one
    that is priced. So the union of the lots of all partitions is the Poisson sample of one table. A key is HMAC-SHA-256
    of its purpose under a key that is not sent, and no other key is derived from it.
    """
    if isinstance(sampling, FullBatch):
        return [PartitionLot(sampling, b"")] * n_partitions
    of_step = stream.spawn("step", step)
    return [PartitionLot(sampling, of_step.subkey("partition", number)) for number in range(n_partitions)]


def heard_lots(lots: list[PartitionLot], sizes: list[int], track: Track) -> list[PartitionLot]:
    """Return the lots of a step as an audit hears them: drawn here, as one lot of the rows of all partitions.

    `sizes` are the numbers of rows, or of units, of the partitions. Rows that a table has more than another one of the
    audit are those of its last partitions.
    """
    if not lots[0].key:  # all rows
        return lots
    starts = np.cumsum([0, *sizes])
    drawn = [lot.rows(size) for lot, size in zip(lots, sizes, strict=True)]
    whole = np.concatenate([start + rows for start, rows in zip(starts, drawn, strict=False) if rows is not None])
    found = track.rows(lots[0].sampling.rate, int(starts[-1]), whole)
    ends = np.searchsorted(found, starts)
    return [
        replace(lot, heard=found[first:last] - start)
        for lot, first, last, start in zip(lots, ends[:-1], ends[1:], starts, strict=False)
    ]
