"""Private estimates of missing bounds and categories: plan, rows, columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.frames import letter_of
from skdp._checks.numbers import format_names, reject_not_finite
from skdp._checks.table import Table
from skdp.mechanisms.gaussian import noise_ratio
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.cell_tree import lie_at_a_bound
from skdp.preprocessing.column_estimates import (
    OTHER_CELL,
    EstimatedColumns,
    SchemaRows,
    planned_query,
    rows_to_estimate,
)
from skdp.preprocessing.histogram_query import BINS_SHARE, THRESHOLD_SHARE, HistogramQuery
from skdp.preprocessing.raw_columns import match_columns
from skdp.preprocessing.schema.blocks import combinations_left
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.synthesis.marginals.column_levels import exclusions_of, is_possible_to_exclude
from skdp.synthesis.marginals.noisy_tables import MOST_ESTIMATED, LevelRows, Measurement
from skdp.synthesis.marginals.table_form import TableForm, form_of

QUERY_SHARE = 0.1
"""Fraction of mu^2 for private estimates of missing bounds and categories."""

_MADE_UP: dict[str, dict[str, Any]] = {
    "number": {"bounds": (0.0, 1.0)},
    "date": {"bounds": (0.0, 1.0)},
    "category": {"categories": ("a",), "other": OTHER_CELL},
}
"""Placeholder of private estimates, to check before the charge that the types can store it."""


def query_of(model: Any, schema: TableSchema | None) -> tuple[HistogramQuery, float] | None:
    """Return the private estimates beside the marginals, and the ratio of their noise multiplier to that of these.

    They are missing bounds and categories, and bins within public bounds; None if there are none of them.

    Notes
    -----
    **Guarantees.** Bounds, bins and categories are released by `skdp.preprocessing.histogram_query.HistogramQuery`,
    which has the proof; its event is a part of the fit's. The marginals are those of a fit with the estimated schema,
    which is public after its release (adaptive composition). Every cell has a level of an estimated column, so no row
    is rejected because of an estimate.
    """
    if schema is None or (schema.is_complete and not _fits_bins(schema)):
        return None
    # Missing values and other categories have a level each: with these a column has at most MOST_ESTIMATED.
    given = int(model.n_bins), MOST_ESTIMATED - 2, model.adjacency, THRESHOLD_SHARE * float(model.delta)
    share = BINS_SHARE if schema.is_complete else QUERY_SHARE
    return planned_query(schema, *given, _fits_bins(schema)), noise_ratio(share)


class LevelTable(NamedTuple):
    """A table that was read as levels.

    `cells` are those of numbers within bins, by the position of their column; `fractions` indicate whether numbers are
    integers (`TableForm.read_fractions`).
    """

    shape: tuple[int, int]
    schema: TableSchema
    form: TableForm
    codes: list[np.ndarray]
    cells: Mapping[int, np.ndarray]
    fractions: Mapping[int, np.ndarray]

    def shaped_form(self, measurement: Measurement, weighted: LevelRows, stream: SecretStream) -> TableForm:
        """Release the distribution of numbers within bins, of the same weighted rows; return the form with it."""
        n_cells = [self.form.columns[j].n_cells for j in self.cells]
        cells = weighted._replace(codes=list(self.cells.values()))
        return self.form.shaped(dict(zip(self.cells, measurement.shapes(cells, n_cells, stream), strict=True)))

    def wholes(self, measurement: Measurement, weighted: LevelRows, stream: SecretStream) -> frozenset[int]:
        """Release which columns of a non-integer type contain integers only, of the same rows."""
        found = measurement.wholes(weighted._replace(codes=list(self.fractions.values())), stream)
        return frozenset(j for j, is_whole in zip(self.fractions, found, strict=True) if is_whole)


def _fits_bins(schema: TableSchema) -> bool:
    """Whether bins within public bounds are estimated: not if an impossible combination can refer to them."""
    return not schema.impossible and any(column.may_be_skewed for _, column in schema.items())


def read_rows(table: Table, schema: TableSchema, n_bins: int, other: Any, has_cells: bool) -> LevelTable:
    """Read all cells, and reject before the charge any that could not be synthesized after it."""
    form = form_of(table, match_columns(schema, table), n_bins, other)
    exclusions_of(form.columns, schema.impossible)
    form = form.cut() if has_cells else form
    cells, fractions = form.read_cells(table), form.read_fractions(table)
    return LevelTable(table.shape, schema, form, form.read(table), cells, fractions)


def read_to_estimate(table: Table, schema: TableSchema, n_bins: int, other: Any) -> SchemaRows:
    """Read the columns before the estimation of their schema, and reject cells as `read_rows` does."""
    columns = [(name, j, _by_type(schema, name, column, table, j)) for name, j, column in match_columns(schema, table)]
    made_up = [
        (name, j, replace(column, **_MADE_UP[column.kind]) if column.is_estimated else column)
        for name, j, column in columns
    ]
    form = form_of(table, made_up, n_bins, other)
    for level_column, (name, j, column) in zip(
        form.columns, [each for each in columns if each[2].kind != "drop"], strict=True
    ):
        if not column.is_estimated:
            level_column.read(table.cells(j))  # rejects cells outside of the schema
        elif column.kind == "category" and letter_of(form.dtypes[form.names.index(name)]) in "biufMm":
            raise ValueError(
                f"Column {format_names([name])} must have a string type to estimate its categories. List them in "
                "`schema`, or convert the column to strings."
            )
    rows = rows_to_estimate(table, columns, _fits_bins(schema))
    lines = [name for name, *_, column in columns if column.kind != "category" and column.is_wanted(rows.fits_bins)]
    for name, values in zip(lines, rows.numbers, strict=True):
        if bool(np.isinf(values).any()):
            reject_not_finite("X", nan=False, where=f" in column {format_names([name])}")
    return rows


def complete_rows(
    rows: SchemaRows, schema: TableSchema, estimates: EstimatedColumns, n_bins: int, other: Any, has_cells: bool
) -> LevelTable:
    """Return the rows as levels of the estimated columns. No cell is rejected because of an estimate."""
    columns = [
        (name, j, _between(estimates.columns.get(name, column), estimates.spans.get(name), column.bounds))
        for name, j, column in rows.columns
    ]
    form = form_of(rows.table, columns, n_bins, other)
    left = combinations_left(schema.impossible, {name: column for name, _, column in columns})
    left = tuple(each for each in left if is_possible_to_exclude(form.columns, each))
    schema = TableSchema({name: column for name, _, column in columns}, impossible=left)
    form = form.cut() if has_cells else form
    levels, cells = form.read(rows.table), form.read_cells(rows.table)
    lost = {name for name, each in estimates.remains.items() if each.is_lost and each.kind != "category"}
    return LevelTable(rows.shape, schema, form.without(lost), levels, cells, form.read_fractions(rows.table))


def _by_type(schema: TableSchema, name: str, column: Column, table: Table, j: int) -> Column:
    """The public column, if a boolean type determines it."""
    is_unnamed = name not in schema and column.kind == "category"
    return Column("flag", missing_values=("",)) if is_unnamed and table.is_boolean(j) else column


def _between(column: Column, span: tuple[float, float] | None, bounds: tuple[float, float] | None) -> Column:
    """Return a column with bins that end at this span, too: few numbers beyond would be uniform up to the bounds.

    Estimated edges can lie beyond the public bounds, and are clipped to them, so that no synthetic number is beyond.
    Numbers are clipped to the span if nearly all are at one of the bounds, which are then too wide.
    """
    if span is None or bounds is None or column.edges is None:
        return column
    low, *inner, high = column.edges
    ends = () if lie_at_a_bound(np.array(inner), (low, high)) else (low, high)
    edges = tuple(np.unique(np.clip([*ends, *inner, *span], *bounds)).tolist())
    edges = edges if len(edges) > 1 else bounds
    return replace(column, bounds=(edges[0], edges[-1]), edges=edges)
