"""Public parameters: one line with parameter, value and constraint; a wrong type is not a wrong value."""

import decimal
import fractions
import math

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows

from skdp import DPPCA, DPGridSearchCV, DPLogisticRegression
from skdp._checks import parameters
from skdp._checks.parameters import WrongTypeError, check_choice, check_count, check_real
from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    PrivacyAccountant,
    SelfComposedDpEvent,
    calibrate_jointly,
    calibrate_noise_multiplier,
    get_epsilon,
)
from skdp.accounting.events.specifications import read_real, read_whole, show

ROWS = np.full((100, 40), 424242.125)


@over_rows("value", [1, 1.5, np.float32(1.5), np.int8(1), fractions.Fraction(3, 2)])
def test_real_numbers(value):
    number = check_real("name", value, above=0, below=2, constraint="another")
    assert type(number) is float
    assert number == value


@over_rows("value", [0, 2, -1, math.nan, np.float32("nan"), math.inf, -math.inf, 10**400])
def test_numbers_out_of_range(value):
    with pytest.raises(ValueError, match=r"^`name` must be another, got .*\.$") as caught:
        check_real("name", value, above=0, below=2, constraint="another")
    assert type(caught.value) is ValueError


WRONG = ["1", b"1", True, np.True_, 1j, None, [1.0], (1,), {}, np.ones(1), np.array(1.0), decimal.Decimal(1), float,
         ROWS, ROWS.tolist(), pd.DataFrame(ROWS), pd.Series(ROWS[0])]  # fmt: skip


@over_rows("value", WRONG)
@over_rows("check", [check_real, check_count])
def test_wrong_types(check, value):
    with pytest.raises(WrongTypeError, match=r"^`name` must be another, got .* of type \w+\.$") as caught:
        check("name", value, constraint="another")
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert "424242" not in str(caught.value)


def test_counts():
    for value in (1, np.uint8(1), np.int64(1)):
        assert type(check_count("name", value, constraint="")) is int
    for value in (1.0, 1.5, math.nan, np.float64(2)):
        with pytest.raises(WrongTypeError, match="of type float"):
            check_count("name", value, constraint="")
    with pytest.raises(ValueError, match=r"`name` must be .*, got 0") as caught:
        check_count("name", 0, constraint="")
    assert type(caught.value) is ValueError


def test_choices():
    assert check_choice("name", "a", ("a", "b")) == "a"
    for value in ("c", None, ["a"], ROWS, 1):
        with pytest.raises(ValueError, match=r"^`name` must be one of 'a', 'b', got .*\.$") as caught:
            check_choice("name", value, ("a", "b"))
        assert "424242" not in str(caught.value)


@over_rows("name", ["epsilon", "delta"])
@over_rows("value", ["1", True])
def test_a_budget_of_a_wrong_type(name, value):
    y = np.arange(100) % 2
    for model in (
        DPLogisticRegression(classes=[0, 1]),
        DPPCA(),
        DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {}),
    ):
        with pytest.raises(TypeError, match=f"^`{name}` must be a.*, got {value!r} of type {type(value).__name__}"):
            model.set_params(**{name: value}).fit(ROWS, y)


G = GaussianDpEvent(1.0)
ACCOUNTING = {
    "epsilon of an event": lambda value: EpsilonDeltaDpEvent(value, 0.0),
    "count": lambda value: SelfComposedDpEvent(G, value),
    "event": lambda value: SelfComposedDpEvent(value, 2),
    "delta": lambda value: get_epsilon(G, value),
    "method": lambda value: get_epsilon(G, 1e-5, method=value),
    "budget": lambda value: calibrate_noise_multiplier(GaussianDpEvent, value, 1e-5),
    "fractions": lambda value: calibrate_jointly([GaussianDpEvent], 1.0, 1e-5, [value]),
    "budget of an accountant": lambda value: PrivacyAccountant(value, 1e-5),
    "unit": lambda value: PrivacyAccountant(1.0, 1e-5, unit=value),
    "label": lambda value: PrivacyAccountant().spend(G, value),
}


@over_rows("name", ACCOUNTING)
def test_accounting_rejects_in_one_line_without_private_values(name):
    """Rows given in the place of a parameter are private: of what is no scalar, its type is all that is shown."""
    for value in (ROWS, ROWS.tolist(), pd.DataFrame(ROWS), tuple(ROWS[0]), True):
        with pytest.raises((TypeError, ValueError), match=r"must be .*, got ") as caught:
            ACCOUNTING[name](value)
        assert type(caught.value) in (TypeError, ValueError)
        assert "\n" not in str(caught.value)
        assert "424242" not in str(caught.value)
        assert ("True" if value is True else f"<{type(value).__name__}>") in str(caught.value)


@over_rows("value", [*WRONG, 1, 1.5, -math.inf, np.uint8(3), np.float32(2.5), fractions.Fraction(1, 3),
                                   10**400, "a\nb"])  # fmt: skip
def test_estimators_and_accounting_read_and_show_values_alike(value):
    """Accounting stands alone, so the two are written twice: neither may drift from the other."""
    assert parameters.show(value) == show(value)
    for read, check in ((read_real, check_real), (read_whole, check_count)):
        number = read(value)
        try:
            assert check("name", value, at_least=-math.inf, constraint="") == number
        except WrongTypeError:
            assert number is None
        except ValueError:
            assert math.isinf(number)
