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
- *Odometer* (`odometer`, once a budget was raised). It is made of filters that depend on delta alone and on the
  share for failures, which the balance's rule tells; the same argument holds for each.
- The rule that assigns units to partitions may itself be chosen after seeing outputs: given the outputs it is fixed,
  and no filter depends on it.

A unit that is added or removed, or becomes null, changes one partition. One that is replaced by another may change two:
partitions have no figure under `replace_one`, and are refused there.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

from ..events.composition import MOST_RELEASES, compose, flatten
from ..events.specifications import DpEvent, SelfComposedDpEvent
from ..methods import check_epsilon
from ..releases import Releases, releases
from .charges import Charge, Terms, joint_price, methods_for
from .filters import FAILURES, GAUSSIAN, Counts, Rule, failures_of, rule_for, share
from .odometer import odometer_epsilon


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

    def admits(self, event: DpEvent, adjacency: str, count: int = 1) -> bool:
        """Whether the budget admits `count` further charges of an event that has a price. No slack."""
        return self.load(event, adjacency, count) <= 1.0

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
        if most == 0 or not self.priced_with(releases(event), adjacency) or not self.admits(event, adjacency):
            return 0
        low, high = 1, 2
        while high <= most and self.admits(event, adjacency, high):
            low, high = high, 2 * high
        more = range(low + 1, min(high, most + 1))
        return low + bisect_left(more, True, key=lambda count: not self.admits(event, adjacency, count))

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
