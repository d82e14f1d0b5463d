"""`to_json` and `from_json`: equal models, their price, and nothing that was not public."""

from __future__ import annotations

import functools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import (
    DPPCA,
    DPGaussianNB,
    DPGridSearchCV,
    DPIsolationForest,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPOneHotEncoder,
    DPOrdinalLogisticRegression,
    DPPoissonRegressor,
    DPQuantileBinner,
    DPRandomTreesClassifier,
    DPRandomTreesRegressor,
    DPRidge,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    PublicTreesEmbedding,
    allocate_budget,
    tabular_pipeline,
)
from skdp.accounting import compose, get_epsilon
from skdp.export import from_json, to_json
from skdp.export.json_text import _CLASSES

SEED = {"random_state": 0}
FEW = {"max_iter": 1, **SEED}
TREES = {"n_estimators": 5, "max_iter": 1, "random_state": 0}
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3)).round(6)
FRAME = pd.DataFrame({"b": X[:, 0], "word": rng.choice(["u", "v", None], 300), "a": X[:, 1]})
FRAME["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, 300), unit="D")
SCHEMA = {
    "a": (-2, 2),
    "b": {"bounds": (-1, 1), "gaps": [0.5]},
    "word": ["u", "v"],
    "day": ("2020-01-01", "2022-01-01"),
}
TWO = (X[:, 0] > 0).astype(int)
MODELS = {
    "linear": (lambda: DPLogisticRegression(classes=["n", "y"], class_weight={"n": 1.0, "y": 2.0}, **FEW), X),
    "least squares": (lambda: DPLinearRegression(y_bounds=(0, 1), random_state=0), X),
    "ridge": (lambda: DPRidge(y_bounds=(0, 1), random_state=0), X),
    "network": (lambda: DPMLPClassifier((4, 3), classes=[0, 1], **FEW), X.astype(np.float32)),
    "counts": (lambda: DPMLPRegressor((4,), loss="poisson", y_bounds=(0, 9), **FEW), X),
    "bayes": (lambda: DPGaussianNB(classes=[0, 1], bounds=[(-1, 1)] * 3, random_state=0), X),
    "bayes of a table": (lambda: tabular_pipeline(DPGaussianNB(), classes=[0, 1], random_state=0), FRAME),
    "clusters": (lambda: DPKMeans(3, bounds=(-2, 2), epsilon=9.0, random_state=0), X),
    "logarithms": (lambda: DPMLPRegressor((4,), y_bounds=(0.5, 2), y_transform="log", **FEW), X),
    "components": (lambda: DPPCA(2, center=[0.1, 0.0, 0.0], random_state=0), X),
    "trees": (lambda: DPRandomTreesClassifier(schema=SCHEMA, classes=[0, 1], **TREES), FRAME),
    "trees of targets": (lambda: DPRandomTreesRegressor(schema=SCHEMA, y_bounds=(0, 1), **TREES), FRAME),
    "outliers": (lambda: DPIsolationForest(5, schema=SCHEMA, contamination=0.1, weight_bound=0.3, **SEED), FRAME),
    "rates": (lambda: DPPoissonRegressor(y_bounds=(0, 3), random_state=0), X),
    "order": (lambda: DPOrdinalLogisticRegression([1, 0], random_state=0), X),
    "embedding": (lambda: PublicTreesEmbedding(5, schema=SCHEMA, random_state=3), FRAME),
    "vectorizer": (lambda: DPTableVectorizer(SCHEMA, numbers="both"), FRAME),
    "bought": (lambda: DPTableVectorizer(random_state=0), FRAME),
    "encoder": (lambda: DPOneHotEncoder(epsilon=9.0, random_state=0), FRAME[["word"]]),
    "binner": (lambda: DPQuantileBinner(4, bounds=(-2, 2), random_state=0), X),
    "scaler": (lambda: DPStandardScaler(bounds=(-2, 2), random_state=0), X),
    "imputer": (lambda: DPSimpleImputer(strategy="most_frequent", epsilon=9.0, random_state=0), FRAME[["word"]]),
    "budget": (lambda: allocate_budget(make_pipeline("passthrough", DPPCA(2, random_state=0),
                                                     DPLogisticRegression(classes=[0, 1], **FEW)), 1.0), X),
    "tabular": (lambda: tabular_pipeline("regressor", y_bounds=(0, 1), random_state=0), FRAME),
    "search": (lambda: DPGridSearchCV(DPGaussianNB(classes=[0, 1], bounds=(-1, 1)), {"bounds": [(-1, 1), (-2, 2)]},
                                      epsilon=2.0, random_state=0), X),
}  # fmt: skip
METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform")


@pytest.fixture(autouse=True)
def _seeds_are_no_matter(recwarn):
    """Seeds warn, and fits of few rows."""


@functools.cache
def fitted(name):
    make, rows = MODELS[name]
    model = make()
    labels = np.array(["n", "y"])[TWO] if name == "linear" else TWO
    return model.fit(rows, labels), rows


def as_array(values):
    return values.toarray() if hasattr(values, "toarray") else np.asarray(values)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_is_equal(name):
    model, rows = fitted(name)
    again = from_json(to_json(model))
    model = getattr(model, "best_estimator_", model)
    assert type(again) is type(model)
    methods = [method for method in METHODS if hasattr(model, method)]
    assert methods
    for method in methods:
        found, wanted = (as_array(getattr(each, method)(rows)) for each in (again, model))
        assert found.dtype == wanted.dtype
        assert (found == wanted).all() or np.array_equal(found, wanted, equal_nan=True)
    assert (again.epsilon_, again.delta_) == (model.epsilon_, model.delta_)
    assert getattr(again, "privacy_event_", None) == getattr(model, "privacy_event_", None)
    assert to_json(again) == to_json(model)
    if hasattr(model, "transform"):
        assert (again.get_feature_names_out() == model.get_feature_names_out()).all()


def test_every_class_is_compared():
    classes = {type(part).__name__ for name in MODELS for part in _parts(fitted(name)[0])}
    assert set(_CLASSES) <= classes


def _parts(model):
    model = getattr(model, "best_estimator_", model)
    return [model, *(step for _, step in getattr(model, "steps", ()))]


def test_the_report_of_what_is_read_is_that_of_the_model():
    model, again = fitted("budget")[0], from_json(to_json(fitted("bought")[0]))
    found, wanted = (each.privacy_report().to_dict() for each in (from_json(to_json(model)), model))
    assert found["guarantee"]["epsilon"] == wanted["guarantee"]["epsilon"]
    assert found["noise"] == wanted["noise"] == {"source": "seeded"}
    found, wanted = (each.privacy_report().to_dict()["public"] for each in (again, fitted("bought")[0]))
    assert [each["source"] for each in found["columns"]] == ["bought"] * 4
    assert found["columns"] == wanted["columns"]


@pytest.mark.parametrize("name", ["linear", "trees of targets"])
def test_a_fit_that_continues_pays_for_the_past(name):
    model, rows = fitted(name)
    again = from_json(to_json(model))
    before = again.privacy_event_
    again.set_params(random_state=1).partial_fit(rows, np.array(["n", "y"])[TWO] if name == "linear" else TWO)
    assert again.privacy_event_ == compose([before, before]) or again.epsilon_ > 1.3 * model.epsilon_
    assert again.epsilon_ >= get_epsilon(before, again.delta_)


def test_a_step_that_continues_is_paid_for_by_the_whole():
    model, rows = fitted("budget")
    again = from_json(to_json(model))
    again[-1].partial_fit(again[:-1].transform(rows), TWO)
    assert again.epsilon_ > 1.2 * model.epsilon_


def test_no_seed_no_path_and_no_private_attribute_is_written(tmp_path):
    model = DPLogisticRegression(classes=[0, 1], max_iter=1, random_state=987_654_321, n_jobs=1).fit(X, TWO)
    text = to_json(model.set_params(checkpoint=str(tmp_path / "secret.npz"), verbose=0))
    assert "987654321" not in text
    assert "secret" not in text
    node = json.loads(text)["model"]
    assert set(node["parameters"]) <= set(model.get_params()) - {"accountant", "checkpoint", "n_jobs", "random_state"}
    assert all(name.endswith("_") and not name.startswith("_") for name in node["attributes"])
    assert from_json(text).random_state is None


def test_parameters_that_were_changed_after_the_fit_are_refused():
    model, _ = fitted("trees")
    changed = from_json(to_json(model))
    changed.embedding_.set_params(n_estimators=4)
    with pytest.raises(ValueError, match=r"\ADPRandomTreesClassifier has parameters that were changed after the fit"):
        to_json(changed)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", "null", '{"format": "skdp.export 2"}', '{"format": "skdp.export 1"}',
        '{"format": "skdp.export 1", "model": {"class": "os.system", "parameters": {}}}',
    ],
)  # fmt: skip
def test_another_text_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=r"\Atext is no model of the form 'skdp.export 1'[^\n]*\Z"):
        from_json(text)


@pytest.mark.parametrize(
    ("place", "name"), [("attributes", "_fitted_releases"), ("parameters", "accountant"), ("inside", "bounds_")]
)
def test_a_text_sets_public_attributes_and_no_ledger(place, name):
    content = json.loads(to_json(fitted("bayes")[0]))
    assert from_json(json.dumps(content)).accountant is None
    content["model"][place][name] = None
    with pytest.raises(ValueError, match="is no model"):
        from_json(json.dumps(content))


class OtherBayes(DPGaussianNB):
    """A class of a user's."""


def test_what_has_no_form_is_refused_by_name():
    other = OtherBayes(classes=[0, 1], bounds=(-1, 1), random_state=0).fit(X, TWO)
    with pytest.raises(TypeError, match=r"\AOtherBayes has no form in JSON here"):
        to_json(other)
    pipe = make_pipeline(clone(fitted("bayes")[0])).fit(X, TWO)
    with pytest.raises(TypeError, match=r"\APipeline has no form in JSON here"):
        to_json(pipe)
    bayes = from_json(to_json(fitted("bayes")[0])).set_params(bounds=iter(()))
    with pytest.raises(TypeError, match=r"\ADPGaussianNB\.bounds holds a \w+, which JSON has no form for"):
        to_json(bayes)
