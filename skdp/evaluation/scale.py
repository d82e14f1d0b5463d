"""The scale of score bins: three in five bins are even in the score, the others resolve scores near 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np

FARTHEST = 36.7  # log-odds of 1 - 2**-53, where scikit-learn clips probabilities too
_LOGITS = np.sinh(np.linspace(-1.0, 1.0, 8001) * np.arcsinh(FARTHEST))
_MIXED = sum(w / (1.0 + np.exp(-a * _LOGITS)) for w, a in ((0.6, 1.0), (0.25, 1 / 4), (0.15, 1 / 12)))
_PLACES = 0.5 + (_MIXED - 0.5) / (_MIXED[-1] - _MIXED[0])  # exactly 1/2 at a score of 1/2
_PLACES[[0, -1]] = 0.0, 1.0


def places_of(scores: Any) -> np.ndarray:
    """Places of scores, from 0 to 1. Scores are clipped to [0, 1]; NaN is at 0.

    With log-odds z, the place is 0.6 sigmoid(z) + 0.25 sigmoid(z / 4) + 0.15 sigmoid(z / 12), stretched so that the
    scores 2**-53 and 1 - 2**-53 are at the ends.
    """
    p = np.clip(np.nan_to_num(np.asarray(scores, np.float64)), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.interp(np.log(p) - np.log1p(-p), _LOGITS, _PLACES)


def logits_at(places: Any) -> np.ndarray:
    """Log-odds of the scores at places."""
    return np.interp(np.asarray(places, np.float64), _PLACES, _LOGITS)


def scores_at(places: Any) -> np.ndarray:
    """Scores at places; 0 and 1 at the ends."""
    t = np.asarray(places, np.float64)
    inner = 1.0 / (1.0 + np.exp(-logits_at(t)))
    return np.where(t <= 0.0, 0.0, np.where(t >= 1.0, 1.0, inner))
