"""Models of rows that repeat: each distinct row once, with the number of its copies in a lot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp._training.models.bound_rows import Model
from skdp._training.models.equal_rows import Groups
from skdp._typing import Vector
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream

_Counts = NDArray[np.float64]


class GroupedModel(Model):
    """A model of distinct rows, and how often each occurs.

    A lot is the numbers of the distinct rows in it, None for all of them, and how many copies of each it holds.

    Parameters
    ----------
    model : Model
        Of the distinct rows, with float64 sums (see below).
    copies : ndarray of shape (n_groups,), int64
        How many rows each of them represents. They sum to `n_rows`.

    Notes
    -----
    **Guarantees.** Up to rounding, a step has the very distribution that it has on all rows.

    Proof. Poisson sampling draws each of the m copies of a row independently with probability q, so that the number of
    copies in a lot is Binomial(m, q), independently of other rows (`skdp._kernels.binomial` for how exactly). The sum
    of clipped gradients depends on the lot through these numbers alone. In a full batch they are the m themselves.
    Number of rows and divisor are those of all rows. So a row changes the sum by at most C: a table with one copy less
    of a row has a lot with at most one copy less.

    Rounding. Counts multiply clipped gradients in float64, as do sums. With m copies of a row, its clipped gradient g,
    of norm at most C, enters as m g, within 2 u m C for u = 2**-53. So the products for m and for m - 1 copies differ
    by at most C (1 + 4 m u), which for 10**9 copies is C (1 + 5e-7). A sum over k groups of n rows has k - 1 additions,
    each wrong by at most u n C: less than the n - 1 of the sum over all rows. For this, g must not depend on which
    other rows there are but by float64 rounding, since all m copies repeat its error: models in float32 whose products
    depend on the place of a row are grouped in float64.
    """

    def __init__(self, model: Any, copies: NDArray[np.int64]) -> None:
        self._model, self._copies = model, copies
        self.n_rows = int(copies.sum())
        self._sampling: Sampling | None = None
        self._draw: Callable[[SecretStream], _Counts]

    @property
    def n_parameters(self) -> int:
        return int(self._model.n_parameters)

    @classmethod
    def of_groups(
        cls, make: Callable[[Any, Any, Any], Any], groups: Groups, rows: Any, values: NDArray[Any], weights: Any
    ) -> GroupedModel:
        """Return the model that `make` makes of the distinct rows, and of the targets and weights of all rows."""
        weights = weights[groups.first] if isinstance(weights, np.ndarray) else weights
        return cls(make(rows, values[groups.first], weights), groups.copies)

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> tuple[NDArray[np.int64] | None, _Counts]:
        """See `Model`. A stream of the step has all draws: how many there are would tell of the rows."""
        if sampling != self._sampling:
            self._sampling, self._draw = sampling, sampling.counter(self._copies)
        counts = self._draw(stream.spawn("step", step))
        if sampling.rate == 1.0:
            return None, counts
        rows = np.flatnonzero(counts)
        return rows, counts[rows]

    def clipped_gradient_sum(self, theta: Vector, rows: Any, max_norm: float) -> NDArray[np.float64]:
        """See `Model`; `rows` is what `draw_lot` returns."""
        numbers, counts = rows
        found: NDArray[np.float64] = self._model.clipped_gradient_sum(
            theta.astype(np.float64, copy=False), numbers, max_norm, counts
        )
        return found

    def __enter__(self) -> Self:
        self._model.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._model.__exit__(*exception)
