"""The plain reading of every kernel: row by row, in Python and float64, as a textbook would write it.

Slow and obvious on purpose. Nothing here imports a kernel, and no kernel was copied here.
"""

from __future__ import annotations

import datetime
import itertools
import math
from fractions import Fraction
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


def noisy(value, normals, scale: float, grid: float) -> tuple[np.ndarray, np.ndarray]:
    """Values with `scale` normals in units of a grid, rounded to the grid, number by number, by fractions.

    Also returned are the distances from a multiple of the grid, in units of the grid. As in the kernel, products are
    doubles.
    """
    found, distances = [], []
    for each, normal in zip(np.asarray(value).tolist(), np.asarray(normals).tolist(), strict=True):
        exact = Fraction(each) / Fraction(grid) + Fraction(normal * scale)
        found.append(float(round(exact) * Fraction(grid)))  # round: ties to even
        distances.append(abs(float(exact - round(exact))))
    return np.array(found), np.array(distances)


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


def binomial_distribution(size: int, rate: float) -> list[Fraction]:
    """P(X <= k) of the binomial law, k = 0, 1, ..., exact for the double `rate`."""
    q, below, found = Fraction(rate), Fraction(0), []
    for k in range(size + 1):
        below += math.comb(size, k) * q**k * (1 - q) ** (size - k)
        found.append(below)
    return found


def groups_of_rows(rows) -> tuple[list[int], list[int]]:
    """Number of the first row of each group of equal rows, and how many there are; a row is a sequence of bytes."""
    first: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        first.setdefault(row, number)
    return list(first.values()), [rows.count(rows[number]) for number in first.values()]


class Scaling(NamedTuple):
    """Public scaling of rows: clip to `radius`, then bring the row with its intercept's 1 into the unit ball."""

    radius: float
    fit_intercept: bool

    @property
    def unit(self) -> float:
        return 1.0 / math.sqrt(self.radius**2 + self.fit_intercept)


def readable(x) -> bool:
    """Whether a row is no null record for what it holds: NaN, infinity, or a norm beyond range."""
    return math.isfinite(math.hypot(*np.asarray(x, np.float64)))


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


def slopes(loss, at, step: float = 1e-4) -> np.ndarray:
    """The slope of a loss in each number of an array, by central differences."""
    at = at.astype(np.float64)
    found = np.zeros(at.shape)
    for cell in np.ndindex(at.shape):
        moved = np.zeros(at.shape)
        moved[cell] = step
        found[cell] = (loss(at + moved) - loss(at - moved)) / (2.0 * step)
    return found


def clipped(g, max_norm: float, longest: float = 0.0) -> np.ndarray:
    """`g`, shortened as a gradient of norm `longest`, or its own if that is longer, has to be to fit `max_norm`."""
    norm = max(np.linalg.norm(g), longest)
    return g if norm <= max_norm else g * (max_norm / norm)


def clipped_gradient(u, label: int, table, max_norm: float) -> np.ndarray:
    """Of one scaled row, flat: of two classes, both labels have the factor of the longer gradient."""
    both = [gradient(u, each, 1.0, table) for each in (0, 1)] if len(table) == 1 else []
    longest = max((float(np.linalg.norm(each)) for each in both), default=0.0)
    return clipped(gradient(u, label, 1.0, table), max_norm, longest).ravel()


def clipped_gradients(X, labels, weights, theta, n_outputs: int, scaling: Scaling, max_norm: float) -> np.ndarray:
    """One clipped gradient a row, times the weight of the row, of shape (n, n_outputs * p)."""
    table = np.asarray(theta, np.float64).reshape(n_outputs, -1)
    found = [
        float(weight) * clipped_gradient(scaled_row(x, scaling), int(label), table, max_norm)
        if readable(x)
        else np.zeros(table.size)
        for x, label, weight in zip(X, labels, weights, strict=True)
    ]
    return np.array(found).reshape(len(X), table.size)


def clip_for_products(max_norm: float, dtype, block: int, n_values: int) -> float:
    """What rows are clipped to so that a block's matrix product, rounded in any order, moves by `max_norm` only.

    Each of b products goes through b roundings, on both sides; results that are not normal lose the smallest normal
    number each; residuals are rounded once; what is float64 beside them is far below 32 roundings.
    """
    b, u, tiny = block, 0.5 * float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny)
    slack = (1.0 + u) * (1.0 + 2.0 * b * (b * u / (1.0 - b * u))) * (1.0 + 32.0 * 2.0**-53)
    return max(0.0, (max_norm - 4.0 * b * math.sqrt(n_values) * tiny) / slack)


# --- one-hot rows ---


def one_hot_row(levels, widths, weights, intercept: float) -> np.ndarray:
    """The row whose block b has its weight at ``levels[b]``, less its mean, and the intercept; of norm 1."""
    parts = []
    for level, width, weight in zip(levels, widths, weights, strict=True):
        block = np.zeros(width)
        block[level] = weight
        parts.append(block - block.mean())
    row = np.concatenate([*parts, [intercept]])
    return (row / np.linalg.norm(row))[: len(row) - (intercept == 0.0)]


def one_hot_levels(row, widths, weights):
    """Levels of a sparse row, given as indices and values: None unless it has just the weight of each block, once."""
    levels, start = [], 0
    entries = list(zip(*row, strict=True))
    for width, weight in zip(widths, weights, strict=True):
        inside = [(int(j) - start, value) for j, value in entries if start <= j < start + width]
        if len(inside) != 1 or inside[0][1] != weight:
            return None
        levels.append(inside[0][0])
        start += width
    return levels


def one_hot_clipped_gradients(rows, targets, weights, theta, n_outputs: int, max_norm: float, name: str, limit: float):
    """One clipped gradient a projected row, of shape (n, n_outputs * p); the loss `name` where it has one output."""
    table, found = np.asarray(theta, np.float64).reshape(n_outputs, -1), []
    for u, target, weight in zip(rows, targets, weights, strict=True):
        if n_outputs > 1 or name == "logistic":
            found.append(weight * clipped_gradient(u, int(target), table, max_norm))
        else:
            g = np.outer([residual(name, float(table[0] @ u), float(target), limit)], u)
            found.append(weight * clipped(g, max_norm).ravel())
    return np.array(found).reshape(len(rows), table.size)


# --- training ---


def dpsgd(
    X, labels, weights, n_outputs, scaling, *, lots, noises, max_norm, noise_std, grid, divisor, learning_rate,
    momentum, penalty, average,
) -> np.ndarray:  # fmt: skip
    """Abadi et al. (2016), algorithm 1, with dampened momentum, an implicit L2 step and an average of the last half.

    `lots` holds the rows of each step and `noises` its standard normals; noisy sums are multiples of `grid`.
    """
    theta = np.zeros(n_outputs * (X.shape[1] + scaling.fit_intercept))
    velocity, iterates = np.zeros_like(theta), []
    for lot, noise in zip(lots, noises, strict=True):
        rows = clipped_gradients(X[lot], labels[lot], weights[lot], theta, n_outputs, scaling, max_norm)
        noisy = np.rint((rows.sum(axis=0) + noise_std * noise) / grid) * grid / divisor
        velocity = momentum * velocity + (1 - momentum) * noisy
        theta = (theta - learning_rate * velocity) / (1 + learning_rate * penalty)
        iterates.append(theta)
    return np.mean(iterates[len(iterates) // 2 :], axis=0) if average else theta


# --- second moments ---


def in_ball(x, center, radius: float) -> np.ndarray:
    """The row less the center, over the larger of its norm and the radius; zero where it is zero or overflows."""
    x = np.asarray(x, np.float64) - center
    norm = math.hypot(*x)
    if norm == 0.0 or not readable(x):
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


def least_squares_release(X, t, weights, radius: float, intercept: float, target: float) -> np.ndarray:
    """Sum of z z' over rows z = (row in the ball, intercept, target times t) of norm at most 1, one after the other."""
    size = math.sqrt(1.0 + intercept**2 + target**2)
    total = 0.0
    for x, each, weight in zip(X, t, weights, strict=True):
        kept = [] if intercept == 0.0 else [intercept]
        z = math.sqrt(weight) * np.concatenate([in_ball(x, np.zeros(len(x)), radius), kept, [target * each]]) / size
        total += moment_vector(z / max(1.0, np.linalg.norm(z)), 0.0)
    return total


def least_squares_solution(gram, product, least: float, ridge: float, intercept: bool) -> np.ndarray:
    """Coefficients of (row, intercept) by noisy normal equations, one eigenvalue after the other."""
    raised = np.zeros_like(gram)
    values, vectors = np.linalg.eigh(gram)
    for value, vector in zip(values, vectors.T, strict=True):
        raised += max(value, least) * np.outer(vector, vector)
    for i in range(len(gram) - intercept):
        raised[i, i] += ridge
    return np.linalg.solve(raised, product)


# --- naive Bayes ---


def naive_bayes_release(X, codes, n_classes: int, bounds, count_share: float) -> np.ndarray:
    """Count, sums of t and of t**2 - 1/2 of each class, row after row and column after column."""
    d = X.shape[1]
    total = np.zeros((n_classes, 1 + 2 * d))
    for x, code in zip(X, codes, strict=True):
        total[code, 0] += math.sqrt(count_share * d)
        for j in range(d):
            low, high = bounds[j]
            t = 2.0 * (min(max(x[j], low), high) - low) / (high - low) - 1.0
            total[code, 1 + j] += t
            total[code, 1 + d + j] += t**2 - 0.5
    return total


# --- dense networks ---

SUMMED_BLOCK = 128  # rows whose products are added up in the dtype of the rows


LIMITS = {"huber": 0.5, "poisson": 3.0}
"""Limits of the losses that have one, for tests."""


def loss_of_score(name: str, z: float, target: float, limit: float = math.inf) -> float:
    """Of one output: "logistic", "squared_error", "huber" (1964), or "poisson", a straight line where e**z > limit."""
    if name == "logistic":
        return float(np.logaddexp(0.0, z)) - target * z
    if name == "poisson":
        return (math.exp(z) if z <= math.log(limit) else limit * (1.0 + z - math.log(limit))) - target * z
    off = abs(z - target)
    if name == "huber" and off > limit:
        return limit * (off - limit / 2.0)
    return off**2 / 2.0


def residual(name: str, z: float, target: float, limit: float = math.inf) -> float:
    """Derivative of `loss_of_score` by the score."""
    if name == "logistic":
        return float(probabilities([z])[0]) - target
    if name == "poisson":
        return min(math.exp(min(z, 700.0)), limit) - target
    return max(-limit, min(limit, z - target)) if name == "huber" else z - target


class Network(NamedTuple):
    """Widths from input to output, the activation of the hidden layers, "softmax" or a loss of each output."""

    widths: tuple[int, ...]
    activation: str
    loss: str
    limit: float = math.inf

    @property
    def n_parameters(self) -> int:
        return sum((a + 1) * b for a, b in itertools.pairwise(self.widths))

    def tables(self, theta) -> list[np.ndarray]:
        """A layer's weights, and its intercepts as the last row."""
        cuts = np.cumsum([0] + [(a + 1) * b for a, b in itertools.pairwise(self.widths)])
        theta = np.asarray(theta, np.float64)
        return [
            theta[low:high].reshape(-1, b) for low, high, b in zip(cuts[:-1], cuts[1:], self.widths[1:], strict=True)
        ]


def activated(name: str, z) -> np.ndarray:
    if name == "relu":
        return np.array([max(value, 0.0) for value in z])
    if name == "tanh":
        return np.tanh(z)
    return 1.0 / (1.0 + np.exp(-z)) if name == "logistic" else z


def slope(name: str, z) -> np.ndarray:
    """Derivative of the activation at z."""
    if name == "relu":
        return np.array([1.0 if value > 0 else 0.0 for value in z])
    if name == "tanh":
        return 1.0 / np.cosh(z) ** 2
    return np.exp(-z) / (1.0 + np.exp(-z)) ** 2 if name == "logistic" else np.ones(len(z))


def input_row(x, radius: float, unit: float) -> np.ndarray:
    """x clipped to the public norm, then times `unit`: what the network sees."""
    x = np.asarray(x, np.float64)
    norm = math.hypot(*x)
    return (x / norm * radius if norm > radius else x) * unit


def layer_values(row, network: Network, theta) -> list[np.ndarray]:
    """Before activation, of each layer."""
    values, a = [], row
    for table in network.tables(theta):
        values.append(np.append(a, 1.0) @ table)
        a = activated(network.activation, values[-1])
    return values


def network_loss(row, target, weight: float, network: Network, theta) -> float:
    """Of one row: `target` is the number of a class for the softmax, else one number an output."""
    scores = layer_values(row, network, theta)[-1]
    if network.loss == "softmax":
        return weight * float(np.logaddexp.reduce(scores) - scores[target])
    return weight * sum(
        loss_of_score(network.loss, z, t, network.limit) for z, t in zip(scores, np.asarray(target, float), strict=True)
    )


def network_gradient(row, target, weight: float, network: Network, theta) -> list[np.ndarray]:
    """Of `network_loss`, a table a layer: backpropagation by hand (Rumelhart, Hinton & Williams 1986)."""
    tables, values = network.tables(theta), layer_values(row, network, theta)
    inputs = [row] + [activated(network.activation, z) for z in values[:-1]]
    if network.loss == "softmax":
        truth = np.eye(len(values[-1]))[target]
        delta = weight * (probabilities(values[-1]) - truth)
    else:
        pairs = zip(values[-1], np.asarray(target, float), strict=True)
        delta = weight * np.array([residual(network.loss, z, t, network.limit) for z, t in pairs])
    found = []
    for layer in range(len(tables) - 1, -1, -1):
        found.insert(0, np.outer(np.append(inputs[layer], 1.0), delta))
        if layer:
            delta = (tables[layer][:-1] @ delta) * slope(network.activation, values[layer - 1])
    return found


def clipped_layers(parts, kind: str, bounds, stretch: float = 1.0) -> np.ndarray:
    """A row's gradient, clipped and flat: "flat", "per_layer" or "automatic" (Bu et al. 2023, gamma = 0.01).

    Norms are taken to be longer by `stretch`.
    """
    if kind == "per_layer":
        found = [
            clipped(part, bound, stretch * np.linalg.norm(part)).ravel()
            for part, bound in zip(parts, bounds, strict=True)
        ]
        return np.concatenate(found)
    whole, max_norm = np.concatenate([part.ravel() for part in parts]), math.hypot(*bounds)
    norm = stretch * np.linalg.norm(whole)
    return clipped(whole, max_norm, norm) if kind == "flat" else whole * (max_norm / (norm + 0.01))


def stretch_of_labels(target, scores, network: Network) -> float:
    """By what the gradient of a row of one output is longer with the other label, if it is."""
    if network.loss != "logistic" or len(scores) > 1:
        return 1.0
    p, own = probabilities(scores)[0], abs(probabilities(scores)[0] - float(np.ravel(target)[0]))
    return max(p, 1.0 - p) / own if own else 1.0


def room_for_rounding(dtype, widths) -> float:
    """What C is divided by so that a sum of 128 rows, rounded, moves by C only: each of b products errs by u C, each
    of b - 1 additions by u times a partial sum, on both sides; norms of w numbers by u (w + 8)."""
    b, unit_roundoff = SUMMED_BLOCK, 0.5 * float(np.finfo(dtype).eps)
    return 1.0 + unit_roundoff * (b * (b + 3) + max(widths) + 8)


def product(rows, table) -> np.ndarray:
    """Of two matrices, an element at a time."""
    found = np.empty((len(rows), table.shape[1]))
    for i, j in np.ndindex(found.shape):
        found[i, j] = math.fsum(float(a) * float(b) for a, b in zip(rows[i], table[:, j], strict=True))
    return found


def summed_outer_products(left, right) -> np.ndarray:
    """Sum over rows of the outer products of the rows of two arrays."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for a, b in zip(np.asarray(left, float), np.asarray(right, float), strict=True):
        total += np.outer(a, b)
    return total


def network_clipped_gradients(X, targets, weights, theta, network: Network, kind: str, bounds, *, radius, unit):
    """One clipped gradient a row, times the weight of the row, of shape (n, p)."""
    found = np.zeros((len(X), network.n_parameters))
    for i, (x, target, weight) in enumerate(zip(X, targets, weights, strict=True)):
        if readable(x):
            row = input_row(x, radius, unit)
            parts = network_gradient(row, target, 1.0, network, theta)
            stretch = stretch_of_labels(target, layer_values(row, network, theta)[-1], network)
            found[i] = float(weight) * clipped_layers(parts, kind, bounds, stretch)
    return found


# --- optimisers and averages ---


def adam(theta, gradients, rates, *, beta_1, beta_2, adam_epsilon, penalty=0.0):
    """Iterates of Adam (Kingma & Ba 2015, algorithm 1)."""
    m = v = np.zeros_like(theta)
    iterates = []
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        root = np.sqrt(v / (1 - beta_2**t))
        theta = (theta - rate * (m / (1 - beta_1**t)) / (root + adam_epsilon)) / (1 + rate * penalty)
        iterates.append(theta)
    return iterates


def tail_mean(iterates, n_steps: int):
    """Of those of the second half of `n_steps` that there are, or the last of all."""
    tail = iterates[n_steps // 2 :]
    return np.mean(tail, axis=0) if len(tail) else iterates[-1]


def ema(iterates, n_steps: int):
    """Weights 1, d, d**2, ... from the last backwards, d = 1 - 10 / n_steps, that sum to one."""
    decay = max(0.0, 1.0 - 10.0 / n_steps)
    weights = decay ** np.arange(len(iterates) - 1.0, -1.0, -1.0)
    return weights @ np.array(iterates) / weights.sum()


# --- estimated columns ---


def joint_estimate(cells):
    """What each of the finest cells holds, by weighted least squares from the counts of all nested partitions."""
    finest, rows, counts, weights = cells, [], [], []
    while cells is not None:
        for i in range(len(cells.counts)):
            low = -np.inf if i == 0 else cells.breaks[i - 1]
            high = np.inf if i == len(cells.breaks) else cells.breaks[i]
            left = np.concatenate([[-np.inf], finest.breaks])
            right = np.concatenate([finest.breaks, [np.inf]])
            rows.append(((left >= low) & (right <= high)).astype(float))
            counts.append(cells.counts[i])
            weights.append(cells.variances[i] ** -0.5)
        cells = cells.within
    weights = np.array(weights)
    return np.linalg.lstsq(np.array(rows) * weights[:, None], np.array(counts) * weights, rcond=None)[0]


def best_partition(mass, n_bins, least):
    """Places that cut `mass` into at most n_bins parts of `least` or more, with the least sum of squares."""
    best, found = np.inf, []
    for number in range(n_bins):
        for places in itertools.combinations(range(1, len(mass)), number):
            parts = [part.sum() for part in np.split(mass, places)]
            cost = sum(part * part for part in parts)
            if min(parts) >= least and cost < best:
                best, found = cost, list(places)
    return found


# --- columns of a table ---


def vectorized_row(row, schema, numbers, n_bins):
    """What DPTableVectorizer makes of one row, a dict of cells, by a schema as ``to_dict`` writes it."""
    made = []
    for name, column in schema.items():
        if column["kind"] != "drop":
            made += _vectorized_cell(row[name], column, numbers, n_bins)
    return made


def _vectorized_cell(cell, column, numbers, n_bins):
    key = cell_key(cell)
    key = None if key in column.get("missing_values", ()) else key
    kind = column["kind"]
    if kind == "flag":
        true, false = ("1", "true", "yes", "y", "t", "on"), ("0", "false", "no", "n", "f", "off")
        found = -1 if key is None else 1 if key.lower() in true else 0 if key.lower() in false else -1
        return [float(found == 0), float(found == 1), float(found == -1)]
    if kind in ("category", "ordinal"):
        listed = column["categories"]
        place = len(listed) + 1 if key is None else listed.index(key) if key in listed else len(listed)
        levels = [float(place == level) for level in range(len(listed) + 2)]
        if kind == "category" or numbers == "bins":
            return levels
        inside = place < len(listed)
        scaled = 2.0 * place / max(1, len(listed) - 1) - 1.0 if inside else 0.0
        return [*levels, scaled] if numbers == "both" else [scaled, *levels[-2:]]
    value = cell_days(cell) if kind == "date" else cell_number(cell)
    gaps = [cell_days(gap) if kind == "date" else cell_number(gap) for gap in column.get("missing_values", ())]
    if math.isnan(value) or value in gaps:
        return {"bins": [0.0] * n_bins + [1.0], "scale": [0.0, 1.0], "both": [0.0] * n_bins + [1.0, 0.0]}[numbers]
    low, high = (cell_days(end) if kind == "date" else float(end) for end in column["bounds"])

    def bend(x):
        return math.copysign(math.log1p(abs(x)), x) if column.get("scale") == "log" else x

    share = (bend(min(max(value, low), high)) - bend(low)) / (bend(high) - bend(low))
    # The last bin is closed, the others are open on the right; a share within rounding of an edge is not decided here.
    place = min(int(share * n_bins), n_bins - 1)
    bins = [float(place == each) for each in range(n_bins)] + [0.0]
    scaled = 2.0 * share - 1.0
    return {"bins": bins, "scale": [scaled, 0.0], "both": [*bins, scaled]}[numbers]


def leaves_from_left(left):
    """Leaves of a tree, from the left; a leaf is its own left child."""

    def below(node):
        return [node] if left[node] == node else [*below(left[node]), *below(left[node] + 1)]

    return below(0)


def leaves_of_row(codes, column, threshold, gaps_right, first_word, words, left):
    """The leaf of a coded row in each tree, from the left: a gap of numbers is NaN, levels are whole numbers."""
    found = []
    for t in range(len(column)):
        node, leaves = 0, leaves_from_left(left[t])
        while node not in leaves:
            code = codes[column[t][node]]
            place = int(first_word[t][node])
            if place:  # a set of levels
                right = int(words[place + int(code) // 64]) >> int(code) % 64 & 1 == 1
            elif math.isnan(code):
                right = bool(gaps_right[t][node])
            else:
                right = bool(code >= threshold[t][node])
            node = left[t][node] + right
        found.append(leaves.index(node))
    return found


def cell_key(cell):
    """The text by which a cell is compared, None for a gap."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell == "":
        return None
    if isinstance(cell, bytes):
        return cell.decode()
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | np.bool_):
        return "True" if cell else "False"
    if isinstance(cell, datetime.date):
        day = cell_days(cell)
        return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=day)) if day == int(day) else cell.isoformat()
    if math.isnan(cell):
        return None
    return str(int(cell)) if float(cell).is_integer() else repr(float(cell))


def cell_number(cell):
    """The cell as a number, NaN if it is none."""
    if isinstance(cell, str | bytes):
        try:
            return float(cell)
        except ValueError:
            return math.nan
    return math.nan if cell_key(cell) is None else float(cell)


def cell_days(cell):
    """Days since 1970 in UTC, NaN if the cell is no date."""
    if isinstance(cell, str):
        try:
            cell = datetime.datetime.fromisoformat(cell)
        except ValueError:
            return math.nan
    if not isinstance(cell, datetime.date) or type(cell).__name__ == "NaTType":
        return math.nan
    if not isinstance(cell, datetime.datetime):
        return float((cell - datetime.date(1970, 1, 1)).days)
    aware = cell if cell.tzinfo else cell.replace(tzinfo=datetime.UTC)
    return aware.timestamp() / 86400.0


def interactions(rows, columns, levels) -> np.ndarray:
    """Sum over rows of the product, over some columns, of the unit vector of the row's level less 1 / its length."""
    total = np.zeros([levels[j] for j in columns])
    for row in rows:
        tensor = np.ones(())
        for j in columns:
            tensor = np.multiply.outer(tensor, np.eye(levels[j])[row[j]] - 1.0 / levels[j])
        total += tensor
    return total


def distance_of_pair(rows, pair, expected) -> float:
    """Sum over cells of how far the number of rows is from the expected one."""
    counts = np.zeros(expected.shape)
    for row in rows:
        counts[row[pair[0]], row[pair[1]]] += 1
    return float(sum(abs(counts[cell] - expected[cell]) for cell in np.ndindex(counts.shape)))


def mixture_loss(components, levels, pairs, triples, weight_of_triples) -> float:
    """Half the squared errors of the tables of a mixture of products, given as a list of components of columns."""

    def table(columns):
        total = np.zeros([levels[j] for j in columns])
        for component in components:
            product = np.ones(())
            for j in columns:
                product = np.multiply.outer(product, component[j])
            total += product / len(components)
        return total

    errors = [((table(columns) - wanted) ** 2).sum() for columns, wanted in pairs.items()]
    errors += [weight_of_triples * ((table(columns) - wanted) ** 2).sum() for columns, wanted in triples.items()]
    return len(components) * sum(errors) / 2


# --- mixtures within classes ---


def class_mixture_releases(
    X, codes, n_classes, n_components, bounds, directions, noisy, deviations, n, weights=None
) -> list:
    """The first values that are released of rows with classes, row by row, each by the noisy ones before it.

    These are the sum of all rows, counts, sums of the classes, and the Gram matrix of residuals; for one component a
    class also its moments. Each row counts by its weight in [0, 1], if there are weights: their sum is released then.
    """
    (low, high), d = bounds, X.shape[1]
    rows = np.array([[(min(max(v, low), high) - low) / (high - low) - 0.5 for v in x] for x in X])
    shares = np.ones(len(X)) if weights is None else weights
    found = [sum(share * x for share, x in zip(shares, rows, strict=True))]
    if weights is not None:
        factor = math.sqrt(d) / 6
        found = [np.append(found[0], factor * sum(weights))]
        n = min(max(noisy[0][d], deviations[0]) / factor, n)
    mean = np.clip(noisy[0][:d] / n, -0.5, 0.5)
    edges = [math.sqrt(d) * 2.0 ** ((i - 63) / 10) for i in range(64)]
    counts = np.zeros(n_classes + 64)
    for x, code, share in zip(rows, codes, shares, strict=True):
        counts[code] += share
        counts[n_classes + next((i for i in range(63) if np.linalg.norm(x - mean) <= edges[i]), 63)] += share
    found.append(counts)
    kept = [count if count > 2 * deviations[1] else 0.0 for count in noisy[1][n_classes:]]
    radius = (
        edges[next((i for i in range(64) if sum(kept[: i + 1]) >= 0.9 * sum(kept)), 63)] if sum(kept) else edges[-1]
    )
    sums = np.zeros((n_classes, d))
    for x, code, share in zip(rows, codes, shares, strict=True):
        sums[code] += share * in_ball(x, mean, radius)
    found.append(sums.ravel())
    sizes = np.maximum(noisy[1][:n_classes], 0.0)
    shifts = np.zeros((n_classes, d))
    for c, size in enumerate(np.maximum(sizes, max(deviations[1], 1.0))):
        shift = noisy[2].reshape(n_classes, d)[c] / size
        factor = max(0.0, 1.0 - d * (deviations[2] / size) ** 2 / (shift @ shift))
        shifts[c] = radius * shift * min(factor, 1.0 / np.linalg.norm(shift))
    least = np.maximum(sizes, 1.0)
    left = radius**2 - sum(w * (s @ s) for w, s in zip(least, shifts, strict=True)) / sum(least)
    inner = 0.78 * math.sqrt(max(left, 0.1 * radius**2))
    means = np.clip(mean + shifts, -0.5, 0.5)
    residuals = [x - means[code] for x, code in zip(rows, codes, strict=True)]
    inside = [in_ball(x, np.zeros(d), inner) for x in residuals]
    found.append(sum(share * moment_vector(x, 0.0) for x, share in zip(inside, shares, strict=True)))
    if n_components == 1:
        k = len(directions)
        moments = np.zeros((n_classes, 1 + k * (k + 1) // 2 + k))
        for x, code, share in zip(residuals, codes, shares, strict=True):
            point = in_ball(directions @ x, np.zeros(k), inner)
            moments[code, 0] += share * math.sqrt(0.05)
            moments[code, 1:] += share * math.sqrt(0.8) * moment_vector(point, math.sqrt(0.15 / 0.8))
        found.append(moments.ravel())
    return found


# --- a critic with a gradient penalty ---


def critic_score(tables, slope: float, x, label) -> float:
    """Score of one row: layers of leaky ReLU, each table's last row its intercepts; `label` follows the features."""
    values = [*map(float, x), *map(float, label)]
    for number, table in enumerate(tables):
        values = [
            sum(values[i] * float(table[i][j]) for i in range(len(values))) + float(table[-1][j])
            for j in range(len(table[0]))
        ]
        if number < len(tables) - 1:
            values = [value if value > 0 else slope * value for value in values]
    return values[0]


def critic_slopes(tables, slope: float, x, label) -> np.ndarray:
    """Gradient of the score by the features of one row: the matrices of all layers, one after the other."""
    values, product = np.array([*x, *label], float), np.eye(len(x) + len(label))[: len(x)]
    for number, table in enumerate(tables):
        values, product = values @ table[:-1] + table[-1], product @ table[:-1]
        if number < len(tables) - 1:
            factors = np.where(values > 0, 1.0, slope)
            values, product = values * factors, product * factors
    return product[:, 0]


def critic_loss(tables, slope: float, penalty: float, x, fake, share: float, label) -> float:
    """``f(fake) - f(x) + penalty (|g| - 1)**2`` with the gradient g at ``share x + (1 - share) fake``."""
    between = [share * a + (1 - share) * b for a, b in zip(x, fake, strict=True)]
    length = math.sqrt(sum(each * each for each in critic_slopes(tables, slope, between, label)))
    difference = critic_score(tables, slope, fake, label) - critic_score(tables, slope, x, label)
    return difference + penalty * (length - 1.0) ** 2


def critic_gradient(tables, slope: float, penalty: float, x, fake, share: float, label) -> np.ndarray:
    """Gradient of `critic_loss` by all parameters, layer by layer, by central differences."""
    tables = [np.array(table, float) for table in tables]
    found = []
    for table in tables:
        for place in np.ndindex(table.shape):
            kept = table[place]
            sides = []
            for step in (1e-5, -1e-5):
                table[place] = kept + step
                sides.append(critic_loss(tables, slope, penalty, x, fake, share, label))
            table[place] = kept
            found.append((sides[0] - sides[1]) / 2e-5)
    return np.array(found)


def convolution_score(tables, slope: float, mark: float, image, code) -> float:
    """Score of one image: three convolutions of 5 x 5 pixels, every other place, and a linear layer."""
    values = np.asarray(image, float)[:, :, None]
    for number, table in enumerate(tables[:-1]):
        height, width, channels = values.shape
        following = np.zeros((math.ceil(height / 2), math.ceil(width / 2), table.shape[1]))
        for y, x in np.ndindex(following.shape[:2]):
            for dy, dx in itertools.product(range(5), range(5)):
                row, column = 2 * y + dy - 2, 2 * x + dx - 2
                if 0 <= row < height and 0 <= column < width:
                    place = (5 * dy + dx) * channels
                    following[y, x] += values[row, column] @ table[place : place + channels]
            following[y, x] += table[-1]
            if number == 0 and code is not None:
                following[y, x] += mark * table[25 + code]
        values = np.where(following > 0, following, slope * following)
    return float(values.ravel() @ tables[-1][:-1, 0] + tables[-1][-1, 0])


# --- scattering ---


def morlet_filter(shape, j, angle, n_angles) -> np.ndarray:
    """A Morlet wavelet on a periodic grid, point by point: its copies on a grid of period `shape` added up."""
    sigma, frequency, slant = 0.8 * 2**j, 0.75 * math.pi / 2**j, 4.0 / n_angles
    theta = (n_angles // 2 - 1 - angle) * math.pi / n_angles
    direction, normal = (math.cos(theta), math.sin(theta)), (-math.sin(theta), math.cos(theta))
    wave, bump = np.zeros(shape, complex), np.zeros(shape)
    for place in itertools.product(*map(range, shape)):
        for copies in itertools.product(range(-2, 3), repeat=2):
            u = [p + c * n for p, c, n in zip(place, copies, shape, strict=True)]
            along, across = (sum(a * b for a, b in zip(u, axis, strict=True)) for axis in (direction, normal))
            height = math.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2)) * slant / (2 * math.pi * sigma**2)
            wave[place] += height * complex(math.cos(frequency * along), math.sin(frequency * along))
            bump[place] += height
    return wave - wave.sum() / bump.sum() * bump


def gaussian_filter(shape, n_scales) -> np.ndarray:
    """The low-pass on a periodic grid, point by point."""
    sigma, made = 0.8 * 2 ** (n_scales - 1), np.zeros(shape)
    for place in itertools.product(*map(range, shape)):
        for copies in itertools.product(range(-2, 3), repeat=2):
            u = [p + c * n for p, c, n in zip(place, copies, shape, strict=True)]
            made[place] += math.exp(-(u[0] ** 2 + u[1] ** 2) / (2 * sigma**2)) / (2 * math.pi * sigma**2)
    return made


def band_limited(filter_, step) -> np.ndarray:
    """A filter for a grid of every `step`-th point: the lowest frequencies of its transform, and no others."""
    height, width = (n // step for n in filter_.shape)
    transform, kept = np.fft.fft2(filter_), np.zeros((height, width), complex)
    for k, m in itertools.product(range(-(height // 2), height // 2), range(-(width // 2), width // 2)):
        kept[k, m] = transform[k, m]
    return np.fft.ifft2(kept)


def sampled_convolution(plane, filter_, step) -> np.ndarray:
    """Every `step`-th point of a circular convolution, as the sum it is."""
    made = np.zeros(plane.shape, complex)
    for place in itertools.product(*map(range, plane.shape)):
        made += plane[place] * np.roll(filter_, place, axis=(0, 1))
    return made[::step, ::step]


def scattering(plane, n_scales, n_angles, max_order=2) -> np.ndarray:
    """Coefficients of one plane: means of the plane, of moduli, and of moduli of moduli, on a grid of every 2**J."""
    unit, padded = 2**n_scales, plane
    for axis, n in enumerate(plane.shape):
        total = ((n + unit) // unit + 1) * unit - n
        padded = np.pad(padded, [(total // 2, total - total // 2) if k == axis else (0, 0) for k in (0, 1)], "reflect")
    waves = [(j, morlet_filter(padded.shape, j, angle, n_angles)) for j in range(n_scales) for angle in range(n_angles)]
    mean = gaussian_filter(padded.shape, n_scales)

    def local_mean(values, j):
        return sampled_convolution(values, band_limited(mean, 2**j), 2 ** (n_scales - j)).real[1:-1, 1:-1]

    orders = [[local_mean(padded, 0)], [], []]
    for j, wave in waves:
        first = abs(sampled_convolution(padded, wave, 2**j))
        orders[1].append(local_mean(first, j))
        for k, other in waves:
            if k > j and max_order > 1:
                second = abs(sampled_convolution(first, band_limited(other, 2**j), 2 ** (k - j)))
                orders[2].append(local_mean(second, k))
    return np.array([*itertools.chain(*orders)])


# --- filters of patches ---


def patch_features(image, filters, offset, threshold, size, stride) -> np.ndarray:
    """Rectified responses of an image of shape (channels, height, width), averaged over its quarters, patch by patch.

    The result has the shape (2 * n_filters, 2, 2): responses above the threshold, then those below its negative.
    """
    _, height, width = image.shape
    tops, lefts = range(0, height - size + 1, stride), range(0, width - size + 1, stride)
    found = np.zeros((2 * filters.shape[1], 2, 2))
    for i, j in itertools.product(range(2), range(2)):
        rows = tops[: (len(tops) + 1) // 2] if i == 0 else tops[len(tops) // 2 :]
        columns = lefts[: (len(lefts) + 1) // 2] if j == 0 else lefts[len(lefts) // 2 :]
        for top, left in itertools.product(rows, columns):
            patch = image[:, top : top + size, left : left + size].ravel().astype(float)
            response = filters.T @ ((patch - patch.mean()) / math.sqrt(patch.var() + 0.003)) - offset
            found[:, i, j] += np.maximum(np.concatenate([response, -response]) - threshold, 0.0)
        found[:, i, j] /= len(rows) * len(columns)
    return found
