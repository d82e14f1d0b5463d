"""Cells of a column for its histogram: bins of numbers with cells for the bounds, categories, and missing values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp._checks.notices import are_nearly_all
from skdp._checks.numbers import day_text
from skdp._checks.table import Table
from skdp.preprocessing.cell_tree import AT_A_BOUND
from skdp.preprocessing.schema.blocks import Block
from skdp.preprocessing.schema.column import Column

OTHER, GAP, REST, LOST = "(other)", "(missing)", "(rest)", "(not estimated)"

_FEWEST, _OCTAVES = 8, 30.0
"""Fewest cells for the detection of a skewed column, and octaves below the farther bound in which some are then cut."""

_NEARLY_ALL, _MOST, _SURE = 0.98, 0.9, 5.0
"""Fractions of a column that must lie near a bound to report wide bounds, and in a small part of the range to refine
cells there; and standard deviations of noise that must be smaller than half of it."""


@dataclass(frozen=True)
class ColumnCells:
    """The cells of one column, a function of its public values.

    Attributes
    ----------
    name : str
    block : Block
    breaks : ndarray of shape (n_cells - 1,)
        For a number or a date: the smallest value of each cell except the first. Empty for categories.
    left, right : ndarray of shape (n_cells,)
        Smallest and largest value of each cell. Values at the bounds, to which values beyond are clipped, and 0 between
        them have separate cells, because many rows can have the same value there.
    middles : ndarray of shape (n_cells,)
    labels : list of str
        Labels of all cells except that of missing values, which is last.
    is_clipped : bool
        Whether the bounds are privately estimated, so that values of any size can lie beyond them.
    is_whole : bool
        Whether the type of the column has integers only.
    """

    name: str
    block: Block
    breaks: np.ndarray
    left: np.ndarray
    right: np.ndarray
    middles: np.ndarray
    labels: list[str]
    is_clipped: bool = False
    is_whole: bool = False

    @classmethod
    def of(cls, name: str, position: int, column: Column, n_bins: int, is_whole: bool) -> ColumnCells:
        """Cells of a complete column; cells of integers for an integer type."""
        block = Block(name, position, column, "bins", n_bins)
        if not block.is_line:
            labels = ["False", "True"] if column.kind == "flag" else [*(column.categories or ()), OTHER]
            return cls._of_levels(name, block, labels)
        low, high = block.edges()[[0, -1]]
        fits = max(abs(low), abs(high)) < 2.0**53 and high - low >= 1.0
        cells_of = _whole_cells if is_whole and column.kind == "number" and fits else _line_cells
        breaks, left, right = cells_of(block, n_bins)
        show: Any = day_text if column.kind == "date" else (lambda value: f"{value:.6g}")
        ends = [(show(low), show(high)) for low, high in zip(left.tolist(), right.tolist(), strict=True)]
        labels = [low if low == high else f"{low}..{high}" for low, high in ends]
        return cls(name, block, breaks, left, right, (left + right) / 2.0, labels, False, is_whole)

    @classmethod
    def _of_levels(cls, name: str, block: Block, labels: list[str]) -> ColumnCells:
        empty = np.empty(0)
        return cls(name, block, empty, empty, empty, empty, labels)

    @property
    def may_be_skewed(self) -> bool:
        """Whether cells have equal widths between public bounds, and several values each."""
        is_wide = self.is_line and len(self.widths) >= _FEWEST and bool(self.widths.max() > 0.0)
        return is_wide and self.block.column.may_be_skewed

    def holds(self, counts: np.ndarray, deviation: float, part: float, low: float, high: float) -> bool:
        """Whether the cells within these ends contain this fraction of the noisy counts, despite noise."""
        within = (self.left >= low) & (self.right <= high)
        total, room = float(counts[:-1].sum()), _SURE * deviation * math.sqrt(float(within.sum()))
        return bool(counts[:-1][within].sum() > max(part * total, 0.5 * total + room))

    def is_at_a_bound(self, counts: np.ndarray, deviation: float) -> bool:
        """Whether nearly all lies within 1/32 of one of the bounds."""
        low, high = float(self.left[0]), float(self.right[-1])
        near = (high - low) * AT_A_BOUND
        return any(self.holds(counts, deviation, _NEARLY_ALL, *end) for end in ((low, low + near), (high - near, high)))

    def is_lost(self, counts: np.ndarray, deviation: float) -> bool:
        """Whether nearly all cells of the table are missing, or unlisted categories (not of a flag), despite noise."""
        lost = float(counts[-1 - self.labels[-1:].count(OTHER) :].sum())
        return are_nearly_all(lost, float(counts.sum()), math.sqrt(2.0) * deviation)

    def refined(self, counts: np.ndarray, deviation: float) -> ColumnCells:
        """Return the same cells; or narrower ones in a sixteenth of the range, if most rows lie there by noisy counts.

        Half of them are of equal width. The others are parts of octaves, from the value there that is nearest to zero
        to both bounds. All of it is a function of released counts.
        """
        if not self.may_be_skewed:
            return self
        low, high = bounds = float(self.left[0]), float(self.right[-1])
        reach, before = 2.0 * AT_A_BOUND * (high - low), np.concatenate([[0.0], np.cumsum(counts[:-1])])
        last = np.searchsorted(self.right, self.left + reach, side="right")
        first = int((before[last] - before[:-1]).argmax())
        begin, end = float(self.left[first]), float(self.right[last[first] - 1])
        if not self.holds(counts, deviation, _MOST, begin, end):
            return self
        half, start = self.block.n_bins // 2, min(max(0.0, begin), end)
        octaves = np.outer([low - start, high - start], 2.0 ** (-_OCTAVES * np.arange(half) / half))
        edges = np.unique(np.clip([*bounds, *np.linspace(begin, end, half + 1), *(start + octaves).flat], *bounds))
        column = replace(self.block.column, edges=tuple(edges.tolist()))
        return ColumnCells.of(self.name, self.block.position, column, self.block.n_bins, self.is_whole)

    def as_lost(self) -> ColumnCells:
        """Return a single cell for all numbers or dates, because their range is unknown."""
        return self._of_levels(self.name, self.block, [LOST])

    @property
    def is_line(self) -> bool:
        """Whether the cells are those of numbers or dates whose bounds are known."""
        return len(self.left) > 0

    @property
    def ends(self) -> tuple[str, str]:
        """Both bounds as text."""
        return self.labels[0], self.labels[-1]

    @property
    def size(self) -> int:
        """Number of cells, including that of missing values, which is last."""
        return len(self.labels) + 1

    @property
    def widths(self) -> np.ndarray:
        """Width of each cell except that of missing values."""
        return self.right - self.left

    @property
    def scale(self) -> tuple[float, float]:
        """Middle between the bounds, and half of their distance."""
        low, high = float(self.left[0]), float(self.right[-1])
        return low / 2.0 + high / 2.0, high / 2.0 - low / 2.0 or 1.0  # of neighboring doubles

    def read(self, table: Table) -> np.ndarray:
        """Return numbers between the bounds with NaN for missing values, or category codes."""
        codes = self.block.codes(table.cells(self.block.position))
        if self.is_line:
            return np.clip(codes, self.left[0], self.right[-1])
        return np.isnan(codes).astype(np.int32) if self.block.is_line else codes

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Return the cell of each row, from the output of `read`."""
        if not self.is_line:
            return values.astype(np.int32, copy=False)
        cells = np.searchsorted(self.breaks, values, side="right").astype(np.int32)
        return np.where(np.isnan(values), np.int32(self.size - 1), cells)

    def scaled(self, values: np.ndarray, of_gaps: Any) -> np.ndarray:
        """Return numbers scaled to [-1, 1], and `of_gaps` for missing values."""
        middle, half = self.scale
        return np.clip(np.where(np.isnan(values), of_gaps, (values - middle) / half), -1.0, 1.0)


def _whole_cells(block: Block, n_bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of whole numbers: one for each of up to twice as many, else for runs of them, and one for each bound."""
    edges = block.edges()
    low, high = math.ceil(edges[0]), math.floor(edges[-1])
    if block.column.edges is None and block.column.scale == "linear":
        step = 1 if high - low < 2 * n_bins else math.ceil((high - low - 1) / max(1, n_bins - 2))
        inner = np.arange(low + 1, high, step, dtype=np.float64)
    else:
        inner = np.ceil(edges[1:-1])
    breaks = np.unique([*inner[(inner > low) & (inner < high)], min(low + 1.0, high), float(high)])
    left = np.concatenate([[float(low)], breaks])
    return breaks, left, np.concatenate([breaks - 1.0, [float(high)]])


def _line_cells(block: Block, n_bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells between the edges of bins, one for each bound, and one for 0 between the bounds of a number."""
    few = block if block.column.edges is not None else Block(block.name, 0, block.column, "bins", max(1, n_bins - 2))
    edges = few.edges()
    low, high = edges[0], edges[-1]
    points = [low, 0.0] if block.column.kind == "number" and low < 0.0 < high and n_bins > 2 else [low]
    above = np.nextafter(points, np.inf)
    inner = np.concatenate([edges[1:-1], points[1:], above[1:]])
    breaks = np.unique([above[0], *inner[(inner > above[0]) & (inner < high)], high])
    left = np.concatenate([[low], breaks])
    right = np.concatenate([[low], breaks[1:], [high]])
    after = np.flatnonzero(np.isin(left, above) & (left < high))  # cells that begin above a single number
    left[after] = right[after - 1] = left[after - 1]
    return breaks, left, right


@dataclass(frozen=True)
class Merged:
    """A column with merged cells; that of the missing values stays last.

    Attributes
    ----------
    places : ndarray of shape (size,)
        The merged cell of each cell, including that of the missing values.
    labels : list of str
        Labels of all merged cells except that of missing values.
    """

    places: np.ndarray
    labels: list[str]

    @property
    def size(self) -> int:
        """Number of merged cells, including that of the missing values."""
        return len(self.labels) + 1

    @classmethod
    def bins(cls, cells: ColumnCells, shares: np.ndarray, most: int) -> Merged:
        """Neighboring cells of numbers, merged to at most `most` of about equal probability."""
        before = np.cumsum(shares) - shares / 2.0
        found = np.minimum((before / max(shares.sum(), 1e-300) * most).astype(np.int64), most - 1)
        _, places = np.unique(np.maximum.accumulate(found), return_inverse=True)
        ends = [np.flatnonzero(places == k)[[0, -1]] for k in range(places[-1] + 1)]
        named = [(cells.labels[first], cells.labels[last]) for first, last in ends]
        labels = [a if a == b else f"{a.split('..')[0]}..{b.split('..')[-1]}" for a, b in named]
        return cls(np.append(places, len(labels)), labels)

    @classmethod
    def frequent(cls, cells: ColumnCells, counts: np.ndarray, least: float, most: int) -> Merged:
        """The `most` frequent categories with a count of `least` or more, and one cell for the rest."""
        order = np.argsort(-counts, kind="stable")[:most]
        kept = np.sort(order[counts[order] >= least])
        places = np.full(cells.size, len(kept))
        places[kept] = np.arange(len(kept))
        rest = [REST] if len(kept) < len(counts) else []
        labels = [*(cells.labels[k] for k in kept.tolist()), *rest]
        places[-1] = len(labels)
        return cls(places, labels)


def add_up_cells(codes: Sequence[np.ndarray], sizes: Sequence[int], values: np.ndarray | None) -> np.ndarray:
    """Return the number of rows, or the sum of their values, for each combination of cells."""
    places = np.ravel_multi_index(tuple(codes), tuple(sizes))
    return np.bincount(places, values, minlength=math.prod(sizes)).astype(np.float64, copy=False).reshape(tuple(sizes))
