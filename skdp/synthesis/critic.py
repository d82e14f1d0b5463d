"""Critics with a gradient penalty (WGAN-GP): clipped sums of the gradients of rows.

For a row x with the label y, its own noise z and its own number a in [0, 1), the critic f minimizes ``f(x_fake, y) -
f(x, y) + lambda (|g| - 1)**2``. Here x_fake is the generator's output for z and y, and g is the gradient of f by the
features at ``a x + (1 - a) x_fake`` (Gulrajani et al. 2017, "Improved training of Wasserstein GANs"). The activation is
piecewise linear, so in a layer the gradient of this by the parameters is the sum of three outer products of an input
and a derivative by the output: one of x_fake, one of x with a minus, and one of the penalty, whose input is ``v = 2
lambda (|g|
- 1) g / |g|``, carried forward through the same slopes as the interpolated point. It does not depend on the intercepts.
The squared norm of such a sum is one of 3 x 3 numbers, products of dot products.

In the first layer W, neither g nor the interpolated point is computed. Scores of that point lie between those of the
other two, since the layer is linear. With ``g = W delta`` one has ``|g|**2 = delta' (W'W) delta``, ``x . g = (W'x) .
delta``, and the sum over rows of ``v delta'`` is W times a small matrix. This requires two products by the features in
the forward pass, and two in the backward pass.

**Rounding.** Two neighboring lots differ in one row, and all other rows keep their positions and the bits of their
factors (under ``add_remove`` they do not, and the arithmetic is float64). Let a row's three products in layer k have
norms t_k1, t_k2, t_k3, and let S be the root of the sum over layers of ``(t_k1 + t_k2 + t_k3)**2``. The row's factor f
is at most C' / N and at most K C' / S, with N the norm of the sum and K = 8: products can cancel, and their rounding
errors do not. Sums of B = 64 rows, of at most 3 B products each, are computed in the dtype of the rows, whose unit
roundoff is u; in any order, the error of such a sum is at most ``gamma = (3 B + 1) u / (1 - (3 B + 1) u)`` times the
sum of f S over its rows (Higham 2002, 3.5 and 4.2), so at most ``gamma B K C'``. It occurs in both neighbors, and f
times a derivative is rounded once more. Hence a row changes the sum by at most ``C' (1 + 2 gamma B K + 2 u K)``, and C'
is C divided by that: 1.2% below C in float32. Blocks are added up in float64, and the part of the penalty in the first
layer is float64 from the start. Dot products of the norm N are float64 sums, whose error is below ``roundoff S**2``;
those that use products by the features, ``W'x`` and ``W'W``, include the bound of their rounding
(`skdp._kernels.critic.add_first_grams`).

Below 2**-126 rounding is no longer relative. A product of W'W, or of delta and it, loses at most 2**-150. If that could
matter, at ``|g|**2`` up to ``1e-24 max(|delta|**2, |delta|)``, g counts as 0, because a factor can be any function of
its row. A factor times a derivative can be off by 2**-150 too: rows with an input of a norm above 1e20 add nothing, so
this is far below any clipping norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdp._dpsgd.models.linear import Model
from skdp._dpsgd.models.network import count_parameters, split_tables
from skdp._kernels import critic as kernel
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.generator import MARK, GeneratorNetwork, with_labels

SLOPE = 0.2
"""Slope of a critic's activation below zero."""

_BLOCK_ROWS = 64
"""Values whose gradients are added up in their dtype."""

_CHUNK_ROWS = 16 * _BLOCK_ROWS
_MOST = 8.0  # K of the docstring
_LEAST = 1e-30  # factors below leave the range of single precision


@dataclass(frozen=True)
class CriticNetwork:
    """A dense network from a row and its label to a score.

    Parameters
    ----------
    n_features, n_classes : int
        There are no classes without labels.
    hidden : tuple of int
        Widths of the hidden layers, one at least.
    penalty : float
        lambda.
    """

    n_features: int
    n_classes: int
    hidden: tuple[int, ...]
    penalty: float

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.n_features + self.n_classes, *self.hidden, 1)

    @property
    def n_parameters(self) -> int:
        return count_parameters(self.widths)

    def tables(self, theta: np.ndarray) -> list[np.ndarray]:
        """Views of the layers' tables."""
        return split_tables(theta, self.widths)

    def by_features(self, theta: np.ndarray, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Derivative of the score of each row by its features, of the shape of `rows`."""
        tables = self.tables(theta)
        values, slopes = with_labels(rows, codes, self.n_classes), []
        for table in tables[:-1]:
            scores = values @ table
            slopes.append(np.where(scores > 0, scores.dtype.type(1.0), scores.dtype.type(SLOPE)))
            values = np.ones((len(rows), table.shape[1] + 1), scores.dtype)
            np.multiply(scores, slopes[-1], out=values[:, :-1])
        delta = slopes[-1] * tables[-1][:-1, 0]
        for k in range(len(tables) - 2, 0, -1):
            delta = (delta @ tables[k][:-1].T) * slopes[k - 1]
        return delta @ tables[0][: self.n_features].T


class Lot(NamedTuple):
    """Rows of a step, and the streams of their noise and of their shares in the points between."""

    rows: np.ndarray
    noise: SecretStream
    shares: SecretStream


class PairModel(Model):
    """Rows and labels of a critic, each row paired with a generated one.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64, C order
    codes : ndarray of shape (n,), int64
        Indices of the labels; empty without labels.
    low, high : ndarray of shape (d,)
        Public bounds. Values are clipped to them and mapped to [-1, 1].
    critic : Critic
    generator : GeneratorNetwork
        Its parameters follow those of the critic in `theta`.
    dtype : dtype
        Of the arithmetic.

    Notes
    -----
    **Guarantees.** The generated row of a pair, and the weight of the row in the interpolated point, depend on no other
    row.

    Proof. Every row of a lot has its own noise and number a, drawn from streams that are independent of the rows. Given
    these, its gradient is a function of the row, its label and `theta`, and of no other row. If a row is added or
    removed, other rows get other numbers of the same streams. They are independent and identically distributed, so the
    sum is distributed as if each row had its own fixed numbers. A mechanism whose guarantee holds given these numbers
    has it without them, because they do not depend on the rows (quasi-convexity of mixtures).
    """

    _room: int  # pairs that are in memory at once
    _joins_labels: bool  # whether columns for labels follow the features of a pair

    def __init__(
        self,
        X: np.ndarray,
        codes: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        critic: Any,
        generator: GeneratorNetwork,
        *,
        dtype: Any,
    ) -> None:
        self.n_rows, self.critic, self.generator = len(X), critic, generator
        self._X, self._codes, self._dtype = X, codes, np.dtype(dtype)
        self._low, self._unit = low, 2.0 / (high - low)
        n_labels = critic.n_classes if self._joins_labels else 0
        self._pairs = np.empty((self._room, 2, X.shape[1] + n_labels + 1), self._dtype)

    def draw_lot(self, sampling: Sampling, stream: SecretStream, step: int) -> Lot:
        rows = sampling.rows(self.n_rows, stream)
        rows = np.arange(self.n_rows) if rows is None else rows
        return Lot(rows, stream.spawn("noise of fakes", step), stream.spawn("shares", step))

    def _fill_pairs(self, theta: np.ndarray, lot: Lot) -> np.ndarray:
        """Store rows and their generated rows; return the weight of each row in the interpolated point."""
        rows, critic, generator = lot.rows, self.critic, self.generator
        m = len(rows)
        latent = lot.noise.normal(m * generator.n_latent, self._dtype).reshape(m, -1)
        mix = (lot.shares.words(m) >> np.uint64(11)) * 2.0**-53
        pairs, codes = self._pairs[:m], self._codes[rows] if critic.n_classes else None
        kernel.gather_pairs(self._X, rows, self._low, self._unit, self._codes, MARK, pairs)
        pairs[:, 0, : critic.n_features] = generator.rows(theta[critic.n_parameters :], latent, codes)
        return mix.astype(self._dtype)


class CriticModel(PairModel):
    """Rows and labels of a dense critic, ready for clipped gradient sums.

    Parameters
    ----------
    X, codes, low, high, generator, dtype
        As for `PairModel`.
    critic : CriticNetwork

    Notes
    -----
    **Guarantees.** A row changes the sum of a lot by at most the clipping norm, for any row and label, including
    rounding within a block. A row with NaN or infinity changes nothing.

    Proof. The contribution of a row is its gradient, which by `PairModel` depends on no other row, times its factor;
    see the module for norm and rounding.
    """

    critic: CriticNetwork
    _room, _joins_labels = _CHUNK_ROWS, True

    def __init__(self, *rows: Any, **given: Any) -> None:
        super().__init__(*rows, **given)
        room, widths = self._room, self.critic.widths
        self._outputs = [np.ones((room, 3, width + 1), self._dtype) for width in self.critic.hidden]
        self._ones = np.ones((room, 3, 1), self._dtype)
        roundoff = 0.5 * float(np.finfo(self._dtype).eps)
        terms = (3 * _BLOCK_ROWS + 1) * roundoff
        self._slack = 1.0 + 2.0 * _MOST * (terms / (1.0 - terms) * _BLOCK_ROWS + roundoff)
        # Of products of the first layer, each of which is of at most `wide` terms.
        wide = (widths[0] + widths[1] + 16) * roundoff
        self._error = 2.0 * wide / (1.0 - wide)
        self._roundoff = 2.0**-50 * (max(widths) + 16)

    def clipped_gradient_sum(self, theta: np.ndarray, lot: Lot, max_norm: float) -> np.ndarray:
        """Sum over the lot of clipped gradients by the parameters of the critic, which `theta` begins with."""
        total = np.zeros(self.critic.n_parameters)
        tables, totals = self.critic.tables(theta), self.critic.tables(total)
        weights = tables[0][: self.critic.n_features]
        between = np.zeros((weights.shape[1],) * 2)
        with np.errstate(all="ignore"):  # a row that overflows adds nothing, and a warning would reveal it
            square = weights.T @ weights
            for start in range(0, len(lot.rows), _CHUNK_ROWS):
                rows = lot.rows[start : start + _CHUNK_ROWS]
                mix = self._fill_pairs(theta, lot._replace(rows=rows))
                self._add_chunk(tables, square, rows, mix, max_norm / self._slack, totals, between)
        if between.any():  # parameters that overflow mute every row, and 0 times infinity is NaN
            totals[0][: self.critic.n_features] += weights.astype(np.float64) @ between
        return total

    def _add_chunk(
        self,
        tables: list[np.ndarray],
        square: np.ndarray,
        rows: np.ndarray,
        mix: np.ndarray,
        max_norm: float,
        totals: list[np.ndarray],
        between: np.ndarray,
    ) -> None:
        """Add a chunk's clipped gradients; `between` is the factor of W of the first layer."""
        m, n_layers, slope = len(rows), len(tables), self._dtype.type(SLOPE)
        pairs, outputs = self._pairs[:m], [each[:m] for each in self._outputs]
        scores = _times(pairs, tables[0])
        kernel.activate_between(scores, mix, slope, outputs[0])
        for k in range(1, n_layers - 1):
            values = _times(outputs[k - 1], tables[k])
            kernel.activate_rows(values.reshape(3 * m, -1), slope, outputs[k].reshape(3 * m, -1))
        deltas = self._backward(tables, outputs, slope)
        forward = deltas[0][:, 2] @ square
        gradients, factors = np.empty(m), np.empty(m)
        kernel.penalty_factors(forward, deltas[0], self.critic.penalty, gradients, factors)
        for k in range(n_layers - 1):
            kernel.start_forward(forward, factors if k == 0 else np.ones(m), slope, outputs[k])
            if k < n_layers - 2:
                forward = outputs[k][:, 2, :-1] @ tables[k + 1][:-1]
        squares, lengths, clipped = np.zeros(m), np.zeros(m), np.empty(m)
        kernel.add_first_grams(
            pairs, scores, deltas[0], self._codes, rows, self._offsets(tables[0]), gradients, factors,
            float(np.linalg.norm(tables[0].astype(np.float64))), self._error, squares, lengths,
        )  # fmt: skip
        for k in range(1, n_layers):
            kernel.add_grams(outputs[k - 1], deltas[k], squares, lengths)
        muted = kernel.clip_factors(squares, lengths, max_norm, _MOST, self._roundoff, _LEAST, clipped)
        if muted:
            for each in (pairs, *outputs, *deltas):
                kernel.mute_rows(clipped, each)
            factors[clipped == 0.0] = 0.0
        of_penalty = deltas[0][:, 2].astype(np.float64)
        between += (of_penalty * (clipped * factors)[:, None]).T @ of_penalty
        first = np.ascontiguousarray(deltas[0][:, :2])
        for k, (inputs, delta) in enumerate(zip([pairs, *outputs], [first, *deltas[1:]], strict=True)):
            kernel.clip_rows(clipped, delta)
            _add_products(inputs, delta, totals[k])

    def _backward(self, tables: list[np.ndarray], outputs: list[np.ndarray], slope: Any) -> list[np.ndarray]:
        """Derivatives of the scores by the output of each layer, of shape (m, 3, width) each."""
        m, deltas = len(outputs[0]), [self._ones[: len(outputs[0])].copy()]
        for k in range(len(tables) - 1, 0, -1):
            delta = _times(deltas[0], tables[k][:-1].T)
            width = outputs[k - 1].shape[2]
            kernel.multiply_by_slopes(
                outputs[k - 1].reshape(3 * m, width)[:, :-1], slope, delta.reshape(3 * m, width - 1)
            )
            deltas.insert(0, delta)
        return deltas

    def _offsets(self, table: np.ndarray) -> np.ndarray:
        """Contribution of label and intercept to the scores of the first layer, label by label."""
        offsets = table[-1].astype(np.float64) + MARK * table[self.critic.n_features : -1].astype(float)
        return offsets if len(offsets) else table[-1:].astype(np.float64)


def _times(values: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Multiply rows, of shape (m, k, a), by a table of shape (a, b)."""
    m, k, width = values.shape
    return (values.reshape(m * k, width) @ table).reshape(m, k, -1)


def _add_products(inputs: np.ndarray, deltas: np.ndarray, total: np.ndarray) -> None:
    """Add the outer products of inputs, (m, k, a), and derivatives, (m, k, b), to a total, by blocks of rows."""
    for start in range(0, len(inputs), _BLOCK_ROWS):
        left = inputs[start : start + _BLOCK_ROWS].reshape(-1, inputs.shape[2])
        right = deltas[start : start + _BLOCK_ROWS].reshape(-1, deltas.shape[2])
        kernel.add_block(left.T @ right, total)
