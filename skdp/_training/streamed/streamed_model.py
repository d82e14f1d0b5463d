"""Sums of clipped gradients over rows that are read block by block, in passes over them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skdp._checks.sources import BlockRecipe, after_the_charge
from skdp._training.models.bound_rows import Model
from skdp._typing import Vector
from skdp.mechanisms.sampling import FullBatch, PoissonSampling, Sampling
from skdp.mechanisms.streams import SecretStream

GATHERED_VALUES = 1 << 25
"""Numbers in the rows that are gathered ahead for coming lots: 128 MB of float32."""

Order = Literal["C", "F"]


class RowBlock(NamedTuple):
    """Rows as they are stored, with their labels and weights, if any; `start` is the place of the first of them."""

    start: int
    rows: NDArray[Any]
    labels: Any
    weights: Any

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)


class Passes(Protocol):
    """What a model needs of a source."""

    n_rows: int
    n_features: int

    def read(self, order: Order = "C") -> Generator[RowBlock, None, None]:
        """Return an iterator over all blocks, in order, to be closed; a block is valid until the next is asked for."""

    def gather(self, places: NDArray[np.int64]) -> RowBlock:
        """Return the rows at ascending places, which may repeat, in one pass over all rows."""


class _Lots(NamedTuple):
    """Lots that were gathered in one pass: the first step, places of each lot's rows in `model`, and the model."""

    first: int
    rows: list[NDArray[np.int64]]
    model: Any


class StreamedModel(Model):
    """Rows that are read in every pass, and the recipe that makes a model of some of them.

    Parameters
    ----------
    source : Passes
    recipe : BlockRecipe
    n_steps : int
        Steps of the run: no lot is drawn beyond.
    n_gathered : int
        Rows that lots of coming steps may hold together.

    Notes
    -----
    **Guarantees.** The sum of a step is that of the clipped gradients of its lot, each row of it once, in float64. It
    differs from the sum of a model in memory by the order of additions only. A row changes it by at most what
    it may change the sum of the recipe's model.

    Proof. The blocks of a pass partition the rows. Where they begin is a function of the numbers of rows and columns,
    so all other rows of a neighbour (zero_out, replace_one) stay in their blocks at their places, and one block's sum
    differs, as the model of that block bounds it. Blocks are added in float64, whose rounding is not in the price
    (``docs/pitfalls.md``); under add_remove so are the sums within them.

    The lot of a step is drawn from the stream of that step, whichever step it is drawn at: lots are independent of one
    another, of the rows and of the parameters, as if each were drawn when its step begins. How many lots go into a pass
    depends on their sizes alone. Rows of a lot are in ascending order, as in memory.
    """

    def __init__(self, source: Passes, recipe: BlockRecipe, n_steps: int, n_gathered: int | None = None) -> None:
        self.n_rows = source.n_rows
        self._source, self._recipe, self._n_steps = source, recipe, n_steps
        self._n_gathered = n_gathered or max(1, GATHERED_VALUES // (source.n_features + 8))
        self._lots = _Lots(0, [], None)

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> Any:
        """Return None for all rows, the number of the lot among those that are gathered, or places of rows."""
        if isinstance(sampling, FullBatch):
            return None
        number = step - self._lots.first
        if not 0 <= number < len(self._lots.rows):
            places = self._draw_ahead(sampling, stream, step)
            if len(places) == 1 and len(places[0]) > self._n_gathered:
                return places[0]
            self._gather(places, step)
            number = 0
        return number

    def _draw_ahead(self, sampling: PoissonSampling, stream: SecretStream, step: int) -> list[NDArray[np.int64]]:
        """Return places of the rows of this step's lot, and of as many following ones as may be held."""
        places: list[NDArray[np.int64]] = []
        n_drawn = 0
        for coming in range(step, self._n_steps):
            if n_drawn > self._n_gathered:  # one lot is more than may be held
                break
            # The stream of a step gives the same lot whenever it is drawn, and no other stream draws from it.
            lot = sampling.rows(self.n_rows, stream.spawn("step", coming))
            n_drawn += len(lot)
            if places and n_drawn > self._n_gathered:
                break
            places.append(lot)
        return places

    def _gather(self, places: list[NDArray[np.int64]], step: int) -> None:
        """Read the rows of several lots in one pass."""
        self._release()
        together = np.concatenate(places)
        order = np.argsort(together, kind="stable")
        model = None
        if len(order):
            block = self._source.gather(together[order])
            model = after_the_charge("X", self._recipe, block.rows, block.labels, block.weights)
            model.__enter__()
        where = np.empty_like(order)
        where[order] = np.arange(len(order))
        self._lots = _Lots(step, np.split(where, np.cumsum([len(lot) for lot in places])[:-1]), model)

    def clipped_gradient_sum(self, theta: Vector, lot: Any, max_norm: float) -> NDArray[np.float64]:
        """Sum of clipped gradients over the rows of a lot, of shape (p,)."""
        if lot is None or isinstance(lot, np.ndarray):
            return self._sum_of_pass(theta, lot, max_norm)
        rows = self._lots.rows[lot]
        if not len(rows):
            return np.zeros(theta.size)
        total: NDArray[np.float64] = self._lots.model.clipped_gradient_sum(theta, rows, max_norm)
        return total

    def _sum_of_pass(self, theta: Vector, places: NDArray[np.int64] | None, max_norm: float) -> NDArray[np.float64]:
        """Sum over all rows, or over those at ascending places, in one pass."""
        total = np.zeros(theta.size)
        with closing(self._source.read(self._recipe.order)) as blocks:
            for block in blocks:
                total += self._sum_of_block(theta, block, places, max_norm)
        return total

    def _sum_of_block(
        self, theta: Vector, block: RowBlock, places: NDArray[np.int64] | None, max_norm: float
    ) -> NDArray[np.float64]:
        made = after_the_charge(describe(block), self._recipe, block.rows, block.labels, block.weights)
        chosen = None
        if places is not None:
            first, last = np.searchsorted(places, (block.start, block.stop))
            chosen = places[first:last] - block.start
        with made as model:
            total: NDArray[np.float64] = after_the_charge(
                describe(block), model.clipped_gradient_sum, theta, chosen, max_norm
            )
        return total

    def _release(self) -> None:
        """End the model of the lots that were gathered."""
        model, self._lots = self._lots.model, _Lots(0, [], None)
        if model is not None:
            model.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._release()


def describe(block: RowBlock) -> str:
    """Say where a block lies among the rows."""
    return f"rows {block.start} to {block.stop - 1} of X"


__all__ = ["Order", "Passes", "RowBlock", "StreamedModel", "describe"]
