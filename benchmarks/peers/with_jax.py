"""JAX: plain, with gradients of rows by `vmap`, and jax-privacy. Clip 1, noise multiplier 1, learning rate .1."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from peers.limits import Taken, lots_beforehand
from peers.registry import contestant
from peers.tasks import Task

MICRO_BATCHES = {(60, 1000, 10): 50, (784, 1000, 10): 32, (4000, 10): 64}
"""Rows whose gradients are in memory together, by the shape; all rows of the lot for others, where that is faster."""


@contestant("JAX", "lots", role="plain", home="jax")
def plain(task: Task, X: Any, y: Any) -> Any:
    import jax

    loss, parameters = model_of(task)

    def gradient(parameters: Any, rows: Any, labels: Any, is_padding: Any) -> Any:
        def mean(parameters: Any) -> Any:
            losses = jax.vmap(loss, (None, 0, 0))(parameters, rows, labels)
            return jax.numpy.where(is_padding, 0.0, losses).sum() / task.lot

        return jax.grad(mean)(parameters)

    return training(task, gradient, parameters, beforehand(task, X, y), noise=0.0)


@contestant("JAX vmap", "lots", role="private", home="jax")
def by_row(task: Task, X: Any, y: Any) -> Any:
    return training(task, clipped_by_vmap(task), model_of(task)[1], beforehand(task, X, y), noise=1.0)


@contestant("JAX vmap, Poisson sampling", "lots", role="private", home="jax", draws=True)
def by_row_of_drawn_lots(task: Task, X: Any, y: Any) -> Any:
    return training(task, clipped_by_vmap(task), model_of(task)[1], drawn(task, X, y), noise=1.0)


@contestant("jax-privacy", "lots", role="private", home="jax")
def of_library(task: Task, X: Any, y: Any) -> Any:
    import jax
    import jax_privacy
    from jax_privacy import noise_addition

    loss, parameters = model_of(task)
    clipped = jax_privacy.clipped_grad(
        loss, argnums=0, batch_argnums=(1, 2), keep_batch_dim=False, l2_clip_norm=1.0, normalize_by=float(task.lot),
        microbatch_size=MICRO_BATCHES.get(task.widths),
    )  # fmt: skip
    privatizer = noise_addition.gaussian_privatizer(stddev=clipped.sensitivity(), prng_key=0)
    state, take = [parameters, privatizer.init(parameters)], beforehand(task, X, y)

    @jax.jit
    def update(parameters: Any, noise: Any, rows: Any, labels: Any, is_padding: Any) -> Any:
        total = clipped(parameters, rows, labels, is_padding_example=is_padding)
        noisy, noise = privatizer.update(total, noise)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, noisy), noise

    def step() -> None:
        state[:] = jax.block_until_ready(update(*state, *take()))

    return step


def model_of(task: Task) -> tuple[Any, Any]:
    """The loss of one row, and parameters to start from."""
    import jax
    import jax.numpy as jnp

    generator = np.random.default_rng(2)
    parameters = [
        (jnp.asarray(generator.standard_normal((a, b), dtype=np.float32) / math.sqrt(a)), jnp.zeros(b))
        for a, b in pairwise(task.widths)
    ]

    def loss(parameters: Any, row: Any, label: Any) -> Any:
        for layer, (table, bias) in enumerate(parameters):
            row = row @ table + bias
            row = jax.nn.relu(row) if layer < len(parameters) - 1 else row
        if task.widths[-1] == 1:
            return jax.nn.softplus(row[0]) - label * row[0]
        return jax.nn.logsumexp(row) - row[label]

    return loss, parameters


def clipped_by_vmap(task: Task) -> Any:
    import jax
    import jax.numpy as jnp

    gradient = jax.vmap(jax.grad(model_of(task)[0]), (None, 0, 0))

    def clipped(parameters: Any, rows: Any, labels: Any, is_padding: Any) -> Any:
        found = gradient(parameters, rows, labels)
        squares = sum((leaf.reshape(len(rows), -1) ** 2).sum(1) for leaf in jax.tree.leaves(found))
        factors = jnp.where(is_padding, 0.0, jnp.minimum(1.0, 1.0 / jnp.sqrt(jnp.maximum(squares, 1e-24))))
        return jax.tree.map(lambda leaf: jnp.tensordot(factors, leaf, 1), found)

    def by_micro_batches(parameters: Any, *lot: Any) -> Any:
        micro = MICRO_BATCHES[task.widths]
        parts = [each.reshape(-1, micro, *each.shape[1:]) for each in lot]
        add = lambda total, part: (jax.tree.map(jnp.add, total, clipped(parameters, *part)), None)  # noqa: E731
        return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, parameters), parts)[0]

    return by_micro_batches if task.widths in MICRO_BATCHES else clipped


def training(task: Task, gradient: Any, parameters: Any, take: Any, *, noise: float) -> Any:
    """A step of SGD, with noise on the sum if there is some."""
    import jax

    @jax.jit
    def update(parameters: Any, key: Any, *lot: Any) -> Any:
        found = gradient(parameters, *lot)
        if noise:
            key, *keys = jax.random.split(key, 1 + len(jax.tree.leaves(found)))
            leaves, tree = jax.tree.flatten(found)
            noisy = [(g + noise * jax.random.normal(k, g.shape)) / task.lot for k, g in zip(keys, leaves, strict=True)]
            found = tree.unflatten(noisy)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, found), key

    state = [parameters, jax.random.key(0)]

    def step() -> None:
        state[:] = jax.block_until_ready(update(*state, *take()))

    return step


def beforehand(task: Task, X: Any, y: Any) -> Any:
    import jax

    lots = [padded(task, task.lot, *lot) for lot in lots_beforehand(task, X, y)]
    return Taken([tuple(map(jax.device_put, lot)) for lot in lots])


def drawn(task: Task, X: Any, y: Any) -> Any:
    """Poisson sampling in NumPy, padded to the same number of rows, so that nothing is compiled again."""
    generator, room = np.random.default_rng(1), task.lot + 5 * math.isqrt(task.lot)

    def draw() -> tuple[Any, ...]:
        size = min(room, generator.binomial(task.n, task.rate))
        rows = generator.choice(task.n, size, replace=False, shuffle=False)
        return padded(task, room, X[rows], y[rows])

    return draw


def padded(task: Task, room: int, rows: Any, labels: Any) -> tuple[Any, ...]:
    room = -(-room // MICRO_BATCHES.get(task.widths, 64)) * MICRO_BATCHES.get(task.widths, 64)
    wide, marks = np.zeros((room, rows.shape[1]), np.float32), np.zeros(room, np.int32)
    wide[: len(rows)], marks[: len(rows)] = rows, labels
    return wide, marks, np.arange(room) >= len(rows)
