#!/usr/bin/env python3
"""How far a private description of Adult is from the exact one, and how often its intervals hold.

    SKDP_DATA=... python benchmarks/bench_describe.py [--epsilons 0.1 1 4] [--repeats 20] [--peers FOLDER]

With ``--peers`` (see ``environments.py``) diffprivlib's tools answer the same questions, one after the other, each with
an equal share of epsilon: a mean, a standard deviation, five quantiles and a histogram of each number, counts of each
category. Its quantiles get numbers that no two rows share (it fails on ties), and all its answers the public bounds.

Errors are means over columns, or over pairs, and over repeats: of means in standard deviations of the column, of
standard deviations relative, of quantiles in ranks, of categories and bins the total variation. Coverage is that of
95 % intervals for the table itself. The schema is public: bounds and categories as the documentation of Adult has them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import time
import warnings
from pathlib import Path

import environments
import numpy as np

NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": {"bounds": (0, 99999), "scale": "log"},
    "capital-loss": {"bounds": (0, 4356), "scale": "log"},
    "hours-per-week": (1, 99),
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
DELTA = 1e-6


def adult():
    """Columns of the training part without the weights of the survey, and its public schema."""
    with gzip.open(Path(os.environ["SKDP_DATA"]) / "adult_train.csv.gz", "rt") as file:
        names, *rows = csv.reader(file)
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    del columns["fnlwgt"]
    table = {name: values.astype(np.int64) if name in NUMBERS else values for name, values in columns.items()}
    return table, {name: NUMBERS.get(name) or np.unique(values).tolist() for name, values in table.items()}


def rank_error(values, q, found):
    """How far a share q is from the ranks that the number found has."""
    below, upto = (values < found).mean(), (values <= found).mean()
    return max(below - q, q - upto, 0.0)


def holds(figure, exact):
    """Whether an interval holds the exact figure."""
    room = 1e-9 * max(1.0, abs(exact))
    return figure.low - room <= exact <= figure.high + room


class Exact:
    """The exact figures of a table."""

    def __init__(self, frame):
        self.frame, self.n = frame, len(frame)
        self.numbers = [name for name in frame if name in NUMBERS]
        self.correlation = frame[self.numbers].corr()


def errors_of(found, exact):
    """Errors and coverage of one description, in lists by name."""
    made = {name: [] for name in ("mean", "std", "rank", "bins", "categories", "correlation")}
    held = {name: [] for name in ("mean", "std", "quantiles", "counts", "correlation")}
    for name in exact.frame:
        histogram = found.histogram(name)
        values = exact.frame[name]
        if name in exact.numbers:
            figures, spread = found.figures(name), values.std(ddof=0)
            made["mean"].append(abs(figures["mean"].value - values.mean()) / spread)
            made["std"].append(abs(figures["std"].value / spread - 1.0))
            held["mean"].append(holds(figures["mean"], values.mean()))
            held["std"].append(holds(figures["std"], spread))
            for q in QUANTILES:
                each = figures[f"{100 * q:g}%"]
                made["rank"].append(rank_error(values.to_numpy(), q, round(each.value)))
                held["quantiles"].append(holds(each, np.quantile(values, q, method="inverted_cdf")))
            places = np.searchsorted(histogram["left"].to_numpy()[:-1], values, side="right") - 1
            counts = np.bincount(places, minlength=len(histogram)).astype(float)
        else:
            counts = values.value_counts().reindex(histogram.index).fillna(0.0).to_numpy()
        kind = "bins" if name in exact.numbers else "categories"
        made[kind].append(np.abs(histogram["count"] - counts).sum() / 2.0 / exact.n)
        held["counts"] += ((histogram["low"] <= counts + 1e-6) & (counts - 1e-6 <= histogram["high"])).tolist()
    pairs = found.pairs()
    for first, second in pairs.index:
        if first in exact.numbers and second in exact.numbers:
            each, r = pairs.loc[(first, second)], exact.correlation.loc[first, second]
            made["correlation"].append(abs(each["value"] - r))
            held["correlation"].append(each["low"] <= r <= each["high"])
    return made, held


def measure(epsilon, repeats):
    """Mean errors, coverage and seconds at one epsilon."""
    import pandas as pd  # neither is installed beside the peer

    import skdp

    table, schema = adult()
    frame = pd.DataFrame(table)
    exact, errors, held, seconds = Exact(frame), {}, {}, []
    for _ in range(repeats):
        start = time.perf_counter()
        found = skdp.describe(frame, schema=schema, epsilon=epsilon, delta=DELTA, quantiles=QUANTILES)
        seconds.append(time.perf_counter() - start)
        for into, parts in zip((errors, held), errors_of(found, exact), strict=True):
            for name, values in parts.items():
                into.setdefault(name, []).append(values)
    return {
        "epsilon": epsilon,
        "repeats": repeats,
        "errors": {name: float(np.mean(each)) for name, each in errors.items()},
        "coverage": {name: float(np.mean(each)) for name, each in held.items()},
        "least_coverage": {name: float(np.mean(each, axis=0).min()) for name, each in held.items()},
        "most_coverage": {name: float(np.mean(each, axis=0).max()) for name, each in held.items()},
        "seconds": float(np.median(seconds)),
    }


def measure_peer(epsilon, repeats):
    """The same errors of diffprivlib's tools, at the same price in all."""
    from diffprivlib import tools

    table, schema = adult()
    n, n_questions, errors, seconds = len(table["age"]), 7 * len(NUMBERS) + len(table), {}, []
    rng, share = np.random.default_rng(0), epsilon / n_questions
    for _ in range(repeats):
        start = time.perf_counter()
        for name, values in table.items():
            if name not in NUMBERS:
                codes = np.searchsorted(schema[name], values)
                edges = np.arange(len(schema[name]) + 1) - 0.5
                found, _ = tools.histogram(codes, epsilon=share, bins=edges)
                counts = np.bincount(codes, minlength=len(schema[name]))
                errors.setdefault("categories", []).append(np.abs(found - counts).sum() / 2 / n)
                continue
            given = NUMBERS[name]
            low, high = given["bounds"] if isinstance(given, dict) else given
            spread = values.std()
            mean = tools.mean(values, epsilon=share, bounds=(low, high))
            errors.setdefault("mean", []).append(abs(mean - values.mean()) / spread)
            deviation = tools.std(values, epsilon=share, bounds=(low, high))
            errors.setdefault("std", []).append(abs(deviation / spread - 1.0))
            apart = np.clip(values + rng.uniform(-0.5, 0.5, len(values)), low - 0.5, high + 0.5)
            for q in QUANTILES:
                found = tools.quantile(apart, q, epsilon=share, bounds=(low - 0.5, high + 0.5))
                errors.setdefault("rank", []).append(rank_error(values, q, np.clip(round(float(found)), low, high)))
            edges = np.geomspace(1, high + 1, 65) - 1 if isinstance(given, dict) else np.linspace(low, high, 65)
            found, _ = tools.histogram(values, epsilon=share, bins=edges)
            errors.setdefault("bins", []).append(np.abs(found - np.histogram(values, edges)[0]).sum() / 2 / n)
        seconds.append(time.perf_counter() - start)
    made = {name: float(np.mean(each)) for name, each in errors.items()}
    return {"epsilon": epsilon, "repeats": repeats, "errors": made, "seconds": float(np.median(seconds))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--peers", type=Path, help="folder with the environments of peers")
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.as_peer:
        print(json.dumps([measure_peer(epsilon, options.repeats) for epsilon in options.epsilons]))
        return
    rows, peers = [measure(epsilon, options.repeats) for epsilon in options.epsilons], []
    if options.peers is not None and (python := environments.python_of("diffprivlib", options.peers)):
        given = ["--repeats", str(options.repeats), "--epsilons", *map(str, options.epsilons)]
        command = [python, __file__, "--as-peer", *given]
        peers = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for k, row in enumerate(rows):
        print(f"epsilon {row['epsilon']:g}, {row['repeats']} repeats, {row['seconds']:.2f} s a description")
        for name, value in row["errors"].items():
            other = peers[k]["errors"].get(name) if peers else None
            print(f"  error of {name:12} {value:.5f}" + (f"   diffprivlib {other:.5f}" if other is not None else ""))
        for name, value in row["coverage"].items():
            least, most = row["least_coverage"][name], row["most_coverage"][name]
            print(f"  coverage of {name:12} {value:.3f}   of single figures {least:.3f} to {most:.3f}")
    if options.json:
        options.json.write_text(json.dumps({"skdp": rows, "diffprivlib": peers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
