"""Where the numbers of a column lie, by a noisy histogram over signed powers of two."""

from __future__ import annotations

import numpy as np

from skdp._typing import Doubles
from skdp.preprocessing.histograms.cell_tree import Cells

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
