"""Neighbor replay with units of several rows: no release moves by more than it may where a unit leaves."""

import numpy as np
import pandas as pd
import pytest
from combinations import combined, over_rows
from relations import with_n_public
from replay import assert_all_else_is_equal, leaves, moves, replay, run
from scipy.stats import binom
from unit_rows import N_OTHERS, without_the_unit
from unit_rows import rows_and_unit as table

import skdp
from skdp import AddRemove
from skdp._checks.groups import Units
from skdp.ensemble import DPRandomTreesRegressor
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing import dp_bounds
from skdp.preprocessing.bounds import ColumnBounds
from skdp.preprocessing.histogram_query import keep_one_row
from skdp.synthesis import DPClassMixtureGenerator, DPMarginalSynthesizer

N_COLUMNS = 4
UNITS = [("copies", 1), ("copies", 1000), ("opposite", 10), ("any", 2)]
"""Kinds of rows of a group, and their number: a single row, a sum at the limit, rows that cancel, and any rows."""
SHORT = {"max_iter": 8, "random_state": 0, "weight_bound": 1.0}
NETWORK = {"hidden_layer_sizes": (4,), "sampling_rate": 1.0}
TREES = {"n_estimators": 5, "max_depth": 3, "bounds": (-1.0, 1.0)}
GRADIENT = {
    "linear": lambda **kw: skdp.DPLogisticRegression(classes=[0, 1], **SHORT, **kw),
    "linear by lot": lambda **kw: skdp.DPLogisticRegression(classes=[0, 1], sampling_rate=0.3, **SHORT, **kw),
    "network": lambda **kw: skdp.DPMLPClassifier(classes=[0, 1], **NETWORK, **SHORT, **kw),
    "trees regressor": lambda **kw: DPRandomTreesRegressor(y_bounds=(0, 1), **TREES, **SHORT, **kw),
}
"""Estimators by their names, made with further parameters."""


def fitted(make):
    def fit(given):
        X, y, weights, labels = given
        return make().fit(X, y, sample_weight=weights, groups=labels)

    return fit


@pytest.mark.parametrize("kind", list(GRADIENT))
def test_a_unit_moves_no_release_by_more_than_its_sensitivity_and_nothing_else(kind):
    for rows, size in UNITS:
        given = table(size, rows, np.random.default_rng(size))
        one, other = replay(fitted(GRADIENT[kind]), given, without_the_unit(*given))
        assert len(one.releases) > 2, (rows, size)
        most = max(moves(one, other))
        assert most <= 1.0 + 1e-6, (rows, size)
        if rows == "copies" and size > 1 and "lot" not in kind:
            assert most > 0.9, "the bound is reached: nothing was bounded twice"
        assert_all_else_is_equal(one, other)


@combined(kind=["trees regressor"], size=[1, 10], adjacency=["zero_out", "replace_one"])
def test_rows_of_a_unit_with_numbers_of_their_own_in_one_cell_count_as_one_row(kind, size, adjacency):
    """Of the release that says where people are, which is told by its sensitivity, the root of the columns."""
    X, y, weights, labels = given = table(size, "copies", np.random.default_rng(size))
    X[N_OTHERS:] = 0.9 + np.random.default_rng(0).uniform(0, 1e-3, (size, N_COLUMNS))
    other = without_the_unit(*given)
    if adjacency == "replace_one":
        other = (np.where(np.arange(len(X))[:, None] < N_OTHERS, X, -X), y, weights, labels)
    one, other = replay(fitted(lambda: GRADIENT[kind](adjacency=adjacency)), given, other)
    expected = np.sqrt(N_COLUMNS / (2 if adjacency == "replace_one" else 1))
    fits = [each.sensitivity == pytest.approx(expected) and each.exact.size > N_COLUMNS for each in one.releases]
    (at,) = np.flatnonzero(fits)  # the sums that move the mean prediction are fewer
    most = 2.0 if adjacency == "replace_one" else 1.0
    assert 0.999 * most < moves(one, other)[at] <= most + 1e-9
    assert max(moves(one, other)) <= most + 1e-6
    assert_all_else_is_equal(one, other)


@pytest.mark.parametrize("kind", list(GRADIENT))
def test_the_price_is_that_of_rows(kind):
    """As many units as rows elsewhere: the same noise, event and plan."""
    X, y, weights, _ = table(50, "any", np.random.default_rng(0))
    by_row = GRADIENT[kind]().fit(X, y, sample_weight=weights)
    twice = np.repeat(np.arange(len(X)), 2)
    by_unit = GRADIENT[kind]().fit(X[twice], y[twice], sample_weight=weights[twice], groups=twice)
    assert by_unit.privacy_event_ == by_row.privacy_event_
    assert by_unit.epsilon_ == by_row.epsilon_
    assert by_unit.max_grad_norm_ == by_row.max_grad_norm_
    assert (by_row.privacy_unit_, by_unit.privacy_unit_) == ("row", "group")


@pytest.mark.parametrize("kind", list(GRADIENT))
def test_units_of_one_row_give_the_model_of_rows(kind):
    X, y, weights, _ = table(50, "any", np.random.default_rng(0))
    models = [GRADIENT[kind]().fit(X, y, sample_weight=weights, groups=groups) for groups in (None, np.arange(len(X)))]
    scores = [model.predict(X) if "regressor" in kind else model.predict_proba(X) for model in models]
    np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-9)


def test_networks_are_trained_in_double_precision_where_rows_shift():
    """A unit that leaves may have had any number of rows."""
    X, y, _, labels = table(10, "any", np.random.default_rng(0))
    model = skdp.DPMLPClassifier((4,), classes=[0, 1], max_iter=1)
    assert model.fit(X.astype(np.float32), y).coefs_[0].dtype == np.float32
    assert model.fit(X.astype(np.float32), y, groups=labels).coefs_[0].dtype == np.float64


# --- ledgers ---


@pytest.mark.parametrize("in_file", [False, True])
def test_a_ledger_rejects_units_by_another_column(in_file, tmp_path):
    X, y, _, labels = table(10, "any", np.random.default_rng(0))
    path = tmp_path / "people.budget" if in_file else None
    ledger = skdp.PrivacyAccountant(9.0, 1e-5, unit="household", path=path)
    home, person = pd.Series(labels, name="home"), pd.Series(labels, name="person")
    skdp.DPLogisticRegression(classes=[0, 1], accountant=ledger).fit(X, y, groups=home)
    if in_file:
        ledger = skdp.PrivacyAccountant.open(path)
    with pytest.raises(ValueError, match=r"groups='person' cannot be mixed with 'home'"):
        skdp.DPLogisticRegression(classes=[0, 1], accountant=ledger).fit(X, y, groups=person)
    skdp.DPLogisticRegression(classes=[0, 1], accountant=ledger).fit(X, y, groups=home)
    assert len(ledger.history) == 2


# --- instalments ---


def test_runs_for_rows_and_runs_for_units_have_no_joint_price():
    X, y, _, labels = table(10, "any", np.random.default_rng(0))
    model = skdp.DPLogisticRegression(classes=[0, 1], warm_start=True).fit(X, y, groups=labels)
    with pytest.raises(ValueError, match=r"privacy unit of earlier runs is a group"):
        model.fit(X, y)
    before = model.epsilon_
    model.fit(X, y, groups=labels)
    assert before < model.epsilon_
    assert model.privacy_unit_ == "group"
    assert skdp.DPLogisticRegression(classes=[0, 1]).partial_fit(X, y, groups=labels).privacy_unit_ == "group"


def test_runs_for_groups_by_two_columns_have_no_joint_price():
    X, y, _, labels = table(10, "any", np.random.default_rng(0))
    home, person = (pd.Series(labels, name=name) for name in ("home", "person"))
    model = skdp.DPLogisticRegression(classes=[0, 1]).partial_fit(X, y, groups=home)
    before = model.epsilon_
    with pytest.raises(ValueError, match=r"groups='person' differs from 'home' in earlier runs"):
        model.partial_fit(X, y, groups=person)
    assert model.epsilon_ == before
    assert model.partial_fit(X, y, groups=home).epsilon_ > before


def test_what_is_not_offered_for_units_is_rejected_by_name():
    X, y, weights, labels = table(10, "any", np.random.default_rng(0))
    model = skdp.DPLogisticRegression(classes=[0, 1], merge_equal_rows=True)
    with pytest.raises(ValueError, match="merge_equal_rows=True is not supported with groups"):
        model.fit(X, y, sample_weight=weights, groups=labels)


# --- tables ---

TABLE = {"random_state": 0, "delta": 1e-4, "epsilon": 3.0}
BOUNDED = {"bounds": (-1.0, 1.0), **TABLE}
TRANSFORMERS = {
    "vectorizer": lambda **kw: skdp.DPTableVectorizer(**TABLE, **kw),
    "scaler, estimated bounds": lambda **kw: skdp.DPStandardScaler(**TABLE, **kw),
    "bins, estimated bounds": lambda **kw: skdp.DPQuantileBinner(**TABLE, **kw),
    "imputer, means": lambda **kw: skdp.DPSimpleImputer(**BOUNDED, **kw),
    "imputer, medians": lambda **kw: skdp.DPSimpleImputer("median", **TABLE, **kw),
    "bounds": lambda **kw: ColumnBounds(**TABLE, **kw),
}
"""Those that count numbers."""

WORDS = {
    "vectorizer": lambda **kw: skdp.DPTableVectorizer(**TABLE, **kw),
    "encoder": lambda **kw: skdp.DPOneHotEncoder(**TABLE, **kw),
    "imputer": lambda **kw: skdp.DPSimpleImputer("most_frequent", **TABLE, **kw),
}
"""Those that count words."""


def rows_in_units(make, **parameters):
    def fit(given):
        X, labels = given
        return make(**parameters).fit(X, groups=labels)

    return fit


@combined(kind=TRANSFORMERS, adjacency=["zero_out", "replace_one"])
def test_a_unit_moves_no_count_and_no_sum_by_more_than_its_sensitivity(kind, adjacency):
    """In the place of a unit there is one of gaps, or under `replace_one` the opposite one, which doubles the move."""
    most = 2.0 if adjacency == "replace_one" else 1.0
    for rows, size in [("copies", 1), ("copies", 1000), ("any", 2), ("gaps", 10), ("apart", 10)]:
        X, _, _, labels = table(size, rows, np.random.default_rng(size))
        if rows == "gaps":
            X[N_OTHERS:][np.random.default_rng(0).random((size, N_COLUMNS)) < 0.5] = np.nan
        if rows in ("copies", "apart"):
            X[N_OTHERS:] = 1.0
        if rows == "apart":  # the unit has numbers in one column, and the other one in another
            X[N_OTHERS:, 1:] = np.nan
        other, less = X.copy(), labels
        other[N_OTHERS:] = -X[N_OTHERS:, ::-1] if adjacency == "replace_one" else np.nan
        if adjacency == "zero_out":
            other, less = other[: N_OTHERS + 1], labels[: N_OTHERS + 1]
        found = replay(rows_in_units(TRANSFORMERS[kind], adjacency=adjacency), (X, labels), (other, less))
        moved = max(moves(*found))
        assert moved <= most + 1e-9, (rows, size)
        if rows == "copies" and (most == 1.0 or size == 1 or ("means" not in kind and "scaler" not in kind)):
            assert moved > 0.8 * most, "the bound is reached: nothing was bounded twice"
        assert_all_else_is_equal(*found)


@pytest.mark.parametrize("kind", list(TRANSFORMERS))
def test_a_unit_that_leaves_moves_no_count_and_no_sum_by_more_than_its_sensitivity(kind):
    """Under `add_remove` there is no null unit in its place: all that is public is `n_public`."""
    for rows, size in [("copies", 1), ("copies", 1000), ("any", 10)]:
        X, _, _, labels = table(size, "any", np.random.default_rng(size))
        if rows == "copies":
            X[N_OTHERS:] = 1.0
        fit = rows_in_units(TRANSFORMERS[kind], adjacency=AddRemove(100))
        found = replay(fit, (X, labels), (X[:N_OTHERS], labels[:N_OTHERS]))
        assert max(moves(*found)) <= 1.0 + 1e-9, (rows, size)
        if rows == "copies":
            assert max(moves(*found)) > 0.8, (rows, size)
        assert_all_else_is_equal(*found)


@pytest.mark.parametrize("kind", list(WORDS))
@over_rows(("size", "n_words"), [(1, 1), (1000, 2), (10, 1000)])
def test_a_unit_adds_one_to_one_word_of_each_column(kind, size, n_words):
    """Whether all of its rows have one word that no other unit has, or each has a word of its own."""
    others = np.random.default_rng(0).choice(["a", "b", "c"], (N_OTHERS, 2)).astype(object)
    words = np.array([[f"new {i % n_words}", f"new {i % n_words}"] for i in range(size)], object)
    labels = np.concatenate([np.random.default_rng(1).integers(0, 90, N_OTHERS), np.full(size, 99)])
    X, without = np.vstack([others, words]), np.vstack([others, [[None, None]]])
    frame, less = (pd.DataFrame(each, columns=["x", "y"]) for each in (X, without))
    fits = rows_in_units(WORDS[kind])
    one = run(fits, (frame, labels))
    other = run(fits, (less, labels[: N_OTHERS + 1]))
    added = [np.sort(each.exact) for each in (one.releases[0], other.releases[0])]
    assert len(added[0]) - len(added[1]) == 2  # a count of 1 for the word of each column, and no other count
    np.testing.assert_array_equal(np.sort([*added[1], 1.0, 1.0]), added[0])


def test_the_row_that_is_kept_is_drawn_evenly_and_has_no_gap():
    """10,000 units of a gap and three words: each word within 1e-6 of a binomial third."""
    n = 10_000
    units = Units(np.repeat(np.arange(n), 4), n)
    kept = keep_one_row(np.tile([-1, 0, 1, 2], n), units, SecretStream.from_random_state(0, "test"))
    assert (np.bincount(units.codes[kept >= 0], minlength=n) == 1).all()
    counts = np.bincount(kept[kept >= 0], minlength=3)
    assert (counts >= binom.ppf(1e-6 / 6, n, 1 / 3)).all()
    assert (counts <= binom.isf(1e-6 / 6, n, 1 / 3)).all()


@pytest.mark.parametrize("kind", list(TRANSFORMERS))
def test_units_of_one_row_estimate_as_rows_do(kind):
    X, _, _, _ = table(50, "any", np.random.default_rng(0))
    fits = [run(rows_in_units(TRANSFORMERS[kind]), (X, groups)) for groups in (None, np.arange(len(X)))]
    for one, other in zip(*(each.releases for each in fits), strict=True):
        np.testing.assert_array_equal(one.exact, other.exact)
        np.testing.assert_array_equal(one.noisy, other.noisy)
        assert one.sensitivity == other.sensitivity


def test_bounds_of_units_take_the_public_number_of_units():
    X, _, _, labels = table(10, "any", np.random.default_rng(0))
    assert len(dp_bounds(X, groups=labels, adjacency=AddRemove(91))) == N_COLUMNS
    with pytest.raises(ValueError, match="AddRemove"):
        dp_bounds(X, groups=labels, adjacency="add_remove")


@pytest.mark.parametrize("kind", ["scaler, estimated bounds", "bins, estimated bounds"])
@over_rows("size", [1, 10])
def test_a_unit_of_weighted_rows_moves_nothing_by_more(kind, size):
    X, _, _, labels = table(size, "any", np.random.default_rng(size))
    weights = np.random.default_rng(0).uniform(0.5, 1.0, len(X))

    def fit(given):
        rows, groups = given
        model = TRANSFORMERS[kind](weight_bound=1.0)
        return model.fit(rows, sample_weight=weights[: len(rows)], groups=groups)

    n = N_OTHERS + 1
    found = replay(fit, (X, labels), (np.where(np.arange(n)[:, None] < N_OTHERS, X[:n], np.nan), labels[:n]))
    assert 0.1 < max(moves(*found)) <= 1.0 + 1e-9
    assert_all_else_is_equal(*found)


def test_a_raw_table_is_fitted_for_households():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 4000), "job": rng.choice(["clerk", "nurse"], 4000)})
    y, homes = (frame["age"] > 50).to_numpy().astype(int), np.sort(rng.integers(0, 1500, 4000))
    model = skdp.tabular_pipeline(schema=None).fit(frame.assign(home=homes), y, groups="home")
    assert model.privacy_unit_ == model[0].privacy_unit_ == "group"
    assert model[0].schema_["job"].categories == ("clerk", "nurse")
    assert "home" not in model[0].feature_names_in_


# --- sums that are released once ---

PUBLIC = {"random_state": 0, "weight_bound": 1.0}
TABLES = {"n_bins": 3, "n_components": 4, "max_iter": 4, **PUBLIC}
SUMS = {
    "naive Bayes": lambda **kw: skdp.DPGaussianNB([0, 1], **PUBLIC, **kw),
    "least squares": lambda **kw: skdp.DPLinearRegression((0, 1), **PUBLIC, **kw),
    "least squares with inference": lambda **kw: skdp.DPLinearRegression((0, 1), inference=True, **PUBLIC, **kw),
    "classes with inference": lambda **kw: skdp.DPLogisticRegression(classes=[0, 1], inference=True, **PUBLIC, **kw),
    "counts": lambda **kw: skdp.DPPoissonRegressor((0, 1), **PUBLIC, **kw),
    "order": lambda **kw: skdp.DPOrdinalLogisticRegression([0, 1], **PUBLIC, **kw),
    "components": lambda **kw: skdp.DPPCA(2, **PUBLIC, **kw),
    "isolation forest": lambda **kw: skdp.DPIsolationForest(5, 3, bounds=(-1, 1), **PUBLIC, **kw),
    "clusters": lambda **kw: skdp.DPKMeans(2, bounds=(-1, 1), **PUBLIC, **kw),
    "synthesizer": lambda **kw: DPMarginalSynthesizer(bounds=(-1, 1), classes=[0, 1], **TABLES, **kw),
    "synthesizer that selects": lambda **kw: DPMarginalSynthesizer(
        bounds=(-1, 1), classes=[0, 1], pairs="select", **TABLES, **kw
    ),
    "class mixture": lambda **kw: DPClassMixtureGenerator(bounds=(-1, 1), classes=[0, 1], **PUBLIC, **kw),
}


NEAR = {"classes with inference": 0.85, "counts": 0.85, "order": 0.65}
"""Of the sensitivity that a long unit reaches; scores of norm 1 are those of probabilities 0 and 1."""

WIDE = {
    f"{name}, noise {noise}": lambda name=name, noise=noise, **kw: SUMS[name](
        epsilon=None, noise_multiplier=noise, **kw
    )
    for name in SUMS
    if "synthesizer" in name
    for noise in (0.02,)
}
"""Tables with so little noise that a unit may add more than a row: 1.35 and 3 times as much, with that much noise."""

LIMITED = {
    f"{name}, three rows": lambda name=name, **kw: SUMS[name](rows_per_group=3, **kw)
    for name in ("least squares", "least squares with inference", "classes with inference", "counts", "order")
}
"""Of which a group counts as three rows, with three times as much noise."""


def other_unit(X, y, weights, labels):
    """The same with another unit in the place of the last one: its opposite, of three rows."""
    kept = slice(0, N_OTHERS + 3)
    X, y, weights = X[: N_OTHERS + 3].copy(), y[kept].copy(), np.ones(N_OTHERS + 3)
    missing = len(weights) - len(X)
    if missing > 0:
        X, y = np.vstack([X, np.repeat(X[-1:], missing, axis=0)]), np.append(y, np.repeat(y[-1], missing))
    X[N_OTHERS:], y[N_OTHERS:] = -X[N_OTHERS:], 1 - y[N_OTHERS:]
    return X, y, weights, np.append(labels[:N_OTHERS], [99, 99, 99])


@pytest.mark.parametrize("kind", [*SUMS, *WIDE, *LIMITED])
def test_a_unit_moves_sums_by_no_more_than_a_row_may(kind):
    """Where the unit is not in the table, and where another unit is in its place, which doubles the move."""
    make, name = {**SUMS, **WIDE, **LIMITED}[kind], kind.split(",")[0]
    for rows, size in UNITS[1:] if kind in WIDE else UNITS:
        given = table(size, rows, np.random.default_rng(size))
        one, other = replay(fitted(make), given, without_the_unit(*given))
        assert 0.0 < max(moves(one, other)) <= 1.0 + 1e-9, (rows, size)
        if size > 1 and rows == "copies":
            assert max(moves(one, other)) > NEAR.get(name, 0.99), (rows, size)
        assert_all_else_is_equal(one, other)
        one, other = replay(fitted(lambda: make(adjacency="replace_one")), given, other_unit(*given))
        assert 0.0 < max(moves(one, other)) <= 2.0 + 1e-9, (rows, size)
        assert_all_else_is_equal(one, other)


@combined(1, kind=SUMS, adjacency=["zero_out", "add_remove", "replace_one"])
def test_units_of_one_row_give_the_sums_of_rows_with_weights_bit_for_bit(kind, adjacency):
    """Where the noisy sum of weights is below the number of rows, which caps it for rows alone."""
    X, y, weights, _ = table(50, "any", np.random.default_rng(0))
    weights = weights / 2

    def fit(groups):
        exact = {"epsilon": None, "noise_multiplier": 0.45}
        return fitted(lambda: SUMS[kind](adjacency=with_n_public(adjacency, 200), **exact))((X, y, weights, groups))

    by_row, by_unit = fit(None), fit(np.arange(len(X)))
    assert (by_row.privacy_unit_, by_unit.privacy_unit_) == ("row", "group")
    assert by_unit.privacy_event_ == by_row.privacy_event_
    left_out = ("privacy_unit_", "_fitted_releases")
    one, other = ({k: v for k, v in leaves(vars(each)) if not k.startswith(tuple(f"['{n}']" for n in left_out))}
                  for each in (by_row, by_unit))  # fmt: skip
    assert one == other


def test_groups_of_an_iterator_are_rejected_before_the_charge():
    X, _, _, labels = table(10, "any", np.random.default_rng(0))
    ledger = skdp.PrivacyAccountant(5.0, 1e-5, unit="group")
    with pytest.raises(ValueError, match="`groups` is not supported for iterators"):
        skdp.DPPCA(2, accountant=ledger).fit(iter([X]), groups=labels)
    assert not ledger.history


def test_an_exchanged_unit_of_tables_may_be_the_opposite_of_the_other():
    """Copies of the cell (0, 0) for cells with one 0 each: sums of these lengths would differ by more than two rows."""
    others = np.random.default_rng(0).uniform(-1, 1, (N_OTHERS, 2))
    labels = np.append(np.arange(N_OTHERS), [999] * 4)
    copies, opposite = [[-1, -1]] * 4, [[-1, 0], [-1, 1], [0, -1], [1, -1]]

    def fit(unit):
        model = DPMarginalSynthesizer(bounds=(-1, 1), adjacency="replace_one", **TABLES)
        return model.fit(np.vstack([others, unit]), groups=labels)

    one, other = replay(fit, copies, opposite)
    assert 1.0 < max(moves(one, other)) <= 2.0 + 1e-9
    assert_all_else_is_equal(one, other)
