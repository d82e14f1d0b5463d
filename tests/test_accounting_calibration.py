"""Calibration never lands above its target, nor far below it (property 14)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdp.accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    get_epsilon,
)


def dpsgd(q, steps):
    return lambda sigma: SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


def check(make_event, epsilon, delta, **settings):
    sigma = calibrate_noise_multiplier(make_event, epsilon, delta, **settings)
    assert epsilon * (1.0 - 1e-3) <= get_epsilon(make_event(sigma), delta, **settings) <= epsilon
    return sigma


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize(("q", "steps"), [(1.0, 200), (0.5, 1), (0.01, 10_000), (0.2, 300)])
def test_property_14(epsilon, q, steps):
    check(dpsgd(q, steps), epsilon, 1e-6)


def test_property_14_on_drawn_cases():
    rng = np.random.default_rng(8)
    for _ in range(30):
        q, steps = 10 ** rng.uniform(-3, 0), int(10 ** rng.uniform(0, 4.5))
        epsilon, delta = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-10, -5)
        adjacency = "replace_one" if rng.random() < 0.3 else "add_remove"
        check(dpsgd(q, steps), epsilon, delta, adjacency=adjacency)


def test_rdp_and_mixed_events():
    check(dpsgd(0.02, 500), 2.0, 1e-5, method="rdp")
    check(lambda s: SelfComposedDpEvent(GaussianDpEvent(s), 7), 2.0, 1e-5, method="rdp")
    check(lambda s: ComposedDpEvent((dpsgd(0.05, 300)(s), GaussianDpEvent(3.0 * s))), 1.0, 1e-6)
    fixed = GaussianDpEvent(10.0)
    check(lambda s: ComposedDpEvent((fixed, GaussianDpEvent(s))), 1.0, 1e-6)
    check(lambda s: ComposedDpEvent((fixed, dpsgd(0.05, 300)(s))), 1.0, 1e-6)


def test_plain_gaussian_is_exact():
    sigma = calibrate_noise_multiplier(lambda s: GaussianDpEvent(s), 1.0, 1e-5)
    price = get_epsilon(GaussianDpEvent(sigma), 1e-5)
    assert 1.0 - 1e-9 <= price <= 1.0
    doubled = calibrate_noise_multiplier(lambda s: GaussianDpEvent(s), 1.0, 1e-5, adjacency="replace_one")
    assert doubled == pytest.approx(2.0 * sigma, rel=1e-9)


def test_unreachable_budget_is_one_line_with_a_remedy():
    for make in (
        lambda s: ComposedDpEvent((GaussianDpEvent(1.0), dpsgd(0.1, 10)(s))),
        lambda s: ComposedDpEvent((GaussianDpEvent(1.0), GaussianDpEvent(s))),
        lambda s: NonPrivateDpEvent(),
    ):
        with pytest.raises(ValueError, match=r"epsilon=0\.01, delta=1e-06 cannot be reached.*raise epsilon") as error:
            calibrate_noise_multiplier(make, 0.01, 1e-6)
        assert "\n" not in str(error.value)


def test_budget_that_needs_no_noise_gives_the_least():
    assert calibrate_noise_multiplier(dpsgd(1e-9, 1), 1.0, 1e-5) == pytest.approx(1e-3)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1"])
def test_epsilon_is_validated(epsilon):
    with pytest.raises(ValueError, match=r"epsilon=.*above 0"):
        calibrate_noise_multiplier(dpsgd(0.1, 10), epsilon, 1e-5)
