"""Trees drawn from a public seed and from what is known of the columns, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._kernels.trees import write_leaves
from skdp._typing import Doubles
from skdp.ensemble.growth import grow, views_of
from skdp.preprocessing.schema.blocks import Block

_WORD = 64


@dataclass(frozen=True, eq=False)
class Trees:
    """Binary trees over the columns of some blocks.

    Attributes
    ----------
    column : ndarray of shape (n_trees, n_nodes), int32
        Position of a node's column among the blocks.
    threshold : ndarray of shape (n_trees, n_nodes), float64
    gaps_right : ndarray of shape (n_trees, n_nodes), bool
    first_word : ndarray of shape (n_trees, n_nodes), int32
    words : ndarray of uint64
    left : ndarray of shape (n_trees, n_nodes), int32
        Left child; the right one follows it. A leaf, and a node that is none, is its own.
    depth : ndarray of shape (n_trees,), int32
        See `skdp._kernels.trees.write_leaves`.
    leaf : ndarray of shape (n_trees, n_nodes), int32
        Numbers of the leaves from the left, from 0 on. Where nothing was left to split, the last numbers are unused.
    """

    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    gaps_right: NDArray[np.bool_]
    first_word: NDArray[np.int32]
    words: NDArray[np.uint64]
    left: NDArray[np.int32]
    depth: NDArray[np.int32]
    leaf: NDArray[np.int32]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.column)

    @property
    def n_leaves(self) -> int:
        """Largest number of leaves of a tree."""
        return (self.column.shape[1] + 1) // 2

    @property
    def is_split(self) -> NDArray[np.bool_]:
        """Which nodes are split, of shape (n_trees, n_nodes)."""
        return self.left > np.arange(self.left.shape[1])

    def leaves_of_nodes(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """First leaf below each node, and the leaf behind the last one, of shape (n_trees, n_nodes)."""
        first, end, tree = self.leaf.copy(), self.leaf + np.int32(1), np.arange(self.n_trees)
        for node in range(self.left.shape[1] - 1, -1, -1):  # children have higher numbers
            left, split = self.left[:, node], self.is_split[:, node]
            first[split, node] = first[tree, left][split]
            end[split, node] = end[tree[split], left[split] + 1]
        return first, end

    def write_leaves(self, codes: list[NDArray[Any]], first: int, stride: int, out: NDArray[np.int32]) -> None:
        """Write ``first + t * stride`` plus the leaf, counted from the left, of each row in each tree t.

        `codes` are those of the columns (`Block.codes`): floats are numbers, integers are levels.
        """
        shape = len(codes), len(out)
        numbers, levels = np.zeros(shape), np.zeros(shape, np.int32)
        for j, each in enumerate(codes):
            (numbers if each.dtype.kind == "f" else levels)[j] = each
        nodes = self.column, self.threshold, self.gaps_right, self.first_word, self.words, self.left, self.depth
        write_leaves(numbers, levels, *nodes, self.leaf + np.int32(first), stride, out)


def draw_trees(
    blocks: list[Block],
    n_trees: int,
    n_leaves: int,
    max_depth: int,
    seed: int,
    shares: list[Doubles | None] | None = None,
) -> Trees:
    """Draw trees. The first ones are the same whatever their number.

    Parameters
    ----------
    blocks : list of Block
        Public columns.
    n_trees : int
    n_leaves : int
        Most leaves of a tree.
    max_depth : int
    seed : int
        Public: a generator of its own, and no source of noise.
    shares : list of (ndarray or None) or None
        Share of people in each cell of each column, see `skdp.ensemble.growth.views_of`.

    Returns
    -------
    Trees
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    shape = n_trees, 2 * n_leaves - 1
    column, first_word, leaf = (np.zeros(shape, np.int32) for _ in range(3))
    place, gaps_right = np.full(shape, np.nan), np.zeros(shape, np.bool_)
    left = np.tile(np.arange(shape[1], dtype=np.int32), (n_trees, 1))
    depth = np.zeros(n_trees, np.int32)
    words = [0] * max([1, *(_n_words(block.width) for block in blocks if not block.is_line)])
    root = views_of(blocks, shares)
    for t in range(n_trees):
        splits = grow(rng, root, n_leaves, max_depth)
        for k, (node, j, split) in enumerate(splits):
            column[t, node], left[t, node] = j, 2 * k + 1
            if blocks[j].is_line:
                place[t, node], gaps_right[t, node] = split.threshold, split.gaps_right
            else:
                first_word[t, node] = len(words)
                words += _as_words(split.levels, blocks[j].width)
        depth[t] = _number_leaves(left[t], leaf[t])
    threshold = place
    for j, block in enumerate(blocks):
        if block.is_line:
            threshold[column == j] = block.at(place[column == j])  # NaN stays NaN
    return Trees(column, threshold, gaps_right, first_word, np.array(words, np.uint64), left, depth, leaf)


def _number_leaves(left: NDArray[np.int32], leaf: NDArray[np.int32]) -> int:
    """Number the leaves of a tree from the left, and return the depth of the deepest."""
    waiting, n_leaves, deepest = [(0, 0)], 0, 0
    while waiting:
        node, depth = waiting.pop()
        if left[node] != node:
            waiting += [(int(left[node]) + 1, depth + 1), (int(left[node]), depth + 1)]
            continue
        leaf[node], deepest = n_leaves, max(deepest, depth)
        n_leaves += 1
    return deepest


def _n_words(n_levels: int) -> int:
    return -(-n_levels // _WORD)


def _as_words(levels: tuple[int, ...], n_levels: int) -> list[int]:
    """Return the bits of a set of levels, 64 a word."""
    bits = sum(1 << level for level in levels)
    return [bits >> start & (1 << _WORD) - 1 for start in range(0, n_levels, _WORD)]
