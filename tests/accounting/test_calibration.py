"""Calibration never lands above its target, nor far below it (property 14)."""

import numpy as np
import pytest
from combinations import over_rows

from skdp.accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_jointly,
    calibrate_noise_multiplier,
    calibration,
    compose,
    get_epsilon,
)


def dpsgd(q, steps):
    return lambda sigma: SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)


def check(make_event, epsilon, delta, **settings):
    sigma = calibrate_noise_multiplier(make_event, epsilon, delta, **settings)
    assert epsilon * (1.0 - 1e-3) <= get_epsilon(make_event(sigma), delta, **settings) <= epsilon
    return sigma


def test_property_14_on_drawn_cases():
    rng = np.random.default_rng(8)
    for _ in range(5):
        q, steps = 10 ** rng.uniform(-3, 0), int(10 ** rng.uniform(0, 4.5))
        epsilon, delta = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-10, -5)
        adjacency = "replace_one" if rng.random() < 0.3 else "add_remove"
        check(dpsgd(q, steps), epsilon, delta, adjacency=adjacency)


def test_rdp_and_mixed_events():
    check(dpsgd(0.02, 500), 2.0, 1e-5, method="rdp")
    check(lambda s: ComposedDpEvent((dpsgd(0.05, 300)(s), GaussianDpEvent(3.0 * s))), 1.0, 1e-6)
    fixed = GaussianDpEvent(10.0)
    check(lambda s: ComposedDpEvent((fixed, dpsgd(0.05, 300)(s))), 1.0, 1e-6)


def test_plain_gaussian_is_exact():
    sigma = calibrate_noise_multiplier(lambda s: GaussianDpEvent(s), 1.0, 1e-5)
    cost = get_epsilon(GaussianDpEvent(sigma), 1e-5)
    assert 1.0 - 1e-9 <= cost <= 1.0
    doubled = calibrate_noise_multiplier(lambda s: GaussianDpEvent(s), 1.0, 1e-5, adjacency="replace_one")
    assert doubled == pytest.approx(2.0 * sigma, rel=1e-9)


def test_unreachable_budget_is_one_line_with_a_remedy():
    for make in (
        lambda s: ComposedDpEvent((GaussianDpEvent(1.0), dpsgd(0.1, 10)(s))),
        lambda s: ComposedDpEvent((GaussianDpEvent(1.0), GaussianDpEvent(s))),
        lambda s: NonPrivateDpEvent(),
    ):
        with pytest.raises(ValueError, match=r"epsilon=0\.01, delta=1e-06 cannot be reached.*Raise epsilon") as error:
            calibrate_noise_multiplier(make, 0.01, 1e-6)
        assert "\n" not in str(error.value)


def test_a_bound_that_is_loose_at_the_end_of_the_range_rejects_no_budget():
    """A cost may rise again where noise vanishes all; what is in reach before is found."""

    def noisy(s):
        return GaussianDpEvent(s if s < 1e6 else 0.5)

    found = calibrate_noise_multiplier(noisy, 1.0, 1e-5)
    assert found == pytest.approx(calibrate_noise_multiplier(GaussianDpEvent, 1.0, 1e-5), rel=1e-9)


def test_nothing_is_returned_whose_price_was_not_seen_to_fit():
    """A cost that changes between two looks, as that of a function which is none: rejected, not returned."""
    looks = iter([0.5])
    kept = []

    def restless(s):
        kept.append(s)
        return GaussianDpEvent(1e9 if s == 1e7 and next(looks, None) else 0.5)

    with pytest.raises(ValueError, match=r"^epsilon=1\.0, delta=1e-05 cannot be reached .* Raise epsilon"):
        calibrate_noise_multiplier(restless, 1.0, 1e-5)
    assert 1e7 in kept
    with pytest.raises(ValueError, match=r"^x$"):
        calibration._affordable(1.0, lambda s: 2.0, 1.0, 10.0, "x")
    assert calibration._affordable(1.0, lambda s: 3.0 - s, 1.0, 10.0, "x") >= 2.0


@over_rows("method", ["pld", "moments"])
def test_what_is_without_effect_needs_no_noise(method):
    assert calibrate_noise_multiplier(lambda s: NoOpDpEvent(), 1.0, 1e-5, method=method) == pytest.approx(1e-3)
    assert calibrate_jointly([lambda s: NoOpDpEvent(), GaussianDpEvent], 1.0, 1e-5, [0.5, 0.5])[1] > 0.0


@over_rows(("epsilon", "adjacency"), [(0.3, "zero_out"), (2.0, "replace_one")])
def test_joint_calibration_meets_the_budget_with_the_given_shares(epsilon, adjacency):
    makers = [GaussianDpEvent, dpsgd(0.02, 1000), lambda s: SelfComposedDpEvent(GaussianDpEvent(s), 4)]
    noises = calibrate_jointly(makers, epsilon, 1e-5, [1.0, 7.0, 2.0], adjacency=adjacency)
    events = [make(sigma) for make, sigma in zip(makers, noises, strict=True)]
    cost = get_epsilon(compose(events), 1e-5, adjacency=adjacency)
    assert epsilon * (1.0 - 1e-3) <= cost <= epsilon
    # mu^2 of the plain ones: 1 / s^2 and 4 / s^2, in the proportion 1 : 2
    assert (4.0 / noises[2] ** 2) / (1.0 / noises[0] ** 2) == pytest.approx(2.0, rel=1e-4)
