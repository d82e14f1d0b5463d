"""Rows brought into the unit ball, and lower triangles of their Gram matrices, in the tiles of networks.

Norms, and sums of blocks of rows, are float64 whatever the dtype of the rows. There is no ``fastmath``.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._kernels import tiles
from skdp._kernels.caching import njit, text_of
from skdp._kernels.tiles import ROWS, SUMMED_ROWS, add_tile, panel_columns

_LANES = 64  # independent partial sums, so that the loop over them vectorises


@njit
def _sum_of_squares(row, lanes):
    lanes[:] = 0.0
    whole = len(row) - len(row) % _LANES
    for start in range(0, whole, _LANES):
        part = row[start : start + _LANES]
        for j in range(_LANES):
            lanes[j] += np.float64(part[j]) * np.float64(part[j])
    total = 0.0
    for j in range(whole, len(row)):
        total += np.float64(row[j]) * np.float64(row[j])
    for j in range(_LANES):
        total += lanes[j]
    return total


@njit
def _multiply(row, factor):
    """Multiply a row in place: a loop of its own vectorises."""
    for j in range(len(row)):
        row[j] *= factor


@njit
def _factor(norm, radius):
    """What brings a row of this norm into the unit ball: 1 / radius, or 1 / norm where that is longer."""
    return 1.0 / norm if norm > radius else 1.0 / radius


@njit
def _scale_extreme(row, radius, lanes):
    """Bring in a row whose sum of squares overflows or underflows: divided by its largest entry first."""
    top = 0.0
    for j in range(len(row)):
        top = max(top, abs(np.float64(row[j])))
    if top == 0.0:  # which NaN is not larger than
        row[:] = 0.0
        return
    for j in range(len(row)):
        row[j] = row[j] / top
    ratio = math.sqrt(_sum_of_squares(row, lanes))
    norm = top * ratio
    if norm < np.inf:  # False for NaN too
        _multiply(row, 1.0 / ratio if norm > radius else top / radius)
    else:
        row[:] = 0.0  # NaN and infinity end here too


@njit
def rows_into_ball(X, center, radius, rows):
    """Write each row less `center`, scaled to norm at most 1, to `rows`.

    Parameters
    ----------
    X : ndarray of shape (m, d), float32 or float64
    center : ndarray of shape (d,), dtype of X
    radius : float
        Public. 0 scales every row but zero to norm 1.
    rows : ndarray of shape (m, at least d), dtype of X
        ``(x - center) / max(radius, |x - center|)``; zero for a row whose norm overflows, and for one that
        holds NaN or infinity. May be X itself.
    """
    lanes, d = np.empty(_LANES), len(center)
    for i in range(X.shape[0]):
        x, row = X[i, :d], rows[i, :d]
        for j in range(d):
            row[j] = x[j] - center[j]
        square = _sum_of_squares(row, lanes)
        if 1e-280 < square < 1e280:  # far from overflow and underflow; False for NaN
            _multiply(row, _factor(math.sqrt(square), radius))
        else:
            _scale_extreme(row, radius, lanes)


def _define(texts):
    """Make the kernel; a variable of a closure is part of the key of the cache."""

    @njit
    def add_gram(rows, rectangle, packed):
        """Add what of a rectangle of the rows' Gram matrix is in its lower triangle.

        Parameters
        ----------
        rows : ndarray of shape (m, room_for(d))
        rectangle : tuple of int
            First row and end, first column and end. Rows start at a multiple of 6.
        packed : ndarray of shape (d (d + 1) / 2,), float64
            The triangle, row by row. Read and written. Sums over `SUMMED_ROWS` rows are computed in the dtype of the
            rows, sums of those in float64.
        """
        texts  # noqa: B018
        top, bottom, first, end = rectangle
        panel, m = panel_columns(rows), rows.shape[0]
        height = (bottom - top + ROWS - 1) // ROWS * ROWS
        width = (end - first + panel - 1) // panel * panel
        sums = np.zeros((height, width))
        for start in range(0, m, SUMMED_ROWS):
            depth = min(SUMMED_ROWS, m - start)
            for j in range(0, width, panel):
                lowest = max(0, (first + j - top) // ROWS * ROWS)  # tiles above the diagonal are left out
                for i in range(lowest, height, ROWS):
                    add_tile(rows, top + i, rows, first + j, start, depth, sums, i, j)
        for i in range(top, bottom):
            before = i * (i + 1) // 2
            for j in range(first, min(end, i + 1)):
                packed[before + j] += sums[i - top, j - first]

    return add_gram


add_gram = _define(text_of(tiles))


@njit
def add_rows(rows, first, end, total):
    """Add columns `first` to `end` of the rows to those of `total`, in float64."""
    for i in range(rows.shape[0]):
        row, part = rows[i, first:end], total[first:end]
        for j in range(len(part)):
            part[j] += row[j]
