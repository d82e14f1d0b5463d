"""DPLinearRegression and DPRidge: what one row can move, what is solved, and their place among scikit-learn's tools."""

import math
import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from combinations import crossed, over_rows
from linear_rows import neighbor
from rejections import assert_rejected
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, recording, replay
from scipy import stats
from sklearn.linear_model import LinearRegression, Ridge

from skdp import DPLinearRegression, DPRidge, PrivacyLeakWarning, check_pipeline, privacy_report
from skdp.linear_model import normal_equations
from skdp.mechanisms import GaussianMechanism

FALSE_ALARM = 1e-6
ADJACENCIES = ["zero_out", "add_remove", "replace_one"]
ESTIMATORS = [DPLinearRegression, DPRidge]
BOUNDS = (-3.0, 5.0)
TRUTH = np.array([2.0, -1.0, 0.0, 0.5])


def linear(*, adjacency=None, **parameters):
    adjacency = with_n_public(adjacency, 10_000)
    return DPLinearRegression(**{"y_bounds": BOUNDS, "random_state": 0, **parameters}, adjacency=adjacency)


def precise(estimator=DPLinearRegression, **parameters):
    """Almost no noise: what is fitted is what scikit-learn fits, up to what 1e-3 of a row moves."""
    return estimator(**{"y_bounds": BOUNDS, "epsilon": None, "noise_multiplier": 1e-3, **parameters})


def draw(n, seed=0, spread=0.2, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4)).astype(dtype)
    return X, np.clip(X @ TRUTH + 1.0 + spread * rng.standard_normal(n), -2.9, 4.9)


# --- one row ----------------------------------------------------------------------------------------------------------

ROWS = {
    "inside": (lambda x: 0.1 * x, 1.0, 1.0),
    "on the bound": (lambda x: 1.5 * x / np.linalg.norm(x), BOUNDS[1], 1.0),
    "overflowing": (lambda x: np.full_like(x, np.finfo(x.dtype).max), 1e300, 1.0),
    "zero": (np.zeros_like, -1e300, 1.0),
    "almost zero": (lambda x: np.finfo(x.dtype).smallest_subnormal * np.sign(x), 1.0, 1.0),
    "heaviest": (lambda x: 1e9 * x, 1e9, 1.7e308),
    "light": (lambda x: x, BOUNDS[1], 1e-3),
}


@over_rows(
    "storage, fit_intercept, dtype, adjacency, row",
    crossed(
        storage=[np.asarray, sp.csr_matrix],
        fit_intercept=[True, False],
        dtype=[np.float32, np.float64],
        adjacency=ADJACENCIES,
        row=ROWS,
    ),
)
def test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else(row, adjacency, dtype, fit_intercept, storage):
    """Properties 1, 13, 21 and 24."""
    X, y = draw(60, dtype=dtype)
    make, target, weight = ROWS[row]
    weights = np.ones(60)
    X[17], y[17], weights[17] = make(X[17]), target, weight

    def fit(rows):
        model = linear(adjacency=adjacency, fit_intercept=fit_intercept, data_norm=1.5, weight_bound=1.0)
        return model.fit(storage(rows[0]), *rows[1:])

    one, other = replay(fit, (X, y, weights), neighbor(adjacency, (X, y, weights), 17, -target))
    assert len(one.releases) == 1
    assert max(moves(one, other)) <= (2.0 if adjacency == "replace_one" else 1.0) * (1 + 1e-12)
    assert_all_else_is_equal(one, other)


@over_rows("adjacency", ADJACENCIES)
def test_the_worst_row_reaches_the_sensitivity(released, adjacency):
    """So that noise is not spent on rows that there are none of; and rows in single precision come near it."""
    released.clear()
    X, y = np.zeros((60, 4)), np.full(60, sum(BOUNDS) / 2)
    X[17], y[17] = [1.5, 0, 0, 0], BOUNDS[1]
    for weight in (1.0, 0.0):
        weights = np.ones(60)
        weights[17] = weight
        if adjacency == "replace_one":
            weights[17] = 1.0
            X[17], y[17] = ([1.5, 0, 0, 0], BOUNDS[1]) if weight else ([-1.5, 0, 0, 0], BOUNDS[1])
        linear(adjacency=adjacency, fit_intercept=False, data_norm=1.5).fit(X, y, sample_weight=weights)
    (one, mechanism), (other, _) = released
    moved = np.linalg.norm(one - other)
    # Opposite rows with one target are as far apart as z . v = (b**2 - 1) / (1 + b**2) allows.
    cosine = (normal_equations.TARGET**2 - 1) / (1 + normal_equations.TARGET**2)
    farthest = math.sqrt(2 - 2 * cosine**2) if adjacency == "replace_one" else 1.0
    assert moved == pytest.approx(farthest, rel=1e-9)
    assert mechanism.sensitivity == (1 / math.sqrt(2) if adjacency == "replace_one" else 1.0)


def test_a_target_beyond_its_bounds_is_one_at_the_bound():
    X, y = draw(200)
    y[3], y[4] = BOUNDS
    moved = y.copy()
    moved[3], moved[4] = -1e200, 1e200
    one, other = linear().fit(X, y), linear().fit(X, moved)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.intercept_ == other.intercept_


# --- the plain reading ------------------------------------------------------------------------------------------------


@over_rows("fit_intercept, n", [(True, 1), (False, 60), (True, 4100)])
def test_the_release_is_that_of_the_plain_reading(released, fit_intercept, n):
    released.clear()
    X, y = draw(n)
    X *= 2.0  # so that some rows are longer than 1.5
    weights = np.random.default_rng(1).uniform(0.0, 3.0, n)
    linear(fit_intercept=fit_intercept, data_norm=1.5, weight_bound=2.0).fit(X, y, sample_weight=weights)
    t = (y - 1.0) / 4.0 if fit_intercept else y / 5.0
    k = normal_equations.INTERCEPT if fit_intercept else 0.0
    plain = reference.least_squares_release(X, t, np.minimum(weights / 2.0, 1.0), 1.5, k, normal_equations.TARGET)
    np.testing.assert_allclose(released[0][0], plain, rtol=1e-6, atol=1e-6)  # `rounding` is 5e-10 in doubles


@over_rows("alpha", [0.0, 25.0, "auto"])
@over_rows("fit_intercept", [True, False])
def test_the_solution_is_that_of_the_plain_reading(alpha, fit_intercept):
    """At a noise that leaves some eigenvalues below the least one, and some above."""
    X, y = draw(4000)
    X[:, 3] = 0.01 * X[:, 2]
    with recording([]) as releases:
        model = DPRidge(alpha, y_bounds=BOUNDS, fit_intercept=fit_intercept, data_norm=2.0, random_state=0).fit(X, y)
    k, b, d = (normal_equations.INTERCEPT if fit_intercept else 0.0), normal_equations.TARGET, 4 + fit_intercept
    size = 1 + k**2 + b**2
    matrix = np.zeros((d + 1, d + 1))
    matrix[np.tri(d + 1, dtype=bool)] = size * releases[0].noisy / math.sqrt(2)
    matrix[np.diag_indices(d + 1)] *= math.sqrt(2)
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    deviation = GaussianMechanism(model.noise_multiplier_, 1.0).standard_deviation
    least = normal_equations.FLOOR * deviation * size * math.sqrt(2 * d)
    assert np.linalg.eigvalsh(matrix[:d, :d]).min() < least < np.linalg.eigvalsh(matrix[:d, :d]).max()
    ridge = normal_equations.AUTO_ALPHA * least if alpha == "auto" else alpha / 4.0
    theta = reference.least_squares_solution(matrix[:d, :d], matrix[d, :d] / b, least, ridge, fit_intercept)
    half, middle = (4.0, 1.0) if fit_intercept else (5.0, 0.0)
    np.testing.assert_allclose(model.coef_, theta[:4] * half / 2.0, rtol=1e-6)
    assert model.intercept_ == pytest.approx(middle + k * half * theta[-1] if fit_intercept else 0.0, rel=1e-6)
    assert model.alpha_ == pytest.approx(ridge * 4.0, rel=1e-6)


@over_rows("weighted", [False, True])
@over_rows("fit_intercept", [True, False])
def test_without_noise_it_is_the_one_of_scikit_learn(fit_intercept, weighted):
    """Up to six times what the least noise moves: 1.7e-3 on sums, 900 the least eigenvalue, 2 the scale of `coef_`."""
    noise = 6 * 2 * 1.7e-3 / 900
    X, y = draw(20_000)
    weights = np.random.default_rng(1).uniform(0.1, 1.0, 20_000) if weighted else None
    for ours, theirs in (
        (precise(fit_intercept=fit_intercept, random_state=0), LinearRegression(fit_intercept=fit_intercept)),
        (
            precise(DPRidge, alpha=50.0, fit_intercept=fit_intercept, random_state=0),
            Ridge(50.0, fit_intercept=fit_intercept),
        ),
    ):
        ours.fit(X, y, sample_weight=weights)
        theirs.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=noise)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=noise)
        np.testing.assert_allclose(ours.predict(X), np.clip(theirs.predict(X), *BOUNDS), rtol=0, atol=5 * noise)


# --- noise that is known ----------------------------------------------------------------------------------------------


@over_rows("noise, spread", [(1e-3, 0.3), (4.0, 0.3)])
def test_standard_errors_are_those_of_repeated_fits(noise, spread):
    """Rows, targets and noise are drawn anew; the sum of squared errors in units of the mean error is chi-squared.

    The rows keep every eigenvalue far above the least one, and noise on A of 1 % of the smallest. The errors follow the
    first order up to some of this, by which the limits are wider.
    """
    repeats, scores, ends = 50, [], []
    for seed in range(repeats):
        X, y = draw(20_000, seed=seed, spread=spread)
        model = precise(noise_multiplier=noise, random_state=seed).fit(X, y)
        scores.append((model.coef_ - TRUTH) / model.coef_std_)
        ends.append((model.intercept_ - 1.0) / model.intercept_std_)
    low, high = stats.chi2.interval(1 - FALSE_ALARM / 15, repeats)
    for found in [*np.transpose(scores), np.array(ends)]:
        assert 0.95 * low < np.sum(found**2) < 1.05 * high


# --- bounds of y ------------------------------------------------------------------------------------------------------


@over_rows("estimator", ESTIMATORS)
def test_bounds_read_from_y_are_a_leak_that_is_told_and_kept(estimator):
    X, y = draw(60)
    model = estimator()
    assert [each.reads for each in check_pipeline(model)] == [
        "reads its y_bounds from y, which is not covered by the privacy guarantee"
    ]
    with pytest.warns(PrivacyLeakWarning, match="`y_bounds` was not set"):
        model.fit(X, y)
    assert model.y_bounds_ == (y.min(), y.max())
    assert "bounds of the targets were read from `y`" in str(privacy_report(model))
    model.set_params(y_bounds=BOUNDS)
    assert check_pipeline(model) == []
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        model.fit(X, y)
    assert "bounds of the targets" not in str(privacy_report(model))


# --- bad input --------------------------------------------------------------------------------------------------------

X_GOOD, Y_GOOD = draw(40)


def changed(value):
    y = Y_GOOD.astype(type(value) if isinstance(value, complex) else object)
    y[7] = value
    return y


BAD_INPUT = [
    ({"y_bounds": 3}, {}, ["`y_bounds` must be"]),
    ({"y_bounds": (1, 2, 3)}, {}, ["`y_bounds` must be"]),
    ({"y_bounds": (1, 1)}, {}, ["`y_bounds` must be"]),
    ({"y_bounds": (0, math.inf)}, {}, ["`y_bounds[1]` must be"]),
    ({"y_bounds": ("0", 1)}, {}, ["`y_bounds[0]` must be"]),
    ({"alpha": -1}, {}, ["`alpha` must be", "'auto'"]),
    ({"alpha": "much"}, {}, ["`alpha` must be", "'auto'"]),
    ({}, {"y": None}, ["the target y is None"]),
    ({}, {"y": changed(math.nan)}, ["y contains NaN"]),
    ({}, {"y": changed(math.inf)}, ["y contains infinity"]),
    ({}, {"y": ["a"] * 40}, ["y contains strings"]),
    ({}, {"y": np.column_stack([Y_GOOD, Y_GOOD])}, ["y should be a 1d array"]),
    ({}, {"y": changed(1j)}, ["Complex data not supported"]),
    ({}, {"X": np.full((40, 4), math.nan)}, ["X contains NaN"]),
]


@over_rows("parameters, given, words", BAD_INPUT)
def test_bad_input_is_rejected_in_one_line_before_any_charge(parameters, given, words):
    parameters = {"y_bounds": BOUNDS, **parameters}
    assert_rejected(DPRidge, parameters, {"X": X_GOOD, "y": Y_GOOD, **given}, words, [str(Y_GOOD[7])])


# --- among scikit-learn's tools ---------------------------------------------------------------------------------------
