"""Rows of a formula: what they hold, that they are public steps, and what is rejected."""

import pickle

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPLinearRegression, PrivacyAccountant, TableSchema, check_pipeline
from skdp.preprocessing import formula_rows

SCHEMA = {"age": (20, 60), "job": ["clerk", "nurse", "none"], "member": "flag", "pay": (0.0, 10.0)}


def people(n=500, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 61, n),
            "job": rng.choice(SCHEMA["job"], n),
            "member": rng.random(n) < 0.5,
            "pay": rng.uniform(0, 10, n),
        }
    )


def plain(frame):
    """age * job + member, by hand."""
    age = (frame["age"].to_numpy() - 40) / 20
    nurse, none = (frame["job"].to_numpy() == each for each in ("nurse", "none"))
    return np.c_[age, nurse, none, frame["member"], age * nurse, age * none]


def test_rows_are_numbers_indicators_and_their_products():
    rows = formula_rows("age * job + member", SCHEMA)
    frame = people()
    made = rows.step.fit_transform(frame)
    np.testing.assert_allclose(made, plain(frame))
    jobs = ["job[nurse vs clerk]", "job[none vs clerk]"]
    assert rows.names == ["age", *jobs, "member", *(f"age:{each}" for each in jobs)]
    assert list(rows.step.get_feature_names_out()) == rows.names
    np.testing.assert_array_equal(rows.scales, [20, 1, 1, 1, 20, 20])
    assert rows.data_norm == 2.0
    lengths = np.linalg.norm(made, axis=1)
    assert lengths.max() <= rows.data_norm
    corner = pd.DataFrame({"age": [1e9], "job": ["nurse"], "member": [True]})  # beyond its bounds
    assert np.linalg.norm(rows.step.transform(corner)) == rows.data_norm


@over_rows(
    "formula, names",
    [
        ("age*member+member", ["age", "member", "age:member"]),
        ("age:member + member + age", ["member", "age", "age:member"]),
        ("pay * age * member", ["pay", "age", "member", "pay:age", "pay:member", "age:member", "pay:age:member"]),
        ("age * age", ["age"]),
        (".", ["age", "job[nurse vs clerk]", "job[none vs clerk]", "member", "pay"]),
        ("log(age) + sqrt( pay ) + sqrt(pay)", ["log(age)", "sqrt(pay)"]),
        ("age ** 2*member", ["age**2", "member", "age**2:member"]),
        (
            "poly(age,2) * member",
            ["poly(age, 2)[1]", "poly(age, 2)[2]", "member", "poly(age, 2)[1]:member", "poly(age, 2)[2]:member"],
        ),
    ],
)
def test_formulas_are_read_as_usual(formula, names):
    assert formula_rows(formula, SCHEMA).names == names


FUNCTIONS = {
    "log(age)": (np.log, 20.0, 60.0),
    "sqrt(age)": (np.sqrt, 20.0, 60.0),
    "log1p(pay)": (np.log1p, 0.0, 10.0),
    "exp(pay)": (np.exp, 0.0, 10.0),
    "pay**3": (lambda x: x**3, 0.0, 10.0),
}


@over_rows("text", FUNCTIONS)
def test_a_function_of_a_number_fills_its_own_bounds(text):
    function, low, high = FUNCTIONS[text]
    rows = formula_rows(text, SCHEMA)
    cells = pd.DataFrame({"age": [-5.0, 20.0, 33.3, 60.0, 1e300], "pay": [-np.inf, 0.0, 3.3, 10.0, np.inf]})
    values = function(np.array([low, low, 33.3 if low else 3.3, high, high]))
    unit = (values.max() - values.min()) / 2.0
    np.testing.assert_allclose(rows.scales, [unit])
    np.testing.assert_allclose(rows.step.transform(cells)[:, 0], (values - values.min()) / unit - 1.0, atol=1e-12)
    assert (np.abs(rows.step.transform(cells)) <= 1.0).all()
    assert rows.data_norm == 1.0


def test_even_power_of_bounds_around_zero_begins_at_zero():
    rows = formula_rows("gain**2", {"gain": (-3.0, 1.0)})
    made = rows.step.transform(pd.DataFrame({"gain": [-3.0, 0.0, 1.0]}))
    np.testing.assert_allclose(made[:, 0], [1.0, -1.0, 2.0 / 9.0 - 1.0])


def test_a_curve_is_a_sum_of_polynomials_that_are_no_longer_than_their_number():
    rows, frame = formula_rows("poly(age, 3) * member", SCHEMA), people(300)
    made = rows.step.transform(frame)
    place = (frame["age"].to_numpy() - 40) / 20
    curves = np.c_[place, (3 * place**2 - 1) / 2, (5 * place**3 - 3 * place) / 2]
    np.testing.assert_allclose(made[:, :3], curves, atol=1e-12)
    np.testing.assert_allclose(made[:, 4:], curves * frame["member"].to_numpy()[:, None], atol=1e-12)
    end = pd.DataFrame({"age": [60], "member": [True]})  # where all are 1
    assert np.linalg.norm(rows.step.transform(end)) == pytest.approx(rows.data_norm)
    assert rows.data_norm**2 == pytest.approx(7.0)
    np.testing.assert_array_equal(rows.scales, np.ones(7))


def test_what_each_row_becomes_depends_on_no_other():
    import polars as pl

    text = "age * job + member + pay + exp(pay) + log(age) + age**5 + poly(age, 4)"
    rows, frame = formula_rows(text, TableSchema(SCHEMA)), people(61)
    whole = rows.step.transform(frame)
    np.testing.assert_array_equal(rows.step.transform(frame[::-1]), whole[::-1])
    np.testing.assert_array_equal(np.vstack([rows.step.transform(frame[k : k + 1]) for k in range(61)]), whole)
    np.testing.assert_array_equal(rows.step.transform(pl.from_pandas(frame)), whole)
    for copied in (pickle.loads(pickle.dumps(rows.step)), clone(rows.step)):
        np.testing.assert_array_equal(copied.transform(frame), whole)


def test_it_is_a_public_step_and_coefficients_are_those_of_the_columns():
    frame = people(20_000)
    rows = formula_rows("age * member", SCHEMA)
    y = 5.0 + 0.1 * (frame["age"] - 40) + 2.0 * frame["member"] - 0.05 * (frame["age"] - 40) * frame["member"]
    model = DPLinearRegression((0, 10), delta=1e-6, data_norm=rows.data_norm, inference=True)
    assert check_pipeline(make_pipeline(rows.step, model)) == []
    fitted = make_pipeline(rows.step, model).fit(frame, y)[-1]
    table = fitted.summary(names=rows.names, scales=rows.scales).to_frame()
    truth = [0.1, 2.0, -0.05, 5.0]
    assert (table["doubt"] == "").all()
    assert (np.abs(table["coef"] - truth) < 5.5 * table["std_err"]).all()


@over_rows(
    "changed, said",
    [
        ({"job": "spy"}, "Column 'job' has missing values, or values that `schema` does not list"),
        ({"age": np.nan}, "Column 'age' has missing values"),
        ({"member": "maybe"}, "Column 'member' has missing values"),
    ],
)
def test_cells_that_the_schema_does_not_list_are_rejected_before_any_charge(changed, said):
    rows, frame, ledger = formula_rows("age + job + member", SCHEMA), people(60).astype(object), PrivacyAccountant()
    frame.loc[3, list(changed)] = list(changed.values())
    model = make_pipeline(rows.step, DPLinearRegression((0, 1), data_norm=rows.data_norm, accountant=ledger))
    with pytest.raises(ValueError, match=said) as rejection:
        model.fit(frame, np.zeros(60))
    assert "spy" not in str(rejection.value)
    assert "maybe" not in str(rejection.value)
    assert ledger.get_epsilon(1e-6) == 0.0
    with pytest.raises(ValueError, match="not have the column 'age'"):
        rows.step.transform(frame.drop(columns="age"))


@over_rows(
    "formula, said",
    [
        ("age + height", "'height', which `schema` does not declare"),
        ("log(pay)", "undefined at a bound of column 'pay'"),
        ("exp(wealth)", "undefined at a bound"),
        ("tan(age)", r"'tan\(age\)'. Use log\(x\)"),
        ("poly(age)", "poly"),
        ("poly(age, 1)", "k from 2 to 9"),
        ("age**10", "k from 2 to 9"),
        ("log(job)", "'job' is not numeric"),
        ("exp(log(age))", "must contain only column names"),
        ("age^2", "Use x"),
        ("age + offset(log(time))", "the exposure as `sample_weight`"),
        ("1 + age", "must contain only column names"),
        ("age:member", "requires its lower-order terms"),
        ("born", "must have numeric bounds or at least two categories"),
    ],
)
def test_formulas_of_what_is_not_public_are_rejected(formula, said):
    schema = {**SCHEMA, "born": ("1990-01-01", "2000-01-01"), "wealth": (0, 1e4)}
    with pytest.raises(ValueError, match=said):
        formula_rows(formula, schema)
    with pytest.raises(TypeError, match=r"formula[=`]"):
        formula_rows(3, schema)


@over_rows("read", [lambda pipe: pipe.fit(people(), np.zeros(500)), check_pipeline])
def test_all_of_it_in_a_pipeline_is_told_from_its_step(read):
    pipe = make_pipeline(formula_rows("age", SCHEMA), DPLinearRegression((0, 50), data_norm=1.0))
    with pytest.raises(
        TypeError,
        match=r"^The result of formula_rows is not a pipeline step\. Use its attribute \.step in the pipeline\.$",
    ):
        read(pipe)
