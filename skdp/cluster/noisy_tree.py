"""A tree of random cuts, whose nodes are split while their noisy counts are large; sums of its leaves are released."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._typing import Doubles
from skdp.cluster.noisy_moments import RowMoments
from skdp.cluster.rows import SharedNoise, WeightedRows, counts_by_group, sums_by_group, within

COUNTS = 0.35
"""Share of the tree's mu**2 that the counts of all levels get; the sums of the leaves get the rest."""

LEAF_RADIUS = 2.0
"""Root mean squared distances from the mean at which rows are clipped in the sums of leaves."""

_OF_COUNTS, _OF_SUMS = 5.0, 1.5
_OUTSIDE = -1
_ROWS = 4096


class Leaves(NamedTuple):
    """Leaves of a tree: their noisy means in the cube, and their noisy counts, above 0."""

    means: Doubles
    counts: Doubles


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
    none. It adds its weight, at most 1, to one count, and that times a vector in the unit ball to the sums of one leaf.
    Under ``replace_one`` two rows change counts by sqrt(2) at most, and sums by 2, which is priced for twice the
    sensitivity: that is sqrt(1 / 2) and 1. Both are convex in what the rows add, so they hold for averages of rows.
    """
    of_count = count_sensitivity(adjacency)
    *of_levels, of_sums = shares(share, levels)
    d = rows.values.shape[1]
    deviation = releases.noise_multiplier * of_count / math.sqrt(of_levels[0])
    of_sum = releases.noise_multiplier / math.sqrt(of_sums)
    floor = max(_OF_COUNTS * deviation, _OF_SUMS * math.sqrt(d) * of_sum)
    node = np.zeros(len(rows.values), np.int64)  # of each row, among the open nodes of the level
    leaf = np.full(len(rows.values), _OUTSIDE)
    shapes, found = NodeShapes(moments.mean[None], moments.root[None]), np.empty(0)
    for level in range(levels):
        planes = shapes.draw_planes(coins)
        inside = np.flatnonzero(node != _OUTSIDE)
        child = 2 * node[inside] + shapes.sides(planes, rows.values[inside], node[inside])
        exact = counts_by_group(child, 2 * len(shapes.means), rows.weights[inside])
        counts = releases.release(of_levels[level], exact, of_count, "level", level).value
        is_open = (counts > 2.0 * floor) & (level < levels - 1)
        is_leaf = (counts > floor) & ~is_open  # rows of smaller nodes are left out
        leaf[inside] = _numbers(is_leaf, first=len(found))[child]
        node[inside] = _numbers(is_open, first=0)[child]
        found, shapes = np.concatenate([found, counts[is_leaf]]), shapes.cut(planes, np.flatnonzero(is_open))
        if not is_open.any():
            break
    means = _release_means(rows, leaf, found, moments, releases, of_sums)
    return Leaves(means, found)


class Planes(NamedTuple):
    """A plane for each node, through its mean: normals, and the directions in which both halves lie; all public."""

    normals: Doubles
    directions: Doubles


class NodeShapes(NamedTuple):
    """Where the rows of open nodes would be if all were normally distributed: public means and roots of covariances.

    The halves of a normal distribution that is cut at its mean have means sqrt(2 / pi) deviations away from it, and
    2 / pi of its variance across the cut is gone in each.
    """

    means: Doubles
    roots: Doubles

    def draw_planes(self, coins: np.random.Generator) -> Planes:
        """Draw a plane for each node, whose normal is drawn from the covariance: long axes are cut more often."""
        drawn = coins.standard_normal(self.means.shape)
        normals = np.einsum("kij,kj->ki", self.roots, drawn)
        directions = np.einsum("kij,ki->kj", self.roots, normals)
        directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
        return Planes(normals, directions)

    def sides(self, planes: Planes, values: Doubles, node: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return 0 or 1 for the side of the plane of its node on which each row is."""
        thresholds = np.einsum("ki,ki->k", planes.normals, self.means)
        heights = np.empty(len(values))
        for start in range(0, len(values), _ROWS):
            part = slice(start, start + _ROWS)
            heights[part] = np.einsum("ij,ij->i", values[part], planes.normals[node[part]])
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


def _release_means(
    rows: WeightedRows,
    leaf: NDArray[np.int64],
    counts: Doubles,
    moments: RowMoments,
    releases: SharedNoise,
    share: float,
) -> Doubles:
    """Release the sums of the leaves about the mean, clipped to a radius, and divide them by counts."""
    radius = LEAF_RADIUS * math.sqrt(moments.variance)
    inside = np.flatnonzero(leaf != _OUTSIDE)
    directions, _ = within(rows.values[inside] - moments.mean, radius)
    exact = sums_by_group(leaf[inside], len(counts), directions, rows.weights[inside])
    noisy = releases.release(share, exact, 1.0, "leaves").value
    return np.clip(moments.mean + radius * noisy / counts[:, None], -1.0, 1.0)


__all__ = ["Leaves", "count_sensitivity", "grow", "n_levels", "shares"]
