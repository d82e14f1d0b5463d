#!/usr/bin/env python3
"""Speed and memory of skdp beside what anybody can measure in the same run; prints one line a figure.

Ratios are of medians over rounds in which both sides take turns, so that a machine that drifts drifts for both.
Compilation is left out where it is not what is measured. Run on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from skdp._random import SecretStream
from skdp._sampling import sampling_at
from skdp._training.averaging import ema_average, tail_average
from skdp._training.defaults import N_STEPS, network_batch
from skdp._training.linear import LinearGeometry, LinearModel
from skdp._training.loop import run_dpsgd
from skdp._training.network import Architecture, Clip, NetworkModel
from skdp._training.optimizers import constant, momentum_sgd
from skdp._training.plan import DPSGDPlan

ROUNDS = 9


def in_turns(first: Callable[[], object], second: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of one call of either, measured in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for call in (first, second):
        call()
    for _ in range(ROUNDS):
        for call, taken in zip((first, second), times, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            taken.append((time.perf_counter() - start) / repeats)
    return statistics.median(times[0]), statistics.median(times[1])


def report(what: str, value: str, target: str) -> None:
    print(f"{what:<66} {value:<34} {target}", flush=True)


def normals() -> None:
    stream, generator = SecretStream.from_random_state(None), np.random.default_rng()
    for dtype in (np.float64, np.float32):
        ours, theirs = in_turns(
            lambda d=dtype: stream.normal(1 << 20, d), lambda d=dtype: generator.standard_normal(1 << 20, d), 4
        )
        report(
            f"normals, {dtype.__name__}, secret, against default_rng().standard_normal",
            f"{ours / 2**20 * 1e9:.2f} ns, {theirs / 2**20 * 1e9:.2f} ns: {theirs / ours:.2f} times as fast",
            ">= 2 times",
        )


def training_steps(X: np.ndarray, rate: float, n_steps: int, n_threads: int) -> Callable[[], object]:
    n, d = X.shape
    model = LinearModel(
        X, (X[:, 0] > 0.3).astype(np.int64), 1.0, 1, LinearGeometry(d**0.5, True), by_lot=rate < 1, n_threads=n_threads
    )
    plan = DPSGDPlan(sampling_at(rate), 0.7, 1.0, n_steps, rate * n)
    stream = SecretStream.from_random_state(None)

    def run() -> object:
        theta = np.zeros(model.n_parameters)
        optimizer, averaging = momentum_sgd(constant(1.0), 0.9), tail_average(n_steps)
        return run_dpsgd(model, plan, optimizer, theta, stream, averaging=averaging, on_step=lambda k: None)

    return run


def lot_step() -> None:
    n, d, lot, n_steps = 1_000_000, 11, 1024, 500
    generator = np.random.default_rng(0)
    X = generator.random((n, d), dtype=np.float32)
    indices = [generator.integers(0, n, lot) for _ in range(n_steps)]

    def take() -> None:
        for index in indices:
            X[index]

    ours, theirs = in_turns(training_steps(X, lot / n, n_steps, 1), take, 1)
    ours, theirs = ours / n_steps * 1e6, theirs / n_steps * 1e6
    report("step, 11 columns, n = 1e6, lot 1,024, sampling and noise included", f"{ours:.1f} us", "")
    report("  against X[idx] of 1,024 random rows", f"{theirs:.1f} us: {ours / theirs:.2f} times its time", "<= 1")
    report("  against JAX vmap with Poisson sampling (290 us, elsewhere)", f"{290 / ours:.1f} times as fast", ">= 4")
    report("  against Opacus with its loader (8,900 us, elsewhere)", f"{8900 / ours:.0f} times as fast", ">= 100")


def full_batch_step() -> None:
    for n, d in ((1_000_000, 11), (50_000, 199)):
        X = np.random.default_rng(0).random((n, d), dtype=np.float32)
        Y = np.empty_like(X)
        n_steps = 20
        ours, theirs = in_turns(training_steps(X, 1.0, n_steps, 2), lambda x=X, y=Y: np.copyto(y, x), 1)
        ours /= n_steps
        report(
            f"full-batch step, {n:,} x {d}, float32, 2 threads, against np.copyto",
            f"{ours * 1e3:.2f} ms, {theirs * 1e3:.2f} ms: {ours / theirs:.2f} times",
            "<= 2 times",
        )


NETWORKS = {  # rows, widths, expected lot, steps a round, ms allowed, peers' ms (elsewhere)
    "60-1000-10": (60_000, (60, 1000, 10), 600, 60, 2.5, "Opacus ghost clipping 8 to 11, JAX vmap 165"),
    "784-1000-10": (60_000, (784, 1000, 10), 2048, 6, 45.0, "77, 1,575"),
    "108-64-2": (50_000, (108, 64, 1), 256, 500, 0.2, "1.4 to 2.6, 1.5"),
    "108-64-2 ": (50_000, (108, 64, 1), 2048, 100, 0.8, "2.6 to 9.8, 10"),
}


def network_step() -> None:
    """A step of DP-SGD, sampling, secret noise, momentum and average included, beside its matrix products alone."""
    for name, (n, widths, lot, n_steps, allowed, peers) in NETWORKS.items():
        generator = np.random.default_rng(0)
        X = generator.standard_normal((n, widths[0]), dtype=np.float32)
        labels = generator.integers(0, max(2, widths[-1]), n)
        softmax = widths[-1] > 1
        architecture = Architecture(widths, "relu", "softmax" if softmax else "logistic")
        model = NetworkModel(
            X, labels if softmax else labels[:, None].astype(np.float32), 1.0, architecture, Clip("flat", (1.0, 1.0)),
            radius=1e3, unit=1.0, dtype=np.float32, batch_size=network_batch(max(widths)),
        )  # fmt: skip
        theta = 0.05 * generator.standard_normal(architecture.n_parameters, dtype=np.float32)
        plan, stream = DPSGDPlan(sampling_at(lot / n), 1.0, 1.0, n_steps, lot), SecretStream.from_random_state(None)
        run = network_run(model, plan, theta, stream)
        ours, products = in_turns(run, matrix_products(X[:lot], architecture.tables(theta), n_steps), 1)
        ours, products = ours / n_steps * 1e3, products / n_steps * 1e3
        value = f"{ours:.3f} ms, products alone {products:.3f}: {ours / products:.2f} times"
        report(f"step of {name.strip()}, lot {lot:,} ({peers})", value, f"<= {allowed:g} ms")


def network_run(model: NetworkModel, plan: DPSGDPlan, theta: np.ndarray, stream: SecretStream) -> Callable[[], object]:
    def run() -> object:
        optimizer, averaging = momentum_sgd(constant(1e-3), 0.9), ema_average(plan.n_steps)
        return run_dpsgd(model, plan, optimizer, theta, stream, averaging=averaging, on_step=lambda k: None)

    return run


def matrix_products(X: np.ndarray, tables: list[np.ndarray], n_steps: int) -> Callable[[], None]:
    """The five products of a network with one hidden layer, into arrays that are there already."""
    first, last = (table[:-1].copy() for table in tables)
    hidden, deltas = X @ first, np.ones((len(X), last.shape[1]), np.float32)
    scores, back = np.empty_like(deltas), np.empty_like(hidden)
    sums = np.empty_like(first), np.empty_like(last)

    def products() -> None:
        for _ in range(n_steps):
            np.matmul(X, first, out=hidden)
            np.matmul(hidden, last, out=scores)
            np.matmul(deltas, last.T, out=back)
            np.matmul(X.T, back, out=sums[0])
            np.matmul(hidden.T, deltas, out=sums[1])

    return products


def in_new_process(code: str, **environment: str) -> list[float]:
    """The numbers that `code` prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    return [float(word) for word in done.stdout.split()]


FIRST_FIT = """
import time, numpy as np
X = np.random.default_rng(0).random((1000, 11), dtype=np.float32); y = (X[:, 0] > .5).astype(int)
from skdp import DPLogisticRegression
start = time.perf_counter()
DPLogisticRegression(classes=[0, 1]).fit(X, y)
print(time.perf_counter() - start)
"""

PEAK = """
import resource, numpy as np
from skdp import DPLogisticRegression
X = np.random.default_rng(0).random((1_000_000, 11), dtype=np.float32); y = (X[:, 0] > .5).astype(int)
options = dict(classes=[0, 1], delta=1e-5, {options})
DPLogisticRegression(**options).fit(X[:1000], y[:1000])
now = lambda: int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
before = now()
open("/proc/self/clear_refs", "w").write("5")
DPLogisticRegression(**options).fit(X, y)
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")][0]
print(int(peak.split()[1]) / 1024 - before)
"""


def start_up() -> None:
    with tempfile.TemporaryDirectory() as cache:
        cold = in_new_process(FIRST_FIT, NUMBA_CACHE_DIR=cache)[0]
        warm = statistics.median(in_new_process(FIRST_FIT, NUMBA_CACHE_DIR=cache)[0] for _ in range(5))
    report("first fit ever, compilation included", f"{cold:.2f} s", "< 15 s")
    report("first fit of a process, warm cache, above import", f"{warm:.2f} s", "< 1 s")
    code = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
    package = statistics.median(in_new_process(code.format("import skdp"))[0] for _ in range(5))
    report("import skdp", f"{package:.3f} s", "< 0.1 s")
    code = "import time, sklearn.linear_model; " + code.removeprefix("import time; ")
    name = "from skdp import DPLogisticRegression"
    above = statistics.median(in_new_process(code.format(name))[0] for _ in range(5))
    report(f"{name}, above sklearn.linear_model", f"{above:.2f} s", "<= 0.7 s")


def memory() -> None:
    if not Path("/proc/self/clear_refs").exists():
        report("peak memory of fit", "not measured: needs Linux's /proc", "")
        return
    for what, options in (("full batch", ""), ("sampling_rate=0.001", "sampling_rate=0.001, max_iter=1")):
        peak = in_new_process(PEAK.format(options=options))[0]
        report(f"peak memory of fit, 1e6 x 11, float32, {what}", f"{peak:.0f} MB", "< 100 MB")


def whole_fit() -> None:
    for n, d in ((25_000, 11), (26_000, 199), (1_000_000, 11)):
        X = np.random.default_rng(0).random((n, d), dtype=np.float32)
        seconds, _ = in_turns(training_steps(X, 1.0, N_STEPS, 2), lambda: None, 1)
        report(f"training of a default fit, {n:,} x {d}, {N_STEPS} full-batch steps, 2 threads", f"{seconds:.2f} s", "")


PARTS = {f.__name__: f for f in (normals, lot_step, full_batch_step, network_step, whole_fit, memory, start_up)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="what to measure, all by default")
    parts = parser.parse_args().parts or list(PARTS)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    for part in parts:
        PARTS[part]()


if __name__ == "__main__":
    main()
