#!/usr/bin/env python3
"""Variation between fits to the same few records, by the signal s = L sqrt(T) / (sigma sqrt(p)).

Reads the tables from the folder that SKDP_DATA names. Rows are drawn from the training file; the model is fitted to
them several times, each with secret noise of its own, and scored on 5,000 others of the same file.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from bench_quality import Table, adult, fulton
from sklearn.metrics import roc_auc_score

from skdp import DPLogisticRegression
from skdp._dpsgd.defaults import signal_of

SIZES = (20, 50, 100, 200, 500, 1000, 2000, 5000)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


def spreads(table: Table, n: int, epsilon: float, n_draws: int, n_fits: int) -> tuple[float, ...]:
    """Signal, and over fits to the same rows: standard deviation and range of accuracy, mean and deviation of AUROC."""
    found = []
    for seed in range(n_draws):
        order = np.random.default_rng(seed).permutation(len(table.X))
        rows, others = order[:n], order[-5000:]
        scores = []
        for _ in range(n_fits):
            model = DPLogisticRegression(epsilon=epsilon, delta=1e-5, data_norm=table.data_norm, classes=[0, 1])
            model.fit(table.X[rows], table.y[rows])
            chances = model.predict_proba(table.X[others])[:, 1]
            y = table.y[others]
            scores.append((np.mean((chances > 0.5) == y), roc_auc_score(y, chances)))
        accuracy, auc = np.array(scores).T
        signal = signal_of(model.noise_multiplier_, n, model.n_steps_, table.X.shape[1] + 1)
        found.append((signal, accuracy.std(ddof=1), np.ptp(accuracy), auc.mean(), auc.std(ddof=1)))
    return tuple(np.mean(found, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--draws", type=int, default=4, help="draws of rows")
    parser.add_argument("--fits", type=int, default=20, help="fits to each")
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    for name, read in (("Fulton, p=12", fulton), ("Adult, p=200", adult)):
        table = read(Path(arguments.data))
        print(name, table.X.shape)
        rows = [
            (n, epsilon, *spreads(table, n, epsilon, arguments.draws, arguments.fits))
            for n in SIZES
            for epsilon in EPSILONS
        ]
        print(f"{'n':>5} {'epsilon':>7} {'signal':>7} {'acc sd':>7} {'range':>6} {'AUROC':>6} {'sd':>6}")
        for row in sorted(rows, key=lambda row: row[2]):
            print("{:5d} {:7g} {:7.1f} {:7.3f} {:6.3f} {:6.3f} {:6.3f}".format(*row), flush=True)


if __name__ == "__main__":
    main()
