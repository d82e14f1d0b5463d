"""The passes between a dense network's matrix products, each against what its docstring says."""

import math

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from combinations import over_combinations, over_rows

from skdp._kernels import dense as _dense

DTYPES = [np.float32, np.float64]
ROWS = np.array([4, 4, 0, 7, 2])
ACTIVATIONS = {
    "identity": _dense.IDENTITY,
    "logistic": _dense.LOGISTIC,
    "tanh": _dense.TANH,
    "relu": _dense.RELU,
}


def rows_and_scales(dtype, *, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.5] = 0.0
    scale = rng.uniform(0.5, 2.0, 8).astype(dtype)
    scale[2] = 0.0
    X[2] = np.finfo(dtype).max  # a scale of 0 goes with rows that overflow
    X[2, :2] = np.nan, np.inf  # or hold what is no number
    return X, scale


# --- gathering ---


@over_rows("dtype", DTYPES)
@over_rows("sparse", [False, True])
@over_rows(("rows", "start", "m"), [(None, 0, 8), (None, 3, 4), (ROWS, 0, 5), (ROWS, 2, 3), (ROWS, 1, 0)])
def test_rows_are_gathered_with_their_scale_and_a_one(rows, start, m, sparse, dtype):
    X, scale = rows_and_scales(dtype)
    chunk = np.full((m, 6), np.nan, dtype)
    if sparse:
        csr = sp.csr_matrix(X)
        _dense.gather_sparse_rows(csr.data, csr.indices, csr.indptr, scale, rows, start, chunk)
    else:
        _dense.gather_rows(X, scale, rows, start, chunk)
    picked = np.arange(start, start + m) if rows is None else rows[start : start + m]
    for row, found in zip(picked, chunk, strict=True):
        expected = np.zeros(6) if scale[row] == 0 else np.append(X[row] * scale[row], 1.0)
        np.testing.assert_allclose(found, expected, rtol=4 * float(np.finfo(dtype).eps))


@over_rows("dtype", DTYPES)
@over_rows("sparse", [False, True])
def test_squares_of_rows_are_those_of_what_is_gathered(sparse, dtype):
    X, scale = rows_and_scales(dtype)
    squares, chunk = np.full(8, np.nan), np.empty((8, 6), dtype)
    _dense.gather_rows(X, scale, None, 0, chunk)
    if sparse:
        csr = sp.csr_matrix(X)
        _dense.sparse_row_squares(csr.data, csr.indptr, scale, squares)
    else:
        _dense.row_squares(X, scale, squares)
    np.testing.assert_allclose(squares, np.sum(chunk.astype(float) ** 2, axis=1), rtol=1e-14)


# --- derivatives ---


@over_rows("dtype", DTYPES)
@over_rows("name", ACTIVATIONS)
def test_derivatives_are_those_of_the_plain_activations(name, dtype):
    """At z from -4 to 4, 0 included, from the activation's output alone."""
    z = np.linspace(-4.0, 4.0, 9)
    outputs = np.ones((2, 10), dtype)
    outputs[:, :9] = reference.activated(name, z)
    deltas = np.array([np.arange(1.0, 10.0), -np.ones(9)], dtype)
    expected = deltas * reference.slope(name, z)
    _dense.multiply_by_derivative(ACTIVATIONS[name], outputs, deltas)
    np.testing.assert_allclose(deltas, expected, rtol=0, atol=32 * float(np.finfo(dtype).eps))


@over_rows("name", ACTIVATIONS)
def test_a_lost_activation_or_derivative_stays_lost(name):
    """NaN may not become 0, or the guard would take the row for a good one."""
    deltas = np.array([[1.0], [np.nan]])
    _dense.multiply_by_derivative(ACTIVATIONS[name], np.array([[np.nan, 1.0], [0.5, 1.0]]), deltas)
    assert np.isnan(deltas[1, 0])
    assert name == "identity" or np.isnan(deltas[0, 0])


# --- the clip ---

KINDS = {"flat": _dense.FLAT, "per_layer": _dense.PER_LAYER, "automatic": _dense.AUTOMATIC}


def factors_of(kind, inputs, deltas, bounds, *, dtype=np.float64, widest=3):
    """Factors of rows whose layers' inputs and derivatives have these norms."""
    squares = np.array([inputs, deltas], np.float64) ** 2
    factors = np.empty(squares.shape[1:], dtype)
    tiny = float(np.finfo(dtype).tiny)
    ones, bounds = np.ones(squares.shape[2]), np.asarray(bounds, float)
    muted = _dense.clip_factors(KINDS[kind], squares, ones, bounds, 0.01, tiny, widest, factors)
    return factors, muted


def test_factors_by_hand():
    """Layers of norms 3 = 1.5 * 2 and 4 = 4 * 1; bounds 3 and 4, 0.3 and 0.4, 30 and 0.4."""
    inputs, deltas = [[1.5], [4.0]], [[2.0], [1.0]]
    for kind, bounds, expected in (
        ("flat", (3.0, 4.0), [1.0, 1.0]), ("flat", (0.3, 0.4), [0.1, 0.1]), ("flat", (0.0, 0.5), [0.1, 0.1]),
        ("per_layer", (3.0, 4.0), [1.0, 1.0]), ("per_layer", (0.3, 0.4), [0.1, 0.1]),
        ("per_layer", (30.0, 0.4), [1.0, 0.1]),
        ("automatic", (3.0, 4.0), [5.0 / 5.01] * 2), ("automatic", (30.0, 40.0), [50.0 / 5.01] * 2),
    ):  # fmt: skip
        factors, muted = factors_of(kind, inputs, deltas, bounds)
        np.testing.assert_allclose(factors[:, 0], expected, rtol=1e-14)
        assert not muted


@over_combinations(kind=KINDS, lost=[np.inf, np.nan], layer=[0, 1], side=[0, 1])
def test_a_row_that_is_not_finite_is_muted_in_every_layer(kind, lost, layer, side):
    """Infinity times 0, which is NaN, included; rows beside it keep their factors."""
    for others in (1.0, 0.0):
        norms = np.full((2, 2, 3), 2.0)
        norms[:, :, 1] = others
        norms[side, layer, 1] = lost
        factors, muted = factors_of(kind, *norms, (0.3, 0.4))
        assert muted
        np.testing.assert_array_equal(factors[:, 1], 0.0)
        assert np.all(factors[:, [0, 2]] > 0.0)


@over_rows("dtype", DTYPES)
@over_rows("kind", KINDS)
def test_a_factor_that_would_be_denormal_mutes_the_row(kind, dtype):
    """Such a number has lost digits. Short of that, or of a square beyond 1e308, a row is brought to the bound."""
    longest = min(1.0 / float(np.finfo(dtype).tiny), float(np.finfo(np.float64).max) ** 0.5)
    for product in (1e-60, 1.0, 1e20, 0.9 * longest, 1.1 * longest, 1e6 * longest):
        norm = product**0.5
        factors, muted = factors_of(kind, [[norm]], [[norm]], [1.0], dtype=dtype)
        assert muted == (product > longest)
        assert muted == (factors[0, 0] == 0.0)
        assert float(factors[0, 0]) * norm * norm <= 1.0 + float(np.finfo(dtype).eps)


def test_numbers_whose_squares_vanish_do_not_pass_the_clip():
    """In float32 a derivative of 1e-24 has the square 0: the row is taken for as long as it could be."""
    squares = np.array([[[64.0]], [[0.0]]])
    factors = np.empty((1, 1), np.float32)
    for kind in ("flat", "per_layer"):
        bound, tiny = np.array([1e-30]), float(np.finfo(np.float32).tiny)
        _dense.clip_factors(KINDS[kind], squares, np.ones(1), bound, 0.01, tiny, 4, factors)
        assert 8.0 * 1e-24 * float(factors[0, 0]) <= 1e-30


def test_factors_never_raise_a_gradient_above_its_bounds():
    """10,000 draws over 12 orders of magnitude, three layers with shares of their own."""
    rng = np.random.default_rng(2)
    inputs, deltas = 10.0 ** rng.uniform(-6, 6, (2, 3, 10_000))
    bounds = np.array([0.1, 2.0, 0.7])
    for kind in KINDS:
        factors, _ = factors_of(kind, inputs, deltas, bounds)
        parts = factors * inputs * deltas
        assert np.linalg.norm(parts, axis=0).max() <= math.hypot(*bounds) * (1 + 1e-14)
        if kind == "per_layer":
            assert np.all(parts <= bounds[:, None] * (1 + 1e-14))
        if kind == "flat":
            assert np.linalg.norm(parts, axis=0).max() == pytest.approx(math.hypot(*bounds), rel=1e-12)


@over_rows("dtype", DTYPES)
@over_rows("width", [1, 5, 63, 64, 65, 200])
def test_squares_are_those_of_the_first_numbers_of_a_row(width, dtype):
    rows = np.full((4, 210), np.nan, dtype)
    rows[:, :width] = np.random.default_rng(0).normal(size=(4, width))
    squares = np.full(4, np.nan)
    _dense.add_squares(rows, width, squares)
    expected = np.sum(rows[:, :width].astype(float) ** 2, axis=1)
    np.testing.assert_allclose(squares, expected, rtol=(width + 8) * float(np.finfo(dtype).eps))
    if width >= 64:  # what is compiled and what is not add in one order
        plain = [_dense._plain_sum_of_squares(rows, i, width // 64 * 64, width) for i in range(4)]
        np.testing.assert_array_equal(squares, plain)


@over_rows("lost", [np.inf, np.nan])
@over_rows("place", [0, 63, 64, 130])
def test_a_square_that_is_lost_loses_the_sum(place, lost):
    rows, squares = np.ones((1, 131)), np.zeros(1)
    rows[0, place] = lost
    _dense.add_squares(rows, 131, squares)
    assert not np.isfinite(squares[0])


@over_rows("begin", [0, 4])
@over_rows("dtype", DTYPES)
@over_rows("kind", KINDS)
def test_rows_are_clipped_layer_by_layer(kind, dtype, begin):
    """By factors of the plain reading, then by weights, on one side of each outer product.

    A row that overflows is zero on both.

    Rows that come before, and one that follows, stay as they are.
    """
    rng, widths = np.random.default_rng(3), (3, 5, 2)
    whole_inputs = tuple(rng.normal(size=(begin + 7, width + 3)).astype(dtype) for width in widths[:-1])
    whole_deltas = tuple(rng.normal(size=(begin + 7, width + 3)).astype(dtype) for width in widths[1:])
    others = [*range(begin), begin + 6]
    kept = [each[others].copy() for each in (*whole_inputs, *whole_deltas)]
    inputs, deltas = ([each[begin : begin + 6] for each in arrays] for arrays in (whole_inputs, whole_deltas))
    bounds = np.array([0.3, 0.4])
    deltas[1][4, 1] = np.inf

    def parts(row):
        return [
            np.outer(a[row, : above + 1].astype(float), delta[row, :below])
            for a, delta, above, below in zip(inputs, deltas, widths, widths[1:], strict=False)
        ]

    stretch = np.array([1.0, 1.0, 1.5, 1.0, 1.0, 40.0])
    expected = {row: reference.clipped_layers(parts(row), kind, bounds, stretch[row]) for row in (0, 1, 2, 3, 5)}
    first = np.sum(inputs[0][:, :4].astype(float) ** 2, axis=1)
    tiny = float(np.finfo(dtype).tiny)
    weights, layers = np.array([1.0, 0.0, 0.3, 1e-9, 1.0, 1.0], dtype), np.array(widths)
    whole = begin, whole_inputs, whole_deltas, layers
    _dense.clip_rows(KINDS[kind], first, stretch, weights, *whole, bounds, 0.01, tiny, 5)
    for row, gradient in expected.items():
        found = np.concatenate([part.ravel() for part in parts(row)])
        np.testing.assert_allclose(found, weights[row] * gradient, rtol=0, atol=20 * float(np.finfo(dtype).eps))
        assert found.any() == (weights[row] > 0.0)
    assert not any(each[4].any() for each in (*inputs, *deltas))
    for each, before in zip((*whole_inputs, *whole_deltas), kept, strict=True):
        np.testing.assert_array_equal(each[others], before)
