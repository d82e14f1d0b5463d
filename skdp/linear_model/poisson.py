"""Differentially private Poisson regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from skdp._checks.weights import WeightReader
from skdp._dpsgd.models.linear import clipped_scores
from skdp._dpsgd.solver import fit_run
from skdp._dpsgd.targets import BoundedRegression
from skdp.base.estimator import with_parameters
from skdp.linear_model.newton import NewtonEstimator


@dataclass(frozen=True)
class BoundedRates(BoundedRegression):
    """Counts, or counts divided by their exposure, whose maximum can be below 1."""

    def check_bounds(self, low: float, high: float) -> None:
        if low < 0.0 or high <= 0.0:
            raise ValueError(
                f"`y_bounds` must be nonnegative with a positive upper bound, got ({low!r}, {high!r}). Pass (0, b), "
                "where b is the largest count or rate to be distinguished from smaller ones."
            )


@with_parameters
class DPPoissonRegressor(RegressorMixin, NewtonEstimator):
    """Differentially private Poisson regression.

    The logarithm of the mean count is linear in the features. ``fit`` makes eight Newton steps on noisy scores and
    curvatures, and estimates the standard errors for `summary`. No parameter has to be tuned.

    Parameters
    ----------
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. Choose
        a maximum count that few rows exceed, for example (0, 20). Predicted means should be below half of it, and the
        noise is proportional to it. If None, the bounds are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued.
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
        Coefficients of the logarithm of the mean, in the units of `X`.
    intercept_ : float
        Intercept.
    coef_noise_ : ndarray of shape (n_features,)
        Standard deviation of each coefficient due to the noise alone, as in `summary`.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
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
        1.0, or `rows_per_group`: bound on the contribution of a row or group to a step, for rows scaled by `data_norm_`
        and targets scaled by the maximum count.
    learning_rate_ : float
        1.0, the step size of Newton's method.
    n_iter_ : int
        Number of steps.
    n_steps_ : int
        Number of steps, equal to `n_iter_`.

    See Also
    --------
    DPLogisticRegression : Classification. ``inference=True`` uses the same Newton steps.
    DPMLPRegressor : Neural network. ``loss="poisson"`` is for counts.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is set and
      `random_state` is None.
    - One row changes the score and curvature of a step by a joint norm of at most 1, in units of the maximum count, for
      any features, target and weight. With `groups`, one group changes them by at most `max_grad_norm_`.
    - All fitted attributes are functions of nine noisy releases and of public quantities.
    - The accountant is charged before the rows are read. An interrupted fit stays charged.

    **Bounds on the means.** Means are clipped to half of the maximum count, so that the curvature is released at no
    additional privacy cost. The fraction of rows with a clipped target, mean or norm is estimated together with the
    standard errors, and `summary` states intervals only if it is negligible.

    **Exposure.** Pass counts divided by their exposure as `y`, the exposure as `sample_weight` and its maximum as
    `weight_bound`. The likelihood is that of counts with the logarithm of the exposure as offset.

    References
    ----------
    Ganesh, Haghifam, Steinke & Thakurta (2023), "Faster differentially private convex optimization via second-order
    methods".

    Gourieroux, Monfort & Trognon (1984), "Pseudo maximum likelihood methods: applications to Poisson models".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = rng.poisson(np.exp(X @ [1.0, -1.0]))
    >>> model = DPPoissonRegressor((0, 20), data_norm=2**0.5).fit(X, y)
    >>> model.coef_.round()
    array([ 1., -1.])
    """

    _table_title, _table_meaning = "Private Poisson regression", "the logarithm of the mean"
    loss: ClassVar[str] = "poisson"
    y_transform: ClassVar[Any] = None
    y_bounds_: tuple[float, float] = field(init=False)

    y_bounds: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows, in memory.
        y : array-like of shape (n_samples,)
            Private targets, nonnegative: counts, or counts divided by their exposure.
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

    def _target(self) -> BoundedRates:
        return BoundedRates(WeightReader.of(self.weight_bound), self.y_bounds, "poisson")

    def _lines_learned(self, coef: np.ndarray, intercept: np.ndarray, noise: np.ndarray) -> dict[str, Any]:
        return {"coef_": coef[0], "intercept_": float(intercept[0, 0]), "coef_noise_": noise[0]}

    def _scorer(self) -> Callable[[Any], np.ndarray]:
        line = {"coef": self.coef_[None, :], "intercept": np.array([self.intercept_])}
        return partial(clipped_scores, radius=self.data_norm_, **line)

    # --- predictions ---

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the mean count of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict. Rows are clipped to `data_norm_`, as in ``fit``.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted means, clipped to `y_bounds_`.
        """
        with np.errstate(over="ignore"):  # infinity is above the bounds
            means = np.exp(self._score_rows(X)[:, 0].astype(np.float64))
        return np.clip(means, *self.y_bounds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise decides the model of 200 rows
        tags.target_tags.positive_only = True
        return tags
