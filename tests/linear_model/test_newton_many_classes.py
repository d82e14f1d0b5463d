"""Newton steps for more than two classes: what one row moves, and whether intervals are those of each class."""

from __future__ import annotations

import math

import numpy as np
import pytest
from combinations import over_rows
from linear_rows import ODD_ROWS, assert_errors_are_standard, assert_newton_steps_move_by_one
from refusals import assert_refused
from replay import recording
from scipy import stats
from scipy.special import softmax
from sklearn.base import clone

from skdp import DPLogisticRegression
from skdp._checks.units import read_units
from skdp.linear_model.likelihoods import Logistic, Multinomial
from skdp.linear_model.newton import BoundRows, RowScale
from skdp.linear_model.newton_steps import STEP_SHARES, Step, packed, stretch

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # seeds make a test repeatable

FALSE_ALARM = 1e-6
CLASSES = ["bus", "car", "train"]
TRUTH = np.array([[1.0, -0.6, 0.0, 0.4, -0.3], [0.5, 0.2, -0.8, 0.0, 0.2]])  # against the first class, intercept last
MODEL = DPLogisticRegression(classes=CLASSES, inference=True, data_norm=2.0, random_state=0, delta=1e-5)


def draw(n, seed=0, steepness=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    eta = np.c_[np.zeros(n), steepness * np.c_[X, np.ones(n)] @ TRUTH.T]
    return X, np.array(CLASSES)[(rng.random(n)[:, None] > softmax(eta, axis=1).cumsum(axis=1)).sum(axis=1)]


def fitted(rows, **parameters):
    X, y, *others = rows
    named = dict(zip(("sample_weight", "groups"), others, strict=False))
    return clone(MODEL).set_params(**parameters).fit(X, y, **named)


def quiet(rows, **parameters):
    return fitted(rows, **{"epsilon": None, "noise_multiplier": 1e-3, **parameters})


def without_privacy(X, y):
    """Coefficients of maximum likelihood against the first class, and their errors by the sandwich."""
    rows, theta = np.c_[X, np.ones(len(X))], np.zeros(10)
    is_of = (y[:, None] == CLASSES[1:]).astype(float)
    for _ in range(20):
        chances = softmax(np.c_[np.zeros(len(X)), rows @ theta.reshape(2, 5).T], axis=1)[:, 1:]
        scores = ((is_of - chances)[:, :, None] * rows[:, None, :]).reshape(len(X), -1)
        slopes = chances[:, :, None] * (np.eye(2) - chances[:, None, :])
        bread = np.linalg.inv(np.einsum("nab,ni,nj->aibj", slopes, rows, rows).reshape(10, 10))
        theta += bread @ scores.sum(axis=0)
    n = len(X)
    return theta, np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread) * n / (n - 10))


# --- one row, one unit ---


@over_rows("adjacency", ["zero_out", "add_remove", "replace_one"])
@over_rows("row", ODD_ROWS)
def test_one_row_moves_all_releases_by_their_sensitivity_and_nothing_else(row, adjacency):
    assert_newton_steps_move_by_one(fitted, *draw(150), row, adjacency, ("train", "bus"))


@over_rows("n_classes", [3, 4, 10])
def test_score_and_curvature_are_together_no_longer_than_one(n_classes):
    """Of a z of norm 1, for probabilities of all kinds: nearly equal, nearly certain, and shared by two classes."""
    rng, likelihood = np.random.default_rng(0), Multinomial(n_classes)
    lines = rng.normal(size=(20_000, n_classes - 1)) * rng.exponential(20.0, (20_000, 1))
    pairs = 50.0 * np.repeat(2.0 * likelihood.classes[1:2] + 2.0 * likelihood.classes[2:3], 50, axis=0)
    lines = np.vstack([lines, pairs + 0.02 * rng.normal(size=pairs.shape)])
    norms = []
    for target in (0.0, n_classes - 1.0):
        residuals, slopes = likelihood.residuals(np.full(len(lines), target), lines)
        curvatures = likelihood.curvature_weight * np.linalg.norm(slopes, axis=(1, 2))
        norms.append(np.hypot(np.linalg.norm(residuals, axis=1), curvatures))
    assert np.max(norms) <= 1.0 + 1e-12
    assert np.max(norms) > 0.999


def test_two_classes_are_those_of_the_logistic_likelihood():
    eta, targets = np.linspace(-4.0, 4.0, 41)[:, None], np.arange(41) % 2.0
    for mine, plain in zip(Multinomial(2).residuals(targets, eta), Logistic().residuals(targets, eta), strict=True):
        np.testing.assert_allclose(mine, plain, atol=1e-12)


def test_a_unit_of_many_rows_adds_no_more_than_one():
    X, codes = np.full((60, 4), 1.0), np.full(60, 2.0)
    bound = BoundRows(X, codes, 1.0, read_units(np.repeat(0, 60), 60), RowScale(2.0, 0.5), Multinomial(3))
    steep = np.r_[np.full(5, -200.0), np.full(5, 200.0)]
    for theta in (np.zeros(10), steep, -steep):
        assert np.linalg.norm(bound.sums(theta)) <= 1.0 + 1e-12


# --- errors; see test_newton.py for the tolerances ---


@over_rows("steepness, of_error", [(1.0, 0.02), (3.0, 0.05)])
def test_without_noise_it_is_maximum_likelihood_with_the_sandwich(steepness, of_error):
    """Errors are those of the curvature of the last steps, which is farther off where slopes are steep."""
    X, y = draw(6_000, steepness=steepness)
    model = quiet((X, y))
    frame = model.summary().to_frame()
    theta, errors = without_privacy(X, y)
    assert (frame["doubt"] == "").all()
    np.testing.assert_allclose((frame["coef"] - theta) / errors, 0.0, atol=0.15)
    np.testing.assert_allclose(frame["std_err"], errors, rtol=of_error)
    lines = np.c_[model.coef_, model.intercept_]
    assert (lines[0] == 0.0).all()
    np.testing.assert_allclose(lines[1:].ravel(), frame["coef"])
    assert (model.coef_noise_[0] == 0.0).all()
    np.testing.assert_allclose(model.coef_noise_[1:], frame["noise"].to_numpy().reshape(2, 5)[:, :4])
    expected = softmax(X[:9] @ model.coef_.T + model.intercept_, axis=1)
    np.testing.assert_allclose(model.predict_proba(X[:9]), expected, rtol=1e-9)


def test_errors_are_those_of_repeated_fits():
    """The sum of squared errors in units of the standard error is chi-squared, to first order: 10 % wider."""
    scores = []
    for seed in range(40):
        frame = fitted(draw(2_000, seed), epsilon=None, noise_multiplier=0.8, random_state=seed).summary().to_frame()
        scores.append(((frame["coef"] - TRUTH.ravel()) / frame["std_err"]).to_numpy())
    assert_errors_are_standard(scores, FALSE_ALARM / 20)


def test_a_table_has_a_block_for_each_class_against_the_first():
    model = fitted(draw(20_000))
    table = model.summary(names=list("abcd"))
    frame = table.to_frame()
    assert list(frame.index) == [f"{each}: {name}" for each in CLASSES[1:] for name in [*"abcd", "(intercept)"]]
    assert ((frame["low"] < TRUTH.ravel()) & (frame["high"] > TRUTH.ravel())).mean() >= 0.8
    assert (frame["doubt"] == "").all()
    assert "log-odds against class bus" in str(table)
    scaled = model.summary(units=[2.0, 1.0, 1.0, 4.0]).to_frame()
    by = np.tile([2.0, 1.0, 1.0, 4.0, 1.0], 2)
    for name in ("coef", "std_err", "low"):
        np.testing.assert_allclose(scaled[name].to_numpy() * by, frame[name])


# --- where there is no interval ---


def test_a_class_that_hardly_occurs_has_no_interval():
    X, y = draw(5_000)
    y[y == "train"] = "car"
    y[:20] = "train"
    doubts = set(quiet((X, y)).summary().to_frame()["doubt"])
    assert doubts == {"fewer than 40 rows a coefficient that are not nearly certain"}


def test_too_many_coefficients_are_refused_before_any_charge():
    given = {"classes": CLASSES, "inference": True}
    rows = {"X": np.zeros((60, 101)), "y": np.resize(CLASSES, 60)}
    assert_refused(DPLogisticRegression, given, rows, ["101 columns and 3 classes", "100 columns"], [])


def test_steep_slopes_of_classes_are_reached():
    """Steps that are not stretched end more than an error before them."""
    X, y = draw(10_000, steepness=8.0)
    model = quiet((X, y))
    theta, _ = without_privacy(X, y)
    found = model._fitted_inference
    np.testing.assert_allclose((found.estimate - theta) / np.hypot(found.sampling, found.noise), 0.0, atol=0.3)


def test_a_row_of_weight_0_adds_nothing_and_others_in_proportion():
    X, _ = draw(40)
    codes, theta, weights = np.arange(40) % 3.0, np.linspace(-1.0, 1.0, 10), np.linspace(0.0, 1.0, 40)
    given = None, RowScale(2.0, 0.5), Multinomial(3)
    found = BoundRows(X, codes, weights, *given).sums(theta)
    single = [BoundRows(X[k : k + 1], codes[k : k + 1], 1.0, *given).sums(theta) for k in range(40)]
    np.testing.assert_allclose(found, weights @ np.array(single), atol=1e-12)
    assert np.linalg.norm(single, axis=1).max() <= 1.0
    slopes = Multinomial(3).residuals(codes[:1], np.array([[0.3, -0.2]]))[1]
    assert len(packed(slopes[0])) == 3


def test_the_noise_of_each_release_is_that_which_is_priced():
    with recording([]) as releases:
        rows = np.zeros((200, 20)), np.repeat("bus", 200), np.full(200, 1e-300)
        model = fitted(rows, weight_bound=1.0)
    sigma = model.noise_multiplier_ / math.sqrt(len(STEP_SHARES))
    factors = [*(1.0 / math.sqrt(share) for share in STEP_SHARES), 3.0]
    assert len(releases) == len(factors)
    for each, factor in zip(releases, factors, strict=True):
        noise = each.noisy - each.exact
        low, high = stats.chi2.interval(1 - FALSE_ALARM, noise.size)
        assert low < np.sum(noise**2) / (sigma * factor) ** 2 < high
    assert 0.999 < model.epsilon_ <= 1.0


def test_without_an_intercept_there_is_none():
    X, y = draw(6_000)
    model = quiet((X, y), fit_intercept=False)
    assert (model.intercept_ == 0.0).all()
    assert list(model.summary().to_frame().index) == [f"{each}: x{j}" for each in CLASSES[1:] for j in range(4)]


def test_classes_of_steep_slopes_have_no_interval_though_noise_hides_that_steps_did_not_settle():
    for seed in range(3):
        X, y = draw(20_000, seed, steepness=12.0)
        frame = fitted((X, y), epsilon=4.0, random_state=seed).summary().to_frame()
        assert (frame["doubt"] != "").all()
        assert frame["doubt"].str.startswith(("the steps did not settle", "noise hides")).all()


def test_a_constant_column_is_hidden_in_each_block():
    X, y = draw(20_000)
    X[:, 1] = 0.0
    frame = fitted((X, y)).summary().to_frame()
    hidden = frame["doubt"] == "noise hides this column, or others add up to it"
    assert hidden.to_numpy().reshape(2, 5)[:, 1].all()
    assert frame.loc[frame["doubt"] != "", "std_err":"high"].isna().all(axis=None)


def test_cut_rows_and_few_rows_are_told():
    assert fitted(draw(5_000), data_norm=0.8).summary().to_frame()["doubt"].str.contains("rows are cut").all()
    assert fitted(draw(250)).summary().to_frame()["doubt"].str.contains("fewer than 30 rows").all()


def test_a_step_is_longer_where_the_curvature_falls_on_its_way():
    """It falls by exp(-x): the score is 0 at 2, and a plain step from 1 would end at 1.63."""

    def step(x):
        return Step(np.array([x]), np.array([math.exp(-x) - math.exp(-2.0)]), np.array([[math.exp(-x)]]), 1.0)

    before, last = step(0.0), step(1.0)
    move = last.score / last.curvature[0]
    assert last.theta + stretch(before, last, move, 0.0) * move == pytest.approx(2.0)
    assert stretch(last, before, move, 0.0) == 1.0  # where it rises, or the move goes back
    assert stretch(before, last, -move, 0.0) == 1.0
    assert stretch(before, last, 100.0 * move, 0.0) <= 2.02
