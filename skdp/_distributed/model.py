"""The model of rows on many machines, as the loop of noisy gradient descent sees it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp._distributed.engine import constant, in_a_tree, results, task
from skdp._distributed.lots import PartitionLot, lots_of_step
from skdp._distributed.partitions import add_sums, sum_partition
from skdp._random import SecretStream
from skdp._sampling import Sampling
from skdp._training.model import Model
from skdp._training.optimizers import Vector

_SENT_WITH_A_TASK = 1 << 16  # bytes of parameters; more are sent once, at the price of a task that others wait for


class DistributedModel(Model):
    """Bound partitions on the workers of Dask, of which each step takes the sum of clipped gradients.

    Parameters
    ----------
    partitions : list of Delayed
        Results of `bind_partition`, kept on the workers.
    n_rows : int

    Notes
    -----
    **Guarantees.** A row adds to the sum what it adds to that of its partition, at most C. Workers are sent public
    constants, the parameters of the step, which were released, and the lots of their partitions, and no other key than
    theirs. A part that a lost worker has to compute again is of the same lot, and the sum of a step is released once.

    Sums of partitions are float64, and round as sums of segments on one machine do.
    """

    def __init__(self, partitions: list[Any], n_rows: int) -> None:
        self.n_rows = n_rows
        self._partitions = partitions

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> list[PartitionLot]:
        """See `Model`: the lot of each partition, which is drawn where its rows lie."""
        return lots_of_step(sampling, stream, step, len(self._partitions))

    def clipped_gradient_sum(self, theta: Vector, rows: list[PartitionLot], max_norm: float) -> NDArray[np.float64]:
        """See `Model`."""
        shared = theta if theta.nbytes <= _SENT_WITH_A_TASK else constant(theta)
        sums = [
            task(sum_partition, bound, shared, lot, max_norm) for bound, lot in zip(self._partitions, rows, strict=True)
        ]
        (total,) = results("a step, after the fit was charged, which stands,", [in_a_tree(_add, sums)])
        return np.zeros(len(theta)) if total is None else np.asarray(total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._partitions = []  # the workers may forget them


def _add(parts: list[Any]) -> Any:
    return task(add_sums, parts)


__all__ = ["DistributedModel"]
