"""
What a grid search costs: forty candidates at a total epsilon of 1
==================================================================

A plain grid search fits forty candidates on several folds, prints the epsilon of the last fit alone, and scores on
private rows for nothing. :class:`skdp.DPGridSearchCV` pays for tries, choice and final fit out of one budget.
The table and the picture show what both cost and what they bring, beside the model that nobody tuned.

Run it alone::

    python examples/plot_grid_search_budget.py                        # made-up people, no network
    python examples/plot_grid_search_budget.py --data pums_fulton_ga.csv.gz

``--data`` takes a Census 2000 PUMS extract or an ACS person file, as :func:`skdp.datasets.load_pums` does.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, train_test_split

from skdp import DPGridSearchCV, DPLogisticRegression, PrivacyAccountant, PrivacyLeakWarning
from skdp.accounting import compose, get_epsilon
from skdp.datasets import load_pums, make_census

FEATURES = (
    "sex", "married", "black", "asian", "collegedegree", "militaryservice", "uscitizen", "disability",
    "englishability", "blackfemale", "age",
)  # fmt: skip
CLASSES = (0, 1)
GRID = {"max_grad_norm": [0.1, 0.2, 0.4, 0.7, 1.4], "max_iter": [25, 50, 100, 200], "alpha": [0.0, 1e-3]}
N_CANDIDATES, N_FOLDS = 40, 3
PICTURE = "grid_search_budget.png"
N_PEOPLE, N_PEOPLE_QUICK, N_REPEATS, N_REPEATS_QUICK = 30_000, 4_000, 5, 2

PLAIN, STOPPING, COMPOSE = "GridSearchCV", "DPGridSearchCV", "DPGridSearchCV, compose"
DEFAULT, NOT_PRIVATE = "default, untuned", "non-private"


class People(NamedTuple):
    """Rows to learn from, and where they come from."""

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    source: str


class Found(NamedTuple):
    """One way to a model on one split: what it says it costs, what it truly costs, and its AUROC.

    `least` counts only the fits that one and the same person is in.
    """

    says: float
    costs: float
    auroc: float
    least: float


# %%
# The people
# ----------
# Columns are scaled by the public bounds of the code book, which costs nothing.


def load_people(path: Path | None, quick: bool) -> People:
    """Load the people of a file, or make some up."""
    if path is None:
        bunch = make_census(N_PEOPLE_QUICK if quick else N_PEOPLE, random_state=0, features=FEATURES)
    else:
        bunch = load_pums(path, features=FEATURES)
    low, high = np.array([bunch.bounds[name] for name in bunch.feature_names], dtype=np.float32).T
    X, y = np.ascontiguousarray((bunch.data - low) / (high - low), np.float32), 1 - bunch.target
    if quick and len(y) > N_PEOPLE_QUICK:
        rows = np.random.default_rng(0).choice(len(y), N_PEOPLE_QUICK, replace=False)
        X, y = X[rows], y[rows]
    if np.bincount(y, minlength=2).min() < 10:
        raise ValueError(f"{path}: {len(y)} people are too few; 10 employed and 10 not employed are needed to score")
    return People(X, y, "made-up people (skdp.datasets.make_census)" if path is None else path.name)


# %%
# Five ways to a model
# --------------------
# The plain search shares an accountant among its fits, which prices all of them together; the estimator that it
# prints knows of its own fit alone. Folds are plain ones: stratified folds move other people when one label changes.


def plain_search(X: Any, y: Any, epsilon: float, delta: float) -> tuple[Any, float, float, float]:
    """GridSearchCV over fits of epsilon each: what its winner says, what all fits cost, and those of one person."""
    accountant = PrivacyAccountant()
    model = DPLogisticRegression(epsilon=epsilon, delta=delta, classes=CLASSES, accountant=accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # its scores are not paid for; the text below says so
        found = GridSearchCV(model, GRID, cv=KFold(N_FOLDS, shuffle=True, random_state=0), scoring="roc_auc").fit(X, y)
    *folds, last = [charge.event for charge in accountant.history]
    assert len(folds) == N_CANDIDATES * N_FOLDS
    of_one_person = [event for number, event in enumerate(folds) if number % N_FOLDS]  # the others score that person
    least = get_epsilon(compose([*of_one_person, last]), delta)
    return found, found.best_estimator_.epsilon_, accountant.get_epsilon(delta), least


def private_search(X: Any, y: Any, epsilon: float, delta: float, strategy: str) -> tuple[Any, float, float]:
    """DPGridSearchCV: the accountant is charged once, and that is the whole."""
    accountant = PrivacyAccountant()
    model = DPLogisticRegression(classes=CLASSES, accountant=accountant)
    budget = {"epsilon": epsilon, "delta": delta}
    found = DPGridSearchCV(model, GRID, **budget, strategy=strategy, scoring="neg_log_loss").fit(X, y)
    return found, found.epsilon_, accountant.get_epsilon(delta)


def untuned(X: Any, y: Any, epsilon: float, delta: float) -> tuple[Any, float, float]:
    """The default model at the full budget."""
    found = DPLogisticRegression(epsilon=epsilon, delta=delta, classes=CLASSES).fit(X, y)
    return found, found.epsilon_, found.epsilon_


def measure(people: People, epsilon: float, delta: float, n_repeats: int) -> dict[str, list[Found]]:
    """All five ways on several splits. The noise is fresh and secret; the splits are seeded."""
    results: dict[str, list[Found]] = {}
    for repeat in range(n_repeats):
        X, X_test, y, y_test = train_test_split(people.X, people.y, test_size=0.2, random_state=repeat)
        ways = {
            PLAIN: plain_search(X, y, epsilon, delta),
            STOPPING: private_search(X, y, epsilon, delta, "random_stopping"),
            COMPOSE: private_search(X, y, epsilon, delta, "compose"),
            DEFAULT: untuned(X, y, epsilon, delta),
            NOT_PRIVATE: (LogisticRegression().fit(X, y), math.inf, math.inf),
        }
        for name, (model, says, costs, *least) in ways.items():
            auroc = float(roc_auc_score(y_test, model.decision_function(X_test)))
            results.setdefault(name, []).append(Found(says, costs, auroc, *(least or [costs])))
    return results


# %%
# The table
# ---------


def print_results(people: People, results: dict[str, list[Found]], epsilon: float, delta: float) -> None:
    """What each way says, what it costs, and what it brings; and how to read that."""
    print(f"Who is not employed? {N_CANDIDATES} candidates, epsilon {epsilon:g}, delta {delta:g}, one person a row.\n")
    print(f"Source   {people.source}\nPeople   {len(people.y):,}\n")
    print(f"{'':26} {'says':>8} {'costs':>9}   {'AUROC':^17}")
    for name, found in results.items():
        says, costs, auroc, _ = np.array(found).T
        paid = f"{says.max():8.3f} {costs.max():9.3f}" if math.isfinite(says[0]) else f"{'-':>8} {'-':>9}"
        print(f"{name:26} {paid}   {auroc.mean():.4f} +/- {auroc.std(ddof=1):.4f}")
    n_fits, plain = N_CANDIDATES * N_FOLDS + 1, results[PLAIN][0]
    least = f"{plain.least:.1f}"
    print(f"\n{PLAIN} fits {n_fits} times and prints the epsilon of the last fit. All fits together cost epsilon")
    print(f"{plain.costs:.1f}, each charged in full; a person is in two of three folds, so {least} at the least; and")
    print("the exact scores that it chose by are not in that, nor could they be.")
    print(f"{STOPPING} tries a secret random number of candidates and costs {results[STOPPING][0].costs:.3f} in all.")
    print(verdict(results))
    print("AUROC is on the held-out fifth, which is taken as public: mean +/- standard deviation over the splits.")


def verdict(results: dict[str, list[Found]]) -> str:
    """Whether the private search was worth its budget here."""
    less = np.array([a.auroc - b.auroc for a, b in zip(results[DEFAULT], results[STOPPING], strict=True)])
    if less.mean() > -0.0005:
        return f"The default at the full budget needed no search: it is {less.mean():+.4f} above {STOPPING}."
    return f"The search was worth its budget here: it is {-less.mean():+.4f} above the default."


# %%
# The picture
# -----------


def draw(people: People, results: dict[str, list[Found]], epsilon: float, delta: float, output: Path) -> None:
    """Cost on the left, quality on the right."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 5), dpi=150, layout="constrained", sharey=True)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
    names = list(results)
    for place, name in enumerate(names):
        says, costs, auroc, _ = np.array(results[name]).T
        if math.isfinite(costs[0]):
            left.plot([says.max(), costs.max()], [place, place], color="#999999", zorder=1)
            left.scatter(costs.max(), place, color="#D55E00", s=70, zorder=2, label="truly costs")
            left.scatter(says.max(), place, color="#0072B2", s=25, zorder=3, label="says it costs")
            left.annotate(f"{costs.max():.3g}", (costs.max(), place), (0, 9), textcoords="offset points", ha="center")
        else:
            left.text(epsilon, place, "no guarantee", ha="center", va="center", color="#666666")
        right.errorbar(auroc.mean(), place, xerr=auroc.std(ddof=1), color="#0072B2", marker="o", capsize=4)
        right.plot(auroc, np.full(len(auroc), place + 0.18), "|", color="#999999")
    left.set_xscale("log")
    left.set_xlim(epsilon / 2, 2.2 * max(results[PLAIN][0].costs, epsilon))
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.5, -0.6)
    left.set_xlabel("epsilon of everything that was done (log scale)")
    right.set_xlabel("AUROC on the held-out fifth")
    low, high = right.get_xlim()
    slack = max(0.0, 0.04 - (high - low)) / 2  # an axis stretched over .001 would make that look like a loss
    right.set_xlim(low - slack, high + slack)
    for panel in (left, right):
        panel.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    left.legend(handles[:2], labels[:2], loc="lower right", frameon=False)
    figure.suptitle(
        f"{N_CANDIDATES} candidates under a budget of epsilon {epsilon:g} (delta {delta:g})\n"
        f"Who is not employed? {people.source}, n = {len(people.y):,}"
    )
    n_repeats = len(results[PLAIN])
    figure.supxlabel(
        f"Right: mean and standard deviation over {n_repeats} random splits (ticks). Axes do not begin at 0.",
        fontsize="small",
    )
    figure.savefig(output)


# %%
# All of it
# ---------


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="What a grid search costs: forty candidates at a total epsilon of 1.")
    parser.add_argument("--data", type=Path, help="Census 2000 extract or ACS person file; default: made-up people")
    parser.add_argument("--epsilon", type=float, default=1.0, help="default: 1")
    parser.add_argument("--delta", type=float, default=1e-5, help="default: 1e-5; well below 1 / number of people")
    parser.add_argument("--repeats", type=int, help=f"random splits, at least 2; default: {N_REPEATS}")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    parser.add_argument("--quick", action="store_true", help=f"{N_PEOPLE_QUICK:,} people, {N_REPEATS_QUICK} repeats")
    options = parser.parse_args(arguments if "__file__" in globals() else ["--quick"])
    if options.repeats is None:
        options.repeats = N_REPEATS_QUICK if options.quick else N_REPEATS
    if options.repeats < 2:
        parser.error(f"--repeats {options.repeats}: give at least 2, error bars need them")
    if not 0 < options.epsilon < math.inf:
        parser.error(f"--epsilon {options.epsilon:g}: give a number above 0")
    if not 0 < options.delta < 1:
        parser.error(f"--delta {options.delta:g}: give a number between 0 and 1")
    return options


def run(options: argparse.Namespace) -> None:
    """Load, measure, print and draw."""
    check_output(options.output)
    people = load_people(options.data, options.quick)
    results = measure(people, options.epsilon, options.delta, options.repeats)
    print_results(people, results, options.epsilon, options.delta)
    try:
        draw(people, results, options.epsilon, options.delta, options.output)
    except ImportError:
        print('\nNo picture: matplotlib is missing; pip install "skdp[plot]"')
    else:
        print(f"\nPicture: {options.output}")


def check_output(output: Path) -> None:
    """Refuse before the work what would fail after it."""
    if not output.parent.is_dir():
        raise FileNotFoundError(f"--output {output}: there is no folder {output.parent}")
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output {output}: give a name that ends in .png, .pdf or .svg")


def main(arguments: list[str] | None = None) -> None:
    """Run, and turn what a user can mend (a wrong path, a wrong file, a missing package) into one line."""
    options = parse(arguments)
    try:
        run(options)
    except (OSError, ValueError, ImportError) as error:
        sys.exit(f"plot_grid_search_budget.py: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
