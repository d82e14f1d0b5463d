"""Privacy units: a row, or all rows of one group, such as a person or a household."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from skdp._checks.numbers import KIND_OF_DTYPE, NUMBER, OTHER, float_of, key_of, kind_of_cell, or_none, values_of
from skdp._checks.parameters import check_count
from skdp._checks.rows import column_names, split_column

ROW, GROUP = "row", "group"
"""What a promise is about, as `privacy_unit_` has it."""

UNIT_FACTS = ("privacy_unit_", "_fitted_group_name")
"""Attributes by which what is fitted knows what it is private for."""


def check_row_limit(rows_per_group: Any, unit: str) -> None:
    """Reject `rows_per_group` unless it is an integer from 1 to 1,000,000, and without groups."""
    if rows_per_group is None:
        return
    constraint = "an integer from 1 to 1,000,000, or None"
    check_count("rows_per_group", rows_per_group, at_most=1_000_000, constraint=constraint)
    if unit == ROW:
        raise ValueError(
            f"rows_per_group={rows_per_group} requires `groups`. Pass `groups` to fit, or set rows_per_group=None."
        )


def estimand_of(unit: str, row: str = "one row") -> str:
    """Return one line that states what an estimate weights, or "" if the privacy unit is a row.

    Parameters
    ----------
    unit : {"row", "group"}
        Privacy unit of the guarantee.
    row : str
        The row whose weight a group has: the largest one if groups are clipped by a norm.
    """
    return "" if unit == ROW else f"Estimand: each group has at most the weight of {row}, which its rows share."


class CountedUnits(NamedTuple):
    """Public facts about groups of data that are not in memory: their number, and the name of the identifiers."""

    n_units: int
    name: str = ""


@dataclass(frozen=True, eq=False)
class Units:
    """The group of each row.

    Attributes
    ----------
    codes : ndarray of shape (n_rows,), int64
        Numbers of the groups, starting at 0; private.
    n_units : int
        Number of groups. Public if the number of rows would be public without groups.
    name : str
        Name of the column or series of the identifiers, "" for an array or a list; public.
    """

    codes: NDArray[np.int64] = field(repr=False)
    n_units: int
    name: str = ""

    @property
    def unit(self) -> str:
        """Name of the privacy unit for the accountant: the name of the identifiers if they have one."""
        return self.name or GROUP

    def take(self, rows: NDArray[np.intp]) -> Units:
        """Return the groups of some rows, renumbered."""
        found, codes = np.unique(self.codes[rows], return_inverse=True)
        return Units(codes.astype(np.int64), len(found), self.name)


def take_unit(part: Any, whole: Any) -> None:
    """Set the privacy unit of a part to that of the whole in which it is fitted."""
    for name in UNIT_FACTS:
        part.__dict__.pop(name, None)
    part.__dict__.update({name: whole.__dict__[name] for name in UNIT_FACTS if name in whole.__dict__})


def split_labels(X: Any, groups: Any) -> tuple[Any, Any]:
    """Return a table without the column named `groups`, and that column; or both unchanged.

    Identifiers and rows are matched by position. A series with a different index is rejected, because other rows than
    those of one group would silently be protected together.
    """
    if not isinstance(groups, str):
        indexes = [each.index for each in (X, groups) if hasattr(each, "iloc")]
        if len(indexes) == 2 and len(indexes[0]) == len(indexes[1]) and not indexes[0].equals(indexes[1]):
            raise ValueError(
                "`groups` has a different index than X, but skdp matches them by position. Align them, or pass "
                "groups.to_numpy() if they are in the same order."
            )
        return X, groups
    if column_names(X) == [groups]:
        raise ValueError(
            f"groups={groups!r} is the only column of X, and group identifiers are not used as a feature. Pass "
            "X with more columns."
        )
    return split_column(X, "groups", groups)


def read_units(groups: Any, n_rows: int, name: str | None = None) -> Units:
    """Return the groups of group identifiers, or reject these in one line without an identifier.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
        Private group identifiers. Two identifiers are equal if their keys are, independently of other rows: numbers by
        value, dates and strings by text, tuples part by part, and other hashable objects as Python compares them.
        Objects that are compared by identity are rejected, because the identifiers of one group could differ.
    n_rows : int
    name : str or None
        Name of the column of the identifiers. None uses their own name.
    """
    if isinstance(groups, Units):
        if len(groups.codes) != n_rows:
            _reject_shape(groups.codes.shape, n_rows)
        return groups
    codes, n_units = numbers_of(read_labels(groups, n_rows))
    return Units(codes, n_units, name_of(groups) if name is None else name)


def name_of(groups: Any) -> str:
    """Return the name of a series of group identifiers, "" if they have none."""
    name = getattr(groups, "name", None)
    return name if isinstance(name, str) else ""


def read_labels(groups: Any, n_rows: int) -> np.ndarray:
    """Return group identifiers as an array, as `comparable` does, or reject them as `read_units` does."""
    labels = values_of("groups", groups)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n_rows,):
        _reject_shape(labels.shape, n_rows)
    return comparable(labels)


def keys_of_units(groups: Any, units: Units) -> list[str]:
    """Return the text by which the identifier of each group is compared, independently of other identifiers."""
    labels = values_of("groups", groups).reshape(len(units.codes))
    _, first = np.unique(units.codes, return_index=True)
    found = labels[first]
    # moments and spans as NumPy's scalars: `tolist` makes plain numbers of nanoseconds
    keys = list(map(_key, list(found) if found.dtype.kind in "mM" else found.tolist()))
    if not all(isinstance(key, str) for key in keys):
        _reject_kind()
    return keys


def _reject_shape(shape: tuple[int, ...], n_rows: int) -> None:
    raise ValueError(f"`groups` must have shape ({n_rows},), one group identifier per row of X, got {shape}.")


def numbers_of(labels: np.ndarray) -> tuple[NDArray[np.int64], int]:
    """Return a number for each `comparable` identifier, and how many of them differ."""
    if labels.dtype.kind != "O":
        found, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64, copy=False), len(found)
    seen: dict[Any, int] = {}
    numbered = (seen.setdefault(key, len(seen)) for key in labels.tolist())
    numbers: NDArray[np.int64] | None = or_none(np.fromiter, numbered, np.int64, len(labels))
    return (_reject_kind() if numbers is None else numbers), len(seen)


def comparable(labels: np.ndarray) -> np.ndarray:
    """Return identifiers in comparable form: those of one type unchanged, all others as keys; reject missing values."""
    if labels.dtype.kind in KIND_OF_DTYPE and labels.dtype.kind != "T":
        gaps = np.isnat(labels) if labels.dtype.kind in "mM" else labels != labels
        if labels.dtype.kind in "US":
            gaps = labels == labels.dtype.type()
        if gaps.any():
            reject_gaps()
        return labels
    keys = or_none(lambda: [_key(label) for label in labels.tolist()])
    if keys is None:
        _reject_kind()
    if any(key is None for key in keys):
        reject_gaps()
    found = np.empty(len(keys), object)
    found[:] = keys
    return found


def texts_of(labels: np.ndarray) -> list[str]:
    """Return the text of each `comparable` identifier: identifiers of one type are equal if their texts are."""
    if labels.dtype.kind in "mM":
        labels = labels.astype(str)
    found = labels.tolist()
    if labels.dtype.kind == "O" and not all(isinstance(each, str) for each in found):
        _reject_kind()
    return [str(each) for each in (found if labels.dtype.kind in "OUiu" else map(_key, found))]


def _key(label: Any) -> Any:
    """What a label is compared by; a whole number is compared as it is, beyond 2**53 too."""
    if isinstance(label, tuple):
        return tuple(map(_key, label))
    kind = kind_of_cell(type(label))
    if kind == OTHER:  # the label itself, in a tuple that no text is equal to
        if not isinstance(label, Enum) and not any("__eq__" in vars(each) for each in type(label).__mro__[:-1]):
            raise TypeError(f"{type(label).__name__} has no value")
        return (label,)
    if kind == NUMBER and not isinstance(label, bool | np.bool_):
        is_whole = isinstance(label, int | np.integer) or float_of(label).is_integer()
        return str(int(label)) if is_whole else key_of(label)
    return key_of(label)


def _reject_kind() -> NoReturn:
    raise ValueError("`groups` must contain numbers, strings or dates, got objects that cannot be compared by value.")


def reject_gaps() -> NoReturn:
    raise ValueError(
        "`groups` contains missing values. Pass a group identifier for every row, for example a unique "
        "identifier for a row without a group."
    )


MOST_HELD = 1 << 26
"""Bytes of what is kept of units up to which they stay in memory; more are in a temporary file, without a name."""

_DIGEST = np.dtype("S16")
_LEADING_BYTES = 2


class UnitsOfRows:
    """Groups of consecutive rows, of which the first and the last may extend beyond these rows.

    Attributes
    ----------
    first : int
        Number of the first group that lies completely within these rows.
    sizes : ndarray of int64
        Number of rows of this group and all others that lie completely within these rows.
    head, tail : int
        Number of rows at the beginning, and at the end, of groups that lie partially within these rows.
    ends : bool
        Whether the group of the head ends within these rows; True without a head. Otherwise it contains all rows.
    """

    def __init__(self, starts: NDArray[np.int64], start: int, stop: int) -> None:
        first, last = int(np.searchsorted(starts, start)), int(np.searchsorted(starts, stop, side="right")) - 1
        self.first, self.ends = first, first <= last
        self.sizes = np.diff(starts[first : last + 1])
        self.head = int(min(starts[first], stop)) - start
        self.tail = stop - int(starts[last]) if self.ends else 0

    @property
    def n_rows(self) -> int:
        """Rows of whole units."""
        return int(self.sizes.sum())

    @property
    def units(self) -> Units:
        """The whole units, numbered from 0; all other rows have the number after these."""
        n_units = len(self.sizes)
        counts = np.concatenate([[self.head], self.sizes, [self.tail]])
        return Units(np.repeat(np.concatenate([[n_units], np.arange(n_units), [n_units]]), counts), n_units)

    @property
    def whole(self) -> Units:
        """The whole units, without all other rows."""
        return Units(np.repeat(np.arange(len(self.sizes)), self.sizes), len(self.sizes))


@dataclass(frozen=True, eq=False)
class UnitRuns:
    """Groups, numbered in the order of the rows, each of which consists of consecutive rows.

    Attributes
    ----------
    starts : ndarray of shape (n_units + 1,), int64
        First row of each group; private.
    name : str
        Name of the identifiers; public.
    """

    starts: NDArray[np.int64] = field(repr=False)
    name: str = ""

    @property
    def n_units(self) -> int:
        return len(self.starts) - 1

    def within(self, start: int, stop: int) -> UnitsOfRows:
        """Return the units of rows from `start` up to `stop`."""
        return UnitsOfRows(self.starts, start, stop)

    def sizes_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of rows of units."""
        return np.asarray(self.starts[numbers + 1] - self.starts[numbers])

    def rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of units, side by side."""
        sizes = self.sizes_of(numbers)
        before = np.cumsum(sizes) - sizes
        return np.repeat(self.starts[numbers] - before, sizes) + np.arange(int(sizes.sum()))


def runs_of(groups: Any, n_rows: int) -> UnitRuns:
    """Return the consecutive groups of identifiers in memory, or reject them if the rows of a group are not adjacent.

    Only the first identifier of each run is sorted, so little additional memory is used.
    """
    labels = read_labels(groups, n_rows)
    if labels.dtype.kind == "O":
        labels, _ = numbers_of(labels)
    starts = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
    if len(np.unique(labels[starts])) < len(starts):
        reject_apart()
    return UnitRuns(np.append(starts, n_rows), name_of(groups))


class RunReader:
    """Reads labels of rows, part by part, in one pass.

    Notes
    -----
    **Guarantees.** No unit lies in several runs of the rows whose labels were read, or `finish` rejects them.

    Proof. A run begins where the text of a label is not that of the row before. Of each run the hash of the text is
    kept, and equal texts have equal hashes, so that a unit in two runs is two equal hashes, of which `finish` finds
    every pair.

    Hashes are of 128 bits, by BLAKE2b under a key that is drawn for the pass and kept nowhere. Two of n labels have one
    hash with probability n**2 / 2**129 at most, 10**-21 for 10**9 units: rows would then be rejected that need not be.
    """

    def __init__(self) -> None:
        self.hashes = RepeatedHashes()
        self._starts, self._n_rows = _Kept(np.dtype(np.int64)), 0
        self._last: str | None = None

    def add(self, labels: np.ndarray) -> None:
        """Add the identifiers of the next rows, of shape (m,) and always of one type; reject missing values."""
        labels = comparable(labels)
        if not len(labels):
            return
        # Where runs begin; the first one may go on from the rows before.
        heads = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
        texts = texts_of(labels[heads])
        goes_on = texts[0] == self._last
        self._last = texts[-1]
        self.hashes.add(hashes_of(texts[goes_on:], self.hashes.key))
        self._starts.add(self._n_rows + heads[goes_on:])
        self._n_rows += len(labels)

    def finish(self, name: str) -> UnitRuns:
        """Return the groups of all rows, or reject them if the rows of a group are not adjacent."""
        if self.hashes.repeat():
            reject_apart()
        self._starts.add(np.array([self._n_rows]))
        return UnitRuns(self._starts.whole(), name)


class RepeatedHashes:
    """Keyed hashes of labels, of which no two may be equal; see `RunReader`."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self._kept = _Kept(_DIGEST, np.sort)

    def add(self, hashes: np.ndarray) -> None:
        """Add what `hashes_of` returned, here or elsewhere, under the key of these."""
        self._kept.add(hashes)

    def repeat(self) -> bool:
        """Whether two hashes are equal. About `MOST_HELD` bytes of hashes are in memory at a time."""
        parts = self._kept.pieces()
        edges = np.linspace(0, 256**_LEADING_BYTES, len(parts) + 1).astype(int)[1:-1]
        cuts = np.array([int(edge).to_bytes(_LEADING_BYTES, "big") for edge in edges], _DIGEST)
        for pieces in zip(*(np.split(part, np.searchsorted(part, cuts)) for part in parts), strict=True):
            found = np.sort(np.concatenate(pieces))
            if (found[1:] == found[:-1]).any():
                return True
        return False


def hashes_of(texts: list[str], key: bytes) -> np.ndarray:
    """Return the hash of each text, of 16 bytes."""
    size, blake = _DIGEST.itemsize, hashlib.blake2b
    found = [blake(text.encode("utf-8", "surrogatepass"), digest_size=size, key=key).digest() for text in texts]
    return np.frombuffer(b"".join(found), _DIGEST)


class _Kept:
    """An array that grows by parts; beyond `MOST_HELD` bytes it is in a file, in pieces that `arrange` has arranged."""

    def __init__(self, dtype: np.dtype[Any], arrange: Callable[[Any], np.ndarray] = np.asarray) -> None:
        self._dtype, self._arrange = dtype, arrange
        self._file: Any = None
        self._held: list[np.ndarray] = []
        self._n_held = 0
        self._written: list[int] = []

    def add(self, part: np.ndarray) -> None:
        self._held.append(part.astype(self._dtype, copy=False))
        self._n_held += len(part)
        if self._n_held * self._dtype.itemsize >= MOST_HELD:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115, as it lives as long as this object
        piece = self._arrange(np.concatenate(self._held))
        self._file.write(piece.view(np.uint8))
        self._held, self._n_held, self._written = [], 0, [*self._written, len(piece)]

    def whole(self) -> np.ndarray:
        """Return the array."""
        if self._file is None:
            return self._arrange(np.concatenate([np.empty(0, self._dtype), *self._held]))
        if self._held:
            self._write()
        self._file.flush()
        return np.asarray(np.memmap(self._file, self._dtype, "r"))

    def pieces(self) -> list[np.ndarray]:
        """Return the pieces of the array."""
        return np.split(self.whole(), np.cumsum(self._written)[:-1])


def reject_apart() -> NoReturn:
    """Reject identifiers of a group whose rows are not adjacent."""
    raise ValueError(
        "`groups` must keep the rows of each group together, because data that are not in memory are read "
        "in order. Sort the data by `groups` first."
    )
