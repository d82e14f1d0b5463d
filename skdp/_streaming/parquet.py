"""Parquet files: what is public of them, read once, and batches of their rows, refused if a file is another by then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

_WHOLE_CHUNKS = 1 << 28  # bytes of a group of rows up to which its columns are read whole
_BUFFER = 1 << 20  # bytes read at a time of larger ones


class ParquetRows:
    """The rows of one file of a dataset, or of some of its row groups.

    Parameters
    ----------
    fragment : pyarrow.dataset.ParquetFileFragment
        Its metadata are read, and kept: number of rows, types, size and time of the last change of the file.

    Attributes
    ----------
    n_rows : int
    schema : pyarrow.Schema
    """

    def __init__(self, fragment: Any) -> None:
        self._fragment = fragment
        self._state = self._present_state()
        found = self._read_metadata()
        if found is None:
            raise ValueError(f"the file {fragment.path!r} is no Parquet file, or is cut off: give one that is whole.")
        file, groups = found
        self._groups = [group.id for group in fragment.row_groups]
        self._counts = [group.num_rows for group in groups]
        self._is_large = any(group.total_byte_size > _WHOLE_CHUNKS for group in groups)
        self.n_rows, self.schema = sum(self._counts), file.schema_arrow

    def batches(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        """Iterate over record batches of at most `n_rows` rows, with `columns` among theirs, in the file's order."""
        n_read = 0
        batches = self._open(columns, n_rows)
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

    def _open(self, columns: list[str], n_rows: int) -> Iterator[Any]:
        found = self._read_metadata(_BUFFER if self._is_large else 0) if self._present_state() == self._state else None
        if found is None:
            self._refuse("changed or was cut off")
        file, groups = found
        if [group.num_rows for group in groups] != self._counts or file.schema_arrow != self.schema:
            self._refuse("changed")
        batches: Iterator[Any] = file.iter_batches(n_rows, row_groups=self._groups, columns=columns, use_threads=True)
        return batches

    def _read_metadata(self, buffer_size: int = 0) -> tuple[Any, list[Any]] | None:
        """Open the file, and return it with what it says of the row groups; None if it cannot be read."""
        try:
            file = pq.ParquetFile(self._fragment.open(), buffer_size=buffer_size, pre_buffer=False)
            return file, [file.metadata.row_group(group.id) for group in self._fragment.row_groups]
        except (pa.ArrowException, OSError, ValueError, IndexError):  # the message may quote what was read
            return None

    def _present_state(self) -> tuple[int, int] | None:
        """Return size and time of the last change of the file; None if it is gone."""
        try:
            found = self._fragment.filesystem.get_file_info(self._fragment.path)
        except OSError:
            return None
        return (found.size, found.mtime_ns) if found.is_file else None

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(
            f"the file {self._fragment.path!r} {what} under the fit, after the fit was charged, which stands: fit "
            "again to a file that is whole and that nobody writes."
        )


__all__ = ["ParquetRows"]
