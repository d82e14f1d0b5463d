"""What is asked of Dask: results, and sums in a tree of a fixed order; what is said when it does not answer.

Which lazy collections a fit accepts: those whose every row comes from one row of the source, each time the same.

Dask computes a graph anew whenever it needs the rows, so ``X - X.mean()`` or a random array would be part of the fit:
one row would act on many, or every step would see other people. Accepted are collections that are in memory already,
of which it is the user's word that they were made row by row, and graphs of which every task is listed here: readers
of a source, and functions of one row each, of one partition. What is not listed is rejected.
"""

from __future__ import annotations

import contextlib
import operator
import os
import sys
import threading
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any, TypeVar

import dask
import numpy as np
from dask.base import get_scheduler
from dask.core import flatten
from dask.delayed import Delayed
from scipy import special

FAN_IN = 8
"""Sums that one task adds. More make fewer tasks, of a millisecond each at the scheduler, and need more memory."""

_PATIENCE = 60.0  # seconds of waiting after which a line says so
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

    On workers, `FAN_IN` neighbors are added at a time. The last sum is not worth the way to one of them and back.
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
    """Reject an engine that a fit cannot wait for, or that does not find these rows; nothing is asked of it.

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
        raise ValueError(
            "Dask has no scheduler that a fit can wait for: the client is asynchronous, or the setting 'scheduler' "
            "has an unknown value. Create the client with Client(address)."
        ) from None
    futures = _futures_of(collection)
    if futures and futures[0].client is not getattr(scheduler, "__self__", None):
        raise ValueError(
            f"{name} belongs to a Dask client that is not active. Call fit inside client.as_current(), without the "
            "setting 'scheduler'."
        )


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
    remedy = "See the logs of its scheduler and workers, and fit again"
    try:
        with _reporting_a_wait(what):
            return ask()
    except CancelledError as error:
        kind, failure = Forgotten, type(error).__name__
        remedy = "It was restarted, and persisted data are lost. Persist them again, and fit again"
    except Exception as error:
        failure = type(error).__name__
    raise kind(f"Dask failed while {what} ({failure}). {remedy}.")


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
def _reporting_a_wait(what: str) -> Iterator[None]:
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
        busy = client.sync(client.scheduler.processing, workers=None, callback_timeout="10s")
    except Exception:
        state = "its scheduler does not answer"
    else:
        tasks = [address for address in sorted(busy) if busy[address]]
        state = f"{len(busy)} workers, with tasks at {', '.join(tasks[:3]) or 'none'}" if busy else "it has no worker"
    print(
        f"skdp: {what} has waited for Dask for {_PATIENCE:.0f} s ({state}). See the Dask dashboard, or interrupt the "
"fit.",
        file=sys.stderr, flush=True,
    )  # fmt: skip


_EXPRESSIONS = "dask.dataframe.dask_expr."
_SOURCES = frozenset({
    "io.io.FromPandas", "io.io.FromArray", "io.parquet.ReadParquetFSSpec", "io.parquet.ReadParquetPyarrowFS",
})  # fmt: skip
_ROW_WISE = frozenset({
    "_expr.Projection", "_expr.AsType", "_expr.RenameFrame", "_expr.RenameSeries", "_expr.ColumnsSetter", "_expr.Drop",
    "_expr.ToFrame", "_expr.ArrowStringConversion",
})  # fmt: skip

_ARITHMETIC = frozenset({
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.abs,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
})  # fmt: skip
_GETTERS = frozenset({"getter", "getter_nofancy", "getter_inline"})


def check_graph(name: str, collection: Any) -> None:
    """Reject a collection of Dask that is neither in memory nor known to be made row by row.

    Parameters
    ----------
    name : str
        Name of the argument of ``fit``.
    collection : dask array, dataframe or series
        Nothing of it is computed.

    Raises
    ------
    TypeError
        It is no array, dataframe or series.
    ValueError
        In one line, with the operation that is not known.
    """
    if is_frame(collection):
        fault = _fault_of_expression(collection.expr)
    elif f"{type(collection).__module__}.{type(collection).__name__}" != "dask.array.core.Array":
        raise TypeError(f"{name} must be a dask array, dataframe or series, got a Dask {type(collection).__name__}.")
    else:
        fault = _fault_of_tasks(dict(collection.__dask_graph__()), flatten(collection.__dask_keys__()))
    if fault:
        raise ValueError(
            f"{name} is a lazy collection with {fault}, which may let one row influence others or change between "
            f"steps. If the operation works row by row, pass {name}.persist()."
        )


def is_frame(collection: Any) -> bool:
    """Whether a collection of Dask is a dataframe or a series."""
    return type(collection).__module__ == f"{_EXPRESSIONS}_collection"


# --- dataframes, which are trees of expressions ---


def _fault_of_expression(expression: Any) -> str:
    """Return what is not known to be row-wise in a chain of expressions; "" if nothing is."""
    while True:
        kind = f"{type(expression).__module__}.{type(expression).__qualname__}".removeprefix(_EXPRESSIONS)
        below = expression.dependencies()
        if kind == "io.io.FromGraph":
            return "" if all(map(_is_data, expression.operand("layer").values())) else "tasks of another graph"
        if kind in _SOURCES and not below:
            chosen = [name for name in ("filters", "_partitions") if _operand(expression, name) is not None]
            paths = _operand(expression, "path")  # what lies in a folder is not looked at
            files = [os.path.realpath(os.fspath(path)) for path in paths] if isinstance(paths, list | tuple) else []
            if len(set(files)) < len(files):
                return "duplicate rows"
            return f"{chosen[0].strip('_')} at the source" if chosen else ""
        if kind not in _ROW_WISE or len(below) != 1:
            return f"the operation {type(expression).__name__}"
        (expression,) = below


def _operand(expression: Any, name: str) -> Any:
    return expression.operand(name) if name in expression._parameters else None


# --- arrays, which are graphs of tasks ---


def _is_data(value: Any) -> bool:
    """Whether a value of a graph is a result in memory, here or on workers."""
    kind = f"{type(value).__module__}.{type(value).__name__}"
    if kind == "dask._task_spec.DataNode":
        return _is_data(value.value)
    return kind == "distributed.client.Future" or isinstance(value, np.ndarray) or hasattr(value, "iloc")


def _fault_of_tasks(graph: dict[Hashable, Any], keys: Iterable[Hashable]) -> str:
    """Return what is not known to be row-wise in the chain of tasks behind each key, or a source that is used twice."""
    parts: dict[Hashable, list[tuple[int, int]]] = {}
    for key in keys:
        fault, source, span = _follow(graph, key)
        if fault:
            return fault
        parts.setdefault(source, []).append(span)
    for spans in parts.values():
        spans.sort()
        if any(start < stop for (_, stop), (start, _) in pairwise(spans)):
            return "duplicate rows"
    return ""


_ALL = (0, 1 << 62)


def _follow(graph: dict[Hashable, Any], key: Hashable) -> tuple[str, Hashable, tuple[int, int]]:
    """Follow a chain of tasks to its source: what is wrong with it, the key of the source, and the rows taken of it."""
    span = _ALL
    while True:
        if key not in graph:
            return "a task outside its graph", key, span
        task = graph[key]
        if _is_data(task):
            return "", key, span
        if _is_key(graph, task):  # another name of a chunk
            key = task
            continue
        below: tuple[Hashable, ...] = tuple(getattr(task, "dependencies", ()))
        if len(below) != 1:
            return f"the operation {_name_of(task)}", key, span
        (key,) = below
        if type(task).__name__ == "Alias":
            continue
        if not _is_plain(task):
            return f"the operation {_name_of(task)}", key, span
        if getattr(task.func, "__name__", "") in _GETTERS and _is_from(task.func, "dask.array.core"):
            rows = _rows_taken(task)
            if rows is None or not isinstance(graph.get(key), np.ndarray):
                return "a source that is not a NumPy array", key, span
            span = rows
        elif not _is_row_wise(task):
            return f"the operation {_name_of(task)}", key, span


def _is_key(graph: dict[Hashable, Any], task: Any) -> bool:
    try:
        return isinstance(task, tuple) and task in graph
    except TypeError:  # a task that holds a list
        return False


def _is_plain(task: Any) -> bool:
    """Whether a task calls one function, with nothing to compute among its arguments."""
    given = (*getattr(task, "args", ()), *getattr(task, "kwargs", {}).values())
    nodes = [each for each in given if type(each).__module__ == "dask._task_spec"]
    return type(task).__name__ == "Task" and all(
        _is_reference(each) or type(each).__name__ == "DataNode" for each in nodes
    )


def _is_row_wise(task: Any) -> bool:
    """Whether a task with one chunk as its argument gives each of its rows from one row of the chunk."""
    function = task.func
    if _is_from(function, "dask.array.chunk") and function.__name__ == "getitem":
        index = _literal(task.args[1])
        return isinstance(index, tuple) and isinstance(index[0], slice)
    if _is_from(function, "dask.array.chunk") and function.__name__ == "astype":
        return True
    numbers = all(np.isscalar(_literal(each)) for each in task.args if not _is_reference(each)) and not task.kwargs
    if isinstance(function, np.ufunc):
        return numbers and function.signature is None and function.nout == 1 and _is_known(function)
    return numbers and (function is np.clip or (isinstance(function, Hashable) and function in _ARITHMETIC))


def _is_known(function: np.ufunc) -> bool:
    """Whether a ufunc is NumPy's or SciPy's own, and not of a function that may draw numbers or count its calls."""
    return any(getattr(module, function.__name__, None) is function for module in (np, special))


def _rows_taken(task: Any) -> tuple[int, int] | None:
    """Return the first and the last row, exclusive, that a getter takes of its source."""
    index = _literal(task.args[1])
    rows = index[0] if isinstance(index, tuple) and index else None
    if not isinstance(rows, slice) or rows.step not in (None, 1) or None in (rows.start, rows.stop):
        return None
    return int(rows.start), int(rows.stop)


def _is_reference(argument: Any) -> bool:
    return type(argument).__name__ in ("TaskRef", "Alias")


def _literal(argument: Any) -> Any:
    """Return an argument of a task that is written in the graph."""
    return argument.value if type(argument).__name__ == "DataNode" else argument


def _is_from(function: Any, module: str) -> bool:
    return getattr(function, "__module__", None) == module


def _name_of(task: Any) -> str:
    function = getattr(task, "func", None)
    return str(getattr(function, "__name__", type(task).__name__))
