#!/usr/bin/env python3
"""First fits after the installation, a million rows, and the latency of one prediction.

    python benchmarks/bench_first_minutes.py [--rows 1000000] [--calls 300]

CPU seconds throughout, and wall-clock time for single rows. First fits run in processes of their own, with an empty
cache of Numba and then with the one that the first left. scikit-learn's own pipeline, imputed and scaled numbers and
one-hot columns before a logistic regression, has the same rows, in the same run and in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

SUBJECTS = "tabular_pipeline", "DPLogisticRegression", "DPMLPClassifier"
_TURN = 25


def frame_of(n_rows: int) -> tuple[pd.DataFrame, Any]:
    """Five numbers and four columns of words, and a label that follows from them and from chance."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "age": rng.integers(17, 90, n_rows),
        "hours": rng.normal(40.0, 9.0, n_rows),
        "pay": rng.exponential(1e3, n_rows),
        "rate": rng.normal(size=n_rows),
        "size": rng.uniform(size=n_rows),
        "work": rng.choice(["private", "state", "self", "none", "gov"], n_rows),
        "sex": rng.choice(["m", "f"], n_rows),
        "education": rng.choice([f"level {i}" for i in range(12)], n_rows),
        "state": rng.choice([f"S{i}" for i in range(50)], n_rows),
    })  # fmt: skip
    chance = 1.0 / (1.0 + np.exp(1.5 - frame["rate"] - (frame["sex"] == "m")))
    return frame, (rng.random(n_rows) < chance).astype(int)


def plain_pipeline() -> Any:
    """What a user of scikit-learn writes for such a table."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers[0]),
        (OneHotEncoder(handle_unknown="ignore"), numbers[1]),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=500))


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def first_fit(name: str) -> None:
    """Print the CPU seconds of the first and of the second fit of this process, without imports."""
    import skdp

    warnings.simplefilter("ignore")
    frame, y = frame_of(1000)
    X = frame if name == "tabular_pipeline" else np.random.default_rng(1).normal(size=(1000, 10))
    known = {} if name == "tabular_pipeline" else {"data_norm": 3.0}
    model = getattr(skdp, name)(epsilon=1.0, **known)
    print(json.dumps([cpu_seconds(lambda: model.fit(X, y)) for _ in range(2)]))


def first_fits() -> None:
    print("| first fit | CPU s, empty cache | CPU s, next process | CPU s, second fit |\n|---|---|---|---|")
    for name in SUBJECTS:
        with tempfile.TemporaryDirectory() as folder:
            known = os.environ | {"NUMBA_CACHE_DIR": folder}
            command = [sys.executable, __file__, "--first", name]
            (cold, _), (next_, again) = (
                json.loads(subprocess.run(command, env=known, check=True, capture_output=True, text=True).stdout)
                for _ in range(2)
            )
        print(f"| {name} | {cold:.2f} | {next_:.2f} | {again:.2f} |", flush=True)


def many_rows(n_rows: int) -> None:
    import skdp

    frame, y = frame_of(n_rows)
    skdp.tabular_pipeline(epsilon=1.0).fit(frame[:2000], y[:2000]).predict(frame[:2000])  # compiles
    print(f"\n| {n_rows:,} rows | CPU s of fit | CPU s of predict |\n|---|---|---|")
    for name, model in (("tabular_pipeline", skdp.tabular_pipeline(epsilon=1.0)), ("scikit-learn", plain_pipeline())):
        spent = cpu_seconds(lambda: model.fit(frame, y)), cpu_seconds(lambda: model.predict(frame))  # noqa: B023
        print(f"| {name} | {spent[0]:.2f} | {spent[1]:.2f} |", flush=True)


def single_rows(n_calls: int) -> None:
    import skdp

    frame, y = frame_of(5000)
    models = {"tabular_pipeline": skdp.tabular_pipeline(epsilon=1.0), "scikit-learn": plain_pipeline()}
    rows = [frame.iloc[i : i + 1] for i in range(200)]
    taken: dict[str, list[float]] = {name: [] for name in models}
    for model in models.values():
        model.fit(frame, y)
        for row in rows[:20]:
            model.predict_proba(row)
    for _ in range(0, n_calls, _TURN):  # in turns: other work on the machine slows both
        for name, model in models.items():
            for row in rows[:_TURN]:
                start = time.perf_counter()
                model.predict_proba(row)
                taken[name].append(1e3 * (time.perf_counter() - start))
    print("\n| one row | median, ms | p99, ms |\n|---|---|---|")
    figures = {name: np.quantile(each, [0.5, 0.99]) for name, each in taken.items()}
    for name, (median, p99) in figures.items():
        print(f"| {name} | {median:.1f} | {p99:.1f} |")
    ratio = figures["tabular_pipeline"] / figures["scikit-learn"]
    print(f"| ratio | {ratio[0]:.2f} | {ratio[1]:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--first", choices=SUBJECTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        first_fit(given.first)
        return
    warnings.simplefilter("ignore")
    first_fits()
    many_rows(given.rows)
    single_rows(given.calls)


if __name__ == "__main__":
    main()
