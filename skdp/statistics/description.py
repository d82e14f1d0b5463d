"""A private description of a table: estimates as data frames, text and HTML with small plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdp._checks.groups import estimand_of
from skdp._checks.numbers import day_text, format_names, moment_of_text
from skdp._checks.parameters import check_count, check_real
from skdp.accounting import DpEvent
from skdp.accounting.ledger.report import escaped, to_digits
from skdp.base.estimates import Estimate, shown
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.statistics import column_estimates
from skdp.statistics.cells import GAP, LOST, ColumnCells
from skdp.statistics.table_release import NoisyTable, Questions, Tally, add_up


class PrivateDescription:
    """Descriptive statistics of a private table. `skdp.describe` creates it; queries have no additional privacy cost.

    Every estimate has an interval that accounts for the noise. With ``sampling=True`` the interval also accounts for
    the sampling of the rows, or groups, from a population. With ``simultaneous=True`` all intervals of the result hold
    jointly.

    Parameters
    ----------
    asked : Questions
        The measured columns and pairs.
    tally : Tally
        Noisy sums.
    quantiles : sequence of float
        Orders of the quantiles.
    subgroups : mapping of str to PrivateDescription
        Descriptions of the categories of `by`.

    Attributes
    ----------
    schema_ : TableSchema
        Schema of all columns, including privately estimated bounds and categories. Its use as `schema` of another fit
        has no additional privacy cost.
    subgroups : dict of str to PrivateDescription
        Descriptions of the categories of `by`; empty without `by`.
    epsilon_ : float
        Epsilon of `privacy_event_` at `delta_`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    privacy_event_ : DpEvent
        Event of the release, from which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit: one row, or all rows of one group of `groups`.
    noise_multiplier_ : float
        Noise multiplier of the description.
    rows_per_group : int or None
        Public maximum number of rows of a group, the parameter of `skdp.describe`.
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
            label: column_estimates.ColumnEstimates(
                cells, tally, j, numbers.index(cells.name) if cells.is_line else None
            )
            for j, (label, cells) in enumerate(zip(asked.labels, asked.cells, strict=True))
        }
        lines = [each for each in self._columns.values() if each.cells.is_line]
        moments = tally.moments if asked.correlation else None
        self._matrix = None if moments is None else column_estimates.CorrelationMatrix(moments, lines)

    @classmethod
    def of(cls, fitted: Any) -> PrivateDescription:
        """Return the description of a fitted describer.

        Parameters
        ----------
        fitted : TableDescriber
            Its releases and parameters.

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
        """Names of the described columns.

        Returns
        -------
        columns : list
            In the order of the table.
        """
        return list(self._columns)

    @property
    def n(self) -> float:
        """Number of rows, or of groups: exact if it is public, otherwise noisy.

        Returns
        -------
        n : float
            The counts of each column sum to it.
        """
        return self._tally.n

    def _intervals(self, level: float, sampling: bool, n_estimates: int = 1) -> column_estimates.Intervals:
        level = check_real("level", level, above=0, below=1, constraint="a number in (0, 1), such as 0.95")
        if sampling and self.rows_per_group is not None:
            raise ValueError(
                f"`sampling` must be False with rows_per_group={self.rows_per_group}, because rows of a group are not "
                "independent. Set sampling=False, or describe with rows_per_group=None."
            )
        return column_estimates.Intervals.of(level, bool(sampling), n_estimates)

    def _of(self, column: str) -> column_estimates.ColumnEstimates:
        if column not in self._columns:
            raise KeyError(f"`column` must be one of {format_names(self.columns)}, got {column!r}.")
        return self._columns[column]

    def _cells(self, column: str) -> ColumnCells:
        return self._of(column).cells

    # --- estimates ---

    def estimates(self, column: str, *, level: float = 0.95, sampling: bool = False) -> dict[str, Estimate]:
        """Return count, fraction of missing values, mean, standard deviation and quantiles of a column.

        Parameters
        ----------
        column : str
            Name of the column.
        level : float, default=0.95
            Confidence level of the intervals.
        sampling : bool, default=False
            Whether intervals refer to the population that the rows are sampled from.

        Returns
        -------
        figures : dict of str to Estimate
            Each with value, low, high and standard error; NaN for undefined statistics of a categorical column. Mean
            and quantiles of dates are dates (`datetime.datetime`, in UTC); their standard deviation and standard errors
            are in days.
        """
        return self._figures(column, self._intervals(level, sampling))

    def _figures(self, column: str, intervals: column_estimates.Intervals) -> dict[str, Estimate]:
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
        """Return an estimate with its estimand."""
        return figure.with_notes(estimand=self._estimand)

    def _with_estimand(self, frame: Any) -> Any:
        """Return a frame whose ``attrs`` contain the estimand, if `groups` was set."""
        frame.attrs |= {"estimand": self._estimand} if self._estimand else {}
        return frame

    def to_frame(self, *, level: float = 0.95, sampling: bool = False, simultaneous: bool = False) -> Any:
        """Return a data frame with one row for each column of the table, and for each subgroup.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals.
        sampling : bool, default=False
            Whether intervals refer to the population that the rows are sampled from.
        simultaneous : bool, default=False
            Whether all intervals hold jointly at this level (Bonferroni).

        Returns
        -------
        frame : pandas.DataFrame
            Columns are the estimates; ``mean`` is followed by ``mean_low`` and ``mean_high``, and so on. With `by`, the
            first level of the index is the subgroup. With privately estimated bounds, ``clipped_low`` and
            ``clipped_high`` are the bounds to which values are clipped. ``note`` states this, or that a column is not
            estimated. With `groups`, ``frame.attrs["estimand"]`` states the weight of a group, in all frames of a
            description.
        """
        import pandas as pd

        parts: Mapping[str, PrivateDescription] = self.subgroups or {"": self}
        of_columns = [4 + len(self._quantiles) if each.cells.is_line else 2 for each in self._columns.values()]
        n_estimates = len(parts) * sum(of_columns)
        intervals = self._intervals(level, sampling, n_estimates if simultaneous else 1)
        rows: dict[tuple[str, Any], dict[str, Any]] = {}
        for name, part in parts.items():
            for column in self.columns:
                row = rows[name, column] = {}
                for key, each in part._figures(column, intervals).items():
                    row |= {key: each.value, f"{key}_low": each.low, f"{key}_high": each.high}
                if note := self._note(column):
                    mean = self.estimates(column)["mean"]
                    row |= {"clipped_low": mean.clipped_low, "clipped_high": mean.clipped_high, "note": note}
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index = pd.MultiIndex.from_tuples(list(rows), names=["subgroup", "column"])
        return self._with_estimand(frame if self.subgroups else frame.droplevel(0))

    def _note(self, column: str) -> str:
        """Return a note on the estimates of a column; "" if there is none."""
        cells = self._cells(column)
        if cells.labels == [LOST] and cells.block.is_line:
            return "not estimated: no values are distinguishable from the noise"
        return f"of values clipped to [{', '.join(cells.ends)}]" if cells.is_clipped else ""

    def histogram(self, column: str, *, level: float = 0.95, sampling: bool = False, simultaneous: bool = False) -> Any:
        """Return the counts of the cells of a column, which sum to the number of rows.

        Parameters
        ----------
        column : str
            Name of the column.
        level : float, default=0.95
            Confidence level of the intervals.
        sampling : bool, default=False
            Whether intervals refer to the population that the rows are sampled from.
        simultaneous : bool, default=False
            Whether all intervals hold jointly at this level (Bonferroni).

        Returns
        -------
        frame : pandas.DataFrame
            One row for each bin or category, with ``count``, ``low`` and ``high``; the last row is for missing values.
            Numeric columns also have the smallest and largest value of a bin, ``left`` and ``right``.
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

        The intervals hold jointly for all cells of the column, because noise affects the selection of the k cells.

        Parameters
        ----------
        column : str
            Name of the column.
        k : int, default=5
            Number of categories.
        level : float, default=0.95
            Joint confidence level of all intervals.
        sampling : bool, default=False
            Whether intervals refer to the population that the rows are sampled from.

        Returns
        -------
        frame : pandas.DataFrame
            As for ``histogram``, in descending order, without missing values.
        """
        k = check_count("k", k, constraint="a positive integer, such as 5")
        frame = self.histogram(column, level=level, sampling=sampling, simultaneous=True).iloc[:-1]
        return frame.sort_values("count", ascending=False, kind="stable").head(k)

    # --- pairs ---

    def correlation(self) -> Any:
        """Return the correlation matrix of numeric and date columns, which is positive semidefinite.

        Missing values are replaced by the mean.

        Returns
        -------
        frame : pandas.DataFrame of shape (d, d)
            Empty without ``correlation=True``.
        """
        import pandas as pd

        names = [label for label, each in self._columns.items() if each.cells.is_line]
        values = np.empty((0, 0)) if self._matrix is None else self._matrix.values
        names = names if self._matrix is not None else []
        return self._with_estimand(pd.DataFrame(values, index=names, columns=names))

    def association(self) -> Any:
        """Return the association between any two columns.

        It is the correlation of two numeric columns, Cramér's V of two categorical columns, and the correlation ratio
        of a numeric by a categorical column; the last two are between 0 and 1. Rare categories are merged.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_columns, n_columns)
            Symmetric, with ones on the diagonal.
        """
        import pandas as pd

        frame = pd.DataFrame(np.eye(len(self.columns)), index=self.columns, columns=self.columns)
        for (first, second), each in self._pairs(self._intervals(0.95, False)).items():
            frame.loc[first, second] = frame.loc[second, first] = each.value
        return self._with_estimand(frame)

    def pairs(self, *, level: float = 0.95, sampling: bool = False, simultaneous: bool = False) -> Any:
        """Return the values of ``association``, one pair per row, with intervals.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals.
        sampling : bool, default=False
            Whether intervals refer to the population that the rows are sampled from.
        simultaneous : bool, default=False
            Whether all intervals hold jointly at this level (Bonferroni).

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

    def _pairs(self, intervals: column_estimates.Intervals) -> dict[tuple[str, str], Estimate]:
        if not self._asked.correlation:
            return {}
        pairs = [(first, second) for j, second in enumerate(self.columns) for first in self.columns[:j]]
        return {pair: self._pair(*pair, intervals) for pair in pairs}

    def _pair(self, first: str, second: str, intervals: column_estimates.Intervals) -> Estimate:
        one, other = self._of(first), self._of(second)
        if one.k is not None and other.k is not None and self._matrix is not None:
            return self._matrix.figure(one.k, other.k, intervals)
        if one.cells.is_line:
            sums = self._tally.sums[one.cells.name, other.cells.name]
            return column_estimates.correlation_ratio(sums, one, other, intervals)
        if other.cells.is_line:
            return self._pair(second, first, intervals)
        return column_estimates.cramers_v(self._table(first, second), one, other, intervals)

    def _table(self, first: Any, second: Any) -> NoisyTable:
        pair = self._cells(first).name, self._cells(second).name
        if pair in self._tally.tables:
            return self._tally.tables[pair]
        if pair[::-1] not in self._tally.tables:
            raise KeyError(f"The pair {first!r}, {second!r} was not measured. Add it to `crosstabs` of describe.")
        turned = self._tally.tables[pair[::-1]]
        return turned._replace(first=turned.second, second=turned.first, counts=turned.counts.T)

    def crosstab(self, first: str, second: str) -> Any:
        """Return the cross-tabulation of two columns, with nonnegative counts that sum to the number of rows.

        Parameters
        ----------
        first, second : str
            A pair of `crosstabs`; or, with correlations, any two categorical columns, whose rare categories are merged.

        Returns
        -------
        frame : pandas.DataFrame
            The last row and the last column are missing values. The noise of a cell before projection has the standard
            deviation ``frame.attrs["noise"]``.
        """
        import pandas as pd

        table = self._table(first, second)
        index, columns = ([*each.labels, GAP] for each in (table.first, table.second))
        frame = pd.DataFrame(column_estimates.positive_counts(table, self._tally.n), index=index, columns=columns)
        frame.index.name, frame.columns.name = first, second
        frame.attrs["noise"] = table.deviation
        return self._with_estimand(frame)

    # --- output ---

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
        """Return the description as HTML without scripts or links, and optionally write it to a file.

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
    """Return an estimate in days as dates."""
    value, low, high = map(_date_of, figure[:3])
    clipped = {name: _date_of(getattr(figure, name)) for name in ("clipped_low", "clipped_high")}
    return figure._replace(value=value, low=low, high=high).with_notes(**clipped)


def _date_of(day: float) -> Any:
    """Return days since 1970 as a datetime in whole seconds; NaN, and days outside of years 1 to 9999, remain."""
    moment = None if math.isnan(day) else moment_of_text(day_text(day))
    return day if moment is None else moment.replace(microsecond=0)


# --- HTML: one element without scripts, links or other resources ---

_WIDTH, _HEIGHT, _MOST_BARS = 180, 40, 24

_STYLE = """
.skdp-description { font: 14px/1.4 system-ui, sans-serif; color: inherit; max-width: 70rem; }
.skdp-description table { border-collapse: collapse; }
.skdp-description th, .skdp-description td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #8884; }
.skdp-description th:first-child, .skdp-description td:last-child { text-align: left; }
.skdp-description small { opacity: .7; display: block; }
.skdp-description svg { fill: currentColor; opacity: .8; vertical-align: middle; }
"""


def page_of(description: Any) -> str:
    """Return the description, and those of its subgroups, as one element with its style."""
    parts = [_section(description, "")]
    parts += [_section(each, name) for name, each in description.subgroups.items()]
    unit = escaped(description.privacy_unit_)
    cost = (
        f"ε = {to_digits(description.epsilon_, 5, up=True)} at δ = {description.delta_:g} for one {unit} "
        f"({escaped(description.adjacency_)}). The small numbers are 95% intervals that account for the noise."
        + f" {escaped(description._estimand)}".rstrip()
    )
    return f'<div class="skdp-description"><style>{_STYLE}</style><p>{cost}</p>{"".join(parts)}</div>'


def _section(description: Any, name: str) -> str:
    rows = {column: description.estimates(column) for column in description.columns}
    heads = list(next(iter(rows.values()))) if rows else []
    head = "".join(f"<th>{escaped(each)}</th>" for each in ["column", *heads, "distribution"])
    body = "".join(
        f"<tr><th>{escaped(column)}<small>{escaped(description._note(column))}</small></th>"
        f"{''.join(_cell(each) for each in figures.values())}"
        f"<td>{_bars(description, column)}</td></tr>"
        for column, figures in rows.items()
    )
    title = f"<h4>{escaped(name)}</h4>" if name else ""
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(each: Any) -> str:
    if each.value != each.value:  # NaN
        return "<td></td>"
    return f"<td>{shown(each.value)}<small>{shown(each.low)} to {shown(each.high)}</small></td>"


def _bars(description: Any, column: str) -> str:
    """Return the distribution as bars: densities of bins, or counts of the most frequent categories."""
    frame = description.histogram(column)
    if "left" in frame:
        frame = frame.iloc[:-1]
        groups = np.array_split(np.arange(len(frame)), min(_MOST_BARS, len(frame)))
        counts, labels = frame["count"].to_numpy(), list(frame.index)
        heights = [float(counts[each].mean()) for each in groups]
        names = [labels[each[0]] if len(each) == 1 else f"{labels[each[0]]} to {labels[each[-1]]}" for each in groups]
    else:
        top = description.top(column, _MOST_BARS)
        heights, names = top["count"].tolist(), list(top.index)
    most, step = max([*heights, 1e-300]), _WIDTH / max(len(heights), 1)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{_HEIGHT * (1 - h / most):.1f}" width="{max(step - 1, 0.5):.1f}" '
        f'height="{_HEIGHT * h / most:.1f}"><title>{escaped(name)}: {h:.0f}</title></rect>'
        for i, (h, name) in enumerate(zip(heights, names, strict=True))
    )
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{escaped(column)}">{bars}</svg>'
