"""Clipped gradient factors of a span of rows of a dense network, in one compiled call.

A span is computed in blocks that fit in cache. During the computation of a block, the rows of the next one are
prefetched.

These kernels call kernels of other files. Numba checks only the file of the caller, so the texts of the other files are
part of the cache key (`skdp._kernels.caching.text_of`).
"""

from __future__ import annotations

import numpy as np

from skdp._kernels import dense, losses, tiles
from skdp._kernels.caching import njit, text_of
from skdp._kernels.dense import RELU, clip_rows, fetch_rows, gather_rows, multiply_by_derivative
from skdp._kernels.losses import multinomial_row_residuals, row_residuals, stretches
from skdp._kernels.tiles import ROWS, add_outer_products, forward, multiply

_BLOCK = 8 * ROWS


def _define(texts):
    """Make the kernels; a variable of a closure is part of the key of the cache."""

    @njit
    def clip_span(
        X, scale, first, labels, targets, weights, rows, counts, offset, begin, end, inputs, deltas, widths, packed,
        packed_back, activation, loss, limit, kind, bounds, stability, tiny, widest,
    ):  # fmt: skip
        """Compute both factors of the clipped gradients of rows `begin` to `end` of a chunk.

        Parameters
        ----------
        X, scale
            As for `skdp._kernels.dense.gather_rows`. X is None where `inputs` holds the values of all layers already,
            and the last of `deltas` the scores.
        first, weights : ndarray of shape (n,)
            Squared norms of the rows at the input, and weights in [0, 1].
        labels : ndarray of shape (n,), or None
            Numbers of the classes for the multinomial loss, which needs no `targets`. What is None is not compiled.
        targets : ndarray of shape (n, number of outputs), or None
            For all other losses.
        rows : ndarray of int64 or None
        counts : ndarray of float64 or None
            By which clipped gradients are multiplied, row by row of the lot.
        offset : int
            Row of the lot, an index to `rows` and `counts`, that is row 0 of the chunk.
        begin, end : int
            `begin` is a multiple of 6.
        inputs, deltas : tuple of ndarray
            Of the layers, as for `skdp._kernels.dense.clip_rows`, with room for whole tiles. Written.
        widths : ndarray of int
            Of the input, the hidden layers and the output.
        packed, packed_back : tuple of ndarray
            Tables of the layers, of `tiles.pack`, and those for the way back: transposed, without
            intercepts. `packed_back` has nothing for the first layer.
        activation, loss, limit
            Of `skdp._kernels.dense` (the identity or relu if X is given) and `skdp._kernels.losses`.
        kind, bounds, stability, tiny, widest
            As for `skdp._kernels.dense.clip_rows`.
        """
        texts  # noqa: B018
        last = len(deltas) - 1
        if X is not None and rows is not None:
            fetch_rows(X, rows, offset + begin, min(offset + end, offset + begin + _BLOCK))
        for top in range(begin, end, _BLOCK):
            bottom = min(end, top + _BLOCK)
            whole = top + (bottom - top + ROWS - 1) // ROWS * ROWS  # of tiles; what follows the chunk is not read
            start = offset + top
            if X is not None:
                if rows is not None:
                    fetch_rows(X, rows, offset + bottom, min(offset + end, offset + bottom + _BLOCK))
                gather_rows(X, scale, rows, start, inputs[0][top:bottom])
                forward(inputs, packed, widths, activation == RELU, deltas[last], top, whole)
            scores = deltas[last][top:bottom, : widths[last + 1]]
            # Targets are looked up by row, so a lot needs no copy of them.
            stretch = np.empty(bottom - top)
            if labels is not None:
                multinomial_row_residuals(scores, labels, rows, start)
                for i in range(len(stretch)):
                    stretch[i] = 1.0
            if targets is not None:
                row_residuals(loss, scores, targets, rows, start, limit)
                stretches(loss, scores, stretch)
            for k in range(last, 0, -1):
                below = deltas[k - 1][top:whole]
                multiply(deltas[k][top:whole], packed_back[k], widths[k + 1], widths[k], below)
                multiply_by_derivative(activation, inputs[k][top:whole], below)
            stop = start + bottom - top
            squares = first[start:stop] if rows is None else first[rows[start:stop]]
            shares = weights[start:stop] if rows is None else weights[rows[start:stop]]
            clip_rows(kind, squares, stretch, shares, top, inputs, deltas, widths, bounds, stability, tiny, widest)
            if counts is not None:
                for k in range(last + 1):
                    for i in range(top, bottom):
                        for j in range(widths[k + 1]):
                            deltas[k][i, j] *= counts[offset + i]

    @njit
    def add_products(inputs, deltas, m, rectangles, widths, total):
        """Add the products of the first m rows of both factors to the tables of the layers, rectangle by rectangle.

        Parameters
        ----------
        inputs, deltas : tuple of ndarray
            As for `clip_span`.
        m : int
        rectangles : ndarray of int of shape (k, 6)
            Layer, whether transposed, first row and end, first column and end, as for
            `skdp._kernels.tiles.add_outer_products`.
        widths : ndarray of int
        total : ndarray of shape (p,), float64
            Read and written.
        """
        texts  # noqa: B018
        for r in range(len(rectangles)):
            layer, transposed, top, bottom, first, end = rectangles[r]
            start = 0
            for k in range(layer):
                start += (widths[k] + 1) * widths[k + 1]
            height, width = widths[layer] + 1, widths[layer + 1]
            table = total[start : start + height * width].reshape(height, width)
            left, right = inputs[layer][:m], deltas[layer][:m]
            if transposed:
                left, right = right, left
            add_outer_products(left, right, (top, bottom), (first, end), transposed != 0, table)

    return clip_span, add_products


clip_span, add_products = _define(text_of(dense, losses, tiles))
