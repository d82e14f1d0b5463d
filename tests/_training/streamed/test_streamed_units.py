"""Units of rows that are not in memory: found before the charge, and clipped as if they were in memory."""

from __future__ import annotations

import os
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from combinations import combined, over_combinations, over_rows
from replay import assert_all_else_is_equal, moves, replay

from skdp import (
    DPPCA,
    DPGaussianNB,
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPRidge,
    PrivacyAccountant,
)
from skdp._checks import unit_runs
from skdp._training.models.bound_rows import Model
from skdp._training.streamed import blocks
from skdp._training.streamed import streamed_model as model
from skdp._training.streamed.parquet import ParquetRows
from skdp.datasets import TableRows
from skdp.preprocessing import DPStandardScaler

pytestmark = pytest.mark.filterwarnings("ignore:random_state", "ignore:.*rows are few", "ignore:weight_bound=None")

D = 4
NAMES = [f"c{j}" for j in range(D)]
SIZES = [1, 2, 10, 1000]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 256 rows, so that units of all sizes lie across their borders."""
    monkeypatch.setattr(blocks, "_MAX_ROWS", 256)


class Table:
    """Rows in units: of 1 to 9 rows, one of 300 and one of `size`, which is the last unless `label` says otherwise."""

    def __init__(self, size=700, *, label=10_000, n_units=150, seed=0, rows="any", dtype=np.float64):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 10, n_units)
        sizes[n_units // 2] = 300
        labels = np.concatenate([np.repeat(np.arange(n_units), sizes), np.full(size, label)])
        n = len(labels)
        X, self.y = rng.uniform(-1, 1, (n, D)).astype(dtype), rng.integers(0, 2, n)
        unit = labels == label
        if rows != "any":
            X[unit], self.y[unit] = rng.uniform(0.5, 1, D), 1
        if rows == "opposite":
            self.y[unit] = np.arange(size) % 2
        self.w = np.ones(n)
        order = np.argsort(labels, kind="stable")
        self.X, self.y, self.labels, self.unit = X[order], self.y[order], labels[order], unit[order]

    def without_the_unit(self, *, altogether=False):
        """The same with a null unit in its place, one row that counts for nothing, or without it altogether."""
        other, kept = object.__new__(Table), ~self.unit
        kept[np.flatnonzero(self.unit)[0]] = not altogether
        other.X, other.y, other.w, other.labels = (each[kept] for each in (self.X, self.y, self.w, self.labels))
        other.w = np.where(self.unit[kept], 0.0, other.w)
        return other

    def arrow(self):
        columns = dict(zip(NAMES, self.X.T, strict=True))
        return pa.table({**columns, "label": self.y, "weight": self.w, "home": self.labels})

    def write(self, path, group=500):
        pq.write_table(self.arrow(), path, row_group_size=group)
        return str(path)

    def fit_in_memory(self, estimator, weighted=True):
        weights = {"sample_weight": self.w} if weighted else {}
        return estimator.fit(self.X, self.y, groups=self.labels, **weights)

    def fit_elsewhere(self, estimator, kind, folder, weighted=True):
        if kind == "map":
            np.save(folder / "x.npy", self.X)
            X, y, weight, groups = np.load(folder / "x.npy", mmap_mode="r"), self.y, self.w, self.labels
        else:
            rows = TableRows(self.write(folder / "t.parquet"), [*NAMES])
            X, y, weight, groups = self.arrow().drop([]) if kind == "table" else rows, "label", "weight", "home"
        if not weighted and kind == "table":
            X = TableRows(X, NAMES)
        weights = {"sample_weight": weight} if weighted else {}
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
    "components of centred rows": lambda **kw: DPPCA(**{"n_components": 2, "center": False, "random_state": 3, **kw}),
}


def learned(fitted):
    names = "coef_", "intercept_", "coefs_", "intercepts_", "components_", "mean_", "explained_variance_"
    found = [np.atleast_1d(vars(fitted)[name]) if not isinstance(vars(fitted)[name], list) else vars(fitted)[name]
             for name in names if name in vars(fitted)]  # fmt: skip
    return [part for each in found for part in (each if isinstance(each, list) else [each])]


def assert_close(one, other, **rounding):
    for a, b in zip(learned(one), learned(other), strict=True):
        np.testing.assert_allclose(a, b, **({"rtol": 1e-9, "atol": 1e-11} | rounding))
    assert one.privacy_event_ == other.privacy_event_
    assert (one.epsilon_, one.delta_) == (other.epsilon_, other.delta_)
    assert one.privacy_unit_ == other.privacy_unit_ == "group"


# --- as in memory ---


@over_combinations(
    1,
    kind=list(GRADIENT),
    source=["parquet", "table", "map"],
    dtype=[np.float64, np.float32],
    adjacency=["zero_out", "replace_one", "add_remove"],
)
def test_a_full_batch_equals_one_in_memory(tmp_path, kind, source, dtype, adjacency):
    table = Table(dtype=dtype)
    changes = {"adjacency": adjacency, "n_groups_public": 150}
    expected = table.fit_in_memory(GRADIENT[kind](**changes))
    found = table.fit_elsewhere(GRADIENT[kind](**changes), source, tmp_path)
    # A linear model of float32 rows rounds its parameters to single precision in each step.
    assert_close(found, expected, **({"rtol": 1e-6} if dtype == np.float32 else {}))
    assert found.n_features_in_ == D


@over_combinations(
    1,
    kind=list(SUMS),
    source=["parquet", "table", "map"],
    dtype=[np.float64, np.float32],
    adjacency=["zero_out", "replace_one", "add_remove"],
)
def test_sums_equal_those_in_memory(tmp_path, kind, source, dtype, adjacency):
    table = Table(dtype=dtype)
    changes, weighted = {"adjacency": adjacency, "n_groups_public": 150}, "components" not in kind
    expected = table.fit_in_memory(SUMS[kind](**changes), weighted)
    found = table.fit_elsewhere(SUMS[kind](**changes), source, tmp_path, weighted)
    assert_close(found, expected, rtol=1e-7, atol=1e-9)


@over_combinations(1, kind=["linear", "network"], dtype=[np.float64, np.float32], label=[-1, 40.5, 10_000])
def test_lots_of_a_map_are_those_of_the_equal_array(tmp_path, kind, dtype, label):
    """Bit for bit but for the offset, a sum over all rows, wherever the unit of many rows lies."""
    table = Table(dtype=dtype, label=label)
    changes = {"sampling_rate": 0.2, "max_iter": 2}
    expected = table.fit_in_memory(GRADIENT[kind](**changes))
    found = table.fit_elsewhere(GRADIENT[kind](**changes), "map", tmp_path)
    assert_close(found, expected)
    np.testing.assert_array_equal(learned(found)[0], learned(expected)[0])


@pytest.mark.parametrize(
    ("gathered", "kind", "source"), [(None, "network", "parquet"), (1, "linear", "map"), (400, "linear", "parquet")]
)
def test_lots_equal_those_drawn_in_memory(tmp_path, monkeypatch, kind, source, gathered):
    """However many lots a pass gathers, and where a lot, or one unit, is more than may be held."""
    table = Table(label=40.5)
    changes = {"sampling_rate": 0.2, "max_iter": 2}
    with monkeypatch.context() as patch:
        if source == "parquet":
            draw = Model.draw_lot
            patch.setattr(Model, "draw_lot", lambda self, sampling, stream, step: draw(
                self, sampling, stream.spawn("step", step), step))  # fmt: skip
        expected = table.fit_in_memory(GRADIENT[kind](**changes))
    if gathered is not None:
        monkeypatch.setattr(model, "GATHERED_VALUES", gathered * (D + 8))
    assert_close(table.fit_elsewhere(GRADIENT[kind](**changes), source, tmp_path), expected)


@over_rows("group", [1, 7, 256, 300, 10_000])
def test_row_groups_and_files_change_no_bit(tmp_path, group):
    """Of a unit that lies in several of them too."""
    table = Table(size=300)
    expected = GRADIENT["linear"]().fit(TableRows(table.arrow(), NAMES), "label", groups="home")
    found = GRADIENT["linear"]().fit(TableRows(table.write(tmp_path / "t", group), NAMES), "label", groups="home")
    assert (found.coef_ == expected.coef_).all()
    whole, paths = table.arrow(), []
    for start in range(0, len(table.X), 333):
        paths.append(str(tmp_path / f"{start}.parquet"))
        pq.write_table(whole.slice(start, 333), paths[-1])
    found = GRADIENT["linear"]().fit(ds.dataset(paths), "label", "weight", groups="home")
    assert (found.coef_ == expected.coef_).all()


def test_labels_beside_the_rows_give_the_same_model(tmp_path):
    table = Table()
    rows = TableRows(table.write(tmp_path / "t"), NAMES)
    named = GRADIENT["linear"]().fit(rows, "label", groups="home")
    beside = GRADIENT["linear"]().fit(rows, "label", groups=[f"unit {label}" for label in table.labels])
    assert (named.coef_ == beside.coef_).all()


def test_a_named_column_is_no_feature(tmp_path):
    table = Table()
    found = GRADIENT["linear"]().fit(TableRows(table.write(tmp_path / "t")), "label", "weight", groups="home")
    assert found.feature_names_in_.tolist() == NAMES
    components = DPPCA(2, random_state=0).fit(TableRows(table.arrow(), [*NAMES, "weight"]), "label", groups="home")
    assert components.n_samples_ == 151
    with pytest.raises(ValueError, match=r"columns has 'home', which is groups"):
        GRADIENT["linear"]().fit(TableRows(table.arrow(), [*NAMES, "home"]), "label", groups="home")


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
    public = {"adjacency": "add_remove", "n_groups_public": 150} if removed else {}
    one, other = replay(
        lambda given: given.fit_elsewhere(made(**public), source, tmp_path, weighted=not removed),
        table, table.without_the_unit(altogether=removed),
    )  # fmt: skip
    assert max(moves(one, other)) <= 1.0 + 1e-6
    if rows == "copies" and size > 9 and "lot" not in kind:
        assert max(moves(one, other)) > 0.9  # the bound is reached: nothing was bounded twice
    assert_all_else_is_equal(one, other)


@over_rows("size", SIZES)
@over_rows("rows", ["copies", "any"])
def test_an_exchanged_unit_moves_components_by_no_more_than_two_rows(tmp_path, size, rows):
    table, other = Table(size, rows=rows), Table(size, rows=rows)
    other.X[table.unit] = -other.X[table.unit][:, ::-1] * [1, -1, 1, -1]
    made = SUMS["components"]
    found = replay(
        lambda given: given.fit_elsewhere(made(adjacency="replace_one"), "parquet", tmp_path, weighted=False),
        table, other,
    )  # fmt: skip
    assert 0.1 < max(moves(*found)) <= 2.0 + 1e-6
    assert_all_else_is_equal(*found)


# --- the labels are looked at before the charge, and never trusted ---


@pytest.fixture
def opened(monkeypatch):
    """What a ledger held whenever a file was opened, and which columns were read."""
    ledger, seen, original = PrivacyAccountant(10.0, 1e-5, unit="home"), [], ParquetRows._open

    def recording(self, columns, n_rows):
        seen.append((len(ledger.history), list(columns)))
        return original(self, columns, n_rows)

    monkeypatch.setattr(ParquetRows, "_open", recording)
    return ledger, seen


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
def test_labels_that_are_refused_are_a_refusal_of_data(tmp_path, monkeypatch, opened, kind, source, fault, held):
    monkeypatch.setattr(unit_runs, "MOST_HELD", held)
    ledger, seen = opened
    table = Table()
    if fault == "a later run":
        table.labels[-1] = 3
        said = "groups has a unit whose rows are not side by side"
    elif fault == "a gap":
        table.labels = table.labels.astype(float)
        table.labels[77] = np.nan
        said = "groups has gaps"
    elif source == "parquet":
        return
    else:
        table.labels, said = table.labels[:-1], r"groups has shape \(.*,\) where X has .* rows"
    estimator = (SUMS.get(kind) or GRADIENT[kind])(accountant=ledger, delta=1e-6)
    with pytest.raises(ValueError, match=said) as refused:
        table.fit_elsewhere(estimator, source, tmp_path, weighted=kind != "components")
    assert "\n" not in str(refused.value)
    assert refused.value.__context__ is None
    assert [entry.kind for entry in ledger.entries] == ["refusal"]
    assert all(columns == ["home"] for _, columns in seen)
    assert not hasattr(estimator, "privacy_unit_")


@pytest.mark.parametrize(("groups", "said"), [
    ("house", "groups='house' names no column of X"),
    ("lists", "groups is a column of list<.*>, where cells are numbers, texts or dates"),
])  # fmt: skip
def test_columns_that_are_no_labels_are_refused(tmp_path, opened, groups, said):
    ledger, _ = opened
    table = Table().arrow()
    table = table.append_column("lists", pa.array([[0]] * len(table)))
    with pytest.raises(ValueError, match=said):
        GRADIENT["linear"](accountant=ledger, delta=1e-6).fit(TableRows(table, NAMES), "label", groups=groups)
    assert not ledger.history


def test_a_map_has_no_column_names(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    with pytest.raises(ValueError, match="groups='home' names a column, and a memory map has no names"):
        GRADIENT["linear"]().fit(np.load(tmp_path / "x.npy", mmap_mode="r"), np.arange(5) % 2, groups="home")


def test_a_file_that_changes_after_its_labels_were_read_is_refused(tmp_path, monkeypatch, opened):
    ledger, _ = opened
    path, read = Table().write(tmp_path / "t"), ParquetRows.batches

    def changing(self, columns, n_rows, *, paid=True):
        yield from read(self, columns, n_rows, paid=paid)
        if not paid:
            os.utime(path)

    monkeypatch.setattr(ParquetRows, "batches", changing)
    with pytest.raises(ValueError, match=r"changed .* under the fit, after the fit was charged, which stands"):
        GRADIENT["linear"](accountant=ledger, delta=1e-6).fit(TableRows(path, NAMES), "label", groups="home")
    assert len(ledger.history) == 1
    monkeypatch.undo()
    opening = ParquetRows._open
    monkeypatch.setattr(ParquetRows, "_open", lambda self, *given: (os.utime(path), opening(self, *given))[1])
    with pytest.raises(ValueError, match=r"changed .* under the fit, which was not charged"):
        GRADIENT["linear"](accountant=ledger, delta=1e-6).fit(TableRows(path, NAMES), "label", groups="home")
    assert len(ledger.history) == 1


def test_add_remove_needs_the_number_of_units(tmp_path):
    rows = TableRows(Table().write(tmp_path / "t"), NAMES)
    for made in (GRADIENT["linear"], SUMS["ridge"], SUMS["components"]):
        with pytest.raises(ValueError, match="n_groups_public=None with adjacency='add_remove'"):
            made(adjacency="add_remove", n_samples_public=3).fit(rows, "label", groups="home")


def test_what_is_not_offered_is_refused_by_name(tmp_path):
    rows = TableRows(Table().write(tmp_path / "t"), NAMES)
    with pytest.raises(ValueError, match="groups with an iterator of blocks"):
        DPPCA(2).fit(iter([np.zeros((5, 2))]), groups=np.arange(5))
    for estimator in (DPStandardScaler((0, 1)), DPGaussianNB(classes=[0, 1])):
        with pytest.raises(TypeError, match=r"rows that are not in memory, which .* cannot read"):
            estimator.fit(rows, groups="home") if "Scaler" in repr(estimator) else estimator.fit(rows, "label")


# --- memory ---


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "network", "ridge", "components"])
def test_a_unit_of_a_million_rows_needs_the_memory_of_a_block(tmp_path, monkeypatch, kind):
    """A unit of twice as many rows needs some bytes a row, by which its labels, in memory here, are compared."""
    monkeypatch.setattr(blocks, "_MAX_ROWS", 1 << 12)
    needed = []
    for n in (500_000, 1_000_000):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(-1, 1, (n, D)), rng.integers(0, 2, n)
        np.save(tmp_path / "x.npy", X)
        groups = np.zeros(n, np.int64)
        groups[-5:] = np.arange(1, 6)
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        estimator = (SUMS.get(kind) or GRADIENT[kind])()
        del X
        tracemalloc.start()
        estimator.fit(mapped, y, groups=groups)
        needed.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert needed[1] - needed[0] < 4 * 500_000


# --- instalments and files of runs ---


def test_instalments_know_the_unit(tmp_path):
    rows = TableRows(Table().write(tmp_path / "t"), [*NAMES])
    model_ = GRADIENT["linear"]().partial_fit(rows, "label", groups="home")
    before = model_.epsilon_
    with pytest.raises(ValueError, match="earlier runs were private for a group, and this one would be for a row"):
        model_.partial_fit(rows, "label")
    with pytest.raises(ValueError, match=r"groups='weight' differs from the 'home' of earlier runs"):
        model_.partial_fit(TableRows(Table(size=1).arrow().set_column(
            5, "weight", pa.array(np.sort(Table(size=1).labels))), NAMES), "label", groups="weight")  # fmt: skip
    model_.partial_fit(rows, "label", groups="home")
    assert model_.epsilon_ > before
    model_.partial_fit(rows, "label", groups=Table().labels)
    assert model_._fitted_group_name == "home"


@pytest.fixture
def stopped(monkeypatch):
    """Interrupts runs after their first step."""

    class Interrupt:
        def __call__(self, n_done):
            raise KeyboardInterrupt

        def close(self):
            pass

    with monkeypatch.context() as patch:
        patch.setattr(DPLogisticRegression, "_make_progress", lambda *given: Interrupt())
        yield patch


@pytest.mark.filterwarnings("ignore:fit was interrupted")
@pytest.mark.parametrize("source", ["parquet", "map"])  # rows in memory: test_checkpoint.py
def test_a_file_of_a_run_is_resumed_by_the_same_unit_alone(tmp_path, stopped, source):
    """Not by a run for rows of as many rows as there are units, nor for units by another column, and the other way."""
    table = Table(size=1)
    table.labels = np.arange(len(table.X))  # as many units as rows: nothing else tells the runs apart
    other = table.arrow().rename_columns([*NAMES, "label", "weight", "person"])
    ledgers = {unit: PrivacyAccountant(9.0, 1e-5, unit=unit) for unit in ("row", "home")}
    made = partial(GRADIENT["linear"], delta=1e-6, checkpoint=tmp_path / "run.ckpt")
    frame = table.arrow().select(NAMES).to_pandas()

    def fit(unit, name="home"):
        estimator = made(accountant=ledgers[unit])
        if source == "parquet":
            rows = TableRows(table.arrow() if name == "home" else other, NAMES)
            return estimator.fit(rows, "label", groups=None if unit == "row" else name)
        groups = None if unit == "row" else pd.Series(table.labels, name=name)
        if source == "memory":
            return estimator.fit(frame, table.y, groups=groups)
        np.save(tmp_path / "x.npy", table.X)
        return estimator.fit(np.load(tmp_path / "x.npy", mmap_mode="r"), table.y, groups=groups)

    fit("row")
    with pytest.raises(ValueError, match=r"is of another run \(its unit differs\)"):
        fit("home")
    os.remove(tmp_path / "run.ckpt")
    fit("home")
    for unit, name in (("row", ""), ("home", "person")):
        with pytest.raises(ValueError, match=r"is of another run \(its unit differs\)"):
            fit(unit, name)
    stopped.undo()
    resumed = fit("home")
    assert resumed.n_steps_ == 3
    assert [len(ledger.history) for ledger in ledgers.values()] == [1, 1]  # each run was charged once
    assert not os.path.exists(tmp_path / "run.ckpt")


@pytest.mark.filterwarnings("ignore:fit was interrupted")
def test_a_run_that_resumes_gives_the_model_of_one_that_was_not_stopped(tmp_path, stopped):
    rows = TableRows(Table().write(tmp_path / "t"), NAMES)
    made = partial(GRADIENT["linear"], checkpoint=tmp_path / "run.ckpt", sampling_rate=0.3)
    made().fit(rows, "label", groups="home")
    stopped.undo()
    resumed = made().fit(rows, "label", groups="home")
    whole = GRADIENT["linear"](sampling_rate=0.3).fit(rows, "label", groups="home")
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_units_of_one_row_give_the_model_of_rows(tmp_path, kind):
    table = Table(size=1)
    table.labels = np.arange(len(table.X))
    found = table.fit_elsewhere(GRADIENT[kind](), "parquet", tmp_path)
    by_row = GRADIENT[kind]().fit(TableRows(table.write(tmp_path / "t.parquet"), NAMES), "label", "weight")
    for one, other in zip(learned(found), learned(by_row), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4 if kind == "network" else 1e-9, atol=1e-9)
    assert found.privacy_event_ == by_row.privacy_event_
    assert (found.max_grad_norm_, found.noise_multiplier_) == (by_row.max_grad_norm_, by_row.noise_multiplier_)


def test_rules_take_the_number_of_units(tmp_path):
    rows = TableRows(Table().write(tmp_path / "t"), NAMES)
    report = GRADIENT["linear"]().fit(rows, "label", groups="home").privacy_report()
    assert report.to_dict()["guarantee"]["n_units_public"] == len(np.unique(Table().labels))
