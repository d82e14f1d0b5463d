#!/usr/bin/env python3
"""Private evaluation: errors due to noise, and coverage of the confidence intervals.

    SKDP_DATA=... python benchmarks/bench_evaluate.py --json figures.json [--repeats 2000] [--jobs 2]

Reads Adult, Fulton (PUMS), credit, California housing and MNIST from the folder that SKDP_DATA names. Scores are those
of a logistic regression that was fitted to 30 % of the rows, predictions of housing those of boosted trees, and scores
of the ten digits those of a softmax regression that was fitted to 1,500 rows; the other rows are the population, from
which tables are drawn with replacement, as it is and with the second class at 50 and at 5 %. Errors are root mean
squares against the exact figures of the same rows; coverage is that of the population's figures.

    python benchmarks/bench_evaluate.py --simulated --json simulated.json [--repetitions 1000] [--cells logistic bayes]

measures coverage and median widths on simulated scores of rare to balanced classes, and on skewed targets, beside the
width that the draw of the rows alone has: 3.92 standard deviations of the exact metric. Means over repetitions.

The file keeps what was measured, a hundred repetitions of a cell at a time, and a run continues from it: all cells have
about as many at any time. ``--repeats 0`` prints what it holds.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp.metrics.replicates import Replicates

TABLES = {
    "adult": (("adult_train", "adult_test"), "income"),
    "fulton": (("pums_fulton_ga",), "married"),
    "credit": (("credit_default",), "default_payment_next_month"),
}
OTHERS = "housing", "digits"
BOUNDS = 0.0, 500_001.0  # of the values of houses
CHUNK = 100  # repetitions of a cell that are kept at once
AS_IT_IS = "as it is"
RATES = "0.5", "0.05"
SIZES = "1000:0.1", "1000:1", "10000:0.1", "10000:1", "100000:1"
FIGURES = "roc_auc", "accuracy", "brier_score", "log_loss"
DIGITS_SIZES = "1000:1", "10000:0.1", "10000:1", "50000:1"
HOUSING = "r2", "root_mean_squared_error"
HOUSING_BARS = 0.005, 0.01  # at n epsilon = 10,000; of the second in proportion
BARS = {  # of the noise on Adult, by n epsilon: AUROC's own; the others 1.2 times the trial's
    100: (np.nan, 0.041, 0.024, 0.071),
    1_000: (0.009, 0.0077, 0.0046, 0.0144),
    10_000: (0.0012, 0.00096, 0.0006, 0.00204),
    100_000: (0.0003, 0.00012, 0.00012, 0.00072),
}


class Population(NamedTuple):
    """Scores and classes, and the probability of each to be drawn."""

    scores: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def figures(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Exact figures of some rows, or of the population."""
        s, y, w = (self.scores, self.y, self.weights) if rows is None else (self.scores[rows], self.y[rows], None)
        return np.array([
            roc_auc_score(y, s, sample_weight=w), np.average((s >= 0.5) == y, weights=w),
            brier_score_loss(y, s, sample_weight=w), log_loss(y, s, sample_weight=w),
        ])  # fmt: skip


def population(folder: Path, name: str, rate: float | None) -> Population:
    """Scores of a table, with this share of the second class."""
    files, target = TABLES[name]
    table = pd.concat([pd.read_csv(folder / f"{file}.csv.gz") for file in files])
    y = (table[target] == table[target].max()).astype(int).to_numpy()
    X = pd.get_dummies(table.drop(columns=[target]), dtype=float).fillna(0.0).to_numpy()
    trained = np.random.default_rng(0).random(len(y)) < 0.3
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[trained], y[trained])
    scores, y = model.predict_proba(X[~trained])[:, 1], y[~trained]
    share = y.mean() if rate is None else rate
    return Population(scores, y, np.where(y == 1, share / y.sum(), (1 - share) / (1 - y).sum()))


def estimates_of(found: skdp.metrics.PrivateEvaluation) -> list[skdp.metrics.Estimate]:
    """The figures of a private evaluation, in the order of the exact ones."""
    if not isinstance(found, skdp.metrics.OneVsRestEvaluation):  # whose means need all draws
        found._fitted_tables = for_intervals(found._fitted_tables)
    if isinstance(found, skdp.metrics.RegressionEvaluation):
        return [getattr(found, name) for name in HOUSING]
    accuracy = found.accuracy if isinstance(found, skdp.metrics.OneVsRestEvaluation) else found.accuracy()
    return [found.roc_auc, accuracy, found.brier_score, found.log_loss]


class Digits(NamedTuple):
    """Scores of ten digits and the true ones, all as likely to be drawn."""

    scores: np.ndarray
    y: np.ndarray
    weights: None = None

    def figures(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Exact figures of some rows, or of the population: mean AUROC of a digit against all others."""
        s, y = (self.scores, self.y) if rows is None else (self.scores[rows], self.y[rows])
        brier = ((s - np.eye(10)[y]) ** 2).sum(1).mean()
        auc = roc_auc_score(y, s, multi_class="ovr")
        return np.array([auc, np.mean(s.argmax(1) == y), brier, log_loss(y, s)])


def digits(folder: Path) -> Digits:
    """Digits of MNIST as pictures of 14 x 14, and what a softmax regression says of them."""
    with np.load(folder / "mnist.npz") as held:
        X = np.concatenate([held["x_train"], held["x_test"]]).reshape(-1, 14, 2, 14, 2).mean((2, 4)) / 255.0
        y = np.concatenate([held["y_train"], held["y_test"]]).astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X.reshape(len(y), -1)[order], y[order]
    model = LogisticRegression(max_iter=100).fit(X[:1500], y[:1500])
    return Digits(model.predict_proba(X[1500:]), y[1500:])


class Predictions(NamedTuple):
    """Predicted values of houses and the true ones, all as likely to be drawn."""

    scores: np.ndarray
    y: np.ndarray
    weights: None = None

    def figures(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Exact figures of some rows, or of the population."""
        s, y = (self.scores, self.y) if rows is None else (self.scores[rows], self.y[rows])
        return np.array([r2_score(y, s), root_mean_squared_error(y, s)])


def houses(folder: Path) -> Predictions:
    """Values of houses, within public bounds, and what trees say of them."""
    table = pd.read_csv(folder / "california_housing.csv.gz")
    y = table["median_house_value"].to_numpy(float).clip(*BOUNDS)
    X = pd.get_dummies(table.drop(columns=["median_house_value"]), dtype=float).to_numpy()
    trained = np.random.default_rng(0).random(len(y)) < 0.3
    model = HistGradientBoostingRegressor(random_state=0).fit(X[trained], y[trained])
    return Predictions(model.predict(X[~trained]).clip(*BOUNDS), y[~trained])


@functools.cache
def people_of(name: str, rate: str) -> tuple[Population | Predictions | Digits, np.ndarray]:
    """A population, and its exact figures."""
    folder = Path(os.environ["SKDP_DATA"])
    others = {"housing": houses, "digits": digits}
    share = None if rate == AS_IT_IS else float(rate)
    found = others[name](folder) if name in others else population(folder, name, share)
    return found, found.figures()


def measure(cell: str, chunk: int) -> dict[str, object]:
    """A hundred repetitions of a cell: sums over them of squared errors by the noise, and of intervals that hold."""
    warnings.filterwarnings("ignore", message=".*the noise hides")
    name, rate, size = cell.split("|")
    n, epsilon = int(size.split(":")[0]), float(size.split(":")[1])
    people, truth = people_of(name, rate)
    rng = np.random.default_rng([chunk, *cell.encode()])
    squares, covered, n_bins, n_exact = np.zeros(len(truth)), np.zeros(len(truth)), 0, 0
    given = {
        "housing": {"y_bounds": BOUNDS},
        "digits": {"classes": range(10), "one_vs_rest": True},
    }.get(name, {})
    for _ in range(CHUNK):
        rows = rng.choice(len(people.y), n, p=people.weights)
        found = skdp.evaluate(None, people.scores[rows], people.y[rows], epsilon=epsilon, **given)
        estimates = estimates_of(found)
        if rate == AS_IT_IS:  # exact figures take longer than the rest, and errors are held to bars there alone
            exact = people.figures(rows)
            squares += np.square(np.array([each.value for each in estimates]) - exact)
            n_exact += 1
        covered += [each.low <= value <= each.high for each, value in zip(estimates, truth, strict=True)]
        n_bins = found.n_bins_
    return {
        "repeats": CHUNK, "bins": n_bins, "truth": truth.tolist(), "covered": covered.tolist(), "exact": n_exact,
        "squares": squares.tolist(),
    }  # fmt: skip


SIMULATED = "logistic", "bayes", "trees", "ties", "constant"
PREVALENCES = 0.001, 0.002, 0.01, 0.05, 0.2, 0.5
TARGETS = {"lognormal": (0.0, 1000.0), "gamma": (0.0, 60.0), "counts": (0.0, 100.0)}
METRICS = "AUROC", "average precision", "recall", "log loss", "Brier score"
ERRORS = "R2", "RMSE", "MAE", "median error", "mean target"


def simulated_scores(kind: str, prevalence: float, n: int = 500_000) -> tuple[np.ndarray, np.ndarray]:
    """Scores and classes of a population with skewed log-odds."""
    rng = np.random.default_rng(42)
    z = 0.9 * rng.gamma(2.0, 1.0, n) + 0.6 * rng.standard_normal(n)
    low, high = -30.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(z + middle).mean() > prevalence else (middle, high)
    logits = z + low
    y = (rng.random(n) < expit(logits)).astype(int)
    if kind == "bayes":  # eight copies of a feature, counted as if independent
        return expit(8.0 * (z - z.mean() + 0.4 * rng.standard_normal(n)) + np.log(prevalence / (1 - prevalence))), y
    if kind in ("trees", "ties"):
        cuts = np.quantile(z, np.sort(rng.random(24)) if kind == "trees" else [0.5, 0.8, 0.95])
        leaf = np.searchsorted(cuts, z)
        means = np.array([logits[leaf == k].mean() for k in range(len(cuts) + 1)])
        steep = 1.5 * (means - means.mean()) + means.mean() + 0.4 * rng.standard_normal(len(means))
        return expit(steep if kind == "trees" else means)[leaf], y
    return (np.full(n, prevalence) if kind == "constant" else expit(logits)), y


def simulated_targets(kind: str, n: int = 500_000) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and skewed targets of a population, within their bounds."""
    rng = np.random.default_rng(42)
    x = rng.standard_normal(n)
    means = {"lognormal": np.exp(2.5 + 0.5 * x), "gamma": np.exp(1.0 + 0.4 * x), "counts": np.exp(1.0 + 0.6 * x)}[kind]
    y = {
        "lognormal": means * np.exp(0.6 * rng.standard_normal(n) - 0.18),
        "gamma": rng.gamma(1.5, means / 1.5),
        "counts": rng.poisson(means * rng.gamma(2.0, 0.5, n)),
    }[kind]
    return np.clip(means * 1.1, *TARGETS[kind]), np.clip(y, *TARGETS[kind])


def exact_figures(scores: np.ndarray, y: np.ndarray, at: float | None) -> np.ndarray:
    """Exact metrics of scores with a threshold, or of predictions without one."""
    if at is None:
        error = np.abs(scores - y)
        spread = 1 - np.mean(error**2) / y.var()
        return np.array([spread, np.sqrt(np.mean(error**2)), error.mean(), np.median(error), y.mean()])
    cut = np.clip(scores, 2.0**-53, 1 - 2.0**-53)
    loss = -np.mean(np.where(y == 1, np.log(cut), np.log1p(-cut)))
    auc, precision = roc_auc_score(y, scores), average_precision_score(y, scores)
    return np.array([auc, precision, np.mean(scores[y == 1] >= at), loss, np.mean((scores - y) ** 2)])


def for_intervals(tables: Replicates) -> Replicates:
    """What intervals need of the tables: those of rows and noise together, and no others."""
    gathered = tables.gathered and for_intervals(tables.gathered)
    return tables._replace(noise=tables.noise[:1], sampling=tables.sampling[:1], gathered=gathered)


def measure_simulated(cell: str, repetitions: int) -> dict[str, list[float]]:
    """Coverage, shares with an interval, median widths, and widths by the draw of the rows, of one cell."""
    kind, prevalence, n, epsilon = cell.split("|")
    at = None if kind in TARGETS else 0.5 if float(prevalence) == 0.5 else 2.0 * float(prevalence)
    scores, y = simulated_targets(kind) if at is None else simulated_scores(kind, float(prevalence))
    truth, rng = exact_figures(scores, y, at), np.random.default_rng(list(cell.encode()))
    given = {"classes": [0, 1]} if at is not None else {"y_bounds": TARGETS[kind]}
    ends, exact = [], []
    for repetition in range(repetitions):
        rows = rng.integers(0, len(y), int(n))
        found = skdp.evaluate(None, scores[rows], y[rows], epsilon=float(epsilon), **given)
        found._fitted_tables = for_intervals(found._fitted_tables)
        if at is None:
            shown = [found.r2, *(getattr(found, f"{name}_error") for name in ("root_mean_squared", "mean_absolute"))]
            shown += [found.median_absolute_error, found.mean_target]
        else:
            shown = [found.roc_auc, found.average_precision, found.recall(at), found.log_loss, found.brier_score]
        ends.append([each[1:3] for each in shown])
        if repetition < 100 and y[rows].sum() > 0:
            exact.append(exact_figures(scores[rows], y[rows], at))
    low, high = np.moveaxis(np.array(ends), -1, 0)
    hidden = (high - low >= 1.0) & (at is not None)
    widths = np.median(high - low, axis=0)
    return {
        "covered": np.mean((low <= truth) & (truth <= high), axis=0).tolist(), "hidden": hidden.mean(0).tolist(),
        "width": widths.tolist(), "plain": (3.92 * np.std(exact, axis=0)).tolist(), "repetitions": [repetitions],
    }  # fmt: skip


def shown_simulated(held: dict[str, dict[str, list[float]]]) -> str:
    """Coverage, and median width / width without noise, of each cell; "-" where most fits print no interval."""
    lines = []
    for cell, found in held.items():
        kind, prevalence, n, epsilon = cell.split("|")
        if not lines or (kind in TARGETS and lines[-1].startswith("| constant")):
            names = ERRORS if kind in TARGETS else METRICS
            lines += ["", "| scores | prevalence | n | epsilon | " + " | ".join(names) + " |", "|---" * 9 + "|"]
        told = (
            f"{covered:.3f} -" if hidden > 0.5 else f"{covered:.3f} {width:.2g} / {plain:.2g}"
            for covered, hidden, width, plain in np.transpose(
                [found[k] for k in ("covered", "hidden", "width", "plain")]
            )
        )
        lines.append(f"| {kind} | {prevalence} | {n} | {epsilon} | " + " | ".join(told) + " |")
    return "\n".join(lines)


def run_simulated(given: argparse.Namespace) -> None:
    """Measure the simulated cells that the file does not hold, and print all."""
    warnings.filterwarnings("ignore", message=".*the noise hides")
    held = json.loads(given.json.read_text()) if given.json.exists() else {}
    cells = [
        f"{kind}|{rate}|{size.replace(':', '|')}"
        for size in given.sizes
        for kind in (*SIMULATED, *TARGETS)
        for rate in (PREVALENCES if kind in SIMULATED else ("",))
        if not given.cells or kind in given.cells
    ]
    for cell in cells:
        if cell not in held and given.repetitions:
            held[cell] = measure_simulated(cell, given.repetitions)
            given.json.write_text(json.dumps(held, indent=1) + "\n")
    print(
        shown_simulated(
            dict(sorted(held.items(), key=lambda each: [*SIMULATED, *TARGETS].index(each[0].split("|")[0])))
        )
    )


def added(held: dict, found: dict) -> dict:
    """What a cell holds with one more chunk."""
    sums = {name: held.get(name, 0) + found[name] for name in ("repeats", "exact")}
    for name in ("covered", "squares"):
        sums[name] = np.add(held.get(name, 0), found[name]).tolist()
    return {"bins": found["bins"], "truth": found["truth"], **sums}


def chunks_left(cells: dict[str, int], held: dict[str, dict]) -> list[tuple[int, str]]:
    """Chunks to come, of the cell with the fewest repetitions first."""
    left = [
        (chunk, cell)
        for cell, repeats in cells.items()
        for chunk in range(held.get(cell, {}).get("repeats", 0) // CHUNK, repeats // CHUNK)
    ]
    return sorted(left, key=lambda each: each[0])


def shown(held: dict[str, dict]) -> str:
    """Tables of what was measured."""
    lines = ["| table | class 2 | n, epsilon | bins | repeats | coverage of " + ", ".join(FIGURES) + " | error (bar) |"]
    lines.append("|" + "---|" * 7)
    cells: list[float] = []
    for cell, each in held.items():
        name, rate, size = cell.split("|")
        n, epsilon = int(size.split(":")[0]), float(size.split(":")[1])
        covered = np.array(each["covered"]) / each["repeats"]
        cells.extend(covered if rate in RATES else [])
        told = ""
        if each["exact"]:
            errors = np.sqrt(np.array(each["squares"]) / each["exact"])
            bars = HOUSING_BARS if name == "housing" else BARS[round(n * epsilon)] if name == "adult" else errors
            errors = errors / [1, each["truth"][1]] if name == "housing" else errors
            told = ", ".join(f"{error:.2g} ({bar:.2g})" for error, bar in zip(errors, bars, strict=True))
        figures = " ".join(f"{share:.3f}" for share in covered)
        lines.append(
            f"| {name} | {rate} | {n}, {epsilon:g} | {each['bins']} | {each['repeats']} | {figures} | {told} |"
        )
    if cells:
        lines.append(f"classes at 50 and 5 %: from {min(cells):.3f} to {max(cells):.3f}, mean {np.mean(cells):.4f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=[*TABLES, *OTHERS], choices=[*TABLES, *OTHERS])
    parser.add_argument("--repeats", type=int, default=2000, help="of each cell, for coverage")
    parser.add_argument("--exact", type=int, default=400, help="of cells with classes as they are, for errors")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, required=True, help="file of what was measured, and is continued")
    parser.add_argument("--simulated", action="store_true", help="measure coverage on simulated scores and targets")
    parser.add_argument("--repetitions", type=int, default=1000, help="of each simulated cell")
    parser.add_argument("--sizes", nargs="+", default=["20000:1.0", "5000:1.0"], help="rows:epsilon of these cells")
    parser.add_argument("--cells", nargs="*", choices=[*SIMULATED, *TARGETS], help="kinds of simulated scores")
    given = parser.parse_args()
    if given.simulated:
        run_simulated(given)
        return
    held = json.loads(given.json.read_text()) if given.json.exists() else {}
    cells = {}
    for name in given.tables:
        if name in OTHERS:
            sizes = DIGITS_SIZES if name == "digits" else ("10000:1", "100000:0.1")
            cells |= {f"{name}|{AS_IT_IS}|{size}": given.exact for size in sizes}
            continue
        cells |= {f"{name}|{rate}|{size}": given.repeats for rate in RATES for size in SIZES}
        cells |= {f"{name}|{AS_IT_IS}|{size}": given.exact for size in SIZES if name == "adult"}
    with ProcessPoolExecutor(given.jobs) as workers:
        running = {workers.submit(measure, cell, chunk): cell for chunk, cell in chunks_left(cells, held)}
        for future in as_completed(running):
            cell = running[future]
            held[cell] = added(held.get(cell, {}), future.result())
            given.json.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")
    print(shown(held))


if __name__ == "__main__":
    main()
