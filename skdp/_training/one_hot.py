"""Linear models over one-hot rows: a level of each block of columns, with public weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp._kernels import one_hot as kernel
from skdp._training.linear import n_segments
from skdp._training.optimizers import Vector

_CELLS = 256  # of a code, which is a byte where it can be


@dataclass(frozen=True)
class Blocks:
    """Public form of one-hot rows: in each block one column is 1, all others are 0.

    Attributes
    ----------
    widths : tuple of int
        Columns of each block, the levels.
    """

    widths: tuple[int, ...]

    @property
    def n_columns(self) -> int:
        return sum(self.widths)

    @cached_property
    def first_block(self) -> NDArray[np.int64]:
        """Blocks of each code: consecutive ones share a byte as long as it has room for all their combinations."""
        first, cells = [0], 1
        for block, width in enumerate(self.widths):
            if cells > 1 and cells * width > _CELLS:
                first.append(block)
                cells = 1
            cells *= width
        return np.array([*first, len(self.widths)])

    @cached_property
    def first_cell(self) -> NDArray[np.int64]:
        """First cell of each code, of shape (n_codes + 1,)."""
        ends = zip(self.first_block[:-1], self.first_block[1:], strict=True)
        return np.cumsum([0, *(math.prod(self.widths[low:high]) for low, high in ends)])

    @property
    def code_dtype(self) -> Any:
        return np.uint8 if int(np.diff(self.first_cell).max()) <= _CELLS else np.uint32

    def empty_codes(self, n_rows: int) -> NDArray[Any]:
        """Return codes of so many rows, not written yet."""
        return np.empty((len(self.first_cell) - 1, n_rows), self.code_dtype)

    def encode(self, levels: Sequence[NDArray[np.integer]], codes: NDArray[Any]) -> None:
        """Write `codes`, of shape (n_codes, n_rows); ``levels[b]`` are those of block b, all within its width."""
        for code, low, high in zip(codes, self.first_block[:-1].tolist(), self.first_block[1:].tolist(), strict=True):
            code[:] = levels[low]
            for block in range(low + 1, high):
                code *= code.dtype.type(self.widths[block])
                np.add(code, levels[block], out=code, casting="unsafe")


@dataclass(frozen=True, eq=False)
class OneHotRows:
    """Rows as codes.

    Attributes
    ----------
    blocks : Blocks
    codes : ndarray of shape (n_codes, n_rows)
        See `Blocks.encode`.
    n_features : int
        Columns of the table that the rows were made of.
    """

    blocks: Blocks
    codes: NDArray[Any]
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """Of that table."""
        return self.codes.shape[1], self.n_features

    @property
    def dtype(self) -> Any:
        """Of the arithmetic."""
        return np.dtype(np.float64)


@dataclass(frozen=True)
class OneHotGeometry:
    """Public weights of the blocks, and of the intercept.

    In each block the row is projected so that its entries sum to zero, which no score can tell as long as parameters of
    a block sum to zero too. A level of a block of k levels and weight w then has the squared norm w**2 (1 - 1 / k),
    whichever it is, so that all rows have one norm, which is made 1, the intercept's entry included.

    Attributes
    ----------
    blocks : Blocks
    weights : tuple of float
        Of the blocks. They need no scale: all are divided by the norm.
    intercept : float
        Entry of the intercept on that scale, 0 for none.
    """

    blocks: Blocks
    weights: tuple[float, ...]
    intercept: float

    @property
    def fit_intercept(self) -> bool:
        return self.intercept > 0.0

    @cached_property
    def unit(self) -> float:
        """What weights and intercept are multiplied by, so that rows have norm 1."""
        squares = (w * w * (1.0 - 1.0 / k) for w, k in zip(self.weights, self.blocks.widths, strict=True))
        return 1.0 / math.sqrt(math.fsum([*squares, self.intercept**2]))

    @property
    def icpt(self) -> float:
        """Entry of the intercept in rows of norm 1."""
        return self.unit * self.intercept

    @cached_property
    def entries(self) -> NDArray[np.float64]:
        """Entry of each block in rows of norm 1, before the projection."""
        return self.unit * np.array(self.weights)

    @property
    def width(self) -> int:
        """Parameters of one output."""
        return self.blocks.n_columns + int(self.fit_intercept)

    @cached_property
    def entries_of_columns(self) -> NDArray[np.float64]:
        """Entry of the block of each column."""
        return np.repeat(self.entries, self.blocks.widths)

    @cached_property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of each number that `centred` makes of independent ones of standard deviation 1."""
        widths = np.repeat(self.blocks.widths, self.blocks.widths)
        return self.entries_of_columns * np.sqrt(1.0 - 1.0 / widths)

    def centred(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project numbers of all columns, the last axis, so that those of each block sum to zero, times its entry."""
        widths = np.array(self.blocks.widths)
        means = np.add.reduceat(columns, np.cumsum([0, *widths[:-1]]), axis=-1) / widths
        return (columns - np.repeat(means, widths, axis=-1)) * self.entries_of_columns


class OneHotModel:
    """One-hot rows, labels and weights of a linear model, ready for clipped gradient sums.

    Parameters
    ----------
    rows : OneHotRows
    labels : ndarray of shape (n,)
        Numbers of the classes, from 0.
    weights : ndarray of shape (n,) or float
        Act inside the clip; 0 makes a row a null record.
    n_outputs : int
        1 for the logistic loss (two classes), else the number of classes.
    geometry : OneHotGeometry
    n_threads : int
        Number of threads. The result does not depend on it.

    Notes
    -----
    **Guarantees.** A row adds at most C (1 + 8 u), with u = 2**-53, and exactly nothing if its weight is 0.

    Proof. Let P be the orthogonal projection onto vectors that sum to zero in each block, the identity at the
    intercept, and u = P D e the projected row: e has a 1 for each level, D holds entries. The gradient of a row at
    parameters P theta is r u', with r the derivative of the loss by the scores, and its norm |r| |u| is that of r, as
    all rows have norm 1. The residual is clipped to ``C / LENGTH``, where `LENGTH` is 1 with room for the rounding of
    the norm and of products. What a row adds to histograms is its clipped residual, once in each block, and sums are
    P D times those of all rows: by linearity the same as the sum of the clipped gradients r u'. So one row moves the
    sum by at most C. The release adds isotropic noise to this sum, also along the directions that P removes, and the
    scores of the next step are taken at P theta: a function of the release. (Noise that is projected without the sum
    would publish the part of the sum that P removes.)
    """

    def __init__(
        self,
        rows: OneHotRows,
        labels: NDArray[np.int64],
        weights: NDArray[np.floating] | float,
        n_outputs: int,
        geometry: OneHotGeometry,
        *,
        n_threads: int = 1,
    ) -> None:
        self.n_rows, self.n_columns = rows.shape[0], rows.blocks.n_columns
        self.n_outputs, self.geometry = n_outputs, geometry
        self._codes, self._blocks = rows.codes, rows.blocks
        self._labels = labels.astype(np.float64)
        self._weights = np.broadcast_to(np.asarray(weights, np.float64), (self.n_rows,)).copy()
        self._widths = np.array(rows.blocks.widths)
        self._length = 1.0 + (self.n_columns + n_outputs + 16) * 2.0**-52
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def n_parameters(self) -> int:
        return self.n_outputs * self.geometry.width

    def clipped_gradient_sum(self, theta: Vector, rows: NDArray[np.int64] | None, max_norm: float) -> Vector:
        """Sum of clipped gradients over `rows` (None: all), of shape (p,): an output's weights, then its intercept."""
        geometry, blocks = self.geometry, self._blocks
        table = theta.reshape(self.n_outputs, -1).astype(np.float64, copy=False)
        first_cell, n_cells = blocks.first_cell[:-1], int(blocks.first_cell[-1])
        tables = np.empty((self.n_outputs, n_cells))
        for k, coefs in enumerate(geometry.centred(table[:, : self.n_columns])):
            kernel.write_tables(coefs, self._widths, blocks.first_block, tables[k])
        bias = table[:, -1].copy() if geometry.fit_intercept else np.zeros(self.n_outputs)
        n = self.n_rows if rows is None else len(rows)
        parts = n_segments(n, self.n_outputs * n_cells)
        # One histogram per segment, so that threads never write to the same memory.
        histograms, icpts = np.zeros((parts, self.n_outputs, n_cells)), np.zeros((parts, self.n_outputs))

        def add_segment(segment: int) -> None:
            start, stop = n * segment // parts, n * (segment + 1) // parts
            kernel.add_rows(
                self._codes, rows, first_cell, tables, self._labels, self._weights, bias, self._length, max_norm,
                geometry.icpt, start, stop, histograms[segment], icpts[segment],
            )  # fmt: skip

        if self._pool is None or parts == 1:
            for segment in range(parts):
                add_segment(segment)
        else:
            list(self._pool.map(add_segment, range(parts)))  # the kernels release the GIL; `list` raises errors
        sums = np.zeros((self.n_outputs, self.n_columns))
        for k, histogram in enumerate(histograms.sum(axis=0)):
            kernel.add_margins(histogram, self._widths, blocks.first_block, sums[k])
        total = geometry.centred(sums)
        if geometry.fit_intercept:
            total = np.hstack([total, icpts.sum(axis=0)[:, None]])
        return total.ravel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def one_hot_scores(rows: OneHotRows, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores, of shape (n_samples, n_outputs), of one-hot rows; `coef` has the shape (n_outputs, n_columns)."""
    blocks, n = rows.blocks, rows.shape[0]
    scores = np.zeros((len(coef), n))
    table = np.empty(int(blocks.first_cell[-1]))
    for k, each in enumerate(coef):
        kernel.write_tables(each, np.array(blocks.widths), blocks.first_block, table)
        kernel.add_scores(rows.codes, blocks.first_cell[:-1], table, scores[k])
    return scores.T


__all__ = ["Blocks", "OneHotGeometry", "OneHotModel", "OneHotRows", "one_hot_scores"]
