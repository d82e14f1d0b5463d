"""Data frames of every library: one adapter, through narwhals.

Frames of pandas, polars and Arrow are used as they are; frames of other libraries become one of these when they enter.
Columns of polars and Arrow, which have a type, are read through narwhals. Columns of pandas are read by
`skdp._checks.table`, because a cell of type object has a type of its own, and narwhals has no sparse columns.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from narwhals.stable.v2.dependencies import is_pandas_dataframe, is_pyarrow_table

_LETTERS = (("bool", "b"), ("int", "i"), ("uint", "u"), ("float", "f"), ("double", "f"), ("halffloat", "f"),
            ("decimal", "f"), ("datetime", "M"), ("timestamp", "M"), ("date", "M"), ("duration", "m"), ("list", "V"),
            ("array", "V"), ("struct", "V"), ("large_list", "V"), ("fixed_size_list", "V"), ("map", "V"))  # fmt: skip


def in_memory(X: Any, name: str = "X") -> Any:
    """Return a frame of any library as one of pandas, polars or Arrow; Dask frames and all else as they are.

    Frames and series of narwhals are unwrapped. A DuckDB relation is run once, because another run may order its rows
    differently. Other lazy frames are rejected.
    """
    if type(X) is np.ndarray or sp.issparse(X) or is_pandas_dataframe(X) or hasattr(X, "__dask_graph__"):
        return X
    X = nw.to_native(X, pass_through=True)
    if type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        X = pa.table(X)
    if is_pyarrow_table(X):  # narwhals rejects duplicate names with an error of its own
        return X
    frame: Any = nw.from_native(X, pass_through=True)
    is_relation = isinstance(frame, nw.LazyFrame) and frame.implementation.is_duckdb()
    if is_relation:
        with suppress(Exception):  # of the query, whose message may quote a cell
            frame = frame.collect("pyarrow")
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"{name} must be an in-memory table, got a lazy {type(X).__name__}. Pass an in-memory data frame, for "
            f"example {name}.{'df' if is_relation else 'collect'}()."
        )
    if not isinstance(frame, nw.DataFrame):
        return X
    is_ours = frame.implementation.is_polars() or frame.implementation.is_pyarrow()
    return frame.to_native() if is_ours else frame.to_pandas()


def library_of(X: Any) -> str:
    """Return the library of an array or a data frame: "numpy", "pandas", "polars" or "pyarrow"."""
    return "numpy" if isinstance(X, np.ndarray) else str(nw.from_native(X).implementation.value)


def column_of(X: Any, j: int) -> Any:
    """Return column j of a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[:, j]
    return X.column(j) if is_pyarrow_table(X) else X.to_series(j)


def type_of(column: Any) -> Any:
    """Return the type of a column."""
    return column.dtype if hasattr(column, "dtype") else getattr(column, "type", None)


def types_of(X: Any) -> list[Any]:
    """Return the types of the columns of a data frame, or the one of a column or an array."""
    if is_pyarrow_table(X):
        return list(X.schema.types)
    types = getattr(X, "dtypes", type_of(X))
    return list(types) if hasattr(types, "__iter__") else [types]


def new_frame(library: Any, columns: dict[str, Any], types: dict[str, Any]) -> Any:
    """Return columns as a frame of polars or Arrow, cast to types of this library."""
    frame = nw.from_dict(columns, backend=library).to_native()
    if library == "polars":
        return frame.cast(types)
    import pyarrow as pa

    return frame.cast(pa.schema(types), safe=False)  # of microseconds as seconds


def letter_of(dtype: Any) -> str:
    """Return the letter of a type of any library, as those of NumPy's kinds: "V" if nested, "O" if it has no letter."""
    if str(getattr(dtype, "pyarrow_dtype", "")).startswith("decimal"):  # which pandas calls objects
        return "f"
    if isinstance(kind := getattr(dtype, "kind", None), str):
        return kind
    name = str(dtype).lower()
    return next((letter for start, letter in _LETTERS if name.startswith(start)), "O")
