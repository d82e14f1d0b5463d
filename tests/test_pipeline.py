"""One budget over a pipeline: the joint cost, the shares, and the steps that are rejected."""

import math

import numpy as np
import pytest
from combinations import over_rows
from relations import with_n_public
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.image import PatchExtractor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

import skdp
from skdp import (
    DPPCA,
    DPGaussianNB,
    DPLogisticRegression,
    DPMLPClassifier,
    DPQuantileBinner,
    PrivacyAccountant,
    allocate_budget,
)
from skdp._dpsgd.mean_correction import OFFSET_SHARE
from skdp.accounting import compose, get_epsilon
from skdp.base.private_step import PrivateStep

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(3000, 8)) * np.repeat([1.0, 0.2], [2, 6])
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


def classifier(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], "data_norm": math.sqrt(8), **parameters})


def pipeline(accountant=None, **parameters):
    pca = DPPCA(4, center=False, data_norm=math.sqrt(8), accountant=accountant)
    return Pipeline([("pca", pca), ("model", classifier(accountant=accountant, **parameters))])


# --- the joint budget ---


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
@pytest.mark.parametrize(("epsilon", "parameters"), [(0.3, {}), (8.0, {"sampling_rate": 0.1, "max_iter": 5})])
def test_the_joint_price_meets_the_budget(epsilon, parameters, adjacency):
    relation = with_n_public(adjacency, 3000)
    steps = pipeline(**parameters).set_params(pca__adjacency=relation, model__adjacency=relation)
    fitted = allocate_budget(steps, epsilon, 1e-6).fit(X, Y)
    joint = compose([fitted["pca"].privacy_event_, fitted["model"].privacy_event_])
    assert fitted.privacy_event_ == joint
    assert fitted.epsilon_ == get_epsilon(joint, 1e-6, adjacency=adjacency)
    assert 0.999 * epsilon <= fitted.epsilon_ <= epsilon
    assert (fitted.delta_, fitted.adjacency_) == (1e-6, adjacency)
    assert fitted.step_epsilons_ == {"pca": fitted["pca"].epsilon_, "model": fitted["model"].epsilon_}
    assert sum(fitted.step_epsilons_.values()) > fitted.epsilon_


def test_shares_are_parts_of_mu_squared():
    """Plain Gaussians: mu**2 = count / sigma**2 for each step, in the ratio of the shares."""
    fitted = allocate_budget(pipeline(), 1.0, 1e-6, {"pca": 0.2}).fit(X, Y)
    of_pca = 1.0 / fitted["pca"].noise_multiplier_ ** 2
    of_model = fitted["model"].n_steps_ / fitted["model"].noise_multiplier_ ** 2 / (1.0 - OFFSET_SHARE)
    assert of_pca / (of_pca + of_model) == pytest.approx(0.2, abs=2e-3)


def test_shares_by_default():
    """A transformer 0.15, the classifier the rest; named steps keep theirs, the others share what is left."""
    steps = ["pca", "model"]
    assert allocate_budget(pipeline(), 1.0, 1e-6)._check_fractions(steps) == {"pca": 0.15, "model": 0.85}
    assert allocate_budget(pipeline(), 1.0, 1e-6, {"model": 0.6})._check_fractions(steps) == {"pca": 0.4, "model": 0.6}
    three = Pipeline([("a", DPPCA(4)), ("b", DPPCA(3)), ("model", classifier())])
    found = allocate_budget(three, 1.0, 1e-6, {"a": 0.5})._check_fractions(["a", "b", "model"])
    assert found == {"a": 0.5, "b": 0.25, "model": 0.25}


def test_the_rules_see_the_number_of_rows_at_fit():
    """The same allocation meets its budget on another table: the noise is solved for when n is known."""
    network = DPMLPClassifier((4,), classes=[0, 1])
    budgeted = allocate_budget(make_pipeline(Normalizer(), network), 1.0, 1e-6)
    for n in (500, 3000):
        assert 0.999 <= budgeted.fit(X[:n], Y[:n]).epsilon_ <= 1.0


def test_the_users_parameters_come_back():
    given = pipeline(lot_size=500, max_iter=3)
    budgeted = allocate_budget(given, 1.0, 1e-6)
    before = {name: step.get_params() for name, step in budgeted.steps}
    budgeted.fit(X, Y)
    assert {name: step.get_params() for name, step in budgeted.steps} == before
    assert budgeted["model"].sampling_rate_ == pytest.approx(500 / 3000)
    assert budgeted["pca"] is not given["pca"]
    assert not hasattr(given["pca"], "epsilon_")


# --- the charge ---


def test_the_accountant_is_charged_once_and_jointly():
    accountant = PrivacyAccountant(3.0, 1e-6)
    fitted = allocate_budget(pipeline(accountant), 3.0, 1e-6).fit(X, Y)
    (charge,) = accountant.history
    assert charge.event == fitted.privacy_event_
    assert charge.parameters["steps"] == {"pca": "DPPCA", "model": "DPLogisticRegression"}
    assert accountant.get_epsilon() == pytest.approx(fitted.epsilon_, rel=1e-9)


# --- steps that read without paying ---


class Reader(TransformerMixin, BaseEstimator):
    """A transformer of the user's own that learns from its rows."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([PCA(3), classifier()], r"Step 'pca': PCA .* Use skdp.DPPCA instead"),
        ([DPPCA(3), LogisticRegression()], r"Step 'logisticregression': .* Use skdp.DPLogisticRegression instead"),
        ([Reader(), classifier()], r"Step 'reader': Reader .* a private estimator or a transformer that learns"),
        (
            [ColumnTransformer([("a", "drop", [0])], remainder=PCA(), sparse_threshold=0), classifier()],
            r"columntransformer__remainder",
        ),
        (
            [FeatureUnion([("a", DPPCA(2))]), classifier()],
            r"Step 'featureunion__a': DPPCA is nested inside another step",
        ),
    ],
)
def test_a_step_that_reads_without_paying_is_rejected(steps, message):
    with pytest.raises(ValueError, match=message):
        allocate_budget(make_pipeline(*steps), 1.0, 1e-6)


def test_a_forbidden_step_that_is_set_later_is_rejected_at_fit():
    budgeted = allocate_budget(pipeline(), 1.0, 1e-6)
    budgeted.set_params(pca=PCA(2))
    with pytest.raises(ValueError, match=r"skdp\.DPPCA"):
        budgeted.fit(X, Y)


def test_a_step_may_have_the_name_of_a_removed_parameter():
    budgeted = allocate_budget(
        Pipeline([("units", skdp.DPStandardScaler((0, 1))), ("model", DPGaussianNB(bounds=(0, 1), classes=[0, 1]))]),
        1.0,
        1e-6,
    )
    budgeted.set_params(units="passthrough")
    assert budgeted.steps[0] == ("units", "passthrough")


class Patches(FunctionTransformer):
    """A subclass of a listed class is not on the list."""


@skdp.row_wise
def first_rows(rows):
    return rows[: len(rows) // 2]


def test_a_step_that_changes_the_number_of_rows_is_rejected(monkeypatch):
    """49 patches of one image, or rows that are left out, are not the rows that came in."""
    images = RNG.uniform(0, 1, (60, 8, 8))
    with pytest.raises(ValueError, match="PatchExtractor is not on the list"):
        allocate_budget(make_pipeline(PatchExtractor(patch_size=(2, 2)), DPPCA(2)), 1.0, 1e-6)
    with pytest.raises(ValueError, match="Patches is not on the list"):
        allocate_budget(make_pipeline(Patches(), classifier()), 1.0, 1e-6)
    for function in (lambda rows: rows[~np.isnan(rows).any(axis=1)], lambda rows: rows - rows.mean(axis=0)):
        with pytest.raises(ValueError, match="may read more than one row"):
            allocate_budget(make_pipeline(FunctionTransformer(function), classifier()), 1.0, 1e-6)
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match="first_rows"):
        allocate_budget(make_pipeline(FunctionTransformer(first_rows), pipeline(accountant)["pca"]), 1.0, 1e-6).fit(X)
    with monkeypatch.context() as patch:  # a listed class that does it all the same
        patch.setattr(Normalizer, "transform", lambda self, rows, copy=None: np.repeat(rows, 2, axis=0))
        with pytest.raises(ValueError, match=r"Step 'normalizer' \(Normalizer\) must return one row per input row"):
            allocate_budget(make_pipeline(Normalizer(), pipeline(accountant)["pca"]), 1.0, 1e-6).fit(X)
    assert accountant.get_epsilon(1e-6) == 0.0
    flat = FunctionTransformer(skdp.row_wise(lambda rows: rows.reshape(len(rows), -1)))
    assert allocate_budget(make_pipeline(flat, DPPCA(2)), 1.0, 1e-6).fit(images)[-1].n_samples_ == 60


def test_callbacks_would_see_the_rows():
    budgeted = allocate_budget(pipeline(), 1.0, 1e-6)
    if not hasattr(budgeted, "set_callbacks"):  # scikit-learn before 1.9 has none
        return

    class Watcher:
        """Sees whatever is fitted."""

        def setup(self, estimator=None, context=None, **others):
            raise AssertionError("told of a fit")

        teardown = on_fit_task_begin = on_fit_task_end = setup

    budgeted.set_callbacks(Watcher())
    with pytest.raises(ValueError, match="callbacks"):
        budgeted.fit(X, Y)


# --- errors ---


@over_rows(
    ("given", "message"),
    [
        ((classifier(),), "must be a sklearn.pipeline.Pipeline"),
        ((make_pipeline(Normalizer()),), "must contain a private step"),
        ((pipeline(), 0.0), r"`epsilon` must be .*, got 0.0"),
        ((pipeline(), 1.0, 1e-6, {"dppca": 0.1}), r"got 'dppca'. Expected names from \['pca', 'model'\]"),
        ((pipeline(), 1.0, 1e-6, {"pca": 1.0}), r"leaves no budget for \['model'\]"),
        (
            (make_pipeline(DPPCA(2, accountant=PrivacyAccountant()), classifier(accountant=PrivacyAccountant())),),
            "`accountant` must be the same for all steps",
        ),
        ((pipeline(warm_start=True),), "warm_start must be False"),
        (
            (pipeline(checkpoint="run.npz"),),
            "Step 'model': checkpoint must be None in a private pipeline, got 'run.npz'",
        ),
        ((make_pipeline(classifier(), classifier()),), "has no transform method"),
    ],
)
def test_allocate_budget_invalid_argument_raises(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        allocate_budget(*given, **({} if len(given) > 1 else {"epsilon": 1.0}))


def test_steps_of_one_name_are_rejected():
    """Steps are known by their names: two of one name would be fitted twice for one charge, with the same noise."""
    steps = [("a", DPPCA(2)), ("a", FunctionTransformer(np.abs)), ("c", DPLogisticRegression(classes=[0, 1]))]
    with pytest.raises(ValueError, match=r"^The names of the steps must be unique, got \['a', 'a', 'c'\]"):
        allocate_budget(Pipeline(steps), 1.0, 1e-5)


@pytest.mark.parametrize("hidden", [{"checkpoint": "run.npz"}, {"warm_start": True}])
def test_what_a_subclass_hides_is_rejected_too(hidden):
    class Hiding(DPLogisticRegression):
        def __init__(self, epsilon=1.0, delta=1e-5, noise_multiplier=None, accountant=None, lot_size=None,
                     sampling_rate=None, random_state=None):  # fmt: skip
            super().__init__(
                epsilon=epsilon, delta=delta, noise_multiplier=noise_multiplier, accountant=accountant,
                lot_size=lot_size, sampling_rate=sampling_rate, random_state=random_state, classes=[0, 1], **hidden,
            )  # fmt: skip

    with pytest.raises(ValueError, match=r"checkpoint|warm_start"):
        allocate_budget(make_pipeline(Hiding()), 1.0, 1e-5)
    step = PrivateStep(Hiding())
    step.begin(0)
    with pytest.raises(ValueError, match=r"checkpoint|warm_start"):
        step.check_parameters(10, 2)


SPARSE = OneHotEncoder(categories=[list(range(5))] * 4, handle_unknown="ignore")


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (SPARSE, "Step 'gaussiannb'.* does not accept sparse rows.* Set between__sparse_output"),
        (FunctionTransformer(skdp.row_wise(lambda X: np.asarray(X).astype(str))), "X contains strings in column 0"),
        (FunctionTransformer(skdp.row_wise(lambda X: np.asarray(X).astype(object))), "the output has dtype object"),
    ],
)
def test_rows_that_a_public_step_makes_unusable_are_rejected_before_the_charge(between, words):
    accountant = PrivacyAccountant()
    first = DPQuantileBinner(bounds=(0, 1), encode="ordinal", accountant=accountant)
    last = DPGaussianNB(bounds=(0, 1), classes=[0, 1], accountant=accountant)
    steps = Pipeline([("first", first), ("between", between), ("gaussiannb", last)])
    X = np.random.default_rng(0).random((200, 4))
    with pytest.raises((TypeError, ValueError), match=words):
        allocate_budget(steps, epsilon=3.0, delta=1e-5).fit(X, (X[:, 0] > 0.5).astype(int))
    assert [entry for entry in accountant.history if entry.kind == "charge"] == []


@over_rows(
    "key, words",
    [
        ("alpha", "Use 'model__alpha'"),
        ("classifier__alpha", "Use 'model__alpha'"),
        ("n_bins", "Use 'vectorizer__n_bins' or 'model__n_bins'"),
        ("shoe", "Use step__parameter, or one of .*'vectorizer', 'model'"),
    ],
)
def test_unknown_parameter_message_names_step_parameter(key, words):
    pipe = skdp.tabular_pipeline("classifier", classes=[0, 1])
    with pytest.raises(ValueError, match=f"Invalid parameter {key!r} for estimator PrivatePipeline. {words}"):
        pipe.set_params(**{key: 3})
