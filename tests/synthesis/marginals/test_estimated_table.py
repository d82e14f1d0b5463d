"""A raw table as a synthetic one: what is estimated, what it costs, and what one row may change."""

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from combinations import over_rows
from replay import assert_all_else_is_equal, moves, replay
from scipy.stats import kstest

import skdp
from skdp import DPMarginalSynthesizer, DPTableVectorizer, PrivacyAccountant, TableSchema
from skdp.accounting import get_epsilon
from skdp.exceptions import QualityWarning

N = 3_000
FAST = {"n_components": 5, "max_iter": 3}


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "pay": np.where(rng.random(n) < 0.2, np.nan, rng.normal(3_000, 500, n)),
            "job": rng.choice(np.array(["clerk", "nurse", None], dtype=object), n),
            "id": [f"p{i}" for i in range(n)],
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "member": rng.random(n) < 0.3,
        }
    )


def fit(table=None, **parameters):
    return DPMarginalSynthesizer(**{**FAST, **parameters}).fit(people() if table is None else table)


def test_a_raw_table_is_synthesized_in_one_line():
    private, accountant = people(), PrivacyAccountant()
    with pytest.warns(QualityWarning, match="No information in column 'id'"):
        made = skdp.synthesize(private, epsilon=3.0, accountant=accountant, random_state=0)
    (charge,) = accountant.history
    assert 2.99 < get_epsilon(charge.event, 1e-5) <= 3.0
    assert made.shape == private.shape
    assert (made.dtypes == private.dtypes).all()
    assert set(made["job"].dropna()) <= {"clerk", "nurse", "other"}
    assert (made["job"] == "other").mean() < 0.06
    assert set(made["id"].dropna()) == {"other"}
    # Standard deviations of shares are below .01, noise included: 6 of them are a false alarm of 1e-8.
    assert abs(made["pay"].isna().mean() - 0.2) < 0.06
    assert abs(made["member"].mean() - 0.3) < 0.06
    assert abs(made["pay"].mean() - 3_000) < 200


def to_arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def to_duckdb(frame):
    return duckdb.from_arrow(to_arrow(frame))


@over_rows("kind", [pl.from_pandas, to_arrow, pd.DataFrame.to_numpy, to_duckdb])
def test_tables_of_all_libraries(kind):
    table = kind(people(600)[["age", "pay", "job", "member"]])
    made = skdp.synthesize(table, n_samples=7)
    assert type(made) is (pa.Table if kind is to_duckdb else type(table))
    assert made.shape == (7, 4)


def test_estimated_schema_is_accepted_by_the_next_step():
    private, accountant = people(), PrivacyAccountant()
    estimated = DPTableVectorizer(epsilon=0.5, accountant=accountant).fit(private).schema_
    assert TableSchema.from_json(estimated.to_json()) == estimated
    model = fit(private, schema=estimated, epsilon=0.5, accountant=accountant)
    assert model.schema_["job"] == estimated["job"]
    assert model.schema_["age"] == replace(estimated["age"], missing_values=())  # of a type of integers, which has none
    assert fit(private, schema=model.schema_).sample(3).shape == (3, 6)


def test_estimates_increase_epsilon():
    """With the noise of the tables given, what is estimated costs more than they alone."""
    estimated = fit(epsilon=None, noise_multiplier=2.0)
    given = fit(schema=estimated.schema_, epsilon=None, noise_multiplier=2.0)
    assert estimated.epsilon_ > 1.03 * given.epsilon_


def test_a_schema_of_some_columns_is_kept():
    schema = TableSchema(
        {"age": (0, 120), "id": "drop", "pay": {"bounds": (0, 6_000), "missing_values": [None]}}, others="estimate"
    )
    model = fit(schema=schema)
    assert model.schema_["age"].bounds == (0, 120)
    assert model.sample(5).columns.tolist() == ["age", "pay", "job", "since", "member"]


def test_infinity_and_gaps_that_a_schema_excludes_cost_nothing():
    accountant = PrivacyAccountant()
    for table, schema, words in (
        (people().assign(pay=np.inf), None, "contains infinity"),
        (people(), TableSchema({"pay": (0, 6_000)}, others="estimate"), "declares no missing values"),
        (people(), TableSchema({"age": "category"}, others="estimate"), "has a numeric type"),
        (people(), TableSchema({"member": "category"}, others="estimate"), "must have a string type"),
    ):
        with pytest.raises(ValueError, match=words) as rejection:
            fit(table, schema=schema, accountant=accountant)
        assert "\n" not in str(rejection.value)
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []


def test_a_cell_that_is_named_other_is_one_level():
    table = people(2_000)[["age"]].assign(job=np.where(np.arange(2_000) % 2, "other", "clerk"))
    model = fit(table)
    assert model.schema_["job"].categories == ("clerk", "other")
    assert set(model.sample(200)["job"].dropna()) == {"clerk", "other"}


def test_combinations_that_bins_cannot_tell_are_left_out():
    schema = TableSchema({"age": "number", "job": "category"}, others="drop",
                         impossible=[{"age": (18, 18.5), "job": ["nurse"]}])  # fmt: skip
    assert fit(schema=schema).schema_.impossible == ()


WIDE = {"amount": (0, 1e7), "height": (0, 100), "job": ["clerk", "nurse"]}


def accounts(n, seed=0):
    rng = np.random.default_rng(seed)
    amount, height = np.exp(rng.normal(4.0, 1.5, n)), np.clip(rng.normal(50.0, 15.0, n), 0.0, 100.0)
    return pd.DataFrame({"amount": amount, "height": height, "job": rng.choice(["clerk", "nurse"], n)})


CHANGES = {
    "gaps": {"pay": np.nan, "job": None, "since": pd.NaT},
    "extremes": {"age": 10**9, "pay": -1e300, "since": pd.Timestamp("1700-01-01")},
    "bins within bounds": {"amount": 9e6, "height": 1.0, "job": "nurse"},
}


@over_rows("change", CHANGES)
@over_rows("adjacency", ["zero_out", "replace_one"])
def test_one_row_moves_no_release_further_than_it_is_priced(change, adjacency):
    """Everything else, warnings included, is equal bit for bit."""
    is_wide = change == "bins within bounds"
    one = accounts(400) if is_wide else people(400).drop(columns="id")
    other = one.copy()
    for name, cell in CHANGES[change].items():
        other.loc[7, name] = cell

    def fitted(table):
        model = DPMarginalSynthesizer(
            WIDE if is_wide else None, random_state=0, epsilon=20.0, adjacency=adjacency, **FAST
        )
        return model.fit(table)

    first, second = replay(fitted, one, other)
    assert max(moves(first, second)) <= 2.0 * (1.0 + 1e-9)  # replaced: twice what it adds, or what is charged
    assert_all_else_is_equal(first, second)


def test_wide_bounds_keep_the_marginal_and_are_told():
    """Simulated amounts far within their bounds: Kolmogorov distance, which is 0.9 with bins of equal width."""
    table, settings = accounts(20_000), {"epsilon": 1.0, "delta": 1e-6, **FAST}
    with pytest.warns(
        QualityWarning, match="Nearly all values of 'amount' lie within 1/32 of the range from one of the bounds"
    ):
        model = DPMarginalSynthesizer(WIDE, random_state=0, **settings).fit(table)
    assert kstest(model.sample(20_000, random_state=0)["amount"], table["amount"]).statistic < 0.12
    assert model.schema_["height"] == TableSchema(WIDE)["height"]
    assert get_epsilon(model.privacy_event_, 1e-6) == pytest.approx(1.0, rel=1e-3)
    edges = {"amount": {"edges": [0, 1e3, 1e7]}, "height": {"edges": [0, 50, 100]}, "job": ["clerk", "nurse"]}
    given = DPMarginalSynthesizer(edges, random_state=0, **settings).fit(table)
    assert model.noise_multiplier_ == pytest.approx(given.noise_multiplier_ / 0.95**0.5, rel=1e-3)  # 5% of mu^2


def test_synthesize_float_column_of_whole_numbers_stays_whole():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"children": rng.poisson(1.2, N).astype(float), "pay": rng.normal(300.0, 50.0, N)})
    table.loc[::100] = np.nan
    schema = {
        "children": {"bounds": (0, 8), "missing_values": [None]},
        "pay": {"bounds": (0, 600), "missing_values": [None]},
    }
    for given in (None, schema):
        made = fit(table, schema=schema if given else None, epsilon=20.0).sample(500)
        assert (made["children"].dropna() % 1 == 0).all()
        assert (made["pay"].dropna() % 1 > 0).mean() > 0.9


def in_arrow_types(frame):
    return to_arrow(frame).to_pandas(types_mapper=pd.ArrowDtype)


@over_rows("kind", [pd.DataFrame.copy, pl.from_pandas, to_arrow, in_arrow_types])
def test_synthesize_dates_keep_clock_of_their_zone(kind):
    days = np.random.default_rng(0).choice(pd.date_range("2021-01-04", periods=100, freq="7D"), N)
    table = pd.DataFrame({"when": pd.Series(days).dt.tz_localize("America/New_York"), "group": "a"})
    made = fit(kind(table), schema={"when": ("2021-01-01", "2022-12-31"), "group": ["a"]}, epsilon=50.0).sample(500)
    when = made["when"] if isinstance(made, pd.DataFrame) else made["when"].to_pandas()
    assert str(when.dt.tz) == "America/New_York"
    assert (when.dt.hour == 0).all()


@over_rows("kind", [pd.DataFrame.copy, pl.from_pandas, pd.DataFrame.to_numpy])
def test_synthesize_lost_column_is_missing(kind):
    """Noise alone rarely looks like numbers: that it does in each of 8 fits has a probability below 1e-6."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(500, 900, 60), "b": rng.integers(500, 900, 60)})
    found = 0
    for seed in range(8):
        model = fit(kind(table), epsilon=0.05, random_state=seed)
        made = pd.DataFrame(np.asarray(model.sample(20)), columns=["a", "b"])
        lost = [name for name, each in zip("ab", model._fitted_remains.values(), strict=True) if each.is_lost]
        assert made[lost].isna().all(axis=None)
        found += len(lost)
    assert found


@over_rows(
    "low, high, noise, seed", [(0.999, 1.0, 0.05, 0), (0.999, 1.0, 0.3, 10), (1.0, 1.0, 0.05, 0), (0.0, 0.0, 0.05, 0)]
)
def test_synthesize_estimated_bins_stay_within_public_bounds(low, high, noise, seed):
    """Noisy edges on a public bound are moved to it, also where all numbers lie there."""
    table = pd.DataFrame({"v": np.random.default_rng(0).uniform(low, high, 3000), "c": ["a", "b"] * 1500})
    schema = {"v": (0.0, 1.0), "c": ["a", "b"]}
    budget = {"epsilon": None, "noise_multiplier": noise, "n_bins": 60, "random_state": seed}
    made = DPMarginalSynthesizer(schema, n_components=20, max_iter=50, **budget).fit(table).sample(2000, random_state=0)
    assert made["v"].between(0.0, 1.0).all()
