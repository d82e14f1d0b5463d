"""Two models on the same private rows: one table of pairs of scores, and intervals of differences."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from watched import Watched

from skdp import AddRemove, BudgetExceededError, PrivacyAccountant, privacy_report
from skdp.accounting import DiscreteLaplaceDpEvent
from skdp.metrics import Estimate, PrivateComparison, compare
from skdp.metrics.scored_rows import places_of

FALSE_ALARM = 1e-6
N = 2_000


def people_of(n, seed):
    """Labels, and scores of two models of which the first is better."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(1 - 2 * x))).astype(int)
    scores = [1 / (1 + np.exp(1 - 2 * x - noise * rng.normal(size=n))) for noise in (0.2, 0.6)]
    return np.column_stack(scores), y


def exact_differences(scores, y):
    figures = {
        "roc_auc": roc_auc_score,
        "brier_score": brier_score_loss,
        "log_loss": log_loss,
        "accuracy": lambda y, s: accuracy_score(y, s >= 0.5),
    }
    return {name: figure(y, scores[:, 0]) - figure(y, scores[:, 1]) for name, figure in figures.items()}


@pytest.fixture(scope="module")
def people():
    return people_of(N, 0)


def test_one_table_of_pairs_is_released_and_charged(people, exact):
    scores, y = people
    accountant = PrivacyAccountant(1.0, 1e-6)
    found = compare(None, None, scores, y, epsilon=0.5, n_bins=4, accountant=accountant)
    (table,) = exact
    pairs = [np.histogram2d(*places_of(scores[y == k]).T, bins=4, range=[(0, 1)] * 2)[0] for k in (0, 1)]
    np.testing.assert_array_equal(table[0].reshape(2, 4, 4), pairs)
    (charge,) = accountant.history
    assert charge.event == DiscreteLaplaceDpEvent(0.5, 1) == found.privacy_event_
    assert isinstance(found, PrivateComparison)


def test_without_noise_differences_are_those_of_the_rows(people, exact):
    scores, y = people
    found = compare(None, None, scores, y, epsilon=1.0, n_bins=32).summary()
    for name, difference in exact_differences(scores, y).items():
        assert found[name].value == pytest.approx(difference, abs=0.002), name


@pytest.mark.parametrize("change", ["score", "label", "null"])
def test_one_row_moves_its_own_counts_alone(people, exact, change):
    scores, y = people[0].copy(), people[1].copy()
    compare(None, None, scores, y, epsilon=1.0, sample_weight=np.ones(N), weight_bound=1.0)
    weights = np.ones(N)
    if change == "score":
        scores[5] = 1 - scores[5]
    elif change == "label":
        y[5] = 1 - y[5]
    else:
        weights[5] = 0.0
    compare(None, None, scores, y, epsilon=1.0, sample_weight=weights, weight_bound=1.0)
    one, other = exact
    assert np.abs(one - other).sum() == 2**20 * (1 if change == "null" else 2)


def test_models_score_the_rows_after_the_charge(people):
    scores, y = people
    accountant = PrivacyAccountant(0.4, 1e-6)
    models = Watched(accountant, 0), Watched(accountant, 1)
    with pytest.raises(BudgetExceededError):
        compare(*models, scores, y, epsilon=0.5, accountant=accountant)
    assert not models[0].charges + models[1].charges
    found = compare(*models, scores, y, epsilon=0.3, accountant=accountant)
    assert set(models[0].charges) == set(models[1].charges) == {1}
    assert accountant.history[0].parameters["model"] == ["Watched", "Watched"]
    assert found.roc_auc.value > -0.05


def test_figures_of_either_model_and_of_subgroups_are_free(people):
    scores, y = people
    found = compare(None, None, scores, y, epsilon=1.0, by=np.arange(N) % 2, categories=[0, 1])
    first, second = found.models
    assert first.roc_auc.value - second.roc_auc.value == pytest.approx(found.roc_auc.value)
    assert list(found.subgroups) == ["0", "1", "other"]
    assert isinstance(found.subgroups["0"].accuracy(0.4), Estimate)
    assert "roc auc" in repr(found)
    assert "Epsilon" in str(privacy_report(found))


@pytest.mark.parametrize(("n", "bins"), [(1_000, 4), (10**7, 32)])
def test_the_number_of_bins_follows_from_public_numbers(people, n, bins):
    found = compare(None, None, *people, epsilon=1.0, adjacency=AddRemove(n))
    assert found.n_bins_ == bins**2


FITTED = LogisticRegression().fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": FITTED}, "must both be models"),
        ({"X": np.zeros((N, 3))}, "two scores per row"),
        ({"classes": [0, 1, 2]}, "two classes"),
        ({"y_bounds": (0, 1)}, "y_bounds"),
        ({"first": FITTED, "second": LogisticRegression().fit([[0.0], [1.0]], [2, 3])}, "the classes of the model"),
        ({"first": FITTED, "second": object(), "X": np.zeros((N, 1))}, "predict_proba"),
    ],
)
def test_what_is_unusable_is_rejected_in_one_line_and_not_charged(people, change, message):
    accountant = PrivacyAccountant(10.0, 1e-5)
    given = {"first": None, "second": None, "X": people[0], "y": people[1], "epsilon": 1.0, **change}
    with pytest.raises((ValueError, TypeError), match=message) as rejected:
        compare(**given, accountant=accountant)
    assert "\n" not in str(rejected.value)
    assert accountant.get_epsilon(1e-5) == 0.0


def test_intervals_of_rare_class_differences_cover():
    """Nominally 95%: at most so few misses as happen once in a million at 90%."""
    rng, repeats, covered = np.random.default_rng(0), 15, 0
    for seed in range(repeats):
        logits = rng.normal(-3.5, 1.5, 20_000)
        y = (rng.uniform(size=20_000) < 1 / (1 + np.exp(-logits))).astype(int)
        scores = 1 / (1 + np.exp(-np.column_stack([logits, 0.8 * logits + 0.5 * rng.normal(size=20_000)])))
        found = compare(None, None, scores, y, epsilon=1.0, random_state=seed).roc_auc
        covered += found.low <= roc_auc_score(y, scores[:, 0]) - roc_auc_score(y, scores[:, 1]) <= found.high
    assert covered >= stats.binom.ppf(FALSE_ALARM, repeats, 0.9)
