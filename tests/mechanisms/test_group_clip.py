"""What groups add, against sums that are formed group by group; and what a neighboring table changes."""

import numpy as np
import pytest
from combinations import combined

from skdp._checks.groups import read_units
from skdp.linear_model.normal_equations import TargetMoments
from skdp.mechanisms.bounded_sum import PAIRED_ROWS, CellCounts, clip_groups, squares_of_counts, squares_of_products
from skdp.mechanisms.second_moments import UnitBall
from skdp.naive_bayes import ClassMoments

WIDTH, N_CELLS = 5, (3, 40, 1)


def made(seed=0):
    """Rows in the unit ball, cells, weights, and groups of 1 to 7 rows, of `PAIRED_ROWS` and of one more, shuffled."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([rng.integers(0, 60, 150), np.full(PAIRED_ROWS, 100), np.full(PAIRED_ROWS + 1, 101)])
    labels = rng.permutation(labels)
    z = rng.normal(size=(len(labels), WIDTH))
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), rng.uniform(1.0, 2.0, (len(labels), 1)))
    cells = [rng.integers(0, size, len(labels)) for size in N_CELLS]
    return z, cells, rng.uniform(0.0, 1.0, len(labels)), read_units(labels, len(labels))


def clipped_by(kind, z, cells, weights, units):
    """The vectors of rows, the limit, and the weights by which they are clipped."""
    if kind == "weights":
        return np.ones((len(z), 1)), 2.5, clip_groups(units, weights, 2.5)
    if kind == "norms":
        norms = np.linalg.norm(z, axis=1)
        return norms[:, None], 2.5, clip_groups(units, weights, 2.5, norms)
    if kind == "counts":
        vectors = np.hstack([np.eye(size)[each] for size, each in zip(N_CELLS, cells, strict=True)])
        norm = 3**0.5
        return vectors, norm, clip_groups(units, weights, norm, norm, squares_of_counts(units, cells, weights))
    squares = squares_of_products(units, lambda rows: z[rows], WIDTH, weights)
    return np.einsum("ni,nj->nij", z, z).reshape(len(z), -1), 1.0, clip_groups(units, weights, 1.0, squares=squares)


@pytest.mark.parametrize("kind", ["weights", "norms", "counts", "products"])
def test_groups_add_limit_at_most_and_reach_it(kind):
    z, cells, weights, units = made()
    vectors, limit, clipped = clipped_by(kind, z, cells, weights, units)
    of_groups = np.eye(units.n_units)[units.codes].T
    norms, before = (np.linalg.norm(of_groups @ (each[:, None] * vectors), axis=1) for each in (clipped, weights))
    assert norms.max() <= limit < before.max()
    np.testing.assert_allclose(norms, np.minimum(before, limit), rtol=1e-9)
    alone = np.bincount(units.codes)[units.codes] == 1
    np.testing.assert_array_equal(clipped[alone], weights[alone])


def test_weights_without_groups_stay():
    assert clip_groups(None, weights := np.ones(3), 1.0) is weights


def test_squares_of_products_are_those_of_sums():
    z, _, weights, units = made()
    found, sizes = squares_of_products(units, lambda rows: z[rows], WIDTH, weights), np.bincount(units.codes)
    for group in np.flatnonzero(sizes > 1):
        rows = units.codes == group
        plain = np.linalg.norm((z[rows] * weights[rows, None]).T @ z[rows]) ** 2
        assert plain <= found[group] <= plain * (1.0 + 1e-9)


# --- what a neighboring table changes -----------------------------------------------------------------------------


def least_squares(k):
    return TargetMoments(UnitBall(np.zeros(2), 1.0), 0.2, by_position=False, rows_per_group=k)


QUERIES = {
    "vectors": (ClassMoments(np.array([(-1.0, 1.0)] * 2), 2), lambda rows, y: (rows, y)),
    "counts": (CellCounts((2, 2)), lambda rows, y: (((rows > 0.0).T.astype(int)),)),
    "products": (least_squares(None), lambda rows, y: (rows, 2.0 * y - 1.0)),
    "products of 3 rows": (least_squares(3), lambda rows, y: (rows, 2.0 * y - 1.0)),
}


@combined(kind=QUERIES, adjacency=["zero_out", "add_remove", "replace_one"], size=[1, 2, 100])
def test_group_changes_sum_by_sensitivity_at_most(kind, adjacency, size):
    """One group of equal rows far from the others, which gets weights of 0, leaves, or becomes the opposite one."""
    query, given = QUERIES[kind]
    rng = np.random.default_rng(size)
    rows, y, weights = rng.uniform(-0.7, 0.7, (50, 2)), rng.integers(0, 2, 50), rng.random(50)
    codes = rng.integers(0, 20, 50)

    def total(rows_of_one, targets_of_one, weight):
        n = len(rows_of_one)
        labels = np.append(codes, np.full(n, 20))
        units = read_units(labels, len(labels))
        (found := query.new_sum(adjacency)).add(
            *given(np.vstack([rows, rows_of_one]), np.append(y, targets_of_one)),
            np.append(weights, np.full(n, weight)),
            units=units,
        )
        return found.vector

    sensitivity = query.sensitivity(adjacency) * (2.0 if adjacency == "replace_one" else 1.0)
    greatest = 0.0
    for weight in (1.0, 0.2):
        one = total(np.full((size, 2), 1.0), np.ones(size, int), weight)
        if adjacency == "zero_out":
            others = [total(np.ones((size, 2)), np.ones(size, int), 0.0)]
        elif adjacency == "add_remove":
            others = [total(np.empty((0, 2)), np.empty(0, int), 1.0)]
        else:
            sizes = np.unique([1, size])
            others = [total(np.full((n, 2), x), np.full(n, t), 1.0) for n in sizes for x in (-1.0, 1.0) for t in (0, 1)]
            others += [total(np.tile([1.0, -1.0], (n, 1)), np.full(n, t), 1.0) for n in sizes for t in (0, 1)]
        greatest = max(greatest, *(np.linalg.norm(one - other) for other in others))
    assert greatest <= sensitivity * (1.0 + 1e-9)
    if size == 100:
        assert greatest > 0.7 * sensitivity, "the bound is nearly reached: nothing was clipped twice"
