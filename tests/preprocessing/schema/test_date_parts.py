"""Months and weekdays of a date: levels at no cost, within the norm of the row."""

import datetime

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows

from skdp import PrivacyAccountant
from skdp._checks.rows import row_norm_of
from skdp.preprocessing import DPTableVectorizer, TableSchema
from skdp.preprocessing.schema.column import DATE_PARTS, levels_of_days

SCHEMA = {"since": {"bounds": ("2015-01-01", "2024-12-31"), "features": ["weekday", "month"]}, "age": (0, 99)}


def visits(n=40, seed=0):
    """Visits on some day, or on none; a tenth before the bounds of the schema."""
    rng = np.random.default_rng(seed)
    days = pd.Series(pd.to_datetime("2014-01-01") + pd.to_timedelta(rng.integers(0, 4000, n), unit="D"))
    return pd.DataFrame({"since": days.mask(rng.random(n) < 0.1), "age": rng.integers(0, 99, n)})


def test_levels_are_those_of_the_calendar():
    days = np.arange(-200_000.0, 200_000.0, 37.0)
    dates = [datetime.date(1970, 1, 1) + datetime.timedelta(day) for day in days.tolist()]
    assert [*levels_of_days("month", days)] == [date.month - 1 for date in dates]
    assert [*levels_of_days("weekday", days)] == [date.weekday() for date in dates]
    assert [*levels_of_days("month", np.array([np.nan, 30.999, 31.0]))] == [13, 0, 1]  # in UTC, behind "other"
    assert [*levels_of_days("weekday", np.array([np.nan, -0.001, 0.0]))] == [8, 2, 3]


@over_rows("numbers", ["bins", "scale", "both"])
def test_each_part_has_one_entry_and_counts_in_the_norm(numbers):
    frame = visits()
    vectorizer = DPTableVectorizer(SCHEMA, numbers=numbers, sparse_output=False, dtype="float64").fit(frame)
    rows, names = vectorizer.transform(frame), [*vectorizer.get_feature_names_out()]
    assert row_norm_of(rows) == vectorizer.row_norm_ == np.sqrt(2 * (1 + (numbers == "both")) + 2)
    assert np.linalg.norm(rows, axis=1).max() <= vectorizer.row_norm_ * (1 + 1e-15)
    for part, levels in DATE_PARTS.items():
        columns = [names.index(f"since_{part}={level}") for level in (*levels, "other", "missing")]
        assert (rows[:, columns].sum(axis=1) == 1).all()
        assert (rows[:, columns[-1]] == frame["since"].isna()).all()
    month = rows[:, [names.index(f"since_month={level}") for level in DATE_PARTS["month"]]]
    dated = frame["since"].notna().to_numpy()
    assert [*month[dated].argmax(axis=1) + 1] == [*frame["since"][dated].dt.month]
    back = vectorizer.inverse_transform(rows)
    assert back.shape == frame.shape
    assert [each is None for each in back[:, 0]] == [*~dated]


def test_they_cost_nothing_and_a_row_changes_its_own():
    frame, ledger = visits(), PrivacyAccountant()
    vectorizer = DPTableVectorizer(SCHEMA, accountant=ledger, sparse_output=False).fit(frame)
    assert (vectorizer.epsilon_, len(ledger.history)) == (0.0, 0)
    other = frame.copy()
    other.loc[3, "since"] = pd.Timestamp("1999-12-31")
    rows, moved = vectorizer.transform(frame), vectorizer.transform(other)
    assert [*np.flatnonzero((rows != moved).any(axis=1))] == [3]
    assert row_norm_of(rows) == row_norm_of(moved)
    assert [*vectorizer.fit(other).get_feature_names_out()] == [*vectorizer.fit(frame).get_feature_names_out()]


def test_estimated_date_has_parts_at_the_same_cost():
    frame = visits(2_000)
    given = {"since": {"kind": "date", "features": ["month"]}, "age": (0, 99)}
    plain = DPTableVectorizer({**given, "since": "date"}, random_state=0).fit(frame)
    parts = DPTableVectorizer(given, random_state=0).fit(frame)
    assert parts.privacy_event_ == plain.privacy_event_
    assert parts.schema_["since"].edges == plain.schema_["since"].edges
    assert parts.schema_["since"].features == ("month",)
    assert parts.row_norm_ == np.sqrt(3)


def test_a_schema_of_parts_is_written_and_read():
    schema = TableSchema(SCHEMA)
    assert schema["since"].features == ("month", "weekday")  # in one order
    assert TableSchema.from_json(schema.to_json()) == schema == TableSchema(dict(schema.items()))
    assert "2015-01-01 to 2024-12-31, with month and weekday" in str(schema)
    assert schema != TableSchema({**SCHEMA, "since": SCHEMA["since"]["bounds"]})
    for wrong in (["day"], "month", [1], [["month"]]):
        with pytest.raises(
            ValueError,
            match=r"Invalid schema of column 'since': unknown features=.*\. Use a list of 'month', 'weekday'",
        ):
            TableSchema({"since": {"kind": "date", "features": wrong}})
    with pytest.raises(ValueError, match="'features' is not a valid key for the type 'number'"):
        TableSchema({"age": {"bounds": (0, 99), "features": ["month"]}})
