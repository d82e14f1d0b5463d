"""Units of several rows in searches, displays and compositions."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from replay import assert_all_else_is_equal, moves, replay

from skdp import DPGridSearchCV, DPLogisticRegression, DPRandomizedSearchCV, PrivacyAccountant
from skdp._checks.units import Units
from skdp.model_selection import PrivateScore

N_OTHERS, GRID = 150, {"alpha": [0.0, 0.1]}
silent = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # a replay needs a seed


def model(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 8, "weight_bound": 1.0, **parameters})


def search(estimator=None, **parameters):
    given = {"epsilon": 1.0, "delta": 1e-4, "strategy": "compose", **parameters}
    return DPGridSearchCV(model() if estimator is None else estimator, GRID, **given)


def table(size, *, opposite=False):
    """Rows of other units, and then `size` rows of one unit, which are copies or of both classes."""
    rng = np.random.default_rng(size)
    X, y = rng.uniform(-1, 1, (N_OTHERS + size, 3)), rng.integers(0, 2, N_OTHERS + size)
    X[N_OTHERS:], y[N_OTHERS:] = rng.uniform(0.5, 1, 3), np.arange(size) % 2 if opposite else 1
    labels = np.concatenate([rng.integers(0, 90, N_OTHERS), np.full(size, 99)])
    return X, y, np.ones(len(X)), labels


def without_the_unit(X, y, weights, labels):
    """The same with a null unit in its place: one row that counts for nothing."""
    kept = slice(0, N_OTHERS + 1)
    weights = weights[kept].copy()
    weights[-1] = 0.0
    return X[kept], y[kept], weights, labels[kept]


# --- searches ---


@pytest.mark.parametrize("size", [1, 2, 10, 1000])
@pytest.mark.parametrize("opposite", [False, True])
def test_a_unit_trains_or_scores_and_moves_releases_by_their_sensitivity(size, opposite):
    given, parts = table(size, opposite=opposite), set()
    for seed in range(6):
        made = search(random_state=seed)
        one, other = replay(
            lambda rows, made=made: made.fit(*rows[:2], sample_weight=rows[2], groups=rows[3]),
            given,
            without_the_unit(*given),
        )
        found = moves(one, other)
        (at,) = [i for i, each in enumerate(one.releases) if each.exact.shape == (2,)]  # the scores of both candidates
        assert max(found[:at] + found[at + 1 :]) <= 1.0 + 1e-6
        assert np.abs(one.releases[at].exact - other.releases[at].exact).max() <= 0.5 + 1e-12
        trains, scores = max(found[:at]) > 1e-9, found[at] > 1e-9
        assert not (trains and scores)
        parts.add("trains" if trains else "scores" if scores else "ties")
        assert_all_else_is_equal(one, other)
    assert parts == {"trains", "ties" if opposite and size > 1 else "scores"}


@silent
@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
@pytest.mark.parametrize("refit", [True, False])
def test_the_price_is_that_of_as_many_rows(adjacency, refit):
    X, y, _, _ = table(50)
    twice = np.repeat(np.arange(len(X)), 2)
    by_row = search(model(adjacency=adjacency, n_samples_public=200), refit=refit).fit(X, y)
    by_unit = search(model(adjacency=adjacency, n_groups_public=200), refit=refit).fit(X[twice], y[twice], groups=twice)
    assert by_unit.privacy_event_ == by_row.privacy_event_
    assert by_unit.score_noise_ == by_row.score_noise_
    assert (by_row.privacy_unit_, by_unit.privacy_unit_, by_unit.best_estimator_.privacy_unit_) == (
        "row", "group", "group",
    )  # fmt: skip


@silent
@pytest.mark.parametrize("strategy", ["compose", "random_stopping"])
def test_units_of_one_row_give_the_search_of_rows(strategy):
    X, y, _, _ = table(50)
    found = [search(strategy=strategy, random_state=1).fit(X, y, groups=g) for g in (None, np.arange(len(X)))]
    np.testing.assert_allclose(*(each.cv_results_["mean_test_score"] for each in found), rtol=1e-9)
    np.testing.assert_allclose(*(each.predict_proba(X) for each in found), rtol=1e-9)


@silent
def test_a_score_is_the_mean_over_units():
    """The divisor is their number: with that of rows a perfect score would be nearer to the middle."""
    X, y, _, _ = table(50)
    score = PrivateScore("right", lambda model, X, y: np.ones(len(X)), 1.0)
    thrice = np.repeat(np.arange(len(X)), 3)
    found = search(random_state=1, epsilon=1e3, scoring=score).fit(X[thrice], y[thrice], groups=thrice)
    assert found.best_score_ == pytest.approx(1.0, abs=6 * found.score_noise_)
    assert found.score_noise_ < 0.01


def test_what_the_rows_of_a_unit_add_to_a_score_is_cut_off_together():
    score = PrivateScore("given", lambda model, X, y: X[:, 0], 1.0)
    X, y = np.array([[1.0], [1.0], [0.0], [1.0], [0.0], [1.0], [0.25]]), np.zeros(7)
    units = Units(np.array([0, 0, 0, 1, 1, 2, 3]), 4)
    # The room for rounding is 1.5e-11 of a squared reach of 1.5, and a unit that is cut has the norm 0.5.
    assert score.total(None, X, y, units=units) == pytest.approx(0.5 + 0.0 + 0.5 - 0.25, abs=1e-10)
    many = Units(np.zeros(1000, int), 1)
    assert score.total(None, np.ones((1000, 1)), np.zeros(1000), units=many) == pytest.approx(0.5, abs=1e-9)
    halves = np.full(1000, 0.5)
    assert score.total(None, np.ones((1000, 1)), np.zeros(1000), halves, many) <= 0.5


def test_a_unit_whose_rows_cannot_be_predicted_is_cut_off_together():
    def refusing(model, X, y):
        if np.any(X[:, 0] > 0):
            raise ValueError("a row")
        return np.ones(len(X))

    X, units = np.array([[1.0], [0.0]] * 4), Units(np.array([0, 1] * 4), 2)
    assert PrivateScore("bad", refusing, 1.0).total_of_all(None, X, np.zeros(8), units=units) == pytest.approx(0.0)
    alone = Units(np.zeros(4, int), 1)
    assert PrivateScore("bad", refusing, 1.0).total_of_all(None, X[::2], np.zeros(4), units=alone) >= -0.5


@pytest.mark.parametrize("kind", ["array", "series", "column"])
def test_labels_may_be_a_column_of_the_frame(kind):
    X, y, _, labels = table(20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    groups = {"array": labels, "series": pd.Series(labels, name="home"), "column": "home"}[kind]
    ledger = PrivacyAccountant(unit="household")
    rows = frame.assign(home=labels.astype(str)) if kind == "column" else frame
    found = search(model(accountant=ledger)).fit(rows, y, groups=groups)
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert found.predict(frame).shape == y.shape
    assert [charge.unit for charge in ledger.history] == ["household"]
    assert ledger.history[0].parameters.get("groups") == (None if kind == "array" else "home")
    assert json.loads(found.privacy_report().to_json())["guarantee"]["groups"] == (None if kind == "array" else "home")


def test_bad_labels_are_refused_before_the_charge_and_recorded():
    X, y, _, labels = table(20)
    ledger = PrivacyAccountant(5.0, 1e-4, unit="household")
    with pytest.raises(ValueError, match=r"groups has shape"):
        search(model(accountant=ledger)).fit(X, y, groups=labels[:-1])
    with pytest.raises(ValueError, match=r"unit='row' cannot be charged"):
        search(model(accountant=ledger)).fit(X, y)
    assert [(entry.kind, entry.label) for entry in ledger.entries] == [("refusal", "DPGridSearchCV")]
    with pytest.raises(ValueError, match=r"n_groups_public=None with adjacency='add_remove'"):
        search(model(adjacency="add_remove", n_samples_public=100)).fit(X, y, groups=labels)


def test_tries_in_processes_and_pickled_plans_keep_the_unit():
    X, y, _, labels = table(20)
    found = DPRandomizedSearchCV(model(), GRID, n_iter=2, strategy="compose", delta=1e-4, n_jobs=2)
    found.fit(X, y, groups=labels)
    again = pickle.loads(pickle.dumps(found))
    for each in (found, again):
        assert (each.privacy_unit_, each.best_estimator_.privacy_unit_) == ("group", "group")
        assert {release.unit for release in each._fitted_releases} == {"group"}
