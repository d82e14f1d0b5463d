"""Private evaluation by many tables of one release: of each class against all others, and of each of several labels."""

import numpy as np
import pandas as pd
import pytest
from relations import with_n_public
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, confusion_matrix, log_loss, roc_auc_score
from sklearn.multioutput import MultiOutputClassifier

from skdp.metrics import MultilabelEvaluation, OneVsRestEvaluation, evaluate
from skdp.metrics.histogram_evaluation import GRID
from skdp.metrics.scored_rows import places_of

N = 900
CLASSES = ["a", "b", "c", "d"]
OF_CLASSES = {"classes": CLASSES, "one_vs_rest": True, "epsilon": 1.0}
PARTS = 3 * (len(CLASSES) - 1)


@pytest.fixture(scope="module")
def people():
    """Scores of four classes, which are probabilities of the class."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet([0.5, 0.4, 0.3, 0.2], N)
    return chances, np.array([rng.choice(CLASSES, p=each) for each in chances])


@pytest.fixture(scope="module")
def labelled():
    """Scores of three labels, which are probabilities."""
    rng = np.random.default_rng(1)
    chances = rng.beta(0.5, 1.0, (N, 3))
    return chances, (rng.uniform(size=(N, 3)) < chances).astype(int)


# --- the table, and its cost ---


def test_a_row_is_counted_once_by_prediction_once_for_its_class_and_once_for_each_other(people, exact):
    scores, y = people
    found = evaluate(None, scores, y, n_bins=8, **OF_CLASSES)
    assert isinstance(found, OneVsRestEvaluation)
    (table,) = exact
    codes = np.searchsorted(CLASSES, y)
    np.testing.assert_array_equal(table[0, :, :4], 3 * confusion_matrix(codes, scores.argmax(1)))
    for k in range(4):
        places = places_of(scores[:, k])
        for own, start in ((False, 4), (True, 12)):
            counts = np.histogram(places[(codes == k) == own], 8, (0, 1))[0]
            np.testing.assert_array_equal(table[0, k, start : start + 8], counts * (3 if own else 1))
    assert table.sum() == PARTS * N
    np.testing.assert_array_equal(found.noisy_counts_.sum(-1), (np.full(4, N) + np.bincount(codes))[None])


def test_a_label_is_counted_once(labelled, exact):
    scores, y = labelled
    found = evaluate(None, scores, y, epsilon=1.0, n_bins=8)
    assert isinstance(found, MultilabelEvaluation)
    places = places_of(scores)
    for k in range(3):
        counts = [np.histogram(places[y[:, k] == each, k], 8, (0, 1))[0] for each in (0, 1)]
        np.testing.assert_array_equal(exact[0][0, k], np.concatenate(counts))
    np.testing.assert_array_equal(found.noisy_counts_, exact[0])


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_figures_together_cost_epsilon(people, labelled, adjacency, weighted):
    given = {"adjacency": with_n_public(adjacency, N), "epsilon": 0.6}
    if weighted:
        given |= {"sample_weight": np.ones(N), "weight_bound": 1.0}
    factor, grid = 2 if adjacency == "replace_one" else 1, GRID if weighted else 1
    classes, labels = evaluate(None, *people, **{**OF_CLASSES, **given}), evaluate(None, *labelled, **given)
    for found, parts, own in ((classes, PARTS, 3), (labels, 3, 1)):
        event = found.privacy_event_
        assert 0.5999 < found.epsilon_ <= 0.6
        assert event.noise_parameter * event.sensitivity == pytest.approx(0.6 / factor)
        # the scale of the noise, in whole numbers, is what a row adds divided by epsilon
        assert found.noise_deviation_ == pytest.approx(np.sqrt(2) * factor * parts / 0.6 / own, rel=0.01 / grid**0.1)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_normal_noise_has_the_norm_of_what_a_row_adds(people, labelled, exact, adjacency):
    given = {"epsilon": 0.6, "delta": 1e-5, "noise": "gaussian", "adjacency": adjacency}
    X, y = labelled
    one = evaluate(None, X[:, 0], y[:, 0], **given)
    classes, labels = evaluate(None, *people, **{**OF_CLASSES, **given}), evaluate(None, X, y, **given)
    rows = [evaluate(None, each[0][:1], each[1][:1], n_bins=8, **terms) and exact[-1]
            for each, terms in ((people, {**OF_CLASSES, **given}), (labelled, given))]  # fmt: skip
    for found, row, own in ((classes, rows[0], 3), (labels, rows[1], 1)):
        assert found.noise_deviation_ / one.noise_deviation_ == pytest.approx(np.linalg.norm(row) / own, rel=1e-6)


def test_one_row_and_one_unit_move_no_more_than_is_priced(people, labelled, exact):
    groups, by = np.arange(N) // 6, np.arange(N) // 2 % 3
    for (scores, y), terms, parts in ((people, OF_CLASSES, PARTS), (labelled, {"epsilon": 1.0}, 3)):
        near, other = scores.copy(), y.copy()
        near[groups == 3], other[groups == 3] = 1.0 - near[groups == 3], np.roll(y, 1, axis=0)[groups == 3]
        exact.clear()
        for each, labels in ((scores, y), (near, other)):
            evaluate(None, each, labels, groups=groups, by=by, categories=[0, 1], **terms)
        left = np.where(groups == 3, 0.0, 1.0)
        evaluate(None, scores, y, groups=groups, by=by, categories=[0, 1], sample_weight=left, weight_bound=1, **terms)
        assert 0 < np.abs(exact[0] - exact[1]).sum() <= 2 * parts * GRID
        assert parts * GRID - 100 < np.abs(exact[0] - exact[2]).sum() <= parts * GRID
        assert (exact[0] >= exact[2]).all()
        assert exact[0].sum() <= parts * GRID * N // 6


# --- figures ---


def test_figures_are_those_of_scikit_learn_but_for_bins(people, exact):
    scores, y = people
    found = evaluate(None, scores, y, n_bins=32, **OF_CLASSES)
    assert found.accuracy.value == pytest.approx(np.mean(np.array(CLASSES)[scores.argmax(1)] == y))
    assert found.roc_auc.value == pytest.approx(roc_auc_score(y, scores, multi_class="ovr"), abs=1e-3)
    single = np.array(CLASSES) == y[:, None]
    assert found.average_precision.value == pytest.approx(average_precision_score(single, scores), abs=5e-3)
    assert found.log_loss.value == pytest.approx(log_loss(y, scores), abs=5e-3)
    assert found.brier_score.value == pytest.approx(brier_score_loss(y, scores, labels=CLASSES), abs=2e-3)
    assert list(found.each) == CLASSES
    for k, name in ((1, "b"), (3, "d")):
        each = found.each[name]
        assert each.roc_auc.value == pytest.approx(roc_auc_score(y == name, scores[:, k]), abs=2e-3)
        assert each.brier_score.value == pytest.approx(brier_score_loss(y == name, scores[:, k]), abs=2e-3)
        assert each.accuracy(0.3).value == pytest.approx(np.mean((scores[:, k] >= 0.3) == (y == name)), abs=0.01)
        curve = each.calibration_curve(4)
        assert np.abs(curve.y - curve.x).max() < 0.12  # scores are the probabilities
        assert each.positive_rate.value == pytest.approx(np.mean(y == name))


def test_figures_of_labels_are_those_of_scikit_learn_but_for_bins(labelled, exact):
    scores, y = labelled
    frame = pd.DataFrame(y, columns=["smokes", "drinks", "sleeps"])
    found = evaluate(None, scores, frame, epsilon=1.0, n_bins=32)
    assert list(found.each) == found.labels_ == ["smokes", "drinks", "sleeps"]
    assert found.roc_auc.value == pytest.approx(roc_auc_score(y, scores), abs=1e-3)
    assert found.accuracy().value == pytest.approx(np.mean((scores >= 0.5) == y), abs=5e-3)
    losses = [log_loss(y[:, k], scores[:, k]) for k in range(3)]
    assert found.log_loss.value == pytest.approx(np.mean(losses), abs=5e-3)
    assert found.each["drinks"].log_loss.value == pytest.approx(losses[1], abs=0.01)
    assert set(found.summary()) == set(found._summary)


def test_the_deviation_of_a_mean_is_bounded_by_those_of_its_parts(people, labelled, exact):
    for found in (evaluate(None, *people, **OF_CLASSES), evaluate(None, *labelled, epsilon=1.0)):
        parts = [each.roc_auc.sampling_error for each in found.each.values()]
        assert np.linalg.norm(parts) / len(parts) <= found.roc_auc.sampling_error <= 1.01 * np.mean(parts)
        assert found.roc_auc.standard_error >= found.roc_auc.sampling_error


def test_nothing_is_rejected_for_what_rows_are():
    """One class alone, scores that are NaN or beyond 1, an empty subgroup."""
    scores = np.full((60, 4), np.nan)
    scores[:30] = [5.0, -1.0, np.inf, 0.0]
    groups = {"by": [0] * 60, "categories": [1]}
    classes = evaluate(None, scores, ["c"] * 60, **OF_CLASSES, **groups)
    labels = evaluate(None, scores[:, :3], np.zeros((60, 3), int), epsilon=1.0, **groups)
    for found in (classes.subgroups["1"], classes.each["c"], labels, labels.subgroups["1"].each[0]):
        for each in (found.roc_auc, found.average_precision, found.log_loss):
            assert np.isfinite(each).all()
            assert each.low <= each.value <= each.high


def test_a_row_without_scores_is_one_of_the_first_class(exact):
    evaluate(None, np.full((5, 4), np.nan), ["c"] * 5, n_bins=8, **OF_CLASSES)
    assert exact[0][0, 2, 0] == 3 * 5  # predicted to be of the first class
    assert exact[0][0, 2, 4 + 8] == 3 * 5  # in the first bin for its own, and for each other
    assert (exact[0][0, [0, 1, 3], 4] == 5).all()


# --- models ---


def test_models_are_asked_for_all_their_scores(people, labelled, exact):
    scores, y = people
    model = LogisticRegression().fit(scores, y)
    evaluate(model, scores, y, one_vs_rest=True, epsilon=1.0, n_bins=8)
    evaluate(None, model.predict_proba(scores), y, n_bins=8, **OF_CLASSES)
    np.testing.assert_array_equal(*exact)
    exact.clear()
    X, labels = labelled
    many = MultiOutputClassifier(LogisticRegression()).fit(X, labels)
    evaluate(many, X, labels, epsilon=1.0, n_bins=8)
    evaluate(None, np.column_stack([each[:, 1] for each in many.predict_proba(X)]), labels, epsilon=1.0, n_bins=8)
    np.testing.assert_array_equal(*exact)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((N, 3))}, "must have 4 scores per row"),
        ({"X": np.ones((0, 4)), "y": np.zeros(0, int)}, r"0 sample\(s\)"),
        ({"classes": CLASSES[::-1]}, "ascending order"),
        ({"classes": [0, 1]}, "must be False for binary"),
        ({"y_bounds": (0, 1)}, "`one_vs_rest` must be False"),
        ({"y": np.zeros((N, 4), int)}, "`one_vs_rest` must be False"),
        ({"y_bounds": (0, 1), "one_vs_rest": False, "y": np.zeros((N, 4))}, "one column of targets, got 4"),
        ({"y": np.zeros((N, 4), int), "one_vs_rest": False, "classes": ["a"]}, "must name 4 labels"),
        ({"y": np.full((N, 4), 2), "one_vs_rest": False}, "not in classes"),
        ({"model": LogisticRegression().fit(np.eye(3), [0, 1, 2]), "X": np.ones((N, 3)), "classes": None}, "not in cl"),
    ],
)
def test_rejected_in_one_line(people, change, message):
    given = {"model": None, "X": people[0], "y": people[1], **OF_CLASSES, **change}
    with pytest.raises(ValueError, match=message) as rejected:
        evaluate(given.pop("model"), given.pop("X"), given.pop("y"), **given)
    assert "\n" not in str(rejected.value)


def test_a_model_of_one_label_alone_is_rejected(labelled):
    X, y = labelled
    alone = MultiOutputClassifier(DummyClassifier()).fit(X, np.where([True, False, False], 1, y))
    with pytest.raises(ValueError, match="fitted to labels 0 and 1"):
        evaluate(alone, X, y, epsilon=1.0)
