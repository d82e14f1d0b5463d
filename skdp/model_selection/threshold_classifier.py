"""`DPThresholdClassifier`: decision thresholds, from a noisy histogram of scores."""

from __future__ import annotations

import contextlib
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.parameters import check_choice, check_real
from skdp.base.estimator import with_parameters
from skdp.metrics.binary import above
from skdp.metrics.private_evaluation import PrivateEvaluation
from skdp.metrics.scored_rows import scores_at
from skdp.model_selection.table_classifier import TableClassifier
from skdp.model_selection.whole_fit import ScoresOfPart


@with_parameters
class DPThresholdClassifier(ScoresOfPart, TableClassifier):
    """Differentially private choice of the decision threshold of a binary classifier.

    The class releases one noisy histogram of the scores of each class, and computes the threshold of the smallest cost
    from it. The threshold can be constrained to a minimum precision or recall, or to equal rates of public subgroups.
    The estimator is either fitted already, to other rows (``FrozenEstimator(model)``, private or not), or it is fitted
    here to a random part of the rows. See ``docs/calibration.md``.

    Constructor parameters are public, arguments of `fit` are private.

    Parameters
    ----------
    estimator : estimator
        Unfitted private classifier or pipeline of private steps, or a fitted classifier of any library with
        ``predict_proba`` or ``decision_function`` in a `sklearn.frozen.FrozenEstimator`.
    cost : array-like of shape (2, 2) or None, default=None
        Cost of a row by its true class (rows) and predicted class (columns); a gain is a negative cost. If None, each
        error costs 1; with `min_precision` alone only false negatives count, with `min_recall` alone only false
        positives.
    min_precision : float or None, default=None
        Smallest precision for the second class of `classes_`, estimated from the histogram. If no threshold reaches it,
        the closest one is used.
    min_recall : float or None, default=None
        Smallest recall for the second class of `classes_`, estimated from the histogram. If no threshold reaches it,
        the closest one is used.
    equal_rates : {"selection_rate", "true_positive_rate", "false_positive_rate"} or None, default=None
        Rate to equalize between subgroups. If set, each subgroup has its own threshold.
    by : str or None, default=None
        Name of the column of `X` with the subgroups, for `equal_rates`. The column can be a feature.
    categories : list or None, default=None
        Public list of the subgroups. Rows of other subgroups are in "other".
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
        Fitted estimator whose scores are compared with the threshold.
    evaluation_ : PrivateEvaluation
        Metrics of the estimator at any threshold, from the same histogram, at no additional privacy cost.
    thresholds_ : dict of str to float
        Threshold of each subgroup. Without `by`, the only key is "all".
    classes_ : ndarray of shape (2,)
        Negative class and positive class, in ascending order.
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
    DPCalibratedClassifier : Calibrate the probabilities of a classifier.
    skdp.evaluate : Metrics of a model at any threshold.

    Notes
    -----
    **Guarantees.** ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, or one group with `groups`, if
    `classes` is set and `random_state` is None. Thresholds are a function of the noisy histogram and of public
    parameters.

    `min_precision` and `min_recall` hold for the estimates, not with certainty: ``evaluation_.precision(threshold)``
    returns the interval.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, DPThresholdClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> y = (rng.uniform(size=20_000) < 1 / (1 + np.exp(-4 * X[:, 0]))).astype(int)
    >>> model = DPThresholdClassifier(DPLogisticRegression(classes=[0, 1]), cost=[[0, 1], [5, 0]]).fit(X, y)
    >>> model.thresholds_["all"] < 0.4
    True
    """

    estimator: Any
    _: KW_ONLY
    cost: Any = None
    min_precision: float | None = None
    min_recall: float | None = None
    equal_rates: str | None = None
    by: str | None = None
    categories: Any = None
    epsilon: Any = 1.0
    delta: float | str = "auto"
    test_size: float = 0.25
    classes: Any = None
    weight_bound: float | None = None
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def _check_purpose(self) -> None:
        self._purpose()
        given = [self.equal_rates is not None, self.by is not None, self.categories is not None]
        if any(given) and not all(given):
            raise ValueError(
                "`equal_rates`, `by` and `categories` must be set together: a rate, a column, and a list of subgroups."
            )
        if self.by is not None and not isinstance(self.by, str):
            raise ValueError(f"`by` must be the name of a column, which new rows must have too, got {self.by!r}.")

    def _purpose(self) -> Purpose:
        """The checked objective of the thresholds."""
        precision, recall = self._checked_share("min_precision"), self._checked_share("min_recall")
        if self.equal_rates is not None:
            check_choice("equal_rates", self.equal_rates, RATES)
        given = self.cost
        if given is None:
            misses, alarms = recall is None or precision is not None, precision is None or recall is not None
            given = [[0.0, float(alarms)], [float(misses), 0.0]]
        cost = None
        with contextlib.suppress(TypeError, ValueError):
            cost = np.asarray(given, np.float64)
        if cost is None or cost.shape != (2, 2) or not np.isfinite(cost).all():
            raise ValueError(f"`cost` must be a 2 x 2 matrix of numbers such as [[0, 1], [5, 0]], got {given!r}.")
        return Purpose(cost, precision, recall, self.equal_rates)

    def _checked_share(self, name: str) -> float | None:
        given, constraint = getattr(self, name), "a number in (0, 1], such as 0.9"
        return None if given is None else check_real(name, given, above=0, at_most=1, constraint=constraint)

    def _follow(self, evaluation: PrivateEvaluation) -> None:
        chosen = choose_thresholds(evaluation._fitted_replicates.released[0], self._purpose())
        names = list(evaluation.subgroups) or ["all"]
        self.thresholds_ = dict(zip(names, chosen.tolist(), strict=True))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the positive class if the score is at or above the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted classes.
        """
        scores = np.nan_to_num(self._scores(X))
        thresholds = np.array(list(self.thresholds_.values()))
        groups = self.evaluation_._subgroups(self._labels_of_subgroups(X), len(scores))
        return self.classes_[(scores >= thresholds[0 if groups is None else groups]).astype(int)]


# --- choice of thresholds, from counts of scores of each class, for each subgroup ---

RATES = "selection_rate", "true_positive_rate", "false_positive_rate"


class Purpose(NamedTuple):
    """Objective of the thresholds.

    Attributes
    ----------
    cost : ndarray of shape (2, 2)
        Cost of a row by its true class and predicted class.
    min_precision, min_recall : float or None
        Smallest precision and recall.
    equal_rates : str or None
        One of `RATES`, to be equal in all subgroups.
    """

    cost: np.ndarray
    min_precision: float | None
    min_recall: float | None
    equal_rates: str | None


def choose_thresholds(tables: np.ndarray, purpose: Purpose) -> np.ndarray:
    """Return the threshold of each subgroup.

    Among all candidates with the required precision and recall, the one with the smallest cost is used; if there is
    none, the one that comes closest.

    Parameters
    ----------
    tables : ndarray of shape (n_subgroups, 2, n_bins)
        Counts of negatives and positives, 0 or above.
    purpose : Purpose

    Returns
    -------
    ndarray of shape (n_subgroups,)
        In [0, 1]. Without `equal_rates` all of them are the same.
    """
    candidates = _candidates(tables, purpose.equal_rates)
    predicted = np.stack([above(table[None], at)[0] for table, at in zip(tables, candidates, strict=True)]).sum(0)
    negatives, positives = tables.sum((0, 2))
    false, true = predicted
    cost = purpose.cost
    costs = cost[0, 0] * (negatives - false) + cost[0, 1] * false + cost[1, 0] * (positives - true) + cost[1, 1] * true
    missing = np.maximum(
        _short_of(purpose.min_precision, true, true + false), _short_of(purpose.min_recall, true, positives)
    )
    kept = missing <= max(float(missing.min()), 1e-12)
    return scores_at(candidates[:, np.argmin(np.where(kept, costs, np.inf))])


def _candidates(tables: np.ndarray, rate: str | None) -> np.ndarray:
    """Positions of candidate thresholds, of shape (n_subgroups, n_candidates), in descending order."""
    edges = np.arange(tables.shape[-1], -1, -1) / tables.shape[-1]
    if rate is None:
        return np.broadcast_to(edges, (len(tables), len(edges)))
    wanted, places = np.linspace(0.0, 1.0, 201), []
    upward = 1e-12 * np.arange(len(edges))  # the highest of the thresholds of one rate
    for table in tables:  # positions with the required rates; evenly spaced ones for an empty subgroup
        negatives, positives = above(table[None], edges)[0]
        counts = {"selection_rate": negatives + positives, "true_positive_rate": positives}.get(rate, negatives)
        rates = np.maximum.accumulate(counts / counts[-1]) + upward if counts[-1] > 0 else None
        places.append(1.0 - wanted if rates is None else np.interp(wanted, rates, edges))
    return np.array(places)


def _short_of(least: float | None, counts: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Shortfall of a fraction; 0 for an empty denominator."""
    if least is None:
        return np.zeros(np.shape(counts))
    of = np.broadcast_to(of, np.shape(counts))
    shares = np.divide(counts, of, out=np.ones(np.shape(counts)), where=of > 1e-9)
    return np.maximum(least - shares, 0.0)
