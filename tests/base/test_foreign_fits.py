"""A private estimator that is fitted inside other people's estimators says so, before it is charged."""

import gc
import re
import threading
import warnings
import weakref

import numpy as np
import pytest
from combinations import over_rows
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import skdp.base
import skdp.base.foreign_fits
import skdp.model_selection.search
import skdp.pipeline
from skdp import (
    DPPCA,
    DPGridSearchCV,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyLeakWarning,
    allocate_budget,
    config_context,
)
from skdp.base.foreign_fits import report_foreign_fit

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (90, 4))
Y = (X[:, 0] > 0).astype(int)
Y3 = Y + (X[:, 1] > 0)
GRID = {"alpha": [0.0, 0.1]}


def model(**parameters):
    return DPLogisticRegression(**{"max_iter": 2, "classes": [0, 1], **parameters})


class Foreign(ClassifierMixin, BaseEstimator):
    """A user's own estimator that fits ours inside its fit."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(this, X, y):
        this.estimator_ = clone(this.estimator).fit(X - X.mean(axis=0), y)
        return this


def union(*parts):
    return FeatureUnion([(str(i), part) for i, part in enumerate(parts)])


def pipe(*steps):
    return make_pipeline(*steps)


SCORES = "scores of private rows"
COMPOSITIONS = {
    "pipeline": (lambda: pipe(StandardScaler(), model()).fit(X, Y), "inside Pipeline: its step 'standardscaler'"),
    "lambda": (lambda: pipe(FunctionTransformer(lambda X: X - X.mean(0)), model()).fit(X, Y), "skdp.row_wise"),
    "union": (lambda: union(DPPCA(2), StandardScaler()).fit_transform(X), r"FeatureUnion: its step '1' \(Standard"),
    "calibrated": (lambda: CalibratedClassifierCV(model(), cv=2).fit(X, Y), "calibration on private rows"),
    "predictions": (lambda: cross_val_predict(model(), X, Y, cv=2), "inside cross_val_predict"),
    "scores": (lambda: cross_val_score(model(), X, Y, cv=2), SCORES),
    "grid": (lambda: GridSearchCV(model(), GRID, cv=2).fit(X, Y), SCORES),
    "one versus rest": (lambda: OneVsRestClassifier(model()).fit(X, Y3), "each class or pair of classes"),
    "bagging": (lambda: BaggingClassifier(model(), n_estimators=3).fit(X, Y), "multiplies the influence of a row"),
    "foreign": (
        lambda: Foreign(model()).fit(X, Y),
        "inside Foreign: skdp does not recognize Foreign and cannot account for what it reads",
    ),
    "budgeted": (
        lambda: CalibratedClassifierCV(allocate_budget(pipe(DPPCA(2), model()), 1.0, 1e-4), cv=2).fit(X, Y),
        "PrivatePipeline is fitted inside CalibratedClassifierCV",
    ),
}


def told(run):
    """Messages of leaks but those of seeds, which bagging and boosting set."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            run()
        except ValueError as error:
            if "worse than random" not in str(error):  # two steps of a private fit do not learn much
                raise
    return [
        each
        for each in caught
        if issubclass(each.category, PrivacyLeakWarning) and "random_state=" not in str(each.message)
    ]


@over_rows("name", COMPOSITIONS)
def test_each_composition_is_told_once(name):
    run, expected = COMPOSITIONS[name]
    messages = told(run)
    assert len({str(each.message) for each in messages}) == len(messages) <= 2
    text = " ".join(str(each.message) for each in messages)
    assert re.search(expected, text), text
    assert "\n" not in text
    assert all(each.filename == __file__ for each in messages)
    assert errors_of(run, name) == []


def errors_of(run, name):
    """Charges of a composition where leaks are errors: none, although it was reported before."""
    charges = []
    with pytest.MonkeyPatch.context() as patch, config_context(on_leak="raise"), warnings.catch_warnings():
        patch.setattr(PrivacyAccountant, "spend", lambda self, *given, **named: charges.append(given))
        warnings.simplefilter("ignore")
        try:
            run()
        except PrivacyLeakWarning:
            return charges
        except ValueError as error:  # scikit-learn collects the errors of all fits
            if "PrivacyLeakWarning" not in str(error):
                raise
            return charges
    # there scores are NaN instead
    assert name == "scores"
    return charges


SILENT = {
    "direct": lambda: model().fit(X, Y),
    "transform": lambda: DPPCA(2).set_output(transform="pandas").fit_transform(X),
    "pipeline": lambda: pipe(Normalizer(), "passthrough", model()).fit(X, Y),
    "union": lambda: union(DPPCA(2), "passthrough").fit_transform(X),
    "budget": lambda: allocate_budget(pipe(Normalizer(), DPPCA(2), model()), 1.0, 1e-4).fit(X, Y),
    "search": lambda: DPGridSearchCV(model(), GRID).fit(X, Y),
    "search in a pipeline": lambda: pipe(Normalizer(), DPGridSearchCV(model(), GRID)).fit(X, Y),
    "frozen": lambda: pipe(FrozenEstimator(DPPCA(2).fit(X)), model()).fit(X, Y),
}


def in_thread(run):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@over_rows("name", SILENT)
def test_what_is_paid_for_is_silent(name):
    assert [str(each.message) for each in told(SILENT[name])] == []
    if name in ("search", "budget", "pipeline"):
        with parallel_config("threading", n_jobs=2):
            assert told(SILENT[name]) == []


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_are_silent():
    """Whatever else fails there, no check is taken for a composition."""
    told_in = []
    real = skdp.base.foreign_fits.report_leak
    skdp.base.foreign_fits.report_leak = lambda message, **named: told_in.append(message) or real(message, **named)
    try:
        check_estimator(DPPCA(1), on_fail=None, on_skip=None)
    finally:
        skdp.base.foreign_fits.report_leak = real
    assert told_in == []


def test_hundred_fits_of_one_object_tell_once_and_another_object_again():
    first = Foreign(model())
    assert len(told(lambda: [first.fit(X, Y) for _ in range(5)])) == 1
    assert len(told(lambda: [clone(first).fit(X, Y) for _ in range(3)])) == 3
    grid = GridSearchCV(pipe(StandardScaler(), model()), {"dplogisticregression__alpha": [0.0, 0.1]}, cv=3)
    (message,) = [str(each.message) for each in told(lambda: grid.fit(X, Y))]
    assert "scores of private rows" in message
    assert "standardscaler" in message
    assert told(lambda: grid.fit(X, Y)) == []


def test_an_error_is_raised_for_each_fit_of_one_object():
    first = Foreign(model())
    with config_context(on_leak="raise"):
        for _ in range(3):
            with pytest.raises(PrivacyLeakWarning, match="inside Foreign"):
                first.fit(X, Y)
    assert len(told(lambda: first.fit(X, Y))) == 1
    assert told(lambda: first.fit(X, Y)) == []
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
        first.fit(X, Y)


def test_nothing_is_kept_alive():
    """Neither the frames that were looked at nor the object that was told of: tables are large, and private."""
    gc.disable()
    try:
        outer, table = Foreign(model()), X.copy()
        gone = [weakref.ref(outer), weakref.ref(table)]
        with pytest.warns(PrivacyLeakWarning, match="inside Foreign"):
            outer.fit(table, Y)
        del outer, table
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()


# --- callers of every kind ---


class Stub(DPLogisticRegression):
    """Reports, and does nothing else."""

    def fit(self, X=None, y=None):
        report_foreign_fit(self)
        return self


class Parametrized:
    """Has what makes a class a composition: ``fit`` and ``get_params``."""

    __slots__ = ()

    def get_params(self, deep=True):
        return {}


class Raising(Parametrized):
    """Looks like an estimator and fails whenever it is looked at."""

    def __getattr__(self, name):
        raise RuntimeError("do not look at me")

    def fit(self):
        return Stub().fit()


def test_strange_caller_warns():
    assert ["inside Raising:" in str(each.message) for each in told(Raising().fit)] == [True]


def test_callers_that_are_no_compositions_are_silent():
    class Churn:
        def fit(self):
            return model().fit(X, Y)

        def main(self):
            return model().fit(X, Y)

    def _fit_and_score():  # a name alone is not scikit-learn
        return model().fit(X, Y)

    for run in (Churn().fit, Churn().main, _fit_and_score):
        assert told(run) == []


# --- fitted models inside wrappers that fit nothing private ---

PREFIT = {
    "calibrated": (
        lambda m: CalibratedClassifierCV(FrozenEstimator(m), method="isotonic").fit(X, Y),
        "Use skdp.DPCalibratedClassifier",
    ),
    "calibrated pipeline": (
        lambda m: CalibratedClassifierCV(pipe(Normalizer(), FrozenEstimator(m))).fit(X, Y),
        "Use skdp.DPCalibratedClassifier",
    ),
    "threshold": (
        lambda m: TunedThresholdClassifierCV(FrozenEstimator(m), cv="prefit", refit=False).fit(X, Y),
        "Use skdp.DPThresholdClassifier",
    ),
    "scores": (lambda m: cross_val_score(FrozenEstimator(m), X, Y, cv=2), SCORES),
}


@over_rows(
    ("name", "backend"),
    [
        *((name, "sequential") for name in PREFIT),
        ("calibrated", "threading"),
        ("scores", "threading"),
        ("calibrated pipeline", "loky"),
    ],
)
def test_prefit_wrapper_warns_or_raises(name, backend):
    run, expected = PREFIT[name]
    fitted = model().fit(X, Y)
    with parallel_config(backend, n_jobs=2):
        messages = told(lambda: run(fitted))
        with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning):
            run(fitted)
    if backend == "sequential":
        (warning,) = messages
        assert re.search(expected, str(warning.message))
        assert warning.filename == __file__
    elif backend == "loky" and name == "calibrated pipeline":
        assert messages == []  # the worker warns on its standard error only
    else:
        assert 1 <= len(messages) <= 2
    assert told(lambda: fitted.predict(X)) == []


def test_frozen_transformer_before_public_model_warns():
    fitted = DPPCA(2).fit(X)
    (warning,) = told(lambda: pipe(FrozenEstimator(fitted), LogisticRegression()).fit(X, Y))
    assert "Use skdp.DPLogisticRegression" in str(warning.message)


def test_pipeline_changed_after_safe_fit_warns():
    safe = pipe(Normalizer(), model())
    assert told(lambda: safe.fit(X, Y)) == []
    safe.set_params(normalizer=StandardScaler())
    (warning,) = told(lambda: safe.fit(X, Y))
    assert "'normalizer' (StandardScaler)" in str(warning.message)


def test_subclass_tags_with_super_keep_warning():
    class Own(DPLogisticRegression):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.non_deterministic = True
            return tags

    fitted = Own(classes=[0, 1], max_iter=2).fit(X, Y)
    assert len(told(lambda: CalibratedClassifierCV(FrozenEstimator(fitted)).fit(X, Y))) == 1


def test_same_model_in_threads_warns_for_each_composition():
    """A composition that was reported earlier does not silence another one that the user calls in a thread."""
    shared, search = model(), GridSearchCV(model(), GRID, cv=2)
    search.set_params(estimator=shared)
    assert len(told(lambda: search.fit(X, Y))) == 1
    assert len(told(lambda: in_thread(lambda: cross_val_predict(shared, X, Y, cv=2)))) == 1
    assert len(told(lambda: in_thread(lambda: RFE(shared, n_features_to_select=2).fit(X, Y)))) == 1
