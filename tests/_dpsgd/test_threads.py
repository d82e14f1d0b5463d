"""Threads that share the tasks of a step: each task is run once, and errors and interrupts end them."""

import itertools
import threading

import numpy as np
import pytest
from combinations import over_rows
from interrupts import InterruptAt
from threadpoolctl import threadpool_info, threadpool_limits

from skdp import DPMLPClassifier
from skdp._dpsgd.models.linear import LinearGeometry, LinearModel
from skdp._dpsgd.models.network import NetworkModel
from skdp._kernels import threads
from skdp._kernels.threads import WorkerPool, count_usable_threads, single_threaded_blas

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


def test_the_least_limit_holds_and_the_last_to_leave_lifts_it():
    """Whatever the order in which they leave, and whoever else changed the number meanwhile."""
    with threadpool_limits(4, user_api="blas"):
        for narrow_leaves_first in (True, False):
            narrow, wide = threads.blas_within_quota(1), threads.blas_within_quota(3)
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
    """While it is set or lifted: the next that comes has its limit, and BLAS has its own number when that leaves."""

    def in_module(frame):
        return frame.f_code.co_filename == threads.__file__

    with threadpool_limits(2, user_api="blas"):
        for k in itertools.count(1):
            with InterruptAt(k, in_module) as interrupt, single_threaded_blas():
                pass
            if interrupt.seen < k:
                break
            with single_threaded_blas():
                assert set(blas_now()) == {1}, k
            assert set(blas_now()) == {2}, k
    assert k > 20


def test_a_fit_keeps_blas_to_the_quota_and_gives_it_back(monkeypatch):
    monkeypatch.setattr(threads, "usable_processors", lambda: 1)
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


def test_closed_model_leaves_no_thread():
    before, rows = threading.active_count(), np.ones((40_000, 5))
    with LinearModel(
        rows, np.zeros(40_000, int), 1.0, 1, LinearGeometry(2.0, True), by_lot=False, n_threads=3
    ) as model:
        model.clipped_gradient_sum(np.zeros(6), None, 1.0)
    assert threading.active_count() == before
