"""
Trade-off functions of three mechanisms
=======================================

A pair (epsilon, delta) is one point of a privacy curve. This example calibrates a Gaussian mechanism, a Laplace
mechanism and 20 steps of DP-SGD to the same epsilon at the same delta, and plots their trade-off functions. The trade-
off function gives, for each false positive rate, the smallest false negative rate of any membership-inference attack. A
higher curve means stronger privacy.
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
# Three mechanisms with one guarantee
# -----------------------------------

EPSILON, DELTA = 1.0, 1e-5


def dpsgd(noise):
    """Privacy event of DP-SGD: noisy sums of Poisson samples."""
    return SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(noise)), 20)


makers = {"Gaussian": GaussianDpEvent, "Laplace": LaplaceDpEvent, "DP-SGD, 20 steps": dpsgd}
events = {name: make(calibrate_noise_multiplier(make, EPSILON, DELTA)) for name, make in makers.items()}

# %%
# False negative rates
# --------------------

for name, event in events.items():
    profile = PrivacyProfile(event)
    least = ", ".join(f"{profile.trade_off(rate):.3f} at {rate:g}" for rate in (0.01, 0.1, 0.5))
    print(f"{name:<17} minimum FNR {least} FPR; delta at epsilon 0.5: {profile(0.5):.2g}")

# %%
# The plot
# --------

figure, ax = plt.subplots(figsize=(6.0, 5.2), layout="constrained")
TradeOffDisplay.from_events(events, ax=ax, linewidth=1.8)
ax.set_title(f"Trade-off functions at epsilon = {EPSILON:g}, delta = {DELTA:g}", fontsize="medium")
plt.show()
