"""Hockey-stick sums of weighted losses, and the epsilon at which one is as small as asked for."""

from __future__ import annotations

import math

import numpy as np

from skdp._typing import Doubles

__all__ = ["epsilon_of", "hockey_stick"]

_ABOVE = 1e4  # mass in units of delta from which on a label alone says nearly where delta is reached


def hockey_stick(loss: Doubles, mass: Doubles, epsilon: float) -> float:
    """Sum of mass (1 - e^{epsilon - loss}) over the losses above epsilon.

    Parameters
    ----------
    loss, mass : array
    epsilon : float

    Returns
    -------
    float
    """
    above = int(np.searchsorted(loss, epsilon, side="right"))
    return float(mass[above:] @ -np.expm1(epsilon - loss[above:]))


def epsilon_of(loss: Doubles, mass: Doubles, goal: float) -> float:
    """Smallest epsilon at which the masses have a hockey-stick sum of at most `goal`.

    Parameters
    ----------
    loss, mass : array
        Labels, rising, and their masses.
    goal : float
        Above 0.

    Returns
    -------
    float
        Solution of the linear equation in e^epsilon within one grid cell; an end of `loss` if it lies
        beyond.
    """
    tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # mass at and above each point: delta(epsilon) is below it
    high = int(np.searchsorted(-tail[:-1], -goal, side="left"))
    if high == 0:
        return float(loss[0])
    if high == loss.size:
        return float(loss[-1])
    # delta(e) >= (1 - e^{e - l}) tail(l) for every l, so no solution lies below the largest l + log(1 - goal / tail(l))
    near = slice(max(int(np.searchsorted(-tail[:high], -goal * _ABOVE, side="right")) - 1, 0), high)
    least = float((loss[near] + np.log1p(-goal / tail[near])).max())
    low = max(int(np.searchsorted(loss, least)) - 1, 0)
    if loss[high] - loss[low] > 500.0:
        return float(loss[high])
    origin = loss[low]
    weighted = np.append(np.cumsum((mass[low:] * np.exp(origin - loss[low:]))[::-1])[::-1], 0.0)
    growth = np.exp(loss[low : high + 1] - origin)
    # delta at a point is what the masses above it say: its own, which may be far larger, has no part in it
    at_point = tail[low + 1 : high + 2] - growth * weighted[1 : high + 2 - low]
    cell = int(np.searchsorted(-at_point, -goal, side="left"))
    if cell == 0:
        return float(loss[low])
    below, above = float(loss[low + cell - 1]), float(loss[low + cell])
    part = float(growth[cell] * weighted[cell])
    if not 0.0 < part < math.inf:
        return above
    share = float(tail[low + cell] - goal) / part
    if share <= 0.0:
        return below
    return min(max(above + math.log(share), below), above)
