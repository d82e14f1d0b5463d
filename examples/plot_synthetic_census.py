"""
A private table in, a synthetic one out: census people who do not exist
=======================================================================

A private table goes in, and a table of people who do not exist comes out, with the columns, types and marginals of the
first. A classifier that learns from them is tested on real people who took no part.

Run it alone::

    python examples/plot_synthetic_census.py                    # made-up people
    SKDP_DATA=FOLDER python examples/plot_synthetic_census.py   # acsincome_2018_colorado.csv.gz in FOLDER

The file holds Colorado's workers of ACS 2018 and their income. It is public, as made-up people are, so the example may
compare.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdp import DPMarginalSynthesizer, DPTableVectorizer, PrivacyLeakWarning, TableSchema, tabular_pipeline
from skdp.datasets import make_census
from skdp.synthesis.metrics import marginal_error, membership_check, train_on_synthetic_test_on_real


def read_options():
    """Options of the command line; a notebook has none, and takes the quick size."""
    parser = argparse.ArgumentParser(description="Synthetic census people.")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDP_DATA"), help="folder of the file")
    parser.add_argument("--epsilon", type=float, default=1.0, help="budget of a fit")
    parser.add_argument("--output", type=Path, default=Path("synthetic_census.png"), help="the picture")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    return parser.parse_args(None if "__file__" in globals() else ["--quick"])


options = read_options()
if options.output.suffix not in (".png", ".pdf", ".svg") or not options.output.parent.is_dir():
    sys.exit(f"plot_synthetic_census.py: --output {options.output}: give a .png, .pdf or .svg in a folder that exists")
FILE = "acsincome_2018_colorado.csv.gz"
if options.data and not (options.data / FILE).is_file():
    sys.exit(f"plot_synthetic_census.py: --data {options.data}: give a folder with {FILE}, or nothing")
try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit('plot_synthetic_census.py needs matplotlib; run `pip install "skdp[plot]"`')

# %%
# The people, and what is public of them
# --------------------------------------
# The schema is written from the code book of the survey: bounds, codes, and edges where people think of classes. No row
# was looked at for it.

if options.data:
    source, label = "Colorado's workers, ACS 2018", "PINCP"
    people = pd.read_csv(options.data / FILE)
    schema = TableSchema({
        "AGEP": {"edges": [16, *range(20, 90, 5), 100]},
        "COW": list(range(1, 10)),
        "SCHL": list(range(1, 25)),
        "MAR": list(range(1, 6)),
        "OCCP": {"edges": [0, 440, 800, 1000, 1300, 1600, 2000, 2100, 2200, 2600, 3000, 3600, 3700, 4000, 4200, 4300,
                           4700, 5000, 6005, 6200, 6800, 7000, 7700, 9000, 9999]},
        "POBP": {"edges": [0, 8, 9, 60, 200, 300, 400, 999]},
        "RELP": list(range(18)),
        "WKHP": {"edges": [0, 10, 20, 30, 35, 40, 41, 45, 50, 60, 99]},
        "SEX": [1, 2],
        "RAC1P": list(range(1, 10)),
    })  # fmt: skip
    shown, question = ["AGEP", "SCHL", "WKHP", "MAR"], "income above 50,000 dollars"
else:
    source, label = "made-up people (make_census)", "employed"
    bunch = make_census(12_000, random_state=0, as_frame=True)
    people = bunch.data.assign(employed=bunch.target)
    low, high = bunch.bounds["age"]
    ages = {"edges": [low, *range(int(low) + 5, int(high) - 4, 5), high]}
    schema = TableSchema({name: ages if name == "age" else [0, 1] for name in bunch.feature_names})
    shown, question = ["age", "married", "sex", "collegedegree"], "employed"

order = np.random.RandomState(0).permutation(len(people))
order = order[:4_000] if options.quick else order
cut = int(0.7 * len(order))
train, test = (people.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))
X, y = train.drop(columns=label), train[label].to_numpy()
X_test, y_test = test.drop(columns=label), test[label].to_numpy()

# %%
# The generator
# -------------
# One fit, one price. Afterwards rows cost nothing, however many are drawn; the seed of a sample is harmless.

model = DPMarginalSynthesizer(schema, classes=[0, 1], epsilon=options.epsilon, delta=1e-5).fit(X, y)
made, made_y = model.sample(len(X), random_state=0)
assert (made.dtypes == X.dtypes).all()

# %%
# How good is it?
# ---------------
# All that follows reads real people without paying, for the eyes of whoever may see them; skdp warns of it, and we say
# it here.

warnings.simplefilter("ignore", PrivacyLeakWarning)
bins = [list(column.edges[1:-1]) if column.edges else None for _, column in schema.items()]
both = [each.assign(label=labels) for each, labels in ((X, y), (made, made_y), (X_test, y_test))]
errors = [
    [marginal_error(both[0], other, k, bins=[*bins, None], max_sets=200) for k in (1, 2, 3)] for other in both[1:]
]
check = membership_check(X, X_test, made, bins=bins)

judge = make_pipeline(DPTableVectorizer(schema), LogisticRegression(max_iter=300, C=0.3))
on_synthetic = train_on_synthetic_test_on_real(judge, (made, made_y), (X_test, y_test))
on_real = train_on_synthetic_test_on_real(judge, (X, y), (X_test, y_test))
direct = tabular_pipeline(classes=[0, 1], schema=schema, epsilon=options.epsilon, delta=1e-5).fit(X, y)
directly = roc_auc_score(y_test, direct.decision_function(X_test))

# %%
# The table
# ---------

print(f"""{source}: {len(X):,} people in, {len(made):,} out; {len(model.pairs_)} pairs of columns measured{
    ", within each class too" if model.has_triples_ else ""
}.
Price: epsilon {model.epsilon_:.3f} at delta {model.delta_:g}, for one row.

total variation of marginals        1-way   2-way   3-way
synthetic against private people   {errors[0][0]:6.3f}  {errors[0][1]:6.3f}  {errors[0][2]:6.3f}
other real people against them     {errors[1][0]:6.3f}  {errors[1][1]:6.3f}  {errors[1][2]:6.3f}

AUROC on real people: {question}
logistic regression, trained on real people (no privacy)   {on_real:.3f}
logistic regression, trained on synthetic people           {on_synthetic:.3f}
private model, trained directly at the same epsilon        {directly:.3f}

Distances to synthetic people tell training rows from held-out ones with advantage {check.advantage:.3f}
(0: not at all; the guarantee is epsilon, and not this).
""")
print(made.head(5).to_string(index=False))

# %%
# The picture
# -----------
# Marginals of four columns, and how often pairs of levels occur: each dot is a cell of a pair of columns.

figure, axes = plt.subplots(1, 5, figsize=(16, 3.6), layout="constrained")
for ax, name in zip(axes, shown, strict=False):
    edges = bins[list(X.columns).index(name)]
    levels = [np.digitize(each[name], edges) if edges else each[name] for each in (X, made)]
    values = np.unique(np.concatenate(levels))
    for shift, level, colour, title in ((-0.2, levels[0], "tab:gray", "private"), (0.2, levels[1], "tab:blue", "made")):
        share = [(np.asarray(level) == value).mean() for value in values]
        ax.bar(values + shift, share, 0.4, color=colour, label=title)
    ax.set_title(f"{name}{' (bins)' if edges else ''}", fontsize="medium")
    ax.set_ylabel("share of people")
axes[0].legend()
cells = []
for i, first in enumerate(X.columns):
    for j, second in enumerate(X.columns[:i]):
        tables = [
            pd.crosstab(
                np.digitize(each[first], bins[i]) if bins[i] else each[first],
                np.digitize(each[second], bins[j]) if bins[j] else each[second],
                normalize=True,
            ).stack()
            for each in (X, made)
        ]
        cells.append(pd.concat(tables, axis=1).fillna(0.0).to_numpy())
points = np.maximum(np.concatenate(cells), 0.5 / len(X))  # an empty cell stands at half a person
axes[4].loglog([points.min(), 1], [points.min(), 1], color="black", linewidth=0.8)
axes[4].loglog(points[:, 0], points[:, 1], ".", markersize=2, color="tab:blue")
axes[4].set(xlabel="share among private people", ylabel="among synthetic people")
axes[4].set_title("cells of all pairs of columns", fontsize="medium")
figure.suptitle(f"{source}, n = {len(X):,}, epsilon = {options.epsilon:g}: one row is one person", fontsize="medium")
figure.savefig(options.output, dpi=130)
print(f"\nPicture: {options.output}")
