"""Private search: what it costs, what it hides, how it chooses; and what a plain search is told."""

import math
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, replay
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from unread import UnreadTable

import skdp.model_selection.candidates
import skdp.model_selection.search
import skdp.model_selection.whole_fit
from skdp import (
    DPPCA,
    AddRemove,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomizedSearchCV,
    PrivacyAccountant,
    PrivacyLeakWarning,
    allocate_budget,
    config_context,
)
from skdp._dpsgd.solver import DescentSolver
from skdp.accounting import GaussianDpEvent, NumberOfTrials, get_epsilon
from skdp.base import PrivateEstimator, StepPlan, begin
from skdp.mechanisms.streams import SecretStream
from skdp.model_selection import SCORES, PrivateScore
from skdp.model_selection.private_split import draw_tested
from skdp.pipeline import PrivatePipeline

FALSE_ALARM = 1e-6
STRATEGIES = ("random_stopping", "compose")
GRID = {"max_grad_norm": [0.1, 0.5, 2.0], "alpha": [0.0, 0.1]}
N = 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(N, 3))
Y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


def model(**parameters):
    return DPLogisticRegression(
        **{"classes": [0, 1], "max_iter": 8, "fit_intercept": False, "delta": 1e-4, **parameters}
    )


def search(estimator=None, grid=None, **parameters):
    given = {"epsilon": 1.0, "delta": 1e-4, **parameters}
    return DPGridSearchCV(model() if estimator is None else estimator, GRID if grid is None else grid, **given)


def pipeline(**parameters):
    steps = [("pca", DPPCA(2, center=False, **parameters)), ("model", model(**parameters))]
    return Pipeline(steps)


# --- the cost --------------------------------------------------------------------------------------------------------


UNEQUAL = {"sampling_rate": [0.3, 1.0]}  # of which all have the privacy cost of the worst


@pytest.mark.parametrize(
    ("adjacency", "refit", "grid"),
    [("zero_out", False, UNEQUAL), ("add_remove", True, GRID), ("replace_one", True, GRID)],
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_whole_costs_the_budget(strategy, adjacency, refit, grid):
    estimator = model(adjacency=with_n_public(adjacency, N + 20))
    found = search(estimator, grid, strategy=strategy, refit=refit).fit(X, Y)
    assert (found.adjacency_, found.delta_) == (adjacency, 1e-4)
    assert found.epsilon_ == get_epsilon(found.privacy_event_, 1e-4, adjacency=adjacency)
    assert 0.999 <= found.epsilon_ <= 1.0
    assert found.best_estimator_.adjacency == with_n_public(adjacency, N + 20)


def releases_in_order(event):
    """Basic releases that an event is made of, one after the other."""
    if hasattr(event, "events"):
        return [release for part in event.events for release in releases_in_order(part)]
    return releases_in_order(event.event) * event.count if hasattr(event, "count") else [event]


def test_what_ran_is_what_was_priced(monkeypatch, released):
    """Trials, one score a trial, and the refit: with the noise of the event, so many times."""
    monkeypatch.setattr(NumberOfTrials, "draw", lambda self, words: 3)
    found = search().fit(X, Y)
    select, refit = found.privacy_event_.events
    *trained, scored = releases_in_order(select.event)
    assert [each.event for _, each in released] == trained * 3 + [scored] + releases_in_order(refit)
    assert released[3 * len(trained)][0].shape == (3,)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_grid_of_one_costs_one_fit(strategy, released):
    accountant = PrivacyAccountant()
    found = search(model(accountant=accountant), {"alpha": [0.1]}, strategy=strategy).fit(X, Y)
    assert found.privacy_event_ == model(epsilon=1.0, alpha=0.1).fit(X, Y).privacy_event_
    assert len(released) == 2 * len(releases_in_order(found.privacy_event_))
    assert (found.best_params_, found.best_index_) == ({"alpha": 0.1}, 0)
    assert math.isnan(found.best_score_)
    assert len(accountant.history) == 1


# --- the accountant ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_accountant_is_charged_once(strategy):
    accountant = PrivacyAccountant(1.0, 1e-4)
    found = search(model(accountant=accountant), strategy=strategy).fit(X, Y)
    (charge,) = accountant.history
    assert charge.event == found.privacy_event_
    assert charge.label == "DPGridSearchCV"
    assert accountant.get_epsilon() == pytest.approx(found.epsilon_, rel=1e-9)
    assert found.best_estimator_.accountant is accountant
    assert found.best_estimator_.privacy_event_ == found.privacy_event_
    assert found.best_estimator_.epsilon_ == found.epsilon_


def test_the_winner_goes_on_paying():
    """`partial_fit` of the winner is on the ledger, and on top of the search."""
    accountant = PrivacyAccountant()
    found = search(model(accountant=accountant)).fit(X, Y)
    searched = found.epsilon_
    best = found.best_estimator_.partial_fit(X, Y)
    assert len(accountant.history) == 2
    assert found.epsilon_ == best.epsilon_ > 1.2 * searched
    assert found.privacy_event_ == best.privacy_event_ == accountant.event


# --- one row changed --------------------------------------------------------------------------------------------------


def replayed(made, other):
    """The moves of all releases between (X, Y, weights of 1) and a neighbor, and where the scores are."""
    first, second = replay(
        lambda rows: clone(made).fit(rows[0], rows[1], sample_weight=rows[2]), (X, Y, np.ones(N)), other
    )
    assert_all_else_is_equal(first, second)
    at = len(first.releases) - 1 - (8 if made.refit else 0)  # after the trials, before the steps of the refit
    found, one, two = moves(first, second), first.releases[at], second.releases[at]
    found[at] = np.abs(one.exact - two.exact).max() / one.sensitivity  # each score has a privacy cost of its own
    return np.array(found), at


def part_of(made, n=N):
    """Rows that score, for the seed of the search."""
    stream = SecretStream.from_random_state(made.random_state, type(made).__name__).spawn("split")
    return draw_tested(stream, n, made.test_size, made.estimator.adjacency)


def weighted(**parameters):
    return model(data_norm=math.sqrt(3), weight_bound=1.0, **parameters)


@pytest.mark.parametrize(("strategy", "refit"), [("random_stopping", True), ("compose", False)])
@pytest.mark.parametrize("scores", [True, False])
def test_a_muted_row_moves_its_own_releases_by_their_sensitivity(strategy, scores, refit):
    made = search(weighted(), strategy=strategy, random_state=5, refit=refit)
    muted = np.arange(N) != np.flatnonzero(part_of(made) == scores)[3]
    found, at = replayed(made, (X, Y, muted.astype(float)))
    assert found.max() <= 1 + 1e-6
    assert (found[at] > 0) == scores
    assert (found[:at].max() > 0) != scores  # it trains or it scores
    assert not refit or found[at + 1 :].max() > 0


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss"])
def test_an_exchanged_row_moves_releases_by_twice_their_sensitivity(scoring):
    made = search(weighted(adjacency="replace_one"), scoring=scoring, random_state=5)
    largest = 0.0
    for row in np.flatnonzero(part_of(made))[:3]:
        other = X.copy(), Y.copy(), np.ones(N)
        other[0][row], other[1][row] = 2 * X[row], 1 - Y[row]
        found, at = replayed(made, other)
        assert found.max() <= 2 + 1e-6
        assert found[:at].max() == 0
        largest = max(largest, found[at])
    assert largest == 2.0 or scoring == "neg_log_loss"  # an exchange reaches what it is charged at


def test_a_row_that_leaves_moves_releases_by_their_sensitivity():
    """Under add_remove: the last row, so that the coins of the others are theirs still."""
    estimator = weighted(adjacency=AddRemove(N))
    for seed in range(2):
        found, at = replayed(search(estimator, random_state=seed), (X[:-1], Y[:-1], np.ones(N - 1)))
        assert found.max() <= 1 + 1e-6
        assert (found[at] > 0) != (found[:at].max() > 0)


def test_labels_move_nobody(monkeypatch):
    """All labels turned round: the same rows train and the same rows score."""
    seen = []
    learn = DescentSolver.train
    monkeypatch.setattr(DescentSolver, "train", lambda *given: seen.append(given[2]) or learn(*given))
    for labels in (Y, 1 - Y):
        search(random_state=1).fit(X, labels)
    half = len(seen) // 2
    assert half > 1
    for one, other in zip(seen[:half], seen[half:], strict=True):
        np.testing.assert_array_equal(one, other)


# --- the score --------------------------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_predicted_counts_as_the_worst():
    """An error would tell of it for nothing, after the charge."""

    class Choosy:
        def predict(self, rows):
            if np.any(np.asarray(rows)[:, 0] > 0.9):
                raise ValueError("a long row")
            return np.ones(len(rows), int)

    hits, losses = SCORES["accuracy"], PrivateScore("losses", SCORES["accuracy"].contributions, 1.0, False)
    rejected = int((X[:, 0] > 0.9).sum())
    assert 3 < rejected < 60
    right = int(((X[:, 0] <= 0.9) & (Y == 1)).sum())
    for rows in (X, pd.DataFrame(X)):
        assert hits.total_of_all(Choosy(), rows, Y) == right - N / 2
        assert losses.total_of_all(Choosy(), rows, Y) == right + rejected - N / 2
    rounding = PrivateScore("rounding", lambda model, X, y: (model.predict(X) * len(y) == N).astype(float), 1.0)
    assert rounding.total_of_all(Choosy(), X, Y) == N - rejected - N / 2  # each other row as in a call for all rows
    with pytest.raises(TypeError, match="one number per row"):
        PrivateScore("bad", lambda *given: np.ones(3), 1.0).total_of_all(Choosy(), X, Y)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_contributions_of_a_row_are_within_the_bound(name):
    score, fitted = SCORES[name], model(epsilon=50.0).fit(X, Y)
    found = score.contributions(fitted, 100 * X, Y)
    assert found.min() >= 0
    assert found.max() <= score.bound
    others = score.contributions(fitted, 100 * X, 1 - Y)  # either may be all 0, where each row is predicted rightly
    assert max(found.max(), others.max()) > 0.5 * score.bound
    alone = [score.total(fitted, X[i : i + 1], Y[i : i + 1]) for i in range(N)]
    assert np.abs(alone).max() <= score.sensitivity
    assert score.total(fitted, X, Y) == pytest.approx(sum(alone))


def giving(*contributions, bound=2.0, **options):
    return PrivateScore("wild", lambda estimator, X, y: contributions, bound, **options)


def test_contributions_outside_the_bound_are_cut_off():
    wild = giving(-1.0, 9.0, 1e300, -0.5)
    assert wild.total(None, np.zeros((4, 1)), np.zeros(4)) == -1.0 + 1.0 + 1.0 - 1.0
    assert giving(-1e300).total(None, np.zeros((1, 1)), np.zeros(1)) == -1.0
    assert wild.total(None, np.zeros((0, 1)), np.zeros(0)) == 0.0
    with pytest.raises(ValueError, match=r"score 'wild' must return one number per row, got shape \(4,\)"):
        wild.total(None, np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="`bound` must be the largest contribution of a row, above 0"):
        PrivateScore("none", len, 0)


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf, 10**400], ids=repr)
@pytest.mark.parametrize("greater_is_better", [True, False])
def test_what_is_no_finite_number_counts_as_the_worst(greater_is_better, lost):
    """A loss of -inf and a gain of inf too; the row still moves the total by no more than the sensitivity."""
    score = giving(lost, greater_is_better=greater_is_better)
    total = score.total(None, np.zeros((1, 1)), np.zeros(1))
    assert total == (-score.sensitivity if greater_is_better else score.sensitivity)
    assert score.value(total, 1) == (0.0 if greater_is_better else -2.0)


@pytest.mark.parametrize(
    "contributions",
    [
        np.full(3, 424242j),
        ["Alice Smith", 1.0, 2.0],
        [["Alice Smith"], [], [1]],
        np.full(3, "2024-02-29", "datetime64[D]"),
        424242.125,
    ],
    ids=repr,
)
def test_contributions_of_another_kind_are_rejected_in_one_line_without_a_value(contributions):
    score = PrivateScore("wild", lambda estimator, X, y: contributions, 2.0)
    with pytest.raises(ValueError) as caught:
        score.total(None, np.zeros((3, 1)), np.zeros(3))
    for said in (str(caught.value), repr(caught.value)):
        assert "\n" not in said
        assert not any(secret in said for secret in ("424242", "Alice", "2024"))
    assert caught.value.__context__ is None


def test_log_loss_is_that_of_scikit_learn_where_nothing_is_cut_off():
    from sklearn.metrics import log_loss

    found = search(scoring="neg_log_loss").fit(X, Y)
    assert found.score(X, Y) == pytest.approx(-log_loss(Y, found.predict_proba(X)), rel=1e-6)


# --- nothing is said of the trials ---


def shape_of(value):
    if isinstance(value, dict):
        return {name: shape_of(each) for name, each in value.items()}
    return type(value), np.shape(value) if not isinstance(value, GaussianDpEvent) else value


@pytest.mark.parametrize("refit", [True, False])
def test_the_number_of_tries_is_not_told(refit, monkeypatch, capfd):
    outcomes = []
    for count in (1, 9):
        monkeypatch.setattr(NumberOfTrials, "draw", lambda self, words, count=count: count)
        accountant = PrivacyAccountant()
        made = search(model(accountant=accountant, verbose=1), refit=refit, verbose=10)
        with warnings.catch_warnings(record=True, action="always") as caught:
            made.fit(X, Y)
        (charge,) = accountant.history
        ledger = (charge.event, charge.label, charge.parameters, charge.note)
        names = {name: type(value) for name, value in vars(made).items()}
        best = {name: type(value) for name, value in vars(made.best_estimator_).items()}
        shown = int(np.isfinite(made.cv_results_["mean_test_score"]).sum())
        outcomes.append((names, best, ledger, shown, len(made.cv_results_["params"]), len(caught), capfd.readouterr()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][3] == 1
    assert outcomes[0][-1] == ("", "")


def test_a_try_that_warns_is_not_heard(monkeypatch):
    learn, recorded = DescentSolver.train, []

    def warned(*given):
        recorded.append(warnings.warn("here I am", UserWarning, stacklevel=2))
        return learn(*given)

    monkeypatch.setattr(DescentSolver, "train", warned)
    with warnings.catch_warnings(action="error"):
        search().fit(X, Y)
    assert recorded


def test_search_in_threads_repeats_serial_search():
    with joblib.parallel_config("threading", n_jobs=2):
        one = search(refit=False, random_state=2).fit(X, Y)
    two = search(refit=False, random_state=2).fit(X, Y)
    assert one.best_params_ == two.best_params_
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_step_inside_a_step_says_nothing_of_its_tries(capsys):
    """scikit-learn's compositions print a line for each fit of a part, whatever the search is told."""
    table = ColumnTransformer([("all", FunctionTransformer(), [0, 1, 2])], sparse_threshold=0, verbose=True)
    steps = Pipeline([("table", table), ("model", model())], verbose=True)
    search(steps, {"model__alpha": [0.0, 0.1, 1.0]}, verbose=1).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_no_try_at_all_returns_the_default_model_under_the_same_bill(monkeypatch):
    monkeypatch.setattr(skdp.model_selection.candidates, "LAWS", (math.inf,))
    accountant, events = PrivacyAccountant(), []
    for count in (0, 2):
        monkeypatch.setattr(NumberOfTrials, "draw", lambda self, words, count=count: count)
        found = search(model(accountant=accountant, alpha=0.7)).fit(X, Y)
        events.append(found.privacy_event_)
        if count == 0:
            assert (found.best_params_, found.best_index_) == ({}, -1)
            assert math.isnan(found.best_score_)
            assert np.isnan(found.cv_results_["mean_test_score"]).all()
            assert found.best_estimator_.alpha == 0.7
            assert 0.999 <= found.epsilon_ <= 1.0
    assert events[0] == events[1]
    assert accountant.history[0].event == accountant.history[1].event


def test_poisson_is_not_drawn_without_a_refit(monkeypatch):
    monkeypatch.setattr(skdp.model_selection.candidates, "LAWS", (math.inf, 1.0))
    assert search(refit=False).fit(X, Y).privacy_event_.shape == 1.0


def test_the_law_that_needs_least_noise_is_taken(monkeypatch):
    noises = {}
    for shapes in (*((shape,) for shape in skdp.model_selection.candidates.LAWS), skdp.model_selection.candidates.LAWS):
        monkeypatch.setattr(skdp.model_selection.candidates, "LAWS", shapes)
        noises[shapes] = search().fit(X, Y).score_noise_
    *alone, of_all = noises.values()
    assert of_all == min(alone)


def test_compose_shows_all_scores():
    found = search(strategy="compose").fit(X, Y)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert found.best_index_ == np.argmax(found.cv_results_["mean_test_score"])
    assert found.best_score_ == found.cv_results_["mean_test_score"].max()
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]


PUBLISHED = {
    "best_estimator_": "the winner: the last release, or that of the best try",
    "best_params_, best_index_, best_score_": "the choice and its noisy score, the release of the selection",
    "cv_results_": "public parameters, and the scores above",
    "score_noise_, scorer_": "public constants",
    "delta_, adjacency_, _fitted_releases": "public constants, from which epsilon_ and privacy_event_ are read",
    "privacy_unit_": "whether `groups` were given",
    "_fitted_leaks, _fitted_n_public, _fitted_tuning": "what was read without account, by kind; public constants",
}


def test_fit_publishes_what_is_on_the_list():
    found = search().fit(X, Y)
    names = {name for entry in PUBLISHED for name in entry.split(", ")}
    assert set(vars(found)) - set(found.get_params(deep=False)) == names
    assert set(found.cv_results_) == {"params", "mean_test_score"}


# --- the choice, against its exact law --------------------------------------------------------------------------------


class Level(PrivateEstimator):
    """Learns nothing: its score is its parameter, so that the law of the choice is known."""

    def __init__(
        self, level=0.5, *, epsilon=1.0, delta=1e-5, noise_multiplier=None, adjacency=None,
        accountant=None, random_state=None,
    ):  # fmt: skip
        self.level, self.epsilon, self.delta, self.noise_multiplier = level, epsilon, delta, noise_multiplier
        self.adjacency, self.accountant = adjacency, accountant
        self.random_state = random_state

    def fit(self, X, y):
        fit = begin(self, X)
        fit.plan()
        fit.read_rows(lambda model, X, reset: X)
        fit.charge()
        fit.spawn("nothing")
        return fit.publish()

    def _plan_step(self, n_samples, n_features):
        return StepPlan(GaussianDpEvent, {})


LEVELS = (0.5, 0.55)
BY_LEVEL = PrivateScore("level", lambda estimator, X, y: np.full(len(y), estimator.level), 1.0)


@pytest.mark.parametrize("n_searches", [200, pytest.param(2500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", [0.0, 1.0, math.inf])
def test_the_choice_has_its_exact_law(shape, n_searches, monkeypatch):
    """Best of K draws of an even mixture of N(level, s): density of candidate j at x is f_j(x) phi'(F(x)) / 2.

    Four comparisons, each at a false alarm of 1e-6, whatever the number of searches.
    """

    monkeypatch.setattr(skdp.model_selection.candidates, "LAWS", (shape,))
    once, plans = skdp.model_selection.candidates.plan_search, []
    monkeypatch.setattr(
        skdp.model_selection.candidates,
        "plan_search",
        lambda *a: plans[0] if plans else plans.append(once(*a)) or plans[0],
    )
    cost = skdp.model_selection.whole_fit.get_epsilon
    monkeypatch.setattr(skdp.model_selection.whole_fit, "get_epsilon", lambda *a, **k: 1.0)
    made = DPGridSearchCV(Level(), {"level": LEVELS}, epsilon=1.0, delta=1e-4, n_trials=3, scoring=BY_LEVEL)
    found = [made.fit(X, Y) and (made.best_index_, made.best_score_) for _ in range(n_searches)]
    chosen, values = np.array(found).T
    spread, (plan,) = made.score_noise_, plans
    assert 0.999 < cost(plan.event, 1e-4) <= 1.0
    assert 0.01 < spread < 0.5

    def density(x, j):
        below = np.mean([stats.norm.cdf(x, level, spread) for level in LEVELS])
        return 0.5 * stats.norm.pdf(x, LEVELS[j], spread) * float(plan.trials.slope(np.array(1.0 - below)))

    for j in (0, 1):
        exact = integrate.quad(density, -2, 3, args=(j,), points=[0.5])[0]
        width = stats.norm.isf(FALSE_ALARM / 2) * math.sqrt(exact * (1 - exact) / len(chosen))
        assert np.mean(chosen == j) == pytest.approx(exact, abs=width)
    none = plan.trials.none
    assert np.mean(chosen == -1) == pytest.approx(none, abs=6 * math.sqrt(none / len(chosen)) + 1e-9)
    values = values[chosen >= 0]

    def below(x):
        chance = np.mean([stats.norm.cdf(x, level, spread) for level in LEVELS], axis=0)
        return (np.array([plan.trials.pgf(c) for c in np.atleast_1d(chance)]) - none) / (1.0 - none)

    assert stats.kstest(values, below).pvalue > FALSE_ALARM


def test_the_choice_is_as_private_as_its_price():
    """The exact law of (winner, score) on neighbors: a scoring row that counts for nothing or for all."""
    made = DPGridSearchCV(
        Level(), {"level": LEVELS}, epsilon=1.0, delta=1e-4, n_trials=3, scoring=BY_LEVEL, refit=False
    )
    made.fit(X, Y)
    trials = NumberOfTrials(made.privacy_event_.mean, made.privacy_event_.shape)
    spread, move = made.score_noise_, BY_LEVEL.sensitivity / (0.2 * N)

    def density(x, j, shift):
        below = np.mean([stats.norm.cdf(x, level + shift, spread) for level in LEVELS], axis=0)
        return 0.5 * stats.norm.pdf(x, LEVELS[j] + shift, spread) * trials.slope(1.0 - below)

    grid = np.linspace(0.5 - 12 * spread, 0.5 + 12 * spread, 100_001)
    for shift, other in ((move, 0.0), (0.0, move)):
        beyond = sum(np.maximum(0.0, density(grid, j, shift) - math.e * density(grid, j, other)) for j in (0, 1))
        assert 0 < np.sum(beyond) * (grid[1] - grid[0]) <= 1e-4


# --- pipelines and randomized search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_pipeline_of_private_steps(strategy):
    accountant = PrivacyAccountant()
    grid = {"pca__n_components": [1, 2], "model__alpha": [0.0, 0.1]}
    given = allocate_budget(pipeline(accountant=accountant), 5.0, 1e-4, fractions={"pca": 0.5})
    found = search(given, grid, strategy=strategy).fit(X, Y)
    assert 0.999 <= found.epsilon_ <= 1.0
    assert len(accountant.history) == 1
    assert found.best_estimator_.epsilon_ == found.epsilon_
    assert found.best_estimator_.fractions == {"pca": 0.5}
    assert found.predict(X).shape == (N,)


def test_search_accepts_nested_pipeline_of_stateless_steps():
    inner = make_pipeline(Normalizer(), verbose=True)
    found = search(make_pipeline(inner, model()), {"dplogisticregression__alpha": [0.0, 0.1]}).fit(X, Y)
    assert found.best_estimator_[0].verbose is False


def test_whole_steps_can_be_searched():
    steps = {"model": [model(), model(max_iter=2)]}
    found = search(pipeline(), steps).fit(X, Y)
    assert found.epsilon_ <= 1.0
    for bad, message in (
        ({"model": [model(), model(accountant=PrivacyAccountant())]}, "must not differ between candidates"),
        ({"model": [model(), model(adjacency="replace_one")]}, "adjacency"),
        ({"pca": [DPPCA(2), PCA(2)]}, r"PCA learns from its rows\. Use skdp\.DPPCA"),
    ):
        with pytest.raises(ValueError, match=message):
            search(pipeline(), bad).fit(UnreadTable(N, 3), Y)


@pytest.mark.parametrize("nothing", ["passthrough", None])
def test_a_private_step_may_be_left_out_by_a_candidate(nothing):
    accountant = PrivacyAccountant()
    found = search(pipeline(accountant=accountant), {"pca": [nothing, DPPCA(2, center=False)]}).fit(X, Y)
    assert 0.999 <= found.epsilon_ <= 1.0
    assert {part.accountant for part in found.best_estimator_._private_parts()} == {accountant}


def test_randomized_search():
    accountant = PrivacyAccountant()
    made = DPRandomizedSearchCV(
        model(accountant=accountant), {"alpha": stats.loguniform(1e-4, 1.0)}, n_iter=4, delta=1e-4
    )
    found = made.fit(X, Y)
    settings = found.cv_results_["params"]
    assert len({each["alpha"] for each in settings}) == 4
    assert 0.999 <= found.epsilon_ <= 1.0
    assert accountant.history[0].label == "DPRandomizedSearchCV"
    assert clone(made).fit(X, Y).cv_results_["params"] != settings  # drawn anew
    with pytest.raises(ValueError, match=r"`n_iter` must be .*, got 0"):
        clone(made).set_params(n_iter=0).fit(X, Y)


# --- manners ----------------------------------------------------------------------------------------------------------


def test_inside_a_pipeline_and_a_cross_validation():
    accountant = PrivacyAccountant()
    made = search(model(accountant=accountant))
    assert make_pipeline(FunctionTransformer(), made).fit(X, Y).score(X, Y) > 0.5
    with pytest.warns(PrivacyLeakWarning, match="not covered by the privacy guarantee") as caught:
        assert cross_val_score(made, X, Y, cv=KFold(2), error_score="raise").shape == (2,)
    assert len(caught) == 1
    assert len(accountant.history) == 3


def test_a_label_that_is_no_class_is_rejected_in_whichever_part_it_is():
    made = search(refit=False, random_state=5)
    for scores in (True, False):
        labels = np.where(np.arange(N) == np.flatnonzero(part_of(made) == scores)[0], 5, Y)
        with pytest.raises(ValueError, match="labels that are not in classes"):
            made.fit(X, labels)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[400, 399\]"):
        search().fit(X, Y[:-1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, "`epsilon` must be a number above 0, such as 1"),
        ({"delta": 1.0}, "`delta` must be a number in"),
        ({"strategy": "all"}, "`strategy` must be one of 'random_stopping', 'compose'"),
        ({"n_trials": 0.5}, "`n_trials` must be a number from 1 to 1000, or 'auto'"),
        ({"test_size": 1.0}, "`test_size` must be a number in"),
        ({"test_size": 0.001}, "must leave at least one row"),
        ({"grid": []}, "at least one candidate"),
        ({"grid": {"alpha": [0.0, -1.0]}}, "`alpha` must be a number of at least 0"),
        ({"grid": {"beta": [0.0, -1.0]}}, "Invalid parameter 'beta'"),
        ({"scoring": "roc_auc"}, r"got 'roc_auc'.*'accuracy', 'neg_log_loss'"),
        ({"estimator": StandardScaler()}, "must be a private estimator such as"),
        ({"estimator": PrivatePipeline([("all", FunctionTransformer())])}, "must be a private estimator"),
        ({"estimator": make_pipeline(StandardScaler(), model())}, "StandardScaler learns from its rows"),
        (
            {"estimator": pipeline().set_params(memory="cache"), "grid": {"model__alpha": [0, 1]}},
            "`memory` must be None in a private pipeline",
        ),
        ({"estimator": model(checkpoint="run.npz")}, "must be None in a search"),
        ({"random_state": "x"}, "`random_state` must be .* got 'x'"),
        *(
            ({"grid": {name: [None, 1]}}, f"`{name}` must be the same for all candidates")
            for name in (
                "epsilon",
                "delta",
                "noise_multiplier",
                "accountant",
                "adjacency",
                "random_state",
                "classes",
                "fractions",
            )
        ),
        ({"estimator": model(adjacency="add_remove")}, "is private. Set adjacency="),
    ],
)
def test_unusable_parameters_are_rejected_before_the_charge(given, message):
    accountant = PrivacyAccountant()
    given = {"estimator": model(), **given}
    if hasattr(given["estimator"], "accountant"):
        given["estimator"].set_params(accountant=accountant)
    with pytest.raises(ValueError, match=message) as caught:
        search(**given).fit(UnreadTable(N, 3), Y)
    assert accountant.history == ()
    assert "\n" not in str(caught.value) or "beta" in message


# --- a plain search ---------------------------------------------------------------------------------------------------


def leaks(caught):
    return [str(each.message) for each in caught if issubclass(each.category, PrivacyLeakWarning)]


@pytest.mark.parametrize("estimator", [model(), allocate_budget(pipeline(), 1.0, 1e-4)], ids=["model", "pipeline"])
def test_a_plain_search_pays_for_each_fit_and_is_told_of_its_scores(estimator):
    accountant = PrivacyAccountant()
    estimator = clone(estimator)
    if isinstance(estimator, Pipeline):
        estimator.set_params(pca__accountant=accountant, model__accountant=accountant)
        grid = {"model__alpha": [0.0, 0.1]}
    else:
        estimator.set_params(accountant=accountant)
        grid = {"alpha": [0.0, 0.1]}
    for count in (1, 2):  # each search is told
        with warnings.catch_warnings(record=True, action="always") as caught:
            found = GridSearchCV(estimator, grid, cv=KFold(3), error_score="raise").fit(X, Y)
        (message,) = leaks(caught)
        assert "not covered by the privacy guarantee" in message
        assert "Use skdp.DPGridSearchCV or skdp.model_selection.cross_validate, or score on public" in message
        assert "\n" not in message
        assert len(accountant.history) == count * (2 * 3 + 1)
    assert accountant.get_epsilon(1e-4) > 2 * found.best_estimator_.epsilon_


def test_a_leak_of_scores_can_be_an_error_before_any_charge():
    accountant = PrivacyAccountant()
    estimators = [model(accountant=accountant), allocate_budget(pipeline(accountant=accountant), 1.0, 1e-4)]
    for estimator in [*estimators, search(model(accountant=accountant))]:
        with (
            config_context(on_leak="raise"),
            pytest.raises(PrivacyLeakWarning, match="not covered by the privacy guarantee"),
        ):
            cross_val_score(estimator, X, Y, cv=KFold(2), error_score="raise")
    assert accountant.history == ()


def test_fits_outside_of_a_plain_search_are_not_told():
    def _fit_and_score():  # a name alone is not scikit-learn
        return model().fit(X, Y)

    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        _fit_and_score()
        make_pipeline(FunctionTransformer(), model()).fit(X, Y)
        allocate_budget(pipeline(), 1.0, 1e-4).fit(X, Y)
        search().fit(X, Y)
        search(strategy="compose").fit(X, Y)
