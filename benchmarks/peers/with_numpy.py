"""DP-SGD in thirty lines of NumPy with ghost norms: what a library without kernels of its own would give."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from peers.limits import Taken, lots_beforehand
from peers.registry import contestant
from peers.tasks import Task


@contestant("NumPy, 30 lines", "lots", role="private")
def given_lots(task: Task, X: Any, y: Any) -> Any:
    """Lots gathered beforehand, noise that is not secret."""
    return sgd(task, Taken(lots_beforehand(task, X, y)))


@contestant("NumPy, 30 lines, Poisson sampling", "lots", "busy", role="private", draws=True)
def drawn_lots(task: Task, X: Any, y: Any) -> Any:
    """Lots drawn and gathered in the step, noise that is not secret."""
    generator = np.random.default_rng(1)

    def draw() -> tuple[Any, Any]:
        rows = generator.choice(task.n, generator.binomial(task.n, task.rate), replace=False, shuffle=False)
        return X[rows], y[rows]

    return sgd(task, draw)


def sgd(task: Task, draw: Any) -> Any:
    """A step: clip 1, noise multiplier 1, learning rate .1."""
    generator, f32 = np.random.default_rng(2), np.float32
    tables = [generator.standard_normal(shape, dtype=f32) / f32(shape[0] ** 0.5) for shape in pairwise(task.widths)]
    biases, last = [np.zeros(width, f32) for width in task.widths[1:]], len(tables) - 1

    def step() -> None:
        rows, labels = draw()
        inputs = [rows]
        for layer, table in enumerate(tables):
            scores = inputs[-1] @ table
            scores += biases[layer]
            if layer < last:
                inputs.append(np.maximum(scores, 0, out=scores))
        if task.widths[-1] == 1:
            delta = 1 / (1 + np.exp(-scores)) - labels[:, None].astype(f32)
        else:
            delta = np.exp(scores - scores.max(1, keepdims=True))
            delta /= delta.sum(1, keepdims=True)
            delta[np.arange(len(labels)), labels] -= 1
        deltas = [delta]
        for layer in range(last, 0, -1):
            deltas.insert(0, (deltas[0] @ tables[layer].T) * (inputs[layer] > 0))
        pairs = list(zip(inputs, deltas, strict=True))
        squares = sum(np.einsum("ij,ij->i", d, d) * (1 + np.einsum("ij,ij->i", a, a)) for a, d in pairs)
        factors = np.minimum(1, 1 / np.sqrt(squares + 1e-12)).astype(f32)[:, None]
        for (a, d), table, bias in zip(pairs, tables, biases, strict=True):
            d *= factors
            for sums, parameters in ((a.T @ d, table), (d.sum(0), bias)):
                sums += generator.standard_normal(sums.shape, dtype=f32)
                parameters -= f32(0.1 / task.lot) * sums

    return step
