"""What released moments say of coefficients: estimates, their errors by sampling and by noise, and doubts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from skdp._typing import Doubles
from skdp.linear_model.equations import Equations
from skdp.linear_model.scores import ScoreMoments

SEPARATION = 1.5
"""Least eigenvalue of the noisy equations at which intervals hold, divided by the edge of the noise."""

FEWEST_ROWS = 30
"""Rows for each coefficient, below which intervals of the normal distribution are too short without any noise."""

CUT_ROWS = 0.01
"""Share of cut rows from which coefficients are those of other rows than the table's, if noise does not explain it."""

UNSURE = 0.05
"""Share of rows that may be cut where nobody said that none is."""


class Grounds(NamedTuple):
    """What is known of a fit that its intervals rest on; all of it is public or released.

    Attributes
    ----------
    bounds_are_given : bool
        Whether someone vouches for it, in public, that no row is longer than its bound.
    separation : float
        Least eigenvalue at which intervals hold, divided by the edge of the noise.
    bounds : str
        Parameters at which rows are cut.
    doubt : str
        A doubt in all coefficients that was found before, or "".
    """

    bounds_are_given: bool
    separation: float = SEPARATION
    bounds: str = "data_norm or y_bounds"
    doubt: str = ""


class Inference(NamedTuple):
    """Estimates and their errors, all of it post-processing of two releases.

    Attributes
    ----------
    estimate : ndarray of shape (d,)
        Of least squares without a ridge, less its bias from the noise; in the units of y and X, the intercept last.
    sampling, noise : ndarray of shape (d,)
        Standard errors, of the drawing of rows and of the noise.
    doubts : list of str
        Why there is no interval; one for each coefficient, "" where there is one.
    cut : (float, float)
        Share of units of which something was cut: noisy, and the standard deviation of its noise.
    n : int
        Public number of units.
    n_lines : int
        How many intercepts and coefficients of all columns there are, one after the other.
    """

    estimate: Doubles
    sampling: Doubles
    noise: Doubles
    doubts: list[str]
    cut: tuple[float, float]
    n: int
    n_lines: int = 1

    def per_unit(self, units: Doubles) -> Inference:
        """Return the same of columns before they were divided by `units`, the intercept as it is."""
        of_line = np.ones(len(self.estimate) // self.n_lines)
        of_line[: len(units)] = 1.0 / units
        by = np.tile(of_line, self.n_lines)
        return self._replace(estimate=self.estimate * by, sampling=self.sampling * by, noise=self.noise * by)


def unbiased(equations: Equations) -> tuple[Doubles, Doubles]:
    """Return the inverse K of the equations and the matrix J, of which J K c is the solution less its bias.

    Eigenvalues below the edge of the noise are raised to it, so that there is a solution; there is no interval then.

    Notes
    -----
    With E the noise on A, of standard deviation s on the diagonal and s / sqrt(2) off it, the mean of E M E is
    s**2 / 2 (M + tr(M) I) for a symmetric M. So to second order the solution has the bias s**2 / 2 K (K + tr(K) I)
    theta, which J takes off.
    """
    values, vectors = eigh(equations.gram)
    inverse = (vectors / np.maximum(values, equations.edge)) @ vectors.T
    half = equations.noise.gram**2 / 2.0
    d = len(inverse)
    return inverse, np.eye(d) - half * inverse @ (inverse + np.trace(inverse) * np.eye(d))


def solve_without_bias(equations: Equations) -> Doubles:
    """Return the coefficients of rows of norm 1."""
    inverse, correction = unbiased(equations)
    return correction @ inverse @ equations.product


def infer(
    equations: Equations,
    theta: Doubles,
    scores: ScoreMoments,
    form: Doubles,
    grounds: Grounds,
    spread: Doubles | None = None,
) -> Inference:
    """Return the errors of the coefficients `theta`, of `solve_without_bias`, and the doubts.

    Parameters
    ----------
    equations : Equations
    theta : ndarray of shape (d,)
    scores : ScoreMoments
    form : ndarray of shape (n_coefs, d)
        What coefficients of y and X are of `theta`.
    grounds : Grounds
    spread : ndarray of shape (d, k) or None, default=None
        What else the product has of noise of its own standard deviation.

    Notes
    -----
    theta differs from the truth by K (score + noise of c - noise of A times the truth), exactly, and less its bias by
    J times that. The covariance of the noise is (r**2 + s**2 ``||theta||**2`` / 2) I + s**2 theta theta' / 2, as in
    `DPLinearRegression`; that of the scores is their released sum of squares, times n / (n - d), whose negative
    eigenvalues are set to 0. Both lie between J K and its transpose: a sandwich. Nothing is assumed of the residuals.
    """
    inverse, correction = unbiased(equations)
    bread, d, n = form @ correction @ inverse, len(theta), equations.n
    values, vectors = eigh(scores.meat)
    root = bread @ vectors * np.sqrt(np.maximum(values, 0.0) * n / max(n - d, 1))
    noise = equations.noise
    half = noise.gram**2 / 2.0
    of_noise = (noise.product**2 + half * float(theta @ theta)) * np.sum(bread**2, axis=1) + half * (bread @ theta) ** 2
    if spread is not None:
        of_noise += noise.product**2 * np.sum((bread @ spread) ** 2, axis=1)
    cut = scores.cut / n, scores.cut_deviation / n
    return Inference(
        form @ theta,
        np.linalg.norm(root, axis=1),
        np.sqrt(of_noise),
        _doubts(equations, cut, form, grounds),
        cut,
        n,
    )


def _doubts(equations: Equations, cut: tuple[float, float], form: Doubles, grounds: Grounds) -> list[str]:
    """Return why each coefficient has no interval, by public and released numbers alone."""
    d = len(form)
    share, deviation = cut
    if equations.n < FEWEST_ROWS * d:
        return [f"fewer than {FEWEST_ROWS} rows or groups a coefficient"] * d
    if share - 3.0 * deviation > CUT_ROWS:
        return [f"about {100 * share:.0f} % of rows are cut at {grounds.bounds}"] * d
    if not grounds.bounds_are_given and share + 2.0 * deviation > UNSURE:
        return ["unknown how many rows are cut: give data_norm"] * d
    if grounds.doubt:
        return [grounds.doubt] * d
    values, vectors = eigh(equations.gram)
    weak = values < grounds.separation * equations.edge
    if not weak.any():
        return [""] * d
    # A coefficient that no weak direction holds is not valid either: it is what it is given the others.
    held = np.sum((form @ vectors[:, weak]) ** 2, axis=1) / np.sum(form**2, axis=1)
    return [
        "noise hides this column, or others add up to it" if h > 0.5 / d else "noise hides columns beside it"
        for h in held
    ]


__all__ = ["CUT_ROWS", "FEWEST_ROWS", "SEPARATION", "UNSURE", "Grounds", "Inference", "infer", "solve_without_bias"]
