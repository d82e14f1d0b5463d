"""Convolutional critics with a gradient penalty (WGAN-GP): clipped sums of the gradients of images.

The loss and its gradient are those of `skdp.synthesis.gan.critic`. In a convolution the outer products become products
of patches and derivatives, summed over all places of an image: the gradient of a row is a sum of three matrix products
a layer. It is made for a few rows at a time, so that its norm is that of numbers in memory.

**Rounding.** What a row adds is its gradient as it is in memory, times a factor of float64. Norm and sum are float64:
for p parameters the norm has a relative error below ``p 2**-53``, for which the clip is lowered. All products are made
row by row, so other rows keep the bits of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._kernels import critic as kernel
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.gan.critic import Lot, PairModel
from skdp.synthesis.gan.generated_rows import Codes, Values, start_tables

_SIDE = 5  # of a patch, which moves by two pixels
_PATCH = _SIDE * _SIDE
_ROWS = 16  # whose gradients are in memory at once
_LEAST = 1e-30


@dataclass(frozen=True)
class ConvolutionalCritic:
    """A critic of images of one colour: three convolutions with C, 2 C and 4 C channels, and a linear layer.

    Patches are of 5 x 5 pixels and move by two. The label of an image adds a number to each channel of the first layer.

    Parameters
    ----------
    image_shape : (int, int)
        Height and width.
    n_classes : int
        0 without labels.
    capacity : int
        C.
    slope : float
        Of the activation below zero.
    penalty : float
        Weight of the gradient penalty.
    mark : float
        What represents a label.
    """

    image_shape: tuple[int, int]
    n_classes: int
    capacity: int
    slope: float
    penalty: float
    mark: float

    @property
    def n_features(self) -> int:
        return math.prod(self.image_shape)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Heights and widths of what goes into each layer."""
        found = [self.image_shape]
        for _ in range(3):
            found.append((-(-found[-1][0] // 2), -(-found[-1][1] // 2)))
        return found

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Shapes of the tables: of a convolution a row for each number of a patch, of the first one for each class
        too, and one for the intercepts.
        """
        c = self.capacity
        last = math.prod(self.sizes[3]) * 4 * c
        first = _PATCH + self.n_classes + 1
        return [(first, c), (_PATCH * c + 1, 2 * c), (_PATCH * 2 * c + 1, 4 * c), (last + 1, 1)]

    @property
    def n_parameters(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    def tables(self, theta: np.ndarray) -> list[np.ndarray]:
        """Views of the layers' tables, in the last axis of an array."""
        stops = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(theta, stops[:-1], axis=-1)
        return [part.reshape(*theta.shape[:-1], *shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def start(self, theta: np.ndarray, stream: SecretStream) -> None:
        """Fill the parameters, which are zeros, with random weights."""
        start_tables(self.tables(theta), stream)

    def forward(self, theta: np.ndarray, images: Values, codes: Codes | None) -> tuple[list[Values], list[Values]]:
        """Run images of shape (m, n_features) through the layers.

        Returns
        -------
        inputs : list of ndarray of shape (m, n_places, n_inputs)
            Patches that go into each layer, and all that goes into the last.
        slopes : list of ndarray of shape (m, n_places, n_channels)
            Derivatives of the activations.
        """
        tables, m = self.tables(theta), len(images)
        inputs, slopes = [], []
        values = images.reshape(m, *self.image_shape, 1)
        for k, table in enumerate(tables[:-1]):
            inputs.append(_patches(values))
            scores = inputs[-1] @ table[: inputs[-1].shape[2]]
            scores += table[-1]
            if k == 0 and codes is not None:
                scores += (table.dtype.type(self.mark) * table[_PATCH:-1])[codes][:, None]
            slopes.append(np.where(scores > 0, scores.dtype.type(1.0), scores.dtype.type(self.slope)))
            scores *= slopes[-1]
            values = scores.reshape(m, *self.sizes[k + 1], -1)
        return [*inputs, values.reshape(m, 1, -1)], slopes

    def backward(self, theta: np.ndarray, slopes: list[Values]) -> list[Values]:
        """Derivatives of the scores by what comes out of each convolution, of the shape of its slopes."""
        tables = self.tables(theta)
        deltas = [tables[3][:-1].reshape(1, -1, slopes[2].shape[2]) * slopes[2]]
        for k in (2, 1):
            spread = _spread(deltas[0] @ tables[k][:-1].T, self.sizes[k])
            deltas.insert(0, spread.reshape(slopes[k - 1].shape) * slopes[k - 1])
        return deltas

    def input_gradient(self, theta: np.ndarray, delta: Values) -> Values:
        """Derivative of the scores by the features, of the first derivative that `backward` returns."""
        return _spread(delta @ self.tables(theta)[0][:_PATCH].T, self.image_shape).reshape(len(delta), -1)

    def carried(self, theta: np.ndarray, images: Values, slopes: list[Values]) -> list[Values]:
        """Inputs of the layers for images whose activations have given slopes, without intercepts and labels."""
        m, inputs = len(images), []
        values = images.reshape(m, *self.image_shape, 1)
        for k, table in enumerate(self.tables(theta)[:-1]):
            inputs.append(_patches(values))
            values = (inputs[-1] @ table[: inputs[-1].shape[2]]) * slopes[k]
            values = values.reshape(m, *self.sizes[k + 1], -1)
        return [*inputs, values.reshape(m, 1, -1)]

    def by_features(self, theta: np.ndarray, rows: Values, codes: Codes | None) -> Values:
        """Derivative of the score of each row by its features, of the shape of `rows`."""
        found = np.empty_like(rows)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            _, slopes = self.forward(theta, rows[part], None if codes is None else codes[part])
            found[part] = self.input_gradient(theta, self.backward(theta, slopes)[0])
        return found


class ConvolutionalModel(PairModel):
    """Images and labels of a convolutional critic, ready for clipped gradient sums.

    Parameters
    ----------
    X, codes, low, high, generator, dtype
        As for `PairModel`.
    critic : ConvolutionalCritic

    Notes
    -----
    **Guarantees.** A row changes the sum of a lot by at most the clip, whatever it and its label contain, and by
    exactly nothing if it holds NaN or infinity.

    Proof. A row adds its gradient, which by `PairModel` depends on no other row, times ``min(1, C / norm)``; see the
    module for rounding.
    """

    critic: ConvolutionalCritic
    _room, _joins_labels = _ROWS, False

    def __init__(self, *rows: Any, **given: Any) -> None:
        super().__init__(*rows, **given)
        self._gradients = np.empty((_ROWS, self.critic.n_parameters), self._dtype)
        self._slack = 1.0 + self.critic.n_parameters * 2.0**-50

    def clipped_gradient_sum(self, theta: np.ndarray, lot: Lot, max_norm: float) -> NDArray[np.float64]:
        """Sum over the lot of clipped gradients by the parameters of the critic, which `theta` begins with."""
        total = np.zeros(self.critic.n_parameters)
        with np.errstate(all="ignore"):  # a row that overflows is muted, and a warning would reveal it
            for start in range(0, len(lot.rows), _ROWS):
                rows = lot.rows[start : start + _ROWS]
                mix = self._fill_pairs(theta, lot._replace(rows=rows))
                gradients = self._fill_gradients(theta[: self.critic.n_parameters], rows, mix)
                kernel.add_clipped(gradients, max_norm / self._slack, _LEAST, total)
        return total

    def _fill_gradients(self, theta: np.ndarray, rows: NDArray[np.int64], mix: Values) -> Values:
        """Gradients of rows, of shape (m, p)."""
        m, critic = len(rows), self.critic
        codes = self._codes[rows] if critic.n_classes else None
        fakes, reals = self._pairs[:m, 0, : critic.n_features], self._pairs[:m, 1, : critic.n_features]
        between = mix[:, None] * reals + (1 - mix[:, None]) * fakes
        images = np.concatenate([fakes, reals, between])
        inputs, slopes = critic.forward(theta, images, None if codes is None else np.tile(codes, 3))
        deltas = critic.backward(theta, slopes)
        g = critic.input_gradient(theta, deltas[0][2 * m :])
        length = np.sqrt(np.einsum("ij,ij->i", g, g, dtype=np.float64))
        factors = np.where(length > 0, 2.0 * critic.penalty * (length - 1.0) / length, 0.0 * length)
        carried = critic.carried(theta, g * factors[:, None].astype(g.dtype), [slope[2 * m :] for slope in slopes])
        gradients = self._gradients[:m]
        for k, part in enumerate(critic.tables(gradients)):
            if k == 3:
                part[:, :-1, 0] = (inputs[k][:m] - inputs[k][m : 2 * m] + carried[k])[:, 0]
                part[:, -1] = 0.0
                continue
            delta, width = deltas[k], inputs[k].shape[2]
            np.matmul(_across(inputs[k][:m]), delta[:m], out=part[:, :width])
            part[:, :width] -= _across(inputs[k][m : 2 * m]) @ delta[m : 2 * m]
            part[:, :width] += _across(carried[k]) @ delta[2 * m :]
            part[:, -1] = delta[:m].sum(axis=1) - delta[m : 2 * m].sum(axis=1)
            if k == 0 and codes is not None:
                part[:, width:-1] = 0.0
                part[np.arange(m), width + codes] = critic.mark * part[:, -1]
        return gradients


def _across(values: Values) -> Values:
    return values.transpose(0, 2, 1)


def _patches(images: Values) -> Values:
    """Patches of 5 x 5 pixels around every other pixel, of shape (m, n_places, 25 c), of images of (m, h, w, c)."""
    m, height, width, c = images.shape
    high, wide = -(-height // 2), -(-width // 2)
    padded = np.zeros((m, height + _SIDE, width + _SIDE, c), images.dtype)
    padded[:, 2 : 2 + height, 2 : 2 + width] = images
    patches = np.empty((m, high, wide, _SIDE, _SIDE, c), images.dtype)
    for y in range(_SIDE):
        for x in range(_SIDE):
            patches[:, :, :, y, x] = padded[:, y : y + 2 * high : 2, x : x + 2 * wide : 2]
    return patches.reshape(m, high * wide, _PATCH * c)


def _spread(patches: Values, size: tuple[int, int]) -> Values:
    """Add patches to the pixels that they are of: the transpose of `_patches`, of shape (m, h, w, c)."""
    m, (height, width) = len(patches), size
    high, wide = -(-height // 2), -(-width // 2)
    parts = patches.reshape(m, high, wide, _SIDE, _SIDE, -1)
    padded = np.zeros((m, height + _SIDE, width + _SIDE, parts.shape[5]), patches.dtype)
    for y in range(_SIDE):
        for x in range(_SIDE):
            padded[:, y : y + 2 * high : 2, x : x + 2 * wide : 2] += parts[:, :, :, y, x]
    return padded[:, 2 : 2 + height, 2 : 2 + width]
