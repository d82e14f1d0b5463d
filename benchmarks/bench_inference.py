"""Coverage and width of confidence intervals of private regressions on simulated data.

    python benchmarks/bench_inference.py [--tables 1000] [--rows 500,5000,50000] [--first 0] [--out FILE]
    python benchmarks/bench_inference.py --newton FOLDER [--draws 20]
    python benchmarks/bench_inference.py --fulton FOLDER [--draws 200]
    python benchmarks/bench_inference.py --picture FILE
    python benchmarks/bench_inference.py --bootstrap [--draws 20] [--epsilon 1]

Eight columns and an intercept; each table has rows, residuals and noise of its own. "scaled" columns fill [-1, 1],
"uneven" ones too but residuals grow with the first of them, and of "small" columns four fill a part of [-1, 1], down to
a thirtieth; "bounds" are those after `formula_rows`, which is told what they fill. Targets are numbers, classes by
"logistic" probabilities, of log-odds mostly between -1 and 1 or, if "steep", three times as far, or "poisson" counts of
a mean of 1.5, cut at 10, or "ordinal" classes of those log-odds, of which one has 5 % of the rows. The width is divided
by that of the interval without privacy, with the same sandwich. One line of JSON for each part of a cell is appended to
FILE, and those that it has are not measured again. `--first` is the first part, of 50 tables: those of other numbers
are other tables, and some of the first were looked at when rules were chosen.

`--newton` measures, on Adult and Fulton, how far coefficients of logistic regression are from those without privacy, by
Newton steps and by averaged gradient descent: root mean square over draws of the noise, divided by the standard error
of sampling, in the median and at the most of the columns.

`--fulton` fits income and marriage of Fulton at epsilon 1, beside statsmodels if that is installed: how many of the
draws of the noise have intervals that hold the estimates without privacy, with and without the part of sampling.
`--picture` draws intervals of private fits to made-up people, with and without the part of the noise.
`--bootstrap` has the widths of intervals beside those between percentiles of 100 private fits to rows drawn again, of
the same cost together. A row that is drawn k times counts k times there, which would cost more than is charged.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import pathlib
import warnings

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skdp import DPLinearRegression, DPLogisticRegression, DPOrdinalLogisticRegression, DPPoissonRegressor
from skdp.preprocessing import formula_rows

EPSILONS, PART = (0.1, 1.0, 4.0), 50
COEF = np.array([0.15, -0.1, 0.05, 0.0, 0.1, 0.0, -0.05, 0.02])
INTERCEPT, SPREAD = 0.1, 0.2
BY_BOUNDS = "bounds"
SMALL = np.array([1.0, 1.0, 1.0, 1.0, 0.3, 0.3, 0.1, 0.03])
KINDS = (
    *("scaled", "uneven", "small", "logistic", "logistic small", "logistic steep", "poisson", "poisson small"),
    *("bounds", "logistic bounds", "poisson bounds"),
    *("ordinal", "ordinal small", "ordinal steep"),
)
STEEPNESS = {"logistic": 5.0, "logistic steep": 15.0, "poisson": 3.0, "ordinal": 5.0, "ordinal steep": 15.0}
THRESHOLDS = np.array([-1.0, 0.2, 0.45, 1.5])
ROWS_BY_BOUNDS = formula_rows(".", {f"x{j}": (-half, half) for j, half in enumerate(SMALL)})
MEANS = {  # of targets by the linear predictor, and the slope by the mean
    "logistic": (expit, lambda mean: mean * (1.0 - mean)), "poisson": (np.exp, lambda mean: mean),
}  # fmt: skip
LINEAR = (lambda eta: eta, np.ones_like)


def truth_of(kind):
    if kind.startswith("ordinal"):
        return np.append(COEF * STEEPNESS.get(kind, STEEPNESS["ordinal"]), THRESHOLDS)
    return np.append(COEF, INTERCEPT) * STEEPNESS.get(kind, STEEPNESS.get(kind.split()[0], 1.0))


def table(kind, n, seed):
    rng = np.random.default_rng([KINDS.index(kind), n, seed])
    X = rng.uniform(-1.0, 1.0, (n, len(COEF))) * (SMALL if kind.endswith(("small", BY_BOUNDS)) else 1.0)
    if kind.startswith("ordinal"):
        return X, np.digitize(X @ truth_of(kind)[: len(COEF)] + rng.logistic(size=n), THRESHOLDS)
    *coef, intercept = truth_of(kind)
    eta = X @ coef + intercept
    if kind.startswith("logistic"):
        return X, (rng.random(n) < expit(eta)).astype(int)
    if kind.startswith("poisson"):
        return X, rng.poisson(np.exp(eta))
    residuals = SPREAD * rng.standard_normal(n)
    if kind == "uneven":
        residuals *= math.sqrt(3.0) * np.abs(X[:, 0])
    return X, eta + residuals


def widths_without_privacy(kind, X, y):
    """Lengths of 95 % intervals by the sandwich."""
    return 2 * 1.959964 * estimates_without_privacy(kind, X, y)[1]


def estimates_without_privacy(kind, X, y):
    """Coefficients, and their standard errors by the sandwich."""
    if kind.startswith("ordinal"):
        return ordinal_without_privacy(X, y, truth_of(kind))
    rows, theta = np.c_[X, np.ones(len(X))], np.zeros(X.shape[1] + 1)
    mean_of, slope_of = MEANS.get(kind.split()[0], LINEAR)
    for _ in range(12 if kind.split()[0] in STEEPNESS else 1):
        mean = mean_of(rows @ theta)
        bread = np.linalg.inv((rows * slope_of(mean)[:, None]).T @ rows)
        theta += bread @ (rows.T @ (y - mean))
    scores = rows * (y - mean_of(rows @ theta))[:, None]
    return theta, np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))


def ordinal_without_privacy(X, y, theta):
    """By Newton steps on the likelihood as it is written, of coefficients and thresholds."""
    edges = np.eye(len(THRESHOLDS))
    above, below = (np.c_[-X, np.vstack(each)[y]] for each in ((edges, 0 * edges[:1]), (0 * edges[:1], edges)))
    ends = np.where(y == len(edges), np.inf, 0.0), np.where(y == 0, -np.inf, 0.0)
    for _ in range(8):
        high, low = expit(above @ theta + ends[0]), expit(below @ theta + ends[1])
        chance, slopes = (high - low)[:, None], [each * (1.0 - each) for each in (high, low)]
        scores = (above * slopes[0][:, None] - below * slopes[1][:, None]) / chance
        bends = [slope * (1.0 - 2.0 * each) for slope, each in zip(slopes, (high, low), strict=True)]
        curvature = scores.T @ scores - (above / chance * bends[0][:, None]).T @ above
        bread = np.linalg.inv(curvature + (below / chance * bends[1][:, None]).T @ below)
        theta = theta + bread @ scores.sum(axis=0)
    return theta, np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))


def measure(kind, n, epsilon, part):
    """Whether intervals are printed and hold, for each table and coefficient, and their relative widths."""
    public = {"epsilon": epsilon, "delta": delta_of(n), "data_norm": math.sqrt(8)}
    if kind.startswith("poisson"):
        model = DPPoissonRegressor((0, 10), **public)
    elif kind.startswith("ordinal"):
        model = DPOrdinalLogisticRegression(range(len(THRESHOLDS) + 1), **public)
    elif kind.startswith("logistic"):
        model = DPLogisticRegression(classes=[0, 1], inference=True, **public)
    else:
        model = DPLinearRegression((-1, 1), inference=True, **public)
    truth, found = truth_of(kind), []
    for seed in range(PART * part, PART * (part + 1)):
        X, y = table(kind, n, seed)
        if kind.endswith(BY_BOUNDS):
            made = ROWS_BY_BOUNDS.step.transform(X)
            frame = model.fit(made, y).summary(scales=ROWS_BY_BOUNDS.scales).to_frame()
        else:
            frame = model.fit(X, y).summary().to_frame()
        model.set_params(epsilon=None, noise_multiplier=model.noise_multiplier_)  # calibrated once
        low, high, plain = frame["low"].to_numpy(), frame["high"].to_numpy(), widths_without_privacy(kind, X, y)
        found.append((np.isfinite(low), (low <= truth) & (truth <= high), (high - low) / plain))
    printed, held, widths = map(np.array, zip(*found, strict=True))
    return {
        "kind": kind, "n": n, "epsilon": epsilon, "part": part,
        "tables": PART, "tables_printed": int(printed.all(axis=1).sum()),
        "printed": printed.sum(axis=0).tolist(), "held": (held & printed).sum(axis=0).tolist(),
        "width": [float(np.median(w[p])) if p.any() else None for w, p in zip(widths.T, printed.T, strict=True)],
    }  # fmt: skip


def plain_table(name, folder):
    """Columns of numbers and flags between -1 and 1, and classes; those of Adult that are numbers, and the sex."""
    import pandas as pd

    if name == "adult":
        table = pd.read_csv(folder / "adult_train.csv.gz")
        bounds = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99), "sex": (0, 1)}
        bounds |= {"capital-gain": (0, 99_999), "capital-loss": (0, 5_000)}
        table, y = table.assign(sex=table["sex"] == "Male"), table["income"] == ">50K"
    else:
        table = pd.read_csv(folder / "pums_fulton_ga.csv.gz")
        bounds = {"age": (18, 93), "educ": (1, 16), "income": (0, 150_000)}
        flags = "sex latino black asian uscitizen children disability militaryservice employed englishability"
        bounds |= dict.fromkeys(flags.split(), (0, 1))
        y = table["married"]
    low, high = np.array(list(bounds.values()), float).T
    X = 2.0 * (table[list(bounds)].to_numpy(float) - low) / (high - low) - 1.0
    return np.clip(X, -1.0, 1.0), y.to_numpy().astype(int)


def compare_with_descent(folder, draws):
    print("table   epsilon  by                 median  most   (root mean square error over standard error)")
    for name in ("adult", "fulton"):
        X, y = plain_table(name, folder)
        without = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y).coef_[0]
        error = widths_without_privacy("logistic", X, y)[:-1] / (2 * 1.959964)
        for epsilon, inference in itertools.product((0.1, 0.5, 1.0, 4.0), (True, False)):
            model = DPLogisticRegression(classes=[0, 1], epsilon=epsilon, delta=1e-6, inference=inference)
            moved = [(model.fit(X, y).coef_[0] - without) / error for _ in range(draws)]
            figures = np.sqrt(np.mean(np.square(moved), axis=0))
            by = "Newton steps" if inference else "averaged descent"
            print(f"{name:7s} {epsilon:<8g} {by:18s} {np.median(figures):<7.2f} {figures.max():.1f}")


def fulton_tables(folder):
    """Two regressions: names of columns, rows in [-1, 1], targets, and a private and a plain model."""
    import pandas as pd

    table = pd.read_csv(folder / "pums_fulton_ga.csv.gz")
    bounds = {"age": (18, 93), "educ": (1, 16), "sex": (0, 1)}
    low, high = np.array(list(bounds.values()), float).T
    X = np.clip(2.0 * (table[list(bounds)].to_numpy(float) - low) / (high - low) - 1.0, -1.0, 1.0)
    public = {"delta": 1e-6, "data_norm": math.sqrt(X.shape[1]), "inference": True}
    income = np.clip(table["income"].to_numpy(float), 0, 150_000)
    yield list(bounds), X, income, "scaled", DPLinearRegression((0, 150_000), **public)
    flags = ["latino", "black", "asian", "children", "employed"]
    X = np.c_[X, 2.0 * table[flags].to_numpy(float) - 1.0]
    public["data_norm"] = math.sqrt(X.shape[1])
    married = table["married"].to_numpy().astype(int)
    yield [*bounds, *flags], X, married, "logistic", DPLogisticRegression(classes=[0, 1], **public)


def compare_on_fulton(folder, draws):
    try:
        import statsmodels.api as sm
    except ImportError:
        sm = None
    for names, X, y, kind, model in fulton_tables(folder):
        frames = [model.fit(X, y).summary().to_frame() for _ in range(draws)]
        frame = frames[0]
        if sm is not None:
            rows = np.c_[X, np.ones(len(X))]
            family = sm.OLS(y, rows) if kind == "scaled" else sm.Logit(y, rows)
            plain = family.fit(cov_type="HC1", **({} if kind == "scaled" else {"disp": 0}))
            without, error = np.asarray(plain.params), np.asarray(plain.bse)
        else:
            without, error = estimates_without_privacy(kind, X, y)
        print(f"{type(model).__name__}, n = {len(y)}, epsilon 1, by {'statsmodels' if sm else 'numpy'} without privacy")
        print("                private   std err     without   std err   holds it   by the noise alone")
        both = np.array([(each["low"] <= without) & (without <= each["high"]) for each in frames]).mean(axis=0)
        noise = [np.abs(each["coef"] - without) <= 1.959964 * each["noise"] for each in frames]
        noise = np.array(noise).mean(axis=0)
        for k, name in enumerate([*names, "(intercept)"]):
            line = frame.iloc[k]
            print(
                f"{name:12s} {line.coef:10.4g}  {line.std_err:8.3g}  {without[k]:10.4g}  {error[k]:8.3g}   "
                f"{both[k]:.3f}      {noise[k]:.3f}"
            )


def draw_picture(path):
    """Intervals of the effect of a degree on being employed: 40 tables of 20,000 made-up people each, at epsilon .4."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from skdp.datasets import make_census

    def people_of(n, seed):
        people = make_census(n, random_state=seed)
        low, high = np.array([people.bounds[name] for name in people.feature_names], float).T
        X = 2.0 * (people.data - low) / (high - low) - 1.0
        return people.feature_names, X, (people.target == people.classes[1]).astype(int)

    names, X, y = people_of(400_000, 10**6)
    column = next(k for k, name in enumerate(names) if name == "collegedegree")
    truth = estimates_without_privacy("logistic", X, y)[0][column]
    model = DPLogisticRegression(
        classes=[0, 1], epsilon=0.4, delta=1e-6, inference=True, data_norm=math.sqrt(X.shape[1])
    )
    lines = [model.fit(*people_of(20_000, seed)[1:]).summary().to_frame().iloc[column] for seed in range(40)]
    lines = [line for line in lines if not line.doubt]
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, sharex=True, layout="constrained")
    parts = {"sampling": "as if there were no noise", "std_err": "with the noise"}
    for ax, (name, title) in zip(axes, parts.items(), strict=True):
        held = 0
        for k, line in enumerate(lines):
            reach = 1.959964 * line[name]
            holds = abs(line.coef - truth) <= reach
            held += holds
            ax.plot([line.coef - reach, line.coef + reach], [k, k], color="C0" if holds else "C3", lw=2)
        ax.axvline(truth, color="black", lw=1)
        ax.set(title=f"{title}: {held} of {len(lines)} hold", xlabel="log-odds by a college degree", yticks=[])
        print(f"{title}: {held} of {len(lines)}")
    figure.savefig(path, dpi=110)


def compare_with_bootstrap(n_tables, n=50_000, epsilon=1.0, n_fits=100):
    print("table     bootstrap of        median width: interval  bootstrap  times  (bootstrap holds)")
    for kind, newton in (("scaled", False), ("logistic", False), ("logistic", True)):
        public = {"delta": delta_of(n), "data_norm": math.sqrt(8)}
        if kind == "scaled":
            model = DPLinearRegression((-1, 1), **public)
        else:
            model = DPLogisticRegression(classes=[0, 1], inference=newton, **public)
        noise = model.set_params(epsilon=epsilon).fit(*table(kind, n, 10**6)).noise_multiplier_
        # k Gaussian releases of the root of k times the noise cost as much as one; of sampled lots, about as much.
        model.set_params(epsilon=None, noise_multiplier=noise * math.sqrt(n_fits))
        truth, found = truth_of(kind)[:-1], []
        for seed in range(10**6 + 1, 10**6 + 1 + n_tables):
            (X, y), rng = table(kind, n, seed), np.random.default_rng(seed)
            whole = {"noise_multiplier": None, "epsilon": epsilon, "inference": True}
            frame = type(model)(**{**model.get_params(), **whole}).fit(X, y).summary().to_frame()[:-1]
            coefs = []
            for _ in range(n_fits):
                rows = rng.integers(n, size=n)
                coefs.append(model.fit(X[rows], y[rows]).coef_.ravel())
            low, high = np.percentile(coefs, [2.5, 97.5], axis=0)
            found.append(((frame["high"] - frame["low"]).to_numpy(), high - low, (low <= truth) & (truth <= high)))
        own, other, held = map(np.array, zip(*found, strict=True))
        times = np.median(other) / np.median(own)
        name = "Newton steps" if newton else "descent" if kind == "logistic" else "least squares"
        widths = f"{np.median(own):23.3f}  {np.median(other):9.3f}  {times:5.1f}"
        print(f"{kind:9s} {name:15s} {widths}  {held.mean():.3f}", flush=True)


def delta_of(n):
    return 1e-5 if n <= 10_000 else 1e-6


def report(lines):
    print("kind            n       epsilon  tables  printed  coverage  least of a coefficient  width")
    for key, group in itertools.groupby(sorted(lines, key=cell_of), cell_of):
        parts = list(group)
        printed, held = (np.sum([each[name] for each in parts], axis=0) for name in ("printed", "held"))
        tables = sum(each["tables"] for each in parts)
        share = sum(each["tables_printed"] for each in parts) / tables
        shown = f"{key[0]:15s} {key[1]:<7d} {key[2]:<8g} {tables:<7d} {share:<8.3f} "
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
    parser.add_argument("--newton", type=pathlib.Path)
    parser.add_argument("--fulton", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path)
    parser.add_argument("--bootstrap", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.newton is not None:
        compare_with_descent(given.newton, given.draws)
        return
    if given.fulton is not None:
        compare_on_fulton(given.fulton, given.draws)
        return
    if given.picture is not None:
        draw_picture(given.picture)
        return
    if given.bootstrap:
        compare_with_bootstrap(given.draws, epsilon=given.epsilon)
        return
    lines = [json.loads(each) for each in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {(*cell_of(each), each["part"]) for each in lines}
    parts = range(given.first, given.first + given.tables // PART)
    rows, kinds = list(map(int, given.rows.split(","))), given.kinds.split(",")
    for n, part, kind, epsilon in itertools.product(rows, parts, kinds, EPSILONS):
        if (kind, n, epsilon, part) not in done:
            lines.append(measure(kind, n, epsilon, part))
            with given.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    report(lines)


if __name__ == "__main__":
    main()
