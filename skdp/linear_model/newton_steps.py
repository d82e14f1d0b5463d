"""Where noisy Newton steps lead, whether they settled, and what they are together: all of it post-processing."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from skdp.linear_model.equations import Equations, Noise
from skdp.linear_model.inference import solve_without_bias
from skdp.linear_model.likelihoods import Likelihood, OneLine

STEP_SHARES = (0.03, 0.03, 0.03, 0.03, 0.03, 0.05, 0.3, 0.5)
"""Fraction of mu**2 of all steps, for each step. The first one gives the starting point, and the last two are pooled.

From a guess that is too flat, a step changes log-odds by about 1. With five steps, log-odds of -6.2 were estimated as
-5.5, and 10% of the intervals covered them (13 events in a level, 20,000 rows, epsilon 1 and 4)."""

UNSETTLED = 0.1
"""Squared bias, over the variance, from which there are no intervals: at .3 of a standard error 94 % of them hold."""

_DAMPING = 0.7  # least eigenvalue of a step's curvature, over the edge
_FASTEST = 0.8  # fall of the logarithm of the curvature on the length of a move: it is doubled at most
_TOO_FAR = 0.25  # slope of the likelihood at the end of a step, over that at its beginning


def packed(matrix: np.ndarray) -> np.ndarray:
    """The lower triangle of a symmetric matrix as a vector of its Frobenius norm."""
    rows, columns = np.tril_indices(len(matrix))
    return matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))


def unpacked(vector: np.ndarray, width: int) -> np.ndarray:
    """The symmetric matrix of `packed`."""
    rows, columns = np.tril_indices(width)
    matrix = np.zeros((width, width))
    matrix[rows, columns] = matrix[columns, rows] = vector / np.where(rows == columns, 1.0, math.sqrt(2.0))
    return matrix


class Step(NamedTuple):
    """What one step released, at `theta`; `deviation` is that of the noise of an entry of the score.

    What follows from counts is in score and curvature.
    """

    theta: np.ndarray
    score: np.ndarray
    curvature: np.ndarray
    deviation: float
    counts: np.ndarray = np.empty(0)

    @classmethod
    def of(cls, theta: np.ndarray, released: np.ndarray, deviation: float, likelihood: Likelihood) -> Step:
        """Take a release of `BoundRows.sums` apart."""
        d = len(theta)
        score, matrix, counts = np.split(likelihood.longest * released, [d, d + d * (d + 1) // 2])
        if likelihood.n_counts:
            counts = counts / likelihood.count_weight
        whole = likelihood.completed(theta, score, unpacked(matrix, d) / likelihood.curvature_weight, counts)
        return cls(theta, *whole, likelihood.longest * deviation, counts)


class Pool(NamedTuple):
    """Steps as one, each weighted by its precision: coefficients are theta plus the solution of the equations."""

    theta: np.ndarray
    equations: Equations
    counts: np.ndarray

    @classmethod
    def of(cls, steps: list[Step], n: int, likelihood: Likelihood, intercept: float) -> Pool:
        """The pool of released steps; `n` is the public number of units, and `intercept` its entry in each z."""
        precisions = np.array([1.0 / each.deviation**2 for each in steps])
        weights = precisions / precisions.sum()
        theta = weights @ np.array([each.theta for each in steps])
        score = weights @ np.array([each.score for each in steps])
        matched = [likelihood.matched(each.curvature, each.score, intercept) for each in steps]
        curvature = np.tensordot(weights, np.array(matched), 1)
        deviation = 1.0 / math.sqrt(precisions.sum())
        noise = Noise(deviation / likelihood.curvature_weight, deviation, 0.0)
        counts = weights @ np.array([each.counts for each in steps])
        return cls(theta, Equations(curvature, score, 0.0, noise, n), counts)

    @property
    def trace_of_inverse(self) -> float:
        """The sum of the variances of such a move, for a noise of 1 in an entry of the score."""
        values = np.linalg.eigvalsh(self.equations.gram)
        return float(np.sum(1.0 / np.maximum(values, _DAMPING * self.equations.edge)))

    def damped(self, score: np.ndarray) -> np.ndarray:
        """The move of one more step of this score, in which eigenvalues are kept above the noise."""
        values, vectors = eigh(self.equations.gram)
        least = _DAMPING * self.equations.edge
        return (vectors / np.maximum(values, least)) @ (vectors.T @ score)


def first_guess(step: Step, likelihood: Likelihood, intercept: float, n: int) -> np.ndarray:
    """Return coefficients from one step at a constant mean, which is least squares on the scale of the model.

    `intercept` is the entry of the intercept in each z, 0 without one.
    """
    pool = Pool.of([step], n, likelihood, 0.0)
    if not intercept or likelihood.n_lines > 1 or likelihood.n_counts:
        theta = step.theta + pool.damped(step.score)
        chance = step.deviation**2 * pool.trace_of_inverse + len(theta)
        return likelihood.at_shares(theta, step.curvature, step.counts, chance)
    one_line = cast(OneLine, likelihood)
    mean = one_line.mean(np.array([one_line.first_eta]))
    slope = float(one_line.slope(mean)[0])
    gram = step.curvature / slope
    totals = gram[:, -1] / intercept
    noise = pool.equations.edge / slope
    count = max(float(totals[-1]) / intercept, noise / intercept**2)
    products = step.score + mean * totals
    average = float(np.clip(products[-1] / intercept / count, 0.0, 1.0))
    values, vectors = eigh(gram)
    inverse = (vectors / np.maximum(values, _DAMPING * noise)) @ vectors.T
    line = inverse @ (products - average * totals)
    centre = float(line @ totals) / count
    # What noise and sampling add to the variance of the scores of least squares is taken off twice: a guess that is
    # too flat is mended by the next step, one that is too steep is not.
    by_chance = (step.deviation**2 * float(np.trace(inverse)) + average * (1.0 - average) * len(line)) / count
    variance = max(0.0, float(line @ gram @ line) / count - centre**2 - 2.0 * by_chance)
    factor, eta = one_line.guess(average, math.sqrt(variance))
    theta = factor * line
    theta[-1] += (eta - factor * centre) / intercept
    return theta


def next_theta(steps: list[Step], likelihood: Likelihood, intercept: float, n: int) -> np.ndarray:
    """Return the coefficients after these steps: post-processing."""
    if len(steps) == 1:
        return first_guess(steps[0], likelihood, intercept, n)
    if len(steps) < len(STEP_SHARES):
        last = best_between(steps[-2], steps[-1])
        pool = Pool.of([last], n, likelihood, intercept)
        move = pool.damped(last.score)
        if likelihood.steepest < math.inf:
            move *= stretch(steps[-2], last, move, pool.equations.edge)
        return likelihood.allowed(last.theta, last.theta + move)
    pool, _ = settled_pool(steps, likelihood, intercept, n)
    theta = pool.theta + solve_without_bias(pool.equations)
    if intercept:
        theta[-1] -= bias_of_noise(steps, pool, likelihood, intercept) / intercept
    return likelihood.allowed(pool.theta, theta)


def best_between(before: Step, last: Step) -> Step:
    """Return the last step, or, where it went too far, what it would have released at the best place on the way to it.

    A step went too far where the likelihood falls at its end, in its own direction, at a quarter or more of what it
    rose by at its beginning. Between the two, the score is taken for the cubic that scores and curvatures at both ends
    tell (Hermite), and the curvature for their average.
    """
    move = last.theta - before.theta
    slopes = -before.curvature @ move, -last.curvature @ move

    def score(t: float) -> np.ndarray:
        s = 1.0 - t
        ends = s * s * (1.0 + 2.0 * t) * before.score + t * t * (1.0 + 2.0 * s) * last.score
        return ends + s * s * t * slopes[0] - s * t * t * slopes[1]

    if not float(last.score @ move) < -_TOO_FAR * float(before.score @ move) < 0.0:
        return last
    t = float(brentq(lambda t: float(score(t) @ move), 0.0, 1.0))
    curvature = (1.0 - t) * before.curvature + t * last.curvature
    return last._replace(theta=before.theta + t * move, score=score(t), curvature=curvature)


def stretch(before: Step, last: Step, move: np.ndarray, edge: float) -> float:
    """Return by how much a Newton move is too short, where the curvature falls on the way to it.

    It fell from the step before to the last one, by a factor of exp(-r) for each length of the move, and is taken to
    fall on, so that the score is 0 after -log(1 - r) / r of the move. What goes too far is taken back by the next step.
    """
    least = edge * float(move @ move)
    falls = [max(float(move @ each.curvature @ move), least) for each in (before, last)]
    lengths = float((last.theta - before.theta) @ last.curvature @ move) / falls[1]
    if lengths <= 0.0 or falls[1] >= falls[0]:
        return 1.0
    rate = min(math.log(falls[0] / falls[1]) / lengths, _FASTEST)
    return -math.log1p(-rate) / rate


def bias_of_noise(steps: list[Step], pool: Pool, likelihood: Likelihood, intercept: float) -> float:
    """Return the mean error of eta in the pool by the noise of the coefficients that its steps began with."""
    slopes = max(float(pool.equations.gram[-1, -1]), pool.equations.edge) / intercept**2
    values = np.maximum(np.linalg.eigvalsh(pool.equations.gram), pool.equations.edge)
    of_noise = float(np.sum(1.0 / values)) / slopes  # variance of eta, for a noise of 1 in a score
    precisions = np.array([1.0 / each.deviation**2 for each in steps[-2:]])
    biases = [likelihood.bias_of_variance * each.deviation**2 * of_noise for each in steps[-3:-1]]
    return float(precisions @ biases / precisions.sum())


def settled_pool(steps: list[Step], likelihood: Likelihood, intercept: float, n: int) -> tuple[Pool, bool]:
    """Return the pool that gives the estimates, and whether its bias is small beside the errors.

    The step before the last one leads to where the score is 0, but for its noise, and for a likelihood that is no
    parabola. So the last score is the noise of two steps, and that bias, b**2 where all errors have variance 1. If it
    is small in the pool, both steps are in it. Else the last step is alone: its own bias is of the second order, b**4
    over the curvature of all rows, of which there are n; of many classes, over that of the rarest. Where lines are
    steep, so that steps may not settle, a bias may be there that noise hides: as much as noise may be by chance counts.
    """
    before, last = steps[-2:]
    pool = Pool.of([before, last], n, likelihood, intercept)
    noise, (values, vectors) = pool.equations.noise, eigh(pool.equations.gram)
    precisions = 1.0 / (np.maximum(values, pool.equations.edge) + noise.product**2)
    moved = float(np.sum((last.theta - before.theta) ** 2))
    variance = before.deviation**2 + last.deviation**2
    variance += moved * (noise.gram / noise.product * before.deviation) ** 2
    root = np.sqrt(precisions)[:, None] * (vectors.T @ np.c_[np.eye(len(values)), likelihood.spread(last.theta)])
    of_noise = root @ root.T  # the covariance of the noise, where errors have variance 1
    by_noise, by_chance = variance * float(np.trace(of_noise)), variance * 32**0.5 * float(np.linalg.norm(of_noise))
    excess = max(0.0, float(precisions @ (vectors.T @ last.score) ** 2) - by_noise - by_chance)
    if is_steep(steps[0], last.theta, likelihood, n):
        excess += by_chance
    share = last.deviation**2 / (before.deviation**2 + last.deviation**2)  # of the step before, in the pool
    if share**2 * excess <= UNSETTLED:
        return pool, True
    many = likelihood.rows(pool.equations.gram, pool.counts, intercept) if likelihood.n_lines > 1 and intercept else n
    return Pool.of([last], n, likelihood, intercept), excess**2 <= UNSETTLED * max(many, 0.0)


def is_steep(first: Step, theta: np.ndarray, likelihood: Likelihood, n: int) -> bool:
    """Whether lines of many classes are steep, by the curvature of the first step, of equal probabilities."""
    if likelihood.steepest == math.inf:
        return False
    lines = theta.reshape(likelihood.n_lines, -1)
    moments = likelihood.row_moments(first.curvature)
    return float(np.einsum("ia,ab,ib->", lines, moments, lines)) > likelihood.steepest**2 * n
