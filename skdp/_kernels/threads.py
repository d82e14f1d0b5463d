"""Number of threads of BLAS and of a fit, and a thread pool for the tasks of a step."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from queue import SimpleQueue
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController


@dataclass(eq=False)
class _Limit:
    """Limit of the number of BLAS threads for the lifetime of this object."""

    n_threads: int


_LOCK = threading.Lock()
_LIMITS: weakref.WeakSet[_Limit] = weakref.WeakSet()  # weak: one that an interrupt kept from leaving is not for ever
_UNLIMITED: dict[Any, int] = {}  # the libraries that are limited, and how many threads each has without that


@contextmanager
def blas_within_quota(n_threads: int | None = None) -> Iterator[None]:
    """Return a context in which BLAS uses at most as many threads as processors are available to the process.

    The available processors follow from the CPU affinity and the cgroup quota. BLAS counts the processors of the
    machine, so in a container with a quota its busy-waiting threads would use most of the quota. The smallest active
    limit applies to all threads of this process until the last context ends.

    The number is fixed before a row is read and does not depend on timings. BLAS results can differ in the last bits
    for different numbers of threads, and the duration of a product can depend on private rows.
    """
    limit = _Limit(usable_processors() if n_threads is None else n_threads)
    try:
        with _LOCK:
            _LIMITS.add(limit)
            _set_threads()
        yield
    finally:
        with _LOCK:
            _LIMITS.discard(limit)
            _set_threads()


def single_threaded_blas() -> AbstractContextManager[None]:
    """Return a context in which BLAS uses one thread per call, for calls from several threads and for small products.

    BLAS threads wait for one another in each call, for milliseconds if other processes are running. The limit applies
    to the whole process.
    """
    return blas_within_quota(1)


def _set_threads() -> None:
    """Also where the number seems to be right already: others may have changed it, or an interrupt kept us from it."""
    most = min(map(attrgetter("n_threads"), _LIMITS), default=None)
    if most is None:
        for library, own in _UNLIMITED.items():
            library.set_num_threads(own)
        _UNLIMITED.clear()
        return
    for library in _libraries():
        own = _UNLIMITED.setdefault(library, library.num_threads)
        library.set_num_threads(min(own, most))


def _start_again() -> None:
    """In a child: threads that held a limit or the lock do not live on in it."""
    global _LOCK
    _LOCK = threading.Lock()
    _LIMITS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)


@cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of this process, which takes milliseconds."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [each for each in found if each.num_threads is not None]


def blas_threads() -> int:
    """Return the number of BLAS threads."""
    return max((each.num_threads for each in _libraries()), default=1)


def usable_processors() -> int:
    """Return the number of available processors, by affinity and cgroup quota (v1 and v2)."""
    return max(1, int(cpu_count()))


def count_usable_threads() -> int:
    """Return the number of usable threads: at most the available processors and the limit of BLAS.

    ``OMP_NUM_THREADS``, the limit of joblib workers and `threadpoolctl` therefore apply to other threads, too.
    """
    return max(1, min([usable_processors(), *(each.num_threads for each in _libraries())]))


# --- thread pool ---

_SHARING_PAYS = 1 << 22  # multiplications above which waking a thread pays off
_END = object()


class WorkerPool:
    """Thread pool that processes a list of tasks.

    A thread that is delayed by other processes takes fewer tasks. Waiting threads sleep.

    Parameters
    ----------
    n_threads : int or None
        Number of threads, the calling one included. None is `count_usable_threads`.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self._n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    def share(self, run: Callable[[Any], None], tasks: Iterable[Any], size: int) -> None:
        """Call `run` with each task, in one thread if the total number of multiplications, `size`, is small."""
        tasks = list(tasks)
        if not self.shares(size):
            for task in tasks:
                run(task)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._count() - 1)
        n_others = max(0, min(self._count(), len(tasks)) - 1)
        left: SimpleQueue[Any] = SimpleQueue()  # thread-safe with any build of Python
        for each in (*tasks, *[_END] * (n_others + 1)):
            left.put(each)
        ended: list[bool] = []

        def work() -> None:
            while (task := left.get()) is not _END:
                if not ended:
                    run(task)

        helping = [self._pool.submit(work) for _ in range(n_others)]
        try:
            work()
        finally:
            ended.append(True)  # after an error or an interrupt, no further task is started
            for each in helping:
                if not each.cancel():
                    each.result()

    def shares(self, size: int) -> bool:
        """Return whether tasks with this total number of multiplications are shared."""
        return size >= _SHARING_PAYS and self._count() > 1

    def _count(self) -> int:
        if self._n_threads is None:  # determined on demand: finding BLAS takes a millisecond
            self._n_threads = count_usable_threads()
        return self._n_threads

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()
