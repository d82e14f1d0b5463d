"""Columns of a table by a public schema, and private estimates of what the schema leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.groups import ROW, Units
from skdp._checks.notices import narrow_bounds_notice, note_notice, tell_now
from skdp._checks.numbers import day_text, days_of, format_names
from skdp._checks.parameters import check_count
from skdp._checks.rows import check_schema
from skdp._checks.table import Table, as_keys
from skdp.base.estimator import BudgetedEstimator
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.cell_tree import all_edges, bins_are_crowded, lie_at_a_bound
from skdp.preprocessing.histogram_query import THRESHOLD_SHARE, Held, HistogramQuery
from skdp.preprocessing.raw_columns import ReadsRawColumns, match_columns, read_schema
from skdp.preprocessing.schema.blocks import read_line
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema


class SchemaRows(NamedTuple):
    """Table with checked columns; the columns to be estimated are kept.

    `fits_bins` states whether numbers within public bounds are kept as well.
    """

    table: Table
    columns: list[tuple[str, int, Column]]
    numbers: list[np.ndarray]
    words: list[tuple[np.ndarray, list[str]]]
    fits_bins: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.table.shape


class SchemaModel(ReadsRawColumns, BudgetedEstimator):
    """Mixin for estimators with the parameters ``schema, n_bins, max_categories``."""

    schema: Any
    n_bins: int
    max_categories: int
    fit_bins: bool = False

    def _given_schema(self) -> TableSchema:
        if self.schema is None:
            return TableSchema({}, others="estimate")
        return read_schema(self.schema, "TableSchema.from_json(path), or None to estimate everything")

    def _check_own_parameters(self) -> None:
        """Reject parameters that are unusable for any table."""
        self._given_schema()
        check_count("n_bins", self.n_bins, constraint="a positive integer, such as 16")
        check_count("max_categories", self.max_categories, constraint="a positive integer, such as 100")

    def _query(self) -> HistogramQuery:
        """Release that the fit may need, as far as parameters determine it."""
        share = THRESHOLD_SHARE * float(self.delta)
        given = self.n_bins, self.max_categories, self.adjacency, share, bool(self.fit_bins)
        return planned_query(self._given_schema(), *given)


def read_by_schema(model: SchemaModel, X: Any, *, reset: bool) -> SchemaRows:
    """Return a table whose cells were read: all of them, because an error after the charge would cost budget."""
    table, schema = Table(X, model), model._given_schema()
    warn_of_objects(model, schema, table)
    rows = rows_to_estimate(table, match_columns(schema, table), bool(model.fit_bins))
    check_schema(model, table.source, reset=reset)
    return rows


def planned_query(
    schema: TableSchema,
    n_bins: int,
    max_categories: int,
    adjacency: str,
    threshold_delta: float,
    fits_bins: bool = False,
) -> HistogramQuery:
    """Return the release that a fit may need, as far as parameters determine it."""
    estimates = [each.kind for _, each in schema.items() if each.is_wanted(fits_bins)]
    unknown = schema.others == "estimate"  # kinds follow from types, which are known at the fit
    words = unknown or "category" in estimates
    numbers = unknown or any(kind != "category" for kind in estimates)
    return HistogramQuery(
        int(numbers), int(words), n_bins, max_categories, adjacency, threshold_delta if words else 0.0
    )


def warn_of_objects(estimator: Any, schema: TableSchema, table: Table) -> None:
    """Warn before the charge about columns whose cells may be read as missing, by public types only.

    This concerns object arrays without declared column types, and strings with numeric bounds.
    """
    if schema.others == "estimate" and table.holds_objects:
        tell_now(
            estimator,
            "X is an object array, so all columns that `schema` does not declare are categories, including numbers. "
            "Pass the data frame itself, or declare the column types in `schema`.",
        )
    known = dict(schema.items())
    bounded = [(j, name) for j, name in enumerate(table.names) if name in known and known[name].bounds]
    if names := [name for j, name in bounded if known[name].kind == "number" and table.is_text(j)]:
        what, contain, have = ("Column", "contains", "has") if len(names) == 1 else ("Columns", "contain", "have")
        tell_now(
            estimator,
            f"{what} {format_names(names)} {contain} strings, but {have} numeric bounds in `schema`. Strings that are "
            "not numbers, such as '12,5' with a decimal comma, count as missing. Convert the strings first, for "
            f"example pd.to_numeric(X[{names[0]!r}].str.replace(',', '.'), errors='coerce').",
        )


def rows_to_estimate(table: Table, columns: list[tuple[str, int, Column]], fits_bins: bool = False) -> SchemaRows:
    """Read and check all columns except dropped ones, and keep those that are estimated."""
    rows = SchemaRows(table, columns, [], [], fits_bins=fits_bins)
    for _, j, column in columns:
        if column.kind == "drop":
            continue
        cells = table.cells(j)
        if column.is_estimated and column.kind == "category":
            rows.words.append(as_keys(cells, column.missing_values))
        elif column.is_wanted(fits_bins):
            rows.numbers.append(read_line(cells, column))
    return rows


def note_remains(estimator: Any, estimates: EstimatedColumns, n_public: int) -> None:
    """Record the noisy information of the estimated columns, and the warnings of few rows and of lost columns.

    Only releases and public numbers are used.
    """
    estimator._fitted_remains = estimates.remains
    if n_public < estimates.least_rows:
        what = "rows" if estimator._unit() == ROW else "groups"
        lines = [name for name, each in estimates.remains.items() if each.kind != "category"]
        first = f" Set bounds of {listed(lines)} in `schema`, which helps most." if lines else ""
        note_notice(
            estimator,
            f"{n_public} {what} are too few to estimate bounds and categories of {len(estimates.remains)} columns: "
            f"below {estimates.least_rows:.0f}, the noise dominates.{first} Declare the columns in `schema`, or use "
            f"more {what} or a larger epsilon.",
        )
    for text in (*notices_of_remains(estimates.remains), estimates.of_bounds):
        note_notice(estimator, text)


class EstimatedColumns(NamedTuple):
    """Private estimates of a table by column name, complete, with the remaining information of the cells.

    With fewer rows than `least_rows`, a public number, estimates contain little information. `beyond` are upper limits
    of the rows beyond the bounds of numbers and dates. `of_bounds` is the warning about public bounds that are far too
    wide. `spans` contain nearly all of each column whose bins within public bounds are estimated.
    """

    columns: dict[str, Column]
    remains: dict[str, Remains]
    least_rows: float = 0.0
    beyond: Mapping[str, float] = {}
    of_bounds: str = ""
    spans: Mapping[str, tuple[float, float]] = {}


def estimated_columns(
    planned: HistogramQuery,
    rows: SchemaRows,
    noise_multiplier: float,
    n_public: int,
    stream: SecretStream,
    units: Units | None = None,
    drops_words: bool = False,
) -> EstimatedColumns:
    """Estimate the missing bounds, bins and categories, with the event of the planned release.

    Estimated columns have a place for missing values and other categories, because both may occur. Bins of a number
    within public bounds are estimated for `fits_bins`, and kept if equal-width bins would not separate its values. The
    set of estimated columns follows from public numbers; fewer columns have less noise at the same privacy cost. With
    few rows, bins within public bounds are not estimated. For `drops_words`, categorical columns beside numbers are
    dropped if only a category of most rows could be released.
    """
    kinds = {name: each for name, _, each in rows.columns if each.is_wanted(rows.fits_bins)}
    numbers = dict(zip([name for name, each in kinds.items() if each.kind != "category"], rows.numbers, strict=True))
    words = dict(zip([name for name, each in kinds.items() if each.kind == "category"], rows.words, strict=True))
    opened = [name for name, each in kinds.items() if each.is_estimated]
    if not kinds:
        return EstimatedColumns({}, {})

    def query_of_columns() -> HistogramQuery:
        """Return the release for the remaining columns, at the cost of the planned one or less."""
        bounds = tuple(kinds[name].bounds for name in numbers)
        delta = planned.threshold_delta if words else 0.0
        return replace(planned, n_numbers=len(numbers), n_words=len(words), threshold_delta=delta, bounds=bounds)

    # Leave out, by public numbers, what too few rows could not estimate.
    query = query_of_columns()
    if opened and n_public < query.least_rows_at(noise_multiplier):
        numbers = {name: values for name, values in numbers.items() if name in opened}
        query = query_of_columns()
    least_rows, dropped = query.least_rows_at(noise_multiplier), []
    if drops_words and numbers and words and n_public < 2.0 * query.threshold_at(noise_multiplier):
        dropped, words = list(words), {}
        query = query_of_columns()
    given = list(numbers.values()), list(words.values()), noise_multiplier, n_public, stream
    estimates = query.release(*given, units=units)
    held = dict(zip([*numbers, *words], estimates.held, strict=True)) | dict.fromkeys(dropped, Held(0.0, 0.0))
    # Complete the columns with the released estimates.
    made, narrow, spans = dict.fromkeys(dropped, Column("drop")), [], {}
    for name, categories in zip(words, estimates.categories, strict=True):
        listed, keys = tuple(categories), _missing_values(kinds[name])
        made[name] = replace(kinds[name], categories=listed, other=OTHER_CELL, missing_values=keys)
    for name, inner, bounds, span in zip(numbers, estimates.edges, estimates.bounds, estimates.spans, strict=True):
        column, edges = kinds[name], all_edges(inner, bounds)
        if column.is_estimated:
            if column.kind == "date":  # as dates that can be written down, so that a schema of them is read alike
                dates = np.unique([days_of(day_text(edge)) for edge in np.clip(edges, *_CALENDAR).tolist()])
                edges = tuple(dates.tolist()) if len(dates) > 1 else _CALENDAR
            keys = _missing_values(column)
            made[name] = replace(column, bounds=(edges[0], edges[-1]), edges=edges, missing_values=keys)
        elif bins_are_crowded(inner, bounds, planned.n_bins):
            made[name], spans[name] = replace(column, bounds=(edges[0], edges[-1]), edges=edges), span
        if not column.is_estimated and lie_at_a_bound(inner, bounds):
            narrow.append(name)
    remains = {}
    for name in opened:
        share = min(max(held[name].cells / n_public, 0.0), 1.0)
        remains[name] = Remains(kinds[name].kind, share, held[name].deviation / n_public)
    beyond = {name: held[name].beyond for name in numbers if name in opened}
    return EstimatedColumns(made, remains, least_rows if opened else 0.0, beyond, narrow_bounds_notice(narrow), spans)


OTHER_CELL = "other"
"""Cell that represents the unreleased categories of an estimated column."""


def _missing_values(column: Column) -> tuple[str, ...]:
    return tuple(sorted({"", *column.missing_values}))


_CALENDAR = days_of("0001-01-01"), days_of("9999-12-31")


# --- remaining information of estimated columns ---

_NOTHING, _HALF = 0.05, 0.5
"""A column with less than the first fraction of its cells is lost; the second is the limit for warnings on categories.
"""


class Remains(NamedTuple):
    """Remaining information of an estimated column.

    Attributes
    ----------
    kind : {"number", "date", "category"}
    share : float
        Noisy fraction of the cells, from 0 to 1, that are readable numbers or dates, or have a released category.
    deviation : float
        Standard deviation of its noise.
    """

    kind: str
    share: float
    deviation: float

    @property
    def is_lost(self) -> bool:
        """Whether the column has almost no information."""
        return self.share == 0.0 or self.share + 2.0 * self.deviation < _NOTHING

    @property
    def is_mostly_other(self) -> bool:
        """Whether most cells of a categorical column, but not all, have unreleased categories."""
        return self.kind == "category" and not self.is_lost and self.share + 2.0 * self.deviation < _HALF

    def describe(self) -> str:
        """Return a short description."""
        rest = "other or missing" if self.kind == "category" else "missing or unreadable"
        return f"{1.0 - self.share:.1%} {rest} (noise {self.deviation:.1%})"


def notices_of_remains(remains: Mapping[str, Remains]) -> Iterator[str]:
    """Yield the warnings about lost columns, each with all of them and a remedy."""
    words = [name for name, each in remains.items() if each.is_lost and each.kind == "category"]
    lines = [name for name, each in remains.items() if each.is_lost and each.kind != "category"]
    mostly = [name for name, each in remains.items() if each.is_mostly_other]
    if words:
        yield (
            f"No information in {listed(words)}: every category is too rare to be released privately. Declare types "
            "or categories in `schema` ('number' or 'date' for numbers or dates that are text), or drop identifiers, "
            f"for example {_dropped(words[0])}."
        )
    if lines:
        yield (
            f"No information in {listed(lines)}: no number or date could be estimated privately, and unreadable cells "
            "are missing. Declare bounds, types or date formats in `schema` ('category' for strings), or drop "
            f"identifiers, for example {_dropped(lines[0])}. More rows or a larger epsilon can help as well."
        )
    if mostly:
        yield (
            f"More than half of {listed(mostly)} is 'other' or missing: the other categories are too rare to be "
            "released privately. Declare types or categories in `schema` ('number' or 'date' for numbers or dates that "
            "are text), or merge rare categories, for example postcodes by their first digits."
        )


def listed(names: list[str]) -> str:
    """Format all column names in one line."""
    shown = ", ".join(" ".join(repr(name).split()) for name in names)
    return f"column {shown}" if len(names) == 1 else f"columns {shown}"


def _dropped(name: str) -> str:
    return f"TableSchema({{{' '.join(repr(name).split())}: 'drop'}}, others='estimate')"
