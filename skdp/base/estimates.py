"""Estimates with confidence intervals, of evaluations and descriptive statistics."""

from __future__ import annotations

import datetime
import math
from typing import Any, NamedTuple

import numpy as np


class _Numbers(NamedTuple):
    value: float
    low: float
    high: float
    standard_error: float
    noise_error: float = math.nan
    sampling_error: float = math.nan


class Estimate(_Numbers):
    """An estimate from noisy sums, with a confidence interval.

    For an evaluation, the interval is for the value in the population from which the rows are sampled: it accounts for
    noise and sampling. For a description, it is for the value in the data, unless sampling is requested. For dates,
    value, low and high are dates.

    Attributes
    ----------
    value : float
        Estimate.
    low, high : float
        Ends of the confidence interval.
    standard_error : float
        Standard error due to all sources that the interval accounts for; NaN if there is no single one, as for a
        quantile.
    noise_error : float
        Standard error due to the privacy noise alone. NaN for a description.
    sampling_error : float
        Standard error due to sampling alone, which a non-private estimate has too. NaN for a description.
    clipped_low, clipped_high : float or datetime
        Privately estimated bounds: the estimate and its interval are for values clipped to them. NaN if there are none.
        Like `estimand`, they are not entries of the tuple.
    estimand : str
        With `groups`, one line about the weight of a group. Otherwise empty.
    """

    clipped_low: Any = math.nan
    clipped_high: Any = math.nan
    estimand: str = ""

    def with_notes(self, **notes: Any) -> Estimate:
        """Return the same numbers with other attributes that are not entries of the tuple.

        Parameters
        ----------
        **notes : object
            Any of `clipped_low`, `clipped_high` and `estimand`.

        Returns
        -------
        figure : Estimate
            New estimate.
        """
        found = type(self)(*self)
        vars(found).update(vars(self) | notes)
        return found

    def _replace(self, **changes: Any) -> Estimate:
        return super()._replace(**changes).with_notes(**vars(self))

    def at(self, value: float) -> Estimate:
        """Return the interval with another value, which the interval is extended to include.

        Parameters
        ----------
        value : float
            New value of the estimate.

        Returns
        -------
        figure : Estimate
            New estimate, whose interval is at least as wide.
        """
        return self._replace(value=value, low=min(self.low, value), high=max(self.high, value))

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if np.ndim(self.value):
            return repr(self)
        text = f"{shown(self.value)} [{shown(self.low)}, {shown(self.high)}]"
        is_clipped = self.clipped_low == self.clipped_low  # not NaN; bounds of dates are dates
        ends = f" of values clipped to [{shown(self.clipped_low, 6)}, {shown(self.clipped_high, 6)}]"
        return self._stated(text + ends * is_clipped)

    def __repr__(self) -> str:
        return self._stated(super().__repr__())

    def _stated(self, text: str) -> str:
        return f"{text}\n{self.estimand}" if self.estimand else text


def shown(value: Any, digits: int = 4) -> str:
    """Return a short text for a number or a date."""
    return value.isoformat(" ", "minutes") if isinstance(value, datetime.datetime) else f"{value:.{digits}g}"


class EstimatedCurve(NamedTuple):
    """A curve from noisy counts, with a confidence interval for each point.

    Attributes
    ----------
    x, y : ndarray of shape (n_points,)
        Points of the curve.
    low, high : ndarray of shape (n_points,)
        Ends of the confidence intervals of `y`.
    thresholds : ndarray of shape (n_points,)
        Score thresholds of the points.
    """

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    thresholds: np.ndarray
