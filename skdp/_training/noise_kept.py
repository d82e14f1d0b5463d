"""How far the noise of a run of momentum SGD carries its result."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter


class Carried(NamedTuple):
    """What the result of a run keeps of the parameters that it starts from, and of the noise of one step.

    Attributes
    ----------
    start : float
        Factor of the initial parameter in the result.
    noise : float
        Standard deviation of the result, divided by that of noise of factor 1 in a coordinate of a mean gradient.
    """

    start: float
    noise: float


def carried(
    learning_rate: float, momentum: float, penalty: float, n_done: int, first: int, factors: NDArray[np.float64]
) -> Carried:
    """Follow start and noise through `n_done` steps of constant length, where no row pulls at the parameters.

    Parameters
    ----------
    learning_rate, momentum : float
    penalty : float
        Second derivative of the L2 penalty.
    n_done : int
        Number of steps made.
    first : int
        The result is the mean of the iterates after steps ``first + 1, ..., n_done``.
    factors : ndarray of shape (at least n_done,)
        Noise of each step, over the noise in whose unit the result is.

    Notes
    -----
    The update ``v = m v + (1 - m) g``, ``theta = (theta - eta v) / (1 + eta penalty)`` is linear in theta, v and the
    gradients g. Let h_k be what g = 1 in one step, and 0 in all others, adds to theta k steps later (counting that step
    itself). Noise of step t, from 0, is in the iterate after step j as h_(j - t), so in the mean with the weight
    ``w_t = (h_(max(first, t) + 1 - t) + ... + h_(n_done - t)) / (n_done - first)``. Noises of different steps are
    independent: the variance of the result is the sum of w_t squared times the variance in step t.
    """
    if n_done == 0:
        return Carried(1.0, 0.0)
    impulse = np.zeros(n_done)
    impulse[0] = 1.0
    kept = 1.0 / (1.0 + learning_rate * penalty)
    velocity = lfilter([1.0 - momentum], [1.0, -momentum], impulse)
    moves = lfilter([-learning_rate * kept], [1.0, -kept], velocity)
    total = np.concatenate([[0.0], np.cumsum(moves)])
    step = np.arange(n_done)
    weights = (total[n_done - step] - total[np.maximum(first - step, 0)]) / (n_done - first) * factors[:n_done]
    start = float(np.mean(kept ** np.arange(first + 1, n_done + 1)))
    return Carried(start, math.sqrt(float(weights @ weights)))


__all__ = ["Carried", "carried"]
