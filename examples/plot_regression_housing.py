"""
House prices under privacy: a regressor, its budget and its coefficients
========================================================================

What is a house worth in a Californian district of 1990? ``tabular_pipeline("regressor")`` reads the raw table, with
gaps and words, and fits a private model of random trees. Where coefficients are wanted, ``DPRidge`` fits them from one
noisy release of second moments. If the variable ``SKDP_DATA`` names a folder with ``california_housing.csv.gz`` (Pace
and Barry 1997: one row a district of some 1,400 people) the districts are real, else they are made up.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import skdp

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
PRICES = (0, 500_001)

# %%
# The districts
# -------------
# What follows protects a district, as a row is the unit of privacy.

if "SKDP_DATA" in os.environ:
    table = pd.read_csv(f"{os.environ['SKDP_DATA']}/california_housing.csv.gz")
else:
    rng, n = np.random.default_rng(0), 20_640
    table = pd.DataFrame({"latitude": rng.uniform(32, 42, n), "median_income": rng.gamma(4.0, 1.0, n)})
    table["ocean_proximity"] = rng.choice(["<1H OCEAN", "INLAND", "NEAR BAY", "NEAR OCEAN"], n)
    prices = 38_000 * table["median_income"] + 80_000 * (2 + np.cos(np.pi * table["latitude"] / 2))
    table["median_house_value"] = rng.normal(prices - 60_000 * (table["ocean_proximity"] == "INLAND"), 45_000)
y, schema = table.pop("median_house_value").clip(*PRICES), {name: SCHEMA[name] for name in table.columns}
X, X_test, y, y_test = train_test_split(table, y, test_size=0.2, random_state=0)

# %%
# What privacy costs
# ------------------
# Each fit has its own noise, and all are charged together. The line without privacy reads the rows for nothing: the
# display warns of it, and we say so here.

model = skdp.tabular_pipeline("regressor", schema=schema, delta=1e-6, y_bounds=PRICES)
baseline = make_pipeline(skdp.DPTableVectorizer(schema, numbers="scale"), LinearRegression())
warnings.simplefilter("ignore", skdp.PrivacyLeakWarning)
display = skdp.plotting.PrivacyUtilityDisplay.from_estimator(
    model, X, y, X_test, y_test, epsilons=(0.1, 1.0, 4.0), n_repeats=2, baseline=baseline, test_is_public=True
)
print(f"R² {np.mean(display.scores, axis=1).round(3)}; linear model, not private: {display.baseline_score:.3f}")

# %%
# What the model says
# -------------------
# Scaled columns have one coefficient each: dollars from the middle of a range to its end. ``coef_std_`` adds up what
# another sample of districts and what another draw of noise would change, without the shrinkage of what the noise
# hides. A category of few districts has a wide error.

explained = skdp.tabular_pipeline(skdp.DPRidge(), schema=schema, epsilon=1.0, delta=1e-6, y_bounds=PRICES)
explained.set_params(vectorizer__numbers="scale").fit(X, y)
names, ridge = explained[0].get_feature_names_out(), explained[-1]
shown = [i for i, name in reversed([*enumerate(names)]) if not name.endswith(("=gap", "=other"))]
figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
ax.barh(names[shown], ridge.coef_[shown] / 1000, xerr=ridge.coef_std_[shown] / 500, capsize=2)
ax.set(xlabel="thousand dollars, with two standard errors", title="Coefficients at epsilon 1")
plt.show()
