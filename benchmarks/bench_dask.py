#!/usr/bin/env python3
"""Time of full-batch steps of DPLogisticRegression with one and with two Dask workers.

Both clusters hold the same rows and take turns; figures are medians of steps. The overhead of the engine is a step on a
table of a thousand rows.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from skdp import DPLogisticRegression

warnings.filterwarnings("ignore")


def make_rows(number: int, n: int, d: int) -> np.ndarray:
    X = np.random.default_rng(number).random((n, d), np.float32)
    X *= 2.0
    X -= 1.0
    return X


def make_labels(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] > 0).astype(np.int64)


def held_by(client: Client, n: int, d: int, n_partitions: int) -> tuple[da.Array, da.Array]:
    """Rows and labels, made on the workers and kept there."""
    size = n // n_partitions
    blocks = [dask.delayed(make_rows)(number, size, d) for number in range(n_partitions)]
    X = da.concatenate([da.from_delayed(block, (size, d), np.float32) for block in blocks])
    y = da.concatenate([da.from_delayed(dask.delayed(make_labels)(block), (size,), np.int64) for block in blocks])
    with client.as_current():
        X, y = client.persist([X, y])
        wait([X, y])
    return X, y


class Timed(DPLogisticRegression):
    """A model that notes when its steps end."""

    ends: ClassVar[list[float]] = []

    def _make_progress(self, plan: object) -> Any:
        return Clock()


class Clock:
    def __call__(self, n_done: int) -> None:
        Timed.ends.append(time.perf_counter())

    def close(self) -> None:
        pass


def seconds_of_steps(client: Client, X: da.Array, y: da.Array, n_steps: int) -> list[float]:
    """Of each step of a fit but the first."""
    Timed.ends.clear()
    model = Timed(
        epsilon=None, noise_multiplier=10.0, delta=1e-9, classes=[0, 1], sampling_rate=1.0, max_iter=n_steps + 1
    )
    with client.as_current(), dask.config.set(scheduler=client):
        model.fit(X, y)
    return [b - a for a, b in pairwise(Timed.ends)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=32_000_000)
    parser.add_argument("--columns", type=int, default=11)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": None, "silence_logs": 50}
    with (
        LocalCluster(n_workers=1, **options) as one,
        LocalCluster(n_workers=2, **options) as two,
        Client(one, set_as_default=False) as alone,
        Client(two, set_as_default=False) as together,
    ):
        sides, times = {}, {}
        for name, client in (("one worker", alone), ("two workers", together)):
            small = held_by(client, 1000, arguments.columns, 2)
            seconds_of_steps(client, *small, 2)  # compiles on the workers
            overhead = statistics.median(seconds_of_steps(client, *small, 10))
            print(f"{name}: {1e3 * overhead:.1f} ms a step of a thousand rows", flush=True)
            sides[name] = partial(seconds_of_steps, client, *held_by(client, arguments.rows, arguments.columns, 2))
            times[name] = []
        for _ in range(arguments.repeats):
            for name, run in sides.items():
                times[name].append(statistics.median(run(arguments.steps)))
                print(f"{name}: {1e3 * times[name][-1]:.1f} ms a step of {arguments.rows:,} rows", flush=True)
    ratios = [a / b for a, b in zip(times["one worker"], times["two workers"], strict=True)]
    print(f"two workers: {statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
