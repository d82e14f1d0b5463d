"""What is public of a table, and what is bought where that leaves out bounds or categories: plan, rows, columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.groups import Units
from skdp._checks.numbers import format_names, refuse_not_finite
from skdp._checks.parameters import bounds_of_columns, check_bounds, check_choice, check_count, show
from skdp._checks.table import Table
from skdp.accounting import DpEvent
from skdp.mechanisms.gaussian import noise_ratio
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.cell_tree import lie_at_a_bound
from skdp.preprocessing.column_estimates import (
    OTHER_CELL,
    BoughtColumns,
    SchemaRows,
    bought_columns,
    planned_purchase,
    rows_to_buy,
)
from skdp.preprocessing.histogram_query import BINS_SHARE, THRESHOLD_SHARE, Purchase
from skdp.preprocessing.raw_columns import match_columns, read_schema
from skdp.preprocessing.schema.blocks import combinations_left
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.synthesis.marginals.column_levels import exclusions_of, is_possible_to_exclude
from skdp.synthesis.marginals.noisy_tables import MOST_COLUMNS, MOST_ESTIMATED, MOST_LEVELS, LevelRows, Measurement
from skdp.synthesis.marginals.table_form import TableForm, form_of, letter_of

N_ROUNDS = 2
"""Rounds in which pairs are selected (benchmarks/README.md)."""

PAIRS = ("auto", "all", "select")

PURCHASE_SHARE = 0.1
"""Share of mu^2 for what the schema leaves out, where it does."""

_MADE_UP: dict[str, dict[str, Any]] = {
    "number": {"bounds": (0.0, 1.0)},
    "date": {"bounds": (0.0, 1.0)},
    "category": {"categories": ("a",), "other": OTHER_CELL},
}
"""What stands for what is bought, to see before the charge whether the types hold it."""


class StatedTable(NamedTuple):
    """What a user says of a table, as parameters, and what follows from that before its rows are read.

    Attributes
    ----------
    schema : TableSchema, mapping or None
    bounds : (float, float), list of (float, float) or None
    n_bins : int
    pairs : {"auto", "all", "select"}
    """

    schema: Any
    bounds: Any
    n_bins: Any
    pairs: Any

    def given(self) -> TableSchema | None:
        """Return the public schema as it was given, None where bounds stand for it."""
        if self.schema is None:
            return TableSchema({}, others="estimate") if self.bounds is None else None
        if self.bounds is not None:
            raise ValueError(f"bounds={show(self.bounds)} is given beside schema: say it in the schema.")
        return read_schema(self.schema, "or None, to buy everything")

    def read(self, names: list[str]) -> TableSchema:
        """Return the public schema of a table with columns of these names."""
        schema = self.given()
        if schema is not None:
            return schema
        if isinstance(found := check_bounds(self.bounds), list) and None in found:
            raise ValueError(
                "schema=None and bounds say nothing about some columns: give a TableSchema, or bounds=(low, high) "
                "if all columns are numbers."
            )
        return TableSchema(dict(zip(names, bounds_of_columns(self.bounds, len(names)), strict=True)))

    def n_rounds(self, n_features: int) -> int:
        """Return the rounds of selection, 0 if all pairs are measured: from schema and width alone."""
        if check_choice("pairs", self.pairs, PAIRS) != "auto":
            return N_ROUNDS if self.pairs == "select" else 0
        n_bins = check_count("n_bins", self.n_bins, remedy="choose a whole number of bins, such as 16")
        schema = self.given()
        named = () if schema is None else schema.items()
        columns = [column for _, column in named if column.kind != "drop"]
        sizes = [len(column.categories or ()) or len(column.edges or ()) or n_bins for column in columns]
        if schema is None or schema.others == "estimate":  # bought columns have few enough levels
            sizes += [n_bins] * (n_features - len(named))
        return N_ROUNDS if len(sizes) > MOST_COLUMNS or max(sizes, default=0) > MOST_LEVELS else 0

    def purchases(self, adjacency: str, delta: Any) -> tuple[TablePurchase, ...]:
        """Return what is estimated privately: what the schema leaves out, and bins of numbers within public bounds."""
        schema = self.given()
        if schema is None or (schema.is_complete and not _fits_bins(schema)):
            return ()
        return (TablePurchase(schema, int(self.n_bins), adjacency, float(delta)),)


class TablePurchase(NamedTuple):
    """What is bought beside the tables of counts. All of its fields are public.

    Attributes
    ----------
    schema : TableSchema
        It leaves something out, or has bounds of numbers.
    n_bins : int
    adjacency : str
    delta : float
        Of the whole fit.

    Notes
    -----
    **Guarantees.** Bounds, bins and categories are released by `skdp.preprocessing.histogram_query.Purchase`, whose
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
        # A level each is that of gaps and of other categories: with these a column has no more than MOST_ESTIMATED.
        given = self.n_bins, MOST_ESTIMATED - 2, self.adjacency, THRESHOLD_SHARE * self.delta
        return planned_purchase(self.schema, *given, _fits_bins(self.schema))

    def _noise_at(self, noise_multiplier: float) -> float:
        return noise_ratio(BINS_SHARE if self.schema.is_complete else PURCHASE_SHARE) * noise_multiplier

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """What it costs where the tables of counts have this noise multiplier."""
        return self._purchase.event_at(self._noise_at(noise_multiplier))

    def buy(
        self, rows: SchemaRows, noise_multiplier: float, n_public: int, stream: SecretStream, units: Units | None
    ) -> BoughtColumns:
        """Release what is missing, at that privacy cost."""
        return bought_columns(self._purchase, rows, self._noise_at(noise_multiplier), n_public, stream, units)


class LevelTable(NamedTuple):
    """A table that was read as levels; or whose columns are read, and what its schema leaves out is to be bought.

    `cells` are those of numbers within bins, by the position of their column; `fractions` say whether numbers are
    whole (`TableForm.read_fractions`).
    """

    shape: tuple[int, int]
    schema: TableSchema
    form: TableForm | None
    codes: list[np.ndarray]
    cells: Mapping[int, np.ndarray] = {}
    to_buy: SchemaRows | None = None
    fractions: Mapping[int, np.ndarray] = {}

    @property
    def n_columns(self) -> int:
        """Columns that are not dropped."""
        if self.to_buy is not None:
            return sum(column.kind != "drop" for _, _, column in self.to_buy.columns)
        return len(self.codes)

    def shaped_form(self, measurement: Measurement, weighted: LevelRows, stream: SecretStream) -> TableForm:
        """Release how numbers lie within bins, of the same rows with the same weights, and return the form with it."""
        assert self.form is not None  # complete
        n_cells = [self.form.columns[j].n_cells for j in self.cells]
        cells = weighted._replace(codes=list(self.cells.values()))
        return self.form.shaped(dict(zip(self.cells, measurement.shapes(cells, n_cells, stream), strict=True)))

    def wholes(self, measurement: Measurement, weighted: LevelRows, stream: SecretStream) -> frozenset[int]:
        """Release which columns of another type than whole numbers have whole numbers, of the same rows."""
        found = measurement.wholes(weighted._replace(codes=list(self.fractions.values())), stream)
        return frozenset(j for j, is_whole in zip(self.fractions, found, strict=True) if is_whole)


def _fits_bins(schema: TableSchema) -> bool:
    """Whether bins of numbers within public bounds are estimated: not where a combination may name a range of them."""
    return not schema.impossible and any(column.may_be_skewed for _, column in schema.items())


def read_rows(
    table: Table, schema: TableSchema, n_bins: int, other: Any, has_cells: bool, estimates: bool
) -> LevelTable:
    """Read all cells, and refuse before the charge what could not be synthesized after it."""
    if estimates:
        return LevelTable(table.shape, schema, None, [], to_buy=_read_to_buy(table, schema, n_bins, other))
    form = form_of(table, match_columns(schema, table), n_bins, other)
    exclusions_of(form.columns, schema.impossible)
    form = form.cut() if has_cells else form
    cells, fractions = form.read_cells(table), form.read_fractions(table)
    return LevelTable(table.shape, schema, form, form.read(table), cells, fractions=fractions)


def _read_to_buy(table: Table, schema: TableSchema, n_bins: int, other: Any) -> SchemaRows:
    columns = [(name, j, _by_type(schema, name, column, table, j)) for name, j, column in match_columns(schema, table)]
    made_up = [
        (name, j, replace(column, **_MADE_UP[column.kind]) if column.is_bought else column)
        for name, j, column in columns
    ]
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
    rows = rows_to_buy(table, columns, _fits_bins(schema))
    lines = [name for name, *_, column in columns if column.kind != "category" and column.is_wanted(rows.fits_bins)]
    for name, values in zip(lines, rows.numbers, strict=True):
        if bool(np.isinf(values).any()):
            refuse_not_finite("X", nan=False, where=f" in column {format_names([name])}")
    return rows


def complete_rows(rows: LevelTable, bought: BoughtColumns, n_bins: int, other: Any, has_cells: bool) -> LevelTable:
    """Return the rows as levels of the columns that were bought. No cell is refused for what was bought."""
    to_buy = rows.to_buy
    assert to_buy is not None  # something was bought
    columns = [
        (name, j, _between(bought.columns.get(name, column), bought.spans.get(name), column.bounds))
        for name, j, column in to_buy.columns
    ]
    form = form_of(to_buy.table, columns, n_bins, other)
    left = combinations_left(rows.schema.impossible, {name: column for name, _, column in columns})
    left = tuple(each for each in left if is_possible_to_exclude(form.columns, each))
    schema = TableSchema({name: column for name, _, column in columns}, impossible=left)
    form = form.cut() if has_cells else form
    levels, cells = form.read(to_buy.table), form.read_cells(to_buy.table)
    lost = {name for name, each in bought.remains.items() if each.is_lost and each.kind != "category"}
    fractions = form.read_fractions(to_buy.table)
    return LevelTable(rows.shape, schema, form.without(lost), levels, cells, fractions=fractions)


def _by_type(schema: TableSchema, name: str, column: Column, table: Table, j: int) -> Column:
    """The public column, where a type of truth values says all that there is to know."""
    is_unnamed = name not in schema and column.kind == "category"
    return Column("flag", gaps=("",)) if is_unnamed and table.is_boolean(j) else column


def _between(column: Column, span: tuple[float, float] | None, bounds: tuple[float, float] | None) -> Column:
    """Return a column with bins that end at this span, too: few numbers beyond would be spread evenly to the bounds.

    Estimated edges can lie beyond the public bounds, and are moved to them, so that no synthetic number is beyond.
    Numbers are moved between the ends of the span where nearly all is at one of the bounds, for which these are wide.
    """
    if span is None or bounds is None or column.edges is None:
        return column
    low, *inner, high = column.edges
    ends = () if lie_at_a_bound(np.array(inner), (low, high)) else (low, high)
    edges = tuple(np.unique(np.clip([*ends, *inner, *span], *bounds)).tolist())
    edges = edges if len(edges) > 1 else bounds
    return replace(column, bounds=(edges[0], edges[-1]), edges=edges)
