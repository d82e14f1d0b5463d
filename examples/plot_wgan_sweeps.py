"""
Private WGANs on MNIST: clip, noise and capacity
================================================

Three figures of Schwabedal et al. (2020), *Differentially private generation of small images*, anew: the inception
score of digits that a private WGAN makes up, against the epsilon that they cost, for several clips, noise multipliers
and capacities of the critic. The settings are the paper's: Adam with a step of 4e-4, a gradient penalty of 10, clip
1, noise multiplier .5, capacity 32, lots of 128, one step of the critic for each of the generator. Three things
differ. Both networks are dense: the critic has one hidden layer of four units for each unit of capacity. Rows are
drawn independently, which is what the accountant prices, and not in shuffled batches. And the longest run has 9,380
steps, 20 epochs, where the paper has 18,760.

The judge is a network of scikit-learn that was trained on the real training rows, without privacy. A score that is to
be published needs a private judge, or public rows, as the paper says.

Run it alone::

    python examples/plot_wgan_sweeps.py --data mnist.npz     # or without --data: fetched from OpenML
    python examples/plot_wgan_sweeps.py --quick              # small digits that come with scikit-learn
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from skdp import DPWGAN
from skdp.datasets import load_mnist
from skdp.synthesis.metrics import inception_score

DELTA = 1e-5
PICTURE = "wgan_sweeps.png"
N_MADE_UP = 5_000


class Choices(NamedTuple):
    """One curve."""

    clip: float = 1.0
    noise: float = 0.5
    capacity: int = 32


MIDDLE = Choices()
NOT_PRIVATE = Choices(clip=100.0, noise=1e-3)  # a clip that is hardly reached, and next to no noise
SWEEPS: dict[str, tuple[Any, ...]] = {
    "clip": (0.1, 1.0, 100.0),
    "noise": (0.5, 0.8, 0.9, 1.0),
    "capacity": (16, 32, 96, 128),
}
EPOCHS = (2, 5, 10, 20)
QUICK_SWEEPS: dict[str, tuple[Any, ...]] = {"clip": (0.1, 1.0), "noise": (0.5, 1.0), "capacity": (16, 32)}
QUICK_EPOCHS = (10, 40)
LABELS = {"clip": "clip C", "noise": "noise multiplier", "capacity": "capacity of the critic"}


class Digits(NamedTuple):
    """Images as rows in [0, 1] and labels, for training and test."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


class Point(NamedTuple):
    """A run: its epochs, its price, and the inception score of what it makes up."""

    epochs: int
    epsilon: float
    score: float


def load(path: Path | None, quick: bool) -> Digits:
    """MNIST, or the small digits of scikit-learn."""
    if quick and path is None:
        pixels, labels = load_digits(return_X_y=True)
        pixels = (pixels / 16).astype(np.float32)
        return Digits(pixels[:1500], labels[:1500], pixels[1500:], labels[1500:])
    mnist = load_mnist(path)
    n = 6_000 if quick else len(mnist.data)
    return Digits(mnist.data[:n].astype(np.float32), mnist.target[:n], mnist.test_data, mnist.test_target)


def curve(digits: Digits, judge: Any, choices: Choices, epochs: tuple[int, ...]) -> list[Point]:
    """One run for each number of epochs."""
    points = []
    for n_epochs in epochs:
        model = DPWGAN(
            (0.0, 1.0), classes=range(10), label_shares="uniform", epsilon=None, noise_multiplier=choices.noise,
            delta=DELTA, max_grad_norm=choices.clip, critic_layer_sizes=4 * choices.capacity, lot_size=128,
            critic_steps=1, learning_rate_init=4e-4, generator_learning_rate_init=4e-4, weight_decay=0.0,
            max_iter=n_epochs,
        ).fit(digits.X, digits.y)  # fmt: skip
        made_up, _ = model.sample(N_MADE_UP, random_state=0)
        points.append(Point(n_epochs, model.epsilon_, inception_score(judge.predict_proba(made_up)).mean))
    return points


def sweep(digits: Digits, judge: Any, quick: bool) -> dict[Choices, list[Point]]:
    """All curves, printed; two at a time."""
    epochs = QUICK_EPOCHS if quick else EPOCHS
    sweeps = QUICK_SWEEPS if quick else SWEEPS
    chosen = [MIDDLE._replace(**{name: value}) for name, values in sweeps.items() for value in values]
    chosen = [NOT_PRIVATE, *dict.fromkeys(chosen)]
    chosen.sort(key=lambda choices: -choices.capacity)  # the longest first, so that no core waits for them
    run = delayed(curve)
    found = Parallel(n_jobs=1 if quick else 2)(run(digits, judge, choices, epochs) for choices in chosen)
    print("clip  noise  capacity  epochs   epsilon  inception score")
    for choices, points in zip(chosen, found, strict=True):
        for epochs_, epsilon, score in points:
            price = f"{epsilon:9.3g}" if choices is not NOT_PRIVATE else "        -"
            print(f"{choices.clip:4g} {choices.noise:6g} {choices.capacity:9d} {epochs_:7d} {price} {score:16.2f}")
    return dict(zip(chosen, found, strict=True))


def describe(found: dict[Choices, list[Point]], quick: bool) -> None:
    """What the three figures show: the last points of each curve, the best first."""
    for name, values in (QUICK_SWEEPS if quick else SWEEPS).items():
        last = {value: found[MIDDLE._replace(**{name: value})][-1] for value in values}
        ranked = sorted(last, key=lambda value: -last[value].score)
        message = ", ".join(
            f"{value:g}: {last[value].score:.2f} at epsilon {last[value].epsilon:.3g}" for value in ranked
        )
        print(f"\n{LABELS[name]}, best first: {message}")


def draw(found: dict[Choices, list[Point]], real: float, quick: bool, title: str, output: Path) -> None:
    """One panel a choice."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.2), dpi=120, sharey=True, layout="constrained")
    colours = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
    sweeps = QUICK_SWEEPS if quick else SWEEPS
    for ax, (name, values) in zip(axes, sweeps.items(), strict=True):
        for value, colour in zip(values, colours, strict=False):
            points = found[MIDDLE._replace(**{name: value})]
            epsilons, scores = [point.epsilon for point in points], [point.score for point in points]
            ax.plot(epsilons, scores, "o-", color=colour, label=f"{value:g}")
        ax.legend(fontsize=8, frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.14))
        without = ax.axhline(found[NOT_PRIVATE][-1].score, color="black", linestyle="--", label="not private")
        unit = ax.axhline(real, color="grey", linestyle=":", label="real test images")
        ax.set(xscale="log", xlabel=f"epsilon at delta = {DELTA:g}", title=LABELS[name])
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.grid(alpha=0.25)
    figure.legend(handles=[without, unit], fontsize=8, frameon=False, ncols=2, loc="outside lower center")
    axes[0].set_ylabel("inception score")
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
    """Print the scores and write the picture."""
    parser = argparse.ArgumentParser(description="Inception score of private WGANs on MNIST, against epsilon.")
    parser.add_argument("--quick", action="store_true", help="small digits, two values a choice")
    parser.add_argument("--data", type=Path, default=None, help="mnist.npz; default: $SKDP_DATA/mnist.npz, or OpenML")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    try:
        check_output(options.output)
        digits = load(options.data or default_data(), options.quick)
    except (OSError, ValueError) as error:
        sys.exit(f"plot_wgan_sweeps.py: {error}")
    n_passes = 25  # not to the end, so that the judge is not too sure of itself
    judge = MLPClassifier((200,), batch_size=100, max_iter=n_passes, tol=0.0, n_iter_no_change=n_passes + 1)
    judge = train_quietly(judge, digits)
    real = inception_score(judge.predict_proba(digits.X_test)).mean
    rows = f"{len(digits.y):,} digits of {'MNIST' if digits.X.shape[1] == 784 else 'scikit-learn'}"
    accuracy = 100 * judge.score(digits.X_test, digits.y_test)
    print(f"{rows}; the judge is right on {accuracy:.1f} % of the test images, whose inception score is {real:.2f}\n")
    found = sweep(digits, judge, options.quick)
    describe(found, options.quick)
    title = f"{rows}: what private WGANs make up; clip 1, noise multiplier 0.5, capacity 32, one of them varied"
    try:
        draw(found, real, options.quick, title, options.output)
    except ImportError:
        print('\nNo picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"\nPicture: {options.output}")


def train_quietly(judge: Any, digits: Digits) -> Any:
    """Train the judge; that it stops before it has converged is meant so."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return judge.fit(digits.X, digits.y)


if __name__ == "__main__":
    main()
