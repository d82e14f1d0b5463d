"""`Balance`: what one unit has paid, and what the budget still admits of it.

**Partitions.** A unit of partition k reads what is charged to k and what is charged to all, and nothing else, if its
record cannot change which partition it is in. So its loss is that of these charges alone, in the order they came: a
balance for each partition, and one of what is charged to all, which a partition without a charge of its own has.

- *Plans fixed in advance*: parallel composition (McSherry 2009, theorem 4). The joint price of common and own charges
  holds for each unit, so the largest over partitions holds for all.
- *Filters* (`filters`, Gaussian and Rényi). Fix a unit of partition k, two neighbours that differ in it, and let mu_i^2
  or rho_i be the loss of step i for these two alone. Given the past, the same transcript for both, a release of
  another partition has the same law for both: its loss is 0. (Feldman & Zrnic 2021 call this an individual filter.)
  Fully adaptive composition allows steps that the past decides, of loss 0 too, so the sum over common and own charges
  is the whole sum, and a filter of this sum holds, however the charges of all partitions were chosen. Where theorems
  say "before any output", it is before any that depends on the unit: what came before has one law for both neighbours,
  so that one may fix it, and average in the end. Hence the first charge of a balance is its plan, admitted by its joint
  price, and fixes its rule; and a budget raised before it is one from the start.
- *Odometer* (below, once a budget was raised). It is made of filters that depend on delta alone and on the
  share for failures, which the balance's rule tells; the same argument holds for each.
- The rule that assigns units to partitions may itself be chosen after seeing outputs: given the outputs it is fixed,
  and no filter depends on it.

A unit that is added or removed, or becomes null, changes one partition. One that is replaced by another may change two:
partitions have no figure under `replace_one`, and are refused there.

`DataSplit`: the key by which a data set is cut into two parts, once, as its ledger keeps it.

The parts are the partitions "train" and "test" of the ledger, so a unit pays what is charged to all and to its own part
(`balance`, where the proof is). That proof needs *each unit is in one part, whatever its record*, which the rule of the
split gives. No owner has to assume it:

- **By row number**: row i is in a part by i, the key and the public number of rows. A row that becomes null
  (``zero_out``), or another one (``replace_one``), keeps its number, and all others theirs. One that leaves
  (``add_remove``) would move the numbers, and so the parts, of all rows after it: such charges are refused.
- **By label**: a unit is in a part by a hash of its label under the key, which is a coin of its own. No other unit and
  no number of rows has a say, so a unit that becomes null under its label, is added or removed moves no other. One that
  is exchanged for a unit of another label (``replace_one``) may change sides: such charges are refused.

Both hold for each value of the key. It is drawn from the operating system, so it tells nothing of the data, and no
guarantee rests upon its being unknown: whoever reads the file of a ledger may know who is in which part. A second key
would put some units into both parts, each charged for one. So a ledger takes one key, for good.

An odometer: what a run has cost so far, valid however its charges were chosen and its end was decided.

A privacy odometer (Rogers, Roth, Ullman & Vadhan 2016) is made of privacy filters (Lécuyer 2021; Feldman & Zrnic
2021); this is restated and proved here. Fix in advance, as functions of delta alone, countably many filters k,
each with a budget, an epsilon_k and a share delta_k, the shares summing to delta. Let K be the filter that
is reported, picked from those whose budget the run has not passed, by any rule that looks at the charges
only. On {K = k} the run is its own truncation by filter k, which is (epsilon_k, delta_k)-private, so

    P(E) = sum_k P(E, K = k) <= sum_k (e^{epsilon_k} Q(E, K = k) + delta_k) = E_Q[e^{epsilon_K}; E] + delta

for every event E of the transcript: the reported epsilon_K holds for the run that really happened. The
filters are

- the first plan alone, with its joint price (chosen before any output; nothing else was charged);
- Gaussian filters: sum of mu^2 at most B (Smith & Thakurta 2022), B on a geometric grid;
- Rényi filters: sum of divergences of one order at most B (Feldman & Zrnic 2021, proved in `filters`), for a grid
  of orders and, for each, of B around the conversion term log(1/delta) / (order - 1).

Of each family the least epsilon_k among all budgets not passed is reported: shares are largest in the middle of a grid,
so a greater budget can have the lesser epsilon. What is reported then never falls when something is charged.

A share of delta is kept for events with a failure probability: Rényi filters hold for the run without failures, and
are reported only while the failure probabilities sum to that share at most, which bounds the chance of any failure
together with any report (the argument of `filters`). The share is `FAILURES`, or that of the ledger's rule if it is
larger; the other shares are then smaller in proportion. The rule was fixed by the first charge, before any output, so
all filters still are fixed in advance.

After a budget was raised, this figure decides: a charge is admitted while the figure with it is within the new
budget, and the figure is what is guaranteed. The statement above holds for every way to choose charges, raises
included, as the filters depend on delta alone, the ledger's, named at its creation. That is why delta itself cannot be
raised: a delta chosen after seeing outputs is none of those for which the shares were fixed. The budget's own promise
was (epsilon, delta) for a run that is not raised; a reader who relies on both, each where it applies, pays delta
twice.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from skdp.accounting.events.composition import MOST_RELEASES, compose, flatten
from skdp.accounting.events.specifications import DpEvent, SelfComposedDpEvent
from skdp.accounting.formulas.gaussian import gaussian_epsilon
from skdp.accounting.ledger.charges import Charge, Terms, joint_price, methods_for
from skdp.accounting.ledger.filters import (
    FAILURES,
    GAUSSIAN,
    Counts,
    Filter,
    Rule,
    failures_of,
    rule_for,
    share,
    total_cost,
)
from skdp.accounting.methods import check_epsilon
from skdp.accounting.rdp.rdp import renyi_epsilon_at
from skdp.accounting.releases import Releases, releases

# Names of the partitions.
PARTS = ("train", "test")

_KEY_BYTES = 32


@dataclass(frozen=True)
class DataSplit:
    """How a data set is cut into two parts.

    Parameters
    ----------
    test_size : float
        Share of the part "test", in (0, 1).
    n_rows : int or None, default=None
        Public number of rows if they are drawn by number; None: units are drawn by label.
    groups : str, default=""
        Name of the column of labels, "" if it has none.
    key : bytes, default=b""
        Of 32 bytes; b"" of a split that is asked for and has none yet.
    """

    test_size: float
    n_rows: int | None = None
    groups: str = ""
    key: bytes = field(default=b"", repr=False, compare=False)

    @property
    def rule(self) -> str:
        """By what rule a unit is in a part, as the ledger has it for its partitions."""
        by_number, by_label = "number of the row, under", "label of the unit, hashed under"
        return f"{by_label if self.n_rows is None else by_number} the key of the split"

    @property
    def refused_adjacency(self) -> str:
        """The neighbouring relation under which a unit may change sides, or move others."""
        return "replace_one" if self.n_rows is None else "add_remove"

    def with_new_key(self) -> DataSplit:
        """The same with a key from the operating system."""
        return replace(self, key=os.urandom(_KEY_BYTES))

    def to_parameters(self) -> dict[str, Any]:
        """What the entry of a ledger keeps."""
        rows = {} if self.n_rows is None else {"n_rows": self.n_rows}
        return {"test_size": self.test_size, **rows, "groups": self.groups, "key": self.key.hex()}

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> DataSplit:
        """The split that `to_parameters` gave, each field checked."""
        test_size, n_rows, groups = float(kept["test_size"]), kept.get("n_rows"), kept["groups"]
        key = bytes.fromhex(kept["key"])
        if not 0.0 < test_size < 1.0 or len(key) != _KEY_BYTES or not isinstance(n_rows, int | None):
            raise ValueError("a split has a share outside (0, 1), or a key or a number of rows that is none")
        return cls(test_size, n_rows, str(groups), key)

    def refuse_other(self, asked: DataSplit) -> None:
        """Raise if another split is asked for: it would put units into both parts."""
        if asked == self:
            return
        for name, remedy in (
            ("n_rows", "give the table that was split, all its rows in the same order"),
            ("test_size", "give the same share"),
            ("groups", "give the labels of the same column"),
        ):
            kept, given = getattr(self, name), getattr(asked, name)
            if kept != given:
                raise ValueError(
                    f"{name}={given!r} is not that of the split that this ledger keeps, {name}={kept!r}, and a second "
                    f"split would put units into both parts: {remedy}, or use a ledger of its own for other data."
                )


_FIRST, _GAUSSIAN, _RENYI = 0.25, 0.25, 0.5 - FAILURES  # shares of delta; FAILURES is the fourth
_ORDERS = tuple(1.0 + 1.5**k for k in range(-4, 16))
_RATIO = 1.15  # between neighbouring budgets
_TURN = -40
_SQUARES = math.pi**2 / 3.0 - 1.0  # sum of 1 / (1 + |k|)^2 over all whole k


def _share(k: int) -> float:
    """Share of budget k among all whole numbers."""
    return 1.0 / ((1 + abs(k)) ** 2 * _SQUARES)


def _step(value: float, centre: float) -> int:
    """The least k with centre ratio^k >= value."""
    k = math.ceil(math.log(value / centre) / math.log(_RATIO))
    return k if centre * _RATIO**k >= value else k + 1


@lru_cache(maxsize=1 << 14)
def _gaussian_at(k: int, delta: float) -> float:
    return gaussian_epsilon(delta * _GAUSSIAN * _share(k), math.sqrt(_RATIO**k) * (1.0 + 1e-15))


def _gaussian(spent: float, delta: float) -> float:
    k = _step(spent, 1.0)
    # below the turn each price is below the next: shares fall more slowly than sizes
    return min(_gaussian_at(j, delta) for j in (k, *range(max(k, _TURN), 1)))


@lru_cache(maxsize=1 << 14)
def _renyi_from(k: int, order: float, delta: float) -> float:
    """The least of the prices of budgets k, k + 1, ...; from 0 on they rise."""
    centre, shared = -math.log(delta) / (order - 1.0), delta * _RENYI / len(_ORDERS)
    prices = (renyi_epsilon_at(order, centre * _RATIO**j, shared * _share(j)) for j in range(k, max(k, 0) + 1))
    return max(0.0, min(prices))


def _renyi(spent: float, order: float, delta: float) -> float:
    centre = -math.log(delta) / (order - 1.0)
    return _renyi_from(_step(max(spent, 1e-6 * centre), centre), order, delta)


def odometer_epsilon(
    charges: Counts,
    first: Callable[[float], float] | None,
    delta: float,
    replace_one: bool,
    failures: float = FAILURES,
) -> float:
    """Epsilon of a run so far, at a delta that was named in advance.

    Parameters
    ----------
    charges : sequence of (Releases, count)
        All of them; at least one.
    first : callable or None
        Price of the run at a delta if it consists of its first plan alone, else None.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbours replace a record.
    failures : float
        Share of delta for failures, from `FAILURES` to below 1; fixed before any output.

    Returns
    -------
    float
        In nats; inf where no theorem covers the charges.
    """
    room, delta = failures * delta, delta * ((1.0 - failures) / (1.0 - FAILURES))
    found = [first(delta * _FIRST)] if first is not None else []
    gaussian = total_cost(Filter(None, math.inf, replace_one), charges)
    if 0.0 < gaussian < math.inf:
        found.append(_gaussian(gaussian, delta))
    for order in _ORDERS if failures_of(charges) <= room else ():
        total = total_cost(Filter(order, math.inf, replace_one), charges)
        if total < math.inf:
            found.append(_renyi(total, order, delta))
    return min(found, default=math.inf)


@lru_cache(maxsize=4096)
def _size(event: DpEvent) -> int:
    """How many releases an event consists of."""
    return sum(flatten(event).values())


class Balance:
    """The charges that concern one unit, in order. Nothing is priced when an entry is added.

    Parameters
    ----------
    terms : Terms
    partition : str or None
        Whose; None: of a unit that no partition's charge concerns.

    Attributes
    ----------
    adjacency : str or None
        Of all charges of the ledger; None before the first, where none was stated.
    epsilon : float or None
        The budget in force.
    raised : bool
        Whether the budget was raised after a charge, so that the odometer decides and no filter does.
    rule : Rule or None
        How further charges are admitted, where it is stored.
    """

    def __init__(self, terms: Terms, partition: str | None = None) -> None:
        self.terms, self.partition = terms, partition
        self.adjacency = terms.adjacency
        self.epsilon, self.raised = terms.epsilon, False
        self._runs: list[tuple[DpEvent, int]] = []
        self._counts: dict[Releases, int] = {}
        self._size = 0  # releases in all
        self.rule: Rule | None = None

    def copy(self, partition: str | None) -> Balance:
        """A copy that later entries leave alone, of this partition."""
        other = Balance.__new__(Balance)
        other.__dict__.update(self.__dict__)
        other._runs, other._counts, other.partition = list(self._runs), dict(self._counts), partition
        return other

    @property
    def event(self) -> DpEvent:
        """Everything charged as one event, equal neighbours counted."""
        return compose(SelfComposedDpEvent(event, count) for event, count in self._runs)

    @property
    def counts(self) -> Counts:
        """Charges with an effect, and how often each was made."""
        return list(self._counts.items())

    @property
    def delta(self) -> float:
        """Delta of the budget."""
        if self.terms.delta is None:
            raise ValueError("an accountant without a budget has no filter; give epsilon and delta.")
        return self.terms.delta

    # --- entries ---

    def add(self, entry: Charge) -> None:
        """Enter a charge that concerns the unit, or a raise."""
        if entry.kind == "raise":
            self.epsilon = check_epsilon(entry.parameters.get("epsilon"), positive=True)
            self.raised = self.raised or bool(self._counts)  # nothing seen yet: a budget like one from the start
        elif entry.kind == "charge":
            self._add_charge(entry)

    def _add_charge(self, charge: Charge) -> None:
        event, found = charge.event, releases(charge.event)
        if found.empty:
            return
        if self.rule is None and charge.rule is None and self.epsilon is not None:
            raise ValueError(
                "rule=None with the first charge under a budget, which fixes it; use the skdp that wrote it."
            )
        self.rule = self.rule or charge.rule
        self._counts[found] = self._counts.get(found, 0) + 1
        self._size += _size(event)
        if self._runs and self._runs[-1][0] == event:
            self._runs[-1] = (event, self._runs[-1][1] + 1)
        else:
            self._runs.append((event, 1))

    # --- what is admitted ---

    def rule_with(self, found: Releases, adjacency: str) -> Rule:
        """The rule in force, which a first charge of `found` would fix."""
        if self.rule is not None:
            return self.rule
        return rule_for(found, self.epsilon or 0.0, self.delta, adjacency == "replace_one", self.terms.family)

    def load(self, event: DpEvent, adjacency: str, count: int = 1) -> float:
        """Share of what decides that is taken with `count` further charges of an event that has a price.

        Parameters
        ----------
        event : DpEvent
        adjacency : str
        count : int

        Returns
        -------
        float
            At most 1 if they are admitted.
        """
        found, replace_one = releases(event), adjacency == "replace_one"
        if found.empty or self.epsilon is None:
            return 0.0
        if self.terms.family == GAUSSIAN and not found.plain:
            return math.inf
        if self.raised:
            return share(self._odometer(self.delta, adjacency, event, count), self.epsilon)
        plan = 0.0 if self._counts else share(joint_price(event, self.delta, adjacency), self.epsilon)
        if plan > 1.0 or (count == 1 and not self._counts):
            return plan
        return self.rule_with(found, adjacency).load(self._counts_with(found, count), self.epsilon, replace_one)

    def load_now(self, adjacency: str) -> float:
        """The load without any further charge."""
        if self.epsilon is None or not self._counts:
            return 0.0
        if self.raised:
            return share(self.adaptive_price(self.delta), self.epsilon)
        first = next(iter(self._counts))
        return self.rule_with(first, adjacency).load(self.counts, self.epsilon, adjacency == "replace_one")

    def _counts_with(self, found: Releases, count: int) -> Counts:
        return list({**self._counts, found: self._counts.get(found, 0) + count}.items())

    def priced_with(self, found: Releases, adjacency: str) -> bool:
        """Whether some method prices releases of all these kinds together."""
        return bool(
            methods_for(found, adjacency).intersection(*(methods_for(each, adjacency) for each in self._counts))
        )

    def has_room(self, event: DpEvent, count: int = 1) -> bool:
        """Whether the releases of all charges are few enough to be priced together: no kind above `MOST_RELEASES`."""
        return self._size + count * _size(event) <= MOST_RELEASES

    def remaining(self, event: DpEvent) -> float:
        """How many more charges of exactly that event would be admitted under the budget."""
        adjacency = self.adjacency or "zero_out"
        if releases(event).empty or self.epsilon is None:
            return math.inf
        most = max(0, MOST_RELEASES - self._size) // _size(event)

        def is_refused(count: int) -> bool:
            return self.load(event, adjacency, count) > 1.0

        if most == 0 or not self.priced_with(releases(event), adjacency) or is_refused(1):
            return 0
        low, high = 1, 2
        while high <= most and not is_refused(high):
            low, high = high, 2 * high
        more = range(low + 1, min(high, most + 1))
        return low + bisect_left(more, True, key=is_refused)

    def failures_left(self) -> float:
        """Delta that a further charge may fail with under the budget."""
        if self.epsilon is None or not self._counts:
            return 1.0 if self.epsilon is None else self.delta
        if self.raised:
            kept = self._failure_share * self.delta
        else:
            kept = self.rule_with(next(iter(self._counts)), self.adjacency or "zero_out").failures
        return max(0.0, kept - failures_of(self._counts.items()))

    @property
    def _failure_share(self) -> float:
        """Share of delta that the odometer keeps for failures: it covers what the rule had room for."""
        if self.rule is None or self.terms.delta is None:
            return FAILURES
        return max(FAILURES, self.rule.failures / self.terms.delta)

    # --- what it costs ---

    def spent(self) -> float:
        """What was spent of the budget: the joint price, or the odometer's figure once the budget was raised.

        The joint price can exceed the budget by no more than its own error, as a filter has shown that the run is
        private at the budget; so the lesser of the two holds.
        """
        if self.epsilon is None:
            raise ValueError("an accountant without a budget has no balance; give epsilon and delta.")
        if self.raised:
            return self.adaptive_price(self.delta)
        return min(joint_price(self.event, self.delta, self.adjacency or "zero_out"), self.epsilon)

    def adaptive_price(self, delta: float, further: DpEvent | None = None) -> float:
        """The odometer's figure, valid however charges were chosen, in nats; with a further charge, if one is given."""
        return self._odometer(delta, self.adjacency or "zero_out", further, 1)

    def _odometer(self, delta: float, adjacency: str, event: DpEvent | None = None, count: int = 0) -> float:
        """The odometer's figure with `count` further charges of `event`."""
        charges = self.counts if event is None else self._counts_with(releases(event), count)
        if not charges:
            return 0.0
        plan = self.event if event is None or self._counts else event
        once = sum(number for _, number in charges) == 1
        first = (lambda part: joint_price(plan, part, adjacency)) if once else None
        return odometer_epsilon(charges, first, delta, adjacency == "replace_one", self._failure_share)
