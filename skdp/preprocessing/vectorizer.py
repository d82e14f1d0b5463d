"""Differentially private transformer from raw tables to numeric features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, replace
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_is_fitted

from skdp._checks.parameters import check_choice, reject_fit_params, show, silent_arithmetic, stated_adjacency
from skdp._checks.rows import check_schema, with_row_norm, with_row_schema
from skdp._checks.table import Table, fitted_table
from skdp.accounting import NoOpDpEvent
from skdp.base.budget import read_budget
from skdp.base.estimator import with_parameters
from skdp.base.fit import begin, fit_publicly, units_of
from skdp.base.private_step import PrivateStep, StepPlan, StepTraits
from skdp.base.public_steps import output_of, register
from skdp.preprocessing import column_estimates, raw_columns
from skdp.preprocessing.histogram_query import BINS_SHARE
from skdp.preprocessing.schema.blocks import (
    NUMBERS,
    Block,
    combinations_left,
    date_parts_of,
    numbers_by_rule,
    row_norm,
    unique_names,
)
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema


@with_parameters
class DPTableVectorizer(column_estimates.SchemaModel):
    """Encode a raw table as numeric features, by a public schema.

    Numbers and dates are binned between public bounds, and categories are one-hot encoded. Missing values and unlisted
    categories ("other") get their own indicators. Each row then has the same number of ones, so the norm of the rows is
    known exactly. Private estimators behind the vectorizer use this norm if ``data_norm=None``.

    With a complete schema and ``fit_bins=False``, nothing is learned from the rows and no budget is consumed. Bounds
    and categories that the schema does not declare are estimated privately, in one joint release.

    Parameters
    ----------
    schema : TableSchema, mapping or None, default=None
        Public description of the columns: a `TableSchema`, or a mapping that it accepts. If None, only the names and
        types of the columns are public, and bounds and categories are estimated privately.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit`` that estimates something. A number, or a bound on the risk of membership inference
        such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if `noise_multiplier` is
        given. If nothing has to be estimated, no budget is consumed.
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
        and is made absolute. If nothing has to be estimated, nothing is charged.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the fit
        reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows the
        value.
    numbers : {"bins", "scale", "both", "auto", "codes"}, default="bins"
        Encoding of numbers, dates and ordinal columns:

        - "bins": one-hot encoded bins.
        - "scale": one column scaled to [-1, 1], with missing values as 0.
        - "both": bins and the scaled column.
        - "auto": for least squares in a pipeline with one budget (`skdp.allocate_budget`), "both" if the public number
          of rows times epsilon is at least three times the squared number of bins; otherwise "scale".
        - "codes": for random trees, such as `skdp.DPRandomTreesClassifier`. Each column of the table becomes one
          column: the number, the days of a date, or the index of the category in the schema (the last index for
          "other"), with NaN for missing values. The codes carry their public schema.
    n_bins : int, default=16
        Number of bins: of equal width between public bounds, of nearly equal mass if estimated privately.
    fit_bins : bool, default=False
        Whether to estimate bins within public bounds privately if the bounds are much wider than most of the values.
        This applies to columns with a linear scale and without edges. True consumes budget even if the schema is
        complete. Otherwise, bins between public bounds have equal width.
    sparse_output : bool or "auto", default="auto"
        Whether ``transform`` returns a CSR matrix. "auto" does so if most entries are zero, unless `set_output`
        requests a frame. Set False before `DPPCA`, which requires dense rows.
    dtype : {"float32", "float64"}, default="float32"
        Type of the output; codes are always float64.
    max_categories : int, default=100
        Maximum number of categories of a column whose categories are estimated privately. The most frequent ones are
        kept.

    Attributes
    ----------
    schema_ : TableSchema
        Complete schema of all columns, including private estimates. Using it as `schema` of another vectorizer is
        post-processing.
    numbers_ : {"bins", "scale", "both", "codes"}
        Encoding of numbers that was used.
    row_norm_ : float
        Bound on the norm of an output row; infinite for codes.
    noise_multiplier_ : float
        Noise multiplier of the releases; 0.0 if nothing was estimated.
    epsilon_ : float
        Privacy cost of the fit (epsilon at `delta_`); 0.0 if nothing was estimated.
    delta_ : float
        Delta at which `epsilon_` is computed; 0.0 if nothing was estimated.
    privacy_event_ : DpEvent
        Privacy event from which `epsilon_` is computed.
    adjacency_ : str
        Neighboring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        Privacy unit of the guarantee: one row, or all rows of one group.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    TableSchema : Public description of the columns of a table.

    Notes
    -----
    **Guarantees.**

    - With a complete schema and ``fit_bins=False``, ``fit`` uses the shape, column names and types of the table, but no
      cell. ``transform`` processes each row independently: the output depends on the row, the schema and public types.
      It does not depend on the dtype of a column, which missing values in other rows can change.
    - Otherwise, ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row. The proof is in the docstring of
      ``skdp.preprocessing.histogram_query.HistogramQuery``; all else is post-processing. Column types come from the
      schema, otherwise from the dtype: numeric columns are numbers, dates are dates, and all others (including
      booleans) are categories. The columns of a list of rows are numbers. Categories are never read from a dtype.
    - With `groups`, the guarantee holds for all rows of one group together. For numbers, the contribution of a group is
      clipped to that of one row; for categories, one randomly drawn row of a group is counted in each column.
      ``transform`` ignores groups.
    - ``numbers="auto"`` depends on the columns in `schema_` and on public numbers: on the number of rows, or on
      `n_public` under ``add_remove``.
    - The privacy cost depends on parameters only. If the dtypes decide whether categories are estimated, it is the cost
      with categories.
    - An invalid table raises an error before the charge, with a message that contains no cell. Tables without rows or
      columns, duplicate column names, complex numbers and nested cells are invalid.
    - The set of columns that are counted depends on the schema, public types and public numbers of rows and noise. With
      few rows, fewer columns are counted with less noise, at the same privacy cost: no bins within public bounds, or no
      categories, whose columns are then dropped in `schema_`.
    - The month and weekday of a date are functions of its own cell and of the schema, at no privacy cost.
    - Each row has one nonzero entry per block, or two for ``numbers="both"``; parts of a date are blocks. Its norm is
      at most the square root of the number of these entries, with equality for bins.
    - Codes have the same privacy cost and noise as bins. The schema that they carry is a function of `schema_`.

    Examples
    --------
    >>> from skdp.preprocessing import DPTableVectorizer
    >>> schema = {"x0": (18, 90), "x1": ["clerk", "nurse"]}
    >>> X = [[35, "nurse"], [70, None]]
    >>> vectorizer = DPTableVectorizer(schema, n_bins=2, sparse_output=False).fit(X)
    >>> list(vectorizer.get_feature_names_out())
    ['x0=18..54', 'x0=54..90', 'x0=missing', 'x1=clerk', 'x1=nurse', 'x1=other', 'x1=missing']
    >>> print(vectorizer.transform(X))
    [[1. 0. 0. 0. 1. 0. 0.]
     [0. 1. 0. 0. 0. 0. 1.]]
    >>> vectorizer.epsilon_
    0.0
    """

    _whole = cast("tuple[int, float] | None", None)

    schema: Any = None
    _: KW_ONLY
    numbers: str = "bins"
    n_bins: int = 16
    fit_bins: bool = False
    sparse_output: Any = "auto"
    dtype: str = "float32"
    max_categories: int = 100

    def fit(self, X: Any, y: Any = None, groups: Any = None, **fit_params: Any) -> Self:
        """Fit the vectorizer, and privately estimate bounds and categories that the schema does not declare.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows. Cells are not used if the schema is complete and ``fit_bins=False``.
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
        self : DPTableVectorizer
            Fitted vectorizer.

        Raises
        ------
        TypeError, ValueError
            A parameter, the schema or the table is invalid. No budget is consumed.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        reject_fit_params(fit_params, type(self).__name__)
        if not self._reads_cells():
            fit_publicly(self, lambda work: work._learn_schema(units_of(work, X, groups)[0]))
            self.__dict__.pop("_whole", None)  # of the pipeline that fitted this one
            return self
        fit = begin(self, X, groups)
        model = fit.model
        model._whole = self._whole  # a pipeline sets it after the copy was made
        model._check_own_parameters()
        histograms = model._query()
        fit.plan(histograms.event_at)

        rows = fit.read_rows(column_estimates.read_by_schema)
        fit.charge()

        noise = fit.noise_multiplier
        given = histograms, rows, noise, fit.n, fit.spawn("columns"), fit.units, True
        found = fit.learn(column_estimates.estimated_columns, *given)
        model._take(rows.table, rows.columns, found.columns, noise)
        column_estimates.note_remains(model, found, fit.n)
        return fit.publish()

    def _learn_schema(self, X: Any) -> None:
        budget = read_budget(self)
        self._check_own_parameters()
        table = Table(X, self)
        columns = raw_columns.match_columns(self._given_schema(), table)
        column_estimates.warn_of_objects(self, self._given_schema(), table)
        check_schema(self, table.source, reset=True)
        self._take(table, columns, {}, 0.0)
        self.privacy_event_, self.epsilon_, self.delta_ = NoOpDpEvent(), 0.0, 0.0
        self.adjacency_ = budget.adjacency

    # --- phases of a private fit ---

    def __private_step__(self) -> PrivateStep | None:
        """See `PrivateEstimator`: None with a complete schema, unless bins are estimated."""
        return super().__private_step__() if self._reads_cells() else None

    def _reads_cells(self) -> bool:
        if not self._is_complete():
            return True
        return bool(self.fit_bins) and any(column.may_be_skewed for _, column in self._given_schema().items())

    def _is_complete(self) -> bool:
        try:
            return self._given_schema().is_complete
        except (TypeError, ValueError):  # the fit raises the error
            return False

    def __step_traits__(self) -> StepTraits:
        """See `PrivateEstimator`: there can be fewer estimated edges than requested."""
        codes, is_array = bool(self.numbers == "codes"), output_of(self) == "default"
        return replace(
            super().__step_traits__(),
            width_is_public=self.__private_step__() is None,
            fraction=BINS_SHARE if self._is_complete() else None,
            gives_sparse_rows=bool(self.sparse_output)
            and is_array
            and not codes,  # "auto" depends on the estimated columns
            gives_norms=not codes,
            gives_codes=codes and is_array,  # which carry their schema, as a frame does not
            note_whole=self._note_whole if self._chooses_numbers() else None,
        )

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: noisy histograms, whose cost does not depend on the number of columns."""
        self._check_own_parameters()
        return StepPlan(self._query().event_at, {})

    # --- columns ---

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        check_choice("numbers", self.numbers, (*NUMBERS, "auto"))
        check_choice("dtype", self.dtype, ("float32", "float64"))
        if not isinstance(self.fit_bins, bool | np.bool_):
            raise ValueError(f"`fit_bins` must be True or False, got {show(self.fit_bins)}.")
        if not isinstance(self.sparse_output, bool | np.bool_):
            check_choice("sparse_output", self.sparse_output, ("auto",))
        elif self.sparse_output and self.numbers == "codes":
            raise ValueError(
                "sparse_output=True does not support numbers='codes', which are dense. Set sparse_output='auto'."
            )
        elif self.sparse_output and output_of(self) != "default":
            raise ValueError(f"sparse_output=True does not support {output_of(self)} output. Set sparse_output='auto'.")

    def _take(
        self, table: Table, columns: list[tuple[str, int, Column]], found: dict[str, Column], noise_multiplier: float
    ) -> None:
        """Keep complete columns, and what follows from them."""
        complete = {name: found.get(name, column) for name, _, column in columns}
        self.schema_ = TableSchema(complete, impossible=combinations_left(self._given_schema().impossible, complete))
        self._fitted_kinds = raw_columns.kinds_by_type(table, columns)
        self._fitted_estimated = tuple(name for name in found if complete[name].kind != "drop")
        self.noise_multiplier_ = noise_multiplier
        self.numbers_ = str(self.numbers)
        if self._chooses_numbers():
            # Alone, it knows no adjacency but its own: the number of rows may be private to what comes next.
            known, n_bins = self._whole, int(self.n_bins)
            self.numbers_ = "scale" if known is None else numbers_by_rule(complete.values(), n_bins, *known)
        kept = [(name, j, complete[name]) for name, j, _ in columns if complete[name].kind != "drop"]
        blocks = [Block(*each, self.numbers_, int(self.n_bins)) for each in kept]
        self._fitted_blocks = [each for block in blocks for each in (block, *date_parts_of(block))]
        self.row_norm_ = row_norm(self._fitted_blocks)

    def _chooses_numbers(self) -> bool:
        return isinstance(self.numbers, str) and self.numbers == "auto"

    def _note_whole(self, n_public: int, epsilon: float) -> None:
        """Keep public numbers of the pipeline that fits this one, for a rule."""
        self._whole = n_public, epsilon

    # --- rows ---

    @silent_arithmetic
    def transform(self, X: Any) -> Any:
        """Encode a table, row by row.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with the columns seen during ``fit``. Their types can differ.

        Returns
        -------
        X_new : ndarray, csr_matrix or frame of shape (n_samples, n_features_out)
            Encoded rows. Arrays and matrices carry `row_norm_`, which private estimators use if ``data_norm=None``.
            Arrays also mark their indicator columns, for which `skdp.DPGaussianNB` fits proportions. Codes carry their
            public schema, which random trees use if they have no schema.

        Raises
        ------
        ValueError
            The table cannot be read. The message contains no cell.
        """
        check_is_fitted(self)
        table = fitted_table(self, X)
        for block in self._fitted_blocks:
            raw_columns.reject_dates(block.name, block.column, table, block.position)
        if self._fitted_blocks[0].numbers == "codes":
            return with_row_schema(*_codes_of(table, self._fitted_blocks))
        columns, values = _entries_of(table, self._fitted_blocks, self.dtype)
        made = (raw_columns.sparse_rows if self._is_sparse() else _dense_rows)(columns, values, self._n_features_out)
        marks = [name != block.name for block in self._fitted_blocks for name in block.feature_names()]
        return with_row_norm(made, self.row_norm_, np.array(marks) / np.sqrt(len(self._fitted_blocks)))

    def _is_sparse(self) -> bool:
        if not isinstance(self.sparse_output, str):
            return bool(self.sparse_output)
        blocks = self._fitted_blocks
        few = sum(block.n_entries for block in blocks) < 0.5 * sum(block.width for block in blocks)
        return few and output_of(self) == "default"

    @silent_arithmetic
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Decode features to cells: midpoints of bins, categories as strings, None for missing values.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features_out)
            Rows as ``transform`` returns them. The largest entry of each block is decoded.

        Returns
        -------
        X_original : ndarray of shape (n_samples, `n_features_in_`)
            Cells as objects: numbers, strings, ISO dates, True and False. Dropped columns are None.
        """
        check_is_fitted(self)
        are_codes = self._fitted_blocks[0].numbers == "codes"
        rows = X.tocsc() if sp.issparse(X) else check_array(X, dtype=np.float64, ensure_all_finite=not are_codes)
        width = self._n_features_out
        if rows.shape[1] != width:
            raise ValueError(f"X must have {width} columns, as the output of transform, got {rows.shape[1]}.")
        made = np.full((rows.shape[0], self.n_features_in_), None, dtype=object)
        start = 0
        for block in self._fitted_blocks:
            part = rows[:, start : start + block.width]
            dense = part.toarray() if sp.issparse(part) else part
            if not block.part:  # months and weekdays follow from the date
                made[:, block.position] = block.cells_of(np.asarray(dense, dtype=np.float64))
            start += block.width
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
            ``column=level`` for a category, a bin, "other" and "missing"; ``column`` for a scaled number or codes.
            Parts of a date are ``column_month`` and ``column_weekday``.
        """
        check_is_fitted(self)
        raw_columns.check_input_names(self, input_features)
        names = [name for block in self._fitted_blocks for name in block.feature_names()]
        return np.array(unique_names(names), dtype=object)

    @property
    def _n_features_out(self) -> int:
        return sum(block.width for block in self._fitted_blocks)


def vectorizer_of(model: Any, columns: dict[str, Column], table: Table, sparse_output: bool) -> DPTableVectorizer:
    """Return a fitted vectorizer of columns that a transformer has released, under its neighboring relation."""
    adjacency = stated_adjacency(model)
    made = DPTableVectorizer(TableSchema(columns), sparse_output=sparse_output, dtype="float64", adjacency=adjacency)
    return made.fit(table.given)


# --- rows from entries ---


def _codes_of(table: Table, blocks: list[Block]) -> tuple[np.ndarray, TableSchema, list[str]]:
    """Return one code for each row and block, NaN if missing, and the public schema and names of the codes."""
    made = np.empty((table.shape[0], len(blocks)))
    for k, block in enumerate(blocks):
        made[:, k] = block.as_doubles(block.codes(table.cells(block.position)))
    schema = TableSchema({f"x{k}": block.coded_column() for k, block in enumerate(blocks)})
    return made, schema, [block.name for block in blocks]


def _entries_of(table: Table, blocks: list[Block], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and values of the entries of each row, both of shape (n, k), ascending by column."""
    shape = table.shape[0], sum(block.n_entries for block in blocks)
    columns, values = np.empty(shape, np.int32), np.ones(shape, dtype)
    start = entry = 0
    for block in blocks:
        for place, value in block.entries(block.codes(table.cells(block.position))):
            np.add(place, start, out=columns[:, entry])
            if value is not None:
                values[:, entry] = value
            entry += 1
        start += block.width
    return columns, values


def _dense_rows(columns: np.ndarray, values: np.ndarray, width: int) -> np.ndarray:
    made = np.zeros((len(columns), width), values.dtype)
    for start in range(0, len(made), 1024):  # blocks that stay in cache
        part = slice(start, start + 1024)
        np.put_along_axis(made[part], columns[part].astype(np.intp), values[part], axis=1)
    return made


def _rule(step: Any) -> Iterator[tuple[str, str]]:
    """See `skdp.base.public_steps`: a vectorizer that estimates columns is a private step."""
    if step.__private_step__() is not None:
        yield "estimates columns privately", "a step of the pipeline itself, or a complete TableSchema"
    elif type(step.schema) is not TableSchema and type(step.schema) is not dict:
        yield "has a schema of a custom class, which may receive the rows", "TableSchema({...})"


register(DPTableVectorizer, _rule, ("schema", "accountant", "random_state"))
