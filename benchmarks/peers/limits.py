"""Part of the work only: matrix products, gathering or copying rows, normal numbers. Nobody who does all is faster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers.registry import contestant
from peers.tasks import Task


def lots_beforehand(task: Task, X: NDArray[Any], *others: NDArray[Any]) -> list[tuple[NDArray[Any], ...]]:
    """Up to eight lots of random rows, gathered, together of no more than 256 MB."""
    generator, size = np.random.default_rng(1), 4 * task.lot * X.shape[1]
    draws = [generator.integers(0, len(X), task.lot) for _ in range(max(1, min(8, (1 << 28) // size)))]
    return [(X[rows], *(each[rows] for each in others)) for rows in draws]


class Taken:
    """Lots that were gathered beforehand, in turns."""

    def __init__(self, lots: list[tuple[Any, ...]]) -> None:
        self._lots, self._n = lots, 0

    def __call__(self) -> tuple[Any, ...]:
        self._n += 1
        return self._lots[self._n % len(self._lots)]


@contestant("products", "lots", "busy", role="limit")
def products(task: Task, X: Any, y: Any) -> Any:
    """The matrix products of a forward and a backward pass, by BLAS, into arrays that are there already."""
    generator, take = np.random.default_rng(2), Taken(lots_beforehand(task, X))
    normal = lambda *shape: generator.standard_normal(shape, dtype=np.float32)  # noqa: E731
    tables = [normal(a, b) / a**0.5 for a, b in pairwise(task.widths)]
    outputs, deltas = ([normal(task.lot, b) for b in task.widths[1:]] for _ in range(2))
    sums = [np.empty_like(table) for table in tables]

    def step() -> None:
        inputs = [take()[0], *outputs]
        for layer, table in enumerate(tables):
            np.matmul(inputs[layer], table, out=outputs[layer])
        for layer in reversed(range(len(tables))):
            np.matmul(inputs[layer].T, deltas[layer], out=sums[layer])
            if layer:
                np.matmul(deltas[layer], tables[layer].T, out=deltas[layer - 1])

    return step


@contestant("X[idx]", "lots", role="limit", draws=True)
def gather(task: Task, X: Any, y: Any) -> Any:
    """NumPy's copy of as many random rows, whose numbers were drawn beforehand."""
    generator = np.random.default_rng(1)
    take = Taken([(generator.integers(0, task.n, task.lot),) for _ in range(500)])
    return lambda: X[take()[0]]


@contestant("np.copyto", "full", role="limit")
def copy(task: Task, X: Any, y: Any) -> Any:
    """A copy of the table by one call."""
    target = np.empty_like(X)
    return lambda: np.copyto(target, X)


@contestant("np.copyto, two threads", "full", role="limit")
def copy_by_two(task: Task, X: Any, y: Any) -> Any:
    """A copy of the table, half of it on each of two threads."""
    target, pool, middle = np.empty_like(X), ThreadPoolExecutor(2), len(X) // 2
    halves = [(target[:middle], X[:middle]), (target[middle:], X[middle:])]
    return lambda: list(pool.map(lambda pair: np.copyto(*pair), halves))


@contestant("default_rng, float64", "normals", role="limit")
def normals(task: Task, X: Any, y: Any) -> Any:
    """NumPy's normal numbers, which are not secret."""
    generator = np.random.default_rng(1)
    return lambda: generator.standard_normal(task.n)


@contestant("default_rng, float32", "normals", role="plain")
def short_normals(task: Task, X: Any, y: Any) -> Any:
    """The same in single precision."""
    generator = np.random.default_rng(1)
    return lambda: generator.standard_normal(task.n, dtype=np.float32)
