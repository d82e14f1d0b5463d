"""What DPTableVectorizer makes of a table, the norm that it hands on, and what it estimates."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from combinations import over_rows
from reference import vectorized_row
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tables import ESTIMATED, ROWS, SCHEMA, customers, labels
from unread import UnreadCell

from skdp import (
    DPPCA,
    DPGridSearchCV,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyLeakWarning,
    allocate_budget,
    check_pipeline,
)
from skdp._checks.rows import row_norm_of, with_row_norm
from skdp.accounting import NoOpDpEvent
from skdp.accounting.releases import releases
from skdp.preprocessing import DPTableVectorizer, TableSchema
from skdp.preprocessing.histogram_query import HistogramQuery

CELLS = {
    "whole": [1, 2],
    "truth": [True, False],
    "word": ["a", "b"],
    "day": pd.to_datetime(["2001-01-01", "2002-01-01"]),
}

FRAME = customers(200)
Y = labels(FRAME)
MODES = ("bins", "scale", "both")


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


def classifier(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "max_iter": 3, "delta": 1e-5, **parameters})


# --- what becomes of a row ---


@over_rows(
    "numbers, dtype, sparse", [("bins", "float32", True), ("scale", "float64", False), ("both", "float64", True)]
)
def test_rows_are_those_of_the_plain_reading(numbers, dtype, sparse):
    vectorizer = DPTableVectorizer(SCHEMA, numbers=numbers, n_bins=7, sparse_output=sparse, dtype=dtype)
    found = vectorizer.fit_transform(FRAME)
    rows = FRAME.to_dict("records")
    plain = [vectorized_row(row, SCHEMA.to_dict(), numbers, 7) for row in rows]
    assert sp.issparse(found) is sparse
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(dense(found), plain, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-7)


def test_bins_are_closed_on_the_left_and_the_last_on_both_sides():
    vectorizer = DPTableVectorizer({"x0": (0, 4)}, n_bins=4, sparse_output=False)
    cells = np.array([[-np.inf], [-1], [0], [0.999], [1], [3], [4], [5], [np.inf], [np.nan]])
    assert vectorizer.fit_transform(cells).argmax(axis=1).tolist() == [0, 0, 0, 0, 1, 3, 3, 3, 3, 4]


def test_edges_of_a_schema_are_the_bins():
    vectorizer = DPTableVectorizer({"x0": {"edges": [0, 1, 10]}}, sparse_output=False)
    assert vectorizer.fit_transform(np.array([[0.5], [1.0], [99.0], [-1.0]])).argmax(axis=1).tolist() == [0, 1, 1, 0]
    assert vectorizer.get_feature_names_out().tolist() == ["x0=0..1", "x0=1..10", "x0=missing"]


def test_times_of_day_and_zones_are_those_of_utc():
    days = pd.Series(pd.to_datetime(["2020-01-01 23:30"])).dt.tz_localize("America/New_York")  # 04:30 of the next day
    schema = {"day": {"bounds": ("2020-01-01", "2020-01-03")}}
    vectorizer = DPTableVectorizer(schema, numbers="scale", dtype="float64")
    for column in (days, days.astype(object), days.astype(str), days.dt.tz_convert("UTC")):
        assert dense(vectorizer.fit_transform(pd.DataFrame({"day": column})))[0, 0] == pytest.approx(1.1875 - 1.0)


@over_rows("numbers", MODES)
def test_the_norm_of_a_row_is_at_most_the_one_that_is_stated(numbers):
    vectorizer = DPTableVectorizer(SCHEMA, numbers=numbers, dtype="float64").fit(FRAME)
    norms = np.linalg.norm(dense(vectorizer.transform(FRAME)), axis=1)
    assert norms.max() <= vectorizer.row_norm_ * (1 + 1e-15)
    if numbers == "bins":
        np.testing.assert_allclose(norms, math.sqrt(6), rtol=1e-15)
    extreme = pd.DataFrame([{**ROWS[0], "age": 90, "income": 1e6, "grade": "high", "since": "2025-12-31", "id": ""}])
    assert np.linalg.norm(dense(vectorizer.transform(extreme))) == pytest.approx(vectorizer.row_norm_, rel=1e-12)


def test_names_say_what_a_column_is():
    names = DPTableVectorizer(SCHEMA, n_bins=2).fit(FRAME).get_feature_names_out().tolist()
    assert names[:3] == ["age=18..54", "age=54..90", "age=missing"]
    assert names[6:11] == ["job=clerk", "job=nurse", "job=7", "job=other", "job=missing"]
    assert names[-3:] == ["since=2000-01-01..2012-12-31", "since=2012-12-31..2025-12-31", "since=missing"]


@over_rows("numbers", MODES)
def test_inverse_transform_gives_cells_that_transform_to_the_same_rows(numbers):
    vectorizer = DPTableVectorizer(SCHEMA, numbers=numbers, dtype="float64").fit(FRAME)
    rows = vectorizer.transform(FRAME)
    cells = vectorizer.inverse_transform(rows)
    assert cells.shape == FRAME.shape
    again = vectorizer.transform(pd.DataFrame(cells, columns=FRAME.columns))
    np.testing.assert_allclose(dense(again), dense(rows), atol=1e-9)
    assert cells[1].tolist() == [None] * 7
    assert cells[0, 2] == "clerk"
    assert cells[2, 2] == "other"
    assert cells[0, 4] is True
    with pytest.raises(ValueError, match=r"X must have \d+ columns, as the output of transform, got 2\."):
        vectorizer.inverse_transform(np.ones((1, 2)))


def test_all_kinds_of_tables_give_the_same_rows():
    expected = dense(DPTableVectorizer(SCHEMA).fit_transform(FRAME))
    by_place = TableSchema({f"x{j}": SCHEMA[name] for j, name in enumerate(FRAME.columns)})
    cells = FRAME.astype(object).where(FRAME.notna(), None).to_numpy(dtype=object).tolist()
    for table, schema in ((pa.Table.from_pandas(FRAME), SCHEMA), (cells, by_place)):
        np.testing.assert_array_equal(dense(DPTableVectorizer(schema).fit_transform(table)), expected)


# --- a public step ---


def test_a_complete_schema_reads_no_cell_and_pays_nothing():
    cells = np.empty((3, 2), dtype=object)
    cells.fill(UnreadCell())
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    vectorizer = DPTableVectorizer({"x0": (0, 1), "x1": ["a"]}, accountant=accountant)
    with warnings.catch_warnings(action="error"):
        vectorizer.fit(cells)
    assert (vectorizer.epsilon_, vectorizer.delta_, vectorizer.noise_multiplier_) == (0.0, 0.0, 0.0)
    assert vectorizer.privacy_event_ == NoOpDpEvent()
    assert len(accountant.history) == 0
    with pytest.raises(ValueError, match=r"^column 'x0' contains nested values"):
        vectorizer.transform(cells)


def test_estimating_vectorizer_is_a_private_step():
    allocate_budget(make_pipeline(DPTableVectorizer(ESTIMATED), classifier()), 1.0, 1e-5)
    nested = make_pipeline(make_pipeline(DPTableVectorizer(ESTIMATED)), classifier())
    with pytest.raises(ValueError, match="is nested inside another step"):
        allocate_budget(nested, 1.0, 1e-5)
    with pytest.warns(PrivacyLeakWarning, match="consume one budget each"):
        assert check_pipeline(nested)


# --- the norm, handed on ---


def norm_with(model, X, y=None):
    return model.fit(X, y)[-1].data_norm_


@over_rows("last, sparse", [(classifier(), True), (DPPCA(2, delta=1e-5), False)])
def test_an_estimator_that_comes_next_uses_the_norm(last, sparse):
    norm = math.sqrt(6)
    vectorizer = DPTableVectorizer(SCHEMA, sparse_output=sparse)
    assert norm_with(allocate_budget(make_pipeline(clone(vectorizer), clone(last)), 1.0, 1e-5), FRAME, Y) == norm
    assert clone(last).fit(vectorizer.fit_transform(FRAME), Y).data_norm_ == norm


def test_a_norm_that_is_given_wins_and_rows_without_one_have_that_of_their_width():
    rows = DPTableVectorizer(SCHEMA).fit_transform(FRAME)
    assert classifier(data_norm=1.5).fit(rows, Y).data_norm_ == 1.5
    assert classifier().fit(rows[:], Y).data_norm_ == math.sqrt(rows.shape[1])
    assert classifier().fit(rows, Y).fit(rows.toarray(), Y).data_norm_ == math.sqrt(rows.shape[1])


def test_a_public_mean_shifts_the_norm_of_a_principal_component_analysis():
    rows = DPTableVectorizer(SCHEMA, sparse_output=False, dtype="float64").fit_transform(FRAME)
    center = np.full(rows.shape[1], 0.1)
    fitted = DPPCA(2, center=center, delta=1e-5).fit(rows)
    assert fitted.data_norm_ == pytest.approx(math.sqrt(6) + np.linalg.norm(center))
    assert np.linalg.norm(rows - center, axis=1).max() <= fitted.data_norm_


@over_rows("sparse", [True, False])
def test_what_is_made_of_rows_does_not_have_their_norm(sparse):
    def rows():
        made = sp.csr_matrix(np.eye(4)) if sparse else np.eye(4)
        return with_row_norm(made, 2.0)

    changes = [lambda r: r[:2], lambda r: r * 2, lambda r: r.copy(), lambda r: r.T, lambda r: r.astype("float32"),
               lambda r: r + r, lambda r: r[[0, 1]]]  # fmt: skip
    if not sparse:
        changes += [np.concatenate, np.asarray, np.abs, lambda r: r.reshape(2, 8), lambda r: r.sum(axis=0)]
        changes += [lambda r: np.multiply(r, 3, out=r), lambda r: r.__setitem__(0, 9.0) or r]
    for change in changes:
        given = rows()
        assert row_norm_of(given) == 2.0
        assert row_norm_of(change(given)) is None
    assert row_norm_of(pickle.loads(pickle.dumps(rows()))) == 2.0  # so that worker processes have it


# --- what is estimated ---


def test_the_threshold_has_its_share_of_delta():
    event = DPTableVectorizer(ESTIMATED, delta=1e-6).fit(FRAME).privacy_event_
    assert [delta for _, delta, _ in releases(event).epsilon_delta] == [pytest.approx(1e-8)]
    only_numbers = DPTableVectorizer({"x0": "number", "x1": "flag"}).fit(np.zeros((30, 2)))
    assert releases(only_numbers.privacy_event_).epsilon_delta == ()


def test_event_depends_on_parameters_and_not_on_types():
    words, numbers = FRAME[["job", "grade"]], FRAME[["age", "income"]]
    events = {DPTableVectorizer(delta=1e-6).fit(each).privacy_event_ for each in (words, numbers, FRAME)}
    assert len(events) == 1


def test_estimated_schema_costs_nothing():
    estimated = DPTableVectorizer(ESTIMATED, epsilon=50.0).fit(FRAME)
    again = DPTableVectorizer(TableSchema.from_json(estimated.schema_.to_json())).fit(FRAME)
    assert again.epsilon_ == 0.0
    np.testing.assert_array_equal(dense(again.transform(FRAME)), dense(estimated.transform(FRAME)))


def estimating(ledger, **parameters):
    return DPTableVectorizer({"age": "number", "job": "category"}, accountant=ledger, **parameters)


SHORT = FRAME[["age", "job"]]


@over_rows(
    "parameters, behind, message",
    [
        ({}, DPPCA(2), "Step 'dppca' .DPPCA. does not accept sparse rows.* dptablevectorizer__sparse_output=False"),
        ({}, FunctionTransformer(np.abs, validate=True), "'functiontransformer'.* does not accept sparse rows"),
    ],
)
def test_what_would_be_rejected_after_the_charge_is_rejected_before(parameters, behind, message):
    ledger = PrivacyAccountant()
    steps = [estimating(ledger, **parameters), behind, classifier()]
    with pytest.raises((TypeError, ValueError), match=message):
        allocate_budget(make_pipeline(*[step for step in steps if step]), 1.0).fit(SHORT, Y)
    assert not ledger.history


def test_sparse_rows_and_frames_are_not_asked_for_at_once():
    ledger = PrivacyAccountant()
    with pytest.raises(ValueError, match="sparse_output=True does not support pandas output"):
        estimating(ledger, sparse_output=True).set_output(transform="pandas").fit(SHORT)
    assert not ledger.history


@over_rows("last", ["9999-12-31", "0001-01-01", "275000-01-01"])
def test_estimated_dates_are_serialized(last):
    """A date that stands for "never" is common, and edges around it may lie beyond what a date can be."""
    days = np.datetime64(last, "s") - np.arange(400).astype("timedelta64[h]") * 80_001 * (-1 if last[0] == "0" else 1)
    for seed in range(2):
        vectorizer = DPTableVectorizer(epsilon=50.0, random_state=seed).fit(pd.DataFrame({"day": days}))
        assert TableSchema.from_json(vectorizer.schema_.to_json()) == vectorizer.schema_
        assert len(vectorizer.schema_["day"].edges) >= 2


def test_column_of_missing_values_is_estimated():
    frame = pd.DataFrame({"a": [np.nan] * 30, "b": [None] * 30, "c": [""] * 30})
    made = dense(DPTableVectorizer(epsilon=50.0).fit_transform(frame))
    names = DPTableVectorizer(epsilon=50.0).fit(frame).schema_
    assert names["b"].categories == ()
    np.testing.assert_array_equal(made.sum(axis=1), 3)
    assert TableSchema.from_json(names.to_json()) == names


def test_a_pipeline_pays_for_both_and_the_share_of_the_threshold_is_of_the_whole_delta():
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6)
    steps = make_pipeline(DPTableVectorizer(ESTIMATED, accountant=accountant), classifier())
    pipe = allocate_budget(steps, 1.0, 1e-6).fit(FRAME, Y)
    assert 0.999 < pipe.epsilon_ <= 1.0
    assert [charge.event for charge in accountant.history] == [pipe.privacy_event_]
    assert [delta for _, delta, _ in releases(pipe.privacy_event_).epsilon_delta] == [pytest.approx(1e-8)]
    assert steps[0].accountant is accountant
    assert pipe.predict(FRAME).shape == (200,)
    assert pipe[0].schema_.is_complete


@pytest.mark.parametrize(("schema", "columns"), [(ESTIMATED, (3, 2)), (None, (2, 5))])
def test_noise_of_a_query_is_that_of_its_event(schema, columns, monkeypatch):
    seen = []
    release = HistogramQuery.release

    def recorded(query, numbers, words, noise_multiplier, n_public, stream, **rows):
        seen.append((query, noise_multiplier, n_public))
        return release(query, numbers, words, noise_multiplier, n_public, stream, **rows)

    monkeypatch.setattr(HistogramQuery, "release", recorded)
    fitted = DPTableVectorizer(schema, epsilon=20.0, delta=1e-6).fit(FRAME)  # less would drop categories of 200 rows
    ((query, noise, n_public),) = seen
    assert ((query.n_numbers, query.n_words), n_public) == (columns, 200)
    assert releases(query.event_at(noise)).mu_squared == pytest.approx(releases(fitted.privacy_event_).mu_squared)
    assert noise == fitted.noise_multiplier_
    assert [delta for _, delta, _ in releases(fitted.privacy_event_).epsilon_delta] == [query.threshold_delta]


def test_a_sparse_matrix_has_small_indices_and_one_entry_a_block():
    made = DPTableVectorizer(SCHEMA, numbers="both").fit_transform(FRAME)
    assert made.indices.dtype == made.indptr.dtype == np.int32
    assert np.all(np.diff(made.indptr) == 10)
    assert made.has_canonical_format
    few = DPTableVectorizer({"x0": (0, 1)}, numbers="scale").fit_transform(np.ones((3, 1)))
    assert isinstance(few, np.ndarray)  # sparse only where most entries are 0


def test_a_search_uses_the_norm_of_each_candidate():
    pipe = make_pipeline(DPTableVectorizer(SCHEMA), classifier())
    grid = {"dptablevectorizer__numbers": ["bins", "both"]}
    search = DPGridSearchCV(pipe, grid, epsilon=50.0, delta=1e-5).fit(FRAME, Y)
    best = search.best_estimator_
    assert best[-1].data_norm_ == best[0].row_norm_ == math.sqrt({"bins": 6, "both": 10}[best[0].numbers])


def test_a_wrong_norm_costs_utility_and_never_privacy():
    """Rows are clipped to the norm that came with them, as to any other."""
    rows = with_row_norm(np.full((50, 3), 100.0), 1.0)
    near = with_row_norm(np.full((50, 3), 1.0), 1.0)
    y = np.arange(50) % 2
    seeded = {"random_state": 0, "classes": [0, 1], "max_iter": 2, "delta": 1e-5}
    one, other = (DPLogisticRegression(**seeded).fit(each, y) for each in (rows, near))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-13)  # rows of the same norm but for rounding


def test_components_are_as_many_as_estimated_columns():
    pipe = allocate_budget(make_pipeline(estimating(None, sparse_output=False), DPPCA(500), classifier()), 1.0)
    pipe.fit(SHORT, Y)
    assert pipe[1].n_components_ == pipe[1].n_features_in_ == len(pipe[0].get_feature_names_out())
    assert pipe.predict(SHORT).shape == (200,)


@pytest.mark.parametrize("convert", [pd.DataFrame, pd.DataFrame.convert_dtypes, pl.from_pandas, pa.Table.from_pandas])
def test_a_gap_changes_no_kind(convert):
    """A row that becomes a null row makes floats of integers, and objects of truth values."""
    whole = pd.DataFrame({name: list(cells) * 20 for name, cells in CELLS.items()})
    gapped = pd.DataFrame({name: [None, *(list(cells) * 20)[1:]] for name, cells in CELLS.items()})
    found = [DPTableVectorizer(noise_multiplier=0.1, epsilon=None).fit(convert(frame)) for frame in (whole, gapped)]
    assert [[column.kind for _, column in each.schema_.items()] for each in found] == [
        ["number", "category", "category", "date"]
    ] * 2
    assert found[1].schema_["truth"].categories == ("False", "True")
