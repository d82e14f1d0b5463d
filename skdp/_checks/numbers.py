"""Cells of private input: which of them are numbers, and error messages without their values.

No error is raised while another exception is handled, because a chained exception could quote private values.
"""

from __future__ import annotations

import datetime
import itertools
import math
import numbers
import re
from array import array
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from types import NoneType
from typing import Any, NoReturn, TypeVar

import numpy as np
import scipy.sparse as sp
from narwhals.stable.v2.dependencies import is_into_dataframe, is_pyarrow_table

from skdp._checks.frames import column_of, in_memory

Value = TypeVar("Value")
NUMBER, GAP, COMPLEX, TIME, STRING, OTHER = range(6)
KIND_OF_DTYPE = {"b": NUMBER, "i": NUMBER, "u": NUMBER, "f": NUMBER, "c": COMPLEX, "M": TIME, "m": TIME,
         "U": STRING, "S": STRING, "T": STRING}  # fmt: skip
"""Kinds of cells by the letter of NumPy's dtypes. Other letters are `OTHER`; for "O" each cell has its own kind."""

_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_REALS = (numbers.Real, Decimal, np.bool_)
_FLOATED_BY_NUMPY = {float, int, bool, NoneType, np.bool_, np.float64, np.float32, np.int64, np.int32}
"""Types of cells of which NumPy, in a loop of its own, makes the float that `float_of` makes, and NaN of None."""


def values_of(name: str, given: Any) -> np.ndarray:
    """Return `given` as an array in which every cell keeps its value, independently of other cells.

    Arrays, series and columns have a type, which is public. A list has none, and NumPy would choose one by looking at
    all cells: a missing value would turn ``True`` among numbers from 1 into "True", and a time in nanoseconds would
    overflow for the year 9999, in all rows. So the cells of a list stay objects. Only lists whose cells all have the
    type ``float``, or ``int`` within 64 bits, and lists of arrays of one numeric dtype, become numeric arrays, with the
    same values.
    """
    if type(given) is np.ndarray:
        return given
    given = in_memory(given, name)
    if is_into_dataframe(given) and given.shape[1] == 1:
        return values_of(name, column_of(given, 0)).reshape(-1, 1)
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):
        raise ValueError(
            f"Input {name} contains NaN: masked values are treated as missing. Remove or impute them first."
        )
    if sp.issparse(given):
        raise TypeError(f"{name} is sparse, but sparse data are not supported here. Pass {name}.toarray().")
    values = or_none(lambda: np.asarray(decoded(given)) if _has_dtype(type(given)) else _array_of_cells(given))
    if values is None:
        raise ValueError(f"{name} must be a numeric array, got rows of different lengths or nested cells.")
    if _has_dtype(type(given)) and values.ndim == 1 and values.dtype == float and (np.abs(values) >= 2.0**53).any():
        column = decoded(given)
        cells = list(column.to_pylist() if hasattr(column, "to_pylist") else column)
        if any(isinstance(cell, int | np.integer) for cell in cells):  # which NumPy rounds if there is a missing value
            return np.array([*cells, None], dtype=object)[:-1]
    return values


def or_none(function: Callable[..., Value | None], *given: Any) -> Value | None:
    """Return ``function(*given)``, or None if it fails: its message may contain a private value."""
    try:
        return function(*given)
    except MemoryError:
        raise
    except Exception:
        return None


def _has_dtype(kind: type) -> bool:
    """Whether objects of a type are arrays, of any library, with one dtype for all of their cells."""
    return hasattr(kind, "__array__") or issubclass(kind, array | memoryview)


def _array_of_cells(given: Any) -> np.ndarray | None:
    """Return a cell, or a list of lists or arrays, as an array; None if its rows differ in length."""
    if hasattr(given, "__len__") and hasattr(given, "__getitem__") and not isinstance(given, str | bytes | Mapping):
        kinds = set(map(type, given))
        if kinds and all(map(_has_dtype, kinds)):
            given = list(map(decoded, given))
            same = np.asarray(given) if len({np.asarray(each).dtype for each in given}) == 1 else None
            if same is not None and same.dtype.kind in "biuf" and not any(map(np.ma.isMaskedArray, given)):
                return same
        if kinds and kinds <= {list, tuple}:  # of what is in the rows of a list
            kinds = set(map(type, itertools.chain.from_iterable(given)))
        if (numbers_alone := typed_cells(given, kinds)) is not None:
            return numbers_alone
        if any(map(_holds_cells, kinds)):
            given = [_unpacked(each) if _holds_cells(type(each)) else each for each in given]
    values = np.asarray(given, dtype=object)
    cells = values.ravel().tolist()
    kinds = set(map(type, cells))
    if any(map(_holds_cells, kinds)):
        return None
    numbers_alone = typed_cells(cells, kinds)
    return values if numbers_alone is None else numbers_alone.reshape(values.shape)


def _unpacked(given: Any) -> Any:
    """Return nested lists and arrays as nested lists, of which NumPy takes every cell as it is.

    Of an array among them NumPy would take spans and moments as integers.
    """
    if not _has_dtype(type(given)):
        return [_unpacked(each) if _holds_cells(type(each)) else each for each in given]
    values = np.asarray(decoded(given))
    if np.ma.isMaskedArray(given):
        hidden = np.ma.getmaskarray(given)
        values = np.fromiter(values.flat, object, values.size).reshape(values.shape)  # of NumPy's scalars
        values[hidden] = None
    if values.ndim == 0:
        return values[()]
    return list(values) if values.ndim == 1 else list(map(_unpacked, values))


def _holds_cells(kind: type) -> bool:
    """Whether cells of a type are lists or arrays of cells."""
    return issubclass(kind, list | tuple) or (_has_dtype(kind) and not issubclass(kind, np.generic))


def typed_cells(cells: Any, kinds: set[type]) -> np.ndarray | None:
    """Return a list of cells, or of rows, as an array of numbers if each cell is read from it as alone, else None.

    `kinds` are the types of the cells.

    That is so if all are exactly ``float``, or exactly ``int`` within 64 bits. ``True`` is an ``int`` with a key of its
    own, and one 1.5 would turn 2**53 + 1 into 2**53.
    """
    try:
        if kinds == {float}:
            return np.array(cells, np.float64)
        return np.array(cells, np.int64) if kinds == {int} else None
    except OverflowError:
        return None


def shape_of(name: str, given: Any) -> tuple[int, ...]:
    """Return the shape of a table or of labels, without a look at cells where it is known."""
    return tuple(given.shape) if hasattr(given, "shape") else values_of(name, given).shape


def decoded(column: Any) -> Any:
    """Return a column or table of Arrow with its cells in the place of positions in a dictionary; others as they are.

    Arrow hands NumPy the last entry of the dictionary for a missing value.
    """
    if is_pyarrow_table(column):
        return column.from_arrays(list(map(decoded, column.columns)), column.column_names)
    kind: Any = getattr(column, "type", None)
    return column.cast(kind.value_type) if str(kind).startswith("dictionary<") else column


def numbers_of(values: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the worst kind of cell in an array and, if it is `NUMBER`, the values, with NaN for missing ones."""
    if values.dtype.kind != "O":
        return KIND_OF_DTYPE.get(values.dtype.kind, OTHER), values
    cells = values.ravel().tolist()
    types = set(map(type, cells))
    kinds = {kind: kind_of_cell(kind) for kind in types}
    fault = max((each for each in kinds.values() if each > GAP), default=NUMBER)
    if fault != NUMBER:
        return fault, values
    if types <= _FLOATED_BY_NUMPY:
        try:
            return NUMBER, values.astype(np.float64)
        except OverflowError:
            pass
    found = (math.nan if kinds[type(cell)] == GAP else float_of(cell) for cell in cells)
    return NUMBER, np.fromiter(found, np.float64, len(cells)).reshape(values.shape)


def kind_of_cell(kind: type) -> int:
    """Return the kind of cells of a Python type."""
    if kind is NoneType or kind.__name__ in ("NAType", "NaTType"):
        return GAP
    if issubclass(kind, _TIMES):  # asked first: NumPy's time spans are registered as integers
        return TIME
    if issubclass(kind, _REALS):
        return NUMBER
    if issubclass(kind, numbers.Complex):
        return COMPLEX
    return STRING if issubclass(kind, str | bytes) else OTHER


def float_of(cell: Any) -> float:
    """Return a number as a float. Nothing may raise here: rows are transformed after the charge too."""
    try:
        try:
            return float(cell)
        except OverflowError:  # an integer beyond float64
            return math.inf if cell > 0 else -math.inf
    except Exception:  # a signalling NaN, or somebody's own number, whose message may quote it
        return math.nan


def reject(fault: int, name: str, where: str = "") -> NoReturn:
    """Raise the error for cells of a kind that is not accepted."""
    if fault == COMPLEX:
        raise ValueError(f"Complex data not supported: {name} contains complex numbers{where}. Pass real numbers.")
    if fault == TIME:
        raise ValueError(
            f"{name} contains dates or times{where}. "
            + _or_pipeline(where, "convert them to numbers first, for example to years since a public date.")
        )
    if fault == STRING:
        raise ValueError(
            f"{name} contains strings{where}. "
            + _or_pipeline(where, "encode them as numbers first, with a public list of categories.")
        )
    raise TypeError(
        f"{name} contains values that are not numeric{where}: float's argument must be a string or a real number."
    )


def reject_not_finite(name: str, *, nan: bool, where: str = "") -> NoReturn:
    """Raise the error for NaN or infinity."""
    if nan:
        remedy = "remove or impute missing values first, with public values only."
        remedy = "Remove these rows first." if name == "y" else _or_pipeline(where, remedy)
        raise ValueError(f"Input {name} contains NaN{where}. {remedy}")
    raise ValueError(f"Input {name} contains infinity or a number too large for its dtype{where}. Clip it first.")


def _or_pipeline(where: str, remedy: str) -> str:
    """Return a remedy for cells that only some estimators reject, with the alternative for columns of a table."""
    return f"Use skdp.tabular_pipeline, which accepts them, or {remedy}" if where else remedy.capitalize()


def format_names(names: Iterable[Any]) -> str:
    """Format names of columns in one line."""
    shown = [" ".join(repr(name).split()) for name in names]
    return ", ".join([*shown[:5], *(["..."] if len(shown) > 5 else [])])


def all_finite(values: np.ndarray) -> bool:
    """Whether all values are finite.

    One sum decides in most cases, as it is finite only if all of its terms are. It may overflow even so, and then the
    values are checked block by block.
    """
    if values.dtype.kind != "f":
        return True
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):
            return True
    return all(np.isfinite(block).all() for block in blocks(values))


def blocks(values: np.ndarray) -> Iterable[np.ndarray]:
    """Iterate over blocks of rows that stay in cache."""
    step = max(1, (1 << 16) // max(1, math.prod(values.shape[1:])))
    return (values[start : start + step] for start in range(0, len(values), step))


MICROSECONDS = 86_400_000_000.0  # of a day
_LARGEST_EXACT = 2**128
_FAR, _FARTHEST = 1e8, 1e15  # days that fit into microseconds, and into days


def truth_of(key: str) -> int:
    """Return 1, 0 or -1 for a key."""
    if key.lower() in {"1", "true", "yes", "y", "t", "on"}:
        return 1
    return 0 if key.lower() in {"0", "false", "no", "n", "f", "off"} else -1


def key_of(cell: Any) -> str | None:
    """Return the text by which a cell is compared with others, None for a missing value.

    Numbers of equal value have the same key, whatever their type, and so does their text: 1, 1.0 and "1" are "1".
    Integers up to 2**128 are exact. Time spans are numbers of days. True is "True". Bytes are decoded. None, NaN, NA,
    NaT and "" are missing values.
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
        if hasattr(cell, "closed_left") and kind_of_cell(type(cell.left)) == NUMBER:  # an interval of pandas
            text = f"{text[0]}{key_of(cell.left)}, {key_of(cell.right)}{text[-1]}"
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

    In strings, thousands separators and signs of currency and percent are ignored: "$1,234" is 1234 and "12%" is 12.
    Numbers in parentheses are negative, as in accounting. A comma is not a decimal point: "12,5" is NaN.
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


_IN_A_DAY = {"h": 24, "m": 1_440, "s": 86_400} | {
    unit: 86_400 * 10**power for unit, power in {"ms": 3, "us": 6, "ns": 9, "ps": 12}.items()
}


def days_of_array(values: np.ndarray) -> np.ndarray:
    """Return spans, or moments since 1970, as days, rounded down to microseconds; NaN for NaT.

    NumPy converts between units with an error, or with other bits, for what the new unit cannot hold. So hours and
    shorter units are divided as integers. Longer units give whole days, and far years are at the end.
    """
    unit, count = np.datetime_data(values.dtype)
    name, missing = "timedelta64" if values.dtype.kind == "m" else "datetime64", np.isnat(values)
    if unit in ("fs", "as"):  # of which no int64 holds a day
        values, unit, count = values.astype(f"{name}[us]"), "us", 1
    most = np.iinfo(np.int64).max if unit in _IN_A_DAY else int(_FARTHEST) // 400
    units = np.clip(values.astype(np.int64), -(most // count), most // count) * count
    if unit not in _IN_A_DAY:
        return np.where(missing, np.nan, units.astype(f"{name}[{unit}]").astype(f"{name}[D]").astype(np.int64))
    size = _IN_A_DAY[unit]
    days, rest = np.divmod(units, size)
    rest = rest * (MICROSECONDS // size) if size < MICROSECONDS else rest // (size // MICROSECONDS)
    return np.where(missing, np.nan, days + rest / MICROSECONDS)


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
