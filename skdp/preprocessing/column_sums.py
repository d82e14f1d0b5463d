"""Means and variances of bounded columns, from one release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.groups import Units
from skdp._checks.parameters import Bounds, silent_arithmetic
from skdp.accounting import DpEvent, compose
from skdp.mechanisms.bounded_sum import VectorQuery
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histogram_query import HistogramQuery

BOUNDS_SHARE = 0.3
"""Fraction of mu^2 for bounds where some are estimated privately."""


@dataclass(frozen=True)
class EstimatedBounds:
    """Bounds of numeric columns, some of which are estimated privately.

    Parameters
    ----------
    bounds : tuple of ((float, float) or None)
        Public bounds of each column, None where they are estimated privately.
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Notes
    -----
    **Guarantees.** Privately estimated bounds are a function of the release of a
    `skdp.preprocessing.histogram_query.HistogramQuery` and of public numbers. Its event is part of `event_beside`.
    """

    bounds: tuple[Bounds, ...]
    adjacency: str

    @property
    def _n_open(self) -> int:
        return sum(pair is None for pair in self.bounds)

    @property
    def _query(self) -> HistogramQuery:
        return HistogramQuery(self._n_open, 0, 1, 1, self.adjacency, 0.0)

    def noise_left(self, noise_multiplier: float) -> float:
        """Noise multiplier of all other releases of a fit with this total `noise_multiplier`."""
        return noise_multiplier / math.sqrt(1.0 - BOUNDS_SHARE) if self._n_open else noise_multiplier

    def event_beside(self, event_at: Callable[[float], DpEvent]) -> Callable[[float], DpEvent]:
        """Return the event of a fit at a noise multiplier, at which its other releases alone have `event_at`."""
        if not self._n_open:
            return event_at
        return lambda noise: compose(
            [self._query.event_at(noise / math.sqrt(BOUNDS_SHARE)), event_at(self.noise_left(noise))]
        )

    def release(
        self,
        columns: list[np.ndarray],
        noise_multiplier: float,
        n_public: int,
        stream: SecretStream,
        weights: Any = 1.0,
        units: Units | None = None,
    ) -> list[tuple[float, float]]:
        """Return the bounds of each column.

        Parameters
        ----------
        columns : list of ndarray of shape (n,)
            Private numbers, float64; NaN is missing.
        noise_multiplier : float
            Noise multiplier of the whole fit.
        n_public : int
        stream : SecretStream
            Random stream of this release.
        weights : ndarray of shape (n,) or 1.0
            Private: `exactly_summable` numbers in [0, 1].
        units : Units or None
            Private, of the rows.
        """
        found: list[tuple[float, float]] = []
        if self._n_open:
            opened = [values for values, pair in zip(columns, self.bounds, strict=True) if pair is None]
            given = noise_multiplier / math.sqrt(BOUNDS_SHARE), n_public, stream, weights, units
            found = self._query.release(opened, [], *given).bounds
        return [found.pop(0) if pair is None else pair for pair in self.bounds]


_GRID = 2.0**24
"""Scaled numbers are multiples of 1 / `_GRID`, so that unweighted sums are exact for up to 2^29 rows."""


class ColumnMoments(NamedTuple):
    """Noisy moments of columns between their bounds, each of shape (d,)."""

    means: np.ndarray
    variances: np.ndarray


class ColumnSums(VectorQuery):
    """Query for counts and moments of bounded columns, in which NaN is missing.

    Parameters
    ----------
    bounds : sequence of (float, float)
    n_moments : {1, 2}
        Number of moments of each column scaled to [-1, 1].

    Notes
    -----
    **Guarantees.** `sensitivity` is the maximum norm of the contribution of a record, or half of the maximum change if
    it is replaced.

    Proof. A row adds (1, z) or (1, z, q) to each column, z in [-1, 1] being a multiple of the grid 1 / `_GRID`, and q
    being z^2 rounded down to one: of norm sqrt(1 + n_moments) at most, or nothing for a missing value. Sums of
    multiples of the grid are exact, so that without weights the order of rows and rounding change nothing.

    Under ``replace_one`` the vectors of z and t differ, but for the rounding of q, by the root of u^2 (1 + s^2), where
    u = |z - t|, s = |z + t| and u + s <= 2. That is at most 2, as u^2 (1 + (2 - u)^2) <= 4 means 2 + u >= u^2 (2 - u),
    and u^2 (2 - u) <= 32/27. Rounding changes the difference of q by less than g = 1 / `_GRID`. For u = 2 it changes
    nothing; else 2 - u = v >= g, and the square of the norm is below u^2 + (u s + g)^2 <= 4 - 4 v + v^2 + (2 v + g)^2,
    which is less than 4 for v <= 1/4, and far less than 4 for larger v. A missing value and a number differ by sqrt(3)
    at most. So each column changes by 2 at most, and the sensitivity, half of the change there, is sqrt(d).

    A row of weight w in [0, 1] adds w times its contribution. The change is convex in each weight, so it is largest for
    weights of 0 or 1, as above.

    The sum of a group of several rows is clipped to this sensitivity. Under ``replace_one``, what two groups add has no
    negative inner product: in each column the sum of z is no larger in size than the count, and those of q are not
    negative. So the square of the difference is at most the sum of both squares: d + d for two groups of several rows,
    and d + (1 + n_moments) d <= 4 d for one of them and a row; two rows are those above.
    """

    def __init__(self, bounds: Sequence[tuple[float, float]], n_moments: int) -> None:
        self.low, self.high = np.array(bounds, np.float64).T
        self._half, self._n_moments = 0.5 * self.high - 0.5 * self.low, n_moments
        self.width, self.row_limit = (1 + n_moments) * len(bounds), math.sqrt((1 + n_moments) * len(bounds))

    def sensitivity(self, adjacency: str) -> float:
        return math.sqrt(len(self.low)) if adjacency == "replace_one" else self.row_limit

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """See `VectorQuery`: counts of all columns, then their first and second moments."""
        d = len(self.low)
        found = np.empty((len(rows), self.width))
        scaled = rows - self.low
        scaled /= self._half
        scaled -= 1.0
        np.clip(scaled, -1.0, 1.0, out=scaled)
        missing = np.isnan(scaled)
        np.subtract(1.0, missing, out=found[:, :d])
        np.copyto(scaled, 0.0, where=missing)
        scaled *= _GRID
        np.rint(scaled, out=scaled)
        scaled /= _GRID
        found[:, d : 2 * d] = scaled
        if self._n_moments == 2:
            scaled *= scaled
            scaled *= _GRID
            np.floor(scaled, out=scaled)
            np.divide(scaled, _GRID, out=found[:, 2 * d :])
        return found

    @silent_arithmetic
    def moments_of(self, noisy: np.ndarray, deviation: float) -> ColumnMoments:
        """Return means within the bounds and variances kept above their noise, from released sums."""
        sums = noisy.reshape(1 + self._n_moments, len(self.low))
        counts = np.maximum(sums[0], 1.0)
        means = np.clip(sums[1] / counts, -1.0, 1.0)
        squares = sums[2] / counts if self._n_moments == 2 else np.ones(len(counts))
        variances = np.clip(squares - means**2, np.minimum(deviation / counts, 1.0), 1.0)
        scaled_back = np.clip(self.low + (1.0 + means) * self._half, self.low, self.high)
        return ColumnMoments(scaled_back, variances * self._half**2)


def release_moments(
    missing: EstimatedBounds,
    columns: list[np.ndarray],
    n_moments: int,
    noise_multiplier: float,
    n_public: int,
    spawn: Callable[[str], SecretStream],
    weights: Any = 1.0,
    units: Units | None = None,
) -> tuple[list[tuple[float, float]], ColumnMoments]:
    """Release missing bounds, then the moments between them, and return both.

    Parameters
    ----------
    missing : EstimatedBounds
        Release of the missing bounds. With `event_beside`, the moments and these bounds cost as much as one Gaussian
        release.
    columns : list of ndarray of shape (n,)
        NaN for missing values.
    n_moments : {1, 2}
        Number of moments. Without the second one, variances are those of numbers at the bounds.
    noise_multiplier : float
        Noise multiplier of the whole fit.
    n_public : int
    spawn : callable
        Function that returns the random stream of a release by its name.
    weights : ndarray of shape (n,) or 1.0
        Multiples of 2**-24 in [0, 1].
    units : Units or None
        Of the rows.
    """
    pairs = missing.release(columns, noise_multiplier, n_public, spawn("bounds"), weights, units)
    query = ColumnSums(pairs, n_moments)
    mechanism = GaussianMechanism(missing.noise_left(noise_multiplier), query.sensitivity(missing.adjacency))
    (sums := query.new_sum(missing.adjacency)).add(np.column_stack(columns), weights, units=units)
    return pairs, query.moments_of(mechanism.release(sums.vector, spawn("sums")), mechanism.standard_deviation)
