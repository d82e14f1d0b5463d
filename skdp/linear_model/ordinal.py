"""Differentially private ordinal logistic regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import ClassifierMixin

from skdp._checks.parameters import silent_arithmetic
from skdp._checks.weights import WeightReader
from skdp._dpsgd.models.linear import clipped_scores
from skdp._dpsgd.solver import Targets, fit_run
from skdp._dpsgd.targets import Classification, Outputs
from skdp.base.estimator import with_parameters
from skdp.linear_model.newton import NewtonEstimator


@dataclass(frozen=True)
class OrderedClassification(Classification):
    """Ordered classes. The values of `Targets` are positions in this order."""

    def loss_of(self, outputs: Outputs) -> tuple[str, float]:
        return "ordinal", np.inf

    @cached_property
    def named(self) -> Outputs | None:
        """See `Target`: sets have no order, and iterators can be read only once."""
        if isinstance(self.classes, Set | Iterator):
            raise ValueError(f"`classes` must be a list from the lowest to the highest class, got {self.classes!r}.")
        return super().named

    def levels(self, outputs: Outputs) -> np.ndarray:
        """Return the classes in their order: as listed, otherwise sorted."""
        named = self.classes
        if named is None:
            return outputs.classes
        place = {label: k for k, label in enumerate(outputs.classes.tolist())}
        return outputs.classes[[place[label] for label in np.asarray(named).tolist()]]

    def encode(self, y: Any, sample_weight: Any, n_samples: int, outputs: Outputs | None) -> Targets:
        found = super().encode(y, sample_weight, n_samples, outputs)
        places = np.searchsorted(found.outputs.classes, self.levels(found.outputs))
        return found._replace(values=np.argsort(places)[found.values])

    def learned(self, outputs: Outputs) -> dict[str, Any]:
        return {**super().learned(outputs), "levels_": self.levels(outputs)}


@with_parameters
class DPOrdinalLogisticRegression(ClassifierMixin, NewtonEstimator):
    """Differentially private ordinal logistic regression.

    For ordered classes, such as grades or answers from "never" to "always". The log-odds of a class above each
    threshold are linear in the features, with the same coefficients for all thresholds (proportional odds, McCullagh
    1980): P(y <= class k) = sigma(threshold k - x coef). ``fit`` makes eight Newton steps on noisy scores, curvatures
    and class counts, and estimates the standard errors for `summary`. No parameter has to be tuned.

    Parameters
    ----------
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. List at most 201 classes from the lowest to the highest. Classes that are read
        from `y` are sorted.
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
    data_norm : float or None, default=None
        Public bound on the Euclidean norm of a row. Rows are clipped to it, in ``fit`` and in predictions. None uses
        the public norm of rows that `skdp.preprocessing.DPTableVectorizer` has transformed, and otherwise
        sqrt(n_features), which suits columns in [-1, 1] and reads no data.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is equivalent to 1; a fit with `sample_weight` then warns that larger weights are clipped. For
        rates, the weight is the exposure.
    rows_per_group : int or None, default=None
        With `groups`, the public maximum number k of rows per group. A group contributes at most as much as k rows of
        the largest norm: each row of a smaller group has full weight, the rows of a larger group share the weight of k
        rows, and the noise is k times larger. Choose a k that few groups exceed. None is 1.
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
    coef_ : ndarray of shape (n_features,)
        Coefficients of the log-odds of a higher class, in the units of `X`.
    thresholds_ : ndarray of shape (n_classes - 1,)
        Thresholds between adjacent classes of `levels_`, ascending.
    coef_noise_ : ndarray of shape (n_features,)
        Standard deviation of each coefficient due to the noise alone, as in `summary`.
    levels_ : ndarray of shape (n_classes,)
        Class labels in their order, from the lowest to the highest.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted, as scikit-learn expects for probabilities.
    data_norm_ : float
        Norm to which rows are clipped.
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
        Noise multiplier of a run with constant noise and the same number of steps and privacy cost. `privacy_event_`
        lists the noise of each step.
    sampling_rate_ : float
        1.0: each step uses all rows.
    max_grad_norm_ : float
        1.0, or `rows_per_group`: bound on the contribution of a row or group to a step, for rows scaled by
        `data_norm_`.
    learning_rate_ : float
        1.0, the step size of Newton's method.
    n_iter_ : int
        Number of steps.
    n_steps_ : int
        Number of steps, equal to `n_iter_`.

    See Also
    --------
    DPLogisticRegression : Unordered classes. ``inference=True`` uses the same Newton steps.
    DPPoissonRegressor : Counts, with the same Newton steps.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is set and
      `random_state` is None.
    - One row changes the score, curvature and counts of a step by a joint norm of at most 1, for any features, class
      and weight. With `groups`, one group changes them by at most `max_grad_norm_`.
    - All fitted attributes are functions of nine noisy releases and of public quantities.
    - The accountant is charged before the rows are read. An interrupted fit stays charged.

    **Narrow classes.** The score of a row is unbounded if the two thresholds of its class are close. This part is the
    same for all rows of a class and follows from the noisy class counts. The remaining part is bounded as in logistic
    regression, so no gradient is clipped. `summary` states no interval for the reasons that `DPLogisticRegression`
    lists, or if a class has fewer than 40 rows.

    References
    ----------
    McCullagh (1980), "Regression models for ordinal data".

    Pratt (1981), "Concavity of the log likelihood".

    Ganesh, Haghifam, Steinke & Thakurta (2023), "Faster differentially private convex optimization via second-order
    methods".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPOrdinalLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> health = X @ [1.0, -0.6, 0.0] + rng.logistic(size=20_000)
    >>> y = np.array(["poor", "fair", "good"])[np.digitize(health, [-1.0, 0.5])]
    >>> model = DPOrdinalLogisticRegression(["poor", "fair", "good"], data_norm=3**0.5).fit(X, y)
    >>> table = model.summary().to_frame()
    >>> list(table.index)
    ['x0', 'x1', 'x2', 'poor/fair', 'fair/good']
    >>> model.coef_.round(1)
    array([ 1. , -0.6,  0. ])
    """

    _table_title, _table_meaning = "Private ordinal logistic regression", "the log-odds of a higher class"
    class_weight: ClassVar[Any] = None
    coef_: np.ndarray = field(init=False)
    thresholds_: np.ndarray = field(init=False)
    levels_: np.ndarray = field(init=False)
    classes_: np.ndarray = field(init=False)

    classes: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows, in memory.
        y : array-like of shape (n_samples,)
            Private labels.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are clipped to `weight_bound` and divided by it. The result, a number in
            [0, 1], multiplies the contribution of the row, so no weight raises the sensitivity. A row of weight 0 has
            no effect.
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
        return fit_run(self, X, y, sample_weight, groups, warm=False)

    def _target(self) -> OrderedClassification:
        return OrderedClassification(WeightReader.of(self.weight_bound), self.classes, self.class_weight)

    def _lines_learned(self, coef: np.ndarray, intercept: np.ndarray, noise: np.ndarray) -> dict[str, Any]:
        return {"coef_": coef[0], "thresholds_": intercept[0], "coef_noise_": noise[0]}

    def _scorer(self) -> Callable[[Any], np.ndarray]:
        return partial(clipped_scores, radius=self.data_norm_, coef=self.coef_[None, :], intercept=np.zeros(1))

    # --- regression summary ---

    def _names_of_constants(self, count: int) -> list[str]:
        """See `HasCoefficientTable`: the thresholds, by the classes beside them."""
        return [f"{low}/{high}" for low, high in zip(self.levels_[:-1], self.levels_[1:], strict=True)]

    # --- predictions ---

    @silent_arithmetic
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict. Rows are clipped to `data_norm_`, as in ``fit``.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`, which is sorted.
        """
        chances = self._level_probabilities(X)
        return chances[:, np.argsort(self.levels_)]

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted classes.
        """
        best = self._level_probabilities(X).argmax(axis=1)
        return self.levels_[best]

    def _level_probabilities(self, X: ArrayLike) -> np.ndarray:
        """Probabilities of the classes in their order."""
        scores = self._score_rows(X).astype(np.float64)  # one a row, with which the thresholds are compared
        lines = self.thresholds_ - scores
        ends = np.full((len(lines), 1), np.inf)
        low, high = np.hstack([-ends, lines]), np.hstack([lines, ends])
        # The numerically stable form: differences of numbers near 0.
        return np.where(low + high > 0.0, expit(-low) - expit(-high), expit(high) - expit(low))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # unordered classes need more than one linear predictor
        return tags
