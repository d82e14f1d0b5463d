"""Rows of a Dask array or dataframe, as a fit sees rows that are not in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._distributed.engine import constant, in_a_tree, on_engine, results, settle, task
from skdp._distributed.graphs import check_graph, is_frame
from skdp._distributed.model import DistributedModel
from skdp._distributed.partitions import (
    Layout,
    Refused,
    add_up_partition,
    bind_partition,
    count_rows,
    merge_sums,
    size_of,
)
from skdp._fitting.cells import format_names
from skdp._fitting.rows import check_shape
from skdp._fitting.sources import BlockRecipe, RowSource, SumT


def source_of_rows(X: Any, columns: Sequence[str] | None, y: Any, sample_weight: Any) -> RowSource:
    """Return the rows of a Dask collection, with the labels and weights that belong to them.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask dataframe
    columns : sequence of str or None
        Features of a dataframe.
    y, sample_weight : str, dask array or series, array-like of shape (n,), or None
        A str names a column of a dataframe. Collections are split as X is.

    Raises
    ------
    ValueError
        In one line, before anything is computed.
    """
    check_graph("X", X)
    if is_frame(X):
        return _rows_of_frame(X, columns, y, sample_weight)
    if X.ndim != 2:
        check_shape(X.shape)
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X is cut into {X.numblocks[1]} chunks of columns, where a row has to lie in one: give "
            "X.rechunk({1: -1}).persist()."
        )
    if columns is not None or isinstance(y, str) or isinstance(sample_weight, str):
        raise ValueError("columns of a dask array have no names: give y and sample_weight as arrays, or a dataframe.")
    if X.dtype.kind not in "buif":
        raise ValueError(f"X has the dtype {X.dtype}, which is no real number: give X.astype(float).")
    layout = Layout(None, [str(X.dtype)], X.shape[1])
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    return DaskRows(X, layout, dtype, y, sample_weight)


def _rows_of_frame(X: Any, columns: Sequence[str] | None, y: Any, sample_weight: Any) -> RowSource:
    if X.ndim != 2:
        raise ValueError("X is a dask series where a table has two dimensions: give X.to_frame().")
    named = [name for name in (y, sample_weight) if isinstance(name, str)]
    present = list(X.columns)
    wanted = [name for name in present if name not in named] if columns is None else list(columns)
    if repeated := sorted({str(name) for name in wanted if wanted.count(name) > 1}):
        raise ValueError(f"columns {format_names(repeated)} occur several times: give each a name of its own.")
    if unknown := [name for name in (*named, *wanted) if name not in present]:
        raise ValueError(f"X has no column {format_names(unknown)}: name columns that it has.")
    types = X.dtypes[wanted]
    if odd := [name for name, dtype in types.items() if getattr(dtype, "kind", "O") not in "buif"]:
        raise ValueError(f"columns {format_names(odd)} of X are no numbers: cast them, or leave them out.")
    # In this order, so that no more than these columns are read.
    X = X[[*wanted, *dict.fromkeys(named)]]
    layout = Layout(
        wanted, [str(dtype) for dtype in types], len(wanted),
        y if isinstance(y, str) else None, sample_weight if isinstance(sample_weight, str) else None,
    )  # fmt: skip
    narrow = all(str(dtype) == "float32" for dtype in types)
    return DaskRows(
        X, layout, np.dtype(np.float32 if narrow else np.float64),
        None if layout.labels else y, None if layout.weights else sample_weight,
    )  # fmt: skip


class DaskRows(RowSource):
    """Rows of a Dask collection that passed `check_graph`, partition by partition."""

    binds_once = True

    def __init__(self, X: Any, layout: Layout, dtype: np.dtype[Any], labels: Any, weights: Any) -> None:
        self._X, self._layout = X, layout
        self._kept = [X, labels, weights]  # workers forget what nobody holds, and partitions do not hold it
        self.dtype, self.n_features, self.names = dtype, layout.n_features, layout.features
        self._blocks = partitions_of(X)
        check_shape((1, self.n_features))
        self._labels, self._weights = self._side("y", labels), self._side("sample_weight", weights)

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows, which is public; Dask counts them where it has to, of Parquet files by their metadata."""
        n = on_engine("counting rows", lambda: len(self._X)) if is_frame(self._X) else sum(self._sizes)
        check_shape((n, self.n_features))
        return int(n)

    @cached_property
    def _sizes(self) -> list[int]:
        """Rows of each partition."""
        if not is_frame(self._X) and not any(np.isnan(self._X.chunks[0])):
            return [int(size) for size in self._X.chunks[0]]
        return list(results("counting rows", [task(count_rows, block) for block in self._blocks]))

    def like(self) -> Any:
        """See `RowSource`."""
        return self if self.names is None else self._X._meta[self.names]

    def bind(self, recipe: BlockRecipe, plan: Any) -> DistributedModel:
        """See `RowSource`. Rows are checked and bound on the workers, once for all steps."""
        shared = constant(recipe)
        bound = [
            task(bind_partition, shared, self._layout, *parts)
            for parts in zip(self._blocks, self._labels, self._weights, strict=True)
        ]
        what = "reading the rows, after the fit was charged, which stands,"
        bound = list(results(what, bound, persist=True))
        found = results(what, [task(size_of, each) for each in bound])
        for number, size in enumerate(found):
            if isinstance(size, Refused):
                refuse_partition(number, size)
        if sum(found) != self.n_rows:
            raise ValueError(
                f"X has {sum(found)} rows where {self.n_rows} were planned with, after the fit was charged, which "
                "stands: give a collection that does not change, or persist it."
            )
        return DistributedModel(bound, sum(found))

    def add_up(self, new_sum: Callable[[], SumT]) -> SumT:
        """See `RowSource`."""
        parts = [task(add_up_partition, new_sum, self._layout, block) for block in self._blocks]
        add = partial(_merge, new_sum)
        (total,) = results("reading the rows, after the fit was charged, which stands,", [in_a_tree(add, parts)])
        if isinstance(total, Refused):
            refuse_partition(None, total)
        return total

    def map_blocks(self, function: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        """See `RowSource`. One partition after the other comes here, so that no estimator is sent anywhere."""
        found = []
        for block in self._blocks:
            (rows,) = results("reading rows", [block])
            if len(rows):
                found.append(function(rows))
        if not found:
            check_shape((0, self.n_features))
        return np.concatenate(found)

    def _side(self, name: str, column: Any) -> list[Any]:
        """Return labels or weights, partition by partition."""
        if column is None:
            return [None] * len(self._blocks)
        if hasattr(column, "__dask_graph__"):
            return self._collection_beside(name, column)
        values = np.asarray(column)
        if values.shape != (self.n_rows,):
            raise ValueError(
                f"{name} has shape {values.shape} where X has {self.n_rows} rows: give one entry a row, in one "
                "dimension."
            )
        return np.split(values, np.cumsum(self._sizes)[:-1])

    def _collection_beside(self, name: str, column: Any) -> list[Any]:
        check_graph(name, column)
        if column.ndim != 1:
            raise ValueError(f"{name} has {column.ndim} dimensions: give one entry a row, in one dimension.")
        blocks = partitions_of(column)
        chunks: tuple[Any, ...] = () if is_frame(column) else column.chunks
        known = bool(chunks) and not any(np.isnan(chunks[0]))
        if len(blocks) != len(self._blocks) or (known and not is_frame(self._X) and list(chunks[0]) != self._sizes):
            raise ValueError(
                f"{name} is split differently from X, in {len(blocks)} partitions where X has {len(self._blocks)}, or "
                "with other numbers of rows: rechunk or repartition it as X is, and persist it."
            )
        return blocks


def partitions_of(collection: Any) -> list[Any]:
    """Return the partitions of a collection whose columns lie in one chunk."""
    on_engine("waiting for rows that are being persisted", lambda: settle(collection))
    found = collection.to_delayed()
    return list(found.ravel()) if isinstance(found, np.ndarray) else list(found)


def refuse_partition(number: int | None, refused: Refused) -> None:
    """Raise the refusal of a partition."""
    where = "a partition" if number is None else f"partition {number}"
    raise ValueError(f"{where} of the collection, after the fit was charged, which stands: {refused.why}")


def _merge(new_sum: Callable[[], Any], parts: list[Any]) -> Any:
    return task(merge_sums, new_sum, parts)


__all__ = ["DaskRows", "source_of_rows"]
