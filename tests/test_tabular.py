"""From a raw frame to a private model in one line."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import skdp
from skdp import DPPCA, DPGridSearchCV, DPLogisticRegression, DPMLPClassifier, PrivacyAccountant, tabular_pipeline
from skdp.accounting import EpsilonDeltaDpEvent, flatten
from skdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skdp.preprocessing import TableSchema

SCHEMA = {"age": (18, 90), "job": ["clerk", "nurse", "smith"], "since": ("2000-01-01", "2025-01-01"), "member": "flag"}


def customers(n=3_000, seed=0):
    """Numbers, words, dates, flags and gaps; labels in words."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n).astype(float)
    job = rng.choice(["clerk", "nurse", "smith"], n).astype(object)
    since = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 9_000, n), unit="D")
    member = rng.random(n) < 0.5
    score = (age - 54) / 20 + (job == "nurse") + 0.5 * member + 0.5 * rng.normal(size=n) - 0.5
    frame = pd.DataFrame({"age": age, "job": job, "since": since, "member": member})
    frame.loc[::17, "age"] = np.nan
    frame.loc[::19, "job"] = None
    return frame, np.where(score > 0, "buys", "leaves")


FRAME, LABELS = customers()
CLASSES = ["buys", "leaves"]


@pytest.mark.parametrize("schema", [None, SCHEMA, {"age": (18, 90), "job": "category", "since": "date"}])
def test_from_a_raw_frame_to_predictions(schema):
    schema = TableSchema(schema, others="buy") if schema else None
    with warnings.catch_warnings(action="error"):
        model = tabular_pipeline(schema=schema, epsilon=4.0, classes=CLASSES).fit(FRAME, LABELS)
    new, truth = customers(seed=1)
    assert np.mean(model.predict(new) == truth) > 0.75
    assert 3.99 < model.epsilon_ <= 4.0
    assert model.delta_ == 1e-5  # of 3,000 rows
    assert model.adjacency_ == "zero_out"


def test_a_full_schema_buys_nothing():
    bought = tabular_pipeline(epsilon=1.0, classes=CLASSES).fit(FRAME, LABELS)
    given = tabular_pipeline(schema=SCHEMA, epsilon=1.0, classes=CLASSES).fit(FRAME, LABELS)
    events = [flatten(model.privacy_event_) for model in (bought, given)]
    failing = [[event.delta for event in each if isinstance(event, EpsilonDeltaDpEvent)] for each in events]
    assert failing == [[pytest.approx(1e-7)], []]  # a hundredth of delta, for the categories of `job`
    assert list(bought.step_epsilons_) == ["vectorizer", "model"]
    assert list(given.step_epsilons_) == ["model"]


def test_the_model_knows_the_norm_of_its_rows():
    model = tabular_pipeline(schema=SCHEMA, classes=CLASSES).fit(FRAME, LABELS)[-1]
    assert model.data_norm_ == 2.0  # one 1 in each of four blocks
    assert tabular_pipeline(classes=CLASSES).fit(FRAME, LABELS)[-1].data_norm_ == 2.0


def test_an_instance_keeps_its_parameters_and_shares_those_of_the_unit():
    given = DPMLPClassifier((8,), classes=CLASSES, adjacency="add_remove", n_samples_public=3_000, max_iter=5)
    model = tabular_pipeline(given, epsilon=2.0)
    vectorizer, network = model[0], model[-1]
    assert network is not given
    assert (network.hidden_layer_sizes, network.max_iter) == ((8,), 5)
    assert (vectorizer.adjacency, vectorizer.n_samples_public) == ("add_remove", 3_000)
    model.fit(FRAME, LABELS)
    assert model.adjacency_ == "add_remove"
    assert model.epsilon_ <= 2.0


def test_one_charge_and_none_where_the_ceiling_does_not_admit_it():
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6)
    model = tabular_pipeline(epsilon=2.0, classes=CLASSES, accountant=accountant).fit(FRAME, LABELS)
    assert model.delta_ == 1e-6  # the ledger's
    assert [charge.event for charge in accountant.history] == [model.privacy_event_]
    with pytest.raises(BudgetExceededError):
        tabular_pipeline(epsilon=2.0, classes=CLASSES, accountant=accountant).fit(FRAME, LABELS)
    assert len(accountant.history) == 1


def test_classes_are_never_read_in_silence():
    with pytest.warns(PrivacyLeakWarning, match="classes=None"):
        tabular_pipeline(schema=SCHEMA).fit(FRAME, LABELS)
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6)
    with skdp.config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
        tabular_pipeline(schema=SCHEMA, accountant=accountant).fit(FRAME, LABELS)
    assert len(accountant.history) == 0


def test_it_is_searched_cloned_and_pickled():
    model = tabular_pipeline(DPLogisticRegression(classes=CLASSES), epsilon=3.0)
    search = DPGridSearchCV(clone(model), {"model__learning_rate": [1.0, 20.0]}, epsilon=3.0).fit(FRAME, LABELS)
    assert search.epsilon_ <= 3.0
    assert set(search.predict(FRAME)) <= set(CLASSES)
    again = pickle.loads(pickle.dumps(model.fit(FRAME, LABELS)))
    assert np.array_equal(again.predict(FRAME), model.predict(FRAME))


@pytest.mark.parametrize("estimator", ["regression", LogisticRegression(), DPLogisticRegression, None])
def test_what_is_no_private_estimator_is_refused(estimator):
    with pytest.raises(TypeError, match=r"^estimator=.*give an instance such as .*$"):
        tabular_pipeline(estimator)


@pytest.mark.parametrize("given", [{"classes": CLASSES}, {"accountant": PrivacyAccountant()}])
def test_what_an_instance_has_is_not_given_twice(given):
    model = tabular_pipeline(DPLogisticRegression(), **given)
    (name,) = given
    assert getattr(model[-1], name) == given[name]
    with pytest.raises(ValueError, match=rf"^{name}=.* is not for this estimator"):
        tabular_pipeline(DPLogisticRegression(**given), **given)


def test_a_model_without_classes_takes_none():
    with pytest.raises(ValueError, match=r"^classes=.* is not for this estimator, which has its own or takes none"):
        tabular_pipeline(DPPCA(2), classes=CLASSES)
