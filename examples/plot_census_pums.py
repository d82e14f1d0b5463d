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
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupShuffleSplit

import skdp


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

options, data = read_options(), skdp.datasets
people = data.load_pums(options.data) if options.data else data.make_census(30_000, households=True, random_state=0)
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
# The bound is public: the simulated survey states it, and for a PUMS file 500 is above most weights. Trees learn
# interactions between columns: they are drawn from the bounds and a public seed, at next to no privacy cost. With
# ``groups``, the household of each record, the guarantee is for all records of a household. One accountant composes all
# person-level fits; it rejects household-level fits, whose privacy unit is another one.

bound = 1.0 if people.sample_weight is None else 500.0 if options.data else people.sample_weight_bounds[1]
weighted, ledger = {"sample_weight": weights[train]}, skdp.PrivacyAccountant()
public = {"delta": 1e-5, "classes": [0, 1], "weight_bound": bound, "accountant": ledger}
models = {f"{e:g}": (skdp.DPLogisticRegression(epsilon=e, **public), weighted) for e in sorted(options.epsilons)}
models["1, trees"] = skdp.DPRandomTreesClassifier(bounds=(0, 1), **public), weighted
if people.groups is not None:
    models["1, per household"] = skdp.DPLogisticRegression(**public | {"accountant": None}), {"groups": homes[train]}

# %%
# The table
# ---------
# Every fit has fresh, secret noise, and the table has mean and standard deviation of five; "lost" is AUROC below that
# of the plain model, which reads the people without paying and protects nobody. Each line is priced as the only
# release, at delta 1e-05; the price of all together is rounded up. The held-out fifth is taken as public. People
# outside the labor force are among those who are not employed: the retired, students, people at home.

auroc, held_out = get_scorer("roc_auc"), {"X": X[test], "y_true": y[test], "sample_weight": weights[test]}
best, scores = auroc(LogisticRegression().fit(X[train], y[train], **weighted), **held_out), {}
print(f"Who is not employed? {source}\n{'epsilon':<16} {'spent':>8} {'AUROC':>19} {'lost':>8}\nplain {best:26.4f}")
for name, (model, given) in models.items():
    scores[name] = found = np.array([auroc(model.fit(X[train], y[train], **given), **held_out) for _ in range(5)])
    print(f"{name:<16} {model.epsilon_:8.4f} {found.mean():.4f} +/- {found.std():.4f} {best - found.mean():8.4f}")
note = f"All {len(ledger.history)} fits for people cost epsilon {ledger.get_epsilon(1e-5) + 0.005:.2f} together"
print(f"{note}.\nThe unit of privacy is one person (one row), not a household, but in the line that says so.")

# %%
# The picture
# -----------

line = list(scores.values())[: len(options.epsilons)]
ax = skdp.plotting.PrivacyUtilityDisplay.from_scores(sorted(options.epsilons), line, baseline_score=best, note=note).ax_
ax.set(title=f"Who is not employed? Logistic regression\n{source}; one row is one person", ylabel="AUROC")
ax.figure.savefig(options.output, dpi=150) if options.output else plt.show()
