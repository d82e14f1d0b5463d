"""Rows of linear models, and how far rounding may move their clipped sums."""

import numpy as np
import reference
from relations import with_n_public
from replay import assert_all_else_is_equal, moves, replay
from scipy import stats
from sklearn.base import clone

from skdp.linear_model.newton import STEP_SHARES

DTYPES = [np.float32, np.float64]


EXP_ERROR = 1e-12  # the kernels promise an exponential to 4e-13 relative


def people(n, d, n_outputs=1, *, dtype=np.float64, seed=0, fit_intercept=True):
    """Random rows, some longer than the radius 1.5 and some not, labels, weights with zeros, and parameters."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 3.0], size=(n, 1)) / np.sqrt(d)).astype(dtype)
    labels = rng.integers(0, max(2, n_outputs), n)
    weights = rng.choice([0.0, 0.5, 1.0, 0.1], n, p=[0.1, 0.2, 0.5, 0.2])
    theta = rng.normal(size=n_outputs * (d + fit_intercept)) * 2.0
    return X, labels, weights, theta


def n_parameters_of(model):
    """Length of the flat vector of parameters of a model of rows."""
    if hasattr(model, "architecture"):
        return model.architecture.n_parameters
    geometry = model.geometry
    is_one_hot = hasattr(geometry, "width")
    return model.n_outputs * (geometry.width if is_one_hot else model.n_features + geometry.fit_intercept)


def neighbor(adjacency, rows, place, target):
    """Another X, y and weights: without one row, with its weight 0, or with a row across in its place."""
    X, y, weights = (each.copy() for each in rows)
    if adjacency == "add_remove":
        return tuple(np.delete(each, place, axis=0) for each in rows)
    if adjacency == "zero_out":
        weights[place] = 0.0
    else:
        X[place], y[place] = np.roll(np.clip(X[place], -1, 1), 1) * [1, -1, 1, -1], target
    return X, y, weights


def fit_copy(model, rows, **parameters):
    """A fit of a copy of a model, with other parameters, to X, y and maybe weights and groups."""
    X, y, *others = rows
    named = dict(zip(("sample_weight", "groups"), others, strict=False))
    return clone(model).set_params(**parameters).fit(X, y, **named)


ODD_ROWS = {
    "long": ([1.0, 1.0, 1.0, 1.0], 1.0),
    "cut": ([1e9, -1e9, 0.0, 1.0], 1.0),
    "overflowing": ([1.7e308] * 4, 1.0),
    "heavy": ([0.5, 0.5, 0.5, 0.5], 1e9),
    "zero": ([0.0] * 4, 1.0),
}
"""Rows of four columns, and their weights."""


def assert_newton_steps_move_by_one(fit, X, y, row, adjacency, targets):
    """A fit to a table with an odd row, of the first of two targets, and to its neighbor: five steps and scores."""
    X, y, weights = X.copy(), y.copy(), np.ones(len(X))
    X[17], weights[17] = ODD_ROWS[row]
    y[17], other_target = targets
    rows, public = (X, y, weights), {"adjacency": with_n_public(adjacency, len(X)), "weight_bound": 1.0}
    one, other = replay(lambda given: fit(given, **public), rows, neighbor(adjacency, rows, 17, other_target))
    assert len(one.releases) == len(STEP_SHARES) + 1
    assert max(moves(one, other)) <= (2.0 if adjacency == "replace_one" else 1.0) + 1e-9
    assert_all_else_is_equal(one, other)


def assert_errors_are_standard(scores, false_alarm):
    """Of repeated fits, errors in units of the standard error: their squares sum to chi-squared, 10 % wider."""
    kept = np.isfinite(scores).all(axis=1)
    low, high = stats.chi2.interval(1 - false_alarm, int(kept.sum()))
    assert kept.mean() > 0.9
    squares = np.sum(np.square(np.array(scores)[kept]), axis=0)
    assert squares.min() > 0.9 * low
    assert squares.max() < 1.1 * high


def rounding_bound(X, labels, weights, theta, max_norm, n_outputs, scaling):
    """How far rounding alone can take a sum in the dtype of X from the sum of the plain reading, in norm.

    A score is a product of d terms, each rounded, of parameters and facts rounded once: its error is at most
    (d + 8) eps sum |u_j theta_j|; a probability moves by no more than its score, and by the error of the exponential;
    a clipped gradient moves by at most twice as much, times |u|, as the unclipped one, times the factor of the clip.
    Then m rows of a block are added up, each product and sum rounded: (m + 16) eps times the sum of their norms.
    """
    eps = np.finfo(X.dtype).eps
    table = np.abs(np.asarray(theta).reshape(n_outputs, -1))
    total = 0.0
    for x, label, weight in zip(X, labels, weights, strict=True):
        u = reference.scaled_row(x, scaling)
        g = reference.gradient(u, label, 1.0, np.asarray(theta).reshape(n_outputs, -1))
        norm = np.linalg.norm(g)
        factor = min(1.0, max_norm / norm) if norm > 0 else 1.0
        score_error = (X.shape[1] + 8) * eps * (table @ np.abs(u)).max()
        total += 2 * factor * weight * np.linalg.norm(u) * (score_error + EXP_ERROR) * n_outputs**0.5
        total += (min(len(X), 512) + 16) * eps * weight * min(norm, max_norm)
    return total


def norm_of(vector):
    """In long doubles, so that what is measured is the kernel's rounding and not this function's."""
    vector = np.asarray(vector, np.longdouble)
    top = np.max(np.abs(vector), initial=0.0)
    return top * np.sqrt(np.sum((vector / top) ** 2)) if 0.0 < top < np.inf else top
