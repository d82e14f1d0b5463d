"""DPKMeans: what one row can move, what is made of the releases, and its place among scikit-learn's tools."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from rejections import assert_rejected
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, recording, replay
from sklearn.cluster import KMeans

from skdp import DPKMeans
from skdp.accounting import GaussianDpEvent, get_epsilon
from skdp.cluster import noisy_tree
from skdp.cluster.kmeans import Clustering
from skdp.cluster.noisy_tree import (
    NoisyVector,
    RowMoments,
    SharedNoise,
    WeightedRows,
    nearest,
    squared_distances,
    within,
)
from skdp.mechanisms.streams import SecretStream

ADJACENCIES = ["zero_out", "add_remove", "replace_one"]
CENTERS = np.array([[-5.0, 20.0], [5.0, 20.0], [0.0, 80.0]])
BOUNDS = [(-10.0, 10.0), (0.0, 100.0)]


def clusters(*, adjacency=None, **parameters):
    given = {"n_clusters": 3, "bounds": BOUNDS, "random_state": 0, "delta": 1e-5}
    return DPKMeans(**{**given, **parameters}, adjacency=with_n_public(adjacency, 10000))


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    return CENTERS[rng.integers(0, 3, n)] + rng.normal(size=(n, 2)) * [0.4, 2.0]


def by_first(centers):
    return centers[np.lexsort(centers.T[::-1].round(0))]


@pytest.fixture(scope="module")
def fitted():
    return clusters(random_state=None).fit(draw(5000))


# --- one row ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else(adjacency):
    X = draw(300)
    X[7] = [10.0, 100.0]
    if adjacency == "replace_one":
        other = X.copy()
        other[7] = [-10.0, 0.0]
    else:
        other = np.delete(X, 7, axis=0)
    # so little noise that the tree has several levels of leaves
    model = clusters(adjacency=adjacency, epsilon=None, noise_multiplier=0.02)
    one, again = replay(model.fit, X, other)
    assert len(one.releases) > 8
    assert 0.0 < max(moves(one, again)) <= (2.0 if adjacency == "replace_one" else 1.0) + 1e-9
    assert_all_else_is_equal(one, again)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_exceeds_the_sensitivity_of_a_step_and_the_worst_reaches_it(adjacency):
    rng = np.random.default_rng(0)
    radius, centers = 0.5, np.array([[-0.6, 0.0], [0.6, 0.0]])
    corners = np.array([[-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [0.6, 0.5], [0.6, -0.5], [0.6, 0.0]])
    rows = np.concatenate([corners, rng.uniform(-1, 1, (40, 2))])
    parts = noisy_tree.step_parts(adjacency)
    added = [
        noisy_tree.sum_rows(noisy_tree.WeightedRows(row[None], np.array([weight])), centers, radius, parts)
        for row in rows
        for weight in (1.0, 0.4, 0.0)
    ]
    stated = noisy_tree.step_sensitivity(adjacency)
    assert sum(parts) == pytest.approx(1.0)
    if adjacency == "replace_one":
        assert largest_exchange(added) == pytest.approx(stated, rel=1e-12)
        of_one, of_other = ([each for each in added if (each[:2] > 0.0)[number]] for number in (0, 1))
        assert largest_exchange(of_other) == pytest.approx(stated, rel=1e-12)  # opposite offsets from one center
        between = max(np.linalg.norm(one - other) for one in of_one for other in of_other) / 2
        assert between == pytest.approx(stated, rel=1e-12)
    else:
        assert max(map(np.linalg.norm, added)) == pytest.approx(stated, rel=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_exceeds_the_sensitivity_of_leaves_and_the_worst_reaches_it(adjacency):
    rng = np.random.default_rng(0)
    middle = RowMoments(100.0, np.array([0.2, -0.1]), np.eye(2), 0.01)  # in which clipped offsets are long
    rows = np.concatenate([[[1.0, 1.0], [-1.0, -1.0], [0.2, -0.1]], rng.uniform(-1, 1, (20, 2))])
    added = []
    for row, weight, leaf in itertools.product(rows, (1.0, 0.4, 0.0), (-1, 0, 1)):
        with recording([]) as seen:
            one = WeightedRows(row[None], np.array([weight]))
            found = NoisyVector(np.array([50.0, 60.0]), 3.0)
            noise = SharedNoise(5.0, SecretStream.from_random_state(0, "test"))
            given = one, np.array([leaf]), found, middle, adjacency, noise
            noisy_tree._release_leaves(*given, 0.3)
        added.append(seen[0].exact)
    moved = largest_exchange(added) if adjacency == "replace_one" else max(map(np.linalg.norm, added))
    assert moved == pytest.approx(seen[0].sensitivity, rel=1e-12)
    assert sum(noisy_tree.leaf_parts(adjacency, 2)) == pytest.approx(1.0)


def largest_exchange(added):
    """Half of the largest change by a row that takes the place of another."""
    return max(np.linalg.norm(one - other) for one in added for other in added) / 2


@pytest.mark.parametrize("length", [0.0, 1e-300, 1.0, 3.0, 1e150])
def test_no_offset_is_longer_than_one(length):
    offsets = np.random.default_rng(0).normal(size=(2000, 7))
    offsets *= length / np.linalg.norm(offsets, axis=1, keepdims=True)
    inside, squares = within(offsets, 1.0)
    exact = [math.fsum(x * x for x in row) for row in inside.tolist()]
    assert max(exact) <= 1.0
    assert squares.max() <= 1.0
    np.testing.assert_allclose(squares, exact, rtol=1e-12)


def test_a_row_is_assigned_alone():
    rng = np.random.default_rng(0)
    values, centers = rng.uniform(-1, 1, (3000, 5)), rng.uniform(-1, 1, (4, 5))
    whole = squared_distances(values, centers)
    np.testing.assert_array_equal(whole[1234:], squared_distances(values[1234:], centers))
    np.testing.assert_array_equal(nearest(values, centers), whole.argmin(axis=1))


@pytest.mark.parametrize("k", [1, 3, 64])
def test_the_event_is_worth_one_release(k):
    event = Clustering(k, 7, "zero_out").event_at(3.0)
    assert get_epsilon(event, 1e-5) == pytest.approx(get_epsilon(GaussianDpEvent(3.0), 1e-5), rel=1e-9)


def test_releases_are_no_more_than_the_event_has():
    for noise in (0.01, 50.0):
        with recording([]) as seen:
            clusters(epsilon=None, noise_multiplier=noise).fit(draw(400))
        assert len(seen) <= 1 + 8 + 1 + 5
        assert len({each.noisy.tobytes() for each in seen}) == len(seen)


# --- sparse rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_give_what_the_same_rows_give_as_an_array(dtype):
    rng = np.random.default_rng(0)
    X = (rng.integers(-3, 12, (5000, 6)) * (rng.random((5000, 6)) < 0.3)).astype(dtype)  # some are beyond the bounds
    given = {"bounds": [(-1, 9), *[(0, 10)] * 5], "weight_bound": 1.0, "epsilon": 8.0}
    weights = rng.random(5000)
    dense, sparse = (clusters(**given).fit(rows, sample_weight=weights) for rows in (X, sp.csr_matrix(X)))
    for name in ("cluster_centers_", "counts_", "inertia_"):
        np.testing.assert_array_equal(getattr(sparse, name), getattr(dense, name))
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        np.testing.assert_array_equal(sparse.transform(kind(X)), dense.transform(X))
        np.testing.assert_array_equal(dense.predict(kind(X)), dense.predict(X))
        assert dense.score(kind(X)) == dense.score(X)


def test_sparse_rows_are_never_a_table_of_numbers():
    X = sp.random(60_000, 100, 0.01, format="csr", random_state=0)
    tracemalloc.start()
    clusters(n_clusters=2, bounds=(0, 1), max_iter=1).fit(X).predict(X)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.75 * 8 * math.prod(X.shape)  # 48 MB as an array, which has to be scaled beside


# --- what is learned --------------------------------------------------------------------------------------------------


def test_centers_are_found_in_the_units_of_the_rows(fitted):
    np.testing.assert_allclose(by_first(fitted.cluster_centers_), by_first(CENTERS), atol=1.0)
    assert fitted.counts_.sum() == pytest.approx(5000, abs=500)
    assert fitted.epsilon_ <= 1.0
    assert -fitted.score(draw(5000)) == pytest.approx(fitted.inertia_, rel=0.5)
    assert not hasattr(fitted, "labels_")
    assert not hasattr(fitted, "fit_predict")
    assert not hasattr(fitted, "fit_transform")


def test_without_noise_it_costs_what_scikit_learns_costs():
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    model = clusters(n_clusters=4, bounds=(-1, 1), epsilon=None, noise_multiplier=0.05, max_iter=20).fit(X)
    best = KMeans(4, n_init=3, random_state=0).fit(X)
    assert -model.score(X) <= 1.03 * best.inertia_
    assert model.inertia_ == pytest.approx(-model.score(X), rel=0.02)


def test_estimated_bounds_hold_the_rows():
    model = clusters(bounds=None).fit(draw(5000))
    np.testing.assert_allclose(by_first(model.cluster_centers_), by_first(CENTERS), atol=1.5)
    assert model.epsilon_ <= 1.0
    mixed = clusters(bounds=[BOUNDS[0], None]).fit(draw(5000))
    assert mixed.bounds_[0].tolist() == list(BOUNDS[0])


def test_predictions_and_distances_agree(fitted):
    X = draw(50, seed=1)
    labels, distances = fitted.predict(X), fitted.transform(X)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))
    scale = np.array([10.0, 50.0])
    plain = np.linalg.norm((X[:, None] - fitted.cluster_centers_) / scale, axis=2)
    np.testing.assert_allclose(distances, plain, atol=1e-9)
    np.testing.assert_allclose(fitted.score(X), -(plain.min(axis=1) ** 2).sum())
    np.testing.assert_array_equal(fitted.predict(X * [1e300, 1]), fitted.predict(np.clip(X * [1e300, 1], -10, 1e3)))
    assert fitted.get_feature_names_out().tolist() == ["dpkmeans0", "dpkmeans1", "dpkmeans2"]


@pytest.mark.parametrize(("n", "d", "k"), [(3, 1, 5), (5, 30, 3), (60, 2, 1)])
def test_more_noise_than_rows_still_gives_centers_between_the_bounds(n, d, k):
    X = np.random.default_rng(0).uniform(-1, 1, (n, d))
    for seed in range(2):
        model = DPKMeans(k, bounds=(-1, 1), epsilon=0.01, delta=1e-9, random_state=seed).fit(X)
        assert model.cluster_centers_.shape == (k, d)
        assert (np.abs(model.cluster_centers_) <= 1).all()
        assert (model.counts_ >= 1).all()
        assert math.isfinite(model.inertia_)


def test_weights_and_units_decide_where_centers_are():
    X = np.repeat([[-5.0, 20.0], [5.0, 80.0]], 1000, axis=0)
    weights = np.repeat([1.0, 0.0], 1000)
    one = clusters(n_clusters=1, epsilon=5.0, weight_bound=1.0).fit(X, sample_weight=weights)
    np.testing.assert_allclose(one.cluster_centers_[0], [-5.0, 20.0], atol=1.0)
    labels = np.concatenate([np.arange(1000), 1000 + np.arange(1000) // 10])  # a unit counts as one, not as ten
    of_groups = clusters(n_clusters=2, epsilon=5.0).fit(X, groups=labels)
    assert of_groups.privacy_unit_ == "group"
    np.testing.assert_allclose(np.sort(of_groups.counts_), [100, 1000], atol=50)


# --- among scikit-learn's tools ---------------------------------------------------------------------------------------


# --- bad input --------------------------------------------------------------------------------------------------------

X_GOOD = draw(40)


def changed(value):
    X = X_GOOD.copy()
    X[7, 1] = value
    return X


BAD_INPUT = [
    ({"n_clusters": 2.5}, {}, ["`n_clusters` must be a positive integer", "got 2.5"]),
    ({"max_iter": 0}, {}, ["`max_iter` must be a positive integer", "got 0"]),
    ({"bounds": (1, 1)}, {}, ["`bounds` must", "low < high", "got (1, 1)"]),
    ({"bounds": [(0, 1)] * 3}, {}, ["`bounds` has 3 entries, but X has 2 columns"]),
    ({}, {"X": changed(math.inf)}, ["X contains infinity"]),
    (
        {"bounds": None},
        {"X": sp.csr_matrix(X_GOOD)},
        ["`bounds` must be set", "sparse", "public bounds", "X.toarray()"],
    ),
    ({}, {"X": sp.csr_matrix(changed(math.nan))}, ["X contains NaN"]),
]


def test_weights_of_a_score_are_checked(fitted):
    with pytest.raises(ValueError, match=r"^`sample_weight` must have shape \(40,\), one weight per row of X, got "):
        fitted.score(X_GOOD, sample_weight=[1.0])
    assert fitted.score(X_GOOD, sample_weight=np.full(40, 2.0)) == pytest.approx(2.0 * fitted.score(X_GOOD))


@pytest.mark.parametrize(("parameters", "given", "words"), BAD_INPUT, ids=str)
def test_bad_input_is_rejected_in_one_line_before_any_charge(parameters, given, words):
    assert_rejected(clusters, parameters, {"X": X_GOOD, **given}, words, [str(X_GOOD[7, 1])])


def test_fit_does_not_depend_on_error_state_of_numpy():
    # The square of the tiny weight of a group underflows after the charge.
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    weights, groups = np.r_[1e-200, 1e-200, np.ones(58)], np.arange(60) // 2
    with np.errstate(all="raise"):
        model = DPKMeans(2, bounds=(-1, 1), weight_bound=1.0).fit(X, sample_weight=weights, groups=groups)
    assert model.cluster_centers_.shape == (2, 2)
