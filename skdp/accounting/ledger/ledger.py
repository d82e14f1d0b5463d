"""`Ledger`: the entries of an accountant, and a balance for each partition, of which the tightest decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skdp.accounting.events.composition import compose
from skdp.accounting.events.specifications import DpEvent
from skdp.accounting.ledger.balance import PARTS, Balance, DataSplit
from skdp.accounting.ledger.charges import ENTRY_KINDS, Charge, Terms, joint_cost
from skdp.accounting.releases import releases


@dataclass(frozen=True)
class Scope:
    """Properties that all charges of an accountant share.

    Attributes
    ----------
    adjacency : str or None
        Neighboring relation; None before the first charge if none was set.
    groups : str
        Column name of the group identifiers; "" if no charge has one.
    partition_rule : str or None
        Rule that assigns units to partitions, from the user or from the split; None before the first charge of a
        partition.
    split : DataSplit or None
        Train/test split of the data set, if any.
    """

    adjacency: str | None
    groups: str = ""
    partition_rule: str | None = None
    split: DataSplit | None = None

    def with_charge(self, charge: Charge) -> Scope:
        """Return the scope with a charge; raise if the adjacency, the identifier column or the rule differs."""
        self.reject_mixed(charge.adjacency)
        self._reject_other_groups(charge)
        self._reject_partition(charge)
        groups, rule = _groups_of(charge) or self.groups, self.partition_rule or charge.partition_rule
        return Scope(charge.adjacency, groups, rule, self.split)

    def with_split(self, entry: Charge) -> Scope:
        """Return the scope with a new split; raise if another split or a contradicting entry exists."""
        if self.split is not None:
            raise ValueError(
                "The accountant already has a train/test split; a second split would put units into both parts."
            )
        split = DataSplit.read(entry.parameters)
        self._reject_partition(entry)
        self._reject_other_groups(entry)
        if self.adjacency == split.rejected_adjacency:
            raise ValueError(f"A split{_as_units_change_sides(split)}")
        return replace(self, groups=split.groups or self.groups, partition_rule=split.rule, split=split)

    def reject_mixed(self, adjacency: str) -> None:
        """Raise if the accountant has another adjacency."""
        if self.adjacency not in (None, adjacency):
            raise ValueError(
                f"adjacency={adjacency!r} cannot be mixed with {self.adjacency!r}, the adjacency of the accountant. "
                "Use the same adjacency, or another accountant."
            )

    def _reject_other_groups(self, charge: Charge) -> None:
        """Raise if a charge has another column of group identifiers, such as persons instead of households."""
        groups = _groups_of(charge)
        if groups and self.groups and groups != self.groups:
            raise ValueError(
                f"groups={groups!r} cannot be mixed with {self.groups!r}, the group identifiers of the accountant. Use "
                "the same column, or another accountant."
            )

    def _reject_partition(self, charge: Charge) -> None:
        """Raise unless the partition of a charge follows the partition rule of the accountant."""
        partition, rule = charge.partition, charge.partition_rule
        if rule is not None and self.partition_rule not in (None, rule):
            raise ValueError(
                f"partition_rule={rule!r} cannot be mixed with {self.partition_rule!r}, the rule of the accountant. "
                "Remove `partition_rule`, or use another accountant."
            )
        if partition is None:
            return
        if self.split is not None:
            self._reject_part(charge, self.split)
        elif charge.adjacency == "replace_one":
            raise ValueError(
                f"partition={partition!r} cannot be used with adjacency='replace_one', because a replaced unit can "
                "change its partition. Use 'zero_out' or 'add_remove', or remove `partition`."
            )
        if rule is None and self.partition_rule is None:
            raise ValueError(
                f"`partition_rule` must be set with the first charge of a partition, got partition={partition!r} and "
                "partition_rule=None. Pass a description such as 'month of first admission'."
            )

    def _reject_part(self, charge: Charge, split: DataSplit) -> None:
        """Raise unless a charge is for a part of the split, with an adjacency that keeps each unit in its part."""
        if charge.partition not in PARTS:
            raise ValueError(
                f"`partition` must be 'train' or 'test' if the accountant has a split, got {charge.partition!r}."
            )
        if charge.adjacency == split.rejected_adjacency:
            raise ValueError(f"partition={charge.partition!r} of a split{_as_units_change_sides(split)}")


def _as_units_change_sides(split: DataSplit) -> str:
    """Return the message for the adjacency that is incompatible with a split, and the remedy."""
    if split.rejected_adjacency == "add_remove":
        return (
            " by row number cannot be used with adjacency='add_remove', because a removed row renumbers later rows. "
            "Split by `groups` with a group-level accountant, or use adjacency='zero_out'."
        )
    return (
        " by group cannot be used with adjacency='replace_one', because a replaced group can change its part. Use "
        "'zero_out' or skdp.AddRemove."
    )


def _groups_of(charge: Charge) -> str:
    """Return the column name of the group identifiers of a charge, or ""."""
    return str(charge.parameters.get("groups") or "")


class Ledger:
    """Entries in order, and the state to admit further ones. Adding an entry computes no privacy cost.

    All values are maxima over partitions of the privacy loss, or minima of the remaining budget. A charge without a
    partition affects all partitions, including later ones.

    Parameters
    ----------
    terms : Terms

    Attributes
    ----------
    entries : list of Charge
        Charges, rejected inputs, budget increases and a split.
    scope : Scope
        Properties that all charges share.
    partitions : dict of str to Balance
        Balance of each charged partition, in the order of first charges.
    shape : DpEvent or None
        Event of the last charge that was not a selection (whose cost takes long to compute), as the default shape.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.scope = Scope(terms.adjacency)
        self.entries: list[Charge] = []
        self.shape: DpEvent | None = None
        self._common, self.partitions = Balance(terms), dict[str, Balance]()

    def snapshot(self) -> Ledger:
        """Return an independent copy."""
        other = Ledger.__new__(Ledger)
        other.__dict__.update(self.__dict__)
        other.entries, other._common = list(self.entries), self._common.copy(self._common.partition)
        other.partitions = {name: balance.copy(name) for name, balance in self.partitions.items()}
        return other

    def of(self, partition: str | None) -> Ledger:
        """Return a read-only ledger with the entries that affect a partition; None returns this ledger."""
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
        """Charges without other entries."""
        return [entry for entry in self.entries if entry.kind == "charge"]

    @property
    def balances(self) -> list[Balance]:
        """Balances that a charge must fit: of units in no charged partition, and of each charged partition."""
        return [self._common, *self.partitions.values()]

    @property
    def event(self) -> DpEvent:
        """Composition of all charges, over all partitions."""
        return compose(charge.event for charge in self.history) if self.partitions else self._common.event

    @property
    def epsilon(self) -> float | None:
        """Present budget."""
        return self._common.epsilon

    @property
    def delta(self) -> float:
        """Delta of the budget."""
        return self._common.delta

    @property
    def raised(self) -> bool:
        """Whether the budget was increased after a charge to any partition."""
        return any(each.raised for each in self.balances)

    # --- entries ---

    def add(self, entry: Charge) -> None:
        """Add an entry that was admitted or read from a log."""
        if entry.kind not in ENTRY_KINDS:
            raise ValueError(f"kind={entry.kind!r} is not supported by this version. Update skdp.")
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
        """Return the balances that a charge affects; a new partition starts with the charges to all units."""
        if partition is None:
            return self.balances
        if partition not in self.partitions:
            self.partitions[partition] = self._common.copy(partition)
        return [self.partitions[partition]]

    # --- admission: by all balances ---

    def load(self, event: DpEvent, adjacency: str) -> float:
        """Return the largest `Balance.load`; at most 1 if a further charge of the event is admitted."""
        return max(each.load(event, adjacency) for each in self.balances)

    def has_room(self, event: DpEvent) -> bool:
        """Return whether the total number of releases stays within `MOST_RELEASES`."""
        return all(each.has_room(event) for each in self.balances)

    def failures_left(self) -> float:
        """Return the remaining part of delta for failure probabilities."""
        return min(each.failures_left() for each in self.balances)

    # --- privacy cost: the maximum over balances ---

    def cost(self, delta: float, method: str | None = None) -> float:
        """Return the epsilon of the composition of all charges, in nats."""
        adjacency = self.scope.adjacency or "zero_out"
        return max(joint_cost(event, delta, adjacency, method) for event in self.events())

    def events(self) -> set[DpEvent]:
        """Return the compositions of all balances, without duplicates."""
        return {each.event for each in self.balances}

    def spent(self) -> float:
        """Return the spent budget, see `Balance.spent`."""
        return max(each.spent() for each in self.balances)

    def adaptive_cost(self, delta: float, further: DpEvent | None = None) -> float:
        """Return epsilon under fully adaptive composition, in nats, optionally with a further charge."""
        return max(each.adaptive_cost(delta, further) for each in self.balances)
