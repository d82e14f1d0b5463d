"""The score of a model as a linear function of public rows: what an effect and its noise are computed from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._checks.readings import day_text
from skdp.preprocessing.schema.blocks import Block
from skdp.preprocessing.vectorizer import DPTableVectorizer

_PUBLIC_ROWS = 128
"""Rows over which the effect of a column is averaged, where columns interact."""

_SEED = 31  # of those rows, which are public


class PublicValues(NamedTuple):
    """Public values of a column.

    Attributes
    ----------
    labels : tuple of str
    codes : ndarray of shape (n_cells,)
        See `Block.codes`.
    shares : ndarray of shape (n_cells,)
        With the sum 1.
    n_ordered : int
        Leading cells that lie on a line: numbers, dates, levels of an ordinal.
    n_listed : int
        Leading cells that are neither "other" nor "gap".
    """

    labels: tuple[str, ...]
    codes: np.ndarray
    shares: np.ndarray
    n_ordered: int
    n_listed: int


class AdditiveScore:
    """Score of a linear model behind a `DPTableVectorizer`: a sum of one curve for each column.

    Parameters
    ----------
    vectorizer : DPTableVectorizer
    coef, noise : ndarray of shape (n_columns,)
        `noise` may be None where it is not known.
    unit : str
    """

    def __init__(self, vectorizer: DPTableVectorizer, coef: np.ndarray, noise: np.ndarray | None, unit: str) -> None:
        self.blocks: list[Block] = vectorizer._fitted_blocks
        self.coef, self.unit, self._noise = coef, unit, noise
        self.starts = np.cumsum([0, *(block.width for block in self.blocks)]).tolist()

    def cells(self, k: int, n_cells: int | None = None) -> PublicValues:
        """Values of the column of block k; numbers and dates have `n_cells`, or as many as they are learned in."""
        block = self.blocks[k]
        if block.is_line and block.numbers == "bins" and n_cells is None:
            edges = block.edges()
            return _cells_of_line(block, (edges[1:] + edges[:-1]) / 2.0, None)
        return cells_of(block, n_cells)

    def mean_rows(self, chosen: dict[int, np.ndarray]) -> np.ndarray:
        """Mean of public rows in which the columns of these blocks have these codes, of shape (n_codes, n_columns).

        The other columns add the same to each, and are left out.
        """
        made = np.zeros((len(next(iter(chosen.values()))), self.starts[-1]))
        for k, codes in chosen.items():
            for place, value in self.blocks[k].entries(codes):
                made[np.arange(len(made)), place + self.starts[k]] = 1.0 if value is None else value
        return made

    def variance(self, rows: np.ndarray) -> np.ndarray | None:
        """Variance of ``rows @ coef`` by the noise alone; entries of `rows` sum to zero over levels of a block."""
        return None if self._noise is None else rows**2 @ self._noise**2


class TreesScore:
    """Score of a model of random trees, averaged over public rows: drawn from shares of people that were released.

    Parameters
    ----------
    embedding : PublicTreesEmbedding
    blocks : list of Block
        Columns of the table by the names and levels that users know, in the order of the embedding.
    coef, noise : ndarray of shape (n_columns,)
        Projected: those of each plain column and of each tree sum to zero.
    unit : str
    """

    def __init__(self, embedding: Any, blocks: list[Block], coef: np.ndarray, noise: np.ndarray, unit: str) -> None:
        self.blocks, self.coef, self.unit, self._embedding = blocks, coef, unit, embedding
        widths = embedding._encoder.form.blocks.level_counts
        # The noise of independent levels before the projection, which took 1 / width of its variance.
        self._variance = noise**2 / np.repeat(1.0 - 1.0 / np.maximum(widths, 2), widths)
        rng, own = np.random.default_rng(_SEED), [self.cells(k) for k in range(len(blocks))]
        self._rows = [each.codes[rng.choice(len(each.codes), _PUBLIC_ROWS, p=each.shares)] for each in own]

    def cells(self, k: int, n_cells: int | None = None) -> PublicValues:
        known = self._embedding.marginals or {}
        return cells_of(self.blocks[k], n_cells, known.get(self._embedding._fitted_blocks[k].name))

    def mean_rows(self, chosen: dict[int, np.ndarray]) -> np.ndarray:
        n_cells = len(next(iter(chosen.values())))
        codes = [np.tile(each, n_cells) for each in self._rows]
        for k, each in chosen.items():
            codes[k] = np.repeat(each, _PUBLIC_ROWS)
        return self._embedding._encoder.mean_rows(codes, n_cells)

    def variance(self, rows: np.ndarray) -> np.ndarray | None:
        return rows**2 @ self._variance


Score = AdditiveScore | TreesScore
"""One score of a model, ``rows @ coef`` plus a constant."""


def score_of(estimator: Any, class_label: Any = None) -> Score:
    """Return the score of a fitted model, or of a pipeline of a `DPTableVectorizer` and a model, or refuse it."""
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    *before, model = steps
    check_is_fitted(model)
    vectorizer = before[0] if len(before) == 1 and isinstance(before[0], DPTableVectorizer) else None
    if before and vectorizer is None:
        raise ValueError(f"estimator: the steps before {type(model).__name__} are no DPTableVectorizer alone: {_TAKEN}")
    if hasattr(model, "embedding_"):
        coef, noise, unit = coefficients_of(model, class_label)
        assert noise is not None  # models of trees know it
        own = model.embedding_._fitted_blocks
        blocks = own if vectorizer is None else [vectorizer._fitted_blocks[block.position] for block in own]
        return TreesScore(model.embedding_, blocks, coef, noise, unit)
    if vectorizer is None or not hasattr(model, "coef_"):
        raise ValueError(f"estimator: {type(model).__name__} has no curve of a column: {_TAKEN}")
    if float(getattr(model, "data_norm_", np.inf)) < 0.999 * vectorizer.row_norm_:
        raise ValueError("estimator: data_norm_ is below the norm of rows, which bends curves: fit it with None.")
    return AdditiveScore(vectorizer, *coefficients_of(model, class_label))


_TAKEN = "give a model of random trees, or a pipeline of DPTableVectorizer and a linear model, fitted."


def coefficients_of(model: Any, class_label: Any = None) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Coefficients of one score, their noise if it is known, and the unit of the score in words."""
    coef, noise = np.atleast_2d(model.coef_), getattr(model, "coef_noise_", None)
    classes = getattr(model, "classes_", None)
    row, unit = 0, "target"
    if classes is not None:
        row, unit = _row_of(list(classes), class_label)
    elif class_label is not None:
        raise ValueError(f"class_label={class_label!r}: {type(model).__name__} has no classes: leave it out.")
    scale = float(getattr(model, "target_scale_", 1.0)) if hasattr(model, "embedding_") else 1.0
    known = None if noise is None else np.atleast_2d(noise)[row] * scale
    return coef[row] * scale, known, unit


def _row_of(classes: list[Any], class_label: Any) -> tuple[int, str]:
    if len(classes) == 2:
        if class_label not in (None, classes[1]):
            raise ValueError(f"class_label: of two classes the score is that of {classes[1]}: leave it out.")
        return 0, f"log-odds of {classes[1]}"
    if class_label is None or class_label not in classes:
        raise ValueError(f"class_label={class_label!r} with {len(classes)} classes: give one of classes_.")
    return classes.index(class_label), f"score of {class_label}"


def cells_of(block: Block, n_cells: int | None = None, known: Any = None) -> PublicValues:
    """Values of a column, on the scale of its schema.

    Parameters
    ----------
    block : Block
    n_cells : int or None
        Of a number or a date.
    known : list of float or None
        Public shares of the cells and of gaps; uniform without gaps if None. Those of finer cells are added up.

    Returns
    -------
    PublicValues
    """
    if not block.is_line:
        levels = ("false", "true") if block.column.kind == "flag" else (*(block.column.categories or ()), "other")
        n = block.n_listed
        n_ordered = n if block.column.kind == "ordinal" else 0
        codes = np.arange(len(levels) + 1, dtype=np.int32)
        return PublicValues((*map(str, levels), "gap"), codes, _shares(known, len(codes), n), n_ordered, n)
    given = _CELLS if known is None else len(known) - 1
    own = given if block.column.edges is None else len(block.column.edges) - 1
    n = min(n_cells or own, given)
    if known is not None:
        of_gaps, cells = known[-1], np.add.reduceat(known[:-1], np.arange(n) * given // n)
        known = [*cells, of_gaps]
    return _cells_of_line(block, block.line.at((np.arange(n) + 0.5) / n), known)


_CELLS = 32


def _cells_of_line(block: Block, values: np.ndarray, known: Any) -> PublicValues:
    n, is_date = len(values), block.column.kind == "date"
    labels = [day_text(value) if is_date else f"{value:.3g}" for value in values.tolist()]
    return PublicValues((*labels, "gap"), np.append(values, np.nan), _shares(known, n + 1, n), n, n)


def _shares(known: Any, n: int, n_listed: int) -> np.ndarray:
    if known is None:
        known = np.arange(n) < max(1, n_listed)
    found = np.asarray(known, float)
    return found / found.sum()


def names_of(blocks: Iterable[Block]) -> list[str]:
    """Names of the columns."""
    return [block.name for block in blocks]
