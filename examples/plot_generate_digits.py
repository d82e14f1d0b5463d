"""
Synthetic digits by three private generators
============================================

Three private generators see the same digits under the same two budgets, and draw digits of their own beside the real
ones: the class mixture (`DPClassMixtureGenerator`), the WGAN of Schwabedal et al. (2020) with an exact clip (`DPWGAN`),
and, as it can be asked to, the synthesizer of tables (`DPMarginalSynthesizer`), which sees halved images as tables of
four levels a pixel. Each is scored by its inception score and by a classifier that learns from its digits and is tested
on real ones.

Run it alone::

    python examples/plot_generate_digits.py --data mnist.npz    # or without --data: fetched from OpenML
    python examples/plot_generate_digits.py --quick             # small digits that come with scikit-learn

Scores compare with real digits, which nobody pays for. These digits are public; those of a private set would have to be
scored by a judge that is private too.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from skdp import DPWGAN, DPClassMixtureGenerator, DPMarginalSynthesizer
from skdp.datasets import load_mnist
from skdp.synthesis.metrics import inception_score

EPSILONS, DELTA = (1.0, 10.0), 1e-5
PICTURE = "generate_digits.png"
SHOWN = 2  # images a class


class Digits(NamedTuple):
    """Images as rows in [0, 1] and their labels."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    @property
    def side(self) -> int:
        return int(np.sqrt(self.X.shape[1]))


def load(path: Path | None, quick: bool) -> Digits:
    """MNIST, or the small digits of scikit-learn."""
    if quick and path is None:
        pixels, labels = load_digits(return_X_y=True)
        pixels = (pixels / 16).astype(np.float32)
        return Digits(pixels[:1500], labels[:1500], pixels[1500:], labels[1500:])
    mnist = load_mnist(path)
    n = 6_000 if quick else len(mnist.data)
    return Digits(mnist.data[:n], mnist.target[:n], mnist.test_data, mnist.test_target)


def halved(X: Any) -> Any:
    """Images of half the side, each pixel the mean of four."""
    half = int(np.sqrt(X.shape[1])) // 2
    return X.reshape(-1, half, 2, half, 2).mean(axis=(2, 4)).reshape(-1, half * half)


def doubled(X: Any) -> Any:
    """Images of twice the side."""
    half = int(np.sqrt(X.shape[1]))
    return X.reshape(-1, half, half).repeat(2, axis=1).repeat(2, axis=2).reshape(len(X), -1)


def generate(name: str, digits: Digits, epsilon: float, n_samples: int, quick: bool) -> tuple[Any, Any]:
    """Fit the generator of that name, and return digits that it draws."""
    given: dict[str, Any] = {"bounds": (0.0, 1.0), "classes": range(10), "epsilon": epsilon, "delta": DELTA}
    if name == "class mixture":
        return DPClassMixtureGenerator(**given).fit(digits.X, digits.y).sample(n_samples)
    if name == "WGAN":
        # 68 epochs of MNIST are 8,000 steps. Small images are as a table to the GAN.
        for_images = {"weight_decay": 0.5, "generator_learning_rate_init": 4e-3, "n_latent": 24, "max_iter": 68}
        model = DPWGAN(**given, **({"max_iter": 60} if quick else for_images))
        return model.fit(digits.X, digits.y).sample(n_samples)
    table = DPMarginalSynthesizer(**given, n_bins=4, pairs="all", triples=False, within_bins="middle").fit(
        halved(digits.X), digits.y
    )
    X, y = table.sample(n_samples)
    return doubled(X), y


def compare(digits: Digits, quick: bool) -> dict[str, tuple[Any, Any]]:
    """Generate digits, print how good they are, and return some of each."""
    judge = MLPClassifier((50 if quick else 300,), early_stopping=not quick, random_state=0).fit(digits.X, digits.y)
    n_splits = 1 if quick else 10
    real = inception_score(judge.predict_proba(digits.X_test), n_splits).mean
    print(f"{len(digits.X):,} digits of {digits.side} x {digits.side}; delta = {DELTA:g}")
    print(f"the judge is right about {judge.score(digits.X_test, digits.y_test):.3f} of the real test digits,")
    print(f"whose inception score is {real:.2f}\n")
    print(f"{'generator':<16} {'epsilon':>7} {'score, share of real':>21} {'logistic on real':>17} {'seconds':>8}")
    rows = {"real": (digits.X_test, digits.y_test)}
    for name in ("class mixture", "WGAN", "table"):
        for epsilon in EPSILONS:
            start = time.perf_counter()
            X, y = generate(name, digits, epsilon, len(digits.X), quick)
            seconds = time.perf_counter() - start
            share = inception_score(judge.predict_proba(X[: len(digits.X_test)]), n_splits).mean / real
            logistic = LogisticRegression(max_iter=60).fit(X, y).score(digits.X_test, digits.y_test)
            print(f"{name:<16} {epsilon:7g} {share:21.3f} {logistic:17.3f} {seconds:8.1f}", flush=True)
            rows[f"{name}, {epsilon:g}"] = (X, y)
    return rows


def draw(rows: dict[str, tuple[Any, Any]], side: int, output: Path) -> None:
    """One line of digits a generator and epsilon."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(rows), 1, figsize=(9.0, 0.72 * len(rows)), dpi=130, layout="constrained")
    for ax, (name, (X, y)) in zip(axes, rows.items(), strict=True):
        shown = np.concatenate([X[y == digit][:SHOWN] for digit in range(10)])
        ax.imshow(np.hstack(list(shown.reshape(-1, side, side))), cmap="gray_r", vmin=0.0, vmax=1.0)
        ax.set(xticks=[], yticks=[])
        ax.set_ylabel(name, rotation=0, ha="right", va="center")
        for spine in ax.spines.values():
            spine.set_visible(False)
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
    """Print the scores and write the picture."""
    parser = argparse.ArgumentParser(description="Digits of three private generators beside real ones.")
    parser.add_argument("--quick", action="store_true", help="small digits, or 6,000 of MNIST; short trainings")
    parser.add_argument("--data", type=Path, default=None, help="mnist.npz; default: $SKDP_DATA/mnist.npz, or OpenML")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    try:
        check_output(options.output)
        digits = load(options.data or default_data(), options.quick)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_generate_digits.py: {error}")
    warnings.simplefilter("ignore", ConvergenceWarning)  # 60 iterations tell which digits are better to learn from
    rows = compare(digits, options.quick)
    try:
        draw(rows, digits.side, options.output)
    except ImportError:
        print('\nNo picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"\nPicture: {options.output}")


if __name__ == "__main__":
    main()
