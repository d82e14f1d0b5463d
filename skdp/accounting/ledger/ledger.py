"""`Ledger`: the entries of a ledger, and the balances that they make, of which the tightest decides."""

from __future__ import annotations

from typing import Any

from ..events.composition import compose
from ..events.specifications import DpEvent
from ..releases import Releases, releases
from .balance import Balance
from .charges import ENTRY_KINDS, Charge, Terms, joint_delta, joint_price
from .split import PARTS, DataSplit


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
    groups : str
        Name of the labels of units, of all charges that have one; "" before the first.
    partition_rule : str or None
        How units are assigned to partitions, as the owner says it, or by the split; None before the first charge of a
        partition.
    split : DataSplit or None
        How the data set was cut into two parts, if it was.
    shape : DpEvent or None
        The last charge that was no selection, as the shape of what may come; a selection takes long to price.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.groups = ""
        self.partition_rule: str | None = None
        self.split: DataSplit | None = None
        self.entries: list[Charge] = []
        self.shape: DpEvent | None = None
        self._common, self._own = Balance(terms), dict[str, Balance]()

    def snapshot(self) -> Ledger:
        """A copy that later entries leave alone."""
        other = Ledger.__new__(Ledger)
        other.__dict__.update(self.__dict__)
        other.entries, other._common = list(self.entries), self._common.copy(self._common.partition)
        other._own = {name: balance.copy(name) for name, balance in self._own.items()}
        return other

    def of(self, partition: str | None) -> Ledger:
        """The ledger as a unit of this partition has paid it, only to be read; None: as it is."""
        if partition is None:
            return self
        other = Ledger.__new__(Ledger)
        other.__dict__.update(self.__dict__)
        other.entries = [entry for entry in self.entries if entry.partition in (None, partition)]
        other._common, other._own = self._own.get(partition, self._common), {}
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
    def partitions(self) -> tuple[str, ...]:
        """Those that were charged, in the order of their first charges."""
        return tuple(self._own)

    @property
    def balances(self) -> list[Balance]:
        """What a charge to this ledger has to fit: that of units of no charged partition, and of each one charged."""
        return [self._common, *self._own.values()]

    @property
    def event(self) -> DpEvent:
        """Everything charged as one event, equal neighbours counted, of all partitions."""
        return compose(charge.event for charge in self.history) if self._own else self._common.event

    @property
    def adjacency(self) -> str | None:
        """Of all charges; None before the first."""
        return self._common.adjacency

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

    @property
    def is_charged(self) -> bool:
        """Whether any charge has an effect."""
        return any(each.counts for each in self.balances)

    # --- entries ---

    def add(self, entry: Charge) -> None:
        """Enter what was admitted, or read from a log."""
        if entry.kind not in ENTRY_KINDS:
            raise ValueError(f"kind={entry.kind!r} is not known; update skdp.")
        if entry.kind == "charge":
            self.refuse_contradiction(entry)
            self._common.adjacency, self.groups = entry.adjacency, _groups_of(entry) or self.groups
            self.partition_rule = self.partition_rule or entry.partition_rule
            found = releases(entry.event)
            self.shape = self.shape if found.empty or found.selected else entry.event
        if entry.kind == "split":
            self.split = self.refuse_split(entry)
            self.partition_rule, self.groups = self.split.rule, self.split.groups or self.groups
        for each in self._concerned(entry.partition):
            each.add(entry)
        self.entries.append(entry)

    def _concerned(self, partition: str | None) -> list[Balance]:
        """Balances to which a charge is added; a new partition begins with what was charged to all."""
        if partition is None:
            return self.balances
        if partition not in self._own:
            self._own[partition] = self._common.copy(partition)
        return [self._own[partition]]

    def refuse_contradiction(self, charge: Charge) -> None:
        """Raise if the ledger holds another adjacency, other labels of units, or another rule of partitions."""
        self.refuse_mixed(charge.adjacency)
        self._refuse_other_groups(charge)
        self._refuse_partition(charge)

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
        if charge.adjacency == split.refused_adjacency == "add_remove":
            raise ValueError(
                f"partition={charge.partition!r} of a split by row number is not valid with adjacency='add_remove', as "
                "a row that leaves moves all after it; split by labels (groups) on a ledger of units, or use zero_out."
            )
        if charge.adjacency == split.refused_adjacency:
            raise ValueError(
                f"partition={charge.partition!r} of a split by label is not valid with adjacency='replace_one', as the "
                "unit in the place of another may be in the other part; use 'zero_out' or skdp.AddRemove."
            )

    def refuse_split(self, entry: Charge) -> DataSplit:
        """The split of an entry; raise if the ledger has one, or partitions or labels that contradict it."""
        if self.split is not None:
            raise ValueError("this ledger keeps a split already, and a second one would put units into both parts.")
        split = DataSplit.read(entry.parameters)
        self._refuse_partition(entry)
        self._refuse_other_groups(entry)
        if self.adjacency == split.refused_adjacency:
            raise ValueError(
                f"this ledger holds charges of adjacency={self.adjacency!r}, under which units may change sides: split "
                "by labels (groups) for add_remove, by row number (groups=None) for replace_one, or use zero_out."
            )
        return split

    # --- what is admitted: by all balances ---

    def admits(self, event: DpEvent, adjacency: str, count: int = 1) -> bool:
        """Whether the budget admits `count` further charges of an event that has a price. No slack."""
        return self.load(event, adjacency, count) <= 1.0

    def load(self, event: DpEvent, adjacency: str, count: int = 1) -> float:
        """The largest `Balance.load`, at most 1 if `count` further charges are admitted."""
        return max(each.load(event, adjacency, count) for each in self.balances)

    def load_now(self, adjacency: str) -> float:
        """The load without any further charge."""
        return max(each.load_now(adjacency) for each in self.balances)

    def tightest(self, event: DpEvent, adjacency: str) -> Balance:
        """The balance that has the least room for an event."""
        return max(self.balances, key=lambda each: each.load(event, adjacency))

    def priced_with(self, found: Releases, adjacency: str) -> bool:
        """Whether some method prices releases of all these kinds together."""
        return all(each.priced_with(found, adjacency) for each in self.balances)

    def has_room(self, event: DpEvent, count: int = 1) -> bool:
        """Whether the releases of all charges are few enough to be priced together: no kind above `MOST_RELEASES`."""
        return all(each.has_room(event, count) for each in self.balances)

    def remaining(self, event: DpEvent) -> float:
        """How many more charges of exactly that event would be admitted under the budget."""
        return min(each.remaining(event) for each in self.balances)

    def failures_left(self) -> float:
        """Delta that a further charge may fail with under the budget."""
        return min(each.failures_left() for each in self.balances)

    # --- what it costs: the largest of all balances ---

    def price(self, delta: float, method: str | None = None) -> float:
        """Joint price of everything charged, in nats."""
        adjacency = self.adjacency or "zero_out"
        return max(joint_price(event, delta, adjacency, method) for event in self._events())

    def joint_delta(self, epsilon: float, method: str | None = None) -> float:
        """The delta of the same at an epsilon."""
        adjacency = self.adjacency or "zero_out"
        return max(joint_delta(event, epsilon, adjacency, method) for event in self._events())

    def _events(self) -> set[DpEvent]:
        """What units have paid; partitions that paid the same are priced once."""
        return {each.event for each in self.balances}

    def spent(self) -> float:
        """What was spent of the budget: see `Balance.spent`."""
        return max(each.spent() for each in self.balances)

    def adaptive_price(self, delta: float, further: DpEvent | None = None) -> float:
        """The odometer's figure, valid however charges were chosen, in nats; with a further charge, if one is given."""
        return max(each.adaptive_price(delta, further) for each in self.balances)
