"""`Scope`: what all charges of a ledger have in common, and what is rejected as it contradicts it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .charges import Charge
from .split import PARTS, DataSplit


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
