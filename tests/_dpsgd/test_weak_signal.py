"""Too few rows for a model that noise does not decide: a warning, from public numbers alone."""

import re
import warnings

import numpy as np
from combinations import over_rows
from sklearn.base import clone, is_regressor

import skdp
from skdp._checks.notices import notices_of

FEW = r"^{} rows are too few for {} parameters at .* noise dominates .* Use more rows, fewer columns or .*\.$"


def rows_of(n, d=11, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.arange(n) % 2


def told(model, *data):
    """The messages of a fit about few rows."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(*data)
    return [str(each.message) for each in caught if "rows are too few" in str(each.message)]


def model_of(**own):
    return skdp.DPLogisticRegression(**{"classes": [0, 1], "delta": 1e-5, **own})


@over_rows(
    ("n", "d", "own"),
    [
        (120, 11, {}),  # 9.3
        (500, 500, {}),
        (500, 11, {"epsilon": None, "noise_multiplier": 300.0}),
        (500, 11, {"sampling_rate": 0.1, "epsilon": 0.1}),
    ],
)
def test_few_rows_are_told(n, d, own):
    (message,) = told(model_of(**own), *rows_of(n, d))
    assert "\n" not in message
    assert re.match(FEW.format(n, d + 1), message)


@over_rows(("n", "d", "own"), [(2_000, 198, {}), (140, 11, {}), (10_000, 11, {"epsilon": 0.1})])
def test_ordinary_use_is_not(n, d, own):
    assert told(model_of(**own), *rows_of(n, d)) == []


REGRESSORS = {
    "ridge": skdp.DPRidge(y_bounds=(-1, 1)),
    "network": skdp.DPMLPRegressor(5, y_bounds=(-1, 1), max_iter=5),
    "trees": skdp.DPRandomTreesRegressor(5, bounds=(-1, 1), y_bounds=(-1, 1), max_iter=5),
    "classifier by trees": skdp.DPRandomTreesClassifier(5, bounds=(-1, 1), max_iter=5),
    "naive Bayes": skdp.DPGaussianNB(bounds=(-1, 1)),
}


@over_rows("name", REGRESSORS)
def test_every_model_tells_of_few_rows(name):
    model = clone(REGRESSORS[name])
    X, y = rows_of(50, 4)
    (message,) = told(model, X, X[:, 0] if is_regressor(model) else y)
    assert message.startswith("50 rows are too few for ")
    assert notices_of(model)[message]  # classifiers name classes that noise hides, too
    assert told(model.set_params(epsilon=300.0), X, X[:, 0] if is_regressor(model) else y) == []


def test_the_number_of_classes_among_the_labels_is_not_told():
    X, y = rows_of(40)
    assert told(model_of(classes=None), X, np.arange(40) % 4) == told(model_of(), X, y) != []


def test_other_rows_are_told_the_same():
    """Labels and cells have no say, nor the number of rows under add_remove."""
    X, y = rows_of(30)
    assert told(model_of(), X, y) == told(model_of(), 100 * X[::-1], 1 - y) != []
    public = {"adjacency": skdp.AddRemove(30)}
    assert told(model_of(**public), X, y) == told(model_of(**public), *rows_of(31)) == told(model_of(), X, y)
    assert told(model_of(adjacency=skdp.AddRemove(5_000)), X, y) == []
