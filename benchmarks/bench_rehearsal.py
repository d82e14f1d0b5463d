#!/usr/bin/env python3
"""Loss of accuracy predicted by `skdp.rehearse`, compared with the loss on real data.

    python benchmarks/bench_rehearsal.py --data FOLDER [--tables adult credit] [--splits 6] [--seeds 2]

AUROC that is lost to an epsilon of 100, by the same estimator: mean over random splits of a real table with its
standard error, and the mean of rehearsals that are told the number of rows, the share of the second class, and the
AUROC at an epsilon of 100. Settings of the made-up rows were chosen on Adult.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from typing import Any

import numpy as np
from benchmark_tables import Table, load
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import skdp

EPSILONS = (0.1, 0.5, 1.0)
WITHOUT_NOISE = 100.0
ESTIMATORS = {"linear": skdp.DPLogisticRegression, "trees": skdp.DPRandomTreesClassifier}


def pipeline(table: Table, kind: str, epsilon: float) -> Any:
    """The estimator on the columns of the schema, with public classes."""
    given = {"schema": table.schema, "epsilon": epsilon, "delta": table.delta, "classes": [0, 1]}
    return skdp.tabular_pipeline(ESTIMATORS[kind](), **given)


def measured(table: Table, kind: str, splits: int) -> np.ndarray:
    """AUROC at an epsilon of 100 and at each of `EPSILONS`, for each split."""
    rows = []
    for seed in range(splits):
        X, X_test, y, y_test = train_test_split(table.X, table.y, test_size=0.2, random_state=seed)
        models = [pipeline(table, kind, epsilon).fit(X, y) for epsilon in (WITHOUT_NOISE, *EPSILONS)]
        rows.append([roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]) for model in models])
    return np.array(rows)


def predicted(table: Table, kind: str, signal: float, seeds: int) -> tuple[np.ndarray, float]:
    """Losses at each of `EPSILONS` for each seed, and seconds of processor time of a rehearsal."""
    share, losses, seconds = float(table.y.mean()), [], []
    for seed in range(seeds):
        start = time.process_time()
        found = skdp.rehearse(
            pipeline(table, kind, 1.0), table.schema, n=int(0.8 * len(table.y)), epsilons=EPSILONS, signal=signal,
            class_prevalences=[1.0 - share, share], random_state=seed,
        )  # fmt: skip
        seconds.append(time.process_time() - start)
        losses.append(found.losses)
    return np.array(losses), float(np.median(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--tables", nargs="+", default=["adult", "fulton", "credit", "colorado"])
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS))
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    warnings.simplefilter("ignore")
    print("| table | estimator | AUROC without noise | epsilon | lost | error | predicted | miss | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in arguments.estimators:
        for name in arguments.tables:
            table = load(name, arguments.data)
            scores = measured(table, kind, arguments.splits)
            lost = scores[:, :1] - scores[:, 1:]
            errors = lost.std(axis=0, ddof=1) / arguments.splits**0.5
            said, seconds = predicted(table, kind, float(scores[:, 0].mean()), arguments.seeds)
            figures = zip(EPSILONS, lost.mean(axis=0), errors, said.mean(axis=0), strict=True)
            for epsilon, real, error, made_up in figures:
                print(
                    f"| {name} | {kind} | {scores[:, 0].mean():.4f} | {epsilon:g} | {real:.4f} | {error:.4f} "
                    f"| {made_up:.4f} | {made_up - real:+.4f} | {seconds:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
