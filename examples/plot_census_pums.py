"""
What privacy costs: who is not employed, from census people
===========================================================

A logistic regression learns from census records who is not employed, without privacy (scikit-learn) and with
differential privacy at several budgets ``epsilon``. The table and the picture show what each budget costs in quality;
the last lines of the table, what random trees add, and what it costs to protect whole households.

Run it alone::

    python examples/plot_census_pums.py                        # made-up people, no network
    python examples/plot_census_pums.py --data pums_fulton_ga.csv.gz

``--data`` takes a Census 2000 PUMS extract or an ACS person file, as :func:`skdp.datasets.load_pums` does. Models are
fitted and scored with person weights, which made-up people and ACS files have: they speak for the population.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit

from skdp import DPLogisticRegression
from skdp.accounting import compose, get_epsilon
from skdp.datasets import load_pums, make_census
from skdp.ensemble import DPRandomTreesClassifier
from skdp.plotting import PrivacyUtilityDisplay

FEATURES = (
    "sex", "married", "black", "asian", "collegedegree", "militaryservice", "uscitizen", "disability",
    "englishability", "blackfemale", "age",
)  # fmt: skip


def read_options():
    """Options of the command line; a notebook has none, and takes the quick size."""
    parser = argparse.ArgumentParser(description="What privacy costs: who is not employed, from census people.")
    parser.add_argument("--data", type=Path, help="Census 2000 extract or ACS person file; default: made-up people")
    parser.add_argument("--epsilons", type=float, nargs="+", default=(0.1, 0.5, 1, 4, 8), help="budgets of one fit")
    parser.add_argument("--output", type=Path, default=Path("census_privacy_utility.png"), help="the picture")
    parser.add_argument("--quick", action="store_true", help="fewer people and fits")
    return parser.parse_args(None if "__file__" in globals() else ["--quick"])


options = read_options()
if options.output.suffix not in (".png", ".pdf", ".svg") or not options.output.parent.is_dir():
    sys.exit(f"--output {options.output}: give a .png, .pdf or .svg in a folder that exists")

# %%
# The people
# ----------
# The smallest age in a file is somebody's age, so a private model may not look for it. The bounds of the code book are
# public, and scaling by them costs nothing. A household is on one side of the split, if the people say who lives with
# whom: a Census 2000 extract does not.

try:
    load = load_pums if options.data else partial(make_census, households=True, random_state=0)
    people = load(options.data or 30_000, features=FEATURES)
except (OSError, ValueError, ImportError) as error:
    sys.exit(f"--data {options.data}: {' '.join(str(error).split())}")
low, high = np.array([people.bounds[name] for name in people.feature_names], dtype=np.float32).T
X, y = (people.data - low) / (high - low), 1 - people.target
homes = np.arange(len(y)) if people.groups is None else people.groups
part = min(1.0, 6_000 / len(y)) if options.quick else 1.0
weights = np.ones(len(y)) if people.sample_weight is None else people.sample_weight
split = GroupShuffleSplit(1, train_size=0.8 * part, test_size=0.2 * part, random_state=0)
train, test = next(split.split(X, groups=homes))
n, homes, X_test, y_test, weights_test = len(train) + len(test), homes[train], X[test], y[test], weights[test]
X, y, weights = X[train], y[train], weights[train]

# %%
# The fits
# --------
# Every fit has fresh, secret noise. Weights are divided by a bound and cut at it, so that nobody counts for more than
# one person of the largest weight. The survey of made-up people gives the bound to everybody; that of a file, 9,999, is
# far above nearly all weights, and a smaller one is bought in each fit. The baseline reads the people without paying.

bound = 1.0
if people.sample_weight is not None:
    bound = "private" if options.data else people.sample_weight_bounds[1]
model = DPLogisticRegression(delta=1e-5, classes=[0, 1], weight_bound=bound)
epsilons, n_repeats = sorted(options.epsilons), 3 if options.quick else 5


def fit(private, epsilon, groups=None):
    """Fit a copy of a private model. No bound on weights is bought for groups, so they do without weights there."""
    given = {} if groups is None else {"groups": groups}
    if groups is None or bound != "private":
        given["sample_weight"] = weights
    return clone(private).set_params(epsilon=epsilon).fit(X, y, **given)


def score(fitted):
    """Score a model on the held-out fifth by AUROC."""
    return roc_auc_score(y_test, fitted.decision_function(X_test), sample_weight=weights_test)


models = [[fit(model, epsilon) for _ in range(n_repeats)] for epsilon in epsilons]
scores = np.array([[score(fitted) for fitted in each] for each in models])
paid = get_epsilon(compose(fitted.privacy_event_ for each in models for fitted in each), 1e-5) + 0.005  # rounded up
baseline = LogisticRegression().fit(X, y, sample_weight=weights)
display = PrivacyUtilityDisplay.from_scores(
    epsilons, scores, baseline_score=score(baseline), score_name="AUROC", model_name="DPLogisticRegression",
    baseline_name="LogisticRegression, not private",
    note=f"{n_repeats} fits at each epsilon; all of them together cost epsilon {paid:.2f} at delta 1e-05",
)  # fmt: skip
source = options.data.name if options.data else "made-up people (make_census)"
display.ax_.set_title(f"Who is not employed?\n{source}, n = {n:,}; one row is one person", fontsize="medium")
display.figure_.savefig(options.output, dpi=150)

# %%
# Trees
# -----
# A logistic regression cannot see that columns interact. Trees that are drawn from the bounds and a public seed cost
# nothing; a private logistic regression over their leaves has the whole budget.

forest = DPRandomTreesClassifier(bounds=(0, 1), delta=1e-5, classes=[0, 1], weight_bound=bound)
trees = [fit(forest, 1.0) for _ in range(3)]

# %%
# Households
# ----------
# People of a household tell of each other. With their labels as ``groups`` the promise is for all rows of a household.

households = [] if people.groups is None else [fit(model, 1.0, homes) for _ in range(3)]

# %%
# The table
# ---------
# The fitted models are paid for. To score them once more, by accuracy on the public fifth, costs nothing.


def show(name, spent, fitted, auroc):
    """Print a line: mean and standard deviation of the fits."""
    accuracy = [each.score(X_test, y_test, sample_weight=weights_test) for each in fitted]
    lost = score(baseline) - np.mean(auroc)
    cells = [f"{np.mean(each):.4f} +/- {np.std(each):.4f}" for each in (auroc, accuracy)]
    print(f"{name:<16} {spent:>8} {cells[0]:>19} {lost:8.4f} {cells[1]:>19}")


print(f"Who is not employed? {source}: {n:,} people.\n{people.DESCR.partition(' Columns: ')[0]}\n")
print(f"{'epsilon':<16} {'spent':>8} {'AUROC':>19} {'lost':>8} {'accuracy':>19}")
show("non-private", "-", [baseline], score(baseline))
for epsilon, each, auroc in zip(epsilons, models, scores, strict=True):
    show(f"{epsilon:g}", f"{max(fitted.epsilon_ for fitted in each):.4f}", each, auroc)
show("1, trees", f"{max(fitted.epsilon_ for fitted in trees):.4f}", trees, [score(fitted) for fitted in trees])
if households:
    spent = max(fitted.epsilon_ for fitted in households)
    show("1, per household", f"{spent:.4f}", households, [score(fitted) for fitted in households])
fits = [*trees, *(fitted for each in models for fitted in each)]
total = get_epsilon(compose(fitted.privacy_event_ for fitted in fits), 1e-5) + 0.005  # rounded up
plain_sum = n_repeats * sum(epsilons) + len(trees)
print(f"""
Mean +/- standard deviation of {n_repeats} fits (trees, households: 3) with fresh noise to the same rows. lost: AUROC
below non-private. Each private line is priced as the only release, at delta 1e-05. All {len(fits)} private fits for
people together cost epsilon {total:.2f} (composed jointly; their plain sum is {plain_sum:g}). The non-private line
has no price: it protects nobody.

In all this the unit of privacy is one person (one row), not a household, but in the line that says so. The
held-out fifth that scores the table is taken as public. 'not employed' includes people outside the labour force: the
retired, students, people at home.

Picture: {options.output}""")
