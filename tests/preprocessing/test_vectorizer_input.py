"""What passes DPTableVectorizer, what is rejected, and what one row or a type of storage changes: nothing else."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from combinations import over_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from tables import ESTIMATED, ROWS, SCHEMA, customers, labels

from skdp import DPLogisticRegression, PrivacyAccountant, allocate_budget
from skdp._checks.table import Table, as_keys, as_numbers
from skdp.exceptions import QualityWarning
from skdp.preprocessing import DPTableVectorizer, TableSchema
from skdp.preprocessing.histogram_query import Held, HistogramEstimates, HistogramQuery

N = 30
FRAME = customers(N)
Y = labels(FRAME)
SECRET = "Alice Smith"
SECRET_NUMBER = 9876543.5


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


def charges(accountant):
    return [entry for entry in accountant.history if entry.kind == "charge"]


def budgeted(vectorizer, epsilon=1.0, delta=1e-5, **parameters):
    last = DPLogisticRegression(**{"classes": [0, 1], "max_iter": 2, **parameters})
    return allocate_budget(make_pipeline(vectorizer, last), epsilon, delta)


# --- bad inputs ---


def with_cell(cell, column="job"):
    """The customers with one other cell, next to one that no message may show."""
    frame = FRAME.astype({column: object})
    frame.at[3, "id"] = SECRET
    values = frame[column].tolist()
    values[3], values[4] = cell, SECRET
    return frame.assign(**{column: pd.Series(values, index=frame.index, dtype=object)})


class Anything:
    """An object of no known type, which shows what no message may show."""

    def __repr__(self):
        return SECRET


BAD_TABLES = {
    "none": None,
    "text": SECRET,
    "one dimension": np.full(N, SECRET_NUMBER),
    "no rows": np.ones((0, 7)),
    "duplicate column names": pd.concat([FRAME, FRAME[["job"]]], axis=1),
    "complex numbers": np.full((N, 7), SECRET_NUMBER * 1j),
    "a complex cell": with_cell(SECRET_NUMBER * 1j),
    "a list in a cell": with_cell([SECRET]),
    "an array in a cell": with_cell(np.full(2, SECRET_NUMBER)),
    "an object in a cell": with_cell(Anything()),
    "a list in a cell of numbers": with_cell([SECRET], "age"),
    "rows of several lengths": [[SECRET, 1], [1]],
    "a sparse matrix": sp.csr_matrix(np.full((N, 7), SECRET_NUMBER)),
    "masked values": np.ma.masked_equal(np.full((N, 7), SECRET_NUMBER), SECRET_NUMBER),
    "lists of polars": pl.DataFrame({"job": [[SECRET]]}),
    "a column too few": FRAME.drop(columns="age"),
    "a column too many": FRAME.assign(name=SECRET),
    "dates for numbers": FRAME.assign(age=pd.Timestamp("2001-02-03")),
    "integers for dates": FRAME.assign(since=20010203),
    "numbers for dates": FRAME.assign(since=2001.5),
}
_OF_A_SCHEMA = ("a column too few", "a column too many", "dates for numbers", "integers for dates", "numbers for dates")
BAD_LABELS = {
    "none": None,
    "NA": pd.Series([pd.NA, *Y[1:]], dtype="Int64"),
    "a gap among words": [None, *map(str, Y[1:])],
    "another class": np.where(Y == 1, SECRET_NUMBER, 0.0),
    "complex numbers": Y * SECRET_NUMBER * 1j,
    "too few": Y[:-1],
    "nested": [[SECRET]] + [[0]] * (N - 1),
}


def assert_rejected_by_one_line(fit, accountant, *shown):
    with pytest.raises((TypeError, ValueError)) as rejection:
        fit()
    message, error = str(rejection.value), rejection.value
    assert message
    assert "\n" not in message
    while error is not None:  # what is chained to it, too
        assert SECRET not in str(error)
        assert "9876543" not in str(error)
        error = error.__cause__ or error.__context__
    assert not charges(accountant)


@over_rows("name", BAD_TABLES)
def test_a_bad_table_is_rejected_by_one_line_without_a_cell_and_without_a_charge(name):
    # Where no schema says anything of columns, some tables are as good as others.
    for schema in (SCHEMA, ESTIMATED) if name in _OF_A_SCHEMA else (SCHEMA, ESTIMATED, None):
        accountant = PrivacyAccountant(epsilon=5.0, delta=1e-4)
        vectorizer = DPTableVectorizer(schema, accountant=accountant)
        assert_rejected_by_one_line(lambda: vectorizer.fit_transform(BAD_TABLES[name]), accountant)  # noqa: B023
        pipe = budgeted(DPTableVectorizer(schema, accountant=accountant))
        assert_rejected_by_one_line(lambda: pipe.fit(BAD_TABLES[name], Y), accountant)  # noqa: B023


@over_rows("name", BAD_LABELS)
def test_bad_labels_are_rejected_by_one_line_without_a_label_and_without_a_charge(name):
    accountant = PrivacyAccountant(epsilon=5.0, delta=1e-4)
    pipe = budgeted(DPTableVectorizer(ESTIMATED, accountant=accountant))
    assert_rejected_by_one_line(lambda: pipe.fit(FRAME, BAD_LABELS[name]), accountant)


def test_what_transform_rejects_shows_no_cell_either():
    vectorizer = DPTableVectorizer(SCHEMA).fit(FRAME)
    accountant = PrivacyAccountant(epsilon=5.0, delta=1e-4)
    for name, table in BAD_TABLES.items():
        if name not in ("integers for dates", "numbers for dates"):  # of one row, a gap is a number: it may come later
            assert_rejected_by_one_line(lambda table=table: vectorizer.transform(table), accountant)
    unknown = dense(vectorizer.transform(BAD_TABLES["numbers for dates"]))
    assert np.all(unknown[:, vectorizer.get_feature_names_out() == "since=missing"] == 1.0)


# --- drawn frames ---

_TEXT = st.text(max_size=5) | st.sampled_from(
    ["", "a", "b", "1", "2.5", "-7", "nan", "None", "é✓", "2001-02-03", "yes"]
)
_DAYS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
_CELLS = st.one_of(
    st.none(), st.just(pd.NA), st.just(pd.NaT), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), _TEXT,
    st.binary(max_size=3), _DAYS, st.dates(), st.decimals(allow_nan=True), st.timedeltas(),
)  # fmt: skip


def _in_tokyo(days):
    return pd.Series(days, dtype="datetime64[us]").dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")


def _lists(cells, n):
    return st.lists(cells, min_size=n, max_size=n)


def _column(n):
    """One column of n rows, of pandas."""
    small = st.integers(-100, 100)
    gaps = st.none()
    return st.one_of(
        _lists(small, n).map(lambda v: pd.Series(v, dtype="int64")),
        _lists(st.floats(), n).map(lambda v: pd.Series(v, dtype="float64")),
        _lists(st.booleans(), n).map(lambda v: pd.Series(v, dtype="bool")),
        _lists(_TEXT | gaps, n).map(lambda v: pd.Series(v, dtype="str")),
        _lists(_TEXT | gaps, n).map(lambda v: pd.Series(v, dtype="category")),
        _lists(small | gaps, n).map(lambda v: pd.Series(v, dtype="Int64")),
        _lists(st.booleans() | gaps, n).map(lambda v: pd.Series(v, dtype="boolean")),
        _lists(small.map(str) | st.just(""), n).map(lambda v: pd.Series(v, dtype=object)),
        _lists(_DAYS | gaps, n).map(lambda v: pd.Series(v, dtype="datetime64[us]")),
        _lists(_DAYS | gaps, n).map(_in_tokyo),
        _lists(_CELLS, n).map(lambda v: pd.Series(v, dtype=object)),
        _CELLS.map(lambda v: pd.Series([v] * n, dtype=object)),
    )  # fmt: skip


@st.composite
def frames(draw):
    """A frame of pandas."""
    n = draw(st.integers(1, 6))
    columns = draw(st.lists(_column(n), min_size=1, max_size=4))
    frame = pd.concat(columns, axis=1)
    frame.columns = draw(st.lists(_TEXT, min_size=len(columns), max_size=len(columns), unique=True))
    return frame


def in_polars(frame):
    """The same frame in polars, None where polars has no such column."""
    try:
        return pl.from_pandas(frame)
    except (Exception, pl.exceptions.PanicException):  # a panic, of decimals of 60 digits, is no Exception
        return None


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(frames())
def test_drawn_frames_go_through_fit_and_predict(frame):
    for table in filter(lambda each: each is not None, (frame, in_polars(frame))):
        accountant = PrivacyAccountant(epsilon=5.0, delta=1e-4)
        pipe = budgeted(DPTableVectorizer(accountant=accountant))
        with warnings.catch_warnings(action="error"):
            warnings.simplefilter("ignore", QualityWarning)
            assert pipe.fit(table, np.arange(len(table)) % 2).predict(table).shape == (len(table),)
        assert [charge.event for charge in charges(accountant)] == [pipe.privacy_event_]


# --- one row, and nothing else ---


def outcome(vectorizer, table, monkeypatch):
    """What a fit lets out, and what went into its release, which gives the same whatever that is."""
    inputs = []

    def frozen(query, numbers, words, noise_multiplier, n_public, stream, units=None):
        keys = [np.array([None if code < 0 else names[code] for code in codes], dtype=object) for codes, names in words]
        inputs.append((query, noise_multiplier, n_public, [*numbers, *keys]))
        return HistogramEstimates(
            [np.array([30.0, 50.0])] * query.n_numbers,
            [(18.0, 90.0)] * query.n_numbers,
            [["a", "clerk"]] * query.n_words,
            [40.0] * query.n_numbers,
            [Held(10.0, 1.0)] * (query.n_numbers + query.n_words),
            [(18.0, 90.0)] * query.n_numbers,
        )

    with monkeypatch.context() as patch, warnings.catch_warnings(record=True, action="always") as caught:
        patch.setattr(HistogramQuery, "release", frozen)
        vectorizer.fit(table)
        rows = dense(vectorizer.transform(table))
        names = vectorizer.get_feature_names_out().tolist()
    published = {name: value for name, value in vars(vectorizer).items() if name != "_fitted_releases"}
    published.pop("feature_names_in_", None)
    return inputs, rows, [names, published, [str(each.message) for each in caught]]


CHANGES = {
    "an extreme number": {"income": -1e300},
    "a word that nobody else has": {"job": SECRET},
    "a date far away": {"since": datetime.date(1066, 10, 14)},
    "all gaps": dict.fromkeys(["age", "income", "job", "grade", "member", "since"]),
    "the only true one": {"member": True},
    "words for numbers": {"job": "12"},
}


@over_rows("schema", [SCHEMA, ESTIMATED, TableSchema({}, others="estimate")])
@over_rows("change", CHANGES)
def test_one_row_changes_its_own_row_and_nothing_else(change, schema, monkeypatch):
    rows = [{**row, "age": 40, "member": False} for row in ROWS[:1] * 8]
    other = [*rows[:5], {**rows[5], **CHANGES[change]}, *rows[6:]]
    if not schema.is_complete and "member" in CHANGES[change] and not len(schema):
        rows, other = ([{**row, "member": "no"} for row in each] for each in (rows, other))  # bool and object are types
    found = [outcome(DPTableVectorizer(schema), customers(8, rows=each), monkeypatch) for each in (rows, other)]
    (inputs, made, published), (other_inputs, other_made, other_published) = found
    assert published == other_published
    kept = np.arange(8) != 5
    np.testing.assert_array_equal(made[kept], other_made[kept])
    assert len(inputs) == len(other_inputs) == int(not schema.is_complete)
    for one, two in zip(inputs, other_inputs, strict=True):
        assert one[:3] == two[:3]
        for column, other_column in zip(one[3], two[3], strict=True):
            np.testing.assert_array_equal(column[kept], other_column[kept])


# --- types of storage ---

_WORDS = ["a", None, "", "b"]
_DATES = pd.Series(pd.to_datetime(["2001-02-03", None, "2020-01-01", "1999-12-31"]))
SAME = {
    "number": [
        pd.Series([1.0, 5.0, 3.0, 2.0]),
        pd.Series([1, 5, 3, 2], dtype="int8"),
        pd.Series([1, 5, 3, 2], dtype="Int64"),
        pd.Series([1, 5, 3, 2], dtype="float32"),
        pd.Series([1, 5, 3, 2], dtype="int64[pyarrow]"),
        pd.Series([1, 5, 3, 2], dtype=pd.SparseDtype("int64", 0)),
    ],
    "number with gaps": [
        pd.Series([1.0, np.nan, 3.0, 2.0]),
        pd.Series([1, None, 3, 2], dtype="Int64"),
        pd.Series([1, None, 3, 2], dtype="double[pyarrow]"),
    ],
    "truth": [
        pd.Series([True, False, True, True]),
        pd.Series([True, False, True, True], dtype="boolean"),
        pd.Series([True, False, True, True], dtype="bool[pyarrow]"),
        pd.Series([True, False, True, True], dtype=object),
    ],
    "truth with gaps": [
        pd.Series([True, None, True, False], dtype=object),
        pd.Series([True, None, True, False], dtype="boolean"),
        pd.Series([True, None, True, False], dtype="bool[pyarrow]"),
    ],
    "category": [
        pd.Series(_WORDS, dtype=object),
        pd.Series(_WORDS, dtype="str"),
        pd.Series(_WORDS, dtype="string[pyarrow]"),
        pd.Series(_WORDS, dtype=pd.CategoricalDtype(["z", "b", "", "a", "nobody"])),
        pd.Series(_WORDS, dtype=pd.CategoricalDtype(["a", "b", ""], ordered=True)),
        pd.Series([b"a", np.nan, b"", b"b"], dtype=object),
        pd.Series(["a", pd.NA, pd.NaT, "b"], dtype=object),
    ],
    "date": [
        _DATES,
        _DATES.astype("datetime64[ns]"),
        _DATES.dt.tz_localize("UTC"),
        _DATES.astype("date32[day][pyarrow]"),
    ],
}
PUBLIC = {"number": (0, 4), "number with gaps": (0, 4), "truth": (0, 1), "truth with gaps": ["True", "x"],
          "category": ["a", "x"],
          "date": ("1990-01-01", "2010-01-01")}  # fmt: skip


@over_rows("name", SAME)
def test_the_type_of_storage_changes_nothing(name, monkeypatch):
    columns = [pd.DataFrame({"x": column}) for column in SAME[name]]
    columns += [each for each in map(in_polars, columns[:2]) if each is not None]
    for schema in ({"x": PUBLIC[name]}, None):
        found = [outcome(DPTableVectorizer(schema, numbers="both"), table, monkeypatch) for table in columns]
        inputs, rows, published = found[0]
        for other_inputs, other_rows, other_published in found[1:]:
            assert [published[0], published[2]] == [other_published[0], other_published[2]]
            assert published[1]["schema_"] == other_published[1]["schema_"]
            np.testing.assert_array_equal(rows, other_rows)
            for one, two in zip(inputs, other_inputs, strict=True):
                assert one[:3] == two[:3]
                for column, other_column in zip(one[3], two[3], strict=True):
                    np.testing.assert_array_equal(column, other_column)


def test_the_type_of_storage_of_flags_changes_nothing():
    same = [
        pd.Series([True, False, True]), pd.Series([True, False, True], dtype="boolean"), pd.Series([1, 0, 1]),
        pd.Series(["yes", "No", "TRUE"]), pd.Series([1.0, 0.0, 1.0]), pd.Series([True, False, True], dtype=object),
        pd.Series(["1", "0", "1"], dtype="category"),
    ]  # fmt: skip
    found = [dense(DPTableVectorizer({"x": "flag"}).fit_transform(pd.DataFrame({"x": each}))) for each in same]
    assert all(np.array_equal(found[0], each) for each in found)
    unknown = dense(DPTableVectorizer({"x": "flag"}).fit_transform(pd.DataFrame({"x": [2, "maybe", None]})))
    assert unknown.argmax(axis=1).tolist() == [2, 2, 2]


def test_numbers_as_categories_have_one_key_whatever_their_type():
    same = [pd.Series(cells) for cells in ([1, 0, 7], [1.0, -0.0, 7.0], ["1", "0", "7"])]
    same += [pd.Series([1, 0, 7], dtype=dtype) for dtype in ("Int8", "category", "uint16", "float32")]
    same += [pd.Series(cells, dtype=object) for cells in ([1, 0.0, "7"], [Decimal(1), 0, b"7"])]
    found = [dense(DPTableVectorizer({"x": [0, 1.0, "5"]}).fit_transform(pd.DataFrame({"x": each}))) for each in same]
    assert found[0].argmax(axis=1).tolist() == [1, 0, 3]
    assert all(np.array_equal(found[0], each) for each in found)


def test_equal_cells_of_several_types_keep_their_keys_in_any_order():
    """1 == 1.0 == True in Python, so a dictionary of cells would give all of them the key of the first."""
    cells = [True, 1, 1.0, "1", "True", np.True_, np.int8(1)]
    for order in (cells, cells[::-1]):
        codes, keys = as_keys(Table(pd.DataFrame({"x": pd.Series(order, dtype=object)})).cells(0))
        found = [keys[code] for code in codes]
        assert found == [{"b": "True"}.get(np.asarray(cell).dtype.kind, str(cell).removesuffix(".0")) for cell in order]


def test_a_signalling_nan_is_a_gap():
    column = pd.Series([Decimal("sNaN"), Decimal(7), "a", Decimal("NaN")], dtype=object)
    cells = Table(pd.DataFrame({"x": column})).cells(0)
    np.testing.assert_array_equal(as_numbers(cells), [np.nan, 7, np.nan, np.nan])
    assert as_keys(cells)[0].tolist() == [-1, 0, 1, -1]


def test_only_keys_that_occur_are_counted():
    listed = pd.Series(["b", None, "b"], dtype=pd.CategoricalDtype(["a", "b", "c"]))
    codes, keys = as_keys(Table(pd.DataFrame({"x": listed})).cells(0))
    assert (codes.tolist(), keys) == ([0, -1, 0], ["b"])


def test_text_that_is_no_number_is_a_gap():
    column = pd.Series(
        ["12", " 3.5 ", "1e3", "", "n/a", "1_000", "inf", None, 7, True, datetime.date(2001, 1, 1), b"4"], dtype=object
    )
    found = as_numbers(Table(pd.DataFrame({"x": column})).cells(0))
    np.testing.assert_array_equal(found, [12, 3.5, 1000, *[np.nan] * 3, np.inf, np.nan, 7, 1, np.nan, 4])


def test_a_list_of_rows_has_no_types_and_so_no_words():
    """Its type would be that of its cells: one word would make all columns of numbers text."""
    numbers = DPTableVectorizer(epsilon=5.0).fit([[1, 2.0], [3, 4.0]])
    words = DPTableVectorizer(epsilon=5.0).fit([[1, 2.0], [3, "x"]])
    for fitted in (numbers, words):
        assert [column.kind for _, column in fitted.schema_.items()] == ["number", "number"]


def test_kinds_come_from_types_and_not_from_cells():
    frame = pd.DataFrame({
        "i": [1, 2], "b": [True, False], "n": pd.array([1, None], dtype="Int64"), "f": [0.5, np.nan],
        "d": pd.to_datetime(["2001-02-03", None]), "z": pd.to_datetime(["2001-02-03", None]).tz_localize("UTC"),
        "o": pd.Series([1, 2], dtype=object), "s": ["1", "2"], "c": pd.Series([1, 2], dtype="category"),
        "e": pd.Series([None, None], dtype=object), "w": pd.Series([datetime.date(2001, 2, 3), None], dtype=object),
    })  # fmt: skip
    table = pd.concat([frame] * 500, ignore_index=True)  # of few rows categories are dropped
    kinds = {name: column.kind for name, column in DPTableVectorizer(epsilon=5.0).fit(table).schema_.items()}
    numbers, dates = dict.fromkeys("inf", "number"), dict.fromkeys("dz", "date")
    assert kinds == {**numbers, **dates, **dict.fromkeys("boscew", "category")}
