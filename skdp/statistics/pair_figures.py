"""Figures of pairs of columns from noisy sums, with intervals from the public size of the noise: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skdp.evaluation.estimates import Estimate
from skdp.statistics.cells import Merged
from skdp.statistics.column_figures import ColumnFigures, Intervals
from skdp.statistics.table_release import MomentsOfNumbers, NoisySums, NoisyTable, least_counts
from skdp.synthesis.marginals.contingency_tables import centred
from skdp.synthesis.marginals.denoising import onto_simplex


class CorrelationMatrix:
    """Pearson correlations of numbers, where a gap counts as the mean.

    Parameters
    ----------
    moments : MomentsOfNumbers
    columns : sequence of ColumnFigures
        Of the numbers, in the order of the moments.

    Attributes
    ----------
    raw : ndarray of shape (d, d)
        As the noisy moments have it.
    values : ndarray of shape (d, d)
        The same without negative eigenvalues, and with a diagonal of ones: a correlation matrix.
    """

    def __init__(self, moments: MomentsOfNumbers, columns: Sequence[ColumnFigures]) -> None:
        self._moments, n = moments, columns[0].tally.n
        self._n = n
        mean = np.array([each.moments.mean for each in columns])
        self._directions = np.column_stack([-mean, np.eye(len(columns))])
        sums = moments.sums.copy()
        sums[0, 0] = n
        about = self._directions @ sums @ self._directions.T
        noise = moments.scale * np.sqrt(1.0 + 2.0 * (mean / moments.weight) ** 2)
        own = np.array([each.moments.variance.value * each.n_present for each in columns])
        self._spread = np.maximum(own, noise)  # what is less than its noise says nothing
        self.raw = np.clip(about / np.sqrt(np.outer(self._spread, self._spread)), -1.0, 1.0)
        np.fill_diagonal(self.raw, 1.0)
        self.values = nearest_correlation(self.raw)

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


def nearest_correlation(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix without its negative eigenvalues, scaled to a diagonal of ones."""
    values, vectors = np.linalg.eigh(matrix)
    kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
    root = np.sqrt(np.maximum(np.diag(kept), np.finfo(float).tiny))
    found = np.clip(kept / np.outer(root, root), -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def positive_counts(table: NoisyTable, n: float) -> np.ndarray:
    """Return the counts of a table, projected to be nonnegative and to add up to n."""
    return n * onto_simplex(table.counts.ravel() / n).reshape(table.counts.shape)


def cramers_v(table: NoisyTable, first: ColumnFigures, second: ColumnFigures, intervals: Intervals) -> Estimate:
    """Return Cramér's V of two categories, without rows that have a gap in either, and without rare levels."""
    rows, columns = _margin(first, table.first), _margin(second, table.second)
    least = 0.5 * least_counts(first.tally.n, table.deviation)[0]  # below, noise would outweigh all else
    kept_rows, kept_columns = rows >= least, columns >= least
    a, b = int(kept_rows.sum()), int(kept_columns.sum())
    if min(a, b) < 2:
        return _UNKNOWN
    counts, n = table.counts[:-1, :-1][np.ix_(kept_rows, kept_columns)], max(float(rows.sum()), 1.0)
    expected = np.outer(rows[kept_rows], columns[kept_columns]) / n
    noise = table.deviation**2 * (1.0 - 1.0 / a) * (1.0 - 1.0 / b)
    return _root_of_squares(centred(counts - expected), 1.0 / expected, noise, n * (min(a, b) - 1), n, intervals)


def correlation_ratio(sums: NoisySums, number: ColumnFigures, levels: ColumnFigures, intervals: Intervals) -> Estimate:
    """Return the correlation ratio of a number by the levels of a category: the root of the part that they explain."""
    rows = _margin(levels, sums.levels)
    kept = rows >= 0.5 * least_counts(number.tally.n, sums.deviation)[1]
    total = float(rows.sum()) * number.moments.variance.value
    if kept.sum() < 2 or total <= 0.0:
        return _UNKNOWN
    about_mean = sums.sums[:-1][kept] - number.moments.mean * rows[kept]
    return _root_of_squares(about_mean, 1.0 / rows[kept], sums.deviation**2, total, float(rows.sum()), intervals)


_UNKNOWN = Estimate(0.0, 0.0, 1.0, math.nan)
"""Of what noise outweighs."""


def _root_of_squares(
    values: np.ndarray, weights: np.ndarray, noise: float, total: float, n: float, intervals: Intervals
) -> Estimate:
    """Return the root of the weighted sum of squares over `total`, less what noise of this variance adds to it."""
    square = float((weights * (values**2 - noise)).sum()) / total
    signal = np.maximum(values**2 - noise, 0.0)
    spread = math.sqrt(float((weights**2 * (4.0 * signal * noise + 2.0 * noise**2)).sum())) / total
    part = min(max(square, 0.0), 1.0)
    error = intervals.error(spread, 4.0 * part * (1.0 - part), n)
    found = intervals.around(square, error, 0.0, 1.0)
    root, low, high = (math.sqrt(each) for each in found[:3])
    return Estimate(root, low, high, error / (2.0 * max(root, math.sqrt(error / 2.0), 1e-300)))


def _margin(figures: ColumnFigures, merged: Merged) -> np.ndarray:
    """Counts of the merged cells of a column, without that of the gaps."""
    return np.bincount(merged.places, figures.tally.n * figures.shares, merged.size)[:-1].astype(np.float64, copy=False)
