"""All that a price says of an event at once: its Rényi curve, its privacy profile, its trade-off function."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from .events.specifications import DpEvent, show
from .methods import (
    APPROXIMATIONS,
    METHODS,
    check_adjacency,
    check_delta,
    check_epsilon,
    check_group,
    check_method,
    check_priced,
    explain_refusal,
    get_delta,
    get_epsilon,
)
from .pld.directions import profile_pair
from .pld.profiles import Profile, ProfilePair, group_profile
from .rdp.rdp import rdp, rdp_refusal
from .releases import releases_of_group

__all__ = ["PrivacyProfile", "RenyiCurve", "compare_accountants"]

_LEAST_ORDER, _LARGEST_ORDER = 1.0 + 1e-5, 1e12
_POINTS = 200
_FAR = 1e6  # nats, beyond which delta is not looked at
_FLAT = ProfilePair(Profile(np.zeros(1), np.zeros(1)), 1)
_OPEN = ProfilePair(Profile(np.zeros(1), np.ones(1)), 1)


class RenyiCurve:
    """Rényi divergence between neighbours' outputs, by order.

    Of groups on a sample, numbers of its records that have a probability below 1e-300 are left out.

    Parameters
    ----------
    event : DpEvent
        Any event with a price by method "rdp" that has no failure probability: an (epsilon, delta) event with delta
        above 0 has no Rényi divergence (`get_epsilon` sets its delta aside).
    adjacency : {"zero_out", "add_remove", "replace_one"}
        What neighbours differ in.
    group_size : int
        In how many records neighbours differ.

    Examples
    --------
    >>> from skdp.accounting import GaussianDpEvent, RenyiCurve
    >>> curve = RenyiCurve(GaussianDpEvent(2.0))
    >>> curve([2.0, 8.0]).round(6).tolist()
    [0.25, 1.0]
    """

    def __init__(self, event: DpEvent, *, adjacency: str = "zero_out", group_size: int = 1) -> None:
        self.event, self.adjacency, self.group_size = event, check_adjacency(adjacency), check_group(group_size)
        self._found, left = releases_of_group(event, self.group_size)
        if left > 1:
            raise TypeError(f"event={type(event).__name__} has no Rényi curve for groups; use PrivacyProfile.")
        self._replace_one = adjacency == "replace_one"
        refused = rdp_refusal(self._found, replace_one=self._replace_one)
        if refused is not None and not self._found.non_private:
            raise type(refused)(f"{refused}; use PrivacyProfile.")

    def __call__(self, orders: Any) -> Any:
        """Compute divergences.

        Parameters
        ----------
        orders : float or array-like
            Above 1.

        Returns
        -------
        float or ndarray
            In nats, rounded up; inf where there is none, and for orders that are too large to be computed.
        """
        at = np.asarray(orders, dtype=np.float64)
        if not np.all(at > 1.0):
            raise ValueError(f"orders={show(orders)} is not valid; give numbers above 1.")
        if self._found.empty:
            values = np.zeros(at.shape)
        else:
            values = np.array([self._at(float(alpha)) for alpha in at.ravel()]).reshape(at.shape)
        return values if at.ndim else float(values)

    def _at(self, order: float) -> float:
        if order > _LARGEST_ORDER:
            return math.inf
        # divergences rise with the order; nearer to 1 they are differences of numbers that are nearly the same
        return rdp(self._found, max(order, _LEAST_ORDER), replace_one=self._replace_one)

    def epsilon(self, delta: float) -> float:
        """Return `get_epsilon` at `delta` by method "rdp".

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            In nats.
        """
        return get_epsilon(self.event, delta, method="rdp", adjacency=self.adjacency, group_size=self.group_size)


class PrivacyProfile:
    """Delta at every epsilon, and the trade-off between the errors of a test that it allows.

    It is a bound from above at every epsilon, piecewise linear in e^epsilon between some hundreds of points, and the
    larger of both directions of neighbours.

    Parameters
    ----------
    event : DpEvent
        Any event with a price by `method`.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        What neighbours differ in.
    method : str
        As in `get_epsilon`; methods that are no guarantees are refused.
    group_size : int
        In how many records neighbours differ.
    least_delta : float
        Delta down to which the profile is followed, in (0, 1).

    Attributes
    ----------
    epsilons, deltas : ndarray
        The points, epsilons rising from 0.

    Examples
    --------
    >>> from skdp.accounting import LaplaceDpEvent, PrivacyProfile
    >>> profile = PrivacyProfile(LaplaceDpEvent(1.0))
    >>> round(profile(0.5), 4), round(profile.trade_off(0.1), 4)
    (0.2212, 0.7282)
    """

    def __init__(
        self,
        event: DpEvent,
        *,
        adjacency: str = "zero_out",
        method: str = "pld",
        group_size: int = 1,
        least_delta: float = 1e-12,
    ) -> None:
        self.event, self.adjacency, self.method = event, check_adjacency(adjacency), check_method(method)
        self.group_size, self.least_delta = check_group(group_size), check_delta(least_delta)
        self._pair = self._compute()
        self.epsilons, self.deltas = self._pair.profile.loss.copy(), self._pair.profile.delta.copy()

    def _compute(self) -> ProfilePair:
        replace_one = self.adjacency == "replace_one"
        found, left = releases_of_group(self.event, self.group_size)
        if found.empty or found.non_private:
            return _FLAT if found.empty else _OPEN
        check_priced(found, self.method, replace_one)
        if self.method != "pld":
            return self._by_method()
        floor = math.log(self.least_delta)
        if left == 1:
            return profile_pair(found, replace_one, floor)
        return group_profile(profile_pair(found, replace_one, 3.0 * floor), left)

    def _by_method(self) -> ProfilePair:
        """Point by point, up to where delta is `least_delta`."""
        options: dict[str, Any] = {
            "method": self.method,
            "adjacency": self.adjacency,
            "group_size": self.group_size,
        }
        limit = get_delta(self.event, _FAR, **options) * 1.001
        top = get_epsilon(self.event, max(self.least_delta, limit), **options) if limit < 1.0 else math.inf
        if not top < math.inf:
            return _OPEN
        grid = np.linspace(0.0, top, _POINTS + 1)
        deltas = [get_delta(self.event, float(epsilon), **options) for epsilon in grid]
        return ProfilePair.of(Profile(grid, np.minimum(deltas, 1.0)), 1)

    def __call__(self, epsilon: Any) -> Any:
        """Compute delta.

        Parameters
        ----------
        epsilon : float or array-like
            At least 0, in nats.

        Returns
        -------
        float or ndarray
            In [0, 1].
        """
        at = np.asarray(epsilon, dtype=np.float64)
        each = [min(1.0, self._pair.delta_at(check_epsilon(float(x)))) for x in at.ravel()]
        return np.array(each).reshape(at.shape) if at.ndim else each[0]

    def epsilon(self, delta: float) -> float:
        """Compute the least epsilon at which the profile is at most `delta`.

        Parameters
        ----------
        delta : float
            In (0, 1).

        Returns
        -------
        float
            In nats; inf below the last point.
        """
        return self._pair.epsilon_at(check_delta(delta))

    def trade_off(self, type_1: Any) -> Any:
        """Compute the least share of false negatives of any test whether a record is there.

        Of the data sets with and without it, a test with false positives a has false negatives of at least 1 - delta -
        e^epsilon a and e^-epsilon (1 - delta - a), for every epsilon (Wasserman & Zhou 2010): what it finds has a
        chance of at most e^epsilon a + delta, and with the data sets exchanged 1 - a is at most e^epsilon times the
        false negatives + delta.

        Parameters
        ----------
        type_1 : float or array-like
            Share of false positives, in [0, 1].

        Returns
        -------
        float or ndarray
            In [0, 1]; 1 - `type_1` where nothing is released.
        """
        at = np.asarray(type_1, dtype=np.float64)
        if not np.all((at >= 0.0) & (at <= 1.0)):
            raise ValueError(f"type_1={show(type_1)} is not valid; give shares from 0 to 1.")
        grown, kept = np.exp(np.minimum(self.epsilons, 700.0)), 1.0 - self.deltas
        values = [
            max(0.0, float((kept - grown * a).max()), float(((kept - a) / grown).max())) for a in at.ravel().tolist()
        ]
        return np.array(values).reshape(at.shape) if at.ndim else values[0]


_NOTES = {
    "pld": "privacy loss distributions; the figure to report",
    "rdp": "Rényi divergences, best order",
    "moments": "as published in 2016: whole orders up to 32, older conversion",
    "optimal_exact": "each step as a statement; equal steps composed exactly",
    "optimal": "each step as a statement; closed-form bound of Kairouz, Oh & Viswanath",
    "strong": "each step as a statement; Dwork, Rothblum & Vadhan",
    "naive": "sums of epsilons and of deltas",
    "moments_asymptotic": "not a guarantee: leading term of the log moment, remainder left out",
    "gdp": "not a guarantee: central limit approximation, can be too small",
    "strong_2016": "not a guarantee: as published in 2016, beyond the range of its formulas",
}


def compare_accountants(
    event: DpEvent, delta: float, *, adjacency: str = "zero_out", methods: Iterable[str] | None = None
) -> Any:
    """Epsilon of one event by every method.

    Parameters
    ----------
    event : DpEvent
        Event to price.
    delta : float
        In (0, 1).
    adjacency : {"zero_out", "add_remove", "replace_one"}
    methods : iterable of str, optional
        Some of the methods instead of all.

    Returns
    -------
    pandas.DataFrame
        Columns `method`, `epsilon`, `guarantee` (False for figures that are not bounds) and `note`. A method
        that cannot price the event has epsilon NaN and its reason as the note.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("compare_accountants needs pandas; run `pip install pandas`.") from error
    delta, rows = check_delta(delta), []
    for method in METHODS + APPROXIMATIONS if methods is None else tuple(methods):
        reason = explain_refusal(event, method, adjacency)
        epsilon = get_epsilon(event, delta, method=method, adjacency=adjacency) if reason is None else math.nan
        rows.append((method, epsilon, method in METHODS, str(reason or _NOTES[method])))
    return pd.DataFrame(rows, columns=["method", "epsilon", "guarantee", "note"])
