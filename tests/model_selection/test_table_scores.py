"""Scores of searches that follow from a table: what a row moves, what is released, and what is rejected."""

import numpy as np
import pytest
from replay import assert_all_else_is_equal, moves, recording, replay
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, roc_auc_score

from skdp import DPGridSearchCV, DPLogisticRegression, DPRidge, PrivacyAccountant
from skdp._checks.groups import read_units
from skdp.model_selection import make_private_scorer

N = 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 2))
Y = (X[:, 0] + RNG.normal(0, 0.3, N) > 0).astype(int)
GRID = {"max_grad_norm": [0.1, 1.0]}


def model(**parameters):
    given = {"classes": [0, 1], "max_iter": 4, "fit_intercept": False, "sampling_rate": 1.0, "weight_bound": 1.0}
    return DPLogisticRegression(**{**given, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return LogisticRegression().fit(X, Y)


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("roc_auc", roc_auc_score),
        ("average_precision", average_precision_score),
        ("f1", lambda y, s: f1_score(y, s >= 0.5)),
        ("neg_brier_score", lambda y, s: -brier_score_loss(y, s)),
    ],
)
def test_without_noise_a_score_is_that_of_the_rows(fitted, name, exact):
    score = make_private_scorer(name, n_bins=64)
    assert score.name == name
    chances = fitted.predict_proba(X)[:, 1]
    assert score.value(score.total(fitted, X, Y), N) == pytest.approx(exact(Y, chances), abs=0.01)


def test_a_row_moves_one_count(fitted):
    score = make_private_scorer("roc_auc")
    table = score.total(fitted, X, Y, np.ones(N))
    assert table.sum() == N
    for row in range(0, N, 17):
        muted, other = np.ones(N), Y.copy()
        muted[row], other[row] = 0.0, 1 - Y[row]
        assert np.linalg.norm(table - score.total(fitted, X, Y, muted)) == 1.0 == score.sensitivity
        assert np.linalg.norm(table - score.total(fitted, X, other, np.ones(N))) == np.sqrt(2.0)


def test_a_unit_moves_as_much_as_a_row(fitted):
    score, groups = make_private_scorer("roc_auc"), np.arange(N) // 6
    units = read_units(groups, N)
    for shares in (np.ones(N), np.random.default_rng(1).uniform(size=N)):
        table = score.total(fitted, X, Y, shares, units)
        for unit in range(0, 50, 7):
            muted = np.where(groups == unit, 0.0, shares)
            moved = table - score.total(fitted, X, Y, muted, units)
            assert 0 < np.abs(moved).sum() <= 1.0


def test_a_search_releases_a_table_for_each_try_at_the_price_of_a_score():
    accountant = PrivacyAccountant(3.0, 1e-4)
    with recording([]) as seen:
        search = DPGridSearchCV(
            model(accountant=accountant), GRID, epsilon=2.0, delta=1e-5, strategy="compose",
            scoring=make_private_scorer("roc_auc", n_bins=8),
        ).fit(X, Y)  # fmt: skip
    (tables,) = [each for each in seen if each.exact.shape == (2, 2, 8)]
    assert tables.sensitivity == 1.0
    assert tables.exact.sum() == 2 * round(0.2 * N)
    assert 1.99 < search.epsilon_ <= 2.0
    scored = tables.noisy.std()
    assert scored > 0
    assert search.cv_results_["mean_test_score"].shape == (2,)
    assert np.isfinite(search.best_score_)
    assert search.scorer_.name == accountant.history[0].parameters["scoring"] == "roc_auc"
    assert search.score(X, Y) > 0.7
    plain = DPGridSearchCV(model(), GRID, epsilon=2.0, delta=1e-5, strategy="compose").fit(X, Y)
    assert search.privacy_event_ == plain.privacy_event_


def test_a_row_moves_the_releases_of_a_search_by_their_sensitivity():
    def fit(weights):
        search = DPGridSearchCV(
            model(), GRID, epsilon=2.0, delta=1e-5, strategy="compose", random_state=0,
            scoring=make_private_scorer("roc_auc", n_bins=8),
        )  # fmt: skip
        return search.fit(X, Y, sample_weight=weights)

    scored = []
    for row in range(12):  # of these, some train and some score
        muted = np.ones(N)
        muted[row] = 0.0
        one, two = replay(fit, np.ones(N), muted)
        moved = moves(one, two)
        at = next(i for i, each in enumerate(one.releases) if each.exact.shape == (2, 2, 8))
        assert max(np.delete(moved, at)) <= 1 + 1e-9
        assert moved[at] <= np.sqrt(2) + 1e-9  # of two trials, which are charged as two
        scored.append(moved[at] > 1.0)
        assert_all_else_is_equal(one, two)
        if len(set(scored)) == 2:
            break
    assert set(scored) == {True, False}


def first_class(tables):
    return tables[:, 0].sum(-1) - tables[:, 1].sum(-1)


def test_a_score_of_your_own(fitted):
    score = make_private_scorer(first_class)
    assert score.name == "first_class"
    assert score.value(score.total(fitted, X, Y), N) == (Y == 0).sum() - Y.sum()
    assert make_private_scorer("f1", name="mine").name == "mine"


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [(DPRidge(y_bounds=(0, 1)), Y, "for regressors"), (model(classes=[0, 1, 2]), Y, "a binary score")],
)
def test_what_has_not_two_classes_is_rejected_and_not_charged(estimator, y, message):
    accountant = PrivacyAccountant(3.0, 1e-4)
    estimator.set_params(accountant=accountant)
    search = DPGridSearchCV(estimator, {"fit_intercept": [True, False]}, scoring=make_private_scorer("roc_auc"))
    with pytest.raises(ValueError, match=message):
        search.fit(X, y)
    assert not accountant.history


@pytest.mark.parametrize(("given", "message"), [({"metric": "auc"}, "roc_auc"), ({"n_bins": 1}, "n_bins")])
def test_parameters_are_rejected_in_one_line(given, message):
    with pytest.raises(ValueError, match=message) as rejected:
        make_private_scorer(**{"metric": "roc_auc", **given})
    assert "\n" not in str(rejected.value)
