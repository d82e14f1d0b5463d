"""Tables of benchmarks/README.md from the results of `bench.py`."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from peers.registry import Contestant, load_all
from peers.tasks import TASKS, Task

PAGE = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- bench.py --report: begin -->", "<!-- bench.py --report: end -->"
ROLES = {"limit": "reference", "plain": "non-private", "private": "private", "ours": "private"}
PACKAGES = {
    "jax": "JAX", "jax_privacy": "jax-privacy", "numba": "Numba", "numpy": "NumPy", "opacus": "Opacus",
    "python": "Python", "scipy": "SciPy", "sklearn": "scikit-learn", "torch": "PyTorch",
}  # fmt: skip
"""What a module is called in the tables."""
LOADED = 0.25
"""Cores that others used, on average, above which a table says so."""
SHOWN = ("11-lot", "fit-11", "calls")
"""Tasks of which all contestants are shown; the overview has the others."""

Line = dict[str, Any]


class Figures(NamedTuple):
    """What was found of one contestant on one task.

    Attributes
    ----------
    rounds : tuple of float
        Median ms of the steps of each round.
    first_s : float or None
        Seconds from the start of the process to the end of the first step, without the making of rows.
    extra_mb : float or None
        Peak memory above that of the process with the rows.
    others : float
        Cores that other processes used during the turns, on average.
    error : str
    """

    rounds: tuple[float, ...]
    first_s: float | None
    extra_mb: float | None
    others: float
    error: str

    @property
    def ms(self) -> float | None:
        """The median of the rounds."""
        return statistics.median(self.rounds) if self.rounds else None


Found = dict[str, dict[str, Figures]]


def read(path: Path) -> list[Line]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def collect(lines: Iterable[Line]) -> Found:
    """Figures by task and contestant."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["task"], line["contestant"]), []).append(line)
    found: Found = {}
    for (task, name), group in groups.items():
        turns = [line for line in group if "ms" in line]
        peaks = [line["peak_mb"] for line in group if "peak_mb" in line]
        base = _first(group, "rows_mb")
        found.setdefault(task, {})[name] = Figures(
            tuple(line["ms"] for line in turns),
            _first(group, "first_s"),
            max(peaks) - base if peaks and base is not None else None,
            statistics.fmean(line["others"] for line in turns) if turns else 0.0,
            _first(group, "error") or "",
        )
    return found


def _first(lines: list[Line], field: str) -> Any:
    return next((line[field] for line in lines if field in line), None)


# --- Text -------------------------------------------------------------------------------------------------------------


def time_text(ms: float | None) -> str:
    """Three digits at most, in us, ms or s."""
    if ms is None:
        return ""
    for factor, unit in ((1e3, "us"), (1.0, "ms"), (1e-3, "s")):
        value = ms * factor
        if value < 999.5 or unit == "s":
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    raise AssertionError


def ratio_text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 9.995 else f"{value:.0f}"


def ratio(figures: Figures | None, other: Figures | None) -> float | None:
    """How many times the other's time; None where one of them is missing."""
    return figures.ms / other.ms if figures and other and figures.ms and other.ms else None


def fastest(found: dict[str, Figures], names: Iterable[str]) -> str | None:
    """Who of these was fastest."""
    measured = {name: figures.ms for name in names if (figures := found.get(name)) and figures.ms}
    return min(measured, key=lambda name: measured[name]) if measured else None


def target_text(task: Task, ours: Figures | None, found: Found, key: str) -> tuple[str, str]:
    """What skdp is to be compared with, by the target, and whether it is reached."""
    base = found.get(task.idle or key, {})
    if task.at_most is not None:
        value, bar = ours.ms if ours else None, task.at_most
        wanted = f"at most {time_text(bar)}"
    elif task.times is not None:
        value = ratio(ours, base.get("skdp" if task.idle else task.limit))
        bar, wanted = task.times, f"at most {task.times:.3g} x {'idle machine' if task.idle else task.limit}"
    else:
        return "", ""
    if value is None:
        return wanted, "not measured"
    shown = time_text(value) if task.at_most is not None else f"{value:.2f} x"
    return wanted, f"{shown}: {'reached' if value <= bar else '**missed**'}"


# --- Tables -----------------------------------------------------------------------------------------------------------


def overview(found: Found, everyone: dict[str, Contestant]) -> str:
    """One row a task that has a target: the reference, the fastest other ones, and skdp."""
    head = ["Task", "Reference", "Fastest non-private", "Fastest other private", "skdp", "Ratio", "Target", "Result"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for key, task in TASKS.items():
        if key not in found or (task.times is None and task.at_most is None):
            continue
        here = found[key]
        others = {role: fastest(here, _of(everyone, role, task)) for role in ("plain", "private")}
        ours = here.get(task.of or fastest(here, _of(everyone, "ours", task)) or "")
        cells = [task.title, time_text(here[task.limit].ms) if task.limit in here else ""]
        cells += [f"{name}: {time_text(here[name].ms)}" if name else "" for name in others.values()]
        cells += [time_text(ours.ms) if ours else "", ratio_text(ratio(ours, here.get(others["private"] or "")))]
        lines.append(f"| {' | '.join([*cells, *target_text(task, ours, found, key)])} |")
    return "\n".join(lines)


def _of(everyone: dict[str, Contestant], role: str, task: Task) -> list[str]:
    """Contestants of a role; of the private ones, those that draw their lots where there are lots, as skdp does."""
    same_work = role != "private" or not task.has_lots
    return [name for name, each in everyone.items() if each.role == role and (same_work or each.draws)]


def table(key: str, found: Found, everyone: dict[str, Contestant]) -> str:
    """All contestants of one task."""
    task, here = TASKS[key], found[key]
    limit = here.get(task.limit)
    times = f"Relative to {task.limit}"
    lots = task.has_lots
    head = [task.title, "Type", *(["Samples lots"] if lots else []), f"Time per {task.unit}"]
    head += [*([times] if limit else []), "First step", "Memory"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    order = sorted(here.keys() & everyone.keys(), key=lambda name: (here[name].ms is None, here[name].ms or 0.0, name))
    for name in order:
        each, figures = everyone[name], here[name]
        cells = [f"**{name}**" if each.role == "ours" else name, ROLES[each.role]]
        cells += ["yes" if each.draws else "no"] if lots else []
        if figures.ms is None:
            cells += [figures.error, *([""] if limit else []), "", ""]
        else:
            cells += [time_text(figures.ms), *([ratio_text(ratio(figures, limit))] if limit else [])]
            cells += [f"{figures.first_s:.1f} s" if figures.first_s else "", _memory(figures.extra_mb)]
        lines.append(f"| {' | '.join(cells)} |")
    loaded = max((figures.others for figures in here.values()), default=0.0) - task.beside
    if loaded > LOADED:
        lines += ["", f"Other processes used up to {loaded:.1f} cores during this measurement."]
    return "\n".join(lines)


def _memory(extra_mb: float | None) -> str:
    return "" if extra_mb is None or extra_mb != extra_mb else f"{max(0.0, extra_mb):.0f} MB"


def setting(lines: list[Line]) -> str:
    """The machine and the versions, as the processes found them."""
    machines = [line["machine"] for line in lines if "machine" in line]
    if not machines:
        return ""
    versions: dict[str, set[str]] = {}
    for line in lines:
        for name, version in line.get("versions", {}).items():
            versions.setdefault(name, set()).add(version)
    last = machines[-1]
    named = {PACKAGES.get(name, name): " and ".join(sorted(found)) for name, found in versions.items()}
    listed = ", ".join(f"{name} {found}" for name, found in sorted(named.items(), key=lambda item: item[0].lower()))
    threads = f"{last['threads']} threads"
    if "second_thread" in last:
        threads += f" (the second thread adds {100 * last['second_thread']:.0f}% of arithmetic throughput)"
    return f"{last['cores']} cores ({last['architecture']}), {threads}; {listed}."


NOTES = """\
A time is the median over rounds of the median step. The reference is the core computation alone, such as the matrix
products or a copy of the sampled records. "Ratio" is the time of skdp divided by the time of the fastest other
private implementation. "First step" is the time from the start of the process to the end of the first step.
"Memory" is the peak memory without the data. Implementations that do not sample lots receive prepared batches, so
they do less work than skdp. `benchmarks/results/speed.jsonl` has the measurements of all tasks."""


def section(path: Path) -> str:
    """What stands between the markers."""
    lines, everyone = read(path), load_all()
    found = collect(lines)
    tables = [table(key, found, everyone) for key in SHOWN if key in found]
    return "\n\n".join(filter(None, [BEGIN, setting(lines), overview(found, everyone), NOTES, *tables, END]))


def between(page: str, text: str, markers: tuple[str, str] = (BEGIN, END)) -> str:
    """The page with another text in the place of what the markers enclose; `text` brings them along."""
    before, rest = page.split(markers[0])
    return before + text + rest.split(markers[1])[1]


def write(path: Path) -> None:
    """Write the tables into the page."""
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), section(path)), encoding="utf-8")
