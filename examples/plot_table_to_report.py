"""
From a raw table to a privacy report
====================================

A raw table has words, codes, gaps and numbers of any size. ``tabular_pipeline`` turns it into a private model under one
budget, ``evaluate`` says how good it is on private rows, and ``privacy_report`` writes the page that shows a colleague
what was promised and why. If the variable ``SKDP_DATA`` names a folder with ``credit_default.csv.gz`` the table is that
one, else made-up people.
"""

import argparse
import os

import pandas as pd

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
# Who will not pay the next bill, or who is employed? Nothing is said of the columns. The ledger draws two parts by
# number and a secret key. The model concerns one part and its scores the other, so the whole costs what the dearer of
# the two does. An exact AUROC of these people would be an exact figure about them.

options, folder = read_options(), os.environ.get("SKDP_DATA")
if folder:
    table = pd.read_csv(f"{folder}/credit_default.csv.gz").drop(columns="ID")
    y = table.pop("default_payment_next_month")
else:
    people = make_census(20_000, features="all", as_frame=True, random_state=0)
    table, y = people.data, people.target
ledger = skdp.PrivacyAccountant(epsilon=1.0, delta=1e-6)
train, test = skdp.private_train_test_split(table, y, test_size=0.2, accountant=ledger)

# %%
# The model
# ---------
# What it needs to know of the columns is bought from the budget. A schema, as ``{"age": (17, 99), "sex": [1, 2]}``,
# says what a code book says, and saves that.

model = skdp.tabular_pipeline(epsilon=1.0, classes=[0, 1], accountant=train.accountant).fit(train.X, train.y)
evaluation = skdp.evaluate(model, test.X, test.y, epsilon=1.0, accountant=test.accountant)
auroc = evaluation.roc_auc
print(f"AUROC {auroc.value:.3f} ({auroc.low:.3f} to {auroc.high:.3f}), epsilon {ledger.spent:.2f} in all")

# %%
# The report
# ----------
# As text here, and with ``to_html`` as one page that opens in any browser.

report = skdp.privacy_report(model, evaluation=evaluation)
print(report)
if options.output:
    report.to_html(options.output)
