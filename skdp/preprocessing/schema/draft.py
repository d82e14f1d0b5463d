"""A first schema from rows that nobody has to protect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.readings import day_text, number_of, truth_of
from skdp._checks.table import CellValues, Table, as_days, as_keys, as_numbers

_MOST_CATEGORIES = 50


def draft_columns(frame: Any) -> dict[str, dict[str, Any]]:
    """Return entries for each column of a public table.

    Parameters
    ----------
    frame : table of shape (n, d)
        Public rows: what is drafted shows their values.

    Returns
    -------
    dict of str to dict
        Numbers get bounds, rounded outward to two digits; numbers 0 and 1 are flags. Text is a date or a number if all
        of it is, else a category with the values found. More than 50 values are dropped if nearly each row has one of
        its own, else left to be bought.
    """
    table = Table(frame)
    return {name: _draft_column(table.cells(j), table.kind(j)) for j, name in enumerate(table.names)}


def _draft_column(cells: CellValues, kind: str) -> dict[str, Any]:
    codes, keys = as_keys(cells)
    if cells.kind == "boolean" or ({truth_of(key) for key in keys} == {0, 1} and len(keys) == 2):
        return {"kind": "flag"}
    if kind == "date" or (keys and kind != "number" and not np.isnan(as_days(cells)[codes >= 0]).any()):
        return _draft_date(as_days(cells))
    if kind == "number" or (keys and not any(math.isnan(number_of(key)) for key in keys)):
        return _draft_number(as_numbers(cells))
    if len(keys) <= _MOST_CATEGORIES:
        return {"kind": "category", "categories": sorted(keys)} if keys else {"kind": "drop"}
    return {"kind": "drop" if len(keys) > 0.9 * np.count_nonzero(codes >= 0) else "category"}


def _draft_number(values: NDArray[np.float64]) -> dict[str, Any]:
    values = np.clip(values[np.isfinite(values)], -9e299, 9e299)  # bounds lie within 1e300
    if not len(values):
        return {"kind": "drop"}
    low, high = round_outward(float(values.min()), float(values.max()))
    return {"kind": "number", "bounds": [low, high]}


def _draft_date(days: NDArray[np.float64]) -> dict[str, Any]:
    days = days[~np.isnan(days)]
    if not len(days):
        return {"kind": "drop"}
    low, high = math.floor(days.min()), math.ceil(days.max())
    return {"kind": "date", "bounds": [day_text(low), day_text(max(high, low + 1))]}


def round_outward(low: float, high: float) -> tuple[float, float]:
    """Round bounds outward to two significant digits of the larger one."""
    largest = max(abs(low), abs(high))
    if largest == 0.0:
        return 0.0, 1.0
    unit = 10.0 ** (math.floor(math.log10(largest)) - 1)
    bounds = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    lower, upper = (float(f"{bound:.12g}") for bound in bounds)
    return (lower, upper) if lower < upper else (lower, lower + unit)
