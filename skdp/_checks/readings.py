"""One cell as a number, as days, or as a key. Every cell can be read: nothing here raises."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.cells import GAP, NUMBER, TIME, float_of, kind_of_cell

MICROSECONDS = 86_400_000_000.0  # of a day
_LARGEST_EXACT = 2**128
_FAR, _FARTHEST = 1e8, 1e15  # days that fit into microseconds, and into days
_TRUE, _FALSE = {"1", "true", "yes", "y", "t", "on"}, {"0", "false", "no", "n", "f", "off"}


def truth_of(key: str) -> int:
    """Return 1, 0 or -1 for a key."""
    return 1 if key.lower() in _TRUE else 0 if key.lower() in _FALSE else -1


def key_of(cell: Any) -> str | None:
    """Return the text by which a cell is compared with others, None for a gap.

    Numbers of one value have one key, whatever their type, as their text has: 1, 1.0 and "1" are "1". Integers up to
    2**128 are exact. Time spans are numbers of days. True is "True". Bytes are decoded. None,
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
        is_integer = type(cell) is int or isinstance(cell, np.integer)
        is_exact = is_integer and abs(int(cell)) <= _LARGEST_EXACT
        return str(int(cell)) if is_exact else _number_key(float_of(cell))
    try:
        text = str(cell)
    except Exception:  # somebody's own time zone or class, whose message may quote the cell
        return None
    return None if text == "NaT" else text


def _number_key(value: float) -> str | None:
    if math.isnan(value):
        return None
    return str(int(value)) if value.is_integer() and abs(value) <= _LARGEST_EXACT else repr(value)


_CURRENCY = "$\xa2-\xa5\u058f\u060b\u0e3f\u20a0-\u20cf\ufdfc"
_GROUPED = r"[0-9]{1,3}(?P<mark>[,'\u2019 \xa0\u2009\u202f])[0-9]{3}(?:(?P=mark)[0-9]{3})*(?:\.[0-9]*)?"
_WRITTEN = re.compile(
    rf"(?P<sign>[-+\u2212]?)\s*[{_CURRENCY}]?\s*(?P<inner>[-+\u2212]?)\s*"
    rf"(?P<number>{_GROUPED}|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*[{_CURRENCY}%\u2030]?"
)
"""A number as people write it: a point before decimals, one mark between groups of three digits, a sign of currency."""


def number_of(cell: Any) -> float:
    """Return a cell as a number, NaN for anything else.

    Of text thousands separators are left out, and signs of currency and percent: "$1,234" is 1234 and "12 %" is 12.
    What is in parentheses is negative, as accountants write. A comma is no decimal point: "12,5" is no number.
    """
    if isinstance(cell, str | bytes):
        text = key_of(cell) or ""
        try:
            return math.nan if "_" in text else float(text)
        except ValueError:
            return _written_number(text.strip())
    if isinstance(cell, datetime.timedelta | np.timedelta64):
        return _days_of_span(cell)
    return float_of(cell) if kind_of_cell(type(cell)) == NUMBER else math.nan


def _written_number(text: str) -> float:
    in_brackets = text.startswith("(") and text.endswith(")")
    found = _WRITTEN.fullmatch(text[1:-1].strip() if in_brackets else text)
    signs = "" if found is None else found["sign"] + found["inner"]
    if found is None or len(signs) + in_brackets > 1:
        return math.nan
    number = float(re.sub(r"[^0-9.]", "", found["number"]))
    return -number if in_brackets or signs in ("-", "\u2212") else number


_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (float((end - _EPOCH).days) for end in (datetime.datetime.min, datetime.datetime.max))


def days_of(cell: Any, form: str = "") -> float:
    """Return the days since 1970, in UTC, of a date or of its text; NaN for anything else.

    Text is read by the format `form` of `datetime.datetime.strptime`, if there is one, and else as ISO has it.
    """
    if isinstance(cell, str | bytes):
        cell = moment_of_text(key_of(cell) or "", form)
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


def moment_of_text(text: str, form: str = "") -> datetime.datetime | None:
    """Return the moment that a text names, by a format or as ISO has it, None for anything else."""
    if form:
        try:
            return datetime.datetime.strptime(text, form)
        except (ValueError, OverflowError, re.error):
            pass
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


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


def days_of_array(values: np.ndarray) -> NDArray[np.float64]:
    """Return spans, or moments since 1970, as days, rounded down to microseconds; NaN for NaT."""
    name = "timedelta64" if values.dtype.kind == "m" else "datetime64"
    if np.datetime_data(values.dtype)[0] in ("fs", "as"):  # units of which no int64 holds a day
        values = values.astype(f"{name}[us]")
    days = values.astype(f"{name}[D]")  # by days first: years far away do not fit into microseconds
    rest = (values.astype(f"{name}[us]") - days.astype(f"{name}[us]")).astype(np.int64) / MICROSECONDS
    return np.where(np.isnat(values), np.nan, days.astype(np.int64) + rest)


def day_text(day: float, form: str = "") -> str:
    """Return the ISO text of days since 1970, without the time of day at midnight and beyond 250,000 years.

    With a format of `datetime.datetime.strftime` it is that text, of days of the years 1 to 9999.
    """
    if form and _FIRST_DAY <= day < _LAST_DAY:
        return (_EPOCH + datetime.timedelta(days=day)).strftime(form)
    if abs(day) > _FAR:
        return str(np.datetime64(int(np.clip(day, -_FARTHEST, _FARTHEST)), "D"))
    moment = np.datetime64(0, "us") + np.timedelta64(round(day * MICROSECONDS), "us")
    return str(moment).removesuffix("T00:00:00.000000").removesuffix(".000000")
