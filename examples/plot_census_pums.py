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

import matplotlib.pyplot as plt
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


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="What privacy costs: who is not employed, from census people.")
    parser.add_argument("--data", help="Census 2000 extract or ACS person file; default: made-up people")
    parser.add_argument("--epsilons", type=float, nargs="+", default=(0.1, 0.5, 1, 4, 8), help="budgets of one fit")
    parser.add_argument("--output", help="a file for the picture; default: it is shown")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# The people
# ----------
# The smallest age in a file is somebody's age, so a private model may not look for it. The bounds of the code book are
# public, and scaling by them costs nothing. A household is on one side of the split, if the people say who lives with
# whom: a Census 2000 extract does not.

options = read_options()
people = load_pums(options.data) if options.data else make_census(30_000, households=True, random_state=0)
low, high = np.array([people.bounds[name] for name in people.feature_names], dtype=np.float32).T
X, y = (people.data - low) / (high - low), 1 - people.target
weights = np.ones(len(y)) if people.sample_weight is None else people.sample_weight
homes = np.arange(len(y)) if people.groups is None else people.groups
train, test = next(GroupShuffleSplit(1, test_size=0.2, random_state=0).split(X, groups=homes))
source = f"{options.data or 'made-up people'}, n = {len(train):,}"

# %%
# The models
# ----------
# Weights are divided by a bound and cut at it, so that nobody counts for more than one person of the largest weight.
# The survey of made-up people gives the bound to everybody; that of a file, 9,999, is far above nearly all weights, and
# a smaller one is bought in each fit. Trees see that columns interact: they are drawn from the bounds and a public seed
# and cost next to nothing. People of a household tell of each other: with their labels as ``groups`` the promise is for
# all rows of a household. No bound on weights is bought for groups, so they do without weights there.

bound = 1.0 if people.sample_weight is None else "private" if options.data else people.sample_weight_bounds[1]
model = DPLogisticRegression(epsilon=1.0, delta=1e-5, classes=[0, 1], weight_bound=bound)
weighted, homely = {"sample_weight": weights[train]}, {"groups": homes[train]}
models = {f"{epsilon:g}": (clone(model).set_params(epsilon=epsilon), weighted) for epsilon in sorted(options.epsilons)}
models["1, trees"] = DPRandomTreesClassifier(bounds=(0, 1), delta=1e-5, classes=[0, 1], weight_bound=bound), weighted
if people.groups is not None:
    models["1, per household"] = model, homely if bound == "private" else homely | weighted

# %%
# The table
# ---------
# Every fit has fresh, secret noise. The baseline reads the people without paying, and protects nobody.


def score(fitted):
    """Score a model on the held-out fifth, which is taken as public, by AUROC."""
    return roc_auc_score(y[test], fitted.decision_function(X[test]), sample_weight=weights[test])


best, scores, events = score(LogisticRegression().fit(X[train], y[train], **weighted)), {}, []
print(f"Who is not employed? {source}\n\n{'epsilon':<16} {'spent':>8} {'AUROC':>19} {'lost':>8}")
print(f"{'non-private':<16} {'-':>8} {best:.4f}")
for name, (private, given) in models.items():
    fits = [clone(private).fit(X[train], y[train], **given) for _ in range(5)]
    scores[name], auroc = [score(fitted) for fitted in fits], np.array([score(fitted) for fitted in fits])
    events += [fitted.privacy_event_ for fitted in fits if "groups" not in given]
    print(f"{name:<16} {fits[0].epsilon_:8.4f} {auroc.mean():.4f} +/- {auroc.std():.4f} {best - auroc.mean():8.4f}")
paid = get_epsilon(compose(events), 1e-5) + 0.005  # rounded up
print(f"""
Mean +/- standard deviation of 5 fits to the same rows. lost: AUROC below non-private. Each private line is priced as
the only release, at delta 1e-05. All {len(events)} fits for people together cost epsilon {paid:.2f}, composed jointly.
The unit of privacy is one person (one row), not a household, but in the line that says so. 'not employed' includes
people outside the labour force: the retired, students, people at home.""")

# %%
# The picture
# -----------

epsilons = sorted(options.epsilons)
display = PrivacyUtilityDisplay.from_scores(
    epsilons, [scores[f"{epsilon:g}"] for epsilon in epsilons], baseline_score=best, score_name="AUROC",
    model_name="DPLogisticRegression", baseline_name="LogisticRegression, not private",
    note=f"5 fits at each epsilon; all fits of the table together cost epsilon {paid:.2f} at delta 1e-05",
)  # fmt: skip
display.ax_.set_title(f"Who is not employed?\n{source}; one row is one person", fontsize="medium")
display.figure_.savefig(options.output, dpi=150) if options.output else plt.show()
