"""
What matters for a private network on MNIST: one choice varied at a time
========================================================================

Figure 5 of Abadi et al. (2016) anew: test accuracy after training at epsilon 2 and delta 1e-5 (projection and network
under one budget) while one of six choices varies and the others stay: components of the projection, hidden units, lot
size, learning rate, clip, and noise. More noise buys more steps at the same epsilon.

Run it alone::

    python examples/plot_mnist_sweeps.py --data mnist.npz     # or without --data: fetched from OpenML
    python examples/plot_mnist_sweeps.py --quick              # small digits that come with scikit-learn
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline

from skdp import DPPCA, DPMLPClassifier, allocate_budget
from skdp.datasets import load_mnist

EPSILON, DELTA = 2.0, 1e-5
PICTURE = "mnist_sweeps.png"


class Choices(NamedTuple):
    """One point of a sweep; `lot` is a share of the rows, `step` the learning rate times the clip."""

    components: int = 60
    hidden: int = 1000
    lot: float = 1 / 15
    step: float = 16.0
    clip: float = 0.5
    epochs: int = 20


SWEEPS: dict[str, tuple[Any, ...]] = {
    "components": (10, 20, 40, 60, 100, 200),
    "hidden": (50, 200, 500, 1000, 2000),
    "lot": (1 / 240, 1 / 60, 1 / 30, 1 / 15, 1 / 7.5, 1 / 3),
    "step": (1.0, 4.0, 8.0, 16.0, 32.0, 64.0),
    "clip": (0.01, 0.1, 0.5, 2.0, 8.0),
    "epochs": (2, 5, 10, 20, 40, 80),
}
QUICK_SWEEPS = {name: values[1:5:3] for name, values in SWEEPS.items()} | {"components": (10, 30), "hidden": (20, 50)}
LABELS = {
    "components": "components of the projection",
    "hidden": "hidden units",
    "lot": "lot size, share of the rows",
    "step": "learning rate times clip",
    "clip": "clip, at the same learning rate times clip",
    "epochs": "epochs (the noise grows with them)",
}


def load(path: Path | None, quick: bool) -> tuple[Any, Any, Any, Any]:
    """Images as rows in [0, 1] and labels, for training and test."""
    if quick and path is None:
        pixels, labels = load_digits(return_X_y=True)
        pixels = (pixels / 16).astype(np.float32)
        return pixels[:1500], labels[:1500], pixels[1500:], labels[1500:]
    mnist = load_mnist(path)
    n = 6_000 if quick else len(mnist.data)
    return mnist.data[:n], mnist.target[:n], mnist.test_data, mnist.test_target


def accuracy(digits: tuple[Any, Any, Any, Any], choices: Choices) -> tuple[float, float]:
    """Test accuracy in percent and the noise multiplier of the network's steps."""
    X, y, X_test, y_test = digits
    network = DPMLPClassifier(
        (choices.hidden,), data_norm=1.0, sampling_rate=choices.lot, max_iter=choices.epochs,
        max_grad_norm=choices.clip, learning_rate_init=choices.step / choices.clip, classes=range(10),
    )  # fmt: skip
    pipeline = Pipeline([("pca", DPPCA(choices.components, center=False, normalize=True)), ("network", network)])
    pipeline = allocate_budget(pipeline, EPSILON, DELTA).fit(X, y)
    return 100 * pipeline.score(X_test, y_test), pipeline[-1].noise_multiplier_


def sweep(digits: tuple[Any, Any, Any, Any], quick: bool) -> dict[str, list[tuple[Any, float]]]:
    """Accuracy along each choice, printed as it comes."""
    middle = Choices(components=20, hidden=50) if quick else Choices()
    found: dict[str, list[tuple[Any, float]]] = {}
    print(f"epsilon = {EPSILON:g}, delta = {DELTA:g}; the middle: {middle}\n")
    for name, values in (QUICK_SWEEPS if quick else SWEEPS).items():
        found[name] = []
        for value in values:
            score, noise = accuracy(digits, middle._replace(**{name: value}))
            found[name].append((value, score))
            print(f"{name:>10} {value:8.4g}: {score:6.2f} %  (sigma {noise:.2f})", flush=True)
    return found


def draw(found: dict[str, list[tuple[Any, float]]], title: str, output: Path) -> None:
    """One panel a choice."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11.0, 6.2), dpi=120, sharey=True, layout="constrained")
    for ax, (name, points) in zip(axes.flat, found.items(), strict=True):
        values, scores = zip(*points, strict=True)
        ax.plot(values, scores, "o-", color="#0072B2")
        ax.set(xscale="log", xlabel=LABELS[name])
        ax.set_xticks(values, labels=[f"{value:.2g}" if value < 1 else f"{value:g}" for value in values])
        ax.minorticks_off()
        ax.grid(alpha=0.25)
    for ax in axes[:, 0]:
        ax.set_ylabel("test accuracy, %")
    figure.suptitle(title)
    figure.savefig(output)
    plt.close(figure)


def check_output(output: Path) -> None:
    """Refuse a picture that cannot be written before the work is done."""
    if not output.parent.is_dir():
        raise FileNotFoundError(f"--output {output}: there is no folder {output.parent}")
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output {output}: give a name that ends in .png, .pdf or .svg")


def default_data() -> Path | None:
    """The file in the folder that the variable SKDP_DATA names, if there is one."""
    folder = os.environ.get("SKDP_DATA")
    path = Path(folder) / "mnist.npz" if folder else None
    return path if path is not None and path.is_file() else None


def main(arguments: list[str] | None = None) -> None:
    """Print the accuracies and write the picture."""
    parser = argparse.ArgumentParser(description="Test accuracy on MNIST, one choice at a time.")
    parser.add_argument("--quick", action="store_true", help="small digits, two values a choice")
    parser.add_argument("--data", type=Path, default=None, help="mnist.npz; default: $SKDP_DATA/mnist.npz, or OpenML")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    try:
        check_output(options.output)
        digits = load(options.data or default_data(), options.quick)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_mnist_sweeps.py: {error}")
    found = sweep(digits, options.quick)
    rows = f"{len(digits[1]):,} digits of {'MNIST' if digits[0].shape[1] == 784 else 'scikit-learn'}"
    title = f"{rows}: projection and network at epsilon = {EPSILON:g}, delta = {DELTA:g}, one choice varied at a time"
    try:
        draw(found, title, options.output)
    except ImportError:
        print('\nNo picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"\nPicture: {options.output}")


if __name__ == "__main__":
    main()
