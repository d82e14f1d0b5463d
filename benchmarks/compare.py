#!/usr/bin/env python3
"""Speed of the working tree compared with a commit, on the tasks of `bench.py`.

    python benchmarks/compare.py main [--rounds 5] [--only TASK ...]

Base and head take turns, each time in a fresh process with its own tree and its own warm Numba cache, so that a machine
that drifts drifts for both. The table shows the medians of the rounds, the ratio head / base, and its range over the
rounds. Run on an otherwise idle machine: two runs of the same commit differ by some per cent.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench import Worker, busy_processes
from peers.registry import Contestant, load_all
from peers.tasks import TASKS
from speed_report import time_text

ROOT = Path(__file__).resolve().parents[1]


def environment_of(tree: Path, caches: Path) -> dict[str, str]:
    """Variables of a process that uses the package of a tree."""
    return {"PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(caches / tree.name), "PYTHONSAFEPATH": "1"}


def check_tree(tree: Path, environment: Mapping[str, str]) -> None:
    """Reject to measure another package than that of the tree."""
    command = [sys.executable, "-c", "import skdp; print(skdp.__file__)"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    if Path(done.stdout.strip()).parent != tree / "skdp":
        raise SystemExit(f"measured {done.stdout.strip()} instead of {tree / 'skdp'}")


def run(key: str, each: Contestant, environment: Mapping[str, str], given: argparse.Namespace) -> float | str:
    """Median ms of one turn of a fresh process, or what went wrong."""
    worker = Worker(key, each, sys.executable, given.threads, environment)
    try:
        line = worker.first(given.timeout)
        line = line if "error" in line else worker.turn(given.seconds, given.timeout)
        return line.get("ms", line.get("error", ""))
    finally:
        worker.close()


def compare(key: str, each: Contestant, trees: list[dict[str, str]], given: argparse.Namespace) -> str:
    """One row: medians of base and head, and their ratio."""
    times: list[list[float]] = [[], []]
    for environment in trees:
        run(key, each, environment, given)  # compiles
    for turn in range(given.rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            found = run(key, each, trees[side], given)
            if isinstance(found, str):
                return f"{('base', 'head')[side]}: {found}"
            times[side].append(found)
    ratios = [head / base for base, head in zip(*times, strict=True)]
    base, head = map(statistics.median, times)
    return f"{time_text(base):>10} {time_text(head):>10} {head / base:12.3f}  {min(ratios):6.3f}-{max(ratios):.3f}"


def main() -> None:
    ours = [each for each in load_all().values() if each.role == "ours"]
    pairs = [(key, each) for key, task in TASKS.items() for each in ours if each.takes(key, task)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ref", help="commit, branch or tag to compare with, for example main")
    parser.add_argument("--only", nargs="+", choices=TASKS, metavar="TASK", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a turn")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for a step")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    print(f"{'medians':<72} {'base':>10} {'head':>10} {'head / base':>12}  {'of the rounds':>13}")
    with tempfile.TemporaryDirectory() as place:
        base = Path(place).resolve() / "base"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(base), given.ref], check=True)
        try:
            trees = [environment_of(tree, Path(place)) for tree in (base, ROOT)]
            for tree, environment in zip((base, ROOT), trees, strict=True):
                check_tree(tree, environment)
            for key, each in pairs:
                if not given.only or key in given.only:
                    disturbing = busy_processes(TASKS[key].beside)
                    try:
                        row = compare(key, each, trees, given)
                    finally:
                        for process in disturbing:
                            process.kill()
                    print(f"{f'{key}: {each.name}':<72} {row}", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(base)], check=True)


if __name__ == "__main__":
    main()
