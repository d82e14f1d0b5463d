"""Coefficient tables where events are rare, a category never occurs, or a column is constant or skewed."""

import math

import numpy as np
import pandas as pd
from combinations import over_rows
from scipy import stats
from sklearn.base import clone

from skdp import (
    DPLinearRegression,
    DPLogisticRegression,
    DPOrdinalLogisticRegression,
    DPPoissonRegressor,
    tabular_pipeline,
)

FALSE_ALARM = 1e-6
MODELS = {
    "linear": DPLinearRegression((-4, 4), inference=True),
    "logistic": DPLogisticRegression(classes=[0, 1], inference=True),
    "multiclass": DPLogisticRegression(classes=[0, 1, 2], inference=True),
    "poisson": DPPoissonRegressor((0, 5)),
    "ordinal": DPOrdinalLogisticRegression([0, 1, 2]),
}


def table_of(kind, X, y, seed=0, epsilon=4.0):
    norm = float(np.linalg.norm(X, axis=1).max())
    model = clone(MODELS[kind]).set_params(epsilon=epsilon, delta=1e-6, data_norm=norm, random_state=seed)
    return model.fit(X, y).summary().to_frame()


def level_of_few_events(events, seed, n=20_000):
    """Rows of a number and a level of a third of the rows, and events: half of the others have one."""
    rng = np.random.default_rng(seed)
    level = rng.random(n) < 1 / 3
    y = rng.random(n) < np.where(level, 3 * events / n, 0.5)
    return np.c_[rng.uniform(-1.0, 1.0, n), level], y.astype(int)


@over_rows("kind, epsilon", [("logistic", 1.0), ("poisson", 4.0)])
def test_level_without_events_has_no_interval(kind, epsilon):
    """The noise would have to add events of 3.3 standard deviations: 5e-4 in a fit, 1e-8 in two of three."""
    frames = [table_of(kind, *level_of_few_events(0, seed), seed, epsilon) for seed in range(3)]
    assert sum(frame["low"].notna().iloc[1] for frame in frames) <= 1
    if epsilon == 4.0:
        assert all((frame["doubt"].iloc[[0, 2]] == "").all() for frame in frames)


def test_rates_with_much_noise_have_no_interval():
    """A level is hidden or nearly so; by its own row alone, half of the intervals of all rows missed."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        level, exposure = rng.random(5_000) < 0.25, rng.uniform(0.2, 1.0, 5_000)
        y = rng.poisson(exposure * np.where(level, 0.4, 1.0)) / exposure
        model = DPPoissonRegressor((0, 20), data_norm=2.0, delta=1e-5, weight_bound=1.0, random_state=seed)
        X = np.c_[rng.uniform(-1.0, 1.0, 5_000), level]
        frame = model.fit(X, y, sample_weight=exposure).summary().to_frame()
        assert (frame["doubt"] != "").all()


def test_logistic_rare_level_intervals_cover():
    """Of 13 expected events, at little noise; with five steps one interval in ten covered."""
    truth, shown, missed = math.log(13 / (20_000 / 3 - 13)), 0, 0
    for seed in range(8):
        row = table_of("logistic", *level_of_few_events(13, seed), seed, epsilon=20.0).iloc[1]
        if row["doubt"] == "":
            shown, missed = shown + 1, missed + (not row["low"] <= truth <= row["high"])
    assert shown > 0
    assert missed <= stats.binom.isf(FALSE_ALARM, shown, 0.06)


@over_rows("kind, value", [*((kind, 0.0) for kind in MODELS), ("multiclass", 0.7)])
def test_constant_column_costs_its_own_interval_only(kind, value):
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(-1.0, 1.0, 20_000), rng.random(20_000) < 0.4, np.full(20_000, value)]
    eta = X @ [0.5, -0.5, 0.0]
    if kind == "linear":
        y = eta + rng.normal(size=20_000)
    elif kind == "poisson":
        y = rng.poisson(np.exp(eta))
    else:
        y = np.digitize(eta + rng.logistic(size=20_000), [0.0] if kind == "logistic" else [-0.5, 0.8])
    frame = table_of(kind, X, y)
    others = np.array([name.endswith(("x0", "x1")) for name in frame.index])
    constant = np.array([name.endswith("x2") for name in frame.index])
    assert (frame["doubt"][others] == "").all()
    assert frame["doubt"][constant].str.startswith("noise hides").all()


@over_rows("kind", ["poisson", "ordinal"])
def test_tabular_pipeline_names_rows_of_the_formula(kind):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.uniform(20, 60, 5_000), "job": rng.choice(["a", "b"], 5_000)})
    y = rng.integers(0, 3, 5_000)
    model = clone(MODELS[kind]).set_params(random_state=0)
    pipeline = tabular_pipeline(model, schema={"age": (20, 60), "job": ["a", "b"]}, epsilon=4.0).fit(table, y)
    frame = pipeline[-1].summary().to_frame()
    assert list(frame.index[:2]) == ["age", "job[b vs a]"]
    assert (frame["doubt"] == "").all()
    unknown = tabular_pipeline(model, schema={"age": "number", "job": ["a", "b"]}, epsilon=4.0)
    assert type(unknown[0]).__name__ == "DPTableVectorizer"
