"""Rows brought into the unit ball, and triangles of Gram matrices added up: what BLAS leaves to do.

Norms and sums are float64 whatever the dtype of the rows. There is no ``fastmath``.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._kernels.caching import njit

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}
_LANES = 64  # independent partial sums, so that the loop over them vectorises


@njit(**_OPTIONS)
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


@njit(**_OPTIONS)
def _multiply(row, factor):
    """Multiply a row in place: a loop of its own vectorises."""
    for j in range(len(row)):
        row[j] *= factor


@njit(**_OPTIONS)
def _factor(norm, radius):
    """What brings a row of this norm into the unit ball: 1 / radius, or 1 / norm where that is longer."""
    return 1.0 / norm if norm > radius else 1.0 / radius


@njit(**_OPTIONS)
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


@njit(**_OPTIONS)
def rows_into_ball(X, center, radius, rows):
    """Write each row less `center`, scaled to norm at most 1, to `rows`.

    Parameters
    ----------
    X : ndarray of shape (m, d), float32 or float64
    center : ndarray of shape (d,), dtype of X
    radius : float
        Public. 0 scales every row but zero to norm 1.
    rows : ndarray of shape (m, d), dtype of X
        ``(x - center) / max(radius, |x - center|)``; zero for a row whose norm overflows, and for one that
        holds NaN or infinity. May be X itself.
    """
    lanes = np.empty(_LANES)
    for i in range(X.shape[0]):
        x, row = X[i], rows[i]
        for j in range(len(row)):
            row[j] = x[j] - center[j]
        square = _sum_of_squares(row, lanes)
        if 1e-280 < square < 1e280:  # far from overflow and underflow; False for NaN
            _multiply(row, _factor(math.sqrt(square), radius))
        else:
            _scale_extreme(row, radius, lanes)


@njit(**_OPTIONS)
def add_lower_triangle(matrix, packed):
    """Add the lower triangle of `matrix`, of shape (d, d), row by row to `packed`, of shape (d (d + 1) / 2,)."""
    start = 0
    for i in range(len(matrix)):
        row, part = matrix[i, : i + 1], packed[start : start + i + 1]
        for j in range(i + 1):
            part[j] += row[j]
        start += i + 1
