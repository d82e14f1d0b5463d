"""Data-independent random trees as a transformer of raw tables."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._checks import parameters
from skdp._checks.parameters import bounds_of_columns, check_bounds, check_count, count_threads, show, silent_arithmetic
from skdp._checks.rows import check_schema, with_row_form, with_row_norm
from skdp._checks.table import Table
from skdp._dpsgd.models.one_hot import Blocks, OneHotForm, OneHotRows, shared_weights
from skdp.base.estimator import with_parameters
from skdp.base.fit import fit_publicly
from skdp.base.private_step import StepTraits, traits_of
from skdp.base.public_steps import register
from skdp.base.saved_state import PlainState
from skdp.ensemble.marginal_counts import read_marginals
from skdp.ensemble.trees import Trees, draw_trees, importances, leaf_writer
from skdp.preprocessing import raw_columns
from skdp.preprocessing.schema.blocks import Block, unique_names
from skdp.preprocessing.schema.column import Column
from skdp.preprocessing.schema.table_schema import TableSchema

_ROWS = 4096  # of a block: fewer calls, and next to what stays in cache
_PLAIN = 1 / 3  # fraction of the squared norm of a row that the plain columns have together


@with_parameters
class PublicTreesEmbedding(PlainState, raw_columns.ReadsRawColumns, BaseEstimator):
    """One-hot encoding of columns and of leaves of random trees, from a public schema and a public seed.

    The leaves add interactions between columns to a linear model, at no privacy cost: the splits follow from the public
    schema and seed, and no row is read. Each row has one nonzero entry per column (its bin, category or missing value)
    and one per tree (its leaf). Public weights give all rows the norm 1, which private estimators use if
    ``data_norm=None``. The rows also carry their public layout, so that `DPLogisticRegression` trains on them as fast
    as `DPRandomTreesClassifier`. Slices and copies do not carry the norm and the layout.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    max_depth : int, default=8
        Maximum depth of a tree.
    max_leaf_nodes : int, default=16
        Maximum number of leaves of a tree. Trees grow best-first: the node with the largest expected number of rows is
        split next. With ``2 ** max_depth`` leaves or more, trees are complete.
    schema : TableSchema, mapping or None, default=None
        Public description of the columns: a `TableSchema`, or a mapping that it accepts. It must be complete: bounds of
        all numbers and dates, categories of all other columns. If None, `bounds` and `categories` describe the columns.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds, one pair for all columns or one for each. None is for a column with `categories`.
    categories : list of (list or None) or None, default=None
        Public categories of each column. None is for a numeric column.
    n_bins : int, default=16
        Number of bins, of equal width between public bounds, of a plain numeric or date column. A column with more bins
        in its schema gets a second block, in which each bin is split into four.
    marginals : dict or None, default=None
        Public or privately estimated marginal distributions, by column name: the proportions of the cells of the
        column, as nonnegative numbers. For numeric and date columns, these are cells of equal width on the scale of the
        schema, followed by one for missing values. For other columns, they are the categories, other values and missing
        values. Trees are grown as if columns were independent, and columns that are not listed were uniform.
        `DPRandomTreesClassifier` estimates its own.
    random_state : int, RandomState or Generator instance or None, default=None
        Public seed of the trees, stored in `seed_`. A RandomState or Generator instance is used to draw it. None draws
        a new seed at each fit. It is not a source of noise: use a different `random_state` for private estimators.
        Choosing a seed by a score on private rows is hyperparameter tuning and consumes budget.
    n_jobs : int or None, default=None
        Number of threads of ``transform``. The result does not depend on it. None means 1 unless in a
        ``joblib.parallel_config`` context. -1 means using all processors.

    Attributes
    ----------
    schema_ : TableSchema
        Public schema of all columns.
    seed_ : int
        Seed of the trees. The same parameters and seed give the same trees.
    row_norm_ : float
        Norm of every output row, 1.0. Weights are rounded down to float32, by at most 2 ** -23.
    epsilon_ : float
        Privacy cost of the fit, always 0.0.
    delta_ : float
        Delta of the fit, always 0.0.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.

    See Also
    --------
    skdp.preprocessing.TableSchema : Public description of the columns of a table.
    skdp.preprocessing.DPTableVectorizer : Encoding of the columns alone; an incomplete schema is estimated privately.
    DPRandomTreesClassifier : Random trees and a private logistic regression in one estimator.

    Notes
    -----
    Related to ``RandomTreesEmbedding`` of scikit-learn, whose trees depend on the rows.

    **Trees.** The node with the largest expected number of rows, as if columns were independent, is split next. It uses
    a random column that can still be split. Numeric columns are split at a uniform threshold on the scale of the schema
    or, half of the time, at a threshold near the lower end that is log-uniform over 8 octaves. With `marginals`, half
    of the thresholds follow the marginal density to the power 0.4. Ordinal columns are split between two levels,
    categorical columns by a random subset of categories. Missing values and "other" go to a random side. A tree has
    fewer leaves if no node can be split further.

    **Guarantees.**

    - ``fit`` uses the shape, column names and types of the table, but no cell. Trees depend on schema, parameters and
      seed. The embedding is a data-independent step: it has no privacy event and no privacy cost.
    - ``transform`` processes each row independently: an output row depends on its input row, the schema, the seed and
      public types.
    - Each row has one entry per plain column and one per tree, with values that do not depend on the row. Its norm is
      at most 1 and at least 1 - 2 ** -23.
    - The norm and the layout that rows carry follow from the schema and the parameters.
    - Error messages contain no private value.

    References
    ----------
    .. [1] P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63, 2006.
    .. [2] F. Moosmann, B. Triggs and F. Jurie, "Fast discriminative visual codebooks using randomized clustering
       forests", NIPS 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLogisticRegression
    >>> from skdp.ensemble import PublicTreesEmbedding
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> trees = PublicTreesEmbedding(30, bounds=(-1, 1), random_state=0)
    >>> trees.fit_transform(X).shape
    (5000, 514)
    >>> model = make_pipeline(trees, DPLogisticRegression(classes=[0, 1])).fit(X, y)
    >>> model[0].epsilon_
    0.0
    """

    n_estimators: int = 300
    max_depth: int = 8
    _: KW_ONLY
    max_leaf_nodes: int = 16
    schema: Any = None
    bounds: Any = None
    categories: Any = None
    n_bins: int = 16
    marginals: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    # --- fit ---

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of this estimator.

        Parameters
        ----------
        **params : dict of str to object
            Parameters of the estimator.

        Returns
        -------
        self : object
            The estimator itself.
        """
        parameters.reject_removed(type(self), params)
        return super().set_params(**params)

    @silent_arithmetic
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Draw the trees from public information.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Private rows. Only their shape, column names and types are used.
        y : None
            Ignored.
        **fit_params : dict of str to object
            Not supported: `sample_weight` and `groups` are rejected.

        Returns
        -------
        self : PublicTreesEmbedding
            Fitted embedding.

        Raises
        ------
        TypeError, ValueError
            A parameter is invalid, or the schema is incomplete or does not match the table.
        """
        parameters.reject_fit_params(fit_params, type(self).__name__)
        return fit_publicly(self, lambda work: work._learn(X))

    def _learn(self, X: Any) -> None:
        self._read_columns(X)
        self._grow()

    def _read_columns(self, X: Any, reader: Any = None) -> None:
        """Set all that is fitted but the trees. No cell is read; `reader` is a private estimator that it is for."""
        self._check_parameters()
        table = Table(X, reader)
        schema = self._read_schema(table.names)
        order = [name for name, _ in schema.items()]
        # In the order of the schema, so that the trees do not depend on how a table orders its columns.
        matched = raw_columns.match_columns(schema, table)
        columns = sorted(matched, key=lambda each: order.index(each[0]) if each[0] in order else -1)
        check_schema(self, table.source, reset=True)
        self.schema_ = TableSchema({name: column for name, _, column in columns})
        self._fitted_kinds = raw_columns.kinds_by_type(table, columns)
        self.seed_ = _public_seed(self.random_state)
        self._fitted_blocks = blocks_of(columns, int(self.n_bins))
        self._fitted_plain = plain_blocks(self._fitted_blocks)
        self.row_norm_, self.epsilon_, self.delta_ = 1.0, 0.0, 0.0

    def _grow(self) -> None:
        """Draw the trees."""
        blocks, size = self._fitted_blocks, (int(self.n_estimators), self._n_leaves, int(self.max_depth))
        self._fitted_trees = draw_trees(blocks, *size, self.seed_, read_marginals(self.marginals, blocks))

    def _read_schema(self, names: list[str]) -> TableSchema:
        """Return the complete public schema of a table with columns of these names."""
        if self.schema is None:
            return schema_of_columns(names, self.bounds, self.categories)
        for name in ("bounds", "categories"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"`{name}` must be None if `schema` is set, got {show(getattr(self, name))}. Declare it in "
                    "`schema`."
                )
        schema = raw_columns.read_schema(self.schema, "or None, and bounds and categories")
        if not schema.is_complete:
            raise ValueError(
                "`schema` must declare bounds or categories of all columns. Complete it, or estimate it privately with "
                "DPTableVectorizer(schema).fit(X).schema_."
            )
        return schema

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
        X_new : csr_matrix of shape (n_samples, n_features_out)
            Encoded rows as float32, with one entry per plain column and one per tree. They carry `row_norm_`, which
            private estimators use if ``data_norm=None``, and their public layout.

        Raises
        ------
        ValueError
            The table cannot be read. The message contains no cell.
        """
        # Plain columns first, then a column of each tree; all rows have the same weights.
        codes = self._codes(X)
        encoder, trees, n_plain = self._encoder, self._fitted_trees, len(self._fitted_plain)
        starts, form = np.cumsum([0, *(block.width for block in self._fitted_plain)]).tolist(), encoder.form
        weights = np.array(form.weights, np.float32)
        columns = np.empty((len(codes[0]), len(weights)), np.int32)
        values = np.empty(columns.shape, np.float32)
        writer = leaf_writer(trees, self._fitted_blocks, len(columns))

        def write(part: slice) -> None:
            places = encoder.plain_places([each[part] for each in codes])
            for k, (place, start) in enumerate(zip(places, starts[:-1], strict=True)):
                np.add(place, start, out=columns[part, k])
            values[part] = weights
            writer.write_leaves([each[part] for each in codes], starts[-1], trees.n_leaves, columns[part, n_plain:])

        _by_parts(write, len(columns), self.n_jobs)
        made = raw_columns.sparse_rows(columns, values, starts[-1] + trees.n_trees * trees.n_leaves)
        return with_row_form(with_row_norm(made, self.row_norm_), form)

    @silent_arithmetic
    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of each row in each tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows with the columns seen during ``fit``.

        Returns
        -------
        leaves : ndarray of shape (n_samples, n_estimators)
            Index of the leaf in each tree, counted from the left, from 0.
        """
        return self._encoder.leaves(self._codes(X))

    def __step_traits__(self) -> StepTraits:
        """Information for a pipeline before this step is fitted."""
        return StepTraits(fault_behind=self._fault_behind, row_form=self._form_to_come)

    def _fault_behind(self, before: Any) -> str:
        """Return the fault after a private step, because an error would come after the charge."""
        if traits_of(before).width_is_public or takes_any_columns(self):
            return ""
        return (
            "schema, bounds or categories may not match the columns of the previous step. Pass one pair of bounds, or "
            "make it the first step."
        )

    @property
    def _n_leaves(self) -> int:
        """Most leaves of a tree."""
        return min(int(self.max_leaf_nodes), 2 ** min(int(self.max_depth), 62))

    @property
    def _encoder(self) -> TreeEncoder:
        return TreeEncoder(self._fitted_blocks, self._fitted_plain, self._fitted_trees, self.n_jobs)

    # --- for estimators that have an embedding of their own ---

    def _check_parameters(self) -> None:
        """Reject parameters that are no numbers of their kind. No table is looked at."""
        check_count("n_estimators", self.n_estimators, constraint="a positive integer, such as 300")
        check_count("max_depth", self.max_depth, constraint="a positive integer, such as 8")
        check_count(
            "max_leaf_nodes", self.max_leaf_nodes, at_least=2, constraint="an integer of at least 2, such as 16"
        )
        if self.n_estimators * self._n_leaves > (most := 1 << 24):
            raise ValueError(
                f"n_estimators={self.n_estimators} trees with max_leaf_nodes={self.max_leaf_nodes} have more than "
                f"{most} leaves. Use fewer trees, or fewer leaves, such as 16."
            )
        check_count("n_bins", self.n_bins, constraint="a positive integer, such as 16")
        count_threads(self.n_jobs)

    def _gives_columns_of(self, fitted: PublicTreesEmbedding) -> bool:
        """Return whether a fit with these parameters would give the same columns."""
        names = ("n_estimators", "max_depth", "max_leaf_nodes", "n_bins")
        if any(getattr(self, name) != getattr(fitted, name) for name in names):
            return False
        schemas = (self._read_schema(list(fitted.schema_)), fitted.schema_)
        one, other = ([each for each in schema.items() if each[1].kind != "drop"] for schema in schemas)
        return one == other and _public_seed(self.random_state) == fitted.seed_

    def _public_blocks(self, names: list[str]) -> list[Block]:
        """Return the blocks of a table, from parameters alone; `names` are used where there is no schema."""
        columns = [(name, j, column) for j, (name, column) in enumerate(self._read_schema(names).items())]
        return blocks_of(columns, int(self.n_bins))

    def _codes(self, X: Any) -> list[np.ndarray]:
        """Read each column of a table, and check that the columns are those of the fit."""
        check_is_fitted(self)
        table = Table(X, None)
        check_schema(self, table.source, reset=False)
        return codes_of(self._fitted_blocks, table)

    def _form_to_come(self, n_features: int) -> OneHotForm | None:
        """Return the layout of the rows of a table of `n_features` columns, None if the parameters leave it open."""
        try:
            self._check_parameters()
            blocks = self._public_blocks([f"x{j}" for j in range(n_features)])
        except (TypeError, ValueError):  # ``fit`` raises this error
            return None
        return row_form(plain_blocks(blocks), int(self.n_estimators), self._n_leaves)

    # --- names ---

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of the table, which must be those seen during ``fit``.

        Returns
        -------
        names : ndarray of str objects
            ``column=category`` for each bin or category, other values ("other") and missing values ("missing"), as in
            `DPTableVectorizer`, followed by ``publictreesembedding_{tree}_{leaf}``.
        """
        check_is_fitted(self)
        raw_columns.check_input_names(self, input_features)
        trees, prefix = self._fitted_trees, type(self).__name__.lower()
        names = [name for block in self._fitted_plain for name in block.feature_names()]
        names += [f"{prefix}_{tree}_{leaf}" for tree in range(trees.n_trees) for leaf in range(trees.n_leaves)]
        return np.array(unique_names(names), dtype=object)

    @property
    def _n_features_out(self) -> int:
        trees: Trees = self._fitted_trees
        return sum(block.width for block in self._fitted_plain) + trees.n_trees * trees.n_leaves


@dataclass(frozen=True, eq=False)
class TreeEncoder:
    """Encoder from column codes to plain columns and leaves of trees.

    Attributes
    ----------
    blocks, plain : list of Block
        Blocks of the columns in use, and of the plain columns.
    trees : Trees
    n_jobs : int or None
    """

    blocks: list[Block]
    plain: list[Block]
    trees: Trees
    n_jobs: int | None

    def leaves(self, codes: list[np.ndarray]) -> np.ndarray:
        """Return the leaves for column codes, of shape (n_samples, n_estimators)."""
        leaves = np.empty((len(codes[0]), self.trees.n_trees), np.int32)
        writer = leaf_writer(self.trees, self.blocks, len(leaves))

        def write(part: slice) -> None:
            writer.write_leaves([each[part] for each in codes], 0, 0, leaves[part])

        _by_parts(write, len(leaves), self.n_jobs)
        return leaves

    @property
    def form(self) -> OneHotForm:
        """Layout of every row."""
        return row_form(self.plain, self.trees.n_trees, self.trees.n_leaves)

    def mean_rows(self, codes: list[np.ndarray], n_groups: int) -> np.ndarray:
        """Return the mean of one-hot rows in each of `n_groups` blocks of equal size, (n_groups, n_columns)."""
        trees, widths, n_rows = self.trees, self.form.blocks.level_counts, len(codes[0])
        starts = np.cumsum([0, *widths])
        columns = np.empty((n_rows, len(widths)), np.int32)
        for k, place in enumerate(self.plain_places(codes)):
            columns[:, k] = place + starts[k]
        n_plain = len(self.plain)
        trees.write_leaves(codes, int(starts[n_plain]), trees.n_leaves, columns[:, n_plain:])
        size = n_rows // n_groups
        cells = columns.reshape(n_groups, -1) + np.arange(n_groups)[:, None] * starts[-1]
        return np.bincount(cells.ravel(), minlength=n_groups * starts[-1]).reshape(n_groups, -1) / size

    def encode(self, codes: list[np.ndarray], n_features: int) -> OneHotRows:
        """Return bins, categories and leaves as one-hot rows without weights."""
        blocks, trees, n = self.form.blocks, self.trees, len(codes[0])
        packed, writer = blocks.empty_codes(n), leaf_writer(trees, self.blocks, n)

        def write(part: slice) -> None:
            parts = [each[part] for each in codes]
            leaves = np.empty((len(parts[0]), trees.n_trees), np.int32)
            writer.write_leaves(parts, 0, 0, leaves)
            by_trees = np.ascontiguousarray(leaves.astype(packed.dtype).T)  # each is less than the cells of its code
            blocks.encode([*self.plain_places(parts), *by_trees], packed[:, part])

        _by_parts(write, n, self.n_jobs)
        return OneHotRows(blocks, packed, n_features)

    def plain_places(self, codes: list[np.ndarray]) -> list[np.ndarray]:
        """Return the bin or category of each row in each plain block."""
        at = {block.position: each for block, each in zip(self.blocks, codes, strict=True)}
        # One entry each: bins and levels have no values.
        return [place for block in self.plain for place, _ in block.entries(at[block.position])]

    def importances(self, coef: np.ndarray, noise: np.ndarray, n_features: int) -> np.ndarray:
        """Return the importance of each column of the table, see `skdp.ensemble.trees`."""
        found = np.zeros(n_features)
        shares = importances(self.plain, self.blocks, self.trees, coef, noise)
        found[[block.position for block in self.blocks]] = shares
        return found


def codes_of(blocks: list[Block], table: Table) -> list[np.ndarray]:
    """Read each column of a checked table, see `Block.codes`."""
    for block in blocks:
        raw_columns.reject_dates(block.name, block.column, table, block.position)
    return [block.codes(table.cells(block.position)) for block in blocks]


def row_form(plain: list[Block], n_trees: int, n_leaves: int) -> OneHotForm:
    """Return the layout of rows with these plain columns and trees."""
    share = _PLAIN if plain else 0.0
    exact = shared_weights(share, 1.0 - share, len(plain), n_trees)
    rounded = exact.astype(np.float32)
    weights = np.where(rounded > exact, np.nextafter(rounded, np.float32(0.0)), rounded)  # of norm 1 at most
    return OneHotForm(one_hot_blocks(plain, n_trees, n_leaves), tuple(weights.tolist()), len(plain))


def _by_parts(write: Any, n_rows: int, n_jobs: int | None) -> None:
    parts = [slice(start, start + _ROWS) for start in range(0, n_rows, _ROWS)]
    n_threads = min(count_threads(n_jobs), len(parts))
    if n_threads <= 1:
        for part in parts:
            write(part)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(write, parts))  # kernel and NumPy release the GIL; `list` raises errors


def schema_of_columns(names: list[str], bounds: Any, categories: Any) -> TableSchema:
    """Return the public schema from bounds and categories of each column."""
    if bounds is None and categories is None:
        raise ValueError(
            "`schema`, `bounds` or `categories` must be set. Pass a TableSchema, or bounds=(low, high) if all columns "
            "are numbers."
        )
    ends_of = bounds_of_columns(bounds, len(names))
    listed = [None] * len(names) if categories is None else categories
    if not isinstance(listed, list | tuple) or len(listed) != len(names):
        raise ValueError(
            f"`categories` must be a list with a list of categories, or None, for each of {len(names)} columns, got "
            f"{show(categories)}."
        )
    known: dict[str, Any] = {}
    for name, ends, levels in zip(names, ends_of, listed, strict=True):
        if levels is None and ends is None:
            raise ValueError(f"Column {name!r} must have bounds or categories. Set one of them, or pass a schema.")
        known[name] = {"bounds": ends} if levels is None else {"categories": levels}
    return TableSchema(known)


def blocks_of(columns: list[tuple[str, int, Column]], n_bins: int) -> list[Block]:
    """Return the columns that are used: name, position and description of each."""
    return [Block(name, j, column, "bins", n_bins) for name, j, column in columns if column.kind != "drop"]


def plain_blocks(blocks: list[Block]) -> list[Block]:
    """Return the plain blocks of the columns: one each, and a finer one for numbers with more than `n_bins` edges.

    More than `n_bins` edges indicate that close numbers differ, as for occupation codes.
    """
    has_more = [each for each in blocks if each.is_line and len(each.column.edges or ()) - 1 > each.n_bins]
    return [*blocks, *(each.finer(4) for each in has_more)]


def one_hot_blocks(plain: list[Block], n_trees: int, n_leaves: int) -> Blocks:
    """Return the blocks of rows: plain columns, then trees."""
    return Blocks((*(block.width for block in plain), *[n_leaves] * n_trees))


@dataclass(frozen=True, eq=False)
class TableCodes:
    """Column codes of a table, before trees are drawn.

    Attributes
    ----------
    codes : list of ndarray of shape (n,)
        Codes of each column that is not dropped, see `Block.codes`.
    n_features : int
        Number of columns of the table.
    """

    codes: list[np.ndarray]
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """Of the table."""
        return len(self.codes[0]), self.n_features

    @property
    def dtype(self) -> Any:
        """Of the arithmetic."""
        return np.dtype(np.float64)


def takes_any_columns(estimator: Any) -> bool:
    """Return whether the parameters fit any number of columns: one pair of bounds, and no schema."""
    has_lists = estimator.schema is not None or estimator.categories is not None
    return not has_lists and not isinstance(check_bounds(estimator.bounds), list)


def _public_seed(random_state: Any) -> int:
    """Return a public seed."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    constraint = "a nonnegative integer, a RandomState, a Generator or None"
    return check_count("random_state", random_state, at_least=0, constraint=constraint)


def _rule(step: Any) -> Iterator[tuple[str, str]]:
    if step.schema is not None and type(step.schema) is not TableSchema and type(step.schema) is not dict:
        yield "has a schema of a custom class, which may receive the rows", "TableSchema({...})"
    if step.marginals is not None and type(step.marginals) is not dict:
        yield "has marginals of a custom class, which may receive the rows", "a dict"


register(PublicTreesEmbedding, _rule, ("schema",))
