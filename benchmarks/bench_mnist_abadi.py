#!/usr/bin/env python3
"""Private PCA and network on MNIST: the settings of Abadi et al. (2016), and the best settings found.

    python benchmarks/bench_mnist_abadi.py --data FOLDER [--repeats 5]

FOLDER (or SKDP_DATA) holds mnist.npz. The first table has one run of each of their settings, and what it cost by their
moments accountant and by privacy loss distributions; the second our own settings, under one joint budget over
projection and network, with fresh noise in each run. `examples/plot_mnist_abadi.py` draws the first.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import DPPCA, DPMLPClassifier, allocate_budget, row_wise
from skdp.accounting import DpEvent, compose, get_epsilon
from skdp.datasets import load_mnist

DELTA = 1e-5


class Digits(NamedTuple):
    """Images as rows of pixels in [0, 1], and their labels."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


class Setting(NamedTuple):
    """A panel: noise of gradients and of the projection, epochs, and the accuracy that the paper prints."""

    sigma: float
    sigma_pca: float
    epochs: int
    published: float


PAPER = (Setting(8, 16, 29, 90.0), Setting(4, 7, 212, 95.0), Setting(2, 4, 704, 97.0))
"""As many epochs as the moments accountant allows at epsilon 0.5, 2 and 8, the projection included."""


def run_paper(digits: Digits, setting: Setting) -> tuple[float, float, DpEvent]:
    """One run, epoch by epoch, each an instalment: accuracy on training and test images, and what was released."""
    pca = DPPCA(60, center=False, normalize=True, epsilon=None, noise_multiplier=setting.sigma_pca, delta=DELTA)
    X = pca.fit_transform(digits.X)
    network = DPMLPClassifier(
        (1000,), epsilon=None, noise_multiplier=setting.sigma, delta=DELTA, classes=range(10),
        max_grad_norm=4.0, lot_size=600, max_iter=1, momentum=0.0, average=None,
        data_norm=1.0, input_norm=INPUT_NORM, learning_rate="linear",
    )  # fmt: skip
    for epoch in range(setting.epochs):
        start, end = (0.1 + (0.052 - 0.1) * min(1.0, e / 10) for e in (epoch, epoch + 1))
        network.set_params(learning_rate_init=start, learning_rate_end=end).partial_fit(X, digits.y)
    event = compose([pca.privacy_event_, network.privacy_event_])
    train, test = network.score(X, digits.y), network.score(pca.transform(digits.X_test), digits.y_test)
    return 100 * train, 100 * test, event


INPUT_NORM = 5.0
"""Length of the rows that enter the network, which the paper does not print: 10 cost .3 points."""


def print_paper(digits: Digits) -> None:
    """Each run beside what the paper prints."""
    print(f"the paper's settings, delta = {DELTA:g}\n")
    print(
        f"{'sigma':>5} {'PCA':>4} {'epochs':>6} {'train %':>8} {'test %':>7} {'paper %':>8} {'moments':>8} {'PLD':>7}"
    )
    for setting in PAPER:
        train, test, event = run_paper(digits, setting)
        moments, pld = (get_epsilon(event, DELTA, method=method) for method in ("moments", "pld"))
        print(
            f"{setting.sigma:5g} {setting.sigma_pca:4g} {setting.epochs:6d} {train:8.2f} {test:7.2f} "
            f"{setting.published:8.1f} {moments:8.3f} {pld:7.3f}",
            flush=True,
        )


# One budget over projection and network, solved for jointly. What helped was found on the last 10,000 training images:
#
# - the step length times the clip in the ratio of rows to noise (the default rule) instead of one for all budgets: 1.2
#   points at epsilon 0.5;
# - to leave out the first component, which is much the same for all digits, and to bring the others back to one length:
#   1.2 points at epsilon 2. It happens after the release, row by row, and costs nothing;
# - more steps for more budget: 0.5 points at epsilon 8;
# - images that are straightened first, each by its own moments, which depends on no other image: 2, 1.3 and 0.7 points.
#   It is knowledge about digits, so it is printed apart.
#
# Lots of 2,048 or 8,192, clips from 0.1 to 1, other clippings, a tail average, 40 or 80 components and a share of 7 %
# to 25 % for the projection changed nothing that could be distinguished from noise. tanh, two hidden layers, the full
# batch, cosine decay and whitening were worse.

BEST: dict[float, dict[str, Any]] = {0.5: {"max_iter": 21}, 2.0: {"max_iter": 41}, 8.0: {"max_iter": 68}}
SHARE_OF_PCA = 0.12


@row_wise
def without_the_first(components: Any) -> Any:
    """The rows without their first component, brought back to unit length."""
    rest = components[:, 1:]
    return rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9).astype(rest.dtype)


def straightened(rows: Any) -> Any:
    """Each image moved to the middle and sheared upright, by its own first and second moments."""
    side = math.isqrt(rows.shape[1])
    return np.array([_upright(row.reshape(side, side)).ravel() for row in rows], rows.dtype)


def _upright(image: Any) -> Any:
    y, x = np.mgrid[: len(image), : len(image)]
    mass = max(float(image.sum()), 1e-6)
    center_y, center_x = float((image * y).sum()) / mass, float((image * x).sum()) / mass
    spread = float((image * (y - center_y) ** 2).sum()) / mass
    lean = float((image * (y - center_y) * (x - center_x)).sum()) / mass / max(spread, 1e-3)
    middle = (len(image) - 1) / 2
    start = [center_y - middle, center_x - lean * middle - middle]
    return ndimage.affine_transform(image, [[1, 0], [lean, 1]], offset=start, order=1)


def pipeline_of(name: str, epsilon: float) -> Any:
    """A pipeline that is not fitted: "defaults", our "best", or "straightened", which is the best on upright images."""
    pca = ("pca", DPPCA(60, center=False, normalize=True))
    if name == "defaults":
        steps = [pca, ("network", DPMLPClassifier((1000,), data_norm=1.0, classes=range(10)))]
        return allocate_budget(Pipeline(steps), epsilon, DELTA)
    network = DPMLPClassifier(
        (1000,), data_norm=1.0, input_norm=5.0, max_grad_norm=0.1, classes=range(10), **BEST[epsilon]
    )  # fmt: skip
    steps = [pca, ("rest", FunctionTransformer(without_the_first)), ("network", network)]
    return allocate_budget(Pipeline(steps), epsilon, DELTA, {"pca": SHARE_OF_PCA})


def run_best(digits: Digits, name: str, epsilon: float) -> tuple[float, float, float]:
    """Test accuracy, epsilon spent and seconds."""
    start = time.perf_counter()
    pipeline = pipeline_of(name, epsilon).fit(digits.X, digits.y)
    seconds = time.perf_counter() - start
    return 100 * pipeline.score(digits.X_test, digits.y_test), pipeline.epsilon_, seconds


def print_best(digits: Digits, repeats: int) -> None:
    """Mean and spread over fresh noise."""
    print(f"\none joint budget, {repeats} runs with fresh noise\n")
    print(f"{'epsilon':>7} {'settings':<12} {'test %':>14} {'spent':>7} {'seconds':>8}")
    upright = digits._replace(X=straightened(digits.X), X_test=straightened(digits.X_test))
    for epsilon in BEST:
        for name, images in (("defaults", digits), ("best", digits), ("straightened", upright)):
            runs = np.array([run_best(images, name, epsilon) for _ in range(repeats)])
            accuracy, spent, seconds = runs.T
            spread = accuracy.std(ddof=1) if repeats > 1 else 0.0
            print(
                f"{epsilon:7g} {name:<12} {accuracy.mean():7.2f} +/- {spread:4.2f} {spent.max():7.4f} "
                f"{seconds.mean():8.1f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of mnist.npz")
    parser.add_argument("--repeats", type=int, default=5, help="runs of our own settings")
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of mnist.npz with --data or SKDP_DATA.")
    mnist = load_mnist(Path(arguments.data) / "mnist.npz")
    digits = Digits(mnist.data, mnist.target, mnist.test_data, mnist.test_target)
    print_paper(digits)
    print_best(digits, arguments.repeats)


if __name__ == "__main__":
    main()
