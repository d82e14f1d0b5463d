"""Under add_remove coins may leave a part of a table without rows: it is fitted and scored like any other.

A rejection would come after the charge, and tell how few rows there are. Replayed on neighbors: the part that has one
row in one table has none in the other.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from replay import assert_all_else_is_equal, moves, replay
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

import skdp
from skdp import AddRemove
from skdp.model_selection import cross_validation
from skdp.model_selection.search import PrivateSearch
from skdp.model_selection.whole_fit import WholeFit

N_PUBLIC = 100
ALONE = np.array([False, False, True])  # the last row is alone in its part, and not there in the neighbor
X = np.array([[0.5, -0.3], [-0.2, 0.9], [0.7, 0.4]])
FRAME = pd.DataFrame({"age": X[:, 0], "kind": ["a", "b", "a"]})
Y = np.array([0, 1, 1])
HOUSES = np.array([7, 8, 9])
TERMS = {"epsilon": 1.0, "delta": 1e-5}
SCHEMA = {"age": (-1, 1), "kind": ["a", "b"]}
OWN = {"adjacency": AddRemove(N_PUBLIC)}


def logistic(**given):
    return skdp.DPLogisticRegression(**{"max_iter": 2, "sampling_rate": 1.0, "classes": [0, 1], **OWN, **given})


def trees(**given):
    own = {"n_estimators": 2, "max_depth": 2, "max_iter": 2, "sampling_rate": 1.0, "classes": [0, 1]}
    return skdp.DPRandomTreesClassifier(**own, **OWN, **given)


def scaler():
    return skdp.DPStandardScaler(bounds=(-1, 1), **OWN)


def encoder():
    columns = [("kind", OneHotEncoder(categories=[["a", "b"]]), ["kind"])]
    return ColumnTransformer(columns, remainder="passthrough", sparse_threshold=0)


KINDS = {
    "linear": (logistic, X),
    "linear, a list of rows": (logistic, X.tolist()),
    "network": (lambda: skdp.DPMLPClassifier((3,), max_iter=2, sampling_rate=1.0, classes=[0, 1], **OWN), X),
    "trees": (lambda: trees(bounds=(-1, 1)), X),
    "naive Bayes": (lambda: skdp.DPGaussianNB(bounds=(-1, 1), classes=[0, 1], **OWN), X),
    "ridge": (lambda: skdp.DPRidge(y_bounds=(0, 1), **OWN), X),
    "frames between": (
        lambda: make_pipeline(
            scaler().set_output(transform="pandas"), FunctionTransformer(np.tanh), Normalizer(), logistic()
        ),
        FRAME[["age"]],
    ),
    "public steps before": (lambda: make_pipeline(encoder(), scaler(), logistic()), FRAME),
    "a table of a schema, trees": (lambda: skdp.tabular_pipeline(trees(), schema=SCHEMA), FRAME),
    # what follows cannot be replayed: categories that no row has are in no release, and lots of neighbors differ
    "any table": (lambda: skdp.tabular_pipeline(logistic()), FRAME),
    "categories estimated": (lambda: make_pipeline(skdp.DPOneHotEncoder(**OWN), logistic()), FRAME[["kind"]]),
    "lots": (lambda: logistic(sampling_rate=0.5), X),
}
DRAWN = ["any table", "categories estimated", "lots"]
FITTED_ALONE = ["network", "naive Bayes", "ridge", "categories estimated"]


def made_for(kind, grouped):
    """The estimator, private for houses if they are given."""
    return KINDS[kind][0]()


def neighbors(kind, grouped):
    """All rows with their labels, and the same without the last."""
    rows = KINDS[kind][1]
    groups = HOUSES if grouped else None
    return (rows, Y, groups), (rows[:-1], Y[:-1], groups[:-1] if grouped else None)


def validated(estimator, table):
    rows, y, groups = table
    return cross_validation.cross_validate(
        estimator, rows, y, cv=2, groups=groups, return_estimator=True, random_state=0, **TERMS
    )


def searched(estimator, table):
    rows, y, groups = table
    last = f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""
    own = estimator.get_params()
    name = next(each for each in ("alpha", "bounds", "max_depth", "max_iter") if last + each in own)
    values = {"bounds": [(-1, 1), (-2, 2)], "alpha": [0.1, 1.0]}.get(name, [1, 2])
    search = skdp.DPGridSearchCV(estimator, {last + name: values}, random_state=0, **TERMS)
    return search.fit(rows, y, groups=groups)


def calibrated(estimator, table):
    rows, y, groups = table
    own = {"adjacency": AddRemove(N_PUBLIC), "classes": [0, 1], "random_state": 0}
    return skdp.DPCalibratedClassifier(estimator, **own, **TERMS).fit(rows, y, groups=groups)


@pytest.fixture(params=["the part that trains is empty", "the part that scores is empty"])
def coins(request, monkeypatch):
    """Coins that leave one part of a table without its last row empty."""
    alone = ALONE if request.param.startswith("the part that scores") else ~ALONE
    monkeypatch.setattr(cross_validation, "draw_folds", lambda stream, n, *rest: alone[:n].astype(np.int64))
    monkeypatch.setattr(WholeFit, "split", lambda self, test_size: self.spawn("split") and alone[: self.n_units])
    monkeypatch.setattr(PrivateSearch, "_numbers", lambda self, *given: [1])  # one trial


def assert_neighbors_are_alike(fit, kind, grouped):
    tables = neighbors(kind, grouped)
    if kind in DRAWN:
        found = [SimpleNamespace(found=fit(made_for(kind, grouped), table)) for table in tables]
        assert len({str(each.found.privacy_event_) for each in found}) == 1
        return
    one, other = replay(lambda table: SimpleNamespace(found=fit(made_for(kind, grouped), table)), *tables)
    assert 0 < max(moves(one, other)) <= 1 + 1e-6
    for each in one, other:  # of random names of releases
        for place in [place for place in each.state if place.endswith("['_fitted_inside']")]:
            del each.state[place]
    assert_all_else_is_equal(one, other)


@pytest.mark.parametrize(
    ("kind", "grouped"), [*((kind, False) for kind in KINDS if kind not in FITTED_ALONE), ("linear", True)]
)
@pytest.mark.usefixtures("coins")
def test_a_search_takes_a_part_without_rows(kind, grouped):
    assert_neighbors_are_alike(searched, kind, grouped)


@pytest.mark.parametrize(("kind", "grouped"), [("linear", False), ("public steps before", False), ("trees", True)])
@pytest.mark.parametrize("fit", [validated, calibrated])
@pytest.mark.usefixtures("coins")
def test_folds_and_held_out_rows_may_be_none(fit, kind, grouped):
    assert_neighbors_are_alike(fit, kind, grouped)


@pytest.mark.parametrize("kind", ["linear", "trees", "frames between", "any table", *FITTED_ALONE])
def test_a_fit_takes_a_table_without_rows(kind):
    estimator, rows = KINDS[kind][0](), KINDS[kind][1]
    whole = skdp.allocate_budget(estimator, **TERMS) if hasattr(estimator, "steps") else estimator.set_params(**TERMS)
    if kind in DRAWN:
        assert whole.fit(rows[:0], Y[:0]).epsilon_ <= 1.0
        return
    one, other = replay(lambda table: whole.fit(*table), (rows[-1:], Y[-1:]), (rows[:0], Y[:0]))
    assert 0 < max(moves(one, other)) <= 1 + 1e-6


def test_a_public_step_in_front_rejects_a_table_without_rows_before_the_charge():
    ledger = skdp.PrivacyAccountant()
    steps = make_pipeline(encoder(), logistic(accountant=ledger))
    with pytest.raises(ValueError, match=r"ColumnTransformer raised .* for the rows"):
        skdp.allocate_budget(steps, **TERMS).fit(FRAME[:0], Y[:0])
    assert not ledger.history


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_where_the_number_of_rows_is_public_a_table_has_some(adjacency):
    ledger = skdp.PrivacyAccountant()
    model = skdp.DPLogisticRegression(epsilon=1.0, classes=[0, 1], adjacency=adjacency, accountant=ledger)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(X[:0], Y[:0])
    assert not ledger.history


def test_no_rows_are_scored_and_described():
    own = {"epsilon": 1.0, "adjacency": AddRemove(N_PUBLIC)}
    model = LogisticRegression().fit(X, Y)
    found = skdp.evaluate(model, X[:0], Y[:0], **own)
    assert found.noisy_counts_.shape == skdp.evaluate(model, X, Y, **own).noisy_counts_.shape
    assert skdp.describe(FRAME[:0], schema=SCHEMA, delta=1e-5, **own).epsilon_ <= 1.0
