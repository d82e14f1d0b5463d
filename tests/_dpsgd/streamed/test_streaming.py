"""Rows that are not in memory: read block by block after the charge, and trained on as if they were in memory."""

import itertools
import os
import pathlib
import sys
import threading
import time
from functools import partial

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from combinations import combined, over_combinations, over_rows
from interrupts import AfterStep, InterruptAt, interrupt_after
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, replay
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
from skdp._dpsgd import estimator as progress
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel, Model
from skdp._dpsgd.models.network import Architecture, Clip, NetworkModel
from skdp._dpsgd.streamed import streamed_model as model
from skdp._dpsgd.streamed.arrow import source_of_rows
from skdp._dpsgd.streamed.blocks import BlockSource, read_ahead
from skdp._dpsgd.streamed.streamed_model import RowBlock, StreamedModel
from skdp._dpsgd.targets import ClassReader
from skdp.datasets import TableRows
from skdp.decomposition import DPPCA
from skdp.exceptions import BudgetExceededError, FitInterruptedWarning
from skdp.mechanisms.sampling import PoissonSampling
from skdp.mechanisms.streams import SecretStream

N, D = 3000, 4
NAMES = [f"c{j}" for j in range(D)]


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


def given_as(source, folder, X, y, w=None):
    """What fit is given: rows that are not in memory, labels, weights."""
    if source == "map":
        return mapped(folder / "x.npy", X), y, w
    path = write(folder / "t.parquet", X, y, w)
    rows = {"parquet": TableRows(path), "dataset": ds.dataset(path), "table": arrow(X, y, w)}[source]
    return rows, "label", None if w is None else "weight"


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


def targets(seed=1):
    """Some of them beyond the bounds of the estimators below."""
    return np.random.default_rng(seed).uniform(-4.0, 6.0, N)


def least_squares(estimator=DPRidge, **changes):
    return estimator(**{"y_bounds": (-3.0, 5.0), "random_state": 3, "data_norm": 1.2} | changes)


def regression(loss="squared_error", **changes):
    fixed = {"epsilon": None, "noise_multiplier": 50.0, "random_state": 1, "sampling_rate": 1.0, "max_iter": 3}
    bounds = (0.0, 8.0) if loss == "poisson" else (-1.0, 8.0)
    return DPMLPRegressor((3,), **{"loss": loss, "y_bounds": bounds} | fixed | changes)


MADE = {
    "logistic": logistic,
    "classes": partial(logistic, classes=["no", "perhaps", "yes"]),
    "network": partial(network, class_weight={0: 1.0, 1: 0.5}),
    "regression": regression,
    "counts": partial(regression, "poisson"),
    "ridge": least_squares,
    "linear regression": partial(least_squares, DPLinearRegression),
    "components": partial(DPPCA, 2, random_state=0),
}
LEARNED = ("coef_", "intercept_", "coef_std_", "coefs_", "intercepts_", "components_", "mean_")


def parts(value):
    return value if isinstance(value, list) else [value]


@over_combinations(
    1,
    kind=MADE,
    source=["parquet", "dataset", "table", "map"],
    dtype=[np.float64, np.float32, np.int8],
    adjacency=["zero_out", "replace_one", "add_remove"],
    weighted=[True, False],
)
def test_a_full_batch_equals_one_in_memory(tmp_path, kind, source, dtype, adjacency, weighted):
    X, y, w = arrays(dtype)
    if kind == "classes":
        y = np.array(["no", "perhaps", "yes"])[np.random.default_rng(1).integers(0, 3, N)]
    elif kind not in ("logistic", "network"):
        y = np.abs(targets()) if kind == "counts" else targets()
    w = w if weighted and kind != "components" else None
    changes = {"adjacency": with_n_public(adjacency, N)}
    rows, labels, weights = given_as(source, tmp_path, X, y, w)
    expected = MADE[kind](**changes).fit(X, y, sample_weight=w)
    found = MADE[kind](**changes).fit(rows, labels, sample_weight=weights)
    # In memory, the norm of a float32 row is kept as one, rounded up; networks are trained in single precision.
    rounding = {"rtol": 1e-4, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-11}
    for name in vars(expected).keys() & set(LEARNED):
        for one, other in zip(parts(getattr(found, name)), parts(getattr(expected, name)), strict=True):
            np.testing.assert_allclose(one, other, **rounding)
    assert (found.epsilon_, found.privacy_event_) == (expected.epsilon_, expected.privacy_event_)
    assert found.n_features_in_ == D
    if source != "map":
        assert found.feature_names_in_.tolist() == NAMES


@combined(
    1,
    adjacency=["zero_out", "replace_one", "add_remove"],
    weighted=[True, False],
    dtype=[np.float64, np.float32],
    place=[0, 255, N - 1],
)
def test_a_row_moves_what_least_squares_release_by_at_most_the_sensitivity(tmp_path, place, dtype, weighted, adjacency):
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
    paths = write(tmp_path / "one", X, y, w), write(tmp_path / "other", other_X, other_y, other_w)
    model = least_squares(DPLinearRegression, adjacency=with_n_public(adjacency, N))
    weight = "weight" if weighted else None
    one, other = replay(
        lambda path: clone(model).fit(TableRows(path, columns=NAMES), "label", sample_weight=weight), *paths
    )
    (move,), sensitivity = moves(one, other), one.releases[0].sensitivity
    assert sensitivity == (1.0 / 2.0**0.5 if adjacency == "replace_one" else 1.0)
    is_gone = adjacency == "add_remove" or (adjacency == "zero_out" and weighted)
    # Under add_remove the rows after it are in other blocks, which add up in another order.
    room = 1e-10 if adjacency == "add_remove" else 1e-12
    assert 0.9 < move * sensitivity <= (1.0 if is_gone else 2.0**0.5) * (1.0 + room)
    assert_all_else_is_equal(one, other)


@pytest.mark.parametrize(("gathered", "make"), [(None, network), (1, logistic), (400, network)])
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


@pytest.mark.parametrize(
    ("gathered", "dtype", "make"), [(None, np.float32, logistic), (None, float, network), (1, float, logistic)]
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
    chosen, some = ["c3", "c0", "c2"], X[:, [3, 0, 2]]
    expected = logistic().fit(some, y)
    found = logistic().fit(TableRows(write(tmp_path / "t.parquet", X, y), columns=chosen), "label")
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-11)
    assert found.feature_names_in_.tolist() == chosen
    # Predictions take the columns of the fit by their names, whatever the order of the file.
    other_order = str(tmp_path / "o.parquet")
    pq.write_table(arrow(X[:, ::-1], y, names=NAMES[::-1]), other_order)
    for rows in (TableRows(other_order), ds.dataset(other_order)):
        np.testing.assert_allclose(found.decision_function(rows), expected.decision_function(some), rtol=1e-10)
    with pytest.raises(ValueError, match="feature names"):
        found.predict(TableRows(other_order, columns=["c0", "c2", "c3"]))


def test_columns_of_several_types_are_numbers(tmp_path):
    X, y, _ = arrays(np.float64)
    codes = np.random.default_rng(0).integers(0, 3, N)
    money = pa.array(np.round(X[:, 2], 2)).cast(pa.decimal128(10, 2), safe=False)
    code = pa.array(codes).dictionary_encode()
    table = pa.table({"flag": X[:, 0] > 0, "code": code, "small": codes.astype(np.int16), "money": money, "label": y})
    pq.write_table(table, tmp_path / "t.parquet")
    expected = logistic().fit(np.column_stack([X[:, 0] > 0, codes, codes, money.cast(pa.float64()).to_numpy()]), y)
    for rows in (table, TableRows(tmp_path / "t.parquet")):
        np.testing.assert_allclose(logistic().fit(rows, "label").coef_, expected.coef_, rtol=1e-11)


def test_labels_and_weights_may_be_arrays_beside_a_file(tmp_path):
    X, y, w = arrays(np.float64)
    rows = TableRows(write(tmp_path / "t.parquet", X, y), columns=NAMES)
    expected = logistic().fit(X, y, sample_weight=w)
    for labels, weights in ((y.tolist(), list(w)), (mapped(tmp_path / "y.npy", y), w)):
        np.testing.assert_allclose(logistic().fit(rows, labels, weights).coef_, expected.coef_, rtol=1e-11)


# --- the charge comes first -------------------------------------------------------------------------------------------


def test_the_charge_precedes_the_first_block(tmp_path, opened):
    ledger, seen = opened
    X, y, _ = arrays()
    rows, given = TableRows(write(tmp_path / "t.parquet", X, y), NAMES), {"accountant": ledger, "delta": 1e-6}
    logistic(**given).fit(rows, "label")
    assert seen == [(1, [*NAMES, "label"])] * 5  # one for class counts, a pass a step, and one for the offset
    DPPCA(2, epsilon=0.1, **given).fit(rows)
    least_squares(epsilon=0.1, **given).fit(rows, "label")
    assert seen[5:] == [(2, NAMES), (3, [*NAMES, "label"])]


def test_rejections_before_the_charge_read_and_charge_nothing(tmp_path, opened):
    ledger, seen = opened
    X, y, _ = arrays()
    estimator = logistic(accountant=ledger, delta=1e-6)
    path = write(tmp_path / "t.parquet", X, y)
    named = pa.table({"c0": X[:, 0], "who": ["Ann"] * N, "label": y})
    pq.write_table(named.select(["c0", "label"]), tmp_path / "other.parquet")
    odd = TableRows(arrow(X, y).append_column("odd", pa.array([[0]] * N)), NAMES)
    ridge = least_squares(accountant=ledger, delta=1e-6)
    for model_, rows, target, message in [
        (estimator, TableRows(path), "married", "is not a column of X"),
        (estimator, TableRows(path), None, "got None"),
        (ridge, TableRows(path), y[:-1], "`y` must have shape"),
        (estimator, TableRows(path, columns=["c0", "cX"]), "label", "is not a column of X"),
        (estimator, TableRows(path, columns=["c0", "label"]), "label", "which is used as `y`"),
        (estimator, TableRows(path, columns=["c0", "c0"]), "label", "duplicates"),
        (estimator, TableRows(path, columns=[]), "label", "at least one row and one column"),
        (estimator, TableRows(named.slice(0, 0)), "label", "at least one row"),
        (estimator, mapped(tmp_path / "x.npy", X), da.from_array(y), "`y` is a lazy Dask object"),
        (estimator, named, "label", "string in column 'who'"),
        (estimator, odd, "odd", "^`y` must be a column of numbers or strings"),
        (estimator, TableRows([path, tmp_path / "other.parquet"]), "label", "no column 'c1'"),
        (estimator, ds.dataset(path).filter(ds.field("c0") > 0), "label", "filter"),
        (clone(estimator).set_params(classes=None), TableRows(path), "label", "`classes` must be set"),
        (clone(estimator).set_params(adjacency="add_remove"), TableRows(path), "label", "AddRemove"),
        (clone(ridge).set_params(y_bounds=None), TableRows(path), "label", "`y_bounds` must be set"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            model_.fit(rows, target)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^`sample_weight` must be a column of numbers"):
        estimator.fit(odd, "label", sample_weight="odd")
    with pytest.raises(BudgetExceededError):
        clone(estimator).set_params(noise_multiplier=0.01).fit(TableRows(path), "label")
    with pytest.raises(TypeError, match="must be a dataset of Parquet files"):
        estimator.fit(ds.dataset(named), "label")
    assert not ledger.history
    assert not seen


def test_without_pyarrow_a_path_is_rejected_before_the_charge(tmp_path, monkeypatch):
    ledger, estimator = charged(tmp_path)
    monkeypatch.delitem(sys.modules, "skdp._dpsgd.streamed.arrow")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # what an import then does: ImportError
    with pytest.raises(ImportError, match=r"pip install"):
        estimator.fit(TableRows(tmp_path / "t.parquet"), "label")
    assert not ledger.history


def assert_one_line_after_charge(fit, ledger, estimator, message):
    """The charge stands, nothing is published, and the message quotes no cell."""
    with pytest.raises(ValueError, match=message + ".* The budget was already charged") as caught:
        fit()
    said = str(caught.value)
    assert "\n" not in said
    assert "77" not in said.replace("767", "")
    assert caught.value.__context__ is None
    assert len(ledger.history) == 1
    assert not {"coef_", "n_steps_", "epsilon_"} & vars(estimator).keys()
    assert not reader_threads()
    return said


FAULTS = {
    "gap": lambda X, y, w: (X.__setitem__((700, 2), np.nan), "NaN in column"),
    "infinity": lambda X, y, w: (X.__setitem__((700, 2), -np.inf), "infinity or a number too large"),
    "label": lambda X, y, w: (y.__setitem__(700, 77), "labels that are not in classes"),
    "target": lambda X, y, w: (y.__setitem__(700, np.nan), "y contains NaN"),
    "weight": lambda X, y, w: (w.__setitem__(700, -77.0), "Negative values in data passed to `sample_weight`"),
}


@pytest.mark.parametrize(
    ("fault", "source"), [("gap", "parquet"), ("gap", "map"), ("infinity", "table"), ("label", "parquet")]
)
def test_a_fault_in_a_block_is_one_line_and_the_charge_stands(tmp_path, fault, source):
    X, y, w = arrays()
    _, message = FAULTS[fault](X, y, w)
    ledger, estimator = charged(tmp_path)
    given = given_as(source, tmp_path, X, y)
    said = assert_one_line_after_charge(lambda: estimator.fit(*given), ledger, estimator, message)
    assert said.startswith("Rows 512 to 767 of X")


@pytest.mark.parametrize(("fault", "source"), [("gap", "map"), ("target", "table"), ("weight", "parquet")])
def test_a_fault_in_a_block_of_least_squares_is_one_line_and_the_charge_stands(tmp_path, fault, source):
    X, _, w = arrays()
    y = targets()
    _, message = FAULTS[fault](X, y, w)
    ledger = PrivacyAccountant(10.0, 1e-5, path=str(tmp_path / "ledger.budget"))
    model_ = least_squares(accountant=ledger, delta=1e-6)
    given = given_as(source, tmp_path, X, y, w)
    said = assert_one_line_after_charge(lambda: model_.fit(*given), ledger, model_, message)
    assert said.startswith("Rows 512 to 767 of X")


@over_rows("name", ["c1", "label", "weight"])
def test_nulls_are_gaps(tmp_path, name):
    """Also in lots, which are gathered in one array of the type of labels without gaps."""
    X, y, w = arrays()
    table = arrow(X, y, w)
    place = table.column_names.index(name)
    table = table.set_column(place, name, pa.array(table[name].to_numpy(), mask=np.arange(N) == 2999))
    pq.write_table(table, tmp_path / "t.parquet")
    where = {"c1": "NaN in column 'c1'", "label": "Input y contains NaN", "weight": "Input sample_weight contains NaN"}
    for rows, rate in ((table, 1.0), (TableRows(tmp_path / "t.parquet"), 0.05)):
        with pytest.raises(ValueError, match=where[name] + ".* The budget was already charged"):
            logistic(sampling_rate=rate, max_iter=1).fit(rows, "label", sample_weight="weight")


@pytest.mark.parametrize("fault", ["words in a file", "codes"])
def test_what_arrow_cannot_read_is_rejected_without_its_text(tmp_path, fault):
    """Arrow's own errors quote the cell, or the number of a category."""
    X, y, _ = arrays()
    rows, target, classes, where = tmp_path / "t.parquet", "label", ["no", "yes"], "y cannot be read"
    if fault == "codes":
        codes = pa.array([*[0] * (N - 1), 77], pa.int8())
        odd = pa.DictionaryArray.from_arrays(codes, pa.array([1.0, 2.0]), safe=False)
        rows, target, classes, where = pa.table({"odd": odd}), y, [0, 1], "X cannot be read in column 'odd'"
    else:
        words = pa.array([*[b"no", b"yes"] * (N // 2 - 1), b"no", b"Ann 77 \xff"])
        words = pa.Array.from_buffers(pa.string(), N, words.buffers())
        pq.write_table(pa.table({"c0": X[:, 0], "label": words}), rows)
    ledger, estimator = charged(tmp_path, classes=classes)
    assert_one_line_after_charge(lambda: estimator.fit(TableRows(rows), target), ledger, estimator, where)


def rewritten(path, content, *, when=None):
    with open(path, "wb") as file:
        file.write(content)
    if when is not None:
        os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))


@over_combinations(1, rate=[1.0, 0.05], change=["cut before the fit", "damaged", "another table", "gone", "put back"])
def test_a_file_that_changes_under_the_fit_is_rejected(tmp_path, monkeypatch, change, rate):
    tmp_path = tmp_path / f"{change}, {rate}"
    tmp_path.mkdir()
    X, y, _ = arrays()
    path = write(tmp_path / "t.parquet", X, y)
    rows, when = ds.dataset(path), os.stat(path)
    rows.count_rows()
    whole = pathlib.Path(path).read_bytes()
    other = write(tmp_path / "other.parquet", X[:2000], y[:2000])

    act = {
        "gone": lambda: os.remove(path),
        "another table": lambda: os.replace(other, path),
        "put back": lambda: rewritten(path, whole, when=when),  # over in place, of the same size and time
        "damaged": lambda: rewritten(path, whole[:100] + b"\xff" * 20_000 + whole[20_100:], when=when),
        "cut before the fit": lambda: rewritten(path, whole[: len(whole) // 2]),  # after its metadata were read
    }[change]
    ledger, estimator = charged(tmp_path, sampling_rate=rate, max_iter=5)
    if change == "cut before the fit":
        act()
        with pytest.raises(ValueError, match="must be a Parquet file"):
            estimator.fit(rows, "label")
        assert ledger.history == ()
        return
    monkeypatch.setattr(model, "GATHERED_VALUES", 400 * (D + 8))
    monkeypatch.setattr(DPLogisticRegression, "_make_progress", lambda *given: AfterStep(1, act))
    expected = "The file .*t.parquet.* (changed|is damaged or cut off).* The budget was already charged"
    with pytest.raises(ValueError, match=expected) as caught:
        estimator.fit(rows, "label")
    assert "\n" not in str(caught.value)
    assert caught.value.__context__ is None
    assert len(ledger.history) == 1
    assert not hasattr(estimator, "coef_")
    assert not reader_threads()


def test_a_map_whose_file_changes_is_rejected(tmp_path, monkeypatch):
    X, y, _ = arrays()
    path = tmp_path / "x.npy"
    for change in (
        lambda: os.truncate(path, 1000),
        lambda: rewritten(path, path.read_bytes(), when=os.stat(path)),  # put back
    ):
        rows = mapped(path, X)
        monkeypatch.setattr(DPLogisticRegression, "_make_progress", lambda *given, act=change: AfterStep(1, act))
        with pytest.raises(ValueError, match=r"The file .*x\.npy.* changed or was truncated during the fit"):
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


def a_pipe(path):
    os.mkfifo(path)
    return path


UNREADABLE = {
    "cut off, second": (lambda to: [write(to / "b", *arrays()[:2]), cut_off(to / "a")], "a' must be a Parquet file"),
    "s3": (lambda to: "s3://key:secret@bucket/a.parquet", "^X must be a path on this machine, got a URL of s3"),
    "pipe": (lambda to: a_pipe(to / "a"), "a' must be a regular file, got a pipe, a socket or a device"),
    "pipe in a folder": (
        lambda to: folder_with(to, lambda folder: a_pipe(folder / "pipe.parquet")),
        "pipe.parquet' must be a regular file, got a pipe, a socket or a device, which cannot be read twice",
    ),
    "missing": (lambda to: to / "a.parquet", r"a.parquet' cannot be read \(No such file or directory\)"),
    "pattern": (lambda to: to / "*.parquet", r"cannot be read .* Patterns are not expanded. Pass sorted\(glob"),
    "folder in a list": (lambda to: [to], "got the folder .* in a list. Pass its files, or the folder alone"),
    "number in a list": (lambda to: [3], "X must contain paths of Parquet files, got int"),
    # Rows of a file that is named twice would be rows of one person twice, and add twice the sensitivity.
    "named twice": (lambda to: [write(to / "a", *arrays()[:2]), str(to / "." / "a")], "would count"),
    "a hard link": (
        lambda to: folder_with(to, lambda folder: os.link(folder / "sound.parquet", folder / "b.parquet")),
        "would count",
    ),
    "a folder in itself": (
        lambda to: folder_with(to, lambda folder: (folder / "again").symlink_to(folder)),
        "would count",
    ),
    "row groups": (
        lambda to: ds.FileSystemDataset(
            [*ds.dataset(write(to / "a", *arrays()[:2])).get_fragments()] * 2,
            arrow(*arrays()[:2]).schema, ds.ParquetFileFormat(), filesystem=pa.fs.LocalFileSystem(),
        ),
        "would count",
    ),
}  # fmt: skip


@over_rows("fault", UNREADABLE)
def test_what_is_no_parquet_file_is_rejected_in_one_line_before_the_charge(tmp_path, fault):
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


def test_a_folder_has_the_files_that_pyarrow_finds(tmp_path):
    """In the same order, without those that other programs keep there."""
    X, y, _ = arrays()
    for start, name in enumerate(["b.parquet", "a/z.parquet", "a.parquet", "year=1/x", "_x.parquet", ".h/x", "_log/x"]):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path / "t" / name, X[400 * start :][:400], y[400 * start :][:400])
    found = [part.path for part in source_of_rows(tmp_path / "t", None, "label", None)._parts]
    assert found == ds.dataset(tmp_path / "t", format="parquet").files
    assert len(found) == 4


def reader_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("skdp-reader")]


def test_an_interrupt_at_any_line_ends_the_thread(tmp_path):
    """Also between its start and the first block, and where the end of a pass is cleaned up."""
    X, y, _ = arrays()
    rows = TableRows(write(tmp_path / "t.parquet", X, y))
    for k in itertools.count(1):
        with InterruptAt(k, lambda frame: frame.f_code is read_ahead.__code__) as interrupt:
            logistic(max_iter=1).fit(rows, "label")
        deadline = time.monotonic() + 600.0
        while reader_threads() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not reader_threads(), k
        if interrupt.seen < k:
            break
    assert k > 30  # lines of a pass over twelve blocks


@pytest.mark.parametrize(("source", "rate"), [("parquet", 0.05), ("map", 1.0)])
def test_a_run_resumes_from_its_checkpoint(tmp_path, source, rate):
    """In the middle of lots that were drawn ahead, and to the same bits."""
    X, y, _ = arrays()
    given, fixed = given_as(source, tmp_path, X, y), {"sampling_rate": rate, "max_iter": 6 if rate == 1.0 else 1}
    expected = logistic(**fixed).fit(*given)
    ledger, estimator = charged(tmp_path, checkpoint=str(tmp_path / "run"), **fixed)
    interrupt_after(estimator, 3)
    with pytest.warns(FitInterruptedWarning):
        estimator.fit(*given)
    assert estimator.n_steps_ == 3
    assert not reader_threads()
    estimator.fit(*given)
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
        return NetworkModel(
            X, values, weights, shape, clip, radius=2.0, unit=1.0, dtype=dtype, batch_size=100, target_dtype=np.float32
        )

    return BlockRecipe(make, ClassReader(np.arange(2), None, WeightReader(1.0)), np.dtype(dtype), NAMES)


@over_combinations(make=[linear_recipe, network_recipe], dtype=[np.float64, np.float32], gathered=[None, 2000, 1])
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
    """Each is that of the stream of its step, whatever the passes, of which none gathers more rows than may be held."""
    X, y, _ = arrays(np.float64)
    held, sizes = Held(X, y, np.ones(N)), []
    gather, in_memory = held.gather, linear_recipe(np.float64, True)(X, y, np.ones(N))
    held.gather = lambda places: sizes.append(len(places)) or gather(places)
    key, sampling, theta = SecretStream(bytes(32)), PoissonSampling(0.02), np.linspace(-1.0, 1.0, D + 1)
    with StreamedModel(held, linear_recipe(np.float64, True), 200, 500) as streamed:
        for step in range(200):
            total = streamed.clipped_gradient_sum(theta, streamed.draw_lot(sampling, key, step), 0.1)
            expected = in_memory.clipped_gradient_sum(theta, sampling.rows(N, key.spawn("step", step)), 0.1)
            np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-12)
    assert 300 < np.mean(sizes) <= max(sizes) <= 500


def others():
    """Private estimators, pipelines and searches that need rows in memory."""
    model = DPLogisticRegression(classes=[0, 1])
    return [
        skdp.DPGaussianNB(bounds=(-1.0, 1.0), classes=[0, 1]),
        skdp.preprocessing.DPStandardScaler(bounds=(-1.0, 1.0)),
        allocate_budget(make_pipeline(skdp.preprocessing.DPStandardScaler(bounds=(-1.0, 1.0)), model), 1.0, 1e-6),
        skdp.DPGridSearchCV(model, {"alpha": [0.0, 0.1]}, epsilon=1.0, delta=1e-6),
    ]


@over_rows("estimator", others())
def test_others_reject_rows_that_are_not_in_memory(tmp_path, opened, estimator):
    X, y, _ = arrays()
    ledger, seen = opened
    if "accountant" in estimator.get_params(deep=False):
        estimator = clone(estimator).set_params(accountant=ledger)
    with pytest.raises(TypeError, match="not in memory") as caught:
        estimator.fit(TableRows(write(tmp_path / "t.parquet", X, y)), y)
    assert "\n" not in str(caught.value)
    assert not ledger.history
    assert not seen


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_of_long_steps_shows_time_left(monkeypatch, capsys):
    """Without tqdm, which does so by itself. A step of ten minutes is shown at once, and a short one is not."""
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


# --- arrays like any other --------------------------------------------------------------------------------------------


def test_memory_map_is_array_like_any_other(tmp_path):
    """joblib hands its workers maps of large arrays: what an array may be, they may be."""
    X, y, _ = arrays(np.float64)
    rows = mapped(tmp_path / "x.npy", X)
    with pytest.warns(skdp.PrivacyLeakWarning, match="`classes` was not set"):
        found, expected = (logistic(classes=None).fit(each, y) for each in (rows, X))
    assert (found.predict(X) == expected.predict(rows)).all()
    with pytest.warns(skdp.PrivacyLeakWarning, match="`y_bounds` was not set"):
        found, expected = (least_squares(y_bounds=None).fit(each, y) for each in (rows, X))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    found, expected = (network().fit(each, np.column_stack([y, 1 - y])) for each in (rows, X))
    np.testing.assert_array_equal(found.coefs_[0], expected.coefs_[0])
