"""What sources share whose rows one machine reads block by block."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp._checks.groups import CountedUnits, UnitRuns, runs_of
from skdp._checks.numbers import values_of
from skdp._checks.rows import check_shape, read_cells
from skdp._checks.sources import BlockRecipe, RowSource, TargetReading, after_the_charge
from skdp._dpsgd.streamed.streamed_model import Order, RowBlock, StreamedModel, describe
from skdp._kernels.threads import WorkerPool

Item = TypeVar("Item")

IN_FLIGHT = 2
"""Items that exist at a time, of which one is used and one is made: this many buffers circulate."""

_END: Any = object()


def read_ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """Yield items that a thread makes ahead, in their order; close the iterator to end the thread.

    An item may be written over as soon as the next is asked for. What the thread raises is raised here. The thread ends
    too when nobody holds the iterator any more, as after an interrupt before it could be closed.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1, "skdp-reader") as thread:
        coming = thread.submit(next, iterator, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, iterator, _END)
            yield item


class FileState(NamedTuple):
    """What changes with a file, by its entry in a folder.

    Whoever puts a file of equal size and time in the place of another gives it another number, and whoever writes to
    one and puts its time back changes the time of its entry.
    """

    size: int
    written: int
    changed: int
    number: int
    device: int


def state_of(path: Any) -> FileState | None:
    """Return the state of a regular file; None if it is gone, or another thing."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileState(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)


def files_of(X: Any) -> list[str]:
    """Return the files that a path names, or each of several, in the order in which they are read.

    Parameters
    ----------
    X : str, path-like, or list or tuple of these
        A file, a folder, or files. Of a folder all files are named, in all folders below it, but for names that begin
        with a dot or an underscore.

    Raises
    ------
    ValueError, OSError
        In one line: a URL, what is not there, and what is neither a file nor a folder, such as a pipe.
    """
    if not isinstance(X, list | tuple):
        path = os.path.abspath(_local(X))
        return sorted(_files_below(path, set())) if os.path.isdir(path) else [_regular(path)]
    if not X:
        raise ValueError("X must contain at least one path of a Parquet file, got an empty list.")
    return [_regular(_local(each)) for each in X]


def _local(path: Any) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"X must contain paths of Parquet files, got {type(path).__name__}.")
    name = os.fsdecode(path)
    if found := re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://", name):  # of two letters at least: one may be a drive
        raise ValueError(
            f"X must be a path on this machine, got a URL of {found[1]}. Pass pyarrow.dataset.dataset(url), or a "
            "local copy."
        )
    return name


def _regular(path: str) -> str:
    """Return the path of a regular file, or reject it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        _reject_missing(path, error)
    if stat.S_ISDIR(mode):
        raise ValueError(
            f"X must be a list of files or a single folder, got the folder {path!r} in a list. Pass its files, or the "
            "folder alone."
        )
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{path!r} must be a regular file, got a pipe, a socket or a device, which cannot be read twice."
        )
    return path


def _reject_missing(path: str, error: OSError) -> NoReturn:
    is_pattern = isinstance(error, FileNotFoundError) and re.search(r"[*?\[]", path)
    remedy = "Patterns are not expanded. Pass sorted(glob.glob(...))" if is_pattern else "Pass an existing file"
    raise type(error)(f"{path!r} cannot be read ({error.strerror}). {remedy}.") from None


def _files_below(folder: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    """Iterate over the files of a folder, and reject a folder that is linked twice, whose rows would count twice."""
    try:
        found = os.stat(folder)
        entries = sorted(os.listdir(folder))
    except OSError as error:
        _reject_missing(folder, error)
    if (found.st_dev, found.st_ino) in seen:
        raise ValueError(
            f"The folder {folder!r} is included twice through a link, so its rows would count twice. Pass a list of "
            "files."
        )
    seen.add((found.st_dev, found.st_ino))
    for name in entries:
        path = os.path.join(folder, name)
        if name.startswith((".", "_")):  # in folders that other programs keep for themselves
            continue
        if os.path.isdir(path):
            yield from _files_below(path, seen)
        else:
            yield _regular(path)


_BLOCK_VALUES = 1 << 21  # numbers of a block: 8 MB of float32
_MIN_ROWS, _MAX_ROWS = 256, 1 << 18


class BlockSource(RowSource):
    """Base class of rows that are read block by block.

    Subclasses say how the blocks are read, with numbers of rows and columns and with labels and weights as stored.
    """

    n_rows: int
    runs: UnitRuns | None = None  # units of the rows, once they are found

    def _keep_runs(self, runs: UnitRuns) -> CountedUnits:
        """Keep the units that were found, and return what is public of them."""
        self.runs, self.n_units = runs, runs.n_units
        return CountedUnits(runs.n_units, runs.name)

    @property
    def block_rows(self) -> int:
        """Rows of a block: from the number of columns alone, so that where blocks begin is no secret."""
        whole = max(_MIN_ROWS, min(_MAX_ROWS, _BLOCK_VALUES // self.n_features))
        return whole - whole % _MIN_ROWS

    def blocks(self, order: Order = "C") -> Iterator[RowBlock]:
        """Iterate over blocks of `block_rows` rows, in order; each is valid until the next but one is made.

        The rows are in memory order `order`, "C" or "F", where they are copied.
        """
        raise NotImplementedError

    def read(self, order: Order = "C") -> Generator[RowBlock, None, None]:
        return read_ahead(self.blocks(order))

    def gather(self, places: NDArray[np.int64]) -> RowBlock:
        rows = np.empty((len(places), self.n_features), self.dtype)
        labels: list[Any] = []
        weights: list[Any] = []
        with closing(self.read()) as blocks:
            for block in blocks:
                first, last = np.searchsorted(places, (block.start, block.stop))
                chosen = places[first:last] - block.start
                np.take(block.rows, chosen, axis=0, out=rows[first:last], mode="clip")
                labels.append(part_of(block.labels, chosen))
                weights.append(part_of(block.weights, chosen))
        return RowBlock(0, rows, _joined(labels), _joined(weights))

    def bind(self, recipe: BlockRecipe, plan: Any) -> StreamedModel:
        return StreamedModel(self, recipe, plan.n_steps)

    def add_up(self, new_sum: Callable[..., Any], read_targets: TargetReading | None = None) -> Any:
        with closing(WorkerPool()) as pool, closing(self.read()) as blocks:
            total, cut = new_sum(pool=pool), None
            for block in blocks:
                where, targets = describe(block), ()
                rows = after_the_charge(where, read_cells, block.rows, self.names)
                if read_targets is not None:
                    targets = after_the_charge(where, read_targets, block.labels, block.weights, len(rows))
                if self.runs is None:
                    total.add(rows, *targets)
                    continue
                units = self.runs.within(block.start, block.stop)
                parts = np.cumsum([0, units.head, units.n_rows, units.tail])
                head, whole, tail = ([_cut(each, *part) for each in (rows, *targets)] for part in pairwise(parts))
                if cut is not None:
                    cut.add(*head)
                    if units.ends:
                        cut.clip()
                        total.merge(cut)
                        cut = None
                if units.n_rows:
                    total.add(*whole, units=units.whole)
                if units.tail:
                    cut = new_sum(pool=pool)
                    cut.add(*tail)
        return total

    def map_blocks(self, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        with closing(self.read()) as blocks:
            return np.concatenate([function(block.rows) for block in blocks])


def _cut(values: Any, start: int, stop: int) -> Any:
    """Return a part of an array; one number for all rows as it is."""
    return values[start:stop] if isinstance(values, np.ndarray) and values.ndim else values


def _joined(parts: list[Any]) -> Any:
    """Return labels or weights of blocks as one array, None if they have none."""
    return None if parts[0] is None else np.concatenate(parts)


class MappedModel(StreamedModel):
    """Rows of a memory map, of which lots are drawn as in memory: those of a seed are the lots of the equal array.

    Notes
    -----
    **Guarantees.** As of `StreamedModel`, but that a lot is drawn when its step begins, by the sampler of rows in
    memory.
    """

    def draw_lot(self, sampling: Any, stream: Any, step: int) -> NDArray[np.int64] | None:
        """See `Model`: nothing is gained by lots that are drawn ahead, as a map gives rows at any place."""
        return self._draw(sampling, stream)

    def clipped_gradient_sum(
        self, theta: np.ndarray, lot: NDArray[np.int64] | None, max_norm: float
    ) -> NDArray[np.float64]:
        if lot is None or self._n_rows_of(lot) > self._n_gathered:
            return self._sum_of_pass(theta, lot, max_norm)
        if not len(lot):
            return np.zeros(theta.size)
        with self._bind(lot)[0] as model:
            total: NDArray[np.float64] = model.clipped_gradient_sum(theta, np.arange(len(lot)), max_norm)
        return total


class MappedRows(BlockSource):
    """A memory map of shape (n, d), read in slices; labels and weights are arrays, or memory maps too."""

    def __init__(self, X: np.memmap[Any, Any], labels: Any, weights: Any, groups: Any = None) -> None:
        check_shape(X.shape)
        if X.dtype.kind not in "buif":
            raise ValueError(f"X must be a numeric memory map such as float32, got {X.dtype.name}.")
        self.n_rows, self.n_features = X.shape
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self._X, self._labels, self._weights, self._groups = X, labels, weights, groups
        maps = [each.filename for each in (X, labels, weights) if isinstance(each, np.memmap)]
        self._files = {os.fspath(name): state_of(name) for name in maps if name is not None}

    def blocks(self, order: Order = "C") -> Iterator[RowBlock]:
        for start in range(0, self.n_rows, self.block_rows):
            self._check_files()
            part = slice(start, min(start + self.block_rows, self.n_rows))
            yield RowBlock(start, np.asarray(self._X[part]), part_of(self._labels, part), part_of(self._weights, part))

    def find_units(self) -> CountedUnits:
        """See `RowSource`. The labels are in memory."""
        return self._keep_runs(runs_of(self._groups, self.n_rows))

    def read(self, order: Order = "C") -> Generator[RowBlock, None, None]:
        """See `BlockSource`. Nothing is copied, and the operating system reads ahead."""
        yield from self.blocks()

    def bind(self, recipe: BlockRecipe, plan: Any) -> MappedModel:
        return MappedModel(self, recipe, plan.n_steps)

    def gather(self, places: NDArray[np.int64]) -> RowBlock:
        """See `BlockSource`. A map gives rows at any place, so only those are read."""
        self._check_files()
        return RowBlock(0, np.asarray(self._X[places]), part_of(self._labels, places), part_of(self._weights, places))

    def _check_files(self) -> None:
        """Reject a file that is not what it was when the fit began; to read beyond its end would kill the process."""
        for name, before in self._files.items():
            if state_of(name) != before:
                raise ValueError(
                    f"The file {name!r} changed or was truncated during the fit. The budget was already charged for "
                    "this fit. Fit again with a file that is not being written."
                )


def source_of_rows(X: Any, columns: Sequence[str] | None, y: Any, sample_weight: Any, groups: Any = None) -> MappedRows:
    """Return the source of a memory map; see `skdp._checks.sources`."""
    for name, given in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        if isinstance(given, str):
            raise ValueError(f"{name}={given!r} is a column name, but a memory map has no column names. Pass an array.")
    return MappedRows(X, one_per_row("y", y, len(X)), one_per_row("sample_weight", sample_weight, len(X)), groups)


def one_per_row(name: str, given: Any, n_rows: int) -> Any:
    """Return labels or weights as an array, rejected if they are not one a row."""
    if given is None:
        return None
    if hasattr(given, "__dask_graph__"):
        raise ValueError(
            f"`{name}` is a lazy Dask object, but X is not, so it would be computed before the budget is charged. "
            "Compute it first."
        )
    values = given if isinstance(given, np.memmap) else values_of(name, given)
    if values.shape != (n_rows,):
        raise ValueError(f"`{name}` must have shape ({n_rows},), one entry per row of X, got {values.shape}.")
    return values


def part_of(values: Any, part: Any) -> Any:
    return None if values is None else np.asarray(values[part])
