"""
One epsilon, three mechanisms: what an attacker can tell
========================================================

Epsilon and delta are one point of a curve. This example sets the noise of a Gaussian release, of a Laplace release and
of 20 steps of DP-SGD so that all three cost the same epsilon at the same delta, and draws their trade-off
functions: the least share of false negatives of any test that tells whether a record is there, at each share of false
positives. Where a curve is higher the attacker knows less.
"""

import matplotlib.pyplot as plt

from skdp.accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    PrivacyProfile,
    SelfComposedDpEvent,
    calibrate_noise_multiplier,
)
from skdp.plotting import TradeOffDisplay

# %%
# Three events at one price
# -------------------------

EPSILON, DELTA = 1.0, 1e-5


def dpsgd(noise):
    """Noisy sums of Poisson samples."""
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(noise)), 20)


makers = {"Gaussian": GaussianDpEvent, "Laplace": LaplaceDpEvent, "DP-SGD, 20 steps": dpsgd}
events = {name: make(calibrate_noise_multiplier(make, EPSILON, DELTA)) for name, make in makers.items()}

# %%
# What they allow
# ---------------

for name, event in events.items():
    profile = PrivacyProfile(event)
    least = ", ".join(f"{profile.trade_off(share):.3f} at {share:g}" for share in (0.01, 0.1, 0.5))
    print(f"{name:<17} false negatives at false positives: {least}; delta at epsilon 0.5: {profile(0.5):.2g}")

# %%
# The picture
# -----------

figure, ax = plt.subplots(figsize=(6.0, 5.2), layout="constrained")
TradeOffDisplay.from_events(events, ax=ax, linewidth=1.8)
ax.set_title(f"Trade-off functions at epsilon = {EPSILON:g}, delta = {DELTA:g}", fontsize="medium")
plt.show()
