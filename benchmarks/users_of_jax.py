"""Logistic regression with jax-privacy's `UserSelectionStrategy`, in the environment of JAX: ``users_of_jax.py FILE``.

The file of arrays is that of `bench_units.py`, which starts this. A line of JSON tells, for each learning rate, the
score of each test row and the seconds of a step, without the first ones, which are compiled. A user drawn gives as
many of its rows as `rows_a_user`, one after the other and from the start again, and its mean gradient is clipped.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax_privacy
import numpy as np
from jax_privacy import batch_selection, noise_addition

WARM_UP = 5


def trainer(given: dict[str, Any]) -> Callable[[float], tuple[list[float], float]]:
    """Return what trains at a learning rate: scores of the test rows, and median seconds of a step with its draw."""
    X, y, groups = given["X"], given["y"], given["groups"]
    rate, n_steps, n_users = float(given["rate"]), int(given["n_steps"]), len(np.unique(groups))
    lot, clip, seed = rate * n_users, float(given["clip"]), int(given["seed"])
    room = int(lot + 6 * math.sqrt(lot))
    users = batch_selection.UserSelectionStrategy(
        batch_selection.CyclicPoissonSampling(rate, n_steps), int(given["rows_a_user"])
    )

    def loss(theta: Any, rows: Any, labels: Any) -> Any:
        scores = rows @ theta[:-1] + theta[-1]
        return jnp.mean(jax.nn.softplus(scores) - labels * scores)

    clipped = jax_privacy.clipped_grad(
        loss, batch_argnums=(1, 2), keep_batch_dim=False, l2_clip_norm=clip, normalize_by=lot
    )
    privatizer = noise_addition.gaussian_privatizer(stddev=float(given["noise"]) * clipped.sensitivity(), prng_key=seed)

    @jax.jit
    def update(theta: Any, noise: Any, learning_rate: Any, rows: Any, labels: Any, is_padding: Any) -> Any:
        noisy, noise = privatizer.update(clipped(theta, rows, labels, is_padding_example=is_padding), noise)
        return theta - learning_rate * noisy, noise

    def train(learning_rate: float) -> tuple[list[float], float]:
        theta, mean, seconds = jnp.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1), []
        noise, start = privatizer.init(theta), time.perf_counter()
        for step, drawn in enumerate(users.batch_iterator(groups, np.random.default_rng(seed))):
            chosen = np.zeros((room, int(given["rows_a_user"])), np.int64)
            chosen[: len(drawn)] = drawn[:room]
            lot_of_step = X[chosen], y[chosen], np.arange(room) >= len(drawn)
            theta, noise = jax.block_until_ready(update(theta, noise, learning_rate, *lot_of_step))
            seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            mean += (step >= n_steps // 2) * np.asarray(theta)
        return (given["X_test"] @ mean[:-1]).tolist(), float(np.median(seconds[WARM_UP:]))

    return train


def main() -> None:
    with np.load(sys.argv[1]) as file:
        given = dict(file)
    train = trainer(given)
    print(json.dumps({str(rate): train(float(rate)) for rate in given["learning_rates"]}))


if __name__ == "__main__":
    main()
