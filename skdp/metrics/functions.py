"""Metrics of scikit-learn on private labels and scores, each in a line; `evaluate` gives all of them at one price."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.base.estimates import Estimate, EstimatedCurve
from skdp.metrics.multiclass import FiguresOfEach, MulticlassEvaluation
from skdp.metrics.private_evaluation import evaluate, n_columns


def private_roc_auc_score(
    y_true: Any, y_score: Any, *, epsilon: float, average: str | None = "macro", multi_class: str = "raise",
    **options: Any,
) -> Estimate:  # fmt: skip
    """Area under the ROC curve of private scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_labels)
        Private labels, 0 and 1 unless `classes` are given.
    y_score : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
        Private scores: probabilities of the second class, of each of more `classes` in ascending order, or of each
        label.
    epsilon : float
        Privacy budget.
    average : {"macro", None}, default="macro"
        Of several classes or labels: their mean, or an array of all.
    multi_class : {"raise", "ovr"}, default="raise"
        "ovr", each class against all others, where there are more than two.
    **options : dict
        Other parameters of `skdp.evaluate`, such as `accountant`, `groups` and `sample_weight`.

    Returns
    -------
    Estimate
        With an interval.

    See Also
    --------
    skdp.evaluate : All metrics at the price of one.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import private_roc_auc_score
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.uniform(size=10_000)
    >>> y_true = rng.uniform(size=10_000) < y_score
    >>> round(private_roc_auc_score(y_true, y_score, epsilon=0.5).value, 1)
    0.8
    """
    if multi_class not in ("raise", "ovr"):
        raise ValueError(f"multi_class={multi_class!r} is not counted: give 'ovr', each class against all others.")
    if multi_class == "raise" and n_columns(y_score) > 1 and n_columns(y_true) == 1:
        raise ValueError("multi_class='raise' with scores of several classes: give multi_class='ovr'.")
    return _averaged(_of_scores(y_true, y_score, epsilon, options, average), "roc_auc", average)


def private_average_precision_score(
    y_true: Any, y_score: Any, *, epsilon: float, average: str | None = "macro", **options: Any
) -> Estimate:
    """Average precision of private scores. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,), or of several columns
        Private labels and scores.
    epsilon : float
        Privacy budget.
    average : {"macro", None}, default="macro"
        Of several classes or labels: their mean, or an array of all.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return _averaged(_of_scores(y_true, y_score, epsilon, options, average), "average_precision", average)


def private_brier_score_loss(y_true: Any, y_score: Any, *, epsilon: float, **options: Any) -> Estimate:
    """Brier score of private scores, of more classes summed over them. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,), or of several columns
        Private labels and scores.
    epsilon : float
        Privacy budget.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return _averaged(_of_scores(y_true, y_score, epsilon, options), "brier_score")


def private_log_loss(y_true: Any, y_score: Any, *, epsilon: float, **options: Any) -> Estimate:
    """Log loss, in nats, of private scores. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,), or of several columns
        Private labels and scores.
    epsilon : float
        Privacy budget.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return _averaged(_of_scores(y_true, y_score, epsilon, options), "log_loss")


def private_accuracy_score(
    y_true: Any, y_score: Any, *, epsilon: float, threshold: float = 0.5, **options: Any
) -> Estimate:
    """Accuracy of private scores at a threshold, or of predictions of several classes. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores; with more than two `classes`, labels and predicted ones.
    epsilon : float
        Privacy budget.
    threshold : float, default=0.5
        Score from which on the second class is predicted. Not used with more than two `classes`.
    **options : dict
        Other parameters of `skdp.evaluate`, such as `classes`.

    Returns
    -------
    Estimate
        With an interval.
    """
    found = evaluate(None, y_score, y_true, epsilon=epsilon, **options)
    return found.accuracy if isinstance(found, MulticlassEvaluation) else found.accuracy(threshold)


def private_precision_score(
    y_true: Any, y_score: Any, *, epsilon: float, threshold: float = 0.5, **options: Any
) -> Estimate:
    """Precision of private scores at a threshold. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    threshold : float, default=0.5
        Score from which on the second class is predicted.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).precision(threshold)


def private_recall_score(
    y_true: Any, y_score: Any, *, epsilon: float, threshold: float = 0.5, **options: Any
) -> Estimate:
    """Recall of private scores at a threshold. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    threshold : float, default=0.5
        Score from which on the second class is predicted.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).recall(threshold)


def private_f1_score(y_true: Any, y_score: Any, *, epsilon: float, threshold: float = 0.5, **options: Any) -> Estimate:
    """F1 score of private scores at a threshold. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    threshold : float, default=0.5
        Score from which on the second class is predicted.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).f1(threshold)


def private_confusion_matrix(
    y_true: Any, y_score: Any, *, epsilon: float, threshold: float = 0.5, **options: Any
) -> Estimate:
    """Confusion matrix of private scores at a threshold, or of predictions of several classes.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores; with more than two `classes`, labels and predicted ones.
    epsilon : float
        Privacy budget.
    threshold : float, default=0.5
        Score from which on the second class is predicted. Not used with more than two `classes`.
    **options : dict
        Other parameters of `skdp.evaluate`, such as `classes`.

    Returns
    -------
    Estimate
        Of arrays of shape (n_classes, n_classes): rows are classes, columns predictions.
    """
    found = evaluate(None, y_score, y_true, epsilon=epsilon, **options)
    return found.confusion_matrix if isinstance(found, MulticlassEvaluation) else found.confusion_matrix(threshold)


def private_roc_curve(y_true: Any, y_score: Any, *, epsilon: float, **options: Any) -> EstimatedCurve:
    """ROC curve of private scores. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    EstimatedCurve
        With a band.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).roc_curve()


def private_precision_recall_curve(y_true: Any, y_score: Any, *, epsilon: float, **options: Any) -> EstimatedCurve:
    """Precision-recall curve of private scores. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    EstimatedCurve
        With a band.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).precision_recall_curve()


def private_calibration_curve(
    y_true: Any, y_score: Any, *, epsilon: float, n_bins: int = 8, **options: Any
) -> EstimatedCurve:
    """Calibration curve of private scores. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    n_bins : int, default=8
        Number of points.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    EstimatedCurve
        With a band.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).calibration_curve(n_bins)


def private_r2_score(y_true: Any, y_pred: Any, *, epsilon: float, y_bounds: Any, **options: Any) -> Estimate:
    """R^2, 1 less the mean squared error divided by the variance of the targets, of private predictions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets and predictions.
    epsilon : float
        Privacy budget.
    y_bounds : tuple (low, high)
        Public bounds, at which targets and predictions are cut.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import private_r2_score
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.uniform(size=10_000)
    >>> y_true = y_pred + rng.normal(0.0, 0.1, 10_000)
    >>> round(private_r2_score(y_true, y_pred, epsilon=2.0, y_bounds=(0, 1)).value, 1)
    0.9
    """
    return evaluate(None, y_pred, y_true, epsilon=epsilon, y_bounds=y_bounds, **options).r2


def private_mean_squared_error(y_true: Any, y_pred: Any, *, epsilon: float, y_bounds: Any, **options: Any) -> Estimate:
    """Mean squared error of private predictions. See `private_r2_score`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets and predictions.
    epsilon : float
        Privacy budget.
    y_bounds : tuple (low, high)
        Public bounds, at which targets and predictions are cut.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return evaluate(None, y_pred, y_true, epsilon=epsilon, y_bounds=y_bounds, **options).mean_squared_error


def private_mean_absolute_error(y_true: Any, y_pred: Any, *, epsilon: float, y_bounds: Any, **options: Any) -> Estimate:
    """Mean absolute error of private predictions. See `private_r2_score`.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets and predictions.
    epsilon : float
        Privacy budget.
    y_bounds : tuple (low, high)
        Public bounds, at which targets and predictions are cut.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        With an interval.
    """
    return evaluate(None, y_pred, y_true, epsilon=epsilon, y_bounds=y_bounds, **options).mean_absolute_error


def _of_scores(
    y_true: Any, y_score: Any, epsilon: float, options: dict[str, Any], average: str | None = "macro"
) -> Any:
    """Evaluate scores of two classes, of more, or of labels, by the public shapes of both."""
    if average not in ("macro", None):
        raise ValueError(f"average={average!r} is not told: give 'macro', the mean, or None, all figures.")
    several = n_columns(y_score) > 1 and n_columns(y_true) == 1
    return evaluate(None, y_score, y_true, epsilon=epsilon, **{"one_vs_rest": several, **options})


def _averaged(found: Any, name: str, average: str | None = "macro") -> Estimate:
    """A figure of an evaluation, or of each class or label of it."""
    if average == "macro" or not isinstance(found, FiguresOfEach):
        return getattr(found, name)
    figures = zip(*(getattr(each, name) for each in found.each.values()), strict=True)
    arrays: list[Any] = [np.array(each) for each in figures]
    return Estimate(*arrays)
