"""Rows of a memory map of NumPy."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._checks.cells import values_of
from skdp._checks.rows import check_shape
from skdp._checks.sources import BlockRecipe
from skdp._checks.unit_runs import runs_of
from skdp._checks.units import CountedUnits
from skdp._training.streamed.blocks import BlockSource
from skdp._training.streamed.files import state_of
from skdp._training.streamed.streamed_model import Order, RowBlock, StreamedModel
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream


class MappedModel(StreamedModel):
    """Rows of a memory map, of which lots are drawn as in memory: those of a seed are the lots of the equal array.

    Notes
    -----
    **Guarantees.** As of `StreamedModel`, but that a lot is drawn when its step begins, by the sampler of rows in
    memory.
    """

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> NDArray[np.int64] | None:
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
            raise ValueError(f"X is a memory map of {X.dtype.name}: give one of numbers, such as float32.")
        self.n_rows, self.n_features = X.shape
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        self._X, self._labels, self._weights, self._groups = X, labels, weights, groups
        self._files = {name: state_of(name) for name in _files_of(X, labels, weights)}

    def blocks(self, order: Order = "C") -> Iterator[RowBlock]:
        for start in range(0, self.n_rows, self.block_rows):
            self._check_files()
            part = slice(start, min(start + self.block_rows, self.n_rows))
            yield RowBlock(start, np.asarray(self._X[part]), _part(self._labels, part), _part(self._weights, part))

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
        return RowBlock(0, np.asarray(self._X[places]), _part(self._labels, places), _part(self._weights, places))

    def _check_files(self) -> None:
        """Refuse a file that is not what it was when the fit began; to read beyond its end would kill the process."""
        for name, before in self._files.items():
            if state_of(name) != before:
                raise ValueError(
                    f"the file {name!r} changed or was cut off under the fit, after the fit was charged, which "
                    "stands: fit again to a file that nobody writes."
                )


def source_of_rows(X: Any, columns: Sequence[str] | None, y: Any, sample_weight: Any, groups: Any = None) -> MappedRows:
    """Return the source of a memory map; see `skdp._checks.sources`."""
    for name, given in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        if isinstance(given, str):
            raise ValueError(f"{name}={given!r} names a column, and a memory map has no names: give an array.")
    return MappedRows(X, one_per_row("y", y, len(X)), one_per_row("sample_weight", sample_weight, len(X)), groups)


def one_per_row(name: str, given: Any, n_rows: int) -> Any:
    """Return labels or weights as an array, refused if they are not one a row."""
    if given is None:
        return None
    if hasattr(given, "__dask_graph__"):
        raise ValueError(f"{name} is lazy where X is not, and would be computed before the charge: compute it first.")
    values = given if isinstance(given, np.memmap) else values_of(name, given)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} has shape {values.shape} where X has {n_rows} rows: give one number a row.")
    return values


def _part(values: Any, part: Any) -> Any:
    return None if values is None else np.asarray(values[part])


def _files_of(*arrays: Any) -> list[str]:
    """Return the names of the files of memory maps."""
    found = [each.filename for each in arrays if isinstance(each, np.memmap)]
    return [os.fspath(name) for name in found if name is not None]
