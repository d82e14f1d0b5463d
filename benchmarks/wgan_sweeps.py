#!/usr/bin/env python3
"""Private GANs on MNIST: clipping, noise and capacity, as in Schwabedal et al. (2020).

    SKDP_DATA=FOLDER python benchmarks/wgan_sweeps.py PICTURE

FOLDER holds mnist.npz. The inception score of digits that a private WGAN makes up, against the epsilon that they cost,
for several clips, noise multipliers and capacities of the critic. The settings are the paper's: Adam with a step of
4e-4, a gradient penalty of 10, clip 1, noise multiplier .5, capacity 32, lots of 128, one step of the critic for each
of the generator. Three things differ. Both networks are dense: the critic has one hidden layer of four units for each
unit of capacity. Rows are drawn independently, which is what the accountant prices, and not in shuffled batches. And
the longest run has 9,380 steps, 20 epochs, where the paper has 18,760.
"""

import os
import sys
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.neural_network import MLPClassifier
from synthesis_metrics import inception_score

from skdp import DPWGAN
from skdp.datasets import load_mnist

digits = load_mnist(Path(os.environ["SKDP_DATA"]) / "mnist.npz")
X, y, X_test, y_test = digits.data, digits.target, digits.test_data, digits.test_target
EPOCHS = (2, 5, 10, 20)
SWEEPS = {"clip": (0.1, 1.0, 100.0), "noise": (0.5, 0.8, 0.9, 1.0), "capacity": (16, 32, 96, 128)}

# The judge is a network of scikit-learn that was trained on the real training rows, without privacy. A score that
# is to be published needs a private judge, or public rows, as the paper says.

judge = MLPClassifier((200,), early_stopping=True, random_state=0).fit(X, y)
real = inception_score(judge.predict_proba(X_test))
print(f"the judge is right on {judge.score(X_test, y_test):.1%} of the test images, whose score is {real:.2f}")


def run(epochs, clip=1.0, noise=0.5, capacity=32):
    """Price of a run, and the inception score of what it makes up."""
    model = DPWGAN(
        (0.0, 1.0), classes=range(10), class_prevalences="uniform", epsilon=None, noise_multiplier=noise, delta=1e-5,
        max_grad_norm=clip, critic_layer_sizes=4 * capacity, lot_size=128, critic_steps=1, learning_rate_init=4e-4,
        generator_learning_rate_init=4e-4, weight_decay=0.0, max_iter=epochs,
    ).fit(X, y)  # fmt: skip
    made_up, _ = model.sample(5_000, random_state=0)
    return model.epsilon_, inception_score(judge.predict_proba(made_up))


# A run with a clip that is hardly reached, and next to no noise, shows what is there without privacy.

not_private = run(EPOCHS[-1], clip=100.0, noise=1e-3)[1]
figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, SWEEPS.items(), strict=True):
    for value in values:
        epsilons, scores = zip(*(run(epochs, **{name: value}) for epochs in EPOCHS), strict=True)
        print(f"{name} {value:g}: epsilon {epsilons[-1]:.3g}, inception score {scores[-1]:.2f}")
        ax.semilogx(epsilons, scores, "o-", label=f"{value:g}")
    ax.axhline(not_private, color="black", linestyle="--", label="not private")
    ax.axhline(real, color="grey", linestyle=":", label="real test images")
    ax.set(xlabel="epsilon at delta = 1e-05", title=name)
    ax.legend(fontsize="small", frameon=False, loc="center")
axes[0].set_ylabel("inception score")
figure.savefig(sys.argv[1])
