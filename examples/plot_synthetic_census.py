"""
A private table in, a synthetic one out: census people who do not exist
=======================================================================

A private table goes in, and a table of people who do not exist comes out, with the columns, types and marginals of the
first. A classifier that learns from them is tested on real people who took no part. If the variable ``SKDP_DATA`` names
a folder with ``pums_fulton_ga.csv.gz`` the people are those of Fulton County, Georgia, else they are made up. Both are
public, so the example may compare.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp import DPMarginalSynthesizer, DPTableVectorizer, PrivacyLeakWarning, tabular_pipeline
from skdp.datasets import load_pums, make_census
from skdp.synthesis.metrics import marginal_error, membership_check, train_on_synthetic_test_on_real

folder = os.environ.get("SKDP_DATA")
given = {"as_frame": True}
people = load_pums(f"{folder}/pums_fulton_ga.csv.gz", **given) if folder else make_census(12_000, **given)
X, X_test, y, y_test = train_test_split(people.data, people.target, test_size=0.3, random_state=0)

# %%
# The generator
# -------------
# The schema is that of the code book: no row was looked at for it. One fit, one price. Afterwards rows cost nothing,
# however many are drawn; the seed of a sample is harmless.

model = DPMarginalSynthesizer(people.schema, classes=[0, 1], epsilon=1.0, delta=1e-5).fit(X, y)
made, made_y = model.sample(len(X), random_state=0)
print(f"Price: epsilon {model.epsilon_:.3f} at delta {model.delta_:g}, for one row.")
print(made.head(5).to_string(index=False))

# %%
# How good is it?
# ---------------
# All that follows reads real people without paying, for the eyes of whoever may see them; skdp warns of it, and we say
# it here. The advantage tells training rows from held-out ones by their distance to synthetic people: 0 is not at all,
# but the guarantee is epsilon, and not this.

warnings.simplefilter("ignore", PrivacyLeakWarning)
bins = [[*range(20, 90, 5)] if name == "age" else None for name in X.columns]
for name, other in {"synthetic people": made, "other real people": X_test}.items():
    errors = [marginal_error(X, other, k, bins=bins) for k in (1, 2, 3)]
    print(f"{name}: total variation of 1, 2 and 3-way marginals " + ", ".join(f"{each:.3f}" for each in errors))
judge = make_pipeline(DPTableVectorizer(people.schema), LogisticRegression(max_iter=300, C=0.3))
sources = {"real people, no privacy": (X, y), "synthetic people": (made, made_y)}
scores = {name: train_on_synthetic_test_on_real(judge, each, (X_test, y_test)) for name, each in sources.items()}
direct = tabular_pipeline(classes=[0, 1], schema=people.schema, epsilon=1.0, delta=1e-5).fit(X, y)
scores["a private model, directly"] = roc_auc_score(y_test, direct.decision_function(X_test))
print("AUROC, learned from " + ", ".join(f"{name}: {score:.3f}" for name, score in scores.items()))
print(f"advantage {membership_check(X, X_test, made, bins=bins).advantage:.3f}")

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
