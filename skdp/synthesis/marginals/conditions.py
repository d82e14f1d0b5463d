"""What synthetic rows are asked to be like: conditions on columns, as probabilities of levels to meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.cells import format_names
from skdp._checks.parameters import show
from skdp._checks.readings import days_of, key_of, number_of
from skdp._typing import Doubles
from skdp.synthesis.marginals.bin_shapes import Ends
from skdp.synthesis.marginals.column_levels import LevelColumn
from skdp.synthesis.marginals.table_form import TableForm

LABEL = "y"
"""Name of the label in conditions, as in ``pairs_``, where no column has it."""


class Conditions(NamedTuple):
    """Conditions by the position of their column; that of the label is the last.

    Attributes
    ----------
    weights : dict of int to ndarray of shape (A_j,)
        Probability of each level to meet the condition, some of them above 0.
    ends : dict of int to (float, float)
        Ends of the range within which numbers of a column lie.
    """

    weights: dict[int, Doubles]
    ends: dict[int, Ends]


def read_conditions(given: Any, form: TableForm, within: str, classes: Sequence[Any] | None) -> Conditions:
    """Return the conditions that a user wrote, for the columns of a table and the classes of a label, if there is one.

    Refused is what the public schema does not have: unknown columns and cells, and ranges without a number.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"conditions={show(given)} is no mapping: give a dict such as {{'age': (30, 40)}}.")
    found = Conditions({}, {})
    for name, asked in given.items():
        if name in form.names:
            j = form.names.index(name)
            column = form.columns[j]
            if column.block.is_line and not _asks_for_gaps(column, asked):
                found.ends[j] = _ends(column, asked)
                weights = column.shares_within(found.ends[j], within, form.is_whole(j))
            else:
                weights = _listed(name, asked, column.keys if not column.block.is_line else [], column)
        elif name == LABEL and classes is not None:
            j, weights = len(form.names), _listed(name, asked, [key_of(each) for each in classes])
        else:
            raise ValueError(f"conditions names {format_names([name])}, no column of the table: name those of the fit.")
        if not weights.any():
            raise ValueError(f"conditions[{name!r}] is a range that no number of its bins lies in: widen it.")
        found.weights[j] = weights
    return found


def _asks_for_gaps(column: LevelColumn, asked: Any) -> bool:
    return not isinstance(asked, tuple | list) and _is_gap(column, key_of(asked))


def _is_gap(column: LevelColumn, key: str | None) -> bool:
    return key is None or key in column.block.column.gaps


def _ends(column: LevelColumn, asked: Any) -> Ends:
    """Return the two ends of a range of numbers, or of days since 1970; one number is a range too."""
    pair = asked if isinstance(asked, tuple | list) else (asked, asked)
    read = days_of if column.block.column.kind == "date" else number_of
    ends = [read(end) for end in pair]
    if len(ends) != 2 or not ends[0] <= ends[1]:
        raise ValueError(
            f"conditions[{column.block.name!r}]={show(asked)} is no range of a {column.block.column.kind}: give a pair "
            "(low, high)."
        )
    return ends[0], ends[1]


def _listed(name: str, asked: Any, keys: Sequence[str | None], column: LevelColumn | None = None) -> Doubles:
    """Return ones for the levels of the cells that are asked for, one or a list of them, and zeros for all others."""
    cells = asked if isinstance(asked, list | tuple | set | frozenset | np.ndarray) else [asked]
    weights = np.zeros(len(keys) if column is None else column.n_levels)
    for cell in cells:
        key = key_of(cell)
        if column is not None and column.has_gaps and _is_gap(column, key):
            weights[-1] = 1.0
        elif key is not None and key in keys:
            weights[keys.index(key)] = 1.0
        else:
            raise ValueError(
                f"conditions[{name!r}] asks for {show(cell)}, which is no cell of the schema: list its own."
            )
    if not len(cells):
        raise ValueError(f"conditions[{name!r}] is an empty list: name one cell at least, or leave it out.")
    return weights
