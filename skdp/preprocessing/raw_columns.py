"""What transformers share that learn something of each column of a raw table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import TransformerMixin

from skdp._checks.numbers import format_names
from skdp._checks.rows import check_schema
from skdp._checks.table import Table, as_keys, as_numbers, tag_raw_tables


class ColumnsRead(NamedTuple):
    """A table whose cells were read: float64 numbers with NaN for missing values, or codes and keys, of each column."""

    table: Table
    columns: list[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.shape


class ReadsRawColumns(TransformerMixin):
    """Base of transformers of raw tables: their tags."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tag_raw_tables(tags)
        tags.requires_fit = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def numbers_of(table: Table, j: int) -> np.ndarray:
    """Column j as numbers, NaN for gaps; refused if its type is one of dates."""
    if table.kind(j) == "date":
        raise ValueError(
            f"column {format_names([table.names[j]])} is of a type of dates where numbers are needed: use "
            "DPTableVectorizer, or give days as numbers."
        )
    return as_numbers(table.cells(j))


def read_columns(model: Any, X: Any, *, reset: bool, as_text: bool = False) -> ColumnsRead:
    """Return a raw table whose cells were read: all of them, since a rejection after the charge would be charged."""
    table = Table(X, model)
    columns = [as_keys(table.cells(j)) if as_text else numbers_of(table, j) for j in range(table.shape[1])]
    check_schema(model, table.source, reset=reset)
    return ColumnsRead(table, columns)
