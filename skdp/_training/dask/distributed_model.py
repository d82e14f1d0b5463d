"""The model of rows on many machines, as the loop of noisy gradient descent sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp._training.dask.engine import Asking, constant, despite_restarts, in_a_tree, results, task
from skdp._training.dask.lots import PartitionLot, heard_lots, lots_of_step
from skdp._training.dask.partitions import add_sums, count_records, gather_partitions, sum_partition, sum_partitions
from skdp._training.models.bound_rows import Model
from skdp._typing import Vector
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream

_SENT_WITH_A_TASK = 1 << 16  # bytes of parameters; more are sent once, at the price of a task that others wait for
_STANDS = "after the fit was charged, which stands,"


_FEW_VALUES = 1 << 18  # numbers that lie together, at least, if there are as many: they take a millisecond


class DistributedModel(Model):
    """Bound partitions on the workers of Dask, of which each step takes the sum of clipped gradients.

    Parameters
    ----------
    bind : callable
        Returns the results of `bind_partition`, kept on the workers, and the number of rows of each. It is called
        again if the engine was restarted, and then has to return the same rows.
    n_features : int

    Notes
    -----
    **Guarantees.** A row adds to the sum what it adds to that of its partition, at most C. Workers are sent public
    constants, the parameters of the step, which were released, and the lots of their partitions, and no other key than
    theirs. A part that a lost worker has to compute again is of the same lot, and the sum of a step is released once.

    Sums of partitions are float64, and round as sums of segments on one machine do.
    """

    def __init__(self, bind: Callable[[], tuple[list[Any], list[int]]], n_features: int) -> None:
        self._bind_all = bind
        bound, self._sizes = despite_restarts(bind)
        self.n_rows = sum(self._sizes)
        self._together = neighbours(self._sizes, max(1, _FEW_VALUES // n_features))
        self._keep(bound)

    def _keep(self, bound: list[Any]) -> None:
        """Keep partitions on their workers, those of few rows with their neighbours: a task takes milliseconds."""
        parts = [
            bound[each.start] if len(each) == 1 else task(gather_partitions, *bound[each.start : each.stop])
            for each in self._together
        ]
        if len(parts) < len(bound):
            parts = list(results(f"gathering partitions, {_STANDS}", parts, persist=True))
        self._partitions, self._engine = parts, Asking(parts)

    def _restore(self) -> None:
        """Read and bind the rows again, after the engine was restarted and forgot them."""
        bound, sizes = self._bind_all()
        if sizes != self._sizes:
            raise ValueError(
                "X has other partitions than before the engine of Dask was restarted, after the fit was charged, which "
                "stands: give a collection that does not change."
            )
        self._keep(bound)

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> list[PartitionLot]:
        """See `Model`: the lot of each partition, which is drawn where its rows lie, but for an audit."""
        lots = lots_of_step(sampling, stream, step, len(self._sizes))
        return lots if stream.track is None else heard_lots(lots, self._numbers_of_records(), stream.track)

    def _numbers_of_records(self) -> list[int]:
        """Numbers of rows, or of units, of the partitions, for an audit."""
        found = self._engine.results("counting rows", [task(count_records, part) for part in self._partitions])
        return [number for part in found for number in part]

    def clipped_gradient_sum(self, theta: Vector, rows: list[PartitionLot], max_norm: float) -> NDArray[np.float64]:
        return despite_restarts(lambda: self._sum(theta, rows, max_norm), self._restore)

    def _sum(self, theta: Vector, lots: list[PartitionLot], max_norm: float) -> NDArray[np.float64]:
        shared = theta if theta.nbytes <= _SENT_WITH_A_TASK else constant(theta)
        sums = [
            task(sum_partition, part, shared, lots[each.start], max_norm)
            if len(each) == 1
            else task(sum_partitions, part, shared, lots[each.start : each.stop], max_norm)
            for part, each in zip(self._partitions, self._together, strict=True)
        ]
        total = add_sums(self._engine.results(f"a step, {_STANDS}", in_a_tree(_add, sums)))
        return np.zeros(len(theta)) if total is None else np.asarray(total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._partitions, self._engine = [], Asking([])  # the workers may forget them


def neighbours(sizes: Sequence[int], most: int) -> list[range]:
    """Return ranges of partitions in order, each of one partition, or of several with at most this many rows."""
    starts, n_rows = [0], 0
    for number, size in enumerate(sizes):
        n_rows += size
        if n_rows > most and number > starts[-1]:
            starts.append(number)
            n_rows = size
    return [range(start, stop) for start, stop in pairwise([*starts, len(sizes)])]


def _add(parts: list[Any]) -> Any:
    return task(add_sums, parts)
