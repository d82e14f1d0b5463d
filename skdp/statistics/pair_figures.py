"""Figures of pairs of columns from noisy sums, with intervals from the public size of the noise: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skdp._typing import Doubles
from skdp.statistics.column_figures import NOTHING, ColumnFigures, Intervals, NoisyFigure
from skdp.statistics.table_release import NoisyMoments, NoisyTable
from skdp.synthesis.marginals.contingency_tables import centred
from skdp.synthesis.marginals.denoising import onto_simplex


class CorrelationMatrix:
    """Pearson correlations of numbers, where a gap counts as the mean.

    Parameters
    ----------
    moments : NoisyMoments
    columns : sequence of ColumnFigures
        Of the numbers, in the order of the moments.

    Attributes
    ----------
    raw : ndarray of shape (d, d)
        As the noisy moments have it.
    values : ndarray of shape (d, d)
        The same without negative eigenvalues, and with a diagonal of ones: a correlation matrix.
    """

    def __init__(self, moments: NoisyMoments, columns: Sequence[ColumnFigures]) -> None:
        self._moments, n = moments, columns[0].tally.n
        self._n = n
        mean = np.array([each.mean for each in columns])
        self._directions = np.column_stack([-mean, np.eye(len(columns))])
        sums = moments.sums.copy()
        sums[0, 0] = n
        about = self._directions @ sums @ self._directions.T
        noise = moments.scale * np.sqrt(1.0 + 2.0 * (mean / moments.weight) ** 2)
        own = np.array([each.variance.value * each.n_present for each in columns])
        self._spread = np.maximum(own, noise)  # what is less than its noise says nothing
        self.raw = np.clip(about / np.sqrt(np.outer(self._spread, self._spread)), -1.0, 1.0)
        np.fill_diagonal(self.raw, 1.0)
        self.values = nearest_correlation(self.raw)

    def figure(self, i: int, j: int, intervals: Intervals) -> NoisyFigure:
        """Correlation of two numbers."""
        if i == j:
            return NoisyFigure(1.0, 1.0, 1.0, 0.0)
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


def nearest_correlation(matrix: Doubles) -> Doubles:
    """Return the matrix without its negative eigenvalues, scaled to a diagonal of ones."""
    values, vectors = np.linalg.eigh(matrix)
    kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
    root = np.sqrt(np.maximum(np.diag(kept), np.finfo(float).tiny))
    found = np.clip(kept / np.outer(root, root), -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def positive_counts(table: NoisyTable, n: float) -> Doubles:
    """Return the counts of a table, projected to be nonnegative and to add up to n."""
    return n * onto_simplex(table.counts.ravel() / n).reshape(table.counts.shape)


def association(table: NoisyTable, first: ColumnFigures, second: ColumnFigures, intervals: Intervals) -> NoisyFigure:
    """Return how much two columns have to do with each other, from 0 to 1; rows with a gap in either are left out.

    Of two categories it is Cramer's V; of a number and a category the correlation ratio of the number, whose values
    are taken as the means of the table's bins. The square of what noise alone adds to either is subtracted.
    """
    if first.cells.is_line and not second.cells.is_line:
        return association(
            table._replace(first=table.second, second=table.first, counts=table.counts.T), second, first, intervals
        )
    counts = table.counts[:-1, :-1]
    n = max(float(counts.sum()), 1.0)
    rows = _margin(first, table.first.places, n)
    columns = _margin(second, table.second.places, n)
    beyond = centred(counts - np.outer(rows, columns) / n)
    a, b = counts.shape
    if second.cells.is_line:
        scores = _scores(second, table.second.places)
        scores = scores - columns @ scores / n
        total = float(columns @ scores**2)
        values, weights = beyond @ scores, 1.0 / np.maximum(rows, 1.0)
        noise = table.deviation**2 * float(((scores - scores.mean()) ** 2).sum()) * (1.0 - 1.0 / a)
    else:
        total = n * (min(a, b) - 1)
        values, weights = beyond, n / np.maximum(np.outer(rows, columns), n)
        noise = table.deviation**2 * (1.0 - 1.0 / a) * (1.0 - 1.0 / b)
    if total <= 0.0 or min(a, b) < 2:
        return NOTHING._replace(value=0.0, low=0.0, high=1.0)
    square = float((weights * (values**2 - noise)).sum()) / total
    signal = np.maximum(values**2 - noise, 0.0)
    spread = math.sqrt(float((weights**2 * (4.0 * signal * noise + 2.0 * noise**2)).sum())) / total
    error = intervals.error(spread, 4.0 * max(square, 0.0) * (1.0 - min(max(square, 0.0), 1.0)), n)
    found = intervals.around(square, error, 0.0, 1.0)
    root, low, high = (math.sqrt(each) for each in found[:3])
    return NoisyFigure(root, low, high, error / (2.0 * max(root, math.sqrt(error / 2.0), 1e-300)))


def _margin(figures: ColumnFigures, places: Doubles, n: float) -> Doubles:
    """Counts of the merged cells of a column, without gaps, that add up to n."""
    found = np.bincount(places, figures.shares)[:-1]
    return n * found / max(float(found.sum()), 1e-300)


def _scores(figures: ColumnFigures, places: Doubles) -> Doubles:
    """Means of the merged cells of a number, between -1 and 1."""
    middle, half = figures.cells.scale
    middles, shares = (figures.cells.middles - middle) / half, figures.shares[:-1] + 1e-12
    return np.bincount(places[:-1], shares * middles) / np.bincount(places[:-1], shares)


__all__ = ["CorrelationMatrix", "association", "nearest_correlation", "positive_counts"]
