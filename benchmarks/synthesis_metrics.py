"""Exact metrics of synthetic rows. They read the real rows unaccounted, so these must be public."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

MOST_SETS = 500


def marginal_error(
    real: Any,
    synthetic: Any,
    order: int = 2,
    *,
    bins: int | Sequence[Sequence[float] | None] = 16,
    max_sets: int | None = None,
    random_state: int = 0,
) -> float:
    """Mean total variation distance between the marginals of real and of synthetic rows, from 0 to 1.

    Parameters
    ----------
    real, synthetic : frames or arrays
        Rows with the same columns, in the same order.
    order : int, default=2
        Number of columns of a marginal.
    bins : int or sequence of (sequence of float or None), default=16
        Numbers and dates with more distinct values are cut into this many bins of about equal mass in the real rows.
        Or the inner edges of each column, of dates in days; None compares the values of a column as they are.
    max_sets : int or None, default=None
        Largest number of sets of columns; of more, this many are drawn. None: all pairs, and 500 sets of other orders.
    random_state : int, default=0
        Seed of that draw.
    """
    one, other = pd.DataFrame(real), pd.DataFrame(synthetic)
    d = one.shape[1]
    cuts = [bins] * d if isinstance(bins, int) else bins
    columns = [_levels(one.iloc[:, j], other.iloc[:, j], cuts[j]) for j in range(d)]
    sets = list(itertools.combinations(range(d), order)) if math.comb(d, order) <= 10**6 else []
    most = max_sets if max_sets is not None else (len(sets) if order == 2 and sets else MOST_SETS)
    if not sets or len(sets) > most:
        rng = np.random.default_rng(random_state)
        sets = [tuple(sorted(rng.choice(d, order, replace=False).tolist())) for _ in range(most)]
    return float(np.mean([_total_variation([columns[j] for j in each], len(one)) for each in sets]))


def _levels(real: pd.Series, synthetic: pd.Series, bins: Any) -> NDArray[np.int64]:
    """Return a column of both tables as levels; missing values have a level of their own."""
    both = pd.concat([real, synthetic], ignore_index=True)
    is_date = pd.api.types.is_datetime64_dtype(both)
    is_number = pd.api.types.is_numeric_dtype(both) and not pd.api.types.is_bool_dtype(both)
    if bins is not None and (is_number or is_date):
        days = (both - pd.Timestamp(0)) / pd.Timedelta(days=1) if is_date else both
        values = days.to_numpy(float)
        inner = _inner_edges(values[: len(real)], bins) if isinstance(bins, int) else np.asarray(bins, float)
        if inner is not None:
            return np.where(np.isnan(values), len(inner) + 1, np.searchsorted(inner, values, side="right"))
    return pd.factorize(both, use_na_sentinel=False)[0]


def _inner_edges(values: NDArray[np.float64], bins: int) -> NDArray[np.float64] | None:
    """Return inner edges of bins of about equal mass; None if the values are few enough to be compared as such."""
    values = values[np.isfinite(values)]
    if len(np.unique(values)) <= bins:
        return None
    return np.unique(np.quantile(values, np.linspace(0.0, 1.0, bins + 1)[1:-1]))


def _total_variation(columns: list[NDArray[np.int64]], n: int) -> float:
    """Return half the sum of absolute differences between the cell proportions of the first n rows and the others."""
    place = np.zeros(len(columns[0]), np.int64)
    for levels in columns:  # only cells that occur are numbered: products of many levels exceed 64-bit integers
        place = np.unique(place * (levels.max() + 1) + levels, return_inverse=True)[1].ravel()
    size = int(place.max()) + 1
    proportions = [np.bincount(part, minlength=size) / len(part) for part in (place[:n], place[n:])]
    return min(1.0, 0.5 * float(np.abs(proportions[0] - proportions[1]).sum()))


def inception_score(probabilities: Any, n_splits: int = 10) -> float:
    """Mean inception score of consecutive parts of rows, by the class probabilities of an evaluation classifier.

    The score of a part is exp(mean of KL(p(y | x) || p(y))), where p(y) is the mean of p(y | x) over the part (Salimans
    et al. 2016, section 4). It is smaller for smaller parts: compare scores of as many rows in as many parts.
    """
    parts = np.array_split(np.asarray(probabilities, np.float64), n_splits)
    return float(np.mean([np.exp(special.rel_entr(part, part.mean(axis=0)).sum(axis=1).mean()) for part in parts]))
