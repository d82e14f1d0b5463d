"""Differentially private random trees regressor."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp._checks.groups import Units
from skdp._checks.targets import TargetBounds, TargetScale
from skdp._checks.weights import WeightReader, weight_of_each
from skdp._dpsgd.mean_correction import ENOUGH, TargetMean
from skdp._dpsgd.models.one_hot import OneHotRows
from skdp._dpsgd.solver import Run, Targets, fit_run
from skdp._dpsgd.targets import BoundedRegression, GradientRegressor
from skdp.base.estimator import with_parameters
from skdp.ensemble.leaf_model import RandomTreesModel, TreesSolver
from skdp.mechanisms.bounded_sum import VectorQuery
from skdp.mechanisms.gaussian import GaussianMechanism, noise_ratio
from skdp.mechanisms.sampling import Sampling


@with_parameters
class DPRandomTreesRegressor(RandomTreesModel, GradientRegressor):
    """Differentially private random trees regressor.

    The splits of the trees are drawn at random. They depend on a public seed and on one noisy count of the cells of
    each column, which has 3% of the budget. A private linear regression on the leaves and on the plain columns uses the
    remaining budget. The trees add interactions between columns to the linear model. There is no bagging and no private
    search for splits.

    `X` is a raw table of numbers, strings, dates and missing values. Defaults depend on public quantities only, so
    `schema`, `y_bounds` and `epsilon` are often the only parameters to set.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_depth : int, default=8
        Maximum depth of a tree.
    max_leaf_nodes : int, default=16
        Maximum number of leaves of a tree. Trees grow best-first: the node with the largest expected number of rows is
        split next.
    schema : TableSchema, mapping or None, default=None
        Public description of the columns: a `skdp.preprocessing.TableSchema`, or a mapping that it accepts. It must be
        complete: bounds of all numbers and dates, categories of all other columns. If None, `bounds` and `categories`
        describe the columns; if these are None too, the schema that the rows of ``DPTableVectorizer(numbers="codes")``
        carry is used.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds, one pair for all columns or one for each. None is for a column with `categories`.
    categories : list of (list or None) or None, default=None
        Public categories of each column. None is for a numeric column.
    n_bins : int, default=16
        Number of bins, of equal width between public bounds, of a plain numeric or date column. A column with more bins
        in its schema gets a second block, in which each bin is split into four.
    trees_random_state : int, default=0
        Public seed of the trees, a nonnegative integer. It is independent of the noise. Choosing it by a score on
        private rows is hyperparameter tuning and consumes budget.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more. Later runs (`warm_start`, ``partial_fit``) keep the value of the first
        run.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float or "auto", default="auto"
        Clipping norm C: the gradient of each row is clipped to this Euclidean norm. Rows have norm 1, so the norm of a
        gradient is the absolute error in units of `target_scale_`. "auto" uses 0.5, about 1.1 standard deviations of
        the targets.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). If `lot_size` and
        `sampling_rate` are both None, all rows are used, unless this would take too long.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. None makes 100 steps.
    learning_rate : float or "auto", default="auto"
        Step size for the scaled rows and the mean gradient. "auto" computes it from public quantities.
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.
    average : bool, default=True
        Whether to average the iterates of the second half of the steps, which is post-processing.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coef_||**2``, which is added to the mean loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is equivalent to 1; a fit with `sample_weight` then warns that larger weights are clipped.
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
    checkpoint : str, path-like or None, default=None
        File that stores the state of the fit until it completes. An interrupted ``fit`` resumes from it when it is
        called again with the same parameters and rows, and an accountant that already recorded the fit is not charged
        again. The file is removed when the fit completes. While a fit uses the file, a lock on ``<checkpoint>.lock``
        rejects any other fit that uses it, before that fit is charged.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step, which is
        faster. "auto" does so if the expected lot has at least 4,096 rows and eight times as many as there are distinct
        rows. The run time then depends on the number of repeated rows (``docs/limitations.md``).
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it. None means 1 unless in a ``joblib.parallel_config``
        context. -1 means using all processors.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of sampling and noise. None draws a fresh secret key from the operating system. Any other value makes the
        fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows
        the value.
    verbose : int, default=0
        If 1, show a progress bar with the current epsilon on standard error.
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. If
        None, they are read from `y`; this is not covered by the guarantee, and a `PrivacyLeakWarning` is issued.
    y_transform : {"log"} or None, default=None
        Transformation of the targets. "log" fits their logarithm and requires positive public `y_bounds`. Predictions
        are on the original scale, and near the conditional median instead of the mean.

    Attributes
    ----------
    embedding_ : PublicTreesEmbedding
        The fitted trees. ``embedding_.get_feature_names_out()`` returns the names of the columns of `coef_`.
    coef_ : ndarray of shape (1, n_columns)
        Contribution of each bin, category and leaf to the score. They sum to zero over each plain column and each tree.
        A prediction is ``target_center_ + target_scale_ * score``, clipped to `y_bounds_`.
    intercept_ : ndarray of shape (1,)
        Intercept of the score, zero if ``fit_intercept=False``.
    target_center_ : float
        Noisy mean of the targets, or the middle of the bounds if the noise is too large; 0.0 if
        ``fit_intercept=False``.
    target_scale_ : float
        Unit of the score: the noisy standard deviation of the targets divided by 0.45, or half the width of the bounds
        if the noise is too large. With ``y_transform="log"``, both attributes refer to the logarithm of the targets.
    coef_noise_ : ndarray of the shape of `coef_`
        Standard deviation of each coefficient due to the noise alone, computed from public quantities, as for a fit to
        zeroed-out records.
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Importance of each column of the table: its part of the variance of the score, computed from coefficients and
        public quantities.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
    weight_bound_ : float
        Bound to which weights were clipped and by which they were divided in the last run; 1.0 for
        ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Privacy cost (epsilon at `delta_`) of everything that the fitted state depends on: all calls of ``fit`` with
        `warm_start` and of ``partial_fit``. At most `epsilon` after a single fit.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee: one row, or all rows of one group.
    privacy_event_ : DpEvent
        Privacy event from which `epsilon_` is computed.
    noise_multiplier_ : float
        Noise multiplier of the last run, as in `skdp.DPLogisticRegression`.
    sampling_rate_ : float
        Sampling rate of the last run.
    max_grad_norm_ : float
        Clipping norm of the last run.
    data_norm_ : float
        Norm of every row, 1.0.
    learning_rate_ : float
        Step size of the last run.
    n_iter_ : int
        Number of epochs over all runs.
    n_steps_ : int
        Number of steps over all runs.

    See Also
    --------
    PublicTreesEmbedding : Random trees as a transformer.
    DPRandomTreesClassifier : Classification with the same trees.
    skdp.DPRidge : Linear model for numeric columns, from one release.
    skdp.tabular_pipeline : Pipeline that estimates an incomplete schema privately.

    Notes
    -----
    **Features.** A row has one indicator per plain column (a bin, a category or a missing value) and one per tree (its
    leaf). Public weights give all rows the norm 1. The trees have two thirds of the squared norm, or down to one third
    if the noise is large.

    **Trees.** Before the first step, noisy counts are released: 32 cells of each numeric column, and the categories of
    each other column. Trees are grown from them as if columns were independent: the largest node is split next, and
    half of the thresholds follow the counts. Later runs (`warm_start`, ``partial_fit``) keep the trees.

    **Targets.** The mean and standard deviation of the targets are estimated with 2% of the budget, and targets are
    standardized by them. The mean error due to clipping is estimated after the last step with another 2%, and
    `intercept_` is corrected by it, unless ``fit_intercept=False`` or the run was interrupted.

    Unlike the random forests of Jagannathan et al. and Fletcher & Islam, no leaf is released by itself. All leaves are
    features of one linear model, so more trees do not divide the budget.

    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is set and
      `random_state` is None.
    - One row changes the sum of gradients of a step by at most `max_grad_norm_`, for any features, target and weight.
      The noisy sum is divided by a public constant, the expected number of rows.
    - With `groups`, the guarantee holds for all rows of one group together. The sum of their clipped gradients is
      clipped to `max_grad_norm_` again, and all other sums are clipped to the contribution of one row.
    - The accountant is charged before the rows are read. An interrupted fit stays charged and keeps the model of the
      completed steps.
    - Invalid input (unreadable cells, NaN as a target, negative weights) raises an error before the charge. Whether an
      error is raised depends on the data and is not covered.
    - `embedding_` depends on the schema, the public seed and the noisy counts, which have 3% of mu squared of a fit to
      all rows and are part of `privacy_event_`.
    - `target_center_` and `target_scale_` depend on `y_bounds` and on noisy sums of weights, targets and squared
      targets, released once before the first step. The correction of `intercept_` depends on noisy sums of weights and
      errors, released once after the last step. Each has 2% of mu squared of a fit to all rows and is part of
      `privacy_event_`.
    - `feature_importances_` are post-processing of `embedding_` and the coefficients.

    The guarantee covers the released values. It does not cover the run time or the rounding of sums of more than 2^20
    rows (``docs/limitations.md``).

    References
    ----------
    Abadi et al. (2016), "Deep learning with differential privacy".

    Geurts, Ernst & Wehenkel (2006), "Extremely randomized trees".

    Jagannathan, Pillaipakkamnatt & Wright (2009), "A practical differentially private random decision tree classifier".

    Fletcher & Islam (2016), "Differentially private random decision forests using smooth sensitivity".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.ensemble import DPRandomTreesRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = DPRandomTreesRegressor(100, bounds=(-1, 1), y_bounds=(-1, 1), epsilon=1.0).fit(X, y)
    >>> model.score(X, y)
    0.9...
    """

    _: KW_ONLY
    y_bounds: Any = None
    y_transform: str | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private targets. Those beyond `y_bounds` are moved to the nearest bound.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are clipped to `weight_bound` and divided by it. The result, a number in
            [0, 1], multiplies the clipped gradient of the row, so no weight raises the sensitivity. A row of weight 0
            has no effect.

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
        return fit_run(self, X, y, sample_weight, groups, warm=bool(self.warm_start) and self._has_run())

    def _solver(self, target: Any, n_features: int, *, anew: bool = True) -> TreesOfTargets:
        return TreesOfTargets(self, target, anew=anew)

    def _target(self) -> TargetsInUnits:
        weights, intercept = WeightReader.of(self.weight_bound), bool(self.fit_intercept)
        return TargetsInUnits(weights, self.y_bounds, self.loss, self.y_transform, intercept)


@dataclass(frozen=True)
class TargetsInUnits(BoundedRegression):
    """Targets in released units: first on the public scale, then standardized by the noisy center and spread."""

    fit_intercept: bool = True
    units: TargetUnits | None = None  # once they are released

    def scale_of(self, bounds: TargetBounds) -> TargetScale:
        """See `BoundedRegression`: the public scale, on which the units are estimated."""
        return TargetScale.of(bounds, self.fit_intercept, is_log=self.fits_logarithms)

    def means(self, outputs: Any) -> TargetMean:
        """See `Target`: the mean of targets in their units."""
        center, unit = self.released_units
        error = 2.25  # at most, in units of targets: five standard deviations of targets
        return TargetMean((-1.0 - center) / unit, (1.0 - center) / unit, error, doubted=1.0)

    def learned(self, outputs: Any) -> dict[str, Any]:
        public, (center, unit) = self.scale_of(outputs.bounds), self.released_units
        scale = public._replace(middle=public.middle + public.half * center, half=public.half * unit)
        found = {"_fitted_units": self.units, "_fitted_scale": scale, "_fitted_with_intercept": self.fit_intercept}
        return {**super().learned(outputs), **found, "target_center_": scale.middle, "target_scale_": scale.half}

    @property
    def released_units(self) -> TargetUnits:
        """Noisy center and spread of the targets on the public scale."""
        if self.units is None:
            raise RuntimeError("The units of the targets are not released yet.")
        return self.units


class TreesOfTargets(TreesSolver):
    """Solver for trees and targets, whose units the first run estimates."""

    def check_present(self, run: Run) -> None:
        if bool(self.model.fit_intercept) != self.model._fitted_with_intercept:
            raise ValueError(
                f"fit_intercept={self.model.fit_intercept!r} differs from earlier runs, whose targets have other "
                "units. Set it as before, or fit again with warm_start=False."
            )
        super().check_present(run)

    def beside_steps(self, sampling: Sampling, n_steps: int) -> dict[str, float]:
        found = super().beside_steps(sampling, n_steps)
        if self.anew:
            found[_TARGETS] = noise_ratio(UNITS_SHARE, sampling.rate, n_steps)
        return found

    def before_steps(self, run: Run, rows: Any, targets: Targets) -> tuple[OneHotRows, Targets]:
        """See `Solver`. Later runs keep the units of the first one."""
        rows, targets = super().before_steps(run, rows, targets)
        if run.earlier is not None:
            units = self.model._fitted_units
        else:
            mechanism = run.mechanism(_TARGETS, SUMS_SENSITIVITY)
            weights = weight_of_each(targets.weights, len(targets.values))
            sums = run.released(_TARGETS, mechanism, partial(sum_targets, targets.values, weights, targets.units))
            units = units_of_targets(sums, mechanism, fit_intercept=bool(self.model.fit_intercept))
        self.target, (center, unit) = replace(self.target, units=units), units
        return rows, targets._replace(values=(targets.values - center) / unit)

    def _digest_of_bought(self) -> str:
        """See `TreesSolver`: includes the estimated units of the targets."""
        return f"{super()._digest_of_bought()}, {self.model._fitted_units!r}"


_TARGETS = "targets"


# --- privately estimated units of the targets ---

UNITS_SHARE = 0.02
"""Fraction of mu squared of a fit for mean and spread. The steps then have 1% less of mu."""

UNIT_SPREAD = 0.45
"""Standard deviation of targets in the units for which the default clipping norm and steps are chosen."""

SUMS_SENSITIVITY = math.sqrt(3.0)
"""Norm of the contribution of one row to the sums."""

_LEAST = 1e-3


class TargetSums(VectorQuery):
    """Query for the number of rows, the sum of their targets and the sum of squared targets."""

    width, row_limit = 3, SUMS_SENSITIVITY

    def vectors(self, rows: Any, *targets: Any) -> np.ndarray:
        values = np.clip(rows, -1.0, 1.0)  # bounds that are adjacent doubles have rounded ends
        return np.column_stack([np.ones_like(values), values, values**2])


class TargetUnits(NamedTuple):
    """Affine map of targets in [-1, 1]: (y - center) / unit."""

    center: float = 0.0
    unit: float = 1.0


def sum_targets(values: np.ndarray, weights: np.ndarray, units: Units | None = None) -> np.ndarray:
    """Sum weights, weighted targets and their squares: exact sums, to which noise of `UNITS_SHARE` is added.

    Parameters
    ----------
    values, weights : ndarray of shape (n,)
        Private targets, which are clipped to [-1, 1], and weights in [0, 1].
    units : Units or None
        Of the rows.

    Returns
    -------
    ndarray of shape (3,)

    Notes
    -----
    **Guarantees.** A row of weight w in [0, 1] and target y in [-1, 1] adds (w, w y, w y^2), whose norm is at most
    sqrt(3); a row of weight 0 (a zeroed-out record) adds nothing. With `units`, the contribution of a unit is clipped
    to sqrt(3). The sums are one Gaussian release. The units of the targets follow from it and from public quantities.
    """
    (sums := TargetSums().new_sum("zero_out")).add(values, weights, units=units)
    return sums.vector


def units_of_targets(sums: np.ndarray, mechanism: GaussianMechanism, *, fit_intercept: bool) -> TargetUnits:
    """Return units in which targets have mean 0 and standard deviation `UNIT_SPREAD`, from noisy sums.

    The error of the variance is added to it, because a too large spread costs little accuracy, while a too small one
    causes a bias. Without an intercept, the center is 0.
    """
    deviation = mechanism.standard_deviation
    total, first, second = sums.tolist()
    if total < ENOUGH * deviation:
        return TargetUnits()
    center = min(max(first / total, -1.0), 1.0) if fit_intercept else 0.0
    variance = max((second - 2.0 * center * first) / total + center**2, 0.0)
    error = deviation / total * math.sqrt(1.0 + 4.0 * center**2 + center**4)
    return TargetUnits(center, max(math.sqrt(min(variance + error, 1.0)), _LEAST) / UNIT_SPREAD)
