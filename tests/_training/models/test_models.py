"""Rows bound to a loss: the model's own part, beside the kernels (`test_linear.py` tests the sums)."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import over_combinations, over_rows

from skdp._training.models import linear
from skdp._training.models.linear import LinearGeometry, LinearModel

X = np.random.default_rng(0).normal(size=(20, 3))
LABELS = np.arange(20) % 2


def model_of(rows=X, n_outputs=1, *, fit_intercept=True, weights=1.0, lots=False, n_threads=1):
    geometry = LinearGeometry(2.0, fit_intercept)
    return LinearModel(rows, LABELS, weights, n_outputs, geometry, by_lot=lots, n_threads=n_threads)


@over_rows(("n_outputs", "fit_intercept", "size"), [(1, True, 4), (1, False, 3), (3, True, 12), (3, False, 9)])
def test_parameters_are_one_flat_vector(n_outputs, fit_intercept, size):
    model = model_of(n_outputs=n_outputs, fit_intercept=fit_intercept)
    assert (model.n_rows, model.n_features, model.n_parameters) == (20, 3, size)
    assert model.clipped_gradient_sum(np.zeros(size), None, 1.0).shape == (size,)


def test_an_outputs_intercept_follows_its_weights():
    """At theta = 0 the residuals are 1/2 - y: the last entry is their sum times the intercept's public value."""
    model = model_of(weights=np.arange(20) / 20)
    total = model.clipped_gradient_sum(np.zeros(4), None, 1e9)
    expected = np.sum((0.5 - LABELS) * np.arange(20) / 20) / np.sqrt(5.0)
    assert total[-1] == pytest.approx(expected, rel=1e-12)


@over_rows("sparse", [False, True])
def test_rows_and_parameters_are_only_read(sparse):
    """Also where they are read-only, as joblib's memory maps are."""
    rows = sp.csr_matrix(X) if sparse else X.copy()
    for array in (rows.data, rows.indices, rows.indptr) if sparse else (rows,):
        array.setflags(write=False)
    theta = np.ones(4)
    theta.setflags(write=False)
    model = model_of(rows)
    first = model.clipped_gradient_sum(theta, None, 0.5)
    np.testing.assert_array_equal(model.clipped_gradient_sum(theta, None, 0.5), first)


def test_an_empty_lot_sums_to_zero():
    """Property 11."""
    for rows in (X, sp.csr_matrix(X)):
        total = model_of(rows, lots=True).clipped_gradient_sum(np.ones(4), np.empty(0, np.int64), 0.5)
        np.testing.assert_array_equal(total, np.zeros(4))


def test_weights_may_be_one_number():
    one, each = model_of(weights=2.0), model_of(weights=np.full(20, 2.0))
    sums = [model.clipped_gradient_sum(np.ones(4), None, 0.3) for model in (one, each)]
    np.testing.assert_array_equal(*sums)


def test_close_ends_the_threads():
    before = threading.active_count()
    rows = np.ones((40_000, 5))
    model = LinearModel(rows, np.zeros(40_000, int), 1.0, 1, LinearGeometry(2.0, True), by_lot=False, n_threads=3)
    model.clipped_gradient_sum(np.zeros(6), None, 1.0)
    model.close()
    assert threading.active_count() == before


# --- records: features and facts of a row in its own cache lines ---


@over_combinations(1, dtype=[np.float32, np.float64], d=[1, 2, 4, 5, 11, 12, 13, 20, 28, 29, 60])
def test_rows_of_lots_lie_in_cache_lines_of_their_own(d, dtype, monkeypatch):
    """Two lines at most; wider rows are left where they are. The sum has the very bits of rows and facts apart."""
    monkeypatch.setattr(linear, "_FEW_COLUMNS", 0)  # full batches by rows, too
    rows = np.random.default_rng(1).normal(size=(300, d)).astype(dtype)
    labels, geometry = np.arange(300) % 2, LinearGeometry(1.0, True)
    model = LinearModel(rows, labels, 1.0, 1, geometry, by_lot=True)
    size = np.dtype(dtype).itemsize
    n_lines = -(-(d + 4) * size // 64)
    if n_lines > 2:
        assert model._X is rows
    else:
        assert model._X.shape == (300, n_lines * 64 // size)
        assert model._X.ctypes.data % 64 == 0
        np.testing.assert_array_equal(model._X[:, :d], rows)
    lot, theta = np.array([5, 7, 7, 299, 0, 130]), np.random.default_rng(2).normal(size=d + 1)
    apart = LinearModel(rows[lot], labels[lot], 1.0, 1, geometry, by_lot=False)
    sums = model.clipped_gradient_sum(theta, lot, 0.3), apart.clipped_gradient_sum(theta, None, 0.3)
    np.testing.assert_array_equal(*sums)


def test_records_are_bounded_in_memory(monkeypatch):
    rows = np.zeros((100, 11), np.float32)
    monkeypatch.setattr(linear, "_MAX_COPY", 100 * 64)
    assert linear._empty_records(rows).shape == (100, 16)
    monkeypatch.setattr(linear, "_MAX_COPY", 100 * 64 - 1)
    assert linear._empty_records(rows) is None


def test_columns_are_a_copy_of_bounded_size(monkeypatch):
    """Of few columns, and none of the rows that are multiplied as they are, or drawn by lot."""
    rows, geometry = np.random.default_rng(0).normal(size=(100, 11)), LinearGeometry(1.0, True)

    def stored(X, **options):
        return LinearModel(X, np.zeros(100, int), 1.0, 1, geometry, **options)._X

    np.testing.assert_array_equal(stored(rows, by_lot=False), rows.T)
    monkeypatch.setattr(linear, "_MAX_COPY", rows.nbytes - 1)
    assert stored(rows, by_lot=False) is rows
    wide = np.ones((100, linear._FEW_COLUMNS + 1), np.float32)
    assert stored(wide, by_lot=False) is wide


def test_records_hold_zeros_for_rows_that_are_lost():
    """As 0 times NaN is NaN; and the rows that were given are not written on."""
    rows = np.ones((4, 3), np.float32)
    rows[2, 1] = np.nan
    model = LinearModel(rows, LABELS[:4], 1.0, 1, LinearGeometry(1.0, True), by_lot=True)
    np.testing.assert_array_equal(model._X[2, :3], np.zeros(3))
    assert np.isnan(rows[2, 1])


def test_a_result_is_the_callers_own():
    """Writing into a sum does not reach into the next one."""
    model = model_of()
    first = model.clipped_gradient_sum(np.ones(4), None, 0.5)
    kept = first.copy()
    first[:] = 7.0
    np.testing.assert_array_equal(model.clipped_gradient_sum(np.ones(4), None, 0.5), kept)
