"""Parquet files: what is public of them, read once, and batches of their rows, refused if a file is another by then."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from skdp._training.streamed.files import FileState, state_of
from skdp._training.streamed.prefetch import read_ahead

_WHOLE_CHUNKS = 1 << 28  # bytes of a group of rows up to which its columns are read whole
_WHOLE_GROUPS = 1 << 24  # numbers of a group of rows up to which it is decoded at once
_PAID, _UNPAID = "after the fit was charged, which stands", "which was not charged"
_BUFFER = 1 << 20  # bytes read at a time of larger ones


class ParquetRows:
    """The rows of one file of a dataset, or of some of its row groups.

    Parameters
    ----------
    fragment : pyarrow.dataset.ParquetFileFragment
        Its metadata are read, and kept: number of rows, types, and the state of the file.

    Attributes
    ----------
    n_rows : int
    schema : pyarrow.Schema
    """

    def __init__(self, fragment: Any) -> None:
        self._fragment = fragment
        self._local_path = _local_path_of(fragment)
        self._state = self._present_state()
        found = None if self._state is None else self._read_metadata()
        if found is None:
            raise ValueError(f"the file {fragment.path!r} is no Parquet file, or is cut off: give one that is whole.")
        file, groups = found
        self._groups = [group.id for group in fragment.row_groups]
        self._counts = [group.num_rows for group in groups]
        self._is_large = any(group.total_byte_size > _WHOLE_CHUNKS for group in groups)
        self.n_rows, self.schema = sum(self._counts), file.schema_arrow

    def batches(self, columns: list[str], n_rows: int, *, paid: bool = True) -> Iterator[Any]:
        """Iterate over record batches of at most `n_rows` rows, with `columns` among theirs, in the file's order.

        `paid` says whether the fit was charged, for refusals.
        """
        self._is_paid, n_read = paid, 0
        with closing(self._open(columns, n_rows)) as batches:
            while True:
                batch = None
                try:
                    batch = next(batches, None)
                except (pa.ArrowException, OSError, ValueError):
                    pass  # the message may quote what was read
                else:
                    if batch is None:
                        break
                if batch is None:
                    self._refuse("is damaged or cut off")
                n_read += batch.num_rows
                yield batch
        if n_read != self.n_rows or self._present_state() != self._state:
            self._refuse("changed")

    def _open(self, columns: list[str], n_rows: int) -> Generator[Any, None, None]:
        found = self._read_metadata(_BUFFER if self._is_large else 0) if self._present_state() == self._state else None
        if found is None:
            self._refuse("changed or was cut off")
        file, groups = found
        if [group.num_rows for group in groups] != self._counts or file.schema_arrow != self.schema:
            self._refuse("changed")
        if max(self._counts, default=0) * len(columns) <= _WHOLE_GROUPS and not self._is_large:
            return _by_groups(file, self._groups, columns, n_rows)
        batches: Generator[Any, None, None] = file.iter_batches(
            n_rows, row_groups=self._groups, columns=columns, use_threads=True
        )
        return batches

    def _read_metadata(self, buffer_size: int = 0) -> tuple[Any, list[Any]] | None:
        """Open the file, and return it with what it says of the row groups; None if it cannot be read."""
        try:
            file = pq.ParquetFile(self._fragment.open(), buffer_size=buffer_size, pre_buffer=False)
            return file, [file.metadata.row_group(group.id) for group in self._fragment.row_groups]
        except (pa.ArrowException, OSError, ValueError, IndexError):  # the message may quote what was read
            return None

    @property
    def row_groups(self) -> set[tuple[Any, int]]:
        """Row groups of which the rows are, each with its file: the same whatever name or link it was reached by."""
        state = self._state
        file = (state.number, state.device) if isinstance(state, FileState) and state.number else self._fragment.path
        return {(file, group) for group in self._groups}

    @property
    def path(self) -> str:
        """Name of the file."""
        return str(self._fragment.path)

    def _present_state(self) -> FileState | tuple[int, int] | None:
        """Return the state of the file, elsewhere its size and the time of its last change; None if it is gone."""
        if self._local_path is not None:
            return state_of(self._local_path)
        try:
            found = self._fragment.filesystem.get_file_info(self._fragment.path)
        except OSError:
            return None
        return (found.size, found.mtime_ns) if found.is_file else None

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(
            f"the file {self._fragment.path!r} {what} under the fit, {_PAID if self._is_paid else _UNPAID}: fit again "
            "to a file that is whole and that nobody writes."
        )


def _by_groups(file: Any, groups: list[int], columns: list[str], n_rows: int) -> Generator[Any, None, None]:
    """Iterate over batches of row groups, each of which is decoded as a whole while the one before it is used."""
    with closing(read_ahead(file.read_row_group(group, columns=columns) for group in groups)) as tables:
        for table in tables:
            yield from table.to_batches(n_rows)


def _local_path_of(fragment: Any) -> str | None:
    """Return the path of the file of a fragment on this machine; None if it is elsewhere."""
    system, path = fragment.filesystem, fragment.path
    while isinstance(system, fs.SubTreeFileSystem):
        system, path = system.base_fs, os.path.join(system.base_path, path)
    return path if isinstance(system, fs.LocalFileSystem) else None


def refuse_repeated(parts: list[ParquetRows]) -> None:
    """Refuse rows that are named several times: one person would count as many."""
    seen: set[tuple[Any, int]] = set()
    for part in parts:
        if seen & part.row_groups:
            raise ValueError(
                f"rows of the file {part.path!r} occur several times, by a link or as it is named twice, and would "
                "count as many: name each file once."
            )
        seen |= part.row_groups
