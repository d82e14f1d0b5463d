"""Numbers within bins: the cells of each bin, and which share of it each holds, by noisy counts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._typing import Doubles

Ends = tuple[float, float]

EVERYWHERE: Ends = (-math.inf, math.inf)

CELLS_OF_A_BIN = 32
"""Cells of a bin; less where it has fewer whole numbers."""
LEAST_DIFFERENCE = 1.0
"""Squared ratio to its noise that a difference between halves has at least, to be more than noise."""


LEAST_WIDTH = 1e-9
"""Share of a bin that its narrowest cells have: zero alone is next to none of it."""
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
        Share of its bin that each would hold if numbers were spread evenly. They sum to one in each bin.
    shares : ndarray of shape (n_cells,)
        Share of its bin that each holds, in the same way.
    """

    edges: Doubles
    bins: NDArray[np.intp]
    widths: Doubles
    shares: Doubles

    @classmethod
    def between(cls, edges: Doubles, cuts: Doubles, whole: bool) -> BinShapes:
        """Return bins with these ends, cut there; of whole numbers at the next of them. All of it is public.

        Zero has a cell of its own: many columns have more zeros than all else.
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

    def read(self, numbers: Doubles) -> NDArray[np.int32]:
        """Return the cell of each number; one more than there are for a gap, which is NaN."""
        cells = np.searchsorted(self.edges[1:-1], numbers, side="right").astype(np.int32)
        return np.where(np.isnan(numbers), np.int32(len(self.bins)), cells)

    def fitted(self, noisy: Doubles, deviation: float) -> BinShapes:
        """Return shares by noisy counts of the cells, all divided by one number, and the deviation of their noise.

        Bins are halved, and halves again. How many numbers of both lie in the first is where these would be if they
        were spread evenly, moved by the difference that is seen, shrunk by Breiman's garrote: so that what is no more
        than noise is nothing.
        """
        shares = self.widths.copy()
        for each in np.split(np.arange(len(self.bins)), np.flatnonzero(np.diff(self.bins)) + 1):
            shares[each] = _halved(noisy[each], self.widths[each], deviation)
        return self._replace(shares=shares)

    def draw(self, bins: NDArray[Any], whole: bool, rng: np.random.Generator, ends: Ends) -> Doubles:
        """Return a number within both ends for each bin."""
        share, cells = rng.random(len(bins)), self._cells(bins, self._within(ends, whole), rng)
        if whole:
            low, count = whole_numbers(self.edges, ends)
            return low[cells] + np.minimum(np.floor(share * count[cells]), np.maximum(count[cells] - 1.0, 0.0))
        start, end = np.clip(self.edges[:-1], *ends)[cells], np.clip(self.edges[1:], *ends)[cells]
        return np.where(self._are_single[cells], self.edges[cells], start + share * (end - start))

    def shares_within(self, ends: Ends, whole: bool) -> Doubles:
        """Return which share of the numbers of each bin lies within both ends."""
        return np.bincount(self.bins, self.shares * self._within(ends, whole)).astype(np.float64, copy=False)

    @property
    def _are_single(self) -> NDArray[np.bool_]:
        """Which cells hold zero alone."""
        return (self.edges[:-1] == 0.0) & (self.edges[1:] == _AFTER_ZERO)

    def _within(self, ends: Ends, whole: bool) -> Doubles:
        """Return which share of each cell lies within both ends."""
        if whole:
            return whole_numbers(self.edges, ends)[1] / whole_numbers(self.edges)[1]
        kept = np.diff(np.clip(self.edges, *ends)) / np.diff(self.edges)
        return np.where(self._are_single, float(ends[0] <= 0.0 <= ends[1]), kept)

    def _cells(self, bins: NDArray[Any], within: Doubles, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return a cell for each bin, if numbers of each cell are kept with a probability of `within`."""
        weights = self.shares * within
        weights = np.where(np.bincount(self.bins, weights)[self.bins] > 0, weights, self.widths)  # never asked for
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        first = np.searchsorted(self.bins, np.arange(self.bins[-1] + 1))
        last = np.append(first[1:], len(self.bins))
        places = ends[first[bins]] + rng.random(len(bins)) * (ends[last[bins]] - ends[first[bins]])
        found = np.searchsorted(ends, places, side="right") - 1
        return np.clip(found, first[bins], last[bins] - 1)


def _halved(noisy: Doubles, widths: Doubles, deviation: float) -> Doubles:
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


def whole_numbers(edges: Doubles, ends: Ends = EVERYWHERE) -> tuple[Doubles, Doubles]:
    """Return the first whole number of each bin, and how many it has: any of [low, high), the last bin closed.

    The nearest one where there is none. Of bins beyond the ends there are 0.
    """
    low = np.ceil(edges[:-1])
    last = np.ceil(edges[1:]) - 1.0
    last[-1] = math.floor(edges[-1])
    nearest = np.rint((edges[:-1] + edges[1:]) / 2.0)
    empty = last < low
    low = np.maximum(np.where(empty, nearest, low), np.ceil(ends[0]))
    last = np.minimum(np.where(empty, nearest, last), np.floor(ends[1]))
    return low, np.maximum(last - low + 1.0, 0.0)
