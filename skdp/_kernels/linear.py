"""Clipped gradient sums of linear classifiers in one pass over the rows, without per-row gradients in memory.

With the scaled row ``u = (scale * x, icpt)`` and scores ``z_k = theta_k . u``, the gradient of a row is the outer
product of its residual ``r`` (one number for each output) and ``u``. Its Euclidean norm is ``|r| |u|`` (Goodfellow
2015, "Efficient per-example gradient computations", for one layer). To clip it, the residual is multiplied by ``min(1,
C / (R |u|))``. R is ``|r|`` or, for two classes, the larger ``|r|`` over both labels (`skdp._kernels.losses`, "Clipping
and labels").

Each row has four values in addition to its features: label, weight, scale and ``|u|``. The weight, a number in [0, 1],
multiplies the clipped residual, so the norm of a weighted gradient is at most C and rows keep their proportions. A row
with weight 0 is a zeroed-out record; a row whose norm or residual is not finite is treated as one. The features must be
finite, because 0 times NaN is NaN. A pass over all rows reads these values from separate arrays, while a pass over few
rows reads the four values from adjacent memory.

Rows are processed in blocks that fit in cache: scores, residuals, sum, in separate loops that vectorize. Residuals,
products and sums are float64 for any dtype of the rows. In float32, the sum of a million rows could change by more than
C when one row is removed and the others shift. ``fastmath`` is not used.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from skdp._kernels.caching import njit

LABEL, WEIGHT, SCALE, LENGTH = 0, 1, 2, 3
N_FACTS = 4

_BLOCK_VALUES = 1 << 16
_MIN_BLOCK, _MAX_BLOCK = 16, 512
_MOST_PAIRED = 64  # rows of a unit that a block has room for
_CACHE_LINE = 64
_MAX_COLUMN_ROWS, _COLUMN_VALUES = 1024, 1 << 17
_VECTOR = 64  # bytes, of one register or of several
_LONG_ROW = 48  # numbers; from here on it pays to add up one row in several chains

_INTEGER = np.int64(0x4338000000000000)  # the bits of 1.5 * 2**52: adding a small integer to them adds it to the float
_INTEGER_VALUE = 6755399441055744.0
_SMALLEST_NORMAL = 2.2250738585072014e-308  # below, numbers lose digits, and with them the clip
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


# --- residuals, the place of the clip ---


@njit
def _exp_of_negative(x):
    """exp(x) for x <= 0 to 4e-13 relative, held at exp(-690) below; NaN stays NaN.

    Cody and Waite's reduction to |r| <= log(2) / 2 and the Taylor series to r**10.
    """
    x = -690.0 if x < -690.0 else x  # this way round, NaN passes; and 2**k below stays a normal number
    shifted = x * _LOG2_E + _INTEGER_VALUE
    k = shifted - _INTEGER_VALUE
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1 / 40320 + r * (1 / 362880 + r * (1 / 3628800))
    p = 1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * p))
    p = 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * p))))
    # The last bits of `shifted` hold k, so 2**k is built from them without a conversion of integers.
    exponent = np.float64(shifted).view(np.int64) - (_INTEGER - np.int64(1023))
    return p * np.int64(exponent << np.int64(52)).view(np.float64)


@njit
def _representable(value):
    """`value`, or 0 where it is infinite or denormal: digits lost could pass the clip, and infinity times 0 is NaN."""
    return value if _SMALLEST_NORMAL <= abs(value) < np.inf else 0.0


@njit
def _clip_factor(size, max_norm):
    """Factor that brings a gradient of norm `size` to at most `max_norm`: 0 where it is NaN, infinite or near that."""
    factor = 1.0 if size <= max_norm else max_norm / size
    return factor if factor >= _SMALLEST_NORMAL else 0.0


@njit
def _logistic_residuals(z, label, weight, scale, length, max_norm, icpt, feature_part, icpt_part):
    """Clipped residuals of the logistic loss, for the features' and for the intercept's part of the gradient.

    On entry `z` holds x . theta and `icpt_part` what the intercept adds to the score; all arrays have shape (m,). On
    return `z` holds the clipped residuals.
    """
    for i in range(len(label)):
        score = scale[i] * z[i] + icpt_part[i]
        e = _exp_of_negative(-abs(score))
        probability = (1.0 if score >= 0.0 else e) / (1.0 + e)
        residual = probability - label[i]
        reach = max(probability, 1.0 - probability)  # |residual| of one label and of the other, rounding included
        factor = _clip_factor(reach * length[i], max_norm)  # of the whole gradient, the intercept's part too
        clipped = residual * factor if factor > 0.0 else 0.0  # NaN times 0 would be NaN
        clipped *= weight[i]
        z[i] = clipped
        icpt_part[i] = clipped * icpt
        feature_part[i] = _representable(clipped * scale[i])


@njit
def _softmax_residuals(z, label, weight, scale, length, max_norm, icpt, feature_part, icpt_part):
    """Clipped residuals of the multinomial loss, as above with a leading axis of outputs in z and in both parts."""
    n_outputs, m = len(z), len(label)
    highest, total, square = np.full(m, -np.inf), np.zeros(m), np.zeros(m)
    for k in range(n_outputs):
        for i in range(m):
            z[k, i] = scale[i] * z[k, i] + icpt_part[k, i]
            highest[i] = max(highest[i], z[k, i])  # subtracted below, so that no exponential overflows
    for k in range(n_outputs):
        for i in range(m):
            z[k, i] = _exp_of_negative(z[k, i] - highest[i])
            total[i] += z[k, i]
    for k in range(n_outputs):
        for i in range(m):
            truth = 1.0 if label[i] == k else 0.0
            z[k, i] = z[k, i] / total[i] - truth
            square[i] += z[k, i] * z[k, i]
    factor = square  # the same memory
    for i in range(m):
        factor[i] = _clip_factor(math.sqrt(square[i]) * length[i], max_norm)
    for k in range(n_outputs):
        for i in range(m):
            clipped = z[k, i] * factor[i] if factor[i] > 0.0 else 0.0
            clipped *= weight[i]
            z[k, i] = clipped
            icpt_part[k, i] = clipped * icpt
            feature_part[k, i] = _representable(clipped * scale[i])


@njit
def residuals(several, z, label, weight, scale, length, max_norm, icpt, feature_part, icpt_part):
    """Clipped residuals of the logistic loss for one output, of the multinomial one for more; see the two above.

    `several` is True, or None for one output. Types choose what is compiled: two classes pay for one loss alone.
    """
    if several is None:
        _logistic_residuals(z[0], label, weight, scale, length, max_norm, icpt, feature_part[0], icpt_part[0])
    else:
        _softmax_residuals(z, label, weight, scale, length, max_norm, icpt, feature_part, icpt_part)


@njit
def _repeat(counts, feature_part, icpt_part):
    """Multiply clipped residuals by the number of copies of each row: after the clip, and in float64."""
    for k in range(len(feature_part)):
        for i in range(len(counts)):
            feature_part[k, i] *= counts[i]
            icpt_part[k, i] *= counts[i]


# --- units of several rows ---


@njit
def unit_factors(residual, length, starts, first, products, low, max_norm, room, factors):
    """Write by what the rows of each unit are multiplied, so that the sum of their clipped gradients is clipped too.

    Parameters
    ----------
    residual : ndarray of shape (n_outputs, m), float64
        Clipped residuals of the rows of whole units, side by side.
    length : ndarray of shape (m,)
        Norms of the rows, or upper bounds on them.
    starts : ndarray of shape (k + 1,), int64
        Where the rows of each unit start, counted from `low`.
    first : ndarray of shape (k,), int64
        Where the products of each unit start.
    products : ndarray of float64
        Inner products of pairs of rows (`skdp._dpsgd.models.linear.UnitLayout`).
    low : int
    max_norm : float
        C.
    room : float
        See `skdp._dpsgd.models.linear.unit_room`, which has the proof.
    factors : ndarray of shape (m,), float64
        Written.
    """
    n_outputs = len(residual)
    for i in range(len(factors)):  # norms of rows for a start, in a pass of its own, which the compiler does in vectors
        own = 0.0
        for k in range(n_outputs):
            own += residual[k, i] * residual[k, i]
        factors[i] = math.sqrt(own) * length[i]
    for u in range(len(starts) - 1):
        begin, end, t = starts[u] - low, starts[u + 1] - low, first[u]
        square, reach, factor = 0.0, 0.0, 1.0
        for i in range(begin, end):
            cross = 0.0
            for j in range(begin, i):
                both = 0.0
                for k in range(n_outputs):
                    both += residual[k, i] * residual[k, j]
                cross += both * products[t]
                t += 1
            reach += factors[i]
            square += factors[i] * factors[i] + 2.0 * cross
        size = math.sqrt(max(square, 0.0) + room * reach * reach)
        if end - begin > 1 and size > max_norm:
            factor = max_norm / size
        for i in range(begin, end):
            factors[i] = factor


@njit
def write_products(X, scale, icpt, starts, products):
    """Write the inner products of pairs of rows of each unit, in the order of `unit_factors`.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    scale : ndarray of shape (n,)
    icpt : float
        Value of the intercept's column, 0 for none.
    starts : ndarray of shape (k + 1,), int64
    products : ndarray of float64
        Written.
    """
    t = 0
    for u in range(len(starts) - 1):
        for i in range(starts[u], starts[u + 1]):
            for j in range(starts[u], i):
                total = icpt * icpt
                for c in range(X.shape[1]):
                    total += (np.float64(X[i, c]) * scale[i]) * (np.float64(X[j, c]) * scale[j])
                products[t] = total
                t += 1


@njit
def write_sparse_products(data, indices, indptr, n_features, scale, icpt, starts, products):
    """`write_products` for a CSR matrix without duplicate entries."""
    row, t = np.zeros(n_features), 0
    for u in range(len(starts) - 1):
        for i in range(starts[u], starts[u + 1]):
            for c in range(indptr[i], indptr[i + 1]):
                row[indices[c]] = np.float64(data[c]) * scale[i]
            for j in range(starts[u], i):
                total = icpt * icpt
                for c in range(indptr[j], indptr[j + 1]):
                    total += row[indices[c]] * (np.float64(data[c]) * scale[j])
                products[t] = total
                t += 1
            for c in range(indptr[i], indptr[i + 1]):
                row[indices[c]] = 0.0


@njit
def _end_of_block(units, low, step, stop):
    """Row behind a block of at most `step` rows from `low` on: behind whole units, if there are any.

    A unit has at most `_MOST_PAIRED` rows, and `step` is no less where there are units.
    """
    if units is None:
        return min(low + step, stop)
    return min(units[0][np.searchsorted(units[0], low + step, side="right") - 1], stop)


@njit
def _clip_units(units, low, high, z, length, max_norm, feature_part, icpt_part):
    """Clip the sums of the clipped gradients of units, whose rows are a block."""
    starts, first, products, room = units
    u, v = np.searchsorted(starts, low), np.searchsorted(starts, high)
    factors = np.empty(high - low)
    unit_factors(z[:, : high - low], length, starts[u : v + 1], first[u:v], products, low, max_norm, room, factors)
    _repeat(factors, feature_part, icpt_part)


# --- sums of products ---


def _sum_of_products(n_chains):
    """Make ``sum_of_products(x, y, n)`` of the first n groups of `n_chains` vectors, in the dtype of y.

    Its sums stay in registers, which no loop in Python has LLVM do without `fastmath`. A product and a sum are rounded
    each, so that the result is the same on all processors.
    """

    def generate(context, builder, signature, arguments):
        kinds, count = signature.args[:2], arguments[2]
        data = [
            context.make_array(kind)(context, builder, x).data for kind, x in zip(kinds, arguments[:2], strict=True)
        ]
        narrow, wide = (context.get_data_type(kind.dtype) for kind in kinds)
        lanes = _VECTOR // context.get_abi_sizeof(wide)
        zero, index = ir.Constant(ir.VectorType(wide, lanes), None), ir.IntType(32)

        def read(which, number, first):
            pointer = builder.bitcast(builder.gep(data[which], [first]), ir.VectorType(number, lanes).as_pointer())
            found = builder.load(pointer, align=context.get_abi_sizeof(number))
            return found if number == wide else builder.fpext(found, zero.type)

        before, loop, after = builder.block, *(builder.append_basic_block(name) for name in ("loop", "after"))
        builder.cbranch(builder.icmp_signed(">", count, ir.Constant(count.type, 0)), loop, after)
        builder.position_at_end(loop)
        k, sums, found = builder.phi(count.type), [builder.phi(zero.type) for _ in range(n_chains)], []
        for chain, total in enumerate(sums):
            vector = builder.add(builder.mul(k, ir.Constant(k.type, n_chains)), ir.Constant(k.type, chain))
            first = builder.mul(vector, ir.Constant(k.type, lanes))
            found.append(builder.fadd(total, builder.fmul(read(0, narrow, first), read(1, wide, first))))
        following = builder.add(k, ir.Constant(k.type, 1))
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        k.add_incoming(ir.Constant(k.type, 0), before)
        k.add_incoming(following, loop)
        builder.position_at_end(after)
        totals = [builder.phi(zero.type) for _ in range(n_chains)]
        for total, new in (*zip(sums, found, strict=True), *zip(totals, found, strict=True)):
            total.add_incoming(zero, before)
            total.add_incoming(new, loop)
        while len(totals) > 1:  # chains, then lanes, by halves
            half = len(totals) // 2
            totals = [builder.fadd(a, b) for a, b in zip(totals[:half], totals[half:], strict=True)]
        (total,) = totals
        while lanes > 1:
            lanes //= 2
            halves = [ir.Constant(ir.VectorType(index, lanes), [*range(i, i + lanes)]) for i in (0, lanes)]
            total = builder.fadd(*(builder.shuffle_vector(total, total, half) for half in halves))
        return builder.extract_element(total, ir.Constant(index, 0))

    @intrinsic
    def sum_of_products(typing, x, y, n_groups):
        return y.dtype(x, y, types.intp), generate

    def plain(x, y, n_groups):
        """The same where kernels are not compiled."""
        n = n_groups * n_chains * _VECTOR // y.itemsize
        return (x[:n] * y[:n]).sum(dtype=y.dtype)

    return plain if config.DISABLE_JIT else sum_of_products


_sum_of_four, _sum_of_one = _sum_of_products(4), _sum_of_products(1)


@njit
def _dot(x, y):
    """Sum of products of two runs of memory, in the dtype of y, which is that of x or float64.

    The order of the terms depends on their number only.
    """
    m, lanes = len(y), _VECTOR // y.itemsize
    most = m - m % (4 * lanes)
    last = m - m % lanes
    total = _sum_of_four(x, y, most // (4 * lanes))
    total += _sum_of_one(x[most:], y[most:], (last - most) // lanes)
    for i in range(last, m):
        total += y[i] * x[i]
    return total


# --- dense rows ---


@njit
def _dense_scores(X, rows, weights, z):
    """z = X[rows, :d] @ weights: of short rows four at a time, whose independent chains keep the processor busy."""
    m, d = len(rows), len(weights)
    if d >= _LONG_ROW:
        for i in range(m):
            z[i] = _dot(X[rows[i], :d], weights)
        return
    for i in range(0, m - m % 4, 4):
        x0, x1, x2, x3 = X[rows[i]], X[rows[i + 1]], X[rows[i + 2]], X[rows[i + 3]]
        a0 = a1 = a2 = a3 = X.dtype.type(0)
        for j in range(d):
            w = weights[j]
            a0 += x0[j] * w
            a1 += x1[j] * w
            a2 += x2[j] * w
            a3 += x3[j] * w
        z[i], z[i + 1], z[i + 2], z[i + 3] = a0, a1, a2, a3
    for i in range(m - m % 4, m):
        a0 = X.dtype.type(0)
        for j in range(d):
            a0 += X[rows[i], j] * weights[j]
        z[i] = a0


@njit
def _add_rows(X, rows, coefs, total):
    """total[:d] += coefs @ X[rows, :d], and total has one number more."""
    m, d = len(rows), len(total) - 1
    for i in range(0, m - m % 4, 4):
        x0, x1, x2, x3 = X[rows[i]], X[rows[i + 1]], X[rows[i + 2]], X[rows[i + 3]]
        c0, c1, c2, c3 = coefs[i], coefs[i + 1], coefs[i + 2], coefs[i + 3]
        for j in range(d):
            total[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
    for i in range(m - m % 4, m):
        c0 = coefs[i]
        for j in range(d):
            total[j] += c0 * X[rows[i], j]


@njit
def _sum(values, m):
    """Sum of values[:m] in four independent chains."""
    a0 = a1 = a2 = a3 = 0.0
    for i in range(0, m - m % 4, 4):
        a0 += values[i]
        a1 += values[i + 1]
        a2 += values[i + 2]
        a3 += values[i + 3]
    for i in range(m - m % 4, m):
        a0 += values[i]
    return (a0 + a1) + (a2 + a3)


@njit
def _add_block(
    X, rows, counts, units, low, label, weight, scale, length, several, theta, bias, max_norm, icpt, scratch, total
):  # fmt: skip
    z, feature_part, icpt_part = scratch
    m, d = len(rows), theta.shape[1]
    for k in range(len(theta)):
        icpt_part[k, :m] = bias[k] * icpt
        _dense_scores(X, rows, theta[k], z[k])
    residuals(several, z, label, weight, scale, length, max_norm, icpt, feature_part, icpt_part)
    if counts is not None:
        _repeat(counts, feature_part, icpt_part)
    if units is not None:
        _clip_units(units, low, low + m, z, length, max_norm, feature_part, icpt_part)
    for k in range(len(theta)):
        _add_rows(X, rows, feature_part[k], total[k])
        total[k, d] += _sum(icpt_part[k], m)


@njit
def _block_rows(d, n_rows):
    return max(1, min(_MAX_BLOCK, max(_MIN_BLOCK, _BLOCK_VALUES // max(d, 1)), n_rows))


@njit
def _scratch(n_outputs, step):
    """Scores, and the features' and the intercept's part of the residuals."""
    return np.empty((n_outputs, step)), np.empty((n_outputs, step)), np.empty((n_outputs, step))


@njit
def add_all_rows(X, facts, counts, units, several, theta, bias, max_norm, icpt, start, stop, total):
    """Add the clipped gradients of X[start:stop] to `total`.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    facts : ndarray of shape (4, n), dtype of X
    counts : ndarray of shape (n,), float64, or None
        By which each row's clipped gradient is multiplied.
    units : tuple of (starts, first, products, room), or None
        Units whose sums are clipped to C too, as for `unit_factors`; `start` and `stop` are then where units start.
    several : True or None
        As for `residuals`.
    theta : ndarray of shape (n_outputs, d), dtype of X
        One output is the logistic loss, more are the multinomial one.
    bias : ndarray of shape (n_outputs,), float64
    max_norm : float
        C: no row adds more than this in Euclidean norm over all of `total`.
    icpt : float
        Value of the intercept's column, 0 for none.
    start, stop : int
    total : ndarray of shape (n_outputs, d + 1), float64
        The intercept's part stands last.
    """
    step = max(_block_rows(X.shape[1], stop - start), 1 if units is None else _MOST_PAIRED)
    scratch = _scratch(len(theta), step)
    label, weight, scale, length = facts[LABEL], facts[WEIGHT], facts[SCALE], facts[LENGTH]
    positions = np.arange(step)  # the kernels below take row numbers; within a block they count from 0
    low = start
    while low < stop:
        high = _end_of_block(units, low, step, stop)
        _add_block(
            X[low:high], positions[: high - low], None if counts is None else counts[low:high], units, low,
            label[low:high], weight[low:high], scale[low:high], length[low:high],
            several, theta, bias, max_norm, icpt, scratch, total,
        )  # fmt: skip
        low = high


@njit
def _touch(X, rows, columns):
    """Read X[rows, columns] and nothing else: in so short a loop the processor waits for many cache lines at a time.

    The sum has no meaning: returning it keeps the compiler from removing the reads.
    """
    total = X.dtype.type(0)
    for j in columns:
        for i in range(len(rows)):
            total += X[rows[i], j]
    return total


@njit
def _touch_ends(X, d, facts, rows):
    """As above, the first and the last of the features, and the facts, each of them in an array of its own."""
    first = last = fact = X.dtype.type(0)
    for i in range(len(rows)):
        first += X[rows[i], 0]
        last += X[rows[i], d - 1]
        fact += facts[rows[i], 0]
    return first + last + fact


@njit
def _fetch(X, d, facts, first_fact, rows, block):
    """Bring all cache lines of `rows` near, and copy their facts. The number returned has no meaning."""
    line = _CACHE_LINE // X.itemsize
    if first_fact > 0:  # records, which begin with a cache line
        touched = _touch(X, rows, range(0, X.shape[1], line))
    else:
        touched = _touch_ends(X, d, facts, rows) + _touch(X, rows, range(line, d - 1, line))
    for i in range(len(rows)):
        for j in range(N_FACTS):
            block[j, i] = facts[rows[i], first_fact + j]
    return touched


@njit
def add_some_rows(X, facts, first_fact, rows, counts, units, several, theta, bias, max_norm, icpt, start, stop, total):
    """`add_all_rows` for X[rows[start:stop], :d], where `facts` has those of a row side by side from `first_fact` on.

    Both may be one array of records, which hold features and facts. `counts` has the shape of `rows`. The number
    returned has no meaning.
    """
    d = theta.shape[1]
    step = max(_block_rows(d, stop - start), 1 if units is None else _MOST_PAIRED)
    scratch = _scratch(len(theta), step)
    block = np.empty((N_FACTS, step), X.dtype)
    fetched = X.dtype.type(0)
    low = start
    while low < stop:
        some = rows[low : _end_of_block(units, low, step, stop)]
        m = len(some)
        fetched += _fetch(X, d, facts, first_fact, some, block)
        _add_block(
            X, some, None if counts is None else counts[low : low + m], units, low,
            block[LABEL, :m], block[WEIGHT, :m], block[SCALE, :m], block[LENGTH, :m],
            several, theta, bias, max_norm, icpt, scratch, total,
        )  # fmt: skip
        low += m
    return fetched


# --- rows that are stored by columns ---


@njit
def _column_scores(X, low, m, weights, narrow, z):
    """z = weights @ X[:, low : low + m] in the dtype of X, four columns at a time."""
    d = len(weights)
    narrow[:m] = 0.0
    for j in range(0, d - d % 4, 4):
        x0, x1, x2, x3 = X[j, low : low + m], X[j + 1, low : low + m], X[j + 2, low : low + m], X[j + 3, low : low + m]
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for i in range(m):
            narrow[i] = (((narrow[i] + x0[i] * w0) + x1[i] * w1) + x2[i] * w2) + x3[i] * w3
    for j in range(d - d % 4, d):
        x0, w0 = X[j, low : low + m], weights[j]
        for i in range(m):
            narrow[i] += x0[i] * w0
    for i in range(m):
        z[i] = narrow[i]


@njit
def add_all_columns(X, first, facts, counts, units, several, theta, bias, max_norm, icpt, start, stop, total):
    """`add_all_rows` for rows that are stored by columns, in one pass in which each column is a run of memory.

    X has shape (d, at least first + n): facts and counts are those of the rows from `first` on. Facts may be float64.
    """
    n_outputs, d = theta.shape
    step = min(_MAX_COLUMN_ROWS, _COLUMN_VALUES // max(d, 1), stop - start)
    step = max(step, 1 if units is None else _MOST_PAIRED)
    z, feature_part, icpt_part = _scratch(n_outputs, step)
    narrow = np.empty(step, X.dtype)
    label, weight, scale, length = facts[LABEL], facts[WEIGHT], facts[SCALE], facts[LENGTH]
    low = start
    while low < stop:
        high = _end_of_block(units, low, step, stop)
        m = high - low
        for k in range(n_outputs):
            icpt_part[k, :m] = bias[k] * icpt
            _column_scores(X, first + low, m, theta[k], narrow, z[k])
        residuals(
            several, z, label[low:high], weight[low:high], scale[low:high], length[low:high],
            max_norm, icpt, feature_part, icpt_part,
        )  # fmt: skip
        if counts is not None:
            _repeat(counts[low:high], feature_part, icpt_part)
        if units is not None:
            _clip_units(units, low, high, z, length[low:high], max_norm, feature_part, icpt_part)
        for k in range(n_outputs):
            for j in range(d):
                total[k, j] += _dot(X[j, first + low : first + high], feature_part[k, :m])
            total[k, d] += _sum(icpt_part[k], m)
        low = high


# --- sparse rows ---


@njit
def _add_sparse_block(
    data, indices, indptr, rows, counts, units, low, block, several, theta, bias, max_norm, icpt, scratch, total
):  # fmt: skip
    z, feature_part, icpt_part = scratch
    m, d = len(rows), total.shape[1] - 1
    for k in range(len(theta)):
        for i in range(m):
            score = 0.0
            for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
                score += np.float64(data[t]) * np.float64(theta[k, indices[t]])
            z[k, i] = score
            icpt_part[k, i] = bias[k] * icpt
    residuals(
        several, z, block[LABEL, :m], block[WEIGHT, :m], block[SCALE, :m], block[LENGTH, :m],
        max_norm, icpt, feature_part, icpt_part,
    )  # fmt: skip
    if counts is not None:
        _repeat(counts, feature_part, icpt_part)
    if units is not None:
        _clip_units(units, low, low + m, z, block[LENGTH, :m], max_norm, feature_part, icpt_part)
    for k in range(len(theta)):
        for i in range(m):
            for t in range(indptr[rows[i]], indptr[rows[i] + 1]):
                # Indices of a row are distinct (no duplicate entries), so the bound on the row's norm holds.
                total[k, indices[t]] += feature_part[k, i] * np.float64(data[t])
            total[k, d] += icpt_part[k, i]


@njit
def add_sparse_rows(
    data, indices, indptr, facts, rows, counts, units, several, theta, bias, max_norm, icpt, start, stop, total
):
    """`add_some_rows` for a CSR matrix without duplicate entries; a row costs its non-zero entries.

    `rows` is None for all rows.
    """
    n_outputs = len(theta)
    step = max(min(_MAX_BLOCK, stop - start), 1 if units is None else _MOST_PAIRED)
    scratch = _scratch(n_outputs, step)
    some, block = np.empty(step, np.int64), np.empty((N_FACTS, step), data.dtype)
    low = start
    while low < stop:
        m = _end_of_block(units, low, step, stop) - low
        for i in range(m):
            some[i] = low + i if rows is None else rows[low + i]
            for j in range(N_FACTS):
                block[j, i] = facts[some[i], j]
        _add_sparse_block(
            data, indices, indptr, some[:m], None if counts is None else counts[low : low + m], units, low, block,
            several, theta, bias, max_norm, icpt, scratch, total,
        )  # fmt: skip
        low += m


# --- rows whose products are those of BLAS ---


@njit
def clip_scores(scores, facts, rows, counts, start, several, bias, max_norm, icpt, tiny, icpt_sums):
    """Replace scores by clipped residuals times the scale of their row, and add up the intercept's part.

    Parameters
    ----------
    scores : ndarray of shape (m, n_outputs), float32 or float64
        Products of rows, as they are in X, and parameters. Written: what rows have to be multiplied by.
    facts : ndarray of shape (n, 4)
    rows : ndarray of shape (k,), int64, or None
        Row i of `scores` is row ``rows[start + i]`` of X, or ``start + i`` where `rows` is None.
    counts : ndarray of shape (k,), float64, or None
        Of which number ``start + i`` multiplies the clipped residuals of row i.
    start : int
    several, bias, max_norm, icpt
        As for `add_all_rows`.
    tiny : float
        Smallest normal number of the dtype of `scores`: products with smaller ones lose digits.
    icpt_sums : ndarray of shape (n_outputs,), float64
        Added to.
    """
    m, n_outputs = scores.shape
    z, feature_part, icpt_part = _scratch(n_outputs, m)
    block = np.empty((N_FACTS, m), facts.dtype)
    for i in range(m):
        row = start + i if rows is None else rows[start + i]
        for j in range(N_FACTS):
            block[j, i] = facts[row, j]
    for k in range(n_outputs):
        for i in range(m):
            z[k, i] = scores[i, k]
            icpt_part[k, i] = bias[k] * icpt
    residuals(
        several, z, block[LABEL], block[WEIGHT], block[SCALE], block[LENGTH], max_norm, icpt, feature_part, icpt_part
    )
    if counts is not None:
        _repeat(counts[start : start + m], feature_part, icpt_part)
    for k in range(n_outputs):
        for i in range(m):
            value = feature_part[k, i]
            scores[i, k] = value if tiny <= abs(value) <= 1.0 / tiny else 0.0  # 1 / tiny is finite
        icpt_sums[k] += _sum(icpt_part[k], m)
