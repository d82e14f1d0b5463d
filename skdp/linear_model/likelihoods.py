"""Likelihoods of which one row says no more than a vector of norm 1: score and curvature, released together."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from skdp._typing import Doubles

_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(40)
_MASSES = _MASSES / _MASSES.sum()


class Likelihood:
    """A likelihood of targets t, given the linear predictors eta of a row z of norm at most 1.

    Targets are in [0, 1], and there is one predictor, but for `Multinomial`.

    Attributes
    ----------
    against : ndarray of shape (n_lines, n_lines)
        Of which lines the coefficients that are told of consist.
    curvature_weight : float
        The factor c by which the curvature is multiplied in a release.
    first_eta : float
        Of all rows in the first step.
    rows_of_slope : float
        Rows that a slope of 1 in the sum of all is worth, where a normal law of estimates needs as many.

    Notes
    -----
    **Guarantees.** A row adds its score (t - mean) z and c slope z z' to a release: a vector of norm at most 1,
    whatever the row, its target and the coefficients are, so that nothing is ever clipped.
    """

    against: Doubles = np.eye(1)
    curvature_weight: float
    first_eta: float
    rows_of_slope: float

    @property
    def n_lines(self) -> int:
        """How many linear predictors there are."""
        return len(self.against)

    def mean(self, eta: Doubles) -> Doubles:
        """Return the mean of t."""
        raise NotImplementedError

    def slope(self, mean: Doubles) -> Doubles:
        """Return the derivative of the mean by eta, which is also the curvature."""
        raise NotImplementedError

    def residuals(self, targets: Doubles, eta: Doubles) -> tuple[Doubles, Doubles]:
        """Return what z is multiplied by in the score, and z z' in the curvature.

        Shapes are those of `eta`, (m, n_lines), and (m, n_lines, n_lines).
        """
        mean = self.mean(eta)
        return targets[:, None] - mean, self.slope(mean)[:, :, None]

    def is_cut(self, eta: Doubles) -> NDArray[np.bool_]:
        """Return which rows have a mean that is cut at a bound: none."""
        return np.zeros(len(eta), bool)

    def is_beyond(self, targets: Doubles) -> NDArray[np.bool_]:
        """Return which targets may have been cut at a bound: none."""
        return np.zeros(len(targets), bool)

    def matched(self, curvature: Doubles, score: Doubles, intercept: float) -> Doubles:
        """Return the curvature where the means have the sum of the targets, from one beside a score: about the same.

        `intercept` is its entry in each z, the last one, and 0 where there is none.
        """
        return curvature

    def bias(self, variance: float) -> float:
        """Return the mean error of eta after a Newton step from coefficients whose eta has this variance: about 0."""
        return 0.0

    def clip(self, root_mean_square: float, one: float) -> float:
        """Return the norm at which scores are clipped for the sandwich: 1, which clips none.

        `root_mean_square` is that of scores, as the curvature shows it, and `one` is the target of a single event.
        """
        return 1.0

    def guess(self, mean: float, deviation: float) -> tuple[float, float]:
        """Return a factor of the coefficients of least squares, and the eta of the centre of the rows.

        The eta is that of a model with these coefficients if the scores of least squares are normal, as an average of
        columns is about, with this standard deviation, and the mean of t is `mean`.
        """
        raise NotImplementedError


class Logistic(Likelihood):
    """Classes 0 and 1.

    Notes
    -----
    **Guarantees.** See `Likelihood`; the curvature costs nothing.

    Proof. Let p be the probability of the class that a row has not, and ``l <= 1`` the norm of z. The squared norm is
    p**2 l**2 + c**2 p**2 (1 - p)**2 l**4, which is at most p**2 (1 + c**2 (1 - p)**2). With q = 1 - p, 1 less that is
    q (2 - q - 11 q (1 - q)**2) for c**2 = 11, and 11 q (1 - q)**2 + q is at most 1.987 for q in [0, 1]: it is greatest
    where 33 q**2 - 44 q + 12 = 0, at q = .382.
    """

    curvature_weight = math.sqrt(11.0)
    first_eta, rows_of_slope = 0.0, 4.0

    def mean(self, eta: Doubles) -> Doubles:
        """See `Likelihood`."""
        return np.asarray(expit(eta))

    def slope(self, mean: Doubles) -> Doubles:
        """See `Likelihood`."""
        return mean * (1.0 - mean)

    def guess(self, mean: float, deviation: float) -> tuple[float, float]:
        """See `Likelihood`: the factor is that of log-odds of 0, the least that there is.

        Steps from a guess that is too flat lead up to the estimates; those from one that is too steep may leave them
        for ever, as the mean has no slope there. A factor by the mean, or by a law of eta, is too steep for flags that
        few rows have.
        """
        factor = 1.0 / float(self.slope(np.array(0.5)))
        mean = min(max(mean, 0.01), 0.99)
        eta = brentq(lambda a: _MASSES @ expit(a + factor * deviation * _NODES) - mean, -200.0, 200.0)
        return factor, float(eta)


class Multinomial(Likelihood):
    """More than two classes; targets are their numbers.

    Notes
    -----
    With p the probabilities of the classes, e that of the target and V an orthonormal basis of what adds up to 0, the
    lines w of a row give the classes W w, W = V / sqrt(2). Then the score is W' (e - p) z, and the curvature W'
    (diag(p) - p p') W times z z'. No class is the first one here, and with two classes it is `Logistic`.

    **Guarantees.** See `Likelihood`; the curvature costs nothing.

    Proof. Let q be 1 - p of the target, and s and t the sums of the squares and cubes of the other p, which add up to
    q. As ``|z| <= 1``, the squared norm of both is at most N = (q**2 + s) / 2 + c**2 / 4 F, F being that of diag(p) - p
    p', which is a**2 + s - 2 a**3 - 2 t + (a**2 + s)**2 with a = 1 - q. Now t is at least (3 q s - q**3) / 2, as q**3 -
    3 q s + 2 t is six times the sum of products of three, and at least s**2 / q by Cauchy. c**2 is 4.

    With the first bound on t, N is convex in s. So for s in [q**2 / 2, q**2] it is at most what it is at one end. At
    q**2 it is q**2 + 4 q**2 (q - q**2)**2 / q**2, as with two classes, which is q**2 (1 + 4 (1 - q)**2) <= 1. At q**2
    / 2 it is q**2 + 9/4 q**2 (1 - q)**2, and 1 less that is (1 - q) (1 + q - 9/4 q**2 (1 - q)) >= 0. With the second
    bound the derivative of N by s is 3/2 + 2 a**2 - s (4 / q - 2), which is 3 (1 - q)**2 + 1/2 > 0 at q**2 / 2, and
    more for a smaller s: there N is at most what it is at q**2 / 2.
    """

    curvature_weight = 2.0
    first_eta, rows_of_slope = 0.0, 2.0  # of equal classes, about the rows of one

    def __init__(self, n_classes: int) -> None:
        shift = (1.0 + 1.0 / math.sqrt(n_classes)) / (n_classes - 1)
        basis = np.vstack([np.full(n_classes - 1, 1.0 / math.sqrt(n_classes)), np.eye(n_classes - 1)])
        basis[1:] -= shift  # a reflection, of which one column is left out
        self.classes = -basis / math.sqrt(2.0)
        self.against = self.classes[1:] - self.classes[0]

    def residuals(self, targets: Doubles, eta: Doubles) -> tuple[Doubles, Doubles]:
        """See `Likelihood`."""
        scores = np.stack([np.sum(eta * each, axis=1) for each in self.classes], axis=1)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        means = np.stack([np.sum(chances * each, axis=1) for each in self.classes.T], axis=1)
        slopes = np.einsum("ik,ka,kb->iab", chances, self.classes, self.classes) - means[:, :, None] * means[:, None, :]
        return self.classes[targets.astype(np.intp)] - means, slopes


class BoundedCounts(Likelihood):
    """Counts, in units of the largest, of which means are exponentials of eta, and of half the largest at most.

    Notes
    -----
    **Guarantees.** See `Likelihood`; the curvature costs nothing.

    Proof. Let m in [0, 1/2] be the mean, and ``l <= 1`` the norm of z. The squared norm is (t - m)**2 l**2 + c**2 m**2
    l**4, which is at most (t - m)**2 + c**2 m**2. This is convex in t and in m. So it is greatest where t is 0 or 1 and
    m is 0 or 1/2: with c**2 = 3 it is 0, 1, 1 and 1 there.
    """

    curvature_weight = math.sqrt(3.0)
    first_eta, rows_of_slope = math.log(0.5), math.inf

    def mean(self, eta: Doubles) -> Doubles:
        """See `Likelihood`."""
        return np.exp(np.minimum(eta, self.first_eta))

    def slope(self, mean: Doubles) -> Doubles:
        """See `Likelihood`."""
        return mean

    def is_cut(self, eta: Doubles) -> NDArray[np.bool_]:
        """See `Likelihood`."""
        return eta[:, 0] > self.first_eta

    def is_beyond(self, targets: Doubles) -> NDArray[np.bool_]:
        """See `Likelihood`: those at the largest count."""
        return targets >= 1.0

    def matched(self, curvature: Doubles, score: Doubles, intercept: float) -> Doubles:
        """See `Likelihood`: the means are the weights of the curvature."""
        means = max(float(curvature[-1, -1]), 1e-300) / intercept if intercept else math.inf
        return curvature * min(max(1.0 + float(score[-1]) / means, 0.5), 2.0)

    def bias(self, variance: float) -> float:
        """See `Likelihood`: of matched curvature, a step from e leads to e + 1 - exp(e), about -e**2 / 2."""
        return -variance / 2.0

    def clip(self, root_mean_square: float, one: float) -> float:
        """See `Likelihood`: where the largest count is far from the others, few scores are near 1."""
        return min(1.0, 4.0 * root_mean_square + 3.0 * one)

    def guess(self, mean: float, deviation: float) -> tuple[float, float]:
        """See `Likelihood`: of a normal eta, the mean exponential has the slope of itself."""
        mean = min(max(mean, 1e-4), 0.5)
        spread = min(deviation / mean, 2.0)
        return (spread / deviation if deviation > 1e-9 else 1.0 / mean), math.log(mean) - spread**2 / 2.0


class LikelihoodScores(NamedTuple):
    """How scores are made of rows (z, t), for the sandwich (`skdp.linear_model.scores.sum_scores`).

    `theta` has the coefficients of z, one line after the other.
    """

    theta: Doubles
    likelihood: Likelihood
    clip: float

    def of_rows(self, rows: NDArray[Any]) -> Doubles:
        """The scores of rows (z, t), of shape (m, d + 1), each of its own row alone, to the last bit."""
        z, t = rows[:, :-1], rows[:, -1]
        residuals, _ = self.likelihood.residuals(t, lines_of(z, self.theta))
        return (residuals[:, :, None] * z[:, None, :]).reshape(len(z), -1)


def lines_of(z: Doubles, theta: Doubles) -> Doubles:
    """The linear predictors of rows z, of shape (m, n_lines), each of its own row alone, to the last bit."""
    return np.stack([np.einsum("ij,j->i", z, each) for each in theta.reshape(-1, z.shape[1])], axis=1)


LIKELIHOODS: dict[str, Likelihood] = {"logistic": Logistic(), "poisson": BoundedCounts()}
"""By the name of the loss, if there is one line."""

__all__ = ["LIKELIHOODS", "BoundedCounts", "Likelihood", "LikelihoodScores", "Logistic", "Multinomial", "lines_of"]
