#!/usr/bin/env python3
"""Private linear models on data-independent image features: accuracy and time.

    python benchmarks/bench_images.py --data FOLDER [--repeats 3] [--only mnist|cifar10]

FOLDER holds mnist.npz, and CIFAR-10 as its binary files or as cifar10_*.npz. Each budget is a mean over fresh noise.
CIFAR-10 is scored twice: a fit to all training images on the test images, and one to nine tenths of them on the last
tenth, as the test part may be small. The last table has the time of a step beside that of plain NumPy on the same
features: rows gathered, two matrix products and a softmax, without clip and noise.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_union

from skdp import DPLogisticRegression
from skdp.datasets import load_mnist
from skdp.image import PatchTransformer, ScatteringTransformer

DELTA = 1e-5


def mnist_model(epsilon: float) -> DPLogisticRegression:
    """As `examples/plot_mnist_scattering.py`: the more budget, the farther it pays to go."""
    return model_of(epsilon, 60 if epsilon < 1 else 100 if epsilon < 2 else 400, clip=0.1)


def cifar_model(epsilon: float) -> DPLogisticRegression:
    """As `examples/plot_cifar10_abadi.py`."""
    return model_of(epsilon, 100 if epsilon <= 4 else 200, clip=0.25)


def model_of(epsilon: float, n_steps: int, clip: float) -> DPLogisticRegression:
    """A model whose steps use all rows, and are longer the less they are clipped."""
    return DPLogisticRegression(
        epsilon=epsilon, delta=DELTA, sampling_rate=1.0, max_iter=n_steps, max_grad_norm=clip, learning_rate=400 / clip,
        classes=range(10), n_jobs=-1,
    )  # fmt: skip


def row(what: str, accuracies: list[float], seconds: float) -> None:
    spread = np.std(accuracies, ddof=1) if len(accuracies) > 1 else 0.0
    print(f"{what:<44} {np.mean(accuracies):6.2f} +- {spread:.2f} {seconds:8.1f} s", flush=True)


def fits(name: str, model_of: Callable[[float], Any], epsilon: float, train: Any, test: Any, repeats: int) -> None:
    """Means over fresh noise of the accuracy of fits to `train`, pairs of rows and labels, and the time of one."""
    accuracies, start = [], time.perf_counter()
    for _ in range(repeats):
        model = model_of(epsilon).fit(*train)
        assert model.epsilon_ <= epsilon
        accuracies.append(100 * model.score(*test))
    row(f"{name}, epsilon {epsilon:g}", accuracies, (time.perf_counter() - start) / repeats)


def transformed(transformer: Any, images: Any) -> Any:
    start = time.perf_counter()
    rows = transformer.transform(images)
    print(f"{len(rows):,} images to {rows.shape[1]:,} features: {time.perf_counter() - start:.1f} s", flush=True)
    return rows


def mnist(folder: Path, repeats: int) -> None:
    digits = load_mnist(folder / "mnist.npz")
    transformer = ScatteringTransformer(public_images="drawings", n_jobs=-1).fit(digits.data)
    X, X_test = transformed(transformer, digits.data), transformer.transform(digits.test_data)
    for epsilon in (0.5, 1.0, 3.0):
        fits("MNIST", mnist_model, epsilon, (X, digits.target), (X_test, digits.test_target), repeats)
    steps(X, digits.target)


def cifar10_part(folder: Path, name: str, archive: str) -> tuple[Any, Any]:
    """Images and labels of a binary file, or of an archive of differences across colors and pixels, modulo 256."""
    if (path := folder / f"{name}.bin").is_file():
        records = np.fromfile(path, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
        planes, labels = records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]
    else:
        stored = np.load(folder / f"{archive}.npz")
        planes, labels = np.cumsum(np.cumsum(stored["x_diff"], 2, np.uint8), 3, np.uint8), stored["y"]
        planes[:, [0, 2]] += planes[:, [1]]
    return planes.transpose(0, 2, 3, 1), labels.astype(np.int64)


def cifar10(folder: Path, repeats: int) -> None:
    parts = [cifar10_part(folder, f"data_batch_{k}", f"cifar10_train_{k}") for k in range(1, 6)]
    images, y = map(np.concatenate, zip(*parts, strict=True))
    test_images, y_test = cifar10_part(folder, "test_batch", "cifar10_test1000")
    transformer = make_union(ScatteringTransformer(symmetric=True, n_jobs=-1), PatchTransformer(n_jobs=-1)).fit(images)
    X, X_test = transformed(transformer, images), transformer.transform(test_images)
    kept = len(y) * 9 // 10

    for epsilon in (2.0, 3.0, 4.0, 8.0):
        name = f"CIFAR-10, {len(y):,} rows, {len(X_test):,} test images"
        fits(name, cifar_model, epsilon, (X, y), (X_test, y_test), repeats)
        fits("  nine tenths, on the last tenth", cifar_model, epsilon, (X[:kept], y[:kept]), (X[kept:], y[kept:]), 1)
    steps(X, y)


def steps(X: Any, y: Any, lot: int = 8192, n_steps: int = 10) -> None:
    """Time of a step, the medians of five turns."""
    n, times = len(y), {"private": [], "plain": []}
    rate = lot / n

    def private(factor: int) -> tuple[float, int]:
        start = time.perf_counter()
        model = DPLogisticRegression(
            epsilon=None, noise_multiplier=4.0, delta=DELTA, sampling_rate=rate, max_iter=factor, classes=range(10)
        ).fit(X, y)
        return time.perf_counter() - start, model.n_steps_

    private(1)  # kernels are compiled
    for _ in range(5):
        (short, few), (long, many) = private(1), private(5)
        times["private"].append((long - short) / (many - few))
        times["plain"].append(plain_steps(X, y, rate, n_steps) / n_steps)
    ours, plain = (1000 * float(np.median(times[side])) for side in ("private", "plain"))
    print(f"a step of {lot:,} x {X.shape[1]:,}: {ours:.0f} ms, plain NumPy {plain:.0f} ms, ratio {ours / plain:.2f}\n")


def plain_steps(X: Any, y: Any, rate: float, n_steps: int) -> float:
    rng, targets, theta = np.random.default_rng(0), np.eye(10, dtype=np.float32)[y], np.zeros((X.shape[1], 10), "f4")
    start = time.perf_counter()
    for _ in range(n_steps):
        rows = np.flatnonzero(rng.random(len(y)) < rate)
        lot = X[rows]
        scores = lot @ theta
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        theta -= lot.T @ (shares - targets[rows]) / len(rows)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of mnist.npz and CIFAR-10")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("mnist", "cifar10"))
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the images with --data or SKDP_DATA.")
    for name, run in (("mnist", mnist), ("cifar10", cifar10)):
        if arguments.only in (None, name):
            run(Path(arguments.data), arguments.repeats)


if __name__ == "__main__":
    main()
