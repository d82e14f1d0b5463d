"""What a description says: consistent, near the truth, with intervals that hold; and what is rejected."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from combinations import combined
from relations import with_n_public
from scipy.stats import binom

from skdp import AddRemove, PrivacyAccountant, TableSchema
from skdp.exceptions import BudgetExceededError, QualityWarning
from skdp.statistics import PrivateDescription, describe, private_chi2_test, private_quantile

N = 4000
SCHEMA = {
    "age": (18, 90),
    "pay": (0.0, 100.0),
    "job": ["clerk", "nurse", "cook", "none"],
    "sex": ["f", "m"],
    "since": ("2000-01-01", "2020-12-31"),
}


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n)
    job = np.where(age > 65, "none", rng.choice(["clerk", "nurse", "cook"], n, p=[0.6, 0.3, 0.1]))
    pay = np.clip(20 + age / 2 + 10 * (job == "nurse") + rng.normal(0, 8, n), 0, 100)
    pay[rng.random(n) < 0.1] = np.nan
    days = pd.to_datetime("2000-01-01") + pd.to_timedelta(rng.integers(0, 7000, n), unit="D")
    sex = np.where(rng.random(n) < 0.02, "x", rng.choice(["f", "m"], n))
    return pd.DataFrame({"age": age, "pay": pay, "job": job, "sex": sex, "since": days})


PEOPLE = people()


def describe_people(table=PEOPLE, **parameters):
    return describe(table, **{"schema": SCHEMA, "epsilon": 1.0, "random_state": 0, **parameters})


# --- near the truth, where the noise is small ---


@pytest.fixture(scope="module")
def clear():
    return describe_people(epsilon=1000.0, crosstabs=[("job", "sex")])


def test_a_description_at_a_large_budget_is_the_truth(clear):
    figures = clear.estimates("age")
    count = figures["count"]
    assert count.value == pytest.approx(N, abs=5 * count.standard_error)  # 6e-7 false alarms
    assert count.standard_error < 0.1
    assert figures["mean"].value == pytest.approx(PEOPLE["age"].mean(), abs=0.02)
    assert figures["std"].value == pytest.approx(PEOPLE["age"].std(ddof=0), abs=0.02)
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert figures[f"{100 * q:g}%"].value == np.quantile(PEOPLE["age"], q, method="inverted_cdf")
    figures = clear.estimates("pay")
    assert figures["missing"].value == pytest.approx(PEOPLE["pay"].isna().mean(), abs=1e-3)
    assert figures["mean"].value == pytest.approx(PEOPLE["pay"].mean(), abs=0.05)
    assert figures["std"].value == pytest.approx(PEOPLE["pay"].std(ddof=0), abs=0.05)
    assert figures["50%"].value == pytest.approx(PEOPLE["pay"].median(), abs=0.2)
    counts = PEOPLE["job"].value_counts()
    assert list(clear.top("job", 2).index) == list(counts.index[:2])
    np.testing.assert_allclose(clear.top("job", 4)["count"], counts, atol=1.0)
    exact = pd.crosstab(PEOPLE["job"], PEOPLE["sex"]).reindex(["clerk", "nurse", "cook", "none"])[["f", "m", "x"]]
    np.testing.assert_allclose(clear.crosstab("job", "sex").iloc[:4, :3], exact, atol=1.0)
    np.testing.assert_array_equal(clear.crosstab("sex", "job").T, clear.crosstab("job", "sex"))


def test_pairs_of_all_kinds_are_found(clear):
    filled = PEOPLE["pay"].fillna(PEOPLE["pay"].mean())
    assert clear.correlation().loc["age", "pay"] == pytest.approx(np.corrcoef(PEOPLE["age"], filled)[0, 1], abs=0.01)
    groups = PEOPLE.groupby("job")["age"]
    explained = (groups.size() * (groups.mean() - PEOPLE["age"].mean()) ** 2).sum() / N / PEOPLE["age"].var(ddof=0)
    pairs = clear.pairs()["value"]
    assert pairs["age", "job"] == pytest.approx(np.sqrt(explained), abs=0.01)
    table = pd.crosstab(PEOPLE["job"], PEOPLE["sex"]).to_numpy()
    expected = np.outer(table.sum(1), table.sum(0)) / N
    v = np.sqrt(((table - expected) ** 2 / expected).sum() / N / 2)
    assert pairs["job", "sex"] == pytest.approx(v, abs=0.02)
    whole = clear.association()
    assert (whole == whole.T).all().all()
    assert (np.diag(whole) == 1.0).all()
    assert whole.loc["age", "job"] == pairs["age", "job"]


# --- consistent, whatever the noise ---


@combined(
    epsilon=[0.01, 0.3, 3.0],
    adjacency=["zero_out", "add_remove", "replace_one"],
    by=[None, "sex"],
    groups=[False, True],
    n=[1, 30, 1000],
)
def test_answers_agree_with_one_another(epsilon, adjacency, by, groups, n):
    labels = np.arange(n) // 2 if groups else None
    found = describe_people(
        PEOPLE[:n], epsilon=epsilon, adjacency=with_n_public(adjacency, n), by=by, groups=labels, delta=1e-5
    )
    for part in (found, *found.subgroups.values()):
        for column in part.columns:
            histogram, figures = part.histogram(column), part.estimates(column)
            assert histogram["count"].sum() == pytest.approx(part.n)
            assert (histogram["count"] >= 0.0).all()
            assert figures["count"].value == pytest.approx(histogram["count"].iloc[:-1].sum())
            assert figures["missing"].value == pytest.approx(histogram["count"].iloc[-1] / part.n)
            assert ((histogram["low"] <= histogram["count"]) & (histogram["count"] <= histogram["high"])).all()
            for each in figures.values():
                assert pd.isna(each.value) or each.low <= each.value <= each.high
            quantiles = [figures[name].value for name in figures if name.endswith("%")]
            assert pd.isna(quantiles).all() or sorted(quantiles) == quantiles
        matrix = part.correlation()
        assert np.linalg.eigvalsh(matrix).min() >= -1e-9
        np.testing.assert_allclose(np.diag(matrix), 1.0)
        pairs = part.pairs()
        assert ((pairs["low"] <= pairs["value"]) & (pairs["value"] <= pairs["high"])).all()
        assert (
            part.crosstab("job", "sex" if by is None else "job").sum().sum() == pytest.approx(part.n)
            if by is None
            else True
        )
    frame = found.to_frame()
    assert len(frame) == len(found.columns) * max(1, len(found.subgroups))
    if adjacency != "add_remove":
        assert found.n == (n if labels is None else len(np.unique(labels)))


# --- intervals ---

REPEATS = 40


def exact_figures(frame):
    age, pay = frame["age"], frame["pay"]
    made = {("age", "mean"): age.mean(), ("age", "std"): age.std(ddof=0), ("age", "count"): len(age)}
    made |= {("pay", "mean"): pay.mean(), ("pay", "std"): pay.std(ddof=0), ("pay", "missing"): pay.isna().mean()}
    made |= {("age", f"{q:g}%"): np.quantile(age, q / 100, method="inverted_cdf") for q in (5, 25, 50, 75, 95)}
    return made


@pytest.mark.parametrize(("epsilon", "by"), [(0.2, "sex"), (2.0, None)])
def test_intervals_hold_the_figures_of_the_table(epsilon, by):
    """Each of the figures at 95 %: no fewer than by chance at 1e-6 for all."""
    held = {}
    for seed in range(REPEATS):
        found = describe_people(epsilon=epsilon, by=by, random_state=seed)
        parts = {"": (found, PEOPLE)} | {
            name: (found.subgroups[name], PEOPLE[PEOPLE["sex"] == name]) for name in found.subgroups if name in "fm"
        }
        for name, (part, rows) in parts.items():
            figures = {column: part.estimates(column) for column in ("age", "pay")}
            for (column, figure), exact in exact_figures(rows).items():
                each = figures[column][figure]
                held.setdefault((name, column, figure), []).append(each.low - 1e-9 <= exact <= each.high + 1e-9)
    least = binom.ppf(1e-6 / len(held), REPEATS, 0.95)
    for (name, column, figure), each in held.items():
        assert sum(each) >= least, (name, column, figure, sum(each))


def test_intervals_hold_counts_and_correlations():
    counts = PEOPLE["job"].value_counts()
    filled = PEOPLE["pay"].fillna(PEOPLE["pay"].mean())
    r = np.corrcoef(PEOPLE["age"], filled)[0, 1]
    held = {name: 0 for name in (*counts.index, "r")}
    for seed in range(REPEATS):
        found = describe_people(epsilon=1.0, random_state=seed)
        histogram, pair = found.histogram("job"), found.pairs().loc[("age", "pay")]
        for name, count in counts.items():
            held[name] += histogram.loc[name, "low"] <= count <= histogram.loc[name, "high"]
        held["r"] += pair["low"] <= r <= pair["high"]
    least = binom.ppf(1e-6 / len(held), REPEATS, 0.95)
    assert all(each >= least for each in held.values()), held


def test_intervals_for_sampling_hold_the_figures_of_the_population():
    """Of 40 samples of a population of which the mean and the median are known; those for the noise alone do not."""
    population = people(200_000, seed=1)
    exact = {"mean": population["age"].mean(), "50%": population["age"].median(), "std": population["age"].std(ddof=0)}
    share = population["pay"].isna().mean()
    held = {(name, sampling): 0 for name in (*exact, "missing") for sampling in (False, True)}
    for k in range(REPEATS):
        found = describe_people(
            population.iloc[1000 * k : 1000 * (k + 1)], epsilon=20.0, correlation=False, random_state=k
        )
        for sampling in (False, True):
            figures, gaps = (
                found.estimates("age", sampling=sampling),
                found.estimates("pay", sampling=sampling)["missing"],
            )
            for name, value in exact.items():
                held[name, sampling] += figures[name].low <= value <= figures[name].high
            held["missing", sampling] += gaps.low <= share <= gaps.high
    least = binom.ppf(1e-7, REPEATS, 0.95)
    assert all(held[name, True] >= least for name in (*exact, "missing")), held
    assert all(held[name, False] < least for name in ("mean", "50%", "missing")), held


def test_simultaneous_intervals_are_wider(clear):
    one, all_at_once = clear.to_frame(), clear.to_frame(simultaneous=True)
    assert (all_at_once["mean_high"] >= one["mean_high"])[["age", "pay"]].all()
    assert all_at_once.loc["age", "mean_low"] < one.loc["age", "mean_low"]
    wide, narrow = clear.histogram("job", simultaneous=True), clear.histogram("job", level=0.5)
    assert (wide["high"] - wide["low"] >= narrow["high"] - narrow["low"]).all()


# --- subgroups, units, schemas ---


def test_subgroups_are_the_listed_categories_and_one_for_the_rest():
    found = describe_people(epsilon=1000.0, by="sex")
    assert list(found.subgroups) == ["f", "m", "(other)"]
    assert "sex" not in found.columns
    for name, value in (("f", "f"), ("m", "m"), ("(other)", "x")):
        rows, part = PEOPLE[PEOPLE["sex"] == value], found.subgroups[name]
        assert part.n == pytest.approx(len(rows), abs=1.0)
        assert part.estimates("age")["mean"].value == pytest.approx(rows["age"].mean(), abs=1.5)
    assert found.to_frame().index.names == ["subgroup", "column"]
    assert sum(part.n for part in found.subgroups.values()) == pytest.approx(N)
    gone = PEOPLE.assign(sex="z")
    assert describe_people(gone, by="sex", epsilon=1000.0).subgroups["(other)"].n == pytest.approx(N, abs=1.0)


def test_a_subgroup_knows_the_price_of_all():
    found = describe_people(by="sex")
    assert {part.epsilon_ for part in found.subgroups.values()} == {found.epsilon_}
    assert repr(found.subgroups["f"]).startswith("<PrivateDescription of 4 columns: epsilon=")


def test_a_unit_has_the_weight_of_one_row():
    """A unit of 1,000 equal rows among 500 of one row."""
    frame = pd.DataFrame({"n": np.r_[np.full(1000, 10), np.zeros(500, int)]})
    found = describe(
        frame, schema={"n": (0, 10)}, groups=np.r_[np.full(1000, -1), np.arange(500)], epsilon=1000.0, random_state=0
    )
    assert found.n == 501
    assert found.privacy_unit_ == "group"
    assert found.estimates("n")["mean"].value == pytest.approx(10 / 501, abs=0.01)
    named = describe(frame.assign(home=frame.index), schema={"n": (0, 10)}, groups="home")
    assert named.columns == ["n"]


def test_a_group_counts_as_several_rows_with_rows_per_group():
    """Groups of 1 to 8 rows, of which the rows of large groups differ from those of small ones."""
    sizes = np.tile(np.arange(1, 9), 100)
    frame, groups = pd.DataFrame({"size": np.repeat(sizes, sizes)}), np.repeat(np.arange(800), sizes)
    given = {"schema": {"size": (1, 8)}, "groups": groups, "epsilon": 1000.0, "random_state": 0}
    for limit in (1, 4, 8, 20):
        found, counted = describe(frame, rows_per_group=limit, **given), np.minimum(sizes, limit)
        assert found.n == pytest.approx(counted.sum(), abs=0.2 * limit)
        assert found.estimates("size")["mean"].value == pytest.approx(np.average(sizes, weights=counted), abs=0.02)
    assert "at most the weight of 20 rows" in repr(found)
    with pytest.raises(
        ValueError, match="must be False with rows_per_group=20, because rows of a group are not independent"
    ):
        found.estimates("size", sampling=True)
    with pytest.raises(ValueError, match="must be None in a test, which assumes independent rows, got 2"):
        private_chi2_test(["a", "b"], ["a", "b"], groups=[0, 1], rows_per_group=2)


def test_a_row_counts_as_much_as_its_weight():
    frame = pd.DataFrame({"n": np.r_[np.full(1000, 10), np.zeros(500, int)]})
    given = {"schema": {"n": (0, 10)}, "epsilon": 1000.0, "random_state": 0}
    weights = np.r_[np.full(1000, 0.5), np.full(500, 2.0)]
    found = describe(frame, sample_weight=weights, weight_bound=2.0, **given)
    assert found.n == pytest.approx(250 + 500, abs=1.0)
    assert found.n != 750  # what all weigh together is private
    assert found.estimates("n")["mean"].value == pytest.approx(2500 / 750, abs=0.02)
    named = describe(frame.assign(w=weights), sample_weight="w", weight_bound=2.0, **given)
    pd.testing.assert_frame_equal(named.to_frame(), found.to_frame())
    with pytest.raises(ValueError, match="sample_weight='v' is not a column"):
        describe(frame, sample_weight="v", **given)
    with pytest.warns(UserWarning, match="`weight_bound` was not set"):
        cut = describe(frame, sample_weight=weights, **given)
    assert cut.n == pytest.approx(500 + 500, abs=1.0)
    homes = describe(frame, sample_weight=weights, weight_bound=2.0, groups=np.arange(1500) // 2, **given)
    assert homes.n == pytest.approx(500 * 0.5 + 250, abs=1.0)  # two rows of a half, or of 1, of which 1 is left
    with pytest.raises(ValueError, match="weight_bound"):
        describe(frame, sample_weight=weights, weight_bound="private", **given)


def test_incomplete_schema_is_estimated():
    accountant = PrivacyAccountant(epsilon=2.0, delta=1e-5)
    found = describe(PEOPLE, epsilon=1.0, accountant=accountant, random_state=0)
    assert [charge.label for charge in accountant.history] == ["TableDescriber"]
    assert 0.95 < found.epsilon_ <= 1.0
    assert found.schema_.is_complete
    assert set(found.schema_["job"].categories) <= set(SCHEMA["job"])
    assert found.estimates("age")["mean"].value == pytest.approx(PEOPLE["age"].mean(), abs=2.0)
    again = describe(PEOPLE, schema=found.schema_, epsilon=1.0)
    assert again.schema_ == found.schema_
    part = describe(PEOPLE, schema=TableSchema({"age": (18, 90)}, others="drop"))
    assert part.columns == ["age"]


def test_a_charge_is_made_once_and_before_the_release():
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    found = describe_people(accountant=accountant, epsilon=0.9)
    assert accountant.history[0].event == found.privacy_event_
    with pytest.raises(BudgetExceededError):
        describe_people(accountant=accountant, epsilon=0.9)
    assert len(accountant.history) == 1


def test_the_number_of_rows_is_not_in_a_description_where_it_is_private():
    found = describe_people(adjacency=AddRemove(5000))
    assert found.n != N
    assert found.n != 5000
    assert abs(found.n - N) < 500


# --- how it is shown ---


def test_a_description_is_shown_with_pictures(tmp_path):
    found = describe_people(
        PEOPLE.rename(columns={"job": "<job>"}),
        schema={"<job>" if k == "job" else k: v for k, v in SCHEMA.items()},
        by="sex",
    )
    page = found._repr_html_()
    assert page.count("<svg") == 4 * 4
    assert "&lt;job&gt;" in page
    assert "<job>" not in page
    assert found.to_html(tmp_path / "page.html") == page
    assert page in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert isinstance(found, PrivateDescription)


def test_what_was_not_measured_is_not_there():
    found = describe_people(correlation=False)
    assert found.correlation().shape == (0, 0)
    assert found.pairs().empty
    with pytest.raises(KeyError, match="Add it to `crosstabs`"):
        found.crosstab("job", "sex")
    with pytest.raises(KeyError, match="got 'wage'"):
        found.estimates("wage")


@pytest.mark.parametrize("table", [PEOPLE[["age", "pay"]].to_numpy().tolist(), pl.from_pandas(PEOPLE[["age", "pay"]])])
def test_tables_of_all_kinds_are_described(table):
    schema = {"x0": (18, 90), "x1": (0, 100)} if isinstance(table, list) else {"age": (18, 90), "pay": (0, 100)}
    found = describe(table, schema=schema, epsilon=1000.0, random_state=0).to_frame()
    np.testing.assert_allclose(found["mean"], PEOPLE[["age", "pay"]].mean(), atol=0.1)


# --- what is rejected ---

REJECTED = {
    "schema": ({"schema": {"age": (90, 18)}}, ["schema", "ascend"]),
    "a column that is not there": ({"schema": {**SCHEMA, "wage": (0, 1)}}, ["'wage'"]),
    "quantiles": ({"quantiles": (0.5, 1.0)}, ["quantiles"]),
    "quantiles as text": ({"quantiles": "median"}, ["quantiles"]),
    "correlation": ({"correlation": "yes"}, ["correlation"]),
    "by a number": ({"by": "age"}, ["`by`", "'age'"]),
    "by a list": ({"by": ["sex"]}, ["`by`"]),
    "by what is estimated": ({"by": "sex", "schema": {**SCHEMA, "sex": "category"}}, ["got 'sex'", "public"]),
    "by all there is": ({"by": "sex", "schema": TableSchema({"sex": ["f"]}, others="drop")}, ["by='sex'"]),
    "crosstabs": ({"crosstabs": ["job"]}, ["crosstabs"]),
    "crosstabs of one column": ({"crosstabs": [("job", "job")]}, ["crosstabs"]),
    "no public number": ({"adjacency": "add_remove"}, ["AddRemove"]),
    "rows_per_group without groups": ({"rows_per_group": 2}, ["rows_per_group=2 requires `groups`"]),
    "rows_per_group": ({"rows_per_group": 0, "groups": [0] * N}, ["`rows_per_group`", "got 0", "1,000,000"]),
    "gaps in groups": ({"groups": [*range(N - 1), None]}, ["`groups` contains missing values"]),
    "nested cells": ({"table": PEOPLE.assign(job=[["a"]] * N)}, ["nested"]),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejections_are_one_line_and_cost_nothing(name):
    parameters, words = REJECTED[name]
    accountant = PrivacyAccountant()
    with pytest.raises((ValueError, TypeError)) as rejection:
        describe_people(**{"accountant": accountant, **parameters})
    message = str(rejection.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    assert rejection.value.__context__ is None
    assert accountant.history == ()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "column",
    [
        [1.0] * 20,
        [np.nan] * 20,
        [1e308, -1e308] * 10,
        [np.inf, -np.inf] * 10,
        ["word"] * 20,
        [None, "1"] * 10,
        [True, None] * 10,
    ],
    ids=str,
)
def test_no_row_is_warned_of_or_rejected(column):
    """Constant columns, gaps alone, text where numbers should be: all of it is described without a word."""
    frame = pd.DataFrame({"n": pd.Series(column, dtype=object), "w": pd.Series(column, dtype=object)})
    found = describe(frame, schema={"n": (0, 1), "w": ["word", "1"]}, epsilon=1.0)
    assert found.to_frame().notna().to_numpy().any()
    assert found.pairs().notna().to_numpy().all()


def test_intervals_of_figures_have_a_level():
    found = describe_people()
    widths = [found.estimates("age", level=level)["mean"] for level in (0.5, 0.9, 0.99)]
    assert all(a.high - a.low < b.high - b.low for a, b in itertools.pairwise(widths))
    with pytest.raises(ValueError, match="level"):
        found.estimates("age", level=1.0)


def test_description_keeps_numbered_column_names():
    table = pd.DataFrame({0: PEOPLE["age"], 1: PEOPLE["job"], 2: PEOPLE["pay"]})
    schema = {"x0": (18, 90), "x1": SCHEMA["job"], "x2": (0, 100)}
    found = describe_people(table, schema=schema, crosstabs=[("x0", "x1")])
    assert found.columns == found.to_frame().index.tolist() == found.association().columns.tolist() == [0, 1, 2]
    assert found.correlation().columns.tolist() == [0, 2]
    assert (found.crosstab(1, 0).index.name, found.crosstab(1, 0).columns.name) == (1, 0)
    assert found.estimates(0)["mean"].value == pytest.approx(PEOPLE["age"].mean(), abs=2.0)


# --- privately estimated bounds, bins ---


def skewed(n=4000):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"pay": rng.lognormal(10.0, 1.0, n), "children": rng.poisson(0.4, n)})


def test_estimated_bounds_mark_estimates_as_clipped():
    frame = skewed()
    with pytest.warns(QualityWarning, match="clipped to privately estimated bounds: 'pay' to .* rows beyond"):
        found = describe(frame, epsilon=4.0, random_state=0)
    for name, values in frame.items():
        figures, (low, high) = found.estimates(name, level=1.0 - 1e-7), found.schema_[name].bounds
        clipped = values.clip(low, high)
        for key, exact in {"mean": clipped.mean(), "std": clipped.std(ddof=0), "50%": clipped.median()}.items():
            assert (figures[key].clipped_low, figures[key].clipped_high) == (low, high)
            assert figures[key].low <= exact <= figures[key].high
        row = found.to_frame().loc[name]
        assert (row["clipped_low"], row["clipped_high"]) == (low, high)
        text = f"of values clipped to [{low:.6g}, {high:.6g}]"
        assert text == row["note"]
        for shown in (str(figures["mean"]), repr(found), found.to_html()):
            assert text in shown
        assert np.isnan(figures["count"].clipped_low)
    low, high = found.schema_["children"].bounds
    assert low == int(low)
    assert high == int(high)


def test_mean_noise_bins_beside_gaps_interval_covers():
    """Bins beyond the numbers, of a column that is mostly missing. 12 of 30 misses are a false alarm of 1e-7."""
    rng, missed, n = np.random.default_rng(0), 0, 6000
    for seed in range(30):
        x = np.where(rng.random(n) < 0.9, np.nan, rng.integers(0, 2, n).astype(float))
        frame = pd.DataFrame({"x": x, "z": rng.normal(size=n)})
        schema = {"x": {"edges": [0, 1, 3], "missing_values": [None]}, "z": (-4, 4)}
        mean = describe(frame, schema=schema, random_state=seed).estimates("x")["mean"]
        missed += not mean.low <= np.nanmean(x) <= mean.high
    assert missed < 12


def test_quartiles_of_zeros_within_bounds_are_zero():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(3000) < 0.85, 0.0, rng.normal(0.0, 400.0, 3000))
    found = private_quantile(gain, [0.25, 0.5, 0.75], bounds=(-1000, 6000), epsilon=10.0, random_state=0)
    assert [(each.low, each.value, each.high) for each in found] == [(0.0, 0.0, 0.0)] * 3
