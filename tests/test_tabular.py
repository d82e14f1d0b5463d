"""From a raw frame to a private model in one line."""

import pickle
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from combinations import over_combinations, over_rows
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp import (
    AddRemove,
    DPGaussianNB,
    DPGridSearchCV,
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPRidge,
    PrivacyAccountant,
    allocate_budget,
    tabular_pipeline,
)
from skdp._checks.table import Table
from skdp.accounting import EpsilonDeltaDpEvent, flatten
from skdp.ensemble import DPRandomTreesRegressor
from skdp.exceptions import BudgetExceededError, PrivacyLeakWarning
from skdp.preprocessing import DPTableVectorizer, TableSchema

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
    return frame, np.where(score > 0, "estimates", "leaves")


FRAME, LABELS = customers()
CLASSES = ["estimates", "leaves"]


@pytest.mark.parametrize("schema", [None, {"age": (18, 90), "job": "category", "since": "date"}])
def test_from_a_raw_frame_to_predictions(schema):
    schema = TableSchema(schema, others="estimate") if schema else None
    with warnings.catch_warnings(action="error"):
        model = tabular_pipeline(schema=schema, epsilon=4.0, classes=CLASSES).fit(FRAME, LABELS)
    new, truth = customers(seed=1)
    assert np.mean(model.predict(new) == truth) > 0.75
    assert 3.99 < model.epsilon_ <= 4.0
    assert model.delta_ == 1e-5  # of 3,000 rows
    assert model.adjacency_ == "zero_out"


def to_arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


LIBRARIES = {"polars": pl.from_pandas, "Arrow": to_arrow, "DuckDB": lambda frame: duckdb.from_arrow(to_arrow(frame))}


@over_rows("library", LIBRARIES)
def test_frames_of_all_libraries_give_the_results_of_pandas(library):
    """For one seed: a model of a raw table with groups, a vectorizer, a description and an evaluation."""
    kind = LIBRARIES[library]
    new, truth = customers(200, seed=1)

    def results(kind):
        settings = {"epsilon": 4.0, "random_state": 0}
        persons = FRAME.assign(person=np.arange(len(FRAME)) // 2)
        model = tabular_pipeline(classes=CLASSES, **settings).fit(kind(persons), LABELS, groups="person")
        rows = DPTableVectorizer(**settings).fit(kind(FRAME)).transform(kind(new)).toarray()
        found = skdp.describe(kind(FRAME), **settings)
        labeled = kind(new.assign(label=truth, person=range(200)))
        score = skdp.evaluate(model, labeled, "label", groups="person", **settings)
        return model.predict_proba(kind(new)), rows, repr(found), repr(score), model.predict(kind(persons[:9]))

    for found, expected in zip(results(kind), results(lambda frame: frame), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_lazy_frame_is_rejected_before_the_charge():
    lazy = pl.from_pandas(FRAME).lazy()
    accountant = PrivacyAccountant(epsilon=9.0, delta=1e-5)
    settings = {"epsilon": 1.0, "accountant": accountant}
    for call in (
        lambda: tabular_pipeline(classes=CLASSES, **settings).fit(lazy, LABELS),
        lambda: DPTableVectorizer(**settings).fit(lazy),
        lambda: DPLogisticRegression(classes=CLASSES, **settings).fit(lazy, LABELS),
        lambda: skdp.synthesize(lazy, **settings),
        lambda: skdp.describe(lazy, **settings),
        lambda: skdp.private_train_test_split(lazy, LABELS, accountant=accountant),
    ):
        with pytest.raises(TypeError, match=r"^X must be an in-memory table, got a lazy LazyFrame\. Pass .* X.collect"):
            call()
    assert accountant.remaining() == 9.0


def test_full_schema_spends_on_bins_alone():
    estimated = tabular_pipeline(epsilon=1.0, classes=CLASSES).fit(FRAME, LABELS)
    given = tabular_pipeline(schema=SCHEMA, epsilon=1.0, classes=CLASSES).fit(FRAME, LABELS)
    events = [flatten(model.privacy_event_) for model in (estimated, given)]
    failing = [[event.delta for event in each if isinstance(event, EpsilonDeltaDpEvent)] for each in events]
    assert failing == [[pytest.approx(1e-7)], []]  # a hundredth of delta, for the categories of `job`
    assert list(estimated.step_epsilons_) == ["vectorizer", "model"]
    assert list(given.step_epsilons_) == ["vectorizer", "model"]  # 5 % of mu^2 for bins within bounds
    assert given.step_epsilons_["vectorizer"] < 0.6 * estimated.step_epsilons_["vectorizer"]
    without = tabular_pipeline(schema=SCHEMA, epsilon=1.0, classes=CLASSES).set_params(vectorizer__fit_bins=False)
    assert list(without.fit(FRAME, LABELS).step_epsilons_) == ["model"]


def test_an_instance_keeps_its_parameters_and_shares_those_of_the_unit():
    given = DPMLPClassifier((8,), classes=CLASSES, adjacency=AddRemove(3_000), max_iter=5)
    model = tabular_pipeline(given, epsilon=2.0)
    vectorizer, network = model[0], model[-1]
    assert network is not given
    assert (network.hidden_layer_sizes, network.max_iter) == ((8,), 5)
    assert vectorizer.adjacency == AddRemove(3_000)
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
    with pytest.warns(PrivacyLeakWarning, match="`classes` was not set"):
        tabular_pipeline(schema=SCHEMA).fit(FRAME, LABELS)
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6)
    with skdp.config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
        tabular_pipeline(schema=SCHEMA, accountant=accountant).fit(FRAME, LABELS)
    assert len(accountant.history) == 0


@over_rows(
    ("estimator", "given", "message"),
    [
        *(
            (bad, {}, r"^`estimator` must be .* an instance of a private estimator, such as .*$")
            for bad in ("regression", LogisticRegression(), None)
        ),
        (DPLogisticRegression, {}, r"^`estimator` must be .* an instance of a private estimator, such as .*$"),
        (
            DPLogisticRegression(classes=CLASSES),
            {"classes": CLASSES},
            r"^classes=.* is not supported for this estimator",
        ),
        ("regressor", {"classes": [0, 1]}, r"\Aclasses=[^\n]* is not supported for [^\n]*Remove it here\.\Z"),
        (DPGaussianNB(), {"class_weight": {0: 1.0}}, r"\Aclass_weight=[^\n]* is not supported for this estimator"),
    ],
)
def test_tabular_pipeline_argument_not_for_estimator_raises(estimator, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tabular_pipeline(estimator, **given)


# --- regressors -------------------------------------------------------------------------------------------------------

SPENT = np.where(FRAME["job"] == "nurse", 60.0, 20.0) + FRAME["age"].fillna(50.0).to_numpy() / 5
BOUNDS = (0, 100)


@pytest.mark.parametrize("schema", [None, {"age": (18, 90), "job": "category", "since": "date"}])
def test_from_a_raw_frame_to_numbers(schema):
    schema = TableSchema(schema, others="estimate") if schema else None
    with warnings.catch_warnings(action="error"):
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # of the seed
        model = tabular_pipeline("regressor", schema=schema, epsilon=4.0, y_bounds=BOUNDS, random_state=0)
        model.fit(FRAME, SPENT)
    assert isinstance(model[-1], DPRandomTreesRegressor)
    assert model[0].numbers == "codes"
    assert model.score(FRAME, SPENT) > 0.9
    assert 3.99 < model.epsilon_ <= 4.0
    assert model[-1].y_bounds_ == (0.0, 100.0)


NUMBERS = {"a": (0, 1), "b": {"bounds": (0, 1), "scale": "log"}, "c": "number"}


def numbers(n=600, **others):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.uniform(0, 1, n) for name in "abc"})
    return frame.assign(**{name: column[:n] for name, column in others.items()})


def chosen_for(X, *, n_public=1e6, schema=None, epsilon=1.0, **parameters):
    """The kind of model that a fit would choose: of no row, as it is asked for its plan alone."""
    model = tabular_pipeline("regressor", schema=schema, y_bounds=(0, 1), epsilon=epsilon)
    public = AddRemove(int(n_public))
    model.set_params(model__adjacency=public, vectorizer__adjacency=public, **parameters)
    model._settle_steps(X, len(X))
    assert model[0].numbers == {DPMLPRegressor: "scale", DPRandomTreesRegressor: "codes"}[type(model[-1])]
    return type(model[-1])


WITH_GAPS = numbers().mask(numbers() < 0.1)
LISTED = {"kind": "number", "bounds": (0, 1)}


@pytest.mark.parametrize(
    ("X", "schema", "chosen"),
    [
        (numbers(), None, DPMLPRegressor),
        (numbers().to_numpy().tolist(), None, DPMLPRegressor),  # a list of rows has no types
        (WITH_GAPS.convert_dtypes(), None, DPMLPRegressor),
        (numbers(d=FRAME["job"]), TableSchema({"d": "drop"}, others="estimate"), DPMLPRegressor),
        (numbers(d=FRAME["age"].astype(object)), {**NUMBERS, "d": LISTED}, DPMLPRegressor),  # what is named is known
        (numbers(d=FRAME["age"].astype(object)), None, DPRandomTreesRegressor),  # whatever its cells are
        (numbers(d=FRAME["job"]), None, DPRandomTreesRegressor),
        (numbers(), {"a": (0, 1), "b": (0, 1), "c": [0, 1]}, DPRandomTreesRegressor),
        (numbers(d=np.arange(600)), None, DPMLPRegressor),  # one of four may be codes
        (numbers(d=np.arange(600), e=np.arange(600)), None, DPRandomTreesRegressor),
        (numbers().astype(np.int64), None, DPRandomTreesRegressor),
    ],
)
def test_numbers_alone_are_for_a_network(X, schema, chosen, monkeypatch):
    monkeypatch.setattr(Table, "cells", lambda self, j: pytest.fail("a cell was read"))
    assert chosen_for(X, schema=schema) is chosen


@pytest.mark.parametrize(
    ("n_public", "epsilon", "chosen"),
    [(19_000, 0.1, DPMLPRegressor), (21_000, 0.1, DPRandomTreesRegressor), (2_100, 1.0, DPRandomTreesRegressor)],
)
def test_where_noise_rules_numbers_of_three_quarters_are_enough(n_public, epsilon, chosen):
    mostly, half = numbers(d=FRAME["job"]), numbers(d=FRAME["job"], e=FRAME["member"])
    assert chosen_for(mostly, n_public=n_public, epsilon=epsilon) is chosen
    assert chosen_for(half, n_public=n_public, epsilon=epsilon) is DPRandomTreesRegressor


def test_one_row_does_not_choose_the_model_where_their_number_is_private():
    X = numbers(2_001, d=FRAME["job"])
    found = {}
    for n_public in (1_990, 2_010):
        model = tabular_pipeline("regressor", y_bounds=(0, 1))
        model.set_params(model__adjacency=AddRemove(n_public), vectorizer__adjacency=AddRemove(n_public))
        for n in (1_999, 2_001):
            settled = clone(model)
            settled._settle_steps(X[:n], n)
            found.setdefault(n_public, set()).add(type(settled[-1]))
    assert found == {1_990: {DPMLPRegressor}, 2_010: {DPRandomTreesRegressor}}


def test_each_fit_chooses_and_keeps_what_is_of_the_fit():
    accountant = PrivacyAccountant()
    model = tabular_pipeline("regressor", y_bounds=(0, 1), epsilon=4.0, accountant=accountant)
    model.set_params(vectorizer__n_bins=8)
    plain, mixed = numbers(), numbers(d=FRAME["job"])
    for X, chosen in ((plain, DPMLPRegressor), (mixed, DPRandomTreesRegressor), (plain, DPMLPRegressor)):
        again = pickle.loads(pickle.dumps(clone(model)))
        model.fit(X, X["a"])
        assert type(model.named_steps["model"]) is chosen
        assert model[-1].y_bounds == (0, 1)
        assert model[-1].accountant is accountant
        assert model[0].n_bins == 8
        assert 3.99 < model.epsilon_ <= 4.0
        assert [charge.event for charge in accountant.history][-1] == model.privacy_event_
        assert accountant.history[-1].parameters["steps"]["model"] == chosen.__name__
        assert len(model.predict(X)) == len(X)
        sent = pickle.loads(pickle.dumps(model))
        assert np.array_equal(sent.predict(X), model.predict(X))
        again.set_params(model__accountant=None).fit(X, X["a"])  # of another choice, or of none
        assert type(again[-1]) is chosen


def test_a_model_whose_parameters_are_set_stays():
    X = numbers(300)
    for parameters in (
        {"model__n_estimators": 300},  # its default
        {"model": DPRandomTreesRegressor(y_bounds=(0, 1))},
        {"chooses_model": False},
    ):
        model = tabular_pipeline("regressor", y_bounds=(0, 1)).set_params(**parameters)
        assert not clone(model).chooses_model
        assert type(model.fit(X, X["a"])[-1]) is DPRandomTreesRegressor
    model = tabular_pipeline("regressor", y_bounds=(0, 1))
    model[-1].set_params(n_estimators=20)
    assert type(model.fit(X, X["a"])[-1]) is DPRandomTreesRegressor
    model = tabular_pipeline("regressor", y_bounds=(0, 1)).set_params(vectorizer__max_categories=50, verbose=False)
    assert model.chooses_model
    model = tabular_pipeline("regressor", schema=dict.fromkeys("abc", (0, 1)), y_bounds=(0, 1))
    model.set_params(vectorizer__numbers="bins")
    assert model.fit(X, X["a"])[0].numbers_ == "bins"


def test_a_search_chooses_as_its_fits_would():
    X = numbers()
    model = tabular_pipeline("regressor", y_bounds=(0, 1))
    search = DPGridSearchCV(model, {"vectorizer__n_bins": [8, 16]}, epsilon=3.0).fit(X, X["a"])
    assert type(search.best_estimator_[-1]) is DPMLPRegressor
    assert 2.99 < search.epsilon_ <= 3.0
    search = DPGridSearchCV(model, {"model__n_estimators": [20, 300]}, epsilon=3.0).fit(X, X["a"])
    assert type(search.best_estimator_[-1]) is DPRandomTreesRegressor
    assert search.best_estimator_[-1].n_estimators == search.best_params_["model__n_estimators"]
    assert type(model[-1]) is DPRandomTreesRegressor  # of the user, who did not fit it


def test_bounds_of_targets_are_never_read_in_silence():
    with pytest.warns(PrivacyLeakWarning, match="`y_bounds` was not set"):
        model = tabular_pipeline("regressor", schema=SCHEMA).fit(FRAME, SPENT)
    assert model[-1].y_bounds_ == (SPENT.min(), SPENT.max())
    accountant = PrivacyAccountant()
    with skdp.config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
        tabular_pipeline("regressor", schema=SCHEMA, accountant=accountant).fit(FRAME, SPENT)
    assert len(accountant.history) == 0


def numbers_of(n=400, *, epsilon=1.0, schema=None, estimator=None, **parameters):
    """What numbers became in a pipeline that is fitted to n rows of two numbers and an ordinal."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0, 1, n), "b": rng.uniform(0, 1, n), "c": rng.integers(0, 3, n)})
    schema = {"a": (0, 1), "b": (0, 1), "c": {"kind": "ordinal", "categories": [0, 1, 2]}} if schema is None else schema
    model = tabular_pipeline(estimator or DPRidge(), schema=schema, epsilon=epsilon, y_bounds=(0, 1)).set_params(
        **parameters
    )
    model.fit(X, X["a"])
    assert model[0].numbers == "auto"
    return model[0].numbers_


@pytest.mark.parametrize("estimator", [DPRidge(), DPLinearRegression()])
def test_bins_where_rows_and_budget_are_enough_for_them(estimator):
    """Three times the squared number of bins: 16 each of two numbers, and the three of the ordinal."""
    rows = 3 * 35**2
    assert numbers_of(rows + 10, epsilon=1.0, estimator=estimator) == "both"
    assert numbers_of(rows - 10, epsilon=1.0, estimator=estimator) == "scale"
    assert numbers_of(rows - 10, epsilon=2.0, estimator=estimator) == "both"
    assert numbers_of(rows + 10, epsilon=0.5, estimator=estimator) == "scale"
    assert numbers_of(rows - 10, epsilon=1.0, vectorizer__n_bins=8) == "both"
    edges = {"kind": "number", "edges": [0.0, 0.5, 1.0]}
    assert numbers_of(3 * 21**2 + 10, schema={"a": edges, "b": (0, 1), "c": {"categories": [0, 1, 2]}}) == "both"
    assert numbers_of(3 * 18**2 - 10, schema={"a": edges, "b": (0, 1), "c": {"categories": [0, 1, 2]}}) == "scale"
    assert numbers_of(3 * 48**2 + 10, schema=TableSchema({}, others="estimate")) == "both"  # 16 of each at most


@pytest.mark.parametrize(
    ("adjacency", "schema"),
    [("zero_out", {"x0": (0, 1), "x1": [1]}), ("replace_one", {"x0": (0, 1), "x1": "category"})],
)
def test_the_rule_knows_no_private_number_of_rows(schema, adjacency):
    """At the edge of the rule one row decides; under add_remove the number that was given does."""
    edge = 3 * 16**2
    found = {}
    for n in (edge - 10, edge + 10):
        X = np.column_stack([np.random.default_rng(0).uniform(size=n), np.ones(n)])
        for kind, parameters in (
            ("public", {"adjacency": adjacency}),
            ("private", {"adjacency": AddRemove(edge + 10)}),
            ("fewer", {"adjacency": AddRemove(edge - 10)}),
        ):
            model = tabular_pipeline(DPRidge(y_bounds=(0, 1), **parameters), schema=schema)
            found.setdefault(kind, []).append(model.fit(X, X[:, 0])[0].numbers_)
            alone = clone(model[0]).set_params(adjacency=model[-1].adjacency)
            if "category" not in schema.values():  # a public step knows nothing of the adjacency of the next one
                pipe = allocate_budget(make_pipeline(alone, clone(model[-1])), 1.0)
                assert pipe.fit(X, X[:, 0])[0].numbers_ == found[kind][-1]
    assert found == {"public": ["scale", "both"], "private": ["both"] * 2, "fewer": ["scale"] * 2}


def test_alone_it_scales():
    """No one then says what the number of rows may be used for."""
    X = np.random.default_rng(0).uniform(size=(5000, 1))
    model = tabular_pipeline(DPRidge(), schema={"x0": (0, 1)}, y_bounds=(0, 1)).fit(X, X[:, 0])
    assert model[0].numbers_ == "both"
    for alone in (DPTableVectorizer({"x0": (0, 1)}, numbers="auto"), DPTableVectorizer(numbers="auto"), model[0]):
        assert alone.fit(X).numbers_ == "scale"


# --- bad input of regressors ------------------------------------------------------------------------------------------


def with_target(value, dtype=object):
    targets = SPENT.astype(dtype)
    targets[7] = value
    return targets


def weights_with(value):
    weights = np.ones(len(SPENT))
    weights[7] = value
    return {"model__sample_weight": weights}


BAD_BOUNDS = [(1, 1), (0, np.nan), 7, (0, "a\nb")]
NAN, INFINITE = ["y contains NaN", "Remove these rows"], ["y contains infinity", "Clip it"]
BAD_INPUT = {
    **{f"y_bounds {i}": ({"y_bounds": each}, {}, ["`y_bounds", "must be a"]) for i, each in enumerate(BAD_BOUNDS)},
    "a misspelled column": ({"schema": {"agee": (18, 90)}}, {}, ["Did you mean 'age' instead of 'agee'?"]),
    "an absent column": ({"schema": {**SCHEMA, "shoe": (30, 50)}}, {}, ["'shoe'", "Correct `schema`"]),
    "a gap in y": ({}, {"y": with_target(np.nan)}, NAN),
    "words in y": ({}, {"y": SPENT.astype(str)}, ["y contains strings"]),
    "a negative weight": ({}, weights_with(-12.5), ["Negative values in data passed to `sample_weight`"]),
    "no weight": ({}, {"model__sample_weight": np.zeros(len(SPENT))}, ["`sample_weight` is zero for all rows"]),
}


@over_combinations(case=BAD_INPUT, searched=[False, True])
def test_bad_input_of_a_regressor_is_rejected_in_one_line_without_a_charge(case, searched):
    parameters, given, words = BAD_INPUT[case]
    if searched and "model__sample_weight" in given:
        return  # a search takes no weights
    accountant = PrivacyAccountant()
    all_given = {"schema": SCHEMA, "y_bounds": BOUNDS, "accountant": accountant, **parameters}

    def fit():
        made = tabular_pipeline("regressor", **all_given)
        model = DPGridSearchCV(made, {"model__alpha": [0.0, 1.0]}) if searched else made
        model.fit(FRAME, **{"y": SPENT, **given})

    with pytest.raises((ValueError, TypeError), match=r"\A[^\n]+\Z") as rejection:
        fit()
    message = str(rejection.value)
    assert all(word in message for word in words), message
    assert "12.5" not in message
    assert str(SPENT[7]) not in message
    assert rejection.value.__context__ is None
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []


@pytest.mark.parametrize(
    ("name", "value"), [("random_state", 3), ("verbose", 1), ("n_jobs", 2), ("class_weight", {0: 1.0, 1: 2.0})]
)
def test_parameters_of_the_model_are_handed_on(name, value):
    pipeline = tabular_pipeline(**{name: value})
    assert pipeline[-1].get_params()[name] == value
    if name == "random_state":
        assert pipeline[0].random_state == value
    accountant = PrivacyAccountant()
    assert tabular_pipeline(DPRidge(), y_bounds=BOUNDS, accountant=accountant)[-1].y_bounds == BOUNDS
    public = DPLogisticRegression(adjacency=AddRemove(100))
    assert tabular_pipeline(public)[0].adjacency == AddRemove(100)


@pytest.mark.parametrize("kind", [DPLinearRegression, DPLogisticRegression])
def test_a_regression_with_inference_has_rows_whose_intervals_are_printed(kind):
    """And names that tell the level that others are compared with."""
    frame, labels = customers(8_000)
    frame, schema = frame[["age", "job", "member"]].fillna({"age": 50.0, "job": "clerk"}), SCHEMA.copy()
    schema["since"] = "drop"
    linear = kind is DPLinearRegression
    given = {"y_bounds": (0, 1)} if linear else {"classes": CLASSES}
    pipeline = tabular_pipeline(kind(inference=True), schema=schema, epsilon=4.0, random_state=0, **given)
    assert pipeline[-1].data_norm == pytest.approx(3**0.5)
    with pytest.warns(PrivacyLeakWarning, match="random_state"):
        pipeline.fit(frame.assign(since=0), (labels == "estimates").astype(int) if linear else labels)
    table = pipeline[-1].summary().to_frame()
    assert list(table.index) == ["age", "job[nurse vs clerk]", "job[smith vs clerk]", "member", "(intercept)"]
    assert (table["doubt"] == "").all()
    assert (np.sign(table["coef"][["age", "job[nurse vs clerk]", "member"]]) == (1 if linear else -1)).all()
    assert pipeline.epsilon_ <= 4.0


def test_a_regression_with_inference_needs_a_schema_of_all_columns():
    with pytest.raises(ValueError, match=r"\A`schema` must be set with inference=True[^\n]*\Z"):
        tabular_pipeline(DPLinearRegression((0, 1), inference=True))
    with pytest.raises(ValueError, match=r"\AColumn 'job' must have numeric bounds[^\n]*\Z"):
        tabular_pipeline(DPLinearRegression((0, 1), inference=True), schema={"age": (18, 90), "job": "category"})
    own = tabular_pipeline(DPLinearRegression((0, 1), data_norm=1.0, inference=True), schema={"age": (18, 90)})
    assert own[-1].data_norm == 1.0
