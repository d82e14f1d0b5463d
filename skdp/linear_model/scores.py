"""Clipped second moments of the scores, for the sandwich estimator of least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.linalg import eigh

from skdp._checks.groups import Units
from skdp._checks.weights import weight_of_each
from skdp.mechanisms.bounded_sum import row_products
from skdp.mechanisms.gaussian import noise_ratio
from skdp.mechanisms.second_moments import Moments, MomentSum, UnitBall, sensitivity


class Noise(NamedTuple):
    """Standard deviations of the noise, in the units of rows of norm 1 and targets in [-1, 1].

    `gram` is that of a diagonal entry of the sum of u u'; entries off the diagonal have half of this variance.
    """

    gram: float
    product: float
    square: float


class Equations(NamedTuple):
    """Noisy sums of u u', u t and t**2 over rows of norm 1, and the public number of rows."""

    gram: np.ndarray
    product: np.ndarray
    square: float
    noise: Noise
    n: int

    @classmethod
    def of(cls, moments: Moments, size: float, target: float, noise: Noise, n: int) -> Self:
        """Return the equations from moments of z = (u, target * t) / sqrt(size)."""
        gram = symmetric(moments.gram)
        gram *= size
        return cls(gram[:-1, :-1], gram[-1, :-1] / target, float(gram[-1, -1]) / target**2, noise, n)

    @property
    def edge(self) -> float:
        """Edge of the spectrum of the noise on `gram`."""
        return self.noise.gram * math.sqrt(2.0 * len(self.gram))

    def residual_variance(self, theta: np.ndarray) -> float:
        """Mean squared residual, kept above its noise."""
        length = float(theta @ theta)
        product, gram = 2.0 * self.noise.product * math.sqrt(length), self.noise.gram * length
        deviation = math.hypot(self.noise.square, product, gram)
        squares = self.square - 2.0 * float(theta @ self.product) + float(theta @ self.gram @ theta)
        return max(squares, deviation) / self.n


def symmetric(lower: np.ndarray) -> np.ndarray:
    """Symmetric matrix with this lower triangle."""
    return np.tril(lower) + np.tril(lower, -1).T


def solve(equations: Equations, least: float, ridge: float, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    """Solve the equations, with eigenvalues of at least `least` and an L2 penalty on all but the intercept.

    The standard errors are those of `DPLinearRegression`.
    """
    noise = equations.noise
    values, vectors = eigh(equations.gram)
    positive = (vectors * np.maximum(values, least)) @ vectors.T
    penalty = np.full(len(positive), ridge)
    if intercept:
        penalty[-1] = 0.0
    inverse = np.linalg.inv(positive + np.diag(penalty))
    theta = inverse @ equations.product
    length = float(theta @ theta)
    residual = equations.residual_variance(theta)
    variances = residual * np.einsum("ij,jk,ik->i", inverse, positive, inverse, optimize=True)
    variances += (noise.product**2 + noise.gram**2 * length / 2.0) * np.einsum("ij,ij->i", inverse, inverse)
    variances += noise.gram**2 / 2.0 * (inverse @ theta) ** 2
    return theta, np.sqrt(variances)


SCORE_RATIO = noise_ratio(0.1)
"""Noise multiplier of the moments of scores over that of the moments of rows: they have 10% of mu squared."""


_CUT = 0.1
"""Squared entry of a unit with a clipped row, for a vector of norm 1."""

_ROWS = 2048


class ScoreRule(Protocol):
    """Definition of the scores of rows, by public and released quantities."""

    @property
    def width(self) -> int:
        """Length of a score."""

    @property
    def clip(self) -> float:
        """Norm to which scores are clipped."""

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Scores of rows, of shape (m, width)."""


class Scoring(NamedTuple):
    """Scores of least squares.

    A row z = (u, target * t) / sqrt(size) has the residual r = t - theta' u, and the score r u.
    """

    theta: np.ndarray
    size: float
    target: float
    clip: float

    @property
    def width(self) -> int:
        """Length of a score."""
        return len(self.theta)

    @classmethod
    def at(cls, theta: np.ndarray, equations: Equations, size: float, target: float, spread: float) -> Scoring:
        """Return scores at `theta`, with a clipping norm from the mean squared norm that the equations show.

        `spread` is the maximum weight of a record divided by the mean weight, at least 1. Without it, scores of records
        with the maximum weight would be clipped, and standard errors would be too small.
        """
        mean_square = equations.residual_variance(theta) * max(float(np.trace(equations.gram)), equations.edge)
        # Four roots of the mean squared norm that the first release shows.
        return cls(theta, size, target, 4.0 * spread * math.sqrt(mean_square / equations.n))

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Scores of rows z, of shape (m, d + 1), each computed from its own row alone.

        A matrix product would round differently by the position of a row.
        """
        z = rows.astype(np.float64) * math.sqrt(self.size)
        residuals = z[:, -1] / self.target - row_products(z[:, :-1], self.theta)
        return z[:, :-1] * residuals[:, None]


class ScoreMoments(NamedTuple):
    """Released moments of the scores.

    Attributes
    ----------
    meat : ndarray of shape (d, d)
        Noisy sum of s s' over rows or groups, where s is the clipped sum of scores of one.
    cut : float
        Noisy number of rows or groups with a clipped row or target.
    cut_deviation : float
        Standard deviation of its noise.
    """

    meat: np.ndarray
    cut: float
    cut_deviation: float


def is_longer(rows: Any, radius: float) -> np.ndarray:
    """Return which rows, of a matrix dense or sparse, are longer than `radius`."""
    found = np.empty(rows.shape[0], bool)
    for start in range(0, rows.shape[0], _ROWS):
        block = rows[start : start + _ROWS]
        block = (block if isinstance(block, np.ndarray) else block.toarray()).astype(np.float64)
        # Rounding of float32 is not taken for a cut.
        found[start : start + _ROWS] = np.linalg.norm(block, axis=1) > (1.0 + 1e-6) * radius
    return found


@dataclass(frozen=True, eq=False)
class ScoreQuery:
    """Query for the second moments of scores.

    Parameters
    ----------
    vectors : callable
        ``vectors(part)`` returns the z of a slice of the rows.
    how : ScoreRule
    """

    vectors: Callable[[slice], np.ndarray]
    how: ScoreRule

    def sensitivity(self, adjacency: str) -> float:
        """Return that of `skdp.mechanisms.second_moments.MomentSum`."""
        return sensitivity(0.0, adjacency)

    def new_sum(self, adjacency: str, pool: Any = None) -> ScoreSum:
        """Return an empty sum."""
        return ScoreSum(self)


class ScoreSum(MomentSum):
    """Sum of x x' over units, where x in the unit ball contains the clipped score and whether a row was clipped.

    Notes
    -----
    **Guarantees.** A unit adds x x' with a norm of x of at most 1 to the sum, for any rows, weights and definition of
    the scores. A unit of weight 0 adds nothing. The contribution of a unit depends on its own rows only.

    The sensitivity is that of `skdp.mechanisms.second_moments.MomentSum`, which also clips each x to the ball.
    """

    def __init__(self, query: ScoreQuery) -> None:
        super().__init__(UnitBall(np.zeros(query.how.width + 1), 1.0), 0.0, by_position=False)
        self._query = query

    def add(self, cut: np.ndarray, weights: Any = 1.0, units: Units | None = None) -> None:
        """Add all rows, given whether each row or its target exceeds its bound, and weights in [0, 1]."""
        (vectors, how), n = (self._query.vectors, self._query.how), len(cut)
        each = weight_of_each(weights, n)
        flags = cut & (each > 0.0)
        total = np.zeros((0 if units is None else units.n_units, how.width))
        for start in range(0, n, _ROWS):
            part = slice(start, start + _ROWS)
            scores = how.of_rows(vectors(part)) * each[part, None]
            if units is None:
                super().add(_into_ball(scores, flags[part], how.clip))
            else:
                np.add.at(total, units.codes[part], scores)
        if units is not None:
            of_units = np.zeros(units.n_units, bool)
            np.logical_or.at(of_units, units.codes, flags)
            super().add(_into_ball(total, of_units, how.clip))


def _into_ball(scores: np.ndarray, cut: np.ndarray, clip: float) -> np.ndarray:
    """The vectors x of scores, which are clipped, and of whether something was cut."""
    x = np.empty((len(scores), scores.shape[1] + 1))
    scale = math.sqrt(1.0 - _CUT) / np.maximum(np.linalg.norm(scores, axis=1), clip)
    np.multiply(scores, scale[:, None], out=x[:, :-1])
    x[:, -1] = math.sqrt(_CUT) * cut
    return x


def scores_of(noisy: Moments, deviation: float, clip: float) -> ScoreMoments:
    """Return released moments in the units of scores; `deviation` is that of the noise of a diagonal entry."""
    gram = symmetric(noisy.gram)
    return ScoreMoments(gram[:-1, :-1] * (clip**2 / (1.0 - _CUT)), float(gram[-1, -1]) / _CUT, deviation / _CUT)
