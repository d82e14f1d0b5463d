"""Combinations of cells that cannot occur in a table: structural zeros, which its public schema names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skdp._checks.readings import day_text
from skdp.preprocessing.schema.kinds import Column, read_column


@dataclass(frozen=True)
class Combination:
    """Conditions on two columns or more that no row meets all together.

    Attributes
    ----------
    conditions : tuple of (str, tuple)
        Names of columns, each with the keys of its categories, or with the two ends of a range of numbers or days.
    """

    conditions: tuple[tuple[str, tuple[Any, ...]], ...]

    def describe(self, columns: Mapping[str, Column]) -> dict[str, list[Any]]:
        """Return the conditions as JSON can hold them."""
        return {
            name: [day_text(end) for end in ends] if columns[name].kind == "date" else list(ends)
            for name, ends in self.conditions
        }


def read_combinations(given: Any, columns: Mapping[str, Column]) -> tuple[Combination, ...]:
    """Return the combinations that a user wrote, for columns of these names and kinds."""
    if isinstance(given, Mapping | str) or not hasattr(given, "__iter__"):
        raise ValueError(
            "schema: impossible is no list: give a list of dicts, such as [{'age': (0, 14), 'job': ['nurse']}]."
        )
    return tuple(_read(each, columns) for each in given)


def combinations_left(given: tuple[Combination, ...], columns: Mapping[str, Column]) -> tuple[Combination, ...]:
    """Return combinations of cells that are still there once columns were bought: not every category is."""
    made = []
    for each in given:
        conditions = tuple((name, _left(condition, columns[name])) for name, condition in each.conditions)
        if all(condition for _, condition in conditions):
            made.append(Combination(conditions))
    return tuple(made)


def _left(condition: tuple[Any, ...], column: Column) -> tuple[Any, ...]:
    if column.kind == "drop":
        return ()
    return condition if column.categories is None else tuple(key for key in condition if key in column.categories)


def _read(given: Any, columns: Mapping[str, Column]) -> Combination:
    if isinstance(given, Combination):
        given = dict(given.conditions)
    if not isinstance(given, Mapping) or len(given) < 2:
        raise ValueError(
            "schema: an entry of impossible does not name two columns or more: give a dict such as "
            "{'age': (0, 14), 'job': ['nurse']}."
        )
    return Combination(tuple((name, _condition(name, each, columns)) for name, each in given.items()))


def _condition(name: Any, given: Any, columns: Mapping[str, Column]) -> tuple[Any, ...]:
    column = columns.get(name)
    if column is None or column.kind == "drop":
        raise ValueError(f"schema: impossible names {name!r}, which is no column of the schema: name those that are.")
    if column.kind in ("number", "date"):
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(f"schema: impossible: column {name!r} is a {column.kind}; give a pair (low, high).")
        days = column.kind == "date" and all(isinstance(end, float | int) for end in given)
        ends = read_column(name, {"kind": "number" if days else column.kind, "bounds": tuple(given)}).bounds
        return ends or (-math.inf, math.inf)
    listed = read_column(name, {"kind": "category", "categories": given}).categories or ()
    known = ("True", "False") if column.kind == "flag" else column.categories
    if known is not None and not set(listed) <= set(known):
        raise ValueError(f"schema: impossible: column {name!r} does not have all of these categories; list its own.")
    return listed
