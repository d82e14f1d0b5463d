"""A critic, a generator and how they are trained: what `DPWGAN` decides of them by its parameters, and their run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._checks.parameters import check_choice, check_count, check_real, show
from skdp._threads import blas_within_quota
from skdp._training.averaging import Averaging, ema_average, last_iterate
from skdp._training.loop import run_dpsgd
from skdp._training.models.network import count_parameters, split_tables
from skdp._training.optimizers import Optimizer, adam, constant
from skdp._training.plan import DPSGDPlan
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.gan.convolutions import ConvolutionalCritic, ConvolutionalModel
from skdp.synthesis.gan.critic import CriticModel, CriticNetwork
from skdp.synthesis.gan.generated_rows import Codes, GeneratorNetwork, start_tables


class AlternatingState(NamedTuple):
    """States of both optimizers, and the number of steps of the critic that were made."""

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
    """Gradients of minus the mean score of a batch that the generator makes up.

    Parameters
    ----------
    critic : CriticNetwork or ConvolutionalCritic
    generator : GeneratorNetwork
    shares : ndarray of shape (n_classes,)
        Public or noisy shares by which labels are drawn.
    batch_size : int
    stream : SecretStream
    """

    critic: CriticNetwork | ConvolutionalCritic
    generator: GeneratorNetwork
    shares: NDArray[np.float64]
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


SLOPE = 0.2
"""Of the critic's activation below zero."""

MARK = 4.0
"""What represents a label among the inputs: at 1 it was ignored (docs/synthesis.md)."""

LOT_SIZE = 512
"""Expected rows of a step, and rows that the generator makes up for one of its own."""

_MUCH_NOISE = 1.5  # above this noise multiplier the critic needs more steps before one of the generator
_REMEDY = "give whole numbers of units above 0, one a hidden layer, such as (128,)"


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
        """What the parameters of a `DPWGAN` say, which are checked; a width of None is not known yet."""
        hidden = _check_layers("generator_layer_sizes", model.generator_layer_sizes)
        n_latent = check_count("n_latent", model.n_latent, remedy="choose a whole number, such as 64")
        remedy = "choose a number from 0 up, such as 10"
        penalty = check_real("gradient_penalty", model.gradient_penalty, at_least=0, at_most=1e6, remedy=remedy)
        if model.average is not None:
            check_choice("average", model.average, ("ema",))
        critic = _critic_of(model, n_features, n_classes, penalty)
        return cls(
            critic,
            GeneratorNetwork(n_latent, n_classes, hidden, critic.n_features, MARK),
            _critic_steps(model.critic_steps, noise_multiplier),
            _adam(model, "learning_rate_init"),
            _adam(model, "generator_learning_rate_init"),
            model.average is not None,
        )

    def train(
        self,
        plan: DPSGDPlan,
        rows: NDArray[np.floating],
        codes: Codes,
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
        n_critic = self.critic.n_parameters
        theta: np.ndarray = np.zeros(n_critic + count_parameters(self.generator.widths), dtype)
        self.critic.start(theta[:n_critic], stream.spawn("weights of the critic"))
        generator = split_tables(theta[n_critic:], self.generator.widths)
        start_tables(generator, stream.spawn("weights of the generator"))
        batch = max(1, min(LOT_SIZE, round(plan.expected_lot_size)))
        steps = GeneratorSteps(self.critic, self.generator, shares, batch, stream.spawn("generator"))
        optimizer = alternating(self.critic_optimizer, self.generator_optimizer, n_critic, self.critic_steps, steps)
        averaging: Averaging = ema_average(plan.n_steps) if self.averages else last_iterate()
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
    capacity = check_count("capacity", model.capacity, remedy="choose a whole number of channels, such as 32")
    if model.image_shape is None:
        return CriticNetwork(n_features or 1, n_classes, hidden, SLOPE, penalty, MARK)
    remedy = "give height and width, such as (28, 28), or None"
    given = model.image_shape
    sides = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    height, width = [check_count("image_shape", side, remedy=remedy) for side in sides] if len(sides) == 2 else (0, 0)
    if n_features not in (None, height * width) or not height:
        shown = f"({height}, {width})" if height else show(given)
        rows = "an image" if n_features is None else f"rows of {n_features} columns"
        raise ValueError(f"image_shape={shown} is no shape of {rows}: {remedy}.")
    return ConvolutionalCritic((height, width), n_classes, capacity, SLOPE, penalty, MARK)


def _critic_steps(given: Any, noise_multiplier: float) -> int:
    if isinstance(given, str) and given == "auto":
        return 10 if noise_multiplier >= _MUCH_NOISE else 5
    return check_count("critic_steps", given, remedy="choose a whole number of steps, or 'auto'")


def _adam(model: Any, rate_name: str) -> Optimizer:
    """Adam with decoupled weight decay, and the step size that a parameter of the model gives."""
    rate = check_real(rate_name, getattr(model, rate_name), above=0, remedy="choose a number above 0, such as 1e-3")
    beta_1, beta_2 = (
        check_real(name, getattr(model, name), at_least=0, below=1, remedy="choose a number in [0, 1)")
        for name in ("beta_1", "beta_2")
    )
    remedy = "choose a small number, such as 1e-8"
    least = check_real("adam_epsilon", model.adam_epsilon, at_least=0, remedy=remedy)
    decay = check_real("weight_decay", model.weight_decay, at_least=0, remedy="choose a number from 0 up, such as 0.1")
    return adam(constant(rate), beta_1, beta_2, least, penalty=decay)


def _check_layers(name: str, given: Any) -> tuple[int, ...]:
    """Widths of hidden layers, one at least."""
    sizes = given.tolist() if isinstance(given, np.ndarray) else given
    listed = list(sizes) if isinstance(sizes, Sequence) and not isinstance(sizes, str) else [sizes]
    if not listed:
        raise ValueError(f"{name}={show(given)} has no hidden layer: {_REMEDY}.")
    return tuple(check_count(name, each, remedy=_REMEDY) for each in listed)
