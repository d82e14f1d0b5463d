"""Normal numbers, Poisson samples of rows and binomial counts from secret 64-bit words.

**Normal numbers and gaps.** Only ``+ - * /``, ``sqrt``, ``floor`` and integer operations are used, which IEEE 754
rounds deterministically. So the same words yield the same numbers on every machine. The loops have no branches and no
library calls, so they vectorize.

**Binomial counts**: the number of the m copies of a row that Poisson sampling draws. A count for m copies is the sum of
one count for 2**j copies for each bit j of m, so tables for 2**j copies suffice for all m. A draw inverts the
distribution function at a uniform number of 128 bits, in integer arithmetic.

*Exactness.* The table holds the exact distribution function, rounded down to multiples of 2**-128. The weights of
successive counts are integer multiples of 2**-192 of the weight of the mode. They follow from ``w(k + 1) = w(k) (size -
k) a / ((k + 1) b)`` with the odds a / b = q / (1 - q), which are exact for a double q. These quotients are below 1 in
the direction away from the mode, so the error of a weight is at most one unit for each of up to 2**16 roundings. There
are at most 2**16 + 1 weights, so the error of the distribution function is below 2**-150 before rounding. A draw is the
number of values that a uniform number of 128 bits exceeds. Its distribution differs from the binomial one by at most
2**-111 in total variation, 2**-128 for each value. A lot requires at most 16 draws per group and one for every 2**16
rows. With fewer than 2**40 draws it is within 2**-71 of a Poisson sample, which is negligible for any delta.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._kernels.caching import njit

# Words (and normals) in a block: the first half makes radii, the second half angles; a block stays in cache.
BLOCK = 512


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
        Rounding is certain up to this distance from a multiple (`skdp.mechanisms.streams`).
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

    The number of rows passed over before the next one is in has P(gap >= k) = (1 - q)**k, which is the distribution of
    floor(log(U) / log(1 - q)): one word a row that is in, none for the others.

    Parameters
    ----------
    words : ndarray of shape (m,), uint64
    log_survival : float
        -log(1 - q) > 0.
    limit : float
        A gap of as many rows ends the sample, and so do longer ones, all of which count as `limit`.
    near, far : float
        A quotient is uncertain this near to an integer, or from `far` on (`skdp.mechanisms.streams`).
    gaps : ndarray of shape (m,), int64
        Receives the gaps, -1 where the integer is uncertain.

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


# Copies are split into powers of two up to ``2**LARGEST_POWER``, whose table has some thousands of values.
LARGEST_POWER = 16

_POINT = 192  # bits after the point of weights
_WORD = 64


class Tables(NamedTuple):
    """Tables of binomial distributions, one after the other.

    Attributes
    ----------
    high, low : ndarray of shape (n_values,), uint64
        Values of the distribution functions, as fractions of 2**128, in two words: value k of a table is the
        probability of at most its first count and k. No number exceeds the last value of a table.
    first_value, first_count : ndarray of shape (n_tables,), int64
        Where a table starts, and the count that its first value belongs to.
    guide : ndarray of shape (n_guides,), int64
        For each value of the upper bits of a number, how many values of the table it exceeds for certain.
    first_guide, shift : ndarray of shape (n_tables,), int64
        Where a table's part of `guide` starts, and by how much a word is shifted to give its upper bits.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    first_value: NDArray[np.int64]
    first_count: NDArray[np.int64]
    guide: NDArray[np.int64]
    first_guide: NDArray[np.int64]
    shift: NDArray[np.int64]


def binomial_tables(sizes: list[int], rate: float) -> Tables:
    """Return the tables of Binomial(size, rate), for sizes up to ``2**LARGEST_POWER`` and 0 < rate < 1."""
    first_count, values, guides = [], [], []
    for size in sizes:
        count, bounds = distribution(size, rate)
        first_count.append(count)
        values.append(bounds)
        guides.append(_guide(bounds))
    flat = [bound for bounds in values for bound in bounds]
    word = (1 << _WORD) - 1
    return Tables(
        np.array([bound >> _WORD for bound in flat], np.uint64),
        np.array([bound & word for bound in flat], np.uint64),
        np.cumsum([0, *map(len, values)])[:-1],
        np.array(first_count, np.int64),
        np.array([number for guide in guides for number in guide], np.int64),
        np.cumsum([0, *map(len, guides)])[:-1],
        np.array([_WORD - int(math.log2(len(guide))) for guide in guides], np.int64),
    )


def distribution(size: int, rate: float) -> tuple[int, list[int]]:
    """Return the first count of a table, and its distribution function from there on as fractions of 2**128."""
    a, whole = rate.as_integer_ratio()
    b = whole - a
    mode = (size + 1) * a // whole
    weights = {mode: 1 << _POINT}
    for step in (1, -1):
        k = mode
        while weights[k] and 0 <= k + step <= size:
            up, down = (size - k) * a, (k + 1) * b
            if step < 0:
                up, down = k * b, (size - k + 1) * a
            weights[k + step] = weights[k] * up // down
            k += step
    total, below, bounds = sum(weights.values()), 0, []
    counts = sorted(weights)
    for k in counts:
        below += weights[k]
        bounds.append((below << 2 * _WORD) // total)
    # Values that round to 0 or 1 are omitted, but for one 1, which no number exceeds.
    largest = (1 << 2 * _WORD) - 1
    start = next(i for i, bound in enumerate(bounds) if bound)
    stop = next(i for i, bound in enumerate(bounds) if bound >= largest)
    return counts[start], [*bounds[start:stop], largest]


def _guide(bounds: list[int]) -> list[int]:
    """Guide of a table, with as many entries as it has values or up to twice as many (Chen & Asau 1974)."""
    bits = max(1, (len(bounds) - 1).bit_length())
    found, k = [], 0
    for upper in range(1 << bits):
        least = upper << (2 * _WORD - bits)
        while bounds[k] < least:
            k += 1
        found.append(k)
    return found


@njit
def add_counts(words, groups, first_draw, tables, counts):
    """Add counts drawn from tables to those of groups.

    Parameters
    ----------
    words : ndarray of shape (2, n_draws), uint64
        Independent uniform words; those of a draw are the upper and the lower half of its number.
    groups : ndarray of shape (n_draws,), int64
        To which group a draw belongs.
    first_draw : ndarray of shape (n_tables + 1,), int64
        Draws from ``first_draw[t]`` to ``first_draw[t + 1]`` are from table t.
    tables : Tables
    counts : ndarray of shape (n_groups,), float64
        Added to: integers, exact up to 2**53.
    """
    upper, lower = words[0], words[1]
    for t in range(len(first_draw) - 1):
        high, low = tables.high[tables.first_value[t] :], tables.low[tables.first_value[t] :]
        guide, shift = tables.guide[tables.first_guide[t] :], np.uint64(tables.shift[t])
        first = tables.first_count[t]
        for i in range(first_draw[t], first_draw[t + 1]):
            word = upper[i]
            k = guide[np.int64(word >> shift)]
            while high[k] < word or (high[k] == word and low[k] < lower[i]):
                k += 1
            counts[groups[i]] += first + k
