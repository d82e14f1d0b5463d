"""Scores of private rows by a fitted model, in chunks, and their bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.exceptions import NotFittedError

from skdp._checks.leaks import silence
from skdp._checks.numbers import NUMBER, numbers_of, reject, shape_of, values_of
from skdp._checks.parameters import WrongTypeError
from skdp._checks.rows import column_names, take_rows
from skdp._checks.sources import RowSource

FARTHEST = 36.7  # log-odds of 1 - 2**-53; scikit-learn clips probabilities at the same value
_LOGITS = np.sinh(np.linspace(-1.0, 1.0, 8001) * np.arcsinh(FARTHEST))
_MIXED = sum(w / (1.0 + np.exp(-a * _LOGITS)) for w, a in ((0.6, 1.0), (0.25, 1 / 4), (0.15, 1 / 12)))
_PLACES = 0.5 + (_MIXED - 0.5) / (_MIXED[-1] - _MIXED[0])  # exactly 1/2 at a score of 1/2
_PLACES[[0, -1]] = 0.0, 1.0


def places_of(scores: Any) -> np.ndarray:
    """Positions of scores, from 0 to 1. Scores are clipped to [0, 1]; NaN is at 0.

    With log-odds z, the position is 0.6 sigmoid(z) + 0.25 sigmoid(z / 4) + 0.15 sigmoid(z / 12), scaled so that the
    scores 2**-53 and 1 - 2**-53 are at the ends.
    """
    p = np.clip(np.nan_to_num(np.asarray(scores, np.float64)), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.interp(np.log(p) - np.log1p(-p), _LOGITS, _PLACES)


def logits_at(places: Any) -> np.ndarray:
    """Log-odds of the scores at positions."""
    return np.interp(np.asarray(places, np.float64), _PLACES, _LOGITS)


def scores_at(places: Any) -> np.ndarray:
    """Scores at positions; 0 and 1 at the ends."""
    t = np.asarray(places, np.float64)
    inner = 1.0 / (1.0 + np.exp(-logits_at(t)))
    return np.where(t <= 0.0, 0.0, np.where(t >= 1.0, 1.0, inner))


_ROWS = 1 << 16
"""Rows that are scored in one call."""


class RowsElsewhere:
    """Out-of-core rows, with the model's scores of them in memory.

    Parameters
    ----------
    source : RowSource
    n_rows : int
        Number of rows, if the source does not have it.
    """

    def __init__(self, source: RowSource, n_rows: int) -> None:
        self._source, self._features = source, source.of_features()
        self.dtype, self.shape = self._features.dtype, (self._features.n_rows or n_rows, self._features.n_features)

    def read_columns(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the data of each row, with the named columns read."""
        named = {name: each for name, each in given.items() if isinstance(each, str)}
        if named:
            self._source.check_targets()
        return {**given, **{name: self._source.read_column(name, column) for name, column in named.items()}}

    def scores(self, model: Any, score: Callable[[Any, Any], np.ndarray], width: tuple[int, ...] = ()) -> np.ndarray:
        """Read all rows in chunks, and return their scores."""

        def of_block(rows: Any) -> np.ndarray:
            return np.concatenate([found for _, found in ScoredRows(model, rows, score, width).blocks()])

        found: np.ndarray = self._features.map_blocks(of_block)
        if len(found) != self.shape[0]:
            raise ValueError(
                "`X` must have as many rows as `y`. The budget was already charged. Pass one label per row."
            )
        return found


class ScoredRows:
    """Rows that a model scores, or precomputed scores.

    Parameters
    ----------
    model : estimator or None
        Fitted model. If None, `X` contains the scores.
    X : table or ndarray of shape (n_rows, n_scores)
        Private.
    score : callable, optional
        Maps the model and rows to one number per row, or to several.
    width : tuple of int, default=()
        Shape of the score of a row: () for one number, (n_scores,) for several.

    Notes
    -----
    **Guarantees.** The score is the only output of the model that is used: warnings and errors are suppressed. If the
    model raises an error for a row, or returns a wrong number of scores, the score is NaN, independent of the other
    rows.

    Proof. Warnings are ignored. If a block fails, its halves are tried, down to single rows, so that a row has NaN if
    and only if it fails alone, given that the model processes rows independently. If the model multiplies matrices, the
    last bit of a score depends on the number of rows in a call, which is that of the block (`results_of_rows`), and on
    the position of its row, which neighbors share except under ``add_remove`` and for groups of different sizes.
    """

    def __init__(
        self, model: Any, X: Any, score: Callable[[Any, Any], np.ndarray] | None = None, width: tuple[int, ...] = ()
    ) -> None:
        self._model, self._X, self._score, self._width = model, X, score or score_of_two, width
        self.shape = (int(shape_of("X", X)[0]),)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Generate slices of rows and their scores."""
        if isinstance(self._X, RowsElsewhere):
            yield slice(0, self.shape[0]), self._X.scores(self._model, self._score, self._width)
            return
        for start in range(0, self.shape[0], _ROWS):
            rows = slice(start, min(start + _ROWS, self.shape[0]))
            yield rows, self._X[rows].reshape(-1, *self._width) if self._model is None else self._scores(rows)

    def _scores(self, rows: slice) -> np.ndarray:
        def read(places: np.ndarray) -> np.ndarray | None:
            try:
                with silence():
                    found = self._score(self._model, take_rows(self._X, rows.start + places))
            except Exception:  # its message may quote a cell
                return None
            return found if found.shape == (len(places), *self._width) else None

        return results_of_rows(read, rows.stop - rows.start, np.full(self._width, np.nan))


def results_of_rows(read: Callable[[np.ndarray], np.ndarray | None], n: int, failed: Any) -> np.ndarray:
    """Return the result of each of n rows, which is `failed` for a row that fails alone.

    `read` maps numbers of rows to their results, or to None if it fails. The results of all other rows come from one
    call for n rows, in which one of them replaces each row that fails. The rounding of a result can depend on the
    number of rows, but so it does not depend on whether other rows fail.
    """
    places = np.arange(n)
    if (found := read(places)) is not None:
        return found
    results = np.full((n, *np.shape(failed)), failed)
    passing = np.concatenate([_passing(read, part) for part in np.array_split(places, 2)])
    if len(passing):
        passes = np.isin(places, passing)
        found = read(np.where(passes, places, passing[0]))
        if found is not None:
            results[passes] = found[passes]
    return results


def _passing(read: Callable[[np.ndarray], Any], places: np.ndarray) -> np.ndarray:
    """Return the rows that do not fail, by bisection."""
    if not len(places) or read(places) is not None:
        return places
    if len(places) == 1:
        return places[:0]
    half = len(places) // 2
    return np.concatenate([_passing(read, places[:half]), _passing(read, places[half:])])


def reject_other_scores(
    model: Any, X: Any, score: Callable[[Any, Any], np.ndarray], width: tuple[int, ...] = ()
) -> None:
    """Reject a model that is not fitted, or has a wrong number of scores, by a row of zeros, which is public."""
    shape, is_fitted = None, True
    try:
        with silence():
            zeros = X.iloc[:0].reindex([0], fill_value=0) if hasattr(X, "iloc") else np.zeros((1, X.shape[1]), X.dtype)
            shape = score(model, zeros).shape
    except NotFittedError:
        is_fitted = False
    except Exception:  # not every model accepts zeros
        pass
    if not is_fitted:  # every row would fail, at full privacy cost
        raise ValueError(f"`model` must be fitted, got an unfitted {type(model).__name__}. Fit it to other rows.")
    if shape not in (None, (1, *width)):
        wanted = f"{width[0]} scores" if width else "one score of the positive class, or one target,"
        raise WrongTypeError(f"`model` must return {wanted} per row, which {type(model).__name__} does not.")


def score_of_two(model: Any, rows: Any) -> np.ndarray:
    """Probability of the positive class; without `predict_proba`, the logistic function of the decision function."""
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(rows), np.float64)
        return chances[:, 1] if chances.shape[1:] == (2,) else np.empty((0, 0))
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(model.decision_function(rows), np.float64))))


def score_of_each(model: Any, rows: Any) -> np.ndarray:
    """Probabilities of all classes or labels; without `predict_proba`, logistic functions of the decision function."""
    if not hasattr(model, "predict_proba"):
        return score_of_two(model, rows)
    chances = model.predict_proba(rows)
    if isinstance(chances, list):  # one array of two columns for each label
        return np.column_stack([np.asarray(each, np.float64)[:, 1] for each in chances])
    return np.asarray(chances, np.float64)


def check_methods(model: Any, methods: tuple[str, ...]) -> None:
    """Reject a model without a scoring method."""
    if not any(hasattr(model, each) for each in methods):
        raise WrongTypeError(
            f"`model` must be a fitted model with {' or '.join(methods)}, got {type(model).__name__}. To pass scores "
            "as `X`, set it to None."
        )


def check_width(model: Any, X: Any) -> Any:
    """Return the rows with the columns of the model, or raise an error for a wrong number of columns."""
    names, known = column_names(X), getattr(model, "feature_names_in_", None)
    if names is not None and known is not None and not hasattr(model, "steps") and set(known) <= set(names):
        X = nw.from_native(X).select(list(known)).to_native()  # columns of groups or subgroups need not be features
    width, found = getattr(model, "n_features_in_", None), shape_of("X", X)
    if len(found) != 2 or (width is not None and found[1] != width):
        raise ValueError(f"`X` must have the {width} columns that the model was fitted to, got shape {found}.")
    return X


def scores_given(y_score: Any, width: int = 1) -> np.ndarray:
    """Return precomputed scores, of shape (n_rows, width). They can contain NaN."""
    scores = values_of("X", y_score)
    if scores.ndim == 1:
        scores = scores[:, None]
    if scores.ndim != 2 or scores.shape[1] != width:
        one = "one score per row, that of the positive class (set one_vs_rest=True and `classes` for multiclass scores)"
        wanted = f"{width} scores per row" if width > 1 else one
        raise ValueError(f"`X` must have {wanted} if the model is None, got shape {scores.shape}.")
    fault, numbers = numbers_of(scores)
    if fault != NUMBER:
        reject(fault, "X")
    with np.errstate(all="ignore"):
        return numbers.astype(np.float64)


def bins_of(scores: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the bin of each score, of equal width on the scale of places; scores are clipped, NaN is in the first."""
    return np.minimum((places_of(scores) * n_bins).astype(np.int64), n_bins - 1)
