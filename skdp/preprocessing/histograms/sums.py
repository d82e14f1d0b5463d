"""Bounded means and variances of columns, from one release."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._checks.weights import weight_of_each
from skdp._typing import Doubles
from skdp.accounting import DpEvent, GaussianDpEvent
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.mechanisms.unit_shares import reach_of_units, shares_of_units
from skdp.preprocessing.histograms.bought_bounds import BoughtBounds
from skdp.preprocessing.histograms.purchase import Bounds

_GRID = 2.0**24
"""Inverse of what scaled numbers are multiples of: their sums are exact for up to 2^29 rows."""


class ColumnMoments(NamedTuple):
    """Noisy moments of columns between their bounds, each of shape (d,).

    Attributes
    ----------
    bounds : list of (float, float)
    means, variances : ndarray of shape (d,)
        Means lie within the bounds; variances are above 0, no less than their noise.
    """

    bounds: list[tuple[float, float]]
    means: Doubles
    variances: Doubles


def sums_sensitivity(n_columns: int, n_moments: int, adjacency: str) -> float:
    """Largest norm of what one row adds to counts and the first `n_moments`, 1 or 2, moments of columns in [-1, 1].

    A row adds (1, z) or (1, z, q) to each column, q being z^2 rounded down to a multiple of the grid 1 / `_GRID` on
    which z lies: of norm sqrt(1 + n_moments) at most, or nothing for a gap. Sums of multiples of the grid are exact, so
    the order of rows and rounding change nothing.

    Under ``replace_one`` the vectors of z and t differ, but for the rounding of q, by the root of u^2 (1 + s^2), where
    u = |z - t|, s = |z + t| and u + s <= 2. That is at most 2, as u^2 (1 + (2 - u)^2) <= 4 means 2 + u >= u^2 (2 - u),
    and u^2 (2 - u) <= 32/27. Rounding changes the difference of q by less than g = 1 / `_GRID`. For u = 2 it changes
    nothing; else 2 - u = v >= g, and the square of the norm is below u^2 + (u s + g)^2 <= 4 - 4 v + v^2 + (2 v + g)^2,
    which is less than 4 for v <= 1/4, and far less than 4 for larger v. A gap and a number differ by sqrt(3) at most.
    So each column changes by 2 at most, and the sensitivity, half of the change there, is sqrt(d).

    A row of weight w in [0, 1], a multiple of the grid, adds w times as much, and a row of weight 0 nothing. The change
    is convex in each of two weights, so it is largest where they are 0 or 1, as above. Products of two multiples of the
    grid have 48 bits, and their sums are rounded once, whatever the order of rows (`_exact_sum`).

    A unit of one row adds what the row adds. The sum of a unit of several rows is clipped to this sensitivity by its
    share (`skdp.mechanisms.unit_shares.shares_of_units`, where squares are raised by what adding up d columns may have
    rounded off), and then rounded towards zero on the grid of products, which makes no entry larger. Under
    ``replace_one``, what two units add has no negative inner product: in each column the sum of z is no larger in size
    than the count, before and after rounding, and those of q are not negative. So the square of the difference is at
    most the sum of both squares: d + d for two units of several rows, and d + (1 + n_moments) d <= 4 d for one of them
    and a row; two rows are those above.
    """
    return math.sqrt(n_columns if adjacency == "replace_one" else (1 + n_moments) * n_columns)


def moments_cost(bounds: tuple[Bounds, ...], adjacency: str) -> Callable[[float], DpEvent]:
    """Return the event of moments at a noise multiplier, with that of bounds: as much as one Gaussian release."""
    return BoughtBounds(bounds, adjacency).event_beside(GaussianDpEvent)


def release_moments(
    columns: list[Doubles],
    bounds: tuple[Bounds, ...],
    n_moments: int,
    adjacency: str,
    noise_multiplier: float,
    n_public: int,
    stream: SecretStream,
    weights: Any = 1.0,
    units: Units | None = None,
) -> ColumnMoments:
    """Bounds where they are bought, then counts and sums in one release.

    Parameters
    ----------
    columns : list of ndarray of shape (n,)
        NaN for gaps.
    bounds : tuple of ((float, float) or None)
    n_moments : {1, 2}
        Without the second, variances are those of numbers at either bound.
    adjacency : str
    noise_multiplier : float
        Of the whole, as in `moments_cost`.
    n_public : int
    stream : SecretStream
    weights : ndarray of shape (n,) or 1.0
        Of the rows: `exactly_summable` numbers in [0, 1].
    units : Units or None
        Of the rows.

    Returns
    -------
    ColumnMoments
    """
    bought = BoughtBounds(bounds, adjacency)
    pairs = bought.release(columns, noise_multiplier, n_public, stream.spawn("bounds"), weights, units)
    mechanism = GaussianMechanism(
        bought.noise_left(noise_multiplier), sums_sensitivity(len(columns), n_moments, adjacency)
    )
    given = [(values, weights, pair, n_moments) for values, pair in zip(columns, pairs, strict=True)]
    exact = np.array([_sums(*each) for each in given] if units is None else _unit_sums(given, units, mechanism))
    noisy = mechanism.release(exact, stream.spawn("sums"))
    counts = np.maximum(noisy[:, 0], 1.0)
    means = np.clip(noisy[:, 1] / counts, -1.0, 1.0)
    squares = noisy[:, 2] / counts if n_moments == 2 else np.ones(len(columns))
    variances = np.clip(squares - means**2, np.minimum(mechanism.standard_deviation / counts, 1.0), 1.0)
    low, high = np.array(pairs).T
    half = 0.5 * high - 0.5 * low
    return ColumnMoments(pairs, np.clip(low + (1.0 + means) * half, low, high), variances * half**2)


def _sums(values: Doubles, weights: Any, bounds: tuple[float, float], n_moments: int) -> Doubles:
    """Weighted count, sum and sum of squares of a column scaled to [-1, 1], gaps left out."""
    _, added = _added(values, weights, bounds, n_moments)
    return np.array([_exact_sum(each) for each in added])


def _unit_sums(
    given: list[tuple[Doubles, Any, tuple[float, float], int]], units: Units, mechanism: GaussianMechanism
) -> list[list[float]]:
    """The same of each column, with units clipped to the sensitivity; see `sums_sensitivity`."""

    def by_unit(values: Doubles, weights: Any, bounds: tuple[float, float], n_moments: int) -> list[Doubles]:
        held, added = _added(values, weights, bounds, n_moments)
        return [np.bincount(units.codes[held], each, units.n_units).astype(np.float64, copy=False) for each in added]

    _, weights, _, n_moments = given[0]
    squares = np.zeros(units.n_units)
    for column in given:
        for each in by_unit(*column):
            squares += each**2
    squares *= 1.0 + 3 * len(given) * 2.0**-52
    norm = math.sqrt((1 + n_moments) * len(given))
    reach = reach_of_units(units, weight_of_each(weights, len(units.codes)), norm)
    shares = shares_of_units(units, squares, reach, mechanism.sensitivity)
    return [[_exact_sum(np.trunc(_GRID**2 * (shares * each)) / _GRID**2) for each in by_unit(*one)] for one in given]


def _added(
    values: Doubles, weights: Any, bounds: tuple[float, float], n_moments: int
) -> tuple[NDArray[np.bool_], list[Doubles]]:
    """Rows without a gap in a column, and what they add to its count and to the moments of it scaled to [-1, 1]."""
    low, high = bounds
    held = ~np.isnan(values)
    present, weight = np.clip(values[held], low, high), np.broadcast_to(weights, values.shape)[held]
    scaled = np.rint(_GRID * np.clip((present - low) / (0.5 * high - 0.5 * low) - 1.0, -1.0, 1.0)) / _GRID
    squares = np.floor(_GRID * (scaled * scaled)) / _GRID
    return held, [weight * each for each in (1.0, scaled, squares)[: 1 + n_moments]]


def _exact_sum(values: Doubles) -> float:
    """Sum of multiples of 1 / `_GRID`**2 in [-1, 1], rounded once: both parts are exact for up to 2^29 rows."""
    coarse = np.rint(_GRID * values) / _GRID
    return float(coarse.sum()) + float((values - coarse).sum())


__all__ = ["ColumnMoments", "moments_cost", "release_moments", "sums_sensitivity"]
