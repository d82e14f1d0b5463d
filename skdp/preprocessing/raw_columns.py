"""Reading of raw columns as numbers or keys, and matching with a public schema."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import TransformerMixin

from skdp._checks.numbers import format_names
from skdp._checks.rows import check_schema
from skdp._checks.table import Table, as_keys, as_numbers, tag_raw_tables
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema


class ColumnsRead(NamedTuple):
    """Table whose cells were read: for each column, float64 numbers with NaN for missing values, or codes and keys."""

    table: Table
    columns: list[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.shape


class ReadsRawColumns(TransformerMixin):
    """Mixin with the tags of transformers of raw tables."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tag_raw_tables(tags)
        tags.requires_fit = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def numbers_of(table: Table, j: int) -> np.ndarray:
    """Return column j as numbers with NaN for missing values; raise an error for date types."""
    if table.kind(j) == "date":
        raise ValueError(
            f"Column {format_names([table.names[j]])} has a date type, but numbers are required. Use "
            "DPTableVectorizer, or convert dates to numbers of days."
        )
    return as_numbers(table.cells(j))


def read_columns(model: Any, X: Any, *, reset: bool, as_text: bool = False) -> ColumnsRead:
    """Return a raw table whose cells were read: all of them, because an error after the charge would cost budget."""
    table = Table(X, model)
    columns = [as_keys(table.cells(j)) if as_text else numbers_of(table, j) for j in range(table.shape[1])]
    check_schema(model, table.source, reset=reset)
    return ColumnsRead(table, columns)


# --- by a public schema ---


def read_schema(schema: Any, otherwise: str) -> TableSchema:
    """Return a parameter `schema` as a `TableSchema`; `otherwise` ends the message for other types."""
    if isinstance(schema, TableSchema):
        return schema
    if isinstance(schema, Mapping):
        return TableSchema(schema)
    raise TypeError(
        f"`schema` must be a TableSchema or a dict, got <{type(schema).__name__}>. Pass TableSchema({{'age': (18, 90), "
        f"...}}), a dict, {otherwise}."
    )


def match_columns(schema: TableSchema, table: Table) -> list[tuple[str, int, Column]]:
    """Return names, positions and descriptions of the columns; undeclared columns have types by dtype."""
    known = dict(schema.items())
    there = set(table.names)
    missing = [name for name, column in known.items() if name not in there and column.kind != "drop"]
    if missing:
        close = get_close_matches(str(missing[0]), [name for name in map(str, table.names) if name not in known], 1)
        hint = f"Did you mean {close[0]!r} instead of {missing[0]!r}? " if close else ""
        raise ValueError(
            f"`schema` declares {format_names(missing)}, which X does not have: its columns are "
            f"{format_names(table.names)}. {hint}Correct `schema` (columns of an array are x0, x1, ...)."
        )
    others = [name for name in table.names if name not in known]
    if others and schema.others == "error":
        raise ValueError(
            f"`schema` does not declare {format_names(others)}. Declare these columns, or set TableSchema(..., "
            "others='drop') to drop them, or others='estimate' to estimate their bounds and categories privately."
        )
    columns = []
    for j, name in enumerate(table.names):
        kind = "drop" if schema.others == "drop" else table.kind(j) if name in others else ""
        column = Column(kind) if name in others else known[name]
        if column.kind != "drop":
            table.kind(j)  # rejects types of complex and nested cells
        reject_dates(name, column, table, j)
        if column.kind == "date" and table.is_typed and table.kind(j) == "number":
            raise ValueError(
                f"Column {name!r} is a date in `schema`, but has a numeric type in X. Convert it, for example with "
                "pandas.to_datetime, or declare numeric bounds."
            )
        columns.append((name, j, column))
    if all(column.kind == "drop" for _, _, column in columns):
        raise ValueError("`schema` drops all columns of X. Keep at least one column.")
    return columns


def kinds_by_type(table: Table, columns: list[tuple[str, int, Column]]) -> dict[str, str]:
    """Return the types of the columns that are not dropped, by name and dtype; nothing for a list of rows."""
    return {name: table.kind(j) for name, j, column in columns if table.is_typed and column.kind != "drop"}


def reject_dates(name: str, column: Column, table: Table, j: int) -> None:
    """Raise an error if a column has a date type but is a number in the schema."""
    if column.kind == "number" and table.kind(j) == "date":
        raise ValueError(
            f"Column {name!r} is a number in `schema`, but has a date type in X. Declare two dates as bounds."
        )


def check_input_names(estimator: Any, input_features: Any) -> None:
    """Raise an error if names for `get_feature_names_out` differ from those of the fitted columns."""
    if input_features is None:
        return
    own = getattr(estimator, "feature_names_in_", None)
    if own is not None and not np.array_equal(own, np.asarray(input_features, dtype=object)):
        raise ValueError("input_features is not equal to feature_names_in_. Pass None.")
    if len(input_features) != estimator.n_features_in_:
        raise ValueError(
            f"input_features should have length equal to number of features ({estimator.n_features_in_}), got "
            f"{len(input_features)}. Pass None."
        )


def sparse_rows(columns: np.ndarray, values: np.ndarray, width: int) -> Any:
    """Return a CSR matrix with the same number of entries in each row, including zeros of scaled numbers."""
    n, k = columns.shape
    ends = np.arange(0, n * k + 1, k, dtype=np.int32 if n * k < 2**31 else np.int64)
    return sp.csr_matrix((values.ravel(), columns.ravel(), ends), shape=(n, width))
