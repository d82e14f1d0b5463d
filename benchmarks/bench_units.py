"""Accuracy of group-level and of record-level privacy, on the same splits.

Splits keep a unit on one side. Each line pairs a fit with `groups` and one without, and one with one row of each unit
alone; differences are means over splits.

    python benchmarks/bench_units.py --data FOLDER [--tables colorado fulton users] [--epsilons 1] [--splits 5]
        [--synthesis | --group-privacy | --peer | --steps]

With ``--synthesis`` it is the total variation between pairs of columns of the rows that were fitted and as many
samples.

With ``--group-privacy`` fits with `groups` are set beside fits to rows, at the cost at which as many rows as the
largest unit has cost epsilon together.

With ``--peer`` logistic regression by lots of a tenth of the units is set beside jax-privacy's `UserSelectionStrategy`
(``python benchmarks/environments.py jax`` makes its environment): the same rows, lots, steps, clip and cost. Its best
learning rate is chosen by the test rows.

With ``--steps`` it is the processor time of a step on made-up rows, 20,000 of 138 columns: of rows, of groups of 1.8
rows in the mean, and of 10 each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from benchmark_tables import Table, load
from environments import default_folder, python_of
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score
from synthesis_metrics import marginal_error

import skdp
from skdp.accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
    get_epsilon,
)
from skdp.ensemble import DPRandomTreesClassifier

Labels = NDArray[np.int64]


class Task(NamedTuple):
    """A table and the label of the unit of each row."""

    table: Table
    groups: Labels


def households_of_colorado(folder: Path, rows: int | None = None) -> Task:
    """Rows are in the order of the survey: a reference person, or a person in group quarters, opens a household."""
    table = load("colorado", folder)
    groups = np.cumsum(np.isin(table.X["RELP"], (0, 16, 17)))
    if rows is not None:
        table, groups = table._replace(X=table.X.iloc[:rows], y=table.y[:rows]), groups[:rows]
    return Task(table, groups)


def couples_of_fulton(folder: Path) -> Task:
    """The extract has no household number: couples are matched by what spouses share, the hardest correlation.

    Married people of one district and race are paired in the order of their ages; of all others two in five join
    another person at random.
    """
    table = load("fulton", folder)
    raw = pd.read_csv(folder / "pums_fulton_ga.csv.gz")
    rng, groups = np.random.default_rng(0), np.arange(len(raw))
    married = raw[raw["married"] == 1]
    for _, part in married.groupby(["puma", "black", "asian", "latino"]):
        men, women = (part.index[part["sex"] == sex][np.argsort(part.loc[part["sex"] == sex, "age"])] for sex in (0, 1))
        for one, other in zip(men, women, strict=False):
            groups[other] = groups[one]
    others = rng.permutation(raw.index[raw["married"] == 0])
    joined = others[: int(0.4 * len(others))]
    groups[joined] = groups[rng.permutation(len(raw))[: len(joined)]]
    return Task(table, groups)


def made_up_users(folder: Path) -> Task:
    """Rows of Adult as those of users of 1 to 300 rows (Zipf), who are alike in age and income."""
    table = load("adult", folder)
    rng = np.random.default_rng(0)
    alike = table.y * 1e3 + table.X["age"].to_numpy() + rng.normal(scale=2.0, size=len(table.y))
    sizes = np.minimum(rng.zipf(2.0, len(table.y)), 300)
    groups = np.empty(len(table.y), np.int64)
    groups[np.argsort(alike)] = np.repeat(np.arange(len(sizes)), rng.permutation(sizes))[: len(groups)]
    return Task(table, groups)


TASKS: dict[str, Callable[[Path], Task]] = {
    "colorado": households_of_colorado,
    "colorado_10000": lambda folder: households_of_colorado(folder, 10_000),
    "fulton": couples_of_fulton,
    "users": made_up_users,
}
MODELS: dict[str, Callable[[], Any]] = {
    "trees": DPRandomTreesClassifier,
    "linear": skdp.DPLogisticRegression,
    "network": skdp.DPMLPClassifier,
}


def pipeline(model: str, table: Table, epsilon: float) -> Any:
    """The defaults on raw columns, with a complete schema."""
    estimator = MODELS[model]().set_params(classes=table.classes)
    return skdp.tabular_pipeline(estimator, schema=table.schema, epsilon=epsilon, delta=table.delta)


def split(groups: Labels, seed: int) -> NDArray[np.bool_]:
    """The rows of a fifth of the units."""
    units, codes = np.unique(groups, return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(units)) < len(units) // 5)[codes]


def scores(model: str, task: Task, epsilon: float, seed: int) -> dict[str, tuple[float, float, float]]:
    """Area under the curve, log loss and seconds, by what the fit is private for."""
    table, groups = task
    test = split(groups, seed)
    train = np.flatnonzero(~test)
    shuffled = np.random.default_rng(seed).permutation(train)
    _, first = np.unique(groups[shuffled], return_index=True)
    found = {}
    for name, rows, labels in (
        ("row", train, None), ("group", train, groups[train]), ("one row a group", np.sort(shuffled[first]), None),
    ):  # fmt: skip
        start = time.perf_counter()
        given = {} if labels is None else {"groups": labels}
        fitted = pipeline(model, table, epsilon).fit(table.X.iloc[rows], table.y[rows], **given)
        seconds = time.perf_counter() - start
        chances = fitted.predict_proba(table.X[test])
        found[name] = roc_auc_score(table.y[test], chances[:, 1]), log_loss(table.y[test], chances), seconds
    return found


def beside_group_privacy(model: str, task: Task, epsilon: float, seed: int) -> tuple[float, float]:
    """Area under the curve of a fit that is private for a group, and of one whose largest group pays epsilon.

    Rows are those of the full batch: k of them are together k times as far away, so that noise k times as large, at the
    cost of a row, costs epsilon for k (exact for normal noise).
    """
    table, groups = task
    test = split(groups, seed)
    train = np.flatnonzero(~test)
    noise = calibrate_noise_multiplier(GaussianDpEvent, epsilon, table.delta)
    cost = get_epsilon(GaussianDpEvent(np.bincount(groups[train]).max() * noise), table.delta)
    found = []
    for paid, given in ((epsilon, {"groups": groups[train]}), (cost, {})):
        fitted = pipeline(model, table, paid).fit(table.X.iloc[train], table.y[train], **given)
        assert fitted[-1].sampling_rate_ == 1.0
        found.append(roc_auc_score(table.y[test], fitted.predict_proba(table.X[test])[:, 1]))
    return found[0], found[1]


def show_group_privacy(given: argparse.Namespace) -> None:
    print("| table | model | epsilon | largest group | group | group privacy | group - group privacy |")
    print("|---|---|---|---|---|---|---|")
    models = [model for model in given.models if model != "network"]  # which draws lots
    for name, model, epsilon in itertools.product(given.tables, models, given.epsilons):
        task = TASKS[name](given.data)
        runs = [beside_group_privacy(model, task, epsilon, seed) for seed in range(given.splits)]
        ours, theirs = np.array(runs).T
        shown = f"{ours.mean():.4f} | {theirs.mean():.4f} | {(ours - theirs).mean():+.4f} ({(ours - theirs).std():.4f})"
        print(f"| {name} | {model} | {epsilon:g} | {np.bincount(task.groups).max()} | {shown} |", flush=True)


RATE, N_STEPS = 0.1, 100
"""Of the lots of the comparison with jax-privacy."""


def beside_jax_privacy(task: Task, epsilon: float, seed: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Area under the curve and milliseconds a step, of skdp and of jax-privacy with 1, 4 and 16 rows a unit."""
    table, groups = task
    test = split(groups, seed)
    public = skdp.DPTableVectorizer(schema=table.schema, sparse_output=False).fit(table.X)
    X, y = np.asarray(public.transform(table.X)), (np.asarray(table.y) == table.classes[1]).astype(int)
    terms = {"epsilon": epsilon, "delta": table.delta, "sampling_rate": RATE}
    model = skdp.DPLogisticRegression(classes=[0, 1], max_iter=round(RATE * N_STEPS), **terms)
    model.fit(X[~test], y[~test], groups=groups[~test])  # compiles
    start = time.perf_counter()
    model.fit(X[~test], y[~test], groups=groups[~test])
    seconds = (time.perf_counter() - start) / model.n_steps_
    found = {"skdp": (roc_auc_score(y[test], model.decision_function(X[test])), 1e3 * seconds)}
    usual = skdp.DPLogisticRegression(classes=[0, 1], epsilon=epsilon, delta=table.delta)
    start = time.perf_counter()
    usual.fit(X[~test], y[~test], groups=groups[~test])
    seconds = (time.perf_counter() - start) / usual.n_steps_
    found["skdp, all units a step"] = roc_auc_score(y[test], usual.decision_function(X[test])), 1e3 * seconds
    noise = calibrate_noise_multiplier(
        lambda sigma: SelfComposedDpEvent(PoissonSampledDpEvent(RATE, GaussianDpEvent(sigma)), N_STEPS),
        epsilon,
        table.delta,
    )
    for rows_a_user in (1, 4, 16):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "given.npz"
            np.savez(
                file, X=X[~test].astype(np.float32), y=y[~test].astype(np.float32), groups=groups[~test],
                X_test=X[test], rate=RATE, n_steps=N_STEPS, clip=model.max_grad_norm_, noise=noise, seed=seed,
                rows_a_user=rows_a_user, learning_rates=[1.0, 3.0, 10.0, 30.0],
            )  # fmt: skip
            command = [python_of("jax", folder), Path(__file__).with_name("users_of_jax.py"), file]
            said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        best = max(said.values(), key=lambda each: roc_auc_score(y[test], each[0]))
        found[f"jax-privacy, {rows_a_user} rows"] = roc_auc_score(y[test], best[0]), 1e3 * best[1]
    return found


def show_peer(given: argparse.Namespace) -> None:
    print("| table | epsilon | library | AUC | ms a step |\n|---|---|---|---|---|")
    for name, epsilon in itertools.product(given.tables, given.epsilons):
        task = TASKS[name](given.data)
        runs = [beside_jax_privacy(task, epsilon, seed, given.peers) for seed in range(given.splits)]
        for library in runs[0]:
            auc, steps = np.array([each[library] for each in runs]).T
            shown = f"{auc.mean():.4f} ({auc.std():.4f}) | {np.median(steps):.2f}"
            print(f"| {name} | {epsilon:g} | {library} | {shown} |", flush=True)


def step_of(make: Callable[[int], Any], X: Any, y: Labels, groups: Labels | None, epochs: tuple[int, int]) -> float:
    """Processor time of a step in ms, by the difference of two fits; the least of four of each."""
    least, n_steps = [], []
    for n in epochs:
        seconds = []
        for _ in range(4):
            model, start = make(n), time.process_time()
            model.fit(X, y, **({} if groups is None else {"groups": groups}))
            seconds.append(time.process_time() - start)
        least.append(min(seconds))
        n_steps.append(model.n_steps_)
    return 1e3 * (least[1] - least[0]) / (n_steps[1] - n_steps[0])


def show_steps() -> None:
    rng, n = np.random.default_rng(0), 20_000
    X, y = rng.uniform(-1, 1, (n, 138)), rng.integers(0, 2, n)
    few = np.repeat(np.arange(n), rng.choice([1, 2, 3, 4, 5], p=[0.47, 0.35, 0.1, 0.06, 0.02], size=n))[:n]
    terms = {"epsilon": None, "noise_multiplier": 20.0, "delta": 1e-6, "classes": [0, 1]}
    made: dict[str, Callable[..., Any]] = {
        "linear": lambda **given: skdp.DPLogisticRegression(n_jobs=1, **given),
        "trees": lambda **given: DPRandomTreesClassifier(30, 5, bounds=(-1, 1), n_jobs=1, **given),
        "network": lambda **given: skdp.DPMLPClassifier((32,), **given),
    }
    print("| model | lots | rows, ms a step | 1.8 rows a group | 10 rows a group |\n|---|---|---|---|---|")
    for (name, make), rate in itertools.product(made.items(), (1.0, 0.2)):
        epochs = (4, 12) if name == "network" else (10, 60)

        def fitted(n_epochs: int, make: Any = make, rate: float = rate) -> Any:
            return make(max_iter=n_epochs, sampling_rate=rate, **terms)

        alone, small, large = (step_of(fitted, X, y, each, epochs) for each in (None, few, np.arange(n) // 10))
        print(f"| {name} | {rate:g} | {alone:.2f} | {small / alone:.2f} x | {large / alone:.2f} x |", flush=True)


def variations(task: Task, epsilon: float, seed: int) -> tuple[float, float]:
    """Errors of synthetic rows from fits that are private for a row, and for a group."""
    table, groups = task
    train = np.flatnonzero(~split(groups, seed))
    rows, labels = table.X.iloc[train], table.y[train]
    found = []
    for given in ({}, {"groups": groups[train]}):
        model = skdp.DPMarginalSynthesizer(table.schema, classes=table.classes, epsilon=epsilon, delta=table.delta)
        made, made_labels = model.fit(rows, labels, **given).sample(len(train), random_state=0)
        found.append(marginal_error(rows.assign(label=labels), made[list(rows)].assign(label=made_labels)))
    return found[0], found[1]


def print_variations(tables: list[str], folder: Path, epsilons: list[float], n_splits: int) -> None:
    print("| table | epsilon | row | group | group - row |\n|---|---|---|---|---|")
    for name, epsilon in itertools.product(tables, epsilons):
        task = TASKS[name](folder)
        row, group = np.array([variations(task, epsilon, seed) for seed in range(n_splits)]).T
        moved = group - row
        shown = f"{row.mean():.4f} | {group.mean():.4f} | {moved.mean():+.4f} ({moved.std():.4f})"
        print(f"| {name} | {epsilon:g} | {shown} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--synthesis", action="store_true", help="synthetic rows instead of predictions")
    parser.add_argument("--group-privacy", action="store_true", help="beside fits to rows whose group pays epsilon")
    parser.add_argument("--peer", action="store_true", help="beside jax-privacy")
    parser.add_argument("--steps", action="store_true", help="processor time of a step on made-up rows")
    parser.add_argument("--peers", type=Path, default=default_folder(), help="folder of the peers' environments")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.steps:
        show_steps()
        return
    if given.data is None:
        parser.error("--data is needed: the folder of the tables")
    if given.peer:
        show_peer(given)
        return
    if given.group_privacy:
        show_group_privacy(given)
        return
    if given.synthesis:
        print_variations(given.tables, given.data, given.epsilons, given.splits)
        return
    print(
        "| table | model | epsilon | row | group | group - row | group - one row a group | log loss: row, group | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, model, epsilon in itertools.product(given.tables, given.models, given.epsilons):
        task = TASKS[name](given.data)
        all_scores = [scores(model, task, epsilon, seed) for seed in range(given.splits)]
        auc, loss, seconds = (
            {kind: np.array([each[kind][i] for each in all_scores]) for kind in all_scores[0]} for i in range(3)
        )
        to_row, to_one = auc["group"] - auc["row"], auc["group"] - auc["one row a group"]
        print(
            f"| {name} | {model} | {epsilon:g} | {auc['row'].mean():.4f} | {auc['group'].mean():.4f} "
            f"| {to_row.mean():+.4f} ({to_row.std():.4f}) | {to_one.mean():+.4f} ({to_one.std():.4f}) "
            f"| {loss['row'].mean():.4f}, {loss['group'].mean():.4f} "
            f"| {np.median(seconds['row']):.1f}, {np.median(seconds['group']):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
