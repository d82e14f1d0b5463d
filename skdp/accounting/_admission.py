"""Whether an entry may be written, and what a charge is told that may not."""

from __future__ import annotations

import math
from dataclasses import replace

from skdp.exceptions import BudgetExceededError

from ._affordable import affordable
from ._bill import Bill
from ._charges import Charge, joint_price, methods_for
from ._composition import MOST_RELEASES, Releases, releases
from ._filters import Filter, failures_of
from ._methods import check_epsilon
from ._refusals import refusal
from ._rounding import rounded

__all__ = ["admitted"]

_RAISE = "raise the ceiling (PrivacyAccountant.raise_ceiling, python -m skdp.budget raise)"


def admitted(bill: Bill, entry: Charge) -> Charge:
    """The entry as it is to be written, with the rule that governs; raises if it is not admitted.

    Parameters
    ----------
    bill : Bill
        All that was written before it.
    entry : Charge

    Returns
    -------
    Charge
    """
    if entry.kind == "refusal":
        return entry
    if entry.kind == "raise":
        return _checked_raise(bill, entry)
    bill.refuse_mixed(entry.adjacency)
    found = releases(entry.event)
    if found.empty:
        return entry
    if not bill.has_room(entry.event):
        raise ValueError(
            f"event={type(entry.event).__name__} makes more than {MOST_RELEASES:.0e} releases with those of this "
            "ledger; no method prices so many, and nothing was charged: charge it to a ledger of its own."
        )
    if not bill.priced_with(found, entry.adjacency):
        raise _without_price(bill, entry, found)
    if bill.epsilon is None:
        return entry
    if not bill.admits(entry.event, entry.adjacency):
        raise _excess(bill, entry, found)
    known = bill.raised or bill.rule is not None
    return entry if known else replace(entry, rule=bill.rule_with(found, entry.adjacency))


def _checked_raise(bill: Bill, entry: Charge) -> Charge:
    """A raise if it is one, and if the odometer's figure lies within the new ceiling."""
    epsilon = check_epsilon(entry.parameters["epsilon"], positive=True)
    if bill.epsilon is None:
        raise ValueError("a ledger without a ceiling has none to raise; begin another ledger with epsilon and delta.")
    if epsilon <= bill.epsilon:
        raise ValueError(f"epsilon={epsilon!r} does not raise the ceiling epsilon={bill.epsilon!r}; give more.")
    figure = bill.adaptive_price(bill.delta)
    if figure > epsilon:
        remedy = f"give epsilon={rounded(figure, 3, up=True)} or more" if figure < math.inf else "begin another ledger"
        raise ValueError(
            f"epsilon={epsilon!r} is not enough: for a ceiling raised after outputs were seen, what was charged counts "
            f"{rounded(figure, 3, up=True)} at delta={bill.delta:g}; {remedy}."
        )
    return replace(entry, label=f"ceiling raised from {bill.epsilon:g} to {epsilon:g}")


# --- what is told -----------------------------------------------------------------------------------------


def _without_price(bill: Bill, entry: Charge, found: Releases) -> Exception:
    name, replace_one = type(entry.event).__name__, entry.adjacency == "replace_one"
    if not methods_for(found, entry.adjacency):
        alone = [error for method in ("pld", "rdp") if (error := refusal(found, method, replace_one)) is not None]
        return next((error for error in alone if isinstance(error, ValueError)), alone[0])
    return ValueError(
        f"event={name} has no price together with what this ledger holds, by any method; nothing was charged: charge "
        "it to a ledger of its own."
    )


def _excess(bill: Bill, entry: Charge, found: Releases) -> BudgetExceededError:
    ceiling = f"the ceiling epsilon={bill.epsilon!r} at delta={bill.delta!r}"
    return BudgetExceededError(
        _no_theorem(bill, entry, found, ceiling)
        or _too_much_delta(bill, found, ceiling)
        or _too_much_epsilon(bill, entry, ceiling)
    )


def _no_theorem(bill: Bill, entry: Charge, found: Releases, ceiling: str) -> str | None:
    """If the charge is not of a kind that can follow what was charged."""
    doubled = entry.adjacency == "replace_one"
    if not bill.counts:
        return None
    renyi = Filter(2.0, 0.0, doubled)
    if found.plain or (
        not bill.raised
        and any(
            limit.covers(found)
            for limit in bill.rule_with(found, entry.adjacency).filters(bill.epsilon or 0.0, doubled)
        )
    ):
        return None
    name = type(entry.event).__name__
    if not renyi.covers(found):
        return (
            f"{name} has no Rényi price, which a charge after the first one needs under {ceiling}; nothing was "
            "charged: charge plans that are known together as one ComposedDpEvent, or use a ledger of its own."
        )
    if bill.raised:
        return None
    return (
        f"{name} is of a kind that this ledger does not admit after its first charge under {ceiling}; nothing was "
        f"charged: {_RAISE}, or begin another ledger."
    )


def _too_much_delta(bill: Bill, found: Releases, ceiling: str) -> str | None:
    """If the charge fails more often than the ceiling has room for."""
    needed, left = failures_of([(found, 1)]), bill.failures_left()
    if needed <= left:
        return None
    at_all = f"lower its delta to {rounded(left, 3)}" if left > 0.0 else "charge it first, or to a ledger of its own"
    return (
        f"this fit needs delta {rounded(needed, 3, up=True)}, {rounded(left, 3)} is left for failure probabilities "
        f"under {ceiling}; nothing was charged: {at_all}."
    )


def _too_much_epsilon(bill: Bill, entry: Charge, ceiling: str) -> str:
    asked = entry.parameters.get("delta")
    delta = asked if isinstance(asked, float) and 0.0 < asked < 1.0 else bill.delta
    needed = joint_price(entry.event, delta, entry.adjacency)
    if needed == math.inf:  # it fails more often than the estimator's own delta allows
        delta, needed = bill.delta, joint_price(entry.event, bill.delta, entry.adjacency)
    left = affordable(bill, entry.event, delta, entry.adjacency).epsilon
    told, least = _apart(needed, left)
    lower = f"lower epsilon to {least} or {_RAISE}" if left > 0.0 else f"{_RAISE}, or begin another ledger"
    needs = f"this fit needs epsilon {told}, {least} is left at delta {delta:g} under {ceiling}"
    return f"{needs}; nothing was charged: {lower}."


def _apart(needed: float, left: float) -> tuple[str, str]:
    """Both figures in as few digits as tell them apart."""
    for digits in (3, 6, 12):
        told, least = rounded(needed, digits, up=True), rounded(left, digits)
        if float(least) < float(rounded(needed, digits)):
            break
    return told, least
