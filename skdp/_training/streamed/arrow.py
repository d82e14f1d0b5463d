"""Rows of Parquet datasets and of Arrow tables, with columns chosen by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from skdp._checks.cells import format_names
from skdp._checks.rows import column_names
from skdp._checks.sources import after_the_charge, refuse_unknown_column
from skdp._checks.unit_runs import RunReader, runs_of
from skdp._checks.units import CountedUnits
from skdp._training.streamed.blocks import BlockSource
from skdp._training.streamed.files import files_of
from skdp._training.streamed.memory_map import one_per_row
from skdp._training.streamed.named_columns import (
    dtype_of_column,
    is_label,
    is_number,
    numbers_of_column,
    subgroups_of_column,
    targets_of_column,
    unit_labels_of_column,
    write_columns,
)
from skdp._training.streamed.parquet import ParquetRows, refuse_repeated
from skdp._training.streamed.prefetch import IN_FLIGHT
from skdp._training.streamed.streamed_model import Order, RowBlock

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

    def batches(self, columns: list[str], n_rows: int, *, paid: bool = True) -> Iterator[Any]:
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
        column_names(schema.empty_table())  # refuses names that repeat
        self._columns = schema
        others = {"y": y, "sample_weight": sample_weight, "groups": groups}
        self.names = _chosen_names(schema.names, columns, others) if self.n_rows else []
        self.n_features = len(self.names)
        if not self.names:
            raise ValueError("X has no rows or no columns: give a table of at least one of each.")
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
            for batch in part.batches([self._groups], _LABELS, paid=False):
                runs.add(unit_labels_of_column(batch.column(self._groups)))
        return self._keep_runs(runs.finish(self._groups))

    def check_targets(self) -> None:
        for name, kind in self._target_types.items():
            if not (is_number(kind) if name == "sample_weight" else is_label(kind)):
                needed = "numbers are" if name == "sample_weight" else "numbers or strings are"
                raise ValueError(f"{name} is a column of {kind}, where {needed} needed: name another one.")

    def read_column(self, parameter: str, column: str) -> np.ndarray:
        refuse_unknown_column(parameter, column, self._columns.names)
        _check_same_types(self._parts, [column], self._columns)
        others: dict[str, Callable[[Any], np.ndarray]] = {"groups": unit_labels_of_column, "by": subgroups_of_column}
        read = others.get(parameter, partial(targets_of_column, name=parameter))
        batches = (batch for part in self._parts for batch in part.batches([column], _LABELS, paid=False))
        return np.concatenate([read(batch.column(column)) for batch in batches])

    def map_blocks(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """See `RowSource`. Gaps are NaN, which the function refuses, or not."""
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
        for batch in self._batches(size):
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

    def _batches(self, n_rows: int) -> Iterator[Any]:
        for part in self._parts:
            yield from part.batches(self._read, n_rows)

    def _write(self, batch: Any, table: NDArray[np.floating], start: int) -> None:
        where = f"rows {start} to {start + len(table) - 1} of X"
        numbers = partial(numbers_of_column, gaps=self._keeps_gaps)
        columns = [after_the_charge(where, numbers, batch.column(name), name) for name in self.names or ()]
        with np.errstate(all="ignore"):  # a number too large becomes infinite, and is refused as that
            write_columns(columns, table)

    def _block(self, start: int, table: NDArray[np.floating], labels: list[Any], weights: list[Any]) -> RowBlock:
        part = slice(start, start + len(table))
        return RowBlock(
            start,
            table,
            np.concatenate(labels) if self._label else _part(self._labels, part),
            np.concatenate(weights) if self._weight else _part(self._weights, part),
        )


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
        raise TypeError(f"X is a {type(X).__name__} and no dataset of Parquet files: give one, or a pyarrow Table.")
    # Refused by pyarrow for a dataset with a filter, whose number of rows would have to be read.
    parts = [ParquetRows(fragment) for fragment in X.get_fragments()]
    refuse_repeated(parts)
    return parts, parts[0].schema if by_path and parts else X.schema


def _chosen_names(names: list[str], columns: Sequence[str] | None, others: dict[str, Any]) -> list[str]:
    """Return the names of the features, or refuse what names no column; `others` may name columns that are none."""
    named = {parameter: name for parameter, name in others.items() if isinstance(name, str)}
    chosen = [name for name in names if name not in named.values()] if columns is None else list(columns)
    for parameter, name in [*named.items(), *(("columns", name) for name in chosen)]:
        refuse_unknown_column(parameter, name, names)
    for parameter, name in named.items():
        if name in chosen:
            raise ValueError(f"columns has {name!r}, which is {parameter}: leave it out.")
    if len(set(chosen)) < len(chosen):
        raise ValueError("columns names a column twice: name each once.")
    return chosen


def _check_same_types(parts: list[Any], names: list[str], schema: pa.Schema) -> None:
    """Refuse files whose columns are not those of the dataset, by default those of the first file."""
    for number, part in enumerate(parts):
        for name in names:
            kind = schema.field(name).type
            if name not in part.schema.names or part.schema.field(name).type != kind:
                raise ValueError(
                    f"file {number} of X has no column {name!r} of the type {kind} of the dataset, and none is cast: "
                    "write all files with one schema."
                )


def _dtype_of(schema: Any) -> np.dtype[Any]:
    """Return the dtype of rows of these columns, float32 or float64, as of a table in memory; refuse other columns."""
    dtypes = []
    for field in schema:
        dtype = dtype_of_column(field.type)
        if dtype is None:
            raise ValueError(
                f"X has {field.type} in column {format_names([field.name])}, and numbers are needed: name other "
                "columns by skdp.datasets.TableRows(source, columns=[...]), or encode it first by a public list."
            )
        dtypes.append(dtype)
    return np.dtype(np.float32 if np.result_type(*dtypes) == np.float32 else np.float64)


def _targets(batch: Any, column: str | None, name: str) -> Any:
    return after_the_charge("X", targets_of_column, batch.column(column), name) if column else None


def _part(values: Any, part: slice) -> Any:
    return None if values is None else np.asarray(values[part])
