#!/usr/bin/env python3
"""ROC AUC of private hyperparameter search and of default settings at the same total epsilon.

    python benchmarks/bench_selection_quality.py --data FOLDER

FOLDER (or SKDP_DATA) holds Adult and the Fulton PUMS. Splits are seeded, the noise is secret. Each line is mean and
standard deviation over the splits; "less default" is the mean difference on the same split, with its standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from bench_quality import Table, adult, fulton, splits
from sklearn.metrics import roc_auc_score

from skdp import DPGridSearchCV, DPLogisticRegression

GRID = {"max_grad_norm": [0.1, 0.25, 0.5, 1.0], "alpha": [0.0, 1e-3]}
SEARCHES = {
    "random stopping, log-loss": {"scoring": "neg_log_loss"},
    "random stopping, accuracy": {"scoring": "accuracy"},
    "compose, log-loss": {"strategy": "compose", "scoring": "neg_log_loss"},
}


def measure(table: Table, n_splits: int, epsilons: list[float]) -> None:
    print(f"{'epsilon':>7}  {'':26} {'AUROC':^17}  {'less default':^18} {'s/fit':>6}")
    for epsilon in epsilons:
        found: dict[str, list[tuple[float, float]]] = {}
        for X, X_test, y, y_test in splits(table, n_splits):
            budget = {"epsilon": epsilon, "delta": table.delta}
            default = DPLogisticRegression(**budget, classes=[0, 1], data_norm=table.data_norm)
            models = {"default": default}
            models |= {name: DPGridSearchCV(default, GRID, **budget, **given) for name, given in SEARCHES.items()}
            for name, model in models.items():
                start = time.perf_counter()
                model.fit(X, y)
                seconds = time.perf_counter() - start
                found.setdefault(name, []).append((roc_auc_score(y_test, model.decision_function(X_test)), seconds))
        reference = np.array(found["default"])[:, 0]
        for name, rows in found.items():
            auroc, seconds = np.array(rows).T
            less = auroc - reference
            print(
                f"{epsilon:7g}  {name:26} {auroc.mean():.4f} +/- {auroc.std(ddof=1):.4f}  {less.mean():+.4f} +/- "
                f"{less.std(ddof=1) / len(less) ** 0.5:.4f} {np.median(seconds):6.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--splits", type=int, default=10, help="random 80/20 splits of each table")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1, 4])
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    for name, load in (("Fulton PUMS, who is not employed", fulton), ("Adult, income above 50K", adult)):
        table = load(Path(arguments.data))
        print(f"\n{name}: {table.X.shape[0]:,} people, {table.X.shape[1]} columns, delta {table.delta:g}")
        measure(table, arguments.splits, arguments.epsilons)


if __name__ == "__main__":
    main()
