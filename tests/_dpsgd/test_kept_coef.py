"""Coefficients of classifiers of many columns: the public factor that they are multiplied by."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from skdp import DPLogisticRegression, tabular_pipeline
from skdp._dpsgd import defaults
from skdp.exceptions import QualityWarning


def table(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (n, d)), columns=[f"c{j}" for j in range(d)])
    return X, (X["c0"] + rng.normal(0.0, 0.5, n) > 0.0).astype(int).to_numpy(), dict.fromkeys(X, (-1, 1))


def fitted(model, X, y, schema, epsilon):
    made = tabular_pipeline(model, schema=schema, epsilon=epsilon, classes=[0, 1], random_state=0)
    return made.set_params(vectorizer__fit_bins=False).fit(X, y)


@pytest.mark.parametrize("model", ["trees", "logistic"])
def test_many_columns_give_no_worse_than_a_constant(model, monkeypatch):
    """Seeded; the log loss without the factor is 0.72 and more."""
    X, y, schema = table(3_000, 60)
    X_test, y_test, _ = table(4_000, 60, seed=1)
    make = {"trees": lambda: "classifier", "logistic": DPLogisticRegression}[model]
    with pytest.warns(
        QualityWarning, match="rows are too few for this number of columns at noise=.* shrunk by a factor of"
    ):
        kept = fitted(make(), X, y, schema, 0.15)
    assert log_loss(y_test, kept.predict_proba(X_test)) <= 1.02 * np.log(2.0)
    monkeypatch.setattr(defaults, "kept_of_coef", lambda *given: 1.0)
    whole = fitted(make(), X, y, schema, 0.15)
    assert log_loss(y_test, whole.predict_proba(X_test)) > 1.02 * np.log(2.0)
    factor = kept[-1].coef_noise_ / whole[-1].coef_noise_
    np.testing.assert_allclose(kept[-1].coef_, factor * whole[-1].coef_)
    assert factor.max() < 0.5


def test_enough_rows_and_own_learning_rate_keep_all():
    X, y, schema = table(3_000, 3)
    with warnings.catch_warnings(action="error", category=QualityWarning):
        fitted("classifier", X, y, schema, 1.0)
    X, y, schema = table(200, 30)
    own = fitted(DPLogisticRegression(learning_rate=20.0), X, y, schema, 0.3)
    assert np.abs(own[-1].coef_).max() > 1e-2
