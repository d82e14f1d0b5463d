"""Functions that treat rows one by one, and made-up rows to test them on."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from combinations import over_combinations, over_rows
from public_tables import numbers, with_row
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from skdp.base.public_steps import find_faults, quietly
from skdp.base.row_wise import CODES, N_ROWS, RowWise, check_row_wise, made_up, row_wise


@row_wise
def shifted(X):
    """Adds one."""
    return X + 1


def filtered(X):
    return X[~np.isnan(np.asarray(X, dtype=float)).any(axis=1)]


MIXING = {
    "mean": lambda X: X - X.mean(axis=0),
    "rank": lambda X: np.argsort(np.argsort(X, axis=0), axis=0).astype(float),
    "reversed": lambda X: X[::-1],
    "gaps filled in": lambda X: np.where(np.isnan(X), np.nanmean(X[np.isfinite(X)]), X),
    "number of rows": lambda X: X * 0 + len(X),
    "noise": lambda X: X + np.random.default_rng().normal(size=X.shape),
    "type": lambda X: X.astype(np.float32) if len(X) > 3 else X,
}
RESIZING = {
    "filter": filtered,
    "distinct": lambda X: np.unique(X, axis=0),
}


@over_rows("name", [*MIXING, *RESIZING])
def test_a_function_that_mixes_rows_is_found_out(name):
    expected = "reads more than one row" if name in MIXING else "changes the number of rows|more than one row"
    with pytest.raises(ValueError, match=expected) as caught:
        row_wise((MIXING | RESIZING)[name])(np.zeros((3, 2)))
    assert "\n" not in str(caught.value)


KEEPING = {
    "norm": lambda X: X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)),
    "sum": lambda X: X.sum(axis=1),
    "bins": lambda X: np.digitize(X, [0.0, 1.0]),
    "cube": lambda X: X[:, :, None] * np.ones(3),
}


@over_rows("name", KEEPING)
@over_rows("dtype", ["float64", "float32"])
def test_a_function_that_keeps_its_promise_passes(name, dtype):
    table = np.arange(6, dtype=dtype).reshape(3, 2)
    assert np.array_equal(row_wise(KEEPING[name])(table), KEEPING[name](table))


COLUMNS = {
    "str": pd.array(["x", "y"], dtype="str"),
    "object": np.array(["x", "y"], dtype=object),
    "category": pd.Categorical(["u", "v"]),
    "Int64": pd.array([1, 2], dtype="Int64"),
    "day": pd.to_datetime(["2020-01-01"] * 2),
}
FILLING = {
    "mode": lambda X: X.fillna(X.mode().iloc[0]),
    "forward": lambda X: X.ffill(),
}


@over_combinations(1, filling=FILLING, kind=COLUMNS)
def test_gaps_filled_in_from_other_rows_are_found_out(kind, filling):
    with pytest.raises(ValueError, match="reads more than one row"):
        row_wise(FILLING[filling])(pd.DataFrame({"a": COLUMNS[kind]}))


def test_gaps_filled_in_from_other_rows_are_found_out_in_polars():
    pl = pytest.importorskip("polars")
    for kind in (pl.Int32, pl.Float64, pl.Boolean, pl.String, pl.Enum(["x"]), pl.Categorical, pl.Date, pl.Duration):
        with pytest.raises(ValueError, match="reads more than one row"):
            row_wise(lambda X: X.fill_null(strategy="forward"))(pl.DataFrame({"a": pl.Series([None]).cast(kind)}))


INSTEAD = [lambda X: X.mean().round().astype(int), lambda X: X.max()]


@over_combinations(1, code=CODES[1:-1], dtype=["int64", "int16", "float64", "float32", "Int64"], instead=INSTEAD)
def test_codes_replaced_by_what_other_rows_hold_are_found_out(code, dtype, instead):
    table = pd.DataFrame({"a": [1, 2], "b": [3, 4]}).astype(dtype)
    with pytest.raises(ValueError, match="reads more than one row"):
        row_wise(lambda X: X.mask(code == X, instead(X), axis=1))(table)


@over_rows(
    "f",
    [lambda X: X.where(X >= 0, X.mean().round().astype(int), axis=1), lambda X: X.clip(upper=10**6 + X.min().min())],
)
def test_negative_and_extreme_numbers_replaced_by_what_other_rows_hold_are_found_out(f):
    with pytest.raises(ValueError, match="reads more than one row"):
        row_wise(f)(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))


@over_rows("word", ["", "?", "NA", "unknown"])
@over_rows("dtype", ["object", "str", "string", "U8"])
def test_words_for_a_gap_replaced_by_what_other_rows_hold_are_found_out(word, dtype):
    table = np.array([["x"], ["y"]], dtype) if dtype == "U8" else pd.DataFrame({"a": ["x", "y"]}, dtype=dtype)
    with pytest.raises(ValueError, match="reads more than one row"):
        row_wise(lambda X: np.where(np.asarray(X) == word, np.sort(np.asarray(X, dtype=str), axis=0)[-1], X))(table)


def test_the_index_of_the_rows_is_watched_too():
    """Frames are joined by index: a row that takes the label of another stands in two rows of a union."""
    f = row_wise(lambda d: d.set_index(pd.Index([0, 1, 2])) if d["v"].iloc[0] == 77.7 else d)  # no made-up row is that
    table = pd.DataFrame({"v": [77.7, 2.0, 3.0]}, index=[2, 0, 1])
    with pytest.raises(ValueError, match="changes the index, by which data frames are joined"):
        f(table)
    repeated = pd.DataFrame({"v": [1.0, 2.0, 3.0]}, index=[5, 5, 0])
    assert f(repeated).index.tolist() == [5, 5, 0]
    column = row_wise(lambda d: d["v"])
    assert column(repeated).tolist() == [1.0, 2.0, 3.0]


def doubled_in_place(X):
    X *= 2
    return X


def gaps_in_place(X):
    X[np.isnan(X)] = 0.0
    return X + 0


IN_PLACE = {
    "missing_values": (gaps_in_place, np.ones((3, 2))),
    "sparse": (doubled_in_place, sparse.csr_array(np.eye(3))),
    "new column": (lambda d: d.insert(0, "new", 1.0) or d.copy(), pd.DataFrame({"a": [1.0, 2.0]})),
    "index": (lambda d: d.set_index("a", inplace=True, drop=False) or d.to_numpy(), pd.DataFrame({"a": [1.0, 2.0]})),
}


@over_rows("name", IN_PLACE)
def test_a_function_that_works_in_place_is_rejected(name):
    f, table = IN_PLACE[name]
    with pytest.raises(ValueError, match=r"modifies its input in place. Modify a copy"):
        row_wise(f)(table)
    copied = row_wise(lambda X: f(X.copy()))
    if name in ("gaps", "sparse"):
        copied(table)


def test_no_warning_of_a_row_or_of_made_up_rows_gets_out():
    """``np.nanmean`` warns by Python's machinery, which ``np.errstate`` knows nothing of."""
    f = row_wise(lambda X: np.nan_to_num(np.nanmean(X, axis=1)))
    for value in (0.0, np.nan):
        table = with_row(numbers(), 7, value)
        with warnings.catch_warnings(record=True, action="always") as caught:
            check_row_wise(f, table)
            with quietly():
                FunctionTransformer(f).fit_transform(table)
        assert caught == []


FRAME = pd.DataFrame(
    {
        "age": [30.0, 41.0], "n": [1, 2], "name": ["x", "y"], "sex": pd.Categorical(["f", "m"]), "ok": [True, False],
        "day": pd.to_datetime(["2020-01-01", "2021-05-05"]),
    }
)  # fmt: skip


@over_rows(
    ("f", "good"),
    [
        (lambda d: d.assign(age=d["age"] / 100), True),
        (lambda d: d["name"].str.len().to_frame().astype(float), True),
        (lambda d: d["name"].str.len().to_frame(), False),  # whole numbers, or floats if one row has a gap
        (lambda d: pd.get_dummies(d[["name"]]), False),
        (lambda d: d.assign(name=d["name"].astype("category").cat.codes), False),
        (lambda d: d.assign(age=d["age"] - d["age"].mean()), False),
        (lambda d: d.drop_duplicates("sex"), False),
        (lambda d: d.assign(n=d.groupby("sex", observed=False)["n"].transform("sum")), False),
        (lambda d: d.set_index("n", drop=False), False),
    ],
)
def test_frames(f, good):
    if good:
        assert str(row_wise(f)(FRAME)) == str(f(FRAME))
    else:
        with pytest.raises(ValueError, match=r"reads more than one row|changes the (number of rows|index)"):
            row_wise(f)(FRAME.set_axis([5, 3]))


def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1, 2]})
    assert row_wise(lambda d: d.with_columns(pl.col("a") * 2))(table)["a"].to_list() == [2.0, 4.0]
    for mixing in (pl.col("a") - pl.col("a").mean(), pl.col("a").rank(), pl.col("c").cum_sum(), pl.col("a").shift(1)):
        with pytest.raises(ValueError, match="more than one row"):
            row_wise(lambda d, mixing=mixing: d.with_columns(mixing))(table)


@over_rows("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_sparse_tables(kind):
    table = kind(np.eye(5))
    assert (row_wise(lambda X: X * 2)(table) != table * 2).nnz == 0
    with pytest.raises(ValueError, match="more than one row"):
        row_wise(lambda X: X.multiply(1 / X.shape[0]).asformat(X.format))(table)
    with pytest.raises(ValueError, match="changes the number"):
        row_wise(lambda X: X.tocsr()[np.flatnonzero(np.diff(X.tocsr().indptr))])(table)


def columns_of_all_types():
    pandas = {
        **{name: pd.array([1, None], dtype=name) for name in ("Int64", "UInt8", "Float64", "boolean")},
        **{name: np.ones(2, name) for name in ("int8", "float16", "float32", "bool", "complex64")},
        "string": pd.array(["x", None], dtype="string"),
        "object": np.array(["x", 1], dtype=object),
        "category": pd.Categorical(["u", "v"], ordered=True),
        "day": pd.to_datetime(["2020-01-01"] * 2),
        "time zone": pd.to_datetime(["2020-01-01"] * 2).tz_localize("Europe/Paris"),
        "duration": pd.to_timedelta(["1D"] * 2),
    }
    for name, values in pandas.items():
        yield f"pandas {name}", pd.DataFrame({"a": values})
    yield "pandas column", pd.Series(["a", "b"], name="n")
    yield "repeated names", pd.DataFrame(np.ones((2, 2)), columns=["a", "a"])
    for dtype in ("int8", "uint8", "float16", "bool", "complex64", "O", "U7", "S7", "M8[D]", "m8[s]"):
        yield f"array {dtype}", np.zeros((2, 2), dtype)
    yield "images", np.zeros((2, 4, 4), np.float32)
    yield "texts", ["a b", "c"]
    try:
        import polars as pl
    except ImportError:
        return
    kinds = (pl.Date, pl.Datetime("us"), pl.Duration, pl.String, pl.Categorical, pl.Enum(["x", "y"]), pl.Boolean)
    kinds += (pl.UInt8, pl.Float32)
    for kind in kinds:
        yield f"polars {kind}", pl.DataFrame({"a": pl.Series([None, None]).cast(kind)})
    yield "polars column", pl.Series("a", [1.0, 2.0])
    import pyarrow as pa

    kinds = (pa.date32(), pa.timestamp("ms", "Europe/Paris"), pa.duration("s"), pa.string(), pa.bool_(), pa.uint8())
    for kind in (*kinds, pa.float32(), pa.dictionary(pa.int8(), pa.string())):
        yield f"Arrow {kind}", pa.table({"a": pa.array([None, None], kind)})


@over_rows(("name", "table"), columns_of_all_types())
def test_gaps_and_codes_are_made_up_of_any_type(name, table):
    made = list(made_up(table))
    assert len(made) == 10  # of each way to draw
    assert all(type(each) is type(table) for each in made)
    if hasattr(table, "columns") or hasattr(table, "to_frame"):
        frames = [each.to_pandas() if name.startswith("Arrow") else each for each in made]
        holds = [np.asarray(pd.isna(np.asarray(each.to_numpy(), dtype=object))).any() for each in frames]
        assert any(holds) == (name not in ("pandas int8", "pandas bool"))
    if name in ("pandas Int64", "pandas float32", "pandas object"):
        seen = {value for each in made for value in each["a"].tolist()}
        assert set(CODES) <= seen
    if name in ("pandas string", "pandas object", "polars String", "array U7"):
        assert any("?" in np.asarray(each).ravel().tolist() for each in made)
    assert row_wise(lambda X: X)(table) is table
    if not name.startswith(("texts", "images")):
        with pytest.raises(ValueError, match="more than one row"):
            row_wise(lambda X: X[::-1])(table)


def test_made_up_rows_hold_nothing_of_the_table():
    """All that a function sees before it passes is the same for two tables of one kind."""
    seen = []

    def spy(X):
        seen.append(np.array(X, copy=True))
        return X

    secret = np.full((50, 3), 12345.678)
    check_row_wise(row_wise(spy), secret)
    first, seen[:] = [*seen], []
    check_row_wise(row_wise(spy), np.zeros((2, 3)))
    assert len(first) == len(seen) > 20
    for a, b in zip(first, seen, strict=True):
        np.testing.assert_array_equal(a, b)
    assert max(map(len, first)) <= 2 * N_ROWS


def test_a_function_that_fails_the_test_never_sees_the_table():
    seen = []

    def spy(X):
        seen.append(np.max(X))
        return X - X.mean()

    with pytest.raises(ValueError, match="more than one row"):
        row_wise(spy)(np.full((3, 2), 12345.678))
    assert 12345.678 not in seen


def test_the_number_of_real_rows_is_watched_too():
    f = row_wise(lambda X: X[X[:, 0] != 77.7])  # no made-up row is that
    assert f(np.zeros((3, 2))).shape == (3, 2)
    with pytest.raises(ValueError, match="changes the number of rows") as caught:
        f(np.full((3, 2), 77.7))
    assert "77" not in str(caught.value)
    assert "3" not in str(caught.value)


def test_an_example_for_what_cannot_be_run_on_made_up_rows():
    codes = {"red": 0.0, "blue": 1.0}

    def encode(X):
        return np.array([[codes[each] for each in row] for row in X])

    table = np.array([["red"], ["blue"], ["red"]], dtype=object)
    with pytest.raises(ValueError, match=r"encode failed on simulated rows. Pass skdp.row_wise\(f, example=...\)"):
        row_wise(encode)(table)
    assert row_wise(encode, example=table)(table).tolist() == [[0.0], [1.0], [0.0]]
    with pytest.raises(ValueError, match="at least two rows"):
        row_wise(encode, example=table[:1])(table)
    with pytest.raises(ValueError, match="more than one row"):
        row_wise(lambda X: encode(X) - encode(X).mean(), example=table)(table)


def test_keyword_arguments_are_part_of_the_function():
    step = FunctionTransformer(row_wise(lambda X, mean=False: X - X.mean(0) if mean else X), kw_args={"mean": False})
    step.fit_transform(np.ones((3, 2)))
    with pytest.raises(ValueError, match="more than one row"):
        step.set_params(kw_args={"mean": True}).fit_transform(np.ones((3, 2)))


def test_it_is_copied_cloned_and_pickled():
    for f in (shifted, row_wise(np.sqrt), row_wise(filtered, example=np.ones((2, 1)))):
        step = clone(FunctionTransformer(f))
        assert list(find_faults(step, "s")) == []
        assert copy.deepcopy(f) is f
        back = pickle.loads(pickle.dumps(f))
        assert type(back) is RowWise
        assert back.__wrapped__ is f.__wrapped__
    assert pickle.loads(pickle.dumps(shifted)) is shifted
    assert (shifted.__name__, shifted.__doc__) == ("shifted", "Adds one.")
    assert shifted(np.zeros((2, 1))).tolist() == [[1.0], [1.0]]
    assert repr(shifted) == "row_wise(shifted)"
    with pytest.raises(TypeError, match="`f` must be a function of a table, got 3"):
        row_wise(3)


def test_a_subclass_of_the_mark_is_no_mark():
    class Own(RowWise):
        pass

    assert list(find_faults(FunctionTransformer(Own(np.abs)), "s"))
