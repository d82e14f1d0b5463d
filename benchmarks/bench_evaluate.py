#!/usr/bin/env python3
"""Private evaluation: errors that the noise makes, and coverage of the intervals.

Reads Adult, Fulton (PUMS) and credit from the folder that SKDP_DATA names. Scores are those of a logistic regression
that was fitted to 30 % of the rows; the other rows are the population, from which tables are drawn with replacement,
as it is and with the second class at 50 and at 5 %. Errors are root mean squares against the exact figures of the same
rows; coverage is that of the population's figures.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp

TABLES = {
    "adult": (("adult_train", "adult_test"), "income"),
    "fulton": (("pums_fulton_ga",), "married"),
    "credit": (("credit_default",), "default_payment_next_month"),
}
FIGURES = "roc_auc", "accuracy", "brier_score", "log_loss"
BARS = {  # of the noise on Adult, by n epsilon: AUROC's own; the others 1.2 times the trial's
    100: (np.nan, 0.041, 0.024, 0.071),
    1_000: (0.009, 0.0077, 0.0046, 0.0144),
    10_000: (0.0012, 0.00096, 0.0006, 0.00204),
    100_000: (0.0003, 0.00012, 0.00012, 0.00072),
}


class Population(NamedTuple):
    """Scores and classes, and the probability of each to be drawn."""

    scores: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def figures(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Exact figures of some rows, or of the population."""
        s, y, w = (self.scores, self.y, self.weights) if rows is None else (self.scores[rows], self.y[rows], None)
        return np.array([
            roc_auc_score(y, s, sample_weight=w), np.average((s >= 0.5) == y, weights=w),
            brier_score_loss(y, s, sample_weight=w), log_loss(y, s, sample_weight=w),
        ])  # fmt: skip


def population(folder: Path, name: str, rate: float | None) -> Population:
    """Scores of a table, with this share of the second class."""
    files, target = TABLES[name]
    table = pd.concat([pd.read_csv(folder / f"{file}.csv.gz") for file in files])
    y = (table[target] == table[target].max()).astype(int).to_numpy()
    X = pd.get_dummies(table.drop(columns=[target]), dtype=float).fillna(0.0).to_numpy()
    trained = np.random.default_rng(0).random(len(y)) < 0.3
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[trained], y[trained])
    scores, y = model.predict_proba(X[~trained])[:, 1], y[~trained]
    share = y.mean() if rate is None else rate
    return Population(scores, y, np.where(y == 1, share / y.sum(), (1 - share) / (1 - y).sum()))


def measure(people: Population, n: int, epsilon: float, repeats: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Root mean square error by the noise, and coverage, of each figure; and the number of bins."""
    rng, truth = np.random.default_rng(0), people.figures()
    errors, covered, n_bins = [], [], 0
    for _ in range(repeats):
        rows = rng.choice(len(people.y), n, p=people.weights)
        found = skdp.evaluate(None, people.scores[rows], people.y[rows], epsilon=epsilon)
        estimates = [found.roc_auc, found.accuracy(), found.brier_score, found.log_loss]
        if np.unique(people.y[rows]).size == 2:
            errors.append([each.value for each in estimates] - people.figures(rows))
        covered.append([each.low <= value <= each.high for each, value in zip(estimates, truth, strict=True)])
        n_bins = found.n_bins_
    return np.sqrt(np.mean(np.square(errors), axis=0)), np.mean(covered, axis=0), n_bins


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--rates", nargs="+", default=["as it is", "0.5", "0.05"])
    parser.add_argument("--sizes", nargs="+", default=["1000:0.1", "1000:1", "10000:0.1", "10000:1", "100000:1"])
    parser.add_argument("--repeats", type=int, default=2000)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*the noise hides")
    folder, cells = Path(os.environ["SKDP_DATA"]), []
    print("| table | class 2 | n, epsilon | bins | " + " | ".join(FIGURES) + " | coverage | s |")
    print("|" + "---|" * (6 + len(FIGURES)))
    for name in arguments.tables:
        for rate in arguments.rates:
            people = population(folder, name, None if rate == "as it is" else float(rate))
            for size in arguments.sizes:
                n, epsilon = int(size.split(":")[0]), float(size.split(":")[1])
                start = time.perf_counter()
                errors, covered, n_bins = measure(people, n, epsilon, arguments.repeats)
                bars = BARS.get(round(n * epsilon), ()) if (name, rate) == ("adult", "as it is") else ()
                told = [f"{e:.5f} ({b:g})" for e, b in zip(errors, bars or errors, strict=True)] if bars else []
                cells.append(covered)
                shown = " | ".join(told or [f"{each:.5f}" for each in errors])
                print(
                    f"| {name} | {rate} | {n}, {epsilon:g} | {n_bins} | {shown} | "
                    f"{' '.join(f'{each:.3f}' for each in covered)} | {time.perf_counter() - start:.0f} |",
                    flush=True,
                )
    print(f"coverage: from {np.min(cells):.3f} to {np.max(cells):.3f}, mean {np.mean(cells):.3f}")


if __name__ == "__main__":
    main()
