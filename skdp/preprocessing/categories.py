"""One-hot encoding of categories that are selected privately, by a noisy threshold."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._checks.parameters import check_count, reject_fit_params, silent_arithmetic
from skdp._checks.table import Table, fitted_table
from skdp.base.estimator import BudgetedEstimator, with_parameters
from skdp.base.fit import begin
from skdp.base.private_step import StepPlan, StepTraits
from skdp.preprocessing.histogram_query import THRESHOLD_SHARE, HistogramQuery
from skdp.preprocessing.raw_columns import ReadsRawColumns, read_columns
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.vectorizer import vectorizer_of


@with_parameters
class DPOneHotEncoder(ReadsRawColumns, BudgetedEstimator):
    """Differentially private one-hot encoder.

    A category is released if its noisy count exceeds a threshold that a single row rarely reaches (partition
    selection). All other categories are encoded as "other", missing values as "missing". Cells are compared as strings:
    1, 1.0 and "1" are one category.

    Parameters
    ----------
    max_categories : int, default=100
        Maximum number of categories of a column. The most frequent ones are kept.
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
    sparse_output : bool, default=True
        Whether ``transform`` returns a CSR matrix instead of an array.

    Attributes
    ----------
    categories_ : list of ndarray of str
        Released categories of each column, sorted.
    threshold_ : float
        Noisy count above which a category is released. It is public.
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
    DPTableVectorizer : Encoding of all columns of a raw table, by a public schema.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
      The threshold has 1% of `delta_`, for all columns of a row together.
    - With `groups`, the guarantee holds for all rows of one group together: in each column, one randomly drawn row of a
      group is counted. ``transform`` ignores groups.
    - All fitted attributes are functions of one joint release of noisy counts, of a threshold and of public quantities.
      The proof is in the docstring of ``skdp.preprocessing.histogram_query.HistogramQuery``.
    - Released categories are sorted and do not depend on the order of the rows. Categories of a pandas dtype that do
      not occur are not counted.
    - Missing values do not contribute to any count. ``transform`` processes each row independently.
    - An invalid table raises an error before the charge. The message contains no cell.
    - Each output row has exactly one 1 per column, so its norm is the square root of the number of columns. Private
      estimators behind it use this norm if ``data_norm=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPOneHotEncoder
    >>> jobs = np.random.default_rng(0).choice(["clerk", "nurse", "pilot"], (5000, 1), p=[0.6, 0.399, 0.001])
    >>> encoder = DPOneHotEncoder(epsilon=1.0).fit(jobs)
    >>> encoder.categories_[0].tolist()
    ['clerk', 'nurse']
    """

    max_categories: int = 100
    _: KW_ONLY
    sparse_output: bool = True

    def fit(self, X: Any, y: Any = None, groups: Any = None, **fit_params: Any) -> Self:
        """Select the categories privately.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows. Cells are numbers, strings, dates or missing values.
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
        self : DPOneHotEncoder
            Fitted transformer.

        Raises
        ------
        TypeError, ValueError
            A parameter or the table is invalid. No budget is consumed.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        reject_fit_params(fit_params, type(self).__name__)
        fit = begin(self, X, groups)
        model = fit.model
        model._check_own_parameters()
        histograms = model._histograms(fit.n_features or 1)
        fit.plan(histograms.event_at)

        rows = fit.read_rows(read_columns, as_text=True)
        fit.charge()

        noise, stream = fit.noise_multiplier, fit.spawn("columns")
        found = fit.learn(histograms.release, [], rows.columns, noise, fit.n, stream, 1.0, fit.units)
        learned = model._learned(rows.table, found.categories)
        return fit.publish(threshold_=histograms.threshold_at(noise), **learned)

    def _check_own_parameters(self) -> None:
        check_count("max_categories", self.max_categories, constraint="a positive integer, such as 100")
        if not isinstance(self.sparse_output, bool | np.bool_):
            raise ValueError(f"`sparse_output` must be True or False, got {type(self.sparse_output).__name__}.")

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: noisy histograms, whose cost does not depend on the number of columns."""
        self._check_own_parameters()
        return StepPlan(self._histograms(1).event_at, {})

    def _histograms(self, n_features: int) -> HistogramQuery:
        return HistogramQuery(
            0, n_features, 1, self.max_categories, self.adjacency, THRESHOLD_SHARE * float(self.delta)
        )

    def _learned(self, table: Table, categories: list[list[str]]) -> dict[str, Any]:
        """Return the fitted attributes."""
        named = zip(table.names, categories, strict=True)
        columns = {name: Column("category", categories=tuple(keys)) for name, keys in named}
        found = [np.array(keys, dtype=object) for keys in categories]
        return {"categories_": found, "_fitted_rows": vectorizer_of(self, columns, table, bool(self.sparse_output))}

    def __step_traits__(self) -> StepTraits:
        """See `PrivateEstimator`: the number of released categories depends on the rows."""
        sparse = bool(self.sparse_output)
        return replace(super().__step_traits__(), width_is_public=False, gives_sparse_rows=sparse)

    @silent_arithmetic
    def transform(self, X: Any) -> Any:
        """Encode categories, row by row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with the columns seen during ``fit``.

        Returns
        -------
        X_new : csr_matrix or ndarray of shape (n_samples, n_features_out)
            Encoded rows as float64: for each column of `X`, its categories, "other" and "missing".
        """
        check_is_fitted(self)
        return self._fitted_rows.transform(fitted_table(self, X).given)

    @silent_arithmetic
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Convert encoded rows back to categories.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_out)
            Rows as ``transform`` returns them.

        Returns
        -------
        X_original : ndarray of shape (n_samples, `n_features_in_`)
            Categories as strings, "other", and None for missing values.
        """
        check_is_fitted(self)
        return self._fitted_rows.inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of the table, which must be those seen during ``fit``.

        Returns
        -------
        names : ndarray of str objects
            ``column=category``, ``column=other`` and ``column=missing`` (missing values).
        """
        check_is_fitted(self)
        return self._fitted_rows.get_feature_names_out(input_features)

    @property
    def _n_features_out(self) -> int:
        return self._fitted_rows._n_features_out
