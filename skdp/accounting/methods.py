"""`get_epsilon` and `get_delta` by a given method, and `get_epsilon_bounds` with certified bounds."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from skdp.accounting import classic
from skdp.accounting.events.kinds import FORMS, MOST_IN_GROUP, name_of
from skdp.accounting.events.specifications import DpEvent, read_real, read_whole, resolve, show
from skdp.accounting.formulas.dominating import pair_rejection
from skdp.accounting.formulas.numeric import least_delta
from skdp.accounting.pld.epsilon import FINE, group_delta, group_epsilon, pld_delta, pld_epsilon
from skdp.accounting.pld.lower_bounds import pld_bounds
from skdp.accounting.rdp.rdp import rdp_delta, rdp_epsilon, rdp_rejection
from skdp.accounting.releases import Releases, releases, releases_of_group, without_failures

# --- supported events of each method; the error for other events names a method that supports them ---

METHOD_NAMES = {
    "pld": "privacy loss distributions (PLD)",
    "rdp": "Rényi differential privacy (RDP)",
    "moments": "the moments accountant (Abadi et al. 2016)",
    "optimal_exact": "optimal composition, computed exactly (Kairouz, Oh & Viswanath 2015)",
    "optimal": "optimal composition (Kairouz, Oh & Viswanath 2015)",
    "strong": "strong composition (Dwork, Rothblum & Vadhan 2010)",
    "naive": "naive composition: sums of the epsilons and deltas",
    "moments_asymptotic": "leading term of the log moment; not a guarantee",
    "strong_2016": "strong composition as published in 2016; not a guarantee",
}
# Approximations from the literature, which are not guarantees and cannot be charged.
APPROXIMATIONS = ("moments_asymptotic", "strong_2016")
# Upper bounds, which can be charged.
METHODS = tuple(method for method in METHOD_NAMES if method not in APPROXIMATIONS)


def _name(found: Releases, kind: str) -> str:
    if not FORMS[kind].name:
        return name_of(getattr(found, kind)[0].event)
    nothing_selected = all(selection.trials is None for selection in found.selected)
    return "WorstOfDpEvent" if kind == "selected" and nothing_selected else FORMS[kind].name


def _pld_rejection(found: Releases, replace_one: bool) -> Exception | None:
    for each in found.others:
        why = pair_rejection(each.event)
        if why is not None:
            return TypeError(f"event={name_of(each.event)}{why} is not supported by method='pld'")
    runs = (run for selection in found.selected for run in selection.runs)
    return next(filter(None, (rejection(run, "pld", replace_one, remedy=False) for run in runs)), None)


# Conditions of a method besides the supported releases and the adjacency.
_CONDITIONS: dict[str, Callable[[Releases, bool], Exception | None]] = {
    "pld": _pld_rejection,
    "rdp": lambda found, replace_one: rdp_rejection(without_failures(found), replace_one=replace_one),
    "moments": classic.moments_rejection,
    "optimal_exact": classic.exact_rejection,
    "moments_asymptotic": classic.asymptotic_rejection,
}


def _reason(found: Releases, method: str, replace_one: bool) -> Exception | None:
    """Return why a method does not support a composition: the releases, a condition or the adjacency."""
    for kind in found.kinds:
        if method not in FORMS[kind].methods:
            return TypeError(f"event={_name(found, kind)} is not supported by method={method!r}")
    if replace_one and found.sampled and method in ("moments", "moments_asymptotic", "strong_2016"):
        return ValueError(f"adjacency='replace_one' with PoissonSampledDpEvent is not supported by method={method!r}")
    condition = _CONDITIONS.get(method)
    return (condition(found, replace_one) if condition else None) or found.adjacency_rejection(replace_one)


def _remedy(found: Releases, method: str, replace_one: bool) -> str:
    for other in METHODS:
        if other != method and rejection(found, other, replace_one, remedy=False) is None:
            return f"Use method={other!r} (for a fit: PrivacyAccountant(method={other!r}))"
    for other in (method, *METHODS):
        if rejection(found, other, not replace_one, remedy=False) is None:
            adjacency = "zero_out" if replace_one else "replace_one"
            return f"Use adjacency={adjacency!r}" + ("" if other == method else f" and method={other!r}")
    return "No method supports this composition; compute the epsilon of its parts separately"


def rejection(found: Releases, method: str, replace_one: bool, *, remedy: bool = True) -> Exception | None:
    """Return the error of a method that does not support a composition.

    Parameters
    ----------
    found : Releases
    method : str
        One of `METHODS` or `APPROXIMATIONS`.
    replace_one : bool
        Whether neighbors replace a record.
    remedy : bool
        Whether to search for a method that supports it.

    Returns
    -------
    Exception or None
        TypeError for an event, ValueError for an adjacency or a condition; None if the method supports it.
    """
    if found.empty or found.non_private:
        return None
    error = _reason(found, method, replace_one)
    if error is None or not remedy:
        return error
    return type(error)(f"{error}. {_remedy(found, method, replace_one)}.")


def check_computable(found: Releases, method: str, replace_one: bool) -> None:
    """Raise if a method does not support a composition; see `rejection`."""
    error = rejection(found, method, replace_one)
    if error is not None:
        raise error


# --- privacy costs ---

ADJACENCIES = ("zero_out", "add_remove", "replace_one")


@dataclass(frozen=True)
class AddRemove:
    """Neighboring relation in which a record is added or removed, so that the number of records is private.

    Parameters
    ----------
    n_public : int
        Public estimate of the number of rows, or of groups if `groups` is passed to ``fit``. Set it to a round number
        near the private one. All rules of an estimator use it instead of the private number.

    Examples
    --------
    >>> import skdp
    >>> model = skdp.DPLogisticRegression(adjacency=skdp.AddRemove(n_public=10_000), classes=[0, 1])
    """

    n_public: int

    def __post_init__(self) -> None:
        number = read_whole(self.n_public)
        if number is None or number < 1:
            raise ValueError(f"AddRemove: `n_public` must be a positive integer, got {show(self.n_public)}.")
        object.__setattr__(self, "n_public", number)


def check_delta(delta: Any) -> float:
    """Return `delta` as a float in (0, 1), or raise a ValueError."""
    number = read_real(delta)
    if number is None or not 0.0 < number < 1.0:
        raise ValueError(f"`delta` must be a number above 0 and below 1, such as 1e-5, got {show(delta)}.")
    return number


def check_epsilon(epsilon: Any, *, positive: bool = False) -> float:
    """Return `epsilon` as a finite float of at least 0 (above 0 if `positive`), or raise a ValueError."""
    number = read_real(epsilon)
    if number is None or not 0.0 <= number < math.inf or (positive and number == 0.0):
        least = "above 0" if positive else "of at least 0"
        raise ValueError(f"`epsilon` must be a finite number {least}, got {show(epsilon)}.")
    return number


def check_known(name: str, value: Any, known: Sequence[str]) -> str:
    """Return `value` if it is one of the `known` names, or raise a ValueError that lists them."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"`{name}` must be one of {', '.join(known)}, got {show(value)}.")
    return value


def check_adjacency(adjacency: Any) -> str:
    """Return `adjacency` if it is known, or raise a ValueError that lists the known ones."""
    if isinstance(adjacency, AddRemove):
        raise ValueError(
            f"`adjacency` must be 'add_remove' here, got {adjacency!r}, which holds the number of records of one fit. "
            "Pass AddRemove to estimators only."
        )
    return check_known("adjacency", adjacency, ADJACENCIES)


def check_method(method: Any) -> str:
    """Return `method` if it is an upper bound that can be charged, or raise a ValueError."""
    if isinstance(method, str) and method in APPROXIMATIONS:
        raise ValueError(
            f"method={method!r} is not a guarantee and cannot be charged. Use one of {', '.join(METHODS)}."
        )
    return check_known("method", method, METHODS)


def _check_reading(method: Any) -> str:
    """Return `method` if it is known, including approximations, or raise a ValueError."""
    return check_known("method", method, METHODS + APPROXIMATIONS)


_EPSILON: dict[str, Callable[..., float]] = {
    "rdp": rdp_epsilon,
    "moments": partial(classic.tail_epsilon, classic.log_moments),
    "optimal_exact": partial(classic.composed_epsilon, classic.optimal_exact),
    "optimal": partial(classic.composed_epsilon, classic.optimal),
    "strong": partial(classic.composed_epsilon, classic.strong),
    "naive": classic.naive_epsilon,
    "moments_asymptotic": partial(classic.tail_epsilon, classic.asymptotic_moments),
    "strong_2016": classic.strong_2016_epsilon,
}
_DELTA: dict[str, Callable[..., float]] = {
    "rdp": rdp_delta,
    "moments": partial(classic.tail_delta, classic.log_moments),
    "moments_asymptotic": partial(classic.tail_delta, classic.asymptotic_moments),
}


@lru_cache(maxsize=4096)
def _epsilon(found: Releases, delta: float, method: str, replace_one: bool, accuracy: float, records: int) -> float:
    check_computable(found, method, replace_one)
    if records > 1:
        return group_epsilon(found, delta, records, replace_one)
    if method == "pld":
        return pld_epsilon(found, delta, replace_one=replace_one, accuracy=accuracy)
    return _round_up(_EPSILON[method](found, delta, replace_one=replace_one), method)


def _round_up(value: float, method: str) -> float:
    """Round up the result of a method that is a guarantee."""
    # each method rounds up its own cancellations; this covers the rounding of sums of positive terms
    return value * (1.0 + 1e-12) if method in METHODS else value


def rough_epsilon(event: DpEvent, delta: float, *, method: str, adjacency: str) -> float:
    """Return a faster upper bound of `get_epsilon`, with a relative error of about 0.1%, for searches."""
    return epsilon_of(releases(event), delta, method, adjacency, accuracy=1e-3)


@lru_cache(maxsize=4096)
def _delta(found: Releases, epsilon: float, method: str, replace_one: bool, records: int = 1) -> float:
    check_computable(found, method, replace_one)
    if records > 1:
        return group_delta(found, epsilon, records, replace_one)
    if method == "pld":
        return pld_delta(found, epsilon, replace_one=replace_one)
    if method in _DELTA:
        return _round_up(_DELTA[method](found, epsilon, replace_one=replace_one), method)
    # without a formula: the delta at which the method's epsilon equals this one
    return least_delta(lambda at: _round_up(_EPSILON[method](found, at, replace_one=replace_one), method), epsilon)


def explain_rejection(event: DpEvent, method: str, adjacency: str) -> Exception | None:
    """Return the error of a method that does not support an event, with a remedy; None if it does."""
    return rejection(releases(event), _check_reading(method), check_adjacency(adjacency) == "replace_one")


def check_group(group_size: Any) -> int:
    """Return `group_size` as an integer from 1 to `MOST_IN_GROUP`, or raise a ValueError."""
    number = read_whole(group_size)
    if number is None or not 1 <= number <= MOST_IN_GROUP:
        raise ValueError(f"`group_size` must be an integer from 1 to {MOST_IN_GROUP}, got {show(group_size)}.")
    return number


def _grouped(event: DpEvent, group_size: Any, method: str) -> tuple[Releases, int]:
    """Return `releases_of_group`, or raise if the method does not support the group."""
    number = check_group(group_size)
    found, left = releases_of_group(event, number)
    if left > 1 and method != "pld":
        name = type(resolve(event)).__name__
        raise TypeError(
            f"event={name} with group_size={number} is not supported by method={method!r}. Use method='pld'."
        )
    return found, left


def get_epsilon(
    event: DpEvent, delta: float, *, method: str = "pld", adjacency: str = "zero_out", group_size: int = 1
) -> float:
    """Compute the epsilon of an event at `delta`.

    All methods except the two approximations return an upper bound.

    Parameters
    ----------
    event : DpEvent
        Privacy event.
    delta : float
        Delta in (0, 1).
    method : str
        Accounting method. "pld" uses privacy loss distributions, with an error of about 1e-4 or less. Looser bounds are
        "rdp" (Rényi differential privacy), "moments" (Abadi et al. 2016), and the composition theorems "optimal_exact",
        "optimal", "strong" and "naive". "moments_asymptotic" and "strong_2016" are approximations without a guarantee
        and cannot be charged. See ``docs/accounting.md``.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation. "zero_out" and "add_remove" have the same privacy cost.
    group_size : int
        Number of records in which neighbors differ. Most events are as tight as for one record. Others, such as samples
        of fixed size, require "pld", which then uses a bound on the privacy profile.

    Returns
    -------
    float
        Epsilon in nats. 0.0 only if nothing was released; if delta alone covers a release, it is the smallest positive
        float. inf for `NonPrivateDpEvent`, and if no finite epsilon holds at this delta.

    Raises
    ------
    TypeError, ValueError
        If the method does not support the event or the adjacency. The message names a method that does.

    Examples
    --------
    >>> from skdp.accounting import GaussianDpEvent, get_epsilon
    >>> round(get_epsilon(GaussianDpEvent(4.0), delta=1e-5), 3)
    0.926
    """
    delta, method, adjacency = check_delta(delta), _check_reading(method), check_adjacency(adjacency)
    found, records = _grouped(event, group_size, method)
    return epsilon_of(found, delta, method, adjacency, records)


def epsilon_of(
    found: Releases, delta: float, method: str, adjacency: str, records: int = 1, accuracy: float = FINE
) -> float:
    """Return `get_epsilon` of a composition, for validated parameters."""
    if found.empty:
        return 0.0
    if found.non_private:
        return math.inf
    value = _epsilon(found, delta, method, adjacency == "replace_one", accuracy, records)
    return max(value, sys.float_info.min)


def get_delta(
    event: DpEvent, epsilon: float, *, method: str = "pld", adjacency: str = "zero_out", group_size: int = 1
) -> float:
    """Compute the delta of an event at `epsilon`.

    All methods except the two approximations return an upper bound.

    Parameters
    ----------
    event : DpEvent
        Privacy event.
    epsilon : float
        Finite epsilon in nats, at least 0.
    method : str
        Accounting method, see `get_epsilon`.
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation.
    group_size : int
        Number of records in which neighbors differ, see `get_epsilon`.

    Returns
    -------
    float
        Delta in [0, 1]; 0.0 only if nothing was released, 1.0 for `NonPrivateDpEvent`.
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
    """Compute certified lower and upper bounds of the epsilon of an event.

    Parameters
    ----------
    event : DpEvent
        Privacy event that `get_epsilon` supports with method "pld".
    delta : float
        Delta in (0, 1).
    adjacency : {"zero_out", "add_remove", "replace_one"}
        Neighboring relation.

    Returns
    -------
    lower, upper : float
        Bounds in nats of the smallest epsilon at which the event is (epsilon, delta)-private. `upper` is the result of
        `get_epsilon`. Both are inf if no finite epsilon holds at this delta.

    Notes
    -----
    The bounds usually differ by less than 1e-3. They differ more if privacy losses are large and rare, or if there is
    almost no noise; in the worst case, `lower` is the epsilon of a single release. `lower` ignores releases without a
    lower bound: Laplace and integer-valued noise on samples, samples of fixed size, and mixtures. It is 0 for events
    that consist of such releases only, and for third-party events.
    """
    delta, adjacency = check_delta(delta), check_adjacency(adjacency)
    found = releases(event)
    if found.empty:
        return 0.0, 0.0
    if found.non_private:
        return math.inf, math.inf
    check_computable(found, "pld", adjacency == "replace_one")
    lower, upper = pld_bounds(found, delta, adjacency == "replace_one")
    return (lower if resolve(event) is event else 0.0), max(upper, sys.float_info.min)
