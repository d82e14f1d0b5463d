"""Metrics of synthetic rows: their figures, and that they say what they read."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from combinations import over_rows
from sklearn.linear_model import LogisticRegression

from skdp import PrivacyLeakWarning, config_context
from skdp.synthesis.metrics import (
    frechet_distance,
    inception_score,
    marginal_error,
    membership_check,
    train_on_synthetic_test_on_real,
)

QUIET = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")


def table(n, seed=0, p=0.5):
    rng = np.random.default_rng(seed)
    x = rng.random(n) < p
    return pd.DataFrame({"x": x, "y": np.where(rng.random(n) < 0.8, x, ~x), "z": rng.choice(list("abc"), n)})


CALLS = {
    "frechet_distance": lambda: frechet_distance(np.eye(3), np.eye(3)),
    "marginal_error": lambda: marginal_error(table(20), table(20, 1)),
    "membership_check": lambda: membership_check(table(20), table(20, 1), table(20, 2)),
    "train_on_synthetic_test_on_real": lambda: train_on_synthetic_test_on_real(
        LogisticRegression(), (np.eye(4), [0, 1, 0, 1]), (np.eye(4), [0, 1, 0, 1])
    ),
}


@over_rows("name", CALLS)
def test_every_metric_says_that_it_reads_real_rows(name):
    with pytest.warns(
        PrivacyLeakWarning, match=rf"^{name} reads real rows, and what it returns is not paid for"
    ) as told:
        CALLS[name]()
    assert told[0].filename == __file__
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning, match=name):
        CALLS[name]()


@QUIET
@over_rows("order", [1, 2, 3])
def test_the_error_is_that_of_the_plain_reading(order):
    one, other = table(200), table(150, 1, p=0.3)
    errors = []
    for names in itertools.combinations("xyz", order):
        shares = [frame.groupby(list(names)).size() / len(frame) for frame in (one, other)]
        errors.append(0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum())
    assert marginal_error(one, other, order) == pytest.approx(np.mean(errors))
    assert marginal_error(one, one, order) == 0.0
    polars = pl.from_pandas(other)
    assert marginal_error(one, polars, order) == marginal_error(one, other, order)


@QUIET
def test_numbers_are_cut_into_bins():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(5000, 2)), rng.normal(size=(5000, 2))
    one[:50] = np.nan
    assert marginal_error(one, other, 1) < 0.05
    assert marginal_error(one, other + 3.0, 1) > 0.7
    edges = [[0.0], [0.0]]
    np.testing.assert_allclose(
        marginal_error(np.array([[1.0, 1], [-1, -1]]), np.array([[1.0, -1], [-1, 1]]), 2, bins=edges), 1.0
    )
    assert marginal_error(np.array([[1.0, 1], [-1, -1]]), np.array([[9.0, 2], [-7, -3]]), 2, bins=edges) == 0.0
    assert marginal_error(one, other, 2, max_sets=1) >= 0


@QUIET
def test_infinite_numbers_are_beyond_all_edges():
    X = np.linspace(0.0, 1.0, 50)[:, None]
    wild = np.vstack([X, *[[[np.inf]], [[-np.inf]]] * 8])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert marginal_error(wild, wild, 1) == 0.0
        assert 0.1 < marginal_error(wild, X, 1) < 0.3


@QUIET
def test_dates_are_cut_into_bins():
    days = np.random.default_rng(0).integers(0, 3000, (2, 2000)).astype("datetime64[D]")
    one, other = (pd.DataFrame({"day": each}) for each in days)
    assert marginal_error(one, other, 1) < 0.1
    assert marginal_error(one, other + pd.Timedelta(days=3000), 1) > 0.9


@QUIET
def test_rare_values_of_many_columns_fit_into_memory():
    """Of two columns of 20,000 names, and of 25 numbers in 16 bins, there are more cells than memory or integers."""
    rng = np.random.default_rng(0)
    names = pd.DataFrame({"x": [f"a{i}" for i in range(20_000)], "y": [f"b{i}" for i in range(20_000)]})
    assert marginal_error(names, names) == 0.0
    assert marginal_error(names, names.iloc[::-1]) == 0.0
    assert marginal_error(names, names.assign(y=names["y"].to_numpy()[::-1])) == 1.0
    X = rng.normal(size=(100, 25))
    assert marginal_error(X, X, 25) == 0.0
    assert marginal_error(X, X[:50], 25) == pytest.approx(0.5)
    few, more = (rng.integers(0, 3, (size, 4)) for size in (30, 40))  # 81 cells for 70 rows
    shares = [pd.DataFrame(each).groupby([0, 1, 2, 3]).size() / len(each) for each in (few, more)]
    expected = 0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum()
    assert marginal_error(few, more, 4) == pytest.approx(expected)


@QUIET
def test_training_on_synthetic_rows():
    rng = np.random.default_rng(0)
    X, real = rng.normal(size=(500, 2)), rng.normal(size=(500, 2))
    y, real_y = (X[:, 0] > 0).astype(int), (real[:, 0] > 0).astype(int)
    model = LogisticRegression()
    assert train_on_synthetic_test_on_real(model, (X, y), (real, real_y)) > 0.99
    assert train_on_synthetic_test_on_real(model, (X, 1 - y), (real, real_y)) < 0.01
    assert train_on_synthetic_test_on_real(model, (X, y), (real, real_y), scoring="accuracy") > 0.9
    assert not hasattr(model, "coef_")


def test_the_inception_score_is_that_of_the_plain_reading():
    P = np.random.default_rng(0).dirichlet(np.full(10, 0.2), 105)
    scores = []
    for part in np.array_split(P, 4):
        mean = part.mean(axis=0)
        scores.append(np.exp(np.mean([sum(p * np.log(p / m) for p, m in zip(row, mean, strict=True)) for row in part])))
    found = inception_score(P, n_splits=4)
    assert found == pytest.approx((np.mean(scores), np.std(scores)))
    assert found.mean > inception_score(np.full((40, 10), 0.1), 4).mean == pytest.approx(1.0)
    assert inception_score(np.tile(np.eye(10)[0], (40, 1))) == (1.0, 0.0)  # sure of each row, but all of one class
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inception_score(P.tolist())


@QUIET
def test_the_frechet_distance_of_gaussians():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    assert frechet_distance(X, X) == pytest.approx(0.0, abs=1e-9)
    assert frechet_distance(X, X + np.array([3.0, 0, 4.0])) == pytest.approx(25.0)
    assert frechet_distance(X, 2.0 * (X - X.mean(axis=0)) + X.mean(axis=0)) == pytest.approx(np.trace(np.cov(X.T)))
    A, B = X @ rng.normal(size=(3, 3)), X @ rng.normal(size=(3, 3))
    product = np.linalg.eigvals(np.cov(A.T) @ np.cov(B.T))  # the same eigenvalues as the symmetric product
    shift = A.mean(axis=0) - B.mean(axis=0)
    expected = shift @ shift + np.trace(np.cov(A.T) + np.cov(B.T)) - 2 * np.sqrt(product.real).sum()
    assert frechet_distance(A, B) == pytest.approx(expected)
    assert frechet_distance(X[:, :1], X[:, :1] + 2.0) == pytest.approx(4.0)


@QUIET
def test_copies_are_seen_and_fresh_rows_are_not():
    rng = np.random.default_rng(0)
    train, held_out, fresh = (rng.integers(0, 6, (1500, 8)) for _ in range(3))
    honest = membership_check(train, held_out, fresh)
    assert abs(honest.advantage) < 0.1
    assert honest.p_value > 1e-6
    copied = np.where(rng.random((1500, 1)) < 0.2, train, fresh)
    found = membership_check(train, held_out, copied)
    assert found.advantage > 0.1
    assert found.p_value < 1e-6
    assert found.n_copies > 200 > found.expected_copies + 100
    assert membership_check(train, held_out, train, max_rows=100).nearest[0] == 0.0


@QUIET
@over_rows(
    "call, words",
    [
        (lambda: marginal_error(np.eye(2), np.eye(3)), "2 and 3 columns"),
        (lambda: marginal_error(table(9), table(9)[["y", "x", "z"]]), "in another order"),
        (lambda: marginal_error(np.eye(2), np.eye(2), 0), "order=0"),
        (lambda: marginal_error(np.eye(2), np.eye(2), 3), "choose at most 2"),
        (lambda: marginal_error(np.eye(2), np.eye(2), bins=[[0.0]]), "for each of 2 columns"),
        (lambda: marginal_error(np.eye(2), np.eye(2), bins=[0.5, 0.5]), "bins holds 0.5 for a column"),
        (
            lambda: marginal_error(np.eye(2), np.eye(2), bins=[[0.9, 0.1]] * 2),
            "bins holds <list> for a column: give asc",
        ),
        (lambda: train_on_synthetic_test_on_real(LogisticRegression(), 5, 5), "synthetic=5 is no pair"),
        (lambda: membership_check(np.eye(2), np.eye(2), np.eye(2), max_rows=0), "max_rows=0"),
        (lambda: inception_score(np.ones((4, 3))), r"shape \(4, 3\) are no probabilities"),
        (lambda: inception_score(np.eye(4)), "n_splits=10 with 4 rows"),
        (lambda: frechet_distance(np.eye(3), np.eye(4)), "4 columns for 3"),
        (lambda: frechet_distance([[np.nan]] * 3, np.eye(3)), "real is no table of finite numbers"),
        (lambda: frechet_distance(np.eye(3), 1e200 * np.eye(3)), "synthetic is no table of finite numbers, below"),
        (lambda: frechet_distance([[1.0, 2.0], [3.0]], np.eye(2)), "real is no array of numbers"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, words):
    with warnings.catch_warnings(), pytest.raises(ValueError, match=words) as refusal:
        call()
    assert "\n" not in str(refusal.value)
