"""
MNIST with DP-SGD: the experiment of Abadi et al. (2016)
========================================================

Abadi et al. (2016) trained a network with one hidden layer of 1,000 units on a private projection of MNIST to 60
components. They used lots of 1% of the images, a clipping norm of 4, a learning rate that falls from 0.1 to 0.052 in
ten epochs, and noise multipliers (gradients, projection) of (8, 16), (4, 7) and (2, 4). With privacy loss
distributions, the same training has a smaller epsilon than with the moments accountant. If the environment variable
``SKDP_DATA`` is a folder with ``mnist.npz``, the example reproduces their sizes. Otherwise it uses the small digits of
scikit-learn and few epochs, which show the method but not its accuracy on MNIST.
"""

import os

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skdp import DPPCA, DPMLPClassifier
from skdp.accounting import compose, get_epsilon
from skdp.datasets import load_mnist

if "SKDP_DATA" in os.environ:
    digits = load_mnist(f"{os.environ['SKDP_DATA']}/mnist.npz")
    X, y, X_test, y_test = digits.data, digits.target, digits.test_data, digits.test_target
    k, hidden, epochs, published = 60, 1000, (29, 212, 704), (90, 95, 97)
else:
    pixels, labels = load_digits(return_X_y=True)
    X, y, X_test, y_test = pixels[:1500] / 16, labels[:1500], pixels[1500:] / 16, labels[1500:]
    k, hidden, epochs, published = 20, 50, (10, 10, 10), None

# %%
# Settings of the paper
# ---------------------
# Each epoch is one call of ``partial_fit``, and the privacy cost accumulates. The paper does not state the norm of the
# network's input; a norm of 5 reproduces its accuracy within half a percentage point.


def run(sigma, sigma_pca, n_epochs):
    """Yield the test accuracy in percent and the composed privacy event after each epoch."""
    pca = DPPCA(k, center=False, normalize=True, epsilon=None, noise_multiplier=sigma_pca, delta=1e-5).fit(X)
    network = DPMLPClassifier(
        (hidden,), epsilon=None, noise_multiplier=sigma, delta=1e-5, classes=range(10), max_grad_norm=4.0,
        lot_size=max(60, len(y) // 100), max_iter=1, momentum=0.0, average=None, data_norm=1.0, input_norm=5.0,
        learning_rate="linear",
    )  # fmt: skip
    for epoch in range(n_epochs):
        start, end = (0.1 - 0.048 * min(1.0, e / 10) for e in (epoch, epoch + 1))
        network.set_params(learning_rate_init=start, learning_rate_end=end).partial_fit(pca.transform(X), y)
        yield 100 * network.score(pca.transform(X_test), y_test), compose([pca.privacy_event_, network.privacy_event_])


settings = ((8, 16), (4, 7), (2, 4))
logs = [list(run(*noise, n_epochs)) for noise, n_epochs in zip(settings, epochs, strict=True)]

# %%
# Accuracy and privacy cost
# -------------------------
# The privacy cost is computed by the moments accountant of the paper and by privacy loss distributions (PLD).

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for i, (noise, log) in enumerate(zip(settings, logs, strict=True)):
    spent = {method: [get_epsilon(event, 1e-5, method=method) for _, event in log] for method in ("moments", "pld")}
    moments, pld = spent["moments"][-1], spent["pld"][-1]
    print(f"sigma {noise}: accuracy {log[-1][0]:.1f}%, epsilon {moments:.3f} (moments) and {pld:.3f} (PLD)")
    left.plot(range(1, len(log) + 1), [accuracy for accuracy, _ in log], color=f"C{i}", label=f"sigma {noise}")
    for line, style in zip(spent.values(), (":", "-"), strict=True):
        right.plot(range(1, len(log) + 1), line, style, color=f"C{i}")
    if published:  # of all of MNIST, after as many epochs
        left.plot(len(log), published[i], "o", color=f"C{i}", label=f"published, sigma {noise}")
left.set(xlabel="epoch", ylabel="test accuracy, %", title=f"{len(y):,} digits")
right.set(
    xlabel="epoch",
    ylabel="epsilon at delta = 1e-05",
    title="Privacy cost: moments (dotted), PLD (solid)",
    ylim=(0, None),
)
left.legend(fontsize="small", frameon=False)
plt.show()
