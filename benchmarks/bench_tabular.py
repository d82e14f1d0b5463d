#!/usr/bin/env python3
"""`tabular_pipeline` on raw tables, without a schema and with a complete schema, compared with DP-EBM.

    python benchmarks/bench_tabular.py --data FOLDER [--splits 5] [--epsilon 1] [--ebm PYTHON]

AUROC on held-out rows of Adult and of credit default, all on the same splits. The noise is secret. `--ebm` names the
Python of an environment that has interpret-core, whose classifier is fitted there with `epsilon` and `delta` alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmark_tables import load
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split


def ours(schema: Any, epsilon: float, delta: float) -> Any:
    """The pipeline of one line."""
    import skdp

    return skdp.tabular_pipeline(schema=schema, epsilon=epsilon, delta=delta, classes=[0, 1])


def ebm(schema: Any, epsilon: float, delta: float) -> Any:
    """DP-EBM of one line."""
    from interpret.privacy import DPExplainableBoostingClassifier

    return DPExplainableBoostingClassifier(epsilon=epsilon, delta=delta)


def measure(folder: Path, name: str, make: Any, *, with_schema: bool, splits: int, epsilon: float) -> list[list[float]]:
    """AUROC and seconds of a fit, for each split."""
    table, y, schema, *_, delta = load(name, folder)
    rows = []
    for seed in range(splits):
        X, X_test, t, t_test = train_test_split(table, y, test_size=0.2, random_state=seed)
        start = time.perf_counter()
        model = make(schema if with_schema else None, epsilon, delta).fit(X, t)
        seconds = time.perf_counter() - start
        rows.append([float(roc_auc_score(t_test, model.predict_proba(X_test)[:, 1])), seconds])
    return rows


def peer(arguments: argparse.Namespace, name: str) -> list[list[float]]:
    """The same of DP-EBM, in its own environment."""
    command = [arguments.ebm, __file__, "--data", str(arguments.data), "--splits", str(arguments.splits)]
    command += ["--epsilon", str(arguments.epsilon), "--peer", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--ebm", help="Python with interpret-core")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.data is None:
        sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
    folder, sizes = Path(arguments.data), {"splits": arguments.splits, "epsilon": arguments.epsilon}
    if arguments.peer:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(folder, arguments.peer, ebm, with_schema=False, **sizes)))
        return
    for name in ("adult", "credit"):
        found = {
            "full schema": measure(folder, name, ours, with_schema=True, **sizes),
            "schema=None": measure(folder, name, ours, with_schema=False, **sizes),
        }
        if arguments.ebm:
            found["DP-EBM"] = peer(arguments, name)
        print(f"{name}, epsilon {arguments.epsilon:g}, {arguments.splits} splits")
        for what, rows in found.items():
            auc, seconds = np.array(rows).T
            print(f"  {what:12} AUROC {auc.mean():.4f} +- {auc.std(ddof=1):.4f}   {np.median(seconds):.2f} s a fit")


if __name__ == "__main__":
    main()
