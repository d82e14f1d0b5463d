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
    calibrate_jointly,
    calibrate_noise_multiplier,
    calibrate_sampling_rate,
    calibrate_steps,
    compose,
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


@pytest.mark.parametrize(("q", "sigma"), [(0.01, 1.1), (0.2, 5.0), (1.0, 20.0)])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_steps_are_the_most_that_fit(q, sigma, epsilon):
    steps = calibrate_steps(lambda n: dpsgd(q, n)(sigma), epsilon, 1e-6)
    assert get_epsilon(dpsgd(q, steps + 1)(sigma), 1e-6) > epsilon
    assert steps == 0 or get_epsilon(dpsgd(q, steps)(sigma), 1e-6) <= epsilon


def test_steps_at_the_ends():
    assert calibrate_steps(lambda n: SelfComposedDpEvent(GaussianDpEvent(0.1), n), 0.1, 1e-6) == 0
    assert calibrate_steps(lambda n: SelfComposedDpEvent(GaussianDpEvent(1e9), n), 1.0, 1e-6) == 10**9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_sampling_rate_fits(epsilon):
    rate = calibrate_sampling_rate(lambda q: dpsgd(q, 1000)(1.1), epsilon, 1e-6)
    assert epsilon * (1.0 - 1e-3) <= get_epsilon(dpsgd(rate, 1000)(1.1), 1e-6) <= epsilon
    assert calibrate_sampling_rate(lambda q: dpsgd(q, 1)(50.0), 1.0, 1e-6) == 1.0


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("adjacency", ["zero_out", "replace_one"])
def test_joint_calibration_meets_the_budget_with_the_given_shares(epsilon, adjacency):
    makers = [GaussianDpEvent, dpsgd(0.02, 1000), lambda s: SelfComposedDpEvent(GaussianDpEvent(s), 4)]
    noises = calibrate_jointly(makers, epsilon, 1e-5, [1.0, 7.0, 2.0], adjacency=adjacency)
    events = [make(sigma) for make, sigma in zip(makers, noises, strict=True)]
    price = get_epsilon(compose(events), 1e-5, adjacency=adjacency)
    assert epsilon * (1.0 - 1e-3) <= price <= epsilon
    # mu^2 of the plain ones: 1 / s^2 and 4 / s^2, in the proportion 1 : 2
    assert (4.0 / noises[2] ** 2) / (1.0 / noises[0] ** 2) == pytest.approx(2.0, rel=1e-4)


def test_joint_calibration_of_plain_gaussians_is_exact():
    one, four = calibrate_jointly(
        [GaussianDpEvent, lambda s: SelfComposedDpEvent(GaussianDpEvent(s), 4)], 2.0, 1e-5, [0.5, 0.5]
    )
    assert four == pytest.approx(2.0 * one, rel=1e-6)
    alone = calibrate_noise_multiplier(GaussianDpEvent, 2.0, 1e-5)
    assert one == pytest.approx(math.sqrt(2.0) * alone, rel=1e-3)


@pytest.mark.parametrize("shares", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan]])
def test_shares_are_validated(shares):
    with pytest.raises(ValueError, match="shares="):
        calibrate_jointly([GaussianDpEvent, GaussianDpEvent], 1.0, 1e-5, shares)


def test_calibration_is_remembered_by_what_is_made():
    first = calibrate_noise_multiplier(dpsgd(0.013, 700), 1.0, 1e-6)
    assert calibrate_noise_multiplier(dpsgd(0.013, 700), 1.0, 1e-6) == first

    def same_at_the_probes(sigma):
        return dpsgd(0.013, 700)(sigma if sigma in (1.0, 2.5) else 0.9 * sigma)

    other = calibrate_noise_multiplier(same_at_the_probes, 1.0, 1e-6)
    assert get_epsilon(same_at_the_probes(other), 1e-6) <= 1.0
