"""The neighboring relation of estimators, pipelines and accountants, and `skdp.AddRemove`."""

import pickle

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from unread import UnreadTable

import skdp
from skdp import AddRemove, PrivacyAccountant, Risk
from skdp.model_selection import private_train_test_split

X = np.random.default_rng(0).uniform(-1.0, 1.0, (600, 3))
Y = (X[:, 0] > 0.0).astype(int)


def logistic(**parameters):
    return skdp.DPLogisticRegression(**{"classes": [0, 1], "max_iter": 5, "delta": 1e-5, **parameters})


def test_stated_values_clone_pickle_and_are_frozen():
    model = logistic(adjacency=AddRemove(np.int64(700)), epsilon=Risk(advantage=0.2))
    for copied in (clone(model), pickle.loads(pickle.dumps(model))):
        assert (copied.adjacency, copied.epsilon) == (AddRemove(700), Risk(advantage=0.2))
    assert repr((model.adjacency, model.epsilon)) == "(AddRemove(n_public=700), Risk(advantage=0.2))"
    with pytest.raises(AttributeError):
        model.adjacency.n_public = 3


def test_stated_values_are_kept_by_skops_and_by_charges(tmp_path):
    io = pytest.importorskip("skops.io")
    ledger = PrivacyAccountant(3.0, 1e-5, path=tmp_path / "rows.budget")
    model = logistic(adjacency=AddRemove(700), epsilon=Risk(advantage=0.2), accountant=ledger).fit(X, Y)
    read = io.loads(io.dumps(model), trusted=skdp.export.skops_types())
    assert (read.adjacency, read.epsilon, read.adjacency_) == (AddRemove(700), Risk(advantage=0.2), "add_remove")
    (charge,) = PrivacyAccountant.open(ledger.path).history
    assert charge.adjacency == "add_remove"
    assert charge.parameters["adjacency"] == {"n_public": 700}
    assert charge.parameters["epsilon"] == {"advantage": 0.2}
    assert "AddRemove(n_public=700)" in str(skdp.privacy_report(model).to_dict()["public"]["parameters"])


@pytest.mark.parametrize("adjacency", [None, "replace_one", AddRemove(600)])
def test_cross_val_score_runs_in_processes(adjacency):
    assert len(cross_val_score(logistic(adjacency=adjacency), X, Y, cv=2, n_jobs=2)) == 2


def test_accountants_take_a_relation_without_a_number():
    with pytest.raises(ValueError, match=r"must be 'add_remove' here, .* Pass AddRemove to estimators only\.$"):
        PrivacyAccountant(adjacency=AddRemove(600))


def test_adjacency_none_is_that_of_the_accountant():
    ledger = PrivacyAccountant(adjacency="replace_one")
    model = logistic(accountant=ledger, epsilon=2.0).fit(X, Y)
    pipeline = make_pipeline(skdp.DPPCA(2), logistic(accountant=ledger))
    whole = skdp.allocate_budget(pipeline, 1.0).fit(X, Y)
    search = skdp.DPGridSearchCV(logistic(accountant=ledger), {"alpha": [0.0, 0.1]}, epsilon=3.0).fit(X, Y)
    calibrated = skdp.DPCalibratedClassifier(logistic(), accountant=ledger).fit(X, Y)
    for each in (model, whole, search, calibrated):
        assert each.adjacency_ == "replace_one"
    assert {charge.adjacency for charge in ledger.history} == {"replace_one"}
    assert model.noise_multiplier_ > logistic(epsilon=2.0).fit(X, Y).noise_multiplier_
    assert model.adjacency is None


def test_without_the_accountant_a_stated_adjacency_stays_and_none_is_zero_out():
    ledger = PrivacyAccountant(adjacency="replace_one")
    stated = logistic(accountant=ledger, adjacency="replace_one").set_params(accountant=None)
    assert stated.adjacency == "replace_one"
    free = logistic(accountant=ledger).set_params(accountant=None).fit(X, Y)
    assert free.adjacency_ == "zero_out"
    assert skdp.privacy_report(free).to_dict()["guarantee"]["adjacency"] == "zero_out"


@over_rows(
    "adjacency, relation, message",
    [
        ("zero_out", "replace_one", "adjacency='zero_out' cannot be mixed with 'replace_one'"),
        (AddRemove(600), "zero_out", "adjacency='add_remove' cannot be mixed with 'zero_out'"),
        (None, "add_remove", r"adjacency='add_remove' requires .* Set adjacency=skdp\.AddRemove"),
        ("add_remove", None, r"adjacency='add_remove' requires .* Set adjacency=skdp\.AddRemove"),
    ],
)
def test_adjacency_that_differs_raises_before_rows_are_read(adjacency, relation, message):
    ledger = PrivacyAccountant(adjacency=relation)
    with pytest.raises(ValueError, match=message) as error:
        logistic(accountant=ledger, adjacency=adjacency).fit(UnreadTable(*X.shape), Y)
    assert "\n" not in str(error.value)
    assert not ledger.history


@over_rows("first, second", [(AddRemove(10), AddRemove(20)), (None, AddRemove(20)), ("replace_one", None)])
def test_pipeline_whose_steps_differ_raises(first, second):
    steps = make_pipeline(skdp.DPPCA(2, adjacency=first), logistic(adjacency=second))
    with pytest.raises(
        ValueError, match=r"\A`adjacency` must be the same for all steps, got different values in .*\.\Z"
    ):
        skdp.allocate_budget(steps, 1.0)


FEW = {
    "least squares": skdp.DPLinearRegression(y_bounds=(0, 1), inference=True, data_norm=2.0),
    "Newton steps": skdp.DPPoissonRegressor((0, 3), data_norm=2.0),
    "class mixture": skdp.DPClassMixtureGenerator(bounds=(-1, 1)),
    "marginals": skdp.DPMarginalSynthesizer({name: (-1, 1) for name in "abc"}),
    "network": skdp.DPWGAN(bounds=(-1, 1), max_iter=2),  # the last one: it takes no groups
}


@over_rows(
    "kind, with_groups", [*((kind, False) for kind in FEW), *((kind, True) for kind in FEW if kind != "network")]
)
def test_few_private_records_are_fitted_under_add_remove(kind, with_groups):
    """A rejection would tell a table of one record from one of two: one record decides on it."""
    for n in (0, 1, 2):
        model, rows = (
            clone(FEW[kind]).set_params(adjacency=AddRemove(250), delta=1e-5),
            pd.DataFrame(X[:n], columns=[*"abc"]),
        )
        labels = [np.zeros(n)] if hasattr(model, "predict") else []
        model.fit(rows, *labels, **({"groups": np.arange(n)} if with_groups else {}))
        assert model.epsilon_ <= 1.0


def test_parts_of_a_split_have_public_numbers_of_their_own():
    groups = np.arange(600) // 2
    ledger = PrivacyAccountant(5.0, 1e-5, unit="person")
    train, test = private_train_test_split(X, Y, groups=groups, test_size=0.2, accountant=ledger)
    given = {"adjacency": AddRemove(240), "accountant": train.accountant}
    model = logistic(**given).fit(train.X, train.y, groups=train.groups)
    found = skdp.evaluate(
        model, test.X, test.y, groups=test.groups, epsilon=1.0, adjacency=AddRemove(60), accountant=test.accountant
    )
    assert (model.adjacency_, found.adjacency_) == ("add_remove", "add_remove")
    assert [charge.parameters["adjacency"] for charge in ledger.history] == [{"n_public": 240}, {"n_public": 60}]
