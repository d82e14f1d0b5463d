"""From secret 64-bit words to normal numbers and to Poisson row samples.

Only ``+ - * /``, ``sqrt``, ``floor`` and integer operations are used, each rounded in one way by IEEE 754, so that the
same words give the same numbers on every machine. The loops have no branch and no library call, so they vectorise.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._kernels.caching import njit

BLOCK = 512
"""Words (and normals) in a block: the first half makes radii, the second half angles; a block stays in cache."""


_ONE = np.uint64(0x3FF0000000000000)  # the bits of 1.0
_SQRT_HALF = np.int64(0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
_INTEGER = np.int64(0x4338000000000000)  # the bits of 1.5 * 2**52: adding a small integer to them adds it to the float
_INTEGER_VALUE = 6755399441055744.0
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_QUARTER_TURN = 1.5707963267948966


@njit
def _log_unit(word):
    """log(U) of U = (2**64 - word) / 2**64 in (0, 1], to 1 ulp; U keeps its relative precision down to 2**-64.

    log(2**k m) = k log 2 + log1p(f) with m = 1 + f in [sqrt(1/2), sqrt(2)) and the odd series in f / (2 + f)
    (minimax coefficients of FreeBSD msun, e_log.c).
    """
    # Two doubles in [1, 2) hold all 64 bits, without a conversion of integers, which would not vectorise.
    high = np.uint64((word >> np.uint64(12)) | _ONE).view(np.float64)  # 1 + the upper 52 bits
    low = np.uint64(((word & np.uint64(0xFFF)) << np.uint64(40)) | _ONE).view(np.float64)  # 1 + the lower 12
    unit = (2.0 - high) - (low - 1.0) * 2.0**-52
    # Subtracting the bits of sqrt(1/2) leaves the exponent k of unit = 2**k m with m in [sqrt(1/2), sqrt(2)).
    shifted = np.float64(unit).view(np.int64) - _SQRT_HALF
    k = np.int64((shifted >> np.int64(52)) + _INTEGER).view(np.float64) - _INTEGER_VALUE
    # Adding them back to the remaining bits gives m. No branch is needed, so the loop vectorises.
    f = np.int64((shifted & np.int64(0x000FFFFFFFFFFFFF)) + _SQRT_HALF).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    r = 0.1818357216161805012 + z * (0.1531383769920937332 + z * 0.1479819860511658591)
    r = 0.2857142874366239149 + z * (0.2222219843214978396 + z * r)
    r = z * (0.6666666666666735130 + z * (0.3999999999940941908 + z * r))
    h = 0.5 * f * f
    # log 2 is split in two, and the smallest terms are added first, to keep the last bit.
    return k * _LN2_HIGH - ((h - (s * (h + r) + k * _LN2_LOW)) - f)


@njit
def _radii(words, radii):
    for i in range(len(radii)):
        radii[i] = math.sqrt(-2.0 * _log_unit(words[i]))


@njit
def _turn(words, radii, first, second):
    """Box and Muller's rotation: 52 bits choose a point of an eighth of the circle on either side of an axis,
    two more bits the axis and its sign (sine and cosine: minimax coefficients of FreeBSD msun, k_sin.c and k_cos.c)."""
    for i in range(len(radii)):
        word = words[i]
        x = np.uint64((word >> np.uint64(12)) | _ONE).view(np.float64) - 1.5  # in [-1/2, 1/2)
        x = x * _QUARTER_TURN
        z = x * x
        s = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
        s = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s)
        s = x + x * z * (-1.66666666666666324348e-01 + z * s)
        c = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
        c = -1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c)
        c = 1.0 - (0.5 * z - z * z * (4.16666666666666019037e-02 + z * c))
        # The sign goes to the cosine alone: the sine is odd in x, whose sign the upper bits choose.
        sign = (word & np.uint64(1)) << np.uint64(63)
        c = np.uint64(np.float64(c).view(np.uint64) | sign).view(np.float64)
        other_axis = (word & np.uint64(2)) != np.uint64(0)
        first[i] = radii[i] * (s if other_axis else c)
        second[i] = radii[i] * (c if other_axis else s)


@njit
def normals_from_words(words, out):
    """Fill `out` with standard normals, one for each word (Box & Muller 1958).

    Parameters
    ----------
    words : ndarray of shape (m,), uint64
        Independent uniform words; m is a multiple of `BLOCK`.
    out : ndarray of shape (m,), float32 or float64
        Block by block, |z| up to sqrt(-2 log 2**-64) = 9.4.
    """
    half = BLOCK // 2
    # Each pass is a function over distinct arrays: a loop over two slices of one array does not vectorise.
    radii = np.empty(half, np.float64)
    for start in range(0, len(out), BLOCK):
        middle, stop = start + half, start + BLOCK
        _radii(words[start:middle], radii)
        _turn(words[middle:stop], radii, out[start:middle], out[middle:stop])


@njit
def _extremes(words, least, largest):
    for i in range(len(words)):
        half = np.int64(words[i] >> np.uint64(1))  # signed numbers are compared in one instruction
        least, largest = min(least, half), max(largest, half)
    return least, largest


@njit
def extreme_radii(words):
    """Bounds on the words that make radii, of those that `normals_from_words` takes: the least, and the largest."""
    least, largest = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(0)
    for start in range(0, len(words), BLOCK):
        least, largest = _extremes(words[start : start + BLOCK // 2], least, largest)
    return np.uint64(least) << np.uint64(1), (np.uint64(largest) << np.uint64(1)) | np.uint64(1)


@njit
def _split(value, grid):
    """The nearest multiple of `grid`, and the rest in units of `grid`, from -1/2 to 1/2.

    A sum of v >= 0 and 2**52 grids lies, for v below them, where doubles are one grid apart: it rounds v to a multiple
    of the grid by at most half of one. Larger doubles are multiples already. The difference from the multiple is exact,
    and so is its quotient by a power of two, unless it is below 2**-1022.
    """
    all_on_grid = 2.0**52 * grid
    size = abs(value)
    rounded = math.copysign((size + all_on_grid) - all_on_grid, value)
    return (rounded, (value - rounded) / grid) if size < all_on_grid else (value, 0.0)


@njit
def add_normals(value, normals, scale, grid, limit, noisy):
    """Add `scale` normals in units of `grid` to each value, round to a multiple of `grid`, and count uncertain results.

    Parameters
    ----------
    value, normals : ndarray of shape (m,), float64
    scale : float
        From 1 to 2**46, so that the sums lie below 2**51.
    grid : float
        A power of two from 2**-1020 to 2**970.
    limit : float
        Rounding is certain up to this distance from a multiple (`skdp.mechanisms.rounded_normals`).
    noisy : ndarray of shape (m,), float64
        Receives the sums: of two multiples of the grid, rounded once where they have more than 53 bits. None of them is
        -0.0, of which the sign would tell the sign of a value of 0.

    Returns
    -------
    count : int
    """
    count = 0
    for i in range(len(normals)):
        nearest, rest = _split(value[i], grid)
        exact = normals[i] * scale + rest
        whole = (exact + _INTEGER_VALUE) - _INTEGER_VALUE
        noisy[i] = whole * grid + nearest
        count += not abs(exact - whole) <= limit  # a limit of NaN is certain of nothing
    return count


@njit
def parts_of_sums(value, normals, scale, grid, nearest, rest, distance):
    """The parts of the same sums: the nearest multiples, the rests, and the distances of the sums from multiples."""
    for i in range(len(normals)):
        nearest[i], rest[i] = _split(value[i], grid)
        exact = normals[i] * scale + rest[i]
        distance[i] = abs(exact - ((exact + _INTEGER_VALUE) - _INTEGER_VALUE))


@njit
def gaps_from_words(words, log_survival, limit, near, far, gaps):
    """Fill `gaps` with numbers of rows that a Bernoulli sample passes over (Devroye 1986, section X.2).

    The number of rows passed over before the next one is in has P(gap >= k) = (1 - q)**k, which is the law of
    floor(log(U) / log(1 - q)): one word a row that is in, none for the others.

    Parameters
    ----------
    words : ndarray of shape (m,), uint64
    log_survival : float
        -log(1 - q) > 0.
    limit : float
        A gap of as many rows ends the sample, and so do longer ones, all of which count as `limit`.
    near, far : float
        A quotient is uncertain this near to a whole number, or from `far` on (`skdp.mechanisms.exact_gaps`).
    gaps : ndarray of shape (m,), int64
        Receives the gaps, -1 where the whole number is uncertain.

    Returns
    -------
    n_open : int
        Number of uncertain gaps.
    """
    n_open = 0
    for i in range(len(words)):
        quotient = -_log_unit(words[i]) / log_survival
        distance = abs(quotient - ((quotient + _INTEGER_VALUE) - _INTEGER_VALUE))
        is_open = quotient <= limit + 1.0 and (distance <= near or quotient >= far)
        # The limit comes first: Numba's floor returns an integer, which a huge gap would overflow.
        gap = math.floor(min(quotient, limit))
        gaps[i] = -1 if is_open else gap
        n_open += is_open
    return n_open


@njit
def rows_from_gaps(rows, n, last):
    """Continue a sample of rows from `last` by gaps, in place.

    Parameters
    ----------
    rows : ndarray of shape (m,), int64
        Gaps; receives the rows, ascending.
    n : int
        Number of rows to draw from.
    last : int
        The row drawn last, -1 at the start.

    Returns
    -------
    count, last : int
        Rows written, and the row drawn last; the sample is complete when ``last >= n``.
    """
    for i in range(len(rows)):
        last += 1 + rows[i]  # the row after the gap is drawn
        if last >= n:
            return i, last
        rows[i] = last
    return len(rows), last
