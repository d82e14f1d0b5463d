"""Weights and units of the rows of one fit, as its releases read them."""

from __future__ import annotations

from typing import Any, NamedTuple

from skdp._checks.parameters import refuse_fit_params
from skdp._checks.units import Units
from skdp._checks.weights import WeightReader, warn_of_no_bound


class RowWeights(NamedTuple):
    """Weights of the rows of a fit as fractions of a public bound, and whether there are any. Private.

    `units` are those of the rows, None if each row is its own.
    """

    shares: Any = 1.0
    are_given: bool = False
    units: Units | None = None

    def n_units(self, n_rows: int) -> int:
        """Return the number of units of so many rows, which is public where theirs may not be."""
        return n_rows if self.units is None else self.units.n_units


def read_row_weights(
    weight_bound: Any, n_rows: int, *, sample_weight: Any = None, groups: Units | None = None, **others: Any
) -> RowWeights:
    """Check the weights among the parameters of a ``fit``, warn if they have no bound, and reject all `others`."""
    refuse_fit_params(others)
    warn_of_no_bound(weight_bound, sample_weight)
    shares = WeightReader.of(weight_bound)(sample_weight, n_rows)
    return RowWeights(shares, sample_weight is not None, groups)


__all__ = ["RowWeights", "read_row_weights"]
