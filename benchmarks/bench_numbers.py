"""Scaled features, bins, or both before private least squares: R^2 by number of records, epsilon and bins.

    SKDP_DATA=... python benchmarks/bench_numbers.py [--splits 6] [--rows 2000 0]

The rule of ``DPTableVectorizer(numbers="auto")`` was chosen by these figures. Rows whose number is a multiple of five
are left out. Bounds are round numbers, or bought together with the categories (schema "bought").
"""

from __future__ import annotations

import argparse
import os
import pathlib
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

from skdp import DPRidge, tabular_pipeline

EPSILONS, DELTA = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0), 1e-5
CHOICES = ("scale", "both", "bins", "auto")
HOUSING = {
    "longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 52), "total_rooms": (0, 10_000),
    "total_bedrooms": (0, 2_000), "population": (0, 6_000), "households": (0, 2_000), "median_income": (0, 10),
    "ocean_proximity": ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"],
}  # fmt: skip
WINE = {
    "fixed_acidity": (4, 14), "volatile_acidity": (0, 1.5), "citric_acid": (0, 1), "residual_sugar": (0, 30),
    "chlorides": (0, 0.3), "free_sulfur_dioxide": (0, 100), "total_sulfur_dioxide": (0, 300), "density": (0.98, 1.01),
    "pH": (2.7, 4), "sulphates": (0, 1.5), "alcohol": (8, 15), "colour": ["red", "white"],
}  # fmt: skip


def wide_bounds(column):
    """A power of ten, or half of one, that hardly any value exceeds: bounds as of someone who knows the unit only."""
    low, high = column.quantile([0.001, 0.999])
    most = max(abs(low), abs(high), 1e-6)
    end = 10.0 ** np.ceil(np.log10(most))
    end = end / 2 if most < end / 2 else end
    return (-end if low < 0 else 0.0, end)


def tables():
    """Name, rows, targets, their bounds and the schema."""
    place = pathlib.Path(os.environ["SKDP_DATA"])
    housing = pd.read_csv(place / "california_housing.csv.gz")
    yield "housing", housing, "median_house_value", (0, 500_001), HOUSING
    elevators = pd.read_csv(place / "elevators.csv.gz")
    schema = {name: wide_bounds(elevators[name]) for name in elevators if name != "Goal"}
    yield "elevators", elevators, "Goal", (0, 0.1), schema
    wines = [pd.read_csv(place / f"wine_quality_{colour}.csv.gz").assign(colour=colour) for colour in ("red", "white")]
    yield "wine", pd.concat(wines, ignore_index=True), "quality", (0, 10), WINE
    fulton = pd.read_csv(place / "pums_fulton_ga.csv.gz").drop(columns=["state", "fips"])
    schema = {name: sorted(fulton[name].unique().tolist()) for name in fulton if name != "income"}
    yield "Fulton", fulton, "income", (0, 200_000), {**schema, "age": (18, 93), "educ": (1, 16)}


def measure(table, y, bounds, schema, epsilon, numbers, n_rows, seed):
    """R^2 on a fifth, learned from `n_rows` of the others, and what numbers became."""
    order = np.random.default_rng(seed).permutation(len(table))
    n = len(table) * 4 // 5
    train, test = order[: n_rows or n][:n], order[n:]
    model = tabular_pipeline(DPRidge(y_bounds=bounds, random_state=seed), schema=schema, epsilon=epsilon, delta=DELTA)
    model.set_params(vectorizer__numbers=numbers).fit(table.iloc[train], y[train])
    return r2_score(y[test], model.predict(table.iloc[test])), model[0].numbers_


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 2000], help="rows to learn from; 0 is all")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, table, target, bounds, schema in tables():
        table = table[np.arange(len(table)) % 5 != 0].reset_index(drop=True)
        y = table.pop(target).to_numpy(float)
        for kind, given in (("known", schema), ("bought", None)):
            for n_rows in options.rows:
                print(f"\n{name}, schema {kind}, {n_rows or len(table) * 4 // 5:,} rows", flush=True)
                for numbers in CHOICES:
                    cells = []
                    for epsilon in EPSILONS:
                        given_all = (table, y, bounds, given, epsilon, numbers, n_rows)
                        found = [measure(*given_all, seed) for seed in range(options.splits)]
                        chosen = f" {found[0][1]}" if numbers == "auto" else ""
                        cells.append(f"{epsilon:g}: {np.mean([score for score, _ in found]):.3f}{chosen}")
                    print(f"  {numbers:6}", "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
