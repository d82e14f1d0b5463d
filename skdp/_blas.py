"""How many threads BLAS has, and a fit may have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

_LIMITED = threading.Lock()


@contextmanager
def blas_within_quota() -> Iterator[None]:
    """Within it, BLAS has no more threads than the process has processors, by affinity and the quota of its group.

    BLAS counts the processors of the machine. In a container with a quota its threads, which wait for each other awake,
    spend most of it on waiting. The limit holds for the process. Of several fits at a time the first sets it, and takes
    it back when it leaves.

    The number is fixed before a row is read, and is not chosen by timings: BLAS promises no equal bits for different
    numbers of threads, and how long a product takes may depend on rows.
    """
    most, limits = usable_processors(), {}
    for library in _libraries():
        if library["num_threads"] > most:
            limits[library["prefix"]] = most
    if not limits or not _LIMITED.acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(limits):
            yield
    finally:
        _LIMITED.release()


@cache
def _controllers() -> Any:
    """The BLAS libraries of this process; to look for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


class _SingleThread:
    """Context in which BLAS has one thread in all threads of this process."""

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:  # the limit is the process's: the last to leave lifts it
            if not self._n_inside:
                self._limit = _controllers().limit(limits=1)
            self._n_inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limit.restore_original_limits()


_SINGLE_THREAD = _SingleThread()


def single_threaded_blas() -> AbstractContextManager[None]:
    """Return a context in which BLAS uses one thread a call: threads of our own call it, or there is little to share.

    BLAS's threads wait for one another in each call, for milliseconds where another process is at work.
    """
    return _SINGLE_THREAD


def blas_threads() -> int:
    """Return how many threads BLAS has."""
    return max((each.num_threads for each in _controllers().lib_controllers), default=1)


def usable_processors() -> int:
    """Processors of this process, by affinity and the quota of its group, both versions of cgroups."""
    return max(1, int(cpu_count()))


def count_usable_threads() -> int:
    """Return how many threads can be at work: no more than processors are usable, nor than BLAS may use.

    ``OMP_NUM_THREADS``, joblib's limit in workers and `threadpoolctl` therefore hold for other threads too.
    """
    return max(1, min([usable_processors(), *(library["num_threads"] for library in _libraries())]))


def _libraries() -> list[dict[str, Any]]:
    return [each for each in threadpool_info() if each["user_api"] == "blas" and each["num_threads"] is not None]


__all__ = [
    "blas_threads",
    "blas_within_quota",
    "count_usable_threads",
    "single_threaded_blas",
    "usable_processors",
]
