"""Figures of one column from noisy sums, with intervals from the public size of the noise: post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from skdp._typing import Doubles
from skdp.evaluation.estimates import Estimate
from skdp.statistics.cells import ColumnCells
from skdp.statistics.table_release import Tally

_BIAS = 0.25
"""Of its width, by how much the mean of the numbers in a cell is off its middle: what is reckoned with."""


NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan)
"""Of what a column does not have, as a mean of words."""


class Intervals(NamedTuple):
    """What intervals are to cover.

    Attributes
    ----------
    z : float
        Standard errors on either side.
    sampling : bool
        Whether they are for the population that rows, or units, were drawn from; else for the table.
    """

    z: float
    sampling: bool

    @classmethod
    def of(cls, level: float, sampling: bool, n_figures: int = 1) -> Intervals:
        """Intervals of this level; if there are several figures, of all of them at once (Bonferroni)."""
        return cls(float(norm.isf((1.0 - level) / (2.0 * n_figures))), sampling)

    def error(self, noise: float, variance: float, n: float) -> float:
        """Return the standard error, where a row has this variance."""
        return math.hypot(noise, math.sqrt(max(variance, 0.0) / max(n, 1.0)) if self.sampling else 0.0)

    def around(self, value: float, error: float, low: float = -math.inf, high: float = math.inf) -> Estimate:
        """Return the figure, which lies between `low` and `high`."""
        least, value, most = (
            min(max(each, low), high) for each in (value - self.z * error, value, value + self.z * error)
        )
        return Estimate(value, least, most, error)


class _Part(NamedTuple):
    """An estimate, and the standard deviation of its error."""

    value: float
    error: float

    def with_other(self, other: _Part) -> _Part:
        """Return the mean of two, each weighted by its precision."""
        if not math.isfinite(other.error):
            return self
        if not math.isfinite(self.error):
            return other
        total = self.error**2 + other.error**2
        share = other.error**2 / total if total else 0.5
        return _Part(
            share * self.value + (1.0 - share) * other.value, self.error * other.error / math.sqrt(total or 1.0)
        )


_UNKNOWN = _Part(0.0, math.inf)


@dataclass(frozen=True)
class ColumnFigures:
    """What is known of a column.

    Parameters
    ----------
    cells : ColumnCells
    tally : Tally
    j : int
        Position of the column among all.
    k : int or None
        Position among the numbers whose moments were measured.
    """

    cells: ColumnCells
    tally: Tally
    j: int
    k: int | None

    @cached_property
    def shares(self) -> Doubles:
        """Probabilities of the cells, with that of the gaps last."""
        return self.tally.shares(self.j)

    @property
    def _counts(self) -> Doubles:
        """Noisy counts of the cells without that of the gaps, as unbiased as they were released."""
        return self.tally.counts[self.j][:-1]

    @property
    def n_present(self) -> float:
        """Rows without a gap, 1 or more."""
        return max(self.tally.n * (1.0 - float(self.shares[-1])), 1.0)

    def _error_of(self, factors: Doubles) -> float:
        """Standard deviation of the noise of a sum of counts times factors, one for each cell and for the gaps."""
        size = len(factors)
        spread = float((factors**2).sum() - factors.sum() ** 2 / size)
        of_total = self.tally.n_deviation * float(factors.sum()) / size
        return math.hypot(self.tally.deviation * math.sqrt(max(spread, 0.0)), of_total)

    def _error_of_cells(self, cells: slice | int) -> float:
        factors = np.zeros(self.cells.size)
        factors[cells] = 1.0
        return self._error_of(factors)

    # --- counts ---

    def count(self, intervals: Intervals) -> Estimate:
        """Rows without a gap."""
        share = float(self.shares[-1])
        error = intervals.error(
            self._error_of_cells(slice(0, -1)), share * (1.0 - share) * self.tally.n**2, self.tally.n
        )
        most = self.tally.n if self.tally.n_deviation == 0.0 else math.inf
        found = intervals.around(float(self._counts.sum()), error, 0.0, most)
        return found.at(self.tally.n * (1.0 - share))

    def share_of_gaps(self, intervals: Intervals) -> Estimate:
        """Gaps, relative to all rows."""
        share = float(self.shares[-1])
        noise = self._error_of_cells(-1) / self.tally.n
        error = intervals.error(noise, share * (1.0 - share), self.tally.n)
        found = intervals.around(float(self.tally.counts[self.j][-1]) / self.tally.n, error, 0.0, 1.0)
        return found.at(share)

    def counts_of_cells(self, intervals: Intervals) -> list[Estimate]:
        """Rows in each cell, with that of the gaps last; they add up to the number of rows."""
        n, made = self.tally.n, []
        for cell, (noisy, share) in enumerate(
            zip(self.tally.counts[self.j].tolist(), self.shares.tolist(), strict=True)
        ):
            error = intervals.error(self._error_of_cells(cell), share * (1.0 - share) * n**2, n)
            made.append(intervals.around(noisy, error, 0.0).at(n * share))
        return made

    # --- moments of numbers, scaled to [-1, 1] between the bounds ---

    @cached_property
    def _middles(self) -> Doubles:
        middle, half = self.cells.scale
        return (self.cells.middles - middle) / half

    @cached_property
    def _widths(self) -> Doubles:
        return self.cells.widths / self.cells.scale[1]

    @cached_property
    def _start(self) -> float:
        """A first mean, from the probabilities of the cells."""
        present = self.shares[:-1]
        return float(present @ self._middles / present.sum()) if present.sum() else 0.0

    @cached_property
    def _mean(self) -> _Part:
        return self._mean_of_moments.with_other(self._mean_of_counts)

    @cached_property
    def _mean_of_counts(self) -> _Part:
        from_start = self._middles - self._start
        noise = self._error_of(np.append(from_start, 0.0)) / self.n_present
        bias = _BIAS * float(self.shares[:-1] @ self._widths)
        return _Part(self._start + float(from_start @ self._counts) / self.n_present, math.hypot(noise, bias))

    @cached_property
    def _mean_of_moments(self) -> _Part:
        if self.tally.moments is None or self.k is None:
            return _UNKNOWN
        moments, row = self.tally.moments, self.k + 1
        gaps, of_gap = self.tally.n - self.n_present, float(moments.of_gaps[self.k])
        value = (float(moments.sums[0, row]) - gaps * of_gap) / self.n_present
        noise = moments.scale / (math.sqrt(2.0) * moments.weight)
        of_count = abs(value - of_gap) * self._error_of_cells(-1) + abs(value) * self.tally.n_deviation
        return _Part(value, math.hypot(noise, of_count) / self.n_present)

    @cached_property
    def variance(self) -> _Part:
        """Variance of the scaled numbers."""
        return self._variance_of_moments.with_other(self._variance_of_counts)

    @cached_property
    def mean(self) -> float:
        """Mean of the scaled numbers."""
        return min(max(self._mean.value, -1.0), 1.0)

    @cached_property
    def _variance_of_counts(self) -> _Part:
        squares = (self._middles - self.mean) ** 2 + self._widths**2 / 12.0
        noise = self._error_of(np.append(squares, 0.0)) / self.n_present
        off = 2.0 * np.abs(self._middles - self.mean) * self._widths * _BIAS + self._widths**2 / 12.0
        return _Part(float(squares @ self._counts) / self.n_present, math.hypot(noise, float(self.shares[:-1] @ off)))

    @cached_property
    def _variance_of_moments(self) -> _Part:
        if self.tally.moments is None or self.k is None:
            return _UNKNOWN
        moments, row, mean = self.tally.moments, self.k + 1, self.mean
        gaps, n = self.tally.n - self.n_present, self.tally.n
        about = float(moments.sums[row, row] - 2.0 * mean * moments.sums[0, row]) + n * mean**2
        value = (about - gaps * (float(moments.of_gaps[self.k]) - mean) ** 2) / self.n_present
        noise = moments.scale * math.sqrt(1.0 + 2.0 * (mean / moments.weight) ** 2)
        return _Part(value, math.hypot(noise, mean**2 * self.tally.n_deviation) / self.n_present)

    def fourth_moment(self) -> float:
        """Fourth moment of the scaled numbers about their mean, from the cells."""
        present = self.shares[:-1]
        return float(present @ (self._middles - self.mean) ** 4) / max(float(present.sum()), 1e-12)

    def mean_of_cells(self, intervals: Intervals) -> Estimate:
        """Mean, of numbers and dates."""
        if not self.cells.is_line:
            return NOTHING
        middle, half = self.cells.scale
        error = intervals.error(self._mean.error, self.variance.value, self.n_present)
        found = intervals.around(self._mean.value, error, -1.0, 1.0)
        value, low, high = (middle + half * each for each in found[:3])
        return Estimate(value, low, high, half * error)

    def deviation(self, intervals: Intervals) -> Estimate:
        """Standard deviation, of numbers and dates."""
        if not self.cells.is_line:
            return NOTHING
        half, (value, noise) = self.cells.scale[1], self.variance
        error = intervals.error(noise, self.fourth_moment() - max(value, 0.0) ** 2, self.n_present)
        found = intervals.around(value, error, 0.0, 1.0)
        root, low, high = (math.sqrt(each) for each in found[:3])
        return Estimate(
            half * root, half * low, half * high, half * error / (2.0 * max(root, math.sqrt(error / 2.0), 1e-300))
        )

    # --- quantiles ---

    def quantile(self, q: float, intervals: Intervals) -> Estimate:
        """The number below which a share q of the numbers lies; monotone in q.

        The interval holds all cells in which the quantile may lie by the noisy counts up to them.
        """
        if not self.cells.is_line:
            return NOTHING
        present = self.shares[:-1] / max(float(self.shares[:-1].sum()), 1e-300)
        below = np.cumsum(present)
        k = min(int(np.searchsorted(below, q - 1e-12)), len(below) - 1)
        part = (q - (below[k] - present[k])) / present[k] if present[k] > 0 else 0.5
        left, right = self.cells.left, self.cells.right
        value = float(left[k] + min(max(part, 0.0), 1.0) * (right[k] - left[k]))
        held = np.flatnonzero(self._may_hold(q, intervals))
        first, last = (held[0], held[-1]) if len(held) else (k, k)
        return Estimate(value, min(float(left[first]), value), max(float(right[last]), value), math.nan)

    def _may_hold(self, q: float, intervals: Intervals) -> Doubles:
        """Whether the quantile may lie in each cell: the share before it may be below q, with it above.

        Both are compared with noise: of a sum over the cells up to one, times 1 - q, less those after it times q.
        """
        counts, m = self._counts, len(self._counts)
        before = np.concatenate([[0.0], np.cumsum(counts)])
        above = before - q * before[-1]  # at each break
        k, size, s = np.arange(m + 1), self.cells.size, self.tally.deviation
        squares = k * (1.0 - q) ** 2 + (m - k) * q**2
        sums = k * (1.0 - q) - (m - k) * q
        noise = np.sqrt(s**2 * np.maximum(squares - sums**2 / size, 0.0) + (self.tally.n_deviation * sums / size) ** 2)
        spread = self.n_present * q * (1.0 - q) if intervals.sampling else 0.0
        room = intervals.z * np.sqrt(noise**2 + spread)
        return (above[:-1] - room[:-1] <= 0.0) & (above[1:] + room[1:] >= 0.0)


__all__ = ["NOTHING", "ColumnFigures", "Intervals"]
