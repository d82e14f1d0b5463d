"""Made-up tables with the columns of a schema, and a target whose signal is stated.

What follows from public numbers alone is drawn: a few columns say much and many say little, some categories are
frequent and most are rare, columns are alike. How much so was set on one census table (benchmarks/README.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, ndtr

from skdp._checks.readings import day_text
from skdp.datasets._tables import import_extra
from skdp.preprocessing.schema.kinds import Column
from skdp.preprocessing.schema.table_schema import TableSchema

_ALIKE = 0.5
"""Share of the variance that all columns have in common; what they say agrees with it."""
_DECAY = 0.5
"""The k-th column says k to this power times less than the first."""
_RARE = 2.0
"""The k-th category is k to this power times rarer than the first."""
_LOW = 2.0
"""Numbers are uniform ones to this power, between their bounds: most columns reach their upper bound rarely."""
_BENT = 0.3
"""Curvature of what a number says."""
_TOGETHER = 0.1
"""Share of the variance of a score that two columns say together, and neither alone."""
_GAPS = 0.02
"""Share of gaps, where the schema has some."""
_MADE_UP_WORDS = tuple("abcdefghij")
_UNKNOWN_BOUNDS = (0.0, 100.0)
_LOOKED_AT = 4_000
"""Rows from which the scale of a signal is found."""


def draw_rows(
    schema: TableSchema | int, n: int, n_scores: int, rng: np.random.Generator
) -> tuple[Any, NDArray[np.float64]]:
    """Draw rows, and what they say of a target.

    Parameters
    ----------
    schema : TableSchema or int
        Columns, or how many numbers in [-1, 1].
    n : int
        Rows.
    n_scores : int
        Scores of each row.
    rng : Generator

    Returns
    -------
    X : DataFrame, or ndarray of shape (n, d)
    scores : ndarray of shape (n_scores, n)
        What rows say of their target, each with a mean of 0 and a variance of 1.
    """
    columns = [Column("number", (-1.0, 1.0))] * schema if isinstance(schema, int) else [c for _, c in schema.items()]
    common = rng.normal(size=n)
    weights = np.array([rng.permutation(np.arange(1.0, len(columns) + 1.0) ** -_DECAY) for _ in range(n_scores)])
    alone, made = [], []
    for column in columns:
        ranks = ndtr(math.sqrt(_ALIKE) * common + math.sqrt(1.0 - _ALIKE) * rng.normal(size=n))
        cells, says = _draw_column(column, 1.0 if isinstance(schema, int) else _LOW, ranks, n_scores, rng)
        made.append(cells)
        says = _standard(says)
        says[0] *= 1.0 if says[0] @ common >= 0.0 else -1.0
        alone.append(says)
    scores = _standard(np.einsum("kd,dkn->kn", weights, alone))
    together = _standard(sum((alone[i] * alone[j] for i, j in _pairs(len(columns), rng)), np.zeros((n_scores, n))))
    return _as_table(schema, made), _standard(math.sqrt(1.0 - _TOGETHER) * scores + math.sqrt(_TOGETHER) * together)


def _pairs(n_columns: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """As many pairs of columns as there are columns, in a circle."""
    order = rng.permutation(n_columns)
    return np.column_stack([order, np.roll(order, 1)])[: n_columns if n_columns > 1 else 0]


def _as_table(schema: TableSchema | int, made: list[Any]) -> Any:
    if isinstance(schema, int):
        return np.column_stack(made)
    return import_extra("pandas").DataFrame(dict(zip(schema, made, strict=True)))


def _standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row with a mean of 0 and a variance of 1, or of zeros if it is constant."""
    centred = values - values.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    return centred / np.where(spread > 1e-12, spread, np.inf)


# --- columns ---


def _draw_column(
    column: Column, low: float, ranks: NDArray[np.float64], n_scores: int, rng: np.random.Generator
) -> tuple[np.ndarray, NDArray[np.float64]]:
    """Cells, and what each says of the target, of shape (n_scores, n); `ranks` are uniform."""
    if column.kind == "drop":
        return np.zeros(ranks.size), np.zeros((n_scores, ranks.size))
    draw = _draw_number if column.kind in ("number", "date") else _draw_category
    cells, says = draw(column, low, ranks, n_scores, rng)
    if column.gaps:
        cells = cells.astype(object)
        cells[rng.random(ranks.size) < _GAPS] = column.gaps[0] or None
    return cells, says


def _draw_number(
    column: Column, low: float, ranks: NDArray[np.float64], n_scores: int, rng: np.random.Generator
) -> tuple[np.ndarray, NDArray[np.float64]]:
    ends = column.bounds or _UNKNOWN_BOUNDS
    numbers = ends[0] + (ends[1] - ends[0]) * ranks**low
    cells = np.array([day_text(math.floor(day), column.form) for day in numbers]) if column.kind == "date" else numbers
    z = math.sqrt(12.0) * (ranks - 0.5)
    bent = _BENT * rng.normal(size=(n_scores, 1))
    return cells, z + bent * (z * z - 1.0)


def _draw_category(
    column: Column, low: float, ranks: NDArray[np.float64], n_scores: int, rng: np.random.Generator
) -> tuple[np.ndarray, NDArray[np.float64]]:
    known = ("0", "1") if column.kind == "flag" else column.categories or _MADE_UP_WORDS
    shares = np.arange(1.0, len(known) + 1.0) ** -_RARE
    says = rng.normal(size=(n_scores, len(known)))
    if column.kind == "ordinal":
        places = np.linspace(-1.0, 1.0, len(known))
        shares = np.exp(-2.0 * (places - rng.uniform(-0.5, 0.5)) ** 2)
        says = np.broadcast_to(places, says.shape)
    else:
        shares = rng.permutation(shares)
    codes = np.searchsorted(np.cumsum(shares)[:-1] / shares.sum(), ranks)
    return np.array(known, dtype=object)[codes], says[:, codes]


# --- targets ---


def draw_classes(
    scores: NDArray[np.float64], shares: NDArray[np.float64], auc: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the number of a class for each row.

    Parameters
    ----------
    scores : ndarray of shape (n_classes - 1, n)
    shares : ndarray of shape (n_classes,)
        Of all rows, with a sum of 1.
    auc : float
        Area under the curve of whoever knows the probabilities, in (0.5, 1): of one class against the others, averaged.
    rng : Generator

    Returns
    -------
    y : ndarray of shape (n,)
    """
    scores = np.vstack([np.zeros((1, scores.shape[1])), scores])
    some = scores[:, :_LOOKED_AT]
    low, high = -5.0, 7.0
    for _ in range(25):
        middle = 0.5 * (low + high)
        reached = _area(_chances(some, math.exp(middle), _offsets(some, math.exp(middle), shares))) >= auc
        low, high = (low, middle) if reached else (middle, high)
    scale = math.exp(high)
    chances = _chances(scores, scale, _offsets(some, scale, shares))
    drawn = rng.random(scores.shape[1])
    return np.minimum((np.cumsum(chances, axis=0) < drawn).sum(axis=0), len(shares) - 1)


def draw_numbers(scores: NDArray[np.float64], r2: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a target of numbers with a mean of 0 and a variance of 1, of which the rows explain a share of `r2`."""
    said = scores[0]
    return math.sqrt(r2) * said + math.sqrt(1.0 - r2) * rng.normal(size=said.size)


def _chances(scores: NDArray[np.float64], scale: float, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(log_softmax(scale * scores + offsets[:, None], axis=0))


def _offsets(scores: NDArray[np.float64], scale: float, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Offsets at which classes have these shares, nearly."""
    offsets = np.log(shares)
    for _ in range(20):
        offsets = offsets + np.log(shares / np.maximum(_chances(scores, scale, offsets).mean(axis=1), 1e-12))
    return offsets


def _area(chances: NDArray[np.float64]) -> float:
    """The area under the curve that these probabilities have if they are true, averaged over classes."""
    areas = []
    for p in chances if len(chances) > 2 else chances[1:]:
        p = np.sort(p)
        below = np.cumsum(1.0 - p) - 0.5 * (1.0 - p)
        areas.append(float((p * below).sum() / (p.sum() * (1.0 - p).sum())))
    return float(np.mean(areas))
