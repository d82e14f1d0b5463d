"""The plain reading of every kernel: row by row, in Python and float64, as a textbook would write it.

Slow and obvious on purpose. Nothing here imports a kernel, and no kernel was copied here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

WORDS = 2**64
BLOCK = 512  # words in a block of normals: 256 radii, then 256 angles

# --- random words ---


def log_unit(word: int) -> float:
    """log(U) of U = (2**64 - word) / 2**64, from exact integers."""
    word = int(word)
    if word < WORDS // 2:
        return math.log1p(-(word / WORDS))  # int / int is rounded once
    return math.log((WORDS - word) / WORDS)


def radius(word: int) -> float:
    """Rayleigh variate of a word."""
    return math.sqrt(-2.0 * log_unit(word))


def angle(word: int) -> float:
    """Angle of a word: bits 12 to 63 a point of [-45, 45) degrees, bits 0 and 1 the axis that it is measured from."""
    word = int(word)
    offset = ((word >> 12) / 2**52 - 0.5) * (math.pi / 2)
    negative, vertical = word & 1, word & 2
    if vertical:
        return math.pi / 2 - offset if not negative else offset - math.pi / 2
    return offset if not negative else math.pi - offset


def normals(words) -> np.ndarray:
    """Box and Muller (1958): in each block of 512 words the first half makes radii, the second half angles."""
    out = []
    for start in range(0, len(words), BLOCK):
        block = [int(word) for word in words[start : start + BLOCK]]
        pairs = list(zip(block[: BLOCK // 2], block[BLOCK // 2 :], strict=True))
        out += [radius(first) * math.cos(angle(second)) for first, second in pairs]
        out += [radius(first) * math.sin(angle(second)) for first, second in pairs]
    return np.array(out)


def poisson_rows(words, n: int, rate: float) -> list[int]:
    """Rows of a Bernoulli(rate) sample of range(n): a word for each row that is in, by the law of its gap."""
    rows, last = [], -1
    for word in words:
        passed_over = math.floor(min(log_unit(word) / math.log1p(-rate), n))
        last += 1 + passed_over
        if last >= n:
            return rows
        rows.append(last)
    raise ValueError("the words ended before the rows did")


# --- linear models ---


class Scaling(NamedTuple):
    """Public scaling of rows: clip to `radius`, then bring the row with its intercept's 1 into the unit ball."""

    radius: float
    fit_intercept: bool

    @property
    def unit(self) -> float:
        return 1.0 / math.sqrt(self.radius**2 + self.fit_intercept)


def scaled_row(x, scaling: Scaling) -> np.ndarray:
    """(x, 1), or x, clipped to the public norm and shrunk to norm at most 1."""
    x = np.asarray(x, np.float64)
    norm = math.hypot(*x)
    if norm > scaling.radius:
        x = x / norm * scaling.radius
    return np.append(x, 1.0)[: len(x) + scaling.fit_intercept] * scaling.unit


def probabilities(scores) -> np.ndarray:
    """Of the classes; of the second of two where there is one score."""
    if len(scores) == 1:
        z = scores[0]
        return np.array([1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))])
    e = np.exp(np.asarray(scores) - np.max(scores))
    return e / e.sum()


def loss(u, label: int, weight: float, table) -> float:
    """Negative log-likelihood of one scaled row."""
    scores = np.asarray(table) @ u
    if len(scores) == 1:
        return weight * float(np.logaddexp(0.0, scores[0]) - label * scores[0])
    return weight * float(np.logaddexp.reduce(scores) - scores[label])


def gradient(u, label: int, weight: float, table) -> np.ndarray:
    """Of `loss`, of shape (n_outputs, p)."""
    p = probabilities(np.asarray(table) @ u)
    truth = np.array([float(label)]) if len(p) == 1 else np.eye(len(p))[label]
    return np.outer(weight * (p - truth), u)


def clipped(g, max_norm: float) -> np.ndarray:
    """`g` if it is no longer than `max_norm`, else shortened to it."""
    norm = np.linalg.norm(g)
    return g if norm <= max_norm else g * (max_norm / norm)


def clipped_gradients(X, labels, weights, theta, n_outputs: int, scaling: Scaling, max_norm: float) -> np.ndarray:
    """One clipped gradient a row, of shape (n, n_outputs * p)."""
    table = np.asarray(theta, np.float64).reshape(n_outputs, -1)
    found = [
        clipped(gradient(scaled_row(x, scaling), int(label), float(weight), table), max_norm).ravel()
        for x, label, weight in zip(X, labels, weights, strict=True)
    ]
    return np.array(found).reshape(len(X), table.size)


# --- training ---


def dpsgd(
    X, labels, weights, n_outputs, scaling, *, lots, noises, max_norm, noise_std, divisor, learning_rate, momentum,
    penalty, average,
) -> np.ndarray:  # fmt: skip
    """Abadi et al. (2016), algorithm 1, with dampened momentum, an implicit L2 step and an average of the last half.

    `lots` holds the rows of each step and `noises` its standard normals.
    """
    theta = np.zeros(n_outputs * (X.shape[1] + scaling.fit_intercept))
    velocity, iterates = np.zeros_like(theta), []
    for lot, noise in zip(lots, noises, strict=True):
        rows = clipped_gradients(X[lot], labels[lot], weights[lot], theta, n_outputs, scaling, max_norm)
        noisy = (rows.sum(axis=0) + noise_std * noise) / divisor
        velocity = momentum * velocity + (1 - momentum) * noisy
        theta = (theta - learning_rate * velocity) / (1 + learning_rate * penalty)
        iterates.append(theta)
    return np.mean(iterates[len(iterates) // 2 :], axis=0) if average else theta


# --- second moments ---


def in_ball(x, center, radius: float) -> np.ndarray:
    """The row less the center, over the larger of its norm and the radius; zero where it is zero or overflows."""
    x = np.asarray(x, np.float64) - center
    norm = math.hypot(*x)
    if norm == 0.0 or not math.isfinite(norm):
        return np.zeros(len(x))
    return x / norm if norm > radius else x / radius


def moment_vector(x, weight: float) -> np.ndarray:
    """What one row of the ball adds: the lower triangle of x x' at its Frobenius norm, and weight times x."""
    d = len(x)
    triangle = [x[i] * x[j] * (1.0 if i == j else math.sqrt(2.0)) for i in range(d) for j in range(i + 1)]
    return np.append(triangle, weight * np.asarray(x)) if weight else np.array(triangle)


def gram_release(X, center, radius: float, weight: float, noise) -> np.ndarray:
    """Sum of the rows' vectors, one row after the other, plus `noise`."""
    total = np.array(noise, np.float64)
    for x in X:
        total += moment_vector(in_ball(x, center, radius), weight)
    return total
