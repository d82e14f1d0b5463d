"""Linear models: rows bound to a loss, ready for the kernels."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._dpsgd.models.bound_rows import SpanModel, UnitLayout, UnitLot, run_segments, unit_room
from skdp._kernels import linear as kernel
from skdp._kernels import linear_layouts as scaling

_SEGMENT_ROWS = 4096  # least rows of a segment
_MAX_SEGMENTS = 32
_MAX_SEGMENT_VALUES = 1 << 22  # numbers in the sums of all segments
_THREADING_PAYS = 1 << 17  # multiplications above which a sum is split
_CACHE_LINE = 64
_MAX_RECORD_LINES = 2
_MAX_COPY = 1 << 27  # bytes: more is not worth a copy of the rows
_FEW_COLUMNS = 160


@dataclass(frozen=True)
class LinearGeometry:
    """Public scaling of rows: clipped to `radius`, then shrunk so that they end in the unit ball, intercept included.

    The scaled row is ``(x, 1) / sqrt(radius**2 + 1)``, or ``x / radius`` without an intercept, so its norm is at most 1
    and a gradient of the logistic loss at most 1 (of the multinomial loss at most sqrt(2)).
    """

    radius: float
    fit_intercept: bool

    unit: float = field(init=False)
    icpt: float = field(init=False)

    def __post_init__(self) -> None:
        unit = 1.0 / math.hypot(self.radius, 1.0 if self.fit_intercept else 0.0)
        vars(self).update(unit=unit, icpt=unit if self.fit_intercept else 0.0)


class LinearModel(SpanModel):
    """Rows, labels and weights of a linear classifier, ready for clipped gradient sums.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64, C order
    labels : ndarray of shape (n,)
        Numbers of the classes, from 0.
    weights : ndarray of shape (n,) or float
        In [0, 1]. They multiply clipped gradients; 0 makes a row a null record.
    n_outputs : int
        1 for the logistic loss (two classes), else the number of classes.
    geometry : LinearGeometry
    by_lot : bool
        Whether sums over lots of rows are needed, or sums over all rows. It determines the layout of rows in memory.
    n_threads : int
        Number of threads. The result does not depend on it.
    units : UnitLayout or None
        Units of rows, which are side by side; None where each row is its own.

    Notes
    -----
    **Guarantees.** A row adds at most C (1 + 8 u), with u = 2**-53, in either dtype, and exactly nothing if its weight
    is 0 or if it holds NaN or infinity. With `units`, the rows of a unit together add at most C.

    Proof. A row adds ``clipped * scale * x`` and ``clipped * icpt``, float64 numbers with two roundings at most, of
    norm ``|clipped| |u|``. Here ``clipped`` is the residual r, a vector of K numbers, or r times ``C / (|r| LENGTH)``,
    with three more roundings, times a weight in [0, 1], which makes none of these numbers larger, as rounding keeps the
    order of numbers. It remains to show that ``|r| LENGTH`` as computed is at least ``|r| |u|``. A root of a
    sum of K squares has a relative error of at most (K / 2 + 2) u. The root of d squares in `scaling._norm` likewise
    has at most (d / 2 + 2) u, or (d / 2 + 3) u after a division by the largest number. Its scale, the hypotenuse that
    adds the intercept and the factor below have at most 6 u together. Norms below the normal numbers have lost digits
    and are replaced by the least normal number. `LENGTH` is that hypotenuse times 1 + 2 (d + K + 16) u, rounded up to
    the dtype of X. Rows with NaN or infinity get scale and weight 0, and zeros replace their values, because 0 times
    NaN is NaN.
    """

    _multiplies_rows = False  # by matrix products, which are of rows

    def __init__(
        self,
        X: Any,
        labels: NDArray[np.int64],
        weights: NDArray[np.floating] | float,
        n_outputs: int,
        geometry: LinearGeometry,
        *,
        by_lot: bool,
        n_threads: int = 1,
        units: UnitLayout | None = None,
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.units, self._by_lot = units, by_lot
        self.n_outputs, self.geometry = n_outputs, geometry
        self._dense = isinstance(X, np.ndarray)
        # Over all rows, each fact is read as one array. By lot, the four of a row share a cache line, which is that of
        # the features where these are few.
        records = _empty_records(X) if by_lot and self._dense else None
        if records is None:
            facts = np.empty((kernel.N_FACTS, self.n_rows), X.dtype)
        else:
            facts = records[:, self.n_features : self.n_features + kernel.N_FACTS].T
        facts[kernel.LABEL] = labels
        facts[kernel.WEIGHT] = weights
        room = 1.0 + (self.n_features + n_outputs + 16) * 2.0**-52  # for the errors of norms, see the proof
        _scale_rows(X, geometry.radius, geometry.unit, geometry.icpt, facts, room)
        self._X = _zero_muted_rows(X, facts[kernel.SCALE])
        if units is not None:
            self._products = _products_of_pairs(self._X, facts[kernel.SCALE], geometry.icpt, units)
        self._first_fact = 0
        if records is not None:
            records[:, : self.n_features] = self._X
            self._X, self._facts, self._first_fact = records, records, self.n_features
        else:
            self._facts = np.ascontiguousarray(facts.T) if by_lot or not self._dense else facts
        self._by_columns = self._dense and not by_lot and _pays_by_columns(X) and not self._multiplies_rows
        if self._by_columns:
            self._X = np.ascontiguousarray(self._X.T)
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    @property
    def n_parameters(self) -> int:
        return self.n_outputs * (self.n_features + self.geometry.fit_intercept)

    def sum_of_rows(self, theta: np.ndarray, max_norm: float, start: int, stop: int) -> NDArray[np.float64]:
        if self._dense and self._by_lot:
            return self._sum_over(theta, np.arange(start, stop), (0, stop - start), max_norm)
        return self._sum_over(theta, None, (start, stop), max_norm)

    def _sum_over(
        self,
        theta: np.ndarray,
        rows: NDArray[np.int64] | None,
        span: tuple[int, int],
        max_norm: float,
        counts: NDArray[np.float64] | None = None,
        lot: UnitLot | None = None,
    ) -> NDArray[np.float64]:
        """See `SpanModel`: of shape (p,), an output's weights, then its intercept."""
        table = theta.reshape(self.n_outputs, -1)
        weights = table[:, : self.n_features].astype(self._X.dtype)
        icpt = self.geometry.icpt
        bias = table[:, -1].copy() if icpt else np.zeros(self.n_outputs)
        units = None
        if lot is not None:
            units = lot.starts, lot.first, self._products, unit_room(self.n_features, self.n_outputs)
        first, n = span[0], span[1] - span[0]
        parts = n_segments(n, self.n_outputs * (self.n_features + 1))
        # One sum per segment, so that threads never write to the same memory.
        totals = np.zeros((parts, self.n_outputs, self.n_features + 1))
        X, facts = self._X, self._facts
        public = counts, units, kernel.several_outputs(self.n_outputs), weights, bias, max_norm, icpt

        def add_segment(segment: int) -> None:
            start, stop = first + n * segment // parts, first + n * (segment + 1) // parts
            if lot is not None:
                start, stop = lot.cut(start, stop)
            total = totals[segment]
            if not self._dense:
                kernel.add_sparse_rows(X.data, X.indices, X.indptr, facts, rows, *public, start, stop, total)
            elif self._by_columns:
                kernel.add_all_columns(X, 0, facts, *public, start, stop, total)
            elif rows is None:
                kernel.add_all_rows(X, facts, *public, start, stop, total)
            else:
                kernel.add_some_rows(X, facts, self._first_fact, rows, *public, start, stop, total)

        run_segments(self._pool, parts, add_segment)
        # Segments are added in their order, whichever thread ended first, so threads change no bit.
        total = totals[0] if parts == 1 else totals.sum(axis=0)
        return (total if icpt else total[:, :-1]).ravel()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _empty_records(X: NDArray[np.floating]) -> NDArray[np.floating] | None:
    """Records of shape (n, width) for a row's features and facts, each in cache lines of its own; None if not worth it.

    Rows that lie apart in memory cost their cache lines: a record of 64 bytes is one, where eleven float32 are one or
    two, and their facts another. Records are a copy of the rows, so both their width and their number are bounded.
    """
    n, per_line = len(X), _CACHE_LINE // X.itemsize
    n_lines = -(-(X.shape[1] + kernel.N_FACTS) // per_line)
    if n_lines > _MAX_RECORD_LINES or n * n_lines * _CACHE_LINE > _MAX_COPY:
        return None
    width = n_lines * per_line
    room = np.zeros(n * width + per_line, X.dtype)
    start = -room.ctypes.data % _CACHE_LINE // X.itemsize
    return room[start : start + n * width].reshape(n, width)


def _pays_by_columns(X: NDArray[np.floating]) -> bool:
    """Whether sums over all rows are faster by columns, of which a copy is made: bounded in size, as records are.

    Loops over a column of many rows vectorise, those over a row of few columns do not. Rows of many columns do as well.
    """
    return X.shape[1] <= _FEW_COLUMNS and X.nbytes <= _MAX_COPY


def n_segments(n: int, size: int) -> int:
    """Number of segments of a sum of `size` numbers over n rows, from these only: threads change no result.

    Segments are added in their order. Few rows are one segment: waking a thread would cost more than it saves.
    """
    if n * size < _THREADING_PAYS:
        return 1
    return max(1, min(n // _SEGMENT_ROWS, _MAX_SEGMENTS, _MAX_SEGMENT_VALUES // size))


def _scale_rows(
    X: Any, radius: float, unit: float, icpt: float, facts: NDArray[np.floating], room: float = 1.0
) -> None:
    public = radius, unit, icpt, float(np.finfo(X.dtype).tiny), room
    weight, scale, length = facts[kernel.WEIGHT], facts[kernel.SCALE], facts[kernel.LENGTH]
    if isinstance(X, np.ndarray):
        scaling.scale_rows(X, *public, weight, scale, length)
    else:
        scaling.scale_sparse_rows(X.data, X.indptr, *public, weight, scale, length)


def _products_of_pairs(X: Any, scale: NDArray[np.floating], icpt: float, units: UnitLayout) -> NDArray[np.float64]:
    """Inner products of pairs of scaled rows of each short unit."""
    starts, products = units.starts[: units.n_short + 1], np.empty(units.n_pairs)
    if isinstance(X, np.ndarray):
        kernel.write_products(X, scale, icpt, starts, products)
    else:
        kernel.write_sparse_products(X.data, X.indices, X.indptr, X.shape[1], scale, icpt, starts, products)
    return products


def _zero_muted_rows(X: Any, scale: NDArray[np.floating]) -> Any:
    """Return X, or a copy with zeros in the rows of scale 0 if these hold NaN or infinity."""
    muted = scale == 0.0  # the norm of such a row is not finite
    dense = isinstance(X, np.ndarray)
    held = X[muted] if dense else X[np.flatnonzero(muted)].data
    if np.isfinite(held).all():
        return X
    X = X.copy()
    if dense:
        X[muted] = 0.0
    else:
        X.data[np.repeat(muted, np.diff(X.indptr))] = 0.0
    return X


def row_scales(X: Any, radius: float, unit: float) -> NDArray[np.floating]:
    """Factors, of shape (n,), that clip each row to norm `radius` and multiply it by `unit`.

    The factor is 0 for a row whose norm is not finite: such a row contributes nothing.
    """
    facts = np.zeros((kernel.N_FACTS, X.shape[0]), X.dtype)
    _scale_rows(X, radius, unit, 0.0, facts)
    return facts[kernel.SCALE].copy()


def clipped_scores(X: Any, radius: float, coef: NDArray[np.float64], intercept: Any = 0.0) -> NDArray[np.float64]:
    """Compute X @ coef.T + intercept with rows clipped to norm `radius`, by blocks of rows, without a copy of X.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64, C order
    radius : float
    coef : ndarray of shape (n_outputs, d)
    intercept : ndarray of shape (n_outputs,), or 0.0

    Returns
    -------
    scores : ndarray of shape (n, n_outputs)
    """
    scale = row_scales(X, radius, 1.0).astype(np.float64)
    scores = np.empty((X.shape[0], len(coef)))
    for start in range(0, X.shape[0], _SEGMENT_ROWS):
        block = slice(start, start + _SEGMENT_ROWS)
        rows = X[block].astype(np.float64)
        if isinstance(X, np.ndarray):
            rows *= scale[block, None]
        else:
            rows.data *= np.repeat(scale[block], np.diff(rows.indptr))
        scores[block] = rows @ coef.T + intercept
    return scores
