"""What is decided about a fit by noisy gradient descent before its rows are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from skdp._checks.units import Units
from skdp._training.averaging import Averaging
from skdp._training.checkpoint import Checkpoint
from skdp._training.earlier_runs import EarlierRuns
from skdp._training.noise_stages import Stage
from skdp._training.optimizers import Optimizer
from skdp._training.plan import DPSGDPlan, event_of_steps
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.sampling import Sampling

OFFSET = "offset"
"""Name of the purchase that corrects a model after its last step."""

START = "class counts"
"""Name of the purchase of the class counts from which a first run starts."""


class Targets(NamedTuple):
    """Targets and weights of the rows, checked, as the loss reads them.

    `outputs` is public: it has a number of outputs, `n_outputs`, and what predictions need beside the model, such as
    the classes. Weights are an array of shape (n,) of numbers in [0, 1], or 1.0. `units` says which
    rows are of one unit; None where each row is its own.
    """

    outputs: Any
    values: Any
    weights: Any
    units: Units | None = None


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
    averaging: Averaging

    def event_at(self, noise_multiplier: float, n_steps: int | None = None) -> DpEvent:
        """Return the event at a noise multiplier: of the first `n_steps` steps, and of the releases beside them."""
        n_steps = self.n_steps if n_steps is None else n_steps
        steps = event_of_steps(self.sampling, n_steps, noise_multiplier, self.stages)
        beside: list[DpEvent] = [GaussianDpEvent(ratio * noise_multiplier) for ratio in self.beside.values()]
        return compose([*beside, steps]) if beside else steps


class Run(NamedTuple):
    """Everything that is decided about a run before its rows are read.

    The epsilon is that of all runs, the earlier ones included. `kept_of_coef` is the factor of the coefficients of a
    first run, from public numbers: below 1 where noise rules.
    """

    releases: PlannedReleases
    plan: DPSGDPlan
    outputs: Any
    n_public: int
    shape: Any
    radius: float
    learning_rate: float
    optimizer: Optimizer
    kept_of_coef: float = 1.0
    stream: Any = None
    file: Checkpoint | None = None
    epsilon: float = math.nan
    earlier: EarlierRuns | None = None

    @property
    def before(self) -> tuple[int, int]:
        """Steps and epochs of earlier runs."""
        return (0, 0) if self.earlier is None else self.earlier.counts

    def mechanism(self, name: str, sensitivity: float) -> GaussianMechanism:
        """Return what adds noise to a release beside the steps, by its name."""
        return GaussianMechanism(self.releases.beside[name] * self.plan.noise_multiplier, sensitivity)

    def released(self, name: str, mechanism: GaussianMechanism, add_up: Callable[[], np.ndarray]) -> np.ndarray:
        """Return a release beside the steps: from the file of the run, or the sums of `add_up` with noise.

        A file gets it at once: whatever ends the run from now on, the one that resumes does not release it again.
        """
        found = None if self.file is None else self.file.bought.get(name)
        if found is None:
            found = mechanism.release(add_up(), self.stream.spawn(name)).tolist()
            if self.file is not None:
                self.file.keep_bought(name, found)
        return np.array(found)


__all__ = ["OFFSET", "START", "PlannedReleases", "Run", "Targets"]
