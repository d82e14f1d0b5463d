"""Norms and clipping factors of the rows of linear models, and products of sparse rows.

The kernels of linear models require the norm and the clipping factor of each row. For rows that are stored by columns
and read once, they are computed in loops over the rows of a tile, in which a column is contiguous in memory.

Products multiply CSR rows by tables in which the numbers of one column, one for each output, are adjacent. A non-zero
entry then reads one or two cache lines of the table, instead of one for each output.
"""

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
        By how much a length is longer than the norm that was computed (`skdp._dpsgd.models.linear.LinearModel`).
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


@njit
def sparse_scores(data, indices, indptr, rows, start, table, scores):
    """Write X[rows[start:]] @ table to `scores`, or X[start:] @ table where `rows` is None.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Of a CSR matrix X of shape (n, d) without duplicate entries.
    rows : ndarray of shape (k,), int64, or None
    start : int
    table : ndarray of shape (d, n_outputs), float64
    scores : ndarray of shape (m, n_outputs), float64
    """
    for i in range(len(scores)):
        row, each = start + i if rows is None else rows[start + i], scores[i]
        each[:] = 0.0
        for t in range(indptr[row], indptr[row + 1]):
            x, entry = np.float64(data[t]), table[indices[t]]
            for k in range(len(each)):
                each[k] += x * entry[k]


@njit
def add_sparse_products(data, indices, indptr, rows, start, coefs, total):
    """Add X[rows[start:]].T @ coefs to `total`, of shape (d, n_outputs); parameters as above, `coefs` as `scores`."""
    for i in range(len(coefs)):
        row, each = start + i if rows is None else rows[start + i], coefs[i]
        # Indices of a row are distinct (no duplicate entries), so the bound on the row's norm holds.
        for t in range(indptr[row], indptr[row + 1]):
            x, sums = np.float64(data[t]), total[indices[t]]
            for k in range(len(each)):
                sums[k] += x * each[k]


_TILE = 512


@njit
def _norms(X, low, m, norm):
    """Euclidean norms of m rows from `low`."""
    norm[:m] = 0.0
    for j in range(len(X)):
        column = X[j, low : low + m]
        for i in range(m):
            value = np.float64(column[i])
            norm[i] += value * value
    n_wild = 0
    for i in range(m):
        # Far from overflow and underflow the plain sum is accurate; NaN fails the comparison.
        n_wild += 0 if 1e-280 < norm[i] < 1e280 else 1
    for i in range(m):
        norm[i] = math.sqrt(norm[i])
    if n_wild:
        for i in range(m):
            if not 1e-140 < norm[i] < 1e140:
                norm[i] = _norm(X[:, low + i])


@njit
def _clip_rows(norm, m, radius, unit, icpt, tiny, room, weight, scale, length):
    """Write scale and length of rows of these norms, weight 0 for those that are not finite; return their number."""
    n_null = 0
    for i in range(m):
        scale[i] = unit * (radius / norm[i]) if norm[i] > radius else unit
        # From the scale as rounded to the dtype of X, not from the exact one: rows are multiplied by the former.
        part = np.float64(scale[i]) * norm[i]
        # Without an intercept a square could underflow; with one, squares that do are nothing beside it.
        size = math.sqrt(part * part + icpt * icpt) if icpt > 0.0 else part
        is_finite = size < np.inf
        weight[i] = weight[i] if is_finite else 0.0
        scale[i] = scale[i] if is_finite else 0.0
        length[i] = max(room * (size if is_finite else icpt), tiny)  # too long is safe: it clips more
        n_null += 0 if is_finite else 1
    return n_null


@njit
def facts_by_columns(X, low, m, labels, weights, radius, unit, icpt, tiny, room, label, weight, scale, length):
    """Write the facts of m rows from `low` on, from which `skdp._kernels.linear.add_all_columns` continues.

    Parameters
    ----------
    X : ndarray of shape (d, n), float32 or float64
        Row i is ``X[:, i]``.
    low, m : int
    labels : ndarray of shape (n,)
        Numbers of the classes, of any integer dtype.
    weights : ndarray of shape (n,), dtype of X, or of shape (1,), for all rows
    radius, unit, icpt : float
        Public: the largest norm of a row, the factor that follows, the value of the intercept's column (0 for none).
    tiny : float
        Smallest normal number of the dtype of X.
    room : float
        By how much the norm of a row is taken longer than computed (`skdp._dpsgd.models.linear_layouts.ColumnModel`).
    label, weight, scale, length : ndarray of shape (at least m,), float64
        Written. Scales are numbers of the dtype of X.

    Returns
    -------
    n_null : int
        Rows whose norm is not finite. Sums of them have no meaning where one holds NaN or infinity.
    """
    n_null = 0
    norm, narrow = np.empty(_TILE), np.empty(_TILE, X.dtype)
    for start in range(0, m, _TILE):
        count = min(_TILE, m - start)
        tile = slice(start, start + count)
        for i in range(start, start + count):
            label[i] = labels[low + i]
            weight[i] = weights[0 if len(weights) == 1 else low + i]
        _norms(X, low + start, count, norm)
        n_null += _clip_rows(norm, count, radius, unit, icpt, tiny, room, weight[tile], narrow, length[tile])
        for i in range(count):
            scale[start + i] = narrow[i]
    return n_null
