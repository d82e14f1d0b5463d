"""
The privacy cost of a grid search
=================================

A plain grid search fits 40 candidates on several folds, reports the epsilon of the last fit only, and selects by exact
scores of private rows. :class:`skdp.DPGridSearchCV` covers trials, selection and final fit by one budget. The plot
shows the privacy cost and AUROC of both, beside a model with default parameters. If the environment variable
``SKDP_DATA`` is a folder with ``pums_fulton_ga.csv.gz``, the example uses these census records, otherwise simulated
ones.
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
# The data
# --------
# Features are scaled by the public bounds of the code book, which has no privacy cost. The test set is assumed to be
# public.

folder = os.environ.get("SKDP_DATA")
census = datasets.load_pums(f"{folder}/pums_fulton_ga.csv.gz") if folder else datasets.make_census(4000, random_state=0)
low, high = np.array([census.bounds[name] for name in census.feature_names]).T
X, X_test, y, y_test = train_test_split((census.data - low) / (high - low), census.target, test_size=0.2)

# %%
# Searches
# --------
# All fits of a search share an accountant, which composes them. The folds are not stratified, because one label can
# change the assignment of other rows to stratified folds. The exact scores of the plain search are not accounted for.
# skdp warns about this, and the example ignores the warning.

GRID = {"max_grad_norm": [0.1, 0.2, 0.4, 0.7, 1.4], "max_iter": [25, 50, 100, 200], "alpha": [0.0, 1e-3]}
budget, accountants = {"epsilon": 1.0, "delta": 1e-5}, [PrivacyAccountant() for _ in range(4)]
models = [DPLogisticRegression(**budget, classes=[0, 1], accountant=accountant) for accountant in accountants]
searches = {
    "GridSearchCV": GridSearchCV(models[0], GRID, cv=KFold(3, shuffle=True), scoring="roc_auc"),
    "DPGridSearchCV": DPGridSearchCV(models[1], GRID, scoring="neg_log_loss", **budget),
    "DPGridSearchCV, compose": DPGridSearchCV(models[2], GRID, strategy="compose", scoring="neg_log_loss", **budget),
    "default, untuned": models[3],
}
warnings.simplefilter("ignore", PrivacyLeakWarning)
aurocs = [roc_auc_score(y_test, model.fit(X, y).decision_function(X_test)) for model in searches.values()]
costs = [accountant.get_epsilon(1e-5) for accountant in accountants]
plain = roc_auc_score(y_test, LogisticRegression().fit(X, y).decision_function(X_test))

# %%
# Reported and actual privacy cost
# --------------------------------
# Each record is in two of three folds. The fits that use a record are a lower bound of the cost for that record.

reported, (*folds, last) = (
    searches["GridSearchCV"].best_estimator_.epsilon_,
    [charge.event for charge in accountants[0].history],
)
least = accounting.get_epsilon(accounting.compose([*(event for k, event in enumerate(folds) if k % 3), last]), 1e-5)
print(f"GridSearchCV: {len(folds) + 1} fits, reported epsilon {reported:.3f}")
print(f"Actual epsilon under composition: {costs[0]:.1f}, at least {least:.1f} for each record")
for name, cost, auroc in zip(searches, costs, aurocs, strict=True):
    print(f"{name:<24} epsilon {cost:.3f}, AUROC {auroc:.4f} (not private: {plain:.4f})")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", sharey=True)
left.bar_label(left.barh(list(searches), costs, color=["C3", "C0", "C0", "C0"]), fmt="%.3g", padding=3)
left.set(xlabel="epsilon of all fits", xlim=(0, 1.15 * max(costs)))
left.invert_yaxis()
right.plot(aurocs, list(searches), "o")
right.axvline(plain, color="0.5", linestyle="--")
right.set_xlabel("test AUROC; dashed: not private")
plt.show()
