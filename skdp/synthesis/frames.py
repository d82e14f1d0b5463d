"""A table as levels, and levels as a table again, of the library and with the types of the private one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._fitting.cells import format_names
from skdp.preprocessing.blocks import Block
from skdp.preprocessing.columns import Table
from skdp.preprocessing.kinds import Column
from skdp.preprocessing.readings import day_text, days_of, key_of, number_of, truth_of
from skdp.synthesis.levels import LevelColumn, Levels

_MICROSECONDS = 86_400_000_000


class TableForm(NamedTuple):
    """How a table becomes levels, and in which form it comes back. All of it is public.

    Attributes
    ----------
    columns : tuple of LevelColumn
        In the order of the table, without those that are dropped.
    library : {"numpy", "pandas", "polars", "arrow"}
    dtypes : tuple
        Types of these columns; one for all of an array.
    """

    columns: tuple[LevelColumn, ...]
    library: str
    dtypes: tuple[Any, ...]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.block.name for column in self.columns]

    def read(self, table: Table) -> list[Levels]:
        """Return the levels of each column."""
        return [column.read(table.cells(column.block.position)) for column in self.columns]

    def write(self, levels: NDArray[Any], within: str, rng: np.random.Generator) -> Any:
        """Return levels of shape (n, d) as a table of the library, with the columns' types."""
        made = [
            _cells(column, dtype, levels[:, j], within, rng)
            for j, (column, dtype) in enumerate(zip(self.columns, self.dtypes, strict=True))
        ]
        if self.library == "pandas":
            import pandas as pd

            return pd.DataFrame({name: _of_pandas(*each) for name, each in zip(self.names, made, strict=True)})
        if self.library in ("polars", "arrow"):
            import polars as pl

            frame = pl.DataFrame([_of_polars(name, *each) for name, each in zip(self.names, made, strict=True)])
            return frame if self.library == "polars" else frame.to_arrow()
        dtype = self.dtypes[0]
        out = np.empty((len(levels), len(made)), dtype if dtype.kind in "biuf" else object)
        for j, cells in enumerate(made):
            out[:, j] = _objects(cells) if out.dtype.kind == "O" else np.where(cells.gaps, cells.gap, cells.values)
        return out.astype(str) if dtype.kind == "U" else out


def form_of(table: Table, columns: list[tuple[str, int, Column]], n_bins: int, other: Mapping[str, Any]) -> TableForm:
    """Return the form of a table with these public columns.

    Parameters
    ----------
    table : Table
        Its types are looked at, and no cell.
    columns : list of (str, int, Column)
        Name, position and what is public of each; dropped ones are left out.
    n_bins : int
        Of numbers without edges.
    other : mapping of str to object
        Cell that stands for the categories of a column that are not listed.
    """
    kept = [each for each in columns if each[2].kind != "drop"]
    words = {name for name, _, column in kept if column.kind in ("category", "ordinal")}
    if unknown := [name for name in other if name not in words]:
        raise ValueError(f"other names {format_names(unknown)}, no column of categories: name those of the schema.")
    made = []
    for name, j, column in kept:
        key = key_of(other[name]) if name in other else None
        if name in other and (key is None or key in (column.categories or ())):
            raise ValueError(
                f"other[{name!r}] is a gap or one of the listed categories: choose another cell for the rest."
            )
        made.append(LevelColumn(Block(name, j, column, "bins", n_bins), key))
    library = _library_of(table.source)
    dtypes = tuple(_dtype_of(table.source, library, j) for _, j, _ in kept)
    for each, dtype in zip(made, dtypes, strict=True):
        _check_type(each, dtype)
    return TableForm(tuple(made), library, dtypes)


def _library_of(source: Any) -> str:
    if isinstance(source, np.ndarray):
        return "numpy"
    return "pandas" if hasattr(source, "iloc") else "polars" if hasattr(source, "to_series") else "arrow"


def _dtype_of(source: Any, library: str, j: int) -> Any:
    """Return the type of a column. Of categorical types the name alone is public: their lists come with the rows."""
    if library == "numpy":
        return source.dtype
    if library == "pandas":
        dtype = source.dtypes.iloc[j]
        return "category" if hasattr(dtype, "categories") else dtype
    import polars as pl

    dtype = source.dtypes[j] if library == "polars" else pl.from_arrow(source.schema.empty_table())[:, j].dtype
    return pl.Categorical if dtype in (pl.Categorical, pl.Enum) else dtype


def _letter(dtype: Any) -> str:
    """Return the kind of a type as NumPy's letter: "b", "i", "u", "f", "M"; "O" for all else."""
    if hasattr(dtype, "kind"):
        return str(dtype.kind) if dtype.kind in "biufM" else "O"
    name = str(dtype).lower()
    starts = {"bool": "b", "int": "i", "uint": "u", "float": "f", "date": "M"}
    return next((letter for start, letter in starts.items() if name.startswith(start)), "O")


def _check_type(column: LevelColumn, dtype: Any) -> None:
    """Refuse categories of which a type of numbers holds some not, before anything is charged."""
    if column.block.is_line or _letter(dtype) not in "iuf":
        return
    if column.block.column.kind != "flag" and any(math.isnan(number_of(key)) for key in column.keys):
        raise ValueError(
            f"column {column.block.name!r} is of a type of numbers, and its categories in the schema, or what stands "
            "for others, are not all numbers: convert the column to text, or list numbers."
        )


class _Cells(NamedTuple):
    """Values of a column, which of them are gaps, the type to give, and what stands for a gap in it."""

    values: NDArray[Any]
    gaps: NDArray[np.bool_]
    dtype: Any
    gap: Any
    keys: list[str]


def _cells(column: LevelColumn, dtype: Any, levels: Levels, within: str, rng: np.random.Generator) -> _Cells:
    letter, line = _letter(dtype), column.block.is_line
    is_date = column.block.column.kind == "date"
    values, gaps = column.write(levels, within, letter in "iub" or is_date, rng)
    numeric = [number for number in map(number_of, column.block.column.gaps) if number.is_integer()]
    gap: Any = (numeric[0] if numeric else None) if letter in "iu" else np.nan
    if line and is_date:
        days = np.where(gaps, 0.0, values)
        moments = (days * _MICROSECONDS).astype(np.int64).astype("datetime64[us]")
        moments[gaps] = np.datetime64("NaT")
        if letter == "M":
            return _Cells(moments, gaps, dtype, np.datetime64("NaT"), [])
        texts = np.array([day_text(day) for day in np.unique(days).tolist()], dtype=object)
        return _Cells(texts[np.unique(days, return_inverse=True)[1]], gaps, dtype, None, [])
    if line:
        return _Cells(values, gaps, dtype, gap, [])
    keys = column.keys
    places = np.minimum(levels, len(keys) - 1)
    if letter == "b":
        return _Cells(np.array([truth_of(key) == 1 for key in keys])[places], gaps, dtype, None, [])
    if letter in "iuf":
        numbers = np.array([truth_of(key) if column.block.column.kind == "flag" else number_of(key) for key in keys])
        return _Cells(numbers.astype(np.float64)[places], gaps, dtype, gap, [])
    if letter == "M":
        moments = (np.array([days_of(key) for key in keys]) * _MICROSECONDS).astype(np.int64).astype("datetime64[us]")
        return _Cells(moments[places], gaps, dtype, np.datetime64("NaT"), [])
    flags = column.block.column.kind == "flag"
    listed = np.array([key == "True" for key in keys] if flags else keys, dtype=object)
    return _Cells(listed[places], gaps, dtype, None, keys)


def _objects(cells: _Cells) -> NDArray[Any]:
    made = cells.values.astype(object)
    made[cells.gaps] = None
    return made


def _of_pandas(values: NDArray[Any], gaps: NDArray[np.bool_], dtype: Any, gap: Any, keys: list[str]) -> Any:
    import pandas as pd

    letter = _letter(dtype)
    if dtype == "category" and keys:
        return pd.Categorical(_objects(_Cells(values, gaps, dtype, gap, keys)), categories=keys)
    if letter in "biu" and not gaps.any():
        return pd.array(values.astype(np.int64 if letter != "b" else bool)).astype(dtype)
    if letter in "iu" and gap is not None:
        return pd.array(np.where(gaps, gap, values).astype(np.int64)).astype(dtype)
    if letter in "biu":  # a type of NumPy has no gap
        nullable = dtype if not isinstance(dtype, np.dtype) else "boolean" if letter == "b" else "Int64"
        whole = values.astype(bool if letter == "b" else np.int64)
        return pd.array([None if hole else value for value, hole in zip(whole.tolist(), gaps, strict=True)], nullable)
    if letter == "f":
        return pd.Series(np.where(gaps, np.nan, values)).astype(dtype).array
    if letter == "M":
        found = pd.Series(np.where(gaps, np.datetime64("NaT", "us"), values))
        zone = getattr(dtype, "tz", None)
        return (found.dt.tz_localize("UTC").dt.tz_convert(zone) if zone is not None else found).astype(dtype).array
    return pd.Series(_objects(_Cells(values, gaps, dtype, gap, keys)), dtype=object).astype(dtype)


def _of_polars(name: str, values: NDArray[Any], gaps: NDArray[np.bool_], dtype: Any, gap: Any, keys: list[str]) -> Any:
    import polars as pl

    letter = _letter(dtype)
    if letter in "biuf":
        whole = values.astype(np.int64) if letter in "iu" else values.astype(bool) if letter == "b" else values
        made = pl.Series(name, whole)
    elif letter == "M":
        made = pl.Series(name, values.astype("datetime64[us]"))
        zone = getattr(dtype, "time_zone", None)
        made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone is not None else made
    else:
        made = pl.Series(name, values.tolist(), dtype=pl.String if keys and keys != ["False", "True"] else None)
    return made.set(pl.Series(gaps), None).cast(dtype)


__all__ = ["TableForm", "form_of"]
