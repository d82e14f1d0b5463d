"""DPLogisticRegression as a user meets it: what it learns, from what formats, what it publishes and what it costs."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import over_rows
from logistic import POISSON, binary
from relations import with_n_public
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, PrivacyAccountant

# --- it learns --------------------------------------------------------------------------------------------------------


@over_rows("parameters", ({"fit_intercept": False, "average": False}, {"sampling_rate": 0.1, "max_iter": 20}))
def test_several_classes_are_learnt(draw, parameters):
    X, y = draw(10_000, 6, n_classes=4)
    train, test = slice(0, 6_000), slice(6_000, None)
    peer = LogisticRegression(C=1e6).fit(X[train], y[train])
    model = DPLogisticRegression(epsilon=8.0, classes=range(4), random_state=0, **parameters).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > peer.score(X[test], y[test]) - 0.02  # 0.02: three sd of 4,000 coin flips


@pytest.mark.usefixtures("steps_alone")
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


def test_average_is_of_the_second_half_and_free(table):
    averaged, last = (binary(average=a, random_state=0).fit(*table) for a in (True, False))
    assert not np.allclose(averaged.coef_, last.coef_)
    assert averaged.epsilon_ == pytest.approx(last.epsilon_, rel=1e-9)  # noise of one cost, spread over steps or not
    averaged, last = (binary(average=a, random_state=0, max_iter=1).fit(*table) for a in (True, False))
    np.testing.assert_array_equal(averaged.coef_, last.coef_)


def test_penalty_shrinks_coefficients_and_spares_the_intercept(draw):
    X, _ = draw(2000)
    y = np.arange(len(X)) % 10 > 0
    free, held = (binary(alpha=a, classes=[False, True], random_state=0).fit(X, y) for a in (0.0, 1e6))
    assert np.abs(held.coef_).max() < 1e-4 * np.abs(free.coef_).max()
    assert held.intercept_[0] > 0.5 * free.intercept_[0] > 0


# --- formats ----------------------------------------------------------------------------------------------------------


@over_rows("n_classes, parameters", [(2, POISSON), (3, {"fit_intercept": False})])
def test_sparse_rows_are_the_same_rows(draw, parameters, n_classes):
    X, y = draw(n_classes=n_classes)
    X[np.abs(X) < 0.6] = 0.0
    model = DPLogisticRegression(classes=range(n_classes), learning_rate=1.0, random_state=0, **parameters)
    dense = clone(model).fit(X, y)
    for sparse in (sp.csr_matrix(X), sp.coo_array(X)):
        found = clone(model).fit(sparse, y)
        np.testing.assert_allclose(found.coef_, dense.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.intercept_, dense.intercept_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.predict_proba(sparse), dense.predict_proba(X), rtol=1e-9)


def with_duplicates():
    """Rows (2, 0, 4, 0) with the last value in two pieces and the columns out of order."""
    data, indices = np.tile([1.0, 2.0, 3.0], 20), np.tile([2, 0, 2], 20)
    return sp.csr_array((data, indices, np.arange(0, 61, 3)), shape=(20, 4))


def test_repeated_entries_beyond_range_are_rejected():
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


@over_rows("read_only", [False, True])
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


# --- the cost --------------------------------------------------------------------------------------------------------


@over_rows("adjacency", ["zero_out", "add_remove", "replace_one"])
@over_rows("sampling", [{}, POISSON])
@over_rows("epsilon", [0.1, 8.0])
def test_the_budget_is_met_from_below_and_used_up(table, adjacency, sampling, epsilon):
    model = binary(epsilon=epsilon, adjacency=with_n_public(adjacency, 400), **sampling).fit(*table)
    assert 0.998 * epsilon < model.epsilon_ <= epsilon


# --- predictions (property 24) ----------------------------------------------------------------------------------------


@over_rows("n_classes", [2, 3])
@over_rows("to_X", [np.asarray, sp.csr_array, np.float32])
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


@over_rows("to_X", [np.asarray, sp.csr_array])
@over_rows("dtype, factor", [(np.float64, 1e9), (np.float64, 1e300), (np.float32, 1e38)])
def test_long_rows_are_predicted_as_rows_scaled_to_the_bound(table, to_X, dtype, factor):
    model = binary(data_norm=1.5, random_state=0).fit(*table)
    row = np.array([[1.0, -2.0, 0.5, 1.7]], dtype)
    short = row * dtype(1.5 / np.linalg.norm(row))
    with warnings.catch_warnings(action="error"):
        found = model.decision_function(to_X(row * dtype(factor)))
    np.testing.assert_allclose(found, model.decision_function(to_X(short)), rtol=1e-5)


@over_rows("to_X, dtype, parameters", [(np.asarray, np.float32, {}), (sp.csr_array, np.float64, {}),
                                       (np.asarray, np.float64, {"fit_intercept": False})])  # fmt: skip
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
