"""A file is one run's until it ends: threads, other processes, kills, forks, interrupts."""

import itertools
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from interrupts import AfterStep, InterruptAt

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp._dpsgd import checkpoint
from skdp._dpsgd.checkpoint import RunLock

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(400, 5))
Y = (X[:, 0] > 0).astype(int)


def make(path, **parameters):
    return DPLogisticRegression(classes=[0, 1], max_iter=30, delta=1e-4, checkpoint=path, **parameters)


def taken(path):
    """Whether another run has the file."""
    with RunLock(path) as lock:
        try:
            lock.take()
        except ValueError as error:
            if "is in use by another run. Wait until that run ends, or pass another path" not in str(error):
                raise
            return True
    return False


def rejected_before_any_charge(path):
    accountant = PrivacyAccountant()
    with pytest.raises(
        ValueError, match=r"in use by another run. Wait until that run ends, or pass another path"
    ) as error:
        make(path, accountant=accountant).fit(X, Y)
    assert "\n" not in str(error.value)
    assert accountant.history == ()


def acting(monkeypatch, act):
    monkeypatch.setattr(DPLogisticRegression, "_make_progress", lambda *arguments: AfterStep(3, act))


def test_a_second_thread_is_rejected_before_any_charge(tmp_path, monkeypatch):
    path, training, go_on = tmp_path / "run.npz", threading.Event(), threading.Event()
    acting(monkeypatch, lambda: (training.set(), go_on.wait(600)))
    model = make(path)
    thread = threading.Thread(target=model.fit, args=(X, Y))
    thread.start()
    try:
        assert training.wait(600)
        before = sorted(tmp_path.iterdir())
        rejected_before_any_charge(path)
        assert sorted(tmp_path.iterdir()) == before  # neither swept up nor unlocked by who was rejected
        (tmp_path / "link").symlink_to(path)
        rejected_before_any_charge(tmp_path / "link")
        (tmp_path / "link").unlink()
    finally:
        go_on.set()
        thread.join()
    assert model.n_steps_ == 30
    assert list(tmp_path.iterdir()) == []
    assert make(path).fit(X, Y).n_steps_ == 30


HOLDER = """
import os, sys, time
from skdp._dpsgd.checkpoint import RunLock
with RunLock(sys.argv[1]) as lock:
    lock.take()
    if os.fork() == 0:  # the child prints, so that the fork is over
        print(os.getpid(), flush=True)
    time.sleep(120)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_second_process_is_rejected_until_first_is_killed(tmp_path):
    """A forked child of the first one does not keep the lock."""
    path, command = tmp_path / "run.npz", [sys.executable, "-c", HOLDER, str(tmp_path / "run.npz")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    try:
        rejected_before_any_charge(path)
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.kill(child, 0)  # it is there
        assert not taken(path)
    finally:
        process.kill()
        os.kill(child, signal.SIGKILL)
        process.communicate()
    make(path).fit(X, Y)
    assert list(tmp_path.iterdir()) == []


def raising(error):
    def act():
        raise error

    return act


@pytest.mark.parametrize("end", ["rejected", "killed", "interrupted", "bad rows"])
def test_lock_is_released_however_fit_ends(end, tmp_path, monkeypatch):
    """Also while the traceback is kept, as an interactive session does."""
    path, rows, clip = tmp_path / "run.npz", X, "auto"
    if end in ("killed", "interrupted"):
        acting(monkeypatch, raising({"killed": SystemExit, "interrupted": KeyboardInterrupt}[end]))
    if end == "rejected":
        clip = -1.0
    if end == "bad rows":
        rows = np.full_like(X, np.nan)
    if end == "interrupted":
        expected = pytest.warns(UserWarning, match="interrupted")
    else:
        expected = pytest.raises(SystemExit if end == "killed" else ValueError)
    with expected as kept:
        make(path, max_grad_norm=clip).fit(rows, Y)
    assert not (tmp_path / "run.npz.lock").exists()
    assert not taken(path)
    del kept


def test_the_lock_of_a_run_that_ended_meanwhile_counts_for_nothing(tmp_path, monkeypatch):
    """The file that was opened is gone by the time that it is locked: another run would make a new one beside it."""
    path, lock, first = tmp_path / "run.npz", checkpoint._lock, RunLock(tmp_path / "run.npz")
    first.take()

    def late(descriptor):
        first.release()
        lock(descriptor)

    with RunLock(path) as second:
        monkeypatch.setattr(checkpoint, "_lock", late)
        second.take()
        monkeypatch.undo()
        assert taken(path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_rejected_before_any_charge(tmp_path):
    accountant = PrivacyAccountant()
    with pytest.raises(
        ValueError, match=r"^checkpoint='.*' cannot be locked \(.*\). Pass a path in an existing"
    ) as error:
        make(tmp_path / "none" / "run.npz", accountant=accountant).fit(X, Y)
    assert "\n" not in str(error.value)
    assert accountant.history == ()


def test_an_interrupt_at_any_line_while_it_is_taken_leaves_no_lock(tmp_path):
    """The lines of `release` are left out, as nothing comes after them."""
    path = tmp_path / "run.npz"

    def counts(frame):
        return frame.f_code.co_filename == checkpoint.__file__ and frame.f_code.co_name not in ("release", "__exit__")

    for k in itertools.count(1):
        with InterruptAt(k, counts, keeps_traceback=True) as interrupt, RunLock(path) as lock:
            lock.take()
        assert not taken(path), k
        if interrupt.seen < k:
            break
    assert k > 10
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_cannot_be_removed_does_not_fail_a_fit_that_is_published(tmp_path, monkeypatch):
    path, unlink = tmp_path / "run.npz", os.unlink

    def reject(name, *given, **keywords):
        if str(name).endswith(".lock"):
            raise PermissionError(13, "Permission denied", name)
        unlink(name, *given, **keywords)

    monkeypatch.setattr(os, "unlink", reject)
    assert make(path).fit(X, Y).n_steps_ == 30
    assert [each.name for each in tmp_path.iterdir()] == ["run.npz.lock"]
    assert not taken(path)
