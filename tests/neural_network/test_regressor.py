"""DPMLPRegressor: what it fits, what is public of its targets, and its place among scikit-learn's tools.

What it shares with the classifier is tested there and in `test_guarantees_neighbors.py`.
"""

import numpy as np
import pytest
import reference
from rejections import assert_rejected
from sklearn.metrics import d2_tweedie_score

from skdp import DPMLPRegressor, PrivacyAccountant, PrivacyLeakWarning, privacy_report
from skdp._dpsgd import targets as _regressor

LOSSES = list(_regressor.REGRESSION_LOSSES)
BOUNDS = (0.0, 20.0)


def seeded(**parameters):
    return DPMLPRegressor(
        **{"hidden_layer_sizes": (6,), "y_bounds": BOUNDS, "random_state": 0, "max_iter": 5, "sampling_rate": 1.0}
        | parameters
    )


def draw(n=300, seed=0, dtype=np.float64):
    """Rows, and counts from 0 to 20."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3)).astype(dtype)
    return X, np.minimum(rng.poisson(3.0 * np.exp(X[:, 0] - X[:, 1] * X[:, 2])), 20)


# --- it learns --------------------------------------------------------------------------------------------------------


def test_counts_have_the_means_of_their_law():
    """A deviance that is explained almost as by the means that counts were drawn from; seed 0, frozen."""
    X, y = draw(20_000)
    mean = 3.0 * np.exp(X[:, 0] - X[:, 1] * X[:, 2])
    best = d2_tweedie_score(y, mean, power=1)
    model = DPMLPRegressor(loss="poisson", y_bounds=(0, 200), random_state=0).fit(X, y)
    predicted = np.maximum(model.predict(X), 1e-3)
    assert d2_tweedie_score(y, predicted, power=1) > 0.9 * best
    assert abs(predicted.mean() - y.mean()) < 0.1 * y.mean()


@pytest.mark.usefixtures("steps_alone")
@pytest.mark.parametrize(("loss", "hidden"), [("squared_error", ()), ("huber", (4, 3)), ("poisson", (4, 3))])
def test_one_step_is_the_clipped_mean_gradient(hidden, loss):
    """From the parameters of a first instalment, by the plain reading, at noise of a thousandth of C."""
    X, y = draw()
    weights = np.where(np.arange(300) % 5 == 0, 0.0, np.linspace(0.1, 1.0, 300))
    clip, eta, norm = 0.4, 2.0, 3.0
    model = seeded(
        hidden_layer_sizes=hidden, activation="tanh", loss=loss, epsilon=None, noise_multiplier=1e-3,
        max_grad_norm=clip, warm_start=True, learning_rate="constant", learning_rate_init=eta, momentum=0.0,
        average=None, data_norm=1.5, input_norm=norm,
    ).fit(X, y)  # fmt: skip
    unit, parts = norm / 1.5, list(zip(model.coefs_, model.intercepts_, strict=True))
    theta = np.concatenate([part.ravel() for pair in parts for part in pair])
    theta[: parts[0][0].size] /= unit
    root = np.sqrt(20.0)
    targets, limit = (y / root, root) if loss == "poisson" else ((y - 10.0) / 10.0, 0.1)
    plain = reference.Network((3, *hidden, 1), "tanh", loss, limit)
    bounds = [clip / reference.room_for_rounding(np.float64, plain.widths)]
    gradients = reference.network_clipped_gradients(
        X, targets[:, None], weights, theta, plain, "flat", bounds, radius=1.5, unit=unit
    )
    expected = theta - eta * gradients.sum(axis=0) / 300
    model.set_params(max_iter=1).fit(X, y, sample_weight=weights)
    parts = list(zip(model.coefs_, model.intercepts_, strict=True))
    found = np.concatenate([part.ravel() for pair in parts for part in pair])
    found[: parts[0][0].size] /= unit
    noise = eta * 1e-3 * clip / 300
    assert np.abs(found - expected).max() < 6.5 * noise  # of 25 normals at most; false alarms below 1e-8
    assert np.abs(expected - theta).max() > 100 * noise


# --- targets and predictions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_targets_beyond_their_bounds_are_moved_to_the_nearest(loss):
    X, y = draw()
    far = np.where(y > 4, 1e9, y)
    one = seeded(loss=loss, y_bounds=(0, 5)).fit(X, np.minimum(y, 5))
    other = seeded(loss=loss, y_bounds=(0, 5)).fit(X, far)
    np.testing.assert_array_equal(one.coefs_[0], other.coefs_[0])


@pytest.mark.parametrize(("loss", "dtype"), [("huber", np.float64), ("poisson", np.float32)])
def test_predictions_stay_within_the_bounds_and_are_doubles(loss, dtype):
    X, y = draw(dtype=dtype)
    model = seeded(loss=loss, epsilon=0.01, learning_rate_init=100.0).fit(X, y)
    predicted = model.predict(np.concatenate([X, 1e30 * X]))
    assert predicted.dtype == np.float64
    assert predicted.min() >= 0.0
    assert predicted.max() <= 20.0
    assert ((predicted == 0.0) | (predicted == 20.0)).any()


def test_predictions_are_what_the_docstring_says():
    X, y = draw()
    for loss in LOSSES:
        model = seeded(loss=loss).fit(X, y)
        hidden = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0.0)
        score = (hidden @ model.coefs_[1] + model.intercepts_[1])[:, 0]
        mean = np.sqrt(20.0) * np.exp(score) if loss == "poisson" else 10.0 + 10.0 * score
        np.testing.assert_allclose(model.predict(X), np.clip(mean, 0.0, 20.0), rtol=1e-12)
        assert model.out_activation_ == ("exp" if loss == "poisson" else "identity")
        assert (model.n_outputs_, model.n_layers_, model.y_bounds_) == (1, 3, BOUNDS)


def test_bounds_that_are_read_are_reported_and_kept():
    X, y = draw()
    with pytest.warns(PrivacyLeakWarning, match="bounds were read from `y`"):
        model = seeded(y_bounds=None, random_state=None).fit(X, y)
    assert model.y_bounds_ == (y.min(), y.max())
    assert "bounds of the targets were read" in str(privacy_report(model))
    counts = seeded(y_bounds=None, loss="poisson").fit(X, y)
    assert counts.y_bounds_ == (0.0, y.max())
    assert seeded(y_bounds=None, loss="poisson").fit(X, np.zeros(300)).y_bounds_ == (0.0, 1.0)
    flat = seeded(y_bounds=None).fit(X, np.full(300, 7.0))
    assert flat.y_bounds_[0] < 7.0 < flat.y_bounds_[1]


REJECTIONS = {
    "a loss": ({"loss": "absolute_error"}, None, "got 'absolute_error'"),
    "one bound": ({"y_bounds": (1,)}, None, "must be a pair (low, high)"),
    "bounds the wrong way round": ({"y_bounds": (2, 1)}, None, "with low < high, got (2.0, 1.0)"),
    "a negative bound on counts": ({"y_bounds": (-1, 5), "loss": "poisson"}, None, "`y_bounds` must be (0, n)"),
    "no room for a count": ({"y_bounds": (0, 0.5), "loss": "poisson"}, None, "`y_bounds` must be (0, n)"),
    "negative counts": (
        {"loss": "poisson"},
        lambda X, y: (X, y - 7.25),
        "y contains negative targets, but loss='poisson'",
    ),
    "a target that is missing": ({}, lambda X, y: (X, np.where(y > 5, np.nan, y)), "y contains NaN"),
    "words": ({}, lambda X, y: (X, y.astype(str).astype(object)), "y"),
    "two columns of targets": ({}, lambda X, y: (X, np.column_stack([y, y])), "y should be a 1d array"),
    "infinity": ({}, lambda X, y: (np.where(X > 0.99, np.inf, X), y), "X contains infinity"),
    "no classes": ({"max_grad_norm": (1.0, 2.0)}, None, "requires clipping='per_layer'"),
}


@pytest.mark.parametrize("case", REJECTIONS)
def test_bad_input_is_rejected_in_one_line_before_any_charge(case):
    """And without a value of the data: 7.25 is in none of the messages."""
    parameters, change, message = REJECTIONS[case]
    given = draw() if change is None else change(*draw())
    given = dict(zip(("X", "y", "sample_weight"), given, strict=False))
    assert_rejected(seeded, parameters, given, [message], [".25"], errors=(ValueError,))


# --- noise and budget -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_bounds": (0, 30)}, "in earlier runs"),
        ({"loss": "poisson"}, "The outputs of this run are 'exp', but those of earlier runs are 'identity'"),
    ],
)
def test_instalments_that_do_not_fit_are_rejected_and_not_charged(changes, message):
    X, y = draw()
    accountant = PrivacyAccountant()
    model = seeded(accountant=accountant, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.set_params(**changes).fit(X, y)
    assert len(accountant.history) == 1


@pytest.mark.parametrize("losses", [("squared_error", "poisson"), ("poisson", "huber")])
def test_a_parameter_that_is_set_after_a_fit_changes_no_prediction(losses):
    X, y = draw()
    model = seeded(loss=losses[0]).fit(X, y)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(loss=losses[1]).predict(X), before)
