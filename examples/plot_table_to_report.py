"""
From a raw table to a privacy report
====================================

A raw table has words, codes, gaps and numbers of any size. ``tabular_pipeline`` turns it into a private model under one
budget, ``evaluate`` says how good it is on private rows, and ``privacy_report`` writes the page that shows a colleague
what was promised and why.

Run it alone::

    python examples/plot_table_to_report.py                    # made-up people
    SKDP_DATA=FOLDER python examples/plot_table_to_report.py   # ACSIncome of Colorado, and credit default

"""

import argparse
import os
from pathlib import Path

import pandas as pd

import skdp
from skdp.datasets import make_census


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="From a raw table to a private model to a report.")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDP_DATA"), help="folder of the tables")
    parser.add_argument("--output", type=Path, default=Path(), help="folder for the reports")
    return parser.parse_args(None if "__file__" in globals() else [])


options = read_options()

# %%
# What is public
# --------------
# A schema says what a code book says: the range of a number, the codes of a category. It costs nothing, and it is the
# only thing besides names and types that is taken as known.

income_schema = {
    "AGEP": (17, 99), "WKHP": (1, 99), "SCHL": range(1, 25), "COW": range(1, 9), "MAR": range(1, 6), "SEX": [1, 2],
    "RAC1P": range(1, 10), "RELP": range(18), "OCCP": (0, 9999), "POBP": (1, 554),
}  # fmt: skip

# %%
# Two tables
# ----------
# Whose income is above 50,000 dollars? The schema is known. Who will not pay the next bill? Here nothing is said of the
# 23 columns, and what the model needs to know of them is bought from the budget.
#
# The ledger draws the two parts by number and a secret key. The model concerns one part and its scores the other, so
# the whole costs what the dearer of the two does. An exact AUROC of these people would be an exact figure about them.


def fit_and_report(name, table, target, schema=None):
    """Fit to four fifths, score the rest privately, and write the report."""
    y = table.pop(target)
    ledger = skdp.PrivacyAccountant(epsilon=1.0, delta=1e-6)
    train, test = skdp.private_train_test_split(table, y, test_size=0.2, ledger=ledger)
    model = skdp.tabular_pipeline(schema=schema, epsilon=1.0, classes=[0, 1], accountant=train.ledger)
    model.fit(train.X, train.y)
    evaluation = skdp.evaluate(model, test.X, test.y, epsilon=1.0, accountant=test.ledger)
    report = model.privacy_report(evaluation=evaluation)
    report.to_html(options.output / f"{name}.html")
    auroc = evaluation.roc_auc
    print(f"{name}: AUROC {auroc.value:.3f} ({auroc.low:.3f} to {auroc.high:.3f}), epsilon {ledger.spent:.2f} in all")
    return report


if options.data:
    income = pd.read_csv(Path(options.data) / "acsincome_2018_colorado.csv.gz")
    report = fit_and_report("income", income, "PINCP", income_schema)
    bills = pd.read_csv(Path(options.data) / "credit_default.csv.gz").drop(columns="ID")
    report = fit_and_report("credit", bills, "default_payment_next_month")
else:
    people = make_census(20_000, features="all", as_frame=True, random_state=0)
    people.data.insert(0, "employed", people.target)
    report = fit_and_report("census", people.data, "employed")

# %%
# The page
# --------
# The same report as text. The HTML file is one page that opens in any browser.

print(report)
