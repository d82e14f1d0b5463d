"""Noisy gradient descent: the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp._optimizers import Optimizer, Vector
from skdp._plan import DPSGDPlan
from skdp._random import SecretStream


class Model(Protocol):
    """Rows bound to a loss: all that the loop needs to know of either."""

    @property
    def n_rows(self) -> int: ...

    def clipped_gradient_sum(self, theta: Vector, rows: NDArray[np.int64] | None, max_norm: float) -> Vector:
        """Sum over `rows` (None: all) of gradients, each clipped to Euclidean norm `max_norm`."""


def run_dpsgd(
    model: Model,
    plan: DPSGDPlan,
    optimizer: Optimizer,
    theta: Vector,
    stream: SecretStream,
    *,
    average: bool,
    on_step: Callable[[int], Any],
) -> tuple[Vector, int]:
    """Run `plan` from `theta` (DP-SGD; Abadi et al. 2016, algorithm 1).

    Parameters
    ----------
    average : bool
        Return the mean of the iterates of the plan's second half, free post-processing, and not the last one.
    on_step : callable
        Told the number of steps done after each.

    Returns
    -------
    theta : ndarray of shape (p,)
    n_steps : int
        Steps done: fewer than the plan's only after a `KeyboardInterrupt`, which ends the run and keeps its result.
    """
    sampling_stream, noise_stream = stream.spawn("sampling"), stream.spawn("noise")
    mechanism = plan.mechanism
    state, tail_start = optimizer.init(theta), plan.n_steps // 2
    tail_sum, n_done = np.zeros_like(theta), 0
    try:
        for step in range(plan.n_steps):
            rows = plan.sampling.rows(model.n_rows, sampling_stream)
            gradient = model.clipped_gradient_sum(theta, rows, plan.max_grad_norm)
            gradient = mechanism.release(gradient, noise_stream) / plan.expected_lot_size
            theta, state = optimizer.update(gradient, state, theta)
            if step >= tail_start:
                tail_sum = tail_sum + theta
            n_done = step + 1
            on_step(n_done)
    except KeyboardInterrupt:
        pass
    if average and n_done > tail_start:
        return tail_sum / (n_done - tail_start), n_done
    return theta, n_done
