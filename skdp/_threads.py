"""How many threads BLAS has, and a fit may have."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController


class _Limit:
    """A number of threads that somebody keeps BLAS to, for as long as this object lives."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads


_LOCK = threading.Lock()
_LIMITS: weakref.WeakSet[_Limit] = weakref.WeakSet()  # weak: one that an interrupt kept from leaving is not for ever
_UNLIMITED: dict[Any, int] = {}  # the libraries that are limited, and how many threads each has without that


def blas_within_quota() -> AbstractContextManager[None]:
    """Within it, BLAS has no more threads than the process has processors, by affinity and the quota of its group.

    BLAS counts the processors of the machine. In a container with a quota its threads, which wait for each other awake,
    spend most of it on waiting. The limit holds for the process.

    The number is fixed before a row is read, and is not chosen by timings: BLAS promises no equal bits for different
    numbers of threads, and how long a product takes may depend on rows.
    """
    return _at_most(usable_processors())


def single_threaded_blas() -> AbstractContextManager[None]:
    """Return a context in which BLAS uses one thread a call: threads of our own call it, or there is little to share.

    BLAS's threads wait for one another in each call, for milliseconds where another process is at work. The limit holds
    for the process.
    """
    return _at_most(1)


@contextmanager
def _at_most(n_threads: int) -> Iterator[None]:
    """The least number that anybody asks for holds, in all threads of this process; the last to leave lifts it."""
    limit = _Limit(n_threads)
    try:
        with _LOCK:
            _LIMITS.add(limit)
            _set_threads()
        yield
    finally:
        with _LOCK:
            _LIMITS.discard(limit)
            _set_threads()


def _set_threads() -> None:
    """Also where the number seems to be right already: others may have changed it, or an interrupt kept us from it."""
    most = min((each.n_threads for each in _LIMITS), default=None)
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
    """The BLAS libraries of this process; to look for them takes milliseconds."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [each for each in found if each.num_threads is not None]


def blas_threads() -> int:
    """Return how many threads BLAS has."""
    return max((each.num_threads for each in _libraries()), default=1)


def usable_processors() -> int:
    """Processors of this process, by affinity and the quota of its group, both versions of cgroups."""
    return max(1, int(cpu_count()))


def count_usable_threads() -> int:
    """Return how many threads can be at work: no more than processors are usable, nor than BLAS may use.

    ``OMP_NUM_THREADS``, joblib's limit in workers and `threadpoolctl` therefore hold for other threads too.
    """
    return max(1, min([usable_processors(), *(each.num_threads for each in _libraries())]))


__all__ = [
    "blas_threads",
    "blas_within_quota",
    "count_usable_threads",
    "single_threaded_blas",
    "usable_processors",
]
