"""Whether an entry may be written, the message if it may not, what the next charge may cost, and the log in memory.

What the next charge may cost is the privacy cost of the largest event of a shape that the budget admits.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from skdp.accounting.events.composition import MOST_RELEASES, of_parts
from skdp.accounting.events.kinds import kind_of
from skdp.accounting.events.specifications import DpEvent, GaussianDpEvent
from skdp.accounting.ledger.balance import Balance
from skdp.accounting.ledger.charges import Charge, Terms, joint_price, methods_for
from skdp.accounting.ledger.filters import GAUSSIAN, Filter, failures_of
from skdp.accounting.ledger.ledger import Ledger
from skdp.accounting.ledger.report import to_digits
from skdp.accounting.ledger.serial import chain
from skdp.accounting.methods import check_epsilon, refusal
from skdp.accounting.releases import Releases, releases
from skdp.exceptions import AccountantDetachedError, BudgetExceededError

_RAISE = "raise the budget (PrivacyAccountant.increase_budget, python -m skdp.accounting increase)"


def admit(ledger: Ledger, entry: Charge) -> Charge:
    """The entry as it is to be written, with the rule that governs; raises if it is not admitted.

    Parameters
    ----------
    ledger : Ledger
        All that was written before it.
    entry : Charge

    Returns
    -------
    Charge
    """
    if entry.kind == "refusal":
        return entry
    if entry.kind == "split":
        ledger.scope.with_split(entry)
        return entry
    if entry.kind == "raise":
        return _check_raise(ledger, entry)
    ledger.scope.with_charge(entry)
    if ledger.scope.partition_rule is not None or entry.partition is None:
        entry = replace(entry, partition_rule=None)  # kept once, with the first charge of a partition
    ledger = ledger.of(entry.partition)
    found = releases(entry.event)
    if found.empty:
        return entry
    if not ledger.has_room(entry.event):
        raise ValueError(
            f"event={type(entry.event).__name__} makes more than {MOST_RELEASES:.0e} releases with those of this "
            "ledger; no method prices that many, and nothing was charged: charge it to a ledger of its own."
        )
    if not all(each.priced_with(found, entry.adjacency) for each in ledger.balances):
        raise _explain_missing_price(ledger, entry, found)
    if ledger.epsilon is None:
        return entry
    if ledger.load(entry.event, entry.adjacency) > 1.0:
        raise _explain_excess(ledger, entry, found)
    rules = [each.rule_with(found, entry.adjacency) for each in ledger.balances if each.rule is None]
    return replace(entry, rule=rules[0]) if rules else entry  # of those without one, and so the same for all


def _check_raise(ledger: Ledger, entry: Charge) -> Charge:
    """A raise if it is one, if the new budget covers the odometer's figure, and if no less is left than before."""
    epsilon = check_epsilon(entry.parameters["epsilon"], positive=True)
    if ledger.epsilon is None:
        raise ValueError("a ledger without a budget has none to raise; begin another ledger with epsilon and delta.")
    if epsilon <= ledger.epsilon:
        raise ValueError(f"epsilon={epsilon!r} does not raise the budget epsilon={ledger.epsilon!r}; give more.")
    figure = ledger.adaptive_price(ledger.delta)
    if figure > epsilon:
        least = to_digits(figure, 3, up=True)
        remedy = f"give epsilon={least} or more" if figure < math.inf else "begin another ledger"
        raise ValueError(
            f"epsilon={epsilon!r} is not enough: for a budget raised after outputs were seen, what was charged counts "
            f"{least} at delta={ledger.delta:g}; {remedy}."
        )
    if not entry.parameters.get("allow_less"):
        for each in (ledger, *map(ledger.of, ledger.partitions)):
            _refuse_less(each, entry)
    return replace(entry, label=f"budget raised from {ledger.epsilon:g} to {epsilon:g}")


def _refuse_less(ledger: Ledger, entry: Charge) -> None:
    """Raise if the largest fit like the last one that could be charged now could not be once the odometer decides."""
    raised = ledger.snapshot()
    raised.add(entry)
    adjacency = ledger.scope.adjacency or "zero_out"
    largest = largest_event(ledger, None, adjacency) if raised.raised and not ledger.raised else None
    if largest is None or raised.load(largest, adjacency) <= 1.0:
        return
    before, after = _apart(*(affordable(each, None, None, None).epsilon for each in (ledger, raised)), up=False)
    enough = ledger.adaptive_price(ledger.delta, largest)
    more = f"give epsilon={to_digits(enough, 3, up=True)} or more" if enough < math.inf else "begin another ledger"
    raise ValueError(
        f"epsilon={raised.epsilon!r} lowers what is left for a fit like the last one from {before} to {after}, for "
        f"good: after a raise all charges count as chosen freely; {more}, or allow_less=True (--yes on the command "
        "line)."
    )


# --- messages --------------------------------------------------------------------------------------------


def _explain_missing_price(ledger: Ledger, entry: Charge, found: Releases) -> Exception:
    name, replace_one = type(entry.event).__name__, entry.adjacency == "replace_one"
    if not methods_for(found, entry.adjacency):
        alone = [error for method in ("pld", "rdp") if (error := refusal(found, method, replace_one)) is not None]
        return next((error for error in alone if isinstance(error, ValueError)), alone[0])
    return ValueError(
        f"event={name} has no price together with what this ledger holds, by any method; nothing was charged: charge "
        "it to a ledger of its own."
    )


def _explain_excess(ledger: Ledger, entry: Charge, found: Releases) -> BudgetExceededError:
    tightest = max(ledger.balances, key=lambda each: each.load(entry.event, entry.adjacency))
    budget = f"the budget epsilon={ledger.epsilon!r} at delta={ledger.delta!r}"
    if tightest.partition is not None:
        budget += f" for partition={tightest.partition!r}"
    return BudgetExceededError(
        _no_theorem(tightest, entry, found, budget)
        or _too_much_delta(tightest, found, budget)
        or _too_much_epsilon(ledger, entry, budget)
    )


def _no_theorem(balance: Balance, entry: Charge, found: Releases, budget: str) -> str | None:
    """If the charge is not of a kind that can follow what was charged."""
    replace_one = entry.adjacency == "replace_one"
    if balance.terms.family == GAUSSIAN and not found.plain:
        return (
            f"{type(entry.event).__name__} is not a plain Gaussian release, and filter_family='gaussian' admits only "
            f"those under {budget}. No budget was consumed. Use an accountant with filter_family='auto'."
        )
    if not balance.counts:
        return None
    renyi = Filter(2.0, 0.0, replace_one)
    if found.plain or (
        not balance.raised
        and any(
            limit.covers(found)
            for limit in balance.rule_with(found, entry.adjacency).filters(balance.epsilon or 0.0, replace_one)
        )
    ):
        return None
    name = type(entry.event).__name__
    if not renyi.covers(found):
        return (
            f"{name} has no Rényi price, which a charge after the first one needs under {budget}; nothing was "
            "charged: charge plans that are known together as one ComposedDpEvent, or use a ledger of its own."
        )
    if balance.raised:
        return None
    return (
        f"{name} is of a kind that this ledger does not admit after its first charge under {budget}; nothing was "
        f"charged: {_RAISE}, or begin another balance."
    )


def _too_much_delta(balance: Balance, found: Releases, budget: str) -> str | None:
    """If the charge fails more often than the budget has room for."""
    needed, left = failures_of([(found, 1)]), balance.failures_left()
    if needed <= left:
        return None
    room = to_digits(left, 3)
    at_all = f"lower its delta to {room}" if left > 0.0 else "charge it first, or to a ledger of its own"
    return (
        f"this fit needs delta {to_digits(needed, 3, up=True)}, {room} is left for failure probabilities under "
        f"{budget}; nothing was charged: {at_all}."
    )


def _too_much_epsilon(ledger: Ledger, entry: Charge, budget: str) -> str:
    asked = entry.parameters.get("delta")
    delta = asked if isinstance(asked, float) and 0.0 < asked < 1.0 else ledger.delta
    needed = joint_price(entry.event, delta, entry.adjacency)
    if needed == math.inf:  # it fails more often than the estimator's own delta allows
        delta, needed = ledger.delta, joint_price(entry.event, ledger.delta, entry.adjacency)
    left = affordable(ledger, entry.event, delta, entry.adjacency).epsilon
    needed_digits, least = _apart(needed, left, up=True)
    lower = f"lower epsilon to {least} or {_RAISE}" if left > 0.0 else f"{_RAISE}, or begin another ledger"
    needs = f"this fit needs epsilon {needed_digits}, {least} is left at delta {delta:g} under {budget}"
    return f"{needs}; nothing was charged: {lower}."


def _apart(more: float, less: float, *, up: bool) -> tuple[str, str]:
    """Both figures in as few digits as tell them apart; the larger one rounded up or down."""
    for digits in (3, 6, 12):
        larger, least = to_digits(more, digits, up=up), to_digits(less, digits)
        if float(least) < float(to_digits(more, digits)):
            break
    return larger, least


# --- what the next charge may cost -----------------------------------------------------------------------


class Affordable(NamedTuple):
    """What the next charge may cost.

    Attributes
    ----------
    epsilon : float
        In nats; 0.0 if nothing is left, inf without a budget.
    delta : float
        Failure probability that it may have, if it is one of known epsilon and delta.
    """

    epsilon: float
    delta: float


def scale_noise(event: DpEvent, factor: float) -> DpEvent:
    """The same event with `factor` times the noise, its sampling, counts and failure probabilities as they are.

    Parameters
    ----------
    event : DpEvent
    factor : float
        Above 0.

    Returns
    -------
    DpEvent
    """
    scaled = kind_of(event).scaled
    if scaled is not None:
        return scaled(event, factor)
    return of_parts(event, lambda part: scale_noise(part, factor)) or event


def _least_factor(load: Callable[[float], float], already: float) -> float | None:
    """The least factor whose load is at most 1, to 0.1% above; None if there is none.

    What is added to the load that is there `already` falls about as the square of the noise, which tells where to look
    next; after some steps the bracket is halved. (No `Secant`: a load is inf where no filter holds, and 0 has no log.)
    """
    if already > 1.0:
        return None
    low, high, at = 0.0, math.inf, 1.0
    for step in itertools.count():
        found = load(at)
        low, high = (low, at) if found <= 1.0 else (at, high)
        if high <= low * 1.001 or high < 1e-9:
            return high
        if low > 1e9:
            return None
        ratio = max(found - already, 0.0) / max(1.0 - already, 1e-12)
        # a little beyond the guess, so that the bracket closes from both sides
        at *= min(max(math.sqrt(ratio), 0.25), 4.0) * (1.0004 if found > 1.0 else 1.0 / 1.0004)
        if not low < at < high or (step > 8 and 0.0 < low < high < math.inf):
            at = math.sqrt(low * high)
    raise AssertionError("unreachable")


def affordable(ledger: Ledger, event: DpEvent | None, delta: float | None, adjacency: str | None) -> Affordable:
    """What the next charge may cost under the budget.

    Parameters
    ----------
    ledger : Ledger
    event : DpEvent or None
        Its shape: how it samples and composes. None: that of the last charge that was no selection, or one Gaussian
        release.
    delta : float or None
        Delta of the epsilon that is returned; the budget's if None.
    adjacency : str or None

    Returns
    -------
    Affordable

    Raises
    ------
    ValueError
        If the ledger holds another adjacency, as for a charge.
    """
    if adjacency is not None:
        ledger.scope.refuse_mixed(adjacency)
    if ledger.epsilon is None:
        return Affordable(math.inf, 1.0)
    delta, adjacency = delta or ledger.delta, adjacency or ledger.scope.adjacency or "zero_out"
    is_charged = any(each.counts for each in ledger.balances)
    if not is_charged and delta == ledger.delta and ledger.has_room(event or GaussianDpEvent(1.0)):
        return Affordable(ledger.epsilon, ledger.failures_left())
    largest = largest_event(ledger, event, adjacency)
    left = 0.0 if largest is None else joint_price(largest, delta, adjacency) * (1.0 - 1e-6)
    return Affordable(left if left > 1e-12 else 0.0, ledger.failures_left())


def largest_event(ledger: Ledger, shape: DpEvent | None, adjacency: str) -> DpEvent | None:
    """The event of this shape with the least noise that the budget admits next, or None; see `affordable`."""
    shape = shape or ledger.shape or GaussianDpEvent(1.0)
    if not ledger.has_room(shape):
        return None
    now = max(each.load_now(adjacency) for each in ledger.balances)
    factor = _least_factor(lambda each: ledger.load(scale_noise(shape, each), adjacency), now)
    return None if factor is None else scale_noise(shape, factor)


# --- where a ledger is kept ---------------------------------------------------------------------------------

# Held while any log of this process is read or written. One for all, and held across a fork: so no child inherits a log
# half written, an open connection, or a lock whose owner does not exist there.
LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class Turn:
    """Whose turn it is to charge a ledger, among the threads of one process.

    Held while a charge is priced and written, so that threads do not price against a state that another is about to
    change; reading is not blocked. A child of a fork has a lock of its own, as the owner of the old one is not there.
    """

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()

    def lock(self) -> threading.Lock:
        """The lock of this process. An interrupt cannot come between its acquisition and the block that it guards."""
        with LOCK:
            if self._process != os.getpid():
                self._process, self._lock = os.getpid(), threading.Lock()
            return self._lock


class Log(Protocol):
    """A ledger that is kept somewhere. Entries are added at its end and never altered."""

    @property
    def terms(self) -> Terms:
        """The budget and what else never changes."""

    @property
    def path(self) -> str | None:
        """The file, or None."""

    @property
    def is_copy(self) -> bool:
        """Whether the balance lives elsewhere, so that this one cannot be charged."""

    def read(self) -> Ledger:
        """Everything charged until now, by any process."""

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise, and write nothing."""

    def append(self, charge: Charge) -> None:
        """Admit an entry and write it down as one step, or raise and write nothing."""

    def verify(self) -> list[str]:
        """The hashes of the chain, computed anew; raise if they are not those that were written."""


class MemoryLog:
    """A log in memory, of one process.

    Parameters
    ----------
    ledger : Ledger
    detached : bool
        Whether it can be read only.
    """

    path = None

    def __init__(self, ledger: Ledger, *, detached: bool = False) -> None:
        self.terms = ledger.terms
        self._ledger, self._detached, self._process, self._turn = ledger, detached, os.getpid(), Turn()

    @property
    def is_copy(self) -> bool:
        """Whether the balance lives elsewhere: after pickling, in JSON, or in the process that this one forked from."""
        return self._detached or self._process != os.getpid()

    def read(self) -> Ledger:
        """Everything charged until now."""
        with LOCK:
            return self._ledger.snapshot()

    def _refuse_copy(self) -> None:
        if self.is_copy:
            raise AccountantDetachedError(
                "this accountant is a copy (pickled, forked, or from_json without resume=True) and cannot spend; the "
                "balance lives where it came from; keep it in a file, PrivacyAccountant(path=...), or run with "
                "n_jobs=1 or with threads (joblib.parallel_backend('threading'))."
            )

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise."""
        self._refuse_copy()
        admit(self.read(), charge)

    def append(self, charge: Charge) -> None:
        """Admit an entry and write it down, or raise.

        The entry is priced before the lock is taken, so that readers do not wait. It is added to a copy, and one
        assignment puts the copy in place: Ctrl-C leaves the ledger without the entry, or with the whole of it.
        """
        self._refuse_copy()
        with self._turn.lock():
            ledger = self.read()
            ledger.add(admit(ledger, charge))
            with LOCK:
                self._ledger = ledger

    def verify(self) -> list[str]:
        """The hashes of the chain; nothing in memory can differ from them."""
        return chain(self.terms, self.read().entries)

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self.terms, "_ledger": self.read(), "_process": self._process}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.terms, self._ledger, self._process = state["terms"], state["_ledger"], state["_process"]
        self._detached = True
        self._turn = Turn()
