#!/usr/bin/env python3
"""The tables of bench_kmarginal.py, bench_wages.py and of the newest bench_tables.py, written into a page.

    python benchmarks/evidence_report.py [PAGE]

Each table of PAGE stands between two comments with its name, and is made of the files in results/ alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PUBLISHED = {"nist/published, smartnoise-synth, aim/1": 976, "nist/published, smartnoise-synth, mst/1": 958}
"""Scores of submissions to NIST's archive: delta 1e-9, of epsilon .3 for the preprocessor."""
EPSILONS = "0.5", "1", "2", "4"
DIFFERENCE = 0.005
"""From which difference of two scores on the same splits one is called worse."""


def number(values: Any, digits: int = 3) -> str:
    """Mean, and the standard deviation of several."""
    values = np.atleast_1d(np.asarray(values, float))
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def rows_of(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def k_marginal(results: dict[str, Any]) -> str:
    """One row for a synthesizer on a table, the best one first."""
    digits = {"pairs": 1, "triples": 1, "logistic": 3, "boosted": 3, "cpu": 1}
    rows = []
    for key, entry in (results | {key: {"pairs": [score]} for key, score in PUBLISHED.items()}).items():
        table, name, epsilon, *delta = key.split("/")
        cells = [number(entry[each], places) if each in entry else "" for each, places in digits.items()]
        cells[0] = entry["failed"][0] if "failed" in entry else cells[0]
        place = table != "nist", float(epsilon), "".join(delta), -float(np.mean(entry.get("pairs", 0)))
        rows.append((place, [table, name, epsilon + "".join(f", delta {each}" for each in delta), *cells]))
    head = ["Data set", "Synthesizer", "Epsilon", "k-marginal, k = 2", "k = 3", "Logistic regression", "Boosted trees"]
    return rows_of([*head, "CPU seconds"], [row for _, row in sorted(rows)])


def ends(found: dict[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intervals, NaN where there is none."""
    return np.array(found["low"], float), np.array(found["high"], float)


def overlap(low: Any, high: Any, low_2: Any, high_2: Any) -> NDArray[np.float64]:
    """Part of two intervals that they share, the mean over both (Karr et al. 2006), 0 where they are apart."""
    shared = np.maximum(np.minimum(high, high_2) - np.maximum(low, low_2), 0)
    return 0.5 * (shared / (high - low) + shared / (high_2 - low_2))


def agreement(plain: dict[str, Any], private: dict[str, Any]) -> list[str]:
    """Signs, significance and intervals of private coefficients, beside those without privacy."""
    coef, (low, high), (plain_low, plain_high) = np.array(private["coef"], float), ends(private), ends(plain)
    is_real = (plain_low > 0) | (plain_high < 0)
    with np.errstate(invalid="ignore"):
        claims = (low > 0) | (high < 0)
        same, shared = np.sign(coef) == np.sign(plain["coef"]), overlap(low, high, plain_low, plain_high)
        width = np.nanmedian((high - low) / (plain_high - plain_low)) if np.isfinite(low).any() else np.nan
    printed = np.isfinite(low)
    chance = claims[:, ~is_real].mean() if (~is_real).any() else np.nan
    parts = [
        printed.mean(),
        same[:, is_real].mean(),
        (claims & same)[:, is_real].mean(),
        (claims & ~same)[:, is_real].mean(),
        chance,
    ]
    shown = ["" if np.isnan(part) else f"{100 * part:.0f}%" for part in parts]
    return [*shown, f"{shared[printed].mean():.2f}" if printed.any() else "", "" if np.isnan(width) else f"{width:.2f}"]


def wages(results: dict[str, Any]) -> str:
    """One row for a regression at one epsilon."""
    rows = []
    for key, found in results.items():
        name, epsilon = key.split("/")
        plain = results[f"{name}/-"]
        if epsilon != "-":
            title = f"{name} ({len(plain['names'])} coefficients, {plain['rows']:,} records)"
            rows.append([title, epsilon, *agreement(plain, found)])
    head = ["Regression", "Epsilon", "With interval", "Same sign", "Still significant", "Significant, wrong sign"]
    return rows_of([*head, "Significant only privately", "Interval overlap", "Relative width"], rows)


def models(results: dict[str, Any]) -> str:
    """One row for a table at one epsilon, and what is worse than another library."""
    names = ["default", "logistic", "ridge", "DP-EBM", "diffprivlib"]
    rows = []
    for table, epsilon in dict.fromkeys((key.split("/")[0], key.split("/")[2]) for key in results):
        found = {name: results.get(f"{table}/{name}/{epsilon}", {}).get("score", []) for name in names}
        count = min(len(scores) for name, scores in found.items() if scores)
        means = {name: np.mean(scores[:count]) for name, scores in found.items() if scores}
        best = max(means.get(name, -9) for name in ("DP-EBM", "diffprivlib"))
        worse = [name for name in names[:3] if name in means and means[name] < best - DIFFERENCE]
        shown = [("below 0" if means[name] < 0 else number(found[name])) if name in means else "" for name in names]
        rows.append([table.replace("_", " "), epsilon, str(count), *shown, ", ".join(worse) or "none"])
    head = ["Data set", "Epsilon", "Splits", "`tabular_pipeline()`", "`DPLogisticRegression`", "`DPRidge`"]
    return rows_of([*head, "DP-EBM 0.7.8", "diffprivlib 0.6.6", f"Worse by more than {DIFFERENCE}"], rows)


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "k-marginal": ("kmarginal.json", k_marginal),
    "wages": ("wages.json", wages),
    "newest": ("newest/splits.json", models),
}


def blocks() -> Iterator[tuple[str, str]]:
    """Names and tables."""
    for name, (file, table) in TABLES.items():
        yield name, table(json.loads((RESULTS / file).read_text()))


def filled(page: str) -> str:
    """The page with its tables."""
    for name, table in blocks():
        begin, end = (f"<!-- evidence_report.py: {name}, {where} -->" for where in ("begin", "end"))
        first, found, rest = page.partition(begin)
        if found:
            page = f"{first}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "evidence.md"
    path.write_text(filled(path.read_text()))
