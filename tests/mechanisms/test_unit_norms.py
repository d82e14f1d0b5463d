"""Norms of what units add, against sums that are formed unit by unit."""

import numpy as np
from combinations import over_rows

from skdp._checks.units import read_units
from skdp.mechanisms.unit_norms import PAIRED_ROWS, average_units, clip_moments, squares_of_moments

WIDTH = 5


def made(seed=0):
    """Rows in the unit ball, weights, and units of 1 to 7 rows, of `PAIRED_ROWS` and of one more, in no order."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([rng.integers(0, 60, 150), np.full(PAIRED_ROWS, 100), np.full(PAIRED_ROWS + 1, 101)])
    labels = rng.permutation(labels)
    z = rng.normal(size=(len(labels), WIDTH))
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), rng.uniform(1.0, 2.0, (len(labels), 1)))
    return z, rng.uniform(0.0, 1.0, len(labels)), read_units(labels, len(labels))


def sum_of(z, weights, rows):
    return (z[rows] * weights[rows, None]).T @ z[rows]


def test_squares_of_moments_are_those_of_sums():
    z, weights, units = made()
    found = squares_of_moments(units, lambda rows: z[rows], WIDTH, weights)
    sizes = np.bincount(units.codes)
    for unit in np.flatnonzero(sizes > 1):
        plain = np.linalg.norm(sum_of(z, weights, units.codes == unit)) ** 2
        assert plain <= found[unit] <= plain + 1e-9
    assert {PAIRED_ROWS, PAIRED_ROWS + 1} <= set(sizes)


def test_moments_of_units_are_no_longer_than_those_of_a_row_and_reach_that():
    z, weights, units = made()
    clipped = clip_moments(units, lambda rows: z[rows], WIDTH, weights)
    norms = np.array([np.linalg.norm(sum_of(z, clipped, units.codes == unit)) for unit in range(units.n_units)])
    before = np.array([np.linalg.norm(sum_of(z, weights, units.codes == unit)) for unit in range(units.n_units)])
    assert norms.max() <= 1.0
    np.testing.assert_allclose(norms, np.minimum(before, 1.0), rtol=1e-9)
    alone = np.bincount(units.codes)[units.codes] == 1
    np.testing.assert_array_equal(clipped[alone], weights[alone])


def test_weights_of_units_add_up_to_one_at_most_and_reach_that():
    _, weights, units = made()
    totals, before = (np.bincount(units.codes, each) for each in (average_units(units, weights), weights))
    assert totals.max() <= 1.0
    np.testing.assert_allclose(totals, np.minimum(before, 1.0), rtol=1e-9)


@over_rows("bound", [average_units, lambda units, weights: clip_moments(units, None, WIDTH, weights)])
def test_without_units_weights_stay(bound):
    _, weights, _ = made()
    assert bound(None, weights) is weights
