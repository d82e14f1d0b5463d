"""Differentially private k-means clustering."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import k_means
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from skdp._checks.parameters import bounds_of_any_width, bounds_of_columns, check_count, silent_arithmetic
from skdp._checks.rows import check_table
from skdp._checks.weights import WeightReader, check_weights, exactly_summable, weight_of_each
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.base.estimator import PrivateEstimator, with_parameters
from skdp.base.fit import Fit, begin
from skdp.base.private_step import StepPlan, StepTraits
from skdp.cluster import noisy_tree
from skdp.cluster.noisy_tree import Clusters, Cube, CubeRows, RowMoments, SharedNoise, SparseRows, WeightedRows
from skdp.mechanisms.bounded_sum import clip_groups
from skdp.preprocessing.column_sums import EstimatedBounds

MOMENTS, TREE, STEPS = 0.15, 0.45, 0.40
"""Fractions of mu squared. Other values were not tried on the tables of benchmarks/bench_clusters.py."""

_LEAST_SPREAD = 0.05
"""Minimum part of the variance that is assumed within clusters, because noise may hide a difference of two variances.
"""


@dataclass(frozen=True)
class Clustering:
    """Parameters of the clustering algorithm; all are public.

    Parameters
    ----------
    n_clusters, n_steps : int
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Notes
    -----
    **Guarantees.** `find` makes the releases of `event_at` for its noise multiplier, or fewer. Its result is a function
    of these releases, of data-independent random numbers and of public quantities.

    Proof. Moments, the counts of each level of the tree, the sums of its leaves and each iteration are one Gaussian
    release each, with a fixed fraction of mu squared. Their functions of the rows depend only on earlier releases and
    random numbers, their sensitivities hold for all such functions, and the noise multipliers are fixed in advance. The
    event is therefore their composition (Dong, Roth & Su 2022, corollary 2).
    """

    n_clusters: int
    n_steps: int
    adjacency: str

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """Event of the releases: that of one Gaussian release with this noise."""
        levels = noisy_tree.n_levels(self.n_clusters)
        shares = [MOMENTS, *noisy_tree.shares(TREE, levels), *[STEPS / self.n_steps] * self.n_steps]
        return compose([GaussianDpEvent(noise_multiplier / math.sqrt(share)) for share in shares])

    def find(self, rows: WeightedRows, most: float, releases: SharedNoise, coins: np.random.Generator) -> Clusters:
        """Return cluster centers; `most` is a public bound on the sum of weights."""
        levels = noisy_tree.n_levels(self.n_clusters)
        moments = noisy_tree.release_moments(rows, self.adjacency, most, releases, MOMENTS)
        leaves = noisy_tree.grow(rows, moments, levels, self.adjacency, releases, TREE, coins)
        centers, radius = start(leaves, moments, self.n_clusters, coins)
        return noisy_tree.run_steps(rows, centers, radius, self.n_steps, self.adjacency, releases, STEPS)


def start(
    leaves: noisy_tree.Leaves, moments: RowMoments, k: int, coins: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Cluster noisy leaves; return k centers in the cube, and the clipping radius of the first iteration."""
    centers, variance = np.empty((0, len(moments.mean))), moments.variance
    if len(leaves.counts):
        seed = int(coins.integers(2**31))
        with threadpool_limits(1), warnings.catch_warnings():  # sums of several threads differ from run to run
            warnings.simplefilter("ignore", ConvergenceWarning)  # of leaves at one point
            few = min(k, len(leaves.counts))
            # Leaves are few; with 10 starts 64 clusters are often found wrong.
            given = {"sample_weight": leaves.counts, "n_init": 100, "random_state": seed}
            centers, codes, _ = k_means(leaves.means, few, **given)
        distances = ((centers[codes] - moments.mean) ** 2).sum(axis=1)
        between = float(np.average(distances, weights=leaves.counts))
        variance = max(variance - between, _LEAST_SPREAD * variance)
    drawn = coins.standard_normal((k - len(centers), len(moments.mean))) @ moments.root.T
    return np.clip(np.concatenate([centers, moments.mean + drawn]), -1.0, 1.0), noisy_tree.STEP_RADIUS * math.sqrt(
        variance
    )


class NoFitTransform:
    """Mixin that hides ``fit_transform``, because the output for training rows is private.

    It is not a transformer itself, because scikit-learn would wrap its methods.
    """

    @property
    def fit_transform(self) -> Any:
        """Not available."""
        raise AttributeError(
            f"{type(self).__name__} does not support fit_transform, because its output for private rows is private."
        )


@with_parameters
class DPKMeans(NoFitTransform, ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Differentially private k-means clustering.

    Columns are scaled to [-1, 1] by their bounds; equal bounds preserve the distances of `X`. ``fit`` first releases
    noisy moments. It then releases counts and sums of the leaves of a random tree, which scikit-learn's k-means
    clusters. Finally, it makes a few noisy Lloyd iterations.

    There is no ``labels_``, ``fit_predict`` or ``fit_transform``, because the cluster of a private row is private.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds, one pair for all columns or one for each. Values beyond them are moved to the nearest bound, in
        ``fit`` and in predictions. None estimates bounds privately with 30% of the budget, for dense rows only. Columns
        of `DPTableVectorizer` have bounds of (-1, 1).
    max_iter : int, default=5
        Number of noisy Lloyd iterations. With more iterations, each one has more noise.
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

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Noisy cluster centers, within the bounds, in the units of `X`.
    counts_ : ndarray of shape (n_clusters,)
        Noisy number of rows (or sum of weights) of each cluster in the last iteration, bounded below by the noise
        level.
    inertia_ : float
        Noisy sum of squared distances to the centers before the last iteration, for columns scaled to [-1, 1] and with
        distances clipped.
    n_iter_ : int
        Number of iterations, `max_iter`.
    bounds_ : ndarray of shape (n_features, 2)
        Bounds of the columns, public or privately estimated.
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
        Noise multiplier of all releases together.

    See Also
    --------
    DPMarginalSynthesizer : Synthetic data from noisy marginals.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
    - All fitted attributes are functions of noisy releases, of data-independent random numbers and of public
      quantities.
    - The accountant is charged before anything is released. Invalid input raises an error before the charge.
    - Weights multiply the contribution of a row by a number in [0, 1], so they do not raise the sensitivity.
    - With `groups`, the guarantee holds for all rows of one group together: their weights are scaled to add up to at
      most 1, so that a group counts as an average of its rows.

    The proofs are in the docstrings of ``skdp.cluster.noisy_tree`` and, for the composition, of
    ``skdp.cluster.kmeans.Clustering``.

    **Many columns.** The moments form a matrix of columns by columns, and each node of the tree has one. A few hundred
    columns need little memory, a few thousand need gigabytes, for dense and sparse rows.

    **Post-processing.** If fewer leaves exceed the noise than there are clusters, the other centers start at points
    drawn from a normal distribution with the noisy moments. Centers with large noise are moved less.

    References
    ----------
    Su, Cao, Li, Bertino & Jin (2016), "Differentially private k-means clustering"; Chang & Kamath (2021), "Practical
    differentially private clustering", for the tree.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.cluster import DPKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-0.5, 0.5], 5000)[:, None] + rng.normal(0.0, 0.05, (5000, 2))
    >>> model = DPKMeans(2, bounds=(-1, 1), epsilon=1.0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1).tolist()
    [-0.5, 0.5]
    """

    n_clusters: int = 8
    _: KW_ONLY
    bounds: Any = None
    max_iter: int = 5
    weight_bound: Any = None
    epsilon: Any = 1.0
    delta: float | str = "auto"
    noise_multiplier: float | None = None
    adjacency: Any = None
    accountant: Any = None
    random_state: Any = None

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Compute the cluster centers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Sparse rows require public bounds and are converted to dense ones in chunks.
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
        clustering = model._clustering()
        missing = EstimatedBounds(bounds_of_columns(model.bounds, fit.n_features), model.adjacency)
        fit.plan(missing.event_beside(clustering.event_at))

        rows = fit.read_rows(_read_rows)
        weights = fit.read(weight_reader.read, sample_weight, fit.n_rows)
        fit.charge()

        cube, found = fit.learn(_find, fit, missing, clustering, rows, weights)
        centers = cube.take_out(found.centers)
        counts, inertia = found.counts * weight_reader.bound, found.inertia * weight_reader.bound
        return fit.publish(
            bounds_=cube.bounds, cluster_centers_=centers, counts_=counts, inertia_=inertia, n_iter_=clustering.n_steps,
            weight_bound_=weight_reader.bound, _fitted_centers=cube.bring_in(centers),
        )  # fmt: skip

    def _plan_step(self, n_samples: int, n_features: int) -> StepPlan:
        """See `PrivateEstimator`: the releases of `Clustering`, and that of bounds if there are none."""
        missing = EstimatedBounds(bounds_of_any_width(self.bounds), self.adjacency)
        return StepPlan(missing.event_beside(self._clustering().event_at), {})

    def _clustering(self) -> Clustering:
        k = check_count("n_clusters", self.n_clusters, constraint="a positive integer, such as 8")
        steps = check_count("max_iter", self.max_iter, constraint="a positive integer, such as 5")
        return Clustering(k, steps, self.adjacency)

    def __step_traits__(self) -> StepTraits:
        return replace(super().__step_traits__(), sets_width=True)

    # --- new rows ---

    @silent_arithmetic
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the nearest cluster of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. Values beyond the bounds are moved to the nearest bound, as in ``fit``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Index of the cluster of each row. Labels are as private as the rows.
        """
        return noisy_tree.nearest(self._checked(X), self._fitted_centers).astype(np.int32)

    @silent_arithmetic
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Compute the distances to the centers, for columns scaled to [-1, 1].

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. Values beyond the bounds are moved to the nearest bound, as in ``fit``.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters)
            Distances.
        """
        return np.sqrt(noisy_tree.squared_distances(self._checked(X), self._fitted_centers))

    @silent_arithmetic
    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Compute the negative sum of squared distances to the nearest centers, for columns scaled to [-1, 1].

        This is an exact statistic of the rows and as private as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Sample weights.

        Returns
        -------
        score : float
            Negative sum of squared distances.
        """
        least = noisy_tree.squared_distances(self._checked(X), self._fitted_centers).min(axis=1)
        return -float(weight_of_each(check_weights(sample_weight, len(least)), len(least)) @ least)

    def _checked(self, X: Any) -> CubeRows:
        check_is_fitted(self)
        return _rows_in(Cube(self.bounds_), check_table(self, X, reset=False, sparse=True))

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        bounds = self.bounds if isinstance(self.bounds, list) else [self.bounds]
        tags.input_tags.sparse = all(pair is not None for pair in bounds)
        return tags


def _read_rows(model: DPKMeans, X: Any, *, reset: bool) -> Any:
    """Return checked rows, of which sparse ones stay sparse."""
    rows = check_table(model, X, reset=reset, sparse=True)
    if sp.issparse(rows) and None in bounds_of_columns(model.bounds, rows.shape[1]):
        raise ValueError(
            "`bounds` must be set for sparse X, because bounds of sparse rows cannot be estimated. Set public bounds, "
            "or pass X.toarray()."
        )
    return rows


def _find(fit: Fit, missing: EstimatedBounds, clustering: Clustering, rows: Any, weights: Any) -> tuple[Cube, Clusters]:
    """Return the cube between bounds, of which some are released, and the clusters of the rows in it."""
    weights = exactly_summable(clip_groups(fit.units, weight_of_each(weights, fit.n_rows), 1.0))
    columns = [] if sp.issparse(rows) else list(rows.T.astype(np.float64))
    given = fit.noise_multiplier, fit.n, fit.spawn("bounds"), weights, fit.units
    cube = Cube(np.array(missing.release(columns, *given)))
    releases = SharedNoise(missing.noise_left(fit.noise_multiplier), fit.spawn("clusters"))
    coins = np.random.default_rng(fit.spawn("coins").words(4).tolist())
    return cube, clustering.find(WeightedRows(_rows_in(cube, rows), weights), fit.n, releases, coins)


def _rows_in(cube: Cube, rows: Any) -> CubeRows:
    """Return rows in the cube; sparse ones where they are looked at."""
    return SparseRows(rows, cube) if sp.issparse(rows) else cube.bring_in(rows)
