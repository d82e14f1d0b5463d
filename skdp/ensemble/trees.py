"""Trees drawn from a public schema and a public seed.

A node picks, at random, a column that it can still split, and then where:

- a number or a date by a threshold in what is left of its range: uniform, or, half the time, at its low end, uniform in
  the logarithm over 8 octaves. The range is that between the bounds, on the scale of the schema; where the schema has
  edges, each bin counts the same.
- an ordinal by a uniform cut of the levels that are left;
- a category or a flag by a subset of the levels that are left, uniform among those that are neither empty nor all.

Gaps, and the level "other", go to a random side at each node. Nodes without a column to split send all to the left.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._kernels.trees import write_leaves
from skdp.preprocessing.blocks import Block

_OCTAVES = 8.0
_WORD = 64


@dataclass(frozen=True, eq=False)
class Trees:
    """Complete binary trees of one depth, over the columns of some blocks.

    Attributes
    ----------
    column : ndarray of shape (n_trees, n_nodes), int32
        Position of a node's column among the blocks. Node k has the children 2 k + 1 and 2 k + 2.
    threshold : ndarray of shape (n_trees, n_nodes), float64
    gaps_right : ndarray of shape (n_trees, n_nodes), bool
    first_word : ndarray of shape (n_trees, n_nodes), int32
    words : ndarray of uint64
        See `skdp._kernels.trees.write_leaves`.
    """

    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    gaps_right: NDArray[np.bool_]
    first_word: NDArray[np.int32]
    words: NDArray[np.uint64]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.column)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of a tree."""
        return self.column.shape[1] + 1

    def write_leaves(self, codes: list[NDArray[Any]], first: int, stride: int, out: NDArray[np.int32]) -> None:
        """Write ``first + t * stride`` plus the leaf, counted from the left, of each row in each tree t.

        `codes` are those of the columns (`Block.codes`): floats are numbers, integers are levels.
        """
        shape = len(codes), len(out)
        numbers, levels = np.zeros(shape), np.zeros(shape, np.int32)
        for j, each in enumerate(codes):
            (numbers if each.dtype.kind == "f" else levels)[j] = each
        nodes = self.column, self.threshold, self.gaps_right, self.first_word
        write_leaves(numbers, levels, *nodes, self.words, first, stride, out)


def draw_trees(blocks: list[Block], n_trees: int, max_depth: int, seed: int) -> Trees:
    """Draw trees. The first ones are the same whatever their number.

    Parameters
    ----------
    blocks : list of Block
        Public columns.
    n_trees, max_depth : int
    seed : int
        Public: a generator of its own, and no source of noise.

    Returns
    -------
    Trees
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    shape = n_trees, 2**max_depth - 1
    column, first_word = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    share, gaps_right = np.full(shape, np.nan), np.zeros(shape, np.bool_)
    words = [0]  # of nodes that look at numbers
    whole = [(0.0, 1.0) if block.is_line else tuple(range(_n_split(block))) for block in blocks]
    for t in range(n_trees):
        views: list[list[Any]] = [whole]  # what each node can still see of each column
        for node in range(shape[1]):
            seen = views[node]
            free = [j for j, each in enumerate(seen) if len(each) > 1]
            if not free:
                views += [seen, seen]
                continue
            j = column[t, node] = free[int(rng.random() * len(free))]
            left, right = _split(rng, blocks[j], seen[j])
            if blocks[j].is_line:
                share[t, node], gaps_right[t, node] = right[0], rng.random() < 0.5
            else:
                first_word[t, node] = len(words)
                words += _as_words([*right, *_strays(rng, blocks[j])], blocks[j].width)
            views += [[*seen[:j], side, *seen[j + 1 :]] for side in (left, right)]
    threshold = share
    for j, block in enumerate(blocks):
        if block.is_line:
            threshold[column == j] = block.at(share[column == j])  # NaN stays NaN
    return Trees(column, threshold, gaps_right, first_word, np.array(words, np.uint64))


def _n_split(block: Block) -> int:
    """Levels that are split, the first ones; of a category with fewer than two, "other" is one of them, then "gap"."""
    return max(block.n_listed, 2)


def _strays(rng: np.random.Generator, block: Block) -> list[int]:
    """Those of the levels "other" and "gap" that go to the right."""
    return [level for level in range(_n_split(block), block.width) if rng.random() < 0.5]


def _split(rng: np.random.Generator, block: Block, seen: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split what a node can see of a column into what its children can see."""
    if block.is_line:
        low, high = seen
        step = rng.random() if rng.random() < 0.5 else 2.0 ** (-_OCTAVES * rng.random())
        cut = low + step * (high - low)
        return (low, cut), (cut, high)
    if block.column.kind == "ordinal":
        place = 1 + int(rng.random() * (len(seen) - 1))
        return seen[:place], seen[place:]
    goes = [False]
    while len(set(goes)) < 2:  # uniform among the subsets that split
        goes = (rng.random(len(seen)) < 0.5).tolist()
    return tuple(itertools.compress(seen, map(lambda right: not right, goes))), tuple(itertools.compress(seen, goes))


def _as_words(levels: list[int], n_levels: int) -> list[int]:
    """Return the bits of a set of levels, 64 a word."""
    bits = sum(1 << level for level in levels)
    return [bits >> start & (1 << _WORD) - 1 for start in range(0, n_levels, _WORD)]


__all__ = ["Trees", "draw_trees"]
