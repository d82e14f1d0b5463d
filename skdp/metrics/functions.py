"""Single metrics of private labels and scores with the names of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.base.estimates import Estimate, EstimatedCurve
from skdp.metrics.multiclass import MetricsOfEach, MulticlassEvaluation
from skdp.metrics.private_evaluation import evaluate, n_columns


def private_roc_auc_score(
    y_true: Any, y_score: Any, *, epsilon: float, average: str | None = "macro", multi_class: str = "raise",
    **options: Any,
) -> Estimate:  # fmt: skip
    """Area under the ROC curve of private scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_labels)
        Private labels, 0 and 1 unless `classes` is set.
    y_score : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
        Private scores: probabilities of the positive class, of each of the `classes` in ascending order, or of each
        label.
    epsilon : float
        Privacy budget.
    average : {"macro", None}, default="macro"
        For multiclass and multilabel targets: "macro" returns the mean, None an array with one value per class or
        label.
    multi_class : {"raise", "ovr"}, default="raise"
        "ovr" is required for multiclass scores and compares each class with all others.
    **options : dict
        Other parameters of `skdp.evaluate`, such as `accountant`, `groups` and `sample_weight`.

    Returns
    -------
    Estimate
        ROC AUC with an interval.

    See Also
    --------
    skdp.evaluate : All metrics for the privacy cost of one.

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
        raise ValueError(f"`multi_class` must be 'ovr', got {multi_class!r}. One-vs-one averages are not supported.")
    if multi_class == "raise" and n_columns(y_score) > 1 and n_columns(y_true) == 1:
        raise ValueError("`multi_class` must be 'ovr' for multiclass scores, got 'raise'.")
    return _averaged(_of_scores(y_true, y_score, epsilon, options, average), "roc_auc", average)


def private_average_precision_score(
    y_true: Any, y_score: Any, *, epsilon: float, average: str | None = "macro", **options: Any
) -> Estimate:
    """Average precision of private scores. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    average : {"macro", None}, default="macro"
        For multiclass and multilabel targets: "macro" returns the mean, None an array with one value per class or
        label.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        Average precision with an interval.
    """
    return _averaged(_of_scores(y_true, y_score, epsilon, options, average), "average_precision", average)


def private_brier_score_loss(y_true: Any, y_score: Any, *, epsilon: float, **options: Any) -> Estimate:
    """Brier score of private scores; multiclass scores are summed over the classes. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        Brier score with an interval.
    """
    return _averaged(_of_scores(y_true, y_score, epsilon, options), "brier_score")


def private_log_loss(y_true: Any, y_score: Any, *, epsilon: float, **options: Any) -> Estimate:
    """Log loss, in nats, of private scores. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
        Private labels and scores.
    epsilon : float
        Privacy budget.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        Log loss with an interval.
    """
    return _averaged(_of_scores(y_true, y_score, epsilon, options), "log_loss")


def private_accuracy_score(
    y_true: Any, y_score: Any, *, epsilon: float, threshold: float = 0.5, **options: Any
) -> Estimate:
    """Accuracy of private scores at a threshold, or of multiclass predictions. See `private_roc_auc_score`.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores. With more than two `classes`, labels and predicted classes.
    epsilon : float
        Privacy budget.
    threshold : float, default=0.5
        Smallest score for which the positive class is predicted. Ignored with more than two `classes`.
    **options : dict
        Other parameters of `skdp.evaluate`, such as `classes`.

    Returns
    -------
    Estimate
        Accuracy with an interval.
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
        Smallest score for which the positive class is predicted.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        Precision with an interval.
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
        Smallest score for which the positive class is predicted.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        Recall with an interval.
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
        Smallest score for which the positive class is predicted.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        F1 score with an interval.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).f1(threshold)


def private_confusion_matrix(
    y_true: Any, y_score: Any, *, epsilon: float, threshold: float = 0.5, **options: Any
) -> Estimate:
    """Confusion matrix of private scores at a threshold, or of multiclass predictions.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Private labels and scores. With more than two `classes`, labels and predicted classes.
    epsilon : float
        Privacy budget.
    threshold : float, default=0.5
        Smallest score for which the positive class is predicted. Ignored with more than two `classes`.
    **options : dict
        Other parameters of `skdp.evaluate`, such as `classes`.

    Returns
    -------
    Estimate
        Arrays of shape (n_classes, n_classes): rows are true classes, columns are predicted classes.
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
        ROC curve with a confidence band.
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
        Precision-recall curve with a confidence band.
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
        Calibration curve with a confidence band.
    """
    return evaluate(None, y_score, y_true, epsilon=epsilon, **options).calibration_curve(n_bins)


def private_r2_score(y_true: Any, y_pred: Any, *, epsilon: float, y_bounds: Any, **options: Any) -> Estimate:
    """Coefficient of determination R^2 of private predictions.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Private targets and predictions.
    epsilon : float
        Privacy budget.
    y_bounds : tuple (low, high)
        Public bounds. Targets and predictions are clipped to them.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        R^2 with an interval.

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
        Public bounds. Targets and predictions are clipped to them.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        Mean squared error with an interval.
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
        Public bounds. Targets and predictions are clipped to them.
    **options : dict
        Other parameters of `skdp.evaluate`.

    Returns
    -------
    Estimate
        Mean absolute error with an interval.
    """
    return evaluate(None, y_pred, y_true, epsilon=epsilon, y_bounds=y_bounds, **options).mean_absolute_error


def _of_scores(
    y_true: Any, y_score: Any, epsilon: float, options: dict[str, Any], average: str | None = "macro"
) -> Any:
    """Evaluate binary, multiclass or multilabel scores, by the public shapes of `y_true` and `y_score`."""
    if average not in ("macro", None):
        raise ValueError(f"`average` must be 'macro' (the mean) or None (an array), got {average!r}.")
    several = n_columns(y_score) > 1 and n_columns(y_true) == 1
    return evaluate(None, y_score, y_true, epsilon=epsilon, **{"one_vs_rest": several, **options})


def _averaged(found: Any, name: str, average: str | None = "macro") -> Estimate:
    """A metric of an evaluation, or an array with one value per class or label."""
    if average == "macro" or not isinstance(found, MetricsOfEach):
        return getattr(found, name)
    figures = zip(*(getattr(each, name) for each in found.each.values()), strict=True)
    arrays: list[Any] = [np.array(each) for each in figures]
    return Estimate(*arrays)
