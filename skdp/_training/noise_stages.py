"""How the noise of a run is spread over its steps."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LEVELS = 8
_LEAST_SHARE = 0.05


class Stage(NamedTuple):
    """Consecutive steps of one noise: how many, and their noise over the constant noise of a run of the same price."""

    n_steps: int
    factor: float


def falling_noise(kept: NDArray[np.float64]) -> tuple[Stage, ...]:
    """Spread the noise of full-batch steps so that it is small where the result keeps it.

    Parameters
    ----------
    kept : ndarray of shape (n_steps,)
        Which part of the move of each step the result of the run keeps, in [0, 1] (`Averaging.kept`).

    Returns
    -------
    tuple of Stage
        Their numbers of steps sum to T, and ``n_steps / factor**2`` too.

    Notes
    -----
    Full-batch steps of noise multipliers sigma_t cost as much as one Gaussian release with ``mu**2 = sum of
    1 / sigma_t**2`` (Dong, Roth & Su 2022, corollary 2). With shares s_t of mu**2 that sum to 1, the noise of the
    result along a direction in which the loss is flat has a variance proportional to the sum of ``w_t**2 / s_t``, where
    w_t is what is kept of step t. It is least at s_t proportional to w_t (Cauchy & Schwarz). Where the loss is curved
    early noise is forgotten, so that a step of which nothing is kept still has a small share. Shares are rounded up to
    eighths, so that an event has few parts.
    """
    shares = np.ceil(np.round(kept * _LEVELS, 9)) / _LEVELS + _LEAST_SHARE
    shares /= shares.mean()
    groups = itertools.groupby(shares.tolist())
    return tuple([Stage(len(list(each)), 1.0 / math.sqrt(share)) for share, each in groups])


__all__ = ["Stage", "falling_noise"]
