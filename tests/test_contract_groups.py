"""The contract that estimators sign whose ``fit`` takes `groups`. A newcomer is one more line of `MODELS`."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor

N_UNITS, COLUMNS = 60, ["a", "b"]
BOUNDS, SHORT = {"bounds": (-1.0, 1.0)}, {"max_iter": 3}
TREES = {"n_estimators": 4, "max_depth": 2, **BOUNDS, **SHORT}
MODELS = {
    "linear": lambda: skdp.DPLogisticRegression(classes=[0, 1], **SHORT),
    "network": lambda: skdp.DPMLPClassifier((3,), classes=[0, 1], **SHORT),
    "network regressor": lambda: skdp.DPMLPRegressor((3,), y_bounds=(0, 1), **SHORT),
    "trees": lambda: DPRandomTreesClassifier(classes=[0, 1], **TREES),
    "trees regressor": lambda: DPRandomTreesRegressor(y_bounds=(0, 1), **TREES),
    "naive Bayes": lambda: skdp.DPGaussianNB([0, 1], **BOUNDS),
    "least squares": lambda: skdp.DPLinearRegression((0, 1)),
    "ridge": lambda: skdp.DPRidge(y_bounds=(0, 1)),
    "counts": lambda: skdp.DPPoissonRegressor((0, 1)),
    "order": lambda: skdp.DPOrdinalLogisticRegression([0, 1]),
    "components": lambda: skdp.DPPCA(2),
    "isolation forest": lambda: skdp.DPIsolationForest(4, 2, contamination=0.1, **BOUNDS),
    "clusters": lambda: skdp.DPKMeans(2, **BOUNDS),
    "scaler": lambda: skdp.DPStandardScaler(**BOUNDS),
    "bins": lambda: skdp.DPQuantileBinner(n_bins=3),
    "bins, places": lambda: skdp.DPQuantileBinner(n_bins=3, encode="ordinal"),
    "imputer": lambda: skdp.DPSimpleImputer(**BOUNDS),
    "imputer of a constant": lambda: skdp.DPSimpleImputer("constant", fill_value=0.0),
    "encoder": lambda: skdp.DPOneHotEncoder(),
    "vectorizer": lambda: skdp.DPTableVectorizer(),
    "vectorizer, public": lambda: skdp.DPTableVectorizer({"a": (-1.0, 1.0), "b": (-1.0, 1.0)}),
    "class mixture": lambda: skdp.DPClassMixtureGenerator(classes=[0, 1], **BOUNDS),
    "synthesizer": lambda: skdp.DPMarginalSynthesizer(classes=[0, 1], n_bins=3, n_components=2, **BOUNDS, **SHORT),
}  # fmt: skip
COMPOSITIONS = {
    "pipeline": lambda: skdp.allocate_budget(
        make_pipeline(skdp.DPStandardScaler(**BOUNDS), skdp.DPPCA(1), MODELS["linear"]()), 1.0
    ),
    "pipeline behind a public step": lambda: skdp.allocate_budget(
        make_pipeline(FunctionTransformer(np.abs), MODELS["ridge"]()), 1.0
    ),
    "pipeline of transformers": lambda: skdp.allocate_budget(
        make_pipeline(skdp.DPSimpleImputer(**BOUNDS), skdp.DPStandardScaler(**BOUNDS)), 1.0
    ),
    "raw table": lambda: skdp.tabular_pipeline(schema=None, classes=[0, 1]),
    "raw table of targets": lambda: skdp.tabular_pipeline("regressor", y_bounds=(0, 1)),
    "calibrated": lambda: skdp.DPCalibratedClassifier(MODELS["linear"]()),
    "threshold": lambda: skdp.DPThresholdClassifier(MODELS["linear"](), min_recall=0.5),
    "search": lambda: skdp.DPGridSearchCV(MODELS["linear"](), {"alpha": [0.0, 0.1]}),
    "random search of pipelines": lambda: skdp.DPRandomizedSearchCV(
        make_pipeline(skdp.DPStandardScaler(**BOUNDS), MODELS["linear"]()), {"dplogisticregression__alpha": [0.0, 0.1]}
    ),
}
MADE = {**MODELS, **COMPOSITIONS}
METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples", "score", "transform"]
REJECTING = {"DPWGAN", "PatchTransformer", "PublicTreesEmbedding", "ScatteringTransformer"}
"""Those whose ``fit`` takes no `groups`; all but the first read no private row."""


def frame_of_units(to_frame=pd.DataFrame):
    """Two rows a unit, the column of their labels in the middle."""
    rng, n = np.random.default_rng(0), 2 * N_UNITS
    columns = {"a": rng.uniform(-1, 1, n), "home": np.arange(n) // 2, "b": rng.uniform(-1, 1, n)}
    return to_frame(columns), rng.integers(0, 2, n)


def results(model, frame, y):
    """What each method makes of the rows of a frame."""
    methods = [name for name in METHODS if hasattr(model, name)]
    return {name: getattr(model, name)(frame, *([y] if name == "score" else [])) for name in methods}


def assert_equal_results(one, other):
    assert one.keys() == other.keys()
    for name in one:
        values = (each.toarray() if hasattr(each, "toarray") else each for each in (one[name], other[name]))
        np.testing.assert_array_equal(*values, err_msg=name)


def test_every_public_estimator_signs_or_rejects():
    public = {
        name for name in skdp.__all__ if inspect.isclass(getattr(skdp, name)) and hasattr(getattr(skdp, name), "fit")
    }
    signing = {type(make()).__name__ for make in MADE.values()}
    assert public <= signing | REJECTING
    assert not signing & REJECTING


@pytest.mark.parametrize("name", MADE)
def test_rows_may_keep_the_column_of_labels_that_fit_was_given(name):
    frame, y = frame_of_units()
    features = frame[COLUMNS]
    model = MADE[name]().fit(frame, y, groups="home")
    assert list(model.feature_names_in_) == COLUMNS
    assert model.n_features_in_ == len(COLUMNS)
    assert model.privacy_unit_ == "group"
    assert_equal_results(results(model, frame, y), results(model, features, y))
    if isinstance(model, Pipeline):
        for part in (model[:-1], *(step for _, step in model.steps[:1] if hasattr(step, "privacy_unit_"))):
            assert_equal_results(results(part, frame, y), results(part, features, y))
    if hasattr(model, "sample"):
        assert "home" not in getattr(model.sample(3)[0], "columns", COLUMNS)


@pytest.mark.parametrize("name", [name for name, make in MADE.items() if hasattr(make(), "fit_transform")])
def test_what_is_fitted_can_transform_the_same_rows(name):
    frame, y = frame_of_units()
    ledger = skdp.PrivacyAccountant(unit="household")
    model = MADE[name]()
    part = model.steps[0][1] if isinstance(model, Pipeline) else model
    part.set_params(accountant=ledger)
    made = model.fit_transform(frame, y, groups="home")
    assert made.shape[0] == len(frame)
    assert len(ledger.history) == (getattr(model, "epsilon_", 0.0) > 0)
    assert_equal_results({"transform": made}, {"transform": model.transform(frame[COLUMNS])})


@pytest.mark.parametrize("name", ["scaler", "raw table", "pipeline"])
def test_frames_of_other_libraries_may_keep_the_column_too(name):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for to_frame in (polars.DataFrame, lambda columns: arrow.table({k: arrow.array(v) for k, v in columns.items()})):
        frame, y = frame_of_units(to_frame)
        model = MADE[name]().fit(frame, y, groups="home")
        features = frame.select(COLUMNS)
        assert_equal_results(results(model, frame, y), results(model, features, y))


@pytest.mark.parametrize("name", ["linear", "pipeline", "search"])
def test_a_feature_of_that_name_stays_one(name):
    """Labels from elsewhere may be called as a feature is."""
    frame, y = frame_of_units()
    model = MADE[name]().fit(frame.assign(home=0.5), y, groups=frame["home"])
    assert list(model.feature_names_in_) == ["a", "home", "b"]
    assert results(model, frame.assign(home=0.5), y)
    with pytest.raises(ValueError, match="feature names"):
        (model.predict if hasattr(model, "predict") else model.transform)(frame[COLUMNS])


@pytest.mark.parametrize("name", ["linear", "scaler", "pipeline"])
def test_a_fit_to_rows_knows_no_column_of_labels_any_more(name):
    frame, y = frame_of_units()
    model = MADE[name]().fit(frame, y, groups="home").fit(frame[COLUMNS], y)
    assert model.privacy_unit_ == "row"
    with pytest.raises(ValueError, match="feature names"):
        (model.predict if hasattr(model, "predict") else model.transform)(frame)
    assert "_fitted_group_name" not in vars(clone(model))


# --- what takes no groups ---


@pytest.mark.parametrize("inside", ["alone", "pipeline"])
def test_steps_that_take_no_groups_are_rejected_before_the_charge(inside):
    frame, y = frame_of_units()
    ledger = skdp.PrivacyAccountant(unit="household")
    model = skdp.DPWGAN(classes=[0, 1], accountant=ledger, **BOUNDS, **SHORT)
    if inside == "pipeline":
        model = skdp.allocate_budget(make_pipeline(skdp.DPStandardScaler(accountant=ledger, **BOUNDS), model), 1.0)
    with pytest.raises(TypeError, match=r"^fit got an unexpected parameter 'groups': DPWGAN does not support groups"):
        model.fit(frame, y, groups="home")
    assert not ledger.history


# --- weights, instalments and messages ---


@pytest.mark.parametrize("name", ["linear", "naive Bayes", "ridge", "components", "scaler", "synthesizer"])
def test_weights_inside_a_unit_are_those_of_its_rows(name):
    """A row of weight 0 is none, so a unit that has one more such row is the unit without it."""
    frame, y = frame_of_units()
    model = MADE[name]().set_params(weight_bound=1.0, random_state=0)
    once = clone(model).fit(frame[COLUMNS], y, sample_weight=np.full(len(y), 0.5), groups=frame["home"])
    more, again = pd.concat([frame, frame.assign(a=0.9)]), np.concatenate([y, 1 - y])
    weights = np.repeat([0.5, 0.0], len(y))
    padded = clone(model).fit(more[COLUMNS], again, sample_weight=weights, groups=more["home"])
    for attribute in ("coef_", "theta_", "components_", "mean_"):
        if hasattr(once, attribute):
            np.testing.assert_allclose(getattr(once, attribute), getattr(padded, attribute), rtol=1e-6, atol=1e-6)
    assert padded.epsilon_ == once.epsilon_
    assert padded.privacy_unit_ == "group"


@pytest.mark.parametrize("name", ["linear", "network", "trees"])
def test_a_unit_that_comes_back_pays_again(name):
    """Sequential composition of instalments, whatever units they have in common."""
    frame, y = frame_of_units()
    ledger = skdp.PrivacyAccountant(unit="household")
    model = MADE[name]().set_params(accountant=ledger)
    first = model.partial_fit(frame, y, groups="home").epsilon_
    both = model.partial_fit(frame[:60], y[:60], groups="home").epsilon_
    assert 1.2 * first < both
    assert len(ledger.history) == 2
    assert ledger.get_epsilon(model.delta_) == pytest.approx(both, rel=1e-6)


def messages(model, X, y, **given):
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, y, **given)
    return [str(each.message) for each in caught]


def test_messages_count_units_and_not_their_rows():
    X, y = np.random.default_rng(0).uniform(-1, 1, (300, 4)), np.arange(300) % 2
    said = [messages(MODELS["linear"](), X[:n], y[:n], groups=np.arange(n) % 60) for n in (240, 300)]
    said = [[each for each in texts if not each.startswith("Classes ")] for texts in said]  # which noise decides
    assert said[0] == said[1]
    assert any(each.startswith("60 groups are too few for 5 parameters") for each in said[0])
    weak = messages(MODELS["linear"]().set_params(delta=0.02), X, y, groups=np.arange(300) % 60)
    assert any("at least 1/n for n=60 groups" in each for each in weak)
    with pytest.raises(ValueError, match="from 1 to 60, the expected number of groups per step"):
        MODELS["linear"]().set_params(lot_size=61).fit(X, y, groups=np.arange(300) % 60)
    search = skdp.DPGridSearchCV(MODELS["linear"](), {"alpha": [0.0, 0.1]}, test_size=0.1)
    with pytest.raises(ValueError, match=r"must leave at least one group for training and one for testing"):
        search.fit(X, y, groups=np.arange(300) % 2)
