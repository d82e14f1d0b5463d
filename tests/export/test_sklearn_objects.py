"""`to_sklearn`: plain objects that predict alike, or a refusal by name that says why."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import (
    DPPCA,
    DPGaussianNB,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPClassifier,
    DPRidge,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyAccountant,
    allocate_budget,
)
from skdp.export import to_sklearn

FEW = {"max_iter": 1, "random_state": 0}
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
TWO, THREE = (X[:, 0] > 0).astype(int), np.array([*"abc"])[rng.integers(0, 3, 200)]
FAR = rng.normal(size=(300, 3)) * np.array([1.0, 100.0, 1e-3])
NEAR = Normalizer().fit_transform(FAR)


@pytest.fixture(autouse=True)
def _seeds_are_no_matter(recwarn):
    """Seeds warn, and fits of few rows."""


def parts_of(made):
    """All estimators that something consists of."""
    yield made
    for _, step in getattr(made, "steps", ()):
        yield from parts_of(step)


def assert_alike(model, made, rows):
    assert all(
        type(part).__module__.startswith("sklearn.") for part in parts_of(made) if isinstance(part, BaseEstimator)
    )
    assert b"skdp" not in pickle.dumps(made)
    methods = [name for name in ("transform", "predict", "predict_proba", "decision_function") if hasattr(model, name)]
    assert methods
    for method in methods:
        found, wanted = getattr(made, method)(rows), getattr(model, method)(rows)
        if wanted.dtype.kind == "U":
            assert (found == wanted).all()
        else:
            assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12, equal_nan=True), method


ALWAYS = {
    "scaler": lambda: DPStandardScaler(bounds=[(-2, 2), (-1, 3), (0, 1)], random_state=0).fit(X),
    "no mean": lambda: DPStandardScaler(bounds=(-2, 2), with_mean=False, random_state=0).fit(X),
    "no scale": lambda: DPStandardScaler(bounds=(-2, 2), with_std=False, random_state=0).fit(X),
    "bayes": lambda: DPGaussianNB(classes=[*"abc"], bounds=(-2, 2), random_state=0).fit(X, THREE),
    "a pipeline": lambda: allocate_budget(
        make_pipeline(Normalizer(), DPStandardScaler(bounds=(-2, 2), random_state=0),
                      DPGaussianNB(classes=[0, 1], bounds=(-2, 2), random_state=0)), 1.0,
    ).fit(X, TWO),
}  # fmt: skip
OF_SHORT_ROWS = {
    "linear": lambda: DPLogisticRegression(classes=[0, 1], data_norm=1.01, **FEW).fit(X, TWO),
    "three classes": lambda: DPLogisticRegression(classes=[*"abc"], data_norm=1.01, **FEW).fit(X, THREE),
    "components": lambda: DPPCA(2, data_norm=9.0, random_state=0).fit(X),
    "whitened": lambda: DPPCA(2, data_norm=9.0, whiten=True, random_state=0).fit(X),
    "a search": lambda: DPGridSearchCV(
        DPLogisticRegression(classes=[0, 1], max_iter=1), {"data_norm": [1.01, 1.02]}, epsilon=2.0, random_state=0
    ).fit(X, TWO),
}


@pytest.mark.parametrize("name", ALWAYS)
def test_values_between_bounds_are_treated_alike(name):
    model = ALWAYS[name]()
    assert_alike(model, to_sklearn(model), FAR)


@pytest.mark.parametrize("name", OF_SHORT_ROWS)
def test_rows_that_are_short_are_treated_alike(name):
    model = OF_SHORT_ROWS[name]()
    with pytest.raises(TypeError, match=r"\ADP\w+ has no counterpart in scikit-learn: it scales rows down.*\Z"):
        to_sklearn(model)
    assert_alike(model, to_sklearn(model, rows_are_short=True), NEAR)
    longer = np.abs(model.predict_proba(FAR) - to_sklearn(model, rows_are_short=True).predict_proba(FAR)) if hasattr(
        model, "predict_proba") else np.ones(1)  # fmt: skip
    assert longer.max() > 1e-6  # what the refusal is for


def test_gaps_and_names_are_kept():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = DPStandardScaler(bounds=(-2, 2), random_state=0).fit(frame)
    frame.iloc[0, 1] = np.nan
    made = to_sklearn(model)
    assert np.allclose(made.transform(frame), model.transform(frame), equal_nan=True)
    assert made.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        made.transform(frame.rename(columns={"a": "d"}))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: DPRidge(y_bounds=(0, 1), random_state=0), "DPRidge has no counterpart in scikit-learn: it moves"),
        (lambda: DPMLPClassifier((3,), classes=[0, 1], **FEW), "DPMLPClassifier has no counterpart in scikit-learn: "),
        (lambda: make_pipeline(DPTableVectorizer({f"x{j}": (-1, 1) for j in range(3)}), DPLogisticRegression(
            classes=[0, 1], **FEW)), "DPTableVectorizer has no counterpart in scikit-learn: no s"),
        (lambda: DPPCA(2, normalize=True, center=False, random_state=0), "DPPCA has no counterpart in scikit-learn"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_by_name(make, why):
    with pytest.raises(TypeError, match=rf"\A{re.escape(why)}[^\n]*; [^\n]*to_onnx[^\n]*\Z"):
        to_sklearn(make().fit(X, TWO), rows_are_short=True)


def test_naive_bayes_with_indicator_columns_is_rejected():
    rows = DPTableVectorizer({f"x{j}": (-1, 1) for j in range(3)}, sparse_output=False).fit_transform(X)
    model = DPGaussianNB(classes=[0, 1], random_state=0).fit(rows, TWO)
    with pytest.raises(TypeError, match=r"\ADPGaussianNB has no counterpart[^\n]*indicator[^\n]*to_onnx[^\n]*\Z"):
        to_sklearn(model)


def test_nothing_of_a_ledger_goes_along():
    ledger = PrivacyAccountant(epsilon=9.0, delta=1e-5)
    model = DPLogisticRegression(classes=[0, 1], accountant=ledger, **FEW).fit(X, TWO)
    made = to_sklearn(model, rows_are_short=True)
    assert b"Accountant" not in pickle.dumps(made)
    made.coef_ += 1.0  # a copy
    assert not np.allclose(made.coef_, model.coef_)
