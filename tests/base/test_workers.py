"""Fits in worker processes: leaks are reported where the user is, and the setting of leaks goes along."""

import gc
import multiprocessing
import os
import pickle
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from combinations import over_rows
from joblib import Parallel, delayed, parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import skdp._checks.leaks
from skdp import DPPCA, DPGridSearchCV, DPLogisticRegression, PrivacyAccountant, PrivacyLeakWarning, config_context
from skdp._checks.leaks import Sent, leaks_are_errors, receive, received

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
Y = (X[:, 0] > 0).astype(int)
Y3 = Y + (X[:, 1] > 0)


def model(**parameters):
    return DPLogisticRegression(**{"max_iter": 1, "classes": [0, 1], **parameters})


class Nested(ClassifierMixin, BaseEstimator):
    """A user's own estimator, which fits copies of its part in worker processes."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        Parallel(n_jobs=2)(delayed(_fit)(clone(self.estimator), X, y) for _ in range(2))
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


def _fit(estimator, X, y):
    return estimator.fit(X, y)


def _score(estimator, X, y):
    return cross_val_score(estimator, X, y, cv=2, error_score="raise")


def _settings(estimator):
    """What a worker sees while it holds an estimator that was sent, and after that."""
    seen = [leaks_are_errors(), received() is not None]
    del estimator
    return seen


def _afterwards():
    gc.collect()
    return leaks_are_errors(), received()


# a run; the compositions that are told of, each once
RUNS = {
    "scores": (lambda m: cross_val_score(m, X, Y, cv=3, error_score="raise"), ["a search or cross-validation"]),
    "calibrated": (lambda m: CalibratedClassifierCV(m, cv=3).fit(X, Y), ["CalibratedClassifierCV"]),
    "bagging": (lambda m: BaggingClassifier(m, n_estimators=4).fit(X, Y), ["BaggingClassifier"]),
    # It neither clones nor reads tags before it starts workers, which warn on their standard error only.
    "one versus rest": (lambda m: OneVsRestClassifier(m).fit(X, Y3), []),
    "own": (lambda m: Nested(m).fit(X, Y), ["Nested"]),
    "union in a pipeline": (
        lambda m: make_pipeline(FeatureUnion([("a", Normalizer()), ("b", StandardScaler())]), m).fit(X, Y),
        ["Pipeline"],
    ),
}


def told(run):
    with warnings.catch_warnings(record=True, action="always") as caught, parallel_config("loky", n_jobs=2):
        run()
    return [each for each in caught if issubclass(each.category, PrivacyLeakWarning)]


@over_rows("name", RUNS)
def test_each_composition_is_told_once_where_the_user_is(name):
    run, titles = RUNS[name]
    messages = told(lambda: run(model()))
    assert [str(each.message).partition(" inside ")[2].partition(":")[0] for each in messages] == titles
    assert all(each.filename == __file__ for each in messages)
    assert all("\n" not in str(each.message) for each in messages)
    with parallel_config("sequential"), warnings.catch_warnings(record=True, action="always") as caught:
        run(model())
    here = {str(each.message) for each in caught if "is fitted inside" in str(each.message)}
    assert {str(each.message).split("; up to")[0] for each in messages} <= {each.split("; up to")[0] for each in here}


@pytest.mark.parametrize(
    ("name", "how"),
    [("calibrated", "filter"), ("bagging", "block")]
    + [pytest.param(name, how, marks=pytest.mark.slow) for name in RUNS for how in ("block", "filter")],
)
def test_where_a_leak_is_an_error_it_is_raised_and_nothing_is_charged(name, how, tmp_path):
    """An error in a worker ends the pool, and a new one takes seconds: only two are not slow."""
    run, _ = RUNS[name]
    PrivacyAccountant(epsilon=100.0, delta=1e-3, path=tmp_path / "budget")
    private = model(accountant=str(tmp_path / "budget"))
    with (
        config_context(on_leak="raise" if how == "block" else "warn"),
        parallel_config("loky", n_jobs=2),
        warnings.catch_warnings(action="error" if how == "filter" else "ignore", category=PrivacyLeakWarning),
        pytest.raises(PrivacyLeakWarning) as caught,
    ):
        run(private)
    assert "\n" not in str(caught.value)
    assert len(PrivacyAccountant.open(tmp_path / "budget").history) == 0


SAFE = {
    "union": lambda: FeatureUnion([("a", DPPCA(2)), ("b", Normalizer())]).fit(X),
    "search": lambda: DPGridSearchCV(model(), {"alpha": [0.0, 0.1]}).fit(X, Y),
    "alone": lambda: Parallel()(delayed(_fit)(model(), X, Y) for _ in range(2)),
}


@over_rows("name", SAFE)
def test_what_is_paid_for_is_silent_in_processes(name):
    assert told(SAFE[name]) == []
    with config_context(on_leak="raise"), parallel_config("loky", n_jobs=2):
        SAFE[name]()


def test_a_composition_that_is_in_the_worker_alone_is_an_error_there():
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning, match="inside a search or cross-val"):
        Parallel(n_jobs=2)(delayed(_score)(model(), X, Y) for _ in range(2))


def test_two_runs_at_once_are_told_apart():
    """A search of others that waits for its workers meanwhile is not blamed for a private fit."""
    entered, done = threading.Event(), threading.Event()

    class Waiting(BaseEstimator):
        def fit(self, X):
            Parallel(n_jobs=2, backend="threading")(delayed(self.wait)() for _ in range(2))

        def wait(self):
            entered.set()
            done.wait(600)

    thread = threading.Thread(target=Waiting().fit, args=(X,))
    thread.start()
    entered.wait(600)
    try:
        assert told(lambda: Parallel()(delayed(_fit)(model(), X, Y) for _ in range(2))) == []
        assert len(told(lambda: cross_val_score(model(), X, Y, cv=2))) == 1
    finally:
        done.set()
        thread.join()


def test_a_pool_of_the_standard_library_obeys_too_and_the_setting_ends_with_the_task():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with config_context(on_leak="raise"):
            with pytest.raises(PrivacyLeakWarning, match="`classes` was not set"):
                pool.submit(model(classes=None).fit, X, Y).result()
            assert pool.submit(_settings, model()).result() == [True, True]
            assert pool.submit(_afterwards).result() == (False, None)
        assert pool.submit(_settings, model()).result() == [False, True]
        assert pool.submit(model(classes=None).fit, X, Y).result().coef_.shape == (1, 3)


def test_nothing_goes_along_into_a_file_or_a_copy():
    with config_context(on_leak="raise"):
        private = model()
        assert "_sent" not in private.__getstate__()
        loaded = pickle.loads(pickle.dumps(private))
    assert vars(loaded).keys() == vars(private).keys()
    assert received() is None


def test_only_a_worker_of_the_sender_obeys(monkeypatch):
    private = model()
    receive(private, Sent(os.getpid(), "raise", ()))  # comes back from a worker, or from a stranger
    assert received() is None
    monkeypatch.setattr(skdp._checks.leaks.multiprocessing, "parent_process", lambda: type("", (), {"pid": 7}))
    receive(private, Sent(8, "raise", ()))
    assert received() is None
    receive(private, Sent(7, "raise", ()))
    assert leaks_are_errors()
    with config_context(on_leak="warn"):  # a block of the worker's own is the innermost
        assert not leaks_are_errors()
    del private
    assert received() is None
    assert not leaks_are_errors()
