#!/usr/bin/env python3
"""DPWGAN on MNIST: relative inception score, and time of a critic step.

Reads mnist.npz from the folder that SKDP_DATA names. The judge is scikit-learn's network of one hidden layer of 200
units, trained on the real training rows. Run it with OMP_NUM_THREADS=1 for the figures of one core.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier
from synthesis_metrics import inception_score

from skdp import DPWGAN
from skdp._dpsgd.models.network import count_parameters, split_tables
from skdp.datasets import load_mnist
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.adversaries import ConvolutionalCritic, ConvolutionalModel
from skdp.synthesis.critic import CriticModel, CriticNetwork, Lot
from skdp.synthesis.generator import GeneratorNetwork, start_tables

BARS = {10.0: ".56 (aim .7), 5 minutes"}


def step_times(rows: np.ndarray, codes: np.ndarray) -> None:
    """Medians of the critic's step, what the generator takes included and apart."""
    generator = GeneratorNetwork(64, 10, (256, 256), rows.shape[1])
    critics = {
        "dense, 128": (CriticModel, CriticNetwork(rows.shape[1], 10, (128,), 10.0), (256, 512, 1024, 2048)),
        "dense, 128 and 128": (
            CriticModel, CriticNetwork(rows.shape[1], 10, (128, 128), 10.0), (256, 512, 1024, 2048)
        ),
        "convolutions, capacity 32": (
            ConvolutionalModel, ConvolutionalCritic((28, 28), 10, 32, 10.0), (128,)
        ),
    }  # fmt: skip
    low, high = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    for name, (make, critic, lots) in critics.items():
        theta = np.zeros(critic.n_parameters + count_parameters(generator.widths), np.float32)
        stream = SecretStream.from_random_state(0, "benchmark")
        critic.start(theta[: critic.n_parameters], stream.spawn("critic"))
        start_tables(split_tables(theta[critic.n_parameters :], generator.widths), stream.spawn("generator"))
        model = make(rows, codes, low, high, critic, generator, dtype=np.float32)
        for size in lots:
            whole, part = [], []
            for step in range(9):
                lot = Lot(np.arange(size), stream.spawn("noise", step), stream.spawn("shares", step))
                start = time.perf_counter()
                model.clipped_gradient_sum(theta, lot, 0.1)
                whole.append(time.perf_counter() - start)
                latent = stream.normal(size * 64, np.float32).reshape(size, 64)
                start = time.perf_counter()
                generator.rows(theta[critic.n_parameters :], latent, codes[:size])
                part.append(time.perf_counter() - start)
            took, made = 1e3 * np.median(whole), 1e3 * np.median(part)
            print(f"{name:<28} lot {size:>5,}: {took:7.2f} ms, without the generator {took - made:7.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[10.0, 1.0])
    parser.add_argument("--max-iter", type=int, default=None, help="epochs; default: the rule of DPWGAN")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    mnist = load_mnist(Path(os.environ["SKDP_DATA"]) / "mnist.npz")
    rows, labels = mnist.data.astype(np.float32), np.asarray(mnist.target)
    step_times(rows, labels.astype(np.int64))
    if not options.seeds:
        return
    judge = MLPClassifier((200,), batch_size=100, max_iter=25, tol=0.0, n_iter_no_change=26, random_state=0)
    judge.fit(rows, labels)
    real = inception_score(judge.predict_proba(mnist.test_data))
    accuracy = 100 * judge.score(mnist.test_data, mnist.test_target)
    print(f"\njudge: right on {accuracy:.2f} % of the test images; their inception score {real:.3f}")
    for epsilon in options.epsilons:
        scores, agreed, took = [], [], []
        for seed in range(options.seeds):
            start = time.perf_counter()
            model = DPWGAN(
                (0, 1), classes=range(10), class_prevalences="uniform", epsilon=epsilon, delta=1e-5,
                max_iter=options.max_iter, random_state=seed,
            ).fit(rows, labels)  # fmt: skip
            took.append(time.perf_counter() - start)
            made, of = model.sample(10_000, random_state=seed)
            scores.append(inception_score(judge.predict_proba(made)) / real)
            agreed.append(judge.score(made, of))
        print(
            f"epsilon {epsilon:g}: share {np.mean(scores):.3f} +/- {np.std(scores):.3f}, judge agrees with labels on "
            f"{np.mean(agreed):.3f}, {np.mean(took):.0f} s, {model.n_steps_} steps   bar {BARS.get(epsilon, '-')}",
            flush=True,
        )


if __name__ == "__main__":
    main()
