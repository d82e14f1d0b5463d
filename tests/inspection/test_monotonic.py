"""Curves that are made monotone: the closest ones, nothing else changed, and never further from a monotone truth."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, DPRidge, allocate_budget, tabular_pipeline
from skdp.inspection import column_effects, make_monotonic
from skdp.preprocessing import DPTableVectorizer

SCHEMA = {
    "age": (18, 90),
    "grade": {"kind": "ordinal", "categories": ["low", "middle", "high"]},
    "town": ["A", "B"],
}


def people(n=1500):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "grade": rng.choice(["low", "middle", "high"], n),
            "town": rng.choice(["A", "B"], n),
        }
    )
    return table, (table["age"] + rng.normal(0, 40, n) > 55).astype(int)


@pytest.fixture(scope="module")
def model():
    linear = DPLogisticRegression(classes=[0, 1])
    return tabular_pipeline(linear, schema=SCHEMA, epsilon=0.3, random_state=0).fit(*people())


@pytest.mark.parametrize("direction", [1, -1])
def test_the_curve_is_monotone_and_nothing_else_changes(model, direction):
    made = make_monotonic(model, {"age": direction, "town": 0})
    before, after = column_effects(model), column_effects(made)
    n = before[0].n_ordered[0]
    assert (np.diff(before[0].effect[:n]) * direction < 0).any()  # noise made it go back and forth
    assert (np.diff(made[-1].coef_[0, :n]) * direction >= 0).all()
    assert np.allclose(np.diff(after[0].effect[:n]), np.diff(made[-1].coef_[0, :n]))
    assert np.array_equal(made[-1].coef_[0, n:], model[-1].coef_[0, n:])
    assert made[-1].coef_[0, :n].mean() == pytest.approx(model[-1].coef_[0, :n].mean())
    assert (made.epsilon_, made[-1].intercept_[0]) == (model.epsilon_, model[-1].intercept_[0])
    ages = pd.DataFrame({"age": np.linspace(18, 90, 50), "grade": "low", "town": "A"})
    assert (np.diff(made.predict_proba(ages)[:, 1]) * direction >= 0).all()


def test_it_comes_no_further_from_any_monotone_curve(model):
    n, rng = column_effects(model)[0].n_ordered[0], np.random.default_rng(3)
    given, made = (each[-1].coef_[0, :n] for each in (model, make_monotonic(model, {"age": 1})))
    for _ in range(50):
        truth = np.sort(rng.normal(size=n))
        assert np.linalg.norm(made - truth) <= np.linalg.norm(given - truth) + 1e-12


def test_a_scaled_number_keeps_its_sign_or_is_flat():
    table, y = people()
    ridge = tabular_pipeline(DPRidge(), schema=SCHEMA, y_bounds=(0, 1), epsilon=20.0, random_state=0).fit(table, y)
    assert ridge[0].numbers_ in ("scale", "both")
    place = list(ridge[0].get_feature_names_out()).index("age")
    assert ridge[-1].coef_[place] > 0
    up, down = (make_monotonic(ridge, {"age": direction}) for direction in (1, -1))
    assert up[-1].coef_[place] == ridge[-1].coef_[place]
    assert down[-1].coef_[place] == 0.0
    assert down[-1].coef_.shape == ridge[-1].coef_.shape


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"height": 1}, ValueError, "`monotonic_cst` has 'height', which is not a column"),
        ({"age": 2}, ValueError, "`monotonic_cst` of 'age' must be 1, -1 or 0, got 2"),
        ({"age": True}, ValueError, "`monotonic_cst` of 'age' must be 1, -1 or 0, got True"),
        ({"town": 1}, ValueError, "'town' is not supported: the column is a category"),
        ([1, 0, 0], TypeError, "must be a dict"),
    ],
)
def test_constraints_are_checked(model, given, error, message):
    with pytest.raises(error, match=message):
        make_monotonic(model, given)


def test_a_table_of_other_coefficients_is_not_shown():
    table, _ = people()
    steps = make_pipeline(DPTableVectorizer(SCHEMA), DPRidge(y_bounds=(0, 100), inference=True, random_state=0))
    model = allocate_budget(steps, epsilon=5.0).fit(table, table["age"])
    model[-1].summary()
    with pytest.raises(ValueError, match="summary is not available"):
        make_monotonic(model, {"age": 1})[-1].summary()
    model[-1].summary()
