"""Noisy normal equations, of which the noise is known, and their solution."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import eigh

from skdp.mechanisms.second_moments import Moments


class Noise(NamedTuple):
    """Standard deviations of the noise, in the units of rows of norm 1 and targets in [-1, 1].

    `gram` is that of a diagonal entry of the sum of u u'; those off the diagonal have a variance of half of it.
    """

    gram: float
    product: float
    square: float


class Solution(NamedTuple):
    """Coefficients of u, and their standard errors."""

    theta: np.ndarray
    errors: np.ndarray


class Equations(NamedTuple):
    """The noisy sums of u u', u t and t**2 over rows of norm 1, and the public number of rows."""

    gram: np.ndarray
    product: np.ndarray
    square: float
    noise: Noise
    n: int

    @classmethod
    def of(cls, moments: Moments, size: float, target: float, noise: Noise, n: int) -> Self:
        """The equations in moments of z = (u, target * t) / sqrt(size)."""
        gram = symmetric(moments.gram)
        gram *= size
        return cls(gram[:-1, :-1], gram[-1, :-1] / target, float(gram[-1, -1]) / target**2, noise, n)

    @property
    def edge(self) -> float:
        """Edge of the spectrum of the noise on `gram`."""
        return self.noise.gram * math.sqrt(2.0 * len(self.gram))

    def residual_variance(self, theta: np.ndarray) -> float:
        """The mean squared residual, no less than its noise."""
        length = float(theta @ theta)
        deviation = math.hypot(
            self.noise.square, 2.0 * self.noise.product * math.sqrt(length), self.noise.gram * length
        )
        squares = self.square - 2.0 * float(theta @ self.product) + float(theta @ self.gram @ theta)
        return max(squares, deviation) / self.n


def symmetric(lower: np.ndarray) -> np.ndarray:
    """The symmetric matrix of which this is the lower triangle."""
    return np.tril(lower) + np.tril(lower, -1).T


def solve(equations: Equations, least: float, ridge: float, intercept: bool) -> Solution:
    """Solve the equations, with eigenvalues of at least `least` and a ridge on all but the intercept.

    The errors are those of `DPLinearRegression`.
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
    return Solution(theta, np.sqrt(variances))


__all__ = ["Equations", "Noise", "Solution", "solve", "symmetric"]
