"""
Synthetic digits by three private generators
============================================

Three private generators see the same digits under the same two budgets, and draw digits of their own beside the real
ones: the class mixture (`DPClassMixtureGenerator`), the WGAN of Schwabedal et al. (2020) with an exact clip (`DPWGAN`),
and, as it can be asked to, the synthesizer of tables (`DPMarginalSynthesizer`), which sees halved images as tables of
four levels a pixel. If the variable ``SKDP_DATA`` names a folder with ``mnist.npz`` the digits are those of MNIST, else
the small ones of scikit-learn.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skdp import DPWGAN, DPClassMixtureGenerator, DPMarginalSynthesizer
from skdp.datasets import load_mnist

if "SKDP_DATA" in os.environ:
    digits = load_mnist(f"{os.environ['SKDP_DATA']}/mnist.npz")
    X, y, X_test, y_test = digits.data, digits.target, digits.test_data, digits.test_target
    wgan = {"weight_decay": 0.5, "generator_learning_rate_init": 4e-3, "n_latent": 24, "max_iter": 68}
else:
    pixels, labels = load_digits(return_X_y=True)
    X, y, X_test, y_test = pixels[:1500] / 16, labels[:1500], pixels[1500:] / 16, labels[1500:]
    wgan = {"max_iter": 60}  # small images are as a table to the GAN
side = int(np.sqrt(X.shape[1]))

# %%
# The generators
# --------------


def table_digits(epsilon):
    """Images of half the side go in, each pixel the mean of four, and what comes out is doubled."""
    halved = X.reshape(-1, side // 2, 2, side // 2, 2).mean(axis=(2, 4)).reshape(len(X), -1)
    model = DPMarginalSynthesizer(
        bounds=(0.0, 1.0), classes=range(10), epsilon=epsilon, delta=1e-5, n_bins=4, pairs="all", triples=False,
        within_bins="middle",
    )  # fmt: skip
    made, labels = model.fit(halved, y).sample(len(X))
    return made.reshape(-1, side // 2, side // 2).repeat(2, axis=1).repeat(2, axis=2).reshape(len(X), -1), labels


rows = {"real": (X_test, y_test)}
for epsilon in (1.0, 10.0):
    given = {"bounds": (0.0, 1.0), "classes": range(10), "epsilon": epsilon, "delta": 1e-5}
    rows[f"class mixture, {epsilon:g}"] = DPClassMixtureGenerator(**given).fit(X, y).sample(len(X))
    rows[f"WGAN, {epsilon:g}"] = DPWGAN(**given, **wgan).fit(X, y).sample(len(X))
    rows[f"table, {epsilon:g}"] = table_digits(epsilon)

# %%
# How good they are
# -----------------
# A classifier learns from made-up digits and is tested on real ones. These are public; those of a private set would
# have to be scored by a judge that is private too.

figure, axes = plt.subplots(len(rows), 1, figsize=(9.0, 5.0), layout="constrained")
for ax, (name, (made, labels)) in zip(axes, rows.items(), strict=True):
    accuracy = LogisticRegression(C=10.0, max_iter=1000, tol=1e-3).fit(made, labels).score(X_test, y_test)
    print(f"{name:<18} {accuracy:.3f} of the real test digits are told by a model that learned from these")
    shown = np.concatenate([made[labels == digit][:2] for digit in range(10)])
    ax.imshow(np.hstack(list(shown.reshape(-1, side, side))), cmap="gray_r", vmin=0.0, vmax=1.0)
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
    ax.set(xticks=[], yticks=[], frame_on=False)
plt.show()
