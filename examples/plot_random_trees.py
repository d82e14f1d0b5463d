"""
Private random trees and feature interactions
=============================================

Boosted trees outperform linear models on most tables because features interact. Private trees that search the data for
their splits need part of the budget for each split. ``PublicTreesEmbedding`` draws its trees from public bounds, at no
privacy cost. ``DPRandomTreesClassifier`` adapts them to privately estimated marginal distributions, with 3% of its
budget, and fits a linear model on the leaves. If the environment variable ``SKDP_DATA`` is a folder with
``pums_fulton_ga.csv.gz``, the example uses these census records, otherwise simulated ones.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPLogisticRegression, tabular_pipeline
from skdp.datasets import load_pums, make_census
from skdp.ensemble import DPRandomTreesClassifier, PublicTreesEmbedding
from skdp.plotting import PrivacyUtilityDisplay
from skdp.preprocessing import TableSchema

# %%
# Data-independent trees
# ----------------------
# Each node selects a random feature and splits its remaining range at a random threshold. Only the public range is
# needed. This example draws trees of two features and shows their leaves on a grid.

ages, years = np.meshgrid(np.linspace(18, 93, 301), range(1, 17))
grid = np.column_stack([ages.ravel(), years.ravel()])
schema = TableSchema({"x0": (18, 93), "x1": {"kind": "ordinal", "categories": range(1, 17)}})
trees = PublicTreesEmbedding(3, max_depth=4, schema=schema, random_state=4).fit(grid)
print(f"Data-independent trees: epsilon {trees.epsilon_:g}")

figure, panels = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for panel, leaves in zip(panels, trees.apply(grid).T, strict=True):
    panel.pcolormesh(ages, years, leaves.reshape(ages.shape), cmap="tab20c", rasterized=True)
    panel.set(xlabel="age", ylabel="education")
    panel.label_outer()
figure.suptitle("Leaves of three data-independent trees")
plt.show()

# %%
# Accuracy
# --------
# The target is whether a person is married. Both models use the same features, bins and budget; each fit draws fresh,
# secret noise. The target depends on interactions of features, so trees are more accurate unless the budget is small.
# :doc:`/choosing_an_estimator` compares both models on other tables.

folder, options = os.environ.get("SKDP_DATA"), {"target": "married", "features": "all", "as_frame": True}
census = load_pums(f"{folder}/pums_fulton_ga.csv.gz", **options) if folder else make_census(25_000, **options)
table = census.data.drop(columns="divorced", errors="ignore")  # almost determines the target
X, X_test, y, y_test = train_test_split(table, census.target, test_size=0.2)
schema = TableSchema({name: census.schema[name] for name in table.columns})
models, epsilons, scores = (
    (DPLogisticRegression(classes=[0, 1]), DPRandomTreesClassifier(classes=[0, 1])),
    (0.1, 0.5, 4),
    {},
)
for model in models:
    fits = [tabular_pipeline(model, schema=schema, epsilon=e, delta=1e-6).fit(X, y) for e in np.repeat(epsilons, 3)]
    found = [roc_auc_score(y_test, fit.decision_function(X_test)) for fit in fits]
    scores[type(model).__name__] = np.reshape(found, (-1, 3))
for name, found in scores.items():
    print(f"{name:<24} mean AUROC {found.mean(axis=1).round(3)} at epsilon {epsilons}")

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for color, (name, found) in zip(("C0", "C1"), scores.items(), strict=True):
    PrivacyUtilityDisplay.from_scores(epsilons, found, score_name="test AUROC", label=name, ax=ax, color=color)
ax.set_title(f"Who is married? {len(X):,} {'records of Fulton County' if folder else 'simulated records'}")

# %%
# Feature importances
# -------------------
# The importance of a feature is its fraction of the variance of the score, over public levels and leaves. It is
# computed from trees and coefficients that were released, so it has no additional privacy cost.

names, shares = fits[-1][:-1].get_feature_names_out(), fits[-1][-1].feature_importances_
print("Importances: " + ", ".join(f"{names[j]} {shares[j]:.0%}" for j in np.argsort(-shares)[:5]))
