"""`class_weight`: public weights of classes, behind the clip."""

import numpy as np
import pytest
from combinations import over_rows
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, DPGridSearchCV, DPLogisticRegression, DPMLPClassifier, PrivacyAccountant, allocate_budget
from skdp._checks.weights import class_weights
from skdp.ensemble import DPRandomTreesClassifier

CLASSES = np.arange(3)
MAKERS = {
    "linear": DPLogisticRegression,
    "network": lambda **own: DPMLPClassifier((4,), max_iter=2, **own),
    "trees": lambda **own: DPRandomTreesClassifier(5, 2, bounds=(-1, 1), max_iter=5, **own),
}
either = over_rows("make", MAKERS.values())


@over_rows(
    ("given", "factors"),
    [
        ({0: 2}, [1.0, 0.5, 0.5]),
        ({0: 0, 1: 1, 2.0: 4}, [0.0, 0.25, 1.0]),
        ({0: 1e-300, 1: 1e30}, [0.0, 1.0, 1.0 / 1e30]),
    ],
)
def test_factors(given, factors):
    assert class_weights(given, CLASSES).tolist() == factors


BAD = {
    "balanced": ("balanced", r"^class_weight='balanced' reads the class proportions .* Pass weights from public class"),
    "a list": ([1.0, 2.0, 3.0], r"^`class_weight` must be a dict .*, got <list>"),
    "another class": ({7: 1.0}, r"^`class_weight` contains 7, which is not one of `classes`"),
    "negative": ({0: -1.0}, r"^`class_weight\[0\]` must be a weight .*, got -1\.0"),
    "nothing": ({0: 0.0, 1: 0.0, 2: 0.0}, r"^`class_weight` is 0 for all classes. Pass at least one"),
}


@either
@over_rows("bad", BAD)
def test_a_bad_weight_is_rejected_before_a_row_is_read(make, bad, draw):
    given, message = BAD[bad]
    X, y = draw(60, n_classes=3)
    accountant = PrivacyAccountant()
    model = make(classes=range(3), class_weight=given, accountant=accountant)
    for fit in (
        lambda: model.fit(np.full_like(X, np.nan), y),
        lambda: allocate_budget(make_pipeline(DPPCA(2), model), 1.0).fit(np.full_like(X, np.nan), y),
        lambda: DPGridSearchCV(model, {"alpha": [0.0, 1.0]}).fit(np.full_like(X, np.nan), y),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            fit()
        assert "\n" not in str(caught.value)
    assert accountant.history == ()


@either
def test_a_rejection_without_named_classes_shows_no_label(make, draw):
    X, _ = draw(60)
    y = np.where(X[:, 0] > 0, "secret one", "secret two")
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match="which is not one of `classes`") as caught:
        make(class_weight={"other": 2.0}, accountant=accountant).fit(X, y)
    assert "secret" not in str(caught.value)
    assert accountant.history == ()


def test_several_labels_a_row_are_rejected():
    X, y = np.zeros((20, 2)), np.eye(2)[np.arange(20) % 2]
    with pytest.raises(
        ValueError, match=r"^`class_weight` is not supported with multilabel targets, got <dict>.*sample_weight"
    ):
        DPMLPClassifier((2,), class_weight={0: 2.0}).fit(X, y)


@either
def test_a_row_has_the_product_of_its_weights(make, draw):
    X, y = draw(60, n_classes=3)
    given = np.random.default_rng(0).uniform(0, 1, 60)
    weights = {0: 4.0, 2: 0.0}
    options = {"classes": range(3), "random_state": 0}
    one = make(class_weight=weights, **options).fit(X, y, given)
    other = make(**options).fit(X, y, given * np.array([1.0, 0.25, 0.0])[y])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.privacy_event_ == other.privacy_event_


@either
def test_a_row_has_no_say_in_the_weight_of_another(make, draw):
    """Any label for any row, the last of its class among them; or one row fewer."""
    _, y = draw(30, n_classes=3)
    y[y == 0] = 1
    y[3] = 0
    model = make(classes=CLASSES, class_weight={0: 9.0, 1: 2.0})
    outputs = model._target().named
    before = model._target().encode(y, None, 30, outputs).weights
    for row in range(30):
        others = np.arange(30) != row
        for label in range(3):
            changed = y.copy()
            changed[row] = label
            after = model._target().encode(changed, None, 30, outputs).weights
            np.testing.assert_array_equal(after[others], before[others])
        fewer = model._target().encode(y[others], None, 29, outputs).weights
        np.testing.assert_array_equal(fewer, before[others])
