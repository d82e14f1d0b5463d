"""Rows bound to a loss, as the loop of noisy gradient descent sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skdp._checks.groups import Units
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream


class Model(Protocol):
    """Base class of models: rows, targets and weights that are bound to a loss.

    `n_rows` is the number of rows. `units` is None, or says which rows, side by side, are of one unit: what is drawn
    then are units, and the sum of the clipped gradients of a unit is clipped too. Models are context managers.
    """

    n_rows: int
    units: UnitLayout | None = None

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> Any:
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

    def clipped_gradient_sum(
        self,
        theta: np.ndarray,
        rows: NDArray[np.int64] | None,
        max_norm: float,
        counts: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """See `Model`. Where rows have units, `rows` are numbers of units, each of which is clipped."""
        if self.units is None:
            return self._sum_over(theta, rows, (0, self.n_rows if rows is None else len(rows)), max_norm, counts)
        lot = self.units.short(rows)
        total = self._sum_over(theta, lot.rows, (0, int(lot.starts[-1])), max_norm, None, lot)
        for start, stop in self.units.long(rows):
            add_clipped(total, self.sum_of_rows(theta, max_norm, start, stop), max_norm)
        return total

    def sum_of_rows(self, theta: np.ndarray, max_norm: float, start: int, stop: int) -> NDArray[np.float64]:
        """Sum of the clipped gradients of rows that are side by side, of one unit or of a part of it, in a new array.

        The sum itself is not clipped.
        """
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

    def __init__(self, units: Units) -> None:
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
