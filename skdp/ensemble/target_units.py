"""Units of the targets of a regressor, bought: their mean and their spread, so that one clip suits all targets."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._training.offset import ENOUGH
from skdp._typing import Doubles
from skdp.mechanisms.bounded_sum import VectorQuery
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream

UNITS_SHARE = 0.02
"""Part of mu^2 of a fit that mean and spread get. The steps then have 1 % less of mu."""

UNIT_SPREAD = 0.45
"""Standard deviation of targets in the units that clip and steps are rules for (`skdp._training.defaults`)."""

SUMS_SENSITIVITY = math.sqrt(3.0)
"""Norm of what one row adds to the sums."""

_LEAST = 1e-3


class TargetSums(VectorQuery):
    """Query (`skdp.mechanisms.bounded_sum`) of the number of rows, of their targets and of the squares of these."""

    width, row_limit = 3, SUMS_SENSITIVITY

    def vectors(self, rows: Any, *targets: Any) -> Doubles:
        values = np.clip(rows, -1.0, 1.0)  # bounds that are neighbours among doubles have rounded ends
        return np.column_stack([np.ones_like(values), values, values**2])


class TargetUnits(NamedTuple):
    """An affine map of targets that lie between -1 and 1: (y - center) / unit."""

    center: float = 0.0
    unit: float = 1.0


def sum_targets(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    mechanism: GaussianMechanism,
    stream: SecretStream,
    units: Units | None = None,
) -> list[float]:
    """Release the sums of weights, of weighted targets and of their squares.

    Parameters
    ----------
    values, weights : ndarray of shape (n,)
        Private: targets, which are cut to [-1, 1], and weights in [0, 1].
    mechanism : GaussianMechanism
        Of the sensitivity `SUMS_SENSITIVITY`.
    stream : SecretStream
        Of this release alone.
    units : Units or None
        Of the rows.

    Returns
    -------
    list of float

    Notes
    -----
    **Guarantees.** A row of weight w in [0, 1] and target y in [-1, 1] adds (w, w y, w y^2), whose norm is at most
    sqrt(3); a row of weight 0, the null record, adds nothing. With `units`, the sum of the rows of a unit is clipped to
    sqrt(3). The sums are one Gaussian release. The units of the targets follow from it and from what is public.
    """
    (sums := TargetSums().new_sum("zero_out")).add(values, weights, units=units)
    return mechanism.release(sums.vector, stream).tolist()


def units_of_targets(sums: list[float], mechanism: GaussianMechanism, *, fit_intercept: bool) -> TargetUnits:
    """Return the units in which targets have the mean 0 and the standard deviation `UNIT_SPREAD`, from noisy sums.

    The error of the variance is added to it: too large a spread is a small loss, too small a one a bias. Without an
    intercept nothing makes up for a mean that is subtracted.
    """
    deviation = mechanism.standard_deviation
    total, first, second = sums
    if total < ENOUGH * deviation:
        return TargetUnits()
    center = min(max(first / total, -1.0), 1.0) if fit_intercept else 0.0
    variance = max((second - 2.0 * center * first) / total + center**2, 0.0)
    error = deviation / total * math.sqrt(1.0 + 4.0 * center**2 + center**4)
    return TargetUnits(center, max(math.sqrt(min(variance + error, 1.0)), _LEAST) / UNIT_SPREAD)
