"""Admission of entries, error messages for rejected entries, the remaining budget, and the in-memory log.

The remaining budget is the privacy cost of the largest event of a given shape that the budget admits.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from skdp.accounting.events.composition import MOST_RELEASES, of_parts
from skdp.accounting.events.kinds import kind_of
from skdp.accounting.events.specifications import DpEvent, GaussianDpEvent
from skdp.accounting.ledger.balance import Balance
from skdp.accounting.ledger.charges import Charge, Terms, joint_cost, methods_for
from skdp.accounting.ledger.filters import GAUSSIAN, Filter, failures_of
from skdp.accounting.ledger.ledger import Ledger
from skdp.accounting.ledger.report import to_digits
from skdp.accounting.ledger.serial import chain
from skdp.accounting.methods import check_epsilon, rejection
from skdp.accounting.releases import Releases, releases
from skdp.exceptions import AccountantDetachedError, BudgetExceededError

_RAISE = "raise the budget with PrivacyAccountant.increase_budget or `python -m skdp.accounting increase`"


def admit(ledger: Ledger, entry: Charge) -> Charge:
    """Return the entry with the admission rule that it fixes; raise if the entry is not admitted.

    Parameters
    ----------
    ledger : Ledger
        All earlier entries.
    entry : Charge

    Returns
    -------
    Charge
    """
    if entry.kind == "rejection":
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
            f"event={type(entry.event).__name__} and the earlier charges make more than {MOST_RELEASES:.0e} releases, "
            "which no accounting method supports. No budget was consumed. Use another accountant."
        )
    if not all(each.computable_with(found, entry.adjacency) for each in ledger.balances):
        raise _explain_missing_cost(entry, found)
    if ledger.epsilon is None:
        return entry
    if ledger.load(entry.event, entry.adjacency) > 1.0:
        raise _explain_excess(ledger, entry, found)
    rules = [each.rule_with(found, entry.adjacency) for each in ledger.balances if each.rule is None]
    return replace(entry, rule=rules[0]) if rules else entry  # the same for all balances without a rule


def _check_raise(ledger: Ledger, entry: Charge) -> Charge:
    """Return a budget increase if it covers the odometer's epsilon and does not lower the remaining budget."""
    epsilon = check_epsilon(entry.parameters["epsilon"], positive=True)
    if ledger.epsilon is None:
        raise ValueError(
            "An accountant without a budget cannot be increased. Create a new accountant with epsilon and delta."
        )
    if epsilon <= ledger.epsilon:
        raise ValueError(f"`epsilon` must exceed the present budget, epsilon={ledger.epsilon!r}, got {epsilon!r}.")
    figure = ledger.adaptive_cost(ledger.delta)
    if figure > epsilon:
        least = to_digits(figure, 3, up=True)
        remedy = f"Set epsilon={least} or more" if figure < math.inf else "Create a new accountant"
        raise ValueError(
            f"epsilon={epsilon!r} is too small. Under adaptive composition, which an increased budget requires, the "
            f"charges so far have epsilon={least} at delta={ledger.delta:g}. {remedy}."
        )
    if not entry.parameters.get("allow_less"):
        for each in (ledger, *map(ledger.of, ledger.partitions)):
            _reject_less(each, entry)
    return replace(entry, label=f"budget increased from {ledger.epsilon:g} to {epsilon:g}")


def _reject_less(ledger: Ledger, entry: Charge) -> None:
    """Raise if the increase lowers the remaining budget of a fit like the last one, as the odometer then decides."""
    raised = ledger.snapshot()
    raised.add(entry)
    adjacency = ledger.scope.adjacency or "zero_out"
    largest = largest_event(ledger, None, adjacency) if raised.raised and not ledger.raised else None
    if largest is None or raised.load(largest, adjacency) <= 1.0:
        return
    before, after = _apart(*(affordable(each, None, None, None).epsilon for each in (ledger, raised)), up=False)
    enough = ledger.adaptive_cost(ledger.delta, largest)
    more = f"epsilon={to_digits(enough, 3, up=True)} or more, or " if enough < math.inf else ""
    raise ValueError(
        f"epsilon={raised.epsilon!r} permanently lowers the remaining budget of a fit like the last one from {before} "
        f"to {after}, because adaptive composition applies after an increase. Set {more}allow_less=True (--yes on the "
        "command line)."
    )


# --- messages --------------------------------------------------------------------------------------------


def _explain_missing_cost(entry: Charge, found: Releases) -> Exception:
    name, replace_one = type(entry.event).__name__, entry.adjacency == "replace_one"
    if not methods_for(found, entry.adjacency):
        alone = [error for method in ("pld", "rdp") if (error := rejection(found, method, replace_one)) is not None]
        return next((error for error in alone if isinstance(error, ValueError)), alone[0])
    return ValueError(
        f"No accounting method covers event={name} composed with the earlier charges. No budget was consumed. Use "
        "another accountant."
    )


def _explain_excess(ledger: Ledger, entry: Charge, found: Releases) -> BudgetExceededError:
    tightest = max(ledger.balances, key=lambda each: each.load(entry.event, entry.adjacency))
    budget = f"the budget epsilon={ledger.epsilon!r}, delta={ledger.delta!r}"
    if tightest.partition is not None:
        budget += f" for partition={tightest.partition!r}"
    return BudgetExceededError(
        _no_theorem(tightest, entry, found, budget)
        or _too_much_delta(tightest, found, budget)
        or _too_much_epsilon(ledger, entry, budget)
    )


def _no_theorem(balance: Balance, entry: Charge, found: Releases, budget: str) -> str | None:
    """Return a message if no privacy filter covers the charge after the earlier ones."""
    replace_one = entry.adjacency == "replace_one"
    if balance.terms.family == GAUSSIAN and not found.plain:
        return (
            f"{type(entry.event).__name__} is not a plain Gaussian release, and filter_family='gaussian' admits only "
            f"those under {budget}. No budget was consumed. Use an accountant with filter_family='auto'."
        )
    if not balance.counts:
        return None
    if found.plain:
        return None
    if not balance.raised:
        filters = balance.rule_with(found, entry.adjacency).filters(balance.epsilon or 0.0, replace_one)
        if any(limit.covers(found) for limit in filters):
            return None
    name = type(entry.event).__name__
    if not Filter(2.0, 0.0, replace_one).covers(found):
        return (
            f"{name} has no Rényi divergence, which every charge after the first requires under {budget}. No budget "
            "was consumed. Charge planned fits together as one ComposedDpEvent, or use another accountant."
        )
    if balance.raised:
        return None
    return (
        f"{name} is not covered by the privacy filter that the first charge fixed under {budget}. No budget was "
        f"consumed. To charge it, {_RAISE}, or use another accountant."
    )


def _too_much_delta(balance: Balance, found: Releases, budget: str) -> str | None:
    """Return a message if the delta of partition selection exceeds the remaining part of delta."""
    needed, left = failures_of([(found, 1)]), balance.failures_left()
    if needed <= left:
        return None
    room = to_digits(left, 3)
    at_all = f"Lower its delta to {room}" if left > 0.0 else "Charge it first, or use another accountant"
    return (
        f"Privacy budget exceeded: this fit requires delta={to_digits(needed, 3, up=True)} for events with a failure "
        f"probability, but {room} remains under {budget}. No budget was consumed. {at_all}."
    )


def _too_much_epsilon(ledger: Ledger, entry: Charge, budget: str) -> str:
    asked = entry.parameters.get("delta")
    delta = asked if isinstance(asked, float) and 0.0 < asked < 1.0 else ledger.delta
    needed = joint_cost(entry.event, delta, entry.adjacency)
    if needed == math.inf:  # its failure probability exceeds the estimator's own delta
        delta, needed = ledger.delta, joint_cost(entry.event, ledger.delta, entry.adjacency)
    left = affordable(ledger, entry.event, delta, entry.adjacency).epsilon
    needed_digits, least = _apart(needed, left, up=True)
    lower = f"Lower `epsilon` to {least}, or {_RAISE}" if left > 0.0 else f"To continue, {_RAISE}"
    needs = f"this fit requires epsilon={needed_digits}, but {least} remains (delta={delta:g}) under {budget}"
    return f"Privacy budget exceeded: {needs}. No budget was consumed. {lower}."


def _apart(more: float, less: float, *, up: bool) -> tuple[str, str]:
    """Return both numbers with as few digits as distinguish them; the larger one is rounded up or down."""
    for digits in (3, 6, 12):
        larger, least = to_digits(more, digits, up=up), to_digits(less, digits)
        if float(least) < float(to_digits(more, digits)):
            break
    return larger, least


# --- remaining budget -----------------------------------------------------------------------


class Affordable(NamedTuple):
    """Remaining budget for the next charge.

    Attributes
    ----------
    epsilon : float
        Remaining epsilon in nats; 0.0 if the budget is exhausted, inf without a budget.
    delta : float
        Remaining part of delta for events with a failure probability, such as partition selection.
    """

    epsilon: float
    delta: float


def scale_noise(event: DpEvent, factor: float) -> DpEvent:
    """Return the event with its noise multiplied by `factor`; sampling, counts and failure probabilities are kept.

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
    """Return the smallest factor whose load is at most 1, at most 0.1% too large; None if there is none.

    The load beyond `already` decreases about as the inverse square of the noise, which gives the next point; after some
    steps the bracket is bisected. (`Secant` does not apply: a load can be inf, or 0, which has no logarithm.)
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
    """Return the remaining budget for the next charge.

    Parameters
    ----------
    ledger : Ledger
    event : DpEvent or None
        Shape of the charge: its sampling and composition. If None, that of the last charge that was not a selection,
        or one Gaussian release.
    delta : float or None
        Delta of the returned epsilon. If None, that of the budget.
    adjacency : str or None

    Returns
    -------
    Affordable

    Raises
    ------
    ValueError
        If the accountant has another adjacency.
    """
    if adjacency is not None:
        ledger.scope.reject_mixed(adjacency)
    if ledger.epsilon is None:
        return Affordable(math.inf, 1.0)
    delta, adjacency = delta or ledger.delta, adjacency or ledger.scope.adjacency or "zero_out"
    is_charged = any(each.counts for each in ledger.balances)
    if not is_charged and delta == ledger.delta and ledger.has_room(event or GaussianDpEvent(1.0)):
        return Affordable(ledger.epsilon, ledger.failures_left())
    largest = largest_event(ledger, event, adjacency)
    left = 0.0 if largest is None else joint_cost(largest, delta, adjacency) * (1.0 - 1e-6)
    return Affordable(left if left > 1e-12 else 0.0, ledger.failures_left())


def largest_event(ledger: Ledger, shape: DpEvent | None, adjacency: str) -> DpEvent | None:
    """Return the event of this shape with the smallest noise that the budget admits, or None; see `affordable`."""
    shape = shape or ledger.shape or GaussianDpEvent(1.0)
    if not ledger.has_room(shape):
        return None
    now = max(each.load_now(adjacency) for each in ledger.balances)
    factor = _least_factor(lambda each: ledger.load(scale_noise(shape, each), adjacency), now)
    return None if factor is None else scale_noise(shape, factor)


# --- storage ---------------------------------------------------------------------------------

# Held while any log of this process is read or written, and while the process forks: so no child inherits a partly
# written log, an open connection, or a lock whose owner does not exist there.
LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class Turn:
    """Lock that serializes the charges of the threads of one process.

    It is held while the cost of a charge is computed and the charge is written; readers are not blocked. After a fork,
    the child has its own lock, because the owner of the old one does not exist there.
    """

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()

    def lock(self) -> threading.Lock:
        """Return the lock of this process. It is acquired by `with`, so that an interrupt cannot leave it locked."""
        with LOCK:
            if self._process != os.getpid():
                self._process, self._lock = os.getpid(), threading.Lock()
            return self._lock


class Log(Protocol):
    """Append-only log of entries."""

    @property
    def terms(self) -> Terms:
        """Budget and other fixed settings."""

    @property
    def path(self) -> str | None:
        """Path of the file, or None."""

    @property
    def is_copy(self) -> bool:
        """Whether this is a read-only copy."""

    def read(self) -> Ledger:
        """Return all entries so far, by any process."""

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise, without writing."""

    def append(self, charge: Charge) -> None:
        """Admit and write an entry in one step, or raise without writing."""

    def verify(self) -> list[str]:
        """Recompute the hashes of the chain; raise if they differ from the stored ones."""


class MemoryLog:
    """In-memory log of one process.

    Parameters
    ----------
    ledger : Ledger
    detached : bool
        Whether the log is read-only.
    """

    path = None

    def __init__(self, ledger: Ledger, *, detached: bool = False) -> None:
        self.terms = ledger.terms
        self._ledger, self._detached, self._process, self._turn = ledger, detached, os.getpid(), Turn()

    @property
    def is_copy(self) -> bool:
        """Whether this is a read-only copy: unpickled, read from JSON, or inherited by a forked process."""
        return self._detached or self._process != os.getpid()

    def read(self) -> Ledger:
        """Return all entries so far."""
        with LOCK:
            return self._ledger.snapshot()

    def _reject_copy(self) -> None:
        if self.is_copy:
            raise AccountantDetachedError(
                "This accountant is a read-only copy (pickled, forked, or from_json without resume=True) and cannot be "
                "charged. Use a budget file, PrivacyAccountant(path=...), or run with n_jobs=1 or with threads "
                "(joblib.parallel_backend('threading'))."
            )

    def check(self, charge: Charge) -> None:
        """Raise what `append` would raise."""
        self._reject_copy()
        admit(self.read(), charge)

    def append(self, charge: Charge) -> None:
        """Admit and write an entry, or raise.

        The privacy cost is computed before the lock is taken, so that readers do not wait. A copy with the entry
        replaces the log in one assignment: Ctrl-C leaves the log without the entry or with all of it.
        """
        self._reject_copy()
        with self._turn.lock():
            ledger = self.read()
            ledger.add(admit(ledger, charge))
            with LOCK:
                self._ledger = ledger

    def verify(self) -> list[str]:
        """Return the hashes of the chain; entries in memory cannot differ from them."""
        return chain(self.terms, self.read().entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(MemoryLog, detached=True), (self.read(),)
