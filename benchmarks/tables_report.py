"""The results of bench_tables.py, as the tables and the plots of docs/benchmarks.md."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Results = dict[str, dict[str, Any]]

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = "_static/tables.png"
CURVES = "_static/reliability.png"
BEGIN, END = "<!-- bench_tables.py --report: begin -->", "<!-- bench_tables.py --report: end -->"

TITLES = {
    "adult": "Adult: income above 50,000 dollars",
    "fulton": "Fulton PUMS: married",
    "fulton_employed": "Fulton PUMS: employed",
    "colorado": "Colorado ACSIncome: income above 50,000 dollars",
    "credit": "Credit default: default in the next month",
    "adult_weighted": "Adult, with survey weights: income above 50,000 dollars",
    "fulton_status": "Fulton PUMS: marital status, three classes",
    "colorado_status": "Colorado ACSIncome: marital status, five classes",
    "housing": "California housing: median value",
    "wine": "Wine, red and white: quality",
    "elevators": "Elevators: position",
    "fulton_income": "Fulton PUMS: income",
    "fulton_log_income": "Fulton PUMS: logarithm of income",
    "fulton_age": "Fulton PUMS: age",
    "fulton_educ": "Fulton PUMS: education",
    "california_income": "California PUMS, 10,000 records: income",
    "california_log_income": "California PUMS, 10,000 records: logarithm of income",
    "california_age": "California PUMS, 10,000 records: age",
    "california_educ": "California PUMS, 10,000 records: education",
}
RARE = {
    "adult@.03": "Adult, high incomes subsampled to 3%",
    "credit@.07": "Credit default, defaults subsampled to 7%",
}
CLASSES = (
    "adult", "fulton", "fulton_employed", "colorado", "credit", "adult_weighted", "fulton_status", "colorado_status",
)  # fmt: skip
METRICS = {name: "ROC AUC" if name in CLASSES else "R²" for name in TITLES}
NAMES = {
    "default": "`tabular_pipeline()`",
    "default, no lists": "- without category lists",
    "default, no schema": "- without a schema",
    "trees": "`DPRandomTreesRegressor`",
    "logistic": "`DPLogisticRegression`",
    "network": "`DPMLPClassifier`, `DPMLPRegressor`",
    "ridge": "`DPRidge`",
    "DP-EBM": "DP-EBM",
    "DP-EBM, lists": "- with category lists",
    "DP-EBM, lists, .01": "- and with `bin_budget_frac=.01`",
    "DP-EBM, lists, .3": "- and with `bin_budget_frac=.3`",
    "diffprivlib": "diffprivlib (pure epsilon)",
    "dp-xgboost": "dp-xgboost (pure epsilon)",
    "ObjectivePerturbation": "objective perturbation",
    "ObjectivePerturbation, bins": "- with binned features",
    "DoubleNoiseNewton": "double-noise Newton",
    "BoostedAdaSSP": "BoostedAdaSSP",
    "share": "constant prediction, non-private",
    "linear, not private": "linear, non-private",
    "boosted trees, not private": "boosted trees, non-private",
}
BELIEVED = "default", "logistic", "network", "DP-EBM", "share", "linear, not private", "boosted trees, not private"
"""Models whose probabilities are shown, at these budgets:"""
BUDGETS = "0.1", "1", "4"
PROBABILITIES = """\
**Calibration** of the same models, with two additional data sets that have a rare class. "Ratio" is the mean predicted
probability divided by the class prevalence in the test set. Its standard error is below 0.01, except for rare classes.
The calibration error uses ten bins with equal numbers of records, and the error that is expected for calibrated
probabilities is subtracted. For multiclass targets, the ratio, the calibration error and the curve are those of the
rarest class. The best private log loss is bold."""
INTRO = "Random 80/20 splits of all records, the same for all models: mean ± standard deviation of {n} splits."
HELD_OUT = """\
**Held-out fifth** at epsilon 1. These models were trained on four fifths of the records and tested on the other fifth,
which was not used to select any default setting (mean of at most 10 fits)."""
COMPARED = "default", "default, no schema", "DP-EBM", "DP-EBM, lists", "diffprivlib", "boosted trees, not private"
"""Models in the table of the held-out fifth."""
EXPLANATION = """\
Unless the row states otherwise, all models have their default settings. They receive the public schema of the data set
as far as they support it. The ROC AUC of multiclass targets is the one-vs-rest mean. The best private score at each
epsilon is bold, and models are compared on their common splits. If a model was fitted to fewer splits, the row states
their number. The last column is the median CPU time of a fit on one thread. The time in parentheses is that of the
first fit of a process, including imports. The cell is empty if other processes were running."""


def epsilons(results: Results, table: str) -> list[str]:
    """The budgets at which a table was tried, as text."""
    return sorted({key.split("/")[2] for key in results if key.split("/")[0] == table} - {"-"}, key=float)


def markdown(results: Results) -> str:
    """One table for each data set; nothing without results."""
    n = max((len(entry["score"]) for entry in results.values()), default=0)
    return "\n\n".join([INTRO.format(n=n), *_tables(results, n)]) if n else ""


def held_out(results: Results) -> str:
    """Scores on the held-out fifth at epsilon 1, one row for each data set."""
    rows = []
    for table, title in TITLES.items():
        found = [results.get(f"{table}/{each}/1") or results.get(f"{table}/{each}/-") for each in COMPARED]
        if any(found):
            cells = [_mean(entry, False).split(" ±")[0] if entry else "" for entry in found]
            rows.append(f"| {title} ({METRICS[table]}) | {' | '.join(cells)} |")
    names = [
        NAMES[each].replace("- ", f"{NAMES[each.split(',')[0]]} " if each.startswith("D") else "") for each in COMPARED
    ]
    return "\n".join([f"| Data set | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|", *rows])


def _tables(results: Results, n: int) -> Iterator[str]:
    for table, title in TITLES.items():
        budgets = epsilons(results, table)
        best = {each: _winners(results, table, each, NAMES, "score") for each in budgets}
        rows = [row for model in NAMES if (row := _row(results, table, model, best, n))]
        if rows:
            yield "\n".join(
                [
                    f"| {title} ({METRICS[table]}) | {' | '.join(budgets)} | Seconds per fit |",
                    "|---" * (len(budgets) + 2) + "|",
                    *rows,
                ]
            )


def _winners(results: Results, table: str, budget: str, models: Iterable[str], name: str, sign: int = 1) -> set[str]:
    """Private models that no other one is better than on the splits of both, by means as far as they are printed."""
    entries = {model: results.get(f"{table}/{model}/{budget}", {}) for model in models}
    found = {model: np.array(entry[name]) * sign for model, entry in entries.items() if name in entry}

    def mean(one: str, other: str) -> float:
        return round(float(np.mean(found[one][: len(found[other])])), 3)

    return {one for one in found if all(mean(one, other) >= mean(other, one) for other in found)}


def _row(results: Results, table: str, model: str, best: dict[str, set[str]], n: int) -> str:
    entries = {each: results.get(f"{table}/{model}/{each}") for each in (*best, "-")}
    found = [entry for entry in entries.values() if entry]
    if not found:
        return ""
    shown = {each: _mean(entry, model in best.get(each, ())) if entry else "" for each, entry in entries.items()}
    cells = [shown["-"] or shown[each] for each in best]
    fits = max(len(entry["score"]) for entry in found)
    name = NAMES[model] + (f" ({fits} fits)" if 1 < fits < n else "")
    return f"| {name} | {' | '.join(cells)} | {_times(found)} |"


def _times(found: list[dict[str, Any]]) -> str:
    """Medians of a fit and of the first fit of a process."""
    seconds = [second for entry in found for second in entry["seconds"]]
    first = [entry["first"] for entry in found if "first" in entry]
    return f"{np.median(seconds):.2f} ({np.median(first):.1f})" if seconds else ""


def _mean(entry: dict[str, Any], is_best: bool) -> str:
    """Mean and spread of the scores, bold for the best. R squared has no lower end: below 0 no more is said."""
    mean = np.mean(entry["score"])
    if mean < 0:
        return "below 0"
    spread = f" ± {_short(np.std(entry['score'], ddof=1))}" if len(entry["score"]) > 1 else ""
    return f"**{_short(mean)}**{spread}" if is_best else _short(mean) + spread


def _short(value: float) -> str:
    return f"{value:.3f}"


def paired(results: Results, one: str, other: str) -> str:
    """Differences of two models on the same rows, with standard errors; ``<`` is behind by more than .003 and two."""
    lines = []
    for key in sorted(results):
        table, model, budget = key.split("/")
        a, b = results[key]["score"], results.get(f"{table}/{other}/{budget}", {"score": []})["score"]
        n = min(len(a), len(b))
        if model == one and n > 1:
            difference = np.subtract(a[:n], b[:n])
            mean, error = difference.mean(), difference.std(ddof=1) / n**0.5
            mark = "<" if mean < -0.003 - 2 * error else ""
            lines.append(f"{table:16} {budget:>4} {mean:8.4f} +- {error:.4f} of {n} {mark}".rstrip())
    return "\n".join(lines)


# --- Probabilities ----------------------------------------------------------------------------------------------------


def probabilities(results: Results) -> str:
    """One table for each table with classes: log loss and ratio by budget, Brier score and calibration error at 1."""
    parts = [_believed(results, table, title) for table, title in (TITLES | RARE).items()]
    return "\n\n".join(filter(None, parts))


def _believed(results: Results, table: str, title: str) -> str:
    best = {each: _winners(results, table, each, BELIEVED, "log_loss", sign=-1) for each in BUDGETS}
    rows = [row for model in BELIEVED if (row := _believed_row(results, table, model, best))]
    head = [f"log loss, {each}" for each in BUDGETS] + ["Brier, 1"] + [f"ratio, {each}" for each in BUDGETS]
    head = [title, *head, "calibration error, 1"]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]) if rows else ""


def _believed_row(results: Results, table: str, model: str, best: dict[str, set[str]]) -> str:
    public = results.get(f"{table}/{model}/-", {})
    entries = {each: results.get(f"{table}/{model}/{each}", public) for each in BUDGETS}
    if not any("log_loss" in entry for entry in entries.values()):
        return ""

    def shown(budget: str, name: str) -> str:
        entry = entries[budget]
        if name not in entry:
            return ""
        mean = round(float(np.mean(entry[name])), 3) + 0.0  # no zero below zero
        text = _short(mean)
        return f"**{text}**" if name == "log_loss" and entry is not public and model in best[budget] else text

    cells = [shown(each, "log_loss") for each in BUDGETS] + [shown("1", "brier")]
    cells += [shown(each, "ratio") for each in BUDGETS] + [shown("1", "ece")]
    return f"| {NAMES[model]} | {' | '.join(cells)} |"


def draw_curves(results: Results, path: Path) -> None:
    """Draw the share of the class against the mean probability, in ten bins, at a budget of 1."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tables = [table for table in TITLES | RARE if "curve" in results.get(f"{table}/default/1", {})]
    n_lines = -(-len(tables) // 4)
    figure, axes = plt.subplots(n_lines, 4, figsize=(13, 3.3 * n_lines), squeeze=False)
    for ax, table in zip(axes.flat, tables, strict=False):
        _curve_panel(ax, results, table)
    for ax in axes.flat[len(tables) :]:
        ax.set_axis_off()
    lines = {line.get_label(): line for ax in axes.flat for line in ax.get_lines() if line.get_label() in NAMES}
    labels = [LEGEND.get(name, NAMES[name]).replace("`", "") for name in lines]
    figure.legend(list(lines.values()), labels, loc="lower center", ncols=4, frameon=False)
    figure.tight_layout(rect=(0, 0.12 / n_lines, 1, 1))
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def _curve_panel(ax: Any, results: Results, table: str) -> None:
    top = 0.0
    for model in BELIEVED[:4]:
        entry = results.get(f"{table}/{model}/1", {})
        if "curve" in entry:
            said, seen = np.mean(entry["curve"], axis=0)
            ax.plot(said, seen, color=COLORS[model], label=model, lw=1.4, marker="o", ms=3)
            top = max(top, float(said.max()), float(seen.max()))
    ax.plot([0, top], [0, top], color="#777777", lw=0.8, ls=":")
    ax.set_title((TITLES | RARE)[table].replace(": ", ":\n"), fontsize=9)
    ax.set_xlabel("mean predicted probability", fontsize=8)
    ax.set_ylabel("class prevalence", fontsize=8)
    ax.tick_params(labelsize=8)


# --- The page ---------------------------------------------------------------------------------------------------------


def section(folder: Path) -> str:
    """What stands between the markers."""
    parts = [EXPLANATION, f"![ROC AUC or R² against epsilon, one panel for each data set]({PICTURE})"]
    for name, written in (("splits", markdown), ("held-out", held_out)):
        file = folder / f"{name}.json"
        if file.exists():
            parts += [HELD_OUT] * (name == "held-out") + [written(json.loads(file.read_text()))]
    file = folder / "splits.json"
    believed = probabilities(json.loads(file.read_text())) if file.exists() else ""
    if believed:
        parts += [
            PROBABILITIES,
            f"![Class prevalence against mean predicted probability, one panel for each data set]({CURVES})",
        ]
        parts.append(believed)
    return "\n\n".join([BEGIN, *filter(None, parts), END])


def replaced(page: str, text: str) -> str:
    """The page with another text between the markers."""
    before, rest = page.split(BEGIN)
    return before + text + rest.split(END)[1]


def write(folder: Path) -> None:
    """Write table and picture into the page."""
    page = DOCS / "benchmarks.md"
    page.write_text(replaced(page.read_text(encoding="utf-8"), section(folder)), encoding="utf-8")
    results = json.loads((folder / "splits.json").read_text())
    draw(results, DOCS / PICTURE)
    draw_curves(results, DOCS / CURVES)


COLORS = {
    "default": "#d62728", "default, no schema": "#f4a3a3", "trees": "#ff7f0e",
    "logistic": "#1f77b4", "network": "#8c564b", "ridge": "#1f77b4", "DP-EBM": "#2ca02c", "DP-EBM, lists": "#98df8a",
    "diffprivlib": "#9467bd", "linear, not private": "#777777", "boosted trees, not private": "black",
}  # fmt: skip
"""Of the rows that are drawn."""
LEGEND = {"default, no schema": "tabular_pipeline(), no schema", "DP-EBM, lists": "DP-EBM, category lists"}
BELOW = {"ROC AUC": 0.16, "R²": 0.6}
"""How far below boosted trees a panel reaches: what is worse leaves it."""


def draw(results: Results, path: Path) -> None:
    """Draw small multiples: metric against epsilon."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tables = [table for table in TITLES if epsilons(results, table)]
    n_lines = -(-len(tables) // 4)
    figure, axes = plt.subplots(n_lines, 4, figsize=(13, 3.1 * n_lines), sharex=True, squeeze=False)
    for ax, table in zip(axes.flat, tables, strict=False):
        _panel(ax, results, table)
    for ax in axes.flat[len(tables) :]:
        ax.set_axis_off()
    lines = {line.get_label(): line for ax in axes.flat for line in ax.get_lines()}
    order = [name for name in COLORS if name in lines]
    labels = [LEGEND.get(name, NAMES[name]).replace("`", "") for name in order]
    figure.legend([lines[name] for name in order], labels, loc="lower center", ncols=5, frameon=False)
    figure.tight_layout(rect=(0, 0.16 / n_lines, 1, 1))
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def _short_title(table: str) -> str:
    """The table, and what is told of its rows where there is another task or there are weights."""
    where, _, what = TITLES[table].partition(": ")
    name, _, how = where.partition(", ")
    several = "PUMS" in where or table.endswith("_status")
    return f"{name}, {what}" if several else f"{name}, weighted" if how.startswith("with survey") else name


def _panel(ax: Any, results: Results, table: str) -> None:
    for model in COLORS:
        found = {key.split("/")[2]: entry for key, entry in results.items() if key.startswith(f"{table}/{model}/")}
        if "-" in found:
            style = "--" if model.startswith("boosted") else ":"
            ax.axhline(np.mean(found["-"]["score"]), color=COLORS[model], ls=style, lw=1, label=model)
        elif found:
            budgets = sorted(found, key=float)
            means = [np.mean(found[each]["score"]) for each in budgets]
            spread = [np.std(found[each]["score"], ddof=1) for each in budgets]
            look = {"color": COLORS[model], "marker": "o", "ms": 3, "lw": 1.2}
            ax.errorbar(list(map(float, budgets)), means, spread, **look)
            ax.plot([], [], **look, label=model)
    best = max(np.mean(entry["score"]) for key, entry in results.items() if key.startswith(f"{table}/"))
    ax.set_ylim(best - BELOW[METRICS[table]], best + 0.05 * BELOW[METRICS[table]])
    ax.set_xscale("log")
    budgets = epsilons(results, table)
    ax.set_xticks(list(map(float, budgets)), budgets)
    ax.minorticks_off()
    ax.set_title(textwrap.fill(_short_title(table), 34), fontsize=10)
    ax.set_ylabel(METRICS[table])
    ax.grid(alpha=0.3)
