"""Matrix products of a dense network, in register tiles.

A tile is the product of 6 rows and a panel with the columns of two vector registers. Its 12 sums are updated by one
fused multiply-add for each term, in the order of the terms. `_tile` generates LLVM code for this, because a Python loop
does not keep the sums in registers. Every element of a product is therefore one chain of roundings that depends only on
its own row and column, but not on the position of the row, on other rows, on threads or on chunks.

Arrays of rows have a leading dimension of `room_for` columns, so that tiles at their edges stay inside. Values beyond
the edge are not read. Right factors are packed into panels once per step (`pack`).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_default_triple
from numba import config, types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from skdp._kernels.caching import njit

ROWS = 6
# Rows that are summed up in the dtype of the rows; sums of blocks are float64.
SUMMED_ROWS = 128

_FEATURES = (config.CPU_FEATURES if config.CPU_FEATURES is not None else get_host_cpu_features()).split(",")
_REGISTER = 64 if "+avx512f" in _FEATURES else 32 if "+avx" in _FEATURES else 16  # bytes
_FUSED = "+fma" in _FEATURES or not get_default_triple().startswith(("x86", "i"))  # a call of the C library without it


def panel_width(dtype: Any) -> int:
    """Columns of a panel."""
    return 2 * _REGISTER // np.dtype(dtype).itemsize


def room_for(width: int, dtype: Any) -> int:
    """Columns of an array for rows of `width` numbers: of whole panels and tiles, and an odd number of cache lines.

    Rows a multiple of 4,096 bytes apart would share the same few lines of the cache.
    """
    panel, line = panel_width(dtype), 64 // np.dtype(dtype).itemsize
    most = max(-(-width // panel) * panel, -(-width // ROWS) * ROWS)
    return (-(-most // line) | 1) * line


def n_tiles(height: int, width: int, dtype: Any) -> int:
    """Tiles of a product of this shape."""
    return -(-height // ROWS) * -(-width // panel_width(dtype))


def _tile(n_vectors, *, across):
    """Make the product of a tile, of as many registers a row as there are `n_vectors`, for a depth of at least 1.

    Without `across`, ``tile(left, i, right, j, start, depth, out, at, to)`` writes ``left[i : i + 6, :depth] @
    right[start : start + depth, j:]`` to ``out[at : at + 6, to:]``. With it, ``left[start : start + depth, i : i + 6].T
    @ right[start : start + depth, j:]`` is added there, in the dtype of `out`.
    """

    def define(typing, left, i, right, j, start, depth, out, at, to):
        return types.void(left, types.intp, right, *[types.intp] * 3, out, types.intp, types.intp), generate

    def generate(context, builder, signature, arguments):
        kinds = [signature.args[n] for n in (0, 2, 6)]
        arrays = [
            context.make_array(kind)(context, builder, arguments[n]) for kind, n in zip(kinds, (0, 2, 6), strict=True)
        ]
        pitches = [cgutils.unpack_tuple(builder, array.shape, 2)[1] for array in arrays]
        i, j, start, depth, at, to = (arguments[n] for n in (1, 3, 4, 5, 7, 8))
        number, wide = (context.get_data_type(kind.dtype) for kind in (kinds[0], kinds[2]))
        size, wide_size = context.get_abi_sizeof(number), context.get_abi_sizeof(wide)
        lanes = _REGISTER // size
        vector, wide_vector = ir.VectorType(number, lanes), ir.VectorType(wide, lanes)
        undefined = ir.Constant(vector, ir.Undefined)

        def plus(value, number):
            return builder.add(value, ir.Constant(value.type, number))

        def place(which, row, column):
            return builder.gep(arrays[which].data, [builder.add(builder.mul(row, pitches[which]), column)])

        def place_of_vector(which, row, column, v, kind):
            return builder.bitcast(place(which, row, plus(column, v * lanes)), kind.as_pointer())

        def spread(value):
            first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))

        def multiply_add(x, y, total):
            if not _FUSED:
                return builder.fadd(total, builder.fmul(x, y))
            name = f"llvm.fma.v{lanes}f{8 * size}"
            fused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
            return builder.call(fused, [x, y, total])

        before, loop, after = builder.block, *(builder.append_basic_block(name) for name in ("loop", "after"))
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(i.type)
        sums = [[builder.phi(vector) for _ in range(n_vectors)] for _ in range(ROWS)]
        row = builder.add(start, k)
        factors = [builder.load(place_of_vector(1, row, j, v, vector), align=size) for v in range(n_vectors)]
        found = []
        for r in range(ROWS):
            x = spread(builder.load(place(0, row, plus(i, r)) if across else place(0, plus(i, r), k)))
            found.append([multiply_add(x, factor, total) for factor, total in zip(factors, sums[r], strict=True)])
        following = plus(k, 1)
        k.add_incoming(ir.Constant(k.type, 0), before)
        k.add_incoming(following, loop)
        for total, new in zip(itertools.chain(*sums), itertools.chain(*found), strict=True):
            total.add_incoming(ir.Constant(vector, None), before)
            total.add_incoming(new, loop)
        builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)
        builder.position_at_end(after)
        for r in range(ROWS):
            for v in range(n_vectors):
                pointer = place_of_vector(2, plus(at, r), to, v, wide_vector)
                total = found[r][v] if wide == number else builder.fpext(found[r][v], wide_vector)
                if across:
                    total = builder.fadd(builder.load(pointer, align=wide_size), total)
                builder.store(total, pointer, align=wide_size)
        return context.get_dummy_value()

    return intrinsic(define)


def _plain_tile(n_vectors, *, across):
    """`_tile` where kernels are not compiled."""

    def tile(left, i, right, j, start, depth, out, at, to):
        block = right[start : start + depth, j : j + n_vectors * _REGISTER // left.itemsize]
        rows = left[start : start + depth, i : i + ROWS].T if across else left[i : i + ROWS, :depth]
        product = (rows[:, :, None] * block).sum(axis=1)  # in the order of the terms, unlike BLAS
        target = out[at : at + ROWS, to : to + block.shape[1]]
        target[:] = target + product if across else product

    return tile


_make = _plain_tile if config.DISABLE_JIT else _tile
_write_wide, _write_narrow = _make(2, across=False), _make(1, across=False)
add_tile = _make(2, across=True)


@njit
def panel_columns(rows):
    """`panel_width` of the dtype of an array."""
    return 2 * _REGISTER // rows.itemsize


def pack(table: np.ndarray, packed: np.ndarray) -> None:
    """Copy a table of shape (k, n) to panels, one below the other, with zeros beyond column n. It is no kernel.

    Parameters
    ----------
    table : ndarray of shape (k, n), any strides
    packed : ndarray of shape (number of panels * k, panel width)
        Written.
    """
    (k, n), panel = table.shape, packed.shape[1]
    panels, whole = packed.reshape(-1, k, panel), n // panel
    panels[:whole] = table[:, : whole * panel].reshape(k, whole, panel).swapaxes(0, 1)
    if n % panel:
        panels[whole, :, : n % panel] = table[:, whole * panel :]
        panels[whole, :, n % panel :] = 0.0


@njit
def multiply(rows, packed, depth, n_columns, out):
    """Write the product of rows and a packed table to `out`.

    Parameters
    ----------
    rows : ndarray of shape (m, at least `depth`)
        m is a multiple of 6.
    packed : ndarray
        Of `pack`, for a table of `depth` rows and `n_columns` columns.
    out : ndarray of shape (m, room_for(n_columns))
        Written up to the end of the last panel, or of its first half if that holds the last column.
    """
    panel = packed.shape[1]
    for p in range(packed.shape[0] // depth):
        narrow = 2 * (n_columns - p * panel) <= panel
        for i in range(0, rows.shape[0], ROWS):
            if narrow:
                _write_narrow(rows, i, packed, 0, p * depth, depth, out, i, p * panel)
            else:
                _write_wide(rows, i, packed, 0, p * depth, depth, out, i, p * panel)


@njit
def forward(inputs, packed, widths, rectified, scores, begin, end):
    """Values of the layers one after the other, whose activation is the identity or, if `rectified`, relu.

    Parameters
    ----------
    inputs : tuple of ndarray of shape (m, room_for(width + 1))
        Of each layer, as for `multiply`: the first is read, the others are written, their 1 after the width included.
    packed : tuple of ndarray
        A table a layer, the intercepts its last row.
    widths : ndarray of int
        Of the input, the hidden layers and the output.
    rectified : bool
    scores : ndarray of shape (m, room_for(number of outputs))
        Written.
    begin, end : int
        Which of the m rows; their number is a multiple of 6.
    """
    last = len(packed) - 1
    for layer in range(last):
        following, width = inputs[layer + 1][begin:end], widths[layer + 1]
        multiply(inputs[layer][begin:end], packed[layer], widths[layer] + 1, width, following)
        for i in range(following.shape[0]):
            if rectified:
                for j in range(width):
                    following[i, j] = 0 if following[i, j] <= 0 else following[i, j]  # NaN stays NaN
            following[i, width] = 1
    multiply(inputs[last][begin:end], packed[last], widths[last] + 1, widths[last + 1], scores[begin:end])


@njit
def add_outer_products(left, right, rows_of_tile, columns_of_tile, transposed, total):
    """Add ``left.T @ right``, or its transpose, within a rectangle of columns of both, to `total`.

    Parameters
    ----------
    left, right : ndarray of shape (m, room_for(...))
    rows_of_tile, columns_of_tile : tuple of int
        First column and end in `left`, and in `right`.
    transposed : bool
        Whether the product is added to the transpose of `total`.
    total : ndarray of shape (p, q), float64
        Read and written. Sums over `SUMMED_ROWS` rows are computed in the dtype of the rows, sums of those in float64.
    """
    (top, bottom), (first, end), m = rows_of_tile, columns_of_tile, left.shape[0]
    panel = panel_columns(left)
    height = (bottom - top + ROWS - 1) // ROWS * ROWS
    width = (end - first + panel - 1) // panel * panel
    sums = np.zeros((height, width))
    for start in range(0, m, SUMMED_ROWS):
        depth = min(SUMMED_ROWS, m - start)
        for j in range(0, width, panel):
            for i in range(0, height, ROWS):
                add_tile(left, top + i, right, first + j, start, depth, sums, i, j)
    for i in range(bottom - top):
        for j in range(end - first):
            if transposed:
                total[first + j, top + i] += sums[i, j]
            else:
                total[top + i, first + j] += sums[i, j]
