"""Estimates for one column from noisy sums, with intervals from the public size of the noise: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from skdp.base.estimates import Estimate
from skdp.mechanisms.bounded_sum import centered, onto_simplex
from skdp.statistics.cells import ColumnCells, Merged
from skdp.statistics.table_release import MomentsOfNumbers, NoisySums, NoisyTable, Tally, least_counts

_Z, _ROUNDS = 1.96, 20
"""Standard errors of a 95% interval, and iterations in which an interval of a ratio is found."""


NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan)
"""Estimate that is not defined for the column, such as the mean of a categorical column."""


class Intervals(NamedTuple):
    """Coverage of the intervals.

    Attributes
    ----------
    z : float
        Standard errors on each side.
    sampling : bool
        Whether they refer to the population that rows, or groups, are sampled from; otherwise to the table.
    """

    z: float
    sampling: bool

    @classmethod
    def of(cls, level: float, sampling: bool, n_estimates: int = 1) -> Intervals:
        """Intervals of this level; for several estimates, simultaneous intervals (Bonferroni)."""
        return cls(float(norm.isf((1.0 - level) / (2.0 * n_estimates))), sampling)

    def error(self, noise: float, variance: float, n: float) -> float:
        """Return the standard error for this variance of a row."""
        return math.hypot(noise, math.sqrt(max(variance, 0.0) / max(n, 1.0)) if self.sampling else 0.0)

    def around(
        self, value: float, error: float, low: float = -math.inf, high: float = math.inf, bias: float = 0.0
    ) -> Estimate:
        """Return the estimate, which lies between `low` and `high` and has at most the given `bias` without noise."""
        half = self.z * error + bias
        least, value, most = (min(max(each, low), high) for each in (value - half, value, value + half))
        return Estimate(value, least, most, half / self.z)


class _Part(NamedTuple):
    """An estimate, and the components of its error.

    Attributes
    ----------
    value : float
    noise : float
        Standard deviation of its own noise.
    of_total : float
        Standard deviation of the error due to the noisy number of rows, with its sign.
    bias : float
        Largest bias due to bins, or due to squares of noise.
    """

    value: float
    noise: float
    of_total: float = 0.0
    bias: float = 0.0

    @property
    def error(self) -> float:
        """Standard deviation of the error without the bias."""
        return math.hypot(self.noise, self.of_total)

    def fraction(self, counts: _Part) -> float:
        """Return the weight of the counts beside these moments that leaves the narrowest 95% interval."""
        if not math.isfinite(self.noise):
            return 1.0
        weights = np.linspace(0.0, 1.0, 101)
        errors = np.hypot((1.0 - weights) * self.error, weights * counts.error)
        return float(weights[np.argmin(_Z * errors + weights * counts.bias + (1.0 - weights) * self.bias)])

    def with_counts(self, counts: _Part, weight: float) -> _Part:
        """Return the weighted mean of both, whose errors of the number of rows are the same."""
        if weight == 1.0:
            return counts
        value, of_total, bias = ((1.0 - weight) * self[k] + weight * counts[k] for k in (0, 2, 3))
        return _Part(value, math.hypot((1.0 - weight) * self.noise, weight * counts.noise), of_total, bias)


_UNKNOWN = _Part(0.0, math.inf)


@dataclass(frozen=True)
class ColumnEstimates:
    """Noisy data of a column, and estimates from it.

    Parameters
    ----------
    cells : ColumnCells
    tally : Tally
    j : int
        Position of the column among all.
    k : int or None
        Position among the numeric columns with measured moments.
    """

    cells: ColumnCells
    tally: Tally
    j: int
    k: int | None

    @cached_property
    def shares(self) -> np.ndarray:
        """Probabilities of the cells, with that of missing values last."""
        return self.tally.shares(self.j)

    @property
    def released(self) -> np.ndarray:
        """Unbiased noisy counts of the cells without that of missing values."""
        return self.tally.counts[self.j][:-1]

    @property
    def n_present(self) -> float:
        """Number of rows without a missing value, 1 or more."""
        return max(self.tally.n * (1.0 - float(self.shares[-1])), 1.0)

    @cached_property
    def present(self) -> np.ndarray:
        """Probabilities of the cells among the rows without a missing value."""
        return self.shares[:-1] / max(float(self.shares[:-1].sum()), 1e-300)

    def errors_of(self, factors: np.ndarray) -> tuple[float, float]:
        """Standard deviations of the errors of a sum of counts times factors, one for each cell and for missing values.

        The first is that of the noise of the counts, the second, with its sign, that of the number of rows.
        """
        total = float(factors.sum()) / len(factors)
        spread = float((factors**2).sum()) - len(factors) * total**2
        return self.tally.deviation * math.sqrt(max(spread, 0.0)), self.tally.n_deviation * total

    def error_of_cells(self, cells: slice | int) -> float:
        factors = np.zeros(self.cells.size)
        factors[cells] = 1.0
        return math.hypot(*self.errors_of(factors))

    @cached_property
    def moments(self) -> ScaledMoments:
        """Moments of numbers and dates."""
        return ScaledMoments(self)

    # --- counts ---

    def count(self, intervals: Intervals) -> Estimate:
        """Number of rows without a missing value."""
        n, share = self.tally.n, float(self.shares[-1])
        error = intervals.error(self.error_of_cells(slice(0, -1)), share * (1.0 - share) * n**2, n)
        most = n if self.tally.n_deviation == 0.0 else math.inf
        return intervals.around(float(self.released.sum()), error, 0.0, most).at(n * (1.0 - share))

    def share_of_gaps(self, intervals: Intervals) -> Estimate:
        """Fraction of missing values."""
        share = float(self.shares[-1])
        noise = self.error_of_cells(-1) / self.tally.n
        error = intervals.error(noise, share * (1.0 - share), self.tally.n)
        found = intervals.around(float(self.tally.counts[self.j][-1]) / self.tally.n, error, 0.0, 1.0)
        return found.at(share)

    def counts_of_cells(self, intervals: Intervals) -> list[Estimate]:
        """Number of rows in each cell, with missing values last; they sum to the number of rows."""
        n, counts, shares = self.tally.n, self.tally.counts[self.j].tolist(), self.shares.tolist()
        made = []
        for cell, (noisy, share) in enumerate(zip(counts, shares, strict=True)):
            error = intervals.error(self.error_of_cells(cell), share * (1.0 - share) * n**2, n)
            made.append(intervals.around(noisy, error, 0.0).at(n * share))
        return made

    def _clipped(self, value: float, low: float, high: float, error: float) -> Estimate:
        """Return an estimate with the privately estimated bounds of the values, if there are any."""
        found, cells = Estimate(value, low, high, error), self.cells
        if not cells.is_clipped:
            return found
        return found.with_notes(clipped_low=float(cells.left[0]), clipped_high=float(cells.right[-1]))

    # --- mean and standard deviation ---

    def mean_of_cells(self, intervals: Intervals) -> Estimate:
        """Mean of numbers and dates."""
        if not self.cells.is_line:
            return NOTHING
        (middle, half), mean, variance = self.cells.scale, self.moments.whole_mean, self.moments.variance.value
        low, high = self.moments.ends_of_mean(intervals, variance)
        value, low, high = (middle + half * each for each in (min(max(self.moments.mean, low), high), low, high))
        error = intervals.error(mean.error, variance, self.n_present) + mean.bias / intervals.z
        return self._clipped(value, low, high, half * error)

    def deviation(self, intervals: Intervals) -> Estimate:
        """Standard deviation of numbers and dates."""
        if not self.cells.is_line:
            return NOTHING
        half, variance, fourth = self.cells.scale[1], self.moments.variance, self.moments.fourth_moment()
        error = intervals.error(variance.error, fourth - max(variance.value, 0.0) ** 2, self.n_present)
        found = intervals.around(variance.value, error, 0.0, 1.0, variance.bias)
        root, low, high = (math.sqrt(each) for each in found[:3])
        error = half * found.standard_error / (2.0 * max(root, math.sqrt(found.standard_error / 2.0), 1e-300))
        return self._clipped(half * root, half * low, half * high, error)

    # --- quantiles ---

    def quantile(self, q: float, intervals: Intervals) -> Estimate:
        """The quantile of order q; monotone in q.

        The interval contains all cells that can contain the quantile, by the noisy cumulative counts.
        """
        if not self.cells.is_line:
            return NOTHING
        present = self.present
        below = np.cumsum(present)
        k = min(int(np.searchsorted(below, q - 1e-12)), len(below) - 1)
        part = (q - (below[k] - present[k])) / present[k] if present[k] > 0 else 0.5
        left, right = self.cells.left, self.cells.right
        value = float(left[k] + min(max(part, 0.0), 1.0) * (right[k] - left[k]))
        held = np.flatnonzero(self._may_hold(q, intervals))
        first, last = (held[0], held[-1]) if len(held) else (k, k)
        return self._clipped(value, min(float(left[first]), value), max(float(right[last]), value), math.nan)

    def _may_hold(self, q: float, intervals: Intervals) -> np.ndarray:
        """Whether each cell can contain the quantile: the cumulative fraction before it can be below q, with it above.

        Both are compared with the noise of the sum over the cells up to one, times 1 - q, minus the cells after it
        times q.
        """
        counts, m = self.released, len(self.released)
        before = np.concatenate([[0.0], np.cumsum(counts)])
        above = before - q * before[-1]  # at each break
        k, size, s = np.arange(m + 1), self.cells.size, self.tally.deviation
        squares = k * (1.0 - q) ** 2 + (m - k) * q**2
        sums = k * (1.0 - q) - (m - k) * q
        noise = np.sqrt(s**2 * np.maximum(squares - sums**2 / size, 0.0) + (self.tally.n_deviation * sums / size) ** 2)
        spread = self.n_present * q * (1.0 - q) if intervals.sampling else 0.0
        room = intervals.z * np.sqrt(noise**2 + spread)
        return (above[:-1] - room[:-1] <= 0.0) & (above[1:] + room[1:] >= 0.0)


@dataclass(frozen=True)
class ScaledMoments:
    """Mean and variance of a column of numbers, scaled to [-1, 1] between the bounds.

    Parameters
    ----------
    column : ColumnEstimates
    """

    column: ColumnEstimates

    @cached_property
    def _middles(self) -> np.ndarray:
        middle, half = self.column.cells.scale
        return (self.column.cells.middles - middle) / half

    @cached_property
    def _widths(self) -> np.ndarray:
        return self.column.cells.widths / self.column.cells.scale[1]

    @cached_property
    def _start(self) -> float:
        """A first mean, from the probabilities of the cells."""
        present = self.column.shares[:-1]
        return float(present @ self._middles / present.sum()) if present.sum() else 0.0

    @cached_property
    def whole_mean(self) -> _Part:
        """Mean of the scaled numbers, with its errors."""
        return self._mean_of_moments.with_counts(self._mean_of_counts, self._fraction)

    @cached_property
    def _fraction(self) -> float:
        """The weight of the counts in the mean."""
        return self._mean_of_moments.fraction(self._mean_of_counts)

    def _error_of_mean(self, mean: float) -> float:
        """Standard deviation of the error of the mean if the exact one is `mean`."""
        moments = _UNKNOWN if self._fraction == 1.0 else self._errors_of_moments(mean, 0.0)
        return moments.with_counts(self._errors_of_counts(mean, 0.0), self._fraction).error

    @cached_property
    def _mean_of_counts(self) -> _Part:
        value = self._start + float((self._middles - self._start) @ self.column.released) / self.column.n_present
        bias = 0.5 * float(self.column.present @ self._widths)  # the mean of a cell is within half its width
        return self._errors_of_counts(self._start, value)._replace(bias=bias)

    def _errors_of_counts(self, mean: float, value: float) -> _Part:
        errors = self.column.errors_of(np.append(self._middles - mean, 0.0))
        return _Part(value, *(each / self.column.n_present for each in errors))

    @cached_property
    def _mean_of_moments(self) -> _Part:
        tally, k, n_present = self.column.tally, self.column.k, self.column.n_present
        if tally.moments is None or k is None:
            return _UNKNOWN
        gaps, of_gap = tally.n - n_present, float(tally.moments.of_gaps[k])
        value = (float(tally.moments.sums[0, k + 1]) - gaps * of_gap) / n_present
        return self._errors_of_moments(value, value)

    def _errors_of_moments(self, mean: float, value: float) -> _Part:
        moments, k, n_present = self.column.tally.moments, self.column.k, self.column.n_present
        assert moments is not None  # they were measured
        assert k is not None
        of_gaps = abs(mean - float(moments.of_gaps[k])) * self.column.error_of_cells(-1)
        noise = math.hypot(moments.scale / (math.sqrt(2.0) * moments.weight), of_gaps)
        return _Part(value, noise / n_present, -mean * self.column.tally.n_deviation / n_present)

    @cached_property
    def variance(self) -> _Part:
        """Variance of the scaled numbers."""
        moments, counts = self._variance_of_moments, self._variance_of_counts
        return moments.with_counts(counts, moments.fraction(counts))

    @cached_property
    def mean(self) -> float:
        """Mean of the scaled numbers."""
        return min(max(self.whole_mean.value, -1.0), 1.0)

    @cached_property
    def _variance_of_counts(self) -> _Part:
        squares, n_present = (self._middles - self.mean) ** 2 + self._widths**2 / 12.0, self.column.n_present
        value = float(squares @ self.column.released) / n_present
        noise, of_total = self.column.errors_of(np.append(squares - min(max(value, 0.0), 1.0), 0.0))
        # Numbers off their middles to the same side cancel: half of what those to opposite sides would add.
        off = np.abs(self._middles - self.mean) * self._widths * 0.5 + self._widths**2 / 6.0
        return _Part(value, noise / n_present, of_total / n_present, float(self.column.present @ off))

    @cached_property
    def _variance_of_moments(self) -> _Part:
        tally, k, n_present = self.column.tally, self.column.k, self.column.n_present
        if tally.moments is None or k is None:
            return _UNKNOWN
        moments, row, mean = tally.moments, k + 1, self.mean
        about = float(moments.sums[row, row] - 2.0 * mean * moments.sums[0, row]) + tally.n * mean**2
        value = (about - (tally.n - n_present) * (float(moments.of_gaps[k]) - mean) ** 2) / n_present
        far = max(map(abs, self.ends_of_mean(Intervals(_Z, False))))  # the exact mean may be as large
        noise = moments.scale * math.sqrt(1.0 + 2.0 * (far / moments.weight) ** 2) / n_present
        of_total = far**2 * tally.n_deviation / n_present
        return _Part(value, noise, of_total, self.whole_mean.error**2)  # the squares are about a noisy mean

    def fourth_moment(self) -> float:
        """Fourth moment of the scaled numbers about their mean, from the cells."""
        present = self.column.shares[:-1]
        return float(present @ (self._middles - self.mean) ** 4) / max(float(present.sum()), 1e-12)

    def ends_of_mean(self, intervals: Intervals, variance: float = 0.0) -> list[float]:
        """Return the ends of the interval of the scaled mean: the means that are compatible with the release.

        A mean is a ratio, and its noise depends on the exact mean if the number of rows has noise too.
        """
        mean, ends = self.whole_mean, [self.whole_mean.value] * 2
        for _ in range(_ROUNDS if self.column.tally.n_deviation else 2):
            errors = [intervals.error(self._error_of_mean(end), variance, self.column.n_present) for end in ends]
            half = [intervals.z * error + mean.bias for error in errors]
            ends = [min(max(each, -1.0), 1.0) for each in (mean.value - half[0], mean.value + half[1])]
        return ends


class CorrelationMatrix:
    """Pearson correlations of numeric columns; missing values are replaced by the mean.

    Parameters
    ----------
    moments : MomentsOfNumbers
    columns : sequence of ColumnEstimates
        The numeric columns, in the order of the moments.

    Attributes
    ----------
    raw : ndarray of shape (d, d)
        Correlations from the noisy moments.
    values : ndarray of shape (d, d)
        The same without negative eigenvalues, and with a diagonal of ones: a correlation matrix.
    """

    def __init__(self, moments: MomentsOfNumbers, columns: Sequence[ColumnEstimates]) -> None:
        self._moments, n = moments, columns[0].tally.n
        self._n = n
        mean = np.array([each.moments.mean for each in columns])
        self._directions = np.column_stack([-mean, np.eye(len(columns))])
        sums = moments.sums.copy()
        sums[0, 0] = n
        about = self._directions @ sums @ self._directions.T
        noise = moments.scale * np.sqrt(1.0 + 2.0 * (mean / moments.weight) ** 2)
        own = np.array([each.moments.variance.value * each.n_present for each in columns])
        self._spread = np.maximum(own, noise)  # a variance below its noise carries no information
        self.raw = np.clip(about / np.sqrt(np.outer(self._spread, self._spread)), -1.0, 1.0)
        np.fill_diagonal(self.raw, 1.0)
        # Without negative eigenvalues, and scaled to a diagonal of ones.
        values, vectors = np.linalg.eigh(self.raw)
        kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
        root = np.sqrt(np.maximum(np.diag(kept), np.finfo(float).tiny))
        self.values = np.clip(kept / np.outer(root, root), -1.0, 1.0)
        np.fill_diagonal(self.values, 1.0)

    def figure(self, i: int, j: int, intervals: Intervals) -> Estimate:
        """Correlation of two numbers."""
        if i == j:
            return Estimate(1.0, 1.0, 1.0, 0.0)
        r = float(self.raw[i, j])
        error = intervals.error(self._noise(i, j), (1.0 - r * r) ** 2, self._n)
        return intervals.around(r, error, -1.0, 1.0).at(float(self.values[i, j]))

    def _noise(self, i: int, j: int) -> float:
        """Standard deviation of the noise of a correlation, to first order.

        Noise of a symmetric matrix whose entries are independent, of deviation 1 on the diagonal and 1 / sqrt(2) off
        it, has a covariance of ((a c) (b d) + (a d) (b c)) / 2 between a' N b and c' N d. Here the first entry is left
        out, since the number of rows stands in its place.
        """
        unit = self._directions / np.r_[self._moments.weight, np.ones(len(self.raw))]
        a, b = unit[i] / math.sqrt(self._spread[i]), unit[j] / math.sqrt(self._spread[j])
        terms = [(1.0, a, b), (-0.5 * self.raw[i, j], a, a), (-0.5 * self.raw[i, j], b, b)]
        variance = sum(
            f * g * (((p @ s) * (q @ t) + (p @ t) * (q @ s)) / 2.0 - p[0] * q[0] * s[0] * t[0])
            for f, p, q in terms
            for g, s, t in terms
        )
        return self._moments.scale * math.sqrt(max(float(variance), 0.0))


def positive_counts(table: NoisyTable, n: float) -> np.ndarray:
    """Return the counts of a table, projected to be nonnegative and to add up to n."""
    return n * onto_simplex(table.counts.ravel() / n).reshape(table.counts.shape)


def cramers_v(table: NoisyTable, first: ColumnEstimates, second: ColumnEstimates, intervals: Intervals) -> Estimate:
    """Return Cramér's V of two categorical columns, without rows with missing values, and without rare categories."""
    rows, columns = _margin(first, table.first), _margin(second, table.second)
    least = 0.5 * least_counts(first.tally.n, table.deviation)[0]  # below, noise would outweigh all else
    kept_rows, kept_columns = rows >= least, columns >= least
    a, b = int(kept_rows.sum()), int(kept_columns.sum())
    if min(a, b) < 2:
        return _OUTWEIGHED
    counts, n = table.counts[:-1, :-1][np.ix_(kept_rows, kept_columns)], max(float(rows.sum()), 1.0)
    expected = np.outer(rows[kept_rows], columns[kept_columns]) / n
    noise = table.deviation**2 * (1.0 - 1.0 / a) * (1.0 - 1.0 / b)
    return _root_of_squares(centered(counts - expected), 1.0 / expected, noise, n * (min(a, b) - 1), n, intervals)


def correlation_ratio(
    sums: NoisySums, number: ColumnEstimates, levels: ColumnEstimates, intervals: Intervals
) -> Estimate:
    """Return the correlation ratio of a number by the categories of a column: the root of the explained variance."""
    rows = _margin(levels, sums.levels)
    kept = rows >= 0.5 * least_counts(number.tally.n, sums.deviation)[1]
    total = float(rows.sum()) * number.moments.variance.value
    if kept.sum() < 2 or total <= 0.0:
        return _OUTWEIGHED
    about_mean = sums.sums[:-1][kept] - number.moments.mean * rows[kept]
    return _root_of_squares(about_mean, 1.0 / rows[kept], sums.deviation**2, total, float(rows.sum()), intervals)


_OUTWEIGHED = Estimate(0.0, 0.0, 1.0, math.nan)
"""Estimate that the noise dominates."""


def _root_of_squares(
    values: np.ndarray, weights: np.ndarray, noise: float, total: float, n: float, intervals: Intervals
) -> Estimate:
    """Return the root of the weighted sum of squares over `total`, minus the expected squared noise."""
    square = float((weights * (values**2 - noise)).sum()) / total
    signal = np.maximum(values**2 - noise, 0.0)
    spread = math.sqrt(float((weights**2 * (4.0 * signal * noise + 2.0 * noise**2)).sum())) / total
    part = min(max(square, 0.0), 1.0)
    error = intervals.error(spread, 4.0 * part * (1.0 - part), n)
    found = intervals.around(square, error, 0.0, 1.0)
    root, low, high = (math.sqrt(each) for each in found[:3])
    return Estimate(root, low, high, error / (2.0 * max(root, math.sqrt(error / 2.0), 1e-300)))


def _margin(figures: ColumnEstimates, merged: Merged) -> np.ndarray:
    """Counts of the merged cells of a column, without that of missing values."""
    return np.bincount(merged.places, figures.tally.n * figures.shares, merged.size)[:-1].astype(np.float64, copy=False)
