"""Steps that read nothing of their rows: each that is listed is run on neighboring tables."""

import contextlib
import copy
import inspect
import io
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from combinations import over_combinations, over_rows
from public_tables import CONSTANT, NUMERIC, N, numbers, with_row
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder

from skdp.base.public_steps import check_types, find_faults, quietly, rounds_by_place
from skdp.base.row_wise import RowWise, row_wise

# --- tables and their neighbors ---

ROW = 7


def neighbors(table, *, positive=False, gaps=False):
    """Tables with another row: void, extreme, tiny, a gap."""
    if table.dtype.kind == "f":
        big = float(np.finfo(table.dtype).max) / 4
        values = [0.0, big, 1e-30, *([] if positive else [-big, -0.0]), *([np.nan] if gaps else [])]
    else:
        values = [0, np.iinfo(table.dtype).max, *([] if positive else [np.iinfo(table.dtype).min])]
    for value in values:
        yield ROW, with_row(table, ROW, value)
    yield N - 1, with_row(table, N - 1, values[1])


def as_frame(table):
    return pd.DataFrame(table, columns=[f"column {i}" for i in range(table.shape[1])])


CONTAINERS = {
    "array": lambda table: table,
    "fortran": np.asfortranarray,
    "frame": as_frame,
    "csr": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
}


def outcome(step, table):
    """What can be seen of a fit: rows, kind of table, fitted state, names, warnings, output."""
    made, printed = clone(step), io.StringIO()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed), quietly():
        warnings.simplefilter("always")
        rows = made.fit_transform(copy.deepcopy(table))
    told = [(each.category.__name__, str(each.message)) for each in caught]
    try:
        names = list(made.get_feature_names_out())
    except (AttributeError, ValueError):
        names = None
    kind = [type(rows), rows.dtype if hasattr(rows, "dtype") else tuple(rows.dtypes), rows.shape[1:]]
    kind += [getattr(rows, "format", None), list(getattr(rows, "columns", []))]
    return rows, (kind, names, told, printed.getvalue()), joblib.hash(state(made))


def state(step):
    """All that a fitted step holds, its parts included; functions by what they are."""
    if isinstance(step, dict):
        return {key: state(value) for key, value in step.items() if key != "_stop_words_id"}  # an address
    if isinstance(step, list | tuple):
        return [state(each) for each in step]
    if isinstance(step, RowWise) or inspect.isfunction(step):
        return repr(type(step))
    if isinstance(step, np.random.RandomState):
        return step.get_state()
    if hasattr(step, "__dict__") and not isinstance(step, type) and not hasattr(step, "shape"):
        return type(step).__name__, state(vars(step))
    return step


def others(rows, left_out):
    kept = np.delete(np.arange(rows.shape[0]), left_out)
    if sparse.issparse(rows):
        rows = sparse.csr_matrix(rows)[kept]
        rows.sort_indices()
        return rows.toarray(), rows.indptr, rows.indices
    return (np.asarray(rows.iloc[kept] if hasattr(rows, "iloc") else rows[kept]),)


def assert_same_rows(a, b, rounds=False):
    for x, y in zip(a, b, strict=True):
        if rounds:
            scale = np.abs(x).max(axis=-1, keepdims=True) if x.dtype.kind == "f" else 0
            assert np.all(np.abs(x - y) <= 64 * np.finfo(x.dtype if x.dtype.kind == "f" else float).eps * scale)
        elif x.dtype.kind == "O":
            assert all(p is q or p == q or (p != p and q != q) for p, q in zip(x.ravel(), y.ravel(), strict=True))
        else:
            np.testing.assert_array_equal(x, y)


def replay(step, table, changed, row):
    compare(outcome(step, table), step, changed, row)


def compare(before, step, changed, row):
    """What was seen of a fit to a table, with a fit to one that has another such row."""
    rows, seen, held = before
    rows_2, seen_2, held_2 = outcome(step, changed)
    assert seen == seen_2
    assert held == held_2
    assert rows.shape == rows_2.shape
    assert rows.shape[0] == (len(changed) if isinstance(changed, list) else changed.shape[0])
    assert_same_rows(others(rows, [row]), others(rows_2, [row]))


@over_rows("name", NUMERIC)
def test_another_row_changes_no_other_row_and_nothing_else(name):
    """A row changed or removed: each container in the first dtype, each dtype in the first container."""
    case = NUMERIC[name]
    assert list(find_faults(case.step, "step")) == []
    for kind, dtype in dict.fromkeys([*((kind, case.dtypes[0]) for kind in case.kinds),
                                      *((case.kinds[0], dtype) for dtype in case.dtypes)]):  # fmt: skip
        table = numbers(dtype, positive=case.positive)
        gaps = case.gaps and table.dtype.kind == "f"
        before = outcome(case.step, CONTAINERS[kind](table))
        changes = list(neighbors(table, positive=case.positive, gaps=gaps))
        for row, changed in changes if (kind, dtype) == (case.kinds[0], case.dtypes[0]) else changes[-2:]:
            compare(before, case.step, CONTAINERS[kind](changed), row)
        fewer, *rest = outcome(case.step, CONTAINERS[kind](np.delete(table, ROW, axis=0)))
        assert before[1:] == tuple(rest)
        assert_same_rows(others(before[0], [ROW]), others(fewer, []), rounds=case.rounds)


# --- categories ---


def words(kind):
    rng = np.random.default_rng(1)
    drawn = rng.choice(np.array(["a", "b", "c"], dtype=object), (N, 2))
    return {
        "object": drawn,
        "text": drawn.astype("U12"),
        "frame": pd.DataFrame(drawn, columns=["u", "v"]),
        "category": pd.DataFrame(drawn, columns=["u", "v"]).astype(pd.CategoricalDtype(["a", "b", "c", "longer", "z"])),
        "number": rng.integers(0, 3, (N, 2)).astype(float),
        "whole": rng.integers(0, 3, (N, 2)),
    }[kind]


def replaced(table, row, value):
    changed = copy.deepcopy(table)
    if hasattr(changed, "iloc"):
        changed.iloc[row] = value
    else:
        changed[row] = value
    return changed


def removed(table, row):
    return table.drop(index=row) if hasattr(table, "iloc") else np.delete(table, row, axis=0)


def listed(kind, *, gap=False):
    known = [0, 1, 2] if kind in ("number", "whole") else ["a", "b", "c"]
    return [[*known, *([np.nan] if gap else [])]] * 2


ENCODERS = {
    "OneHotEncoder(drop)": (OneHotEncoder, {"drop": "first", "sparse_output": False}, False),
    "OneHotEncoder(ignore)": (OneHotEncoder, {"handle_unknown": "ignore"}, True),
    "OrdinalEncoder": (OrdinalEncoder, {}, False),
    "OrdinalEncoder(unknown NaN)": (
        OrdinalEncoder,
        {"handle_unknown": "use_encoded_value", "unknown_value": np.nan, "encoded_missing_value": -2},
        True,
    ),
}  # fmt: skip


WORDS = [(kind, False) for kind in ("object", "text", "frame", "category", "number", "whole")]
WORDS += [(kind, True) for kind in ("object", "frame", "category", "number")]  # the others have no gaps


@over_rows("name", ENCODERS)
@over_rows(("kind", "gap"), WORDS)
def test_an_encoder_with_given_lists(name, kind, gap):
    cls, parameters, takes_unknown = ENCODERS[name]
    step = cls(categories=listed(kind, gap=gap), **parameters)
    assert list(find_faults(step, "step")) == []
    table = words(kind)
    values = {"number": [0.0], "whole": [1]}.get(kind, ["a"])
    if takes_unknown:
        values += {"number": [9.0, -1e300], "whole": [9, -(2**40)]}.get(kind, ["z", "longer"])
    if gap:
        values.append(np.nan)
    rows, seen, held = outcome(step, table)
    for value in values:
        compare((rows, seen, held), step, replaced(table, ROW, value), ROW)
    fewer = outcome(step, removed(table, ROW))
    assert (seen, held) == fewer[1:]
    assert_same_rows(others(rows, [ROW]), others(fewer[0], []))
    one = replaced(table, slice(None), "a" if kind not in ("number", "whole") else 0)  # a constant column
    replay(step, one, replaced(one, 7, values[-1]), 7)


# --- texts and dictionaries ---


TEXTS = [f"the word {i % 7} and the other {i % 3}" for i in range(N)]
PAIRS = [{"a": i, f"b{i % 4}": 1.5, "c": "blue" if i % 2 else "red"} for i in range(N)]
LISTS = [
    (
        "HashingVectorizer(n-grams)",
        HashingVectorizer(n_features=64, ngram_range=(1, 2), norm=None, alternate_sign=False, binary=True,
                          stop_words="english", strip_accents="unicode", analyzer="char_wb", dtype=np.float32),
        TEXTS, ["", "unheard of " * 50],
    ),
    ("FeatureHasher", FeatureHasher(n_features=64), PAIRS, [{}, {"a": 0}, {"z": 1e300}, {"a": "text"}]),
    ("FeatureHasher(pair)", FeatureHasher(16, input_type="pair", dtype=np.float32),
     [list(each.items()) for each in PAIRS], [[], [("a", 1), ("a", -1)]]),
]  # fmt: skip


@over_rows(("name", "step", "table", "values"), LISTS)
def test_texts_and_dictionaries(name, step, table, values):
    assert list(find_faults(step, "step")) == []
    rows, seen, held = outcome(step, table)
    assert rows.shape[0] == N
    for value in values:
        compare((rows, seen, held), step, [*table[:ROW], value, *table[ROW + 1 :]], ROW)
    fewer, *rest = outcome(step, [*table[:ROW], *table[ROW + 1 :]])
    assert (seen, held) == tuple(rest)
    assert_same_rows(others(rows, [ROW]), others(fewer, []))


def test_the_logarithm_of_a_negative_number_is_told_unless_warnings_of_arithmetic_are_off():
    """Why pipelines fit public steps under errstate: numpy's warning is of one row."""
    table = numbers(positive=True)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        FunctionTransformer(np.log).fit_transform(with_row(table, 7, -1.0))
    logarithm = FunctionTransformer(np.log)
    both = FeatureUnion([("a", logarithm), ("b", clone(logarithm))], n_jobs=2)
    for step in (logarithm, both):
        with joblib.parallel_config("threading", n_jobs=2), quietly(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            step.fit_transform(with_row(table, 7, -1.0))
        assert caught == []
    with joblib.parallel_config("threading", n_jobs=2), np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        both.fit_transform(with_row(table, 7, -1.0))  # a setting of this thread alone


# --- types that rows decide, and rounding that their place decides ---


def test_a_table_whose_types_one_row_decides_is_rejected():
    pl = pytest.importorskip("polars")
    rejected = [
        ([[1, 2], [3, 4]], "got a list of rows"),
        (np.array([[b"a"], [b"long"]]), "an array of bytes, whose dtype depends on its longest value"),
        (pl.DataFrame({"a": [1, 2]}), r"Column 'a' has the polars type Int64, .* Cast it to Float64"),
        (pl.DataFrame({"a": [1.0], "b": [True]}), "Column 'b' has the polars type Boolean"),
        (pl.DataFrame({"a": [1.0], "b": [1]}).to_arrow(), "Column 'b' has the pyarrow type int64"),
        (pd.DataFrame({"a": [1, 2]}, dtype="category"), "Column 'a' has categories of dtype int64, .* to float"),
        (pd.DataFrame({"x": [1.0, 2.0], "b": pd.Categorical([True, False])}), "Column 'b' .* categories of dtype bool"),
        (
            pd.Series([1, 2], dtype="category", name="one"),
            "Column 'one' has categories of dtype int64, and a missing value would",
        ),
    ]
    for table, message in rejected:
        with pytest.raises(ValueError, match=message) as caught:
            check_types(table)
        assert "\n" not in str(caught.value)
    for table in (numbers(), numbers("int64"), as_frame(numbers()), sparse.csr_matrix(numbers()), TEXTS, PAIRS,
                  words("text"), words("category"), pl.DataFrame({"a": [1.0, None], "b": ["x", None]})):  # fmt: skip
        check_types(table)


HOLDING_GAPS = {
    "category of text": lambda v: pd.Series(v, dtype=object).map(str, na_action="ignore").astype(
        pd.CategoricalDtype(["0", "1", "2"])
    ),
    "object": lambda v: pd.Series(v, dtype=object),
    "Int64": lambda v: pd.Series(v, dtype="Int64"),
    "float": lambda v: pd.Series(v, dtype=float),
}  # fmt: skip


@over_combinations(inside=[False, True], name=["one hot", "ordinal", "imputer", "indicator"], kind=HOLDING_GAPS)
def test_a_gap_changes_no_name_and_no_type(kind, name, inside):
    """Of the columns of pandas that can hold one; a step may reject the gap, which goes to the caller."""
    listed = [["0", "1", "2"] if "text" in kind else [0, 1, 2]]
    step = {
        "one hot": OneHotEncoder(categories=listed, handle_unknown="ignore", sparse_output=False),
        "ordinal": OrdinalEncoder(categories=listed, handle_unknown="use_encoded_value", unknown_value=-1),
        "imputer": SimpleImputer(**CONSTANT, fill_value="0" if "text" in kind else 0),
        "indicator": MissingIndicator(features="all"),
    }[name]
    if inside:
        step = ColumnTransformer([("a", step, ["a"])], sparse_threshold=0)
    gap = np.nan if (kind, name) == ("object", "imputer") else None  # an imputer takes None for a value
    values = [0, 1, 2] * 5
    tables = [pd.DataFrame({"a": HOLDING_GAPS[kind]([*values[:7], each, *values[8:]])}) for each in (1, gap)]
    for table in tables:
        check_types(table)
    replay(step, *tables, 7)


PLACES = {
    "RBFSampler": RBFSampler(random_state=0),
    "row_wise": FunctionTransformer(row_wise(lambda X: X @ np.ones((X.shape[1], 20), X.dtype))),
    "Normalizer": Normalizer(),
    "exp": FunctionTransformer(np.exp),
}


@over_rows("dtype", ["float64", "float32"])
@over_rows("name", PLACES)
def test_rounding_by_place(name, dtype):
    """Another row in its place leaves all others as they are, to the last bit. One that leaves may not: then a step is
    in the list for which single precision is rejected."""
    step, rng = PLACES[name], np.random.default_rng(3)
    table = rng.uniform(0, 1, (777, 70)).astype(dtype)
    before = outcome(step, table)
    rows = before[0]
    for row, value in ((0, 1e30), (776, 0.0)):
        compare(before, step, with_row(table, row, value), row)
        fewer = outcome(step, np.delete(table, row, axis=0))[0]
        if rounds_by_place(step):
            error = np.abs(np.delete(rows, row, axis=0) - fewer) / np.abs(rows).max()
            assert error.max() <= 1e3 * np.finfo(dtype).eps
        else:
            np.testing.assert_array_equal(np.delete(rows, row, axis=0), fewer)


def test_single_precision_is_rejected_where_it_is_asked_for():
    for table in (numbers("float32"), as_frame(numbers("float32")), sparse.csr_array(numbers("float32"))):
        check_types(table)
        with pytest.raises(ValueError, match="single precision"):
            check_types(table, double=True)
    check_types(numbers(), double=True)
    assert rounds_by_place(make_pipeline(Normalizer(), PLACES["RBFSampler"]))
    assert rounds_by_place(ColumnTransformer([("a", PLACES["row_wise"], [0])], sparse_threshold=0))
    assert not rounds_by_place(make_pipeline(Normalizer(), FunctionTransformer(np.abs)))
