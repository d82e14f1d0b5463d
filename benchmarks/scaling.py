#!/usr/bin/env python3
"""Time of an epoch over three decades of rows, columns and hidden units, on one thread and on two, beside the limit.

    python benchmarks/scaling.py [--only rows lots columns width] [--rounds 3]
    python benchmarks/scaling.py --report

skdp and the limit take turns, each in processes of their own pinned to one and to two threads. The JSON lines of a
point replace its earlier ones; the picture and the table of docs/benchmarks.md are made of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import RESULTS, Line, Worker, replace_lines
from peers.registry import CONTESTANTS, load_all
from peers.tasks import SCALING, Task
from speed_report import between, read, time_text

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = "_static/scaling.png"
MARKERS = "<!-- scaling.py --report: begin -->", "<!-- scaling.py --report: end -->"
THREADS = (1, 2)
SERIES = {
    "rows": ("Full batch, 11 columns", "rows"),
    "lots": ("Lots of 1,024, 11 columns", "rows"),
    "columns": ("Full batch, 10,000 rows", "columns"),
    "width": ("Network 60-w-10, lots of 600", "hidden units w"),
}

Points = dict[tuple[str, int, bool, int], float]
"""Seconds of an epoch by series, size, whether it is the limit, and threads."""


def measure(key: str, given: argparse.Namespace) -> Iterator[Line]:
    """Lines of one point."""
    task, workers = SCALING[key], {}
    chosen = [each for each in CONTESTANTS.values() if each.takes(key, task)]
    chosen = [each for each in chosen if each.role == "ours" or each.name == task.limit]
    try:
        for each in chosen:
            for n_threads in THREADS:
                worker = Worker(key, each, sys.executable, n_threads)
                line = worker.first(given.timeout)
                if "error" in line:
                    yield {"task": key, "contestant": each.name, "threads": n_threads, **line}
                else:
                    workers[each.name, n_threads] = worker
        for number in range(given.rounds):
            for (name, n_threads), worker in workers.items():
                line = worker.turn(given.seconds, given.timeout)
                yield {"task": key, "contestant": name, "threads": n_threads, "round": number, **line}
    finally:
        for worker in workers.values():
            worker.close()


def steps_of_epoch(task: Task) -> float:
    """Steps after which as many rows were drawn as there are."""
    return task.n / task.lot if task.lot else 1.0


def collect(lines: list[Line]) -> Points:
    """Medians of the rounds."""
    groups: dict[tuple[str, int, bool, int], list[float]] = {}
    for line in lines:
        if "ms" in line:
            series, size = line["task"].split("/")
            task = SCALING[line["task"]]
            key = series, int(size), line["contestant"] == task.limit, line["threads"]
            groups.setdefault(key, []).append(line["ms"] / 1e3 * steps_of_epoch(task))
    return {key: statistics.median(found) for key, found in groups.items()}


def table(points: Points) -> str:
    """A row a size: an epoch on one thread and on two, and how many times the limit it takes."""
    head = "| Task | Size | One thread | Relative to reference | Two threads | Relative to reference |"
    rows = [head, "|---|---|---|---|---|---|"]
    for series, (title, axis) in SERIES.items():
        for size in sorted({size for name, size, _, _ in points if name == series}):
            cells = [title, f"{size:,} {axis.split()[0]}"]
            for n_threads in THREADS:
                ours, limit = (points.get((series, size, is_limit, n_threads)) for is_limit in (False, True))
                cells.append(time_text(ours and 1e3 * ours))
                cells.append(f"{ours / limit:.2f}" if ours and limit else "")
            rows.append(f"| {' | '.join(cells)} |")
            title = ""
    return "\n".join(rows)


EXPLANATION = """\
The table has the time of one epoch, in which the number of sampled records equals the size of the data set. The
reference computation uses the same number of threads. It is a copy of the data for full batches, `X[idx]` for lots with
few features, and the matrix products for networks."""


def section(points: Points) -> str:
    """What stands between the markers."""
    picture = f"![Time of an epoch against rows, columns and hidden units, on logarithmic axes]({PICTURE})"
    return "\n\n".join([MARKERS[0], EXPLANATION, picture, table(points), MARKERS[1]])


def draw(points: Points, path: Path) -> None:
    """A panel a series, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SERIES), figsize=(13, 3.6))
    for ax, (series, (title, axis)) in zip(axes, SERIES.items(), strict=True):
        ax.set(title=title, xlabel=axis)
        if any(name == series for name, *_ in points):
            _panel(ax, points, series)
            ax.set(xscale="log", yscale="log")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("seconds per epoch")
    handles = {line.get_label(): line for ax in axes for line in ax.get_lines()}
    axes[0].legend(handles.values(), handles, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def _panel(ax: Any, points: Points, series: str) -> None:
    for is_limit, color in ((False, "#d62728"), (True, "#777777")):
        for n_threads, style in zip(THREADS, ("-", "--"), strict=True):
            found = sorted(
                (size, seconds)
                for (name, size, limit, threads), seconds in points.items()
                if (name, limit, threads) == (series, is_limit, n_threads)
            )
            label = f"{'reference' if is_limit else 'skdp'}, {n_threads} thread{'s' if n_threads > 1 else ''}"
            look = {"color": color, "ls": style, "marker": "" if is_limit else "o", "ms": 3, "lw": 1.2}
            ax.plot([size for size, _ in found], [seconds for _, seconds in found], label=label, **look)


def write(path: Path) -> None:
    """Write picture and table into the page."""
    points, page = collect(read(path)), DOCS / "benchmarks.md"
    page.write_text(between(page.read_text(encoding="utf-8"), section(points), MARKERS), encoding="utf-8")
    draw(points, DOCS / PICTURE)


def main() -> None:
    load_all()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SERIES, default=list(SERIES), metavar="SERIES")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a turn")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for a step")
    parser.add_argument("--results", type=Path, default=RESULTS.with_name("scaling.jsonl"))
    parser.add_argument("--report", action="store_true", help="only draw these lines")
    given = parser.parse_args()
    for key in [] if given.report else SCALING:
        if key.split("/")[0] in given.only:
            lines = list(measure(key, given))
            replace_lines(given.results, key, None, lines)
            print(
                key, *[f"{line['contestant']}, {line['threads']}: {line.get('ms')}" for line in lines[-4:]], sep="\n  "
            )
    if given.report or given.results == RESULTS.with_name("scaling.jsonl"):
        write(given.results)


if __name__ == "__main__":
    main()
