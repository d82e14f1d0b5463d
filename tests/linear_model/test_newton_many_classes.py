"""Newton steps for more than two classes: what one row moves, and whether intervals are those of each class."""

import numpy as np
from combinations import over_rows
from linear_rows import ODD_ROWS, assert_errors_are_standard, assert_newton_steps_move_by_one, fit_copy
from rejections import assert_rejected
from scipy.special import softmax

from skdp import DPLogisticRegression
from skdp._checks.groups import read_units
from skdp.linear_model.likelihoods import Multinomial
from skdp.linear_model.newton import BoundRows, RowScale

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
    return fit_copy(MODEL, rows, **parameters)


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


def test_a_unit_of_many_rows_adds_no_more_than_one():
    X, codes = np.full((60, 4), 1.0), np.full(60, 2.0)
    bound = BoundRows(X, codes, 1.0, read_units(np.repeat(0, 60), 60), RowScale(2.0, 0.5), Multinomial(3))
    steep = np.r_[np.full(5, -200.0), np.full(5, 200.0)]
    for theta in (np.zeros(10), steep, -steep):
        assert np.linalg.norm(bound.sums(theta)) <= 1.0 + 1e-12


# --- errors; see test_newton.py for the tolerances ---


def test_without_noise_it_is_maximum_likelihood_with_the_sandwich():
    """Errors are those of the curvature of the last steps, which is farther off where slopes are steep."""
    X, y = draw(6_000, steepness=3.0)
    model = quiet((X, y))
    frame = model.summary().to_frame()
    theta, errors = without_privacy(X, y)
    assert (frame["doubt"] == "").all()
    np.testing.assert_allclose((frame["coef"] - theta) / errors, 0.0, atol=0.15)
    np.testing.assert_allclose(frame["std_err"], errors, rtol=0.05)
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
    for seed in range(25):
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
    scaled = model.summary(scales=[2.0, 1.0, 1.0, 4.0]).to_frame()
    by = np.tile([2.0, 1.0, 1.0, 4.0, 1.0], 2)
    for name in ("coef", "std_err", "low"):
        np.testing.assert_allclose(scaled[name].to_numpy() * by, frame[name])


# --- where there is no interval ---


def test_too_many_coefficients_are_rejected_before_any_charge():
    given = {"classes": CLASSES, "inference": True}
    rows = {"X": np.zeros((60, 101)), "y": np.resize(CLASSES, 60)}
    assert_rejected(DPLogisticRegression, given, rows, ["101 columns and 3 classes", "100 columns"], [])


def test_without_an_intercept_there_is_none():
    X, y = draw(6_000)
    model = quiet((X, y), fit_intercept=False)
    assert (model.intercept_ == 0.0).all()
    assert list(model.summary().to_frame().index) == [f"{each}: x{j}" for each in CLASSES[1:] for j in range(4)]
