"""Sums in which a group adds no more than a row may, in one block, in several, and as a group that ends later."""

import numpy as np
import pytest

from skdp._checks.groups import Units
from skdp.mechanisms import bounded_sum
from skdp.mechanisms.bounded_sum import VectorQuery
from skdp.naive_bayes import ClassMoments

QUERY = ClassMoments(np.array([(-1.0, 1.0)] * 2), 2)
ADJACENCIES = "zero_out", "add_remove", "replace_one"


class Vectors(VectorQuery):
    width = 2

    def __init__(self, row_limit):
        self.row_limit = row_limit

    def vectors(self, rows):
        return rows


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_groups_in_several_blocks_add_their_clipped_sums(monkeypatch, adjacency):
    monkeypatch.setattr(bounded_sum, "_BLOCK_ROWS", 16)
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.r_[np.zeros(50, int), rng.integers(1, 20, 100), 20])
    rows, targets, weights = rng.uniform(-1.2, 1.2, (151, 2)), rng.integers(0, 2, 151), rng.random(151)
    found = QUERY.new_sum(adjacency)
    found.add(rows, targets, weights, units=Units(codes, 21))
    expected, (norm, most) = np.zeros((2, 5)), QUERY.group_limits(adjacency)
    for code in range(21):
        chosen, held = codes == code, np.zeros((2, 5))
        np.add.at(held, targets[chosen], weights[chosen, None] * QUERY.vectors(rows[chosen], targets[chosen]))
        expected += held * min(1.0, norm / np.linalg.norm(held), most / weights[chosen].sum())
    np.testing.assert_allclose(found.vector.reshape(2, 5), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_group_that_ends_later_is_clipped_like_a_whole_one(adjacency):
    rows, targets, weights = np.ones((10, 2)), np.arange(10) % 2, np.linspace(0.0, 1.0, 10)
    whole, later = QUERY.new_sum(adjacency), QUERY.new_sum(adjacency)
    whole.add(rows, targets, weights, units=Units(np.zeros(10, np.int64), 1))
    for part in (slice(4), slice(4, 10)):
        later.add(rows[part], targets[part], weights[part])
    later.clip()
    np.testing.assert_allclose(later.vector, whole.vector, rtol=1e-12)


@pytest.mark.parametrize("row_limit", [1e-100, 1e100])
def test_group_is_clipped_at_extreme_norms(row_limit):
    found = Vectors(row_limit).new_sum("zero_out")
    found.add(np.full((10, 2), row_limit / np.sqrt(2.0)), units=Units(np.zeros(10, np.int64), 1))
    assert np.linalg.norm(found.vector / row_limit) == pytest.approx(1.0)


@pytest.mark.parametrize("row_limit", [1e-160, 1e160, np.inf, np.nan])
def test_norm_whose_square_is_not_normal_is_rejected(row_limit):
    with pytest.raises(ValueError, match="row_limit"):
        Vectors(row_limit).new_sum("zero_out")
