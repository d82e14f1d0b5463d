"""Passes over a chunk of rows between the matrix products of a dense network.

A chunk is an array of shape (m, width + 1) for the input and for each hidden layer. Its last column is 1, so the
intercepts are an additional row of the parameters of a layer. The matrix products are in `skdp._kernels.tiles`.
``fastmath`` is off, so that NaN and infinity reach the guard of the gradient clipping.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.typing import signature as signature_of
from numba.extending import intrinsic

from skdp._kernels.caching import njit

IDENTITY, LOGISTIC, TANH, RELU = 0, 1, 2, 3
FLAT, PER_LAYER, AUTOMATIC = 0, 1, 2

_CHAINS = 64  # of sums over a row, independent of one another


@intrinsic
def _fetch(typing, X, row, column):
    """Have the cache line of ``X[row, column]`` loaded, without waiting for it."""

    def generate(context, builder, signature, arguments):
        kind, (array, *place) = signature.args[0], arguments
        pitch = cgutils.unpack_tuple(builder, context.make_array(kind)(context, builder, array).shape, 2)[1]
        data = context.make_array(kind)(context, builder, array).data
        byte = ir.IntType(8).as_pointer()
        pointer = builder.bitcast(builder.gep(data, [builder.add(builder.mul(place[0], pitch), place[1])]), byte)
        number = ir.IntType(32)
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        builder.call(fetch, [pointer, number(0), number(2), number(1)])  # to read, to the nearest cache, of data
        return context.get_dummy_value()

    return types.void(X, types.intp, types.intp), generate


@njit
def fetch_rows(X, rows, begin, end):
    """Have rows `rows[begin:end]` of X loaded to the cache, without waiting for them."""
    line = 64 // X.itemsize
    for i in range(begin, end):
        for j in range(0, X.shape[1], line):
            _fetch(X, rows[i], j)
        _fetch(X, rows[i], X.shape[1] - 1)


@njit
def gather_rows(X, scale, rows, start, chunk):
    """Rows `rows[start:]` of X, or the rows from `start` on where `rows` is None, each times its scale; then a 1.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    scale : ndarray of shape (n,), float64
        0 for a row that contributes nothing.
    rows : ndarray of shape (k,), int64, or None
    start : int
    chunk : ndarray of shape (m, d + 1)
        Written. Row i of it is row ``start + i`` of the lot.
    """
    d = X.shape[1]
    for i in range(chunk.shape[0]):
        row = start + i if rows is None else rows[start + i]
        factor = scale[row]
        if factor == 0.0:
            chunk[i, :] = 0.0  # infinity times zero is NaN
            continue
        for j in range(d):
            chunk[i, j] = X[row, j] * factor
        chunk[i, d] = 1.0


@njit
def gather_sparse_rows(data, indices, indptr, scale, rows, start, chunk):
    """`gather_rows` for the arrays of a CSR matrix without duplicate entries."""
    d = chunk.shape[1] - 1
    for i in range(chunk.shape[0]):
        row = start + i if rows is None else rows[start + i]
        factor = scale[row]
        chunk[i, :] = 0.0
        if factor == 0.0:
            continue
        for k in range(indptr[row], indptr[row + 1]):
            chunk[i, indices[k]] = data[k] * factor
        chunk[i, d] = 1.0


@njit
def row_squares(X, scale, squares):
    """Squared norms of the rows times their scale, and of the 1 that follows: of what `gather_rows` gives.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    scale : ndarray of shape (n,)
    squares : ndarray of shape (n,), float64
        Written.
    """
    for i in range(X.shape[0]):
        total = 0.0
        if scale[i] != 0.0:
            total = 1.0
            for j in range(X.shape[1]):
                value = np.float64(X[i, j] * scale[i])
                total += value * value
        squares[i] = total


@njit
def sparse_row_squares(data, indptr, scale, squares):
    """`row_squares` for the values and row pointers of a CSR matrix without duplicate entries."""
    for i in range(len(squares)):
        total = 0.0
        if scale[i] != 0.0:
            total = 1.0
            for k in range(indptr[i], indptr[i + 1]):
                value = np.float64(data[k] * scale[i])
                total += value * value
        squares[i] = total


@njit
def pair_products(X, scale, starts, products):
    """Inner products of pairs of rows of each unit, of what `gather_rows` gives of them.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    scale : ndarray of shape (n,)
    starts : ndarray of shape (k + 1,), int64
        Where the rows of each unit start.
    products : ndarray of float64
        Written: of row 1 with row 0, row 2 with 0 and 1, and so on; 0 for a row that contributes nothing.
    """
    t = 0
    for u in range(len(starts) - 1):
        for i in range(starts[u], starts[u + 1]):
            for j in range(starts[u], i):
                total = 0.0
                if scale[i] != 0.0 and scale[j] != 0.0:
                    total = 1.0
                    for c in range(X.shape[1]):
                        total += np.float64(X[i, c] * scale[i]) * np.float64(X[j, c] * scale[j])
                products[t] = total
                t += 1


@njit
def sparse_pair_products(data, indices, indptr, n_features, scale, starts, products):
    """`pair_products` for the arrays of a CSR matrix without duplicate entries."""
    row, t = np.zeros(n_features), 0
    for u in range(len(starts) - 1):
        for i in range(starts[u], starts[u + 1]):
            if scale[i] != 0.0:
                for c in range(indptr[i], indptr[i + 1]):
                    row[indices[c]] = np.float64(data[c] * scale[i])
            for j in range(starts[u], i):
                total = 0.0
                if scale[i] != 0.0 and scale[j] != 0.0:
                    total = 1.0
                    for c in range(indptr[j], indptr[j + 1]):
                        total += row[indices[c]] * np.float64(data[c] * scale[j])
                products[t] = total
                t += 1
            for c in range(indptr[i], indptr[i + 1]):
                row[indices[c]] = 0.0


@intrinsic
def _sum_of_squares(typing, rows, i, whole, width):
    """Sum of the squares of the first `width` numbers of row i, in chains that LLVM keeps in registers.

    `whole`, at least 1, is the part of `width` that fills the chains. The last addition to each is that of a zero or of
    a number beyond; then the upper half of the chains is added to the lower one until a single one is left.
    """

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pitch = cgutils.unpack_tuple(builder, array.shape, 2)[1]
        number, (i, whole, width) = context.get_data_type(signature.args[0].dtype), arguments[1:]
        vector, size = ir.VectorType(number, _CHAINS), context.get_abi_sizeof(number)
        row = builder.gep(array.data, [builder.mul(i, pitch)])

        def squared(values):
            return builder.fmul(values, values)

        def place(column):
            return builder.bitcast(builder.gep(row, [column]), vector.as_pointer())

        before, loop, after = builder.block, *(builder.append_basic_block(name) for name in ("loop", "after"))
        builder.branch(loop)
        builder.position_at_end(loop)
        j, chains = builder.phi(i.type), builder.phi(vector)
        longer = builder.fadd(chains, squared(builder.load(place(j), align=size)))
        following = builder.add(j, ir.Constant(j.type, _CHAINS))
        j.add_incoming(ir.Constant(j.type, 0), before)
        j.add_incoming(following, loop)
        chains.add_incoming(ir.Constant(vector, None), before)
        chains.add_incoming(longer, loop)
        builder.cbranch(builder.icmp_signed("<", following, whole), loop, after)
        builder.position_at_end(after)
        short = ir.VectorType(ir.IntType(32), _CHAINS)
        left = builder.trunc(builder.sub(width, whole), ir.IntType(32))
        spread = builder.insert_element(ir.Constant(short, ir.Undefined), left, ir.Constant(ir.IntType(32), 0))
        spread = builder.shuffle_vector(spread, spread, ir.Constant(short, None))
        inside = builder.icmp_signed("<", ir.Constant(short, list(range(_CHAINS))), spread)
        pointer = place(whole)
        load = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [pointer.type, ir.IntType(32), inside.type, vector]),
            f"llvm.masked.load.v{_CHAINS}f{8 * size}.p0",
        )  # fmt: skip
        rest = builder.call(load, [pointer, ir.Constant(ir.IntType(32), size), inside, ir.Constant(vector, None)])
        total, half = builder.fadd(longer, squared(rest)), _CHAINS // 2
        while half:
            halves = [
                builder.shuffle_vector(total, total, ir.Constant(ir.VectorType(ir.IntType(32), half), range_))
                for range_ in (list(range(half)), list(range(half, 2 * half)))
            ]
            total, half = builder.fadd(*halves), half // 2
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))

    return signature_of(rows.dtype, rows, types.intp, types.intp, types.intp), generate


def _plain_sum_of_squares(rows, i, whole, width):
    """`_sum_of_squares` where kernels are not compiled."""
    chains = np.zeros(_CHAINS, rows.dtype)
    for start in range(0, width, _CHAINS):
        part = rows[i, start : min(start + _CHAINS, width)]
        chains[: len(part)] += part * part
    while len(chains) > 1:
        chains = chains[: len(chains) // 2] + chains[len(chains) // 2 :]
    return chains[0]


def _fetch_nothing(X, row, column):
    """`_fetch` where kernels are not compiled."""


if config.DISABLE_JIT:
    _sum_of_squares, _fetch = _plain_sum_of_squares, _fetch_nothing


@njit
def add_squares(rows, width, squares):
    """Squared norms of the first `width` numbers of rows, in as many chains as fill vector registers.

    Parameters
    ----------
    rows : ndarray of shape (m, at least `width`)
    width : int
    squares : ndarray of shape (m,), float64
        Written. Sums are computed in the dtype of the rows.
    """
    for i in range(rows.shape[0]):
        if width >= _CHAINS:
            squares[i] = _sum_of_squares(rows, i, width // _CHAINS * _CHAINS, width)
            continue
        total = rows[i, 0] * rows[i, 0]
        for j in range(1, width):
            total += rows[i, j] * rows[i, j]
        squares[i] = total


@njit
def multiply_by_derivative(activation, outputs, deltas):
    """Multiply `deltas` by the derivative of the activation, which is a function of the activation's output.

    Parameters
    ----------
    activation : int
        `IDENTITY`, `LOGISTIC`, `TANH` or `RELU`.
    outputs : ndarray of shape (m, width + 1)
    deltas : ndarray of shape (m, width)
        Read and written.
    """
    m, width = deltas.shape
    for i in range(m):
        a, delta = outputs[i, :width], deltas[i]
        if activation == RELU:
            for j in range(width):
                delta[j] = delta[j] if a[j] > 0 else a[j] * 0  # NaN stays NaN
        elif activation == TANH:
            for j in range(width):
                delta[j] *= 1 - a[j] * a[j]
        elif activation == LOGISTIC:
            for j in range(width):
                delta[j] *= a[j] * (1 - a[j])


@njit
def clip_factors(kind, squares, stretch, bounds, stability, tiny, widest, factors):
    """Compute the factors that clip the gradient of each row, layer by layer.

    With K layers, ``g_k`` the gradient in layer k and ``C**2`` the sum of the ``bounds**2``: ``min(1, C / |g|)`` for
    `FLAT` (Abadi et al. 2016, algorithm 1), ``min(1, C_k / |g_k|)`` for `PER_LAYER`, ``C / (|g| + stability)`` for
    `AUTOMATIC` (Bu et al. 2023), each with norms times the `stretch` of the row, which makes no factor larger.

    A row gets factor 0 in every layer if its norm is not finite, if its products would be denormal (denormal numbers
    lose digits, and a sum of them could exceed the clip), or if a number times the factor, which may be above 1 for
    `AUTOMATIC`, would be infinite. Squares below `tiny` lose digits too. Each of the `widest`
    numbers of a row loses at most `tiny` in its square, so adding ``widest * tiny`` to a squared norm bounds it from
    above.

    Parameters
    ----------
    kind : int
    squares : ndarray of shape (2, K, m), float64
        Squared norms of the layers' inputs, and of the derivatives by their outputs.
    stretch : ndarray of shape (m,), float64
        See `skdp._kernels.losses.stretches`.
    bounds : ndarray of shape (K,), float64
    stability : float
    tiny : float
        Smallest normal number of the dtype of the products.
    widest : int
        Most numbers in a row of any layer.
    factors : ndarray of shape (K, m), dtype of the products
        Written.

    Returns
    -------
    bool
        Whether any row has factor 0.
    """
    n_layers, m = factors.shape
    bound = 0.0
    for k in range(n_layers):
        bound += bounds[k] * bounds[k]
    bound = np.sqrt(bound)
    # Upper bound on what denormal squares hide of a squared norm.
    lost = widest * tiny
    any_muted = False
    for i in range(m):
        whole, longest = 0.0, 0.0
        # The gradient of a layer is an outer product: its squared norm is the product of two.
        for k in range(n_layers):
            whole += (squares[0, k, i] + lost) * (squares[1, k, i] + lost)
            longest = max(longest, max(squares[0, k, i], squares[1, k, i]))
        norm = np.sqrt(whole) * stretch[i]
        # Written so that NaN fails every comparison and mutes the row.
        muted = not (norm < np.inf and np.sqrt(longest) * tiny * widest <= bound)
        for k in range(n_layers):
            if kind == PER_LAYER:
                part = np.sqrt((squares[0, k, i] + lost) * (squares[1, k, i] + lost)) * stretch[i]
                factor = bounds[k] / part if part > bounds[k] else 1.0
            elif kind == AUTOMATIC:
                factor = bound / (norm + stability)
            else:
                factor = bound / norm if norm > bound else 1.0
            factors[k, i] = factor
            muted = muted or not (factor >= tiny and factor * np.sqrt(longest) <= 1.0 / tiny)  # 1 / tiny is finite
        if muted:
            any_muted = True
            for k in range(n_layers):  # to fill a slice, Numba compiles much more than a loop
                factors[k, i] = 0.0
    return any_muted


@njit
def clip_rows(kind, first, stretch, weights, begin, inputs, deltas, widths, bounds, stability, tiny, widest):
    """Clip and weigh rows: multiply one factor of each layer's outer product, the narrower one.

    It is multiplied by the row's `clip_factors` times its weight.

    The weight comes after the clip, whose factors do not know of it. As rounding keeps the order of numbers, no entry
    of either factor is larger than with a weight of 1, denormal numbers included.

    Parameters
    ----------
    kind, bounds, stability, tiny, widest
        As for `clip_factors`.
    first : ndarray of shape (m,), float64
        Squared norms of the rows at the input.
    stretch : ndarray of shape (m,), float64
        As for `clip_factors`.
    weights : ndarray of shape (m,)
        In [0, 1].
    begin : int
        Where in the following arrays the m rows begin.
    inputs, deltas : tuple of ndarray of shape (at least begin + m, at least the width)
        Of the layers: what goes in, a 1 after it, and the derivatives by what comes out. Read and written. Both factors
        of a row of factor 0 become 0, as zero times infinity is NaN.
    widths : ndarray of int
        Of the input, the hidden layers and the output.
    """
    n_layers, m = len(deltas), len(first)
    end = begin + m
    squares, factors = np.empty((2, n_layers, m)), np.empty((n_layers, m), deltas[0].dtype)
    for i in range(m):  # to copy an array by a slice, Numba compiles what would tell of other shapes, for 2 s
        squares[0, 0, i] = first[i]
    for k in range(n_layers):
        if k:
            add_squares(inputs[k][begin:end], widths[k] + 1, squares[0, k])
        add_squares(deltas[k][begin:end], widths[k + 1], squares[1, k])
    any_muted = clip_factors(kind, squares, stretch, bounds, stability, tiny, widest, factors)
    for k in range(n_layers):
        left_wins = widths[k] + 1 <= widths[k + 1]
        narrower = inputs[k] if left_wins else deltas[k]
        width = widths[k] + 1 if left_wins else widths[k + 1]
        for i in range(m):
            factor = factors[k, i] * weights[i]
            row = narrower[begin + i]
            for j in range(width):
                row[j] *= factor
        if any_muted:
            for i in range(m):
                if factors[k, i] == 0.0:
                    for j in range(inputs[k].shape[1]):
                        inputs[k][begin + i, j] = 0.0
                    for j in range(deltas[k].shape[1]):
                        deltas[k][begin + i, j] = 0.0


@njit
def _inner(x, i, j, n):
    """Inner product of the first n numbers of rows i and j, in independent chains."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = n - n % 8
    for c in range(0, whole, 8):
        a0 += x[i, c] * x[j, c]
        a1 += x[i, c + 1] * x[j, c + 1]
        a2 += x[i, c + 2] * x[j, c + 2]
        a3 += x[i, c + 3] * x[j, c + 3]
        a4 += x[i, c + 4] * x[j, c + 4]
        a5 += x[i, c + 5] * x[j, c + 5]
        a6 += x[i, c + 6] * x[j, c + 6]
        a7 += x[i, c + 7] * x[j, c + 7]
    for c in range(whole, n):
        a0 += x[i, c] * x[j, c]
    return ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@njit
def _add_products(a, d, width, above, starts, low, products):
    """Add the inner products ``(a_i . a_j) (d_i . d_j)`` of one layer, for the pairs of rows of each unit."""
    t = 0
    for u in range(len(starts) - 1):
        begin, end = starts[u] - low, starts[u + 1] - low
        if end - begin == 1:
            continue
        for i in range(begin, end):
            for j in range(begin, i + 1):
                products[t] += _inner(a, i, j, width + 1) * _inner(d, i, j, above)
                t += 1


@njit
def _add_known_products(squares, first, pairs, d, above, starts, low, products):
    """`_add_products` of the first layer, of which the products of inputs are known."""
    t = 0
    for u in range(len(starts) - 1):
        begin, end, at = starts[u] - low, starts[u + 1] - low, first[u]
        if end - begin == 1:
            continue
        for i in range(begin, end):
            for j in range(begin, i):
                products[t] += pairs[at] * _inner(d, i, j, above)
                at += 1
                t += 1
            products[t] += squares[i] * _inner(d, i, i, above)
            t += 1


@njit
def _multiply_units(d, width, starts, low, factors):
    """Multiply the first numbers of the rows of each unit by its factor."""
    for u in range(len(factors)):
        if factors[u] < 1.0:
            for i in range(starts[u] - low, starts[u + 1] - low):
                for c in range(width):
                    d[i, c] *= factors[u]


@njit
def clip_units(inputs, deltas, widths, starts, low, max_norm, room, squares, first, pairs):
    """Clip the sums of the clipped gradients of units, the rows of which are side by side.

    The norm of such a sum is computed from products of pairs of rows, layer by layer: ``(a_i . a_j) (d_i . d_j)`` is
    the inner product of two outer products. No gradient of a unit is in memory. Products of rows at the input are the
    same at each step, and are not computed again where `clip_rows` leaves these rows as they are.

    Parameters
    ----------
    inputs, deltas : tuple of ndarray, float64
        Factors of clipped gradients, as `clip_rows` leaves them; row 0 is row `low` of the lot. `deltas` is written.
    widths : ndarray of int
        Of the input, the hidden layers and the output.
    starts : ndarray of shape (k + 1,), int64
        Rows of the lot at which the units start; none has more than 64 rows.
    low : int
    max_norm : float
        C.
    room : float
        See `skdp._dpsgd.models.linear.unit_room`, which has the proof.
    squares : ndarray, float64
        Squared norms of the rows at the input, row 0 being row `low` of the lot.
    first : ndarray of shape (k,), int64
        Where the products of each unit start in `pairs`.
    pairs : ndarray, float64
        As `pair_products` writes them; empty where `clip_rows` multiplies the rows at the input.
    """
    n_products = 0
    for u in range(len(starts) - 1):
        size = starts[u + 1] - starts[u]
        n_products += size * (size + 1) // 2 if size > 1 else 0
    products = np.zeros(n_products)
    are_known = len(pairs) > 0
    if are_known:
        _add_known_products(squares, first, pairs, deltas[0], widths[1], starts, low, products)
    for k in range(len(deltas)):  # layer by layer, as it takes long to fetch an array from a tuple
        if k > 0 or not are_known:
            _add_products(inputs[k], deltas[k], widths[k], widths[k + 1], starts, low, products)
    factors, t = np.ones(len(starts) - 1), 0
    for u in range(len(starts) - 1):
        begin, end = starts[u] - low, starts[u + 1] - low
        if end - begin == 1:
            continue
        square, reach = 0.0, 0.0
        for i in range(begin, end):
            for j in range(begin, i + 1):
                if i == j:
                    square += products[t]
                    reach += np.sqrt(products[t])
                else:
                    square += 2.0 * products[t]
                t += 1
        size = np.sqrt(max(square, 0.0) + room * reach * reach)
        if size > max_norm:
            factors[u] = max_norm / size
    for k in range(len(deltas)):
        _multiply_units(deltas[k], widths[k + 1], starts, low, factors)
