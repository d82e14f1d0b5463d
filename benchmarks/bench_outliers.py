#!/usr/bin/env python3
"""ROC AUC of outlier detection by DPIsolationForest and by scikit-learn's IsolationForest.

Reads california_housing.csv.gz, wine_quality_white.csv.gz and credit_default.csv.gz from the folder that SKDP_DATA
names. Outliers of the blobs are uniform; those of housing and credit default, one for 50 rows, are made of cells of
different rows, so that no column alone shows them; those of wine are the wines of quality 3 and 4. Settings were chosen
by looking at blobs, housing and wine; credit default was looked at afterwards. `flagged` is the share of rows that
``predict`` calls outliers, of .05 that contamination asks for.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from skdp import DPIsolationForest

EPSILONS = (0.5, 1.0, 4.0)
HOUSING = {"longitude": (-124.5, -114), "latitude": (32.5, 42), "housing_median_age": (0, 52), "median_income": (0, 15)}
CREDIT = {"AGE": (18, 80), "LIMIT_BAL": (0, 800_000), "BILL_AMT1": (-10_000, 400_000), "PAY_AMT1": (0, 50_000)}
WINE = [
    (3, 15), (0, 1.2), (0, 1.7), (0, 70), (0, 0.4), (0, 300), (0, 450), (0.98, 1.04), (2.5, 4), (0, 1.2), (8, 15),
]  # fmt: skip
Rows = tuple[np.ndarray, np.ndarray, list[tuple[float, float]]]


def with_outliers(X: np.ndarray, outliers: np.ndarray, bounds: list[tuple[float, float]]) -> Rows:
    low, high = np.array(bounds, float).T
    X = np.clip(np.vstack([X, outliers]), low, high)
    return X, np.arange(len(X)) >= len(X) - len(outliers), bounds


def blobs(_: Path) -> Rows:
    rng = np.random.default_rng(0)
    centers = rng.uniform(-0.6, 0.6, (4, 6))
    X = centers[rng.integers(0, 4, 19_600)] + rng.normal(0, 0.08, (19_600, 6))
    return with_outliers(X, rng.uniform(-1, 1, (400, 6)), [(-1, 1)] * 6)


def mixed(folder: Path, file: str, bounds: dict[str, tuple[float, float]]) -> Rows:
    X = pd.read_csv(folder / file, usecols=list(bounds))[list(bounds)].dropna().to_numpy(float)
    rng = np.random.default_rng(0)
    outliers = np.column_stack([rng.permutation(column)[: len(X) // 50] for column in X.T])
    return with_outliers(X, outliers, list(bounds.values()))


def wine(folder: Path) -> Rows:
    rows = pd.read_csv(folder / "wine_quality_white.csv.gz")
    quality = rows.pop("quality")
    return rows.to_numpy(float), (quality <= 4).to_numpy(), WINE


TABLES = {
    "blobs": blobs,
    "housing": lambda folder: mixed(folder, "california_housing.csv.gz", HOUSING),
    "wine": wine,
    "credit default": lambda folder: mixed(folder, "credit_default.csv.gz", CREDIT),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    warnings.simplefilter("ignore")  # seeds are told of, and meant here
    for name in arguments.tables:
        X, y, bounds = TABLES[name](Path(arguments.data))
        seeds = range(arguments.seeds)
        theirs = [roc_auc_score(y, -IsolationForest(random_state=s).fit(X).score_samples(X)) for s in seeds]
        line = {"table": name, "n": len(X), "d": X.shape[1], "outliers": round(float(y.mean()), 3)}
        print(json.dumps({**line, "who": "scikit-learn", "auroc": round(float(np.mean(theirs)), 3)}), flush=True)
        for epsilon in EPSILONS:
            found, flagged, start = [], [], time.perf_counter()
            for seed in seeds:
                model = DPIsolationForest(
                    bounds=bounds, contamination=0.05, epsilon=epsilon, delta=1e-6, trees_random_state=seed,
                    random_state=seed,
                ).fit(X)  # fmt: skip
                found.append(roc_auc_score(y, -model.score_samples(X)))
                flagged.append(float((model.predict(X) == -1).mean()))
            line |= {
                "epsilon": epsilon, "who": "skdp", "auroc": round(float(np.mean(found)), 3),
                "worst": round(min(found), 3), "flagged": round(float(np.mean(flagged)), 3),
                "seconds": round((time.perf_counter() - start) / len(found), 2),
            }  # fmt: skip
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
