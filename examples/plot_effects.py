"""
What each column does to a private model, with the noise beside it
==================================================================

A model of random trees is a sum of thousands of leaves. What a column does to its score is the mean over public values
of the other columns: a function of what was released, so the picture costs nothing. The noise of the fit is known, and
is the band. A map shows what two columns do beyond each alone; hatched cells are what noise alone could make.

Run it alone::

    python examples/plot_effects.py --output effects.png
"""

import argparse
from pathlib import Path

from skdp import tabular_pipeline
from skdp.datasets import make_census
from skdp.plotting import EffectDisplay


def read_options():
    """Options of the command line; a notebook has none, and takes the quick size."""
    parser = argparse.ArgumentParser(description="What each column does to a private model.")
    parser.add_argument("--output", type=Path, default=Path("effects.png"), help="the picture")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    return parser.parse_args(None if "__file__" in globals() else ["--quick"])


options = read_options()

# %%
# One line fits, one line draws
# -----------------------------

people = make_census(10_000 if options.quick else 20_000, as_frame=True, random_state=0)
model = tabular_pipeline(schema=people.schema, epsilon=1.0, classes=people.classes).fit(people.data, people.target)

display = EffectDisplay.from_estimator(model, features=["age", "disability", ("age", "collegedegree")])
display.figure_.savefig(options.output, dpi=100)
print(f"Nothing was charged: epsilon is {model.epsilon_:.2f}, as after the fit. Picture: {options.output}")
