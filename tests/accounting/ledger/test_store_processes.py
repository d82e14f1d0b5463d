"""One balance for threads, processes and scripts, and nothing lost when they are killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time

import joblib
import numpy as np
import pytest
from ledger_files import CREATE, NO_LINKS, SPEND, THIRD, admitted, fresh, in_threads, model, start, together
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import skdp
import skdp._training.recipe
from skdp import PrivacyAccountant
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, get_epsilon
from skdp.accounting.ledger import sqlite as _sqlite
from skdp.accounting.ledger import store as _store

# --- scripts that start together --------------------------------------------------------------------------------------


def test_five_scripts_at_once_and_a_ceiling_for_three(tmp_path, path, budget):
    assert budget.remaining(THIRD) == 3
    found = together(tmp_path, path, SPEND, 5, 1)
    assert sorted(found) == [0] * 2 + [1] * 3
    assert budget.verify() == len(budget.history) == 3
    assert budget.get_epsilon() == get_epsilon(SelfComposedDpEvent(THIRD, 3), 1e-5) <= 2.0
    assert budget.remaining(THIRD) == 0


@pytest.mark.parametrize("script", [CREATE, NO_LINKS + CREATE], ids=["links", "no hard links"])
def test_scripts_that_create_the_file_at_once_share_it(tmp_path, path, script):
    found = together(tmp_path, path, script, 3, 2)
    assert sum(found) == PrivacyAccountant.open(path).verify() == 3
    assert sorted(os.listdir(tmp_path)) == ["census.budget", "go"]


# --- threads, forks and joblib ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reads_only", [True, False])
def test_a_thread_that_comes_right_after_a_charge_does_not_disturb_it(path, monkeypatch, reads_only):
    """The other one comes between COMMIT and what the first one then remembers of it, if it can."""
    accountant, others = PrivacyAccountant(20.0, 1e-5, path=path), []
    original = _store.transaction

    def charge():
        accountant.spend(GaussianDpEvent(380.0))
        return len(accountant.history)

    def followed(path, begin, work):
        done = original(path, begin, work)
        if begin != "BEGIN" and not others:
            others.append(threading.Thread(target=(lambda: accountant.history) if reads_only else charge))
            others[0].start()
            others[0].join(0.3)
        return done

    monkeypatch.setattr(_store, "transaction", followed)
    charge()
    others[0].join()
    assert charge() == accountant.verify() == 3 - reads_only


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


def test_everybody_at_once_and_the_total_is_the_sum_of_the_parts(tmp_path, path, rows):
    accountant = PrivacyAccountant(30.0, 1e-5, path=path)
    code = SPEND.replace("PrivacyAccountant(2.0, 1e-5, path=path)", "PrivacyAccountant.open(path)")
    scripts = [start(code, path, tmp_path / "go", 5) for _ in range(2)]
    for script in scripts:
        assert script.stdout.readline() == "ready\n"
    threads = [threading.Thread(target=lambda: [accountant.spend(THIRD) for _ in range(5)]) for _ in range(2)]
    (tmp_path / "go").touch()
    for thread in threads:
        thread.start()
    with joblib.parallel_config("loky", n_jobs=2):
        cross_val_score(model(accountant), *rows, cv=KFold(4), error_score="raise")
    for thread in threads:
        thread.join()
    assert [int(script.communicate(timeout=600)[0]) for script in scripts] == [5, 5]
    assert accountant.verify() == 5 + 5 + 5 + 5 + 4
    labels = [charge.label for charge in accountant.history]
    assert (labels.count("script"), labels.count(""), labels.count("DPLogisticRegression")) == (10, 10, 4)
    assert fresh(path).get_epsilon() == accountant.get_epsilon()


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

    assert _sqlite.transaction(path, "BEGIN IMMEDIATE", held) == "locked"


def test_entries_are_made_out_while_others_can_charge(path, budget, monkeypatch):
    """However many there are: the file is locked only while rows are fetched."""
    budget.spend(THIRD)
    told, original = [], _store.charge_from_fields

    def slow(row, terms):
        told.append(start(TRIES_TO_WRITE, path, "-").communicate(timeout=60)[0].strip())
        return original(row, terms)

    monkeypatch.setattr(_store, "charge_from_fields", slow)
    assert len(fresh(path).history) == 1
    assert told == ["written to"]


# --- interrupted and killed -------------------------------------------------------------------------------------------


KILLED = """
side = open(sys.argv[3], "ab", buffering=0)
accountant = PrivacyAccountant.open(path)
ready()
while True:
    accountant.spend(GaussianDpEvent(380.0))
    side.write(b"x")
"""


def kill_round(tmp_path, path, seconds, *, at_work):
    """Let a child charge for a while, kill it, and look: the file verifies and shows no less than was spent."""
    side = tmp_path / "side"
    side.touch()
    before = side.stat().st_size
    child = start(KILLED, path, tmp_path / "go", side)
    try:
        assert child.stdout.readline() == "ready\n"
        (tmp_path / "go").touch()
        while at_work and side.stat().st_size == before:
            time.sleep(0.001)
        time.sleep(seconds)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        (tmp_path / "go").unlink(missing_ok=True)
    recorded, shown = side.stat().st_size, fresh(path).verify()
    assert shown >= recorded
    return recorded, shown


def kill_rounds(tmp_path, path, n_rounds, seed):
    """Entries are at most one a round ahead: the charge that was made when death came before it was noted."""
    PrivacyAccountant(50.0, 1e-5, path=path)
    rng, before, ahead = random.Random(seed), (0, 0), 0
    for number in range(n_rounds):
        at_work = number % 4 > 0  # every fourth is killed at any moment, also before its first charge
        recorded, shown = kill_round(tmp_path, path, rng.uniform(0.0, 0.05), at_work=at_work)
        assert 0 <= (shown - before[1]) - (recorded - before[0]) <= 1
        before, ahead = (recorded, shown), shown - recorded
    accountant = PrivacyAccountant.open(path)
    accountant.spend(GaussianDpEvent(380.0))
    assert accountant.verify() == len(accountant.history) == shown + 1
    assert recorded >= sum(number % 4 > 0 for number in range(n_rounds))  # one at least in each of the others
    return recorded, ahead


def test_kill_9_during_charges_loses_nothing(tmp_path, path):
    kill_rounds(tmp_path, path, 6, seed=1)


@pytest.mark.slow
def test_200_rounds_of_kill_9_lose_nothing(tmp_path, path):
    recorded, ahead = kill_rounds(tmp_path, path, 200, seed=2)
    print(f"{recorded} charges recorded in 200 rounds, {ahead} made and not noted")


DIES_INSIDE = """
import os, skdp.accounting.ledger.store as store
link = store.link
def dying(row):
    if len(row) > 7 and row["label"] == "dies":
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


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_of_joblib_charge_one_bill(path, rows, backend):
    accountant = PrivacyAccountant(8.0, 1e-5, path=path)
    search = GridSearchCV(model(accountant), {"alpha": [0.0, 1.0]}, cv=KFold(2), error_score="raise")
    with joblib.parallel_config(backend, n_jobs=2):
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

    monkeypatch.setattr(skdp._training.recipe, "run_dpsgd", interrupted)
    with pytest.warns(UserWarning, match="full charge"):
        fitted = model(budget).fit(*rows)
    assert seen == [1]
    assert budget.verify() == 1
    assert budget.event == fitted.privacy_event_
    assert budget.remaining(fitted.privacy_event_) == 2
