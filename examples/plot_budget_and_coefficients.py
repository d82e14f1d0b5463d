"""
What is left of a budget, and which coefficients stand out of the noise
=======================================================================

Three fits share one ledger with a budget. On the left is what each of them took: the joint price of all is less than
the sum of their prices. On the right are the coefficients of the last one, each beside what noise alone could make
of it: the noise of a private fit is known, so it takes no further look at the people to tell which ones mean something.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPPCA, DPLogisticRegression, PrivacyAccountant
from skdp.datasets import make_census
from skdp.plotting import BudgetDisplay, CoefficientDisplay


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="A remaining budget, and coefficients with their noise.")
    parser.add_argument("--output", help="a file for the picture; default: it is shown")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# Three fits, one ledger
# ----------------------
# The bounds are those of the code book, which are public.

options = read_options()
people = make_census(30_000, random_state=0)
low, high = np.array([people.bounds[name] for name in people.feature_names]).T
X, y = (people.data - low) / (high - low), people.target

accountant = PrivacyAccountant(epsilon=2.0, delta=1e-6)
DPLogisticRegression(epsilon=1.0, classes=[0, 1], accountant=accountant).fit(X, y)
DPPCA(3, epsilon=0.3, accountant=accountant).fit(X)
model = DPLogisticRegression(epsilon=0.5, classes=[0, 1], accountant=accountant).fit(X, y)
print(accountant)

# %%
# The picture
# -----------

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained", width_ratios=(6, 5))
figure.get_layout_engine().set(w_pad=0.15)
figure.suptitle(f"Three fits to {len(y):,} made-up people: their ledger, and the coefficients of the last")
BudgetDisplay.from_accountant(accountant, ax=left)
display = CoefficientDisplay.from_estimator(model, feature_names=people.feature_names, ax=right)
stand_out = [display.feature_names[j] for j in display.features_ if abs(display.coef[j]) > 2 * display.coef_noise[j]]
print(f"\nMore than two standard deviations of the noise: {', '.join(stand_out)}.")
figure.savefig(options.output, dpi=100) if options.output else plt.show()
