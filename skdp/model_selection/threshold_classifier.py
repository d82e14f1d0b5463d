"""`DPThresholdClassifier`: a threshold for a purpose, from a noisy table of scores."""

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
    """Classifier of two classes whose threshold is chosen on private rows.

    One noisy table is released, how many rows of either class have a score in each of some bins, and the threshold of
    least cost is read from it, among those that keep a precision, a recall, or equal rates of public subgroups. The
    estimator was fitted to other rows (``FrozenEstimator(model)``, private or not), or is fitted here, to a part of the
    rows that is drawn by number.

    Constructor parameters are public, arguments of `fit` are private.

    Parameters
    ----------
    estimator : estimator
        Unfitted private classifier, or pipeline of private steps; or a fitted classifier of any library with
        ``predict_proba`` or ``decision_function`` in a `sklearn.frozen.FrozenEstimator`.
    cost : array-like of shape (2, 2) or None, default=None
        Cost of a row by its class (rows) and what is predicted (columns); a gain is a negative cost. None: each mistake
        costs 1; with `min_precision` alone only misses count, with `min_recall` alone only false alarms.
    min_precision : float or None, default=None
        Least precision, by the table. Where no threshold keeps it, the one that comes closest is taken.
    min_recall : float or None, default=None
        Least recall, in the same way.
    equal_rates : {"selection_rate", "true_positive_rate", "false_positive_rate"} or None, default=None
        Rate that is to be equal in all subgroups, each of which has a threshold of its own then.
    by : str or None, default=None
        Name of the column of `X` with the subgroups, for `equal_rates`. It may be a feature or none.
    categories : list or None, default=None
        Public list of the subgroups. Rows of others are in "other".
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
        Fitted estimator, whose scores are compared with the threshold.
    evaluation_ : PrivateEvaluation
        Figures of the estimator, from the same table: free, at any threshold.
    thresholds_ : dict of str to float
        Threshold of each subgroup. Without `by` it has one, of "all".
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
    DPCalibratedClassifier : Calibrate the probabilities of a classifier.
    skdp.evaluate : Figures of a model at any threshold.

    Notes
    -----
    **Guarantees.** ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, or one unit with `groups`, if
    classes are named and `random_state` is None: `TableClassifier` has the proof. Thresholds are a function of the
    noisy table and of public parameters.

    A least precision is kept by the estimate, and not with certainty: ``evaluation_.precision(threshold)`` has the
    interval.

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
                "equal_rates, by and categories belong together: name a rate, a column, and a public list of subgroups."
            )
        if self.by is not None and not isinstance(self.by, str):
            raise ValueError(f"by={self.by!r} is no name of a column: thresholds by subgroup read it of new rows too.")

    def _purpose(self) -> Purpose:
        """What thresholds are for, checked."""
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
            raise ValueError(f"cost={given!r} is no matrix of 2 x 2 numbers: give e.g. [[0, 1], [5, 0]], a miss at 5.")
        return Purpose(cost, precision, recall, self.equal_rates)

    def _checked_share(self, name: str) -> float | None:
        given, remedy = getattr(self, name), "choose a share, such as 0.9"
        return None if given is None else check_real(name, given, above=0, at_most=1, remedy=remedy)

    def _follow(self, evaluation: PrivateEvaluation) -> None:
        chosen = choose_thresholds(evaluation._fitted_replicates.released[0], self._purpose())
        names = list(evaluation.subgroups) or ["all"]
        self.thresholds_ = dict(zip(names, chosen.tolist(), strict=True))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the second class where the score is at or above the threshold.

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


# --- thresholds for a purpose, from counts of scores of either class, for each subgroup ---

RATES = "selection_rate", "true_positive_rate", "false_positive_rate"


class Purpose(NamedTuple):
    """What thresholds are for.

    Attributes
    ----------
    cost : ndarray of shape (2, 2)
        Of a row by its class and what is predicted.
    min_precision, min_recall : float or None
        Least of either.
    equal_rates : str or None
        One of `RATES`, which subgroups have in common.
    """

    cost: np.ndarray
    min_precision: float | None
    min_recall: float | None
    equal_rates: str | None


def choose_thresholds(tables: np.ndarray, purpose: Purpose) -> np.ndarray:
    """Return the threshold of each subgroup.

    Among all candidates that keep the least precision and recall the one of least cost is taken; where none does, the
    one that comes closest.

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
    """Places of thresholds to choose from, of shape (n_subgroups, n_candidates), from high to low ones."""
    edges = np.arange(tables.shape[-1], -1, -1) / tables.shape[-1]
    if rate is None:
        return np.broadcast_to(edges, (len(tables), len(edges)))
    wanted, places = np.linspace(0.0, 1.0, 201), []
    upward = 1e-12 * np.arange(len(edges))  # the highest of the thresholds of one rate
    for table in tables:  # places at which a subgroup has the wanted rates; evenly spread ones where it has no rows
        negatives, positives = above(table[None], edges)[0]
        counts = {"selection_rate": negatives + positives, "true_positive_rate": positives}.get(rate, negatives)
        rates = np.maximum.accumulate(counts / counts[-1]) + upward if counts[-1] > 0 else None
        places.append(1.0 - wanted if rates is None else np.interp(wanted, rates, edges))
    return np.array(places)


def _short_of(least: float | None, counts: np.ndarray, of: np.ndarray) -> np.ndarray:
    """By how much a share falls short; a share of nobody does not."""
    if least is None:
        return np.zeros(np.shape(counts))
    of = np.broadcast_to(of, np.shape(counts))
    shares = np.divide(counts, of, out=np.ones(np.shape(counts)), where=of > 1e-9)
    return np.maximum(least - shares, 0.0)
