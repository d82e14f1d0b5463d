"""
From a raw table to a privacy report
====================================

``tabular_pipeline`` fits a private model to a raw table with strings, categorical codes, missing values and numbers of
any range. ``evaluate`` estimates its metrics on private test records, and ``privacy_report`` documents the guarantee
for a reviewer. If the environment variable ``SKDP_DATA`` is a folder with ``credit_default.csv.gz``, the example uses
that table, otherwise simulated census records.
"""

import argparse
import os

import pandas as pd

import skdp
from skdp.datasets import make_census


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="From a raw table to a privacy report.")
    parser.add_argument("--output", help="file for the report, such as report.html")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# The data
# --------
# The accountant assigns each row to the training or the test set by a secret key. The two sets are disjoint, so the
# privacy cost of the analysis is the larger of the two costs, not their sum (parallel composition).

options, folder = read_options(), os.environ.get("SKDP_DATA")
if folder:
    table = pd.read_csv(f"{folder}/credit_default.csv.gz").drop(columns="ID")
    y = table.pop("default_payment_next_month")
else:
    census = make_census(20_000, features="all", as_frame=True, random_state=0)
    table, y = census.data, census.target
accountant = skdp.PrivacyAccountant(epsilon=1.0, delta=1e-6)
train, test = skdp.private_train_test_split(table, y, test_size=0.2, accountant=accountant)

# %%
# The model
# ---------
# Without a schema, bounds and categories are estimated privately, with part of the budget. A schema such as
# ``{"age": (17, 99), "sex": [1, 2]}`` declares public facts and saves this part.

model = skdp.tabular_pipeline(epsilon=1.0, classes=[0, 1], accountant=train.accountant).fit(train.X, train.y)
evaluation = skdp.evaluate(model, test.X, test.y, epsilon=1.0, accountant=test.accountant)
auroc = evaluation.roc_auc
print(f"AUROC {auroc.value:.3f}, 95% CI [{auroc.low:.3f}, {auroc.high:.3f}]; total epsilon {accountant.spent:.2f}")

# %%
# The report
# ----------
# The report is printed as text here; ``to_html`` writes it as a web page.

report = skdp.privacy_report(model, evaluation=evaluation)
print(report)
if options.output:
    report.to_html(options.output)
