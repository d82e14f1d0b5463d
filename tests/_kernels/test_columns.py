"""Clipped gradient sums of linear models over rows stored by columns: the plain reading, and the bound on one row."""

import numpy as np
import pytest
import reference
from combinations import over_combinations, over_rows

from skdp._dpsgd.models.linear import LinearGeometry
from skdp._dpsgd.models.linear_layouts import ColumnModel

ROUNDOFF = 2.0**-53


def sum_of(X, labels, weights, theta, max_norm, n_outputs, geometry):
    with ColumnModel(np.asfortranarray(X), labels, weights, n_outputs, geometry) as model:
        return model.clipped_gradient_sum(theta, None, max_norm)


def people(n, d, n_outputs, dtype, *, fit_intercept=True, seed=0):
    """Rows of which some are longer than the radius 1.5, labels, weights with zeros, and parameters."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 3.0], size=(n, 1)) / np.sqrt(d)).astype(dtype)
    weights = rng.choice([0.0, 0.5, 1.0, 0.1], n, p=[0.1, 0.2, 0.5, 0.2]).astype(dtype)
    theta = rng.normal(size=n_outputs * (d + fit_intercept)) * 2.0
    return X, rng.integers(0, max(2, n_outputs), n), weights, theta


@over_combinations(
    fit_intercept=[True, False],
    n_outputs=[1, 3],
    dtype=[np.float64, np.float32],
    shape=[(1, 1), (511, 4), (512, 4), (1030, 11)],
)
def test_sums_are_those_of_the_plain_reading(shape, dtype, n_outputs, fit_intercept):
    n, d = shape
    X, labels, weights, theta = people(n, d, n_outputs, dtype, fit_intercept=fit_intercept)
    geometry = LinearGeometry(1.5, fit_intercept)
    scaling = reference.Scaling(1.5, fit_intercept)
    for max_norm in (0.05, 10.0):
        expected = reference.clipped_gradients(X, labels, weights, theta, n_outputs, scaling, max_norm)
        found = sum_of(X, labels.astype(np.int8), weights, theta, max_norm, n_outputs, geometry)
        # Of each row's gradient at most so much is lost to scores in the dtype of X.
        room = (4 * d + 40) * np.finfo(dtype).eps * np.linalg.norm(theta) * 3.0 * max(1.0, max_norm) * n
        assert np.linalg.norm(found - expected.sum(axis=0).ravel()) <= room
        everyone = sum_of(X, labels, 1.0, theta, max_norm, n_outputs, geometry)
        ones = sum_of(X, labels, np.ones(n, dtype), theta, max_norm, n_outputs, geometry)
        assert (everyone == ones).all()


EXTREMES = [0.0, 1e-300, 1e-40, 1.0, 1e40, 1e300]


@over_rows("fit_intercept", [True, False])
@over_rows("n_outputs", [1, 3])
@over_rows("radius", [1e-30, 1.5, 1e30])
def test_no_row_adds_more_than_the_clip(radius, n_outputs, fit_intercept):
    """Whatever it holds, in the largest and smallest numbers; and the bound is reached."""
    rng = np.random.default_rng(0)
    geometry = LinearGeometry(radius, fit_intercept)
    longest = 0.0
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore", under="ignore"):
            rows = [np.asarray(size * rng.normal(size=5)).astype(dtype) for size in EXTREMES for _ in range(3)]
        for row in rows:
            if not np.isfinite(row).all():
                continue
            for weight in (0.0, 1e-30, 0.3, 1.0):
                theta = rng.normal(size=n_outputs * (5 + fit_intercept)) * 10.0 ** rng.uniform(-3, 3)
                max_norm = 10.0 ** rng.uniform(-30, 0.0)
                label = rng.integers(0, max(2, n_outputs), 1)
                found = sum_of(row[None], label, weight, theta, max_norm, n_outputs, geometry)
                assert np.isfinite(found).all()
                norm = np.linalg.norm(found)
                assert norm <= max_norm * (1.0 + 8.0 * ROUNDOFF)
                assert weight or norm == 0.0
                longest = max(longest, norm / max_norm)
    assert longest > 1.0 - 1e-6


def test_a_row_that_overflows_is_a_null_row():
    X, labels, weights, theta = people(600, 3, 1, np.float64)
    geometry = LinearGeometry(1.5, True)
    wild = X.copy()
    wild[100] = 1.7e308  # of a norm beyond the largest number
    weights[100] = 1.0
    without = weights.copy()
    without[100] = 0.0
    found = sum_of(wild, labels, weights, theta, 0.1, 1, geometry)
    np.testing.assert_allclose(found, sum_of(X, labels, without, theta, 0.1, 1, geometry), rtol=1e-12)


@over_combinations(place=[0, 511, 1029], value=[np.nan, -np.inf], dtype=[np.float64, np.float32])
def test_cells_that_are_no_numbers_are_rejected(dtype, value, place):
    """Also in rows of weight 0, and whatever the radius."""
    X, labels, weights, theta = people(1030, 4, 1, dtype)
    X[place, 2], weights[place] = value, 0.0
    for radius in (1e-30, 1.5, 1e30):
        with pytest.raises(ValueError, match="in column 2"):
            sum_of(X, labels, weights, theta, 0.1, 1, LinearGeometry(radius, True))


def test_lots_are_rejected():
    model = ColumnModel(np.zeros((3, 2), order="F"), np.zeros(3, int), 1.0, 1, LinearGeometry(1.0, True))
    with pytest.raises(ValueError, match="`rows` must be None"):
        model.clipped_gradient_sum(np.zeros(3), np.arange(2), 1.0)
