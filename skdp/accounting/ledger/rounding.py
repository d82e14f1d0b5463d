"""Numbers in few digits, for people, never rounded to the wrong side."""

from __future__ import annotations

import decimal
import math

__all__ = ["to_digits"]


def to_digits(value: float, digits: int, *, up: bool = False) -> str:
    """A number of at least 0 in so many digits, never to the wrong side.

    Parameters
    ----------
    value : float
    digits : int
    up : bool
        Whether the wrong side is below.

    Returns
    -------
    str
    """
    if value in (0.0, math.inf):
        return f"{value:g}"
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    return f"{float(decimal.Context(digits, rounding).create_decimal(repr(value))):.{digits}g}"
