"""Tree of random cuts whose nodes are split while their noisy counts are large, and releases of its leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skdp.mechanisms.bounded_sum import row_products
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.second_moments import MomentSum, UnitBall, sensitivity
from skdp.mechanisms.streams import SecretStream

_READ_ROWS = 2048


@dataclass(frozen=True)
class Cube:
    """Public map of columns from their bounds, of shape (d, 2), to [-1, 1]; values beyond are moved to the bounds."""

    bounds: np.ndarray

    def bring_in(self, X: np.ndarray) -> np.ndarray:
        """Map rows to the cube."""
        low, high = self.bounds.T
        values = np.clip(np.asarray(X, np.float64), low, high)
        values -= low
        values /= 0.5 * high - 0.5 * low
        values -= 1.0
        return np.clip(values, -1.0, 1.0, out=values)

    def take_out(self, values: np.ndarray) -> np.ndarray:
        """Map rows of the cube back to the units of their columns."""
        low, high = self.bounds.T
        return np.clip(low + (0.5 * high - 0.5 * low) * (values + 1.0), low, high)


@dataclass(frozen=True)
class SparseRows:
    """Sparse rows that are converted to dense rows of the cube on access, with the same result as for an array.

    Zeros need not be in the middle of the bounds, so rows of the cube are not sparse.
    """

    table: sp.csr_matrix
    cube: Cube

    def __getitem__(self, chosen: Any) -> np.ndarray:
        return self.cube.bring_in(self.table[chosen].toarray())

    def __len__(self) -> int:
        return int(self.table.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self), int(self.table.shape[1])


CubeRows = np.ndarray | SparseRows
"""Rows in the cube; a slice or an index array returns rows as an array."""


class WeightedRows(NamedTuple):
    """Private rows in the cube [-1, 1]^d, with weights in [0, 1] whose sums are exact.

    The weights of the rows of a unit add up to at most 1.
    """

    values: CubeRows
    weights: np.ndarray


class NoisyVector(NamedTuple):
    """Noisy vector, and the standard deviation of the noise of an entry."""

    value: np.ndarray
    deviation: float


@dataclass(frozen=True)
class SharedNoise:
    """Gaussian releases whose composition is one Gaussian release.

    Parameters
    ----------
    noise_multiplier : float
        Noise multiplier of one release with the whole budget.
    stream : SecretStream
        Random stream of the noise.

    Notes
    -----
    **Guarantees.** `release` adds the noise of a fraction of mu squared: its event has `noise_multiplier` divided by
    the square root of the fraction. Releases whose fractions add up to 1 compose to one release with
    `noise_multiplier`, also if they are chosen adaptively.

    Proof. Their squared mu add up (Dong, Roth & Su 2022, corollary 2).
    """

    noise_multiplier: float
    stream: SecretStream

    def release(self, share: float, vector: np.ndarray, sensitivity: float, *purpose: str | int) -> NoisyVector:
        """Add the noise of a fraction of mu squared; `purpose` names the random stream and must be unique."""
        mechanism = GaussianMechanism(self.noise_multiplier / math.sqrt(share), sensitivity)
        return NoisyVector(mechanism.release(vector, self.stream.spawn(*purpose)), mechanism.standard_deviation)


def within(offsets: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Scale vectors into the unit ball, ``v / max(radius, |v|)``, and return them with their squared norms.

    Notes
    -----
    **Guarantees.** All vectors and their squared norms are at most 1, including rounding.

    Proof. The computed norm of d numbers has a relative error of at most (d / 2 + 2) u, u = 2**-53, and a quotient one
    of u, which the radius compensates.
    """
    radius *= 1.0 + (offsets.shape[1] + 16) * 2.0**-52
    squares = row_products(offsets, offsets)
    lengths = np.sqrt(squares) * (1.0 + (offsets.shape[1] + 16) * 2.0**-52)
    longest = np.maximum(lengths, radius)
    return offsets / longest[:, None], np.minimum(squares / longest**2, 1.0)


def sums_by_group(codes: np.ndarray, n_groups: int, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sums of the rows of each group, of shape (n_groups, d)."""
    n = len(codes)
    chosen = sp.csr_array((weights, (codes, np.arange(n))), shape=(n_groups, n))
    return np.asarray(chosen @ values)


def counts_by_group(codes: np.ndarray, n_groups: int, weights: np.ndarray) -> np.ndarray:
    """Sums of the weights of each group, of shape (n_groups,)."""
    return np.bincount(codes, weights, minlength=n_groups).astype(np.float64)


def squared_distances(values: CubeRows, centers: np.ndarray) -> np.ndarray:
    """Squared distances of rows to centers, of shape (n_rows, n_centers).

    Each row is processed independently: matrix products would round differently by the position of a row.
    """
    found = np.empty((len(values), len(centers)))
    for start in range(0, len(values), _READ_ROWS):
        part = slice(start, start + _READ_ROWS)
        some = values[part]
        for j, center in enumerate(centers):
            offsets = some - center
            found[part, j] = row_products(offsets, offsets)
    return found


def nearest(values: CubeRows, centers: np.ndarray) -> np.ndarray:
    """Return the index of the nearest center of each row."""
    return squared_distances(values, centers).argmin(axis=1)


ENTRY = math.sqrt(0.225)
"""Additional entry k of a row. The release uses 30% of mu squared for the mean of rows at the corners of the cube."""

_ROWS = 4096


class RowMoments(NamedTuple):
    """Noisy moments of rows of the cube.

    Attributes
    ----------
    total : float
        Sum of the weights, at least 1.
    mean : ndarray of shape (d,)
        Mean in the cube.
    root : ndarray of shape (d, d)
        Root of the covariance: a normal vector times its transpose has this covariance.
    variance : float
        Mean squared distance of the rows to their mean.
    """

    total: float
    mean: np.ndarray
    root: np.ndarray
    variance: float


def release_moments(rows: WeightedRows, adjacency: str, most: float, releases: SharedNoise, share: float) -> RowMoments:
    """Release the sum of w z z', z = (x / sqrt(d), k) / sqrt(1 + k**2); `most` is a public bound on the sum of weights.

    Notes
    -----
    **Guarantees.** The rows are used by one Gaussian release of this fraction only.

    Proof. x / sqrt(d) is in the unit ball, so z is, and w z z' has norm at most w <= 1; z is clipped to the ball
    against rounding. Two such matrices are positive semidefinite, so their inner product is not negative, and they
    differ by at most sqrt(2). A unit of several rows adds at most an average of its rows, and both bounds hold for
    averages, because norms are convex.
    """
    d = rows.values.shape[1]
    size = 1.0 + ENTRY**2
    sums = MomentSum(UnitBall(np.zeros(d + 1), 1.0), 0.0, by_position=False)
    for start in range(0, len(rows.values), _ROWS):
        part = slice(start, start + _ROWS)
        values = rows.values[part]
        z = np.full((len(values), d + 1), ENTRY)
        np.divide(values, math.sqrt(d), out=z[:, :-1])
        z /= math.sqrt(size)
        z *= np.sqrt(rows.weights[part, None])
        sums.add(z)
    noisy = releases.release(share, sums.vector, sensitivity(0.0, adjacency), "moments")
    gram = size * sums.read(noisy.value).gram
    total = float(np.clip(gram[d, d] / ENTRY**2, max(1.0, noisy.deviation), max(most, 1.0)))
    mean = np.clip(gram[d, :d] * math.sqrt(d) / (ENTRY * total), -1.0, 1.0)
    lower = gram[:d, :d] * (d / total)
    covariance = lower + np.tril(lower, -1).T - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 0.0, float(d))
    return RowMoments(total, mean, vectors * np.sqrt(values), max(float(values.sum()), 1e-12))


COUNTS = 0.35
"""Fraction of mu squared of the tree for the counts of all levels; the sums of the leaves have the rest."""

_OF_COUNTS, _OF_SUMS = 5.0, 1.5
_OUTSIDE = -1


class Leaves(NamedTuple):
    """Leaves of a tree: their noisy means in the cube, and their positive noisy counts."""

    means: np.ndarray
    counts: np.ndarray


def n_levels(n_clusters: int) -> int:
    """Return the number of levels of a tree: enough to separate the clusters by random cuts."""
    return 2 * math.ceil(math.log2(max(n_clusters, 1))) + 4


def shares(share: float, levels: int) -> list[float]:
    """Return the fractions of mu squared for the counts of each level and for the sums of leaves."""
    return [*[share * COUNTS / levels] * levels, share * (1.0 - COUNTS)]


def grow(
    rows: WeightedRows, moments: RowMoments, levels: int, adjacency: str, releases: SharedNoise, share: float,
    coins: np.random.Generator,
) -> Leaves:  # fmt: skip
    """Grow a tree and release its leaves; the random numbers of the cuts are public.

    Notes
    -----
    **Guarantees.** The rows are used by `levels` Gaussian releases, with `COUNTS` / `levels` of the fraction each, and
    one release with the rest. A tree that ends early makes fewer.

    Proof. Cuts follow from released moments and random numbers, and splits follow from noisy counts. The nodes of a
    level are therefore disjoint sets that do not depend on the rows otherwise, and a row is in at most one of them. It
    adds its weight, at most 1, to one count of a level, and to count and sums of one leaf by `leaf_parts`. Under
    ``replace_one``, two rows change either by at most sqrt(2), and the sensitivity, half of this, is sqrt(1 / 2). Both
    are convex in the contributions of rows, so they hold for averages of rows.
    """
    of_count = count_sensitivity(adjacency)
    *of_levels, of_sums = shares(share, levels)
    d = rows.values.shape[1]
    deviation = releases.noise_multiplier * of_count / math.sqrt(of_levels[0])
    of_sum = releases.noise_multiplier * of_count / math.sqrt(of_sums * leaf_parts(adjacency, d)[1])
    floor = max(_OF_COUNTS * deviation, _OF_SUMS * math.sqrt(d) * of_sum)
    node = np.zeros(len(rows.values), np.int64)  # of each row, among the open nodes of the level
    leaf = np.full(len(rows.values), _OUTSIDE)
    shapes, found = NodeShapes(moments.mean[None], moments.root[None]), np.empty(0)
    # Cut all open nodes of a level, and release how many rows are on either side.
    for level in range(levels):
        planes = shapes.draw_planes(coins)
        inside = np.flatnonzero(node != _OUTSIDE)
        child = 2 * node[inside] + shapes.sides(planes, rows.values, inside, node[inside])
        exact = counts_by_group(child, 2 * len(shapes.means), rows.weights[inside])
        counts = releases.release(of_levels[level], exact, of_count, "level", level).value
        is_open = (counts > 2.0 * floor) & (level < levels - 1)
        is_leaf = (counts > floor) & ~is_open  # rows of smaller nodes are left out
        leaf[inside] = _numbers(is_leaf, first=len(found))[child]
        node[inside] = _numbers(is_open, first=0)[child]
        found, shapes = np.concatenate([found, counts[is_leaf]]), shapes.cut(planes, np.flatnonzero(is_open))
        if not is_open.any():
            break
    return _release_leaves(rows, leaf, NoisyVector(found, deviation), moments, adjacency, releases, of_sums)


class Planes(NamedTuple):
    """Plane through the mean of each node: normals, and the directions of both halves; all public."""

    normals: np.ndarray
    directions: np.ndarray


class NodeShapes(NamedTuple):
    """Means and covariance roots of the open nodes, as if rows were normally distributed; all public.

    The halves of a normal distribution that is cut at its mean have means sqrt(2 / pi) standard deviations away from
    it, and their variance across the cut is lower by 2 / pi of it.
    """

    means: np.ndarray
    roots: np.ndarray

    def draw_planes(self, coins: np.random.Generator) -> Planes:
        """Draw a plane for each node, with a normal drawn from the covariance: long axes are cut more often."""
        drawn = coins.standard_normal(self.means.shape)
        normals = np.einsum("kij,kj->ki", self.roots, drawn)
        directions = np.einsum("kij,ki->kj", self.roots, normals)
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
        return Planes(normals, directions)

    def sides(self, planes: Planes, values: CubeRows, chosen: np.ndarray, node: np.ndarray) -> np.ndarray:
        """Return the side, 0 or 1, of the plane of its node for each chosen row."""
        thresholds = np.einsum("ki,ki->k", planes.normals, self.means)
        heights = np.empty(len(chosen))
        for start in range(0, len(chosen), _ROWS):
            part = slice(start, start + _ROWS)
            heights[part] = row_products(values[chosen[part]], planes.normals[node[part]])
        return (heights > thresholds[node]).astype(np.int64)

    def cut(self, planes: Planes, children: np.ndarray) -> NodeShapes:
        """Return the shapes of these children, 2 c and 2 c + 1 being those of node c."""
        parent, sign = children // 2, 2.0 * (children % 2) - 1.0
        directions = planes.directions[parent]
        across = np.einsum("kij,kj->ki", self.roots[parent], directions)
        means = self.means[parent] + (math.sqrt(2.0 / math.pi) * sign)[:, None] * across
        kept = 1.0 - math.sqrt(1.0 - 2.0 / math.pi)
        return NodeShapes(means, self.roots[parent] - kept * across[:, :, None] * directions[:, None, :])


def count_sensitivity(adjacency: str) -> float:
    """Sensitivity of counts of disjoint sets: the maximum norm of the contribution of a row, or half of the change."""
    return math.sqrt(0.5) if adjacency == "replace_one" else 1.0


def _numbers(chosen: np.ndarray, first: int) -> np.ndarray:
    """Number those that are chosen from `first` on."""
    return np.where(chosen, first + np.cumsum(chosen) - 1, _OUTSIDE)


def leaf_parts(adjacency: str, d: int) -> tuple[float, float]:
    """Fractions of mu squared of leaves for counts and for sums of d columns, which add up to 1.

    Each of the 1 + d numbers of a leaf has an equal fraction; under ``replace_one``, counts have half, which does not
    increase the sensitivity.

    A row of weight w in [0, 1] adds a w to a count and b w v to a sum, v being in the unit ball, with
    a**2 + b**2 = 1: 1 at most. Two rows in different leaves change both by sqrt(2) at most, and two in one leaf by 2 b,
    or by 1 if one has the weight 0, all of it being convex in the weights. So counts as large as sums are free there.
    """
    counts = 0.5 if adjacency == "replace_one" else 1.0 / (1 + d)
    return counts, 1.0 - counts


def _release_leaves(
    rows: WeightedRows, leaf: np.ndarray, found: NoisyVector, moments: RowMoments, adjacency: str,
    releases: SharedNoise, share: float,
) -> Leaves:  # fmt: skip
    """Release counts of the leaves, which are averaged with those that were found, and sums, clipped to a radius."""
    # The exact counts and clipped sums of the leaves, from rows of any order.
    radius = 2.0 * math.sqrt(moments.variance)  # in root mean squared distances from the mean
    inside = np.flatnonzero(leaf != _OUTSIDE)
    counts = counts_by_group(leaf[inside], len(found.value), rows.weights[inside])
    sums = np.zeros((len(counts), len(moments.mean)))
    for start in range(0, len(inside), _ROWS):
        part = inside[start : start + _ROWS]
        directions, _ = within(rows.values[part] - moments.mean, radius)
        sums += sums_by_group(leaf[part], len(counts), directions, rows.weights[part])
    # One release of both; counts are pooled with those of the levels by precision.
    of_counts, of_sums = np.sqrt(leaf_parts(adjacency, len(moments.mean)))
    exact = np.concatenate([of_counts * counts, of_sums * sums.ravel()])
    noisy = releases.release(share, exact, count_sensitivity(adjacency), "leaves")
    counts = noisy.value[: len(counts)] / of_counts
    weight = found.deviation**2 / (found.deviation**2 + (noisy.deviation / of_counts) ** 2)
    counts = np.maximum(found.value + weight * (counts - found.value), found.deviation)
    means = moments.mean + radius / of_sums * noisy.value[len(counts) :].reshape(sums.shape) / counts[:, None]
    return Leaves(np.clip(means, -1.0, 1.0), counts)


STEP_RADIUS = 2.0
"""Clipping radius of the offset of a row, in root mean squared distances from its center."""

_STEP_ROWS = 8192


class Clusters(NamedTuple):
    """Centers in the cube, noisy counts of their nearest rows, and the sum of squared distances."""

    centers: np.ndarray
    counts: np.ndarray
    inertia: float


class StepParts(NamedTuple):
    """Fractions of mu squared of an iteration: counts, sums of offsets, and the sum of squared distances."""

    counts: float
    sums: float
    squares: float


def step_parts(adjacency: str) -> StepParts:
    """Fractions that add up to 1, see `step_sensitivity`."""
    return StepParts(1 / 3, 1 / 3, 1 / 3) if adjacency == "replace_one" else StepParts(0.25, 0.70, 0.05)


def step_sensitivity(adjacency: str) -> float:
    """Sensitivity of an iteration: the maximum norm of the contribution of a row, or half of the change by a new row.

    A row whose offset v is in the unit ball adds a w to a count, b w v to a sum and e w |v|**2 to another one, where
    a**2 + b**2 + e**2 = 1 and w is a weight in [0, 1]: the norm is 1 at most.

    Under ``replace_one`` a, b and e are equal. The change is convex in each of two weights, so it is largest where they
    are 0 or 1. If one is 0, the square of its norm is 3 b**2 at most. Of two rows in different clusters, with s and t
    for their squared norms, it is 2 a**2 + b**2 (s + t) + e**2 (s - t)**2, which is convex in s and t and largest at
    corners, where it is 4 b**2. Of two rows in one cluster, with p for the sum of their norms, it is at most
    b**2 p**2 + e**2 p**2 (2 - p)**2 with p <= 2, as the norms differ by 2 - p at most. That is at most 4 b**2, since
    p**2 (2 - p) <= 32 / 27 < 2 + p. The sensitivity, half of the square root, is b: sums have
    the same noise as they would have alone.
    """
    return math.sqrt(step_parts(adjacency).sums) if adjacency == "replace_one" else 1.0


def run_steps(
    rows: WeightedRows, centers: np.ndarray, radius: float, n_steps: int, adjacency: str, releases: SharedNoise,
    share: float,
) -> Clusters:  # fmt: skip
    """Move centers by noisy means of their nearest rows, `n_steps` times.

    Notes
    -----
    **Guarantees.** The rows are used by `n_steps` Gaussian releases with equal fractions.

    Proof. The nearest center of a row depends on the row and on earlier releases. Offsets are clipped to a radius from
    earlier releases, so `step_sensitivity` bounds the change by a row. Its bounds are convex in the contributions of
    rows, so they hold for averages of rows of a unit.
    """
    k, d = centers.shape
    counts, inertia, parts = np.ones(k), 0.0, step_parts(adjacency)
    for step in range(n_steps):
        exact = sum_rows(rows, centers, radius, parts)
        noisy = releases.release(share / n_steps, exact, step_sensitivity(adjacency), "step", step)
        counts, moves, square = _read(noisy, k, radius, parts)
        total = float(counts.sum())
        inertia = square * radius**2 * total
        centers = np.clip(centers + moves, -1.0, 1.0)
        # A radius falls to half of it at most in one step.
        radius = min(STEP_RADIUS * radius * math.sqrt(max(square, 2.0**-4)), 2.0 * math.sqrt(d))
    return Clusters(centers, counts, inertia)


def sum_rows(rows: WeightedRows, centers: np.ndarray, radius: float, parts: StepParts) -> np.ndarray:
    """Sums over the rows: k counts, k sums of d numbers, and the sum of squares."""
    k, d = centers.shape
    counts, sums, squares = np.zeros(k), np.zeros((k, d)), 0.0
    for start in range(0, len(rows.values), _STEP_ROWS):
        values, weights = rows.values[start : start + _STEP_ROWS], rows.weights[start : start + _STEP_ROWS]
        codes = nearest(values, centers)
        offsets, lengths = within(values - centers[codes], radius)
        counts += counts_by_group(codes, k, weights)
        sums += sums_by_group(codes, k, offsets, weights)
        squares += float(weights @ lengths)
    of_counts, of_sums, of_squares = np.sqrt(parts)
    return np.concatenate([of_counts * counts, of_sums * sums.ravel(), [of_squares * squares]])


def _read(noisy: NoisyVector, k: int, radius: float, parts: StepParts) -> tuple[np.ndarray, np.ndarray, float]:
    """Return counts, moves of the centers, shrunk by their noise, and the mean squared distance in radii."""
    of_counts, of_sums, of_squares = np.sqrt(parts)
    counts = np.maximum(noisy.value[:k] / of_counts, max(1.0, noisy.deviation / of_counts))
    sums = noisy.value[k:-1].reshape(k, -1) / of_sums
    of_noise = sums.shape[1] * noisy.deviation**2 / parts.sums  # expected squared norm of the noise of a sum
    squares = np.maximum(np.einsum("ij,ij->i", sums, sums), 1e-300)
    shrunk = np.maximum(1.0 - of_noise / squares, 0.0)[:, None]
    square = float(np.clip(noisy.value[-1] / (of_squares * counts.sum()), 0.0, 1.0))
    return counts, radius * shrunk * sums / counts[:, None], square
