"""`evaluate`: differentially private evaluation of a model on private rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor

from skdp._checks.parameters import without_removed
from skdp._checks.rows import number_of_columns
from skdp.metrics.binary import BinaryMetrics
from skdp.metrics.histogram_evaluation import CountedEvaluation
from skdp.metrics.multiclass import MulticlassEvaluation, MultilabelEvaluation, OneVsRestEvaluation
from skdp.metrics.regression import RegressionEvaluation


class PrivateEvaluation(CountedEvaluation, BinaryMetrics):
    """Evaluation of a binary classifier on private rows, computed from one noisy histogram. Created by `evaluate`.

    Attributes
    ----------
    epsilon_, delta_ : float
        Guarantee of all metrics together.
    privacy_event_ : DpEvent
        Event of the release.
    privacy_unit_ : {"row", "group"}
        Privacy unit.
    classes_ : ndarray of shape (2,)
        Negative class and positive class.
    noisy_counts_ : ndarray of shape (n_subgroups, 2, n_bins)
        Released counts, in rows or groups, before projection. They can be negative.
    noise_deviation_ : float
        Standard deviation of the noise of a count, in the same unit.
    n_bins_ : int
        Number of bins of the score.

    See Also
    --------
    evaluate : Create an evaluation.
    """

    _part = BinaryMetrics

    def __str__(self) -> str:
        return f"{super().__str__()}\nThe positive class is {self.classes_[1]}."


@without_removed
def evaluate(
    model: Any, X: Any, y: Any, *, epsilon: Any = None, delta: float | str = 0, groups: Any = None,
    sample_weight: Any = None, weight_bound: float | None = None, by: Any = None, categories: Any = None,
    classes: Any = None, y_bounds: Any = None, one_vs_rest: bool = False, noise: str = "laplace",
    n_bins: int | str = "auto", level: float = 0.95, adjacency: Any = None, accountant: Any = None,
    random_state: Any = None,
) -> Any:  # fmt: skip
    """Evaluate a model on private rows.

    The function releases one noisy histogram and computes all metrics from it, so that any number of metrics has the
    privacy cost of one. Each metric has a confidence interval that accounts for privacy noise and sampling. See
    ``docs/evaluation.md``.

    - **Binary classifiers.** The histogram counts the scores of each class. ROC and precision-recall curves, metrics
      and confusion matrix at any threshold, calibration, Brier score, log loss, lift, and the threshold of the smallest
      cost follow from it.
    - **Multiclass classifiers.** The release is the confusion matrix. With ``one_vs_rest=True``, two thirds of the
      budget are for histograms of the scores: all binary metrics of each class against all others, and their means,
      follow.
    - **Multilabel classifiers.** The binary histograms of all labels share one release.
    - **Regressors.** The release is a histogram of absolute errors and two sums of the targets. R^2, root mean squared
      and mean absolute error, error quantiles and prediction intervals follow.

    Parameters
    ----------
    model : estimator or None
        Fitted model of any library: a binary classifier with ``predict_proba`` or ``decision_function`` (the score is
        then its logistic function), a multiclass classifier or a regressor with ``predict``. It must not be trained on
        these rows, and must score each row independently. If None, `X` contains the scores or predictions.
    X : table of shape (n_samples, n_features), or array-like of shape (n_samples,) if `model` is None
        Private rows, or private scores: probabilities of the positive class, or predictions. The shape is (n_samples,
        n_classes) with `one_vs_rest`, with columns in ascending order of the classes, and (n_samples, n_labels) for
        multilabel targets. Scores are clipped to [0, 1], and NaN counts as 0. If the model raises an error for a row,
        the row has the score 0 (binary), the first class as prediction (multiclass) or the largest possible error
        (regression). Out-of-core rows (`skdp.datasets.TableRows`, Dask frames and Arrow datasets) are read in chunks
        after the charge. Missing values in a file are NaN.
    y : array-like of shape (n_samples,), array or frame of shape (n_samples, n_labels), or str
        Private labels or targets. Multilabel targets are 0 or 1, and their number is public. A string is the name of a
        column of `X`, which is then not a feature. Columns named by `y`, `sample_weight`, `groups` and `by` are read
        before the charge, also from files and Dask frames.
    epsilon : float or Risk, default=None
        Privacy budget of all metrics together, in nats. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default=0
        The delta of the (epsilon, delta) guarantee; it must be 0 with Laplace noise. See `skdp.DPLogisticRegression`
        for "auto".
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifier of each row, such as a person or a household, or the name of a column of `X`, which is
        then not a feature. If set, the guarantee is for all rows of one group, otherwise for one row. Each group counts
        once: its rows share a weight of 1.
    sample_weight : array-like of shape (n_samples,), str or None, default=None
        Private weights of the rows, or the name of a column of `X`, which is then not a feature.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. If None, the bound is 1.
    by : array-like of shape (n_samples,), str or None, default=None
        Private subgroup of each row, or the name of a column of `X`, which can be a feature. All subgroups share the
        histogram, at no additional privacy cost.
    categories : list or None, default=None
        Public list of the subgroups. Rows of other subgroups are in "other".
    classes : array-like of shape (n_classes,) or None, default=None
        Public classes. If None, the classes of the model are used, or 0 and 1. For multilabel targets, the names of the
        labels; if None, the columns of `y`, or numbers.
    y_bounds : tuple (low, high) or None, default=None
        Public bounds on the targets of a regressor. Targets and predictions are clipped to them. If None, the bounds of
        the model are used.
    one_vs_rest : bool, default=False
        Whether to release the scores of each class of a multiclass classifier as well, for ROC AUC, average precision,
        log loss, Brier score and calibration of each class against all others, and their means. The noise of the
        confusion matrix is then three times as large. The prediction is the class with the largest score.
    noise : {"laplace", "gaussian"}, default="laplace"
        Discrete Laplace noise has the smaller standard deviation for a histogram that counts each row once. Gaussian
        noise requires a `delta`, and composes better with other Gaussian releases of the accountant. Gaussian noise
        grows with the square root of the number of labels, and is smaller than Laplace noise from about 20 labels on.
    n_bins : int or "auto", default="auto"
        Number of bins of the score. "auto" uses a power of two near 2.4 times the cube root of n epsilon, from 8 to
        256. Three in five bins have equal width, the others are finer near 0 and 1. For absolute errors, "auto" uses 26
        or 51 bins.
    level : float, default=0.95
        Confidence level of the intervals.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant to which the release is charged. If the test rows are a separate data set, use a separate accountant
        for them.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the result
        reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    PrivateEvaluation, MulticlassEvaluation, OneVsRestEvaluation, MultilabelEvaluation or RegressionEvaluation
        Metrics with intervals, by the type of the model.

    Raises
    ------
    ValueError
        A parameter, label or weight is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    Notes
    -----
    Intervals come from a parametric bootstrap of the noisy histogram. They refer to the population that the rows are an
    independent sample of. They are wider if bins do not resolve the metric, for example because of tied scores at a
    threshold. If the rarer class has fewer rows than seven standard deviations of its noise, the intervals of ranking
    metrics, precision, recall and log loss span the whole range of the metric.

    Examples
    --------
    >>> import numpy as np
    >>> import skdp
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> labels = rng.uniform(size=10_000) < scores
    >>> evaluation = skdp.evaluate(None, scores, labels, epsilon=0.5)
    >>> round(evaluation.roc_auc.value, 1), evaluation.epsilon_
    (0.8, 0.5)
    """
    kind = kind_of(model, classes, y_bounds, n_labels=n_columns(y), one_vs_rest=one_vs_rest)
    evaluation = kind(
        model, epsilon=epsilon, delta=delta, noise=noise, classes=classes, y_bounds=y_bounds, categories=categories,
        n_bins=n_bins, weight_bound=weight_bound, level=level, adjacency=adjacency, accountant=accountant,
        random_state=random_state,
    )  # fmt: skip
    return evaluation.fit(X, y, groups=groups, sample_weight=sample_weight, by=by)


def kind_of(
    model: Any, classes: Any, y_bounds: Any, *, n_labels: int = 1, one_vs_rest: bool = False
) -> type[CountedEvaluation]:
    """The type of evaluation by public facts: regression, multilabel, multiclass or binary."""
    of_numbers = y_bounds is not None or (hasattr(model, "__sklearn_tags__") and is_regressor(model))
    if n_labels > 1 and of_numbers:
        raise ValueError(f"`y` must have one column of targets, got {n_labels}. Evaluate one target at a time.")
    known = classes if classes is not None else getattr(model, "classes_", (0, 1))
    found: type[CountedEvaluation] = MulticlassEvaluation if len(known) > 2 else PrivateEvaluation
    if n_labels > 1 or of_numbers:
        found = MultilabelEvaluation if n_labels > 1 else RegressionEvaluation
    if one_vs_rest and (n_labels > 1 or of_numbers):
        raise ValueError("`one_vs_rest` must be False for multilabel classifiers and regressors.")
    return OneVsRestEvaluation if one_vs_rest else found


def n_columns(y: Any) -> int:
    """Number of labels, or of scores, per row, which is public."""
    first = y[0] if isinstance(y, list | tuple) and y else None
    return number_of_columns(y) if hasattr(y, "shape") or isinstance(first, list | tuple | np.ndarray) else 1
