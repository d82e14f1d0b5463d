"""`cross_validate`: what fits and scores cost, who is in which fold, and what a row moves."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, recording, replay
from scipy import stats
from sklearn.pipeline import make_pipeline

import skdp.pipeline.joint_fit
from skdp import DPLogisticRegression, DPMLPClassifier, DPRidge, DPStandardScaler, PrivacyAccountant
from skdp.accounting import DiscreteLaplaceDpEvent, compose, flatten, get_epsilon
from skdp.mechanisms.streams import SecretStream
from skdp.metrics import MulticlassEvaluation, PrivateEvaluation, RegressionEvaluation
from skdp.model_selection import cross_validate
from skdp.model_selection.private_split import draw_folds, size_of_fold

FALSE_ALARM = 1e-6
N, CV = 120, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 2))
Y = (X[:, 0] > 0).astype(int)
HOUSES = np.arange(N) // 4
TERMS = {"epsilon": 4.0, "delta": 1e-5, "cv": CV}


def model(**parameters):
    given = {"classes": [0, 1], "max_iter": 4, "fit_intercept": False, "sampling_rate": 1.0, "weight_bound": 1.0}
    return DPLogisticRegression(**{**given, **parameters})


def validated(table, adjacency="zero_out", estimator=None, **given):
    """All that a cross-validation of a table of labels and weights hands out, with noise and folds of a seed."""
    y, weights = table
    if estimator is None:
        estimator = model(adjacency=with_n_public(adjacency, N) if adjacency == "add_remove" else None)
    terms = {**TERMS, "return_estimator": True, "random_state": 0, **given}
    return SimpleNamespace(**cross_validate(estimator, X, y, sample_weight=weights, **terms))


@pytest.fixture(scope="module")
def found():
    accountant = PrivacyAccountant(5.0, 1e-4)
    with recording([]) as seen:
        scores = cross_validate(model(accountant=accountant), X, Y, return_estimator=True, **TERMS)
    return SimpleNamespace(scores=scores, accountant=accountant, releases=seen)


# --- the cost ---


def test_all_fits_but_one_and_one_table_are_charged(found):
    event = found.scores["evaluation"].privacy_event_
    fits = [each.privacy_event_ for each in found.scores["estimator"]]
    counted = DiscreteLaplaceDpEvent(0.8, 1)
    assert event == compose([*fits[1:], counted])
    assert fits[0] == fits[1] == fits[2]
    assert found.scores["evaluation"].epsilon_ == get_epsilon(event, 1e-5)
    assert 3.99 < found.scores["evaluation"].epsilon_ <= 4.0
    (charge,) = found.accountant.history
    assert charge.event == event
    assert charge.label == "cross_validate"
    assert charge.parameters["cv"] == CV


def test_what_ran_is_what_was_priced(found):
    """Each release of each fit, and one table of counts, which is the last."""
    n_releases = sum(flatten(found.scores["estimator"][0].privacy_event_).values())
    assert len(found.releases) == CV * n_releases + 1
    *fits, table = found.releases
    assert {each.order for each in fits} == {2}
    assert table.order == 1
    assert table.exact.shape[:2] == (CV, 2)
    assert table.exact.sum() == N


def test_folds_of_unequal_size_are_priced_at_the_worst():
    """The fit to the smaller part has the larger sampling rate: rows of the other fold pay more."""
    rows, terms = slice(0, 11), {**TERMS, "cv": 2, "return_estimator": True}
    scores = cross_validate(model(sampling_rate=None, lot_size=3, max_iter=1), X[rows], Y[rows], **terms)
    fits = [each.privacy_event_ for each in scores["estimator"]]
    paid = [get_epsilon(compose([fit, DiscreteLaplaceDpEvent(0.8, 1)]), 1e-5) for fit in fits]
    assert paid[1] < 0.995 * paid[0]
    assert paid[0] <= scores["evaluation"].epsilon_ * (1 + 1e-9)
    assert 3.99 < scores["evaluation"].epsilon_ <= 4.0


# --- what a row moves ---


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_a_row_moves_the_fits_that_read_it_and_one_count(adjacency):
    """Releases of the fit that leaves the row out do not move at all, whatever the row is."""
    weights, muted = np.ones(N), np.ones(N)
    muted[7] = 0.0
    other = Y.copy()
    other[7] = 1 - other[7]
    neighbor = (Y, muted) if adjacency == "zero_out" else (other, weights)
    one, two = replay(lambda table: validated(table, adjacency), (Y, weights), neighbor)
    most = 1.0 if adjacency == "zero_out" else 2.0
    moved = moves(one, two)
    assert max(moved) <= most * (1 + 1e-9)
    by_fit = np.reshape(moved[:-1], (CV, -1))
    assert sorted((by_fit.max(1) > 0).tolist()) == [False, True, True]
    assert moved[-1] == pytest.approx(most)
    assert_all_else_is_equal(one, two)


SEVERAL = {
    "classes": (model(classes=[2, 0, 1]), np.digitize(X[:, 0], [-0.3, 0.3]), {"one_vs_rest": True}, 6),
    "labels": (
        DPMLPClassifier(hidden_layer_sizes=(2,), max_iter=1, sampling_rate=1.0, weight_bound=1.0),
        (X > 0).astype(int),
        {},
        2,
    ),
}


@pytest.mark.parametrize("name", list(SEVERAL))
def test_with_several_tables_a_row_is_in_the_part_of_its_fold_alone(name):
    """As often as one evaluation counts it, and moves that part by what is charged."""
    estimator, labels, given, n_cells = SEVERAL[name]
    muted = np.ones(N)
    muted[7] = 0.0
    one, two = replay(lambda weights: validated((labels, weights), estimator=estimator, **given), np.ones(N), muted)
    tables = [np.asarray(each.releases[-1].exact) / 2**20 for each in (one, two)]
    assert tables[0].sum() == n_cells * N
    by_fold = (tables[0] - tables[1]).reshape(CV, -1).sum(1)
    assert sorted(by_fold.tolist()) == [0.0, 0.0, n_cells]
    moved = moves(one, two)
    assert max(moved) <= 1 + 1e-9
    assert moved[-1] == pytest.approx(1.0)
    assert_all_else_is_equal(one, two)


def test_labels_move_nobody_between_folds():
    exact = []
    for labels in (Y, np.sort(Y), np.zeros(N, int)):
        with recording([]) as seen:
            validated((labels, np.ones(N)))
        exact.append(seen[-1].exact.sum((1, 2)))
    np.testing.assert_array_equal(exact[0], exact[1])
    np.testing.assert_array_equal(exact[0], exact[2])


def test_a_row_is_scored_by_the_model_that_has_not_seen_it(monkeypatch):
    """Each model is handed the rows of its own fold alone to score, and fitted to all others."""
    trained, scored = [], []
    run, scores_of = skdp.model_selection.candidates.FitPlan.run, skdp.metrics.scored_rows.score_of_two

    def noted(plan, scale, seed, part):
        trained.append({tuple(row) for row in part.X})
        return run(plan, scale, seed, part)

    def scoring(estimator, rows):
        scored.append({tuple(row) for row in rows})
        return scores_of(estimator, rows)

    monkeypatch.setattr("skdp.model_selection.candidates.FitPlan.run", noted)
    monkeypatch.setattr("skdp.metrics.histogram_evaluation.score_of_two", scoring)
    cross_validate(model(), X, Y, **TERMS)
    everyone = {tuple(row) for row in X}
    assert [everyone - each for each in trained] == scored
    assert sum(map(len, scored)) == N


# --- folds ---


@pytest.mark.parametrize("n", [10, 11, 120])
def test_folds_by_number_are_even_and_in_no_order(n):
    folds = draw_folds(SecretStream.from_random_state(1, "test"), n, 3, "zero_out")
    assert np.bincount(folds).tolist() == [size_of_fold(n, 3, j) for j in range(3)]
    assert max(np.bincount(folds)) - min(np.bincount(folds)) <= 1
    assert (np.diff(folds) < 0).any()
    assert not np.array_equal(folds, draw_folds(SecretStream.from_random_state(2, "test"), n, 3, "zero_out"))


def test_under_add_remove_each_row_has_a_coin():
    """Sizes of folds vary as they do for independent coins, and none of them depends on how many rows there are."""
    stream = [SecretStream.from_random_state(seed, "test") for seed in range(40)]
    folds = [draw_folds(each, 1_000, 4, "add_remove") for each in stream]
    counts = np.array([np.bincount(each, minlength=4) for each in folds])
    assert stats.chisquare(counts.sum(0)).pvalue > FALSE_ALARM
    spread = ((counts - 250.0) ** 2 / 250.0).sum()
    assert stats.chi2(3 * 40).sf(spread) > FALSE_ALARM
    assert stats.chi2(3 * 40).cdf(spread) > FALSE_ALARM
    fewer = draw_folds(SecretStream.from_random_state(0, "test"), 999, 4, "add_remove")
    np.testing.assert_array_equal(fewer, folds[0][:999])


def test_a_unit_is_in_one_fold_and_counts_once():
    sizes = np.resize([3, 5, 1, 7], 30)  # shares of a row in the count of its unit differ
    with recording([]) as seen:
        groups = np.random.default_rng(1).permutation(np.repeat(np.arange(30), sizes))
        found = cross_validate(model(), X, Y, groups=groups, return_estimator=True, random_state=0, **TERMS)
    table = seen[-1].exact
    assert table.sum() == pytest.approx(2**20 * 30, abs=N)
    assert found["evaluation"].privacy_unit_ == "group"
    assert {each.privacy_unit_ for each in found["estimator"]} == {"group"}
    whole = table.sum((1, 2)) / 2**20
    np.testing.assert_allclose(whole, np.rint(whole), atol=1e-4)
    assert whole.max() - whole.min() < 1.5


def test_one_unit_moves_the_table_by_one_row():
    def fit(weights):
        terms = {**TERMS, "return_estimator": True, "random_state": 0}
        return SimpleNamespace(**cross_validate(model(), X, Y, groups=HOUSES, sample_weight=weights, **terms))

    one, two = replay(fit, np.ones(N), np.where(HOUSES == 5, 0.0, 1.0))
    moved = moves(one, two)
    assert max(moved) <= 1 + 1e-9
    assert sorted((np.reshape(moved[:-1], (CV, -1)).max(1) > 0).tolist()) == [False, True, True]
    assert_all_else_is_equal(one, two)


# --- what comes back ---


def test_scores_have_the_shape_of_scikit_learn(found):
    scores = found.scores
    assert isinstance(scores["evaluation"], PrivateEvaluation)
    assert {name: each.shape for name, each in scores.items() if name.startswith("test_")} == {
        f"test_{name}": (CV,)
        for name in ("score", "roc_auc", "average_precision", "accuracy", "brier_score", "log_loss", "positive_rate")
    }
    np.testing.assert_array_equal(scores["test_score"], scores["test_accuracy"])
    assert [type(each) for each in scores["estimator"]] == [DPLogisticRegression] * CV
    assert scores["estimator"][0].accountant is found.accountant
    assert not [name for name in scores if "time" in name]
    assert "estimator" not in cross_validate(model(), X, Y, **TERMS)
    assert "Epsilon" in str(skdp.privacy_report(scores["evaluation"]))


def test_more_classes_and_numbers():
    labels = np.digitize(X[:, 0], [-0.3, 0.3])
    found = cross_validate(model(classes=[0, 1, 2]), X, labels, **TERMS)
    assert isinstance(found["evaluation"], MulticlassEvaluation)
    np.testing.assert_array_equal(found["test_score"], found["test_accuracy"])
    targets = DPRidge(y_bounds=(-1.0, 1.0), fit_intercept=False)
    found = cross_validate(targets, X, X[:, 0], **TERMS)
    assert isinstance(found["evaluation"], RegressionEvaluation)
    np.testing.assert_array_equal(found["test_score"], found["test_r2"])


def test_cross_validate_takes_pipeline_without_budget():
    pipeline = make_pipeline(DPStandardScaler(bounds=(-1, 1)), model())
    assert cross_validate(pipeline, X, Y, epsilon=8.0, cv=2)["evaluation"].delta_ == 1e-5


def test_a_frame_with_a_column_of_units():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(house=HOUSES)
    accountant = PrivacyAccountant(5.0, 1e-4, unit="house")
    cross_validate(model(accountant=accountant), frame, Y, groups="house", **TERMS)
    (charge,) = accountant.history
    assert charge.parameters["groups"] == "house"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cv": 1}, "`cv` must be an integer of at least 2, such as 5"),
        ({"cv": N + 1}, "must be at most the number of rows"),
        ({"score_fraction": 1.0}, "score_fraction"),
        ({"y": np.full(N, 7)}, "classes"),
        ({"y": np.zeros((N, 2))}, "one label"),
        ({"y": np.zeros((N, 2)), "estimator": DPRidge(y_bounds=(0, 1))}, "one target at a time"),
        ({"one_vs_rest": True}, "must be False for binary"),
        ({"X": np.full((N, 2), np.nan)}, "NaN"),
        ({"groups": np.zeros(3)}, "groups"),
        ({"estimator": DPRidge()}, "`y_bounds` must be set in a cross-validation"),
        ({"estimator": object}, "estimator"),
    ],
)
def test_what_is_unusable_is_rejected_in_one_line_and_not_charged(change, message):
    accountant = PrivacyAccountant(10.0, 1e-4)
    given = {"estimator": model(accountant=accountant), "X": X, "y": Y, **TERMS, **change}
    with pytest.raises((ValueError, TypeError), match=message) as rejected:
        cross_validate(given.pop("estimator"), given.pop("X"), given.pop("y"), **given)
    assert "\n" not in str(rejected.value)
    assert accountant.get_epsilon(1e-4) == 0.0
