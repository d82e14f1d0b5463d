"""Shares by which the rows of a unit are multiplied: their sum is clipped as one."""

import numpy as np
from combinations import over_rows

from skdp._checks.units import Units
from skdp.mechanisms.unit_shares import clip_counts, clip_vectors, sum_by_unit

SIZES = [1, 2, 3, 10, 1000]


def units_of(sizes):
    return Units(np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes)), len(sizes))


def assert_within(sums, limit):
    assert np.linalg.norm(sums, axis=1).max() <= limit * (1 + 1e-12)


@over_rows("vectors", ["equal", "opposite", "any"])
def test_the_sum_of_a_unit_is_no_longer_than_the_limit(vectors):
    rng, units = np.random.default_rng(1), units_of(SIZES)
    n = len(units.codes)
    found = rng.normal(size=(n, 4))
    if vectors != "any":
        found[:] = found[0]
    if vectors == "opposite":
        found *= np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    weights = rng.uniform(0, 1, n)
    shared = clip_vectors(units, found, weights, 1.0)
    sums = sum_by_unit(units, shared) @ found
    assert_within(sums, 1.0)
    whole = sum_by_unit(units, weights) @ found
    lengths = np.linalg.norm(whole, axis=1)
    np.testing.assert_allclose(sums, whole * np.minimum(1.0, 1.0 / lengths)[:, None], atol=1e-6)


def test_counts_of_a_unit_are_clipped_over_all_columns():
    rng, units = np.random.default_rng(2), units_of(SIZES)
    n, widths = len(units.codes), (3, 40, 1)
    columns = [rng.integers(0, width, n) for width in widths]
    weights = rng.uniform(0, 1, n)
    shared = clip_counts(units, columns, weights)
    one_hot = np.hstack([np.eye(width)[each] for width, each in zip(widths, columns, strict=True)])
    assert_within(sum_by_unit(units, shared) @ one_hot, 3**0.5)


def test_units_of_one_row_have_all_of_it():
    """Bit for bit, at the norm itself and at a weight of 0."""
    units, weights = Units(np.arange(4), 4), np.array([1.0, 0.0, 0.3, 1.0])
    assert clip_vectors(units, np.ones((4, 9)), weights, 3.0).tolist() == weights.tolist()
    assert clip_counts(units, [np.zeros(4, int)], weights).tolist() == weights.tolist()


def test_without_units_weights_are_as_they_were():
    weights = np.ones(3)
    assert clip_vectors(None, np.ones((3, 1)), weights, 1.0) is weights
    assert clip_counts(None, [np.zeros(3, int)], weights) is weights
