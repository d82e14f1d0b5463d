"""The one place where clip, noise, sampling and accounting meet: the steps of a run and the releases beside them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from skdp.accounting import DpEvent, GaussianDpEvent, SelfComposedDpEvent, compose
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.sampling import Sampling

_LEVELS = 8
_LEAST_SHARE = 0.05


class Stage(NamedTuple):
    """Consecutive steps of one noise: how many, and their noise over the constant noise of a run of the same cost."""

    n_steps: int
    factor: float


def falling_noise(kept: np.ndarray) -> tuple[Stage, ...]:
    """Spread the noise of full-batch steps so that it is small where the result keeps it.

    Parameters
    ----------
    kept : ndarray of shape (n_steps,)
        Which part of the move of each step the result of the run keeps, in [0, 1] (`Averaging.kept`).

    Returns
    -------
    tuple of Stage
        Their numbers of steps sum to T, and ``n_steps / factor**2`` too.

    Notes
    -----
    Full-batch steps of noise multipliers sigma_t cost as much as one Gaussian release with ``mu**2 = sum of
    1 / sigma_t**2`` (Dong, Roth & Su 2022, corollary 2). With shares s_t of mu**2 that sum to 1, the noise of the
    result along a direction in which the loss is flat has a variance proportional to the sum of ``w_t**2 / s_t``, where
    w_t is what is kept of step t. It is least at s_t proportional to w_t (Cauchy & Schwarz). Where the loss is curved
    early noise is forgotten, so that a step of which nothing is kept still has a small share. Shares are rounded up to
    eighths, so that an event has few parts.
    """
    shares = np.ceil(np.round(kept * _LEVELS, 9)) / _LEVELS + _LEAST_SHARE
    shares /= shares.mean()
    groups = itertools.groupby(shares.tolist())
    return tuple([Stage(len(list(each)), 1.0 / math.sqrt(share)) for share, each in groups])


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
    of which none is longer than C, (3) releases the sum through that step's one of `mechanisms` and (4) divides by the
    constant L, is an adaptive composition of `sampling.event(mechanism.event)` over the mechanisms of the steps; that
    composition is `event`.

    Proof. Given the parameters before the step, a record changes the sum by a vector of norm at most C, and only in
    the lots that contain it. So a step is the Gaussian mechanism of sensitivity C on a lot drawn by `sampling`, as the
    event of the step states. The next parameters are a function of the release and of public constants
    (post-processing), and the next step may depend on them (adaptive composition; Abadi et al. 2016, theorem 2, for
    moments; Dong, Roth & Su 2022, section 3, for trade-off functions; Zhu, Dong & Wang 2022 for dominating pairs).
    Under ``replace_one`` the contribution of one record is replaced by that of another. The accountant composes the
    events for this from the same sigma, since sigma is relative to what one record adds.
    """

    sampling: Sampling
    max_grad_norm: float
    noise_multiplier: float
    n_steps: int
    expected_lot_size: float
    stages: tuple[Stage, ...] = ()

    @cached_property
    def mechanisms(self) -> list[GaussianMechanism]:
        """What releases the sum of each step."""
        found: list[GaussianMechanism] = []
        for n_steps, factor in self.stages or (Stage(self.n_steps, 1.0),):
            found += [GaussianMechanism(self.noise_multiplier * factor, self.max_grad_norm)] * n_steps
        return found

    def carried(
        self, learning_rate: float, momentum: float, penalty: float, n_done: int, first: int
    ) -> tuple[float, float]:
        """Follow start and noise through `n_done` steps of constant length, where no row pulls at the parameters.

        Parameters
        ----------
        learning_rate, momentum : float
        penalty : float
            Second derivative of the L2 penalty.
        n_done : int
            Number of steps made.
        first : int
            The result is the mean of the iterates after steps ``first + 1, ..., n_done``.

        Returns
        -------
        start : float
            Factor of the initial parameter in the result.
        noise : float
            Standard deviation of the result.

        Notes
        -----
        The update ``v = m v + (1 - m) g``, ``theta = (theta - eta v) / (1 + eta penalty)`` is linear in theta, v and
        the gradients g. Let h_k be what g = 1 in one step, and 0 in all others, adds to theta k steps later (counting
        that step itself). Noise of step t, from 0, is in the iterate after step j as h_(j - t), so in the mean with the
        weight ``w_t = (h_(max(first, t) + 1 - t) + ... + h_(n_done - t)) / (n_done - first)``. Noises of different
        steps are independent: the variance of the result is the sum of w_t squared times the variance in step t.
        """
        if n_done == 0:
            return 1.0, 0.0
        impulse = np.zeros(n_done)
        impulse[0] = 1.0
        kept = 1.0 / (1.0 + learning_rate * penalty)
        velocity = lfilter([1.0 - momentum], [1.0, -momentum], impulse)
        moves = lfilter([-learning_rate * kept], [1.0, -kept], velocity)
        total = np.concatenate([[0.0], np.cumsum(moves)])
        step = np.arange(n_done)
        # Noise of each step over that of `noise_multiplier`.
        counts, factors = zip(*(self.stages or (Stage(self.n_steps, 1.0),)), strict=True)
        weights = (total[n_done - step] - total[np.maximum(first - step, 0)]) / (n_done - first)
        weights *= np.repeat(factors, counts)[:n_done]
        start = float(np.mean(kept ** np.arange(first + 1, n_done + 1)))
        deviation = GaussianMechanism(self.noise_multiplier, self.max_grad_norm).standard_deviation
        return start, math.sqrt(float(weights @ weights)) * (deviation / self.expected_lot_size)

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


OFFSET = "offset"
"""Name of the release that corrects a model after its last step."""

START = "class counts"
"""Name of the release of the class counts from which a first run starts."""


class PlannedReleases(NamedTuple):
    """The steps of a run, and the releases beside them: all that its privacy cost depends on but the noise.

    Calibration, the charged event and training read one value. `beside` has the releases beside the steps, by name:
    `OFFSET` after the last step, all others before the first one. It states their noise multipliers over that of the
    steps (`noise_ratio`). `averaging` is that of the iterates, by which the
    noise is spread over the steps (`stages`).
    """

    sampling: Sampling
    n_steps: int
    stages: tuple[Stage, ...]
    beside: Mapping[str, float]
    averaging: Any

    def event_at(self, noise_multiplier: float, n_steps: int | None = None) -> DpEvent:
        """Return the event at a noise multiplier: of the first `n_steps` steps, and of the releases beside them."""
        n_steps = self.n_steps if n_steps is None else n_steps
        steps = event_of_steps(self.sampling, n_steps, noise_multiplier, self.stages)
        beside: list[DpEvent] = [GaussianDpEvent(ratio * noise_multiplier) for ratio in self.beside.values()]
        return compose([*beside, steps]) if beside else steps
