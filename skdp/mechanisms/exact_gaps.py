"""Gaps of a Bernoulli sample as if words had infinitely many bits: when a kernel's are certain, and what they are else.

A gap is floor(log U / log(1 - q)), U uniform in (0, 1) (`skdp._kernels.bits`). The word that is read is the first
binary digits of 1 - U. `certainty` says where floating point, or further digits, could make another whole number of it;
`exact_gap` takes further digits until none could. So a row is in a lot with probability q, that of the double.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext

from skdp.mechanisms.rounded_normals import LAST, log_of_rest

_GUARD = 30  # decimal digits beyond those of the bits
_FAR, _LONGEST = 16.6, 2**64 - 2**40  # a logarithm of U, less than 24 log 2; the word whose U is 2**-24


def certainty(log_survival: float) -> tuple[float, float]:
    """How near to a whole number the quotient of any word may be uncertain, and from where on it is taken to be."""
    return _uncertainty(_LONGEST, log_survival), _FAR / log_survival


def _uncertainty(word: int, log_survival: float) -> float:
    """Bound on the distance of a quotient from the ideal one, for words up to this one.

    Notes
    -----
    Let u = 2**-53, L = -log U for the U of the word, and S = `log_survival`.

    - U is held to u / 2 where it is at least 1/2, and to u of itself below; its logarithm is exact to 4 u of itself
      (`skdp.mechanisms.rounded_normals.error_bound`). So L is off by less than u + 4 u L.
    - Further digits lower U by at most 2**-64, to U' at least, and raise L by at most 2**-64 / U'.
    - S is that of the double q to 4 u of itself, four times what a C library rounds it by, and the quotient is rounded.

    In all less than (u + 9 u L + 2**-64 / U') / S. Returned is twice as much, or more.
    """
    length = -log_of_rest(word)
    return (2.0**-52 + 2.0**-48 * length + 2.0 / (LAST - word)) / log_survival


def exact_gap(word: int, rate: float, limit: int, further: Iterable[int]) -> int:
    """The whole number of a word and the digits that follow it; `limit` for all that are no less.

    Parameters
    ----------
    word : int
        Of 64 bits: the first digits of 1 - U.
    rate : float
        q in (0, 1).
    limit : int
    further : iterable of int
        Further words of 64 bits, as many as are asked for.
    """
    log_survival = -math.log1p(-rate)
    quotient = -log_of_rest(word) / log_survival
    if word < LAST and abs(quotient - round(min(quotient, 2.0**60))) > _uncertainty(word, log_survival):
        return min(math.floor(min(quotient, 2.0**60)), limit)
    n_bits, more = 64, iter(further)
    while (found := decided_gap(word, n_bits, rate, limit)) is None:
        word, n_bits = word << 64 | next(more), n_bits + 64
    return found


def decided_gap(word: int, n_bits: int, rate: float, limit: int) -> int | None:
    """The gap that digits decide, or None if further ones could change it: 1 - U is in word + [0, 1], by 2**n_bits.

    Notes
    -----
    Decimal arithmetic is rounded correctly, its logarithm too. With d digits, 1 - q and its logarithm S are wrong by
    less than 10**(1 - d), and that of U by less than 10**(4 - d), so a quotient k is wrong by less than (k + 1)
    10**(5 - d) / S; the slack is 10**5 times that.
    """
    digits = max(n_bits, 2048 if rate < 2.0**-64 else 128) // 3 + _GUARD
    with localcontext(Context(prec=digits)):
        step, bits = -(1 - Decimal(rate)).ln(), n_bits * Decimal(2).ln()
        slack = Decimal(10) ** (10 - digits) / min(step, Decimal(1))
        size = (1 << n_bits) - word  # U is at most as many steps, and at least one less
        shortest = (bits - Decimal(size).ln()) / step
        least = max(0, math.floor(shortest - (shortest + 1) * slack))
        if least >= limit:
            return limit
        if size == 1:  # U may be as near to 0 as one likes
            return None
        longest = (bits - Decimal(size - 1).ln()) / step
        return least if least == math.floor(longest + (longest + 1) * slack) else None


__all__ = ["certainty", "decided_gap", "exact_gap"]
