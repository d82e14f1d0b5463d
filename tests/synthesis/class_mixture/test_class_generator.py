"""Mixtures of normal rows within classes: what one row can move, what is made of the releases, and samples."""

import math

import numpy as np
import pandas as pd
import pytest
import reference
from combinations import over_rows
from rejections import assert_rejected
from relations import with_n_public
from replay import recording

from skdp import AddRemove
from skdp.synthesis import DPClassMixtureGenerator, class_moments
from skdp.synthesis.class_mixture import Box, ClassRows
from skdp.synthesis.class_moments import shares_of

ADJACENCIES = ["zero_out", "add_remove", "replace_one"]
D, CLASSES = 6, ["a", "b", "c"]


def rows_of(n, seed=0, dtype=np.float64):
    """Rows between 0 and 10, and labels, which move the first columns."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    X = rng.normal(3.0, 1.0, (n, D)) + 2.0 * np.eye(3, D)[codes] + rng.normal(size=(n, 1))
    return np.clip(X, 0, 10).astype(dtype), np.array(CLASSES)[codes]


def generator(n_components=2, *, adjacency=None, **parameters):
    given = {"bounds": (0, 10), "classes": CLASSES, "random_state": 0}
    adjacency = with_n_public(adjacency, 500)
    return DPClassMixtureGenerator(n_components, **{**given, **parameters}, adjacency=adjacency)


def precise(n_components=1, **parameters):
    """Almost no noise."""
    given = {"epsilon": None, "noise_multiplier": 1e-3}
    return generator(n_components, **{**given, **parameters})


# --- one row ----------------------------------------------------------------------------------------------------------


def points(m, k, seed=0):
    """Rows of the unit ball: inside, on the sphere, opposite to each other, equal."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(m, k))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    found[::3] *= rng.random((len(found[::3]), 1))
    found[1] = -found[0]
    return found


SUMS = {
    "clusters": (class_moments.ClusterSums(0.5), 1.0, 1.0),
    "clusters with a heavy count": (class_moments.ClusterSums(3.0), 1.0, 1.0),
    "moments": (class_moments.GroupMoments((0.05, 0.15, 0.8)), 1.0, 1.0),
    "moments of no counts": (class_moments.GroupMoments((1e-9, 0.5, 0.5 - 1e-9)), 1.0, 1.0),
}


@over_rows("name", SUMS)
@over_rows("k", [1, 3])
def test_the_worst_row_reaches_the_sensitivity_and_none_exceeds_it(name, k):
    """Of rows of the ball in the same group and in two; pairs on a circle cover all angles."""
    sums = SUMS[name][0]
    angles = np.linspace(0, np.pi, 181)
    circle = np.zeros((len(angles), k))
    circle[:, 0] = np.cos(angles)
    circle[:, -1] += np.sin(angles) if k > 1 else 0.0
    if k == 1:
        circle = np.linspace(-1, 1, 41)[:, None]
    rows = np.concatenate([circle, points(30, k)])
    added = [np.array([sums.vector(x[None], np.array([g]), 2, np.ones(1)) for x in rows]) for g in (0, 1)]
    longest = np.linalg.norm(added[0], axis=1).max()
    stated = sums.sensitivity("zero_out")
    assert sums.sensitivity("add_remove") == stated
    assert stated / class_moments.ROUNDING * (1 - 1e-9) <= longest <= stated
    apart = max(np.linalg.norm(one - each, axis=1).max() for one in added[0] for each in added)
    stated = 2 * sums.sensitivity("replace_one")
    reachable = k > 1 or "no counts" not in name  # the worst two directions are at an angle
    assert (stated / class_moments.ROUNDING * (1 - 1e-3) <= apart or not reachable) and apart <= stated  # noqa: PT018


@over_rows("adjacency", ADJACENCIES)
def test_counts_and_totals_reach_their_sensitivity(adjacency):
    """Corners of the box, and rows of other classes and bins."""
    X, codes = np.array([[0.0] * 4, [10.0] * 4]), np.array([0, 1])
    box = Box.of(np.array([(0.0, 10.0)] * 4))
    one, other = (ClassRows(X[i : i + 1], codes[i : i + 1], box) for i in (0, 1))
    center = np.array([-0.5] * 4)
    found = [(class_moments.total(rows), class_moments.counts(rows, 2, center)) for rows in (one, other)]
    exchange = adjacency == "replace_one"
    moved = [np.linalg.norm(found[0][i] - exchange * found[1][i]) / (2 if exchange else 1) for i in (0, 1)]
    of_total = class_moments.sensitivity_of_total(4, adjacency, with_weights=False)
    assert moved == pytest.approx([of_total, class_moments.sensitivity_of_counts(adjacency)])
    weighed = [class_moments.total(ClassRows(each.X, each.codes, box, np.ones(1))) for each in (one, other)]
    of_total = class_moments.sensitivity_of_total(4, adjacency, with_weights=True)
    assert np.linalg.norm(weighed[0] - exchange * weighed[1]) / (2 if exchange else 1) == pytest.approx(of_total)
    assert max(np.linalg.norm(each) for each in weighed) <= (2 if exchange else 1) * of_total * (1 + 1e-12)
    sums = [class_moments.class_sums(rows, 2, np.zeros(4), 0.5) for rows in (one, other)]
    assert 0.999 < np.linalg.norm(sums[0]) <= class_moments.SENSITIVITY_OF_MEANS
    assert np.linalg.norm(sums[0] - sums[1]) / 2 <= class_moments.SENSITIVITY_OF_MEANS


@over_rows("dtype", [np.float32, np.float64])
def test_what_is_made_of_a_row_depends_on_no_other(dtype):
    """Not a bit of norms, coordinates and groups changes where rows are removed, repeated or moved."""
    rng = np.random.default_rng(0)
    X, codes = rng.uniform(0, 10, (5000, 37)).astype(dtype), rng.integers(0, 3, 5000)
    box, centers = Box.of(np.array([(0.0, 10.0)] * 37)), rng.uniform(-0.2, 0.2, (3, 37))
    directions = np.linalg.qr(rng.normal(size=(37, 11)))[0].T
    seeds = rng.normal(size=(3, 4, 11)) / 9
    kept = rng.permutation(5000)[:3001]
    found = []
    for order in (np.arange(5000), kept):
        rows = ClassRows(X[order], codes[order], box)
        norms = np.concatenate([each for _, each in rows.norms(centers)])
        coordinates = class_moments.projected(rows, centers, directions, 0.8)
        found.append((norms, coordinates, class_moments.nearest(coordinates, codes[order], seeds)))
    for whole, part in zip(*found, strict=True):
        np.testing.assert_array_equal(whole[kept], part)


# --- the plain reading ------------------------------------------------------------------------------------------------


WEIGHTS = np.random.default_rng(1).uniform(0, 300, 200)


@over_rows(
    "n_components, with_labels, weights", [(1, False, None), (2, True, None), (1, True, WEIGHTS), (2, False, WEIGHTS)]
)
def test_the_releases_are_those_of_the_plain_reading(released, n_components, with_labels, weights):
    """Each of them given the outputs of those before it."""
    X, y = rows_of(200)
    X[3] = 1e9
    released.clear()
    model = generator(n_components, epsilon=50.0, weight_bound=200.0)
    with recording([]) as seen:
        model.fit(X, y if with_labels else None, sample_weight=weights)
    n_classes = 3 if with_labels else 1
    codes = np.searchsorted(CLASSES, y) if with_labels else np.zeros(200, int)
    noisy = [each.noisy for each in seen]
    deviations = [mechanism.standard_deviation for _, mechanism in released]
    plain = reference.class_mixture_releases(
        X, codes, n_classes, n_components, (0, 10), model.mixture_.directions.astype(float), noisy, deviations, 200,
        None if weights is None else np.minimum(weights / 200, 1)
    )  # fmt: skip
    for (value, _), expected in zip(released, plain, strict=False):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
    assert len(plain) >= 4


# --- post-processing --------------------------------------------------------------------------------------------------


@over_rows("n_components", [1, 3])
def test_without_noise_samples_have_the_moments_of_the_rows(n_components):
    X, y = rows_of(20_000)
    made, labels = precise(n_components).fit(X, y).sample(20_000, random_state=0)
    assert made.dtype == np.float64
    for name in CLASSES:
        assert abs((labels == name).mean() - (y == name).mean()) < 0.02
        np.testing.assert_allclose(made[labels == name].mean(axis=0), X[y == name].mean(axis=0), atol=0.1)
        np.testing.assert_allclose(np.cov(made[labels == name].T), np.cov(X[y == name].T), atol=0.35)


def test_clipped_columns_keep_mean_and_variance():
    """Half of the rows lie at a bound: normal rows of these moments, clipped, would have others."""
    rng = np.random.default_rng(0)
    X = np.clip(rng.normal(0.0, 3.0, (20_000, 5)), 0, 10)
    made = precise().fit(X).sample(20_000, random_state=0)
    np.testing.assert_allclose(made.mean(axis=0), X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(made.std(axis=0), X.std(axis=0), atol=0.2)
    assert (made == 0).mean() > 0.3


# --- samples ----------------------------------------------------------------------------------------------------------


@over_rows("dtype", [np.float32, np.float64, np.uint8])
def test_samples_lie_within_the_bounds_and_have_the_type_of_the_rows(dtype):
    bounds = [(0.1, 0.3), (-1e6, 7.7), (0, 255), (5, 5.5)]
    X = np.random.default_rng(0).integers(0, 255, (300, 4)).astype(dtype)
    made = DPClassMixtureGenerator(bounds=bounds, random_state=0).fit(X).sample(5000, random_state=0)
    assert made.dtype == (np.float64 if dtype == np.float64 else np.float32)
    low, high = np.transpose(bounds)
    assert (made >= low).all()
    assert (made <= high).all()
    assert np.isfinite(made).all()


# --- unusual rows -----------------------------------------------------------------------------------------------------


@over_rows("n_components", [1, 4])
def test_classes_without_rows_and_rows_that_are_all_alike(n_components):
    X, y = rows_of(300)
    model = generator(n_components).fit(X, np.full(300, "b"))
    assert np.isfinite(model.sample(100)[0]).all()
    model = generator(n_components, classes=range(20)).fit(X, np.zeros(300, int))
    assert np.isfinite(model.sample(100)[0]).all()
    model = generator(n_components, epsilon=100.0).fit(np.full((300, 2), 4.0), y)
    assert np.isfinite(model.sample(100)[0]).all()
    model = generator(n_components).fit(X[:3, :1], y[:3])
    assert np.isfinite(model.sample(100)[0]).all()


def test_bounds_between_which_float32_has_no_number():
    low, high = bounds = 1.00000001, 1.00000002
    X = np.ones((50, 2), np.float32)
    made = generator(bounds=bounds, classes=None).fit(X).sample(20, random_state=0)
    assert made.dtype == np.float64
    assert low <= made.min() <= made.max() <= high


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD, _ = rows_of(40)
BAD_INPUT = [
    ({"bounds": None}, {}, ["`bounds` must be", "(low, high)"]),
    ({"bounds": [(0, 1)]}, {}, ["`bounds` has 1 entries, but X has 6 columns"]),
    ({"n_components": 0}, {}, ["`n_components` must be"]),
    (
        {"classes": range(501)},
        {"y": np.zeros(40, int)},
        ["`X` must have at least one row per class (501)", "`X` must have at least one row per class (501)"],
    ),
    ({}, {"X": GOOD[:1]}, ["1 sample", "2 rows"]),
    ({}, {"X": pd.DataFrame({"x": ["secret", "1"] * 20})}, ["column 'x'"]),
]


@over_rows("parameters, given, words", BAD_INPUT)
def test_bad_input_is_rejected_in_one_line_before_any_charge(parameters, given, words):
    assert_rejected(generator, parameters, {"X": GOOD, **given}, words, ["secret"])


def test_groups_are_counted_and_not_their_rows():
    """A group of many rows is one, so that two groups are too few for three classes."""
    X, y = rows_of(40)
    one = generator()
    for groups, said in (
        (np.zeros(40), "X has 1 group"),
        (np.arange(40) % 2, r"one row per class \(3\), got 2 groups"),
    ):
        with pytest.raises(ValueError, match=said):
            one.fit(X, y, groups=groups)
    assert one.fit(X, y, groups=np.arange(40) % 3).n_samples_ == 3


def test_samples_are_those_of_the_weighted_rows():
    """Rows of weight 0 are not there, and the others weigh alike: the mixture is that of the others alone."""
    X, y = rows_of(4000)
    kept = X[:, 3] > 3.0
    model = precise(3, weight_bound=50.0).fit(X, y, sample_weight=50.0 * kept)
    alone = precise(3).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.class_count_ / 50.0, alone.class_count_, atol=0.5)
    made, labels = model.sample(20_000, random_state=0)
    for name in CLASSES:
        truth, found = X[kept & (y == name)], made[labels == name]
        np.testing.assert_allclose(found.mean(axis=0), truth.mean(axis=0), atol=0.1)
        np.testing.assert_allclose(found.std(axis=0), truth.std(axis=0), atol=0.1)


def test_a_group_counts_as_an_average_of_its_rows():
    """One person with half of all rows moves the mean by no more than anyone else does."""
    X, _ = rows_of(4000)
    X[2000:] = 9.0
    groups = np.append(np.arange(2000), np.full(2000, 2000))
    made = precise(classes=None).fit(X, groups=groups).sample(20_000, random_state=0)
    np.testing.assert_allclose(made.mean(axis=0), X[:2000].mean(axis=0), atol=0.1)


# --- the charge, and what is published --------------------------------------------------------------------------------


def test_rules_are_public():
    """The same shape and public number of rows decide the same; the data have no say."""
    X, y = rows_of(60)
    few = generator("auto", epsilon=1.0).fit(X, y)
    many = generator("auto", epsilon=1.0, adjacency=AddRemove(10**7)).fit(X, y)
    assert (few.n_components_, many.n_components_) == (1, 10)
    some = generator("auto", epsilon=None, noise_multiplier=2.0, adjacency=AddRemove(27_000)).fit(X, y)
    assert some.n_components_ == 3  # 27,000 / (2 * 3 * 1,500)
    assert few.n_directions_ == many.n_directions_ == D
    wide = np.random.default_rng(0).uniform(0, 10, (60, 300))
    assert generator().fit(wide).n_directions_ == 100
    for n_components in (1, 2, 7):
        assert sum(shares_of(n_components)) == pytest.approx(1.0)
        assert min(shares_of(n_components)) > 0


@pytest.mark.parametrize("shares", ["estimate", "uniform", [0.7, 0.2, 0.1], (0, 1, 0)])
def test_labels_are_drawn_by_noisy_or_public_shares(shares):
    X, y = rows_of(3000)
    model = generator(class_prevalences=shares).fit(X, y)
    estimated = model.class_count_ / model.class_count_.sum()
    expected = {"estimate": estimated, "uniform": [1 / 3] * 3}.get(str(shares), shares)
    _, made = model.sample(20_000, random_state=0)
    found = [(made == name).mean() for name in CLASSES]
    assert np.abs(np.subtract(found, expected)).max() < 5 * math.sqrt(0.25 / 20_000)  # false alarm below 1e-6
    if shares == "estimate":
        assert not np.isclose(model.class_count_, [(y == name).sum() for name in CLASSES], atol=1e-6).any()
