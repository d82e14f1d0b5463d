"""How soon trees that read no row isolate what falls into their leaves, from noisy counts; and who is in the leaves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._typing import Doubles
from skdp.ensemble.trees import Trees
from skdp.preprocessing.schema.blocks import Block

_TINY = 1e-300
_PASSES, _POWER = 3, 0.2  # tried on the first tables of benchmarks/bench_outliers.py


def average_path_length(counts: Any) -> Doubles:
    """Return the mean path length of an unsuccessful search in a binary search tree of so many rows, 0 below 1.

    Liu, Ting & Zhou (2008), "Isolation forest", equation 1, and as in scikit-learn 0 for one row and 1 for two. Noisy
    counts are no whole numbers: it is linear between these, and no less than 1 beyond.
    """
    counts = np.asarray(counts, np.float64)
    many = np.maximum(counts, 2.0)
    formula = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(counts > 2.0, np.maximum(formula, 1.0), np.clip(counts - 1.0, 0.0, 1.0))


def path_lengths(trees: Trees, counts: Doubles) -> Doubles:
    """Return depths of leaves, and what isolates one of so many rows in each of them, of shape (n_trees, n_leaves)."""
    depth, is_split = np.zeros(trees.left.shape), trees.is_split
    for node in range(trees.left.shape[1]):  # children have higher numbers
        tree = np.flatnonzero(is_split[:, node])
        left = trees.left[tree, node]
        depth[tree, left] = depth[tree, left + 1] = depth[tree, node] + 1.0
    found = np.zeros(counts.shape)
    at = np.nonzero(~is_split & is_node(trees))
    found[at[0], trees.leaf[at]] = depth[at]
    return found + average_path_length(counts)


def is_node(trees: Trees) -> NDArray[np.bool_]:
    """Which nodes are in their trees, of shape (n_trees, n_nodes): they are numbered without gaps."""
    n_nodes = 2 * trees.is_split.sum(axis=1, keepdims=True) + 1
    return np.asarray(np.arange(trees.left.shape[1]) < n_nodes)


def is_leaf(trees: Trees) -> NDArray[np.bool_]:
    """Which numbers of leaves are in use, of shape (n_trees, n_leaves)."""
    n_leaves = trees.is_split.sum(axis=1, keepdims=True) + 1
    return np.asarray(np.arange(trees.n_leaves) < n_leaves)


class Boxes(NamedTuple):
    """Parts of the space of the columns: of a line what is between two shares of its range, of others some levels.

    Gaps of lines are left out.
    """

    low: Doubles
    high: Doubles
    levels: NDArray[np.bool_]

    @classmethod
    def whole(cls, blocks: list[Block], n: int) -> Boxes:
        """All of the space, n times."""
        widths = np.array([0 if block.is_line else block.width for block in blocks])
        levels = np.arange(widths.max()) < widths[:, None]
        shape = n, len(blocks)
        return cls(np.zeros(shape), np.ones(shape), np.tile(levels, (n, 1, 1)))

    def cut(self, box: Any, column: Any, of: Boxes, node: Any) -> None:
        """Keep in some boxes what some others have of a column."""
        self.low[box, column] = np.maximum(self.low[box, column], of.low[node, column])
        self.high[box, column] = np.minimum(self.high[box, column], of.high[node, column])
        self.levels[box, column] &= of.levels[node, column]

    def part(self, box: Any, column: Any, of: Boxes, node: Any) -> Doubles:
        """Return which part of a column, as some other boxes have it, some boxes have."""
        low, high = of.low[node, column], of.high[node, column]
        shared = np.minimum(self.high[box, column], high) - np.maximum(self.low[box, column], low)
        on_line = np.maximum(shared, 0.0) / np.maximum(high - low, _TINY)
        levels = of.levels[node, column]
        n_shared = (self.levels[box, column] & levels).sum(axis=1)
        return np.where(levels.any(axis=1), n_shared / np.maximum(levels.sum(axis=1), 1), on_line)


def draw_leaves(
    trees: Trees, blocks: list[Block], counts: Doubles, n: int, coins: np.random.Generator
) -> NDArray[np.int32]:
    """Draw leaves, in all trees at once, of people who are spread like noisy counts, of shape (n, n_trees).

    Counts say how many are in each leaf, tree by tree, and not who. So n boxes are the whole space first, and walk down
    the trees in a random order. At a node that parts a box, one side of it is drawn and kept. Its probability grows
    with the count of that side, and with the part of it that the box still has, as if people were spread evenly there.
    All is drawn from noisy counts, public trees and coins.
    """
    boxes, found = Boxes.whole(blocks, n), np.zeros((n, trees.n_trees), np.int32)
    masses, places = _masses(trees, counts), _places(trees, blocks)
    for t in coins.permutation(trees.n_trees).tolist():
        seen, node = _boxes_of_nodes(trees, blocks, t, places[t]), np.zeros(n, np.int64)
        for _ in range(int(trees.depth[t])):
            box = np.flatnonzero(trees.is_split[t, node])
            column, left = trees.column[t, node[box]], trees.left[t, node[box]].astype(np.int64)
            parts = [boxes.part(box, column, seen, left + side) for side in (0, 1)]
            # a count of nobody leaves the part to decide
            at_left, at_right = (part * (masses[t, left + side] + _TINY) for side, part in enumerate(parts))
            goes_right = coins.random(len(box)) * (at_left + at_right) >= at_left
            goes_right &= at_right > 0.0
            node[box] = left + goes_right
            boxes.cut(box, column, seen, node[box])
        found[:, t] = trees.leaf[t, node]
    return found


def weigh(leaves: NDArray[np.int32], counts: Doubles, deviation: float) -> Doubles:
    """Return weights of people in these leaves, by which noisy counts say how many are there; they sum to 1.

    Weights are multiplied, tree by tree, by a power of the quotient of noisy and weighted counts (multiplicative
    weights: Hardt, Ligett & McSherry 2012). `deviation` is that of the noise of a count.
    """
    weights = np.full(len(leaves), 1.0 / len(leaves))
    total, noisy = max(float(counts.sum(axis=1).mean()), deviation), np.maximum(counts, 0.0) + deviation
    for _ in range(_PASSES):
        for t in range(len(counts)):
            weighted = total * np.bincount(leaves[:, t], weights, minlength=counts.shape[1]) + deviation
            weights *= (noisy[t] / weighted)[leaves[:, t]] ** _POWER
            weights /= weights.sum()
    return weights


def _masses(trees: Trees, counts: Doubles) -> Doubles:
    """Sums of the counts of the leaves below each node, of shape (n_trees, n_nodes), 0 where noise is below that."""
    first, end = trees.leaves_of_nodes()
    below = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    before, up_to = (np.take_along_axis(below, each.astype(np.int64), 1) for each in (first, end))
    return np.maximum(up_to - before, 0.0)


def _places(trees: Trees, blocks: list[Block]) -> Doubles:
    """Return thresholds as shares of the ranges of their columns, of shape (n_trees, n_nodes)."""
    places = np.zeros(trees.threshold.shape)
    for j, block in enumerate(blocks):
        if block.is_line:
            here = trees.is_split & (trees.column == j)
            places[here] = block.share_at(trees.threshold[here])
    return places


def _boxes_of_nodes(trees: Trees, blocks: list[Block], t: int, places: Doubles) -> Boxes:
    """Return what each node of a tree sees, of nodes that are in it."""
    seen = Boxes.whole(blocks, trees.left.shape[1])
    levels = np.arange(seen.levels.shape[2])
    for node in np.flatnonzero(trees.is_split[t]).tolist():
        j, left = int(trees.column[t, node]), int(trees.left[t, node])
        for each in seen:
            each[left] = each[left + 1] = each[node]
        if blocks[j].is_line:
            seen.high[left, j] = seen.low[left + 1, j] = places[node]
        else:
            words = trees.words[trees.first_word[t, node] + np.minimum(levels, blocks[j].width - 1) // 64]
            right = (words >> (levels % 64).astype(np.uint64) & np.uint64(1)).astype(np.bool_)
            seen.levels[left, j] &= ~right
            seen.levels[left + 1, j] &= right
    return seen
