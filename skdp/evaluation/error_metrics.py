"""Metrics of regressors, from counts of the sizes of errors in bins, and from two sums of the targets.

Sizes are in bins of about the same number of octaves: what noise in a count adds to a squared error falls with the
square of the size, so that fine bins of small errors add next to none. A table has the shape (n_tables, n_bins + 2):
counts of errors from small to large, then the sum of the targets, from -1 to 1 between their bounds, and that of their
squares.
"""

from __future__ import annotations

import numpy as np

OCTAVES = 14
SUMS = 2
_PARTS = 16


def edges(n_bins: int) -> np.ndarray:
    """Edges of the bins: 0, then 2^-14 to 1 times the range of the targets, by steps that are finer for large sizes.

    The bins of the smallest sizes span three times as many octaves as those of the largest.
    """
    inward = np.linspace(1.0, 0.0, n_bins)
    return np.concatenate([[0.0], 2.0 ** (-OCTAVES * (3.0 * inward + 2.0 * inward**3) / 5.0)])


def clipped(tables: np.ndarray, deviation: float) -> np.ndarray:
    """Counts of errors without those bins at the far end that hold noise alone; what they hold goes to the last one.

    From the far end inwards, a bin is reached when the sum of the counts up to it is above the standard deviation of
    its noise. Without that, noise in bins that no row is in is most of what is added to a squared error.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, n_bins + 2)
    deviation : float
        Of the noise of a count.

    Returns
    -------
    ndarray of shape (n_tables, n_bins)
    """
    counts = tables[:, :-SUMS][:, ::-1]
    tails = np.cumsum(counts, axis=1)
    reached = tails > deviation * np.sqrt(np.arange(1, counts.shape[1] + 1))
    reached[:, -1] = True
    first = np.argmax(reached, axis=1)[:, None]
    places = np.arange(counts.shape[1])
    kept = np.where(places < first, 0.0, np.where(places == first, np.take_along_axis(tails, first, 1), counts))
    return kept[:, ::-1]


def refined(counts: np.ndarray, tied_at: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Spread counts over finer cells by a linear density within each bin.

    Parameters
    ----------
    counts : ndarray of shape (n_tables, n_bins)
    tied_at : {0, 1} or None
        End of its bin at which errors lie that may be tied: all beyond twice as many as in the fuller neighbor. None
        spreads them too.

    Returns
    -------
    fine : ndarray of shape (n_tables, n_bins * 16)
    edges : ndarray of shape (n_bins * 16 + 1,)
    """
    at = edges(counts.shape[1])
    tied = np.zeros_like(counts) if tied_at is None else _tied(counts)
    rest, width = counts - tied, np.diff(at)
    rise = np.gradient(rest / width, (at[:-1] + at[1:]) / 2, axis=1) * width**2
    rise = np.clip(rise, -2.0 * np.abs(rest), 2.0 * np.abs(rest))  # densities do not change their sign
    places = (np.arange(_PARTS) + 0.5) / _PARTS
    fine = (rest[..., None] + rise[..., None] * (places - 0.5)) / _PARTS
    fine[..., -(tied_at or 0)] += tied
    inner = at[:-1, None] + width[:, None] * np.arange(_PARTS) / _PARTS
    return fine.reshape(len(counts), -1), np.append(inner.ravel(), at[-1])


def _tied(counts: np.ndarray) -> np.ndarray:
    """Counts beyond twice as many as in the fuller of the neighboring bins."""
    padded = np.pad(counts, [(0, 0), (1, 1)], mode="reflect")
    most = 2.0 * np.maximum(np.maximum(padded[:, :-2], padded[:, 2:]), 0.0)
    return np.maximum(counts - most, 0.0)


def mean_power(counts: np.ndarray, power: int, tied_at: int | None = None) -> np.ndarray:
    """Mean of a power of the sizes of errors."""
    fine, at = refined(counts, tied_at)
    return np.maximum(fine @ ((at[:-1] + at[1:]) / 2) ** power / np.maximum(counts.sum(1), 1e-9), 0.0)


def moments(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the targets, from -1 to 1 between their bounds. With noise the variance may be negative."""
    mean, square = tables[:, -SUMS:].T / np.maximum(tables[:, :-SUMS].sum(1), 1.0)
    return np.clip(mean, -1.0, 1.0), square - mean**2


def quantile(tables: np.ndarray, deviation: float, order: float, tied_at: int | None = None) -> np.ndarray:
    """Quantile of the sizes of errors."""
    fine, at = refined(np.maximum(clipped(tables, deviation), 0.0), tied_at)
    below = np.concatenate([np.zeros((len(fine), 1)), np.cumsum(fine, axis=1)], axis=1)
    below /= np.maximum(below[:, -1:], 1e-9)
    return np.array([np.interp(order, each, at) for each in below])


def conformal_order(n: float, alpha: float) -> float:
    """Order of the quantile that a new row is within with probability 1 - alpha, 1 where n is too small."""
    return 1.0 if n < 1.0 else min(1.0, float(np.ceil((n + 1.0) * (1.0 - alpha))) / n)
