"""One plan for a fit and for a table of scores: its cost, its order, and who is in which part."""

import numpy as np
import pandas as pd
import pytest
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, replay
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from watched import Watched

import skdp
from skdp import AddRemove, BudgetExceededError, DPCalibratedClassifier, DPThresholdClassifier, PrivacyAccountant
from skdp.accounting import DiscreteLaplaceDpEvent, WorstOfDpEvent
from skdp.model_selection.whole_fit import WholeFit

N = 160
KINDS = [DPCalibratedClassifier, DPThresholdClassifier]


def private(**parameters):
    return skdp.DPLogisticRegression(**{"classes": [0, 1], "max_iter": 4, **parameters})


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (N, 3))
    return X, (rng.uniform(size=N) < X[:, 0]).astype(int)


@pytest.fixture
def held(monkeypatch):
    """Which rows or groups are counted, of each fit."""
    seen, draw = [], WholeFit.split
    monkeypatch.setattr(WholeFit, "split", lambda fit, size: seen.append(draw(fit, size)) or seen[-1])
    return seen


# --- cost and order ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_fit_and_table_cost_epsilon_together(people, kind, adjacency):
    ledger = PrivacyAccountant(2.0, 1e-5)
    n = {"adjacency": with_n_public(adjacency, N)}
    found = kind(private(**n), epsilon=0.7, accountant=ledger, **n).fit(*people)
    assert 0.7 * 0.999 < found.epsilon_ <= 0.7
    (charge,) = ledger.history
    fit, table = found.privacy_event_.events
    assert charge.event == found.privacy_event_ == WorstOfDpEvent((found.estimator_.privacy_event_, table))
    assert fit == found.estimator_.privacy_event_
    assert table == found.evaluation_.privacy_event_
    assert charge.label == kind.__name__
    assert charge.parameters["estimator"] == "DPLogisticRegression"
    assert found.delta_ == 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_a_fitted_model_costs_the_table_alone(people, kind):
    ledger = PrivacyAccountant(1.0, 1e-6)
    model = Watched(ledger)
    found = kind(FrozenEstimator(model), epsilon=0.5, accountant=ledger).fit(*people)
    assert (found.epsilon_, found.delta_) == (pytest.approx(0.5), 0.0)
    assert found.privacy_event_ == ledger.history[0].event == DiscreteLaplaceDpEvent(0.5, 1)
    assert set(model.charges) == {1}
    assert found.estimator_ is model


@pytest.mark.parametrize("frozen", [True, False])
def test_above_the_ceiling_nothing_is_read(people, frozen):
    ledger = PrivacyAccountant(0.4, 1e-6)
    model = Watched(ledger)
    found = DPCalibratedClassifier(FrozenEstimator(model) if frozen else private(), epsilon=0.5, accountant=ledger)
    with pytest.raises(BudgetExceededError):
        found.fit(*people)
    assert not ledger.history
    assert not model.charges
    assert not hasattr(found, "estimator_")


# --- who is in which part ---


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove"])
def test_a_row_is_in_the_fit_or_in_the_table(people, adjacency):
    X, y = people
    parts = set()
    for seed in range(8):
        n = {"adjacency": with_n_public(adjacency, N)}
        made = DPCalibratedClassifier(private(weight_bound=1.0, **n), weight_bound=1.0, random_state=seed, **n)
        null = np.ones(N)
        null[-1] = 0.0
        other = (X, y, null) if adjacency == "zero_out" else (X[:-1], y[:-1], null[:-1])
        one, other = replay(lambda rows, made=made: made.fit(*rows), (X, y, np.ones(N)), other)
        found = moves(one, other)
        assert max(found) <= 1.0 + 1e-6
        trains, counts = max(found[:-1]) > 1e-9, found[-1] > 1e-9
        assert trains != counts
        parts.add("fit" if trains else "table")
        assert_all_else_is_equal(one, other)
    assert parts == {"fit", "table"}


def test_a_unit_is_in_one_part_as_a_whole(people):
    X, y = people
    labels = np.minimum(np.arange(N), N - 20)  # the last unit has twenty rows
    kept, parts = slice(0, N - 19), set()
    null = np.ones(N - 19)
    null[-1] = 0.0
    for seed in range(8):
        made = DPThresholdClassifier(private(weight_bound=1.0), weight_bound=1.0, random_state=seed)
        one, other = replay(
            lambda rows, made=made: made.fit(*rows[:2], sample_weight=rows[2], groups=rows[3]),
            (X, y, np.ones(N), labels),
            (X[kept], y[kept], null, labels[kept]),
        )
        found = moves(one, other)
        assert max(found) <= 1.0 + 1e-6
        assert (max(found[:-1]) > 1e-9) != (found[-1] > 1e-9)
        parts.add(found[-1] > 1e-9)
        assert_all_else_is_equal(one, other)
    assert parts == {True, False}


def test_labels_and_cells_move_nobody(people, held):
    X, y = people
    made = DPCalibratedClassifier(private(), test_size=0.3, random_state=3)
    made.fit(X, y)
    made.fit(X[::-1] ** 2, 1 - y)
    np.testing.assert_array_equal(held[0], held[1])
    assert held[0].sum() == round(0.3 * N)
    assert 0 < held[0][: N // 2].sum() < held[0].sum()


def test_a_row_that_leaves_has_a_coin_of_its_own(people, held):
    X, y = people
    n = {"adjacency": AddRemove(N)}
    for size in (N, N - 41):  # a share of fewer rows would be another one
        DPCalibratedClassifier(private(**n), random_state=3, **n).fit(X[:size], y[:size])
    np.testing.assert_array_equal(held[0][: N - 41], held[1])


def test_parts_are_drawn_anew_by_a_secret(people, held):
    for _ in range(2):
        DPCalibratedClassifier(private()).fit(*people)
    assert (held[0] != held[1]).any()  # equal once in 10^37


# --- what it is used in ---


@pytest.mark.parametrize("kind", KINDS)
def test_table_classifier_takes_frames_with_groups(people, kind):
    X, y = people
    frame = pd.DataFrame(X, columns=list("abc")).assign(home=np.arange(N) // 2)
    pipeline = skdp.tabular_pipeline(private(), schema={name: (0, 1) for name in "abc"})
    found = kind(pipeline, epsilon=1.0).fit(frame, y, groups="home")
    assert found.privacy_unit_ == "group"
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    assert skdp.privacy_report(found).to_dict()["guarantee"]["unit"] == "group"


def test_rows_and_groups_are_not_mixed_in_a_ledger(people):
    ledger = PrivacyAccountant(4.0, 1e-5, unit="household")
    DPCalibratedClassifier(private(), epsilon=0.5, accountant=ledger).fit(*people, groups=np.arange(N) // 2)
    with pytest.raises(ValueError, match="unit"):
        DPCalibratedClassifier(private(), epsilon=0.5, accountant=ledger).fit(*people)


def test_weights_are_cut_at_their_bound(people):
    X, y = people
    model = FrozenEstimator(Watched(PrivacyAccountant(1.0, 1e-6)))
    found = DPCalibratedClassifier(model, epsilon=1e4, weight_bound=2.0).fit(X, y, sample_weight=np.full(N, 50.0))
    assert found.evaluation_.confusion_matrix().value.sum() == pytest.approx(N, rel=1e-3)


# --- bad input ---

BAD = [
    ({"test_size": 1.5}, {}, "test_size"),
    ({"adjacency": "replace_one", "estimator": private(adjacency="zero_out")}, {}, "adjacency"),
    ({"weight_bound": "private"}, {}, "weight_bound"),
    ({"classes": [0, 1, 2]}, {}, "Only binary classification"),
    ({"estimator": LinearRegression()}, {}, "with predict_proba"),
    ({"estimator": RandomForestClassifier()}, {}, "must be a private estimator"),
    ({"estimator": FrozenEstimator(LogisticRegression())}, {}, "not fitted"),
    ({"estimator": private(accountant=PrivacyAccountant(9.0, 1e-5))}, {}, "accountant"),
    ({"method": "beta"}, {}, "method"),
    ({}, {"y": np.full(N, 7)}, "labels"),
    ({}, {"X": np.full((N, 3), np.nan)}, "NaN"),
    ({}, {"groups": [None] * N}, "groups"),
]


@pytest.mark.parametrize(
    ("parameters", "given", "named"), BAD, ids=[f"{named}-{k}" for k, (*_, named) in enumerate(BAD)]
)
def test_bad_input_is_rejected_in_one_line_and_costs_nothing(people, parameters, given, named):
    ledger = PrivacyAccountant(9.0, 1e-5)
    rows = {"X": people[0], "y": people[1], **given}
    with pytest.raises((ValueError, TypeError), match=named) as caught:
        DPCalibratedClassifier(**{"estimator": private(), "accountant": ledger, **parameters}).fit(**rows)
    assert "\n" not in str(caught.value)
    assert ledger.spent == 0.0


def test_third_class_read_from_labels_is_recorded_rejection(people):
    accountant = PrivacyAccountant(9.0, 1e-5)
    model = DPCalibratedClassifier(private().set_params(classes=None), accountant=accountant)
    with (
        pytest.raises(ValueError, match="Only binary classification"),
        pytest.warns(skdp.exceptions.PrivacyLeakWarning),
    ):
        model.fit(people[0], np.arange(N) % 3)
    assert [entry.kind for entry in accountant.entries] == ["rejection"]
