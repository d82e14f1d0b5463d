"""Binomial counts from secret words: how many of the m copies of a row Poisson sampling draws.

A count of m copies is the sum of one count of 2**j copies for each bit j of m, so that tables of the laws of 2**j
copies serve all m. A draw inverts the distribution function of its table at a uniform number of 128 bits. It takes
integers alone.

**Exactness.** The values of a table are those of the exact distribution function, rounded down to multiples of
2**-128. Weights of successive counts follow from that of the mode, in whole multiples of 2**-192 of it, by
``w(k + 1) = w(k) (size - k) a / ((k + 1) b)`` with a / b the odds q / (1 - q), which are exact for a double q. These
quotients are below 1 on the way from the mode, so that a weight is wrong by at most one unit for each rounding before
it, 2**16 of them. There are at most 2**16 + 1 weights, so the distribution function is wrong by less than 2**-150
before it is rounded. A draw is the number of values that a uniform number of 128 bits exceeds. Its law is within
2**-111 of the binomial one in total variation, 2**-128 for each value. A lot takes at most 16 draws a group and one for
every 2**16 rows: with fewer than 2**40 draws it is within 2**-71 of a Poisson sample, which no delta notices.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._kernels.caching import njit

LARGEST_POWER = 16
"""Copies are split into powers of two up to ``2**LARGEST_POWER``, whose table has some thousands of values."""

_POINT = 192  # bits after the point of weights
_WORD = 64


class Tables(NamedTuple):
    """Tables of binomial laws, one after the other.

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
    """Return the tables of the laws of Binomial(size, rate), for sizes up to ``2**LARGEST_POWER`` and 0 < rate < 1."""
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
    # Values that round to 0 or 1 are left out, but for one 1, which no number exceeds.
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
        Added to: whole numbers, exact up to 2**53.
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
