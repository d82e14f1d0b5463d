"""Columns that a query loses: named by releases alone, with a remedy that gives them back."""

import datetime
import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from combinations import over_rows
from replay import assert_all_else_is_equal, replay
from sklearn.pipeline import make_pipeline

import skdp
from skdp import AddRemove, DPLogisticRegression, DPTableVectorizer, PrivacyAccountant, TableSchema, allocate_budget
from skdp._checks.numbers import days_of, number_of
from skdp._checks.table import Table, as_days, as_numbers
from skdp.exceptions import QualityWarning

N = 4_000
RNG = np.random.default_rng(0)
AMOUNTS = RNG.integers(1, 10**6, N)
DAYS = [datetime.date(2000, 1, 1) + datetime.timedelta(days=int(k)) for k in RNG.integers(0, 9_000, N)]
RAW = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "written": [f"{v:,}" for v in AMOUNTS],
        "dollars": [f"${v:,}.50" for v in AMOUNTS],
        "decimal": [Decimal(int(v)) for v in AMOUNTS],
        "object": pd.Series(AMOUNTS, dtype=object),
        "day": DAYS,
        "iso": [str(day) for day in DAYS],
        "sql": [f"{day} 12:00:00" for day in DAYS],
        "german": [day.strftime("%d.%m.%Y") for day in DAYS],
        "id": [f"p{i}" for i in range(N)],
        "postcode": RNG.integers(10_000, 10_500, N).astype(str),
        "job": RNG.choice(["clerk", "nurse"], N),
    }
)
LOST = [name for name in RAW if name not in ("age", "job")]
KINDS = {
    **dict.fromkeys(["written", "dollars", "decimal", "object"], "number"),
    **dict.fromkeys(["day", "iso", "sql"], "date"),
    "german": {"kind": "date", "format": "%d.%m.%Y"},
    "id": "drop",
    "postcode": "drop",
}


def fitted(table, schema=None, **parameters):
    """A vectorizer, and what its fit tells."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        made = DPTableVectorizer(schema, **parameters).fit(table)
    return made, [str(each.message) for each in caught if issubclass(each.category, QualityWarning)]


@pytest.fixture(scope="module")
def said_nothing():
    return fitted(RAW, random_state=0)


def test_every_lost_column_is_named_with_a_remedy(said_nothing):
    _, (message,) = said_nothing
    assert message.startswith("No information in columns " + ", ".join(map(repr, LOST)) + ": ")
    assert "TableSchema({'written': 'drop'}, others='estimate')" in message
    assert "\n" not in message


def test_the_remedy_gives_them_back():
    made, told = fitted(RAW, TableSchema(KINDS, others="estimate"))
    assert told == []
    for name in ("written", "dollars", "decimal", "object"):
        low, high = made.schema_[name].bounds
        assert low < 10**5 < 9 * 10**5 < high
    for name in ("day", "iso", "sql", "german"):
        low, high = made.schema_[name].bounds
        assert low < days_of("2002-01-01") < days_of("2022-01-01") < high
    assert TableSchema.from_json(made.schema_.to_json()) == made.schema_


def test_the_share_of_rare_categories_and_of_gaps_is_told_to_the_noise():
    n = 20_000
    rare = np.where(np.arange(n) % 10 < 7, np.arange(n).astype(str), "many")
    table = pd.DataFrame({"code": rare, "pay": np.where(np.arange(n) % 4, np.arange(n) * 1.0, np.nan)})
    made, (message,) = fitted(table, epsilon=3.0)
    assert message.startswith("More than half of column 'code' is 'other' or missing")
    for name, share in (("code", 0.3), ("pay", 0.75)):
        found = made._fitted_remains[name]
        assert 0.0 < found.deviation < 0.05
        assert abs(found.share - share) < 5.1 * found.deviation  # a false alarm of 3e-7 each


def test_an_array_of_objects_is_told_before_anything_is_charged():
    accountant = PrivacyAccountant()
    model = DPTableVectorizer(accountant=accountant)
    error = warnings.catch_warnings(action="error", category=QualityWarning)
    with error, pytest.raises(QualityWarning, match=r"X is an object array.*Pass the data frame"):
        model.fit(RAW[["age", "job"]].to_numpy())
    assert accountant.history == ()


def test_the_private_number_of_rows_is_not_told():
    for n in (60, 70):
        _, told = fitted(RAW[["age"]][:n], adjacency=AddRemove(65))
        assert any("65 rows are too few to estimate" in text for text in told)


# --- privacy ---

CHANGES = {
    "words for a number": {"written": "five", "dollars": "", "decimal": Decimal("NaN"), "object": "x"},
    "gaps": dict.fromkeys(["written", "object", "day", "iso", "job"]),
    "extremes": {"written": "9" * 300, "decimal": Decimal("1e400"), "object": 10**400, "iso": "0001-01-01"},
}


@over_rows("change", CHANGES)
def test_one_row_changes_no_warning_and_nothing_else(change):
    """With the same noisy counts forced, in the place of those of the neighbor."""
    one = RAW[:300].copy()
    other = one.copy()
    for name, cell in CHANGES[change].items():
        other.at[7, name] = cell

    def fit(table):
        return DPTableVectorizer(TableSchema(KINDS, others="estimate"), random_state=0).fit(table)

    first, second = replay(fit, one, other)
    assert any(category is QualityWarning for category, _ in first.messages)
    assert_all_else_is_equal(first, second)


# --- cells ---


@over_rows(
    "text, number",
    [
        ("-$5,000.50", -5000.5),
        ("$-5", -5),
        ("(1,234)", -1234),
        ("12.5 %", 12.5),
        ("\u20ac 1 234", 1234),
        ("1'234.5", 1234.5),
        ("\u2212 5", -5),
        ("1e3", 1000),
        ("1,234,567.89", 1234567.89),
    ],
)
def test_numbers_as_people_write_them(text, number):
    assert number_of(text) == number_of(text.encode()) == number


@over_rows("text", ["", "12,5", "1,23", "1,2345", "1,234 567", "--5", "-(5)", "1_000", "five", "$", "%", "1.2.3"])
def test_what_is_no_number_is_a_gap(text):
    assert math.isnan(number_of(text))


@over_rows("given", ["%H", "x", 5, "%m-%d"])
def test_a_format_without_a_year_is_rejected(given):
    with pytest.raises(
        ValueError, match=r"^Invalid schema of column 'a': invalid date format .*\. Use a strptime format"
    ):
        TableSchema({"a": {"kind": "date", "format": given}})


def test_declared_types_need_no_schema_and_objects_are_not_looked_at():
    arrow = pa.table({"d": pa.array([Decimal("1.5"), None]), "t": pa.array([datetime.date(1970, 1, 3), None])})
    for table in (arrow, pl.from_arrow(arrow), arrow.to_pandas(types_mapper=pd.ArrowDtype)):
        read = Table(table)
        assert [read.kind(0), read.kind(1)] == ["number", "date"]
        np.testing.assert_array_equal(as_numbers(read.cells(0)), [1.5, np.nan])
        np.testing.assert_array_equal(as_days(read.cells(1)), [2.0, np.nan])
    objects = Table(arrow.to_pandas())
    assert [objects.kind(0), objects.kind(1)] == ["category", "category"]


# --- settings ---


def test_frames_by_a_global_setting_lose_no_row_norm():
    table = RAW[["age", "job"]][:500]
    steps = make_pipeline(DPTableVectorizer({"age": (18, 90), "job": ["clerk", "nurse"]}),
                          DPLogisticRegression(classes=[0, 1], max_iter=2))  # fmt: skip
    with sklearn.config_context(transform_output="pandas"):
        pipe = allocate_budget(steps, 1.0).fit(table, np.arange(500) % 2)
        assert pipe[-1].data_norm_ == pytest.approx(math.sqrt(2))
        assert pipe.predict(table).shape == (500,)


PEOPLE = pd.DataFrame({"age": np.arange(3000) % 90 + 1.0, "pay": np.arange(3000) * 30.0, "gain": 0.0})
PEOPLE.loc[:149, "gain"] = 1000.0 + np.arange(150) * 600.0


@over_rows("bounds, told", [((0, 90_000), None), ((0, 90), "'pay'"), ((-90_000, 90_000_000), "'pay'")])
def test_schema_in_another_unit_shows_in_estimates_of_trees(bounds, told):
    """By noisy counts, and with the name that the table has; zeros of one row in twenty less are no unit."""
    schema = {"gain": (0, 100_000), "age": (0, 100), "pay": bounds}
    model = skdp.tabular_pipeline(schema=schema, classes=[0, 1], epsilon=3.0, random_state=0)
    model.set_params(model__n_estimators=10, model__max_iter=2)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(PEOPLE[["pay", "age", "gain"]], np.arange(3000) % 2)
    found = [str(each.message) for each in caught if "one of the bounds" in str(each.message)]
    assert [text.split(" lie within")[0] for text in found] == ([f"Nearly all values of {told}"] if told else [])
    assert ("one of the bounds" in " ".join(str(skdp.privacy_report(model)).split())) == bool(told)


COMMAS = pd.DataFrame({"cost": ["12,5", "7,25"] * 200, "job": ["cook", "nurse"] * 200})
PRICES = {"cost": (0, 100), "job": ["cook", "nurse"]}


def described(table, schema):
    return skdp.describe(table, schema=schema), []


def to_arrow(frame):
    return pl.from_pandas(frame).to_arrow()


def fitted_in_a_pipeline(table, schema):
    return skdp.tabular_pipeline(schema=schema).fit(table, [0, 1] * 200), []


@over_rows(
    "fit, form",
    [
        (fitted, pd.DataFrame.copy),
        (fitted, pl.from_pandas),
        (described, to_arrow),
        (fitted_in_a_pipeline, pl.from_pandas),
    ],
)
def test_text_with_numeric_bounds_warns_of_decimal_commas(form, fit):
    with warnings.catch_warnings(record=True, action="always") as caught:
        told = fit(form(COMMAS), PRICES)[1] + [str(each.message) for each in caught]
    (message,) = (each for each in told if "decimal comma" in each)
    assert message.startswith("Column 'cost' contains strings, but has ")
    assert "7,25" not in message


def test_text_with_numeric_bounds_warns_of_several_columns_in_the_plural():
    told = fitted(COMMAS.assign(fee=COMMAS["cost"]), {**PRICES, "fee": (0, 100)})[1]
    assert any(each.startswith("Columns 'cost', 'fee' contain strings, but have ") for each in told)
