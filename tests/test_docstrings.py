"""Docstrings of public objects follow numpydoc, and list every parameter and every fitted attribute."""

import importlib
import inspect
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import ClassDoc, get_doc_object
from numpydoc.validate import ERROR_MSGS, Validator, validate
from sklearn.pipeline import make_pipeline

import skdp
from skdp.accounting import GaussianDpEvent
from skdp.ensemble import PublicTreesEmbedding
from skdp.image import PatchTransformer, ScatteringTransformer
from skdp.plotting import AccountantComparisonDisplay, BudgetDisplay, CoefficientDisplay, PrivacyUtilityDisplay
from skdp.preprocessing import DPOneHotEncoder, DPQuantileBinner, DPSimpleImputer, DPStandardScaler, DPTableVectorizer
from skdp.synthesis import DPWGAN, DPClassMixtureGenerator, DPMarginalSynthesizer

UNCHECKED = {"audit", "evaluation", "metrics", "testing"}
MODULES = ("skdp", *(f"skdp.{name}" for name in skdp._MODULES if name not in UNCHECKED))

EXCLUDED = {
    "ES01": "an extended summary is written where the summary does not say all",
    "EX01": "examples are written where a call is not plain; those that are written run in test_package.py",
    "SA01": "related objects are named where there are any",
    "RT02": "a returned value may bear a name, as in scikit-learn's docstrings",
}
CHECKS = set(ERROR_MSGS) - set(EXCLUDED)


def written_here(owner, name):
    """Whether the attribute of a class is defined in this package, not inherited from scikit-learn or Python."""
    definer = next(cls for cls in owner.__mro__ if name in vars(cls))
    return definer.__module__.partition(".")[0] == "skdp"


def has_docstring(owner, name):
    """Whether an attribute of a class is one that has a docstring: a method, a property or a conditional method."""
    found = inspect.getattr_static(owner, name)
    kinds = (property, classmethod, staticmethod)
    return isinstance(found, kinds) or inspect.isfunction(found) or hasattr(found, "fn")


def public_objects():
    """Paths of the public functions and classes, and of the public methods and properties of the classes."""
    paths = {}
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            found = getattr(importlib.import_module(module), name)
            if not callable(found):
                continue
            paths.setdefault(found, f"{module}.{name}")
    for found, path in list(paths.items()):
        yield path
        for name in dir(found) if inspect.isclass(found) else ():
            if not name.startswith("_") and written_here(found, name) and has_docstring(found, name):
                yield f"{path}.{name}"


OBJECTS = sorted(public_objects())


def faults_of(path):
    return [f"{code} {text}" for code, text in validate(path)["errors"] if code in CHECKS]


def objects_of(module):
    """Those whose longest module of `MODULES` this one is."""
    return [path for path in OBJECTS if max((m for m in MODULES if path.startswith(f"{m}.")), key=len) == module]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_follow_numpydoc(module):
    assert {path: found for path in objects_of(module) if (found := faults_of(path))} == {}


@pytest.mark.parametrize("module", MODULES)
def test_a_name_with_an_underscore_at_its_end_is_in_backticks(module):
    """Elsewhere than in backticks Sphinx takes it for a link."""
    for path in objects_of(module):
        doc = Validator(get_doc_object(Validator._load_obj(path)))
        types = [line for line in doc.raw_doc.splitlines() if " : " in line]
        assert [line for line in types if re.search(r"[ (]\w+_[,)]", line)] == [], path


def test_all_kinds_of_objects_are_looked_at():
    assert {
        "skdp.DPLogisticRegression",
        "skdp.DPLogisticRegression.predict_proba",  # inherited within the package
        "skdp.DPGridSearchCV.predict",  # there only if the best estimator has it
        "skdp.PrivacyAccountant.open",
        "skdp.PrivacyAccountant.spent",
        "skdp.accounting.Charge",
        "skdp.pipeline.PrivatePipeline.fit_transform",
        "skdp.datasets.load_pums",
    } <= set(OBJECTS)
    assert "skdp.DPLogisticRegression.get_params" not in OBJECTS
    assert sorted(path for module in MODULES for path in objects_of(module)) == OBJECTS


def faulty(first, second):
    """returns something"""
    return first + second


def test_faults_are_found():
    codes = {fault.split()[0] for fault in faults_of(f"{__name__}.faulty")}
    assert {"PR01", "RT01", "SS02", "SS03", "SS05"} <= codes


# --- fitted attributes ---

X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (200, 3)), columns=["a", "b", "c"])
Y = (X["a"] > 0).to_numpy().astype(int)
PIXELS = pd.DataFrame(np.zeros((2, 64)), columns=[f"pixel{j}" for j in range(64)])
LINEAR = skdp.DPLogisticRegression(classes=[0, 1], max_iter=2)
GRID = {"alpha": [0.0, 0.1]}
FITTED = {
    "DPLogisticRegression": lambda: LINEAR.fit(X, Y),
    "DPLinearRegression": lambda: skdp.DPLinearRegression((-1, 1)).fit(X, X["a"]),
    "DPRidge": lambda: skdp.DPRidge(y_bounds=(-1, 1)).fit(X, X["a"]),
    "DPPoissonRegressor": lambda: skdp.DPPoissonRegressor((0, 1)).fit(X, Y),
    "DPOrdinalLogisticRegression": lambda: skdp.DPOrdinalLogisticRegression([0, 1]).fit(X, Y),
    "DPIsolationForest": lambda: skdp.DPIsolationForest(2, bounds=(-1, 1)).fit(X),
    "DPKMeans": lambda: skdp.DPKMeans(2, bounds=(-1, 1)).fit(X),
    "DPGaussianNB": lambda: skdp.DPGaussianNB([0, 1]).fit(X, Y),
    "DPMLPClassifier": lambda: skdp.DPMLPClassifier((2,), classes=[0, 1], max_iter=2).fit(X, Y),
    "DPMLPRegressor": lambda: skdp.DPMLPRegressor((2,), y_bounds=(-1, 1), max_iter=2).fit(X, X["a"]),
    "DPPCA": lambda: skdp.DPPCA(2).fit(X),
    "DPGridSearchCV": lambda: skdp.DPGridSearchCV(LINEAR, GRID, epsilon=50.0).fit(X, Y),
    "DPRandomizedSearchCV": lambda: skdp.DPRandomizedSearchCV(LINEAR, GRID, n_iter=2, epsilon=50.0).fit(X, Y),
    "DPCalibratedClassifier": lambda: skdp.DPCalibratedClassifier(LINEAR).fit(X, Y),
    "DPThresholdClassifier": lambda: skdp.DPThresholdClassifier(LINEAR).fit(X, Y),
    "DPOneHotEncoder": lambda: DPOneHotEncoder().fit(X),
    "DPQuantileBinner": lambda: DPQuantileBinner().fit(X),
    "DPSimpleImputer": lambda: DPSimpleImputer().fit(X),
    "DPStandardScaler": lambda: DPStandardScaler().fit(X),
    "DPTableVectorizer": lambda: DPTableVectorizer().fit(X),
    "DPMarginalSynthesizer": lambda: DPMarginalSynthesizer(bounds=(-1, 1), classes=[0, 1], max_iter=2).fit(X, Y),
    "DPClassMixtureGenerator": lambda: DPClassMixtureGenerator(bounds=(-1, 1), classes=[0, 1]).fit(X, Y),
    "DPWGAN": lambda: DPWGAN((-1, 1), classes=[0, 1], max_iter=1).fit(X, Y),
    "PublicTreesEmbedding": lambda: PublicTreesEmbedding(3, bounds=(-1, 1)).fit(X),
    "PatchTransformer": lambda: PatchTransformer(n_filters=2, patch_size=2, stride=1).fit(PIXELS),
    "ScatteringTransformer": lambda: ScatteringTransformer().fit(PIXELS),
    "PrivatePipeline": lambda: skdp.allocate_budget(make_pipeline(skdp.DPPCA(2), LINEAR), 1.0, 1e-5).fit(X, Y),
    "AccountantComparisonDisplay": lambda: AccountantComparisonDisplay.from_event(
        lambda step: GaussianDpEvent(1.0 + step), [1, 2], 1e-5
    ),
    "BudgetDisplay": lambda: BudgetDisplay.from_accountant(skdp.PrivacyAccountant(1.0, 1e-5)),
    "CoefficientDisplay": lambda: CoefficientDisplay(coef=[1.0], coef_noise=[0.1], feature_names=["a"]).plot(),
    "PrivacyUtilityDisplay": lambda: PrivacyUtilityDisplay.from_estimator(LINEAR, X, Y, X, Y, epsilons=[50.0]),
}


@pytest.mark.parametrize("name", FITTED)
def test_fitted_attributes_are_those_of_the_docstring(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    with warnings.catch_warnings(action="ignore"):
        fitted = FITTED[name]()
    found = {each for each in dir(fitted) if each.endswith("_") and not each.startswith("_") and hasattr(fitted, each)}
    documented = [each.name for each in ClassDoc(type(fitted), config={"show_class_members": False})["Attributes"]]
    assert len(documented) == len(set(documented))
    assert set(documented) == found


# The one wording of each shared parameter. Descriptions start with it (WORDINGS) or contain it (SENTENCES).
WORDINGS = {
    "accountant": "Accountant that records the privacy cost of each fit, before anything is learned from the rows, and "
    "rejects a fit that exceeds its budget. A path refers to an existing budget file (see ``python -m "
    "skdp.accounting create``) and is made absolute.",
    "adjacency": "Neighboring relation: how two neighboring tables differ in one row, or in all rows of one group:",
    "alpha": "Strength of the L2 penalty ``alpha / 2 * ||coef",
    "class_weight": "Public weights of the classes; a class that is not named has weight 1.",
    "classes": "All classes that can occur in `y`. If None, they are read from `y`; this is not covered by the "
    "guarantee, and a `PrivacyLeakWarning` is issued.",
    "delta": "The delta of the (epsilon, delta) guarantee; it must be well below 1/n, where n is the public number"
    ' of rows. "auto" uses the delta of the accountant if it has one. Otherwise it is 1e-5 for at most '
    "10,000 rows and 1/(10n), rounded down to a power of ten, for more.",
    "epsilon": "Privacy budget of one ``fit``",
    "fit_intercept": "Whether to fit an intercept.",
    "lot_size": "Expected number of rows in one step. Each row is drawn independently (Poisson sampling).",
    "merge_equal_rows": "Whether equal rows, with equal targets and weights, are found once and then computed "
    "once a step",
    "momentum": "Momentum in [0, 1), with dampening: ``v = momentum * v + (1 - momentum) * gradient``.",
    "noise_multiplier": "Standard deviation of the noise",
    "weight_bound": "Public upper bound of `sample_weight`. Weights are clipped to it and divided by it. Choose the "
    "largest weight that can occur, or a value that few weights exceed: the effect of the noise grows "
    "with the bound divided by the mean weight.",
    "y_bounds": "Public bounds on the targets. Targets beyond them are moved to the nearest bound, and so are "
    "predictions.",
}
SENTENCES = {
    "noise_multiplier": "If None, it is calibrated to `epsilon`.",
    "random_state": "None draws a fresh secret key from the operating system. Any other value makes the fit "
    "reproducible and issues a `PrivacyLeakWarning`, because the guarantee does not hold against "
    "anyone who knows the value.",
}
OTHERS = {  # parameters that share a name, and no more
    ("DPRidge", "alpha"),  # the penalty of a closed form
    ("PublicTreesEmbedding", "random_state"),  # of what is public
    ("PatchTransformer", "random_state"),
}


def estimators_of_the_library():
    for module in map(importlib.import_module, MODULES):
        for each in (getattr(module, name) for name in module.__all__):
            if inspect.isclass(each) and hasattr(each, "fit"):
                yield each


@pytest.mark.parametrize("parameter", sorted({*WORDINGS, *SENTENCES}))
def test_a_shared_parameter_has_one_wording(parameter):
    found = {}
    for estimator in estimators_of_the_library():
        for each in ClassDoc(estimator)["Parameters"]:
            if each.name == parameter and (estimator.__name__, parameter) not in OTHERS:
                found[estimator.__name__] = " ".join(" ".join(each.desc).split())
    assert len(found) > 2
    for name, text in found.items():
        assert text.startswith(WORDINGS.get(parameter, "")), name
        assert SENTENCES.get(parameter, "") in text, name
