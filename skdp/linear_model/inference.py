"""Estimates, standard errors and their validity, computed from released moments."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from skdp.linear_model.scores import Equations, ScoreMoments

SEPARATION = 0.75
"""Smallest eigenvalue of a direction that is not hidden, divided by the edge of the noise."""

DEVIATIONS = 3.0
"""Smallest eigenvalue divided by the standard deviation of the noise along one direction: a safeguard for few columns.
"""

MOST_HIDDEN = 1.5
"""Maximum contribution of hidden directions to a coefficient with an interval, in standard errors."""

LEAST_SAMPLING = 0.95
"""Minimum sampling error of a likelihood, relative to that of its curvature and mean dispersion."""

RARE, COMMON = 0.2, 0.6
"""Information of a coefficient per row, relative to the whole table, at which the correction for rare events is applied
in full and not at all."""

SEPARATED = 100.0
"""Mean squared linear predictor along hidden directions, in units of the mean squared row, from which no coefficient
has an interval: it is 40 where a third of the rows have log-odds of -8, and over 250 where a column separates classes.
"""

NOT_SETTLED = "the fit did not converge: columns nearly separate the classes, or the noise is too large"
TOO_FEW_EVENTS = "too few events for this noise level"


UNCERTAIN, MOST_UNCERTAIN = 0.16, 0.3
"""Standard error of a coefficient of rare events above which its interval is widened, and above which it has none.

With few events, the noise can add events and make intervals too short. At 6 standard deviations of the noise (0.16),
this is negligible. At 3.3 (0.3), an interval of four times the length covers all smaller numbers of events."""

FEWEST_ROWS = 30
"""Rows per coefficient below which normal intervals are too short even without noise."""

CUT_ROWS = 0.01
"""Fraction of clipped rows above which coefficients do not describe the table, if the noise does not explain it."""

UNSURE = 0.05
"""Fraction of rows that may be clipped if the user did not set the bound."""


class NewtonPath(NamedTuple):
    """Likelihood and the Newton steps that led to the coefficients.

    Attributes
    ----------
    theta : ndarray of shape (d,)
        Coefficients after the last step, for targets in their own unit.
    slopes : ndarray of shape (d,)
        Coefficients with zeros for intercepts and thresholds.
    first : Equations
        Moments of the first step, in which all rows have the same mean.
    most_noise : float
        `MOST_NOISE_OF_COUNTS`, or infinite.
    """

    theta: np.ndarray
    slopes: np.ndarray
    first: Equations
    most_noise: float = math.inf

    def inflated(self, move: np.ndarray, noise: float, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Return an upper estimate of the last move by direction, which is too small where the noise dominates."""
        along, slopes = vectors.T @ move, np.abs(vectors.T @ self.slopes)
        return np.copysign(np.abs(along) + 2.0 * noise / np.maximum(values, noise) * slopes, along)

    def separate(self, hidden: np.ndarray) -> bool:
        """Whether hidden directions have linear predictors so large that they nearly separate the classes."""
        along = hidden @ (hidden.T @ self.theta)
        return float(along @ self.first.gram @ along) > SEPARATED * max(float(np.trace(self.first.gram)), 0.0)

    def rarity(self, equations: Equations, form: np.ndarray, move: np.ndarray) -> np.ndarray:
        """Return the relative decrease of the information of each coefficient on a move of 1; 0 unless events are rare.

        The information per row at the end of the move is compared with that of the whole table, or with that of another
        coefficient if it is certainly larger.
        """
        (now, noise), (before, noise_before) = _own_information(equations, form), _own_information(self.first, form)
        of_all = [max(float(np.trace(each.gram)), each.edge) for each in (equations, self.first)]
        largest = float(np.max((now - 2.0 * noise) / (before + 2.0 * noise_before)))
        share = now / before / max(of_all[0] / of_all[1], largest) * np.exp(-move / 2.0)
        return np.clip((COMMON - share) / (COMMON - RARE), 0.0, 1.0)


class Grounds(NamedTuple):
    """Public and released facts of a fit, on which its intervals depend.

    Attributes
    ----------
    bounds_are_given : bool
        Whether the user set public bounds that no row exceeds.
    bounds : str
        Parameters that clip rows.
    doubt : str
        Reason against all intervals that was found before, or "".
    steps : NewtonPath or None
        Newton steps of a likelihood.
    """

    bounds_are_given: bool
    bounds: str = "data_norm or y_bounds"
    doubt: str = ""
    steps: NewtonPath | None = None


class Inference(NamedTuple):
    """Estimates and standard errors, as post-processing of two releases.

    Attributes
    ----------
    estimate : ndarray of shape (d,)
        Unregularized, bias-corrected estimates in the units of `y` and `X`, with the intercept last.
    sampling, noise : ndarray of shape (d,)
        Standard errors due to sampling and to the noise.
    bias : ndarray of shape (d,)
        Worst-case bias of hidden directions and rare events, combined with both as a standard error.
    doubts : list of str
        Reason for a missing interval of each coefficient, or "".
    cut : (float, float)
        Noisy fraction of clipped units, and the standard deviation of its noise.
    n : int
        Public number of rows or groups.
    n_lines : int
        Number of blocks, each with an intercept and the coefficients of all columns.
    """

    estimate: np.ndarray
    sampling: np.ndarray
    noise: np.ndarray
    bias: np.ndarray
    doubts: list[str]
    cut: tuple[float, float]
    n: int
    n_lines: int = 1

    @property
    def error(self) -> np.ndarray:
        """Standard errors, including the worst-case bias."""
        return np.sqrt(self.sampling**2 + self.noise**2 + self.bias**2)

    def unscaled(self, scales: np.ndarray) -> Inference:
        """Return the inference for columns before the division by `scales`; the intercept is unchanged."""
        of_line = np.ones(len(self.estimate) // self.n_lines)
        of_line[: len(scales)] = 1.0 / scales
        by = np.tile(of_line, self.n_lines)
        scaled = {name: getattr(self, name) * by for name in ("estimate", "sampling", "noise", "bias")}
        return self._replace(**scaled)


def unbiased(equations: Equations) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse K of the equations, and the matrix J such that J K c is the bias-corrected solution.

    Eigenvalues below the edge of the noise are raised to it. A solution then exists, but no interval is reported.

    Notes
    -----
    Let E be the noise on A, with standard deviation s on the diagonal and s / sqrt(2) off it. The mean of E M E is
    s**2 / 2 (M + tr(M) I) for a symmetric M. To second order, the solution has the bias s**2 / 2 K (K + tr(K) I) theta,
    which J removes.
    """
    values, vectors = eigh(equations.gram)
    inverse = (vectors / np.maximum(values, equations.edge)) @ vectors.T
    half = equations.noise.gram**2 / 2.0
    d = len(inverse)
    return inverse, np.eye(d) - half * inverse @ (inverse + np.trace(inverse) * np.eye(d))


def solve_without_bias(equations: Equations) -> np.ndarray:
    """Return the coefficients for rows of norm 1."""
    inverse, correction = unbiased(equations)
    return correction @ inverse @ equations.product


def _own_information(equations: Equations, form: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the information of each coefficient when all others are estimated too, and the noise on it."""
    values, vectors = eigh(equations.gram)
    along = form @ vectors / np.sqrt(np.maximum(values, equations.noise.gram))
    found = 1.0 / np.sum(along**2, axis=1)
    on_moves = np.sum(along**2 / np.maximum(values, equations.noise.gram), axis=1)
    return found, equations.noise.gram * found**2 * on_moves


def infer(
    equations: Equations, theta: np.ndarray, scores: ScoreMoments, form: np.ndarray, grounds: Grounds,
    spread: np.ndarray | None = None,
) -> Inference:  # fmt: skip
    """Return the standard errors of `theta`, the result of `solve_without_bias`, and the reasons for missing intervals.

    Parameters
    ----------
    equations : Equations
    theta : ndarray of shape (d,)
        Last move of a likelihood.
    scores : ScoreMoments
    form : ndarray of shape (n_coefs, d)
        Matrix from `theta` to coefficients in the units of `y` and `X`.
    grounds : Grounds
    spread : ndarray of shape (d, k) or None, default=None
        Additional noise of the product, in units of its standard deviation.

    Notes
    -----
    The error of theta is K (score + noise of c - noise of A times the true value), and J times that after the bias
    correction. The covariance of the noise is (r**2 + s**2 ``||theta||**2`` / 2) I + s**2 theta theta' / 2, as in
    `DPLinearRegression`. The covariance of the scores is their released sum of squares times n / (n - d), with negative
    eigenvalues set to 0. The sandwich multiplies both by J K and its transpose. It does not assume a distribution of
    the residuals. The sampling error of a likelihood is at least 0.95 times that of its curvature, multiplied by the
    mean dispersion, because the noise on the scores hides few rows first.

    Directions whose eigenvalues do not exceed the noise are hidden. The error of a coefficient f theta along a hidden
    direction v is at most ``|f v|`` times the unknown length, which is set to the length of all other directions, or 1.
    With a bias of at most b, an interval of 1.96 sqrt(s**2 + b**2) covers in at least 95% of fits, so b is combined
    with the standard errors.

    For rare events, the information changes by a factor of e on a move of 1. The error of a last move m is at most
    -log(1 - m) - m, and the information at its end is lower by the factor 1 - m.
    """
    # By sampling: the sandwich of the moments of scores.
    inverse, correction = unbiased(equations)
    bread, d, n = form @ correction @ inverse, len(theta), equations.n
    values, vectors = eigh(scores.meat)
    root = bread @ vectors * np.sqrt(np.maximum(values, 0.0) * n / max(n - d, 1))
    sampling = np.linalg.norm(root, axis=1)
    # Directions that the noise hides; for rare events, also those that it nearly hides.
    noise, half = equations.noise, equations.noise.gram**2 / 2.0
    values, vectors = eigh(equations.gram)
    moved, whole, steps = theta, theta, grounds.steps
    information = max(float(np.trace(equations.gram)), equations.edge)
    unsure = steps is not None and noise.product > steps.most_noise * math.sqrt(information)
    hidden = values < max((3.5 if unsure else 1.0) * SEPARATION * equations.edge, DEVIATIONS * noise.gram)
    # For a likelihood: at least that of its curvature, and the last move if the noise dominates.
    if steps is not None:
        along = steps.inflated(theta, noise.gram, values, vectors)
        moved, whole = vectors @ np.where(hidden, 0.0, along), steps.theta
        rarity = steps.rarity(equations, form, np.abs(form @ theta))
        dispersion = max(float(np.trace(scores.meat)), 0.0) / information
        of_curvature = dispersion * np.einsum("ij,jk,ik->i", form, inverse, form, optimize=True)
        sampling = np.maximum(sampling, LEAST_SAMPLING * np.sqrt(np.maximum(of_curvature, 0.0)))
    # By noise: that of the right side, and that of the matrix times the move.
    of_noise = (noise.product**2 + half * float(moved @ moved)) * np.sum(bread**2, axis=1) + half * (bread @ moved) ** 2
    if spread is not None:
        of_noise += noise.product**2 * np.sum((bread @ spread) ** 2, axis=1)
    by_noise = np.sqrt(of_noise)
    # The worst case of what hidden directions may add.
    length = max(float(np.linalg.norm((vectors.T @ whole)[~hidden])), 1.0)
    overlap = np.abs(form @ vectors[:, hidden])
    bias, error = length * overlap.sum(axis=1), np.hypot(sampling, by_noise)
    held = np.sum(overlap**2, axis=1) / np.sum(form**2, axis=1)
    doubts = np.where(bias > MOST_HIDDEN * error, "noise hides correlated columns", "")
    doubts = np.where(held > 0.5, "noise hides this column, or it is collinear with others", doubts)
    if steps is not None:
        bias, uncertain = _of_rare_events(rarity, form @ theta, error, bias)
        doubts = np.where((doubts == "") & (uncertain > MOST_UNCERTAIN), TOO_FEW_EVENTS, doubts)
    # Doubts in all coefficients come before those in one.
    cut = scores.cut / n, scores.cut_deviation / n
    everywhere = _doubt_in_all(equations, cut, len(form), grounds)
    if not everywhere and steps is not None and steps.separate(vectors[:, hidden]):
        everywhere = NOT_SETTLED
    elif not everywhere and unsure and hidden.any():
        everywhere = TOO_FEW_EVENTS
    said = [everywhere or str(each) for each in doubts]
    return Inference(form @ theta, sampling, by_noise, bias, said, cut, n)


def _of_rare_events(
    rarity: np.ndarray, move: np.ndarray, error: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bias with that of rare events, and the standard errors at the information of the end of the move."""
    fall = np.minimum(rarity * np.abs(move), 0.999)
    of_move = np.divide(-np.log1p(-fall) - fall, rarity, out=np.zeros_like(fall), where=rarity > 0.0)
    bias = np.hypot(bias, of_move)
    whole = np.hypot(error, bias)
    uncertain = rarity * whole / (1.0 - fall)
    factor = 1.0 + 3.0 * np.clip((uncertain - UNCERTAIN) / 0.07, 0.0, 1.0) ** 2
    return np.sqrt((factor * whole) ** 2 - error**2), uncertain


def _doubt_in_all(equations: Equations, cut: tuple[float, float], n_coefs: int, grounds: Grounds) -> str:
    """Return why no coefficient has an interval, by public and released numbers alone, or ""."""
    share, deviation = cut
    if equations.n < FEWEST_ROWS * n_coefs:
        return f"fewer than {FEWEST_ROWS} rows or groups per coefficient"
    if share - 3.0 * deviation > CUT_ROWS:
        return f"about {100 * share:.0f}% of rows are clipped by {grounds.bounds}"
    if not grounds.bounds_are_given and share + 2.0 * deviation > UNSURE:
        return "the number of clipped rows is unknown. Set data_norm"
    return grounds.doubt
