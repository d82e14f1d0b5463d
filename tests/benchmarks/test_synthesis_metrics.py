"""Exact metrics of synthetic rows, beside plain readings."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from synthesis_metrics import inception_score, marginal_error


def table(n, seed=0, p=0.5):
    rng = np.random.default_rng(seed)
    x = rng.random(n) < p
    return pd.DataFrame({"x": x, "y": np.where(rng.random(n) < 0.8, x, ~x), "z": rng.choice(list("abc"), n)})


@over_rows("order", [1, 2, 3])
def test_marginal_error_equals_plain_reading(order):
    one, other = table(200), table(150, 1, p=0.3)
    errors = []
    for names in itertools.combinations("xyz", order):
        proportions = [frame.value_counts(list(names), normalize=True) for frame in (one, other)]
        errors.append(0.5 * proportions[0].sub(proportions[1], fill_value=0).abs().sum())
    assert marginal_error(one, other, order) == pytest.approx(np.mean(errors))
    assert marginal_error(one, one, order) == 0.0


def test_marginal_error_bins_numbers_dates_and_infinities():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(5000, 2)), rng.normal(size=(5000, 2))
    one[:50] = np.nan
    assert marginal_error(one, other, 1) < 0.05
    assert marginal_error(one, other + 3.0, 1) > 0.7
    edges, signs = [[0.0], [0.0]], np.array([[1.0, 1], [-1, -1]])
    assert marginal_error(signs, signs * [1, -1], 2, bins=edges) == 1.0
    assert marginal_error(signs, signs * [9, 2], 2, bins=edges) == 0.0
    assert marginal_error(signs, signs * [9, 1], 2, bins=[None, None]) == 1.0
    X = np.linspace(0.0, 1.0, 50)[:, None]
    assert 0.1 < marginal_error(np.vstack([X, [[np.inf], [-np.inf]] * 8]), X, 1) < 0.3
    days = pd.DataFrame({"day": rng.integers(0, 3000, 2000).astype("datetime64[D]")})
    assert marginal_error(days, days.sample(frac=1.0, random_state=0), 1) == 0.0
    assert marginal_error(days, days + pd.Timedelta(days=3000), 1) > 0.9


def test_marginal_error_of_many_cells_fits_into_memory():
    """Two columns of 20,000 names, and 25 numbers in 16 bins, have more cells than memory or integers."""
    names = pd.DataFrame({"x": [f"a{i}" for i in range(20_000)], "y": [f"b{i}" for i in range(20_000)]})
    assert marginal_error(names, names.assign(y=names["y"].to_numpy()[::-1])) == 1.0
    X = np.random.default_rng(0).normal(size=(100, 25))
    assert marginal_error(X, X[:50], 25) == pytest.approx(0.5)
    assert marginal_error(X, X, 3, max_sets=2) == 0.0


def test_inception_score_equals_plain_reading():
    P = np.random.default_rng(0).dirichlet(np.full(10, 0.2), 105)
    scores = []
    for part in np.array_split(P, 4):
        mean = part.mean(axis=0)
        scores.append(np.exp(np.mean([sum(p * np.log(p / m) for p, m in zip(row, mean, strict=True)) for row in part])))
    assert inception_score(P, 4) == pytest.approx(np.mean(scores))
    assert inception_score(np.tile(np.eye(10), (10, 1))) == pytest.approx(10.0)
    assert inception_score(np.full((40, 10), 0.1), 4) == pytest.approx(1.0)
