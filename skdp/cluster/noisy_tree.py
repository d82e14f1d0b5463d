"""A tree of random cuts, whose nodes are split while their noisy counts are large; sums of its leaves are released."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.cluster.noisy_moments import RowMoments
from skdp.cluster.rows import CubeRows, NoisyVector, SharedNoise, WeightedRows, counts_by_group, sums_by_group, within
from skdp.mechanisms.row_products import row_products

COUNTS = 0.35
"""Share of the tree's mu**2 that the counts of all levels get; the sums of the leaves get the rest."""

LEAF_RADIUS = 2.0
"""Root mean squared distances from the mean at which rows are clipped in the sums of leaves."""

_OF_COUNTS, _OF_SUMS = 5.0, 1.5
_OUTSIDE = -1
_ROWS = 4096


class Leaves(NamedTuple):
    """Leaves of a tree: their noisy means in the cube, and their noisy counts, above 0."""

    means: np.ndarray
    counts: np.ndarray


def n_levels(n_clusters: int) -> int:
    """Return the levels of a tree: enough to tell so many clusters apart by random cuts."""
    return 2 * math.ceil(math.log2(max(n_clusters, 1))) + 4


def shares(share: float, levels: int) -> list[float]:
    """Return the shares of mu**2 of the counts of each level and of the sums of leaves, of that of the tree."""
    return [*[share * COUNTS / levels] * levels, share * (1.0 - COUNTS)]


def grow(
    rows: WeightedRows,
    moments: RowMoments,
    levels: int,
    adjacency: str,
    releases: SharedNoise,
    share: float,
    coins: np.random.Generator,
) -> Leaves:
    """Grow a tree and release its leaves; the coins of the cuts are public.

    Notes
    -----
    **Guarantees.** The rows have a say by `levels` Gaussian releases, of `COUNTS` / `levels` of the share each, and one
    of the rest of it. A tree that ends early makes fewer.

    Proof. Cuts follow from moments that were released and from coins, and which nodes are split follows from noisy
    counts. So the nodes of a level are disjoint sets that earlier releases and coins decide, and a row is in one or
    none. It adds its weight, at most 1, to one count of a level, and to count and sums of one leaf by `leaf_parts`.
    Under ``replace_one`` two rows change either by sqrt(2) at most, which is priced for twice the sensitivity: that is
    sqrt(1 / 2). Both are convex in what the rows add, so they hold for averages of rows.
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
    """A plane for each node, through its mean: normals, and the directions in which both halves lie; all public."""

    normals: np.ndarray
    directions: np.ndarray


class NodeShapes(NamedTuple):
    """Where the rows of open nodes would be if all were normally distributed: public means and roots of covariances.

    The halves of a normal distribution that is cut at its mean have means sqrt(2 / pi) deviations away from it, and
    2 / pi of its variance across the cut is gone in each.
    """

    means: np.ndarray
    roots: np.ndarray

    def draw_planes(self, coins: np.random.Generator) -> Planes:
        """Draw a plane for each node, whose normal is drawn from the covariance: long axes are cut more often."""
        drawn = coins.standard_normal(self.means.shape)
        normals = np.einsum("kij,kj->ki", self.roots, drawn)
        directions = np.einsum("kij,ki->kj", self.roots, normals)
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
        return Planes(normals, directions)

    def sides(
        self, planes: Planes, values: CubeRows, chosen: NDArray[np.int64], node: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return 0 or 1 for the side of the plane of its node on which each of the chosen rows is."""
        thresholds = np.einsum("ki,ki->k", planes.normals, self.means)
        heights = np.empty(len(chosen))
        for start in range(0, len(chosen), _ROWS):
            part = slice(start, start + _ROWS)
            heights[part] = row_products(values[chosen[part]], planes.normals[node[part]])
        return (heights > thresholds[node]).astype(np.int64)

    def cut(self, planes: Planes, children: NDArray[np.int64]) -> NodeShapes:
        """Return the shapes of these children, 2 c and 2 c + 1 being those of node c."""
        parent, sign = children // 2, 2.0 * (children % 2) - 1.0
        directions = planes.directions[parent]
        across = np.einsum("kij,kj->ki", self.roots[parent], directions)
        means = self.means[parent] + (math.sqrt(2.0 / math.pi) * sign)[:, None] * across
        kept = 1.0 - math.sqrt(1.0 - 2.0 / math.pi)
        return NodeShapes(means, self.roots[parent] - kept * across[:, :, None] * directions[:, None, :])


def count_sensitivity(adjacency: str) -> float:
    """Largest norm of what one row adds to counts of disjoint sets, or half of what two rows differ by there."""
    return math.sqrt(0.5) if adjacency == "replace_one" else 1.0


def _numbers(chosen: NDArray[np.bool_], first: int) -> NDArray[np.int64]:
    """Number those that are chosen from `first` on."""
    return np.where(chosen, first + np.cumsum(chosen) - 1, _OUTSIDE)


def leaf_parts(adjacency: str, d: int) -> tuple[float, float]:
    """Parts of the mu**2 of leaves for counts and for sums of d columns, which add up to 1.

    Each of the 1 + d numbers of a leaf has an equal one; under ``replace_one`` counts have half, as that is free.

    A row of weight w in [0, 1] adds a w to a count and b w v to a sum, v being in the unit ball, with
    a**2 + b**2 = 1: 1 at most. Two rows in different leaves change both by sqrt(2) at most, and two in one leaf by 2 b,
    or by 1 if one has the weight 0, all of it being convex in the weights. So counts as large as sums are free there.
    """
    counts = 0.5 if adjacency == "replace_one" else 1.0 / (1 + d)
    return counts, 1.0 - counts


def _release_leaves(
    rows: WeightedRows,
    leaf: NDArray[np.int64],
    found: NoisyVector,
    moments: RowMoments,
    adjacency: str,
    releases: SharedNoise,
    share: float,
) -> Leaves:
    """Release counts of the leaves, which are averaged with those that were found, and sums, clipped to a radius."""
    radius = LEAF_RADIUS * math.sqrt(moments.variance)
    inside = np.flatnonzero(leaf != _OUTSIDE)
    counts = counts_by_group(leaf[inside], len(found.value), rows.weights[inside])
    sums = np.zeros((len(counts), len(moments.mean)))
    for start in range(0, len(inside), _ROWS):
        part = inside[start : start + _ROWS]
        directions, _ = within(rows.values[part] - moments.mean, radius)
        sums += sums_by_group(leaf[part], len(counts), directions, rows.weights[part])
    of_counts, of_sums = np.sqrt(leaf_parts(adjacency, len(moments.mean)))
    exact = np.concatenate([of_counts * counts, of_sums * sums.ravel()])
    noisy = releases.release(share, exact, count_sensitivity(adjacency), "leaves")
    counts = noisy.value[: len(counts)] / of_counts
    weight = found.deviation**2 / (found.deviation**2 + (noisy.deviation / of_counts) ** 2)
    counts = np.maximum(found.value + weight * (counts - found.value), found.deviation)
    means = moments.mean + radius / of_sums * noisy.value[len(counts) :].reshape(sums.shape) / counts[:, None]
    return Leaves(np.clip(means, -1.0, 1.0), counts)
