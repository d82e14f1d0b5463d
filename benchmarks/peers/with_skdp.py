"""skdp, by its estimators: secret noise, true Poisson sampling, momentum and average included."""

from __future__ import annotations

import math
import os
import time
from typing import Any

from peers.registry import contestant
from peers.tasks import Task

_STEPS = 20_000  # planned; a turn ends long before


class Fits:
    """Fits of an estimator, each ended by an interrupt when its time is over; the clock ticks after every step."""

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self._estimator, self._rows = estimator, (X, y)
        estimator._make_progress = self._clock  # what `verbose=1` would show, without the cost
        self._until, self._ticks = 0.0, [0.0]

    def _clock(self, plan: Any) -> Any:
        self._ticks = [time.perf_counter()]
        return self

    def __call__(self, n_done: int) -> None:
        self._ticks.append(time.perf_counter())
        if self._ticks[-1] >= self._until and len(self._ticks) > 2:
            raise KeyboardInterrupt

    def close(self) -> None:
        """As a progress bar is closed."""

    def turn(self, seconds: float) -> list[float]:
        """Seconds of the steps of one fit, without the first, which waits for the rows to be bound."""
        self._until = time.perf_counter() + seconds
        if seconds:  # of steps, not of what precedes them
            self._until += self._before
        begin = time.perf_counter()
        self._estimator.fit(*self._rows)
        self._before = self._ticks[1] - begin
        return [b - a for a, b in zip(self._ticks[1:], self._ticks[2:], strict=False)]


def by_steps(task: Task, **sampling: Any) -> Any:
    """The estimator of the shape, planned for more steps than a turn has time for."""
    from skdp import DPLogisticRegression, DPMLPClassifier

    given = {
        "epsilon": None, "delta": 1e-6, "noise_multiplier": 1.0, "max_grad_norm": 1.0,
        "classes": list(range(task.n_classes)), **sampling,
        "max_iter": math.ceil(_STEPS * sampling.get("sampling_rate", 1.0)),
    }  # fmt: skip
    if len(task.widths) == 2:
        return DPLogisticRegression(n_jobs=n_threads(), **given)
    return DPMLPClassifier(task.widths[1:-1], **given)


def n_threads() -> int:
    """As the harness pinned them."""
    return int(os.environ.get("OMP_NUM_THREADS", 1))


@contestant("skdp", "lots", "busy", role="ours", draws=True)
def lots(task: Task, X: Any, y: Any) -> Any:
    return Fits(by_steps(task, sampling_rate=task.rate), X, y)


@contestant("skdp, full batch", "full", role="ours")
def full_batch(task: Task, X: Any, y: Any) -> Any:
    return Fits(by_steps(task, sampling_rate=1.0), X, y)


@contestant("skdp DPLogisticRegression", "fit", role="ours")
def fit(task: Task, X: Any, y: Any) -> Any:
    from skdp import DPLogisticRegression

    return lambda: DPLogisticRegression(epsilon=1.0, delta=1e-7, classes=[0, 1], n_jobs=n_threads()).fit(X, y)


@contestant("skdp DPPCA, center=False", "pca", role="ours")
def pca(task: Task, X: Any, y: Any) -> Any:
    from skdp import DPPCA

    return lambda: DPPCA(task.widths[1], epsilon=1.0, delta=1e-6, center=False, normalize=True).fit(X)


@contestant('skdp DPPCA, center="private"', "pca", role="ours")
def pca_with_mean(task: Task, X: Any, y: Any) -> Any:
    from skdp import DPPCA

    return lambda: DPPCA(task.widths[1], epsilon=1.0, delta=1e-6, normalize=True).fit(X)


@contestant("skdp, secret, float64", "normals", role="ours")
def normals(task: Task, X: Any, y: Any) -> Any:
    from skdp.mechanisms.streams import SecretStream

    stream = SecretStream.from_random_state(None, "benchmark")
    return lambda: stream.normal(task.n)


@contestant("skdp, secret, float32", "normals", role="ours")
def short_normals(task: Task, X: Any, y: Any) -> Any:
    from skdp.mechanisms.streams import SecretStream

    stream = SecretStream.from_random_state(None, "benchmark")
    return lambda: stream.normal(task.n, "float32")
