"""Bin edges of equal mass, and bounds, from noisy counts of cells: post-processing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdp._typing import Doubles
from skdp.preprocessing.histograms.cell_tree import Cells

LEAST_BIN = 5.0
"""Standard deviations of a cell's noise that a bin holds at least: fewer would make bins of noise alone."""

_ALIKE = 2.5
"""An edge is moved across k cells to a rounder number if they hold less than `_ALIKE` sqrt(k) standard deviations."""

_TAIL = 3.0
"""The cells beyond a bound hold at most `_TAIL` standard deviations of the noise of all their counts."""

_FEW_EDGES, _CROWDED = 3, 0.5
"""Edges of equal mass that one bin of equal width may have: the larger of this number and this part of all."""

AT_A_BOUND = 1.0 / 32.0
"""Part of the way between its bounds in which nearly all of a column lies, if they are told to be too wide."""


def equal_mass_edges(cells: Cells, n_bins: int, deviation: float) -> Doubles:
    """Edges of at most `n_bins` bins of near-equal mass, ascending; no edge where the noise allows one bin only.

    Bins are closed on the left. Their sum of squared masses is as small as cells allow, by dynamic programming. Equal
    masses have the least such sum; a number that is more frequent than a bin should be stays alone, and the other bins
    divide the rest. Few distinct numbers get a bin each.

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


def _best_partition(before: Doubles, n_bins: int, least: float) -> NDArray[np.int64]:
    """Indices of `before` at which a partition into bins of mass `least` or more is cut."""
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


def _rounded(breaks: Doubles, before: Doubles, places: NDArray[np.int64], alike: float) -> Doubles:
    """The breaks at `places`, each moved to the roundest binary number with nearly the same mass to its left."""
    rank, last, found = _roundness(breaks), -1, []
    for number, place in enumerate(places):
        end = places[number + 1] if number + 1 < len(places) else len(breaks)
        steps = np.abs(np.arange(len(breaks)) - place)
        far = np.abs(before - before[place]) > alike * np.sqrt(steps)
        left = place - _first(far[last + 1 : place + 1][::-1])
        right = place + _first(far[place:end])
        last = left + 1 + int(rank[left + 1 : right].argmax())
        found.append(breaks[last])
    return np.asarray(found, dtype=np.float64)


def _first(flags: NDArray[np.bool_]) -> int:
    """Index of the first True, or the length."""
    return int(flags.argmax()) if flags.any() else len(flags)


def _roundness(numbers: Doubles) -> Doubles:
    """The largest power of two that divides each number, infinity for zero."""
    mantissa, exponent = np.frexp(numbers)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    return np.where(numbers == 0.0, np.inf, np.ldexp((whole & -whole).astype(np.float64), exponent - 53))


def bounds_of_mass(cells: Cells) -> tuple[float, float]:
    """Low and high ends beyond which there is no more than noise; low is below high."""
    mass, breaks = cells.estimate(), cells.breaks
    left, right = (_TAIL * np.sqrt(np.cumsum(part)) for part in (cells.variances, cells.variances[::-1]))
    from_left = (np.cumsum(mass) > left)[1:-1]  # the ends of the line reach to infinity
    from_right = (np.cumsum(mass[::-1]) > right)[::-1][1:-1]
    first, last = _first(from_left), len(from_right) - _first(from_right[::-1])
    return (float(breaks[first]), float(breaks[last])) if first < last else (float(breaks[0]), float(breaks[-1]))


def all_edges(inner: Doubles, bounds: tuple[float, float]) -> tuple[float, ...]:
    """Inner edges between two bounds, which are moved outwards where an edge lies on them or beyond."""
    low, high = bounds
    if len(inner):
        room = (high - low) / (len(inner) + 1)
        low = low if low < inner[0] else float(inner[0]) - room
        high = high if high > inner[-1] else float(inner[-1]) + room
    return (float(low), *inner.tolist(), float(high))


def bins_are_crowded(inner: Doubles, bounds: tuple[float, float], n_bins: int) -> bool:
    """Whether one of `n_bins` bins of equal width between the bounds has much of the mass of several of equal mass.

    Edges of equal mass are spread over the bins of equal width where the bounds fit.
    """
    low, high = bounds
    places = np.clip((inner - low) / (high - low) * n_bins, 0, n_bins - 1).astype(np.int64)
    return bool(np.bincount(places, minlength=1).max() > max(_FEW_EDGES, len(inner) * _CROWDED))


def lie_at_a_bound(inner: Doubles, bounds: tuple[float, float]) -> bool:
    """Whether nearly all of the mass lies within 1/32 of one of the bounds."""
    low, high = bounds
    near = (high - low) * AT_A_BOUND
    return len(inner) > _FEW_EDGES and bool(inner[-1] <= low + near or inner[0] >= high - near)


def median_cell(cells: Cells) -> float:
    """Lower end of the first cell up to which half of the mass lies; whole numbers are lower ends of small cells."""
    mass = np.cumsum(cells.estimate())
    below = _first(mass >= 0.5 * mass[-1]) - 1  # noise may leave less than nothing in all
    return float(cells.breaks[min(max(below, 0), len(cells.breaks) - 1)])
