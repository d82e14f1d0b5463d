"""Units of rows on many machines: each in one partition, which is looked at before the charge."""

from types import SimpleNamespace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from combinations import over_combinations, over_rows
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, replay
from unit_rows import UnitRows

from skdp import DPPCA, AddRemove, DPLinearRegression, DPLogisticRegression, DPMLPClassifier, PrivacyAccountant
from skdp._dpsgd.dask import dask_rows, partitions
from skdp._dpsgd.dask.partitions import BoundPartition

NAMES = list("abcd")
FIXED = {"epsilon": None, "noise_multiplier": 50.0, "random_state": 5, "weight_bound": 1.0}
STEPS = {"classes": [0, 1], "sampling_rate": 1.0, "max_iter": 3, **FIXED}
MADE = {
    "linear": lambda **kw: DPLogisticRegression(**STEPS | kw),
    "network": lambda **kw: DPMLPClassifier((5,), **STEPS | kw),
    "least squares": lambda **kw: DPLinearRegression(**{"y_bounds": (0, 1), "random_state": 3} | kw),
    "components": lambda **kw: DPPCA(**{"n_components": 2, "random_state": 3} | kw),
}


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


class Table(UnitRows):
    """Rows of 120 units in no order, in four partitions, one of them empty, and a unit of `size` rows in the last."""

    def __init__(self, size=200, rows="any"):
        rng = np.random.default_rng(0)
        labels = np.repeat(np.arange(120), rng.integers(1, 8, 120))
        self.cuts = np.searchsorted(labels, [40, 40, 80])
        parts = [rng.permutation(part) for part in np.split(labels, self.cuts)]
        labels = np.concatenate([*parts, np.full(size, 999)])
        super().__init__(labels, labels == 999, rows)

    def pieces(self, values):
        return np.split(values, self.cuts)

    def frame(self):
        table = pd.DataFrame(self.X, columns=NAMES).assign(y=self.y, w=self.w, home=self.labels)
        found = [dask.delayed(table.iloc[part]) for part in self.pieces(np.arange(len(table)))]
        return dd.from_delayed(found, meta=table[:0]).persist()

    def array(self, values):
        chunks = [da.from_array(piece, chunks=piece.shape) for piece in self.pieces(values) if len(piece)]
        return da.concatenate(chunks).persist()

    def fit(self, estimator, kind):
        weights = {"sample_weight": "w" if kind == "frame" else self.array(self.w)}
        if isinstance(estimator, DPPCA):
            weights = {}
        if kind == "frame":
            columns = [*NAMES, "y", "home", *(["w"] if weights else [])]
            return estimator.fit(self.frame()[columns], "y", groups="home", **weights)
        return estimator.fit(self.array(self.X), self.array(self.y), groups=self.array(self.labels), **weights)


def learned(fitted):
    found = [getattr(fitted, name, None) for name in ("coef_", "coefs_", "components_", "mean_")]
    return [np.concatenate([np.ravel(part) for part in each]) for each in found if each is not None]


@over_combinations(1, kind=MADE, given=["frame", "array"], adjacency=["zero_out", "replace_one", "add_remove"])
def test_units_in_partitions_give_the_model_of_one_machine(kind, given, adjacency):
    changes = {"adjacency": with_n_public(adjacency, 121)}
    here, there = Table().fit_in_memory(MADE[kind](**changes)), Table().fit(MADE[kind](**changes), given)
    for one, other in zip(learned(here), learned(there), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    assert (here.privacy_event_, here.epsilon_) == (there.privacy_event_, there.epsilon_)
    assert here.privacy_unit_ == there.privacy_unit_ == "group"
    assert there.n_features_in_ == 4


@over_rows(
    ("kind", "size", "rows"),
    [*((kind, 1000, "copies") for kind in MADE), ("linear by lot", 10, "any"), ("linear", 1, "any")],
)
def test_a_unit_of_a_partition_moves_no_release_by_more_than_its_sensitivity(kind, size, rows):
    made, removed = MADE[kind.removesuffix(" by lot")], kind == "components"
    changes = {"sampling_rate": 0.3} if "lot" in kind else {}
    if removed:
        changes = {"adjacency": AddRemove(121)}
    table = Table(size, rows)
    one, other = replay(
        lambda given: given.fit(made(**changes), "frame"), table, table.without_the_unit(altogether=removed)
    )
    assert max(moves(one, other)) <= 1.0 + 1e-6
    if rows == "copies" and size > 9 and "lot" not in kind:
        assert max(moves(one, other)) > 0.9
    assert_all_else_is_equal(one, other)


def test_lots_are_of_units():
    """Each unit with all of its rows, or with none."""
    seen = []

    class Lot:
        def rows(self, n):
            seen.append(n)
            return np.arange(0, n, 2)

    for number, rows in enumerate(Table().pieces(Table().labels)):
        bound = object.__new__(BoundPartition)
        layout = bound._layout = partitions.UnitLayout(partitions.read_units(rows, len(rows)))
        chosen = {label for lot in bound.drawn(Lot()) for label in
                  rows[layout.order][layout.starts[lot] : layout.starts[lot + 1]]}  # fmt: skip
        assert seen[number] == len(np.unique(rows))
        assert chosen == set(np.unique(rows)[::2].tolist())


@over_combinations(1, kind=MADE, given=["frame", "array"], batch=[1, 64], fault=["two partitions", "gap"])
def test_a_unit_in_two_partitions_is_a_rejection_of_data(monkeypatch, kind, given, batch, fault):
    monkeypatch.setattr(dask_rows, "_HASHED_AT_A_TIME", batch)
    table, ledger = Table(), PrivacyAccountant(9.0, 1e-5, unit="home")
    if fault == "gap":
        table.labels = table.labels.astype(float)
        table.labels[-1], message = np.nan, r"Partition \d of the collection: `groups` contains missing values"
    else:
        table.labels[-1], message = table.labels[0], "`groups` has a group with rows in several partitions"
    estimator = MADE[kind](accountant=ledger, delta=1e-6)
    with pytest.raises(ValueError, match=message) as rejected:
        table.fit(estimator, given)
    assert "\n" not in str(rejected.value)
    assert [entry.kind for entry in ledger.entries] == ["rejection"]
    assert not hasattr(estimator, "privacy_unit_")


@over_rows("other", ["datetime64[s]", object])
def test_dates_in_categories_are_rejected_as_partitions_may_write_them_in_different_ways(other):
    """A unit in two partitions, whose categories have another unit of time in each, would be two units."""
    dates = pd.Series(np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]"))
    assert str(dates.astype("category").dtype) == str(dates.astype(other).astype("category").dtype) == "category"
    for column in (dates, dates.astype(other)):
        rejected = partitions.hash_units(b"key", "category", column.astype("category"))
        assert isinstance(rejected, partitions.Rejected)
        assert "categories of dates" in rejected.why
    assert len(partitions.hash_units(b"key", "datetime64[ns]", dates)) == 2


@over_rows("kind", ["network", "components"])
def test_labels_that_change_after_they_were_looked_at_are_rejected(monkeypatch, kind):
    """A worker compares the labels that it binds with those of the pass before the charge."""
    table, ledger = Table(), PrivacyAccountant(9.0, 1e-5, unit="home")
    changed = {"digest_of": lambda hashes: partitions.digest_of(hashes[1:])}
    monkeypatch.setattr(dask_rows, "partitions", SimpleNamespace(**vars(partitions) | changed))
    with pytest.raises(ValueError, match="The groups changed since they were first read"):
        table.fit(MADE[kind](accountant=ledger, delta=1e-6), "frame")
    assert len(ledger.history) == 1


def test_labels_beside_a_frame_and_its_series_are_read_too():
    table = Table()
    rows = table.frame()[[*NAMES, "y"]]
    expected = table.fit_in_memory(MADE["linear"]())
    for groups in (table.labels, table.frame()["home"]):
        found = MADE["linear"]().fit(rows, "y", groups=groups)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    with pytest.raises(ValueError, match="X has no column 'house'"):
        MADE["linear"]().fit(rows, "y", groups="house")
    with pytest.raises(ValueError, match="Columns of a dask array have no names"):
        MADE["linear"]().fit(table.array(table.X), table.y, groups="home")
