#!/usr/bin/env python3
"""Tightness of audits by replay and with canaries, compared with jax_privacy.

    python benchmarks/bench_audit.py [replay] [exchanged] [one_run] [jax] [false_alarms]

All but `exchanged` and the last without a name. Everything is simulated. For ``jax`` `environments.py`
makes the environment ``jax`` first; without it this part is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

EPSILONS = (1.0, 4.0, 8.0)
WORKER = Path(__file__).resolve()


# --- replay -----------------------------------------------------------------------------------------------------------


def audited():
    """Private estimators by name, as functions of epsilon."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    import skdp
    from skdp.ensemble import DPRandomTreesClassifier, DPRandomTreesRegressor

    two, unit, target = {"classes": [0, 1]}, {"bounds": (-1.0, 1.0)}, {"y_bounds": (-1.0, 1.0)}
    signs = np.vstack([np.eye(20), -np.eye(20)])
    elsewhere = FrozenEstimator(LogisticRegression().fit(signs, [0] * 20 + [1] * 20))
    grid = {"alpha": [0.0, 0.1]}

    def pipeline(epsilon):
        steps = make_pipeline(skdp.DPStandardScaler(**unit), skdp.DPPCA(5), skdp.DPLogisticRegression(**two))
        return skdp.allocate_budget(steps, epsilon)

    def network(**parameters):
        return skdp.DPMLPClassifier((16,), **two, **parameters)

    return {
        "DPLogisticRegression": lambda e: skdp.DPLogisticRegression(**two, epsilon=e),
        "DPLogisticRegression, q = .05": lambda e: skdp.DPLogisticRegression(**two, sampling_rate=0.05, epsilon=e),
        "DPLogisticRegression, full batch": lambda e: skdp.DPLogisticRegression(**two, sampling_rate=1.0, epsilon=e),
        "DPMLPClassifier": lambda e: network(epsilon=e),
        "DPMLPRegressor": lambda e: skdp.DPMLPRegressor((16,), **target, epsilon=e),
        "DPRandomTreesClassifier": lambda e: DPRandomTreesClassifier(**two, **unit, epsilon=e),
        "DPRandomTreesRegressor": lambda e: DPRandomTreesRegressor(**target, **unit, epsilon=e),
        "DPRidge": lambda e: skdp.DPRidge(**target, epsilon=e),
        "DPLinearRegression": lambda e: skdp.DPLinearRegression((-1.0, 1.0), epsilon=e),
        "DPLinearRegression, inference": lambda e: skdp.DPLinearRegression((-1.0, 1.0), inference=True, epsilon=e),
        "DPGaussianNB": lambda e: skdp.DPGaussianNB(**two, **unit, epsilon=e),
        "DPKMeans": lambda e: skdp.DPKMeans(3, **unit, epsilon=e),
        "DPPCA": lambda e: skdp.DPPCA(5, epsilon=e),
        "DPStandardScaler": lambda e: skdp.DPStandardScaler(**unit, epsilon=e),
        "DPStandardScaler, estimated bounds": lambda e: skdp.DPStandardScaler(epsilon=e),
        "DPQuantileBinner": lambda e: skdp.DPQuantileBinner(4, **unit, epsilon=e),
        "DPSimpleImputer, mean": lambda e: skdp.DPSimpleImputer("mean", **unit, epsilon=e),
        "DPOneHotEncoder": lambda e: skdp.DPOneHotEncoder(epsilon=e),
        "DPTableVectorizer": lambda e: skdp.DPTableVectorizer(epsilon=e),
        "DPMarginalSynthesizer": lambda e: skdp.DPMarginalSynthesizer(**two, **unit, epsilon=e),
        "DPClassMixtureGenerator": lambda e: skdp.DPClassMixtureGenerator(**two, **unit, epsilon=e),
        "DPWGAN": lambda e: skdp.DPWGAN(
            critic_layer_sizes=16, generator_layer_sizes=16, max_iter=10, **two, **unit, epsilon=e
        ),
        "DPCalibratedClassifier": lambda e: skdp.DPCalibratedClassifier(elsewhere, epsilon=e),
        "DPThresholdClassifier": lambda e: skdp.DPThresholdClassifier(elsewhere, min_recall=0.5, epsilon=e),
        "pipeline": pipeline,
        "tabular_pipeline": lambda e: skdp.tabular_pipeline(skdp.DPLogisticRegression(**two), epsilon=e),
        "DPGridSearchCV": lambda e: skdp.DPGridSearchCV(
            skdp.DPLogisticRegression(**two), grid, strategy="compose", epsilon=e
        ),
        "DPRandomizedSearchCV": lambda e: skdp.DPRandomizedSearchCV(
            skdp.DPLogisticRegression(**two), grid, n_iter=2, epsilon=e
        ),
    }


def replay(names, is_exchanged=False):
    """The share of the claim that replay finds, and seconds: of the processor, and as the clock has them.

    Of a record that comes or goes, or where `is_exchanged` takes the place of another.
    """
    from skdp.audit import audit_estimator

    print("| estimator | of 1 | of 4 | of 8 | CPU s | s | steps: least share | findings |\n" + "|---" * 8 + "|")
    for name, make in audited().items():
        if names and name not in names:
            continue
        found, processor, seconds = [], [], 0.0
        for epsilon in EPSILONS:
            start, clock = time.process_time(), time.perf_counter()
            model = make(epsilon)
            places = [path for path in model.get_params() if path.rpartition("__")[2] == "adjacency"]
            model.set_params(**dict.fromkeys(places if is_exchanged else [], "replace_one"))
            found.append(audit_estimator(model, max_seconds=120))
            processor.append(time.process_time() - start)
            seconds = max(seconds, time.perf_counter() - clock)
        shares = [f"{each.epsilon_lower_bound / each.epsilon_claimed:.3f}" for each in found]
        parts = [bound / claim for each in found for bound, claim in each.steps.values()]
        alarms = "; ".join(sorted({finding.kind for each in found for finding in each.findings}))
        least = f"{min(parts):.3f}" if parts else ""
        cells = name, *shares, f"{max(processor):.1f}", f"{seconds:.1f}", least, alarms
        print("|", *(f"{each} |" for each in cells), flush=True)


SLOW = "DPMLP", "DPRandomTrees", "DPWGAN", "DPOneHot", "DPKMeans", "tabular", "DPCalibrated", "DPThreshold"
"""Audited in one round of ten, those that take seconds."""


def false_alarms(n_audits, n_done):
    """Audits of honest estimators, each with a seed of its own, of 20,000 normals: any number has the same level.

    The first `n_done` are left out, as done before.
    """
    from skdp.audit import audit_estimator
    from skdp.audit import replay as method

    method._ENOUGH = 20_000
    makers, done, alarms, start = audited(), {}, [], time.monotonic()
    rounds = ((number, name) for number in range(n_audits) for name in makers)
    for number, name in rounds:
        if sum(done.values()) == n_audits:
            break
        if number % 10 and name.startswith(SLOW):
            continue
        seed = 1_000 * (1 + sum(done.values()))
        done[name] = done.get(name, 0) + 1
        if sum(done.values()) <= n_done:
            continue
        audit = audit_estimator(makers[name](EPSILONS[number % 3]), max_seconds=3600, random_state=seed)
        for each in audit.findings:
            alarms.append(f"{name}, epsilon {EPSILONS[number % 3]}, seed {seed}: {each}")
            print(alarms[-1], flush=True)
        if sum(done.values()) % 10 == 0:
            print(f"{sum(done.values())} audits, {time.monotonic() - start:.0f} s, {len(alarms)} findings", flush=True)
    print(done)


# --- one run ----------------------------------------------------------------------------------------------------------


def full_batch(epsilon):
    from skdp import DPLogisticRegression

    return DPLogisticRegression(classes=[0, 1], max_iter=20, sampling_rate=1.0, epsilon=epsilon)


def one_run():
    """Bounds of 100,000 canaries: median of five runs, and of 15 at epsilon 1."""
    from skdp import DPLogisticRegression
    from skdp.audit import audit_estimator

    settings = {
        "full batch, 20 steps": full_batch,
        "defaults: 200 lots": lambda e: DPLogisticRegression(classes=[0, 1], epsilon=e),
    }
    print("| DPLogisticRegression | bound | of 1 | of 4 | of 8 | s |\n|---|---|---|---|---|---|")
    for setting, make in settings.items():
        start = time.perf_counter()
        runs = {
            e: [audit_estimator(make(e), method="one_run", random_state=k) for k in range(15 if e == 1 else 5)]
            for e in EPSILONS
        }
        seconds = (time.perf_counter() - start) / sum(map(len, runs.values()))
        for text in runs[1.0][0].bounds:
            medians = [f"{np.median([each.bounds[text] for each in runs[e]]):.2f}" for e in EPSILONS]
            print(f"| {setting} | {text} | {' | '.join(medians)} | {seconds:.1f} |", flush=True)


def bounds_of(coins, scores, delta):
    """The bounds of skdp, as functions."""
    from skdp.audit import one_run_epsilon

    return {
        "one run, nothing is assumed": lambda: one_run_epsilon(coins, scores, delta),
        "one run, Gaussian trade-off": lambda: one_run_epsilon(coins, scores, delta, trade_off="gaussian"),
    }


def beside_jax(python):
    """The auditors of both libraries on the scores of one fit, and forced replay of the same estimator."""
    from skdp.audit import audit_estimator
    from skdp.audit import one_run as method

    kept, rows, read = {}, [], method._read

    def listen(model, coins, white, black, confidence):
        kept.update(coins=coins, scores=white, delta=model.delta_)
        return read(model, coins, white, black, confidence)

    method._read = listen
    for epsilon in EPSILONS:
        audit_estimator(full_batch(epsilon), method="one_run")
        ours = {name: timed(bound) for name, bound in bounds_of(**kept).items()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores.npz"
            np.savez(path, **kept)
            done = subprocess.run([python, WORKER, "--auditor", path], capture_output=True, text=True, check=True)
        ours["forced replay"] = timed(lambda epsilon=epsilon: audit_estimator(full_batch(epsilon)).epsilon_lower_bound)
        rows.append((ours, json.loads(done.stdout.splitlines()[-1])))
    print("| bound, 95 % | skdp: of 1 | of 4 | of 8 | s | jax_privacy: of 1 | of 4 | of 8 | s |\n" + "|---" * 9 + "|")
    for name in rows[0][0]:
        cells = []
        for side in (0, 1):
            found = [row[side].get(name, (math.nan, math.nan)) for row in rows]
            cells += [f"{bound:.2f}" for bound, _ in found] + [f"{max(seconds for _, seconds in found):.1f}"]
        print(f"| {name} | {' | '.join(cells)} |".replace("nan", ""), flush=True)


def timed(bound):
    start = time.perf_counter()
    return float(bound()), time.perf_counter() - start


def auditor_of_jax(path):
    """Run by the interpreter that has jax_privacy: the same bounds of the same scores."""
    from jax_privacy.auditing import CanaryScoreAuditor, Split

    given = np.load(path)
    coins, delta = given["coins"], float(given["delta"])
    auditor = CanaryScoreAuditor(given["scores"][coins], given["scores"][~coins])
    split = Split(seed=0)
    found = {
        "one run, nothing is assumed": lambda: auditor.epsilon_one_run(0.05, delta, threshold_strategy=split),
        "one run, Gaussian trade-off": lambda: auditor.epsilon_one_run_fdp(0.05, delta, threshold_strategy=split),
    }  # of 2.0.0 epsilon_from_gdp is no bound: 0.8 to 12 on scores that are noise alone (its pull request 270)
    print(json.dumps({name: timed(bound) for name, bound in found.items()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="of the estimators of `replay`")
    parser.add_argument("--audits", type=int, default=1_000, help="of `false_alarms`")
    parser.add_argument("--done", type=int, default=0, help="of `--audits`: the first that are left out")
    parser.add_argument("--auditor", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.auditor:
        return auditor_of_jax(given.auditor)

    from environments import default_folder, python_of

    parts = given.parts or ["replay", "one_run", "jax"]
    if "replay" in parts:
        replay(given.only)
    if "exchanged" in parts:
        replay(given.only, is_exchanged=True)
    if "one_run" in parts:
        one_run()
    if "jax" in parts:
        python = python_of("jax", default_folder())
        beside_jax(python) if python else print("jax: no environment 'jax', see environments.py")
    if "false_alarms" in parts:
        false_alarms(given.audits, given.done)
    return None


if __name__ == "__main__":
    main()
