"""Normal variables that are clipped to an interval: their moments, and what has given moments."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from skdp._typing import Doubles

N_ITERATIONS = 20
"""Newton steps; with 20, means and deviations are met within 1e-3 of the width wherever they can be."""

_MARGIN, _LEAST = 1e-3, 1e-3
_FARTHEST, _WIDEST = 4.0, 3.0


def clipped_moments(location: Doubles, scale: Doubles) -> tuple[Doubles, Doubles]:
    """Return mean and variance of normal variables that are clipped to [-1/2, 1/2].

    Parameters
    ----------
    location, scale : ndarray
        Mean and standard deviation before they are clipped.
    """
    low, high = (-0.5 - location) / scale, (0.5 - location) / scale
    below, above = ndtr(low), ndtr(-high)
    inside = 1.0 - below - above
    at_low, at_high = _density(low), _density(high)
    mean = location * inside + scale * (at_low - at_high) + 0.5 * (above - below)
    square = (location**2 + scale**2) * inside + 0.25 * (above + below)
    square += scale * ((location - 0.5) * at_low - (location + 0.5) * at_high)
    return mean, np.maximum(square - mean**2, 0.0)


def before_clipping(mean: Doubles, deviation: Doubles) -> tuple[Doubles, Doubles]:
    """Return location and scale of normal variables that have these moments once they are clipped to [-1/2, 1/2].

    Where no clipped normal variable has them, they are those of one that comes near. Locations lie within 4 of the
    middle, and scales are at most 3.

    Parameters
    ----------
    mean, deviation : ndarray
        Means beyond the interval count as at its ends, and deviations as at most nearly the largest for their mean.
    """
    mean = np.clip(mean, -0.5 + _MARGIN, 0.5 - _MARGIN)
    largest = 0.98 * (0.25 - mean**2)
    variance = np.clip(deviation**2, _LEAST**2, largest)
    location, scale = mean.copy(), np.sqrt(variance)
    for _ in range(N_ITERATIONS):
        _, found = clipped_moments(location, scale)
        growth = np.clip(np.sqrt(variance / np.maximum(found, _LEAST**4)), 0.5, 2.0)
        scale = np.clip(scale * growth**0.7, _LEAST, _WIDEST)
        reached, _ = clipped_moments(location, scale)
        inside = ndtr((0.5 - location) / scale) - ndtr((-0.5 - location) / scale)
        step = np.clip((mean - reached) / np.maximum(inside, 0.02), -0.5, 0.5)
        location = np.clip(location + 0.7 * step, -_FARTHEST, _FARTHEST)
    return location, scale


def _density(x: Doubles) -> Doubles:
    return np.asarray(np.exp(-0.5 * x**2) / math.sqrt(2.0 * math.pi))
