"""`get_epsilon`, `get_delta` by the method that is named, and `get_epsilon_bounds`, the truth from both sides."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from skdp.accounting import classic
from skdp.accounting.events.kinds import FORMS, MOST_IN_GROUP, name_of
from skdp.accounting.events.specifications import DpEvent, read_real, read_whole, resolve, show
from skdp.accounting.formulas.dominating import pair_refusal
from skdp.accounting.formulas.numeric import least_delta
from skdp.accounting.pld.epsilon import FINE, group_delta, group_epsilon, pld_delta, pld_epsilon
from skdp.accounting.pld.lower_bounds import pld_bounds
from skdp.accounting.rdp.rdp import rdp_delta, rdp_epsilon, rdp_refusal
from skdp.accounting.releases import Releases, releases, releases_of_group, without_failures

# --- what each method can price: what it cannot is refused by name, with a method that can ---

METHOD_NAMES = {
    "pld": "privacy loss distributions (PLD)",
    "rdp": "Rényi differential privacy (RDP)",
    "moments": "the moments accountant (Abadi et al. 2016)",
    "optimal_exact": "optimal composition, computed exactly (Kairouz, Oh & Viswanath 2015)",
    "optimal": "optimal composition (Kairouz, Oh & Viswanath 2015)",
    "strong": "strong composition (Dwork, Rothblum & Vadhan 2010)",
    "naive": "naive composition: epsilons and deltas are added up",
    "moments_asymptotic": "leading term of the log moment: not a guarantee",
    "strong_2016": "strong composition as published in 2016: not a guarantee",
}
# Figures of the literature that are not guarantees: to be read, never charged.
APPROXIMATIONS = ("moments_asymptotic", "strong_2016")
# Never below the truth: may be charged.
METHODS = tuple(method for method in METHOD_NAMES if method not in APPROXIMATIONS)


def _name(found: Releases, kind: str) -> str:
    if not FORMS[kind].name:
        return name_of(getattr(found, kind)[0].event)
    nothing_selected = all(selection.trials is None for selection in found.selected)
    return "WorstOfDpEvent" if kind == "selected" and nothing_selected else FORMS[kind].name


def _pld_refusal(found: Releases, replace_one: bool) -> Exception | None:
    for each in found.others:
        why = pair_refusal(each.event)
        if why is not None:
            return TypeError(f"event={name_of(each.event)}{why} has no price here by method='pld'")
    runs = (run for selection in found.selected for run in selection.runs)
    return next(filter(None, (refusal(run, "pld", replace_one, remedy=False) for run in runs)), None)


# What a method asks of a composition beside the kinds that it prices and the adjacency.
_CONDITIONS: dict[str, Callable[[Releases, bool], Exception | None]] = {
    "pld": _pld_refusal,
    "rdp": lambda found, replace_one: rdp_refusal(without_failures(found), replace_one=replace_one),
    "moments": classic.moments_refusal,
    "optimal_exact": classic.exact_refusal,
    "moments_asymptotic": classic.asymptotic_refusal,
}


def _reason(found: Releases, method: str, replace_one: bool) -> Exception | None:
    """Why a method cannot price a composition: the table of kinds, a condition of its own, or the adjacency."""
    for kind in found.kinds:
        if method not in FORMS[kind].methods:
            return TypeError(f"event={_name(found, kind)} has no price here by method={method!r}")
    if replace_one and found.sampled and method in ("moments", "moments_asymptotic", "strong_2016"):
        return ValueError(f"adjacency='replace_one' with PoissonSampledDpEvent has no price by method={method!r}")
    condition = _CONDITIONS.get(method)
    return (condition(found, replace_one) if condition else None) or found.adjacency_refusal(replace_one)


def _remedy(found: Releases, method: str, replace_one: bool) -> str:
    for other in METHODS:
        if other != method and refusal(found, other, replace_one, remedy=False) is None:
            return f"use method={other!r} (of a fit: PrivacyAccountant(method={other!r}))"
    for other in (method, *METHODS):
        if refusal(found, other, not replace_one, remedy=False) is None:
            adjacency = "zero_out" if replace_one else "replace_one"
            return f"use adjacency={adjacency!r}" + ("" if other == method else f" and method={other!r}")
    return "no method prices this composition: price its parts apart"


def refusal(found: Releases, method: str, replace_one: bool, *, remedy: bool = True) -> Exception | None:
    """Why a method cannot price a composition.

    Parameters
    ----------
    found : Releases
    method : str
        One of `METHODS` or `APPROXIMATIONS`.
    replace_one : bool
        Whether neighbours replace a record.
    remedy : bool
        Whether to look for a method that can.

    Returns
    -------
    Exception or None
        TypeError for an event, ValueError for an adjacency or a condition; None if there is a price.
    """
    if found.empty or found.non_private:
        return None
    error = _reason(found, method, replace_one)
    if error is None or not remedy:
        return error
    return type(error)(f"{error}; {_remedy(found, method, replace_one)}.")


def check_priced(found: Releases, method: str, replace_one: bool) -> None:
    """Raise if a method cannot price a composition; see `refusal`."""
    error = refusal(found, method, replace_one)
    if error is not None:
        raise error


# --- prices ---

ADJACENCIES = ("zero_out", "add_remove", "replace_one")


@dataclass(frozen=True)
class AddRemove:
    """Neighboring relation in which a record is added or removed, so that the number of records is private.

    Parameters
    ----------
    n_public : int
        Public number of rows, or of groups where ``fit`` is given `groups`: a round number near the private one. Every
        rule uses it instead.

    Examples
    --------
    >>> import skdp
    >>> model = skdp.DPLogisticRegression(adjacency=skdp.AddRemove(n_public=10_000), classes=[0, 1])
    """

    n_public: int

    def __post_init__(self) -> None:
        number = read_whole(self.n_public)
        if number is None or number < 1:
            raise ValueError(f"AddRemove: n_public must be a whole number above 0, got {show(self.n_public)}.")
        object.__setattr__(self, "n_public", number)


def check_delta(delta: Any) -> float:
    """`delta` as a float in (0, 1), or a ValueError that says so."""
    number = read_real(delta)
    if number is None or not 0.0 < number < 1.0:
        raise ValueError(f"delta={show(delta)} is not valid; give a number above 0 and below 1, such as 1e-5.")
    return number


def check_epsilon(epsilon: Any, *, positive: bool = False) -> float:
    """`epsilon` as a finite float of at least 0 (above 0 if `positive`), or a ValueError that says so."""
    number = read_real(epsilon)
    if number is None or not 0.0 <= number < math.inf or (positive and number == 0.0):
        least = "above 0" if positive else "of 0 or more"
        raise ValueError(f"epsilon={show(epsilon)} is not valid; give a finite number {least}.")
    return number


def check_known(name: str, value: Any, known: Sequence[str]) -> str:
    """`value` if it is one of the names that are `known`, or a ValueError that lists them."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={show(value)} is not known; choose one of {', '.join(known)}.")
    return value


def check_adjacency(adjacency: Any) -> str:
    """`adjacency` if it is known, or a ValueError that lists what is."""
    if isinstance(adjacency, AddRemove):
        raise ValueError(
            f"adjacency={adjacency!r} has the number of records of one fit: give 'add_remove' here, and AddRemove to "
            "estimators."
        )
    return check_known("adjacency", adjacency, ADJACENCIES)


def check_method(method: Any) -> str:
    """`method` if its figures may be charged, or a ValueError that lists those that may."""
    if isinstance(method, str) and method in APPROXIMATIONS:
        raise ValueError(
            f"method={method!r} is not a guarantee and cannot be charged; choose one of {', '.join(METHODS)}."
        )
    return check_known("method", method, METHODS)


def _check_reading(method: Any) -> str:
    """`method` if it is known at all, approximations included, or a ValueError that lists what is."""
    return check_known("method", method, METHODS + APPROXIMATIONS)


_EPSILON: dict[str, Callable[..., float]] = {
    "rdp": rdp_epsilon,
    "moments": classic.moments_epsilon,
    "optimal_exact": classic.optimal_exact_epsilon,
    "optimal": classic.optimal_epsilon,
    "strong": classic.strong_epsilon,
    "naive": classic.naive_epsilon,
    "moments_asymptotic": classic.asymptotic_epsilon,
    "strong_2016": classic.strong_2016_epsilon,
}
_DELTA: dict[str, Callable[..., float]] = {
    "rdp": rdp_delta,
    "moments": classic.moments_delta,
    "moments_asymptotic": classic.asymptotic_delta,
}


@lru_cache(maxsize=4096)
def _epsilon(
    found: Releases, delta: float, method: str, replace_one: bool, accuracy: float = FINE, records: int = 1
) -> float:
    check_priced(found, method, replace_one)
    if records > 1:
        return group_epsilon(found, delta, records, replace_one)
    if method == "pld":
        return pld_epsilon(found, delta, replace_one=replace_one, accuracy=accuracy)
    return _round_up(_EPSILON[method](found, delta, replace_one=replace_one), method)


def _round_up(value: float, method: str) -> float:
    """The figure of a method that is a guarantee, rounded up; any other as it is."""
    # each method rounds up what cancels within it; this covers the rounding of the rest, sums of positive terms
    return value * (1.0 + 1e-12) if method in METHODS else value


def rough_epsilon(event: DpEvent, delta: float, *, method: str, adjacency: str, accuracy: float = 1e-3) -> float:
    """`get_epsilon` with a relative error of about `accuracy`, above, in a fraction of the time; for searches."""
    found = releases(event)
    if found.empty or found.non_private:
        return get_epsilon(event, delta, method=method, adjacency=adjacency)
    return max(_epsilon(found, delta, method, adjacency == "replace_one", accuracy), sys.float_info.min)


@lru_cache(maxsize=4096)
def _delta(found: Releases, epsilon: float, method: str, replace_one: bool, records: int = 1) -> float:
    check_priced(found, method, replace_one)
    if records > 1:
        return group_delta(found, epsilon, records, replace_one)
    if method == "pld":
        return pld_delta(found, epsilon, replace_one=replace_one)
    if method in _DELTA:
        return _round_up(_DELTA[method](found, epsilon, replace_one=replace_one), method)
    # no formula of its own: the delta at which its epsilon is this one
    return least_delta(lambda at: _round_up(_EPSILON[method](found, at, replace_one=replace_one), method), epsilon)


def explain_refusal(event: DpEvent, method: str, adjacency: str) -> Exception | None:
    """Why a method cannot price an event, with a remedy; None if it can."""
    return refusal(releases(event), _check_reading(method), check_adjacency(adjacency) == "replace_one")


def check_group(group_size: Any) -> int:
    """`group_size` as a whole number from 1 to `MOST_IN_GROUP`, or a ValueError that says so."""
    number = read_whole(group_size)
    if number is None or not 1 <= number <= MOST_IN_GROUP:
        raise ValueError(
            f"group_size={show(group_size)} is not valid; give a whole number of records from 1 to {MOST_IN_GROUP}."
        )
    return number


def _grouped(event: DpEvent, group_size: Any, method: str) -> tuple[Releases, int]:
    """`releases_of_group`, or an error where the group has no price by this method."""
    number = check_group(group_size)
    found, left = releases_of_group(event, number)
    if left > 1 and method != "pld":
        name = type(resolve(event)).__name__
        raise TypeError(f"event={name} has no price for group_size={number} by method={method!r}; use method='pld'.")
    return found, left


def get_epsilon(
    event: DpEvent, delta: float, *, method: str = "pld", adjacency: str = "zero_out", group_size: int = 1
) -> float:
    """Epsilon that an event costs at `delta`: by the methods in `METHODS`, never below the truth.

    Parameters
    ----------
    event : DpEvent
        Event to price.
    delta : float
        In (0, 1).
    method : str
        "pld": privacy loss distributions, exact to about 1e-4 and better. Looser: "rdp" (Rényi), "moments"
        (Abadi et al. 2016), "optimal_exact", "optimal", "strong" and "naive" composition. Not guarantees, and
        refused wherever something is charged: "moments_asymptotic", "strong_2016". See `docs/accounting.md`. An
        event that a method cannot price is refused by name.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        What neighbours differ in. `zero_out` has the price of `add_remove`.
    group_size : int
        In how many records neighbours differ. Most events are priced as exactly as for one record; the rest, such as
        samples of fixed size, by "pld" alone, by a bound on their privacy profile.

    Returns
    -------
    float
        In nats. 0.0 means that nothing was released: where delta alone covers a release, the smallest
        positive number is returned. inf for `NonPrivateDpEvent`, and where no epsilon holds at this delta.
    """
    delta, method, adjacency = check_delta(delta), _check_reading(method), check_adjacency(adjacency)
    found, records = _grouped(event, group_size, method)
    return epsilon_of(found, delta, method, adjacency, records)


def epsilon_of(found: Releases, delta: float, method: str, adjacency: str, records: int = 1) -> float:
    """`get_epsilon` of a composition, by parameters that were checked."""
    if found.empty:
        return 0.0
    if found.non_private:
        return math.inf
    value = _epsilon(found, delta, method, adjacency == "replace_one", records=records)
    return max(value, sys.float_info.min)


def get_delta(
    event: DpEvent, epsilon: float, *, method: str = "pld", adjacency: str = "zero_out", group_size: int = 1
) -> float:
    """Delta that an event costs at `epsilon`: by the methods in `METHODS`, never below the truth.

    Parameters
    ----------
    event : DpEvent
        Event to price.
    epsilon : float
        Finite, at least 0, in nats.
    method : str
        As in `get_epsilon`.
    adjacency : {"zero_out", "add_remove", "replace_one"}
    group_size : int
        As in `get_epsilon`.

    Returns
    -------
    float
        In [0, 1]; 0.0 only for nothing, 1.0 for `NonPrivateDpEvent`.
    """
    epsilon, method, adjacency = check_epsilon(epsilon), _check_reading(method), check_adjacency(adjacency)
    found, records = _grouped(event, group_size, method)
    if found.empty:
        return 0.0
    if found.non_private:
        return 1.0
    value = _delta(found, epsilon, method, adjacency == "replace_one", records)
    return min(1.0, max(value, sys.float_info.min))


def get_epsilon_bounds(event: DpEvent, delta: float, *, adjacency: str = "zero_out") -> tuple[float, float]:
    """Certified bracket of the least epsilon at which an event is (epsilon, delta)-private.

    Parameters
    ----------
    event : DpEvent
        What `get_epsilon` prices by method "pld".
    delta : float
        In (0, 1).
    adjacency : {"zero_out", "add_remove", "replace_one"}
        What neighbours differ in.

    Returns
    -------
    lower, upper : float
        In nats. `upper` is what `get_epsilon` gives; the mechanism alone costs at least `lower`, by the
        proof in `skdp.accounting.pld.lower_bounds`. Mostly within 1e-3 of each other; wider, at worst with a `lower`
        of what a single release costs, where losses are large and rare or noise is nearly absent. Both are
        inf where no epsilon holds at this delta. Of events that are priced by weighted losses (Laplace and integer
        noise on samples, samples of fixed size, mixtures) only `upper` is a statement: `lower` is what the rest
        costs, 0 if there is none. Of a third party's event `lower` is 0.
    """
    delta, adjacency = check_delta(delta), check_adjacency(adjacency)
    found = releases(event)
    if found.empty:
        return 0.0, 0.0
    if found.non_private:
        return math.inf, math.inf
    check_priced(found, "pld", adjacency == "replace_one")
    lower, upper = pld_bounds(found, delta, adjacency == "replace_one")
    return (lower if resolve(event) is event else 0.0), max(upper, sys.float_info.min)
