"""What a synthesizer buys of a table whose schema leaves out bounds or categories: its plan, its rows, its columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.cells import format_names, refuse_not_finite
from skdp._checks.table import Table
from skdp.accounting import DpEvent
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histograms.purchase import THRESHOLD_SHARE, Purchase, noise_ratio
from skdp.preprocessing.schema.kinds import Column
from skdp.preprocessing.schema.matching import match_columns
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.preprocessing.schema_buyer import (
    OTHER_CELL,
    BoughtColumns,
    SchemaRows,
    bought_columns,
    planned_purchase,
    rows_to_buy,
)
from skdp.synthesis.marginals.noisy_tables import MOST_LEVELS
from skdp.synthesis.marginals.table_form import form_of, letter_of

PURCHASE_SHARE = 0.1
"""Share of mu^2 for what the schema leaves out, where it does."""

_MADE_UP: dict[str, dict[str, Any]] = {
    "number": {"bounds": (0.0, 1.0)},
    "date": {"bounds": (0.0, 1.0)},
    "category": {"categories": ("a",), "other": OTHER_CELL},
}
"""What stands for what is bought, to see before the charge whether the types hold it."""


class TablePurchase(NamedTuple):
    """What is bought beside the tables of counts. All of its fields are public.

    Attributes
    ----------
    schema : TableSchema
        It leaves something out.
    n_bins : int
    adjacency : str
    delta : float
        Of the whole fit.

    Notes
    -----
    **Guarantees.** Bounds, bins and categories are released by `skdp.preprocessing.histograms.purchase.Purchase`, whose
    proof they have; its event is a part of the fit's. The tables of counts are those of a fit with that schema, which
    is public once it is bought (adaptive composition). Every cell has a level of a bought column, so no row is refused
    for what was bought.
    """

    schema: TableSchema
    n_bins: int
    adjacency: str
    delta: float

    @property
    def _purchase(self) -> Purchase:
        # A level each is that of gaps and of other categories: with these a column has no more than MOST_LEVELS.
        threshold = THRESHOLD_SHARE * self.delta
        return planned_purchase(self.schema, self.n_bins, MOST_LEVELS - 2, self.adjacency, threshold)

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """What it costs where the tables of counts have this noise multiplier."""
        return self._purchase.event_at(noise_ratio(PURCHASE_SHARE) * noise_multiplier)

    def buy(self, rows: SchemaRows, noise_multiplier: float, n_public: int, stream: SecretStream) -> BoughtColumns:
        """Release what is missing, at that price."""
        return bought_columns(self._purchase, rows, noise_ratio(PURCHASE_SHARE) * noise_multiplier, n_public, stream)


def read_table(table: Table, schema: TableSchema, n_bins: int, other: Any) -> SchemaRows:
    """Read all columns, and refuse before the charge what could not be synthesized after it."""
    columns = [(name, j, _by_type(schema, name, column, table, j)) for name, j, column in match_columns(schema, table)]
    made_up = [(name, j, _made_up(column)) for name, j, column in columns]
    form = form_of(table, made_up, n_bins, other)
    for level_column, (name, j, column) in zip(
        form.columns, [each for each in columns if each[2].kind != "drop"], strict=True
    ):
        if not column.is_bought:
            level_column.read(table.cells(j))  # which refuses what a schema has said that there is not
        elif column.kind == "category" and letter_of(form.dtypes[form.names.index(name)]) in "biufMm":
            raise ValueError(
                f"column {format_names([name])} is not of a type of text, and its categories are bought: list them, or "
                "convert the column to text."
            )
    rows = rows_to_buy(table, columns)
    lines = [name for name, _, column in columns if column.is_bought and column.kind != "category"]
    for name, values in zip(lines, rows.numbers, strict=True):
        if bool(np.isinf(values).any()):
            refuse_not_finite("X", nan=False, where=f" in column {format_names([name])}")
    return rows


def complete_columns(rows: SchemaRows, bought: BoughtColumns) -> list[tuple[str, int, Column]]:
    """Names, positions and columns with what was bought of them."""
    return [(name, j, bought.columns.get(name, column)) for name, j, column in rows.columns]


def _by_type(schema: TableSchema, name: str, column: Column, table: Table, j: int) -> Column:
    """The public column, where a type of truth values says all that there is to know."""
    is_unnamed = name not in schema and column.kind == "category"
    return Column("flag", gaps=("",)) if is_unnamed and table.is_boolean(j) else column


def _made_up(column: Column) -> Column:
    return replace(column, **_MADE_UP[column.kind]) if column.is_bought else column


__all__ = ["TablePurchase", "complete_columns", "read_table"]
