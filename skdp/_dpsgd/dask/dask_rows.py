"""Rows of a Dask array or dataframe, as a fit sees rows that are not in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from skdp._checks.groups import CountedUnits, RepeatedHashes
from skdp._checks.numbers import format_names, values_of
from skdp._checks.rows import check_shape
from skdp._checks.sources import BlockRecipe, RowSource, TargetReading, reject_unknown_column
from skdp._dpsgd.dask import engine, partitions
from skdp._dpsgd.models.linear import Model

_HASHED_AT_A_TIME = 64  # partitions, of which each unit has 16 bytes


def source_of_rows(X: Any, columns: Sequence[str] | None, y: Any, sample_weight: Any, groups: Any = None) -> RowSource:
    """Return the rows of a Dask collection, with the labels and weights that belong to them.

    Parameters
    ----------
    X : dask array of shape (n, d), or dask dataframe
    columns : sequence of str or None
        Features of a dataframe.
    y, sample_weight, groups : str, dask array or series, array-like of shape (n,), or None
        A str names a column of a dataframe. Collections are split as X is.

    Raises
    ------
    ValueError
        In one line, before anything is computed.
    """
    if not engine.is_frame(X) and not isinstance(meta := getattr(X, "_meta", np.empty(0)), np.ndarray):
        raise ValueError(
            f"X must be a dask array of NumPy chunks, got chunks of type {type(meta).__name__}. Convert each chunk "
            "with map_blocks, and persist the array."
        )
    engine.check_graph("X", X)
    engine.check_engine("X", X)
    if engine.is_frame(X):
        return _rows_of_frame(X, columns, y, sample_weight, groups)
    if X.ndim != 2:
        check_shape(X.shape)
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X has {X.numblocks[1]} chunks of columns, but each row must lie in one chunk. Pass "
            "X.rechunk({1: -1}).persist()."
        )
    if columns is not None or any(isinstance(each, str) for each in (y, sample_weight, groups)):
        raise ValueError(
            "Columns of a dask array have no names. Pass `y`, `sample_weight` and `groups` as arrays, or pass a dask "
            "dataframe."
        )
    if X.dtype.kind not in "buif":
        raise ValueError(f"X must have a real numeric dtype, got {X.dtype}. Pass X.astype(float).")
    layout = partitions.Layout(None, [str(X.dtype)], X.shape[1])
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    return DaskRows(X, layout, dtype, y, sample_weight, groups)


def _rows_of_frame(X: Any, columns: Sequence[str] | None, y: Any, sample_weight: Any, groups: Any) -> RowSource:
    if X.ndim != 2:
        raise ValueError("X must be a table, got a dask series. Pass X.to_frame().")
    named = [name for name in (y, sample_weight, groups) if isinstance(name, str)]
    present = list(X.columns)
    wanted = [name for name in present if name not in named] if columns is None else list(columns)
    if repeated := sorted({str(name) for name in wanted if wanted.count(name) > 1}):
        raise ValueError(
            f"X has duplicate column names: {format_names(repeated)}. Rename them, so that each name is unique."
        )
    if unknown := [name for name in (*named, *wanted) if name not in present]:
        raise ValueError(
            f"X has no column {format_names(unknown)}. Correct the names in `columns`, `sample_weight` and `groups`."
        )
    if both := [name for name in named if name in wanted]:
        raise ValueError(
            f"`columns` must not contain {format_names(both)}, which is used as y, sample_weight or groups. Remove it."
        )
    types = X.dtypes[wanted]
    if odd := [name for name, dtype in types.items() if getattr(dtype, "kind", "O") not in "buif"]:
        raise ValueError(f"Columns {format_names(odd)} of X are not numeric. Cast them to numbers, or remove them.")
    # In this order, so that no more than these columns are read.
    whole, X = X, X[[*wanted, *dict.fromkeys(named)]]
    layout = partitions.Layout(
        wanted, [str(dtype) for dtype in types], len(wanted), _name(y), _name(sample_weight), _name(groups)
    )
    narrow = all(str(dtype) == "float32" for dtype in types)
    return DaskRows(
        X, layout, np.dtype(np.float32 if narrow else np.float64),
        None if layout.labels else y, None if layout.weights else sample_weight, None if layout.groups else groups,
        whole,
    )  # fmt: skip


class DaskRows(RowSource):
    """Rows of a Dask collection that passed `check_graph`, partition by partition."""

    binds_once = True

    def __init__(
        self, X: Any, layout: partitions.Layout, dtype: np.dtype[Any], labels: Any, weights: Any, groups: Any = None,
        whole: Any = None,
    ) -> None:  # fmt: skip
        self._X, self._layout, self._groups, self._whole = X, layout, groups, whole
        self._kept = [X, labels, weights, groups]  # workers forget what nobody holds, and partitions do not hold it
        self.dtype, self.n_features, self.names = dtype, layout.n_features, layout.features
        self._blocks = partitions_of(X)
        check_shape((1, self.n_features))
        self._labels, self._weights = self._side("y", labels), self._side("sample_weight", weights)
        self._beside: list[Any] = [None] * len(self._blocks)  # labels of units that are no column
        self._seen: list[Any] = [None] * len(self._blocks)
        sides = ("y", layout.labels, labels), ("sample_weight", layout.weights, weights)
        self._dtypes = {
            name: getattr(given, "dtype", None) if column is None else X.dtypes[column] for name, column, given in sides
        }

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """Number of rows, which is public; Dask counts them where it has to, of Parquet files by their metadata."""
        n = engine.on_engine("counting rows", lambda: len(self._X)) if engine.is_frame(self._X) else sum(self._sizes)
        check_shape((n, self.n_features))
        return int(n)

    @cached_property
    def _sizes(self) -> list[int]:
        """Rows of each partition."""
        if not engine.is_frame(self._X) and not any(np.isnan(self._X.chunks[0])):
            return [int(size) for size in self._X.chunks[0]]
        return list(engine.results("counting rows", [engine.task(len, block) for block in self._blocks]))

    def find_units(self) -> CountedUnits:
        """See `RowSource`. Labels are hashed where they lie, and no unit may be in two partitions.

        Within a partition its rows may lie anywhere. The fit rejects partitions with other labels than these.
        """
        column, hashes = self._layout.groups, RepeatedHashes()
        given = self._groups if column is None else self._X[column]
        if not hasattr(given, "__dask_graph__"):
            given = values_of("groups", given)
        self._layout = self._layout._replace(type_of_groups=str(given.dtype))
        sides, n_units = self._side("groups", given), 0
        # Workers send hashes of the labels, of some partitions at a time.
        for start in range(0, len(sides), _HASHED_AT_A_TIME):
            asked = [
                engine.task(partitions.hash_units, hashes.key, str(given.dtype), side)
                for side in sides[start : start + _HASHED_AT_A_TIME]
            ]
            for number, found in enumerate(engine.results("reading the labels of groups", asked), start):
                if isinstance(found, partitions.Rejected):
                    raise ValueError(f"Partition {number} of the collection: {found.why}")
                hashes.add(found)
                n_units += len(found)
                self._seen[number] = partitions.SeenLabels(hashes.key, partitions.digest_of(found))
        # Equal hashes of two partitions are one unit in both.
        if hashes.repeat():
            raise ValueError(
                "`groups` has a group with rows in several partitions. Set the group identifier as the index of the "
                "dataframe, or repartition, so that each group lies in one partition."
            )
        if column is None:
            self._beside = sides
        self.n_units = n_units
        is_series = hasattr(self._groups, "iloc") or engine.is_frame(self._groups)  # a dask array has a name of its own
        return CountedUnits(n_units, column or str((is_series and self._groups.name) or ""))

    def like(self) -> Any:
        return self if self.names is None else self._X._meta[self.names]

    def check_targets(self) -> None:
        """See `RowSource`. What objects are is not known before they are read."""
        for name, dtype in self._dtypes.items():
            kinds, needed = ("buifO", "numbers") if name == "sample_weight" else ("buifOUT", "numbers or strings")
            if getattr(dtype, "kind", "O") not in kinds:
                raise ValueError(f"{name} must contain {needed}, got dtype {dtype}.")

    def read_column(self, parameter: str, column: str) -> np.ndarray:
        """See `RowSource`. Missing values are for what reads the labels to reject."""
        if self._whole is None:
            return super().read_column(parameter, column)
        reject_unknown_column(parameter, column, list(self._whole.columns))
        blocks = partitions_of(self._whole[column])
        return np.concatenate([values_of(parameter, each) for each in engine.results(f"reading {parameter}", blocks)])

    def bind(self, recipe: BlockRecipe, plan: Any) -> DistributedModel:
        """See `RowSource`. Rows are checked and bound on the workers, once for all steps."""
        return DistributedModel(partial(self._bind_all, recipe), self.n_features)

    def _bind_all(self, recipe: BlockRecipe) -> tuple[list[Any], list[int]]:
        """Bind all partitions where they lie; return them and their numbers of rows."""
        shared = engine.constant(recipe)
        bound = [
            engine.task(partitions.bind_partition, shared, self._layout, *parts)
            for parts in zip(self._blocks, self._labels, self._weights, self._beside, self._seen, strict=True)
        ]
        what = "reading the rows (after the budget was charged)"
        bound = list(engine.results(what, bound, persist=True))
        found = engine.results(what, [engine.task(partitions.size_of, each) for each in bound])
        for number, size in enumerate(found):
            if isinstance(size, partitions.Rejected):
                reject_partition(number, size)
        self._check_number(sum(found))
        return bound, list(found)

    def _check_number(self, n_rows: int) -> None:
        """Reject rows of which there are not as many as the charge and the plan say."""
        if n_rows != self.n_rows:
            raise ValueError(
                f"X has {n_rows} rows, but {self.n_rows} were planned. The budget was already charged for this fit. "
                "Pass a collection that does not change, or persist it."
            )

    def add_up(self, new_sum: Callable[..., Any], read_targets: TargetReading | None = None) -> Any:
        total = engine.despite_restarts(partial(self._total, new_sum, read_targets))
        if isinstance(total, partitions.Rejected):
            reject_partition(total.number, total)
        self._check_number(total.n_rows)
        return total

    def _total(self, new_sum: Callable[..., Any], read_targets: TargetReading | None) -> Any:
        """Return the sum over all rows, or why they are rejected."""
        parts = [
            engine.task(partitions.add_up_partition, new_sum, read_targets, self._layout, number, *given)
            for number, given in enumerate(
                zip(self._blocks, self._labels, self._weights, self._beside, self._seen, strict=True)
            )
        ]
        what = "reading the rows (after the budget was charged)"
        merge = partial(engine.task, partitions.merge_sums, new_sum)
        return partitions.merge_sums(new_sum, engine.results(what, engine.in_a_tree(merge, parts)))

    def map_blocks(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """See `RowSource`. One partition after the other comes here, so that no estimator is sent anywhere."""
        found = []
        for block in self._blocks:
            (rows,) = engine.results("reading rows", [block])
            if len(rows):
                found.append(function(rows if self.names is None else rows[self.names]))
        if not found:
            check_shape((0, self.n_features))
        return np.concatenate(found)

    def _side(self, name: str, column: Any) -> list[Any]:
        """Return labels or weights, partition by partition."""
        if column is None:
            return [None] * len(self._blocks)
        if hasattr(column, "__dask_graph__"):
            return self._collection_beside(name, column)
        values = values_of(name, column)
        if values.shape != (self.n_rows,):
            raise ValueError(f"{name} must have shape ({self.n_rows},), one entry per row of X, got {values.shape}.")
        return np.split(values, np.cumsum(self._sizes)[:-1])

    def _collection_beside(self, name: str, column: Any) -> list[Any]:
        engine.check_graph(name, column)
        engine.check_engine(name, column)
        if column.ndim != 1:
            raise ValueError(f"{name} must have one dimension with one entry per row, got {column.ndim} dimensions.")
        blocks = partitions_of(column)
        chunks: tuple[Any, ...] = () if engine.is_frame(column) else column.chunks
        known = bool(chunks) and not any(np.isnan(chunks[0]))
        if len(blocks) != len(self._blocks) or (
            known and not engine.is_frame(self._X) and list(chunks[0]) != self._sizes
        ):
            raise ValueError(
                f"{name} must have the same partitions as X ({len(self._blocks)} partitions with the same numbers of "
                f"rows), got {len(blocks)} partitions. Rechunk or repartition it like X, and persist it."
            )
        return blocks


def _name(given: Any) -> str | None:
    """Return what names a column, None for all else."""
    return given if isinstance(given, str) else None


def partitions_of(collection: Any) -> list[Any]:
    """Return the partitions of a collection whose columns lie in one chunk."""
    engine.on_engine("waiting for rows that are being persisted", lambda: engine.settle(collection))
    found = collection.to_delayed()
    return list(found.ravel()) if isinstance(found, np.ndarray) else list(found)


def reject_partition(number: int, rejected: partitions.Rejected) -> None:
    """Raise the error of a partition."""
    raise ValueError(
        f"Partition {number} of the collection: {rejected.why} The budget was already charged for this fit."
    )


# --- the model of rows on many machines, as the loop of noisy gradient descent sees it ---

_SENT_WITH_A_TASK = 1 << 16  # bytes of parameters; more are sent once, at the cost of a task that others wait for
_STANDS = "(after the budget was charged)"


_FEW_VALUES = 1 << 18  # numbers that lie together, at least, if there are as many: they take a millisecond


class DistributedModel(Model):
    """Bound partitions on the workers of Dask, of which each step takes the sum of clipped gradients.

    Parameters
    ----------
    bind : callable
        Returns the results of `bind_partition`, kept on the workers, and the number of rows of each. It is called
        again if the engine was restarted, and then has to return the same rows.
    n_features : int

    Notes
    -----
    **Guarantees.** A row adds to the sum what it adds to that of its partition, at most C. Workers are sent public
    constants, the parameters of the step, which were released, and the lots of their partitions, and no other key than
    theirs. A part that a lost worker has to compute again is of the same lot, and the sum of a step is released once.

    Sums of partitions are float64, and round as sums of segments on one machine do.
    """

    def __init__(self, bind: Callable[[], tuple[list[Any], list[int]]], n_features: int) -> None:
        self._bind_all = bind
        bound, self._sizes = engine.despite_restarts(bind)
        self.n_rows = sum(self._sizes)
        self._together = neighbors(self._sizes, max(1, _FEW_VALUES // n_features))
        self._keep(bound)

    def _keep(self, bound: list[Any]) -> None:
        """Keep partitions on their workers, those of few rows with their neighbors: a task takes milliseconds."""
        parts = [engine.task(partitions.gather_partitions, *bound[each.start : each.stop]) for each in self._together]
        parts = list(engine.results(f"gathering partitions {_STANDS}", parts, persist=True))
        self._partitions, self._engine = parts, engine.Asking(parts)

    def _restore(self) -> None:
        """Read and bind the rows again, after the engine was restarted and forgot them."""
        bound, sizes = self._bind_all()
        if sizes != self._sizes:
            raise ValueError(
                "The partitions of X changed while the Dask engine was restarted. The budget was already charged for "
                "this fit. Pass a collection that does not change."
            )
        self._keep(bound)

    def draw_lot(self, sampling: Any, stream: Any, step: int) -> list[partitions.PartitionLot]:
        """See `Model`: the lot of each partition, which is drawn where its rows lie, but for an audit."""
        lots = partitions.lots_of_step(sampling, stream, step, len(self._sizes))
        return (
            lots if stream.track is None else partitions.recorded_lots(lots, self._numbers_of_records(), stream.track)
        )

    def _numbers_of_records(self) -> list[int]:
        """Numbers of rows, or of units, of the partitions, for an audit."""
        found = self._engine.results(
            "counting rows", [engine.task(partitions.count_records, part) for part in self._partitions]
        )
        return [number for part in found for number in part]

    def clipped_gradient_sum(
        self, theta: np.ndarray, rows: list[partitions.PartitionLot], max_norm: float
    ) -> np.ndarray:
        return engine.despite_restarts(lambda: self._sum(theta, rows, max_norm), self._restore)

    def _sum(self, theta: np.ndarray, lots: list[partitions.PartitionLot], max_norm: float) -> np.ndarray:
        shared = theta if theta.nbytes <= _SENT_WITH_A_TASK else engine.constant(theta)
        sums = [
            engine.task(partitions.sum_partitions, part, shared, lots[each.start : each.stop], max_norm)
            for part, each in zip(self._partitions, self._together, strict=True)
        ]
        parts = engine.in_a_tree(partial(engine.task, partitions.add_sums), sums)
        total = partitions.add_sums(self._engine.results(f"computing a step {_STANDS}", parts))
        return np.zeros(len(theta)) if total is None else np.asarray(total)

    def close(self) -> None:
        self._partitions, self._engine = [], engine.Asking([])  # the workers may forget them


def neighbors(sizes: Sequence[int], most: int) -> list[range]:
    """Return ranges of partitions in order, each of one partition, or of several with at most this many rows."""
    starts, n_rows = [0], 0
    for number, size in enumerate(sizes):
        n_rows += size
        if n_rows > most and number > starts[-1]:
            starts.append(number)
            n_rows = size
    return [range(start, stop) for start, stop in pairwise([*starts, len(sizes)])]
