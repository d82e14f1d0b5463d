"""The loop of noisy gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skdp._training.averaging import Averaging
from skdp._training.checkpoint import Checkpoint, Streams, TrainingState
from skdp._training.models.bound_rows import Model
from skdp._training.optimizers import Optimizer
from skdp._training.plan import DPSGDPlan
from skdp.mechanisms.streams import SecretStream


def start_of_run(
    optimizer: Optimizer, theta: np.ndarray, stream: SecretStream, averaging: Averaging, checkpoint: Checkpoint | None
) -> tuple[TrainingState, Streams]:
    """Return the state from which a run starts or resumes, and its streams of sampling and noise."""
    streams = stream.spawn("sampling"), stream.spawn("noise")
    state = TrainingState(0, theta, optimizer.init(theta), averaging.init(theta))
    return state if checkpoint is None else checkpoint.resume(state, streams), streams


def run_dpsgd(
    model: Model,
    plan: DPSGDPlan,
    optimizer: Optimizer,
    theta: np.ndarray,
    stream: SecretStream,
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
            mechanism = plan.mechanism_at(state.n_done)
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
