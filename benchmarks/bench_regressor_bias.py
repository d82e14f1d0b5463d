"""Mean prediction relative to the mean target, and R^2, of regressors at small budgets.

    SKDP_DATA=FOLDER python benchmarks/bench_regressor_bias.py [--models trees,network] [--epsilons 0.1,0.3,1,4]
        [--tables wages,...] [--rows 20000] [--seeds 5]

"wages" are simulated: log-normal, from eight columns of which two and a product of two others matter, within
(0, 200,000); "wages-wide" have the bounds (0, 1,000,000). "income" (Fulton County) and "housing" (California) are of
FOLDER; "income-wide" has the bounds (-20,000, 1,500,000). Each seed draws the records of the fit and the noise; figures
are of all records. "noise" is that of a mean of clipped targets for 2% of mu squared, relative to the mean target. The
constants of the rule were chosen on these tables.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

import skdp
from skdp.accounting import GaussianDpEvent, calibrate_noise_multiplier
from skdp.ensemble import DPRandomTreesRegressor
from skdp.neural_network import DPMLPRegressor

MODELS = {"trees": DPRandomTreesRegressor, "network": DPMLPRegressor}
BOUNDS = {
    "wages": (0, 200_000),
    "wages-wide": (0, 1_000_000),
    "income": (0, 200_000),
    "income-wide": (-20_000, 1_500_000),
    "housing": (0, 500_001),
}
FLAGS = ("sex", "latino", "black", "asian", "married", "children", "disability", "employed")
OF_FULTON = {flag: [0, 1] for flag in FLAGS} | {"age": (18, 93), "educ": (1, 16)}
OF_HOUSES = {"longitude": (-124.5, -114), "latitude": (32.5, 42), "housing_median_age": (1, 52)}
OF_HOUSES |= {"median_income": (0.5, 15)}
DELTA = 1e-6


def load(name, n, rng):
    """Records, targets and schema of a table."""
    folder = pathlib.Path(os.environ.get("SKDP_DATA", "."))
    if name.startswith("income"):
        table = pd.read_csv(folder / "pums_fulton_ga.csv.gz")
        return table[list(OF_FULTON)], table.income.to_numpy(float), OF_FULTON
    if name == "housing":
        table = pd.read_csv(folder / "california_housing.csv.gz").dropna()
        return table[list(OF_HOUSES)], table.median_house_value.to_numpy(float), OF_HOUSES
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (n + 20_000, 8)), columns=[f"x{j}" for j in range(8)])
    signal = 0.5 * X.x0 - 0.3 * X.x1 + 0.5 * X.x2 * X.x3
    return X, np.exp(9.9 + signal + rng.normal(0.0, 0.6, len(X))).to_numpy(), dict.fromkeys(X, (-1, 1))


def noise_of_mean(epsilon, n, bounds):
    """Noise of a sum of pairs (1, target in [-1, 1]) for 2% of mu squared, in units of targets and divided by n."""
    multiplier = calibrate_noise_multiplier(GaussianDpEvent, epsilon, DELTA)
    return (bounds[1] - bounds[0]) / 2.0 * math.sqrt(2.0 / 0.02) * multiplier / n


def scores(model, epsilon, name, n, seed):
    """Mean prediction over mean target less 1, R2, and the noise of a mean over the mean target."""
    rng = np.random.default_rng([seed, n])
    X, y, schema = load(name, n, rng)
    y, drawn = np.clip(y, *BOUNDS[name]), rng.permutation(len(y))[:n]
    pipeline = skdp.tabular_pipeline(
        MODELS[model](), schema=schema, epsilon=epsilon, delta=DELTA, y_bounds=BOUNDS[name], random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pipeline.fit(X.iloc[drawn], y[drawn]).predict(X).astype(float)
    return found.mean() / y.mean() - 1.0, r2_score(y, found), noise_of_mean(epsilon, n, BOUNDS[name]) / y.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--epsilons", default="0.1,0.3,1,4")
    parser.add_argument("--tables", default=",".join(BOUNDS))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    for table in given.tables.split(","):
        for model in given.models.split(","):
            for epsilon in map(float, given.epsilons.split(",")):
                found = np.array([scores(model, epsilon, table, given.rows, seed) for seed in range(given.seeds)])
                line = {"table": table, "rows": given.rows, "model": model, "epsilon": epsilon}
                line |= dict(zip(("bias", "R2", "noise"), found.mean(axis=0).round(4).tolist(), strict=True))
                line["standard deviation of bias"] = round(float(found[:, 0].std(ddof=1)), 4)
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
