"""Noisy marginal counts of the columns, from which trees are grown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from skdp._checks.groups import Units
from skdp._checks.notices import are_nearly_all, lost_cells_notice, narrow_bounds_notice
from skdp._checks.numbers import format_names
from skdp._checks.parameters import show
from skdp.mechanisms.bounded_sum import CellCounts, CellSum
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.preprocessing.schema.blocks import Block

N_CELLS = 32
"""Number of cells of a numeric or date column, of equal width on the scale of its schema, or by its bins if it has
edges.
"""

PEOPLE_SHARE = 0.03
"""Fraction of mu squared of a fit for the counts. The steps then have 1.5% less of mu."""


_SURE = 5.0
"""Standard deviations of the noise by which a cell must exceed half of the rows: noise alone exceeds them once in three
million cells, but would often exceed the other limit with few rows.
"""

_DOUBTFUL = 2.0
"""Cells below this number of standard deviations of the noise count half."""

_EVEN_ROWS, _EVEN_NOISE = 0.005, 0.3
"""Prior count of a cell: the maximum of its part of this fraction of the rows, and this part of its noise."""


def count_people(
    blocks: list[Block], codes: list[np.ndarray], weights: np.ndarray, units: Units | None = None
) -> np.ndarray:
    """Count the cells of each column: exact counts, to which noise of `PEOPLE_SHARE` is added.

    Parameters
    ----------
    blocks : list of Block
        Public columns.
    codes : list of ndarray of shape (n,)
        Private, of each column (`Block.codes`).
    weights : ndarray of shape (n,)
        Private, in [0, 1].
    units : Units or None
        Of the rows.

    Returns
    -------
    ndarray
        Counts of each column in turn: of `N_CELLS` cells and missing values for a number or a date, of the levels for
        others.

    Notes
    -----
    **Guarantees.** A row of weight w in [0, 1] adds w to one cell of each of d columns, and a row of weight 0 (a
    zeroed-out record) adds nothing. One row changes the counts by at most sqrt(d), and by at most sqrt(2 d) if it is
    replaced. With `units`, the contribution of a unit is clipped to sqrt(d). All counts are one Gaussian release.
    Proportions of the cells, and the trees grown from them, follow from it and from public quantities.
    """
    counts = CellSum(CellCounts(tuple(map(_n_cells, blocks))))
    counts.add([_cells(block, each) for block, each in zip(blocks, codes, strict=True)], weights, units)
    return counts.vector


def shares_of_people(
    counts: np.ndarray, blocks: list[Block], mechanism: GaussianMechanism, n_public: int
) -> list[list[float]]:
    """Return the proportions of the cells of each column from noisy counts: positive, with sum 1."""
    found = []
    for each in _by_column(counts, blocks):
        deviation, kept = mechanism.standard_deviation, np.maximum(each, 0.0)
        kept[kept < _DOUBTFUL * deviation] /= 2.0
        kept += max(_EVEN_ROWS * n_public / len(kept), _EVEN_NOISE * deviation)
        found.append((kept / kept.sum()).tolist())
    return found


def notices_of_counts(
    counts: np.ndarray, blocks: list[Block], names: Sequence[str], mechanism: GaussianMechanism, n_public: int
) -> Iterator[str]:
    """Yield warnings about numbers or dates at one of their bounds, and about lost cells, by noisy counts; "" for none.

    If weights are small compared with their bound, counts are small, and no warning about bounds is issued.
    """
    # Number of rows from which a column is reported to lie at a bound; fewer for amounts that are mostly 0.
    noise, columns = mechanism.standard_deviation, list(zip(names, blocks, _by_column(counts, blocks), strict=True))
    least = max(0.98 * n_public + _DOUBTFUL * noise, 0.5 * n_public + _SURE * noise)
    is_at_bound = {name: block.is_line and max(each[0], each[N_CELLS - 1]) > least for name, block, each in columns}
    yield narrow_bounds_notice([name for name, found in is_at_bound.items() if found])
    # Each row is in one cell of each column, so the columns have the same total. Missing values are the last cell,
    # after unlisted categories. A column without categories has its own warning.
    total, deviation = counts.sum() / len(blocks), noise * np.sqrt(2.0 + len(counts) / len(blocks) ** 2)
    lost = {
        name: each[N_CELLS if block.is_line else block.n_listed :].sum()
        for name, block, each in columns
        if block.is_line or block.n_listed
    }
    yield lost_cells_notice([name for name, count in lost.items() if are_nearly_all(count, total, deviation)])


def _by_column(counts: np.ndarray, blocks: list[Block]) -> list[np.ndarray]:
    ends = np.cumsum([_n_cells(block) for block in blocks])
    if len(counts) != ends[-1]:
        raise ValueError("The marginal counts do not match the columns: the checkpoint file was changed.")
    return np.split(counts, ends[:-1])


def _n_cells(block: Block) -> int:
    return N_CELLS + 1 if block.is_line else block.width


def _cells(block: Block, codes: np.ndarray) -> np.ndarray:
    """Number of the cell of each row in a column."""
    if not block.is_line:
        return codes
    gaps = np.isnan(codes)
    cells = np.minimum(block.line.share_at(np.where(gaps, 0.0, codes)) * N_CELLS, N_CELLS - 1).astype(np.int64)
    return np.where(gaps, N_CELLS, cells)


def read_marginals(marginals: Any, blocks: list[Block]) -> list[np.ndarray | None]:
    """Return the proportions of the cells of each column, None where none are given, or raise an error."""
    if marginals is None:
        return [None] * len(blocks)
    if not isinstance(marginals, Mapping):
        raise TypeError(f"`marginals` must be a dict of proportions by column, or None, got {show(marginals)}.")
    names = [block.name for block in blocks]
    if unknown := [name for name in marginals if name not in names]:
        raise ValueError(f"`marginals` has columns that are not in the schema: {format_names(unknown)}. Remove them.")
    return [_read_shares(block, marginals.get(block.name)) for block in blocks]


def _read_shares(block: Block, given: Any) -> np.ndarray | None:
    if given is None:
        return None
    try:
        shares = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        shares = np.empty(0)
    needed = "two or more" if block.is_line else str(block.width)
    fits = shares.ndim == 1 and (len(shares) >= 2 if block.is_line else len(shares) == block.width)
    if not (fits and np.isfinite(shares).all() and (shares >= 0.0).all() and shares.max() > 0.0):
        raise ValueError(f"`marginals` of column {block.name!r} must be {needed} nonnegative numbers, not all 0.")
    shares = shares / shares.max()  # whose sum does not overflow
    return shares / shares.sum()
