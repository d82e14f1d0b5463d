"""
From a raw table to a privacy report
====================================

A raw table has words, codes, gaps and numbers of any size. ``tabular_pipeline`` turns it into a private model under one
budget, and ``privacy_report`` writes the page that shows a colleague what was promised and why. If the variable
``SKDP_DATA`` names a folder with ``credit_default.csv.gz`` the table is that one, else made-up people.
"""

import argparse
import os

import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import skdp
from skdp.datasets import make_census


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="From a raw table to a private model to a report.")
    parser.add_argument("--output", help="a file for the report, as report.html")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# The table
# ---------
# Who will not pay the next bill, or who is employed? Nothing is said of the columns.

options, folder = read_options(), os.environ.get("SKDP_DATA")
if folder:
    table = pd.read_csv(f"{folder}/credit_default.csv.gz").drop(columns="ID")
    y = table.pop("default_payment_next_month")
else:
    people = make_census(20_000, features="all", as_frame=True, random_state=0)
    table, y = people.data, people.target
X, X_test, y, y_test = train_test_split(table, y, test_size=0.2, random_state=0)

# %%
# The model
# ---------
# What it needs to know of the columns is bought from the budget. A schema, as ``{"age": (17, 99), "sex": [1, 2]}``,
# says what a code book says, and saves that.

model = skdp.tabular_pipeline(epsilon=1.0, classes=[0, 1]).fit(X, y)
auroc = roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])
print(f"AUROC {auroc:.3f} at epsilon {model.epsilon_:.2f}, delta {model.delta_:g}, n = {len(X):,}")

# %%
# The report
# ----------
# As text here, and with ``to_html`` as one page that opens in any browser.

report = model.privacy_report()
print(report)
if options.output:
    report.to_html(options.output)
