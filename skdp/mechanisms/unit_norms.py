"""Norms of the sums of units whose rows add much: too much to form the sum of each unit, or to form it at once.

What is added then is multiplied by shares, as in `skdp.mechanisms.unit_shares`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._typing import Doubles
from skdp.mechanisms.unit_shares import reach_of_units, shares_of_units

PAIRED_ROWS = 64
"""Rows of a unit up to which its norm is computed from products of pairs of rows; beyond, its sum is formed."""

_VALUES = 1 << 20


def average_units(units: Units | None, weights: Doubles, limit: float = 1.0) -> Doubles:
    """Return weights times shares that bring the sum of the weights of each unit to `limit` at most.

    Notes
    -----
    **Guarantees.** What a unit adds to any sum is in `limit` times the convex hull of zero and what one row can add.

    So two units differ by no more than `limit` times what two rows can, or a row and none, whatever is added: a bound
    on a convex set is reached at what it is the hull of. Norms are smaller than those of
    `skdp.mechanisms.bounded_sum.VectorSum`, but this holds where a clip of norms says too little: under
    ``replace_one``, and for sums of absolute values.
    """
    if units is None:
        return weights
    total = reach_of_units(units, weights, 1.0)
    return weights * shares_of_units(units, total**2, total, limit)[units.codes]


def clip_moments(
    units: Units | None, vectors: Callable[[NDArray[np.int64]], Doubles], width: int, weights: Doubles
) -> Doubles:
    """Return weights times the shares of rows z in the unit ball that add z z' each, clipped to the norm of one.

    Parameters
    ----------
    units : Units or None
        None returns the weights.
    vectors : callable
        ``vectors(rows)`` returns the z of some rows, of shape (n, width), as they will be added, in float64.
    width : int
    weights : ndarray of shape (n_rows,)
        In [0, 1].

    Notes
    -----
    **Guarantees.** The sum of w z z' over a unit, with the weights w that are returned, has a Frobenius norm of at most
    1. Two such sums differ by at most sqrt(2).

    Proof. The former is that of `shares_of_units`: the inner product of two matrices z z' and v v' is (z . v)**2, so
    the squared norm is the sum over pairs of rows. A product has an error of (d + 3) u, a square twice that, and m**2
    of them are added: (2 d + m**2 + 8) u, relative to the squared sum of weights. Where the sum of a long unit is
    formed instead, it has an error of (m + 3) u, and its norm one of d**2 u. `squares_of_moments` is raised by both. As
    all the sums are positive semidefinite, none of their inner products is negative.
    """
    if units is None:
        return weights
    squares, reach = squares_of_moments(units, vectors, width, weights), reach_of_units(units, weights, 1.0)
    return weights * shares_of_units(units, squares, reach, 1.0)[units.codes]


def squares_of_moments(
    units: Units, vectors: Callable[[NDArray[np.int64]], Doubles], width: int, weights: Doubles
) -> Doubles:
    """Return no less than the squared norm of the sum of w z z' over each unit of two rows or more; see `clip_moments`.

    Memory holds some units at a time, or one matrix of shape (width, width).
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
                squares[chosen] = _square_of_long_unit(rows[0], vectors, width, weights)
    room = (2.0 * sizes + PAIRED_ROWS**2 + width**2 + 2.0 * width + 16.0) * 2.0**-52
    return squares + room * reach_of_units(units, weights, 1.0) ** 2


def _square_of_long_unit(
    rows: NDArray[np.int64], vectors: Callable[[NDArray[np.int64]], Doubles], width: int, weights: Doubles
) -> float:
    total, step = np.zeros((width, width)), max(1, _VALUES // width)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        z = vectors(part)
        total += (z * weights[part, None]).T @ z
    return float(np.sum(total**2))


__all__ = ["PAIRED_ROWS", "average_units", "clip_moments", "squares_of_moments"]
