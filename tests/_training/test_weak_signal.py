"""Too few rows for a model that noise does not decide: a warning, from public numbers alone."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from combinations import over_rows
from sklearn.base import clone, is_regressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import (
    DPGaussianNB,
    DPGridSearchCV,
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPRandomTreesClassifier,
    DPRandomTreesRegressor,
    DPRidge,
    PrivacyAccountant,
    allocate_budget,
    tabular_pipeline,
)
from skdp._checks.notices import notices_of
from skdp.exceptions import QualityWarning

FEW = r"^{} rows are few for {} parameters at .*: noise decides .*; give more rows, fewer columns or .*\.$"


def rows_of(n, d=11, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.arange(n) % 2


def told(model, *data):
    """The messages of a fit about few rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*data)
    return [str(each.message) for each in caught if "rows are few" in str(each.message)]


def model_of(**own):
    return DPLogisticRegression(**{"classes": [0, 1], "delta": 1e-5, **own})


@over_rows(
    ("n", "d", "own"),
    [
        (20, 11, {}),
        (120, 11, {}),  # 9.3
        (1_000, 11, {"epsilon": 0.1}),
        (500, 500, {}),
        (500, 11, {"epsilon": None, "noise_multiplier": 300.0}),
        (500, 11, {"sampling_rate": 0.1, "epsilon": 0.1}),
    ],
)
def test_few_rows_are_told(n, d, own):
    (message,) = told(model_of(**own), *rows_of(n, d))
    assert "\n" not in message
    assert re.match(FEW.format(n, d + 1), message)


@over_rows(
    ("n", "d", "own"),
    [(2_000, 11, {}), (2_000, 198, {}), (140, 11, {}), (10_000, 11, {"epsilon": 0.1}), (200, 11, {"epsilon": 3.0})],
)
def test_ordinary_use_is_not(n, d, own):
    assert told(model_of(**own), *rows_of(n, d)) == []


REGRESSORS = {
    "ridge": DPRidge(y_bounds=(-1, 1)),
    "linear": DPLinearRegression(),
    "network": DPMLPRegressor(5, y_bounds=(-1, 1), max_iter=5),
    "trees": DPRandomTreesRegressor(5, bounds=(-1, 1), y_bounds=(-1, 1), max_iter=5),
    "classifier by trees": DPRandomTreesClassifier(5, bounds=(-1, 1), max_iter=5),
    "naive Bayes": DPGaussianNB(bounds=(-1, 1)),
    "classifier by a network": DPMLPClassifier(5, max_iter=5),
}


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")
@over_rows("name", REGRESSORS)
def test_every_model_tells_of_few_rows(name):
    model = clone(REGRESSORS[name])
    for n in (10, 50, 200) if is_regressor(model) else (10, 50):
        X, y = rows_of(n, 4)
        (message,) = told(model, X, X[:, 0] if is_regressor(model) else y)
        assert message.startswith(f"{n} rows are few for ")
        assert notices_of(model)[message]  # classifiers name classes that noise hides, too
    assert told(model.set_params(epsilon=300.0), X, X[:, 0] if is_regressor(model) else y) == []


@over_rows("kind", ["classifier", "regressor"])
def test_without_a_schema_few_rows_are_told_after_the_purchase(kind):
    X, y = rows_of(200, 3)
    accountant = PrivacyAccountant()
    given = {"classes": [0, 1]} if kind == "classifier" else {"y_bounds": (-1, 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", QualityWarning)
        model = tabular_pipeline(kind, accountant=accountant, **given)
        with pytest.raises(QualityWarning):  # the first one: nothing is left of the columns
            model.fit(X, y)
    assert len(accountant.history) == 1
    assert model.epsilon_ <= 1.0  # nothing that was paid for is lost
    assert "200 rows are few to buy bounds and categories" in " ".join(str(model.privacy_report()).split())


def test_classes_count_as_parameters():
    X, _ = rows_of(200)
    assert told(model_of(classes=[0, 1]), X, np.arange(200) % 2) == []
    (message,) = told(model_of(classes=range(4)), X, np.arange(200) % 4)
    assert message.startswith("200 rows are few for 48 parameters at epsilon=1.0: ")


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")
def test_the_number_of_classes_among_the_labels_is_not_told():
    X, y = rows_of(40)
    assert told(model_of(classes=None), X, np.arange(40) % 4) == told(model_of(), X, y) != []


def test_other_rows_are_told_the_same():
    """Labels and cells have no say, nor the number of rows under add_remove."""
    X, y = rows_of(30)
    assert told(model_of(), X, y) == told(model_of(), 100 * X[::-1], 1 - y) != []
    public = {"adjacency": "add_remove", "n_samples_public": 30}
    assert told(model_of(**public), X, y) == told(model_of(**public), *rows_of(31)) == told(model_of(), X, y)
    assert told(model_of(adjacency="add_remove", n_samples_public=5_000), X, y) == []


def test_a_warning_that_is_an_error_costs_nothing():
    X, y = rows_of(30)
    accountant = PrivacyAccountant()
    model = model_of(accountant=accountant)
    for fitted in (
        model,
        allocate_budget(make_pipeline(Normalizer(), model), 1.0),
        DPGridSearchCV(model, {"alpha": [0.0, 0.1]}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            with pytest.raises(UserWarning, match="rows are few"):
                fitted.fit(X, y)
    assert accountant.history == ()


def test_instalments_are_not_told_again():
    X, y = rows_of(30)
    model = model_of()
    assert told(model, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, y)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_warning_is_about_what_happens():
    """Accuracy of twenty fits to the same 20 rows spreads; that of fits to 2,000 does not."""
    X, y = rows_of(4_000)
    y = (X[:, 0] > 0).astype(int)

    def spread(n):
        fits = [model_of(random_state=seed).fit(X[:n], y[:n]) for seed in range(20)]
        return np.ptp([fit.score(X[2_000:], y[2_000:]) for fit in fits])

    assert spread(20) > 0.2 > 0.1 > spread(2_000)
