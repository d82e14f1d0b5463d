"""Normals of infinitely many bits, rounded to whole numbers: an error bound of the kernel, and what is beyond it.

The ideal pair of normals is R cos(angle) and R sin(angle), R = sqrt(-2 log U), of a uniform U in (0, 1) and a uniform
angle (Box & Muller 1958). The words that `skdp._kernels.bits` reads are the first binary digits of 1 - U, and of the
place of the angle in an eighth of the circle on either side of an axis. `error_bound` says how far the kernel's doubles
can be from what U and the angle become with any further digits. Where this leaves the nearest whole number open,
`rounded_pair` takes further digits, until all that could follow give the same one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import Context, Decimal, localcontext

_WORDS = 2**64
LAST = _WORDS - 1
_TURN_BITS = 12  # of the word of an angle, these come after its digits; the last two choose axis and sign
_GUARD = 30  # decimal digits beyond those of the bits


def error_bound(least: int, most: int) -> float:
    """Bound on the distance of a normal from the ideal one, of radius words from `least` to `most`.

    Notes
    -----
    Let u = 2**-53, and R the radius of the word itself.

    - Radius. U is held to u / 2 where it is at least 1/2, and to u of itself below. Its logarithm is exact to 4 u of
      itself: the quotient s = f / (2 + f), at most 0.18, and what multiplies it, at most 0.11, are exact to 2 u and
      4 u, and the last three operations round by u each, of numbers that are smaller than 1.2 times the logarithm
      where the exponent is 0, and of at most 0.42 otherwise, where the logarithm is above 0.34. So -2 log U is off by
      e, less than 2 u + 4 u R^2. Its root is off by e over the sum of both roots, and is rounded: less than
      1.1 u / R + 5 u R, where R is tiny (U then is held to u / 2) as well.
    - Further digits lower U by at most 2**-64, to U' at least, so they add at most 2**-64 / (U' R) to R: at most
      2**-63 / R where U' >= 1/2, and less than 2**-64 / U' below, where R > 1.17.
    - Angle. pi / 2 and the product with it are rounded: 1.6 u; further digits add pi / 2 * 2**-52, less than 3.2 u;
      sine and cosine are exact to 2 u. All is multiplied by R: 6.8 u R.
    - The product of both is rounded, and so is that with a scale: 2 u R.
    - The sum of that with a rest of at most 1/2 is rounded: u R + u / 2, for a scale of at least 1.

    In all less than 1.2 u / R + 15 u R + u / 2 + 2**-64 / U'. Returned is 2 u / R + 16 u R + 2**-63 / U'. Its first two
    terms are larger by 0.8 u / R + u R, at least 1.7 u, which leaves room for the rounding in this function.
    """
    if least == 0 or most == LAST:
        return math.inf
    shortest, longest = math.sqrt(-2.0 * log_of_rest(least)), math.sqrt(-2.0 * log_of_rest(most))
    return 2.0**-52 / shortest + 2.0**-49 * longest + 2.0 / (_WORDS - 1 - most)


def log_of_rest(word: int) -> float:
    """log U of 1 - U = word / 2**64, to some units of the last digit."""
    return math.log1p(-word / _WORDS) if word < _WORDS // 2 else math.log((_WORDS - word) / _WORDS)


def rounded_pair(
    radius: int, angle: int, scale: float, rest: float, further: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Round `rest` plus `scale` times the two ideal normals of two words to whole numbers.

    Parameters
    ----------
    radius, angle : int
        Words of 64 bits.
    scale, rest : float
    further : iterable of (int, int)
        Further words of 64 bits: the next digits of radius and angle, as many as are asked for.

    Returns
    -------
    first, second : int
        floor(rest + scale z + 1/2) of both normals z.
    """
    axis, angle, n_radius, n_angle = angle & 3, angle >> _TURN_BITS, 64, 64 - _TURN_BITS
    more = iter(further)
    while (found := decided_pair(radius, n_radius, angle, n_angle, axis, scale, rest)) is None:
        next_radius, next_angle = next(more)
        radius, n_radius = radius << 64 | next_radius, n_radius + 64
        angle, n_angle = angle << 64 | next_angle, n_angle + 64
    return found


def decided_pair(
    radius: int, n_radius: int, angle: int, n_angle: int, axis: int, scale: float, rest: float
) -> tuple[int, int] | None:
    """The whole numbers that digits of radius and angle decide, or None if further digits could change one of them.

    Parameters
    ----------
    radius, n_radius : int
        1 - U is in radius + [0, 1], divided by 2**n_radius.
    angle, n_angle : int
        The angle is in angle + [0, 1], divided by 2**n_angle, less 1/2, in quarters of a turn.
    axis : int
        From 0 to 3: whether the cosine is negative, and, twice, whether it is the second of the two.
    scale, rest : float
        As of `rounded_pair`.

    Notes
    -----
    Decimal arithmetic is rounded correctly, its logarithm and root too. The numbers are below 10**4, the operations
    fewer than 10**4, and each rounds by at most one unit of the last digit, so `slack` is more than all of them make.
    """
    digits = max(n_radius, n_angle) // 3 + _GUARD
    with localcontext(Context(prec=digits)):
        slack = Decimal(10) ** (12 - digits)
        size = 1 << n_radius
        if radius + 1 == size:  # U may be as near to 0 as one likes
            return None
        longest = _radius(size - radius - 1, n_radius, slack)
        shortest = _radius(size - radius, n_radius, -slack)
        middle, open_radius = (longest + shortest) / 2, (longest - shortest) / 2
        quarter = _pi(digits) / 2
        x = (Decimal(2 * angle + 1) / (2 << n_angle) - Decimal("0.5")) * quarter
        error = open_radius + longest * quarter / (2 << n_angle) + slack
        sine, cosine = _sine_and_cosine(x, slack)
        cosine = -cosine if axis & 1 else cosine
        found, shift = [], Decimal(rest) + Decimal("0.5")
        for each in (sine, cosine) if axis & 2 else (cosine, sine):
            low, high = (math.floor(Decimal(scale) * (middle * each + e) + shift) for e in (-error, error))
            if low != high:
                return None
            found.append(low)
    return found[0], found[1]


def _radius(unit: int, n_bits: int, slack: Decimal) -> Decimal:
    """sqrt(-2 log(unit / 2**n_bits)), no less than it is for a positive slack, and no more for a negative one."""
    square = 2 * (n_bits * Decimal(2).ln() - Decimal(unit).ln()) + slack
    return max(square, Decimal(0)).sqrt() + slack if square > 0 else Decimal(0)


def _sine_and_cosine(x: Decimal, slack: Decimal) -> tuple[Decimal, Decimal]:
    """Taylor's series of an angle of at most an eighth of a turn; what is left out is less than its last term."""
    sums, term, k = [Decimal(1), x], x, 1
    while abs(term) > slack / 10**6:
        k += 1
        term = term * x / k
        sums[k % 2] += -term if k % 4 in (2, 3) else term
    return sums[1], sums[0]


@functools.lru_cache(maxsize=8)
def _pi(digits: int) -> Decimal:
    """pi by Machin's formula, 16 arctan(1/5) - 4 arctan(1/239)."""
    with localcontext(Context(prec=digits + 5)):
        return 16 * _arctan_of_inverse(5) - 4 * _arctan_of_inverse(239)


def _arctan_of_inverse(n: int) -> Decimal:
    """arctan(1 / n) in the precision of the context, by its series."""
    power = total = Decimal(1) / n
    k = 1
    while total + power != total:
        k, power = k + 2, -power / (n * n)
        total += power / k
    return total


__all__ = ["LAST", "decided_pair", "error_bound", "log_of_rest", "rounded_pair"]
