"""`Ledger`: the entries of a ledger, and the balances that they make, of which the tightest decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skdp.accounting.events.composition import compose
from skdp.accounting.events.specifications import DpEvent
from skdp.accounting.ledger.balance import PARTS, Balance, DataSplit
from skdp.accounting.ledger.charges import ENTRY_KINDS, Charge, Terms, joint_price
from skdp.accounting.releases import releases


@dataclass(frozen=True)
class Scope:
    """What all charges of a ledger have in common.

    Attributes
    ----------
    adjacency : str or None
        Of all charges; None before the first, where none was stated.
    groups : str
        Name of the labels of units, of all charges that have one; "" before the first.
    partition_rule : str or None
        How units are assigned to partitions, as the owner says it, or by the split; None before the first charge of a
        partition.
    split : DataSplit or None
        How the data set was cut into two parts, if it was.
    """

    adjacency: str | None
    groups: str = ""
    partition_rule: str | None = None
    split: DataSplit | None = None

    def with_charge(self, charge: Charge) -> Scope:
        """Return the scope with a charge; raise if the ledger has another adjacency, other labels or another rule."""
        self.refuse_mixed(charge.adjacency)
        self._refuse_other_groups(charge)
        self._refuse_partition(charge)
        groups, rule = _groups_of(charge) or self.groups, self.partition_rule or charge.partition_rule
        return Scope(charge.adjacency, groups, rule, self.split)

    def with_split(self, entry: Charge) -> Scope:
        """Return the scope with the split of an entry; raise if there is one, or what contradicts it."""
        if self.split is not None:
            raise ValueError("this ledger keeps a split already, and a second one would put units into both parts.")
        split = DataSplit.read(entry.parameters)
        self._refuse_partition(entry)
        self._refuse_other_groups(entry)
        if self.adjacency == split.refused_adjacency:
            raise ValueError(f"A{_as_units_change_sides(split)}")
        return replace(self, groups=split.groups or self.groups, partition_rule=split.rule, split=split)

    def refuse_mixed(self, adjacency: str) -> None:
        """Raise if the ledger holds another adjacency."""
        if self.adjacency not in (None, adjacency):
            raise ValueError(
                f"adjacency={adjacency!r} cannot be mixed with {self.adjacency!r}, which this accountant already "
                "holds; use one adjacency, or a second accountant."
            )

    def _refuse_other_groups(self, charge: Charge) -> None:
        """Raise if units of a charge are those of another column of labels: of persons, say, and not of households."""
        groups = _groups_of(charge)
        if groups and self.groups and groups != self.groups:
            raise ValueError(
                f"groups={groups!r} cannot be mixed with {self.groups!r}, which this accountant already holds; use one "
                "column of labels, or a second accountant."
            )

    def _refuse_partition(self, charge: Charge) -> None:
        """Raise unless the partition of a charge is one by the only rule of this ledger."""
        partition, rule = charge.partition, charge.partition_rule
        if rule is not None and self.partition_rule not in (None, rule):
            raise ValueError(
                f"partition_rule={rule!r} cannot be mixed with {self.partition_rule!r}, by which this accountant "
                "already has partitions; leave it out, or use a second accountant."
            )
        if partition is None:
            return
        if self.split is not None:
            self._refuse_part(charge, self.split)
        elif charge.adjacency == "replace_one":
            raise ValueError(
                f"partition={partition!r} is not valid with adjacency='replace_one': a unit and the one in its place "
                "may be in two partitions; use zero_out or add_remove, or leave partition out."
            )
        if rule is None and self.partition_rule is None:
            raise ValueError(
                f"partition={partition!r} with partition_rule=None: the first charge of a partition tells by what rule "
                "a unit is in one; give a text such as 'month of first admission'."
            )

    def _refuse_part(self, charge: Charge, split: DataSplit) -> None:
        """Raise unless a charge is for a part of the split, under an adjacency that keeps each unit in its part."""
        if charge.partition not in PARTS:
            raise ValueError(
                f"partition={charge.partition!r} is no part of the split of this ledger; give 'train' or 'test'."
            )
        if charge.adjacency == split.refused_adjacency:
            raise ValueError(f"partition={charge.partition!r} of a{_as_units_change_sides(split)}")


def _as_units_change_sides(split: DataSplit) -> str:
    """What is wrong with the one adjacency under which units of a split may change sides, and the remedy."""
    if split.refused_adjacency == "add_remove":
        return (
            " split by row number is not valid with adjacency='add_remove', as a row that leaves moves all after it; "
            "split by labels (groups) on a ledger of units, or use zero_out."
        )
    return (
        " split by label is not valid with adjacency='replace_one', as the unit in the place of another may be in the "
        "other part; use 'zero_out' or skdp.AddRemove."
    )


def _groups_of(charge: Charge) -> str:
    """Name of the labels of units of a charge, "" if it has none."""
    return str(charge.parameters.get("groups") or "")


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
