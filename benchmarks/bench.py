#!/usr/bin/env python3
"""Speed of skdp and of other libraries, into JSON lines and into the tables of benchmarks/README.md.

    python benchmarks/bench.py [--only TASK ...] [--contestant NAME ...] [--rounds 5] [--seconds 0.3]
    python benchmarks/bench.py --report

Each implementation runs in its own process, in the environment of its library (`environments.py`), on the same cores
and threads. The first step is timed from the start of the process, without the generation of the data. Then the
processes take turns. The results of a task replace its earlier ones when it is finished, so an interrupted run can be
continued with ``--only``. With ``--results FILE`` the page is not changed. Use an idle machine.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import speed_report
from environments import default_folder, python_of
from peers.registry import Contestant, load_all
from peers.tasks import TASKS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "speed.jsonl"
SLOW, SLOW_ROUNDS = 1.5, 2
"""Seconds of a turn beyond those asked for from which a contestant takes part in few rounds only."""

Line = dict[str, Any]


class Worker:
    """The process of one contestant on one task.

    Parameters
    ----------
    key : str
        Of the task.
    contestant : Contestant
    python : path
        Interpreter of its environment.
    n_threads : int
    environment : mapping
        Variables beside those of this process.
    """

    def __init__(
        self, key: str, contestant: Contestant, python: Any, n_threads: int, environment: Mapping[str, str] = {}
    ) -> None:
        command = [str(python), str(HERE / "peers" / "worker.py"), key, contestant.module, contestant.name]
        self._process = subprocess.Popen(
            [*command, str(n_threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, **environment},
        )  # fmt: skip

    def first(self, timeout: float) -> Line:
        """What the process says of its first step."""
        return self._answer(timeout)

    def turn(self, seconds: float, timeout: float) -> Line:
        """Take a turn."""
        assert self._process.stdin is not None
        print(seconds, file=self._process.stdin, flush=True)
        return self._answer(timeout)

    def _answer(self, timeout: float) -> Line:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout)
        if not ready:
            self._process.kill()
            return {"error": f"no answer within {timeout:g} s"}
        line = self._process.stdout.readline()
        if not line:
            return {"error": f"ended with status {self._process.wait()}"}
        return json.loads(line)

    def close(self, patience: float = 20.0) -> None:
        """End the process, which has files and clusters to clean up."""
        try:
            self._process.communicate(timeout=patience)  # the end of its input
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def busy_processes(count: int) -> list[subprocess.Popen[bytes]]:
    """Processes that compute without end."""
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def measure(key: str, chosen: list[Contestant], given: argparse.Namespace) -> Iterator[Line]:
    """Lines of one task: one of a contestant's start, one of each turn, or what went wrong."""
    task, workers, waits = TASKS[key], {}, {}
    disturbing = busy_processes(task.beside)
    try:
        for each in chosen:
            made = _started(key, each, given)
            yield {"task": key, "contestant": each.name, **made[1]}
            if made[0] is not None:
                workers[each.name], waits[each.name] = made[0], 0.0
        for number in range(given.rounds):
            for name, worker in list(workers.items()):
                if number >= SLOW_ROUNDS and waits[name] > SLOW * 1e3:
                    continue
                line = worker.turn(given.seconds, given.timeout)
                yield {"task": key, "contestant": name, "round": number, **line}
                waits[name] = line.get("least_ms", 0.0)
                if "error" in line:
                    workers.pop(name).close()
    finally:
        for process in (*workers.values(), *disturbing):
            process.close() if isinstance(process, Worker) else process.kill()


def _started(key: str, each: Contestant, given: argparse.Namespace) -> tuple[Worker | None, Line]:
    """A worker that has made its first step, or None and why not."""
    python = python_of(each.home, given.peers)
    if python is None:
        return None, {"error": "not installed"}
    if each.role == "ours" and TASKS[key].kind != "start":  # the first fit after an install is a task of its own
        before = Worker(key, each, python, given.threads)
        before.first(given.timeout)
        before.close()
    worker = Worker(key, each, python, given.threads)
    line = worker.first(given.timeout)
    if "error" in line:
        worker.close()
        return None, line
    return worker, line


def machine(n_threads: int) -> Line:
    return {
        "cores": os.cpu_count(), "threads": n_threads, "architecture": platform.machine(),
        "system": platform.system(), "python": platform.python_version(), "second_thread": gain_of_a_second_thread(),
    }  # fmt: skip


@functools.cache
def gain_of_a_second_thread() -> float:
    """How much more arithmetic two threads do than one: 1 on two cores, less on two halves of one.

    Exponentials of numbers that stay in the cache of the core, which wait for nothing but each other.
    """
    numbers, pool = [np.full(1 << 14, 0.5), np.full(1 << 14, 0.5)], ThreadPoolExecutor(2)

    def work(values: Any) -> None:
        out = np.empty_like(values)
        for _ in range(200):
            np.exp(values, out=out)

    def seconds(each: list[Any]) -> float:
        start = time.perf_counter()
        list(pool.map(work, each))
        return time.perf_counter() - start

    with pool:
        taken = [(seconds(numbers[:1]), seconds(numbers)) for _ in range(60)]
    alone, both = (min(column) for column in zip(*taken, strict=True))  # other work only ever adds
    return 2.0 * alone / both - 1.0


def replace_lines(path: Path, key: str, contestants: set[str] | None, lines: list[Line]) -> None:
    """Put the lines of a task in the place of its earlier ones, or of those of some contestants."""
    kept = speed_report.read(path) if path.exists() else []
    stays = [
        line for line in kept
        if line["task"] != key or (contestants is not None and line.get("contestant") not in contestants)
    ]  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in [*stays, *lines]))


def main() -> None:
    everyone = load_all()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TASKS, metavar="TASK", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--contestant", nargs="+", choices=everyone, metavar="NAME", help="leave the others")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for a step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", type=Path, default=default_folder(), help="folder of the peers' environments")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of JSON lines")
    parser.add_argument("--report", action="store_true", help="only write the table from these lines")
    given = parser.parse_args()
    if not given.report:
        gain_of_a_second_thread()  # before there are other processes
    for key in [] if given.report else given.only or [key for key in TASKS if key != "calls"]:
        names = set(given.contestant or everyone)
        chosen = [each for name, each in everyone.items() if name in names and each.takes(key, TASKS[key])]
        lines: list[Line] = []
        for line in measure(key, chosen, given):
            lines.append(line | {"machine": machine(given.threads)} if "versions" in line else line)
            print(_short(line), flush=True)
        replace_lines(given.results, key, names if given.contestant else None, lines)
    if given.report or given.results == RESULTS:
        speed_report.write(given.results)


def _short(line: Line) -> str:
    figures = line.get("error") or (f"{line['ms']:.4g} ms" if "ms" in line else f"first step {line['first_s']:.2f} s")
    return f"{line['task']:<16} {line['contestant']:<44} {line.get('round', ''):>2} {figures}"


if __name__ == "__main__":
    main()
