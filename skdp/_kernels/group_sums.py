"""Sums of the rows of each group, clipped as one and added up.

The sum of a group is formed first, in the cells that its rows go to, so that its norm is that of just what is added.
"""

from __future__ import annotations

import math

from skdp._kernels.caching import njit


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
