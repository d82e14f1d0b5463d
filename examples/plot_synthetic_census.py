"""
Synthetic census records
========================

The synthesizer is fitted to a private table and samples records with the same columns, types and, up to noise, the same
marginals. A classifier that is trained on synthetic records is tested on real ones. If the environment variable
``SKDP_DATA`` is a folder with ``pums_fulton_ga.csv.gz``, the example uses these census records, otherwise simulated
ones. Both are public, so the example can also show exact metrics.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp import DPMarginalSynthesizer, DPTableVectorizer, PrivacyAccountant, tabular_pipeline
from skdp.datasets import load_pums, make_census
from skdp.synthesis import evaluate_synthesis

folder = os.environ.get("SKDP_DATA")
given = {"as_frame": True}
census = load_pums(f"{folder}/pums_fulton_ga.csv.gz", **given) if folder else make_census(12_000, **given)
X, X_test, y, y_test = train_test_split(census.data, census.target, test_size=0.3, random_state=0)

# %%
# The synthesizer
# ---------------
# The schema comes from the public code book. The fit has epsilon 1. Sampling is post-processing and has no additional
# privacy cost, so a seed for the sample is harmless. The accountant reserves 0.1 for the evaluation.

accountant = PrivacyAccountant(epsilon=1.1, delta=1e-5)
model = DPMarginalSynthesizer(census.schema, classes=[0, 1], epsilon=1.0, delta=1e-6, accountant=accountant).fit(X, y)
synthetic, synthetic_y = model.sample(len(X), random_state=0)
print(f"Row-level guarantee: epsilon {model.epsilon_:.3f} at delta {model.delta_:g}.")
print(synthetic.head(5).to_string(index=False))

# %%
# Quality of the synthetic table
# ------------------------------
# :func:`skdp.synthesis.evaluate_synthesis` estimates the total variation distance of two-way marginals within the
# budget, so its metrics can be published. "By chance" is the distance of two tables from one distribution.

print(evaluate_synthesis(X, synthetic, model.schema_, epsilon=0.1, delta=1e-6, accountant=accountant))

# %%
# The following scores of real records are exact and not covered by the guarantee. Publish such scores of public data
# only.

classifier = make_pipeline(DPTableVectorizer(census.schema), LogisticRegression(max_iter=300, C=0.3))
sources = {"real records (no privacy)": (X, y), "synthetic records": (synthetic, synthetic_y)}
scores = {
    name: roc_auc_score(y_test, classifier.fit(*each).decision_function(X_test)) for name, each in sources.items()
}
direct = tabular_pipeline(classes=[0, 1], schema=census.schema, epsilon=1.0, delta=1e-5).fit(X, y)
scores["private model of real records"] = roc_auc_score(y_test, direct.decision_function(X_test))
print("Test AUROC by training data:", ", ".join(f"{name} {score:.3f}" for name, score in scores.items()))

# %%
# Marginals
# ---------

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(2, 3))
left.hist([X["age"], synthetic["age"]], bins=15, density=True, label=["private", "synthetic"], color=["0.5", "C0"])
left.set(xlabel="age", ylabel="density")
left.legend(frameon=False)
flags, places = [name for name in X.columns if name != "age"], np.arange(X.shape[1] - 1)
for shift, table, color in ((-0.2, X, "0.5"), (0.2, synthetic, "C0")):
    right.barh(places + shift, [table[name].mean() for name in flags], 0.4, color=color)
right.set(yticks=places, yticklabels=flags, xlabel="proportion")
plt.show()
