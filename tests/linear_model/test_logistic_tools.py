"""DPLogisticRegression among scikit-learn's tools, and its pickles."""

import copy
import itertools
import pickle

import joblib
import numpy as np
import pytest
import sklearn
from combinations import over_rows
from logistic import POISSON, binary
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp.mechanisms.streams
from skdp import PrivacyAccountant, PrivacyLeakWarning
from skdp.accounting import SelfComposedDpEvent, get_epsilon

# --- life among scikit-learn's tools ----------------------------------------------------------------------------------


def fit_folds_in_threads(model, X, y):
    with joblib.parallel_config("threading", n_jobs=2):
        cross_val_score(model, X, y, cv=KFold(4))
    return 4


def fit_pipeline_in_grid_search(model, X, y):
    pipeline = make_pipeline(ColumnTransformer([("all", "passthrough", slice(0, 4))]), model)
    GridSearchCV(pipeline, {"dplogisticregression__alpha": [0.0, 0.1]}, cv=KFold(2)).fit(X, y)
    return 5


def fit_copies(model, X, y):
    copy.deepcopy(model).fit(X, y)
    copy.copy(model).fit(X, y)
    copy.deepcopy(make_pipeline(model)).fit(X, y)
    return 3


@over_rows("way", [fit_folds_in_threads, fit_pipeline_in_grid_search, fit_copies])
def test_one_bill_for_all_fits_wherever_they_are_made(table, way):
    """Property 17: the total is the number of fits times their cost."""
    accountant = PrivacyAccountant()
    model = binary(epsilon=None, noise_multiplier=80.0, accountant=accountant)
    n_fits = way(model, *table)
    one = binary(epsilon=None, noise_multiplier=80.0).fit(*table).privacy_event_
    assert [charge.event for charge in accountant.history] == [one] * n_fits
    assert accountant.get_epsilon(1e-5) == get_epsilon(SelfComposedDpEvent(one, n_fits), 1e-5)


def test_metadata_routing_of_weights(draw):
    X, y = draw()
    y[::2] = 1 - y[::2]
    weights = np.arange(400.0) % 2  # mutes the rows whose labels were turned round
    with sklearn.config_context(enable_metadata_routing=True):
        model = binary(epsilon=8.0, random_state=0).set_fit_request(sample_weight=True)
        direct = clone(model).fit(X, y, sample_weight=weights)
        piped = make_pipeline(FunctionTransformer(), clone(model)).fit(X, y, sample_weight=weights)
        searched = GridSearchCV(clone(model).set_score_request(sample_weight=True), {"alpha": [0.0]}, cv=KFold(2))
        searched.fit(X, y, sample_weight=weights)
        rejected = binary().set_fit_request(sample_weight=None)
        with pytest.raises(ValueError, match="sample_weight"):
            make_pipeline(FunctionTransformer(), rejected).fit(X, y, sample_weight=weights)
    assert not np.allclose(direct.coef_, clone(model).fit(X, y).coef_)
    np.testing.assert_array_equal(piped[-1].coef_, direct.coef_)
    np.testing.assert_array_equal(searched.best_estimator_.coef_, direct.coef_)


# --- pickles ----------------------------------------------------------------------------------------------------------


@over_rows("seed", [None, 0])
def test_no_key_is_left_behind(table, seed, monkeypatch):
    keys = []
    original = skdp.mechanisms.streams.SecretStream.__init__

    def remembering(self, key, *track):
        keys.append(key)
        original(self, key, *track)

    monkeypatch.setattr(skdp.mechanisms.streams.SecretStream, "__init__", remembering)
    model = binary(random_state=seed, **POISSON).fit(*table)
    assert len(keys) >= 3  # the root, sampling, noise
    places = pickle.dumps(model), repr(model).encode(), repr(model.get_params()).encode(), repr(vars(model)).encode()
    for key, place in itertools.product(keys, places):
        for form in (key, key.hex().encode(), repr(key).encode()):
            assert form not in place
    kinds = {type(value).__name__ for value in vars(model).values()}
    assert kinds.isdisjoint({"SecretStream", "Generator", "RandomState", "LinearModel", "ThreadPoolExecutor"})


def test_bagging_sets_seeds_and_is_told_so(table):
    """scikit-learn hands every member an int seed: the noise is then foreseeable."""
    with pytest.warns(PrivacyLeakWarning, match="random_state="):
        BaggingClassifier(binary(), n_estimators=1, bootstrap=False).fit(*table)
