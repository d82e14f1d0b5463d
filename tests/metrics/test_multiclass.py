"""Private evaluation of more than two classes: the confusion matrix, and what follows from it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, f1_score, recall_score
from sklearn.metrics import precision_score as precision

import skdp
from skdp.metrics import MulticlassEvaluation, evaluate

N = 600
CLASSES = ["a", "b", "c"]


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    y = rng.choice(CLASSES, N, p=[0.5, 0.3, 0.2])
    return np.where(rng.uniform(size=N) < 0.7, y, rng.choice(CLASSES, N)), y


def test_the_table_is_the_confusion_matrix_and_its_figures_are_those_of_scikit_learn(people, exact):
    predicted, y = people
    found = evaluate(None, predicted, y, epsilon=1.0, classes=CLASSES)
    assert isinstance(found, MulticlassEvaluation)
    np.testing.assert_array_equal(exact[0][0], confusion_matrix(y, predicted))
    np.testing.assert_allclose(found.confusion_matrix.value, confusion_matrix(y, predicted))
    assert found.accuracy.value == pytest.approx(accuracy_score(y, predicted))
    assert found.balanced_accuracy.value == pytest.approx(balanced_accuracy_score(y, predicted))
    assert found.macro_f1.value == pytest.approx(f1_score(y, predicted, average="macro"))
    np.testing.assert_allclose(found.recall.value, recall_score(y, predicted, average=None))
    np.testing.assert_allclose(found.precision.value, precision(y, predicted, average=None))
    np.testing.assert_allclose(found.class_prevalences.value, [np.mean(y == each) for each in CLASSES])


def test_one_row_moves_two_counts_and_a_unit_no_more(people, exact):
    predicted, y = people
    near = y.copy()
    near[7] = "a" if y[7] != "a" else "b"
    by = np.arange(N) % 2
    for labels in (y, near):
        evaluate(None, predicted, labels, epsilon=1.0, classes=CLASSES, by=by, categories=[0, 1])
    assert np.abs(exact[0] - exact[1]).sum() == 2
    assert exact[0].shape == (3, 3, 3)


def test_a_model_of_any_library_with_predict(people, exact):
    predicted, y = people
    X = np.array([CLASSES.index(each) for each in predicted])[:, None]
    model = LogisticRegression().fit(X, y)
    found = skdp.evaluate(model, X, y, epsilon=1.0)
    assert found.classes_.tolist() == CLASSES
    np.testing.assert_array_equal(exact[0][0], confusion_matrix(y, model.predict(X)))

    class Rejecting:
        classes_ = model.classes_

        def predict(self, rows):
            if (rows == 2).any():
                raise KeyError("a cell")
            return model.predict(rows)

    evaluate(Rejecting(), X, y, epsilon=1.0)
    np.testing.assert_array_equal(exact[1][0], confusion_matrix(y, np.where(X[:, 0] == 2, "a", model.predict(X))))


@pytest.mark.parametrize(
    ("change", "match"),
    [({"n_bins": 8}, "got 8"), ({"X": ["d"] * N}, "classes"), ({"y": ["d"] * N}, "classes"), ({"X": ["a"]}, "X|y")],
)
def test_rejected_in_one_line(people, change, match):
    predicted, y = people
    given = {"X": predicted, "y": y, "epsilon": 1.0, "classes": CLASSES, **change}
    with pytest.raises(ValueError, match=match) as rejected:
        evaluate(None, given.pop("X"), given.pop("y"), **given)
    assert "\n" not in str(rejected.value)


def test_an_empty_class_is_no_fault():
    found = evaluate(None, ["a"] * 60, ["a"] * 60, epsilon=1.0, classes=CLASSES, by=[0] * 60, categories=[1])
    for figures in (found, *found.subgroups.values()):
        for each in (*figures.summary().values(), figures.recall, figures.precision, figures.class_prevalences):
            assert np.isfinite(each).all()
            assert (np.asarray(each.low) >= 0).all()
            assert (np.asarray(each.high) <= 1).all()


@pytest.mark.parametrize("scores", [np.full((40, 3), 0.25).tolist(), np.full(40, 0.25)])
def test_scores_of_three_classes_ask_for_predictions(scores):
    with pytest.raises(ValueError, match=r"^X must hold one predicted class per row .*one_vs_rest=True"):
        skdp.evaluate(None, scores, [0, 1] * 20, classes=[0, 1, 2], epsilon=1.0)
