"""Figures with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skdp._typing import Doubles


class Estimate(NamedTuple):
    """A figure from noisy counts, with an interval for its value in the population that the rows are drawn from.

    Attributes
    ----------
    value : float
        Estimate.
    low, high : float
        Ends of the interval, which covers noise and sampling together.
    standard_error : float
        Of both together.
    noise_error : float
        Standard error by the noise alone: how far the figure is from the exact one of these rows.
    sampling_error : float
        Standard error by the draw of the rows alone, which an exact figure would have too.
    """

    value: float
    low: float
    high: float
    standard_error: float
    noise_error: float
    sampling_error: float

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if np.ndim(self.value):
            return repr(self)
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


class EstimatedCurve(NamedTuple):
    """A curve from noisy counts, with a band of intervals, one for each of its points.

    Attributes
    ----------
    x, y : ndarray of shape (n_points,)
        Points of the curve.
    low, high : ndarray of shape (n_points,)
        Ends of the intervals of `y`.
    thresholds : ndarray of shape (n_points,)
        Scores at which the points lie.
    """

    x: Doubles
    y: Doubles
    low: Doubles
    high: Doubles
    thresholds: Doubles


__all__ = ["Estimate", "EstimatedCurve"]
