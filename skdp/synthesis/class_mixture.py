"""Rows between public bounds, read in chunks, and their products with a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from skdp._checks.weights import weight_of_each
from skdp._kernels.tiles import ROWS, multiply, pack, panel_width, room_for

ROWS_AT_ONCE = 340 * ROWS
"""Rows that are read in one chunk: a multiple of the height of a tile."""

_LARGEST_IN_FLOAT32 = 1e30


class Box(NamedTuple):
    """Public bounds of the columns.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
    """

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, bounds: np.ndarray) -> Box:
        """Return the box of bounds of shape (d, 2)."""
        return cls(*np.ascontiguousarray(bounds.T))

    @property
    def width(self) -> np.ndarray:
        """Widths of the columns."""
        return self.high - self.low

    def dtype_for(self, X: np.ndarray) -> type[np.floating[Any]]:
        """Return the type in which rows are read: float32 if that holds rows, bounds and numbers between these."""
        sizes = np.concatenate([np.abs(self.low), self.width, 1.0 / self.width])
        if not np.can_cast(X.dtype, np.float32) or sizes.max() >= _LARGEST_IN_FLOAT32:
            return np.float64
        low, high = self._inner_bounds(np.float32)
        return np.float32 if (low <= high).all() else np.float64

    def scale(self, X: np.ndarray, out: np.ndarray) -> None:
        """Write rows, clipped to the bounds and scaled to [-1/2, 1/2], to `out`, of float32 or float64."""
        with np.errstate(all="ignore"):  # a warning would reveal a cell
            np.subtract(X, self.low.astype(out.dtype), out=out, casting="unsafe")
            np.divide(out, self.width.astype(out.dtype), out=out)
        np.clip(out, 0.0, 1.0, out=out)
        out -= 0.5

    def restore(self, rows: np.ndarray) -> None:
        """Scale rows back, in place, clipped to the bounds."""
        np.clip(rows, -0.5, 0.5, out=rows)
        rows += 0.5
        rows *= self.width.astype(rows.dtype)
        rows += self.low.astype(rows.dtype)
        np.clip(rows, *self._inner_bounds(rows.dtype), out=rows)

    def _inner_bounds(self, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds in a type that may not hold them, rounded inwards."""
        low, high = self.low.astype(dtype), self.high.astype(dtype)
        low = np.where(low < self.low, np.nextafter(low, np.asarray(np.inf, dtype)), low)
        high = np.where(high > self.high, np.nextafter(high, np.asarray(-np.inf, dtype)), high)
        return low, high


class ClassRows:
    """Private rows and the numbers of their classes.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Finite, of any real type.
    codes : ndarray of shape (n,)
        Number of the class of each row.
    box : Box
    weights : ndarray of shape (n,) or None, default=None
        Private, in [0, 1]; None gives each row a weight of 1.

    Attributes
    ----------
    have_weights : bool
        Whether the sum of the weights is private.
    shape : (int, int)
        Of `X`.

    Notes
    -----
    **Guarantees.** The results for a row depend on that row, its class and public or released tables alone: not on its
    position, on other rows or on threads. Sums of squares are float64.
    """

    def __init__(self, X: np.ndarray, codes: np.ndarray, box: Box, weights: np.ndarray | None = None) -> None:
        self.X, self.codes, self.box, self.shape = X, codes, box, X.shape
        self.have_weights = weights is not None
        self.weights = weight_of_each(1.0 if weights is None else weights, len(X))
        self.dtype = box.dtype_for(X)

    def residuals(self, centers: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield positions, and the scaled rows less the centers of their classes, of shape (C, d).

        The array is used again for the next block. It has as many rows as a multiple of 6, and a column more than a
        product reads; both are zero beyond the rows.
        """
        n, d = self.shape
        room = np.zeros((min(ROWS_AT_ONCE, -(-n // ROWS) * ROWS), room_for(d, self.dtype)), self.dtype)
        centers = centers.astype(self.dtype)
        for start in range(0, n, ROWS_AT_ONCE):
            where = slice(start, min(start + ROWS_AT_ONCE, n))
            rows = room[: where.stop - start, :d]
            self.box.scale(self.X[where], rows)
            rows -= centers[self.codes[where]] if len(centers) > 1 else centers
            room[len(rows) :] = 0.0
            yield where, room[: -(-len(rows) // ROWS) * ROWS]

    def norms(self, centers: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield positions, and the norms of the residuals."""
        d = self.shape[1]
        for where, rows in self.residuals(centers):
            yield where, norms_of(rows[: where.stop - where.start, :d])


def norms_of(rows: np.ndarray) -> np.ndarray:
    """Return the norm of each row, of float64."""
    return np.asarray(np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1)))


class RowProduct:
    """A table that rows are multiplied with, each for itself.

    Parameters
    ----------
    table : ndarray of shape (d, k)
    dtype : type
        Of the rows.
    """

    def __init__(self, table: np.ndarray, dtype: Any) -> None:
        self.depth, self.width = table.shape
        panel = panel_width(dtype)
        self._packed = np.zeros((-(-self.width // panel) * self.depth, panel), dtype)
        pack(np.ascontiguousarray(table, dtype), self._packed)
        self._room = np.zeros((0, room_for(self.width, dtype)), dtype)

    def multiply(self, rows: np.ndarray) -> np.ndarray:
        """Return the product of rows, a multiple of 6 of them; it is overwritten by the next one."""
        if len(self._room) < len(rows):
            self._room = np.zeros((len(rows), self._room.shape[1]), self._room.dtype)
        out = self._room[: len(rows)]
        multiply(rows, self._packed, self.depth, self.width, out)
        return out[:, : self.width]


N_ITERATIONS = 20
"""Newton steps; with 20, means and deviations are met within 1e-3 of the width wherever they can be."""

_MARGIN, _LEAST = 1e-3, 1e-3
_FARTHEST, _WIDEST = 4.0, 3.0


def clipped_moments(location: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of Gaussian variables that are clipped to [-1/2, 1/2].

    Parameters
    ----------
    location, scale : ndarray
        Mean and standard deviation before clipping.
    """
    low, high = (-0.5 - location) / scale, (0.5 - location) / scale
    below, above = ndtr(low), ndtr(-high)
    inside = 1.0 - below - above
    at_low, at_high = _density(low), _density(high)
    mean = location * inside + scale * (at_low - at_high) + 0.5 * (above - below)
    square = (location**2 + scale**2) * inside + 0.25 * (above + below)
    square += scale * ((location - 0.5) * at_low - (location + 0.5) * at_high)
    return mean, np.maximum(square - mean**2, 0.0)


def before_clipping(mean: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return location and scale of Gaussian variables that have these moments after clipping to [-1/2, 1/2].

    If no clipped Gaussian variable has them, the result is an approximation. Locations lie within 4 of the center, and
    scales are at most 3.

    Parameters
    ----------
    mean, deviation : ndarray
        Means outside of the interval count as at its ends, and deviations as at most nearly the largest for their mean.
    """
    mean = np.clip(mean, -0.5 + _MARGIN, 0.5 - _MARGIN)
    largest = 0.98 * (0.25 - mean**2)
    variance = np.clip(deviation**2, _LEAST**2, largest)
    location, scale = mean.copy(), np.sqrt(variance)
    for _ in range(N_ITERATIONS):
        _, found = clipped_moments(location, scale)
        growth = np.clip(np.sqrt(variance / np.maximum(found, _LEAST**4)), 0.5, 2.0)
        scale = np.clip(scale * growth**0.7, _LEAST, _WIDEST)
        reached, _ = clipped_moments(location, scale)
        inside = ndtr((0.5 - location) / scale) - ndtr((-0.5 - location) / scale)
        step = np.clip((mean - reached) / np.maximum(inside, 0.02), -0.5, 0.5)
        location = np.clip(location + 0.7 * step, -_FARTHEST, _FARTHEST)
    return location, scale


def _density(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi))


_ROWS = 4096


class NoisyMoments(NamedTuple):
    """Moments of the components of all classes in k coordinates, and the standard deviations of their noise.

    Attributes
    ----------
    counts : ndarray of shape (C, K)
    sums : ndarray of shape (C, K, k)
    squares : ndarray of shape (C, K, k, k)
        Sums of x x', symmetric.
    of_counts, of_sums, of_squares : float
        Standard deviations: of a count, of an entry of a sum, and of a diagonal entry of a second moment, whose other
        entries have half of that variance.
    radius : float
        No coordinates are longer.
    """

    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    of_counts: float
    of_sums: float
    of_squares: float
    radius: float


class ClassMixture(NamedTuple):
    """Components of each class: rows are their center plus factors times normals, scaled and clipped to [-1/2, 1/2].

    Attributes
    ----------
    weights : ndarray of shape (C, K)
        Of the components within their class.
    locations, scales : ndarray of shape (C, K, d), float32
        Of each column before it is clipped; a scale multiplies what the factors give.
    factors : ndarray of shape (C, K, k, k), float32
        Roots of the covariances of the coordinates.
    directions : ndarray of shape (k, d), float32
        Orthonormal.
    """

    weights: np.ndarray
    locations: np.ndarray
    scales: np.ndarray
    factors: np.ndarray
    directions: np.ndarray

    def draw(self, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a row of each of the classes, before they are clipped."""
        k, d = self.directions.shape
        n_components = self.weights.shape[1]
        below = self.weights.cumsum(axis=1)
        parts = (rng.random(len(classes))[:, None] >= below[classes]).sum(axis=1)
        groups = classes * n_components + np.minimum(parts, n_components - 1)
        order = np.argsort(groups, kind="stable")
        made = np.empty((len(classes), d), np.float32)
        ends = np.cumsum(np.bincount(groups, minlength=self.weights.size))
        for j, (end, size) in enumerate(zip(ends, np.diff(ends, prepend=0), strict=True)):
            if size == 0:
                continue
            at = divmod(j, n_components)
            loadings = self.factors[at].T @ self.directions
            loadings *= self.scales[at]
            for start in range(end - size, end, _ROWS):
                where = order[start : min(start + _ROWS, end)]
                made[where] = rng.standard_normal((len(where), k), np.float32) @ loadings
                made[where] += self.locations[at]
        return made


def mixture_of(moments: NoisyMoments, class_means: np.ndarray, directions: np.ndarray) -> ClassMixture:
    """Return the mixture of noisy moments: post-processing.

    Parameters
    ----------
    moments : NoisyMoments
        About the means of the classes, along the directions.
    class_means : ndarray of shape (C, d)
    directions : ndarray of shape (k, d)
    """
    n_classes, n_components = moments.counts.shape
    k, d = directions.shape
    shape = n_classes, n_components
    weights = _weights(moments.counts, moments.of_counts)
    locations, scales = (np.empty((*shape, d), np.float32) for _ in range(2))
    factors = np.empty((*shape, k, k), np.float32)
    for at in np.ndindex(shape):
        count = float(np.maximum(moments.counts[at], max(moments.of_counts, 1.0)))
        mean = shrunk_mean(moments.sums[at] / count, moments.of_sums / count, moments.radius)
        covariance = moments.squares[at] / count - np.outer(mean, mean)
        factors[at] = factor_of(covariance, moments.of_squares / count, moments.radius)
        deviation = np.sqrt(((factors[at].T.astype(np.float64) @ directions) ** 2).sum(axis=0))
        location, scale = before_clipping(class_means[at[0]] + mean @ directions, deviation)
        locations[at], scales[at] = location, scale / np.maximum(deviation, 1e-9)
    return ClassMixture(weights, locations, scales, factors, directions.astype(np.float32))


def shrunk_mean(mean: np.ndarray, noise: float, radius: float) -> np.ndarray:
    """Return a mean shrunk by the size of its noise (James & Stein 1961), no longer than the radius."""
    square = float(mean @ mean)
    if square == 0.0:
        return mean
    factor = max(0.0, 1.0 - len(mean) * noise**2 / square)
    return np.asarray(mean * min(factor, radius / math.sqrt(square)))


def shrunk_by_blocks(noisy: np.ndarray, errors: np.ndarray, width: int) -> np.ndarray:
    """Return rows shrunk by the size of their noise, in blocks of columns of doubling width.

    A block is multiplied by S / (S + error**2), where S is the mean square of all rows there minus that of their noise.

    Parameters
    ----------
    noisy : ndarray of shape (C, m)
    errors : ndarray of shape (C,)
        Standard deviations of the noise of the rows.
    width : int
        Of the first block.
    """
    made, weights, start = noisy.copy(), (errors.min() / errors) ** 4, 0
    while start < noisy.shape[1]:
        block = made[:, start : start + width]
        signal = max(0.0, float(weights @ ((block**2).mean(axis=1) - errors**2) / weights.sum()))
        block *= (signal / (signal + errors**2))[:, None]
        start, width = start + width, 2 * width
    return made


def factor_of(covariance: np.ndarray, noise: float, radius: float) -> np.ndarray:
    """Return a root of a noisy covariance matrix: eigenvalues below the edge of the noise are replaced by their mean.

    Parameters
    ----------
    covariance : ndarray of shape (k, k)
        Symmetric.
    noise : float
        Standard deviation of the noise on the diagonal, sqrt(2) times that off it: its eigenvalues lie within sqrt(2 k)
        of it as k grows.
    radius : float
        No eigenvalue is larger than its square.

    Returns
    -------
    factor : ndarray of shape (k, k)
        ``factor @ factor.T`` is the covariance.
    """
    values, vectors = np.linalg.eigh(covariance)
    below = values <= noise * math.sqrt(2.0 * len(values))
    if below.any():
        values[below] = values[below].mean()
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, radius**2)))


def _weights(counts: np.ndarray, noise: float) -> np.ndarray:
    """Return the fractions of components; equal ones if no count is distinguishable from the noise."""
    kept = np.where(counts > 2.0 * noise, counts, 0.0)
    kept[kept.sum(axis=1) == 0.0] = 1.0
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))
