"""Plans of fits: text that gives the same estimator, runs no code of a file, and costs what a fit costs."""

import json
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import skdp
from skdp.export import plan_cost, plan_from_json, plan_to_json, plans
from skdp.model_selection import PrivateScore
from skdp.preprocessing import formula_rows

N = 300
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(N, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": rng.choice(["u", "v"], N)})
SCHEMA = {"a": (-1, 1), "b": {"bounds": (-1, 1), "missing_values": [None]}, "word": ["u", "v"]}
BAYES = skdp.DPGaussianNB(classes=[0, 1], bounds=(-1, 1))
TREES = {"n_estimators": 5, "max_iter": 2, "schema": SCHEMA}
AFTER = skdp.DPLogisticRegression(classes=[0, 1], max_iter=2)
UNIT = {"bounds": (-1, 1)}


def budgeted(*steps, epsilon=1.0, **given):
    return skdp.allocate_budget(make_pipeline(*steps), epsilon, **given)


PLANS = {
    "logistic": (skdp.DPLogisticRegression(classes=[0, 1], class_weight={0: 1.0, 1: 2.5}, max_iter=2), X),
    "risk": (skdp.DPLogisticRegression(classes=[0, 1], epsilon=skdp.Risk(tpr=0.2, fpr=0.1), max_iter=2), X),
    "noise": (skdp.DPRidge(y_bounds=(0, 1), epsilon=None, noise_multiplier=3.0, delta=1e-6), X),
    "private number": (skdp.DPLinearRegression(y_bounds=(0, 1), adjacency=skdp.AddRemove(250)), X),
    "replacement": (skdp.DPPoissonRegressor(y_bounds=(0, 2), adjacency="replace_one"), X),
    "order": (skdp.DPOrdinalLogisticRegression([1, 0]), X),
    "bayes": (BAYES, X),
    "network": (skdp.DPMLPClassifier((4, 3), classes=[0, 1], max_iter=2), X),
    "regression": (skdp.DPMLPRegressor((4,), loss="poisson", y_bounds=(0, 9), max_iter=2), X),
    "clusters": (skdp.DPKMeans(3, epsilon=9.0, **UNIT), X),
    "components": (skdp.DPPCA(2, center=[0.1, 0.0, 0.0]), X),
    "trees": (skdp.DPRandomTreesClassifier(classes=[0, 1], **TREES), FRAME),
    "trees of targets": (skdp.DPRandomTreesRegressor(y_bounds=(0, 1), **TREES), FRAME),
    "outliers": (skdp.DPIsolationForest(5, schema=skdp.TableSchema(SCHEMA), contamination=0.1), FRAME),
    "columns": (skdp.DPTableVectorizer({"word": "category"}, numbers="both"), FRAME[["word"]]),
    "encoder": (skdp.DPOneHotEncoder(epsilon=9.0), FRAME[["word"]]),
    "imputer": (skdp.DPSimpleImputer(strategy="most_frequent", epsilon=9.0), FRAME[["word"]]),
    "scaler and binner": (budgeted(skdp.DPStandardScaler(**UNIT), skdp.DPQuantileBinner(4, **UNIT), AFTER), X),
    "fractions": (budgeted("passthrough", skdp.DPPCA(2), AFTER, fractions={"dppca": 0.3}, delta=1e-7), X),
    "tabular": (skdp.tabular_pipeline(schema={"a": (-1, 1)}, classes=[0, 1]), FRAME[["a"]]),
    "selected": (skdp.tabular_pipeline("regressor", y_bounds=(0, 1)), FRAME),
    "embedding": (budgeted(skdp.PublicTreesEmbedding(5, **UNIT), AFTER), X),
    "patches": (budgeted(skdp.PatchTransformer((8, 8), n_filters=4), AFTER), rng.uniform(0, 1, size=(N, 64))),
    "scattering": (budgeted(skdp.ScatteringTransformer((8, 8), J=1), AFTER), rng.uniform(0, 1, size=(N, 64))),
    "grid": (skdp.DPGridSearchCV(BAYES, {"bounds": [(-1, 1), (-2, 2)]}, epsilon=2.0), X),
    "random": (
        skdp.DPRandomizedSearchCV(
            budgeted(skdp.DPPCA(2), AFTER), {"dppca__n_components": [1, 2]}, n_iter=2, strategy="compose", epsilon=9.0
        ),
        X,
    ),
    "calibrated": (skdp.DPCalibratedClassifier(BAYES, epsilon=9.0), X),
    "threshold": (skdp.DPThresholdClassifier(BAYES, epsilon=9.0), X),
    "marginals": (skdp.DPMarginalSynthesizer(schema=skdp.TableSchema(SCHEMA), max_iter=5), FRAME),
    "mixture": (skdp.DPClassMixtureGenerator(classes=[0, 1], **UNIT), X),
    "gan": (skdp.DPWGAN((-1, 1), critic_layer_sizes=8, generator_layer_sizes=8, n_latent=2, max_iter=1), X),
}
STEPS = [
    Normalizer(), Binarizer(threshold=0.5), PolynomialFeatures(2, interaction_only=True), FunctionTransformer(),
    SplineTransformer(knots=[[-1.0] * 3, [0.0] * 3, [1.0] * 3]), MissingIndicator(features="all"),
    SimpleImputer(missing_values=-9, strategy="constant", fill_value=0, keep_empty_features=True),
    OneHotEncoder(categories=[["u", "v"]], handle_unknown="ignore"), OrdinalEncoder(categories=[[0, 1]]),
    GaussianRandomProjection(3), SparseRandomProjection(3), RBFSampler(gamma=0.5), PolynomialCountSketch(),
    AdditiveChi2Sampler(), SkewedChi2Sampler(), FeatureHasher(16), HashingVectorizer(n_features=16, ngram_range=(1, 2)),
    FeatureUnion([("n", Normalizer()), ("b", "passthrough")], transformer_weights={"n": 2.0}),
    ColumnTransformer([("n", Normalizer(), [0, 1]), ("rest", "drop", ["c"])], sparse_threshold=0),
    make_pipeline(Normalizer(), "passthrough"),
]  # fmt: skip
"""Steps of scikit-learn that a plan can contain."""


def plain(value):
    """Classes and parameters, at any depth, with their types."""
    if isinstance(value, BaseEstimator):
        return type(value), {name: plain(each) for name, each in value.get_params(deep=False).items()}
    if isinstance(value, list | tuple):
        return type(value), [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return type(value), repr(value) if value != value else value


def text_of(kind, /, **parameters):
    """A plan that `plan_to_json` need not have written."""
    return json.dumps({"skdp_plan": "1.0", "estimator": {kind: parameters}})


# --- round trip ---


@pytest.mark.parametrize("name", PLANS)
def test_plan_restores_estimator(name):
    plan, _ = PLANS[name]
    text = plan_to_json(plan)
    again = plan_from_json(text)
    assert plain(again) == plain(plan)
    assert plan_to_json(again) == text


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_plan_restores_step(step):
    again = plan_from_json(plan_to_json(budgeted(step, AFTER)))
    assert plain(again.steps[0][1]) == plain(step)


def test_plan_contains_all_allowed_classes():
    texts = [plan_to_json(plan) for plan, _ in PLANS.values()]
    texts += [plan_to_json(budgeted(step, AFTER)) for step in STEPS]
    assert {name for name in plans._MODULES if not any(f'"{name}"' in text for text in texts)} == set()


def test_plan_omits_default_and_fitted_values():
    model = skdp.DPPCA(2, epsilon=0.5)
    text = plan_to_json(clone(model).fit(X))
    assert text == plan_to_json(model)
    assert json.loads(text)["estimator"] == {"DPPCA": {"n_components": 2, "epsilon": 0.5}}


# --- privacy cost ---


@pytest.mark.parametrize("name", PLANS)
def test_plan_cost_equals_cost_of_fit(name):
    plan, rows = PLANS[name]
    cost = plan_cost(plan_from_json(plan_to_json(plan)), *rows.shape)
    fitted = clone(plan).fit(rows, None if hasattr(plan, "sample") and name != "mixture" else Y)
    # A regressor that the table selects has other steps, calibrated to the same budget.
    assert cost.epsilon == pytest.approx(fitted.epsilon_, rel=1e-3 if name == "selected" else 1e-12)
    assert (cost.delta, cost.adjacency) == (fitted.delta_, fitted.adjacency_)
    assert cost.steps == pytest.approx(getattr(fitted, "step_epsilons_", {}))


def test_plan_cost_reads_no_record():
    tracemalloc.start()
    try:
        for plan in (PLANS["fractions"][0], PLANS["calibrated"][0], PLANS["bayes"][0]):
            assert plan_cost(plan, n_samples=10**10, n_features=50).epsilon > 0
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()


def test_plan_cost_decreases_delta_with_records():
    assert [plan_cost(BAYES, n, 3).delta for n in (1_000, 1_000_000)] == [1e-5, 1e-7]


@pytest.mark.parametrize("name", ["bayes", "fractions", "calibrated", "grid"])
def test_plan_cost_uses_terms_of_accountant_without_charge(name):
    accountant = skdp.PrivacyAccountant(20.0, 1e-8, adjacency="replace_one", method="rdp")
    plan, rows = PLANS[name]
    plan = plan_from_json(plan_to_json(plan).replace('"delta": 1e-07', '"delta": "auto"'), accountant)
    cost = plan_cost(plan, *rows.shape)
    assert (cost.delta, cost.adjacency) == (1e-8, "replace_one")
    assert accountant.history == ()
    plan.fit(rows, Y)
    (charge,) = accountant.history
    assert cost.epsilon >= plan.epsilon_ * (1 - 1e-9)
    assert charge.event == plan.privacy_event_


def test_plan_exceeding_budget_is_not_charged():
    accountant = skdp.PrivacyAccountant(0.5, 1e-5)
    plan = plan_from_json(plan_to_json(PLANS["fractions"][0]), accountant)
    with pytest.raises(skdp.BudgetExceededError):
        plan.fit(X, Y)
    assert accountant.history == ()


def test_plan_cost_rejects_numbers_of_records():
    with pytest.raises(ValueError, match="`n_samples` must be the public number of records, got 0"):
        plan_cost(BAYES, 0, 3)
    with pytest.raises(TypeError, match="n_features"):
        plan_cost(BAYES, 10, 1.5)


# --- what a plan cannot contain ---


class Subclass(skdp.DPPCA):
    pass


REJECTED = {
    "an array": (skdp.DPPCA(2, center=np.zeros(3)), r"`center` of DPPCA must be .* got ndarray"),
    "a seed": (skdp.DPPCA(2, random_state=0), "'random_state' of DPPCA must be None, because the owner"),
    "a generator": (skdp.DPPCA(2, random_state=rng), "`random_state` of DPPCA must be .* got Generator"),
    "an accountant": (skdp.DPPCA(2, accountant=skdp.PrivacyAccountant()), "`accountant` of DPPCA .* PrivacyAccountant"),
    "a budget file": (skdp.DPPCA(2, accountant="x.budget"), "'accountant' of DPPCA must be None"),
    "a checkpoint": (skdp.DPLogisticRegression(classes=[0, 1], checkpoint="x.npz"), "'checkpoint' of"),
    "images": (budgeted(skdp.PatchTransformer((2, 2), public_images=[[0.0] * 4]), AFTER), "'public_images' of"),
    "a function": (budgeted(FunctionTransformer(np.log1p), AFTER), "`func` of FunctionTransformer .* got ufunc"),
    "a formula": (budgeted(formula_rows("a", {"a": (0, 1)}).step, AFTER), "`func` of FunctionTransformer .* RowWise"),
    "a score": (
        skdp.DPGridSearchCV(BAYES, {"bounds": [(-1, 1)]}, scoring=PrivateScore("s", len, 1.0)),
        "`scoring` of DPGridSearchCV .* got PrivateScore",
    ),
    "a subclass": (Subclass(2), "`plan` must be a plain value or a listed class, got Subclass"),
    "a model": (skdp.DPCalibratedClassifier(FrozenEstimator(BAYES)), "got FrozenEstimator"),
    "several budgets": (make_pipeline(skdp.DPPCA(2), AFTER), "must be private, got Pipeline. Use skdp.allocate_budget"),
    "classes of the labels": (skdp.DPGaussianNB(**UNIT), r"private as a whole: .* reads its classes from y"),
    "exact statistics": (skdp.DPGridSearchCV(make_pipeline(StandardScaler(), BAYES), {}), "StandardScaler"),
    "an estimator without privacy": (StandardScaler(), "`plan` must be private, got StandardScaler"),
    "no estimator": ("DPPCA", "`plan` must be private, got str"),
    "part of a fit": (skdp.allocate_budget(make_pipeline(skdp.DPPCA(2), AFTER), 1.0)[:1], "got PipelineSlice"),
}


@pytest.mark.parametrize("what", REJECTED)
def test_plan_to_json_rejects(what):
    plan, message = REJECTED[what]
    with pytest.raises(ValueError, match=message) as caught:
        plan_to_json(plan)
    assert "\n" not in str(caught.value)


HOSTILE = {
    "another version": ('{"skdp_plan": "0.0", "estimator": {"DPPCA": {}}}', "'skdp_plan': '1.0'"),
    "another entry": ('{"skdp_plan": "1.0", "estimator": {"DPPCA": {}}, "code": "1"}', "expected"),
    "a function": (text_of("system", command="true"), "'system' must be a public estimator"),
    "a path of a class": (text_of("subprocess.Popen", args=["true"]), "'subprocess.Popen' must be"),
    "a module": (text_of("antigravity"), "'antigravity' must be"),
    "a fitted part": (text_of("PrivateEvaluation", model=None), "'PrivateEvaluation' must be"),
    "an unknown parameter": (text_of("DPPCA", __class__=1), "'__class__' of DPPCA must be a parameter of DPPCA"),
    "learned state": (text_of("DPPCA", epsilon_=0.0), "'epsilon_' of DPPCA must be a parameter"),
    "an accountant": (text_of("DPPCA", accountant="owner.budget"), "'accountant' of DPPCA must be None"),
    "a seed": (text_of("DPPCA", random_state=0), "'random_state' of DPPCA must be None"),
    "a cache": (
        text_of("PrivatePipeline", steps=[{"tuple": ["p", {"DPPCA": {}}]}], memory="cache"),
        "'memory' of PrivatePipeline must be None",
    ),
    "a file to read": (
        text_of("DPGridSearchCV", estimator={"Pipeline": {"steps": [
            {"tuple": ["f", {"HashingVectorizer": {"input": "filename"}}]},
            {"tuple": ["m", {"DPGaussianNB": {"classes": [0, 1], "bounds": {"tuple": [0, 1]}}}]},
        ]}}, param_grid={"dict": []}),
        "reads files",
    ),
    "a schema that is a path": (text_of("DPTableVectorizer", schema={"TableSchema": "/etc/x"}), "must be a mapping"),
    "a parameter twice": (
        '{"skdp_plan": "1.0", "estimator": {"DPPCA": {"epsilon": 0.1, "epsilon": 9}}}', "duplicate key 'epsilon'"
    ),
    "two kinds": ('{"skdp_plan": "1.0", "estimator": {"DPPCA": {}, "DPRidge": {}}}', "values to unpack"),
    "no estimator": ('{"skdp_plan": "1.0", "estimator": {"Risk": {"advantage": 0.1}}}', "private estimator, got Risk"),
    "an invalid object": (text_of("DPPCA", epsilon={"Risk": {"advantage": 2}}), "`advantage` must be a number above 0"),
    "a list": ("[1]", "must be a plan"),
    "no JSON": ("cos\nsystem\n(S'true'\ntR.", "must be a plan"),
    "lists in lists": ("[" * 100_000, "must be a plan"),
    "a long number": ('{"skdp_plan": "1.0", "estimator": {"DPPCA": {"epsilon": ' + "9" * 10_000 + "}}}", "must be a"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_plan_from_json_rejects(what):
    text, message = HOSTILE[what]
    modules = set(sys.modules)
    with pytest.raises(ValueError, match=r"^`text` must be a plan that skdp\.export\.plan_to_json") as caught:
        plan_from_json(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {name for name in set(sys.modules) - modules if not name.startswith(("skdp", "numba", "sklearn"))} == set()


def test_plan_grid_cannot_set_checkpoint(tmp_path):
    path = str(tmp_path / "run.npz")
    grid = {"dict": [["checkpoint", [path]]]}
    estimator = {"DPLogisticRegression": {"classes": [0, 1], "max_iter": 2}}
    plan = plan_from_json(text_of("DPGridSearchCV", estimator=estimator, param_grid=grid))
    with pytest.raises(ValueError, match="checkpoint"):
        plan_cost(plan, N, 3)
    with pytest.raises(ValueError, match="checkpoint"):
        plan.fit(X, Y)
    assert list(tmp_path.iterdir()) == []
