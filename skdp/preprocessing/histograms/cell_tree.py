"""Cells of the line that are split where the noisy mass is, and the joint estimate of what they hold."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skdp._typing import Doubles

_START = 32
"""Cells of equal width between public bounds to begin with, at most; at least half as many."""

_OCTAVES = 2.0 ** -np.arange(17.0)
"""Powers of two below the largest one within the bounds at which cells begin, too: on both sides of zero."""


@dataclass(frozen=True)
class Cells:
    """A partition of the line with noisy counts, which may refine a coarser one with counts of its own.

    Attributes
    ----------
    breaks : ndarray of shape (m - 1,)
        Ascending.
    counts, variances : ndarray of shape (m,)
        Unbiased estimates of what the cells hold, and their variances; infinity says that nothing is known.
    whole : ndarray of shape (m,)
        Cells that are never split: both ends of the line, and the cell of zero where many numbers are zero.
    within : Cells or None
        The coarser partition; its breaks are among these.
    """

    breaks: Doubles
    counts: Doubles
    variances: Doubles
    whole: NDArray[np.bool_]
    within: Cells | None = None

    @classmethod
    def of(cls, breaks: Doubles, counts: Doubles, variances: Doubles) -> Cells:
        """A coarsest partition."""
        whole = np.zeros(len(counts), bool)
        whole[[0, -1]] = True
        return cls(breaks, counts, variances, whole)

    @classmethod
    def between(cls, low: float, high: float) -> Cells:
        """Cells between public bounds, with multiples and powers of two as breaks; nothing is known of their mass.

        Amounts may lie close to zero beside their bounds. So half of the mass is taken to be spread evenly, and half
        to be the same in every octave.
        """
        width = 2.0 ** math.ceil(math.log2(max((high - low) / _START, np.finfo(float).tiny)))  # if bounds are tiny
        grid = width * np.arange(math.floor(low / width) + 1, math.ceil(high / width))
        octaves = 2.0 ** math.floor(math.log2(max(-low, high))) * _OCTAVES
        octaves = np.unique(np.clip([low, *-octaves, 0.0, *octaves, high], low, high))
        breaks = np.unique(np.clip([*octaves, *grid], low, high))
        places = np.interp(breaks, octaves, np.linspace(0.0, 1.0, len(octaves)))
        mass = 0.5 * np.diff(breaks) / (high - low) + 0.5 * np.diff(places)
        return cls.of(breaks, np.concatenate([[0.0], mass, [0.0]]), np.full(len(mass) + 2, np.inf))

    def keeping(self, left: float) -> Cells:
        """The same, where the cell that begins at `left` is never split."""
        whole = self.whole.copy()
        whole[np.searchsorted(self.breaks, left, side="right")] = True
        return replace(self, whole=whole)

    def split(self, number: int) -> Doubles:
        """Breaks of about `number` cells: each cell is halved as often as its share of the mass calls for."""
        mass = np.maximum(self.estimate(), 0.0)
        parts = number * mass / max(float(mass.sum()), np.finfo(float).tiny)
        halvings = np.where(self.whole, 0.0, np.round(np.log2(np.maximum(parts, 1.0))))
        found = [self.breaks]
        for i in np.flatnonzero(halvings):
            low, high = self.breaks[i - 1], self.breaks[i]
            found.append(low + (high - low) * (np.arange(1.0, 2.0 ** halvings[i]) / 2.0 ** halvings[i]))
        return np.unique(np.concatenate(found))

    def refined(self, breaks: Doubles, counts: Doubles, variance: float) -> Cells:
        """The finer partition by `breaks`, of which `counts` are known with that variance."""
        within = _cells_of(self.breaks, breaks)
        return Cells(breaks, counts, np.full(len(counts), variance), self.whole[within], self)

    def estimate(self) -> Doubles:
        """What each cell holds, by least squares from the counts of all partitions (Hay et al. 2010, section 4)."""
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


def _sum_by(place: NDArray[np.int64], values: Doubles, size: int) -> Doubles:
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _cells_of(coarse: Doubles, fine: Doubles) -> NDArray[np.int64]:
    """The coarse cell in which each fine one lies."""
    return np.concatenate([[0], np.searchsorted(coarse, fine, side="right")])


# --- where the numbers of a column lie, by a noisy histogram over signed powers of two ---

_POWERS = 2.0 ** np.arange(-128, 129)

OCTAVES: Doubles = np.concatenate([-_POWERS[::-1], [0.0], _POWERS])
"""Breaks of the histogram: zero and all powers of two that float32 holds, of both signs."""

_ZERO = len(_POWERS) + 1
"""The cell from zero to the least power of two."""

_SLOPE, _LEAST = 1.5, 4.0
"""A range of cells is occupied if its counts, less `_SLOPE` standard deviations each, exceed `_LEAST` of them in sum.

The sum of normals with mean -a exceeds x anywhere behind a given place with probability at most e^(-2 a x) (a random
walk with negative drift), here e^-12: among 257 places where a range may begin, in less than 1 % of the columns.
"""


def _occupied(excess: Doubles) -> tuple[int, int] | None:
    """First cell and last + 1 of the range with the largest sum of `excess`; None if no range is occupied."""
    total = np.concatenate([[0.0], np.cumsum(excess)])
    gain = total[1:] - np.minimum.accumulate(total[:-1])
    last = int(gain.argmax())
    return (int(total[: last + 1].argmin()), last + 1) if gain[last] > _LEAST else None


def occupied_octaves(counts: Doubles, deviation: float) -> Cells | None:
    """The part of the line that is worth a closer look.

    Parameters
    ----------
    counts : ndarray of shape (len(OCTAVES) + 1,)
        Noisy counts.
    deviation : float
        Standard deviation of their noise.

    Returns
    -------
    Cells or None
        The octaves of a range of negative numbers and of one of positive numbers, a cell from each of them to zero, and
        both ends of the line. None if nothing stands out of the noise.
    """
    excess = counts / deviation - _SLOPE
    zeros = bool(excess[_ZERO] > _LEAST)
    below, above = _occupied(excess[:_ZERO]), _occupied(excess[_ZERO + 1 :])
    if below is None and above is None and not zeros:
        return None
    breaks = [0.0]
    if below is not None:
        breaks += OCTAVES[max(below[0] - 1, 0) : below[1]].tolist()
    if above is not None:
        first = _ZERO + above[0]
        breaks += OCTAVES[first : _ZERO + above[1] + 1].tolist()
    elif zeros:
        breaks.append(1.0)
    cells = _summed(np.unique(breaks), counts, deviation)
    return cells.keeping(0.0) if zeros else cells


def _summed(breaks: Doubles, counts: Doubles, deviation: float) -> Cells:
    """The cells between some of the breaks of the histogram."""
    place = np.concatenate([[0], np.searchsorted(breaks, OCTAVES, side="right")])
    size = len(breaks) + 1
    summed, members = np.bincount(place, counts, size), np.bincount(place, np.ones(len(place)), size)
    return Cells.of(breaks, summed.astype(np.float64), deviation**2 * members.astype(np.float64))
