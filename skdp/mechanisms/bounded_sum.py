"""The one sum over records that releases are made of: what a record adds is bounded, with weights and groups.

A query states what a row adds to a sum, and the largest norm of what a record adds. A row is multiplied by its weight,
a number in [0, 1]. Without groups a record is a row. With groups it is all rows of a group, whose sum is clipped to
what one row may add; `skdp.mechanisms.bounded_sum.clip_groups` has the proof under the three neighboring relations. A
query has these members:

- ``sensitivity(adjacency)``: the largest norm of what a record adds, or half of the largest change if it is replaced.
- ``new_sum(adjacency, pool=None)``: an empty sum. Its ``add(rows, *targets, weights, units=None)`` takes all rows of
  each of its groups; without groups the rows may be of one group that ends later, when ``clip()`` is called. It has
  ``merge(other)``, `n_rows`, `vector`, which is released, `rounding`, by which the vector was divided to make room for
  what its sums round off, and ``read(noisy)``, which returns what the released vector means.

A query of vectors derives from `VectorQuery`, and writes `vectors`. One of products z z' derives from
`skdp.mechanisms.second_moments.ProductQuery`.

The clip of groups: the rows of a group are multiplied by one number, so that what they add up to is bounded.

A release for groups is the release of weighted rows, whose weights `clip_groups` returns. Sums of vectors that are
formed group by group are multiplied by that number themselves (`skdp.mechanisms.bounded_sum.VectorSum`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from skdp._checks.groups import Units
from skdp._checks.weights import exactly_summable, weight_of_each
from skdp._kernels.sums import add_groups

_COLUMNS = 8192


def row_products(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Inner products of each row with a row of `others`, or with `others` itself if it is a vector.

    Each result is that of the row alone, to the last bit. NumPy adds up to 8,192 products of a row at once, and splits
    longer rows where the place of the row among others decides. So longer rows are split here.
    """
    how = "ij,j->i" if others.ndim == 1 else "ij,ij->i"
    starts = range(0, max(rows.shape[1], 1), _COLUMNS)
    return sum(np.einsum(how, rows[:, k : k + _COLUMNS], others[..., k : k + _COLUMNS]) for k in starts)


PAIRED_ROWS = 64
"""Rows of a group up to which its norm is computed from products of pairs of rows; beyond, its sum is formed."""

_VALUES = 1 << 20


def clip_groups(
    units: Units | None, weights: np.ndarray, limit: float | np.ndarray, norms: Any = 1.0, squares: Any = None
) -> np.ndarray:
    """Return weights with which the rows of a group add up to a norm of `limit` at most.

    Parameters
    ----------
    units : Units or None
        None, where each row is a record, returns the weights.
    weights : ndarray of shape (n_rows,)
        In [0, 1].
    limit : float or ndarray of shape (n_units,)
    norms : float or ndarray of shape (n_rows,)
        No less than the norm of the vector of each row.
    squares : ndarray of shape (n_units,) or None
        Squared norms of the sums of the weighted vectors. None for no less than these whatever the vectors are: the
        squares of the sums of weighted norms, of which the weights that are returned then add up to `limit` at most.

    Notes
    -----
    **Guarantees.** The sum of the weighted vectors of a group has a norm of at most `limit`. The weights of a group are
    multiplied by one number in [0, 1], which is exactly 1 for a group of one row.
    Without `squares` the sum of a group is a point of the convex hull of zero and of what one row can add, times
    `limit` if all norms are 1.

    Proof. With V the true sum of a group of m rows, of p <= 2**16 numbers, and A the sum of the weighted norms,
    `squares` is within (p + m + 8) u A**2 of \\|V\\|**2, u = 2**-53, and what is added is within (m + 4) u A of the
    number times V. The room that is added to `squares`, 16 (m + 2**13) u A**2, covers both
    (`skdp._dpsgd.models.linear.unit_room`).

    **Sensitivity.** Let S be the norm of what a row adds at most, and `limit` k S. Under ``zero_out`` and
    ``add_remove`` a group changes a sum by k S at most. Under ``replace_one`` two groups differ by sqrt(2) k S at most
    if no inner product of what two rows add is negative, as of counts and of products z z', and by 2 k S else. Without
    `squares` they differ by k times what two rows may, or a row and zero, whatever is added: a norm, and any other
    convex function, is largest at what the hull is made of. So sums of absolute values, and those in which two rows
    differ by less than two norms, are bounded by weights alone.
    """
    if units is None:
        return weights
    reach = np.bincount(units.codes, weights * norms, minlength=units.n_units)
    sizes = np.bincount(units.codes, minlength=units.n_units)
    factors = np.ones(units.n_units)
    with np.errstate(all="ignore"):
        found = reach**2 if squares is None else np.maximum(squares, 0.0)
        found = np.sqrt(found + 16 * (sizes + 2**13) * 2.0**-53 * reach**2)
        np.divide(limit, found, out=factors, where=(sizes > 1) & (found > limit))
    return weights * factors[units.codes]


def clip_factor(total: np.ndarray, limit: float) -> float:
    """Return the factor of a group of which the sum was formed: times it, no sum is longer than `limit` (1 + 4 u).

    The norm of p numbers as computed has a relative error of at most (p / 2 + 2) u, u = 2**-53, which the room makes up
    for.
    """
    norm = float(np.linalg.norm(total)) * (1.0 + (total.size + 8) * 2.0**-52)
    return limit / norm if norm > limit else 1.0


def squares_of_counts(units: Units, columns: Iterable[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Squared norms of the sums of groups whose rows have, in each column, their weight at one cell."""
    squares = np.zeros(units.n_units)
    for cells in columns:
        cells = np.asarray(cells, np.int64)
        shape = units.n_units, int(cells.max(initial=0)) + 1
        counted = sp.coo_matrix((weights, (units.codes, cells)), shape).tocsr()  # adds up what is in one place
        counted.data **= 2
        squares += np.asarray(counted.sum(axis=1)).ravel()
    return squares


def squares_of_products(
    units: Units, vectors: Callable[[np.ndarray], np.ndarray], width: int, weights: np.ndarray
) -> np.ndarray:
    """Return no less than the squared Frobenius norms of the sums of w z z' over each group of two rows or more.

    Parameters
    ----------
    units : Units
    vectors : callable
        ``vectors(rows)`` returns the z of some rows, in the unit ball, of shape (n, width), as they will be added, in
        float64.
    width : int
    weights : ndarray of shape (n_rows,)
        In [0, 1].

    Notes
    -----
    Memory holds some groups at a time, or one matrix of shape (width, width).

    Proof. The inner product of two matrices z z' and v v' is (z . v)**2, so the squared norm is the sum over pairs of
    rows. A product has an error of (d + 3) u, a square twice that, and m**2 of them are added: (2 d + m**2 + 8) u,
    relative to the squared sum of weights. Where the sum of a long group is formed instead, it has an error of
    (m + 3) u, and its norm one of d**2 u. The squares are raised by both.
    """
    sizes = np.bincount(units.codes, minlength=units.n_units)
    order, starts = np.argsort(units.codes, kind="stable"), np.cumsum(sizes) - sizes
    squares = np.zeros(units.n_units)
    for size in np.unique(sizes[sizes > 1]).tolist():
        alike = np.flatnonzero(sizes == size)
        most = max(1, _VALUES // (size * width)) if size <= PAIRED_ROWS else 1
        for first in range(0, len(alike), most):
            chosen = alike[first : first + most]
            rows = order[starts[chosen][:, None] + np.arange(size)]
            if size <= PAIRED_ROWS:
                z = vectors(rows.ravel()).reshape(len(chosen), size, width)
                products = (z @ z.transpose(0, 2, 1)) ** 2
                squares[chosen] = np.einsum("ki,kij,kj->k", weights[rows], products, weights[rows])
            else:
                squares[chosen] = _square_of_long_group(rows[0], vectors, width, weights)
    room = (2.0 * sizes + PAIRED_ROWS**2 + width**2 + 2.0 * width + 16.0) * 2.0**-52
    return squares + room * np.bincount(units.codes, weights, minlength=units.n_units) ** 2


def _square_of_long_group(
    rows: np.ndarray, vectors: Callable[[np.ndarray], np.ndarray], width: int, weights: np.ndarray
) -> float:
    total, step = np.zeros((width, width)), max(1, _VALUES // width)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        z = vectors(part)
        total += (z * weights[part, None]).T @ z
    return float(np.sum(total**2))


_BLOCK_ROWS = 2048


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

    def cells(self, rows: Any, *targets: Any) -> np.ndarray:
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
        # The squares of norms, and the sums of these, are normal doubles.
        if not 1e-100 <= query.row_limit <= 1e100:
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
