"""Transformers that estimate facts about columns: cost, what one row changes, what comes out."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from combinations import crossed, over_rows
from relations import with_n_public
from replay import assert_all_else_is_equal, leaves, moves, recording, replay, run
from sklearn.base import clone

from skdp import AddRemove, PrivacyAccountant
from skdp._checks.rows import row_norm_of
from skdp.accounting import NoOpDpEvent
from skdp.accounting.releases import releases
from skdp.mechanisms import GaussianMechanism
from skdp.preprocessing import DPOneHotEncoder, DPQuantileBinner, DPSimpleImputer, DPStandardScaler, dp_bounds
from skdp.preprocessing.bounds import ColumnBounds
from skdp.preprocessing.column_sums import ColumnSums

N = 300
ADJACENCIES = ["zero_out", "add_remove", "replace_one"]
MIXED = [None, (-2.0, 5.0), None]
ESTIMATING = {
    "binner": lambda **p: DPQuantileBinner(4, **p),
    "binner-bounds": lambda **p: DPQuantileBinner(4, bounds=(-3.0, 3.0), **p),
    "binner-mixed": lambda **p: DPQuantileBinner(4, bounds=MIXED, **p),
    "encoder": lambda **p: DPOneHotEncoder(**p),
    "scaler": lambda **p: DPStandardScaler(**p),
    "scaler-bounds": lambda **p: DPStandardScaler(bounds=(-3.0, 3.0), **p),
    "scaler-mixed": lambda **p: DPStandardScaler(bounds=MIXED, **p),
    "imputer-mean": lambda **p: DPSimpleImputer(**p),
    "imputer-mean-bounds": lambda **p: DPSimpleImputer(bounds=(-3.0, 3.0), **p),
    "imputer-median": lambda **p: DPSimpleImputer("median", **p),
    "imputer-most-frequent": lambda **p: DPSimpleImputer("most_frequent", **p),
    "bounds": lambda **p: ColumnBounds(**p),
}
WORDS = {"encoder", "imputer-most-frequent"}
by_name = over_rows("name", ESTIMATING)
by_class = over_rows("name", ["binner", "encoder", "scaler", "imputer-mean", "bounds"])


def table(name, n=N, width=3, seed=0):
    rng = np.random.default_rng(seed)
    if name in WORDS:
        return rng.integers(0, 4, (n, width)).astype(float)
    return rng.normal(0.0, 2.0, (n, width)).round(2)


# --- cost ---


@by_name
def test_the_price_does_not_depend_on_the_number_of_columns(name):
    if "mixed" in name:
        return
    events = {
        ESTIMATING[name](noise_multiplier=9.0, epsilon=None).fit(table(name, width=w)).privacy_event_ for w in (1, 7)
    }
    assert len(events) == 1
    found = releases(events.pop())
    assert found.mu_squared == pytest.approx(1 / 81, rel=1e-12)
    assert sum(each.delta for each in found.epsilon_delta) == pytest.approx(1e-7 if name in WORDS else 0.0)


@by_name
def test_the_noise_that_is_added_is_the_noise_that_is_paid(name, released):
    released.clear()
    model = ESTIMATING[name](noise_multiplier=5.0, epsilon=None).fit(table(name))
    charged = [each.noise for each in releases(model.privacy_event_).gaussian for _ in range(each.times)]
    assert sorted(mechanism.noise_multiplier for _, mechanism in released) == sorted(charged)


@over_rows("name", ["binner", "binner-bounds"])
def test_noise_grows_with_the_root_of_the_number_of_columns(name):
    deviations = []
    for width in (1, 9):
        with recording([]) as seen:
            model = ESTIMATING[name](noise_multiplier=5.0, epsilon=None).fit(table(name, width=width))
        charged = [each.noise for each in releases(model.privacy_event_).gaussian for _ in range(each.times)]
        deviations.append(sorted(noise * each.sensitivity for noise, each in zip(charged, seen, strict=True)))
    np.testing.assert_allclose(deviations[1], 3.0 * np.array(deviations[0]), rtol=1e-12)


def test_a_threshold_takes_its_part_of_delta():
    model = DPOneHotEncoder(delta=1e-4).fit(table("encoder"))
    assert model.privacy_event_.events[-1].delta == pytest.approx(1e-6)


# --- neighbors ---


def neighbor(rows, adjacency):
    """D' of D: the first row as a null row, removed, or replaced by one that lies elsewhere in each column."""
    if adjacency == "zero_out":
        return np.vstack([np.full(rows.shape[1], np.nan), rows[1:]])
    if adjacency == "add_remove":
        return rows[1:]
    return np.vstack([3.0 - rows[0], rows[1:]])


@over_rows(
    "name, adjacency, first",
    [
        (*both, first)
        for both, first in zip(itertools.product(ESTIMATING, ADJACENCIES), itertools.cycle([0.0, 1e9, 3.0, -3.0]))
    ],
)
def test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else(name, adjacency, first):
    rows = table(name)
    rows[0] = first if name not in WORDS else min(abs(first), 3.0)
    model = ESTIMATING[name](adjacency=with_n_public(adjacency, N), epsilon=None, noise_multiplier=0.3, random_state=0)
    one, two = replay(lambda given: clone(model).fit(given), rows, neighbor(rows, adjacency))
    moved = moves(one, two)
    assert 0.0 < min(moved) <= max(moved) <= (2.0 if adjacency == "replace_one" else 1.0) * (1 + 1e-12)
    assert_all_else_is_equal(one, two)


def sums_of(values, weights, n_moments, bounds=(-1.0, 1.0)):
    (total := ColumnSums([bounds], n_moments).new_sum("zero_out")).add(np.asarray(values)[:, None], weights)
    return total.vector


@over_rows("moments", [1, 2])
def test_column_sums_sensitivity_is_the_largest_change(moments):
    """Over a grid of pairs of numbers and weights, missing values included; rows of weight 1 attain it."""
    grid = [*np.linspace(-1.0, 1.0, 41), math.nan]
    vectors = [sums_of([z], w, moments) for z in grid for w in (1.0, 0.7, 1e-3, 0.0)]
    one, nine = (ColumnSums([(-1.0, 1.0)] * d, moments).sensitivity for d in (1, 9))
    alone = max(np.linalg.norm(v) for v in vectors)
    assert alone == pytest.approx(one("zero_out"))
    change = max(np.linalg.norm(v - w) for v in vectors for w in vectors)
    assert change <= 2.0 * one("replace_one") * (1 + 1e-15)
    assert change == pytest.approx(2.0 * one("replace_one"))
    assert nine("replace_one") == 3.0 * one("replace_one")


def test_column_sums_without_weights_are_exact_in_any_order():
    """So a row that leaves shifts no rounding of the others."""
    values = np.random.default_rng(0).normal(0, 1, 2_000)
    whole = sums_of(values, 1.0, 2, (-2.0, 2.0))
    assert (whole == sums_of(values[::-1], 1.0, 2, (-2.0, 2.0))).all()
    assert (whole - sums_of(values[1:], 1.0, 2, (-2.0, 2.0)) == sums_of(values[:1], 1.0, 2, (-2.0, 2.0))).all()


@by_name
def test_the_null_row_of_zero_out_is_a_row_of_gaps(name):
    rows = table(name)
    gaps = np.vstack([rows, np.full((1, 3), np.nan)])
    model = ESTIMATING[name](adjacency=AddRemove(N), random_state=0)
    assert not any(moves(*replay(lambda given: clone(model).fit(given), rows, gaps)))


@over_rows("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_a_row_adds_1_to_one_count_of_bounds_of_each_column(adjacency):
    """Or nothing where it has a gap, and the sensitivity is that of d such counts."""
    rows = np.array([[1.0, -70.0, 0.0, 1e300], [1.0, np.nan, -np.inf, np.nan], [np.nan] * 4])
    found = []
    for n in (1, 2, 3):
        with recording([]) as seen:
            dp_bounds(rows[:n], adjacency=with_n_public(adjacency, 3))
        (release,) = seen
        assert release.sensitivity == (math.sqrt(2.0) if adjacency == "replace_one" else 2.0)
        found.append(release.exact.reshape(4, -1))
    for before, after, added in zip(found, found[1:], ([1, 0, 1, 0], [0, 0, 0, 0]), strict=False):
        change = after - before
        assert change.sum(axis=1).tolist() == added
        assert set(change.ravel()) <= {0.0, 1.0}
    assert found[0].sum(axis=1).tolist() == [1.0] * 4


# --- rejections and charges ---


@by_class
@over_rows("cell", [["SECRET"], {"SECRET": 1}, 7654321.0 + 1j])
def test_a_rejection_shows_no_cell_and_costs_nothing(name, cell):
    accountant = PrivacyAccountant(epsilon=5.0, delta=1e-5)
    cells = np.ones((9, 3), dtype=object)
    cells[4, 1] = cell
    for rows in (cells, cells.tolist(), pd.DataFrame(cells)):
        with pytest.raises((ValueError, TypeError)) as caught:
            ESTIMATING[name](accountant=accountant).fit(rows)
        assert not [each for each in ("SECRET", "7654321", "\n") if each in str(caught.value)]
        assert caught.value.__cause__ is caught.value.__context__ is None
    assert not accountant.history


@over_rows("name", sorted(set(ESTIMATING) - WORDS))
def test_columns_of_dates_are_rejected_without_a_charge(name):
    accountant = PrivacyAccountant(epsilon=5.0, delta=1e-5)
    frame = pd.DataFrame({"a": [1.0, 2.0], "day": pd.date_range("2020", periods=2), "b": [1.0, None]})
    with pytest.raises(ValueError, match="Column 'day' has a date type"):
        ESTIMATING[name](accountant=accountant).fit(frame)
    assert not accountant.history


@by_name
def test_no_number_makes_a_fit_fail_after_its_charge(name):
    rng = np.random.default_rng(0)
    odd = [0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, 1e-320, 2.5, np.inf, -np.inf, np.nan]
    rows = rng.choice(odd, (40, 3))
    bounds = (
        [{"bounds": b} for b in ((0, 1e-149), (-1e150, 1e150), (1, 1 + 1e-15))] if name.endswith("bounds") else [{}]
    )
    for given in bounds:
        model = ESTIMATING[name](epsilon=None, noise_multiplier=0.01, random_state=0)
        if given and name != "bounds":
            model.set_params(**given)
        model.fit(rows)
        if hasattr(model, "transform"):
            assert model.transform(rows).shape[0] == 40


@over_rows(
    "make, bounds",
    crossed(
        1,
        make=[DPQuantileBinner, DPStandardScaler, DPSimpleImputer],
        bounds=[(1, 0), (0, math.inf), "ab", [(0, 1), 3, None], (-1e308, 1e308)],
    ),
)
def test_bad_bounds_are_rejected(make, bounds):
    with pytest.raises(ValueError, match="bounds") as caught:
        make(bounds=bounds).fit(table("binner"))
    assert "\n" not in str(caught.value)


# --- what comes out ---


def test_bins_of_estimated_edges():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=20_000), rng.integers(0, 3, 20_000)])
    X[:100, 0] = np.nan
    binner = DPQuantileBinner(8, encode="ordinal", random_state=0).fit(X)
    codes = binner.transform(X)
    assert (codes[:100, 0] == -1).all()
    assert np.bincount(codes[100:, 0].astype(int)).max() < 0.2 * 20_000
    assert len(np.unique(codes[:, 1])) == 3
    assert list(binner.get_feature_names_out()) == ["x0", "x1"]
    for encode, kind in (("onehot", sp.csr_matrix), ("onehot-dense", np.ndarray)):
        again = clone(binner).set_params(encode=encode).fit(X)
        rows = again.transform(X)
        assert isinstance(rows, kind)
        assert rows.shape[1] == len(again.get_feature_names_out()) == again.n_bins_.sum() + 2
        first = dense(rows)[:, : again.n_bins_[0] + 1].argmax(axis=1)
        np.testing.assert_array_equal(np.where(first == again.n_bins_[0], -1, first), codes[:, 0])


def test_one_hot_categories():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"job": rng.choice(["nurse", "clerk"], 2000), "code": pd.Series([1, 2, None, 2] * 500)})
    X.loc[0, "job"] = "king"
    encoder = DPOneHotEncoder(random_state=0, epsilon=2.0, sparse_output=False).fit(X)
    assert [list(each) for each in encoder.categories_] == [["clerk", "nurse"], ["1", "2"]]
    names = ["job=clerk", "job=nurse", "job=other", "job=missing", "code=1", "code=2", "code=other", "code=missing"]
    assert list(encoder.get_feature_names_out()) == names
    rows = encoder.transform(X)
    assert rows[0].tolist() == [0, 0, 1, 0, 1, 0, 0, 0]
    assert row_norm_of(rows) == pytest.approx(math.sqrt(2))
    assert encoder.inverse_transform(rows)[:3].tolist()[0] == ["other", "1"]


def test_a_category_of_a_type_that_no_row_has_changes_nothing():
    words = np.random.default_rng(0).choice(["a", "b"], 500)
    found = []
    for categories in (["a", "b"], ["0", "a", "b", "z"]):
        with recording([]) as seen:
            encoder = DPOneHotEncoder(delta=0.1, random_state=0)
            encoder.fit(pd.DataFrame({"w": pd.Categorical(words, categories)}))
        found.append(([each.exact.tolist() for each in seen], [each.tolist() for each in encoder.categories_]))
    assert found[0] == found[1]
    assert found[0][1] == [["a", "b"]]


TRANSFORMERS = {
    **{name: make for name, make in ESTIMATING.items() if name != "bounds"},
    "imputer-constant": lambda **p: DPSimpleImputer("constant", fill_value=3.0, **p),
}


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


@over_rows("name", TRANSFORMERS)
def test_one_row_changes_its_own_output_and_nothing_else(name):
    rows = table(name)
    fitted = TRANSFORMERS[name](random_state=0).fit(rows)
    made, changed = dense(fitted.transform(rows)), rows.copy()
    for changed[7] in (np.nan, np.inf, -1e300, 0.0, 2.5):
        np.testing.assert_array_equal(np.delete(dense(fitted.transform(changed)), 7, 0), np.delete(made, 7, 0))
    np.testing.assert_array_equal(dense(fitted.transform(rows[7:8])), made[7:8])


@over_rows(
    "make",
    [DPOneHotEncoder, lambda **p: DPQuantileBinner(4, **p), lambda **p: DPQuantileBinner(4, bounds=(-1, 1), **p)],
)
def test_rows_of_bins_and_categories_have_one_1_for_each_column(make):
    """Of other words, of gaps and of numbers beyond the bounds too; and the norm is handed on."""
    fitted = make(random_state=0).fit(table("binner"))
    rows = fitted.transform(np.array([[0.0, np.nan, np.inf], [-1e300, 77.0, 1.0], [np.nan] * 3]))
    columns = [each.partition("=")[0] for each in fitted.get_feature_names_out()]
    cells = dense(rows)
    assert set(cells.ravel()) == {0.0, 1.0}
    for column in ("x0", "x1", "x2"):
        assert cells[:, [each == column for each in columns]].sum(axis=1).tolist() == [1.0] * 3
    assert row_norm_of(rows) == pytest.approx(math.sqrt(3))


def test_standardized_columns():
    X = np.random.default_rng(0).normal([50.0, -3.0], [10.0, 0.1], (50_000, 2))
    X[:5] = np.nan
    scaler = DPStandardScaler(bounds=[(0, 100), None], random_state=0).fit(X)
    rows = scaler.transform(X)
    assert np.isnan(rows[:5]).all()
    np.testing.assert_allclose(np.nanmean(rows, axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(np.nanstd(rows, axis=0), 1.0, atol=0.1)
    low, high = np.array(scaler.bounds_).T
    np.testing.assert_allclose(scaler.inverse_transform(rows), np.clip(X, low, high), rtol=1e-9)
    plain = DPStandardScaler(bounds=(0, 100), with_mean=False, with_std=False).fit(X)
    np.testing.assert_array_equal(plain.transform(X[5:]), np.clip(X[5:], 0, 100))


def test_values_for_gaps():
    rng = np.random.default_rng(0)
    X = rng.choice([1.0, 2.0, 2.0, 4.0, np.nan], (20_000, 2))
    assert DPSimpleImputer("median", random_state=0).fit(X).statistics_.tolist() == [2.0, 2.0]
    assert DPSimpleImputer("most_frequent", random_state=0).fit(X).statistics_.tolist() == [2.0, 2.0]
    mean = DPSimpleImputer("mean", bounds=(0, 5), random_state=0).fit(X)
    np.testing.assert_allclose(mean.statistics_, 2.25, atol=0.1)
    filled = mean.transform(X)
    np.testing.assert_array_equal(filled, np.where(np.isnan(X), mean.statistics_, X))
    words = pd.DataFrame({"a": ["x", "x", None, "y"] * 1000, "b": [1, None, 3, 3] * 1000})
    frequent = DPSimpleImputer("most_frequent", epsilon=2.0, random_state=0).fit(words)
    assert frequent.statistics_.tolist() == ["x", 3.0]
    assert frequent.transform(words)[:3].tolist() == [["x", 1.0], ["x", 3.0], ["x", 3.0]]


def test_nothing_is_named_where_nothing_is_frequent():
    ids = pd.DataFrame({"id": [f"p{i}" for i in range(500)], "number": np.arange(500)})
    assert DPSimpleImputer("most_frequent", random_state=0).fit(ids).statistics_.tolist() == ["missing", 0.0]
    assert [len(each) for each in DPOneHotEncoder(random_state=0).fit(ids).categories_] == [0, 0]


def test_a_constant_costs_nothing_and_reads_no_cell():
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    words = pd.DataFrame({"a": ["x", None], "b": [1.0, None]})
    imputer = DPSimpleImputer("constant", accountant=accountant).fit(words)
    assert (imputer.epsilon_, imputer.privacy_event_) == (0.0, NoOpDpEvent())
    assert not accountant.history
    assert imputer.transform(words).tolist() == [["x", 1.0], ["missing", 0.0]]
    with pytest.raises(ValueError, match="fill_value"):
        DPSimpleImputer("constant", fill_value=math.nan).fit(words)


def test_a_constant_is_the_same_whatever_the_cells_are():
    tables = [
        pd.DataFrame({"a": np.array(a, dtype=object), "b": b})
        for a, b in ((["x", None], [1.0, np.nan]), ([3, 4.5], [np.inf, 0.0]), ([None, ["nested"]], [5e-324, 1e300]))
    ]
    states = [list(leaves(vars(DPSimpleImputer("constant").fit(each)))) for each in tables]
    assert states[0] == states[1] == states[2]


@by_name
def test_the_order_of_rows_changes_nothing(name):
    rows = table(name)
    assert_all_else_is_equal(
        *(run(lambda given: ESTIMATING[name](random_state=0).fit(given), each) for each in (rows, rows[::-1]))
    )


# --- in pipelines ---


@by_class
def test_the_charge_stands_before_noise_is_drawn(name, monkeypatch):
    accountant, charges = PrivacyAccountant(epsilon=5.0, delta=1e-5), []
    add = GaussianMechanism._add_noise

    def watched(mechanism, value, stream):
        charges.append([charge.event for charge in accountant.history])
        return add(mechanism, value, stream)

    monkeypatch.setattr(GaussianMechanism, "_add_noise", watched)
    model = ESTIMATING[name](accountant=accountant).fit(table(name))
    assert charges
    assert all(each == [model.privacy_event_] for each in charges)


@over_rows("word", ["other", "missing", " ", "a\nb", "x" * 300, "nan", "\U0001f600"])
def test_no_word_makes_a_fit_fail_after_its_charge(word):
    frame = pd.DataFrame({"a": [word, "b", None] * 200})
    encoder = DPOneHotEncoder(epsilon=5.0, random_state=0).fit(frame)
    assert sorted(["b", word]) == encoder.categories_[0].tolist()
    assert encoder.transform(frame).shape == (600, 4)


@pytest.mark.parametrize("name", ["encoder", "imputer-most-frequent"])
def test_a_gap_changes_the_output_of_no_other_row(name):
    """Though it makes a column of whole numbers one of floats."""
    whole = pd.DataFrame({"code": np.arange(2000) % 3, "word": ["x", "y"] * 1000})
    gap = whole.astype({"code": float})
    gap.loc[7] = [np.nan, None]
    fitted = TRANSFORMERS[name](random_state=0, epsilon=4.0).fit(whole)
    one, other = (np.delete(dense(fitted.transform(each)), 7, 0) for each in (whole, gap))
    np.testing.assert_array_equal(one, other)
