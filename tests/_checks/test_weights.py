"""`weight_bound`: weights of rows are divided by it, cut at it, and multiply what was clipped before."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from combinations import over_combinations, over_rows
from replay import assert_all_else_is_equal, moves, recording, replay
from sklearn.base import clone

import skdp
from skdp._checks.weights import WeightReader, exactly_summable
from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor, PublicTreesEmbedding
from skdp.image import PatchTransformer, ScatteringTransformer
from skdp.model_selection import PrivateScore
from skdp.preprocessing import DPOneHotEncoder, DPQuantileBinner, DPSimpleImputer, DPStandardScaler, DPTableVectorizer

N, ROW = 60, 7
TREES = {"n_estimators": 5, "max_depth": 3, "bounds": (-1.0, 1.0)}
CLASSIFIERS = {
    "linear": (skdp.DPLogisticRegression, {"max_iter": 10}),
    "network": (skdp.DPMLPClassifier, {"hidden_layer_sizes": (4,), "max_iter": 4}),
    "trees": (DPRandomTreesClassifier, {"max_iter": 10, **TREES}),
    "naive Bayes": (skdp.DPGaussianNB, {}),
}
REGRESSORS = {
    "network of targets": (skdp.DPMLPRegressor, {"hidden_layer_sizes": (4,), "max_iter": 4}),
    "trees of targets": (DPRandomTreesRegressor, {"max_iter": 10, **TREES}),
    "ridge": (skdp.DPRidge, {}),
}
TABLE = {"epsilon": 50.0, "classes": [0, 1], "n_bins": 4, "n_components": 4, "max_iter": 4}
TABLES = {
    "scaler, estimated bounds": (DPStandardScaler, {}),
    "components": (skdp.DPPCA, {"n_components": 2, "epsilon": 50.0}),  # where sums of weights stand out of the noise
    "clusters": (skdp.DPKMeans, {"n_clusters": 2, "bounds": (-1.0, 1.0), "epsilon": 50.0, "max_iter": 2}),
    "isolation forest": (skdp.DPIsolationForest, TREES),
    "synthesizer of selected pairs": (skdp.DPMarginalSynthesizer, {"bounds": (-1.0, 1.0), "pairs": "select", **TABLE}),
    "class mixture": (skdp.DPClassMixtureGenerator, {"bounds": (-1.0, 1.0), "classes": [0, 1], "epsilon": 50.0}),
    "bins": (DPQuantileBinner, {"n_bins": 4, "bounds": (-1.0, 1.0), "epsilon": 50.0}),
    "bins, estimated bounds": (DPQuantileBinner, {"n_bins": 4, "epsilon": 50.0}),
}
STEPS = ("linear", "network", "trees", "network of targets", "trees of targets")
MODELS = {**CLASSIFIERS, **REGRESSORS}
# Where weights are given, their sum is released too.
TOTAL_ESTIMATED = [kind for kind in TABLES if kind.startswith(("components", "synthesizer", "class mixture"))]
KINDS = {**MODELS, **TABLES}


SOME = ["linear", "trees", "naive Bayes", "ridge", "scaler, estimated bounds", "components",
        "synthesizer of selected pairs", "bins"]  # fmt: skip


def outputs_of(kind):
    return {"classes": [0, 1]} if kind in CLASSIFIERS else {"y_bounds": (-1.0, 1.0)} if kind in REGRESSORS else {}


def make(kind, **parameters):
    estimator, small = KINDS[kind]
    return estimator(**{**outputs_of(kind), "random_state": 0, **small, **parameters})


class People(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray


def people(kind, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (N, 3)).astype(dtype)
    y = np.clip(X @ [0.5, -0.5, 0.2], -1, 1) if kind in REGRESSORS else np.arange(N) % 2
    return People(X, y, rng.uniform(0.0, 300.0, N))


# --- shares -----------------------------------------------------------------------------------------------------------


def test_shares_are_weights_divided_by_the_bound_and_cut_at_it():
    reader = WeightReader.of(200.0)
    assert reader([0.0, 2.0**-30, 50, 200, 200.5, 1e308], 6).tolist() == [0.0, 2.0**-30 / 200.0, 0.25, 1.0, 1.0, 1.0]
    assert WeightReader.of(None)([0.0, 0.5, 3.0], 3).tolist() == [0.0, 0.5, 1.0]
    assert reader(None, 3) == 1.0


def test_shares_of_any_two_numbers_lie_between_0_and_1():
    """Over the range of doubles, and no overflow is raised where NumPy is asked to raise."""
    ends = [0.0, 5e-324, 1e-308, 1e-30, 1.0, 1e30, np.finfo(float).max]
    with np.errstate(all="raise"):
        for bound in (1e-30, 0.3, 1e30):
            found = WeightReader.of(bound)(ends, len(ends))
            assert (found >= 0.0).all()
            assert (found <= 1.0).all()
            assert (np.diff(found) >= 0.0).all()


def test_a_share_depends_on_no_other_weight():
    reader, weights = WeightReader.of(200.0), np.random.default_rng(0).uniform(0.0, 300.0, 50)
    shares = reader(weights, 50)
    for other in (0.0, 5e-324, 1e308):
        changed = weights.copy()
        changed[7] = other
        np.testing.assert_array_equal(np.delete(reader(changed, 50), 7), np.delete(shares, 7))


@over_combinations(1, kind=KINDS, bound=[0, np.nan, 1e31, "largest", True])
def test_unusable_bounds_are_rejected_before_any_charge(kind, bound):
    table, ledger = people(kind), skdp.PrivacyAccountant()
    for weight in (None, table.weight):
        with pytest.raises((TypeError, ValueError), match=r"^`weight_bound` must be") as rejection:
            make(kind, weight_bound=bound, accountant=ledger).fit(table.X, table.y, sample_weight=weight)
        assert "\n" not in str(rejection.value)
    assert not ledger.history


@over_combinations(1, kind=SOME, weight=[np.inf, np.nan, -1.0])
def test_weights_that_are_none_are_rejected_before_any_charge(kind, weight):
    table, ledger = people(kind), skdp.PrivacyAccountant()
    table.weight[ROW] = weight
    with pytest.raises(ValueError, match="sample_weight") as rejection:
        make(kind, weight_bound=300.0, accountant=ledger).fit(table.X, table.y, sample_weight=table.weight)
    assert str(table.weight[ROW + 1]) not in str(rejection.value)
    assert sum(charge.event is not None for charge in ledger.history) == 0


# --- what weights mean ------------------------------------------------------------------------------------------------


@over_combinations(1, kind=[kind for kind in KINDS if kind not in TOTAL_ESTIMATED], dtype=[np.float32, np.float64])
def test_weights_equal_to_the_bound_give_the_model_of_no_weights(kind, dtype):
    table = people(kind, dtype)
    other = make(kind).fit(table.X, table.y)
    one = make(kind, weight_bound=0.3).fit(table.X, table.y, sample_weight=np.full(N, 0.3))
    np.testing.assert_array_equal(learned(one), learned(other))
    for name in ("intercept_", "var_", "bounds_"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.privacy_event_ == other.privacy_event_


@over_rows("kind", TOTAL_ESTIMATED)
def test_weights_equal_to_the_bound_give_the_model_of_no_weights_but_for_the_noise(kind):
    """With next to no noise, to its digits: a sum of weights is then the number of rows."""
    table = people(kind)
    own = {"epsilon": None, "noise_multiplier": 1e-3, "delta": 1e-5}
    one = make(kind, weight_bound=100.0, **own).fit(table.X, table.y, sample_weight=np.full(N, 100.0))
    other = make(kind, **own).fit(table.X, table.y)
    np.testing.assert_allclose(learned(one), learned(other), atol=1e-2)
    assert one.privacy_event_ == other.privacy_event_


def learned(model):
    """All numbers that a model learned first of all."""
    if hasattr(model, "mixture_"):
        return np.ravel(model.mixture_.locations)
    names = (
        "coefs_", "coef_", "theta_", "marginals_", "components_", "mean_", "bin_edges_", "cluster_centers_",
        "_fitted_lengths",
    )  # fmt: skip
    found = next(getattr(model, name) for name in names if hasattr(model, name))
    return np.concatenate([np.ravel(each) for each in found])


@over_rows("kind", SOME)
def test_only_weights_over_the_bound_count(kind):
    """Twice the weights and twice the bound, powers of two, are the same fit; another bound is another fit."""
    table = people(kind)
    one, other, third = (
        make(kind, weight_bound=bound).fit(table.X, table.y, sample_weight=factor * table.weight)
        for bound, factor in ((256.0, 1.0), (512.0, 2.0), (512.0, 1.0))
    )
    assert [each.epsilon_ for each in (one, other, third)] == [one.epsilon_] * 3
    scores = [learned(each) for each in (one, other, third)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


SURVEY = {
    "naive Bayes": {"bounds": (-2.0, 2.0)},
    "ridge": {"data_norm": 2.0, "y_bounds": (-2.0, 2.0)},
}


@over_rows("kind", SURVEY)
def test_weights_give_the_mean_of_the_population(kind):
    """Of a sample in which what is drawn depends on the target: weights up to 1,000, of which the mean is a tenth.

    At epsilon 8 and 40,000 rows noise and clip leave the mean within .01; without weights it is .1 off or more.
    """
    rng, n = np.random.default_rng(3), 40_000
    X = rng.uniform(-2.0, 2.0, (n, 1))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-1.6 * X[:, 0]))).astype(int)
    weights = np.clip(rng.lognormal(np.log(np.where(y == 1, 120, 50)), 0.6), 1.0, 1000.0)
    if kind in REGRESSORS:
        y = np.clip(0.3 * X[:, 0] + 0.3 * (2 * y - 1) + 0.2 * rng.normal(size=n), -2.0, 2.0)
    parameters = {**SURVEY[kind], "max_iter": None, "epsilon": 8.0, "delta": 1e-6}
    if kind not in STEPS:
        parameters.pop("max_iter")
    model = make(kind, weight_bound=1000.0, **parameters).fit(X, y, sample_weight=weights)
    assert model.epsilon_ <= 8.0
    assert model.weight_bound_ == 1000.0
    found = model.predict_proba(X)[:, 1] if kind in CLASSIFIERS else model.predict(X)
    truth = np.average(y, weights=weights)
    assert abs(truth - y.mean()) > 0.1
    assert abs(np.average(found, weights=weights) - truth) < 0.01


def of_a_survey(seed=3, n=40_000):
    """A column in [-1, 1] of which large values are drawn half as often as small ones, and weights that undo that."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, 2 * n)
    kept = rng.random(2 * n) < np.where(x > 0, 0.25, 0.75)
    return x[kept, None], np.where(x[kept] > 0, 300.0, 100.0)


@over_rows("bounds", [(-1.0, 1.0), None])
def test_weights_give_the_mean_and_the_variance_of_the_population(bounds):
    """The noise of the mean is that of a sum over the sum of shares, and 5 deviations are allowed (1e-6 alarms).

    At epsilon 4, delta 1e-6, and of what bounds leave, sigma is below 1.6, its sensitivity sqrt(3), the sum of shares
    above 15,000: 5 * 1.6 * 1.8 / 15,000 < .001 for the mean of columns in [-1, 1], twice that in [-2, 2], and 3 times
    that for the variance.
    """
    X, weights = of_a_survey()
    scaler = DPStandardScaler(bounds, weight_bound=300.0, epsilon=4.0, delta=1e-6, random_state=0)
    scaler.fit(X, sample_weight=weights)
    mean = np.average(X[:, 0], weights=weights)
    assert abs(mean - X.mean()) > 0.2
    assert abs(scaler.mean_[0] - mean) < 0.002
    assert abs(scaler.var_[0] - np.average((X[:, 0] - mean) ** 2, weights=weights)) < 0.006
    assert scaler.weight_bound_ == 300.0


def test_weights_give_bins_of_equal_mass_in_the_population():
    """Each of four bins holds a quarter, but for a cell, of which there are 256 at most (1/64), and noise far below."""
    X, weights = of_a_survey()
    binner = DPQuantileBinner(
        4, bounds=(-1, 1), encode="ordinal", weight_bound=300.0, epsilon=4.0, delta=1e-6, random_state=0
    )
    bins = binner.fit(X, sample_weight=weights).transform(X)[:, 0].astype(int)
    shares = np.bincount(bins, weights) / weights.sum()
    assert len(shares) == 4
    assert np.abs(shares - 0.25).max() < 0.25 / 16 + 0.01
    assert np.abs(np.bincount(bins) / len(X) - 0.25).max() > 0.1


@over_rows("kind", ["scaler, estimated bounds", "bins"])
def test_rows_with_gaps_keep_their_weights(kind):
    """Gaps are left out with their weights: the counts are those of a table without these rows, on all columns."""
    table = people(kind)
    gaps, found = np.arange(N) % 3 == 0, []
    X = np.where(gaps[:, None], np.nan, table.X)
    for rows, weight in ((X, table.weight), (table.X[~gaps], table.weight[~gaps])):
        with recording([]) as seen:
            make(kind, weight_bound=200.0, adjacency=skdp.AddRemove(N)).fit(rows, sample_weight=weight)
        found.append(seen)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.exact, other.exact)


def test_shares_that_can_be_summed_exactly_are_no_larger():
    shares = np.array([0.0, 5e-324, 2.0**-24, 0.1, 1.0 - 2.0**-53, 1.0])
    found = exactly_summable(shares)
    assert (found <= shares).all()
    assert (shares - found < 2.0**-24).all()
    assert found[-1] == exactly_summable(1.0) == 1.0
    many = exactly_summable(np.random.default_rng(0).random(100_000))
    assert sum(many[::-1]) == many.sum() == math.fsum(many)


# --- property 5 -------------------------------------------------------------------------------------------------------


@over_rows("kind", KINDS)
def test_toggling_a_weight_moves_the_sums_by_at_most_the_clip_and_nothing_else(kind):
    """Between 0 and any other weight, up to the bound and far above: C at most, in every release."""

    def fit(table):
        return make(kind, weight_bound=200.0).fit(table.X, table.y, sample_weight=table.weight)

    longest = 0.0
    for weight, others in ((50.0, 0.1), (1e30, 1.0)):  # the row's weight may be the largest of all, below the bound
        table = people(kind)
        table.weight[:] *= others
        table.weight[ROW] = weight
        void = table.weight.copy()
        void[ROW] = 0.0
        one, other = replay(fit, table, table._replace(weight=void))
        assert max(moves(one, other)) <= min(1.0, weight / 200.0) * (1 + 1e-9) + 1e-14
        assert_all_else_is_equal(one, other)
        longest = max(longest, *moves(one, other))
    assert longest > 0.05


@over_rows("kind", SOME)
def test_what_a_row_of_weight_0_holds_changes_no_bit(kind):
    """It is the null record in every release of a fit."""

    def fit(table):
        return make(kind, weight_bound=200.0).fit(table.X, table.y, sample_weight=table.weight)

    table = people(kind)
    table.weight[ROW] = 0.0
    rows, targets = table.X.copy(), table.y.copy()
    rows[ROW], targets[ROW] = [-1.0, 1e6, 0.0], 1 - table.y[ROW]
    one, other = replay(fit, table, table._replace(X=rows, y=targets))
    assert max(moves(one, other)) == 0.0
    assert_all_else_is_equal(one, other)


@over_rows("kind", SOME)
def test_one_warning_says_that_weights_are_cut_at_1(kind):
    """To every fit with weights and without a bound, whatever they are, and to no other."""
    table = people(kind)

    def warned(weight, **parameters):
        with warnings.catch_warnings(record=True, action="always") as caught:
            make(kind, **parameters).fit(table.X, table.y, sample_weight=weight)
        return [str(each.message) for each in caught if "weight_bound" in str(each.message)]

    said = [warned(weight) for weight in (1e-9 * np.ones(N), table.weight)]
    assert said == [said[0]] * 2
    assert len(said[0]) == 1
    assert said[0][0].startswith("`weight_bound` was not set, so weights above 1 are clipped to 1. Set ")
    assert warned(None) == warned(table.weight, weight_bound=1.0) == []


# --- pipelines --------------------------------------------------------------------------------------------------------


@over_rows("kind", ["linear", "trees of targets", "ridge"])
def test_weights_of_a_tabular_pipeline_are_those_of_its_model(kind):
    table = people(kind)
    frame, schema = pd.DataFrame(table.X, columns=list("abc")), dict.fromkeys("abc", (-1.0, 1.0))
    estimator, small = KINDS[kind]
    model = estimator(**{name: value for name, value in small.items() if name != "bounds"}, random_state=0)
    pipe = skdp.tabular_pipeline(model, schema=schema, weight_bound=300.0, **outputs_of(kind))
    one, other = (clone(pipe).fit(frame, table.y, **given) for given in (
        {"sample_weight": table.weight}, {"model__sample_weight": table.weight}
    ))  # fmt: skip
    np.testing.assert_array_equal(one.predict(frame), other.predict(frame))
    assert 0.99 < one.epsilon_ <= 1.0
    assert one.score(frame, table.y, sample_weight=table.weight) != one.score(frame, table.y)


NEITHER = {
    "WGAN": lambda **kw: skdp.DPWGAN(classes=[0, 1], bounds=(-1, 1), max_iter=1, **kw),
    "scattering": lambda: ScatteringTransformer(image_shape=(1, 3)),
    "patches": lambda: PatchTransformer(image_shape=(1, 3)),
    "embedding": lambda: PublicTreesEmbedding(bounds=(-1, 1)),
}
NO_WEIGHTS = {
    **NEITHER,
    "encoder": DPOneHotEncoder,
    "imputer": DPSimpleImputer,
    "vectorizer": DPTableVectorizer,
}


@over_rows(("kind", "parameter", "method"), [
    *((kind, "sample_weight", "fit") for kind in NO_WEIGHTS), *((kind, "groups", "fit_transform") for kind in NEITHER),
    *((kind, "weights", "fit_transform") for kind in NO_WEIGHTS),
])  # fmt: skip
def test_what_a_fit_does_not_take_is_rejected_in_one_line_before_any_charge(kind, parameter, method):
    table, ledger = people("linear"), skdp.PrivacyAccountant()
    model = (
        NO_WEIGHTS[kind]() if kind in ("scattering", "patches", "embedding") else NO_WEIGHTS[kind](accountant=ledger)
    )
    given = {parameter: np.ones(N)}
    with pytest.raises(
        TypeError,
        match=rf"^fit got an unexpected parameter '{parameter}': {type(model).__name__} does not .* Remove it",
    ):
        getattr(model, method if hasattr(model, method) else "fit")(table.X, table.y, **given)
    assert not ledger.history
    if parameter != "weights" and not kind.startswith(("scattering", "patches")):
        model.fit(table.X, table.y, **{parameter: None})  # is none


# --- searches ---------------------------------------------------------------------------------------------------------


def search(strategy="compose", **parameters):
    model = make("linear", **{"weight_bound": 200.0, **parameters})
    grid = {"max_grad_norm": [0.1, 0.5, 0.9]}
    return skdp.DPGridSearchCV(model, grid, epsilon=4.0, delta=1e-5, strategy=strategy, random_state=0, test_size=0.4)


@over_rows("strategy", ["compose", "random_stopping"])
def test_weights_equal_to_the_bound_search_as_without_weights(strategy):
    table = people("linear")
    one = search(strategy).fit(table.X, table.y, sample_weight=np.full(N, 200.0))
    other = search(strategy).fit(table.X, table.y)
    np.testing.assert_array_equal(one.best_estimator_.coef_, other.best_estimator_.coef_)
    assert (one.best_score_, one.best_params_) == (other.best_score_, other.best_params_)
    assert one.privacy_event_ == other.privacy_event_


def test_scores_of_a_search_weigh_rows():
    """Half of the rows have weight 0, and a score is counted from the middle: it is that of the others, halved."""
    rows, y = np.arange(8.0)[:, None], np.ones(8)
    score = PrivateScore("first", lambda model, X, y: np.asarray(X)[:, 0] / 8.0, 1.0)
    shares = np.array([1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.25, 0.0])
    expected = float(np.sum(shares * (rows[:, 0] / 8.0 - 0.5)))
    assert score.total(None, rows, y, shares) == pytest.approx(expected)
    rejecting = PrivateScore("some", lambda model, X, y: np.asarray(X)[:, 0] / (8.0 if X[0, 0] < 4 else None), 1.0)
    with pytest.raises(TypeError):
        rejecting.total(None, rows[4:], y[4:], shares[4:])
    model = search().fit(*people("linear"))
    table = people("linear", seed=1)
    found = model.score(table.X, table.y, sample_weight=table.weight)
    assert found == pytest.approx(np.average(model.predict(table.X) == table.y, weights=table.weight))


def test_weights_that_a_search_cannot_use_are_rejected_before_any_charge():
    table, ledger = people("linear"), skdp.PrivacyAccountant()
    for bad, words, model in (
        (np.full(N, np.inf), "sample_weight contains infinity", search(accountant=ledger)),
        (np.zeros(N), "`sample_weight` is zero for all rows", search(accountant=ledger)),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(table.X, table.y, sample_weight=bad)
    with pytest.raises(ValueError, match="`weight_bound` must be the same for all candidates"):
        skdp.DPGridSearchCV(make("linear"), {"weight_bound": [1.0, 2.0]}).fit(table.X, table.y)
    assert not [charge for charge in ledger.history if charge.event is not None]


def test_a_part_of_the_rows_without_weights_is_no_rejection():
    """Which rows train is drawn: where all of them have weight 0, a rejection would come after the charge."""
    table = people("linear")
    for row in range(3):
        weight = np.zeros(N)
        weight[row] = 1.0
        search().fit(table.X, table.y, sample_weight=weight)
