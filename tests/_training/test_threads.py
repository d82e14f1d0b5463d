"""Threads that share the tasks of a step: each task is run once, and errors and interrupts end them."""

from __future__ import annotations

import linecache
import os
import sys
import threading

import numpy as np
import pytest
from combinations import over_rows
from threadpoolctl import threadpool_info, threadpool_limits

from skdp import DPMLPClassifier
from skdp import _threads as _blas
from skdp._threads import WorkerPool, blas_within_quota, count_usable_threads, single_threaded_blas
from skdp._training.models.network import NetworkModel

LARGE = 1 << 40


@over_rows("n_threads", [1, 2, 5])
@over_rows("n_tasks", [0, 1, 3, 200])
def test_each_task_is_run_once(n_tasks, n_threads):
    pool, run = WorkerPool(n_threads), []
    for _ in range(20):
        pool.share(run.append, range(n_tasks), LARGE)
        assert sorted(run) == list(range(n_tasks))
        run.clear()
    pool.close()


def test_tasks_are_run_side_by_side():
    """Two tasks that wait for each other end: another thread takes the second."""
    pool, both = WorkerPool(2), threading.Barrier(2, timeout=600)
    pool.share(lambda task: both.wait(), range(2), LARGE)
    pool.close()


def test_few_multiplications_stay_with_the_calling_thread():
    pool, found = WorkerPool(2), set()
    pool.share(lambda task: found.add(threading.get_ident()), range(50), 1000)
    assert found == {threading.get_ident()}


@over_rows("here", [True, False])
@over_rows("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_tasks_of_all_threads(error, here):
    """Whichever thread it is raised in: the caller sees it, and no thread is at work when it does."""
    pool, caller, both = WorkerPool(2), threading.get_ident(), threading.Barrier(2, timeout=600)
    running, begun = [], []

    def run(task):
        running.append(task)
        begun.append(task)
        try:
            if task < 2:
                both.wait()
                if (threading.get_ident() == caller) == here:
                    raise error
        finally:
            running.remove(task)

    with pytest.raises(error):
        pool.share(run, range(10_000), LARGE)
    assert running == []
    before = len(begun)
    pool.share(begun.append, [-1], LARGE)
    assert begun[before:] == [-1]
    pool.close()


def test_threads_are_no_more_than_blas_may_use():
    with threadpool_limits(1, user_api="blas"):
        assert count_usable_threads() == 1


def test_threads_are_no_more_than_the_processors_of_the_process(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # of joblib, which counts affinity and quotas too
    assert count_usable_threads() == 1


def blas_now():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_keeps_to_the_quota_while_a_fit_runs(monkeypatch):
    """Not one thread more for those that had fewer, and all is as before after an error too."""
    with threadpool_limits(2, user_api="blas"):
        for most, expected in ((1, 1), (2, 2), (64, 2)):
            monkeypatch.setattr(_blas, "usable_processors", lambda most=most: most)
            with blas_within_quota():
                assert set(blas_now()) == {expected}
            assert set(blas_now()) == {2}
            with pytest.raises(KeyboardInterrupt), blas_within_quota():
                raise KeyboardInterrupt
            assert set(blas_now()) == {2}


def test_the_least_limit_holds_and_the_last_to_leave_lifts_it():
    """Whatever the order in which they leave, and whoever else changed the number meanwhile."""
    with threadpool_limits(4, user_api="blas"):
        for narrow_leaves_first in (True, False):
            narrow, wide = _blas._at_most(1), _blas._at_most(3)
            wide.__enter__()
            assert set(blas_now()) == {3}
            with threadpool_limits(2, user_api="blas"):
                narrow.__enter__()
                assert set(blas_now()) == {1}
            first, last, left = (narrow, wide, 3) if narrow_leaves_first else (wide, narrow, 1)
            first.__exit__(None, None, None)
            assert set(blas_now()) == {left}
            last.__exit__(None, None, None)
            assert set(blas_now()) == {4}


def test_an_interrupt_at_any_line_leaves_no_limit_behind():
    """While it is set or lifted: the next that comes has its limit, and BLAS has its own number when that leaves.

    Python delivers no interrupt between the body of ``with lock`` and the release, where a tracer could raise one.
    """
    n_points, point = 0, 0
    with threadpool_limits(2, user_api="blas"):
        while True:
            point, left = point + 1, [point + 1]

            def interrupt(frame, kind, argument, left=left):
                if frame.f_code.co_filename != _blas.__file__:
                    return None
                line = linecache.getline(_blas.__file__, frame.f_lineno).strip()
                left[0] -= kind == "line" and line != "with _LOCK:"
                if left[0] == 0:
                    left[0] = -1
                    raise KeyboardInterrupt
                return interrupt

            before = sys.gettrace()
            try:
                sys.settrace(interrupt)
                with single_threaded_blas():
                    pass
                sys.settrace(before)
                break
            except KeyboardInterrupt:
                n_points += 1
            finally:
                sys.settrace(before)
            with single_threaded_blas():
                assert set(blas_now()) == {1}, f"after an interrupt at point {point}"
            assert set(blas_now()) == {2}, f"after an interrupt at point {point}"
    assert n_points > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_has_no_limit_of_threads_that_it_does_not_have():
    """One of them holds a limit, and one the lock."""
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with single_threaded_blas():
            inside.set()
            leave.wait()

    with threadpool_limits(2, user_api="blas"):
        other = threading.Thread(target=hold)
        other.start()
        inside.wait()
        with _blas._LOCK:
            child = os.fork()
        if child == 0:
            with _blas._at_most(3):
                found = set(blas_now())
            os._exit(0 if found | set(blas_now()) == {2} else 1)
        leave.set()
        other.join()
        assert os.waitpid(child, 0)[1] == 0


def test_a_fit_keeps_blas_to_the_quota_and_gives_it_back(monkeypatch):
    monkeypatch.setattr(_blas, "usable_processors", lambda: 1)
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    found = []
    monkeypatch.setattr(
        NetworkModel, "draw_lot", lambda self, *arguments: found.append(set(blas_now())) or np.arange(5)
    )
    with threadpool_limits(2, user_api="blas"):
        DPMLPClassifier((4,), classes=[0, 1], epsilon=1.0, delta=1e-5, max_iter=1).fit(X, y)
        assert set(blas_now()) == {2}
    assert found
    assert all(each == {1} for each in found)


def test_fits_at_the_same_time_share_the_limit(monkeypatch):
    """One that comes and goes meanwhile, in a thread of its own, changes none."""
    monkeypatch.setattr(_blas, "usable_processors", lambda: 1)
    found = []

    def fit():
        with blas_within_quota():
            found.append(set(blas_now()))

    with threadpool_limits(2, user_api="blas"):
        with blas_within_quota():
            other = threading.Thread(target=fit)
            other.start()
            other.join()
            fit()
            found.append(set(blas_now()))
        found.append(set(blas_now()))
    assert found == [{1}, {1}, {1}, {2}]
