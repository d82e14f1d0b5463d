"""Columns of Arrow tables: which of them are numbers, and their values in blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skdp._checks.cells import format_names, refuse_not_finite
from skdp._checks.units import refuse_gaps

_TILE = 4096  # rows of which a C-ordered table's part stays in cache while its columns are written


def dtype_of_column(kind: pa.DataType) -> np.dtype[Any] | None:
    """Return the dtype of the numbers in columns of a type, None if they hold none."""
    if pa.types.is_dictionary(kind):
        return dtype_of_column(kind.value_type)
    if pa.types.is_decimal(kind):
        return np.dtype(np.float64)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    return None


def is_number(kind: pa.DataType) -> bool:
    """Whether columns of a type hold numbers."""
    return dtype_of_column(kind) is not None


def is_label(kind: pa.DataType) -> bool:
    """Whether columns of a type may hold labels or targets: numbers of NumPy's types, or strings."""
    if pa.types.is_dictionary(kind):
        return is_label(kind.value_type)
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_string or (is_number(kind) and not pa.types.is_decimal(kind))


def numbers_of_column(column: Any, name: str, *, gaps: bool = False) -> np.ndarray:
    """Return the numbers of an Arrow array, refused if it has gaps, or with NaN for each."""
    return _values_of(column, "X", f" in column {format_names([name])}", gaps=gaps)


def targets_of_column(column: Any, name: str) -> np.ndarray:
    """Return the labels or weights in an Arrow array, refused if it has gaps, which change the dtype of a part."""
    return _values_of(column, name, "", as_stored=True)


def unit_labels_of_column(column: Any) -> np.ndarray:
    """Return the labels of units in an Arrow array, refused if it has gaps or nested cells."""
    _refuse_nested(column, "groups")
    if column.null_count:
        refuse_gaps()
    return _values_of(column, "groups", "", as_stored=True)


def subgroups_of_column(column: Any) -> np.ndarray:
    """Return the labels of subgroups in an Arrow array, with its gaps, refused if it has nested cells.

    A gap changes no other label: truth values stay what they are beside it, and numbers have the same keys.
    """
    _refuse_nested(column, "by")
    return _values_of(column, "by", "", as_stored=True, gaps=True)


def _refuse_nested(column: Any, name: str) -> None:
    if pa.types.is_nested(column.type):
        raise ValueError(
            f"{name} is a column of {column.type}, where cells are numbers, texts or dates: name another one."
        )


def _values_of(column: Any, name: str, where: str, *, as_stored: bool = False, gaps: bool = False) -> np.ndarray:
    """Return the values of an Arrow array: of decimals, and of truth values with gaps, numbers unless `as_stored`.

    Gaps are refused, or NaN among numbers with `gaps`.
    """
    values: np.ndarray | None = None
    has_gaps = False
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        has_gaps = column.null_count > 0 and not gaps
        if not has_gaps:
            if column.null_count and pa.types.is_boolean(column.type) and not as_stored:
                column = column.cast(pa.int8())  # of truths with gaps NumPy has no numbers
            if pa.types.is_decimal(column.type) and not as_stored:
                column = column.cast(pa.float64())
            values = column.to_numpy(zero_copy_only=False)
    except MemoryError:
        raise
    except Exception:
        pass  # its message may quote cells
    if has_gaps:
        refuse_not_finite(name, nan=True, where=where)
    if values is None:
        raise ValueError(f"{name} cannot be read{where}: its text is no UTF-8, or its dictionary is damaged.")
    return values


def write_columns(columns: list[np.ndarray], table: NDArray[np.floating]) -> None:
    """Write columns to a table of as many rows."""
    tile = _TILE if table.strides[1] == table.itemsize else max(1, len(table))
    for start in range(0, len(table), tile):
        part = table[start : start + tile]
        for j, values in enumerate(columns):
            part[:, j] = values[start : start + tile]
