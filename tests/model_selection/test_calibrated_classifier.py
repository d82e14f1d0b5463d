"""Maps of scores to probabilities: what they are without noise, and what they remedy with it."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

from skdp import DPCalibratedClassifier
from skdp.model_selection.calibrated_classifier import MAPS, fit_map

N = 20_000


class Confident:
    """A fitted model whose logits are twice too large, and too low by one."""

    classes_ = np.array(["no", "yes"])
    _estimator_type = "classifier"

    def predict_proba(self, X):
        chances = 1.0 / (1.0 + np.exp(-2.0 * np.asarray(X)[:, 0] + 1.0))
        return np.column_stack([1.0 - chances, chances])


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 1))
    return X, np.where(rng.uniform(size=N) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no"), 1 / (1 + np.exp(-X[:, 0]))


@pytest.mark.parametrize("method", MAPS)
def test_probabilities_are_mended(people, method):
    X, y, truth = people
    found = DPCalibratedClassifier(FrozenEstimator(Confident()), method=method, epsilon=1.0).fit(X, y)
    before, after = (log_loss(y, model.predict_proba(X)) for model in (Confident(), found))
    best = log_loss(y, np.column_stack([1 - truth, truth]))
    # a temperature alone cannot remedy an offset
    assert after - best < (0.5 if method == "temperature" else 0.05) * (before - best)
    assert found.evaluation_.log_loss.value == pytest.approx(before, abs=0.05)
    chances = found.predict_proba(X)
    np.testing.assert_allclose(chances.sum(1), 1.0)
    assert np.all(np.diff(chances[np.argsort(X[:, 0], kind="stable"), 1]) >= -1e-12)
    np.testing.assert_array_equal(found.predict(X), found.classes_[chances.argmax(1)])


def test_without_noise_the_maps_are_those_of_the_rows(people):
    X, y, _ = people
    given = {"epsilon": 1e6}
    sigmoid = DPCalibratedClassifier(FrozenEstimator(Confident()), **given).fit(X, y)
    assert sigmoid.map_.slope == pytest.approx(0.5, abs=0.03)
    assert sigmoid.map_.offset == pytest.approx(0.5, abs=0.05)
    found = DPCalibratedClassifier(FrozenEstimator(Confident()), method="isotonic", **given).fit(X, y)
    scores = Confident().predict_proba(X)[:, 1]
    exact = IsotonicRegression(out_of_bounds="clip").fit(scores, y == "yes").predict(scores)
    assert np.sqrt(np.mean((found.predict_proba(X)[:, 1] - exact) ** 2)) < 0.02


@pytest.mark.parametrize("method", MAPS)
@pytest.mark.parametrize("table", ["empty", "one class", "one bin"])
def test_any_table_gives_a_map_that_ascends(method, table):
    counts = np.zeros((2, 8))
    if table != "empty":
        counts[1, 3 if table == "one bin" else slice(None)] = 5.0
    chances = fit_map(method, counts, 1.4)(np.linspace(0, 1, 99))
    assert np.all((chances >= 0) & (chances <= 1))
    assert np.all(np.diff(chances) >= -1e-12)
