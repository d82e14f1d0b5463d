"""Steps of a generator between the noisy steps of its critic: post-processing, as the optimizer of the critic is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._training.optimizers import Optimizer
from skdp._typing import Vector
from skdp.mechanisms.streams import SecretStream
from skdp.synthesis.gan.convolutions import ConvolutionalCritic
from skdp.synthesis.gan.critic import CriticNetwork
from skdp.synthesis.gan.generated_rows import GeneratorNetwork


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
    gradient_of: Callable[[Vector, Vector, int], Vector],
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

    def init(theta: Vector) -> Any:
        return AlternatingState(critic.init(theta[:n_critic]), generator.init(theta[n_critic:]), 0)

    def update(gradient: Vector, state: AlternatingState, theta: Vector) -> tuple[Vector, AlternatingState]:
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

    def __call__(self, of_critic: Vector, of_generator: Vector, step: int) -> Vector:
        """Gradient by the parameters of the generator, of shape (p,)."""
        m, draws = self.batch_size, self.stream.spawn("step", step)
        latent = draws.normal(m * self.generator.n_latent, of_generator.dtype).reshape(m, -1)
        codes = None
        if self.generator.n_classes:
            places = (draws.words(m) >> np.uint64(11)) * 2.0**-53
            codes = np.minimum(np.searchsorted(np.cumsum(self.shares), places, "right"), len(self.shares) - 1)

        def derivative(rows: NDArray[Any]) -> NDArray[Any]:
            return self.critic.by_features(of_critic, rows, codes) / rows.dtype.type(-m)

        return self.generator.gradient(of_generator, latent, codes, derivative)
