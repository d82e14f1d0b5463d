"""Counts of rows in cells: each row is in one cell of each of some columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp._checks.groups import Units
from skdp._checks.weights import exactly_summable, weight_of_each
from skdp.mechanisms.bounded_sum import clip_groups, squares_of_counts


def column_sensitivity(n_columns: int, adjacency: str) -> float:
    """Largest norm of what a row adds to counts of disjoint cells of each column; half of its change if replaced."""
    return math.sqrt(n_columns / 2.0 if adjacency == "replace_one" else n_columns)


@dataclass(frozen=True)
class CellCounts:
    """Query (`skdp.mechanisms.bounded_sum`) of weighted counts of rows in disjoint cells of each column.

    Parameters
    ----------
    sizes : tuple of int
        Number of cells of each column.

    Notes
    -----
    **Guarantees.** `sensitivity` is the largest norm of what a record adds, or half of the largest change if it is
    replaced.

    Proof. A row adds its weight, at most 1, to one cell of each column. A group adds its counts, clipped to the norm of
    those of a row. No count is negative, so that the squared difference of two groups is at most the sum of both
    squares, as that of two rows in other cells is. Weights are rounded down to a grid on which sums are exact.
    """

    sizes: tuple[int, ...]

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest norm of what a record adds, or half of the largest change if it is replaced."""
        return column_sensitivity(len(self.sizes), adjacency)

    def new_sum(self, adjacency: str, pool: Any = None) -> CellSum:
        """Return an empty sum; it shares no work."""
        return CellSum(self)


class CellSum:
    """The sum of a `CellCounts`."""

    rounding = 1.0

    def __init__(self, query: CellCounts) -> None:
        self._ends = np.cumsum(query.sizes)
        self.vector, self.n_rows = np.zeros(sum(query.sizes)), 0

    def add(self, columns: Sequence[np.ndarray], weights: Any = 1.0, units: Units | None = None) -> None:
        """Add all rows, given the cell of each in each column."""
        each = weight_of_each(weights, len(columns[0]))
        if units is not None:
            norm = math.sqrt(len(columns))
            each = clip_groups(units, each, norm, norm, squares_of_counts(units, columns, each))
        each = exactly_summable(each)
        for counts, cells in zip(self.read(self.vector), columns, strict=True):
            counts += np.bincount(cells, each, minlength=len(counts))
        self.n_rows += len(each)

    def read(self, released: np.ndarray) -> list[np.ndarray]:
        """Return the counts of each column."""
        return np.split(released, self._ends[:-1])


def onto_simplex(values: np.ndarray) -> np.ndarray:
    """Return the nearest probabilities in Euclidean distance (Held, Wolfe & Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    excess = np.cumsum(ordered) - 1.0
    k = int(np.nonzero(ordered * np.arange(1, len(values) + 1) > excess)[0][-1])
    return np.maximum(values - excess[k] / (k + 1), 0.0)


def centred(table: np.ndarray) -> np.ndarray:
    """Return a table less its means along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
