"""Threads that share the tasks of a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from skdp._threads import count_usable_threads

_SHARING_PAYS = 1 << 22  # multiplications above which waking a thread costs less than it saves
_END = object()


class Crew:
    """Threads that take tasks, one after the other, until none is left.

    A thread that other processes hold up takes fewer of them, and nobody waits for it but for its last one. Waiting
    threads sleep.

    Parameters
    ----------
    n_threads : int or None
        Number of threads, the calling one included. None is `count_usable_threads`.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self._n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    def share(self, run: Callable[[Any], None], tasks: Iterable[Any], size: int) -> None:
        """Call `run` with each of the tasks. Tasks of few multiplications, `size` in all, are not shared."""
        tasks = list(tasks)
        if not self.shares(size):
            for task in tasks:
                run(task)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._count() - 1)
        n_others = max(0, min(self._count(), len(tasks)) - 1)
        left: SimpleQueue[Any] = SimpleQueue()  # which gives each task to one thread, with any build of Python
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
            ended.append(True)  # after an error or an interrupt nobody starts another task
            for each in helping:
                if not each.cancel():
                    each.result()

    def shares(self, size: int) -> bool:
        """Whether tasks of so many multiplications in all are shared."""
        return size >= _SHARING_PAYS and self._count() > 1

    def _count(self) -> int:
        if self._n_threads is None:  # asked when it matters: to look for BLAS takes a millisecond
            self._n_threads = count_usable_threads()
        return self._n_threads

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


__all__ = ["Crew"]
