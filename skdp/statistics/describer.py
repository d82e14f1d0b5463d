"""`describe`, and the fit behind it: reading, charging and releasing the description of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from typing import Any, NoReturn, Self

import numpy as np

from skdp._checks.groups import check_row_limit
from skdp._checks.notices import lost_cells_notice, narrow_bounds_notice, note_notice
from skdp._checks.numbers import format_names
from skdp._checks.parameters import check_choice, read_real, show, without_removed
from skdp._checks.rows import split_column
from skdp._checks.table import Table
from skdp._checks.weights import WeightReader, exactly_summable
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.base.estimator import with_parameters
from skdp.base.fit import Fit, begin
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.mechanisms.gaussian import noise_ratio
from skdp.preprocessing.column_estimates import SchemaModel, SchemaRows, estimated_columns, note_remains, read_by_schema
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.statistics import table_release
from skdp.statistics.cells import OTHER, ColumnCells
from skdp.statistics.description import PrivateDescription

_QUERY_RATIO = noise_ratio(0.1)
"""Noise of privately estimated bounds and categories, with a tenth of mu^2, relative to that of the description."""

MOST_BINS = 64


@with_parameters
class TableDescriber(SchemaModel):
    """The fit of `skdp.describe`, which documents the parameters."""

    _public_name = "describe"
    _notes_lost_cells = True  # a function that computes its column has its own diagnostic

    schema: Any = None
    _: KW_ONLY
    by: Any = None
    correlation: bool = True
    crosstabs: Any = ()
    quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95)
    n_bins: int = MOST_BINS
    weight_bound: float | None = None
    rows_per_group: int | None = None
    shares: table_release.Shares | None = None
    noise: str = table_release.ROUNDED
    max_categories: int = 100

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Describe the rows."""
        X, given = split_column(X, "sample_weight", sample_weight)
        fit = begin(self, X, groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        check_row_limit(model.rows_per_group, model._unit())
        model._check_own_parameters()
        if model.noise == table_release.DISCRETE and not (groups is None and sample_weight is None):
            model._reject_discrete("weights and groups have fractional counts", "Use noise='rounded'")
        fit.plan(model._event_at())

        rows = fit.read_rows(_read_rows)
        weights = fit.read(weight_reader.read, given, fit.n_rows)
        fit.charge()

        fit.learn(model._describe, fit, rows, None if given is None else weights)
        return fit.publish()

    # --- privacy cost ---

    def _event_at(self) -> Callable[[float], DpEvent]:
        """Return the event of a fit with its noise multiplier, including private estimates of bounds and categories."""
        if self.noise == table_release.DISCRETE:
            n_columns, n_tables = self._n_columns(), len(self.crosstabs)
            return lambda noise: self._release(noise).event_of_counts(n_columns, n_tables)
        if self._given_schema().is_complete:
            return GaussianDpEvent
        query = self._query()
        return lambda noise: compose([query.event_at(_QUERY_RATIO * noise), GaussianDpEvent(noise)])

    def _release(self, noise_multiplier: float) -> table_release.TableRelease:
        limit = float(self.rows_per_group or 1)
        return table_release.TableRelease(noise_multiplier, self.adjacency, self.shares, self.noise, limit)

    def _n_columns(self) -> int:
        """Number of described columns, if the schema has them all."""
        return sum(column.kind != "drop" for _, column in self._given_schema().items())

    # --- validation ---

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        check_choice("noise", self.noise, table_release.KINDS_OF_NOISE)
        if not isinstance(self.correlation, bool | np.bool_):
            raise ValueError(f"`correlation` must be True or False, got {show(self.correlation)}.")
        found = [read_real(each) for each in _listed("quantiles", self.quantiles)]
        if any(q is None or not 0.0 < q < 1.0 for q in found):
            raise ValueError(
                f"`quantiles` must be numbers between 0 and 1, such as (0.25, 0.5, 0.75), got {show(self.quantiles)}."
            )
        if self.by is not None and not isinstance(self.by, str):
            raise ValueError(f"`by` must be the name of a column with listed categories, or None, got {show(self.by)}.")
        for pair in _listed("crosstabs", self.crosstabs):
            is_pair = isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
            if not is_pair or pair[0] == pair[1]:
                raise ValueError(
                    f"`crosstabs` must be pairs of names of two columns, such as ('sex', 'job'), got {show(pair)}."
                )
        if self.noise == table_release.DISCRETE:
            self._check_counts_alone()

    def _check_counts_alone(self) -> None:
        """Reject discrete noise for releases that are not counts of rows in public cells."""
        schema = self._given_schema()
        if not schema.is_complete:
            self._reject_discrete(
                "`schema` lacks bounds or categories, so they would be estimated privately", "Declare them in `schema`"
            )
        on_lines = any(column.kind in ("number", "date") for _, column in schema.items())
        if on_lines and (self.shares is None or self.shares.moments > 0.0):
            self._reject_discrete(
                "numeric columns have moments, which are not counts", "Use private_histogram, or noise='rounded'"
            )
        if self.correlation:
            self._reject_discrete("correlations require sums, which are not counts", "Set correlation=False")
        if self.by is not None:
            self._reject_discrete(f"by={self.by!r} requires private subgroups", "Use crosstabs instead, or set by=None")
        if self.noise_multiplier is not None:
            self._release(float(self.noise_multiplier)).check_counts(self._n_columns(), len(self.crosstabs))

    def _reject_discrete(self, why: str, remedy: str) -> NoReturn:
        raise ValueError(f"noise='discrete' supports only counts of rows in public cells, but {why}. {remedy}.")

    def _check_columns(self, rows: SchemaRows) -> None:
        """Check parameters against the columns of the table."""
        there = [name for name, _, column in rows.columns if column.kind != "drop"]
        if self.noise == table_release.DISCRETE and len(there) != self._n_columns():
            self._reject_discrete(
                "the columns of X differ from those of `schema`", "Declare each column of X in `schema`"
            )
        asked = [name for pair in self.crosstabs for name in pair]
        if unknown := [name for name in asked if name not in there or name == self.by]:
            raise ValueError(
                f"`crosstabs` must contain columns of X that are neither dropped nor `by`, got {format_names(unknown)}."
            )
        if self.by is not None:
            column = next((column for name, _, column in rows.columns if name == self.by and name in there), None)
            if column is None or column.kind in ("number", "date") or column.is_estimated:
                raise ValueError(
                    f"`by` must be a column whose categories are listed in `schema`, got {self.by!r}. Subgroups must "
                    "be public."
                )
            if len(there) == 1:
                raise ValueError(f"The table must have a column besides by={self.by!r} to describe.")

    # --- the release ---

    def _describe(self, fit: Fit, rows: SchemaRows, given: np.ndarray | None) -> None:
        """Release the private estimates of bounds and categories, then the description; `given` are weights or None."""
        # Estimate bounds and categories that the schema does not have.
        found: dict[str, Column] = {}
        if not self._given_schema().is_complete:
            noise = _QUERY_RATIO * fit.noise_multiplier
            estimates = estimated_columns(self._query(), rows, noise, fit.n, fit.spawn("columns"), fit.units)
            note_remains(self, estimates, fit.n)
            found = {
                name: _on_whole(estimates.columns[name]) if rows.table.is_whole(j) else estimates.columns[name]
                for name, j, _ in rows.columns
                if name in estimates.columns
            }
        columns = {name: found.get(name, column) for name, _, column in rows.columns}
        cells = [
            ColumnCells.of(name, j, columns[name], int(self.n_bins), rows.table.is_whole(j))
            for name, j, _ in rows.columns
            if columns[name].kind != "drop"
        ]
        if found:
            cells = [replace(each, is_clipped=True) if each.name in estimates.beyond else each for each in cells]
            lost = {name for name in estimates.beyond if estimates.remains[name].is_lost}
            cells = [each.as_lost() if each.name in lost else each for each in cells]
            clipped = [each for each in cells if each.is_clipped]
            note_notice(self, _clipping_notice(clipped, estimates.beyond, self._units_in_words()))
        # Release the description of the others, within the subgroups.
        described = [each for each in cells if each.name != self.by]
        groups, of_rows = self._subgroups(next((each for each in cells if each.name == self.by), None), rows.table)
        weights = None if fit.units is None and given is None else _weights_of(fit, given, self.rows_per_group or 1)
        is_public = given is None and self.rows_per_group is None and self.adjacency != "add_remove"
        asked = table_release.Questions(
            described,
            groups,
            bool(self.correlation),
            [tuple(pair) for pair in self.crosstabs],
            float(fit.n) if is_public else None,
            [rows.table.label(each.block.position) for each in described],
        )
        described_rows = table_release.DescribedRows([each.read(rows.table) for each in described], of_rows, weights)
        stream = fit.spawn("description")
        asked, self.tallies_ = self._release(fit.noise_multiplier).measure(described_rows, asked, stream)
        self.questions_, self.schema_ = asked, TableSchema(columns)
        # Report public bounds that are far too wide, and declared columns that are nearly empty.
        whole = table_release.add_up(self.tallies_, asked.n)
        known = list(zip(described, asked.cells, whole.counts, strict=True))
        narrow = [a.name for a, b, counts in known if a.may_be_skewed and b.is_at_a_bound(counts, whole.deviation)]
        note_notice(self, narrow_bounds_notice(narrow))
        empty = [a.name for a, b, counts in known if a.name not in found and b.is_lost(counts, whole.deviation)]
        note_notice(self, lost_cells_notice(empty) if self._notes_lost_cells else "")

    def _subgroups(self, by: ColumnCells | None, table: Table) -> tuple[list[str], np.ndarray]:
        """Names of the subgroups, and that of each row: unlisted categories and missing values are "other"."""
        if by is None:
            return [""], np.zeros(table.shape[0], np.int32)
        names = [*(each for each in by.labels if each != OTHER), OTHER]
        places = [*map(names.index, by.labels), len(names) - 1]  # a listed category can also be called "(other)"
        return names, np.array(places, np.int32)[by.codes(by.read(table))]


def _read_rows(model: TableDescriber, X: Any, *, reset: bool) -> SchemaRows:
    rows = read_by_schema(model, X, reset=reset)
    model._check_columns(rows)
    return rows


def _weights_of(fit: Fit, given: np.ndarray | None, row_limit: int) -> np.ndarray:
    """Return weights of the rows, in [0, 1], which sum to at most `row_limit` in each group."""
    shares = np.ones(fit.n_rows) if given is None else given
    return np.asarray(exactly_summable(clip_groups(fit.units, shares, row_limit)))


def _on_whole(column: Column) -> Column:
    """Return a column of integers with integer edges, so that its bounds are those to which values are clipped."""
    if column.kind != "number" or column.edges is None:
        return column
    edges = tuple(np.unique([*np.ceil(column.edges[:-1]), math.floor(column.edges[-1])]).tolist())
    return replace(column, bounds=(edges[0], edges[-1]), edges=edges) if len(edges) > 1 else column


def _clipping_notice(cells: list[ColumnCells], beyond: Mapping[str, float], units: str) -> str:
    """Return a notice about columns with privately estimated bounds, from released counts; "" if there are none.

    The limit holds for the rows or groups, and for each column alone.
    """
    if not cells:
        return ""
    each = [
        f"{format_names([one.name])} to [{', '.join(one.ends)}] (at most {beyond[one.name]:.0f} {units} beyond)"
        for one in cells
    ]
    return (
        "Means, sums, standard deviations and quantiles describe values clipped to privately estimated bounds: "
        f"{', '.join(each)}. Values beyond the bounds can have any size. Set public bounds to include them."
    )


def _listed(name: str, given: Any) -> Sequence[Any]:
    if isinstance(given, tuple | list | np.ndarray):
        return list(given)
    raise ValueError(f"`{name}` must be a list or a tuple, got {show(given)}.")


@without_removed
def describe(
    table: Any,
    *,
    schema: Any = None,
    epsilon: Any = 1.0,
    delta: float | str = "auto",
    by: str | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    weight_bound: float | None = None,
    rows_per_group: int | None = None,
    quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95),
    correlation: bool = True,
    crosstabs: Any = (),
    n_bins: int = MOST_BINS,
    noise: str = "rounded",
    noise_multiplier: float | None = None,
    adjacency: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> PrivateDescription:
    """Compute differentially private descriptive statistics of a table.

    The result has counts, missing values, means, quantiles, histograms, correlations and cross-tabulations. All of them
    come from one release and have its privacy cost: counts of the cells of every column, second moments of the numeric
    columns, and two-way marginals for correlations. Queries of the result have no additional privacy cost. See
    ``docs/descriptive_statistics.md``.

    Parameters
    ----------
    table : array-like or frame of shape (n_samples, n_features)
        Private rows.
    schema : TableSchema, mapping or None, default=None
        Public values of each column, as a schema or an argument of `skdp.preprocessing.TableSchema`. Numbers beyond
        their bounds are clipped to them, and unlisted categories are "(other)". Missing bounds and categories are
        privately estimated with a tenth of the budget (of mu^2). If None, only names and types of the columns are
        public; estimates then describe values clipped to privately estimated bounds, and are marked as such.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of the description. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    by : str or None, default=None
        Categorical column, with categories listed in the schema, for subgroups. The list is public, the subgroup of
        each row is private. Unlisted categories and missing values are a subgroup "(other)". Subgroups share the
        release, at no additional privacy cost.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifier of each row, such as a person or a household, or the name of a column of `table`, which
        is then not described. If set, the guarantee is for all rows of one group, otherwise for one row. A group has
        the weight of one row, divided evenly among its rows. Estimates then describe a random row of a random group,
        and counts are numbers of groups.
    sample_weight : array-like of shape (n_samples,), str or None, default=None
        Private weights of the rows, such as survey weights, or the name of a column of `table`, which is then not
        described. Estimates are weighted, and counts are sums of weights in units of the bound. The sum of all weights
        is private, and is estimated from the counts. Bounds and categories are estimated without weights.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. If None, the bound is 1.
    rows_per_group : int or None, default=None
        With `groups`, public maximum number k of rows of a group: each row of a smaller group has the weight of one
        row, and those of a larger group share the weight of k rows. Estimates describe rows, counts are numbers of
        rows, and the noise is k times larger. The weight of all rows is private, and is estimated from the counts.
        Choose a k that few groups exceed. If None, each group has the weight of one row, and the number of groups is
        public.
    quantiles : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Orders of the quantiles, between 0 and 1.
    correlation : bool, default=True
        Whether to measure associations between columns. If False, all other estimates have less noise.
    crosstabs : sequence of (str, str), default=()
        Pairs of columns for cross-tabulations with all categories; a numeric column has 8 bins there.
    n_bins : int, default=64
        Number of cells of a numeric or date column. Each bound has an extra cell, for values at or beyond it. Integer
        columns have one cell per value if there are fewer than twice as many values.
    noise : {"rounded", "discrete"}, default="rounded"
        "rounded" is Gaussian noise, rounded to a public grid. "discrete" is discrete Gaussian noise (Canonne, Kamath &
        Steinke 2020), drawn with integer arithmetic alone. It requires counts in public cells: categories listed in the
        schema, ``correlation=False``, and neither `by` nor `groups`. Under ``replace_one`` it is larger, by a factor of
        up to sqrt(2).
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and estimated from
          the counts, and every rule uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant to which the description is charged before anything is learned from the rows. A path refers to an
        existing budget file.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the
        description reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    description : PrivateDescription
        Estimates with intervals that account for the noise, as data frames and HTML.

    Raises
    ------
    ValueError
        A parameter, the schema or the table is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the description. No budget was consumed.

    Warns
    -----
    QualityWarning
        Bounds of columns are privately estimated (the message bounds the number of rows beyond them), or columns are
        not estimated.

    See Also
    --------
    skdp.preprocessing.TableSchema : Public values of the columns of a table.
    skdp.statistics.private_mean : A single statistic.

    Notes
    -----
    **Guarantees.** The description is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if
    `random_state` is None. With `groups`, this holds for all rows of one group: their weights sum to at most 1, or to
    at most `rows_per_group`. With `sample_weight`, a row has a weight of at most 1, and the sum of all weights is only
    released with noise. All estimates are functions of noisy releases and of public values: parameters, names and types
    of the columns, and the number of rows except under ``add_remove``. The accountant is charged before the rows are
    counted. Validation errors contain no cell and are not charged. A column with a cell of another type, such as a list
    or a complex number, is rejected; no number, string or date raises an error or a warning.

    **Estimates.** Counts of a column are projected to be nonnegative and to sum to the number of rows. Quantiles are
    computed from them. Means and standard deviations combine counts and moments by their precision; the largest bias
    due to bins is added to their intervals. Correlations are computed from the moments, and the matrix is made positive
    semidefinite. The expected squared noise is subtracted from Cramér's V and from the correlation ratio.

    **Intervals** follow from the public size of the noise, and hold before projection. Intervals of quantiles, and of
    counts near zero, are conservative. Intervals of associations refer to the merged categories. With privately
    estimated bounds, means, standard deviations and quantiles describe values clipped to them (``clipped_low`` and
    ``clipped_high`` of an `Estimate`), because values beyond can have any size. A column whose values are not
    distinguishable from the noise has NaN.

    References
    ----------
    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy".

    Dong, Roth & Su (2022), "Gaussian differential privacy", for the composition of Gaussian releases.

    Hay, Rastogi, Miklau & Suciu (2010), "Boosting the accuracy of differentially private histograms through
    consistency".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import skdp
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(18, 90, 5000), "job": rng.choice(["clerk", "nurse"], 5000)})
    >>> description = skdp.describe(table, schema={"age": (18, 90), "job": ["clerk", "nurse"]}, epsilon=1.0)
    >>> round(description.estimates("age")["mean"].value, -1)
    50.0
    >>> description.to_frame()[["count", "mean", "50%"]].shape
    (2, 3)
    """
    describer = TableDescriber(
        schema, by=by, correlation=correlation, crosstabs=crosstabs, quantiles=quantiles, n_bins=n_bins,
        weight_bound=weight_bound, rows_per_group=rows_per_group, noise=noise, epsilon=epsilon, delta=delta,
        noise_multiplier=noise_multiplier, adjacency=adjacency, accountant=accountant, random_state=random_state,
    )  # fmt: skip
    return PrivateDescription.of(describer.fit(table, groups=groups, sample_weight=sample_weight))
