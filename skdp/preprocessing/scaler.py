"""Standardization by means and variances between bounds, estimated privately."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_array, check_is_fitted

from skdp._checks.parameters import bounds_of_any_width, bounds_of_columns, silent_arithmetic
from skdp._checks.table import fitted_table
from skdp._checks.weights import WeightReader, exactly_summable
from skdp.accounting import GaussianDpEvent
from skdp.base.estimator import BudgetedEstimator, with_parameters
from skdp.base.fit import begin
from skdp.base.private_step import StepPlan
from skdp.preprocessing.column_sums import EstimatedBounds, release_moments
from skdp.preprocessing.raw_columns import ReadsRawColumns, numbers_of, read_columns


@with_parameters
class DPStandardScaler(OneToOneFeatureMixin, ReadsRawColumns, BudgetedEstimator):
    """Differentially private standardization.

    Numbers are clipped to bounds, in ``fit`` and in ``transform``. Means and variances of all columns come from one
    release. Missing bounds are estimated privately first.

    Parameters
    ----------
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds, one pair for all columns or one for each. None estimates bounds privately with 30% of the budget.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of all releases together, divided by their sensitivity. If None, it is
        calibrated to `epsilon`.
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
    with_mean : bool, default=True
        Whether ``transform`` subtracts the means.
    with_std : bool, default=True
        Whether ``transform`` divides by the standard deviations.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is equivalent to 1; a fit with `sample_weight` then warns that larger weights are clipped.

    Attributes
    ----------
    mean_ : ndarray of shape (`n_features_in_`,)
        Noisy means of the clipped columns, within `bounds_`.
    var_ : ndarray of shape (`n_features_in_`,)
        Noisy variances, at least the standard deviation of the noise in a mean.
    scale_ : ndarray of shape (`n_features_in_`,)
        Square root of `var_`.
    bounds_ : list of (float, float)
        Bounds of each column, public or privately estimated.
    weight_bound_ : float
        Bound to which weights were clipped before division by it; 1.0 for ``weight_bound=None``.
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
        Noise multiplier of all releases together.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    DPQuantileBinner : Quantile bins, which suit linear models better than scaled columns.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
    - All fitted attributes are functions of noisy counts and sums and of public quantities. The proofs are in the
      docstrings of ``skdp.preprocessing.column_sums.ColumnSums`` and, for bounds, of
      ``skdp.preprocessing.histogram_query.HistogramQuery``.
    - With `groups`, the guarantee holds for all rows of one group together: their contribution is clipped to that of
      one row. ``transform`` ignores groups.
    - Weights multiply the contribution of a row by a number in [0, 1], so they do not raise the sensitivity.
    - Missing values do not contribute to any count or sum. ``transform`` processes each row independently.
    - An invalid table raises an error before the charge. The message contains no cell.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal(50.0, 10.0, (20_000, 2))
    >>> scaler = DPStandardScaler(bounds=(0, 100), epsilon=1.0).fit(X)
    >>> scaler.mean_.round(), scaler.scale_.round()
    (array([50., 50.]), array([10., 10.]))
    """

    bounds: Any = None
    _: KW_ONLY
    with_mean: bool = True
    with_std: bool = True
    weight_bound: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Estimate means and standard deviations privately.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows. Missing values are ignored, infinite numbers are clipped.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights. They are clipped to `weight_bound` and divided by it. The result, a number in
            [0, 1], multiplies the contribution of the row to counts and sums, so no weight raises the sensitivity. A
            row of weight 0 has no effect.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or household, or the name of a column of `X`, which
            is then not used as a feature. With `groups`, the guarantee holds for all rows of one group together,
            otherwise for one row.

        Returns
        -------
        self : DPStandardScaler
            Fitted transformer.

        Raises
        ------
        ValueError
            A parameter or the table is invalid. No budget is consumed.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        fit = begin(self, X, groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        bounds = bounds_of_columns(model.bounds, fit.n_features)
        missing = EstimatedBounds(bounds, model.adjacency)
        fit.plan(missing.event_beside(GaussianDpEvent))

        rows = fit.read_rows(read_columns)
        weights = exactly_summable(fit.read(weight_reader.read, sample_weight, fit.n_rows))
        fit.charge()

        given = fit.noise_multiplier, fit.n, fit.spawn, weights, fit.units
        pairs, (mean, var) = fit.learn(release_moments, missing, rows.columns, 2, *given)
        scale, bound = np.sqrt(var), weight_reader.bound
        return fit.publish(bounds_=pairs, mean_=mean, var_=var, scale_=scale, weight_bound_=bound)

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: one Gaussian release, and that of bounds if there are none."""
        missing = EstimatedBounds(bounds_of_any_width(self.bounds), self.adjacency)
        return StepPlan(missing.event_beside(GaussianDpEvent), {})

    @silent_arithmetic
    def transform(self, X: Any) -> np.ndarray:
        """Standardize rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with the columns seen during ``fit``.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features)
            Standardized rows as float64, with NaN for missing values.
        """
        check_is_fitted(self)
        table = fitted_table(self, X)
        made = np.empty(table.shape)
        for j, (low, high) in enumerate(self.bounds_):
            made[:, j] = np.clip(numbers_of(table, j), low, high)
        if self.with_mean:
            made -= self.mean_
        if self.with_std:
            made /= self.scale_
        return made

    @silent_arithmetic
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Convert standardized rows back to the original scale.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows as ``transform`` returns them.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Rows on the original scale, as float64. Clipping is not undone.
        """
        check_is_fitted(self)
        rows: np.ndarray = check_array(X, dtype=np.float64, copy=True, ensure_all_finite=False)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have {self.n_features_in_} columns, as the output of transform, got {rows.shape[1]}."
            )
        if self.with_std:
            rows *= self.scale_
        if self.with_mean:
            rows += self.mean_
        return rows
