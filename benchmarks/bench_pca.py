#!/usr/bin/env python3
"""Variance explained by DPPCA on MNIST, compared with non-private PCA and Analyze Gauss.

Reads mnist.npz from the folder that SKDP_DATA names. Captured is the share, of what as many non-private components
explain, that the private ones explain: of the energy of unit rows about zero, and of their variance about the mean.
Analyze Gauss (Dwork et al. 2014) gets the exact Gram matrix, the same noise multiplier and a seed of the same number.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import warnings
from pathlib import Path

import numpy as np

from skdp import DPPCA

K = 60
DELTA = 1e-5
BARS = {0.25: (".870", ".777"), 0.5: (".930", ".881"), 1.0: (".970", ".954")}


def captured(components: np.ndarray, second_moments: np.ndarray) -> float:
    best = np.linalg.eigvalsh(second_moments)[-len(components) :].sum()
    return float(np.trace(components @ second_moments @ components.T) / best)


def analyze_gauss(gram: np.ndarray, noise_std: float, seed: int) -> np.ndarray:
    noise = np.triu(np.random.default_rng(seed).normal(0.0, noise_std, gram.shape))
    return np.linalg.eigh(gram + noise + np.triu(noise, 1).T)[1][:, -K:].T


def row(what: str, values: list[float], bar: str = "") -> None:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    print(f"{what:<58} {statistics.mean(values):.4f} +- {spread:.4f}   {bar}", flush=True)


def quality(X: np.ndarray, n_seeds: int) -> None:
    units = X / np.linalg.norm(X, axis=1, keepdims=True).astype(np.float64)
    n, mean = len(X), units.mean(axis=0)
    gram = units.T @ units
    centered = gram - n * np.outer(mean, mean)
    for epsilon, (bar, centered_bar) in BARS.items():
        ours, theirs, about_mean, public = [], [], [], []
        for seed in range(n_seeds):
            model = DPPCA(K, epsilon=epsilon, delta=DELTA, center=False, normalize=True, random_state=seed).fit(X)
            ours.append(captured(model.components_, gram))
            theirs.append(captured(analyze_gauss(gram, model.noise_multiplier_, seed), gram))
            private = DPPCA(K, epsilon=epsilon, delta=DELTA, normalize=True, random_state=seed).fit(X)
            about_mean.append(captured(private.components_, centered))
            ideal = centered + symmetric_noise(model.noise_multiplier_, X.shape[1], seed)
            public.append(captured(np.linalg.eigh(ideal)[1][:, -K:].T, centered))
        row(f"epsilon {epsilon}, center=False", ours, f">= {bar}")
        row("  Analyze Gauss, same cost", theirs)
        row("  in pairs, ours less theirs", [a - b for a, b in zip(ours, theirs, strict=True)], ">= 0")
        row('  center="private", of the variance', about_mean, f"near {centered_bar}")
        row("  were the mean known for nothing", public)


def symmetric_noise(noise_std: float, d: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0.0, noise_std, (d, d))
    return (noise + noise.T) / 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of mnist.npz")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of mnist.npz with --data or SKDP_DATA.")
    warnings.simplefilter("ignore")  # seeds are told of, and meant here
    X = np.load(Path(arguments.data) / "mnist.npz")["x_train"].reshape(-1, 784).astype(np.float32)
    quality(X, arguments.seeds)


if __name__ == "__main__":
    main()
