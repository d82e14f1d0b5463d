"""A private description of a table: what a reader asks of it, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdp._checks.groups import estimand_of
from skdp._checks.numbers import day_text, format_names, moment_of_text
from skdp._checks.parameters import check_count, check_real, without_removed
from skdp.accounting import DpEvent
from skdp.base.estimates import Estimate
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.statistics.cells import GAP, LOST, ColumnCells
from skdp.statistics.column_estimates import (
    ColumnFigures,
    CorrelationMatrix,
    Intervals,
    correlation_ratio,
    cramers_v,
    positive_counts,
)
from skdp.statistics.describer import MOST_BINS, TableDescriber
from skdp.statistics.pictures import page_of
from skdp.statistics.table_release import NoisyTable, Questions, Tally, add_up


class PrivateDescription:
    """What `skdp.describe` found of a table. Reading it costs nothing.

    Every figure has an interval for the noise. With ``sampling=True`` it is one for the population that the rows, or
    the groups, were drawn from; with ``simultaneous=True`` all intervals of the answer hold at once.

    Parameters
    ----------
    asked : Questions
        What was asked of the table.
    tally : Tally
        Noisy sums.
    quantiles : sequence of float
        Those that figures have.
    subgroups : mapping of str to PrivateDescription
        Descriptions of the categories of `by`.

    Attributes
    ----------
    schema_ : TableSchema
        Schema of all columns, with what was bought. As `schema` of something else it costs nothing.
    subgroups : dict of str to PrivateDescription
        Of each category of `by`; empty without.
    epsilon_ : float
        Price of `privacy_event_` at `delta_`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    noise_multiplier_ : float
        Noise multiplier of the description.
    rows_per_group : int or None
        Number of rows that a group counts as at most, as `skdp.describe` was given it.
    """

    schema_: TableSchema
    epsilon_: float
    delta_: float
    privacy_event_: DpEvent
    adjacency_: str
    privacy_unit_: str
    noise_multiplier_: float
    rows_per_group: int | None = None

    def __init__(
        self, asked: Questions, tally: Tally, quantiles: Sequence[float], subgroups: Mapping[str, PrivateDescription]
    ) -> None:
        self.subgroups = dict(subgroups)
        self._tally, self._quantiles, self._asked = tally, tuple(quantiles), asked
        numbers = [cells.name for cells in asked.numbers]
        self._columns = {
            label: ColumnFigures(cells, tally, j, numbers.index(cells.name) if cells.is_line else None)
            for j, (label, cells) in enumerate(zip(asked.labels, asked.cells, strict=True))
        }
        lines = [each for each in self._columns.values() if each.cells.is_line]
        moments = tally.moments if asked.correlation else None
        self._matrix = None if moments is None else CorrelationMatrix(moments, lines)

    @classmethod
    def of(cls, fitted: TableDescriber) -> PrivateDescription:
        """Return what a fitted describer found.

        Parameters
        ----------
        fitted : TableDescriber
            Its releases, and what was asked.

        Returns
        -------
        description : PrivateDescription
            Of the whole table, with those of its subgroups.
        """
        asked, tallies = fitted.questions_, fitted.tallies_
        quantiles = sorted(float(q) for q in fitted.quantiles)
        parts = {name: cls(asked, each, quantiles, {}) for name, each in zip(asked.groups, tallies, strict=True)}
        found = cls(asked, add_up(tallies, asked.n), quantiles, parts if fitted.by is not None else {})
        for each in [found, *parts.values()]:
            vars(each).update({name: getattr(fitted, name) for name in PrivateDescription.__annotations__})
        return found

    @property
    def columns(self) -> list[Any]:
        """Names of the columns that are described.

        Returns
        -------
        columns : list
            In the order of the table, as the frame has them.
        """
        return list(self._columns)

    @property
    def n(self) -> float:
        """Number of rows, or of groups: exact where it is public, else noisy.

        Returns
        -------
        n : float
            To which all counts of a column add up.
        """
        return self._tally.n

    def _intervals(self, level: float, sampling: bool, n_figures: int = 1) -> Intervals:
        level = check_real("level", level, above=0, below=1, remedy="choose a probability, such as 0.95")
        if sampling and self.rows_per_group is not None:
            raise ValueError(
                f"sampling=True with rows_per_group={self.rows_per_group}: rows of a group are not independent; use "
                "sampling=False, or describe with rows_per_group=None."
            )
        return Intervals.of(level, bool(sampling), n_figures)

    def _of(self, column: str) -> ColumnFigures:
        if column not in self._columns:
            raise KeyError(f"column={column!r} is not described: name one of {format_names(self.columns)}.")
        return self._columns[column]

    def _cells(self, column: str) -> ColumnCells:
        return self._of(column).cells

    # --- figures ---

    def estimates(self, column: str, *, level: float = 0.95, sampling: bool = False) -> dict[str, Estimate]:
        """Return count, share of gaps, mean, standard deviation and quantiles of a column.

        Parameters
        ----------
        column : str
            Its name.
        level : float, default=0.95
            Probability with which an interval holds the figure.
        sampling : bool, default=False
            Whether intervals are for the population that the rows were drawn from.

        Returns
        -------
        figures : dict of str to Estimate
            With value, low, high and standard error each; NaN for what words do not have. Mean and quantiles of dates
            are dates (`datetime.datetime`, in UTC); their standard deviation and standard errors are in days.
        """
        return self._figures(column, self._intervals(level, sampling))

    def _figures(self, column: str, intervals: Intervals) -> dict[str, Estimate]:
        each = self._of(column)
        found = {
            "count": each.count(intervals),
            "missing": each.share_of_gaps(intervals),
            "mean": each.mean_of_cells(intervals),
            "std": each.deviation(intervals),
        }
        quantiles = {f"{100 * q:g}%": each.quantile(q, intervals) for q in self._quantiles}
        if each.cells.is_line and each.cells.block.column.kind == "date":
            found["mean"] = _as_dates(found["mean"])
            quantiles = {name: _as_dates(figure) for name, figure in quantiles.items()}
        return {name: self._stated(figure) for name, figure in (found | quantiles).items()}

    @property
    def _estimand(self) -> str:
        limit = self.rows_per_group
        return estimand_of(self.privacy_unit_, "one row" if limit in (None, 1) else f"{limit} rows")

    def _stated(self, figure: Estimate) -> Estimate:
        """Return a figure that states its estimand."""
        return figure.with_notes(estimand=self._estimand)

    def _with_estimand(self, frame: Any) -> Any:
        """Return a frame whose ``attrs`` state the estimand, where groups were given."""
        frame.attrs |= {"estimand": self._estimand} if self._estimand else {}
        return frame

    def to_frame(self, *, level: float = 0.95, sampling: bool = False, simultaneous: bool = False) -> Any:
        """Return a frame with one row for each column of the table, and for each subgroup.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which an interval holds its figure.
        sampling : bool, default=False
            Whether intervals are for the population that the rows were drawn from.
        simultaneous : bool, default=False
            Whether all intervals hold at once with this probability (Bonferroni).

        Returns
        -------
        frame : pandas.DataFrame
            Columns are the figures; ``mean`` is followed by ``mean_low`` and ``mean_high``, and so on. With `by` the
            index has the subgroups first. Where bounds are privately estimated, ``clipped_low`` and ``clipped_high``
            are the bounds to which values are clipped, and ``note`` says so, or that a column is not estimated. With
            `groups`, ``frame.attrs["estimand"]`` states the weight of a group, as in all frames of a description.
        """
        import pandas as pd

        parts: Mapping[str, PrivateDescription] = self.subgroups or {"": self}
        of_columns = [4 + len(self._quantiles) if each.cells.is_line else 2 for each in self._columns.values()]
        n_figures = len(parts) * sum(of_columns)
        intervals = self._intervals(level, sampling, n_figures if simultaneous else 1)
        marks = {column: self._mark(column) for column in self.columns if self._note(column)}
        rows = {
            (name, column): _spread(part._figures(column, intervals)) | marks.get(column, {})
            for name, part in parts.items()
            for column in self.columns
        }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index = pd.MultiIndex.from_tuples(list(rows), names=["subgroup", "column"])
        return self._with_estimand(frame if self.subgroups else frame.droplevel(0))

    def _mark(self, column: str) -> dict[str, Any]:
        mean = self.estimates(column)["mean"]
        return {"clipped_low": mean.clipped_low, "clipped_high": mean.clipped_high, "note": self._note(column)}

    def _note(self, column: str) -> str:
        """Return what must be known of the estimates of a column, "" where there is nothing."""
        cells = self._cells(column)
        if cells.labels == [LOST] and cells.block.is_line:
            return "not estimated: no values stand out of the noise"
        return f"of values clipped to [{', '.join(cells.ends)}]" if cells.is_clipped else ""

    def histogram(self, column: str, *, level: float = 0.95, sampling: bool = False, simultaneous: bool = False) -> Any:
        """Return the counts of the cells of a column, which add up to the number of rows.

        Parameters
        ----------
        column : str
            Its name.
        level : float, default=0.95
            Probability with which an interval holds its count.
        sampling : bool, default=False
            Whether intervals are for the population that the rows were drawn from.
        simultaneous : bool, default=False
            Whether all intervals hold at once with this probability (Bonferroni).

        Returns
        -------
        frame : pandas.DataFrame
            Bins or levels, the last row being that of the gaps, with ``count``, ``low`` and ``high``; of numbers also
            the least and the largest value of a bin, ``left`` and ``right``.
        """
        import pandas as pd

        each = self._of(column)
        counts = each.counts_of_cells(self._intervals(level, sampling, each.cells.size if simultaneous else 1))
        frame = pd.DataFrame(
            {"count": [x.value for x in counts], "low": [x.low for x in counts], "high": [x.high for x in counts]},
            index=[*each.cells.labels, GAP],
        )
        if each.cells.is_line:
            show: Any = _date_of if each.cells.block.column.kind == "date" else float
            frame.insert(0, "left", [*map(show, each.cells.left), None])
            frame.insert(1, "right", [*map(show, each.cells.right), None])
        return self._with_estimand(frame)

    def top(self, column: str, k: int = 5, *, level: float = 0.95, sampling: bool = False) -> Any:
        """Return the k most frequent categories of a column, or bins of a number, by the noisy counts.

        Which stand at the top was decided by noise too, so their intervals hold for all cells of the column at once.

        Parameters
        ----------
        column : str
            Its name.
        k : int, default=5
            Number of categories.
        level : float, default=0.95
            Probability with which all intervals hold their counts.
        sampling : bool, default=False
            Whether intervals are for the population that the rows were drawn from.

        Returns
        -------
        frame : pandas.DataFrame
            As of ``histogram``, in descending order, without gaps.
        """
        k = check_count("k", k, remedy="choose a whole number of categories, such as 5")
        frame = self.histogram(column, level=level, sampling=sampling, simultaneous=True).iloc[:-1]
        return frame.sort_values("count", ascending=False, kind="stable").head(k)

    # --- pairs ---

    def correlation(self) -> Any:
        """Return the correlation matrix of numbers and dates, which is positive semidefinite. A gap is the mean.

        Returns
        -------
        frame : pandas.DataFrame of shape (d, d)
            Empty where correlations were not asked for.
        """
        import pandas as pd

        names = [label for label, each in self._columns.items() if each.cells.is_line]
        values = np.empty((0, 0)) if self._matrix is None else self._matrix.values
        names = names if self._matrix is not None else []
        return self._with_estimand(pd.DataFrame(values, index=names, columns=names))

    def association(self) -> Any:
        """Return how much any two columns have to do with each other.

        Of two numbers it is their correlation, of two categories Cramér's V, and of a number and a category the
        correlation ratio of the number; the last two are between 0 and 1. Rare categories are taken together.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_columns, n_columns)
            It is symmetric, with ones on the diagonal.
        """
        import pandas as pd

        frame = pd.DataFrame(np.eye(len(self.columns)), index=self.columns, columns=self.columns)
        for (first, second), each in self._pairs(self._intervals(0.95, False)).items():
            frame.loc[first, second] = frame.loc[second, first] = each.value
        return self._with_estimand(frame)

    def pairs(self, *, level: float = 0.95, sampling: bool = False, simultaneous: bool = False) -> Any:
        """Return what ``association`` has, one pair a row, with intervals.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which an interval holds its figure.
        sampling : bool, default=False
            Whether intervals are for the population that the rows were drawn from.
        simultaneous : bool, default=False
            Whether all intervals hold at once with this probability (Bonferroni).

        Returns
        -------
        frame : pandas.DataFrame
            Indexed by two names of columns, with ``value``, ``low`` and ``high``.
        """
        import pandas as pd

        d = len(self.columns)
        found = self._pairs(self._intervals(level, sampling, max(1, d * (d - 1) // 2) if simultaneous else 1))
        index = pd.MultiIndex.from_tuples(list(found), names=["first", "second"]) if found else None
        rows = [{"value": each.value, "low": each.low, "high": each.high} for each in found.values()]
        return self._with_estimand(pd.DataFrame(rows, index=index, columns=["value", "low", "high"]))

    def _pairs(self, intervals: Intervals) -> dict[tuple[str, str], Estimate]:
        if not self._asked.correlation:
            return {}
        pairs = [(first, second) for j, second in enumerate(self.columns) for first in self.columns[:j]]
        return {pair: self._pair(*pair, intervals) for pair in pairs}

    def _pair(self, first: str, second: str, intervals: Intervals) -> Estimate:
        one, other = self._of(first), self._of(second)
        if one.k is not None and other.k is not None and self._matrix is not None:
            return self._matrix.figure(one.k, other.k, intervals)
        if one.cells.is_line:
            return correlation_ratio(self._tally.sums[one.cells.name, other.cells.name], one, other, intervals)
        if other.cells.is_line:
            return self._pair(second, first, intervals)
        return cramers_v(self._table(first, second), one, other, intervals)

    def _table(self, first: Any, second: Any) -> NoisyTable:
        pair = self._cells(first).name, self._cells(second).name
        if pair in self._tally.tables:
            return self._tally.tables[pair]
        if pair[::-1] not in self._tally.tables:
            raise KeyError(f"the table of {first!r} and {second!r} was not measured: ask for it by crosstabs.")
        turned = self._tally.tables[pair[::-1]]
        return turned._replace(first=turned.second, second=turned.first, counts=turned.counts.T)

    def crosstab(self, first: str, second: str) -> Any:
        """Return the counts of two columns together, which are nonnegative and add up to the number of rows.

        Parameters
        ----------
        first, second : str
            A pair that was asked for by `crosstabs`; or, with correlations, any two categories, of which rare
            levels are taken together.

        Returns
        -------
        frame : pandas.DataFrame
            The last row and the last column are gaps. The noise of a cell before it was made nonnegative has the
            standard deviation ``frame.attrs["noise"]``.
        """
        import pandas as pd

        table = self._table(first, second)
        index, columns = ([*each.labels, GAP] for each in (table.first, table.second))
        frame = pd.DataFrame(positive_counts(table, self._tally.n), index=index, columns=columns)
        frame.index.name, frame.columns.name = first, second
        frame.attrs["noise"] = table.deviation
        return self._with_estimand(frame)

    # --- how it is shown ---

    def __repr__(self) -> str:
        notes = [f"; {format_names([column])} {self._note(column)}" for column in self.columns if self._note(column)]
        return (
            f"<PrivateDescription of {len(self.columns)} columns: epsilon={self.epsilon_:.4g} at delta={self.delta_:g} "
            f"for one {self.privacy_unit_} ({self.adjacency_}){''.join(notes)}>"
            + (self._estimand and f"\n{self._estimand}")
        )

    def _repr_html_(self) -> str:
        return page_of(self)

    def to_html(self, path: Any = None) -> str:
        """Return the description as HTML without scripts or links, and write it to a file if one is named.

        Parameters
        ----------
        path : path-like or None, default=None
            File to write.

        Returns
        -------
        text : str
            One element with its style, for a notebook or a page.
        """
        text = page_of(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8">\n{text}\n</html>\n')
        return text


def _as_dates(figure: Estimate) -> Estimate:
    """Return a figure in days as dates."""
    value, low, high = map(_date_of, figure[:3])
    clipped = {name: _date_of(getattr(figure, name)) for name in ("clipped_low", "clipped_high")}
    return figure._replace(value=value, low=low, high=high).with_notes(**clipped)


def _date_of(day: float) -> Any:
    """Return days since 1970 as a datetime in whole seconds; NaN, and days outside of years 1 to 9999, remain."""
    moment = None if math.isnan(day) else moment_of_text(day_text(day))
    return day if moment is None else moment.replace(microsecond=0)


def _spread(figures: Mapping[str, Estimate]) -> dict[str, float]:
    made: dict[str, float] = {}
    for name, each in figures.items():
        made |= {name: each.value, f"{name}_low": each.low, f"{name}_high": each.high}
    return made


# --- the description of a table, by one release ---


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
        Privacy budget of the description. The noise is calibrated to it. A number, or a risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/risk.md``). Must be None if `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        Probability with which the guarantee may fail. Choose it well below 1/n. "auto" is the delta of the accountant
        if it has one, else 1e-5 for up to 10,000 rows and 1/(10 n), rounded down to a power of ten, for more, n being
        the public number of rows.
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
        Neighboring relation, how two tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number is public.
        - "replace_one": it is replaced by another one. The number is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number is private, and estimated from the
          counts, and every rule uses `n_public`, a public number near it.

        None is the relation of `accountant`, else "zero_out".
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
        schema,
        by=by,
        correlation=correlation,
        crosstabs=crosstabs,
        quantiles=quantiles,
        n_bins=n_bins,
        weight_bound=weight_bound,
        rows_per_group=rows_per_group,
        noise=noise,
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=noise_multiplier,
        adjacency=adjacency,
        accountant=accountant,
        random_state=random_state,
    )
    return PrivateDescription.of(describer.fit(table, groups=groups, sample_weight=sample_weight))
