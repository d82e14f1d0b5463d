"""Budgets that are stated as what an attacker may gain."""

import pytest
from combinations import over_rows

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    PrivacyProfile,
    Risk,
    SelfComposedDpEvent,
    calibrate_jointly,
    calibrate_noise_multiplier,
    compose,
)
from skdp.accounting.statements.targets import EpsilonTarget, RiskTarget

ADVANTAGE, RATE = Risk(advantage=0.1), Risk(tpr=0.03, fpr=0.01)


def found(event, risk, adjacency="zero_out"):
    profile = PrivacyProfile(event, adjacency=adjacency)
    return profile.advantage() if risk is ADVANTAGE else float(profile.true_positive_rate(risk.fpr))


def check_lands(event, risk, adjacency="zero_out"):
    goal = 0.1 if risk is ADVANTAGE else 0.03
    assert goal * 0.999 <= found(event, risk, adjacency) <= goal


def steps_of(sigma):
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(sigma)), 100)


def mixed(sigma):
    return compose([GaussianDpEvent(sigma), LaplaceDpEvent(2.0 * sigma)])


@over_rows("risk", [ADVANTAGE, RATE])
@over_rows("make_event", [GaussianDpEvent, steps_of, mixed])
def test_noise_lands_just_below_the_risk(make_event, risk):
    check_lands(make_event(calibrate_noise_multiplier(make_event, risk)), risk)


def test_parts_land_as_well():
    makers = [GaussianDpEvent, LaplaceDpEvent]
    noises = calibrate_jointly(makers, RATE, None, [0.3, 0.7])
    check_lands(compose(make(sigma) for make, sigma in zip(makers, noises, strict=True)), RATE)


def test_a_risk_asks_for_far_less_noise_than_the_epsilon_that_implies_it():
    direct = calibrate_noise_multiplier(GaussianDpEvent, ADVANTAGE)
    implied = RiskTarget.of(ADVANTAGE).implied_by(1e-5)
    through = calibrate_noise_multiplier(GaussianDpEvent, implied, 1e-5)
    assert 4.0 < through / direct < 4.7


@over_rows("risk", [ADVANTAGE, RATE, Risk(tpr=0.6, fpr=0.5)])
def test_the_epsilon_that_implies_a_risk_does_and_no_larger_one(risk):
    target, delta = RiskTarget.of(risk), 1e-3
    epsilon = target.implied_by(delta)
    assert target.cost(EpsilonDeltaDpEvent(epsilon * 0.999, delta), "pld", "zero_out") <= target.goal
    assert target.cost(EpsilonDeltaDpEvent(epsilon * 1.01, delta), "pld", "zero_out") > target.goal


@over_rows("target", [RiskTarget.of(ADVANTAGE), RiskTarget.of(RATE), EpsilonTarget(1.0, 1e-6)])
def test_the_gaussian_of_a_target_just_fits_it(target):
    assert target.goal * (1.0 - 1e-6) <= target.cost(GaussianDpEvent(1.0 / target.mu), "pld", "zero_out")
    smaller = target.of_size(0.5 * target.mu)
    assert smaller.cost(GaussianDpEvent(2.0 / target.mu), "pld", "zero_out") == pytest.approx(smaller.goal, rel=1e-6)


def test_a_risk_out_of_reach_says_so():
    with pytest.raises(ValueError, match=r"epsilon=Risk.* cannot be reached .* Raise the risk, or make fewer"):
        calibrate_noise_multiplier(lambda sigma: LaplaceDpEvent(1.0), ADVANTAGE)
