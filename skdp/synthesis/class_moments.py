"""Sums over rows with classes, each with its sensitivity.

The contribution of a row is multiplied by its weight v in [0, 1] after it was clipped to a box or a ball. So rows add
points of the convex hull of zero and of the contributions of a row of weight 1. The weights of all rows of a group sum
to at most 1 (`skdp.mechanisms.bounded_sum.clip_groups`), so a group adds such a point as well. The largest norm in a
convex hull, and the largest distance of two of its points, are attained at its generating points. The proofs therefore
use rows of weight 1. Under ``replace_one``, twice the result is accounted for, which is no less than the contribution
of a single row.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from skdp._kernels.threads import WorkerPool, single_threaded_blas
from skdp._kernels.tiles import ROWS
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.second_moments import MomentSum, UnitBall, sensitivity
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.class_mixture import ClassRows, NoisyMoments, RowProduct, mixture_of, shrunk_by_blocks, shrunk_mean

N_BINS, BINS_PER_OCTAVE = 64, 10
"""Bins of norms: the first ends at the longest that the bounds allow, the last but one begins at one that is 79 times
shorter, and all below is the last."""

ROUNDING = 1.0 + 2.0**-20
"""Rows are brought into a ball in float32 at least: their norms exceed its radius by less than this factor."""


COUNTED = 1.0 / 3.0
"""Factor of a weight in `total`, divided by the largest norm of a row: a tenth of the privacy cost of that release."""


def sensitivity_of_total(d: int, adjacency: str, *, with_weights: bool) -> float:
    """Return the largest contribution of a row of d columns in [-1/2, 1/2] to `total`.

    Its norm is R = sqrt(d) / 2, or R sqrt(1 + k**2) with its weight, k being `COUNTED`. Two rows have the same entry
    for the weight and differ by 2 R, which is no less than the contribution of one of them for k**2 <= 3.
    ``replace_one`` is accounted for with twice the result.
    """
    alone = not with_weights or adjacency == "replace_one"
    return math.sqrt(d) / 2.0 * (1.0 if alone else math.sqrt(1.0 + COUNTED**2))


def total(rows: ClassRows) -> np.ndarray:
    """Return the sum of the scaled rows, and where they have weights, these times a factor in one more entry."""
    found = np.zeros(d := rows.shape[1])
    for where, block in rows.residuals(np.zeros((1, d))):
        found += rows.weights[where] @ block[: where.stop - where.start, :d]
    return np.append(found, weight_in_total(d) * rows.weights.sum()) if rows.have_weights else found


def weight_in_total(d: int) -> float:
    """Return the factor of the weights of rows of d columns in `total`."""
    return COUNTED * math.sqrt(d) / 2.0


def sensitivity_of_counts(adjacency: str) -> float:
    """Return the contribution of a row to `counts`: 1 to one class and 1 to one bin.

    The norm is sqrt(2). Replacing a row changes four counts by one, a change of norm 2, for twice the result.
    """
    return 1.0 if adjacency == "replace_one" else math.sqrt(2.0)


def bin_edges(d: int) -> np.ndarray:
    """Return the upper ends of the bins of norms of d columns that are at most 1 long each."""
    return np.asarray(math.sqrt(d) * 2.0 ** ((np.arange(N_BINS) - N_BINS + 1) / BINS_PER_OCTAVE))


def counts(rows: ClassRows, n_classes: int, center: np.ndarray) -> np.ndarray:
    """Return the weights of the rows of each class, and those of rows whose distance from a center is in each bin."""
    found, edges = np.zeros(N_BINS), bin_edges(len(center))
    for where, norms in rows.norms(center[None]):
        bins = np.minimum(np.searchsorted(edges, norms), N_BINS - 1)
        found += np.bincount(bins, rows.weights[where], minlength=N_BINS)
    return np.concatenate([np.bincount(rows.codes, rows.weights, minlength=n_classes), found])


SENSITIVITY_OF_MEANS = ROUNDING
"""Contribution of a row of the unit ball to the sum of its class; two rows differ by at most twice it."""


def class_sums(rows: ClassRows, n_classes: int, center: np.ndarray, radius: float) -> np.ndarray:
    """Return the sums, of shape (n_classes, d), of rows less a center, in a ball, divided by its radius."""
    d = len(center)
    found, ball = np.zeros((n_classes, d)), UnitBall(np.zeros(d), radius)
    for where, block in rows.residuals(center[None]):
        part = block[: where.stop - where.start]
        ball.bring_in(part[:, :d], part)
        found += _chosen(rows.codes[where], n_classes, rows.weights[where]) @ part[:, :d]
    return found


def residual_moments(
    rows: ClassRows, centers: np.ndarray, radius: float, pool: WorkerPool, *, by_position: bool
) -> MomentSum:
    """Return the second moments of rows less the centers of their classes, of the ball of a radius.

    Rows with weights are multiplied by the roots of these in the unit ball, which leaves them there.
    """
    d = rows.shape[1]
    ball = UnitBall(np.zeros(d), radius)
    inner = UnitBall(np.zeros(d), 1.0) if rows.have_weights else ball
    found = MomentSum(inner, 0.0, by_position=by_position, pool=pool)
    for where, block in rows.residuals(centers):
        part = block[: where.stop - where.start, :d]
        if rows.have_weights:
            part = part.astype(np.float64)
            ball.bring_in(part, part)
            part *= np.sqrt(rows.weights[where, None])
        found.add(part)
    return found


def projected(rows: ClassRows, centers: np.ndarray, directions: np.ndarray, radius: float) -> np.ndarray:
    """Return coordinates along directions of shape (k, d), in the ball of a radius, and divided by it."""
    n, k = rows.shape[0], len(directions)
    table, found = RowProduct(directions.T, rows.dtype), np.empty((n, k), rows.dtype)
    ball = UnitBall(np.zeros(k), radius)
    for where, block in rows.residuals(centers):
        part = np.ascontiguousarray(table.multiply(block)[: where.stop - where.start])
        ball.bring_in(part, found[where])
    return found


class ClusterSums(NamedTuple):
    """Counts and sums of groups of rows in the unit ball, as a vector of (weight times count, sum) for each group.

    Attributes
    ----------
    weight : float

    Notes
    -----
    **Guarantees.** A row changes the vector by at most `sensitivity`.

    Proof. A row x is in one cluster, to which it adds (w, x), of norm at most sqrt(1 + w**2). If it is replaced by y in
    the same cluster, the change is that of the sum, at most 2; in two clusters both norms count, and the change is at
    most sqrt(2 (1 + w**2)). ``replace_one`` is accounted for with twice the result.
    """

    weight: float

    def sensitivity(self, adjacency: str) -> float:
        """Return the most that one row changes the vector by, or half of it for a row that is exchanged."""
        both = 1.0 + self.weight**2
        return ROUNDING * (max(1.0, math.sqrt(both / 2.0)) if adjacency == "replace_one" else math.sqrt(both))

    def vector(self, points: np.ndarray, groups: np.ndarray, n_groups: int, weights: np.ndarray) -> np.ndarray:
        """Return the vector of points of shape (n, k)."""
        found = np.empty((n_groups, 1 + points.shape[1]))
        found[:, 0] = self.weight * np.bincount(groups, weights, minlength=n_groups)
        found[:, 1:] = _chosen(groups, n_groups, weights) @ points
        return found.ravel()

    def read(self, released: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
        """Return counts and sums."""
        table = released.reshape(n_groups, -1)
        return table[:, 0] / self.weight, table[:, 1:]


class GroupMoments(NamedTuple):
    """Counts, sums and second moments of groups of rows in the unit ball, as one vector.

    Attributes
    ----------
    shares : tuple of float
        Of counts, sums and second moments in the squared norm of what a row adds; together 1.

    Notes
    -----
    **Guarantees.** A row changes the vector by at most `sensitivity`, but for the rounding of float64 sums.

    Proof. Let a, b and c be the roots of the shares. A row x is in one group, where it adds (a, b x, c x x'), with
    second moments in Frobenius norm: at most 1 for \\|x\\| <= 1. Exchanged for a row of another group, both count, and
    the change is at most sqrt(2). Exchanged for one of the same group, counts do not change, and the rest changes by at
    most sqrt(2) (c + b**2 / (2 c)) (`skdp.decomposition.DPPCA`, with w = b / c and b**2 <= 2 c**2). ``replace_one`` is
    accounted for at twice the result. `skdp.mechanisms.second_moments.MomentSum` has the rounding of rows that are
    brought into the ball.
    """

    shares: tuple[float, float, float]

    def sensitivity(self, adjacency: str) -> float:
        """Return the most that one row changes the vector by, or half of it for a row that is exchanged."""
        if adjacency != "replace_one":
            return ROUNDING
        _, of_sums, of_moments = self.shares
        within = math.sqrt(of_moments) + of_sums / (2.0 * math.sqrt(of_moments))
        return ROUNDING * max(1.0, within) / math.sqrt(2.0)

    def vector(self, points: np.ndarray, groups: np.ndarray, n_groups: int, weights: np.ndarray) -> np.ndarray:
        """Return the vector of points of shape (n, k)."""
        a, b, c = np.sqrt(self.shares)
        order, parts = np.argsort(groups, kind="stable"), []
        totals = _chosen(groups, n_groups, weights) @ points
        counted, ends = np.bincount(groups, weights, n_groups), np.cumsum(np.bincount(groups, minlength=n_groups))
        for g, size in enumerate(np.diff(ends, prepend=0)):
            own, sums = order[ends[g] - size : ends[g]], self._sums(points.shape[1])
            sums.add(points[own].astype(np.float64) * np.sqrt(weights[own, None]))
            parts += [[a * counted[g]], c * sums.vector, b * totals[g]]
        return np.concatenate(parts)

    def read(self, released: np.ndarray, n_groups: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return counts, of shape (n_groups,), sums, of shape (n_groups, k), and symmetric second moments."""
        a, b, c = np.sqrt(self.shares)
        table, sums = released.reshape(n_groups, -1), self._sums(k)
        lower = [sums.read(row[1:-k] / c).gram for row in table]
        squares = np.array([each + np.tril(each, -1).T for each in lower])
        return table[:, 0] / a, table[:, -k:] / b, squares

    def _sums(self, k: int) -> MomentSum:
        """Rows of a group move up where one leaves, so they are summed in float64."""
        return MomentSum(UnitBall(np.zeros(k), 1.0), 0.0, by_position=False)


def nearest(points: np.ndarray, codes: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the group of each point: that of the nearest of the K centers of its class, of shape (C, K, k)."""
    n_classes, n_centers, _ = centers.shape
    found = np.zeros(len(points), np.int64)
    if n_centers == 1:
        return codes.copy()
    halves = 0.5 * (centers.astype(np.float64) ** 2).sum(axis=2)
    for c in range(n_classes):
        where = np.flatnonzero(codes == c)
        part = np.zeros((-(-len(where) // ROWS) * ROWS, points.shape[1]), points.dtype)
        part[: len(where)] = points[where]
        scores = RowProduct(centers[c].T, points.dtype).multiply(part)[: len(where)] - halves[c]
        found[where] = c * n_centers + scores.argmax(axis=1)
    return found


def _chosen(groups: np.ndarray, n_groups: int, weights: np.ndarray) -> sp.csr_array:
    """Return the matrix that adds up weighted rows by groups."""
    places = np.arange(len(groups))
    return sp.csr_array((weights, (groups, places)), shape=(n_groups, len(groups)))


MEANS_ROUNDS = 3
"""Rounds of k-means."""

SHARES_OF_ONE = (0.02, 0.02, 0.08, 0.25)
"""Shares of mu**2 where each class has one component: of the mean of all rows, of counts, of the means of the classes
and of the directions. What is left is for the moments of the components."""

SHARES_OF_SEVERAL = (0.02, 0.02, 0.04, 0.10)
"""Those of the same where there are more."""

CLUSTERS = ClusterSums(math.sqrt(0.1))
MOMENTS = GroupMoments((0.05, 0.15, 0.80))

QUANTILE, SHORTER = 0.9, 0.78
"""The ball of rows holds this part of them. That of residuals has a radius this many times the root of what is left of
its square where classes are subtracted."""


class ClassCounts(NamedTuple):
    """Noisy weights of the classes, the radius that contains most rows, and the mean of squared distances."""

    of_classes: np.ndarray
    deviation: float
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
        Public number of rows, or of groups.

    Notes
    -----
    **Guarantees.** The releases of `measure` have at most the privacy cost of one Gaussian release of
    `noise_multiplier`. Its result is a function of these releases and of public numbers.

    Proof. Each release is Gaussian, of a function of the rows that public numbers and earlier releases determine: the
    mean of all rows is the center of the counts; their radius that of the sums of classes; means of the classes and a
    radius those of the Gram matrix; its eigenvectors the directions; noisy centers the clusters of the next round, and
    of the moments. Each sensitivity holds for every such function (`skdp.synthesis.class_moments`;
    `skdp.mechanisms.second_moments.sensitivity`), and each noise multiplier is fixed beforehand: that of a fraction s
    is `noise_multiplier` / sqrt(s). Mechanisms that are mu_i-GDP, each chosen by the outputs of those before it,
    compose to one that is GDP with the root of the sum of mu_i**2 (Dong, Roth & Su 2022, corollary 3.3). The fractions
    sum to one, so this is the mu of the whole, 1 / `noise_multiplier`, and that of a Gaussian release with it.
    """

    noise_multiplier: float
    n_components: int
    n_directions: int
    adjacency: str
    n: int

    def measure(self, rows: ClassRows, n_classes: int, stream: SecretStream) -> tuple[Any, ClassCounts]:
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
        # Mean of all rows, lengths, and means of the classes.
        mean, n = self._mean(rows, shares[0], stream.spawn("mean"))
        counts = self._counts(rows, n_classes, mean, shares[1], stream.spawn("counts"))
        noisy, errors = self._shifts(rows, counts, mean, shares[2], stream.spawn("classes"))
        shifts = np.array([shrunk_mean(*each, counts.radius) for each in zip(noisy, errors, strict=True)])
        means = np.clip(mean + shifts, -0.5, 0.5)
        # How long rows less the means of their classes are, and the radius of their ball.
        class_weights = np.maximum(counts.of_classes, 1.0)
        between = float((shifts**2).sum(axis=1) @ class_weights / class_weights.sum())
        radius = SHORTER * math.sqrt(max(counts.radius**2 - between, 0.1 * counts.radius**2))
        values, vectors = self._directions(rows, means, radius, n, shares[3], stream.spawn("directions"))
        # Coordinates along the directions of the largest variances, and rounds of k-means in these.
        directions, variances = vectors[: self.n_directions], np.maximum(values[: self.n_directions], 0.0)
        points = projected(rows, means, directions, radius)
        # The first centers are points of a normal distribution that is narrower than that of all residuals.
        start = np.random.default_rng(stream.spawn("start of k-means").words(4).tolist())
        drawn = start.standard_normal((n_classes, self.n_components, len(variances)))
        centers = 0.7 * drawn * np.sqrt(variances) if self.n_components > 1 else np.zeros_like(drawn)
        for t, share in enumerate(shares[4:-1]):
            centers = self._moved(centers, points, rows, share, stream.spawn("k-means", t))
        # The variance that clipping removed from all directions is added back to each of them.
        growth = (counts.mean_square - between) / max(radius**2 * values.sum(), 1e-300)
        scale = radius * math.sqrt(np.clip(growth, 1.0, 2.0))
        moments = self._moments(points, rows, centers, scale, shares[-1], stream.spawn("moments"))
        with single_threaded_blas():
            means = _without_noise(mean, means, noisy, errors, vectors, self.n_directions)
            return mixture_of(moments, means, directions), counts

    def _add_noise(
        self, share: float, vector: np.ndarray, most: float, stream: SecretStream
    ) -> tuple[np.ndarray, float]:
        """Return a vector with the noise of a fraction of the budget, and the standard deviation of that noise."""
        mechanism = GaussianMechanism(self.noise_multiplier / math.sqrt(share), most)
        return mechanism.release(vector, stream), mechanism.standard_deviation

    def _mean(self, rows: ClassRows, share: float, stream: SecretStream) -> tuple[np.ndarray, float]:
        """Return the mean of all rows and the sum of their weights, which is the public n where they have none."""
        d, n = rows.shape[1], float(self.n)
        most = sensitivity_of_total(d, self.adjacency, with_weights=rows.have_weights)
        noisy, deviation = self._add_noise(share, total(rows), most, stream)
        if rows.have_weights:
            n = min(max(float(noisy[d]), deviation) / weight_in_total(d), n)
        return np.clip(noisy[:d] / n, -0.5, 0.5), n

    def _counts(
        self, rows: ClassRows, n_classes: int, mean: np.ndarray, share: float, stream: SecretStream
    ) -> ClassCounts:
        exact = counts(rows, n_classes, mean)
        most = sensitivity_of_counts(self.adjacency)
        noisy, deviation = self._add_noise(share, exact, most, stream)
        bins = np.where(noisy[n_classes:] > 2.0 * deviation, noisy[n_classes:], 0.0)
        below, edges = np.cumsum(bins), bin_edges(len(mean))
        if below[-1] == 0.0:
            bins, below = np.ones(len(edges)), np.arange(1.0, len(edges) + 1.0)
        radius = edges[np.searchsorted(below, QUANTILE * below[-1])]
        mean_square = bins @ edges**2 / below[-1] * 2.0 ** (-1.0 / BINS_PER_OCTAVE)
        return ClassCounts(np.maximum(noisy[:n_classes], 0.0), deviation, float(radius), float(mean_square))

    def _shifts(
        self, rows: ClassRows, counts: ClassCounts, mean: np.ndarray, share: float, stream: SecretStream
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of the classes less that of all rows, and the deviation of the noise of each."""
        exact = class_sums(rows, len(counts.of_classes), mean, counts.radius)
        noisy, deviation = self._add_noise(share, exact.ravel(), SENSITIVITY_OF_MEANS, stream)
        scales = counts.radius / np.maximum(counts.of_classes, max(counts.deviation, 1.0))
        return scales[:, None] * noisy.reshape(exact.shape), scales * deviation

    def _directions(
        self, rows: ClassRows, means: np.ndarray, radius: float, n: float, share: float, stream: SecretStream
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances of the residuals along all directions, in the unit ball, and the directions as rows."""
        pool = WorkerPool()
        try:
            by_position = self.adjacency != "add_remove" and not rows.have_weights  # units may have any number of rows
            sums = residual_moments(rows, means, radius, pool, by_position=by_position)
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
        groups = nearest(points, rows.codes, centers)
        exact = CLUSTERS.vector(points, groups, n_groups, rows.weights)
        noisy, deviation = self._add_noise(share, exact, CLUSTERS.sensitivity(self.adjacency), stream)
        counts, sums = CLUSTERS.read(noisy, n_groups)
        many = counts > 2.0 * deviation / CLUSTERS.weight
        moved = sums / np.where(many, counts, 1.0)[:, None]
        return np.where(many[:, None], moved, centers.reshape(n_groups, -1)).reshape(centers.shape)

    def _moments(
        self, points: np.ndarray, rows: ClassRows, centers: np.ndarray, scale: float, share: float, stream: SecretStream
    ) -> NoisyMoments:
        """Return the moments of the components, in units in which the unit ball has this radius."""
        n_groups, k = centers.shape[0] * centers.shape[1], points.shape[1]
        exact = MOMENTS.vector(points, nearest(points, rows.codes, centers), n_groups, rows.weights)
        noisy, deviation = self._add_noise(share, exact, MOMENTS.sensitivity(self.adjacency), stream)
        counts, sums, squares = MOMENTS.read(noisy, n_groups, k)
        shape, (a, b, c) = centers.shape[:2], np.sqrt(MOMENTS.shares)
        noise = deviation / a, scale * deviation / b, scale**2 * deviation / c
        sums, squares = scale * sums.reshape(*shape, k), scale**2 * squares.reshape(*shape, k, k)
        return NoisyMoments(counts.reshape(shape), sums, squares, *noise, scale)


def shares_of(n_components: int) -> list[float]:
    """Return the shares of mu**2 of the releases, in their order."""
    first = list(SHARES_OF_ONE)
    if n_components > 1:
        first = [*SHARES_OF_SEVERAL, *[0.10 / MEANS_ROUNDS] * MEANS_ROUNDS]  # a tenth for all rounds of k-means
    return [*first, 1.0 - sum(first)]


def _without_noise(
    mean: np.ndarray, means: np.ndarray, noisy: np.ndarray, errors: np.ndarray, vectors: np.ndarray, k: int
) -> np.ndarray:
    """Return the class means, shrunk in the directions beyond the first k, for which there are no moments.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Of all rows.
    means : ndarray of shape (C, d)
        Centers of the rows of the classes.
    noisy : ndarray of shape (C, d)
        Unbiased differences between the class means and the mean of all rows.
    errors : ndarray of shape (C,)
        Standard deviations of their noise.
    vectors : ndarray of shape (d, d)
        Directions, as rows.
    k : int
    """
    inner, outer = vectors[:k], vectors[k:]
    parts = shrunk_by_blocks(noisy @ outer.T, errors, k)
    return np.clip(mean + ((means - mean) @ inner.T) @ inner + parts @ outer, -0.5, 0.5)
