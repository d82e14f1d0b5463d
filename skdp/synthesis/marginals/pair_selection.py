"""Which tables to measure where there are too many: scores of all, released with noise, and the best ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from skdp.synthesis.marginals.contingency_tables import ColumnSet, count, squared_norm

Expectation = Callable[[ColumnSet], np.ndarray]

MOST_CELLS = 1_000_000
"""Pairs with more cells are not looked at: of no number of rows that fits in memory would noise leave anything."""


def candidates(levels: Sequence[int], left_out: Sequence[ColumnSet]) -> list[ColumnSet]:
    """Return the pairs of columns that can be selected, by public numbers."""
    gone = set(left_out)
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(levels)), 2)
        if (i, j) not in gone and min(levels[i], levels[j]) > 1 and levels[i] * levels[j] <= MOST_CELLS
    ]


def sensitivity(n_sets: int) -> float:
    """Return the largest norm of what one row changes of the scores, half of it under ``replace_one``.

    Proof. A score is the sum over cells of ``|count - expected|``, where what is expected does not depend on the row,
    given earlier releases. A row that comes or goes changes one count of each table by one, and so its score by at most
    one. A row that is exchanged for another changes two counts by one each, and the score by at most two, half of which
    is one again. Rows of weights in [0, 1] change counts by no more. All scores together change by at most the root of
    their number.
    """
    return math.sqrt(n_sets)


def scores(
    codes: Sequence[NDArray[np.int32]],
    pairs: Sequence[ColumnSet],
    levels: Sequence[int],
    expected: Expectation,
    shares: np.ndarray | None = None,
) -> np.ndarray:
    """Return how far the counts of each pair are from those expected: the sum of the absolute differences.

    One table is in memory at a time.
    """
    return np.array([float(np.abs(count(codes, pair, levels, shares) - expected(pair)).sum()) for pair in pairs])


def best_pairs(
    noisy: np.ndarray,
    pairs: Sequence[ColumnSet],
    levels: Sequence[int],
    expected: Expectation,
    deviation: float,
) -> list[ColumnSet]:
    """Return the pairs that are worth their noise, from noisy scores and public numbers.

    A score counts less what rows drawn from the expected table would have. With the k best pairs measured together,
    each gains its score and loses the size of its noise, which grows with the root of k: the k of the largest total is
    taken.

    Parameters
    ----------
    noisy : ndarray of shape (n_pairs,)
    pairs : sequence of (int, int)
    levels : sequence of int
    expected : callable
        Expected counts of a pair.
    deviation : float
        Standard deviation of the noise of tables that share a squared norm of one.
    """
    gains = noisy - np.array([_chance(expected(pair)) for pair in pairs])
    losses = np.array([_noise(levels, pair) for pair in pairs]) * deviation
    order = np.argsort(-gains / losses, kind="stable")
    norms = np.cumsum([squared_norm(levels, pairs[k]) for k in order])
    totals = np.cumsum(gains[order]) - np.sqrt(norms) * np.cumsum(losses[order])
    k = int(totals.argmax()) + 1 if len(totals) and totals.max() > 0 else 0
    return sorted(pairs[each] for each in order[:k])


def _noise(levels: Sequence[int], pair: ColumnSet) -> float:
    """Return the sum of the sizes of the noise of a pair's interaction, for noise of deviation one."""
    cells = math.prod(levels[j] for j in pair)
    return cells * math.sqrt(2.0 / math.pi * squared_norm(levels, pair))


def _chance(expected: np.ndarray) -> float:
    """Return about how far counts of rows drawn independently are from those expected, in the same sum."""
    rates = np.maximum(expected, 0.0)
    return float(np.minimum(np.sqrt(2.0 * rates / math.pi), 2.0 * rates).sum())
