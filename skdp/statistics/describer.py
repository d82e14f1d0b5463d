"""`describe`, and the fit behind it: what is read, charged and released for the description of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from typing import Any, NoReturn, Self

import numpy as np

from skdp._checks.groups import check_row_limit
from skdp._checks.notices import narrow_bounds_notice, note_notice
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
from skdp.preprocessing.column_estimates import SchemaBuyer, SchemaRows, bought_columns, note_remains, read_by_schema
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.statistics import table_release
from skdp.statistics.cells import OTHER, ColumnCells
from skdp.statistics.description import PrivateDescription

_PURCHASE_RATIO = noise_ratio(0.1)
"""Noise of what the schema leaves out, which has a tenth of mu^2, beside that of the description."""

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
    shares: table_release.Shares | None = None
    noise: str = table_release.ROUNDED
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
        if model.noise == table_release.DISCRETE and not (groups is None and sample_weight is None):
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
        if self.noise == table_release.DISCRETE:
            n_columns, n_tables = self._n_columns(), len(self.crosstabs)
            return lambda noise: self._release(noise).event_of_counts(n_columns, n_tables)
        if self._given_schema().is_complete:
            return GaussianDpEvent
        purchase = self._purchase()
        return lambda noise: compose([purchase.event_at(_PURCHASE_RATIO * noise), GaussianDpEvent(noise)])

    def _release(self, noise_multiplier: float) -> table_release.TableRelease:
        limit = float(self.rows_per_group or 1)
        return table_release.TableRelease(noise_multiplier, self.adjacency, self.shares, self.noise, limit)

    def _n_columns(self) -> int:
        """Number of described columns, where the schema names them all."""
        return sum(column.kind != "drop" for _, column in self._given_schema().items())

    # --- what is refused ---

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        check_choice("noise", self.noise, table_release.KINDS_OF_NOISE)
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
        if self.noise == table_release.DISCRETE:
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
        if self.noise == table_release.DISCRETE and len(there) != self._n_columns():
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
        # Estimate what the schema leaves out.
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
            clipped = [each for each in cells if each.is_clipped]
            note_notice(self, _clipping_notice(clipped, bought.beyond, self._units_in_words()))
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
        # Tell of public bounds that are far too wide.
        whole = table_release.add_up(self.tallies_, asked.n)
        known = zip(described, asked.cells, whole.counts, strict=True)
        narrow = [a.name for a, b, counts in known if a.may_be_skewed and b.is_at_a_bound(counts, whole.deviation)]
        note_notice(self, narrow_bounds_notice(narrow))

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
    """Describe a private table: counts, gaps, means, quantiles, histograms, what goes with what.

    All of it comes from one release, and costs what one release costs. Counts of the cells of every column, the second
    moments of all numbers and, for correlations, tables of pairs share its noise by a public rule. What is asked of
    the description later is free.

    Parameters
    ----------
    table : array-like or frame of shape (n_samples, n_features)
        Private rows.
    schema : TableSchema, mapping or None, default=None
        What is public of each column; a mapping is what `skdp.preprocessing.TableSchema` takes. Numbers beyond their
        bounds are moved to them, and categories that are not listed are "(other)". Bounds and categories that are left
        out are bought, for a tenth of the budget's mu^2. If None, only names and types of the columns are public.
        Estimates are then of values clipped to privately estimated bounds, and are marked as such.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of the description. The noise is calibrated to it. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    by : str or None, default=None
        Column of categories, listed in the schema, for each of which the table is described too. The list is public,
        and who belongs to which is private; what is not listed, and gaps, are one more subgroup, "(other)". Subgroups
        cost nothing: they share the release.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, such as a person or a household, or the name of a column of `table`,
        which is not described then. The guarantee is then for all rows of one label together, else for one row. A group
        has the weight of one row, divided evenly among its rows: figures are those of a row drawn from a group drawn at
        random, and counts are numbers of groups.
    sample_weight : array-like of shape (n_samples,), str or None, default=None
        Private weights of the rows, such as those of a survey, or the name of a column of `table`, which is not
        described then. Figures are those of rows that count as much as their
        weights say, and counts are sums of weights, in units of the bound. The sum of all weights is private, and is
        estimated from the counts. What the schema leaves out is bought without weights.
    weight_bound : float or None, default=None
        Public number by which weights are divided, and at which they are cut. None is 1.
    rows_per_group : int or None, default=None
        With `groups`, public number of rows k that a group counts as at most: each row of a smaller group has the
        weight of one row, and those of a larger one share the weight of k. Estimates are of rows, counts are numbers of
        rows, and the noise is k times larger. The weight of all rows is private, and is estimated from the counts.
        Choose a k that few groups exceed. None gives each group the weight of one row; the number of groups is public.
    quantiles : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Shares of the numbers that lie below, between 0 and 1.
    correlation : bool, default=True
        Whether to measure what goes with what. Without, all other figures have less noise.
    crosstabs : sequence of (str, str), default=()
        Pairs of columns whose counts are wanted with all levels; a number has 8 bins there.
    n_bins : int, default=64
        Cells of a number or a date. The bounds have a cell each, for values that lie at them or beyond. Whole numbers,
        if the type of the column says so, have one cell each where there are less than twice as many.
    noise : {"rounded", "discrete"}, default="rounded"
        Kind of the noise: normal noise, rounded to a public grid as if it had infinitely many bits; or discrete
        Gaussian noise (Canonne, Kamath & Steinke 2020), drawn by whole numbers alone. The latter is for counts in
        public cells: of categories that the schema lists, with ``correlation=False`` and without `by` and `groups`.
        Under ``replace_one`` it is larger, by a factor of up to sqrt(2).
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
        Ledger to which the description is charged before anything is learned from the rows. A path names the file of an
        existing ledger.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the
        description reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    description : PrivateDescription
        Figures with intervals for the noise, as frames and as HTML.

    Raises
    ------
    ValueError
        A parameter, the schema or the table is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit the description. Nothing was charged.

    Warns
    -----
    QualityWarning
        Columns have privately estimated bounds, with an upper limit of the rows beyond, or are not estimated.

    See Also
    --------
    skdp.preprocessing.TableSchema : What is public of the columns of a table.
    skdp.statistics.private_mean : One figure alone.

    Notes
    -----
    **Guarantees.** The description is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if
    `random_state` is None. With `groups` it is so for all rows of one label together: their weights add up to 1, or to
    `rows_per_group`, at most. With `sample_weight` a row weighs 1 at most, and what all weigh together is in no figure
    but through noise.
    All of it is a function of noisy releases, whose sensitivities are proved in the notes of
    `skdp.statistics.table_release.TableRelease` and `skdp.preprocessing.histogram_query.Purchase`, and of what is
    public: parameters, names and types of the columns, and the number of rows but under ``add_remove``. The accountant
    is charged before the rows are counted. Refusals are one line without a cell and are not charged; no number, text or
    date is refused or warned of. A column with a cell of another kind, such as a list or a complex number, is refused.

    **Figures.** Counts of a column are projected to be nonnegative and to add up to the number of rows. Quantiles are
    read from them. Means and standard deviations are the better of what counts and moments say, each weighted by the
    precision that the noise leaves it; the largest bias that bins may cause is added to their intervals. Correlations
    come from the moments, and the matrix is made positive semidefinite. The noise of squares is subtracted from
    Cramér's V and from the correlation ratio.

    **Intervals** follow from the public size of the noise, and hold before figures are projected. Those of quantiles,
    and of counts near zero, hold more often than they say. Of associations they are for the levels as they were
    merged. Where bounds are privately estimated, means, standard deviations and quantiles, with their intervals, are
    of the values clipped to them (``clipped_low`` and ``clipped_high`` of an `Estimate`), since values beyond may have
    any size. A column in which no values are distinguishable from the noise has NaN.

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
    >>> people = pd.DataFrame({"age": rng.integers(18, 90, 5000), "job": rng.choice(["clerk", "nurse"], 5000)})
    >>> found = skdp.describe(people, schema={"age": (18, 90), "job": ["clerk", "nurse"]}, epsilon=1.0)
    >>> mean = found.estimates("age")["mean"]
    >>> bool(mean.low < mean.value < mean.high), bool(abs(mean.value - people["age"].mean()) < 2)
    (True, True)
    >>> found.to_frame()[["count", "mean", "50%"]].shape
    (2, 3)
    """
    describer = TableDescriber(
        schema, by=by, correlation=correlation, crosstabs=crosstabs, quantiles=quantiles, n_bins=n_bins,
        weight_bound=weight_bound, rows_per_group=rows_per_group, noise=noise, epsilon=epsilon, delta=delta,
        noise_multiplier=noise_multiplier, adjacency=adjacency, accountant=accountant, random_state=random_state,
    )  # fmt: skip
    return PrivateDescription.of(describer.fit(table, groups=groups, sample_weight=sample_weight))
