"""What is asked of Dask: results, and sums in a tree of a fixed order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import dask
from dask.delayed import Delayed

FAN_IN = 8
"""Sums that one task adds. More make fewer tasks, of a millisecond each at the scheduler, and need more memory."""


def task(function: Callable[..., Any], *given: Any) -> Delayed:
    """Return a call of a function on the engine, under a name of its own: it is never taken from a cache."""
    return dask.delayed(function, pure=False, traverse=False)(*given)


def constant(value: Any) -> Delayed:
    """Return a value that many tasks need and that is sent once."""
    return dask.delayed(value, pure=False, traverse=False)


def in_a_tree(add: Callable[[list[Any]], Delayed], parts: Sequence[Any]) -> Any:
    """Return the sum of parts, added by `FAN_IN` neighbours at a time, in an order that no worker's speed changes."""
    parts = list(parts)
    while len(parts) > 1:
        parts = [add(parts[start : start + FAN_IN]) for start in range(0, len(parts), FAN_IN)]
    return parts[0]


def results(what: str, tasks: Sequence[Any], *, persist: bool = False) -> tuple[Any, ...]:
    """Return the results of tasks, or the tasks with their results kept where they are; see `on_engine`."""
    found: tuple[Any, ...] = on_engine(what, lambda: (dask.persist if persist else dask.compute)(*tasks))
    if persist:
        on_engine(what, lambda: settle(found))
    return found


def settle(collections: Any) -> None:
    """Wait for what these collections keep on workers, if they do.

    A scheduler may take up a later graph before an earlier one, and cancels it if results are not known to it yet.
    """
    distributed = sys.modules.get("distributed")  # where it was not imported, nothing is on workers
    if distributed is not None and (futures := distributed.client.futures_of(collections)):
        with futures[0].client.as_current():
            distributed.wait(futures)


def on_engine(what: str, ask: Callable[[], Any]) -> Any:
    """Return what the engine is asked for.

    Raises
    ------
    RuntimeError
        The engine failed. The line names the kind of the error alone: its text may quote rows.
    """
    try:
        return ask()
    except Exception as error:
        failure = type(error).__name__
    raise RuntimeError(
        f"{what} failed on the engine of Dask ({failure}): see the logs of its scheduler and workers, and fit again."
    )


__all__ = ["FAN_IN", "constant", "in_a_tree", "on_engine", "results", "settle", "task"]
