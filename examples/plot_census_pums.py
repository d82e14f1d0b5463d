"""
What privacy costs: who is not employed, from census people
===========================================================

A logistic regression learns from census records who is not employed, once without privacy (scikit-learn) and then with
differential privacy at several budgets ``epsilon``. The table and the picture show what each budget costs in quality.

Run it alone::

    python examples/plot_census_pums.py                        # made-up people, no network
    python examples/plot_census_pums.py --data pums_fulton_ga.csv.gz

``--data`` takes a Census 2000 PUMS extract or an ACS person file, as :func:`skdp.datasets.load_pums` does. Person
weights of an ACS file are not used.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.datasets import load_pums, make_census

FEATURES = (
    "sex", "married", "black", "asian", "collegedegree", "militaryservice", "uscitizen", "disability",
    "englishability", "blackfemale", "age",
)  # fmt: skip
CLASSES = (0, 1)
EPSILONS = (0.1, 0.5, 1.0, 4.0, 8.0)
PICTURE = "census_privacy_utility.png"
N_PEOPLE, N_PEOPLE_QUICK, N_REPEATS_QUICK = 30_000, 6_000, 3


class People(NamedTuple):
    """Rows to learn from, and where they come from."""

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    source: str
    about: str


class Score(NamedTuple):
    """One fit, scored on the held-out fifth. `spent` is the fitted `epsilon_`, infinite without privacy."""

    auroc: float
    accuracy: float
    seconds: float
    spent: float


class Results(NamedTuple):
    """What was measured: for each model (named by its epsilon, infinity without privacy) its scores, one a repeat."""

    scores: dict[float, list[Score]]
    joint_epsilon: float
    first_fit_seconds: float

    def column(self, epsilon: float, name: str) -> NDArray[np.float64]:
        """One quantity of one model over all repeats."""
        return np.array([getattr(score, name) for score in self.scores[epsilon]])


# %%
# The people
# ----------
# A private model may not look at the data to find out how to scale them: the smallest age in a file is somebody's age.
# The loaders give the bounds that the code book allows. They are public, so scaling by them costs nothing.


def scale_by_public_bounds(bunch: Any) -> NDArray[np.float32]:
    """Bring every column to [0, 1] by its public bounds. Columns of 0 and 1 stay as they are; age was 18 to 93."""
    low, high = np.array([bunch.bounds[name] for name in bunch.feature_names], dtype=np.float32).T
    return (bunch.data - low) / (high - low)


def load_people(path: Path | None, quick: bool) -> People:
    """Load the people of a file, or make some up."""
    if path is None:
        bunch = make_census(N_PEOPLE_QUICK if quick else N_PEOPLE, random_state=0, features=FEATURES)
    else:
        bunch = load_pums(path, features=FEATURES)
    X, y = scale_by_public_bounds(bunch), 1 - bunch.target
    if quick and len(y) > N_PEOPLE_QUICK:
        rows = np.random.default_rng(0).choice(len(y), N_PEOPLE_QUICK, replace=False)
        X, y = X[rows], y[rows]
    if np.bincount(y, minlength=2).min() < 10:
        raise ValueError(f"{path}: {len(y)} people are too few; 10 employed and 10 not employed are needed to score")
    if path is None:
        return People(X, y, "made-up people (skdp.datasets.make_census)", "Nobody's privacy is at stake.")
    return People(X, y, path.name, bunch.DESCR.split(". ")[0] + ".")


# %%
# The fits
# --------
# Every repeat splits the people anew, by a seed. The noise is fresh and secret (``random_state=None``, the default):
# whoever knows the seed of the noise can subtract it. The fits of one repeat see the same rows, so they share an
# accountant, which prices them together.


def measure(people: People, epsilons: Iterable[float], delta: float, n_repeats: int) -> Results:
    """Fit and score all models on several splits."""
    epsilons = list(epsilons)
    first_fit_seconds = warm_up(people, delta)
    scores: dict[float, list[Score]] = {epsilon: [] for epsilon in (math.inf, *epsilons)}
    for repeat in with_progress(range(n_repeats)):
        split = train_test_split(people.X, people.y, test_size=0.2, random_state=repeat)
        scores[math.inf].append(fit_and_score(LogisticRegression(), *split))
        accountant = PrivacyAccountant()
        for epsilon in epsilons:
            model = DPLogisticRegression(epsilon=epsilon, delta=delta, classes=CLASSES, accountant=accountant)
            scores[epsilon].append(fit_and_score(model, *split))
    return Results(scores, accountant.get_epsilon(delta), first_fit_seconds)


def fit_and_score(model: Any, X: Any, X_test: Any, y: Any, y_test: Any) -> Score:
    """Fit on four fifths, on one thread (private fits use one unless told otherwise), and score on the last."""
    with threadpool_limits(1):
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    auroc = roc_auc_score(y_test, model.decision_function(X_test))
    return Score(auroc, model.score(X_test, y_test), seconds, getattr(model, "epsilon_", math.inf))


def warm_up(people: People, delta: float) -> float:
    """Fit both models once on rows of zeros, which are nobody's, and give the seconds of the private fit."""
    X, y = np.zeros_like(people.X), np.arange(len(people.y)) % 2
    LogisticRegression().fit(X, y)
    start = time.perf_counter()
    DPLogisticRegression(delta=delta, classes=CLASSES).fit(X, y)
    return time.perf_counter() - start


def with_progress(repeats: range) -> Iterable[int]:
    """Show a progress bar on standard error after two seconds, where tqdm is there and somebody watches."""
    try:
        from tqdm import tqdm
    except ImportError:
        return repeats
    return tqdm(repeats, desc="repeats", delay=2, leave=False, disable=None)


# %%
# The table
# ---------


def print_people(people: People, delta: float) -> None:
    """Say who the people are, what the label means, and what is protected."""
    n, share = len(people.y), people.y.mean()
    print(f"Who is not employed? Logistic regression on {people.X.shape[1]} columns, with differential privacy.\n")
    print(f"Source   {people.source}\n         {people.about}")
    print(f"People   {n:,}; {share:.1%} are not employed, so always answering 'employed' is right for {1 - share:.1%}")
    print("Label    as in the Census 2000 extract, 'not employed' includes people outside the labour force:")
    print("         the retired, students, people at home")
    print(f"Privacy  delta {delta:g}; the unit of privacy is one person (one row), not a household: two members of")
    print("         a household are protected each alone, not both together\n")


def print_table(results: Results) -> None:
    """Print mean and standard deviation of the quality, and the median time of a fit."""
    print(f"{'epsilon':<12} {'spent':>8}   {'AUROC':^17} {'lost':>8}   {'accuracy':^17} {'seconds':>8}")
    best = results.column(math.inf, "auroc")
    for epsilon in results.scores:
        auroc, accuracy, seconds = (results.column(epsilon, name) for name in ("auroc", "accuracy", "seconds"))
        private = math.isfinite(epsilon)
        name = f"{epsilon:g}" if private else "non-private"
        spent = f"{results.column(epsilon, 'spent').max():.4f}" if private else "-"
        lost = f"{np.mean(best - auroc):.4f}" if private else "-"
        seconds_text = f"{np.median(seconds):.3f}"
        print(f"{name:<12} {spent:>8}   {interval(auroc)} {lost:>8}   {interval(accuracy)} {seconds_text:>8}")


def interval(values: NDArray[np.float64]) -> str:
    """Mean and standard deviation in plain ASCII, which every terminal can show."""
    return f"{values.mean():.4f} +/- {values.std(ddof=1):.4f}"


def print_notes(results: Results) -> None:
    """Say how to read the table, and what it would cost to publish it."""
    n_repeats, first = len(results.scores[math.inf]), results.first_fit_seconds
    epsilons = [epsilon for epsilon in results.scores if math.isfinite(epsilon)]
    print(f"\nMean +/- standard deviation over {n_repeats} random splits, each with fresh noise; the non-private line")
    print("shows how much of it is the split. lost: AUROC below non-private on the same splits. seconds: median of")
    print(f"a fit on one thread, without the first of the process ({first:.2f} s: it loads or compiles the kernels).")
    print("\nThe held-out fifth that scores the table is taken as public: its scores are exact and unpaid,")
    print("as are the counts above.")
    if len(epsilons) > 1:
        joint, total = results.joint_epsilon, sum(epsilons)
        print(f"Each line is priced as the only release. The {len(epsilons)} private models of one split together cost")
        print(f"epsilon {joint:.2f} (composed jointly by the accountant; their plain sum is {total:g}).")


# %%
# The picture
# -----------


def draw(people: People, results: Results, delta: float, output: Path) -> None:
    """Draw AUROC and accuracy against epsilon, with repeats as error bars."""
    import matplotlib

    matplotlib.use("Agg")  # Only a file is written: no display is needed.
    import matplotlib.pyplot as plt

    n_repeats = len(results.scores[math.inf])
    figure, panels = plt.subplots(1, 2, figsize=(10, 5), dpi=150, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
    for panel, name, label in zip(panels, ("auroc", "accuracy"), ("AUROC", "Accuracy"), strict=True):
        draw_panel(panel, results, name)
        panel.set_ylabel(f"{label} on the held-out fifth")
    figure.suptitle(
        f"Who is not employed? (People outside the labour force are included)\n{people.source}\n"
        f"n = {len(people.y):,} people, delta = {delta:g}, unit of privacy: one person, not a household"
    )
    handles, labels = panels[0].get_legend_handles_labels()
    title = f"Mean and standard deviation (bars, band) over {n_repeats} random splits. The axes do not begin at 0."
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, title=title)
    figure.savefig(output)


def draw_panel(panel: Any, results: Results, name: str) -> None:
    """Draw one quantity: the private models as points, the non-private one as a line with a band."""
    epsilons = [epsilon for epsilon in results.scores if math.isfinite(epsilon)]
    values = [results.column(epsilon, name) for epsilon in epsilons]
    best = results.column(math.inf, name)
    mean, spread = best.mean(), best.std(ddof=1)
    # Blue and vermilion (Okabe and Ito) differ to colour-blind readers too, dashes and points in print.
    panel.axhspan(mean - spread, mean + spread, color="#D55E00", alpha=0.15, linewidth=0)
    panel.axhline(mean, color="#D55E00", linestyle="--", label="non-private (scikit-learn)")
    panel.errorbar(
        epsilons, [each.mean() for each in values], [each.std(ddof=1) for each in values],
        color="#0072B2", marker="o", capsize=4, label="private (DPLogisticRegression)",
    )  # fmt: skip
    panel.set_xscale("log")
    panel.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    panel.set_xticks([], minor=True)
    panel.set_xlabel("epsilon (log scale; left is more private)")
    panel.grid(alpha=0.3)
    # An axis that is stretched over a difference of .001 would make it look like a loss.
    low, high = panel.get_ylim()
    slack = max(0.0, 0.06 - (high - low)) / 2
    panel.set_ylim(low - slack, high + slack)


# %%
# All of it
# ---------


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="What privacy costs: who is not employed, from census people.")
    parser.add_argument("--data", type=Path, help="Census 2000 extract or ACS person file; default: made-up people")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS, help="budgets, default: 0.1 0.5 1 4 8")
    parser.add_argument("--delta", type=float, default=1e-5, help="default: 1e-5; well below 1 / number of people")
    parser.add_argument("--repeats", type=int, help="random splits, at least 2; default: 10")
    parser.add_argument("--output", type=Path, default=Path(PICTURE), help=f"the picture; default: {PICTURE}")
    parser.add_argument("--quick", action="store_true", help=f"{N_PEOPLE_QUICK:,} people, {N_REPEATS_QUICK} repeats")
    options = parser.parse_args(arguments)
    if options.repeats is None:
        options.repeats = N_REPEATS_QUICK if options.quick else 10
    if options.repeats < 2:
        parser.error(f"--repeats {options.repeats}: give at least 2, error bars need them")
    if not all(0 < epsilon < math.inf for epsilon in options.epsilons):
        parser.error("--epsilons: give numbers above 0")
    if not 0 < options.delta < 1:
        parser.error(f"--delta {options.delta:g}: give a number between 0 and 1")
    return options


def run(options: argparse.Namespace) -> None:
    """Load, measure, print and draw."""
    check_output(options.output)
    people = load_people(options.data, options.quick)
    print_people(people, options.delta)
    results = measure(people, sorted(set(options.epsilons)), options.delta, options.repeats)
    print_table(results)
    print_notes(results)
    try:
        draw(people, results, options.delta, options.output)
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
        sys.exit(f"plot_census_pums.py: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
