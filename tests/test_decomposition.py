"""DPPCA: what one row can move, what the noise is, what is learnt, and how it lives among scikit-learn's tools."""

import math
import tracemalloc
import warnings

import numpy as np
import pytest
import reference
from combinations import combined
from relations import with_n_public
from replay import recording
from scipy import stats
from scipy.linalg import eigh
from sklearn.decomposition import PCA

from skdp import DPPCA, AddRemove, PrivacyAccountant
from skdp.accounting import GaussianDpEvent
from skdp.decomposition import MEAN_SHARE, WEIGHED_ENTRY
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms import second_moments as _spectrum
from skdp.mechanisms.second_moments import BLOCK_ROWS, MomentSum, UnitBall, about_mean, mean_weight, sensitivity

FALSE_ALARM = 1e-6
ADJACENCIES = ["zero_out", "add_remove", "replace_one"]


def pca(n_components=None, *, adjacency=None, **parameters):
    return DPPCA(n_components, **{"random_state": 0, **parameters}, adjacency=with_n_public(adjacency, 10_000))


@pytest.fixture(scope="module")
def table():
    """20,000 rows of norm below 1 about a mean: five strong directions, ten weak ones."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((15, 15)))[0]
    spread = np.concatenate([np.linspace(0.3, 0.15, 5), np.full(10, 0.01)])
    return np.clip(rng.standard_normal((20_000, 15)), -3, 3) * spread @ basis.T / 2 + 0.05


# --- one row ----------------------------------------------------------------------------------------------------------


def neighbor(X, row, adjacency, center):
    """D' beside D: the row void (which is where nothing is added), gone, or exchanged for its opposite."""
    other = X.copy()
    if adjacency == "add_remove":
        return np.delete(other, row, axis=0)
    middle = np.asarray(center) if isinstance(center, list) else np.zeros(X.shape[1])
    exchanged = middle - 1e3 * np.roll(np.clip(X[row] - middle, -1e3, 1e3), 1)
    other[row] = middle if adjacency == "zero_out" else exchanged
    return other


NOISY = {
    "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_", "noise_variance_"
}  # fmt: skip


def worst_pair(adjacency, weight):
    """Two rows of the unit ball, of which the proof says that no others are as far apart; None is no row."""
    if adjacency != "replace_one":
        return np.array([0.6, 0.8, 0.0, 0.0]), None
    t = -(weight**2) / 2.0
    return np.array([1.0, 0.0, 0.0, 0.0]), np.array([t, math.sqrt(1.0 - t**2), 0.0, 0.0])


@combined(adjacency=ADJACENCIES, center=[False, "private"], radius=[1.0, 40.0, 1e-12])
def test_worst_row_reaches_the_sensitivity(released, adjacency, center, radius):
    """A bound that is not reached would be a bound that is too large, or one for something else."""
    weight = mean_weight(MEAN_SHARE) if center else 0.0
    one, other = worst_pair(adjacency, weight)
    X = np.zeros((30, 4))
    for row in (one, other):
        X[3] = 0.0 if row is None else radius * row
        pca(center=center, adjacency=adjacency, data_norm=radius).fit(X)
    (first, mechanism), (second, _) = released
    factor = 2.0 if adjacency == "replace_one" else 1.0
    assert np.linalg.norm(first - second) == pytest.approx(factor * mechanism.sensitivity, rel=1e-9)


@pytest.mark.parametrize("weight", [0.0, 0.1, mean_weight(MEAN_SHARE), 1.0, math.sqrt(2.0)])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_pair_is_further_apart_than_the_sensitivity_says(weight, adjacency):
    rng = np.random.default_rng(1)
    bound = sensitivity(weight, adjacency) * (2.0 if adjacency == "replace_one" else 1.0)
    worst = 0.0
    for _ in range(3000):
        x, y = (v / max(1.0, np.linalg.norm(v)) for v in rng.standard_normal((2, 2)) * rng.choice([0.5, 3.0], (2, 1)))
        move = reference.moment_vector(x, weight)
        if adjacency == "replace_one":
            move = move - reference.moment_vector(y, weight)
        worst = max(worst, np.linalg.norm(move))
    assert 0.98 * bound < worst <= bound * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_block_of_equal_rows_in_single_precision(released, adjacency):
    """Rounding errors of a block all point the same way here; they too stay within the sensitivity."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        released.clear()
        X = np.tile(rng.uniform(0.5, 1.0, 7), (BLOCK_ROWS, 1)).astype(np.float32)
        for rows in (X, neighbor(X, 100, adjacency, False)):
            pca(adjacency=adjacency, normalize=True).fit(rows)
        (one, mechanism), (other, _) = released
        factor = 2.0 if adjacency == "replace_one" else 1.0
        assert np.linalg.norm(one - other) <= factor * mechanism.sensitivity


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 7, 64])
def test_rounding_of_a_block_is_within_what_is_declared(dtype, d):
    """Equal rows, for which the bound is meant: the error of half of it belongs to either of two neighbors."""
    b = BLOCK_ROWS
    X = np.tile(np.random.default_rng(3).uniform(0.1, 1.0, d), (b, 1)).astype(dtype)
    sums = MomentSum(UnitBall(np.zeros(d), 0.0), 0.3, by_position=True)
    sums.add(X)
    unit = X[0].copy()[None]
    sums.ball.bring_in(unit, unit)
    exact = b * reference.moment_vector(unit[0].astype(np.float64), 0.3)
    allowed = (sums.rounding - 1.0) / 2.0 * sensitivity(0.3, "zero_out")
    assert np.linalg.norm(sums.vector * sums.rounding - exact) <= allowed + 1e-12 * b
    assert sums.rounding < (1.002 if dtype is np.float32 else 1 + 1e-9)


def test_rows_that_shift_are_summed_in_double_precision(released):
    """Under add_remove all rows behind the one that leaves are rounded in other company (Casacuberta et al. 2022).

    With the first row, the small squares of each block are added to 64.5 and lost; without it to 63.5, and rounded up.
    Products in float32 move by 2 here, twice the sensitivity.
    """
    assert BLOCK_ROWS == 128  # as many as are made here
    block = np.sqrt(np.concatenate([np.full(63, 1.0), [0.5], np.full(63, 1.3 * 2.0**-19), [1.0]]))
    X = np.zeros((1 + 12_288 * BLOCK_ROWS, 2), np.float32)
    X[:, 0] = np.append(1.0, np.tile(block, 12_288))
    for rows in (X, X[1:]):
        pca(adjacency="add_remove", center=False, data_norm=1.0).fit(rows)
    (one, mechanism), (other, _) = released
    assert np.linalg.norm(one - other) <= mechanism.sensitivity * (1 + 1e-9)


@combined(dtype=[np.float32, np.float64], radius=[0.0, 1e-30, 1.0, 1e30], d=[1, 130])
def test_rows_of_any_length_end_in_the_ball(dtype, radius, d):
    """Property 6."""
    top = np.finfo(dtype).max
    sizes = [0.0, np.finfo(dtype).smallest_subnormal, 1e-40, 1e-30, 1e-20, 1.0, 1e20, 1e30, top / 4, top]
    rows = np.array([size * np.linspace(1.0, 0.25, d) for size in sizes], dtype)
    brought = np.empty_like(rows)
    UnitBall(np.zeros(d), radius).bring_in(rows, brought)
    norms = [math.hypot(*row) for row in brought.astype(float)]
    assert max(norms) <= 1 + 4 * np.finfo(dtype).eps
    known = np.array([dtype is np.float32 or size == 0.0 or size >= 1e-300 for size in sizes])  # to the plain reading
    expected = np.array([reference.in_ball(row, 0.0, radius) for row in rows[known]])
    np.testing.assert_allclose(brought[known], expected, rtol=8 * np.finfo(dtype).eps, atol=2 * np.finfo(dtype).tiny)
    if radius == 0.0:
        assert norms[0] == 0.0
        assert norms[1:6] == pytest.approx(np.ones(5), rel=1e-6)


@combined(dtype=[np.float32, np.float64, np.uint8], weight=[0.0, 0.25], by_position=[True, False], n=[1, 512, 1029])
def test_sums_are_those_of_the_plain_reading(dtype, weight, by_position, n):
    X = (40 * np.random.default_rng(n).random((n, 5))).astype(dtype)
    center = np.arange(5.0)
    sums = MomentSum(UnitBall(center, 30.0), weight, by_position=by_position)
    sums.add(X)
    plain = reference.gram_release(X, center, 30.0, weight, np.zeros(15 + 5 * bool(weight)))
    single = by_position and dtype is not np.float64
    np.testing.assert_allclose(sums.vector * sums.rounding, plain, rtol=3e-5 if single else 1e-11, atol=1e-9 * n)
    gram, total = sums.read(sums.vector)
    units = np.array([reference.in_ball(x, center, 30.0) for x in X])
    np.testing.assert_allclose(gram, np.tril(units.T @ units), rtol=3e-5 if single else 1e-11, atol=1e-9 * n)
    np.testing.assert_allclose(total, units.sum(axis=0) if weight else np.zeros(5), rtol=3e-5, atol=1e-4)


# --- the noise --------------------------------------------------------------------------------------------------------


@pytest.fixture
def noisy_moments(monkeypatch):
    """The noisy moments of each fit, and the noisy sum of weights."""
    seen, decompose = [], DPPCA._decompose

    def recorded(self, sums):
        seen.append((sums.moments.gram.copy(), sums.moments.total.copy(), sums.total))
        return decompose(self, sums)

    monkeypatch.setattr(DPPCA, "_decompose", recorded)
    return seen


@combined(adjacency=ADJACENCIES, given=["none", "private mean", "weights"], dtype=[np.float32, np.float64])
def test_noise_of_the_moments_is_symmetric_and_as_priced(noisy_moments, adjacency, given, dtype):
    """On zeroed-out records: sigma R**2 on the diagonal and sigma R**2 / sqrt(2) off it, as charged.

    Weights are next to nothing: their sum is one more entry, and the noise of the others is larger by 1 + k**2.
    """
    d, radius, k = 150, 3.0, WEIGHED_ENTRY
    center, weighted = "private" if given == "private mean" else False, given == "weights"
    model = pca(center="private" if weighted else center, adjacency=adjacency, data_norm=radius)
    model.fit(np.zeros((20, d), dtype), sample_weight=np.full(20, 1e-300) if weighted else None)
    ((gram, total, weight),) = noisy_moments
    assert model.privacy_event_ == GaussianDpEvent(model.noise_multiplier_)
    of_mean = mean_weight(MEAN_SHARE) if center else 0.0
    n = 10_000 if adjacency == "add_remove" else 20
    single = dtype is np.float32 and adjacency != "add_remove"
    enlarged = (1.0 + 128 * 131 * 2.0**-24 if single else 1.0) * (1.0 + k**2 if weighted else 1.0)
    mechanism = GaussianMechanism(model.noise_multiplier_, sensitivity(of_mean, adjacency))
    sigma = mechanism.standard_deviation * enlarged
    off = gram[np.tril_indices(d, -1)] / (sigma / math.sqrt(2.0))
    parts = [np.diag(gram) / sigma, off[::2], off[1::2]]
    parts += [total * of_mean / sigma] if center else [total * k * math.sqrt(2.0) / sigma] if weighted else []
    for part in parts:
        square, spread = part @ part / 1.0001, stats.chi2(part.size)
        assert spread.ppf(FALSE_ALARM / 8) < square < spread.isf(FALSE_ALARM / 8)
        assert stats.kstest(part, "norm").pvalue > FALSE_ALARM / 8
    if weighted:
        assert min(sigma / k**2, n) / 1.0001 <= weight < 6.0 * sigma / k**2
    assert model.noise_scale_ == pytest.approx(sigma * radius**2 / (weight if weighted else n), rel=1e-4)
    if given == "none":
        np.testing.assert_array_equal(total, 0.0)


@pytest.mark.parametrize("center", [False, "private"])
def test_weights_give_the_components_of_the_population(center):
    """Half of the rows, of a quarter of the weight each, vary along another axis about another mean.

    A variance has noise of sigma R**2 / 25,000 at most, sigma below 2 at epsilon 8: 5 deviations are below .001. The
    sum of weights is known to 17 sigma / 25,000 = .0014, which the entries of the second moments, up to 1, share.
    """
    rng, n = np.random.default_rng(0), 40_000
    X = 0.05 * rng.normal(size=(n, 3))
    seldom = np.arange(n) % 2 == 1
    X[:, 0] += np.where(seldom, 0.0, rng.uniform(-0.8, 0.8, n))
    X[:, 1] += np.where(seldom, rng.uniform(-0.8, 0.8, n), 0.4)
    weights = np.where(seldom, 50.0, 200.0)
    model = DPPCA(2, center=center, data_norm=1.0, weight_bound=200.0, epsilon=8.0, delta=1e-6, random_state=0)
    model.fit(X, sample_weight=weights)
    rows = X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    mean = np.average(rows, axis=0, weights=weights) if center else np.zeros(3)
    values = np.linalg.eigvalsh((rows - mean).T @ ((rows - mean) * weights[:, None]) / weights.sum())[::-1]
    assert np.abs(model.explained_variance_ - values[:2]).max() < 0.004
    assert np.abs(model.mean_ - mean).max() < 0.004
    plain = DPPCA(2, center=center, data_norm=1.0, epsilon=8.0, delta=1e-6, random_state=0).fit(X)
    assert np.abs(plain.explained_variance_ - values[:2]).max() > 0.02


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_two_weighted_rows_are_further_apart_than_the_sensitivity_says(adjacency, dtype):
    """In the exact vector that is released, over pairs of rows and weights; a row of weight 1 and norm R attains it."""
    corners = np.array([[1e6, 0.0], [-1e6, 0.0], [0.0, 5.0], [0.3, 0.4], [0.0, 0.0]], dtype)
    pairs, vectors = [(x, v) for x in corners for v in (1.0, 0.6, 1e-9)], []
    for x, v in [*pairs, (corners[0], 0.0)]:
        X, weights = np.zeros((3, 2), dtype), np.array([v, 1.0, 1.0])
        X[0] = x
        with recording([]) as seen:
            pca(data_norm=1.0, adjacency=adjacency).fit(X, sample_weight=weights)
        vectors.append(seen[0].exact)
    others = vectors if adjacency == "replace_one" else vectors[-1:]
    allowed = (2.0 if adjacency == "replace_one" else 1.0) * seen[0].sensitivity
    largest = max(np.linalg.norm(one - other) for one in vectors for other in others)
    assert largest <= allowed * (1 + 1e-9)
    assert largest > 0.9 * allowed


def test_the_edge_is_where_random_matrices_end(released):
    """On null records the largest eigenvalue is s sqrt(2 d), up to some d**(-2/3); "auto" keeps one component."""
    model = pca("auto", center=False, data_norm=1.0).fit(np.zeros((20, 400)))
    edge = model.noise_scale_ * math.sqrt(2.0 * 400)
    assert 0.95 < model.explained_variance_[0] / edge < 1.05
    assert model.n_components_ == 1


# --- the charge -------------------------------------------------------------------------------------------------------


def test_the_charge_stands_before_the_first_block():
    accountant, seen = PrivacyAccountant(), []

    def blocks():
        seen.append(accountant.history)
        yield np.ones((50, 3))

    model = DPPCA(2, delta=1e-5, accountant=accountant).fit(blocks())
    ((charge,),) = seen
    assert (charge.event, charge.label, charge.adjacency) == (model.privacy_event_, "DPPCA", "zero_out")


BAD_BLOCKS = {
    "NaN": (
        np.full((5, 3), np.nan),
        r"Chunk 1 of the iterator is invalid .the fit was already charged.: .*contains NaN",
    ),
    "width": (np.ones((5, 4)), r"Chunk 1 of the iterator is invalid .the fit was already charged.: X has 4 features"),
    "no rows": (
        np.ones((0, 3)),
        r"Chunk 1 of the iterator is invalid .the fit was already charged.: Found array with 0 sample",
    ),
}


@pytest.mark.parametrize("bad", BAD_BLOCKS)
def test_a_bad_block_is_rejected_and_the_charge_stands(bad):
    block, message = BAD_BLOCKS[bad]
    accountant = PrivacyAccountant()
    model = DPPCA(2, delta=1e-5, accountant=accountant).fit(np.ones((50, 2)))
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(iter([np.ones((50, 3)), block]))
    assert len(accountant.history) == 2
    assert vars(model) == before


BAD_PARAMETERS = [
    ({"n_components": 0}, "`n_components` must be .*, got 0"),
    ({"n_components": 5}, "`n_components` must be .*, got 5"),
    ({"data_norm": 1.0, "normalize": True}, "data_norm"),
    ({"center": "mean"}, "`center` must be .*, got 'mean'"),
    ({"center": [0.0, 1.0]}, "`center` must .*4"),
]


def test_bad_parameters_are_rejected_in_one_line_before_any_charge(draw):
    accountant, X = PrivacyAccountant(), draw(60)[0]
    for bad, message in BAD_PARAMETERS:
        with pytest.raises(ValueError, match=message) as caught:
            DPPCA(**{"accountant": accountant, **bad}).fit(X)
        assert "\n" not in str(caught.value), bad
    assert accountant.history == ()


def test_clipping_is_not_told(draw):
    """A warning would say that a long row was there."""
    with warnings.catch_warnings(action="error"):
        DPPCA(data_norm=0.1).fit(100 * draw(60)[0])
        DPPCA(normalize=True).fit(np.zeros((60, 3)))


# --- it learns --------------------------------------------------------------------------------------------------------


def captured(components, second_moments):
    return float(np.trace(components @ second_moments @ components.T))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_pca_when_the_budget_is_large(table, dtype):
    model = pca(5, epsilon=100.0, data_norm=1.0).fit(table.astype(dtype))
    peer = PCA(5).fit(table)
    np.testing.assert_allclose(model.mean_, peer.mean_, atol=1e-3)
    np.testing.assert_allclose(np.abs(model.components_ @ peer.components_.T), np.eye(5), atol=0.03)
    np.testing.assert_allclose(model.explained_variance_, peer.explained_variance_, rtol=0.02)
    np.testing.assert_allclose(model.explained_variance_ratio_, peer.explained_variance_ratio_, rtol=0.03)
    np.testing.assert_allclose(model.singular_values_, peer.singular_values_, rtol=0.02)
    assert model.noise_variance_ == pytest.approx(peer.noise_variance_, abs=2 * model.noise_scale_)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(5), atol=1e-12)


def test_without_centering_it_is_about_zero(table):
    model = DPPCA(6, epsilon=100.0, center=False, data_norm=1.0).fit(table)
    moments = table.T @ table / len(table)
    np.testing.assert_array_equal(model.mean_, 0.0)
    np.testing.assert_allclose(model.explained_variance_[:5], np.linalg.eigvalsh(moments)[::-1][:5], rtol=0.02)


def test_a_public_mean_is_subtracted_before_rows_are_clipped(table):
    far = table + 100.0
    model = DPPCA(5, epsilon=100.0, center=np.full(15, 100.05), data_norm=1.0).fit(far)
    peer = PCA(5).fit(table)
    np.testing.assert_array_equal(model.mean_, 100.05)
    assert captured(model.components_, np.cov(table.T)) > 0.999 * captured(peer.components_, np.cov(table.T))


def test_auto_finds_the_directions_that_stand_out(table):
    assert DPPCA("auto", data_norm=1.0, epsilon=1.0, random_state=3).fit(table).n_components_ == 5
    assert DPPCA("auto", data_norm=1.0, epsilon=1e-3, random_state=3).fit(table).n_components_ < 5
    whole = DPPCA("auto", data_norm=1.0, random_state=3).fit(table)
    first = DPPCA(whole.n_components_, data_norm=1.0, random_state=3).fit(table)
    np.testing.assert_allclose(whole.components_, first.components_, atol=1e-9)


def test_shares_never_add_up_to_more_than_one():
    """Where noise rules the trace may even be negative."""
    for seed in range(20):
        model = pca(3, epsilon=0.01, center=False, random_state=seed).fit(np.zeros((50, 8)))
        assert 0.0 <= model.explained_variance_ratio_.sum() <= 1.0 + 1e-12
        assert model.noise_variance_ >= 0.0
        assert np.all(model.explained_variance_ >= 0.0)


# --- forms of rows ----------------------------------------------------------------------------------------------------


def same_model(one, other, atol=1e-9):
    for name in sorted(NOISY):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=atol, err_msg=name)


@pytest.mark.parametrize("center", [False, "private"])
def test_an_iterator_fits_what_an_array_does(table, center):
    whole = pca(3, center=center, delta=1e-5, adjacency="add_remove").fit(table)
    for sizes in ([1, 7, 600, 19_392], [5000] * 4):
        blocks = np.split(table, np.cumsum(sizes)[:-1])
        streamed = DPPCA(3, center=center, random_state=0, adjacency=AddRemove(10_000), delta=1e-5).fit(
            block for block in blocks
        )
        same_model(whole, streamed)
        assert streamed.n_samples_ == 10_000
    assert DPPCA(3, delta=1e-5).fit(iter(blocks)).n_samples_ == 20_000


def test_rows_on_disk_stream_through(tmp_path):
    """Memory for a block and the moments, whatever the number of rows: 13 MB of rows, under 1 MB at the peak."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).random((200_000, 8)))
    memmap = np.load(tmp_path / "rows.npy", mmap_mode="r")
    pca(3, center="private").fit(memmap[:1000])
    tracemalloc.start()
    try:
        pca(3, center="private").fit(memmap)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


# --- new rows ---------------------------------------------------------------------------------------------------------


def test_transform_treats_rows_as_training_did(table):
    clipped = pca(4, data_norm=0.1).fit(table)
    np.testing.assert_allclose(clipped.transform(1e3 * table[:9] / 0.5), clipped.transform(1e6 * table[:9]), atol=1e-12)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    unit = pca(4, normalize=True, center=False).fit(table)
    np.testing.assert_allclose(unit.transform(table), table / lengths @ unit.components_.T, atol=1e-12)
    np.testing.assert_array_equal(unit.transform(np.zeros((1, 15))), 0.0)
    assert unit.data_norm_ == 1.0
    assert pca().fit(table).data_norm_ == math.sqrt(15)


@combined(whiten=[False, True], dtype=[np.float32, np.float64], center=[False, "private", [0.05] * 15])
def test_round_trip(table, whiten, dtype, center):
    X = table.astype(dtype)
    model = pca(whiten=whiten, center=center, data_norm=4.0).fit(X)
    there = model.transform(X)
    back = model.inverse_transform(there)
    assert there.dtype == back.dtype == dtype
    np.testing.assert_allclose(back, X, atol=1e-4 if dtype is np.float32 else 1e-10)


def test_whitened_columns_have_unit_variance_and_none_explodes(table):
    model = DPPCA(whiten=True, data_norm=1.0, epsilon=1.0).fit(table)
    spread = model.transform(table).std(axis=0)
    np.testing.assert_allclose(spread[:5], 1.0, rtol=0.1)
    assert spread[5:].max() < 1.1  # the weak directions lie below the noise, which is what they are divided by


def test_a_parameter_changed_after_fit_does_not_change_what_was_fitted(table):
    model = pca(3, normalize=True).fit(table)
    before = model.transform(table)
    np.testing.assert_array_equal(model.set_params(normalize=False, center=False).transform(table), before)


@combined(where=["along the first", "along the second", "anywhere"], edge=[0.0, 4.5, 100.0], k=[1, 5])
def test_one_decomposition_serves_mean_and_components(k, edge, where):
    """As by two: also where the variance along the mean falls behind that of a direction that was not kept."""
    rng, d = np.random.default_rng(3), 9
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spectrum = np.array([9.0, 8.0, 5.0, 4.0, 3.0, 2.0, 1.0, -1.0, -2.0])
    gram = axes * spectrum @ axes.T
    direction = {"along the first": axes[:, 0], "along the second": axes[:, 1], "anywhere": rng.normal(size=d)}[where]
    given = 2.9 * direction / np.linalg.norm(direction)
    mean, values, vectors = about_mean(given, np.tril(gram), edge, k)
    signal = axes[:, : max(k, int(np.sum(spectrum > edge)))]
    np.testing.assert_allclose(mean, signal @ (signal.T @ given), atol=1e-12)
    covariance = gram - np.outer(mean, mean)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(covariance)[::-1][:k], atol=1e-12)
    np.testing.assert_allclose(covariance @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-12)


# --- many columns -----------------------------------------------------------------------------------------------------


def spectrum(d, values, seed=0):
    """The lower triangle of a symmetric matrix: eigenvalues on top of the noise of a release, whose edge is 1."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((d, d)) / math.sqrt(2.0 * d)
    axes = np.linalg.qr(rng.standard_normal((d, max(1, len(values)))))[0][:, : len(values)]
    return np.tril((noise + noise.T) / 2 + axes * values @ axes.T)


@pytest.fixture
def by_lanczos(monkeypatch):
    """As many columns as a test can wait for are many."""
    monkeypatch.setattr(_spectrum, "FEW_COLUMNS", 256)
    monkeypatch.setattr(_spectrum, "_FEW_OF", 8)


@pytest.fixture
def by_lapack(monkeypatch):
    """How many eigenvalues LAPACK is asked for of matrices that are larger than those of signals."""
    asked = []

    def counted(matrix, **options):
        if len(matrix) > 256:
            asked.append(options)
        return eigh(matrix, **options)

    monkeypatch.setattr(_spectrum, "eigh", counted)
    return asked


@combined(above=[1.1, np.inf], least=[1, 10], n_signals=[0, 4, 40])
def test_few_eigenvectors_of_many_columns_are_those_of_lapack(n_signals, least, above, by_lanczos, by_lapack):
    gram = spectrum(600, np.geomspace(2.0, 30.0, n_signals))
    values, vectors = _spectrum.leading(gram, least, above)
    expected, axes = eigh(gram)
    n = max(least, int(np.sum(expected > above)))
    assert not by_lapack
    np.testing.assert_allclose(values, expected[-n:], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(vectors * axes[:, -n:], axis=0)), 1.0, rtol=1e-9)


@pytest.mark.parametrize(("n_signals", "least"), [(300, 5), (0, 70), (300, 70)])
def test_lapack_finds_what_is_too_much_for_lanczos_by_one_reduction(n_signals, least, by_lanczos, by_lapack):
    """It takes as long as all else, whatever it is asked for."""
    gram = spectrum(600, np.geomspace(2.0, 30.0, n_signals))
    values, vectors = _spectrum.leading(gram, least, 1.1)
    expected = np.linalg.eigvalsh(gram)[-max(n_signals, least) :]
    assert len(by_lapack) == 1
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    full = gram + np.tril(gram, -1).T
    np.testing.assert_allclose(full @ vectors, vectors * values, atol=1e-11)


@pytest.mark.parametrize("kind", ["zeros", "one direction", "equal", "tiny noise", "negative"])
def test_matrices_without_noise_have_eigenvectors_too(kind, by_lanczos):
    """A basis that spans all that it can reach says nothing of the rest, which LAPACK then finds."""
    d, x = 300, np.random.default_rng(1).standard_normal(300)
    gram = {
        "zeros": np.zeros((d, d)), "one direction": np.outer(x, x), "equal": np.eye(d),
        "tiny noise": np.outer(x, x) + 1e-17 * spectrum(d, [], seed=2), "negative": -np.outer(x, x),
    }[kind]  # fmt: skip
    gram = np.tril(gram)
    values, vectors = _spectrum.leading(gram, 3, np.inf)
    scale = max(1e-300, np.abs(gram).max() * d)
    np.testing.assert_allclose(values / scale, np.linalg.eigvalsh(gram)[-3:] / scale, atol=1e-13)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-12)
