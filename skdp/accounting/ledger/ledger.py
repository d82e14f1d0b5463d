"""`Ledger`: the entries of a ledger, and the balances that they make, of which the tightest decides."""

from __future__ import annotations

from typing import Any

from ..events.composition import compose
from ..events.specifications import DpEvent
from ..releases import releases
from .balance import Balance
from .charges import ENTRY_KINDS, Charge, Terms, joint_price
from .scope import Scope


class Ledger:
    """Entries in order, and what has to be known to admit another one. Nothing is priced when an entry is added.

    Each figure is that of the unit that has paid most: the largest over partitions, or the least that is left. A charge
    that names no partition concerns all of them, those to come included.

    Parameters
    ----------
    terms : Terms

    Attributes
    ----------
    entries : list of Charge
        All of them: charges, refusals, raises, and a split.
    scope : Scope
        What all charges have in common.
    partitions : dict of str to Balance
        Of each partition that was charged, in the order of their first charges.
    shape : DpEvent or None
        The last charge that was no selection, as the shape of what may come; a selection takes long to price.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.scope = Scope(terms.adjacency)
        self.entries: list[Charge] = []
        self.shape: DpEvent | None = None
        self._common, self.partitions = Balance(terms), dict[str, Balance]()

    def snapshot(self) -> Ledger:
        """A copy that later entries leave alone."""
        other = Ledger.__new__(Ledger)
        other.__dict__.update(self.__dict__)
        other.entries, other._common = list(self.entries), self._common.copy(self._common.partition)
        other.partitions = {name: balance.copy(name) for name, balance in self.partitions.items()}
        return other

    def of(self, partition: str | None) -> Ledger:
        """The ledger as a unit of this partition has paid it, only to be read; None: as it is."""
        if partition is None:
            return self
        other = Ledger.__new__(Ledger)
        other.__dict__.update(self.__dict__)
        other.entries = [entry for entry in self.entries if entry.partition in (None, partition)]
        other._common, other.partitions = self.partitions.get(partition, self._common), {}
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {"terms": self.terms, "history": self.entries}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(Ledger(state["terms"]).__dict__)
        for entry in state["history"]:
            self.add(entry)

    @property
    def history(self) -> list[Charge]:
        """The charges alone."""
        return [entry for entry in self.entries if entry.kind == "charge"]

    @property
    def balances(self) -> list[Balance]:
        """What a charge to this ledger has to fit: that of units of no charged partition, and of each one charged."""
        return [self._common, *self.partitions.values()]

    @property
    def event(self) -> DpEvent:
        """Everything charged as one event, equal neighbours counted, of all partitions."""
        return compose(charge.event for charge in self.history) if self.partitions else self._common.event

    @property
    def epsilon(self) -> float | None:
        """The budget in force."""
        return self._common.epsilon

    @property
    def delta(self) -> float:
        """Delta of the budget."""
        return self._common.delta

    @property
    def raised(self) -> bool:
        """Whether the budget was raised after a charge of any partition."""
        return any(each.raised for each in self.balances)

    # --- entries ---

    def add(self, entry: Charge) -> None:
        """Enter what was admitted, or read from a log."""
        if entry.kind not in ENTRY_KINDS:
            raise ValueError(f"kind={entry.kind!r} is not known; update skdp.")
        if entry.kind == "charge":
            self.scope = self.scope.with_charge(entry)
            self._common.adjacency = entry.adjacency
            found = releases(entry.event)
            self.shape = self.shape if found.empty or found.selected else entry.event
        if entry.kind == "split":
            self.scope = self.scope.with_split(entry)
        for each in self._concerned(entry.partition):
            each.add(entry)
        self.entries.append(entry)

    def _concerned(self, partition: str | None) -> list[Balance]:
        """Balances to which a charge is added; a new partition begins with what was charged to all."""
        if partition is None:
            return self.balances
        if partition not in self.partitions:
            self.partitions[partition] = self._common.copy(partition)
        return [self.partitions[partition]]

    # --- what is admitted: by all balances ---

    def load(self, event: DpEvent, adjacency: str) -> float:
        """The largest `Balance.load`, at most 1 if a further charge of an event that has a price is admitted."""
        return max(each.load(event, adjacency) for each in self.balances)

    def has_room(self, event: DpEvent) -> bool:
        """Whether the releases of all charges are few enough to be priced together: no kind above `MOST_RELEASES`."""
        return all(each.has_room(event) for each in self.balances)

    def failures_left(self) -> float:
        """Delta that a further charge may fail with under the budget."""
        return min(each.failures_left() for each in self.balances)

    # --- what it costs: the largest of all balances ---

    def price(self, delta: float, method: str | None = None) -> float:
        """Joint price of everything charged, in nats."""
        adjacency = self.scope.adjacency or "zero_out"
        return max(joint_price(event, delta, adjacency, method) for event in self.events())

    def events(self) -> set[DpEvent]:
        """What units have paid; partitions that paid the same are priced once."""
        return {each.event for each in self.balances}

    def spent(self) -> float:
        """What was spent of the budget: see `Balance.spent`."""
        return max(each.spent() for each in self.balances)

    def adaptive_price(self, delta: float, further: DpEvent | None = None) -> float:
        """The odometer's figure, valid however charges were chosen, in nats; with a further charge, if one is given."""
        return max(each.adaptive_price(delta, further) for each in self.balances)
