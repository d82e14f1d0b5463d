"""Units of several rows in searches, displays and compositions."""

import pickle

import numpy as np
import pytest
import sklearn
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, replay
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, TargetEncoder
from unit_rows import rows_and_unit, without_the_unit

from skdp import (
    DPPCA,
    AddRemove,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomizedSearchCV,
    DPStandardScaler,
    PrivacyAccountant,
    allocate_budget,
    privacy_report,
)
from skdp._checks.groups import Units
from skdp.base.fit import units_of
from skdp.model_selection import PrivateScore

GRID = {"alpha": [0.0, 0.1]}


def model(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 8, "weight_bound": 1.0, **parameters})


def search(estimator=None, **parameters):
    given = {"epsilon": 1.0, "delta": 1e-4, "strategy": "compose", **parameters}
    return DPGridSearchCV(model() if estimator is None else estimator, GRID, **given)


def table(size, *, opposite=False):
    """Rows of other units, and then `size` rows of one unit, which are copies or of both classes."""
    return rows_and_unit(size, "opposite" if opposite else "copies", np.random.default_rng(size), n_columns=3)


# --- searches ---


@pytest.mark.parametrize(("size", "opposite"), [(1, False), (1000, True)])
def test_a_unit_trains_or_scores_and_moves_releases_by_their_sensitivity(size, opposite):
    # A fifth of the units score: in one of 4 cases 75 splits all miss that with a probability of 4 * 0.8**75 < 1e-6.
    given, parts, seed = table(size, opposite=opposite), set(), 0
    while seed < 6 or (len(parts) < 2 and seed < 75):
        made, seed = search(random_state=seed), seed + 1
        one, other = replay(
            lambda rows, made=made: made.fit(*rows[:2], sample_weight=rows[2], groups=rows[3]),
            given,
            without_the_unit(*given),
        )
        found = moves(one, other)
        of_two = [i for i, each in enumerate(one.releases) if each.exact.shape == (2,)]
        (at,) = [i for i in of_two if one.releases[i].sensitivity == 0.5]  # scores of both candidates, not class counts
        assert max(found[:at] + found[at + 1 :]) <= 1.0 + 1e-6
        assert np.abs(one.releases[at].exact - other.releases[at].exact).max() <= 0.5 + 1e-12
        trains, scores = max(found[:at]) > 1e-9, found[at] > 1e-9
        assert not (trains and scores)
        parts.add("trains" if trains else "scores" if scores else "ties")
        assert_all_else_is_equal(one, other)
    assert parts == {"trains", "ties" if opposite and size > 1 else "scores"}


@pytest.mark.parametrize(("adjacency", "refit"), [("zero_out", True), ("add_remove", False), ("replace_one", True)])
def test_the_price_is_that_of_as_many_rows(adjacency, refit):
    X, y, _, _ = table(50)
    twice = np.repeat(np.arange(len(X)), 2)
    by_row = search(model(adjacency=with_n_public(adjacency, 200)), refit=refit).fit(X, y)
    by_unit = search(model(adjacency=with_n_public(adjacency, 200)), refit=refit).fit(X[twice], y[twice], groups=twice)
    assert by_unit.privacy_event_ == by_row.privacy_event_
    assert by_unit.score_noise_ == by_row.score_noise_
    assert (by_row.privacy_unit_, by_unit.privacy_unit_, by_unit.best_estimator_.privacy_unit_) == (
        "row", "group", "group",
    )  # fmt: skip


@pytest.mark.parametrize("strategy", ["compose", "random_stopping"])
def test_units_of_one_row_give_the_search_of_rows(strategy):
    X, y, _, _ = table(50)
    found = [search(strategy=strategy, random_state=1).fit(X, y, groups=g) for g in (None, np.arange(len(X)))]
    np.testing.assert_allclose(*(each.cv_results_["mean_test_score"] for each in found), rtol=1e-9)
    np.testing.assert_allclose(*(each.predict_proba(X) for each in found), rtol=1e-9)


def test_a_score_is_the_mean_over_units():
    """The divisor is their number: with that of rows a perfect score would be nearer to the middle."""
    X, y, _, _ = table(50)
    score = PrivateScore("right", lambda model, X, y: np.ones(len(X)), 1.0)
    thrice = np.repeat(np.arange(len(X)), 3)
    found = search(random_state=1, epsilon=1e3, scoring=score).fit(X[thrice], y[thrice], groups=thrice)
    assert found.best_score_ == pytest.approx(1.0, abs=6 * found.score_noise_)
    assert found.score_noise_ < 0.01


def test_what_the_rows_of_a_unit_add_to_a_score_is_cut_off_together():
    score = PrivateScore("given", lambda model, X, y: X[:, 0], 1.0)
    X, y = np.array([[1.0], [1.0], [0.0], [1.0], [0.0], [1.0], [0.25]]), np.zeros(7)
    units = Units(np.array([0, 0, 0, 1, 1, 2, 3]), 4)
    # The room for rounding is 1.5e-11 of a squared reach of 1.5, and a unit that is cut has the norm 0.5.
    assert score.total(None, X, y, units=units) == pytest.approx(0.5 + 0.0 + 0.5 - 0.25, abs=1e-10)
    many = Units(np.zeros(1000, int), 1)
    assert score.total(None, np.ones((1000, 1)), np.zeros(1000), units=many) == pytest.approx(0.5, abs=1e-9)
    halves = np.full(1000, 0.5)
    assert score.total(None, np.ones((1000, 1)), np.zeros(1000), halves, many) <= 0.5


def test_a_unit_whose_rows_cannot_be_predicted_is_cut_off_together():
    def rejecting(model, X, y):
        if np.any(X[:, 0] > 0):
            raise ValueError("a row")
        return np.ones(len(X))

    X, units = np.array([[1.0], [0.0]] * 4), Units(np.array([0, 1] * 4), 2)
    assert PrivateScore("bad", rejecting, 1.0).total_of_all(None, X, np.zeros(8), units=units) == pytest.approx(0.0)
    alone = Units(np.zeros(4, int), 1)
    assert PrivateScore("bad", rejecting, 1.0).total_of_all(None, X[::2], np.zeros(4), units=alone) >= -0.5


def test_no_splitter_of_others_splits_the_rows_of_a_budgeted_search():
    """None is taken, and nothing that has one of its own."""
    with pytest.raises(TypeError, match="cv"):
        search(cv=KFold(2))
    with pytest.raises(TypeError, match="no parameter 'cv'"):
        search().set_params(cv=KFold(2))
    X, y, _, labels = table(20)
    inside = [CalibratedClassifierCV(model(), cv=KFold(2)), make_pipeline(TargetEncoder(cv=2), model())]
    for estimator in inside:
        ledger = PrivacyAccountant(unit="household")
        estimator.set_params(**{f"{name}__accountant": ledger for name, part in estimator.get_params().items()
                                if isinstance(part, DPLogisticRegression)})  # fmt: skip
        with pytest.raises(ValueError, match=r"must be a private estimator|targetencoder"):
            search(estimator).fit(X, y, groups=labels)
        assert not ledger.history


def test_weights_have_one_public_bound_for_all_steps_of_all_candidates():
    X, y, weights, labels = table(20)

    def fit(of_scaler, of_model):
        ledger = PrivacyAccountant(unit="household")
        scaler = DPStandardScaler((-1, 1), weight_bound=of_scaler, accountant=ledger)
        pipeline = make_pipeline(scaler, model(weight_bound=of_model, accountant=ledger))
        made = DPGridSearchCV(pipeline, {"dplogisticregression__alpha": [0.0, 0.1]}, strategy="compose", delta=1e-4)
        try:
            made.fit(X, y, sample_weight=weights, groups=labels)
        finally:
            assert len(ledger.history) == (of_scaler == of_model)

    fit(2.0, 2.0)
    for of_scaler, of_model, named in (
        (1.0, 2.0, "1.0 for DPStandardScaler"), (None, 2.0, "None for DPStandardScaler"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"in a search with weights, got {named}"):
            fit(of_scaler, of_model)


def test_bad_labels_are_rejected_before_the_charge_and_recorded():
    X, y, _, labels = table(20)
    ledger = PrivacyAccountant(5.0, 1e-4, unit="household")
    with pytest.raises(ValueError, match=r"`groups` must have shape"):
        search(model(accountant=ledger)).fit(X, y, groups=labels[:-1])
    with pytest.raises(ValueError, match=r"unit='row' cannot be charged"):
        search(model(accountant=ledger)).fit(X, y)
    assert [(entry.kind, entry.label) for entry in ledger.entries] == [("rejection", "DPGridSearchCV")]


def test_a_report_tells_of_the_partition_and_of_the_owners_assumption():
    X, y, _, labels = table(20)
    ledger = PrivacyAccountant(2.0, 1e-4, unit="household")
    january = ledger.partition("2026-01", rule="month of first admission")
    for accountant, told in ((ledger, None), (january, ("2026-01", "month of first admission"))):
        report = privacy_report(model(accountant=accountant).fit(X, y, groups=labels))
        stated = report.to_dict()["guarantee"]
        assert (stated["partition"], stated["partition_rule"]) == (told or (None, None))
        assert ("partition `2026-01`, by the rule `month of first admission`" in str(report)) == (told is not None)
        assert ("assumption of the data owner" in " ".join(str(report).split())) == (told is not None)


# --- compositions of others ---

TWICE = {"cv": GroupKFold(2), "error_score": "raise"}
DROPPING = {
    "grid": lambda m, X, y, g: GridSearchCV(m, GRID, **TWICE).fit(X, y, groups=g),
    "pipeline": lambda m, X, y, g: make_pipeline(FunctionTransformer(), m).fit(X, y),
    "one versus rest": lambda m, X, y, g: OneVsRestClassifier(m).fit(X, y),
    "columns": lambda m, X, y, g: ColumnTransformer([("m", DPStandardScaler((-1, 1), accountant=m.accountant), [0])])
    .fit(X, y),
}  # fmt: skip
"""Those that do not hand groups on, in the default setting of scikit-learn."""
ROUTING = {
    "grid": lambda m, X, y, g: GridSearchCV(m, GRID, **TWICE).fit(X, y, groups=g),
    "pipeline": lambda m, X, y, g: make_pipeline(FunctionTransformer(), m).fit(X, y, groups=g),
    "bagged pipelines": lambda m, X, y, g: BaggingClassifier(make_pipeline(m), 2).fit(X, y, groups=g),
    "one versus rest": lambda m, X, y, g: OneVsRestClassifier(m).fit(X, y, groups=g),
}
"""Those that do, where scikit-learn is told to."""


@pytest.mark.parametrize("name", DROPPING)
def test_a_ledger_of_households_rejects_fits_without_their_groups(name):
    X, y, _, labels = table(20)
    ledger = PrivacyAccountant(unit="household")
    with pytest.raises(ValueError, match=r"unit='row' cannot be charged to an accountant of unit='household'"):
        DROPPING[name](model(accountant=ledger), X, y, labels)
    assert not ledger.history


@pytest.mark.parametrize("name", ROUTING)
def test_groups_that_are_routed_reach_each_fit_with_their_rows(name, monkeypatch):
    X, y, _, labels = table(20)
    X[:, 0] = labels / 100
    seen = []

    def looking(work, rows, groups, account=None):
        found = units_of(work, rows, groups, account)
        seen.append((np.asarray(rows)[:, 0], found[1].codes))
        return found

    monkeypatch.setattr("skdp.base.fit.units_of", looking)
    ledger = PrivacyAccountant(unit="household")
    with sklearn.config_context(enable_metadata_routing=True):
        ROUTING[name](model(accountant=ledger).set_fit_request(groups=True), X, y, labels)
    assert len(seen) == len(ledger.history) > 0
    for of_row, codes in seen:
        pairs = set(zip(of_row.tolist(), codes.tolist(), strict=True))
        assert len(pairs) == len(set(of_row.tolist())) == max(codes) + 1


def test_a_budgeted_pipeline_takes_groups_for_all_of_its_steps():
    X, y, _, labels = table(20)
    ledger = PrivacyAccountant(unit="household")
    steps = DPStandardScaler((-1, 1), accountant=ledger), model(accountant=ledger)
    made = allocate_budget(make_pipeline(*steps), 1.0, 1e-4)
    with pytest.raises(ValueError, match="got groups for step 'dplogisticregression'"):
        made.fit(X, y, groups=labels, dplogisticregression__groups=labels)
    assert not ledger.history
    assert made.fit(X, y, groups=labels).privacy_unit_ == "group"
    assert len(ledger.history) == 1


@pytest.mark.parametrize("second", [lambda: DPPCA(1), model])
def test_a_budgeted_pipeline_takes_the_public_number_of_groups(second):
    X, y, _, labels = table(20)
    terms = {"adjacency": AddRemove(100)}
    steps = DPStandardScaler((-1, 1)), DPPCA(1), second()
    made = allocate_budget(make_pipeline(*(step.set_params(**terms) for step in steps)), 1.0, 1e-4)
    made.fit(X, y, groups=labels)
    assert (made.privacy_unit_, privacy_report(made).to_dict()["guarantee"]["n_units_public"]) == ("group", 100)


def test_tries_in_processes_and_pickled_plans_keep_the_unit():
    X, y, _, labels = table(20)
    found = DPRandomizedSearchCV(model(), GRID, n_iter=2, strategy="compose", delta=1e-4, n_jobs=2)
    found.fit(X, y, groups=labels)
    again = pickle.loads(pickle.dumps(found))
    for each in (found, again):
        assert (each.privacy_unit_, each.best_estimator_.privacy_unit_) == ("group", "group")
        assert {release.unit for release in each._fitted_releases} == {"group"}
