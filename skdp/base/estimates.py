"""Figures with intervals, of evaluations and of descriptions."""

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
    """A figure from noisy sums, with an interval.

    Of an evaluation, the interval is for the figure of the population that the rows are drawn from: it covers noise and
    sampling together. Of a description, it is for the figure of the table, unless sampling is asked for. If the figure
    is a date, value, low and high are dates.

    Attributes
    ----------
    value : float
        Estimate.
    low, high : float
        Ends of the interval.
    standard_error : float
        Of all that the interval covers; NaN where there is no single one, as of a quantile.
    noise_error : float
        Standard error by the noise alone: how far the figure is from the exact one of these rows. NaN of a description.
    sampling_error : float
        Standard error by the draw of the rows alone, which an exact figure would have too. NaN of a description.
    clipped_low, clipped_high : float or datetime
        Privately estimated bounds: the estimate and its interval are of values clipped to them. NaN without any. Not
        entries of the tuple, as is `estimand`.
    estimand : str
        With `groups`: one line on the weight of a group. Otherwise empty.
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
        """
        found = type(self)(*self)
        vars(found).update(vars(self) | notes)
        return found

    def _replace(self, **changes: Any) -> Estimate:
        return super()._replace(**changes).with_notes(**vars(self))

    def at(self, value: float) -> Estimate:
        """Return the interval with another estimate of the same figure, which it is made to hold.

        Parameters
        ----------
        value : float
            The other estimate.

        Returns
        -------
        figure : Estimate
            Its interval is as wide or wider.
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
    """Return the short text of a number or of a date."""
    return value.isoformat(" ", "minutes") if isinstance(value, datetime.datetime) else f"{value:.{digits}g}"


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

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    thresholds: np.ndarray
