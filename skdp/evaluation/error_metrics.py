"""Metrics of regressors, from counts of the sizes of errors in bins, and from two sums of the targets.

Sizes are in bins whose edges grow by a constant factor: what noise in a count adds to a squared error falls with the
square of the size, so that fine bins of small errors add next to none. A table has the shape (n_tables, n_bins + 3):
counts of errors from small to large, then of targets at the lower bound, in the middle, and at the upper one, which
have the mean and the variance of the targets.
"""

from __future__ import annotations

import numpy as np

from skdp._typing import Doubles

OCTAVES = 7
NODES = 3
_PARTS = 16


def edges(n_bins: int) -> Doubles:
    """Edges of the bins: 0, then 2^-7 to 1 times the range of the targets."""
    return np.concatenate([[0.0], 2.0 ** (-OCTAVES * np.arange(n_bins - 1, -1, -1) / max(n_bins - 1, 1))])


def clipped(tables: Doubles, deviation: float) -> Doubles:
    """Counts of errors without those bins at the far end that hold noise alone; what they hold goes to the last one.

    From the far end inwards, a bin is reached when the sum of the counts up to it is above the standard deviation of
    its noise. Without that, noise in bins that no row is in is most of what is added to a squared error.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, n_bins + 3)
    deviation : float
        Of the noise of a count.

    Returns
    -------
    ndarray of shape (n_tables, n_bins)
    """
    counts = tables[:, :-NODES][:, ::-1]
    tails = np.cumsum(counts, axis=1)
    reached = tails > deviation * np.sqrt(np.arange(1, counts.shape[1] + 1))
    reached[:, -1] = True
    first = np.argmax(reached, axis=1)[:, None]
    places = np.arange(counts.shape[1])
    kept = np.where(places < first, 0.0, np.where(places == first, np.take_along_axis(tails, first, 1), counts))
    return kept[:, ::-1]


def refined(counts: Doubles) -> tuple[Doubles, Doubles]:
    """Spread counts over finer cells by a linear density within each bin.

    Parameters
    ----------
    counts : ndarray of shape (n_tables, n_bins)

    Returns
    -------
    fine : ndarray of shape (n_tables, n_bins * 16)
    edges : ndarray of shape (n_bins * 16 + 1,)
    """
    at = edges(counts.shape[1])
    width, density = np.diff(at), counts / np.diff(at)
    rise = np.gradient(density, (at[:-1] + at[1:]) / 2, axis=1) * width**2
    rise = np.clip(rise, -2.0 * np.abs(counts), 2.0 * np.abs(counts))  # densities do not change their sign
    places = (np.arange(_PARTS) + 0.5) / _PARTS
    fine = (counts[..., None] + rise[..., None] * (places - 0.5)) / _PARTS
    inner = at[:-1, None] + width[:, None] * np.arange(_PARTS) / _PARTS
    return fine.reshape(len(counts), -1), np.append(inner.ravel(), at[-1])


def mean_power(counts: Doubles, power: int) -> Doubles:
    """Mean of a power of the sizes of errors."""
    fine, at = refined(counts)
    return np.maximum(fine @ ((at[:-1] + at[1:]) / 2) ** power / np.maximum(counts.sum(1), 1e-9), 0.0)


def variance(tables: Doubles) -> Doubles:
    """Variance of the targets, in the square of half their range."""
    lower, _, upper = np.moveaxis(tables[:, -NODES:], 1, 0)
    n = np.maximum(tables[:, -NODES:].sum(1), 1e-9)
    return np.clip((lower + upper) / n - ((upper - lower) / n) ** 2, 1e-4, 1.0)


def mean_target(tables: Doubles) -> Doubles:
    """Mean of the targets, from -1 to 1 between their bounds."""
    nodes = tables[:, -NODES:]
    return np.clip((nodes[:, 2] - nodes[:, 0]) / np.maximum(nodes.sum(1), 1e-9), -1.0, 1.0)


def r2(tables: Doubles, deviation: float) -> Doubles:
    """1 - mean squared error / variance; a quarter turns the square of the range into that of half of it."""
    return 1.0 - 4.0 * mean_power(clipped(tables, deviation), 2) / variance(tables)


def quantile(tables: Doubles, deviation: float, order: float) -> Doubles:
    """Quantile of the sizes of errors."""
    fine, at = refined(np.maximum(clipped(tables, deviation), 0.0))
    below = np.concatenate([np.zeros((len(fine), 1)), np.cumsum(fine, axis=1)], axis=1)
    below /= np.maximum(below[:, -1:], 1e-9)
    return np.array([np.interp(order, each, at) for each in below])


def conformal_order(n: float, alpha: float) -> float:
    """Order of the quantile that a new row is within with probability 1 - alpha, 1 where n is too small."""
    return 1.0 if n < 1.0 else min(1.0, float(np.ceil((n + 1.0) * (1.0 - alpha))) / n)
