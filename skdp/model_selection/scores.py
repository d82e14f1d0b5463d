"""Scores that can be released: sums over rows, or over groups, of bounded contributions."""

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
from skdp._checks.rows import encode_labels, take_rows
from skdp.mechanisms.bounded_sum import VectorQuery
from skdp.metrics import binary as binary_metrics
from skdp.metrics.histogram_evaluation import GRID, RowsOfCounts, amounts_of, count_cells
from skdp.metrics.replicates import Metric, project
from skdp.metrics.scored_rows import ScoredRows, bins_of, results_of_rows

LOSS_BOUND = 5.0
"""Bound of the log loss of a row: that of a probability of 0.7% for the true class."""


class Moves(VectorQuery):
    """Query (`skdp.mechanisms.bounded_sum`) of bounded numbers, such as centered contributions."""

    width = 1

    def __init__(self, size: float) -> None:
        self.row_limit = size

    def vectors(self, rows: Any, *targets: Any) -> np.ndarray:
        return np.asarray(rows)[:, None]


@dataclass(frozen=True)
class PrivateScore:
    """Score that is a mean over rows of bounded contributions.

    A private search can release such a score with noise, because one row changes it by a known amount.

    Parameters
    ----------
    name : str
        Name of the score in messages and in the accountant's record.
    contributions : callable
        ``contributions(estimator, X, y)`` returns an array of shape (n,) with one number in [0, `bound`] per row. Each
        number must depend on its row and the estimator only. Numbers outside the range are clipped to it. NaN and
        infinity count as the worst contribution, which is 0, or `bound` if less is better, so that a diverged model
        cannot win.
    bound : float
        Largest contribution of a row, finite and above 0.
    greater_is_better : bool, default=True
        Whether larger means are better. If False, the score is -1 times the mean.

    Notes
    -----
    **Guarantees.** Zeroing out, adding or removing one row changes `total` by at most `sensitivity`, which is half of
    `bound`. Replacing one row changes it by at most twice that. The same holds for one group, for any number of rows.

    Proof. Any value that `contributions` returns for a row is mapped to [0, `bound`]: a finite number is clipped to
    this range, and any other is replaced by one of its ends, which depends on `greater_is_better` only. Relative to the
    center of the range, a row contributes a number in [-C, C] that depends on no other row, and a zeroed-out row
    contributes 0. Centering halves the noise. Multiplication by the relative weight, a number in [0, 1], keeps the
    bound. The contributions of a group are summed and clipped to [-C, C] by one factor for all of its rows.

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
            raise ValueError(f"`bound` must be the largest contribution of a row, above 0, got {self.bound!r}.")
        object.__setattr__(self, "bound", float(self.bound))  # half of a narrower type can underflow to 0

    @property
    def sensitivity(self) -> float:
        """Sensitivity C of `total`; replacing a row is accounted for as 2 C."""
        return 0.5 * self.bound

    def total(self, estimator: Any, X: Any, y: Any, weights: Any = None, units: Units | None = None) -> float:
        """Sum the contributions, relative to the center of their range.

        The sum of a group is clipped to the sensitivity. The accuracy of groups is therefore the fraction of groups
        with more correct than wrong rows, where a tie counts as one half.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator.
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows.
        y : ndarray of shape (n_samples,)
            Private labels.
        weights : ndarray of shape (n_samples,) or None, default=None
            Private weights, clipped to their bound and divided by it. Contributions are multiplied by them.
        units : Units or None, default=None
            Private groups of the rows. If None, each row is one.

        Returns
        -------
        float
            Exact sum, to be released by a mechanism.

        Raises
        ------
        ValueError
            `contributions` does not return one real number per row.
        """
        return self._sum(self._moves(estimator, X, y), weights, units)

    def _moves(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """Contribution of each row, relative to the center of the range."""
        if len(y) == 0:
            return np.zeros(0)
        found = values_of("the score", self.contributions(estimator, X, y))
        if found.shape != (len(y),):
            raise WrongTypeError(
                f"`contributions` of the score {self.name!r} must return one number per row, got shape {found.shape}."
            )
        kind, found = numbers_of(found)
        if kind != NUMBER:
            raise WrongTypeError(f"`contributions` of the score {self.name!r} must return one real number per row.")
        with np.errstate(over="ignore"):
            found = found.astype(np.float64)
        counted = np.clip(np.where(np.isfinite(found), found, self._worst), 0.0, self.bound)
        return np.asarray(counted - self.sensitivity, np.float64)

    def _sum(self, moves: np.ndarray, weights: Any, units: Units | None) -> float:
        """The sum over groups, each clipped to [-C, C]."""
        size, power = math.frexp(self.sensitivity)  # whose square is a normal number
        total = Moves(size).new_sum("zero_out")
        total.add(np.ldexp(moves, -power), 1.0 if weights is None else weights, units=units)
        return float(np.ldexp(total.vector[0], power))

    @property
    def _worst(self) -> float:
        return 0.0 if self.greater_is_better else self.bound

    def total_of_all(self, estimator: Any, X: Any, y: Any, weights: Any = None, units: Units | None = None) -> float:
        """Compute `total`, counting a row without a prediction as the worst, without reporting it.

        Contributions are functions of one row each, so bisection finds the rows that fail.

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
            Exact sum, to be released by a mechanism.
        """
        return self._sum(self._moves_of_all(estimator, X, y), weights, units)

    def _moves_of_all(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """Contribution of each row; a row that cannot be predicted has the worst."""

        def read(rows: np.ndarray) -> np.ndarray | None:
            try:
                return self._moves(estimator, take_rows(X, rows), y[rows])
            except (ValueError, ArithmeticError) as error:
                if isinstance(error, WrongTypeError):
                    raise
            return None

        return results_of_rows(read, len(y), self._worst - self.sensitivity)

    def value(self, total: float, n: float) -> float:
        """Convert a total to a score.

        Parameters
        ----------
        total : float
            Exact or noisy total.
        n : float
            Public number of rows, or of groups.

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
"""Scores of regressors, the default first, and the power of the error whose mean each is."""


@dataclass(frozen=True)
class Errors:
    """Powers of the errors of targets that are clipped to public bounds.

    Notes
    -----
    **Guarantees.** A contribution is a function of its own row, and `PrivateScore` clips it to `bound`, the power of
    the distance between the bounds, which is a function of parameters alone.

    Proof. Bounds are constructor parameters, and a target or a prediction is a function of one row and of the model. If
    both lie between the bounds, so does their distance, and nothing is clipped; a prediction outside counts as the
    worst.
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
    """Return the name of a score, or raise an error if classifiers, or regressors, cannot be compared by it.

    Parameters
    ----------
    scoring : str, PrivateScore or None
        None is accuracy, or the mean absolute error, which has less relative noise than squared errors: these are small
        compared with their bound.
    regressor : bool
        Whether the estimator is a regressor.

    Returns
    -------
    str
    """
    if isinstance(scoring, PrivateScore | TableScore):
        if regressor and isinstance(scoring, TableScore):
            raise ValueError(
                f"`scoring` must be a score for regressors, got {scoring.name!r}, which is for classifiers."
            )
        return scoring.name
    known, others = (ERRORS, SCORES) if regressor else (SCORES, ERRORS)
    name = next(iter(known)) if scoring is None else scoring
    if isinstance(name, str) and name in known:
        return name
    remedy = f"Use one of {', '.join(map(repr, known))}, or a skdp.model_selection.PrivateScore"
    if isinstance(name, str) and name in others:
        needed, wrong = ("regressors", "classifiers") if regressor else ("classifiers", "regressors")
        raise ValueError(f"`scoring` must be a score for {needed}, got {name!r}, which is for {wrong}. {remedy}.")
    if name in ("r2", "explained_variance", "d2_absolute_error_score") and regressor:
        raise ValueError(
            f"`scoring` must be a mean of bounded contributions, got {name!r}, which divides by the variance of the "
            f"targets. {remedy}; the smallest mean squared error is also the largest R^2."
        )
    raise ValueError(
        f"`scoring` must be a score with bounded contributions, got {scoring!r}. {remedy}. For roc_auc and similar "
        "metrics, use make_private_scorer."
    )


def score_of(scoring: Any, estimator: Any) -> PrivateScore | TableScore:
    """Return the score that `scoring` names, for a private estimator whose parameters were checked."""
    if isinstance(scoring, TableScore):
        classes = getattr(estimator, "classes", None)
        if classes is None or len(classes) != 2:
            name = type(estimator).__name__
            raise ValueError(
                f"`scoring` must be 'accuracy' for multiclass {name}, got {scoring.name!r}, a binary score."
            )
        return scoring
    if isinstance(scoring, PrivateScore):
        return scoring
    name = name_of_score(scoring, regressor=is_regressor(estimator))
    if name in SCORES:
        return SCORES[name]
    given = getattr(estimator, "y_bounds", None)
    if given is None:
        raise ValueError(
            f"`scoring` must be a skdp.model_selection.PrivateScore with its own bound, got {name!r}, which requires "
            f"the parameter y_bounds. {type(estimator).__name__} does not have it."
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
"""Names of scores for `make_private_scorer`, larger for a better model."""


@dataclass(frozen=True)
class TableScore:
    """Score that is computed from a noisy histogram of the model's scores. Created by `make_private_scorer`.

    Parameters
    ----------
    name : str
        Name of the score in messages and in the accountant's record.
    metric : callable
        Maps histograms of shape (n_tables, 2, n_bins), negatives and then positives in bins of the score, to one number
        for each histogram, larger for a better model.
    n_bins : int
        Number of bins of the score.

    Notes
    -----
    **Guarantees.** Zeroing out, adding or removing one row, or one group of rows, changes `total` by at most 1 in
    Euclidean norm; replacing one changes it by at most twice that.

    Proof. A row has one score and one class, so it is in one cell, and contributes 1 to it, or its relative weight,
    which is in [0, 1]. The contributions of a group are nonnegative and sum to at most 1, so their Euclidean norm is at
    most 1. A zeroed-out row contributes nothing.
    """

    name: str
    metric: Callable[[Any], Any]
    n_bins: int

    sensitivity = 1.0

    def total(self, estimator: Any, X: Any, y: Any, weights: Any = None, units: Units | None = None) -> np.ndarray:
        """Count rows, or groups, by class and score.

        Parameters
        ----------
        estimator : estimator
            Fitted estimator.
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Private rows. If the estimator raises an error for a row, the row has the score 0.
        y : ndarray of shape (n_samples,)
            Private labels.
        weights : ndarray of shape (n_samples,) or None, default=None
            Private weights, clipped to their bound and divided by it.
        units : Units or None, default=None
            Private groups of the rows. If None, each row is one.

        Returns
        -------
        ndarray of shape (2, n_bins)
            Exact counts, to be released by a mechanism.
        """
        amounts = amounts_of(1.0 if weights is None else weights, units, len(y))
        rows = RowsOfCounts(encode_labels(y, estimator.classes_), amounts, np.zeros(len(y), np.int64))
        return count_cells(ScoredRows(estimator, X), rows, (1, 2, self.n_bins), bins_of)[0] / GRID

    total_of_all = total

    def value(self, total: Any, n: float) -> float:
        """Convert a histogram to a score.

        Parameters
        ----------
        total : ndarray of shape (2, n_bins)
            Exact or noisy counts.
        n : float
            Ignored: the histogram has its own number of rows.

        Returns
        -------
        float
            Score, larger for a better model.
        """
        return float(np.asarray(self.metric(project(np.asarray(total, np.float64)[None], None)))[0])


def make_private_scorer(metric: str | Metric, *, n_bins: int = 16, name: str | None = None) -> TableScore:
    """Make a score for private searches from a metric of a histogram.

    The contribution of a row to a ROC AUC is not bounded, so a search cannot release the ROC AUC itself with little
    noise. It can release a noisy histogram of the model's scores at the privacy cost of one score, and compute the ROC
    AUC from it. The noise is larger than that of "accuracy", which is a single number.

    Parameters
    ----------
    metric : {"roc_auc", "average_precision", "f1", "neg_brier_score"} or callable
        Name of a metric, or a function of histograms of shape (n_tables, 2, n_bins), negatives and then positives in
        bins of the score, that returns one number for each histogram, larger for a better model.
    n_bins : int, default=16
        Number of bins of the score, which are finer near 0 and 1.
    name : str or None, default=None
        Name of the score in messages and in the accountant's record. If None, the name of `metric` is used.

    Returns
    -------
    TableScore
        A value of `scoring` for binary classifiers.

    Raises
    ------
    ValueError
        `metric` is an unknown name.

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
    bins = check_count("n_bins", n_bins, at_least=2, constraint="an integer of at least 2, such as 16")
    if isinstance(metric, str) and metric in METRICS:
        return TableScore(metric if name is None else name, METRICS[metric], bins)
    if callable(metric):
        return TableScore(str(getattr(metric, "__name__", "score")) if name is None else name, metric, bins)
    raise ValueError(f"`metric` must be a function or one of {', '.join(map(repr, METRICS))}, got {show(metric)}.")
