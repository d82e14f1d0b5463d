"""Evaluations, and estimators of words, on a table and on one that differs in a hostile row: nothing moves by more than
is charged. Estimators of numbers are held to it by `skdp.testing` (`test_private_checks.py`).
"""

from __future__ import annotations

import gc
import types
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from combinations import combined
from replay import assert_all_else_is_equal, assert_one_string_more_is_not_revealed, moves, replay, run
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import skdp
from skdp.mechanisms.streams import SecretStream

N, ROW = 80, 7
SEED = {"random_state": 0, "delta": 1e-4}


class People(NamedTuple):
    """Rows, a class and a target each, and weights or None."""

    X: object
    y: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None = None


def rows_alone(model):
    return lambda people: model().fit(people.X)


def logistic(**parameters):
    return skdp.DPLogisticRegression(**{"classes": [0, 1], "max_iter": 5, **SEED, **parameters})


class Judge:
    """A model that was fitted elsewhere."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        chances = 1.0 / (1.0 + np.exp(-np.asarray(X) @ [2.0, -2.0, 1.0]))
        return np.column_stack([1.0 - chances, chances])


class Teller:
    """The same for targets, and for three classes."""

    def __init__(self, classes=None):
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict(self, X):
        found = np.asarray(X) @ [0.5, -0.5, 0.25]
        return (found > 0).astype(int) if hasattr(self, "classes_") else found


def evaluation_of_targets(**parameters):
    def evaluate(people):
        given = {"sample_weight": people.weight, "random_state": 0, **parameters}
        return skdp.evaluate(Teller(), people.X, people.target, epsilon=1.0, y_bounds=(-1, 1), **given)

    return evaluate


def evaluation_of_three(people):
    given = {"sample_weight": people.weight, "random_state": 0}
    return skdp.evaluate(Teller([0, 1, 2]), people.X, people.y, epsilon=1.0, **given)


class Scorer(Judge):
    """The same for each of three classes, or labels."""

    def __init__(self, classes=None):
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict_proba(self, X):
        chances = super().predict_proba(X)
        return np.column_stack([chances / 2, np.full(len(chances), 0.5)])


def evaluation_of_each(**parameters):
    def evaluate(people):
        given = {"sample_weight": people.weight, "random_state": 0, "epsilon": 1.0, **parameters}
        if "one_vs_rest" in given:
            return skdp.evaluate(Scorer([0, 1, 2]), people.X, people.y, **given)
        labels = np.column_stack([people.y, 1 - people.y, people.y])
        return skdp.evaluate(Scorer(), people.X, labels, **given)

    return evaluate


def evaluation(**parameters):
    def evaluate(people):
        given = {"sample_weight": people.weight, "random_state": 0, **parameters}
        by = np.asarray(people.X)[:, 0] > 0 if "categories" in parameters else None
        return skdp.evaluate(Judge(), people.X, people.y, epsilon=1.0, by=by, **given)

    return evaluate


FITS = {
    "evaluation": evaluation(),
    "evaluation, replaced": evaluation(adjacency="replace_one", categories=[True]),
    "evaluation of targets": evaluation_of_targets(),
    "evaluation of targets, replaced": evaluation_of_targets(adjacency="replace_one"),
    "evaluation of targets, normal noise": evaluation_of_targets(noise="gaussian", delta=1e-4, adjacency="replace_one"),
    "evaluation of three classes": evaluation_of_three,
    "evaluation of each class": evaluation_of_each(one_vs_rest=True),
    "evaluation of each class, replaced": evaluation_of_each(one_vs_rest=True, adjacency="replace_one"),
    "evaluation of each class, normal noise": evaluation_of_each(one_vs_rest=True, noise="gaussian", delta=1e-4),
    "evaluation of each label": evaluation_of_each(),
    "evaluation of each label, normal noise": evaluation_of_each(noise="gaussian", delta=1e-4, adjacency="replace_one"),
    "evaluation, normal noise": evaluation(noise="gaussian", delta=1e-4),
    "calibrated by rows that are held out": lambda people: skdp.DPCalibratedClassifier(
        logistic(random_state=None), method="isotonic", **SEED
    ).fit(people.X, people.y, sample_weight=people.weight),
}  # fmt: skip
WORDS = {
    "encoder": rows_alone(lambda: skdp.DPOneHotEncoder(**SEED)),
    "imputer, most frequent": rows_alone(lambda: skdp.DPSimpleImputer("most_frequent", **SEED)),
    "vectorizer of words": rows_alone(lambda: skdp.DPTableVectorizer(**SEED)),
}


def people(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (N, 3))
    y = np.arange(N) % 2
    return People(X, y, np.clip(X @ [0.5, -0.5, 0.2], -1, 1))


HOSTILE = {
    "zeros": 0.0,
    "denormal": 5e-324,
    "denormal of single precision": 1e-40,
    "corner": [1.0, -1.0, 1.0],
    "beyond all bounds": [1e6, -1e6, 3.0],
    "huge": [1e300, -1e300, 1e-300],
    "the largest": np.finfo(float).max,
}


def with_row(table, row, label=None, target=None):
    X, y, targets = table.X.copy(), table.y.copy(), table.target.copy()
    X[ROW] = row
    y[ROW] = y[ROW] if label is None else label
    targets[ROW] = targets[ROW] if target is None else target
    return People(X, y, targets, table.weight)


def assert_only_one_row_moved(one, other):
    assert one.releases
    # A row becomes another one: it leaves, and the other comes.
    assert max(moves(one, other)) <= 2.0 * (1 + 1e-9)
    assert_all_else_is_equal(one, other)


@pytest.mark.parametrize("name", FITS)
def test_one_row_moves_the_releases_and_nothing_else(name):
    table = people()
    for row in HOSTILE.values():
        near = with_row(table, row, 1 - table.y[ROW], -1.0)
        assert_only_one_row_moved(*replay(FITS[name], table, near))


@pytest.mark.parametrize("name", FITS)
def test_one_weight_moves_the_releases_and_nothing_else(name):
    table = people()._replace(weight=np.linspace(0.1, 1.0, N))
    for weight in (0.0, 5e-324, 1.0, 1e30):
        weights = table.weight.copy()
        weights[ROW] = weight
        assert_only_one_row_moved(*replay(FITS[name], table, table._replace(weight=weights)))


CELLS = {"gap": None, "another word": "b", "a number": 7, "a truth": True, "a day": pd.Timestamp("2020-01-01"), "": ""}


@pytest.mark.parametrize("name", WORDS)
def test_one_cell_of_words_moves_the_releases_and_nothing_else(name):
    words = pd.DataFrame({"word": ["a", "b", "a", "7", "True", "2020-01-01"] * 20, "other": ["u", "v"] * 60})
    for cell in CELLS.values():
        near = words.astype(object)
        near.loc[ROW, "word"] = cell
        one, other = replay(WORDS[name], People(words.astype(object), None, None), People(near, None, None))
        assert_only_one_row_moved(one, other)


@pytest.mark.parametrize("name", WORDS)
def test_string_of_one_record_changes_no_noise(name):
    """The number of distinct strings is private. The string is the last one in the order of the counts."""
    words = pd.DataFrame({"word": ["a", "b", "c"] * 40, "other": ["u", "v"] * 60}).astype(object)
    near = words.copy()
    near.loc[ROW, "other"] = "~"
    assert_one_string_more_is_not_revealed(*replay(WORDS[name], People(words, None, None), People(near, None, None)))


def outcome(fit, table):
    """How a fit ends, and what it says, under the given settings of NumPy."""
    try:
        return run(fit, table).messages
    except ArithmeticError as error:
        return type(error)


@combined(1, name=FITS, setting=["raise", "warn"])
def test_settings_of_arithmetic_reveal_no_row(name, setting):
    table = people()
    single = table._replace(X=table.X.astype(np.float32))
    for each, tiny in ((table, 5e-324), (table, 1e-310), (single, 1e-40), (table, 1e300)):
        near = with_row(each, tiny, target=1e-310)
        with np.errstate(all=setting):
            assert outcome(FITS[name], near) == outcome(FITS[name], each)


METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform"]


@pytest.mark.parametrize("method", METHODS)
def test_settings_of_arithmetic_reveal_no_row_by_public_steps(method):
    """scikit-learn's own steps run under these settings outside a pipeline that has a budget."""
    table = people()
    last = skdp.DPPCA(2, random_state=0) if method == "transform" else logistic(delta="auto")
    steps = make_pipeline(PolynomialFeatures(2), last)
    fitted = skdp.allocate_budget(steps, epsilon=1.0, delta=1e-4).fit(table.X, table.y)
    near = with_row(table, 1e-160).X
    for setting in ("raise", "warn"):
        with np.errstate(all=setting), warnings.catch_warnings(action="error"):
            assert getattr(fitted, method)(near).shape[0] == N
            assert not hasattr(fitted, "score_samples")


def held_by(thing):
    """All objects that can be reached from one, but by its code."""
    found, left = {}, [thing]
    while left:
        each = left.pop()
        if id(each) not in found and not isinstance(each, type | types.ModuleType | types.FunctionType):
            found[id(each)] = each
            left += gc.get_referents(each)
    return found.values()


@pytest.mark.parametrize("name", [*FITS, *WORDS])
def test_no_fitted_estimator_holds_a_stream(name):
    """Nor one that has released, transformed or sampled since."""
    table = people() if name in FITS else People(pd.DataFrame({"w": ["a", "b"] * 60}), None, None)
    fitted = (FITS | WORDS)[name](table)
    if hasattr(fitted, "sample"):
        fitted.sample(5)
    assert not [each for each in held_by(fitted) if isinstance(each, SecretStream)]
    fitted.stream_ = [{"noise": SecretStream.from_random_state(0, "test")}]
    assert [each for each in held_by(fitted) if isinstance(each, SecretStream)]
