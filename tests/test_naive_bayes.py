"""DPGaussianNB: what one row can move, what is made of the release, and its place among scikit-learn's tools."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import reference
from rejections import assert_rejected
from relations import with_n_public
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, DPTableVectorizer, PrivacyAccountant, allocate_budget, naive_bayes, tabular_pipeline
from skdp._checks.rows import row_indicators_of, take_rows
from skdp.naive_bayes import DPGaussianNB
from skdp.pipeline.joint_fit import zero_wild_rows

ADJACENCIES = ["zero_out", "add_remove", "replace_one"]
CLASSES = ["a", "b", "c"]
BOUNDS = [(-1.0, 1.0), (0.0, 10.0), (-3.0, 5.0), (-1.0, 1.0)]
LOW, HIGH = np.transpose(BOUNDS)


def bayes(*, adjacency=None, **parameters):
    given = {"classes": CLASSES, "bounds": BOUNDS, "random_state": 0}
    return DPGaussianNB(**{**given, **parameters}, adjacency=with_n_public(adjacency, 10000))


def precise(**parameters):
    """Almost no noise."""
    return bayes(epsilon=None, noise_multiplier=1e-3, **parameters)


def draw(n, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    t = np.clip(rng.normal(0.3 * (codes[:, None] - 1), 0.2 + 0.05 * np.arange(4), (n, 4)), -0.99, 0.99)
    return (LOW + (HIGH - LOW) * (t + 1) / 2).astype(dtype), np.array(CLASSES)[codes]


# --- one row ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("d", [1, 2, 30])
def test_the_worst_row_reaches_the_sensitivity_and_none_exceeds_it(adjacency, d):
    """Corners and middles of the cube, and drawn rows, in pairs of one class and of two."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.ones((1, d)), -np.ones((1, d)), np.zeros((1, d)), rng.uniform(-1, 1, (40, d))])
    rows = np.concatenate([rows, np.sign(rows), rows**3])
    query = naive_bayes.ClassMoments(np.array([(-1.0, 1.0)] * d), 2)

    def sum_of(row, code, weight):
        (total := query.new_sum(adjacency)).add(row[None], np.array([code]), np.array([weight]))
        return total.vector

    added = [sum_of(row, code, weight) for row in rows for code in (0, 1) for weight in (1.0, 0.3, 0.0)]
    stated = query.sensitivity(adjacency)
    if adjacency == "replace_one":
        moved = max(np.linalg.norm(one - other) for one in added for other in added) / 2
    else:
        moved = max(map(np.linalg.norm, added))
    assert moved == pytest.approx(stated, rel=1e-12)


# --- the plain reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2049])
def test_the_release_is_that_of_the_plain_reading(released, n):
    X, y = draw(n)
    X *= 1.5  # so that some values are beyond their bounds
    bayes().fit(X, y)
    codes = np.searchsorted(CLASSES, y)
    plain = reference.naive_bayes_release(X, codes, 3, BOUNDS, naive_bayes.COUNT_SHARE)
    np.testing.assert_allclose(released[0][0], plain.ravel(), rtol=1e-12, atol=1e-9)


def test_without_noise_it_is_the_one_of_scikit_learn():
    X, y = draw(20_000)
    ours, theirs = precise().fit(X, y), GaussianNB(var_smoothing=0.0).fit(X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_allclose(ours.class_count_, theirs.class_count_, atol=0.05)
    np.testing.assert_allclose(ours.class_prior_, theirs.class_prior_, atol=1e-5)
    np.testing.assert_allclose(ours.theta_, theirs.theta_, atol=1e-4)
    np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), ours.predict_proba(X))
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.999
    single = precise().fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.theta_, ours.theta_, atol=1e-5)


# --- indicator columns of a vectorizer --------------------------------------------------------------------------------

SCHEMA = {"age": (0, 100), "job": ["clerk", "pilot", "other one"]}


def table(n, prevalence=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < prevalence).astype(int)
    age = np.clip(rng.normal(45 + 10 * y, 15), 0, 100)
    twice = {f"again{k}": age for k in range(4)}  # columns that depend on each other
    job = np.array(SCHEMA["job"])[np.minimum(rng.integers(0, 3, n) + y * rng.integers(0, 2, n), 2)]
    return pd.DataFrame({"age": age, "job": job, **twice}), y


def marked_rows(frame, **parameters):
    schema = {name: SCHEMA["job"] if name == "job" else (0, 100) for name in frame}
    return DPTableVectorizer(schema, sparse_output=False, dtype="float64", **parameters).fit_transform(frame)


@pytest.mark.parametrize("bounds", [(0, 1), (-2, 5)])
def test_indicator_columns_have_tempered_categorical_likelihoods(bounds):
    """Without noise: logarithms of the proportions of the levels of a row, divided by the root of two columns."""
    frame, y = table(20_000)
    rows = marked_rows(frame[["age", "job"]])
    model = precise(classes=[0, 1], bounds=bounds).fit(rows, y)
    plain = np.asarray(rows)
    shares = np.stack([plain[y == c].mean(axis=0) for c in (0, 1)])
    there = np.where(plain[:, None, :] > 0, np.log(np.maximum(shares, 1e-12)), 0.0).sum(axis=2) / math.sqrt(2)
    joint = there + np.log([np.mean(y == c) for c in (0, 1)])
    expected = np.exp(joint - np.logaddexp(*joint.T)[:, None])
    seen = (shares > 1e-3).all(axis=0)
    np.testing.assert_allclose(model.theta_[:, seen], shares[:, seen], atol=2e-3)
    usual = (plain[:, ~seen] == 0).all(axis=1)
    np.testing.assert_allclose(model.predict_proba(plain)[usual], expected[usual], atol=5e-3)


def test_scaled_numbers_keep_gaussian_likelihoods_beside_indicators():
    frame, y = table(5_000)
    rows = marked_rows(frame[["age", "job"]], numbers="both")
    model = precise(classes=[0, 1], bounds=(-1, 1)).fit(rows, y)
    assert model.indicator_weights_.tolist() == [1 / math.sqrt(2)] * 17 + [0.0] + [1 / math.sqrt(2)] * 5
    lone = precise(classes=[0, 1], bounds=(-1, 1)).fit(np.asarray(rows), y)
    assert not lone.indicator_weights_.any()
    np.testing.assert_array_equal(model.theta_[:, 17], lone.theta_[:, 17])
    ones = np.zeros((2, 23))
    ones[:, 17] = -0.9, 0.9
    change = np.diff(model._joint_log_likelihood(ones), axis=0)
    np.testing.assert_allclose(change, np.diff(lone._joint_log_likelihood(ones), axis=0), rtol=1e-6)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_indicator_marks_leave_release_and_noise_unchanged(released, adjacency):
    """No new sensitivity: the marks have no part in what is released. They come from the schema, not from the rows."""
    frame, y = table(500)
    other = frame.assign(age=frame["age"].where(frame.index != 7, 99.0), job=frame["job"].where(frame.index != 7, "x"))
    models = [
        bayes(classes=[0, 1], bounds=(-1, 1), adjacency=adjacency).fit(rows, y)
        for rows in (marked_rows(frame), np.asarray(marked_rows(frame)), marked_rows(other))
    ]
    (marked, mechanism), (plain, same), (changed, _) = released
    np.testing.assert_array_equal(marked, plain)
    assert mechanism == same
    assert models[0].privacy_event_ == models[1].privacy_event_
    factor = 2.0 if adjacency == "replace_one" else 1.0
    assert 0 < np.linalg.norm(marked - changed) <= 2.0 * factor * mechanism.sensitivity * (1 + 1e-12)  # out and in
    np.testing.assert_array_equal(models[0].indicator_weights_, models[2].indicator_weights_)


@pytest.mark.parametrize(("prevalence", "epsilon"), [(0.03, 0.3), (0.3, 1.0)])
def test_indicator_columns_give_log_loss_near_or_below_constant(prevalence, epsilon):
    """The seeds are fixed. Gaussian likelihoods have 7 to 18 times the loss of the constant here."""
    frame, y = table(20_000, prevalence)
    test, answers = table(20_000, prevalence, seed=1)
    constant = log_loss(answers, np.full(len(answers), prevalence))
    losses = []
    for seed in range(3):
        model = tabular_pipeline(DPGaussianNB(), schema={}, classes=[0, 1], epsilon=epsilon, random_state=seed)
        model.set_params(vectorizer__schema={name: SCHEMA.get(name, (0, 100)) for name in frame})
        losses.append(log_loss(answers, model.fit(frame, y).predict_proba(test)))
    assert max(losses) < (1.02 if epsilon * prevalence < 0.01 else 1.0) * constant


def test_marks_of_indicators_survive_copies_of_rows_alone():
    rows = marked_rows(table(50)[0])
    wanted = row_indicators_of(rows)
    for kept in (pickle.loads(pickle.dumps(rows)), take_rows(rows, np.arange(7)), zero_wild_rows(rows)):
        np.testing.assert_array_equal(row_indicators_of(kept), wanted)
    for changed in (rows + 1, rows[:, :3], np.hstack([rows, rows])):
        assert row_indicators_of(changed) is None
    rows[0, 0] = 3.0
    assert row_indicators_of(rows) is None


# --- noise that is known ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(3, 3), (5, 40)])
def test_more_noise_than_rows_still_gives_a_model(n, d):
    rng = np.random.default_rng(0)
    for seed in range(10):
        model = DPGaussianNB(CLASSES, epsilon=0.01, delta=1e-9, random_state=seed)
        model.fit(rng.uniform(-1, 1, (n, d)), rng.choice(CLASSES, n))
        assert (model.var_ > 0).all()
        assert np.isfinite(model.var_).all()
        assert (np.abs(model.theta_) <= 1).all()
        assert (model.class_count_ >= 1).all()
        probabilities = model.predict_proba(rng.uniform(-9, 9, (50, d)))
        assert np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_a_constant_column_has_a_variance_that_the_noise_permits():
    X, y = draw(2_000)
    X[:, 1] = 5.0
    model = bayes().fit(X, y)
    query = naive_bayes.ClassMoments(np.array(BOUNDS), 3)
    deviation = model.noise_multiplier_ * query.sensitivity("zero_out")
    assert (model.var_[:, 1] >= 25.0 * deviation / model.class_count_ * (1 - 1e-12)).all()
    assert precise().fit(X, y).var_[:, 1].max() < 1e-3


# --- bad input --------------------------------------------------------------------------------------------------------

X_GOOD, Y_GOOD = draw(40)


def changed(value, dtype=np.float64):
    X = X_GOOD.astype(dtype)
    X[7, 1] = value
    return X


BAD_INPUT = [
    ({"bounds": None}, {}, ["`bounds` must be", "(low, high)", "got None"]),
    ({"bounds": (1, 1)}, {}, ["`bounds` must", "low < high", "got (1, 1)"]),
    ({"bounds": (0, math.inf)}, {}, ["`bounds` must", "low < high", "got (0, inf)"]),
    ({"bounds": [(0, 1)] * 3}, {}, ["`bounds` has 3 entries, but X has 4 columns"]),
    ({"classes": ["a"]}, {}, ["at least two classes"]),
    ({"classes": ["a", "b"]}, {}, ["labels that are not in classes"]),
    ({}, {"y": [*Y_GOOD[:-1].tolist(), None]}, ["y contains NaN"]),
    ({}, {"X": changed(math.nan)}, ["X contains NaN"]),
    ({}, {"X": changed("12.5w", object)}, ["contains strings"]),
]


def test_bad_input_is_rejected_in_one_line_before_any_charge():
    hidden = [str(X_GOOD[7, 1]), "12.5w"]
    for parameters, given, words in BAD_INPUT:
        assert_rejected(bayes, parameters, {"X": X_GOOD, "y": Y_GOOD, **given}, words, hidden)


# --- among scikit-learn's tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "bounds"),
    [
        (DPTableVectorizer(sparse_output=False), [(-1, 1), (0, 1)]),  # as many columns as are estimated
        (DPPCA(2, data_norm=1.0), [(-1, 1), (0, 1), (0, 1)]),
    ],
)
def test_bounds_of_other_columns_than_a_step_gives_are_rejected_before_the_charge(first, bounds):
    X, y = draw(500)
    accountant = PrivacyAccountant()
    model = DPGaussianNB(CLASSES, bounds=bounds, accountant=accountant)
    with pytest.raises(ValueError, match=r"\A[^\n]*bounds[^\n]*\Z"):
        allocate_budget(make_pipeline(first, model), 1.0, 1e-5).fit(X, y)
    assert not any(entry.event for entry in accountant.history)
    fitting = make_pipeline(DPPCA(2, data_norm=1.0), DPGaussianNB(CLASSES, bounds=[(-1, 1), (0, 1)]))
    assert allocate_budget(fitting, 1.0, 1e-5).fit(X, y).epsilon_ <= 1.0
