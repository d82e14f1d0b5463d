"""Cells of private input: which of them are numbers, and refusals that name the kind of fault and never the cell.

Nothing is raised while another exception is being handled: an exception that is chained to a refusal could quote what
was refused.
"""

from __future__ import annotations

import datetime
import itertools
import math
import numbers
from array import array
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import NoneType
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

_BLOCK_VALUES = 1 << 16
_NAMED_COLUMNS = 5

NUMBER, GAP, COMPLEX, TIME, STRING, OTHER = range(6)
KIND_OF_DTYPE = {"b": NUMBER, "i": NUMBER, "u": NUMBER, "f": NUMBER, "c": COMPLEX, "M": TIME, "m": TIME,
         "U": STRING, "S": STRING, "T": STRING}  # fmt: skip
"""Kinds of cells by the letter of NumPy's dtypes. Other letters are `OTHER`; for "O" each cell has its own kind."""

_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_REALS = (numbers.Real, Decimal, np.bool_)
_FLOATED_BY_NUMPY = {float, int, bool, NoneType, np.bool_, np.float64, np.float32, np.int64, np.int32}
"""Types of cells of which NumPy, in a loop of its own, makes the float that `float_of` makes, and NaN of None."""


def values_of(name: str, given: Any) -> np.ndarray:
    """Return `given` as an array in which every cell is what it is in `given`, whatever other cells there are.

    Arrays, series and columns have a type, which is public. A list has none, and NumPy would choose one by looking at
    all of its cells: a gap would turn ``True`` among numbers from 1 into "True", and a moment in nanoseconds would wrap
    the year 9999, in all rows. So the cells of a list stay objects. Only a list of cells that all are exactly of type
    ``float``, or ``int`` within 64 bits, and a list of arrays of one dtype of numbers, become arrays of numbers, whose
    cells are read as the objects are (`skdp._checks.readings`).
    """
    if type(given) is np.ndarray:
        return given
    if hasattr(given, "collect") and not hasattr(given, "shape"):  # a query of polars, Spark, ...
        raise TypeError(
            f"{name} is a {type(given).__name__}, a query whose rows are not there yet: give {name}.collect() or "
            "another frame of them."
        )
    if np.ma.isMaskedArray(given) and np.ma.is_masked(given):
        raise ValueError(f"Input {name} contains NaN: masked cells are gaps, so remove or impute them first.")
    if sp.issparse(given):
        raise TypeError(f"{name} is sparse, and sparse data are not supported here: pass {name}.toarray().")
    values = None
    try:
        values = np.asarray(decoded(given)) if _has_dtype(type(given)) else _array_of_cells(given)
    except MemoryError:
        raise
    except Exception:
        pass  # its message may quote cells
    if values is None:
        raise ValueError(f"{name} is no array of numbers: its rows differ in length, or its cells are nested.")
    return values


def _has_dtype(kind: type) -> bool:
    """Whether objects of a type are arrays, of any library, with one dtype for all of their cells."""
    return hasattr(kind, "__array__") or issubclass(kind, array | memoryview)


def _array_of_cells(given: Any) -> np.ndarray | None:
    """Return a cell, or a list of lists or arrays, as an array; None if its rows differ in length."""
    if hasattr(given, "__len__") and hasattr(given, "__getitem__") and not isinstance(given, str | bytes | Mapping):
        kinds = set(map(type, given))
        if kinds and all(map(_has_dtype, kinds)) and len({np.asarray(each).dtype for each in given}) == 1:
            same = np.asarray(given)
            if same.dtype.kind in "biuf" and not any(map(np.ma.isMaskedArray, given)):
                return same
        kinds = _kinds_of_cells(given, kinds)
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


def _kinds_of_cells(given: Any, kinds: set[type]) -> set[type]:
    """Return the types of what is in the rows of a list, or in the list if it has none."""
    return set(map(type, itertools.chain.from_iterable(given))) if kinds and kinds <= {list, tuple} else kinds


def _unpacked(given: Any) -> Any:
    """Return nested lists and arrays as nested lists, of which NumPy takes every cell as it is.

    Of an array among them NumPy would take spans and moments as integers.
    """
    if not _has_dtype(type(given)):
        return [_unpacked(each) if _holds_cells(type(each)) else each for each in given]
    values = np.asarray(given)
    if np.ma.isMaskedArray(given):
        hidden = np.ma.getmaskarray(given)
        values = _objects_of(values)
        values[hidden] = None
    if values.ndim == 0:
        return values[()]
    return list(values) if values.ndim == 1 else list(map(_unpacked, values))


def _objects_of(values: np.ndarray) -> np.ndarray:
    """Return an array of NumPy's scalars."""
    return np.fromiter(values.flat, object, values.size).reshape(values.shape)


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
    """Return a column of Arrow with its cells in the place of positions in a dictionary; any other as it is.

    Arrow hands NumPy the last entry of the dictionary for a gap.
    """
    kind: Any = getattr(column, "type", None)
    return column.cast(kind.value_type) if str(kind).startswith("dictionary<") else column


def numbers_of(values: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the worst kind of cell in an array and, if it is `NUMBER`, the values as numbers, gaps as NaN."""
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


def refuse(fault: int, name: str, where: str = "") -> NoReturn:
    """Raise the error for cells of a kind that is not accepted."""
    if fault == COMPLEX:
        raise ValueError(f"Complex data not supported: {name} has complex numbers{where}, where real ones are needed.")
    if fault == TIME:
        raise ValueError(
            f"{name} has dates or times{where}: turn them into numbers first, such as years since a public date."
        )
    if fault == STRING:
        raise ValueError(f"{name} has strings{where}: encode them as numbers first, by a public list of categories.")
    raise TypeError(f"{name} has cells that are no numbers{where}: float's argument must be a string or a real number.")


def refuse_not_finite(name: str, *, nan: bool, where: str = "") -> NoReturn:
    """Raise the error for NaN or infinity."""
    if nan:
        raise ValueError(f"Input {name} contains NaN{where}: remove or impute gaps first, by public values.")
    raise ValueError(f"Input {name} contains infinity or a number too large for its dtype{where}: clip it first.")


def format_names(names: Iterable[Any]) -> str:
    """Format names of columns in one line."""
    shown = [" ".join(repr(name).split()) for name in names]
    return ", ".join([*shown[:_NAMED_COLUMNS], *(["..."] if len(shown) > _NAMED_COLUMNS else [])])


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
    step = max(1, _BLOCK_VALUES // max(1, math.prod(values.shape[1:])))
    return (values[start : start + step] for start in range(0, len(values), step))
