"""`Balance`: the charges that affect one unit, and the remaining budget; `DataSplit`; privacy odometers.

**Partitions.** A unit of partition k is affected only by charges to k and charges to all units, if its record cannot
change its partition. Its privacy loss is that of these charges, in their order. There is a balance for each charged
partition, and one of the charges to all units, which applies to every other partition.

- *Plans fixed in advance*: parallel composition (McSherry 2009, theorem 4). The joint epsilon of the charges to a
  partition and to all units holds for each unit, so the maximum over partitions holds for all units.
- *Filters* (`filters`, Gaussian and Rényi). Fix a unit of partition k and two neighbors that differ in it. Let mu_i^2
  or rho_i be the loss of step i for these two. Given the past transcript, a release of another partition has the same
  distribution for both, so its loss is 0 (an individual filter of Feldman & Zrnic 2021). Fully adaptive composition
  allows steps that the past decides, including steps of loss 0. So the sum over the charges to the partition and to all
  units is the whole sum, and a filter of this sum is valid, even if all charges are chosen adaptively. Where theorems
  require "before any output", it suffices to be before any output that depends on the unit. Earlier outputs have the
  same distribution for both neighbors, so the argument can condition on them. Hence the first charge of a balance is
  its plan: it is admitted by its joint epsilon and fixes the rule. A budget increase before it is a new initial budget.
- *Odometer* (below, after a budget increase). Its filters depend only on delta and on the fraction for failures, which
  the rule of the balance fixes. The same argument holds for each filter.
- The rule that assigns units to partitions can be chosen after seeing outputs: given the outputs it is fixed, and no
  filter depends on it.

A unit that is added, removed or zeroed out changes one partition. A replaced unit can change two, so partitions are
rejected under ``replace_one``.

**Train/test split** (`DataSplit`). The two parts are the partitions "train" and "test". The proof above requires that
each unit is in one part, whatever its record contains. The split satisfies this by construction:

- *By row number*: the part of row i depends on i, the key and the public number of rows. A row that is zeroed out
  (``zero_out``) or replaced (``replace_one``) keeps its number, and so do all others. A removed row (``add_remove``)
  would change the numbers of all later rows, so such charges are rejected.
- *By group*: the part of a group depends on a keyed hash of its identifier, independently of all other groups and of
  the number of rows. Zeroing out, adding or removing a group therefore does not change the part of any other. Replacing
  a group by one with another identifier (``replace_one``) can change its part, so such charges are rejected.

Both hold for each value of the key. The key is drawn from the operating system, independently of the data, and does not
have to be secret. A second key would put some units into both parts, so an accountant accepts only one key.

**Odometer.** A privacy odometer (Rogers, Roth, Ullman & Vadhan 2016) reports the privacy loss of a run under adaptively
chosen charges and stopping times. It consists of privacy filters (Lécuyer 2021; Feldman & Zrnic 2021). The construction
and its proof are as follows. Fix in advance, as functions of delta only, countably many filters k, each with a budget,
an epsilon_k and a fraction delta_k; the delta_k sum to delta. Let K be the reported filter, selected from those whose
budget is not exceeded, by any rule that depends on the charges only. On {K = k} the run equals its truncation by filter
k, which is (epsilon_k, delta_k)-private, so

    P(E) = sum_k P(E, K = k) <= sum_k (e^{epsilon_k} Q(E, K = k) + delta_k) = E_Q[e^{epsilon_K}; E] + delta

for every event E of the transcript. The reported epsilon_K is therefore valid for the actual run. The filters are

- the first plan with its joint epsilon, if nothing else was charged (it was chosen before any output);
- Gaussian filters: the sum of mu^2 is at most B (Smith & Thakurta 2022), for B on a geometric grid;
- Rényi filters: the sum of the divergences of one order is at most B (Feldman & Zrnic 2021, proved in `filters`), for a
  grid of orders and, for each, a grid of B around the conversion term log(1/delta) / (order - 1).

The odometer reports the smallest epsilon_k of each family among the budgets that are not exceeded. The fractions
delta_k are largest in the middle of a grid, so a larger budget can have a smaller epsilon. A further charge never
lowers the reported value.

A fraction of delta is reserved for events with a failure probability. Rényi filters hold for the run without failures
and are reported only while the failure probabilities sum to at most this fraction. This bounds the probability of any
failure together with any report, as shown in `filters`. The fraction is `FAILURES`, or that of the rule if it is
larger; the other fractions are then reduced in proportion. The first charge fixed the rule before any output, so all
filters are fixed in advance.

After a budget increase, the odometer decides: a charge is admitted if the odometer's epsilon, with it, is within the
new budget, and this epsilon is guaranteed. The inequality above holds for every way to choose charges and increases,
because the filters depend only on the delta of the accountant. Therefore delta cannot be increased: the fractions were
not fixed in advance for a delta that is chosen after seeing outputs. The original guarantee, (epsilon, delta), holds
for a run without an increase. Relying on both, each where it applies, requires twice the delta.
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
from skdp.accounting.ledger.charges import Charge, Terms, joint_cost, methods_for
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

# Names of the parts.
PARTS = ("train", "test")

_KEY_BYTES = 32


@dataclass(frozen=True)
class DataSplit:
    """Train/test split of a data set.

    Parameters
    ----------
    test_size : float
        Fraction of the test set, in (0, 1).
    n_rows : int or None, default=None
        Public number of rows for a split by row number; None for a split by group identifier.
    groups : str, default=""
        Column name of the group identifiers, "" if they have no name.
    key : bytes, default=b""
        Key of 32 bytes; b"" for a requested split that has no key yet.
    """

    test_size: float
    n_rows: int | None = None
    groups: str = ""
    key: bytes = field(default=b"", repr=False, compare=False)

    @property
    def rule(self) -> str:
        """Rule that assigns units to parts, as recorded for the partitions."""
        by_number, by_label = "number of the row, under", "label of the unit, hashed under"
        return f"{by_label if self.n_rows is None else by_number} the key of the split"

    @property
    def rejected_adjacency(self) -> str:
        """Neighboring relation under which a unit can change its part, or the part of others."""
        return "replace_one" if self.n_rows is None else "add_remove"

    def with_new_key(self) -> DataSplit:
        """Return the same split with a key from the operating system."""
        return replace(self, key=os.urandom(_KEY_BYTES))

    def to_parameters(self) -> dict[str, Any]:
        """Return the parameters to record."""
        rows = {} if self.n_rows is None else {"n_rows": self.n_rows}
        return {"test_size": self.test_size, **rows, "groups": self.groups, "key": self.key.hex()}

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> DataSplit:
        """Return a validated split from the output of `to_parameters`."""
        test_size, n_rows, groups = float(kept["test_size"]), kept.get("n_rows"), kept["groups"]
        key = bytes.fromhex(kept["key"])
        if not 0.0 < test_size < 1.0 or len(key) != _KEY_BYTES or not isinstance(n_rows, int | None):
            raise ValueError("The recorded split has an invalid `test_size`, `key` or `n_rows`.")
        return cls(test_size, n_rows, str(groups), key)

    def reject_other(self, asked: DataSplit) -> None:
        """Raise if another split is requested, which would put units into both parts."""
        if asked == self:
            return
        for name, remedy in (
            ("n_rows", "Pass the same table with all rows in the same order"),
            ("test_size", "Set the same test_size"),
            ("groups", "Pass the group identifiers of the same column"),
        ):
            kept, given = getattr(self, name), getattr(asked, name)
            if kept != given:
                raise ValueError(
                    f"`{name}` must be {kept!r}, as in the recorded split, got {given!r}. A second split would put "
                    f"units into both parts. {remedy}, or use another accountant for other data."
                )


_FIRST, _GAUSSIAN, _RENYI = 0.25, 0.25, 0.5 - FAILURES  # fractions of delta; FAILURES is the fourth
_ORDERS = tuple(1.0 + 1.5**k for k in range(-4, 16))
_RATIO = 1.15  # of consecutive budgets
_TURN = -40
_SQUARES = math.pi**2 / 3.0 - 1.0  # sum of 1 / (1 + |k|)^2 over all whole k


def _share(k: int) -> float:
    """Return the fraction of budget k among all integers."""
    return 1.0 / ((1 + abs(k)) ** 2 * _SQUARES)


def _step(value: float, center: float) -> int:
    """Return the smallest k with center ratio^k >= value."""
    k = math.ceil(math.log(value / center) / math.log(_RATIO))
    return k if center * _RATIO**k >= value else k + 1


@lru_cache(maxsize=1 << 14)
def _gaussian_at(k: int, delta: float) -> float:
    return gaussian_epsilon(delta * _GAUSSIAN * _share(k), math.sqrt(_RATIO**k) * (1.0 + 1e-15))


def _gaussian(spent: float, delta: float) -> float:
    k = _step(spent, 1.0)
    # below the turn each epsilon is below the next one: fractions decrease more slowly than budgets
    return min(_gaussian_at(j, delta) for j in (k, *range(max(k, _TURN), 1)))


@lru_cache(maxsize=1 << 14)
def _renyi_from(k: int, order: float, delta: float) -> float:
    """Return the smallest epsilon of budgets k, k + 1, ...; from 0 on they increase."""
    center, shared = -math.log(delta) / (order - 1.0), delta * _RENYI / len(_ORDERS)
    costs = (renyi_epsilon_at(order, center * _RATIO**j, shared * _share(j)) for j in range(k, max(k, 0) + 1))
    return max(0.0, min(costs))


def _renyi(spent: float, order: float, delta: float) -> float:
    center = -math.log(delta) / (order - 1.0)
    return _renyi_from(_step(max(spent, 1e-6 * center), center), order, delta)


def odometer_epsilon(
    charges: Counts,
    first: Callable[[float], float] | None,
    delta: float,
    replace_one: bool,
    failures: float = FAILURES,
) -> float:
    """Return the epsilon of a run so far, at a delta that was fixed in advance.

    Parameters
    ----------
    charges : sequence of (Releases, count)
        All charges; at least one.
    first : callable or None
        Function of delta that returns the epsilon of the run if it is only the first plan, else None.
    delta : float
        In (0, 1).
    replace_one : bool
        Whether neighbors replace a record.
    failures : float
        Fraction of delta for failures, from `FAILURES` to below 1; fixed before any output.

    Returns
    -------
    float
        Epsilon in nats; inf if no theorem covers the charges.
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
    """Return the number of releases of an event."""
    return sum(flatten(event).values())


class Balance:
    """The charges that affect one unit, in order. Adding an entry computes no privacy cost.

    Parameters
    ----------
    terms : Terms
    partition : str or None
        Partition of the unit; None for a unit in no charged partition.

    Attributes
    ----------
    adjacency : str or None
        Neighboring relation; None before the first charge if none was set.
    epsilon : float or None
        Present budget.
    raised : bool
        Whether the budget was increased after a charge, so that the odometer decides instead of a filter.
    rule : Rule or None
        Rule that admits further charges, once it is fixed.
    """

    def __init__(self, terms: Terms, partition: str | None = None) -> None:
        self.terms, self.partition = terms, partition
        self.adjacency = terms.adjacency
        self.epsilon, self.raised = terms.epsilon, False
        self._runs: list[tuple[DpEvent, int]] = []
        self._counts: dict[Releases, int] = {}
        self._size = 0  # total number of releases
        self.rule: Rule | None = None

    def copy(self, partition: str | None) -> Balance:
        """Return an independent copy for a partition."""
        other = Balance.__new__(Balance)
        other.__dict__.update(self.__dict__)
        other._runs, other._counts, other.partition = list(self._runs), dict(self._counts), partition
        return other

    @property
    def event(self) -> DpEvent:
        """Composition of all charges; equal consecutive charges are counted."""
        return compose(SelfComposedDpEvent(event, count) for event, count in self._runs)

    @property
    def counts(self) -> Counts:
        """Charges with a privacy cost, and their numbers."""
        return list(self._counts.items())

    @property
    def delta(self) -> float:
        """Delta of the budget."""
        if self.terms.delta is None:
            raise ValueError("An accountant without a budget has no privacy filter. Set `epsilon` and `delta`.")
        return self.terms.delta

    # --- entries ---

    def add(self, entry: Charge) -> None:
        """Add a charge that affects the unit, or a budget increase."""
        if entry.kind == "raise":
            self.epsilon = check_epsilon(entry.parameters.get("epsilon"), positive=True)
            self.raised = self.raised or bool(self._counts)  # without outputs, the increase is a new initial budget
        elif entry.kind == "charge":
            self._add_charge(entry)

    def _add_charge(self, charge: Charge) -> None:
        event, found = charge.event, releases(charge.event)
        if found.empty:
            return
        if self.rule is None and charge.rule is None and self.epsilon is not None:
            raise ValueError(
                "The first charge under a budget lacks its rule. Use the version of skdp that wrote the record."
            )
        self.rule = self.rule or charge.rule
        self._counts[found] = self._counts.get(found, 0) + 1
        self._size += _size(event)
        if self._runs and self._runs[-1][0] == event:
            self._runs[-1] = (event, self._runs[-1][1] + 1)
        else:
            self._runs.append((event, 1))

    # --- admission ---

    def rule_with(self, found: Releases, adjacency: str) -> Rule:
        """Return the fixed rule, or the rule that a first charge of `found` would fix."""
        if self.rule is not None:
            return self.rule
        return rule_for(found, self.epsilon or 0.0, self.delta, adjacency == "replace_one", self.terms.family)

    def load(self, event: DpEvent, adjacency: str, count: int = 1) -> float:
        """Return the used fraction of the budget after `count` further charges of an event.

        Parameters
        ----------
        event : DpEvent
        adjacency : str
        count : int

        Returns
        -------
        float
            At most 1 if the charges are admitted.
        """
        found, replace_one = releases(event), adjacency == "replace_one"
        if found.empty or self.epsilon is None:
            return 0.0
        if self.terms.family == GAUSSIAN and not found.plain:
            return math.inf
        if self.raised:
            return share(self._odometer(self.delta, adjacency, event, count), self.epsilon)
        plan = 0.0 if self._counts else share(joint_cost(event, self.delta, adjacency), self.epsilon)
        if plan > 1.0 or (count == 1 and not self._counts):
            return plan
        return self.rule_with(found, adjacency).load(self._counts_with(found, count), self.epsilon, replace_one)

    def load_now(self, adjacency: str) -> float:
        """Return the load without further charges."""
        if self.epsilon is None or not self._counts:
            return 0.0
        if self.raised:
            return share(self.adaptive_cost(self.delta), self.epsilon)
        first = next(iter(self._counts))
        return self.rule_with(first, adjacency).load(self.counts, self.epsilon, adjacency == "replace_one")

    def _counts_with(self, found: Releases, count: int) -> Counts:
        return list({**self._counts, found: self._counts.get(found, 0) + count}.items())

    def computable_with(self, found: Releases, adjacency: str) -> bool:
        """Return whether some accounting method covers the releases and all charges."""
        of_charges = (methods_for(each, adjacency) for each in self._counts)
        return bool(methods_for(found, adjacency).intersection(*of_charges))

    def has_room(self, event: DpEvent) -> bool:
        """Return whether the total number of releases stays within `MOST_RELEASES`."""
        return self._size + _size(event) <= MOST_RELEASES

    def remaining(self, event: DpEvent) -> float:
        """Return the number of further charges of this event that the budget admits."""
        adjacency = self.adjacency or "zero_out"
        if releases(event).empty or self.epsilon is None:
            return math.inf
        most = max(0, MOST_RELEASES - self._size) // _size(event)

        def is_rejected(count: int) -> bool:
            return self.load(event, adjacency, count) > 1.0

        if most == 0 or not self.computable_with(releases(event), adjacency) or is_rejected(1):
            return 0
        low, high = 1, 2
        while high <= most and not is_rejected(high):
            low, high = high, 2 * high
        more = range(low + 1, min(high, most + 1))
        return low + bisect_left(more, True, key=is_rejected)

    def failures_left(self) -> float:
        """Return the remaining part of delta for failure probabilities."""
        if self.epsilon is None or not self._counts:
            return 1.0 if self.epsilon is None else self.delta
        if self.raised:
            kept = self._failure_share * self.delta
        else:
            kept = self.rule_with(next(iter(self._counts)), self.adjacency or "zero_out").failures
        return max(0.0, kept - failures_of(self._counts.items()))

    @property
    def _failure_share(self) -> float:
        """Fraction of delta that the odometer reserves for failures: at least that of the rule."""
        if self.rule is None or self.terms.delta is None:
            return FAILURES
        return max(FAILURES, self.rule.failures / self.terms.delta)

    # --- privacy cost ---

    def spent(self) -> float:
        """Return the spent budget: the joint epsilon, or the odometer's epsilon after a budget increase.

        A filter has shown that the run is private at the budget. The joint epsilon can exceed it only by its numerical
        error, so the smaller of the two is valid.
        """
        if self.epsilon is None:
            raise ValueError("An accountant without a budget has no spent budget. Set `epsilon` and `delta`.")
        if self.raised:
            return self.adaptive_cost(self.delta)
        return min(joint_cost(self.event, self.delta, self.adjacency or "zero_out"), self.epsilon)

    def adaptive_cost(self, delta: float, further: DpEvent | None = None) -> float:
        """Return epsilon under fully adaptive composition, in nats, optionally with a further charge."""
        return self._odometer(delta, self.adjacency or "zero_out", further, 1)

    def _odometer(self, delta: float, adjacency: str, event: DpEvent | None = None, count: int = 0) -> float:
        """Return the odometer's epsilon with `count` further charges of `event`."""
        charges = self.counts if event is None else self._counts_with(releases(event), count)
        if not charges:
            return 0.0
        plan = self.event if event is None or self._counts else event
        once = sum(number for _, number in charges) == 1
        first = (lambda part: joint_cost(plan, part, adjacency)) if once else None
        return odometer_epsilon(charges, first, delta, adjacency == "replace_one", self._failure_share)
