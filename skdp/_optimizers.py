"""Optimisers on one flat vector: post-processing of noisy gradients, free of charge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Optimizer(NamedTuple):
    """A pair of functions: ``init(theta) -> state`` and ``update(gradient, state, theta) -> (theta, state)``."""

    init: Callable[[Vector], Any]
    update: Callable[[Vector, Any, Vector], tuple[Vector, Any]]


def momentum_sgd(learning_rate: float, momentum: float, penalty: Vector | float = 0.0) -> Optimizer:
    """Gradient descent with dampened momentum and an implicit step for an L2 penalty.

    ``v = momentum * v + (1 - momentum) * g``, then ``theta = (theta - learning_rate * v) / (1 + learning_rate *
    penalty)``. The implicit step, the proximal operator of the penalty (Parikh & Boyd 2014, section 6.1.1), is stable
    however large the penalty is. It depends on no row, so it stands outside the clip and has no noise.

    Parameters
    ----------
    learning_rate : float
    momentum : float in [0, 1)
    penalty : float or ndarray of shape (p,)
        Second derivative of the penalty, parameter by parameter.
    """
    penalised = np.any(penalty)
    shrinkage = 1.0 / (1.0 + learning_rate * penalty)

    def update(gradient: Vector, velocity: Vector, theta: Vector) -> tuple[Vector, Vector]:
        velocity = momentum * velocity + (1.0 - momentum) * gradient
        theta = theta - learning_rate * velocity
        return theta * shrinkage if penalised else theta, velocity

    return Optimizer(np.zeros_like, update)
