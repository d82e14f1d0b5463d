"""Counts of rows in cells: each row is in one cell of each of some columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._checks.weights import exactly_summable, weight_of_each
from skdp._typing import Doubles
from skdp.mechanisms.unit_shares import clip_counts


def column_sensitivity(n_columns: int, adjacency: str) -> float:
    """Largest norm of what a row adds to counts of disjoint cells of each column; half of its change if replaced."""
    return math.sqrt(n_columns / 2.0 if adjacency == "replace_one" else n_columns)


@dataclass(frozen=True)
class CellCounts:
    """Query (`skdp.mechanisms.bounded_sum`) of weighted counts of rows in disjoint cells of each column.

    Parameters
    ----------
    n_columns, n_cells : int
        Each column has as many cells.

    Notes
    -----
    **Guarantees.** `sensitivity` is the largest norm of what a record adds, or half of the largest change if it is
    replaced.

    Proof. A row adds its weight, at most 1, to one cell of each column. A group adds its counts, clipped to the norm of
    those of a row. No count is negative, so that the squared difference of two groups is at most the sum of both
    squares, as that of two rows in other cells is. Weights are rounded down to a grid on which sums are exact.
    """

    n_columns: int
    n_cells: int

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest norm of what a record adds, or half of the largest change if it is replaced."""
        return column_sensitivity(self.n_columns, adjacency)

    def new_sum(self, adjacency: str, pool: Any = None) -> CellSum:
        """Return an empty sum; it shares no work."""
        return CellSum(self)


class CellSum:
    """The sum of a `CellCounts`."""

    rounding = 1.0

    def __init__(self, query: CellCounts) -> None:
        self._shape = query.n_columns, query.n_cells
        self.vector, self.n_rows = np.zeros(query.n_columns * query.n_cells), 0

    def add(self, cells: NDArray[Any], weights: Any = 1.0, units: Units | None = None) -> None:
        """Add all rows, given the cell of each in each column, of shape (n_rows, n_columns)."""
        n_rows, n_cells = len(cells), self._shape[1]
        each = exactly_summable(clip_counts(units, list(cells.T), weight_of_each(weights, n_rows)))
        for counts, places in zip(self.read(self.vector), cells.T, strict=True):
            counts += np.bincount(places, each, minlength=n_cells)
        self.n_rows += n_rows

    def read(self, released: Doubles) -> Doubles:
        """Return the counts, of shape (n_columns, n_cells)."""
        return released.reshape(self._shape)


__all__ = ["CellCounts", "column_sensitivity"]
