"""DPLogisticRegression as a user meets it: it learns, it says what it cost, it lives among scikit-learn's tools."""

from __future__ import annotations

import _thread
import copy
import io
import itertools
import math
import pathlib
import pickle
import sys
import threading
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import skdp._random
from skdp import (
    AccountantDetachedError,
    BudgetExceededError,
    BudgetFileError,
    DPLogisticRegression,
    PrivacyAccountant,
    PrivacyLeakWarning,
    config_context,
)
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, compose, get_epsilon, to_dp_accounting
from skdp.mechanisms import GaussianMechanism

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # seeds make a test repeatable

POISSON = {"sampling_rate": 0.1, "max_iter": 3}


def binary(**parameters):
    return DPLogisticRegression(**{"classes": [0, 1], **parameters})


@pytest.fixture(scope="module")
def table(draw):
    return draw()


# --- it learns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranking_is_that_of_the_non_private_model_when_the_budget_is_large(draw, dtype):
    X, y = draw(20_000, 6)
    train, test = slice(0, 16_000), slice(16_000, None)
    peer = LogisticRegression(C=1e6).fit(X[train], y[train])
    model = binary(epsilon=8.0, random_state=0).fit(X[train].astype(dtype), y[train])
    best = roc_auc_score(y[test], peer.decision_function(X[test]))
    assert best > 0.9
    assert roc_auc_score(y[test], model.decision_function(X[test].astype(dtype))) > best - 0.003


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"fit_intercept": False},
        {"average": False},
        {"sampling_rate": 0.1, "max_iter": 20},
        {"adjacency": "add_remove", "n_samples_public": 16_000},
        {"adjacency": "replace_one"},
        {"accounting": "rdp"},
    ],
    ids=str,
)
def test_several_classes_are_learnt(draw, parameters):
    X, y = draw(20_000, 6, n_classes=4)
    train, test = slice(0, 16_000), slice(16_000, None)
    peer = LogisticRegression(C=1e6).fit(X[train], y[train])
    model = DPLogisticRegression(epsilon=8.0, classes=range(4), random_state=0, **parameters).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > peer.score(X[test], y[test]) - 0.02  # 0.02: three sd of 4,000 coin flips


def test_one_step_is_the_clipped_mean_gradient(table):
    """One step from zero by hand: coef = -eta (1 - momentum) unit * sum of clipped gradients / n, up to the noise."""
    X, y = table
    sigma, clip, eta, momentum = 1e-3, 0.35, 2.0, 0.5
    model = binary(
        epsilon=None, noise_multiplier=sigma, max_iter=1, max_grad_norm=clip, learning_rate=eta, momentum=momentum
    ).fit(X, y)
    unit = 1.0 / math.sqrt(X.shape[1] + 1.0)
    rows = np.hstack([X, np.ones((len(X), 1))]) * unit  # none is longer than sqrt(n_features)
    gradients = (0.5 - y)[:, None] * rows
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    assert np.mean(norms > clip) > 0.1  # else nothing is clipped
    expected = -eta * (1 - momentum) * unit * (gradients * np.minimum(1.0, clip / norms)).mean(axis=0)
    sd = eta * (1 - momentum) * unit * sigma * clip / len(X)
    found = np.append(model.coef_, model.intercept_)
    assert np.all(np.abs(found - expected) < 6 * sd)  # 5 normals beyond 6 sd: once in 1e8
    assert (model.learning_rate_, model.max_grad_norm_, model.n_steps_) == (eta, clip, 1)


def test_momentum_changes_the_path_and_not_the_price(table):
    quick, slow = (binary(momentum=m, random_state=0).fit(*table) for m in (0.0, 0.9))
    assert not np.allclose(quick.coef_, slow.coef_)
    assert quick.epsilon_ == slow.epsilon_


def test_average_is_of_the_second_half_and_free(table):
    averaged, last = (binary(average=a, random_state=0).fit(*table) for a in (True, False))
    assert not np.allclose(averaged.coef_, last.coef_)
    assert averaged.epsilon_ == last.epsilon_
    averaged, last = (binary(average=a, random_state=0, max_iter=1).fit(*table) for a in (True, False))
    np.testing.assert_array_equal(averaged.coef_, last.coef_)


def test_penalty_shrinks_coefficients_and_spares_the_intercept(draw):
    X, _ = draw(2000)
    y = np.arange(len(X)) % 10 > 0
    free, held = (binary(alpha=a, classes=[False, True], random_state=0).fit(X, y) for a in (0.0, 1e6))
    assert np.abs(held.coef_).max() < 1e-4 * np.abs(free.coef_).max()
    assert held.intercept_[0] > 0.5 * free.intercept_[0] > 0


def test_no_intercept(table):
    model = binary(fit_intercept=False).fit(*table)
    np.testing.assert_array_equal(model.intercept_, [0.0])


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, POISSON, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_rows_are_the_same_rows(draw, parameters, n_classes):
    X, y = draw(n_classes=n_classes)
    X[np.abs(X) < 0.6] = 0.0
    model = DPLogisticRegression(classes=range(n_classes), learning_rate=1.0, random_state=0, **parameters)
    dense = clone(model).fit(X, y)
    for sparse in (sp.csr_array(X), sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X), sp.lil_array(X)):
        found = clone(model).fit(sparse, y)
        np.testing.assert_allclose(found.coef_, dense.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.intercept_, dense.intercept_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.predict_proba(sparse), dense.predict_proba(X), rtol=1e-9)


def with_duplicates():
    """Rows (2, 0, 4, 0) with the last value in two pieces and the columns out of order."""
    data, indices = np.tile([1.0, 2.0, 3.0], 20), np.tile([2, 0, 2], 20)
    return sp.csr_array((data, indices, np.arange(0, 61, 3)), shape=(20, 4))


def test_repeated_entries_beyond_range_are_refused():
    """Each of them is finite and their sum is not: unnoticed, it would turn the whole release into NaN."""
    X = sp.csr_matrix((np.array([1.5e308, 1.5e308, 1.0]), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    accountant = PrivacyAccountant()
    with pytest.raises(ValueError, match=r"^Input X contains infinity [^\n]*$"):
        binary(accountant=accountant).fit(X, [0, 1])
    assert accountant.history == ()


def test_a_sparse_matrix_that_is_wrong_about_its_format():
    """scipy remembers that entries were distinct, whatever happens to the indices afterwards."""
    rng = np.random.default_rng(0)
    X = sp.random(60, 200, density=0.3, format="csr", random_state=rng)
    assert X.has_canonical_format
    X.indices %= 4
    X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(60, 200))
    whole = X.toarray()
    X.has_canonical_format = True
    y = np.arange(60) % 2
    pieces, dense = (binary(random_state=0).fit(rows, y).coef_ for rows in (X, whole))
    np.testing.assert_allclose(pieces, dense, rtol=1e-9, atol=1e-12)


def test_repeated_entries_of_a_sparse_row_are_added():
    y = np.arange(20) % 2
    pieces, whole = (binary(random_state=0).fit(X, y) for X in (with_duplicates(), with_duplicates().toarray()))
    np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(
        pieces.decision_function(with_duplicates()), whole.decision_function(with_duplicates().toarray()), rtol=1e-9
    )


@pytest.mark.parametrize("read_only", [False, True])
def test_the_users_sparse_matrix_is_left_as_it_was(read_only):
    X = with_duplicates()
    before = X.indices.copy(), X.data.copy()
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = not read_only
    binary().fit(X, np.arange(20) % 2)
    np.testing.assert_array_equal(X.indices, before[0])
    np.testing.assert_array_equal(X.data, before[1])


def test_single_precision_gives_the_same_model_to_its_rounding(table):
    X, y = table
    single, double = (binary(learning_rate=1.0, random_state=0).fit(X.astype(t), y) for t in (np.float32, np.float64))
    assert single.coef_.dtype == np.float64
    # A step of length 1 on a loss with curvature below 1/4 enlarges no error; a step brings in a few roundings.
    bound = single.n_steps_ * 8 * np.finfo(np.float32).eps
    np.testing.assert_allclose(single.coef_, double.coef_, atol=bound, rtol=0)


@pytest.mark.parametrize("to_X", [np.asfortranarray, lambda X: X[::-1][::-1], lambda X: X.tolist(), pd.DataFrame])
def test_other_layouts_are_the_same_rows(table, to_X):
    X, y = table
    expected = binary(random_state=0).fit(X, y)
    found = binary(random_state=0).fit(to_X(X), y.tolist())
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


def test_read_only_rows(table):
    X, y = (part.copy() for part in table)
    X.flags.writeable = y.flags.writeable = False
    assert binary().fit(X, y).score(X, y) > 0.5


# --- what is published ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_attributes(draw, n_classes):
    X, y = draw(n_classes=n_classes)
    model = DPLogisticRegression(classes=range(n_classes), sampling_rate=0.3, max_iter=7).fit(X, y)
    n_outputs = 1 if n_classes == 2 else n_classes
    for name, shape in {"coef_": (n_outputs, 4), "intercept_": (n_outputs,)}.items():
        assert getattr(model, name).shape == shape
        assert getattr(model, name).dtype == np.float64
    np.testing.assert_array_equal(model.classes_, range(n_classes))
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    assert model.sampling_rate_ == 0.3
    assert model.n_steps_ == math.ceil(7 / 0.3) == 24
    assert model.n_iter_ == 8  # 24 steps of 0.3 are 7.2 epochs
    assert model.data_norm_ == 2.0
    assert model.delta_ == 1e-5
    for name in ("epsilon_", "noise_multiplier_", "max_grad_norm_", "learning_rate_", "sampling_rate_", "data_norm_"):
        assert type(getattr(model, name)) is float, name
    for name in ("n_steps_", "n_iter_", "n_features_in_"):
        assert type(getattr(model, name)) is int, name


def test_sampling_parameters(table):
    X, y = table
    assert binary().fit(X, y).sampling_rate_ == 1.0
    assert binary(lot_size=100, max_iter=2).fit(X, y).sampling_rate_ == 0.25
    assert binary(lot_size=400).fit(X, y).sampling_rate_ == 1.0
    assert binary(sampling_rate=1).fit(X, y).privacy_event_ == binary(lot_size=400).fit(X, y).privacy_event_
    public = binary(lot_size=100, max_iter=2, adjacency="add_remove", n_samples_public=500).fit(X, y)
    assert (public.sampling_rate_, public.n_steps_) == (0.2, 10)
    assert (binary().fit(X, y).n_steps_, binary(max_iter=3).fit(X, y).n_steps_) == (200, 3)


# --- the price --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["zero_out", "add_remove", "replace_one"])
@pytest.mark.parametrize("sampling", [{}, POISSON], ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_budget_is_met_from_below_and_used_up(table, adjacency, sampling, epsilon):
    model = binary(epsilon=epsilon, adjacency=adjacency, n_samples_public=400, **sampling).fit(*table)
    assert 0.998 * epsilon < model.epsilon_ <= epsilon


def test_accounting_by_renyi(table):
    model = binary(accounting="rdp", **POISSON).fit(*table)
    assert 0.998 < model.epsilon_ <= 1.0
    assert get_epsilon(model.privacy_event_, 1e-5) < model.epsilon_


def test_noise_multiplier_in_place_of_epsilon(table):
    model = binary(epsilon=None, noise_multiplier=30.0, max_iter=50).fit(*table)
    assert model.noise_multiplier_ == 30.0
    assert model.privacy_event_ == SelfComposedDpEvent(GaussianDpEvent(30.0), 50)
    assert model.epsilon_ == get_epsilon(model.privacy_event_, 1e-5)


def test_replacing_a_row_needs_more_noise_than_muting_it(table):
    def noise(**parameters):
        return binary(n_samples_public=400, **parameters).fit(*table).noise_multiplier_

    assert noise(adjacency="add_remove") == noise()
    assert noise(adjacency="replace_one") == pytest.approx(2 * noise(), rel=1e-9)
    assert 1.05 * noise(**POISSON) < noise(adjacency="replace_one", **POISSON) < 2 * noise(**POISSON)


@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
@pytest.mark.parametrize("sampling", [{"max_iter": 20}, POISSON], ids=str)
def test_epsilon_is_googles_figure(table, adjacency, sampling):
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    model = binary(adjacency=adjacency, **sampling).fit(*table)
    neighbours = dp_accounting.NeighboringRelation
    relation = neighbours.ADD_OR_REMOVE_ONE if adjacency == "zero_out" else neighbours.REPLACE_ONE
    oracle = PLDAccountant(relation).compose(to_dp_accounting(model.privacy_event_))
    assert model.epsilon_ == pytest.approx(oracle.get_epsilon(model.delta_), abs=1e-3)


# --- instalments (property 20) ----------------------------------------------------------------------------------------


def by_partial_fit(model, X, y, weights=None):
    return model.partial_fit(X, y, sample_weight=weights)


def by_warm_start(model, X, y, weights=None):
    return model.set_params(warm_start=True).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("again", [by_partial_fit, by_warm_start])
@pytest.mark.parametrize("sampling", [{}, POISSON], ids=str)
def test_instalments_are_billed_jointly(table, again, sampling):
    accountant = PrivacyAccountant()
    model = again(binary(accountant=accountant, **sampling), *table)
    one, event, n_steps, n_iter = model.epsilon_, model.privacy_event_, model.n_steps_, model.n_iter_
    first = model.coef_.copy()
    again(model, *table)
    both = compose([event, event])
    assert model.privacy_event_ == both == accountant.event
    assert model.epsilon_ == get_epsilon(both, 1e-5) == accountant.get_epsilon(1e-5)
    assert one < model.epsilon_ < 2 * one
    assert (model.n_steps_, model.n_iter_, len(accountant.history)) == (2 * n_steps, 2 * n_iter, 2)
    assert not np.array_equal(model.coef_, first)


def test_instalments_with_other_parameters_are_billed_jointly(table):
    model = binary(epsilon=0.5).fit(*table)
    first = model.privacy_event_
    model.set_params(warm_start=True, epsilon=None, noise_multiplier=9.0, **POISSON).fit(*table)
    second = binary(epsilon=None, noise_multiplier=9.0, **POISSON).fit(*table).privacy_event_
    assert model.privacy_event_ == compose([first, second])


def test_a_new_fit_starts_a_new_bill(table):
    accountant = PrivacyAccountant()
    model = binary(accountant=accountant).fit(*table)
    price = model.epsilon_
    assert model.fit(*table).epsilon_ == price
    assert accountant.get_epsilon(1e-5) > price


@pytest.mark.parametrize("again", [by_partial_fit, by_warm_start])
def test_instalments_of_one_seed_have_different_noise(draw, again):
    """Rows that weigh next to nothing leave the noise alone: the way from zero, and then the way from there."""
    X, y = draw(n=100, d=100)
    model = binary(max_iter=1, momentum=0.0, average=False, learning_rate=1.0, random_state=0)
    first = again(model, X, y, np.full(100, 1e-300)).coef_[0].copy()
    second = again(model, X, y, np.full(100, 1e-300)).coef_[0] - first
    # Of 100 independent pairs the correlation is beyond 0.47 once in a million: t = r sqrt(98 / (1 - r^2)) = 5.24.
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.47


def test_partial_fit_needs_the_classes_once(table):
    X, y = table
    model = DPLogisticRegression()
    with pytest.raises(ValueError, match="classes=None at the first call of partial_fit: name all classes"):
        model.partial_fit(X, y)
    model.partial_fit(X[:200], y[:200], classes=[0, 1]).partial_fit(X[200:], y[200:])
    with pytest.raises(ValueError, match=r"classes=\[0, 2\] differs from the \[0, 1\] of earlier runs"):
        model.partial_fit(X, y, classes=[0, 2])


def test_instalments_under_two_adjacencies_are_refused(table):
    """An epsilon of zero_out and one of replace_one are not the same promise: they must not be added up."""
    model = binary().fit(*table).set_params(adjacency="replace_one")
    with pytest.raises(ValueError, match="adjacency='replace_one'"):
        model.partial_fit(*table)


# --- labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["no", "yes"], ["yes", "no"]),
        ([False, True], [False, True]),
        ([0, 1], range(2)),
        ([0, 1], (1, 0)),
        ([-1, 1], np.array([-1, 1])),
        ([0.0, 1.0], [0, 1]),
        (["a", "b"], pd.Index(["b", "a"])),
        (["a", "b"], np.array(["a", "b"], dtype=object)),
        ([3, 7], {3, 7}),
    ],
    ids=str,
)
def test_labels_of_any_kind(table, names, classes):
    X, y = table
    plain = binary(random_state=0).fit(X, y)
    named = DPLogisticRegression(classes=classes, random_state=0).fit(X, np.array(names)[y])
    np.testing.assert_array_equal(named.classes_, sorted(names))
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    np.testing.assert_array_equal(named.predict(X), np.array(sorted(names))[plain.predict(X)])


def test_classes_that_nobody_is_in(draw):
    X, y = draw(2000)
    model = DPLogisticRegression(classes=range(4), random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (2000, 4)
    assert set(model.predict(X)) <= {0, 1}
    only_ones = binary(random_state=0).fit(X, np.ones(2000))
    assert np.all(only_ones.predict(X) == 1)


# --- randomness -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [{}, {"sampling_rate": 0.6, "max_iter": 6}], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_seed_fixes_every_bit_for_any_number_of_threads(draw, sampling, dtype):
    X, y = draw(30_000, 12)  # large enough for several segments, and for threads to be used
    X = X.astype(dtype)
    first, again, threads = (binary(random_state=5, n_jobs=j, **sampling).fit(X, y) for j in (1, 1, 2))
    for other in (again, threads):
        assert other.coef_.tobytes() == first.coef_.tobytes()
        assert other.intercept_.tobytes() == first.intercept_.tobytes()
    with joblib.parallel_config("threading", n_jobs=2):
        assert binary(random_state=5, **sampling).fit(X, y).coef_.tobytes() == first.coef_.tobytes()


def test_without_a_seed_no_two_runs_agree(table):
    runs = [binary().fit(*table).coef_ for _ in range(2)]
    assert not np.any(runs[0] == runs[1])


def test_other_seeds_other_noise(table):
    runs = [binary(random_state=seed).fit(*table).coef_ for seed in (0, 1)]
    assert not np.any(runs[0] == runs[1])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_warnings_point_at_the_users_line(table, method):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(binary(random_state=0, delta=0.01), method)(*table)
        if method == "fit":
            getattr(DPLogisticRegression(), method)(*table)
    messages = {str(warning.message).split()[0]: warning for warning in caught}
    expected = {"random_state=0", "delta=0.01"} | ({"classes=None:"} if method == "fit" else set())
    assert set(messages) == expected
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"random_state": 0}, "random_state=0 makes the noise reproducible"),
        ({"random_state": np.random.RandomState(0)}, "random_state=RandomState.* makes the noise reproducible"),
        ({"classes": None}, "classes=None: the classes were read from the labels"),
    ],
    ids=["int", "RandomState", "classes"],
)
def test_leaks_warn_or_raise_before_any_charge(table, parameters, message):
    accountant = PrivacyAccountant()
    model = binary(accountant=accountant, **parameters)
    with config_context(on_leak="raise"), pytest.raises(PrivacyLeakWarning, match=message):
        model.fit(*table)
    assert accountant.history == ()
    assert not hasattr(model, "coef_")
    with pytest.warns(PrivacyLeakWarning, match=message):
        model.fit(*table)
    assert len(accountant.history) == 1


def test_nothing_leaks_with_classes_and_no_seed(table):
    with config_context(on_leak="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        binary().fit(*table)


@pytest.mark.parametrize(("delta", "warns"), [(1 / 400, True), (0.1, True), (1 / 401, False)])
def test_weak_delta(table, delta, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        binary(delta=delta).fit(*table)
    assert len(caught) == warns
    assert all(str(w.message).startswith(f"delta={delta!r} is at least 1/n for n=400 rows") for w in caught)


# --- progress and interruption ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_progress_shows_the_price_and_changes_nothing(table, with_tqdm, capsys, monkeypatch):
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # what an import then does: ImportError
    quiet = binary(random_state=0).fit(*table)
    assert capsys.readouterr() == ("", "")
    loud = binary(random_state=0, verbose=1).fit(*table)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"epsilon so far {loud.epsilon_:.4g}" in shown.err
    assert "200/200" in shown.err
    assert loud.coef_.tobytes() == quiet.coef_.tobytes()


def test_progress_counts_earlier_instalments(table, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    model = binary(verbose=1).fit(*table)
    capsys.readouterr()
    model.partial_fit(*table)
    prices = [float(part.split()[3]) for part in capsys.readouterr().err.split(", ")[1:]]
    assert prices == sorted(prices)
    assert prices[0] > binary().fit(*table).epsilon_
    assert prices[-1] == pytest.approx(model.epsilon_, rel=1e-3)


class StderrThat(io.StringIO):
    """A standard error that does something at one of the writes of the progress line."""

    def __init__(self, at, action):
        super().__init__()
        self.remaining, self.action = at, action

    def write(self, text):
        self.remaining -= bool(text)
        if self.remaining == 0 and text:
            self.action()
        return super().write(text)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("readings", [1, 7, 15])
def test_interrupted_fit_keeps_model_and_full_charge(table, readings, monkeypatch):
    """The progress line is written at every 10th of 200 steps; at one of these writes the user presses Ctrl-C."""
    X, y = table
    accountant = PrivacyAccountant()
    model = binary(accountant=accountant, random_state=0, verbose=1)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", StderrThat(readings, interrupt))
        with pytest.warns(UserWarning, match="interrupted after .* full charge"):
            model.fit(X, y)
    planned = binary().fit(X, y)
    assert model.n_steps_ == model.n_iter_ == 10 * readings < 200
    assert model.privacy_event_.count == planned.n_steps_ == 200
    assert model.epsilon_ == planned.epsilon_ == accountant.get_epsilon(1e-5)
    assert len(accountant.history) == 1
    assert np.all(np.isfinite(model.coef_))
    assert np.any(model.coef_ != 0)
    assert model.predict_proba(X).shape == (400, 2)
    model.partial_fit(X, y)
    assert model.n_steps_ == 10 * readings + 200
    assert model.privacy_event_.count == 400


def test_interrupted_model_is_that_of_the_steps_done(table, monkeypatch):
    X, y = table
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    common = {"epsilon": None, "noise_multiplier": 9.0, "random_state": 0, "learning_rate": 1.0, "max_grad_norm": 0.5}
    cut = binary(verbose=1, **common)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", StderrThat(4, interrupt))
        with pytest.warns(UserWarning, match="interrupted after 40 of 200 steps"):
            cut.fit(X, y)
    short = binary(max_iter=40, average=False, **common).fit(X, y)
    np.testing.assert_array_equal(cut.coef_, short.coef_)


def test_a_real_interrupt_from_outside(table, monkeypatch):
    """Some seconds of steps, and a signal 50 ms after the first progress line, as the terminal would send it."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    timer = threading.Timer(0.05, _thread.interrupt_main)
    model = binary(epsilon=None, noise_multiplier=1000.0, max_iter=200_000, verbose=1)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", StderrThat(1, timer.start))
        with pytest.warns(UserWarning, match="interrupted after"):
            model.fit(*table)
    timer.join()
    assert 10_000 <= model.n_steps_ < 200_000
    assert model.privacy_event_.count == 200_000
    assert np.all(np.isfinite(model.predict_proba(table[0])))


# --- predictions (property 24) ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("to_X", [np.asarray, sp.csr_array, np.float32])
def test_predictions(draw, n_classes, to_X):
    X, y = draw(n_classes=n_classes)
    model = DPLogisticRegression(classes=range(n_classes)).fit(X, y)
    scores, shares = model.decision_function(to_X(X)), model.predict_proba(to_X(X))
    rtol = 1e-5 if to_X is np.float32 else 1e-12
    expected = X @ model.coef_.T + model.intercept_  # no row of [-1, 1] is longer than data_norm_
    np.testing.assert_allclose(scores, expected[:, 0] if n_classes == 2 else expected, rtol=rtol, atol=rtol)
    assert shares.shape == (400, n_classes)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(to_X(X))), shares, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(to_X(X)), shares.argmax(axis=1))
    exponentials = np.exp(expected)
    odds = np.hstack([np.ones((400, 1)), exponentials]) if n_classes == 2 else exponentials
    np.testing.assert_allclose(shares, odds / odds.sum(axis=1, keepdims=True), rtol=1e-4 if rtol == 1e-5 else 1e-9)


@pytest.mark.parametrize("to_X", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(np.float64, 1e9), (np.float64, 1e150), (np.float32, 1e9), (np.float32, 1e25), (np.float32, 1e38)],
)
def test_long_rows_are_predicted_as_rows_scaled_to_the_bound(table, to_X, dtype, factor):
    model = binary(data_norm=1.5, random_state=0).fit(*table)
    row = np.array([[1.0, -2.0, 0.5, 1.7]], dtype)
    short = row * dtype(1.5 / np.linalg.norm(row))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.decision_function(to_X(row * dtype(factor)))
    np.testing.assert_allclose(found, model.decision_function(to_X(short)), rtol=1e-5)


@pytest.mark.parametrize("to_X", [np.asarray, sp.csr_array])
def test_rows_of_the_largest_numbers_have_finite_predictions(table, to_X):
    model = binary(random_state=0).fit(*table)
    largest = np.full((1, 4), np.finfo(np.float64).max)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.all(np.isfinite(model.predict_proba(to_X(largest))))


@pytest.mark.parametrize("to_X", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", [{}, POISSON, {"fit_intercept": False}], ids=str)
def test_long_rows_are_learnt_from_as_rows_scaled_to_the_bound(table, to_X, dtype, parameters):
    X, y = table
    short = X.astype(dtype)
    short[:5] *= (1.5 / np.linalg.norm(short[:5], axis=1))[:, None].astype(dtype)
    long = short.copy()
    long[:5] *= dtype(1e9)
    model = binary(data_norm=1.5, learning_rate=1.0, random_state=0, **parameters)
    scaled, clipped = (clone(model).fit(to_X(rows), y).coef_ for rows in (short, long))
    bound = 1e-11 if dtype is np.float64 else 200 * 8 * np.finfo(np.float32).eps  # roundings, as above
    np.testing.assert_allclose(clipped, scaled, atol=bound, rtol=0)


# --- life among scikit-learn's tools ----------------------------------------------------------------------------------

SEXES, REGIONS = ["f", "m"], ["east", "north", "south", "west"]


@pytest.fixture(scope="module")
def people():
    """A frame with two categories and a number, and whether somebody is in work."""
    rng = np.random.default_rng(3)
    n = 3000
    frame = pd.DataFrame(
        {"sex": rng.choice(SEXES, n), "region": rng.choice(REGIONS, n), "age": rng.integers(18, 90, n).astype(float)}
    )
    works = (frame.age < 65) & ((frame.sex == "m") | (frame.region != "west"))
    return frame, np.where(works ^ (rng.random(n) < 0.05), "yes", "no")


# scikit-learn 1.6 speaks to polars by a protocol that polars 2 no longer has.
POLARS_UNDERSTOOD = hasattr(FunctionTransformer(validate=True).fit(pl.DataFrame({"a": [1.0]})), "feature_names_in_")
WITH_POLARS = pytest.mark.skipif(not POLARS_UNDERSTOOD, reason="this scikit-learn does not know this polars")


def public_columns():
    """Encodes by public categories and scales by public bounds, so that nothing is learnt here."""
    encoder = OneHotEncoder(categories=[SEXES, REGIONS], handle_unknown="ignore", sparse_output=False)
    scaler = FunctionTransformer(lambda ages: (ages - 18) / 72, feature_names_out="one-to-one")
    return ColumnTransformer([("who", encoder, ["sex", "region"]), ("age", scaler, ["age"])])


@pytest.mark.parametrize("output", ["default", "pandas", pytest.param("polars", marks=WITH_POLARS)])
def test_pipeline(people, output):
    frame, y = people
    model = DPLogisticRegression(epsilon=4.0, classes=["no", "yes"], random_state=0)
    pipeline = make_pipeline(public_columns(), model).set_output(transform=output).fit(frame, y)
    peer = make_pipeline(public_columns(), LogisticRegression(C=1e6)).fit(frame, y)
    assert pipeline.score(frame, y) > peer.score(frame, y) - 0.02  # three sd of 3,000 coin flips
    if output == "default":
        assert not hasattr(model, "feature_names_in_")
    else:
        names = ["who__sex_f", "who__sex_m", *(f"who__region_{name}" for name in REGIONS), "age__age"]
        assert list(model.feature_names_in_) == names
        assert list(pipeline[-1].feature_names_in_) == names


@pytest.mark.parametrize("to_frame", [pd.DataFrame, pytest.param(pl.DataFrame, marks=WITH_POLARS)])
def test_frames(table, to_frame):
    X, y = table
    frame = to_frame(dict(zip("abcd", X.T, strict=True)))
    model = binary(random_state=0).fit(frame, y)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.feature_names_in_.dtype == object
    np.testing.assert_allclose(model.coef_, binary(random_state=0).fit(X, y).coef_, rtol=1e-9)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(frame.to_numpy()), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(to_frame(dict(zip("dcba", X.T, strict=True))))


def fit_grid_search(model, X, y):
    GridSearchCV(model, {"max_grad_norm": [0.3, 0.6]}, cv=KFold(3)).fit(X, y)
    return 7


def fit_folds(model, X, y):
    cross_val_score(model, X, y, cv=KFold(4))
    return 4


def fit_folds_in_threads(model, X, y):
    with joblib.parallel_config("threading", n_jobs=2):
        cross_val_score(model, X, y, cv=KFold(4))
    return 4


def fit_grid_search_in_threads(model, X, y):
    with joblib.parallel_config("threading", n_jobs=2):
        return fit_grid_search(model, X, y)


def fit_pipeline_in_grid_search(model, X, y):
    pipeline = make_pipeline(ColumnTransformer([("all", "passthrough", slice(0, 4))]), model)
    GridSearchCV(pipeline, {"dplogisticregression__alpha": [0.0, 0.1]}, cv=KFold(2)).fit(X, y)
    return 5


def fit_clones(model, X, y):
    clone(model).fit(X, y)
    clone(clone(model)).fit(X, y)
    model.fit(X, y)
    return 3


def fit_copies(model, X, y):
    copy.deepcopy(model).fit(X, y)
    copy.copy(model).fit(X, y)
    copy.deepcopy(make_pipeline(model)).fit(X, y)
    return 3


def fit_one_against_rest(model, X, y):
    OneVsRestClassifier(model).fit(X, y + (X[:, 0] > 0))
    return 3


def fit_one_against_rest_in_threads(model, X, y):
    with joblib.parallel_config("threading", n_jobs=2):
        return fit_one_against_rest(model, X, y)


def fit_bagging(model, X, y):
    BaggingClassifier(model, n_estimators=3, bootstrap=False).fit(X, y)
    return 3


def fit_calibrated(model, X, y):
    CalibratedClassifierCV(model, cv=KFold(3)).fit(X, y)
    return 3


WAYS = [value for name, value in sorted(globals().items()) if name.startswith("fit_")]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_one_bill_for_all_fits_wherever_they_are_made(table, way):
    """Property 17: the total is the number of fits times their price."""
    accountant = PrivacyAccountant()
    model = binary(epsilon=None, noise_multiplier=80.0, accountant=accountant)
    n_fits = way(model, *table)
    one = binary(epsilon=None, noise_multiplier=80.0).fit(*table).privacy_event_
    assert [charge.event for charge in accountant.history] == [one] * n_fits
    assert accountant.get_epsilon(1e-5) == get_epsilon(SelfComposedDpEvent(one, n_fits), 1e-5)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_accountant_is_needed(table, way):
    way(binary(), *table)


def test_bagging_sets_seeds_and_is_told_so(table):
    """scikit-learn hands every member an int seed: the noise is then foreseeable."""
    with pytest.warns(PrivacyLeakWarning, match="random_state="):
        BaggingClassifier(binary(), n_estimators=1, bootstrap=False).fit(*table)


def test_grid_search_finds_and_refits(draw):
    X, y = draw(3000)
    search = GridSearchCV(binary(epsilon=4.0, random_state=0), {"alpha": [0.0, 1e3]}, cv=KFold(3)).fit(X, y)
    assert search.best_params_ == {"alpha": 0.0}
    assert search.score(X, y) > 0.8


def test_processes_cannot_spend(table):
    """A pickled accountant cannot know what other processes spend, so it refuses, and says what to do."""
    accountant = PrivacyAccountant()
    search = GridSearchCV(binary(accountant=accountant), {"alpha": [0.0]}, cv=KFold(2), error_score="raise")
    with (
        joblib.parallel_config("loky", n_jobs=2),
        pytest.raises(AccountantDetachedError, match="n_jobs=1 or with threads"),
    ):
        search.fit(*table)
    assert accountant.history == ()
    with joblib.parallel_config("loky", n_jobs=2):
        assert cross_val_score(binary(), *table, cv=KFold(2), error_score="raise").shape == (2,)


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
        refused = binary().set_fit_request(sample_weight=None)
        with pytest.raises(ValueError, match="sample_weight"):
            make_pipeline(FunctionTransformer(), refused).fit(X, y, sample_weight=weights)
    assert not np.allclose(direct.coef_, clone(model).fit(X, y).coef_)
    np.testing.assert_array_equal(piped[-1].coef_, direct.coef_)
    np.testing.assert_array_equal(searched.best_estimator_.coef_, direct.coef_)


def test_muted_rows_do_not_count(draw):
    X, y = draw()
    weights = np.arange(400.0) % 2
    noise = np.random.default_rng(0).integers(0, 2, 400)
    model = binary(random_state=0)
    one, other = (clone(model).fit(X, labels, weights) for labels in (y, np.where(weights == 0, noise, y)))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(clone(model).fit(X, y, np.ones(400)).coef_, clone(model).fit(X, y).coef_)


# --- pickles ----------------------------------------------------------------------------------------------------------


def through_pickle(model, path):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path)


@pytest.mark.parametrize("through", [through_pickle, through_joblib])
def test_a_pickled_model_predicts_the_same_and_cannot_spend(table, tmp_path, through):
    X, y = table
    accountant = PrivacyAccountant()
    model = binary(accountant=accountant).fit(X, y)
    restored = through(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
    assert restored.privacy_event_ == model.privacy_event_
    assert restored.accountant.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    with pytest.raises(AccountantDetachedError, match=r"a copy \(pickled"):
        restored.fit(X, y)
    assert len(restored.accountant.history) == len(accountant.history) == 1
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
    restored.set_params(accountant=None).fit(X, y)


@pytest.mark.parametrize("seed", [None, 0])
def test_no_key_is_left_behind(table, seed, monkeypatch):
    keys = []
    original = skdp._random.SecretStream.__init__

    def remembering(self, key):
        keys.append(key)
        original(self, key)

    monkeypatch.setattr(skdp._random.SecretStream, "__init__", remembering)
    model = binary(random_state=seed, **POISSON).fit(*table)
    assert len(keys) >= 3  # the root, sampling, noise
    places = pickle.dumps(model), repr(model).encode(), repr(model.get_params()).encode(), repr(vars(model)).encode()
    for key, place in itertools.product(keys, places):
        for form in (key, key.hex().encode(), repr(key).encode()):
            assert form not in place
    kinds = {type(value).__name__ for value in vars(model).values()}
    assert kinds.isdisjoint({"SecretStream", "Generator", "RandomState", "LinearModel", "ThreadPoolExecutor"})


# --- bad input --------------------------------------------------------------------------------------------------------

X_GOOD = np.linspace(-1.0, 1.0, 80).reshape(40, 2)
Y_GOOD = np.arange(40) % 2


def spoilt(value):
    X = X_GOOD.copy()
    X[3, 1] = value
    return X


def weights_with(value):
    weights = np.ones(40)
    weights[7] = value
    return weights


# What is changed, and what the message must contain: the parameter, its value (data are not quoted), the remedy.
BAD_INPUT = [
    ({"epsilon": 0}, ["epsilon=0 ", "choose a number above 0"]),
    ({"epsilon": -1}, ["epsilon=-1 ", "choose a number above 0"]),
    ({"epsilon": math.nan}, ["epsilon=nan ", "choose a number above 0"]),
    ({"epsilon": math.inf}, ["epsilon=inf ", "choose a number above 0"]),
    ({"epsilon": "1"}, ["epsilon='1' ", "choose a number above 0"]),
    ({"epsilon": True}, ["epsilon=True ", "choose a number above 0"]),
    ({"delta": 0}, ["delta=0 ", "choose a number in (0, 1)"]),
    ({"delta": 1}, ["delta=1 ", "choose a number in (0, 1)"]),
    ({"delta": -1}, ["delta=-1 ", "choose a number in (0, 1)"]),
    ({"delta": math.nan}, ["delta=nan ", "choose a number in (0, 1)"]),
    ({"delta": None}, ["delta=None ", "choose a number in (0, 1)"]),
    ({"noise_multiplier": 1.0}, ["epsilon=1.0 and noise_multiplier=1.0", "set exactly one"]),
    ({"epsilon": None}, ["epsilon=None and noise_multiplier=None", "set exactly one"]),
    ({"epsilon": None, "noise_multiplier": 0}, ["noise_multiplier=0 ", "choose a number from 1e-3 to 1e9"]),
    ({"epsilon": None, "noise_multiplier": -1}, ["noise_multiplier=-1 ", "choose a number from 1e-3 to 1e9"]),
    ({"epsilon": None, "noise_multiplier": math.inf}, ["noise_multiplier=inf ", "choose a number from 1e-3 to 1e9"]),
    ({"epsilon": None, "noise_multiplier": 1e200}, ["noise_multiplier=1e+200"]),
    ({"epsilon": 1e-12, "delta": 1e-15}, ["epsilon=1e-12, delta=1e-15", "cannot be reached", "raise epsilon or delta"]),
    ({"lot_size": 41}, ["lot_size=41 ", "from 1 to the 40 rows"]),
    ({"lot_size": 0}, ["lot_size=0 ", "from 1 to the 40"]),
    ({"lot_size": math.nan}, ["lot_size=nan ", "from 1 to the 40"]),
    ({"sampling_rate": 0}, ["sampling_rate=0 ", "choose a probability from 1e-9 to 1"]),
    ({"sampling_rate": 1.5}, ["sampling_rate=1.5 ", "choose a probability from 1e-9 to 1"]),
    ({"sampling_rate": 1e-300}, ["sampling_rate=1e-300 ", "choose a probability from 1e-9 to 1"]),
    ({"lot_size": 1e-320}, ["lot_size=1e-320 ", "from 1 to the 40"]),
    ({"lot_size": 20, "sampling_rate": 0.5}, ["lot_size=20 and sampling_rate=0.5", "at most one"]),
    ({"max_iter": 0}, ["max_iter=0 ", "choose a whole number"]),
    ({"max_iter": 1.5}, ["max_iter=1.5 ", "choose a whole number"]),
    ({"max_iter": True}, ["max_iter=True ", "choose a whole number"]),
    ({"momentum": 1}, ["momentum=1 ", "choose a number in [0, 1)"]),
    ({"momentum": -0.1}, ["momentum=-0.1 ", "choose a number in [0, 1)"]),
    ({"learning_rate": 0}, ["learning_rate=0 ", "choose a number above 0, or 'auto'"]),
    ({"learning_rate": "x"}, ["learning_rate='x' ", "choose a number above 0, or 'auto'"]),
    ({"max_grad_norm": 0}, ["max_grad_norm=0 ", "choose a number from 1e-30 to 1e30, or 'auto'"]),
    ({"max_grad_norm": -1}, ["max_grad_norm=-1 ", "choose a number from 1e-30 to 1e30, or 'auto'"]),
    ({"max_grad_norm": math.inf}, ["max_grad_norm=inf ", "choose a number from 1e-30 to 1e30, or 'auto'"]),
    ({"max_grad_norm": "x"}, ["max_grad_norm='x' ", "choose a number from 1e-30 to 1e30, or 'auto'"]),
    ({"data_norm": 0}, ["data_norm=0 ", "choose a public bound from 1e-30 to 1e30"]),
    ({"data_norm": -1}, ["data_norm=-1 ", "choose a public bound from 1e-30 to 1e30"]),
    ({"data_norm": math.inf}, ["data_norm=inf ", "choose a public bound from 1e-30 to 1e30"]),
    ({"alpha": -1}, ["alpha=-1 ", "choose 0 (no penalty)"]),
    ({"adjacency": "x"}, ["adjacency='x' ", "use one of 'zero_out', 'add_remove', 'replace_one'"]),
    ({"accounting": "x"}, ["accounting='x' ", "use one of 'pld', 'rdp'"]),
    ({"adjacency": "add_remove"}, ["n_samples_public=None with adjacency='add_remove'", "give n_samples_public"]),
    ({"n_samples_public": 0}, ["n_samples_public=0 ", "give a whole number above 0"]),
    ({"n_samples_public": 40.0}, ["n_samples_public=40.0 ", "give a whole number above 0"]),
    ({"random_state": "x"}, ["random_state='x' ", "pass None"]),
    ({"random_state": True}, ["random_state=True ", "pass None"]),
    ({"n_jobs": 0}, ["n_jobs=0 "]),
    ({"n_jobs": "x"}, ["n_jobs='x' "]),
    ({"classes": None, "y": np.ones(40)}, ["y holds one class only and classes=None", "name all classes"]),
    ({"y": Y_GOOD + 0.5}, ["not in classes=[0, 1]", "y is continuous"]),
    ({"classes": [0, 2]}, ["not in classes=[0, 2]", "list every class"]),
    ({"classes": ["0", "1"]}, ["not in classes=['0', '1']", "list every class"]),
    ({"y": np.array(["a", "b"])[Y_GOOD]}, ["not in classes=[0, 1]", "in the type that y has"]),
    ({"y": Y_GOOD + np.array([0] * 39 + [7])}, ["not in classes=[0, 1]", "list every class"]),
    ({"classes": [1]}, ["classes=[1] ", "list every class"]),
    ({"classes": [1, 1]}, ["classes=[1, 1] ", "list every class"]),
    ({"classes": []}, ["classes=[] ", "list every class"]),
    ({"classes": 2}, ["classes=2 ", "no sequence"]),
    ({"classes": "no"}, ["classes='no' ", "no sequence"]),
    ({"classes": [0, None]}, ["classes=[0, None] ", "all of one type"]),
    ({"epsilon": 10**400}, ["epsilon=1000", "choose a number above 0"]),
    ({"epsilon": None, "noise_multiplier": 1e-160}, ["noise_multiplier=1e-160 ", "choose a number from 1e-3 to 1e9"]),
    ({"max_grad_norm": 1e-320}, ["max_grad_norm=1e-320 ", "choose a number from 1e-30"]),
    ({"accounting": "moments", "adjacency": "replace_one", "lot_size": 20}, ["replace_one", "pld"]),
    ({"w": weights_with(-1.0)}, ["sample_weight has negative entries", "0 (no influence) or above"]),
    ({"w": np.zeros(40)}, ["sample_weight is zero for every row", "give at least one"]),
    ({"w": np.ones(39)}, ["sample_weight has shape (39,) where X has 40 rows", "give one weight a row"]),
    ({"w": np.ones((40, 1))}, ["sample_weight has shape (40, 1)", "give one weight a row"]),
    ({"w": weights_with(math.nan)}, ["sample_weight", "NaN"]),
    ({"w": weights_with(math.inf)}, ["sample_weight", "infinity"]),
    ({"y": Y_GOOD[:39]}, ["inconsistent numbers of samples", "[40, 39]"]),
    ({"y": Y_GOOD + np.array([0.0] * 39 + [math.nan])}, ["NaN"]),
]

# scikit-learn's own validation speaks here, in its own words: it names X, some of its messages have several lines.
BAD_X = [
    ({"X": spoilt(math.nan)}, ["Input X contains NaN"]),
    ({"X": spoilt(math.inf)}, ["Input X contains infinity"]),
    ({"X": sp.csr_array(spoilt(math.nan))}, ["Input X contains NaN"]),
    ({"X": X_GOOD[:, 0]}, ["Expected 2D array, got 1D array"]),
    ({"X": X_GOOD[:, :, None]}, ["dim 3"]),
    ({"X": X_GOOD[:, :0]}, ["0 feature(s)"]),
    ({"X": X_GOOD[:0], "y": Y_GOOD[:0]}, ["0 sample(s)"]),
    ({"X": np.full((40, 2), "a")}, ["strings in column 0"]),
    ({"y": np.column_stack([Y_GOOD, Y_GOOD])}, ["y should be a 1d array"]),
]


def name_of(case):
    return ", ".join(f"{k}={np.asarray(v).shape if k in 'Xyw' else v!r}" for k, v in case.items())


REFUSALS = [
    pytest.param(method, *case, id=f"{name_of(case[0])}-{method}")
    for cases in (BAD_INPUT, BAD_X)
    for case in cases
    for method in ("fit", "partial_fit")
    if method == "fit" or case[0].get("classes", 0) is not None  # else it asks for classes before it looks at y
]


@pytest.mark.parametrize(("method", "changes", "fragments"), REFUSALS)
def test_bad_input_is_refused_in_one_line_before_any_charge(method, changes, fragments):
    accountant = PrivacyAccountant()
    parameters = {key: value for key, value in changes.items() if key not in "Xyw"}
    X, y, weights = (changes.get(key, good) for key, good in (("X", X_GOOD), ("y", Y_GOOD), ("w", None)))
    model = binary(accountant=accountant, **parameters)
    with pytest.raises(ValueError) as caught:
        getattr(model, method)(X, y, sample_weight=weights)
    message = str(caught.value)
    for fragment in fragments:
        assert fragment in message
    assert "\n" not in message
    assert accountant.history == ()
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "epsilon_")


@pytest.mark.parametrize("accountant", [1.0, b"x", PrivacyAccountant], ids=str)
def test_an_accountant_of_another_kind_is_refused(accountant):
    with pytest.raises(TypeError, match=r"accountant=.* is not valid; give a PrivacyAccountant, the path of a ledger"):
        binary(accountant=accountant).fit(X_GOOD, Y_GOOD)


def test_a_path_names_the_ledger_of_a_file_that_exists(tmp_path, monkeypatch):
    """It is made absolute where it is given: a later change of folder does not change what is charged."""
    monkeypatch.chdir(tmp_path)
    model = binary(accountant="census.budget")
    assert model.accountant == str(tmp_path / "census.budget")
    assert clone(model).accountant == model.accountant
    with pytest.raises(BudgetFileError, match=r"names no file .* create it by `python -m skdp.budget create"):
        model.fit(X_GOOD, Y_GOOD)
    ledger = PrivacyAccountant(3.0, 1e-5, path="census.budget")
    monkeypatch.chdir("/")
    for _ in range(2):
        model.fit(X_GOOD, Y_GOOD)
    assert [charge.event for charge in ledger.history] == [model.privacy_event_] * 2
    assert binary(accountant=pathlib.Path(ledger.path)).fit(X_GOOD, Y_GOOD).epsilon_ > 0.9
    assert len(ledger.history) == 3


def test_passing_the_ceiling_is_refused():
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    model = binary(epsilon=1.1, accountant=accountant)
    with pytest.raises(BudgetExceededError, match=r"needs epsilon 1\.[01].*, 1 is left .*epsilon=1\.0") as caught:
        model.fit(X_GOOD, Y_GOOD)
    assert "\n" not in str(caught.value)
    assert accountant.history == ()
    assert not hasattr(model, "coef_")
    model.set_params(epsilon=1.0).fit(X_GOOD, Y_GOOD)  # the plan that fills the ceiling is admitted
    before = model.coef_.copy(), model.epsilon_, model.privacy_event_
    with pytest.raises(BudgetExceededError, match="nothing was charged") as caught:
        model.partial_fit(X_GOOD, Y_GOOD)
    assert "\n" not in str(caught.value)
    assert len(accountant.history) == 1
    np.testing.assert_array_equal(model.coef_, before[0])
    assert (model.epsilon_, model.privacy_event_) == before[1:]


def test_one_bill_holds_one_adjacency():
    accountant = PrivacyAccountant()
    binary(accountant=accountant).fit(X_GOOD, Y_GOOD)
    with pytest.raises(ValueError, match="adjacency='replace_one' cannot be mixed with 'zero_out'"):
        binary(accountant=accountant, adjacency="replace_one").fit(X_GOOD, Y_GOOD)
    assert len(accountant.history) == 1


def test_numbers_of_other_types_are_numbers():
    model = binary(
        epsilon=np.float32(1),
        delta=np.float64(1e-5),
        lot_size=np.int64(20),
        max_iter=np.int32(2),
        random_state=np.int64(3),
    )
    assert model.fit(X_GOOD, Y_GOOD).n_steps_ == 4


def test_the_mechanism_of_the_plan_is_the_one_that_adds_noise(table, monkeypatch):
    """Property 11: releases that ran, steps of the event and `n_steps_` are one number; empty lots count."""
    releases = []
    original = GaussianMechanism.release
    monkeypatch.setattr(
        GaussianMechanism, "release", lambda self, value, stream: releases.append(self) or original(self, value, stream)
    )
    model = binary(sampling_rate=0.001, max_iter=1).fit(*table)  # 0.4 rows a step: most lots are empty
    assert len(releases) == model.n_steps_ == model.privacy_event_.count == 1000
    assert set(releases) == {GaussianMechanism(model.noise_multiplier_, model.max_grad_norm_)}
