"""Private Poisson regression."""

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
    """Counts, or counts divided by their exposure, of which the largest may be below 1."""

    def check_bounds(self, low: float, high: float) -> None:
        if low < 0.0 or high <= 0.0:
            raise ValueError(
                f"y_bounds=({low!r}, {high!r}) are no bounds on counts: give (0, b), with b the largest count or rate "
                "that is distinguished from smaller ones."
            )


@with_parameters
class DPPoissonRegressor(RegressorMixin, NewtonEstimator):
    """Poisson regression with differential privacy for each row.

    The logarithm of the mean of a count is linear in the columns. A fit makes eight Newton steps on noisy scores and
    curvatures, and buys what `summary` tells of its coefficients. Nothing has to be tuned.

    Parameters
    ----------
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. Choose
        a largest count that few rows exceed, such as (0, 20), and of which means are less than half: the noise grows
        with it. If None, it is read from y, which is not paid for, and a `PrivacyLeakWarning` is issued.
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
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it. The
        weight of a rate is its exposure.
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
        Coefficients, of the logarithm of the mean, in the units of X.
    intercept_ : float
        Intercept.
    coef_noise_ : ndarray of shape (n_features,)
        Standard deviation that the noise alone gives to each coefficient, as `summary` has it.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
    data_norm_ : float
        Norm to which rows are scaled down.
    weight_bound_ : float
        Bound by which weights were divided; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Price of the fit at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    noise_multiplier_ : float
        Noise multiplier of as many steps of constant noise and the same price. `privacy_event_` has that of each.
    sampling_rate_ : float
        1.0: each step uses all rows.
    max_grad_norm_ : float
        1.0, or `rows_per_group`, which nothing that a record adds to a step exceeds, in the units of a row of norm
        `data_norm_` and of the largest count.
    learning_rate_ : float
        1.0, that of a Newton step.
    n_iter_ : int
        Number of steps.
    n_steps_ : int
        The same.

    See Also
    --------
    DPLogisticRegression : The same steps for classes, with ``inference=True``; its notes hold here too.
    DPMLPRegressor : Network, of which ``loss="poisson"`` is for counts.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None
      and `y_bounds` is given.
    - One row moves the score and the curvature that a step releases, taken together, by a norm of 1 at most, in units
      of the largest count, whatever it and its weight contain; with `groups` all rows of a label move them by
      `max_grad_norm_` at most.
    - All that is fitted is a function of nine noisy releases and of public quantities.
    - `accountant` is charged before the rows are read; an interrupted fit keeps its charge.

    **Means** are cut at half of the largest count, so that the curvature costs nothing
    (`skdp.linear_model.likelihoods.BoundedCounts` has the proof). Where rows are at the largest count, have a mean that
    is cut, or are longer than `data_norm_`, their share is bought with the moments of scores, and intervals are printed
    if it is next to none.

    **Exposure.** Give counts divided by their exposure as `y` and the exposure as `sample_weight`, with the largest one
    as `weight_bound`: the likelihood is that of counts with the logarithm of the exposure as offset.

    References
    ----------
    Ganesh, Haghifam, Steinke & Thakurta (2023), "Faster differentially private convex optimization via second-order
    methods".

    Gourieroux, Monfort & Trognon (1984), "Pseudo maximum likelihood methods: applications to Poisson models", for
    errors that hold whatever the distribution of counts is.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 3))
    >>> y = rng.poisson(np.exp(X @ [0.5, -0.3, 0.0] + 0.3))
    >>> model = DPPoissonRegressor((0, 10), data_norm=3**0.5).fit(X, y)
    >>> table = model.summary().to_frame()
    >>> bool(table.loc["x0", "low"] > 0), bool((table["doubt"] == "").all())
    (True, True)
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
            Private, nonnegative weights, which are divided by `weight_bound` and cut at it. The result, a number in
            [0, 1], multiplies what the row adds: no weight raises its influence, and proportions are kept. A row of
            weight 0 is a null row.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private label of the unit of each row, such as a person or a household, or the name of a column of `X`,
            which is no feature then. The guarantee is then for all rows of one label together, else for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. Nothing was charged.
        BudgetExceededError
            The budget of the accountant does not admit the fit. Nothing was charged.
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
        """Predict the means of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict. Longer rows are scaled down to `data_norm_`, as in ``fit``.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted means, moved into `y_bounds_`.
        """
        with np.errstate(over="ignore"):  # infinity is above the bounds
            means = np.exp(self._score_rows(X)[:, 0].astype(np.float64))
        return np.clip(means, *self.y_bounds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise decides the model of 200 rows
        tags.target_tags.positive_only = True
        return tags
