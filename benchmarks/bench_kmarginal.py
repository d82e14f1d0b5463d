#!/usr/bin/env python3
"""NIST's k-marginal score of synthetic tables: skdp, and MST and AIM of other libraries, in one run.

    python benchmarks/bench_kmarginal.py [--data FOLDER] [--tables nist adult] [--epsilons 1] [--fits 3] [--limit 1200]
        [--peers FOLDER] [--names PART ...]

The score is that of SDNist: 500 (2 - d), where d is the mean L1 distance of the relative frequencies over all pairs of
columns, so that 1000 is a perfect match. "nist" has the ten columns of the demographic set of the national excerpt of
2019, with AGEP in single years for all synthesizers and in the 20 percentile bins of SDNist for the score. "adult" has
the codes of bench_synthesis.py, and classifiers that are trained on the rows and tested on real ones. PEERS is the
folder of environments that environments.py makes; a library without environment there is left out. Each fit is added
to results/kmarginal.json; evidence_report.py makes the table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_synthesis import HERE, Codes, judged, read, rows_of
from environments import python_of
from numpy.typing import NDArray
from synthesis_metrics import marginal_error
from synthesis_peers import PEERS

from skdp import DPMarginalSynthesizer

FILE = HERE / "results" / "kmarginal.json"
COLUMNS = ["AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE"]
DELTA = 1e-6
OURS = "skdp"


def nist(folder: Path) -> Codes:
    """The excerpt as codes; it has no test rows."""
    table = pd.read_csv(folder / "nist_national2019.csv.gz", dtype=str, usecols=COLUMNS)[COLUMNS]
    values = {name: sorted(table[name].unique()) for name in COLUMNS} | {"AGEP": [str(age) for age in range(100)]}
    rows = np.column_stack([pd.Index(values[name]).get_indexer(table[name]) for name in COLUMNS])
    return Codes(rows, rows[:0], [len(values[name]) for name in COLUMNS])


def percentile_bins(ages: NDArray[Any]) -> NDArray[Any]:
    """Inner edges of the 20 bins by which SDNist compares a number: its percentile ranks in the real rows."""
    series = pd.Series(ages)
    bins = (20 * series.rank(pct=True)).astype(int).clip(upper=19)
    return np.array([series[bins == each].max() for each in sorted(set(bins))][:-1])


def k_marginal(real: NDArray[Any], made: NDArray[Any], k: int = 2) -> float:
    """1000 times the share of rows that the marginals have in common, over all sets of k columns."""
    every = None if k == 2 else 10_000
    return 1000 * (1 - marginal_error(real, made, k, bins=[None] * real.shape[1], max_sets=every))


def scores(table: str, codes: Codes, made: NDArray[Any]) -> dict[str, float]:
    """Scores of pairs and triples, and for Adult the AUROC of both classifiers."""
    real = codes.train
    if table == "nist":
        edges = percentile_bins(real[:, 0])
        real, made = (np.column_stack([np.searchsorted(edges, rows[:, 0]), rows[:, 1:]]) for rows in (real, made))
    found = {"pairs": k_marginal(real, made), "triples": k_marginal(real, made, 3)}
    return found | (dict(zip(("logistic", "boosted"), judged(made, codes), strict=True)) if table == "adult" else {})


def ours(codes: Codes, epsilon: float, delta: float) -> NDArray[Any]:
    """Rows of the default synthesizer, told the categories; of a table without label those of the age are ordered."""
    names = [f"c{j}" for j in range(len(codes.levels))]
    schema: dict[str, Any] = {name: list(range(size)) for name, size in zip(names, codes.levels, strict=True)}
    rows, given = pd.DataFrame(codes.train, columns=names), {"epsilon": epsilon, "delta": delta}
    if len(codes.test) == 0:
        schema["c0"] = {"kind": "ordinal", "categories": schema["c0"]}
        return DPMarginalSynthesizer(schema, **given).fit(rows).sample(len(rows))[names].to_numpy()
    label = names.pop()
    model = DPMarginalSynthesizer(schema, classes=schema.pop(label), **given).fit(rows[names], rows[label])
    X, y = model.sample(len(rows))
    return np.column_stack([X.to_numpy(), y])


def seconds_of_cpu() -> float:
    """Of this process and of those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def note(key: str, found: dict[str, Any]) -> None:
    """Add a fit to the file, one line for a synthesizer on a table."""
    results = json.loads(FILE.read_text()) if FILE.exists() else {}
    entry = results.setdefault(key, {})
    for name, value in found.items():
        entry.setdefault(name, []).append(value if isinstance(value, str) else float(f"{value:.5g}"))
    FILE.write_text(
        "{\n" + ",\n".join(f"{json.dumps(each)}: {json.dumps(results[each])}" for each in results) + "\n}\n"
    )
    print(key, found, flush=True)


def run(table: str, codes: Codes, name: str, epsilon: float, options: argparse.Namespace) -> None:
    """Fit one synthesizer as often as asked for."""
    home = python_of(name.split()[0].split("-")[0], options.peers) if name != OURS else None
    key = f"{table}/{name}/{epsilon:g}" + ("" if options.delta == DELTA else f"/{options.delta:g}")
    for _ in range(options.fits if name == OURS or home else 0):
        start = seconds_of_cpu()
        if name == OURS:
            made: NDArray[Any] | None = ours(codes, epsilon, options.delta)
        else:
            made = rows_of(codes, str(home), name, epsilon, options.delta, options.limit)
        cpu = seconds_of_cpu() - start
        if made is None:
            note(key, {"failed": f"no fit after {options.limit:g} s, {cpu:.0f} s of CPU"})
            return
        note(key, {**scores(table, codes, made), "cpu": cpu})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--tables", nargs="+", default=["nist", "adult"], choices=["nist", "adult"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--delta", type=float, default=DELTA)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1200, help="seconds after which a fit of a peer is given up")
    parser.add_argument("--peers", type=Path, default=Path(".venv/peers"), help="folder of the environments")
    parser.add_argument("--names", nargs="+", default=[""], help="parts of the names of those to run")
    options = parser.parse_args()
    schemas = json.loads((HERE / "synthesis_schemas.json").read_text())
    for table in options.tables:
        folder = Path(options.data)
        codes = nist(folder) if table == "nist" else read(folder, schemas[table])
        for epsilon in options.epsilons:
            for name in (OURS, *PEERS):
                if any(part in name for part in options.names):
                    run(table, codes, name, epsilon, options)


if __name__ == "__main__":
    main()
