"""Iterate on a thread of its own: the next item is made while the present one is used."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")

IN_FLIGHT = 2
"""Items that exist at a time, of which one is used and one is made: this many buffers circulate."""

_END: Any = object()


def read_ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """Yield items that a thread makes ahead, in their order; close the iterator to end the thread.

    An item may be written over as soon as the next is asked for. What the thread raises is raised here. The thread ends
    too when nobody holds the iterator any more, as after an interrupt before it could be closed.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1, "skdp-reader") as thread:
        coming = thread.submit(next, iterator, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, iterator, _END)
            yield item
