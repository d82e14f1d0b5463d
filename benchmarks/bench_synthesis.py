#!/usr/bin/env python3
"""Synthetic tables: errors of marginals, models trained on synthetic records, and run time.

Reads Adult and Colorado's ACSIncome from the folder that SKDP_DATA names, with bins and categories of a JSON file.
Errors are against the training rows, means over all pairs and over 100 triples. Judges, whatever the source of the
rows: logistic regression on one-hot columns, and boosted trees. Beside them stand private models that were trained
directly. ``--smartnoise``, ``--mbi`` and ``--dpmm PYTHON`` run the AIM and MST of `synthesis_peers.py` on the same
codes, each under the interpreter of an environment that has the library (``environments.py`` makes them), and
``--seeds 0`` runs nothing else.
``--numbers`` compares columns of numbers with the real ones, within bins too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp, wasserstein_distance
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder
from synthesis_metrics import marginal_error
from synthesis_peers import PEERS

from skdp import DPLogisticRegression, DPMarginalSynthesizer
from skdp.ensemble import DPRandomTreesClassifier
from skdp.preprocessing import DPTableVectorizer

HERE = Path(__file__).resolve().parent
DELTA = 1e-5
BARS = {
    ("adult", 0.1): ".057; .877 / .867",
    ("adult", 1.0): ".018; .908 / .897; triples .909 / .905",
    ("adult", 4.0): ".013; .909 / .899; triples .910 / .906",
    ("acsincome_colorado", 1.0): ".037; .869 / .861",
}


class Codes(NamedTuple):
    """Training and test rows as codes, the label last, and the number of levels of each column."""

    train: np.ndarray
    test: np.ndarray
    levels: list[int]


def read(folder: Path, spec: dict) -> Codes:
    """Code a table by the public description of its columns."""
    names = list(spec["columns"])
    if "file" in spec:
        whole = pd.read_csv(folder / spec["file"])
        order = np.random.RandomState(0).permutation(len(whole))
        cut = int(0.7 * len(whole))
        train, test = whole.iloc[order[:cut]], whole.iloc[order[cut:]]
    else:
        train, test = (pd.read_csv(folder / spec[part], keep_default_na=False) for part in ("train", "test"))
    columns, levels = [], []
    for name in names:
        column = spec["columns"][name]
        if "edges" in column:
            levels.append(len(column["edges"]) + 1)
            columns.append([np.searchsorted(column["edges"], each[name], side="right") for each in (train, test)])
        elif "levels" in column:
            levels.append(column["levels"])
            columns.append(
                [
                    np.clip(each[name].to_numpy() - column["offset"], 0, column["levels"] - 1).astype(int)
                    for each in (train, test)
                ]
            )
        else:
            every = column["values"] == "all of the file"
            values = sorted(train[name].unique()) if every else column["values"]
            levels.append(len(values) + (not every))
            columns.append(
                [
                    np.where((found := pd.Index(values).get_indexer(each[name])) < 0, len(values), found)
                    for each in (train, test)
                ]
            )
    return Codes(*(np.column_stack(part) for part in zip(*columns, strict=True)), levels)


def judged(made: np.ndarray, codes: Codes) -> list[float]:
    """AUROC on real rows of a logistic regression and of boosted trees that were trained on rows of codes."""
    encoder = OneHotEncoder(categories=[np.arange(size) for size in codes.levels[:-1]]).fit(made[:1, :-1])
    logistic = LogisticRegression(max_iter=60, C=0.3).fit(encoder.transform(made[:, :-1]), made[:, -1])
    boosted = HistGradientBoostingClassifier(max_iter=80, learning_rate=0.1, random_state=0).fit(
        made[:, :-1], made[:, -1]
    )
    truth = codes.test[:, -1]
    return [
        roc_auc_score(truth, logistic.predict_proba(encoder.transform(codes.test[:, :-1]))[:, 1]),
        roc_auc_score(truth, boosted.predict_proba(codes.test[:, :-1])[:, 1]),
    ]


def errors(made: np.ndarray, codes: Codes) -> list[float]:
    """Total variation of pairs and of 100 triples against the training rows."""
    bins = [None] * len(codes.levels)
    return [marginal_error(codes.train, made, k, bins=bins, max_sets=most) for k, most in ((2, None), (3, 100))]


def row(name: str, runs: list[list[float]], remark: str = "") -> None:
    """Print means of runs: TV2, TV3, logistic, boosted, seconds; and of several their standard deviations."""
    values = np.mean(runs, axis=0)
    if len(runs) > 1:
        remark = " ".join(["+-", *(f"{each:.4f}" for each in np.std(runs, axis=0, ddof=1)[:4]), remark])
    cells = " ".join("      -" if np.isnan(value) else f"{value:7.4f}" for value in values[:4])
    seconds = f"{values[4]:8.2f}" if len(values) > 4 else " " * 8
    print(f"{name:<44} {cells} {seconds}   {remark}", flush=True)


def ours(codes: Codes, epsilon: float, seed: int, **parameters: object) -> list[float]:
    """Fit and judge one generator."""
    names = [f"c{j}" for j in range(len(codes.levels) - 1)]
    schema = {name: list(range(size)) for name, size in zip(names, codes.levels, strict=False)}
    frame, y = pd.DataFrame(codes.train[:, :-1], columns=names), codes.train[:, -1]
    model = DPMarginalSynthesizer(schema, classes=range(codes.levels[-1]), epsilon=epsilon, delta=DELTA,
                                  random_state=seed, **parameters)  # fmt: skip
    start = time.perf_counter()
    model.fit(frame, y)
    seconds = time.perf_counter() - start
    X, labels = model.sample(len(frame), random_state=seed)
    made = np.column_stack([X.to_numpy(), labels])
    return [*errors(made, codes), *judged(made, codes), seconds]


def direct(codes: Codes, epsilon: float, seed: int) -> list[float]:
    """AUROC of a private logistic regression and of private trees that are trained on the private rows."""
    schema = {f"x{j}": list(range(size)) for j, size in enumerate(codes.levels[:-1])}
    encoder = DPTableVectorizer(schema)
    X, y = codes.train[:, :-1], codes.train[:, -1]
    given = {"classes": range(codes.levels[-1]), "epsilon": epsilon, "delta": DELTA, "random_state": seed}
    logistic = DPLogisticRegression(**given).fit(encoder.fit_transform(X), y)
    trees = DPRandomTreesClassifier(schema=schema, **given).fit(X, y)
    truth = codes.test[:, -1]
    return [
        np.nan,
        np.nan,
        roc_auc_score(truth, logistic.decision_function(encoder.transform(codes.test[:, :-1]))),
        roc_auc_score(truth, trees.decision_function(codes.test[:, :-1])),
    ]


def rows_of(codes: Codes, python: str, name: str, epsilon: float, delta: float, seconds: float) -> np.ndarray | None:
    """Rows that a synthesizer of another library makes in its own environment; None where it fails or takes longer."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, rows=codes.train, levels=codes.levels)
        command = [python, str(HERE / "synthesis_peers.py"), name, str(source), str(target), str(epsilon), str(delta)]
        environment = {**os.environ, "PYTHONPATH": "", "JAX_ENABLE_X64": "1", "JAX_ENABLE_COMPILATION_CACHE": "0"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds)
        except subprocess.TimeoutExpired:
            print(f"{name} at {epsilon:g}: no fit after {seconds:g} s")
            return None
        if done.returncode:
            print(f"{name}: {(done.stderr.strip() or 'no message').splitlines()[-1][:100]}")
            return None
        return np.load(target)["rows"]


def peer(codes: Codes, python: str, name: str, epsilon: float, seconds: float) -> list[float] | None:
    """Fit and judge a synthesizer of another library; None where there are no rows of it."""
    start = time.perf_counter()
    made = rows_of(codes, python, name, epsilon, DELTA, seconds)
    taken = time.perf_counter() - start
    return None if made is None else [*errors(made, codes), *judged(made, codes), taken]


def of_peers(codes: Codes, at: str, epsilon: float, options: argparse.Namespace) -> None:
    """Print a row for each synthesizer of another library that has an environment."""
    for name in PEERS:
        python = getattr(options, re.split(r"[ -]", name)[0])
        if python and (not options.peers or any(part in name for part in options.peers)):
            fits = (peer(codes, python, name, epsilon, options.limit) for _ in range(options.fits))
            if runs := [run for run in fits if run is not None]:
                row(f"{at}: {name} ({len(runs)})", runs)


def of_ours(codes: Codes, at: str, epsilon: float, bar: str, seeds: range) -> None:
    """Print a row for each of our generators, and one of models that are trained directly."""
    row(f"{at}: pairs", [ours(codes, epsilon, seed, triples=False) for seed in seeds], bar)
    row(f"{at}: default", [ours(codes, epsilon, seed) for seed in seeds], bar)
    row(f"{at}: selected pairs", [ours(codes, epsilon, seed, pairs="select") for seed in seeds])
    row(f"{at}: private models, trained directly", [direct(codes, epsilon, seed) for seed in seeds])


NUMBERS = {
    "adult_train.csv.gz": (
        "income",
        {"age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16), "capital-gain": (0, 100_000),
         "capital-loss": (0, 4_500), "hours-per-week": (1, 99)},
    ),
    "pums_fulton_ga.csv.gz": ("employed", {"age": (0, 100), "income": (-20_000, 720_000), "educ": (1, 16)}),
    "credit_default.csv.gz": (
        "default_payment_next_month",
        {"LIMIT_BAL": (0, 1_000_000), "AGE": (18, 80), **{f"BILL_AMT{i}": (-350_000, 1_700_000) for i in range(1, 7)},
         **{f"PAY_AMT{i}": (0, 1_700_000) for i in range(1, 7)}},
    ),
}  # fmt: skip
"""Files, labels, and public bounds of numbers; all other columns are categories."""


def distances(real: np.ndarray, made: np.ndarray) -> list[float]:
    """Wasserstein distance in standard deviations of the real column, and the largest error of a quantile's place."""
    return [wasserstein_distance(real, made) / real.std(), ks_2samp(real, made).statistic]


def of_numbers(file: str, epsilons: list[float], seeds: range) -> None:
    """Print rows for numbers that lie within their bins evenly, and as privately estimated shapes."""
    label, bounds = NUMBERS[file]
    whole = pd.read_csv(Path(os.environ["SKDP_DATA"]) / file).drop(columns=["ID", "state", "fips"], errors="ignore")
    whole = whole[[name for name in whole if name != label] + [label]]
    schema = {name: bounds.get(name, sorted(set(whole[name].tolist()))) for name in whole.columns[:-1]}
    classes = sorted(set(whole[label].tolist()))
    order = np.random.RandomState(0).permutation(len(whole))
    train, test = (whole.iloc[each] for each in np.split(order, [int(0.7 * len(whole))]))
    edges = [np.linspace(*bounds[name], 17)[1:-1] if name in bounds else None for name in whole.columns]

    def as_codes(frame: pd.DataFrame) -> np.ndarray:
        listed = [sorted(set(whole[name].tolist())) for name in whole.columns]
        return np.column_stack([frame[name] if name in bounds else pd.Index(cells).get_indexer(frame[name])
                                for name, cells in zip(whole.columns, listed, strict=True)])  # fmt: skip

    def binned(frame: pd.DataFrame) -> np.ndarray:
        columns = zip(as_codes(frame).T, edges, strict=True)
        return np.column_stack(
            [each if cuts is None else np.searchsorted(cuts, each, "right") for each, cuts in columns]
        )

    for epsilon, within in itertools.product(epsilons, ("uniform", "auto")):
        runs = []
        for seed in seeds:
            model = DPMarginalSynthesizer(schema, classes=classes, epsilon=epsilon, delta=DELTA, within_bins=within,
                                          random_state=seed)  # fmt: skip
            start = time.perf_counter()
            model.fit(train[train.columns[:-1]], train[label])
            seconds = time.perf_counter() - start
            X, y = model.sample(len(train), random_state=seed)
            made = X.assign(**{label: y})
            far = [distances(train[name].to_numpy(float), made[name].to_numpy(float)) for name in bounds]
            error = marginal_error(binned(train), binned(made), 2, bins=[None] * made.shape[1])
            boosted = HistGradientBoostingClassifier(max_iter=80, random_state=0).fit(as_codes(made)[:, :-1], y)
            found = boosted.predict_proba(as_codes(test)[:, :-1])[:, 1]
            runs.append([*np.mean(far, axis=0), error, roc_auc_score(test[label], found), seconds])
        row(f"{file.partition('.')[0]} at {epsilon:g}: {within}", runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--schemas", type=Path, default=HERE / "synthesis_schemas.json", help="public columns")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 4.0])
    parser.add_argument("--tables", nargs="+", default=["adult", "acsincome_colorado"])
    parser.add_argument("--smartnoise", help="Python of an environment with smartnoise-synth")
    parser.add_argument("--mbi", help="Python of an environment with mbi")
    parser.add_argument("--dpmm", help="Python of an environment with dpmm")
    parser.add_argument("--peers", nargs="+", help="parts of the names of those to run, such as 'mbi 2' or drawn")
    parser.add_argument("--fits", type=int, default=1, help="fits of each peer")
    parser.add_argument("--limit", type=float, default=1800, help="seconds after which a fit of a peer is given up")
    parser.add_argument("--numbers", action="store_true", help="numbers within bins, and nothing else")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.numbers:
        print(f"{'':<44} {'W1 / sd':>7} {'KS':>7} {'TV2':>7} {'boosted':>7} {'seconds':>8}")
        for file in NUMBERS:
            of_numbers(file, options.epsilons, range(options.seeds))
        return
    specs = json.loads(options.schemas.read_text())
    print(f"{'':<44} {'TV2':>7} {'TV3':>7} {'logist.':>7} {'boosted':>7} {'seconds':>8}   bar")
    for name in options.tables:
        codes = read(Path(os.environ["SKDP_DATA"]), specs[name])
        row(f"{name}: real training rows", [[0.0, 0.0, *judged(codes.train, codes)]])
        row(f"{name}: real test rows", [[*errors(codes.test, codes), np.nan, np.nan]])
        for epsilon in options.epsilons:
            bar = BARS.get((name, epsilon), "")
            if options.seeds:
                of_ours(codes, f"{name} at {epsilon:g}", epsilon, bar, range(options.seeds))
            of_peers(codes, f"{name} at {epsilon:g}", epsilon, options)


if __name__ == "__main__":
    main()
