"""What the tests of a budget in a file share: events, scripts that charge it, and what they report."""

import contextlib
import os
import pathlib
import sqlite3
import subprocess
import sys
import threading

import pytest

import skdp
from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from skdp.accounting.ledger import file_log
from skdp.exceptions import BudgetExceededError, BudgetFileError

ROOT = pathlib.Path(skdp.__file__).parents[1]
STEP = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1))
FIT = SelfComposedDpEvent(STEP, 200)
GAUSS = GaussianDpEvent(20.0)
THIRD = GaussianDpEvent(3.8)
THREE = {"epsilon": 2.0, "delta": 1e-5}
"""A budget under which THIRD, which costs 1.10 alone, is admitted three times."""


def fresh(path):
    """What somebody sees who opens the file for the first time."""
    file_log._STORES.clear()
    return PrivacyAccountant.open(path)


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


READY = """
import os, sys, time
path, go = sys.argv[1:3]
from skdp.accounting import *
from skdp.exceptions import *
def ready():
    print("ready", flush=True)
    while not os.path.exists(go):
        time.sleep(0.001)
def admitted(work):
    try:
        work()
        return 1
    except BudgetExceededError:
        return 0
"""
CREATE = """
ready()
accountant = PrivacyAccountant(2.0, 1e-5, path=path)
print(sum(admitted(lambda: accountant.spend(GaussianDpEvent(3.8), "script")) for _ in range(int(sys.argv[3]))))
"""


def start(code, *arguments, **options):
    command = [sys.executable, "-c", READY + code, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)


def together(tmp_path, path, code, scripts, each):
    """What each of several scripts prints that are let go at the same moment."""
    go = tmp_path / "go"
    running = [start(code, path, go, each) for _ in range(scripts)]
    for script in running:
        assert script.stdout.readline() == "ready\n"
    go.touch()
    found = [int(script.communicate(timeout=600)[0]) for script in running]
    assert [script.returncode for script in running] == [0] * scripts
    return found


def admitted(accountant, event):
    try:
        accountant.spend(event)
    except BudgetExceededError:
        return 0
    return 1


def exhaust(accountant, event, **options):
    """Charge until rejected; how often it was admitted."""
    for count in range(5000):
        try:
            accountant.spend(event, **options)
        except BudgetExceededError:
            return count
    raise AssertionError("never rejected")


def in_threads(work, number=8):
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def model(accountant, **parameters):
    given = {"epsilon": None, "noise_multiplier": 38.0, "sampling_rate": 1.0, "max_iter": 100, "delta": 1e-5}
    return DPLogisticRegression(**{**given, "classes": [0, 1], "accountant": accountant, **parameters})


def rejected(path, rows, match, accountant=None):
    """A fit on such a file is rejected in one line and leaves nothing fitted."""
    estimator = model(None)

    def fit():
        estimator.set_params(accountant=accountant or fresh(path)).fit(*rows)

    with pytest.raises(BudgetFileError, match=match) as error:
        fit()
    assert not hasattr(estimator, "coef_")
    assert path in one_line(error)


def rewritten(path, *statements, **pragmas):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        for name, value in pragmas.items():
            connection.execute(f"PRAGMA {name} = {value}")
        connection.commit()


def with_three_charges(path):
    accountant = PrivacyAccountant(**THREE, path=path)
    for label in "abc":
        accountant.spend(THIRD, label, note="n", parameters={"k": 1})
    return accountant


def tampered(path, *statements):
    """The statements, by somebody who takes the triggers off before and puts them back as they were."""
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for each in (*(f"DROP TRIGGER {name}" for name, _ in triggers), *statements, *(sql for _, sql in triggers)):
        connection.execute(each)
    connection.close()


NO_LINKS = """
import errno, os
def no_link(*arguments, **options):
    raise OSError(errno.EPERM, "Operation not permitted")
os.link = no_link
"""
