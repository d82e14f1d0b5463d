"""Threads that share the tasks of a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from joblib import cpu_count
from threadpoolctl import threadpool_info

_SHARING_PAYS = 1 << 22  # multiplications above which waking a thread costs less than it saves


def count_usable_threads() -> int:
    """Return how many threads can be at work: the processors of this process, by affinity and the quota of its group.

    No more than BLAS may use, so that ``OMP_NUM_THREADS``, joblib's limit in workers and `threadpoolctl` hold here too.
    """
    limits = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(1, min([int(cpu_count()), *limits]))


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
        self._others = (count_usable_threads() if n_threads is None else n_threads) - 1
        self._pool = ThreadPoolExecutor(self._others) if self._others else None

    def share(self, run: Callable[[Any], None], tasks: Iterable[Any], size: int) -> None:
        """Call `run` with each of the tasks. Tasks of few multiplications, `size` in all, are not shared."""
        left = deque(tasks)

        def work() -> None:
            while True:
                try:
                    task = left.popleft()
                except IndexError:
                    return
                run(task)

        if self._pool is None or size < _SHARING_PAYS:
            work()
            return
        helping = [self._pool.submit(work) for _ in range(min(self._others, len(left) - 1))]
        try:
            work()
        finally:
            left.clear()  # after an error or an interrupt nobody starts another task
            for each in helping:
                if not each.cancel():
                    each.result()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


__all__ = ["Crew", "count_usable_threads"]
