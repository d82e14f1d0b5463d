"""
Effects of features with their noise
====================================

A model of random trees is a sum over thousands of leaves. The effect of a feature is its mean contribution to the score
over public values of the other features. It is post-processing of the fitted model, so it has no additional privacy
cost. The band shows the standard deviation of the noise. The map shows the interaction of two features; hatched cells
are not distinguishable from the noise.
"""

import argparse

import matplotlib.pyplot as plt

from skdp import tabular_pipeline
from skdp.datasets import make_census
from skdp.plotting import EffectDisplay


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="Effects of features with their noise.")
    parser.add_argument("--output", help="file for the plot; default: show it")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# Fit and plot
# ------------

options = read_options()
census = make_census(20_000, as_frame=True, random_state=0)
model = tabular_pipeline(schema=census.schema, epsilon=1.0, classes=census.classes).fit(census.data, census.target)
display = EffectDisplay.from_estimator(model, features=["age", "disability", ("age", "collegedegree")])
print(f"No additional privacy cost: epsilon is still {model.epsilon_:.2f}.")
display.figure_.savefig(options.output, dpi=100) if options.output else plt.show()
