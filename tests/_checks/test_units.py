"""Labels of units: equal by key whatever other rows hold, and rejected in one line without a label."""

import datetime
import enum
import fractions
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from combinations import over_rows

from skdp._checks.groups import Units, read_units, split_labels


class Home(enum.Enum):
    A = 1
    B = 2
    C = 3


class Numbered:
    """Equal by value, with a text of its own each."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == other.number

    def __hash__(self):
        return hash(self.number)


class Placed:
    """Equal by its place in memory."""


def partition(groups, n):
    units = read_units(groups, n)
    assert units.codes.shape == (n,)
    assert sorted(set(units.codes.tolist())) == list(range(units.n_units))
    return [frozenset(np.flatnonzero(units.codes == u).tolist()) for u in dict.fromkeys(units.codes.tolist())]


MIXED = [frozenset({0, 2}), frozenset({1}), frozenset({3})]
SECRET = "SECRET-4711"


@over_rows("groups", [
    np.array([7, 8, 7, 9]),
    np.array([7.5, 8, 7.5, -0.0]),
    np.array([2**63, 1, 2**63, 2**63 + 1], np.uint64),
    [1, "a", 1.0, 2.5],
    np.array([b"x", b"y", b"x", b"z"]),
    [b"x", "y", "x", "z"],
    [("a", 1), ("a", 2), ("a", 1), ("b", 1)],
    [True, False, True, "true"],
    [Decimal(2**60), fractions.Fraction(1, 2), 2**60, 2**60 + 1],
    [Numbered(1), Numbered(2), Numbered(1), Numbered(3)],
    [frozenset([0, 8]), frozenset([0]), frozenset([8, 0]), frozenset()],
    [Home.A, Home.B, Home.A, Home.C],
    pd.Series([(1, "a"), (1, "b"), (np.int64(1), "a"), (2, "a")]),
    pd.Series(pd.period_range("2020-01", periods=3, freq="M")[[0, 1, 0, 2]]),
    pd.Series(["x", "y", "x", "z"], dtype=pd.CategoricalDtype(list("wxyzv"))),
    pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01", "2021-01-01"]).tz_localize("Europe/Berlin"),
    pd.Series([1, 2, 1, 3], dtype="Int64"),
    pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01", "2021-01-01"]),
    pa.array(["x", "y", "x", "z"]).dictionary_encode(),
    np.array([[7], [8], [7], [9]]),
])  # fmt: skip
def test_rows_of_equal_labels_are_of_one_unit(groups):
    if isinstance(groups, list) and isinstance(groups[0], tuple):
        series = pd.Series(groups)
        groups = series
    assert partition(groups, 4) == MIXED


@over_rows("other", [1.5, "a", True, 2**70, datetime.date(2020, 1, 1)])
def test_another_row_changes_no_unit(other):
    groups = [1, 2, 1, 2**53 + 1, 2**53]
    before = partition(groups, 5)
    after = partition([*groups, other], 6)
    assert after[: len(before)] == before


@over_rows(("groups", "said"), [
    ([SECRET, None, "b"], "`groups` contains missing values"),
    (np.array([1.0, np.nan, 4711]), "`groups` contains missing values"),
    (pd.Series([1, None, 4711], dtype="Int64"), "`groups` contains missing values"),
    (pa.array([SECRET, None, "b"]), "`groups` contains missing values"),
    ([SECRET, "b"], "`groups` must have shape (3,), one group identifier per row of X, got (2,)"),
    (np.array([[SECRET, "a"], ["b", "c"], ["d", "e"]]), "one group identifier per row of X, got (3, 2)"),
    ([[SECRET], ["b", "c"], ["d"]], "groups must be a numeric array"),
    ([{SECRET: 1, "a": 2}, {"a": 2, SECRET: 1}, {}], "objects that cannot be compared"),
    ([Placed(), Placed(), Placed()], "objects that cannot be compared"),
    ((label for label in (SECRET, "a", "b")), "one group identifier per row of X, got ()"),
    (SECRET.split("-")[0], "is not a column of X"),
])  # fmt: skip
def test_bad_labels_are_rejected_in_one_line_without_a_label(groups, said):
    with pytest.raises(ValueError) as rejected:
        read_units(split_labels(np.zeros((3, 2)), groups)[1], 3)
    message = str(rejected.value)
    assert said in message
    assert "\n" not in message
    assert "4711" not in message
    assert SECRET not in message
    assert rejected.value.__context__ is None


@over_rows("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_named_column_is_taken_out_of_a_frame(make):
    frame = make({"age": [1.0, 2.0, 3.0], "home": ["x", "y", "x"]})
    rest, labels = split_labels(frame, "home")
    assert list(rest.columns if make is not pa.table else rest.column_names) == ["age"]
    assert read_units(labels, 3).codes.tolist() == [0, 1, 0]
    assert "codes" not in repr(read_units(labels, 3))
    assert read_units(pd.Series([1, 2], name="home"), 2).unit == "home"
    assert read_units([1, 2], 2).unit == "group"


def test_a_frame_of_labels_alone_is_rejected():
    with pytest.raises(ValueError, match=r"groups='home' is the only column of X"):
        split_labels(pd.DataFrame({"home": [1, 2]}), "home")


def test_labels_whose_index_is_another_one_are_rejected():
    """By their places they would protect other rows together than those of one unit."""
    frame, labels = pd.DataFrame({"age": [1.0, 2.0, 3.0]}), pd.Series([1, 2, 1], name="home")
    assert split_labels(frame, labels)[1] is labels
    turned = labels.iloc[[2, 0, 1]]
    assert split_labels(frame.to_numpy(), turned)[1] is turned
    with pytest.raises(ValueError, match="`groups` has a different index than X"):
        split_labels(frame, turned)


def test_a_part_of_the_rows_has_its_own_numbers():
    units = Units(np.array([4, 1, 4, 0, 2, 3]), 5, "home").take(np.array([0, 2, 4]))
    assert (units.codes.tolist(), units.n_units, units.name) == ([1, 1, 0], 2, "home")
