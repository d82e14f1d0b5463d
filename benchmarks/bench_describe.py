#!/usr/bin/env python3
"""Errors of a private description of Adult, and the coverage of its confidence intervals.

    SKDP_DATA=... python benchmarks/bench_describe.py [--epsilons 0.1 1 4] [--repeats 20] [--peers FOLDER]
    python benchmarks/bench_describe.py --coverage [--repetitions 1000] [--epsilons 0.1 1 4] [--rows 2000 20000]

With ``--peers`` (see ``environments.py``) diffprivlib's tools answer the same questions, one after the other, each with
an equal share of epsilon: a mean, a standard deviation, five quantiles and a histogram of each number, counts of each
category. Its quantiles get numbers that no two rows share (it fails on ties), and all its answers the public bounds.
OpenDP answers them by Laplace noise and its exponential mechanism, with the same bounds and candidates from them; a row
is added or removed for counts and quantiles, and replaced for means and variances of a public number of rows.

Errors are means over columns, or over pairs, and over repeats: of means in standard deviations of the column, of
standard deviations relative, of quantiles in ranks, of categories and bins the total variation. Coverage is that of
95 % intervals for the table itself. The schema is public: bounds and categories as the documentation of Adult has them.

With ``--coverage``, six distributions are simulated, most of them skewed, with tight, wide and estimated bounds,
alone, with weights, and in groups. Coverage of 95 % intervals is that of the exact estimates of the values clipped to
the bounds. A cell fails if a one-sided binomial test at 1e-3 says that it covers in less than 94 %. Widths are medians,
divided by the width of the ordinary 95 % interval of the same estimate, which has sampling error alone.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import json
import math
import os
import subprocess
import time
import warnings
from pathlib import Path

import environments
import numpy as np
from scipy.stats import binom

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
            figures, spread = found.estimates(name), values.std(ddof=0)
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
    """The same errors of a peer's tools, at the same cost in all."""
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


def _money(rng, n):
    """Amounts of which 85 % are zero, with some below zero."""
    paid = rng.gamma(0.8, 900.0, n) * np.where(rng.random(n) < 0.1, -1.0, 1.0)
    return np.where(rng.random(n) < 0.85, 0.0, paid)


DESIGNS = {  # how values are drawn, tight bounds, wide bounds
    "normal": (lambda rng, n: rng.normal(50.0, 10.0, n), (0.0, 100.0), (-1000.0, 1000.0)),
    "lognormal": (lambda rng, n: rng.lognormal(10.0, 1.0, n), (0.0, 300_000.0), (0.0, 5e6)),
    "gamma": (lambda rng, n: rng.gamma(0.5, 1000.0, n), (0.0, 5000.0), (0.0, 1e5)),
    "Poisson 0.4": (lambda rng, n: rng.poisson(0.4, n).astype(np.int64), (0.0, 5.0), (0.0, 100.0)),
    "negative binomial": (
        lambda rng, n: rng.negative_binomial(0.7, 0.15, n).astype(np.int64),
        (0.0, 40.0),
        (0.0, 1000.0),
    ),
    "85 % zeros": (_money, (-1000.0, 6000.0), (-10_000.0, 100_000.0)),
}
BOUNDS = ("tight", "wide", "estimated")
WAYS = ("rows", "weights", "groups")


def weighted_estimates(values, weights, clipped):
    """Exact estimates of clipped values, each with the width of its ordinary 95 % interval."""
    order = np.argsort(values)
    x, w = np.clip(values, *clipped)[order], weights[order] / weights.sum()
    n = 1.0 / (w**2).sum()
    mean = w @ x
    variance = w @ (x - mean) ** 2
    std, fourth = np.sqrt(variance), w @ (x - mean) ** 4
    z = 2.0 * 1.96 / np.sqrt(n)
    found = {"mean": (mean, z * std), "std": (std, z * np.sqrt(fourth - variance**2) / (2.0 * std))}
    found["sum"] = weights.sum() * mean, weights.sum() * z * std
    upto = np.cumsum(w)
    for q in (0.25, 0.5, 0.75):
        ends = [q - 1e-12, *(q + side * 1.96 * np.sqrt(q * (1.0 - q) / n) for side in (-1, 1))]
        at, low, high = x[np.minimum(np.searchsorted(upto, ends), len(x) - 1)]
        found[f"{100 * q:g}%"] = at, high - low
    return found


def coverage(n, epsilon, bounds, way, repetitions, sums=True):
    """Which intervals hold, and their widths, of all designs: by design and estimate."""
    import pandas as pd

    import skdp
    from skdp.statistics import private_sum

    made = {}
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, n, BOUNDS.index(bounds), WAYS.index(way)])
        frame = pd.DataFrame({name: draw(rng, n) for name, (draw, *_) in DESIGNS.items()})
        schema = (
            None if bounds == "estimated" else {name: each[1 + (bounds == "wide")] for name, each in DESIGNS.items()}
        )
        given, weights = {}, np.ones(n)
        if way == "weights":
            weights = given["sample_weight"] = rng.uniform(0.2, 1.0, n)
        elif way == "groups":
            given["groups"] = codes = rng.integers(0, n // 3, n)
            weights = 1.0 / np.bincount(codes)[codes]
        quantiles = (0.25, 0.5, 0.75)
        found = skdp.describe(frame, schema=schema, epsilon=epsilon, delta=DELTA, quantiles=quantiles, **given)
        for name in frame:
            figures, clipped = found.estimates(name), found.schema_[name].bounds
            if sums and way != "weights":
                one = None if schema is None else schema[name]
                figures["sum"] = private_sum(frame[name], bounds=one, epsilon=epsilon, delta=DELTA, **given)
            exact = weighted_estimates(frame[name].to_numpy(), weights, clipped)
            for estimate, each in figures.items():
                if estimate not in exact:
                    continue
                value, width = exact[estimate]
                if estimate == "sum" and schema is None:  # its own call has estimated other bounds
                    pair = each.clipped_low, each.clipped_high
                    value = weighted_estimates(frame[name].to_numpy(), weights, pair)["sum"][0]
                held, wide, ordinary, lost = made.setdefault((name, estimate), ([], [], [], []))
                lost.append(math.isnan(each.value))
                if not lost[-1]:
                    held.append(holds(each, value))
                    wide.append(each.high - each.low)
                    ordinary.append(width)
    return made


def report_coverage(options):
    """Print one line a cell, and those that fail."""
    failed = 0
    print("rows epsilon bounds way design estimate: coverage, width / ordinary width, share without an interval")
    for n, epsilon, bounds, way in itertools.product(options.rows, options.epsilons, options.bounds, options.ways):
        found = coverage(n, epsilon, bounds, way, options.repetitions)
        for (name, estimate), (held, wide, ordinary, lost) in found.items():
            fails = bool(held) and binom.cdf(sum(held), len(held), 0.94) < 1e-3
            failed += fails
            of_ordinary = np.median(wide) / max(np.median(ordinary), 1e-300) if held else np.nan
            line = f"{n} {epsilon:g} {bounds} {way} {name} {estimate}: {np.mean(held) if held else np.nan:.3f}"
            shown = f"{of_ordinary:.3g}" if of_ordinary < 1e6 else f"{np.median(wide):.3g} for 0"
            print(f"{line}, {shown}, {np.mean(lost):.3f}{' FAILS' if fails else ''}", flush=True)
    print(f"{failed} cells fail")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 4.0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--peers", type=Path, help="folder with the environments of peers")
    parser.add_argument("--as-peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--coverage", action="store_true", help="coverage of intervals on simulated columns instead")
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 20_000])
    parser.add_argument("--bounds", choices=BOUNDS, nargs="+", default=BOUNDS)
    parser.add_argument("--ways", choices=WAYS, nargs="+", default=WAYS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.coverage:
        report_coverage(options)
        return
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
