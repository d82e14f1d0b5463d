"""The mean error of a fitted regressor, bought: what the clip of gradients leaves of it is added to the intercept."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdp.ensemble.target_units import ENOUGH
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.streams import SecretStream

OFFSET_SHARE = 0.02
"""Part of mu^2 of a fit that the mean error gets. The steps then have 1 % less of mu."""

LARGEST_ERROR = 2.25
"""Where errors are cut, in units of targets: five standard deviations of targets."""

ERRORS_SENSITIVITY = math.sqrt(2.0)
"""Norm of what one row adds to the sums."""

_DOUBTED = 2.0
"""Standard deviations of the noise within which the mean error is taken to be 0."""


def sum_errors(
    errors: NDArray[np.float64], weights: NDArray[np.float64], mechanism: GaussianMechanism, stream: SecretStream
) -> list[float]:
    """Release the sums of weights and of weighted errors.

    Parameters
    ----------
    errors, weights : ndarray of shape (n,)
        Private: targets less predictions, in units of targets, and weights in [0, 1]. An error that is NaN, as of a
        model that diverged, counts as none.
    mechanism : GaussianMechanism
        Of the sensitivity `ERRORS_SENSITIVITY`.
    stream : SecretStream
        Of this release alone.

    Returns
    -------
    list of float
        The second one in units of `LARGEST_ERROR`.

    Notes
    -----
    **Guarantees.** The predictions are those of a model that is released. A row of weight w in [0, 1] and error e, cut
    to [-1, 1] in units of `LARGEST_ERROR`, adds (w, w e), whose norm is at most sqrt(2); a row of weight 0, the null
    record, adds nothing. The sums are one Gaussian release.
    """
    errors = np.clip(np.where(np.isnan(errors), 0.0, errors) / LARGEST_ERROR, -1.0, 1.0)
    return mechanism.release(np.array([weights.sum(), weights @ errors]), stream).tolist()


def offset_of(sums: list[float], mechanism: GaussianMechanism) -> float:
    """Return the mean error in units of targets, shrunk towards 0, which it is where noise may have made it."""
    (total, errors), deviation = sums, mechanism.standard_deviation
    if total < ENOUGH * deviation or errors == 0.0:
        return 0.0
    kept = max(0.0, 1.0 - (_DOUBTED * deviation / errors) ** 2)
    return kept * LARGEST_ERROR * min(max(errors / total, -1.0), 1.0)


__all__ = ["ERRORS_SENSITIVITY", "LARGEST_ERROR", "OFFSET_SHARE", "offset_of", "sum_errors"]
