"""A dense network that makes rows of noise and labels. It reads no private row, so what it does is free."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp._training.models.network import split_tables
from skdp.mechanisms.streams import SecretStream

Values = NDArray[np.floating]
Codes = NDArray[np.int64]


def start_tables(tables: list[np.ndarray], stream: SecretStream) -> None:
    """Fill tables of zeros with normal weights of variance 2 / inputs (He et al. 2015)."""
    for table in tables:
        weights = table[:-1]
        weights[:] = stream.normal(weights.size).reshape(weights.shape) * math.sqrt(2.0 / len(weights))


def with_labels(values: Values, codes: Codes | None, n_classes: int, mark: float) -> Values:
    """Return values, a column for each class, `mark` in that of the row's, and a column of ones."""
    n, d = values.shape
    joined = np.zeros((n, d + n_classes + 1), values.dtype)
    joined[:, :d] = values
    if codes is not None:
        joined[np.arange(n), d + codes] = mark
    joined[:, -1] = 1.0
    return joined


@dataclass(frozen=True)
class GeneratorNetwork:
    """A network from normal noise and a label to a row in [-1, 1], with ReLU between and a hyperbolic tangent at last.

    Each row is a function of its own noise and label alone: nothing is normalised over a batch.

    Parameters
    ----------
    n_latent : int
        Numbers of noise for a row.
    n_classes : int
        0 without labels.
    hidden : tuple of int
        Widths of the hidden layers.
    n_features : int
    mark : float
        What represents the label in its column; 0 stands in all others.
    """

    n_latent: int
    n_classes: int
    hidden: tuple[int, ...]
    n_features: int
    mark: float

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.n_latent + self.n_classes, *self.hidden, self.n_features)

    def rows(self, theta: np.ndarray, latent: Values, codes: Codes | None) -> Values:
        """Make rows, of shape (m, n_features), of noise of shape (m, n_latent) and the numbers of their labels."""
        return self._layers(theta, latent, codes)[-1]

    def gradient(
        self, theta: np.ndarray, latent: Values, codes: Codes | None, derivative: Callable[[Values], Values]
    ) -> NDArray[np.floating]:
        """Derivative of a sum over rows by the parameters, of shape (p,).

        Parameters
        ----------
        theta : ndarray of shape (p,)
        latent : ndarray of shape (m, n_latent)
        codes : ndarray of shape (m,) or None
        derivative : callable
            Takes rows, and returns the derivative of the sum by them.
        """
        outputs = self._layers(theta, latent, codes)
        tables, gradient = split_tables(theta, self.widths), np.empty_like(theta)
        parts = split_tables(gradient, self.widths)
        delta = derivative(outputs[-1]) * (1.0 - outputs[-1] * outputs[-1])
        for k in range(len(tables) - 1, -1, -1):
            np.matmul(outputs[k].T, delta, out=parts[k])
            if k:
                delta = (delta @ tables[k][:-1].T) * (outputs[k][:, :-1] > 0)
        return gradient

    def _layers(self, theta: np.ndarray, latent: Values, codes: Codes | None) -> list[Values]:
        """Inputs of the layers, a 1 at the end of each row, and what comes out of the last."""
        tables = split_tables(theta, self.widths)
        outputs = [with_labels(latent, codes, self.n_classes, self.mark)]
        for table in tables[:-1]:
            values = np.ones((len(latent), table.shape[1] + 1), theta.dtype)
            np.matmul(outputs[-1], table, out=values[:, :-1])
            np.maximum(values, 0, out=values)
            outputs.append(values)
        made = outputs[-1] @ tables[-1]
        outputs.append(np.tanh(made, out=made))
        return outputs
