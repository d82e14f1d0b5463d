"""Rows bound to a loss, as the loop of noisy gradient descent sees them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skdp._training.models.unit_layout import UnitLayout, UnitLot, add_clipped
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

        Models of which rows are grouped (`skdp._training.models.equal_rows`) take one argument more, `counts`: an
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
