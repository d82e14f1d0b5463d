"""The process of one contestant on one task: ``python worker.py TASK MODULE CONTESTANT THREADS``.

It answers with JSON lines: one when the first step is done, then one for each line of standard input, which says for
how many seconds to go on.
"""

from __future__ import annotations

import os
import sys
import time

BEGIN = time.perf_counter()
LONG = 1.0
"""Seconds of a step from which a turn begins without one that is not counted."""


def pin(n_threads: int) -> None:
    """Keep this process on so many cores, and every library to so many threads. Before any of them is imported."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_threads])
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ[f"{name}_NUM_THREADS"] = str(n_threads)
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={n_threads}"
    os.environ["JAX_PLATFORMS"] = "cpu"


def limit_memory(share: float = 0.85) -> None:
    """Fail rather than exhaust the machine."""
    import resource

    most = int(share * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def status(field: str) -> float:
    """VmRSS or VmHWM of this process in MB, NaN where there is no /proc."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))
    except OSError:
        return float("nan")


def forget_peak() -> None:
    """Begin a new peak of memory."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def cpu_seconds() -> tuple[float, float]:
    """Of the whole machine and of this process."""
    own = sum(os.times()[:4])
    try:
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except OSError:
        return own, own
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"), own


class Turns:
    """A step, repeated for some seconds."""

    def __init__(self, step):
        self.step = step

    def turn(self, seconds):
        """Seconds of each step; one at least."""
        taken, clock = [], time.perf_counter
        begin = start = clock()
        while not taken or start - begin < seconds:
            self.step()
            end = clock()
            taken.append(end - start)
            start = end
        return taken


def answer(turns, seconds: float, longest: float) -> dict:
    import statistics

    if longest < LONG:
        turns.turn(0.2 * seconds)  # caches and sleeping threads, not counted
    machine, own = cpu_seconds()
    begin = time.perf_counter()
    taken = turns.turn(seconds)
    wall = time.perf_counter() - begin
    after, mine = cpu_seconds()
    return {
        "ms": 1e3 * statistics.median(taken), "least_ms": 1e3 * min(taken), "steps": len(taken),
        "others": round(max(0.0, (after - machine - (mine - own)) / wall), 2), "peak_mb": round(status("VmHWM")),
    }  # fmt: skip


def main() -> None:
    key, module, name, n_threads = sys.argv[1:]
    pin(int(n_threads))
    limit_memory()
    import importlib
    import json
    import warnings
    from pathlib import Path

    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    warnings.simplefilter("ignore")
    from peers.registry import CONTESTANTS
    from peers.tasks import SCALING, TASKS, rows_of

    def say(**what):
        print(json.dumps(what), file=out, flush=True)

    importlib.import_module(module)
    start = time.perf_counter()
    task = (TASKS | SCALING)[key]
    X, y = rows_of(task)
    in_rows = time.perf_counter() - start
    base = status("VmRSS")
    forget_peak()
    try:
        made = CONTESTANTS[name].make(task, X, y)
        turns = made if hasattr(made, "turn") else Turns(made)
        turns.turn(0.0)
        first = time.perf_counter() - BEGIN - in_rows
        say(first_s=round(first, 3), rows_mb=round(base), peak_mb=round(status("VmHWM")), versions=versions())
        longest = max(turns.turn(0.0)) if getattr(turns, "warms_up", True) else LONG
        if longest < LONG:
            turns.turn(0.3)  # not counted: what compiles or tunes itself at later steps
        for line in sys.stdin:
            say(**answer(turns, float(line), longest))
    except Exception as error:  # the harness reports it
        say(error=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200])
        raise


def versions() -> dict[str, str]:
    """Of the libraries that take part and are loaded here."""
    names = ("numpy", "scipy", "sklearn", "numba", "torch", "opacus", "jax", "jax_privacy", "diffprivlib", "skdp")
    found = {name: sys.modules[name] for name in names if name in sys.modules}
    return {"python": sys.version.split()[0]} | {
        name: str(getattr(module, "__version__", "unknown")) for name, module in found.items()
    }


if __name__ == "__main__":
    main()
