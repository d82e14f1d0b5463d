"""`DPCalibratedClassifier`: calibrated probabilities, from a noisy histogram of scores."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.isotonic import isotonic_regression

from skdp._checks.parameters import check_choice, silent_arithmetic
from skdp.base.estimator import with_parameters
from skdp.metrics.binary import centers, refined
from skdp.metrics.private_evaluation import PrivateEvaluation
from skdp.model_selection.table_classifier import TableClassifier


@with_parameters
class DPCalibratedClassifier(TableClassifier):
    """Differentially private probability calibration of a binary classifier.

    The class releases one noisy histogram of the scores of each class, and maps scores to probabilities by it. The
    estimator is either fitted already, to other rows (``FrozenEstimator(model)``, private or not), or it is fitted here
    to a random part of the rows. See ``docs/calibration.md``.

    Constructor parameters are public, arguments of `fit` are private.

    Parameters
    ----------
    estimator : estimator
        Unfitted private classifier or pipeline of private steps, or a fitted classifier of any library with
        ``predict_proba`` or ``decision_function`` in a `sklearn.frozen.FrozenEstimator`.
    method : {"sigmoid", "temperature", "isotonic"}, default="sigmoid"
        Map of scores to probabilities. "sigmoid" is Platt scaling, with a slope and an intercept of the logit.
        "temperature" has a slope alone, which maps 1/2 to 1/2. "isotonic" is any increasing map; it needs several
        thousand rows.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``, including the fit of `estimator`. Fit and histogram use different rows, so
        together they have the privacy cost of one. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more. With a fitted estimator, delta is 0.
    test_size : float, default=0.25
        Fraction of the rows, or groups, for the histogram if the estimator is fitted here.
    classes : array-like of shape (2,) or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. Ignored if the estimator has classes.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1. An estimator that is fitted here uses the same bound.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out". An estimator that is fitted here uses the same.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute. Do not set an accountant for `estimator`.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the split and the noise. None draws a fresh secret key from the operating system. Any other value
        makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone
        who knows the value.

    Attributes
    ----------
    estimator_ : estimator
        Fitted estimator whose scores are calibrated.
    evaluation_ : PrivateEvaluation
        Metrics of the estimator before calibration, from the same histogram, at no additional privacy cost.
    map_ : callable
        Map of scores to probabilities of the positive class.
    classes_ : ndarray of shape (2,)
        Negative class and positive class.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Epsilon of the whole fit at `delta_`, at most `epsilon`. It does not include the earlier fit of a fitted
        estimator to other rows.
    delta_ : float
        Delta of the guarantee; 0 with a fitted estimator.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_event_ : DpEvent
        Event of the histogram, or the worst case of the fit and the histogram.
    privacy_unit_ : {"row", "group"}
        Privacy unit.

    See Also
    --------
    DPThresholdClassifier : Choose the decision threshold of a classifier.
    skdp.evaluate : Metrics of a model, including the calibration curve.

    Notes
    -----
    **Guarantees.** ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, or one group with `groups`, if
    `classes` is set and `random_state` is None. The map is a function of the noisy histogram and of public parameters.

    Metrics of calibrated probabilities on the same rows are slightly optimistic, as without privacy.

    **When to calibrate.** Classifiers without calibrated probabilities benefit: forests and boosted trees of other
    libraries, models with balanced class weights, naive Bayes with correlated columns (also `skdp.DPGaussianNB`),
    scores of ``decision_function``, and models that were fitted to another population. The gradient-based models of
    skdp do not benefit, because they correct their mean prediction in their own fit. With such a model, calibration of
    a fit to part of the rows had a log loss of 0.4248; the model alone had 0.4195.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from skdp import DPCalibratedClassifier, DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> y = (rng.uniform(size=20_000) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
    >>> model = DPCalibratedClassifier(DPLogisticRegression(classes=[0, 1]), epsilon=1.0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape, round(model.epsilon_, 1)
    ((3, 2), 1.0)
    >>> fitted = FrozenEstimator(DPLogisticRegression(classes=[0, 1]).fit(X[:10_000], y[:10_000]))
    >>> other = DPCalibratedClassifier(fitted, method="isotonic", epsilon=0.5).fit(X[10_000:], y[10_000:])
    >>> other.delta_
    0.0
    """

    estimator: Any
    _: KW_ONLY
    method: str = "sigmoid"
    epsilon: Any = 1.0
    delta: float | str = "auto"
    test_size: float = 0.25
    classes: Any = None
    weight_bound: float | None = None
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def _check_purpose(self) -> None:
        check_choice("method", self.method, MAPS)

    def _follow(self, evaluation: PrivateEvaluation) -> None:
        table = evaluation._fitted_tables.released[0]
        self.map_ = fit_map(self.method, table, float(evaluation.noise_deviation_))

    @silent_arithmetic
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict calibrated probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Probabilities, with classes in the order of `classes_`.
        """
        scores = np.clip(np.nan_to_num(self._scores(X)), 0.0, 1.0)
        chances = self.map_(scores)
        return np.column_stack([1.0 - chances, chances])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the larger calibrated probability.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted classes.
        """
        chances = self.predict_proba(X)
        return self.classes_[np.argmax(chances, axis=1)]


# --- maps of scores to probabilities, from counts of either class in bins of the score ---

MAPS = "sigmoid", "temperature", "isotonic"
_STEEPEST, _FURTHEST = 20.0, 20.0
_LEAST = 1e-12  # distance of a score from 0 and 1, whose logits are infinite


class LogitMap(NamedTuple):
    """Probabilities ``1 / (1 + exp(-(slope * logit(score) + offset)))``.

    Attributes
    ----------
    slope : float
        0 or above, so that the order of the scores does not change. The inverse temperature.
    offset : float
        Intercept.
    """

    slope: float
    offset: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return _inverse_logit(self.slope * _logit(scores) + self.offset)


class StepMap(NamedTuple):
    """Piecewise linear, increasing map of scores to probabilities.

    Attributes
    ----------
    x, y : ndarray of shape (n_points,)
    """

    x: np.ndarray
    y: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return np.interp(scores, self.x, self.y)


def fit_map(method: str, table: np.ndarray, noise: float) -> LogitMap | StepMap:
    """Return the map that a table of counts asks for.

    Parameters
    ----------
    method : {"sigmoid", "temperature", "isotonic"}
    table : ndarray of shape (2, n_bins)
        Counts of negatives and of positives, 0 or above.
    noise : float
        Standard deviation of the noise of a count. Public.

    Notes
    -----
    "sigmoid" is Platt's map of the logit of the score, and "temperature" the same with an intercept of 0 (Guo et al.
    2017): the maximum-likelihood map for the counts, spread over finer bins. "isotonic" is the isotonic regression of
    the prevalences (Zadrozny & Elkan 2002). Each bin is shrunk to the overall prevalence with a weight of as many rows
    as the standard deviation of its noise, so that bins with noise alone have little influence.
    """
    if method == "isotonic":
        # Prevalence in each bin, shrunk to the overall prevalence by a number of rows of the size of the noise.
        negatives, positives = table
        total, noise = float(table.sum()), max(noise, 1e-9)  # a bin can be empty
        share = float(positives.sum()) / total if total > 0 else 0.5
        weights = negatives + positives + noise
        shares = isotonic_regression((positives + noise * share) / weights, sample_weight=weights, y_min=0.0, y_max=1.0)
        return StepMap(centers(table.shape[1]), shares)
    fine = refined(table[None])[0]
    at, totals = _logit(centers(fine.shape[1])), max(float(fine.sum()), 1.0)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        value = parameters[0] * at + (parameters[1] if len(parameters) > 1 else 0.0)
        losses = fine[0] @ np.logaddexp(0.0, value) + fine[1] @ np.logaddexp(0.0, -value)
        slope = (fine.sum(0) * _inverse_logit(value) - fine[1]) / totals
        return float(losses) / totals, np.array([slope @ at, slope.sum()])[: len(parameters)]

    start = np.array([1.0, 0.0])[: 1 if method == "temperature" else 2]
    bounds = [(0.0, _STEEPEST), (-_FURTHEST, _FURTHEST)][: len(start)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return LogitMap(float(found[0]), float(found[1]) if len(found) > 1 else 0.0)


def _logit(scores: np.ndarray) -> np.ndarray:
    kept = np.clip(scores, _LEAST, 1.0 - _LEAST)
    return np.log(kept) - np.log1p(-kept)


def _inverse_logit(values: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -values))
