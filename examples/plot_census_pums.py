"""
Accuracy and privacy on census records
======================================

A logistic regression predicts from census records who is not employed, without privacy (scikit-learn) and with
differential privacy at several budgets ``epsilon``. The table and the plot show the accuracy at each budget. The last
rows of the table show a model of random trees, and the cost of household-level privacy.

The script also runs alone::

    python examples/plot_census_pums.py                        # simulated records, no network access
    python examples/plot_census_pums.py --data pums_fulton_ga.csv.gz

``--data`` accepts a Census 2000 PUMS extract or an ACS person file, see :func:`skdp.datasets.load_pums`. Models are
fitted and scored with survey weights, which the simulated records and ACS files contain.
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
    parser = argparse.ArgumentParser(description="Accuracy and privacy on census records.")
    parser.add_argument("--data", help="Census 2000 extract or ACS person file; default: simulated records")
    parser.add_argument("--epsilons", type=float, nargs="+", default=(0.1, 0.5, 1, 4, 8), help="budgets of one fit")
    parser.add_argument("--output", help="file for the plot; default: show it")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# The data
# --------
# The smallest age in a file belongs to one person, so a private model must not use it. The bounds of the code book are
# public, and scaling by them has no privacy cost. If the data identify households, a household is entirely in the
# training set or in the test set. A Census 2000 extract does not identify them.

options, data = read_options(), skdp.datasets
census = data.load_pums(options.data) if options.data else data.make_census(30_000, households=True, random_state=0)
low, high = np.array([census.bounds[name] for name in census.feature_names], dtype=np.float32).T
X, y = (census.data - low) / (high - low), 1 - census.target
weights = np.ones(len(y)) if census.sample_weight is None else census.sample_weight
homes = np.arange(len(y)) if census.groups is None else census.groups
train, test = next(GroupShuffleSplit(1, test_size=0.2, random_state=0).split(X, groups=homes))
source = f"{options.data or 'simulated records'}, n = {len(train):,}"

# %%
# The models
# ----------
# Survey weights are clipped to a public bound and divided by it, so no record has a weight larger than 1. For the
# simulated survey the bound is part of its description; 500 exceeds most weights of a PUMS file. Random trees model
# interactions between features. With ``groups``, the household of each record, the guarantee covers all records of a
# household. One accountant composes all person-level fits. It rejects household-level fits, because their privacy unit
# differs.

bound = 1.0 if census.sample_weight is None else 500.0 if options.data else census.sample_weight_bounds[1]
weighted, accountant = {"sample_weight": weights[train]}, skdp.PrivacyAccountant()
public = {"delta": 1e-5, "classes": [0, 1], "weight_bound": bound, "accountant": accountant}
models = {f"{e:g}": (skdp.DPLogisticRegression(epsilon=e, **public), weighted) for e in sorted(options.epsilons)}
models["1, trees"] = skdp.DPRandomTreesClassifier(bounds=(0, 1), **public), weighted
if census.groups is not None:
    models["1, households"] = skdp.DPLogisticRegression(**public | {"accountant": None}), {"groups": homes[train]}

# %%
# The table
# ---------
# Each fit draws fresh, secret noise; the table shows the mean and standard deviation of five fits. "lost" is the
# difference to the AUROC of the non-private model. Each row gives the privacy cost of a single fit at delta 1e-5; the
# cost of all fits together is below the table. The test set is assumed to be public. "Not employed" includes records
# outside the labor force, such as retired people and students.

auroc, held_out = get_scorer("roc_auc"), {"X": X[test], "y_true": y[test], "sample_weight": weights[test]}
best, scores = auroc(LogisticRegression().fit(X[train], y[train], **weighted), **held_out), {}
print(f"Who is not employed? {source}\n{'epsilon':<16} {'spent':>8} {'AUROC':>19} {'lost':>8}\nno privacy {best:21.4f}")
for name, (model, given) in models.items():
    scores[name] = found = np.array([auroc(model.fit(X[train], y[train], **given), **held_out) for _ in range(5)])
    print(f"{name:<16} {model.epsilon_:8.4f} {found.mean():.4f} +/- {found.std():.4f} {best - found.mean():8.4f}")
composed = accountant.get_epsilon(1e-5) + 0.005
note = f"All {len(accountant.history)} person-level fits: epsilon {composed:.2f} under composition"
print(f"{note}.\nThe privacy unit is one person (one row), except in the row 'households'.")

# %%
# The plot
# --------

line = list(scores.values())[: len(options.epsilons)]
ax = skdp.plotting.PrivacyUtilityDisplay.from_scores(sorted(options.epsilons), line, baseline_score=best, note=note).ax_
ax.set(title=f"Who is not employed? Logistic regression\n{source}; privacy unit: one person", ylabel="AUROC")
ax.figure.savefig(options.output, dpi=150) if options.output else plt.show()
