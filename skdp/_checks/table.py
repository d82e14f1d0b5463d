"""Columns of a table of any kind: their types, and their cells as numbers, days or keys.

Each cell is read independently of other cells, and of whether a missing value made pandas or NumPy choose another type.
Column types follow from types, never from values. An error message contains the column and no value.
"""

from __future__ import annotations

import datetime
import importlib
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import get_tags

from skdp._checks import numbers
from skdp._checks.frames import column_of, in_memory, letter_of, type_of
from skdp._checks.rows import check_schema, check_shape, column_names, sparse_table, without_labels

_FEW_VALUES = 4096
_EQUAL_BY_VALUE = {str, bytes, int, float, bool, Decimal, datetime.date, *np.sctypeDict.values()} - {
    object, np.void, np.datetime64, np.timedelta64
}  # fmt: skip
"""Types of which no two equal cells are read differently. NumPy compares spans and moments in a common unit, and wraps
what that cannot hold."""


class CellValues(NamedTuple):
    """A column that was read.

    Attributes
    ----------
    kind : {"number", "boolean", "date", "mixed"}
        Of its type, not of its values.
    values : ndarray of shape (n,)
        float64 with NaN for missing values; days since 1970 in UTC if `kind` is "date". If it is "mixed", int64
        positions in `distinct`, -1 for missing values.
    distinct : list
        Distinct cells of a mixed column, in no order that means anything. Some may be missing values.
    exact : ndarray of shape (n,) or None
        Integers of a type of integers, of which float64 does not hold all; arbitrary for missing values.
    """

    kind: str
    values: np.ndarray
    distinct: list[Any] = []  # noqa: RUF012  (never changed)
    exact: np.ndarray | None = None


class Table:
    """Columns of an array, of a frame of pandas, polars or Arrow, of a list of rows, or of a sparse matrix of numbers.

    Parameters
    ----------
    X : table
        Its shape, names and types are looked at, and no cell before `cells` is called.
    reader : estimator or None, default=None
        Which reads it. See `skdp._checks.rows.check_shape`. Sparse matrices are for those whose tags say so.

    Attributes
    ----------
    names : list of str
        Names of the columns; x0, x1, ... if they have none.
    shape : tuple of (int, int)
    given : table
        X as it was given.
    source : frame, ndarray or csc_matrix
        What the columns are taken from.
    is_typed : bool
        Whether the columns have types; a list of rows has none.
    """

    def __init__(self, X: Any, reader: Any = None) -> None:
        if hasattr(X, "__dask_graph__"):
            raise TypeError(
                f"X must be an in-memory data frame, got a Dask {type(X).__name__}. Apply a stateless fitted step "
                "with X.map_partitions(step.transform).persist(), or pass a data frame."
            )
        X = in_memory(X)
        names = column_names(X)
        self.given = X
        self.is_typed = hasattr(X, "dtype") or names is not None
        if sp.issparse(X) and reader is not None and get_tags(reader).input_tags.sparse:
            self.source = sparse_table(X, reader).tocsc()
        else:
            self.source = X if names is not None else numbers.values_of("X", X)
        check_shape(self.source.shape, reader)
        self.shape = (int(self.source.shape[0]), int(self.source.shape[1]))
        named = names is not None and all(isinstance(name, str) for name in names)
        self.names = [str(name) for name in names or ()] if named else [f"x{j}" for j in range(self.shape[1])]

    def label(self, j: int) -> Any:
        """Return the name of column j as in the data frame, which may be a number; a tuple is replaced."""
        names = column_names(self.source)
        return self.names[j] if names is None or isinstance(names[j], tuple) else names[j]

    def kind(self, j: int) -> str:
        """Return "number", "date" or "category", by the type of column j alone.

        Boolean columns are categories, because one missing value makes pandas store them as objects. A list of rows has
        no types, so its columns are numbers.
        """
        if not self.is_typed:
            return "number"
        letter = self._letter(j)
        if letter in "iufm":
            return "number"
        if letter in "cV":
            reject_cells(numbers.COMPLEX if letter == "c" else numbers.OTHER, self.names[j])
        return "date" if letter == "M" else "category"

    @property
    def holds_objects(self) -> bool:
        """Whether it is an array of objects or text, which has one type for all columns; a list of rows has none."""
        return self.is_typed and isinstance(self.source, np.ndarray) and self.source.dtype.kind in "OUST"

    def is_whole(self, j: int) -> bool:
        """Return whether column j is of a type of whole numbers, which may be amounts or codes."""
        return self.is_typed and self._letter(j) in "iu"

    def is_text(self, j: int) -> bool:
        """Return whether column j is of a type of text."""
        kind = str(type_of(self._raw(j))).lower().lstrip("<>|=")
        return self.is_typed and self._letter(j) in "OUST" and kind.startswith(("str", "large_str", "u", "s"))

    def is_boolean(self, j: int) -> bool:
        """Return whether column j is of a type of truth values."""
        return self.is_typed and self._letter(j) == "b"

    def cells(self, j: int) -> CellValues:
        """Read column j, or reject it if it has complex or nested cells."""
        self.kind(j)
        found, fault = numbers.or_none(_read, self._raw(j)) or (None, numbers.OTHER)
        return found or reject_cells(fault, self.names[j])

    def _raw(self, j: int) -> Any:
        table = self.source
        if isinstance(table, np.ndarray):
            return table[:, j]
        if sp.issparse(table):
            return table[:, [j]].toarray().ravel()
        return column_of(table, j)

    def _letter(self, j: int) -> str:
        return letter_of(type_of(self._raw(j)))


def tag_raw_tables(tags: Any) -> None:
    """Set the scikit-learn tags of an estimator that accepts tables with missing values, strings and categories."""
    tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True


def fitted_table(fitted: Any, X: Any) -> Table:
    """Return rows to transform, without group identifiers, or reject columns that differ from those of the fit."""
    table = Table(without_labels(fitted, X), fitted)
    check_schema(fitted, table.source, reset=False)
    return table


def reject_cells(fault: int, name: str) -> NoReturn:
    """Raise the error for cells that no kind of column takes."""
    where = f"column {numbers.format_names([name])}"
    if fault == numbers.COMPLEX:
        raise ValueError(
            f"Complex data not supported: {where} contains complex numbers. Split them into two real columns."
        )
    raise ValueError(
        f"{where} contains nested values, or objects other than numbers, strings and dates. Convert or drop it."
    )


# --- one column, by the library it comes from ---


def _read(raw: Any) -> tuple[CellValues | None, int]:
    """Read a column of any library; None, and the kind of fault, if it has cells that cannot be read."""
    raw = numbers.decoded(raw)
    dtype = type_of(raw)
    if isinstance(dtype, np.dtype):
        return _read_array(np.asarray(raw))
    letter, column = letter_of(dtype), nw.from_native(raw, series_only=True)
    if letter in "iu" and column.dtype not in (nw.Int128, nw.UInt128):
        return _integers(column.fill_null(0).to_numpy(), column.is_null().to_numpy()), numbers.NUMBER
    if letter in "biuf":
        values = _doubles(column.cast(nw.Float64).to_numpy())
        return CellValues("boolean" if letter == "b" else "number", values), numbers.NUMBER
    if hasattr(raw, "iloc") and hasattr(raw, "cat"):
        return _coded(raw.cat.codes.to_numpy().astype(np.int64), raw.cat.categories.tolist())
    if not isinstance(column.dtype, nw.String | nw.Categorical | nw.Enum):
        return _read_array(np.asarray(column.to_numpy()))
    if hasattr(raw, "iloc"):  # all of them text, so no two are equal that have different keys
        codes, distinct = raw.factorize()
        return CellValues("mixed", codes.astype(np.int64), distinct.tolist()), numbers.STRING
    words = column.cast(nw.String)
    if not (listed := words.drop_nulls().unique().to_list()):
        return CellValues("mixed", np.full(len(column), -1, np.int64)), numbers.STRING
    codes = words.replace_strict(listed, range(len(listed)), default=-1, return_dtype=nw.Int64).to_numpy()
    return CellValues("mixed", codes, listed), numbers.STRING


def _read_array(values: np.ndarray) -> tuple[CellValues | None, int]:
    letter = values.dtype.kind
    if letter in "iu":
        return _integers(values), numbers.NUMBER
    if letter in "bf":
        return CellValues("boolean" if letter == "b" else "number", _doubles(values)), numbers.NUMBER
    if letter in "Mm":
        return CellValues("date" if letter == "M" else "number", numbers.days_of_array(values)), numbers.TIME
    if letter not in "OUST":
        return None, numbers.OTHER
    cells = values.tolist()
    numbers_alone = numbers.typed_cells(cells, set(map(type, cells)))
    return _read_objects(cells) if numbers_alone is None else _read_array(numbers_alone)


def _integers(values: np.ndarray, gaps: Any = slice(0)) -> CellValues:
    doubles = values.astype(np.float64)
    doubles[gaps] = np.nan
    return CellValues("number", doubles, exact=values)


def _doubles(values: np.ndarray) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):  # what is too large for float64 becomes infinite, and is clipped
        return np.asarray(values, dtype=np.float64)


def _read_objects(cells: list[Any]) -> tuple[CellValues | None, int]:
    if Decimal in (types := set(map(type, cells))):
        cells = [None if isinstance(cell, Decimal) and cell.is_snan() else cell for cell in cells]  # it has no hash
        types = set(map(type, cells))
    # Some types of libraries are read as their text.
    faults = {numbers.kind_of_cell(each) for each in types if each.__name__ not in ("Interval", "Period", "UUID")}
    faults &= {numbers.COMPLEX, numbers.OTHER}
    if faults:
        return None, max(faults)
    if any(each not in _EQUAL_BY_VALUE and numbers.kind_of_cell(each) != numbers.GAP for each in types):
        # Equal cells may be read differently, and no row is to be read as another one.
        distinct = {id(cell): cell for cell in cells}
        return CellValues("mixed", _codes(map(id, cells), len(cells))[0], list(distinct.values())), numbers.STRING
    if types == {str}:
        return CellValues("mixed", *_codes(cells, len(cells))), numbers.STRING
    # 1, 1.0 and True are equal and have keys of their own, so the type is part of the key.
    codes, found = _codes(zip(map(type, cells), cells, strict=True), len(cells))
    return CellValues("mixed", codes, [cell for _, cell in found]), numbers.STRING


def _codes(cells: Iterable[Any], size: int) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the position of each cell in a list of distinct ones, and that list."""
    index: defaultdict[Any, int] = defaultdict()
    index.default_factory = index.__len__
    return np.fromiter(map(index.__getitem__, cells), np.int64, size), list(index)


def _coded(codes: NDArray[np.int64], listed: list[Any]) -> tuple[CellValues | None, int]:
    """Read codes of a list that came with the type: what no row has is left out."""
    used = np.bincount(codes[codes >= 0], minlength=len(listed)) > 0
    found, fault = _read_objects([cell for cell, there in zip(listed, used, strict=True) if there])
    if found is None:
        return None, fault
    positions = np.full(len(listed) + 1, -1, np.int64)  # the last one is that of missing values
    positions[:-1][used] = found.values
    return CellValues("mixed", positions[codes], found.distinct), fault


# --- cells as numbers, days, keys and truth values ---


def as_numbers(cells: CellValues, gaps: Sequence[str] = ()) -> NDArray[np.float64]:
    """Return the cells as numbers: NaN for missing values, cells whose key is in `gaps`, and nonnumeric strings.

    Dates are NaN. Time spans are days.
    """
    if cells.kind == "date":
        return np.full(len(cells.values), np.nan)
    return _without_gaps(_spread(cells, numbers.number_of), [numbers.number_of(gap) for gap in gaps])


def as_days(cells: CellValues, gaps: Sequence[str] = (), form: str = "") -> NDArray[np.float64]:
    """Return dates as days since 1970, in UTC; NaN for missing values and other cells. See `days_of` for the format."""
    if cells.kind in ("number", "boolean"):
        return np.full(len(cells.values), np.nan)
    read = partial(numbers.days_of, form=form)
    return _without_gaps(_spread(cells, read), [read(gap) for gap in gaps])


def _spread(cells: CellValues, convert: Any) -> NDArray[np.float64]:
    if cells.kind != "mixed":
        return cells.values
    table = np.fromiter((convert(cell) for cell in cells.distinct), np.float64, len(cells.distinct))
    return np.append(table, np.nan)[cells.values]


def _without_gaps(values: NDArray[np.float64], gaps: list[float]) -> NDArray[np.float64]:
    known = [gap for gap in gaps if not math.isnan(gap)]
    return np.where(np.isin(values, known), np.nan, values) if known else values


def as_keys(cells: CellValues, gaps: Sequence[str] = ()) -> tuple[NDArray[np.int64], list[str]]:
    """Return the position of each cell's key in a list of distinct keys, -1 for missing values, and that list.

    Every key occurs in a row. See `key_of`.
    """
    codes, distinct = cells.values, cells.distinct
    if cells.kind != "mixed":
        held = ~np.isnan(cells.values)
        found, places = _distinct((cells.values if cells.exact is None else cells.exact)[held])
        codes = np.full(len(cells.values), -1, np.int64)
        codes[held] = places
        show: Any = {"boolean": bool, "date": numbers.day_text}.get(cells.kind, found.dtype.type)
        distinct = [show(value) for value in found.tolist()]
    # Distinct cells may have one key, so places of cells become places of keys.
    index: dict[str, int] = {}
    dropped = set(gaps)
    places = np.full(len(distinct) + 1, -1, np.int64)
    for place, cell in enumerate(distinct):
        key = numbers.key_of(cell)
        if key is not None and key not in dropped:
            places[place] = index.setdefault(key, len(index))
    return places[codes], list(index)


def _distinct(values: np.ndarray) -> tuple[np.ndarray, NDArray[np.int64]]:
    """Return what ``np.unique(values, return_inverse=True)`` does; small whole numbers, such as codes, are counted."""
    if len(values) > _FEW_VALUES and values.min() >= 0 and values.max() < _FEW_VALUES:
        levels = values.astype(np.int64)
        if np.array_equal(levels, values):
            occurs = np.bincount(levels) > 0
            found = np.flatnonzero(occurs)
            return found.astype(values.dtype), (np.cumsum(occurs) - 1)[levels]
    return np.unique(values, return_inverse=True)


def as_truth(cells: CellValues, gaps: Sequence[str] = ()) -> NDArray[np.int64]:
    """Return 1 for true, 0 for false (1 and 0, yes and no, and so on), -1 for missing values and anything else."""
    if cells.kind == "number":  # truth values have keys, as they have among objects
        values = as_numbers(cells, gaps)
        return np.where(values == 1.0, 1, np.where(values == 0.0, 0, -1))
    codes, keys = as_keys(cells, gaps)
    return np.array([numbers.truth_of(key) for key in keys] + [-1], np.int64)[codes]


def import_extra(module: str) -> Any:
    """Import a module of the extra ``data``, or raise an error with the installation command."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(
            f'{module} is required to read files and create data frames. Install it with pip install ".[data]".'
        ) from None
