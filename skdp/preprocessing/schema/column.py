"""Public description of one column: type, bounds or edges, categories, scale and missing values."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from skdp._checks.numbers import day_text, days_of, key_of, moment_of_text

DATE_PARTS = {
    "month": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "weekday": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}
"""Levels of each part of a date, in order."""


def levels_of_days(part: str, days: np.ndarray) -> np.ndarray:
    """Return the level of each day, a number of days since 1970-01-01; missing days get the last level, after "other".

    Parameters
    ----------
    part : str
        One of `DATE_PARTS`.
    days : ndarray of shape (n,)

    Returns
    -------
    levels : ndarray of shape (n,)
    """
    missing_values = np.isnan(days)
    whole = np.floor(np.where(missing_values, 0.0, days)).astype(np.int64)
    if part == "month":
        levels = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    else:
        levels = (whole + 3) % 7  # 1970-01-01 was a Thursday
    return np.where(missing_values, len(DATE_PARTS[part]) + 1, levels).astype(np.int32)


KINDS = ("number", "category", "ordinal", "flag", "date", "drop")
_ENTRIES = {
    "number": ("bounds", "edges", "scale", "missing_values"),
    "date": ("bounds", "edges", "format", "features", "missing_values"),
    "category": ("categories", "other", "missing_values"),
    "ordinal": ("categories", "other", "missing_values"),
    "flag": ("missing_values",),
    "drop": (),
}


@dataclass(frozen=True)
class Column:
    """One column of a schema.

    Attributes
    ----------
    kind : {"number", "category", "ordinal", "flag", "date", "drop"}
    bounds : (float, float) or None
        Bounds of a number or a date; for a date, days since 1970.
    categories : tuple of str or None
        Keys of the cells, see ``skdp._checks.numbers.key_of``.
    edges : tuple of float or None
        Bin edges including the bounds; None for bins of equal width.
    scale : {"linear", "log"}
    missing_values : tuple of str
        Keys of cells that represent a missing value; "" if cells can be empty.
    form : str
        Format of dates that are strings, as for `datetime.datetime.strptime`; "" for ISO.
    other : str or None
        Key of the cell that represents unlisted categories, if needed; it can be listed too. None if unknown.
    features : tuple of {"month", "weekday"}
        Parts of a date that are encoded as categories.
    """

    kind: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None
    edges: tuple[float, ...] | None = None
    scale: str = "linear"
    missing_values: tuple[str, ...] = ()
    form: str = ""
    other: str | None = None
    features: tuple[str, ...] = ()

    @property
    def is_estimated(self) -> bool:
        """Whether bounds or categories must be estimated privately."""
        if self.kind in ("number", "date"):
            return self.bounds is None
        return self.kind in ("category", "ordinal") and self.categories is None

    @property
    def may_be_skewed(self) -> bool:
        """Whether only the bounds of a number are public, so that most values may lie in a small part of the range."""
        return self.kind == "number" and self.bounds is not None and self.edges is None and self.scale == "linear"

    def is_wanted(self, fits_bins: bool) -> bool:
        """Whether something is estimated privately, as far as public information determines it."""
        return self.is_estimated or (fits_bins and self.may_be_skewed)

    def describe(self) -> dict[str, Any]:
        """Return the entries of this column, in a form that JSON can represent."""

        def show(end: float) -> Any:
            if self.kind == "date":
                return day_text(end)
            return int(end) if end.is_integer() and abs(end) < 1e15 else end

        ends = self.bounds if self.edges is None else self.edges
        found = {
            "bounds" if self.edges is None else "edges": None if ends is None else [show(end) for end in ends],
            "categories": None if self.categories is None else list(self.categories),
            "scale": None if self.scale == "linear" else self.scale,
            "other": self.other,
            "format": self.form or None,
            "features": list(self.features) or None,
            "missing_values": list(self.missing_values) or None,
        }
        return {"kind": self.kind, **{key: value for key, value in found.items() if value is not None}}


def read_column(name: str, given: Any) -> Column:
    """Return the column from user input, a dictionary or a shorthand."""
    if isinstance(given, Column):
        return _read_again(name, given)
    if isinstance(given, Mapping):
        return _read_entries(name, given)
    if isinstance(given, str):
        return _read_entries(name, {"kind": given})
    if isinstance(given, tuple) and len(given) == 2:
        return _read_entries(name, {"bounds": given})
    if isinstance(given, tuple):
        raise ValueError(
            f"Column {name!r} must be a pair (low, high) of bounds or a list of categories, got a tuple of "
            f"{len(given)} entries."
        )
    if isinstance(given, list | range | np.ndarray) or type(given).__name__ == "Index":
        return _read_entries(name, {"categories": given})
    _reject(
        name, f"{_show(given)} is not a valid description", "Pass (low, high), a list of categories, a type or a dict"
    )


def _read_again(name: str, column: Column) -> Column:
    """Return a column made by hand, with plain fields: objects in it would be handed the rows by NumPy."""
    is_date = isinstance(column.kind, str) and column.kind == "date"
    entries: dict[str, Any] = {"kind": "number" if is_date else column.kind}  # ends of dates are days here
    entries |= {"bounds": column.bounds} if column.edges is None else {"edges": column.edges}
    entries |= {"categories": column.categories, "other": column.other, "missing_values": column.missing_values or None}
    entries |= {} if column.scale == "linear" else {"scale": column.scale}
    found = _read_entries(name, {key: value for key, value in entries.items() if value is not None})
    form = _read_format(name, column.form) if is_date and column.form != "" else ""
    return replace(found, kind="date", form=form, features=_read_features(name, column.features)) if is_date else found


def _read_entries(name: str, given: Mapping[Any, Any]) -> Column:
    entries = dict(given)
    kind = entries.pop("kind", None)
    if kind is None:
        kind = _guess_kind(name, entries)
    if not isinstance(kind, str) or kind not in KINDS:
        _reject(name, f"unknown type {_show(kind)}", f"Use one of {', '.join(map(repr, KINDS))}")
    for key in entries:
        if key not in _ENTRIES[kind]:
            known = ", ".join(("kind", *_ENTRIES[kind]))
            _reject(name, f"{_show(key)} is not a valid key for the type {kind!r}", f"Use {known}")
    # Read the entries one by one; errors name the entry.
    bounds, edges = _read_ends(name, kind, entries)
    categories = entries.get("categories")
    keys = {_key(each) or "" for each in _items(name, "missing_values", entries.get("missing_values", ()))}
    missing_values = tuple(sorted(keys))  # None, NaN and "" declare that cells can be empty
    if kind == "ordinal" and categories is None:
        _reject(name, "ordinal columns must have categories", "List them in their order")
    scale = entries.get("scale", "linear")
    if not isinstance(scale, str) or scale not in ("linear", "log"):
        _reject(name, f"unknown scale {_show(scale)}", "Use 'linear' or 'log'")
    listed = None if categories is None else _read_categories(name, categories, missing_values)
    if listed == () and "kind" not in given:  # with a kind, no category was released
        _reject(name, "the list of categories is empty", "List some, or use the type 'drop'")
    form = _read_format(name, entries["format"]) if "format" in entries else ""
    other = None if entries.get("other") is None else _key(entries["other"])
    if "other" in entries and (other is None or other in missing_values):
        _reject(
            name,
            f"other={_show(entries['other'])} is a missing value",
            "Use a value for the other categories, such as 'other'",
        )
    features = _read_features(name, entries.get("features", ()))
    return Column(kind, bounds, listed, edges, scale, missing_values, form, other, features)


def _guess_kind(name: str, entries: Mapping[Any, Any]) -> str:
    if "categories" in entries:
        return "category"
    ends = entries.get("edges", entries.get("bounds"))
    if isinstance(ends, tuple | list | np.ndarray) and len(ends):
        return "date" if all(_is_date(end) for end in ends) else "number"
    _reject(name, "the type is missing", f"Add 'kind', one of {', '.join(map(repr, KINDS))}")


def _is_date(value: Any) -> bool:
    return isinstance(value, str | datetime.date | np.datetime64)


# --- numbers and dates ---


def _read_ends(
    name: str, kind: str, entries: Mapping[Any, Any]
) -> tuple[tuple[float, float] | None, tuple[float, ...] | None]:
    bounds, edges = entries.get("bounds"), entries.get("edges")
    if edges is not None:
        if bounds is not None:
            _reject(
                name, "bounds and edges are both set", "Set one of them: the first and the last edge are the bounds"
            )
        found = tuple(_read_end(name, kind, "edges", end) for end in _items(name, "edges", edges))
        if len(found) < 2 or any(low >= high for low, high in itertools.pairwise(found)):
            _reject(name, f"edges={_show_all(edges)} must be ascending", "Pass at least two increasing numbers")
        return (found[0], found[-1]), found
    if bounds is None:
        return None, None
    pair = _items(name, "bounds", bounds)
    if len(pair) != 2:
        _reject(name, f"bounds={_show_all(bounds)} must be a pair", "Pass (low, high)")
    low, high = (_read_end(name, kind, "bounds", end) for end in pair)
    if low >= high:
        _reject(name, f"bounds={_show_all(bounds)} must be ascending", "Pass (low, high) with low < high")
    return (low, high), None


def _read_end(name: str, kind: str, entry: str, value: Any) -> float:
    if kind == "date":
        found = days_of(value) if _is_date(value) else math.nan
        remedy = "Pass dates, or strings such as '2024-01-31'"
    else:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
        found = float(value) if is_number and abs(value) <= 1e300 else math.nan
        remedy = "Pass finite numbers, or categories as a list [...]"
    if math.isnan(found):
        _reject(name, f"{_show(value)} in {entry} is not a {kind}", remedy)
    return found


def _read_format(name: str, given: Any) -> str:
    day, found = datetime.datetime(2003, 2, 1), None
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            found = moment_of_text(day.strftime(given), given)
    if found is None or found.year != day.year:
        _reject(name, f"invalid date format {_show(given)}", "Use a strptime format with the year, such as '%d.%m.%Y'")
    return str.__str__(given)


def _read_features(name: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) and each in DATE_PARTS for each in given):
        _reject(name, f"unknown features={_show(given)}", f"Use a list of {', '.join(map(repr, DATE_PARTS))}")
    return tuple(part for part in DATE_PARTS if part in given)


# --- categories and missing values ---


def _read_categories(name: str, given: Any, missing_values: tuple[str, ...]) -> tuple[str, ...]:
    keys: dict[str, None] = {}  # in order; looked up by their hash, since there may be thousands
    empty = frozenset(missing_values)
    for each in _items(name, "categories", given):
        key = _key(each)
        if key is None or key in empty:
            _reject(
                name,
                f"the category {_show(each)} is a missing value",
                "Remove it: missing values have their own category",
            )
        if key in keys:
            _reject(name, f"duplicate category {_show(each)}", "List each category once (1 and '1' are equal)")
        keys[key] = None
    return tuple(keys)


def _key(value: Any) -> str | None:
    if isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray):
        return None
    return key_of(value)


def _items(name: str, entry: str, given: Any) -> list[Any]:
    if isinstance(given, list | tuple | range | np.ndarray) or type(given).__name__ in ("Index", "Series"):
        return list(given)
    _reject(name, f"{entry}={_show(given)} must be a list", f"Pass {entry} as a list")


# --- metadata of SmartNoise ---

_TYPES = {"int": "number", "float": "number", "string": "category", "boolean": "flag", "datetime": "date"}


def read_smartnoise(found: Any) -> dict[str, dict[Any, Any]]:
    """Return the entries of all columns of each table, by its name. The collection may name an engine."""
    schemas = [each for _, collection in _mappings(found) for each in _mappings(collection)]
    tables = [(f"{schema}.{name}", table) for schema, named in schemas for name, table in _mappings(named)]
    return {name: {key: _read_type(key, each) for key, each in _mappings(table)} for name, table in tables}


def _mappings(found: Any) -> list[tuple[Any, Mapping[Any, Any]]]:
    return [pair for pair in (found.items() if isinstance(found, Mapping) else ()) if isinstance(pair[1], Mapping)]


def _read_type(name: Any, given: Mapping[Any, Any]) -> dict[str, Any]:
    kind, ends = str(given.get("type")), [given.get("lower"), given.get("upper")]
    if kind == "unknown" or given.get("private_id"):
        return {"kind": "drop"}
    if kind not in _TYPES:
        _reject(name, f"unknown type {_show(kind)}", f"Use one of {[*_TYPES]}, or 'unknown' to drop it")
    missing_values = {} if given.get("nullable") is False else {"missing_values": [None]}
    return {"kind": _TYPES[kind], **missing_values, **({} if None in ends else {"bounds": ends})}


# --- messages ---


def _reject(name: str, what: str, remedy: str) -> NoReturn:
    raise ValueError(f"Invalid schema of column {_show(name)}: {what}. {remedy}.")


def _show(value: Any) -> str:
    if isinstance(value, str | bytes | numbers.Number | datetime.date | np.generic) or value is None:
        shown = " ".join(repr(value).split())
        return shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"<{type(value).__name__}>"


def _show_all(values: Any) -> str:
    shown = [_show(value) for value in list(values)[:4]]
    return f"({', '.join(shown)}{', ...' if len(values) > 4 else ''})"
