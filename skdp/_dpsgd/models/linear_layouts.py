"""Linear models of rows that are stored by columns and used once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.rows import check_finite
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel, Model, run_segments
from skdp._kernels import linear
from skdp._kernels import linear_layouts as kernel
from skdp._kernels.linear import N_FACTS, add_all_columns
from skdp._kernels.linear_layouts import add_sparse_products, sparse_scores
from skdp._kernels.threads import blas_threads, single_threaded_blas

MOST_PARAMETERS = 2048
"""Parameters up to which a tile of rows stays in cache, and products are too small for BLAS."""


_BLOCK_ROWS = 1 << 13  # of which all that is known beside their features stays in cache between two kernels


class ColumnModel(Model):
    """Rows, labels and weights of a linear classifier, for one sum over all of them.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64, Fortran order
    labels : ndarray of shape (n,)
        Numbers of the classes, from 0.
    weights : ndarray of shape (n,) or float
        In [0, 1]. They multiply clipped gradients; 0 makes a row a zeroed-out record.
    n_outputs : int
        1 for the logistic loss (two classes), else the number of classes.
    geometry : LinearGeometry
    names : list of str or None
        Names of the columns, for errors.

    Notes
    -----
    **Guarantees.** As of `skdp._dpsgd.models.linear.LinearModel`: a row adds at most C (1 + 8 u), and exactly
    nothing if its weight is 0. A row that holds NaN or infinity is rejected.

    Proof. As there, with u = 2**-53: it remains to show that the length of a row as computed is at least its norm
    ``|u|``. A root of d squares has a relative error of at most (d / 2 + 3) u, divided by the largest number or not.
    The product with the scale has u, and the root of its square plus that of the intercept 3 u more: of these squares
    that of the intercept, if there is one, is a normal number, so that one that underflows beside it is less than u of
    the sum. All this is less than half of the 2 (d + K + 16) u by which the length is then taken longer, which leaves
    room for the norm of K residuals and the clip factor. The length is a double and not rounded to the dtype of X.
    """

    def __init__(
        self,
        X: Any,
        labels: Any,
        weights: NDArray[np.floating] | float,
        n_outputs: int,
        geometry: LinearGeometry,
        names: list[str] | None = None,
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.n_outputs, self.geometry, self._names = n_outputs, geometry, names
        self._X, self._labels = np.ascontiguousarray(X.T), labels
        self._weights = np.atleast_1d(np.asarray(weights, X.dtype))

    def clipped_gradient_sum(self, theta: np.ndarray, rows: None, max_norm: float) -> NDArray[np.float64]:
        """Sum of clipped gradients over all rows, of shape (p,): an output's weights, then its intercept."""
        if rows is not None:
            raise ValueError("`rows` must be None, because the column layout sums over all rows.")
        table, geometry, dtype = theta.reshape(self.n_outputs, -1), self.geometry, self._X.dtype
        total = np.zeros((self.n_outputs, self.n_features + 1))
        weights = np.ascontiguousarray(table[:, : self.n_features], dtype)
        bias = table[:, -1].astype(np.float64) if geometry.icpt else np.zeros(self.n_outputs)
        room = 1.0 + (self.n_features + self.n_outputs + 16) * 2.0**-52
        public = geometry.radius, geometry.unit, geometry.icpt, float(np.finfo(dtype).tiny), room
        several = self.n_outputs > 1 or None
        step, n_null = min(self.n_rows, _BLOCK_ROWS), 0
        facts = np.empty((N_FACTS, step))
        for low in range(0, self.n_rows, step or 1):
            m = min(step, self.n_rows - low)
            n_null += kernel.facts_by_columns(self._X, low, m, self._labels, self._weights, *public, *facts)
            add_all_columns(
                self._X, low, facts, None, None, several, weights, bias, max_norm, geometry.icpt, 0, m, total
            )
        if n_null:  # NaN and infinity, or a norm beyond the largest number
            check_finite(self._X.T, self._names)
        return (total if geometry.icpt else total[:, :-1]).ravel()


_BLOCK = 128  # rows of one product; more rows would need more slack for rounding
_BLOCK_VALUES = 1 << 21  # numbers in the rows of one product: it stays in cache
_LEAST_BLOCK = 8
_LEAST_OUTPUTS, _LEAST_SIZE = 6, 1 << 11  # from here on products are faster, in float64 too
_PART_BLOCKS = 8  # least blocks of a part of the rows, which one thread adds up
_MAX_PARTS = 32
_MAX_PART_VALUES = 1 << 22  # numbers in the sums of all parts, if these are more than two


class _Scratch(NamedTuple):
    """What one thread works on: rows of a block as in X and as multiplied, their scores, and the sum of the block."""

    taken: np.ndarray
    cast: np.ndarray
    scores: np.ndarray
    product: np.ndarray


class WideLinearModel(LinearModel):
    """A linear classifier with many parameters: scores and sums are matrix products over blocks of rows.

    Rows of a CSR matrix cost their non-zero entries; their products and sums are float64.

    Parameters
    ----------
    X, labels, weights, n_outputs, geometry, n_threads
        As for `LinearModel`. Products have the threads of BLAS.
    dtype : dtype
        Of the products of dense rows: that of X, or float64. Where a neighbor's rows do not keep their places, as
        under ``add_remove``, it must be float64.

    Notes
    -----
    **Guarantees.** If all other rows keep their places, a row changes the sum of its block by at most C, rounding
    included, and no bit of the sums of other blocks. Its weight 0, NaN or infinity in it make it add exactly nothing.

    Proof. The gradient of row i is clipped to C' < C. It is the matrix g_i = c_i x_i', where c_i are the clipped
    residuals times the scale of the row, rounded to the dtype of the products, and x_i is the row as it is in X; and
    beside it the intercept's part, in float64. Rounding c_i lengthens g_i by 1 + u at most, with u the unit roundoff;
    numbers that are not normal are replaced by 0. So \\|g_i\\| is at most C' (1 + u) (1 + 8 v), with v = 2**-53 and the
    proof of `LinearModel`.

    An entry of the sum of a block is a sum of b products. Whatever the order of the sum, and with or without fused
    operations, each product goes through b roundings at most: the entry is off by at most gamma times the sum of the
    magnitudes of its products, gamma = b u / (1 - b u) (Higham 2002, section 4.2), and by 2 b times the smallest normal
    number for results that are not normal. As matrices, the magnitudes of g_i have the norm of g_i. So the error of a
    block has a norm of at most gamma b times the longest \\|g_i\\|, and 2 b sqrt(K d) times the smallest normal number
    for K outputs and d columns. The sums of two neighbors are rounded each, so one row changes the sum by at most
    C' (1 + u) (1 + 8 v) (1 + 2 b gamma) + 4 b sqrt(K d) tiny, which is C by the choice of C'.

    The score of a row is a function of the row, of the parameters, and of its place in a block of its size: BLAS runs
    through the same operations whatever numbers are in the other rows. So no other gradient changes. Under
    ``add_remove`` a row less moves all rows behind it: their scores and sums are rounded otherwise, in float64 by some
    1e-10 of C for a million rows. For this, as for the rounding of sums of blocks, which are float64, the noise has
    room (`skdp.mechanisms.GaussianMechanism`).
    """

    _multiplies_rows = True

    def __init__(
        self,
        X: Any,
        labels: NDArray[np.int64],
        weights: NDArray[np.floating] | float,
        n_outputs: int,
        geometry: LinearGeometry,
        *,
        dtype: Any,
        n_threads: int = 1,
    ) -> None:
        if isinstance(X, np.ndarray):
            n_threads = max(n_threads, blas_threads())  # BLAS's share, which it does not take itself
        else:
            dtype = np.float64
        super().__init__(X, labels, weights, n_outputs, geometry, by_lot=False, n_threads=n_threads)
        if self._dense:
            self._facts = np.ascontiguousarray(self._facts.T)  # those of a row side by side
        self._dtype, d = np.dtype(dtype), self.n_features
        self._block = min(_BLOCK, max(_LEAST_BLOCK, _BLOCK_VALUES // d))
        limits = np.finfo(self._dtype)
        self._tiny = float(limits.tiny)
        b, u = self._block, 0.5 * float(limits.eps)
        gamma = b * u / (1.0 - b * u)
        # C' is (C - lost) / slack; the proof is above. The last factor is for what is computed in float64.
        self._slack = (1.0 + u) * (1.0 + 2.0 * b * gamma) * (1.0 + 32.0 * 2.0**-53)
        self._lost = 4.0 * b * math.sqrt(n_outputs * d) * self._tiny
        self._spare: list[_Scratch] = []

    def clipped_gradient_sum(
        self, theta: np.ndarray, rows: np.ndarray | None, max_norm: float, counts: np.ndarray | None = None
    ) -> np.ndarray:
        """See `LinearModel`. Where there are `counts`, products must be float64."""
        d, icpt = self.n_features, self.geometry.icpt
        table = theta.reshape(self.n_outputs, -1)
        weights = table[:, :d].astype(self._dtype).T if self._dense else table[:, :d].T.astype(self._dtype, order="C")
        bias = table[:, -1].astype(np.float64) if icpt else np.zeros(self.n_outputs)
        # Blocks of rows are products of a fixed size; some of them are a part, which one thread adds up.
        n = self.n_rows if rows is None else len(rows)
        n_blocks = -(-n // self._block)
        parts = n_parts(n_blocks, weights.size)
        # One sum per part, so that threads never write to the same memory.
        sums, icpt_sums = np.zeros((parts, d, self.n_outputs)), np.zeros((parts, self.n_outputs))
        clip = max(0.0, (max_norm - self._lost) / self._slack)

        def add_part(part: int) -> None:
            try:
                scratch = self._spare.pop()  # one step: with some builds of Python another thread may be in between
            except IndexError:
                scratch = self._make_scratch()
            with np.errstate(all="ignore"):  # a row that overflows is muted, and a warning would reveal it
                for block in range(n_blocks * part // parts, n_blocks * (part + 1) // parts):
                    start = block * self._block
                    # Scores of the block, then clipped residuals in their place, then products with the rows.
                    scores = scratch.scores[: n - start]
                    chosen = self._score(rows, start, weights, scratch, scores)
                    linear.clip_scores(
                        scores, self._facts, rows, counts, start, self._several, bias, clip, icpt, self._tiny,
                        icpt_sums[part],
                    )  # fmt: skip
                    if chosen is None:
                        X = self._X
                        add_sparse_products(X.data, X.indices, X.indptr, rows, start, scores, sums[part])
                    else:
                        np.matmul(chosen.T, scores, out=scratch.product)
                        sums[part] += scratch.product
            self._spare.append(scratch)

        with single_threaded_blas():
            run_segments(self._pool, parts, add_part)
        total = sums[0] if parts == 1 else sums.sum(axis=0)  # in their order, whichever thread ended first
        result = np.empty_like(table, np.float64)
        result[:, :d] = total.T
        if icpt:
            result[:, d] = icpt_sums.sum(axis=0)
        return result.ravel()

    def _score(
        self, rows: NDArray[np.int64] | None, start: int, weights: np.ndarray, scratch: _Scratch, scores: np.ndarray
    ) -> np.ndarray | None:
        """Write the scores of the block that starts at `start`; return its rows if they are dense."""
        if not self._dense:
            sparse_scores(self._X.data, self._X.indices, self._X.indptr, rows, start, weights, scores)
            return None
        chosen = self._take(rows, start, scratch)
        np.matmul(chosen, weights, out=scores)
        return chosen

    def _make_scratch(self) -> _Scratch:
        b, k = self._block, self.n_outputs
        d = self.n_features if self._dense else 0  # no rows are copied, and sums are added to directly
        return _Scratch(
            np.empty((b, d), self._X.dtype), np.empty((b, d), self._dtype), np.empty((b, k), self._dtype),
            np.empty((d, k), self._dtype),
        )  # fmt: skip

    def _take(self, rows: NDArray[np.int64] | None, start: int, scratch: _Scratch) -> np.ndarray:
        """Rows of the block that starts at `start`, in the dtype of products: a view of X where that serves."""
        if rows is None:
            block = self._X[start : start + self._block]
        else:
            some = rows[start : start + self._block]
            block = np.take(self._X, some, axis=0, out=scratch.taken[: len(some)], mode="clip")
        if block.dtype == self._dtype:
            return block
        np.copyto(scratch.cast[: len(block)], block)
        return scratch.cast[: len(block)]


def is_wide(n_features: int, n_outputs: int) -> bool:
    """Whether a linear model of this public size is faster by matrix products."""
    return n_outputs >= _LEAST_OUTPUTS and n_features * n_outputs >= _LEAST_SIZE


def n_parts(n_blocks: int, size: int) -> int:
    """Number of parts of a sum of `size` numbers over blocks of rows, from these only: threads change no result."""
    return max(1, min(n_blocks // _PART_BLOCKS, _MAX_PARTS, max(2, _MAX_PART_VALUES // size)))
