"""What each column, or a pair of them, does to a score: from released coefficients and public numbers, for free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.effects.scores import PublicValues, Score, names_of, score_of

_CELLS_OF_PAIRS = 8
_LEVELS_OF_PAIRS = 12


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """What a column, or a pair of columns beyond each alone, adds to a score.

    Parameters
    ----------
    names : tuple of str
        One column, or two.
    labels : tuple of tuple of str
        Public values of each column: middles of bins or cells, levels, "other", "gap".
    effect : ndarray of shape (n_values,) or (n_values, n_values)
        Mean of the score at these values, less that over all values.
    noise : ndarray of the shape of `effect`, or None
        Standard deviation of `effect` by the noise of the fit alone, as if rows added nothing. None where the noise of
        the coefficients is not known, as for least squares.
    n_ordered : tuple of int
        How many values of each column, the first ones, lie on a line.
    n_listed : tuple of int
        How many values of each column, the first ones, are neither "other" nor "gap".
    unit : str
        Unit of the score, in words.
    difference : tuple of (str, str, float, float or None), or None
        Listed values with the least and the largest effect, the difference, and its standard deviation by noise alone,
        had these values been chosen before. None for a pair.
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
    """Compute what columns do to the score of a fitted private model. No row is read, and nothing is charged.

    Parameters
    ----------
    estimator : estimator or Pipeline
        A fitted `skdp.DPRandomTreesClassifier` or `skdp.DPRandomTreesRegressor`, alone or behind a
        `skdp.DPTableVectorizer`, as `skdp.tabular_pipeline` makes it; or a pipeline of such a vectorizer and a linear
        model, such as `skdp.DPLogisticRegression` or `skdp.DPRidge`.
    features : list of str or (str, str), or None, default=None
        Columns, and pairs of columns. None is all columns, without pairs. Only models of trees have pairs.
    class_label : object, optional
        Class whose score it is. Required for more than two classes.

    Returns
    -------
    effects : list of ColumnEffect
        In the order of `features`.

    Raises
    ------
    ValueError
        The model has no such curves, a name is unknown, or `class_label` is missing or not one of the classes.

    Notes
    -----
    A linear model behind a vectorizer is a sum of curves, which are shown as they are. The score of random trees is a
    linear function of leaves. Its effect at a value is the mean over 128 public rows that have this value and others in
    the other columns: drawn from the shares of people that the fit released, column by column as if they were
    independent. This is the partial dependence of Friedman (2001), over public rows instead of private ones. A pair has
    what is left of the mean at both values when both effects are taken away: an interaction in the sense of the
    functional analysis of variance. It has 8 cells of a number, and at most 12 levels of a category, the first ones.

    **Noise.** An effect is linear in the coefficients, and the noise of these is independent between blocks and of one
    size in each, but for the projection that lets the coefficients of a block sum to zero. As an effect is a difference
    of means of rows, its weights ``a`` sum to zero over each block too, and its variance is that of independent
    coefficients, the sum of ``v * a**2``, with ``v = coef_noise_**2 / (1 - 1 / width)`` for blocks of trees.

    **Guarantees.**

    - Effects and their noise are a function of the fitted state and of public numbers: no row is read, and nothing is
      charged.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001.

    Examples
    --------
    >>> import skdp
    >>> from skdp.datasets import make_census
    >>> from skdp.effects import column_effects
    >>> people = make_census(5_000, as_frame=True, random_state=0)
    >>> model = skdp.tabular_pipeline(schema=people.schema, classes=people.classes).fit(people.data, people.target)
    >>> (age,) = column_effects(model, features=["age"])
    >>> low, high, difference, noise = age.difference
    >>> bool(difference > 0)
    True
    """
    score = score_of(estimator, class_label)
    known = names_of(score.blocks)
    wanted = known if features is None else features
    return [_effect_of(score, [_number(name, known) for name in _names(each)]) for each in wanted]


def report_rows(estimator: Any) -> list[dict[str, Any]]:
    """Return what the columns of a model do, the largest first, as rows of a report; none where it has no curves."""
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
    cells, rows = centred_rows(score, numbers)
    effect, variance = rows @ score.coef, score.variance(rows)
    return ColumnEffect(
        names=tuple(score.blocks[k].name for k in numbers),
        labels=tuple(each.labels for each in cells),
        effect=effect,
        noise=None if variance is None else np.sqrt(variance),
        n_ordered=tuple(each.n_ordered for each in cells),
        n_listed=tuple(each.n_listed for each in cells),
        unit=score.unit,
        difference=_difference(score, cells[0], rows, effect) if len(numbers) == 1 else None,
    )


def centred_rows(score: Score, numbers: list[int]) -> tuple[list[PublicValues], np.ndarray]:
    """Return the values of one column or two, and mean rows at these less those over all values of each column.

    Parameters
    ----------
    score : Score
    numbers : list of int
        Of the blocks.

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


def _difference(
    score: Score, cells: PublicValues, rows: np.ndarray, effect: np.ndarray
) -> tuple[str, str, float, float | None]:
    listed = effect[: cells.n_listed]
    low, high = int(listed.argmin()), int(listed.argmax())
    variance = score.variance(rows[[high]] - rows[[low]])
    noise = None if variance is None else float(np.sqrt(variance[0]))
    return cells.labels[low], cells.labels[high], float(listed[high] - listed[low]), noise


def _few(score: Score, k: int) -> PublicValues:
    """Fewer cells of a column, without "other" and "gap"."""
    found = score.cells(k, _CELLS_OF_PAIRS)
    n = found.n_listed if score.blocks[k].is_line else min(found.n_listed, _LEVELS_OF_PAIRS)
    shares = found.shares[:n]
    return PublicValues(found.labels[:n], found.codes[:n], shares / shares.sum(), min(n, found.n_ordered), n)


def _names(feature: Any) -> tuple[Any, ...]:
    names = tuple(feature) if isinstance(feature, list | tuple) else (feature,)
    if len(names) not in (1, 2) or len(set(names)) < len(names):
        raise ValueError(f"features has {feature!r}: give the name of a column, or a pair of two names.")
    return names


def _number(name: Any, known: list[str]) -> int:
    if name not in known:
        raise ValueError(f"features has {name!r}, no column that the model learned from: give names of the table.")
    return known.index(name)
