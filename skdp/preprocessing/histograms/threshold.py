"""Which categories may be named: those whose noisy count no single row could have brought about."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from skdp._checks.units import Units
from skdp._typing import Doubles
from skdp.mechanisms.streams import SecretStream


def stability_threshold(deviation: float, delta: float, n_columns: int) -> float:
    """Count above which a category is named.

    A row may be the only one with its category in every column. Each of those counts is 1, and its noisy value exceeds
    T with probability p = P(1 + N(0, deviation^2) > T). The noise is independent, so that none does has probability
    (1 - p)^n_columns, which is 1 - delta for the p chosen here: the row's categories stay hidden but with probability
    `delta` in all columns together. T is larger by half a step of the grid to which noisy counts are rounded, at most
    2**-27 standard deviations.

    Parameters
    ----------
    deviation : float
        Standard deviation of the noise.
    delta : float
        In (0, 1).
    n_columns : int
        Columns of categories.

    Returns
    -------
    float
    """
    each = -math.expm1(math.log1p(-delta) / n_columns)
    return (1.0 + deviation * (float(norm.isf(each)) + 2.0**-27)) * (1.0 + 1e-12)  # the quantile is rounded


def keep_one_row(codes: NDArray[np.int64], units: Units | None, stream: SecretStream) -> NDArray[np.int64]:
    """Codes with a gap, -1, in all rows of a unit but one, which is drawn evenly among those without a gap.

    Every draw is of one row. Without units all rows are kept.
    """
    if units is None:
        return codes
    held = np.flatnonzero(codes >= 0)
    of = units.codes[held]
    order = np.lexsort((stream.words(len(held)), of))
    first = held[order[np.flatnonzero(np.diff(of[order], prepend=-1))]]
    kept = np.full_like(codes, -1)
    kept[first] = codes[first]
    return kept


def observed_counts(codes: NDArray[np.int64], keys: Sequence[str]) -> tuple[list[str], Doubles]:
    """The categories that occur, sorted, and their exact counts. Codes below 0 are gaps and are left out.

    A key that no row has is not counted, wherever it came from: a list of keys may itself be private.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(keys))
    found = sorted((keys[i], i) for i in np.flatnonzero(counts).tolist())
    return [key for key, _ in found], counts[[i for _, i in found]].astype(np.float64)


def named_categories(keys: Sequence[str], noisy: Doubles, threshold: float, most: int) -> list[str]:
    """The keys above the threshold, the `most` frequent of them by noisy count, in alphabetical order."""
    above = np.flatnonzero(noisy > threshold)
    frequent = above[np.argsort(-noisy[above], kind="stable")[:most]]
    return sorted(keys[i] for i in frequent.tolist())
