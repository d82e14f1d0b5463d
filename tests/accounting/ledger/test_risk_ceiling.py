"""Budgets of an accountant that are stated as a membership-inference risk."""

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
    Risk,
    calibrate_noise_multiplier,
)
from skdp.exceptions import BudgetExceededError

RISK, DELTA = Risk(advantage=0.1), 1e-6


@over_rows("adjacency", ["zero_out", "replace_one"])
def test_risk_budget_admits_gaussians_up_to_risk(adjacency):
    accountant = PrivacyAccountant(RISK, DELTA, filter_family="gaussian")
    noise = calibrate_noise_multiplier(GaussianDpEvent, RISK, adjacency=adjacency)
    exhaust(accountant, GaussianDpEvent(3.0 * noise), adjacency=adjacency)
    assert len(accountant.history) == 9  # the squares of nine thirds
    found = PrivacyProfile(accountant.event, adjacency=adjacency).advantage()
    assert 0.0999 < found <= 0.1


def test_gaussian_risk_budget_rejects_other_charges():
    accountant = PrivacyAccountant(RISK, DELTA, filter_family="gaussian")
    for event in (PoissonSampledDpEvent(1e-3, GaussianDpEvent(50.0)), EpsilonDeltaDpEvent(1e-3, 0.0)):
        with pytest.raises(BudgetExceededError, match="is not a plain Gaussian release, and filter_family='gaussian'"):
            accountant.spend(event)
    assert not accountant.history


def test_raised_risk_budget_is_an_epsilon_budget():
    """The odometer's figure of plain Gaussian releases is within the new epsilon; the risk is no longer promised."""
    accountant = PrivacyAccountant(RISK, DELTA, filter_family="gaussian")
    accountant.spend(GaussianDpEvent(50.0))
    accountant.increase_budget(5.0)
    exhaust(accountant, GaussianDpEvent(2.0))
    assert accountant.get_epsilon(DELTA) <= accountant.spent <= accountant.epsilon == 5.0
    with pytest.raises(BudgetExceededError, match="not a plain Gaussian release"):
        accountant.spend(LaplaceDpEvent(1e4))


def test_risk_budget_of_any_charges_implies_risk():
    accountant = PrivacyAccountant(RISK, DELTA)
    accountant.spend(LaplaceDpEvent(20.0))
    accountant.spend(PoissonSampledDpEvent(0.01, GaussianDpEvent(4.0)))
    exhaust(accountant, GaussianDpEvent(60.0))
    assert PrivacyProfile(accountant.event).advantage() <= 0.1
    whole = PrivacyProfile(EpsilonDeltaDpEvent(accountant.epsilon, DELTA))
    assert 0.0999 < whole.advantage() <= 0.1001


def test_file_keeps_epsilon_and_filter_of_risk(tmp_path):
    path = tmp_path / "people.budget"
    created = PrivacyAccountant(RISK, DELTA, filter_family="gaussian", path=path)
    created.spend(GaussianDpEvent(50.0))
    again = PrivacyAccountant(RISK, DELTA, filter_family="gaussian", path=path)
    assert (again.epsilon, again.filter_family) == (created.epsilon, "gaussian")
    with pytest.raises(BudgetExceededError, match="not a plain Gaussian release"):
        PrivacyAccountant.open(path).spend(LaplaceDpEvent(1e4))


def test_risk_budget_without_delta_raises_with_remedy():
    with pytest.raises(ValueError, match=r"`delta` must be set with epsilon=Risk\(.*Pass a number well below 1/n"):
        PrivacyAccountant(RISK)
