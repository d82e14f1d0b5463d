"""Rényi curve, privacy profile and trade-off function of an event."""

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
    check_computable,
    check_delta,
    check_epsilon,
    check_group,
    check_method,
    explain_rejection,
    get_delta,
    get_epsilon,
)
from skdp.accounting.pld.epsilon import profile_pair
from skdp.accounting.pld.profiles import Profile, ProfilePair, group_profile
from skdp.accounting.pld.trade_off import fine_profile, largest_excess, least_mu, lower_mu
from skdp.accounting.rdp.rdp import rdp, rdp_rejection
from skdp.accounting.releases import releases_of_group

_LEAST_ORDER, _LARGEST_ORDER = 1.0 + 1e-5, 1e12
_POINTS = 200
_FAR = 1e6  # largest epsilon in nats at which delta is computed
_OPEN = ProfilePair(Profile(np.zeros(1), np.ones(1)), 1)  # without a guarantee


class RenyiCurve:
    """Rényi divergence of an event as a function of the order.

    Parameters
    ----------
    event : DpEvent
        Privacy event that method "rdp" supports. (epsilon, delta) events with a positive delta are rejected, because
        they have no Rényi divergence; `get_epsilon` supports them.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation.
    group_size : int
        Number of records in which neighbors differ. For groups on a Poisson sample, numbers of sampled records with a
        probability below 1e-300 are omitted.

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
            raise TypeError(f"event={type(event).__name__} has no Rényi curve for groups. Use PrivacyProfile.")
        self._replace_one = adjacency == "replace_one"
        rejected = rdp_rejection(self._found, replace_one=self._replace_one)
        if rejected is not None and not self._found.non_private:
            raise type(rejected)(f"{rejected}. Use PrivacyProfile.")

    def __call__(self, orders: Any) -> Any:
        """Compute Rényi divergences.

        Parameters
        ----------
        orders : float or array-like
            Orders above 1.

        Returns
        -------
        float or ndarray
            Divergences in nats, rounded up; inf if infinite, or if the order exceeds 1e12.
        """
        if not np.all(np.asarray(orders, dtype=np.float64) > 1.0):
            raise ValueError(f"`orders` must be numbers above 1, got {show(orders)}.")
        return _each(orders, self._at)

    def _at(self, order: float) -> float:
        if self._found.empty:
            return 0.0
        if order > _LARGEST_ORDER:
            return math.inf
        # divergences increase with the order; near 1 their computation suffers from cancellation
        return rdp(self._found, max(order, _LEAST_ORDER), replace_one=self._replace_one)

    def epsilon(self, delta: float) -> float:
        """Return `get_epsilon` at `delta` by method "rdp".

        Parameters
        ----------
        delta : float
            Delta in (0, 1).

        Returns
        -------
        float
            Epsilon in nats.
        """
        return get_epsilon(self.event, delta, method="rdp", adjacency=self.adjacency, group_size=self.group_size)


class PrivacyProfile:
    """Privacy profile of an event: delta as a function of epsilon, and the attack success rates that follow from it.

    Parameters
    ----------
    event : DpEvent
        Privacy event that `method` supports.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation.
    method : str
        Accounting method, see `get_epsilon`; approximations are rejected.
    group_size : int
        Number of records in which neighbors differ.
    least_delta : float
        Smallest delta of the profile, in (0, 1).

    Attributes
    ----------
    epsilons, deltas : ndarray
        Points of the profile, with increasing epsilons from 0.

    Notes
    -----
    The profile is an upper bound at every epsilon. It is piecewise linear in e^epsilon between several hundred points,
    and the maximum over both directions of neighbors.

    The attack success rates are upper bounds, and `bayes_risk` is a lower bound of the error. The attacker knows all
    other records and all public parameters, and has unlimited computing power. Under "zero_out" and "add_remove" the
    attacker infers whether the record is present, under "replace_one" which of two records is present. With
    `group_size`, the attack concerns a whole group. The bounds hold for one release of `event`. Compose it with all
    other releases of the same records first.

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
        check_computable(found, self.method, replace_one)
        if self.method != "pld":
            return self._by_method()
        floor = math.log(self.least_delta)
        if self._left == 1:
            return fine_profile(found, replace_one, floor)
        return group_profile(profile_pair(found, replace_one, 3.0 * floor), self._left)

    def _by_method(self) -> ProfilePair:
        """Compute the profile point by point, down to `least_delta`."""
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
            Epsilon in nats, at least 0.

        Returns
        -------
        float or ndarray
            Delta in [0, 1].
        """
        return _each(epsilon, lambda at: min(1.0, self._pair.delta_at(check_epsilon(at))))

    def epsilon(self, delta: float) -> float:
        """Compute the smallest epsilon at which the profile is at most `delta`.

        Parameters
        ----------
        delta : float
            Delta in (0, 1).

        Returns
        -------
        float
            Epsilon in nats; inf below the last point of the profile.
        """
        return self._pair.epsilon_at(check_delta(delta))

    def trade_off(self, type_1: Any) -> Any:
        """Compute the smallest type II error of any test of membership, as a function of the type I error.

        A test with false positive rate a has a false negative rate of at least 1 - delta - e^epsilon a and at least
        e^-epsilon (1 - delta - a), for every epsilon (Wasserman & Zhou 2010).

        Parameters
        ----------
        type_1 : float or array-like
            Type I error (false positive rate), in [0, 1].

        Returns
        -------
        float or ndarray
            Type II error (false negative rate), in [0, 1]; 1 - `type_1` if nothing is released.
        """
        return _each(type_1, lambda a: max(0.0, 1.0 - self._rate("type_1", a)))

    def _rate(self, name: str, share: float) -> float:
        """Return the largest true positive rate at a false positive rate."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"`{name}` must be numbers from 0 to 1, got {show(share)}.")
        if self._is_gaussian and 0.0 < share < 1.0:
            return min(1.0, float(ndtr(self._gaussian_mu + ndtri(share))) * (1.0 + 1e-12))
        return min(1.0, share + largest_excess(self._pair.profile, share))

    # --- attack success rates ---

    def advantage(self) -> float:
        """Compute the largest membership inference advantage, TPR - FPR, of any attack.

        It equals delta at epsilon 0, the total variation distance (Kulynych et al. 2024). The advantage is an average.
        A mechanism that publishes a record unchanged with probability 1% has an advantage of only 0.01, although 1% of
        the records are found with certainty. `true_positive_rate` at a small `fpr` detects such mechanisms.

        Returns
        -------
        float
            Advantage in [0, 1].
        """
        return float(self(0.0))

    def true_positive_rate(self, fpr: Any) -> Any:
        """Compute the largest true positive rate of any membership-inference attack at a false positive rate.

        It equals 1 - `trade_off` (Kulynych et al. 2024).

        Parameters
        ----------
        fpr : float or array-like
            False positive rate in [0, 1].

        Returns
        -------
        float or ndarray
            True positive rate in [`fpr`, 1].
        """
        return _each(fpr, lambda a: self._rate("fpr", a))

    def mu(self, alpha_min: float = 1e-6) -> float:
        """Compute the smallest mu of Gaussian differential privacy for errors of at least `alpha_min`.

        For any test whose errors are both at least `alpha_min`, the release is at least as private as a Gaussian
        release in which a record shifts the mean by mu standard deviations (Dong, Roth & Su 2022). Mu summarizes the
        trade-off curve in one number. It gives no guarantee for errors below `alpha_min`, it does not compose, and it
        cannot be charged. With ``alpha_min=0`` it would be infinite for any mechanism that can publish a record
        unchanged.

        Parameters
        ----------
        alpha_min : float
            Smallest error, in [1e-15, 0.5).

        Returns
        -------
        float
            Upper bound of mu; inf if a test can have both errors below `alpha_min`.

        See Also
        --------
        mu_bounds : Lower and upper bound of mu.
        """
        number = read_real(alpha_min)
        # below, the points of a profile do not resolve the errors
        if number is None or not 1e-15 <= number < 0.5:
            raise ValueError(f"`alpha_min` must be a number from 1e-15 to below 0.5, got {show(alpha_min)}.")
        if self._is_gaussian:
            return self._gaussian_mu * (1.0 + 1e-12)
        return least_mu(self._pair.profile, number)

    @property
    def _is_gaussian(self) -> bool:
        """Whether the trade-off function is exactly that of one Gaussian release."""
        return self.method == "pld" and self._left == 1 and self._found.plain

    @property
    def _gaussian_mu(self) -> float:
        return math.sqrt(self._found.mu_squared) * (2.0 if self.adjacency == "replace_one" else 1.0)

    def mu_bounds(self, alpha_min: float = 1e-6) -> tuple[float, float]:
        """Compute certified lower and upper bounds of the smallest mu.

        Parameters
        ----------
        alpha_min : float
            Smallest error, in [1e-15, 0.5).

        Returns
        -------
        lower, upper : float
            `upper` is the result of `mu`. `lower` is 0 if there is no lower bound: for methods other than "pld", for
            groups whose profile is only bounded, and for events with upper bounds only.
        """
        upper, replace_one = self.mu(alpha_min), self.adjacency == "replace_one"
        if self.method != "pld" or self._left > 1 or self._found.empty or self._found.non_private:
            return (upper if upper in (0.0, math.inf) else 0.0), upper
        if self._is_gaussian:
            return self._gaussian_mu * (1.0 - 1e-12), upper
        lower = lower_mu(self._found, replace_one, math.log(self.least_delta), float(alpha_min))
        return min(lower, upper), upper

    def bayes_risk(self, prior: Any) -> Any:
        """Compute the smallest error probability of any attack that infers membership.

        Under "replace_one" it is also the error of inferring a binary attribute if everything else is known.

        Parameters
        ----------
        prior : float or array-like
            Prior probability of membership, in (0, 1).

        Returns
        -------
        float or ndarray
            Error probability, from 0 to the smaller of `prior` and 1 - `prior`, the error without a release.

        Notes
        -----
        With p the smaller of `prior` and 1 - `prior`, the bound is p (1 - delta(log((1 - p) / p))). The smallest error
        is the integral of the minimum of p P and (1 - p) Q, that is p minus p times the hockey-stick divergence at
        (1 - p) / p (Kulynych et al. 2025, proposition D.1).
        """

        def risk(prior: float) -> float:
            if not 0.0 < prior < 1.0:
                raise ValueError(f"`prior` must be a number above 0 and below 1, got {show(prior)}.")
            p = min(prior, 1.0 - prior)
            return p * (1.0 - float(self(max(0.0, math.log((1.0 - p) / p)))))

        return _each(prior, risk)

    def reconstruction(self, baseline: Any) -> Any:
        """Compute the largest probability of reconstructing a record or one of its attributes.

        The attacker knows all other records and the distribution of the record. A guess succeeds if it is close enough,
        by any measure fixed in advance.

        Parameters
        ----------
        baseline : float or array-like
            Largest success probability of any guess without the release, in [0, 1].

        Returns
        -------
        float or ndarray
            Success probability in [`baseline`, 1].

        Notes
        -----
        The bound is 1 - f(`baseline`), where f is the trade-off function (Kulynych et al. 2025). Proof: let S be the
        pairs of a record x and an output for which the guess succeeds. An output of the data without x (under
        "replace_one": with a fixed record instead) is independent of x, so S has a probability of at most `baseline`.
        For every x, the probability of S is at most 1 - f of this probability. Because 1 - f is concave, this also
        holds for the means over x.
        """
        return _each(baseline, lambda kappa: self._rate("baseline", kappa))

    def singling_out(self, baseline: Any) -> Any:
        """Compute the largest probability of singling out a given record.

        The attacker, who can know all other records, states a property that only this record has. The property holds
        for at most a fraction `baseline` of the distribution of the record (Cohen & Nissim 2020). For singling out
        *any* of n records, multiply the bound by n.

        Parameters
        ----------
        baseline : float or array-like
            Fraction in [0, 1] of the distribution for which the property holds.

        Returns
        -------
        float or ndarray
            Success probability in [`baseline`, 1].

        Notes
        -----
        The bound is 1 - f(`baseline`), by the proof of `reconstruction`. Without the record, the property is chosen
        independently of it, so it holds for the record with a probability of at most `baseline` (Kulynych et al. 2025).
        """
        return self.reconstruction(baseline)


def _each(given: Any, of_one: Callable[[float], float]) -> Any:
    """Apply a function to a number, or to every number of an array."""
    at = np.asarray(given, dtype=np.float64)
    values = [of_one(float(x)) for x in at.ravel()]
    return np.array(values).reshape(at.shape) if at.ndim else values[0]


def compare_accountants(
    event: DpEvent, delta: float, *, adjacency: str = "zero_out", methods: Iterable[str] | None = None
) -> Any:
    """Compute the epsilon of an event by several accounting methods.

    Parameters
    ----------
    event : DpEvent
        Privacy event.
    delta : float
        Delta in (0, 1).
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation.
    methods : iterable of str, optional
        Accounting methods. By default, all methods.

    Returns
    -------
    pandas.DataFrame
        Columns ``method``, ``epsilon``, ``guarantee`` (False for approximations) and ``note``. If a method does not
        support the event, epsilon is NaN and the note holds the reason.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("compare_accountants requires pandas. Run `pip install pandas`.") from error
    delta, rows = check_delta(delta), []
    for method in METHODS + APPROXIMATIONS if methods is None else tuple(methods):
        reason = explain_rejection(event, method, adjacency)
        epsilon = get_epsilon(event, delta, method=method, adjacency=adjacency) if reason is None else math.nan
        rows.append((method, epsilon, method in METHODS, str(reason or METHOD_NAMES[method])))
    return pd.DataFrame(rows, columns=["method", "epsilon", "guarantee", "note"])
