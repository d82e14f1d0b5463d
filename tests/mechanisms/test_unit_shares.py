"""Shares by which the rows of a unit are multiplied: their sum is clipped as one."""

import numpy as np

from skdp._checks.units import Units
from skdp.mechanisms.unit_shares import clip_counts

SIZES = [1, 2, 3, 10, 1000]


def units_of(sizes):
    return Units(np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes)), len(sizes))


def test_counts_of_a_unit_are_clipped_over_all_columns():
    rng, units = np.random.default_rng(2), units_of(SIZES)
    n, widths = len(units.codes), (3, 40, 1)
    columns = [rng.integers(0, width, n) for width in widths]
    weights = rng.uniform(0, 1, n)
    one_hot = np.hstack([np.eye(width)[each] for width, each in zip(widths, columns, strict=True)])
    of_units = np.eye(len(SIZES))[units.codes].T
    clipped, whole = (of_units @ (each[:, None] * one_hot) for each in (clip_counts(units, columns, weights), weights))
    assert np.linalg.norm(clipped, axis=1).max() <= 3**0.5 * (1 + 1e-12)
    factors = np.minimum(1.0, 3**0.5 / np.linalg.norm(whole, axis=1))
    np.testing.assert_allclose(clipped, factors[:, None] * whole, atol=1e-6)


def test_units_of_one_row_have_all_of_it():
    """Bit for bit, at the norm itself and at a weight of 0."""
    units, weights = Units(np.arange(4), 4), np.array([1.0, 0.0, 0.3, 1.0])
    assert clip_counts(units, [np.zeros(4, int)], weights).tolist() == weights.tolist()


def test_without_units_weights_are_as_they_were():
    weights = np.ones(3)
    assert clip_counts(None, [np.zeros(3, int)], weights) is weights
