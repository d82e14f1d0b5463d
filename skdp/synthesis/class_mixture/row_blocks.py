"""Rows between public bounds, read block by block, and their products with a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.weights import weight_of_each
from skdp._kernels.tiles import ROWS, multiply, pack, panel_width, room_for

ROWS_AT_ONCE = 340 * ROWS
"""Rows that are read at once: a multiple of the height of a tile."""

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
        """Write rows, moved between the bounds and scaled to [-1/2, 1/2], to `out`, of float32 or float64."""
        with np.errstate(all="ignore"):  # a warning would reveal a cell
            np.subtract(X, self.low.astype(out.dtype), out=out, casting="unsafe")
            np.divide(out, self.width.astype(out.dtype), out=out)
        np.clip(out, 0.0, 1.0, out=out)
        out -= 0.5

    def restore(self, rows: np.ndarray) -> None:
        """Bring rows back, in place: those beyond the bounds are moved to them."""
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

    Notes
    -----
    **Guarantees.** What is made of a row depends on that row, its class and public or released tables alone: not on its
    place, on the rows beside it or on threads. Sums of squares are float64.
    """

    def __init__(self, X: np.ndarray, codes: NDArray[np.int64], box: Box, weights: np.ndarray | None = None) -> None:
        self.X, self.codes, self.box = X, codes, box
        self.have_weights = weights is not None
        self.weights = weight_of_each(1.0 if weights is None else weights, len(X))
        self.dtype = box.dtype_for(X)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.X.shape
        return n, d

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
