"""What each method can price. What it cannot is refused by name, with a method that can."""

from __future__ import annotations

from .classic.composition import kinds_of_steps
from .classic.moments import asymptotic_refusal
from .dominating.pairs import adjacency_refusal, name_of, pair_refusal
from .pld.epsilon import PLD_KINDS
from .rdp.others import event_refusal
from .rdp.rdp import rdp_refusal
from .releases import Releases

__all__ = ["APPROXIMATIONS", "METHODS", "check_priced", "refusal"]

# Never below the truth: may be charged.
METHODS = ("pld", "rdp", "moments", "optimal_exact", "optimal", "strong", "naive")
# Figures of the literature that are not guarantees: to be read, never charged.
APPROXIMATIONS = ("moments_asymptotic", "gdp", "strong_2016")

_STATEMENTS = ("gaussian", "sampled", "laplace", "epsilon_delta", "without_replacement", "sampled_pure")
_KINDS = {
    "pld": PLD_KINDS,
    "rdp": (*_STATEMENTS, "zcdp", "selected", "others"),
    "moments": ("gaussian", "sampled", "laplace", "epsilon_delta"),
    "optimal_exact": _STATEMENTS,
    "optimal": _STATEMENTS,
    "strong": _STATEMENTS,
    "naive": _STATEMENTS,
    "moments_asymptotic": ("gaussian", "sampled"),
    "gdp": ("gaussian", "sampled", "without_replacement"),
    "strong_2016": ("gaussian", "sampled"),
}
# Those that have no price for Poisson sampling when a record is replaced.
_ADD_REMOVE_ONLY = ("moments", "moments_asymptotic", "gdp", "strong_2016")

_NAMES = {
    "gaussian": "GaussianDpEvent",
    "sampled": "PoissonSampledDpEvent of GaussianDpEvent",
    "laplace": "LaplaceDpEvent",
    "epsilon_delta": "EpsilonDeltaDpEvent",
    "zcdp": "ZCDpEvent",
    "without_replacement": "SampledWithoutReplacementDpEvent of GaussianDpEvent",
    "selected": "RepeatAndSelectDpEvent",
}


def _only_worst(found: Releases) -> bool:
    """Whether there is no selection, just the worst of several."""
    return all(selection.tries is None for selection in found.selected)


def _name(found: Releases, kind: str) -> str:
    if kind == "sampled_pure":
        return found.sampled_pure[0].name
    if kind == "others":
        return name_of(found.others[0].event)
    return "WorstOfDpEvent" if kind == "selected" and _only_worst(found) else _NAMES[kind]


def _no_price(name: str, method: str) -> TypeError:
    return TypeError(f"event={name} has no price here by method={method!r}")


def _by_event(found: Releases, method: str) -> Exception | None:
    """A reason that lies in an event."""
    for kind in found.kinds:
        if kind not in _KINDS[method]:
            return _no_price(_name(found, kind), method)
    if method == "moments" and any(statement.delta > 0.0 for statement in found.epsilon_delta):
        return TypeError("event=EpsilonDeltaDpEvent with delta > 0 has no price here by method='moments'")
    if method == "pld":
        lacking = ((name_of(each.event), pair_refusal(each.event)) for each in found.others)
        return next((_no_price(f"{name}{why}", method) for name, why in lacking if why is not None), None)
    if method == "rdp":
        return next(filter(None, (event_refusal(each.event) for each in found.paired)), None)
    if method == "optimal_exact" and kinds_of_steps(found) > 1:
        return TypeError("event=ComposedDpEvent of unequal steps has no price here by method='optimal_exact'")
    return None


def _by_adjacency(found: Releases, method: str, replace_one: bool) -> Exception | None:
    """A reason that lies in the adjacency."""
    if found.without_replacement and not replace_one:
        return ValueError("SampledWithoutReplacementDpEvent has a price under adjacency='replace_one' alone")
    for each in found.paired:
        reason = adjacency_refusal(each.event, replace_one)
        if reason is not None:
            return ValueError(f"{name_of(each.event)} has a price {reason}")
    if replace_one and found.sampled and method in _ADD_REMOVE_ONLY:
        return ValueError(f"adjacency='replace_one' with PoissonSampledDpEvent has no price by method={method!r}")
    return None


def _within(found: Releases, method: str, replace_one: bool) -> Exception | None:
    """Reasons that the methods themselves give."""
    if method == "moments_asymptotic":
        return asymptotic_refusal(found)
    runs = (run for selection in found.selected for run in selection.runs)
    if method == "pld":
        return next(filter(None, (refusal(run, "pld", replace_one, remedy=False) for run in runs)), None)
    if method == "rdp":
        return next(filter(None, (rdp_refusal(run, replace_one=replace_one) for run in runs)), None)
    return None


def _remedy(found: Releases, method: str, replace_one: bool) -> str:
    for other in METHODS:
        if other != method and refusal(found, other, replace_one, remedy=False) is None:
            return f"use method={other!r} (of an estimator: accounting={other!r})"
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
    error = _by_event(found, method) or _by_adjacency(found, method, replace_one) or _within(found, method, replace_one)
    if error is None or not remedy:
        return error
    return type(error)(f"{error}; {_remedy(found, method, replace_one)}.")


def check_priced(found: Releases, method: str, replace_one: bool) -> None:
    """Raise if a method cannot price a composition; see `refusal`."""
    error = refusal(found, method, replace_one)
    if error is not None:
        raise error
