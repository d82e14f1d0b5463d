"""Steps that read nothing of their rows: each that is listed is run on neighbouring tables, each other is refused."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.special
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingRegressor
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.image import PatchExtractor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import all_estimators

from skdp import DPPCA, DPLogisticRegression, allocate_budget
from skdp._fitting.made_up import CODES, N_ROWS, made_up
from skdp._fitting.public_rules import RULES
from skdp._fitting.public_steps import COUNTERPARTS, check_types, find_faults, quietly, rounds_by_place
from skdp._fitting.row_wise import RowWise, check_row_wise, row_wise

N, D = 40, 4
ROWS = (0, 7, N - 1)
KNOTS = np.linspace(-2.0, 2.0, 5)[:, None] * np.ones(D)


# --- tables and their neighbours ---


def numbers(dtype=np.float64, *, positive=False):
    rng = np.random.default_rng(0)
    drawn = np.round(rng.uniform(0.1, 2.0, (N, D)) if positive else rng.normal(0.0, 1.0, (N, D)), 3)
    drawn[:, 1] = 1.0  # a constant column
    drawn[:, 3] = np.where(rng.random(N) < 0.7, 0.0, drawn[:, 3])
    return (drawn * (100 if np.dtype(dtype).kind in "iu" else 1)).astype(dtype)


def with_row(table, row, values):
    changed = table.copy()
    changed[row] = values
    return changed


def neighbours(table, *, positive=False, gaps=False):
    """Tables with another row: void, extreme, tiny, a gap."""
    if table.dtype.kind == "f":
        big = float(np.finfo(table.dtype).max) / 4
        values = [0.0, big, 1e-30, *([] if positive else [-big, -0.0]), *([np.nan] if gaps else [])]
    else:
        values = [0, np.iinfo(table.dtype).max, *([] if positive else [np.iinfo(table.dtype).min])]
    for row in ROWS:
        for value in values:
            yield row, with_row(table, row, value)


def as_frame(table):
    return pd.DataFrame(table, columns=[f"column {i}" for i in range(table.shape[1])])


CONTAINERS = {
    "array": lambda table: table,
    "fortran": np.asfortranarray,
    "frame": as_frame,
    "csr": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
}
DENSE = ("array", "fortran", "frame")


class Case:
    """A step, and the tables on which it is replayed."""

    def __init__(self, step, *, kinds=DENSE, dtypes=("float64", "float32", "int64"), positive=False, gaps=False,
                 rounds=False):  # fmt: skip
        self.step, self.kinds, self.dtypes = step, kinds, dtypes
        self.positive, self.gaps = positive, gaps
        self.rounds = rounds  # matrix products: a row's rounding depends on its place among the rows


ALL = (*DENSE, "csr", "csr_array")
NUMERIC = {
    "FunctionTransformer": Case(FunctionTransformer(), kinds=ALL, gaps=True),
    "FunctionTransformer(abs)": Case(FunctionTransformer(np.abs), kinds=ALL, gaps=True),
    "FunctionTransformer(log)": Case(FunctionTransformer(np.log), gaps=True),
    "FunctionTransformer(exp, names)": Case(FunctionTransformer(np.exp, feature_names_out="one-to-one"), gaps=True),
    "FunctionTransformer(expit)": Case(FunctionTransformer(scipy.special.expit), gaps=True),
    "FunctionTransformer(log1p, expm1)": Case(
        FunctionTransformer(np.log1p, np.expm1, check_inverse=False, validate=True)
    ),
    "FunctionTransformer(inverse only)": Case(FunctionTransformer(None, lambda X: X.mean(0)), gaps=True),
    "FunctionTransformer(row_wise)": Case(FunctionTransformer(row_wise(lambda X: X * 2 + 1))),
    "Normalizer": Case(Normalizer(), kinds=ALL),
    "Normalizer(l1)": Case(Normalizer("l1"), kinds=ALL),
    "Normalizer(max)": Case(Normalizer("max"), kinds=ALL, dtypes=("float64",)),
    "Binarizer": Case(Binarizer(), kinds=ALL),
    "Binarizer(-1)": Case(Binarizer(threshold=-1.0)),
    "PolynomialFeatures": Case(PolynomialFeatures(), kinds=ALL),
    "PolynomialFeatures(3, interactions)": Case(PolynomialFeatures(3, interaction_only=True, order="F")),
    "PolynomialFeatures((2, 4))": Case(PolynomialFeatures((2, 4), include_bias=False), kinds=ALL),
    **{
        f"SplineTransformer({way})": Case(SplineTransformer(knots=KNOTS, extrapolation=way, degree=degree))
        for way, degree in (("constant", 3), ("linear", 1), ("continue", 2), ("periodic", 3))
    },
    "SplineTransformer(no bias)": Case(SplineTransformer(knots=KNOTS.tolist(), include_bias=False, order="F")),
    "SimpleImputer": Case(
        SimpleImputer(strategy="constant", keep_empty_features=True),
        kinds=ALL, gaps=True, dtypes=("float64", "float32"),
    ),
    "SimpleImputer(7)": Case(
        SimpleImputer(strategy="constant", fill_value=7, keep_empty_features=True),
        kinds=ALL, gaps=True, dtypes=("float64", "float32"),
    ),
    "SimpleImputer(whole numbers)": Case(
        SimpleImputer(strategy="constant", fill_value=7, keep_empty_features=True), dtypes=("int64",)
    ),  # sparse ones are refused before scikit-learn 1.8, by their type
    "SimpleImputer(missing 1)": Case(
        SimpleImputer(missing_values=1, strategy="constant", fill_value=0, keep_empty_features=True),
        dtypes=("float64", "int64"),
    ),
    "SimpleImputer(missing 1, sparse)": Case(
        SimpleImputer(missing_values=1, strategy="constant", fill_value=0, keep_empty_features=True),
        kinds=("csr", "csr_array"), dtypes=("float64",),
    ),
    "MissingIndicator": Case(MissingIndicator(features="all"), kinds=ALL, gaps=True),
    "MissingIndicator(dense)": Case(MissingIndicator(features="all", sparse=False), kinds=ALL, gaps=True),
    "MissingIndicator(sparse)": Case(MissingIndicator(features="all", sparse=True), gaps=True),
    "GaussianRandomProjection": Case(GaussianRandomProjection(3, random_state=0), kinds=ALL, rounds=True),
    "GaussianRandomProjection(inverse)": Case(
        GaussianRandomProjection(np.int64(3), random_state=0, compute_inverse_components=True), rounds=True
    ),
    "SparseRandomProjection": Case(SparseRandomProjection(3, random_state=0), kinds=ALL, rounds=True),
    "SparseRandomProjection(dense)": Case(
        SparseRandomProjection(3, density=0.5, random_state=0, dense_output=True), kinds=ALL, rounds=True
    ),
    "RBFSampler": Case(RBFSampler(random_state=0), kinds=ALL, rounds=True),
    "RBFSampler(2)": Case(RBFSampler(gamma=2, n_components=3, random_state=0), rounds=True),
    "PolynomialCountSketch": Case(PolynomialCountSketch(n_components=8, random_state=0), rounds=True),
    "PolynomialCountSketch(3)": Case(
        PolynomialCountSketch(gamma=0.5, degree=3, coef0=1, n_components=8, random_state=0), kinds=ALL, rounds=True
    ),
    "AdditiveChi2Sampler": Case(AdditiveChi2Sampler(), kinds=ALL, positive=True),
    "AdditiveChi2Sampler(3)": Case(AdditiveChi2Sampler(sample_steps=4, sample_interval=0.3), kinds=ALL, positive=True),
    "SkewedChi2Sampler": Case(SkewedChi2Sampler(random_state=0), positive=True, rounds=True),
    "Pipeline": Case(make_pipeline(Normalizer(), "passthrough", None, PolynomialFeatures()), kinds=ALL),
    "FeatureUnion": Case(
        FeatureUnion([("a", Normalizer()), ("b", "passthrough"), ("c", "drop"), ("d", FunctionTransformer(np.abs))])
    ),
    "FeatureUnion(sparse)": Case(
        FeatureUnion([("a", MissingIndicator(features="all", sparse=True)), ("b", Binarizer())], n_jobs=1),
        gaps=False,
    ),
    "ColumnTransformer": Case(
        ColumnTransformer([("a", Normalizer(), [0, 1]), ("b", Binarizer(), slice(2, 3))], sparse_threshold=0)
    ),
    "ColumnTransformer(sparse parts)": Case(
        ColumnTransformer(
            [("a", Binarizer(), [0]), ("b", MissingIndicator(features="all", sparse=True), [3])],
            remainder="passthrough", sparse_threshold=0.0,
        ),
        kinds=ALL,
    ),
    "ColumnTransformer(drop)": Case(
        ColumnTransformer([("a", "drop", [0]), ("b", "passthrough", [True, False, True, False])], sparse_threshold=0),
    ),
    "ColumnTransformer(remainder)": Case(
        ColumnTransformer([("a", Normalizer(), [0])], remainder=PolynomialFeatures(), sparse_threshold=0)
    ),
}  # fmt: skip
if "handle_missing" in inspect.signature(SplineTransformer).parameters:  # scikit-learn 1.8 and later
    for way in ("constant", "linear", "continue", "periodic"):
        NUMERIC[f"SplineTransformer({way}, gaps)"] = Case(
            SplineTransformer(knots=KNOTS, extrapolation=way, handle_missing="zeros"),
            gaps=True, dtypes=("float64", "float32"),
        )  # fmt: skip


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
    rows, seen, held = outcome(step, table)
    rows_2, seen_2, held_2 = outcome(step, changed)
    assert seen == seen_2
    assert held == held_2
    assert rows.shape == rows_2.shape
    assert rows.shape[0] == table.shape[0]
    assert_same_rows(others(rows, [row]), others(rows_2, [row]))


@pytest.mark.parametrize("name", NUMERIC)
def test_another_row_changes_no_other_row_and_nothing_else(name):
    case = NUMERIC[name]
    assert list(find_faults(case.step, "step")) == []
    for dtype in case.dtypes:
        table = numbers(dtype, positive=case.positive)
        gaps = case.gaps and table.dtype.kind == "f"
        for kind in case.kinds:
            for row, changed in neighbours(table, positive=case.positive, gaps=gaps):
                replay(case.step, CONTAINERS[kind](table), CONTAINERS[kind](changed), row)


@pytest.mark.parametrize("name", NUMERIC)
def test_a_row_that_leaves_changes_no_other_row_and_nothing_else(name):
    case = NUMERIC[name]
    for dtype in case.dtypes:
        table = numbers(dtype, positive=case.positive)
        for kind in case.kinds:
            rows, seen, held = outcome(case.step, CONTAINERS[kind](table))
            for row in ROWS:
                fewer, seen_2, held_2 = outcome(case.step, CONTAINERS[kind](np.delete(table, row, axis=0)))
                assert seen == seen_2
                assert held == held_2
                assert_same_rows(others(rows, [row]), others(fewer, []), rounds=case.rounds)


@pytest.mark.parametrize("name", [name for name, case in NUMERIC.items() if case.gaps])
def test_a_column_that_is_empty_but_for_one_row(name):
    """The row decides whether there is anything to be seen in the column; it stays, whatever it holds."""
    case = NUMERIC[name]
    for dtype in ("float64", "float32"):
        table = numbers(dtype)
        table[:, 2] = np.nan
        for kind in case.kinds:
            replay(case.step, CONTAINERS[kind](with_row(table, 7, 1.0)), CONTAINERS[kind](table), 7)
            replay(
                case.step, CONTAINERS[kind](numbers(dtype)), CONTAINERS[kind](with_row(numbers(dtype), 7, np.nan)), 7
            )


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["Normalizer", "PolynomialFeatures", "SimpleImputer", "RBFSampler", "Binarizer"])
def test_frames_as_output(name, container):
    if container == "polars":
        pytest.importorskip("polars")
    case = NUMERIC[name]
    made = clone(case.step).set_output(transform=container)
    table = numbers()
    for row, changed in neighbours(table):
        a, b = (outcome(made, as_frame(each)) for each in (table, changed))
        assert a[1:] == b[1:]
        if container == "pandas":
            assert_same_rows(others(a[0], [row]), others(b[0], [row]))


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
    "OneHotEncoder": (OneHotEncoder, {}, False),
    "OneHotEncoder(drop)": (OneHotEncoder, {"drop": "first", "sparse_output": False}, False),
    "OneHotEncoder(drop each)": (OneHotEncoder, {"drop": "if_binary", "dtype": np.float32}, False),
    "OneHotEncoder(ignore)": (OneHotEncoder, {"handle_unknown": "ignore"}, True),
    "OneHotEncoder(ignore, dense)": (OneHotEncoder, {"handle_unknown": "ignore", "sparse_output": False}, True),
    "OneHotEncoder(infrequent)": (OneHotEncoder, {"handle_unknown": "infrequent_if_exist"}, True),
    "OrdinalEncoder": (OrdinalEncoder, {}, False),
    "OrdinalEncoder(unknown)": (OrdinalEncoder, {"handle_unknown": "use_encoded_value", "unknown_value": -1}, True),
    "OrdinalEncoder(unknown NaN)": (
        OrdinalEncoder,
        {"handle_unknown": "use_encoded_value", "unknown_value": np.nan, "encoded_missing_value": -2},
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("kind", ["object", "text", "frame", "category", "number", "whole"])
@pytest.mark.parametrize("gap", [False, True])
def test_an_encoder_with_given_lists(name, kind, gap):
    cls, parameters, takes_unknown = ENCODERS[name]
    if gap and kind in ("text", "whole"):
        return  # has no gaps
    step = cls(categories=listed(kind, gap=gap), **parameters)
    assert list(find_faults(step, "step")) == []
    table = words(kind)
    values = {"number": [0.0], "whole": [1]}.get(kind, ["a"])
    if takes_unknown:
        values += {"number": [9.0, -1e300], "whole": [9, -(2**40)]}.get(kind, ["z", "longer"])
    if gap:
        values.append(np.nan)
    rows, seen, held = outcome(step, table)
    for row in ROWS:
        for value in values:
            replay(step, table, replaced(table, row, value), row)
        fewer = outcome(step, removed(table, row))
        assert (seen, held) == fewer[1:]
        assert_same_rows(others(rows, [row]), others(fewer[0], []))
    one = replaced(table, slice(None), "a" if kind not in ("number", "whole") else 0)  # a constant column
    replay(step, one, replaced(one, 7, values[-1]), 7)


# --- texts and dictionaries ---

TEXTS = [f"the word {i % 7} and the other {i % 3}" for i in range(N)]
PAIRS = [{"a": i, f"b{i % 4}": 1.5, "c": "blue" if i % 2 else "red"} for i in range(N)]
LISTS = [
    ("HashingVectorizer", HashingVectorizer(n_features=64), TEXTS, ["", "unheard of " * 50, "the word"]),
    (
        "HashingVectorizer(n-grams)",
        HashingVectorizer(n_features=64, ngram_range=(1, 2), norm=None, alternate_sign=False, binary=True,
                          stop_words="english", strip_accents="unicode", analyzer="char_wb", dtype=np.float32),
        TEXTS, ["", "unheard of " * 50],
    ),
    ("HashingVectorizer(words)", HashingVectorizer(n_features=64, stop_words=["the"]), TEXTS, ["", "the"]),
    ("FeatureHasher", FeatureHasher(n_features=64), PAIRS, [{}, {"a": 0}, {"z": 1e300}, {"a": "text"}]),
    ("FeatureHasher(pair)", FeatureHasher(16, input_type="pair", dtype=np.float32),
     [list(each.items()) for each in PAIRS], [[], [("a", 1), ("a", -1)]]),
    ("FeatureHasher(string)", FeatureHasher(16, input_type="string", alternate_sign=False),
     [each.split() for each in TEXTS], [[], ["unheard"] * 1000]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "step", "table", "values"), LISTS, ids=[each[0] for each in LISTS])
def test_texts_and_dictionaries(name, step, table, values):
    assert list(find_faults(step, "step")) == []
    rows, seen, held = outcome(step, table)
    assert rows.shape[0] == N
    for row in ROWS:
        for value in values:
            changed = [*table[:row], value, *table[row + 1 :]]
            rows_2, *rest = outcome(step, changed)
            assert (seen, held) == tuple(rest)
            assert_same_rows(others(rows, [row]), others(rows_2, [row]))
        fewer, *rest = outcome(step, [*table[:row], *table[row + 1 :]])
        assert (seen, held) == tuple(rest)
        assert_same_rows(others(rows, [row]), others(fewer, []))


def test_the_logarithm_of_a_negative_number_is_told_unless_warnings_of_arithmetic_are_off():
    """Why pipelines fit public steps under errstate: numpy's warning is of one row."""
    table = numbers(positive=True)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        FunctionTransformer(np.log).fit_transform(with_row(table, 7, -1.0))
    logarithm = FunctionTransformer(np.log)
    both = FeatureUnion([("a", logarithm), ("b", clone(logarithm))], n_jobs=2)
    for step in (logarithm, both):
        for backend in ("threading", "loky"):
            with joblib.parallel_config(backend, n_jobs=2), quietly(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                step.fit_transform(with_row(table, 7, -1.0))
            assert caught == []
    with joblib.parallel_config("threading", n_jobs=2), np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        both.fit_transform(with_row(table, 7, -1.0))  # a setting of this thread alone


# --- types that rows decide, and rounding that their place decides ---


def test_a_table_whose_types_one_row_decides_is_refused():
    pl = pytest.importorskip("polars")
    refused = [
        ([[1, 2], [3, 4]], "X is a list of rows"),
        (np.array([[b"a"], [b"long"]]), "an array of bytes, as wide as its longest value"),
        (pl.DataFrame({"a": [1, 2]}), r"column 'a' is of polars' type Int64, .* cast it to Float64"),
        (pl.DataFrame({"a": [1.0], "b": [True]}), "column 'b' is of polars' type Boolean"),
        (pd.DataFrame({"a": [1, 2]}, dtype="category"), "column 'a' is of pandas' type category of int64, .* to float"),
        (pd.DataFrame({"x": [1.0, 2.0], "b": pd.Categorical([True, False])}), "column 'b' .* category of bool"),
        (pd.DataFrame({"a": pd.Categorical([1], categories=pd.array([1], dtype="Int8"))}), "category of Int8"),
        (pd.Series([1, 2], dtype="category", name="one"), "column 'one' .* category of int64"),
    ]
    for table, message in refused:
        with pytest.raises(ValueError, match=message) as caught:
            check_types(table)
        assert "\n" not in str(caught.value)
    for table in (numbers(), numbers("int64"), as_frame(numbers()), sparse.csr_matrix(numbers()), TEXTS, PAIRS,
                  words("text"), words("category"), pl.DataFrame({"a": [1.0, None], "b": ["x", None]})):  # fmt: skip
        check_types(table)


def test_why_one_row_would_decide():
    """A gap in polars' integers makes floats of the column; a longer text of bytes uncuts the category of others."""
    pl = pytest.importorskip("polars")
    step = SimpleImputer(strategy="constant", keep_empty_features=True)
    kinds = [step.fit_transform(pl.DataFrame({"a": [1, last]})).dtype for last in (2, None)]
    assert kinds == [np.int64, np.float64]
    encoder = OneHotEncoder(categories=[[b"a", b"bcd"]], handle_unknown="ignore", sparse_output=False)
    tables = [np.array([[b"b"], [last]]) for last in (b"a", b"aaa")]
    assert [encoder.fit_transform(table)[0].tolist() for table in tables] == [[0.0, 1.0], [0.0, 0.0]]


HOLDING_GAPS = {
    "category of text": lambda v: pd.Series(v, dtype=object).map(str, na_action="ignore").astype(
        pd.CategoricalDtype(["0", "1", "2"])
    ),
    "category of floats": lambda v: pd.Series(v, dtype=float).astype(pd.CategoricalDtype([0.0, 1.0, 2.0])),
    "object": lambda v: pd.Series(v, dtype=object),
    "Int64": lambda v: pd.Series(v, dtype="Int64"),
    "UInt8": lambda v: pd.Series(v, dtype="UInt8"),
    "Float64": lambda v: pd.Series(v, dtype="Float64"),
    "Float32": lambda v: pd.Series(v, dtype="Float32"),
    "float": lambda v: pd.Series(v, dtype=float),
}  # fmt: skip


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", ["one hot", "ordinal", "imputer", "indicator"])
@pytest.mark.parametrize("kind", HOLDING_GAPS)
def test_a_gap_changes_no_name_and_no_type(kind, name, inside):
    """Of the columns of pandas that can hold one; a step may refuse the gap, which goes to the caller."""
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
    "GaussianRandomProjection": GaussianRandomProjection(20, random_state=0),
    "SparseRandomProjection": SparseRandomProjection(20, random_state=0, dense_output=True),
    "RBFSampler": RBFSampler(random_state=0),
    "PolynomialCountSketch": PolynomialCountSketch(n_components=64, random_state=0),
    "SkewedChi2Sampler": SkewedChi2Sampler(random_state=0),
    "row_wise": FunctionTransformer(row_wise(lambda X: X @ np.ones((X.shape[1], 20), X.dtype))),
    "PolynomialFeatures": PolynomialFeatures(2),
    "Normalizer": Normalizer(),
    "AdditiveChi2Sampler": AdditiveChi2Sampler(),
    "exp": FunctionTransformer(np.exp),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", PLACES)
def test_rounding_by_place(name, dtype):
    """Another row in its place leaves all others as they are, to the last bit. One that leaves may not: then a step is
    in the list for which single precision is refused."""
    step, rng = PLACES[name], np.random.default_rng(3)
    table = rng.uniform(0, 1, (777, 70)).astype(dtype)
    rows = outcome(step, table)[0]
    for row in (0, 5, 400, 776):
        for value in (0.0, 1e30):
            replay(step, table, with_row(table, row, value), row)
        fewer = outcome(step, np.delete(table, row, axis=0))[0]
        if rounds_by_place(step):
            error = np.abs(np.delete(rows, row, axis=0) - fewer) / np.abs(rows).max()
            assert error.max() <= 1e3 * np.finfo(dtype).eps
        else:
            np.testing.assert_array_equal(np.delete(rows, row, axis=0), fewer)


def test_single_precision_is_refused_where_it_is_asked_for():
    for table in (numbers("float32"), as_frame(numbers("float32")), sparse.csr_array(numbers("float32"))):
        check_types(table)
        with pytest.raises(ValueError, match="single precision"):
            check_types(table, double=True)
    check_types(numbers(), double=True)
    assert rounds_by_place(make_pipeline(Normalizer(), PLACES["RBFSampler"]))
    assert rounds_by_place(ColumnTransformer([("a", PLACES["row_wise"], [0])], sparse_threshold=0))
    assert not rounds_by_place(make_pipeline(Normalizer(), FunctionTransformer(np.abs)))


# --- what is refused ---


class Tagged(TransformerMixin, BaseEstimator):
    """Tagged as stateless, and keeps its rows."""

    def fit(self, X, y=None):
        self.rows_ = X
        return self

    def transform(self, X):
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class OwnNormalizer(Normalizer):
    """A subclass may do anything."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self


def replaced_method():
    step = Normalizer()
    step.transform = lambda X: X - X.mean(axis=0)
    return step


def marked(f):
    return FunctionTransformer(row_wise(f))


class Reading:
    """Is multiplied by the rows."""

    __array_ufunc__ = None

    def __rmul__(self, rows):
        return rows - rows.mean(axis=0)


class Number(float):
    """Computes with the rows."""

    def __array_ufunc__(self, ufunc, method, *given, **named):
        return getattr(ufunc, method)(*[float(each) if isinstance(each, Number) else each for each in given], **named)


class Lazy(list):
    """Finds its items when asked."""


class Listed:
    def __len__(self):
        return 1

    def __array__(self, dtype=None, copy=None):
        return np.zeros(1, dtype)


UNION = [("a", FunctionTransformer())]
COLUMNS_0 = {"transformers": [("a", "passthrough", [0])], "sparse_threshold": 0}


def partly_in_pandas():
    inner = make_pipeline(Normalizer(), PolynomialFeatures())
    union = FeatureUnion([("a", FunctionTransformer()), ("b", inner)]).set_output(transform="pandas")
    inner.steps[0][1].set_output(transform="default")
    return union


GIVEN = {"categories": [["a"]] * 2}
CONSTANT = {"strategy": "constant", "keep_empty_features": True}
REFUSED = [
    (Tagged(), "is not on the list", "a private estimator or a transformer that learns nothing"),
    (OwnNormalizer(), "is not on the list", "a private estimator"),
    (replaced_method(), "method that was replaced", "a new object"),
    (Normalizer, "is not on the list", "a private estimator"),
    (object(), "is not on the list", "a private estimator"),
    ("normalizer", "is not on the list", "a private estimator"),
    (StandardScaler(), "is not on the list", "scales by public bounds"),
    (MinMaxScaler(), "is not on the list", "scales by public bounds"),
    (QuantileTransformer(), "is not on the list", "scales by public bounds"),
    (KBinsDiscretizer(), "is not on the list", "public edges"),
    (PCA(), "is not on the list", "skdp.DPPCA"),
    (LogisticRegression(), "is not on the list", "skdp.DPLogisticRegression"),
    (GaussianProcessRegressor(), "is not on the list", "a private estimator"),
    (MultiOutputRegressor(GaussianProcessRegressor()), "is not on the list", "a private estimator"),
    (VotingRegressor([("a", GaussianProcessRegressor())]), "is not on the list", "a private estimator"),
    (TransformedTargetRegressor(GaussianProcessRegressor()), "is not on the list", "a private estimator"),
    (PatchExtractor(), "is not on the list", "a private estimator"),
    (FunctionTransformer(lambda X: X - X.mean(0)), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.cumsum), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.frompyfunc(lambda x: x, 1, 1)), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.add), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.sort), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.negative.at), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.abs, kw_args={"where": np.ones((N, 1), bool)}), "kw_args", "skdp.row_wise"),
    (FunctionTransformer(np.log1p, np.expm1), "compares some rows", "check_inverse=False"),
    (FunctionTransformer(row_wise(np.abs), np.abs), "compares some rows", "check_inverse=False"),
    (SplineTransformer(), "places its knots", "knots=array"),
    (SplineTransformer(knots="quantile"), "places its knots", "knots=array"),
    (SplineTransformer(knots=KNOTS, sparse_output=True), "stores zeros", "sparse_output=False"),
    (OneHotEncoder(), "reads its categories", "public lists"),
    (OneHotEncoder(categories=["auto", ["a"]]), "reads its categories", "public lists"),
    (OneHotEncoder(categories=np.array(["ab", "cd"])), "reads its categories", "public lists"),
    (OneHotEncoder(**GIVEN, min_frequency=2), "counts", "min_frequency=None"),
    (OneHotEncoder(**GIVEN, max_categories=2), "counts", "max_categories=None"),
    (OneHotEncoder(**GIVEN, handle_unknown="warn"), "unknown category", "handle_unknown='ignore'"),
    (OneHotEncoder(**GIVEN, handle_unknown="new"), "unknown category", "handle_unknown='ignore'"),
    (OneHotEncoder(**GIVEN, drop="first", handle_unknown="ignore"), "unknown category", "drop=None"),
    (OneHotEncoder(**GIVEN, drop=["a", "a"], handle_unknown="infrequent_if_exist"), "unknown category", "drop=None"),
    (OrdinalEncoder(), "reads its categories", "public lists"),
    (OrdinalEncoder(**GIVEN, min_frequency=0.1), "counts", "min_frequency=None"),
    (OrdinalEncoder(**GIVEN, max_categories=2), "counts", "max_categories=None"),
    (SimpleImputer(keep_empty_features=True), "computes what it fills in", "strategy='constant'"),
    (SimpleImputer(strategy="median", keep_empty_features=True), "computes", "strategy='constant'"),
    (SimpleImputer(strategy=np.max, keep_empty_features=True), "computes", "strategy='constant'"),
    (SimpleImputer(strategy="constant"), "drops a column", "keep_empty_features=True"),
    (SimpleImputer(**CONSTANT, add_indicator=True), "adds a column", "MissingIndicator"),
    (SimpleImputer(**CONSTANT, copy=False), "works in place", "copy=True"),
    (Binarizer(copy=False), "works in place", "copy=True"),
    (Normalizer(copy=False), "works in place", "copy=True"),
    (FeatureUnion(UNION, transformer_weights={"a": Reading()}), "weights that are not plain", "'name': 2.0"),
    (FeatureUnion(UNION, transformer_weights={"a": np.ones((N, 1))}), "weights that are not plain", "'name': 2.0"),
    (FeatureUnion(UNION, transformer_weights={"a": Number(2.0)}), "weights that are not plain", "'name': 2.0"),
    (ColumnTransformer(**COLUMNS_0, transformer_weights={"a": Reading()}), "weights that are not plain", "2.0"),
    (ColumnTransformer([("a", "passthrough", Lazy([0]))], sparse_threshold=0), "chooses columns by an object", "names"),
    (OneHotEncoder(categories=[Listed()]), "reads its categories", "public lists"),
    (OneHotEncoder(categories=Lazy([["a"]])), "reads its categories", "public lists"),
    (OneHotEncoder(categories=[Lazy(["a"])]), "reads its categories", "public lists"),
    (OrdinalEncoder(categories=[[Number(1.0)]]), "parameter categories of type list", "a plain number"),
    (SimpleImputer(**CONSTANT, fill_value=Number(1.0)), "parameter fill_value of type Number", "a plain number"),
    (SimpleImputer(**CONSTANT, missing_values=Number(1.0)), "parameter missing_values", "a plain number"),
    (Binarizer(threshold=Number(0.0)), "parameter threshold of type Number", "a plain number"),
    (RBFSampler(gamma=Number(1.0)), "parameter gamma of type Number", "a plain number"),
    (SplineTransformer(knots=Lazy(KNOTS.tolist())), "parameter knots of type Lazy", "a plain number"),
    (SplineTransformer(knots=np.ma.masked_array(KNOTS)), "parameter knots of type MaskedArray", "a plain number"),
    (MissingIndicator(), "keeps the columns", "features='all'"),
    (GaussianRandomProjection(), "number of rows", "n_components=number"),
    (SparseRandomProjection(), "number of rows", "n_components=number"),
    (RBFSampler(gamma="scale"), "gamma", "gamma=number"),
    (HashingVectorizer(tokenizer=str.split), "function of yours", "without functions"),
    (HashingVectorizer(preprocessor=str.lower), "function of yours", "without functions"),
    (HashingVectorizer(analyzer=str.split), "function of yours", "without functions"),
    (HashingVectorizer(strip_accents=str.lower), "function of yours", "without functions"),
    (HashingVectorizer(input="filename"), "reads files", "content"),
    (make_pipeline(Normalizer(), memory="somewhere"), "cache", "memory=None"),
    (ColumnTransformer([("a", Normalizer(), [0])]), "share of nonzero", "sparse_threshold=0"),
    (ColumnTransformer([("a", Normalizer(), [0])], sparse_threshold=1.0), "share of nonzero", "sparse_threshold=0"),
    (
        ColumnTransformer([("a", Normalizer(), lambda X: [0])], sparse_threshold=0),
        "function of the rows", "the names of the columns",
    ),
    (
        ColumnTransformer([("a", Normalizer(), make_column_selector(dtype_include=float))], sparse_threshold=0),
        "function of the rows", "the names of the columns",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("step", "reads", "remedy"), REFUSED, ids=lambda each: str(each)[:40])
def test_what_reads_or_may_read_is_refused(step, reads, remedy):
    (fault,) = find_faults(step, "the step")
    assert fault.path == "the step"
    assert fault.kind == type(step).__name__
    assert reads in fault.reads
    assert remedy in fault.remedy
    assert "\n" not in fault.reads + fault.remedy


@pytest.mark.parametrize("cls", RULES)
def test_each_listed_class_with_a_copy_has_to_make_one(cls):
    if "copy" in inspect.signature(cls).parameters:
        assert any("works in place" in fault.reads for fault in find_faults(cls(copy=False), "s"))


@pytest.mark.parametrize(
    "step",
    [
        OneHotEncoder(categories=[np.array(["a"]), ("b", 1.5, None)], dtype=np.float32),
        OneHotEncoder(categories=np.array([["a"], ["b"]], dtype=object), feature_name_combiner=lambda f, c: f"{f}{c}"),
        SimpleImputer(**CONSTANT, missing_values=pd.NA, fill_value=np.float32(1)),
        FeatureUnion(UNION, transformer_weights={"a": np.float64(2)}),
        ColumnTransformer([("a", "passthrough", pd.DataFrame({"a": [1]}).columns)], sparse_threshold=0),
        ColumnTransformer([("a", "passthrough", slice("a", None))], sparse_threshold=0),
        RBFSampler(random_state=np.random.RandomState(0)),
        FunctionTransformer(row_wise(lambda X, by: X), kw_args={"by": object()}),
        FunctionTransformer(feature_names_out=lambda step, names: names),
    ],
    ids=lambda each: str(each)[:30],
)
def test_plain_parameters_pass(step):
    assert list(find_faults(step, "s")) == []


def test_frames_that_are_joined_keep_the_index_of_their_rows():
    """A part that makes arrays in between numbers its rows anew: joined by index, they stand beside others."""
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0]}, index=[2, 0, 1])
    (fault,) = find_faults(partly_in_pandas(), "s")
    assert "joins by index" in fault.reads
    assert "set_output(transform='pandas')" in fault.remedy
    joined = partly_in_pandas().fit_transform(table)
    assert joined.iloc[:, 0].tolist() != (joined.iloc[:, 3] * np.hypot(table["a"], table["b"])).tolist()
    whole = partly_in_pandas().set_output(transform="pandas")
    assert list(find_faults(whole, "s")) == []
    assert whole.fit_transform(table).index.tolist() == [2, 0, 1]
    assert list(find_faults(FeatureUnion([("a", Normalizer().set_output(transform="pandas")), *UNION[:0]]), "s")) == []


@pytest.mark.parametrize(
    ("step", "paths"),
    [
        (make_pipeline(Normalizer(), StandardScaler()), ["s__standardscaler"]),
        (FeatureUnion([("a", PCA()), ("b", Normalizer()), ("c", Tagged())]), ["s__a", "s__c"]),
        (
            ColumnTransformer([("a", make_pipeline(PCA()), [0])], remainder=PCA(), sparse_threshold=0),
            ["s__a__pca", "s__remainder"],
        ),
        (FeatureUnion([("a", DPPCA(2))]), ["s__a"]),
        (make_pipeline(allocate_budget(make_pipeline(DPLogisticRegression(classes=[0, 1])), 1.0, 1e-4)), None),
    ],
)
def test_parts_are_looked_at_and_named(step, paths):
    faults = list(find_faults(step, "s"))
    assert paths is None or [fault.path for fault in faults] == paths
    private = [fault for fault in faults if fault.kind in ("DPPCA", "PrivatePipeline")]
    assert all(fault.reads == "is inside another step" for fault in private)
    assert all(fault.remedy == "make it a step of the pipeline itself" for fault in private)
    assert faults


class Own(Pipeline):
    pass


@pytest.mark.skipif(not hasattr(Pipeline, "set_callbacks"), reason="scikit-learn before 1.9 has no callbacks")
def test_callbacks_of_a_part_are_refused():
    class Reader:
        def setup(self, *given, **named): ...
        def on_fit_task_begin(self, *given, X=None, **named): ...
        def on_fit_task_end(self, *given, X=None, **named): ...
        def teardown(self, *given, **named): ...

    inner = make_pipeline(Normalizer()).set_callbacks(Reader())
    (fault,) = find_faults(clone(make_pipeline(inner)), "s")
    assert (fault.path, fault.reads) == ("s__pipeline", "hands its rows to callbacks")
    assert list(find_faults(make_pipeline(inner.set_callbacks()), "s")) == []


@pytest.mark.parametrize("name", NUMERIC)
def test_a_step_passes_when_it_is_fitted_too(name):
    step = clone(NUMERIC[name].step).set_output(transform="default")
    step.fit(numbers(positive=True))
    assert list(find_faults(step, "s")) == []


def test_a_subclass_of_a_composition_is_refused():
    (fault,) = find_faults(Own([("a", Normalizer())]), "s")
    assert fault.kind == "Own"
    assert "is not on the list" in fault.reads


def test_private_steps_alone_are_for_the_caller_to_skip():
    (fault,) = find_faults(DPPCA(2), "s")
    assert fault.reads == "is inside another step"


def test_nothing_and_passthrough_pass():
    for step in (None, "passthrough", "drop"):
        assert list(find_faults(step, "s")) == []


PASS_AS_MADE = {
    *("AdditiveChi2Sampler", "Binarizer", "FeatureHasher", "FunctionTransformer", "HashingVectorizer", "Normalizer"),
    *("PolynomialCountSketch", "PolynomialFeatures", "RBFSampler", "SkewedChi2Sampler"),
}


def made(cls):
    """An estimator with what it demands and scikit-learn's defaults for the rest."""
    demanded = {
        "estimator": LogisticRegression(), "base_estimator": LogisticRegression(), "regressor": LogisticRegression(),
        "estimators": [("a", LogisticRegression())], "transformers": [("a", Normalizer(), [0])],
        "transformer_list": [("a", StandardScaler())], "steps": [("a", StandardScaler())],
        "param_grid": {}, "param_distributions": {}, "dictionary": np.eye(2),
    }  # fmt: skip
    parameters = inspect.signature(cls).parameters.values()
    return cls(**{each.name: demanded[each.name] for each in parameters if each.default is each.empty
                  and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)})  # fmt: skip


@pytest.mark.parametrize(("name", "cls"), all_estimators(), ids=[name for name, _ in all_estimators()])
def test_each_estimator_of_scikit_learn_passes_only_if_it_is_listed(name, cls):
    step = made(cls)
    faults = list(find_faults(step, "s"))
    assert (faults == []) == (name in PASS_AS_MADE)
    if faults:
        assert faults[0].remedy


@pytest.mark.parametrize(("name", "cls"), all_estimators(), ids=[name for name, _ in all_estimators()])
def test_nothing_that_predicts_passes(name, cls):
    step = made(cls)
    if hasattr(cls, "predict") or is_classifier(step) or is_regressor(step) or hasattr(cls, "fit_predict"):
        for wrapped in (step, make_pipeline(Normalizer(), step), FeatureUnion([("a", step)])):
            assert list(find_faults(wrapped, "s"))


def test_the_counterparts_are_named_by_classes_that_exist_and_are_refused():
    known = dict(all_estimators())
    experimental = {"HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"}
    assert set(COUNTERPARTS) - set(known) <= experimental
    assert not set(COUNTERPARTS) & PASS_AS_MADE


# --- functions that treat rows one by one ---


@row_wise
def shifted(X):
    """Adds one."""
    return X + 1


def filtered(X):
    return X[~np.isnan(np.asarray(X, dtype=float)).any(axis=1)]


MIXING = {
    "mean": lambda X: X - X.mean(axis=0),
    "whole mean": lambda X: X - X.mean(),
    "rank": lambda X: np.argsort(np.argsort(X, axis=0), axis=0).astype(float),
    "sorted": lambda X: np.sort(X, axis=0),
    "reversed": lambda X: X[::-1],
    "sum so far": lambda X: np.cumsum(X, axis=0),
    "before": lambda X: np.vstack([X[:1], X[:-1]]),
    "gaps filled in": lambda X: np.where(np.isnan(X), np.nanmean(X[np.isfinite(X)]), X),
    "number of rows": lambda X: X * 0 + len(X),
    "largest": lambda X: X / np.nanmax(np.abs(X)),
    "outliers": lambda X: np.clip(X, *np.nanquantile(X, [0.01, 0.99])),
    "width": lambda X: np.eye(len(X))[:, : len(X)],
    "noise": lambda X: X + np.random.default_rng().normal(size=X.shape),
    "type": lambda X: X.astype(np.float32) if len(X) > 3 else X,
}
RESIZING = {
    "filter": filtered,
    "head": lambda X: X[:5],
    "doubled": lambda X: np.vstack([X, X]),
    "distinct": lambda X: np.unique(X, axis=0),
    "void rows": lambda X: X[np.any(X != 0, axis=1)],
}


@pytest.mark.parametrize("name", MIXING)
def test_a_function_that_mixes_rows_is_found_out(name):
    with pytest.raises(ValueError, match="looks at more than one row") as caught:
        row_wise(MIXING[name])(np.zeros((3, 2)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", RESIZING)
def test_a_function_that_changes_the_number_of_rows_is_found_out(name):
    with pytest.raises(ValueError, match=r"changes the number of rows|more than one row"):
        row_wise(RESIZING[name])(np.zeros((3, 2)))


KEEPING = {
    "scale": lambda X: (X - 3.0) / 2.0,
    "norm": lambda X: X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)),
    "product": lambda X: X @ np.ones((2, 3)),
    "sum": lambda X: X.sum(axis=1),
    "bins": lambda X: np.digitize(X, [0.0, 1.0]),
    "clip": lambda X: np.clip(X, -1.0, 1.0),
    "gaps": lambda X: np.nan_to_num(X),
    "cube": lambda X: X[:, :, None] * np.ones(3),
}


@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_function_that_keeps_its_promise_passes(name, dtype):
    table = np.arange(6, dtype=dtype).reshape(3, 2)
    assert np.array_equal(row_wise(KEEPING[name])(table), KEEPING[name](table))


COLUMNS = {
    "str": pd.array(["x", "y"], dtype="str"),
    "string": pd.array(["x", None], dtype="string"),
    "object": np.array(["x", "y"], dtype=object),
    "category": pd.Categorical(["u", "v"]),
    "Int64": pd.array([1, 2], dtype="Int64"),
    "boolean": pd.array([True, False], dtype="boolean"),
    "Float64": pd.array([1.0, 2.0], dtype="Float64"),
    "float": np.ones(2),
    "day": pd.to_datetime(["2020-01-01"] * 2),
    "duration": pd.to_timedelta(["1D"] * 2),
}
FILLING = {
    "mode": lambda X: X.fillna(X.mode().iloc[0]),
    "forward": lambda X: X.ffill(),
    "backward": lambda X: X.bfill(),
    "is there any": lambda X: X.assign(any_gap=X.isna().any().any()),
}


@pytest.mark.parametrize("filling", FILLING)
@pytest.mark.parametrize("kind", COLUMNS)
def test_gaps_filled_in_from_other_rows_are_found_out(kind, filling):
    with pytest.raises(ValueError, match="looks at more than one row"):
        row_wise(FILLING[filling])(pd.DataFrame({"a": COLUMNS[kind]}))


def test_gaps_filled_in_from_other_rows_are_found_out_in_polars():
    pl = pytest.importorskip("polars")
    for kind in (pl.Int32, pl.Float64, pl.Boolean, pl.String, pl.Enum(["x"]), pl.Categorical, pl.Date, pl.Duration):
        with pytest.raises(ValueError, match="looks at more than one row"):
            row_wise(lambda X: X.fill_null(strategy="forward"))(pl.DataFrame({"a": pl.Series([None]).cast(kind)}))


INSTEAD = [lambda X: X.mean().round().astype(int), lambda X: X.max(), lambda X: X.median().round().astype(int)]


@pytest.mark.parametrize("code", [-9999, -999, -99, -9, -1, 0, 99, 999, 9999])
@pytest.mark.parametrize("dtype", ["int64", "int16", "int32", "float64", "float32", "Int64"])
@pytest.mark.parametrize("instead", INSTEAD)
def test_codes_replaced_by_what_other_rows_hold_are_found_out(code, dtype, instead):
    table = pd.DataFrame({"a": [1, 2], "b": [3, 4]}).astype(dtype)
    with pytest.raises(ValueError, match="looks at more than one row"):
        row_wise(lambda X: X.mask(code == X, instead(X), axis=1))(table)


@pytest.mark.parametrize(
    "f",
    [
        lambda X: X.where(X >= 0, X.mean().round().astype(int), axis=1),
        lambda X: np.where(X < 0, np.mean(X, axis=0), X),
        lambda X: X.clip(upper=10**6 + X.min().min()),
        lambda X: X.clip(lower=-(10**6) + X.max().max()),
    ],
)
def test_negative_and_extreme_numbers_replaced_by_what_other_rows_hold_are_found_out(f):
    with pytest.raises(ValueError, match="looks at more than one row"):
        row_wise(f)(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))


@pytest.mark.parametrize("word", ["", "?", "NA", "unknown"])
@pytest.mark.parametrize("dtype", ["object", "str", "string", "U8"])
def test_words_for_a_gap_replaced_by_what_other_rows_hold_are_found_out(word, dtype):
    table = np.array([["x"], ["y"]], dtype) if dtype == "U8" else pd.DataFrame({"a": ["x", "y"]}, dtype=dtype)
    with pytest.raises(ValueError, match="looks at more than one row"):
        row_wise(lambda X: np.where(np.asarray(X) == word, np.sort(np.asarray(X, dtype=str), axis=0)[-1], X))(table)


def test_the_index_of_the_rows_is_watched_too():
    """Frames are joined by index: a row that takes the label of another stands in two rows of a union."""
    f = row_wise(lambda d: d.set_index(pd.Index([0, 1, 2])) if d["v"].iloc[0] == 77.7 else d)  # no made-up row is that
    table = pd.DataFrame({"v": [77.7, 2.0, 3.0]}, index=[2, 0, 1])
    with pytest.raises(ValueError, match="changes the index, by which frames are joined"):
        f(table)
    repeated = pd.DataFrame({"v": [1.0, 2.0, 3.0]}, index=[5, 5, 0])
    assert f(repeated).index.tolist() == [5, 5, 0]
    column = row_wise(lambda d: d["v"])
    assert column(repeated).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("f", [lambda X: pd.DataFrame(X).set_index(0, drop=False), lambda X: pd.DataFrame(X)[::-1]])
def test_an_index_made_of_an_array_is_refused(f):
    with pytest.raises(ValueError, match=r"changes the index|looks at more than one row"):
        row_wise(f)(np.array([[2.0, 1.0], [0.0, 5.0], [1.0, 2.0]]))
    made = row_wise(lambda X: pd.DataFrame(X), example=np.zeros((3, 2)))(np.ones((4, 2)))
    assert made.index.tolist() == [0, 1, 2, 3]


def doubled_in_place(X):
    X *= 2
    return X


def gaps_in_place(X):
    X[np.isnan(X)] = 0.0
    return X + 0


IN_PLACE = {
    "array": (doubled_in_place, np.ones((3, 2))),
    "gaps": (gaps_in_place, np.ones((3, 2))),
    "whole numbers": (doubled_in_place, np.ones((3, 2), int)),
    "sparse": (doubled_in_place, sparse.csr_array(np.eye(3))),
    "new column": (lambda d: d.insert(0, "new", 1.0) or d.copy(), pd.DataFrame({"a": [1.0, 2.0]})),
    "index": (lambda d: d.set_index("a", inplace=True, drop=False) or d.to_numpy(), pd.DataFrame({"a": [1.0, 2.0]})),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_function_that_works_in_place_is_refused(name):
    f, table = IN_PLACE[name]
    with pytest.raises(ValueError, match="works in place on the rows it is given: change a copy"):
        row_wise(f)(table)
    copied = row_wise(lambda X: f(X.copy()))
    if name in ("array", "gaps", "whole numbers", "sparse"):
        copied(table)


def test_no_warning_of_a_row_or_of_made_up_rows_gets_out():
    """``np.nanmean`` warns by Python's machinery, which ``np.errstate`` knows nothing of."""
    f = row_wise(lambda X: np.nan_to_num(np.nanmean(X, axis=1)))
    for value in (0.0, np.nan):
        table = with_row(numbers(), 7, value)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
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


@pytest.mark.parametrize(
    ("f", "good"),
    [
        (lambda d: d.assign(age=d["age"] / 100), True),
        (lambda d: d[["age", "n"]], True),
        (lambda d: d["name"].str.len().to_frame().astype(float), True),
        (lambda d: d.assign(day=d["day"].dt.year.astype(float)), True),
        (lambda d: d["name"].str.len().to_frame(), False),  # whole numbers, or floats if one row has a gap
        (lambda d: d.assign(day=d["day"].dt.year), False),
        (lambda d: d.assign(sex=(d["sex"] == "f")), True),
        (lambda d: d.to_numpy(), True),
        (lambda d: pd.get_dummies(d[["name"]]), False),
        (lambda d: d.assign(name=d["name"].astype("category")), False),
        (lambda d: d.assign(name=d["name"].astype("category").cat.codes), False),
        (lambda d: d.assign(age=d["age"] - d["age"].mean()), False),
        (lambda d: d.assign(age=d["age"].rank()), False),
        (lambda d: d.sort_values("age"), False),
        (lambda d: d.drop_duplicates("sex"), False),
        (lambda d: d.assign(day=(d["day"] - d["day"].min()).dt.days), False),
        (lambda d: d.assign(n=d.groupby("sex", observed=False)["n"].transform("sum")), False),
        (lambda d: d.assign(n=d["n"].diff()), False),
        (lambda d: d.set_index("n", drop=False), False),
        (lambda d: d.reset_index(drop=True), False),
        (lambda d: d.set_axis(range(10, 10 + len(d))), False),
    ],
)
def test_frames(f, good):
    if good:
        assert str(row_wise(f)(FRAME)) == str(f(FRAME))
    else:
        with pytest.raises(ValueError, match=r"looks at more than one row|changes the (number of rows|index)"):
            row_wise(f)(FRAME.set_axis([5, 3]))


def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1, 2]})
    assert row_wise(lambda d: d.with_columns(pl.col("a") * 2))(table)["a"].to_list() == [2.0, 4.0]
    for mixing in (pl.col("a") - pl.col("a").mean(), pl.col("a").rank(), pl.col("c").cum_sum(), pl.col("a").shift(1)):
        with pytest.raises(ValueError, match="more than one row"):
            row_wise(lambda d, mixing=mixing: d.with_columns(mixing))(table)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
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


@pytest.mark.parametrize(
    ("name", "table"), list(columns_of_all_types()), ids=lambda each: each if type(each) is str else ""
)
def test_gaps_and_codes_are_made_up_of_any_type(name, table):
    made = list(made_up(table))
    assert len(made) == 10  # of each way to draw
    assert all(type(each) is type(table) for each in made)
    if hasattr(table, "columns") or hasattr(table, "to_frame"):
        holds = [np.asarray(pd.isna(np.asarray(each.to_numpy(), dtype=object))).any() for each in made]
        assert any(holds) == (name not in ("pandas int8", "pandas bool"))
    if name in ("pandas Int64", "pandas float32", "pandas object"):
        seen = {value for each in made for value in each["a"].tolist()}
        assert set(CODES) <= seen
    if name in ("pandas string", "pandas object", "polars String", "array U7"):
        assert any("?" in np.asarray(each).ravel().tolist() for each in made)


@pytest.mark.parametrize(
    ("name", "table"), list(columns_of_all_types()), ids=lambda each: each if type(each) is str else ""
)
def test_rows_are_made_up_of_any_type(name, table):
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


def test_a_kind_of_table_is_tested_once():
    seen = []
    f = row_wise(lambda X: seen.append(len(X)) or X)
    f(np.zeros((30, 2)))
    count = len(seen)
    f(np.ones((31, 2)))
    assert len(seen) == count + 1
    f(np.ones((31, 3)))
    assert len(seen) > count + 10


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
    with pytest.raises(ValueError, match=r"encode cannot be run on made-up rows: give skdp.row_wise\(f, example=...\)"):
        row_wise(encode)(table)
    assert row_wise(encode, example=table)(table).tolist() == [[0.0], [1.0], [0.0]]
    with pytest.raises(ValueError, match="fewer than two rows"):
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
    with pytest.raises(TypeError, match="f=3 is not callable"):
        row_wise(3)


def test_a_subclass_of_the_mark_is_no_mark():
    class Own(RowWise):
        pass

    assert list(find_faults(FunctionTransformer(Own(np.abs)), "s"))
