"""Moments of the scores of units, clipped: the second release of least squares, of which the sandwich is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp._checks.units import Units
from skdp._typing import Doubles
from skdp.linear_model.equations import Equations, symmetric
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.row_products import row_products
from skdp.mechanisms.second_moments import MomentSum, UnitBall
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histograms.purchase import SideRelease

SCORE_RELEASE = SideRelease.beside_steps(0.1, 1.0, 1)
"""What buys the moments of scores: a tenth of mu**2, beside one release of moments of rows."""

CLIP = 4.0
"""Norm at which scores are clipped, divided by the root of the mean squared norm that the first release shows."""

_CUT = 0.1
"""Squared entry of a unit of which a row was cut, where the norm of the vector is 1."""

_LONGER = 1.0 + 1e-6  # than its bound, so that rounding of float32 is not taken for a cut
_ROWS = 2048


class ScoreRule(Protocol):
    """How scores are made of rows; all of it is public or released."""

    @property
    def width(self) -> int:
        """Length of a score."""
        ...

    @property
    def clip(self) -> float:
        """Norm at which scores are clipped."""
        ...

    def of_rows(self, rows: NDArray[Any]) -> Doubles:
        """The scores of rows, of shape (m, width)."""
        ...


class Scoring(NamedTuple):
    """The scores of least squares.

    A row z = (u, target * t) / sqrt(size) has the residual r = t - theta' u, and the score r u.
    """

    theta: Doubles
    size: float
    target: float
    clip: float

    @property
    def width(self) -> int:
        """Length of a score."""
        return len(self.theta)

    @classmethod
    def at(cls, theta: Doubles, equations: Equations, size: float, target: float) -> Scoring:
        """Scores at `theta`, clipped by what the equations show of their mean squared norm."""
        mean_square = equations.residual_variance(theta) * max(float(np.trace(equations.gram)), equations.edge)
        return cls(theta, size, target, CLIP * math.sqrt(mean_square / equations.n))

    def of_rows(self, rows: NDArray[Any]) -> Doubles:
        """The scores of rows z, of shape (m, d + 1), each of its own row alone, to the last bit.

        A matrix product rounds by the place of a row among others.
        """
        z = rows.astype(np.float64) * math.sqrt(self.size)
        residuals = z[:, -1] / self.target - row_products(z[:, :-1], self.theta)
        return z[:, :-1] * residuals[:, None]


class ScoreMoments(NamedTuple):
    """What is released of scores.

    Attributes
    ----------
    meat : ndarray of shape (d, d)
        Noisy sum of s s' over units, s being the clipped sum of the scores of the rows of one.
    cut : float
        Noisy number of units of which a row or target was cut.
    cut_deviation : float
        Standard deviation of its noise.
    """

    meat: Doubles
    cut: float
    cut_deviation: float


def is_longer(rows: Any, radius: float) -> NDArray[np.bool_]:
    """Return which rows, of a matrix dense or sparse, are longer than `radius`."""
    found = np.empty(rows.shape[0], bool)
    for start in range(0, rows.shape[0], _ROWS):
        block = rows[start : start + _ROWS]
        block = (block if isinstance(block, np.ndarray) else block.toarray()).astype(np.float64)
        found[start : start + _ROWS] = np.linalg.norm(block, axis=1) > _LONGER * radius
    return found


def sum_scores(
    vectors: Callable[[slice], NDArray[Any]], cut: NDArray[np.bool_], weights: Any, units: Units | None, how: ScoreRule
) -> MomentSum:
    """Return the sum of x x' over units, x in the unit ball holding the clipped score of one, and whether it was cut.

    Parameters
    ----------
    vectors : callable
        ``vectors(part)`` returns the z of a slice of the rows.
    cut : ndarray of shape (n,), bool
        Whether a row or its target is beyond its bound.
    weights : float or ndarray of shape (n,)
        In [0, 1].
    units : Units or None
    how : ScoreRule

    Notes
    -----
    **Guarantees.** A unit adds x x' with a norm of x of at most 1 to the sum, whatever its rows, its weights and
    `how` are; one whose rows have weight 0 adds nothing. What it adds depends on its own rows alone.

    So the sensitivity is that of `skdp.mechanisms.second_moments.MomentSum`, which itself brings each x into the ball.
    """
    d, n = how.width, len(cut)
    sums = MomentSum(UnitBall(np.zeros(d + 1), 1.0), 0.0, by_position=False)
    each = np.broadcast_to(np.asarray(weights, np.float64), (n,))
    flags = cut & (each > 0.0)
    total = np.zeros((0 if units is None else units.n_units, d))
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        scores = how.of_rows(vectors(part)) * each[part, None]
        if units is None:
            sums.add(_into_ball(scores, flags[part], how.clip))
        else:
            np.add.at(total, units.codes[part], scores)
    if units is not None:
        of_units = np.zeros(units.n_units, bool)
        np.logical_or.at(of_units, units.codes, flags)
        sums.add(_into_ball(total, of_units, how.clip))
    return sums


def _into_ball(scores: Doubles, cut: NDArray[np.bool_], clip: float) -> Doubles:
    """The vectors x of scores, which are clipped, and of whether something was cut."""
    x = np.empty((len(scores), scores.shape[1] + 1))
    scale = math.sqrt(1.0 - _CUT) / np.maximum(np.linalg.norm(scores, axis=1), clip)
    np.multiply(scores, scale[:, None], out=x[:, :-1])
    x[:, -1] = math.sqrt(_CUT) * cut
    return x


def release_scores(sums: MomentSum, mechanism: GaussianMechanism, stream: SecretStream, clip: float) -> ScoreMoments:
    """Release the moments of scores, once, and bring them back to the units of scores."""
    gram = symmetric(sums.moments(mechanism.release(sums.isometric, stream)).gram)
    deviation = mechanism.standard_deviation * sums.rounding / _CUT
    return ScoreMoments(gram[:-1, :-1] * (clip**2 / (1.0 - _CUT)), float(gram[-1, -1]) / _CUT, deviation)


__all__ = ["CLIP", "SCORE_RELEASE", "ScoreMoments", "ScoreRule", "Scoring", "is_longer", "release_scores", "sum_scores"]
