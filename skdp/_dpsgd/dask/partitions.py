"""What a worker does with the rows of one partition. Its functions never raise what could quote a cell.

The log of a worker shows the errors of its tasks, and Dask sends them around: what is rejected is therefore a result
like any other, in one line without a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.groups import Units, hashes_of, read_labels, read_units, texts_of
from skdp._checks.rows import read_cells
from skdp._checks.sources import BlockRecipe, TargetReading
from skdp._dpsgd.models.linear import UnitLayout
from skdp.mechanisms.sampling import FullBatch, Sampling
from skdp.mechanisms.streams import SecretStream


@dataclass(frozen=True)
class PartitionLot:
    """Lot of one partition in one step, of which a worker gets no more than this.

    Parameters
    ----------
    sampling : PoissonSampling or FullBatch
        Public.
    key : bytes
        Key of the stream that draws this lot and nothing else; empty for the full batch. Whoever knows it knows who is
        in the lot, and nothing of other lots or of the noise.
    recorded : ndarray of int64 or None, default=None
        The numbers of the rows, where an audit recorded the lot.
    """

    sampling: Sampling
    key: bytes = field(repr=False)
    recorded: NDArray[np.int64] | None = field(default=None, repr=False, compare=False)

    def rows(self, n_rows: int) -> NDArray[np.int64] | None:
        """Return the numbers of the rows of the lot, among those of its partition; None for all of them.

        The same lot gives the same rows, however often it is asked: a step that is computed again is the same step.
        """
        if self.recorded is not None:
            return self.recorded
        return self.sampling.rows(n_rows, SecretStream(self.key)) if self.key else None


def lots_of_step(sampling: Sampling, stream: SecretStream, step: int, n_partitions: int) -> list[PartitionLot]:
    """Return the lots of all partitions in a step; nothing is drawn from `stream`, of which each lot has a child.

    Notes
    -----
    **Guarantees.** Every row is in the lot of a step with probability `sampling.rate`, independently of all other rows
    and steps. Who knows the key of a lot learns from it neither another lot nor the noise.

    Proof. Keys of (step, partition) are those of independent streams, and within a partition the sampler is the one
    of the accounting. So the union of the lots of all partitions is the Poisson sample of one table. A key is
    HMAC-SHA-256 of its purpose under a key that is not sent, and no other key is derived from it.
    """
    if isinstance(sampling, FullBatch):
        return [PartitionLot(sampling, b"")] * n_partitions
    of_step = stream.spawn("step", step)
    return [PartitionLot(sampling, of_step.subkey("partition", number)) for number in range(n_partitions)]


def recorded_lots(lots: list[PartitionLot], sizes: list[int], track: Any) -> list[PartitionLot]:
    """Return the lots of a step as an audit hears them: drawn here, as one lot of the rows of all partitions.

    `sizes` are the numbers of rows, or of units, of the partitions. Rows that a table has more than another one of the
    audit are those of its last partitions.
    """
    if not lots[0].key:  # all rows
        return lots
    starts = np.cumsum([0, *sizes])
    drawn = [lot.rows(size) for lot, size in zip(lots, sizes, strict=True)]
    whole = np.concatenate([start + rows for start, rows in zip(starts, drawn, strict=False) if rows is not None])
    found = track.rows(lots[0].sampling.rate, int(starts[-1]), whole)
    ends = np.searchsorted(found, starts)
    return [
        replace(lot, recorded=found[first:last] - start)
        for lot, first, last, start in zip(lots, ends[:-1], ends[1:], starts, strict=False)
    ]


_OTHER_LABELS = "The groups changed since they were first read. Pass a collection that does not change."


class Rejected(NamedTuple):
    """Why a partition was rejected, and its number."""

    why: str
    number: int = 0


class Layout(NamedTuple):
    """Public schema of a partition: features, and the columns that hold labels and weights, if these are columns.

    `features` is None for arrays; `types` are those that all partitions should have, and `type_of_groups` that of the
    labels of units.
    """

    features: list[Any] | None
    types: list[str]
    n_features: int
    labels: str | None = None
    weights: str | None = None
    groups: str | None = None
    type_of_groups: str = ""

    def read(
        self, block: Any, labels: Any, weights: Any, groups: Any, seen: SeenLabels | None
    ) -> tuple[Any, Any, Any, Units | None]:
        """Return features, labels, weights and units of a partition, None without any, or reject what does not fit."""
        rows = block if self.features is None else block[self.features]
        labels = labels if self.labels is None else block[self.labels]
        weights = weights if self.weights is None else block[self.weights]
        groups = groups if self.groups is None else block[self.groups]
        if len(rows.shape) != 2 or rows.shape[1] != self.n_features:
            raise ValueError(f"The partition has shape {rows.shape}, but the collection has {self.n_features} columns.")
        if self.types != ([str(rows.dtype)] if self.features is None else [str(dtype) for dtype in rows.dtypes]):
            raise ValueError("The types differ from those of the collection. Cast the columns.")
        for name, column in (("y", labels), ("sample_weight", weights)):
            if column is not None and len(column) != len(rows):
                raise ValueError(
                    f"{name} has {len(column)} entries, but X has {len(rows)} rows. Partition both in the same way."
                )
        return rows, labels, weights, None if seen is None else seen.units(self, groups, len(rows))


class SeenLabels(NamedTuple):
    """What a worker finds the labels of a partition by that were looked at before the charge.

    Attributes
    ----------
    key : bytes
        Of their hashes (`skdp._checks.groups`).
    digest : bytes
        Of these hashes.
    """

    key: bytes
    digest: bytes

    def units(self, layout: Layout, groups: Any, n_rows: int) -> Units:
        """Return the units of a partition, or reject labels that are not those that were looked at."""
        found = _hashes(self.key, layout.type_of_groups, groups, n_rows)
        if isinstance(found, Rejected) or digest_of(found) != self.digest:
            raise ValueError(_OTHER_LABELS)
        return read_units(groups, n_rows)


def hash_units(key: bytes, kind: str, groups: Any) -> Any:
    """Return the hashes of the units of a partition, each once and sorted, or say why its labels are rejected."""
    return _or_rejected(_hashes, key, kind, groups, len(groups))


def _hashes(key: bytes, kind: str, groups: Any, n_rows: int) -> Any:
    if str(groups.dtype) != kind:
        return Rejected("The groups have a different type than those of the collection. Cast them.")
    labels = read_labels(groups, n_rows)
    if labels.dtype.kind in "mM" and kind == "category":  # each partition has its own unit of time, and other texts
        return Rejected("The groups are categories of dates, which are compared by their text. Cast them.")
    texts = texts_of(labels if labels.dtype.kind == "O" else np.unique(labels))
    return np.sort(hashes_of(list(dict.fromkeys(texts)), key))


def digest_of(hashes: np.ndarray) -> bytes:
    """Return a digest of sorted hashes."""
    return hashlib.blake2b(hashes.tobytes()).digest()


class BoundPartition:
    """Rows, labels and weights of one partition, bound to a loss once for all steps; None if it has no row.

    It is made on a worker and stays there. Where Dask moves it or writes it to disk, the rows are sent as they were
    read, and bound again when they arrive.
    """

    def __init__(self, recipe: BlockRecipe, rows: Any, labels: Any, weights: Any, units: Units | None = None) -> None:
        self._given = recipe, rows, labels, weights, units
        self.n_rows, self._layout = len(rows), None if units is None else UnitLayout(units)
        self.model: Any = recipe(rows, labels, weights, self._layout) if self.n_rows else None

    @property
    def n_records(self) -> int:
        """Number of rows, or of units where rows have such."""
        return self.n_rows if self._layout is None else self._layout.n_units

    def drawn(self, lot: PartitionLot) -> NDArray[np.int64] | None:
        """Return the rows of a lot, or its units where rows have such, by their numbers in the model; None for all."""
        rows = lot.rows(self.n_records)
        return rows if self._layout is None else self._layout.numbers_of(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return BoundPartition, self._given

    def __sizeof__(self) -> int:
        """Bytes, as Dask asks for them to decide what to move."""
        return int(getattr(self._given[1], "nbytes", 0)) + 64 * self.n_rows


def bind_partition(recipe: BlockRecipe, layout: Layout, *parts: Any) -> Any:
    """Bind the rows of a partition, or say why they are rejected; `parts` are those of `Layout.read`."""
    return _or_rejected(_bind, recipe, layout, parts)


def _bind(recipe: BlockRecipe, layout: Layout, parts: tuple[Any, ...]) -> Any:
    rows, labels, weights, units = layout.read(*parts)
    if layout.features is not None and len(rows):  # the array alone is kept, and not the frame beside it
        rows = np.ascontiguousarray(read_cells(rows), dtype=recipe.dtype)
        labels, weights = (column.copy() if hasattr(column, "iloc") else column for column in (labels, weights))
    return BoundPartition(recipe, rows, labels, weights, units)


def size_of(bound: Any) -> int | Rejected:
    """Return the number of rows of a bound partition, or why it was rejected."""
    return bound.n_rows if isinstance(bound, BoundPartition) else bound


def count_records(bound: list[BoundPartition]) -> list[int]:
    """Return the numbers of rows, or of units, of partitions."""
    return [each.n_records for each in bound]


def gather_partitions(*bound: BoundPartition) -> list[BoundPartition]:
    """Return neighboring partitions as one result, on one worker."""
    return list(bound)


def sum_partitions(
    bound: list[BoundPartition], theta: Any, lots: list[PartitionLot], max_norm: float
) -> NDArray[np.float64] | None:
    """Sum of the clipped gradients of the lots of partitions, of shape (p,); None if these have no rows."""
    filled = [(part, lot) for part, lot in zip(bound, lots, strict=True) if part.model is not None]
    return add_sums([part.model.clipped_gradient_sum(theta, part.drawn(lot), max_norm) for part, lot in filled])


def add_sums(parts: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64] | None:
    """Return the sum, in the given order, in a new array: Dask may need the parts again."""
    total = None
    for part in parts:
        if part is not None:
            total = part.copy() if total is None else np.add(total, part, out=total)
    return total


def add_up_partition(
    new_sum: Callable[[], Any], read_targets: TargetReading | None, layout: Layout, number: int, *parts: Any
) -> Any:
    """Return a new sum to which the rows of a partition are added, or say why they are rejected."""
    found = _or_rejected(_add_up, new_sum, read_targets, layout, parts)
    return found._replace(number=number) if isinstance(found, Rejected) else found


def _add_up(
    new_sum: Callable[[], Any], read_targets: TargetReading | None, layout: Layout, parts: tuple[Any, ...]
) -> Any:
    rows, labels, weights, units = layout.read(*parts)
    total = new_sum()
    if len(rows):
        targets = () if read_targets is None else read_targets(labels, weights, len(rows))
        total.add(read_cells(rows, layout.features), *targets, **({} if units is None else {"units": units}))
    return total


def merge_sums(new_sum: Callable[[], Any], parts: Sequence[Any]) -> Any:
    """Return a new sum of sums, in the given order, or the first error among them."""
    total = new_sum()
    for part in parts:
        if isinstance(part, Rejected):
            return part
        total.merge(part)
    return total


def _or_rejected(function: Callable[..., Any], *given: Any) -> Any:
    try:
        return function(*given)
    except (TypeError, ValueError) as error:  # of checks that quote no cell
        return Rejected(" ".join(str(error).split()))
    except Exception as error:  # of a stranger's array: its text is nobody's business
        return Rejected(f"The partition cannot be read ({type(error).__name__}).")
