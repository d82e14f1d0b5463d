"""Rows that are not in memory: read block by block after the charge, and trained on as if they were in memory."""

from __future__ import annotations

import itertools
import os
import pathlib
import sys
import threading
import time
import warnings
from decimal import Decimal

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from combinations import combined, over_combinations, over_rows
from joblib import Parallel, delayed
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from skdp import (
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPRidge,
    PrivacyAccountant,
    allocate_budget,
)
from skdp._checks.sources import BlockRecipe
from skdp._checks.weights import WeightReader
from skdp._training import progress
from skdp._training.models.bound_rows import Model
from skdp._training.models.linear import LinearGeometry, LinearModel
from skdp._training.models.network import Architecture, Clip, NetworkModel
from skdp._training.outputs.classes import ClassReader
from skdp._training.streamed import blocks
from skdp._training.streamed import streamed_model as model
from skdp._training.streamed.arrow import source_of_rows
from skdp._training.streamed.blocks import BlockSource
from skdp._training.streamed.parquet import ParquetRows
from skdp._training.streamed.prefetch import read_ahead
from skdp._training.streamed.streamed_model import RowBlock, StreamedModel
from skdp.datasets import TableRows
from skdp.decomposition import DPPCA
from skdp.exceptions import BudgetExceededError, FitInterruptedWarning
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.sampling import PoissonSampling
from skdp.mechanisms.streams import SecretStream
from skdp.mechanisms.tape import Tape, running

pytestmark = pytest.mark.filterwarnings("ignore:random_state", "ignore:.*rows are few")

N, D = 3000, 4
NAMES = [f"c{j}" for j in range(D)]
FALSE_ALARM = 1e-6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 256 rows, so that a small table has twelve of them, the last one cut short."""
    monkeypatch.setattr(blocks, "_MAX_ROWS", 256)


def arrays(dtype=np.float32, n=N, seed=0):
    """Rows, labels and weights."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        X = rng.uniform(-1.0, 1.0, (n, D)).astype(dtype)
    else:
        X = rng.integers(-3, 4, (n, D)).astype(dtype)
    return X, (X[:, 0] + rng.standard_normal(n) > 0).astype(np.int8), rng.integers(0, 3, n).astype(np.float64)


def arrow(X, y, w=None, names=NAMES):
    columns = dict(zip(names, X.T, strict=True))
    return pa.table({**columns, "label": y} | ({} if w is None else {"weight": w}))


def write(path, X, y, w=None, *, group=500):
    pq.write_table(arrow(X, y, w), path, row_group_size=group)
    return str(path)


def mapped(path, X):
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def logistic(**changes):
    fixed = {"epsilon": None, "noise_multiplier": 50.0, "classes": [0, 1], "random_state": 5}
    return DPLogisticRegression(**fixed | {"sampling_rate": 1.0, "max_iter": 3} | changes)


def network(**changes):
    fixed = {"epsilon": None, "noise_multiplier": 50.0, "classes": [0, 1], "random_state": 5}
    return DPMLPClassifier((5,), **fixed | {"sampling_rate": 1.0, "max_iter": 3} | changes)


def charged(tmp_path, **changes):
    """A ledger, and a model that is charged to it."""
    ledger = PrivacyAccountant(10.0, 1e-5, path=str(tmp_path / "ledger.budget"))
    return ledger, logistic(accountant=ledger, delta=1e-6, **changes)


# --- as in memory -----------------------------------------------------------------------------------------------------


@over_combinations(1, dtype=[np.float64, np.float32, np.int8], kind=["parquet", "dataset", "table", "map"])
def test_a_full_batch_equals_one_in_memory(tmp_path, dtype, kind):
    X, y, w = arrays(dtype)
    expected = logistic().fit(X, y, sample_weight=w)
    path = write(tmp_path / "t.parquet", X, y, w)
    rows = {"parquet": TableRows(path), "dataset": ds.dataset(path), "table": arrow(X, y, w), "map": None}[kind]
    if kind == "map":
        found = logistic().fit(mapped(tmp_path / "x.npy", X), y, sample_weight=w)
    else:
        found = logistic().fit(rows, "label", sample_weight="weight")
        assert found.feature_names_in_.tolist() == NAMES
    # In memory, the norm of a float32 row is kept as one, rounded up.
    rounding = {"rtol": 1e-6} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(found.coef_, expected.coef_, **rounding)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, **rounding)
    assert found.epsilon_ == expected.epsilon_
    assert found.n_features_in_ == D


@over_combinations(1, adjacency=["zero_out", "replace_one", "add_remove"], dtype=[np.float64, np.float32])
def test_networks_equal_those_in_memory(tmp_path, dtype, adjacency):
    X, y, w = arrays(dtype)
    changes = {"adjacency": adjacency, "n_samples_public": N, "class_weight": {0: 1.0, 1: 0.5}}
    expected = network(**changes).fit(X, y, sample_weight=w)
    found = network(**changes).fit(TableRows(write(tmp_path / "t.parquet", X, y, w)), "label", sample_weight="weight")
    single = dtype == np.float32 and adjacency != "add_remove"
    for one, other in zip(found.coefs_, expected.coefs_, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4 if single else 1e-10, atol=1e-6 if single else 1e-12)


def test_regressors_and_several_classes_equal_those_in_memory(tmp_path):
    X, _, w = arrays(np.float64)
    target = np.random.default_rng(1).uniform(-2.0, 9.0, N)
    fixed = {"epsilon": None, "noise_multiplier": 50.0, "random_state": 1, "sampling_rate": 1.0, "max_iter": 3}
    for loss, bounds in (("squared_error", (-1.0, 8.0)), ("poisson", (0.0, 8.0))):
        y = np.abs(target) if loss == "poisson" else target
        regressor = DPMLPRegressor((3,), y_bounds=bounds, loss=loss, **fixed)
        expected = clone(regressor).fit(X, y, sample_weight=w)
        found = regressor.fit(arrow(X, y, w), "label", sample_weight="weight")
        np.testing.assert_allclose(found.coefs_[0], expected.coefs_[0], rtol=1e-10)
    y = np.array(["no", "perhaps", "yes"])[np.random.default_rng(1).integers(0, 3, N)]
    several = logistic(classes=["no", "perhaps", "yes"])
    table = pa.table({**dict(zip(NAMES, X.T, strict=True)), "label": pa.array(y).dictionary_encode()})
    np.testing.assert_allclose(clone(several).fit(table, "label").coef_, several.fit(X, y).coef_, rtol=1e-11)


def targets(seed=1):
    """Some of them beyond the bounds of the estimators below."""
    return np.random.default_rng(seed).uniform(-4.0, 6.0, N)


def least_squares(estimator=DPRidge, **changes):
    return estimator(**{"y_bounds": (-3.0, 5.0), "random_state": 3, "data_norm": 1.2} | changes)


@over_combinations(
    1,
    adjacency=["zero_out", "replace_one", "add_remove"],
    dtype=[np.float64, np.float32, np.int8],
    kind=["parquet", "dataset", "table", "map"],
)
def test_least_squares_equal_those_in_memory(tmp_path, dtype, kind, adjacency):
    X, _, w = arrays(dtype)
    y, changes = targets(), {"adjacency": adjacency, "n_samples_public": N}
    path = write(tmp_path / "t.parquet", X, y, w)
    rows = {"parquet": TableRows(path), "dataset": ds.dataset(path), "table": arrow(X, y, w)}.get(kind)
    for weights in (None, w):
        expected = least_squares(**changes).fit(X, y, sample_weight=weights)
        if kind == "map":
            found = least_squares(**changes).fit(mapped(tmp_path / "x.npy", X), y, sample_weight=weights)
        else:
            read = TableRows(rows if kind == "table" else path, columns=NAMES) if weights is None else rows
            found = least_squares(**changes).fit(read, "label", sample_weight=None if weights is None else "weight")
            assert found.feature_names_in_.tolist() == NAMES
            np.testing.assert_allclose(found.predict(TableRows(path)), expected.predict(X), rtol=1e-4)
        for name in ("coef_", "intercept_", "coef_std_", "intercept_std_", "alpha_"):
            rounding = {"rtol": 1e-4 if dtype == np.float32 else 1e-9}
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), **rounding)
        assert found.privacy_event_ == expected.privacy_event_
        assert (found.epsilon_, found.delta_, found.y_bounds_) == (expected.epsilon_, expected.delta_, (-3.0, 5.0))


@pytest.fixture
def released(monkeypatch):
    """What went into each release, and the mechanism that made it."""
    seen, release = [], GaussianMechanism.release

    def recorded(mechanism, value, stream):
        seen.append((np.array(value), mechanism))
        return release(mechanism, value, stream)

    monkeypatch.setattr(GaussianMechanism, "release", recorded)
    return seen


@combined(
    1,
    adjacency=["zero_out", "replace_one", "add_remove"],
    weighted=[True, False],
    dtype=[np.float64, np.float32],
    place=[0, 255, 256, N - 1],
)
def test_a_row_moves_what_least_squares_release_by_at_most_the_sensitivity(
    tmp_path, released, place, dtype, weighted, adjacency
):
    """At the ends of blocks too; a row of the largest norm and a weight above 1 takes at least nine tenths of it."""
    X, _, w = arrays(dtype)
    y = targets()
    X[place], y[place], w[place] = 1e6, 1e9, 1e6
    other_X, other_y, other_w = X.copy(), y.copy(), w.copy()
    if adjacency == "add_remove":
        other_X, other_y, other_w = (np.delete(each, place, axis=0) for each in (X, y, w))
    elif adjacency == "zero_out" and weighted:
        other_w[place] = 0.0
    else:
        other_X[place], other_y[place] = [1e6, -1e6, 1e6, -1e6], -1e9
    for number, (rows, label, weight) in enumerate(((X, y, w), (other_X, other_y, other_w))):
        path = write(tmp_path / f"{number}.parquet", rows, label, weight)
        model = least_squares(DPLinearRegression, adjacency=adjacency, n_samples_public=N)
        model.fit(TableRows(path, columns=NAMES), "label", sample_weight="weight" if weighted else None)
    (one, mechanism), (other, same) = released
    assert mechanism == same
    is_gone = adjacency == "add_remove" or (adjacency == "zero_out" and weighted)
    # Under add_remove the rows after it are in other blocks, which add up in another order.
    room = 1e-10 if adjacency == "add_remove" else 1e-12
    assert 0.9 < np.linalg.norm(one - other) <= (1.0 if is_gone else 2.0**0.5) * (1.0 + room)
    assert mechanism.sensitivity == (1.0 / 2.0**0.5 if adjacency == "replace_one" else 1.0)


@pytest.mark.parametrize(("gathered", "make"), [(None, network), (1, logistic), (400, logistic), (400, network)])
def test_lots_equal_those_drawn_in_memory_from_the_streams_of_their_steps(tmp_path, monkeypatch, make, gathered):
    """However many lots a pass gathers, and also where one lot is more than may be held."""
    X, y, w = arrays(np.float64)
    changes = {"sampling_rate": 0.05, "max_iter": 1}
    with monkeypatch.context() as patch:
        patch.setattr(
            Model, "draw_lot", lambda self, sampling, stream, step: sampling.rows(N, stream.spawn("step", step))
        )
        expected = make(**changes).fit(X, y, sample_weight=w)
    if gathered is not None:
        monkeypatch.setattr(model, "GATHERED_VALUES", gathered * (D + 8))
    found = make(**changes).fit(TableRows(write(tmp_path / "t.parquet", X, y, w)), "label", sample_weight="weight")
    for one, other in zip(parameters_of(found), parameters_of(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_lot_is_drawn_once_however_many_passes_there_are(tmp_path, monkeypatch):
    """The lot for which a pass has no room waits for the next one."""
    X, y, _ = arrays(np.float64)
    monkeypatch.setattr(model, "GATHERED_VALUES", int(0.12 * N) * (D + 8))  # two lots and a half
    tape = Tape(0)
    with running(tape):
        logistic(sampling_rate=0.05, max_iter=1, random_state=None).fit(
            TableRows(write(tmp_path / "t.parquet", X, y)), "label"
        )
    assert len(tape.tracks[0].lots) == 20
    assert not tape.words.are_repeated


@pytest.mark.parametrize(
    ("gathered", "dtype", "make"),
    [(None, np.float32, logistic), (None, float, network), (1, float, logistic)],
)
def test_lots_of_a_map_are_those_of_the_equal_array(tmp_path, monkeypatch, make, dtype, gathered):
    """joblib maps large arrays in its workers, where a seed is to give the model that it gives outside of them."""
    X, y, w = arrays(dtype)
    changes = {"sampling_rate": 0.05, "max_iter": 1}
    expected = make(**changes).fit(X, y, sample_weight=w)
    if gathered is not None:  # then each lot is summed in a pass, block by block
        monkeypatch.setattr(model, "GATHERED_VALUES", gathered * (D + 8))
    found = make(**changes).fit(mapped(tmp_path / "x.npy", X), y, sample_weight=w)
    for one, other in zip(parameters_of(found), parameters_of(expected), strict=True):
        if gathered is None:
            np.testing.assert_array_equal(one, other)
        else:
            rounding = {"rtol": 1e-4, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-12}
            np.testing.assert_allclose(one, other, **rounding)


def parameters_of(fitted):
    return [fitted.coef_] if hasattr(fitted, "coef_") else fitted.coefs_


@over_rows("group", [1, 7, 256, 300, N])
def test_row_groups_change_no_bit(tmp_path, group):
    X, y, _ = arrays(np.float32)
    X, y = X[:1000], y[:1000]
    expected = logistic().fit(arrow(X, y), "label")
    found = logistic().fit(TableRows(write(tmp_path / "t.parquet", X, y, group=group)), "label")
    assert (found.coef_ == expected.coef_).all()


def test_files_follow_one_another_and_may_be_empty(tmp_path):
    X, y, _ = arrays(np.float32)
    table = arrow(X, y)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(4)]
    for path, part in zip(paths, (table[:0], table[:1001], table[:0], table[1001:]), strict=True):
        pq.write_table(part, path, row_group_size=100)
    with pq.ParquetWriter(tmp_path / "groups.parquet", table.schema) as file:
        for part in (table[:0], table[:999], table[:0], table[999:], table[:0]):
            file.write_table(part)
    expected = logistic().fit(table, "label")
    for rows in (TableRows(paths), TableRows(tmp_path / "groups.parquet"), ds.dataset(paths)):
        assert (logistic().fit(rows, "label").coef_ == expected.coef_).all()


def test_columns_are_chosen_and_ordered_by_name(tmp_path):
    X, y, _ = arrays(np.float64)
    path = write(tmp_path / "t.parquet", X, y)
    chosen = ["c3", "c0", "c2"]
    expected = logistic().fit(X[:, [3, 0, 2]], y)
    found = logistic().fit(TableRows(path, columns=chosen), "label")
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-11)
    assert found.feature_names_in_.tolist() == chosen
    other_order = str(tmp_path / "o.parquet")
    pq.write_table(arrow(X[:, ::-1], y, names=NAMES[::-1]), other_order)
    # Predictions take the columns of the fit by their names, whatever the order of the file.
    expected = expected.decision_function(X[:, [3, 0, 2]])
    for rows in (TableRows(path), TableRows(other_order), ds.dataset(other_order)):
        np.testing.assert_allclose(found.decision_function(rows), expected, rtol=1e-10)
        assert found.predict(rows).shape == (N,)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(TableRows(path, columns=["c0", "c2", "c3"]))


def test_columns_of_several_types_are_numbers(tmp_path):
    X, y, _ = arrays(np.float64)
    codes = np.random.default_rng(0).integers(0, 3, N)
    columns = {
        "flag": X[:, 0] > 0,
        "code": pa.array(codes).dictionary_encode(),
        "small": codes.astype(np.int16),
        "half": X[:, 1].astype(np.float16),
        "money": pa.array(np.round(X[:, 2], 2)).cast(pa.decimal128(10, 2), safe=False),
    }
    table = pa.table({**columns, "label": y})
    plain = np.column_stack(
        [X[:, 0] > 0, codes, codes, X[:, 1].astype(np.float16), table["money"].cast(pa.float64()).to_numpy()]
    )
    pq.write_table(table.drop_columns("half"), tmp_path / "t.parquet")  # of halves in files, pyarrow's age decides
    found = logistic().fit(table, "label")
    np.testing.assert_allclose(found.coef_, logistic().fit(plain, y).coef_, rtol=1e-11)
    found = logistic().fit(TableRows(tmp_path / "t.parquet"), "label")
    np.testing.assert_allclose(found.coef_, logistic().fit(np.delete(plain, 3, 1), y).coef_, rtol=1e-11)


def test_labels_and_weights_may_be_arrays_beside_a_file(tmp_path):
    X, y, w = arrays(np.float64)
    path = write(tmp_path / "t.parquet", X, y)
    expected = logistic().fit(X, y, sample_weight=w)
    rows = TableRows(path, columns=NAMES)
    for labels, weights in ((y, w), (y.tolist(), list(w)), (mapped(tmp_path / "y.npy", y), w)):
        np.testing.assert_allclose(logistic().fit(rows, labels, weights).coef_, expected.coef_, rtol=1e-11)


# --- the charge comes first -------------------------------------------------------------------------------------------


@pytest.fixture
def opened(monkeypatch):
    """What ledgers held whenever a file was opened for its rows: a list, to which a ledger is given first."""
    seen = []
    original = ParquetRows._open

    def recording(self, columns, n_rows):
        seen.append([len(ledger.history) for ledger in seen_ledgers])
        return original(self, columns, n_rows)

    seen_ledgers = []
    monkeypatch.setattr(ParquetRows, "_open", recording)
    return seen_ledgers, seen


def test_the_charge_precedes_the_first_block(tmp_path, opened):
    ledgers, seen = opened
    X, y, _ = arrays()
    ledger, estimator = charged(tmp_path)
    ledgers.append(ledger)
    rows = TableRows(write(tmp_path / "t.parquet", X, y))
    estimator.fit(rows, "label")
    assert seen == [[1]] * 5  # one for class counts, a pass a step, and one for the offset
    DPPCA(2, accountant=ledger, delta=1e-6, epsilon=0.1).fit(rows, "label")
    assert seen == [[1]] * 5 + [[2]]
    least_squares(accountant=ledger, delta=1e-6, epsilon=0.1).fit(rows, "label")
    assert seen == [[1]] * 5 + [[2]] + [[3]]


def test_refusals_before_the_charge_read_and_charge_nothing(tmp_path, opened):
    ledgers, seen = opened
    X, y, _ = arrays()
    ledger, estimator = charged(tmp_path)
    ledgers.append(ledger)
    path = write(tmp_path / "t.parquet", X, y)
    named = pa.table({"c0": X[:, 0], "who": ["Ann"] * N, "label": y})
    pq.write_table(named, tmp_path / "named.parquet")
    pq.write_table(named.select(["c0", "label"]), tmp_path / "other.parquet")
    narrow = pa.schema([("c0", pa.float16()), ("label", pa.int8())])
    cases = [
        (estimator, TableRows(path), "married", "names no column of X"),
        (estimator, TableRows(path), None, "y=None"),
        (estimator, TableRows(path), y[:-1], "y has shape"),
        (estimator, TableRows(path, columns=["c0", "cX"]), "label", "names no column of X"),
        (estimator, TableRows(path, columns=["c0", "label"]), "label", "which is y"),
        (estimator, TableRows(path, columns=["c0", "c0"]), "label", "twice"),
        (estimator, TableRows(path, columns=[]), "label", "no columns"),
        (estimator, TableRows(named.slice(0, 0)), "label", "no rows"),
        (estimator, TableRows(path), da.from_array(y), "y is lazy where X is not"),
        (estimator, mapped(tmp_path / "x.npy", X), da.from_array(y), "y is lazy where X is not"),
        (estimator, ds.dataset(path, schema=narrow), "label", "no column 'c0' of the type halffloat"),
        (estimator, TableRows(tmp_path / "named.parquet"), "label", "string in column 'who'"),
        (estimator, TableRows([path, tmp_path / "other.parquet"]), "label", "no column 'c1'"),
        (estimator, ds.dataset(path).filter(ds.field("c0") > 0), "label", "filter"),
        (clone(estimator).set_params(classes=None), TableRows(path), "label", "classes=None"),
        (clone(estimator).set_params(adjacency="add_remove"), TableRows(path), "label", "n_samples_public=None"),
    ]
    ridge = least_squares(accountant=ledger, delta=1e-6)
    cases += [
        (ridge, TableRows(path), "married", "names no column of X"),
        (ridge, TableRows(path), None, "y=None"),
        (ridge, TableRows(path), y[:-1], "y has shape"),
        (clone(ridge).set_params(y_bounds=None), TableRows(path), "label", "y_bounds=None"),
        (clone(ridge).set_params(adjacency="add_remove"), TableRows(path), "label", "n_samples_public=None"),
    ]
    for model_, rows, target, message in cases:
        with pytest.raises(ValueError, match=message) as caught:
            model_.fit(rows, target)
        assert "\n" not in str(caught.value)
    with pytest.raises(BudgetExceededError):
        clone(estimator).set_params(noise_multiplier=0.01).fit(TableRows(path), "label")
    with pytest.raises(TypeError, match="no dataset of Parquet files"):
        estimator.fit(ds.dataset(named), "label")
    assert not ledger.history
    assert not seen


TARGETS = {
    "times": pa.array([np.datetime64("2020-01-01", "s")] * N),
    "lists": pa.array([[0]] * N),
    "bytes": pa.array([b"0"] * N),
    "nulls": pa.nulls(N),
    "decimals": pa.array([Decimal(1)] * N),
    "words": pa.array(["0"] * N),
}


@over_rows("kind", TARGETS)
def test_columns_that_cannot_be_labels_or_weights_are_refused_before_the_charge(tmp_path, kind):
    X, y, _ = arrays()
    ledger, estimator = charged(tmp_path)
    rows = TableRows(arrow(X, y).append_column("odd", TARGETS[kind]), NAMES)
    if kind != "words":
        with pytest.raises(ValueError, match=r"^y is a column of .*, where numbers or strings are needed"):
            estimator.fit(rows, "odd")
    if kind != "decimals":
        with pytest.raises(ValueError, match=r"^sample_weight is a column of .*, where numbers are needed"):
            estimator.fit(rows, "label", sample_weight="odd")
    assert not ledger.history


def test_columns_are_those_of_the_schema_of_a_dataset(tmp_path):
    X, y, _ = arrays()
    rows = ds.dataset(write(tmp_path / "t.parquet", X, y))
    chosen = rows.replace_schema(pa.schema([rows.schema.field(name) for name in ("c2", "label", "c0")]))
    assert logistic().fit(chosen, "label").feature_names_in_.tolist() == ["c2", "c0"]


def test_components_do_not_read_the_column_that_is_no_feature(tmp_path):
    X, y, _ = arrays()
    table = arrow(X, y).append_column("note", pa.array([None, *["text"] * (N - 1)]))
    rows = TableRows(table, [*NAMES, "label"])
    there = DPPCA(2, random_state=0).fit(TableRows(table), "note")
    np.testing.assert_array_equal(there.components_, DPPCA(2, random_state=0).fit(rows).components_)


def test_without_pyarrow_a_path_is_refused_before_the_charge(tmp_path, monkeypatch):
    ledger, estimator = charged(tmp_path)
    monkeypatch.delitem(sys.modules, "skdp._training.streamed.arrow")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # what an import then does: ImportError
    with pytest.raises(ImportError, match=r"install skdp\[data\]"):
        estimator.fit(TableRows(tmp_path / "t.parquet"), "label")
    assert not ledger.history


FAULTS = {
    "gap": lambda X, y: (X.__setitem__((700, 2), np.nan), "NaN in column 'c2'"),
    "infinity": lambda X, y: (X.__setitem__((700, 2), -np.inf), "infinity or a number too large"),
    "label": lambda X, y: (y.__setitem__(700, 77), "labels that are not in classes"),
}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("gap", "parquet"), ("gap", "map"), ("infinity", "table"), ("label", "parquet")],
)
def test_a_fault_in_a_block_is_one_line_and_the_charge_stands(tmp_path, fault, kind):
    X, y, _ = arrays()
    _, message = FAULTS[fault](X, y)
    if kind == "map":
        message = message.replace("column 'c2'", "column 2")
    ledger, estimator = charged(tmp_path)
    path = write(tmp_path / "t.parquet", X, y)
    rows = {"parquet": TableRows(path), "table": arrow(X, y), "map": mapped(tmp_path / "x.npy", X)}[kind]
    with pytest.raises(ValueError, match="after the fit was charged, which stands: .*" + message) as caught:
        estimator.fit(rows, y if kind == "map" else "label")
    said = str(caught.value)
    assert said.startswith("rows 512 to 767 of X")
    assert "\n" not in said
    assert "77" not in said.replace("767", "")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(ledger.history) == 1
    assert not hasattr(estimator, "coef_")
    assert not reader_threads()


@pytest.mark.parametrize(
    ("fault", "kind"), [("gap", "map"), ("infinity", "parquet"), ("target", "table"), ("weight", "parquet")]
)
def test_a_fault_in_a_block_of_least_squares_is_one_line_and_the_charge_stands(tmp_path, fault, kind):
    X, _, w = arrays()
    y = targets()
    at, message = {
        "gap": ((X, (700, 2), np.nan), "NaN"),
        "infinity": ((X, (700, 2), -np.inf), "infinity"),
        "target": ((y, 700, np.nan), "y contains NaN"),
        "weight": ((w, 700, -77.0), "sample_weight has negative"),
    }[fault]
    at[0][at[1]] = at[2]
    ledger = PrivacyAccountant(10.0, 1e-5, path=str(tmp_path / "ledger.budget"))
    model_ = least_squares(accountant=ledger, delta=1e-6)
    path = write(tmp_path / "t.parquet", X, y, w)
    rows = {"parquet": TableRows(path), "table": arrow(X, y, w), "map": mapped(tmp_path / "x.npy", X)}[kind]
    named = (y, w) if kind == "map" else ("label", "weight")
    with pytest.raises(ValueError, match="after the fit was charged, which stands: .*" + message) as caught:
        model_.fit(rows, *named)
    assert str(caught.value).startswith("rows 512 to 767 of X")
    assert "\n" not in str(caught.value)
    assert "77" not in str(caught.value).replace("767", "")
    assert caught.value.__context__ is None
    assert len(ledger.history) == 1
    assert not hasattr(model_, "coef_")
    assert not reader_threads()


def test_a_null_among_labels_is_no_class(tmp_path):
    """Also in lots, which are gathered in one array of the type of labels without gaps."""
    X, y, _ = arrays()
    table = arrow(X, y)
    label = pa.array(y, mask=np.arange(N) == 2000)
    for given, where in (
        (table.set_column(D, "label", label), "y contains NaN"),
        (table.append_column("weight", label), "sample_weight contains NaN"),
    ):
        weight = "weight" if "weight" in given.column_names else None
        for rate in (1.0, 0.05):
            with pytest.raises(ValueError, match="after the fit was charged, which stands: Input " + where):
                logistic(sampling_rate=rate, max_iter=1).fit(given, "label", sample_weight=weight)


@pytest.mark.parametrize("fault", ["words", "words in a file", "codes"])
def test_what_arrow_cannot_read_is_refused_without_its_text(tmp_path, fault):
    """Arrow's own errors quote the cell, or the number of a category."""
    X, y, _ = arrays()
    words = pa.array([*[b"no", b"yes"] * (N // 2 - 1), b"no", b"Ann \xff"])
    words = pa.Array.from_buffers(pa.string(), N, words.buffers())
    codes = pa.array([*[0] * (N - 1), 77], pa.int8())
    odd = pa.DictionaryArray.from_arrays(codes, pa.array([1.0, 2.0]), safe=False)
    if fault == "codes":
        rows, target, classes, where = pa.table({"odd": odd}), y, [0, 1], "X cannot be read in column 'odd'"
    else:
        rows, target = pa.table({"c0": X[:, 0], "label": words}), "label"
        classes, where = ["no", "yes"], "y cannot be read"
    if fault == "words in a file":
        pq.write_table(rows, tmp_path / "t.parquet")
        rows = tmp_path / "t.parquet"
    ledger, estimator = charged(tmp_path, classes=classes)
    with pytest.raises(ValueError, match=rf"after the fit was charged, which stands: {where}") as caught:
        estimator.fit(TableRows(rows), target)
    assert "Ann" not in str(caught.value)
    assert "77" not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(ledger.history) == 1
    assert not reader_threads()


class AfterStep:
    """In the place of the progress bar: does something when so many steps are done."""

    def __init__(self, step, act):
        self.step, self.act = step, act

    def __call__(self, n_done):
        if n_done == self.step:
            self.act()

    def close(self):
        pass


def rewritten(path, content, *, when=None):
    with open(path, "wb") as file:
        file.write(content)
    if when is not None:
        os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


@over_combinations(
    1,
    rate=[1.0, 0.05],
    change=["cut", "cut before the fit", "damaged", "touched", "another table", "gone", "equal", "put back", "a pipe"],
)
def test_a_file_that_changes_under_the_fit_is_refused(tmp_path, monkeypatch, change, rate):
    tmp_path = tmp_path / f"{change}, {rate}"
    tmp_path.mkdir()
    X, y, _ = arrays()
    path = write(tmp_path / "t.parquet", X, y)
    rows, when = ds.dataset(path), os.stat(path)
    rows.count_rows()
    whole = pathlib.Path(path).read_bytes()
    other = write(tmp_path / "other.parquet", X[:2000], y[:2000])

    def act():
        if change == "gone":
            os.remove(path)
        elif change == "touched":
            os.utime(path)
        elif change == "another table":
            os.replace(other, path)
        elif change == "equal":  # in size and time
            rewritten(other, whole, when=when)
            os.replace(other, path)
        elif change == "put back":  # what was written over in place is of the same size and time
            rewritten(path, whole, when=when)
        elif change == "a pipe":  # which nobody writes: to open it would wait for ever
            os.remove(path)
            os.mkfifo(path)
        elif change == "damaged":  # of the same size and time: pages that cannot be decoded
            rewritten(path, whole[:100] + b"\xff" * 20_000 + whole[20_100:], when=when)
        else:
            rewritten(path, whole[: len(whole) // 2])

    ledger, estimator = charged(tmp_path, sampling_rate=rate, max_iter=5)
    if change == "cut before the fit":  # after its metadata were read
        act()
    monkeypatch.setattr(model, "GATHERED_VALUES", 400 * (D + 8))
    monkeypatch.setattr(DPLogisticRegression, "_make_progress", lambda *given: AfterStep(1, act))
    expected = "the file .*t.parquet.* (changed|is damaged or cut off).* after the fit was charged, which stands"
    if change == "cut before the fit":
        expected = "is no Parquet file, or is cut off"
    with pytest.raises(ValueError, match=expected) as caught:
        estimator.fit(rows, "label")
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(ledger.history) == (change != "cut before the fit")
    assert not hasattr(estimator, "coef_")
    assert not reader_threads()


def test_a_map_whose_file_changes_is_refused(tmp_path, monkeypatch):
    X, y, _ = arrays()
    path = tmp_path / "x.npy"

    def put_back():
        when = os.stat(path)
        rewritten(path, path.read_bytes(), when=when)

    for change in (lambda: os.truncate(path, 1000), lambda: os.utime(path, ns=(1, 1)), put_back):
        rows = mapped(path, X)
        monkeypatch.setattr(DPLogisticRegression, "_make_progress", lambda *given, act=change: AfterStep(1, act))
        with pytest.raises(ValueError, match=r"the file .*x\.npy.* changed or was cut off under the fit"):
            logistic().fit(rows, y)


def folder_with(tmp_path, add):
    """A folder with one sound file and something else in it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "sound.parquet", *arrays()[:2])
    add(folder)
    return folder


def cut_off(path):
    whole = pathlib.Path(write(path, *arrays()[:2])).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


def empty(path):
    path.touch()
    return path


def with_a_name_twice(path):
    X, y, _ = arrays()
    pq.write_table(pa.Table.from_arrays([pa.array(X[:, 0]), pa.array(X[:, 1]), pa.array(y)], ["a", "a", "label"]), path)
    return path


def a_pipe(path):
    os.mkfifo(path)
    return path


def a_link_to_itself(path):
    path.symlink_to(path)
    return path


UNREADABLE = {
    "cut off": (lambda to: cut_off(to / "a.parquet"), "the file .*a.parquet' is no Parquet file, or is cut off: give"),
    "cut off, second": (
        lambda to: [write(to / "b.parquet", *arrays()[:2]), cut_off(to / "a.parquet")],
        "the file .*a.parquet' is no Parquet file, or is cut off: give",
    ),
    "empty": (lambda to: empty(to / "a.parquet"), "the file .*a.parquet' is no Parquet file, or is cut off: give"),
    "a name twice": (lambda to: with_a_name_twice(to / "a.parquet"), "X has several columns of one name, 'a': give"),
    "s3": (
        lambda to: "s3://key:secret@bucket/a.parquet",
        "^X is a URL of s3, where a path names files on this machine",
    ),
    "https in a list": (lambda to: ["https://host.invalid/a"], "^X is a URL of https, where a path names files"),
    "file": (lambda to: (to / "a.parquet").as_uri(), "^X is a URL of file, where a path names files"),
    "pipe": (lambda to: a_pipe(to / "a.parquet"), "a.parquet' is a pipe, a socket or a device, which cannot be read"),
    "device": (lambda to: "/dev/zero", "'/dev/zero' is a pipe, a socket or a device, which cannot be read"),
    "pipe in a list": (lambda to: [a_pipe(to / "a")], "a' is a pipe, a socket or a device, which cannot be read"),
    "pipe in a folder": (
        lambda to: folder_with(to, lambda folder: a_pipe(folder / "pipe.parquet")),
        "pipe.parquet' is a pipe, a socket or a device, which cannot be read twice: give a file",
    ),
    "missing": (lambda to: to / "a.parquet", r"a.parquet' cannot be read \(No such file or directory\): give a file"),
    "pattern": (lambda to: to / "*.parquet", r"cannot be read .*: patterns are not expanded, so give sorted\(glob"),
    "link to itself": (lambda to: a_link_to_itself(to / "a"), "a' cannot be read .*symbolic links.*: give a file"),
    "link to nothing in a folder": (
        lambda to: folder_with(to, lambda folder: (folder / "gone").symlink_to(to / "nowhere")),
        "gone' cannot be read .*: give a file that is there",
    ),
    "folder in a list": (lambda to: [to], "X has the folder .* in a list: give its files, or the folder alone"),
    "empty list": (lambda to: [], "X is empty and names no file: give paths"),
    "number in a list": (lambda to: [3], "X has a int where a path is needed: give paths"),
}


@over_rows("fault", UNREADABLE)
def test_what_is_no_parquet_file_is_refused_in_one_line_before_the_charge(tmp_path, fault):
    make_up, expected = UNREADABLE[fault]
    tmp_path = tmp_path / fault
    tmp_path.mkdir()
    ledger, estimator = charged(tmp_path)
    with pytest.raises((ValueError, TypeError, OSError), match=expected) as caught:
        estimator.fit(TableRows(make_up(tmp_path)), "label")
    assert type(caught.value).__module__ == "builtins"  # and no error of pyarrow
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert ledger.history == ()


def linked(make_link, name):
    def add(folder):
        make_link(folder / "sound.parquet", folder / name)

    return add


REPEATED = {
    "named twice": lambda to: [write(to / "a", *arrays()[:2]), str(to / "." / "a")],
    "a symbolic link": lambda to: folder_with(to, linked(os.symlink, "again.parquet")),
    "a hard link": lambda to: folder_with(to, linked(os.link, "again.parquet")),
    "a folder in itself": lambda to: folder_with(to, lambda folder: (folder / "again").symlink_to(folder)),
    "two links to a folder": lambda to: folder_with(
        to, lambda folder: [(folder / name).symlink_to(to / "other") for name in ((to / "other").mkdir() or "ab")]
    ),
    "row groups": lambda to: ds.FileSystemDataset(
        [*ds.dataset(write(to / "a", *arrays()[:2])).get_fragments()] * 2,
        arrow(*arrays()[:2]).schema, ds.ParquetFileFormat(), filesystem=pa.fs.LocalFileSystem(),
    ),
}  # fmt: skip


@over_rows("how", REPEATED)
def test_a_file_that_is_named_twice_is_refused_before_the_charge(tmp_path, how):
    """Its rows would be rows of one person twice, and add twice the sensitivity."""
    tmp_path = tmp_path / how
    tmp_path.mkdir()
    ledger, estimator = charged(tmp_path)
    with pytest.raises(ValueError, match=r"would count (twice|as many): name (each file once|files)"):
        estimator.fit(TableRows(REPEATED[how](tmp_path)), "label")
    assert ledger.history == ()


def test_a_file_in_parts_is_no_file_twice(tmp_path):
    X, y, _ = arrays()
    whole = ds.dataset(write(tmp_path / "t.parquet", X, y))
    parts = [part for fragment in whole.get_fragments() for part in fragment.split_by_row_group()]
    rows = ds.FileSystemDataset(parts, whole.schema, whole.format, filesystem=pa.fs.LocalFileSystem())
    assert len(parts) == 6
    np.testing.assert_array_equal(logistic().fit(rows, "label").coef_, logistic().fit(whole, "label").coef_)


def test_a_folder_has_the_files_that_pyarrow_finds(tmp_path):
    """In the same order, without those that other programs keep there."""
    X, y, _ = arrays()
    for start, name in enumerate(["b.parquet", "a/z.parquet", "a.parquet", "year=1/x", "_x.parquet", ".h/x", "_log/x"]):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / "t" / name, X[400 * start :][:400], y[400 * start :][:400])
    found = [part.path for part in source_of_rows(tmp_path / "t", None, "label", None)._parts]
    assert found == ds.dataset(tmp_path / "t", format="parquet").files
    assert len(found) == 4


def test_a_dataset_within_a_folder_is_watched_too(tmp_path, monkeypatch):
    X, y, _ = arrays()
    path = write(tmp_path / "t.parquet", X, y)
    when, whole = os.stat(path), pathlib.Path(path).read_bytes()
    rows = ds.dataset("t.parquet", filesystem=pa.fs.SubTreeFileSystem(str(tmp_path), pa.fs.LocalFileSystem()))
    monkeypatch.setattr(
        DPLogisticRegression, "_make_progress",
        lambda *given: AfterStep(1, lambda: rewritten(path, whole, when=when)),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"the file 't\.parquet' changed"):
        logistic(max_iter=5).fit(rows, "label")


def reader_threads():
    return [thread for thread in threading.enumerate() if thread.name == "skdp-reader"]


def test_an_interrupt_at_any_line_ends_the_thread(tmp_path):
    """Also between its start and the first block, and where the end of a pass is cleaned up."""
    X, y, _ = arrays()
    rows = TableRows(write(tmp_path / "t.parquet", X, y))
    interrupted = 0
    for line in itertools.count():
        left = line

        def at_line(frame, event, _):
            nonlocal left
            if event == "line":
                left -= 1
                if left < 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return at_line

        def at_call(frame, event, _, at_line=at_line):
            return at_line if frame.f_code is read_ahead.__code__ else None

        before = sys.gettrace()  # coverage's, or a debugger's
        sys.settrace(at_call)
        try:
            with warnings.catch_warnings(action="ignore"):
                logistic(max_iter=1).fit(rows, "label")
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        deadline = time.monotonic() + 600.0
        while reader_threads() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not reader_threads(), line
        if left >= 0:
            break
        interrupted += 1
    assert interrupted > 30  # lines of a pass over twelve blocks


@pytest.mark.parametrize("rate", [1.0, 0.05])
@pytest.mark.parametrize("kind", ["parquet", "map"])
def test_a_run_resumes_from_its_checkpoint(tmp_path, monkeypatch, kind, rate):
    """In the middle of lots that were drawn ahead, and to the same bits."""
    X, y, _ = arrays()
    rows, label = TableRows(write(tmp_path / "t.parquet", X, y)), "label"
    if kind == "map":
        rows, label = mapped(tmp_path / "x.npy", X), y
    fixed = {"sampling_rate": rate, "max_iter": 6 if rate == 1.0 else 1}
    expected = logistic(**fixed).fit(rows, label)

    def interrupt():
        raise KeyboardInterrupt

    ledger, estimator = charged(tmp_path, checkpoint=str(tmp_path / "run"), **fixed)
    with monkeypatch.context() as patch:
        patch.setattr(DPLogisticRegression, "_make_progress", lambda *given: AfterStep(3, interrupt))
        with pytest.warns(FitInterruptedWarning):
            estimator.fit(rows, label)
    estimator.fit(rows, label)
    assert (estimator.coef_ == expected.coef_).all()
    assert len(ledger.history) == 1


# --- one row --------------------------------------------------------------------------------------------------------


class Held(BlockSource):
    """Rows in memory that are read like those of a file; `passes` counts how often."""

    def __init__(self, X, labels, weights, size=256):
        self.n_rows, self.n_features = X.shape
        self.dtype, self.size, self.passes = X.dtype, size, 0
        self._given = X, labels, weights

    @property
    def block_rows(self):
        return self.size

    def blocks(self, order="C"):
        self.passes += 1
        for start in range(0, self.n_rows, self.size):
            yield RowBlock(start, *(each[start : start + self.size] for each in self._given))


def linear_recipe(dtype, by_lot):
    def make(X, values, weights):
        return LinearModel(X, values, weights, 1, LinearGeometry(2.0, True), by_lot=by_lot)

    return BlockRecipe(make, ClassReader(np.arange(2), None, WeightReader(1.0)), np.dtype(dtype), NAMES)


def network_recipe(dtype, by_lot):
    shape = Architecture((D, 5, 1), "tanh", "logistic")

    def make(X, values, weights):
        clip = Clip("flat", (0.5**0.5, 0.5**0.5))
        return NetworkModel(X, values, weights, shape, clip, radius=2.0, unit=1.0, dtype=dtype, batch_size=100)

    return BlockRecipe(make, ClassReader(np.arange(2), None, WeightReader(1.0)), np.dtype(dtype), NAMES)


@over_rows("make", [linear_recipe, network_recipe])
@over_rows("dtype", [np.float64, np.float32])
@over_rows("gathered", [None, 2000, 1])
def test_a_row_moves_the_sum_of_a_step_by_at_most_the_clip(make, dtype, gathered):
    """Of all rows, of lots that are gathered, and of lots too large for that; reached by a row that is clipped."""
    X, y, w = arrays(dtype)
    w += 1.0
    sampling = PoissonSampling(0.3)
    key = SecretStream(bytes(range(32)))
    row, max_norm = sampling.rows(N, key.spawn("step", 0))[200], 1e-3  # which is drawn
    without = w.copy()
    without[row] = 0.0
    theta = np.random.default_rng(0).standard_normal(5 * (D + 1) + 6 if make is network_recipe else D + 1)
    moved = []
    for full in (True, False):
        sums = []
        for weights in (w, without):
            streamed = StreamedModel(Held(X, y, weights), make(dtype, not full), 4, gathered)
            with streamed:
                lots = [None] if full else [streamed.draw_lot(sampling, key, 0)]
                sums.append(streamed.clipped_gradient_sum(theta.astype(dtype), lots[0], max_norm))
        moved.append(np.linalg.norm(sums[0] - sums[1]))
    for each in moved:
        assert 0.99 * max_norm < each <= max_norm * (1.0 + 1e-12)


def test_a_pass_reads_each_row_once():
    """The sum over rows with gradients that tell them apart: of all, and of lots."""
    X, y, _ = arrays(np.float64)
    w = np.ones(N)
    in_memory = linear_recipe(np.float64, True)(X, y, w)
    theta = np.linspace(-1.0, 1.0, D + 1)
    key, sampling = SecretStream(bytes(32)), PoissonSampling(0.1)
    held = Held(X, y, w)
    with StreamedModel(held, linear_recipe(np.float64, False), 5) as streamed:
        total = streamed.clipped_gradient_sum(theta, None, 0.1)
        everything = in_memory.clipped_gradient_sum(theta, np.arange(N), 0.1)
        np.testing.assert_allclose(total, everything, rtol=1e-10)
        assert held.passes == 1
    with StreamedModel(held, linear_recipe(np.float64, True), 5, 10**6) as streamed:
        for step in range(5):
            lot = sampling.rows(N, key.spawn("step", step))
            total = streamed.clipped_gradient_sum(theta, streamed.draw_lot(sampling, key, step), 0.1)
            np.testing.assert_allclose(total, in_memory.clipped_gradient_sum(theta, lot, 0.1), rtol=1e-10)
        assert held.passes == 2  # one for the lots of all steps


def test_lots_that_are_drawn_ahead_are_poisson_samples():
    """Each row in each lot with the same probability, independently from step to step, whatever the passes."""
    n, n_steps, rate = 400, 500, 0.02
    X, y, w = np.zeros((n, 1)), np.zeros(n, np.int8), np.ones(n)
    places = []

    def make(rows, values, weights):
        return Remembering(places)

    recipe = BlockRecipe(make, ClassReader(np.arange(2), None, WeightReader(1.0)), np.dtype(float))
    X[:, 0] = np.arange(n)
    counts, together = np.zeros(n), np.zeros(n - 1)
    with StreamedModel(Held(X, y, w, 64), recipe, n_steps, 30) as streamed:
        gathered = []
        recipe_rows = streamed._source.gather
        streamed._source.gather = lambda places: gathered.append(recipe_rows(places)) or gathered[-1]
        earlier = np.zeros(n)
        repeats = 0
        for step in range(n_steps):
            lot = streamed.draw_lot(PoissonSampling(rate), SecretStream(bytes(range(32))), step)
            streamed.clipped_gradient_sum(np.zeros(1), lot, 1.0)
            rows = gathered[-1].rows[places.pop(), 0].astype(int) if places else np.empty(0, int)
            assert (np.diff(rows) > 0).all()
            now = np.zeros(n)
            now[rows] = 1
            counts += now
            repeats += (now * earlier).sum()
            together += now[1:] * now[:-1]
            earlier = now
    assert len(gathered) > 50
    variance = n_steps * rate * (1 - rate)
    statistic = ((counts - n_steps * rate) ** 2).sum() / variance
    assert chi2.ppf(FALSE_ALARM / 2, n) < statistic < chi2.isf(FALSE_ALARM / 2, n)
    # Drawn in two lots running, and drawn beside a neighbour in the file: Poisson numbers of this mean.
    for found, expected in ((repeats, n * n_steps * rate**2), (together.sum(), n * n_steps * rate**2)):
        assert abs(found - expected) < 5.0 * np.sqrt(expected)


class Remembering:
    """A model that keeps the places of the lots that it is given."""

    def __init__(self, places):
        self.places = places

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def clipped_gradient_sum(self, theta, rows, max_norm):
        self.places.append(rows)
        return np.zeros(theta.size)


def test_no_more_rows_are_gathered_than_may_be_held():
    X, y, _ = arrays(np.float64)
    held = Held(X, y, np.ones(N))
    sizes, drawn = [], []
    original = held.gather
    held.gather = lambda places: sizes.append(len(places)) or original(places)
    key = SecretStream(bytes(32))
    with StreamedModel(held, linear_recipe(np.float64, True), 200, 500) as streamed:
        for step in range(200):
            lot = streamed.draw_lot(PoissonSampling(0.02), key, step)
            drawn.append(len(streamed._lots.numbers[lot]))
    assert max(sizes) <= 500
    assert np.mean(sizes) > 300
    assert drawn == [len(PoissonSampling(0.02).rows(N, key.spawn("step", step))) for step in range(200)]
    assert 0.9 * sum(drawn) < sum(sizes) < sum(drawn)  # a row of two lots is gathered once


def test_empty_lots_add_nothing():
    X, y, _ = arrays(np.float64)
    with StreamedModel(Held(X, y, np.ones(N)), linear_recipe(np.float64, True), 3) as streamed:
        for step in range(3):
            lot = streamed.draw_lot(PoissonSampling(1e-9), SecretStream(bytes(32)), step)
            assert (streamed.clipped_gradient_sum(np.zeros(D + 1), lot, 1.0) == np.zeros(D + 1)).all()


# --- who takes no such rows -------------------------------------------------------------------------------------------


def others():
    """Private estimators, pipelines and searches that need rows in memory."""
    fixed = {"classes": [0, 1]}
    pipe = make_pipeline(skdp.preprocessing.DPStandardScaler(bounds=(-1.0, 1.0)), DPLogisticRegression(**fixed))
    grid = {"alpha": [0.0, 0.1]}
    return [
        skdp.DPGaussianNB(bounds=(-1.0, 1.0), **fixed),
        skdp.ensemble.DPRandomTreesClassifier(bounds=(-1.0, 1.0), **fixed),
        skdp.preprocessing.DPStandardScaler(bounds=(-1.0, 1.0)),
        skdp.preprocessing.DPTableVectorizer(),
        skdp.preprocessing.DPSimpleImputer(),
        allocate_budget(pipe, 1.0, 1e-6),
        skdp.DPGridSearchCV(DPLogisticRegression(**fixed), grid, epsilon=1.0, delta=1e-6),
    ]


@over_rows("estimator", others())
def test_others_refuse_rows_that_are_not_in_memory(tmp_path, opened, estimator):
    X, y, _ = arrays()
    ledger = PrivacyAccountant(10.0, 1e-5, path=str(tmp_path / "ledger.budget"))
    if "accountant" in estimator.get_params(deep=False):
        estimator = clone(estimator).set_params(accountant=ledger)
    path = write(tmp_path / "t.parquet", X, y)
    for rows in (TableRows(path), ds.dataset(path)):
        with pytest.raises(TypeError, match="not in memory") as caught:
            estimator.fit(rows, y)
        assert "\n" not in str(caught.value)
    assert not ledger.history
    assert not opened[1]


# --- progress ---------------------------------------------------------------------------------------------------------


def test_long_steps_are_shown_with_the_time_left(monkeypatch, capsys):
    """Without tqdm, which tells it by itself: a step of ten minutes is shown at once, and a short one is not."""
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    bar = progress.StepProgress(200, lambda n_done: 0.01 * n_done)
    clock[0] = 0.1
    bar(1)
    assert capsys.readouterr().err == ""
    clock[0] = 1200.0
    bar(2)
    assert capsys.readouterr().err == "\rstep 2/200 ( 33 h left), epsilon so far 0.02  "
    clock[0] = 1200.1
    bar(10)
    assert "(  6 h left)" in capsys.readouterr().err
    resumed = progress.StepProgress(200, lambda n_done: 1.0)
    clock[0] = 1260.1
    resumed(197)  # the first step of this run took a minute
    assert "step 197/200 (  3 min left)" in capsys.readouterr().err


# --- arrays like any other --------------------------------------------------------------------------------------------


def test_a_map_of_unnamed_classes_or_of_several_labels_is_an_array_like_any_other(tmp_path):
    """joblib hands its workers maps of large arrays: what an array may be, they may be."""
    X, y, _ = arrays(np.float64)
    rows = mapped(tmp_path / "x.npy", X)
    with pytest.warns(skdp.PrivacyLeakWarning, match="classes=None"):
        expected = logistic(classes=None).fit(X, y)
    with pytest.warns(skdp.PrivacyLeakWarning, match="classes=None"):
        found = logistic(classes=None).fit(rows, y)
    assert (found.coef_ == expected.coef_).all()
    with pytest.warns(skdp.PrivacyLeakWarning, match="y_bounds=None"):
        expected, found = (least_squares(y_bounds=None).fit(each, y) for each in (X, rows))
    assert (found.coef_ == expected.coef_).all()
    several = np.column_stack([y, 1 - y])
    expected, found = network().fit(X, several), network().fit(rows, several)
    assert (found.coefs_[0] == expected.coefs_[0]).all()
    assert (logistic().fit(X, y).predict(rows) == logistic().fit(rows, y).predict(X)).all()


@pytest.mark.parametrize("center", ["private", False])
def test_components_equal_those_in_memory(tmp_path, center):
    X, y, _ = arrays(np.float64)
    expected = DPPCA(2, center=center, random_state=0).fit(X)
    path = write(tmp_path / "t.parquet", X, y)
    found = DPPCA(2, center=center, random_state=0).fit(TableRows(path), "label")
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-10)
    of_map = DPPCA(2, center=center, random_state=0).fit(mapped(tmp_path / "x.npy", X))
    np.testing.assert_allclose(of_map.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(found.transform(TableRows(path)), expected.transform(X), atol=1e-10)
    assert found.n_samples_ == N


def test_instalments_add_up(tmp_path):
    X, y, _ = arrays(np.float64)
    rows = TableRows(write(tmp_path / "t.parquet", X, y))
    expected = logistic(warm_start=True).fit(X, y).fit(X, y)
    found = logistic(warm_start=True, classes=[0, 1]).fit(rows, "label").fit(rows, "label")
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-11)
    assert found.epsilon_ == expected.epsilon_
    with pytest.raises(ValueError, match="feature names"):
        found.partial_fit(TableRows(rows.source, columns=NAMES[:2]), "label")


def test_a_null_is_a_gap(tmp_path):
    X, y, _ = arrays()
    column = pa.array(X[:, 1], mask=np.arange(N) == 2999)
    table = arrow(X, y).set_column(1, "c1", column)
    pq.write_table(table, tmp_path / "t.parquet")
    for rows in (table, TableRows(tmp_path / "t.parquet")):
        with pytest.raises(ValueError, match=r"after the fit was charged.*NaN in column 'c1'"):
            logistic().fit(rows, "label")


def test_an_interrupt_keeps_the_steps_done_and_ends_the_thread(tmp_path, monkeypatch):
    X, y, _ = arrays()
    path = write(tmp_path / "t.parquet", X, y)

    def interrupt():
        raise KeyboardInterrupt

    ledger, estimator = charged(tmp_path)
    monkeypatch.setattr(DPLogisticRegression, "_make_progress", lambda *given: AfterStep(2, interrupt))
    with pytest.warns(FitInterruptedWarning):
        estimator.fit(TableRows(path), "label")
    assert estimator.n_steps_ == 2
    assert len(ledger.history) == 1
    assert not reader_threads()


def test_rows_that_joblib_maps_are_those_of_one_process():
    """It maps large arrays to send them to its processes, which fit as this one does."""
    X, y, _ = arrays()
    estimator = logistic(sampling_rate=0.1, merge_equal_rows=True)
    work = Parallel(n_jobs=2, max_nbytes=1)
    there = work(delayed(lambda X, y: (type(X), clone(estimator).fit(X, y).coef_))(X, y) for _ in range(2))
    here = clone(estimator).fit(X, y).coef_
    for kind, coef in there:
        assert kind is np.memmap
        np.testing.assert_array_equal(coef, here)
