"""Newton steps for classes and counts: what one row moves, whether intervals hold, and where there is none."""

import re

import numpy as np
import pytest
from combinations import over_rows
from linear_rows import assert_errors_are_standard, fit_copy
from rejections import assert_rejected
from scipy import stats
from scipy.special import expit

from skdp import DPLogisticRegression, DPPoissonRegressor, PrivacyAccountant
from skdp.linear_model import newton
from skdp.linear_model.likelihoods import LIKELIHOODS
from skdp.linear_model.newton import BoundRows, RowScale
from skdp.linear_model.scores import ScoreSum

FALSE_ALARM = 1e-6
TRUTH = np.array([1.0, -0.6, 0.0, 0.4, -0.3])  # the intercept last
ROOM = {"data_norm": 2.0, "random_state": 0, "delta": 1e-5}
MODELS = {
    "classes": DPLogisticRegression(classes=[0, 1], inference=True, **ROOM),
    "counts": DPPoissonRegressor((0, 12), **ROOM),
}
BOTH = over_rows("kind", MODELS)
MEANS = {"classes": expit, "counts": np.exp}


def fitted(kind, rows, **parameters):
    return fit_copy(MODELS[kind], rows, **parameters)


def quiet(kind, rows, **parameters):
    return fitted(kind, rows, **{"epsilon": None, "noise_multiplier": 1e-3, **parameters})


def draw(kind, n, seed=0, groups=None, steepness=1.0):
    """Rows; with groups, those of one group have the same columns and, half of the time, the same target."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    chance = rng.random(n)
    if groups is not None:
        X, chance = X[groups], np.where(rng.random(n) < 0.5, chance[groups], chance)
    eta = steepness * (X @ TRUTH[:4] + TRUTH[4])
    return X, (chance < expit(eta)).astype(int) if kind == "classes" else stats.poisson.ppf(chance, np.exp(eta))


def without_privacy(kind, X, y, groups=None, offset=0.0, weights=1.0):
    """Coefficients of maximum likelihood, and their errors by the clustered sandwich with the factor n / (n - d)."""
    rows, theta = np.c_[X, np.ones(len(X))], np.zeros(X.shape[1] + 1)
    for _ in range(20):
        mean = MEANS[kind](rows @ theta + offset)
        slope = weights * (mean * (1.0 - mean) if kind == "classes" else mean)
        bread = np.linalg.inv((rows * slope[:, None]).T @ rows)
        theta += bread @ (rows.T @ (weights * (y - mean)))
    groups = np.arange(len(X)) if groups is None else groups
    sums = np.zeros((groups.max() + 1, len(theta)))
    np.add.at(sums, groups, rows * (weights * (y - MEANS[kind](rows @ theta + offset)))[:, None])
    n = len(sums)
    return theta, np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread) * n / (n - len(theta)))


# --- one row, one unit ---


@over_rows("name", LIKELIHOODS)
def test_score_and_curvature_are_together_no_longer_than_one(name):
    likelihood = LIKELIHOODS[name]
    for t in (0.0, 0.3, 1.0):
        eta = np.linspace(-30.0, 30.0, 20_001)
        mean = likelihood.mean(eta)
        norms = np.hypot(t - mean, likelihood.curvature_weight * likelihood.slope(mean))
        assert norms.max() <= 1.0
        if t != 0.3:
            assert norms.max() > 0.999


@over_rows("likelihood", LIKELIHOODS.values())
def test_a_row_of_weight_0_adds_nothing_and_others_in_proportion(likelihood):
    X, y = draw("classes", 50)
    theta, weights = np.array([0.3, -0.2, 0.1, 0.0, -0.5]), np.linspace(0.0, 1.0, 50)
    scale = RowScale(2.0, 0.5)
    found = BoundRows(X, y, weights, None, scale, likelihood).sums(theta)
    single = [BoundRows(X[k : k + 1], y[k : k + 1], 1.0, None, scale, likelihood).sums(theta) for k in range(50)]
    np.testing.assert_allclose(found, weights @ np.array(single))


@BOTH
def test_a_unit_is_weighted_by_its_rows_and_never_by_its_targets(kind):
    rng = np.random.default_rng(0)
    groups = np.sort(rng.integers(0, 40, 200))
    X, y = draw(kind, 200)
    likelihood = LIKELIHOODS["logistic" if kind == "classes" else "poisson"]
    from skdp._checks.groups import read_units

    bound = [
        BoundRows(X, t, 1.0, read_units(groups, 200), RowScale(2.0, 0.5), likelihood) for t in (y / 8, 1.0 - y / 8)
    ]
    np.testing.assert_array_equal(bound[0].weights, bound[1].weights)
    z = bound[0].with_targets(slice(0, 200))[:, :-1]
    lengths = np.bincount(groups, bound[0].weights * np.linalg.norm(z, axis=1))
    assert lengths.max() <= 1.0
    assert np.median(lengths) > 0.99
    single = BoundRows(X, y / 8, 1.0, read_units(np.arange(200), 200), RowScale(2.0, 0.5), likelihood)
    assert (single.weights == 1.0).all()


# --- errors ---
# Estimates are those of the last steps and not of as many as it takes: .15 of an error is where they are equal, and
# errors, which are of the curvature of these steps, are within 2 or 3 %.


@BOTH
def test_without_noise_it_is_maximum_likelihood_with_the_sandwich(kind):
    X, y = draw(kind, 4_000)
    model = quiet(kind, (X, y))
    frame = model.summary().to_frame()
    theta, errors = without_privacy(kind, X, y)
    np.testing.assert_allclose((frame["coef"] - theta) / errors, 0.0, atol=0.15)
    np.testing.assert_allclose(frame["std_err"], errors, rtol=0.02)
    np.testing.assert_allclose(np.append(np.ravel(model.coef_), model.intercept_), frame["coef"])
    np.testing.assert_allclose(np.ravel(model.coef_noise_), frame["noise"].iloc[:-1])


@BOTH
def test_errors_of_units_are_clustered(kind):
    """Rows of weight 1/2 in pairs: no unit is too long, and equal weights leave all errors as they are."""
    groups = np.repeat(np.arange(2_000), 2)
    X, y = draw(kind, 4_000, groups=groups)
    frame = quiet(kind, (X, y, np.full(4_000, 0.5), groups), weight_bound=1.0).summary().to_frame()
    expected, apart = without_privacy(kind, X, y, groups)[1], without_privacy(kind, X, y)[1]
    np.testing.assert_allclose(frame["std_err"], expected, rtol=0.02)
    assert expected.min() > 1.1 * apart.min()  # so that what is not clustered is seen


@BOTH
@over_rows("heavy", ["rows", "groups"])
def test_errors_hold_where_few_records_have_most_of_the_weight(kind, heavy):
    """Rows of weight 1 among others of .01, and groups of 50 equal rows among others of one."""
    chosen = np.random.default_rng(1).random(20_000 if heavy == "rows" else 4_000) < 0.05
    X, y = draw(kind, len(chosen))
    groups, weights = np.arange(len(X)), np.where(chosen, 1.0, 0.01)
    if heavy == "groups":
        groups = np.repeat(groups, np.where(chosen, 50, 1))
        X, y, weights = X[groups], y[groups], np.ones(len(groups))
        frame = quiet(kind, (X, y, None, groups), rows_per_group=50).summary().to_frame()
    else:
        frame = quiet(kind, (X, y, weights), weight_bound=1.0).summary().to_frame()
    theta, errors = without_privacy(kind, X, y, groups, weights=weights)
    np.testing.assert_allclose((frame["coef"] - theta) / errors, 0.0, atol=0.15)
    np.testing.assert_allclose(frame["std_err"], errors, rtol=0.02 if kind == "classes" else 0.12)


def test_rows_per_group_leaves_no_bias_of_group_sizes():
    """The second slope grows with the size of a group; at epsilon 4, as weights of one row a group would bias it."""
    rng = np.random.default_rng(0)
    sizes = np.minimum(rng.geometric(0.25, 4_000), 10)
    groups = np.repeat(np.arange(4_000), sizes)
    X = rng.uniform(-1.0, 1.0, (len(groups), 4))
    eta = -0.4 + X @ [0.0, 0.3, -0.5, 0.2] + 0.12 * (sizes[groups] - 4) * X[:, 1] + 0.7 * rng.normal(size=4_000)[groups]
    y = (rng.random(len(groups)) < expit(eta)).astype(int)
    pooled = without_privacy("classes", X, y, groups)[0][1]
    tables = [fitted("classes", (X, y, None, groups), rows_per_group=limit, epsilon=4.0).summary() for limit in (1, 10)]
    one, ten = (table.to_frame().loc["x1"] for table in tables)
    assert ten["low"] < pooled < ten["high"]
    assert abs(ten["coef"] - pooled) < 0.1 < 0.15 < abs(one["coef"] - pooled)
    assert "each group has at most the weight of 10 rows" in str(
        fitted("classes", (X, y, None, groups), rows_per_group=10).summary()
    )


@BOTH
def test_errors_are_those_of_repeated_fits(kind):
    """The sum of squared errors in units of the standard error is chi-squared, to first order: 10 % wider."""
    repeats, scores = 40, []
    for seed in range(repeats):
        rows, given = draw(kind, 800, seed), {"epsilon": None, "noise_multiplier": 0.8, "random_state": seed}
        frame = fitted(kind, rows, **given).summary().to_frame()
        scores.append(((frame["coef"] - TRUTH) / frame["std_err"]).to_numpy())
    assert_errors_are_standard(scores, FALSE_ALARM / 10)


def test_a_rate_of_an_exposure_has_the_offset_of_its_logarithm():
    rng = np.random.default_rng(0)
    X, exposure = rng.uniform(-1.0, 1.0, (4_000, 4)), rng.uniform(0.2, 2.0, 4_000)
    y = rng.poisson(exposure * np.exp(X @ TRUTH[:4] + TRUTH[4]))
    frame = quiet("counts", (X, y / exposure, exposure), weight_bound=2.0, y_bounds=(0, 40)).summary().to_frame()
    theta, errors = without_privacy("counts", X, y, offset=np.log(exposure))
    np.testing.assert_allclose((frame["coef"] - theta) / errors, 0.0, atol=0.15)
    np.testing.assert_allclose(frame["std_err"], errors, rtol=0.03)


def test_counts_are_predicted_by_the_exponential_between_their_bounds():
    X, y = draw("counts", 1_000)
    model = quiet("counts", (X, y), y_bounds=(1, 8))
    expected = np.clip(np.exp(X @ model.coef_ + model.intercept_), 1, 8)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    assert model.predict(np.full((1, 4), 1e9)) <= 8


# --- where there is no interval ---

DOUBTS = {
    "few rows": (100, {}, {}, "fewer than 30 rows"),
    "cut rows": (2_000, {"data_norm": 0.8}, {}, "rows are clipped by data_norm"),
    "nobody knows": (2_000, {"data_norm": None, "epsilon": 0.4}, {}, "Set data_norm"),
    "constant column": (20_000, {}, {1: 0.0}, "noise hides this column"),
}


@BOTH
@over_rows("doubt", DOUBTS)
def test_a_line_without_an_interval_says_why(kind, doubt):
    n, parameters, columns, words = DOUBTS[doubt]
    X, y = draw(kind, n)
    for column, value in columns.items():
        X[:, column] = value
    table = fitted(kind, (X, y), **parameters).summary()
    frame = table.to_frame()
    line = frame.iloc[1]
    assert re.search(words, line["doubt"])
    assert frame.loc[frame["doubt"] != "", "std_err":"high"].isna().all(axis=None)
    assert np.isfinite(frame["coef"]).all()
    assert f"no interval: {line['doubt']}" in str(table)


@BOTH
def test_a_well_scaled_table_has_all_intervals(kind):
    table = fitted(kind, draw(kind, 8_000)).summary(level=1 - 2e-7)  # five intervals: 1e-6 false alarms
    frame = table.to_frame()
    assert (frame["doubt"] == "").all()
    assert ((frame["low"] < TRUTH) & (frame["high"] > TRUTH)).all()
    assert ("the log-odds of class 1" if kind == "classes" else "the logarithm of the mean") in str(table)


# --- rejections, and runs that end early ---

REJECTED = {
    "no switch": ({"inference": "yes"}, [0, 1], ["`inference` must be True or False", "'yes'"]),
    "a step size": ({"learning_rate": 0.1}, [0, 1], ["learning_rate=0.1", "'auto'"]),
    "a penalty": ({"alpha": 1.0}, [0, 1], ["alpha=1.0", "0.0"]),
    "lots": ({"lot_size": 10}, [0, 1], ["lot_size=10", "None"]),
    "a checkpoint": ({"checkpoint": "run"}, [0, 1], ["checkpoint", "inference=False"]),
}


@over_rows("why", REJECTED)
def test_what_newton_steps_do_not_take_is_rejected_before_any_charge(why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameters, labels, words = REJECTED[why]
    X, _ = draw("classes", 60)
    given = {"classes": [0, 1], "inference": True, **parameters}
    assert_rejected(DPLogisticRegression, given, {"X": X, "y": np.resize(labels, 60)}, words, [])


def test_too_many_columns_and_negative_bounds_are_rejected():
    wide = {"X": np.zeros((60, 201)), "y": np.resize([0, 1], 60)}
    assert_rejected(DPLogisticRegression, {"classes": [0, 1], "inference": True}, wide, ["201 columns", "200"], [])
    X, y = draw("counts", 60)
    assert_rejected(DPPoissonRegressor, {"y_bounds": (-1, 5)}, {"X": X, "y": y}, ["y_bounds"], [])


def test_rows_per_group_requires_groups_and_inference():
    X, y = draw("classes", 60)
    given = {"X": X, "y": y, "groups": np.arange(60)}
    alone = {"classes": [0, 1], "rows_per_group": 3}
    assert_rejected(DPLogisticRegression, alone, given, ["rows_per_group=3 requires inference=True"], [])
    assert_rejected(
        DPPoissonRegressor, {"y_bounds": (0, 1), "rows_per_group": 0}, given, ["`rows_per_group` must be", "got 0"], []
    )
    del given["groups"]
    assert_rejected(
        DPLogisticRegression, {**alone, "inference": True}, given, ["rows_per_group=3 requires `groups`"], []
    )


def test_no_run_continues_newton_steps():
    rows = draw("classes", 60)
    model = fitted("classes", rows)
    with pytest.raises(ValueError, match="inference=True does not support warm_start"):
        model.partial_fit(*rows)
    with pytest.raises(ValueError, match="inference=True does not support warm_start"):
        model.set_params(warm_start=True).fit(*rows)
    with pytest.raises(ValueError, match="cannot be continued"):
        model.set_params(inference=False).fit(*rows)
    model.set_params(warm_start=False).fit(*rows)
    with pytest.raises(ValueError, match="summary is not available"):
        model.summary()


def test_an_interrupt_leaves_the_steps_that_are_done_and_the_whole_charge(monkeypatch):
    steps, count = newton.next_theta, []

    def interrupted(*given):
        count.append(given)
        if len(count) == 2:
            raise KeyboardInterrupt
        return steps(*given)

    monkeypatch.setattr(newton, "next_theta", interrupted)
    accountant = PrivacyAccountant()
    with pytest.warns(UserWarning, match="after 1 of 8 steps"):
        model = fitted("classes", draw("classes", 2_000), accountant=accountant)
    assert model.n_steps_ == 1
    assert np.isfinite(model.coef_).all()
    assert accountant.get_epsilon(1e-5) == pytest.approx(model.epsilon_)
    with pytest.raises(ValueError, match="summary is not available"):
        model.summary()


def test_interrupt_in_standard_errors_keeps_coefficients(monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(ScoreSum, "add", interrupted)
    accountant = PrivacyAccountant()
    with pytest.warns(UserWarning, match="before that of the standard errors. The model up to this point is kept"):
        model = fitted("counts", draw("counts", 2_000), accountant=accountant)
    assert np.isfinite(model.coef_).all()
    assert accountant.get_epsilon(1e-5) == pytest.approx(model.epsilon_)
    with pytest.raises(ValueError, match="summary is not available"):
        model.summary()


def flags(kind, share, n=20_000):
    """Rows of which `share` have a flag, which moves log-odds by 3, of few that have the class; or means by e."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    X[:, 0] = np.where(rng.random(n) < share, 1.0, -1.0)
    if kind == "counts":
        return X, rng.poisson(np.exp(0.5 * X[:, 0] - 0.5))
    return X, (rng.random(n) < expit(1.5 * X[:, 0] + 0.4 * X[:, 1] - 2.0)).astype(int)


@BOTH
def test_a_flag_that_few_rows_have_is_reached(kind):
    """Steps from a guess by a law of eta, or by the mean, leave for log-odds of -30."""
    X, y = flags(kind, 0.03)
    frame = quiet(kind, (X, y)).summary().to_frame()
    theta, errors = without_privacy(kind, X, y)
    assert (frame["doubt"] == "").all()
    np.testing.assert_allclose((frame["coef"] - theta) / errors, 0.0, atol=0.2)
