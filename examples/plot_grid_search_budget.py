"""
What a grid search costs: forty candidates at a total epsilon of 1
==================================================================

A plain grid search fits forty candidates on several folds, prints the epsilon of the last fit alone, and scores on
private rows for nothing. :class:`skdp.DPGridSearchCV` pays for trials, choice and final fit out of one budget.
The picture shows what both cost and what they bring, beside the model that nobody tuned. If the variable ``SKDP_DATA``
names a folder with ``pums_fulton_ga.csv.gz`` the people are those of Fulton County, Georgia, else they are made up.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, train_test_split

from skdp import DPGridSearchCV, DPLogisticRegression, PrivacyAccountant, PrivacyLeakWarning, accounting, datasets

# %%
# The people
# ----------
# Columns are scaled by the public bounds of the code book, which costs nothing. The held-out fifth is taken as public.

folder = os.environ.get("SKDP_DATA")
people = datasets.load_pums(f"{folder}/pums_fulton_ga.csv.gz") if folder else datasets.make_census(4000, random_state=0)
low, high = np.array([people.bounds[name] for name in people.feature_names]).T
X, X_test, y, y_test = train_test_split((people.data - low) / (high - low), people.target, test_size=0.2)

# %%
# Ways to a model
# ---------------
# All fits of a search share an accountant, which prices them together. Folds are plain ones: stratified folds move
# other people when one label changes. The exact scores by which the plain search chooses are not in any of its
# prices, nor could they be: skdp warns of it, and we say so here.

GRID = {"max_grad_norm": [0.1, 0.2, 0.4, 0.7, 1.4], "max_iter": [25, 50, 100, 200], "alpha": [0.0, 1e-3]}
budget, ledgers = {"epsilon": 1.0, "delta": 1e-5}, [PrivacyAccountant() for _ in range(4)]
models = [DPLogisticRegression(**budget, classes=[0, 1], accountant=ledger) for ledger in ledgers]
ways = {
    "GridSearchCV": GridSearchCV(models[0], GRID, cv=KFold(3, shuffle=True), scoring="roc_auc"),
    "DPGridSearchCV": DPGridSearchCV(models[1], GRID, scoring="neg_log_loss", **budget),
    "DPGridSearchCV, compose": DPGridSearchCV(models[2], GRID, strategy="compose", scoring="neg_log_loss", **budget),
    "default, untuned": models[3],
}
warnings.simplefilter("ignore", PrivacyLeakWarning)
aurocs = [roc_auc_score(y_test, model.fit(X, y).decision_function(X_test)) for model in ways.values()]
costs = [ledger.get_epsilon(1e-5) for ledger in ledgers]
plain = roc_auc_score(y_test, LogisticRegression().fit(X, y).decision_function(X_test))

# %%
# What it says, and what it costs
# -------------------------------
# A person is in two of three folds: the fits of these alone are the least that the plain search costs that person.

says, (*folds, last) = ways["GridSearchCV"].best_estimator_.epsilon_, [charge.event for charge in ledgers[0].history]
least = accounting.get_epsilon(accounting.compose([*(event for k, event in enumerate(folds) if k % 3), last]), 1e-5)
print(f"GridSearchCV fits {len(folds) + 1} times and says that epsilon is {says:.3f}.")
print(f"All fits together cost {costs[0]:.1f}, and {least:.1f} at the least.")
for name, cost, auroc in zip(ways, costs, aurocs, strict=True):
    print(f"{name:<24} costs {cost:.3f}, AUROC {auroc:.4f} (not private: {plain:.4f})")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", sharey=True)
left.bar_label(left.barh(list(ways), costs, color=["C3", "C0", "C0", "C0"]), fmt="%.3g", padding=3)
left.set(xlabel="epsilon of everything that was done", xlim=(0, 1.15 * max(costs)))
left.invert_yaxis()
right.plot(aurocs, list(ways), "o")
right.axvline(plain, color="0.5", linestyle="--")
right.set_xlabel("AUROC on the held-out fifth; dashed: not private")
plt.show()
