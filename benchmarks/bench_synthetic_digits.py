#!/usr/bin/env python3
"""Synthetic digits: classifiers trained on them, inception scores, and run time.

Reads MNIST from the folder that SKDP_DATA names. The generators see all 60,000 training images. The judge of the
inception score has learnt from the real training images, without privacy; its score of the 10,000 real test images is
the unit. ``--torch PYTHON`` names the interpreter of an environment with PyTorch: then the judge and a classifier are
convolutional networks, else there is a perceptron of scikit-learn in their place.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from synthesis_metrics import inception_score

from skdp import DPWGAN, DPClassMixtureGenerator
from skdp.datasets import load_mnist

DELTA = 1e-5
WGAN = {"weight_decay": 0.5, "generator_learning_rate_init": 4e-3, "n_latent": 24, "max_iter": 68}
"""Settings of the GAN, found on training images: 8,000 steps."""
JUDGE = Path(__file__).resolve().parent / "digits_judge.py"
BARS = {
    ("class mixture", 1.0): ".944 / .870; .64; 4 s",
    ("class mixture", 10.0): ".968 / .900; .80; 4 s",
    ("dense WGAN", 10.0): "-; .56; 300 s",
}
PUBLISHED = (
    "Published, of a convolutional network on synthetic digits at epsilon 10: .950 (Bie et al. 2023, Private GANs, "
    "revisited), .981 (Dockhorn et al. 2023, Differentially private diffusion models). Both trained for hours on GPUs."
)

Judge = Callable[[Any], Any]


def perceptron(X: Any, y: Any) -> Judge:
    """A judge that needs scikit-learn only."""
    return MLPClassifier((200,), early_stopping=True, random_state=0).fit(X, y).predict_proba


class Convolutional(NamedTuple):
    """Makes judges that are trained and asked in another environment."""

    python: str
    folder: Path

    def __call__(self, X: Any, y: Any) -> Judge:
        weights, rows = self.folder / f"{time.monotonic_ns()}.pt", self.folder / "rows.npz"
        np.savez(rows, X=np.asarray(X, np.float32), y=y)
        self._run("fit", rows, weights)

        def ask(asked: Any) -> Any:
            np.savez(rows, X=np.asarray(asked, np.float32))
            self._run("predict", weights, rows, self.folder / "out.npz")
            return np.load(self.folder / "out.npz")["probabilities"]

        return ask

    def _run(self, *arguments: str | Path) -> None:
        subprocess.run([self.python, JUDGE, *arguments], check=True, env={**os.environ, "PYTHONPATH": ""})


class Scores(NamedTuple):
    """What one generator reaches: accuracies on real test images, share of the inception score, seconds of the fit."""

    network: float
    logistic: float
    share: float
    seconds: float


def scores(model: Any, mnist: Any, train: Callable[[Any, Any], Judge] | None, judge: Judge, unit: float) -> Scores:
    """Fit a generator and judge 60,000 of its rows. No classifier learns from them without `train`."""
    start = time.perf_counter()
    model.fit(mnist.data, mnist.target)
    seconds = time.perf_counter() - start
    X, y = model.sample(len(mnist.data), random_state=0)
    share = inception_score(judge(X[: len(mnist.test_data)])) / unit
    if train is None:
        return Scores(np.nan, np.nan, share, seconds)
    network = train(X, y)(mnist.test_data).argmax(axis=1)
    logistic = LogisticRegression(max_iter=60).fit(X, y).predict(mnist.test_data)
    return Scores((network == mnist.test_target).mean(), (logistic == mnist.test_target).mean(), share, seconds)


def generator(name: str, epsilon: float, seed: int) -> Any:
    """Make the generator of that name."""
    known: dict[str, Any] = {"class mixture": DPClassMixtureGenerator, "dense WGAN": partial(DPWGAN, **WGAN)}
    return known[name](bounds=(0.0, 1.0), classes=range(10), epsilon=epsilon, delta=DELTA, random_state=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--generators", nargs="+", default=["class mixture", "dense WGAN"])
    parser.add_argument("--verbose", action="store_true", help="print each fit too")
    parser.add_argument("--share-only", action="store_true", help="train no classifiers on synthetic digits")
    parser.add_argument("--torch", help="Python of an environment with PyTorch")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    mnist = load_mnist(Path(os.environ["SKDP_DATA"]) / "mnist.npz")
    with tempfile.TemporaryDirectory() as folder:
        train = Convolutional(options.torch, Path(folder)) if options.torch else perceptron
        judge = train(mnist.data, mnist.target)
        real = judge(mnist.test_data)
        unit = inception_score(real)
        accuracy = (real.argmax(axis=1) == mnist.test_target).mean()
        print(f"judge: {'convolutional network' if options.torch else 'perceptron'}, {accuracy:.4f} of the test images")
        print(f"inception score of the real test images: {unit:.2f}\n{PUBLISHED}\n")
        print(f"{'':<28} {'network':>15} {'logistic':>15} {'share':>15} {'seconds':>8}   bar")
        for epsilon in options.epsilons:
            for name in options.generators:
                learn, runs = None if options.share_only else train, []
                for seed in range(options.seeds):
                    runs.append(scores(generator(name, epsilon, seed), mnist, learn, judge, unit))
                    if options.verbose:
                        print(f"  seed {seed}: {runs[-1]}", flush=True)
                means, spreads = np.mean(runs, axis=0), np.std(runs, axis=0)
                cells = " ".join(f"{mean:.4f} ± {sd:.4f}" for mean, sd in zip(means, spreads[:3], strict=False))
                bar = BARS.get((name, epsilon), "")
                print(f"{name + f' at {epsilon:g}':<28} {cells} {means[3]:8.1f}   {bar}", flush=True)


if __name__ == "__main__":
    main()
