"""Files of skops: every public estimator comes back equal, by its public type alone, with the cost of its events."""

import functools
import io
import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import make_pipeline

import skdp
from skdp.accounting import GaussianDpEvent, compose
from skdp.accounting.ledger.serial import event_to_dict
from skdp.base import saved_state
from skdp.export import skops_types

skops = pytest.importorskip("skops.io")

SEED = {"random_state": 0}
FEW = {"max_iter": 1, **SEED}
TREES = {"n_estimators": 5, "max_iter": 1, "random_state": 0}
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3)).round(6)
FRAME = pd.DataFrame({"b": X[:, 0], "word": rng.choice(["u", "v", None], 300), "a": X[:, 1]})
FRAME["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, 300), unit="D")
IMAGES = rng.uniform(0, 1, size=(20, 64))
SCHEMA = {
    "a": (-2, 2),
    "b": {"bounds": (-1, 1), "missing_values": [0.5]},
    "word": ["u", "v"],
    "day": ("2020-01-01", "2022-01-01"),
}
TWO = (X[:, 0] > 0).astype(int)
BAYES = skdp.DPGaussianNB(classes=[0, 1], bounds=(-1, 1))
MODELS = {
    "linear": (lambda: skdp.DPLogisticRegression(classes=["n", "y"], class_weight={"n": 1.0, "y": 2.0}, **FEW), X),
    "least squares": (lambda: skdp.DPLinearRegression(y_bounds=(0, 1), **SEED), X),
    "ridge": (lambda: skdp.DPRidge(y_bounds=(0, 1), **SEED), X),
    "network": (lambda: skdp.DPMLPClassifier((4, 3), classes=[0, 1], **FEW), X.astype(np.float32)),
    "counts": (lambda: skdp.DPMLPRegressor((4,), loss="poisson", y_bounds=(0, 9), **FEW), X),
    "logarithms": (lambda: skdp.DPMLPRegressor((4,), y_bounds=(0.5, 2), y_transform="log", **FEW), X),
    "bayes": (lambda: skdp.DPGaussianNB(classes=[0, 1], bounds=[(-1, 1)] * 3, **SEED), X),
    "clusters": (lambda: skdp.DPKMeans(3, bounds=(-2, 2), epsilon=9.0, **SEED), X),
    "components": (lambda: skdp.DPPCA(2, center=[0.1, 0.0, 0.0], **SEED), X),
    "trees": (lambda: skdp.DPRandomTreesClassifier(schema=SCHEMA, classes=[0, 1], **TREES), FRAME),
    "trees of targets": (lambda: skdp.DPRandomTreesRegressor(schema=SCHEMA, y_bounds=(0, 1), **TREES), FRAME),
    "outliers": (lambda: skdp.DPIsolationForest(5, schema=SCHEMA, contamination=0.1, weight_bound=0.3, **SEED), FRAME),
    "rates": (lambda: skdp.DPPoissonRegressor(y_bounds=(0, 3), **SEED), X),
    "order": (lambda: skdp.DPOrdinalLogisticRegression([1, 0], **SEED), X),
    "embedding": (lambda: skdp.PublicTreesEmbedding(5, schema=SCHEMA, random_state=3), FRAME),
    "public schema": (lambda: skdp.DPTableVectorizer(SCHEMA, numbers="both"), FRAME),
    "private schema": (lambda: skdp.DPTableVectorizer(**SEED), FRAME),
    "encoder": (lambda: skdp.DPOneHotEncoder(epsilon=9.0, **SEED), FRAME[["word"]]),
    "binner": (lambda: skdp.DPQuantileBinner(4, bounds=(-2, 2), **SEED), X),
    "scaler": (lambda: skdp.DPStandardScaler(bounds=(-2, 2), **SEED), X),
    "imputer": (lambda: skdp.DPSimpleImputer(strategy="most_frequent", epsilon=9.0, **SEED), FRAME[["word"]]),
    "pipeline": (
        lambda: skdp.allocate_budget(
            make_pipeline("passthrough", skdp.DPPCA(2, **SEED), skdp.DPLogisticRegression(classes=[0, 1], **FEW)), 1.0
        ),
        X,
    ),
    "tabular": (lambda: skdp.tabular_pipeline("regressor", y_bounds=(0, 1), **SEED), FRAME),
    "grid": (lambda: skdp.DPGridSearchCV(BAYES, {"bounds": [(-1, 1), (-2, 2)]}, epsilon=2.0, **SEED), X),
    "random": (
        lambda: skdp.DPRandomizedSearchCV(
            skdp.DPRidge(y_bounds=(0, 1)), {"alpha": [0.0, 1.0]}, n_iter=2, strategy="compose", epsilon=9.0, **SEED
        ),
        X,
    ),
    "calibrated": (lambda: skdp.DPCalibratedClassifier(BAYES, epsilon=9.0, **SEED), X),
    "threshold": (lambda: skdp.DPThresholdClassifier(BAYES, epsilon=9.0, **SEED), X),
    "marginals": (lambda: skdp.DPMarginalSynthesizer(max_iter=5, **SEED), FRAME),
    "mixture": (lambda: skdp.DPClassMixtureGenerator(bounds=(-1, 1), classes=[0, 1], **SEED), X),
    "gan": (lambda: skdp.DPWGAN((-1, 1), critic_layer_sizes=8, generator_layer_sizes=8, n_latent=2, **FEW), X),
    "patches": (lambda: skdp.PatchTransformer((8, 8)), IMAGES),
    "scattering": (lambda: skdp.ScatteringTransformer((8, 8)), IMAGES),
}
METHODS = ("predict", "predict_proba", "decision_function", "score_samples", "transform")


@functools.cache
def fitted(name):
    make, rows = MODELS[name]
    labels = np.array(["n", "y"])[TWO] if name == "linear" else TWO
    return make().fit(rows, labels[: len(rows)]), rows


def loaded(model):
    return skops.loads(skops.dumps(model), trusted=skops_types())


def answers(model, rows):
    found = {name: getattr(model, name)(rows) for name in METHODS if hasattr(model, name)}
    if hasattr(model, "sample"):
        made = model.sample(20, random_state=1)
        found |= {str(k): each for k, each in enumerate(made if isinstance(made, tuple) else (made,))}
    if hasattr(model, "transform"):
        found["names"] = model.get_feature_names_out()
    return {name: each.toarray() if hasattr(each, "toarray") else each for name, each in found.items()}


def assert_equal(one, other):
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other)
    elif one is not None:
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("name", MODELS)
def test_skops_file_restores_estimator(name):
    model, rows = fitted(name)
    again = loaded(model)
    assert type(again) is type(model)
    found, wanted = answers(again, rows), answers(model, rows)
    assert list(found) == list(wanted) != []
    for method, each in wanted.items():
        assert_equal(found[method], each)
    if getattr(model, "epsilon_", 0.0) > 0.0:
        assert (again.epsilon_, again.delta_) == (model.epsilon_, model.delta_)
        assert again.privacy_event_ == model.privacy_event_
        assert skdp.privacy_report(again).to_dict() == skdp.privacy_report(model).to_dict()
    assert set(vars(again)) - {"_lineage"} == set(vars(model)) - {"_lineage"}


def test_every_public_estimator_is_restored():
    fits = {type(part).__name__ for name in MODELS for part in parts_of(fitted(name)[0])}
    public = {
        name for name in skdp.__all__
        if isinstance(found := getattr(skdp, name), type) and issubclass(found, BaseEstimator)
    }  # fmt: skip
    assert public <= fits
    assert fits <= {name.rpartition(".")[2] for name in skops_types()}


def parts_of(model):
    return [model, *(step for _, step in getattr(model, "steps", ()) if not isinstance(step, str))]


def test_evaluation_is_restored():
    found = skdp.evaluate(fitted("bayes")[0], X, TWO, epsilon=5.0, random_state=0)
    again = loaded(found)
    assert str(again) == str(found)
    assert again.epsilon_ == found.epsilon_


def test_skops_file_holds_public_types_and_no_secret(tmp_path):
    accountant = skdp.PrivacyAccountant(epsilon=9.0, delta=1e-5, path=tmp_path / "secret.budget")
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=1, random_state=987654321, accountant=accountant)
    model = model.set_params(checkpoint=str(tmp_path / "secret.run")).fit(X, TWO)
    content = skops.dumps(model)
    assert skops.get_untrusted_types(data=content) == ["skdp.linear_model.logistic.DPLogisticRegression"]
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        text = b"".join(file.read(name) for name in file.namelist())
    assert not any(secret in text for secret in (b"secret", b"987654321", accountant.head.encode()))
    again = loaded(model)
    assert (again.accountant, again.random_state, again.checkpoint) == (None, None, None)
    assert again.epsilon_ == model.epsilon_


@pytest.mark.parametrize("name", ["linear", "pipeline"])
def test_incremental_fit_after_loading_adds_to_epsilon(name):
    again = loaded(fitted(name)[0])
    last = again.steps[-1][1] if name == "pipeline" else again
    rows = again[:-1].transform(X) if name == "pipeline" else X
    before, event = again.epsilon_, last.privacy_event_
    last.partial_fit(rows, np.array(["n", "y"])[TWO] if name == "linear" else TWO)
    assert last.privacy_event_ != event
    assert again.epsilon_ > 1.1 * before
    if last is again:  # and of three runs
        again.partial_fit(rows, np.array(["n", "y"])[TWO] if name == "linear" else TWO)
        assert loaded(again).privacy_event_ == again.privacy_event_


# --- files that were altered ---


def other_event():
    return {"skdp": "event", "value": event_to_dict(GaussianDpEvent(99.0))}


ALTERED = {
    "is below the privacy cost": {"epsilon_": 0.01},
    "below the privacy cost": {"epsilon_": float("nan")},
    "does not match its releases": {"privacy_event_": other_event()},
    "privacy_event_ of this": {"_fitted_releases": ()},
    "The guarantee of this": {"privacy_unit_": "group"},
    "guarantee of this DPLogisticRegression does not match": {"adjacency_": "replace_one", "epsilon_": 99.0},
    "'fit' is not an attribute": {"fit": "text"},
    "'_plan_fit' is not an attribute": {"_plan_fit": "text"},
    "'random_state' is never saved": {"random_state": 0},
    "'__class__' is not a field": {"_fitted_leaks": {"skdp": "Trees", "value": [["__class__", 1]]}},
    "is not an allowed type in a saved model": {"coef_": {"skdp": "Popen", "value": [["args", "true"]]}},
    "is not supported": {"coef_": {"skdp": "event", "value": {"event": "Popen", "args": "true"}}},
}


@pytest.mark.parametrize("message", ALTERED)
def test_altered_state_is_rejected(message):
    state = fitted("linear")[0].__getstate__()
    state["value"].update(ALTERED[message])
    with pytest.raises(ValueError, match=message) as error:
        skdp.DPLogisticRegression().__setstate__(state)
    assert "\n" not in str(error.value)


def test_state_of_another_format_is_rejected():
    state = fitted("linear")[0].__getstate__() | {"skdp": "state of format 2"}
    with pytest.raises(ValueError, match=r"got .state of format 2.\. Load the file with the version of skdp"):
        skdp.DPLogisticRegression().__setstate__(state)


def test_pickle_of_another_version_warns(monkeypatch):
    monkeypatch.setattr(saved_state, "__version__", "0.9.0")
    content = pickle.dumps(fitted("linear")[0])
    monkeypatch.undo()
    with pytest.warns(InconsistentVersionWarning, match="DPLogisticRegression from version 0.9.0 when using version"):
        loaded = pickle.loads(content)
    assert loaded.epsilon_ == fitted("linear")[0].epsilon_
    assert "_skdp_version" not in vars(loaded)


def test_saved_epsilon_without_events_is_rejected():
    state = fitted("linear")[0].__getstate__()
    del state["value"]["privacy_event_"], state["value"]["_fitted_releases"]
    with pytest.raises(ValueError, match="does not match its releases"):
        skdp.DPLogisticRegression().__setstate__(state)


def test_saved_attributes_without_their_mark_are_rejected(monkeypatch):
    # Those of a pickle, for example, are not checked.
    model = fitted("bayes")[0]
    monkeypatch.setattr(
        skdp.DPGaussianNB, "__getstate__", lambda self: {"epsilon_": 0.01, "accountant": "other.budget"}
    )
    content = skops.dumps(model)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="saved state of a DPGaussianNB must be a 'state of format 1', got None"):
        skops.loads(content, trusted=skops_types())


def test_skops_file_with_smaller_epsilon_is_rejected():
    model = pickle.loads(pickle.dumps(fitted("linear")[0]))
    model.epsilon_ = 0.01
    content = skops.dumps(model)
    with pytest.raises(ValueError, match="is below the privacy cost"):
        skops.loads(content, trusted=skops_types())


def test_function_in_skops_file_needs_trust():
    model = pickle.loads(pickle.dumps(fitted("linear")[0]))
    model.coef_ = os.system
    content = skops.dumps(model)
    assert len(skops.get_untrusted_types(data=content)) == 2
    with pytest.raises(TypeError, match="system"):
        skops.loads(content, trusted=skops_types())


def test_same_release_in_two_loaded_models_counts_once():
    model, _ = fitted("pipeline")
    again = loaded(model)
    assert again.steps[1][1]._fitted_releases[0].id == model.steps[1][1]._fitted_releases[0].id
    assert compose([again.privacy_event_]) == again.privacy_event_
