"""One pass over the parameters for a step of an optimiser.

Results are written to arrays of the caller. To return a new array, a kernel would call back into Python, where a Ctrl-C
would surface as an error of another type.
"""

from __future__ import annotations

import numpy as np

from skdp._kernels.caching import njit


@njit
def momentum_update(gradient, velocity, theta, rate, momentum, new_velocity, new_theta):
    """Dampened momentum: ``v = momentum * v + (1 - momentum) * g``, then ``theta - rate * v``.

    Parameters
    ----------
    gradient, velocity, theta : ndarray of shape (p,)
    rate, momentum : float
    new_velocity, new_theta : ndarray of shape (p,)
        Written.
    """
    for j in range(len(theta)):
        v = momentum * velocity[j] + (1.0 - momentum) * gradient[j]
        new_velocity[j] = v
        new_theta[j] = theta[j] - rate * v


@njit
def adam_update(
    gradient, first, second, theta, rate, beta_1, beta_2, unbias_1, unbias_2, epsilon,
    new_first, new_second, new_theta,
):  # fmt: skip
    """Adam (Kingma & Ba 2015, algorithm 1).

    Parameters
    ----------
    gradient, first, second, theta : ndarray of shape (p,)
    rate, beta_1, beta_2 : float
    unbias_1, unbias_2 : float
        1 / (1 - beta**t).
    epsilon : float
        Added to the root of the second moment.
    new_first, new_second, new_theta : ndarray of shape (p,)
        Written.
    """
    for j in range(len(theta)):
        m = beta_1 * first[j] + (1.0 - beta_1) * gradient[j]
        v = beta_2 * second[j] + (1.0 - beta_2) * gradient[j] * gradient[j]
        new_first[j] = m
        new_second[j] = v
        new_theta[j] = theta[j] - rate * (m * unbias_1) / (np.sqrt(v * unbias_2) + epsilon)


@njit
def shrink(theta, rate, penalty):
    """Divide by ``1 + rate * penalty`` in place; `penalty` has shape (p,), or (1,) for one of all."""
    if len(penalty) == 1:
        factor = 1.0 + rate * penalty[0]
        for j in range(len(theta)):
            theta[j] = theta[j] / factor
    else:
        for j in range(len(theta)):
            theta[j] = theta[j] / (1.0 + rate * penalty[j])


@njit
def move_towards(mean, theta, share, moved):
    """Write ``mean + share * (theta - mean)`` to `moved`, all of shape (p,)."""
    for j in range(len(mean)):
        moved[j] = mean[j] + share * (theta[j] - mean[j])
