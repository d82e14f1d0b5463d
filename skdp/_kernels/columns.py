"""Clipped gradient sums of linear classifiers over blocks of rows that are stored by columns, in one pass.

They are those of `skdp._kernels.linear`, whose residuals come between the two kernels here, for rows that are read
once: what has to be known of a row beside its features is computed on the way, and every loop runs over the rows of a
tile, in which a column is one run of memory.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._kernels.caching import njit

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}
_TILE = 512
_SMALLEST_NORMAL = 2.2250738585072014e-308


@njit(**_OPTIONS)
def _careful_norm(X, i):
    """Euclidean norm of row i, without overflow or underflow on the way; NaN where a value is NaN or infinite."""
    top = 0.0
    for j in range(len(X)):
        value = abs(np.float64(X[j, i]))
        if not value < np.inf:
            return np.nan
        top = max(top, value)
    if top == 0.0:
        return 0.0
    square = 0.0
    for j in range(len(X)):
        square += (np.float64(X[j, i]) / top) ** 2
    return max(top * math.sqrt(square), _SMALLEST_NORMAL)


@njit(**_OPTIONS)
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
                norm[i] = _careful_norm(X, low + i)


@njit(**_OPTIONS)
def _clip_rows(norm, m, radius, unit, icpt, tiny, room, weight, scale, length):
    """Write scale and length of rows of these norms, and weight 0 for those that are not finite."""
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


@njit(**_OPTIONS)
def _scores(X, low, m, theta, z):
    """z = theta . x of m rows from `low`, in the dtype of X."""
    z[:m] = 0.0
    for j in range(len(X)):
        column, w = X[j, low : low + m], theta[j]
        for i in range(m):
            z[i] += column[i] * w


@njit(**_OPTIONS)
def _dot(column, coefs, m):
    """Sum of products in eight independent chains."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    for i in range(0, m - m % 8, 8):
        a0 += coefs[i] * column[i]
        a1 += coefs[i + 1] * column[i + 1]
        a2 += coefs[i + 2] * column[i + 2]
        a3 += coefs[i + 3] * column[i + 3]
        a4 += coefs[i + 4] * column[i + 4]
        a5 += coefs[i + 5] * column[i + 5]
        a6 += coefs[i + 6] * column[i + 6]
        a7 += coefs[i + 7] * column[i + 7]
    for i in range(m - m % 8, m):
        a0 += coefs[i] * column[i]
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@njit(**_OPTIONS)
def scores_by_columns(
    X, low, labels, weights, theta, bias, radius, unit, icpt, tiny, room, z, icpt_part, label, weight, scale, length
):
    """Write what residuals are computed from (`skdp._kernels.linear.residuals`), of m rows from `low` on.

    Parameters
    ----------
    X : ndarray of shape (d, n), float32 or float64
        Finite. Row i is ``X[:, i]``.
    low : int
    labels : ndarray of shape (n,)
        Numbers of the classes, of any integer dtype.
    weights : ndarray of shape (n,), dtype of X, or of shape (1,), for all rows
    theta : ndarray of shape (n_outputs, d), dtype of X
    bias : ndarray of shape (n_outputs,), float64
    radius, unit, icpt : float
        Public: the largest norm of a row, the factor that follows, the value of the intercept's column (0 for none).
    tiny : float
        Smallest normal number of the dtype of X.
    room : float
        By how much the norm of a row is taken longer than computed (`skdp._training.columns.ColumnModel`).
    z, icpt_part : ndarray of shape (n_outputs, at least m), float64
        Written: scores but for scale and intercept, and what the intercept adds.
    label, weight, length : ndarray of shape (m,), float64
        Written.
    scale : ndarray of shape (m,), dtype of X
        Written.
    """
    norm, narrow = np.empty(_TILE), np.empty(_TILE, X.dtype)
    for start in range(0, len(label), _TILE):
        m = min(_TILE, len(label) - start)
        tile = slice(start, start + m)
        for i in range(start, start + m):
            label[i] = labels[low + i]
            weight[i] = weights[0 if len(weights) == 1 else low + i]
        _norms(X, low + start, m, norm)
        _clip_rows(norm, m, radius, unit, icpt, tiny, room, weight[tile], scale[tile], length[tile])
        for k in range(len(theta)):
            _scores(X, low + start, m, theta[k], narrow)
            for i in range(m):
                z[k, start + i] = narrow[i]
                icpt_part[k, start + i] = bias[k] * icpt


@njit(**_OPTIONS)
def add_by_columns(X, low, m, coefs, total):
    """Add the sums of m rows from `low` on, each times its number in `coefs`, to `total`.

    Parameters
    ----------
    X : ndarray of shape (d, n)
    low, m : int
    coefs : ndarray of shape (n_outputs, at least m), float64
    total : ndarray of shape (n_outputs, d + 1), float64
        Its last column is left as it is.
    """
    for k in range(len(coefs)):
        for j in range(len(X)):
            total[k, j] += _dot(X[j, low : low + m], coefs[k], m)
