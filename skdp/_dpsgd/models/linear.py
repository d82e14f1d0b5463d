"""Rows bound to a loss, as the loop of noisy gradient descent sees them, and those of linear models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skdp._kernels import linear as kernel
from skdp._kernels import linear_layouts


class Model(Protocol):
    """Base class of models: rows, targets and weights that are bound to a loss.

    `n_rows` is the number of rows. `units` is None, or says which rows, side by side, are of one unit: what is drawn
    then are units, and the sum of the clipped gradients of a unit is clipped too. Models are context managers.
    """

    n_rows: int
    units: UnitLayout | None = None

    def draw_lot(self, sampling: Any, stream: Any, step: int) -> Any:
        """Draw the lot of a step, in the form that `clipped_gradient_sum` takes: numbers of rows, None for all of them.

        Where rows have units, the numbers are those of units.

        Parameters
        ----------
        sampling : PoissonSampling or FullBatch
            The law of the lot.
        stream : SecretStream
            Of sampling alone. Models either draw from it or spawn a stream of the step, in every step alike.
        step : int
            Number of the step, from 0.
        """
        if self.units is None:
            return sampling.rows(self.n_rows, stream)
        return self.units.numbers_of(sampling.rows(self.units.n_units, stream))

    def clipped_gradient_sum(self, theta: np.ndarray, rows: Any, max_norm: float) -> NDArray[np.float64]:
        """Sum over the rows of a lot of gradients, each clipped to Euclidean norm `max_norm`, in a new array.

        Models of which rows are grouped (`skdp._dpsgd.models.duplicate_rows`) take one argument more, `counts`: an
        array of float64, by which the clipped gradient of each row of the lot is multiplied, or None.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads, and let go of what is kept elsewhere."""
        return


class SpanModel(Model, Protocol):
    """Base class of models that add up spans of their rows by `_sum_over`."""

    _pool: Any

    def clipped_gradient_sum(
        self, theta: np.ndarray, rows: np.ndarray | None, max_norm: float, counts: np.ndarray | None = None
    ) -> np.ndarray:
        """See `Model`. Where rows have units, `rows` are numbers of units, each of which is clipped."""
        if self.units is None:
            return self._sum_over(theta, rows, (0, self.n_rows if rows is None else len(rows)), max_norm, counts)
        lot = self.units.short(rows)
        total = self._sum_over(theta, lot.rows, (0, int(lot.starts[-1])), max_norm, None, lot)
        for start, stop in self.units.long(rows):
            add_clipped(total, self.sum_of_rows(theta, max_norm, start, stop), max_norm)
        return total

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def sum_of_rows(self, theta: np.ndarray, max_norm: float, start: int, stop: int) -> NDArray[np.float64]:
        """Sum of the clipped gradients of rows that are side by side, of one unit or of a part of it, in a new array.

        The sum itself is not clipped.
        """
        return self._sum_over(theta, None, (start, stop), max_norm)

    def _sum_over(
        self, theta: np.ndarray, rows: Any, span: tuple[int, int], max_norm: float, counts: Any = None, lot: Any = None
    ) -> np.ndarray:
        """Sum of clipped gradients over a span of `rows`, or of all rows; those of each unit of a lot are clipped."""


def run_segments(pool: ThreadPoolExecutor | None, n: int, run: Callable[[int], None]) -> None:
    """Call a function with the number of each of `n` segments, on the threads of a pool if there is one."""
    if pool is None or n == 1:
        for segment in range(n):
            run(segment)
    else:
        list(pool.map(run, range(n)))  # the kernels release the GIL; `list` raises errors


MOST_PAIRED = 64
"""Rows of a unit up to which its norm is computed from products of pairs of rows; beyond, its sum is formed."""


class UnitLot(NamedTuple):
    """The short units of a lot.

    Attributes
    ----------
    rows : ndarray of int64 or None
        Their rows, side by side; None for all rows of short units.
    starts : ndarray of shape (k + 1,), int64
        Where the rows of each unit start in `rows`.
    first : ndarray of shape (k,), int64
        Where the products of each unit start.
    """

    rows: NDArray[np.int64] | None
    starts: NDArray[np.int64]
    first: NDArray[np.int64]

    def cut(self, begin: int, end: int) -> tuple[int, int]:
        """Return rows of the lot, whole units, for a share of them: shares that touch give rows that touch."""
        low, high = (self.starts[np.searchsorted(self.starts, each)] for each in (begin, end))
        return int(low), int(high)

    def blocks(self, start: int, stop: int, most: int) -> Iterator[tuple[slice, slice]]:
        """Iterate over whole units of at most `most` rows together: their rows and their numbers in the lot."""
        unit, last = (int(np.searchsorted(self.starts, each)) for each in (start, stop))
        while unit < last:
            end = int(np.searchsorted(self.starts, self.starts[unit] + most, side="right")) - 1
            end = min(max(end, unit + 1), last)
            yield slice(int(self.starts[unit]), int(self.starts[end])), slice(unit, end)
            unit = end


class UnitLayout:
    """Rows in the order of units, the short units first.

    Parameters
    ----------
    units : Units
        Rows of the number `n_units` are of no unit here, and come last.

    Attributes
    ----------
    order : ndarray of shape (n_rows,), int64
        Rows as they were given, in that order.
    starts : ndarray of shape (n_units + 1,), int64
        Where the rows of each unit start.
    place : ndarray of shape (n_units + 1,), int64
        Number here of each unit as it was given.
    n_units, n_short : int
        Units, and those of at most `MOST_PAIRED` rows.
    first : ndarray of shape (n_short + 1,), int64
        Where the products of pairs of rows of each short unit start: of row 1 with row 0, row 2 with 0 and 1, and so
        on.
    """

    def __init__(self, units: Any) -> None:
        sizes = np.bincount(units.codes, minlength=units.n_units)[: units.n_units]
        by_length = np.argsort(sizes > MOST_PAIRED, kind="stable")
        self.place = np.arange(units.n_units + 1)
        self.place[by_length] = np.arange(units.n_units)
        self.order = np.argsort(self.place[units.codes], kind="stable")
        sizes = sizes[by_length]
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.n_units, self.n_short = len(sizes), int((sizes <= MOST_PAIRED).sum())
        short = sizes[: self.n_short]
        self.first = np.concatenate([[0], np.cumsum(short * (short - 1) // 2)])

    @property
    def n_pairs(self) -> int:
        return int(self.first[-1])

    @property
    def n_rows(self) -> int:
        """Rows of all units."""
        return int(self.starts[-1])

    def numbers_of(self, lot: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Return the numbers here, ascending, of units as they were given; None, which is all of them, as it is.

        So which units are drawn does not depend on how many rows they have.
        """
        # a merge of two runs, as lots are ascending: a stable sort takes a twentieth of the time of another one
        return None if lot is None else np.sort(self.place[lot], kind="stable")

    def in_order(self, given: Any) -> Any:
        """Return targets or weights in the order of the rows; one number for all rows as it is."""
        return given[self.order] if isinstance(given, np.ndarray) and given.ndim else given

    def short(self, numbers: NDArray[np.int64] | None) -> UnitLot:
        """Return the short units of a lot, which is numbers of units in ascending order, or None for all of them."""
        if numbers is None:
            return UnitLot(None, self.starts[: self.n_short + 1], self.first[:-1])
        numbers = numbers[: np.searchsorted(numbers, self.n_short)]
        sizes = self.starts[numbers + 1] - self.starts[numbers]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.starts[numbers] - starts[:-1], sizes) + np.arange(starts[-1])
        return UnitLot(rows, starts, self.first[numbers])

    def long(self, numbers: NDArray[np.int64] | None) -> Iterator[tuple[int, int]]:
        """Iterate over the long units of a lot: where the rows of each start and end."""
        found = np.arange(self.n_short, self.n_units)
        if numbers is not None:
            found = numbers[np.searchsorted(numbers, self.n_short) :]
        yield from zip(self.starts[found].tolist(), self.starts[found + 1].tolist(), strict=True)


def add_clipped(total: NDArray[np.float64], found: NDArray[np.float64], max_norm: float) -> None:
    """Add the sum of the clipped gradients of a unit to `total`, clipped to `max_norm`.

    Notes
    -----
    **Guarantees.** The unit adds at most `max_norm` (1 + 4 u), u = 2**-53.

    Proof. The sum is formed before it is measured, so that whatever rounding it has is in it. The norm of p numbers has
    a relative error of at most (p / 2 + 2) u, which the room makes up for; quotient and product have an error of u
    each.
    """
    size = float(np.linalg.norm(found)) * (1.0 + (len(total) + 8) * 2.0**-52)
    if math.isfinite(size):
        total += found * (max_norm / size) if size > max_norm else found


def unit_room(n_features: int, n_outputs: int) -> float:
    """Return what the square of a unit's norm is raised by, relative to the square of the sum of its rows' norms.

    Notes
    -----
    **Guarantees.** Let G be the true sum of the m <= 64 clipped gradients of a unit, S its squared norm as computed
    from products of pairs, A the sum of the norms of its rows, and f the factor C / sqrt(S + room A**2), where that is
    below 1. Then what the unit adds has a norm of at most C.

    Proof. A product of two rows of d numbers has an absolute error of at most (d + 3) u times both norms, that of two
    residuals of K numbers (K + 2) u, and the m (m + 1) / 2 terms are added with at most m**2 u / 2 more, all relative
    to norms that are multiplied: S is within (d + K + m**2 / 2 + 8) u A**2 of \\|G\\|**2. The coefficients that are
    added are those of f G with a relative error of at most 4 u each, so that their sum is within 4 u f A of it. With
    \\|G\\| <= A, (\\|G\\| + 4 u A)**2 is at most \\|G\\|**2 + 9 u A**2. So a room of (d + K + m**2 / 2 + 17) u
    suffices; it is twice that.
    """
    return (n_features + n_outputs + MOST_PAIRED**2 // 2 + 17) * 2.0**-52


def blocks_of(start: int, stop: int, most: int, lot: UnitLot | None) -> Iterator[tuple[slice, slice]]:
    """Iterate over blocks of at most `most` rows, and the units in each: whole units of a lot, if there is one."""
    if lot is not None:
        yield from lot.blocks(*lot.cut(start, stop), most)
        return
    for low in range(start, stop, most):
        yield slice(low, min(low + most, stop)), slice(0)


# --- linear models ---

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
        In [0, 1]. They multiply clipped gradients; 0 makes a row a zeroed-out record.
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
    sum of K squares has a relative error of at most (K / 2 + 2) u. The root of d squares in `_norm` likewise
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
        self._several = n_outputs > 1 or None
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
        # Loops over a column of many rows vectorise, those over a row of few columns do not. Rows of many columns do as
        # well. The copy by columns is bounded in size, as records are.
        pays = self._dense and X.shape[1] <= _FEW_COLUMNS and X.nbytes <= _MAX_COPY
        self._by_columns = pays and not by_lot and not self._multiplies_rows
        if self._by_columns:
            self._X = np.ascontiguousarray(self._X.T)
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def sum_of_rows(self, theta: np.ndarray, max_norm: float, start: int, stop: int) -> NDArray[np.float64]:
        if self._dense and self._by_lot:
            return self._sum_over(theta, np.arange(start, stop), (0, stop - start), max_norm)
        return self._sum_over(theta, None, (start, stop), max_norm)

    def _sum_over(
        self, theta: np.ndarray, rows: Any, span: tuple[int, int], max_norm: float, counts: Any = None, lot: Any = None
    ) -> np.ndarray:
        """See `SpanModel`: of shape (p,), an output's weights, then its intercept."""
        # Weights and intercepts of the outputs, and what kernels read of units.
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
        public = counts, units, self._several, weights, bias, max_norm, icpt

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
        linear_layouts.scale_rows(X, *public, weight, scale, length)
    else:
        linear_layouts.scale_sparse_rows(X.data, X.indptr, *public, weight, scale, length)


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
