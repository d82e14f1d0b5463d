"""
Synthetic digits from three private generators
==============================================

Three private generators are fitted to the same digits at the same two budgets: a class mixture
(`DPClassMixtureGenerator`), the WGAN of Schwabedal et al. (2020) with exact clipping (`DPWGAN`), and the table
synthesizer (`DPMarginalSynthesizer`) on images of half the resolution with four levels per pixel. If the environment
variable ``SKDP_DATA`` is a folder with ``mnist.npz``, the example uses MNIST, otherwise the small digits of
scikit-learn.
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
    wgan = {"max_iter": 60}
side = int(np.sqrt(X.shape[1]))

# %%
# The generators
# --------------


def table_digits(epsilon):
    """Sample images from a table synthesizer of halved images: each pixel is the mean of four."""
    halved = X.reshape(-1, side // 2, 2, side // 2, 2).mean(axis=(2, 4)).reshape(len(X), -1)
    model = DPMarginalSynthesizer(
        bounds=(0.0, 1.0), classes=range(10), epsilon=epsilon, delta=1e-5, n_bins=4, pairs="all", triples=False,
        within_bins="middle",
    )  # fmt: skip
    sampled, labels = model.fit(halved, y).sample(len(X))
    return sampled.reshape(-1, side // 2, side // 2).repeat(2, axis=1).repeat(2, axis=2).reshape(len(X), -1), labels


rows = {"real": (X_test, y_test)}
for epsilon in (1.0, 10.0):
    given = {"bounds": (0.0, 1.0), "classes": range(10), "epsilon": epsilon, "delta": 1e-5}
    rows[f"class mixture, {epsilon:g}"] = DPClassMixtureGenerator(**given).fit(X, y).sample(len(X))
    rows[f"WGAN, {epsilon:g}"] = DPWGAN(**given, **wgan).fit(X, y).sample(len(X))
    rows[f"table, {epsilon:g}"] = table_digits(epsilon)

# %%
# Evaluation
# ----------
# An evaluation classifier is trained on synthetic digits and tested on real ones. The test digits are public; for a
# private test set, use :func:`skdp.evaluate`. The WGAN needs far more images than the 1,500 small digits.

figure, axes = plt.subplots(len(rows), 1, figsize=(9.0, 5.0), layout="constrained")
for ax, (name, (sampled, labels)) in zip(axes, rows.items(), strict=True):
    accuracy = LogisticRegression(C=10.0, max_iter=1000, tol=1e-3).fit(sampled, labels).score(X_test, y_test)
    print(f"{name:<18} accuracy on real digits: {accuracy:.3f}")
    shown = np.concatenate([sampled[labels == digit][:2] for digit in range(10)])
    ax.imshow(np.hstack(list(shown.reshape(-1, side, side))), cmap="gray_r", vmin=0.0, vmax=1.0)
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
    ax.set(xticks=[], yticks=[], frame_on=False)
plt.show()
