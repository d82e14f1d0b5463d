"""Private evaluation of regressors: what a row adds, what follows from it, and how near that is."""

import numpy as np
import pytest
from relations import with_n_public
from scipy.stats import binom
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp import PrivacyAccountant
from skdp.accounting import DiscreteLaplaceDpEvent
from skdp.metrics import RegressionEvaluation, evaluate, regression
from skdp.metrics.histogram_evaluation import GRID

N = 400
BOUNDS = (-1.0, 3.0)


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    y = rng.uniform(*BOUNDS, N)
    return y + rng.normal(0, 0.5, N), y


def evaluated(predicted, y, **given):
    return evaluate(None, predicted, y, **{"epsilon": 1.0, "y_bounds": BOUNDS, **given})


def test_the_table_without_noise_has_the_figures_of_the_rows(people, exact):
    """With bins of a sixth of an octave: squared errors to 1 %, and the targets exactly."""
    predicted, y = people
    found = evaluated(predicted, y, n_bins=43)
    found.__dict__["_fitted_terms"] = (*BOUNDS, 1e-9)  # else bins that hold a row or two count as noise
    error = np.abs(np.clip(predicted, *BOUNDS) - y)
    assert found.mean_squared_error.value == pytest.approx(np.mean(error**2), rel=0.01)
    assert found.mean_absolute_error.value == pytest.approx(np.mean(error), rel=0.005)
    assert found.mean_target.value == pytest.approx(y.mean(), abs=1e-4)
    assert found.r2.value == pytest.approx(1 - np.mean(error**2) / y.var(), abs=0.005)
    assert found.error_quantile(0.9).value == pytest.approx(np.quantile(error, 0.9), rel=0.05)
    assert found.root_mean_squared_error.value**2 == pytest.approx(found.mean_squared_error.value)
    counts = np.histogram(error / 4.0, regression.edges(43))[0]
    np.testing.assert_array_equal(exact[0][0, :-2], 4 * GRID * counts)
    sums = [np.sum((y - 1) / 4), np.sum((y - 1) ** 2 / 4 - 0.5)]
    np.testing.assert_allclose(exact[0][0, -2:] / GRID, sums, atol=N / GRID)


@pytest.mark.parametrize("t", [-1.0, -0.75, 0.0, 0.25, 2**-0.5, 7.0, -7.0])
@pytest.mark.parametrize("predicted", [0.0, 9.0, np.nan])
def test_a_row_adds_five_parts_at_most(exact, t, predicted):
    """By target and prediction; a row beyond the bounds is one at them."""
    weights = np.array([1.0, 0.3])
    for weight in weights:
        evaluated([predicted], [1.0 + 2.0 * t], sample_weight=[weight], weight_bound=1.0)
        moved = exact.pop()
        assert moved[0, :-2].sum() == 4 * np.floor(weight * GRID)
        assert np.abs(moved[0, -2:]).sum() <= np.floor(weight * GRID)
        assert np.abs(moved).sum() <= 5 * GRID


def test_one_unit_moves_the_sums_by_a_row(people, exact):
    predicted, y = people
    groups = np.arange(N) // 8
    near = np.where(groups == 3, BOUNDS[1], y)
    for target in (y, near):
        evaluated(predicted, target, groups=groups, by=groups % 3, categories=[0, 1])
    weights = np.where(groups == 3, 0.0, 1.0)
    evaluated(predicted, y, groups=groups, by=groups % 3, categories=[0, 1], sample_weight=weights, weight_bound=1)
    assert 0 < np.abs(exact[0] - exact[1]).sum() <= 2 * 5 * GRID
    assert 0 < np.abs(exact[0] - exact[2]).sum() <= 5 * GRID
    assert np.linalg.norm(exact[0] - exact[1]) <= 6 * GRID


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
def test_all_figures_together_cost_epsilon(people, adjacency):
    accountant = PrivacyAccountant(1.0, 1e-6)
    found = evaluated(*people, epsilon=0.3, adjacency=with_n_public(adjacency, N), accountant=accountant, n_bins=9)
    assert 0.2999 < found.epsilon_ <= 0.3
    (charge,) = accountant.history
    assert isinstance(charge.event, DiscreteLaplaceDpEvent)
    assert charge.event.noise_parameter * charge.event.sensitivity == pytest.approx(
        0.3 / (1 + (adjacency == "replace_one"))
    )
    factor = 2 if adjacency == "replace_one" else 1
    assert found.noise_deviation_ == pytest.approx(np.sqrt(2) * factor * 5 / 4 / 0.3, rel=1e-3)
    assert found.noisy_counts_.shape == (1, 11)


def test_a_model_is_asked_for_its_predictions(people):
    predicted, y = people
    model = LinearRegression().fit(predicted[:, None], y)
    found = skdp.evaluate(model, predicted[:, None], y, epsilon=100.0, y_bounds=BOUNDS)
    assert isinstance(found, RegressionEvaluation)
    assert 0.7 < found.r2.value < 1.0
    assert "r2" in repr(found)
    ours = skdp.DPRidge(y_bounds=BOUNDS, epsilon=50.0).fit(predicted[:, None], y)
    for each in (ours, make_pipeline(FunctionTransformer(), ours)):
        assert evaluate(each, predicted[:, None], y, epsilon=100.0).y_bounds_ == BOUNDS
    with pytest.raises(ValueError, match="`y_bounds` must be set"):
        evaluate(model, predicted[:, None], y, epsilon=1.0)
    with pytest.raises(TypeError, match="fitted model with predict"):
        evaluate(object(), predicted[:, None], y, epsilon=1.0, y_bounds=BOUNDS)


@pytest.mark.parametrize("y", [np.full(60, 3.0), np.full(60, 1.0), np.linspace(-1, 3, 60)])
@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove"])
def test_no_data_are_rejected_and_figures_stay_within_bounds(y, adjacency):
    given = {"adjacency": with_n_public(adjacency, 60), "by": y > 1, "categories": [True, "none"]}
    found = evaluated(np.full(60, np.nan), y, **given)
    for figures in (found, *found.subgroups.values()):
        for each in (*figures.summary().values(), figures.prediction_interval(), figures.mean_squared_error):
            assert np.isfinite([each.value, each.high, each.standard_error]).all()  # R^2 may have no lower end
            assert each.low <= each.value <= each.high
        assert 0.0 <= figures.mean_absolute_error.low <= figures.mean_absolute_error.high <= 4.0


def test_conformal_intervals_hold_their_share():
    """The order of a quantile is that of n + 1 rows, and the whole range where rows are too few."""
    assert regression.conformal_order(99, 0.1) == 90 / 99
    assert regression.conformal_order(5, 0.1) == 1.0
    rng = np.random.default_rng(0)
    y = rng.uniform(*BOUNDS, 20_000)
    error = np.clip(rng.normal(0, 0.3, 20_000), -0.9, 0.9)
    mid = np.clip(y, 0, 2)
    found = evaluated(np.clip(mid + error, *BOUNDS), mid, random_state=0)
    half = found.prediction_interval(0.1).value
    assert np.mean(np.abs(error) <= half) == pytest.approx(0.9, abs=0.01)


def skewed(n, seed):
    """Expected and actual counts, of which the bounds are 77."""
    rng = np.random.default_rng(seed)
    expected = 2.86 * rng.gamma(1, 1, n)
    return expected, rng.poisson(expected).clip(0, 77)


def test_intervals_of_skewed_targets_cover_r2():
    """Nominally 95%: at most so few misses as happen once in a million at 90%."""
    repeats, predicted, y = 30, *skewed(200_000, 1)
    truth = 1 - np.mean((predicted - y) ** 2) / y.var(), y.mean(), np.median(np.abs(predicted - y))
    rng, covered = np.random.default_rng(0), np.zeros(3)
    for seed in range(repeats):
        rows = rng.integers(0, len(y), 5_000)
        found = evaluate(None, predicted[rows], y[rows], epsilon=1.0, y_bounds=(0, 77), random_state=seed)
        shown = found.r2, found.mean_target, found.median_absolute_error
        covered += [each.low <= value <= each.high for each, value in zip(shown, truth, strict=True)]
    assert covered.min() >= binom.ppf(1e-6, repeats, 0.9)
