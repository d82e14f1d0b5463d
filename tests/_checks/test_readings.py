"""Cells that are hard to read: none stops a fit that was paid for, and none is read as another one."""

import datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest
from combinations import over_rows

from skdp import DPLogisticRegression, PrivacyAccountant, tabular_pipeline
from skdp._checks.numbers import day_text, days_of, days_of_array, key_of, number_of
from skdp.preprocessing import DPTableVectorizer


class BrokenZone(datetime.tzinfo):
    """A time zone that says something of the cell."""

    def utcoffset(self, moment):
        raise RuntimeError("SECRET")


class BrokenNumber(int):
    """A number that says what it is."""

    def __float__(self):
        raise TypeError("SECRET")


class Twin(str):
    """Text that is equal to all other."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


ODD = {
    "large integer": 10**400,
    "before the first day": "0001-01-01T00:00:00+14:00",
    "after the last day": "9999-12-31T23:00:00-14:00",
    "broken zone": datetime.datetime(2020, 1, 1, tzinfo=BrokenZone()),
    "broken number": BrokenNumber(3),
    "time span of NumPy": np.timedelta64(3, "D"),
    "day far away": np.datetime64(10**9, "D"),
    "moment of pandas far away": pd.Timestamp(np.datetime64(10**16, "s")),
    "moment of pandas far away, with a zone": pd.Timestamp(np.datetime64(10**16, "s"), tz="Asia/Tokyo"),
    "time span of pandas far away": pd.Timedelta(np.timedelta64(10**17, "s")),
    "moment in attoseconds": np.datetime64(2**62, "as"),
    "surrogate": "\ud800",
}
SCHEMAS = ((0, 100), ["a"], "flag", ("2000-01-01", "2020-01-01"), {"kind": "ordinal", "categories": ["a", "b"]})


def column(*cells):
    made = np.empty((len(cells), 1), object)
    made[:, 0] = cells
    return made


@over_rows("cell", ODD.values())
def test_every_cell_is_read(cell):
    for public in SCHEMAS:
        rows = DPTableVectorizer({"x0": public}, sparse_output=False).fit_transform(column("a", cell, None))
        assert np.isfinite(rows).all()
        assert (rows != 0).sum(axis=1).tolist() == [1, 1, 1]


FATAL = ("large integer", "before the first day", "broken number", "moment of pandas far away")


@over_rows("name", [*FATAL, "moment in attoseconds", "time span of pandas far away"])
def test_no_cell_stops_a_fit_after_the_charge(name):
    n = 60
    X = pd.DataFrame({"public": np.full(n, "a", object), "estimated": np.resize(["u", "v"], n)})
    X["public"] = X["public"].astype(object)
    X.at[3, "public"] = ODD[name]
    public = ("2000-01-01", "2020-01-01") if "day" in name or "moment" in name else (0, 100)
    model = DPLogisticRegression(classes=[0, 1], max_iter=2, accountant=PrivacyAccountant())
    pipe = tabular_pipeline(model, schema={"public": public, "estimated": "category"}).fit(X, np.resize([0, 1], n))
    assert pipe.predict(X).shape == (n,)


def test_numbers_and_days_beyond_what_can_be_held_are_at_the_end():
    assert (number_of(10**400), number_of(-(10**400)), number_of(-Fraction(10**400))) == (np.inf, -np.inf, -np.inf)
    assert days_of("0001-01-01T00:00:00+14:00") == days_of("0001-01-01") - 14 / 24
    assert days_of("9999-12-31T00:00:00-14:00") == days_of("9999-12-31") + 14 / 24
    assert key_of(np.datetime64(10**9, "D")) == str(np.datetime64(10**9, "D"))
    assert day_text(2.0**100) == day_text(2.0**99)


def test_moments_of_pandas_are_days_wherever_they_are():
    for moment in (np.datetime64(10**16, "s"), np.datetime64(-(10**16), "s")):
        assert days_of(pd.Timestamp(moment)) == days_of(moment)
    assert days_of(ODD["moment of pandas far away, with a zone"]) == days_of(np.datetime64(10**16, "s")) - 9 / 24


def test_no_cell_is_read_as_an_equal_one():
    rows = DPTableVectorizer({"x0": ["a", "b"]}, sparse_output=False).fit_transform(column(Twin("a"), Twin("b"), "b"))
    assert rows.argmax(axis=1).tolist() == [0, 1, 1]
    hour = datetime.datetime(2020, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))  # there twice, and equal
    days = DPTableVectorizer({"x0": ("2020-10-25T00:00", "2020-10-25T02:00")}, n_bins=2, sparse_output=False)
    assert days.fit_transform(column(hour, hour.replace(fold=1))).argmax(axis=1).tolist() == [0, 1]


LARGE = [2**53, 2**53 + 1, 10**17, 10**17 + 2]
AS_INTEGERS = {
    "array": lambda cells: np.array(cells)[:, None],
    "pandas with a gap": lambda cells: pd.DataFrame({"x0": pd.array([*cells, None], "Int64")}),
    "Arrow with a gap": lambda cells: pl.DataFrame({"x0": [*cells, None]}).to_arrow(),
}


@over_rows("form", AS_INTEGERS.values())
@over_rows("kind", [int, str])
def test_categories_of_large_integers_stay_apart(form, kind):
    schema = {"x0": {"kind": "category", "categories": list(map(kind, LARGE))}}
    codes = DPTableVectorizer(schema, numbers="codes").fit(form(LARGE)).transform(form(LARGE))
    assert np.asarray(codes)[:4, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "7s"])
def test_days_of_every_unit_of_numpy(unit):
    # NumPy 2.5 raises an OverflowError for what another unit cannot hold, and 2.4 for picoseconds.
    ends = np.array([-(2**63) + 1, 2**63 - 1]).astype(f"M8[{unit}]")
    assert np.isfinite(days_of_array(ends)).all()
    near = np.array(["1970-01-01T00:00:00", "NaT"], f"M8[{unit}]") + np.array([3], f"m8[{unit}]")
    seconds = (near[0].astype("M8[us]") - np.datetime64("1970-01-01", "us")).astype(int) / 10**6
    assert days_of_array(near)[0] == pytest.approx(seconds / 86_400, abs=1e-11)
    assert np.isnan(days_of_array(near)[1])
