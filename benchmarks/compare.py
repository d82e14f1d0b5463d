#!/usr/bin/env python3
"""Speed of the working tree against a commit, in one run.

    python benchmarks/compare.py main [--rounds 7] [--only NAME]

Base and head take turns, each time in a fresh process with its own tree and its own warm Numba cache, so that a machine
that drifts drifts for both. A process prints the median seconds of some calls after one that is not counted; the table
shows the medians of the rounds and the ratio head / base. Only public names are used, which both trees have.
Run on an otherwise idle machine: two runs of the same commit differ by some per cent.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 1.0  # of calls in one process


def table(n: int, d: int = 11) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n, d)).astype(np.float32)
    return X, (X[:, 0] + 0.3 * rng.standard_normal(n) > 0).astype(int)


def fit_logistic() -> Callable[[int], object]:
    from skdp import DPLogisticRegression

    X, y = table(2_000)
    return lambda k: DPLogisticRegression(epsilon=1.0, delta=1e-5, classes=[0, 1]).fit(X, y)


def fit_logistic_on_a_million_rows() -> Callable[[int], object]:
    from skdp import DPLogisticRegression

    X, y = table(1_000_000)
    return lambda k: DPLogisticRegression(epsilon=1.0, delta=1e-7, classes=[0, 1]).fit(X, y)


def fit_network() -> Callable[[int], object]:
    from skdp import DPMLPClassifier

    X, y = table(2_000)
    return lambda k: DPMLPClassifier((16,), epsilon=1.0, delta=1e-5, classes=[0, 1]).fit(X, y)


def fit_pca() -> Callable[[int], object]:
    from skdp import DPPCA

    X, _ = table(20_000, 50)
    return lambda k: DPPCA(5, epsilon=1.0, delta=1e-5).fit(X)


def fit_search() -> Callable[[int], object]:
    from skdp import DPGridSearchCV, DPLogisticRegression

    X, y = table(2_000)
    grid = {"learning_rate": [0.5, 1.0, 2.0]}
    return lambda k: DPGridSearchCV(
        DPLogisticRegression(classes=[0, 1]), grid, epsilon=1.0, delta=1e-5
    ).fit(X, y)  # fmt: skip


def price_of_dp_sgd() -> Callable[[int], object]:
    from skdp.accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, get_epsilon

    def price(k: int) -> float:  # prices are cached: each is another one
        step = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1 + 1e-4 * k))
        return get_epsilon(SelfComposedDpEvent(step, 1_000), 1e-5)

    return price


def price_of_a_mixture() -> Callable[[int], object]:
    from skdp.accounting import (
        ComposedDpEvent,
        GaussianDpEvent,
        LaplaceDpEvent,
        PoissonSampledDpEvent,
        SelfComposedDpEvent,
        get_epsilon,
    )

    def price(k: int) -> float:
        step = PoissonSampledDpEvent(0.02, GaussianDpEvent(1.3 + 1e-4 * k))
        parts = [SelfComposedDpEvent(step, 300), GaussianDpEvent(8.0), SelfComposedDpEvent(LaplaceDpEvent(20.0), 4)]
        return get_epsilon(ComposedDpEvent(parts), 1e-6)

    return price


def calibration() -> Callable[[int], object]:
    from skdp.accounting import (
        GaussianDpEvent,
        PoissonSampledDpEvent,
        SelfComposedDpEvent,
        calibrate_noise_multiplier,
    )

    def solve(k: int) -> float:
        rate = 0.01 + 1e-5 * k
        return calibrate_noise_multiplier(
            lambda noise: SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), 500), 1.0, 1e-5
        )

    return solve


def charge_in_a_file() -> Callable[[int], object]:
    from skdp import PrivacyAccountant
    from skdp.accounting import GaussianDpEvent

    folder = tempfile.mkdtemp()
    accountant = PrivacyAccountant(1e3, 1e-5, path=os.path.join(folder, "compare.budget"))
    return lambda k: accountant.spend(GaussianDpEvent(200.0))


CASES = {
    "import": None,
    "fit of DPLogisticRegression, 2,000 x 11": fit_logistic,
    "fit of DPLogisticRegression, 1,000,000 x 11": fit_logistic_on_a_million_rows,
    "fit of DPMLPClassifier, 2,000 x 11": fit_network,
    "fit of DPPCA, 20,000 x 50": fit_pca,
    "fit of DPGridSearchCV, 3 candidates, 2,000 x 11": fit_search,
    "epsilon of 1,000 DP-SGD steps": price_of_dp_sgd,
    "epsilon of a mixed composition": price_of_a_mixture,
    "calibration of the noise of DP-SGD": calibration,
    "a charge in a file": charge_in_a_file,
}


def measure(case: str) -> float:
    """Median seconds of a call, in this process."""
    start = time.perf_counter()
    make = CASES[case]
    if make is None:
        import skdp.linear_model  # noqa: F401

        return time.perf_counter() - start
    warnings.simplefilter("ignore")
    call, times, k = make(), [], 0
    call(k)
    while sum(times) < SECONDS or len(times) < 3:
        k += 1
        start = time.perf_counter()
        call(k)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(tree: Path, cache: Path, case: str) -> float:
    """Seconds that a fresh process measures on a tree."""
    environment = os.environ | {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(cache), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", case]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    place, seconds = done.stdout.split("\n")[-2].rsplit(" ", 1)
    if Path(place) != tree / "skdp":
        raise SystemExit(f"measured {place} instead of {tree / 'skdp'}")
    return float(seconds)


def compare(base: Path, caches: Path, cases: list[str], rounds: int) -> None:
    print(f"{'median seconds a call':<52} {'base':>10} {'head':>10} {'head / base':>12}  {'of the rounds':>13}")
    for case in cases:
        times: dict[Path, list[float]] = {base: [], ROOT: []}
        for tree in times:
            run(tree, caches / tree.name, case)  # compiles
        for turn in range(rounds):
            for tree in (base, ROOT) if turn % 2 else (ROOT, base):
                times[tree].append(run(tree, caches / tree.name, case))
        before, after = (statistics.median(found) for found in times.values())
        ratios = [after / before for before, after in zip(*times.values(), strict=True)]
        spread = f"{min(ratios):.3f}-{max(ratios):.3f}"
        print(f"{case:<52} {before:10.5f} {after:10.5f} {after / before:12.3f}  {spread:>13}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ref", nargs="?", help="commit, branch or tag to compare with")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help="this case; may be repeated")
    parser.add_argument("--measure", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        seconds = measure(arguments.measure)
        import skdp

        print(Path(skdp.__file__).parent, seconds)
        return
    if not arguments.ref:
        parser.error("name a commit to compare with, for example main")
    with tempfile.TemporaryDirectory() as place:
        base = Path(place).resolve() / "base"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(base), arguments.ref], check=True)
        try:
            compare(base, Path(place), arguments.only or list(CASES), arguments.rounds)
        finally:
            subprocess.run([*git, "remove", "--force", str(base)], check=True)


if __name__ == "__main__":
    main()
