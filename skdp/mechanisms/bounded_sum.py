"""Sums over records with bounded contributions, weights and groups, from which all releases are computed.

A query defines the contribution of a row to a sum, and the sensitivity. Each row is multiplied by its weight in [0, 1].
Without groups a record is a row. With groups a record is all rows of a group, whose sum is clipped to the largest
contribution of one row; `clip_groups` has the proof for the three neighboring relations. A query has these members:

- ``sensitivity(adjacency)``: the largest norm of a record's contribution, or half of the largest change if a record is
  replaced.
- ``new_sum(adjacency, pool=None)``: an empty sum. Its ``add(rows, *targets, weights, units=None)`` expects all rows of
  each group. Without `units` the rows can also be those of a single group, which ``clip()`` ends. A sum has
  ``merge(other)``, `n_rows`, the `vector` to release, and `rounding`, a factor by which the vector was divided to cover
  rounding errors. ``read(noisy)`` converts the released vector to the sums.

A query of vectors derives from `VectorQuery` and defines `vectors`. A query of products z z' derives from
`skdp.mechanisms.second_moments.ProductQuery`.

**Clipping of groups.** The rows of a group are multiplied by one factor that bounds their sum. A release for groups is
a release of weighted rows, with the weights of `clip_groups`. Sums of vectors that are formed group by group are
multiplied by the factor directly (`VectorSum`).
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
    """Return inner products of each row with a row of `others`, or with `others` if it is a vector.

    Each result depends only on its own row, to the last bit. NumPy sums up to 8,192 products at once and splits longer
    rows at points that depend on the position of the row. Therefore longer rows are split here.
    """
    how = "ij,j->i" if others.ndim == 1 else "ij,ij->i"
    starts = range(0, max(rows.shape[1], 1), _COLUMNS)
    return sum(np.einsum(how, rows[:, k : k + _COLUMNS], others[..., k : k + _COLUMNS]) for k in starts)


PAIRED_ROWS = 64
"""Largest group whose norm is computed from products of pairs of rows; for larger groups the sum is formed."""

_VALUES = 1 << 20


def clip_groups(
    units: Units | None, weights: np.ndarray, limit: float | np.ndarray, norms: Any = 1.0, squares: Any = None
) -> np.ndarray:
    """Return weights with which the sum of the rows of each group has a norm of at most `limit`.

    Parameters
    ----------
    units : Units or None
        If None, each row is a record and the weights are returned.
    weights : ndarray of shape (n_rows,)
        Weights in [0, 1].
    limit : float or ndarray of shape (n_units,)
    norms : float or ndarray of shape (n_rows,)
        Upper bound of the norm of the vector of each row.
    squares : ndarray of shape (n_units,) or None
        Squared norms of the sums of the weighted vectors. If None, the upper bound for any vectors is used: the squared
        sums of weighted norms. The weighted norms of a group then sum to at most `limit`.

    Notes
    -----
    **Guarantees.** The sum of the weighted vectors of a group has a norm of at most `limit`. The weights of a group are
    multiplied by one factor in [0, 1], which is exactly 1 for a group of one row. Without `squares` the sum of a group
    is in the convex hull of zero and the possible contributions of one row, times `limit` if all norms are 1.

    Proof. Let V be the exact sum of a group of m rows with p <= 2**16 numbers, and A the sum of the weighted norms.
    `squares` is within (p + m + 8) u A**2 of \\|V\\|**2, u = 2**-53, and the added sum is within (m + 4) u A of the
    factor times V. The margin added to `squares`, 16 (m + 2**13) u A**2, covers both.

    **Sensitivity.** Let S be the largest norm of a row's contribution, and `limit` k S. Under ``zero_out`` and
    ``add_remove`` a group changes a sum by at most k S. Under ``replace_one`` two groups differ by at most sqrt(2) k S
    if the inner product of two contributions is never negative, as for counts and products z z', and by at most 2 k S
    otherwise. Without `squares` two groups differ by at most k times the largest difference of two rows, or of a row
    and zero, because a convex function such as a norm is largest at the extreme points of the hull. So weights alone
    bound sums of absolute values, and sums in which two rows differ by less than two norms.
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
    """Return the factor that clips the sum of a group to a norm of at most `limit` (1 + 4 u), u = 2**-53.

    The computed norm of p numbers has a relative error of at most (p / 2 + 2) u, which a margin covers.
    """
    norm = float(np.linalg.norm(total)) * (1.0 + (total.size + 8) * 2.0**-52)
    return limit / norm if norm > limit else 1.0


def squares_of_counts(units: Units, columns: Iterable[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return squared norms of the sums of groups whose rows add their weight to one cell of each column."""
    squares = np.zeros(units.n_units)
    for cells in columns:
        cells = np.asarray(cells, np.int64)
        shape = units.n_units, int(cells.max(initial=0)) + 1
        counted = sp.coo_matrix((weights, (units.codes, cells)), shape).tocsr()  # sums duplicate entries
        counted.data **= 2
        squares += np.asarray(counted.sum(axis=1)).ravel()
    return squares


def squares_of_products(
    units: Units, vectors: Callable[[np.ndarray], np.ndarray], width: int, weights: np.ndarray
) -> np.ndarray:
    """Return upper bounds of the squared Frobenius norms of the sums of w z z' over each group of several rows.

    Parameters
    ----------
    units : Units
    vectors : callable
        ``vectors(rows)`` returns the vectors z of some rows in the unit ball, of shape (n, width) and dtype float64.
    width : int
    weights : ndarray of shape (n_rows,)
        Weights in [0, 1].

    Notes
    -----
    Memory holds several groups at a time, or one matrix of shape (width, width).

    Proof. The inner product of the matrices z z' and v v' is (z . v)**2, so the squared norm is a sum over pairs of
    rows. A product has an error of (d + 3) u, its square twice this error, and m**2 squares are added: (2 d + m**2 + 8)
    u, relative to the squared sum of weights. The sum of a long group has an error of (m + 3) u, and its norm one of
    d**2 u. The squares are increased by both.
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
    """Base class of queries for sums of vectors.

    Attributes
    ----------
    width : int
        Length of the vector of a row.
    n_cells : int
        Number of cells, such as classes, to one of which each row adds its vector.
    row_limit : float
        Largest norm of a vector, from 1e-100 to 1e100.
    """

    n_cells: int = 1
    width: int
    row_limit: float

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest norm of a record's contribution, or half of the largest change if it is replaced."""
        return self.row_limit

    def group_limits(self, adjacency: str) -> tuple[float, float]:
        """Return the clipping norm of the sum of a group, and the limit of the sum of its weights.

        A limit of 1 keeps the sum of a group in the convex hull of zero and the contributions of single rows. Two
        groups then differ by at most the difference of two rows, or of a row and zero.
        """
        return self.sensitivity(adjacency), np.inf

    def vectors(self, rows: Any, *targets: Any) -> np.ndarray:
        """Return the contribution of each row, of shape (m, width)."""

    def cells(self, rows: Any, *targets: Any) -> np.ndarray:
        """Return the cell to which each row adds its vector."""
        return np.zeros(rows.shape[0], np.int64)

    def new_sum(self, adjacency: str, pool: Any = None) -> VectorSum:
        """Return an empty sum, which does not use the pool."""
        return VectorSum(self, adjacency)


class VectorSum:
    """Sum of a `VectorQuery`; the contribution of a group is bounded like that of a row.

    Attributes
    ----------
    vector : ndarray of shape (n_cells * width,)
    n_rows : int

    Notes
    -----
    **Guarantees.** The contribution of a group of several rows is their weighted sum times one factor in [0, 1]. Its
    norm, and the sum of its weights, are within `VectorQuery.group_limits`, up to 4 roundings. A group of one row has
    the contribution of this row.

    Proof. The sum of a group is computed in doubles, and this sum times the factor is added, so errors of the sum do
    not matter. The computed norm is increased by more than its error. The factor, its product with an entry, and the
    norm of the products are rounded once each. The noise covers these roundings, and those of `vector`
    (`skdp.mechanisms.GaussianMechanism`).
    """

    rounding = 1.0

    def __init__(self, query: VectorQuery, adjacency: str) -> None:
        # Squared norms and their sums are normal doubles.
        if not 1e-100 <= query.row_limit <= 1e100:
            raise ValueError(f"`row_limit` must be from 1e-100 to 1e100, got {query.row_limit!r}. Rescale the vectors.")
        self._query, self._adjacency = query, adjacency
        self.vector, self.n_rows, self._weight = np.zeros(query.n_cells * query.width), 0, 0.0

    @cached_property
    def _limits(self) -> tuple[float, float]:
        return self._query.group_limits(self._adjacency)

    def add(self, rows: Any, *targets_and_weights: Any, units: Units | None = None) -> None:
        """Add rows, with targets if the query has any, and weights (1.0 by default)."""
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
            block = np.zeros_like(total)  # summed first, so that few additions round the total (`GaussianMechanism`)
            add_groups(vectors, query.cells(*given), weights[part], ends, self._limits, *open_group, block)
            total += block

    def clip(self) -> None:
        """Clip the sum of all rows of one group to the limits of a group; see `clip_factor`."""
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
    """Return the largest norm of a row's counts in disjoint cells of each column; half of its change if replaced."""
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
    **Guarantees.** `sensitivity` is the largest norm of a record's contribution, or half of the largest change if a
    record is replaced.

    Proof. A row adds its weight, at most 1, to one cell of each column. The counts of a group are clipped to the norm
    of one row. Counts are not negative, so the squared difference of two groups is at most the sum of both squares, as
    for two rows in different cells. Weights are rounded down to a grid on which sums are exact.
    """

    sizes: tuple[int, ...]

    def sensitivity(self, adjacency: str) -> float:
        """Return the largest norm of a record's contribution, or half of the largest change if it is replaced."""
        return column_sensitivity(len(self.sizes), adjacency)

    def new_sum(self, adjacency: str, pool: Any = None) -> CellSum:
        """Return an empty sum, which does not use the pool."""
        return CellSum(self)


class CellSum:
    """Sum of a `CellCounts`."""

    rounding = 1.0

    def __init__(self, query: CellCounts) -> None:
        self._ends = np.cumsum(query.sizes)
        self.vector, self.n_rows = np.zeros(sum(query.sizes)), 0

    def add(self, columns: Sequence[np.ndarray], weights: Any = 1.0, units: Units | None = None) -> None:
        """Add all rows, given their cells in each column."""
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
    """Return the Euclidean projection onto the probability simplex (Held, Wolfe & Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    excess = np.cumsum(ordered) - 1.0
    k = int(np.nonzero(ordered * np.arange(1, len(values) + 1) > excess)[0][-1])
    return np.maximum(values - excess[k] / (k + 1), 0.0)


def centered(table: np.ndarray) -> np.ndarray:
    """Return a table centered along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
