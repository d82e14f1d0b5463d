"""The one sum over records that releases are made of: what a record adds is bounded, with weights and groups.

A query states what a row adds to a sum, and the largest norm of what a record adds. A row is multiplied by its weight,
a number in [0, 1]. Without groups a record is a row. With groups it is all rows of a group, whose sum is clipped to
what one row may add; `skdp.mechanisms.group_clip.clip_groups` has the proof under the three neighboring relations. A
query has these members:

- ``sensitivity(adjacency)``: the largest norm of what a record adds, or half of the largest change if it is replaced.
- ``new_sum(adjacency, pool=None)``: an empty sum. Its ``add(rows, *targets, weights, units=None)`` takes all rows of
  each of its groups; without groups the rows may be of one group that ends later, when ``clip()`` is called. It has
  ``merge(other)``, `n_rows`, `vector`, which is released, `rounding`, by which the vector was divided to make room for
  what its sums round off, and ``read(noisy)``, which returns what the released vector means.

A query of vectors derives from `VectorQuery`, and writes `vectors`. One of products z z' derives from
`skdp.mechanisms.second_moments.ProductQuery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._kernels.group_sums import add_groups
from skdp.mechanisms.group_clip import clip_factor

_BLOCK_ROWS = 2048
_LIMITS = 1e-100, 1e100  # of norms, whose squares and the sums of these are normal doubles


class VectorQuery(Protocol):
    """Base of queries of sums of vectors.

    Attributes
    ----------
    width : int
        Length of the vector that a row adds.
    n_cells : int
        Number of cells, such as classes, to one of which each row adds its vector.
    row_limit : float
        Largest norm of a vector, from 1e-100 to 1e100.
    """

    n_cells: int = 1
    width: int
    row_limit: float

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest norm of what a record adds, or half of the largest change if it is replaced."""
        return self.row_limit

    def group_limits(self, adjacency: str) -> tuple[float, float]:
        """Return the norm to which the sum of a group is clipped, and the limit on the sum of its weights.

        A limit of 1 on the sum of weights keeps the sum of a group where those of single rows lie, or between them and
        zero, so that two groups differ by no more than two rows do, or a row and none.
        """
        return self.sensitivity(adjacency), np.inf

    def vectors(self, rows: Any, *targets: Any) -> np.ndarray:
        """Return what each of some rows adds, of shape (m, width)."""

    def cells(self, rows: Any, *targets: Any) -> NDArray[np.int64]:
        """Return the cell to which each row adds its vector."""
        return np.zeros(rows.shape[0], np.int64)

    def new_sum(self, adjacency: str, pool: Any = None) -> VectorSum:
        """Return an empty sum; it shares no work."""
        return VectorSum(self, adjacency)


class VectorSum:
    """The sum of a `VectorQuery`, in which no group adds more than a row may.

    Attributes
    ----------
    vector : ndarray of shape (n_cells * width,)
    n_rows : int

    Notes
    -----
    **Guarantees.** What a group of several rows adds to `vector` is their weighted sum times one number in [0, 1]. Its
    norm, and the sum of its weights, are within `VectorQuery.group_limits`, but for 4 roundings. A group of one row
    adds what the row adds.

    Proof. The sum of a group is formed as doubles, and what is added is this very sum times the factor, so that errors
    of its sum do not matter. The norm that is computed is raised by more than its own error. The factor, its product
    with an entry, and the norm of the products round once each. The noise has room for these, and for what `vector`
    rounds (`skdp.mechanisms.GaussianMechanism`).
    """

    rounding = 1.0

    def __init__(self, query: VectorQuery, adjacency: str) -> None:
        if not _LIMITS[0] <= query.row_limit <= _LIMITS[1]:
            raise ValueError(f"row_limit={query.row_limit!r} must be from 1e-100 to 1e100: scale the vectors.")
        self._query, self._adjacency = query, adjacency
        self.vector, self.n_rows, self._weight = np.zeros(query.n_cells * query.width), 0, 0.0

    @cached_property
    def _limits(self) -> tuple[float, float]:
        return self._query.group_limits(self._adjacency)

    def add(self, rows: Any, *targets_and_weights: Any, units: Units | None = None) -> None:
        """Add rows, with targets if the query takes any, and weights, which are 1.0 if they are left out."""
        *targets, weights = targets_and_weights or (1.0,)
        each = np.broadcast_to(np.asarray(weights, np.float64), (rows.shape[0],))
        if units is None:
            self._add_rows(rows, targets, each)
            self._weight += float(each.sum())
        else:
            self._add_groups(rows, targets, each, units)
        self.n_rows += rows.shape[0]

    def _add_rows(self, rows: Any, targets: Sequence[Any], weights: np.ndarray) -> None:
        query = self._query
        total = self.vector.reshape(query.n_cells, query.width)
        for start in range(0, rows.shape[0], _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            given = tuple(map(itemgetter(part), (rows, *targets)))
            vectors, shares = query.vectors(*given), weights[part]
            if query.n_cells == 1:
                total[0] += shares @ vectors
                continue
            places = query.cells(*given), np.arange(len(vectors))
            total += sp.csr_array((shares, places), (query.n_cells, len(vectors))) @ vectors

    def _add_groups(self, rows: Any, targets: Sequence[Any], weights: np.ndarray, units: Units) -> None:
        query = self._query
        total = self.vector.reshape(query.n_cells, query.width)
        order = np.argsort(units.codes, kind="stable")
        is_last = np.append(np.diff(units.codes[order]) != 0, True)
        cells_of_group = np.zeros(query.n_cells, np.int64), np.zeros(query.n_cells, bool)
        open_group = np.zeros_like(total), np.zeros(3), *cells_of_group
        for start in range(0, len(order), _BLOCK_ROWS):
            part = order[start : start + _BLOCK_ROWS]
            given = tuple(map(itemgetter(part), (rows, *targets)))
            vectors, ends = query.vectors(*given), is_last[start : start + _BLOCK_ROWS]
            block = np.zeros_like(total)  # first, so that few additions round the total (`GaussianMechanism`)
            add_groups(vectors, query.cells(*given), weights[part], ends, self._limits, *open_group, block)
            total += block

    def clip(self) -> None:
        """Clip the sum, of all rows of one group, to what a group may add; see `clip_factor`."""
        norm, most = self._limits
        weight = self._weight * (1.0 + (self.n_rows + 8) * 2.0**-52)
        self.vector *= min(clip_factor(self.vector, norm), most / weight if weight > most else 1.0)

    def merge(self, other: VectorSum) -> None:
        """Add the sum over other rows."""
        self.vector += other.vector
        self.n_rows, self._weight = self.n_rows + other.n_rows, self._weight + other._weight

    def read(self, released: np.ndarray) -> np.ndarray:
        """Return the sums of the cells, of shape (n_cells, width)."""
        return released.reshape(self._query.n_cells, self._query.width)
