"""Differentially private naive Bayes."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skdp._checks.leaks import report_classes_read
from skdp._checks.notices import few_rows_notice
from skdp._checks.parameters import public_bounds, silent_arithmetic
from skdp._checks.rows import check_classes, check_labels, check_table, classes_of, encode_labels, row_indicators_of
from skdp._checks.weights import WeightReader
from skdp.accounting import GaussianDpEvent
from skdp.base.estimator import PrivateEstimator, with_parameters
from skdp.base.fit import Fit, NoisySum, begin
from skdp.base.private_step import StepPlan
from skdp.mechanisms.bounded_sum import VectorQuery

COUNT_SHARE = 0.125
"""Squared weight of a row in the count of its class, divided by the number of columns."""

LEAST_VARIANCE = 1e-9
"""Of columns scaled to [-1, 1], where the noise permits less."""

_ROWS = 2048

_SIGNAL_OF_ROWS = 2.0
"""There are few rows (`skdp._checks.notices`) below 5 sigma (d + 2) for binary problems. For 50 to 20,000 rows of 3, 10
and 40 columns at epsilon 1, the standard deviation of the accuracy over eight fits was 0.03 to 0.08 below this limit,
and at most 0.02 above.
"""


class ClassMoments(VectorQuery):
    """Query for counts, sums and sums of squares of columns in each class.

    Parameters
    ----------
    bounds : ndarray of shape (d, 2)
        Bounds from which columns are scaled to [-1, 1].
    n_classes : int

    Notes
    -----
    **Guarantees.** `sensitivity` is the maximum norm of the contribution of a record, or half of the maximum change if
    it is replaced.

    Proof. See the notes of `DPGaussianNB`.
    """

    def __init__(self, bounds: np.ndarray, n_classes: int) -> None:
        self.bounds, self.n_cells, d = bounds, n_classes, len(bounds)
        self.width, self.row_limit = 1 + 2 * d, math.sqrt((COUNT_SHARE + 1.25) * d)

    def sensitivity(self, adjacency: str) -> float:
        return math.sqrt(len(self.bounds)) if adjacency == "replace_one" else self.row_limit

    def group_limits(self, adjacency: str) -> tuple[float, float]:
        return (np.inf, 1.0) if adjacency == "replace_one" else (self.row_limit, np.inf)

    def cells(self, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """See `VectorQuery`: the class of each row."""
        return codes

    def vectors(self, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
        d = len(self.bounds)
        found = np.empty((len(rows), self.width))
        found[:, 0] = math.sqrt(COUNT_SHARE * d)
        found[:, 1 : 1 + d] = scaled = scale_rows(rows, self.bounds)
        scaled *= scaled
        np.subtract(scaled, 0.5, out=found[:, 1 + d :])
        return found


@with_parameters
class DPGaussianNB(ClassifierMixin, PrivateEstimator):
    """Differentially private Gaussian naive Bayes classifier.

    Class counts, and sums and sums of squares of the columns in each class, are released once with Gaussian noise.
    Columns have Gaussian likelihoods; indicator columns of a `DPTableVectorizer` have categorical likelihoods. No
    parameter has to be tuned. `skdp.DPLogisticRegression` was more accurate on all tables tried. Naive Bayes provides
    means, proportions and variances by class.

    Parameters
    ----------
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued.
    bounds : (float, float) or sequence of (float, float), default=(-1.0, 1.0)
        Public bounds, one pair for all columns or one for each. Values beyond them are moved to the nearest bound, in
        ``fit`` and in predictions.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is equivalent to 1; a fit with `sample_weight` then warns that larger weights are clipped.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise, divided by the sensitivity of the release. If None, it is calibrated to
        `epsilon`.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the fit
        reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows the
        value.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Noisy number of rows (or sum of weights) of each class, at least the standard deviation of its noise.
    class_prior_ : ndarray of shape (n_classes,)
        Probability of each class.
    theta_ : ndarray of shape (n_classes, n_features)
        Mean of each column in each class, within the bounds. For an indicator column, the proportion of ones, shrunk
        towards that of all classes.
    var_ : ndarray of shape (n_classes, n_features)
        Variance of each column in each class, at least the standard deviation of the noise in a mean.
    indicator_weights_ : ndarray of shape (n_features,)
        Weights of the likelihoods of indicator columns: 1 / sqrt(k) for rows of a `DPTableVectorizer` with k table
        columns; 0.0 for columns with a Gaussian likelihood.
    bounds_ : ndarray of shape (n_features, 2)
        Bounds on the columns.
    weight_bound_ : float
        Bound to which weights were clipped before division by it; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Privacy cost of the fit (epsilon at `delta_`), at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee: one row, or all rows of one group.
    privacy_event_ : DpEvent
        Privacy event from which `epsilon_` is computed.
    noise_multiplier_ : float
        Noise multiplier of the release.

    See Also
    --------
    DPLogisticRegression : Classifier that is usually more accurate.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is given and
      `random_state` is None.
    - All fitted attributes are functions of one noisy release and of public quantities.
    - The accountant is charged before the rows are summed. Invalid input raises an error before the charge.
    - Weights multiply the contribution of a row by a number in [0, 1], so they do not raise the sensitivity.
    - With `groups`, the guarantee holds for all rows of one group together: their contribution is clipped to that of
      one row.

    **Sensitivity.** Each column is scaled to t in [-1, 1]. A row adds k to the count of its class, and t and t**2 - 1/2
    for each of d columns, with k**2 = d / 8. The squared norm is at most k**2 + 5 d / 4, and its square root is the
    sensitivity under ``zero_out`` and ``add_remove``. Under ``replace_one``, two rows of different classes have
    orthogonal contributions: the squared change is at most 11 d / 4. For two rows of one class, with u = t - t' and v =
    t + t', it is the sum of u**2 (1 + v**2) <= u**2 (1 + (2 - \\|u\\|)**2) <= 4. The squared change is at most 4 d, so
    the sensitivity, half of the change, is sqrt(d). Weights in [0, 1] do not increase it, because the norm of the
    change is convex in each weight.

    **Groups.** The rows of a group are multiplied by one number in [0, 1], so that their sum has at most the norm of
    one row. Under ``replace_one``, their weights are scaled to add up to at most 1, so that the contribution is an
    average of rows. The number of groups is public, instead of the number of rows.

    **Post-processing.** Sums are divided by noisy counts, which are at least 1 and at least the standard deviation of
    their noise. Variances are at least the standard deviation of the noise in a mean, so a class that the noise
    dominates has little influence.

    **Indicator columns.** The array that ``DPTableVectorizer(sparse_output=False)`` returns marks its indicator
    columns. Their proportions follow from the same release. A proportion p with noise of standard deviation s, and the
    proportion q in all classes, give the likelihood ratio (p + s) / (q + s), which is near 1 if the noise dominates.
    Log-likelihoods are divided by sqrt(k) for k table columns, a compromise between independent (1) and identical
    columns (1 / k). This avoids probabilities near 0 and 1 for dependent columns and does not change the ranking of the
    rows. A wrong mark reduces the accuracy, but not the privacy.

    References
    ----------
    Vaidya, Shafiq, Basu & Hong (2013), "Differentially private naive Bayes classification".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.naive_bayes import DPGaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 5000)
    >>> X = np.clip(rng.normal(0.3 * y[:, None] - 0.15, 0.3, size=(5000, 4)), -1, 1)
    >>> model = DPGaussianNB(classes=[0, 1], epsilon=1.0).fit(X, y)
    >>> model.score(X, y)
    0.8...
    """

    classes: Any = None
    _: KW_ONLY
    bounds: Any = (-1.0, 1.0)
    weight_bound: Any = None
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are clipped to `weight_bound` and divided by it. The result, a number in
            [0, 1], multiplies the contribution of the row to counts and sums, so no weight raises the sensitivity. A
            row of weight 0 has no effect.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or household, or the name of a column of `X`, which
            is then not used as a feature. With `groups`, the guarantee holds for all rows of one group together,
            otherwise for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. No budget is consumed.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        fit = begin(self, X, groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        bounds = public_bounds(model.bounds, fit.n_features)
        classes = None if model.classes is None else check_classes("classes", model.classes)
        fit.plan()
        fit.warn(model._weak_signal(fit, 2 if classes is None else len(classes)))

        rows = fit.read_rows(check_table)
        weights = fit.read(weight_reader.read, sample_weight, fit.n_rows)
        classes, codes = fit.read(_read_labels, model, y, fit.n_rows, classes)
        fit.charge()

        query = ClassMoments(bounds, len(classes))
        noisy = fit.release(query, rows, codes, weights=weights)
        moments = _moments_of(noisy, bounds, row_indicators_of(fit.rows), weight_reader.bound)
        return fit.publish(classes_=classes, bounds_=bounds, weight_bound_=weight_reader.bound, **moments)

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: one Gaussian release."""
        return StepPlan(GaussianDpEvent, {})

    def _left_to_assume(self) -> str:
        return "bounds" if type(self.bounds) is tuple and self.bounds == (-1.0, 1.0) else ""

    def _weak_signal(self, fit: Fit, n_classes: int) -> str:
        """Return the warning that there are few rows; classes that are read from the labels do not affect it."""
        if (d := fit.n_features) is None:
            return ""
        signal = _SIGNAL_OF_ROWS * 2.0 * fit.n / (n_classes * fit.noise_multiplier * (d + 2))
        return few_rows_notice(self, fit.noise_multiplier, fit.n, n_classes * (2 * d + 1), signal)

    # --- predictions ---

    def _likelihood_terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Constants of classes; means and inverse variances of scaled columns, 0 for indicators; slopes of these."""
        half = 0.5 * self.bounds_[:, 1] - 0.5 * self.bounds_[:, 0]
        marked = self.indicator_weights_ > 0
        means, inverses = (self.theta_ - self.bounds_[:, 0]) / half - 1.0, half**2 / self.var_
        constants = np.log(self.class_prior_) + 0.5 * np.log(inverses[:, ~marked]).sum(axis=1)
        slopes = self.indicator_weights_ * np.log(np.where(marked, self.theta_, 1.0))
        return constants, means, np.where(marked, 0.0, inverses), slopes

    @silent_arithmetic
    def _joint_log_likelihood(self, X: Any) -> np.ndarray:
        """Logarithm of the probability of each class and of the row, but for a term that no class changes."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        constants, means, inverses, slopes = self._likelihood_terms()
        made = np.empty((len(X), len(self.classes_)))
        for start in range(0, len(X), _ROWS):
            scaled = scale_rows(X[start : start + _ROWS], self.bounds_)
            made[start : start + _ROWS] = np.clip(X[start : start + _ROWS], 0.0, 1.0) @ slopes.T
            for c in range(len(self.classes_)):
                made[start : start + _ROWS, c] += constants[c] - 0.5 * ((scaled - means[c]) ** 2 @ inverses[c])
        return made

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict. Values beyond the bounds are moved to the nearest bound, as in ``fit``.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted classes.
        """
        likelihood = self._joint_log_likelihood(X)
        return np.asarray(self.classes_[likelihood.argmax(axis=1)])

    @silent_arithmetic
    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities of ``predict_proba``.
        """
        likelihood = self._joint_log_likelihood(X)
        return likelihood - np.asarray(logsumexp(likelihood, axis=1, keepdims=True))

    @silent_arithmetic
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities, with classes in the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # noise decides the model of 200 rows
        return tags


def _read_labels(model: Any, y: Any, n_rows: int, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, and the number of the class of each row."""
    if classes is None:
        report_classes_read(model)
    labels = check_labels(y, n_rows, classes=classes)
    classes = classes_of(labels) if classes is None else classes
    return classes, encode_labels(labels, classes)


@silent_arithmetic
def _moments_of(noisy: NoisySum, bounds: np.ndarray, indicators: Any, weight_bound: float) -> dict[str, Any]:
    """Return counts, prevalences, means and variances of the classes, of released sums."""
    sums, deviation, d = noisy.value, noisy.deviation, len(bounds)
    weight, half = math.sqrt(COUNT_SHARE * d), 0.5 * bounds[:, 1] - 0.5 * bounds[:, 0]
    counts = np.maximum(sums[:, 0] / weight, max(1.0, deviation / weight))
    means, squares = sums[:, 1 : 1 + d] / counts[:, None], sums[:, 1 + d :] / counts[:, None] + 0.5
    least = np.maximum(deviation / counts, LEAST_VARIANCE)[:, None]
    prevalences = counts / counts.sum()
    proportions = _shrunk_proportions(means, squares, prevalences, least, bounds)
    means = np.clip(means, -1.0, 1.0)
    theta = np.clip(bounds[:, 0] + half * (means + 1.0), *bounds.T)
    indicators = np.zeros(d) if indicators is None or len(indicators) != d else indicators
    return {
        "class_count_": counts * weight_bound,
        "class_prior_": prevalences,
        "theta_": np.where(indicators > 0, proportions, theta),
        "var_": np.minimum(np.maximum(squares - means**2, least), np.maximum(1.0, least)) * half**2,
        "indicator_weights_": indicators,
    }


def _shrunk_proportions(
    means: np.ndarray, squares: np.ndarray, prevalences: np.ndarray, noise: np.ndarray, bounds: np.ndarray
) -> np.ndarray:
    """Return the proportion of ones in each class by both moments of a column, shrunk by the noise of a mean."""
    zero, one = scale_rows(np.array([[0.0], [1.0]]) * np.ones(means.shape[1]), bounds)
    rise, rise_of_squares = one - zero, one**2 - zero**2
    found = (means - zero) * rise + (squares - zero**2) * rise_of_squares
    found = np.clip(found / np.maximum(rise**2 + rise_of_squares**2, LEAST_VARIANCE), 0.0, 1.0)
    pooled = prevalences @ found
    return np.asarray(np.maximum(pooled, LEAST_VARIANCE) * (found + noise) / (pooled + noise))


def scale_rows(X: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return columns clipped to their bounds and scaled to [-1, 1]."""
    low, high = bounds.T
    half = 0.5 * high - 0.5 * low
    return np.clip((X - low) / half - 1.0, -1.0, 1.0)


__all__ = ["DPGaussianNB"]
