"""Steps that read their rows, or may, are rejected."""

import inspect

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from public_tables import CONSTANT, KNOTS, NUMERIC, N, numbers
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import all_estimators

from skdp import DPPCA, DPLogisticRegression, allocate_budget
from skdp.base.public_steps import COUNTERPARTS, RULES, find_faults
from skdp.base.row_wise import row_wise


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


UNION = [("a", FunctionTransformer())]
COLUMNS_0 = {"transformers": [("a", "passthrough", [0])], "sparse_threshold": 0}


def partly_in_pandas():
    inner = make_pipeline(Normalizer(), PolynomialFeatures())
    union = FeatureUnion([("a", FunctionTransformer()), ("b", inner)]).set_output(transform="pandas")
    inner.steps[0][1].set_output(transform="default")
    return union


GIVEN = {"categories": [["a"]] * 2}
REJECTED = [
    (Tagged(), "is not on the list", "a private estimator or a transformer that learns nothing"),
    (OwnNormalizer(), "is not on the list", "a private estimator"),
    (replaced_method(), "method that was replaced", "a new object"),
    ("normalizer", "is not on the list", "a private estimator"),
    (StandardScaler(), "learns from its rows", "DPStandardScaler"),
    (KBinsDiscretizer(), "learns from its rows", "DPQuantileBinner"),
    (MultiOutputRegressor(GaussianProcessRegressor()), "is not on the list", "a private estimator"),
    (FunctionTransformer(lambda X: X - X.mean(0)), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.negative.at), "more than one row", "skdp.row_wise"),
    (FunctionTransformer(np.abs, kw_args={"where": np.ones((N, 1), bool)}), "kw_args", "skdp.row_wise"),
    (FunctionTransformer(np.log1p, np.expm1), "compares some rows", "check_inverse=False"),
    (SplineTransformer(), "places its knots", "knots=array"),
    (SplineTransformer(knots=KNOTS, sparse_output=True), "zeros of a row are stored", "sparse_output=False"),
    (OneHotEncoder(), "reads its categories", "public lists"),
    (OneHotEncoder(**GIVEN, min_frequency=2), "counts", "min_frequency=None"),
    (OneHotEncoder(**GIVEN, max_categories=2), "counts", "max_categories=None"),
    (OneHotEncoder(**GIVEN, handle_unknown="warn"), "unknown category", "handle_unknown='ignore'"),
    (OneHotEncoder(**GIVEN, drop="first", handle_unknown="ignore"), "unknown category", "drop=None"),
    (OrdinalEncoder(), "reads its categories", "public lists"),
    (SimpleImputer(keep_empty_features=True), "computes the fill values", "strategy='constant'"),
    (SimpleImputer(strategy="constant"), "drops a column", "keep_empty_features=True"),
    (SimpleImputer(**CONSTANT, add_indicator=True), "adds a column", "MissingIndicator"),
    (FeatureUnion(UNION, transformer_weights={"a": Number(2.0)}), "weights that are not plain", "'name': 2.0"),
    (ColumnTransformer(**COLUMNS_0, transformer_weights={"a": Reading()}), "weights that are not plain", "2.0"),
    (ColumnTransformer([("a", "passthrough", Lazy([0]))], sparse_threshold=0), "columns with an object", "names"),
    (OrdinalEncoder(categories=[[Number(1.0)]]), "parameter categories of type list", "a plain number"),
    (SimpleImputer(**CONSTANT, fill_value=Number(1.0)), "parameter fill_value of type Number", "a plain number"),
    (SplineTransformer(knots=np.ma.masked_array(KNOTS)), "parameter knots of type MaskedArray", "a plain number"),
    (MissingIndicator(), "keeps the columns", "features='all'"),
    (GaussianRandomProjection(), "number of rows", "n_components=number"),
    (SparseRandomProjection(), "number of rows", "n_components=number"),
    (RBFSampler(gamma="scale"), "gamma", "gamma=number"),
    (HashingVectorizer(tokenizer=str.split), "user-defined function", "without functions"),
    (HashingVectorizer(input="filename"), "reads files", "content"),
    (make_pipeline(Normalizer(), memory="somewhere"), "cache", "memory=None"),
    (ColumnTransformer([("a", Normalizer(), [0])]), "fraction of nonzero", "sparse_threshold=0"),
    (
        ColumnTransformer([("a", Normalizer(), lambda X: [0])], sparse_threshold=0),
        "function of the rows", "the names of the columns",
    ),
    (
        ColumnTransformer([("a", Normalizer(), make_column_selector(dtype_include=float))], sparse_threshold=0),
        "function of the rows", "the names of the columns",
    ),
]  # fmt: skip


@over_rows(("step", "reads", "remedy"), REJECTED)
def test_what_reads_or_may_read_is_rejected(step, reads, remedy):
    (fault,) = find_faults(step, "the step")
    assert fault.path == "the step"
    assert fault.kind == type(step).__name__
    assert reads in fault.reads
    assert remedy in fault.remedy
    assert "\n" not in fault.reads + fault.remedy


@over_rows("cls", RULES)
def test_each_listed_class_with_a_copy_has_to_make_one(cls):
    if "copy" in inspect.signature(cls).parameters:
        assert any("modifies the rows in place" in fault.reads for fault in find_faults(cls(copy=False), "s"))


@over_rows(
    "step",
    [
        OneHotEncoder(categories=[np.array(["a"]), ("b", 1.5, None)], dtype=np.float32),
        OneHotEncoder(categories=np.array([["a"], ["b"]], dtype=object), feature_name_combiner=lambda f, c: f"{f}{c}"),
        SimpleImputer(**CONSTANT, missing_values=pd.NA, fill_value=np.float32(1)),
        FeatureUnion(UNION, transformer_weights={"a": np.float64(2)}),
        "passthrough",
        ColumnTransformer([("a", "passthrough", pd.DataFrame({"a": [1]}).columns)], sparse_threshold=0),
        FunctionTransformer(row_wise(lambda X, by: X), kw_args={"by": object()}),
        FunctionTransformer(feature_names_out=lambda step, names: names),
    ],
)
def test_plain_parameters_pass(step):
    assert list(find_faults(step, "s")) == []


def test_frames_that_are_joined_keep_the_index_of_their_rows():
    """A part that makes arrays in between numbers its rows anew: joined by index, they stand beside others."""
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0]}, index=[2, 0, 1])
    (fault,) = find_faults(partly_in_pandas(), "s")
    assert "joins by an index" in fault.reads
    assert "set_output(transform='pandas')" in fault.remedy
    joined = partly_in_pandas().fit_transform(table)
    assert joined.iloc[:, 0].tolist() != (joined.iloc[:, 3] * np.hypot(table["a"], table["b"])).tolist()
    whole = partly_in_pandas().set_output(transform="pandas")
    assert list(find_faults(whole, "s")) == []
    assert whole.fit_transform(table).index.tolist() == [2, 0, 1]
    assert list(find_faults(FeatureUnion([("a", Normalizer().set_output(transform="pandas")), *UNION[:0]]), "s")) == []


@over_rows(
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
    assert all(fault.reads == "is nested inside another step" for fault in private)
    assert all(fault.remedy == "it as a step of the pipeline itself" for fault in private)
    assert faults


@pytest.mark.skipif(not hasattr(Pipeline, "set_callbacks"), reason="scikit-learn before 1.9 has no callbacks")
def test_callbacks_of_a_part_are_rejected():
    class Reader:
        def setup(self, *given, **named): ...
        def on_fit_task_begin(self, *given, X=None, **named): ...
        def on_fit_task_end(self, *given, X=None, **named): ...
        def teardown(self, *given, **named): ...

    inner = make_pipeline(Normalizer()).set_callbacks(Reader())
    (fault,) = find_faults(clone(make_pipeline(inner)), "s")
    assert (fault.path, fault.reads) == ("s__pipeline", "passes its rows to callbacks")
    assert list(find_faults(make_pipeline(inner.set_callbacks()), "s")) == []


@over_rows("name", NUMERIC)
def test_a_step_passes_when_it_is_fitted_too(name):
    step = clone(NUMERIC[name].step).set_output(transform="default")
    step.fit(numbers(positive=True))
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


@over_rows(("name", "cls"), all_estimators())
def test_each_estimator_of_scikit_learn_passes_only_if_it_is_listed(name, cls):
    step = made(cls)
    faults = list(find_faults(step, "s"))
    assert (faults == []) == (name in PASS_AS_MADE)
    if faults:
        assert faults[0].remedy
    if hasattr(cls, "predict") or is_classifier(step) or is_regressor(step) or hasattr(cls, "fit_predict"):
        for wrapped in (step, make_pipeline(Normalizer(), step), FeatureUnion([("a", step)])):
            assert list(find_faults(wrapped, "s"))


def test_the_counterparts_are_named_by_classes_that_exist_and_are_rejected():
    known = dict(all_estimators())
    experimental = {"HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"}
    assert set(COUNTERPARTS) - set(known) <= experimental
    assert not set(COUNTERPARTS) & PASS_AS_MADE
