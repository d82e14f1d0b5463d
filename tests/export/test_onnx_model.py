"""`to_onnx`: what onnxruntime computes is what skdp does, on odd rows; what has no graph is rejected by name."""

import functools
import importlib
import inspect
import re

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from serving import assert_served_alike, metadata_of, served, session_of
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

import skdp
from skdp.export import to_onnx
from skdp.export.onnx_model import _CONVERTED, _OWN
from skdp.export.onnx_steps import _KINDS, _STEPS

SCHEMA = {
    "age": {"bounds": (18, 90), "missing_values": [-999]},
    "income": {"bounds": (0, 1e6), "scale": "log"},
    "code": [0, 1, 2, 3],
    "job": ["clerk", "nurse", "pilot", "ünï"],
    "member": "flag",
    "since": ("2000-01-01", "2025-12-31"),
    "grade": {"kind": "ordinal", "categories": ["low", "mid", "high"]},
    "area": list(range(250)),
    "note": "drop",
}


def odd_frame(n, seed=1):
    """Gaps, infinities, categories that are not listed, numbers beyond bounds, ways to write yes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 30, n),
            "income": np.exp(rng.normal(8, 3, n)) * rng.choice([-1, 1], n),
            "code": rng.integers(0, 6, n),
            "job": rng.choice(["clerk", "nurse", "pilot", "un seen", "", "ünï", "nan"], n).astype(object),
            "member": rng.choice(["yes", "NO", "True", "maybe", "f", "1"], n).astype(object),
            "since": pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(-90_000, 150_000, n), unit="h"),
            "grade": rng.choice(["low", "mid", "high", "x"], n).astype(object),
            "area": rng.integers(0, 300, n),
            "note": "any",
        }
    )
    for name in ("age", "job", "since", "member", "grade"):
        frame.loc[rng.random(n) < 0.1, name] = None
    frame.loc[:5, "age"] = [np.inf, -np.inf, 1e300, -999, 18.0, np.nextafter(90, 0)]
    frame.loc[:3, "income"] = [0.0, 1e-300, -0.0, np.inf]
    return frame


def odd_rows(n, seed=1):
    """Rows of zeros, of next to nothing, and of lengths beyond float64."""
    rows = np.random.default_rng(seed).normal(0, 3, (n, 5))
    rows[:4] = np.array([0.0, 1e-300, 1e200, 1.5e308])[:, None]
    return rows


def vectorized(model, **parameters):
    return make_pipeline(skdp.DPTableVectorizer(SCHEMA, **parameters), model)


FEW = {"max_iter": 1, "random_state": 0}
TREES = {"n_estimators": 20, "max_iter": 1, "random_state": 0}
TABLE = {"epsilon": 9.0, "random_state": 0}
OF_FRAMES = {
    "bins": lambda: skdp.DPTableVectorizer(SCHEMA),
    "both": lambda: skdp.DPTableVectorizer(SCHEMA, numbers="both", dtype="float64"),
    "codes": lambda: skdp.DPTableVectorizer(SCHEMA, numbers="codes"),
    "estimated": lambda: skdp.DPTableVectorizer({**SCHEMA, "job": "category", "age": "number"}, random_state=0),
    "embedding, linear": lambda: make_pipeline(
        skdp.PublicTreesEmbedding(20, schema=SCHEMA), skdp.DPLogisticRegression(classes=[0, 1], **FEW)
    ),
    "classes of text": lambda: vectorized(
        skdp.DPLogisticRegression(classes=[*"abc"], data_norm=1.5, **FEW), numbers="scale"
    ),
    "bayes": lambda: vectorized(
        skdp.DPGaussianNB(classes=[*"abc"], random_state=0), numbers="both", sparse_output=False
    ),
    "network": lambda: vectorized(skdp.DPMLPClassifier((9, 4), classes=[*"abc"], **FEW)),
    "tanh": lambda: vectorized(skdp.DPMLPRegressor((9,), activation="tanh", y_bounds=(0, 90), **FEW)),
    "counts": lambda: vectorized(
        skdp.DPMLPRegressor((9,), activation="logistic", loss="poisson", y_bounds=(0, 90), **FEW)
    ),
    "ridge": lambda: vectorized(skdp.DPRidge(y_bounds=(0, 90), random_state=0), numbers="both"),
    "trees of three": lambda: skdp.DPRandomTreesClassifier(schema=SCHEMA, classes=[*"abc"], **TREES),
    "trees of targets": lambda: skdp.DPRandomTreesRegressor(schema=SCHEMA, y_bounds=(0, 90), **TREES),
    "tabular": lambda: skdp.tabular_pipeline(classes=[0, 1], random_state=0),
}
OF_ROWS = {
    "linear": lambda: skdp.DPLogisticRegression(classes=[False, True], data_norm=1.5, **FEW),
    "least squares": lambda: skdp.DPLinearRegression(y_bounds=(0, 1), random_state=0),
    "counts": lambda: skdp.DPPoissonRegressor(y_bounds=(0, 1), random_state=0),
    "order": lambda: skdp.DPOrdinalLogisticRegression([1, 0], random_state=0),
    "bayes": lambda: skdp.DPGaussianNB(classes=[0.0, 1.0], bounds=(-2, 2), random_state=0),
    "directions": lambda: skdp.DPPCA(3, normalize=True, center=False, whiten=True, random_state=0),
    "clusters": lambda: skdp.DPKMeans(3, bounds=(-2, 2), epsilon=9.0, random_state=0),
    "distances": lambda: make_pipeline(skdp.DPKMeans(3, bounds=(-2, 2), epsilon=9.0, random_state=0),
                                       skdp.DPLogisticRegression(classes=[0, 1], **FEW)),
    "logarithms": lambda: skdp.DPMLPRegressor((4,), y_bounds=(0.5, 2.0), y_transform="log", **FEW),
    "sigmoid": lambda: skdp.DPCalibratedClassifier(
        skdp.DPLogisticRegression(classes=["no", "yes"], max_iter=1), **TABLE
    ),
    "isotonic": lambda: skdp.DPCalibratedClassifier(
        skdp.DPRandomTreesClassifier(10, bounds=(-2, 2), classes=[0, 1], max_iter=1), method="isotonic", **TABLE
    ),
    "a cost": lambda: skdp.DPThresholdClassifier(
        skdp.DPLogisticRegression(classes=[0, 1], max_iter=1), cost=[[0, 1], [4, 0]], **TABLE
    ),
    "a recall of a fitted one": lambda: skdp.DPThresholdClassifier(
        FrozenEstimator(fitted_to_rows("linear")), min_recall=0.9, **TABLE
    ),
    "numbers of bins": lambda: skdp.DPQuantileBinner(4, bounds=(-2, 2), encode="ordinal", random_state=0),
    "binner": lambda: skdp.DPQuantileBinner(4, bounds=(-2, 2), random_state=0),
    "imputer": lambda: skdp.DPSimpleImputer(strategy="constant", fill_value=0.5),
    "a budget": lambda: skdp.allocate_budget(
        make_pipeline(skdp.DPStandardScaler(bounds=(-2, 2), random_state=0), skdp.DPPCA(3, random_state=0),
                      skdp.DPLogisticRegression(classes=[0, 1], **FEW)), 1.0,
    ),
    "a search": lambda: skdp.DPGridSearchCV(
        skdp.DPLogisticRegression(classes=[0, 1], max_iter=1), {"data_norm": [1.0, 2.0]}, epsilon=2.0, random_state=0
    ),
    "a threshold": lambda: FixedThresholdClassifier(skdp.DPLogisticRegression(classes=[0, 1], **FEW), threshold=0.6),
    "a threshold of the first": lambda: FixedThresholdClassifier(
        skdp.DPLogisticRegression(classes=["no", "yes"], **FEW), threshold=-0.1, pos_label="no",
        response_method="decision_function",
    ),
    "nested": lambda: make_pipeline(make_pipeline("passthrough", skdp.DPStandardScaler(bounds=(-2, 2), random_state=0)),
                                    skdp.DPGaussianNB(classes=[0, 1], bounds=(-2, 2), random_state=0)),
}  # fmt: skip


@functools.cache
def fitted_to_frame(name):
    frame, model = odd_frame(600, seed=0), OF_FRAMES[name]()
    ages = frame["age"].fillna(40).clip(0, 90).round().to_numpy()
    classes = getattr(model[-1] if hasattr(model, "steps") else model, "classes", None)
    labels = ages if classes is None else np.asarray(classes)[np.arange(600) % len(classes)]
    return model.fit(frame, labels)


@functools.cache
def fitted_to_rows(name):
    X = np.random.default_rng(0).normal(size=(400, 5))
    model = OF_ROWS[name]()
    inner = getattr(model, "estimator", model)
    classes = np.asarray(getattr(inner, "classes", None) or [0, 1])
    return model.fit(X, classes[(X[:, 0] > 0).astype(int)])


@pytest.mark.parametrize("name", OF_FRAMES)
def test_a_model_of_raw_columns_is_served_alike(name):
    model = fitted_to_frame(name)
    assert_served_alike(model, to_onnx(model), odd_frame(600))


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_model_of_rows_is_served_alike(name):
    model = fitted_to_rows(name)
    assert_served_alike(model, to_onnx(model), odd_rows(600))


def test_several_labels_a_row_are_served_alike():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = skdp.DPMLPClassifier((4,), classes=[0, 1, 2], **FEW).fit(X, (X > 0).astype(int))
    assert_served_alike(model, to_onnx(model), 3 * X)


def test_columns_of_words_are_served_alike():
    frame = odd_frame(300)[["job", "grade"]]
    encoder = skdp.DPOneHotEncoder(epsilon=9.0, random_state=0).fit(frame)
    assert_served_alike(encoder, to_onnx(encoder), odd_frame(500)[["job", "grade"]])
    imputer = skdp.DPSimpleImputer(strategy="most_frequent", epsilon=9.0, random_state=0).fit(frame)
    other = odd_frame(100, seed=5)[["job", "grade"]]
    found = served(to_onnx(imputer), other)
    assert (np.hstack([found["transform_0"], found["transform_1"]]) == imputer.transform(other)).all()


STEPS = [
    Normalizer(), Normalizer("l1"), Normalizer("max"), Binarizer(threshold=0.1), StandardScaler(), MaxAbsScaler(),
    MinMaxScaler(clip=True), RobustScaler(), PolynomialFeatures(3, include_bias=False), PolynomialFeatures(2),
    SimpleImputer(strategy="constant", fill_value=2.0, keep_empty_features=True),
    OneHotEncoder(handle_unknown="ignore"),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), GaussianRandomProjection(2, random_state=0),
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_step_of_scikit_learn_is_served_alike(step):
    rng = np.random.default_rng(0)
    X, other = rng.normal(size=(50, 3)), rng.normal(size=(200, 3)) * 100
    other[:2] = np.array([[0.0], [1e-300]])
    if "Encoder" in str(step):
        X, other = np.sign(X), np.sign(other)
    if "Imputer" in str(step):
        other[2, 1] = np.nan
    pipe = make_pipeline(step, "passthrough").fit(X)
    assert_served_alike(pipe, to_onnx(pipe), other)


def test_every_listed_step_of_scikit_learn_is_compared():
    compared = {f"{type(step).__module__}.{type(step).__qualname__}" for step in STEPS}
    assert compared == _CONVERTED | set(_OWN)


def test_every_estimator_is_converted_or_known_to_have_no_graph():
    without = {"DPWGAN", "DPClassMixtureGenerator", "DPMarginalSynthesizer", "ScatteringTransformer"}
    without |= {"PatchTransformer", "DPIsolationForest"}
    without |= {"DPGridSearchCV", "DPRandomizedSearchCV"}  # their best estimators are converted
    without |= {"DPCalibratedClassifier", "DPThresholdClassifier"}  # with the estimator that they are around
    public = {name: getattr(skdp, name) for name in skdp.__all__}
    ours = {name for name, each in public.items() if inspect.isclass(each) and issubclass(each, BaseEstimator)}
    converted = set()
    for path in (*_KINDS, *_STEPS):
        module, _, name = path.rpartition(".")
        assert inspect.isclass(getattr(importlib.import_module(module), name))
        converted.add(name)
    assert ours == converted | without


def test_thresholds_of_subgroups_have_no_graph():
    frame = pd.DataFrame({"a": np.linspace(-1, 1, 200), "b": ["u", "v"] * 100})
    inner = make_pipeline(
        skdp.DPTableVectorizer({"a": (-1, 1), "b": ["u", "v"]}), skdp.DPLogisticRegression(classes=[0, 1], max_iter=1)
    )
    model = skdp.DPThresholdClassifier(
        skdp.allocate_budget(inner, 1.0), equal_rates="selection_rate", by="b", categories=["u", "v"], **TABLE
    ).fit(frame, np.arange(200) % 2)
    with pytest.raises(TypeError, match=r"\ADPThresholdClassifier must not have subgroups[^\n]*\Z"):
        to_onnx(model)


def test_rows_that_are_rejected_get_nothing():
    """NaN for what is a number; a class makes the run fail."""
    model = fitted_to_rows("linear")
    rows = odd_rows(6)
    rows[5, 0], rows[4, 1] = np.nan, np.inf
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(rows)
    graph = to_onnx(model)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="out of data bounds"):
        served(graph, rows)
    regression = fitted_to_rows("least squares")
    found = served(to_onnx(regression), rows)["predict"]
    assert np.isnan(found[4:]).all()
    np.testing.assert_allclose(found[:4], regression.predict(rows[:4]), rtol=1e-12)


def test_integer_inputs_take_frame_as_it_is():
    frame = pd.DataFrame({"age": np.arange(200) % 70 + 18, "job": ["clerk", "nurse"] * 100})
    model = skdp.tabular_pipeline(
        skdp.DPGaussianNB(), schema={"age": (18, 90), "job": ["clerk", "nurse"]}, classes=[0, 1]
    )
    model.fit(frame, np.arange(200) % 2)
    session = session_of(to_onnx(model, integers=["age"]))
    classes, chances = session.run(["predict", "predict_proba"], {name: frame[[name]].to_numpy() for name in frame})
    assert (classes == model.predict(frame)).all()
    np.testing.assert_allclose(chances, model.predict_proba(frame), rtol=1e-9)
    whole = np.arange(12).reshape(6, 2)
    plain = skdp.DPGaussianNB(classes=[0, 1], bounds=(0, 12)).fit(whole, np.arange(6) % 2)
    (classes, *_) = session_of(to_onnx(plain, integers=["X"])).run(None, {"X": whole})
    assert (classes == plain.predict(whole)).all()
    for names in (["job"], ["X"]):
        with pytest.raises(ValueError, match=r"`integers` must be among the numeric inputs, \['age'\]"):
            to_onnx(model, integers=names)


def test_inputs_say_what_they_hold():
    inputs = metadata_of(to_onnx(fitted_to_frame("network")))["inputs"]
    assert {each["name"]: each["holds"] for each in inputs} == {
        "age": "number", "income": "number", "code": "number", "job": "text", "member": "text", "since": "days",
        "grade": "text", "area": "number",
    }  # fmt: skip
    assert metadata_of(to_onnx(fitted_to_rows("linear")))["inputs"] == [{"name": "X", "holds": "number"}]


class OtherLogistic(skdp.DPLogisticRegression):
    """A class of a user's, which may predict in a way of its own."""


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: OtherLogistic(classes=[0, 1], **FEW), "OtherLogistic is not supported by to_onnx"),
        (lambda: make_pipeline(SplineTransformer(), skdp.DPPCA(2)), "SplineTransformer is not supported by to_onnx"),
        (lambda: make_pipeline(Normalizer(), OneHotEncoder(drop="first", handle_unknown="infrequent_if_exist",
                                                           max_categories=2)), "skl2onnx does not support One"),
    ],
)  # fmt: skip
def test_what_has_no_graph_is_rejected_by_name(make, fault):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = make().fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(TypeError, match=rf"\A{fault}[^\n]*\Z"):
        to_onnx(model)


@pytest.mark.parametrize("name", ["predict", ""])
def test_a_column_of_the_name_of_an_output_is_rejected(name):
    frame = pd.DataFrame({name: [0.0, 1.0], "b": [1.0, 0.0]})
    scaler = skdp.DPStandardScaler(bounds=(0, 1), random_state=0).fit(frame)
    with pytest.raises(ValueError, match=rf"\AColumn '{name}' cannot be an input"):
        to_onnx(scaler)


def test_a_model_that_is_not_fitted_is_rejected():
    with pytest.raises(NotFittedError):
        to_onnx(skdp.DPLogisticRegression())


def test_methods_of_earlier_versions_name_the_function_to_use():
    for model in (skdp.DPLogisticRegression(), skdp.DPGridSearchCV(skdp.DPLogisticRegression(), {})):
        for name, function in (("privacy_report", "skdp.privacy_report"), ("to_onnx", "skdp.export.to_onnx")):
            with pytest.raises(AttributeError, match=rf"has no method '{name}'. Use {re.escape(function)}\(model\)\.$"):
                getattr(model, name)
