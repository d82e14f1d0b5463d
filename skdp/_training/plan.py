"""The one place where clip, noise, sampling and accounting meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skdp._training.noise_stages import Stage
from skdp.accounting import DpEvent, GaussianDpEvent, SelfComposedDpEvent, compose
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.sampling import Sampling


@dataclass(frozen=True)
class DPSGDPlan:
    """Everything that is decided about a run of noisy gradient descent before the first row is read.

    Parameters
    ----------
    sampling : PoissonSampling or FullBatch
    max_grad_norm : float
        C, the bound to which each row's gradient is clipped.
    noise_multiplier : float
        Standard deviation sigma of the noise, divided by C.
    n_steps : int
    expected_lot_size : float
        L, the public constant that divides sum and noise.
    stages : tuple of Stage
        How the noise is spread over the steps: `noise_multiplier` times the factor of a step's stage is its own. Empty
        where all steps have the same.

    Notes
    -----
    **Guarantees.** A run that makes `n_steps` steps, each of which (1) draws rows by `sampling`, (2) adds up gradients
    of which none is longer than C, (3) releases the sum through `mechanism_at` that step and (4) divides by the
    constant L, is an adaptive composition of `sampling.event(mechanism.event)` over the mechanisms of the steps; that
    composition is `event`.

    Proof. Given the parameters before the step, a record changes the sum by a vector of norm at most C, and only in
    the lots that contain it. So a step is the Gaussian mechanism of sensitivity C on a lot drawn by `sampling`, as the
    event of the step states. The next parameters are a function of the release and of public constants
    (post-processing), and the next step may depend on them (adaptive composition; Abadi et al. 2016, theorem 2, for
    moments; Dong, Roth & Su 2022, section 3, for trade-off functions; Zhu, Dong & Wang 2022 for dominating pairs).
    Under ``replace_one`` the contribution of one record is replaced by that of another. The accountant prices the
    events for this from the same sigma, since sigma is relative to what one record adds.
    """

    sampling: Sampling
    max_grad_norm: float
    noise_multiplier: float
    n_steps: int
    expected_lot_size: float
    stages: tuple[Stage, ...] = ()

    @property
    def mechanism(self) -> GaussianMechanism:
        """Of each step where noise is constant, else that of as many steps of one noise and the same price."""
        return GaussianMechanism(self.noise_multiplier, self.max_grad_norm)

    @cached_property
    def _mechanisms(self) -> list[tuple[int, GaussianMechanism]]:
        """The step before which each stage ends, and the mechanism of its steps."""
        found, end = list[tuple[int, GaussianMechanism]](), 0
        for n_steps, factor in self.stages or (Stage(self.n_steps, 1.0),):
            end += n_steps
            found.append((end, GaussianMechanism(self.noise_multiplier * factor, self.max_grad_norm)))
        return found

    def mechanism_at(self, step: int) -> GaussianMechanism:
        """What releases the sum of a step, counted from 0."""
        for end, mechanism in self._mechanisms:
            if step < end:
                return mechanism
        raise IndexError(f"step {step} is not of the {self.n_steps} of the plan")

    @property
    def noise_factors(self) -> NDArray[np.float64]:
        """Noise of each step over `noise_multiplier`, of shape (n_steps,)."""
        counts, factors = zip(*(self.stages or (Stage(self.n_steps, 1.0),)), strict=True)
        return np.repeat(factors, counts)

    @property
    def event(self) -> DpEvent:
        return event_of_steps(self.sampling, self.n_steps, self.noise_multiplier, self.stages)


def event_of_steps(
    sampling: Sampling, n_steps: int, noise_multiplier: float, stages: tuple[Stage, ...] = ()
) -> DpEvent:
    """Event of the first `n_steps` steps. It does not depend on the clip, which is chosen after the noise is known."""
    parts, left = [], n_steps
    for stage in stages or (Stage(n_steps, 1.0),):
        count = min(left, stage.n_steps)
        parts.append(SelfComposedDpEvent(sampling.event(GaussianDpEvent(noise_multiplier * stage.factor)), count))
        left -= count
    return parts[0] if len(parts) == 1 else compose(parts)
