"""Codes of columns, the public schema that they carry, and models of random trees that are given no other."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from tables import ESTIMATED, SCHEMA, customers, labels

from skdp import DPGridSearchCV, PrivacyAccountant, allocate_budget
from skdp._checks.rows import row_norm_of, row_schema_of
from skdp.accounting import compose
from skdp.base.budget import root_stream
from skdp.base.fit import Fit
from skdp.ensemble import DPRandomTreesClassifier, PublicTreesEmbedding
from skdp.preprocessing import DPStandardScaler, DPTableVectorizer, TableSchema

N = 400
KINDS = {
    "age": {"bounds": (18, 90), "missing_values": [-1]},
    "income": {"bounds": (0, 1e6), "scale": "log"},
    "hours": {"edges": [0, 10, 35, 40, 100]},
    "job": {"categories": ["clerk", "nurse", "smith"], "missing_values": ["?"]},
    "school": {"kind": "ordinal", "categories": ["none", "some", "all"]},
    "since": ("2000-01-01", "2025-01-01"),
    "member": "flag",
    "id": "drop",
    "nothing": {"kind": "category", "categories": []},
}


def people(n=400, seed=0):
    """Every kind of column, with gaps, unknown levels, sentinels and numbers beyond bounds."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": rng.choice([-1, 5, 18, 40, 90, 200], n).astype(float),
        "income": np.exp(rng.uniform(0, 16, n)) - 2,
        "hours": rng.uniform(-5, 120, n),
        "job": rng.choice(["clerk", "nurse", "smith", "pilot", "?"], n).astype(object),
        "school": rng.choice(["none", "some", "all", "other"], n).astype(object),
        "since": pd.Timestamp("1999-01-01") + pd.to_timedelta(rng.integers(0, 9_900, n), unit="D"),
        "member": rng.choice(["yes", "no", "perhaps"], n).astype(object),
        "id": np.arange(n),
        "nothing": rng.choice(["a", "b"], n).astype(object),
    })  # fmt: skip
    for j, name in enumerate(frame.columns.drop("id")):
        frame.loc[j :: 11 + j, name] = None
    frame.loc[0, "income"] = np.inf
    return frame


FRAME = people()
Y = (FRAME["age"].fillna(0).to_numpy() > 30).astype(int)


def coder(schema=KINDS, **parameters):
    return DPTableVectorizer(schema, numbers="codes", **parameters)


def trees(**parameters):
    return DPRandomTreesClassifier(**{"n_estimators": 20, "classes": [0, 1], "delta": 1e-5, **parameters})


# --- codes ---


def test_each_column_is_one_number():
    with pytest.raises(ValueError, match="sparse_output=True does not support numbers='codes'"):
        coder(sparse_output=True).fit(FRAME)
    vectorizer = coder()
    made = vectorizer.fit_transform(FRAME)
    assert (made.dtype, made.shape) == (np.float64, (400, 8))
    assert vectorizer.get_feature_names_out().tolist() == [*FRAME.columns.drop(["id"])]
    assert vectorizer.row_norm_ == math.inf
    assert row_norm_of(made) is None
    known = dict(zip(vectorizer.get_feature_names_out(), np.asarray(made).T, strict=True))
    ages = FRAME["age"].to_numpy()
    np.testing.assert_array_equal(known["age"], np.where(ages == -1, np.nan, ages))
    places = {"clerk": 0.0, "nurse": 1.0, "smith": 2.0, "pilot": 3.0}
    np.testing.assert_array_equal(known["job"], [places.get(job, np.nan) for job in FRAME["job"]])
    np.testing.assert_array_equal(known["member"], [{"no": 0.0, "yes": 1.0}.get(x, np.nan) for x in FRAME["member"]])
    days = (FRAME["since"] - pd.Timestamp("1970-01-01")).dt.days
    np.testing.assert_array_equal(known["since"], days.to_numpy(float))
    back = pd.DataFrame(vectorizer.inverse_transform(made), columns=FRAME.columns)
    gaps = FRAME["job"].isna() | (FRAME["job"] == "?")
    assert back["job"].isna().equals(gaps)
    assert back["job"][~gaps].tolist() == ["other" if job == "pilot" else job for job in FRAME["job"][~gaps]]
    assert back["since"].dropna().tolist() == FRAME["since"].dropna().dt.strftime("%Y-%m-%d").tolist()
    assert back["age"].isna().equals(FRAME["age"].isna() | (FRAME["age"] == -1))


def test_trees_over_codes_are_those_over_the_table():
    """The schema of codes says of them what the schema says of the table: each row has the same levels and leaves."""
    given = {"n_estimators": 30, "max_depth": 5, "random_state": 3}
    rows = coder().fit_transform(FRAME)
    whole = PublicTreesEmbedding(**given, schema=KINDS).fit(FRAME)
    coded = PublicTreesEmbedding(**given, schema=row_schema_of(rows)).fit(rows)
    one, other = whole.transform(FRAME), coded.transform(rows)
    assert (one != other).nnz == 0
    new = people(seed=1)
    assert (whole.transform(new) != coded.transform(coder().fit(FRAME).transform(new))).nnz == 0


def test_codes_are_estimated_like_bins():
    table = customers(N)
    seeded = {"random_state": 0, "delta": 1e-5}
    one, other = (DPTableVectorizer(ESTIMATED, numbers=numbers, **seeded).fit(table) for numbers in ("bins", "codes"))
    assert one.schema_ == other.schema_
    assert one.privacy_event_ == other.privacy_event_
    assert one.epsilon_ == other.epsilon_
    assert other.schema_.is_complete
    carried = row_schema_of(other.transform(table))
    estimated = [column for _, column in other.schema_.items() if column.kind != "drop"]
    assert [column.edges for _, column in carried.items()] == [column.edges for column in estimated]
    assert [column.bounds for _, column in carried.items()] == [column.bounds for column in estimated]
    again = row_schema_of(coder(other.schema_).fit_transform(table))  # a function of `schema_`
    assert again == carried


def test_what_is_made_of_codes_does_not_have_their_schema():
    rows = coder().fit_transform(FRAME)
    schema = row_schema_of(rows)
    assert isinstance(schema, TableSchema)
    assert schema.is_complete
    for change in (lambda r: r[:2], lambda r: r * 2, lambda r: r.copy(), np.asarray, lambda r: r.T, np.abs):
        assert row_schema_of(change(rows)) is None
    again = pickle.loads(pickle.dumps(rows))  # so that worker processes have it
    assert row_schema_of(again) == schema
    np.testing.assert_array_equal(again, rows)
    rows[0, 0] = 3.0
    assert row_schema_of(rows) is None
    assert row_schema_of(coder().set_output(transform="pandas").fit_transform(FRAME)) is None


# --- models that take them ---


def test_a_model_of_codes_is_the_model_of_the_table():
    seeded = {"random_state": 0, "noise_multiplier": 5.0, "epsilon": None}
    rows = coder().fit_transform(FRAME)
    one = trees(schema=KINDS, **seeded).fit(FRAME, Y)
    other = trees(**seeded).fit(rows, Y)
    np.testing.assert_array_equal(other.coef_, one.coef_)
    plain = np.array(rows)[3:9]  # new rows carry no schema, and need none
    np.testing.assert_array_equal(other.decision_function(plain), one.decision_function(FRAME[3:9]))
    kept = [column != "id" for column in FRAME.columns]
    np.testing.assert_array_equal(other.feature_importances_, one.feature_importances_[kept])


def test_estimating_pipeline_passes_codes_on(monkeypatch):
    """Gaps are NaN in codes, and no row is set to zero for them. The noise is that of a fit outside a pipeline."""
    monkeypatch.setattr(Fit, "run_stream", lambda fit, first: root_stream(fit.model).spawn("from step", first))
    table, y = customers(N), labels(customers(N))
    steps = [("vectorizer", coder(ESTIMATED, random_state=1)), ("model", trees(random_state=2, average=False))]
    pipe = allocate_budget(Pipeline(steps), 5.0, 1e-5).fit(table, y)
    rows = pipe[0].transform(table)
    assert np.isnan(rows).any()
    model = pipe[-1]
    noise = {"epsilon": None, "noise_multiplier": model.noise_multiplier_, "random_state": 2, "average": False}
    alone = trees(**noise).fit(rows, y)
    np.testing.assert_array_equal(alone.coef_, model.coef_)


def test_trees_of_an_estimated_schema_are_post_processing():
    """They are drawn from the schema and the counts that were released, and from a public seed."""
    table = customers(N)
    steps = [("vectorizer", coder(ESTIMATED)), ("model", trees(trees_random_state=7))]
    pipe = allocate_budget(Pipeline(steps), 5.0, 1e-5).fit(table, labels(table))
    other_rows = customers(30, seed=5)  # the schema, and no row of the fit
    carried = row_schema_of(coder(pipe[0].schema_).fit(other_rows).transform(other_rows))
    drawn = pipe[-1].embedding_
    known = {"schema": carried, "random_state": 7, "marginals": drawn.marginals}
    again = PublicTreesEmbedding(20, **known).fit(np.zeros((1, len(carried))))
    assert drawn.schema_ == again.schema_
    for field in ("column", "threshold", "gaps_right", "first_word", "words", "left", "leaf"):
        np.testing.assert_array_equal(getattr(drawn._fitted_trees, field), getattr(again._fitted_trees, field))
    assert pipe.privacy_event_ == compose([pipe[0].privacy_event_, pipe[-1].privacy_event_])


WITHOUT = {
    "bins": [("vectorizer", DPTableVectorizer(ESTIMATED, sparse_output=False)), ("model", trees())],
    "a frame": [("vectorizer", coder(ESTIMATED).set_output(transform="pandas")), ("model", trees())],
    "another step": [("scaler", DPStandardScaler(bounds=(0, 1))), ("model", trees())],
    "a schema of its own": [("vectorizer", coder(ESTIMATED)), ("model", trees(schema=SCHEMA))],
    "bounds of its own": [("vectorizer", coder(ESTIMATED)), ("model", trees(bounds=[(0, 1)] * 5))],
    "nothing before": [("model", trees())],
}


@over_rows("steps, searched", [*((steps, False) for steps in WITHOUT.values()), (WITHOUT["bins"], True)])
def test_a_model_without_a_schema_is_rejected_before_the_charge(steps, searched):
    """Behind a private step the rows come after the charge: what they may lack is asked before it."""
    accountant = PrivacyAccountant(epsilon=10.0, delta=1e-5)
    pipe = clone(Pipeline(steps)).set_params(**{f"{steps[0][0]}__accountant": accountant})
    table = customers(N)
    X = table if "vectorizer" in pipe.named_steps else np.random.default_rng(0).uniform(size=(len(table), 3))
    model = allocate_budget(pipe, 1.0, 1e-5)
    if searched:
        model = DPGridSearchCV(model, {"model__alpha": [0.0, 1e-3]}, epsilon=1.0, delta=1e-5)
    with pytest.raises(
        ValueError,
        match=r"^(Step 'model': )?(`schema`, `bounds` and `categories` are None|schema, bounds or categories may not)",
    ) as found:
        model.fit(X, labels(table))
    assert "\n" not in str(found.value)
    assert "numbers='codes'" in str(found.value)
    assert accountant.history == ()


def test_instalments_keep_the_schema_of_the_first():
    rows = coder().fit_transform(FRAME)
    model = trees(max_iter=2).fit(rows, Y)
    drawn = model.embedding_
    model.partial_fit(np.array(rows)[:200], Y[:200])
    assert model.embedding_ is drawn
    other = coder({**KINDS, "age": (0, 50)}).fit_transform(FRAME)
    paid = model.epsilon_
    with pytest.raises(ValueError, match="differ from those of earlier runs"):
        model.partial_fit(other, Y)
    assert model.epsilon_ == paid
    with pytest.raises(ValueError, match="X does not carry one"):  # a new fit has no earlier rows
        model.fit(np.array(rows), Y)


def test_a_wrong_schema_costs_utility_and_never_privacy():
    """What does not fit the schema that rows carry is clipped to it, or is its "other"; a row keeps its norm."""
    rows = coder().fit_transform(FRAME)
    rows[:] = np.random.default_rng(0).choice([np.nan, -1e300, np.inf, 0.5, 7.0, 1e18], rows.shape)
    wild = coder().fit(FRAME).transform(FRAME)
    schema = row_schema_of(wild)
    embedding = PublicTreesEmbedding(20, schema=schema, random_state=0).fit(wild)
    made = embedding.transform(np.array(rows))
    norms = np.sqrt(made.multiply(made).sum(axis=1))
    assert norms.max() <= 1.0 + 1e-6
    assert np.diff(made.indptr).tolist() == [20 + 8] * 400


# --- from a table in one line ---


def test_a_row_of_codes_is_a_function_of_that_row():
    vectorizer = coder().fit(FRAME)
    rows = np.asarray(vectorizer.transform(FRAME))
    changed = FRAME.copy()
    changed.loc[7] = people(seed=2).loc[8]
    found = np.asarray(vectorizer.transform(changed))
    other = np.arange(len(rows)) != 7
    np.testing.assert_array_equal(found[other], rows[other])
    assert not np.array_equal(found[7], rows[7], equal_nan=True)
