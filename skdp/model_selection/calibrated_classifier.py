"""`DPCalibratedClassifier`: probabilities that are right on average, from a noisy table of scores."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.isotonic import isotonic_regression

from skdp._checks.parameters import check_choice, silent_arithmetic
from skdp.base.estimator import with_parameters
from skdp.metrics.binary import centres, refined
from skdp.metrics.private_evaluation import PrivateEvaluation
from skdp.model_selection.table_classifier import TableClassifier


@with_parameters
class DPCalibratedClassifier(TableClassifier):
    """Classifier of two classes whose probabilities are calibrated on private rows.

    One noisy table is released, how many rows of either class have a score in each of some bins, and scores are mapped
    to probabilities by what it says. The estimator was fitted to other rows (``FrozenEstimator(model)``, private or
    not), or is fitted here, to a part of the rows that is drawn by number.

    Constructor parameters are public, arguments of `fit` are private.

    Parameters
    ----------
    estimator : estimator
        Unfitted private classifier, or pipeline of private steps; or a fitted classifier of any library with
        ``predict_proba`` or ``decision_function`` in a `sklearn.frozen.FrozenEstimator`.
    method : {"sigmoid", "temperature", "isotonic"}, default="sigmoid"
        Map of scores: Platt's, with a slope and an offset of the logit; with a slope alone, which keeps 1/2 where it
        is; or any map that ascends, which wants some thousand rows.
    epsilon : float or Risk, default=1.0
        Privacy budget of one ``fit``, which is all of it: where the estimator is fitted here, fit and table concern
        different rows, and cost it once. A number, or a bound on the risk of membership inference such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``).
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more. The table alone, of a fitted estimator, has a delta of 0.
    test_size : float, default=0.25
        Share of the rows, or units, that the table is made of where the estimator is fitted here.
    classes : array-like of shape (2,) or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. The classes of the estimator, where it names some, stand in their place.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1. It is that of the estimator too, where that is fitted here.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is replaced by a zeroed-out record, which adds nothing to any sum. The number of rows is
          public.
        - "replace_one": it is replaced by another one. The number of rows is public.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed. The number of rows is private, and every rule
          uses `n_public`, a public number near it.

        None uses the relation of `accountant`, otherwise "zero_out". An estimator that is fitted here has the same.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute. The estimator has none.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the split and the noise. None draws a fresh secret key from the operating system. Any other value
        makes the fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone
        who knows the value.

    Attributes
    ----------
    estimator_ : estimator
        Fitted estimator, whose scores are mapped.
    evaluation_ : PrivateEvaluation
        Figures of the estimator before it was calibrated, from the same table: free.
    map_ : callable
        From scores to probabilities of the second class.
    classes_ : ndarray of shape (2,)
        Classes, that of the scores last.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where they have names.
    epsilon_ : float
        Price of the whole for these rows, at most `epsilon`. Those that a fitted estimator was fitted to have one of
        their own.
    delta_ : float
        Delta of the price; 0 for the table alone.
    adjacency_ : str
        How neighbouring tables differ.
    privacy_event_ : DpEvent
        The table; or the worst of the fit and the table.
    privacy_unit_ : {"row", "group"}
        What the price is for.

    See Also
    --------
    DPThresholdClassifier : Choose the threshold of a classifier.
    skdp.evaluate : Figures of a model, the calibration curve among them.

    Notes
    -----
    **Guarantees.** ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, or one unit with `groups`, if
    classes are named and `random_state` is None: `TableClassifier` has the proof. The map is a function of the noisy
    table and of public parameters.

    Figures of calibrated probabilities on the same rows are slightly too good, as they are without privacy.

    **Which models benefit.** Classifiers whose probabilities are not calibrated: forests and boosted trees of other
    libraries, models with balanced class weights, naive Bayes with Gaussian columns that depend on each other
    (`skdp.DPGaussianNB` too), scores of ``decision_function``, and models that were fitted to another population. The
    gradient models of skdp do not benefit, because they correct their mean prediction in their own fit: a fit to part
    of the rows and a table have a log loss of 0.4248, the model alone 0.4195.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from skdp import DPCalibratedClassifier, DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> y = (rng.uniform(size=20_000) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
    >>> model = DPCalibratedClassifier(DPLogisticRegression(classes=[0, 1]), epsilon=1.0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape, 0.99 < model.epsilon_ <= 1.0
    ((3, 2), True)
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
        """Predict the class whose calibrated probability is the larger one.

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
        0 or above, so that no score overtakes another. One over the temperature.
    offset : float
    """

    slope: float
    offset: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return _inverse_logit(self.slope * _logit(scores) + self.offset)


class StepMap(NamedTuple):
    """Probabilities between points that ascend, on straight lines.

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
    "sigmoid" is Platt's map of the logit of the score, and "temperature" the same with an offset of 0 (Guo et al.
    2017): the likeliest one for the counts, spread over finer bins. "isotonic" is the isotonic regression of the shares
    of positives (Zadrozny & Elkan 2002). To each bin as many rows of the overall share are added as the standard
    deviation of its noise, so that bins which noise alone is in say next to nothing.
    """
    if method == "isotonic":
        # Shares of positives in each bin, drawn to the share of all by as many rows as the noise is worth.
        negatives, positives = table
        total, noise = float(table.sum()), max(noise, 1e-9)  # a bin may be empty
        share = float(positives.sum()) / total if total > 0 else 0.5
        weights = negatives + positives + noise
        shares = isotonic_regression((positives + noise * share) / weights, sample_weight=weights, y_min=0.0, y_max=1.0)
        return StepMap(centres(table.shape[1]), shares)
    fine = refined(table[None])[0]
    at, totals = _logit(centres(fine.shape[1])), max(float(fine.sum()), 1.0)

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
