"""Differentially private isolation forest."""

from __future__ import annotations

from dataclasses import KW_ONLY, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdp._checks.parameters import check_real, show, silent_arithmetic
from skdp._checks.table import fitted_table
from skdp._checks.weights import WeightReader
from skdp.accounting import GaussianDpEvent
from skdp.base.estimator import with_parameters
from skdp.base.fit import begin
from skdp.base.private_step import StepPlan
from skdp.ensemble.embedding import PublicTreesEmbedding, TableCodes, codes_of
from skdp.ensemble.trees import Trees
from skdp.ensemble.trees_of_tables import TreesOfTables
from skdp.mechanisms.bounded_sum import CellCounts
from skdp.preprocessing.schema.blocks import Block

_N_DRAWN = 2000
"""Number of simulated records for a threshold."""


@with_parameters
class DPIsolationForest(TreesOfTables):
    """Differentially private isolation forest for outlier detection.

    The splits of the trees are drawn from the public schema and a public seed; they do not depend on the rows. The
    number of rows in each leaf is released once with noise. A row that reaches small leaves near the root is an
    outlier.

    `X` is a raw table of numbers, strings, dates and missing values, or a sparse matrix, which is read column by
    column. There is no ``fit_predict``, because the outlier label of a private row is private.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees. The noise of a count grows with its square root.
    max_depth : int, default=10
        Maximum depth of a tree.
    max_leaf_nodes : int, default=128
        Maximum number of leaves of a tree. Trees grow best-first: the largest node is split next.
    contamination : "auto" or float, default="auto"
        Expected fraction of outliers in (0, 0.5], which determines `offset_`. "auto" sets `offset_` to -0.5, as in
        scikit-learn.
    schema : TableSchema, mapping or None, default=None
        Public description of the columns: a `skdp.preprocessing.TableSchema`, or a mapping that it accepts. It must be
        complete: bounds of all numbers and dates, categories of all other columns. If None, `bounds` and `categories`
        describe the columns; if these are None too, the schema attached to the output of
        ``DPTableVectorizer(numbers="codes")`` is used.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds, one pair for all columns or one for each. None is for a column with `categories`. Values beyond
        the bounds fall in the outermost leaves. Narrow bounds make the trees more informative.
    categories : list of (list or None) or None, default=None
        Public categories of each column. None is for a numeric column.
    trees_random_state : int, default=0
        Public seed of the trees, a nonnegative integer. It is independent of the noise.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is equivalent to 1; a fit with `sample_weight` then warns that larger weights are clipped.
    epsilon : float, Risk or None, default=1.0
        Privacy budget of one ``fit``, to which the noise is calibrated. A number, or a bound on the risk of membership
        inference such as ``skdp.Risk(advantage=0.1)`` (``docs/membership_inference.md``). Must be None if
        `noise_multiplier` is given.
    delta : float or "auto", default="auto"
        The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number of rows.
        "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most 10,000 rows and 1/(10n),
        rounded down to a power of ten, for more.
    noise_multiplier : float or None, default=None
        Standard deviation of the noise of the release, divided by its sensitivity. If None, it is calibrated to
        `epsilon`.
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
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it. None means 1 unless in a ``joblib.parallel_config``
        context. -1 means using all processors.
    random_state : int, RandomState or Generator instance or None, default=None
        Source of the noise. None draws a fresh secret key from the operating system. Any other value makes the fit
        reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against anyone who knows the
        value.

    Attributes
    ----------
    embedding_ : PublicTreesEmbedding
        The fitted trees. ``embedding_.apply(X)`` returns the leaf of each row in each tree.
    leaf_counts_ : ndarray of shape (n_estimators, n_leaves)
        Noisy number of rows (or sum of weights) of each leaf; 0 for leaves that a tree does not have.
    n_rows_ : float
        Noisy number of rows (or sum of weights), averaged over the trees; at least 2, and at least the standard
        deviation of its noise.
    offset_ : float
        Threshold of the scores: ``decision_function`` is ``score_samples`` minus `offset_`, below 0 for outliers.
    weight_bound_ : float
        Bound to which weights were clipped before division by it; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
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
        Noise multiplier of the release.

    See Also
    --------
    PublicTreesEmbedding : Random trees as a transformer.
    DPRandomTreesClassifier : Private linear model on the same trees, for labeled data.

    Notes
    -----
    **Scores.** Scores follow scikit-learn's definition, with noisy counts. The path length of a row in a tree is the
    depth of its leaf plus c(count), where c is the average path length of an unsuccessful search. The score is -2 **
    (-h / c(`n_rows_`)), where h is the mean path length over the trees. All rows are counted in all trees; there is no
    subsampling.

    **Bounds.** Splits are drawn over the range that the schema declares. If the bounds are much wider than the data,
    most splits separate nothing, and scores carry little information. Declare narrow bounds, or let
    ``tabular_pipeline`` estimate them privately.

    **Threshold.** A number as `contamination` sets `offset_` to that quantile of the scores of 2,000 simulated records.
    These are drawn from the noisy counts, at no additional privacy cost. The threshold is approximate, because leaf
    counts do not show which leaves occur together. If the noise is large, fewer rows are below it.

    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
    - All fitted attributes are functions of one noisy release, of data-independent trees and random numbers, and of
      public quantities.
    - The accountant is charged before anything is released. Invalid input raises an error before the charge.
    - Weights multiply the contribution of a row by a number in [0, 1], so they do not raise the sensitivity.
    - With `groups`, the guarantee holds for all rows of one group together: their contribution is clipped to the norm
      of that of one row.

    **Sensitivity.** A row is in one leaf of each of T data-independent trees and adds its weight, at most 1, to these
    counts: a vector of norm at most sqrt(T). Two such vectors are nonnegative, so they differ by at most sqrt(2 T). The
    sensitivity under ``replace_one``, half of it, is sqrt(T / 2). The contribution of a group is clipped to norm
    sqrt(T) and is also nonnegative. All counts are one Gaussian release.

    References
    ----------
    Liu, Ting & Zhou (2008), "Isolation forest"; Ting, Zhou, Liu & Tan (2010), "Mass estimation and its applications",
    for trees drawn from ranges.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.ensemble import DPIsolationForest
    >>> X = np.random.default_rng(0).normal(0.0, 0.1, (5000, 2))
    >>> model = DPIsolationForest(bounds=(-1, 1), epsilon=1.0).fit(X)
    >>> model.predict([[0.0, 0.0], [0.9, -0.8]]).tolist()
    [1, -1]
    """

    n_bins = 16  # of plain columns, which are not used

    leaf_counts_: np.ndarray = field(init=False)
    n_rows_: float = field(init=False)

    n_estimators: int = 100
    max_depth: int = 10
    _: KW_ONLY
    max_leaf_nodes: int = 128
    contamination: Any = "auto"
    schema: Any = None
    bounds: Any = None
    categories: Any = None
    trees_random_state: int = 0
    weight_bound: Any = None
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    adjacency: Any = None
    accountant: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the isolation forest.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Private rows.
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
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. No budget is consumed.
        BudgetExceededError
            The fit exceeds the budget of the accountant. No budget is consumed.
        """
        fit = begin(self, X, groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        outlier_share = model._check_contamination()
        model._check_columns(fit.n_features)
        fit.plan()

        rows = fit.read_rows(_read_codes)
        weights = fit.read(weight_reader.read, sample_weight, fit.n_rows)
        fit.charge()

        model.embedding_._grow()
        trees = model.embedding_._fitted_trees
        leaves = fit.learn(model.embedding_._encoder.leaves, rows.codes)
        noisy = fit.release(CellCounts((trees.n_leaves,) * leaves.shape[1]), leaves.T, weights=weights)
        counts = np.where(is_leaf(trees), np.array(noisy.value), 0.0)
        deviation = fit.noise_multiplier * np.sqrt(trees.n_leaves)  # of the mean of the sums, or a little more
        n_rows = float(max(counts.sum(axis=1).mean(), deviation, 2.0))
        model._keep_lengths(counts, n_rows)
        coins = np.random.default_rng(fit.spawn("coins").words(4).tolist())
        offset, bound = model._offset(outlier_share, counts, noisy.deviation, coins), weight_reader.bound
        return fit.publish(offset_=offset, leaf_counts_=counts * bound, n_rows_=n_rows * bound, weight_bound_=bound)

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: one Gaussian release."""
        return StepPlan(GaussianDpEvent, {})

    def _check_columns(self, n_features: int | None) -> None:
        """Reject parameters that do not fit the columns. Codes have a schema, which is checked with the rows."""
        embedding = self._embedding()
        if not self._takes_codes():
            embedding._public_blocks([f"x{j}" for j in range(n_features or self._assumed_width())])

    def _check_contamination(self) -> float | None:
        """Return the fraction of outliers, None for "auto"."""
        if isinstance(self.contamination, str):
            if self.contamination == "auto":
                return None
            raise ValueError(
                f"`contamination` must be {_SHARE.removeprefix('choose ')}, got {show(self.contamination)}."
            )
        return check_real("contamination", self.contamination, above=0, at_most=0.5, constraint=_SHARE)

    @silent_arithmetic
    def _keep_lengths(self, counts: np.ndarray, n_rows: float) -> None:
        """Keep what scores are made of; millionths of a row are left out, which a product with a bound may round."""
        self._fitted_lengths = path_lengths(self.embedding_._fitted_trees, np.round(counts, 6))
        self._fitted_scale = float(average_path_length(round(n_rows, 6)))

    @silent_arithmetic
    def _offset(self, share: float | None, counts: np.ndarray, deviation: float, coins: np.random.Generator) -> float:
        """Return the quantile of the scores of simulated records, drawn from the counts and weighted by them."""
        if share is None:
            return -0.5
        leaves = draw_leaves(self.embedding_._fitted_trees, self.embedding_._fitted_blocks, counts, _N_DRAWN, coins)
        scores, weights = self._scores(leaves), weigh(leaves, counts, deviation)
        order = np.argsort(scores, kind="stable")
        place = np.searchsorted(np.cumsum(weights[order]), share)
        return float(scores[order][min(int(place), _N_DRAWN - 1)])

    def _scores(self, leaves: np.ndarray) -> np.ndarray:
        """Return the scores of rows in these leaves."""
        lengths = self._fitted_lengths[np.arange(leaves.shape[1]), leaves]
        return -np.exp2(-lengths.mean(axis=1) / self._fitted_scale)

    # --- new rows ---

    @silent_arithmetic
    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Compute the anomaly score of each row, which is as private as the row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores between -1 and 0. Lower scores are more abnormal.
        """
        check_is_fitted(self)
        embedding: PublicTreesEmbedding = self.embedding_
        return self._scores(embedding._encoder.leaves(codes_of(embedding._fitted_blocks, fitted_table(self, X))))

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Compute the scores minus `offset_`, which are negative for outliers.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Shifted scores. Negative scores are outliers.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict whether each row is an outlier.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        is_inlier : ndarray of shape (n_samples,)
            -1 for outliers, 1 for inliers.
        """
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "outlier_detector"
        tags.input_tags.sparse = True
        return tags


_SHARE = "a fraction in (0, 0.5], or 'auto'"


def _read_codes(model: DPIsolationForest, X: Any, *, reset: bool) -> TableCodes:
    """Return the cells of the columns as codes."""
    return model._read_table(X)


# --- how soon trees that read no row isolate what falls into their leaves, from noisy counts; and who is in the l ---

_TINY = 1e-300
_PASSES, _POWER = 3, 0.2  # tried on the first tables of benchmarks/bench_outliers.py


def average_path_length(counts: Any) -> np.ndarray:
    """Return the average path length of an unsuccessful search in a binary search tree of `n` rows, 0 below 1.

    Liu, Ting & Zhou (2008), "Isolation forest", equation 1, and as in scikit-learn 0 for one row and 1 for two. For
    noisy, non-integer counts, it is interpolated linearly, and it is at least 1 above two rows.
    """
    counts = np.asarray(counts, np.float64)
    many = np.maximum(counts, 2.0)
    formula = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(counts > 2.0, np.maximum(formula, 1.0), np.clip(counts - 1.0, 0.0, 1.0))


def path_lengths(trees: Trees, counts: np.ndarray) -> np.ndarray:
    """Return path lengths of the leaves for these counts, of shape (n_trees, n_leaves)."""
    depth, is_split = np.zeros(trees.left.shape), trees.is_split
    for node in range(trees.left.shape[1]):  # children have higher numbers
        tree = np.flatnonzero(is_split[:, node])
        left = trees.left[tree, node]
        depth[tree, left] = depth[tree, left + 1] = depth[tree, node] + 1.0
    found = np.zeros(counts.shape)
    is_node = np.arange(trees.left.shape[1]) < 2 * is_split.sum(axis=1, keepdims=True) + 1  # numbered without gaps
    at = np.nonzero(~is_split & is_node)
    found[at[0], trees.leaf[at]] = depth[at]
    return found + average_path_length(counts)


def is_leaf(trees: Trees) -> np.ndarray:
    """Which leaf indices are in use, of shape (n_trees, n_leaves)."""
    n_leaves = trees.is_split.sum(axis=1, keepdims=True) + 1
    return np.asarray(np.arange(trees.n_leaves) < n_leaves)


class Boxes(NamedTuple):
    """Boxes in the space of the columns: intervals of numeric columns, subsets of the levels of others.

    Missing values of numeric columns are ignored.
    """

    low: np.ndarray
    high: np.ndarray
    levels: np.ndarray

    @classmethod
    def whole(cls, blocks: list[Block], n: int) -> Boxes:
        """Return n boxes that cover the whole space."""
        widths = np.array([0 if block.is_line else block.width for block in blocks])
        levels = np.arange(widths.max()) < widths[:, None]
        shape = n, len(blocks)
        return cls(np.zeros(shape), np.ones(shape), np.tile(levels, (n, 1, 1)))

    def cut(self, box: Any, column: Any, of: Boxes, node: Any) -> None:
        """Intersect some boxes with others in one column."""
        self.low[box, column] = np.maximum(self.low[box, column], of.low[node, column])
        self.high[box, column] = np.minimum(self.high[box, column], of.high[node, column])
        self.levels[box, column] &= of.levels[node, column]

    def part(self, box: Any, column: Any, of: Boxes, node: Any) -> np.ndarray:
        """Return the fraction of a column of other boxes that some boxes cover."""
        low, high = of.low[node, column], of.high[node, column]
        shared = np.minimum(self.high[box, column], high) - np.maximum(self.low[box, column], low)
        on_line = np.maximum(shared, 0.0) / np.maximum(high - low, _TINY)
        levels = of.levels[node, column]
        n_shared = (self.levels[box, column] & levels).sum(axis=1)
        return np.where(levels.any(axis=1), n_shared / np.maximum(levels.sum(axis=1), 1), on_line)


def draw_leaves(
    trees: Trees, blocks: list[Block], counts: np.ndarray, n: int, coins: np.random.Generator
) -> np.ndarray:
    """Draw simulated records from noisy counts: their leaves in all trees, of shape (n, n_trees).

    Counts describe each tree separately, not jointly. Therefore n boxes start as the whole space and descend the trees
    in a random order. At a node that splits a box, one side is drawn with a probability that grows with its count and
    with the part of it that the box covers, as if records were spread evenly. Only noisy counts, public trees and
    random numbers are used.
    """
    boxes, found = Boxes.whole(blocks, n), np.zeros((n, trees.n_trees), np.int32)
    masses, places = _masses(trees, counts), _places(trees, blocks)
    for t in coins.permutation(trees.n_trees).tolist():
        seen, node = _boxes_of_nodes(trees, blocks, t, places[t]), np.zeros(n, np.int64)
        for _ in range(int(trees.depth[t])):
            box = np.flatnonzero(trees.is_split[t, node])
            column, left = trees.column[t, node[box]], trees.left[t, node[box]].astype(np.int64)
            parts = [boxes.part(box, column, seen, left + side) for side in (0, 1)]
            # without counts, the covered part decides
            at_left, at_right = (part * (masses[t, left + side] + _TINY) for side, part in enumerate(parts))
            goes_right = coins.random(len(box)) * (at_left + at_right) >= at_left
            goes_right &= at_right > 0.0
            node[box] = left + goes_right
            boxes.cut(box, column, seen, node[box])
        found[:, t] = trees.leaf[t, node]
    return found


def weigh(leaves: np.ndarray, counts: np.ndarray, deviation: float) -> np.ndarray:
    """Return weights of simulated records that match the noisy counts of the leaves; they sum to 1.

    Weights are multiplied, tree by tree, by a power of the ratio of noisy and weighted counts (multiplicative weights,
    Hardt, Ligett & McSherry 2012). `deviation` is the standard deviation of the noise of a count.
    """
    weights = np.full(len(leaves), 1.0 / len(leaves))
    total, noisy = max(float(counts.sum(axis=1).mean()), deviation), np.maximum(counts, 0.0) + deviation
    for _ in range(_PASSES):
        for t in range(len(counts)):
            weighted = total * np.bincount(leaves[:, t], weights, minlength=counts.shape[1]) + deviation
            weights *= (noisy[t] / weighted)[leaves[:, t]] ** _POWER
            weights /= weights.sum()
    return weights


def _masses(trees: Trees, counts: np.ndarray) -> np.ndarray:
    """Sums of the counts of the leaves below each node, of shape (n_trees, n_nodes), 0 where noise is below that."""
    first, end = trees.leaves_of_nodes()
    below = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    before, up_to = (np.take_along_axis(below, each.astype(np.int64), 1) for each in (first, end))
    return np.maximum(up_to - before, 0.0)


def _places(trees: Trees, blocks: list[Block]) -> np.ndarray:
    """Return thresholds as fractions of the ranges of their columns, of shape (n_trees, n_nodes)."""
    places = np.zeros(trees.threshold.shape)
    for j, block in enumerate(blocks):
        if block.is_line:
            here = trees.is_split & (trees.column == j)
            places[here] = block.line.share_at(trees.threshold[here])
    return places


def _boxes_of_nodes(trees: Trees, blocks: list[Block], t: int, places: np.ndarray) -> Boxes:
    """Return the box of each used node of a tree."""
    seen = Boxes.whole(blocks, trees.left.shape[1])
    levels = np.arange(seen.levels.shape[2])
    for node in np.flatnonzero(trees.is_split[t]).tolist():
        j, left = int(trees.column[t, node]), int(trees.left[t, node])
        for each in seen:
            each[left] = each[left + 1] = each[node]
        if blocks[j].is_line:
            seen.high[left, j] = seen.low[left + 1, j] = places[node]
        else:
            words = trees.words[trees.first_word[t, node] + np.minimum(levels, blocks[j].width - 1) // 64]
            right = (words >> (levels % 64).astype(np.uint64) & np.uint64(1)).astype(np.bool_)
            seen.levels[left, j] &= ~right
            seen.levels[left + 1, j] &= right
    return seen
