"""Units of rows that are not in memory: found before the charge, and clipped as if they were in memory."""

import os
import tracemalloc
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from combinations import combined, over_combinations, over_rows
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, replay
from unit_rows import UnitRows

from skdp import DPPCA, AddRemove, DPLinearRegression, DPLogisticRegression, DPMLPClassifier, DPMLPRegressor, DPRidge
from skdp._checks import groups as unit_runs
from skdp._dpsgd.streamed import blocks, streamed_model
from skdp._dpsgd.streamed.arrow import ParquetRows
from skdp.datasets import TableRows
from skdp.preprocessing import DPStandardScaler

UNIT = "home"  # of the accountant of `opened`
D = 4
NAMES = [f"c{j}" for j in range(D)]
SIZES = [1, 2, 10, 1000]


class Table(UnitRows):
    """Rows in units: of 1 to 9 rows, one of 300 and one of `size`, which is the last unless `label` says otherwise."""

    def __init__(self, size=700, *, label=10_000, rows="any", dtype=np.float64):
        sizes = np.random.default_rng(1).integers(1, 10, 150)
        sizes[75] = 300
        labels = np.sort(np.concatenate([np.repeat(np.arange(150), sizes), np.full(size, label)]))
        super().__init__(labels, labels == label, rows, dtype)

    def arrow(self):
        columns = dict(zip(NAMES, self.X.T, strict=True))
        return pa.table({**columns, "label": self.y, "weight": self.w, "home": self.labels})

    def write(self, path, group=500):
        pq.write_table(self.arrow(), path, row_group_size=group)
        return str(path)

    def fit_elsewhere(self, estimator, kind, folder):
        if kind == "map":
            np.save(folder / "x.npy", self.X)
            X, y, weight, groups = np.load(folder / "x.npy", mmap_mode="r"), self.y, self.w, self.labels
        else:
            rows = self.arrow() if kind == "table" else self.write(folder / "t.parquet")
            X, y, weight, groups = TableRows(rows, NAMES), "label", "weight", "home"
        weights = {} if isinstance(estimator, DPPCA) else {"sample_weight": weight}
        return estimator.fit(X, y, groups=groups, **weights)


FIXED = {"epsilon": None, "noise_multiplier": 50.0, "random_state": 5, "weight_bound": 1.0}
STEPS = {"sampling_rate": 1.0, "max_iter": 3, **FIXED}
GRADIENT = {
    "linear": lambda **kw: DPLogisticRegression(**{"classes": [0, 1], **STEPS, **kw}),
    "linear of three": lambda **kw: DPLogisticRegression(**{"classes": [0, 1, 2], **STEPS, **kw}),
    "network": lambda **kw: DPMLPClassifier((5,), **{"classes": [0, 1], **STEPS, **kw}),
    "network regressor": lambda **kw: DPMLPRegressor((3,), **{"y_bounds": (0, 1), **STEPS, **kw}),
}
SUMS = {
    "least squares": lambda **kw: DPLinearRegression(**{"y_bounds": (0, 1), "random_state": 3, **kw}),
    "ridge": lambda **kw: DPRidge(**{"y_bounds": (0, 1), "random_state": 3, "data_norm": 1.2, **kw}),
    "components": lambda **kw: DPPCA(**{"n_components": 2, "random_state": 3, **kw}),
    "components of centered rows": lambda **kw: DPPCA(**{"n_components": 2, "center": False, "random_state": 3, **kw}),
}


LEARNED = ("coef_", "intercept_", "coefs_", "intercepts_", "components_", "mean_", "explained_variance_")


def parts(value):
    return value if isinstance(value, list) else [value]


def assert_close(one, other, **rounding):
    for name in vars(other).keys() & set(LEARNED):
        for a, b in zip(parts(getattr(one, name)), parts(getattr(other, name)), strict=True):
            np.testing.assert_allclose(a, b, **({"rtol": 1e-9, "atol": 1e-11} | rounding))
    assert one.privacy_event_ == other.privacy_event_
    assert (one.epsilon_, one.delta_) == (other.epsilon_, other.delta_)
    assert one.privacy_unit_ == other.privacy_unit_ == "group"


# --- as in memory ---


@over_combinations(
    1,
    kind=[*GRADIENT, *SUMS],
    source=["parquet", "table", "map"],
    dtype=[np.float64, np.float32],
    adjacency=["zero_out", "replace_one", "add_remove"],
)
def test_a_full_batch_equals_one_in_memory(tmp_path, kind, source, dtype, adjacency):
    table, made = Table(dtype=dtype), (GRADIENT | SUMS)[kind]
    changes = {"adjacency": with_n_public(adjacency, 150)}
    expected, found = table.fit_in_memory(made(**changes)), table.fit_elsewhere(made(**changes), source, tmp_path)
    # A linear model of float32 rows rounds its parameters to single precision in each step.
    assert_close(found, expected, **({"rtol": 1e-6, "atol": 1e-9} if dtype == np.float32 else {"rtol": 1e-7}))
    assert found.n_features_in_ == D


@over_combinations(1, kind=["linear", "network"], dtype=[np.float64, np.float32], label=[-1, 40.5, 10_000])
def test_lots_of_a_map_are_those_of_the_equal_array(tmp_path, kind, dtype, label):
    """Bit for bit but for the offset, a sum over all rows, wherever the unit of many rows lies."""
    table = Table(dtype=dtype, label=label)
    changes = {"sampling_rate": 0.2, "max_iter": 2}
    expected = table.fit_in_memory(GRADIENT[kind](**changes))
    found = table.fit_elsewhere(GRADIENT[kind](**changes), "map", tmp_path)
    assert_close(found, expected)
    name = "coef_" if kind == "linear" else "coefs_"
    np.testing.assert_array_equal(getattr(found, name)[0], getattr(expected, name)[0])


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_lots_too_large_to_gather_give_the_same_model(tmp_path, monkeypatch, kind):
    """Of groups that lie across blocks, in a pass over all rows for each lot."""
    table, changes = Table(label=40.5), {"sampling_rate": 0.2, "max_iter": 4}
    gathered = table.fit_elsewhere(GRADIENT[kind](**changes), "parquet", tmp_path)
    monkeypatch.setattr(streamed_model, "GATHERED_VALUES", 0)
    assert_close(table.fit_elsewhere(GRADIENT[kind](**changes), "parquet", tmp_path), gathered)


def test_labels_beside_the_rows_give_the_same_model(tmp_path):
    table = Table()
    rows = TableRows(table.write(tmp_path / "t"), NAMES)
    named = GRADIENT["linear"]().fit(rows, "label", groups="home")
    beside = GRADIENT["linear"]().fit(rows, "label", groups=[f"unit {label}" for label in table.labels])
    assert (named.coef_ == beside.coef_).all()


# --- a unit moves no release by more than a row ---


@over_combinations(
    kind=[*GRADIENT, "linear by lot", *SUMS],
    size=SIZES,
    rows=["copies", "opposite", "any"],
    label=[-1, 40.5, 10_000],
    source=["parquet", "map"],
)
def test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else(
    tmp_path, kind, size, rows, label, source
):
    """At the beginning, in the middle and at the end, where blocks cut it in two or in five."""
    table, removed = Table(size, label=label, rows=rows), "components" in kind  # they have no weights of rows
    made = SUMS.get(kind) or GRADIENT.get(kind) or partial(GRADIENT["linear"], sampling_rate=0.3)
    public = {"adjacency": AddRemove(150)} if removed else {}
    one, other = replay(
        lambda given: given.fit_elsewhere(made(**public), source, tmp_path),
        table, table.without_the_unit(altogether=removed),
    )  # fmt: skip
    assert max(moves(one, other)) <= 1.0 + 1e-6
    if rows == "copies" and size > 9 and "lot" not in kind:
        assert max(moves(one, other)) > 0.9  # the bound is reached: nothing was bounded twice
    assert_all_else_is_equal(one, other)


@over_rows("size", [10, 1000])
def test_an_exchanged_unit_moves_components_by_no_more_than_two_rows(tmp_path, size):
    table, other = Table(size, rows="copies"), Table(size, rows="copies")
    other.X[table.unit] = -other.X[table.unit][:, ::-1] * [1, -1, 1, -1]
    made = SUMS["components"]
    found = replay(
        lambda given: given.fit_elsewhere(made(adjacency="replace_one"), "parquet", tmp_path),
        table, other,
    )  # fmt: skip
    assert 0.1 < max(moves(*found)) <= 2.0 + 1e-6
    assert_all_else_is_equal(*found)


# --- the labels are looked at before the charge, and never trusted ---


def test_one_pass_over_the_labels_precedes_the_charge(tmp_path, opened):
    ledger, seen = opened
    rows = TableRows(Table().write(tmp_path / "t"), NAMES)
    GRADIENT["linear"](accountant=ledger, delta=1e-6).fit(rows, "label", groups="home")
    assert seen == [(0, ["home"]), *[(1, [*NAMES, "label"])] * 5]  # for class counts, steps and the offset
    seen.clear()
    SUMS["ridge"](accountant=ledger, delta=1e-6, epsilon=0.1).fit(rows, "label", groups="home")
    assert seen == [(1, ["home"]), (2, [*NAMES, "label"])]
    seen.clear()
    SUMS["components"](accountant=ledger, delta=1e-6, epsilon=0.1).fit(rows, groups="home")
    assert seen == [(2, ["home"]), (3, NAMES)]
    assert [charge.parameters["groups"] for charge in ledger.history] == ["home"] * 3


@combined(
    1,
    held=[1 << 26, 64],
    kind=["linear", "network", "ridge", "components"],
    source=["map", "parquet"],
    fault=["a later run", "a gap", "another length"],
)
def test_labels_that_are_rejected_are_a_rejection_of_data(tmp_path, monkeypatch, opened, kind, source, fault, held):
    monkeypatch.setattr(unit_runs, "MOST_HELD", held)
    ledger, seen = opened
    table = Table()
    if fault == "a later run":
        table.labels[-1] = 3
        said = "`groups` must keep the rows of each group together"
    elif fault == "a gap":
        table.labels = table.labels.astype(float)
        table.labels[77] = np.nan
        said = "`groups` contains missing values"
    elif source == "parquet":
        return
    else:
        table.labels, said = table.labels[:-1], r"`groups` must have shape"
    estimator = (GRADIENT | SUMS)[kind](accountant=ledger, delta=1e-6)
    with pytest.raises(ValueError, match=said) as rejected:
        table.fit_elsewhere(estimator, source, tmp_path)
    assert "\n" not in str(rejected.value)
    assert rejected.value.__context__ is None
    assert [entry.kind for entry in ledger.entries] == ["rejection"]
    assert all(columns == ["home"] for _, columns in seen)
    assert not hasattr(estimator, "privacy_unit_")


def test_invalid_groups_raise_before_charge(tmp_path, opened):
    ledger, _ = opened
    table = Table().arrow()
    rows = TableRows(table.append_column("lists", pa.array([[0]] * len(table))), NAMES)
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    mapped, y = np.load(tmp_path / "x.npy", mmap_mode="r"), np.arange(5) % 2
    given = {"accountant": ledger, "delta": 1e-6}
    linear = GRADIENT["linear"](**given)
    for estimator, X, target, groups, message in [
        (linear, rows, "label", "house", "groups='house' is not a column of X"),
        (linear, rows, "label", "lists", "`groups` must be a column of numbers, strings or dates, got .* list<.*>"),
        (linear, mapped, y, "home", "groups='home' is a column name, but a memory map has no column names"),
        (DPPCA(2, **given), iter([np.zeros((5, 2))]), None, np.arange(5), "`groups` is not supported for iterators"),
        (DPStandardScaler((0, 1), **given), rows, None, "home", "which is not in memory, and .* does not support"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            estimator.fit(X, target, groups=groups)
    assert not ledger.history


def test_a_file_that_changes_after_its_labels_were_read_is_rejected(tmp_path, monkeypatch, opened):
    ledger, _ = opened
    path, read = Table().write(tmp_path / "t"), ParquetRows.batches

    def changing(self, columns, n_rows, *, charged=True):
        yield from read(self, columns, n_rows, charged=charged)
        if not charged:
            os.utime(path)

    monkeypatch.setattr(ParquetRows, "batches", changing)
    with pytest.raises(ValueError, match=r"changed .* during the fit.* The budget was already charged"):
        GRADIENT["linear"](accountant=ledger, delta=1e-6).fit(TableRows(path, NAMES), "label", groups="home")
    assert len(ledger.history) == 1


# --- memory ---


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "network", "ridge", "components"])
def test_a_unit_of_a_million_rows_needs_the_memory_of_a_block(tmp_path, monkeypatch, kind):
    """A unit of twice as many rows needs some bytes a row, by which its labels, in memory here, are compared."""
    monkeypatch.setattr(blocks, "_MAX_ROWS", 1 << 12)
    needed = []
    for n in (500_000, 1_000_000):
        rng = np.random.default_rng(0)
        np.save(tmp_path / "x.npy", rng.uniform(-1, 1, (n, D)))
        y, groups = rng.integers(0, 2, n), np.maximum(np.arange(n) - (n - 6), 0)
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        tracemalloc.start()
        (GRADIENT | SUMS)[kind]().fit(mapped, y, groups=groups)
        needed.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert needed[1] - needed[0] < 4 * 500_000
