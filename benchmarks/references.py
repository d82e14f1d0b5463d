"""Private regressions of the literature in NumPy and SciPy, for bench_tables.py.

They take what `DPTableVectorizer(numbers="scale")` makes of a table: rows of a norm up to sqrt(columns of the table),
at which they are clipped, and get an intercept. Two data sets are neighbors where one row is of weight 0 in one of
them (zero out), so that the number of rows is public. All noise is drawn by `Noise`, which keeps what was released, at
which sensitivity and noise multiplier; multipliers come from `skdp.accounting`. Settings were chosen on the first split
of `bench_tables.py --dev`: of Adult and Fulton, married, for classes; of housing, wine and income in California for
numbers.

These are for comparisons: their noise is that of `numpy.random`, which is not made to be secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from skdp.accounting import DpEvent, GaussianDpEvent, SelfComposedDpEvent, calibrate_jointly, calibrate_noise_multiplier

Doubles = NDArray[np.float64]


def gaussians(count: int) -> Callable[[float], DpEvent]:
    """As many Gaussian releases of one multiplier, each chosen after those before it."""
    return lambda multiplier: SelfComposedDpEvent(GaussianDpEvent(multiplier), count)


class Noise:
    """Gaussian noise of a fit, and the list of its releases: value, sensitivity in the 2-norm, noise multiplier."""

    def __init__(self, seed: int | None):
        self.rng = np.random.default_rng(seed)
        self.releases: list[tuple[Doubles, float, float]] = []

    def release(self, value: Doubles, sensitivity: float, multiplier: float) -> Doubles:
        """The value and noise of multiplier x sensitivity for each number."""
        self.releases.append((value, sensitivity, multiplier))
        return value + multiplier * sensitivity * self.rng.standard_normal(value.shape)


class Reference:
    """What the references share: a public bound of norms, a budget, rows with an intercept.

    `norm` bounds rows before the intercept is added; `n_rows` is the public number of rows (None: that of X).
    """

    def __init__(
        self, epsilon: float, delta: float, norm: float, n_rows: int | None = None, random_state: int | None = None
    ):
        self.epsilon, self.delta, self.norm = epsilon, delta, norm
        self.n_rows, self.random_state = n_rows, random_state

    @property
    def longest(self) -> float:
        """Bound of the norm of a row with its intercept."""
        return (self.norm**2 + 1.0) ** 0.5

    def rows(self, X: Any) -> Doubles:
        """Clipped rows and a column of ones."""
        X = np.asarray(X, np.float64)
        clipped = X * np.minimum(1.0, self.norm / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12))
        return np.column_stack([clipped, np.ones(len(X))])

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to private rows and labels."""
        self.noise_ = Noise(self.random_state)
        self.coef_ = self.solve(self.rows(X), np.asarray(y, np.float64), self.n_rows or len(X))
        return self

    def solve(self, X: Doubles, y: Doubles, n: int) -> Doubles:
        """Coefficients, from rows as `rows` makes them."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> Doubles:
        """Scores of rows."""
        return self.rows(X) @ self.coef_

    def predict_proba(self, X: Any) -> Doubles:
        """Probabilities of two classes, 0 and 1."""
        p = expit(self.decision_function(X))
        return np.column_stack([1.0 - p, p])


class ObjectivePerturbation(Reference):
    """Logistic regression with a random linear term in its objective.

    The minimum of ``sum(loss) + penalty / 2 * |theta|^2 + b @ theta``, with b of standard deviation sigma, is released
    (Kifer, Smith & Thakurta 2012), as approximate minimum with noise of its own (Iyengar et al. 2019).

    Cost: that of Redberg, Koskela & Wang (2023, arXiv 2401.00583, their theorem on approximate DP) for generalised
    linear losses, whose gradients lie along the row x. With one row less, the b that gives a theta moves by g, along x
    and at most `longest`; so the log of the ratio of densities at theta is at most ``c + mu^2 / 2 + mu |Z|`` with mu =
    longest / sigma, a standard normal Z, and c a bound of the log of ``det(A) / det(A - h x x^T)``, where A is the
    Hessian of the objective with the row and h the second derivative of its loss. Then delta at epsilon is twice that
    of a Gaussian mechanism of mu at epsilon - c, as long as ``mu^2 / 2 <= epsilon - c``. With s = longest^2 / 4 the
    matrix A is at least ``penalty I + h x x^T``, ``h x^T A^-1 x <= s / (penalty + s)``, and c = log(1 + s / penalty).
    """

    share_of_minimum = 0.01
    """What noise on the approximate minimum costs, of epsilon and of delta: basic composition."""
    share_of_curvature = 0.25
    """Of epsilon, at most what c takes."""
    tolerance = 1e-4
    """Bound of the gradient at an approximate minimum."""
    most_steps = 100

    def sigma(self, epsilon: float, delta: float, penalty: float) -> float:
        """Standard deviation of b, at the cost above."""
        left = epsilon - np.log1p(self.longest**2 / 4.0 / penalty)
        multiplier = calibrate_noise_multiplier(GaussianDpEvent, left, delta / 2.0)
        if 0.5 / multiplier**2 > left:
            raise ValueError(f"epsilon={self.epsilon!r}, delta={self.delta!r}: the cost holds for less of both only.")
        return multiplier * self.longest

    def penalty(self, epsilon: float, n: int) -> float:
        """At least what keeps c in its share; the noise of b asks for more as it grows against the rows."""
        least = self.longest**2 / 4.0 / min(np.expm1(self.share_of_curvature * epsilon), 10.0)
        return float(max(least, 500.0 * self.sigma(epsilon, self.delta, 1e3 * least) ** 2 / n))

    def solve(self, X: Doubles, y: Doubles, n: int) -> Doubles:
        """Minimise, and add the noise of an approximate minimum."""
        part = self.share_of_minimum
        penalty = self.penalty((1.0 - part) * self.epsilon, n)
        sigma = self.sigma((1.0 - part) * self.epsilon, (1.0 - part) * self.delta, penalty)
        b = self.noise_.release(np.zeros(X.shape[1]), self.longest, sigma / self.longest)

        def gradient(theta: Doubles) -> Doubles:
            return X.T @ (expit(X @ theta) - y) + penalty * theta + b

        theta, eye = np.zeros(X.shape[1]), np.eye(X.shape[1])
        for _ in range(self.most_steps):  # of Newton, shortened until the gradient falls
            p, found = expit(X @ theta), gradient(theta)
            if np.linalg.norm(found) <= self.tolerance:
                break
            step = np.linalg.solve(X.T @ (X * (p * (1.0 - p))[:, None]) + penalty * eye, found)
            while np.linalg.norm(gradient(theta - step)) > np.linalg.norm(found) and step.any():
                step /= 2.0
            theta = theta - step
        if np.linalg.norm(gradient(theta)) > self.tolerance:
            raise ArithmeticError("the minimum was not reached; its noise would not cover the distance to it.")
        multiplier = calibrate_noise_multiplier(GaussianDpEvent, part * self.epsilon, part * self.delta)
        return self.noise_.release(theta, 2.0 * self.tolerance / penalty, multiplier)


class DoubleNoiseNewton(Reference):
    """Logistic regression by Newton steps with noise on gradient and direction (Ganesh et al. 2023, Algorithm 3).

    The Hessian is replaced by its quadratic majoriser, whose weights are ``tanh(z / 2) / (2 z) <= 1/4``, and its
    eigenvalues are raised to at least `floor`. A row changes the majoriser by at most s = longest^2 / 4, in a matrix
    of rank one. ``1 / max(., floor)`` has slope at most ``1 / floor^2``, and a function of a symmetric matrix moves in
    the Frobenius norm by at most its slope times the matrix: the direction of a released gradient g moves by at most
    ``s |g| / floor^2``. Steps are adaptive Gaussian releases, charged together.
    """

    steps = 24
    share_of_gradients = 0.7
    floors = 3.0
    """Times the floor of the paper, (trace / (n^2 rho))^(1/3) for mean losses of rows of norm 1."""

    def solve(self, X: Doubles, y: Doubles, n: int) -> Doubles:
        """Take the steps from 0."""
        shares = (self.share_of_gradients, 1.0 - self.share_of_gradients)
        on_gradient, on_direction = calibrate_jointly([gaussians(self.steps)] * 2, self.epsilon, self.delta, shares)
        smoothness = self.longest**2 / 4.0
        floor = self.floors * smoothness * max(1.0, n * (2.0 * on_direction**2 / n**2) ** (1.0 / 3.0))
        theta = np.zeros(X.shape[1])
        for _ in range(self.steps):
            z = X @ theta
            gradient = self.noise_.release(X.T @ (expit(z) - y), self.longest, on_gradient)
            weights = np.tanh(z / 2.0) / (2.0 * np.where(np.abs(z) > 1e-6, z, 1.0))
            weights = np.where(np.abs(z) > 1e-6, weights, 0.25)
            values, vectors = np.linalg.eigh(X.T @ (X * weights[:, None]))
            direction = vectors @ ((vectors.T @ gradient) / np.maximum(values, floor))
            moved = smoothness * float(np.linalg.norm(gradient)) / floor**2
            theta = theta - self.noise_.release(direction, moved, on_direction)
        return theta


class BoostedAdaSSP(Reference):
    """Linear regression on one noisy matrix, boosted (Tang et al. 2023).

    AdaSSP (Wang 2018) releases the least eigenvalue of X'X, X'X and X'y, each for a third of the budget; here the last
    third estimates X'r for the residuals r of each round, clipped at 1, where the target is scaled from its public
    bounds to [-1, 1]. One row moves the first two by at most longest^2 (the matrix in its upper triangle) and X'r by
    longest.
    """

    rounds = 10

    def __init__(self, y_bounds: tuple[float, float], *given: Any, **more: Any):
        super().__init__(*given, **more)
        self.y_bounds = y_bounds

    def solve(self, X: Doubles, y: Doubles, n: int) -> Doubles:
        """Release the matrix, then a vector each round."""
        one, square, d = gaussians(1), self.longest**2, X.shape[1]
        events = [one, one, gaussians(self.rounds)]
        on_least, on_matrix, on_vector = calibrate_jointly(events, self.epsilon, self.delta, [1.0, 1.0, 1.0])
        matrix, upper = X.T @ X, np.triu_indices(d)
        least = self.noise_.release(np.linalg.eigvalsh(matrix)[:1], square, on_least)[0]
        noisy = np.zeros((d, d))
        noisy[upper] = self.noise_.release(matrix[upper], square, on_matrix)
        noisy = noisy + np.triu(noisy, 1).T
        width = square * (d * np.log(2.0 * d**2 / 0.05)) ** 0.5  # AdaSSP, at a failure rate of .05
        surely = max(0.0, least - square * on_least * np.log(6.0 / 0.05) ** 0.5)
        solved = np.linalg.pinv(noisy + max(0.0, on_matrix * width - surely) * np.eye(d), hermitian=True)
        middle, half = np.mean(self.y_bounds), np.ptp(self.y_bounds) / 2.0
        target, theta = (y - middle) / half, np.zeros(d)
        for _ in range(self.rounds):
            residuals = np.clip(target - X @ theta, -1.0, 1.0)
            theta = theta + solved @ self.noise_.release(X.T @ residuals, self.longest, on_vector)
        return theta * half + middle * np.eye(d)[-1]

    def predict(self, X: Any) -> Doubles:
        """Targets of rows."""
        return self.decision_function(X)
