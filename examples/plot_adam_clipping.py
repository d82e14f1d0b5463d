"""
Clipping norm and learning rate: DP-SGD and DP-Adam
===================================================

The step of DP-SGD is proportional to the clipping norm C. If C is ten times smaller, the learning rate must be ten
times larger. Adam divides each step by the magnitude of recent gradients, so its updates do not depend on C once every
gradient is clipped (Schwabedal et al. 2020, figure 1, for an image generator; here for a classifier of census records).
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPMLPClassifier, PrivacyLeakWarning
from skdp.datasets import make_census
from skdp.plotting import PrivacyUtilityDisplay

# %%
# Simulated census records
# ------------------------
# The features are scaled by public bounds. A fixed seed gives all clipping norms the same noise, so differences between
# the lines are due to C alone. A seeded result must not be released; skdp warns, and this example ignores the warning.

census = make_census(4_000, random_state=0)
low, high = np.array([census.bounds[name] for name in census.feature_names]).T
X, X_test, y, y_test = train_test_split((census.data - low) / (high - low), census.target, random_state=0)
warnings.simplefilter("ignore", PrivacyLeakWarning)

# %%
# Two solvers, four clipping norms, three budgets
# -----------------------------------------------

SOLVERS = {
    "sgd": {"solver": "sgd", "learning_rate_init": 20.0},
    "adam": {"solver": "adam", "learning_rate_init": 0.01, "adam_epsilon": 1e-12},
}
CLIPS, EPSILONS = (1e-5, 1e-3, 0.1, 1.0), (0.1, 1.0, 10.0)


def auroc(solver, clip, epsilon):
    """Fit a network and return its test AUROC."""
    model = DPMLPClassifier(
        (32,), epsilon=epsilon, delta=1e-5, max_grad_norm=clip, sampling_rate=0.1, max_iter=20, classes=(0, 1),
        random_state=0, **SOLVERS[solver],
    ).fit(X, y)  # fmt: skip
    return roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])


scores = {name: np.array([[auroc(name, clip, each) for each in EPSILONS] for clip in CLIPS]) for name in SOLVERS}
print("Range of the AUROC over the four clipping norms:")
for name, found in scores.items():
    apart = np.ptp(found, axis=0)
    print(f"{name:<6}" + ", ".join(f"{a:.4f} at epsilon {e:g}" for a, e in zip(apart, EPSILONS, strict=True)))

# %%
# Results
# -------
# Each line shows one clipping norm. With SGD at one learning rate the lines differ widely; with Adam they nearly
# coincide. The remaining differences come from gradients shorter than C, which are not clipped.

figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, layout="constrained")
for ax, (name, found) in zip(axes, scores.items(), strict=True):
    for clip, line, width in zip(CLIPS, found, (6, 4, 2.5, 1.2), strict=True):
        PrivacyUtilityDisplay.from_scores(
            EPSILONS, line, score_name="area under the ROC curve", ax=ax, linewidth=width, label=f"C = {clip:g}",
            color=f"C{CLIPS.index(clip)}",
        )  # fmt: skip
    ax.set(title=name, xlabel="epsilon")
    ax.label_outer()
plt.show()
