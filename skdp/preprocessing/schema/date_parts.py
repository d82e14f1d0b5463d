"""Parts of a date as levels: months and weekdays, which say what returns each year or week. All of it is public."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._typing import Doubles

DATE_PARTS = {
    "month": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}
"""Levels of each part, in their order."""

_EPOCH_IS_THURSDAY = 3


def levels_of_days(part: str, days: Doubles) -> NDArray[np.int32]:
    """Return the level of each day, a number of days since 1970-01-01; behind "other", the last one is a gap (NaN).

    Parameters
    ----------
    part : str
        One of `DATE_PARTS`.
    days : ndarray of shape (n,)

    Returns
    -------
    levels : ndarray of shape (n,)
    """
    gaps = np.isnan(days)
    whole = np.floor(np.where(gaps, 0.0, days)).astype(np.int64)
    if part == "month":
        levels = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    else:
        levels = (whole + _EPOCH_IS_THURSDAY) % 7
    return np.where(gaps, len(DATE_PARTS[part]) + 1, levels).astype(np.int32)


def read_parts(given: Any) -> tuple[str, ...] | None:
    """Return parts of a date that a user lists, in the order of `DATE_PARTS`; None if this is no such list."""
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) and each in DATE_PARTS for each in given):
        return None
    return tuple(part for part in DATE_PARTS if part in given)
