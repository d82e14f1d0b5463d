"""Counts in disjoint cells of several columns of numbers, and in them no more of a unit of rows than of one row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._checks.weights import exactly_summable, weight_of_each
from skdp.mechanisms.group_clip import clip_groups, squares_of_counts


class CountedColumn(NamedTuple):
    """Numbers of a column without its gaps, and which rows they are of."""

    values: np.ndarray
    are_present: NDArray[np.bool_]


class CountedColumns(NamedTuple):
    """Columns of numbers whose rows are counted in one cell of each, by their weights.

    Attributes
    ----------
    columns : list of CountedColumn
    weights : ndarray of shape (n_rows,) or 1.0
        Private: `exactly_summable` numbers in [0, 1].
    units : Units or None
        Private.

    Notes
    -----
    **Guarantees.** The counts of m columns are nonnegative, and what one row adds to them, or one unit, has a norm of
    at most sqrt(m). A unit of one row adds what the row adds.

    Proof. A row adds its weight to one count of each column, or nothing where it has a gap. The sum of a unit's rows is
    clipped to sqrt(m) (`skdp.mechanisms.group_clip.clip_groups`). Its squared norm is a sum of
    squares of exact numbers, m of them for each row at most, whose relative error beyond that of one column is below
    m u, u = 2**-53; it is raised by twice that. Weights times shares are rounded down to multiples of 2**-24, which
    makes every count smaller or leaves it, and all sums exact: what other rows add does not depend on the unit.
    """

    columns: list[CountedColumn]
    weights: Any = 1.0
    units: Units | None = None

    @classmethod
    def of(
        cls, numbers: Sequence[np.ndarray], weights: Any = 1.0, units: Units | None = None, bounds: Sequence[Any] = ()
    ) -> Self:
        """Take columns with NaN for gaps, clipped to their bounds where these are not None."""
        pairs = bounds or [None] * len(numbers)
        return cls([_column(values, pair) for values, pair in zip(numbers, pairs, strict=True)], weights, units)

    def some(self, chosen: Sequence[bool]) -> Self:
        """The chosen ones of the columns."""
        return self._replace(columns=[each for each, is_one in zip(self.columns, chosen, strict=True) if is_one])

    def counts(self, breaks: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Count each column in the ``len(breaks) + 1`` cells between its breaks, closed on the left; none for None."""
        counted = [(column, at) for column, at in zip(self.columns, breaks, strict=True) if at is not None]
        cells = [np.searchsorted(at, column.values, side="right") for column, at in counted]
        weights = self._clipped([column for column, _ in counted], cells)
        made = iter(
            np.bincount(where, weights[column.are_present] if np.ndim(weights) else None, minlength=len(at) + 1).astype(
                np.float64, copy=False
            )
            for (column, at), where in zip(counted, cells, strict=True)
        )
        return [np.empty(0) if at is None else next(made) for at in breaks]

    def _clipped(self, columns: list[CountedColumn], cells: list[NDArray[np.intp]]) -> Any:
        """Return weights with which no group adds more to these columns than a row may."""
        if (units := self.units) is None:
            return self.weights
        norm, weights = math.sqrt(len(columns)), weight_of_each(self.weights, len(units.codes))
        squares = np.zeros(units.n_units)
        for column, where in zip(columns, cells, strict=True):
            present = replace(units, codes=units.codes[column.are_present])
            squares += squares_of_counts(present, [where], weights[column.are_present])
        squares *= 1.0 + len(columns) * 2.0**-52
        return exactly_summable(clip_groups(units, weights, norm, norm, squares))


def _column(values: np.ndarray, pair: Any) -> CountedColumn:
    present = ~np.isnan(values)
    return CountedColumn(np.clip(values[present], *(pair or (-np.inf, np.inf))), present)
