"""Columns of Arrow tables: which of them are numbers, and their values in blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skdp._fitting.cells import format_names, refuse_not_finite

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


def numbers_of_column(column: Any, name: str) -> NDArray[Any]:
    """Return the numbers of an Arrow array, refused if it has gaps."""
    column = _decoded(column)
    if column.null_count:
        refuse_not_finite("X", nan=True, where=f" in column {format_names([name])}")
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def targets_of_column(column: Any, name: str) -> NDArray[Any]:
    """Return the labels or weights in an Arrow array, refused if it has gaps, which change the dtype of a part."""
    column = _decoded(column)
    if column.null_count:
        refuse_not_finite(name, nan=True)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def write_columns(columns: list[NDArray[Any]], table: NDArray[np.floating]) -> None:
    """Write columns to a table of as many rows."""
    tile = _TILE if table.strides[1] == table.itemsize else max(1, len(table))
    for start in range(0, len(table), tile):
        part = table[start : start + tile]
        for j, values in enumerate(columns):
            part[:, j] = values[start : start + tile]


def _decoded(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


__all__ = ["dtype_of_column", "numbers_of_column", "targets_of_column", "write_columns"]
