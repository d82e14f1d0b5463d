#!/usr/bin/env python3
"""Profile of a training step, compared with the limits of the machine.

    python benchmarks/profile_steps.py [TASK ...] [--seconds 1] [--threads 2]

Every function of the modules that make a step, every compiled kernel and every product of NumPy that they call is
timed, and its own time, without what it calls, goes to a phase. Figures are medians over steps; a step is also timed
without these clocks. The roofline is the greater of two times: of the products' arithmetic at the speed of a large
product, and of the least bytes at the speed of a large copy, both measured in the same run.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import re
import statistics
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from peers.tasks import TASKS, Task
from peers.worker import pin

MODULES = (
    "skdp.mechanisms.streams",
    "skdp.mechanisms",
    "skdp.mechanisms.sampling",
    "skdp._dpsgd",
    "skdp._dpsgd.estimator",
)
NUMPY = ("matmul", "multiply", "dot", "einsum", "add", "maximum", "tanh", "divide", "exp")
PHASES = {
    "sampling": r"poisson|gaps_from_words|rows_from_gaps|draw_lot|\.rows$|counts|binomial",
    "gather": r"gather|\._take$",
    "noise": r"normal|noise|release|_refill",
    "update": r"update|move_towards|_shrink|optimi|averag",
    "norms": r"squares|norm|einsum",
    "clip": r"clip_factors|\._clip$|clip_rows",
    "products": r"matmul|multiply$|dot|gemm|products",
    "activation, loss": r"activate|derivative|residual|_forward|_backward|tanh|maximum|loss",
    "sums": r"add_to|numpy\.add",
    "fused kernel": r"_kernels",
}
"""By the first pattern that is found in the name; functions without a phase count for that of their caller."""


class Clock:
    """Own seconds of functions, by name and by phase: in the thread that trains, and in all others together."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self.counters: dict[str, Counter[str]] = {
            name: Counter() for name in ("own", "phases", "calls", "own aside", "phases aside")
        }
        self.steps: list[dict[str, Counter[str]]] = []
        self._thread, self._local = threading.get_ident(), threading.local()
        self._lock = threading.Lock()

    def tick(self) -> None:
        """End a step."""
        with self._lock:
            self.steps.append({name: Counter(counter) for name, counter in self.counters.items()})
            for counter in self.counters.values():
                counter.clear()

    def per_step(self, counter: str) -> dict[str, float]:
        """Medians over the steps, the largest first."""
        names = {name for step in self.steps for name in step[counter]}
        found = {name: statistics.median(step[counter][name] for step in self.steps) for name in names}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function under the clock."""
        phase, now = phase_of(name), self._now

        @functools.wraps(call)
        def run(*given: Any, **named: Any) -> Any:
            stack = self._local.__dict__.setdefault("stack", [])
            frame = [0.0, phase or (stack[-1][1] if stack else "Python")]
            stack.append(frame)
            begin = now()
            try:
                return call(*given, **named)
            finally:
                seconds = now() - begin
                stack.pop()
                if stack:
                    stack[-1][0] += seconds
                self._note(name, frame[1], seconds - frame[0])

        return run

    def _note(self, name: str, phase: str, seconds: float) -> None:
        here = threading.get_ident() == self._thread
        with self._lock:
            self.counters["own" if here else "own aside"][name] += seconds  # type: ignore[assignment]
            self.counters["phases" if here else "phases aside"][phase] += seconds  # type: ignore[assignment]
            self.counters["calls"][name] += 1


def phase_of(name: str) -> str:
    """The phase of a function, "" for that of its caller."""
    return next((phase for phase, pattern in PHASES.items() if re.search(pattern, name)), "")


class Proxy:
    """A module some of whose functions are under a clock."""

    def __init__(self, module: Any, timed: dict[str, Any]) -> None:
        self.__dict__.update(timed)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def instrument(clock: Clock) -> None:
    """Put the functions of `MODULES`, and the kernels and products that they call, under the clock."""
    from numba.core.dispatcher import Dispatcher

    def kernels(module: Any) -> dict[str, Any]:
        short = module.__name__.removeprefix("skdp.")
        found = {name: value for name, value in vars(module).items() if isinstance(value, Dispatcher)}
        return {name: clock.timed(f"{short}.{name}", value) for name, value in found.items()}

    for module in list(modules()):
        short = module.__name__.removeprefix("skdp.")
        for name, value in list(vars(module).items()):
            if isinstance(value, Dispatcher):
                setattr(module, name, clock.timed(f"_kernels.{name}", value))
            elif isinstance(value, types.ModuleType) and value.__name__.startswith("skdp._kernels."):
                setattr(module, name, Proxy(value, kernels(value)))
            elif isinstance(value, types.ModuleType) and value.__name__ == "numpy":
                timed = {each: clock.timed(f"numpy.{each}", getattr(value, each)) for each in NUMPY}
                setattr(module, name, Proxy(value, timed))
            elif inspect.isfunction(value) and value.__module__ == module.__name__:
                setattr(module, name, clock.timed(f"{short}.{name}", value))
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                for method, function in list(vars(value).items()):
                    if inspect.isfunction(function) and not method.startswith("__"):
                        setattr(value, method, clock.timed(f"{short}.{value.__name__}.{method}", function))


def modules() -> Iterator[Any]:
    """The modules that make a step, as far as they are loaded."""
    for name in sorted(sys.modules):
        if any(name == each or name.startswith(f"{each}.") for each in MODULES):
            yield sys.modules[name]


# --- What the machine would allow ---


def best_of(call: Callable[[], Any], n: int = 5) -> float:
    """Least seconds of a call."""
    taken = []
    for _ in range(n):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def peaks(dtype: str = "float32") -> tuple[float, float]:
    """Operations a second of a large product, and bytes a second of a large copy on two threads."""
    import numpy as np
    from peers.limits import copy_by_two

    size = 2048
    left = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    result = np.empty_like(left)
    flops = 2.0 * size**3 / best_of(lambda: np.matmul(left, left, out=result))
    table = np.ones((1 << 21, 16), np.float32)
    return flops, 2.0 * table.nbytes / best_of(copy_by_two(TASKS["11-full"], table, None))


def work_of(task: Task) -> tuple[float, float]:
    """Operations of the products of a step, and the least bytes: rows once, six passes over the parameters."""
    rows = task.lot or task.n
    layers = list(pairwise(task.widths))
    flops = sum(2.0 * rows * a * b * (3 if layer else 2) for layer, (a, b) in enumerate(layers))
    parameters = sum((a + 1) * b for a, b in layers)
    return flops, 4.0 * (rows * task.widths[0] + 6 * parameters)


# --- The text ---


def profile(key: str, seconds: float, peak: tuple[float, float]) -> str:
    """The section of one task. Instruments the process, so it is for one task."""
    from peers import limits, with_skdp
    from peers.tasks import rows_of

    task = TASKS[key]
    X, y = rows_of(task)
    fits = (with_skdp.lots if task.lot else with_skdp.full_batch)(task, X, y)
    fits.turn(0.0)
    fits.turn(0.2)
    plain = statistics.median(fits.turn(seconds))
    rulers = {"products alone": limits.products, "X[idx] alone": limits.gather} if task.lot else {
        "np.copyto of the rows": limits.copy, "the same on two threads": limits.copy_by_two}  # fmt: skip
    alone = {name: statistics.median(_turn(make(task, X, y), seconds)) for name, make in rulers.items()}
    clock = Clock()
    instrument(clock)
    tick = type(fits).__call__

    def tick_too(self: Any, n_done: int) -> None:
        clock.tick()
        tick(self, n_done)

    type(fits).__call__ = tick_too
    fits.turn(0.0)
    clock.steps.clear()
    taken = fits.turn(seconds)
    del clock.steps[0]  # with all that precedes it
    return text(task, plain, statistics.median(taken), clock, alone, peak)


def _turn(step: Any, seconds: float) -> list[float]:
    from peers.worker import Turns

    Turns(step).turn(seconds / 4)
    return Turns(step).turn(seconds)


def text(
    task: Task, plain: float, clocked: float, clock: Clock, alone: dict[str, float], peak: tuple[float, float]
) -> str:
    phases, aside = clock.per_step("phases"), clock.per_step("phases aside")
    phases.pop("Python", None)
    rest = "Python, and waiting for other threads" if aside else "Python"
    phases[rest] = max(0.0, clocked - sum(phases.values()))
    lines = [task.title, f"  a step {_us(plain)}; under the clocks {_us(clocked)}, of which"]
    lines += _shares(phases, clocked)
    if aside:
        lines += ["  meanwhile, on other threads together:", *_shares(aside, clocked)]
    calls = clock.per_step("calls")
    for title, counter in (("functions, own time", "own"), ("functions on other threads", "own aside")):
        found = list(clock.per_step(counter).items())[:12]
        lines += [f"  {title}:"] if found else []
        for name, seconds in found:
            lines.append(f"    {name:<58} {_us(seconds):>12}  {calls[name]:6g} calls")
    lines += [
        f"  {name}: {_us(seconds)}; the step takes {plain / seconds:.2f} times" for name, seconds in alone.items()
    ]
    flops, n_bytes = work_of(task)
    roof = max(flops / peak[0], n_bytes / peak[1])
    bound = "arithmetic" if flops / peak[0] >= n_bytes / peak[1] else "memory"
    lines.append(
        f"  roofline: {flops / 1e6:.4g} Mflop and {n_bytes / 1e6:.4g} MB at least ({flops / n_bytes:.1f} flop a byte): "
        f"{_us(roof)}, bound by {bound}; the step takes {plain / roof:.2f} times"
    )
    return "\n".join(lines)


def _shares(phases: dict[str, float], total: float) -> list[str]:
    """A line a phase, those of less than a five hundredth left out."""
    return [
        f"    {phase:<40} {_us(seconds):>12}  {100 * seconds / total:5.1f} %"
        for phase, seconds in sorted(phases.items(), key=lambda item: -item[1])
        if seconds > 0.002 * total
    ]


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} us" if seconds < 1e-3 else f"{1e3 * seconds:,.2f} ms"


def main() -> None:
    known = [key for key, task in TASKS.items() if task.kind in ("lots", "full")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="of steps, twice")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    if len(given.tasks) != 1:  # a process each: the clocks stay
        import subprocess

        for key in given.tasks or known:
            command = [sys.executable, __file__, key, "--seconds", str(given.seconds), "--threads", str(given.threads)]
            subprocess.run(command, check=True)
        return
    pin(given.threads)
    import warnings

    warnings.simplefilter("ignore")
    importlib.import_module("skdp.neural_network")
    importlib.import_module("skdp.linear_model")
    peak = peaks()
    print(profile(given.tasks[0], given.seconds, peak))
    print(f"  measured now: {peak[0] / 1e9:.0f} Gflop/s, {peak[1] / 1e9:.1f} GB/s\n", flush=True)


if __name__ == "__main__":
    main()
