"""Passes over a chunk of rows between the matrix products of a critic with a gradient penalty.

Each row has three vectors: a simulated row, the row itself, and an interpolation of both. Sums over a row are float64
for any dtype of the rows. ``fastmath`` is off, so that NaN and infinity reach the guard of the gradient clipping.
"""

from __future__ import annotations

import numpy as np

from skdp._kernels.caching import njit

_SHORT = 1e-24
_LARGEST = 1e40  # squared norm of an input; a factor may round to a multiple of 2**-149, and to nothing against this


@njit
def gather_pairs(X, rows, low, unit, codes, mark, pairs):
    """Write rows, mapped to [-1, 1], to `pairs`, and the label of each to the row and its simulated row.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
    rows : ndarray of shape (m,), int64
    low, unit : ndarray of shape (d,), float64
        A value is mapped to ``(value - low) * unit - 1`` and moved to [-1, 1].
    codes : ndarray of shape (n,), int64
        Numbers of the labels. Not looked at where `pairs` has no columns for labels.
    mark : float
        What stands in the column of the label; 0 stands in all others.
    pairs : ndarray of shape (m, 2, d + n_classes + 1)
        Written, but for the first d columns of ``[:, 0]``. The last column is 1. A row that holds NaN or infinity
        becomes NaN.
    """
    d, width = X.shape[1], pairs.shape[2]
    for i in range(len(rows)):
        row, is_finite = rows[i], True
        for j in range(d):
            value = (np.float64(X[row, j]) - low[j]) * unit[j] - 1.0
            is_finite = is_finite and value - value == 0.0
            pairs[i, 1, j] = min(max(value, -1.0), 1.0)
        for side in range(2):
            pairs[i, side, d : width - 1] = 0.0
            if width > d + 1:
                pairs[i, side, d + codes[row]] = mark
            pairs[i, side, width - 1] = 1.0
        if not is_finite:
            pairs[i, 1, :d] = np.nan


@njit
def activate_between(scores, mix, slope, outputs):
    """Leaky ReLU of a layer that is linear in its input, which therefore needs no product for the points between.

    Parameters
    ----------
    scores : ndarray of shape (m, 2, h)
        Scores of simulated rows and of rows.
    mix : ndarray of shape (m,)
        Weight of the row in the interpolation.
    slope : float
        Of the activation below zero.
    outputs : ndarray of shape (m, 3, h + 1)
        Written. The last column, of the intercepts, is 1.
    """
    for i in range(scores.shape[0]):
        share = mix[i]
        outputs[i, :, scores.shape[2]] = 1.0
        for j in range(scores.shape[2]):
            fake, real = scores[i, 0, j], scores[i, 1, j]
            between = share * real + (1 - share) * fake
            outputs[i, 0, j] = fake if fake > 0 else slope * fake
            outputs[i, 1, j] = real if real > 0 else slope * real
            outputs[i, 2, j] = between if between > 0 else slope * between


@njit
def activate_rows(scores, slope, outputs):
    """Leaky ReLU of `scores`, of shape (k, h), to the first h columns of `outputs`, and a 1 after them."""
    for i in range(scores.shape[0]):
        outputs[i, scores.shape[1]] = 1.0
        for j in range(scores.shape[1]):
            score = scores[i, j]
            outputs[i, j] = score if score > 0 else slope * score


@njit
def multiply_by_slopes(outputs, slope, deltas):
    """Multiply `deltas`, of shape (k, h), by the derivative of the leaky ReLU of which `outputs` holds the values."""
    for i in range(deltas.shape[0]):
        for j in range(deltas.shape[1]):
            delta = deltas[i, j]
            deltas[i, j] = delta if outputs[i, j] > 0 else slope * delta


@njit
def penalty_factors(forward, deltas, penalty, squares, factors):
    """Find |g|**2, and the factor ``2 penalty (|g| - 1) / |g|`` by which g enters the gradient of the penalty.

    Parameters
    ----------
    forward : ndarray of shape (m, h)
        ``W' W delta``, the image of g = W delta in the first layer.
    deltas : ndarray of shape (m, 3, h)
        Derivatives of the score by what comes out of the first layer.
    penalty : float
    squares, factors : ndarray of shape (m,), float64
        Written. The factor of g = 0, where the penalty has no gradient, is 0, and so is that of a g so short that the
        products in it leave the range of single precision.
    """
    for i in range(len(squares)):
        total, of_delta = 0.0, 0.0
        for j in range(forward.shape[1]):
            delta = np.float64(deltas[i, 2, j])
            total += np.float64(forward[i, j]) * delta
            of_delta += delta * delta
        squares[i] = total
        length = np.sqrt(total)
        is_short = total <= _SHORT * max(of_delta, np.sqrt(of_delta))
        factors[i] = 0.0 if is_short else 2.0 * penalty * (length - 1.0) / length


@njit
def start_forward(forward, factors, slope, outputs):
    """Put the forward image of g, times the factor of the penalty, in the place of the outputs of the points between.

    Parameters
    ----------
    forward : ndarray of shape (m, h)
        Image before the activation.
    factors : ndarray of shape (m,), float64
    slope : float
    outputs : ndarray of shape (m, 3, h + 1)
        Read for the derivative of the activation, and written. The last column, of intercepts, which the penalty does
        not see, becomes 0.
    """
    for i in range(len(factors)):
        for j in range(forward.shape[1]):
            value = factors[i] * forward[i, j]
            outputs[i, 2, j] = value if outputs[i, 2, j] > 0 else slope * value
        outputs[i, 2, forward.shape[1]] = 0.0


@njit
def add_grams(inputs, deltas, squares, lengths):
    """Add what a layer adds to the squared norms of the gradients of rows.

    The gradient of a row in a layer is the sum of three outer products of an input and a derivative, the second of them
    with a minus. Its squared norm is the sum over pairs p, q of ``(input_p . input_q) (delta_p . delta_q)``.

    Parameters
    ----------
    inputs : ndarray of shape (m, 3, a)
        The 1 for the intercept included.
    deltas : ndarray of shape (m, 3, b)
    squares, lengths : ndarray of shape (m,), float64
        Read and written: squared norms, and squared sums of the norms of the three products.
    """
    for i in range(len(squares)):
        a00, a11, a22, a01, a02, a12 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(inputs.shape[2]):
            x, y, z = np.float64(inputs[i, 0, j]), np.float64(inputs[i, 1, j]), np.float64(inputs[i, 2, j])
            a00 += x * x
            a11 += y * y
            a22 += z * z
            a01 += x * y
            a02 += x * z
            a12 += y * z
        b00, b11, b22, b01, b02, b12 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(deltas.shape[2]):
            x, y, z = np.float64(deltas[i, 0, j]), np.float64(deltas[i, 1, j]), np.float64(deltas[i, 2, j])
            b00 += x * x
            b11 += y * y
            b22 += z * z
            b01 += x * y
            b02 += x * z
            b12 += y * z
        squares[i] += a00 * b00 + a11 * b11 + a22 * b22 + 2.0 * (a02 * b02 - a01 * b01 - a12 * b12)
        longest = np.sqrt(a00 * b00) + np.sqrt(a11 * b11) + np.sqrt(a22 * b22)
        lengths[i] += longest * longest if max(a00, a11, a22) < _LARGEST else np.inf


@njit
def add_first_grams(pairs, scores, deltas, codes, rows, offsets, gradients, factors, length, error, squares, lengths):
    """`add_grams` for the first layer, whose third input, g times its factor, is never made.

    ``x . g`` is ``(W' x) . delta``, and the scores of x are W'x and what label and intercept add to them.

    Parameters
    ----------
    pairs : ndarray of shape (m, 2, a)
    scores : ndarray of shape (m, 2, h)
    deltas : ndarray of shape (m, 3, h)
    codes : ndarray of shape (n,), int64
    rows : ndarray of shape (m,), int64
    offsets : ndarray of shape (at least 1, h), float64
        What label and intercept add to scores, label by label.
    gradients, factors : ndarray of shape (m,), float64
        |g|**2, and its factor.
    length : float
        Norm of all parameters of the layer.
    error : float
        Largest relative error of a product of the layer, in units of the norms of what is multiplied.
    squares, lengths : ndarray of shape (m,), float64
        Read and written. To the squared norm the bound of its error is added.
    """
    width, h, has_labels = pairs.shape[2], scores.shape[2], len(offsets) > 1
    for i in range(len(squares)):
        a00, a11, a01 = 0.0, 0.0, 0.0
        b00, b11, b01, c00, c11, c01 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        half = width // 2
        for j in range(half):  # two chains of each sum
            x, y = np.float64(pairs[i, 0, j]), np.float64(pairs[i, 1, j])
            u, v = np.float64(pairs[i, 0, half + j]), np.float64(pairs[i, 1, half + j])
            a00 += x * x
            a11 += y * y
            a01 += x * y
            b00 += u * u
            b11 += v * v
            b01 += u * v
        for j in range(2 * half, width):
            x, y = np.float64(pairs[i, 0, j]), np.float64(pairs[i, 1, j])
            a00 += x * x
            a11 += y * y
            a01 += x * y
        a00, a11, a01 = a00 + b00, a11 + b11, a01 + b01
        code = codes[rows[i]] if has_labels else 0
        b00, b11, b22, b01, b02, b12 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(h):
            x, y, z = np.float64(deltas[i, 0, j]), np.float64(deltas[i, 1, j]), np.float64(deltas[i, 2, j])
            b00 += x * x
            b11 += y * y
            b22 += z * z
            b01 += x * y
            b02 += x * z
            b12 += y * z
            c00 += scores[i, 0, j] * z
            c11 += scores[i, 1, j] * z
            c01 += offsets[code, j] * z
        factor = factors[i]
        a02, a12, a22 = factor * (c00 - c01), factor * (c11 - c01), factor * factor * max(gradients[i], 0.0)
        squares[i] += a00 * b00 + a11 * b11 + a22 * b22 + 2.0 * (a02 * b02 - a01 * b01 - a12 * b12)
        fake_and_real = np.sqrt(a00 * b00) + np.sqrt(a11 * b11)
        bound = abs(factor) * b22 * length  # on the norm of the third product
        squares[i] += error * bound * (bound + 2.0 * fake_and_real)
        longest = fake_and_real + np.sqrt(a22 * b22 + error * bound * bound)
        lengths[i] += longest * longest


@njit
def clip_factors(squares, lengths, bound, most, roundoff, least, factors):
    """Compute the factors that clip the gradients of rows.

    Parameters
    ----------
    squares, lengths : ndarray of shape (m,), float64
        Squared norms, and squared sums of the norms of the products that the gradients are sums of.
    bound : float
        C, to which gradients are clipped.
    most : float
        Sums of norms are clipped to this times C.
    roundoff : float
        Relative error of the squared norms, in units of `lengths`.
    least : float
        Factors below are set to 0.
    factors : ndarray of shape (m,), float64
        Written. A row whose norm is not finite gets factor 0.

    Returns
    -------
    bool
        Whether any row has factor 0.
    """
    any_muted = False
    for i in range(len(factors)):
        norm = np.sqrt(max(squares[i], 0.0) + roundoff * lengths[i])
        longest = max(norm, np.sqrt(lengths[i]) / most)
        factor = bound / longest if longest > bound else 1.0
        # Written so that NaN fails every comparison and mutes the row.
        if not (squares[i] < np.inf and lengths[i] < np.inf and factor >= least):
            factor, any_muted = 0.0, True
        factors[i] = factor
    return any_muted


@njit
def clip_rows(factors, deltas):
    """Multiply the derivatives of a layer by the factors of their rows, those of rows themselves with a minus.

    Parameters
    ----------
    factors : ndarray of shape (m,), float64
    deltas : ndarray of shape (m, 2 or 3, h)
        Read and written. A row of factor 0 becomes 0, as zero times infinity is NaN.
    """
    for i in range(len(factors)):
        if factors[i] == 0.0:
            deltas[i] = 0.0
            continue
        for side in range(deltas.shape[1]):
            factor = -factors[i] if side == 1 else factors[i]
            for j in range(deltas.shape[2]):
                deltas[i, side, j] *= factor


@njit
def mute_rows(factors, values):
    """Set what belongs to rows of factor 0 to 0; `values` is of shape (m, k, a)."""
    for i in range(len(factors)):
        if factors[i] == 0.0:
            values[i] = 0.0


@njit
def add_block(block, total):
    """Add a block, in any dtype, to a float64 total of the same shape, (a, b)."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            total[i, j] += block[i, j]


@njit
def add_clipped(gradients, bound, least, total):
    """Add the gradients of rows to a total, each clipped to a norm.

    Parameters
    ----------
    gradients : ndarray of shape (m, p), float32 or float64
    bound : float
        C: a row is multiplied by min(1, C / norm), in float64.
    least : float
        Rows of smaller factors, and rows whose norm is not finite, add nothing.
    total : ndarray of shape (p,), float64
        Read and written.
    """
    p = gradients.shape[1]
    for i in range(gradients.shape[0]):
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for j in range(0, p - 3, 4):  # in four chains
            a, b = np.float64(gradients[i, j]), np.float64(gradients[i, j + 1])
            c, d = np.float64(gradients[i, j + 2]), np.float64(gradients[i, j + 3])
            first += a * a
            second += b * b
            third += c * c
            fourth += d * d
        for j in range(p - p % 4, p):
            first += np.float64(gradients[i, j]) * np.float64(gradients[i, j])
        norm = np.sqrt(first + second + third + fourth)
        factor = bound / norm if norm > bound else 1.0
        if norm < np.inf and factor >= least:
            for j in range(p):
                total[j] += factor * gradients[i, j]
