"""Effects of columns on the predictions of a fitted private model, and monotonic constraints.

Both are post-processing, at no additional privacy cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from skdp._checks.numbers import day_text
from skdp._checks.parameters import show
from skdp.preprocessing.schema.blocks import Block
from skdp.preprocessing.vectorizer import DPTableVectorizer

__all__ = ["ColumnEffect", "column_effects", "make_monotonic"]

_PUBLIC_ROWS = 128
"""Number of simulated rows over which the effect of a column is averaged."""

_SEED = 31  # of those rows, which are public


class PublicValues(NamedTuple):
    """Public values of a column.

    Attributes
    ----------
    labels : tuple of str
    codes : ndarray of shape (n_cells,)
        See `Block.codes`.
    shares : ndarray of shape (n_cells,)
        Proportions with sum 1.
    n_ordered : int
        Number of leading cells that are ordered: numbers, dates, levels of an ordinal.
    n_listed : int
        Number of leading cells that are neither "other" nor "missing".
    """

    labels: tuple[str, ...]
    codes: np.ndarray
    shares: np.ndarray
    n_ordered: int
    n_listed: int


class AdditiveScore:
    """Additive score of a linear model behind a `DPTableVectorizer`.

    Parameters
    ----------
    vectorizer : DPTableVectorizer
    coef, noise : ndarray of shape (n_columns,)
        Coefficients and their noise; `noise` is None if unknown.
    unit : str
    """

    def __init__(self, vectorizer: DPTableVectorizer, coef: np.ndarray, noise: np.ndarray | None, unit: str) -> None:
        self.blocks: list[Block] = vectorizer._fitted_blocks
        self.coef, self.unit, self._noise = coef, unit, noise
        self.starts = np.cumsum([0, *(block.width for block in self.blocks)]).tolist()

    def cells(self, k: int, n_cells: int | None = None) -> PublicValues:
        """Values of the column of block k; numbers and dates have `n_cells` values, or their number of bins."""
        block = self.blocks[k]
        if block.is_line and block.numbers == "bins" and n_cells is None:
            edges = block.edges()
            return _cells_of_line(block, (edges[1:] + edges[:-1]) / 2.0, None)
        return cells_of(block, n_cells)

    def mean_rows(self, chosen: dict[int, np.ndarray]) -> np.ndarray:
        """Mean of public rows with these codes in the columns of these blocks, of shape (n_codes, n_columns).

        The other columns contribute a constant and are omitted.
        """
        made = np.zeros((len(next(iter(chosen.values()))), self.starts[-1]))
        for k, codes in chosen.items():
            for place, value in self.blocks[k].entries(codes):
                made[np.arange(len(made)), place + self.starts[k]] = 1.0 if value is None else value
        return made

    def variance(self, rows: np.ndarray) -> np.ndarray | None:
        """Variance of ``rows @ coef`` due to the noise; entries of `rows` sum to zero over the levels of a block."""
        return None if self._noise is None else rows**2 @ self._noise**2


class TreesScore:
    """Score of random trees, averaged over simulated rows from the privately estimated marginals.

    Parameters
    ----------
    embedding : PublicTreesEmbedding
    blocks : list of Block
        Columns of the table by names and levels, in the order of the embedding.
    coef, noise : ndarray of shape (n_columns,)
        Coefficients and their noise; `noise` is None if unknown.
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
    """Return the score of a fitted model, or of a pipeline of a `DPTableVectorizer` and a model."""
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    *before, model = steps
    check_is_fitted(model)
    vectorizer = before[0] if len(before) == 1 and isinstance(before[0], DPTableVectorizer) else None
    if before and vectorizer is None:
        raise ValueError(f"`estimator` must have only a DPTableVectorizer before {type(model).__name__}. {_TAKEN}")
    if hasattr(model, "embedding_"):
        coef, noise, unit = coefficients_of(model, class_label)
        assert noise is not None  # stored by tree models
        own = model.embedding_._fitted_blocks
        blocks = own if vectorizer is None else [vectorizer._fitted_blocks[block.position] for block in own]
        return TreesScore(model.embedding_, blocks, coef, noise, unit)
    if vectorizer is None or not hasattr(model, "coef_"):
        raise ValueError(f"Column effects are not available for {type(model).__name__}. {_TAKEN}")
    if float(getattr(model, "data_norm_", np.inf)) < 0.999 * vectorizer.row_norm_:
        raise ValueError(
            "`estimator` must be fitted with data_norm=None: its `data_norm_` is below the norm of the rows."
        )
    return AdditiveScore(vectorizer, *coefficients_of(model, class_label))


_TAKEN = "Pass a fitted random trees model, or a fitted pipeline of DPTableVectorizer and a linear model."


def coefficients_of(model: Any, class_label: Any = None) -> tuple[np.ndarray, np.ndarray | None, str]:
    """Return the coefficients of one score, their noise if known, and the unit of the score."""
    coef, noise = np.atleast_2d(model.coef_), getattr(model, "coef_noise_", None)
    classes = getattr(model, "classes_", None)
    row, unit = 0, "target"
    if classes is not None:
        row, unit = _row_of(list(classes), class_label)
    elif class_label is not None:
        raise ValueError(
            f"`class_label` must be None for {type(model).__name__}, which is not a classifier, got {class_label!r}."
        )
    scale = float(getattr(model, "target_scale_", 1.0)) if hasattr(model, "embedding_") else 1.0
    known = None if noise is None else np.atleast_2d(noise)[row] * scale
    return coef[row] * scale, known, unit


def _row_of(classes: list[Any], class_label: Any) -> tuple[int, str]:
    if len(classes) == 2:
        if class_label not in (None, classes[1]):
            raise ValueError(
                f"`class_label` must be None or {classes[1]} for binary models, which score class {classes[1]}."
            )
        return 0, f"log-odds of class {classes[1]}"
    if class_label is None or class_label not in classes:
        raise ValueError(f"`class_label` must be one of the {len(classes)} classes in `classes_`, got {class_label!r}.")
    return classes.index(class_label), f"score of {class_label}"


def cells_of(block: Block, n_cells: int | None = None, known: Any = None) -> PublicValues:
    """Values of a column, on the scale of its schema.

    Parameters
    ----------
    block : Block
    n_cells : int or None
        Number of cells of a number or a date.
    known : list of float or None
        Public proportions of the cells and of missing values; uniform without missing values if None. Finer cells are
        summed.

    Returns
    -------
    PublicValues
    """
    if not block.is_line:
        levels = ("false", "true") if block.column.kind == "flag" else (*(block.column.categories or ()), "other")
        n = block.n_listed
        n_ordered = n if block.column.kind == "ordinal" else 0
        codes = np.arange(len(levels) + 1, dtype=np.int32)
        return PublicValues((*map(str, levels), "missing"), codes, _shares(known, len(codes), n), n_ordered, n)
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
    return PublicValues((*labels, "missing"), np.append(values, np.nan), _shares(known, n + 1, n), n, n)


def _shares(known: Any, n: int, n_listed: int) -> np.ndarray:
    if known is None:
        known = np.arange(n) < max(1, n_listed)
    found = np.asarray(known, float)
    return found / found.sum()


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """Effect of a column on a score, or interaction of two columns.

    Parameters
    ----------
    names : tuple of str
        Name of the column, or of both columns.
    labels : tuple of tuple of str
        Public values of each column: midpoints of bins, categories, "other" and "missing".
    effect : ndarray of shape (n_values,) or (n_values, n_values)
        Mean score at these values, minus the mean over all values.
    noise : ndarray of the shape of `effect`, or None
        Standard deviation of `effect` due to the noise alone, as if rows had no effect. None if the noise of the
        coefficients is unknown, as for least squares.
    n_ordered : tuple of int
        Number of leading values of each column that are ordered.
    n_listed : tuple of int
        Number of leading values of each column that are neither "other" nor "missing".
    unit : str
        Unit of the score.
    difference : tuple of (str, str, float, float or None), or None
        Values with the smallest and the largest effect, the difference, and its standard deviation due to the noise
        alone, as if these values had been chosen in advance. None for a pair.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    effect: np.ndarray
    noise: np.ndarray | None
    n_ordered: tuple[int, ...]
    n_listed: tuple[int, ...]
    unit: str
    difference: tuple[str, str, float, float | None] | None


def column_effects(
    estimator: Any, *, features: Sequence[Any] | None = None, class_label: Any = None
) -> list[ColumnEffect]:
    """Compute the effects of columns on the score of a fitted private model.

    Parameters
    ----------
    estimator : estimator or Pipeline
        A fitted `skdp.DPRandomTreesClassifier` or `skdp.DPRandomTreesRegressor`, alone or in a pipeline behind a
        `skdp.preprocessing.DPTableVectorizer`; or a pipeline of such a vectorizer and a linear model, such as
        `skdp.DPLogisticRegression` or `skdp.DPRidge`.
    features : list of str or (str, str), or None, default=None
        Names of columns, and pairs of names. None is all columns, without pairs. Pairs are supported for random trees
        only.
    class_label : object, optional
        Class whose score is explained. Required for multiclass models.

    Returns
    -------
    effects : list of ColumnEffect
        Effects in the order of `features`.

    Raises
    ------
    ValueError
        The model is not supported, a name is unknown, or `class_label` is missing or not one of the classes.

    Notes
    -----
    The model is additive if it is a linear model behind a vectorizer; its curves are returned as they are. For random
    trees, the effect of a value is the mean score over 128 simulated rows with this value. Their other cells are drawn
    independently from the privately estimated marginals. This is the partial dependence of Friedman (2001), with
    simulated instead of private rows. For a pair of columns, both single effects are subtracted, which leaves the
    interaction (functional ANOVA). It has 8 cells per number and at most the first 12 levels of a category.

    **Noise.** An effect is a linear function of the coefficients. Its weights ``a`` sum to zero over each block, so its
    variance is the sum of ``v * a**2``, with ``v = coef_noise_**2 / (1 - 1 / width)`` for blocks of trees.

    **Guarantees.**

    - Effects and their noise are post-processing of the fitted attributes and public numbers: no row is read, and no
      budget is consumed.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> from skdp.inspection import column_effects
    >>> people = make_census(5_000, as_frame=True, random_state=0)
    >>> model = skdp.tabular_pipeline(schema=people.schema, classes=people.classes).fit(people.data, people.target)
    >>> (age,) = column_effects(model, features=["age"])
    >>> age.names, age.unit
    (('age',), 'log-odds of class 1')
    >>> age.effect.shape
    (33,)
    """
    score = score_of(estimator, class_label)
    known = [block.name for block in score.blocks]
    effects = []
    for feature in known if features is None else features:
        names = tuple(feature) if isinstance(feature, list | tuple) else (feature,)
        if len(names) not in (1, 2) or len(set(names)) < len(names):
            raise ValueError(f"`features` must contain column names or pairs of two names, got {feature!r}.")
        for name in names:
            if name not in known:
                raise ValueError(
                    f"`features` has {name!r}, which is not a column of the model. Use column names of the table."
                )
        effects.append(_effect_of(score, [known.index(name) for name in names]))
    return effects


def report_rows(estimator: Any) -> list[dict[str, Any]]:
    """Return the effects of columns, largest first, as rows of a report; none if the model has no effects."""
    try:
        effects = column_effects(estimator)
    except ValueError:  # another kind of model, or one score for each of several classes
        return []
    rows = []
    for each in effects:
        assert each.difference is not None  # a single column
        low, high, difference, noise = each.difference
        found = {"column": each.names[0], "low": low, "high": high, "difference": difference, "noise": noise}
        rows.append({**found, "unit": each.unit})
    return sorted(rows, key=lambda row: -row["difference"])


def _effect_of(score: Score, numbers: list[int]) -> ColumnEffect:
    cells, rows = centered_rows(score, numbers)
    effect, variance = rows @ score.coef, score.variance(rows)
    # For a single column, the listed values with the least and the largest effect.
    difference = None
    if len(numbers) == 1:
        listed, labels = effect[: cells[0].n_listed], cells[0].labels
        low, high = int(listed.argmin()), int(listed.argmax())
        of_noise = score.variance(rows[[high]] - rows[[low]])
        noise = None if of_noise is None else float(np.sqrt(of_noise[0]))
        difference = labels[low], labels[high], float(listed[high] - listed[low]), noise
    return ColumnEffect(
        names=tuple(score.blocks[k].name for k in numbers),
        labels=tuple(each.labels for each in cells),
        effect=effect,
        noise=None if variance is None else np.sqrt(variance),
        n_ordered=tuple(each.n_ordered for each in cells),
        n_listed=tuple(each.n_listed for each in cells),
        unit=score.unit,
        difference=difference,
    )


def centered_rows(score: Score, numbers: list[int]) -> tuple[list[PublicValues], np.ndarray]:
    """Return the values of one or two columns, and mean rows at these values minus the mean over all values.

    Parameters
    ----------
    score : Score
    numbers : list of int
        Indices of the blocks.

    Returns
    -------
    cells : list of PublicValues
    rows : ndarray of shape (n_values, n_columns) or (n_values, n_values, n_columns)
    """
    cells = [score.cells(k) for k in numbers] if len(numbers) == 1 else [_few(score, k) for k in numbers]
    mesh = np.meshgrid(*(np.arange(len(each.codes)) for each in cells), indexing="ij")
    chosen = {k: each.codes[at.ravel()] for k, each, at in zip(numbers, cells, mesh, strict=True)}
    rows = score.mean_rows(chosen).reshape(*mesh[0].shape, -1)
    for axis, each in enumerate(cells):  # also takes away what each column of a pair does alone
        rows = rows - np.expand_dims(np.tensordot(each.shares, rows, (0, axis)), axis)
    return cells, rows


def _few(score: Score, k: int) -> PublicValues:
    """Reduce the cells of a column, without "other" and "missing"."""
    found = score.cells(k, 8)
    n = found.n_listed if score.blocks[k].is_line else min(found.n_listed, 12)
    shares = found.shares[:n]
    return PublicValues(found.labels[:n], found.codes[:n], shares / shares.sum(), min(n, found.n_ordered), n)


def make_monotonic(pipeline: Any, monotonic_cst: Mapping[str, int]) -> Any:
    """Apply monotonic constraints to a fitted additive model.

    Parameters
    ----------
    pipeline : Pipeline
        A fitted pipeline of `skdp.preprocessing.DPTableVectorizer` and a linear model with one score: binary
        `skdp.DPLogisticRegression`, `skdp.DPRidge` or `skdp.DPLinearRegression`, as
        ``tabular_pipeline(DPLogisticRegression(...))`` returns it.
    monotonic_cst : mapping of str to {-1, 0, 1}
        Constraints by column name, as in scikit-learn: 1 for an increasing score, -1 for a decreasing score, 0 for no
        constraint (the default). Columns must be numbers, dates or ordinal. Choose constraints by domain knowledge, not
        by private rows or curves.

    Returns
    -------
    pipeline : Pipeline
        A copy with other coefficients, and with the same vectorizer, intercept, accountant and privacy cost. Fitting it
        again ignores `monotonic_cst`.

    Raises
    ------
    TypeError, ValueError
        The model is not such a pipeline, a column is unknown or not ordered, or a constraint is not -1, 0 or 1.

    Notes
    -----
    The coefficients of a binned column are replaced by the closest monotone sequence in squared distance (pool adjacent
    violators, Barlow et al. 1972), which preserves their mean. The coefficient of a scaled number is set to 0 if its
    sign is wrong. Both are projections onto a convex set, so they do not move away from the noise-free curve if that is
    monotone. Coefficients of missing values and "other" are unchanged. Random trees are not additive and not supported.

    **Guarantees.**

    - The result is post-processing of the fitted coefficients, the public schema and `monotonic_cst`.

    References
    ----------
    R. E. Barlow, D. J. Bartholomew, J. M. Bremner and H. D. Brunk, "Statistical inference under order restrictions",
    1972.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> from skdp.inspection import make_monotonic
    >>> people = make_census(5_000, as_frame=True, random_state=0)
    >>> linear = skdp.DPLogisticRegression(classes=people.classes)
    >>> model = skdp.tabular_pipeline(linear, schema=people.schema).fit(people.data, people.target)
    >>> older_is_likelier = make_monotonic(model, {"age": 1})
    >>> older_is_likelier.epsilon_ == model.epsilon_
    True
    """
    steps = [step for _, step in getattr(pipeline, "steps", ())]
    if len(steps) != 2 or not isinstance(steps[0], DPTableVectorizer) or not hasattr(steps[1], "predict"):
        raise TypeError(f"`pipeline` must be {_TAKEN_WITH_SIGNS}, got {type(pipeline).__name__}.")
    vectorizer, model = steps
    check_is_fitted(model)
    coef = np.array(getattr(model, "coef_", np.empty(0)), np.float64)
    if hasattr(model, "embedding_") or coef.size != len(vectorizer.get_feature_names_out()):
        raise ValueError(
            f"`pipeline` must be {_TAKEN_WITH_SIGNS}: {type(model).__name__} does not have a single additive score."
        )
    blocks = vectorizer._fitted_blocks
    starts = np.cumsum([0, *(block.width for block in blocks)])
    flat = coef.reshape(-1)
    for k, direction in _read_constraints(monotonic_cst, blocks):
        _project(flat[starts[k] : starts[k + 1]], blocks[k], direction)
    made, learned = copy(pipeline), copy(model)
    learned.coef_ = coef
    if hasattr(learned, "_fitted_inference"):
        learned._fitted_inference = None  # a table of coefficients would be of those that were released
    made.steps = [pipeline.steps[0], (pipeline.steps[1][0], learned)]
    return made


_TAKEN_WITH_SIGNS = (
    "a fitted pipeline of DPTableVectorizer and a linear model, such as "
    "tabular_pipeline(DPLogisticRegression(classes=[0, 1]))"
)


def _read_constraints(given: Any, blocks: list[Block]) -> list[tuple[int, int]]:
    if not isinstance(given, Mapping):
        raise TypeError(f"`monotonic_cst` must be a dict such as {{'column': 1}}, got {show(given)}.")
    names, found = [block.name for block in blocks], []
    for name, direction in given.items():
        if name not in names:
            raise ValueError(f"`monotonic_cst` has {name!r}, which is not a column of the model. Remove it.")
        if isinstance(direction, bool) or direction not in (-1, 0, 1):
            raise ValueError(f"`monotonic_cst` of {name!r} must be 1, -1 or 0, got {show(direction)}.")
        block = blocks[names.index(name)]
        if direction and not (block.is_line or block.column.kind == "ordinal"):
            raise ValueError(
                f"`monotonic_cst` of {name!r} is not supported: the column is a {block.column.kind}, which is not "
                "ordered. Declare it as ordinal in the schema, or remove it."
            )
        if direction:
            found.append((names.index(name), int(direction)))
    return found


def _project(coef: np.ndarray, block: Block, direction: int) -> None:
    """Write the closest monotone coefficients of a block into them."""
    scaled = {"scale": 0, "both": block.width - 1}.get(block.numbers)
    if scaled is not None:
        coef[scaled] = direction * max(0.0, direction * coef[scaled])
    if block.numbers != "scale":
        n = len(block.edges()) - 1 if block.is_line else block.n_listed
        coef[:n] = isotonic_regression(coef[:n], increasing=direction > 0)
