"""
What each column does to a private model, with the noise beside it
==================================================================

A model of random trees is a sum of thousands of leaves. What a column does to its score is the mean over public values
of the other columns: a function of what was released, so the picture costs nothing. The noise of the fit is known, and
is the band. A map shows what two columns do beyond each alone; hatched cells are what noise alone could make.
"""

import argparse

import matplotlib.pyplot as plt

from skdp import tabular_pipeline
from skdp.datasets import make_census
from skdp.plotting import EffectDisplay


def read_options():
    """Options of the command line; a notebook has none."""
    parser = argparse.ArgumentParser(description="What each column does to a private model.")
    parser.add_argument("--output", help="a file for the picture; default: it is shown")
    return parser.parse_args(None if "__file__" in globals() else [])


# %%
# One line fits, one line draws
# -----------------------------

options = read_options()
people = make_census(20_000, as_frame=True, random_state=0)
model = tabular_pipeline(schema=people.schema, epsilon=1.0, classes=people.classes).fit(people.data, people.target)
display = EffectDisplay.from_estimator(model, features=["age", "disability", ("age", "collegedegree")])
print(f"Nothing was charged: epsilon is {model.epsilon_:.2f}, as after the fit.")
display.figure_.savefig(options.output, dpi=100) if options.output else plt.show()
