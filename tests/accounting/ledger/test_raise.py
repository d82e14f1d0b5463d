"""Raises of a budget: what they do to what is left, and when they may."""

import contextlib
import random
import re

import pytest
from ledger_files import GAUSS, THIRD, fresh, start

from skdp import PrivacyAccountant
from skdp.accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    compose,
)
from skdp.accounting.ledger import file_log
from skdp.exceptions import BudgetExceededError

NETWORK = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.2)), 500)
SHAPES = (
    GaussianDpEvent,
    LaplaceDpEvent,
    lambda s: SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(s)), 100),
    lambda s: compose([GaussianDpEvent(3.0 * s), SelfComposedDpEvent(LaplaceDpEvent(30.0 * s), 5)]),
)


def test_a_raise_that_lowers_what_is_left_has_to_be_asked_for(path):
    accountant = PrivacyAccountant(2.0, 1e-5, path=path)
    accountant.spend(NETWORK, "network")
    before = accountant.remaining()
    with pytest.raises(
        ValueError, match=r"permanently lowers the remaining budget of a fit like the last one from 1\.26 to 0\.959"
    ) as error:
        accountant.increase_budget(2.2)
    assert "\n" not in str(error.value)
    assert len(accountant.entries) == 1
    assert accountant.remaining() == before
    (enough,) = re.findall(r"Set epsilon=(\S+) or more, or allow_less=True \(--yes", str(error.value))
    accountant.increase_budget(float(enough))
    assert accountant.remaining() >= 0.999 * before  # what is left is found to a thousandth of the noise
    assert [dict(each.parameters) for each in accountant.entries[1:]] == [{"epsilon": float(enough)}]


def test_less_that_was_asked_for_is_kept_with_the_entry():
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.spend(NETWORK)
    accountant.increase_budget(2.2, allow_less=True)
    assert accountant.entries[1].parameters == {"epsilon": 2.2, "allow_less": True}
    assert accountant.remaining() < 1.0
    assert accountant.spent == accountant.get_epsilon(adaptive=True)


def test_raise_before_first_charge_sets_the_budget(path):
    """As if the accountant had been created with it, whatever was recorded at no privacy cost before."""
    accountant = PrivacyAccountant(2.0, 1e-5, path=path)
    assert accountant.record_rejection("DPPCA")
    accountant.spend(SelfComposedDpEvent(GAUSS, 0))
    accountant.increase_budget(3.0)
    created = PrivacyAccountant(3.0, 1e-5)
    for work in (lambda each: None, lambda each: each.spend(NETWORK), lambda each: each.spend(GAUSS)):
        work(accountant)
        work(created)
        for found in (accountant, fresh(path)):
            assert (found.epsilon, found.spent, found.remaining()) == (3.0, created.spent, created.remaining())
            assert found.remaining(NETWORK) == created.remaining(NETWORK)
    with pytest.raises(ValueError, match="must exceed the present budget"):
        accountant.increase_budget(2.0)


def overtaken(monkeypatch, path, kind, *entries):
    """Let another process write these between the admission of an entry of this kind and its being written."""
    original, opened, left = file_log.admit, PrivacyAccountant.open(path)._log, list(entries)
    elsewhere = file_log.Store(opened.path, opened.terms, opened._heads[0])

    def late(ledger, entry):
        admitted = original(ledger, entry)
        if entry.kind == kind and left:
            elsewhere.append(left.pop())
        return admitted

    monkeypatch.setattr(file_log, "admit", late)


def test_a_raise_that_a_first_charge_overtakes_is_one_after_a_charge(path, monkeypatch):
    """Admitted as the first entry, and written as the second: it is looked at again, and rejected."""
    accountant = PrivacyAccountant(2.0, 1e-5, path=path)
    overtaken(monkeypatch, path, "raise", file_log.Charge(NETWORK, "theirs", "zero_out"))
    with pytest.raises(ValueError, match="lowers the remaining budget"):
        accountant.increase_budget(2.2)
    assert [each.kind for each in fresh(path).entries] == ["charge"]


RAISES = """
accountant = PrivacyAccountant.open(path)
ready()
try:
    accountant.increase_budget(float(sys.argv[3]))
    print(1)
except ValueError as error:
    assert "must exceed the present budget" in str(error), error
    print(0)
"""


def test_processes_that_raise_at_once_leave_the_highest(tmp_path, path):
    PrivacyAccountant(2.0, 1e-5, path=path).spend(THIRD)
    go, budgets = tmp_path / "go", (4.0, 6.0, 5.5)
    running = [start(RAISES, path, go, each) for each in budgets]
    for script in running:
        assert script.stdout.readline() == "ready\n"
    go.touch()
    told = [int(script.communicate(timeout=120)[0]) for script in running]
    raises = [each.parameters["epsilon"] for each in fresh(path).entries if each.kind == "raise"]
    assert raises == sorted(set(raises))
    assert len(raises) == sum(told)
    assert fresh(path).epsilon == 6.0


def drawn(rng):
    """A ledger with one to four charges, each of a tenth to half of the budget, as far as they are admitted."""
    epsilon, delta = rng.uniform(0.5, 6.0), 10 ** rng.uniform(-9.0, -4.0)
    accountant = PrivacyAccountant(epsilon, delta, filter_family=rng.choice(["auto", "renyi"]))
    for shape in (rng.choice(SHAPES) for _ in range(rng.randint(1, 4))):
        with contextlib.suppress(BudgetExceededError):
            accountant.spend(shape(calibrate_noise_multiplier(shape, epsilon * rng.uniform(0.1, 0.5), delta)))
    return accountant


def test_no_other_raise_lowers_what_is_left():
    """Ledgers that were drawn: a raise is rejected, or as much is left as before."""
    rng, rejections, raises = random.Random(0), 0, 0
    for _ in range(2):
        accountant = drawn(rng)
        first = accountant.epsilon
        for factor in (1.01, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0):
            before = accountant.affordable()
            try:
                accountant.increase_budget(first * factor)
            except ValueError as error:
                rejections += bool(re.search("lowers the remaining budget|is too small", str(error)))
                continue
            raises += 1
            after = accountant.affordable()
            assert after.epsilon >= before.epsilon * (1.0 - 2e-3)  # both are found to a thousandth of the noise
            assert after.delta >= before.delta
    assert rejections + raises == 14
    assert min(rejections, raises) > 3
