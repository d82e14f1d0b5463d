"""Leaves of many rows in trees of few leaves, by a table for each column instead of a walk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.ensemble.trees import Trees
from skdp.preprocessing.schema.blocks import Block

_MOST_LEAVES = 16  # bits of a mask
_MOST_MASKS = 1 << 21  # 4 MB, which stay near
_MOST_COLUMNS = 64  # a row costs a mask for each column and tree, and a walk some steps for each tree
_FEWEST_ROWS = 8192  # tables take as long as some thousand rows
_ROWS = 256  # of a block, whose masks stay in cache
_ORDER = np.uint16(0b0000111100101101)
"""A sequence of de Bruijn: moved up by 0 to 15 places, its upper four bits are each number from 0 to 15 once."""

_BIT_OF_LEAF = np.argsort([(int(_ORDER) << place & 0xFFFF) >> 12 for place in range(16)])
"""Place of the bit of each leaf in a mask: times that bit, `_ORDER` has the number of the leaf in its upper bits."""


class LeafTables:
    """What the cell of one column leaves open in each tree, for all cells: one bit a leaf.

    A node leaves the leaves on one of its sides. A row ends in the one leaf that all columns leave, as any two leaves
    are parted by a node (Lucchese et al. 2015, "QuickScorer", in which nodes take leaves from one side alone).

    Parameters
    ----------
    trees : Trees
        Of at most 16 leaves.
    blocks : list of Block
        Columns of the trees.
    """

    def __init__(self, trees: Trees, blocks: list[Block]) -> None:
        self._thresholds = [_thresholds(trees, j) if block.is_line else None for j, block in enumerate(blocks)]
        first, end = trees.leaves_of_nodes()
        before = np.cumsum([0, *np.left_shift(1, _BIT_OF_LEAF)])  # the leaves on the left of each, as a mask
        below = (before[end] - before[first]).astype(np.uint16)
        self._all = below[:, 0]
        self._masks = [
            _masks(trees, j, below, found, block.width)
            for j, (block, found) in enumerate(zip(blocks, self._thresholds, strict=True))
        ]

    def write_leaves(self, codes: list[NDArray[Any]], first: int, stride: int, out: NDArray[Any]) -> None:
        cells = [_cells(each, found) for each, found in zip(codes, self._thresholds, strict=True)]
        shift = (first + np.arange(len(self._all)) * stride).astype(out.dtype)
        open_ = np.empty((_ROWS, len(self._all)), np.uint16)
        more = np.empty_like(open_)
        for start in range(0, len(out), _ROWS):
            part = out[start : start + _ROWS]
            left, other = open_[: len(part)], more[: len(part)]
            left[:] = self._all
            for each, masks in zip(cells, self._masks, strict=True):
                np.take(masks, each[start : start + _ROWS], axis=0, out=other, mode="clip")
                left &= other
            left *= _ORDER  # of the only bit that is left
            left >>= 12
            np.add(left, shift, out=part)


def leaf_writer(trees: Trees, blocks: list[Block], n_rows: int) -> Trees | LeafTables:
    """Return what writes the leaves of so many rows soonest; the leaves are the same."""
    if n_rows < _FEWEST_ROWS or trees.n_leaves > _MOST_LEAVES or len(blocks) > _MOST_COLUMNS:
        return trees
    n_cells = int(trees.is_split.sum()) + sum(block.width + 2 for block in blocks)
    return trees if n_cells * trees.n_trees > _MOST_MASKS else LeafTables(trees, blocks)


def _thresholds(trees: Trees, j: int) -> NDArray[np.float64]:
    """Thresholds of a column of numbers, ascending."""
    found = np.unique(trees.threshold[trees.is_split & (trees.column == j)])
    return found[~np.isnan(found)]


def _cells(codes: NDArray[Any], thresholds: NDArray[np.float64] | None) -> NDArray[Any]:
    """How many thresholds a number has reached, one more for a gap; or the level."""
    if thresholds is None:
        return codes
    reached = np.searchsorted(thresholds, codes, side="right")
    reached[np.isnan(codes)] = len(thresholds) + 1
    return reached


def _masks(
    trees: Trees, j: int, below: NDArray[np.uint16], thresholds: NDArray[np.float64] | None, width: int
) -> NDArray[np.uint16]:
    """What each cell of a column leaves open in each tree, of shape (n_cells, n_trees)."""
    tree, node = np.nonzero(trees.is_split & (trees.column == j))  # tree after tree
    if thresholds is None:
        levels = np.arange(width)
        words = trees.words[trees.first_word[tree, node] + (levels[:, None] >> 6)]
        right = (words >> (levels[:, None] & 63).astype(np.uint64) & np.uint64(1)).astype(np.bool_)
    else:
        cut = trees.threshold[tree, node]
        reached = np.append(thresholds, np.nan)  # cell k + 1 has reached number k
        right = np.vstack([np.zeros((1, len(cut)), np.bool_), reached[:, None] >= cut])
        right[-1] = trees.gaps_right[tree, node]
    left = trees.left[tree, node]
    kept = np.where(right, ~below[tree, left], ~below[tree, left + 1])
    masks = np.full((len(right), trees.n_trees), 0xFFFF, np.uint16)
    starts = np.searchsorted(tree, np.arange(trees.n_trees + 1))
    has_node = starts[:-1] < starts[1:]
    if has_node.any():
        masks[:, has_node] = np.bitwise_and.reduceat(kept, starts[:-1][has_node], axis=1)
    return masks
