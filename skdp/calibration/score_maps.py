"""Maps of scores to probabilities, from counts of either class in bins of the score."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.isotonic import isotonic_regression

from skdp._typing import Doubles
from skdp.evaluation.binary_metrics import centres, refined

MAPS = "sigmoid", "temperature", "isotonic"
_STEEPEST, _FURTHEST = 20.0, 20.0
_LEAST = 1e-12  # distance of a score from 0 and 1, whose logits are infinite


class LogitMap(NamedTuple):
    """Probabilities ``1 / (1 + exp(-(slope * logit(score) + offset)))``.

    Attributes
    ----------
    slope : float
        0 or above, so that no score overtakes another. One over the temperature.
    offset : float
    """

    slope: float
    offset: float

    def __call__(self, scores: Doubles) -> Doubles:
        return _inverse_logit(self.slope * _logit(scores) + self.offset)


class StepMap(NamedTuple):
    """Probabilities between points that ascend, on straight lines.

    Attributes
    ----------
    x, y : ndarray of shape (n_points,)
    """

    x: Doubles
    y: Doubles

    def __call__(self, scores: Doubles) -> Doubles:
        return np.interp(scores, self.x, self.y)


def fit_map(method: str, table: Doubles, noise: float) -> LogitMap | StepMap:
    """Return the map that a table of counts asks for.

    Parameters
    ----------
    method : {"sigmoid", "temperature", "isotonic"}
    table : ndarray of shape (2, n_bins)
        Counts of negatives and of positives, 0 or above.
    noise : float
        Standard deviation of the noise of a count. Public.

    Notes
    -----
    "sigmoid" is Platt's map of the logit of the score, and "temperature" the same with an offset of 0 (Guo et al.
    2017): the likeliest one for the counts, spread over finer bins. "isotonic" is the isotonic regression of the shares
    of positives (Zadrozny & Elkan 2002). To each bin as many rows of the overall share are added as the standard
    deviation of its noise, so that bins which noise alone is in say next to nothing.
    """
    if method == "isotonic":
        return _isotonic(table, noise)
    fine = refined(table[None])[0]
    at, totals = _logit(centres(fine.shape[1])), max(float(fine.sum()), 1.0)

    def loss(parameters: Doubles) -> tuple[float, Doubles]:
        value = parameters[0] * at + (parameters[1] if len(parameters) > 1 else 0.0)
        losses = fine[0] @ np.logaddexp(0.0, value) + fine[1] @ np.logaddexp(0.0, -value)
        slope = (fine.sum(0) * _inverse_logit(value) - fine[1]) / totals
        return float(losses) / totals, np.array([slope @ at, slope.sum()])[: len(parameters)]

    start = np.array([1.0, 0.0])[: 1 if method == "temperature" else 2]
    bounds = [(0.0, _STEEPEST), (-_FURTHEST, _FURTHEST)][: len(start)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return LogitMap(float(found[0]), float(found[1]) if len(found) > 1 else 0.0)


def _isotonic(table: Doubles, noise: float) -> StepMap:
    negatives, positives = table
    total = float(table.sum())
    share = float(positives.sum()) / total if total > 0 else 0.5
    noise = max(noise, 1e-9)  # a bin may be empty
    weights = negatives + positives + noise
    shares = (positives + noise * share) / weights
    return StepMap(centres(table.shape[1]), isotonic_regression(shares, sample_weight=weights, y_min=0.0, y_max=1.0))


def _logit(scores: Doubles) -> Doubles:
    kept = np.clip(scores, _LEAST, 1.0 - _LEAST)
    return np.log(kept) - np.log1p(-kept)


def _inverse_logit(values: Doubles) -> Doubles:
    return np.exp(-np.logaddexp(0.0, -values))
