"""Averages of iterates: post-processing of releases, which costs no privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._kernels.updates import move_towards

_EMA_SHARE = 0.1


class Averaging(NamedTuple):
    """``init(theta) -> state``, ``update(step, theta, state) -> state`` and ``result(theta, state) -> theta``.

    ``kept()`` gives, for each step of a run, the part of its move that the result keeps: the weight of the iterates
    from it on. `kept` is None where that is all of it. Steps count from 0, and `result` is called after the last one. A
    state is never modified: a run that is stopped in the middle of a step falls back to the state before it.
    """

    init: Callable[[np.ndarray], Any]
    update: Callable[[int, np.ndarray, Any], Any]
    result: Callable[[np.ndarray, Any], np.ndarray]
    kept: Callable[[], NDArray[np.float64]] | None = None


def last_iterate() -> Averaging:
    """No average."""
    return Averaging(lambda theta: None, lambda step, theta, state: None, lambda theta, state: theta)


def tail_average(n_steps: int) -> Averaging:
    """The mean of the iterates of the second half of `n_steps` (suffix averaging; Rakhlin, Shamir & Sridharan 2012)."""
    start = n_steps // 2

    def update(step: int, theta: np.ndarray, state: Any) -> Any:
        total, count = state
        return (total + theta, count + 1) if step >= start else state

    def result(theta: np.ndarray, state: Any) -> np.ndarray:
        total, count = state
        return total / theta.dtype.type(count) if count else theta

    def kept() -> NDArray[np.float64]:
        return np.minimum(1.0, (n_steps - np.arange(n_steps)) / (n_steps - start))

    return Averaging(lambda theta: (np.zeros_like(theta), 0), update, result, kept)


def ema_average(n_steps: int) -> Averaging:
    """Exponential moving average with the memory of a tenth of `n_steps`, its weights scaled to sum to one."""
    decay = max(0.0, 1.0 - 1.0 / (_EMA_SHARE * n_steps))

    def update(step: int, theta: np.ndarray, state: Any) -> Any:
        mean, weight = state
        weight = decay * weight + 1.0  # the sum of all weights so far, which makes them sum to one
        moved = np.empty_like(mean)
        move_towards(mean, theta, 1.0 / weight, moved)
        return moved, weight

    def result(theta: np.ndarray, state: Any) -> np.ndarray:
        mean, weight = state
        return mean if weight else theta

    def kept() -> NDArray[np.float64]:
        weights = decay ** np.arange(n_steps)  # of the last iterate, the one before it, and so on
        return np.cumsum(weights)[::-1] / weights.sum()

    return Averaging(lambda theta: (np.zeros_like(theta), 0.0), update, result, kept)
