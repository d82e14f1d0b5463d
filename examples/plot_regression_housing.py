"""
Private regression: California house costs
===========================================

The target is the median house value of Californian districts in 1990. ``tabular_pipeline("regressor")`` accepts the raw
table, with missing values and strings, and fits a private model of random trees. ``DPRidge`` gives coefficients with
standard errors from one noisy release of second moments. If the environment variable ``SKDP_DATA`` is a folder with
``california_housing.csv.gz`` (Pace and Barry 1997; one row per district of about 1,400 people), the example uses these
data, otherwise simulated districts.
"""

import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

import skdp

# %%
# Public bounds
# -------------
# The bounds of the features and of the target are round numbers that do not depend on the data; the census capped house
# values at 500,001 dollars. Values beyond the bounds are moved to the nearest bound.

SCHEMA = {
    "longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 52), "total_rooms": (0, 10_000),
    "total_bedrooms": (0, 2_000), "population": (0, 6_000), "households": (0, 2_000), "median_income": (0, 10),
    "ocean_proximity": ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"],
}  # fmt: skip
PRICES = (0, 500_001)

# %%
# The data
# --------
# The privacy unit is a row, that is a district.

if "SKDP_DATA" in os.environ:
    table = pd.read_csv(f"{os.environ['SKDP_DATA']}/california_housing.csv.gz")
else:
    rng, n = np.random.default_rng(0), 20_640
    table = pd.DataFrame({"latitude": rng.uniform(32, 42, n), "median_income": rng.gamma(4.0, 1.0, n)})
    table["ocean_proximity"] = rng.choice(["<1H OCEAN", "INLAND", "NEAR BAY", "NEAR OCEAN"], n)
    costs = 38_000 * table["median_income"] + 80_000 * (2 + np.cos(np.pi * table["latitude"] / 2))
    table["median_house_value"] = rng.normal(costs - 60_000 * (table["ocean_proximity"] == "INLAND"), 45_000)
table["ocean_proximity"] = table["ocean_proximity"].astype("category")
y, schema = table.pop("median_house_value").clip(*PRICES), {name: SCHEMA[name] for name in table.columns}
X, X_test, y, y_test = train_test_split(table, y, test_size=0.2, random_state=0)

# %%
# Accuracy at several budgets
# ---------------------------
# All fits are composed by one accountant. The baseline is a model of boosted trees without privacy. It is not
# covered by the guarantee; the display warns about this, and the example ignores the warning.

model = skdp.tabular_pipeline("regressor", schema=schema, delta=1e-6, y_bounds=PRICES)
baseline = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
warnings.simplefilter("ignore", skdp.PrivacyLeakWarning)
display = skdp.plotting.PrivacyUtilityDisplay.from_estimator(
    model, X, y, X_test, y_test, epsilons=(0.1, 1.0, 4.0), n_repeats=2, baseline=baseline, test_is_public=True
)
print(f"R² {np.mean(display.scores, axis=1).round(3)}; boosted trees, not private: {display.baseline_score:.3f}")

# %%
# Coefficients
# ------------
# A coefficient is the change of the prediction, in dollars, from the middle of a feature's range to its end. The
# standard errors account for sampling and for the privacy noise, but not for the shrinkage of the ridge penalty. Rare
# categories have large standard errors.

explained = skdp.tabular_pipeline(skdp.DPRidge(), schema=schema, epsilon=1.0, delta=1e-6, y_bounds=PRICES)
explained.set_params(vectorizer__numbers="scale").fit(X, y)
names, ridge = explained[0].get_feature_names_out(), explained[-1]
shown = [i for i, name in reversed([*enumerate(names)]) if not name.endswith(("=missing", "=other"))]
figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
ax.barh(names[shown], ridge.coef_[shown] / 1000, xerr=ridge.coef_std_[shown] / 500, capsize=2)
ax.set(xlabel="thousand dollars, with two standard errors", title="Coefficients at epsilon 1")
plt.show()
