"""Sums of clipped gradients over rows that are read block by block, in passes over them."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.groups import Units, UnitsOfRows
from skdp._checks.sources import BlockRecipe, after_the_charge
from skdp._dpsgd.models.linear import Model, SpanModel, UnitLayout, add_clipped
from skdp.mechanisms.sampling import FullBatch, PoissonSampling, Sampling
from skdp.mechanisms.streams import SecretStream

GATHERED_VALUES = 1 << 25
"""Numbers in the rows that are gathered ahead for coming lots: 128 MB of float32."""

Order = Literal["C", "F"]


class RowBlock(NamedTuple):
    """Rows as they are stored, with their labels and weights, if any; `start` is the place of the first of them."""

    start: int
    rows: np.ndarray
    labels: Any
    weights: Any

    @property
    def stop(self) -> int:
        return self.start + len(self.rows)


class _Lots(NamedTuple):
    """Lots that were gathered in one pass: the first step, numbers of each lot in `model`, and the model."""

    first: int
    numbers: list[NDArray[np.int64]]
    model: Any


class StreamedModel(Model):
    """Rows that are read in every pass, and the recipe that makes a model of some of them.

    Parameters
    ----------
    source : BlockSource
    recipe : BlockRecipe
    n_steps : int
        Steps of the run: no lot is drawn beyond.
    n_gathered : int
        Rows that lots of coming steps may hold together.

    Notes
    -----
    **Guarantees.** The sum of a step is that of the clipped gradients of its lot, each row of it once, in float64. It
    differs from the sum of a model in memory by the order of additions only. A row changes it by at most what
    it may change the sum of the recipe's model. Where rows have units, a unit changes it by at most C, wherever blocks
    cut it.

    Proof. The blocks of a pass partition the rows. Where they begin is a function of the numbers of rows and columns,
    so all other rows of a neighbor (zero_out, replace_one) stay in their blocks at their places, and one block's sum
    differs, as the model of that block bounds it. Blocks are added in float64, for whose rounding the noise has
    room (`skdp.mechanisms.GaussianMechanism`); under add_remove so are the sums within them.

    The lot of a step is drawn from the stream of that step, whichever step it is drawn at: lots are independent of one
    another, of the rows and of the parameters, as if each were drawn when its step begins. How many lots go into a pass
    depends on their sizes alone. Rows of a lot are in ascending order, as in memory.

    **Units.** Where rows have units, these are what is drawn, and each adds at most C. Units that lie in one block are
    clipped as in memory. Of a unit that blocks cut apart, the clipped gradients of its rows are added up until it ends,
    and that sum is clipped (`add_clipped`). So memory holds a block and one more sum, however many rows a unit has.
    What shifts where a neighbor has another number of rows is added in float64.
    """

    def __init__(self, source: Any, recipe: BlockRecipe, n_steps: int, n_gathered: int | None = None) -> None:
        self.n_rows, self._runs = source.n_rows, source.runs
        self._source, self._recipe, self._n_steps = source, recipe, n_steps
        self._n_gathered = n_gathered or max(1, GATHERED_VALUES // (source.n_features + 8))
        self._lots = _Lots(0, [], None)
        self._ahead: dict[int, NDArray[np.int64]] = {}  # the lot that the last pass had no room for, by its step

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> Any:
        """Return None for all rows, the number of the lot among those that are gathered, or a lot of `_draw`."""
        if isinstance(sampling, FullBatch):
            return None
        number = step - self._lots.first
        if not 0 <= number < len(self._lots.numbers):
            lots = self._draw_ahead(sampling, stream, step)
            if len(lots) == 1 and self._n_rows_of(lots[0]) > self._n_gathered:
                return lots[0]
            self._gather(lots, step)
            number = 0
        return number

    def _draw(self, sampling: Sampling, stream: SecretStream) -> NDArray[np.int64] | None:
        """Return a lot as ascending places of rows, or numbers of units; None for all of them."""
        return sampling.rows(self.n_rows if self._runs is None else self._runs.n_units, stream)

    def _n_rows_of(self, lot: NDArray[np.int64]) -> int:
        return len(lot) if self._runs is None else int(self._runs.sizes_of(lot).sum())

    def _draw_ahead(self, sampling: PoissonSampling, stream: SecretStream, step: int) -> list[NDArray[np.int64]]:
        """Return this step's lot, and as many following ones as may be held."""
        lots: list[NDArray[np.int64]] = []
        n_drawn = 0
        for coming in range(step, self._n_steps):
            if n_drawn > self._n_gathered:  # one lot is more than may be held
                break
            # The stream of a step gives the same lot whenever it is drawn, and no other stream draws from it.
            lot = self._ahead.pop(coming, None)
            lot = self._draw(sampling, stream.spawn("step", coming)) if lot is None else lot
            assert lot is not None
            n_drawn += self._n_rows_of(lot)
            if lots and n_drawn > self._n_gathered:
                self._ahead[coming] = lot
                break
            lots.append(lot)
        return lots

    def _gather(self, lots: list[NDArray[np.int64]], step: int) -> None:
        """Read the rows of several lots in one pass."""
        self.close()
        drawn = np.unique(np.concatenate(lots))
        numbers: list[Any] = [np.searchsorted(drawn, lot) for lot in lots]
        model = None
        if len(drawn):
            model, layout = self._bind(drawn)
            if layout is not None:
                numbers = [layout.numbers_of(each) for each in numbers]
        self._lots = _Lots(step, numbers, model)

    def _bind(self, drawn: NDArray[np.int64]) -> tuple[Any, UnitLayout | None]:
        """Read rows, or units, of ascending numbers; return a model of them, and the layout of the units."""
        places, layout = drawn, None
        if self._runs is not None:
            sizes, places = self._runs.sizes_of(drawn), self._runs.rows_of(drawn)
            layout = UnitLayout(Units(np.repeat(np.arange(len(sizes)), sizes), len(sizes)))
        block = self._source.gather(places)
        return after_the_charge("X", self._recipe, block.rows, block.labels, block.weights, layout), layout

    def clipped_gradient_sum(self, theta: np.ndarray, lot: Any, max_norm: float) -> NDArray[np.float64]:
        """Sum of clipped gradients over the rows of a lot, of shape (p,)."""
        if lot is None or isinstance(lot, np.ndarray):
            return self._sum_of_pass(theta, lot, max_norm)
        numbers = self._lots.numbers[lot]
        if not len(numbers):
            return np.zeros(theta.size)
        total: NDArray[np.float64] = self._lots.model.clipped_gradient_sum(theta, numbers, max_norm)
        return total

    def _sum_of_pass(self, theta: np.ndarray, lot: NDArray[np.int64] | None, max_norm: float) -> NDArray[np.float64]:
        """Sum over all rows, or over a lot of `_draw`, in one pass."""
        total, cut = np.zeros(theta.size), np.zeros(theta.size)
        with closing(self._source.read(self._recipe.order)) as blocks:
            for block in blocks:
                given = describe(block), self._recipe, block.rows, block.labels, block.weights
                if self._runs is None:
                    chosen = None if lot is None else _between(lot, block.start, block.stop)
                    with after_the_charge(*given) as model:
                        total += after_the_charge(given[0], model.clipped_gradient_sum, theta, chosen, max_norm)
                    continue
                units = self._runs.within(block.start, block.stop)
                layout = UnitLayout(units.units)
                with after_the_charge(*given, layout) as model:
                    after_the_charge(given[0], _add_units, total, cut, model, theta, units, layout, lot, max_norm)
        return total

    def close(self) -> None:
        """End the model of the lots that were gathered."""
        model, self._lots = self._lots.model, _Lots(0, [], None)
        if model is not None:
            model.close()


def _add_units(
    total: NDArray[np.float64],
    cut: NDArray[np.float64],
    model: SpanModel,
    theta: np.ndarray,
    units: UnitsOfRows,
    layout: UnitLayout,
    lot: NDArray[np.int64] | None,
    max_norm: float,
) -> None:
    """Add the units that end among the rows of a model to `total`, and the rows of one that does not to `cut`.

    `cut` is the sum of the rows of the first unit in earlier blocks, and then that of the last one in all of them.
    """
    chosen = None
    if lot is not None:
        chosen = layout.numbers_of(_between(lot, units.first, units.first + layout.n_units))
    if units.head and (lot is None or _holds(lot, units.first - 1)):
        cut += model.sum_of_rows(theta, max_norm, layout.n_rows, layout.n_rows + units.head)
    if units.ends:
        add_clipped(total, cut, max_norm)
        cut[:] = 0.0
    if layout.n_units and (chosen is None or len(chosen)):
        total += model.clipped_gradient_sum(theta, chosen, max_norm)
    if units.tail and (lot is None or _holds(lot, units.first + layout.n_units)):
        cut += model.sum_of_rows(theta, max_norm, layout.n_rows + units.head, model.n_rows)


def _between(numbers: NDArray[np.int64], start: int, stop: int) -> NDArray[np.int64]:
    """Return those of ascending numbers that are from `start` up to `stop`, counted from `start`."""
    first, last = np.searchsorted(numbers, (start, stop))
    return numbers[first:last] - start


def _holds(numbers: NDArray[np.int64], number: int) -> bool:
    return len(_between(numbers, number, number + 1)) > 0


def describe(block: RowBlock) -> str:
    """Say where a block lies among the rows."""
    return f"Rows {block.start} to {block.stop - 1} of X"
