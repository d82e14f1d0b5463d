"""Scores that can be released: sums over rows, or over units of several rows, of bounded contributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from skdp._checks.groups import Units
from skdp._checks.numbers import NUMBER, numbers_of, values_of
from skdp._checks.parameters import WrongTypeError, check_count, show
from skdp._checks.rows import encode_labels
from skdp.mechanisms.bounded_sum import VectorQuery
from skdp.metrics import binary as binary_metrics
from skdp.metrics.histogram_evaluation import GRID, RowsOfCounts, amounts_of, count_cells
from skdp.metrics.replicates import Metric, project
from skdp.metrics.scored_rows import ScoredRows, bins_of

LOSS_BOUND = 5.0
"""Where a row's log-loss is cut off: at a probability of 0.7 % for what is true."""


class Moves(VectorQuery):
    """Query (`skdp.mechanisms.bounded_sum`) of numbers of a known size, such as contributions less their middle."""

    width = 1

    def __init__(self, size: float) -> None:
        self.row_limit = size

    def vectors(self, rows: Any, *targets: Any) -> np.ndarray:
        return np.asarray(rows)[:, None]


@dataclass(frozen=True)
class PrivateScore:
    """Mean over rows of bounded contributions, a score that one row moves by a known amount.

    Parameters
    ----------
    name : str
        Name of the score, used in messages and in the ledger.
    contributions : callable
        ``contributions(estimator, X, y)`` returns an array of shape (n,) with one number in [0, `bound`] per row. Each
        number depends on its row and the estimator only. Numbers outside the range are clipped to it. NaN and infinity
        count as the worst contribution, which is 0, or `bound` if less is better, so a model that diverged cannot win.
    bound : float
        Largest contribution of a row, finite and above 0.
    greater_is_better : bool, default=True
        Whether larger means are better. If not, the score is -1 times the mean.

    Notes
    -----
    **Guarantees.** One row that is replaced by a null row, added or removed moves `total` by at most `sensitivity`,
    half of `bound`; replaced by any other row, by at most twice that. The same holds for a unit, however many rows it
    has.

    Proof. Whatever `contributions` returns for a row, the value counted lies in [0, `bound`]: a finite number is
    clipped to this range, and any other is replaced by one of its ends, which depends on `greater_is_better` only.
    Counted from the middle of the range, a row adds a number in [-C, C] that depends on no other row, and a null row
    adds 0. Counting from the middle halves the noise. Times the share of the row's weight, a number in [0, 1], it is no
    longer. What the rows of a unit add together is clipped to [-C, C] by one number that multiplies all of them
    (`skdp.mechanisms.bounded_sum`).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.model_selection import PrivateScore
    >>> def squared_errors(model, X, y):
    ...     return (model.predict_proba(X)[:, 1] - y) ** 2
    >>> brier = PrivateScore("neg_brier", squared_errors, bound=1.0, greater_is_better=False)
    >>> brier.sensitivity
    0.5
    """

    name: str
    contributions: Callable[[Any, Any, Any], np.ndarray]
    bound: float
    greater_is_better: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.bound < math.inf:
            raise ValueError(f"bound={self.bound!r} is out of range: give the largest contribution of a row, above 0.")
        object.__setattr__(self, "bound", float(self.bound))  # half of it in a narrower type may be 0

    @property
    def sensitivity(self) -> float:
        """C: the largest move of `total` by one row; an exchange is priced as a move by 2 C."""
        return 0.5 * self.bound

    def total(self, estimator: Any, X: Any, y: Any, weights: Any = None, units: Units | None = None) -> float:
        """Sum the contributions, counted from the middle of their range.

        The sum of a unit is clipped to the sensitivity. So the accuracy of units is the share of those with more right
        rows than wrong ones, where a tie counts as one half.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator.
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : ndarray of shape (n_samples,)
            Private labels.
        weights : ndarray of shape (n_samples,) or None, default=None
            Private weights, divided by their bound and cut at it, by which contributions are multiplied.
        units : Units or None, default=None
            Private units of the rows. None: each row is one.

        Returns
        -------
        float
            Exact sum, which a mechanism has to release.

        Raises
        ------
        ValueError
            `contributions` does not give one real number per row.
        """
        return self._sum(self._moves(estimator, X, y), weights, units)

    def _moves(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """What each row adds: its contribution, counted from the middle of the range."""
        if len(y) == 0:
            return np.zeros(0)
        found = values_of("the score", self.contributions(estimator, X, y))
        if found.shape != (len(y),):
            raise WrongTypeError(
                f"scoring={self.name!r} gave shape {found.shape} for so many rows: give one number a row."
            )
        kind, found = numbers_of(found)
        if kind != NUMBER:
            raise WrongTypeError(f"scoring={self.name!r} gave something else than real numbers: give one number a row.")
        with np.errstate(over="ignore"):
            found = found.astype(np.float64)
        counted = np.clip(np.where(np.isfinite(found), found, self._worst), 0.0, self.bound)
        return np.asarray(counted - self.sensitivity, np.float64)

    def _sum(self, moves: np.ndarray, weights: Any, units: Units | None) -> float:
        """The sum over units, each clipped to [-C, C]."""
        size, power = math.frexp(self.sensitivity)  # whose square is a normal number
        total = Moves(size).new_sum("zero_out")
        total.add(np.ldexp(moves, -power), 1.0 if weights is None else weights, units=units)
        return float(np.ldexp(total.vector[0], power))

    @property
    def _worst(self) -> float:
        return 0.0 if self.greater_is_better else self.bound

    def total_of_all(self, estimator: Any, X: Any, y: Any, weights: Any = None, units: Units | None = None) -> float:
        """Compute `total`, counting a row that cannot be predicted as the worst, without reporting it.

        Contributions are functions of one row each, so bisection finds which rows are refused.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator.
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : ndarray of shape (n_samples,)
            Private labels.
        weights : ndarray of shape (n_samples,) or None, default=None
            As for `total`.
        units : Units or None, default=None
            As for `total`.

        Returns
        -------
        float
            Exact sum, which a mechanism has to release.
        """
        return self._sum(self._moves_of_all(estimator, X, y), weights, units)

    def _moves_of_all(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """What each row adds, that of a row that cannot be predicted being the worst."""
        try:
            return self._moves(estimator, X, y)
        except (ValueError, ArithmeticError) as error:
            if isinstance(error, WrongTypeError):
                raise
        if len(y) == 1:
            return np.array([self._worst - self.sensitivity])
        half = len(y) // 2
        parts = (slice(0, half), slice(half, len(y)))
        return np.concatenate(
            [self._moves_of_all(estimator, X.iloc[p] if hasattr(X, "iloc") else X[p], y[p]) for p in parts]
        )

    def value(self, total: float, n: float) -> float:
        """Convert a total to a score.

        Parameters
        ----------
        total : float
            Exact or noisy total.
        n : float
            Public number of rows, or of units.

        Returns
        -------
        float
            Score, larger for a better model.
        """
        mean = total / n + self.sensitivity
        return mean if self.greater_is_better else -mean


def _hits(estimator: Any, X: Any, y: Any) -> np.ndarray:
    right = np.asarray(estimator.predict(X)) == y
    return right.reshape(len(y), -1).all(axis=1).astype(np.float64)


def _log_losses(estimator: Any, X: Any, y: Any) -> np.ndarray:
    chances = estimator.predict_proba(X)[np.arange(len(y)), encode_labels(y, estimator.classes_)]
    return -np.log(np.maximum(chances, math.exp(-LOSS_BOUND)))


SCORES = {
    "accuracy": PrivateScore("accuracy", _hits, 1.0),
    "neg_log_loss": PrivateScore("neg_log_loss", _log_losses, LOSS_BOUND, greater_is_better=False),
}
"""Scores of classifiers, the default first."""

ERRORS = {"neg_mean_absolute_error": 1, "neg_mean_squared_error": 2}
"""Scores of regressors, the default first, and the power of the error that each is a mean of."""


@dataclass(frozen=True)
class Errors:
    """Powers of the errors of targets that are moved into public bounds.

    Notes
    -----
    **Guarantees.** A contribution is a function of its own row, and `PrivateScore` cuts it off at `bound`, the power
    of the distance between the bounds, which parameters alone decide.

    Proof. Bounds are constructor parameters, and a target or a prediction is a function of one row and of the model.
    If both lie between the bounds, so does their distance, and nothing is cut off; a prediction further off counts as
    the worst.
    """

    low: float
    high: float
    power: int

    @property
    def bound(self) -> float:
        """The largest contribution."""
        return (self.high - self.low) ** self.power

    def __call__(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        with np.errstate(over="ignore"):  # infinity counts as the worst
            errors = np.abs(estimator.predict(X) - np.clip(y, self.low, self.high))
            return np.asarray(errors**self.power)


def name_of_score(scoring: Any, *, regressor: bool) -> str:
    """Return the name of a score, refused if it is none that classifiers, or regressors, can be compared by.

    Parameters
    ----------
    scoring : str, PrivateScore or None
        None is accuracy, or the mean absolute error, of which noise hides less than of squares: these are small parts
        of their bound.
    regressor : bool
        Whether numbers are predicted.

    Returns
    -------
    str
    """
    if isinstance(scoring, PrivateScore | TableScore):
        if regressor and isinstance(scoring, TableScore):
            raise ValueError(f"scoring={scoring.name!r} compares classes, and the estimator predicts numbers.")
        return scoring.name
    known, others = (ERRORS, SCORES) if regressor else (SCORES, ERRORS)
    name = next(iter(known)) if scoring is None else scoring
    if isinstance(name, str) and name in known:
        return name
    remedy = f"use one of {', '.join(map(repr, known))}, or give a skdp.model_selection.PrivateScore"
    if isinstance(name, str) and name in others:
        what = "compares classes, and the estimator predicts numbers"
        what = what if regressor else "compares numbers, and the estimator predicts classes"
        raise ValueError(f"scoring={name!r} {what}: {remedy}.")
    if name in ("r2", "explained_variance", "d2_absolute_error_score") and regressor:
        raise ValueError(
            f"scoring={name!r} divides by how far targets spread, so a row is no bounded part of it: {remedy}; the "
            "smallest mean of squares is also the largest R^2."
        )
    raise ValueError(
        f"scoring={scoring!r} has no private mechanism here (of roc_auc and the like a row is no bounded part: use "
        "make_private_scorer): "
        f"{remedy}."
    )


def score_of(scoring: Any, estimator: Any) -> PrivateScore | TableScore:
    """Return the score that `scoring` names, for a private estimator whose parameters were checked."""
    if isinstance(scoring, TableScore):
        classes = getattr(estimator, "classes", None)
        if classes is None or len(classes) != 2:
            name = type(estimator).__name__
            raise ValueError(f"scoring={scoring.name!r} is for two classes and {name} has others: use 'accuracy'.")
        return scoring
    if isinstance(scoring, PrivateScore):
        return scoring
    name = name_of_score(scoring, regressor=is_regressor(estimator))
    if name in SCORES:
        return SCORES[name]
    given = getattr(estimator, "y_bounds", None)
    if given is None:
        raise ValueError(
            f"scoring={name!r} cuts errors off by y_bounds, which {type(estimator).__name__} has not: give a "
            "skdp.model_selection.PrivateScore with a bound of your own."
        )
    errors = Errors(float(given[0]), float(given[1]), ERRORS[name])
    return PrivateScore(name, errors, errors.bound, greater_is_better=False)


# --- `make_private_scorer` ---


def _f1(tables: np.ndarray) -> np.ndarray:
    return binary_metrics.f1(tables, np.array([0.5]))[..., 0]


def _neg_brier_score(tables: np.ndarray) -> np.ndarray:
    return -binary_metrics.brier_score(tables)


METRICS: dict[str, Metric] = {
    "roc_auc": binary_metrics.roc_auc,
    "average_precision": binary_metrics.average_precision,
    "f1": _f1,
    "neg_brier_score": _neg_brier_score,
}
"""Scores that `make_private_scorer` knows by name, larger for a better model."""


@dataclass(frozen=True)
class TableScore:
    """A figure of a table of scores, which one row moves by one count. Made by `make_private_scorer`.

    Parameters
    ----------
    name : str
        Name of the score, used in messages and in the ledger.
    metric : callable
        Maps tables of shape (n_tables, 2, n_bins), negatives and then positives in bins of the score, to one number a
        table, larger for a better model.
    n_bins : int
        Number of bins of the score.

    Notes
    -----
    **Guarantees.** One row, or one unit of several rows, that is replaced by a null row, added or removed moves `total`
    by at most 1 in Euclidean norm; replaced by any other, by at most twice that.

    Proof. A row has one score and one class, so it is in one cell, and adds 1 to it, or its share of the weight, which
    is in [0, 1]. What the rows of a unit add is not negative and has a sum of at most 1 (`amounts_of`), so its
    Euclidean norm is at most 1. A null row adds nothing.
    """

    name: str
    metric: Callable[[Any], Any]
    n_bins: int

    sensitivity = 1.0

    def total(self, estimator: Any, X: Any, y: Any, weights: Any = None, units: Units | None = None) -> np.ndarray:
        """Count rows, or units, by class and score.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator.
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows. A row that the estimator refuses has the score 0.
        y : ndarray of shape (n_samples,)
            Private labels.
        weights : ndarray of shape (n_samples,) or None, default=None
            Private weights, divided by their bound and cut at it.
        units : Units or None, default=None
            Private units of the rows. None: each row is one.

        Returns
        -------
        ndarray of shape (2, n_bins)
            Exact counts, which a mechanism has to release.
        """
        amounts = amounts_of(1.0 if weights is None else weights, units, len(y))
        rows = RowsOfCounts(encode_labels(y, estimator.classes_), amounts, None)
        return count_cells(ScoredRows(estimator, X), rows, (1, 2, self.n_bins), bins_of)[0] / GRID

    total_of_all = total

    def value(self, total: Any, n: float) -> float:
        """Convert a table to a score.

        Parameters
        ----------
        total : ndarray of shape (2, n_bins)
            Exact or noisy counts.
        n : float
            Not used: the table has its own number of rows.

        Returns
        -------
        float
            Score, larger for a better model.
        """
        return float(np.asarray(self.metric(project(np.asarray(total, np.float64)[None], None)))[0])


def make_private_scorer(metric: str | Metric, *, n_bins: int = 16, name: str | None = None) -> TableScore:
    """Make a score of searches from a figure that follows from a table of counts.

    A row contributes no bounded term to an AUROC, so a search cannot release the AUROC itself with little noise. It can
    release a table of how many rows of either class have a score in each of some bins, at the price of one score: the
    AUROC follows from it. There is more noise in it than in "accuracy", which is one number.

    Parameters
    ----------
    metric : {"roc_auc", "average_precision", "f1", "neg_brier_score"} or callable
        What follows from the table: by name, or a function of tables of shape (n_tables, 2, n_bins), negatives and then
        positives in bins of the score, to one number a table, larger for a better model.
    n_bins : int, default=16
        Number of bins of the score, which are finer near 0 and 1 (`skdp.metrics.scored_rows.scores_at`).
    name : str or None, default=None
        Name of the score in messages and in the ledger. None takes that of `metric`.

    Returns
    -------
    TableScore
        A value of `scoring`, for classifiers of two classes.

    Raises
    ------
    ValueError
        `metric` is no name that is known.

    See Also
    --------
    PrivateScore : A mean of bounded contributions of rows.

    Examples
    --------
    >>> from skdp import DPGridSearchCV, DPLogisticRegression
    >>> from skdp.model_selection import make_private_scorer
    >>> search = DPGridSearchCV(
    ...     DPLogisticRegression(classes=[0, 1]), {"alpha": [0.0, 0.1]}, scoring=make_private_scorer("roc_auc")
    ... )
    >>> search.scoring.name
    'roc_auc'
    """
    bins = check_count("n_bins", n_bins, at_least=2, remedy="choose a whole number above 1, such as 16")
    if isinstance(metric, str) and metric in METRICS:
        return TableScore(metric if name is None else name, METRICS[metric], bins)
    if callable(metric):
        return TableScore(str(getattr(metric, "__name__", "score")) if name is None else name, metric, bins)
    raise ValueError(f"metric={show(metric)} is not known: use one of {', '.join(map(repr, METRICS))}, or a function.")
