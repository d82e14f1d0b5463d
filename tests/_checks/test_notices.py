"""The notice of raw columns: by the kind of the table and by parameters, never by what is in it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from combinations import over_rows
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGaussianNB,
    DPLogisticRegression,
    DPMLPClassifier,
    DPTableVectorizer,
    allocate_budget,
    tabular_pipeline,
)
from skdp._checks.notices import notices_of
from skdp.ensemble import DPRandomTreesClassifier
from skdp.exceptions import QualityWarning

N = 40
FRAME = pd.DataFrame({"age": np.linspace(18, 90, N), "income": np.linspace(0, 1e5, N)})
Y = np.arange(N) % 2
SCHEMA = {"age": (0, 99), "income": (0, 1e5)}
MODELS = {
    "data_norm": [DPLogisticRegression(classes=[0, 1], max_iter=2), DPMLPClassifier((2,), classes=[0, 1], max_iter=2)],
    "bounds": [DPGaussianNB(classes=[0, 1])],
}
CASES = [(model, assumed) for assumed, models in MODELS.items() for model in models]


def told(model, X):
    """Notices of raw columns of one fit."""
    with warnings.catch_warnings(record=True, action="always") as found:
        model.fit(X, Y)
    return [str(each.message) for each in found if "data frame without preprocessing" in str(each.message)]


@over_rows(("model", "assumed"), CASES)
def test_frames_of_raw_columns_are_told_of_whatever_they_hold(model, assumed):
    (text,) = told(model, FRAME)
    assert f"{assumed}` was not set, so columns are assumed to lie in [-1, 1]" in text
    assert told(model, FRAME * 0.0) == told(model, pl.from_pandas(FRAME)) == [text]
    assert text in notices_of(model)  # which the report has
    with pytest.warns(QualityWarning, match="data frame without preprocessing"):
        model.fit(FRAME, Y)


@over_rows(("model", "assumed"), CASES)
def test_what_is_given_or_vectorized_is_not_told_of(model, assumed):
    assert told(model, FRAME.to_numpy()) == []  # nobody knows whether it was scaled
    given = model.__class__(**{**model.get_params(), assumed: 1.0 if assumed == "data_norm" else (-2.0, 2.0)})
    assert told(given, FRAME) == []
    if assumed == "data_norm":
        assert told(make_pipeline(DPTableVectorizer(SCHEMA), model), FRAME) == []
        assert told(tabular_pipeline(model, schema=SCHEMA), FRAME) == []
        assert len(told(allocate_budget(make_pipeline(model), 1.0, 1e-5), FRAME)) == 1


def test_models_of_tables_read_frames_themselves():
    assert told(DPRandomTreesClassifier(3, schema=SCHEMA, classes=[0, 1], max_iter=2), FRAME) == []
