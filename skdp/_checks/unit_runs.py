"""Units of rows that are not in memory: each has to lie in one run of rows, which is looked at and never trusted."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units, comparable, name_of, numbers_of, read_labels, texts_of

MOST_HELD = 1 << 26
"""Bytes of what is kept of units up to which they stay in memory; more are in a temporary file, without a name."""

_DIGEST = np.dtype("S16")
_LEADING_BYTES = 2


class UnitsOfRows:
    """The units of some rows that are side by side, of which the first and the last may go on beyond them.

    Attributes
    ----------
    first : int
        Number of the first unit of which all rows are among these.
    sizes : ndarray of int64
        Rows of that unit and of all others of which all rows are among these.
    head, tail : int
        Rows at the beginning, and at the end, of units that lie among these rows in part.
    ends : bool
        Whether the unit of the head ends among these rows, True without a head. If it does not, all rows are its.
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
    """Units, numbered in the order of the rows, each of which is one run of rows.

    Attributes
    ----------
    starts : ndarray of shape (n_units + 1,), int64
        Where the rows of each unit start; private.
    name : str
        Of the labels; public.
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
    """Return the runs of units whose labels are in memory, or refuse these if a unit lies in several.

    Only the first labels of runs are sorted: of labels of one type, memory holds a byte a row beside these.
    """
    labels = read_labels(groups, n_rows)
    if labels.dtype.kind == "O":
        labels, _ = numbers_of(labels)
    starts = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
    if len(np.unique(labels[starts])) < len(starts):
        refuse_apart()
    return UnitRuns(np.append(starts, n_rows), name_of(groups))


class RunReader:
    """Reads labels of rows, part by part, in one pass.

    Notes
    -----
    **Guarantees.** No unit lies in several runs of the rows whose labels were read, or `finish` refuses them.

    Proof. A run begins where the text of a label is not that of the row before. Of each run the hash of the text is
    kept, and equal texts have equal hashes, so that a unit in two runs is two equal hashes, of which `finish` finds
    every pair.

    Hashes are of 128 bits, by BLAKE2b under a key that is drawn for the pass and kept nowhere. Two of n labels have one
    hash with probability n**2 / 2**129 at most, 10**-21 for 10**9 units: rows would then be refused that need not be.
    """

    def __init__(self) -> None:
        self.hashes = RepeatedHashes()
        self._starts, self._n_rows = _Kept(np.dtype(np.int64)), 0
        self._last: str | None = None

    def add(self, labels: np.ndarray) -> None:
        """Add the labels of the next rows, of shape (m,) and always of one type; refuse gaps among them."""
        labels = comparable(labels)
        if not len(labels):
            return
        heads = np.concatenate([[0], np.flatnonzero(labels[1:] != labels[:-1]) + 1])
        texts = texts_of(labels[heads])
        goes_on = texts[0] == self._last
        self._last = texts[-1]
        self.hashes.add(texts[goes_on:])
        self._starts.add(self._n_rows + heads[goes_on:])
        self._n_rows += len(labels)

    def finish(self, name: str) -> UnitRuns:
        """Return the units of all rows, or refuse them if a unit lies in several runs."""
        if self.hashes.repeat():
            refuse_apart()
        self._starts.add(np.array([self._n_rows]))
        return UnitRuns(self._starts.whole(), name)


class RepeatedHashes:
    """Keyed hashes of labels, of which no two may be equal; see `RunReader`."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self._kept = _Kept(_DIGEST, np.sort)

    def add(self, texts: list[str]) -> None:
        """Add the hashes of texts."""
        self._kept.add(hashes_of(texts, self.key))

    def add_hashes(self, hashes: np.ndarray) -> None:
        """Add what `hashes_of` returned elsewhere, under the key of these."""
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


def refuse_apart() -> NoReturn:
    """Refuse labels of a unit whose rows are not side by side."""
    raise ValueError(
        "groups has a unit whose rows are not side by side, and rows that are not in memory are read in their order: "
        "sort them by the labels first."
    )
