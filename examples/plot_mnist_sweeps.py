"""
Hyperparameters of a private network on MNIST
=============================================

This example repeats figure 5 of Abadi et al. (2016): test accuracy at epsilon 2 and delta 1e-5, where projection and
network share the budget. One hyperparameter varies at a time: components of the projection, hidden units, lot size
(Poisson-sampled batch), learning rate, clipping norm and number of epochs. More noise allows more epochs at the same
epsilon. If the environment variable ``SKDP_DATA`` is a folder with ``mnist.npz``, the example uses MNIST, otherwise the
small digits of scikit-learn.
"""

import os

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from skdp import DPPCA, DPMLPClassifier, allocate_budget
from skdp.datasets import load_mnist

# %%
# Data and hyperparameters
# ------------------------
# ``lot`` is a fraction of the rows and ``step`` is the learning rate times the clipping norm. The noise multiplier
# grows with the number of epochs.

if "SKDP_DATA" in os.environ:
    digits = load_mnist(f"{os.environ['SKDP_DATA']}/mnist.npz")
    X, y, X_test, y_test = digits.data, digits.target, digits.test_data, digits.test_target
    sizes = {"components": (10, 20, 40, 60, 100, 200), "hidden": (50, 200, 500, 1000, 2000)}
else:
    pixels, labels = load_digits(return_X_y=True)
    X, y, X_test, y_test = pixels[:1500] / 16, labels[:1500], pixels[1500:] / 16, labels[1500:]
    sizes = {"components": (5, 10, 20, 40), "hidden": (10, 20, 50, 100)}
sweeps = sizes | {
    "lot": (1 / 60, 1 / 30, 1 / 15, 1 / 7.5, 1 / 3), "step": (1.0, 4.0, 16.0, 64.0), "clip": (0.01, 0.1, 0.5, 2.0, 8.0),
    "epochs": (2, 5, 10, 20, 40, 80),
}  # fmt: skip
middle = {name: values[-2] for name, values in sizes.items()} | {"lot": 1 / 15, "step": 16.0, "clip": 0.5, "epochs": 20}


def accuracy(components, hidden, lot, step, clip, epochs):
    """Test accuracy in percent."""
    network = DPMLPClassifier(
        (hidden,), data_norm=1.0, sampling_rate=lot, max_iter=epochs, max_grad_norm=clip,
        learning_rate_init=step / clip, classes=range(10),
    )  # fmt: skip
    pipeline = make_pipeline(DPPCA(components, center=False, normalize=True), network)
    return 100 * allocate_budget(pipeline, epsilon=2.0, delta=1e-5).fit(X, y).score(X_test, y_test)


# %%
# One hyperparameter at a time
# ----------------------------

figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes.flat, sweeps.items(), strict=True):
    found = [accuracy(**middle | {name: value}) for value in values]
    print(f"{name:>10}: " + ", ".join(f"{value:.3g} {score:.1f}%" for value, score in zip(values, found, strict=True)))
    ax.semilogx(values, found, "o-")
    ax.set_xlabel(name)
    ax.set_xticks(values, [f"{value:.2g}" if value < 1 else f"{value:g}" for value in values])
    ax.minorticks_off()
    ax.grid(alpha=0.25)
figure.supylabel("test accuracy, %")
figure.suptitle(f"{len(y):,} digits at epsilon = 2, delta = 1e-05: one hyperparameter varied at a time")
plt.show()
