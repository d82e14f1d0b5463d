"""Private least squares from one noisy matrix of second moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._checks.arithmetic import silent_arithmetic
from skdp._checks.notices import few_rows_notice, note_notice, tell_now
from skdp._checks.parameters import check_real, check_switch
from skdp._checks.row_weights import RowWeights, read_row_weights
from skdp._checks.rows import check_schema, check_table, check_targets, read_cells
from skdp._checks.sources import RowSource, source_to_fit, source_to_predict
from skdp._checks.targets import (
    TargetBounds,
    TargetReader,
    TargetScale,
    bring_into_bounds,
    check_y_bounds,
    report_bounds_read,
)
from skdp._checks.units import Units
from skdp._checks.weights import WeightReader, warn_of_no_bound, weight_of_each
from skdp._fit.conductor import UnreadFit, conduct
from skdp._threads import WorkerPool
from skdp._training.models.linear import clipped_scores
from skdp._typing import Doubles
from skdp.accounting import DpEvent, GaussianDpEvent
from skdp.base import FitTerms, PrivateEstimator, ReleasePlan, StepPlan
from skdp.effects.columns import report_rows
from skdp.linear_model.coefficient_table import HasCoefficientTable
from skdp.linear_model.equations import Equations, Noise, Solution, solve
from skdp.linear_model.inference import Grounds, infer, solve_without_bias
from skdp.linear_model.scores import SCORE_RELEASE, ScoreMoments, Scoring, is_longer, release_scores, sum_scores
from skdp.mechanisms.second_moments import MomentSum, UnitBall, sensitivity
from skdp.mechanisms.unit_norms import clip_moments
from skdp.preprocessing.histograms.purchase import event_with

INTERCEPT = 0.2
"""The entry of the intercept, where a row of norm `data_norm` has norm 1."""

TARGET = 0.6
"""The entry of a target at a bound of `y_bounds`, on the same scale."""

FLOOR = 0.7
"""Least eigenvalue of the normal equations, divided by the edge of the spectrum of the noise."""

AUTO_ALPHA = 0.1
"""The ridge of ``alpha="auto"``, divided by that least eigenvalue."""

_ROWS = 2048

_ROWS_OF_SIGNAL = 2.0
"""Rows are few (`skdp._checks.notices`) below 20 sigma w, w being the columns with intercept and target. Of 50 to
20,000 rows of 3, 10 and 40 columns at epsilon 1, R^2 of eight fits spread by .04 to 1.2 (standard deviation) below, by
.03 at most above."""


class BoundedTargets(NamedTuple):
    """Targets in [-1, 1], weights, and the bounds that the targets had.

    Targets and weights of rows that are not in memory are left out here. `beyond` says which targets were moved.
    """

    scaled: Doubles
    weights: RowWeights
    bounds: TargetBounds
    beyond: Any = False


class MomentsRegressor(HasCoefficientTable, RegressorMixin, PrivateEstimator):
    """Base class of regressors that solve noisy normal equations; the notes of `DPLinearRegression` have the proofs."""

    inference: bool
    weight_bound: Any

    def _ridge(self, least: float, radius: float) -> float:
        """The ridge that is added to the normal equations of rows of norm 1, whose least eigenvalue is `least`."""
        return 0.0

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Rows that are not in memory, such as memory maps and `skdp.datasets.TableRows`, are read once;
            `y` and `sample_weight` may then be names of columns.
        y : array-like of shape (n_samples,)
            Private targets. Those beyond `y_bounds` are moved to the nearest bound.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, which are divided by `weight_bound` and cut at it. The root of the result, a
            number in [0, 1], multiplies the row, intercept and target after they are clipped: no weight raises the
            influence of a row above that of the longest row without weights, and proportions are kept. A row of weight
            0 is a null row.
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
            A parameter or the input is invalid. Nothing was charged, unless the message says so: rows that are not in
            memory are read after the charge.
        BudgetExceededError
            The ceiling of the accountant does not admit the fit. Nothing was charged.
        """
        bounds = check_y_bounds(self.y_bounds)
        source = source_to_fit(
            X,
            y,
            sample_weight,
            groups,
            "y_bounds",
            are_named=bounds is not None,
            n_samples_public=self.n_samples_public,
        )
        if source is None or bounds is None:
            return self._fit_alone(X, y, sample_weight=sample_weight, groups=groups)
        if self.inference:
            raise ValueError(
                "inference=True with rows that are not in memory, which are read once: use inference=False, or give "
                "the rows as an array."
            )
        warn_of_no_bound(self.weight_bound, sample_weight)
        conduct(UnreadFit(self, source, BoundedTargets(np.empty(0), RowWeights(), bounds), groups))
        return self

    # --- the phases ---

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: one Gaussian release or two."""
        return StepPlan(self._event_at(), {})

    def _check_parameters(self, terms: FitTerms, n_samples: int, n_features: int | None) -> None:
        """See `PrivateEstimator`."""
        self._check_data_norm()
        check_y_bounds(self.y_bounds)
        self._ridge(1.0, 1.0)
        check_switch("inference", self.inference)
        WeightReader.of(self.weight_bound)
        n = self._public_n_samples(n_samples)
        if n_features is not None:
            tell_now(self, self._weak_signal(self._solve_noise(terms.budget, self._event_at()), n, n_features))

    def _weak_signal(self, noise_multiplier: float, n_public: int, n_features: int) -> str:
        """Return the notice of rows that are too few."""
        width = n_features + bool(self.fit_intercept) + 1
        signal = n_public / (_ROWS_OF_SIGNAL * noise_multiplier * width)
        return few_rows_notice(self, noise_multiplier, n_public, width - 1, signal)

    def _plan_fit(self, terms: FitTerms, n_samples: int, n_features: int, targets: Any) -> ReleasePlan:
        """See `PrivateEstimator`."""
        plan = self._plan_release(terms, sensitivity(0.0, self.adjacency), self._event_at())
        if n_features is not None:  # a source of rows does not tell it before the charge
            n = self._public_n_samples(n_samples)
            note_notice(self, self._weak_signal(plan.mechanism.noise_multiplier, n, n_features))
        return plan

    def _event_at(self) -> Callable[[float], DpEvent]:
        """What the fit costs at the noise multiplier of its first release."""
        return partial(event_with, (SCORE_RELEASE,), GaussianDpEvent) if self.inference else GaussianDpEvent

    def _check_rows(self, X: Any) -> Any:
        """See `PrivateEstimator`."""
        return check_table(self, X, reset=True, sparse=True)

    def _check_targets(self, y: Any, n_samples: int, **fit_params: Any) -> BoundedTargets:
        """See `PrivateEstimator`."""
        weights = read_row_weights(self.weight_bound, n_samples, **fit_params)
        bounds = check_y_bounds(self.y_bounds)
        if bounds is None:
            report_bounds_read(self)
        values, bounds = bring_into_bounds(given := check_targets(y, n_samples), bounds)
        scale = TargetScale.of(bounds, self.fit_intercept)
        return BoundedTargets((values - scale.middle) / scale.half, weights, bounds, values != given)

    def _learn(self, plan: ReleasePlan, rows: Any, targets: BoundedTargets) -> str:
        """See `PrivateEstimator`."""
        units, radius = targets.weights.units, self._radius(rows.shape[1])
        n_units = rows.n_units if isinstance(rows, RowSource) else None
        n = self._public_n_samples(n_units or targets.weights.n_units(rows.shape[0]))
        self.weight_bound_, weights = WeightReader.of(self.weight_bound).bound, targets.weights.shares
        intercept = INTERCEPT if self.fit_intercept else 0.0
        scale = TargetScale.of(targets.bounds, self.fit_intercept)
        by_position = not self._shifts_rows()
        new_sum = partial(SumOfRows, rows.shape[1], radius, intercept, by_position=by_position)
        if isinstance(rows, RowSource):
            sums = rows.add_up(new_sum, TargetReader(targets.bounds, scale, WeightReader.of(self.weight_bound))).of_z
        else:
            with closing(WorkerPool()) as pool:
                (one := new_sum(pool=pool)).add(rows, targets.scaled, weights, units)
            sums = one.of_z
        moments = sums.moments(plan.release(sums.isometric))
        size = 1.0 + intercept**2 + TARGET**2
        deviation = plan.mechanism.standard_deviation * sums.rounding * size
        noise = Noise(deviation, deviation / (math.sqrt(2.0) * TARGET), deviation / TARGET**2)
        equations = Equations.of(moments, size, TARGET, noise, n)
        least = FLOOR * equations.edge
        self._set_coefficients(solve(equations, least, self._ridge(least, radius), bool(intercept)), scale, radius)
        self._fitted_inference, interrupted = None, ""
        try:
            if self.inference:
                theta = solve_without_bias(equations)
                how = Scoring.at(theta, equations, size, TARGET)
                scores = sum_scores(*one.to_score(rows, targets.scaled, targets.beyond, weights, units), how)
                self._infer(equations, how, self._release_scores(plan, scores, how), scale, radius)
        except KeyboardInterrupt:
            interrupted = "after the release of the coefficients, before that of their standard errors"
        self.y_bounds_, self.data_norm_ = targets.bounds, radius
        self.noise_multiplier_ = plan.mechanism.noise_multiplier
        self._set_alpha(least, radius)
        self._set_price(plan.price)
        return interrupted

    def _release_scores(self, plan: ReleasePlan, scores: MomentSum, how: Scoring) -> ScoreMoments:
        mechanism = SCORE_RELEASE.mechanism(sensitivity(0.0, self.adjacency), plan.mechanism.noise_multiplier)
        return release_scores(scores, mechanism, plan.stream_of("scores"), how.clip)

    def _infer(
        self, equations: Equations, how: Scoring, found: ScoreMoments, scale: TargetScale, radius: float
    ) -> None:
        """Keep what `summary` tells, in the units of y and X."""
        d = len(how.theta) - bool(self.fit_intercept)
        units = np.full(len(how.theta), scale.half / radius)
        units[d:] = INTERCEPT * scale.half
        is_known = self.data_norm is not None or self._fitted_row_norm is not None
        inference = infer(equations, how.theta, found, np.diag(units), Grounds(is_known))
        inference.estimate[d:] += scale.middle
        self._fitted_inference = inference

    def _set_alpha(self, least: float, radius: float) -> None:
        """Publish the ridge, where there is one."""

    def _set_coefficients(self, solution: Solution, scale: TargetScale, radius: float) -> None:
        theta, errors = solution
        d = len(theta) - bool(self.fit_intercept)
        self.coef_, self.coef_std_ = theta[:d] * (scale.half / radius), errors[:d] * (scale.half / radius)
        self.intercept_, self.intercept_std_ = scale.middle, 0.0
        if self.fit_intercept:
            self.intercept_ = scale.middle + float(theta[d]) * INTERCEPT * scale.half
            self.intercept_std_ = float(errors[d]) * INTERCEPT * scale.half

    # --- checks of parameters ---

    def _check_data_norm(self) -> float | None:
        if self.data_norm is None:
            return None
        remedy = "choose a public bound from 1e-30 to 1e30, or None"
        return check_real("data_norm", self.data_norm, at_least=1e-30, at_most=1e30, remedy=remedy)

    def _radius(self, n_features: int) -> float:
        return self._check_data_norm() or self._fitted_row_norm or math.sqrt(n_features)

    # --- what a coefficient is worth ---

    def _table_heads(self) -> tuple[str, str, Sequence[str]]:
        """See `HasCoefficientTable`."""
        return "Private least squares", "", ()

    # --- predictions ---

    def _effect_rows(self, whole: Any) -> list[dict[str, Any]]:
        """What a report says of each column; `whole` is this model, or the pipeline that ends in it."""
        return report_rows(whole)

    @silent_arithmetic
    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict. Longer rows are scaled down to `data_norm_`, as in ``fit``.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted targets, moved into `y_bounds_`.
        """
        check_is_fitted(self)
        source = source_to_predict(X, getattr(self, "feature_names_in_", None))
        if source is None:
            return self._predict(check_table(self, X, reset=False, sparse=True))
        check_schema(self, source.like(), reset=False)
        return source.map_blocks(lambda rows: self._predict(read_cells(rows, source.names)))

    def _predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the targets of checked rows."""
        scores = clipped_scores(X, self.data_norm_, self.coef_[None, :])[:, 0]
        return np.clip(scores + self.intercept_, *self.y_bounds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True  # noise decides the model of 200 rows
        return tags


class SumOfRows:
    """Sum of z z' over rows z = (x, intercept, target), scaled to a norm of at most 1 each; `DPLinearRegression`.

    Parameters
    ----------
    n_features : int
    radius : float
        Norm to which rows are scaled down.
    intercept : float
        Entry of the intercept, 0 for none.
    by_position : bool
        See `MomentSum`, like `pool`.

    Attributes
    ----------
    of_z : MomentSum
    """

    def __init__(
        self, n_features: int, radius: float, intercept: float, *, by_position: bool, pool: WorkerPool | None = None
    ) -> None:
        self._ball, self._intercept = UnitBall(np.zeros(n_features), radius), intercept
        self._by_position = by_position
        width = n_features + bool(intercept) + 1
        self.of_z = MomentSum(UnitBall(np.zeros(width), 1.0), 0.0, by_position=by_position, pool=pool)

    @property
    def n_rows(self) -> int:
        return self.of_z.n_rows

    def add(self, rows: Any, targets: Doubles, weights: Any, units: Units | None = None) -> None:
        """Add rows with targets in [-1, 1] and weights in [0, 1], 1.0 for none.

        With units, of which it has all rows, each unit adds no more than a row may.
        """
        weights = self._clip_units(rows, targets, weights, units)
        roots = np.sqrt(weights) if isinstance(weights, np.ndarray) else None
        for start in range(0, rows.shape[0], _ROWS):
            part = slice(start, start + _ROWS)
            z = self._vectors(rows[part], targets[part])
            if roots is not None:  # after the clip: z is in the unit ball
                z *= roots[part, None].astype(z.dtype)
            self.of_z.add(z)

    def _clip_units(self, rows: Any, targets: Doubles, weights: Any, units: Units | None) -> Any:
        """Return weights times shares by which each unit adds no more than a row may."""
        if units is None:
            return weights
        width, each = len(self.of_z.ball.center), weight_of_each(weights, rows.shape[0])
        return clip_moments(units, lambda chosen: self._vectors(rows[chosen], targets[chosen]), width, each)

    def to_score(
        self, rows: Any, targets: Doubles, beyond: Any, weights: Any, units: Units | None
    ) -> tuple[Any, Any, Any, Any]:
        """Return what `sum_scores` needs of the rows that were added: vectors, whether cut, weights and units."""
        cut = is_longer(rows, self._ball.radius) | beyond
        weights = self._clip_units(rows, targets, weights, units)
        return lambda part: self._vectors(rows[part], targets[part]), cut, weights, units

    def clip(self) -> None:
        """Clip the sum, of all rows of one unit, to what a row may add."""
        self.of_z.clip()

    def _vectors(self, rows: Any, targets: Doubles) -> NDArray[Any]:
        """Return z of each row, in float64 where its place may shift."""
        d, width = len(self._ball.center), len(self.of_z.ball.center)
        dtype = rows.dtype if self._by_position else np.dtype(np.float64)
        block = rows if isinstance(rows, np.ndarray) else rows.toarray()
        inside = np.empty(block.shape, dtype)
        self._ball.bring_in(block, inside)
        z = np.full((len(inside), width), self._intercept, dtype)
        z[:, :d] = inside
        z[:, -1] = TARGET * targets
        z *= dtype.type(1.0 / math.sqrt(1.0 + self._intercept**2 + TARGET**2))
        return z

    def merge(self, other: SumOfRows) -> None:
        """Add the sum over other rows."""
        self.of_z.merge(other.of_z)


__all__ = ["AUTO_ALPHA", "FLOOR", "INTERCEPT", "TARGET", "MomentsRegressor"]
