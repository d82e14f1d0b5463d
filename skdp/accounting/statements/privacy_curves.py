"""All that a price says of an event at once: its Rényi curve, its privacy profile, its trade-off function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from skdp.accounting.events.specifications import DpEvent, read_real, show
from skdp.accounting.methods import (
    APPROXIMATIONS,
    METHOD_NAMES,
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
from skdp.accounting.pld.epsilon import profile_pair
from skdp.accounting.pld.profiles import Profile, ProfilePair, group_profile
from skdp.accounting.pld.trade_off import fine_profile, largest_excess, least_mu, lower_mu
from skdp.accounting.rdp.rdp import rdp, rdp_refusal
from skdp.accounting.releases import releases_of_group

_LEAST_ORDER, _LARGEST_ORDER = 1.0 + 1e-5, 1e12
_POINTS = 200
_FAR = 1e6  # nats, beyond which delta is not looked at
_OPEN = ProfilePair(Profile(np.zeros(1), np.ones(1)), 1)  # of what has no guarantee


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
        if not np.all(np.asarray(orders, dtype=np.float64) > 1.0):
            raise ValueError(f"orders={show(orders)} is not valid; give numbers above 1.")
        return _each(orders, self._at)

    def _at(self, order: float) -> float:
        if self._found.empty:
            return 0.0
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
    """Delta at every epsilon, the trade-off between the errors of a test that it allows, and what attackers gain.

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

    Notes
    -----
    The figures of attackers are upper bounds (`bayes_risk`: a lower one) for whoever knows all records but the one in
    question, every public parameter, and has any computer at all. They hold for the neighbours of `adjacency`: under
    "zero_out" and "add_remove" an attacker asks whether the record is there, under "replace_one" which of two records
    it is; with `group_size`, of a group of records that stand or fall together. They hold for one release of `event`
    in all: other releases of the same records are composed with it first.

    References
    ----------
    B. Kulynych, J. F. Gomez, G. Kaissis, F. P. Calmon & C. Troncoso (2024). Attack-aware noise calibration for
    differential privacy. NeurIPS. arXiv:2407.02191.

    B. Kulynych, J. F. Gomez, G. Kaissis, J. Hayes, B. Balle, F. P. Calmon & J. L. Raisaro (2025). Unifying
    re-identification, attribute inference, and data reconstruction risks in differential privacy. NeurIPS.
    arXiv:2507.06969.

    Examples
    --------
    >>> from skdp.accounting import LaplaceDpEvent, PrivacyProfile
    >>> profile = PrivacyProfile(LaplaceDpEvent(1.0))
    >>> round(profile(0.5), 4), round(profile.trade_off(0.1), 4)
    (0.2212, 0.7282)
    >>> round(profile.advantage(), 4), round(profile.true_positive_rate(0.1), 4), round(profile.mu(), 2)
    (0.3935, 0.2718, 1.03)
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
        self._found, self._left = releases_of_group(event, self.group_size)
        self._pair = self._compute()
        self.epsilons, self.deltas = self._pair.profile.loss.copy(), self._pair.profile.delta.copy()

    def _compute(self) -> ProfilePair:
        found, replace_one = self._found, self.adjacency == "replace_one"
        if found.empty or found.non_private:
            return ProfilePair(Profile(np.zeros(1), np.zeros(1)), 1) if found.empty else _OPEN
        check_priced(found, self.method, replace_one)
        if self.method != "pld":
            return self._by_method()
        floor = math.log(self.least_delta)
        if self._left == 1:
            return fine_profile(found, replace_one, floor)
        return group_profile(profile_pair(found, replace_one, 3.0 * floor), self._left)

    def _by_method(self) -> ProfilePair:
        """Point by point, up to where delta is `least_delta`."""
        options: Any = {"method": self.method, "adjacency": self.adjacency, "group_size": self.group_size}
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
        return _each(epsilon, lambda at: min(1.0, self._pair.delta_at(check_epsilon(at))))

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
        return _each(type_1, lambda a: max(0.0, 1.0 - self._rate("type_1", a)))

    def _rate(self, name: str, share: float) -> float:
        """Most that a test finds with this share of false positives."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name}={show(share)} is not valid; give shares from 0 to 1.")
        if self._is_gaussian and 0.0 < share < 1.0:
            return min(1.0, float(ndtr(self._gaussian_mu + ndtri(share))) * (1.0 + 1e-12))
        return min(1.0, share + largest_excess(self._pair.profile, share))

    # --- what attackers gain ---

    def advantage(self) -> float:
        """Compute the most that true positives exceed false positives, of any test whether a record is there.

        That is delta at epsilon 0, the total variation (Kulynych et al. 2024). It is an average: a release
        of a whole record with a chance of 1 % has an advantage of .01, and one record in a hundred is found for
        certain. `true_positive_rate` at a small share tells the two apart.

        Returns
        -------
        float
            In [0, 1].
        """
        return float(self(0.0))

    def true_positive_rate(self, fpr: Any) -> Any:
        """Compute the largest share of records that a test finds, at a share of false positives.

        It is 1 - `trade_off` (Kulynych et al. 2024).

        Parameters
        ----------
        fpr : float or array-like
            Share of false positives, in [0, 1].

        Returns
        -------
        float or ndarray
            In [`fpr`, 1].
        """
        return _each(fpr, lambda a: self._rate("fpr", a))

    def mu(self, alpha_min: float = 1e-6) -> float:
        """Compute the smallest mu whose Gaussian trade-off curve bounds both errors down to `alpha_min`.

        The release then tells no more than one Gaussian release whose mean a record moves by mu standard deviations
        (Dong, Roth & Su 2022), to any test whose errors are both at least `alpha_min`. It is a summary of a curve in
        one number: below `alpha_min` it promises nothing, and it neither composes nor admits charges. At 0 it would be
        infinite wherever a record is published with however small a chance.

        Parameters
        ----------
        alpha_min : float
            In [1e-15, 0.5).

        Returns
        -------
        float
            An upper bound, rounded up; inf where a test may keep both errors below `alpha_min`.

        See Also
        --------
        mu_bounds : The same from both sides.
        """
        number = read_real(alpha_min)
        # below, profiles have no points that distinguish the errors
        if number is None or not 1e-15 <= number < 0.5:
            raise ValueError(f"alpha_min={show(alpha_min)} is not valid; give a number from 1e-15 to below 0.5.")
        if self._is_gaussian:
            return self._gaussian_mu * (1.0 + 1e-12)
        return least_mu(self._pair.profile, number)

    @property
    def _is_gaussian(self) -> bool:
        """Whether the trade-off function is that of one Gaussian, at every error."""
        return self.method == "pld" and self._left == 1 and self._found.plain

    @property
    def _gaussian_mu(self) -> float:
        return math.sqrt(self._found.mu_squared) * (2.0 if self.adjacency == "replace_one" else 1.0)

    def mu_bounds(self, alpha_min: float = 1e-6) -> tuple[float, float]:
        """Compute a certified bracket of the smallest mu.

        Parameters
        ----------
        alpha_min : float
            In [1e-15, 0.5).

        Returns
        -------
        lower, upper : float
            `upper` is that of `mu`. `lower` is 0 where nothing can be said: by other methods than "pld", of groups
            that are priced by a bound, and of events of which nothing but a bound from above is known.
        """
        upper, replace_one = self.mu(alpha_min), self.adjacency == "replace_one"
        if self.method != "pld" or self._left > 1 or self._found.empty or self._found.non_private:
            return (upper if upper in (0.0, math.inf) else 0.0), upper
        if self._is_gaussian:
            return self._gaussian_mu * (1.0 - 1e-12), upper
        lower = lower_mu(self._found, replace_one, math.log(self.least_delta), float(alpha_min))
        return min(lower, upper), upper

    def bayes_risk(self, prior: Any) -> Any:
        """Compute the least chance of error of any guess whether a record is there.

        Before the release the attacker gives it the chance `prior`. Who guesses errs with a chance of at least p (1 -
        delta(log((1 - p) / p))), p the smaller of `prior` and 1 - `prior`: the least error is the integral of the
        smaller of p P and (1 - p) Q, that is p less p times the hockey-stick divergence at (1 - p) / p (Kulynych et al.
        2025, proposition D.1). Also the error in guessing an attribute of two values, all else being known, if
        neighbours are those of "replace_one".

        Parameters
        ----------
        prior : float or array-like
            In (0, 1).

        Returns
        -------
        float or ndarray
            From 0 to the smaller of `prior` and 1 - `prior`, which is the error without a release.
        """

        def risk(prior: float) -> float:
            if not 0.0 < prior < 1.0:
                raise ValueError(f"prior={show(prior)} is not valid; give a number above 0 and below 1.")
            p = min(prior, 1.0 - prior)
            return p * (1.0 - float(self(max(0.0, math.log((1.0 - p) / p)))))

        return _each(prior, risk)

    def reconstruction(self, baseline: Any) -> Any:
        """Compute the largest chance with which an attacker reconstructs a record, or an attribute of it.

        It is 1 - f(`baseline`), f the `trade_off` (Kulynych et al. 2025). The record x is drawn from a law
        that the attacker knows, as they know all other records; a guess succeeds if it is near enough, by any measure
        fixed before. Proof: let S be the pairs of a record and an output with which the guess succeeds. If the output
        came from the data without x (under "replace_one": with a fixed record in its place) it would be independent of
        x, and S have a chance of at most `baseline`. For every x, the chance of its outputs in S is at most 1 - f of
        what it is there; 1 - f is concave, so that this holds for the means over x.

        Parameters
        ----------
        baseline : float or array-like
            The largest chance of success of any guess that is made without the release, in [0, 1].

        Returns
        -------
        float or ndarray
            In [`baseline`, 1].
        """
        return _each(baseline, lambda kappa: self._rate("baseline", kappa))

    def singling_out(self, baseline: Any) -> Any:
        """Compute the largest chance with which an attacker singles out a certain record.

        The attacker names a property that that record has and no other one; of records drawn as it was, a share of at
        most `baseline` has such a property (Cohen & Nissim 2020). All other records may be known to them. It is
        1 - f(`baseline`), by the proof of `reconstruction`: without the record, the property is chosen independently of
        it, and it has it with a chance of at most `baseline` (Kulynych et al. 2025). For *any* of n records,
        n times as much: the chances of the single ones add up at most.

        Parameters
        ----------
        baseline : float or array-like
            In [0, 1].

        Returns
        -------
        float or ndarray
            In [`baseline`, 1].
        """
        return self.reconstruction(baseline)


def _each(given: Any, of_one: Callable[[float], float]) -> Any:
    """A function of a number for a number, or for every number of an array."""
    at = np.asarray(given, dtype=np.float64)
    values = [of_one(float(x)) for x in at.ravel()]
    return np.array(values).reshape(at.shape) if at.ndim else values[0]


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
        rows.append((method, epsilon, method in METHODS, str(reason or METHOD_NAMES[method])))
    return pd.DataFrame(rows, columns=["method", "epsilon", "guarantee", "note"])
