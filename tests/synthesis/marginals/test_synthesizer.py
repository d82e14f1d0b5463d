"""Synthetic tables: what one row can move, what is made of the releases, and the form in which rows come back."""

import datetime
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import reference
import scipy.sparse as sp
from combinations import over_rows
from rejections import assert_rejected
from relations import with_n_public
from replay import recording
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, AddRemove, PrivacyAccountant, allocate_budget, synthesize
from skdp._checks.groups import read_units
from skdp._checks.weights import exactly_summable
from skdp.accounting import GaussianDpEvent
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms.bounded_sum import centered
from skdp.mechanisms.release_log import Transcript, running
from skdp.preprocessing import DPOneHotEncoder, DPTableVectorizer, TableSchema
from skdp.synthesis import DPMarginalSynthesizer
from skdp.synthesis.marginals import contingency_tables, noisy_tables
from skdp.synthesis.marginals.contingency_tables import TableSums, count, weighted
from skdp.synthesis.marginals.denoising import TargetTables
from skdp.synthesis.marginals.product_mixture import TRIPLES, _losses

FALSE_ALARM = 1e-6
SCHEMA = {
    "age": {"edges": [0, 20, 40, 65, 100]},
    "job": ["clerk", "nurse", "none"],
    "pay": {"edges": [0, 200, 400, 600, 800, 1000], "missing_values": [None]},  # no bins are estimated
    "member": "flag",
}
FAST = {"n_components": 8, "max_iter": 5, "n_bins": 5}


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n)
    job = np.where(age < 20, "none", rng.choice(["clerk", "nurse"], n))
    pay = np.where(job == "none", np.nan, np.clip(rng.normal(300, 90, n) + 3.0 * age, 0, 1000))
    return pd.DataFrame({"age": age, "job": job, "pay": pay, "member": rng.random(n) < 0.3})


def labels(frame):
    return np.where((frame["age"] > 40) & (frame["job"] == "clerk"), "yes", "no")


def synthesizer(*, adjacency=None, **parameters):
    given = {"schema": SCHEMA, "classes": ["no", "yes"], "random_state": 0, **FAST}
    return DPMarginalSynthesizer(**{**given, **parameters}, adjacency=with_n_public(adjacency, 500))


def precise(**parameters):
    """Almost no noise, and a fit to the end."""
    many = {"n_components": 100, "max_iter": 600}
    return synthesizer(epsilon=None, noise_multiplier=1e-3, **{**many, **parameters})


# --- one row ----------------------------------------------------------------------------------------------------------

MODES = {
    "columns": ({}, False),
    "labels": ({"triples": False}, True),
    "triples": ({"triples": True}, True),
    "selected": ({"pairs": "select"}, True),
}


LEVELS = [(2, 3, 5), (6, 6), (3, 2, 2, 2, 2)]


@over_rows("levels", LEVELS)
@over_rows("with_triples", [False, True])
def test_every_row_reaches_the_sensitivity_and_no_exchange_exceeds_it(levels, with_triples):
    """All rows that there are, and all pairs of them."""
    sums = noisy_tables.all_tables(levels, with_triples, with_triples and len(levels) > 2)
    rows = list(itertools.product(*map(range, levels)))
    added = np.array([sums.vector([np.array([a], np.int32) for a in row]) for row in rows])
    np.testing.assert_allclose(np.linalg.norm(added, axis=1), sums.sensitivity("zero_out"), rtol=1e-12)
    assert sums.sensitivity("add_remove") == sums.sensitivity("zero_out") == pytest.approx(1.0)
    moved = max(np.linalg.norm(added - one, axis=1).max() for one in added) / 2
    assert moved <= sums.sensitivity("replace_one") <= moved * (1 + 1e-9)


@over_rows("with_triples", [False, True])
@over_rows("levels", [(4, 2, 7, 3), (2,) * 10])
def test_bounds_of_an_exchange_hold_for_every_difference(levels, with_triples, monkeypatch):
    """Of tables of more columns than are gone through, here of few; also for pairs chosen at random, and odd sets."""
    every = noisy_tables.all_tables(levels, with_triples, with_triples and len(levels) > 2)
    pairs = list(itertools.combinations(range(len(levels)), 2))
    some = [pairs[k] for k in np.random.default_rng(0).permutation(len(pairs))[: len(pairs) // 2 + 1]]
    chosen = weighted(levels, [([(j,) for j in range(len(levels))], 0.2), (some, 0.8)])
    odd = TableSums(levels, tuple(itertools.combinations(range(len(levels)), min(4, len(levels)))), (0.1,) * 1000)
    odd = odd._replace(weights=odd.weights[: len(odd.sets)])
    exact = [each.sensitivity("replace_one") for each in (every, chosen, odd)]
    monkeypatch.setattr(contingency_tables, "_FEW", 0)
    bounds = [each.sensitivity("replace_one") for each in (every, chosen, odd)]
    for sums, one, bound in zip((every, chosen, odd), exact, bounds, strict=True):
        sets = zip(sums.sets, sums.weights, strict=True)
        singly = [
            sums._replace(sets=(columns,), weights=(weight,)).sensitivity("replace_one") for columns, weight in sets
        ]
        assert one * (1 - 1e-12) <= bound <= np.linalg.norm(singly) * (1 + 1e-9)
    assert len(levels) < 10 or bounds[0] < 1.01 * exact[0]


@over_rows("columns", [(0,), (0, 1), (0, 1, 2)])
@over_rows("levels", [(2, 3, 5), (7, 3, 4)])
def test_an_exchange_reaches_the_sensitivity_of_a_single_table(levels, columns):
    sums = TableSums(levels, (columns,), (1.5,))
    added = [sums.vector([np.array([a], np.int32) for a in row]) for row in itertools.product(*map(range, levels))]
    moved = max(np.linalg.norm(one - other) for one in added for other in added) / 2
    assert moved <= sums.sensitivity("replace_one") <= moved * (1 + 1e-9)


@over_rows("levels", LEVELS)
@over_rows("with_triples", [False, True])
def test_no_two_weighted_rows_exceed_the_sensitivity(levels, with_triples):
    """All rows that there are, with weights from 0 to 1, where the sum of weights is released with the tables."""
    sums = noisy_tables.all_tables(levels, with_triples, with_triples and len(levels) > 2, with_total=True)
    assert sums.sets[0] == ()
    rows = [[np.array([a], np.int32) for a in row] for row in itertools.product(*map(range, levels))]
    added = np.array([sums.vector(row, np.array([share])) for row in rows for share in (1.0, 0.5, 2.0**-24, 0.0)])
    norms = np.linalg.norm(added, axis=1)
    assert norms.max() == pytest.approx(sums.sensitivity("zero_out"))
    np.testing.assert_array_equal(added[3::4], 0.0)
    np.testing.assert_allclose(norms[1::4], 0.5 * norms[::4])
    moved = max(np.linalg.norm(added - one, axis=1).max() for one in added) / 2
    assert moved <= sums.sensitivity("replace_one") * (1 + 1e-12)
    assert sums.total(sums.vector(rows[0], np.array([1.0])), 10, 1e-9) == pytest.approx(1.0)


@over_rows("exchange", [False, True])
def test_scores_move_by_at_most_their_sensitivity(exchange):
    rng = np.random.default_rng(0)
    levels, pairs = (3, 4, 2, 5), list(itertools.combinations(range(4), 2))
    tables = {pair: rng.uniform(0, 4, [levels[j] for j in pair]) for pair in pairs}
    worst = 0.0
    for _ in range(300):
        codes = [rng.integers(0, size, 20).astype(np.int32) for size in levels]
        other = [np.array(column) for column in codes] if exchange else [column[1:] for column in codes]
        if exchange:
            for column, size in zip(other, levels, strict=True):
                column[0] = (column[0] + 1) % size
        found = [noisy_tables.scores(each, pairs, levels, tables.__getitem__) for each in (codes, other)]
        worst = max(worst, float(np.linalg.norm(found[0] - found[1])))
    stated = noisy_tables.sensitivity(len(pairs)) * (2 if exchange else 1)
    assert 0.5 * stated < worst <= stated * (1 + 1e-12)
    # of empty expected tables every row counts in full
    nothing = {pair: np.zeros_like(table) for pair, table in tables.items()}
    (one, none) = (
        noisy_tables.scores(each, pairs, levels, nothing.__getitem__) for each in (codes, [c[1:] for c in codes])
    )
    assert np.linalg.norm(one - none) == pytest.approx(noisy_tables.sensitivity(len(pairs)))


# --- the plain reading ------------------------------------------------------------------------------------------------


@over_rows("mode", ["labels", "triples"])
def test_the_release_is_that_of_the_plain_reading(released, mode):
    released.clear()
    frame = people(200)
    y = labels(frame)
    synthesizer(**MODES[mode][0]).fit(frame, y)
    levels = (4, 3, 6, 2, 2)
    pay = np.where(frame["pay"].isna(), 5, np.minimum(frame["pay"].fillna(0) // 200, 4)).astype(int)
    rows = np.column_stack([
        np.searchsorted([20, 40, 65], frame["age"], side="right"), pd.Index(SCHEMA["job"]).get_indexer(frame["job"]),
        pay, frame["member"].astype(int), (y == "yes").astype(int),
    ])  # fmt: skip
    sums = noisy_tables.all_tables(levels, True, mode == "triples")
    plain = [
        weight * reference.interactions(rows, columns, levels).ravel()
        for columns, weight in zip(sums.sets, sums.weights, strict=True)
    ]
    np.testing.assert_allclose(released[0][0], np.concatenate(plain), atol=1e-9)


def test_counts_at_other_numbers_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    levels = (3, 4, 2)
    codes = [rng.integers(0, size, 1000).astype(np.int32) for size in levels]
    whole = count(codes, (0, 1, 2), levels)
    monkeypatch.setattr("skdp.synthesis.marginals.contingency_tables._ROWS", 7)
    np.testing.assert_array_equal(count(codes, (0, 1, 2), levels), whole)
    np.testing.assert_allclose(
        centered(whole), reference.interactions(np.transpose(codes), (0, 1, 2), levels), atol=1e-9
    )


def test_scores_are_those_of_the_plain_reading():
    rng = np.random.default_rng(0)
    levels, pairs = (3, 4, 2), [(0, 1), (0, 2), (1, 2)]
    codes = [rng.integers(0, size, 50).astype(np.int32) for size in levels]
    tables = {pair: rng.uniform(0, 9, [levels[j] for j in pair]) for pair in pairs}
    plain = [reference.distance_of_pair(np.transpose(codes), pair, tables[pair]) for pair in pairs]
    np.testing.assert_allclose(noisy_tables.scores(codes, pairs, levels, tables.__getitem__), plain)


@over_rows("form", ["_OneProduct", "_ProductPerPair"])
@over_rows("some, with_triples", [(False, False), (False, True), (True, False)])
def test_the_gradient_of_the_mixture_is_that_of_the_plain_reading(some, with_triples, form, monkeypatch):
    """By central differences of the sum of squared errors, entry by entry."""
    if form == "_ProductPerPair":
        monkeypatch.setattr("skdp.synthesis.marginals.product_mixture._DENSE", 0)
        monkeypatch.setattr("skdp.synthesis.marginals.product_mixture._CELLS_OF_A_PAIR", 0)
    rng = np.random.default_rng(0)
    levels = (2, 3, 2)
    tables = [rng.dirichlet(np.ones(math.prod(shape))).reshape(shape) for shape in [(2, 3), (2, 2), (3, 2), (2, 3, 2)]]
    pairs = dict(zip([(0, 1), (0, 2), (1, 2)], tables, strict=False))
    if some:
        del pairs[(1, 2)]
    triples = {(0, 1, 2): tables[3]} if with_triples else {}
    ones = [np.full(size, 1 / size) for size in levels]
    components = rng.dirichlet(np.ones(7), size=4).astype(np.float32)
    gradient = np.zeros_like(components)
    losses = _losses(levels, TargetTables(ones, pairs, triples))
    assert type(losses[0]).__name__ == form
    for loss in losses:
        if type(loss).__name__ != "_Ones":
            loss.add_gradient(components, gradient)

    def plain(moved):
        parts = [list(np.split(row, [2, 5])) for row in moved]
        return reference.mixture_loss(parts, levels, pairs, triples, TRIPLES)

    np.testing.assert_allclose(gradient, reference.slopes(plain, components), rtol=0.0, atol=2e-6)


# --- post-processing --------------------------------------------------------------------------------------------------


def test_selection_takes_the_pairs_that_depend_on_each_other():
    rng = np.random.default_rng(0)
    levels = (4,) * 6
    codes = [rng.integers(0, 4, 20_000).astype(np.int32) for _ in levels]
    codes[3], codes[5] = codes[0], (codes[1] // 2).astype(np.int32)
    pairs = noisy_tables.candidates(levels, [])
    ones = [np.bincount(column, minlength=4) for column in codes]
    expected = lambda pair: np.outer(ones[pair[0]], ones[pair[1]]) / 20_000  # noqa: E731
    found = noisy_tables.scores(codes, pairs, levels, expected)
    assert noisy_tables.best_pairs(found, pairs, levels, expected, 10.0) == [(0, 3), (1, 5)]
    assert noisy_tables.best_pairs(found, pairs, levels, expected, 1e9) == []
    assert len(noisy_tables.candidates((2, 1, 3, 10_000, 5_000), [(0, 2)])) == 4  # 10,000 by 5,000 cells are too many


def test_without_noise_samples_have_the_tables_of_the_rows():
    frame = people(20_000)
    y = labels(frame)
    made, made_y = precise(triples=True).fit(frame, y).sample(20_000, random_state=0)
    assert abs((y == "yes").mean() - (made_y == "yes").mean()) < 0.02
    for names in (["job", "member"], ["age", "job"]):
        one, other = (
            each.assign(age=np.digitize(each["age"], [20, 40, 65])).groupby(names).size() / 20_000
            for each in (frame, made)
        )
        assert 0.5 * one.sub(other, fill_value=0).abs().sum() < 0.03
    old_clerks = (made["age"] > 40) & (made["job"] == "clerk")
    assert abs((made_y == "yes")[old_clerks].mean() - 1.0) < 0.1


# --- the form of samples ----------------------------------------------------------------------------------------------


def test_a_pandas_frame_comes_back_as_one():
    frame = people(400)[["member", "pay", "job", "age"]]
    frame["age"] = frame["age"].astype("int16")
    frame["job"] = frame["job"].astype("category")
    frame["pay"] = frame["pay"].astype("float32")
    made = precise().fit(frame).sample(300, random_state=0)
    assert list(made.columns) == list(frame.columns)
    assert made.drop(columns="job").dtypes.equals(frame.drop(columns="job").dtypes)
    assert list(made["job"].cat.categories) == SCHEMA["job"]  # of the schema, and not of the rows
    assert made["age"].between(0, 100).all()
    assert made["pay"].dropna().between(0, 1000).all()
    assert 0 < made["pay"].isna().mean() < 1


def test_an_array_comes_back_as_one():
    X = np.random.default_rng(0).integers(0, 9, (300, 3))
    made = DPMarginalSynthesizer(bounds=(0, 8), random_state=0, **FAST).fit(X).sample(50, random_state=1)
    assert (made.shape, made.dtype) == ((50, 3), X.dtype)
    assert made.min() >= 0
    assert made.max() <= 8


@over_rows("kind", ["U", "S", "T"])
def test_arrays_of_text_have_gaps_of_text(kind):
    """None would come back as a word, which the schema does not list."""
    X = np.array([["a", "1.5"], ["?", ""]] * 20).astype(np.dtypes.StringDType() if kind == "T" else kind)
    schema = {
        "x0": {"categories": ["a"], "missing_values": ["?", None]},
        "x1": {"bounds": (0, 2), "missing_values": [None]},
    }
    model = DPMarginalSynthesizer(schema, random_state=0, **FAST).fit(X)
    made = model.sample(200, random_state=0)
    assert made.dtype.kind == kind
    assert set(map(str, np.strings.decode(made[:, 0]) if kind == "S" else made[:, 0])) == {"a", "?"}
    assert made[0, 1][:0] in made[:, 1]
    clone(model).fit(made)


def test_one_cell_decides_on_no_type():
    """Of a list the cells have types, and of text of NumPy the longest cell has the width."""
    number = {"bounds": (0, 9), "missing_values": [None]}
    forms = []
    for cell in (2, 2.5, None, "3", 10**30):
        X = [[1, 2], [3, 4]] * 20
        X[7] = [1, cell]
        model = DPMarginalSynthesizer({"x0": number, "x1": number}, random_state=0, **FAST).fit(X)
        forms.append((str(model._fitted_form), model.components_.shape, model.sample(3).dtype))
    assert len(set(forms)) == 1
    forms = []
    for cell in ("x", "a very long text that says who it is"):
        words = np.array([["a", "x"], ["b", cell]] * 20)
        schema = {"x0": ["a", "b"], "x1": ["x", "y"]}
        model = DPMarginalSynthesizer(schema, other={"x1": "rest"}, random_state=0, **FAST).fit(words)
        forms.append(pickle.dumps(model._fitted_form))
    assert forms[0] == forms[1]


TYPES = [
    ({"bounds": ("2000-01-01", "2020-12-31"), "missing_values": [None]}, pd.to_datetime(["2001-02-03", None] * 20)),
    ({"bounds": ("2000-01-01", "2020-12-31")}, pd.Series(["2001-02-03", "2019-01-01"] * 20)),
    ({"bounds": (0, 9), "missing_values": [None]}, pd.Series([1, None] * 20, dtype="Int64")),
    ({"bounds": (0, 5000), "missing_values": [-999, None]}, pd.Series([1, 3] * 20, dtype="int8")),
    ({"bounds": (0, 9), "missing_values": [None]}, pd.to_timedelta([1, None] * 20, unit="D")),
    ({"bounds": (0, 9)}, pd.Series(["1", "2.5"] * 20)),
    ({"bounds": ("0100-01-01", "9000-01-01")}, pd.Series(["2001-02-03", "2019-01-01"] * 20, dtype="datetime64[ns]")),
    ({"bounds": ("2000-01-01", "2020-12-31")}, pd.to_datetime(["2001-02-03"] * 40).tz_localize("Asia/Tokyo")),
    ({"kind": "flag", "missing_values": [None]}, pd.Series([True, None] * 20, dtype="boolean")),
    ({"kind": "flag"}, pd.Series(["1", "0"] * 20, dtype="string")),
    (
        {"kind": "ordinal", "categories": ["low", "high"], "missing_values": [None]},
        pd.Series(["low", None] * 20, dtype=object),
    ),
    ({"categories": ["a", "b"], "missing_values": [None]}, pd.Series(["a", None] * 20, dtype="category")),
    ({"bounds": (0, 1e6)}, pd.Series([1, 2] * 20, dtype="float16")),
    ({"bounds": (0, 9)}, pd.Series([1, 0] * 20, dtype="Sparse[int64]")),
]


@over_rows("column, values", TYPES)
def test_types_are_kept_and_samples_are_read_again(column, values):
    """What comes back has the type of what went in, and is read by the same schema without a rejection."""
    frame = pd.DataFrame({"x": values, "z": [1.0, 2.0] * 20})
    model = DPMarginalSynthesizer({"x": column, "z": (0, 3)}, random_state=0, **FAST).fit(frame)
    made = model.sample(200, random_state=0)
    if str(frame["x"].dtype) == "category":
        assert set(made["x"].cat.categories) == {"a", "b"}
    else:
        assert made["x"].dtype == frame["x"].dtype
    clone(model).fit(made)
    if not isinstance(column, dict) or not column.get("missing_values"):
        assert made["x"].notna().all()


POLARS = {
    "small": pl.Series([1, None] * 20, dtype=pl.Int8),
    "day": pl.Series([datetime.date(2001, 2, 3), None] * 20),
    "span": pl.Series([datetime.timedelta(days=1), None] * 20),
    "moment": pl.Series([datetime.datetime(2001, 2, 3), None] * 20, dtype=pl.Datetime("ns", "UTC")),
    "truth": pl.Series([True, None] * 20),
    "word": pl.Series(["a", None] * 20, dtype=pl.Enum(["a", "secret"])),
    "number": pl.Series(["1.5", None] * 20),
}
OF_POLARS = {
    "day": {"bounds": ("2000-01-01", "2020-12-31"), "missing_values": [None]},
    **{"small": {"bounds": (0, 5000), "missing_values": [None]}, "span": {"bounds": (0, 9), "missing_values": [None]}},
    **{
        "moment": {"bounds": ("2000-01-01", "2020-12-31"), "missing_values": [None]},
        "truth": {"kind": "flag", "missing_values": [None]},
    },
    **{
        "word": {"categories": ["a", "b"], "missing_values": [None]},
        "number": {"bounds": (0, 9), "missing_values": [None]},
    },
}


def test_types_of_polars_are_kept():
    frame = pl.DataFrame(POLARS)  # no nulls of a column would be eleven standard deviations of noise
    model = DPMarginalSynthesizer(OF_POLARS, epsilon=50.0, random_state=0, **FAST)
    made = model.fit(frame).sample(300, random_state=0)
    expected = {**frame.schema, "word": pl.Categorical}  # the list of an Enum came with the rows
    assert dict(made.schema) == expected
    assert all(made[name].null_count() > 0 for name in made.columns)


def test_types_of_arrow_are_kept():
    """Also those that polars does not have. Metadata, which may tell of the rows, are not."""
    when = [datetime.date(2001, 2, 3), None] * 20
    frame = pa.table(
        {
            "small": pa.array([1, None] * 20, pa.int8()),
            "truth": pa.array([True, None] * 20),
            "word": pa.array(["a", None] * 20),
            "listed": pa.array(["a", None] * 20).dictionary_encode(),
            "day": pa.array(when, pa.date64()),
            "moment": pa.array(when).cast(pa.timestamp("s")),
            "span": pa.array([datetime.timedelta(days=1), None] * 20, pa.duration("s")),
        }
    )
    days, words = (
        {"bounds": ("2000-01-01", "2020-12-31"), "missing_values": [None]},
        {"categories": ["a", "b"], "missing_values": [None]},
    )
    schema = {"small": OF_POLARS["small"], "truth": OF_POLARS["truth"], "word": words, "listed": words}
    schema |= {"day": days, "moment": days, "span": OF_POLARS["span"]}
    model = DPMarginalSynthesizer(schema, epsilon=50.0, random_state=0, **FAST)
    made = model.fit(frame.replace_schema_metadata({"pandas": "40 rows"})).sample(300, random_state=0)
    assert made.schema.equals(frame.schema, check_metadata=True)
    assert [column.null_count > 0 for column in made.columns] == [True] * 7
    assert b"40 rows" not in pickle.dumps(model)


def test_what_a_type_does_not_hold_is_rejected_before_the_charge():
    accountant = PrivacyAccountant()
    frame = pd.DataFrame({"x": [1, 2] * 20, "z": [0.0, 1.0] * 20}).astype({"x": "float16"})
    frame["x"] = pd.Series([pd.Period("2001-01", "M"), pd.Period("2001-02", "M")] * 20, dtype="period[M]")
    model = DPMarginalSynthesizer({"x": ["2001-01", "soon"], "z": (0, 1)}, accountant=accountant, **FAST)
    with pytest.raises(
        ValueError, match=r"^Synthetic values cannot be converted to the dtype of column 'x' \(period\[M\]\)"
    ):
        model.fit(frame)
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []


@over_rows("within_bins", ["uniform", "middle"])
def test_numbers_come_back_inside_their_bins(within_bins):
    schema = {"x": {"edges": [0, 1, 10, 100]}, "y": {"bounds": (0, 1e4), "scale": "log"}}
    frame = pd.DataFrame({"x": [0.5, 50.0] * 200, "y": [3.0, 3000.0] * 200})
    model = precise(schema=schema, within_bins=within_bins).fit(frame)
    made = model.sample(2000, random_state=0)["x"].to_numpy()
    assert (((made >= 0) & (made < 1)) | ((made >= 10) & (made <= 100))).mean() > 0.98
    inside = made[(made >= 10) & (made <= 100)]
    assert (len(np.unique(inside)) == 1) == (within_bins == "middle")
    if within_bins == "uniform":
        assert stats.kstest((inside - 10) / 90, "uniform").pvalue > FALSE_ALARM


def test_integers_come_back_uniform_over_those_of_their_bin():
    frame = pd.DataFrame({"x": np.repeat(np.arange(10), 40), "z": np.tile([0.0, 1.0], 200)})
    model = precise(schema={"x": {"edges": [0, 4, 9]}, "z": (0, 1)}).fit(frame)
    made = model.sample(30_000, random_state=0)["x"]
    counts = np.bincount(made, minlength=10)
    for part in (counts[:4], counts[4:]):
        assert stats.chisquare(part).pvalue > FALSE_ALARM


def test_combinations_that_cannot_occur_are_not_drawn():
    frame = people(400)
    impossible = [{"age": (0, 20), "job": ["clerk", "nurse"]}, {"member": [True], "age": (65, 100), "job": ["none"]}]
    model = synthesizer(schema=TableSchema(SCHEMA, impossible=impossible), epsilon=20.0).fit(frame)
    made = model.sample(5000, random_state=0)
    assert not ((made["age"] < 20) & (made["job"] != "none")).any()
    assert not ((made["age"] >= 65) & (made["job"] == "none") & made["member"]).any()
    assert ((made["age"] < 20) & (made["job"] == "none")).any()
    assert model.schema_.impossible == TableSchema(SCHEMA, impossible=impossible).impossible


@over_rows("high", [0.3, 0.6, 0.7])
def test_computed_edges_are_those_that_are_meant(high):
    """0.1 + 0.2 is above 0.3, and the bin from 0.2 to 0.3 ends there."""
    frame = pd.DataFrame({"x": np.linspace(0, 1, 500), "z": ["a", "b"] * 250})
    schema = TableSchema({"x": (0, 1), "z": ["a", "b"]}, impossible=[{"x": (0, high), "z": ["a"]}])
    made = synthesizer(schema=schema, n_bins=10, epsilon=50.0).fit(frame).sample(5000, random_state=0)
    assert not ((made["x"] < high) & (made["z"] == "a")).any()


@over_rows("condition", [{"age": (20, 39)}, {"job": []}])
def test_an_impossible_combination_that_means_nothing_is_rejected_before_the_charge(condition):
    accountant = PrivacyAccountant()
    schema = TableSchema(SCHEMA, impossible=[{**condition, "member": [True]}])
    with pytest.raises(
        ValueError, match=r"^`impossible` of the schema must match a bin or category of column '(age|job)'\. .*\.$"
    ):
        synthesizer(schema=schema, accountant=accountant).fit(people(60))
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []


def test_impossible_combinations_outlive_estimates_of_columns():
    """Without the categories that were not estimated."""
    frame = people(2000)[["age", "job", "member"]]
    impossible = [
        {"age": (0, 20), "job": ["clerk", "nurse", "pilot"]},
        {"job": ["pilot"], "member": [True]},
        {"age": (0, 20), "member": [True]},
    ]
    schema = TableSchema({"age": {"edges": [0, 20, 100]}, "job": "category", "member": "flag"}, impossible=impossible)
    estimated = DPTableVectorizer(schema, epsilon=20.0, random_state=0).fit(frame).schema_
    kept = [{"age": [0.0, 20.0], "job": ["clerk", "nurse"]}, {"age": [0.0, 20.0], "member": ["True"]}]
    assert [each.describe(dict(estimated.items())) for each in estimated.impossible] == kept
    made = synthesizer(schema=estimated, adjacency=AddRemove(500)).fit(frame).sample(2000, random_state=0)
    assert not ((made["age"] < 20) & ((made["job"] != "none") | made["member"])).any()


def test_nothing_left_to_draw_is_said_in_one_line():
    impossible = [{"member": [True, False], "job": SCHEMA["job"]}]
    model = synthesizer(schema=TableSchema(SCHEMA, impossible=impossible)).fit(people(60))
    with pytest.raises(
        RuntimeError, match=r"^No row that the schema permits could be drawn.*Remove some of `impossible`\.$"
    ):
        model.sample(10)


# --- samples ----------------------------------------------------------------------------------------------------------


@over_rows("shares", ["estimate", "uniform", [0.9, 0.1], (0, 1)])
def test_labels_are_drawn_by_noisy_or_public_shares(shares):
    frame = people(3000)
    y = labels(frame)
    model = synthesizer(class_prevalences=shares).fit(frame, y)
    expected = {"estimate": model.marginals_[-1], "uniform": [0.5, 0.5]}.get(str(shares), shares)
    _, made = model.sample(20_000, random_state=0)
    assert abs((made == "yes").mean() - expected[1]) < 5 * math.sqrt(0.25 / 20_000)  # false alarm below 1e-6
    if shares == "estimate":
        assert model.marginals_[-1][1] != pytest.approx((y == "yes").mean(), abs=1e-9)


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = people(40)
GOOD_Y = labels(GOOD)


def changed(**cells):
    frame = GOOD.astype({name: object for name in cells})
    for name, value in cells.items():
        frame.loc[7, name] = value
    return frame


BAD_INPUT = [
    ({"bounds": (0, 1)}, {}, ["`bounds` must be None with a schema"]),
    ({"schema": None, "bounds": [(0, 1), None, (0, 1)]}, {}, ["`schema` or `bounds`", "bounds=(low, high)"]),
    ({"schema": {**SCHEMA, "age": "category"}}, {}, ["Column 'age' has a numeric type", "X['age'].astype(str)"]),
    ({"pairs": "some"}, {}, ["`pairs` must be", "'auto', 'all', 'select'"]),
    ({"triples": True}, {}, ["`y` must be set with triples=True"]),
    ({"triples": True, "pairs": "select"}, {"y": GOOD_Y}, ["triples=True", "'all'"]),
    ({"other": {"age": "x"}}, {}, ["`other`", "'age'"]),
    ({"class_prevalences": [1.0]}, {"y": GOOD_Y}, ["one entry per class", "got 1"]),
    (
        {},
        {"X": changed(job="secret")},
        ["Column 'job'", "Column 'job' has categories that the schema does not list", "other="],
    ),
    ({}, {"X": changed(job=None)}, ["contains NaN", "column 'job'", "'missing_values': [None]"]),
    ({}, {"X": changed(age="12.5w")}, ["column 'age'", "declares no missing values"]),
    ({"schema": {**SCHEMA, "job": ("2000-01-01", "2024-12-31")}}, {}, ["column 'job'", "Set the 'format' of dates"]),
    ({}, {"X": changed(pay=math.inf)}, ["X contains infinity", "column 'pay'"]),
    ({}, {"X": GOOD[:1]}, ["1 sample", "2 rows"]),
    ({"schema": {"age": (0, 100)}}, {"X": GOOD[["age"]]}, ["1 feature(s)", "at least 2"]),
    ({}, {"X": sp.csr_matrix(np.eye(4))}, ["sparse"]),
]


@over_rows("parameters, given, words", BAD_INPUT)
def test_bad_input_is_rejected_in_one_line_before_any_charge(parameters, given, words):
    assert_rejected(synthesizer, parameters, {"X": GOOD, **given}, words, ["secret", "12.5w"])


def test_categories_that_are_not_listed_may_have_a_cell_of_their_own():
    frame = people(400)
    schema = {**SCHEMA, "job": ["clerk"]}
    model = precise(schema=schema, other={"job": "elsewhere"}).fit(frame)
    made = model.sample(1000, random_state=0)
    assert set(made["job"]) == {"clerk", "elsewhere"}


# --- the charge, and what is published --------------------------------------------------------------------------------


def test_rules_are_public():
    """The same width, levels and public number of rows decide the same; the data have no say."""
    assert noisy_tables.iterations(1.0) == 150
    assert noisy_tables.iterations(1e9) == 2000
    assert noisy_tables.iterations(1e9, with_triples=True) == 3000
    frame = people(60)
    wide = pd.DataFrame({f"c{j}": frame["age"] for j in range(21)})
    schema = {name: {"edges": [0, 33, 67, 100]} for name in wide}
    assert len(synthesizer(schema=schema, n_bins=3).fit(wide).privacy_event_.events) == 5
    assert synthesizer(schema=schema, n_bins=3, pairs="all").fit(wide).privacy_event_ == GaussianDpEvent(
        synthesizer(schema=schema, n_bins=3, pairs="all").fit(wide).noise_multiplier_
    )
    many = {**SCHEMA, "age": {"edges": list(range(140))}}
    assert synthesizer(schema=many).fit(frame).privacy_event_.events
    for n, has_triples in ((10**7, True), (10, False)):
        model = synthesizer(adjacency=AddRemove(n), n_components=None).fit(frame, labels(frame))
        assert model.has_triples_ == has_triples
        assert len(model.components_) == (400 if has_triples else 200)


@over_rows("width", [25, 4])
def test_a_step_that_changes_the_width_does_not_change_what_was_priced(width):
    """The number of releases is that of the plan, though 25 columns become 3, or 4 become 80."""
    rng = np.random.default_rng(0)
    accountant = PrivacyAccountant()
    first = DPPCA(3) if width == 25 else DPOneHotEncoder(sparse_output=False)
    X = rng.normal(size=(400, 25)) if width == 25 else rng.integers(0, 20, (400, 4))
    last = DPMarginalSynthesizer(bounds=(-1, 1), accountant=accountant, **FAST)
    pipe = allocate_budget(make_pipeline(first.set_params(accountant=accountant), last), 20.0, 1e-5).fit(X)
    made = pipe[-1].sample(10)
    assert made.shape[1] == 3 if width == 25 else made.shape[1] > 20
    assert [entry.event for entry in accountant.history] == [pipe.privacy_event_]


@over_rows(
    "first, parameters, words",
    [
        (
            DPPCA(2),
            {"schema": {"x0": (-1, 1), "x1": ["a", "b"]}},
            "schema may not match the output of the previous step",
        ),
        (
            DPOneHotEncoder(sparse_output=False),
            {"bounds": [(0, 1), None]},
            "`bounds` is a list with one entry per column",
        ),
        (
            DPOneHotEncoder().set_output(transform="pandas"),
            {"bounds": (0, 1)},
            r"Step 'dponehotencoder' returns sparse rows.* set_output\(transform='default'\)",
        ),
        (
            DPOneHotEncoder(),
            {"bounds": (0, 1)},
            "does not accept sparse rows.* Set dponehotencoder__sparse_output=False",
        ),
    ],
)
def test_what_does_not_fit_behind_a_private_step_is_rejected_before_the_charge(first, parameters, words):
    accountant = PrivacyAccountant()
    steps = [clone(first), DPMarginalSynthesizer(**parameters, **FAST)]
    pipe = make_pipeline(*(step.set_params(accountant=accountant) for step in steps))
    with pytest.raises(ValueError, match=words):
        allocate_budget(pipe, epsilon=2.0, delta=1e-5).fit(np.random.default_rng(0).normal(size=(500, 4)))
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []


@over_rows("reach", [1.0, 1.7])
@over_rows("with_triples", [False, True])
def test_units_add_no_more_than_their_reach_and_reach_that(with_triples, reach):
    """Against vectors that are formed unit by unit."""
    rng, levels = np.random.default_rng(0), [3, 2, 4, 2]
    labels = rng.permutation(np.concatenate([rng.integers(0, 40, 100), np.full(70, 99)]))
    units = read_units(labels, len(labels))
    codes = [rng.integers(0, size, len(labels)).astype(np.int32) for size in levels]
    codes = [np.where(units.codes == 3, 1, each).astype(np.int32) for each in codes]  # a unit of equal rows
    weights = exactly_summable(rng.uniform(0.0, 1.0, len(labels)))
    sums = noisy_tables.all_tables(levels, True, with_triples, with_total=True)

    def norm(shares, unit):
        rows = units.codes == unit
        return np.linalg.norm(sums.vector([each[rows] for each in codes], shares[rows]))

    clipped = sums.clip_units(units, codes, weights, reach)
    before, after = (np.array([norm(each, unit) for unit in range(units.n_units)]) for each in (weights, clipped))
    assert (before > reach).sum() > 1
    assert after.max() <= reach + 1e-12  # of the vector's own rounding
    np.testing.assert_allclose(after, np.minimum(before, reach), atol=1e-4)
    alone = np.bincount(units.codes)[units.codes] == 1
    np.testing.assert_array_equal(clipped[alone], weights[alone])
    np.testing.assert_array_equal(clipped, exactly_summable(clipped))


def test_noise_of_units_is_as_many_times_larger_as_their_reach():
    X, groups = np.random.default_rng(0).uniform(0, 1, (300, 2)), np.arange(300) // 2
    given = {"bounds": (0, 1), "n_bins": 3, "n_components": 2, "max_iter": 1, "epsilon": None, "noise_multiplier": 0.1}
    with recording([]) as of_rows:
        rows = DPMarginalSynthesizer(weight_bound=1.0, **given).fit(X, sample_weight=np.ones(300))
    with recording([]) as of_units:
        units = DPMarginalSynthesizer(**given).fit(X, groups=groups)
    assert units.privacy_event_ == rows.privacy_event_
    assert of_units[0].sensitivity == pytest.approx(of_rows[0].sensitivity * math.sqrt(150 / (500 * 0.1)))


@over_rows("pairs", ["all", "select"])
def test_tables_of_units_that_reach_further_are_relative_to_the_sum_of_their_weights(pairs):
    """The noise is 2 % of a row, and both columns are equal: 96 % of the samples at least have that."""
    bits = np.random.default_rng(0).integers(0, 2, 150).repeat(2)
    X, given = np.column_stack([bits, bits, np.ones(300)]), {"epsilon": None, "noise_multiplier": 0.02}
    model = DPMarginalSynthesizer(bounds=(0, 1), n_bins=2, n_components=20, pairs=pairs, random_state=0, **given)
    made = model.fit(X, groups=np.arange(300) // 2).sample(2000, random_state=0) > 0.5
    assert np.mean(made[:, 0] == made[:, 1]) > 0.96


def test_a_table_of_one_group_is_rejected_before_the_charge():
    ledger = PrivacyAccountant(5.0, 1e-5, unit="group")
    model = DPMarginalSynthesizer(bounds=(0, 1), accountant=ledger)
    with pytest.raises(ValueError, match="X has 1 group"):
        model.fit(np.zeros((3, 2)), groups=["a", "a", "a"])
    assert not ledger.history


DAYS = pd.DataFrame({"group": ["a", "b"] * 100, "seen": pd.period_range("2019-01", periods=200, freq="D")})


def test_synthesize_unsupported_type_names_its_column():
    with pytest.raises(ValueError, match=r"dtype of column 'seen' \(period\[D\]\)"):
        synthesize(DAYS, epsilon=1.0)


def test_synthesizer_fitted_state_lacks_unlisted_category():
    """A categorical type brings along a category that no schema lists."""
    frame = people(60)
    frame["job"] = frame["job"].astype("category").cat.add_categories(["told by nobody"])
    assert b"told by nobody" not in pickle.dumps(synthesizer().fit(frame))


@pytest.mark.parametrize("mode", MODES)
def test_the_noise_is_as_priced(mode):
    """Each release has the noise of one part of the event, in its order, and nothing else is released."""
    parameters, with_labels = MODES[mode]
    frame = people(400)
    schema = {**SCHEMA, "pay": {"edges": np.linspace(0, 1000, 31), "missing_values": [None]}}
    model, transcript = synthesizer(schema=schema, epsilon=500.0, random_state=1, **parameters), Transcript()
    with running(transcript):
        model.fit(frame, labels(frame) if with_labels else None)
    whole, event = model.noise_multiplier_, model.privacy_event_
    if mode == "selected":  # the first one is charged as one release: columns, cells of numbers, whole numbers
        first, *others = event.events
        assert first == GaussianDpEvent(whole / math.sqrt(0.2))
        assert len(others) == 4
        multipliers = [whole / math.sqrt(0.17), *(each.noise_multiplier for each in others)]
        multipliers += [whole / math.sqrt(fraction) for fraction in (0.02, 0.01)]
    else:  # fractions that sum to one have the privacy cost of one release: tables, cells of numbers, whole numbers
        assert event == GaussianDpEvent(whole)
        multipliers = [whole / math.sqrt(fraction) for fraction in (0.97, 0.02, 0.01)]
    assert sum(1 / each**2 for each in multipliers) == pytest.approx(1 / whole**2)
    (track,) = transcript.tracks
    assert [each.noise_multiplier for each in track.releases] == pytest.approx(multipliers, rel=1e-12)


def test_pairs_are_selected_by_noisy_scores_alone(monkeypatch):
    """Of columns that depend on each other, the two are taken that the noise chose, and no other pair."""

    def chosen_by_noise(mechanism, value, stream):
        scores = mechanism.sensitivity == math.sqrt(value.size)
        return 1e6 * (np.arange(value.size) == 2) if scores and value.size == 6 else np.zeros(value.size)

    monkeypatch.setattr(GaussianMechanism, "release", chosen_by_noise)
    model = synthesizer(pairs="select", epsilon=50.0).fit(people(5000))
    assert model.pairs_ == [("age", "member")]


def test_names_that_are_no_text_come_back():
    frame = pd.DataFrame(np.random.default_rng(0).random((40, 3)), columns=[7, 9, 8])
    made = DPMarginalSynthesizer(bounds=(0, 1), random_state=0, **FAST).fit(frame).sample(3)
    assert list(made.columns) == list(frame.columns)


def test_arrays_of_dates():
    X = np.array([["2001-02-03", "2002-03-04"], ["2003-01-01", "2004-05-06"]] * 20, dtype="datetime64[D]")
    schema = {name: ("2000-01-01", "2010-01-01") for name in ("x0", "x1")}
    made = DPMarginalSynthesizer(schema, random_state=0, **FAST).fit(X).sample(30)
    assert made.dtype == X.dtype
    assert (made >= np.datetime64("2000-01-01")).all()


def test_an_interrupt_leaves_no_labels_of_an_earlier_fit():
    """What is learned is published at once; `classes_` of an earlier fit go only afterwards."""
    frame = people(60)
    model = synthesizer().fit(frame, labels(frame))
    later = clone(model).fit(frame)
    vars(model).update({name: value for name, value in vars(later).items() if name.endswith("_") or "_fitted" in name})
    assert hasattr(model, "classes_")
    assert isinstance(model.sample(3), pd.DataFrame)
