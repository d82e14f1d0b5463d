"""Targets of regressors on a scale of logarithms."""

import math

import numpy as np
import pytest
from combinations import over_rows

from skdp import DPMLPRegressor, DPRandomTreesRegressor
from skdp._checks.targets import TargetScale

TOP = 4.0
BOUNDS = (1.0, math.exp(TOP))
SMALL = {"epsilon": 5.0, "random_state": 0}
REGRESSORS = {
    "network": lambda **given: DPMLPRegressor(max_iter=3, data_norm=2.0, **SMALL, **given),
    "trees": lambda **given: DPRandomTreesRegressor(20, bounds=(-1, 1), **SMALL, **given),
}


@pytest.fixture(scope="module")
def amounts():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    return X, np.exp(2.0 + X[:, 0] + 0.3 * rng.normal(size=300))


@over_rows("name", REGRESSORS)
def test_a_fit_to_logarithms_is_the_fit_to_targets_that_are_logarithms(name, amounts):
    X, y = amounts
    by_hand = REGRESSORS[name](y_bounds=(0.0, TOP)).fit(X, np.log(y))
    model = REGRESSORS[name](y_bounds=BOUNDS, y_transform="log").fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.exp(by_hand.predict(X)), rtol=1e-9)
    assert model.privacy_event_ == by_hand.privacy_event_
    assert model.y_bounds_ == BOUNDS


@over_rows("name", REGRESSORS)
def test_targets_beyond_their_bounds_are_moved_before_the_logarithm(name, amounts):
    """Zero and amounts below it have no logarithm, and neither says so."""
    X, y = amounts
    wild, moved = y.copy(), y.copy()
    wild[:3], moved[:3] = (0.0, -5.0, 1e300), (BOUNDS[0], BOUNDS[0], BOUNDS[1])
    one, other = (REGRESSORS[name](y_bounds=BOUNDS, y_transform="log").fit(X, each) for each in (wild, moved))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@over_rows("fit_intercept", [True, False])
@over_rows("bounds", [(1e-300, 1e300), (0.5, 3.0), (1e-9, 1e-8), (7.0, np.nextafter(7.0, 8.0) * 1.1)])
def test_no_target_leaves_the_unit_interval(bounds, fit_intercept):
    """By which sensitivities of what is estimated are proved; those beyond the bounds end there too."""
    scale = TargetScale.of(bounds, fit_intercept, is_log=True)
    inside = np.geomspace(*bounds, 1001)
    found = scale.scaled(np.concatenate([np.clip(inside, *bounds), [bounds[0] / 2, bounds[1] * 2]]))
    assert np.abs(found).max() <= 1.0 + 1e-15
    np.testing.assert_allclose(scale.restored(found[:1001]), inside, rtol=1e-12)


@over_rows(
    ("given", "found"),
    [
        ({"y_bounds": (0, 5)}, r"y_bounds=\(0.0, 5.0\)"),
        ({"y_bounds": None}, "Set `y_bounds`"),
        ({"y_bounds": (1e16, 1e16 + 4)}, "above 0"),
        ({"y_bounds": (1, 5), "y_transform": "sqrt"}, "`y_transform` must be one of 'log', got 'sqrt'"),
    ],
)
@over_rows("name", REGRESSORS)
def test_what_has_no_logarithm_is_rejected_before_the_rows(name, given, found, amounts):
    model = REGRESSORS[name](**{"y_transform": "log", **given})
    with pytest.raises(ValueError, match=found):
        model.fit(*amounts)
    assert not hasattr(model, "privacy_event_")


def test_a_loss_of_logarithms_takes_no_other(amounts):
    with pytest.raises(ValueError, match="loss='poisson'"):
        DPMLPRegressor(y_bounds=(1, 9), y_transform="log", loss="poisson").fit(*amounts)


def test_a_later_run_has_the_scale_of_the_first(amounts):
    model = REGRESSORS["network"](y_bounds=BOUNDS, y_transform="log", warm_start=True).fit(*amounts)
    model.set_params(y_transform=None)
    with pytest.raises(ValueError, match="earlier runs"):
        model.fit(*amounts)
