"""Linear models over one-hot rows: a level of each block of columns, with public weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._dpsgd.models.linear import SpanModel, UnitLayout, UnitLot, blocks_of, n_segments, run_segments, unit_room
from skdp._kernels import losses
from skdp._kernels import one_hot as kernel
from skdp._kernels.linear import unit_factors

_CELLS = 256  # of a code, which is a byte where it can be
_ROWS = 2048  # of a block, which stays in cache


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
    def level_counts(self) -> NDArray[np.int64]:
        """`widths` as an array."""
        return np.array(self.widths)

    @cached_property
    def first_block(self) -> NDArray[np.int64]:
        """Blocks of each code: consecutive ones share a byte as long as it has room for all their combinations."""
        first, cells = [0], 1
        for block, width in enumerate(self.widths):
            if block > first[-1] and cells * width > _CELLS:
                first.append(block)
                cells = 1
            cells *= width
        return np.array([*first, len(self.widths)])

    @cached_property
    def first_cell(self) -> NDArray[np.int64]:
        """First cell of each code, of shape (n_codes + 1,)."""
        ends = zip(self.first_block[:-1], self.first_block[1:], strict=True)
        return np.cumsum([0, *(math.prod(self.widths[low:high]) for low, high in ends)])

    def empty_codes(self, n_rows: int) -> np.ndarray:
        """Return an uninitialized array for the codes of the rows."""
        dtype = np.uint8 if int(np.diff(self.first_cell).max()) <= _CELLS else np.uint32
        return np.empty((len(self.first_cell) - 1, n_rows), dtype)

    def encode(self, levels: Sequence[NDArray[np.integer]], codes: np.ndarray) -> None:
        """Write `codes`, of shape (n_codes, n_rows); ``levels[b]`` are those of block b, all within its width."""
        for code, low, high in zip(codes, self.first_block[:-1].tolist(), self.first_block[1:].tolist(), strict=True):
            code[:] = levels[low]
            for block in range(low + 1, high):
                # A width of 256 is no byte and becomes 0, and then all codes before are 0.
                np.multiply(code, np.array(self.widths[block]).astype(code.dtype), out=code)
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
    codes: np.ndarray
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
class OneHotForm:
    """What is public of one-hot rows with weights: it holds for all rows alike.

    Attributes
    ----------
    blocks : Blocks
    weights : tuple of float
        Entry of each block.
    n_plain : int
        Number of blocks that represent plain columns, the first ones; the others are trees.
    """

    blocks: Blocks
    weights: tuple[float, ...]
    n_plain: int

    @property
    def n_free(self) -> int:
        """Columns that noise and rows compete for: trees share what rows say of the plain columns.

        Where there are none, those of one tree.
        """
        return sum(self.blocks.widths[: self.n_plain or 1])

    def with_share(self, share: float) -> OneHotForm:
        """Return the form in which the trees have this share of the squared norm, and weigh the same; so do columns."""
        weights = shared_weights(1.0 - share, share, self.n_plain, len(self.blocks.widths) - self.n_plain)
        return OneHotForm(self.blocks, tuple(weights.tolist()), self.n_plain)


def shared_weights(of_plain: float, of_trees: float, n_plain: int, n_trees: int) -> NDArray[np.float64]:
    """Return weights of blocks by which plain columns and trees have these shares of the squared norm, each evenly."""
    each = math.sqrt(of_plain / max(n_plain, 1)), math.sqrt(of_trees / n_trees)
    return np.repeat(each, [n_plain, n_trees])


def rows_of_sparse(X: Any, form: OneHotForm) -> tuple[OneHotRows, NDArray[np.bool_]]:
    """Read CSR rows as codes, and tell for which rows that is right.

    Parameters
    ----------
    X : CSR matrix of shape (n, d), its indices sorted
    form : OneHotForm
        Of d columns. It is a claim about the rows, and each is compared with it.

    Returns
    -------
    rows : OneHotRows
    fits : ndarray of shape (n,)
        Whether a row has one entry in each block, of the block's weight, and no other. It depends on that row alone.
    """
    codes, fits = form.blocks.empty_codes(X.shape[0]), np.empty(X.shape[0], np.bool_)
    blocks, weights = form.blocks, np.array(form.weights)
    kernel.encode_rows(X.data, X.indices, X.indptr, weights, blocks.level_counts, blocks.first_block, codes, fits)
    return OneHotRows(blocks, codes, X.shape[1]), fits


@dataclass(frozen=True)
class OneHotGeometry:
    """Public scaling of one-hot rows: projected, and of norm 1.

    In each block the row is projected so that its entries sum to zero, which no score can tell as long as parameters of
    a block sum to zero too. A level of a block of k levels and weight w then has the squared norm w**2 (1 - 1 / k),
    whichever it is, so that all rows have one norm, which is made 1, the intercept's entry included.

    Attributes
    ----------
    form : OneHotForm
        Its weights need no scale: all are divided by the norm.
    intercept : float
        Entry of the intercept on that scale, 0 for none.
    """

    form: OneHotForm
    intercept: float

    @property
    def blocks(self) -> Blocks:
        return self.form.blocks

    @property
    def fit_intercept(self) -> bool:
        return self.intercept > 0.0

    @cached_property
    def unit(self) -> float:
        """What weights and intercept are multiplied by, so that rows have norm 1."""
        squares = (w * w * (1.0 - 1.0 / k) for w, k in zip(self.form.weights, self.blocks.widths, strict=True))
        return 1.0 / math.sqrt(math.fsum([*squares, self.intercept**2]))

    @property
    def icpt(self) -> float:
        """Entry of the intercept in rows of norm 1."""
        return self.unit * self.intercept

    @cached_property
    def entries(self) -> NDArray[np.float64]:
        """Entry of each block in rows of norm 1, before the projection."""
        return self.unit * np.array(self.form.weights)

    @property
    def width(self) -> int:
        """Parameters of one output."""
        return self.blocks.n_columns + int(self.fit_intercept)

    @cached_property
    def entries_of_columns(self) -> NDArray[np.float64]:
        """Entry of the block of each column."""
        return np.repeat(self.entries, self.blocks.level_counts)

    @cached_property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of each number that `projected` makes of independent ones of standard deviation 1."""
        widths = self.blocks.level_counts
        return np.repeat(np.sqrt(1.0 - 1.0 / widths), widths)

    def projected(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project numbers of all columns, the last axis, so that those of each block sum to zero."""
        widths = self.blocks.level_counts
        means = np.add.reduceat(columns, np.cumsum(widths) - widths, axis=-1) / widths
        return columns - np.repeat(means, widths, axis=-1)

    def centered(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """What `projected` gives, times the entry of each block."""
        return self.projected(columns) * self.entries_of_columns


class OneHotModel(SpanModel):
    """One-hot rows, targets and weights of a linear model, ready for clipped gradient sums.

    Parameters
    ----------
    rows : OneHotRows
    targets : ndarray of shape (n,)
        Numbers of the classes from 0, or numbers.
    weights : ndarray of shape (n,) or float
        In [0, 1]. They multiply clipped gradients; 0 makes a row a zeroed-out record.
    n_outputs : int
        More than 1 for the multinomial loss alone.
    geometry : OneHotGeometry
    loss : int
        See `skdp._kernels.losses`.
    limit : float
        Of the losses that have one.
    n_threads : int
        Number of threads. The result does not depend on it.
    units : UnitLayout or None
        Units of rows, which are side by side; None where each row is its own.

    Notes
    -----
    **Guarantees.** A row adds at most C (1 + 16 u), with u = 2**-53, and exactly nothing if its weight is 0. With
    `units`, the rows of a unit together add at most C.

    Proof. Let P be the orthogonal projection onto vectors that sum to zero in each block, the identity at the
    intercept, and u = P D e the projected row: e has a 1 for each level, D holds entries. The gradient of a row at
    parameters P theta is r u', with r the derivative of the loss by the scores, and its norm \\|r\\| \\|u\\| is that of
    r, as all rows have norm 1. `losses.clip_residuals` shortens r to C, with `_lengths` in the place of 1: room for the
    rounding of the norm and of products. What a row adds to histograms is its clipped residual, once in each block, and
    sums are P D times those of all rows: by linearity the same as the sum of the clipped gradients r u'. So one row
    moves the sum by at most C. The release adds isotropic noise to this sum, also along the directions that P removes,
    and the scores of the next step are taken at P theta: a function of the release. (Noise that is projected without
    the sum would publish the part of the sum that P removes.)
    """

    def __init__(
        self,
        rows: OneHotRows,
        targets: np.ndarray,
        weights: NDArray[np.floating] | float,
        n_outputs: int,
        geometry: OneHotGeometry,
        *,
        loss: int,
        limit: float = 0.0,
        n_threads: int = 1,
        units: UnitLayout | None = None,
    ) -> None:
        self.n_rows, self.n_columns = rows.shape[0], rows.blocks.n_columns
        self.n_outputs, self.geometry = n_outputs, geometry
        self._codes, self._blocks, self._loss, self._limit = rows.codes, rows.blocks, loss, limit
        self._targets = targets.astype(np.float64)
        self._weights = np.broadcast_to(np.asarray(weights, np.float64), (self.n_rows,)).copy()
        self._lengths = np.full(_ROWS, 1.0 + (self.n_columns + n_outputs + 16) * 2.0**-52)
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None
        self.units = units
        if units is not None:
            blocks, starts, self._products = self._blocks, units.starts[: units.n_short + 1], np.empty(units.n_pairs)
            squares = geometry.entries**2
            kernel.write_products(
                self._codes, blocks.first_block, blocks.level_counts, squares, geometry.icpt, starts, self._products
            )

    def _sum_over(
        self, theta: np.ndarray, rows: Any, span: tuple[int, int], max_norm: float, counts: Any = None, lot: Any = None
    ) -> np.ndarray:
        """See `SpanModel`: of shape (p,), an output's weights, then its intercept."""
        tables, bias = self._tables(theta)
        first, n = span[0], span[1] - span[0]
        parts = n_segments(n, tables.size)
        # One histogram per segment, so that threads never write to the same memory.
        histograms, icpts = np.zeros((parts, *tables.shape)), np.zeros((parts, self.n_outputs))

        def add_segment(segment: int) -> None:
            start, stop = first + n * segment // parts, first + n * (segment + 1) // parts
            for chosen, units in blocks_of(start, stop, _ROWS, lot):
                codes, where = self._chosen(rows, chosen)
                residuals = self._clipped_residuals(codes, where, tables, bias, max_norm)
                if counts is not None:
                    residuals *= counts[chosen]
                if lot is not None:
                    residuals *= self._unit_factors(residuals, lot, units, chosen.start, max_norm)
                for k, each in enumerate(residuals):
                    kernel.add_residuals(codes, self._blocks.first_cell, each, histograms[segment, k])
                icpts[segment] += residuals.sum(axis=1)

        run_segments(self._pool, parts, add_segment)
        return self._gradients(histograms.sum(axis=0), icpts.sum(axis=0))

    def _unit_factors(
        self, residuals: NDArray[np.float64], lot: UnitLot, units: slice, low: int, max_norm: float
    ) -> NDArray[np.float64]:
        """Factors, of shape (m,), that clip the sums of units, whose rows are a block."""
        factors = np.empty(residuals.shape[1])
        starts, room = lot.starts[units.start : units.stop + 1], unit_room(self.n_columns, self.n_outputs)
        unit_factors(residuals, self._lengths, starts, lot.first[units], self._products, low, max_norm, room, factors)
        return factors

    def _tables(self, theta: np.ndarray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What each code adds to the scores, of shape (n_outputs, n_cells), and what the intercept does."""
        table, blocks = theta.reshape(self.n_outputs, -1).astype(np.float64, copy=False), self._blocks
        tables = np.empty((self.n_outputs, int(blocks.first_cell[-1])))
        for k, coefs in enumerate(self.geometry.centered(table[:, : self.n_columns])):
            kernel.write_tables(coefs, blocks.level_counts, blocks.first_block, tables[k])
        bias = table[:, -1] * self.geometry.icpt if self.geometry.fit_intercept else np.zeros(self.n_outputs)
        return tables, bias

    def _chosen(self, rows: NDArray[np.int64] | None, chosen: slice) -> tuple[np.ndarray, Any]:
        """Codes of some rows, and where these rows are."""
        if rows is None:
            return self._codes[:, chosen], chosen
        taken = np.empty((len(self._codes), chosen.stop - chosen.start), self._codes.dtype)
        kernel.take_rows(self._codes, rows, chosen.start, taken)
        return taken, rows[chosen]

    def _clipped_residuals(
        self, codes: np.ndarray, where: Any, tables: NDArray[np.float64], bias: NDArray[np.float64], max_norm: float
    ) -> NDArray[np.float64]:
        """Clipped derivatives of the loss by the scores, of shape (n_outputs, m)."""
        m = codes.shape[1]
        found = np.repeat(bias[:, None], m, axis=1)
        for k in range(self.n_outputs):
            kernel.add_scores(codes, self._blocks.first_cell, tables[k], found[k])
        if self._loss == losses.MULTINOMIAL:
            losses.multinomial_residuals(found, self._targets[where])
        else:
            losses.residuals(self._loss, found, self._targets[where], self._limit)
        losses.clip_residuals(self._loss, found, self._lengths[:m], self._weights[where], max_norm)
        return found

    def _gradients(self, histograms: NDArray[np.float64], icpts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of gradients r u' from the sums of r over the rows of each cell, and over all rows."""
        sums, blocks = np.zeros((self.n_outputs, self.n_columns)), self._blocks
        for k, histogram in enumerate(histograms):
            kernel.add_margins(histogram, blocks.level_counts, blocks.first_block, sums[k])
        total = self.geometry.centered(sums)
        if self.geometry.fit_intercept:
            total = np.hstack([total, icpts[:, None] * self.geometry.icpt])
        return total.ravel()


def one_hot_scores(rows: OneHotRows, coef: NDArray[np.float64], intercept: Any = 0.0) -> NDArray[np.float64]:
    """Scores, of shape (n_samples, n_outputs), of one-hot rows; `coef` has the shape (n_outputs, n_columns)."""
    blocks, n = rows.blocks, rows.shape[0]
    scores = np.zeros((len(coef), n))
    table = np.empty(int(blocks.first_cell[-1]))
    for k, each in enumerate(coef):
        kernel.write_tables(each, blocks.level_counts, blocks.first_block, table)
        kernel.add_scores(rows.codes, blocks.first_cell, table, scores[k])
    return scores.T + intercept
