"""Likelihoods whose score and curvature of one row are bounded by norm 1 and released together."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple, Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from skdp.mechanisms.bounded_sum import row_products

_NODES, _MASSES = np.polynomial.hermite_e.hermegauss(40)
_MASSES = _MASSES / _MASSES.sum()

STEEPEST_CLASSES = 5.5
"""Root mean square of multiclass linear predictors above which a bias hidden by noise is assumed.

For 3 classes, 5,000 to 50,000 rows and epsilon 1 and 4, the coverage was 0.94 at 5.3 and at 5.7 (180 tables). With
20,000 rows and epsilon 1, one table in eight would have intervals at 7.6, with coverage 0.6; with this limit, none has.
With 50,000 rows and epsilon 4, all tables have intervals at 5.7 and half at 11, with coverage 0.94 and 0.96."""


class Likelihood(Protocol):
    """Likelihood of targets t, given the linear predictors eta of a row z of norm at most 1.

    Targets are in [0, 1], and there is one linear predictor, except for `Multinomial` and `Ordinal`.

    Attributes
    ----------
    against : ndarray of shape (n_lines, n_lines)
        Linear predictors that define the reported coefficients.
    curvature_weight : float
        Factor c of the curvature in a release.
    first_eta, first_slope : float
        Linear predictor of all rows in the first step, and the curvature of each row there.
    rows_of_slope : float
        Number of rows per unit of slope that normal intervals require.
    steepest : float
        Root mean square of the linear predictors beyond which noise may hide that the steps did not converge.
    count_weight : float
        Factor of the class counts in a release, 0 if there are none.
    n_counts : int
        Number of class counts.
    largest_eta, largest_target : float
        Linear predictor at which a mean is clipped, and target above which it may have been clipped; infinite if
        unbounded.
    bias_of_variance : float
        Mean error of eta after a Newton step from coefficients with eta of variance 1.

    Notes
    -----
    **Guarantees.** A row adds its score (t - mean) z and c slope z z' to a release. This vector has norm at most 1 for
    any row, target and coefficients, so no gradient is clipped.
    """

    against: np.ndarray = np.eye(1)
    curvature_weight: float
    first_eta: float = 0.0
    first_slope: float = 0.25
    rows_of_slope: float
    steepest: float = math.inf
    count_weight: float = 0.0
    n_counts: int = 0
    largest_eta: float = math.inf
    largest_target: float = math.inf
    bias_of_variance: float = 0.0
    most_noise: float = math.inf

    @property
    def n_lines(self) -> int:
        """Number of linear predictors."""
        return len(self.against)

    @property
    def n_blocks(self) -> int:
        """Number of coefficients per column."""
        return self.n_lines

    @property
    def longest(self) -> float:
        """Factor by which a row of norm 1 is divided, including counts."""
        return math.hypot(1.0, self.count_weight)

    def start(self, width: int, intercept: float) -> np.ndarray:
        """Return the coefficients of the first step; `intercept` is its entry in each z, 0 without one."""
        theta = np.zeros(self.n_blocks * (width - 1) + self.n_lines)
        if intercept:
            theta[-1] = self.first_eta / intercept
        return theta

    def form(self, units: np.ndarray) -> np.ndarray:
        """Return the matrix from coefficients of z, scaled by their units, to coefficients of x."""
        return np.asarray(np.kron(self.against, np.diag(units)), np.float64)

    def slopes(self, theta: np.ndarray, has_intercept: bool) -> np.ndarray:
        """Return the coefficients, with zeros for intercepts and thresholds."""
        lines = theta.reshape(self.n_lines, -1).copy()
        lines[:, -1] *= not has_intercept
        return lines.ravel()

    def lines(self, z: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Linear predictors of rows z, of shape (m, n_lines), each computed from its own row alone."""
        return np.stack([row_products(z, each) for each in theta.reshape(-1, z.shape[1])], axis=1)

    def scores(self, z: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """Scores of rows, of shape (m, n_coefs), each computed from its own row alone."""
        return (residuals[:, :, None] * z[:, None, :]).reshape(len(z), -1)

    def sums(
        self, z: np.ndarray, weights: np.ndarray, residuals: np.ndarray, slopes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The weighted sums of scores and curvatures, of shapes (n_coefs,) and (n_coefs, n_coefs)."""
        k, width = self.n_lines, z.shape[1]
        curvature = np.empty((k, width, k, width))
        for one, other in itertools.product(range(k), repeat=2):
            curvature[one, :, other] = (z * (weights * slopes[:, one, other])[:, None]).T @ z
        return ((weights[:, None] * residuals).T @ z).ravel(), curvature.reshape(k * width, k * width)

    def counted(self, targets: np.ndarray) -> np.ndarray:
        """Class indicators of each row, of shape (m, n_counts), or nothing."""
        return (targets.astype(np.intp)[:, None] == np.arange(self.n_counts)).astype(np.float64)

    def completed(
        self, theta: np.ndarray, score: np.ndarray, curvature: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return score and curvature with what follows from counts: as they are."""
        return score, curvature

    def spread(self, theta: np.ndarray) -> np.ndarray:
        """Contribution of the noise of the counts to the score, of shape (n_coefs, n_counts).

        It includes the noise of the curvature at the end of a move, at `theta`.
        """
        return np.empty((len(theta), self.n_counts))

    def rows(self, gram: np.ndarray, counts: np.ndarray, intercept: float) -> float:
        """Number of informative rows, whose class is not nearly certain, by released numbers.

        `intercept` is its entry in each z, 0 without one.
        """
        if not intercept:
            return math.inf
        k = self.n_lines
        block = gram.reshape(k, len(gram) // k, k, len(gram) // k)[:, -1, :, -1]
        return self.rows_of_slope * float(np.linalg.eigvalsh(block)[0]) / intercept**2

    def allowed(self, before: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Return admissible coefficients at or near `theta`: all are admissible."""
        return theta

    def at_shares(self, theta: np.ndarray, curvature: np.ndarray, counts: np.ndarray, chance: float) -> np.ndarray:
        """Return `theta` with thresholds that match the class proportions; there are none here.

        `curvature` is that of the first step, which determines the mean and variance of a linear predictor. `chance` is
        the contribution of noise and sampling to the variance, times the number of rows.
        """
        return theta

    def residuals(self, targets: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors of z in the score, and of z z' in the curvature.

        Shapes are those of `eta`, (m, n_lines), and (m, n_lines, n_lines).
        """

    def matched(self, curvature: np.ndarray, score: np.ndarray, intercept: float) -> np.ndarray:
        """Return the curvature at which the sum of the means matches the targets; approximately unchanged here.

        `intercept` is its entry in each z, the last one, and 0 where there is none.
        """
        return curvature

    def row_moments(self, gram: np.ndarray) -> np.ndarray:
        """Return the weighted sum of z z' over rows, from the curvature of the first step."""
        k = self.n_lines
        return np.einsum("jajb->ab", gram.reshape(k, len(gram) // k, k, len(gram) // k)) / self.first_slope

    def total_weight(self, gram: np.ndarray, counts: np.ndarray, intercept: float) -> float:
        """Return the sum of all weights, from the first step; without an intercept, a lower bound."""
        moments = self.row_moments(gram)
        return float(moments[-1, -1]) / intercept**2 if intercept else float(np.trace(moments))

    def clip(self, root_mean_square: float, one: float, spread: float, most: float) -> float:
        """Return the norm to which scores of records are clipped for the sandwich estimator; `most` clips none.

        `root_mean_square` is that of the scores according to the curvature, `one` is the target of a single event, and
        `spread` is the maximum weight of a record divided by the mean weight. A record has at most `most` rows.
        """
        return min(most, 4.0 * spread * root_mean_square + 1.0 + most * self.count_weight)


class OneLine(Likelihood, Protocol):
    """Likelihood with one linear predictor that determines the mean of t."""

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """Return the mean of t."""

    def slope(self, mean: np.ndarray) -> np.ndarray:
        """Return the derivative of the mean by eta, which is also the curvature."""

    def residuals(self, targets: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = self.mean(eta)
        return targets[:, None] - mean, self.slope(mean)[:, :, None]

    def guess(self, mean: float, deviation: float) -> tuple[float, float]:
        """Return a factor for the least squares coefficients, and the eta at the center of the rows.

        The eta holds for normally distributed least squares scores of this standard deviation, if the mean of t is
        `mean`.
        """


class Logistic(OneLine):
    """Binary logistic likelihood, with classes 0 and 1.

    Notes
    -----
    **Guarantees.** See `Likelihood`; the curvature has no additional privacy cost.

    Proof. Let p be the probability of the other class, and ``l <= 1`` the norm of z. The squared norm is p**2 l**2 +
    c**2 p**2 (1 - p)**2 l**4, which is at most p**2 (1 + c**2 (1 - p)**2). With q = 1 - p, 1 minus this is q (2 - q -
    11 q (1 - q)**2) for c**2 = 11, and 11 q (1 - q)**2 + q is at most 1.987 for q in [0, 1]: its maximum is at 33
    q**2 - 44 q + 12 = 0, at q = 0.382.
    """

    curvature_weight = math.sqrt(11.0)
    rows_of_slope = 4.0

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return np.asarray(expit(eta))

    def slope(self, mean: np.ndarray) -> np.ndarray:
        return mean * (1.0 - mean)

    def guess(self, mean: float, deviation: float) -> tuple[float, float]:
        """See `Likelihood`: the factor is that of log-odds of 0, the smallest one.

        Steps from too small coefficients converge to the estimates. Steps from too large coefficients may diverge,
        because the mean has no slope there. Larger factors, from the mean or the distribution of eta, are too large for
        rare indicator columns.
        """
        factor = 1.0 / float(self.slope(np.array(0.5)))
        return factor, _eta_of(min(max(mean, 0.01), 0.99), factor * deviation)


def _eta_of(mean: float, deviation: float) -> float:
    """The center of normal log-odds of this mean probability."""
    return float(brentq(lambda a: _MASSES @ expit(a + deviation * _NODES) - mean, -200.0, 200.0))


class Multinomial(Likelihood):
    """Multinomial logistic likelihood; targets are class indices.

    Notes
    -----
    Let p be the class probabilities, e the indicator of the target and V an orthonormal basis of the vectors that sum
    to 0. The linear predictors w of a row give the classes W w, with W = V / sqrt(2). The score is W' (e - p) z, and
    the curvature is W' (diag(p) - p p') W times z z'. No class is a reference, and for two classes this is `Logistic`.

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
    rows_of_slope = 2.0  # of equal classes, about the rows of one
    steepest = STEEPEST_CLASSES

    def __init__(self, n_classes: int) -> None:
        shift = (1.0 + 1.0 / math.sqrt(n_classes)) / (n_classes - 1)
        basis = np.vstack([np.full(n_classes - 1, 1.0 / math.sqrt(n_classes)), np.eye(n_classes - 1)])
        basis[1:] -= shift  # a reflection, of which one column is left out
        self.classes = -basis / math.sqrt(2.0)
        self.against = self.classes[1:] - self.classes[0]
        self.first_slope = (n_classes - 1) / (2.0 * n_classes)

    def residuals(self, targets: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = np.stack([np.sum(eta * each, axis=1) for each in self.classes], axis=1)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        means = np.stack([np.sum(chances * each, axis=1) for each in self.classes.T], axis=1)
        slopes = np.einsum("ik,ka,kb->iab", chances, self.classes, self.classes) - means[:, :, None] * means[:, None, :]
        return self.classes[targets.astype(np.intp)] - means, slopes


class Ordinal(Likelihood):
    """Ordinal likelihood with cumulative log-odds (McCullagh 1980); targets are class indices.

    Notes
    -----
    P(t <= k) is sigma(a_k - x b), so there is one linear predictor for each of the K - 1 thresholds a_k. Coefficients
    are b and then the thresholds, divided by the entry c of the intercept in z = (x, c).

    Let u and l be the linear predictors of the thresholds above and below a class, s = 1 - sigma(u) and q = sigma(l),
    each 0 if there is no such threshold. With the width d = u - l of the class, P = sigma(u) (1 - sigma(l)) (1 -
    exp(-d)). The score is that of two classes above and below, s w_u - q w_l with w = (-x, c e), plus 1 / (exp(d) - 1)
    for each row of the class in the direction of its width. The curvature is s (1 - s) w_u w_u' + q (1 - q) w_l w_l',
    plus a number for each row. Widths are the same for all rows, so the additional terms follow from class counts,
    which a row changes by 1 even for a narrow class. This is the observed curvature, which is positive (Pratt 1981).

    **Guarantees.** A row adds its part of the score, c times that of the curvature and r times its class indicator to a
    release. After division by sqrt(1 + r**2), this vector has norm at most 1 for any row, target and coefficients.

    Proof. s + q <= 1, as P >= 0, and it is clipped to this range against rounding. Let y = ``|x|**2`` and ``|z| <= 1``,
    so that the product of w_u and w_l is y in [0, 1]. The squared norm of score and curvature is at most N = f(s) +
    f(q) + 2 s q y (4 (1 - s) (1 - q) y - 1) for c = 2, with f(s) = s**2 + 4 s**2 (1 - s)**2. N is convex in y, so that
    it is at most what it is at 0 or 1. At 0, f ascends, its derivative being 2 s (5 - 12 s + 8 s**2) > 0, so that
    f(s) + f(q) is at most what it is where s + q = 1: 1 - 2 s q (1 - 4 s q) <= 1. At 1, N = (s - q)**2 + 4 (s - s**2 +
    q - q**2)**2. With e = (1 - s - q)**2 + (s - q)**2, which is at most 1, that is (s - q)**2 + (1 - e)**2 <= e + (1 -
    e)**2 <= 1. All of this is multiplied by ``|z|**2`` at least for a shorter z, but for the class.
    """

    curvature_weight = 2.0
    count_weight = math.sqrt(0.1)  # which makes all other noise 5 % larger
    rows_of_slope = 3.0  # a row adds 1/4 of two classes and 1/3 of many to the curvature along all thresholds

    def __init__(self, n_classes: int, intercept: float) -> None:
        self.against, self.n_counts, self._entry = np.eye(n_classes - 1), n_classes, intercept

    @property
    def n_blocks(self) -> int:
        return 1

    def start(self, width: int, intercept: float) -> np.ndarray:
        """See `Likelihood`: equal classes."""
        return np.r_[np.zeros(width - 1), logit(np.arange(1, self.n_counts) / self.n_counts) / self._entry]

    def form(self, units: np.ndarray) -> np.ndarray:
        return np.diag(np.r_[units[:-1], np.repeat(units[-1], self.n_lines)])

    def slopes(self, theta: np.ndarray, has_intercept: bool) -> np.ndarray:
        return np.where(np.arange(len(theta)) < len(theta) - self.n_lines, theta, 0.0)

    def lines(self, z: np.ndarray, theta: np.ndarray) -> np.ndarray:
        d = z.shape[1] - 1
        return z[:, d:] * theta[d:] - row_products(z[:, :d], theta[:d])[:, None]

    def residuals(self, targets: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Likelihood`; both have shape (m, n_lines), because thresholds interact only through counts."""
        codes, k = targets.astype(np.intp), np.arange(self.n_lines)
        above, below = codes[:, None] == k, codes[:, None] == k + 1
        s = np.sum(above * expit(-eta), axis=1)
        q = np.minimum(np.sum(below * expit(eta), axis=1), 1.0 - s)
        parts = above * s[:, None] + below * q[:, None]
        return np.where(below, -parts, parts), parts * (1.0 - parts)

    def scores(self, z: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """See `Likelihood`, including the class indicators of each row, of shape (m, n_coefs)."""
        return np.c_[-z[:, :-1] * residuals.sum(axis=1)[:, None], z[:, -1:] * residuals]

    def sums(
        self, z: np.ndarray, weights: np.ndarray, residuals: np.ndarray, slopes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        d, slopes = z.shape[1] - 1, slopes * weights[:, None]
        x, entries = z[:, :d], z[:, d:]
        curvature = np.empty((d + self.n_lines, d + self.n_lines))
        curvature[:d, :d] = (x * slopes.sum(axis=1)[:, None]).T @ x
        curvature[:d, d:] = -(x * entries).T @ slopes
        curvature[d:, :d] = curvature[:d, d:].T
        curvature[d:, d:] = np.diag(np.sum(entries**2 * slopes, axis=0))
        return self.scores(z, residuals).T @ weights, curvature

    def _gaps(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Direction of the width of each class, of shape (n_coefs, n_counts), and the widths, infinite at both ends."""
        d, k = len(theta) - self.n_lines, np.arange(1, self.n_lines)
        directions = np.zeros((len(theta), self.n_counts))
        directions[d + k, k], directions[d + k - 1, k] = self._entry, -self._entry
        return directions, np.r_[np.inf, np.diff(theta[d:]) * self._entry, np.inf]

    def completed(
        self, theta: np.ndarray, score: np.ndarray, curvature: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Likelihood`: adds the terms of the class widths."""
        directions, gaps = self._gaps(theta)
        with np.errstate(over="ignore"):
            squares = counts / (4.0 * np.sinh(gaps / 2.0) ** 2)
            return score + directions @ (counts / np.expm1(gaps)), curvature + (directions * squares) @ directions.T

    def spread(self, theta: np.ndarray) -> np.ndarray:
        directions, gaps = self._gaps(theta)
        with np.errstate(over="ignore"):
            return directions / np.expm1(gaps) / self.count_weight

    def rows(self, gram: np.ndarray, counts: np.ndarray, intercept: float) -> float:
        """See `Likelihood`: a narrow or extreme class has only one threshold of its own."""
        d = len(gram) - self.n_lines
        certain = self.rows_of_slope * float(gram[d:, d:].sum()) / intercept**2
        return min(certain, float(counts.min()) * len(gram))

    def total_weight(self, gram: np.ndarray, counts: np.ndarray, intercept: float) -> float:
        return float(counts.sum())

    def allowed(self, before: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """See `Likelihood`: a class keeps at least half of its width, so that thresholds remain in order."""
        d = len(theta) - self.n_lines
        gaps, least = np.diff(theta[d:]), np.diff(before[d:]) / 2.0
        if (gaps >= least).all():
            return theta
        wide = np.r_[0.0, np.cumsum(np.maximum(gaps, least))]
        return np.r_[theta[:d], wide + np.mean(theta[d:] - wide)]

    def at_shares(self, theta: np.ndarray, curvature: np.ndarray, counts: np.ndarray, chance: float) -> np.ndarray:
        """See `Likelihood`: for normally distributed x b."""
        d = len(theta) - self.n_lines
        n = max(float(curvature[d:, d:].sum()) / self._entry**2, chance)
        mean = -float(theta[:d] @ curvature[:d, d:].sum(axis=1)) / self._entry / n
        variance = float(theta[:d] @ curvature[:d, :d] @ theta[:d]) / n - mean**2 - 2.0 * chance / n
        least = 1e-3 * max(float(np.maximum(counts, 0.0).sum()), 1.0)  # of what noise left: no gap is 0 by rounding
        shares = np.cumsum(np.maximum(counts, least))
        deviation = math.sqrt(max(variance, 0.0))
        thresholds = [mean + _eta_of(float(each), deviation) for each in shares[:-1] / shares[-1]]
        return np.r_[theta[:d], np.array(thresholds) / self._entry]


class BoundedCounts(OneLine):
    """Likelihood of counts in units of the maximum count, with means exp(eta) of at most half of it.

    Notes
    -----
    **Guarantees.** See `Likelihood`; the curvature costs nothing.

    Proof. Let m in [0, 1/2] be the mean, and ``l <= 1`` the norm of z. The squared norm is (t - m)**2 l**2 + c**2 m**2
    l**4, which is at most (t - m)**2 + c**2 m**2. This is convex in t and in m. So it is greatest where t is 0 or 1 and
    m is 0 or 1/2: with c**2 = 3 it is 0, 1, 1 and 1 there.
    """

    curvature_weight = math.sqrt(3.0)
    first_eta, first_slope, rows_of_slope = math.log(0.5), 0.5, math.inf
    largest_eta, largest_target = math.log(0.5), 1.0
    bias_of_variance = -0.5  # of matched curvature, a step from e leads to e + 1 - exp(e), about -e**2 / 2
    # Noise on a sum of counts, in the largest standard deviations that it may have without noise, from which a
    # direction that is hidden, or nearly so, costs all intervals. The information of counts grows with their rate:
    # intervals would be printed where noise makes rates too high, and held in 40 to 85 % of fits at 0.24 to 0.7, in
    # 95 % and more at 0.07 to 0.18 (`benchmarks/bench_rare_events.py`). With the mean m, counts within [0, u] have a
    # variance of at most m (u - m) (Bhatia and Davis, 2000).
    most_noise = 0.22

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(eta, self.largest_eta))

    def slope(self, mean: np.ndarray) -> np.ndarray:
        return mean

    def matched(self, curvature: np.ndarray, score: np.ndarray, intercept: float) -> np.ndarray:
        """See `Likelihood`: the means are the weights of the curvature."""
        means = max(float(curvature[-1, -1]), 1e-300) / intercept if intercept else math.inf
        return curvature * min(max(1.0 + float(score[-1]) / means, 0.5), 2.0)

    def clip(self, root_mean_square: float, one: float, spread: float, most: float) -> float:
        """See `Likelihood`: if the maximum count is far above the others, few scores are near 1.

        The curvature contains the means. In units of the maximum count, these are the variances divided by `one`.
        """
        of_largest = spread * (6.0 * math.sqrt(one) * root_mean_square + 3.0 * one)
        return min(most, max(4.0 * root_mean_square + 3.0 * one, of_largest))

    def guess(self, mean: float, deviation: float) -> tuple[float, float]:
        """See `Likelihood`: for a normal eta, the slope of the mean exponential is the mean itself."""
        mean = min(max(mean, 1e-4), 0.5)
        spread = min(deviation / mean, 2.0)
        return (spread / deviation if deviation > 1e-9 else 1.0 / mean), math.log(mean) - spread**2 / 2.0


class LikelihoodScores(NamedTuple):
    """Scores of rows (z, t) for the sandwich estimator.

    `theta` contains the coefficients of z. A row contributes its part of the score, including counts; `whole` combines
    the parts.
    """

    theta: np.ndarray
    likelihood: Likelihood
    clip: float

    @property
    def width(self) -> int:
        """Length of the contribution of a row."""
        return len(self.theta) + self.likelihood.n_counts

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Contributions of rows (z, t), of shape (m, width), each computed from its own row alone."""
        z, t = rows[:, :-1], rows[:, -1]
        how = self.likelihood
        residuals, _ = how.residuals(t, how.lines(z, self.theta))
        return np.c_[how.scores(z, residuals), how.count_weight * how.counted(t)] / how.longest

    def whole(self, meat: np.ndarray) -> np.ndarray:
        """Sum of s s' over scores s, from the sum over the contributions of rows."""
        root = self.likelihood.longest * np.c_[np.eye(len(self.theta)), self.likelihood.spread(self.theta)]
        return np.asarray(root @ meat @ root.T)


LIKELIHOODS: dict[str, Likelihood] = {"logistic": Logistic(), "poisson": BoundedCounts()}
"""By the name of the loss, if there is one line."""
