"""The training loop of DP-SGD, its optimizers and averages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skdp._dpsgd.checkpoint import Checkpoint, Streams, TrainingState
from skdp._kernels.sums import adam_update, momentum_update

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
            new_theta /= 1.0 + rate * strength
        return new_theta, MomentumState(new_velocity, n_done + 1)

    return Optimizer(init, update)


def adam(
    learning_rate: Schedule, beta_1: float, beta_2: float, adam_epsilon: float, penalty: np.ndarray | float = 0.0
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
            new_theta /= 1.0 + rate * strength
        return new_theta, AdamState(new_first, new_second, n_done + 1)

    return Optimizer(init, update)


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
    kept: Callable[[], np.ndarray] | None = None


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

    def kept() -> np.ndarray:
        return np.minimum(1.0, (n_steps - np.arange(n_steps)) / (n_steps - start))

    return Averaging(lambda theta: (np.zeros_like(theta), 0), update, result, kept)


def ema_average(n_steps: int) -> Averaging:
    """Exponential moving average with the memory of a tenth of `n_steps`, its weights scaled to sum to one."""
    decay = max(0.0, 1.0 - 1.0 / (_EMA_SHARE * n_steps))

    def update(step: int, theta: np.ndarray, state: Any) -> Any:
        mean, weight = state
        weight = decay * weight + 1.0  # the sum of all weights so far, which makes them sum to one
        moved = mean + (theta - mean).astype(np.float64) * (1.0 / weight)
        return moved.astype(mean.dtype), weight

    def result(theta: np.ndarray, state: Any) -> np.ndarray:
        mean, weight = state
        return mean if weight else theta

    def kept() -> np.ndarray:
        weights = decay ** np.arange(n_steps)  # of the last iterate, the one before it, and so on
        return np.cumsum(weights)[::-1] / weights.sum()

    return Averaging(lambda theta: (np.zeros_like(theta), 0.0), update, result, kept)


def start_of_run(
    optimizer: Optimizer, theta: np.ndarray, stream: Any, averaging: Averaging, checkpoint: Checkpoint | None
) -> tuple[TrainingState, Streams]:
    """Return the state from which a run starts or resumes, and its streams of sampling and noise."""
    streams = stream.spawn("sampling"), stream.spawn("noise")
    state = TrainingState(0, theta, optimizer.init(theta), averaging.init(theta))
    return state if checkpoint is None else checkpoint.resume(state, streams), streams


def run_dpsgd(
    model: Any,
    plan: Any,
    optimizer: Optimizer,
    theta: np.ndarray,
    stream: Any,
    *,
    averaging: Averaging,
    on_step: Callable[[int], Any] | None,
    checkpoint: Checkpoint | None = None,
) -> tuple[np.ndarray, int]:
    """Run `plan` from `theta` (DP-SGD; Abadi et al. 2016, algorithm 1).

    Parameters
    ----------
    averaging : Averaging
        Average of the iterates that is returned. It is post-processing.
    on_step : callable or None
        Called with the number of steps done, after each step.
    checkpoint : Checkpoint or None
        File that stores the run and from which it resumes; it was begun before the charge. The state is written before
        this function returns, complete or not: otherwise resuming would release some steps twice.

    Returns
    -------
    theta : ndarray of shape (p,)
    n_steps : int
        Number of steps done, less than planned only after a `KeyboardInterrupt`, which ends the run and keeps its
        result.
    """
    state, streams = start_of_run(optimizer, theta, stream, averaging, checkpoint)
    sampling_stream, noise_stream = streams
    try:
        while state.n_done < plan.n_steps:
            # From the release on, a step is post-processing.
            lot = model.draw_lot(plan.sampling, sampling_stream, state.n_done)
            total = model.clipped_gradient_sum(state.theta, lot, plan.max_grad_norm)
            mechanism = plan.mechanisms[state.n_done]
            gradient = mechanism.release(total, noise_stream)
            gradient /= plan.expected_lot_size
            theta, moments = optimizer.update(gradient, state.optimizer, state.theta)
            average = averaging.update(state.n_done, theta, state.average)
            positions = None if checkpoint is None else checkpoint.positions(streams)
            # One assignment ends the step: an interrupt before it leaves the state of the step before.
            state = TrainingState(state.n_done + 1, theta, moments, average, positions)
            if checkpoint is not None:
                checkpoint.keep(state, now=state.n_done == plan.n_steps)
            if on_step is not None:
                on_step(state.n_done)
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.keep(state, now=True)
    return averaging.result(state.theta, state.average), state.n_done
