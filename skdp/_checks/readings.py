"""One cell as a number, as days, or as a key. Every cell can be read: nothing here raises."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.cells import GAP, NUMBER, TIME, float_of, kind_of_cell

MICROSECONDS = 86_400_000_000.0  # of a day
_FAR, _FARTHEST = 1e8, 1e15  # days that fit into microseconds, and into days
_TRUE, _FALSE = {"1", "true", "yes", "y", "t", "on"}, {"0", "false", "no", "n", "f", "off"}


def truth_of(key: str) -> int:
    """Return 1, 0 or -1 for a key."""
    return 1 if key.lower() in _TRUE else 0 if key.lower() in _FALSE else -1


def key_of(cell: Any) -> str | None:
    """Return the text by which a cell is compared with others, None for a gap.

    Numbers of one value have one key, whatever their type, as their text has: 1, 1.0 and "1" are "1". Whole numbers
    beyond 2**53 are those that float64 holds. Time spans are numbers of days. True is "True". Bytes are decoded. None,
    NaN, NA, NaT and "" are gaps.
    """
    if isinstance(cell, str):
        return str.__str__(cell) or None
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace") or None
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    kind = kind_of_cell(type(cell))
    if kind == GAP:
        return None
    if isinstance(cell, datetime.timedelta | np.timedelta64):
        return _number_key(_days_of_span(cell))
    if kind == TIME and not math.isnan(day := days_of(cell)):
        return day_text(day)
    if kind == NUMBER:
        return _number_key(float_of(cell))
    try:
        text = str(cell)
    except Exception:  # somebody's own time zone or class, whose message may quote the cell
        return None
    return None if text == "NaT" else text


def _number_key(value: float) -> str | None:
    if math.isnan(value):
        return None
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def number_of(cell: Any) -> float:
    """Return a cell as a number, NaN for anything else."""
    if isinstance(cell, str | bytes):
        text = key_of(cell) or ""
        try:
            return math.nan if "_" in text else float(text)
        except ValueError:
            return math.nan
    if isinstance(cell, datetime.timedelta | np.timedelta64):
        return _days_of_span(cell)
    return float_of(cell) if kind_of_cell(type(cell)) == NUMBER else math.nan


_EPOCH = datetime.datetime(1970, 1, 1)


def days_of(cell: Any) -> float:
    """Return the days since 1970, in UTC, of a date or of its ISO text; NaN for anything else."""
    if isinstance(cell, str | bytes):
        try:
            cell = datetime.datetime.fromisoformat(key_of(cell) or "")
        except ValueError:
            return math.nan
    moment = _of_numpy(cell, "to_datetime64")
    if isinstance(moment, np.datetime64):
        return float(days_of_array(np.array([moment]))[0])
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        cell = datetime.datetime(cell.year, cell.month, cell.day)
    if not isinstance(cell, datetime.datetime) or kind_of_cell(type(cell)) == GAP:
        return math.nan
    try:
        return _in_days(cell.replace(tzinfo=None) - _EPOCH - (cell.utcoffset() or datetime.timedelta(0)))
    except Exception:  # somebody's own time zone, whose message may quote the cell
        return math.nan


def _days_of_span(cell: Any) -> float:
    span = _of_numpy(cell, "to_timedelta64")
    if span is not None:
        return float(days_of_array(np.array([span]))[0])
    return math.nan if kind_of_cell(type(cell)) == GAP else _in_days(cell)


def _in_days(span: datetime.timedelta) -> float:
    """Return a span in days, rounded as `days_of_array` does."""
    return span.days + (span.seconds * 1_000_000 + span.microseconds) / MICROSECONDS


def _of_numpy(cell: Any, method: str) -> Any:
    """Return a span or a moment of NumPy or pandas, which may have nanoseconds, as one of NumPy; None for any other."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return cell
    try:
        found = getattr(cell, method)()
    except Exception:  # its message may quote the cell
        return None
    return found if isinstance(found, np.datetime64 | np.timedelta64) else None


def days_of_array(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return spans, or moments since 1970, as days, rounded down to microseconds; NaN for NaT."""
    name = "timedelta64" if values.dtype.kind == "m" else "datetime64"
    if np.datetime_data(values.dtype)[0] in ("fs", "as"):  # units of which no int64 holds a day
        values = values.astype(f"{name}[us]")
    days = values.astype(f"{name}[D]")  # by days first: years far away do not fit into microseconds
    rest = (values.astype(f"{name}[us]") - days.astype(f"{name}[us]")).astype(np.int64) / MICROSECONDS
    return np.where(np.isnat(values), np.nan, days.astype(np.int64) + rest)


def day_text(day: float) -> str:
    """Return the ISO text of days since 1970, without the time of day at midnight and beyond 250,000 years."""
    if abs(day) > _FAR:
        return str(np.datetime64(int(np.clip(day, -_FARTHEST, _FARTHEST)), "D"))
    moment = np.datetime64(0, "us") + np.timedelta64(round(day * MICROSECONDS), "us")
    return str(moment).removesuffix("T00:00:00.000000").removesuffix(".000000")


__all__ = ["MICROSECONDS", "day_text", "days_of", "days_of_array", "key_of", "number_of", "truth_of"]
