"""Mean and covariance of rows in a cube, from one release."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skdp.cluster.rows import SharedNoise, WeightedRows
from skdp.mechanisms.second_moments import MomentSum, UnitBall, sensitivity

ENTRY = math.sqrt(0.225)
"""Entry k of a row beside its own. The release spends 30 % of mu**2 on the mean of rows at the corners of the cube."""

_ROWS = 4096


class RowMoments(NamedTuple):
    """Noisy moments of rows of the cube.

    Attributes
    ----------
    total : float
        Sum of the weights, at least 1.
    mean : ndarray of shape (d,)
        In the cube.
    root : ndarray of shape (d, d)
        A normal vector times its transpose has the covariance of the rows.
    variance : float
        Mean squared distance of the rows to their mean.
    """

    total: float
    mean: np.ndarray
    root: np.ndarray
    variance: float


def release_moments(rows: WeightedRows, adjacency: str, most: float, releases: SharedNoise, share: float) -> RowMoments:
    """Release the sum of w z z', z = (x / sqrt(d), k) / sqrt(1 + k**2); `most` is a public bound on the sum of weights.

    Notes
    -----
    **Guarantees.** The rows have a say by one Gaussian release of this share alone.

    Proof. x / sqrt(d) is in the unit ball, so z is, and w z z' has a norm of at most w <= 1; the ball of the sums
    scales z down where rounding makes it longer. Two such matrices are positive semidefinite, so their inner product is
    not negative, and they differ by sqrt(2) at most (`skdp.mechanisms.second_moments.sensitivity`). A unit of several
    rows adds an average of its rows, or less, and both bounds hold for averages, as norms are convex.
    """
    d = rows.values.shape[1]
    size = 1.0 + ENTRY**2
    sums = MomentSum(UnitBall(np.zeros(d + 1), 1.0), 0.0, by_position=False)
    for start in range(0, len(rows.values), _ROWS):
        part = slice(start, start + _ROWS)
        values = rows.values[part]
        z = np.full((len(values), d + 1), ENTRY)
        np.divide(values, math.sqrt(d), out=z[:, :-1])
        z /= math.sqrt(size)
        z *= np.sqrt(rows.weights[part, None])
        sums.add(z)
    noisy = releases.release(share, sums.vector, sensitivity(0.0, adjacency), "moments")
    gram = size * sums.read(noisy.value).gram
    total = float(np.clip(gram[d, d] / ENTRY**2, max(1.0, noisy.deviation), max(most, 1.0)))
    mean = np.clip(gram[d, :d] * math.sqrt(d) / (ENTRY * total), -1.0, 1.0)
    lower = gram[:d, :d] * (d / total)
    covariance = lower + np.tril(lower, -1).T - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 0.0, float(d))
    return RowMoments(total, mean, vectors * np.sqrt(values), max(float(values.sum()), 1e-12))
