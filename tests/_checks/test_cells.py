"""A cell is read for itself: what becomes of it depends on no other cell, and not on what its table is kept in."""

import datetime
import itertools
import math
import numbers
import uuid
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from combinations import over_combinations, over_rows
from replay import recording

from skdp import DPGridSearchCV, DPLogisticRegression, PrivacyAccountant, tabular_pipeline
from skdp._checks.numbers import key_of, numbers_of, shape_of, values_of
from skdp._checks.rows import check_classes, check_labels, check_targets, classes_of, encode_labels
from skdp._checks.table import Table, as_days, as_keys, as_numbers, as_truth
from skdp._checks.weights import check_weights
from skdp.model_selection import PrivateScore
from skdp.preprocessing import DPOneHotEncoder

NANOS = 123_456_789
MOMENT, SPAN = "2020-01-01T03:04:05.123456789", 3 * 86_400 * 10**9 + NANOS
ZONE = ZoneInfo("Europe/Paris")
NUMBERS = [
    0, 1, -1, 7, 2**53 + 1, 2**63, -(2**64), 10**400, True, False, 1.0, 0.5, -0.0, 1e300, 5e-324, math.inf,
    np.float16(0.1), np.float32(0.1), np.float64(0.1), np.longdouble(0.1), np.int8(1), np.int64(2**53 + 1),
    np.uint64(2**64 - 1), np.bool_(True), Decimal("1.10"), Decimal(2**53 + 1), Fraction(1, 3),
]  # fmt: skip
GAPS = [None, math.nan, pd.NA, pd.NaT, "", Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT"), np.timedelta64("NaT")]
WORDS = [
    "1", "1.0", "True", "yes", "abc", "é", "NaN", "2020-01-01", "2020-01-01T03:04:05+02:00", np.str_("1"), b"1",
    b"abc", b"\xc3\xa9", b"\xff", np.bytes_(b"1"), uuid.UUID(int=7), pd.Period("2020-01"), pd.Interval(0, 1),
]  # fmt: skip
TIMES = [
    datetime.date(2020, 1, 1), datetime.date(9999, 12, 31), datetime.datetime(1960, 1, 1, 3, 4, 5, 123456),
    datetime.datetime(2020, 1, 1, 3, 4, 5, 123456, tzinfo=ZONE), datetime.datetime.min, datetime.time(3, 4),
    datetime.timedelta(3, 5, 7), -datetime.timedelta.resolution, datetime.timedelta.max,
    np.datetime64("2020-01-01"), np.datetime64("9999-12-31"), np.datetime64(MOMENT), np.datetime64(-1, "ns"),
    np.datetime64(7, "as"), np.datetime64(10**16, "s"), np.datetime64(2020, "Y"), np.timedelta64(5, "ns"),
    np.timedelta64(5), np.timedelta64(5, "D"), np.timedelta64(10**9, "W"), np.timedelta64(-SPAN, "ns"),
    pd.Timestamp(MOMENT), pd.Timestamp(MOMENT, tz=ZONE), pd.Timedelta(SPAN, "ns"), pd.Timedelta(-1, "ns"),
]  # fmt: skip
KINDS = [*NUMBERS, *GAPS, *WORDS, *TIMES]


def objects(rows):
    made = np.empty((len(rows), 1), dtype=object)
    for i, row in enumerate(rows):
        made[i, 0] = row
    return made


CONTAINERS = {
    "list of lists": lambda cells: [[cell] for cell in cells],
    "list of arrays": lambda cells: [np.array([cell]) for cell in cells],
    "array of objects": objects,
    "frame of pandas": lambda cells: pd.DataFrame({"x0": pd.Series(cells, dtype=object)}),
}


def readings(table):
    """What the rows of the first column are as numbers, days, keys and truth values."""
    cells = Table(table).cells(0)
    codes, keys = as_keys(cells)
    words = [None if code < 0 else keys[code] for code in codes]
    columns = as_numbers(cells).tolist(), as_days(cells).tolist(), words, as_truth(cells).tolist()
    return [tuple(map(repr, row)) for row in zip(*columns, strict=True)]


@pytest.mark.filterwarnings("error")
@over_rows("container", CONTAINERS)
def test_no_cell_changes_how_another_one_is_read(container):
    make = CONTAINERS[container]
    alone = [readings([[cell]])[0] for cell in KINDS]
    for i, one in enumerate(KINDS):  # beside a fifth of the kinds, and in the next container beside another fifth
        for j in range((2 * i + list(CONTAINERS).index(container)) % 5, len(KINDS), 5):
            found = readings(make([one, KINDS[j]]))
            assert found == [alone[i], alone[j]], (one, KINDS[j])


@over_rows("gaps", [(), ("0",), ("False",), ("true", "1")])
def test_gaps_of_truth_values_do_not_depend_on_what_stores_them(gaps):
    """A gap elsewhere makes a library store them as objects."""
    values = [True, False, True]
    alone = as_truth(Table(pd.DataFrame({"x0": values})).cells(0), gaps).tolist()
    beside = as_truth(Table(pd.DataFrame({"x0": [*values, None]}, dtype=object)).cells(0), gaps).tolist()
    assert beside == [*alone, -1]


MOMENTS = ["1960-01-01T03:04:05.123456789", MOMENT, "2020-01-01"]
SPANS = [5, -5, SPAN, -SPAN, 86_400 * 10**9]


def every_storage(values):
    """Columns of several libraries that hold the same moments or spans in nanoseconds, and their cells."""
    series = pd.Series(values)
    yield values.reshape(-1, 1)
    yield series.to_frame("x0")
    yield series.astype(object).to_frame("x0")
    yield [[cell] for cell in values]
    yield [[cell] for cell in series]
    yield [values[i : i + 1] for i in range(len(values))]
    yield pl.DataFrame({"x0": pl.Series(values)})
    yield pa.table({"x0": pa.array(values)})
    yield pd.DataFrame({"x0": series.astype(pd.ArrowDtype(pa.array(values).type))})


@over_rows(
    "values", [np.array(MOMENTS, "M8[ns]"), np.array(SPANS, "m8[ns]")]
)  # fmt: skip
def test_nanoseconds_are_read_alike_whatever_stores_them(values):
    first, *others = (readings(table) for table in every_storage(values))
    assert all(other == first for other in others)


def test_spans_and_moments_of_every_unit_are_read_alike():
    for unit in ("us", "ms", "s", "m", "h", "D"):
        span, moment = np.timedelta64(60, "D"), np.datetime64("2020-03-01")
        expected = readings([[datetime.timedelta(60)]]), readings([[datetime.date(2020, 3, 1)]])
        cells = span.astype(f"m8[{unit}]"), moment.astype(f"M8[{unit}]")
        assert (readings([[cells[0]]]), readings([[cells[1]]])) == expected
        assert (readings(np.array([[cells[0]]])), readings(np.array([[cells[1]]]))) == expected
    assert readings([[datetime.timedelta(60)]]) == [("60.0", "nan", "'60'", "-1")]


# --- labels, targets, weights ---


def finite(cells):
    return [cell for cell in cells if math.isfinite(numbers_of(objects([cell]))[1][0, 0])]


BIG = [1, 2**53, 2**53 + 1]


@over_rows("as_given", [list, tuple, lambda cells: np.array(cells, dtype=object)])
@over_rows("one", [1, 1.0, True, np.float32(1.0), Decimal(1), Fraction(1), np.int8(1)])
def test_no_label_moves_another_one_to_another_class(one, as_given):
    classes = check_classes("classes", BIG)
    labels = check_labels(as_given([one] + [2**53 + 1] * 5), 6, classes=classes)
    assert encode_labels(labels, classes).tolist() == [0, 2, 2, 2, 2, 2]


def test_labels_of_any_two_kinds_are_encoded_as_alone():
    kinds = [cell for cell in finite(NUMBERS) if not isinstance(cell, np.longdouble)]
    classes = check_classes("classes", sorted({check_labels([cell] * 2, 2, classes=()).tolist()[0] for cell in kinds}))
    alone = [encode_labels(check_labels([cell], 1, classes=classes), classes)[0] for cell in kinds]
    for (i, one), (j, other) in itertools.product(enumerate(kinds), repeat=2):
        for given in ([one, other], (one, other), objects([one, other])[:, 0]):
            assert encode_labels(check_labels(given, 2, classes=classes), classes).tolist() == [alone[i], alone[j]]


def test_typed_labels_are_compared_by_value():
    classes = check_classes("classes", BIG)
    for labels in (np.array([2**53 + 1], np.uint64), np.array([2**53 + 1], np.int64)):
        assert encode_labels(labels, classes).tolist() == [2]
    with pytest.raises(ValueError, match="not in classes"):
        encode_labels(np.array([2**53 + 1]), check_classes("classes", [1.0, 2.0**53]))
    with pytest.raises(ValueError, match="above 2"):
        check_classes("classes", [0.5, 2**53 + 1])


def test_classes_read_from_mixed_labels_keep_their_values():
    labels = check_labels([1.0, 2**53 + 1, 2**53], 3)
    classes = classes_of(labels)
    assert classes.tolist() == [1, 2**53, 2**53 + 1]
    assert encode_labels(labels, classes).tolist() == [0, 2, 1]
    assert classes_of(check_labels([0, 1.0, 1], 3)).dtype == np.float64
    assert classes_of(check_labels([True, False], 2)).tolist() == [False, True]


def test_targets_and_weights_of_any_two_kinds_are_read_as_alone():
    kinds = finite(NUMBERS)
    for one, other in itertools.product(kinds, repeat=2):
        together = check_targets([one, other], 2)
        assert together.tolist() == [check_targets([one], 1)[0], check_targets([other], 1)[0]]
        if one >= 0 and other >= 0:
            alone = [check_weights([cell], 1, of_block=True)[0] for cell in (one, other)]
            assert check_weights([one, other], 2, of_block=True).tolist() == alone


# --- arrays of numbers ---


@over_rows("given", [[[1, 2], [3]], [[1, [2]], [3, 4]], [[1], 2], [np.ones(2), np.ones(3)]])
def test_ragged_and_nested_rows_are_rejected(given):
    for rejected in (values_of, shape_of):
        with pytest.raises(ValueError, match="got rows of different lengths or nested cells"):
            rejected("X", given)


class OwnNumber:
    """A number that says what it is when it is asked for it."""

    def __init__(self, error):
        self.error = error

    def __float__(self):
        raise self.error("SECRET")

    __int__ = __index__ = __float__

    def __gt__(self, other):
        raise self.error("SECRET")


numbers.Integral.register(OwnNumber)


@over_rows("error", [TypeError, ValueError, OverflowError, RuntimeError])
def test_numbers_of_ones_own_are_not_quoted(error):
    X, y = np.ones((100, 2), dtype=object), np.arange(100) % 2
    X[7, 0] = OwnNumber(error)
    labels = y.astype(object)
    labels[7] = OwnNumber(error)
    model = DPLogisticRegression(classes=[0, 1], delta=1e-6)
    for rows, targets, weights in (
        (X, y, None),
        (X.tolist(), y, None),
        (y[:, None], labels, None),
        (y[:, None], y, labels),
    ):
        with pytest.raises(ValueError, match="contains NaN") as caught:
            model.fit(rows, targets, sample_weight=weights)
        assert "SECRET" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


# --- whole fits ---


def first_release(fit, *given):
    """What a fit puts into its first release, and the sensitivity of that."""
    with recording([]) as releases:
        fit(*given)
    return releases[0].exact, releases[0].sensitivity


SCHEMA = {"x0": (0, 100), "x1": ["True", "False"]}
FITS = {
    "encoder": lambda rows, y: DPOneHotEncoder(epsilon=1.0, delta=1e-6, random_state=0).fit(rows),
    "pipeline": lambda rows, y: tabular_pipeline(
        DPLogisticRegression(classes=[0, 1], random_state=0), schema=SCHEMA, epsilon=1.0, delta=1e-6
    ).fit(rows, y),
    "search": lambda rows, y: DPGridSearchCV(
        tabular_pipeline(DPLogisticRegression(classes=[0, 1]), schema=SCHEMA, epsilon=1.0, delta=1e-6),
        {"model__max_grad_norm": [0.1, 0.2]}, epsilon=1.0, delta=1e-6, random_state=0, strategy="compose",
    ).fit(rows, y),
}  # fmt: skip


@over_combinations(1, odd=[None, np.timedelta64(5, "ns"), np.datetime64(MOMENT), "7", 2**70, True], kind=FITS)
def test_one_cell_of_a_list_moves_a_fit_by_no_more_than_its_row(kind, odd):
    rows = [[25 + i % 40, bool(i % 2)] for i in range(300)]
    near = [list(row) for row in rows]
    near[7][0] = odd
    y = np.arange(300) % 2
    (one, sensitivity), (other, _) = (first_release(FITS[kind], table, y) for table in (rows, near))
    if kind == "encoder":  # counts of categories, in which the cell may be a new one; sorting moves none further apart
        one, other = (np.sort(np.pad(each, (0, 50 - len(each)))) for each in (one, other))
    assert np.linalg.norm(one - other) <= 2.0 * sensitivity * (1 + 1e-6)  # one row leaves, and one comes


def test_a_score_of_ones_own_is_given_no_list_of_rows():
    ledger = PrivacyAccountant(5.0, 1e-4)
    model = DPLogisticRegression(classes=[0, 1], max_iter=3, delta=1e-6, accountant=ledger)
    score = PrivateScore("first", lambda fitted, X, y: (X[:, 0] > 0) == y, 1.0)
    search = DPGridSearchCV(model, {"alpha": [0.0, 0.1]}, epsilon=1.0, delta=1e-5, scoring=score, random_state=0)
    rows, y = [[float(i % 2)] for i in range(40)], np.arange(40) % 2
    with pytest.raises(ValueError, match="`X` must be an array or a frame for scoring='first', got a list"):
        search.fit(rows, y)
    assert ledger.get_epsilon(1e-4) == 0.0
    assert search.fit(np.array(rows), y).best_index_ in (0, 1)


TYPED_INTEGERS = {
    "pandas": lambda cells: pd.Series(cells, dtype="Int64"),
    "categorical": lambda cells: pd.Series(pd.Categorical(cells, categories=[2**60, 2**60 + 1])),
    "polars": lambda cells: pl.Series(cells, dtype=pl.Int64),
    "arrow": lambda cells: pa.chunked_array([pa.array(cells, pa.int64())]),
    "dictionary": lambda cells: pa.chunked_array([pa.array(cells, pa.int64()).dictionary_encode()]),
}


@pytest.mark.parametrize("library", TYPED_INTEGERS)
def test_missing_value_does_not_round_integers(library):
    make = TYPED_INTEGERS[library]
    column = make([2**60, 2**60 + 1, None])
    found = values_of("by", column)
    assert [key_of(cell) for cell in found[:2].tolist()] == [str(2**60), str(2**60 + 1)]
    frame = pa.table({"a": column}) if isinstance(column, pa.ChunkedArray) else pl.DataFrame({"a": column})
    frame = frame if library not in ("pandas", "categorical") else pd.DataFrame({"a": column})
    codes, keys = as_keys(Table(frame).cells(0))
    assert [keys[code] for code in codes[:2]] == [str(2**60), str(2**60 + 1)]
    assert codes[2] == -1
    assert list(map(key_of, values_of("by", frame)[:, 0].tolist())) == [str(2**60), str(2**60 + 1), None]


def test_missing_value_does_not_change_keys_of_intervals():
    column = pd.cut(pd.Series([5, 15, None]), [0, 10, 20])
    assert [key_of(cell) for cell in values_of("by", column).tolist()] == ["(0, 10]", "(10, 20]", None]
    for cells in (pd.arrays.IntervalArray.from_breaks([0, 10]), [pd.Interval(0, 10), None], [pd.Interval(0.0, 10.0)]):
        _, keys = as_keys(Table(pd.DataFrame({"a": pd.Series(cells)})).cells(0))
        assert keys == ["(0, 10]"]
