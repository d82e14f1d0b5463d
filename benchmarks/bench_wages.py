#!/usr/bin/env python3
"""Wages by education, age, sex and occupation in two tables of the American Community Survey, with and without privacy.

    python benchmarks/bench_wages.py [--data FOLDER] [--draws 20]

"Income" is the logarithm of the personal income of the NIST excerpt, moved into [1,000, 500,000] dollars, of people
with at least 1,000 dollars and an industry: that table has no occupation. "Above 50,000" is the label of ACSIncome,
Colorado, with the groups of occupations of the Census code list. Both regressions are fitted without privacy (least
squares or maximum likelihood, sandwich errors) and privately with several draws of the noise. "Coarse" groups have few
rare categories. Coefficients and 95% intervals are written to results/wages.json; evidence_report.py makes the table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from bench_inference import estimates_without_privacy
from numpy.typing import NDArray

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.preprocessing import formula_rows

FILE = Path(__file__).resolve().parent / "results" / "wages.json"
EPSILONS, DELTA = (0.5, 1.0, 2.0, 4.0), 1e-6
DOLLARS = math.log(1_000), math.log(500_000)
SECTORS = {  # of the industries (INDP_CAT) of the NIST excerpt
    "goods": "0 1 2 3 4", "trade and transport": "5 6 7", "business": "8 9 11", "education and health": "10 12",
    "leisure and other": "13 14 15", "public": "16 17 18",
}  # fmt: skip
OCCUPATIONS = {  # the first code (OCCP) of each group
    10: "management", 1005: "science", 2001: "education and law", 3000: "health", 3601: "services", 4700: "sales",
    5000: "office", 6005: "farming", 6200: "construction", 7000: "repair", 7700: "production", 9000: "transport",
    9800: "military",
}  # fmt: skip
COARSE = {
    "professional": "management, science, education and law, health", "sales and office": "sales, office",
    "services": "services", "manual": "farming, construction, repair, production, transport, military",
}  # fmt: skip


class Regression(NamedTuple):
    """Columns before the formula, their public schema, the target, and what `bench_inference` calls its kind."""

    frame: pd.DataFrame
    schema: dict[str, Any]
    y: NDArray[Any]
    kind: str


def merged(groups: dict[str, str], separator: str) -> dict[str, str]:
    """Category to group."""
    return {name: group for group, names in groups.items() for name in names.split(separator)}


def income(folder: Path, coarse: bool) -> Regression:
    """Logarithm of dollars."""
    table = pd.read_csv(folder / "nist_national2019.csv.gz", dtype=str)
    dollars = pd.to_numeric(table["PINCP"], errors="coerce")
    table = table[(table["INDP_CAT"] != "N") & (dollars >= 1_000)]
    work = table["INDP_CAT"].map(merged(SECTORS, " ")) if coarse else table["INDP_CAT"]
    names = list(SECTORS) if coarse else sorted(merged(SECTORS, " "), key=lambda name: (name != "10", int(name)))
    frame = pd.DataFrame({"education": table["EDU"].astype(int), "age": table["AGEP"].astype(int)})
    frame = frame.assign(sex=table["SEX"].map({"1": "male", "2": "female"}), work=work)
    schema = {"education": (1, 12), "age": (16, 95), "sex": ["male", "female"], "work": names}
    return Regression(frame, schema, np.clip(np.log(dollars[table.index].to_numpy()), *DOLLARS), "scaled")


def above(folder: Path, coarse: bool) -> Regression:
    """Whether the income exceeds 50,000 dollars."""
    table = pd.read_csv(folder / "acsincome_2018_colorado.csv.gz")
    group = np.searchsorted(list(OCCUPATIONS), table["OCCP"], side="right") - 1
    work = pd.Series(np.array(list(OCCUPATIONS.values()))[np.maximum(group, 0)])
    frame = pd.DataFrame({"education": table["SCHL"], "age": table["AGEP"]})
    frame["sex"] = table["SEX"].map({1: "male", 2: "female"})
    frame["work"] = work.map(merged(COARSE, ", ")) if coarse else work
    names = list(COARSE) if coarse else list(OCCUPATIONS.values())
    schema = {"education": (1, 24), "age": (17, 99), "sex": ["male", "female"], "work": names}
    return Regression(frame, schema, table["PINCP"].to_numpy(int), "logistic")


TABLES = {
    f"{name}, {size}": (function, size == "coarse")
    for name, function in (("income", income), ("above 50,000", above))
    for size in ("detailed", "coarse")
}


def rounded(values: Any) -> list[float | None]:
    """Five digits, and None for what is not a number."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in np.asarray(values, float)]


def fits(task: Regression, epsilons: tuple[float, ...], draws: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fit without privacy, and private ones by epsilon: coefficients and ends of intervals, without intercept."""
    made = formula_rows("education + poly(age, 2) + sex + work", task.schema)
    X, scales = np.asarray(made.step.transform(task.frame), float), np.asarray(made.scales)
    coef, error = (each[:-1] / scales for each in estimates_without_privacy(task.kind, X, task.y))
    ends = {"low": rounded(coef - 1.959964 * error), "high": rounded(coef + 1.959964 * error)}
    yield "-", {"rows": len(X), "names": made.names, "coef": rounded(coef), **ends}
    for epsilon in epsilons:
        given = {"epsilon": epsilon, "delta": DELTA, "data_norm": made.data_norm, "inference": True}
        least_squares = task.kind == "scaled"
        model = DPLinearRegression(DOLLARS, **given) if least_squares else DPLogisticRegression(classes=[0, 1], **given)
        found: dict[str, Any] = {"coef": [], "low": [], "high": []}
        for _ in range(draws):
            table = model.fit(X, task.y).summary(names=made.names, scales=scales).to_frame().iloc[:-1]
            for name in found:
                found[name].append(rounded(table[name]))
        yield f"{epsilon:g}", found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    lines = []
    for name, (function, coarse) in TABLES.items():
        for epsilon, found in fits(function(Path(options.data), coarse), EPSILONS, options.draws):
            lines.append(f'"{name}/{epsilon}": {json.dumps(found)}')
            print(name, epsilon, flush=True)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
