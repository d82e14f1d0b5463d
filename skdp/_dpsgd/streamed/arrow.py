"""Rows of Parquet datasets and of Arrow tables, with columns chosen by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from copy import copy
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from skdp._checks.groups import CountedUnits, RunReader, reject_gaps, runs_of
from skdp._checks.numbers import format_names, reject_not_finite
from skdp._checks.rows import column_names
from skdp._checks.sources import after_the_charge, reject_unknown_column
from skdp._dpsgd.streamed import blocks
from skdp._dpsgd.streamed.blocks import IN_FLIGHT, BlockSource, FileState, files_of, one_per_row
from skdp._dpsgd.streamed.streamed_model import Order, RowBlock

_WHOLE_CHUNKS = 1 << 28  # bytes of a group of rows up to which its columns are read whole
_WHOLE_GROUPS = 1 << 24  # numbers of a group of rows up to which it is decoded at once
_CHARGED, _UNCHARGED = "The budget was already charged for this fit", "No budget was charged"
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
            raise ValueError(f"{fragment.path!r} must be a Parquet file, but it has another format or is incomplete.")
        file, groups = found
        self._groups = [group.id for group in fragment.row_groups]
        self._counts = [group.num_rows for group in groups]
        self._is_large = any(group.total_byte_size > _WHOLE_CHUNKS for group in groups)
        self.n_rows, self.schema = sum(self._counts), file.schema_arrow

    def batches(self, columns: list[str], n_rows: int, *, charged: bool = True) -> Iterator[Any]:
        """Iterate over record batches of at most `n_rows` rows, with `columns` among theirs, in the file's order.

        `charged` says whether the fit was charged, for errors.
        """
        self._is_charged, n_read = charged, 0
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
                    self._reject("is damaged or cut off")
                n_read += batch.num_rows
                yield batch
        if n_read != self.n_rows or self._present_state() != self._state:
            self._reject("changed")

    def _open(self, columns: list[str], n_rows: int) -> Generator[Any, None, None]:
        found = self._read_metadata(_BUFFER if self._is_large else 0) if self._present_state() == self._state else None
        if found is None:
            self._reject("changed or was cut off")
        file, groups = found
        if [group.num_rows for group in groups] != self._counts or file.schema_arrow != self.schema:
            self._reject("changed")
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
            return blocks.state_of(self._local_path)
        try:
            found = self._fragment.filesystem.get_file_info(self._fragment.path)
        except OSError:
            return None
        return (found.size, found.mtime_ns) if found.is_file else None

    def _reject(self, what: str) -> NoReturn:
        raise ValueError(
            f"The file {self._fragment.path!r} {what} during the fit. {_CHARGED if self._is_charged else _UNCHARGED}. "
            "Fit again with a complete file that is not being written."
        )


def _by_groups(file: Any, groups: list[int], columns: list[str], n_rows: int) -> Generator[Any, None, None]:
    """Iterate over batches of row groups, each of which is decoded as a whole while the one before it is used."""
    with closing(blocks.read_ahead(file.read_row_group(group, columns=columns) for group in groups)) as tables:
        for table in tables:
            yield from table.to_batches(n_rows)


def _local_path_of(fragment: Any) -> str | None:
    """Return the path of the file of a fragment on this machine; None if it is elsewhere."""
    system, path = fragment.filesystem, fragment.path
    while isinstance(system, fs.SubTreeFileSystem):
        system, path = system.base_fs, os.path.join(system.base_path, path)
    return path if isinstance(system, fs.LocalFileSystem) else None


def reject_repeated(parts: list[ParquetRows]) -> None:
    """Reject rows that are named several times: one person would count as many."""
    seen: set[tuple[Any, int]] = set()
    for part in parts:
        if seen & part.row_groups:
            raise ValueError(
                f"The file {part.path!r} is included more than once, by name or by a link, so its rows would count "
                "several times. Include each file once."
            )
        seen |= part.row_groups


_TILE = 4096  # rows of which a C-ordered table's part stays in cache while its columns are written


def dtype_of_column(kind: pa.DataType) -> np.dtype[Any] | None:
    """Return the dtype of the numbers in columns of a type, None if they hold none."""
    if pa.types.is_dictionary(kind):
        return dtype_of_column(kind.value_type)
    if pa.types.is_decimal(kind):
        return np.dtype(np.float64)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    return None


def is_label(kind: pa.DataType) -> bool:
    """Whether columns of a type may hold labels or targets: numbers of NumPy's types, or strings."""
    if pa.types.is_dictionary(kind):
        return is_label(kind.value_type)
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_string or (dtype_of_column(kind) is not None and not pa.types.is_decimal(kind))


def targets_of_column(column: Any, name: str) -> np.ndarray:
    """Return the labels or weights in an Arrow array; missing values, which change the dtype, are rejected."""
    return _values_of(column, name, "", as_stored=True)


def labels_of_column(column: Any, name: str) -> np.ndarray:
    """Return group identifiers, or labels of subgroups with their missing values, rejected if they have nested cells.

    A gap changes no other label: truth values stay what they are beside it, and numbers have the same keys.
    """
    if pa.types.is_nested(column.type):
        raise ValueError(f"`{name}` must be a column of numbers, strings or dates, got a column of type {column.type}.")
    if name == "groups" and column.null_count:
        reject_gaps()
    return _values_of(column, name, "", as_stored=True, gaps=name == "by")


def _values_of(column: Any, name: str, where: str, *, as_stored: bool = False, gaps: bool = False) -> np.ndarray:
    """Return the values of an Arrow array. Decimals and missing booleans become numbers unless `as_stored`.

    Missing values are rejected, or become NaN with `gaps`.
    """
    values: np.ndarray | None = None
    has_gaps = False
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        has_gaps = column.null_count > 0 and not gaps
        if not has_gaps:
            if column.null_count and pa.types.is_boolean(column.type) and not as_stored:
                column = column.cast(pa.int8())  # of truths with missing values NumPy has no numbers
            if pa.types.is_decimal(column.type) and not as_stored:
                column = column.cast(pa.float64())
            values = column.to_numpy(zero_copy_only=False)
    except MemoryError:
        raise
    except Exception:
        pass  # its message may quote cells
    if has_gaps:
        reject_not_finite(name, nan=True, where=where)
    if values is None:
        raise ValueError(f"{name} cannot be read{where}: its text is not valid UTF-8, or its dictionary is damaged.")
    return values


_LABELS = 1 << 16  # labels of units that are looked at together


class _TableInMemory(NamedTuple):
    """An Arrow table, perhaps of a file that is mapped to memory."""

    table: Any

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def schema(self) -> Any:
        return self.table.schema

    def batches(self, columns: list[str], n_rows: int, *, charged: bool = True) -> Iterator[Any]:
        return iter(self.table.select(columns).to_batches(n_rows))


class ArrowRows(BlockSource):
    """Rows of parts, one after the other, each an Arrow table or a Parquet file.

    Parameters
    ----------
    parts : list of _TableInMemory or ParquetRows
    columns : sequence of str or None
        The features, in this order. None: all columns but those of `y`, `sample_weight` and `groups`.
    y, sample_weight, groups : str, array-like of shape (n_rows,) or None
        A string is the name of a column.
    schema : pyarrow.Schema
        Of the dataset or the table; its columns that no part has are ignored.
    """

    def __init__(
        self,
        parts: list[Any],
        columns: Sequence[str] | None,
        y: Any,
        sample_weight: Any,
        groups: Any,
        schema: pa.Schema,
    ) -> None:
        self._parts = parts
        self.n_rows = sum(part.n_rows for part in parts)
        schema = pa.schema([field for field in schema if parts and field.name in parts[0].schema.names])
        column_names(schema.empty_table())  # rejects names that repeat
        self._columns = schema
        others = {"y": y, "sample_weight": sample_weight, "groups": groups}
        self.names = _chosen_names(schema.names, columns, others) if self.n_rows else []
        self.n_features = len(self.names)
        if not self.names:
            raise ValueError("X must have at least one row and one column.")
        self._schema = pa.schema([schema.field(name) for name in self.names])
        self._label = y if isinstance(y, str) else None
        self._weight = sample_weight if isinstance(sample_weight, str) else None
        self._labels = None if self._label else one_per_row("y", y, self.n_rows)
        self._weights = None if self._weight else one_per_row("sample_weight", sample_weight, self.n_rows)
        self._groups = groups
        self._keeps_gaps = False
        self._read = list(dict.fromkeys([*self.names, *filter(None, (self._label, self._weight))]))
        _check_same_types(parts, [*self._read, *([groups] if isinstance(groups, str) else [])], schema)
        self.dtype = _dtype_of(self._schema)
        self._target_types = {
            name: schema.field(column).type
            for name, column in (("y", self._label), ("sample_weight", self._weight))
            if column
        }

    def find_units(self) -> CountedUnits:
        """See `RowSource`. A column is read in one pass, of which memory holds some rows."""
        if not isinstance(self._groups, str):
            return self._keep_runs(runs_of(self._groups, self.n_rows))
        runs = RunReader()
        for part in self._parts:
            for batch in part.batches([self._groups], _LABELS, charged=False):
                runs.add(labels_of_column(batch.column(self._groups), "groups"))
        return self._keep_runs(runs.finish(self._groups))

    def check_targets(self) -> None:
        for name, kind in self._target_types.items():
            if not (dtype_of_column(kind) is not None if name == "sample_weight" else is_label(kind)):
                needed = "numbers" if name == "sample_weight" else "numbers or strings"
                raise ValueError(f"`{name}` must be a column of {needed}, got a column of type {kind}.")

    def read_column(self, parameter: str, column: str) -> np.ndarray:
        reject_unknown_column(parameter, column, self._columns.names)
        _check_same_types(self._parts, [column], self._columns)
        read = labels_of_column if parameter in ("groups", "by") else targets_of_column
        batches = (batch for part in self._parts for batch in part.batches([column], _LABELS, charged=False))
        return np.concatenate([read(batch.column(column), parameter) for batch in batches])

    def map_blocks(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """See `RowSource`. Missing values are NaN, which the function rejects, or not."""
        found = copy(self)
        found._keeps_gaps = True
        return super(ArrowRows, found).map_blocks(function)

    def of_features(self) -> ArrowRows:
        found = copy(self)
        found._label = found._weight = found._labels = found._weights = None
        found._read = list(self.names or ())
        return found

    def like(self) -> Any:
        return self._schema.empty_table()

    def blocks(self, order: Order = "C") -> Iterator[RowBlock]:
        """See `BlockSource`. Batches of any size are put together into blocks, so that files and groups do not show."""
        size = min(self.block_rows, self.n_rows)
        tables = [np.empty((size, self.n_features), self.dtype, order=order) for _ in range(IN_FLIGHT)]
        start = n_filled = turn = 0
        labels: list[Any] = []
        weights: list[Any] = []
        for batch in (each for part in self._parts for each in part.batches(self._read, size)):
            used = 0
            while used < batch.num_rows:
                part = batch.slice(used, size - n_filled)
                self._write(part, tables[turn][n_filled : n_filled + part.num_rows], start + n_filled)
                labels.append(_targets(part, self._label, "y"))
                weights.append(_targets(part, self._weight, "sample_weight"))
                used, n_filled = used + part.num_rows, n_filled + part.num_rows
                if n_filled == size:
                    yield self._block(start, tables[turn], labels, weights)
                    start, n_filled, turn = start + size, 0, (turn + 1) % IN_FLIGHT
                    labels, weights = [], []
        if n_filled:
            yield self._block(start, tables[turn][:n_filled], labels, weights)

    def _write(self, batch: Any, table: np.ndarray, start: int) -> None:
        where = f"Rows {start} to {start + len(table) - 1} of X"
        numbers = partial(_values_of, gaps=self._keeps_gaps)
        columns = [
            after_the_charge(where, numbers, batch.column(name), "X", f" in column {format_names([name])}")
            for name in self.names or ()
        ]
        with np.errstate(all="ignore"):  # a number too large becomes infinite, and is rejected as that
            tile = _TILE if table.strides[1] == table.itemsize else max(1, len(table))
            for first in range(0, len(table), tile):
                part = table[first : first + tile]
                for j, values in enumerate(columns):
                    part[:, j] = values[first : first + tile]

    def _block(self, start: int, table: np.ndarray, labels: Any, weights: Any) -> RowBlock:
        part = slice(start, start + len(table))
        labels = np.concatenate(labels) if self._label else blocks.part_of(self._labels, part)
        weights = np.concatenate(weights) if self._weight else blocks.part_of(self._weights, part)
        return RowBlock(start, table, labels, weights)


def source_of_rows(X: Any, columns: Sequence[str] | None, y: Any, sample_weight: Any, groups: Any = None) -> ArrowRows:
    """Return the source of a path, a dataset or a table; see `skdp._checks.sources`."""
    parts, schema = _parts_of(X)
    return ArrowRows(parts, columns, y, sample_weight, groups, schema)


def _parts_of(X: Any) -> tuple[list[Any], pa.Schema]:
    if isinstance(X, pa.Table):
        return [_TableInMemory(X)], X.schema
    by_path = isinstance(X, str | os.PathLike | list | tuple)
    if by_path:  # with a schema that is given, pyarrow opens no file, whose faults it would quote
        X = ds.dataset(files_of(X), format="parquet", schema=pa.schema([]))
    if not isinstance(X, ds.FileSystemDataset) or not isinstance(X.format, ds.ParquetFileFormat):
        raise TypeError(f"X must be a dataset of Parquet files or a pyarrow Table, got {type(X).__name__}.")
    # Rejected by pyarrow for a dataset with a filter, whose number of rows would have to be read.
    parts = [ParquetRows(fragment) for fragment in X.get_fragments()]
    reject_repeated(parts)
    return parts, parts[0].schema if by_path and parts else X.schema


def _chosen_names(names: list[str], columns: Sequence[str] | None, others: dict[str, Any]) -> list[str]:
    """Return the names of the features, or reject what names no column; `others` may name columns that are none."""
    named = {parameter: name for parameter, name in others.items() if isinstance(name, str)}
    chosen = [name for name in names if name not in named.values()] if columns is None else list(columns)
    for parameter, name in [*named.items(), *(("columns", name) for name in chosen)]:
        reject_unknown_column(parameter, name, names)
    for parameter, name in named.items():
        if name in chosen:
            raise ValueError(f"`columns` must not contain {name!r}, which is used as `{parameter}`. Remove it.")
    if len(set(chosen)) < len(chosen):
        raise ValueError("`columns` must not contain duplicates. Pass each name once.")
    return chosen


def _check_same_types(parts: list[Any], names: list[str], schema: pa.Schema) -> None:
    """Reject files whose columns are not those of the dataset, by default those of the first file."""
    for number, part in enumerate(parts):
        for name in names:
            kind = schema.field(name).type
            if name not in part.schema.names or part.schema.field(name).type != kind:
                raise ValueError(
                    f"File {number} of X has no column {name!r} of type {kind}. Write all files with the same schema."
                )


def _dtype_of(schema: Any) -> np.dtype[Any]:
    """Return the dtype of rows of these columns, float32 or float64, as of a table in memory; reject other columns."""
    dtypes = []
    for field in schema:
        dtype = dtype_of_column(field.type)
        if dtype is None:
            raise ValueError(
                f"X must have numeric columns, got type {field.type} in column {format_names([field.name])}. Select "
                "other columns with skdp.datasets.TableRows(source, columns=[...]), or encode the column first with "
                "a public list."
            )
        dtypes.append(dtype)
    return np.dtype(np.float32 if np.result_type(*dtypes) == np.float32 else np.float64)


def _targets(batch: Any, column: str | None, name: str) -> Any:
    return after_the_charge("X", targets_of_column, batch.column(column), name) if column else None
