"""Rows bound to a loss, as the loop of noisy gradient descent sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._training.models.unit_layout import UnitLayout
from skdp._typing import Vector
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream


class Model:
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

    def clipped_gradient_sum(self, theta: Vector, rows: Any, max_norm: float) -> NDArray[np.float64]:
        """Sum over the rows of a lot of gradients, each clipped to Euclidean norm `max_norm`, in a new array.

        Models of which rows are grouped (`skdp._training.models.equal_rows`) take one argument more, `counts`: an
        array of float64, by which the clipped gradient of each row of the lot is multiplied, or None.
        """
        raise NotImplementedError

    def sum_of_rows(self, theta: Vector, max_norm: float, start: int, stop: int) -> NDArray[np.float64]:
        """Sum of the clipped gradients of rows that are side by side, of one unit or of a part of it, in a new array.

        The sum itself is not clipped.
        """
        raise NotImplementedError
