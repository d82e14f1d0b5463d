"""Differentially private random trees regressor."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp._checks.groups import Units
from skdp._checks.notices import note_notice
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

    The splits of the trees depend on a public seed and on noisy marginal counts, which have 3% of the budget. A private
    linear regression on the leaves and the plain columns uses the rest. The trees add interactions to the linear model.

    `X` is a raw table of numbers, strings, dates and missing values. Often, only `schema`, `y_bounds` and `epsilon`
    have to be set.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_depth : int, default=8
        Maximum depth of a tree.
    max_leaf_nodes : int, default=16
        Maximum number of leaves of a tree. The largest node is split next.
    schema : TableSchema, mapping or None, default=None
        Public bounds or categories of all columns: a `skdp.preprocessing.TableSchema`, or a mapping. If None, `bounds`
        and `categories` are used, or the schema of ``DPTableVectorizer(numbers="codes")``.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds of all columns, or of each; None for a column with `categories`.
    categories : list of (list or None) or None, default=None
        Public categories of each column; None for numeric columns.
    n_bins : int, default=16
        Number of equal-width bins of a number or date. If its schema has more, a second block splits each bin into
        four.
    trees_random_state : int, default=0
        Public seed of the trees. Choosing it by a score on private rows consumes budget.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``: a number, or a `skdp.Risk`. Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of one step, divided by the clipping norm. If None, it is calibrated to
        `epsilon`.
    max_grad_norm : float or "auto", default="auto"
        Euclidean norm to which the gradient of each row is clipped, in units of `target_scale_`. "auto" is 0.5.
    lot_size : float or None, default=None
        Expected number of rows in one step. Each row is drawn independently (Poisson sampling). By default, all rows
        are used if affordable.
    sampling_rate : float or None, default=None
        `lot_size` as a fraction of the number of rows, in (0, 1]. Set at most one of the two.
    max_iter : int or None, default=None
        Number of epochs. None makes 100 steps.
    learning_rate : float or "auto", default="auto"
        Step size. "auto" computes it from public quantities.
    momentum : float, default=0.9
        Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.
    average : bool, default=True
        Whether to average the iterates of the second half of the steps.
    alpha : float, default=0.0
        Strength of the L2 penalty ``alpha / 2 * ||coef_||**2``, which is added to the mean loss.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is 1.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:

        - "zero_out": it is zeroed out and adds nothing to any sum.
        - "replace_one": it is replaced by another one.
        - ``skdp.AddRemove(n_public=10_000)``: it is added or removed; every rule uses the public number `n_public`.

        None uses that of `accountant`, otherwise "zero_out".
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant that records the privacy cost of each fit, before anything is learned from the rows, and rejects a
        fit that exceeds its budget. A path refers to an existing budget file (see ``python -m skdp.accounting create``)
        and is made absolute.
    checkpoint : str, path-like or None, default=None
        File from which an interrupted ``fit`` resumes, as in `skdp.DPLogisticRegression`.
    warm_start : bool, default=False
        If True, ``fit`` starts from the current coefficients, and `epsilon_` covers all calls.
    merge_equal_rows : {"auto", True, False}, default="auto"
        Whether equal rows, with equal targets and weights, are found once and then computed once a step, which is
        faster. "auto" does so for large lots of mostly repeated rows. The run time then depends on them
        (``docs/limitations.md``).
    n_jobs : int or None, default=None
        Number of threads, as in scikit-learn. The result does not depend on it.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of sampling and noise. None draws a fresh secret key from the operating system. Any other value makes the
        fit reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows
        the value.
    verbose : int, default=0
        If 1, show a progress bar with the current epsilon.
    y_bounds : (float, float) or None, default=None
        Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are predictions. If
        None, they are read from `y`; this is not covered by the guarantee, and a `PrivacyLeakWarning` is issued.
    y_transform : {"log"} or None, default=None
        "log" fits the logarithm of the targets and requires positive public `y_bounds`. Predictions are on the original
        scale, near the median.

    Attributes
    ----------
    embedding_ : PublicTreesEmbedding
        The fitted trees.
    coef_ : ndarray of shape (1, n_columns)
        Contribution of each bin, category and leaf to the score. A prediction is ``target_center_ + target_scale_ *
        score``, clipped to `y_bounds_`.
    intercept_ : ndarray of shape (1,)
        Intercept of the score, zero if ``fit_intercept=False``.
    target_center_ : float
        Noisy mean of the targets, or the middle of the bounds; 0.0 without an intercept.
    target_scale_ : float
        Noisy standard deviation of the targets divided by 0.45, or half the width of the bounds.
    coef_noise_ : ndarray of the shape of `coef_`
        Standard deviation of each coefficient due to the noise, from public quantities.
    feature_importances_ : ndarray of shape (`n_features_in_`,)
        Importance of each column of the table, from coefficients and public quantities.
    y_bounds_ : (float, float)
        Bounds on targets and predictions.
    weight_bound_ : float
        Bound to which weights were clipped.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``, if all are strings.
    epsilon_ : float
        Privacy cost (epsilon at `delta_`) of all runs since the last fit from scratch.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee.
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
        Step size.
    n_iter_ : int
        Number of epochs over all runs.
    n_steps_ : int
        Number of steps over all runs.

    See Also
    --------
    DPRandomTreesClassifier : Classification with the same trees.
    skdp.DPRidge : Linear model for numeric columns, from one release.

    Notes
    -----
    **Trees.** Trees are grown from noisy counts of each column's cells: the node with the largest expected count is
    split next, and half of the thresholds follow these counts. All rows have the norm 1. Later runs keep the trees.

    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `y_bounds` is set and
      `random_state` is None.
    - One row changes the sum of gradients of a step by at most `max_grad_norm_`. The noisy sum is divided by a public
      constant, the expected number of rows.
    - With `groups`, the guarantee holds for all rows of one group together: sums over a group are clipped to the
      contribution of one row.
    - The accountant is charged before the rows are read. An interrupted fit stays charged.
    - Errors for invalid input are raised before the charge. They depend on the data and are not covered.
    - `embedding_` depends on public quantities and on the noisy counts, which have 3% of mu squared of a fit to all
      rows and are part of `privacy_event_`.
    - `target_center_` and `target_scale_`, and the correction of `intercept_` by the mean error, depend on noisy sums
      that are released once before the first and after the last step. Each has 2% of mu squared of a fit to all rows
      and is part of `privacy_event_`.
    - `feature_importances_` are post-processing.

    Run times and the rounding of sums of more than 2^20 rows are not covered (``docs/limitations.md``).

    References
    ----------

    Geurts, Ernst & Wehenkel (2006), "Extremely randomized trees".

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
            units, notice = units_of_targets(sums, mechanism, fit_intercept=bool(self.model.fit_intercept))
            note_notice(self.model, notice)
        self.target, (center, unit) = replace(self.target, units=units), units
        return rows, targets._replace(values=(targets.values - center) / unit)

    def _digest_of_estimates(self) -> str:
        """See `TreesSolver`: includes the estimated units of the targets."""
        return f"{super()._digest_of_estimates()}, {self.model._fitted_units!r}"


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


def units_of_targets(sums: np.ndarray, mechanism: GaussianMechanism, *, fit_intercept: bool) -> tuple[TargetUnits, str]:
    """Return units in which targets have mean 0 and standard deviation `UNIT_SPREAD`, from noisy sums.

    The error of the variance is added to it, because a too large spread costs little accuracy, while a too small one
    causes a bias. Without an intercept, the center is 0. Also return a warning if the spread of the targets is not
    distinguishable from the noise, or "".
    """
    deviation = mechanism.standard_deviation
    total, first, second = sums.tolist()
    if total < ENOUGH * deviation:
        return TargetUnits(), ""
    center = min(max(first / total, -1.0), 1.0) if fit_intercept else 0.0
    variance = max((second - 2.0 * center * first) / total + center**2, 0.0)
    error = deviation / total * math.sqrt(1.0 + 4.0 * center**2 + center**4)
    units = TargetUnits(center, max(math.sqrt(min(variance + error, 1.0)), _LEAST) / UNIT_SPREAD)
    return units, "" if variance > error else _WIDE_BOUNDS


_WIDE_BOUNDS = (
    "`y_bounds` is so wide that the spread of the targets is not distinguishable from the noise, so predictions may be "
    "inaccurate. Set narrower public bounds, to which targets beyond them are moved, or use more rows or a larger "
    "epsilon."
)
