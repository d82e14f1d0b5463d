"""Derivatives of the losses with respect to the scores, and gradient clipping for linear models.

With score z and target t, the residual of a row is the derivative of its loss with respect to z:

- `LOGISTIC`: loss log(1 + e**z) - t z, derivative 1 / (1 + e**-z) - t, in [-1, 1] for t in [0, 1]; one per output.
- `MULTINOMIAL`: log(sum of e**z_k) - z_t, derivative softmax(z) less 1 at the label, of norm at most sqrt(2).
- `SQUARED`: (z - t)**2 / 2, derivative z - t, unbounded.
- `HUBER`: the same up to \\|z - t\\| = `limit` and linear beyond (Huber 1964), derivative z - t clipped to
  `limit`.
- `POISSON`: e**z - t z up to e**z = `limit` and linear beyond, derivative min(e**z, limit) - t. The loss is
  convex, and a Poisson likelihood if the mean e**z is below `limit`, the public bound on counts. Its derivative is in
  [-t, limit - t], whereas e**z is unbounded.

**Clipping and labels.** With two classes, the clipping factor of a row is that of the longer of its gradients with
either label: ``min(1, C / (R \\|u\\|))``, with R the larger \\|r\\|. The factor of the row's own gradient is at least
as large, so no row exceeds C. But it would depend on the label: rows of a rare class, which are far from the
prediction, would be shortened most. Sums of such gradients vanish at biased probabilities: for a true probability p
below 1/2 and a small C, at C p / (1 - p). A factor that depends only on row and model is a weight of the row, and
weighted sums vanish at the true probabilities for any C (Fisher consistency of a weighted likelihood). This holds for
linear models and for networks with one output, whose gradient is the residual times a factor that does not depend on
the label. With more classes, the norm of the row's own gradient is used, and C is large. If most rows are easy, as for
images, a factor for the worst of many labels would shorten them too much (half a point of accuracy on MNIST), and a
large C has little bias.

**Requirements.** The whole gradient is clipped. Its norm is \\|r\\| \\|u\\| with the residuals r and the row u (a
function of both for each layer of a network). Clipping requires only that r is a function of the scores, the target and
the weight of the row, and that NaN and infinity are detected. Every derivative here is NaN if a score is NaN, because
comparisons are written so that NaN passes. An infinite score leads to NaN or infinity in `MULTINOMIAL`, to infinity in
`SQUARED`, and to a number in the three others, whose derivatives have this limit. A row whose residuals are not finite
is zeroed out by the clipping: by `clip_residuals` here, and by `skdp._kernels.dense.clip_factors` for networks. Weights
in [0, 1] multiply the clipped gradient, so the norm is at most C, and rows keep their proportions if all are clipped.

`skdp._kernels.linear` computes the logistic and multinomial residuals in its own loops, because kernels do not call
kernels of other files. ``fastmath`` is off.
"""

from __future__ import annotations

import math

import numpy as np

from skdp._kernels.caching import njit

LOGISTIC, MULTINOMIAL, SQUARED, HUBER, POISSON = 0, 1, 2, 3, 4
LOSSES = {
    "logistic": LOGISTIC, "softmax": MULTINOMIAL, "squared_error": SQUARED, "huber": HUBER, "poisson": POISSON,
}  # fmt: skip

_SMALLEST_NORMAL = 2.2250738585072014e-308  # below, numbers lose digits, and with them the clip


@njit
def _derivative(loss, score, target, limit):
    """Derivative of a loss of one score; NaN stays NaN."""
    if loss == LOGISTIC:
        return 1.0 / (1.0 + np.exp(-score)) - target  # exp may overflow to infinity: the quotient is 0
    if loss == POISSON:
        mean = np.exp(score)
        return (limit if mean > limit else mean) - target
    difference = score - target
    if loss == HUBER:
        difference = limit if difference > limit else difference
        difference = -limit if difference < -limit else difference
    return difference


# --- linear models: an array of scores for each output ---


@njit
def residuals(loss, scores, targets, limit):
    """Replace scores by the derivatives of the loss by them.

    Parameters
    ----------
    loss : int
        Any but `MULTINOMIAL`.
    scores : ndarray of shape (1, m), float64
        Read and written.
    targets : ndarray of shape (m,)
        0 and 1 for `LOGISTIC`, numbers for the others.
    limit : float
        Of `HUBER` and `POISSON`, see above.
    """
    for i in range(scores.shape[1]):
        scores[0, i] = _derivative(loss, scores[0, i], targets[i], limit)


@njit
def multinomial_residuals(scores, labels):
    """Replace scores, of shape (n_outputs, m), by the derivatives of the multinomial loss by them.

    `labels`, of shape (m,), are the numbers of the classes. A kernel of its own: one loss is compiled, not both.
    """
    n_outputs, m = scores.shape
    highest, total = np.full(m, -np.inf), np.zeros(m)
    for k in range(n_outputs):
        for i in range(m):
            highest[i] = max(highest[i], scores[k, i])  # subtracted below, so that no exponential overflows
    for k in range(n_outputs):
        for i in range(m):
            scores[k, i] = np.exp(scores[k, i] - highest[i])
            total[i] += scores[k, i]
    for k in range(n_outputs):
        for i in range(m):
            truth = 1.0 if labels[i] == k else 0.0
            scores[k, i] = scores[k, i] / total[i] - truth


@njit
def _norm(values):
    """Euclidean norm, without overflow or underflow on the way; infinity where a value is NaN or infinite."""
    top = 0.0
    for k in range(len(values)):
        if not abs(values[k]) < np.inf:
            return np.inf
        top = max(top, abs(values[k]))
    if len(values) == 1 or top == 0.0:
        return top
    square = 0.0
    for k in range(len(values)):
        square += (values[k] / top) ** 2
    return top * math.sqrt(square)


@njit
def clip_residuals(loss, residuals, lengths, weights, max_norm):
    """Shorten residuals so that no gradient, a residual times its row, is longer than `max_norm`, and weigh them.

    Those of two classes are shortened as the longer of both labels would have to be; see the module's docstring.

    Parameters
    ----------
    loss : int
    residuals : ndarray of shape (n_outputs, m), float64
        Read and written. Those of a row with NaN or infinity among them become 0.
    lengths : ndarray of shape (m,), float64
        Norms of the rows, or upper bounds on them.
    weights : ndarray of shape (m,), float64
        In [0, 1].
    max_norm : float
        C.

    Notes
    -----
    **Guarantees.** The clipped residual has a norm of at most C (1 + 8 u) / length over the outputs, u = 2**-53.

    Proof. The size is at least that of the row's own norm. `_norm` of K numbers has a relative error of at most (K / 2
    + 4) u, and the products with the length and with `room` have one of u each: `room` makes the size at least the true
    one, denormal sizes apart, which are below C. The quotient and the product that follow have an error of u each. A
    factor below the normal numbers, which have lost digits, becomes 0, and so do denormal residuals and the quotient
    with a size of infinity. A weight in [0, 1] makes no residual larger: rounding keeps the order of numbers.
    """
    n_outputs, m = residuals.shape
    room = 1.0 + (n_outputs + 16) * 2.0**-52
    for i in range(m):
        size = _norm(residuals[:, i])
        if loss == LOGISTIC and size < 0.5:
            size = 1.0 - size  # with the other label
        size *= lengths[i] * room
        factor = 1.0 if size <= max_norm else max_norm / size
        kept = factor >= _SMALLEST_NORMAL
        for k in range(n_outputs):
            value = residuals[k, i] * factor * weights[i] if kept else 0.0  # infinity times 0 would be NaN
            residuals[k, i] = value if abs(value) >= _SMALLEST_NORMAL else 0.0


# --- networks: a row of scores for each row, in the dtype of the network, with targets looked up ---


@njit
def row_residuals(loss, scores, targets, rows, start, limit):
    """Replace scores by the derivatives of the loss of each output; for all but `MULTINOMIAL`.

    Parameters
    ----------
    loss : int
    scores : ndarray of shape (m, k)
        Read and written.
    targets : ndarray of shape (n, k)
    rows : ndarray of int64 or None
    start : int
        As for `skdp._kernels.dense.gather_rows`.
    limit : float
    """
    m, k = scores.shape
    for i in range(m):
        row = start + i if rows is None else rows[start + i]
        for j in range(k):
            scores[i, j] = _derivative(loss, scores[i, j], targets[row, j], limit)


@njit
def multinomial_row_residuals(scores, labels, rows, start):
    """Replace scores by the derivatives of the multinomial loss.

    Parameters
    ----------
    scores : ndarray of shape (m, k)
        Read and written.
    labels : ndarray of shape (n,), int64
    rows : ndarray of int64 or None
    start : int
        As for `skdp._kernels.dense.gather_rows`.
    """
    m, k = scores.shape
    for i in range(m):
        row = start + i if rows is None else rows[start + i]
        top = scores[i, 0]  # subtracted from all scores, so that no exponential overflows
        for j in range(1, k):
            top = max(top, scores[i, j])
        total = 0.0
        for j in range(k):
            scores[i, j] = np.exp(scores[i, j] - top)
            total += scores[i, j]
        scale = 1.0 / total
        for j in range(k):
            scores[i, j] *= scale
        scores[i, int(labels[row])] -= 1.0


@njit
def stretches(loss, residuals, stretch):
    """Write by what the gradient of each row is longer with the label that makes it longest.

    Parameters
    ----------
    loss : int
    residuals : ndarray of shape (m, k)
    stretch : ndarray of shape (m,), float64
        Written. At least 1, and 1 but for one output with two labels, or where its residual is 0.
    """
    for i in range(len(stretch)):
        own = abs(residuals[i, 0])
        one_of_two = loss == LOGISTIC and residuals.shape[1] == 1 and 0.0 < own < 0.5
        stretch[i] = (1.0 - own) / own if one_of_two else 1.0
