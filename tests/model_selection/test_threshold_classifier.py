"""Thresholds for a purpose: the best ones of a table, and what they keep on the rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from watched import Watched

from skdp import DPThresholdClassifier, PrivacyAccountant
from skdp.model_selection.threshold_classifier import RATES, Purpose, choose_thresholds

N = 20_000


class Model(Watched):
    feature_names_in_ = np.array(["score"])


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M", "x"], N, p=[0.5, 0.4, 0.1])
    scores = rng.uniform(size=N)
    y = (rng.uniform(size=N) < np.where(sex == "F", scores, scores**3)).astype(int)
    return pd.DataFrame({"score": scores, "sex": sex}), y


def fitted(people, **parameters):
    return DPThresholdClassifier(FrozenEstimator(Model()), **{"epsilon": 1.0, **parameters}).fit(*people)


def test_the_least_cost_is_found(people):
    frame, y = people
    cost = np.array([[0.0, 1.0], [4.0, -0.5]])
    found = fitted(people, cost=cost, epsilon=100.0)
    at = np.arange(found.evaluation_.n_bins_ + 1) / found.evaluation_.n_bins_
    exact = [cost[y, (frame["score"] >= t).astype(int)].mean() for t in at]
    ours = cost[y, found.predict(frame)].mean()
    assert ours <= min(exact) + 1e-3
    np.testing.assert_array_equal(found.predict(frame), (frame["score"] >= found.thresholds_["all"]).astype(int))


def test_a_precision_or_a_recall_is_kept(people):
    frame, y = people
    found = fitted(people, min_precision=0.8)
    predicted = found.predict(frame) == 1
    assert y[predicted].mean() == pytest.approx(0.8, abs=0.03)
    found = fitted(people, min_recall=0.9)
    assert found.predict(frame)[y == 1].mean() == pytest.approx(0.9, abs=0.03)


def test_where_no_threshold_keeps_a_share_the_closest_one_is_taken():
    tables = np.array([[[8.0, 3.0, 1.0, 2.0], [1.0, 2.0, 9.0, 4.0]]])
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert choose_thresholds(tables, Purpose(cost, 0.99, 0.5, None))[0] == pytest.approx(0.5, abs=0.01)
    assert choose_thresholds(tables, Purpose(cost, 0.99, None, None))[0] == 1.0  # nobody is predicted


@pytest.mark.parametrize("rate", RATES)
def test_rates_of_subgroups_are_equal(people, rate):
    frame, y = people
    found = fitted(people, equal_rates=rate, by="sex", categories=["F", "M"])
    assert list(found.thresholds_) == ["F", "M", "other"]
    of = {"selection_rate": y >= 0, "true_positive_rate": y == 1, "false_positive_rate": y == 0}[rate]
    rates = [found.predict(frame)[of & (frame["sex"] == name)].mean() for name in "FMx"]
    assert max(rates) - min(rates) < 0.08
    assert min(rates) > 0.05


def test_a_subgroup_that_nobody_is_in_has_a_threshold():
    tables = np.zeros((2, 2, 8))
    tables[0, 0, :4] = tables[0, 1, 4:] = 10.0
    found = choose_thresholds(tables, Purpose(np.array([[0.0, 1.0], [1.0, 0.0]]), None, None, "true_positive_rate"))
    assert found[0] == pytest.approx(0.5)
    assert 0.0 <= found[1] <= 1.0
    assert choose_thresholds(np.zeros((1, 2, 8)), Purpose(np.eye(2), 0.5, 0.5, None)).shape == (1,)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"cost": [[0, 1]]}, "cost"),
        ({"cost": [[0, np.inf], [1, 0]]}, "cost"),
        ({"min_precision": 1.5}, "min_precision"),
        ({"min_recall": 0.0}, "min_recall"),
        ({"equal_rates": "luck", "by": "sex", "categories": ["F"]}, "equal_rates"),
        ({"equal_rates": "selection_rate"}, "must be set together"),
        ({"equal_rates": "selection_rate", "by": "height", "categories": ["F"]}, "got 'height'"),
        ({"equal_rates": "selection_rate", "by": "sex", "categories": ["F", "F"]}, "categories"),
    ],
)
def test_bad_purposes_are_rejected_in_one_line_and_cost_nothing(people, parameters, named):
    ledger = PrivacyAccountant(9.0, 1e-5)
    with pytest.raises(ValueError, match=named) as caught:
        fitted(people, accountant=ledger, **parameters)
    assert "\n" not in str(caught.value)
    assert ledger.spent == 0.0
