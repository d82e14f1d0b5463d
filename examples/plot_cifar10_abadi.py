"""
CIFAR-10 with fixed features, ten years on
==========================================

Abadi et al. (2016) trained CIFAR-10 on top of convolutions that had been learned on another data set, and came to 67 %,
70 % and 73 % at epsilon 2, 4 and 8 (their figure 6). Here no other data set is needed: the features are scattering
coefficients (Tramèr & Boneh 2021) and random filters of patches, which nobody has to learn, and the model on top is a
private logistic regression.

The upper panel shows accuracy against epochs at the three budgets, with the accuracy of the paper at its last epoch,
and of a logistic regression without privacy on the same features. The lower panel shows what had been spent after each
epoch. The table has the mean of several runs with fresh noise.

Run it alone::

    python examples/plot_cifar10_abadi.py --data FOLDER     # that holds CIFAR-10; or the folder in SKDP_DATA
    python examples/plot_cifar10_abadi.py --quick           # some of the images, or small digits without a folder
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
from sklearn.pipeline import make_union

from skdp import DPLogisticRegression
from skdp.accounting import GaussianDpEvent, SelfComposedDpEvent, calibrate_noise_multiplier
from skdp.datasets import load_cifar10
from skdp.image import PatchTransformer, ScatteringTransformer

DELTA = 1e-5
PAPER = {2.0: 67.0, 4.0: 70.0, 8.0: 73.0}
"""Accuracy by epsilon, from figure 6 of the paper. Its test part has 10,000 images."""
PICTURE = "cifar10_abadi.png"


class Images(NamedTuple):
    """Rows of features, and labels."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    name: str
    seconds: float


# %%
# Features
# --------
# Each image gives its own row, so that they cost nothing. Scattering coefficients are whitened by what is known of all
# photographs, from made-up pictures of discs that lie on one another; an image and its mirror image share them, as a
# horse is one from either side. Beside them stand the responses of random filters to patches, which tell of colours.


def features(n_jobs: int | None = -1) -> Any:
    """Two transformers side by side. Rows of both have the norm that the private model takes for granted."""
    return make_union(ScatteringTransformer(symmetric=True, n_jobs=n_jobs), PatchTransformer(n_jobs=n_jobs))


def load(folder: Path | None, quick: bool) -> Images:
    """Features of CIFAR-10, or at the quick size without a folder of the 8 x 8 digits of scikit-learn."""
    start = time.perf_counter()
    if quick and folder is None:
        pixels, labels = load_digits(return_X_y=True)
        rows = ScatteringTransformer(J=1, value_range=(0, 16)).fit_transform(pixels)
        seconds = time.perf_counter() - start
        return Images(
            rows[:1500], labels[:1500], rows[1500:], labels[1500:],
            "1,500 digits of scikit-learn", seconds,
        )  # fmt: skip
    if folder is None:
        raise FileNotFoundError("--data is missing, and SKDP_DATA names no folder: give the folder of CIFAR-10.")
    cifar = load_cifar10(folder)
    n = 10_000 if quick else len(cifar.images)
    transformer = features().fit(cifar.images)
    start = time.perf_counter()
    X = transformer.transform(cifar.images[:n])
    seconds = time.perf_counter() - start
    X_test = transformer.transform(cifar.test_images)
    return Images(X, cifar.target[:n], X_test, cifar.test_target, f"{n:,} images of CIFAR-10", seconds)


# %%
# The private model
# -----------------
# Every step uses all rows, as the noise of a step that does is smallest for the budget, and one pass over the rows is
# cheap for a linear model. What was found on nine tenths of the training images, scored on the others (single runs):
#
# - scattering coefficients alone are at 68.8 % at epsilon 3, patches alone at 62.5 %, and both at 72.4 %;
# - the product of length and number of steps counts: with coefficients, 100 steps of 400, 200 of 200 and 200 of 300
#   are at 68.8, 69.2 and 68.9 %;
# - clips of .1, .25 and .5, for rows of norm 1, differ by less than a point, and 1 is a point worse;
# - the steps are averaged over the last half of a run.

CLIP = 0.25
STEP = 400.0 / CLIP


def n_steps_of(epsilon: float, quick: bool) -> int:
    """Steps of a run, which are epochs: a function of the budget alone."""
    return 20 if quick else 100 if epsilon <= 4 else 200


def model_of(epsilon: float, quick: bool) -> Any:
    """A model that is not fitted."""
    return DPLogisticRegression(
        epsilon=epsilon, delta=DELTA, sampling_rate=1.0, max_iter=n_steps_of(epsilon, quick), max_grad_norm=CLIP,
        learning_rate=STEP, classes=range(10), n_jobs=-1,
    )  # fmt: skip


class Epoch(NamedTuple):
    """What is known after a number of epochs."""

    number: int
    accuracy: float
    spent: float


def run_by_epochs(images: Images, epsilon: float, quick: bool) -> list[Epoch]:
    """One run in ten instalments. Each continues from the average of the last half of the one before it."""
    model = model_of(epsilon, quick)
    n_steps = model.max_iter
    noise = calibrate_noise_multiplier(lambda z: SelfComposedDpEvent(GaussianDpEvent(z), n_steps), epsilon, DELTA)
    model.set_params(epsilon=None, noise_multiplier=noise, max_iter=n_steps // 10)
    log = []
    for _ in range(10):
        with warnings.catch_warnings():  # of the noise in one instalment: there is less in the ten of them
            warnings.filterwarnings("ignore", ".*rows are few for.*")
            model.partial_fit(images.X, images.y)
        log.append(Epoch(model.n_steps_, 100 * model.score(images.X_test, images.y_test), model.epsilon_))
    return log


def run_whole(images: Images, epsilon: float, quick: bool) -> tuple[float, float, float]:
    """Test accuracy, epsilon spent and seconds of one fit."""
    start = time.perf_counter()
    model = model_of(epsilon, quick).fit(images.X, images.y)
    seconds = time.perf_counter() - start
    return 100 * model.score(images.X_test, images.y_test), model.epsilon_, seconds


def accuracy_without_privacy(images: Images) -> float:
    """Test accuracy of a logistic regression without privacy, regularized by what is usual for rows of norm 1."""
    unit = np.float32(1.0 / np.sqrt(images.X.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=30.0, max_iter=60).fit(images.X * unit, images.y)
    return float(100 * model.score(images.X_test * unit, images.y_test))


def print_table(images: Images, repeats: int, quick: bool, baseline: float) -> None:
    """Mean and spread over fresh noise, beside the paper."""
    error = np.sqrt(2500.0 / len(images.y_test))
    print(
        f"{images.name}, {images.X.shape[1]:,} features in {images.seconds:.0f} s; {len(images.y_test):,} test images"
    )
    print(f"(standard error up to {error:.1f} points); delta = {DELTA:g}; {repeats} runs with fresh noise\n")
    print(f"{'epsilon':>11} {'test %':>14} {'paper %':>8} {'spent':>7} {'seconds':>8}")
    for epsilon in (2.0, 3.0, 4.0, 8.0):
        accuracy, spent, seconds = np.array([run_whole(images, epsilon, quick) for _ in range(repeats)]).T
        spread = accuracy.std(ddof=1) if repeats > 1 else 0.0
        published = f"{PAPER[epsilon]:.0f}" if epsilon in PAPER and not quick else "-"
        print(
            f"{epsilon:11g} {accuracy.mean():7.2f} +/- {spread:4.2f} {published:>8} {spent.max():7.4f} "
            f"{seconds.mean():8.1f}",
            flush=True,
        )
    print(f"{'non-private':>11} {baseline:7.2f}")


# %%
# The picture
# -----------


def draw(logs: dict[float, list[Epoch]], baseline: float, title: str, quick: bool, output: Path) -> Any:
    """Accuracy against epochs, and epsilon below."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8.0, 8.0), dpi=120, layout="constrained", sharex=True, height_ratios=(2, 1)
    )
    for (epsilon, log), colour in zip(logs.items(), ("#0072B2", "#009E73", "#D55E00"), strict=True):
        epochs = [each.number for each in log]
        above.plot(epochs, [each.accuracy for each in log], color=colour, label=f"epsilon = {epsilon:g}")
        if not quick:  # the paper's accuracy is of all images
            above.plot(epochs[-1], PAPER[epsilon], "o", color=colour, label=f"Abadi et al., epsilon = {epsilon:g}")
        below.plot(epochs, [each.spent for each in log], color=colour)
    above.axhline(baseline, color="#888888", linewidth=1.0, linestyle="--", label="without privacy")
    above.set(ylabel="test accuracy, %", title=title)
    below.set(xlabel="epoch", ylabel=f"epsilon at delta = {DELTA:g}", ylim=(0, None))
    below.xaxis.get_major_locator().set_params(integer=True)
    above.legend(fontsize="small", frameon=False, loc="lower right", ncols=2)
    for ax in (above, below):
        ax.grid(alpha=0.25)
    figure.savefig(output)
    plt.close(figure)
    return figure


# %%
# Command line
# ------------


def check_output(output: Path) -> None:
    """Refuse a picture that cannot be written before the work is done."""
    if not output.parent.is_dir():
        raise FileNotFoundError(f"--output {output}: there is no folder {output.parent}")
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output {output}: give a name that ends in .png, .pdf or .svg")


def default_data() -> Path | None:
    """The folder that the variable SKDP_DATA names, if it has CIFAR-10."""
    folder = Path(os.environ.get("SKDP_DATA", ""))
    names = ("data_batch_1.bin", "data_batch_1", "cifar10_train_1.npz")
    return folder if any((folder / name).is_file() for name in names) else None


def main(arguments: list[str] | None = None) -> None:
    """Print the table and write the picture."""
    parser = argparse.ArgumentParser(description="Private logistic regression on fixed features of CIFAR-10.")
    parser.add_argument("--quick", action="store_true", help="few images, few epochs")
    parser.add_argument("--data", type=Path, default=None, help="folder of CIFAR-10; default: $SKDP_DATA")
    parser.add_argument("--repeats", type=int, default=3, help="runs with fresh noise; default: 3")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    try:
        check_output(options.output)
        images = load(options.data or default_data(), options.quick)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_cifar10_abadi.py: {error}")
    baseline = accuracy_without_privacy(images)
    print_table(images, 1 if options.quick else options.repeats, options.quick, baseline)
    logs = {epsilon: run_by_epochs(images, epsilon, options.quick) for epsilon in PAPER}
    title = f"Fixed features and private logistic regression: {images.name}"
    try:
        draw(logs, baseline, title, options.quick, options.output)
    except ImportError:
        print('\nNo picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"\nPicture: {options.output}")


if __name__ == "__main__":
    main()
