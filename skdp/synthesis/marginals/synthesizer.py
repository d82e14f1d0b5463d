"""Differentially private synthetic tables from noisy marginals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import numpy as np

from skdp._checks.parameters import bounds_of_columns, check_bounds, check_choice, check_count, show, without_removed
from skdp._checks.rows import check_schema
from skdp._checks.weights import exactly_summable, weight_of_each
from skdp.accounting import DpEvent, compose
from skdp.base.estimator import with_parameters
from skdp.base.fit import Fit
from skdp.base.private_step import StepPlan
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.column_estimates import Remains, SchemaRows, estimated_columns, note_remains, warn_of_objects
from skdp.preprocessing.histogram_query import HistogramQuery
from skdp.preprocessing.raw_columns import read_schema
from skdp.preprocessing.schema.table_schema import TableSchema
from skdp.synthesis.generator import ClassesAndCodes
from skdp.synthesis.marginals import noisy_columns
from skdp.synthesis.marginals.column_levels import WITHIN_BINS
from skdp.synthesis.marginals.noisy_columns import LevelTable
from skdp.synthesis.marginals.noisy_tables import LARGEST_REACH, LevelRows, Measurement, event_of, unit_reach
from skdp.synthesis.marginals.sampled_tables import Redrawing, SampledTables
from skdp.synthesis.marginals.table_form import LocalTable

N_ROUNDS = 2
"""Rounds in which pairs are selected (benchmarks/README.md)."""

PAIRS = ("auto", "all", "select")

MOST_COLUMNS, MOST_LEVELS = 20, 128
"""A table with more columns, or more levels in one, has its pairs selected unless all are asked for."""


@with_parameters
class DPMarginalSynthesizer(SampledTables):
    """Differentially private synthesizer of tables with columns of any type.

    The fit releases all one-way and two-way marginals, with Gaussian noise; for wide tables, those of selected pairs of
    columns. A mixture of products of categorical distributions is fitted to them. Samples have the form of the private
    table. See ``docs/synthetic_data.md``.

    Parameters
    ----------
    schema : TableSchema, mapping or None, default=None
        Public values of each column, as a schema or an argument of `skdp.preprocessing.TableSchema`. Missing bounds and
        categories are privately estimated with a tenth of the budget (of mu^2), and numeric columns with bounds can
        have estimated bins. Columns with ``"missing_values"`` can have missing values, also in the sample. Combinations
        in `impossible` are not sampled. If None, only names and types of the columns are public, unless `bounds` is
        set.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``. A number, or a bound on membership-inference risk such as
        ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of a single release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`. Several releases divide the budget among them.
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
        value. It is independent of the `random_state` of ``sample``.
    bounds : (float, float), list of (float, float) or None, default=None
        Public bounds of all columns, or of each column, instead of a schema for numeric columns. Values are clipped to
        them.
    classes : sequence or None, default=None
        All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the guarantee, and a
        `PrivacyLeakWarning` is issued. Ignored without labels.
    n_bins : int, default=16
        Number of bins of a numeric or date column without edges, of equal width on the scale of the schema.
    other : mapping of str to object or None, default=None
        For categorical columns, by name, the cell that represents all unlisted categories; otherwise these raise an
        error. With privately estimated categories it is "other".
    pairs : {"auto", "all", "select"}, default="auto"
        Whether to measure all pairs of columns, or pairs selected by noisy scores. "auto" selects if there are more
        than 20 columns, or more than 128 levels in one.
    triples : bool or "auto", default="auto"
        Whether to measure pairs of columns within each class, which requires labels and all pairs. "auto" decides by
        the public standard deviation of their noise.
    n_components : int or None, default=None
        Number of components of the mixture. If None, 400 with `triples`, otherwise 200.
    max_iter : int or None, default=None
        Iterations of the fit of the mixture. If None, public numbers determine it; less noise means more iterations.
    class_prevalences : {"estimate", "uniform"} or sequence of float, default="estimate"
        Class prevalences of the samples: noisy counts, equal prevalences, or a public prevalence for each class in
        ascending order.
    within_bins : {"auto", "uniform", "middle"}, default="auto"
        Position of a sampled number or date in its bin. "auto" privately estimates the distribution within bins, with
        2% of mu^2, if the noise is small.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.

    Attributes
    ----------
    schema_ : TableSchema
        Public schema of all columns, including privately estimated values. Its use as `schema` of another fit has no
        additional privacy cost.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Defined only if the generator was fitted with labels.
    class_prevalences_ : ndarray of shape (n_classes,)
        Class prevalences of the samples. Defined only if the generator was fitted with labels.
    marginals_ : list of ndarray
        Noisy probabilities of the levels of each column, and of the classes last if there are any.
    pairs_ : list of (str, str)
        Names of the pairs of columns that were measured; ``"y"`` is the label.
    components_ : ndarray of shape (n_components, sum of levels)
        Probabilities of the levels in each component, one column after the other.
    has_triples_ : bool
        Whether pairs were measured within each class.
    noise_multiplier_ : float
        Noise multiplier of the whole fit.
    n_samples_ : int
        Public number n of rows.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    weight_bound_ : float
        Bound by which weights were divided; 1.0 for ``weight_bound=None``.
    epsilon_ : float
        Epsilon of the fit at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit: one row, or all rows of one group of `groups`.
    privacy_event_ : DpEvent
        Event of the fit, from which `epsilon_` is computed.

    See Also
    --------
    skdp.preprocessing.TableSchema : Public values of the columns of a table.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, including its label, under `adjacency`, if
      `random_state` is None, and `classes` is set or there are no labels.
    - All fitted attributes are functions of noisy releases and of public quantities: parameters, names and types of the
      columns, and the public number of rows. The categories of categorical types are not stored.
    - Bounds and categories that the schema lacks are estimated privately in the same fit. This release is part of
      `privacy_event_`, and no row is rejected because of an estimate.
    - Weights multiply the contribution of a row by a number in [0, 1], so no weight increases the sensitivity.
    - With `groups`, all of this holds for all rows of one group: their contribution is clipped to a public multiple of
      the bound for one row, and the noise is larger by this factor.
    - `accountant` is charged before the rows are counted, and invalid input is rejected before any charge.
    - ``sample`` and ``sample_sets`` have no additional privacy cost, and a saved generator contains no row and no exact
      count.
    - Labels of samples are drawn with noisy or public class prevalences.
    - Numbers are uniform within bins, or follow noisy counts of cells of the bins. In columns of non-integer types they
      are integers if noisy counts of other numbers are small.
    - All settings of the fit are functions of public numbers. The selected pairs and their number are functions of
      noisy scores.

    **Weights and groups.** Samples are unweighted draws from the weighted distribution. The sum of the weights is
    private, and is released with the first marginals, for 2% of their budget. The contribution of a group is clipped to
    1 to 3 times that of a row, more if there is little noise.

    References
    ----------
    Xiao, He, Zhang & Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions".

    McKenna, Mullins, Sheldon & Miklau (2022), "AIM: an adaptive and iterative mechanism for differentially private
    synthetic data".

    Liu, Vietri & Wu (2021), "Iterative methods for private synthetic data: unifying framework and new methods".

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.synthesis import DPMarginalSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, 5000)
    >>> people = pd.DataFrame({"age": age, "job": np.where(age > 65, "none", rng.choice(["clerk", "nurse"], 5000))})
    >>> model = DPMarginalSynthesizer({"age": (18, 90), "job": ["clerk", "nurse", "none"]}, epsilon=1.0).fit(people)
    >>> made = model.sample(1000, random_state=0)
    >>> made.shape, bool((made["job"][made["age"] > 70] == "none").mean() > 0.8)
    ((1000, 2), True)
    """

    _largest_reach = LARGEST_REACH

    schema: Any = None
    _: KW_ONLY
    bounds: Any = None
    classes: Any = None
    n_bins: int = 16
    other: Mapping[str, Any] | None = None
    pairs: str = "auto"
    triples: bool | str = "auto"
    n_components: int | None = None
    max_iter: int | None = None
    class_prevalences: Any = "estimate"
    within_bins: str = "auto"
    weight_bound: Any = None

    # --- the fit ---

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        n_rounds = self._n_rounds(n_features)
        # A step before this one may change the width, and must not change what was planned.
        return StepPlan(self._event_at(n_features), {"pairs": "select" if n_rounds else "all"})

    def _event_at(self, n_features: int | None) -> Callable[[float], DpEvent]:
        """See `PrivateGenerator`: private estimates of the schema, and the marginals."""
        tables = partial(event_of, n_rounds=self._n_rounds(n_features or 1))
        if (found := self._query()) is None:
            return tables
        query, ratio = found
        return lambda noise: compose([query.event_at(ratio * noise), tables(noise)])

    def _fault_of_lists(self, before: Any) -> str:
        """See `PrivateEstimator`: numbers between bounds are never rejected, cells of a schema can be."""
        if self.schema is not None:
            return "schema may not match the output of the previous step. Set bounds instead."
        return super()._fault_of_lists(before)

    def _read_parameters(self, n_features: int | None) -> None:
        check_choice("pairs", self.pairs, PAIRS)
        check_choice("within_bins", self.within_bins, WITHIN_BINS)
        if not isinstance(self.triples, bool):
            check_choice("triples", self.triples, ("auto",))
        check_count("n_bins", self.n_bins, constraint="a positive integer, such as 16")
        if self.n_components is not None:
            check_count("n_components", self.n_components, constraint="a positive integer, or None for the default")
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter, constraint="a positive integer, or None for the default")
        if self.other is not None and not isinstance(self.other, Mapping):
            raise ValueError(f"`other` must be a mapping such as {{'job': 'other'}}, got {show(self.other)}.")
        found = check_bounds(self.bounds)
        width = n_features or (len(found) if isinstance(found, list) else 1)
        self._schema_of([f"x{j}" for j in range(width)])
        if self.schema is None and self.other:
            raise ValueError("`other` requires a schema with categorical columns. Remove `other`.")
        selects = self.pairs == "select" or (n_features and self._n_rounds(n_features))
        if selects and self.triples is True:
            raise ValueError("`pairs` must be 'all' with triples=True. Set pairs='all' or triples=False.")

    def _read_rows(self, X: Any, *, reset: bool) -> LevelTable | SchemaRows:
        """See `PrivateGenerator`: all cells are read, since a rejection after the charge would be charged."""
        table = LocalTable(X, self)
        schema = self._schema_of(table.names)
        warn_of_objects(self, schema, table)
        given = table, schema, int(self.n_bins), self.other or {}
        rows: Any
        if self._query() is not None:
            rows = noisy_columns.read_to_estimate(*given)
            self._fitted_n_columns = sum(column.kind != "drop" for _, _, column in rows.columns)
        else:
            rows = noisy_columns.read_rows(*given, self.within_bins == "auto")
            self._fitted_n_columns = len(rows.codes)
        check_schema(self, table.source, reset=reset)
        return rows

    def _read_labels(self, y: Any, n_samples: int, n_public: int) -> ClassesAndCodes | None:
        found = super()._read_labels(y, n_samples, n_public)
        n_columns = self.__dict__.get("_fitted_n_columns")  # not known yet behind a private step
        if found is None and n_columns is not None and n_columns < 2:
            raise ValueError(
                "X has 1 feature(s), but at least 2 columns are required, because two-way marginals are measured. Pass "
                "another column or labels, or use skdp.describe for a single column."
            )
        if found is None and self.triples is True:
            raise ValueError("`y` must be set with triples=True. Pass y, or set triples=False.")
        return found

    def _learn(self, fit: Fit, rows: Any, labels: ClassesAndCodes | None, weights: Any) -> None:
        n_rounds, stream = self._n_rounds(fit.n_features or 1), fit.spawn("marginals")
        rows = self._complete(fit, rows, stream)
        # The label is one more column of levels.
        codes, levels = list(rows.codes), [column.n_levels for column in rows.form.columns]
        if labels is not None:
            self.classes_ = labels[0]
            codes.append(labels[1].astype(np.int32))
            levels.append(len(self.classes_))
        # What is measured and fitted follows from public numbers.
        reach = 1.0 if fit.units is None else min(unit_reach(fit.n, fit.noise_multiplier), self._largest_reach)
        measurement = Measurement(fit.noise_multiplier, n_rounds, self.adjacency, fit.n, reach)
        terms = measurement.terms_of(self, rows, levels, labels is not None)
        # Release the marginals and the distributions within bins, and fit.
        exact = None if weights is None else exactly_summable(weight_of_each(weights, len(codes[0])))
        given_rows = LevelRows(codes, exact, fit.units)
        found, mixture = measurement.measure(given_rows, terms, stream)
        form = rows.shaped_form(measurement, given_rows, stream) if terms.with_shapes else rows.form.shaped({})
        form = form._replace(wholes=rows.wholes(measurement, given_rows, stream)) if terms.with_wholes else form
        # The variance of counts of weighted rows is unknown, so they cannot be redrawn.
        again = measurement, terms, found.noisy, self._estimates_shares()
        self._fitted_redrawing = None if weights is not None else Redrawing(*again)
        self._publish(form, rows.schema.impossible, terms, found, mixture)

    def _complete(self, fit: Fit, rows: LevelTable | SchemaRows, stream: SecretStream) -> LevelTable:
        """Return the rows as levels, after the private estimation of the schema."""
        if isinstance(rows, LevelTable):
            self._fitted_remains: dict[str, Remains] = {}
            return rows
        found = self._query()
        assert found is not None  # otherwise the rows are levels
        query, ratio = found
        given = ratio * fit.noise_multiplier, fit.n, stream.spawn("purchase"), fit.units
        estimates = estimated_columns(query, rows, *given)
        note_remains(self, estimates, fit.n)
        asked = self._schema_of([]), estimates, int(self.n_bins), self.other or {}, self.within_bins == "auto"
        return noisy_columns.complete_rows(rows, *asked)

    # --- rules in public quantities ---

    def _public_schema(self) -> TableSchema | None:
        """Return the public schema of the parameters; None if bounds are set instead."""
        if self.schema is None:
            return TableSchema({}, others="estimate") if self.bounds is None else None
        if self.bounds is not None:
            raise ValueError(f"`bounds` must be None with a schema, got {show(self.bounds)}. Set them in the schema.")
        return read_schema(self.schema, "or None, to estimate it")

    def _schema_of(self, names: list[str]) -> TableSchema:
        """Return the public schema of a table with columns of these names."""
        schema = self._public_schema()
        if schema is not None:
            return schema
        if isinstance(found := check_bounds(self.bounds), list) and None in found:
            raise ValueError(
                "`schema` or `bounds` must cover all columns. Pass a TableSchema, or bounds=(low, high) if all columns "
                "are numeric."
            )
        return TableSchema(dict(zip(names, bounds_of_columns(self.bounds, len(names)), strict=True)))

    def _n_rounds(self, n_features: int) -> int:
        """Return the rounds of selection, 0 if all pairs are measured: from schema and width alone."""
        if check_choice("pairs", self.pairs, PAIRS) != "auto":
            return N_ROUNDS if self.pairs == "select" else 0
        n_bins = check_count("n_bins", self.n_bins, constraint="a positive integer, such as 16")
        schema = self._public_schema()
        named = () if schema is None else schema.items()
        columns = [column for _, column in named if column.kind != "drop"]
        sizes = [len(column.categories or ()) or len(column.edges or ()) or n_bins for column in columns]
        if schema is None or schema.others == "estimate":  # estimated columns have few enough levels
            sizes += [n_bins] * (n_features - len(named))
        return N_ROUNDS if len(sizes) > MOST_COLUMNS or max(sizes, default=0) > MOST_LEVELS else 0

    def _query(self) -> tuple[HistogramQuery, float] | None:
        """Private estimates of the schema, if it is incomplete or has bounds of numbers."""
        return noisy_columns.query_of(self, self._public_schema())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.bounds is None  # a schema can have a level for missing values
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


# --- a private table as a synthetic one, in one call ---


@without_removed
def synthesize(
    table: Any,
    *,
    schema: Any = None,
    n_samples: int | None = None,
    epsilon: Any = 1.0,
    delta: float | str = "auto",
    groups: Any = None,
    n_bins: int = 16,
    noise_multiplier: float | None = None,
    adjacency: Any = None,
    accountant: Any = None,
    random_state: Any = None,
) -> Any:
    """Create a differentially private synthetic version of a table.

    The table can have numbers, strings, dates and missing values. The result is a sample of a `DPMarginalSynthesizer`,
    which has more options, samples any number of rows, and supports a privacy report. See ``docs/synthetic_data.md``.

    Parameters
    ----------
    table : array-like or frame of shape (n_samples, n_features)
        Private rows. A label is a column like any other.
    schema : TableSchema, mapping or None, default=None
        Public values of each column, as a schema or an argument of `skdp.preprocessing.TableSchema`. Missing bounds and
        categories are privately estimated with a tenth of the budget (of mu^2). If None, only names and types of the
        columns are public.
    n_samples : int or None, default=None
        Number of synthetic rows. If None, the public number of rows of `table`, or of groups.
    epsilon : float, Risk or None, default=1.0
        Privacy budget. A number, or a bound on membership-inference risk such as ``skdp.Risk(advantage=0.1)``
        (``docs/membership_inference.md``). Must be None if `noise_multiplier` is set.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    groups : array-like of shape (n_samples,), str or None, default=None
        Private group identifier of each row, such as a person or a household, or the name of a column of `table`, which
        is then not synthesized. If set, the guarantee is for all rows of one group, otherwise for one row.
    n_bins : int, default=16
        Number of bins of a numeric or date column without edges.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of a single release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`.
    adjacency : {"zero_out", "replace_one"}, AddRemove or None, default=None
        Neighboring relation, as for `DPMarginalSynthesizer`.
    accountant : PrivacyAccountant, str, path-like or None, default=None
        Accountant to which the release is charged before anything is learned from the rows. A path refers to an
        existing budget file.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the noise
        reproducible and issues a `PrivacyLeakWarning`. Samples are drawn anew each time.

    Returns
    -------
    synthetic : ndarray or frame of shape (n_samples, n_features)
        Rows in the form of `table`, without dropped columns. Rare categories that are not released are "other". For a
        DuckDB relation it is a PyArrow table, and for a Modin frame a pandas one.

    Raises
    ------
    ValueError
        A parameter, the schema or the table is invalid. No budget was consumed.
    BudgetExceededError
        The budget of the accountant does not permit the release. No budget was consumed.

    Warns
    -----
    QualityWarning
        A column has lost all information, or there are few rows. The check uses public numbers and releases.

    See Also
    --------
    DPMarginalSynthesizer : The synthesizer, its guarantees and its report.
    skdp.describe : Descriptive statistics of a private table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import skdp
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, 5000)
    >>> table = pd.DataFrame({"age": age, "job": np.where(age > 65, None, rng.choice(["clerk", "nurse"], 5000))})
    >>> synthetic = skdp.synthesize(table, epsilon=1.0)
    >>> synthetic.shape, bool(synthetic["job"][synthetic["age"] > 70].isna().mean() > 0.8)
    ((5000, 2), True)
    """
    if n_samples is not None:
        check_count("n_samples", n_samples, at_least=0, constraint="a nonnegative integer, or None")
    synthesizer = DPMarginalSynthesizer(
        schema, n_bins=n_bins, epsilon=epsilon, delta=delta, noise_multiplier=noise_multiplier, adjacency=adjacency,
        accountant=accountant, random_state=random_state,
    ).fit(table, groups=groups)  # fmt: skip
    return synthesizer.sample(int(synthesizer.n_samples_) if n_samples is None else n_samples)
