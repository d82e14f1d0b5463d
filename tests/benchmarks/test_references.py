"""The references of the contest: sensitivities by one row less, costs, and what is left of them without noise."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp.accounting import ComposedDpEvent, GaussianDpEvent, get_delta, get_epsilon

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import references  # noqa: E402

NORM, DELTA = 2.0, 1e-5
BOOSTED = {"y_bounds": (-3.0, 5.0)}


@pytest.fixture(scope="module")
def rows():
    """Rows of a norm up to 3, which are clipped at 2, labels, and targets; the first row is at its worst."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    X[0] = [3.0, 0, 0, 0]
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=300) / 2 > 0).astype(int)
    y[0] = 0
    target = 1.0 + X @ [0.5, -0.5, 0.2, 0.0] + rng.uniform(-0.5, 0.5, 300)
    target[0] = 5.0
    return X, y, target


def made(name, epsilon, **more):
    given = BOOSTED if name == "BoostedAdaSSP" else {}
    return getattr(references, name)(
        epsilon=epsilon, delta=DELTA, norm=NORM, n_rows=300, random_state=0, **given, **more
    )


def labels(name, rows):
    return rows[2] if name == "BoostedAdaSSP" else rows[1]


class Replay(references.Noise):
    """Gives out what another fit released, so that one row is all that differs."""

    def __init__(self, outputs):
        super().__init__(0)
        self.outputs = list(outputs)

    def release(self, value, sensitivity, multiplier):
        super().release(value, sensitivity, multiplier)
        return self.outputs[len(self.releases) - 1]


class Recorded(references.Noise):
    def __init__(self, seed):
        super().__init__(seed)
        self.outputs = []

    def release(self, value, sensitivity, multiplier):
        self.outputs.append(super().release(value, sensitivity, multiplier))
        return self.outputs[-1]


def released(name, rows, monkeypatch):
    """Releases with all rows, and without the first one."""
    X, y = rows[0], labels(name, rows)
    monkeypatch.setattr(references, "Noise", Recorded)
    with_row = made(name, 8.0).fit(X, y).noise_
    monkeypatch.setattr(references, "Noise", lambda seed: Replay(with_row.outputs))
    return with_row.releases, made(name, 8.0).fit(X[1:], y[1:]).noise_.releases


@pytest.mark.parametrize(("name", "count"), [("DoubleNoiseNewton", 48), ("BoostedAdaSSP", 12)])
def test_one_row_moves_a_release_by_its_sensitivity(name, count, rows, monkeypatch):
    with_row, without = released(name, rows, monkeypatch)
    assert len(with_row) == len(without) == count
    moved = [np.linalg.norm(a - b) for (a, _, _), (b, _, _) in zip(with_row, without, strict=True)]
    said = [each[1:] for each in with_row]
    assert said == [each[1:] for each in without]
    assert all(0 < m <= s * (1 + 1e-9) for m, (s, _) in zip(moved, said, strict=True))
    longest = (NORM**2 + 1) ** 0.5
    if name == "BoostedAdaSSP":  # reached in the first round, where the residual of the row is 1
        assert moved[2] == pytest.approx(longest, rel=1e-9)
        assert moved[1] > 0.8 * longest**2
    else:  # half of it at 0, where the probability is 1/2
        assert moved[0] == pytest.approx(longest / 2, rel=1e-9)


@pytest.mark.parametrize("name", ["DoubleNoiseNewton", "BoostedAdaSSP"])
def test_the_releases_cost_the_budget(name, rows):
    multipliers = [each[2] for each in made(name, 1.0).fit(rows[0], labels(name, rows)).noise_.releases]
    cost = get_epsilon(ComposedDpEvent([GaussianDpEvent(each) for each in multipliers]), DELTA)
    assert 0.998 < cost <= 1.0


def density(theta, y, sigma, penalty):
    """Of the minimum over one number, the intercept, on its way from b."""
    p = expit(theta)
    slope = len(y) * p * (1 - p) + penalty
    return norm.pdf((len(y) * p - y.sum()) + penalty * theta, scale=sigma) * slope


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_price_of_objective_perturbation_by_integration(epsilon):
    """Densities of the minimum with a row and without it, both ways: no more than delta, and more with less noise."""
    model = references.ObjectivePerturbation(epsilon, 1e-3, 0.0)
    penalty = 0.25 / np.expm1(0.25 * epsilon)  # c takes a quarter of epsilon
    sigma, y = model.sigma(epsilon, 1e-3, penalty), np.array([1.0, 1.0, 0.0])

    def delta(sigma):
        theta = np.linspace(-1, 1, 400_001) * (12 * sigma + 4) / penalty
        p, q = (density(theta, each, sigma, penalty) for each in (y, y[1:]))
        assert np.trapezoid(p, theta) == pytest.approx(1, abs=1e-6)
        return max(np.trapezoid(np.maximum(a - np.exp(epsilon) * b, 0), theta) for a, b in ((p, q), (q, p)))

    assert 0 < delta(sigma) <= 1e-3
    assert delta(sigma / 3) > 1e-3


def test_objective_perturbation_reaches_its_minimum_and_pays_for_the_rest(rows):
    model = made("ObjectivePerturbation", 1.0).fit(rows[0], rows[1])
    (b, _, on_b), (theta, distance, on_minimum) = model.noise_.releases
    penalty = model.penalty(0.99, 300)
    X, smoothness = model.rows(rows[0]), 5 / 4
    drawn = on_b * np.sqrt(5) * np.random.default_rng(0).standard_normal(5)
    gradient = X.T @ (expit(X @ theta) - rows[1]) + penalty * theta + b + drawn
    assert np.linalg.norm(gradient) <= model.tolerance
    assert distance == 2 * model.tolerance / penalty  # the objective is strongly convex: each is as near to its minimum
    left = 0.99 - np.log1p(smoothness / penalty)
    assert 0.98 * 0.99 * DELTA < 2 * get_delta(GaussianDpEvent(on_b), left) <= 0.99 * DELTA
    assert get_epsilon(GaussianDpEvent(on_minimum), 0.01 * DELTA) <= 0.01


def test_without_noise_they_are_scikit_learns(rows):
    X, y, target = rows
    model = made("ObjectivePerturbation", 1000.0).fit(X, y)
    clipped = model.rows(X)
    ours = LogisticRegression(C=1 / model.penalty(990.0, 300), fit_intercept=False, tol=1e-10).fit(clipped, y).coef_[0]
    assert model.coef_ == pytest.approx(ours, abs=0.03)
    free = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-10).fit(clipped, y)
    newton = made("DoubleNoiseNewton", 1000.0).fit(X, y)
    assert newton.coef_ == pytest.approx(free.coef_[0], abs=0.1)
    assert newton.predict_proba(X) == pytest.approx(free.predict_proba(clipped), abs=0.03)
    inside = target - (target == 5) * 3  # residuals of scaled targets within their clip
    boosted = made("BoostedAdaSSP", 1e5).fit(X, inside)
    assert boosted.predict(X) == pytest.approx(LinearRegression().fit(clipped, inside).predict(clipped), abs=0.03)
