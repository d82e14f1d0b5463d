#!/usr/bin/env python3
"""ROC AUC and accuracy of default settings on census data, compared with non-private logistic regression.

Reads the tables from the folder that SKDP_DATA names. Only `epsilon`, `delta` and what is public (classes, the norm of
one-hot rows) are set. Splits are seeded, the noise is secret, so figures differ from run to run by the error given.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from benchmark_tables import load, read_entry
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPLogisticRegression, DPMLPClassifier
from skdp.datasets import load_pums

N_BINS = 16


class Table(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    data_norm: float | None
    delta: float


def one_hot(codes: np.ndarray, n: int) -> np.ndarray:
    return np.eye(n, dtype=np.float32)[codes]


def adult(folder: Path) -> Table:
    """Adult's training file: each number in bins of equal width between its bounds, categories by the code book."""
    table = load("adult", folder)
    blocks = []
    for name, entry in table.schema.items():
        kind, values = read_entry(entry)
        if kind == "number":
            blocks.append(one_hot(np.digitize(table.X[name], np.linspace(*values, N_BINS + 1)[1:-1]), N_BINS))
        else:
            categories = [*values, *(entry["missing_values"] if isinstance(entry, dict) else ())]
            blocks.append(one_hot(pd.Categorical(table.X[name], categories=categories).codes, len(categories)))
    return Table(np.hstack(blocks), table.y, len(blocks) ** 0.5, table.delta)


def fulton(folder: Path) -> Table:
    """The poster's eleven columns, age scaled by its public bounds."""
    people = load_pums(folder / "pums_fulton_ga.csv.gz")
    low, high = np.array([people.bounds[name] for name in people.feature_names], np.float32).T
    X = np.ascontiguousarray((people.data - low) / (high - low), np.float32)
    return Table(X, 1 - people.target.astype(int), None, 1e-5)


def splits(table: Table, n: int) -> Iterator[list[np.ndarray]]:
    for seed in range(n):
        yield train_test_split(table.X, table.y, test_size=0.2, random_state=seed)


def measure(table: Table, n_splits: int, epsilons: list[float], estimator: type) -> None:
    print(f"{'epsilon':>12} {'delta':>8} {'AUROC':>8} {'error':>7} {'accuracy':>9} {'error':>7} {'s/fit':>6}")
    for epsilon in [None, *epsilons]:
        rows = []
        for X, X_test, y, y_test in splits(table, n_splits):
            if epsilon is None:
                model = LogisticRegression(max_iter=1000)
            else:
                model = estimator(epsilon=epsilon, delta=table.delta, data_norm=table.data_norm, classes=[0, 1])
            start = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - start
            scores = model.predict_proba(X_test)[:, 1]
            rows.append((roc_auc_score(y_test, scores), np.mean((scores > 0.5) == y_test), seconds))
        (auc, accuracy, seconds), (auc_sd, accuracy_sd, _) = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
        root = n_splits**0.5
        name = "not private" if epsilon is None else f"{epsilon:g}"
        print(
            f"{name:>12} {table.delta:8g} {auc:8.4f} {auc_sd / root:7.4f} {accuracy:9.4f} {accuracy_sd / root:7.4f} "
            f"{seconds:6.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--splits", type=int, default=25, help="random 80/20 splits of Adult")
    parser.add_argument("--seeds", type=int, default=10, help="random 80/20 splits of Fulton")
    parser.add_argument("--network", action="store_true", help="DPMLPClassifier in the place of DPLogisticRegression")
    arguments = parser.parse_args()
    estimator = DPMLPClassifier if arguments.network else DPLogisticRegression
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    folder = Path(arguments.data)
    print("Fulton PUMS (Census 2000), who is not employed, 11 columns")
    measure(fulton(folder), arguments.seeds, [0.1, 0.5, 1, 4, 8], estimator)
    table = adult(folder)
    print(f"\nAdult, income above 50K, {table.X.shape[1]} columns")
    measure(table, arguments.splits, [0.1, 0.5, 1, 4], estimator)
    print("\nAdult at delta 1e-5")
    measure(table._replace(delta=1e-5), arguments.splits, [0.1], estimator)


if __name__ == "__main__":
    main()
