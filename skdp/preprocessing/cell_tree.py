"""Adaptive histograms of one column, and bins, bounds and medians from them.

Functions of a partition come first, followed by the partition itself (`Cells`), and by the initial noisy histogram over
signed powers of two, whose occupied part is kept (`occupied_octaves`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

LEAST_BIN = 5.0
"""Minimum count of a bin, in standard deviations of the noise of a cell; smaller bins would contain only noise."""

_ALIKE = 2.5
"""An edge is moved across k cells to a rounder number if their count is below `_ALIKE` sqrt(k) standard deviations."""

_FEW_EDGES, _CROWDED = 3, 0.5
"""Maximum number of edges of equal mass in one equal-width bin: the larger of this number and this fraction of all."""

AT_A_BOUND = 1.0 / 32.0
"""Fraction of the range that contains nearly all of a column, if its bounds are reported as too wide."""


def equal_mass_edges(cells: Cells, n_bins: int, deviation: float) -> np.ndarray:
    """Return edges of at most `n_bins` bins of nearly equal mass, ascending; no edge if the noise allows only one bin.

    Bins are closed on the left. Dynamic programming minimizes their sum of squared masses over the cells, which is
    smallest for equal masses. Values that are more frequent than an average bin get their own bin, and the other bins
    divide the rest. A few distinct values get one bin each.

    Parameters
    ----------
    cells : Cells
    n_bins : int
    deviation : float
        Standard deviation of the noise of a cell.

    Returns
    -------
    ndarray of shape (at most n_bins - 1,)
    """
    before = np.concatenate([[0.0], np.cumsum(cells.estimate())])  # mass to the left of each break
    places = _best_partition(before, n_bins, LEAST_BIN * deviation)
    return _rounded(cells.breaks, before[1:-1], places - 1, _ALIKE * deviation)


def _best_partition(before: np.ndarray, n_bins: int, least: float) -> np.ndarray:
    """Indices of `before` that split a partition into bins of mass `least` or more."""
    held = before[None, :] - before[:, None]
    cost = np.where(np.triu(held >= least, 1), held * held, np.inf)
    best, came_from = [cost[0]], []
    for _ in range(n_bins - 1):
        total = best[-1][:, None] + cost
        came_from.append(total.argmin(axis=0))
        best.append(total.min(axis=0))
    at, places = len(before) - 1, []
    for number in range(int(np.argmin([row[-1] for row in best])), 0, -1):
        at = int(came_from[number - 1][at])
        places.append(at)
    return np.asarray(places[::-1], dtype=np.int64)


def _rounded(breaks: np.ndarray, before: np.ndarray, places: np.ndarray, alike: float) -> np.ndarray:
    """The breaks at `places`, each moved to the roundest binary number with nearly the same mass to its left."""
    # The rank of a break is the largest power of two that divides it, infinity for zero.
    mantissa, exponent = np.frexp(breaks)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    rank = np.where(breaks == 0.0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponent - 53))
    last, found = -1, []
    for number, place in enumerate(places):
        end = places[number + 1] if number + 1 < len(places) else len(breaks)
        steps = np.abs(np.arange(len(breaks)) - place)
        far = np.abs(before - before[place]) > alike * np.sqrt(steps)
        left = place - _first(far[last + 1 : place + 1][::-1])
        right = place + _first(far[place:end])
        last = left + 1 + int(rank[left + 1 : right].argmax())
        found.append(breaks[last])
    return np.asarray(found, dtype=np.float64)


def _first(flags: np.ndarray) -> int:
    """Index of the first True, or the length."""
    return int(flags.argmax()) if flags.any() else len(flags)


def bounds_of_mass(cells: Cells) -> tuple[float, float]:
    """Return bounds beyond which no count exceeds the noise; low is below high."""
    mass, breaks = cells.estimate(), cells.breaks
    # The cells beyond a bound hold at most three standard deviations of the noise of all their counts.
    left, right = (3.0 * np.sqrt(np.cumsum(part)) for part in (cells.variances, cells.variances[::-1]))
    from_left = (np.cumsum(mass) > left)[1:-1]  # the ends of the line reach to infinity
    from_right = (np.cumsum(mass[::-1]) > right)[::-1][1:-1]
    first, last = _first(from_left), len(from_right) - _first(from_right[::-1])
    return (float(breaks[first]), float(breaks[last])) if first < last else (float(breaks[0]), float(breaks[-1]))


def all_edges(inner: np.ndarray, bounds: tuple[float, float]) -> tuple[float, ...]:
    """Return inner edges between two bounds; bounds are moved outward if an edge lies on or beyond them."""
    low, high = bounds
    if len(inner):
        room = (high - low) / (len(inner) + 1)
        low = low if low < inner[0] else float(inner[0]) - room
        high = high if high > inner[-1] else float(inner[-1]) + room
    return (float(low), *inner.tolist(), float(high))


def bins_are_crowded(inner: np.ndarray, bounds: tuple[float, float], n_bins: int) -> bool:
    """Return whether one of `n_bins` equal-width bins has the mass of several bins of equal mass.

    With suitable bounds, edges of equal mass are spread over the equal-width bins.
    """
    low, high = bounds
    places = np.clip((inner - low) / (high - low) * n_bins, 0, n_bins - 1).astype(np.int64)
    return bool(np.bincount(places, minlength=1).max() > max(_FEW_EDGES, len(inner) * _CROWDED))


def lie_at_a_bound(inner: np.ndarray, bounds: tuple[float, float]) -> bool:
    """Return whether nearly all of the mass lies within 1/32 of one of the bounds."""
    low, high = bounds
    near = (high - low) * AT_A_BOUND
    return len(inner) > _FEW_EDGES and bool(inner[-1] <= low + near or inner[0] >= high - near)


def median_cell(cells: Cells) -> float:
    """Return the lower end of the cell that contains the median; integers are lower ends of small cells."""
    mass = np.cumsum(cells.estimate())
    below = _first(mass >= 0.5 * mass[-1]) - 1  # noise may leave less than nothing in all
    return float(cells.breaks[min(max(below, 0), len(cells.breaks) - 1)])


_OCTAVES = 2.0 ** -np.arange(17.0)
"""Powers of two below the largest one within the bounds that are also breaks, on both sides of zero."""


@dataclass(frozen=True)
class Cells:
    """Partition of the real line with noisy counts, which can refine a coarser partition with its own counts.

    Attributes
    ----------
    breaks : ndarray of shape (m - 1,)
        Ascending.
    counts, variances : ndarray of shape (m,)
        Unbiased estimates of the counts of the cells, and their variances; infinite variance if unknown.
    whole : ndarray of shape (m,)
        Cells that are never split: both ends of the line, and the cell of zero if many numbers are zero.
    within : Cells or None
        Coarser partition, whose breaks are a subset of these.
    """

    breaks: np.ndarray
    counts: np.ndarray
    variances: np.ndarray
    whole: np.ndarray
    within: Cells | None = None

    @classmethod
    def of(cls, breaks: np.ndarray, counts: np.ndarray, variances: np.ndarray) -> Cells:
        """Return a coarsest partition."""
        whole = np.zeros(len(counts), bool)
        whole[[0, -1]] = True
        return cls(breaks, counts, variances, whole)

    @classmethod
    def between(cls, low: float, high: float) -> Cells:
        """Return cells between public bounds, with multiples and powers of two as breaks and unknown mass.

        Amounts can be concentrated near zero. Half of the mass is therefore assumed to be uniform, and half to be equal
        in every octave.
        """
        # 16 to 32 cells of equal width; bounds may be so close that their difference is zero.
        width = 2.0 ** math.ceil(math.log2(max((high - low) / 32.0, np.finfo(float).tiny)))
        grid = width * np.arange(math.floor(low / width) + 1, math.ceil(high / width))
        octaves = 2.0 ** math.floor(math.log2(max(-low, high))) * _OCTAVES
        octaves = np.unique(np.clip([low, *-octaves, 0.0, *octaves, high], low, high))
        breaks = np.unique(np.clip([*octaves, *grid], low, high))
        places = np.interp(breaks, octaves, np.linspace(0.0, 1.0, len(octaves)))
        mass = 0.5 * np.diff(breaks) / (high - low) + 0.5 * np.diff(places)
        return cls.of(breaks, np.concatenate([[0.0], mass, [0.0]]), np.full(len(mass) + 2, np.inf))

    def split(self, number: int) -> np.ndarray:
        """Return breaks of about `number` cells: each cell is halved according to its part of the mass."""
        mass = np.maximum(self.estimate(), 0.0)
        parts = number * mass / max(float(mass.sum()), np.finfo(float).tiny)
        halvings = np.where(self.whole, 0.0, np.round(np.log2(np.maximum(parts, 1.0))))
        found = [self.breaks]
        for i in np.flatnonzero(halvings):
            low, high = self.breaks[i - 1], self.breaks[i]
            found.append(low + (high - low) * (np.arange(1.0, 2.0 ** halvings[i]) / 2.0 ** halvings[i]))
        return np.unique(np.concatenate(found))

    def refined(self, breaks: np.ndarray, counts: np.ndarray, variance: float) -> Cells:
        """Return the finer partition by `breaks`, with `counts` of this variance."""
        within = _cells_of(self.breaks, breaks)
        return Cells(breaks, counts, np.full(len(counts), variance), self.whole[within], self)

    def estimate(self) -> np.ndarray:
        """Estimate the count of each cell, by least squares from all partitions (Hay et al. 2010, section 4)."""
        levels = [self]
        while levels[-1].within is not None:
            levels.append(levels[-1].within)
        parents = [_cells_of(coarse.breaks, fine.breaks) for fine, coarse in itertools.pairwise(levels)]
        upward = [(self.counts, self.variances)]
        for coarse, place in zip(levels[1:], parents, strict=True):  # of each cell, from all that is within it
            counts, variances = (_sum_by(place, part, len(coarse.counts)) for part in upward[-1])
            weights = 1.0 / variances, 1.0 / coarse.variances
            total = weights[0] + weights[1]
            upward.append(((weights[0] * counts + weights[1] * coarse.counts) / total, 1.0 / total))
        best = upward.pop()[0]
        for (counts, variances), place in zip(reversed(upward), reversed(parents), strict=True):
            missing = best - _sum_by(place, counts, len(best))
            best = counts + variances * (missing / _sum_by(place, variances, len(best)))[place]
        return best


def _sum_by(place: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _cells_of(coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """The coarse cell in which each fine one lies."""
    return np.concatenate([[0], np.searchsorted(coarse, fine, side="right")])


# --- where the numbers of a column lie, by a noisy histogram over signed powers of two ---

_POWERS = 2.0 ** np.arange(-128, 129)

OCTAVES: np.ndarray = np.concatenate([-_POWERS[::-1], [0.0], _POWERS])
"""Breaks of the initial histogram: zero and all powers of two of float32, with both signs."""

_ZERO = len(_POWERS) + 1
"""Cell from zero to the smallest power of two."""

_SLOPE, _LEAST = 1.5, 4.0
"""A range of cells is occupied if the sum of its counts, minus `_SLOPE` standard deviations each, exceeds `_LEAST`
standard deviations.

The sum of normal variables with mean -a exceeds x anywhere after a given position with probability at most e^(-2 a x)
(a random walk with negative drift), here e^-12: with 257 possible starting positions, in less than 1% of the columns.
"""


def _occupied(excess: np.ndarray) -> tuple[int, int] | None:
    """First cell and last + 1 of the range with the largest sum of `excess`; None if no range is occupied."""
    total = np.concatenate([[0.0], np.cumsum(excess)])
    gain = total[1:] - np.minimum.accumulate(total[:-1])
    last = int(gain.argmax())
    return (int(total[: last + 1].argmin()), last + 1) if gain[last] > _LEAST else None


def occupied_octaves(counts: np.ndarray, deviation: float) -> Cells | None:
    """Return the part of the line that is refined.

    Parameters
    ----------
    counts : ndarray of shape (len(OCTAVES) + 1,)
        Noisy counts.
    deviation : float
        Standard deviation of the noise of a cell.

    Returns
    -------
    Cells or None
        The octaves of a range of negative numbers and of one of positive numbers, a cell from each of them to zero, and
        both ends of the line. None if no count exceeds the noise.
    """
    # Find the range of octaves on either side of zero that exceeds the noise.
    excess = counts / deviation - _SLOPE
    zeros = bool(excess[_ZERO] > _LEAST)
    below, above = _occupied(excess[:_ZERO]), _occupied(excess[_ZERO + 1 :])
    if below is None and above is None and not zeros:
        return None
    # Keep their breaks, and a cell from each of them to zero.
    breaks = [0.0]
    if below is not None:
        breaks += OCTAVES[max(below[0] - 1, 0) : below[1]].tolist()
    if above is not None:
        first = _ZERO + above[0]
        breaks += OCTAVES[first : _ZERO + above[1] + 1].tolist()
    elif zeros:
        breaks.append(1.0)
    # Add up the octaves between these breaks. A cell of many zeros is never split.
    kept = np.unique(breaks)
    place, size = _cells_of(kept, OCTAVES), len(kept) + 1
    cells = Cells.of(kept, _sum_by(place, counts, size), deviation**2 * _sum_by(place, np.ones(len(place)), size))
    cells.whole[np.searchsorted(kept, 0.0, side="right")] |= zeros
    return cells
