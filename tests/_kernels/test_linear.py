"""The clipped gradient sums of linear models: against the plain reading, and against the bound on one row.

What is measured here is the noiseless sum, the input of the mechanism: properties 1, 3, 5, 6 and 24.
"""

import ast
import itertools
import pathlib

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from combinations import over_combinations, over_rows
from linear_rows import DTYPES, norm_of, people, rounding_bound

import skdp._dpsgd.models.linear
import skdp._kernels
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel, row_scales


@pytest.fixture(scope="module", autouse=True, params=["columns", "rows"])
def layout(request):
    """Sums over all dense rows are over columns of them where these are few, and else over the rows as they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skdp._dpsgd.models.linear, "_FEW_COLUMNS", {"columns": 10_000, "rows": 0}[request.param])
        yield request.param


# Lots and sparse rows have no layout of columns.
in_all_ways = pytest.mark.parametrize(
    ("layout", "lots", "sparse"),
    [("columns", False, False), *(("rows", lots, sparse) for lots in (False, True) for sparse in (False, True))],
    indirect=["layout"],
)
by_rows = pytest.mark.parametrize("layout", ["rows"], indirect=True)
WAYS = {"columns": [(False, False)], "rows": [(False, False), (True, False), (False, True)]}  # of lots and sparse rows


def model_of(X, labels, weights=1.0, n_outputs=1, scaling=None, *, lots=False, sparse=False, n_threads=1):
    scaling = scaling or LinearGeometry(1.0, True)
    rows = sp.csr_matrix(X) if sparse else np.ascontiguousarray(X)
    return LinearModel(rows, np.asarray(labels), weights, n_outputs, scaling, by_lot=lots, n_threads=n_threads)


def clipped_sum(X, labels, weights, theta, max_norm, n_outputs=1, scaling=None, *, rows=None, **options):
    model = model_of(X, labels, weights, n_outputs, scaling, lots=rows is not None, **options)
    try:
        return model.clipped_gradient_sum(theta, rows, max_norm)
    finally:
        model.close()


def assert_agrees(X, labels, weights, theta, max_norm, n_outputs, fit_intercept, **options):
    scaling = LinearGeometry(1.5, fit_intercept)
    plain = reference.Scaling(1.5, fit_intercept)
    rows = options.get("rows")
    picked = (X, labels, weights) if rows is None else (X[rows], labels[rows], weights[rows])
    found = clipped_sum(X, labels, weights, theta, max_norm, n_outputs, scaling, **options)
    expected = reference.clipped_gradients(*picked, theta, n_outputs, plain, max_norm).sum(axis=0)
    assert found.shape == theta.shape
    assert found.dtype == np.float64
    bound = rounding_bound(*picked, theta, max_norm, n_outputs, plain)
    assert np.linalg.norm(found - expected) <= bound


# --- two readings of one kernel ---


@over_rows(
    ("dtype", "n_outputs", "n"),
    [
        *((np.float32, 1, 0), (np.float64, 3, 1), (np.float32, 3, 4), (np.float64, 1, 5)),
        *((np.float64, 5, 512), (np.float32, 1, 513), (np.float32, 3, 1030), (np.float64, 1, 1030)),
    ],
)
@in_all_ways
def test_sums_are_those_of_the_plain_reading(n, n_outputs, lots, sparse, dtype):
    """At sizes around the edges of a block, and of the four rows that go together."""
    X, labels, weights, theta = people(n, 7, n_outputs, dtype=dtype)
    if sparse:
        X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    rows = np.arange(n) if lots else None
    assert_agrees(X, labels, weights, theta, 0.4, n_outputs, True, sparse=sparse, rows=rows)


@over_combinations(dtype=DTYPES, fit_intercept=[False, True], n_outputs=[1, 2, 4], d=[1, 11, 199])
def test_sums_at_other_widths(d, n_outputs, fit_intercept, dtype):
    X, labels, weights, theta = people(70, d, n_outputs, dtype=dtype, fit_intercept=fit_intercept)
    some = np.sort(np.random.default_rng(2).choice(70, 33, replace=False))
    for rows, max_norm in ((None, 0.4), (some, 0.4), (None, 1e-3), (some, 1e300)):
        for sparse in (False, True):
            assert_agrees(X, labels, weights, theta, max_norm, n_outputs, fit_intercept, rows=rows, sparse=sparse)


@by_rows
def test_sparse_layouts_give_one_sum():
    """Index arrays of 64 bits, stored zeros and empty rows are the same rows."""
    X, labels, weights, theta = people(30, 7)
    X[5] = 0.0
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    X[-1, -1] = 0.0
    rows = sp.csr_matrix(X)
    wide = rows.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    indptr = np.append(rows.indptr[:-1], rows.nnz + 1)
    padded = sp.csr_matrix((np.append(rows.data, 0.0), np.append(rows.indices, 6), indptr), X.shape)
    scaling = LinearGeometry(1.5, True)
    sums = []
    for layout in (rows, wide, padded):
        model = LinearModel(layout, labels, weights, 1, scaling, by_lot=False)
        sums.append(model.clipped_gradient_sum(theta, None, 0.4))
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


# --- property 3: threads and chunks change nothing ---


@in_all_ways
def test_thread_count_changes_no_bit(sparse, lots):
    """At 20,011 rows, some segments long; float32, where another order would show at once."""
    X, labels, weights, theta = people(20_011, 9, dtype=np.float32)
    rows = np.arange(20_011) if lots else None
    sums = [clipped_sum(X, labels, weights, theta, 0.4, n_threads=k, sparse=sparse, rows=rows) for k in (1, 2, 3)]
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


@over_rows("lots", [False, True])
@over_rows("d", [3, 60])
def test_sums_of_float32_rows_are_float64(d, lots):
    """At parameters of 0 residuals are 1/2, so that nothing but products and sums rounds: 5,000 times at most each."""
    X = people(5_000, d, dtype=np.float32)[0]
    model = model_of(X, np.zeros(len(X)), scaling=LinearGeometry(1.5, False), lots=lots)
    parts = 0.5 * row_scales(X, 1.5, 1.0 / 1.5).astype(np.float64)[:, None] * X.astype(np.float64)
    found = model.clipped_gradient_sum(np.zeros(d), np.arange(len(X)) if lots else None, 1e3)
    assert np.all(np.abs(found - parts.sum(axis=0)) <= 5_000 * 2.0**-52 * np.abs(parts).sum(axis=0))


# --- properties 1, 5 and 6: one row moves the sum by at most C ---


def contribution(x, label, weight, theta, max_norm, n_outputs, scaling, *, lots=False, sparse=False):
    """What one row adds to the sum: the sum over that row alone, with nothing to round."""
    x = np.asarray(x)[None]
    rows = np.arange(1) if lots else None
    return clipped_sum(x, [label], np.array([weight]), theta, max_norm, n_outputs, scaling, rows=rows, sparse=sparse)


def assert_within_clip(g, max_norm):
    """4 ulp of a float64, whatever the dtype of the rows."""
    assert np.all(np.isfinite(g))
    assert norm_of(g) <= np.longdouble(max_norm) * (1 + 4 * np.longdouble(np.finfo(np.float64).eps))


LENGTHS = {
    np.float32: [0.0, 1e-45, 1e-38, 1e-30, 1e-3, 0.4, 1.0, 1e9, 1e30, 1e38],
    np.float64: [0.0, 5e-324, 1e-300, 1e-160, 1e-30, 1e-3, 0.4, 1.0, 1e9, 1e30, 1e150, 1e200, 1e308],
}
CASES = [(dtype, length) for dtype in DTYPES for length in LENGTHS[dtype]]


@over_rows("n_outputs", [1, 3])
@over_rows(("dtype", "length"), CASES)
def test_one_row_adds_at_most_the_clip(layout, dtype, length, n_outputs):
    """Any length and weight, small and huge parameters, in all kernels: finite, and at most C (1 + 4 ulp)."""
    direction = np.random.default_rng(3).normal(size=5)
    x = (direction / np.linalg.norm(direction) * length).astype(dtype)
    weights, clips, labels = (1.0, 0.3, 1e-30), (0.25, 1e-3), (0, max(1, n_outputs - 1))
    for fit_intercept in (False, True):
        scaling = LinearGeometry(1.0, fit_intercept)
        start = np.random.default_rng(4).normal(size=n_outputs * (5 + fit_intercept))
        for size, weight, max_norm, label in itertools.product((0.0, 1.0, 1e37), weights, clips, labels):
            for lots, sparse in WAYS[layout]:
                row = x, label, weight, size * start, max_norm, n_outputs, scaling
                assert_within_clip(contribution(*row, lots=lots, sparse=sparse), max_norm)


@pytest.mark.compiled  # NumPy takes float32 with a Python float for float32, the compiler for float64
@over_rows("n_outputs", [1, 3])
@over_rows("fit_intercept", [False, True])
def test_clip_at_lengths_near_the_clip(fit_intercept, n_outputs):
    """Where a gradient is a few ulp longer or shorter than C: no rounding lets more than 4 ulp through."""
    rng = np.random.default_rng(5)
    for dtype in DTYPES:
        for _ in range(60):
            x = rng.normal(size=3).astype(dtype)
            theta = rng.normal(size=n_outputs * (3 + fit_intercept))
            scaling = LinearGeometry(1.0, fit_intercept)
            plain = reference.clipped_gradients(
                x[None], [1], [1.0], theta, n_outputs, reference.Scaling(1.0, fit_intercept), np.inf
            )
            max_norm = float(np.linalg.norm(plain)) * (1 + rng.integers(-4, 5) * float(np.finfo(dtype).eps))
            g = contribution(x, 1, 1.0, theta, max_norm, n_outputs, scaling)
            assert_within_clip(g, max_norm)


@pytest.mark.compiled  # float32, as above
def test_one_row_reaches_the_clip():
    """The bound is not met by adding nothing: a misclassified row of full length adds C, less room for rounding."""
    for dtype in DTYPES:
        for weight in (1.0, 0.3, 1e-20):
            g = contribution(np.array([0.6, 0.8], dtype), 1, weight, np.zeros(3), 0.25, 1, LinearGeometry(1.0, True))
            assert 0.25 * weight * (1 - 20 * np.finfo(dtype).eps) <= norm_of(g)
            assert_within_clip(g, 0.25 * weight)


@over_rows("dtype", DTYPES)
@over_rows("n_outputs", [1, 3, 40])
def test_wide_rows_at_extreme_scales_add_at_most_the_clip(layout, n_outputs, dtype):
    """Property 6, as `float32_length_rounding.py` has it: lengths, weights, bounds and clips over the dtype's range."""
    rng = np.random.default_rng(8)
    low, high = (-44, 36) if dtype == np.float32 else (-300, 306)
    for d in (1, 3, 8, 400):
        for trial in range(15):
            with np.errstate(over="ignore", under="ignore"):
                x = (rng.normal(size=d) * 10.0 ** rng.uniform(low, high)).astype(dtype)
            weight, exponent = dtype(10.0 ** rng.uniform(-30, 0)), rng.uniform(-30, 30) if trial % 2 else 0.0
            scaling = LinearGeometry(10.0**exponent, bool(rng.integers(2)))
            theta = rng.normal(size=n_outputs * (d + scaling.fit_intercept)) * 10.0 ** rng.uniform(-3, 30)
            max_norm = 10.0 ** (rng.uniform(-30, 30) if trial % 3 == 0 else rng.uniform(-4, 0))
            label = int(rng.integers(max(2, n_outputs)))
            for lots, sparse in WAYS[layout]:
                g = contribution(x, label, weight, theta, max_norm, n_outputs, scaling, lots=lots, sparse=sparse)
                assert_within_clip(g, max_norm)


@over_rows("sparse", [False, True])
@over_rows("n_outputs", [1, 3])
@over_rows("numbers", [1, 2, 3, 5])
def test_norms_that_lose_their_digits_are_not_taken_for_shorter(numbers, n_outputs, sparse):
    """Two of the least denormal numbers have a norm of 1.4 of it, which rounds to 1: a clip to 1.4 C."""
    for value in (5e-324, 1e-323, 1e-310):
        x, theta = np.full(numbers, value), np.zeros(n_outputs * numbers)
        g = contribution(x, 0, 1.0, theta, 1e-3, n_outputs, LinearGeometry(1e-30, False), sparse=sparse)
        assert_within_clip(g, 1e-3)


@over_rows("sparse", [False, True])
@over_rows("n_outputs", [1, 3])
@over_rows("dtype", DTYPES)
def test_a_row_of_zeros_adds_no_nan(dtype, n_outputs, sparse):
    """Found by the search above: without an intercept nothing is clipped (|u| = 0), and r * scale could overflow."""
    weight, theta = 1.0, np.zeros(3 * n_outputs)
    g = contribution(np.zeros(3, dtype), 0, weight, theta, 0.4, n_outputs, LinearGeometry(1e-30, False), sparse=sparse)
    assert np.all(g == 0.0)


@over_rows("sparse", [False, True])
@over_rows("n_outputs", [1, 3])
def test_a_row_whose_norm_overflows_adds_exactly_zero(n_outputs, sparse):
    """A norm above the largest float64 cannot be clipped: such a row is the null record, with its intercept."""
    theta = np.ones(n_outputs * 4)
    for length in (1.2e308, 1.7e308):
        x = np.array([length, -length, length])
        for lots in (False, True):
            g = contribution(x, 1, 1.0, theta, 0.4, n_outputs, LinearGeometry(1.0, True), lots=lots, sparse=sparse)
            assert np.all(g == 0.0)


@over_rows("sparse", [False, True])
@over_rows("dtype", DTYPES)
def test_a_row_with_nan_scores_adds_exactly_zero(dtype, sparse):
    """Parameters so large that a score is infinity less infinity: nothing of the row is left, nor of its intercept."""
    top = float(np.finfo(dtype).max)
    for n_outputs in (1, 3):
        table = np.zeros((n_outputs, 4))
        table[:, 0], table[:, 1] = top, -top
        x = np.array([top / 8, top / 8, 0.0], dtype) if dtype == np.float32 else np.array([1e150, 1e150, 0.0])
        assert float(x[0]) > float(np.finfo(dtype).max) / top  # so that each product overflows in the dtype
        g = contribution(x, 1, 1.0, table.ravel(), 0.4, n_outputs, LinearGeometry(1.0, True), sparse=sparse)
        if dtype == np.float64 or not sparse:  # sparse float32 scores are summed in float64 and do not overflow
            assert np.all(g == 0.0)
        assert_within_clip(g, 0.4)


ROWS_WITH_LOST = [(0,), (2,), (0, 1), (0, 1, 2, 3, 4)]


@in_all_ways
@over_rows("n_outputs", [1, 3])
@over_rows("dtype", DTYPES)
def test_a_row_that_holds_nan_or_infinity_is_the_null_record(dtype, n_outputs, lots, sparse):
    """Not multiplied by 0, which is NaN: no bit of the others' sum is another, wherever the row stands."""
    X, labels, weights, theta = people(600, 5, n_outputs, dtype=dtype)
    weights[:] = 1.0
    options = {"rows": np.arange(600) if lots else None, "sparse": sparse}
    for places in ([7], [0, 1, 2, 3, 511, 512, 599], range(600)):
        void = weights.copy()
        void[places] = 0.0
        others = clipped_sum(X, labels, void, theta, 0.4, n_outputs, **options)
        for lost in (np.nan, np.inf, -np.inf):
            for columns in ROWS_WITH_LOST:
                for rest in (X, np.zeros_like(X)):
                    wild = X.copy()
                    wild[places] = rest[places]
                    wild[np.ix_(places, columns)] = lost
                    kept = wild.copy()
                    for given_weights in (weights, void):
                        found = clipped_sum(wild, labels, given_weights, theta, 0.4, n_outputs, **options)
                        np.testing.assert_array_equal(found, others)
                    np.testing.assert_array_equal(wild, kept)


# --- property 5: weights act after the clip ---


@in_all_ways
@over_rows("n_outputs", [1, 3])
@over_rows("dtype", DTYPES)
def test_weight_zero_is_the_null_record(dtype, n_outputs, lots, sparse):
    """Exactly zero, intercept included; and what the row holds changes no bit of a sum that it is in."""
    X, labels, weights, theta = people(30, 5, n_outputs, dtype=dtype)
    options = {"rows": np.arange(30) if lots else None, "sparse": sparse}
    zeros = clipped_sum(X, labels, np.zeros(30), theta, 0.4, n_outputs, **options)
    assert np.all(zeros == 0.0)
    weights[7] = 0.0
    before = clipped_sum(X, labels, weights, theta, 0.4, n_outputs, **options)
    for content in (0.0, 1.0, 1e30, -1e38):
        changed = X.copy()
        changed[7] = content
        relabelled = labels.copy()
        relabelled[7] = 1 - min(labels[7], 1)
        after = clipped_sum(changed, relabelled, weights, theta, 0.4, n_outputs, **options)
        np.testing.assert_array_equal(before, after)


@over_rows("max_norm", [1e9, 0.2, 1e-3])
@over_rows("n_outputs", [1, 3])
def test_a_weight_scales_a_gradient_after_its_clip(n_outputs, max_norm):
    X, labels, _, theta = people(30, 5, n_outputs)
    once, less = (clipped_sum(X, labels, np.full(30, weight), theta, max_norm, n_outputs) for weight in (1.0, 0.25))
    np.testing.assert_allclose(less, 0.25 * once, rtol=0, atol=30 * 46 * np.finfo(float).eps * min(max_norm, 1.0))


# --- property 24: the clipped row is the one that is used ---


# --- how the kernels are written ---


KERNELS = sorted(pathlib.Path(skdp._kernels.__file__).parent.glob("*.py"))


@by_rows
@over_rows("path", KERNELS)
def test_kernels_keep_ieee_arithmetic_and_hold_the_texts_of_others_that_they_call(path):
    """No fastmath (it let NaN past a guard), no parallel order of sums, and no stale cache of another file's kernel."""
    called, held = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = set()
        if isinstance(node, ast.Dict):
            names = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Call):
            names = {keyword.arg for keyword in node.keywords}
            if getattr(node.func, "id", "") == "text_of":
                held |= {each.id for each in node.args}
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("skdp") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            package, _, module = (node.module or "").rpartition(".")
            if node.module == "skdp._kernels":
                called |= {alias.name for alias in node.names}
            elif package == "skdp._kernels":
                called.add(module)
            else:
                assert not (node.module or "").startswith("skdp")
        assert not names & {"fastmath", "parallel"}
    assert called - {"caching"} == held


# --- memory ---


def peak_above(work):
    """Peak resident memory of `work` above what stood before it, in bytes, by the kernel's high-water mark."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the high-water mark of memory cannot be reset here")

    def status(name):
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

    before = status("VmRSS")
    if status("VmHWM") > before + 2**20:
        pytest.skip("the high-water mark of memory was not reset")
    work()
    return status("VmHWM") - before


@pytest.mark.compiled  # 200,000 rows
@pytest.mark.skipif(not pathlib.Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
@in_all_ways
def test_no_array_of_the_size_of_the_rows_is_made(lots, sparse):
    """A sum over 200,000 x 50 float32, 40 MB, takes less than 5 MB beside it."""
    X = np.zeros((200_000, 50), np.float32)
    X[:, ::5] = 0.1
    rows = np.arange(200_000) if lots else None
    model = model_of(X, np.zeros(200_000, int), lots=lots, sparse=sparse)
    theta = np.zeros(51)
    model.clipped_gradient_sum(theta, rows, 0.4)
    assert peak_above(lambda: model.clipped_gradient_sum(theta, rows, 0.4)) < 5e6
