"""Bounded sums of rows, Gram matrices and groups, and optimizer steps.

- Rows are mapped into the unit ball. The lower triangles of their Gram matrices are computed in register tiles. Norms,
  and sums of blocks of rows, are float64 for any dtype of the rows. ``fastmath`` is not used.
- The rows of each group are summed, and the sum is clipped and added. The sum is computed before it is clipped, so that
  the norm is exactly that of the added vector.
- An optimizer step is one pass over the parameters.

Results are written to arrays of the caller. Returning a new array would require a call into Python, where Ctrl-C could
cause an error of another type.
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
                lowest = max(0, (first + j - top) // ROWS * ROWS)  # tiles above the diagonal are omitted
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


@njit
def add_groups(vectors, cells, weights, is_last, limits, held, state, touched, is_touched, total):
    """Add the weighted vectors of rows to their cells, where no group of several rows adds more than `limits`.

    Parameters
    ----------
    vectors : ndarray of shape (m, width), float64
        The rows of a group are side by side; a group may go on in the next call.
    cells : ndarray of shape (m,), int64
    weights : ndarray of shape (m,), float64
    is_last : ndarray of shape (m,), bool
        Whether a row is the last of its group.
    limits : (float, float)
        On the norm of the sum of a group, and on the sum of its weights; infinity for none.
    held : ndarray of shape (n_cells, width), float64
        The sum of the group that is open, zero at first.
    state : ndarray of shape (3,), float64
        Number of rows of the open group, sum of their weights, and number of their cells; zero at first.
    touched : ndarray of shape (n_cells,), int64
        Cells of the open group.
    is_touched : ndarray of shape (n_cells,), bool
        Whether a cell is among them; False at first.
    total : ndarray of shape (n_cells, width), float64
        Added to.
    """
    width = vectors.shape[1]
    for i in range(len(cells)):
        cell, weight = cells[i], weights[i]
        if not is_touched[cell]:
            is_touched[cell] = True
            touched[int(state[2])] = cell
            state[2] += 1.0
        state[0] += 1.0
        state[1] += weight
        for j in range(width):
            held[cell, j] += weight * vectors[i, j]
        if not is_last[i]:
            continue
        factor, n_touched = 1.0, int(state[2])
        if state[0] > 1.0:
            square = 0.0
            for k in range(n_touched):
                for j in range(width):
                    square += held[touched[k], j] * held[touched[k], j]
            # The norm of p numbers, and the sum of m weights, have relative errors below (p / 2 + 2) u and m u.
            norm = math.sqrt(square) * (1.0 + (n_touched * width + 8) * 2.0**-52)
            weight = state[1] * (1.0 + (state[0] + 8.0) * 2.0**-52)
            if norm > limits[0]:
                factor = limits[0] / norm
            if weight > limits[1]:
                factor = min(factor, limits[1] / weight)
        for k in range(n_touched):
            is_touched[touched[k]] = False
            for j in range(width):
                total[touched[k], j] += factor * held[touched[k], j]
                held[touched[k], j] = 0.0
        state[:] = 0.0


@njit
def momentum_update(gradient, velocity, theta, rate, momentum, new_velocity, new_theta):
    """Dampened momentum: ``v = momentum * v + (1 - momentum) * g``, then ``theta - rate * v``.

    Parameters
    ----------
    gradient, velocity, theta : ndarray of shape (p,)
    rate, momentum : float
    new_velocity, new_theta : ndarray of shape (p,)
        Written.
    """
    for j in range(len(theta)):
        v = momentum * velocity[j] + (1.0 - momentum) * gradient[j]
        new_velocity[j] = v
        new_theta[j] = theta[j] - rate * v


@njit
def adam_update(
    gradient, first, second, theta, rate, beta_1, beta_2, unbias_1, unbias_2, epsilon,
    new_first, new_second, new_theta,
):  # fmt: skip
    """Adam (Kingma & Ba 2015, algorithm 1).

    Parameters
    ----------
    gradient, first, second, theta : ndarray of shape (p,)
    rate, beta_1, beta_2 : float
    unbias_1, unbias_2 : float
        1 / (1 - beta**t).
    epsilon : float
        Added to the root of the second moment.
    new_first, new_second, new_theta : ndarray of shape (p,)
        Written.
    """
    for j in range(len(theta)):
        m = beta_1 * first[j] + (1.0 - beta_1) * gradient[j]
        v = beta_2 * second[j] + (1.0 - beta_2) * gradient[j] * gradient[j]
        new_first[j] = m
        new_second[j] = v
        new_theta[j] = theta[j] - rate * (m * unbias_1) / (np.sqrt(v * unbias_2) + epsilon)
