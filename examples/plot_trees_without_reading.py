"""
Trees that read no row: what columns say together, at next to no price
======================================================================

Boosted trees are ahead of linear models on most tables, because columns interact: what an income says depends on the
age. Private trees that search the rows for their splits pay for every look. ``PublicTreesEmbedding`` draws its trees
from what is public, so they cost nothing. ``DPRandomTreesClassifier`` grows them where people are, by one noisy count
for 3 % of its budget, and spends the rest on a linear model over their leaves. The picture shows some trees that were
drawn without a row, and what the others are worth.

Run it alone::

    python examples/plot_trees_without_reading.py                    # made-up people
    SKDP_DATA=FOLDER python examples/plot_trees_without_reading.py   # pums_fulton_ga.csv.gz in FOLDER

"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPLogisticRegression, tabular_pipeline
from skdp.accounting import compose, get_epsilon
from skdp.datasets import make_census
from skdp.ensemble import DPRandomTreesClassifier, PublicTreesEmbedding
from skdp.preprocessing import TableSchema


def read_options():
    """Options of the command line; a notebook has none, and takes the quick size."""
    parser = argparse.ArgumentParser(description="Random trees drawn from a public schema, and what they are worth.")
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("SKDP_DATA"), help="folder of pums_fulton_ga.csv.gz"
    )
    parser.add_argument("--output", type=Path, default=Path("trees_without_reading.png"), help="the picture")
    parser.add_argument("--quick", action="store_true", help="fewer people and fits")
    return parser.parse_args(None if "__file__" in globals() else ["--quick"])


options = read_options()
if options.output.suffix not in (".png", ".pdf", ".svg") or not options.output.parent.is_dir():
    sys.exit(
        f"plot_trees_without_reading.py: --output {options.output}: give a .png, .pdf or .svg in a folder that exists"
    )
try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit('plot_trees_without_reading.py needs matplotlib; run `pip install "skdp[plot]"`')

# %%
# Trees from a schema
# -------------------
# A node picks a column at random, and cuts what is left of its range by a random threshold (a category by a random
# subset). It needs to know the range and nothing else. Here are trees of two columns, drawn before any people are
# there: the fit looks at names and types, and the rows that are asked for their leaves are a grid.

AGES, GRADES = (18, 93), range(1, 17)
ages, grades = np.meshgrid(np.linspace(*AGES, 301), GRADES)
grid = np.column_stack([ages.ravel(), grades.ravel()])
two_columns = TableSchema({"x0": AGES, "x1": {"kind": "ordinal", "categories": GRADES}})
trees = PublicTreesEmbedding(3, max_depth=4, schema=two_columns, random_state=4).fit(grid)
leaves = trees.apply(grid)
print(f"Trees of two columns: epsilon {trees.epsilon_:g}. No row was read.\n")

# %%
# The people
# ----------
# Who is married? From all other columns of a census, but ``divorced``, which says who is not. The schema is what the
# code book says.

FLAGS = (
    "sex latino black asian uscitizen children disability militaryservice employed englishability collegedegree "
    "blackfemale"
)
SCHEMA = {
    "age": AGES,
    "educ": {"kind": "ordinal", "categories": GRADES},
    "income": {"bounds": (-20_000, 500_000), "scale": "log"},
    "puma": range(1101, 1108),
} | dict.fromkeys(FLAGS.split(), "flag")

if options.data:
    path = Path(options.data) / "pums_fulton_ga.csv.gz"
    if not path.is_file():
        sys.exit(
            f"plot_trees_without_reading.py: --data {options.data}: there is no {path}; leave it out for made-up rows"
        )
    table, source = pd.read_csv(path), "Fulton County, Georgia, 2000"
else:
    people = make_census(25_000, features="all", as_frame=True, random_state=0)
    table = people.data.assign(employed=people.target)
    source = "made-up people: name the folder of the real table by SKDP_DATA"
y = table["married"].to_numpy()
table = table[[name for name in SCHEMA if name in table.columns]]
schema = TableSchema({name: SCHEMA[name] for name in table.columns})
n = min(6_000, len(y)) if options.quick else len(y)
X, X_test, y, y_test = train_test_split(table, y, train_size=n - n // 5, test_size=n // 5, random_state=0)
print(f"{source}\n{len(X):,} people to learn from, {len(X_test):,} to score, who are taken as public.")
print(f"Columns: {', '.join(table.columns)}\n")

# %%
# What the trees are worth
# ------------------------
# The same columns, bins and budget, without the trees and with them. Every fit has fresh, secret noise.

epsilons, n_repeats, delta = ((0.5, 4), 2, 1e-5) if options.quick else ((0.1, 0.5, 1, 4), 3, 1e-5)
models = {
    "logistic": DPLogisticRegression(classes=[0, 1], n_jobs=-1),
    "trees + logistic": DPRandomTreesClassifier(classes=[0, 1], n_jobs=-1),
}
scores, events = {name: np.zeros((len(epsilons), n_repeats)) for name in models}, []
warnings.simplefilter("ignore", UserWarning)  # at epsilon 0.1 noise decides much of a model, as the picture shows
for i, epsilon in enumerate(epsilons):
    for name, model in models.items():
        for k in range(n_repeats):
            fitted = tabular_pipeline(model, schema=schema, epsilon=epsilon, delta=delta).fit(X, y)
            scores[name][i, k] = roc_auc_score(y_test, fitted.decision_function(X_test))
            events.append(fitted.privacy_event_)
print(f"{'epsilon':>8}" + "".join(f"{name:>22}" for name in models) + f"{'gain':>8}")
for i, epsilon in enumerate(epsilons):
    cells = [f"{each[i].mean():.4f} +/- {each[i].std():.4f}" for each in scores.values()]
    gain = scores["trees + logistic"][i].mean() - scores["logistic"][i].mean()
    print(f"{epsilon:8g}" + "".join(f"{cell:>22}" for cell in cells) + f"{gain:8.4f}")
total = get_epsilon(compose(events), delta) + 0.005  # rounded up
print(f"""
AUROC, mean +/- standard deviation of {n_repeats} fits. Each is priced as the only release, at delta {delta:g};
all {len(events)} together cost epsilon {total:.2f}. The unit of privacy is one person (one row).
""")

# %%
# What it looks at
# ----------------
# The importance of a column is its share in the variance of the score, over the levels and leaves as the schema has
# them: a function of trees and coefficients that are paid for. Frequencies of the rows would not be.

most = np.argsort(-fitted[-1].feature_importances_)[:5]
names = fitted[:-1].get_feature_names_out()
shares = ", ".join(f"{names[j]} {fitted[-1].feature_importances_[j]:.0%}" for j in most)
print(f"Importances at epsilon {epsilons[-1]:g}: {shares}\n")

# %%
# The picture
# -----------

figure = plt.figure(figsize=(9, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1.0, 1.25])
left.suptitle("Three trees, drawn without a row: their leaves", fontsize="medium")
panels = left.subplots(3, 1, sharex=True, sharey=True)
shades = np.random.default_rng(0).permutation(16)
for tree, panel in enumerate(panels):
    cells = leaves[:, tree].reshape(ages.shape)
    panel.pcolormesh(ages, grades, shades[cells], cmap="tab20c", vmin=0, vmax=19, rasterized=True)
    panel.set(ylabel="education" if tree == 1 else "", yticks=(1, 8, 16))
panels[-1].set_xlabel("age")
right.suptitle(f"Who is married? {source.partition(':')[0]}", fontsize="medium")
axes = right.subplots()
for (name, found), color, marker in zip(scores.items(), ("0.45", "tab:blue"), ("s", "o"), strict=True):
    axes.errorbar(
        epsilons, found.mean(axis=1), yerr=found.std(axis=1), color=color, marker=marker, capsize=3, label=name
    )
axes.set(xscale="log", xlabel="epsilon", ylabel="AUROC on public people")
axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axes.minorticks_off()
axes.grid(axis="y", alpha=0.3)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
figure.savefig(options.output, dpi=150)
plt.close(figure)
print(f"Picture: {options.output}")
