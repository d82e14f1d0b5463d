"""Private evaluation: what is charged, what is read when, and what the noisy table is made of."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from relations import with_n_public
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from watched import Watched

import skdp
from skdp import AddRemove, DPGaussianNB, PrivacyAccountant
from skdp._checks.groups import read_units
from skdp.accounting import DiscreteLaplaceDpEvent, GaussianDpEvent
from skdp.metrics import Estimate, PrivateEvaluation, evaluate
from skdp.metrics.histogram_evaluation import GRID, amounts_of
from skdp.metrics.scored_rows import ScoredRows, bins_of, places_of

N = 400
WEIGHTS = {"sample_weight": np.full(N, 0.5), "weight_bound": 1.0}
FITTED = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
OF_GROUPS = DPGaussianNB(classes=[0, 1], bounds=(-1, 1), epsilon=100.0).fit(
    np.linspace(-1, 1, N)[:, None], np.arange(N) % 2, groups=np.arange(N) // 2
)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=N)
    return scores, (rng.uniform(size=N) < scores).astype(int)


# --- order and cost ---


def test_the_model_sees_rows_after_the_charge_alone(people):
    scores, y = people
    accountant = PrivacyAccountant(1.0, 1e-6)
    model = Watched(accountant)
    evaluate(model, scores[:, None], y, epsilon=0.5, accountant=accountant)
    assert set(model.charges) == {1}
    (charge,) = accountant.history
    assert charge.event == DiscreteLaplaceDpEvent(0.5, 1)
    assert charge.label == "evaluate"
    assert charge.parameters["model"] == "Watched"


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_figures_together_cost_epsilon(people, adjacency, weighted):
    scores, y = people
    given = {"sample_weight": np.ones(N), "weight_bound": 1.0} if weighted else {}
    found = evaluate(None, scores, y, epsilon=0.3, adjacency=with_n_public(adjacency, N), **given)
    assert 0.2999 < found.epsilon_ <= 0.3
    assert found.delta_ == 0.0
    event = found.privacy_event_
    assert event.noise_parameter * event.sensitivity == pytest.approx(0.15 if adjacency == "replace_one" else 0.3)
    factor = 2 if adjacency == "replace_one" else 1
    assert found.noise_deviation_ == pytest.approx(np.sqrt(2) * factor / 0.3, rel=0.01)


def test_normal_noise_is_priced_as_one_gaussian(people):
    scores, y = people
    found = evaluate(None, scores, y, epsilon=0.5, delta=1e-5, noise="gaussian")
    assert isinstance(found.privacy_event_, GaussianDpEvent)
    assert 0.499 < found.epsilon_ <= 0.5
    other = evaluate(None, scores, y, epsilon=0.5, delta=1e-5, noise="gaussian", adjacency="replace_one")
    # two counts move: sqrt(2) in norm, and not 2
    assert other.noise_deviation_ / found.noise_deviation_ == pytest.approx(np.sqrt(2), rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_it_may_take_all_that_a_ledger_has(people, epsilon):
    accountant = PrivacyAccountant(epsilon, 1e-6)
    evaluate(None, *people, epsilon=epsilon, adjacency="replace_one", accountant=accountant)
    assert 0.999 * epsilon < accountant.get_epsilon(1e-6) <= epsilon


def test_units_are_charged_as_units(people):
    scores, y = people
    accountant = PrivacyAccountant(1.0, 1e-6, unit="household")
    with pytest.warns(UserWarning, match="^100 groups at this epsilon: .* Use more groups"):
        found = evaluate(None, scores, y, epsilon=0.5, groups=np.arange(N) // 4, accountant=accountant)
    assert found.privacy_unit_ == "group"
    with pytest.raises(ValueError, match="unit"):
        evaluate(None, scores, y, epsilon=0.1, accountant=accountant)


# --- the table ---


def test_each_row_is_counted_once_in_the_bin_of_its_score(people, exact):
    scores, y = people
    found = evaluate(None, scores, y, epsilon=1.0, n_bins=8)
    expected = [np.histogram(places_of(scores[y == k]), bins=8, range=(0, 1))[0] for k in (0, 1)]
    np.testing.assert_array_equal(exact[0], [expected])
    np.testing.assert_array_equal(found.noisy_counts_, exact[0])


def test_scores_are_cut_and_gaps_are_in_the_first_bin():
    scores = np.array([-1.0, 0.0, 0.5, 1.0, 9.0, np.nan, np.inf, -np.inf])
    assert bins_of(scores, 8).tolist() == [0, 0, 4, 7, 7, 0, 7, 0]


def test_the_number_of_bins_follows_from_public_numbers(people):
    scores, y = people
    for epsilon, n_public, expected in ((1.0, 100, 8), (1.0, 1_000, 32), (1.0, 10_000, 64), (1.0, 10**6, 256)):
        found = evaluate(None, scores, y, epsilon=epsilon, adjacency=AddRemove(n_public))
        assert found.n_bins_ == expected


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one", "add_remove"])
def test_a_total_is_private_where_a_row_may_be_missing(people, adjacency):
    """Counts are projected to the number of rows where it is public; else to nothing but nonnegative numbers."""
    scores, y = people
    given = {"epsilon": 0.5, "adjacency": with_n_public(adjacency, 500), "random_state": 0}
    found = evaluate(None, scores, y, **given)
    counts = found.confusion_matrix().value.sum()
    noisy = np.maximum(found.noisy_counts_, 0.0).sum()
    assert counts == pytest.approx(noisy if adjacency == "add_remove" else N)
    assert noisy != pytest.approx(N)
    weighted = evaluate(None, scores, y, **given, **WEIGHTS)
    assert weighted.confusion_matrix().value.sum() == pytest.approx(np.maximum(weighted.noisy_counts_, 0.0).sum())


def test_classes_are_those_of_the_model(exact):
    X = np.linspace(-1, 1, 60)[:, None]
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    found = evaluate(model, X, y, epsilon=1.0, n_bins=4)
    assert found.classes_.tolist() == ["no", "yes"]
    assert exact[0][0, 1, :2].sum() == 0
    assert evaluate(LinearSVC().fit(X, y), X, y, epsilon=1.0).roc_auc.value > 0.9


@pytest.mark.parametrize("table", [pd.DataFrame, sp.csr_matrix])
def test_rows_of_any_kind_are_scored_in_blocks(people, exact, monkeypatch, table):
    scores, y = people
    evaluate(None, scores, y, epsilon=1.0)
    X = np.column_stack([scores, scores])
    model = LogisticRegression().fit(X, y)
    model.coef_, model.intercept_ = np.array([[1.0, 0.0]]), np.array([0.0])
    monkeypatch.setattr("skdp.metrics.scored_rows._ROWS", 64)
    evaluate(model, table(X), y, epsilon=1.0, n_bins=16)
    np.testing.assert_array_equal(exact[1].sum(-1), exact[0].sum(-1))
    np.testing.assert_array_equal(exact[1][0].sum(0), np.histogram(places_of(1 / (1 + np.exp(-scores))), 16, (0, 1))[0])


def test_subgroups_are_in_the_one_table(people, exact):
    scores, y = people
    frame = pd.DataFrame({"score": scores, "sex": np.resize(["F", "M", "x", None], N)})
    model = Watched()
    model.feature_names_in_ = np.array(["score"])
    found = evaluate(model, frame, y, epsilon=1.0, n_bins=4, by="sex", categories=["F", "M"])
    assert exact[0].shape == (3, 2, 4)
    assert exact[0].sum((1, 2)).tolist() == [N // 4, N // 4, N // 2]
    assert list(found.subgroups) == ["F", "M", "other"]
    part = np.flatnonzero(frame["sex"] == "M")
    assert found.subgroups["M"].positive_rate.value == pytest.approx(y[part].mean())


# --- weights and units ---


def test_weights_are_divided_by_their_bound_and_cut_at_it(people, exact):
    scores, y = people
    weights = np.array([0.0, 1.0, 2.0, 50.0] * (N // 4))
    evaluate(None, scores, y, epsilon=1.0, sample_weight=weights, weight_bound=2.0)
    assert exact[0].sum() == GRID * (0.5 + 1.0 + 1.0) * N / 4
    evaluate(None, scores, y, epsilon=1.0, groups=np.arange(N) // 4)
    assert exact[1].sum() == GRID * N / 4


@pytest.mark.parametrize("seed", range(6))
def test_no_unit_adds_more_than_a_row(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, 50)
    labels = rng.permutation(np.repeat(np.arange(50), sizes))
    weights = rng.uniform(size=len(labels)) ** 3
    units = read_units(labels, len(labels))
    sums = np.bincount(units.codes, amounts_of(weights, units, len(labels)))
    assert sums.max() <= GRID
    full = np.bincount(units.codes, np.floor(weights * GRID)) >= GRID
    assert sums[full].min() > GRID - 40
    np.testing.assert_array_equal(amounts_of(weights, None, len(labels)), np.floor(weights * GRID))
    alone = read_units(np.arange(len(labels)), len(labels))
    np.testing.assert_array_equal(amounts_of(weights, alone, len(labels)), np.floor(weights * GRID))


def test_one_unit_moves_the_counts_by_one_row_and_nothing_else(people, exact):
    scores, y = people
    groups = np.arange(N) // 8
    near = scores.copy()
    near[groups == 3] = 1.0 - near[groups == 3]
    for each in (scores, near):
        evaluate(None, each, y, epsilon=1.0, groups=groups, by=groups % 3, categories=[0, 1])
    assert 0 < np.abs(exact[0] - exact[1]).sum() <= 2 * GRID
    weights = np.where(groups == 3, 0.0, 1.0)
    given = {"groups": groups, "by": groups % 3, "categories": [0, 1], "sample_weight": weights, "weight_bound": 1}
    evaluate(None, scores, y, epsilon=1.0, **given)
    assert 0 < np.abs(exact[0] - exact[2]).sum() <= GRID


# --- nothing but the table ---


class Picky(Watched):
    """A model that warns of, and rejects, rows above .9."""

    def predict_proba(self, X):
        found = super().predict_proba(X)
        warnings.warn(f"the largest is {np.max(X)}", stacklevel=2)
        if np.max(X) > 0.9:
            raise KeyError(f"no score of {np.max(X)}")
        return found


def test_what_a_model_says_of_a_row_stays_inside(people, exact):
    scores, y = people
    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("ignore", message=".*the noise hides")
        evaluate(Picky(), scores[:, None], y, epsilon=1.0, n_bins=10)
    rejected = scores > 0.9
    assert rejected.any()
    expected = np.where(rejected, 0.0, scores)
    np.testing.assert_array_equal(exact[0][0].sum(0), np.histogram(places_of(expected), 10, (0, 1))[0])


def test_a_row_of_another_number_of_scores_is_one_that_is_rejected(people, exact):
    class Sized(Watched):
        def predict_proba(self, X):
            found = super().predict_proba(X)
            return np.hstack([found, found]) if np.max(X) > 0.9 else found

    scores, y = people
    evaluate(Sized(), scores[:, None], y, epsilon=1.0, n_bins=10)
    expected = np.where(scores > 0.9, 0.0, scores)
    np.testing.assert_array_equal(exact[0][0].sum(0), np.histogram(places_of(expected), 10, (0, 1))[0])


def test_a_row_that_is_rejected_is_so_whatever_is_beside_it(people):
    scores, _ = people
    alone = np.concatenate([found for s in scores for _, found in ScoredRows(Picky(), np.array([[s]])).blocks()])
    together = np.concatenate([found for _, found in ScoredRows(Picky(), scores[:, None]).blocks()])
    np.testing.assert_array_equal(alone, together)


def test_failed_row_does_not_change_scores_of_others(people):
    class Rounding(Picky):
        def predict_proba(self, X):
            return super().predict_proba(X) + 1e-3 * len(X)

    rows = np.minimum(people[0], 0.9)[:, None]
    failing = np.where(np.arange(N)[:, None] == 7, 1.0, rows)
    all_scores, others = (next(ScoredRows(Rounding(), each).blocks())[1] for each in (rows, failing))
    assert np.isnan(others[7])
    np.testing.assert_array_equal(np.delete(all_scores, 7), np.delete(others, 7))


@pytest.mark.parametrize(
    ("scores", "y", "adjacency"),
    [
        (np.linspace(0, 1, 60), np.ones(60, int), "add_remove"),
        (np.full(60, 0.3), np.arange(60) % 2, "zero_out"),
        (np.full(60, np.nan), np.zeros(60, int), "add_remove"),
    ],
)
def test_no_data_are_rejected_or_warned_of(scores, y, adjacency):
    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("ignore", message=".*the noise hides")
        found = evaluate(None, scores, y, epsilon=1.0, adjacency=with_n_public(adjacency, 60), by=y, categories=[1, 2])
        for figures in (found, *found.subgroups.values()):
            for each in figures.summary().values():
                assert np.isfinite(each).all()
                assert each.low <= each.value <= each.high
            for method in ("roc_curve", "calibration_curve", "lift_curve", "precision_recall_curve"):
                assert np.isfinite(getattr(figures, method)()).all()
            assert np.isfinite([figures.conformal_quantile(), figures.best_threshold()]).all()


def test_few_rows_are_warned_of_by_public_numbers(people):
    scores, y = people
    with pytest.warns(UserWarning, match="50 rows at this epsilon"):
        evaluate(None, scores, y, epsilon=1.0, adjacency=AddRemove(50))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1e-9}, "epsilon"),
        ({"delta": 1e-6}, "noise='laplace'"),
        ({"noise": "gaussian"}, "`delta` must be above 0 with noise='gaussian'"),
        ({"noise": "normal"}, "got 'normal'"),
        ({"n_bins": 1}, "n_bins"),
        ({"level": 1.0}, "level"),
        ({"adjacency": "add_remove"}, "AddRemove"),
        ({"weight_bound": "private"}, "weight_bound"),
        ({"classes": ["a", "b"]}, "y"),
        ({"by": np.zeros(N)}, "categories"),
        ({"categories": ["a"]}, "by"),
        ({"by": np.zeros(N), "categories": ["a", "other"]}, "must not contain"),
        ({"by": np.zeros(3), "categories": ["a"]}, "one subgroup per row"),
        ({"by": "sex", "categories": ["a"]}, "by='sex' is not a column of X"),
        ({"groups": np.zeros(3)}, "groups"),
        ({"X": np.zeros((N, 2))}, "one score per row"),
        ({"model": object()}, "predict_proba"),
        ({"model": FITTED, "X": np.zeros((N, 2))}, "1 columns"),
        ({"model": LogisticRegression(), "X": np.zeros((N, 1))}, "must be fitted"),
        ({"model": FrozenEstimator(OF_GROUPS), "X": np.zeros((N, 1))}, "private at the group level"),
    ],
)
def test_what_is_unusable_is_rejected_in_one_line_and_not_charged(people, change, message):
    scores, y = people
    accountant = PrivacyAccountant(10.0, 1e-5)
    given = {"model": None, "X": scores, "y": y, "epsilon": 1.0, "accountant": accountant, **change}
    with pytest.raises(ValueError, match=message) as rejected:
        evaluate(given.pop("model"), given.pop("X"), given.pop("y"), **given)
    assert "\n" not in str(rejected.value)
    assert not [charge for charge in accountant.history if charge.event is not None and charge.label != "evaluate"]
    assert accountant.get_epsilon(1e-5) == 0.0


def test_a_rejection_of_scores_is_recorded(people):
    accountant = PrivacyAccountant(1.0, 1e-6)
    with pytest.raises(ValueError, match="contains strings"):
        evaluate(None, ["high"] * N, people[1], epsilon=0.5, accountant=accountant)
    assert [entry.kind for entry in accountant.entries] == ["rejection"]


def test_a_model_of_another_shape_of_scores_is_rejected(people):
    class Three(Watched):
        def predict_proba(self, X):
            return np.ones((len(X), 3)) / 3

    accountant = PrivacyAccountant(1.0, 1e-6)
    with pytest.raises(TypeError, match="one score of the positive class"):
        evaluate(Three(), people[0][:, None], people[1], epsilon=0.5, accountant=accountant)
    assert not accountant.history


# --- the object ---


def test_it_is_shown_pickled_and_reported(people):
    scores, y = people
    found = skdp.evaluate(None, scores, y, epsilon=1.0)
    assert isinstance(found, PrivateEvaluation)
    assert "roc auc" in repr(found)
    assert "epsilon=1" in repr(found)
    assert "<table>" in found._repr_html_()
    again = pickle.loads(pickle.dumps(found))
    assert again.roc_auc == found.roc_auc
    assert isinstance(found.roc_auc, Estimate)
    assert float(found.roc_auc) == found.roc_auc.value
    report = str(skdp.privacy_report(found))
    assert re.search(r"Epsilon +1\n", report)
    assert "delta is 0" in report
    assert "with these exceptions" not in report
    assert "PrivateEvaluation" in repr(PrivateEvaluation(None, epsilon=1.0))


@pytest.mark.parametrize("groups", [None, np.arange(2000) // 2])
def test_evaluation_with_groups_states_estimand(groups):
    rng = np.random.default_rng(0)
    scores, subgroups = rng.uniform(size=2000), rng.choice(["a", "b"], 2000)
    labels = rng.uniform(size=2000) < scores
    found = evaluate(None, scores, labels, by=subgroups, categories=["a"], groups=groups, epsilon=1.0)
    compared = skdp.metrics.compare(None, None, np.column_stack([scores, scores]), labels, groups=groups, epsilon=1.0)
    figures = found.roc_auc, found.subgroups["a"].roc_auc, compared.roc_auc
    shown = [*map(str, figures), repr(found), found._repr_html_(), str(found.subgroups["a"]), repr(compared)]
    assert [each.count("each group has at most the weight of one row") for each in shown] == [
        int(groups is not None)
    ] * 7
    assert pickle.loads(pickle.dumps(found.roc_auc)).estimand == found.roc_auc.estimand


def optimism_warnings(model, rows, accountant):
    with warnings.catch_warnings(record=True, action="always") as caught:
        evaluate(model, *rows, epsilon=0.1, accountant=accountant)
    return [str(each.message) for each in caught if "optimistic" in str(each.message)]


def test_evaluation_on_training_part_warns_of_optimism(people):
    ledger = PrivacyAccountant(5.0, 1e-6)
    scores, y = people
    train, test = skdp.private_train_test_split(scores[:, None], y, accountant=ledger)
    model = DPGaussianNB(bounds=(0, 1), classes=[0, 1], epsilon=1.0, accountant=train.accountant).fit(train.X, train.y)
    assert len(optimism_warnings(make_pipeline(model), (train.X, train.y), train.accountant)) == 1
    assert optimism_warnings(model, (test.X, test.y), test.accountant) == []
    assert optimism_warnings(model, (test.X, test.y), PrivacyAccountant(5.0, 1e-6)) == []
