"""The one place where clip, noise, sampling and accounting meet."""

from __future__ import annotations

from dataclasses import dataclass

from skdp._sampling import Sampling
from skdp.accounting import DpEvent, SelfComposedDpEvent
from skdp.mechanisms import GaussianMechanism


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

    Notes
    -----
    **Guarantees.** A run that makes `n_steps` steps, each of which (1) draws rows by `sampling`, (2) adds up gradients
    of which none is longer than C, (3) releases the sum through `mechanism` and (4) divides by the constant L, is an
    `n_steps`-fold adaptive composition of `sampling.event(mechanism.event)`; that composition is `event`.

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

    @property
    def mechanism(self) -> GaussianMechanism:
        return GaussianMechanism(self.noise_multiplier, self.max_grad_norm)

    @property
    def event(self) -> DpEvent:
        return self.event_of(self.n_steps)

    def event_of(self, n_steps: int) -> DpEvent:
        """The event of the first `n_steps` steps."""
        return SelfComposedDpEvent(self.sampling.event(self.mechanism.event), n_steps)


def event_of_steps(sampling: Sampling, n_steps: int, noise_multiplier: float) -> DpEvent:
    """Event of `n_steps` steps. It does not depend on the clip, which is chosen after the noise is known."""
    return DPSGDPlan(sampling, 1.0, noise_multiplier, n_steps, 1.0).event
