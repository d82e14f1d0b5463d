"""
How to choose the clip, and why Adam hardly sees it: accuracy against epsilon
=============================================================================

DP-SGD's step is as long as its clip C: choose C ten times smaller, and the learning rate has to grow tenfold. Adam
divides by the size of the gradients, so once every gradient is clipped its updates do not depend on C at all
(Schwabedal et al. 2020, figure 1, for a generator of images; here for a classifier of census people).
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
# Made-up people
# --------------
# Their columns are scaled by public bounds. Every clip sees the same noise, by a seed, so that lines differ by the clip
# alone. A seeded result must not leave one's hands: skdp warns of it, and we say so here.

people = make_census(4_000, random_state=0)
low, high = np.array([people.bounds[name] for name in people.feature_names]).T
X, X_test, y, y_test = train_test_split((people.data - low) / (high - low), people.target, random_state=0)
warnings.simplefilter("ignore", PrivacyLeakWarning)

# %%
# Two solvers, four clips, three budgets
# --------------------------------------

SOLVERS = {
    "sgd": {"solver": "sgd", "learning_rate_init": 20.0},
    "adam": {"solver": "adam", "learning_rate_init": 0.01, "adam_epsilon": 1e-12},
}
CLIPS, EPSILONS = (1e-5, 1e-3, 0.1, 1.0), (0.1, 1.0, 10.0)


def auroc(solver, clip, epsilon):
    """Fit a network, and score it on people who took no part."""
    model = DPMLPClassifier(
        (32,), epsilon=epsilon, delta=1e-5, max_grad_norm=clip, sampling_rate=0.1, max_iter=20, classes=(0, 1),
        random_state=0, **SOLVERS[solver],
    ).fit(X, y)  # fmt: skip
    return roc_auc_score(y_test, model.predict_proba(X_test)[:, 1])


scores = {name: np.array([[auroc(name, clip, each) for each in EPSILONS] for clip in CLIPS]) for name in SOLVERS}
for name, found in scores.items():
    apart = np.ptp(found, axis=0)
    print(f"{name:<6}" + ", ".join(f"{a:.4f} at epsilon {e:g}" for a, e in zip(apart, EPSILONS, strict=True)))

# %%
# The picture
# -----------
# Each line is one clip. With gradient descent at one learning rate they lie far apart, with Adam on one another. What
# distance is left comes from rows whose gradient is shorter than C, which are not clipped.

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
