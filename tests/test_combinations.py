"""Covering arrays miss no combination of a few values, and are the same each time."""

import itertools

import pytest
from combinations import covering


@pytest.mark.parametrize("strength", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (9, 3, 2, 2, 2), (4, 1, 3), (5,)])
def test_any_few_values_meet(sizes, strength):
    axes = [range(size) for size in sizes]
    found = covering(axes, strength)
    for group in itertools.combinations(range(len(sizes)), min(strength, len(sizes))):
        met = {tuple(case[i] for i in group) for case in found}
        assert met == set(itertools.product(*(axes[i] for i in group)))
    assert found == covering(axes, strength)
    assert len(found) == len(set(found))


def test_there_are_fewer_cases_than_combinations():
    assert len(covering([range(9), range(3), range(2), range(2), range(2)], 2)) < 40
