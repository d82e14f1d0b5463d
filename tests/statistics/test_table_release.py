"""What one row, or one unit, changes of the releases of a description; and their cost."""

import math
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from combinations import combined
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, recording, replay, run
from scipy.stats import chi2

from skdp.accounting import GaussianDpEvent, get_epsilon
from skdp.exceptions import QualityWarning
from skdp.preprocessing import TableSchema
from skdp.statistics.cells import ColumnCells
from skdp.statistics.describer import TableDescriber
from skdp.statistics.description import PrivateDescription
from skdp.statistics.table_release import Shares, TableRelease, pairs_sensitivity

N = 60
SCHEMA = {
    "age": (18, 90),
    "income": {"bounds": (-50.0, 1e4), "scale": "log"},
    "born": ("1930-01-01", "2010-01-01"),
    "job": ["clerk", "nurse", "cook"],
    "sex": ["f", "m"],
    "member": "flag",
}
JOBS, EXTREME = (
    ["clerk", "nurse", "cook", "judge", None],
    {
        "low": (18, -1e9, "1900-01-01", "clerk", "f", True),
        "high": (90, np.inf, "2100-01-01", "cook", "m", False),
        "gap": (50, np.nan, None, None, None, None),
        "unlisted": (30, 0.0, "1970-01-01", "judge", "x", True),
    },
)


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(10, 99, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(5, 2, n)),
            "born": pd.to_datetime("1930-01-01") + pd.to_timedelta(rng.integers(0, 30_000, n), unit="D"),
            "job": rng.choice(np.array(JOBS, dtype=object), n),
            "sex": rng.choice(["f", "m", "x"], n),
            "member": rng.random(n) < 0.5,
        }
    ).astype({"born": "datetime64[us]", "member": object})


def with_row(frame, row, cells):
    changed = frame.copy()
    changed.loc[row] = [*cells[:2], None if cells[2] is None else pd.Timestamp(cells[2]), *cells[3:]]
    return changed.astype(frame.dtypes)


def describe_seeded(**parameters):
    def fit(given):
        frame, groups = given if isinstance(given, tuple) else (given, None)
        settings = {"schema": SCHEMA, "epsilon": None, "noise_multiplier": 0.3, "delta": 1e-5, "random_state": 0}
        return TableDescriber(**{**settings, **parameters}).fit(frame, groups=groups)

    return fit


def muting(fit, row):
    """The same fit in which a row has weight 0, as a null record has."""

    def muted(given):
        measure = TableRelease.measure

        def with_weights(release, rows, asked, stream):
            weights = np.ones(len(rows.groups))
            weights[row] = 0.0
            return measure(release, rows._replace(weights=weights), asked, stream)

        with mock.patch.object(TableRelease, "measure", with_weights):
            return fit(given)

    return muted


ASKED = {
    "all": {},
    "subgroups": {"by": "sex", "crosstabs": [("job", "age")]},
    "flags": {"by": "member", "correlation": False, "crosstabs": [["job", "sex"]]},
}


@combined(asked=list(ASKED), kind=list(EXTREME), adjacency=["zero_out", "add_remove", "replace_one"])
def test_one_row_moves_each_release_by_its_sensitivity_and_nothing_else(asked, kind, adjacency):
    parameters = {**ASKED[asked], "adjacency": with_n_public(adjacency, N)}
    fit = describe_seeded(**parameters)
    one = with_row(people(), N - 1, EXTREME[kind])
    if adjacency == "zero_out":
        first = run(fit, one)
        second = run(muting(fit, N - 1), one, first.releases)
    else:
        others = list(EXTREME)
        replaced = with_row(one, N - 1, EXTREME[others[others.index(kind) - 1]])
        first, second = replay(fit, one, one.iloc[:-1] if adjacency == "add_remove" else replaced)
    most = 2.0 if adjacency == "replace_one" else 1.0
    found = moves(first, second)
    assert len(found) == 3
    assert min(found) > 0.0
    assert max(found) <= most * (1.0 + 1e-9)
    assert_all_else_is_equal(first, second)


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove"])
def test_one_row_reaches_the_sensitivity_of_counts_and_pairs(adjacency):
    """So that no bound is larger than it has to be: of the row at all bounds."""
    fit, one = describe_seeded(adjacency=with_n_public(adjacency, N)), with_row(people(), N - 1, EXTREME["high"])
    first = run(fit, one)
    second = run(muting(fit, N - 1), one, first.releases)
    np.testing.assert_allclose(moves(first, second), 1.0, rtol=1e-9)


def test_a_row_that_is_replaced_reaches_the_sensitivity_of_counts():
    """Two rows that differ in all columns, and lie at opposite bounds."""
    one = with_row(people(), N - 1, EXTREME["low"])
    other = with_row(people(), N - 1, EXTREME["high"])
    first, second = replay(describe_seeded(adjacency="replace_one"), one, other)
    counts, moments, pairs = moves(first, second)
    assert counts == pytest.approx(2.0)
    assert 1.0 < min(moments, pairs) <= max(moments, pairs) <= 2.0


@pytest.mark.parametrize(("n_tables", "n_sums"), [(1, 0), (0, 1), (3, 2), (91, 45)])
def test_the_sensitivity_of_pairs_is_that_of_the_worst_rows(n_tables, n_sums):
    """A row is a unit vector in each table, and 1 or -1 in one cell of each sum."""
    one = np.concatenate([np.tile([1.0, 0.0], n_tables), np.ones(n_sums)])
    other = np.concatenate([np.tile([0.0, 1.0], n_tables), -np.ones(n_sums)])
    assert np.linalg.norm(one) == pytest.approx(pairs_sensitivity(n_tables, n_sums, "zero_out"))
    assert np.linalg.norm(one - other) == pytest.approx(2.0 * pairs_sensitivity(n_tables, n_sums, "replace_one"))


@combined(
    asked=list(ASKED),
    size=[2, 7, 40],
    kind=["one", "any"],
    adjacency=["add_remove", "replace_one"],
    rows_per_group=[None, 5],
)
def test_one_unit_moves_each_release_by_its_sensitivity_and_nothing_else(asked, size, kind, adjacency, rows_per_group):
    """A unit of many rows, of one kind or of any, leaves; or becomes one of rows at the other bounds."""
    frame = people(N + size)
    for row in range(N, N + size) if kind == "one" else ():
        frame = with_row(frame, row, EXTREME["low"])
    labels = np.concatenate([np.arange(N) // 2, np.full(size, 1000)])
    fit = describe_seeded(**ASKED[asked], adjacency=with_n_public(adjacency, 31), rows_per_group=rows_per_group)
    if adjacency == "add_remove":
        other = frame.iloc[:N], labels[:N]
    else:
        other = with_row(frame.iloc[: N + 1], N, EXTREME["high"]), labels[: N + 1]
    first, second = replay(fit, (frame, labels), other)
    most = 2.0 if adjacency == "replace_one" else 1.0
    assert 0.0 < max(moves(first, second)) <= most * (1.0 + 1e-9)
    assert_all_else_is_equal(first, second)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("with_groups", [False, True])
def test_one_weight_moves_each_release_by_its_sensitivity_and_nothing_else(adjacency, with_groups):
    """A row of the largest weight leaves, or becomes one at the other bounds; its weight is cut."""
    frame, labels = people(), np.arange(N) // 3 if with_groups else None
    weights = np.linspace(0.1, 2.0, N)

    def fit(given):
        terms = {"schema": SCHEMA, "adjacency": adjacency, "weight_bound": 1.5, "delta": 1e-5, "random_state": 0}
        return TableDescriber(**terms).fit(given[0], groups=labels, sample_weight=given[1])

    gone, other = weights.copy(), with_row(frame, N - 1, EXTREME["high"])
    gone[-3 if with_groups else -1 :] = 0.0  # all of the unit
    near = (frame, gone) if adjacency == "zero_out" else (other, weights)
    first, second = replay(fit, (with_row(frame, N - 1, EXTREME["low"]), weights), near)
    assert 0.0 < max(moves(first, second)) <= (1.0 if adjacency == "zero_out" else 2.0) * (1.0 + 1e-9)
    assert_all_else_is_equal(first, second)


def test_units_of_one_row_are_rows():
    frame = people()
    one, other = run(describe_seeded(), frame), run(describe_seeded(), (frame, np.arange(N)))
    for a, b in zip(one.releases, other.releases, strict=True):
        np.testing.assert_allclose(a.exact, b.exact, rtol=1e-12)
        assert a.sensitivity == b.sensitivity


@combined(adjacency=["zero_out", "add_remove", "replace_one"], kind=["low", "high", "gap"])
def test_one_row_changes_estimates_by_their_sensitivity(adjacency, kind):
    """No category is held by the row alone, which the threshold is for."""
    frame = with_row(people(400), 399, EXTREME[kind])
    fit = describe_seeded(schema=None, adjacency=with_n_public(adjacency, 400), noise_multiplier=0.3)
    if adjacency == "zero_out":  # a null row of a query has gaps alone
        null = frame.copy()
        null.loc[399] = None
        null = null.astype({"age": float})
        first = run(fit, frame.astype({"age": float}))
        second = run(muting(fit, 399), null, first.releases)
    else:
        other = with_row(frame, 399, EXTREME["low" if kind != "low" else "high"])
        first, second = replay(fit, frame, frame.iloc[:-1] if adjacency == "add_remove" else other)
    assert len(first.releases) == 6
    assert max(moves(first, second)) <= (2.0 if adjacency == "replace_one" else 1.0) * (1.0 + 1e-9)
    assert_all_else_is_equal(first, second)


# --- the cost ---


@pytest.mark.parametrize("shares", [None, Shares.of(1, 2, 3), Shares.of(1, 0, 0), Shares.of(1, 9, 0)])
@pytest.mark.parametrize("correlation", [True, False])
def test_the_noise_of_all_releases_is_that_of_one(shares, correlation, released):
    """Their mu^2 add up to that of the event."""
    fitted = describe_seeded(shares=shares, noise_multiplier=2.5, correlation=correlation)(people())
    assert fitted.privacy_event_ == GaussianDpEvent(2.5)
    total = sum(mechanism.noise_multiplier**-2 for _, mechanism in released)
    assert total <= 2.5**-2 * (1 + 1e-12)
    if shares is None:
        assert total == pytest.approx(2.5**-2)


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_the_noise_that_is_added_is_the_noise_that_is_paid(schema, released):
    fitted = describe_seeded(schema=schema, epsilon=1.0, noise_multiplier=None)(people(500))
    mu = math.sqrt(sum(mechanism.noise_multiplier**-2 for _, mechanism in released))
    assert fitted.epsilon_ <= 1.0
    threshold = 0.0 if schema else 0.01 * fitted.delta_
    alone = get_epsilon(GaussianDpEvent(1.0 / mu), fitted.delta_ - threshold)
    assert alone == pytest.approx(1.0, rel=1e-2)
    assert mu == pytest.approx(1.0 / fitted.noise_multiplier_ * (1.0 if schema else math.sqrt(1.0 / 0.9)))


def test_the_noise_of_counts_has_the_deviation_that_is_stated():
    """Sum of squares of all noise over its variance is chi-squared; false alarm 1e-6."""
    with recording([]) as seen:
        fitted = describe_seeded(noise_multiplier=5.0)(people())
    stated = fitted.tallies_[0].deviation, fitted.tallies_[0].sums["age", "job"].deviation
    for each, deviation in zip((seen[0], seen[2]), stated, strict=True):
        noise = (each.noisy - each.exact) / deviation
        assert chi2.ppf(5e-7, len(noise)) < float((noise**2).sum()) < chi2.isf(5e-7, len(noise))


def test_a_gap_is_imputed_by_a_noisy_mean_and_not_by_the_exact_one():
    """What gaps count as follows from the counts that were released: it is the same for another column of numbers."""
    frame = people()
    first = run(describe_seeded(), frame)
    second = run(describe_seeded(), frame.assign(income=0.0), first.releases)
    one, other = (dict(each.state) for each in (first, second))
    places = [place for place in one if "of_gaps" in place or "moments" in place]
    assert places
    assert all(one[place] == other[place] for place in places)


# --- columns far within their bounds ---

WIDE = {"amount": (0.0, 1e7), "height": (0.0, 100.0), "job": ["clerk", "nurse", "cook"]}


def accounts(n=N, seed=0):
    rng = np.random.default_rng(seed)
    amount, height = np.exp(rng.normal(4.0, 1.5, n)), np.clip(rng.normal(50.0, 15.0, n), 0.0, 100.0)
    return pd.DataFrame({"amount": amount, "height": height, "job": rng.choice(["clerk", "nurse", "cook"], n)})


@combined(adjacency=["zero_out", "add_remove", "replace_one"], amount=[0.0, 1e9, np.nan])
def test_one_row_moves_both_counts_of_skewed_columns_by_the_sensitivity(adjacency, amount):
    fit = describe_seeded(schema=WIDE, adjacency=with_n_public(adjacency, N))
    one = accounts()
    one.loc[N - 1] = [amount, 0.0, "clerk"]
    if adjacency == "zero_out":
        first = run(fit, one)
        second = run(muting(fit, N - 1), one, first.releases)
    else:
        replaced = one.copy()
        replaced.loc[N - 1] = [60.0, 99.0, "cook"]
        first, second = replay(fit, one, one.iloc[:-1] if adjacency == "add_remove" else replaced)
    most = 2.0 if adjacency == "replace_one" else 1.0
    found = moves(first, second)
    assert len(found) == 4  # two releases of counts, moments, and pairs
    np.testing.assert_allclose(found[:2], most, rtol=1e-9)
    assert max(found) <= most * (1.0 + 1e-9)
    assert_all_else_is_equal(first, second)
    wide = fit(one).questions_.cells[0]
    assert wide.left[20] < 1e4  # most cells are where most numbers are


def test_two_releases_of_the_same_cells_have_the_noise_of_one():
    """Noise of averaged counts over the stated variance is chi-squared, false alarm 1e-6; it is that of one release."""
    frame, schema = accounts(2_000).drop(columns="amount"), {key: WIDE[key] for key in ("height", "job")}
    settings = {"noise_multiplier": 5.0, "correlation": False}
    with recording([]) as seen:
        fitted = describe_seeded(schema=schema, **settings)(frame)
    alone = describe_seeded(schema={**schema, "height": {"bounds": (0.0, 100.0), "scale": "log"}}, **settings)(frame)
    (tally,) = fitted.tallies_
    assert tally.deviation == pytest.approx(alone.tallies_[0].deviation, rel=1e-9)
    noise = 0.1 * (seen[0].noisy - seen[0].exact) + 0.9 * (seen[1].noisy - seen[1].exact)
    np.testing.assert_array_equal(seen[0].exact, seen[1].exact)
    squares = float(((noise / tally.deviation) ** 2).sum())
    assert chi2.ppf(5e-7, len(noise)) < squares < chi2.isf(5e-7, len(noise))
    counts = np.split(seen[0].exact + noise, [len(tally.counts[0])])
    for each, found in zip(counts, tally.counts, strict=True):
        np.testing.assert_allclose(each + (2_000 - each.sum()) / len(each), found)


def test_lost_columns_are_reported_by_released_counts():
    frame = accounts(5_000).assign(member="ja", day="31.12.2024", paid=np.nan)
    schema = {**WIDE, "amount": (0, 500), "member": "flag", "day": ("2020-01-01", "2025-01-01"), "paid": (0, 1)}
    fit = describe_seeded(schema=schema, epsilon=1.0, noise_multiplier=None)
    with pytest.warns(QualityWarning, match="More than 90% of the cells of 'job', 'member', 'day', 'paid' are missing"):
        fit(frame.assign(job=frame["job"].str.upper()))
    known = frame.assign(member="yes", day="2024-12-31", paid=np.where(frame.index % 5 == 0, 0.5, np.nan))
    with warnings.catch_warnings(action="error", category=QualityWarning):
        fit(known)


def test_wide_bounds_leave_quantiles_and_are_told():
    """Simulated amounts far within their bounds: the rank of each quantile, and the columns that the warning names."""
    frame = accounts(5_000)
    fit = describe_seeded(schema=WIDE, epsilon=1.0, noise_multiplier=None)
    with pytest.warns(
        QualityWarning, match="Nearly all values of 'amount' lie within 1/32 of the range from one of the bounds"
    ):
        found = PrivateDescription.of(fit(frame))
    figures = found.estimates("amount")
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        figure = figures[f"{q:.0%}"]
        assert (frame["amount"] < figure.value).mean() == pytest.approx(q, abs=0.08)  # 0.5 off with equal widths
        assert figure.low <= frame["amount"].quantile(q) <= figure.high
    with warnings.catch_warnings(action="error", category=QualityWarning):
        describe_seeded(schema=WIDE, epsilon=1.0, noise_multiplier=None)(frame.assign(amount=1e5 * frame["height"]))


@pytest.mark.parametrize("is_whole", [True, False])
def test_narrow_cells_follow_the_counts_within_the_bounds(is_whole):
    cells = ColumnCells.of("year", 0, TableSchema({"year": (0, 2030)})["year"], 64, is_whole)
    counts = np.zeros(cells.size)
    counts[cells.codes(np.array([1990.0]))] = counts[cells.codes(np.array([2025.0]))] = 1_000.0
    finer = cells.refined(counts, 1.0)
    assert (finer.left[0], finer.right[-1], finer.scale) == (0.0, 2030.0, cells.scale)
    assert np.sum((finer.right >= 1_970.0) & (finer.left < 2_030.0)) > 15  # 2 of equal width
    assert cells.refined(counts, 300.0) is cells  # noise may have made it
    counts[cells.codes(np.array([20.0]))] = 500.0
    assert cells.refined(counts, 1.0) is cells
