"""Differentially private imputation of missing values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from skdp._checks import parameters
from skdp._checks.numbers import key_of, number_of
from skdp._checks.rows import check_schema
from skdp._checks.table import Table, as_keys, fitted_table
from skdp.accounting import DpEvent, GaussianDpEvent, NoOpDpEvent
from skdp.base.budget import read_budget
from skdp.base.estimator import BudgetedEstimator, with_parameters
from skdp.base.fit import Fit, begin, fit_publicly, units_of
from skdp.base.private_step import PrivateStep, StepPlan
from skdp.base.public_steps import register
from skdp.preprocessing.column_sums import EstimatedBounds, release_moments
from skdp.preprocessing.histogram_query import THRESHOLD_SHARE, HistogramQuery
from skdp.preprocessing.raw_columns import ColumnsRead, ReadsRawColumns, numbers_of, read_columns


@with_parameters
class DPSimpleImputer(OneToOneFeatureMixin, ReadsRawColumns, BudgetedEstimator):
    """Differentially private imputation of missing values.

    Parameters
    ----------
    strategy : {"mean", "median", "most_frequent", "constant"}, default="mean"
        Value that replaces missing values:

        - "mean" and "median" of a numeric column.
        - "most_frequent" is the most frequent value of a numeric, categorical or date column, if its noisy count
          exceeds a threshold; otherwise 0, or "missing" for strings.
        - "constant" is `fill_value`. No private data is used, and no budget is consumed.
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
    fill_value : float, str or None, default=None
        Value for ``strategy="constant"``. None is 0, and "missing" for strings.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds, one pair for all columns or one for each. Numbers are clipped to them for mean and median. None
        estimates bounds privately, with a part of the budget.

    Attributes
    ----------
    statistics_ : ndarray of shape (`n_features_in_`,)
        Value for missing values of each column.
    epsilon_ : float
        Privacy cost of the fit (epsilon at `delta_`), at most `epsilon`; 0.0 for ``strategy="constant"``.
    delta_ : float
        Delta at which `epsilon_` is computed; 0.0 if nothing was estimated.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee: one row, or all rows of one group.
    privacy_event_ : DpEvent
        Privacy event from which `epsilon_` is computed.
    noise_multiplier_ : float
        Noise multiplier of all releases together; 0.0 for ``strategy="constant"``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    DPTableVectorizer : Missing values as a category of their own, at no privacy cost.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
    - With `groups`, the guarantee holds for all rows of one group together. The contribution of a group is clipped to
      that of one row; for most frequent values, one randomly drawn row of a group is counted in each column.
      ``transform`` ignores groups.
    - With ``strategy="constant"``, ``fit`` uses no cell, and no budget is consumed.
    - All fitted attributes are functions of noisy counts and sums and of public quantities. The proofs are in the
      docstrings of ``skdp.preprocessing.histogram_query.HistogramQuery`` and, for means, of
      ``skdp.preprocessing.column_sums.ColumnSums``.
    - Missing values do not contribute to any count or sum. ``transform`` processes each row independently.
    - An invalid table raises an error before the charge. The message contains no cell.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPSimpleImputer
    >>> X = np.random.default_rng(0).choice([1.0, 2.0, 2.0, np.nan], (10_000, 1))
    >>> DPSimpleImputer("most_frequent", epsilon=1.0).fit(X).statistics_
    array([2.])
    """

    strategy: str = "mean"
    _: KW_ONLY
    fill_value: Any = None
    bounds: Any = None

    @parameters.silent_arithmetic
    def fit(self, X: Any, y: Any = None, groups: Any = None, **fit_params: Any) -> Self:
        """Estimate the replacement values privately, or use the constant.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private group identifier of each row, such as a person or household, or the name of a column of `X`, which
            is then not used as a feature. With `groups`, the guarantee holds for all rows of one group together,
            otherwise for one row.
        **fit_params : dict of str to object
            Not supported: `sample_weight` is rejected.

        Returns
        -------
        self : DPSimpleImputer
            Fitted transformer.

        Raises
        ------
        TypeError, ValueError
            A parameter or the table is invalid. No budget is consumed.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        parameters.reject_fit_params(fit_params, type(self).__name__)
        if self._is_constant():
            return fit_publicly(self, lambda work: work._learn_constants(units_of(work, X, groups)[0]))
        fit = begin(self, X, groups)
        model = fit.model
        model._check_own_parameters()
        bounds = parameters.bounds_of_columns(model.bounds, fit.n_features)
        fit.plan(model._event_at(bounds))

        rows = fit.read_rows(read_columns, as_text=model.strategy == "most_frequent")
        fit.charge()

        model._fitted_words = model._words_of(rows.table)
        values = fit.learn(model._release_values, fit, rows, bounds)
        return fit.publish(statistics_=model._statistics(values))

    def _learn_constants(self, X: Any) -> None:
        budget = read_budget(self)
        self._check_own_parameters()
        table = Table(X, self)
        check_schema(self, table.source, reset=True)
        self._fitted_words = self._words_of(table)
        given = self.fill_value
        if given is None:
            constants = [_default(words) for words in self._fitted_words]
        else:
            constants = [key_of(given) if words else number_of(given) for words in self._fitted_words]
        self.statistics_ = self._statistics(constants)
        self.privacy_event_, self.epsilon_, self.delta_ = NoOpDpEvent(), 0.0, 0.0
        self.noise_multiplier_, self.adjacency_ = 0.0, budget.adjacency

    def _is_constant(self) -> bool:
        return isinstance(self.strategy, str) and self.strategy == "constant"

    def __private_step__(self) -> PrivateStep | None:
        """See `PrivateEstimator`: None for a constant."""
        return None if self._is_constant() else super().__private_step__()

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: moments or histograms, whose cost does not depend on the number of columns."""
        self._check_own_parameters()
        return StepPlan(self._event_at(parameters.bounds_of_any_width(self.bounds)), {})

    def _check_own_parameters(self) -> None:
        parameters.check_choice("strategy", self.strategy, ("mean", "median", "most_frequent", "constant"))
        parameters.bounds_of_any_width(self.bounds)
        given = self.fill_value
        number = 0.0 if given is None or isinstance(given, str) else parameters.read_real(given)
        if number is None or not np.isfinite(number):
            raise ValueError(f"`fill_value` must be a finite number, a string or None, got {parameters.show(given)}.")

    def _event_at(self, bounds: tuple[Any, ...]) -> Callable[[float], DpEvent]:
        """Return the event of a fit as a function of its noise multiplier."""
        if self.strategy == "mean":
            return EstimatedBounds(bounds, self.adjacency).event_beside(GaussianDpEvent)
        return self._histograms(bounds).event_at

    def _histograms(self, bounds: tuple[Any, ...]) -> HistogramQuery:
        if self.strategy == "median":
            return HistogramQuery(len(bounds), 0, 1, 1, self.adjacency, 0.0, bounds)
        return HistogramQuery(0, len(bounds), 1, 1, self.adjacency, THRESHOLD_SHARE * float(self.delta))

    def _release_values(self, fit: Fit, rows: ColumnsRead, bounds: tuple[Any, ...]) -> list[Any]:
        """Return noisy means, medians or most frequent values of the columns."""
        public, stream = (fit.noise_multiplier, fit.n), fit.spawn("columns")
        if self.strategy == "mean":
            missing = EstimatedBounds(bounds, self.adjacency)
            _, moments = release_moments(missing, rows.columns, 1, *public, stream.spawn, units=fit.units)
            return moments.means.tolist()
        histograms = self._histograms(bounds)
        if self.strategy == "median":
            return histograms.release(rows.columns, [], *public, stream, units=fit.units).medians
        found = histograms.release([], rows.columns, *public, stream, units=fit.units).categories
        named = zip(found, self._fitted_words, strict=True)
        return [_read(keys[0], words) if keys else _default(words) for keys, words in named]

    def _words_of(self, table: Table) -> list[bool]:
        """Whether each column is categorical, by its type; only numeric columns have means and medians."""
        numbers = self.strategy in ("mean", "median")
        return [not numbers and table.kind(j) != "number" for j in range(table.shape[1])]

    def _statistics(self, values: list[Any]) -> np.ndarray:
        bad = [j for j, value in enumerate(values) if isinstance(value, float) and np.isnan(value)]
        if bad:
            raise ValueError(
                f"`fill_value` must be a number for the numeric column {bad[0]}, got "
                f"{parameters.show(self.fill_value)}."
            )
        return np.array(values, dtype=object if any(self._fitted_words) else np.float64)

    @parameters.silent_arithmetic
    def transform(self, X: Any) -> np.ndarray:
        """Impute missing values, row by row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with the columns seen during ``fit``.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features)
            Imputed rows as float64, or as objects if a column has strings or dates. Dates are converted to strings.
        """
        check_is_fitted(self)
        table = fitted_table(self, X)
        made = np.empty(table.shape, self.statistics_.dtype)
        for j, words in enumerate(self._fitted_words):
            if words:
                codes, keys = as_keys(table.cells(j))
                made[:, j] = np.array([*keys, self.statistics_[j]], dtype=object)[codes]
            else:
                values = numbers_of(table, j)
                made[:, j] = np.where(np.isnan(values), self.statistics_[j], values)
        return made


def _default(words: bool) -> Any:
    return "missing" if words else 0.0


def _read(key: str, words: bool) -> Any:
    """Convert a key to a cell: a string, or its number. Strings among numbers are missing values."""
    number = number_of(key)
    return key if words else 0.0 if np.isnan(number) else number


def _rule(step: Any) -> Iterator[tuple[str, str]]:
    """See `skdp.base.public_steps`: an imputer that estimates values is a private step."""
    if step.__private_step__() is not None:
        yield "estimates values privately", 'a step of the pipeline itself, or strategy="constant"'


register(DPSimpleImputer, _rule, ("accountant", "random_state"))
