"""
A private table in, a synthetic one out: census people who do not exist
=======================================================================

A private table goes in, and a table of people who do not exist comes out, with the columns, types and marginals of the
first. A classifier that learns from them is tested on real people who took no part. If the variable ``SKDP_DATA`` names
a folder with ``pums_fulton_ga.csv.gz`` the people are those of Fulton County, Georgia, else they are simulated. Both
are public, so the example can also show exact figures of them.
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
people = load_pums(f"{folder}/pums_fulton_ga.csv.gz", **given) if folder else make_census(12_000, **given)
X, X_test, y, y_test = train_test_split(people.data, people.target, test_size=0.3, random_state=0)

# %%
# The generator
# -------------
# The schema is that of the code book: no row was looked at for it. The fit has epsilon 1. Afterwards rows can be drawn
# at no additional privacy cost, and the seed of a sample is harmless. The accountant keeps 0.1 for the evaluation.

accountant = PrivacyAccountant(epsilon=1.1, delta=1e-5)
model = DPMarginalSynthesizer(people.schema, classes=[0, 1], epsilon=1.0, delta=1e-6, accountant=accountant).fit(X, y)
made, made_y = model.sample(len(X), random_state=0)
print(f"Privacy cost: epsilon {model.epsilon_:.3f} at delta {model.delta_:g}, for one row.")
print(made.head(5).to_string(index=False))

# %%
# How good is it?
# ---------------
# :func:`skdp.synthesis.evaluate_synthesis` estimates the total variation distance of two-way marginals within the
# budget, so its figures can be published with the table. "By chance" is the distance of two tables of one distribution.

print(evaluate_synthesis(X, made, model.schema_, epsilon=0.1, delta=1e-6, accountant=accountant))

# %%
# The scores on real people are exact and are not covered by the guarantee: show such figures of public data only.

judge = make_pipeline(DPTableVectorizer(people.schema), LogisticRegression(max_iter=300, C=0.3))
sources = {"real people, no privacy": (X, y), "synthetic people": (made, made_y)}
scores = {name: roc_auc_score(y_test, judge.fit(*each).decision_function(X_test)) for name, each in sources.items()}
direct = tabular_pipeline(classes=[0, 1], schema=people.schema, epsilon=1.0, delta=1e-5).fit(X, y)
scores["a private model, directly"] = roc_auc_score(y_test, direct.decision_function(X_test))
print("AUROC, learned from " + ", ".join(f"{name}: {score:.3f}" for name, score in scores.items()))

# %%
# The picture
# -----------

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(2, 3))
left.hist([X["age"], made["age"]], bins=15, density=True, label=["private", "synthetic"], color=["0.5", "C0"])
left.set(xlabel="age", ylabel="density")
left.legend(frameon=False)
flags, places = [name for name in X.columns if name != "age"], np.arange(X.shape[1] - 1)
for shift, table, colour in ((-0.2, X, "0.5"), (0.2, made, "C0")):
    right.barh(places + shift, [table[name].mean() for name in flags], 0.4, color=colour)
right.set(yticks=places, yticklabels=flags, xlabel="share of people")
plt.show()
