"""`evaluate`: how good a model is on private rows, privately."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor

from skdp._checks.parameters import without_removed
from skdp._checks.rows import number_of_columns
from skdp.metrics.binary import BinaryFigures
from skdp.metrics.histogram_evaluation import CountedEvaluation
from skdp.metrics.multiclass import MulticlassEvaluation, MultilabelEvaluation, OneVsRestEvaluation
from skdp.metrics.regression import RegressionEvaluation


class PrivateEvaluation(CountedEvaluation, BinaryFigures):
    """Figures of a model of two classes on private rows, all from one noisy table of counts. Made by `evaluate`.

    Attributes
    ----------
    epsilon_, delta_ : float
        Price of all figures together.
    privacy_event_ : DpEvent
        What was released.
    privacy_unit_ : {"row", "group"}
        What the price is for.
    classes_ : ndarray of shape (2,)
        Classes, that of the scores last.
    noisy_counts_ : ndarray of shape (n_subgroups, 2, n_bins)
        Released counts, in rows or units, as they were drawn: some may be negative.
    noise_deviation_ : float
        Standard deviation of the noise of a count, in the same unit.
    n_bins_ : int
        Number of bins of the score.

    See Also
    --------
    evaluate : Make one.
    """

    _part = BinaryFigures


@without_removed
def evaluate(
    model: Any, X: Any, y: Any, *, epsilon: Any = None, delta: float | str = 0, groups: Any = None,
    sample_weight: Any = None, weight_bound: float | None = None, by: Any = None, categories: Any = None,
    classes: Any = None, y_bounds: Any = None, one_vs_rest: bool = False, noise: str = "laplace",
    n_bins: int | str = "auto", level: float = 0.95, adjacency: Any = None, accountant: Any = None,
    random_state: Any = None,
) -> Any:  # fmt: skip
    """Evaluate a model on private rows.

    **Two classes.** One table is released: how many rows of either class have a score in each of some bins, with noise.
    ROC curve and AUROC, precision and recall, accuracy and confusion matrix at any threshold, calibration, Brier score,
    log loss, lift, and the best threshold for a cost follow from it, each with an interval for noise and sampling, and
    no figure costs anything more.

    **More classes.** The table is the confusion matrix. With ``one_vs_rest=True`` a third of the budget is for that,
    and two thirds for the scores of each class: all figures of two classes follow for each class against all others,
    and their means.

    **Several labels a row.** The tables of two classes of each label share one release.

    **Regressors.** Released are counts of the sizes of errors in bins that grow with the size, and two sums of the
    targets: R^2, root mean squared and mean absolute error, quantiles of the error and prediction intervals follow.

    Parameters
    ----------
    model : estimator or None
        Fitted model of any library: a classifier of two classes with ``predict_proba``, or ``decision_function``, whose
        logistic function is the score then; one of more classes, or a regressor, with ``predict``. It was not fitted to
        these rows, and scores each row for itself. None: `X` holds the scores, or the predictions.
    X : table of shape (n_samples, n_features), or array-like of shape (n_samples,) if `model` is None
        Private rows; or private scores, probabilities of the second class of two, or predictions. Of shape (n_samples,
        n_classes) with `one_vs_rest`, columns in ascending order of the classes, and of shape (n_samples, n_labels) for
        several labels. Scores are cut to [0, 1]; NaN counts as 0, and so does a row that the model refuses. Of more
        classes that row counts as predicted to be of the first one, and with a regressor its error as the range of the
        targets. Rows that are not in memory, `skdp.datasets.TableRows`, Dask frames and datasets of Arrow, are read
        block by block, after the charge. A gap in a file is NaN.
    y : array-like of shape (n_samples,), array or frame of shape (n_samples, n_labels), or str
        Private labels or targets. Several labels a row are 0 or 1 each; how many there are is public. A string names a
        column of `X`, which is no feature then. Columns that `y`, `sample_weight`, `groups` and `by` name are read
        before the charge, of files and Dask frames too, as what is given in memory is.
    epsilon : float or Risk, default=None
        Privacy budget of all figures together, in nats. A number, or a bound on the risk of membership inference such
        as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default=0
        Probability with which the guarantee may fail: 0 with Laplace noise. See `skdp.DPLogisticRegression` for "auto".
    groups : array-like of shape (n_samples,), str or None, default=None
        Private label of the unit of each row, such as a person or a household, or the name of a column of `X`, which
        is no feature then. The guarantee is then for all rows of one label together, else for one row, and each unit
        counts once: its rows share a weight of 1.
    sample_weight : array-like of shape (n_samples,), str or None, default=None
        Private weights of the rows, or the name of a column of `X`, which is no feature then.
    weight_bound : float or None, default=None
        Public number by which weights are divided, and at which they are cut. None is 1.
    by : array-like of shape (n_samples,), str or None, default=None
        Private subgroup of each row, or the name of a column of `X`, which may be a feature. All subgroups are in the
        one table.
    categories : list or None, default=None
        Public list of the subgroups. Rows of others are in "other".
    classes : array-like of shape (n_classes,) or None, default=None
        Public classes. None takes those of the model, or 0 and 1. Of several labels a row, their names; None takes the
        columns of `y`, or numbers.
    y_bounds : tuple (low, high) or None, default=None
        Public bounds on the targets of a regressor, at which targets and predictions are cut. None takes those of the
        model, if it has some.
    one_vs_rest : bool, default=False
        Whether to count the scores of each of more than two classes as well, for AUROC, average precision, log loss,
        Brier score and calibration of each class against all others, and their means. The confusion matrix has three
        times the noise then. The class of the largest score is that which is predicted.
    noise : {"laplace", "gaussian"}, default="laplace"
        Discrete Laplace noise, which has the smaller deviation for a table in which a row is counted once; or normal
        noise, which needs a `delta`, and leaves a ledger all-Gaussian. Normal noise grows with the root of the number
        of labels, Laplace noise with the number: it is the smaller one from some 20 labels on.
    n_bins : int or "auto", default="auto"
        Number of bins of the score. "auto" takes a power of two near 2.4 times the cube root of n epsilon, from 8 to
        256. Three in five have equal width in the score, the others are finer near 0 and 1
        (`skdp.metrics.scored_rows.scores_at`). For the size of an error, "auto" takes 26 bins, or 51.
    level : float, default=0.95
        Probability with which an interval covers the figure of the population.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Ledger to which the release is charged. These rows are another data set than those that the model was fitted
        to, and have a ledger of their own, unless they are charged as one.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the result
        reproducible and issues a `PrivacyLeakWarning`.

    Returns
    -------
    PrivateEvaluation, MulticlassEvaluation, OneVsRestEvaluation, MultilabelEvaluation or RegressionEvaluation
        Figures with intervals, of a model of two classes, of more, of several labels, or of a regressor.

    Raises
    ------
    ValueError
        A parameter, label or weight is invalid. Nothing was charged.
    BudgetExceededError
        The budget of the accountant does not admit the release. Nothing was charged.

    Notes
    -----
    Intervals come from a parametric bootstrap: tables are drawn from the noisy one, noise and all. They are for the
    population that the rows are an independent sample of. They are wider where bins do not resolve what a metric
    depends on, such as the order of scores within a bin, or tied scores at a threshold. Where the rarer class has fewer
    rows than seven standard deviations of its noise, ranking metrics, precision, recall and log loss have the whole
    range of the metric as their interval.

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
    """By what is public: a regressor, a model of several labels, of more than two classes, or of two."""
    of_numbers = y_bounds is not None or (hasattr(model, "__sklearn_tags__") and is_regressor(model))
    if n_labels > 1 and of_numbers:
        raise ValueError(f"y has {n_labels} columns of targets: evaluate one at a time.")
    known = classes if classes is not None else getattr(model, "classes_", (0, 1))
    found: type[CountedEvaluation] = MulticlassEvaluation if len(known) > 2 else PrivateEvaluation
    if n_labels > 1 or of_numbers:
        found = MultilabelEvaluation if n_labels > 1 else RegressionEvaluation
    if one_vs_rest and (n_labels > 1 or of_numbers):
        raise ValueError("one_vs_rest=True is for one label a row, of more than two classes: leave it out.")
    return OneVsRestEvaluation if one_vs_rest else found


def n_columns(y: Any) -> int:
    """Number of labels, or of scores, a row, which is public."""
    first = y[0] if isinstance(y, list | tuple) and y else None
    return number_of_columns(y) if hasattr(y, "shape") or isinstance(first, list | tuple | np.ndarray) else 1
