"""Public parameters: one line with parameter, value and remedy; a wrong type is not a wrong value."""

from __future__ import annotations

import decimal
import fractions
import math

import numpy as np
import pandas as pd
import pytest

from skdp import DPPCA, DPGridSearchCV, DPLogisticRegression
from skdp._validation import WrongTypeError, check_choice, check_count, check_real, shown

ROWS = np.full((100, 40), 424242.125)


@pytest.mark.parametrize("value", [1, 1.5, np.float32(1.5), np.int8(1), fractions.Fraction(3, 2)], ids=repr)
def test_real_numbers(value):
    number = check_real("name", value, above=0, below=2, remedy="choose another")
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("value", [0, 2, -1, math.nan, np.float32("nan"), math.inf, -math.inf, 10**400], ids=repr)
def test_numbers_out_of_range(value):
    with pytest.raises(ValueError, match=r"^name=.* is out of range: choose another\.$") as caught:
        check_real("name", value, above=0, below=2, remedy="choose another")
    assert type(caught.value) is ValueError


WRONG = ["1", b"1", True, np.True_, 1j, None, [1.0], (1,), {}, np.ones(1), np.array(1.0), decimal.Decimal(1), float,
         ROWS, ROWS.tolist(), pd.DataFrame(ROWS), pd.Series(ROWS[0])]  # fmt: skip


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("check", [check_real, check_count])
def test_wrong_types(check, value):
    with pytest.raises(WrongTypeError, match=r"^name=.* is of the wrong type, \w+: choose another\.$") as caught:
        check("name", value, remedy="choose another")
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert "424242" not in str(caught.value)


def test_counts():
    for value in (1, np.uint8(1), np.int64(1)):
        assert type(check_count("name", value, remedy="")) is int
    for value in (1.0, 1.5, math.nan, np.float64(2)):
        with pytest.raises(WrongTypeError, match="wrong type, float"):
            check_count("name", value, remedy="")
    with pytest.raises(ValueError, match="name=0 is out of range") as caught:
        check_count("name", 0, remedy="")
    assert type(caught.value) is ValueError


def test_choices():
    assert check_choice("name", "a", ("a", "b")) == "a"
    for value in ("c", None, ["a"], ROWS, 1):
        with pytest.raises(ValueError, match=r"^name=.* is not known: use one of 'a', 'b'\.$") as caught:
            check_choice("name", value, ("a", "b"))
        assert "424242" not in str(caught.value)


def test_values_are_shown_in_one_line():
    assert shown("a\nb") == r"'a\nb'"
    assert shown(None) == "None"
    assert shown(ROWS) == "<ndarray>"


@pytest.mark.parametrize("name", ["epsilon", "delta"])
@pytest.mark.parametrize("value", ["1", True])
def test_a_budget_of_a_wrong_type(name, value):
    y = np.arange(100) % 2
    for model in (
        DPLogisticRegression(classes=[0, 1]),
        DPPCA(),
        DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {}),
    ):
        with pytest.raises(
            TypeError, match=f"^{name}={value!r} is of the wrong type, {type(value).__name__}: choose a"
        ):
            model.set_params(**{name: value}).fit(ROWS, y)
