"""
Remaining budget and coefficients with their noise
==================================================

Three fits share one accountant with a budget. The left plot shows the budget that each fit consumed: the composed
privacy loss is smaller than the sum. The right plot shows the coefficients of the last fit beside the standard
deviation of their noise. This standard deviation is public, so the comparison needs no further access to the data.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPPCA, DPLogisticRegression, PrivacyAccountant
from skdp.datasets import make_census
from skdp.plotting import BudgetDisplay, CoefficientDisplay


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="Remaining budget and coefficients with their noise.")
    parser.add_argument("--output", help="file for the plot; default: show it")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# Three fits, one accountant
# --------------------------
# The bounds come from the public code book.

options = read_options()
census = make_census(30_000, random_state=0)
low, high = np.array([census.bounds[name] for name in census.feature_names]).T
X, y = (census.data - low) / (high - low), census.target

accountant = PrivacyAccountant(epsilon=2.0, delta=1e-6)
DPLogisticRegression(epsilon=1.0, classes=[0, 1], accountant=accountant).fit(X, y)
DPPCA(3, epsilon=0.3, accountant=accountant).fit(X)
model = DPLogisticRegression(epsilon=0.5, classes=[0, 1], accountant=accountant).fit(X, y)
print(accountant)

# %%
# The plot
# --------

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained", width_ratios=(6, 5))
figure.get_layout_engine().set(w_pad=0.15)
figure.suptitle(f"Three fits on {len(y):,} simulated records: budget, and coefficients of the last fit")
BudgetDisplay.from_accountant(accountant, ax=left)
display = CoefficientDisplay.from_estimator(model, feature_names=census.feature_names, ax=right)
significant = [display.feature_names[j] for j in display.features_ if abs(display.coef[j]) > 2 * display.coef_noise[j]]
print(f"\nCoefficients of more than two standard deviations of the noise: {', '.join(significant)}.")
figure.savefig(options.output, dpi=100) if options.output else plt.show()
