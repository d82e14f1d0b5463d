"""Linear models by BLAS's products: against the plain reading, and against the bound on one row, rounding included."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import threadpoolctl
from combinations import over_combinations, over_rows
from linear_rows import DTYPES, norm_of, people, rounding_bound
from relations import with_n_public
from replay import assert_all_else_is_equal, replay
from replay import moves as moves_of

from skdp import DPLogisticRegression
from skdp._dpsgd import linear_solver
from skdp._dpsgd.models.linear import LinearGeometry
from skdp._dpsgd.models.linear_layouts import WideLinearModel
from skdp._kernels import linear as _linear
from skdp._kernels.threads import single_threaded_blas

BLOCK = 128


def model_of(X, labels, weights=1.0, n_outputs=3, scaling=None, *, dtype=None, sparse=False, n_threads=1):
    rows = sp.csr_matrix(X) if sparse else np.ascontiguousarray(X)
    scaling = scaling or LinearGeometry(1.5, True)
    return WideLinearModel(
        rows, np.asarray(labels), weights, n_outputs, scaling, dtype=dtype or X.dtype, n_threads=n_threads
    )


def clipped_sum(X, labels, weights, theta, max_norm, n_outputs=3, scaling=None, *, rows=None, **options):
    with model_of(X, labels, weights, n_outputs, scaling, **options) as model:
        return model.clipped_gradient_sum(theta, rows, max_norm)


def assert_agrees(
    X, labels, weights, theta, max_norm, n_outputs, fit_intercept, *, rows=None, dtype=None, products=None, **options
):
    scaling, plain = LinearGeometry(1.5, fit_intercept), reference.Scaling(1.5, fit_intercept)
    picked = (X, labels, weights) if rows is None else (X[rows], labels[rows], weights[rows])
    found = clipped_sum(
        X, labels, weights, theta, max_norm, n_outputs, scaling, rows=rows, dtype=dtype, **options
    )  # fmt: skip
    clip = reference.clip_for_products(max_norm, products or dtype or X.dtype, BLOCK, n_outputs * X.shape[1])
    expected = reference.clipped_gradients(*picked, theta, n_outputs, plain, clip).sum(axis=0)
    assert found.shape == theta.shape
    assert found.dtype == np.float64
    assert np.linalg.norm(found - expected) <= rounding_bound(*picked, theta, clip, n_outputs, plain)


# --- two readings ---


@over_combinations(
    1,
    dtype=DTYPES,
    lots=[False, True],
    n_outputs=[1, 2, 3, 11],
    n=[0, 1, 127, 128, 129, 511, 1030],
    d=[1, 7, 1999],
    max_norm=[0.4, 1e-3, 1e20],
    fit_intercept=[True, False],
)
def test_sums_are_those_of_the_plain_reading(n, n_outputs, lots, dtype, d, max_norm, fit_intercept):
    """At sizes around the edges of a block; lots in another order than the rows."""
    X, labels, weights, theta = people(n, d, n_outputs, dtype=dtype, fit_intercept=fit_intercept)
    rows = np.random.default_rng(3).permutation(n) if lots else None
    assert_agrees(X, labels, weights, theta, max_norm, n_outputs, fit_intercept, rows=rows)


@over_rows("lots", [False, True])
def test_single_precision_rows_may_be_multiplied_in_double(lots):
    """As under `add_remove`: the sum has the errors of float64 alone."""
    X, labels, weights, theta = people(700, 7, 3, dtype=np.float32)
    theta = theta.astype(np.float32).astype(float)
    rows = np.arange(700) if lots else None
    found = clipped_sum(X, labels, weights, theta, 0.4, rows=rows, dtype=np.float64)
    exact = clipped_sum(X.astype(np.float64), labels, weights, theta, 0.4, rows=rows)
    # Scale and length of a row stay float32: each gradient, of norm 0.4 at most, may differ by a few of its roundings.
    assert np.linalg.norm(found - exact) <= 700 * 0.4 * 8 * np.finfo(np.float32).eps
    assert_agrees(X, labels, weights, theta, 0.4, 3, True, rows=rows, dtype=np.float64)


@over_rows("dtype", DTYPES)
@over_rows("n_outputs", [1, 2, 7])
@over_rows("lots", [False, True])
def test_sparse_rows_are_those_of_the_plain_reading(lots, n_outputs, dtype):
    """Stored zeros, empty rows and wide indices included; in float64 whatever the dtype of the rows."""
    X, labels, weights, theta = people(300, 9, n_outputs, dtype=dtype)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    X[17] = 0.0
    rows = np.random.default_rng(3).permutation(300)[:150] if lots else None
    assert_agrees(X, labels, weights, theta, 0.4, n_outputs, True, rows=rows, sparse=True, products=np.float64)
    matrix, wide = sp.csr_matrix(X), sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    models = [
        WideLinearModel(each, labels, weights, n_outputs, LinearGeometry(1.5, True), dtype=dtype)
        for each in (matrix, wide)
    ]
    np.testing.assert_array_equal(*(model.clipped_gradient_sum(theta, rows, 0.4) for model in models))


@over_rows("dtype", [None, np.float64])
@over_rows("lots", [False, True])
def test_thread_count_changes_no_bit(lots, dtype):
    """Not the number of own threads, and not that of BLAS, which rounds otherwise for another number."""
    X, labels, weights, theta = people(5_011, 300, 16, dtype=np.float32)
    rows = np.arange(5_011) if lots else None
    sums = []
    for n_blas in (1, 2):
        for n_threads in (1, 5):
            with threadpoolctl.threadpool_limits(n_blas, "blas"):
                sums.append(
                    clipped_sum(X, labels, weights, theta, 0.4, 16, rows=rows, n_threads=n_threads, dtype=dtype)
                )
    for other in sums[1:]:
        np.testing.assert_array_equal(sums[0], other)


# --- one row moves the sum by at most C ---


def assert_within_clip(g, max_norm):
    assert np.all(np.isfinite(g))
    assert norm_of(g) <= np.longdouble(max_norm)


@over_rows("dtype", DTYPES)
@over_rows("n_outputs", [1, 3, 40])
def test_rows_at_extreme_scales_add_at_most_the_clip(n_outputs, dtype):
    """Property 6: lengths, weights, bounds and clips over the dtype's range. The room for rounding is not used up."""
    rng = np.random.default_rng(8)
    low, high = (-44, 36) if dtype == np.float32 else (-300, 306)
    for d in (1, 8, 400):
        for trial in range(20):
            with np.errstate(over="ignore", under="ignore"):
                x = (rng.normal(size=(1, d)) * 10.0 ** rng.uniform(low, high)).astype(dtype)
            weight, exponent = dtype(10.0 ** rng.uniform(-30, 0)), rng.uniform(-30, 30) if trial % 2 else 0.0
            scaling = LinearGeometry(10.0**exponent, bool(rng.integers(2)))
            theta = rng.normal(size=n_outputs * (d + scaling.fit_intercept)) * 10.0 ** rng.uniform(-3, 30)
            max_norm = 10.0 ** (rng.uniform(-30, 30) if trial % 3 == 0 else rng.uniform(-4, 0))
            label = np.array([rng.integers(max(2, n_outputs))])
            for sparse in (False, True):
                g = clipped_sum(x, label, np.array([weight]), theta, max_norm, n_outputs, scaling, sparse=sparse)
                assert_within_clip(g, max_norm)


@over_rows("dtype", DTYPES)
def test_one_row_reaches_the_clip(dtype):
    """The bound is not met by adding nothing: a misclassified row of full length adds C, less room for rounding."""
    for weight in (1.0, 0.25):
        x = np.array([[0.6, 0.8]], dtype)
        g = clipped_sum(x, [1], np.array([weight]), np.zeros(3), 0.25, 1, LinearGeometry(1.0, True))
        assert 0.25 * weight * (1 - 0.002) <= norm_of(g) <= 0.25 * weight


@over_rows("sparse", [False, True])
@over_rows("n_outputs", [1, 3])
@over_rows("dtype", DTYPES)
def test_weight_zero_is_the_null_record(dtype, n_outputs, sparse):
    """Exactly zero, intercept included; and what the row holds changes no bit of a sum that it is in."""
    X, labels, weights, theta = people(300, 5, n_outputs, dtype=dtype)
    for rows in (None, np.arange(0, 300, 2)):
        zeros = clipped_sum(X, labels, np.zeros(300), theta, 0.4, n_outputs, rows=rows, sparse=sparse)
        assert np.all(zeros == 0.0)
        weights[8] = 0.0
        before = clipped_sum(X, labels, weights, theta, 0.4, n_outputs, rows=rows, sparse=sparse)
        for content in (0.0, 1.0, 1e30, -1e38):
            changed, relabelled = X.copy(), labels.copy()
            changed[8], relabelled[8] = content, 1 - min(labels[8], 1)
            after = clipped_sum(changed, relabelled, weights, theta, 0.4, n_outputs, rows=rows, sparse=sparse)
            np.testing.assert_array_equal(before, after)


@over_rows("sparse", [False, True])
@over_rows("n_outputs", [1, 3])
@over_rows("dtype", DTYPES)
def test_a_row_that_holds_nan_or_infinity_is_the_null_record(dtype, n_outputs, sparse):
    X, labels, weights, theta = people(300, 5, n_outputs, dtype=dtype)
    weights[:] = 1.0
    for rows in (None, np.arange(300)):
        for places in ([7], [0, 127, 128, 299], range(300)):
            void = weights.copy()
            void[places] = 0.0
            others = clipped_sum(X, labels, void, theta, 0.4, n_outputs, rows=rows, sparse=sparse)
            for lost in (np.nan, np.inf, -np.inf):
                wild = X.copy()
                wild[np.ix_(places, [0, 3])] = lost
                found = clipped_sum(wild, labels, weights, theta, 0.4, n_outputs, rows=rows, sparse=sparse)
                np.testing.assert_array_equal(found, others)


def moves(sizes, places, *, n_outputs=3, d=8, max_norm=1.0, dtype=np.float32):
    """How far a sum moves when one of the rows is muted, over `places`: parallel rows whose gradients have these sizes.

    At theta = 0 all gradients are longer than the clip, and weights say how much of it is left; rows are (1, ..., 1).
    """
    X, geometry = np.ones((len(sizes), d), dtype), LinearGeometry(np.sqrt(d), False)
    labels = np.where(np.asarray(sizes) > 0, 0, 1)
    room = max_norm / (4.0 * reference.clip_for_products(max_norm / 4.0, dtype, BLOCK, n_outputs * d))
    weights = np.minimum(np.abs(sizes) * room / max_norm, 1.0).astype(dtype)

    def total(weights):
        with model_of(X, labels, weights, n_outputs, geometry) as model:
            return model.clipped_gradient_sum(np.zeros(n_outputs * d), None, max_norm / 4.0) * 4.0

    whole = total(weights)
    for place in places:
        void = weights.copy()
        void[place] = 0.0
        yield float(norm_of(whole - total(void)))


def on_the_edge_of_rounding(size, n_long=64):
    """Half a block of rows at the clip, half of rows that are lost or doubled by which side of 64 the sum is on.

    Casacuberta et al. (2022), "Widespread underestimation of sensitivity in differentially private libraries".
    """
    return size * np.concatenate([np.ones(n_long), np.full(BLOCK - n_long, 1.02 * 2.0**-18)])


@over_rows("n_outputs", [1, 2, 3, 16])
def test_rounding_on_the_edge_moves_the_sum_by_at_most_the_clip(n_outputs):
    """In float32, the rounding of all other rows of the block included. Rows at C, and at what C leaves them."""
    room = 1.0 / reference.clip_for_products(1.0, np.float32, BLOCK, 8 * n_outputs)
    assert 1.0019 < room < 1.0021
    for size in (1.0, 1.0 / room, 0.999 / room, 2.0):
        for n_long in (64, 65):  # 65 rows a little below C end beyond the edge
            for d in (1, 32):
                edge = on_the_edge_of_rounding(size, n_long)
                assert max(moves(edge, (0, 32, 63), n_outputs=n_outputs, d=d)) <= 1.0
                assert max(moves(edge[::-1].copy(), (64, 127), n_outputs=n_outputs, d=d)) <= 1.0
                assert max(moves(np.tile(edge, 3), (0, 128, 319), n_outputs=n_outputs, d=d)) <= 1.0


@over_rows(
    "sizes",
    [
        np.ones(3_000),
        np.where(np.arange(3_000) % 2, 1.0, -1.0),
        np.where(np.arange(256) < 127, 1.0, -1.0),
        np.tile([1.0, 1e-4, -0.3, 1e-7], 200),
        10.0 ** np.random.default_rng(7).uniform(-8, 0, 1000),
        np.random.default_rng(8).choice([-1.0, 1.0, 1e-3, -1e-5], 1000),
    ],
)
@over_rows("dtype", DTYPES)
def test_rounding_moves_the_sum_by_at_most_the_clip(dtype, sizes):
    """Every muted row is one of the longest. Blocks are added in float64: each of b additions errs by u times n C."""
    longest = np.flatnonzero(np.abs(sizes) == np.abs(sizes).max())
    for max_norm in (1.0, 0.3):
        places = longest[[0, len(longest) // 2, -1]]
        of_blocks = 2 * (len(sizes) // BLOCK + 1) * len(sizes) * 2.0**-53
        assert max(moves(sizes, places, max_norm=max_norm, dtype=dtype)) <= max_norm * (1 + of_blocks)


@over_rows("d", [5, 400])
@over_rows("n_outputs", [2, 10])
def test_no_row_moves_another_block(n_outputs, d):
    """A changed row changes the sum as it changes the sum of its own block of rows: no bit elsewhere."""
    X, labels, weights, theta = people(4 * BLOCK, d, n_outputs, dtype=np.float32)
    weights[:] = 1.0
    for place in (0, 130, 511):
        wild, relabelled = X.copy(), labels.copy()
        wild[place], relabelled[place] = -7.0, 0
        first = place // BLOCK * BLOCK
        kept = np.delete(np.arange(4 * BLOCK), np.arange(first, first + BLOCK))
        void = np.zeros(4 * BLOCK)
        void[kept] = 1.0
        sums = [clipped_sum(x, y, void, theta, 0.4, n_outputs) for x, y in ((X, labels), (wild, relabelled))]
        np.testing.assert_array_equal(*sums)


@over_rows("n_outputs", [2, 10])
@over_rows("d", [5, 33, 400])
def test_no_row_changes_a_bit_of_anothers_gradient(n_outputs, d):
    """What BLAS makes of a row depends on its place and on the shape of the block, not on what other rows hold."""
    X, labels, weights, theta = people(BLOCK, d, n_outputs, dtype=np.float32)
    model = model_of(X, labels, weights, n_outputs)
    wild = X.copy()
    wild[[0, 50, 127]] = [[1e30], [0.0], [-3e38]]
    other = model_of(wild, labels, weights, n_outputs)
    table = np.ascontiguousarray(theta.reshape(n_outputs, -1)[:, :d].astype(np.float32))
    with single_threaded_blas(), np.errstate(all="ignore"):
        scores = [m._take(None, 0, m._make_scratch()) @ table.T for m in (model, other)]
    kept = np.delete(np.arange(BLOCK), [0, 50, 127])
    np.testing.assert_array_equal(scores[0][kept], scores[1][kept])


# --- the estimator ---


@over_rows("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_one_row_moves_wide_releases_by_sensitivity(adjacency, monkeypatch):
    """Property 21: class counts, a step and the intercept correction. In float64 where rows that leave shift others."""
    made, rng, row = [], np.random.default_rng(0), 130

    def noted(*arguments, **keywords):
        made.append(keywords["dtype"])
        return WideLinearModel(*arguments, **keywords)

    table = rng.normal(size=(400, 300)).astype(np.float32), rng.integers(0, 8, 400), np.ones(400)
    X, y, weights = (each.copy() for each in table)
    if adjacency == "add_remove":
        X, y, weights = (np.delete(each, row, axis=0) for each in table)
    elif adjacency == "zero_out":
        X[row], weights[row] = 1e9, 0.0
    else:
        X[row], y[row] = -X[row], (y[row] + 1) % 8
    own = {"classes": range(8), "noise_multiplier": 3.0, "epsilon": None, "delta": 1e-5, "max_iter": 1}
    own |= {"max_grad_norm": 0.05, "adjacency": with_n_public(adjacency, 400), "random_state": 0}
    with monkeypatch.context() as patch:
        patch.setattr(linear_solver, "WideLinearModel", noted)
        one, other = replay(lambda given: DPLogisticRegression(**own).fit(*given), table, (X, y, weights))
    assert made == [np.float64 if adjacency == "add_remove" else np.float32] * 2
    assert 0.5 < max(moves_of(one, other)) <= (2.0 if adjacency == "replace_one" else 1.0) * (1 + 1e-6)
    assert_all_else_is_equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_that_are_not_normal_are_zeros(dtype):
    """What the products of blocks read is 0 where it would lose digits, or would not be finite, and else as it is."""
    tiny = float(np.finfo(dtype).tiny)
    X = np.ones((4, 3), dtype)
    model = WideLinearModel(
        X, np.ones(4), 1.0, n_outputs=1, geometry=LinearGeometry(2.0, True), dtype=dtype, n_threads=1
    )  # fmt: skip
    facts = model._facts.copy()
    facts[:, _linear.LENGTH] = 1.0
    facts[:, _linear.WEIGHT] = 1.0
    facts[:, _linear.LABEL] = 1.0
    facts[:, _linear.SCALE] = [tiny, 4 * tiny, 1.0, 0.0]
    scores = np.zeros((4, 1), dtype)
    _linear.clip_scores(scores, facts, None, None, 0, None, np.zeros(1), 1.0, 1.0, tiny, np.zeros(1))
    np.testing.assert_array_equal(scores[:, 0], np.array([0.0, -2 * tiny, -0.5, 0.0], dtype))
