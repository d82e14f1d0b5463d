"""One balance for threads, processes and scripts, and nothing lost when they are killed."""

import multiprocessing
import os
import random
import signal
import threading
import time

import joblib
import numpy as np
import pytest
from ledger_files import CREATE, THIRD, admitted, fresh, in_threads, model, start, together
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import skdp
import skdp._dpsgd.solver
from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, get_epsilon
from skdp.accounting.ledger import sqlite

# --- scripts that start together --------------------------------------------------------------------------------------


def test_scripts_that_create_the_file_at_once_share_it(tmp_path, path):
    found = together(tmp_path, path, CREATE, 3, 2)
    assert sum(found) == PrivacyAccountant.open(path).verify() == 3
    assert sorted(os.listdir(tmp_path)) == ["census.budget", "go"]


# --- threads, forks and joblib ----------------------------------------------------------------------------------------


def spend_and_tell(accountant, queue, number):
    queue.put(sum(admitted(accountant, THIRD) for _ in range(number)))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_processes_share_the_balance_also_with_threads_at_work(path):
    """A fork in the middle of another thread's charge: the child inherits neither a held lock nor a connection."""
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    context = multiprocessing.get_context("fork")
    queue, stop, counts = context.Queue(), threading.Event(), []

    def work():
        while not stop.is_set():
            counts.append(admitted(accountant, GaussianDpEvent(380.0)))  # so little that all the others are admitted

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = [context.Process(target=spend_and_tell, args=(accountant, queue, 3), daemon=True) for _ in range(8)]
    for child in children:
        child.start()
    try:
        in_children = sum(queue.get(timeout=600) for _ in children)
    finally:
        stop.set()
    for each in (*threads, *children):
        each.join()
    assert in_children == 24
    assert accountant.verify() == in_children + sum(counts)


def test_of_ten_fits_of_joblib_exactly_three_start(budget, rows):
    with joblib.parallel_config("loky", n_jobs=2), pytest.warns(FitFailedWarning, match="7 fits failed"):
        scores = cross_val_score(model(budget), *rows, cv=KFold(10))
    assert np.isfinite(scores).sum() == budget.verify() == 3


TRIES_TO_WRITE = """
import sqlite3
connection = sqlite3.connect(path, timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN EXCLUSIVE")  # what a COMMIT needs
    print("written to")
except sqlite3.OperationalError:
    print("locked")
"""


def test_who_opens_the_file_does_not_end_the_lock_of_another_thread(path, budget):
    """POSIX: whoever closes a file ends all locks that the process has on it, whichever thread took them."""

    def held(connection):
        other = threading.Thread(target=lambda: PrivacyAccountant.open(path))
        other.start()
        other.join(0.3)  # it waits, or is done
        return start(TRIES_TO_WRITE, path, "-").communicate(timeout=60)[0].strip()

    assert sqlite.transaction(path, "BEGIN IMMEDIATE", held) == "locked"


# --- interrupted and killed -------------------------------------------------------------------------------------------


KILLED = """
side = open(sys.argv[3], "ab", buffering=0)
accountant = PrivacyAccountant.open(path)
ready()
while True:
    accountant.spend(GaussianDpEvent(380.0))
    side.write(b"x")
"""


def test_kill_9_during_charges_loses_nothing(tmp_path, path):
    """Entries are at most one per round ahead: the charge made when the process died, before it was noted."""
    PrivacyAccountant(50.0, 1e-5, path=path)
    side, go, rng, known, shown = tmp_path / "side", tmp_path / "go", random.Random(1), 0, 0
    side.touch()
    for number in range(1, 5):
        child = start(KILLED, path, go, side)
        try:
            assert child.stdout.readline() == "ready\n"
            go.touch()
            while side.stat().st_size == known:
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.05))
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
            go.unlink(missing_ok=True)
        known, shown = side.stat().st_size, fresh(path).verify()
        assert known <= shown <= known + number
    accountant = PrivacyAccountant.open(path)
    accountant.spend(GaussianDpEvent(380.0))
    assert accountant.verify() == len(accountant.history) == shown + 1


DIES_INSIDE = """
import os, skdp.accounting.ledger.file_log as store
link = store.link
def dying(row):
    if len(row) > 7 and row.get("label") == "dies":
        os.kill(os.getpid(), 9)
    return link(row)
store.link = dying
PrivacyAccountant.open(path).spend(GaussianDpEvent(3.8), "dies")
"""


def test_death_inside_the_transaction_charges_nothing(path, budget):
    budget.spend(THIRD)
    child = start(DIES_INSIDE, path, "-")
    child.communicate(timeout=600)
    assert child.returncode == -signal.SIGKILL
    assert fresh(path).verify() == 1
    assert admitted(budget, THIRD) == 1


def test_threads_share_the_balance(path, budget):
    counts = []
    in_threads(lambda: counts.append(sum(admitted(PrivacyAccountant(path=path), THIRD) for _ in range(3))))
    assert sum(counts) == budget.verify() == 3


def test_workers_of_joblib_charge_one_bill(path, rows):
    accountant = PrivacyAccountant(8.0, 1e-5, path=path)
    search = GridSearchCV(model(accountant), {"alpha": [0.0, 1.0]}, cv=KFold(2), error_score="raise")
    with joblib.parallel_config("loky", n_jobs=2):
        search.fit(*rows)
    assert accountant.verify() == 5
    assert search.best_estimator_.accountant is accountant
    event = search.best_estimator_.privacy_event_
    assert accountant.get_epsilon() == get_epsilon(SelfComposedDpEvent(event, 5), 1e-5)
    assert sorted(charge.parameters["alpha"] for charge in accountant.history[:4]) == [0.0, 0.0, 1.0, 1.0]


def test_an_interrupted_fit_pays_in_full(path, budget, rows, monkeypatch):
    seen = []

    def interrupted(*arguments, **options):
        seen.append(len(fresh(path).history))  # on the disk before the first row is read
        raise KeyboardInterrupt

    monkeypatch.setattr(skdp._dpsgd.solver, "run_dpsgd", interrupted)
    with pytest.warns(UserWarning, match="full privacy cost"):
        fitted = model(budget).fit(*rows)
    assert seen == [1]
    assert budget.verify() == 1
    assert budget.event == fitted.privacy_event_
    assert budget.remaining(fitted.privacy_event_) == 2
