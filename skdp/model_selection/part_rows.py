"""Rows of fits to parts of a table, with all that belongs to each row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.row_traits import first_row, take_rows
from skdp._checks.units import Units
from skdp._checks.weights import WeightReader, check_weights
from skdp._fit.private_step import private_steps
from skdp.pipeline import PrivatePipeline


class PartWeights(NamedTuple):
    """Weights of all rows as they were given, checked, and as shares of their bound."""

    given: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, reader: WeightReader, sample_weight: Any, n_rows: int) -> PartWeights:
        """Read the weights, or refuse them."""
        weights = check_weights(sample_weight, n_rows)
        return cls(weights, reader.shares(weights))

    def take(self, rows: NDArray[np.intp]) -> PartWeights:
        """Weights of some rows, 0 to train with as the least number above it: what a row then adds is lost in rounding.

        A trial would refuse weights that are all 0, after the charge, and tell that it was made.
        """
        return PartWeights(np.maximum(self.given[rows], np.finfo(np.float64).tiny), self.shares[rows])


class PartRows(NamedTuple):
    """Checked private rows, with all that belongs to each; `like` is one of the table that they are a part of."""

    X: Any
    y: NDArray[Any]
    weights: PartWeights | None
    units: Units | None
    like: Any = None

    @property
    def given_weights(self) -> NDArray[np.float64] | None:
        """Weights to train with."""
        return None if self.weights is None else self.weights.given

    def places(self, marked: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Numbers of all rows of the units that are marked: no unit is split."""
        return np.flatnonzero(marked if self.units is None else marked[self.units.codes])

    def of_units(self, marked: NDArray[np.bool_]) -> PartRows:
        """All rows of the units that are marked."""
        rows = self.places(marked)
        weights = None if self.weights is None else self.weights.take(rows)
        units = self.units and self.units.take(rows)
        return PartRows(take_rows(self.X, rows), self.y[rows], weights, units, first_row(self.X, len(self.y)))


def last_of(pipeline: PrivatePipeline) -> Any:
    """The last private estimator of a candidate, which is the one that labels are for."""
    return private_steps(pipeline.steps)[-1][1].estimator
