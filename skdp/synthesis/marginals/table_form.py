"""A table as levels, and levels as a table again, of the library and with the types of the private one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from skdp._checks.frames import column_of, letter_of, library_of, new_frame, type_of
from skdp._checks.numbers import day_text, days_of, format_names, key_of, number_of, truth_of
from skdp._checks.table import Table
from skdp.preprocessing.schema.blocks import Block
from skdp.preprocessing.schema.column import Column
from skdp.synthesis.marginals.column_levels import EVERYWHERE, Ends, LevelColumn
from skdp.synthesis.marginals.contingency_tables import Interaction

_MICROSECONDS = 86_400_000_000
_MOST_DAYS = 106_000.0
"""Approximate number of days that nanoseconds reach before and after 1970."""


class TableForm(NamedTuple):
    """How a table becomes levels, and the form of the result. All of it is public.

    Attributes
    ----------
    columns : tuple of LevelColumn
        In the order of the table, without dropped columns.
    library : {"numpy", "pandas", "polars", "pyarrow"}
    dtypes : tuple
        Types of these columns; one for all of an array.
    labels : tuple
        Names of these columns in a pandas frame, which need not be strings.
    wholes : frozenset of int
        Columns of a non-integer type whose numbers are integers, by a release.
    lost : frozenset of int
        Columns without values that are distinguishable from the noise: all of their cells are missing.
    """

    columns: tuple[LevelColumn, ...]
    library: str
    dtypes: tuple[Any, ...]
    labels: tuple[Any, ...] = ()
    wholes: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.block.name for column in self.columns]

    def read(self, table: Table) -> list[np.ndarray]:
        """Return the levels of each column."""
        return [column.read(table.cells(column.block.position)) for column in self.columns]

    def cut(self) -> TableForm:
        """Return a form whose columns of numbers have cells within their bins."""
        cut = (each.cut(self.is_whole(j)) if each.block.is_line else each for j, each in enumerate(self.columns))
        return self._replace(columns=tuple(cut))

    def read_cells(self, table: Table) -> dict[int, np.ndarray]:
        """Return the cells of numbers, by position of their column among these, for columns that have such."""
        return {
            j: column.shapes.read(column.block.codes(table.cells(column.block.position)))
            for j, column in enumerate(self.columns)
            if column.shapes is not None and column.n_cells > 1
        }

    def shaped(self, noisy: Mapping[int, Interaction]) -> TableForm:
        """Return a form in which numbers within bins follow noisy counts of their cells; uniform without any."""
        columns = []
        for j, column in enumerate(self.columns):
            shapes = column.shapes if j in noisy else None
            if shapes is not None:
                counts = noisy[j].values[: len(shapes.bins)] + 1.0 / noisy[j].values.size
                shapes = shapes.fitted(counts, noisy[j].deviation)
            columns.append(column._replace(shapes=shapes))
        return self._replace(columns=tuple(columns))

    def is_whole(self, j: int) -> bool:
        """Whether a column has integers: by its type or by a release; dates are days."""
        is_date = self.columns[j].block.column.kind == "date"
        return letter_of(self.dtypes[j]) in "iub" or is_date or j in self.wholes

    def read_fractions(self, table: Table) -> dict[int, np.ndarray]:
        """Return whether each number is an integer, 0, or not, 1, or missing, 2, of columns of a non-integer type."""
        found = {}
        for j, (column, dtype) in enumerate(zip(self.columns, self.dtypes, strict=True)):
            if column.block.column.kind == "number" and letter_of(dtype) not in "biuMm":
                values = column.block.codes(table.cells(column.block.position))
                found[j] = np.where(np.isnan(values), 2, values != np.rint(values)).astype(np.int32)
        return found

    def without(self, names: Collection[str]) -> TableForm:
        """Return a form that writes only missing values in these columns, if their types have missing values."""
        lost = frozenset(j for j, name in enumerate(self.names) if name in names)
        changed = range(len(self.names)) if lost and self.library == "numpy" else lost  # an array has one type
        dtypes = (_with_missing(dtype) if j in changed else dtype for j, dtype in enumerate(self.dtypes))
        return self._replace(lost=lost, dtypes=tuple(dtypes))

    def only(self, j: int) -> TableForm:
        """Return the form of a table of one of these columns."""
        columns, dtypes, labels = (each[j : j + 1] for each in (self.columns, self.dtypes, self.labels))
        return TableForm(columns, self.library, dtypes, labels)

    def write(
        self, levels: np.ndarray, within: str, rng: np.random.Generator, ends: Mapping[int, Ends] | None = None
    ) -> Any:
        """Return levels of shape (n, d) as a table of the library, with the columns' types.

        Numbers of the columns that `ends` names lie within these.
        """
        ends = ends or {}
        made = []
        for j, (column, dtype) in enumerate(zip(self.columns, self.dtypes, strict=True)):
            values, gaps = column.write(levels[:, j], within, self.is_whole(j), rng, ends.get(j, EVERYWHERE))
            made.append(_cells(column, dtype, values, np.full(len(gaps), True) if j in self.lost else gaps))
        if self.library == "pandas":
            import pandas as pd

            frame = pd.DataFrame({name: _of_pandas(*each) for name, each in zip(self.names, made, strict=True)})
            frame.columns = list(self.labels)
            return frame
        if self.library == "numpy":
            return self._as_array(made, len(levels))
        columns = {name: _of_others(self.library, name, each) for name, each in zip(self.names, made, strict=True)}
        types = {name: dtype for name, dtype in zip(self.names, self.dtypes, strict=True) if not isinstance(dtype, str)}
        return new_frame(self.library, columns, types)

    def _as_array(self, made: list[_Cells], n: int) -> np.ndarray:
        dtype = self.dtypes[0]
        out = np.empty((n, len(made)), dtype if dtype.kind in "biuf" else object)
        for j, (column, cells) in enumerate(zip(self.columns, made, strict=True)):
            out[:, j] = _objects(cells) if out.dtype.kind == "O" else np.where(cells.gaps, cells.gap, cells.values)
            if dtype.kind in "UST":  # in which None would be a string
                out[cells.gaps, j] = next(filter(None, column.block.column.missing_values), "")
        if dtype.kind == "S":
            return np.char.encode(out.astype(str), "utf-8")
        return out.astype(dtype) if dtype.kind in "UTMm" else out


def form_of(table: Table, columns: list[tuple[str, int, Column]], n_bins: int, other: Mapping[str, Any]) -> TableForm:
    """Return the form of a table with these public columns.

    Parameters
    ----------
    table : Table
        Its types are read, and no cell.
    columns : list of (str, int, Column)
        Name, position and public values of each column; dropped ones are omitted.
    n_bins : int
        Of numbers without edges.
    other : mapping of str to object
        Cell that represents the unlisted categories of a column.
    """
    kept = [each for each in columns if each[2].kind != "drop"]
    words = {name for name, _, column in kept if column.kind in ("category", "ordinal")}
    if unknown := [name for name in other if name not in words]:
        raise ValueError(f"`other` must refer to categorical columns of the schema, got {format_names(unknown)}.")
    library = library_of(table.source)
    made: list[LevelColumn] = []
    dtypes = []
    # Rows of a list have no type except that of their cells, and one cell must not determine it.
    of_lists = np.dtype(np.float64 if all(column.kind == "number" for _, _, column in kept) else object)
    for name, j, column in kept:
        key = key_of(other[name]) if name in other else column.other
        if name in other and (key is None or key in (*column.missing_values, *(column.categories or ()))):
            raise ValueError(
                f"other[{name!r}] must be neither a missing value nor a listed category. Use another cell."
            )
        dtype = _dtype_of(table.source, library, j) if table.is_typed else of_lists
        if isinstance(dtype, np.dtype) and dtype.kind in "iub" and _gap_of(column, dtype) is None:
            column = replace(column, missing_values=())  # such a type has no missing values
        dtypes.append(dtype)
        made.append(LevelColumn(Block(name, j, column, "bins", n_bins), key))
        _check_type(made[-1], dtype)
    labels = tuple(table.source.columns[j] for _, j, _ in kept) if library == "pandas" else ()
    form = TableForm(tuple(made), library, tuple(dtypes), labels)
    _rehearse(form)
    return form


def _rehearse(form: TableForm) -> None:
    """Write every level once, so that types that cannot store one are rejected before the charge."""
    failing = []
    for j, (column, dtype) in enumerate(zip(form.columns, form.dtypes, strict=True)):
        try:
            form.only(j).write(np.arange(column.n_levels, dtype=np.int32)[:, None], "middle", np.random.default_rng(0))
        except MemoryError:
            raise
        except Exception:  # its message can contain cells
            failing.append(f"{format_names([column.block.name])} ({dtype})")
    if failing:
        what = "column" if len(failing) == 1 else "columns"
        raise ValueError(
            f"Synthetic values cannot be converted to the dtype of {what} {', '.join(failing)}. Convert the {what} to "
            "strings, numbers or dates, or set the kind to 'drop' in `schema`."
        )


def _gap_of(column: Column, dtype: Any) -> float | None:
    """Return a listed number that represents a missing value in an integer type, None if there is none."""
    if letter_of(dtype) not in "iu":
        return None
    low, high = _limits(dtype)
    numbers = [number_of(gap) for gap in column.missing_values]
    return next((number for number in numbers if number.is_integer() and low <= number <= high), None)


def _limits(dtype: Any) -> tuple[float, float]:
    """Return the least and the largest number of a type that a double holds too: all doubles of floats not of NumPy."""
    dtype = getattr(dtype, "subtype", dtype)  # of sparse columns
    if letter_of(dtype) == "f":
        most = float(np.finfo(dtype).max) if isinstance(dtype, np.dtype) else math.inf
        return -most, most
    found = np.iinfo(str(dtype).lower().partition("[")[0])
    return max(float(found.min), -(2.0**53)), min(float(found.max), 2.0**53)


def _with_missing(dtype: Any) -> Any:
    """Return a type with missing values: floats for NumPy integers, as in pandas."""
    return np.dtype(np.float64) if isinstance(dtype, np.dtype) and dtype.kind in "iu" else dtype


class LocalTable(Table):
    """A table whose dates in a time zone are read by the clock of that zone, as they are written."""

    def _raw(self, j: int) -> Any:
        column = nw.from_native(super()._raw(j), series_only=True, pass_through=True)
        if getattr(getattr(column, "dtype", None), "time_zone", None) is not None:
            column = column.dt.replace_time_zone(None)
        return nw.to_native(column, pass_through=True)


def _dtype_of(source: Any, library: str, j: int) -> Any:
    """Return the type of a column.

    For categorical types the name alone is public, because the categories come with the rows. The same holds for the
    width of NumPy strings, which is that of the longest cell.
    """
    if library == "numpy":
        return np.dtype(source.dtype.kind) if source.dtype.kind in "US" else source.dtype
    dtype = type_of(column_of(source, j))
    return "category" if hasattr(dtype, "categories") else dtype


def _check_type(column: LevelColumn, dtype: Any) -> None:
    """Reject categories that a numeric type cannot store, before the charge."""
    if column.block.is_line or column.block.column.kind == "flag" or letter_of(dtype) not in "iuf":
        return
    (low, high), whole = _limits(dtype), letter_of(dtype) != "f"
    numbers = [number_of(key) for key in column.keys]
    if any(not low <= number <= high or (whole and not number.is_integer()) for number in numbers):
        raise ValueError(
            f"Column {column.block.name!r} has a numeric type, so its categories and `other` in `schema` must be "
            "numbers of this type, but privately estimated categories include the string 'other'. List the "
            "categories, such as {'kind': 'category', 'categories': [1, 2]}, or convert the column to strings: "
            f"X[{column.block.name!r}].astype(str)."
        )


class _Cells(NamedTuple):
    """Values of a column, whether they are missing, the resulting type, and the value for missing ones."""

    values: np.ndarray
    gaps: np.ndarray
    dtype: Any
    gap: Any
    keys: list[str]


def _cells(column: LevelColumn, dtype: Any, values: np.ndarray, gaps: np.ndarray) -> _Cells:
    letter, kind = letter_of(dtype), column.block.column.kind
    gap: Any = _gap_of(column.block.column, dtype) if letter in "iu" else np.nan
    if kind == "date":
        days = np.where(gaps, 0.0, values)
        if letter == "M":
            return _Cells(_moments(days, dtype), gaps, dtype, np.datetime64("NaT"), [])
        distinct, places = np.unique(days, return_inverse=True)
        form = column.block.column.form
        texts = np.array([day_text(day, form) for day in distinct.tolist()], dtype=object)
        return _Cells(texts[places], gaps, dtype, None, [])
    if column.block.is_line and letter == "m":
        spans = np.clip(np.where(gaps, 0.0, values), -_MOST_DAYS, _MOST_DAYS) * _MICROSECONDS
        return _Cells(spans.astype(np.int64).astype("timedelta64[us]"), gaps, dtype, np.timedelta64("NaT"), [])
    if column.block.is_line:
        return _Cells(np.clip(values, *_limits(dtype)) if letter in "iuf" else values, gaps, dtype, gap, [])
    keys, is_flag = column.keys, kind == "flag"
    places = np.minimum(values, len(keys) - 1)
    if letter == "b":
        gap = False if isinstance(dtype, np.dtype) else None
        return _Cells(np.array([truth_of(key) == 1 for key in keys])[places], gaps, dtype, gap, [])
    if letter in "iuf":
        numbers = np.array([truth_of(key) if is_flag else number_of(key) for key in keys], np.float64)
        return _Cells(numbers[places], gaps, dtype, gap, [])
    if letter == "M":
        moments = _moments(np.array([days_of(key) for key in keys]), dtype)
        return _Cells(moments[places], gaps, dtype, np.datetime64("NaT"), [])
    listed = np.array([key == "True" for key in keys] if is_flag else keys, dtype=object)
    return _Cells(listed[places], gaps, dtype, None, [] if is_flag else keys)


def _moments(days: np.ndarray, dtype: Any) -> np.ndarray:
    """Return days as moments that the type holds: nanoseconds do not reach far."""
    most = _MOST_DAYS if "ns" in str(dtype) else 2.0**62 / _MICROSECONDS
    return (np.clip(days, -most, most) * _MICROSECONDS).astype(np.int64).astype("datetime64[us]")


def _objects(cells: _Cells) -> np.ndarray:
    made = cells.values.astype(object)
    made[cells.gaps] = None
    return made


def _of_pandas(values: np.ndarray, gaps: np.ndarray, dtype: Any, gap: Any, keys: list[str]) -> Any:
    import pandas as pd

    letter = letter_of(dtype)
    if isinstance(dtype, str) and keys:
        return pd.Categorical(_objects(_Cells(values, gaps, dtype, gap, keys)), categories=keys)
    if letter in "biuf":
        return pd.Series(np.where(gaps, np.nan if gap is None else gap, values)).astype(dtype).array
    if letter in "Mm":
        found = pd.Series(np.where(gaps, gap, values))
        zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
        if zone is not None:
            found = found.dt.tz_localize(zone, ambiguous=np.ones(len(found), bool), nonexistent="shift_forward")
        return found.astype(dtype).array
    return pd.Series(_objects(_Cells(values, gaps, dtype, gap, keys)), dtype=object).astype(dtype)


def _of_others(library: Any, name: str, cells: _Cells) -> Any:
    """Return a column of polars or Arrow, which the frame casts to its type."""
    values, gaps, dtype, gap, keys = cells
    letter = letter_of(dtype)
    if letter in "biuf":
        return nw.new_series(name, np.where(gaps, np.nan, values), backend=library).fill_nan(None)
    if letter in "Mm":
        made: Any = nw.new_series(name, np.where(gaps, gap, values), backend=library)
        zone = getattr(dtype, "time_zone", getattr(dtype, "tz", None))
        return made if zone is None else _in_utc(made, zone)
    made = nw.new_series(name, _objects(cells).tolist(), nw.String if keys else None, backend=library)
    return made.cast(nw.Categorical) if isinstance(dtype, str) else made


def _in_utc(local: Any, zone: str) -> Any:
    """Return moments by the clock of a zone. An hour that the clock skips becomes the hour before or after it."""

    def ahead(moments: Any) -> Any:
        return moments.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None) - moments

    return (local - ahead(local - ahead(local))).dt.replace_time_zone("UTC")
