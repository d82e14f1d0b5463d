"""What is asked of Dask: results, and sums in a tree of a fixed order; what is said when it does not answer."""

from __future__ import annotations

import contextlib
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed

FAN_IN = 8
"""Sums that one task adds. More make fewer tasks, of a millisecond each at the scheduler, and need more memory."""

_PATIENCE = 60.0  # seconds of waiting after which a line says so
_ANSWER = "10s"  # how long the scheduler may take to say what its workers do
_RESTARTS = 3  # a restart may forget twice: what the client had asked for, and what it asked for meanwhile

Answer = TypeVar("Answer")


class Forgotten(RuntimeError):
    """The engine was restarted: it knows no result any more, and what only its workers held is gone."""


def task(function: Callable[..., Any], *given: Any) -> Delayed:
    """Return a call of a function on the engine, under a name of its own: it is never taken from a cache.

    It is also a group of its own. Of a group that grows with every step, and has few partitions below it, a scheduler
    believes that its tasks read data, gives them to any worker, and sends bound partitions after them.
    """
    name = (f"{function.__name__}-{uuid.uuid4().hex}", 0)
    return dask.delayed(function, pure=False, traverse=False)(*given, dask_key_name=name)


def constant(value: Any) -> Delayed:
    """Return a value that many tasks need and that is sent once."""
    return dask.delayed(value, pure=False, traverse=False)


def in_a_tree(add: Callable[[list[Any]], Delayed], parts: Sequence[Any]) -> list[Any]:
    """Return at most `FAN_IN` sums of parts, to be added here, in an order that no worker's speed changes.

    On workers, `FAN_IN` neighbours are added at a time. The last sum is not worth the way to one of them and back.
    """
    parts = list(parts)
    while len(parts) > FAN_IN:
        parts = [add(parts[start : start + FAN_IN]) for start in range(0, len(parts), FAN_IN)]
    return parts


def results(what: str, tasks: Sequence[Any], *, persist: bool = False) -> tuple[Any, ...]:
    """Return the results of tasks, or the tasks with their results kept where they are; see `on_engine`."""
    found: tuple[Any, ...] = on_engine(what, lambda: (dask.persist if persist else dask.compute)(*tasks))
    if persist:
        on_engine(what, lambda: settle(found))
    return found


class Asking:
    """Asks for results that depend on what is kept on workers, step after step.

    A client sends a message in 10 ms. What it says of results that are no longer needed would hold up the next tasks,
    so the last results are kept until these are sent.
    """

    def __init__(self, kept: Any) -> None:
        futures = _futures_of(kept)
        self._client = futures[0].client if futures else None
        self._last: Any = None

    def results(self, what: str, tasks: Sequence[Any]) -> tuple[Any, ...]:
        return results(what, tasks) if self._client is None else on_engine(what, lambda: self._gather(tasks))

    def _gather(self, tasks: Sequence[Any]) -> tuple[Any, ...]:
        assert self._client is not None
        self._last = self._client.compute(list(tasks))
        return tuple(self._client.gather(self._last))


def check_engine(name: str, collection: Any) -> None:
    """Refuse an engine that a fit cannot wait for, or that does not find these rows; nothing is asked of it.

    Parameters
    ----------
    name : str
        Name of the argument of ``fit``.

    Raises
    ------
    ValueError
        In one line.
    """
    try:
        scheduler = get_scheduler(collections=[collection])
    except (RuntimeError, ValueError):
        scheduler = _NONE
    if scheduler is _NONE:
        raise ValueError(
            "Dask has no scheduler that a fit can wait for: its client is asynchronous, or its setting 'scheduler' is "
            "of no known name; make the client by Client(address)."
        )
    futures = _futures_of(collection)
    if futures and futures[0].client is not getattr(scheduler, "__self__", None):
        raise ValueError(
            f"{name} is kept by a client of Dask that is not the one in use: fit within its as_current(), and with no "
            "setting 'scheduler'."
        )


_NONE: Any = object()


def settle(collections: Any) -> None:
    """Wait for what these collections keep on workers, if they do.

    A scheduler may take up a later graph before an earlier one, and cancels it if results are not known to it yet.
    """
    if futures := _futures_of(collections):
        with futures[0].client.as_current():
            sys.modules["distributed"].wait(futures)


def _futures_of(collections: Any) -> list[Any]:
    distributed = sys.modules.get("distributed")  # where it was not imported, nothing is on workers
    return [] if distributed is None else distributed.client.futures_of(collections)


def on_engine(what: str, ask: Callable[[], Any]) -> Any:
    """Return the result of a request to the engine.

    If it does not answer for a minute, a line on standard error says so.

    Raises
    ------
    Forgotten
        It was restarted.
    RuntimeError
        The engine failed. The line names the kind of the error alone: its text may quote rows.
    """
    kind: type[RuntimeError] = RuntimeError
    remedy = "see the logs of its scheduler and workers, and fit again"
    try:
        with _told_of_waiting(what):
            return ask()
    except CancelledError as error:
        kind, failure = Forgotten, type(error).__name__
        remedy = "it was restarted, and rows that were persisted are gone; persist them again, and fit again"
    except Exception as error:
        failure = type(error).__name__
    raise kind(f"{what} failed on the engine of Dask ({failure}): {remedy}.")


def despite_restarts(ask: Callable[[], Answer], restore: Callable[[], Any] | None = None) -> Answer:
    """Return ``ask()``; if the engine was restarted meanwhile, call `restore` and ask again.

    Raises
    ------
    RuntimeError
        What was asked for, or what restores it, is made of results that are gone.
    """
    message = ""
    for _ in range(_RESTARTS):
        try:
            if message and restore is not None:
                restore()
            return ask()
        except Forgotten as error:
            message = str(error)
    raise RuntimeError(message)


@contextlib.contextmanager
def _told_of_waiting(what: str) -> Iterator[None]:
    """Say on standard error that a fit waits for workers: one that was stopped, or a cluster without any, is silent.

    A fit has to wait, as workers may come back. Without a client nothing is said: the work is done in this process.
    """
    client = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "scheduler"):
        yield
        return
    notice = threading.Timer(_PATIENCE, _tell_of_waiting, (what, client))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


def _tell_of_waiting(what: str, client: Any) -> None:
    try:
        busy = client.sync(client.scheduler.processing, workers=None, callback_timeout=_ANSWER)
    except Exception:
        state = "its scheduler does not answer"
    else:
        tasks = [address for address in sorted(busy) if busy[address]]
        state = f"{len(busy)} workers, with tasks at {', '.join(tasks[:3]) or 'none'}" if busy else "it has no worker"
    print(
        f"skdp: {what} has waited for Dask for {_PATIENCE:.0f} s ({state}): see its dashboard, or interrupt the fit.",
        file=sys.stderr, flush=True,
    )  # fmt: skip
