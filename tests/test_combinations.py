"""Covering arrays miss no combination of a few values, and are the same each time."""

import inspect
import itertools

import pytest
from combinations import covering, over_rows


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


def test_over_rows_reports_all_rows_that_fail():
    @over_rows("divisor", [1, 0, 2])
    @over_rows(("dividend", "quotient"), [(0, 0), (6, 6)])
    def test(dividend, quotient, divisor):
        assert dividend / divisor == quotient

    with pytest.raises(AssertionError, match=r"2 of 3 rows failed") as error:
        test()
    text = str(error.value)
    assert "{'divisor': 0}" in text
    assert "2 of 2 rows failed" in text
    assert "{'dividend': 6, 'quotient': 6}" in text
    assert not inspect.signature(test).parameters
