"""Coverage of confidence intervals from one synthetic table and from several combined tables.

    python benchmarks/bench_synthetic_inference.py [--tables 200] [--rows 1000,5000,20000] [--epsilons 1,4] [--sets 10]
    python benchmarks/bench_synthetic_inference.py --picture FILE

Made-up people: age of 8 levels, sex, education of 6 levels that follows from both, and income of 10 levels from all of
them. Estimates are the mean of income and the three slopes of its least squares, with errors by the sandwich; the truth
is that of four million people. Each table of people has rows, noise and synthetic tables of its own.
`--picture` draws intervals of the slope of education, of 40 tables of 5,000 people at epsilon 1.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import warnings

import numpy as np

from skdp import DPMarginalSynthesizer
from skdp.synthesis import combine_estimates

LEVELS, NAMES = (8, 2, 6, 10), ("mean income", "age", "sex", "education")
Z, SLOPE = 1.959964, 3


def people(n, seed):
    rng = np.random.default_rng([7, seed])
    age, sex = rng.integers(0, 8, n), rng.integers(0, 2, n)
    education = np.clip(np.round(rng.normal(2.5 + 1.0 * (age > 3) - 0.5 * sex, 1.3)), 0, 5)
    income = np.clip(np.round(1.5 + 0.5 * education + 0.2 * age + 0.8 * sex + rng.normal(0, 1.5, n)), 0, 9)
    return np.c_[age, sex, education, income].astype(int)


def estimates(table):
    """The mean of the last column and slopes of the others, and their squared errors."""
    table = np.asarray(table, float)
    rows, y = np.c_[np.ones(len(table)), table[:, :3]], table[:, 3]
    bread = np.linalg.inv(rows.T @ rows)
    slopes = bread @ (rows.T @ y)
    scores = rows * (y - rows @ slopes)[:, None]
    errors = np.diag(bread @ (scores.T @ scores) @ bread)
    return np.r_[y.mean(), slopes[1:]], np.r_[y.var() / len(y), errors[1:]]


def synthesizer(epsilon):
    schema = {f"x{j}": list(range(size)) for j, size in enumerate(LEVELS)}
    return DPMarginalSynthesizer(schema, epsilon=epsilon, delta=1e-5)


def intervals(n, epsilon, seed, n_sets):
    """Center and reach of naive intervals, and of combined ones."""
    model = synthesizer(epsilon).fit(people(n, seed))
    single, squares = estimates(model.sample(n, random_state=seed))
    found = [estimates(each) for each in model.sample_sets(n_sets, random_state=seed)]
    combined = combine_estimates(*zip(*found, strict=True))
    return (single, Z * np.sqrt(squares)), (combined.estimate, (combined.high - combined.low) / 2.0)


def report(truth, n, epsilon, tables, n_sets):
    found = [intervals(n, epsilon, 10_000 + seed, n_sets) for seed in range(tables)]
    for k, name in enumerate(("a single table", "tables combined")):
        center, reach = (np.array(each) for each in zip(*(each[k] for each in found), strict=True))
        held, width = (np.abs(center - truth) <= reach).mean(axis=0), 2.0 * np.median(reach, axis=0)
        shown = "  ".join(f"{h:.3f} ({w:.3f})".ljust(16) for h, w in zip(held, width, strict=True))
        print(f"{n:<7d} {epsilon:<8g} {name:17s} {shown}", flush=True)


def draw_picture(truth, path, n_sets):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, sharex=True, layout="constrained")
    found = [intervals(5_000, 1.0, 20_000 + seed, n_sets) for seed in range(40)]
    for k, (ax, title) in enumerate(zip(axes, ("one synthetic table", f"{n_sets + 1} combined"), strict=True)):
        holds = 0
        for row, each in enumerate(found):
            center, reach = each[k][0][SLOPE], each[k][1][SLOPE]
            holds += (held := abs(center - truth[SLOPE]) <= reach)
            ax.plot([center - reach, center + reach], [row, row], color="C0" if held else "C3", lw=2)
        ax.axvline(truth[SLOPE], color="black", lw=1)
        ax.set(title=f"{title}: {holds} of 40 hold", xlabel="income by a level of education", yticks=[])
        print(f"{title}: {holds} of 40")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--rows", default="1000,5000,20000")
    parser.add_argument("--epsilons", default="1,4")
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--picture", type=pathlib.Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    truth = estimates(people(4_000_000, 10**6))[0]
    if given.picture is not None:
        draw_picture(truth, given.picture, given.sets)
        return
    print("rows    epsilon  intervals of      " + "  ".join(name.ljust(16) for name in NAMES) + "  coverage (width)")
    rows, epsilons = map(int, given.rows.split(",")), map(float, given.epsilons.split(","))
    for n, epsilon in itertools.product(rows, list(epsilons)):
        report(truth, n, epsilon, given.tables, given.sets)


if __name__ == "__main__":
    main()
