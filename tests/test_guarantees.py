"""Change one row, watch the output: what the docstrings promise, held to the word.

A *replay* fits on D and on a neighbour D' with the same seed. What the first run released is handed to the second in
place of its own releases, so that both see the same history; then what went into each release may differ by the
declared sensitivity, and nothing else may differ at all.
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import skdp._classifier
import skdp.linear_model
import skdp.neural_network
from skdp import (
    DPPCA,
    BudgetExceededError,
    DPGridSearchCV,
    DPLogisticRegression,
    DPMLPClassifier,
    PrivacyAccountant,
    PrivacyLeakWarning,
    config_context,
)
from skdp._gram import MomentSum
from skdp._random import SecretStream
from skdp._sampling import FullBatch, PoissonSampling
from skdp._search.plan import SearchPlan
from skdp._search.scores import PrivateScore
from skdp._training.averaging import last_iterate
from skdp._training.linear import LinearModel
from skdp._training.loop import run_dpsgd
from skdp._training.network import Clip, NetworkModel
from skdp._training.optimizers import constant, momentum_sgd
from skdp._training.plan import DPSGDPlan
from skdp.accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    compose,
    flatten,
    get_epsilon,
)
from skdp.base import PrivateEstimator
from skdp.mechanisms import GaussianMechanism
from skdp.pipeline import PrivatePipeline

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # a replay needs a seed

FALSE_ALARM = 1e-6
POISSON = {"sampling_rate": 0.5, "max_iter": 20}
FULL = {"max_iter": 30}


ESTIMATORS = {
    "linear": (DPLogisticRegression, LinearModel, {}),
    "network": (DPMLPClassifier, NetworkModel, {"hidden_layer_sizes": (5, 3), "sampling_rate": 1.0, "max_iter": 30}),
}


def seeded(n_classes=2, kind="linear", **parameters):
    estimator, _, defaults = ESTIMATORS[kind]
    if parameters.get("lot_size"):
        defaults = {**defaults, "sampling_rate": None}
    return estimator(**{"classes": range(n_classes), "random_state": 0, **defaults, **parameters})


def model_place(kind):
    """The module that binds rows to a model, and the name by which it does."""
    estimator, model, _ = ESTIMATORS[kind]
    return inspect.getmodule(estimator), model.__name__


def released(model):
    """The names of the attributes that noise is in."""
    return {name for name in vars(model) if name in ("coef_", "intercept_", "coefs_", "intercepts_")}


# --- replay -----------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What a fit put into its releases, and all that it let out."""

    inputs: list[np.ndarray]
    attributes: dict[str, object]
    messages: list[tuple[type, str]]
    plans: list[tuple[DPSGDPlan, str]]


@pytest.fixture
def replay(monkeypatch):
    """A function that fits on D and on D', the second time with what was released the first time."""
    release, run = GaussianMechanism.release, skdp._classifier.run_dpsgd

    def fit(model, data, outputs):
        inputs, plans, fresh = [], [], not outputs

        def recorded_release(mechanism, value, stream):
            inputs.append(np.array(value))
            if fresh:
                outputs.append(release(mechanism, value, stream))
            return outputs[len(inputs) - 1].copy()

        def recorded_run(bound_model, plan, optimizer, *arguments, **keywords):
            ones = np.ones(bound_model.n_parameters)
            step = optimizer.update(ones, optimizer.init(ones), ones)
            plans.append((plan, repr(step)))
            return run(bound_model, plan, optimizer, *arguments, **keywords)

        monkeypatch.setattr(GaussianMechanism, "release", recorded_release)
        monkeypatch.setattr(skdp._classifier, "run_dpsgd", recorded_run)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*data)
        return Outcome(inputs, dict(vars(model)), [(w.category, str(w.message)) for w in caught], plans)

    def both(make_model, one, other):
        outputs = []
        return fit(make_model(), one, outputs), fit(make_model(), other, outputs)

    return both


def assert_same_value(name, one, other):
    assert type(one) is type(other), name
    if isinstance(one, list) and one and isinstance(one[0], np.ndarray):
        for each, its_other in zip(one, other, strict=True):
            assert_same_value(name, each, its_other)
    elif isinstance(one, np.ndarray):
        assert (one.shape, one.dtype) == (other.shape, other.dtype), name
        np.testing.assert_array_equal(one, other, err_msg=name)
    else:
        assert one == other, name


def assert_only_releases_differ(one, other, bound):
    assert len(one.inputs) == len(other.inputs) == one.attributes["n_steps_"]
    moves = [np.linalg.norm(a - b) for a, b in zip(one.inputs, other.inputs, strict=True)]
    assert max(moves) <= bound * (1 + 1e-6)
    assert one.attributes.keys() == other.attributes.keys()
    for name in one.attributes:
        assert_same_value(name, one.attributes[name], other.attributes[name])
    assert one.messages == other.messages
    assert one.plans == other.plans  # sampling, clip, noise, steps and divisor; and what a step does with a gradient
    return moves


class Neighbours(NamedTuple):
    """Rows, and the number of the one that a neighbour mutes, with the weight that it has before."""

    X: np.ndarray
    y: np.ndarray
    row: int
    weight: float = 1.0


def only_record_of_a_class(X, y):
    y = np.where(y == 0, 1, y)
    y[7] = 0
    return Neighbours(X, y, 7)


def holder_of_a_maximum(X, y):
    X[11, 2] = 5.0
    return Neighbours(X, y, 11)


def the_one_value_in_a_constant_column(X, y):
    X[:, 1] = 0.0
    X[3, 1] = -1.0
    return Neighbours(X, y, 3)


def one_of_two_equal_rows(X, y):
    X[5], y[5] = X[6], y[6]
    return Neighbours(X, y, 5)


def row_of_enormous_norm(X, y):
    X[0] *= 1e9
    return Neighbours(X, y, 0)


def row_whose_norm_overflows(X, y):
    X[0] = np.finfo(X.dtype).max
    return Neighbours(X, y, 0)


def row_of_zeros(X, y):
    X[2] = 0.0
    return Neighbours(X, y, 2)


def row_of_enormous_weight(X, y):
    return Neighbours(X, y, 9, weight=1e6)


def last_row(X, y):
    return Neighbours(X, y, len(X) - 1)


KINDS = [
    only_record_of_a_class, holder_of_a_maximum, the_one_value_in_a_constant_column, one_of_two_equal_rows,
    row_of_enormous_norm, row_whose_norm_overflows, row_of_zeros, row_of_enormous_weight, last_row,
]  # fmt: skip

FORMS = [
    ("linear", np.asarray, 2, FULL),
    ("linear", np.asarray, 3, FULL),
    ("linear", np.asarray, 2, POISSON),
    ("linear", np.asarray, 3, {**POISSON, "fit_intercept": False}),
    ("linear", np.asarray, 2, {**FULL, "fit_intercept": False, "max_grad_norm": 0.05}),
    ("linear", sp.csr_array, 2, POISSON),
    ("linear", sp.csr_array, 3, {**FULL, "max_grad_norm": 2.0, "data_norm": 0.5}),
    (
        "linear", sp.csr_array, 2,
        {"adjacency": "add_remove", "n_samples_public": 64, "alpha": 0.1, "average": False, **FULL},
    ),
    ("network", np.asarray, 2, FULL),
    ("network", np.asarray, 3, {**POISSON, "clipping": "automatic", "solver": "adam", "adam_noise_floor": 0.1}),
    ("network", np.asarray, 3, {"clipping": "per_layer", "max_grad_norm": (0.1, 0.2, 0.3), "activation": "tanh"}),
    ("network", sp.csr_array, 2, {**POISSON, "hidden_layer_sizes": (), "data_norm": 0.5, "learning_rate": "cosine"}),
    ("network", sp.csr_array, 3, {"activation": "logistic", "max_grad_norm": 20.0, "batch_size": 7}),
    (
        "network", sp.csr_array, 2,
        {"adjacency": "add_remove", "n_samples_public": 64, "alpha": 0.1, "average": "tail", **FULL},
    ),
]  # fmt: skip


def muted(case, to_X):
    """D, where the row has its weight, and D', where it is the null record."""
    weights = np.ones(len(case.y))
    weights[case.row] = case.weight
    without = weights.copy()
    without[case.row] = 0.0
    X = to_X(case.X)
    return (X, case.y, weights), (X, case.y, without)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("estimator", "to_X", "n_classes", "parameters"), FORMS, ids=[f"{f[0]}-{f[1].__name__}-{f[2:]}" for f in FORMS]
)
def test_muting_a_row_moves_releases_by_the_clip_and_nothing_else(
    draw, replay, kind, estimator, to_X, n_classes, parameters
):
    """Properties 5, 13 and 21."""
    X, y = draw(60, n_classes=n_classes)
    case = kind(X, y)
    one, other = replay(lambda: seeded(n_classes, estimator, **parameters), *muted(case, to_X))
    clip = one.attributes["max_grad_norm_"]
    moves = assert_only_releases_differ(one, other, bound=clip)
    if kind is row_whose_norm_overflows or (kind is row_of_zeros and not parameters.get("fit_intercept", True)):
        assert max(moves) == 0.0  # such a row is a null record
    else:
        assert max(moves) > 0.01 * clip  # the row was there
    if kind is row_of_enormous_weight:
        assert max(moves) == pytest.approx(clip, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("parameters", [FULL, POISSON], ids=["full", "Poisson"])
def test_muting_a_row_in_single_precision(draw, replay, kind, parameters):
    X, y = draw(60)
    case = kind(X.astype(np.float32), y)
    one, other = replay(lambda: seeded(**parameters), *muted(case, np.asarray))
    clip = one.attributes["max_grad_norm_"]
    # A sum of 60 float32 terms, none above C, is exact to 60 roundings of at most 60 C: worst case, Higham (2002, 4.2).
    rounding = 2 * 60 * 60 * np.finfo(np.float32).eps / 2
    assert_only_releases_differ(one, other, bound=clip * (1 + rounding))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("parameters", [{"clipping": "flat"}, {"clipping": "per_layer", **POISSON}], ids=str)
def test_muting_a_row_in_single_precision_in_a_network(draw, replay, kind, parameters):
    """Whose sums are rounded, and whose clip leaves room for it: C is C here."""
    X, y = draw(60)
    case = kind(X.astype(np.float32), y)
    one, other = replay(lambda: seeded(kind="network", **parameters), *muted(case, np.asarray))
    clip = one.attributes["max_grad_norm_"]
    assert max(assert_only_releases_differ(one, other, bound=clip)) <= clip


def test_muting_a_row_of_several_labels(draw, replay):
    """The one record that has a label, and one that has all."""
    X, _ = draw(60)
    labels = np.zeros((60, 3), int)
    labels[4] = labels[5, 1] = 1
    for row in (4, 5, 6):
        data = muted(Neighbours(X, labels, row), np.asarray)
        one, other = replay(lambda: seeded(classes=None, kind="network"), *data)
        moves = assert_only_releases_differ(one, other, bound=one.attributes["max_grad_norm_"])
        assert max(moves) > 0.01 * one.attributes["max_grad_norm_"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("to_X", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_removing_a_row_moves_releases_by_the_clip_and_nothing_else(draw, replay, kind, n_classes, to_X, estimator):
    """Properties 13 and 21 for add_remove, where the number of rows is private too."""
    X, y = draw(60, n_classes=n_classes)
    case = kind(X, y)
    kept = np.arange(60) != case.row
    parameters = {"adjacency": "add_remove", "n_samples_public": 50, "delta": 0.05, **FULL}
    data, data_without = (to_X(case.X), case.y), (to_X(case.X[kept]), case.y[kept])
    one, other = replay(lambda: seeded(n_classes, estimator, **parameters), data, data_without)
    assert_only_releases_differ(one, other, bound=one.attributes["max_grad_norm_"])
    assert any("delta=0.05 is at least 1/n for n=50 rows" in message for _, message in one.messages)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_plan_and_price_under_add_remove_do_not_see_the_number_of_rows(draw, kind):
    """Poisson lots of another number of rows are other lots; the plan, the price and what is published stand still."""
    X, y = draw(60)
    models = [
        seeded(kind=kind, adjacency="add_remove", n_samples_public=100, lot_size=10, max_iter=5).fit(X[:n], y[:n])
        for n in (20, 59, 60)
    ]
    for model in models[1:]:
        for name in PUBLISHED[type(model)].keys() - released(model) - {"feature_names_in_"}:
            assert_same_value(name, getattr(models[0], name), getattr(model, name))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("parameters", [FULL, POISSON], ids=["full", "Poisson"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_exchanging_a_row_moves_releases_by_twice_the_clip(draw, replay, kind, n_classes, parameters, estimator):
    X, y = draw(60, n_classes=n_classes)
    case = kind(X, y)
    X_other, y_other = case.X.copy(), case.y.copy()
    X_other[case.row], y_other[case.row] = -1e3, (case.y[case.row] + 1) % n_classes
    parameters = {"adjacency": "replace_one", "max_grad_norm": 0.1, **parameters}
    one, other = replay(lambda: seeded(n_classes, estimator, **parameters), (case.X, case.y), (X_other, y_other))
    moves = assert_only_releases_differ(one, other, bound=0.2)
    assert max(moves) > 0.05


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_row_opposed_to_its_exchange_moves_the_sum_by_all_of_twice_the_clip(draw, replay, kind):
    """Half of a bound is not a bound: this pair reaches it."""
    X, y = draw(60)
    y_other = y.copy()
    y_other[4] = 1 - y[4]
    one, other = replay(
        lambda: seeded(kind=kind, adjacency="replace_one", max_grad_norm=0.05, **FULL), (X, y), (X, y_other)
    )
    assert max(assert_only_releases_differ(one, other, bound=0.1)) == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_copies_of_a_row_move_the_sum_by_so_many_clips(draw, replay, kind):
    """Property 1: the clip is a row's, not the sum's; this is why a bootstrap is refused."""
    X, y = draw(60)
    X[:20], y[:20] = X[0], y[0]
    weights = np.ones(60)
    weights[:20] = 0.0
    one, other = replay(lambda: seeded(kind=kind, max_grad_norm=0.05, **FULL), (X, y, np.ones(60)), (X, y, weights))
    first_move = np.linalg.norm(one.inputs[0] - other.inputs[0])
    assert first_move == pytest.approx(20 * 0.05, rel=1e-6)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_refusals_that_lie_in_the_data_are_the_documented_ones(draw, kind):
    """The one live row muted, the one label of a class unread: these neighbours are told apart, and before a charge."""
    X, y = draw(60)
    accountant = PrivacyAccountant()
    alone = np.zeros(60)
    alone[3] = 1.0
    seeded(kind=kind, accountant=accountant).fit(X, y, alone)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        seeded(kind=kind, accountant=accountant).fit(X, y, np.zeros(60))
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning, match="classes were read from the labels"):
        seeded(kind=kind, classes=None, random_state=None, accountant=accountant).fit(X, y)
    assert len(accountant.history) == 1


# --- the noise that ran is the noise that was priced (properties 2, 11, 13) -------------------------------------------


def priced_steps(event):
    """Noise multiplier, sampling rate and number of the steps that an event is made of."""
    ((step, count),) = flatten(event).items()
    if isinstance(step, PoissonSampledDpEvent):
        return step.event.noise_multiplier, step.sampling_probability, count
    return step.noise_multiplier, 1.0, count


NULL_RUNS = {
    "full": (400, {"max_iter": 20}),
    "Poisson": (400, {"sampling_rate": 0.25, "max_iter": 5}),
    "mostly empty lots": (400, {"sampling_rate": 0.002, "max_iter": 1}),
    "lot_size": (400, {"lot_size": 7.0, "max_iter": 1}),
    "given noise": (400, {"epsilon": None, "noise_multiplier": 0.7, "max_iter": 20}),
    "add_remove": (1000, {"adjacency": "add_remove", "n_samples_public": 1000, "lot_size": 50, "max_iter": 1}),
    "replace_one": (400, {"adjacency": "replace_one", "max_iter": 20}),
    "clip given": (400, {"max_grad_norm": 7.5, "max_iter": 20}),
    "rdp": (400, {"accounting": "rdp", "sampling_rate": 0.25, "max_iter": 5}),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("run", NULL_RUNS)
def test_spread_of_the_release_on_null_records_is_that_of_the_price(draw, run, n_classes, dtype):
    """Without signal theta is the sum of T noises, each divided by L: p numbers of variance T (eta sigma C / L)^2."""
    n_public, parameters = NULL_RUNS[run]
    X, y = draw(400, d=150, n_classes=n_classes)
    nothing = np.zeros(400, dtype)
    nothing[0] = 1e-30  # not all may be muted
    model = seeded(n_classes, average=False, momentum=0.0, learning_rate=1.0, random_state=11, **parameters)
    model.fit(X.astype(dtype), y, nothing)
    sigma, q, n_steps = priced_steps(model.privacy_event_)
    assert (sigma, q, n_steps) == (model.noise_multiplier_, model.sampling_rate_, model.n_steps_)
    unit = 1.0 / math.sqrt(150 + 1)
    theta = np.hstack([model.coef_, model.intercept_[:, None]]).ravel() / unit
    variance = n_steps * (sigma * model.max_grad_norm_ / (q * n_public)) ** 2
    spread = stats.chi2(theta.size)
    assert spread.ppf(FALSE_ALARM / 2) < theta @ theta / variance < spread.isf(FALSE_ALARM / 2)
    assert abs(theta.sum()) / math.sqrt(variance * theta.size) < stats.norm.isf(FALSE_ALARM / 2)


def test_every_step_adds_noise_of_its_own(draw, monkeypatch):
    """One noise T times would spread by T, not by sqrt(T)."""
    noises = []
    release = GaussianMechanism.release

    def recorded(mechanism, value, stream):
        noises.append(release(mechanism, value, stream) - value)
        return noises[-1] + value

    monkeypatch.setattr(GaussianMechanism, "release", recorded)
    X, y = draw(60, d=30)
    model = seeded(max_iter=300).fit(X, y)
    table = np.array(noises) / (model.noise_multiplier_ * model.max_grad_norm_)
    assert table.shape == (300, 31)
    bound = stats.norm.isf(FALSE_ALARM / (2 * 299 * 2))
    lagged = [abs(np.sum(table[k:] * table[:-k])) / math.sqrt(table[k:].size) for k in range(1, 300)]
    assert max(lagged) < bound
    assert stats.kstest(table.ravel(), "norm").pvalue > FALSE_ALARM


# --- charges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_charge_stands_before_training_sees_the_rows(draw, monkeypatch, method, kind):
    accountant, seen = PrivacyAccountant(), []
    estimator, bound, _ = ESTIMATORS[kind]

    class Watched(bound):
        def __init__(self, *arguments, **keywords):
            seen.append(accountant.history)
            super().__init__(*arguments, **keywords)

    monkeypatch.setattr(*model_place(kind), Watched)
    X, y = draw(60)
    model = getattr(seeded(kind=kind, accountant=accountant, **POISSON), method)(X, y)
    ((charge,),) = seen
    assert charge.event == model.privacy_event_
    assert charge.label == estimator.__name__
    assert charge.adjacency == "zero_out"


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_training_never_sees_the_rows_of_a_fit_above_the_ceiling(draw, monkeypatch, kind):
    def refuse(*arguments, **keywords):
        raise AssertionError("the rows were bound to a model")

    monkeypatch.setattr(*model_place(kind), refuse)
    accountant = PrivacyAccountant(epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        seeded(kind=kind, accountant=accountant).fit(*draw(60))
    assert accountant.history == ()


@pytest.mark.parametrize("place", ["__init__", "clipped_gradient_sum"])
@pytest.mark.parametrize("error", [MemoryError, FloatingPointError])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_aborted_fit_keeps_its_charge_and_publishes_nothing(draw, monkeypatch, place, error, kind):
    def fail(*arguments, **keywords):
        raise error("planted")

    accountant = PrivacyAccountant()
    model = seeded(kind=kind, accountant=accountant)
    with monkeypatch.context() as patch:
        patch.setattr(ESTIMATORS[kind][1], place, fail)
        with pytest.raises(error, match="planted"):
            model.fit(*draw(60))
    assert len(accountant.history) == 1
    assert not any(name in PUBLISHED[type(model)] for name in vars(model) if name != "n_features_in_")
    assert seeded(kind=kind).fit(*draw(60)).privacy_event_ == accountant.event


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_aborted_instalment_leaves_the_model_before_it(draw, monkeypatch, kind):
    X, y = draw(60)
    accountant = PrivacyAccountant()
    model = seeded(kind=kind, accountant=accountant).fit(X, y)
    before = {name: getattr(model, name) for name in PUBLISHED[type(model)] if hasattr(model, name)}
    monkeypatch.setattr(ESTIMATORS[kind][1], "clipped_gradient_sum", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X, y)
    assert len(accountant.history) == 2
    for name, value in before.items():
        assert_same_value(name, getattr(model, name), value)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("first_sampled", [False, True])
def test_no_sequence_of_fits_ends_above_the_ceiling(draw, seed, first_sampled):
    """Property 18, in one process: fits of sizes chosen by a user who looks at what was admitted."""
    X, y = draw(60)
    rng = np.random.default_rng(seed)
    accountant = PrivacyAccountant(epsilon=2.0, delta=1e-5)
    admitted = refused = 0
    while refused < 12:
        size = accountant.remaining() * rng.uniform(0.05, 1.5) + 0.01
        sampling = POISSON if (admitted == 0) == first_sampled else {}
        model = seeded(accountant=accountant, epsilon=size, random_state=None, **sampling)
        try:
            model.fit(X, y)
            admitted += 1
        except BudgetExceededError:
            refused += 1
        assert len(accountant.history) == admitted
        assert accountant.get_epsilon() <= 2.0
    assert admitted >= 1


@pytest.mark.parametrize("accounting", ["pld", "rdp"])
@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_epsilon_is_the_price_of_the_published_event(draw, monkeypatch, accounting, adjacency, kind):
    """Every release that ran, over all instalments, is in `privacy_event_`, and `epsilon_` is its price."""
    ran = []
    release = GaussianMechanism.release
    monkeypatch.setattr(
        GaussianMechanism, "release", lambda self, *arguments: ran.append(self) or release(self, *arguments)
    )
    X, y = draw(60)
    model = seeded(kind=kind, accounting=accounting, adjacency=adjacency, n_samples_public=60, max_iter=200)
    model.fit(X, y)
    model.set_params(epsilon=0.5, max_iter=10).partial_fit(X, y)
    model.set_params(warm_start=True, epsilon=0.3).fit(X, y)
    assert sum(flatten(model.privacy_event_).values()) == len(ran) == model.n_steps_ == 220
    assert flatten(model.privacy_event_) == flatten(compose(mechanism.event for mechanism in ran))
    price = get_epsilon(model.privacy_event_, model.delta_, method=accounting, adjacency=adjacency)
    assert model.epsilon_ == price


# --- what is published ------------------------------------------------------------------------------------------------

# The allow-list. A new attribute needs a line here and a reason why it may be seen.
ALL_PUBLISH = {
    "classes_": "the parameter `classes`; read from y only with a warning",
    "n_features_in_": "the schema is public",
    "feature_names_in_": "the schema is public",
    "epsilon_": "function of the plan",
    "delta_": "the parameter `delta`",
    "adjacency_": "the parameter `adjacency`",
    "privacy_event_": "the plan",
    "noise_multiplier_": "solved from epsilon, delta, sampling and steps",
    "sampling_rate_": "from public n",
    "max_grad_norm_": "rule in public n, d, epsilon, delta",
    "data_norm_": "the parameter `data_norm` or sqrt(n_features)",
    "n_iter_": "the plan's; fewer only after an interrupt from outside",
    "n_steps_": "the plan's; fewer only after an interrupt from outside",
}
UNDOCUMENTED = {
    "_fitted_before": "`n_steps_` and `n_iter_` of earlier instalments",
    "_fitted_releases": "the plans, each with a random name",
}
PUBLISHED = {
    DPLogisticRegression: {
        **ALL_PUBLISH,
        "coef_": "post-processing of noisy sums",
        "intercept_": "post-processing of noisy sums",
        "learning_rate_": "rule in public n, epsilon, delta",
    },
    DPMLPClassifier: {
        **ALL_PUBLISH,
        "coefs_": "post-processing of noisy sums",
        "intercepts_": "post-processing of noisy sums",
        "learning_rate_init_": "the parameter, or a rule in public n, epsilon, delta",
        "n_layers_": "the parameter `hidden_layer_sizes`",
        "n_outputs_": "the number of classes, or of columns of y",
        "out_activation_": "the number of columns of y, and of the classes",
    },
}


@pytest.mark.parametrize("life", ["fit", "partial_fit twice", "warm_start", "verbose"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fit_publishes_what_is_on_the_list(draw, life, kind, capsys):
    X, y = draw(60)
    options = {"warm_start": life == "warm_start", "verbose": int(life == "verbose")}
    model = seeded(kind=kind, accountant=PrivacyAccountant(), **options)
    parameters = set(model.get_params())
    model = model.partial_fit(X, y).partial_fit(X, y) if life == "partial_fit twice" else model.fit(X, y)
    expected = PUBLISHED[type(model)].keys() | UNDOCUMENTED.keys()
    assert set(vars(model)) - parameters == expected - {"feature_names_in_"}


@pytest.mark.parametrize("estimator", PUBLISHED, ids=lambda estimator: estimator.__name__)
def test_the_list_is_the_documented_one(estimator):
    section = inspect.getdoc(estimator).split("Attributes\n----------\n")[1].split("\nSee Also\n")[0]
    entries = re.findall(r"(?m)^(\w.*) : ", section)
    assert {name for entry in entries for name in entry.split(", ")} == PUBLISHED[estimator].keys()


# --- the sentences ----------------------------------------------------------------------------------------------------


def test_noise_of_a_release_has_the_stated_standard_deviation():
    mechanism = GaussianMechanism(noise_multiplier=1.7, sensitivity=0.3)
    value = np.linspace(-5, 5, 100_000)
    noise = mechanism.release(value, SecretStream.from_random_state(0)) - value
    spread = stats.chi2(noise.size)
    square = noise @ noise / (1.7 * 0.3) ** 2
    assert spread.ppf(FALSE_ALARM / 2) < square < spread.isf(FALSE_ALARM / 2)
    halves = [half @ half / (1.7 * 0.3) ** 2 for half in (noise[::2], noise[1::2])]  # every coordinate, not on average
    assert all(stats.chi2(50_000).ppf(FALSE_ALARM / 2) < h < stats.chi2(50_000).isf(FALSE_ALARM / 2) for h in halves)


def test_a_mechanism_states_the_noise_it_adds():
    assert GaussianMechanism(1.7, 0.3).event == GaussianDpEvent(1.7)


class CountingModel:
    """A model of its own kind, to see what the loop asks of one: unit gradients along the first axis."""

    n_rows = 50

    def __init__(self):
        self.asked = []

    def clipped_gradient_sum(self, theta, rows, max_norm):
        self.asked.append((rows, max_norm))
        return np.array([min(1.0, max_norm) * (self.n_rows if rows is None else len(rows)), 0.0])


@pytest.mark.parametrize("sampling", [FullBatch(), PoissonSampling(0.3), PoissonSampling(0.001)], ids=str)
def test_a_run_is_the_composition_that_the_plan_prices(sampling, monkeypatch):
    """Draws, clipped sums, releases and divisions: as many as the event has, and each by the plan's own object."""
    draws, released, updates = [], [], []
    rows_of, release = type(sampling).rows, GaussianMechanism.release
    monkeypatch.setattr(
        type(sampling), "rows", lambda self, *arguments: draws.append(self) or rows_of(self, *arguments)
    )
    monkeypatch.setattr(
        GaussianMechanism, "release", lambda self, *arguments: released.append(self) or release(self, *arguments)
    )
    plan = DPSGDPlan(sampling, max_grad_norm=0.5, noise_multiplier=1e-9, n_steps=40, expected_lot_size=8.0)
    optimizer, model = momentum_sgd(constant(1.0), 0.0), CountingModel()

    def update(gradient, *arguments):
        updates.append(gradient)
        return optimizer.update(gradient, *arguments)

    watched = optimizer._replace(update=update)
    stream = SecretStream.from_random_state(0)
    run_dpsgd(model, plan, watched, np.zeros(2), stream, averaging=last_iterate(), on_step=lambda n_done: None)
    assert len(draws) == len(model.asked) == len(released) == len(updates) == 40
    assert set(draws) == {sampling}
    assert set(released) == {plan.mechanism} == {GaussianMechanism(1e-9, 0.5)}
    assert {max_norm for _, max_norm in model.asked} == {0.5}
    sizes = [50 if rows is None else len(rows) for rows, _ in model.asked]
    np.testing.assert_allclose([g[0] for g in updates], [0.5 * size / 8.0 for size in sizes], atol=1e-8)
    step = GaussianDpEvent(1e-9)
    step = step if isinstance(sampling, FullBatch) else PoissonSampledDpEvent(sampling.rate, step)
    assert plan.event == SelfComposedDpEvent(step, 40)


def test_sums_are_divided_by_the_public_number_of_rows(draw):
    """Forty rows under a public number of 1,000: the step is by 40 / 1000 of the mean gradient, whatever was drawn."""
    X, y = draw(40)
    model = seeded(
        epsilon=None, noise_multiplier=1e-3, adjacency="add_remove", n_samples_public=1000, max_iter=1, momentum=0.0,
        learning_rate=1.0, max_grad_norm=10.0, average=False,
    ).fit(X, y)  # fmt: skip
    unit = 1.0 / math.sqrt(5.0)
    expected = -(unit**2) * ((0.5 - y) @ X) / 1000  # gradients in scaled rows, coefficients of the user's
    noise = unit * 1e-3 * 10.0 / 1000
    np.testing.assert_allclose(model.coef_[0], expected, atol=6 * noise, rtol=0)  # 4 normals beyond 6 sd: 8e-9


def rows_on_the_edge_of_rounding(n_blocks):
    """Float32 rows whose sums round differently when all of them shift by one place.

    Casacuberta et al. (2022), "Widespread underestimation of sensitivity in differentially private libraries", for
    sums in float32 by blocks of 512 rows. The last row is the one that leaves.
    """
    even = np.concatenate([np.full(255, 1.0), np.full(257, 2.0**-18 * 1.02 / 2)])
    odd = np.concatenate([np.zeros(511), [1.0]])
    return np.tile(np.concatenate([even, odd]), n_blocks // 2).astype(np.float32)[:, None]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rounding_does_not_add_up_to_more_than_the_clip(n_jobs, monkeypatch):
    """All rows behind the one that leaves are summed in other blocks: the sum may still move by one clip only."""
    released = []
    monkeypatch.setattr(
        GaussianMechanism, "release", lambda self, value, stream: released.append(value.copy()) or value
    )
    X = rows_on_the_edge_of_rounding(2048)
    for rows in (X, X[:-1]):
        seeded(
            epsilon=None, noise_multiplier=1.0, adjacency="add_remove", n_samples_public=10**4, max_iter=1,
            fit_intercept=False, max_grad_norm=0.5, n_jobs=n_jobs,
        ).fit(rows, np.zeros(len(rows), int))  # fmt: skip
    assert abs(released[0] - released[1])[0] <= 0.5 * (1 + 1e-6)


def test_rounding_in_a_network_does_not_add_up_to_more_than_the_clip(monkeypatch):
    """The first row leaves and 1,000,000 rows move up by one place: in float32 blocks of 256 would make 3 C of it."""
    released = []
    monkeypatch.setattr(
        GaussianMechanism, "release", lambda self, value, stream: released.append(value.copy()) or value
    )
    small = 2.0**-17 * 1.02
    pair = np.concatenate([np.ones(128), np.full(128, small), np.full(255, 1e-20), [1.0]])
    weights = np.tile(pair, 2048).astype(np.float32)  # of gradients (1/2, 1/2, 1/2, 1/2) in the intercepts: of norm 1
    X, labels = np.zeros((len(weights), 2), np.float32), np.zeros((len(weights), 4), np.int8)
    for kept in (slice(None), slice(1, None)):
        DPMLPClassifier(
            (), epsilon=None, noise_multiplier=1.0, delta=1e-9, adjacency="add_remove", n_samples_public=10**6,
            sampling_rate=1.0, max_iter=1, max_grad_norm=1.01,
        ).fit(X[kept], labels[kept], weights[kept])  # fmt: skip
    moved = np.linalg.norm(released[0] - released[1])
    assert 0.99 < moved <= 1.01


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_one_more_class_among_the_labels_is_not_told(draw, kind):
    """scikit-learn warns when more than half of the labels differ; with `classes` given nobody must learn that."""
    X, _ = draw(40)
    y = np.arange(40) % 20
    for labels in (y, np.concatenate([[20], y[1:]])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seeded(21, kind, random_state=None, delta=1e-3, max_iter=1).fit(X, labels)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_refused_fit_leaves_the_fitted_model_whole(draw, kind):
    X, y = draw(40)
    accountant = PrivacyAccountant(1.0, 1e-5)
    model = seeded(kind=kind, accountant=accountant).fit(pd.DataFrame(X, columns=list("abcd")), y)
    before = model.predict(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(BudgetExceededError):
        model.fit(np.hstack([X, X]), y)
    assert model.n_features_in_ == 4
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X, columns=list("abcd"))), before)


SENTENCES = {
    PrivateEstimator: {
        "Parameters are checked and the accountant is asked before a row is read; the rows are checked before the "
        "charge; the charge is made before training reads a row.": [
            "test_the_charge_stands_before_training_sees_the_rows",
            "test_training_never_sees_the_rows_of_a_fit_above_the_ceiling",
            "tests/test_refusals.py::test_parameters_and_ceiling_are_looked_at_before_the_rows",
            "tests/test_refusals.py::test_rows_are_refused_before_the_charge_and_the_ledger_notes_it",
        ],
        "``fit`` works on a copy and publishes what it learned in one assignment: after an error or an interrupt at "
        "any line the estimator is what it was or what it became, each with its own price.": [
            "tests/test_publication.py::test_a_refit_that_is_refused_leaves_the_old_state_and_its_price",
            "tests/test_publication.py::test_an_interrupt_at_any_line_leaves_no_state_that_costs_more_than_it_says",
            "tests/test_publication.py::test_an_interrupt_at_any_line_of_an_instalment_is_paid_for",
        ],
        "A fit that fails or is interrupted later keeps its charge.": [
            "test_an_aborted_fit_keeps_its_charge_and_publishes_nothing",
            "test_an_aborted_instalment_leaves_the_model_before_it",
        ],
        "`epsilon_` prices jointly every event on which the fitted state depends, `privacy_event_`, at `delta_`.": [
            "test_epsilon_is_the_price_of_the_published_event",
        ],
        "What ``fit`` publishes besides noisy parameters is a function of constructor parameters, of public shape and "
        "names (the number of rows included, but for ``add_remove``) and of the classes.": [
            "test_fit_publishes_what_is_on_the_list",
            "test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "test_removing_a_row_moves_releases_by_the_clip_and_nothing_else",
            "test_plan_and_price_under_add_remove_do_not_see_the_number_of_rows",
        ],
    },
    DPLogisticRegression: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is "
        "given and `random_state` is None.": [
            "test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "test_exchanging_a_row_moves_releases_by_twice_the_clip",
            "test_spread_of_the_release_on_null_records_is_that_of_the_price",
            "test_every_step_adds_noise_of_its_own",
            "test_epsilon_is_the_price_of_the_published_event",
        ],
        "One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain.": [
            "test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "test_muting_a_row_in_single_precision",
            "test_copies_of_a_row_move_the_sum_by_so_many_clips",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "test_sums_are_divided_by_the_public_number_of_rows",
            "test_spread_of_the_release_on_null_records_is_that_of_the_price",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the "
        "steps done.": [
            "test_the_charge_stands_before_training_sees_the_rows",
            "tests/test_linear_model.py::test_interrupted_fit_keeps_model_and_full_charge",
            "tests/test_linear_model.py::test_interrupted_model_is_that_of_the_steps_done",
        ],
        "Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge.": [
            "tests/test_linear_model.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "test_refusals_that_lie_in_the_data_are_the_documented_ones",
        ],
    },
    DPPCA: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `random_state` is "
        "None.": [
            "tests/test_decomposition.py::test_one_row_moves_the_release_by_its_sensitivity_and_nothing_else",
            "tests/test_decomposition.py::test_no_pair_is_further_apart_than_the_sensitivity_says",
            "tests/test_decomposition.py::test_replace_one_is_priced_at_twice_the_sensitivity",
            "tests/test_decomposition.py::test_noise_of_the_moments_is_symmetric_and_as_priced",
            "tests/test_decomposition.py::test_every_fit_draws_noise_of_its_own",
        ],
        "All that is fitted is a function of one noisy release and of public quantities.": [
            "tests/test_decomposition.py::test_all_that_is_fitted_follows_from_the_release",
            "tests/test_decomposition.py::test_fit_publishes_what_is_on_the_list",
        ],
        "The noise on the Gram matrix is symmetric, of standard deviation sigma R**2 on the diagonal and sigma R**2 / "
        "sqrt(2) off it, but for the factors of the mean, of `adjacency` and of rounding below.": [
            "tests/test_decomposition.py::test_noise_of_the_moments_is_symmetric_and_as_priced",
            "tests/test_decomposition.py::test_the_edge_is_where_random_matrices_end",
        ],
        "`accountant` is charged before the first block of an iterator is drawn, and before the rows of an array are "
        "summed.": [
            "tests/test_decomposition.py::test_nothing_is_read_above_the_ceiling",
            "tests/test_decomposition.py::test_rows_of_an_array_are_not_summed_above_the_ceiling",
            "tests/test_decomposition.py::test_the_charge_stands_before_the_first_block",
            "tests/test_decomposition.py::test_an_aborted_fit_keeps_its_charge_and_publishes_nothing",
        ],
        "An array that is refused (NaN, infinity) is refused before any charge; a block of an iterator that is refused "
        "leaves the charge standing.": [
            "tests/test_decomposition.py::test_bad_rows_are_refused_before_any_charge",
            "tests/test_decomposition.py::test_a_bad_block_is_refused_and_the_charge_stands",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "tests/test_decomposition.py::test_bad_rows_are_refused_before_any_charge",
        ],
    },
    PrivatePipeline: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row as the whole of its steps, each of which "
        "may depend on what the ones before it released (adaptive composition).": [
            "tests/test_pipeline.py::test_the_joint_price_meets_the_budget",
            "tests/test_pipeline.py::test_the_steps_ran_with_the_noise_that_was_priced",
            "tests/test_pipeline.py::test_each_adjacency",
        ],
        "Parameters of all steps are checked and the accountant is asked before a row is read.": [
            "tests/test_pipeline.py::test_above_the_ceiling_no_row_is_read_and_nothing_is_charged",
            "tests/test_refusals.py::test_parameters_and_ceiling_are_looked_at_before_the_rows",
        ],
        "The leading public steps run, and rows and labels are checked, before the charge.": [
            "tests/test_pipeline.py::test_rows_and_labels_are_checked_before_the_charge",
            "tests/test_refusals.py::test_rows_are_refused_before_the_charge_and_the_ledger_notes_it",
        ],
        "The accountant is charged once, with the joint event.": [
            "tests/test_pipeline.py::test_the_accountant_is_charged_once_and_jointly",
            "tests/test_pipeline.py::test_the_charge_stands_before_training_reads_a_row",
        ],
        "A step that is not known to treat rows one by one, and to read nothing of them, is refused.": [
            "tests/test_pipeline.py::test_a_step_that_reads_without_paying_is_refused",
            "tests/test_pipeline.py::test_a_forbidden_step_that_is_set_later_is_refused_at_fit",
        ],
        "Every private step sees the rows that came in, one for one.": [
            "tests/test_pipeline.py::test_a_step_that_changes_the_number_of_rows_is_refused",
        ],
        "``fit`` works on copies of the steps, which replace the steps all at once when the last one is fitted.": [
            "tests/test_publication.py::test_public_steps_of_the_user_are_not_written_on",
            "tests/test_publication.py::test_a_clone_taken_and_parameters_read_while_it_fits_are_the_users_own",
            "tests/test_publication.py::test_two_threads_on_one_pipeline_are_two_charges",
        ],
        "After an error, an interrupt or in another thread the pipeline is as it was, with the price that it had.": [
            "tests/test_publication.py::test_a_pipeline_that_fails_at_its_last_step_keeps_all_of_its_old_steps",
            "tests/test_publication.py::test_an_interrupt_at_any_line_leaves_no_state_that_costs_more_than_it_says",
        ],
    },
    MomentSum: {
        "A row changes `isometric` by at most `sensitivity`, rounding within a block included, and not at all if it "
        "holds NaN or infinity.": [
            "tests/test_decomposition.py::test_worst_row_reaches_the_sensitivity",
            "tests/test_decomposition.py::test_a_block_of_equal_rows_in_single_precision",
            "tests/test_decomposition.py::test_rounding_of_a_block_is_within_what_is_declared",
            "tests/test_decomposition.py::test_rows_that_shift_are_summed_in_double_precision",
            "tests/test_decomposition.py::test_rows_of_any_length_end_in_the_ball",
            "tests/test_gram.py::test_a_row_that_holds_nan_or_infinity_adds_exactly_nothing",
        ],
        "The Euclidean norm of `isometric`, but for a factor that depends on dtype and width, is the Frobenius norm of "
        "the sums.": [
            "tests/test_decomposition.py::test_sums_are_those_of_the_plain_reading",
        ],
    },
    LinearModel: {
        "A row adds at most C (1 + 8 u), with u = 2**-53, in either dtype, and exactly nothing if its weight is 0 or "
        "if it holds NaN or infinity.": [
            "tests/test_linear_kernels.py::test_one_row_adds_at_most_the_clip",
            "tests/test_linear_kernels.py::test_wide_rows_at_extreme_scales_add_at_most_the_clip",
            "tests/test_linear_kernels.py::test_norms_that_lose_their_digits_are_not_taken_for_shorter",
            "tests/test_linear_kernels.py::test_weight_zero_is_the_null_record",
            "tests/test_linear_kernels.py::test_a_row_that_holds_nan_or_infinity_is_the_null_record",
        ],
    },
    DPMLPClassifier: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row under `adjacency`, if `classes` is "
        "given and `random_state` is None.": [
            "test_muting_a_row_moves_releases_by_the_clip_and_nothing_else",
            "test_muting_a_row_of_several_labels",
            "test_removing_a_row_moves_releases_by_the_clip_and_nothing_else",
            "test_exchanging_a_row_moves_releases_by_twice_the_clip",
            "test_epsilon_is_the_price_of_the_published_event",
            "tests/test_neural_network.py::test_spread_of_a_step_on_null_records",
            "tests/test_neural_network.py::test_instalments_of_one_seed_have_different_noise",
        ],
        "One row moves the sum of a step by at most `max_grad_norm_`, whatever it and its weight contain, the "
        "rounding of the sum included.": [
            "test_muting_a_row_in_single_precision_in_a_network",
            "test_rounding_in_a_network_does_not_add_up_to_more_than_the_clip",
            "tests/test_networks.py::test_one_row_adds_at_most_the_clip",
            "tests/test_networks.py::test_rounding_on_the_edge_moves_the_sum_by_at_most_the_clip",
            "tests/test_networks.py::test_rounding_moves_the_sum_by_at_most_the_clip",
        ],
        "Sum and noise are divided by a public constant, the expected number of rows of a step.": [
            "tests/test_neural_network.py::test_one_step_is_the_clipped_mean_gradient",
            "tests/test_neural_network.py::test_spread_of_a_step_on_null_records",
        ],
        "`accountant` is charged before the rows are read; an interrupted fit keeps its charge, and the model of the "
        "steps done.": [
            "test_the_charge_stands_before_training_sees_the_rows",
            "tests/test_neural_network.py::test_interrupted_fit_keeps_the_model_of_the_steps_done_and_the_full_charge",
            "tests/test_neural_network.py::test_an_instalment_interrupted_in_its_first_step_keeps_the_model_before_it",
        ],
        "Input that is refused (NaN, infinity, unknown labels, negative weights) is refused before any charge.": [
            "tests/test_neural_network.py::test_bad_input_is_refused_in_one_line_before_any_charge",
        ],
        "Such a refusal depends on the data and is not covered.": [
            "test_refusals_that_lie_in_the_data_are_the_documented_ones",
        ],
        "The initial weights are random and depend on no row.": [
            "tests/test_neural_network.py::test_start_depends_on_no_row",
            "tests/test_neural_network.py::test_start_is_random_scaled_by_the_inputs_and_zero_in_the_last_layer",
        ],
    },
    Clip: {
        'No row\'s clipped gradient is longer than C: by construction for "flat" and "automatic"; for "per_layer" '
        "its square is at most the sum of the C_k**2, which is C**2, and this is reached.": [
            "tests/test_networks.py::test_one_row_adds_at_most_the_clip",
            "tests/test_networks.py::test_no_product_of_magnitudes_adds_more",
            "tests/test_networks.py::test_layers_have_bounds_of_their_own_that_are_reached_together",
        ],
    },
    DPSGDPlan: {
        "A run that makes `n_steps` steps, each of which (1) draws rows by `sampling`, (2) adds up gradients of which "
        "none is longer than C, (3) releases the sum through `mechanism` and (4) divides by the constant L, is an "
        "`n_steps`-fold adaptive composition of `sampling.event(mechanism.event)`; that composition is `event`.": [
            "test_a_run_is_the_composition_that_the_plan_prices",
        ],
    },
    GaussianMechanism: {
        "The standard deviation of every coordinate is `noise_multiplier` times `sensitivity`.": [
            "test_noise_of_a_release_has_the_stated_standard_deviation",
        ],
        "The event states the same `noise_multiplier`.": ["test_a_mechanism_states_the_noise_it_adds"],
    },
    PrivateScore: {
        "One row that is replaced by a null row, added or removed moves `total` by at most `sensitivity`, half of "
        "`bound`; replaced by any other row, by at most twice that.": [
            "tests/test_model_selection.py::test_contributions_of_a_row_are_within_the_bound",
            "tests/test_model_selection.py::test_contributions_outside_the_bound_are_cut_off",
            "tests/test_model_selection.py::test_what_is_no_finite_number_counts_as_the_worst",
            "tests/test_model_selection.py::test_an_exchanged_row_moves_releases_by_twice_their_sensitivity",
        ],
    },
    SearchPlan: {
        "`event` is the price of: a split of the rows that no row has a say in; tries, each of which fits one of "
        "`tried` to the part that trains and releases it with a score, of noise multiplier `score_noise`, on the part "
        "that scores; the best of them by that score; then one of `finals`, fitted to all rows.": [
            "tests/test_model_selection.py::test_what_ran_is_what_was_priced",
            "tests/test_model_selection.py::test_every_try_of_compose_is_paid_for",
            "tests/test_model_selection.py::test_the_choice_has_its_exact_law",
            "tests/test_model_selection.py::test_the_choice_is_as_private_as_its_price",
        ],
    },
    DPGridSearchCV: {
        "``fit`` is (`epsilon_`, `delta_`)-differentially private for one row, the choice and the final fit included, "
        "if the estimator names its classes and `random_state` is None.": [
            "tests/test_model_selection.py::test_a_muted_row_moves_its_own_releases_by_their_sensitivity",
            "tests/test_model_selection.py::test_a_row_that_leaves_moves_releases_by_their_sensitivity",
            "tests/test_model_selection.py::test_the_whole_costs_the_budget",
            "tests/test_model_selection.py::test_fit_publishes_what_is_on_the_list",
        ],
        "A row is in the part that trains or in the part that scores, and no label moves another row.": [
            "tests/test_model_selection.py::test_a_muted_row_moves_its_own_releases_by_their_sensitivity",
            "tests/test_model_selection.py::test_labels_move_nobody",
        ],
        "Parameters of all candidates are checked and the accountant is asked before a row is read; rows and labels "
        "are checked, for all candidates alike, before the charge; the accountant is charged once, for all of it.": [
            "tests/test_refusals.py::test_a_candidate_that_cannot_be_fitted_costs_nothing",
            "tests/test_refusals.py::test_rows_are_refused_before_the_charge_and_the_ledger_notes_it",
            "tests/test_model_selection.py::test_the_accountant_is_charged_once",
            "tests/test_model_selection.py::test_the_charge_stands_before_training_reads_a_row",
            "tests/test_model_selection.py::test_above_the_ceiling_no_row_is_read_and_nothing_is_charged",
        ],
        "Under random stopping nothing reveals the candidates that lost, nor how many were tried: no attribute, no "
        "entry of the ledger, no warning, no progress.": [
            "tests/test_model_selection.py::test_the_number_of_tries_is_not_told",
            "tests/test_model_selection.py::test_a_try_that_warns_is_not_heard",
        ],
        "A search over one candidate skips choice and score and costs one fit.": [
            "tests/test_model_selection.py::test_a_grid_of_one_costs_one_fit",
        ],
    },
}


@pytest.mark.parametrize("subject", SENTENCES, ids=lambda subject: subject.__name__)
def test_each_guarantee_that_is_written_has_a_test(subject, request):
    """And each that has a test is written: a changed sentence fails here, and asks what tests it now."""
    section = inspect.getdoc(subject).split("**Guarantees.**")[1]
    paragraphs = section.strip().split("\n\n")
    text = " ".join(paragraphs[0].split())
    for sentence, tests in SENTENCES[subject].items():
        assert sentence in text
        text = text.replace(sentence, "")
        for test in tests:
            path, _, name = test.rpartition("::")
            source = request.config.rootpath / path if path else Path(__file__)
            assert f"def {name}(" in source.read_text(), f"{test} does not exist"
    text = re.sub(r"\([^()]*\d{4}[^()]*\)", "", text)  # references
    assert not re.search(r"\w", text), f"no test is named for: {text}"
