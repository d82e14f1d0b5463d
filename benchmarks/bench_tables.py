#!/usr/bin/env python3
"""All models on all data sets: ROC AUC, calibration or R squared, compared with other libraries.

    python benchmarks/bench_tables.py --data FOLDER [--splits [10] | --held-out [10] | --dev [10]]
        [--tables adult credit:2000 ...] [--models default ...] [--epsilons .1 ...]
        [--ebm PYTHON] [--diffprivlib PYTHON] [--dp-xgboost PYTHON] [--untimed]
    python benchmarks/bench_tables.py --report                    # the page's table and picture, from the results
    python benchmarks/bench_tables.py --paired default logistic   # differences on the same rows

`--splits` are random 80/20 splits of all rows, the same for all models; `--held-out` trains on four fifths and tests on
the committed fifth, several times; `--dev` splits the four fifths, to choose defaults on. `credit:2000` trains on 2,000
rows; in `credit@.07` the second class is thinned to 7 % of training and test rows. Noise is secret. `--ebm` names a
Python with interpret-core, `--diffprivlib` and `--dp-xgboost` likewise: those that `environments.py` makes.
`--untimed` keeps no times, for a machine that has other work.

Each fit is written to the file of results at once. What is there is not fitted again, so that a run can be interrupted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tables_report
from benchmark_tables import TABLES, Table, load
from contestants import MODELS, Model

HERE = Path(__file__).resolve().parent
EPSILONS = (0.1, 0.5, 1.0, 4.0, 8.0)
PROTOCOLS = ("splits", "held-out", "dev")
RARE = ("adult@.03", "credit@.07")
BELIEFS = ("log_loss", "brier", "ratio", "ece", "curve")
"""What is kept of probabilities beside the score (`contestants.beliefs`)."""


class Run(NamedTuple):
    """What is fitted: a protocol, how often, and whether times are kept."""

    protocol: str
    repeats: int
    folder: Path
    file: Path
    homes: dict[str, str]
    is_timed: bool


# --- Results ----------------------------------------------------------------------------------------------------------


def key_of(table: str, model: str, epsilon: float | None) -> str:
    return f"{table}/{model}/{'-' if epsilon is None else f'{epsilon:g}'}"


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The fits so far: lists of scores and seconds, by table, model and epsilon."""
    return json.loads(file.read_text()) if file.exists() else {}


def note(file: Path, key: str, found: dict[str, Any]) -> None:
    """Add a fit to the file, one line an entry."""
    results = read(file)
    entry = results.setdefault(key, {"score": [], "seconds": []})
    if "first" in found:
        entry["first"] = round(found["first"], 3)
    entry["score"].append(round(found["score"], 5))
    entry["seconds"] += [round(found["seconds"], 3)] if "seconds" in found else []
    for name in set(BELIEFS) & set(found):
        entry.setdefault(name, []).append(np.round(found[name], 5).tolist())
    lines = (f"{json.dumps(key)}: {json.dumps(results[key])}" for key in sorted(results))
    file.parent.mkdir(exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    beside.replace(file)


# --- Fits -------------------------------------------------------------------------------------------------------------


def encode(table: Table, model: Model, folder: str) -> str | None:
    """Write the rows for a model that takes no raw table, and return where."""
    if not model.is_encoded:
        return None
    import scipy.sparse as sp

    from skdp.preprocessing import DPTableVectorizer

    rows = DPTableVectorizer(table.schema, numbers=model.numbers).fit_transform(table.X)
    path = f"{folder}/rows.npz"
    sp.save_npz(path, sp.csr_array(rows))
    return path


def fit_all(run: Run, name: str, model_name: str, epsilons: list[float]) -> None:
    """Fit what is missing of one model on one table, in a fresh process."""
    table_name, _, rows = name.partition(":")
    table_name, _, share = table_name.partition("@")
    table, model = load(table_name, run.folder), MODELS[model_name]
    if not model.takes(table):
        return
    results = read(run.file)
    asked: list[float | None] = list(epsilons) if model.is_private else [None]
    done = {each: len(results.get(key_of(name, model_name, each), {"score": []})["score"]) for each in asked}
    repeats = run.repeats if model.is_private or run.protocol != "held-out" else 1
    todo = [(each, seed) for each in asked for seed in range(done[each], repeats)]
    if not todo:
        return
    with tempfile.TemporaryDirectory() as folder:
        start = {"table": table_name, "model": model_name, "folder": str(run.folder)}
        start |= {"rows": int(rows) if rows else None, "share": float(share) if share else None}
        start["encoded"] = encode(table, model, folder)
        command = [run.homes[model.home], str(HERE / "contestants.py")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
            answers = ask(worker, start)
            for epsilon, seed in todo:
                found = answers({"protocol": run.protocol, "epsilon": epsilon, "seed": seed})
                key = key_of(name, model_name, epsilon)
                times = () if run.is_timed else ("seconds", "first")
                note(run.file, key, {name: value for name, value in found.items() if name not in times})
                print(f"{key} {seed} {found['score']:.4f} {found['seconds']:.2f} s", flush=True)


def ask(worker: subprocess.Popen[str], start: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Send a worker its task, and return the function that puts a request to it."""
    assert worker.stdin is not None
    assert worker.stdout is not None

    def send(request: dict[str, Any]) -> None:
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        send(request)
        line = worker.stdout.readline()
        if not line:
            raise ChildProcessError(f"no answer to {request} by {start['model']} on {start['table']}: see above.")
        return json.loads(line)

    send(start)
    return answer


def fit_tables(run: Run, names: list[str], models: list[str], epsilons: list[float]) -> bool:
    """Fit all that has an environment, and return whether all of it could be fitted."""
    failures = []
    for name, model in itertools.product(names, models):
        if run.homes[MODELS[model].home]:
            try:
                fit_all(run, name, model, epsilons)
            except ChildProcessError as failure:
                failures.append(failure)
                print(failure, file=sys.stderr)
    return not failures


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    for protocol in PROTOCOLS:
        parser.add_argument(f"--{protocol}", nargs="?", type=int, const=10, metavar="REPEATS")
    parser.add_argument("--tables", nargs="+", default=[*TABLES, *RARE], help="such as adult or credit:2000")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--ebm", help="Python with interpret-core")
    parser.add_argument("--diffprivlib", help="Python with diffprivlib")
    parser.add_argument("--dp-xgboost", help="Python with dp-xgboost")
    parser.add_argument("--untimed", action="store_true", help="keep no times")
    parser.add_argument("--results", type=Path, help="folder of the results", default=HERE / "results")
    parser.add_argument("--report", action="store_true", help="write the table and the picture of the page")
    parser.add_argument("--paired", nargs=2, metavar="MODEL", help="print differences of two models on the same rows")
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    homes = {"here": sys.executable, "ebm": arguments.ebm, "diffprivlib": arguments.diffprivlib}
    homes["dp-xgboost"] = arguments.dp_xgboost
    failed = False
    for protocol in PROTOCOLS:
        repeats = getattr(arguments, protocol.replace("-", "_"))
        file = arguments.results / f"{protocol}.json"
        if repeats:
            if arguments.data is None:
                sys.exit("SKDP_DATA is not set: name the folder of the tables with --data or SKDP_DATA.")
            run = Run(protocol, repeats, Path(arguments.data), file, homes, not arguments.untimed)
            failed |= not fit_tables(run, arguments.tables, arguments.models, arguments.epsilons)
        if arguments.paired and file.exists():
            print(f"{protocol}: {' minus '.join(arguments.paired)}")
            print(tables_report.paired(read(file), *arguments.paired))
    if arguments.report:
        tables_report.write(arguments.results)
    sys.exit(failed)


if __name__ == "__main__":
    main()
