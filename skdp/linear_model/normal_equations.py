"""Least squares from one noisy matrix of second moments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._checks import targets as target_checks
from skdp._checks.groups import Units, check_row_limit
from skdp._checks.notices import few_rows_notice
from skdp._checks.parameters import check_data_norm, check_switch, radius_of, show, silent_arithmetic
from skdp._checks.rows import check_table, check_targets
from skdp._checks.sources import RowSource, map_rows, source_to_fit
from skdp._checks.targets import TargetBounds, TargetReader, TargetScale, check_y_bounds
from skdp._checks.weights import WeightReader, warn_of_no_bound, weight_of_each
from skdp._dpsgd.models.linear import clipped_scores
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.base.estimator import PrivateEstimator, with_parameters
from skdp.base.fit import Fit, NoisySum, begin
from skdp.base.private_step import StepPlan
from skdp.inspection import report_rows
from skdp.linear_model.coefficient_table import HasCoefficientTable
from skdp.linear_model.inference import Grounds, infer, solve_without_bias
from skdp.linear_model.scores import SCORE_RATIO, Equations, Noise, ScoreQuery, Scoring, is_longer, scores_of, solve
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.mechanisms.second_moments import ProductQuery, UnitBall

INTERCEPT = 0.2
"""The entry of the intercept, where a row of norm `data_norm` has norm 1."""

TARGET = 0.6
"""The entry of a target at a bound of `y_bounds`, on the same scale."""

FLOOR = 0.7
"""Smallest eigenvalue of the normal equations, divided by the edge of the spectrum of the noise."""

AUTO_ALPHA = 0.1
"""Penalty of ``alpha="auto"``, divided by that smallest eigenvalue."""

_ROWS = 2048
_ROWS_OF_SIGNAL = 2.0
"""There are few rows (`skdp._checks.notices`) below 20 sigma w, where w is the number of columns with intercept and
target. For 50 to 20,000 rows of 3, 10 and 40 columns at epsilon 1, the standard deviation of R^2 over eight fits was
0.04 to 1.2 below this limit, and at most 0.03 above.
"""


class BoundedTargets(NamedTuple):
    """Targets scaled to [-1, 1], their original bounds, and which of them were clipped."""

    scaled: np.ndarray
    bounds: TargetBounds
    beyond: np.ndarray


@dataclass(frozen=True, eq=False)
class TargetMoments(ProductQuery):
    """Second moments of z = (x, intercept, target), scaled to a norm of at most 1; see `DPLinearRegression`.

    Parameters
    ----------
    ball : UnitBall
        Ball to which rows x are clipped.
    intercept : float
        Entry of the intercept, 0 for none.
    by_position : bool
        See `MomentSum`.
    rows_per_group : int or None
        Maximum number of rows of the largest norm that a group counts as, independent of the targets. None clips the
        norm of the sum over a group, which depends on the targets too.

    Notes
    -----
    **Guarantees.** With ``rows_per_group=k`` a group adds a matrix of Frobenius norm at most k, and two groups differ
    by at most k sqrt(2).

    Proof. A row adds w z z', of norm w \\|z\\|**2, and z is longest for a target at its bound. The weights w of a group
    are multiplied by one number so that these bounds add up to at most k. The matrices of two groups are positive
    semidefinite, so their inner product is not negative.
    """

    ball: UnitBall
    intercept: float
    by_position: bool
    rows_per_group: int | None = None

    @property
    def width(self) -> int:
        return len(self.ball.center) + bool(self.intercept) + 1

    @property
    def size(self) -> float:
        """Squared norm of the longest z before it is scaled."""
        return 1.0 + self.intercept**2 + TARGET**2

    def vectors(self, rows: Any, targets: np.ndarray) -> np.ndarray:
        """See `ProductQuery`; in float64 if the position of a row can change."""
        d = len(self.ball.center)
        dtype = rows.dtype if self.by_position else np.dtype(np.float64)
        block = rows if isinstance(rows, np.ndarray) else rows.toarray()
        self.ball.bring_in(block, inside := np.empty(block.shape, dtype))
        z = np.full((len(inside), self.width), self.intercept, dtype)
        z[:, :d] = inside
        z[:, -1] = TARGET * targets
        z *= dtype.type(1.0 / math.sqrt(self.size))
        return z

    def sensitivity(self, adjacency: str) -> float:
        return (self.rows_per_group or 1) * super().sensitivity(adjacency)

    def clip_weights(self, weights: Any, units: Units, rows: Any, *targets: Any) -> np.ndarray:
        if self.rows_per_group is None:
            return super().clip_weights(weights, units, rows, *targets)
        each = weight_of_each(weights, rows.shape[0])
        return clip_groups(units, each, self.rows_per_group, self._longest_squares(rows))

    def _longest_squares(self, rows: Any) -> np.ndarray:
        """Return the squared norm of each z, if its target were at its bound."""
        n_parts = max(1, -(-rows.shape[0] // _ROWS))  # a table may have no rows under add/remove
        parts = [rows[_ROWS * k : _ROWS * (k + 1)] for k in range(n_parts)]
        return np.concatenate([np.square(self.vectors(part, np.ones(part.shape[0]))).sum(axis=1) for part in parts])

    def spread_of_weights(self, equations: Equations) -> float:
        """Return the maximum weight of a record divided by the released mean weight, or a bound on it; at least 1."""
        total, noise = float(np.trace(equations.gram)), equations.edge  # without intercept: rows of norm 1 at most
        if self.intercept:
            total, noise = float(equations.gram[-1, -1]), equations.noise.gram
        unit = self.intercept**2 or 1.0
        return max(1.0, (self.rows_per_group or 1) * equations.n * unit / max(total, noise, unit))

    def equations_of(self, noisy: NoisySum, n: int) -> Equations:
        """Return the normal equations from released moments of n rows or groups."""
        deviation = noisy.deviation * self.size
        noise = Noise(deviation, deviation / (math.sqrt(2.0) * TARGET), deviation / TARGET**2)
        return Equations.of(noisy.value, self.size, TARGET, noise, n)


@with_parameters
class MomentsRegressor(HasCoefficientTable, RegressorMixin, PrivateEstimator):
    """Base class of least squares regressors; see the notes of `DPLinearRegression`."""

    _table_title = "Private linear regression"
    _: KW_ONLY
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    data_norm: float | None = None
    weight_bound: Any = None
    rows_per_group: int | None = None
    fit_intercept: bool = True
    inference: bool = False
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def _ridge(self, least: float, radius: float) -> float:
        """The ridge that is added to the normal equations of rows of norm 1, whose least eigenvalue is `least`."""
        return 0.0

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Memory maps and `skdp.datasets.TableRows` are read once, in chunks; `y` and `sample_weight`
            can then be column names.
        y : array-like of shape (n_samples,)
            Private targets. Those beyond `y_bounds` are moved to the nearest bound.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are clipped to `weight_bound` and divided by it. The square root of the
            result, a number in [0, 1], multiplies the clipped row and target, so no weight raises the sensitivity. A
            row of weight 0 has no effect.
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
            A parameter or the input is invalid. No budget is consumed, unless the message states it: rows that are not
            in memory are read after the charge.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        fit = begin(self, _rows_to_fit(self, X, y, sample_weight, groups), groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        bounds = model._read_parameters()
        check_row_limit(model.rows_per_group, model._unit())
        fit.plan(model._event_at())
        fit.warn(model._weak_signal(fit))

        rows, weights, targets = fit.rows, 1.0, None
        if not isinstance(rows, RowSource):
            rows = fit.read_rows(check_table, sparse=True)
            weights = fit.read(weight_reader.read, sample_weight, fit.n_rows)
            targets = fit.read(_read_targets, model, y, fit.n_rows, bounds)
        fit.charge()

        # One release of second moments; coefficients are post-processing.
        query, bounds = model._query(fit.n_features or 1), bounds if targets is None else targets.bounds
        scale = TargetScale.of(bounds, model.fit_intercept)
        given = TargetReader(bounds, scale, weight_reader) if targets is None else targets.scaled
        equations = query.equations_of(fit.release(query, rows, given, weights=weights), fit.n)
        learned = model._solve(equations, scale, query.ball.radius)
        # Of the same event, the moments of scores at the released coefficients; an interrupt leaves these.
        inference, interrupted = None, ""
        try:
            if model.inference:
                inference = fit.learn(model._release_scores, fit, query, rows, targets, weights, equations, scale)
        except KeyboardInterrupt:
            interrupted = "after the release of the coefficients, before that of their standard errors"
        learned |= {"y_bounds_": bounds, "data_norm_": query.ball.radius, "weight_bound_": weight_reader.bound}
        return fit.publish(interrupted=interrupted, _fitted_inference=inference, **learned)

    # --- what it releases ---

    def _query(self, n_features: int) -> TargetMoments:
        ball = UnitBall(np.zeros(n_features), radius_of(self, n_features))
        intercept = INTERCEPT if self.fit_intercept else 0.0
        return TargetMoments(ball, intercept, not self._shifts_rows(), self._group_limit())

    def _group_limit(self) -> int | None:
        """Return `rows_per_group`, for inference 1 for None: a weight that depends on targets would bias slopes."""
        return 1 if self.rows_per_group is None and self.inference else self.rows_per_group

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: one Gaussian release or two."""
        return StepPlan(self._event_at(), {})

    def _event_at(self) -> Callable[[float], DpEvent]:
        """Return the event of a fit as a function of the noise multiplier of its first release."""
        return _event_of_both if self.inference else GaussianDpEvent

    def _read_parameters(self) -> TargetBounds | None:
        """Check parameters, and return the public bounds of the targets, None where they are read from them."""
        check_data_norm(self.data_norm)
        self._ridge(1.0, 1.0)
        check_switch("inference", self.inference)
        return check_y_bounds(self.y_bounds)

    def _weak_signal(self, fit: Fit) -> str:
        """Return the warning that there are few rows."""
        if fit.n_features is None:
            return ""
        width = fit.n_features + bool(self.fit_intercept) + 1
        signal = fit.n / (_ROWS_OF_SIGNAL * fit.noise_multiplier * (self.rows_per_group or 1) * width)
        return few_rows_notice(self, fit.noise_multiplier, fit.n, width - 1, signal)

    # --- post-processing of the release ---

    @silent_arithmetic
    def _solve(self, equations: Equations, scale: TargetScale, radius: float) -> dict[str, Any]:
        """Return coefficients and their standard errors, in the units of y and X."""
        least = FLOOR * equations.edge
        ridge = self._ridge(least, radius)
        theta, errors = solve(equations, least, ridge, bool(self.fit_intercept))
        d, unit = len(theta) - bool(self.fit_intercept), scale.half / radius
        learned: dict[str, Any] = {"coef_": theta[:d] * unit, "coef_std_": errors[:d] * unit}
        learned |= {"intercept_": scale.middle, "intercept_std_": 0.0}
        if self.fit_intercept:
            learned["intercept_"] = scale.middle + float(theta[d]) * INTERCEPT * scale.half
            learned["intercept_std_"] = float(errors[d]) * INTERCEPT * scale.half
        if hasattr(self, "alpha"):
            learned["alpha_"] = ridge * radius**2
        return learned

    def _release_scores(
        self, fit: Fit, query: TargetMoments, rows: Any, targets: BoundedTargets, weights: Any, equations: Equations,
        scale: TargetScale,
    ) -> Any:  # fmt: skip
        """Return standard errors by the moments of scores, in the units of y and X."""
        theta, radius = solve_without_bias(equations), query.ball.radius
        have_weights = fit.units is not None or np.ndim(weights) > 0
        spread = query.spread_of_weights(equations) if have_weights else 1.0
        how = Scoring.at(theta, equations, query.size, TARGET, spread)
        if fit.units is not None:
            weights = query.clip_weights(weights, fit.units, rows, targets.scaled)
        scores = ScoreQuery(lambda part: query.vectors(rows[part], targets.scaled[part]), how)
        cut, noise = is_longer(rows, radius) | targets.beyond, SCORE_RATIO * fit.noise_multiplier
        noisy = fit.release(scores, cut, weights=weights, noise_multiplier=noise, part="scores")
        d = len(theta) - bool(self.fit_intercept)
        units = np.full(len(theta), scale.half / radius)
        units[d:] = INTERCEPT * scale.half
        is_known = self.data_norm is not None or self._fitted_row_norm is not None
        found = scores_of(noisy.value, noisy.deviation, how.clip)
        inference = infer(equations, theta, found, np.diag(units), Grounds(is_known))
        inference.estimate[d:] += scale.middle
        return inference

    # --- predictions ---

    _effect_rows = staticmethod(report_rows)  # of a report, given this model or the pipeline that ends in it

    @silent_arithmetic
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the target of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict. Rows are clipped to `data_norm_`, as in ``fit``.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Predicted targets, clipped to `y_bounds_`.
        """
        check_is_fitted(self)
        return map_rows(self, X, self._predict, sparse=True)

    def _predict(self, X: Any) -> np.ndarray:
        """Predict the targets of checked rows."""
        scores = clipped_scores(X, self.data_norm_, self.coef_[None, :])[:, 0]
        return np.clip(scores + self.intercept_, *self.y_bounds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.regressor_tags.poor_score = True  # noise decides the model of 200 rows
        return tags


def _rows_to_fit(model: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
    """Return rows in memory as they are, or the source of rows that are not in memory."""
    are_named = check_y_bounds(model.y_bounds) is not None
    source = source_to_fit(X, y, sample_weight, groups, "y_bounds", are_named=are_named, reader=model)
    if source is None or not are_named:
        return X
    check_switch("inference", model.inference)
    for name, unused in (("inference", False), ("rows_per_group", None)):
        if (given := getattr(model, name)) not in (unused, None):
            raise ValueError(
                f"{name}={show(given)} requires rows in memory. Set {name}={unused}, or pass X as an array."
            )
    warn_of_no_bound(model.weight_bound, sample_weight)
    return source


def _event_of_both(noise_multiplier: float) -> DpEvent:
    """Return the event of the moments of scores and of those of rows, whose noise multiplier is given."""
    return compose([GaussianDpEvent(SCORE_RATIO * noise_multiplier), GaussianDpEvent(noise_multiplier)])


def _read_targets(model: Any, y: Any, n_rows: int, bounds: TargetBounds | None) -> BoundedTargets:
    """Return targets between their bounds, which are read from them where they are not public."""
    if bounds is None:
        target_checks.report_bounds_read(model)
    values, bounds = target_checks.bring_into_bounds(given := check_targets(y, n_rows), bounds)
    scale = TargetScale.of(bounds, model.fit_intercept)
    return BoundedTargets((values - scale.middle) / scale.half, bounds, values != given)
