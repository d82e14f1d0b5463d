"""Training of a critic and a generator for `DPWGAN`, and convolutional critics of images.

The loss of a convolutional critic and its gradient are those of `skdp.synthesis.critic`. In a convolution the outer
products become products of patches and derivatives, summed over all positions of an image: the gradient of a row is a
sum of three matrix products per layer. It is computed for a few rows at a time, so that its norm is that of the stored
numbers.

**Rounding.** The contribution of a row is its stored gradient times a float64 factor. Norm and sum are float64: for p
parameters the norm has a relative error below ``p 2**-53``, by which the clipping norm is lowered. All products are
computed row by row, so other rows keep their bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.parameters import check_choice, check_count, check_real, show
from skdp._dpsgd.loop import Optimizer, adam, constant, ema_average, last_iterate, run_dpsgd
from skdp._dpsgd.models.network import count_parameters, split_tables
from skdp._dpsgd.plan import DPSGDPlan
from skdp._kernels import critic as kernel
from skdp._kernels.threads import blas_within_quota
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.critic import SLOPE, CriticModel, CriticNetwork, Lot, PairModel
from skdp.synthesis.generator import MARK, GeneratorNetwork, start_tables

_SIDE = 5  # of a patch, which moves by two pixels
_PATCH = _SIDE * _SIDE
_ROWS = 16  # whose gradients are in memory at once
_LEAST = 1e-30


@dataclass(frozen=True)
class ConvolutionalCritic:
    """A critic of grayscale images: three convolutions with C, 2 C and 4 C channels, and a linear layer.

    Patches have 5 x 5 pixels and a stride of two. The label of an image adds a number to each channel of the first
    layer.

    Parameters
    ----------
    image_shape : (int, int)
        Height and width.
    n_classes : int
        0 without labels.
    capacity : int
        C.
    penalty : float
        Weight of the gradient penalty.
    """

    image_shape: tuple[int, int]
    n_classes: int
    capacity: int
    penalty: float

    @property
    def n_features(self) -> int:
        return math.prod(self.image_shape)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Heights and widths of the input of each layer."""
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

    def forward(
        self, theta: np.ndarray, images: np.ndarray, codes: np.ndarray | None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
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
                scores += (table.dtype.type(MARK) * table[_PATCH:-1])[codes][:, None]
            slopes.append(np.where(scores > 0, scores.dtype.type(1.0), scores.dtype.type(SLOPE)))
            scores *= slopes[-1]
            values = scores.reshape(m, *self.sizes[k + 1], -1)
        return [*inputs, values.reshape(m, 1, -1)], slopes

    def backward(self, theta: np.ndarray, slopes: list[np.ndarray]) -> list[np.ndarray]:
        """Derivatives of the scores by the output of each convolution, of the shape of its slopes."""
        tables = self.tables(theta)
        deltas = [tables[3][:-1].reshape(1, -1, slopes[2].shape[2]) * slopes[2]]
        for k in (2, 1):
            spread = _spread(deltas[0] @ tables[k][:-1].T, self.sizes[k])
            deltas.insert(0, spread.reshape(slopes[k - 1].shape) * slopes[k - 1])
        return deltas

    def input_gradient(self, theta: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """Derivative of the scores by the features, of the first derivative that `backward` returns."""
        return _spread(delta @ self.tables(theta)[0][:_PATCH].T, self.image_shape).reshape(len(delta), -1)

    def carried(self, theta: np.ndarray, images: np.ndarray, slopes: list[np.ndarray]) -> list[np.ndarray]:
        """Inputs of the layers for images whose activations have given slopes, without intercepts and labels."""
        m, inputs = len(images), []
        values = images.reshape(m, *self.image_shape, 1)
        for k, table in enumerate(self.tables(theta)[:-1]):
            inputs.append(_patches(values))
            values = (inputs[-1] @ table[: inputs[-1].shape[2]]) * slopes[k]
            values = values.reshape(m, *self.sizes[k + 1], -1)
        return [*inputs, values.reshape(m, 1, -1)]

    def by_features(self, theta: np.ndarray, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
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
    **Guarantees.** A row changes the sum of a lot by at most the clipping norm, for any row and label. A row with NaN
    or infinity changes nothing.

    Proof. The contribution of a row is its gradient, which by `PairModel` depends on no other row, times ``min(1, C /
    norm)``; see the module for rounding.
    """

    critic: ConvolutionalCritic
    _room, _joins_labels = _ROWS, False

    def __init__(self, *rows: Any, **given: Any) -> None:
        super().__init__(*rows, **given)
        self._gradients = np.empty((_ROWS, self.critic.n_parameters), self._dtype)
        self._slack = 1.0 + self.critic.n_parameters * 2.0**-50

    def clipped_gradient_sum(self, theta: np.ndarray, lot: Lot, max_norm: float) -> np.ndarray:
        """Sum over the lot of clipped gradients by the parameters of the critic, which `theta` begins with."""
        total = np.zeros(self.critic.n_parameters)
        with np.errstate(all="ignore"):  # a row that overflows adds nothing, and a warning would reveal it
            for start in range(0, len(lot.rows), _ROWS):
                rows = lot.rows[start : start + _ROWS]
                mix = self._fill_pairs(theta, lot._replace(rows=rows))
                gradients = self._fill_gradients(theta[: self.critic.n_parameters], rows, mix)
                kernel.add_clipped(gradients, max_norm / self._slack, _LEAST, total)
        return total

    def _fill_gradients(self, theta: np.ndarray, rows: np.ndarray, mix: np.ndarray) -> np.ndarray:
        """Gradients of rows, of shape (m, p)."""
        # Run fakes, rows, and the points between them forward and back.
        m, critic = len(rows), self.critic
        codes = self._codes[rows] if critic.n_classes else None
        fakes, reals = self._pairs[:m, 0, : critic.n_features], self._pairs[:m, 1, : critic.n_features]
        between = mix[:, None] * reals + (1 - mix[:, None]) * fakes
        images = np.concatenate([fakes, reals, between])
        inputs, slopes = critic.forward(theta, images, None if codes is None else np.tile(codes, 3))
        deltas = critic.backward(theta, slopes)
        # The penalty's input is carried forward through the slopes of the points between.
        g = critic.input_gradient(theta, deltas[0][2 * m :])
        length = np.sqrt(np.einsum("ij,ij->i", g, g, dtype=np.float64))
        factors = np.where(length > 0, 2.0 * critic.penalty * (length - 1.0) / length, 0.0 * length)
        carried = critic.carried(theta, g * factors[:, None].astype(g.dtype), [slope[2 * m :] for slope in slopes])
        # The gradient of a layer is the sum of three products of inputs and derivatives, over all places.
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
                part[np.arange(m), width + codes] = MARK * part[:, -1]
        return gradients


def _across(values: np.ndarray) -> np.ndarray:
    return values.transpose(0, 2, 1)


def _patches(images: np.ndarray) -> np.ndarray:
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


def _spread(patches: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Add patches to the pixels that they are of: the transpose of `_patches`, of shape (m, h, w, c)."""
    m, (height, width) = len(patches), size
    high, wide = -(-height // 2), -(-width // 2)
    parts = patches.reshape(m, high, wide, _SIDE, _SIDE, -1)
    padded = np.zeros((m, height + _SIDE, width + _SIDE, parts.shape[5]), patches.dtype)
    for y in range(_SIDE):
        for x in range(_SIDE):
            padded[:, y : y + 2 * high : 2, x : x + 2 * wide : 2] += parts[:, :, :, y, x]
    return padded[:, 2 : 2 + height, 2 : 2 + width]


class AlternatingState(NamedTuple):
    """States of both optimizers, and the number of steps of the critic."""

    critic: Any
    generator: Any
    n_done: int


def alternating(
    critic: Optimizer,
    generator: Optimizer,
    n_critic: int,
    critic_steps: int,
    gradient_of: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
) -> Optimizer:
    """Optimizer of a critic and a generator whose parameters are one vector, by noisy gradients of the critic alone.

    Parameters
    ----------
    critic, generator : Optimizer
    n_critic : int
        Parameters of the critic, which come first.
    critic_steps : int
        Steps of the critic between two of the generator.
    gradient_of : callable
        Takes both parameters and the number of the critic's step; returns a gradient of the generator, which depends on
        no private row but through these.
    """

    def init(theta: np.ndarray) -> Any:
        return AlternatingState(critic.init(theta[:n_critic]), generator.init(theta[n_critic:]), 0)

    def update(gradient: np.ndarray, state: AlternatingState, theta: np.ndarray) -> tuple[np.ndarray, AlternatingState]:
        of_critic, critic_state = critic.update(gradient, state.critic, theta[:n_critic])
        of_generator, generator_state, n_done = theta[n_critic:], state.generator, state.n_done + 1
        if n_done % critic_steps == 0:
            step = gradient_of(of_critic, of_generator, n_done).astype(np.float64, copy=False)
            of_generator, generator_state = generator.update(step, generator_state, of_generator)
        return np.concatenate([of_critic, of_generator]), AlternatingState(critic_state, generator_state, n_done)

    return Optimizer(init, update)


@dataclass(frozen=True)
class GeneratorSteps:
    """Gradients of minus the mean score of a generated batch.

    Parameters
    ----------
    critic : CriticNetwork or ConvolutionalCritic
    generator : GeneratorNetwork
    shares : ndarray of shape (n_classes,)
        Public or noisy class prevalences, by which labels are drawn.
    batch_size : int
    stream : SecretStream
    """

    critic: CriticNetwork | ConvolutionalCritic
    generator: GeneratorNetwork
    shares: np.ndarray
    batch_size: int
    stream: SecretStream

    def __call__(self, of_critic: np.ndarray, of_generator: np.ndarray, step: int) -> np.ndarray:
        """Gradient by the parameters of the generator, of shape (p,)."""
        m, draws = self.batch_size, self.stream.spawn("step", step)
        latent = draws.normal(m * self.generator.n_latent, of_generator.dtype).reshape(m, -1)
        codes = None
        if self.generator.n_classes:
            places = (draws.words(m) >> np.uint64(11)) * 2.0**-53
            codes = np.minimum(np.searchsorted(np.cumsum(self.shares), places, "right"), len(self.shares) - 1)

        def derivative(rows: np.ndarray) -> np.ndarray:
            return self.critic.by_features(of_critic, rows, codes) / rows.dtype.type(-m)

        return self.generator.gradient(of_generator, latent, codes, derivative)


LOT_SIZE = 512
"""Expected rows of a step, and generated rows of a step of the generator."""

_CONSTRAINT = "a sequence of positive integers, one per hidden layer, such as (128,)"


class Adversaries(NamedTuple):
    """Public constants of the training of a critic and a generator."""

    critic: CriticNetwork | ConvolutionalCritic
    generator: GeneratorNetwork
    critic_steps: int
    critic_optimizer: Optimizer
    generator_optimizer: Optimizer
    averages: bool

    @classmethod
    def of(cls, model: Any, n_features: int | None, n_classes: int, noise_multiplier: float) -> Adversaries:
        """The checked parameters of a `DPWGAN`; a width of None is not known yet."""
        hidden = _check_layers("generator_layer_sizes", model.generator_layer_sizes)
        n_latent = check_count("n_latent", model.n_latent, constraint="a positive integer, such as 64")
        constraint = "a number of at least 0, such as 10"
        penalty = check_real("gradient_penalty", model.gradient_penalty, at_least=0, at_most=1e6, constraint=constraint)
        if model.average is not None:
            check_choice("average", model.average, ("ema",))
        critic = _critic_of(model, n_features, n_classes, penalty)
        generator = GeneratorNetwork(n_latent, n_classes, hidden, critic.n_features)
        if isinstance(model.critic_steps, str) and model.critic_steps == "auto":
            steps = 10 if noise_multiplier >= 1.5 else 5  # large noise requires more steps of the critic
        else:
            constraint = "a positive integer, or 'auto'"
            steps = check_count("critic_steps", model.critic_steps, constraint=constraint)
        of_critic, of_generator = _adam(model, "learning_rate_init"), _adam(model, "generator_learning_rate_init")
        return cls(critic, generator, steps, of_critic, of_generator, model.average is not None)

    def train(
        self,
        plan: DPSGDPlan,
        rows: np.ndarray,
        codes: np.ndarray,
        bounds: np.ndarray,
        shares: np.ndarray,
        stream: SecretStream,
        on_step: Callable[[int], Any] | None,
        *,
        dtype: Any,
    ) -> tuple[list[np.ndarray], int]:
        """Run the plan; return the tables of the generator's layers and the number of the critic's steps done.

        Parameters
        ----------
        plan : DPSGDPlan
        rows : ndarray of shape (n, d)
            Private.
        codes : ndarray of shape (n,) or (0,)
            Numbers of their labels, private too.
        bounds : ndarray of shape (d, 2)
        shares : ndarray of shape (n_classes,)
            By which labels are drawn, public or released.
        stream : SecretStream
        on_step : callable or None
            Called with the number of steps done, after each.
        dtype : dtype
            Of the arithmetic.
        """
        # Random weights of both networks, in one vector.
        n_critic = self.critic.n_parameters
        theta: np.ndarray = np.zeros(n_critic + count_parameters(self.generator.widths), dtype)
        start_tables(self.critic.tables(theta[:n_critic]), stream.spawn("weights of the critic"))
        generator = split_tables(theta[n_critic:], self.generator.widths)
        start_tables(generator, stream.spawn("weights of the generator"))
        # The generator learns from the critic, after every few of its noisy steps.
        batch = max(1, min(LOT_SIZE, round(plan.expected_lot_size)))
        steps = GeneratorSteps(self.critic, self.generator, shares, batch, stream.spawn("generator"))
        optimizer = alternating(self.critic_optimizer, self.generator_optimizer, n_critic, self.critic_steps, steps)
        averaging = ema_average(plan.n_steps) if self.averages else last_iterate()
        result = theta, 0
        low, high = bounds.T
        try:
            with blas_within_quota():
                kind = CriticModel if isinstance(self.critic, CriticNetwork) else ConvolutionalModel
                model = kind(rows, codes, low, high, self.critic, self.generator, dtype=dtype)
                result = run_dpsgd(model, plan, optimizer, theta, stream, averaging=averaging, on_step=on_step)
        except KeyboardInterrupt:  # before the first step, or after the run
            pass
        tables = split_tables(result[0][n_critic:].astype(np.float32), self.generator.widths)
        return tables, result[1]


def _critic_of(
    model: Any, n_features: int | None, n_classes: int, penalty: float
) -> CriticNetwork | ConvolutionalCritic:
    """Return a convolutional critic if the rows are images, else a dense one."""
    hidden = _check_layers("critic_layer_sizes", model.critic_layer_sizes)
    capacity = check_count("capacity", model.capacity, constraint="a positive integer, such as 32")
    if model.image_shape is None:
        return CriticNetwork(n_features or 1, n_classes, hidden, penalty)
    constraint = "a pair of positive integers such as (28, 28), or None"
    given = model.image_shape
    sides = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    height, width = (
        [check_count("image_shape", side, constraint=constraint) for side in sides] if len(sides) == 2 else (0, 0)
    )
    if n_features not in (None, height * width) or not height:
        shown = f"({height}, {width})" if height else show(given)
        rows = "an image" if n_features is None else f"rows of {n_features} columns"
        raise ValueError(f"`image_shape` must be a shape of {rows}, got {shown}. Pass (height, width), or None.")
    return ConvolutionalCritic((height, width), n_classes, capacity, penalty)


def _adam(model: Any, rate_name: str) -> Optimizer:
    """Adam with decoupled weight decay, and the step size that a parameter of the model gives."""
    rate = check_real(rate_name, getattr(model, rate_name), above=0, constraint="a number above 0, such as 1e-3")
    beta_1, beta_2 = (
        check_real(name, getattr(model, name), at_least=0, below=1, constraint="a number in [0, 1)")
        for name in ("beta_1", "beta_2")
    )
    constraint = "a number of at least 0, such as 1e-8"
    least = check_real("adam_epsilon", model.adam_epsilon, at_least=0, constraint=constraint)
    decay = check_real("weight_decay", model.weight_decay, at_least=0, constraint="a number of at least 0, such as 0.1")
    return adam(constant(rate), beta_1, beta_2, least, penalty=decay)


def _check_layers(name: str, given: Any) -> tuple[int, ...]:
    """Widths of hidden layers, at least one."""
    sizes = given.tolist() if isinstance(given, np.ndarray) else given
    listed = list(sizes) if isinstance(sizes, Sequence) and not isinstance(sizes, str) else [sizes]
    if not listed:
        raise ValueError(f"`{name}` must have at least one hidden layer, such as (128,), got {show(given)}.")
    return tuple(check_count(name, each, constraint=_CONSTRAINT) for each in listed)
