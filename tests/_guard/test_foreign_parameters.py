"""Parameters of scikit-learn's estimators that ours do not have: one line, with what takes their place."""

from __future__ import annotations

import inspect

import pytest
from combinations import over_rows
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline

from skdp import (
    DPPCA,
    DPGaussianNB,
    DPGridSearchCV,
    DPIsolationForest,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    DPMLPClassifier,
    DPMLPRegressor,
    DPRandomizedSearchCV,
    DPRidge,
    allocate_budget,
)
from skdp._guard.foreign_parameters import REMOVED, REPLACEMENTS
from skdp.base import PrivateEstimator

OURS = {
    DPLogisticRegression: ((), {"C", "cv", "early_stopping", "tol", "penalty", "solver", "n_iter_no_change"}),
    DPMLPClassifier: ((), {"C", "tol", "early_stopping", "validation_fraction", "n_iter_no_change", "shuffle"}),
    DPMLPRegressor: ((), {"tol", "early_stopping", "shuffle"}),
    DPPCA: ((), {"svd_solver", "tol", "copy", "iterated_power"}),
    DPLinearRegression: ((), {"copy_X", "positive", "n_jobs"}),
    DPRidge: ((), {"solver", "max_iter", "tol", "positive"}),
    DPGaussianNB: ((), {"priors", "var_smoothing"}),
    DPKMeans: ((), {"algorithm", "copy_x", "init", "n_init", "tol", "verbose"}),
    DPIsolationForest: ((), {"max_samples", "max_features", "bootstrap", "verbose", "warm_start"}),
    DPGridSearchCV: ((DPLogisticRegression(), {}), {"cv", "error_score", "return_train_score"}),
    DPRandomizedSearchCV: ((DPLogisticRegression(), {}), {"cv", "pre_dispatch"}),
}
PEERS = (
    LogisticRegression, MLPClassifier, MLPRegressor, PCA, LinearRegression, Ridge, GaussianNB, KMeans, IsolationForest,
    GridSearchCV, RandomizedSearchCV,
)  # fmt: skip


@over_rows("cls", OURS)
def test_foreign_parameter_points_to_documentation(cls):
    arguments, names = OURS[cls]
    for name in names:
        message = rf"^{cls.__name__} has no parameter '{name}': .*\(docs/coming_from.md\)\.$"
        with pytest.raises(TypeError, match=message):
            cls(*arguments, **{name: 1})
        with pytest.raises(TypeError, match=message):
            cls(*arguments).set_params(**{name: 1})


@over_rows("name", REMOVED)
def test_removed_parameter_names_its_replacement(name):
    model = DPLogisticRegression(classes=[0, 1])
    for call in (DPLogisticRegression, model.set_params):
        with pytest.raises(TypeError, match=f"no longer has the parameter '{name}'") as error:
            call(**{name: 1})
        assert REMOVED[name] in str(error.value)
        assert "\n" not in str(error.value)


@over_rows(("cls", "peer"), zip(OURS, PEERS, strict=True))
def test_parameter_of_peer_exists_or_is_explained(cls, peer):
    peer = set(inspect.signature(peer).parameters)
    ours = set(inspect.signature(cls).parameters)
    assert not peer - ours - REPLACEMENTS.keys()


def test_steps_and_candidates_say_it_too():
    pipe = allocate_budget(make_pipeline(DPPCA(2), DPLogisticRegression(classes=[0, 1])), 1.0)
    with pytest.raises(TypeError, match="has no parameter 'C': use alpha"):
        pipe.set_params(dplogisticregression__C=1.0)
    search = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"C": [1.0, 2.0]})
    with pytest.raises(TypeError, match="has no parameter 'C': use alpha"):
        search.fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    with pytest.raises(TypeError, match="has no parameter 'C': use alpha"):
        search.set_params(estimator__C=1.0)


@over_rows("cls", OURS)
def test_other_names_get_pythons_own_error(cls):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'epsilonn'"):
        cls(*OURS[cls][0], epsilonn=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'epsilonn'"):
        cls(*OURS[cls][0]).set_params(epsilonn=1.0)


def test_what_a_subclass_names_is_its_own():
    class Newcomer(PrivateEstimator):
        def __init__(self, C=1.0):
            self.C = C

    assert Newcomer(C=2.0).set_params(C=3.0).C == 3.0
    with pytest.raises(TypeError, match="Newcomer has no parameter 'tol'"):
        Newcomer(tol=1.0)
