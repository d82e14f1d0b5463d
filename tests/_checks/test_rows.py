"""Private input is rejected in one line that holds no cell, label or weight, before anything is written."""

import decimal
import fractions
import functools
import warnings

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from combinations import over_combinations, over_rows
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from skdp._checks import table as columns
from skdp._checks.rows import check_classes, check_labels, check_table, encode_labels
from skdp._checks.weights import check_weights

NAME, NUMBER = "Alice Smith", 424242.125
SECRETS = NAME, "Alice", "424242"
GOOD = np.array([[NUMBER, 1.0, 2.0], [3.0, NUMBER, 4.0], [5.0, 6.0, NUMBER]])
INF, NAN, MAX = np.inf, np.nan, np.finfo(float).max


class Table(BaseEstimator):
    """An estimator that has no more than a schema."""


class Unreadable:
    """An array whose conversion fails, and quotes a cell."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(f"cannot read {NAME}")


class Unfriendly(fractions.Fraction):
    """A number that quotes itself when it is asked for its value."""

    def __float__(self):
        raise ValueError(f"{NAME} has {NUMBER}")


def with_cell(cell, dtype=object):
    table = GOOD.astype(dtype) if dtype is not np.float16 else np.ones((3, 3), dtype)
    table[1, 2] = cell
    return table


def frame(**columns):
    return pd.DataFrame({"age": [NUMBER, 1.0, 2.0], **columns})


def damaged(**parts):
    matrix = sp.csr_matrix(GOOD)
    for name, value in parts.items():
        getattr(matrix, name)[:] = value
    return matrix


def damaged_list():
    matrix = sp.lil_matrix(GOOD)
    matrix.rows[0] = [0, 1, 424242]
    return matrix


class Lookalike(list):
    """A list with names of columns, which is no frame."""

    columns, dtypes, shape = ("name", "age"), (str, float), (2, 2)


def masked():
    return np.ma.masked_array(GOOD, mask=GOOD == 1.0)


def polars(**columns):
    return pl.DataFrame({"age": [NUMBER, 1.0, 2.0], **columns})


TIMES = pd.to_datetime(["2024-02-29"] * 3)
SPARSE_ROW = sp.coo_array(GOOD[0])  # a table of one row before SciPy 1.13
BAD_TABLES = {
    "nothing": (None, "Expected 2D array, got scalar array"),
    "a generator": ((row for row in GOOD), "Reshape your data"),
    "one row": (GOOD[0], "Expected 2D array, got 1D array"),
    "no rows": (GOOD[:0], "0 sample(s) (shape=(0, 3))"),
    "ragged rows": ([[NUMBER, 1.0], [NUMBER]], "rows of different lengths"),
    "an array that fails": (Unreadable(), "must be a numeric array"),
    "duplicate columns": (pd.DataFrame(GOOD, columns=["age", "sex", "age"]), "duplicate column names: 'age'"),
    "names of several types": (pd.DataFrame(GOOD, columns=["age", 1, 2]), "string names"),
    "complex numbers": (GOOD * 1j, "Complex data not supported"),
    "dates": (np.full((3, 2), "2024-02-29", "datetime64[ns]"), "dates or times in column 0"),
    "a column of dates": (frame(born=TIMES), "dates or times in column 'born'"),
    "strings": (np.full((3, 2), NAME), "strings in column 0"),
    "categories": (frame(name=pd.Categorical([NAME] * 3)), "strings in column 'name'"),
    "strings in a second column": (pd.DataFrame({"a\nb": [NAME]}), r"strings in column 'a\nb'"),
    "a dict in a cell": (with_cell({NAME: NUMBER}), "values that are not numeric in column 2"),
    "a number that fails": (with_cell(Unfriendly(1)), "Input X contains NaN in column 2"),
    "records": (np.zeros((3, 2), [("name", "U20")]), "values that are not numeric"),
    "NaN": (with_cell(NAN, float), "Input X contains NaN in column 2. "),
    "NaN in float16": (with_cell(NAN, np.float16), "Input X contains NaN in column 2. "),
    "NaN in many columns": (np.full((3, 8), NAN), "in column 0, 1, 2, 3, 4, .... "),
    "pd.NA in a cell": (with_cell(pd.NA), "Input X contains NaN in column 2"),
    "a signalling NaN": (with_cell(decimal.Decimal("sNaN")), "Input X contains NaN in column 2"),
    "a masked cell": (masked(), "Input X contains NaN: masked values are treated as missing"),
    "a gap in Int64": (frame(b=pd.array([424242, None, 1], "Int64")), "Input X contains NaN in column 'b'"),
    "duplicate columns in Arrow": (pa.table([[1.0], [2.0]], names=["a", "a"]), "duplicate column names: 'a'"),
    "a gap in Arrow": (frame(b=pd.array([424242, None, 1], "int64[pyarrow]")), "Input X contains NaN in column 'b'"),
    "a gap in a sparse column": (frame(b=pd.arrays.SparseArray([0, NAN, 1])), "Input X contains NaN in column 'b'"),
    "infinity": (with_cell(INF, float), "Input X contains infinity or a number too large for its dtype in column 2"),
    "infinity among the largest": (np.array([[MAX, MAX], [-MAX, INF]]), "contains infinity"),
    "a huge integer": (with_cell(10**400), "Input X contains infinity"),
    "sparse entries beyond range": (
        sp.csr_matrix(([MAX, MAX], [1, 1], [0, 2]), shape=(1, 2)), "Input X contains infinity or a number too large",
    ),
    **({"a sparse row": (SPARSE_ROW, "Reshape your data")} if SPARSE_ROW.ndim == 1 else {}),
    "sparse objects": (sp.csr_matrix((np.array([NAME], object), [0], [0, 1]), shape=(1, 2)), "not numeric"),
    "a column beyond the shape": (damaged(indices=424242), "damaged sparse matrix"),
    "a list's column beyond the shape": (damaged_list(), "damaged sparse matrix"),
    "no frame": (Lookalike([[NAME, NUMBER], [NAME, 1.0]]), "strings in column 0"),
    "a lazy frame": (polars(name=[NAME] * 3).lazy(), "got a lazy LazyFrame. Pass an in-memory data frame"),
    "a query that fails": (duckdb.sql(f"select cast(x as int) from (values ('{NAME}')) t(x)"), "for example X.df()"),
    "rows out of order": (damaged(indptr=[0, 9, 4, 9]), "damaged sparse matrix"),
}  # fmt: skip


def raised(call):
    """The exception that `call` raises, and everything that it or a warning says."""
    always = warnings.catch_warnings(record=True, action="always")
    with always as told, pytest.raises((TypeError, ValueError)) as caught:
        call()
    error = caught.value
    said = [str(error), repr(error), repr(error.args), *(str(each.message) for each in told)]
    return error, said


def assert_public(error, said):
    """One line that holds no private value, in the text, in what is chained to it and in warnings."""
    assert not any("\n" in line for line in said)
    assert not [secret for line in said for secret in SECRETS if secret in line]
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not getattr(error, "__notes__", [])


@over_rows("name", BAD_TABLES)
def test_bad_tables_are_rejected_in_one_line_without_a_cell(name):
    X, fragment = BAD_TABLES[name]
    for by_blocks, assume_finite in ((False, False), (True, True)):
        estimator = Table()
        call = functools.partial(check_table, estimator, X, reset=True, sparse=True, by_blocks=by_blocks)
        with sklearn.config_context(assume_finite=assume_finite):
            error, said = raised(call)
        assert_public(error, said)
        assert fragment in said[0]
        assert len(said) == 3, said[3:]  # nothing was warned of
        assert vars(estimator) == {}
        if name == "a generator":
            break  # one pass empties it


# --- tables that are accepted ---

PLAIN = np.array([[0.5, 1.0], [2.0, -3.0], [4.0, 0.0]])
WIDE = pd.DataFrame(PLAIN, columns=["a", "b"])
GOOD_TABLES = {
    "array": PLAIN,
    "long double": PLAIN.astype(np.longdouble),
    "decimals and fractions": [[decimal.Decimal("0.5"), fractions.Fraction(1)], *PLAIN[1:].tolist()],
    "no cell masked": np.ma.masked_array(PLAIN),
    "frame": WIDE,
    "frame with gaps possible": WIDE.convert_dtypes(),
    "frame of categories": WIDE.astype("category"),
    "frame with a sparse column": WIDE.assign(b=pd.arrays.SparseArray(WIDE.b, fill_value=0.0)),
    "polars": pl.DataFrame(PLAIN, schema=["a", "b"]),
    "Arrow": pa.Table.from_pandas(WIDE),
    "batch of Arrow": pa.RecordBatch.from_pandas(WIDE),
    "DuckDB": duckdb.from_arrow(pa.Table.from_pandas(WIDE)),
    "numbered columns": pd.DataFrame(PLAIN),
}


@over_rows("name", GOOD_TABLES)
def test_tables_are_read(name):
    estimator = Table()
    table = check_table(estimator, GOOD_TABLES[name], reset=True)
    np.testing.assert_array_equal(table, PLAIN)
    assert type(table) is np.ndarray
    assert table.dtype == np.float64
    assert table.dtype.isnative
    assert table.flags.c_contiguous
    assert estimator.n_features_in_ == 2
    named = "frame" in name or name in ("polars", "Arrow", "batch of Arrow", "DuckDB")
    assert list(getattr(estimator, "feature_names_in_", [])) == (["a", "b"] if named else [])


def test_gaps_of_arrow_dictionaries_are_gaps():
    """Arrow hands NumPy the last entry of the dictionary for them, in rows, labels and categories."""
    numbers = pa.table({"x": pa.array([1.0, None, 2.0]).dictionary_encode(), "z": pa.array([0.0, 1.0, 2.0])})
    with pytest.raises(ValueError, match=r"contains NaN in column 'x'"):
        check_table(BaseEstimator(), numbers, reset=True)
    np.testing.assert_array_equal(check_table(BaseEstimator(), numbers.take([0, 2]), reset=True)[:, 0], [1, 2])
    column = pa.chunked_array([pa.array(["a", None, "b"]).dictionary_encode()])
    table = pa.table({"x": column})
    of_duckdb, of_narwhals = duckdb.from_arrow(table), nw.from_native(column, series_only=True)
    for labels in (column, table, of_duckdb, of_narwhals, [column[i : i + 1] for i in range(3)]):
        error, _ = raised(functools.partial(check_labels, labels, 3))
        assert "y contains NaN" in str(error)
    with pytest.raises(ValueError, match="y contains NaN"):
        check_labels(table.append_column("z", column), 3, columns=True)
    cells = columns.Table(table).cells(0)
    assert [[*cells.distinct, None][code] for code in cells.values] == ["a", None, "b"]


def test_what_is_right_already_is_not_copied():
    for X in (PLAIN, PLAIN.astype(np.float32)):
        assert check_table(Table(), X, reset=True) is X
    for dtype in (np.uint8, np.int64, bool, np.float16):
        X = np.asfortranarray(PLAIN > 0).astype(dtype)
        assert check_table(Table(), X, reset=True, by_blocks=True) is X
    frame = pd.DataFrame(PLAIN.astype(np.float32))
    assert check_table(Table(), frame, reset=True).dtype == np.float32


@over_rows("by_blocks", [False, True])
def test_lists_have_one_type_whatever_their_cells(by_blocks):
    """Types of fitted attributes and of samples follow that of the rows: one cell of a list must not decide on it."""
    for cells in ([[True, False]], [[True, 1]], [[np.float32(1), np.float32(0)]], [[np.float32(1), 0.5]]):
        assert check_table(Table(), cells, reset=True, by_blocks=by_blocks).dtype == np.float64


@over_combinations(shape=[(3, 2), (7, 40_000), (200_000, 3)], dtype=[np.float32, np.float64], order="CF")
def test_the_largest_numbers_are_finite_and_nothing_is_said(shape, dtype, order):
    """Sums of them overflow, and differ in sign, which scikit-learn warns of (`warning_of_one_row.py`)."""
    X = np.zeros(shape, dtype, order=order)
    X[-1] = np.finfo(dtype).max * np.resize([1, -1, 1], shape[1])
    with warnings.catch_warnings(action="error"), np.errstate(all="raise"):
        assert check_table(Table(), X, reset=True) is X or order == "F"
        X[0, 1] = np.nan
        with pytest.raises(ValueError, match=r"NaN in column 1\. "):
            check_table(Table(), X, reset=True)
        X[0, 1] = -np.inf
        with pytest.raises(ValueError, match=r"infinity .* in column 1\. "):
            check_table(Table(), X, reset=True)


@over_combinations(
    1,
    make=[sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_matrix, sp.bsr_matrix],
    dtype=[np.float32, np.float64, np.int8, bool],
)
def test_sparse_tables_are_read(make, dtype):
    values = PLAIN.astype(dtype)
    X = make(values)
    table = check_table(Table(), X, reset=True, sparse=True)
    assert isinstance(table, sp.csr_matrix)
    assert table.has_canonical_format
    assert table.dtype == (np.float32 if dtype is np.float32 else np.float64)
    np.testing.assert_array_equal(table.toarray(), values)
    with pytest.raises(
        TypeError, match=r"X is sparse, but sparse data are not supported here\. Pass X\.toarray\(\)\.$"
    ):
        check_table(Table(), X, reset=True)


def test_entries_stored_twice_are_added_in_a_copy():
    X = sp.csr_matrix(([1.0, 2.0, 4.0], [1, 0, 1], [0, 3]), shape=(1, 2))
    np.testing.assert_array_equal(check_table(Table(), X, reset=True, sparse=True).toarray(), [[2.0, 5.0]])
    assert X.nnz == 3
    plain = sp.csr_matrix(PLAIN)
    assert np.shares_memory(check_table(Table(), plain, reset=True, sparse=True).data, plain.data)


@over_rows(
    ("X", "fragment"),
    [
        (PLAIN[:, :1], "X has 1 features, but Table is expecting 2 features as input"),
        (WIDE[["b", "a"]], "Feature names must be in the same order as they were in fit."),
        (WIDE.rename(columns={"a": "c"}), "Feature names unseen at fit time: - c Feature names seen at fit time"),
        (pl.DataFrame({"a": [1.0]}), "yet now missing: - b"),
    ],
)
def test_tables_of_another_schema_are_rejected_in_one_line(X, fragment):
    estimator = Table()
    check_table(estimator, WIDE, reset=True)
    error, said = raised(lambda: check_table(estimator, X, reset=False))
    assert fragment in said[0]
    assert "\n" not in said[0]
    assert error.__context__ is None
    assert list(estimator.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="NaN"):
        check_table(estimator, pd.DataFrame({"c": [NAN]}), reset=True)
    assert list(estimator.feature_names_in_) == ["a", "b"]
    check_table(estimator, PLAIN[:, :1], reset=True)
    assert not hasattr(estimator, "feature_names_in_")


# --- labels ---

BAD_LABELS = {
    "nothing": (None, "requires y to be passed, but the target y is None"),
    "two columns": (GOOD[:, :2], "y should be a 1d array, got shape (3, 2)"),
    "too few": ([424242, 1], "inconsistent numbers of samples: [3, 2] for X and y"),
    "sparse": (sp.csr_matrix(GOOD[:, :1]), "y is sparse"),
    "an array that fails": (Unreadable(), "y must be a numeric array"),
    "NaN": ([NUMBER, NAN, 1], "Input y contains NaN. "),
    "pd.NA": ([NAME, pd.NA, "b"], "Input y contains NaN. "),
    "a gap in Int64": (pd.array([424242, None, 1], "Int64"), "Input y contains NaN. "),
    "a masked label": (np.ma.masked_array([424242, 1, 2], [0, 1, 0]), "Input y contains NaN: masked"),
    "complex": ([NUMBER * 1j, 1, 2], "Complex data not supported: y contains complex numbers"),
    "dates": (TIMES, "y contains dates or times"),
    "bytes": (np.array([NAME.encode()] * 3, object), "y contains labels of type bytes"),
    "decimals": ([decimal.Decimal("424242.125")] * 3, "Unknown label type: y is continuous"),
    "names and numbers": ([NAME, 424242, 1], "y contains labels of several types, numbers and strings. Convert all"),
}


@over_rows("name", BAD_LABELS)
def test_bad_labels_are_rejected_in_one_line_without_a_label(name):
    y, fragment = BAD_LABELS[name]
    for assume_finite in (False, True):
        with sklearn.config_context(assume_finite=assume_finite):
            error, said = raised(lambda: check_labels(y, 3))
        assert_public(error, said)
        assert fragment in said[0]
        assert len(said) == 3


@over_rows(
    ("y", "expected"),
    [
        ([0, 1, 1], np.array([0, 1, 1])),
        (np.array([True, False, True], object), np.array([True, False, True])),
        (pd.array([0, 1, 1], "Int64"), np.array([0, 1, 1])),
        (["a", "b", "b"], np.array(["a", "b", "b"], object)),
        (pd.Categorical(["a", "b", "b"]), np.array(["a", "b", "b"], object)),
    ],
)
def test_labels_are_read(y, expected):
    labels = check_labels(y, 3)
    assert labels.dtype == expected.dtype
    np.testing.assert_array_equal(labels, expected)


def test_a_column_of_labels_is_told_of_once():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected") as told:
        labels = check_labels([[0], [1], [1]], 3)
    assert labels.shape == (3,)
    assert len(told) == 1


def test_several_columns_of_labels():
    y = np.array([[0, 1], [1, 1], [0, 0]])
    for given in (y, y.tolist(), sp.csr_matrix(y), pd.DataFrame(y), y.astype(object)):
        np.testing.assert_array_equal(check_labels(given, 3, columns=True), y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        check_labels(np.where(y, np.nan, 0), 3, columns=True)


def test_labels_become_positions():
    np.testing.assert_array_equal(encode_labels(np.array([2, 9, 2, 5]), np.array([2, 5, 9])), [0, 2, 0, 1])
    np.testing.assert_array_equal(encode_labels(np.array(["b", "a"]), np.array(["a", "b"])), [1, 0])
    np.testing.assert_array_equal(encode_labels(np.array(["b", "a"], object), np.array(["a", "b"])), [1, 0])
    np.testing.assert_array_equal(encode_labels(np.array([True, False]), np.array([0, 1])), [1, 0])


@over_rows(
    "labels",
    [np.array([0, 424242]), np.array([-1, 0]), np.array([NAME]), np.array([NAME, 1], object), np.array([None, 0])],
)
def test_labels_that_are_no_class_are_not_quoted(labels):
    error, said = raised(lambda: encode_labels(labels, np.array([0, 1])))
    assert_public(error, said)
    assert said[0] == (
        "y contains labels that are not in classes=[0, 1]. Pass all possible classes, with the same type as y."
    )


# --- classes, which are public ---


@over_rows(
    ("classes", "expected"),
    [
        ([1, 0], [0, 1]),
        (np.array([2.5, 0.5]), [0.5, 2.5]),
        ([True, False], [False, True]),
        ((value for value in (4, 2)), [2, 4]),
        (pd.Index(["b", "a"]), ["a", "b"]),
        ({7, 3}, [3, 7]),
    ],
)
def test_classes_are_sorted(classes, expected):
    np.testing.assert_array_equal(check_classes("classes", classes), expected)


@over_rows(
    ("classes", "fragment"),
    [
        ([0, 1, True], "must not contain duplicates"),
        (np.array(["a", "b", "a"]), "must not contain duplicates, got ['a', 'b', 'a']"),
        ([], "at least two classes"),
        ("ab", "must be a sequence"),
        ([0, "a"], "only numbers or only strings"),
        ([[0, 1], [2, 3]], "only numbers or only strings"),
        ([0.0, NAN], "must contain finite numbers"),
    ],
)
def test_unusable_classes_are_rejected(classes, fragment):
    error, said = raised(lambda: check_classes("classes", classes))
    assert said[0].startswith("`classes` must ")
    assert fragment in said[0]
    assert not any("\n" in line for line in said)
    assert error.__context__ is None


# --- weights ---

BAD_WEIGHTS = {
    "too few": ([NUMBER, 1.0], "`sample_weight` must have shape (3,), one weight per row of X, got (2,)"),
    "negative": ([NUMBER, -NUMBER, 1.0], "Negative values in data passed to `sample_weight`"),
    "zeros": ([0.0, 0.0, 0.0], "`sample_weight` is zero for all rows"),
    "NaN": ([NUMBER, NAN, 1.0], "Input sample_weight contains NaN. "),
    "a masked weight": (np.ma.masked_array([424242, 1, 2], [0, 1, 0]), "Input sample_weight contains NaN: masked"),
    "infinity": ([NUMBER, INF, 1.0], "Input sample_weight contains infinity"),
    "sparse": (sp.csr_matrix(GOOD[:, :1]), "sample_weight is sparse"),
    "an array that fails": (Unreadable(), "sample_weight must be a numeric array"),
}


@over_rows("name", BAD_WEIGHTS)
@over_rows("assume_finite", [False, True])
def test_bad_weights_are_rejected_in_one_line_without_a_weight(name, assume_finite):
    weights, fragment = BAD_WEIGHTS[name]
    with sklearn.config_context(assume_finite=assume_finite):
        error, said = raised(lambda: check_weights(weights, 3))
    assert_public(error, said)
    assert fragment in said[0]
    assert len(said) == 3


def test_weights_are_read():
    assert check_weights(None, 3) == 1.0
    for given in ([0, 1, 2], np.array([0.0, 1.0, 2.0]), pd.array([0, 1, 2], "Int64"), np.array([0, 1, 2], object)):
        weights = check_weights(given, 3)
        assert weights.dtype == np.float64
        np.testing.assert_array_equal(weights, [0, 1, 2])
    np.testing.assert_array_equal(check_weights(2, 3), [2.0, 2.0, 2.0])
    large = np.full(3, MAX)
    np.testing.assert_array_equal(check_weights(large, 3), large)
