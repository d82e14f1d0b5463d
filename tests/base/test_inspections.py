"""Tools that average predictions over rows work, and are told of: nobody pays for what they show of private rows."""

import pickle
import warnings

import joblib
import matplotlib as mpl
import numpy as np
import pytest
from combinations import over_rows
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPLogisticRegression, DPRidge, PrivacyLeakWarning, allocate_budget, config_context
from skdp.ensemble import DPRandomTreesClassifier

mpl.use("Agg")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 2))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = RNG.uniform(-1, 1, (30, 2))
MADE = {
    "linear": lambda: DPLogisticRegression(classes=[0, 1], max_iter=5),
    "trees": lambda: DPRandomTreesClassifier(5, 2, bounds=(-1, 1), classes=[0, 1], max_iter=5),
    "ridge": lambda: DPRidge(y_bounds=(0, 1)),
    "pipeline": lambda: allocate_budget(
        make_pipeline(FunctionTransformer(), DPLogisticRegression(classes=[0, 1], max_iter=5)), 1.0
    ),
}
TOOLS = {
    "partial_dependence": lambda model: partial_dependence(model, PUBLIC, [0], grid_resolution=4),
    "PartialDependenceDisplay.from_estimator": lambda model: PartialDependenceDisplay.from_estimator(
        model, PUBLIC, [0, (0, 1)], grid_resolution=3
    ),
    "permutation_importance": lambda model: permutation_importance(model, PUBLIC, Y[:30], n_repeats=2, random_state=0),
    "DecisionBoundaryDisplay.from_estimator": lambda model: DecisionBoundaryDisplay.from_estimator(
        model, PUBLIC, grid_resolution=4, response_method="predict"
    ),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: make().fit(X, Y) for name, make in MADE.items()}


def told(caught):
    return [each for each in caught if issubclass(each.category, PrivacyLeakWarning)]


@over_rows(("kind", "tool"), [*(("linear", tool) for tool in TOOLS), *((kind, "partial_dependence") for kind in MADE)])
def test_each_tool_works_and_is_told_once(fitted, kind, tool):
    model = pickle.loads(pickle.dumps(fitted[kind]))
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = TOOLS[tool](model)
        TOOLS[tool](model)
    (warning,) = told(caught)
    message = str(warning.message)
    assert f"predicts for sklearn.inspection.{tool}, " in message
    assert message.endswith("is not covered by the privacy guarantee. Pass public data.")
    assert "\n" not in message
    assert warning.filename == __file__
    if tool == "partial_dependence":
        by_hand = PUBLIC.copy()
        by_hand[:, 0] = found["grid_values"][0][1]
        steps = getattr(model, "predict_proba", None)
        mean = steps(by_hand)[:, 1].mean() if steps else model.predict(by_hand).mean()
        np.testing.assert_allclose(found["average"][0, 1], mean)


@over_rows("kind", MADE)
def test_it_is_an_error_where_that_is_asked_for(fitted, kind):
    for _ in range(2):
        with (
            config_context(on_leak="raise"),
            pytest.raises(PrivacyLeakWarning, match=r"permutation_importance.*Pass public data"),
        ):
            TOOLS["permutation_importance"](fitted[kind])


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_permutations_in_threads_and_processes_are_told_once(fitted, backend, capfd):
    """And nothing is said of fits: fitted models are sent to processes for predictions too."""
    model = pickle.loads(pickle.dumps(fitted["trees"]))
    alone = permutation_importance(pickle.loads(pickle.dumps(model)), PUBLIC, Y[:30], n_repeats=4, random_state=0)
    with warnings.catch_warnings(record=True, action="always") as caught, joblib.parallel_config(backend, n_jobs=2):
        found = permutation_importance(model, PUBLIC, Y[:30], n_repeats=4, random_state=0)
    (warning,) = told(caught)
    assert "predicts for sklearn.inspection.permutation_importance, " in str(warning.message)
    assert "Warning" not in capfd.readouterr().err  # of workers
    np.testing.assert_array_equal(found.importances, alone.importances)


@over_rows("kind", MADE)
def test_predictions_and_scores_are_silent(fitted, kind):
    model = fitted[kind]
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning), config_context(on_leak="raise"):
        model.predict(X)
        model.score(X, Y)
        get_scorer("neg_mean_squared_error")(model, X, Y)
        if hasattr(model, "predict_proba"):
            model.predict_proba(X)
            get_scorer("roc_auc")(model, X, Y)


def test_fits_inside_cross_validation_say_nothing_of_inspections():
    with warnings.catch_warnings(record=True, action="always") as caught:
        cross_val_score(MADE["linear"](), X, Y, cv=2)
        cross_val_predict(MADE["linear"](), X, Y, cv=2)
    assert not [each for each in caught if "inspection" in str(each.message)]
