"""Levels of columns by a public schema: bins, categories, a level for all others and one for missing values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.numbers import format_names, reject_not_finite
from skdp._checks.table import CellValues
from skdp.preprocessing.column_estimates import listed
from skdp.preprocessing.schema.blocks import Block, Combination

Ends = tuple[float, float]

EVERYWHERE: Ends = (-math.inf, math.inf)

CELLS_OF_A_BIN = 32
"""Number of cells of a bin; fewer if it has fewer integers."""
LEAST_DIFFERENCE = 1.0
"""Smallest squared ratio to its noise for which a difference between halves is kept."""


LEAST_WIDTH = 1e-9
"""Fraction of a bin of its narrowest cells: zero alone is close to none of it."""
_AFTER_ZERO = float(np.nextafter(0.0, 1.0))


class BinShapes(NamedTuple):
    """Cells of the bins of one column.

    Attributes
    ----------
    edges : ndarray of shape (n_cells + 1,)
        Ends of the cells, among them all ends of bins.
    bins : ndarray of shape (n_cells,)
        The bin of each cell.
    widths : ndarray of shape (n_cells,)
        Fraction of its bin that each cell would contain with a uniform distribution. They sum to one in each bin.
    shares : ndarray of shape (n_cells,)
        Fraction of its bin that each cell contains, in the same way.
    """

    edges: np.ndarray
    bins: np.ndarray
    widths: np.ndarray
    shares: np.ndarray

    @classmethod
    def between(cls, edges: np.ndarray, cuts: np.ndarray, whole: bool) -> BinShapes:
        """Return bins with these ends, cut there; for integers at the next of them. All of it is public.

        Zero has its own cell, because many columns have more zeros than other values.
        """
        cuts = np.concatenate([cuts, [0.0, _AFTER_ZERO]])
        cuts = np.ceil(cuts) if whole else cuts
        ends = np.unique(np.concatenate([edges, cuts[(cuts > edges[0]) & (cuts < edges[-1])]]))
        bins = np.searchsorted(edges[1:-1], ends[:-1], side="right")
        held = np.ceil(ends[:-1]) < np.append(ends[1:-1], np.inf)  # which cells have a whole number
        widths = np.where(held, whole_numbers(ends)[1], 0.0) if whole else np.diff(ends)
        of_bins = np.bincount(bins, widths)[bins]
        widths = np.where(of_bins > 0, np.maximum(widths, LEAST_WIDTH * of_bins), 1.0)
        widths /= np.bincount(bins, widths)[bins]
        return cls(ends, bins, widths, widths)

    def read(self, numbers: np.ndarray) -> np.ndarray:
        """Return the cell of each number; one more than there are for a missing value, which is NaN."""
        cells = np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.int32)
        return np.where(np.isnan(numbers), np.int32(len(self.bins)), cells)

    def fitted(self, noisy: np.ndarray, deviation: float) -> BinShapes:
        """Return fractions from noisy counts of the cells and the standard deviation of their noise.

        Bins are halved, and halves again. The fraction in the first half is that of a uniform distribution plus the
        observed difference, shrunk by Breiman's garrote: a difference within the noise becomes zero.
        """
        shares = self.widths.copy()
        for each in np.split(np.arange(len(self.bins)), np.flatnonzero(np.diff(self.bins)) + 1):
            shares[each] = _halved(noisy[each], self.widths[each], deviation)
        return self._replace(shares=shares)

    def draw(self, bins: np.ndarray, whole: bool, rng: np.random.Generator, ends: Ends) -> np.ndarray:
        """Return a number within both ends for each bin."""
        share, cells = rng.random(len(bins)), self._cells(bins, self._within(ends, whole), rng)
        if whole:
            low, count = whole_numbers(self.edges, ends)
            return low[cells] + np.minimum(np.floor(share * count[cells]), np.maximum(count[cells] - 1.0, 0.0))
        start, end = np.clip(self.edges[:-1], *ends)[cells], np.clip(self.edges[1:], *ends)[cells]
        return np.where(self._are_single[cells], self.edges[cells], start + share * (end - start))

    def shares_within(self, ends: Ends, whole: bool) -> np.ndarray:
        """Return the fraction of the numbers of each bin within both ends."""
        return np.bincount(self.bins, self.shares * self._within(ends, whole)).astype(np.float64, copy=False)

    @property
    def _are_single(self) -> np.ndarray:
        """Which cells hold zero alone."""
        return (self.edges[:-1] == 0.0) & (self.edges[1:] == _AFTER_ZERO)

    def _within(self, ends: Ends, whole: bool) -> np.ndarray:
        """Return the fraction of each cell within both ends."""
        if whole:
            return whole_numbers(self.edges, ends)[1] / whole_numbers(self.edges)[1]
        kept = np.diff(np.clip(self.edges, *ends)) / np.diff(self.edges)
        return np.where(self._are_single, float(ends[0] <= 0.0 <= ends[1]), kept)

    def _cells(self, bins: np.ndarray, within: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a cell for each bin, if numbers of each cell are kept with a probability of `within`."""
        weights = self.shares * within
        weights = np.where(np.bincount(self.bins, weights)[self.bins] > 0, weights, self.widths)  # never asked for
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        first = np.searchsorted(self.bins, np.arange(self.bins[-1] + 1))
        last = np.append(first[1:], len(self.bins))
        places = ends[first[bins]] + rng.random(len(bins)) * (ends[last[bins]] - ends[first[bins]])
        found = np.searchsorted(ends, places, side="right") - 1
        return np.clip(found, first[bins], last[bins] - 1)


def _halved(noisy: np.ndarray, widths: np.ndarray, deviation: float) -> np.ndarray:
    if len(noisy) == 1:
        return np.ones(1)
    half = len(noisy) // 2
    even, total = float(widths[:half].sum() / (widths.sum() or 1.0)), float(noisy.sum())
    variance = deviation**2 * (half * (1.0 - even) ** 2 + (len(noisy) - half) * even**2)
    moved = float(noisy[:half].sum()) - even * total
    share = even
    if 0.0 < even < 1.0 and total > deviation * math.sqrt(len(noisy)) and moved**2 > LEAST_DIFFERENCE * variance:
        share = min(max(even + moved * (1.0 - LEAST_DIFFERENCE * variance / moved**2) / total, 0.0), 1.0)
    first, last = (_halved(noisy[part], widths[part], deviation) for part in (slice(half), slice(half, None)))
    return np.concatenate([share * first, (1.0 - share) * last])


def whole_numbers(edges: np.ndarray, ends: Ends = EVERYWHERE) -> tuple[np.ndarray, np.ndarray]:
    """Return the first integer of each bin, and their number: any of [low, high), the last bin closed.

    The nearest integer if there is none. Bins beyond the ends have 0.
    """
    low = np.ceil(edges[:-1])
    last = np.ceil(edges[1:]) - 1.0
    last[-1] = math.floor(edges[-1])
    nearest = np.rint((edges[:-1] + edges[1:]) / 2.0)
    empty = last < low
    low = np.maximum(np.where(empty, nearest, low), np.ceil(ends[0]))
    last = np.minimum(np.where(empty, nearest, last), np.floor(ends[1]))
    return low, np.maximum(last - low + 1.0, 0.0)


WITHIN_BINS = ("auto", "uniform", "middle")


class LevelColumn(NamedTuple):
    """One column: its bins or categories, one more level for unlisted categories, and one for missing values.

    Attributes
    ----------
    block : Block
        The public column, as `skdp.preprocessing.DPTableVectorizer` reads it.
    other : str or None
        Key of the cell that represents unlisted categories; None if they are rejected.
    shapes : BinShapes or None
        Distribution of numbers within bins: uniform if None.
    """

    block: Block
    other: str | None
    shapes: BinShapes | None = None

    @property
    def n_listed(self) -> int:
        """Bins, categories, or the two truth values."""
        return len(self.block.edges()) - 1 if self.block.is_line else self.block.n_listed

    @property
    def n_cells(self) -> int:
        """Number of cells of numbers within bins, and that of missing values."""
        return 0 if self.shapes is None else len(self.shapes.bins) + int(self.has_gaps)

    @property
    def has_gaps(self) -> bool:
        """Whether the schema permits missing values."""
        return bool(self.block.column.missing_values)

    @property
    def n_levels(self) -> int:
        """All levels: the listed ones, that of other categories, and that of missing values, in this order."""
        return self.n_listed + int(self._adds_other) + int(self.has_gaps)

    @property
    def _adds_other(self) -> bool:
        """Whether other categories have a separate level, and not that of a listed one."""
        return self.other is not None and self.other not in (self.block.column.categories or ())

    def read(self, cells: CellValues) -> np.ndarray:
        """Return the level of each cell. Missing values and categories outside of the schema are rejected."""
        codes, name = self.block.codes(cells), format_names([self.block.name])
        if self.block.is_line:
            if bool(np.isinf(codes).any()):
                reject_not_finite("X", nan=False, where=f" in column {name}")
            codes = next(self.block.entries(codes))[0]
        n, gap = self.n_listed, self.n_levels - 1
        # Of a block the level "other" comes after the listed ones, but for flags and lines, and "gap" after that.
        of_gap = n if self.block.is_line or self.block.column.kind == "flag" else n + 1
        if of_gap > n and self.other is None and bool((codes == n).any()):
            raise ValueError(
                f"Column {name} has categories that the schema does not list. List all of them, or set "
                f"other={{{name}: 'other'}} to merge the others."
            )
        if of_gap > n and self.other is not None and not self._adds_other:
            codes = np.where(codes == n, (self.block.column.categories or ()).index(self.other), codes)
        gaps = codes == of_gap
        if not self.has_gaps and bool(gaps.any()):
            raise ValueError(
                f"Input X contains NaN or unreadable cells in column {name}, for which its schema declares no missing "
                f"values. Set {{{name}: {{..., 'missing_values': [None]}}}}, or impute them."
                + " Set the 'format' of dates that are not ISO strings."
                * (self.block.column.kind == "date")
            )
        return np.where(gaps, gap, codes).astype(np.int32)

    def cut(self, whole: bool) -> LevelColumn:
        """Return a column of numbers with cells within its bins, in which numbers are uniform."""
        n_cells = CELLS_OF_A_BIN * self.n_listed
        cuts = self.block.line.at(np.arange(1, n_cells) / n_cells)
        return self._replace(shapes=BinShapes.between(self.block.edges(), cuts, whole))

    def excluded_by(self, condition: tuple[Any, ...]) -> np.ndarray:
        """Return the levels that meet a condition of an impossible combination: categories, or bins within a range."""
        met = np.zeros(self.n_levels, bool)
        if self.block.is_line:
            edges, (low, high) = self.block.edges(), condition
            rounding = 1e-9 * np.diff(edges)  # edges of equal bins are computed
            met[: self.n_listed] = (edges[:-1] >= low - rounding) & (edges[1:] <= high + rounding)
        elif self.block.column.kind == "flag":
            met[:2] = [str(truth) in condition for truth in (False, True)]
        else:
            met[: self.n_listed] = [key in condition for key in self.block.column.categories or ()]
        return met

    # --- levels to values ---

    def write(
        self, levels: np.ndarray, within: str, whole: bool, rng: np.random.Generator, ends: Ends = EVERYWHERE
    ) -> tuple[np.ndarray, Any]:
        """Return values and whether they are missing: doubles, days for dates, truth values, or indices of `keys`.

        Numbers of bins that reach beyond `ends` lie within them.
        """
        gaps = levels == self.n_levels - 1 if self.has_gaps else np.zeros(len(levels), bool)
        if not self.block.is_line:
            return levels, gaps
        places = np.minimum(levels, self.n_listed - 1)
        if self.shapes is not None and within == "auto":
            return self.shapes.draw(places, whole, rng, ends), gaps
        share = rng.random(len(levels)) if within != "middle" else np.full(len(levels), 0.5)
        if whole:
            low, count = whole_numbers(self.block.edges(), ends if within != "middle" else EVERYWHERE)
            return low[places] + np.minimum(np.floor(share * count[places]), count[places] - 1.0), gaps
        start, end = self._parts(ends if within != "middle" else EVERYWHERE)
        made = self.block.line.at((places + start[places] + share * (end - start)[places]) / self.n_listed)
        return np.clip(made, *ends), gaps

    def shares_within(self, ends: Ends, within: str, whole: bool) -> np.ndarray:
        """Return the fraction of the numbers of each bin that `write` places within both ends; 0 for missing values."""
        found = np.zeros(self.n_levels)
        if within == "middle":
            middle, _ = self.write(np.arange(self.n_listed, dtype=np.int32), within, whole, np.random.default_rng(0))
            found[: self.n_listed] = (middle >= ends[0]) & (middle <= ends[1])
        elif self.shapes is not None and within == "auto":
            found[: self.n_listed] = self.shapes.shares_within(ends, whole)
        elif whole:
            edges = self.block.edges()
            found[: self.n_listed] = whole_numbers(edges, ends)[1] / whole_numbers(edges)[1]
        else:
            start, end = self._parts(ends)
            found[: self.n_listed] = end - start
        return found

    def _parts(self, ends: Ends) -> tuple[np.ndarray, np.ndarray]:
        """Return from where to where each bin lies within both ends, in parts of its width."""
        low, high = self.n_listed * self.block.line.share_at(np.clip(ends, *self.block.edges()[[0, -1]]))
        bins = np.arange(self.n_listed)
        return np.clip(low - bins, 0.0, 1.0), np.clip(high - bins, 0.0, 1.0)

    @property
    def keys(self) -> list[str]:
        """Keys of the levels except missing values, of a categorical column."""
        if self.block.column.kind == "flag":
            return ["False", "True"]
        listed = list(self.block.column.categories or ())
        return [*listed, self.other] if self._adds_other and self.other is not None else listed


class Exclusion(NamedTuple):
    """A combination of levels that cannot occur: positions of columns, and the excluded levels of each."""

    columns: tuple[int, ...]
    levels: tuple[np.ndarray, ...]

    def matches(self, codes: np.ndarray) -> np.ndarray:
        """Return which rows of levels, of shape (n, d), meet all conditions."""
        met = np.ones(len(codes), bool)
        for j, levels in zip(self.columns, self.levels, strict=True):
            met &= levels[codes[:, j]]
        return met


def exclusions_of(columns: Sequence[LevelColumn], impossible: tuple[Combination, ...]) -> tuple[Exclusion, ...]:
    """Return the public combinations that cannot occur, by positions and levels; one without a level is rejected."""
    place = {column.block.name: j for j, column in enumerate(columns)}
    found = []
    for each in impossible:
        levels = {name: columns[place[name]].excluded_by(condition) for name, condition in each.conditions}
        if empty := [name for name, met in levels.items() if not met.any()]:
            raise ValueError(
                f"`impossible` of the schema must match a bin or category of {listed(empty)}. A range "
                "matches the bins within it. Widen the range, increase `n_bins`, or list at least one category."
            )
        found.append(Exclusion(tuple(place[name] for name in levels), tuple(levels.values())))
    return tuple(found)


def is_possible_to_exclude(columns: Sequence[LevelColumn], combination: Combination) -> bool:
    """Return whether a combination matches a level of each of its columns; privately estimated bins can be too wide."""
    place = {column.block.name: column for column in columns}
    return all(bool(place[name].excluded_by(condition).any()) for name, condition in combination.conditions)
