"""The table of a regression: what one row moves, whether intervals hold, and where there is none."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from linear_rows import assert_errors_are_standard
from replay import assert_all_else_is_equal, moves, replay
from scipy import stats

from skdp import DPLinearRegression, DPRidge, PrivacyAccountant
from skdp.exceptions import FitInterruptedWarning
from skdp.linear_model.inference import solve_without_bias
from skdp.linear_model.normal_equations import INTERCEPT, TARGET
from skdp.linear_model.scores import Equations, Noise, ScoreSum, Scoring

FALSE_ALARM = 1e-6
BOUNDS = (-3.0, 5.0)
TRUTH = np.array([2.0, -1.0, 0.0, 0.5, 1.0])  # the intercept last
ROOM = {"data_norm": 2.0, "random_state": 0, "delta": 1e-5, "inference": True}


def fitted(rows, estimator=DPLinearRegression, **parameters):
    X, y, *others = rows
    named = dict(zip(("sample_weight", "groups"), others, strict=False))
    return estimator(**{"y_bounds": BOUNDS, **ROOM, **parameters}).fit(X, y, **named)


def quiet(rows, estimator=DPLinearRegression, **parameters):
    return fitted(rows, estimator, **{"epsilon": None, "noise_multiplier": 1e-3, **parameters})


def draw(n, seed=0, groups=None):
    """Residuals that grow with the first column and, with groups, have a part in common."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    residuals = 0.3 * rng.uniform(-1.0, 1.0, n) * (0.5 + np.abs(X[:, 0]))
    if groups is not None:
        X = X[groups]  # rows of a group are alike
        residuals += 0.3 * rng.uniform(-1.0, 1.0, n)[groups]
    return X, X @ TRUTH[:4] + 1.0 + residuals


# --- one row, one unit ---

ROWS = {
    "far off": ([0.9, 0.9, 0.9, 0.9], -3.0, 1.0),
    "cut": ([1e9, -1e9, 0.0, 1.0], 1e300, 1.0),
    "overflowing": ([1.7e308] * 4, -1e300, 1.0),
    "heavy": ([0.5, 0.5, 0.5, 0.5], 5.0, 1e9),
    "zero": ([0.0] * 4, 5.0, 1.0),
}


@over_rows("size", [1, 2, 60])
@over_rows("limit", [None, 3])
@over_rows("row", ["far off", "cut", "zero", "of all signs"])
def test_one_group_moves_both_releases_by_their_sensitivity_and_nothing_else(row, limit, size):
    X, y = draw(200)
    X[-size:], y[-size:], _ = ROWS.get(row, ROWS["far off"])
    if row == "of all signs":
        X[-size:] *= np.random.default_rng(0).choice([-1.0, 1.0], (size, 4))
    groups = np.r_[np.arange(200 - size) // 2, np.full(size, 100)]
    gone = np.where(groups == 100, 0.0, 1.0)
    public = {"rows_per_group": limit, "weight_bound": 1.0}
    given, other = ((X, y, weights, groups) for weights in (np.ones(200), gone))
    first, second = replay(lambda rows: fitted(rows, **public), given, other)
    assert max(moves(first, second)) <= 1.0 + 1e-9
    assert max(moves(first, second)) > 0.999 or row != "far off" or size < 60  # so that nothing is bounded twice
    assert_all_else_is_equal(first, second)


@over_rows("limit", [None, 3])
def test_weight_of_a_group_follows_from_its_rows_and_not_from_targets(limit):
    """Else slopes are biased. Groups have 1 to 9 rows; without noise this is weighted least squares."""
    sizes = np.tile(np.arange(1, 10), 200)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X, y = draw(len(groups), groups=groups)
    found = quiet((X, y, None, groups), rows_per_group=limit).coef_
    lengths = (np.sum((X / 2.0) ** 2, axis=1) + INTERCEPT**2 + TARGET**2) / (1.0 + INTERCEPT**2 + TARGET**2)
    shares = np.minimum((limit or 1) / np.bincount(groups, lengths), 1.0)[groups]
    shares[sizes[groups] == 1] = 1.0
    rows, roots = np.c_[X, np.ones(len(X))], np.sqrt(shares)
    expected = np.linalg.lstsq(rows * roots[:, None], y * roots, rcond=None)[0]
    np.testing.assert_allclose(found, expected[:4], atol=1e-4)
    assert np.abs(expected - np.linalg.lstsq(rows, y, rcond=None)[0]).max() > 1e-3  # so that weights are seen


@over_rows("d", [8, 199])
def test_a_score_is_of_its_own_row_to_the_last_bit(d):
    """Matrix products round by the place of a row in its block, which a row that leaves changes."""
    rng = np.random.default_rng(0)
    z, how = rng.normal(size=(2048, d + 1)), Scoring(rng.normal(size=d), 1.0, 1.0, 1.0)
    scores = how.of_rows(z)
    assert all(np.array_equal(how.of_rows(z[k:]), scores[k:]) for k in (1, 2, 3, 5, 7, 100, 1001))


def test_a_row_reaches_the_sensitivity_of_scores():
    X, y = draw(200)
    X[17], y[17] = [2.0, 2.0, 2.0, 2.0], -9.0  # with a residual far beyond the clip, and cut
    one, other = replay(lambda given: fitted(given, noise_multiplier=0.1, epsilon=None), (X, y, np.ones(200)),
                        (X, y, np.arange(200) != 17))  # fmt: skip
    assert moves(one, other)[1] == pytest.approx(1.0, abs=1e-6)


# --- errors ---


def sandwich(X, y, groups):
    """The standard errors of least squares by the clustered sandwich, with the factor n / (n - d)."""
    rows = np.c_[X, np.ones(len(X))]
    bread = np.linalg.inv(rows.T @ rows)
    scores = rows * (y - rows @ (bread @ (rows.T @ y)))[:, None]
    sums = np.zeros((groups.max() + 1, 5))
    np.add.at(sums, groups, scores)
    n = len(sums)
    return np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread) * n / (n - 5))


@over_rows("estimator", [DPLinearRegression, DPRidge])
def test_without_noise_errors_are_those_of_the_sandwich(estimator):
    X, y = draw(4_000)
    frame = quiet((X, y), estimator).summary().to_frame()
    np.testing.assert_allclose(frame["std_err"], sandwich(X, y, np.arange(4_000)), rtol=1e-3)
    np.testing.assert_allclose(frame["coef"], TRUTH, atol=0.05)


def test_errors_of_units_are_clustered():
    """Rows of weight 1/2 in pairs: no unit is clipped, and equal weights leave all errors as they are."""
    groups = np.repeat(np.arange(2_000), 2)
    X, y = draw(4_000, groups=groups)
    model = quiet((X, y, np.full(4_000, 0.5), groups), weight_bound=1.0)
    errors = model.summary().to_frame()["std_err"].to_numpy()
    expected, apart = sandwich(X, y, groups), sandwich(X, y, np.arange(4_000))
    np.testing.assert_allclose(errors, expected, rtol=1e-3)
    assert expected.min() > 1.1 * apart.min()  # so that what is not clustered is seen


def test_scores_of_records_of_the_largest_weight_are_not_clipped():
    """A few records have most of the weight: rows of weight 1 among others, and groups of many equal rows."""
    heavy = np.random.default_rng(1).random(20_000) < 0.05
    X, y = draw(20_000)
    weights = np.where(heavy, 1.0, 0.01)
    found = quiet((X, y, weights), weight_bound=1.0).summary().to_frame()["std_err"]
    rows = np.c_[X, np.ones(len(X))]
    bread = np.linalg.inv((rows * weights[:, None]).T @ rows)
    scores = rows * (weights * (y - rows @ (bread @ (rows.T @ (weights * y)))))[:, None]
    np.testing.assert_allclose(found, np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread)), rtol=0.02)

    sizes = np.where(heavy[:4_000], 50, 1)
    groups = np.repeat(np.arange(4_000), sizes)
    X, y = (each[:4_000][groups] for each in (X, y))
    found = quiet((X, y, None, groups), rows_per_group=50).summary().to_frame()["std_err"]
    np.testing.assert_allclose(found, sandwich(X, y, groups), rtol=0.02)


def test_errors_are_those_of_repeated_fits():
    """The sum of squared errors in units of the standard error is chi-squared, to first order: 10 % wider."""
    scores = []
    for seed in range(40):
        frame = fitted(draw(600, seed), epsilon=None, noise_multiplier=1.0, random_state=seed).summary().to_frame()
        assert (frame["doubt"] == "").all()
        scores.append(((frame["coef"] - TRUTH) / frame["std_err"]).to_numpy())
    assert_errors_are_standard(scores, FALSE_ALARM / 10)


def test_the_noise_leaves_no_bias():
    """Of second order: at an eigenvalue of 2.5 times the edge it is far beyond the error of the mean of these draws."""
    rng, d, draws = np.random.default_rng(0), 5, 5_000
    deviation = 1.0
    truth = np.full(d, 3.0)
    gram = np.eye(d) * 2.5 * deviation * math.sqrt(2 * d)
    noise = Noise(deviation, deviation, deviation)
    found, plain = np.zeros((draws, d)), np.zeros((draws, d))
    for k in range(draws):
        lower = np.tril(rng.standard_normal((d, d)), -1) * deviation / math.sqrt(2)
        noisy = gram + lower + lower.T + np.diag(rng.standard_normal(d) * deviation)
        product = gram @ truth + rng.standard_normal(d) * deviation
        found[k] = solve_without_bias(Equations(noisy, product, 100.0, noise, 1000))
        plain[k] = np.linalg.solve(noisy, product)
    bias, of_plain = found.mean(axis=0) - truth, plain.mean(axis=0) - truth
    error = found.std(axis=0) / math.sqrt(draws)
    assert np.abs(of_plain).min() > 0.1
    assert np.abs(bias).max() < 0.25 * np.abs(of_plain).min() + stats.norm.isf(FALSE_ALARM / 10) * error.max()


# --- where there is no interval ---

DOUBTS = {
    "few rows": (100, {}, {}, "fewer than 30 rows"),
    "cut targets": (2_000, {"y_bounds": (-1.0, 1.5)}, {}, "rows are clipped"),
    "nobody knows": (2_000, {"data_norm": None, "epsilon": 0.4}, {}, "Set data_norm"),
    "noise": (2_000, {"epsilon": 0.05}, {}, "noise hides"),
    "constant column": (20_000, {}, {1: 0.0}, "noise hides this column"),
}


@over_rows("kind", DOUBTS)
def test_a_line_without_an_interval_says_why(kind):
    n, parameters, columns, words = DOUBTS[kind]
    X, y = draw(n)
    for column, value in columns.items():
        X[:, column] = value
    table = fitted((X, y), **parameters).summary()
    frame = table.to_frame()
    line = frame.iloc[1]
    assert words in line["doubt"]
    assert frame.loc[frame["doubt"] != "", "std_err":"high"].isna().all(axis=None)
    assert np.isfinite(frame["coef"]).all()
    assert f"no interval: {line['doubt']}" in str(table)


def test_a_well_scaled_table_has_all_intervals():
    frame = fitted(draw(5_000)).summary(level=1 - 2e-7).to_frame()  # five intervals: 1e-6 false alarms
    assert (frame["doubt"] == "").all()
    assert ((frame["low"] < TRUTH) & (frame["high"] > TRUTH)).all()


def test_interrupt_in_standard_errors_keeps_coefficients(monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(ScoreSum, "add", interrupted)
    accountant = PrivacyAccountant()
    with pytest.warns(FitInterruptedWarning, match="before that of their standard errors. The model up to this point"):
        model = fitted(draw(5_000), accountant=accountant)
    assert np.isfinite(model.coef_).all()
    assert accountant.get_epsilon(model.delta_) == pytest.approx(model.epsilon_)
    with pytest.raises(ValueError, match="summary is not available"):
        model.summary()


# --- how it is shown ---


@pytest.fixture(scope="module")
def named():
    X, y = draw(5_000)
    return fitted((pd.DataFrame(X, columns=["age", "a_b", "<i>", "50%"]), y))


def test_the_table_adds_up(named):
    frame = named.summary().to_frame()
    assert list(frame.index) == ["age", "a_b", "<i>", "50%", "(intercept)"]
    np.testing.assert_allclose(frame["std_err"] ** 2, frame["sampling"] ** 2 + frame["noise"] ** 2)
    np.testing.assert_allclose(frame["noise_fraction"], frame["noise"] ** 2 / frame["std_err"] ** 2)
    np.testing.assert_allclose(frame["high"] - frame["low"], 2 * stats.norm.isf(0.025) * frame["std_err"])
    np.testing.assert_allclose(frame["p"], 2 * stats.norm.sf(np.abs(frame["coef"] / frame["std_err"])))
    at_once = named.summary(simultaneous=True, level=0.9).to_frame()
    np.testing.assert_allclose(at_once["high"] - at_once["low"], 2 * stats.norm.isf(0.01) * frame["std_err"])
    assert pickle.loads(pickle.dumps(named)).summary().to_frame().equals(frame)


def test_text_html_and_latex_show_the_same(named):
    table = named.summary()
    text, html, latex = str(table), table.to_html(), table.to_latex()
    assert html == table._repr_html_()
    low = f"{table.to_frame().loc['a_b', 'low']:.4g}"
    for shown, name in ((text, "a_b"), (html, "a_b"), (latex, r"a\_b")):
        assert low in shown
        assert name in shown
        assert "epsilon=1, delta=1e-05, privacy unit: one row" in shown
        assert "[0.025" in shown
    assert "&lt;i&gt;" in html
    assert "<i>" not in html
    assert r"\textless{}i\textgreater{}" in latex
    assert r"50\%" in latex
    assert max(map(len, text.splitlines())) < 120


def test_coefficients_are_scaled_back_by_public_units():
    """As narrow columns are scaled up by public bounds, in which they have intervals that they had not."""
    X, y = draw(3_000)
    units = np.array([0.02, 1.0, 1.0, 0.5])
    frame = fitted((X, y)).summary(scales=units).to_frame()
    same = fitted((X, y)).summary().to_frame()
    assert (frame["doubt"] == "").all()
    by = np.append(1.0 / units, 1.0)
    for name in ("coef", "std_err", "sampling", "noise", "low", "high"):
        np.testing.assert_allclose(frame[name], same[name] * by)
    for name in ("z", "p", "noise_fraction"):
        np.testing.assert_allclose(frame[name], same[name])
    assert "noise hides" in fitted((X * units, y)).summary().to_frame()["doubt"].iloc[0]


# --- rejections ---


BAD_TABLES = [
    *(
        ({"scales": units}, "`scales` must be .* 4 positive numbers")
        for units in ([1.0], [1.0, -1.0, 1.0, 1.0], "much")
    ),
    *(({"names": names}, "`names` must be a list of 4 names") for names in ("abcd", ["a", "b"], 4)),
    *(({"level": level}, "`level` must be a number in") for level in (0, 1, "much")),
]


@over_rows("parameters, message", BAD_TABLES)
def test_bad_parameters_of_a_summary_are_rejected(named, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        named.summary(**parameters)


def test_rows_that_are_read_once_are_rejected_before_any_charge(tmp_path):
    X, y = draw(60)
    np.save(tmp_path / "x.npy", X)
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match="inference=True requires rows in memory"):
        fitted((np.load(tmp_path / "x.npy", mmap_mode="r"), y), accountant=accountant)
    limited = {"inference": False, "rows_per_group": 2, "accountant": accountant}
    with pytest.raises(ValueError, match="rows_per_group=2 requires rows in memory"):
        fitted((np.load(tmp_path / "x.npy", mmap_mode="r"), y, None, np.arange(60)), **limited)
    with pytest.raises(ValueError, match="rows_per_group=2 requires `groups`"):
        fitted((X, y), **limited)
    assert accountant.history == ()


@over_rows("groups", [None, np.arange(1000) // 2])
def test_coefficient_table_with_groups_states_estimand(groups):
    X, y = draw(1000)
    table = DPLinearRegression((-1, 1), inference=True).fit(X, y, groups=groups).summary()
    shown = str(table), table.to_html(), table.to_latex(), str(table.to_frame().attrs)
    stated = "each group has at most the weight of one row of the largest norm"
    assert [stated in each for each in shown] == [groups is not None] * 4
