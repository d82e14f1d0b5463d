"""Partitions: a unit pays what is charged to all and to its own partition, and the largest decides."""

import pickle

import pytest
from ledger_files import FIT, GAUSS, THIRD, fresh, start
from sklearn.base import clone

from skdp import PrivacyAccountant
from skdp.accounting import compose, get_epsilon
from skdp.exceptions import BudgetExceededError

RULE = "month of first admission"
CHARGES_PART = """
accountant, rule = PrivacyAccountant.open(path), sys.argv[3]
ready()
try:
    accountant.partition(rule, rule=rule).spend(GaussianDpEvent(20.0))
    print(rule)
except ValueError as error:
    print(error)
"""


@pytest.fixture(params=[False, True])
def ledger(request, path):
    return PrivacyAccountant(2.0, 1e-5, path=path if request.param else None)


def test_the_largest_over_partitions_and_common_charges_in_each(ledger):
    ledger.spend(GAUSS)
    ledger.partition("b", rule=RULE).spend(FIT)
    ledger.spend(GAUSS, partition="a")
    ledger.spend(GAUSS)
    big, small = compose([GAUSS, FIT, GAUSS]), compose([GAUSS] * 3)
    again = PrivacyAccountant.from_json(ledger.to_json())
    for each in (ledger, again, fresh(ledger.path)) if ledger.path else (ledger, again):
        assert each.get_epsilon(partition="a") == get_epsilon(small, 1e-5)
        assert each.get_epsilon(partition="b") == each.get_epsilon() == get_epsilon(big, 1e-5)
        assert each.get_epsilon(partition="c") == get_epsilon(compose([GAUSS] * 2), 1e-5)
        assert each.partition_rule == RULE
        assert RULE in each.table()


def test_each_partition_has_the_ceiling_and_a_common_charge_has_to_fit_all(ledger):
    first, second = (ledger.partition(name, rule=RULE) for name in "ab")
    for each in (first, second):
        for _ in range(3):
            each.spend(THIRD)
        with pytest.raises(BudgetExceededError, match=f"for partition='{each.partition_name}'"):
            each.spend(THIRD)
    ledger.partition("c").spend(THIRD)
    with pytest.raises(BudgetExceededError, match="partition='a'"):
        ledger.spend(THIRD)
    assert len(ledger.history) == 7
    assert ledger.remaining(THIRD) == 0
    assert ledger.partition("c").remaining(THIRD) == 2
    assert ledger.partition("d").remaining() == 2.0


def test_one_rule_of_partitions(ledger):
    with pytest.raises(ValueError, match="`partition_rule` must be set with the first charge"):
        ledger.spend(GAUSS, partition="a")
    with pytest.raises(ValueError, match="replace_one"):
        ledger.partition("a", rule=RULE).spend(GAUSS, adjacency="replace_one")
    ledger.partition("a", rule=RULE).spend(GAUSS)
    with pytest.raises(ValueError, match="cannot be mixed with 'month of first admission'"):
        ledger.spend(GAUSS, partition="a", partition_rule="ward")
    with pytest.raises(ValueError, match="cannot be charged to an accountant of partition='a'"):
        ledger.partition("a").spend(GAUSS, partition="b")
    assert len(ledger.history) == 1


def test_partition_name_with_white_space_raises():
    """Units that were charged as those of "a" would begin anew."""
    ledger = PrivacyAccountant(2.0, 1e-5)
    ledger.partition("a", rule=RULE).spend(GAUSS)
    for name in ("a ", "\ta", ""):
        with pytest.raises(ValueError, match="without leading or trailing white space"):
            ledger.partition(name)
        with pytest.raises(ValueError, match="without leading or trailing white space"):
            ledger.spend(GAUSS, partition=name)


def test_a_raise_decides_by_the_odometer_for_partitions_that_were_charged(ledger):
    """Nobody of another one has seen anything: their budget is as if from the start."""
    first, other = (ledger.partition(name, rule=RULE) for name in "ab")
    first.spend(THIRD)
    first.increase_budget(4.0, allow_less=True)
    assert (ledger.epsilon, other.epsilon) == (4.0, 4.0)
    assert first.spent == first.get_epsilon(adaptive=True) > get_epsilon(THIRD, 1e-5)
    assert (other.spent, other.remaining()) == (0.0, 4.0)
    other.spend(THIRD)
    assert other.spent == get_epsilon(THIRD, 1e-5)
    assert ledger.spent == first.spent


def test_racing_processes_agree_on_one_partition_rule(tmp_path, path):
    PrivacyAccountant(2.0, 1e-5, path=path)
    go = tmp_path / "go"
    racing = [start(CHARGES_PART, path, go, rule) for rule in ("x", "y")]
    for script in racing:
        assert script.stdout.readline() == "ready\n"
    go.touch()
    printed = [script.communicate(timeout=300)[0].strip() for script in racing]
    (charge,) = PrivacyAccountant.open(path).history
    assert charge.partition_rule in printed
    assert sum(f"cannot be mixed with {charge.partition_rule!r}" in each for each in printed) == 1


def test_copies_charge_the_same_ledger(ledger):
    view = clone(ledger.partition("a", rule=RULE))
    view.spend(GAUSS)
    assert ledger.history[0].partition == "a"
    sent = pickle.loads(pickle.dumps(view))
    assert (sent.partition_name, sent.spent) == ("a", view.spent)
