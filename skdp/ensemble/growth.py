"""Growth of random trees, best-first: the node in which most people are expected is split next.

How many people a node holds is expected from the share of each column that it still sees, as if columns were
independent. A node picks, at random, a column that it can still split, and then where:

- a number or a date by a threshold in what is left of its range: half the time by range, on the scale of the schema
  (where the schema has edges, each bin counts the same), and half the time by where people are, if that is known;
- an ordinal by a cut of the levels that are left;
- a category or a flag by a subset of the levels that are left, uniform among those that are neither empty nor all.

By range is uniform or, half the time, at the low end, uniform in the logarithm over 8 octaves. Gaps, and the level
"other", go to a random side at each node.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skdp._typing import Doubles
from skdp.preprocessing.schema.blocks import Block

_OCTAVES = 8.0

_BY_RANGE = 0.5
"""Share of the thresholds that do not ask where people are."""

_POWER = 0.4
"""The other ones have a density proportional to that of people to this power: 0 is by range, 1 by quantiles.

Both were chosen on four fifths each of eight tables (`benchmarks/README.md`).
"""

_LEAST_LEVEL = 0.01
"""Added to the share of a level of an ordinal, so that cuts beside empty ones are possible."""


@dataclass(frozen=True)
class Split:
    """A split of what a node can see of a column, into what its children can see.

    Attributes
    ----------
    left, right : SeenLine or SeenLevels
    threshold : float
        Share of the way between the bounds from which on numbers go to the right.
    gaps_right : bool
    levels : tuple of int
        Those that go to the right.
    """

    left: Any
    right: Any
    threshold: float = np.nan
    gaps_right: bool = False
    levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class SeenLine:
    """What a node can see of a number or a date: from `low` to `high`, as shares of the way between the bounds."""

    column: LinePeople
    low: float = 0.0
    high: float = 1.0
    has_gaps: bool = True

    @cached_property
    def share(self) -> float:
        """Share of the people that are expected here."""
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
    """Where people are along a number or a date: shares of cells of equal width, and of gaps, the last; or nothing."""

    def __init__(self, shares: Doubles | None) -> None:
        self._at = [0.0, 1.0]
        self._below, self._cuts, self.gaps = self._at, None, 0.0
        if shares is not None:
            cells = np.asarray(shares[:-1])
            self._at = np.linspace(0.0, 1.0, len(cells) + 1).tolist()
            self._below, self.gaps = [0.0, *np.cumsum(cells).tolist()], float(shares[-1])
            self._cuts = [0.0, *np.cumsum(cells**_POWER).tolist()]

    def mass(self, low: float, high: float) -> float:
        """Share of the people between two places."""
        return _between(self._at, self._below, high) - _between(self._at, self._below, low)

    def cut(self, rng: np.random.Generator, low: float, high: float) -> float:
        """Draw a threshold between two places, by range where there is nobody between them."""
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
    """What a node can see of a column of levels: those that are split, and those that go to a random side."""

    column: LevelPeople
    split_ones: tuple[int, ...]
    strays: tuple[int, ...]

    @cached_property
    def share(self) -> float:
        """Share of the people that are expected here."""
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
    """Share of people of each level; all that are split have the same where nothing is known."""

    def __init__(self, shares: Doubles | None, width: int, n_split: int, is_ordinal: bool) -> None:
        self.is_ordinal = is_ordinal
        known = np.arange(width) < n_split if shares is None else np.asarray(shares)
        self.shares = (known / known.sum()).tolist()

    def sides(self, rng: np.random.Generator, seen: tuple[int, ...]) -> list[bool]:
        """Draw which of the levels go to the right."""
        if self.is_ordinal:
            ends = list(itertools.accumulate((self.shares[each] + _LEAST_LEVEL) ** _POWER for each in seen[1:]))
            place = min(bisect.bisect_right(ends, rng.random() * ends[-1]), len(ends) - 1)
            return [k > place for k in range(len(seen))]
        goes = [False]
        while len(set(goes)) < 2:  # uniform among the subsets that split
            goes = (rng.random(len(seen)) < 0.5).tolist()
        return goes


class Node(NamedTuple):
    """A node of a tree: what it sees of each column, and how many people are expected in it."""

    views: tuple[Any, ...]
    mass: float
    depth: int


def views_of(blocks: list[Block], shares: list[Doubles | None] | None) -> tuple[Any, ...]:
    """Return what a root sees of each column; `shares` are those of people, of each column in turn.

    Of a number or a date they are those of cells of equal width, and of gaps; of others those of `Block` levels.
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
    """Grow a tree; return the splits: node, position of its column among the blocks, and how it is split.

    Nodes are numbered in the order in which they are made: the root is 0, the children of the k-th split are 2 k + 1
    and 2 k + 2.
    """
    splits: list[tuple[int, int, Split]] = []
    waiting = [(-1.0, 0, Node(root, 1.0, 0))]
    while waiting and len(splits) + 1 < n_leaves:
        _, number, node = heapq.heappop(waiting)
        free = [j for j, view in enumerate(node.views) if view.can_split]
        if not free or node.depth >= max_depth:
            continue
        j = free[int(rng.random() * len(free))]
        view = node.views[j]
        split = view.split(rng)
        splits.append((number, j, split))
        for side, child in enumerate((split.left, split.right)):
            mass = node.mass * (child.share / view.share if view.share > 0.0 else 0.0)
            views = (*node.views[:j], child, *node.views[j + 1 :])
            heapq.heappush(waiting, (-mass, 2 * len(splits) - 1 + side, Node(views, mass, node.depth + 1)))
    return splits
