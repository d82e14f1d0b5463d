"""What the kernels of linear models need of each row beside its features: the factor that clips it, and its norm."""

from __future__ import annotations

import math

import numpy as np

from skdp._kernels.caching import njit

_SMALLEST_NORMAL = 2.2250738585072014e-308  # below, numbers lose digits, and with them the clip


@njit
def _norm(values):
    """Euclidean norm, without overflow or underflow on the way; NaN where a value is NaN or infinite."""
    square = 0.0
    for j in range(len(values)):
        square += np.float64(values[j]) * np.float64(values[j])
    # Far from overflow and underflow the plain sum is accurate; NaN fails the comparison.
    if 1e-280 < square < 1e280:
        return math.sqrt(square)
    if np.isnan(square):  # the largest of zeros and NaN would be 0
        return np.nan
    top = 0.0
    for j in range(len(values)):
        top = max(top, abs(np.float64(values[j])))
    if top == 0.0:
        return 0.0
    square = 0.0
    for j in range(len(values)):
        square += (np.float64(values[j]) / top) ** 2
    return max(top * math.sqrt(square), _SMALLEST_NORMAL)


@njit
def _set_scale(i, norm, radius, unit, icpt, tiny, room, weight, scale, length):
    """Clip a row of this norm. Its length is its norm times its scale as stored, rounded up."""
    scale[i] = unit * (radius / norm) if norm > radius else unit
    # From the scale as rounded to the dtype of X, not from the exact one: the kernels multiply by the former.
    size = math.hypot(scale[i] * norm, icpt)
    if not size < np.inf:  # infinity or NaN: the row becomes the null record
        weight[i] = 0.0
        scale[i] = 0.0
        size = icpt
    size = max(room * size, tiny)  # too long is safe: it clips more
    length[i] = size
    if length[i] < size:
        length[i] = np.nextafter(length[i], length.dtype.type(np.inf))


@njit
def scale_rows(X, radius, unit, icpt, tiny, room, weight, scale, length):
    """Write scale and length of each row: it is clipped to norm `radius`, then multiplied by `unit`.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    radius, unit, icpt : float
        Public: the largest norm of a row, the factor that follows, the value of the intercept's column (0 for none).
    tiny : float
        Smallest normal number of the dtype of X.
    room : float
        By how much a length is longer than the norm that was computed (`skdp._training.models.linear.LinearModel`).
    weight, scale, length : ndarray of shape (n,), dtype of X
        Written. The weight is written only where it becomes 0.
    """
    for i in range(X.shape[0]):
        _set_scale(i, _norm(X[i]), radius, unit, icpt, tiny, room, weight, scale, length)


@njit
def scale_sparse_rows(data, indptr, radius, unit, icpt, tiny, room, weight, scale, length):
    """`scale_rows` for the values and row pointers of a CSR matrix without duplicate entries."""
    for i in range(len(indptr) - 1):
        norm = _norm(data[indptr[i] : indptr[i + 1]])
        _set_scale(i, norm, radius, unit, icpt, tiny, room, weight, scale, length)
