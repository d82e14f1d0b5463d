"""
House prices under privacy: a regressor, its budget and its coefficients
========================================================================

What is a house worth in a Californian district of 1990? ``tabular_pipeline("regressor")`` reads the raw table, with
gaps and words, and fits a private model of random trees. Where coefficients are wanted, ``DPRidge`` fits them from one
noisy release of second moments. The picture shows what each budget costs in R², and what the coefficients say
at epsilon 1, with standard errors that count the noise.

Run it alone::

    python examples/plot_regression_housing.py                    # made-up districts
    SKDP_DATA=FOLDER python examples/plot_regression_housing.py   # california_housing.csv.gz in FOLDER

"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp import DPRidge, PrivacyLeakWarning, tabular_pipeline
from skdp.plotting import PrivacyUtilityDisplay
from skdp.preprocessing import DPTableVectorizer


def read_options():
    """Options of the command line; a notebook has none, and takes the quick size."""
    parser = argparse.ArgumentParser(
        description="House prices under privacy: a regressor, its budget, its coefficients."
    )
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("SKDP_DATA"), help="folder of california_housing.csv.gz"
    )
    parser.add_argument("--output", type=Path, default=Path("regression_housing.png"), help="the picture")
    parser.add_argument("--quick", action="store_true", help="fewer budgets and fits")
    return parser.parse_args(None if "__file__" in globals() else ["--quick"])


options = read_options()
if options.output.suffix not in (".png", ".pdf", ".svg") or not options.output.parent.is_dir():
    sys.exit(
        f"plot_regression_housing.py: --output {options.output}: give a .png, .pdf or .svg in a folder that exists"
    )

# %%
# What is public
# --------------
# Ranges of the columns, and of the prices, which the census cut off at 500,001 dollars. They are round numbers that
# anyone could write down, and cost nothing. Values beyond them are moved to the nearest bound.

SCHEMA = {
    "longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 52), "total_rooms": (0, 10_000),
    "total_bedrooms": (0, 2_000), "population": (0, 6_000), "households": (0, 2_000), "median_income": (0, 10),
    "ocean_proximity": ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"],
}  # fmt: skip
PRICE, PRICES = "median_house_value", (0, 500_001)

# %%
# The districts
# -------------
# The table of Pace and Barry (1997), one row a district of some 1,400 people, or made-up districts of the same columns.
# What follows protects a district, as a row is the unit of privacy.


def make_districts(n):
    """Made-up districts: prices rise with income, towards the coast and near two cities."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 1, n)  # from north to south
    inland = rng.beta(1, 3, n)
    households = rng.gamma(2.0, 250.0, n)
    income = np.clip(rng.gamma(4.0, 0.9, n) + 1.5 * (1 - inland) - 0.5, 0.5, 15)
    size = 2 + rng.gamma(2.0, 0.5, n)
    near = np.where(rng.random(n) < 0.5, "NEAR OCEAN", np.where(place < 0.4, "NEAR BAY", "<1H OCEAN"))
    districts = pd.DataFrame({
        "longitude": -124 + 8 * place + 3 * inland,
        "latitude": 41.5 - 9 * place + 0.5 * rng.standard_normal(n),
        "housing_median_age": rng.integers(1, 53, n),
        "total_rooms": np.round(households * (3 + 0.4 * income)),
        "total_bedrooms": np.round(households * rng.uniform(0.9, 1.2, n)),
        "population": np.round(households * size),
        "households": np.round(households),
        "median_income": income,
        "ocean_proximity": np.where(inland > 0.3, "INLAND", near),
    })  # fmt: skip
    districts.loc[rng.random(n) < 0.01, "total_bedrooms"] = np.nan
    cities = np.exp(-(((place - 0.35) / 0.07) ** 2)) + np.exp(-(((place - 0.8) / 0.1) ** 2))
    price = 38_000 * income + 80_000 * cities + 80_000 * np.exp(-6 * inland) - 12_000 * size
    return districts.assign(**{PRICE: np.clip(20_000 + price + 45_000 * rng.standard_normal(n), 15_000, PRICES[1])})


if options.data:
    path = Path(options.data) / "california_housing.csv.gz"
    if not path.is_file():
        sys.exit(
            f"plot_regression_housing.py: --data {options.data}: there is no {path}; leave it out for made-up rows"
        )
    table, source = pd.read_csv(path), "California, 1990"
else:
    table, source = make_districts(20_640), "made-up districts: name the folder of the real table by SKDP_DATA"
y = table.pop(PRICE)
X, X_test, y, y_test = train_test_split(table, y, test_size=0.2, random_state=0)
print(f"{source}\n{len(X):,} districts to learn from, {len(X_test):,} to score, which are taken as public.\n")

# %%
# What privacy costs
# ------------------
# Each fit has its own noise, and all are charged together. The line without privacy reads the rows for nothing: the
# display warns of it, and we say so here.

warnings.simplefilter("ignore", PrivacyLeakWarning)
model = tabular_pipeline("regressor", schema=SCHEMA, delta=1e-6, y_bounds=PRICES)
baseline = make_pipeline(DPTableVectorizer(SCHEMA, numbers="scale"), LinearRegression())
display = PrivacyUtilityDisplay.from_estimator(
    model, X, y, X_test, y_test, epsilons=(0.1, 1.0, 4.0) if options.quick else (0.1, 0.3, 1.0, 3.0, 10.0),
    n_repeats=2 if options.quick else 5, baseline=baseline, score_name="R²", test_is_public=True,
)  # fmt: skip
print(f"{'epsilon':>11} {'R^2':>18}")
for epsilon, scores in zip(display.epsilons, display.scores, strict=True):
    print(f"{epsilon:11g} {np.mean(scores):9.3f} +/- {np.std(scores):.3f}")
print(f"linear model, not private {display.baseline_score:.3f}\n")

# %%
# What the model says
# -------------------
# Scaled columns have one coefficient each: dollars from the middle of a range to its end. ``coef_std_`` adds up what
# another sample of districts and what another draw of noise would change, without the shrinkage of what the noise
# hides. A category of few districts has a wide error.

explained = tabular_pipeline(DPRidge(), schema=SCHEMA, epsilon=1.0, delta=1e-6, y_bounds=PRICES)
explained.set_params(vectorizer__numbers="scale").fit(X, y)
names, ridge = explained[0].get_feature_names_out(), explained[-1]
shown = [i for i, name in enumerate(names) if not name.endswith(("=gap", "=other"))]
for i in shown:
    print(f"{names[i]:>26} {ridge.coef_[i]:10,.0f} +/- {ridge.coef_std_[i]:8,.0f}")
print(f"{'intercept':>26} {ridge.intercept_:10,.0f} +/- {ridge.intercept_std_:8,.0f}")
print(f"\nepsilon {ridge.epsilon_:.2f} at delta {ridge.delta_:g}; the {display.scores.size} fits above, all together: "
      f"{display.epsilon_total_:.1f}")  # fmt: skip

# %%
# The picture
# -----------

figure = display.figure_
figure.set_size_inches(11, 4.6)
display.ax_.set_position([0.07, 0.16, 0.4, 0.72])
display.ax_.legend(loc="lower right", fontsize="x-small")
display.ax_.set_title(f"{source.partition(':')[0]}: R² of prices on public districts", fontsize="medium")
ax = figure.add_axes([0.66, 0.12, 0.32, 0.76])
places = np.arange(len(shown))
ax.barh(places, ridge.coef_[shown], xerr=2 * ridge.coef_std_[shown], color="#0072B2", ecolor="#000000", capsize=2)
ax.set_yticks(places, names[shown], fontsize="small")
ax.invert_yaxis()
ax.axvline(0, color="#000000", linewidth=0.8)
ax.set_xlabel("dollars, with two standard errors")
ax.set_title("Coefficients at epsilon 1", fontsize="medium")
figure.savefig(options.output, dpi=120)
print(f"Picture: {options.output}")
