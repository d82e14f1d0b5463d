"""What is released of rows with classes, and with which part of the budget."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skdp._threads import WorkerPool, single_threaded_blas
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.second_moments import sensitivity
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.class_mixture import row_sums
from skdp.synthesis.class_mixture.mixture import ClassMixture, NoisyMoments, mixture_of, shrunk_by_blocks, shrunk_mean
from skdp.synthesis.class_mixture.row_blocks import ClassRows

MEANS_ROUNDS = 3
"""Rounds of k-means."""

SHARES_OF_ONE = (0.02, 0.02, 0.08, 0.25)
"""Shares of mu**2 where each class has one component: of the mean of all rows, of counts, of the means of the classes
and of the directions. What is left is for the moments of the components."""

SHARES_OF_SEVERAL = (0.02, 0.02, 0.04, 0.10)
"""Those of the same where there are more."""

OF_ROUNDS = 0.10
"""Share of the budget that all rounds of k-means get; there are none for one component."""

CLUSTERS = row_sums.ClusterSums(math.sqrt(0.1))
MOMENTS = row_sums.GroupMoments((0.05, 0.15, 0.80))

QUANTILE, SHORTER = 0.9, 0.78
"""The ball of rows holds this part of them. That of residuals has a radius this many times the root of what is left of
its square where classes are subtracted."""

MOST_GROWTH = 2.0
"""Largest factor by which variances are raised for what was clipped."""

_TINY = 1e-300


class ClassCounts(NamedTuple):
    """Noisy weights of the classes, the radius that most rows are within, and the mean of squared distances."""

    of_classes: np.ndarray
    deviation: float
    radius: float
    mean_square: float


class _Residuals(NamedTuple):
    """The radius of the ball of residuals, and the mean of their squared norms before they are brought into it."""

    radius: float
    mean_square: float


class ClassMeasurement(NamedTuple):
    """How rows with classes are measured; all of it is public.

    Attributes
    ----------
    noise_multiplier : float
        Of one release with the whole budget.
    n_components : int
        Components of each class.
    n_directions : int
        Coordinates in which components have covariances.
    adjacency : str
    n : int
        Public number of rows, or of units.

    Notes
    -----
    **Guarantees.** What `measure` releases is no less private than one Gaussian release of `noise_multiplier`. All that
    it returns is a function of these releases and of public numbers.

    Proof. Each release is Gaussian, of a function of the rows that public numbers and earlier releases decide: the mean
    of all rows is the center of the counts; their radius that of the sums of classes; means of the classes and a radius
    those of the Gram matrix; its eigenvectors the directions; noisy centers the groups of the next round, and of the
    moments. Each sensitivity holds for every such function (`skdp.synthesis.class_mixture.row_sums`;
    `skdp.mechanisms.second_moments.sensitivity`), and each noise multiplier is fixed beforehand: that of a share s is
    `noise_multiplier` / sqrt(s). Mechanisms that are mu_i-GDP, each chosen by the outputs of those before it, compose
    to one that is GDP with the root of the sum of mu_i**2 (Dong, Roth & Su 2022, corollary 3.3). Shares sum to one, so
    this is the mu of the whole, 1 / `noise_multiplier`, and that of a Gaussian release with it.
    """

    noise_multiplier: float
    n_components: int
    n_directions: int
    adjacency: str
    n: int

    def measure(self, rows: ClassRows, n_classes: int, stream: SecretStream) -> tuple[ClassMixture, ClassCounts]:
        """Release, denoise, and make a mixture.

        Parameters
        ----------
        rows : ClassRows
            Private.
        n_classes : int
        stream : SecretStream

        Returns
        -------
        mixture : ClassMixture
        counts : ClassCounts
        """
        shares = shares_of(self.n_components)
        mean, n = self._mean(rows, shares[0], stream.spawn("mean"))
        counts = self._counts(rows, n_classes, mean, shares[1], stream.spawn("counts"))
        noisy, errors = self._shifts(rows, counts, mean, shares[2], stream.spawn("classes"))
        shifts = np.array([shrunk_mean(*each, counts.radius) for each in zip(noisy, errors, strict=True)])
        means = np.clip(mean + shifts, -0.5, 0.5)
        residuals = _residuals(counts, shifts)
        radius = residuals.radius
        values, vectors = self._directions(rows, means, radius, n, shares[3], stream.spawn("directions"))
        directions, variances = vectors[: self.n_directions], np.maximum(values[: self.n_directions], 0.0)
        points = row_sums.projected(rows, means, directions, radius)
        start = np.random.default_rng(stream.spawn("start of k-means").words(4).tolist())
        centers = _first_centers(n_classes, self.n_components, np.sqrt(variances), start)
        for t, share in enumerate(shares[4:-1]):
            centers = self._moved(centers, points, rows, share, stream.spawn("k-means", t))
        # What the clip took from the variances of all directions is given back to each of them.
        scale = radius * math.sqrt(
            np.clip(residuals.mean_square / max(radius**2 * values.sum(), _TINY), 1.0, MOST_GROWTH)
        )
        moments = self._moments(points, rows, centers, scale, shares[-1], stream.spawn("moments"))
        with single_threaded_blas():
            means = _without_noise(mean, means, noisy, errors, vectors, self.n_directions)
            return mixture_of(moments, means, directions), counts

    def _add_noise(
        self, share: float, vector: np.ndarray, most: float, stream: SecretStream
    ) -> tuple[NDArray[np.float64], float]:
        """Return a vector with the noise of a share of the budget, and the standard deviation of that noise."""
        mechanism = GaussianMechanism(self.noise_multiplier / math.sqrt(share), most)
        return mechanism.release(vector, stream), mechanism.standard_deviation

    def _mean(self, rows: ClassRows, share: float, stream: SecretStream) -> tuple[np.ndarray, float]:
        """Return the mean of all rows and the sum of their weights, which is the public n where they have none."""
        d, n = rows.shape[1], float(self.n)
        most = row_sums.sensitivity_of_total(d, self.adjacency, with_weights=rows.have_weights)
        noisy, deviation = self._add_noise(share, row_sums.total(rows), most, stream)
        if rows.have_weights:
            n = min(max(float(noisy[d]), deviation) / row_sums.weight_in_total(d), n)
        return np.clip(noisy[:d] / n, -0.5, 0.5), n

    def _counts(
        self, rows: ClassRows, n_classes: int, mean: np.ndarray, share: float, stream: SecretStream
    ) -> ClassCounts:
        exact = row_sums.counts(rows, n_classes, mean)
        most = row_sums.sensitivity_of_counts(self.adjacency)
        noisy, deviation = self._add_noise(share, exact, most, stream)
        bins = np.where(noisy[n_classes:] > 2.0 * deviation, noisy[n_classes:], 0.0)
        below, edges = np.cumsum(bins), row_sums.bin_edges(len(mean))
        if below[-1] == 0.0:
            bins, below = np.ones(len(edges)), np.arange(1.0, len(edges) + 1.0)
        radius = edges[np.searchsorted(below, QUANTILE * below[-1])]
        mean_square = bins @ edges**2 / below[-1] * 2.0 ** (-1.0 / row_sums.BINS_PER_OCTAVE)
        return ClassCounts(np.maximum(noisy[:n_classes], 0.0), deviation, float(radius), float(mean_square))

    def _shifts(
        self, rows: ClassRows, counts: ClassCounts, mean: np.ndarray, share: float, stream: SecretStream
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of the classes less that of all rows, and the deviation of the noise of each."""
        exact = row_sums.class_sums(rows, len(counts.of_classes), mean, counts.radius)
        noisy, deviation = self._add_noise(share, exact.ravel(), row_sums.SENSITIVITY_OF_MEANS, stream)
        scales = counts.radius / np.maximum(counts.of_classes, max(counts.deviation, 1.0))
        return scales[:, None] * noisy.reshape(exact.shape), scales * deviation

    def _directions(
        self, rows: ClassRows, means: np.ndarray, radius: float, n: float, share: float, stream: SecretStream
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances of the residuals along all directions, in the unit ball, and the directions as rows."""
        pool = WorkerPool()
        try:
            by_position = self.adjacency != "add_remove" and not rows.have_weights  # units may have any number of rows
            sums = row_sums.residual_moments(rows, means, radius, pool, by_position=by_position)
        finally:
            pool.close()
        noisy, _ = self._add_noise(share, sums.vector, sensitivity(0.0, self.adjacency), stream)
        with single_threaded_blas():
            values, vectors = eigh(sums.read(noisy).gram / n, lower=True)
        return values[::-1], np.ascontiguousarray(vectors.T[::-1])

    def _moved(
        self, centers: np.ndarray, points: np.ndarray, rows: ClassRows, share: float, stream: SecretStream
    ) -> np.ndarray:
        """Return the centers after a round of k-means within each class; those of few points stay where they are."""
        n_groups = centers.shape[0] * centers.shape[1]
        groups = row_sums.nearest(points, rows.codes, centers)
        exact = CLUSTERS.vector(points, groups, n_groups, rows.weights)
        noisy, deviation = self._add_noise(share, exact, CLUSTERS.sensitivity(self.adjacency), stream)
        counts, sums = CLUSTERS.read(noisy, n_groups)
        many = counts > 2.0 * deviation / CLUSTERS.weight
        moved = sums / np.where(many, counts, 1.0)[:, None]
        return np.where(many[:, None], moved, centers.reshape(n_groups, -1)).reshape(centers.shape)

    def _moments(
        self,
        points: np.ndarray,
        rows: ClassRows,
        centers: np.ndarray,
        scale: float,
        share: float,
        stream: SecretStream,
    ) -> NoisyMoments:
        """Return the moments of the components, in units in which the unit ball has this radius."""
        n_groups, k = centers.shape[0] * centers.shape[1], points.shape[1]
        exact = MOMENTS.vector(points, row_sums.nearest(points, rows.codes, centers), n_groups, rows.weights)
        noisy, deviation = self._add_noise(share, exact, MOMENTS.sensitivity(self.adjacency), stream)
        counts, sums, squares = MOMENTS.read(noisy, n_groups, k)
        shape, (a, b, c) = centers.shape[:2], np.sqrt(MOMENTS.shares)
        return NoisyMoments(
            counts.reshape(shape),
            scale * sums.reshape(*shape, k),
            scale**2 * squares.reshape(*shape, k, k),
            deviation / a,
            scale * deviation / b,
            scale**2 * deviation / c,
            scale,
        )


def shares_of(n_components: int) -> list[float]:
    """Return the shares of mu**2 of the releases, in their order."""
    first = list(SHARES_OF_ONE)
    if n_components > 1:
        first = [*SHARES_OF_SEVERAL, *[OF_ROUNDS / MEANS_ROUNDS] * MEANS_ROUNDS]
    return [*first, 1.0 - sum(first)]


def _residuals(counts: ClassCounts, shifts: np.ndarray) -> _Residuals:
    """Return how long rows less the means of their classes are, and the radius of their ball."""
    squares, weights = (shifts**2).sum(axis=1), np.maximum(counts.of_classes, 1.0)
    between = float(squares @ weights / weights.sum())
    left = max(counts.radius**2 - between, 0.1 * counts.radius**2)
    return _Residuals(SHORTER * math.sqrt(left), counts.mean_square - between)


def _without_noise(
    mean: np.ndarray, means: np.ndarray, noisy: np.ndarray, errors: np.ndarray, vectors: np.ndarray, k: int
) -> np.ndarray:
    """Return the means of the classes, shrunk in the directions beyond the first k, of which moments tell nothing.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Of all rows.
    means : ndarray of shape (C, d)
        What rows of the classes were centered by.
    noisy : ndarray of shape (C, d)
        Unbiased differences between the means of the classes and that of all rows.
    errors : ndarray of shape (C,)
        Standard deviations of their noise.
    vectors : ndarray of shape (d, d)
        Directions, as rows.
    k : int
    """
    inner, outer = vectors[:k], vectors[k:]
    parts = shrunk_by_blocks(noisy @ outer.T, errors, k)
    return np.clip(mean + ((means - mean) @ inner.T) @ inner + parts @ outer, -0.5, 0.5)


def _first_centers(n_classes: int, n_components: int, deviations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return centers in the unit ball: points of a normal law that is half as wide as that of all residuals."""
    drawn = rng.standard_normal((n_classes, n_components, len(deviations)))
    return 0.7 * drawn * deviations if n_components > 1 else np.zeros_like(drawn)
