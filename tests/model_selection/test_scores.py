"""Private searches among regressors: scores that are means of errors between public bounds."""

import math

import numpy as np
import pytest
from replay import assert_all_else_is_equal, moves, replay
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error, mean_squared_error
from sklearn.pipeline import make_pipeline
from unread import UnreadTable

from skdp import (
    DPPCA,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPRegressor,
    DPRandomizedSearchCV,
    DPRidge,
    PrivacyAccountant,
    allocate_budget,
    tabular_pipeline,
)
from skdp.base import root_stream
from skdp.ensemble import DPRandomTreesRegressor
from skdp.model_selection import PrivateScore
from skdp.model_selection.private_split import draw_tested
from skdp.model_selection.scores import ERRORS, score_of

BOUNDS = (-3.0, 5.0)
N = 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (N, 3))
Y = np.clip(2.0 * X[:, 0] - X[:, 1] + 1.0 + 0.1 * RNG.standard_normal(N), *BOUNDS)
GRID = {"alpha": ["auto", 1e9]}


def ridge(**parameters):
    return DPRidge(**{"y_bounds": BOUNDS, **parameters})


def search(estimator=None, grid=None, **parameters):
    given = {"epsilon": 2.0, **parameters}
    return DPGridSearchCV(ridge() if estimator is None else estimator, GRID if grid is None else grid, **given)


class Says:
    """A model that predicts what it was told."""

    def __init__(self, *predictions):
        self.predictions = np.array(predictions)

    def predict(self, rows):
        return np.resize(self.predictions, len(rows))


# --- what one row can move -------------------------------------------------------------------------------------------

PREDICTIONS = [-3.0, 0.5, 5.0, -1e300, 1e300, math.inf, -math.inf, math.nan]
TARGETS = [-3.0, 0.5, 5.0, -1e300, 1e300]


@pytest.mark.parametrize("bounds", [BOUNDS, (0, 1), (-1e100, 1e100), (1e-100, 2e-100)])
@pytest.mark.parametrize("name", ERRORS)
def test_one_row_moves_a_total_by_at_most_the_sensitivity(name, bounds):
    score = score_of(name, DPRidge(y_bounds=bounds))
    assert score.sensitivity == 0.5 * (bounds[1] - bounds[0]) ** ERRORS[name]
    at_most = score.sensitivity * (1 + 1e-12)
    moved = []
    for told in (*PREDICTIONS, *bounds):
        base = score.total(Says(told), X, Y)
        for target in (*TARGETS, *bounds):
            y = Y.copy()
            y[7] = target
            changed = score.total(Says(told), X, y)
            left = score.total(Says(told), np.delete(X, 7, axis=0), np.delete(y, 7))
            alone = score.total(Says(told), X[:1], [target])
            moved.append(abs(alone))
            assert abs(alone) <= at_most
            assert abs(changed - left) <= N * at_most * 1e-12 + at_most
            assert abs(changed - base) <= N * at_most * 1e-12 + 2 * at_most
    assert max(moved) == pytest.approx(score.sensitivity)  # noise is not spent on rows that there are none of


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("scoring", ERRORS)
def test_an_exchanged_row_moves_its_own_releases_alone(scoring, adjacency):
    """A row that scores moves the scores, by at most twice their sensitivity, and nothing that others trained."""
    made = search(ridge(adjacency=adjacency), scoring=scoring, random_state=5, strategy="compose")
    scores = draw_tested(root_stream(made).spawn("split"), N, made.test_size, adjacency)
    for row in (*np.flatnonzero(scores)[:3], *np.flatnonzero(~scores)[:2]):
        tables = []
        for target in (-1e9, 1e9):
            rows, y = X.copy(), Y.copy()
            rows[row], y[row] = np.sign(target), target
            tables.append((rows, y))
        one, two = replay(lambda table: clone(made).fit(*table), *tables)
        assert_all_else_is_equal(one, two)
        *trials, scored, _ = moves(one, two)
        assert len(trials) == 2
        if scores[row]:
            assert trials == [0.0, 0.0]
            assert 0.0 < scored / math.sqrt(2) <= 2.0 + 1e-9  # two scores, which are charged as two releases
        else:
            assert 0.0 < min(trials) <= max(trials) <= 2.0 + 1e-9


@pytest.mark.parametrize("name", ERRORS)
def test_the_noise_is_in_the_units_of_its_bound(name):
    found = search(scoring=name, strategy="compose").fit(X, Y)
    unit = search(ridge(y_bounds=(0, 1)), scoring=name, strategy="compose").fit(X, Y)
    assert found.score_noise_ == pytest.approx(unit.score_noise_ * 8.0 ** ERRORS[name])
    assert found.scorer_.sensitivity == 0.5 * 8.0 ** ERRORS[name]


# --- what is compared ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ERRORS)
def test_a_score_is_that_of_scikit_learn(name):
    plain = {"neg_mean_absolute_error": mean_absolute_error, "neg_mean_squared_error": mean_squared_error}[name]
    found = search(scoring=name).fit(X, Y)
    assert found.scorer_.name == name
    assert found.score(X, Y) == pytest.approx(-plain(Y, found.predict(X)))
    beyond = np.where(np.arange(N) < 9, 1e9, Y)  # moved to the bound, as in fit
    assert found.score(X, beyond) == pytest.approx(-plain(np.minimum(beyond, 5.0), found.predict(X)))


@pytest.mark.parametrize(("strategy", "scoring"), [("compose", None), ("random_stopping", "neg_mean_squared_error")])
def test_a_search_finds_the_ridge_that_predicts(strategy, scoring):
    rows = np.random.default_rng(1).uniform(-1.0, 1.0, (20_000, 3))
    y = 2.0 * rows[:, 0] - rows[:, 1] + 1.0
    accountant = PrivacyAccountant()
    terms = {"scoring": scoring, "strategy": strategy, "n_trials": 20, "epsilon": 4.0, "random_state": 0}
    found = search(ridge(accountant=accountant), **terms).fit(rows, y)
    assert found.epsilon_ <= 4.0
    assert found.best_params_ == {"alpha": "auto"}
    assert found.scorer_.name == (scoring or "neg_mean_absolute_error")
    (entry,) = accountant.history
    assert entry.parameters["scoring"] == found.scorer_.name


def test_bounds_are_found_at_the_end_of_a_pipeline():
    pipe = allocate_budget(make_pipeline(DPPCA(2, center=False), ridge()), 1.0)
    found = search(pipe, {"dpridge__alpha": ["auto", 1.0]}).fit(X, Y)
    assert found.scorer_.bound == 8.0
    drawn = DPRandomizedSearchCV(ridge(), {"alpha": [0.0, 1.0, 2.0]}, n_iter=2).fit(X, Y)
    assert drawn.scorer_.bound == 8.0


SCHEMA = {f"x{i}": (-1, 1) for i in range(3)}
REGRESSORS = {
    "ridge": (ridge(), GRID),
    "network": (DPMLPRegressor((8,), y_bounds=BOUNDS, max_iter=5), {"alpha": [0.0, 0.1]}),
    "trees": (DPRandomTreesRegressor(10, schema=SCHEMA, y_bounds=BOUNDS), {"max_depth": [2, 3]}),
    "table of a ridge": (tabular_pipeline(ridge(), schema=SCHEMA), {"vectorizer__numbers": ["auto", "bins"]}),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_is_searched_by_errors_between_its_bounds(name):
    found = search(*REGRESSORS[name], epsilon=20.0).fit(X, Y)
    assert found.scorer_ == score_of(None, ridge())
    assert -8.0 <= found.score(X, Y) <= 0.0


# --- rejections ------------------------------------------------------------------------------------------------------


def squares(model, rows, y):
    return (model.predict(rows) - y) ** 2


TWO = {"y_bounds": [(-3, 5), (0, 1)]}
REJECTED = {
    "R^2": ({}, {"scoring": "r2"}, ["got 'r2'", "variance of the targets", "'neg_mean_squared_error'"]),
    "a root of a mean": (
        {},
        {"scoring": "neg_root_mean_squared_error"},
        ["must be a score with bounded contributions"],
    ),
    "a score of classes": ({}, {"scoring": "accuracy"}, ["got 'accuracy'", "for regressors", "squared"]),
    "no bounds": ({"y_bounds": None}, {}, ["`y_bounds` must be set in a search"]),
    "bounds that are none": ({"y_bounds": (5, -3)}, {}, ["`y_bounds`", "got (5.0, -3.0)"]),
    "bounds without a width": ({"y_bounds": 4}, {"refit": False}, ["`y_bounds`", "got 4"]),
    "bounds that differ": ({}, {"param_grid": TWO}, ["`y_bounds` must be the same for all candidates"]),
    "bounds of no square": ({"y_bounds": (0, 1e-250)}, {"scoring": "neg_mean_squared_error"}, ["got 0.0"]),
}


@pytest.mark.parametrize("case", REJECTED)
def test_what_cannot_be_scored_is_rejected_in_one_line_before_a_row_is_read(case):
    parameters, given, words = REJECTED[case]
    accountant = PrivacyAccountant()
    made = search(ridge(accountant=accountant, **parameters)).set_params(**given)
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as rejection:
        made.fit(UnreadTable(N, 3), UnreadTable(N, 3))
    assert all(word in str(rejection.value) for word in words), rejection.value
    assert accountant.history == ()


def test_targets_that_one_loss_rejects_are_rejected_before_the_charge():
    accountant = PrivacyAccountant()
    model = DPMLPRegressor((3,), y_bounds=(0, 5), max_iter=1, accountant=accountant)
    counts = np.resize([0.0, 1.0, 2.0], N)
    counts[3] = -1.0
    for seed in range(4):  # whichever candidates are tried
        made = search(model, {"loss": ["squared_error", "poisson"]}, random_state=seed)
        with pytest.raises(ValueError, match="y contains negative targets"):
            made.fit(X, counts)
    assert not any(entry.event for entry in accountant.history)


def test_labels_that_one_candidate_rejects_are_rejected_before_the_charge():
    accountant = PrivacyAccountant()
    steps = [DPLogisticRegression(classes=each, max_iter=1, accountant=accountant) for each in ([0, 1, 2], [0, 1])]
    made = search(allocate_budget(make_pipeline(steps[0]), 2.0, 1e-5), {"dplogisticregression": steps})
    with pytest.raises(ValueError, match="labels that are not in classes"):
        made.fit(X, np.resize([0, 1, 2], N))
    assert not any(entry.event for entry in accountant.history)


@pytest.mark.parametrize("name", ERRORS)
def test_classifiers_are_not_compared_by_errors(name):
    made = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"alpha": [0.0, 1.0]}, scoring=name)
    with pytest.raises(ValueError, match=rf"score for classifiers, got '{name}', .*Use one of 'accuracy'"):
        made.fit(UnreadTable(N, 3), UnreadTable(N, 3))


def test_bounds_may_be_searched_by_a_score_that_does_not_need_them():
    score = PrivateScore("mse", squares, 64.0, greater_is_better=False)
    found = search(grid=TWO, scoring=score, strategy="compose").fit(X, Y)
    assert found.best_params_["y_bounds"] in TWO["y_bounds"]
