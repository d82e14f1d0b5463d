"""Iterate on a thread of its own: the next item is made while the present one is used."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")

IN_FLIGHT = 3
"""Items that exist at a time, of which one is used, one waits and one is made: this many buffers circulate."""

_POLL = 0.05  # seconds between looks at whether the consumer has left


def read_ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """Yield items that a thread makes ahead, in their order; close the iterator to end the thread.

    An item may be written over as soon as the next is asked for. What the thread raises is raised here. The thread ends
    too when nobody holds the iterator any more, as after an interrupt before it could be closed.
    """
    waiting: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(1)
    left = threading.Event()  # which the thread does not keep alive
    given = items, waiting, weakref.ref(left)
    thread = threading.Thread(target=_make, args=given, name="skdp-reader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        left.set()
        thread.join()


_END: Any = object()


def _make(items: Iterable[Any], waiting: queue.Queue[Any], left: weakref.ref[threading.Event]) -> None:
    try:
        for item in items:
            if not _hand_over((item, None), waiting, left):
                return
        _hand_over((_END, None), waiting, left)
    except BaseException as error:
        _hand_over((None, error), waiting, left)


def _hand_over(found: Any, waiting: queue.Queue[Any], left: weakref.ref[threading.Event]) -> bool:
    """Put what was made; False if the consumer has left."""
    while (event := left()) is not None and not event.is_set():
        del event
        try:
            waiting.put(found, timeout=_POLL)
            return True
        except queue.Full:
            continue
    return False
