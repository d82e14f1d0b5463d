"""Optimizers of one flat vector: post-processing of noisy gradients, which costs no privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skdp._kernels.updates import adam_update, momentum_update, shrink

Schedule = Callable[[int], float]


class MomentumState(NamedTuple):
    """Velocity, and the number of steps done."""

    velocity: np.ndarray
    n_done: int


class AdamState(NamedTuple):
    """First and second moments, and the number of steps done."""

    first: np.ndarray
    second: np.ndarray
    n_done: int


class Optimizer(NamedTuple):
    """A pair of functions: ``init(theta) -> state`` and ``update(gradient, state, theta) -> (theta, state)``."""

    init: Callable[[np.ndarray], Any]
    update: Callable[[np.ndarray, Any, np.ndarray], tuple[np.ndarray, Any]]


def constant(rate: float) -> Schedule:
    """Schedule with the same step size at every step."""
    return lambda step: rate


def linear_decay(start: float, end: float, n_steps: float) -> Schedule:
    """Linear schedule from `start` to `end` over `n_steps`, and `end` from then on (Abadi et al. 2016, 5.2)."""
    return lambda step: start + (end - start) * min(1.0, step / n_steps)


def cosine_decay(start: float, end: float, n_steps: float) -> Schedule:
    """Schedule from `start` to `end` along half a cosine (Loshchilov & Hutter 2017, equation 5, without restarts)."""
    return lambda step: end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, step / n_steps)))


def momentum_sgd(learning_rate: Schedule, momentum: float, penalty: np.ndarray | float = 0.0) -> Optimizer:
    """Gradient descent with dampened momentum and an implicit step for an L2 penalty.

    ``v = momentum * v + (1 - momentum) * g``, then ``theta = (theta - learning_rate * v) / (1 + learning_rate *
    penalty)``. The implicit step, the proximal operator of the penalty (Parikh & Boyd 2014, section 6.1.1), is stable
    however large the penalty is. It depends on no row, so it is neither clipped nor noised.

    Parameters
    ----------
    learning_rate : callable
        Step size as a function of the step's number, from 0.
    momentum : float in [0, 1)
    penalty : float or ndarray of shape (p,)
        Second derivative of the penalty, parameter by parameter.
    """

    strength = np.atleast_1d(np.asarray(penalty, np.float64))

    def init(theta: np.ndarray) -> Any:
        return MomentumState(np.zeros_like(theta), 0)

    def update(gradient: np.ndarray, state: MomentumState, theta: np.ndarray) -> tuple[np.ndarray, MomentumState]:
        velocity, n_done = state
        rate = learning_rate(n_done)
        new_velocity, new_theta = np.empty_like(velocity), np.empty_like(theta)
        momentum_update(gradient, velocity, theta, rate, momentum, new_velocity, new_theta)
        if strength.any():
            shrink(new_theta, rate, strength)
        return new_theta, MomentumState(new_velocity, n_done + 1)

    return Optimizer(init, update)


def adam(
    learning_rate: Schedule,
    beta_1: float,
    beta_2: float,
    adam_epsilon: float,
    penalty: np.ndarray | float = 0.0,
) -> Optimizer:
    """Adam on noisy gradients (DP-Adam).

    Parameters
    ----------
    learning_rate : callable
        Step size as a function of the step's number, from 0.
    beta_1, beta_2 : float in [0, 1)
    adam_epsilon : float
    penalty : float or ndarray of shape (p,)
        As for `momentum_sgd`. The penalty has an implicit step of its own and is not rescaled (AdamW; Loshchilov &
        Hutter 2019).
    """

    strength = np.atleast_1d(np.asarray(penalty, np.float64))

    def init(theta: np.ndarray) -> Any:
        return AdamState(np.zeros_like(theta), np.zeros_like(theta), 0)

    def update(gradient: np.ndarray, state: AdamState, theta: np.ndarray) -> tuple[np.ndarray, AdamState]:
        first, second, n_done = state
        rate = learning_rate(n_done)
        # Moments start at zero; these factors undo the bias (Kingma & Ba 2015, section 3).
        unbias_1 = 1.0 / (1.0 - beta_1 ** (n_done + 1))
        unbias_2 = 1.0 / (1.0 - beta_2 ** (n_done + 1))
        new_first, new_second, new_theta = np.empty_like(first), np.empty_like(second), np.empty_like(theta)
        adam_update(
            gradient, first, second, theta, rate, beta_1, beta_2, unbias_1, unbias_2, adam_epsilon,
            new_first, new_second, new_theta,
        )  # fmt: skip
        if strength.any():
            shrink(new_theta, rate, strength)
        return new_theta, AdamState(new_first, new_second, n_done + 1)

    return Optimizer(init, update)
