"""Coverage and width of 95% confidence intervals of coefficients where events or categories are rare.

    python benchmarks/bench_rare_events.py [--repetitions 1000] [--cells logistic,poisson,...] [--out FILE]

Each cell simulates tables with noise of their own. "level e" has a category of a quarter of the rows with e expected
events, "prevalence p" has events in a proportion p of all rows, "skewed" has a lognormal column, "empty" a category
that never occurs, and "constant" a constant column. "poisson ... exposure" has rates with exposures as weights. The
median width is divided by that without privacy, from the Fisher information at the true coefficients. One line of JSON
for each cell and epsilon is appended to FILE; existing ones are kept. No design was used to choose the rules.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import warnings

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from skdp import DPLinearRegression, DPLogisticRegression, DPOrdinalLogisticRegression, DPPoissonRegressor

EPSILONS, N = (1.0, 4.0), 5_000
EVENTS = (0, 2, 7, 13, 33, 67, 100)
LEAST, SIGNIFICANCE = 0.94, 1e-3
MODELS = {
    "logistic": lambda: DPLogisticRegression(classes=[0, 1], inference=True),
    "multiclass": lambda: DPLogisticRegression(classes=[0, 1, 2], inference=True),
    "poisson": lambda: DPPoissonRegressor((0, 8)),
    "ordinal": lambda: DPOrdinalLogisticRegression([0, 1, 2]),
    "linear": lambda: DPLinearRegression((-4, 4), inference=True),
}


def levels(rng, n, probabilities):
    """Indicators of all levels but the first."""
    return np.eye(len(probabilities))[rng.choice(len(probabilities), n, p=probabilities)][:, 1:]


def columns(rng, name, n):
    """Rows of a design, their largest norm, and whether each coefficient exists."""
    x = np.clip(0.4 * rng.standard_normal((n, 1)), -1.0, 1.0)
    kind = name.split()[1]
    if kind == "prevalence":
        return np.c_[x, levels(rng, n, [0.5, 0.5]), levels(rng, n, [0.5, 0.3, 0.2])], math.sqrt(3)
    if kind == "skewed":
        pay = np.minimum(rng.lognormal(0.0, 1.0, (n, 1)), 25.0) / 12.5 - 1.0
        return np.c_[x, levels(rng, n, [0.6, 0.4]), pay], math.sqrt(3)
    if kind == "empty":
        return np.c_[x, levels(rng, n, [0.3, 0.3, 0.2, 0.2, 0.0])], math.sqrt(2)
    if kind == "constant":
        return np.c_[x, levels(rng, n, [0.6, 0.4]), np.full(n, 0.7)], math.sqrt(3)
    if kind == "19":
        two = levels(rng, n, [0.4, 0.25, 0.2, 0.15]), levels(rng, n, [0.5, 0.2, 0.2, 0.1])
        flags = (rng.random((n, 8)) < np.linspace(0.1, 0.5, 8)).astype(float)
        return np.c_[rng.uniform(-1.0, 1.0, (n, 5)), *two, flags], math.sqrt(15)
    return np.c_[x, levels(rng, n, [0.4, 0.35, 0.25])], math.sqrt(2)


def design(name, rng):
    """Rows, norm, coefficients with the intercept last, and weights or None."""
    kind, what, *rest = name.split()
    n = 20_000 if what in ("skewed", "19") or (kind, what) == ("logistic", "prevalence") else N
    X, norm = columns(rng, name, n)
    coefs = np.resize([0.4, -0.3, 0.2, 0.25, -0.1], X.shape[1])
    weights = rng.uniform(0.2, 1.0, n) if rest[1:] == ["exposure"] else None
    start = {"linear": 0.5, "poisson": 0.0}.get(kind, -0.8)
    if what == "level":
        rate = int(rest[0]) / (n * 0.25 * (1.0 if weights is None else 0.6))
        coefs[0], aim = 0.0, math.log(rate) if rate else -math.inf
        if kind != "poisson" and rate:
            aim -= math.log1p(-rate)
        coefs[-1] = aim - start
    elif what in ("prevalence", "skewed"):
        start = math.log(float(rest[0])) - (0.0 if kind == "poisson" else math.log1p(-float(rest[0])))
        coefs[-1] = 3.0 if what == "skewed" else coefs[-1]
        start += coefs[-1] * 0.87 if what == "skewed" else 0.0  # the mean of the column is -0.87
    return X, norm, np.append(coefs, start), weights


def linear_predictor(X, coefs):
    with np.errstate(invalid="ignore"):
        return np.where(X == 0.0, 0.0, X * coefs[:-1]).sum(axis=1) + coefs[-1]


def draw(name, seed):
    """Rows, norm, targets, weights, and the true coefficients and their standard errors without privacy."""
    rng = np.random.default_rng([seed, *name.encode()])
    X, norm, coefs, weights = design(name, rng)
    kind, eta, n = name.split()[0], linear_predictor(X, coefs), len(X)
    truth = coefs.copy()
    gone = (np.ptp(X, axis=0) == 0.0).nonzero()[0]
    if kind == "linear":
        y, slopes = eta + rng.standard_normal(n), np.ones(n)
    elif kind == "poisson":
        exposure = np.ones(n) if weights is None else weights
        y, slopes = rng.poisson(exposure * np.exp(eta)) / exposure, exposure * np.exp(eta)
    elif kind == "logistic":
        y, slopes = (rng.random(n) < expit(eta)).astype(int), expit(eta) * expit(-eta)
    elif kind == "ordinal":  # the level has few rows of the upper two classes
        y = np.digitize(eta + rng.logistic(size=n), [0.0, 1.0])
        truth, slopes = np.r_[coefs[:-1], -coefs[-1], 1.0 - coefs[-1]], expit(eta) * expit(-eta)
    else:  # the second class is as common as the first one
        odds = np.exp(np.c_[0.0 * eta, 0.0 * eta, eta])
        y = (rng.random((n, 1)) > np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
        truth, slopes = np.r_[0.0 * X[0], 0.0, coefs], expit(eta) * expit(-eta)
    truth[gone] = np.nan
    if len(gone) and name.split()[1] == "constant":
        truth[-1] = np.nan  # only the sum of the two is determined
    rows = np.c_[np.delete(X, gone, axis=1), np.ones(n)]
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.linalg.pinv((rows * slopes[:, None]).T @ rows, rcond=1e-12, hermitian=True)
    error = np.insert(np.sqrt(np.diag(inverse)), gone - np.arange(len(gone)), np.nan)
    error[~np.isfinite(coefs)] = np.nan
    if kind == "multiclass":
        error = np.r_[error * np.nan, error]
    elif kind == "ordinal":
        error = np.r_[error, np.nan]
    return X, norm, y, weights, truth, error


def measure(name, epsilon, repetitions):
    model, found = MODELS[name.split()[0]](), []
    for seed in range(repetitions):
        X, norm, y, weights, truth, error = draw(name, 70_000 + seed)
        public = {} if weights is None else {"weight_bound": 1.0, "y_bounds": (0, 20)}
        if seed == 0:  # the noise is calibrated once
            model.set_params(epsilon=epsilon, delta=1e-5, data_norm=norm, **public)
        frame = model.fit(X, y, sample_weight=weights).summary().to_frame()
        model.set_params(epsilon=None, noise_multiplier=model.noise_multiplier_)
        low, high = frame["low"].to_numpy(), frame["high"].to_numpy()
        found.append((np.isfinite(low), (low <= truth) & (truth <= high), (high - low) / (2 * 1.959964 * error)))
    printed, held, widths = map(np.array, zip(*found, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        width = np.nanmedian(np.where(printed, widths, np.nan), axis=0)
    return {
        "cell": name, "epsilon": epsilon, "repetitions": repetitions, "names": list(frame.index),
        "exists": np.isfinite(truth).tolist(), "printed": printed.sum(axis=0).tolist(),
        "held": (held & printed).sum(axis=0).tolist(), "width": [None if np.isnan(w) else round(w, 3) for w in width],
    }  # fmt: skip


def cells():
    names = [f"{kind} level {e}" for kind in ("logistic", "poisson") for e in EVENTS]
    names += [f"poisson level {e} exposure" for e in (0, 33, 300, 3000)] + ["poisson level 300", "poisson level 1000"]
    names += [f"logistic prevalence {p}" for p in (0.001, 0.005, 0.02, 0.1, 0.5)]
    names += [f"poisson prevalence {p}" for p in (0.02, 0.2, 1.0)]
    names += ["logistic skewed 0.03", "logistic skewed 0.2", "linear 19"]
    names += [
        f"{kind} {what}" for what in ("empty", "constant") for kind in ("logistic", "poisson", "linear", "ordinal")
    ]
    return names + [f"{kind} level {e}" for kind in ("ordinal", "multiclass") for e in (0, 13, 67, 300)]


def report(lines):
    print("| cell | epsilon | row | printed | coverage | width |\n|---|---|---|---|---|---|")
    for line in lines:
        last = len(line["names"]) - 1
        rows = zip(line["names"], line["exists"], line["printed"], line["held"], line["width"], strict=True)
        worst = {}
        for k, (name, exists, printed, held, width) in enumerate(rows):
            own = line["cell"].split()[1] == "level" and k == (last - 1 if "ordinal" not in line["cell"] else last - 2)
            group = name if own or not exists else "others"
            share = printed / line["repetitions"]
            shown = (held / printed if printed else math.nan, share, width, name, held, printed)
            worst.setdefault(group, []).append(shown)
        for group, found in worst.items():
            printed = np.mean([each[1] for each in found])
            held, count = sum(each[4] for each in found), sum(each[5] for each in found)
            below = [each[3] for each in found if each[5] and binom.cdf(each[4], each[5], LEAST) < SIGNIFICANCE]
            widths = [each[2] for each in found if each[2] is not None]
            mark = f" **below 0.94: {', '.join(below)}**" if below else ""
            print(
                f"| {line['cell']} | {line['epsilon']:g} | {group} | {printed:.3f} | "
                f"{f'{held / count:.3f}' if count else ''}{mark} | {f'{np.mean(widths):.2f}' if widths else ''} |"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--cells", default="")
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    if given.out is not None and given.out.exists():
        lines = [json.loads(each) for each in given.out.read_text().splitlines()]
    done = {(each["cell"], each["epsilon"]) for each in lines}
    for name in cells():
        for epsilon in EPSILONS:
            if (name, epsilon) not in done and any(name.startswith(each) for each in given.cells.split(",")):
                lines.append(measure(name, epsilon, given.repetitions))
                if given.out is not None:
                    with given.out.open("a") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
    report(lines)


if __name__ == "__main__":
    main()
