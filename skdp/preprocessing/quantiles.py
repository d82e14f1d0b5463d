"""Bins of nearly equal mass, estimated privately."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._checks import parameters
from skdp._checks.table import Table, fitted_table
from skdp._checks.weights import WeightReader, exactly_summable
from skdp.base.estimator import BudgetedEstimator, with_parameters
from skdp.base.fit import begin
from skdp.base.private_step import StepPlan, StepTraits
from skdp.preprocessing.cell_tree import all_edges
from skdp.preprocessing.histogram_query import HistogramQuery
from skdp.preprocessing.raw_columns import ReadsRawColumns, numbers_of, read_columns
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.vectorizer import vectorizer_of


@with_parameters
class DPQuantileBinner(ReadsRawColumns, BudgetedEstimator):
    """Differentially private quantile binning.

    Bins have nearly equal mass. The bin edges of all columns are estimated jointly. Values that are more frequent than
    an average bin get their own bin, and so do missing values.

    Parameters
    ----------
    n_bins : int, default=16
        Maximum number of bins of a column. There are fewer bins if the column has few distinct values or the noise is
        large.
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
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds, one pair for all columns or one for each. Numbers are clipped to them. None estimates bounds
        privately with 25% of the budget.
    encode : {"onehot", "onehot-dense", "ordinal"}, default="onehot"
        Output of ``transform``:

        - "onehot" is a CSR matrix with one 1 per row and column of `X`: for its bin, or for a missing value.
        - "onehot-dense" is the same as an array.
        - "ordinal" is an array of bin numbers, from 0, and -1 for missing values.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is equivalent to 1; a fit with `sample_weight` then warns that larger weights are clipped.

    Attributes
    ----------
    bin_edges_ : list of ndarray
        Inner bin edges of each column, ascending. A bin includes its lower edge.
    n_bins_ : ndarray of shape (`n_features_in_`,)
        Number of bins of each column.
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
    DPTableVectorizer : Encoding of all columns of a raw table, by a public schema.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
    - All fitted attributes are functions of noisy counts, released for all columns together, and of public quantities.
      The proof is in the docstring of ``skdp.preprocessing.histogram_query.HistogramQuery``.
    - The privacy cost does not depend on the number of columns: they share it, and the noise grows with the square root
      of their number.
    - With `groups`, the guarantee holds for all rows of one group together: their contribution is clipped to that of
      one row. ``transform`` ignores groups.
    - Weights multiply the contribution of a row by a number in [0, 1], so they do not raise the sensitivity.
    - Missing values do not contribute to any count. ``transform`` processes each row independently.
    - An invalid table raises an error before the charge. The message contains no cell.
    - With one-hot output, each row has exactly one 1 per column, so its norm is the square root of the number of
      columns. Private estimators behind it use this norm if ``data_norm=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPQuantileBinner
    >>> X = np.random.default_rng(0).lognormal(size=(20_000, 2))
    >>> binner = DPQuantileBinner(8, epsilon=1.0, encode="ordinal").fit(X)
    >>> binner.transform([[0.1, 10.0]])
    array([[0., 7.]])
    """

    n_bins: int = 16
    _: KW_ONLY
    bounds: Any = None
    encode: str = "onehot"
    weight_bound: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Estimate the bin edges privately.

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
        self : DPQuantileBinner
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
        model._check_own_parameters()
        histograms = model._histograms(parameters.bounds_of_columns(model.bounds, fit.n_features))
        fit.plan(histograms.event_at)

        rows = fit.read_rows(read_columns)
        weights = exactly_summable(fit.read(weight_reader.read, sample_weight, fit.n_rows))
        fit.charge()

        given = fit.noise_multiplier, fit.n, fit.spawn("columns"), weights, fit.units
        found = fit.learn(histograms.release, rows.columns, [], *given)
        return fit.publish(weight_bound_=weight_reader.bound, **model._learned(rows.table, found.edges, found.bounds))

    def _check_own_parameters(self) -> None:
        parameters.check_count("n_bins", self.n_bins, constraint="a positive integer, such as 16")
        parameters.check_choice("encode", self.encode, ("onehot", "onehot-dense", "ordinal"))

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: histograms of all columns."""
        self._check_own_parameters()
        return StepPlan(self._histograms(parameters.bounds_of_any_width(self.bounds)).event_at, {})

    def _histograms(self, bounds: tuple[Any, ...]) -> HistogramQuery:
        return HistogramQuery(len(bounds), 0, self.n_bins, 1, self.adjacency, 0.0, bounds)

    def _learned(self, table: Table, edges: list[np.ndarray], bounds: list[tuple[float, float]]) -> dict[str, Any]:
        """Return the fitted attributes."""
        named = zip(table.names, map(all_edges, edges, bounds), strict=True)
        columns = {name: Column("number", (ends[0], ends[-1]), edges=ends) for name, ends in named}
        return {
            "bin_edges_": edges,
            "bounds_": bounds,
            "n_bins_": np.array([len(each) + 1 for each in edges]),
            "_fitted_rows": vectorizer_of(self, columns, table, self.encode == "onehot"),
        }

    def __step_traits__(self) -> StepTraits:
        """See `PrivateEstimator`: there can be fewer edges than requested."""
        known, sparse = self.encode == "ordinal", self.encode == "onehot"
        return replace(super().__step_traits__(), width_is_public=known, gives_sparse_rows=sparse)

    @parameters.silent_arithmetic
    def transform(self, X: Any) -> Any:
        """Bin the numbers, row by row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with the columns seen during ``fit``.

        Returns
        -------
        X_new : csr_matrix or ndarray of shape (n_samples, n_features_out)
            Encoded rows as float64; see `encode`.
        """
        check_is_fitted(self)
        table = fitted_table(self, X)
        if self.encode != "ordinal":
            return self._fitted_rows.transform(table.given)
        made = np.empty(table.shape)
        for j, edges in enumerate(self.bin_edges_):
            values = numbers_of(table, j)
            made[:, j] = np.where(np.isnan(values), -1.0, np.searchsorted(edges, values, side="right"))
        return made

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of the table, which must be those seen during ``fit``.

        Returns
        -------
        names : ndarray of str objects
            ``column=low..high`` and ``column=missing`` (missing values) for one-hot output, otherwise the column names.
        """
        check_is_fitted(self)
        names: np.ndarray = self._fitted_rows.get_feature_names_out(input_features)
        return np.array(list(self._fitted_rows.schema_), dtype=object) if self.encode == "ordinal" else names

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_ if self.encode == "ordinal" else self._fitted_rows._n_features_out
