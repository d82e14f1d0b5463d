"""What sources share whose rows one machine reads block by block."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.rows import read_cells
from skdp._checks.sources import BlockRecipe, RowSource, TargetReading, after_the_charge
from skdp._checks.unit_runs import UnitRuns
from skdp._checks.units import CountedUnits
from skdp._threads import WorkerPool
from skdp._training.streamed.prefetch import read_ahead
from skdp._training.streamed.streamed_model import Order, RowBlock, StreamedModel, describe

_BLOCK_VALUES = 1 << 21  # numbers of a block: 8 MB of float32
_MIN_ROWS, _MAX_ROWS = 256, 1 << 18


class BlockSource(RowSource):
    """Base class of rows that are read block by block.

    Subclasses say how the blocks are read, with numbers of rows and columns and with labels and weights as stored.
    """

    n_rows: int
    runs: UnitRuns | None = None  # units of the rows, once they are found

    def _keep_runs(self, runs: UnitRuns) -> CountedUnits:
        """Keep the units that were found, and return what is public of them."""
        self.runs, self.n_units = runs, runs.n_units
        return CountedUnits(runs.n_units, runs.name)

    @property
    def block_rows(self) -> int:
        """Rows of a block: from the number of columns alone, so that where blocks begin is no secret."""
        whole = max(_MIN_ROWS, min(_MAX_ROWS, _BLOCK_VALUES // self.n_features))
        return whole - whole % _MIN_ROWS

    def blocks(self, order: Order = "C") -> Iterator[RowBlock]:
        """Iterate over blocks of `block_rows` rows, in order; each is valid until the next but one is made.

        The rows are in memory order `order`, "C" or "F", where they are copied.
        """
        raise NotImplementedError

    def read(self, order: Order = "C") -> Generator[RowBlock, None, None]:
        return read_ahead(self.blocks(order))

    def gather(self, places: NDArray[np.int64]) -> RowBlock:
        rows = np.empty((len(places), self.n_features), self.dtype)
        labels: Any = None
        weights: Any = None
        with closing(self.read()) as blocks:
            for block in blocks:
                first, last = np.searchsorted(places, (block.start, block.stop))
                chosen = places[first:last] - block.start
                np.take(block.rows, chosen, axis=0, out=rows[first:last], mode="clip")
                labels = _take(block.labels, chosen, labels, slice(first, last), len(places))
                weights = _take(block.weights, chosen, weights, slice(first, last), len(places))
        return RowBlock(0, rows, labels, weights)

    def bind(self, recipe: BlockRecipe, plan: Any) -> StreamedModel:
        return StreamedModel(self, recipe, plan.n_steps)

    def add_up(self, new_sum: Callable[..., Any], read_targets: TargetReading | None = None) -> Any:
        with closing(WorkerPool()) as pool, closing(self.read()) as blocks:
            total, cut = new_sum(pool=pool), None
            for block in blocks:
                where, targets = describe(block), ()
                rows = after_the_charge(where, read_cells, block.rows, self.names)
                if read_targets is not None:
                    targets = after_the_charge(where, read_targets, block.labels, block.weights, len(rows))
                if self.runs is None:
                    total.add(rows, *targets)
                    continue
                units = self.runs.within(block.start, block.stop)
                parts = np.cumsum([0, units.head, units.n_rows, units.tail])
                head, whole, tail = ([_cut(each, *part) for each in (rows, *targets)] for part in pairwise(parts))
                if cut is not None:
                    cut.add(*head)
                    if units.ends:
                        cut.clip()
                        total.merge(cut)
                        cut = None
                if units.n_rows:
                    total.add(*whole, units=units.whole)
                if units.tail:
                    cut = new_sum(pool=pool)
                    cut.add(*tail)
        return total

    def map_blocks(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        with closing(self.read()) as blocks:
            return np.concatenate([function(block.rows) for block in blocks])


def _cut(values: Any, start: int, stop: int) -> Any:
    """Return a part of an array; one number for all rows as it is."""
    return values[start:stop] if isinstance(values, np.ndarray) and values.ndim else values


def _take(values: Any, chosen: NDArray[np.int64], into: Any, where: slice, n_rows: int) -> Any:
    """Write chosen values of a block to an array for all of them, which is made at the first block."""
    if values is None:
        return None
    values = np.asarray(values)
    if into is None:
        into = np.empty(n_rows, values.dtype)
    into[where] = values[chosen]
    return into
