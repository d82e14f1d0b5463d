"""The clip of groups: the rows of a group are multiplied by one number, so that what they add up to is bounded.

A release for groups is the release of weighted rows, whose weights `clip_groups` returns. Sums of vectors that are
formed group by group are multiplied by that number themselves (`skdp.mechanisms.bounded_sum.VectorSum`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdp._checks.units import Units

PAIRED_ROWS = 64
"""Rows of a group up to which its norm is computed from products of pairs of rows; beyond, its sum is formed."""

_VALUES = 1 << 20


def clip_groups(
    units: Units | None,
    weights: np.ndarray,
    limit: float | np.ndarray,
    norms: Any = 1.0,
    squares: np.ndarray | None = None,
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
    (`skdp._training.models.unit_layout.unit_room`).

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
    units: Units, vectors: Callable[[NDArray[np.int64]], np.ndarray], width: int, weights: np.ndarray
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
    rows: NDArray[np.int64], vectors: Callable[[NDArray[np.int64]], np.ndarray], width: int, weights: np.ndarray
) -> float:
    total, step = np.zeros((width, width)), max(1, _VALUES // width)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        z = vectors(part)
        total += (z * weights[part, None]).T @ z
    return float(np.sum(total**2))


__all__ = ["PAIRED_ROWS", "clip_factor", "clip_groups", "squares_of_counts", "squares_of_products"]
