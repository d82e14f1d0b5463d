"""What is timed: tasks, their shapes and their rows, which are the same in every process."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Task(NamedTuple):
    """One section of the table.

    Attributes
    ----------
    title : str
    kind : str
        Contestants name the kinds that they take: "lots" (a step of DP-SGD on a lot), "busy" (the same on a busy
        machine), "full" (one on all rows), "stored" (the same, from a file), "dask" (the same, by a cluster), "pca",
        "fit" (by default), "normals", "start" (of a process) and "calls" (of skdp alone).
    n : int
        Rows; of "normals", numbers.
    widths : tuple of int
        Columns, hidden units, outputs; one output is the logistic loss of two classes.
    lot : int
        Expected rows of a step.
    values : {"normal", "uniform", "coded"}
        Of the columns; "coded" are 0 and 1, so rows of few columns repeat.
    dtype : str
    limit : str
        Contestant to which the others are compared.
    times : float or None
        Target: at most so many times the limit.
    at_most : float or None
        Target: at most so many ms.
    beside : int
        Processes that keep a core busy meanwhile.
    of : str
        Contestant that the target is of, where it is not the fastest one of skdp.
    idle : str
        Task that is the same without them; the target is then in times of that.
    unit : {"step", "fit", "draw", "start", "call"}
        What a figure is of.
    """

    title: str
    kind: str
    n: int = 0
    widths: tuple[int, ...] = ()
    lot: int = 0
    values: str = "normal"
    dtype: str = "float32"
    limit: str = "products"
    times: float | None = None
    at_most: float | None = None
    beside: int = 0
    of: str = ""
    idle: str = ""
    unit: str = "step"

    @property
    def has_lots(self) -> bool:
        return self.kind in ("lots", "busy")

    @property
    def n_classes(self) -> int:
        return max(2, self.widths[-1])

    @property
    def rate(self) -> float:
        """The sampling rate of Poisson sampling."""
        return self.lot / self.n


_SMALL = Task("Network 108-64-2, lot 256", "lots", 48_842, (108, 64, 1), 256, "coded", at_most=0.12)
_MIDDLE = Task("Network 60-1000-10, lot 600", "lots", 60_000, (60, 1000, 10), 600, times=1.5)
_LARGE = Task("Network 784-1000-10, lot 2,048", "lots", 60_000, (784, 1000, 10), 2048, times=1.3)
_FULL = Task(
    "Full batch, 1,000,000 x 11",
    "full",
    1_000_000,
    (11, 1),
    values="uniform",
    limit="np.copyto, two threads",
    times=1.4,
)
_PCA = Task("PCA, 60,000 x 784, 60 components", "pca", 60_000, (784, 60), limit="scikit-learn PCA", unit="fit")
_FIT = Task("Logistic regression, default settings, 1,000,000 x 11", "fit", 1_000_000, (11, 1), values="uniform")

TASKS: dict[str, Task] = {
    "11-lot": Task("Logistic regression, 1,000,000 x 11, lot 1,024", "lots", 1_000_000, (11, 1), 1024, "coded",
                   limit="X[idx]", times=1.2),
    "108-256": _SMALL,
    "108-2048": _SMALL._replace(title="Network 108-64-2, lot 2,048", lot=2048, times=1.4, at_most=None),
    "60-600": _MIDDLE,
    "784-2048": _LARGE,
    "4000-4096": Task("Softmax regression, 4,000 features, lot 4,096", "lots", 20_480, (4000, 10), 4096, times=1.25),
    "60-600-busy": _MIDDLE._replace(kind="busy", title="Network 60-1000-10, one core busy", beside=1, idle="60-600"),
    "784-2048-busy": _LARGE._replace(kind="busy", title="Network 784-1000-10, one core busy", beside=1,
                                     idle="784-2048", times=1.5),
    "11-full": _FULL,
    "199-full": _FULL._replace(title="Full batch, 50,000 x 199", n=50_000, widths=(199, 1), times=0.8),
    "11-repeated": _FULL._replace(title="Full batch, 1,000,000 x 11, binary", values="coded", times=None),
    "11-repeated-100k": _FULL._replace(title="Full batch, 100,000 x 11, binary", n=100_000, values="coded",
                                       times=None),
    "11-stored": _FULL._replace(title="Full batch, 10,000,000 x 11, Parquet", kind="stored", n=10_000_000,
                                limit="reading Parquet", of="skdp, from Parquet", times=1.3),
    "100-dask": _FULL._replace(title="Full batch, 1,000,000 x 100, Dask", kind="dask", widths=(100, 1),
                               limit="skdp, Dask, one worker", times=1 / 1.7),
    "pca-float32": _PCA._replace(title="PCA, 60,000 x 784, 60 components, float32", times=1.1),
    "pca-float64": _PCA._replace(title="PCA, 60,000 x 784, 60 components, float64", dtype="float64", times=1.0),
    "fit-11": _FIT._replace(limit="scikit-learn LogisticRegression", unit="fit"),
    "normals": Task("2**20 normal variates", "normals", 1 << 20, limit="default_rng, float64", unit="draw"),
    "start": Task("Start-up", "start", limit="", unit="start"),
    "calls": Task("Operations of skdp", "calls", limit="", unit="call"),
}  # fmt: skip


def decades(first: int, last: int) -> list[int]:
    """Two numbers a decade."""
    powers = [first]
    while powers[-1] < last:
        powers += [3 * powers[-1], 10 * powers[-1]]
    return powers


SCALING: dict[str, Task] = {
    **{f"rows/{n}": _FULL._replace(title=f"Full batch, {n:,} x 11", n=n) for n in decades(10_000, 10_000_000)},
    **{f"lots/{n}": TASKS["11-lot"]._replace(title=f"{n:,} x 11, lot 1,024", n=n) for n in decades(10_000, 10_000_000)},
    **{f"columns/{d}": _FULL._replace(title=f"Full batch, 10,000 x {d:,}", n=10_000, widths=(d, 1))
       for d in decades(10, 10_000)},
    **{f"width/{w}": _MIDDLE._replace(title=f"60-{w:,}-10, lot 600", widths=(60, w, 10)) for w in decades(10, 10_000)},
}  # fmt: skip
"""What `scaling.py` measures: each series over three decades of rows, columns or hidden units."""


def rows_of(task: Task) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows and labels of a task, from a seed."""
    generator = np.random.default_rng(0)
    if not task.widths:
        return np.empty((0, 0)), np.empty(0, np.int64)
    shape = task.n, task.widths[0]
    if task.values == "normal":
        X = generator.standard_normal(shape, dtype=task.dtype)  # type: ignore[arg-type]
    else:
        X = generator.random(shape, dtype=task.dtype)  # type: ignore[arg-type]
        if task.values == "coded":
            np.less(X, 0.3, out=X, casting="unsafe")
    y = generator.integers(0, task.n_classes, task.n)
    if task.n_classes == 2:
        y = (X[:, 0] > np.median(X[:, 0])).astype(np.int64)
    return X, y
