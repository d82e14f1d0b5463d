#!/usr/bin/env python3
"""How far a private description of Adult is from the exact one, and how often its intervals hold.

    SKDP_DATA=... python benchmarks/bench_describe.py [--epsilons 0.1 1 4] [--repeats 20] [--peers FOLDER]

With ``--peers`` (see ``environments.py``) diffprivlib's tools answer the same questions, one after the other, each with
an equal share of epsilon: a mean, a standard deviation, five quantiles and a histogram of each number, counts of each
category. Its quantiles get numbers that no two rows share (it fails on ties), and all its answers the public bounds.
OpenDP answers them by Laplace noise and its exponential mechanism, with the same bounds and candidates from them; a row
is added or removed for counts and quantiles, and replaced for means and variances of a public number of rows.

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


class Diffprivlib:
    """Its tools, each of which costs this epsilon."""

    def __init__(self, epsilon):
        self.epsilon, self.rng = epsilon, np.random.default_rng(0)

    def counts(self, codes, n_cells):
        from diffprivlib import tools

        return tools.histogram(codes, epsilon=self.epsilon, bins=np.arange(n_cells + 1) - 0.5)[0]

    def mean(self, values, bounds):
        from diffprivlib import tools

        return tools.mean(values, epsilon=self.epsilon, bounds=bounds)

    def deviation(self, values, bounds):
        from diffprivlib import tools

        return tools.std(values, epsilon=self.epsilon, bounds=bounds)

    def quantiles(self, values, bounds):
        from diffprivlib import tools

        low, high = bounds
        apart = np.clip(values + self.rng.uniform(-0.5, 0.5, len(values)), low - 0.5, high + 0.5)
        wide = low - 0.5, high + 0.5
        return [tools.quantile(apart, q, epsilon=self.epsilon, bounds=wide) for q in QUANTILES]


class OpenDP:
    """Its measurements, each of which costs this epsilon."""

    def __init__(self, epsilon):
        import opendp.prelude

        opendp.prelude.enable_features("contrib")
        self.epsilon, self.dp = epsilon, opendp.prelude
        self.whole = self.dp.vector_domain(self.dp.atom_domain(T=int)), self.dp.symmetric_distance()

    def counts(self, codes, n_cells):
        count = self.dp.t.make_count_by_categories(*self.whole, list(range(n_cells)), null_category=False)
        return np.array(self._noisy(count, 1)(codes.tolist()))

    def mean(self, values, bounds):
        return self._noisy(self.dp.t.make_mean(*self._sized(values, bounds)), 2)(values.astype(float).tolist())

    def deviation(self, values, bounds):
        found = self._noisy(self.dp.t.make_variance(*self._sized(values, bounds), 0), 2)(values.astype(float).tolist())
        return np.sqrt(max(found, 0.0))

    def quantiles(self, values, bounds):
        low, high = bounds
        candidates = list(range(low, high + 1)) if high - low < 1000 else _geometric(high)

        def at(q):
            return lambda scale: self.dp.m.make_private_quantile(
                *self.whole, self.dp.max_divergence(), candidates, q, scale
            )

        return [self.dp.binary_search_chain(at(q), 1, self.epsilon)(values.tolist()) for q in QUANTILES]

    def _sized(self, values, bounds):
        low, high = map(float, bounds)
        domain = self.dp.vector_domain(self.dp.atom_domain(bounds=(low, high)), size=len(values))
        return domain, self.dp.symmetric_distance()

    def _noisy(self, transformation, distance):
        laplace = self.dp.m.then_laplace
        return self.dp.binary_search_chain(lambda scale: transformation >> laplace(scale), distance, self.epsilon)


def _geometric(high):
    """A thousand whole numbers from 0 to `high`, fewer where they are small."""
    return np.unique(np.r_[0, np.geomspace(1, high, 1000).round()]).astype(int).tolist()


PEERS = {"diffprivlib": Diffprivlib, "opendp": OpenDP}


def measure_peer(epsilon, repeats, kind):
    """The same errors of a peer's tools, at the same price in all."""
    table, schema = adult()
    n, n_questions, errors, seconds = len(table["age"]), 7 * len(NUMBERS) + len(table), {}, []
    peer = kind(epsilon / n_questions)

    def distance(codes, n_cells):
        return np.abs(peer.counts(codes, n_cells) - np.bincount(codes, minlength=n_cells)).sum() / 2 / n

    for _ in range(repeats):
        start = time.perf_counter()
        for name, values in table.items():
            if name not in NUMBERS:
                codes = np.searchsorted(schema[name], values)
                errors.setdefault("categories", []).append(distance(codes, len(schema[name])))
                continue
            given = NUMBERS[name]
            bounds = given["bounds"] if isinstance(given, dict) else given
            spread = values.std()
            errors.setdefault("mean", []).append(abs(peer.mean(values, bounds) - values.mean()) / spread)
            errors.setdefault("std", []).append(abs(peer.deviation(values, bounds) / spread - 1.0))
            for q, found in zip(QUANTILES, peer.quantiles(values, bounds), strict=True):
                errors.setdefault("rank", []).append(rank_error(values, q, np.clip(round(float(found)), *bounds)))
            low, high = bounds
            edges = np.geomspace(1, high + 1, 65) - 1 if isinstance(given, dict) else np.linspace(low, high, 65)
            places = np.searchsorted(edges[1:-1], values, side="right")
            errors.setdefault("bins", []).append(distance(places, 64))
        seconds.append(time.perf_counter() - start)
    made = {name: float(np.mean(each)) for name, each in errors.items()}
    return {"epsilon": epsilon, "repeats": repeats, "errors": made, "seconds": float(np.median(seconds))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--peers", type=Path, help="folder with the environments of peers")
    parser.add_argument("--as-peer", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.as_peer:
        kind = PEERS[options.as_peer]
        print(json.dumps([measure_peer(epsilon, options.repeats, kind) for epsilon in options.epsilons]))
        return
    rows, peers = [measure(epsilon, options.repeats) for epsilon in options.epsilons], {}
    for peer in PEERS if options.peers is not None else ():
        if python := environments.python_of(peer, options.peers):
            given = ["--repeats", str(options.repeats), "--epsilons", *map(str, options.epsilons)]
            command = [python, __file__, "--as-peer", peer, *given]
            peers[peer] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for k, row in enumerate(rows):
        print(f"epsilon {row['epsilon']:g}, {row['repeats']} repeats, {row['seconds']:.2f} s a description")
        for name, value in row["errors"].items():
            others = (
                f"   {peer} {found[k]['errors'][name]:.5f}"
                for peer, found in peers.items()
                if name in found[k]["errors"]
            )
            print(f"  error of {name:12} {value:.5f}" + "".join(others))
        for name, value in row["coverage"].items():
            least, most = row["least_coverage"][name], row["most_coverage"][name]
            print(f"  coverage of {name:12} {value:.3f}   of single figures {least:.3f} to {most:.3f}")
    if options.json:
        options.json.write_text(json.dumps({"skdp": rows, **peers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
