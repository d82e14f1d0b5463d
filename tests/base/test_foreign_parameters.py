"""Parameters of scikit-learn's estimators that ours do not have: one line, with what takes their place."""

import importlib
import inspect
import pickle

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

import skdp
from skdp.base import PrivateEstimator
from skdp.base.estimator import REPLACEMENTS
from skdp.exceptions import REMOVED

OURS = {
    skdp.DPLogisticRegression: ((), {"C", "cv", "early_stopping", "tol", "penalty", "solver", "n_iter_no_change"}),
    skdp.DPMLPClassifier: ((), {"C", "tol", "early_stopping", "validation_fraction", "n_iter_no_change", "shuffle"}),
    skdp.DPMLPRegressor: ((), {"tol", "early_stopping", "shuffle"}),
    skdp.DPPCA: ((), {"svd_solver", "tol", "copy", "iterated_power"}),
    skdp.DPLinearRegression: ((), {"copy_X", "positive", "n_jobs"}),
    skdp.DPRidge: ((), {"solver", "max_iter", "tol", "positive"}),
    skdp.DPGaussianNB: ((), {"priors", "var_smoothing"}),
    skdp.DPKMeans: ((), {"algorithm", "copy_x", "init", "n_init", "tol", "verbose"}),
    skdp.DPIsolationForest: ((), {"max_samples", "max_features", "bootstrap", "verbose", "warm_start"}),
    skdp.DPGridSearchCV: ((skdp.DPLogisticRegression(), {}), {"cv", "error_score", "return_train_score"}),
    skdp.DPRandomizedSearchCV: ((skdp.DPLogisticRegression(), {}), {"cv", "pre_dispatch"}),
}
PEERS = (
    LogisticRegression, MLPClassifier, MLPRegressor, PCA, LinearRegression, Ridge, GaussianNB, KMeans, IsolationForest,
    GridSearchCV, RandomizedSearchCV,
)  # fmt: skip

COMMON = {"risk", "n_samples_public", "n_groups_public"}
GONE = {
    "allocate_budget": {"risk", "shares"},
    "calibrate_jointly": {"risk", "shares"},
    "calibrate_noise_multiplier": {"risk"},
    "calibrate_selection": {"risk"},
    "compare": COMMON,
    "cross_validate": {"risk", "score_share"},
    "describe": {"accounting", *COMMON},
    "dp_bounds": {"accounting", *COMMON},
    "evaluate": COMMON,
    "evaluate_synthesis": COMMON - {"risk"},
    "load_pums": {"labour_force_only"},
    "private_train_test_split": {"ledger"},
    "rehearse": {"class_shares"},
    "synthesize": {"accounting", *COMMON} - {"risk"},
    "synthesize_linked": {"accounting", "n_households_public"},
    "tabular_pipeline": {"risk"},
}
"""Parameters of public functions in earlier versions. Functions of one figure had those of the function below."""
MODULES = [skdp, *(importlib.import_module(f"skdp.{name}") for name in skdp._MODULES)]
FUNCTIONS = {
    found
    for module in MODULES
    for found in (getattr(module, name) for name in module.__all__)
    if inspect.isfunction(found)
}
ONE_FIGURE = {"skdp.metrics": "evaluate", "skdp.statistics": "describe"}


@over_rows("cls", OURS)
def test_foreign_parameter_points_to_documentation(cls):
    arguments, names = OURS[cls]
    for name in names:
        message = rf"^{cls.__name__} has no parameter '{name}'[.:] .*\(docs/migrating.md\)\.$"
        with pytest.raises(TypeError, match=message):
            cls(*arguments, **{name: 1})
        with pytest.raises(TypeError, match=message):
            cls(*arguments).set_params(**{name: 1})


@over_rows("name", [name for name in REMOVED if name != "noise_multiplier"])
def test_removed_parameter_names_its_replacement(name):
    model = skdp.DPLogisticRegression(classes=[0, 1])
    for call in (skdp.DPLogisticRegression, model.set_params):
        with pytest.raises(TypeError, match=f"has no parameter '{name}'") as error:
            call(**{name: 1})
        assert REMOVED[name] in str(error.value)
        assert "\n" not in str(error.value)


def test_removed_parameters_of_functions_name_their_replacement():
    seen = set()
    for function in FUNCTIONS:
        described = [GONE[name] for module, name in ONE_FIGURE.items() if function.__module__.startswith(module)]
        needed = {
            each.name: [0, 1]
            for each in inspect.signature(function).parameters.values()
            if each.default is each.empty and each.kind < each.VAR_KEYWORD
        }
        needed |= {"private_mean_difference": {"bounds": (0, 1), "categories": [0, 1]}}.get(function.__name__, {})
        for name in GONE.get(function.__name__, set().union(*described)):
            with pytest.raises(TypeError, match=f" has no parameter '{name}'") as error:
                function(**needed, **{name: 1})
            assert str(error.value).endswith(f": {REMOVED[name]}.")
            seen.add(function.__name__)
    assert seen >= GONE.keys()


CALLS = {
    "coefficients": lambda: skdp.DPRidge().summary(units=1),
    "sample": lambda: skdp.DPMarginalSynthesizer().sample(1, balanced=True),
    "accountant": lambda: skdp.PrivacyAccountant(risk=0.1),
    "pipeline": lambda: skdp.pipeline.PrivatePipeline([("model", skdp.DPRidge())], shares={}),
    "steps": lambda: skdp.tabular_pipeline().set_params(shares={}),
    "display": lambda: skdp.plotting.BudgetDisplay(ceiling=1.0),
    "effects": lambda: skdp.plotting.EffectDisplay.from_estimator(None, confidence=0.9),
    "table": lambda: skdp.tabular_pipeline(noise_multiplier=1.0),
    "search": lambda: skdp.DPGridSearchCV(skdp.DPRidge(), {}, noise_multiplier=1.0),
}


@over_rows("call", CALLS)
def test_removed_parameters_of_methods_and_containers(call):
    with pytest.raises(TypeError, match=r"\A\w+ has no parameter '\w+'[.:] .*\.\Z"):
        CALLS[call]()


def test_a_function_without_removed_parameters_is_as_it_was():
    assert inspect.signature(skdp.evaluate) == inspect.signature(inspect.unwrap(skdp.evaluate))
    assert pickle.loads(pickle.dumps(skdp.evaluate)) is skdp.evaluate
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'epsilonn'"):
        skdp.evaluate(epsilonn=1.0)


@over_rows(("cls", "peer"), zip(OURS, PEERS, strict=True))
def test_parameter_of_peer_exists_or_is_explained(cls, peer):
    peer = set(inspect.signature(peer).parameters)
    ours = set(inspect.signature(cls).parameters)
    assert not peer - ours - REPLACEMENTS.keys()


def test_steps_and_candidates_say_it_too():
    pipe = skdp.allocate_budget(make_pipeline(skdp.DPPCA(2), skdp.DPLogisticRegression(classes=[0, 1])), 1.0)
    with pytest.raises(TypeError, match=r"has no parameter 'C'. Use `alpha`"):
        pipe.set_params(dplogisticregression__C=1.0)
    search = skdp.DPGridSearchCV(skdp.DPLogisticRegression(classes=[0, 1]), {"C": [1.0, 2.0]})
    with pytest.raises(TypeError, match=r"has no parameter 'C'. Use `alpha`"):
        search.fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    with pytest.raises(TypeError, match=r"has no parameter 'C'. Use `alpha`"):
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
