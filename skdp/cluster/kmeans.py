"""Private k-means."""

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
from skdp.preprocessing.column_sums import BoughtBounds

MOMENTS, TREE, STEPS = 0.15, 0.45, 0.40
"""Shares of mu**2. Others were not tried on the tables of benchmarks/bench_clusters.py."""

_LEAST_SPREAD = 0.05
"""Least part of the variance that is taken to be within clusters: noise may leave no difference of two variances."""


@dataclass(frozen=True)
class Clustering:
    """How clusters are found. All of its fields are public.

    Parameters
    ----------
    n_clusters, n_steps : int
    adjacency : {"zero_out", "add_remove", "replace_one"}

    Notes
    -----
    **Guarantees.** `find` makes the releases whose event `event_at` states for their noise multiplier, or fewer. All
    that it returns is a function of these releases, of its coins and of public numbers.

    Proof. Moments, the counts of each level of the tree, the sums of its leaves and each step are one Gaussian release
    each, of a fixed part of mu**2. Which function of the rows one is of depends on earlier releases and on coins alone,
    its sensitivity holds for every such function, and its noise multiplier is fixed beforehand. So the event is their
    composition (Dong, Roth & Su 2022, corollary 2), whatever the tree is cut into.
    """

    n_clusters: int
    n_steps: int
    adjacency: str

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """What the releases cost: as much as one Gaussian release of this noise."""
        levels = noisy_tree.n_levels(self.n_clusters)
        shares = [MOMENTS, *noisy_tree.shares(TREE, levels), *[STEPS / self.n_steps] * self.n_steps]
        return compose([GaussianDpEvent(noise_multiplier / math.sqrt(share)) for share in shares])

    def find(self, rows: WeightedRows, most: float, releases: SharedNoise, coins: np.random.Generator) -> Clusters:
        """Return centers of clusters; `most` is a public bound on the sum of weights."""
        levels = noisy_tree.n_levels(self.n_clusters)
        moments = noisy_tree.release_moments(rows, self.adjacency, most, releases, MOMENTS)
        leaves = noisy_tree.grow(rows, moments, levels, self.adjacency, releases, TREE, coins)
        centers, radius = start(leaves, moments, self.n_clusters, coins)
        return noisy_tree.run_steps(rows, centers, radius, self.n_steps, self.adjacency, releases, STEPS)


def start(
    leaves: noisy_tree.Leaves, moments: RowMoments, k: int, coins: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Cluster noisy leaves; return k centers in the cube, and the radius at which the first step clips offsets."""
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
    """Hides what a transformer of scikit-learn has: rows that it is fitted to may not be seen.

    It is no transformer itself, as scikit-learn would wrap what it defines.
    """

    @property
    def fit_transform(self) -> Any:
        """Not there."""
        raise AttributeError(f"{type(self).__name__} has no fit_transform: what it gives for private rows is private.")


@with_parameters
class DPKMeans(NoFitTransform, ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):
    """Private k-means clustering.

    Columns are scaled to [-1, 1] by their bounds, so a column counts by the part of its range that a difference makes
    up; equal bounds keep the distances of `X`. Moments are released first, then the counts and sums of the leaves of a
    tree of random cuts, which scikit-learn's k-means clusters, then some steps of Lloyd's algorithm.

    There is no ``labels_``, ``fit_predict`` or ``fit_transform``: which cluster a private row is in is private.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    bounds : (float, float), list of (float, float) or None, or None, default=None
        Public bounds of all columns, or of each. Values beyond them are moved to the nearest bound, in ``fit`` and in
        predictions. Bounds of None are bought, for 30 % of the budget, of rows that are not sparse. Columns of
        `DPTableVectorizer` have bounds of (-1, 1).
    max_iter : int, default=5
        Number of noisy steps of Lloyd's algorithm. More steps have more noise each.
    weight_bound : float or None, default=None
        Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the largest weight
        that can occur, or a value that few weights exceed: the effect of the noise grows with the bound divided by the
        mean weight. None is a bound of 1, and a fit with weights then warns that larger weights are clipped to it.
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
        Noisy centers of the clusters, between the bounds, in the units of `X`.
    counts_ : ndarray of shape (n_clusters,)
        Noisy numbers of rows of each cluster in the last step, or sums of their weights, held above their noise.
    inertia_ : float
        Noisy sum of squared distances to the centers from which the last step began, of columns scaled to [-1, 1] and
        of rows that are not far from their center.
    n_iter_ : int
        Number of steps, `max_iter`.
    bounds_ : ndarray of shape (n_features, 2)
        Bounds on the columns, public or bought.
    weight_bound_ : float
        Bound by which weights were divided; 1.0 for ``weight_bound=None``.
    n_features_in_ : int
        Number of columns seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of columns seen during ``fit``. Defined only if all column names of `X` are strings.
    epsilon_ : float
        Price of the fit at `delta_`, at most `epsilon`.
    delta_ : float
        Delta at which `epsilon_` is computed.
    adjacency_ : str
        Neighbouring relation for which `epsilon_` holds.
    privacy_unit_ : {"row", "group"}
        What the guarantee is for: one row, or all rows with one label of `groups`.
    privacy_event_ : DpEvent
        Event that `epsilon_` is the price of.
    noise_multiplier_ : float
        Noise multiplier of all releases together.

    See Also
    --------
    DPMarginalSynthesizer : Rows drawn from noisy tables, for whoever wants more than centers.

    Notes
    -----
    **Guarantees.**

    - ``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is None.
    - All that is fitted is a function of noisy releases, of coins that no row decides, and of public quantities.
    - `accountant` is charged before the rows are summed, and what is refused is refused before any charge.
    - Weights multiply what a row adds, as numbers in [0, 1]: no weight raises what a row may change.
    - With `groups` all of this holds for all rows of one label together: their weights are scaled down to add up to 1
      at most, so that a group counts as an average of its rows.

    Proofs are in `skdp.cluster.noisy_tree.release_moments`, `skdp.cluster.noisy_tree.grow` and
    `skdp.cluster.noisy_tree.step_sensitivity`, of the composition in `skdp.cluster.kmeans.Clustering`.

    **Many columns.** Moments are a matrix of columns by columns, and each node of the tree has one: of some hundred
    columns they are small, and of some thousand they take gigabytes, whether rows are sparse or not.

    **Post-processing.** Where fewer leaves stand out of the noise than there are clusters, the others start at points
    drawn from a normal distribution of the noisy moments. A center moves by less where its noise is large.

    References
    ----------
    Su, Cao, Li, Bertino & Jin (2016), "Differentially private k-means clustering"; Chang & Kamath (2021), "Practical
    differentially private clustering", for the tree. Cuts along the private covariance are not from there.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.cluster import DPKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-0.5, 0.5], 5000)[:, None] + rng.normal(0.0, 0.05, (5000, 2))
    >>> model = DPKMeans(2, bounds=(-1, 1), epsilon=1.0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1).tolist()
    [-0.5, 0.5]
    >>> bool(model.epsilon_ <= 1.0), model.predict([[-0.4, -0.6], [0.6, 0.5]]).shape
    (True, (2,))
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
        """Find centers of clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Private rows. Sparse ones need public bounds; some thousand of them at a time are made dense.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Private, nonnegative weights, which are divided by `weight_bound` and cut at it. The result, a number in
            [0, 1], multiplies what a row adds to counts and sums. A row of weight 0 is a null row.
        groups : array-like of shape (n_samples,), str or None, default=None
            Private label of the unit of each row, such as a person or a household, or the name of a column of `X`,
            which is no feature then. The guarantee is then for all rows of one label together, else for one row.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            A parameter or the input is invalid. Nothing was charged.
        BudgetExceededError
            The budget of the accountant does not admit the fit. Nothing was charged.
        """
        fit = begin(self, X, groups)
        model, weight_reader = fit.model, WeightReader.of(fit.model.weight_bound)
        clustering = model._clustering()
        missing = BoughtBounds(bounds_of_columns(model.bounds, fit.n_features), model.adjacency)
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
        missing = BoughtBounds(bounds_of_any_width(self.bounds), self.adjacency)
        return StepPlan(missing.event_beside(self._clustering().event_at), {})

    def _clustering(self) -> Clustering:
        k = check_count("n_clusters", self.n_clusters, remedy="choose a whole number above 0, such as 8")
        steps = check_count("max_iter", self.max_iter, remedy="choose a whole number above 0, such as 5")
        return Clustering(k, steps, self.adjacency)

    def __step_traits__(self) -> StepTraits:
        return replace(super().__step_traits__(), sets_width=True)

    # --- new rows ---

    @silent_arithmetic
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the cluster that is nearest to each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. Values beyond the bounds are moved to them, as in ``fit``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Numbers of the clusters, as rows of `cluster_centers_`. They are as private as the rows.
        """
        return noisy_tree.nearest(self._checked(X), self._fitted_centers).astype(np.int32)

    @silent_arithmetic
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the distances of rows to the centers, of columns scaled to [-1, 1].

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. Values beyond the bounds are moved to them, as in ``fit``.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_clusters)
            Distances.
        """
        return np.sqrt(noisy_tree.squared_distances(self._checked(X), self._fitted_centers))

    @silent_arithmetic
    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the opposite of the sum of squared distances to the nearest centers, of columns scaled to [-1, 1].

        This is an exact figure of the rows, which is as private as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows.

        Returns
        -------
        score : float
            Opposite of the cost.
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
            "bounds=None and X is sparse: bounds of sparse rows cannot be estimated, so give public ones, or pass "
            "X.toarray()."
        )
    return rows


def _find(fit: Fit, missing: BoughtBounds, clustering: Clustering, rows: Any, weights: Any) -> tuple[Cube, Clusters]:
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
