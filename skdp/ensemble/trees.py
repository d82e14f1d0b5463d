"""Random trees from a public seed and marginal distributions, as arrays.

Random trees are grown best-first: the node with the largest expected number of rows is split next.

The expected number of rows of a node is the product of the proportions that it covers of each column, as if columns
were independent. A node picks a random column that can still be split, and then a split:

- a number or a date by a threshold in the remaining range: half of the time uniform on the scale of the schema (by
  bins, if the schema has edges), and half of the time by the marginal distribution, if it is known;
- an ordinal by a cut of the remaining levels;
- a category or a flag by a uniform proper subset of the remaining levels.

Thresholds on the scale are uniform or, half of the time, log-uniform near the lower end over 8 octaves. Missing values,
and the level "other", go to a random side at each node.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skdp._kernels.fixed_features import write_leaves
from skdp.preprocessing.schema.blocks import Block

_MOST_LEAVES = 16  # bits of a mask
_ROWS = 256  # of a block, whose masks stay in cache
_ORDER = np.uint16(0b0000111100101101)
"""A sequence of de Bruijn: moved up by 0 to 15 places, its upper four bits are each number from 0 to 15 once."""

_BIT_OF_LEAF = np.argsort([(int(_ORDER) << place & 0xFFFF) >> 12 for place in range(16)])
"""Place of the bit of each leaf in a mask: times that bit, `_ORDER` has the number of the leaf in its upper bits."""


class LeafTables:
    """Bit masks of the leaves that remain possible in each tree, for all cells of one column.

    A node keeps the leaves on one of its sides. A row ends in the only leaf that all columns keep, because any two
    leaves are separated by a node (Lucchese et al. 2015, "QuickScorer").

    Parameters
    ----------
    trees : Trees
        Trees with at most 16 leaves.
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

    def write_leaves(self, codes: list[np.ndarray], first: int, stride: int, out: np.ndarray) -> None:
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
    """Return the fastest writer of the leaves for this number of rows; all writers give the same leaves.

    Building tables takes as long as a few thousand rows. A row then costs one mask per column and tree, instead of a
    few steps per tree. Masks of 4 MB stay in the cache.
    """
    if n_rows < 8192 or trees.n_leaves > _MOST_LEAVES or len(blocks) > 64:
        return trees
    n_cells = int(trees.is_split.sum()) + sum(block.width + 2 for block in blocks)
    return trees if n_cells * trees.n_trees > 1 << 21 else LeafTables(trees, blocks)


def _thresholds(trees: Trees, j: int) -> np.ndarray:
    """Thresholds of a column of numbers, ascending."""
    found = np.unique(trees.threshold[trees.is_split & (trees.column == j)])
    return found[~np.isnan(found)]


def _cells(codes: np.ndarray, thresholds: np.ndarray | None) -> np.ndarray:
    """Number of thresholds that a number has reached, one more if missing; or the level."""
    if thresholds is None:
        return codes
    reached = np.searchsorted(thresholds, codes, side="right")
    reached[np.isnan(codes)] = len(thresholds) + 1
    return reached


def _masks(trees: Trees, j: int, below: np.ndarray, thresholds: np.ndarray | None, width: int) -> np.ndarray:
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


_OCTAVES = 8.0

_BY_RANGE = 0.5
"""Fraction of the thresholds that do not use the marginal distribution."""

_POWER = 0.4
"""Power of the marginal density that other thresholds follow: 0 is by range, 1 by quantiles.

Both were chosen on 80% of each of eight tables (`benchmarks/README.md`).
"""

_LEAST_LEVEL = 0.01
"""Added to the proportion of a level of an ordinal column, so that splits beside empty ones are possible."""


@dataclass(frozen=True)
class Split:
    """Split of the visible part of a column into the parts of both children.

    Attributes
    ----------
    left, right : SeenLine or SeenLevels
    threshold : float
        Fraction of the range between the bounds above which numbers go to the right.
    gaps_right : bool
    levels : tuple of int
        Levels that go to the right.
    """

    left: Any
    right: Any
    threshold: float = np.nan
    gaps_right: bool = False
    levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class SeenLine:
    """Visible part of a number or a date: from `low` to `high`, as fractions of the range between the bounds."""

    column: LinePeople
    low: float = 0.0
    high: float = 1.0
    has_gaps: bool = True

    @cached_property
    def share(self) -> float:
        """Expected proportion of rows."""
        return self.column.mass(self.low, self.high) + (self.column.gaps if self.has_gaps else 0.0)

    @property
    def can_split(self) -> bool:
        return self.high > self.low

    def split(self, rng: np.random.Generator) -> Split:
        cut, gaps_right = self.column.cut(rng, self.low, self.high), rng.random() < 0.5
        left = SeenLine(self.column, self.low, cut, self.has_gaps and not gaps_right)
        right = SeenLine(self.column, cut, self.high, self.has_gaps and gaps_right)
        return Split(left, right, cut, gaps_right)


class LinePeople:
    """Marginal distribution of a number or a date: proportions of equal cells and of missing values; or unknown."""

    def __init__(self, shares: np.ndarray | None) -> None:
        self._at = [0.0, 1.0]
        self._below, self._cuts, self.gaps = self._at, None, 0.0
        if shares is not None:
            cells = np.asarray(shares[:-1])
            self._at = np.linspace(0.0, 1.0, len(cells) + 1).tolist()
            self._below, self.gaps = [0.0, *np.cumsum(cells).tolist()], float(shares[-1])
            self._cuts = [0.0, *np.cumsum(cells**_POWER).tolist()]

    def mass(self, low: float, high: float) -> float:
        """Proportion of rows between two positions."""
        return _between(self._at, self._below, high) - _between(self._at, self._below, low)

    def cut(self, rng: np.random.Generator, low: float, high: float) -> float:
        """Draw a threshold between two positions, by range if no rows are expected between them."""
        if self._cuts is not None and rng.random() >= _BY_RANGE:
            first, last = _between(self._at, self._cuts, low), _between(self._at, self._cuts, high)
            cut = _between(self._cuts, self._at, first + rng.random() * (last - first))
            if low < cut < high:
                return cut
        step = rng.random() if rng.random() < 0.5 else 2.0 ** (-_OCTAVES * rng.random())
        return low + step * (high - low)


def _between(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """What is linear between points, ascending in both."""
    k = min(max(bisect.bisect_right(xs, x) - 1, 0), len(xs) - 2)
    width = xs[k + 1] - xs[k]
    return ys[k] + (ys[k + 1] - ys[k]) * ((x - xs[k]) / width if width > 0.0 else 0.0)


@dataclass(frozen=True)
class SeenLevels:
    """Visible levels of a column: those that can be split, and those that go to a random side."""

    column: LevelPeople
    split_ones: tuple[int, ...]
    strays: tuple[int, ...]

    @cached_property
    def share(self) -> float:
        """Expected proportion of rows."""
        return sum(self.column.shares[each] for each in self.split_ones + self.strays)

    @property
    def can_split(self) -> bool:
        return len(self.split_ones) > 1

    def split(self, rng: np.random.Generator) -> Split:
        goes, strays_go = self.column.sides(rng, self.split_ones), (rng.random(len(self.strays)) < 0.5).tolist()
        left, right = (
            SeenLevels(self.column, _taken(self.split_ones, goes, side), _taken(self.strays, strays_go, side))
            for side in (False, True)
        )
        return Split(left, right, levels=right.split_ones + right.strays)


def _taken(levels: tuple[int, ...], goes: list[bool], side: bool) -> tuple[int, ...]:
    """SeenLevels that go to this side, True for the right one."""
    return tuple(level for level, right in zip(levels, goes, strict=True) if right is side)


class LevelPeople:
    """Proportions of the levels; equal if nothing is known."""

    def __init__(self, shares: np.ndarray | None, width: int, n_split: int, is_ordinal: bool) -> None:
        self.is_ordinal = is_ordinal
        known = np.arange(width) < n_split if shares is None else np.asarray(shares)
        self.shares = (known / known.sum()).tolist()

    def sides(self, rng: np.random.Generator, seen: tuple[int, ...]) -> list[bool]:
        """Draw the levels that go to the right."""
        if self.is_ordinal:
            ends = list(itertools.accumulate((self.shares[each] + _LEAST_LEVEL) ** _POWER for each in seen[1:]))
            place = min(bisect.bisect_right(ends, rng.random() * ends[-1]), len(ends) - 1)
            return [k > place for k in range(len(seen))]
        goes = [False]
        while len(set(goes)) < 2:  # uniform among the subsets that split
            goes = (rng.random(len(seen)) < 0.5).tolist()
        return goes


def views_of(blocks: list[Block], shares: list[np.ndarray | None] | None) -> tuple[Any, ...]:
    """Return the visible part of each column at a root; `shares` are the marginal distributions of the columns.

    For a number or a date, they are proportions of cells of equal width and of missing values; otherwise, of the levels
    of a `Block`.
    """
    views: list[Any] = []
    for k, block in enumerate(blocks):
        known = None if shares is None else shares[k]
        if block.is_line:
            views.append(SeenLine(LinePeople(known)))
        else:
            n_split = max(block.n_listed, 2)
            column = LevelPeople(known, block.width, n_split, block.column.kind == "ordinal")
            views.append(SeenLevels(column, tuple(range(n_split)), tuple(range(n_split, block.width))))
    return tuple(views)


def grow(
    rng: np.random.Generator, root: tuple[Any, ...], n_leaves: int, max_depth: int
) -> list[tuple[int, int, Split]]:
    """Grow a tree, and return the splits: node, position of its column among the blocks, and how it is split.

    Nodes are numbered in the order in which they are made: the root is 0, the children of the k-th split are 2 k + 1
    and 2 k + 2.
    """
    splits: list[tuple[int, int, Split]] = []
    waiting = [(-1.0, 0, root, 0)]  # of a node: less its mass, its number, what it sees of each column, its depth
    while waiting and len(splits) + 1 < n_leaves:
        mass, number, views, depth = heapq.heappop(waiting)
        free = [j for j, view in enumerate(views) if view.can_split]
        if not free or depth >= max_depth:
            continue
        j = free[int(rng.random() * len(free))]
        split = views[j].split(rng)
        splits.append((number, j, split))
        for side, child in enumerate((split.left, split.right)):
            part = mass * (child.share / views[j].share if views[j].share > 0.0 else 0.0)
            seen = (*views[:j], child, *views[j + 1 :])
            heapq.heappush(waiting, (part, 2 * len(splits) - 1 + side, seen, depth + 1))
    return splits


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
        Left child; the right one follows it. Leaves and unused nodes point to themselves.
    depth : ndarray of shape (n_trees,), int32
        See `skdp._kernels.fixed_features.write_leaves`.
    leaf : ndarray of shape (n_trees, n_nodes), int32
        Indices of the leaves from the left, from 0. If nothing was left to split, the last indices are unused.
    """

    column: np.ndarray
    threshold: np.ndarray
    gaps_right: np.ndarray
    first_word: np.ndarray
    words: np.ndarray
    left: np.ndarray
    depth: np.ndarray
    leaf: np.ndarray

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.column)

    @property
    def n_leaves(self) -> int:
        """Largest number of leaves of a tree."""
        return (self.column.shape[1] + 1) // 2

    @property
    def is_split(self) -> np.ndarray:
        """Which nodes are split, of shape (n_trees, n_nodes)."""
        return self.left > np.arange(self.left.shape[1])

    def leaves_of_nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """First leaf below each node, and the leaf behind the last one, of shape (n_trees, n_nodes)."""
        first, end, tree = self.leaf.copy(), self.leaf + np.int32(1), np.arange(self.n_trees)
        for node in range(self.left.shape[1] - 1, -1, -1):  # children have higher numbers
            left, split = self.left[:, node], self.is_split[:, node]
            first[split, node] = first[tree, left][split]
            end[split, node] = end[tree[split], left[split] + 1]
        return first, end

    def write_leaves(self, codes: list[np.ndarray], first: int, stride: int, out: np.ndarray) -> None:
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
    blocks: list[Block], n_trees: int, n_leaves: int, max_depth: int, seed: int,
    shares: list[np.ndarray | None] | None = None,
) -> Trees:  # fmt: skip
    """Draw trees. The first ones do not depend on their number.

    Parameters
    ----------
    blocks : list of Block
        Public columns.
    n_trees : int
    n_leaves : int
        Maximum number of leaves of a tree.
    max_depth : int
    seed : int
        Public seed of a separate generator, which is not a source of noise.
    shares : list of (ndarray or None) or None
        Marginal distribution of each column, see ``views_of``.

    Returns
    -------
    Trees
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    shape = n_trees, 2 * n_leaves - 1
    column, first_word, leaf = (np.zeros(shape, np.int32) for _ in range(3))
    threshold, gaps_right = np.full(shape, np.nan), np.zeros(shape, np.bool_)
    left = np.tile(np.arange(shape[1], dtype=np.int32), (n_trees, 1))
    depth = np.zeros(n_trees, np.int32)
    words = [0] * max([1, *(-(-block.width // _WORD) for block in blocks if not block.is_line)])
    root = views_of(blocks, shares)
    # Grow tree after tree; levels that go to the right are bits of words.
    for t in range(n_trees):
        splits = grow(rng, root, n_leaves, max_depth)
        for k, (node, j, split) in enumerate(splits):
            column[t, node], left[t, node] = j, 2 * k + 1
            if blocks[j].is_line:
                threshold[t, node], gaps_right[t, node] = split.threshold, split.gaps_right
            else:
                first_word[t, node] = len(words)
                words += _as_words(split.levels, blocks[j].width)
        depth[t] = _number_leaves(left[t], leaf[t])
    # Shares of the range of a column become thresholds.
    for j, block in enumerate(blocks):
        if block.is_line:
            threshold[column == j] = block.line.at(threshold[column == j])  # NaN stays NaN
    return Trees(column, threshold, gaps_right, first_word, np.array(words, np.uint64), left, depth, leaf)


def _number_leaves(left: np.ndarray, leaf: np.ndarray) -> int:
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


def _as_words(levels: tuple[int, ...], n_levels: int) -> list[int]:
    """Return the bits of a set of levels, 64 a word."""
    bits = sum(1 << level for level in levels)
    return [bits >> start & (1 << _WORD) - 1 for start in range(0, n_levels, _WORD)]


# --- how much of a score each column of a table decides, from coefficients and public quantities alone ---


def importances(
    plain: list[Block], blocks: list[Block], trees: Trees, coef: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Return the importance of each block: its part of the variance of the score, of shape (n_blocks,).

    All levels of a plain column, and all leaves of a tree, have equal weight. A split into l and r of the N leaves
    contributes the variance l r (a - b)**2 / ((l + r) N), where a and b are the means of its sides. The variance due to
    noise is subtracted from each part, and negative results are set to 0.

    Parameters
    ----------
    plain, blocks : list of Block
        Blocks of the first columns of `coef`, and blocks of the trees.
    trees : Trees
    coef, noise : ndarray of shape (n_outputs, n_columns)
        Coefficients of levels and leaves, with mean zero in each block and tree, and their standard deviations due to
        noise.

    Returns
    -------
    shares : ndarray of shape (n_blocks,)
        Proportions with sum 1, or all 0.
    """
    # Of plain columns: the squares of the coefficients, less their noise.
    position = {block.position: k for k, block in enumerate(blocks)}
    parts, start = np.zeros(len(blocks)), 0
    for block in plain:
        levels = slice(start, start + block.width)
        parts[position[block.position]] += np.mean(coef[:, levels] ** 2 - noise[:, levels] ** 2, axis=1).sum()
        start += block.width
    # Of trees: what the mean coefficient differs by between the sides of each split, times the rows that come there.
    shape = len(coef), trees.n_trees, trees.n_leaves
    leaves, variance = coef[:, start:].reshape(shape), noise[:, start:].reshape(shape)[..., :1] ** 2
    variance = variance / (1.0 - 1.0 / trees.n_leaves)  # of a leaf before the projection
    first, end = trees.leaves_of_nodes()
    before = np.concatenate([np.zeros((*shape[:2], 1)), np.cumsum(leaves, axis=2)], axis=2)
    tree, node = np.nonzero(trees.is_split)
    sides = trees.left[tree, node] + np.arange(2)[:, None]
    sizes = (end - first)[tree, sides]
    means = (before[:, tree, end[tree, sides]] - before[:, tree, first[tree, sides]]) / sizes
    weight = sizes[0] * sizes[1] / (sizes.sum(axis=0) * end[tree, 0])
    noises = variance[:, tree, 0] * (1.0 / sizes[0] + 1.0 / sizes[1])
    energy = weight * ((means[:, 0] - means[:, 1]) ** 2 - noises)
    np.add.at(parts, trees.column[tree, node], energy.sum(axis=0))
    parts = np.maximum(parts, 0.0)
    total = parts.sum()
    return parts / total if total > 0.0 else parts
