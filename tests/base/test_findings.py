"""What `check_pipeline` finds in compositions of any kind, before they are fitted."""

import math

import numpy as np
import pytest
import sklearn
from combinations import over_rows
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    LeaveOneOut,
    RepeatedKFold,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, SplineTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPPCA,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRidge,
    PipelineIssue,
    PrivacyAccountant,
    PrivacyLeakWarning,
    allocate_budget,
    check_pipeline,
    config_context,
)
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, get_epsilon

DELTA = 1e-6
GRID = {"alpha": [0.0, 0.1, 1.0], "max_iter": [1, 2]}


def model(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "delta": DELTA, **parameters})


def pca(**parameters):
    """One Gaussian release, which costs the same for a table of any shape."""
    return DPPCA(2, **{"delta": DELTA, **parameters})


class Foreign(ClassifierMixin, BaseEstimator):
    def __init__(self, estimator=None, others=()):
        self.estimator = estimator
        self.others = others

    def fit(self, X, y):
        raise AssertionError("check_pipeline fits nothing")


class OwnPipeline(Pipeline):
    """May do anything."""


class Regressor(DPLogisticRegression):
    """Stands for a private regressor."""


def union(*parts):
    return FeatureUnion([(str(i), part) for i, part in enumerate(parts)])


# composition; path and class of each finding; fits of the first, None where they cannot be known or do not matter
FOUND = {
    "scaler": (make_pipeline(StandardScaler(), model()), [("standardscaler", "StandardScaler")], None),
    "two budgets": (make_pipeline(pca(), model()), [("", "Pipeline")], 2),
    "own pipeline": (OwnPipeline([("m", model())]), [("", "OwnPipeline")], 1),
    "a cache": (make_pipeline(Normalizer(), model(), memory="cache"), [("", "Pipeline")], None),
    "selected": (make_pipeline(SelectFromModel(model()), model()), [("", "Pipeline"), ("selectfrommodel",
        "SelectFromModel")], 2),
    "classes": (model(classes=None), [("", "DPLogisticRegression")], None),
    "calibrated": (CalibratedClassifierCV(model(), cv=3), [("", "CalibratedClassifierCV")], 3),
    "threshold": (TunedThresholdClassifierCV(model()), [("", "TunedThresholdClassifierCV")], 6),
    "rfe": (RFE(model()), [("", "RFE")], None),
    "voting": (VotingClassifier([("a", model()), ("b", LogisticRegression()), ("c", "drop")]), [("",
        "VotingClassifier"), ("b", "LogisticRegression")], 1),
    "stacking": (StackingClassifier([("a", model()), ("b", model())], model(), cv=4), [("", "StackingClassifier")], 11),
    "one versus rest": (OneVsRestClassifier(model()), [("", "OneVsRestClassifier")], None),
    "bagging": (BaggingClassifier(model(), n_estimators=7), [("", "BaggingClassifier")], 7),
    "boosting": (AdaBoostClassifier(model(), n_estimators=4), [("", "AdaBoostClassifier")], 4),
    "self-training": (SelfTrainingClassifier(model(), max_iter=3), [("", "SelfTrainingClassifier")], 4),
    "target": (TransformedTargetRegressor(Regressor(classes=[0]), func=np.log, inverse_func=np.exp), [("",
        "TransformedTargetRegressor")], 1),
    "grid": (GridSearchCV(model(), GRID, cv=3), [("", "GridSearchCV")], 19),
    "two grids": (GridSearchCV(model(), [GRID, {"alpha": [2.0]}], cv=RepeatedKFold(n_splits=2, n_repeats=3)), [("",
        "GridSearchCV")], 43),
    "one out": (GridSearchCV(model(), GRID, cv=LeaveOneOut()), [("", "GridSearchCV")], None),
    "folds of folds": (BaggingClassifier(CalibratedClassifierCV(model(), cv=3), n_estimators=5), [("",
        "BaggingClassifier"), ("estimator", "CalibratedClassifierCV")], 15),
    "foreign": (Foreign(model()), [("", "Foreign")], None),
    "around a budget": (CalibratedClassifierCV(allocate_budget(make_pipeline(pca(), model()), 1.0, DELTA)), [("",
        "CalibratedClassifierCV")], 5),
    "a search of a scaler": (DPGridSearchCV(make_pipeline(StandardScaler(), model()), {}),
        [("estimator__standardscaler", "StandardScaler")], None),
}  # fmt: skip


@over_rows("name", FOUND)
def test_findings(name):
    composition, expected, n_fits = FOUND[name]
    findings = check_pipeline(composition)
    assert [(each.step, each.kind) for each in findings] == expected
    assert findings[0].n_fits == n_fits
    for each in findings:
        assert isinstance(each, PipelineIssue)
        line = str(each)
        assert "\n" not in line
        assert line.startswith(f"step {each.step!r} ({each.kind}): " if each.step else f"{each.kind}: ")
        assert each.reads in line
        assert f". Use {each.counterpart}." in line
        assert (f"up to {each.n_fits} fits in total" in line) == ((each.n_fits or 0) > 1)
    with pytest.warns(PrivacyLeakWarning) as caught:
        check_pipeline(composition)
    (message,) = [str(each.message) for each in caught]
    assert str(findings[0]) in message
    assert all(str(each) in message for each in findings)
    assert caught[0].filename == __file__
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning, match="as a whole is not private"):
        check_pipeline(composition)


SAFE = {
    "alone": model(),
    "pipeline": make_pipeline(Normalizer(), "passthrough", FunctionTransformer(np.abs), model()),
    "union": union(pca(), "passthrough", Normalizer()),
    "splines": make_pipeline(SplineTransformer(knots=np.array([[0.0], [0.5], [1.0]])), model()),
    "budget": allocate_budget(make_pipeline(Normalizer(), pca(), model()), 1.0, DELTA),
    "search": DPGridSearchCV(model(), GRID),
    "fixed threshold": FixedThresholdClassifier(model(), threshold=0.4),
    "public targets": TransformedTargetRegressor(
        DPRidge(y_bounds=(0, 1)), func=np.log1p, inverse_func=np.expm1, check_inverse=False
    ),
    "frozen": CalibratedClassifierCV(FrozenEstimator(model())),
}


ONLY_SPLITTER, MAY_SPLIT = (
    "groups are passed to its splitter but not to its private fits",
    "its splitter may put rows of one group on both sides",
)
SPLITS = {
    "by groups": (lambda m: GridSearchCV(m, GRID, cv=GroupKFold(4)), ONLY_SPLITTER, ""),
    "by rows": (lambda m: GridSearchCV(m, GRID, cv=RepeatedKFold()), "", MAY_SPLIT),
    "by rows, in a pipeline": (lambda m: GridSearchCV(make_pipeline(Normalizer(), m), {}), "", MAY_SPLIT),
    "without a split": (RFE, "", ""),
}


@over_rows("name", SPLITS)
def test_splitters_that_alone_know_groups_and_those_that_may_split_one(name):
    """By what is routed to the fits: nothing, unless scikit-learn is told to route and the model asks for it."""
    make, not_asked, asked = SPLITS[name]
    with sklearn.config_context(enable_metadata_routing=True):
        findings = {
            not_asked: (check_pipeline(make(model())), check_pipeline(make(model().set_fit_request(groups=False)))),
            asked: (
                check_pipeline(make(model().set_fit_request(groups=True))),
                check_pipeline(make(model().set_fit_request(groups="home"))),
            ),
        }
        asking = model().set_fit_request(groups=True)
    for said, each in [*findings.items(), (not_asked, (check_pipeline(make(model())), check_pipeline(make(asking))))]:
        for first, *_ in each:
            assert [text for text in (ONLY_SPLITTER, MAY_SPLIT) if text in first.reads] == ([said] if said else [])


def test_fits_for_rows_and_fits_for_groups_have_no_joint_price():
    with sklearn.config_context(enable_metadata_routing=True):
        rows, groups = pca(), pca().set_fit_request(groups=True)
        selected = [union(*parts) for parts in ((rows, rows), (groups, groups), (rows, groups))]
        totals = [check_pipeline(each)[0] for each in selected]
    assert [each.n_fits for each in totals] == [2, 2, 2]
    assert totals[0].epsilon == totals[1].epsilon > 1.0
    assert totals[2].epsilon is None


@over_rows("name", SAFE)
def test_a_safe_composition_has_no_findings(name):
    before = repr(SAFE[name])
    with config_context(on_leak="raise"):
        assert check_pipeline(SAFE[name]) == []
    assert repr(SAFE[name]) == before


def test_a_joint_price_is_that_of_so_many_fits():
    (finding,) = check_pipeline(CalibratedClassifierCV(pca(epsilon=None, noise_multiplier=4.0), cv=3))
    assert finding.epsilon == get_epsilon(SelfComposedDpEvent(GaussianDpEvent(4.0), 3), DELTA)
    assert finding.delta == DELTA
    assert f"cost of epsilon={finding.epsilon:.3g} (delta=1e-06)" in str(finding)
    (finding,) = check_pipeline(CalibratedClassifierCV(pca(epsilon=1.0), cv=4))
    assert 2.0 < finding.epsilon < 2.5  # four fits of epsilon 1: mu doubles
    assert check_pipeline(BaggingClassifier(pca(), bootstrap=False))[0].epsilon > 3.0  # rows are drawn once
    both = check_pipeline(VotingClassifier([("a", pca(epsilon=None, noise_multiplier=4.0))] * 3))[0]
    assert math.isclose(both.epsilon, get_epsilon(SelfComposedDpEvent(GaussianDpEvent(4.0), 3), DELTA), rel_tol=1e-9)


@over_rows(
    "composition",
    [
        CalibratedClassifierCV(model(lot_size=32), cv=3),  # its cost depends on the number of rows
        CalibratedClassifierCV(pca(delta="no number"), cv=3),
        CalibratedClassifierCV(pca(epsilon=-1.0), cv=3),
        CalibratedClassifierCV(allocate_budget(make_pipeline(pca(), model()), 1.0, DELTA), cv=3),
        VotingClassifier([("a", pca()), ("b", pca(adjacency="replace_one"))]),  # kinds without a joint cost
        BaggingClassifier(pca(), bootstrap=True),  # a row weighs more than the cost says
        StackingClassifier([("a", pca())]),
        CalibratedClassifierCV(BaggingClassifier(pca()), cv=2),
        RFE(pca()),
    ],
)
def test_no_price_is_stated_where_none_holds(composition):
    finding = check_pipeline(composition)[0]
    assert (finding.epsilon, finding.delta) == (None, None)
    assert "epsilon=" not in str(finding)


@over_rows("composition", [3, None, "passthrough", Pipeline, np.zeros((2, 2)), [("a", model())], object()])
def test_what_is_no_estimator_is_rejected(composition):
    with pytest.raises(TypeError, match=r"^`composition` must be a Pipeline") as caught:
        check_pipeline(composition)
    assert "\n" not in str(caught.value)


def test_structural_faults_are_errors():
    with pytest.raises(ValueError, match="must be unique"):
        check_pipeline(CalibratedClassifierCV(Pipeline([("a", Normalizer()), ("a", model())])))
    for pipeline in (make_pipeline(model(), model()), allocate_budget(make_pipeline(model()), 1.0, DELTA)):
        pipeline.steps = [("a", model()), ("b", model())]
        with pytest.raises(ValueError, match=r"^Step 'a' \(DPLogisticRegression\) has no transform method\."):
            check_pipeline(pipeline)
    with pytest.raises(TypeError, match=r"^Step 'pipeline__b' must be an estimator"):
        check_pipeline(make_pipeline(Normalizer(), Pipeline([("a", Normalizer()), ("b", 3)])))


def test_it_agrees_with_the_budget():
    """What a pipeline has no findings in can be given a budget, and what is rejected one has findings."""
    for step in (Normalizer(), StandardScaler(), PCA(), SimpleImputer(), FunctionTransformer(lambda X: X)):
        pipeline = make_pipeline(step, model())
        if check_pipeline(pipeline):
            with pytest.raises(ValueError, match=r"^Step '\w+': \w+ .* Use .* instead\.$"):
                allocate_budget(pipeline, 1.0, DELTA)
        else:
            allocate_budget(pipeline, 1.0, DELTA)


def test_nothing_is_charged_or_fitted():
    accountant = PrivacyAccountant()
    inner = model(accountant=accountant)
    check_pipeline(GridSearchCV(make_pipeline(StandardScaler(), inner), {}))
    assert accountant.history == ()
    assert not hasattr(inner, "coef_")
