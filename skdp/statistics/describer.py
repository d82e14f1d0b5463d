"""How a table is described: what is read and paid, in the phases of a fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from typing import Any, NoReturn, Self

import numpy as np

from skdp._checks.groups import check_row_limit
from skdp._checks.notices import narrow_bounds_notice, note_notice
from skdp._checks.numbers import format_names
from skdp._checks.parameters import check_choice, read_real, show
from skdp._checks.rows import split_column
from skdp._checks.table import Table
from skdp._checks.weights import WeightReader, exactly_summable
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.base.estimator import with_parameters
from skdp.base.fit import Fit, begin
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.mechanisms.gaussian import noise_ratio
from skdp.preprocessing.column_estimates import SchemaBuyer, SchemaRows, bought_columns, note_remains, read_by_schema
from skdp.preprocessing.schema.kinds import Column
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.statistics.cells import OTHER, ColumnCells
from skdp.statistics.table_release import (
    DISCRETE,
    KINDS_OF_NOISE,
    ROUNDED,
    DescribedRows,
    Questions,
    Shares,
    TableRelease,
    add_up,
)

_PURCHASE = 0.1
"""Share of mu^2 for what the schema leaves out, where it does."""

_PURCHASE_RATIO = noise_ratio(_PURCHASE)

MOST_BINS = 64


@with_parameters
class TableDescriber(SchemaBuyer):
    """What `skdp.describe` fits; its parameters are explained there."""

    _public_name = "describe"

    schema: Any = None
    _: KW_ONLY
    by: Any = None
    correlation: bool = True
    crosstabs: Any = ()
    quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95)
    n_bins: int = MOST_BINS
    weight_bound: float | None = None
    rows_per_group: int | None = None
    shares: Shares | None = None
    noise: str = ROUNDED
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    max_categories: int = 100
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Describe the rows."""
        X, given = split_column(X, "sample_weight", sample_weight)
        fit = begin(self, X, groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        check_row_limit(model.rows_per_group, model._unit())
        model._check_own_parameters()
        if model.noise == DISCRETE and not (groups is None and sample_weight is None):
            model._refuse_discrete("weights and groups make parts of rows", "use noise='rounded' with these")
        fit.plan(model._event_at())

        rows = fit.read_rows(_read_rows)
        weights = fit.read(weight_reader.read, given, fit.n_rows)
        fit.charge()

        fit.learn(model._describe, fit, rows, None if given is None else weights)
        return fit.publish()

    # --- the price ---

    def _event_at(self) -> Callable[[float], DpEvent]:
        """Return the event of a fit at its noise multiplier: what the schema leaves out, beside the description."""
        if self.noise == DISCRETE:
            n_columns, n_tables = self._n_columns(), len(self.crosstabs)
            return lambda noise: self._release(noise).event_of_counts(n_columns, n_tables)
        if self._given_schema().is_complete:
            return GaussianDpEvent
        purchase = self._purchase()
        return lambda noise: compose([purchase.event_at(_PURCHASE_RATIO * noise), GaussianDpEvent(noise)])

    def _release(self, noise_multiplier: float) -> TableRelease:
        return TableRelease(noise_multiplier, self.adjacency, self.shares, self.noise, float(self.rows_per_group or 1))

    def _n_columns(self) -> int:
        """Number of described columns, where the schema names them all."""
        return sum(column.kind != "drop" for _, column in self._given_schema().items())

    # --- what is refused ---

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        check_choice("noise", self.noise, KINDS_OF_NOISE)
        if not isinstance(self.correlation, bool | np.bool_):
            raise ValueError(f"correlation={show(self.correlation)} is no truth value: use True or False.")
        found = [read_real(each) for each in _listed("quantiles", self.quantiles)]
        if any(q is None or not 0.0 < q < 1.0 for q in found):
            raise ValueError(
                f"quantiles={show(self.quantiles)}: give numbers between 0 and 1, such as (0.25, 0.5, 0.75)."
            )
        if self.by is not None and not isinstance(self.by, str):
            raise ValueError(f"by={show(self.by)} is no name of a column: name one with listed categories, or None.")
        for pair in _listed("crosstabs", self.crosstabs):
            is_pair = isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
            if not is_pair or pair[0] == pair[1]:
                raise ValueError(
                    f"crosstabs has {show(pair)}: give pairs of names of two columns, such as ('sex', 'job')."
                )
        if self.noise == DISCRETE:
            self._check_counts_alone()

    def _check_counts_alone(self) -> None:
        """Refuse to add whole numbers to what is no count of rows in public cells."""
        schema = self._given_schema()
        if not schema.is_complete:
            self._refuse_discrete("what the schema leaves out is bought", "list bounds and categories there")
        on_lines = any(column.kind in ("number", "date") for _, column in schema.items())
        if on_lines and (self.shares is None or self.shares.moments > 0.0):
            self._refuse_discrete("moments of numbers are no counts", "use private_histogram, or noise='rounded'")
        if self.correlation:
            self._refuse_discrete("correlations are measured by sums", "use correlation=False")
        if self.by is not None:
            self._refuse_discrete(f"by={self.by!r} has subgroups", "name the pairs in crosstabs, or use by=None")
        if self.noise_multiplier is not None:
            self._release(float(self.noise_multiplier)).check_counts(self._n_columns(), len(self.crosstabs))

    def _refuse_discrete(self, why: str, remedy: str) -> NoReturn:
        raise ValueError(f"noise='discrete' counts rows in public cells, and {why}: {remedy}.")

    def _check_columns(self, rows: SchemaRows) -> None:
        """Reject parameters that do not fit the columns of the table."""
        there = [name for name, _, column in rows.columns if column.kind != "drop"]
        if self.noise == DISCRETE and len(there) != self._n_columns():
            self._refuse_discrete("X has other columns than the schema", "name each of them there once")
        asked = [name for pair in self.crosstabs for name in pair]
        if unknown := [name for name in asked if name not in there or name == self.by]:
            raise ValueError(
                f"crosstabs names {format_names(unknown)}, no described column of X: name those of the schema."
            )
        if self.by is not None:
            column = next((column for name, _, column in rows.columns if name == self.by and name in there), None)
            if column is None or column.kind in ("number", "date") or column.is_bought:
                raise ValueError(
                    f"by={self.by!r} is no column whose categories the schema lists: list them there, as subgroups "
                    "have to be public."
                )
            if len(there) == 1:
                raise ValueError(f"by={self.by!r} is the only column: there is nothing to describe in its subgroups.")

    # --- the release ---

    def _describe(self, fit: Fit, rows: SchemaRows, given: np.ndarray | None) -> None:
        """Release what the schema leaves out, and then the description; `given` are weights in [0, 1] or None."""
        found: dict[str, Column] = {}
        if not self._given_schema().is_complete:
            noise = _PURCHASE_RATIO * fit.noise_multiplier
            bought = bought_columns(self._purchase(), rows, noise, fit.n, fit.spawn("columns"), fit.units)
            note_remains(self, bought, fit.n)
            found = {
                name: _on_whole(bought.columns[name]) if rows.table.is_whole(j) else bought.columns[name]
                for name, j, _ in rows.columns
                if name in bought.columns
            }
        columns = {name: found.get(name, column) for name, _, column in rows.columns}
        cells = [
            ColumnCells.of(name, j, columns[name], int(self.n_bins), rows.table.is_whole(j))
            for name, j, _ in rows.columns
            if columns[name].kind != "drop"
        ]
        if found:
            cells = [replace(each, is_clipped=True) if each.name in bought.beyond else each for each in cells]
            lost = {name for name in bought.beyond if bought.remains[name].is_lost}
            cells = [each.as_lost() if each.name in lost else each for each in cells]
            note_notice(
                self,
                _clipping_notice([each for each in cells if each.is_clipped], bought.beyond, self._units_in_words()),
            )
        described = [each for each in cells if each.name != self.by]
        groups, of_rows = self._subgroups(next((each for each in cells if each.name == self.by), None), rows.table)
        weights = None if fit.units is None and given is None else _weights_of(fit, given, self.rows_per_group or 1)
        asked = Questions(
            described,
            groups,
            bool(self.correlation),
            [tuple(pair) for pair in self.crosstabs],
            self._public_total(fit.n) if given is None and self.rows_per_group is None else None,
            [rows.table.label(each.block.position) for each in described],
        )
        described_rows = DescribedRows([each.read(rows.table) for each in described], of_rows, weights)
        stream = fit.spawn("description")
        asked, self.tallies_ = self._release(fit.noise_multiplier).measure(described_rows, asked, stream)
        self.questions_, self.schema_ = asked, TableSchema(columns)
        whole = add_up(self.tallies_, asked.n)
        known = zip(described, asked.cells, whole.counts, strict=True)
        narrow = [a.name for a, b, counts in known if a.may_be_skewed and b.is_at_a_bound(counts, whole.deviation)]
        note_notice(self, narrow_bounds_notice(narrow))

    def _public_total(self, n: int) -> float | None:
        """The number of rows or units, where it is public."""
        return None if self.adjacency == "add_remove" else float(n)

    def _subgroups(self, by: ColumnCells | None, table: Table) -> tuple[list[str], np.ndarray]:
        """Names of the subgroups, and that of each row: what is not listed, and gaps, are "other"."""
        if by is None:
            return [""], np.zeros(table.shape[0], np.int32)
        names = [*(each for each in by.labels if each != OTHER), OTHER]
        places = [*map(names.index, by.labels), len(names) - 1]  # a listed category may be called "(other)" too
        return names, np.array(places, np.int32)[by.codes(by.read(table))]


def _read_rows(model: TableDescriber, X: Any, *, reset: bool) -> SchemaRows:
    rows = read_by_schema(model, X, reset=reset)
    model._check_columns(rows)
    return rows


def _weights_of(fit: Fit, given: np.ndarray | None, row_limit: int) -> np.ndarray:
    """Return weights of the rows, in [0, 1], which add up to `row_limit` at most in each group."""
    shares = np.ones(fit.n_rows) if given is None else given
    return np.asarray(exactly_summable(clip_groups(fit.units, shares, row_limit)))


def _on_whole(column: Column) -> Column:
    """Return a column of whole numbers with whole edges, so that its bounds are those to which values are clipped."""
    if column.kind != "number" or column.edges is None:
        return column
    edges = tuple(np.unique([*np.ceil(column.edges[:-1]), math.floor(column.edges[-1])]).tolist())
    return replace(column, bounds=(edges[0], edges[-1]), edges=edges) if len(edges) > 1 else column


def _clipping_notice(cells: list[ColumnCells], beyond: Mapping[str, float], units: str) -> str:
    """Return what the estimates of columns with privately estimated bounds leave out, by released counts; "" if none.

    The limit holds for the rows or groups, and for each column alone.
    """
    if not cells:
        return ""
    each = [
        f"{format_names([one.name])} to [{', '.join(one.ends)}] (at most {beyond[one.name]:.0f} {units} beyond)"
        for one in cells
    ]
    return (
        "Means, sums, standard deviations and quantiles are of values clipped to privately estimated bounds: "
        f"{', '.join(each)}. Values beyond may have any size. Set public bounds to include them."
    )


def _listed(name: str, given: Any) -> Sequence[Any]:
    if isinstance(given, tuple | list | np.ndarray):
        return list(given)
    raise ValueError(f"{name}={show(given)} is no list: give a list or a tuple.")
