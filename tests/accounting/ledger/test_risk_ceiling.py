"""Ceilings that are stated as what an attacker may gain."""

from __future__ import annotations

import pytest
from combinations import over_rows
from ledger_files import exhaust

from skdp.accounting import (
    EpsilonDeltaDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    PrivacyAccountant,
    PrivacyProfile,
    calibrate_noise_multiplier,
)
from skdp.exceptions import BudgetExceededError

RISK, DELTA = {"advantage": 0.1}, 1e-6


@over_rows("adjacency", ["zero_out", "replace_one"])
def test_plain_gaussians_fill_a_risk_to_the_last_of_them(adjacency):
    accountant = PrivacyAccountant(risk=RISK, delta=DELTA, filter_family="gaussian")
    noise = calibrate_noise_multiplier(GaussianDpEvent, risk=RISK, adjacency=adjacency)
    exhaust(accountant, GaussianDpEvent(3.0 * noise), adjacency=adjacency)
    assert len(accountant.history) == 9  # the squares of nine thirds
    found = PrivacyProfile(accountant.event, adjacency=adjacency).advantage()
    assert 0.0999 < found <= 0.1


@over_rows(
    "event", [LaplaceDpEvent(1e4), PoissonSampledDpEvent(1e-3, GaussianDpEvent(50.0)), EpsilonDeltaDpEvent(1e-3, 0.0)]
)
@over_rows("before", [[], [GaussianDpEvent(100.0)]])
def test_of_a_promise_about_the_curve_nothing_else_is_charged(event, before):
    accountant = PrivacyAccountant(risk=RISK, delta=DELTA, filter_family="gaussian")
    for each in before:
        accountant.spend(each)
    with pytest.raises(BudgetExceededError, match=r"is no plain Gaussian release, and .* admits those alone"):
        accountant.spend(event)
    assert len(accountant.history) == len(before)


def test_it_is_not_raised():
    accountant = PrivacyAccountant(risk=RISK, delta=DELTA, filter_family="gaussian")
    with pytest.raises(ValueError, match="a ceiling in risk that the Gaussian filter holds cannot be raised"):
        accountant.raise_ceiling(5.0)


def test_other_charges_are_held_by_an_epsilon_that_implies_the_risk():
    accountant = PrivacyAccountant(risk=RISK, delta=DELTA)
    accountant.spend(LaplaceDpEvent(20.0))
    accountant.spend(PoissonSampledDpEvent(0.01, GaussianDpEvent(4.0)))
    exhaust(accountant, GaussianDpEvent(60.0))
    assert PrivacyProfile(accountant.event).advantage() <= 0.1
    whole = PrivacyProfile(EpsilonDeltaDpEvent(accountant.epsilon, DELTA))
    assert 0.0999 < whole.advantage() <= 0.1001


def test_a_charge_by_risk_under_a_ceiling_in_epsilon_is_admitted_by_its_event():
    accountant = PrivacyAccountant(1.5, DELTA)
    accountant.spend(GaussianDpEvent(calibrate_noise_multiplier(GaussianDpEvent, risk=RISK)))
    assert 0.0 < accountant.spent <= 1.5


def test_a_file_keeps_it(tmp_path):
    path = tmp_path / "people.budget"
    PrivacyAccountant(risk=RISK, delta=DELTA, filter_family="gaussian", path=path).spend(GaussianDpEvent(50.0))
    again = PrivacyAccountant(risk=RISK, delta=DELTA, filter_family="gaussian", path=path)
    assert again.filter_family == "gdp"
    with pytest.raises(BudgetExceededError, match="no plain Gaussian release"):
        PrivacyAccountant.open(path).spend(LaplaceDpEvent(1e4))
