"""The budget in a file: one balance for threads, processes and scripts, and nothing lost whatever happens to them."""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import linecache
import multiprocessing
import os
import pathlib
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import skdp
import skdp._classifier
from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, get_epsilon
from skdp.accounting.ledger import ledger as _ledger
from skdp.accounting.ledger import log as _log
from skdp.accounting.ledger import sqlite as _sqlite
from skdp.accounting.ledger import store as _store
from skdp.exceptions import BudgetExceededError, BudgetFileError

ROOT = pathlib.Path(skdp.__file__).parents[1]
STEP = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1))
FIT = SelfComposedDpEvent(STEP, 200)
GAUSS = GaussianDpEvent(20.0)
THIRD = GaussianDpEvent(3.8)
THREE = {"epsilon": 2.0, "delta": 1e-5}
"""A ceiling under which THIRD, which costs 1.10 alone, is admitted three times."""


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "census.budget")


@pytest.fixture
def budget(path):
    return PrivacyAccountant(**THREE, path=path)


def fresh(path):
    """What somebody sees who opens the file for the first time."""
    _store._STORES.clear()
    return PrivacyAccountant.open(path)


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


# --- scripts that start together --------------------------------------------------------------------------------------

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

SPEND = """
accountant = PrivacyAccountant(2.0, 1e-5, path=path)
ready()
print(sum(admitted(lambda: accountant.spend(GaussianDpEvent(3.8), "script")) for _ in range(int(sys.argv[3]))))
"""

CREATE = """
ready()
accountant = PrivacyAccountant(2.0, 1e-5, path=path)
print(sum(admitted(lambda: accountant.spend(GaussianDpEvent(3.8), "script")) for _ in range(int(sys.argv[3]))))
"""

FITS = """
import numpy as np, warnings
from skdp import DPLogisticRegression
accountant = PrivacyAccountant.open(path)
X, y = np.tile([[-1.0], [1.0]], (20, 1)), np.tile([0, 1], 20)
model = DPLogisticRegression(epsilon=None, noise_multiplier=38.0, sampling_rate=1.0, max_iter=100, delta=1e-5,
                             classes=[0, 1], accountant=accountant)
ready()
print(sum(admitted(lambda: model.fit(X, y)) for _ in range(int(sys.argv[3]))))
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
    found = [int(script.communicate(timeout=120)[0]) for script in running]
    assert [script.returncode for script in running] == [0] * scripts
    return found


def test_ten_scripts_at_once_and_a_ceiling_for_three(tmp_path, path, budget):
    assert budget.remaining(THIRD) == 3
    found = together(tmp_path, path, SPEND, 10, 1)
    assert sorted(found) == [0] * 7 + [1] * 3
    assert budget.verify() == len(budget.history) == 3
    assert budget.get_epsilon() == get_epsilon(SelfComposedDpEvent(THIRD, 3), 1e-5) <= 2.0
    assert budget.remaining(THIRD) == 0


def test_scripts_that_create_the_file_at_once_share_it(tmp_path, path):
    found = together(tmp_path, path, CREATE, 6, 2)
    assert sum(found) == PrivacyAccountant.open(path).verify() == 3
    assert sorted(os.listdir(tmp_path)) == ["census.budget", "go"]


def test_of_ten_fits_in_several_scripts_exactly_three_start(tmp_path, path, budget):
    found = together(tmp_path, path, FITS, 4, 3)
    assert sum(found) == len(budget.history) == budget.verify() == 3
    assert {charge.label for charge in budget.history} == {"DPLogisticRegression"}


# --- threads, forks and joblib ----------------------------------------------------------------------------------------


def in_threads(work, number=8):
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def admitted(accountant, event):
    try:
        accountant.spend(event)
    except BudgetExceededError:
        return 0
    return 1


def test_threads_share_the_balance(path, budget):
    counts = []
    in_threads(lambda: counts.append(sum(admitted(PrivacyAccountant(path=path), THIRD) for _ in range(3))))
    assert sum(counts) == budget.verify() == 3


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
        in_children = sum(queue.get(timeout=60) for _ in children)
    finally:
        stop.set()
    for each in (*threads, *children):
        each.join()
    assert in_children == 24
    assert accountant.verify() == in_children + sum(counts)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 2))
    return X, (X[:, 0] > 0).astype(int)


def model(accountant, **parameters):
    given = {"epsilon": None, "noise_multiplier": 38.0, "sampling_rate": 1.0, "max_iter": 100, "delta": 1e-5}
    return DPLogisticRegression(**{**given, "classes": [0, 1], "accountant": accountant, **parameters})


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


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_of_ten_fits_of_joblib_exactly_three_start(budget, rows, backend):
    with joblib.parallel_config(backend, n_jobs=2), pytest.warns(FitFailedWarning, match="7 fits failed"):
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
    assert [int(script.communicate(timeout=60)[0]) for script in scripts] == [5, 5]
    assert accountant.verify() == 5 + 5 + 5 + 5 + 4
    labels = [charge.label for charge in accountant.history]
    assert (labels.count("script"), labels.count(""), labels.count("DPLogisticRegression")) == (10, 10, 4)
    assert fresh(path).get_epsilon() == accountant.get_epsilon()


# --- the same accountant, but kept ------------------------------------------------------------------------------------


def test_a_file_behaves_as_memory_does(path):
    in_memory, in_file = (PrivacyAccountant(2.0, 1e-5, unit="person", path=p) for p in (None, path))
    for accountant in (in_memory, in_file):
        accountant.spend(FIT, "first", note="why", parameters={"alpha": np.float64(0.5), "classes": np.array([0, 1])})
        accountant.spend(STEP, "second")
        with pytest.raises(BudgetExceededError, match="nothing was charged"):
            accountant.spend(LaplaceDpEvent(0.1))
        with pytest.raises(ValueError, match="cannot be mixed"):
            accountant.spend(STEP, adjacency="replace_one")
    again = fresh(path)
    for each in (in_file, again):
        assert each.history == in_memory.history
        assert each.event == in_memory.event
        assert each.get_epsilon() == in_memory.get_epsilon()
        assert each.get_epsilon(adaptive=True) == in_memory.get_epsilon(adaptive=True)
        assert each.get_delta(1.0) == in_memory.get_delta(1.0)
        assert each.remaining(STEP) == in_memory.remaining(STEP)
        assert (each.epsilon, each.delta, each.unit, each.adjacency) == (2.0, 1e-5, "person", "zero_out")
    first = again.history[0]
    assert (first.label, first.note, first.parameters) == ("first", "why", {"alpha": 0.5, "classes": [0, 1]})
    assert first.time[:2] == "20"
    assert first.time.endswith("+00:00")
    assert again.to_json() == in_file.to_json()
    assert PrivacyAccountant.from_json(again.to_json()).history == again.history
    assert json.loads(again.to_json())["head"] == again.head
    assert path in repr(again)
    assert "second" in again._repr_html_()


def test_a_pickle_is_a_handle(path, budget, monkeypatch, tmp_path):
    budget.spend(THIRD)
    sent = pickle.dumps(budget)
    assert len(sent) < 1000
    received = pickle.loads(sent)
    received.spend(THIRD)
    for each in (clone(budget), copy.copy(budget), copy.deepcopy({"a": budget})["a"]):
        assert each is budget
    assert budget.verify() == received.verify() == 2
    _store._STORES.clear()  # as in another process
    elsewhere = pickle.loads(sent)
    elsewhere.spend(THIRD)
    assert admitted(elsewhere, THIRD) == 0
    assert len(budget.history) == 3


def test_a_pickled_model_can_be_used_where_the_file_is_not(path, budget, rows):
    fitted = model(budget).fit(*rows)
    sent = pickle.dumps(fitted)
    os.unlink(path)
    _store._STORES.clear()
    received = pickle.loads(sent)
    np.testing.assert_array_equal(received.predict(rows[0]), fitted.predict(rows[0]))
    assert "cannot be read" in repr(received.accountant)
    with pytest.raises(BudgetFileError, match="does not exist"):
        received.fit(*rows)


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    accountant = PrivacyAccountant(**THREE, path="a b%20?#.budget")
    monkeypatch.chdir("/")
    accountant.spend(THIRD)
    assert accountant.path == str(tmp_path / "a b%20?#.budget")
    assert os.listdir(tmp_path) == ["a b%20?#.budget"]
    os.symlink(accountant.path, tmp_path / "link")
    assert PrivacyAccountant(path=tmp_path / "link").path == accountant.path


def test_terms_are_kept_and_not_contradicted(path):
    PrivacyAccountant(2.0, 1e-5, unit="person", filter_family="renyi", path=path)
    found = PrivacyAccountant(path=path)
    assert (found.epsilon, found.delta, found.unit, found.filter_family) == (2.0, 1e-5, "person", "renyi")
    PrivacyAccountant(2, 1e-5, unit="person", filter_family="renyi", path=path)
    for given, named in (
        ({"epsilon": 3.0, "delta": 1e-5}, r"epsilon=3.0 contradicts the epsilon=2.0"),
        ({"epsilon": 2.0, "delta": 1e-6}, r"delta=1e-06 contradicts the delta=1e-05"),
        ({"unit": "row"}, r"unit='row' contradicts the unit='person'"),
        ({"filter_family": "auto"}, r"filter_family='auto' contradicts the filter_family='renyi'"),
    ):
        with pytest.raises(ValueError, match=named) as error:
            PrivacyAccountant(**given, path=path)
        one_line(error)


def test_no_budget_is_begun_by_a_slip(tmp_path, path):
    with pytest.raises(BudgetFileError, match="does not exist") as error:
        PrivacyAccountant.open(path)
    one_line(error)
    assert os.listdir(tmp_path) == []
    with pytest.warns(UserWarning, match="without a ceiling"):
        unlimited = PrivacyAccountant(path=path)
    unlimited.spend(FIT)
    with pytest.raises(ValueError, match=r"epsilon=1\.0 contradicts the epsilon=None"):
        PrivacyAccountant(1.0, 1e-5, path=path)


def test_what_a_fit_leaves_on_the_bill(path, rows):
    accountant = PrivacyAccountant(8.0, 1e-5, path=path)
    with pytest.warns(skdp.PrivacyLeakWarning):
        model(accountant, random_state=71_203_118, n_jobs=1, data_norm=1.5).fit(*rows)
    (charge,) = accountant.history
    assert charge.label == "DPLogisticRegression"
    assert charge.parameters["noise_multiplier"] == 38.0
    assert (charge.parameters["data_norm"], charge.parameters["classes"]) == (1.5, [0, 1])
    assert not {"random_state", "accountant", "n_jobs", "verbose"} & set(charge.parameters)
    assert "71203118" not in json.dumps(charge.parameters)
    assert b"71203118" not in pathlib.Path(path).read_bytes()[4096:].replace(charge.time.encode(), b"")


def test_parameters_hold_no_data():
    accountant = PrivacyAccountant()
    frame, deep = np.zeros((100, 2)), [[[[[[1]]]]]]
    odd = {"frame": frame, "f": len, "nan": np.nan, "deep": deep, "set": {3}, "no\ud800": 1}
    with pytest.raises(ValueError, match="UTF-8"):
        accountant.spend(STEP, parameters=odd)
    with pytest.raises(TypeError, match="parameters="):
        accountant.spend(STEP, parameters=[1])
    with pytest.raises(ValueError, match="note="):
        accountant.spend(STEP, note="\ud800")
    odd.pop("no\ud800")
    accountant.spend(STEP, parameters=odd)
    kept = accountant.history[0].parameters
    assert kept["frame"] == "<ndarray>"
    assert kept["f"] == "<builtin_function_or_method>"
    assert kept["nan"] == "nan"
    assert kept["set"] == "<set>"
    assert kept["deep"] == [[[["<list>"]]]]


def test_a_bill_moves_from_memory_to_a_file(path, rows):
    in_memory = PrivacyAccountant(**THREE)
    for _ in range(2):
        in_memory.spend(THIRD, "in memory")
    text = in_memory.to_json()
    with pytest.raises(ValueError, match="resume=True"):
        PrivacyAccountant.from_json(text, path=path)
    moved = PrivacyAccountant.from_json(text, resume=True, path=path)
    assert moved.to_json() == text
    assert moved.verify(head=in_memory.head) == 2
    assert (admitted(moved, THIRD), admitted(fresh(path), THIRD)) == (1, 0)
    with pytest.raises(ValueError, match="exists, and a budget is not written over"):
        PrivacyAccountant.from_json(text, resume=True, path=path)
    assert fresh(path).verify() == 3


def test_the_json_of_schema_1_can_still_be_read():
    charge = {"label": "a", "adjacency": "zero_out", "unit": "row", "event": {"event": "GaussianDpEvent"}}
    charge["event"]["noise_multiplier"] = 20.0
    content = {"schema": 1, "epsilon": 2.0, "delta": 1e-5, "unit": "row", "filter_family": "auto", "charges": [charge]}
    read = PrivacyAccountant.from_json(json.dumps(content), resume=True)
    assert read.event == GAUSS
    read.spend(GAUSS)
    assert len(PrivacyAccountant.from_json(read.to_json()).history) == 2
    charge["unit"] = "person"
    with pytest.raises(ValueError, match="unit 'row'"):
        PrivacyAccountant.from_json(json.dumps(content))


# --- interrupted and killed -------------------------------------------------------------------------------------------


def test_an_interrupted_fit_pays_in_full(path, budget, rows, monkeypatch):
    seen = []

    def interrupted(*arguments, **options):
        seen.append(len(fresh(path).history))  # on the disk before the first row is read
        raise KeyboardInterrupt

    monkeypatch.setattr(skdp._classifier, "run_dpsgd", interrupted)
    with pytest.warns(UserWarning, match="full charge"):
        fitted = model(budget).fit(*rows)
    assert seen == [1]
    assert budget.verify() == 1
    assert budget.event == fitted.privacy_event_
    assert budget.remaining(fitted.privacy_event_) == 2


KILLED = """
side = open(sys.argv[3], "ab", buffering=0)
accountant = PrivacyAccountant.open(path)
def spent():
    side.write(b"x")
if sys.argv[4] == "fit":
    import numpy as np, skdp._classifier, skdp.linear_model
    X, y = np.tile([[-1.0], [1.0]], (20, 1)), np.tile([0, 1], 20)
    model = skdp.DPLogisticRegression(epsilon=None, noise_multiplier=380.0, sampling_rate=1.0, max_iter=100,
                                      delta=1e-5, classes=[0, 1], accountant=accountant)
    train = skdp._classifier.run_dpsgd
    def training(*arguments, **options):
        spent()  # the next line reads the first row
        return train(*arguments, **options)
    skdp._classifier.run_dpsgd = training
    work = lambda: model.fit(X, y)
else:
    def work():
        accountant.spend(GaussianDpEvent(380.0))
        spent()
ready()
while True:
    work()
"""


def kill_round(tmp_path, path, what, seconds, *, at_work):
    """Let a child charge for a while, kill it, and look: the file verifies and shows no less than was spent."""
    side = tmp_path / "side"
    side.touch()
    before = side.stat().st_size
    child = start(KILLED, path, tmp_path / "go", side, what)
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


def kill_rounds(tmp_path, path, whats, seed):
    """Entries are at most one a round ahead: the charge that was made when death came before the fit began."""
    PrivacyAccountant(50.0, 1e-5, path=path)
    rng, before, ahead = random.Random(seed), (0, 0), 0
    for number, what in enumerate(whats):
        at_work = number % 4 > 0  # every fourth is killed at any moment, also before its first charge
        recorded, shown = kill_round(tmp_path, path, what, rng.uniform(0.0, 0.05), at_work=at_work)
        assert 0 <= (shown - before[1]) - (recorded - before[0]) <= 1
        before, ahead = (recorded, shown), shown - recorded
    accountant = PrivacyAccountant.open(path)
    accountant.spend(GaussianDpEvent(380.0))
    assert accountant.verify() == len(accountant.history) == shown + 1
    assert recorded >= len(whats) * 0.7
    return recorded, ahead


def test_kill_9_during_charges_loses_nothing(tmp_path, path):
    kill_rounds(tmp_path, path, ["spend"] * 9 + ["fit"], seed=1)


@pytest.mark.slow
def test_200_rounds_of_kill_9_lose_nothing(tmp_path, path):
    recorded, ahead = kill_rounds(tmp_path, path, ["spend", "fit"] * 100, seed=2)
    print(f"{recorded} charges recorded in 200 rounds, {ahead} made whose fit had not begun")


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
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert fresh(path).verify() == 1
    assert admitted(budget, THIRD) == 1


# --- what can be wrong with a file ------------------------------------------------------------------------------------


def refused(path, rows, match, accountant=None):
    """A fit on such a file is refused in one line and leaves nothing fitted."""
    estimator = model(None)

    def fit():
        estimator.set_params(accountant=accountant or fresh(path)).fit(*rows)

    with pytest.raises(BudgetFileError, match=match) as error:
        fit()
    assert not hasattr(estimator, "coef_")
    assert path in one_line(error)


def rewritten(path, *statements, **pragmas):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    for name, value in pragmas.items():
        connection.execute(f"PRAGMA {name} = {value}")
    connection.commit()
    connection.close()


def test_removed_and_exchanged_files(path, budget, rows):
    budget.spend(THIRD)
    shutil.copy(path, path + ".old")
    budget.spend(THIRD)
    shutil.copy(path, path + ".now")
    os.unlink(path)
    refused(path, rows, "does not exist", budget)
    other = PrivacyAccountant(**THREE, path=path)
    assert other.history == ()
    refused(path, rows, "another budget", budget)
    shutil.copy(path + ".old", path)
    refused(path, rows, "entry 2, which was there before, is gone", budget)
    sent = pickle.dumps(budget)
    _store._STORES.clear()
    refused(path, rows, "entry 2, which was there before, is gone", pickle.loads(sent))
    shutil.copy(path + ".now", path)
    budget.spend(THIRD)
    assert budget.verify() == 3


def test_a_journal_without_its_file_is_not_forgotten(path):
    pathlib.Path(path + "-wal").write_bytes(b"charges")
    with pytest.raises(BudgetFileError, match=r"census.budget-wal is there") as error:
        PrivacyAccountant(**THREE, path=path)
    one_line(error)
    assert not os.path.exists(path)


def test_truncated_files(tmp_path, path, rows):
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    for _ in range(30):
        accountant.spend(THIRD, note="x" * 300)
    whole = pathlib.Path(path).read_bytes()
    assert len(whole) >= 8 * 4096
    for size in sorted({0, 1, 50, 99, 100, 1000, *range(4096, len(whole), 4096), len(whole) - 4000, len(whole) - 2048}):
        pathlib.Path(path).write_bytes(whole[:size])
        refused(path, rows, "damaged|not a budget file")
        with pytest.raises(BudgetFileError):
            PrivacyAccountant(20.0, 1e-5, path=path).verify()
        assert pathlib.Path(path).read_bytes() == whole[:size]  # and is not overwritten
    assert os.listdir(tmp_path) == ["census.budget"]


def test_flipped_bits_are_seen_or_change_nothing(path):
    """200 single bits, seeded: what verifies shows the same ledger."""
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    for _ in range(20):
        accountant.spend(THIRD, note="x" * 300)
    whole, history = pathlib.Path(path).read_bytes(), accountant.history
    rng, seen = random.Random(3), 0
    for _ in range(200):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        pathlib.Path(path).write_bytes(changed)
        try:
            found = fresh(path)
            found.verify()
            assert found.history == history
        except BudgetFileError:
            seen += 1
    assert seen > 50


@pytest.mark.parametrize("content", [b"age,income\n31,40000\n" * 400, b"\x00" * 8192])
def test_other_files_are_left_alone(path, rows, content):
    pathlib.Path(path).write_bytes(content)
    refused(path, rows, "not a budget file")
    with pytest.raises(BudgetFileError, match="not a budget file"):
        PrivacyAccountant(**THREE, path=path)
    assert pathlib.Path(path).read_bytes() == content


def test_other_databases_and_folders_are_left_alone(tmp_path, path, rows):
    rewritten(path, "CREATE TABLE charges (a)")
    refused(path, rows, "not a budget file")
    with pytest.raises(BudgetFileError, match="is not a file") as error:
        PrivacyAccountant(**THREE, path=tmp_path)
    one_line(error)
    with pytest.raises(BudgetFileError, match="make the folder") as error:
        PrivacyAccountant(**THREE, path=tmp_path / "no" / "such.budget")
    one_line(error)


def test_a_newer_schema_is_refused(path, budget, rows):
    rewritten(path, user_version=9)
    refused(path, rows, "has schema 9, this skdp writes 2; .* update skdp", budget)
    refused(path, rows, "has schema 9")


def test_an_older_schema_is_read_as_it_is_and_brought_up_to_date_by_a_charge(path, budget, monkeypatch):
    """The step after the present schema is planted: a column more, and a table."""
    budget.spend(THIRD, "before")
    version = _store.FILE_SCHEMA
    step = "ALTER TABLE charges ADD COLUMN site TEXT;\nCREATE TABLE notes (text TEXT);\n"
    monkeypatch.setattr(_store, "FILE_SCHEMA", version + 1)
    broken = step + "CREATE TABLE notes (again TEXT);\n"
    monkeypatch.setattr(_store, "MIGRATIONS", {**_store.MIGRATIONS, version: broken})
    before = pathlib.Path(path).read_bytes()
    with pytest.raises(BudgetFileError):
        budget.spend(THIRD)  # fails half-way: nothing of it stays
    assert [charge.label for charge in PrivacyAccountant(path=path).history] == ["before"]
    assert pathlib.Path(path).read_bytes() == before
    monkeypatch.setattr(_store, "MIGRATIONS", {**_store.MIGRATIONS, version: step})
    migrated = PrivacyAccountant(**THREE, path=path)
    migrated.spend(THIRD, "after")
    assert migrated.verify() == 2
    assert [charge.label for charge in fresh(path).history] == ["before", "after"]


def test_a_locked_file(path, budget, rows, monkeypatch):
    monkeypatch.setattr(_sqlite, "_WAIT", 0.2)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    refused(path, rows, "locked by another process for", budget)
    assert budget.history == ()  # reading goes on
    holder.execute("ROLLBACK")
    holder.close()
    assert admitted(budget, THIRD) == 1


READ_ONLY = """
import skdp.accounting.ledger.store
PrivacyAccountant(2.0, 1e-5).spend(GaussianDpEvent(3.8))  # all that is needed is imported now
if os.geteuid() == 0:
    os.setuid(65534)  # permissions do not bind root
def told(work):
    try:
        print("done", work())
    except Exception as error:
        print(type(error).__name__, error)
accountant = PrivacyAccountant.open(path)
told(lambda: len(accountant.history))
told(lambda: accountant.verify())
told(lambda: accountant.spend(GaussianDpEvent(3.8)))
told(lambda: PrivacyAccountant(path=path).spend(GaussianDpEvent(3.8)))
told(lambda: len(PrivacyAccountant(1.0, 1e-5, path=os.path.join(os.path.dirname(path), "new.budget")).history))
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("modes", [(0o777, 0o444), (0o555, 0o666), (0o555, 0o444)])
def test_a_read_only_file_or_folder_is_read_and_not_charged(modes):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to other users
        path = os.path.join(folder, "census.budget")
        PrivacyAccountant(**THREE, path=path).spend(THIRD)
        os.chmod(folder, modes[0])
        os.chmod(path, modes[1])
        lines = start(READ_ONLY, path, "-").communicate(timeout=60)[0].splitlines()
        os.chmod(folder, 0o755)
        assert lines[:2] == ["done 1", "done 1"]
        for line in lines[2:4]:
            assert line.startswith(f"BudgetFileError path={path!r} cannot be")
            assert "nothing was charged" in line
        if modes[0] == 0o555:
            assert "BudgetFileError" in lines[4]
        assert len(lines) == 5
        assert fresh(path).verify() == 1


FULL = """
import resource
accountant = PrivacyAccountant.open(path)
limit = os.path.getsize(path) + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
spent = 0
try:
    while True:
        accountant.spend(GaussianDpEvent(380.0), note="x" * 200)
        spent += 1
except BudgetFileError as error:
    print(spent, error)
"""


def full(out):
    spent, _, told = out.partition(" ")
    assert "\n" not in told.strip()
    assert "disk is full" in told
    assert "nothing was charged" in told
    return int(spent)


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("room", [-40000, 0, 40000])
def test_a_file_that_may_not_grow(path, room):
    """A limit on the size of files stands for a full disk: charges go on until one cannot be written."""
    accountant = PrivacyAccountant(20.0, 1e-5, path=path)
    for _ in range(100):
        accountant.spend(GaussianDpEvent(380.0), note="y" * 200)
    child = start(FULL, path, "-", room)
    spent = full(child.communicate(timeout=60)[0])
    assert fresh(path).verify() == 100 + spent
    accountant.spend(GaussianDpEvent(380.0))
    assert accountant.verify() == 101 + spent


FULL_DISK = """
mount -t tmpfs -o size=200k tmpfs "$1" || exit 77
cp "$2" "$1/census.budget"
"$3" -c "$4" "$1/census.budget" -
code=$?
cp "$1/census.budget" "$2"
exit $code
"""

FILL = """
accountant = PrivacyAccountant.open(path)
spent = 0
with open(path + ".filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(b"x" * 1024)
    except OSError:
        pass
try:
    while True:
        accountant.spend(GaussianDpEvent(380.0), note="x" * 200)
        spent += 1
except BudgetFileError as error:
    assert len(accountant.history) == spent
    os.unlink(path + ".filler")
    accountant.spend(GaussianDpEvent(380.0), note="x" * 200)
    print(spent + 1, error)
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no user namespaces here")
def test_a_disk_that_is_full(tmp_path, path):
    """A disk of 200 kB in a namespace of its own, filled to the last byte."""
    PrivacyAccountant(20.0, 1e-5, path=path)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["unshare", "-rm", "sh", "-c", FULL_DISK, "sh", disk, path, sys.executable, READY + FILL]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("no mounts in user namespaces here")
    assert done.returncode == 0, done.stderr
    assert fresh(path).verify() == full(done.stdout)


# --- tampering --------------------------------------------------------------------------------------------------------


def with_three_charges(path):
    accountant = PrivacyAccountant(**THREE, path=path)
    for label in "abc":
        accountant.spend(THIRD, label, note="n", parameters={"k": 1})
    return accountant


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET label = 'z' WHERE seq = 2",
        "DELETE FROM charges WHERE seq = 3",
        "INSERT OR REPLACE INTO charges SELECT * FROM charges WHERE seq = 2",
        "INSERT INTO charges SELECT 9, time, '', parameters, event, adjacency, '', previous, hash, '', '' FROM charges",
        "UPDATE header SET epsilon = 90",
        "DELETE FROM header",
        "INSERT INTO header SELECT * FROM header",
    ],
)
def test_the_database_itself_forbids_changes(path, statement):
    accountant = with_three_charges(path)
    with pytest.raises(sqlite3.IntegrityError, match="a budget is never altered"):
        rewritten(path, statement)
    assert accountant.verify() == 3


def without_triggers(path):
    names = ("update", "delete", "insert")
    rewritten(path, *(f"DROP TRIGGER {table}_{name}" for table in ("header", "charges") for name in names))


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        *((f"UPDATE charges SET {c} = 'x' WHERE seq = 2", "entry 2") for c in ("time", "label", "note", "hash")),
        *((f"UPDATE charges SET {c} = '1' WHERE seq = 1", "entry 1") for c in ("parameters", "event", "adjacency")),
        ("UPDATE charges SET event = replace(event, '3.8', '380.0') WHERE seq = 3", "entry 3"),
        ("UPDATE charges SET previous = 'x' WHERE seq = 3", "entry 3"),
        ("UPDATE charges SET seq = 7 WHERE seq = 3", "entry 3"),
        ("DELETE FROM charges WHERE seq = 1", "entry 1"),
        ("DELETE FROM charges WHERE seq = 2", "entry 2"),
        *((f"UPDATE header SET {c} = 90" , "header") for c in ("epsilon", "delta", "unit", "created", "id")),
        ("DELETE FROM header", "header"),
    ],
)  # fmt: skip
def test_tampering_is_seen(path, statement, named):
    with_three_charges(path)
    without_triggers(path)
    rewritten(path, statement)
    for use in (lambda: fresh(path).verify(), lambda: fresh(path).spend(THIRD)):
        with pytest.raises(BudgetFileError, match=named) as error:
            use()
        one_line(error)


def test_lost_last_charges_are_seen_by_a_head_that_was_noted(path):
    accountant = with_three_charges(path)
    noted = accountant.head
    accountant = fresh(path)
    assert accountant.verify(head=noted) == 3
    without_triggers(path)
    rewritten(path, "DELETE FROM charges WHERE seq = 3")
    assert fresh(path).verify() == 2  # a chain says nothing of what comes after its end
    with pytest.raises(BudgetFileError, match="altered or lost since it was noted") as error:
        fresh(path).verify(head=noted)
    one_line(error)
    with pytest.raises(BudgetFileError, match="entry 3, which was there before"):
        accountant.verify()


def test_a_charge_that_this_version_cannot_price_is_refused(path, rows):
    with_three_charges(path)
    without_triggers(path)
    rewritten(path, "UPDATE charges SET event = replace(event, 'Gaussian', 'Uniform') WHERE seq = 3")
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    row = dict(connection.execute("SELECT * FROM charges WHERE seq = 3").fetchone())
    row.pop("hash")
    connection.execute("UPDATE charges SET hash = ? WHERE seq = 3", (_store.link(row),))
    connection.commit()
    connection.close()
    refused(path, rows, "entry 3: event='UniformDpEvent' is not known")


# --- how it is kept ---------------------------------------------------------------------------------------------------


def test_a_charge_is_on_the_disk_when_it_returns(path, budget):
    def asked(connection):
        return [connection.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous")]

    # EXTRA: FULL, and the directory
    assert _sqlite.transaction(path, "BEGIN IMMEDIATE", asked) == [("wal",), (3,)]


def test_between_charges_the_file_stands_alone(tmp_path, path, budget):
    for _ in range(2):
        budget.spend(THIRD)
        assert os.listdir(tmp_path) == ["census.budget"]
    assert len(budget.history) == 2
    assert os.listdir(tmp_path) == ["census.budget"]


def test_only_new_entries_are_read(path, budget, monkeypatch):
    for _ in range(2):
        budget.spend(THIRD)
    assert len(budget.history) == 2
    read, original = [], _store.charge_from_fields
    monkeypatch.setattr(
        _store, "charge_from_fields", lambda row, terms: read.append(row["seq"]) or original(row, terms)
    )
    budget.spend(THIRD)
    assert read == []
    assert len(pickle.loads(pickle.dumps(budget)).history) == 3
    assert read == [3]


@pytest.mark.parametrize("target", ["gone", "link", os.path.join("no", "folder")])
def test_a_symbolic_link_that_leads_nowhere_begins_no_budget(tmp_path, target):
    link = tmp_path / "link"
    os.symlink(target, link)
    carried = PrivacyAccountant(**THREE).to_json()
    for begin in (
        lambda: PrivacyAccountant(**THREE, path=link),
        lambda: PrivacyAccountant.open(link),
        lambda: PrivacyAccountant.from_json(carried, resume=True, path=link),
    ):
        with pytest.raises(BudgetFileError, match=r"link' is a symbolic link that leads to no file") as error:
            begin()
        assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == ["link"]


@pytest.mark.parametrize("wrong", [123, b"x.budget", "", True, "\0x", "a\0b"])
def test_what_is_no_path_is_refused_by_name(tmp_path, monkeypatch, wrong):
    monkeypatch.chdir(tmp_path)
    for begin in (lambda: PrivacyAccountant(**THREE, path=wrong), lambda: PrivacyAccountant.open(wrong)):
        with pytest.raises((TypeError, ValueError)) as error:
            begin()
        assert str(error.value).startswith(f"path={wrong!r} is not valid; give a string")
    assert os.listdir(tmp_path) == []


def test_an_interrupt_while_reading_leaves_nothing_half_entered(path, budget, monkeypatch):
    for _ in range(2):
        budget.spend(THIRD)
    elsewhere, original = fresh(path), _ledger.Ledger.add

    def interrupted(ledger, charge):
        original(ledger, charge)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_ledger.Ledger, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            elsewhere.spend(THIRD)
    assert len(elsewhere.history) == 2
    assert (admitted(elsewhere, THIRD), admitted(elsewhere, THIRD)) == (1, 0)


def test_memory_needs_no_database():
    code = "import skdp, sys; a = skdp.PrivacyAccountant(1.0, 1e-5); a.verify(); print('sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_verify_in_memory():
    accountant = PrivacyAccountant()
    assert accountant.verify() == 0
    accountant.spend(STEP)
    noted = accountant.head
    accountant.spend(STEP)
    assert accountant.verify(head=noted) == 2
    with pytest.raises(BudgetFileError, match="head='x'"):
        accountant.verify(head="x")


def test_one_lock_for_all_logs():
    """A fork takes it first; a second lock could be held by a thread that the child does not have."""
    assert _sqlite.LOCK is _log.LOCK is _store.LOCK


# --- priced without a lock --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_file", [False, True])
def test_nothing_is_priced_while_a_lock_is_held(path, monkeypatch, in_file):
    """First charges, later ones, refusals, balances and raises: each price is computed while others can go on."""
    from skdp.accounting import methods as _methods
    from skdp.accounting.ledger import affordable as _affordable
    from skdp.accounting.ledger import filters as _filters

    held, begun = [], []

    def watched(module, name):
        original = getattr(module, name)

        def price(*arguments, **options):
            held.append(_log.LOCK._is_owned())
            begun.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, price)

    for module, name in (
        (_filters, "rdp"),
        (_filters, "gaussian_mu"),
        (_ledger, "joint_price"),
        (_methods, "pld_epsilon"),
    ):
        watched(module, name)
    watched(_affordable, "joint_price")
    for cached in (_filters._renyi_cost, _filters.rule_for, _filters.first_rule, _filters._filters, _methods._epsilon):
        cached.cache_clear()
    accountant = PrivacyAccountant(3.0, 1e-5, path=path if in_file else None)
    for event in (GAUSS, FIT, LaplaceDpEvent(40.0)):
        accountant.check(event)
        accountant.spend(event)
    with pytest.raises(BudgetExceededError):
        accountant.spend(LaplaceDpEvent(0.3))
    accountant.raise_ceiling(8.0)
    accountant.spend(LaplaceDpEvent(41.0))
    str(accountant), repr(accountant), accountant.remaining(), accountant.remaining(FIT)
    assert set(begun) == {"rdp", "gaussian_mu", "joint_price", "pld_epsilon"}
    assert not any(held)


def interfering(monkeypatch, path, times):
    """Let another process charge THIRD between the price of a charge and its entry, `times` times."""
    original, accountant = _store.admit, PrivacyAccountant.open(path)
    other = _store.Store(accountant.path, accountant._log.terms, accountant._log._heads[0])
    left = [times]

    def admitted_late(ledger, entry):
        result = original(ledger, entry)
        if left[0] and entry.label == "ours":
            left[0] -= 1
            with contextlib.suppress(BudgetExceededError):
                other.append(_store.Charge(THIRD, "theirs", "zero_out"))
        return result

    monkeypatch.setattr(_store, "admit", admitted_late)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_charge_is_priced_again_if_others_charged_meanwhile(path, budget, monkeypatch, times):
    interfering(monkeypatch, path, times)
    outcome = 0
    try:
        budget.spend(THIRD, "ours")
        outcome = 1
    except BudgetExceededError:
        pass
    assert outcome == (times < 3)
    assert [charge.label for charge in fresh(path).history] == ["theirs"] * times + ["ours"] * outcome
    assert fresh(path).verify() == times + outcome <= 3


def test_it_is_not_priced_for_ever(path, monkeypatch):
    accountant = PrivacyAccountant(30.0, 1e-5, path=path)
    monkeypatch.setattr(_store, "_ATTEMPTS", 4)
    interfering(monkeypatch, path, 9)
    with pytest.raises(BudgetFileError, match="4 times while this charge was priced; nothing was charged") as error:
        accountant.spend(THIRD, "ours")
    one_line(error)
    assert [charge.label for charge in fresh(path).history] == ["theirs"] * 4


def test_a_raise_of_another_process_is_seen(path, budget):
    for _ in range(3):
        budget.spend(THIRD)
    assert admitted(budget, THIRD) == 0
    other = start('PrivacyAccountant.open(path).raise_ceiling(6.0, note="agreed")', path, "-")
    other.communicate(timeout=60)
    assert other.returncode == 0
    assert budget.epsilon == 6.0
    assert admitted(budget, THIRD) == 1
    assert budget.verify() == 5


class _Interrupts:
    """A Ctrl-C at the n-th line or return in the files that keep a ledger, or in the contexts that they enter.

    Lines that begin with `with` are left out: Python comes back to them at the end of the block, before the lock is
    released, and asks for signals only after that. The error is kept, with all that its traceback holds, as an
    interactive session keeps the last one.
    """

    FILES = (
        *(os.path.join("ledger", f"{name}.py") for name in ("log", "store", "sqlite", "admission", "ledger")),
        f"{os.sep}contextlib.py",
    )

    def __init__(self, after):
        self.left, self.error = after, None

    def __call__(self, frame, kind, argument):
        if not frame.f_code.co_filename.endswith(self.FILES):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if kind == "return" or (kind == "line" and not line.startswith("with ")):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def during(self, work):
        """Whether the work was interrupted.

        It has a thread of its own: an error raised at a return inside an ``except`` leaves what is handled there as
        handled, for as long as the thread lives, and all later errors would bear it as their context.
        """
        others = []

        def run():
            sys.settrace(self)
            try:
                work()
            except KeyboardInterrupt as error:
                self.error = error
            except BaseException as error:
                others.append(error)
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        for error in others:
            raise error
        return self.error is not None


@pytest.mark.parametrize("in_file", [False, True])
def test_an_interrupt_at_any_line_leaves_a_ledger_that_can_be_charged(path, in_file):
    """No lock stays held, nothing is half written, and what was charged is in the ledger once."""
    accountant = PrivacyAccountant(50.0, 1e-5, path=path if in_file else None)
    accountant.spend(GAUSS)
    seen, line, known = 0, 0, 1
    while True:
        line += 1
        interrupts = _Interrupts(line)
        if not interrupts.during(lambda: accountant.spend(GAUSS)):
            break
        seen += 1
        done = threading.Event()
        threading.Thread(target=lambda: (accountant.spend(GAUSS), done.set()), daemon=True).start()  # noqa: B023
        assert done.wait(30.0), f"a lock is held after an interrupt at line {line}"
        found = len(accountant.history)
        assert found in (known + 1, known + 2)
        known = found
    assert seen > 20
    assert accountant.verify() == known + 1
    assert not in_file or fresh(path).verify() == known + 1


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("charged", [0, 1, 2])
def test_an_interrupt_at_any_line_leaves_no_entry_in_part(tmp_path, in_file, charged):
    """What is counted, and what the first charge fixes, is what the entries say, as in a ledger read from them."""
    line, interrupted = 0, True
    while interrupted:
        line += 1
        accountant = PrivacyAccountant(50.0, 1e-5, path=tmp_path / f"{line}.budget" if in_file else None)
        for _ in range(charged):
            accountant.spend(GAUSS, adjacency="replace_one")
        interrupted = _Interrupts(line).during(lambda: accountant.spend(GAUSS, adjacency="replace_one"))  # noqa: B023
        found = accountant._log.read()
        again = _ledger.Ledger(found.terms)
        for entry in found.entries:
            again.add(entry)
        assert len(found.entries) in (charged, charged + 1)
        for name in ("adjacency", "rule", "shape", "counts", "event", "_size"):
            assert getattr(found, name) == getattr(again, name), f"{name} after an interrupt at line {line}"
    assert line > 20


# --- file systems without hard links ----------------------------------------------------------------------------------

NO_LINKS = """
import errno, os
def no_link(*arguments, **options):
    raise OSError(errno.EPERM, "Operation not permitted")
os.link = no_link
"""


@pytest.mark.parametrize("how", [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, None])
def test_a_file_is_made_without_hard_links(tmp_path, path, monkeypatch, how):
    def no_link(*arguments):
        raise OSError(how, os.strerror(how))

    if how is None:
        monkeypatch.delattr(os, "link")
    else:
        monkeypatch.setattr(os, "link", no_link)
    accountant = PrivacyAccountant(**THREE, path=path)
    accountant.spend(THIRD)
    assert fresh(path).verify() == 1
    assert os.listdir(tmp_path) == ["census.budget"]
    with pytest.raises(ValueError, match="not written over"):
        PrivacyAccountant.from_json(accountant.to_json(), resume=True, path=path)


def test_other_errors_of_links_are_told(path, monkeypatch):
    def no_link(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(BudgetFileError, match="cannot be used") as error:
        PrivacyAccountant(**THREE, path=path)
    one_line(error)
    assert not os.path.exists(path)


def test_scripts_that_create_the_file_at_once_share_it_without_hard_links(tmp_path, path):
    found = together(tmp_path, path, NO_LINKS + CREATE, 6, 2)
    assert sum(found) == PrivacyAccountant.open(path).verify() == 3
    assert sorted(os.listdir(tmp_path)) == ["census.budget", "go"]


DIES_COPYING = (
    NO_LINKS
    + """
fsync = os.fsync
def dying(number):
    fsync(number)
    if os.path.exists(path) and os.path.samestat(os.fstat(number), os.stat(path)):
        os.kill(os.getpid(), 9)
os.fsync = dying
PrivacyAccountant(2.0, 1e-5, path=path)
"""
)


def test_death_while_the_file_is_copied_leaves_none_that_can_be_charged(path, rows):
    child = start(DIES_COPYING, path, "-")
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert pathlib.Path(path).read_bytes()[:100] == bytes(100)
    refused(path, rows, "not a budget file|damaged")
    with pytest.raises(BudgetFileError, match=r"not a budget file|damaged"):
        PrivacyAccountant(**THREE, path=path)


def test_who_comes_while_the_file_is_copied_waits_for_it(path):
    PrivacyAccountant(**THREE, path=path + ".made")
    content = pathlib.Path(path + ".made").read_bytes()
    pathlib.Path(path).touch()
    finishing = threading.Timer(0.2, lambda: pathlib.Path(path).write_bytes(content))
    finishing.start()
    assert PrivacyAccountant.open(path).remaining(THIRD) == 3
    finishing.join()


# --- paths ------------------------------------------------------------------------------------------------------------


def test_a_path_is_text(tmp_path):
    for path in (b"census.budget", 3, ""):
        for make in (lambda path: PrivacyAccountant(1.0, 1e-5, path=path), PrivacyAccountant.open):
            with pytest.raises(TypeError, match=r"path=|expected str") as error:
                make(path)
            assert "\n" not in str(error.value)
    assert not (tmp_path / "census.budget").exists()


def test_what_an_accountant_parameter_stands_for(tmp_path, path, budget, monkeypatch):
    from skdp.accounting import resolve_accountant

    budget.spend(THIRD)
    monkeypatch.chdir(tmp_path)
    assert resolve_accountant(None) is None
    assert resolve_accountant(budget) is budget
    for value in (path, pathlib.Path(path), "census.budget", "./census.budget"):
        found = resolve_accountant(value)
        assert found.path == path
        assert found.history == budget.history
    with pytest.raises(BudgetFileError, match=r"python -m skdp\.budget create .* --epsilon E --delta D") as error:
        resolve_accountant("cen sus.budget")
    assert f"'{tmp_path}/cen sus.budget'" in str(error.value)
    assert os.listdir(tmp_path) == ["census.budget"]
    for value, kind in (
        (3, TypeError),
        (b"census.budget", TypeError),
        (PrivacyAccountant, TypeError),
        ("", ValueError),
    ):
        with pytest.raises(kind, match="accountant="):
            resolve_accountant(value)
