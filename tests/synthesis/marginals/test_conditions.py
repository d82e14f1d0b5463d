"""Samples under conditions: exact for the model, by its public schema, and rejected where that has no such cell."""

import datetime

import numpy as np
import pandas as pd
import pytest
from combinations import over_rows
from scipy import stats

from skdp.synthesis import DPMarginalSynthesizer
from skdp.synthesis.marginals.product_mixture import Mixture

FALSE_ALARM = 1e-6
SCHEMA = {
    "age": {"edges": [0, 20, 40, 65, 100]},
    "job": ["clerk", "nurse", "none"],
    "pay": {"bounds": (1, 1000), "missing_values": [None], "scale": "log"},
    "member": "flag",
    "since": {"kind": "date", "bounds": ("2000-01-01", "2010-12-31")},
}


@pytest.fixture(scope="module")
def model():
    rng, n = np.random.default_rng(0), 2000
    age = rng.integers(0, 100, n)
    job = np.where(age < 20, "none", rng.choice(["clerk", "nurse"], n))
    pay = np.where(job == "none", np.nan, np.clip(rng.normal(300, 90, n) + 3.0 * age, 1, 1000))
    since = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 4000, n), "D")
    frame = pd.DataFrame({"age": age, "job": job, "pay": pay, "member": rng.random(n) < 0.3, "since": since})
    label = np.where((age > 40) & (job == "clerk"), 1, 0)
    made = DPMarginalSynthesizer(
        SCHEMA, classes=[0, 1], n_bins=6, n_components=40, max_iter=150, epsilon=50.0, random_state=0
    )
    return made.fit(frame, label)


@pytest.fixture(scope="module")
def freely(model):
    return model.sample(100_000, random_state=1)


def figures(X, y):
    """Numbers that tell of all columns, one a row."""
    since = (X["since"] - pd.Timestamp("2000-01-01")).dt.days
    return np.column_stack(
        [X["age"], X["pay"].fillna(0.0), X["pay"].isna(), X["job"] == "clerk", X["member"], since, y]
    )


CONDITIONS = [
    ({"age": (30, 50)}, lambda X, y: X["age"].between(30, 50)),
    ({"age": (30, 50), "y": 1}, lambda X, y: X["age"].between(30, 50) & (y == 1)),
    ({"pay": (333.3, 420.0)}, lambda X, y: X["pay"].between(333.3, 420.0)),
    ({"pay": None}, lambda X, y: X["pay"].isna()),
    ({"job": ["clerk", "none"], "member": True}, lambda X, y: X["job"].isin(["clerk", "none"]) & X["member"]),
    ({"age": 33}, lambda X, y: X["age"] == 33),
    (
        {"since": ("2003-02-01", datetime.date(2004, 6, 30))},
        lambda X, y: X["since"].between("2003-02-01", "2004-06-30"),
    ),
]


@over_rows("conditions, met", CONDITIONS)
def test_rows_are_those_of_many_that_meet_the_conditions(model, freely, conditions, met):
    """All of them meet them, and means of all columns are those of rows that are drawn freely and then looked at."""
    X, y = model.sample(4000, random_state=2, conditions=conditions)
    assert met(X, y).all()
    kept = np.asarray(met(*freely))
    one, other = figures(X, y), figures(*freely)[kept]
    for j in range(one.shape[1]):
        if one[:, j].std() == 0:
            assert other[:, j].std() == 0
        else:
            assert stats.ttest_ind(one[:, j], other[:, j], equal_var=False).pvalue > FALSE_ALARM, j


def test_sample_is_closer_to_model_than_independent_rows(model, freely):
    """Tables of pairs of bins, by their distance from those of many rows; and no row is left out."""
    shares = pd.crosstab(freely[0]["age"] // 10, freely[0]["job"], normalize=True)
    distance = {}
    for balanced in (False, True):
        found = [model._drawn(500, np.random.default_rng(seed), balanced=balanced)[0] for seed in range(20)]
        tables = [pd.crosstab(X["age"] // 10, X["job"], normalize=True) for X in found]
        distance[balanced] = np.mean([(table - shares).fillna(shares).abs().to_numpy().sum() for table in tables])
    assert distance[True] < 0.9 * distance[False]
    assert len(model.sample(0, conditions={"age": 33})[0]) == 0


def test_sample_is_balanced_and_sample_sets_are_independent(model, monkeypatch):
    """The rules that combine estimates take the rows of each set to be a random sample."""
    seen, draw = [], Mixture.draw
    monkeypatch.setattr(Mixture, "draw", lambda self, *args: seen.append(args[4:]) or draw(self, *args))
    model.sample(10, random_state=0)
    assert seen == [(True,)]
    assert len(list(model.sample_sets(2, 10, random_state=0))) == 3
    assert [each for each in seen if each] == [(True,), (False,), (False,), (False,)]


@over_rows(
    "conditions, words",
    [
        (3, ["must be a mapping", "got 3"]),
        ({"foo": 1}, ["'foo'", "columns of the fit"]),
        ({"age": (200, 300)}, ["'age'", "a number of its bins"]),
        ({"age": (9, 5)}, ["'age'", "(low, high) for a number"]),
        ({"since": ("never", "2004-01-01")}, ["'since'", "(low, high) for a date"]),
        ({"job": "boss"}, ["'job'", "'boss'", "cells of the schema"]),
        ({"job": []}, ["'job'", "at least one cell"]),
    ],
)
def test_what_the_schema_does_not_have_is_rejected_in_one_line(model, conditions, words):
    with pytest.raises(ValueError) as caught:
        model.sample(5, conditions=conditions)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


def test_a_model_without_labels_has_none_to_ask_for():
    X = np.random.default_rng(0).integers(0, 2, (50, 2))
    model = DPMarginalSynthesizer({"x0": [0, 1], "x1": [0, 1]}, n_components=4, max_iter=5).fit(X)
    assert (model.sample(20, conditions={"x1": 1})[:, 1] == 1).all()
    with pytest.raises(ValueError, match="columns of the fit"):
        model.sample(5, conditions={"y": 1})
