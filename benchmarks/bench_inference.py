"""Coverage and width of the intervals of private regressions, on made-up tables.

    python benchmarks/bench_inference.py [--tables 1000] [--rows 500,5000,50000] [--out FILE]

Eight columns and an intercept; each table has rows, residuals and noise of its own. "scaled" columns fill [-1, 1],
"uneven" ones too but residuals grow with the first of them, and of "small" columns four fill a part of [-1, 1], down to
a thirtieth. The width is divided by that of the interval without privacy, with the same sandwich. One line of JSON for
each part of a cell is appended to FILE, and those that it has are not measured again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import pathlib
import warnings

import numpy as np

from skdp import DPLinearRegression
from skdp.accounting import GaussianDpEvent, calibrate_noise_multiplier, compose
from skdp.linear_model.scores import SCORE_RELEASE

EPSILONS, PART = (0.1, 1.0, 4.0), 50
COEF = np.array([0.15, -0.1, 0.05, 0.0, 0.1, 0.0, -0.05, 0.02])
INTERCEPT, SPREAD = 0.1, 0.2
SMALL = np.array([1.0, 1.0, 1.0, 1.0, 0.3, 0.3, 0.1, 0.03])
KINDS = ("scaled", "uneven", "small")


def table(kind, n, seed):
    rng = np.random.default_rng([KINDS.index(kind), n, seed])
    X = rng.uniform(-1.0, 1.0, (n, len(COEF))) * (SMALL if kind == "small" else 1.0)
    residuals = SPREAD * rng.standard_normal(n)
    if kind == "uneven":
        residuals *= math.sqrt(3.0) * np.abs(X[:, 0])
    return X, X @ COEF + INTERCEPT + residuals


def widths_without_privacy(X, y):
    """Lengths of 95 % intervals of least squares, by the sandwich."""
    rows = np.c_[X, np.ones(len(X))]
    bread = np.linalg.inv(rows.T @ rows)
    scores = rows * (y - rows @ (bread @ (rows.T @ y)))[:, None]
    return 2 * 1.959964 * np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))


def measure(kind, n, epsilon, part):
    """Whether intervals are printed and hold, for each table and coefficient, and their relative widths."""

    def event_at(sigma):
        return compose([SCORE_RELEASE.event_at(sigma), GaussianDpEvent(sigma)])

    noise = calibrate_noise_multiplier(event_at, epsilon=epsilon, delta=delta_of(n))
    truth, found = np.append(COEF, INTERCEPT), []
    for seed in range(PART * part, PART * (part + 1)):
        X, y = table(kind, n, seed)
        model = DPLinearRegression(
            (-1, 1), epsilon=None, noise_multiplier=noise, delta=delta_of(n), data_norm=math.sqrt(8), inference=True
        )
        frame = model.fit(X, y).summary().to_frame()
        low, high = frame["low"].to_numpy(), frame["high"].to_numpy()
        found.append((np.isfinite(low), (low <= truth) & (truth <= high), (high - low) / widths_without_privacy(X, y)))
    printed, held, widths = map(np.array, zip(*found, strict=True))
    return {
        "kind": kind, "n": n, "epsilon": epsilon, "part": part,
        "tables": PART, "tables_printed": int(printed.all(axis=1).sum()),
        "printed": printed.sum(axis=0).tolist(), "held": (held & printed).sum(axis=0).tolist(),
        "width": [float(np.median(w[p])) if p.any() else None for w, p in zip(widths.T, printed.T, strict=True)],
    }  # fmt: skip


def delta_of(n):
    return 1e-5 if n <= 10_000 else 1e-6


def report(lines):
    print("kind    n       epsilon  tables  printed  coverage  least of a coefficient  width")
    for key, group in itertools.groupby(sorted(lines, key=cell_of), cell_of):
        parts = list(group)
        printed, held = (np.sum([each[name] for each in parts], axis=0) for name in ("printed", "held"))
        tables = sum(each["tables"] for each in parts)
        share = sum(each["tables_printed"] for each in parts) / tables
        shown = f"{key[0]:7s} {key[1]:<7d} {key[2]:<8g} {tables:<7d} {share:<8.3f} "
        if printed.any():
            width = np.mean([w for each in parts for w in each["width"] if w is not None])
            each = held / np.maximum(printed, 1)
            shown += f"{held.sum() / printed.sum():<9.4f} {each.min():.3f} to {each.max():.3f}         {width:.3f}"
        print(shown)


def cell_of(line):
    return line["kind"], line["n"], line["epsilon"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--rows", default="500,5000,50000")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results/inference.jsonl")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [json.loads(each) for each in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {(*cell_of(each), each["part"]) for each in lines}
    parts, rows, kinds = range(given.tables // PART), list(map(int, given.rows.split(","))), given.kinds.split(",")
    for part, n, kind, epsilon in itertools.product(parts, rows, kinds, EPSILONS):
        if (kind, n, epsilon, part) not in done:
            lines.append(measure(kind, n, epsilon, part))
            with given.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    report(lines)


if __name__ == "__main__":
    main()
