"""Units of privacy: a row, or all rows with one label, such as those of a person or of a household."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.cells import KIND_OF_DTYPE, NUMBER, OTHER, float_of, kind_of_cell, values_of
from skdp._checks.readings import key_of
from skdp._checks.rows import column_names

ROW, GROUP = "row", "group"
"""What a promise is about, as `privacy_unit_` has it."""


@dataclass(frozen=True, eq=False)
class Units:
    """The unit of each row.

    Attributes
    ----------
    codes : ndarray of shape (n_rows,), int64
        Numbers of the units, from 0; private.
    n_units : int
        Public where the number of units is, as the number of rows is without units.
    name : str
        Of the column or series that the labels come from, "" for an array or a list; public.
    """

    codes: NDArray[np.int64] = field(repr=False)
    n_units: int
    name: str = ""

    @property
    def unit(self) -> str:
        """What a ledger calls the unit: by the name of its labels if they have one."""
        return self.name or GROUP

    def take(self, rows: NDArray[np.intp]) -> Units:
        """Return the units of some rows, renumbered."""
        found, codes = np.unique(self.codes[rows], return_inverse=True)
        return Units(codes.astype(np.int64), len(found), self.name)


def split_labels(X: Any, groups: Any) -> tuple[Any, Any]:
    """Return a table without the column that `groups` names, and that column; or both as they are.

    Labels and rows go together by their places. A series whose index says otherwise is refused: other rows than those
    of one unit would be protected together, and nothing would show it.
    """
    if not isinstance(groups, str):
        indexes = [each.index for each in (X, groups) if hasattr(each, "iloc")]
        if len(indexes) == 2 and len(indexes[0]) == len(indexes[1]) and not indexes[0].equals(indexes[1]):
            raise ValueError(
                "groups has another index than X, and labels and rows go together by their places: align them, or give "
                "groups.to_numpy() if they are in the same order."
            )
        return X, groups
    names = column_names(X)
    if names is None or groups not in names:
        raise ValueError(f"groups={groups!r} is no column of X: name a column of the frame, or give one label a row.")
    if len(names) == 1:
        raise ValueError(f"groups={groups!r} is the only column of X, and is no feature: give X more columns.")
    labels = X[groups]
    if hasattr(X, "iloc"):
        return X.drop(columns=[groups]), labels
    return (X.drop(groups) if hasattr(X, "to_series") else X.drop_columns([groups])), labels


def read_units(groups: Any, n_rows: int) -> Units:
    """Return the units that labels give, or refuse these in one line without a label.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
        Private labels. Labels are equal if their keys are, whatever other rows hold: numbers by their value, moments
        and strings by their text, tuples part by part, anything else that is hashable as Python compares it. What is
        compared by its place in memory is refused: the labels of one unit could differ.
    n_rows : int
    """
    if isinstance(groups, Units):
        if len(groups.codes) != n_rows:
            _refuse_shape(groups.codes.shape, n_rows)
        return groups
    name = getattr(groups, "name", None)
    labels = values_of("groups", groups)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n_rows,):
        _refuse_shape(labels.shape, n_rows)
    codes, n_units = _numbered(labels)
    return Units(codes, n_units, name if isinstance(name, str) else "")


def _refuse_shape(shape: tuple[int, ...], n_rows: int) -> None:
    raise ValueError(f"groups has shape {shape} where X has {n_rows} rows: give one label a row, in one dimension.")


def _numbered(labels: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Numbers of the labels, and how many there are."""
    if labels.dtype.kind in KIND_OF_DTYPE and labels.dtype.kind != "T":
        gaps = np.isnat(labels) if labels.dtype.kind in "mM" else labels != labels
        if labels.dtype.kind in "US":
            gaps = labels == labels.dtype.type()
        if gaps.any():
            _refuse_gaps()
        found, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64, copy=False), len(found)
    seen: dict[Any, int] = {}
    numbers: NDArray[np.int64] | None = None
    try:
        keys = map(_key, labels.tolist())
        numbers = np.fromiter((seen.setdefault(key, len(seen)) for key in keys), np.int64, len(labels))
    except MemoryError:
        raise
    except Exception:
        pass  # its message may quote a label
    if numbers is None:
        raise ValueError("groups has labels that cannot be compared by their value: give numbers, strings or dates.")
    if None in seen:
        _refuse_gaps()
    return numbers, len(seen)


def _key(label: Any) -> Any:
    """What a label is compared by; a whole number is compared as it is, beyond 2**53 too."""
    if isinstance(label, tuple):
        return tuple(map(_key, label))
    kind = kind_of_cell(type(label))
    if kind == OTHER:
        return _value_of(label)
    if kind == NUMBER and not isinstance(label, bool | np.bool_):
        is_whole = isinstance(label, int | np.integer) or float_of(label).is_integer()
        return str(int(label)) if is_whole else key_of(label)
    return key_of(label)


def _value_of(label: Any) -> tuple[Any]:
    """The label itself, in a tuple that no text is equal to."""
    has_value = any("__eq__" in vars(kind) for kind in type(label).__mro__[:-1])
    if not has_value and not isinstance(label, Enum):
        raise TypeError(f"{type(label).__name__} has no value")
    return (label,)


def _refuse_gaps() -> None:
    raise ValueError("groups has gaps: give each row the label of its unit, one of its own where it is alone.")


def refuse_groups_elsewhere(groups: Any) -> None:
    """Refuse labels of rows that are not in memory, and read block by block."""
    if groups is not None:
        raise ValueError(
            "groups with rows that are not in memory, where a group may lie in several blocks: load the rows, or leave "
            "groups out."
        )


__all__ = ["GROUP", "ROW", "Units", "read_units", "refuse_groups_elsewhere", "split_labels"]
