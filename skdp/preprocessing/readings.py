"""One cell as a number, as days, or as a key. Every cell can be read: nothing here raises."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._fitting.cells import GAP, NUMBER, TIME, kind_of_cell

MICROSECONDS = 86_400_000_000.0  # of a day
_FAR, _FARTHEST = 1e8, 1e15  # days that fit into microseconds, and into days
_TRUE, _FALSE = {"1", "true", "yes", "y", "t", "on"}, {"0", "false", "no", "n", "f", "off"}


def truth_of(key: str) -> int:
    """Return 1, 0 or -1 for a key."""
    return 1 if key.lower() in _TRUE else 0 if key.lower() in _FALSE else -1


def key_of(cell: Any) -> str | None:
    """Return the text by which a cell is compared with others, None for a gap.

    Numbers of one value have one key, whatever their type, as their text has: 1, 1.0 and "1" are "1". Whole numbers
    beyond 2**53 are those that float64 holds. True is "True". Bytes are decoded. None, NaN, NA, NaT and "" are gaps.
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
    if kind == TIME and not math.isnan(day := days_of(cell)):
        return day_text(day)
    if kind == NUMBER:
        return _number_key(_float(cell))
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
    if isinstance(cell, datetime.timedelta):
        try:
            return cell / datetime.timedelta(days=1)
        except Exception:  # a span of pandas that does not fit into microseconds
            cell = _of_numpy(cell, "to_timedelta64")
    if isinstance(cell, np.timedelta64):
        span = cell.astype("timedelta64[us]").astype(np.int64)
        return math.nan if np.isnat(cell) else float(span / MICROSECONDS)
    return _float(cell) if kind_of_cell(type(cell)) == NUMBER else math.nan


def _float(cell: Any) -> float:
    """Return a number as a float. Nothing may raise here: rows are transformed after the charge too."""
    try:
        return float(cell)
    except OverflowError:  # beyond float64
        return math.inf if cell > 0 else -math.inf
    except Exception:  # a signalling NaN, or somebody's own number, whose message may quote it
        return math.nan


_EPOCH = datetime.datetime(1970, 1, 1)


def days_of(cell: Any) -> float:
    """Return the days since 1970, in UTC, of a date or of its ISO text; NaN for anything else."""
    if isinstance(cell, str | bytes):
        try:
            cell = datetime.datetime.fromisoformat(key_of(cell) or "")
        except ValueError:
            return math.nan
    if isinstance(cell, np.datetime64):
        return float(days_of_array(np.array([cell]))[0])
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        cell = datetime.datetime(cell.year, cell.month, cell.day)
    if not isinstance(cell, datetime.datetime) or kind_of_cell(type(cell)) == GAP:
        return math.nan
    try:
        shift = cell.utcoffset() or datetime.timedelta(0)
        return float((cell.replace(tzinfo=None) - _EPOCH - shift) / datetime.timedelta(days=1))
    except Exception:  # somebody's own time zone, or a moment of pandas that does not fit into microseconds
        cell = _of_numpy(cell, "to_datetime64")
    return math.nan if cell is None else float(days_of_array(np.array([cell]))[0])


def _of_numpy(cell: Any, method: str) -> Any:
    """Return a cell of pandas as one of NumPy, None for any other, whose message may quote it."""
    try:
        found = getattr(cell, method)()
    except Exception:
        return None
    return found if isinstance(found, np.datetime64 | np.timedelta64) else None


def days_of_array(values: NDArray[Any]) -> NDArray[np.float64]:
    if np.datetime_data(values.dtype)[0] in ("fs", "as"):  # units of which no int64 holds a day
        values = values.astype("datetime64[us]")
    days = values.astype("datetime64[D]")  # by days first: years far away do not fit into microseconds
    rest = (values.astype("datetime64[us]") - days.astype("datetime64[us]")).astype(np.int64) / MICROSECONDS
    return np.where(np.isnat(values), np.nan, days.astype(np.int64) + rest)


def day_text(day: float) -> str:
    """Return the ISO text of days since 1970, without the time of day at midnight and beyond 250,000 years."""
    if abs(day) > _FAR:
        return str(np.datetime64(int(np.clip(day, -_FARTHEST, _FARTHEST)), "D"))
    moment = np.datetime64(0, "us") + np.timedelta64(round(day * MICROSECONDS), "us")
    return str(moment).removesuffix("T00:00:00.000000").removesuffix(".000000")


__all__ = ["MICROSECONDS", "day_text", "days_of", "days_of_array", "key_of", "number_of", "truth_of"]
