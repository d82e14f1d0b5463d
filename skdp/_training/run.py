"""What is decided about a fit by noisy gradient descent before its rows are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from skdp._checks.units import Units
from skdp._training.averaging import Averaging
from skdp._training.checkpoint import Checkpoint
from skdp._training.earlier_runs import EarlierRuns
from skdp._training.noise_stages import Stage
from skdp._training.optimizers import Optimizer
from skdp._training.plan import DPSGDPlan, event_of_steps
from skdp.accounting import DpEvent, compose
from skdp.base import Fit
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream

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

    Calibration, the charged event and training read one value. `purchases` are the releases beside the steps, by name:
    `OFFSET` after the last step, all others before the first one.
    """

    sampling: Sampling
    n_steps: int
    stages: tuple[Stage, ...]
    purchases: Mapping[str, Any]

    def event_at(self, noise_multiplier: float) -> DpEvent:
        """Return the event of the run at a noise multiplier."""
        steps = event_of_steps(self.sampling, self.n_steps, noise_multiplier, self.stages)
        return self.with_purchases(steps, noise_multiplier)

    def with_purchases(self, steps: DpEvent, noise_multiplier: float) -> DpEvent:
        """Return the event of some steps and of all releases beside them."""
        beside = [each.event_at(noise_multiplier) for each in self.purchases.values()]
        return compose([*beside, steps]) if beside else steps


class Run(NamedTuple):
    """Everything that is decided about a run before its rows are read.

    The epsilon is that of all runs, the earlier ones included.
    """

    releases: PlannedReleases
    plan: DPSGDPlan
    outputs: Any
    n_public: int
    shape: Any
    radius: float
    learning_rate: float
    optimizer: Optimizer
    averaging: Averaging
    stream: Any = None
    file: Checkpoint | None = None
    epsilon: float = math.nan
    earlier: EarlierRuns | None = None

    def of_fit(self, fit: Fit) -> Run:
        """Return the run with what its fit knows once it is planned."""
        found = self._replace(file=fit.file, epsilon=fit.price.epsilon, earlier=fit.earlier)
        return found._replace(stream=fit.run_stream(found.before[0]))

    @property
    def warm(self) -> bool:
        """Whether it starts from the parameters of earlier runs."""
        return self.earlier is not None

    @property
    def before(self) -> tuple[int, int]:
        """Steps and epochs of earlier runs."""
        return (0, 0) if self.earlier is None else self.earlier.counts

    @property
    def purchases(self) -> Mapping[str, Any]:
        """The releases beside the steps."""
        return self.releases.purchases

    def event_of(self, n_steps: int) -> DpEvent:
        """Return the event of the first `n_steps` steps and of the releases beside them."""
        return self.releases.with_purchases(self.plan.event_of(n_steps), self.plan.noise_multiplier)

    @property
    def bought_first(self) -> list[str]:
        """Names of what is released before the first step, and what steps depend on."""
        return [name for name in self.purchases if name != OFFSET]

    def bought(self, name: str, buy: Callable[[SecretStream], list[float]]) -> list[float]:
        """Return a release beside the steps by its name: from the file of the run, or made now.

        A file gets it at once: whatever ends the run from now on, the one that resumes does not release it again.
        """
        if self.file is None:
            return buy(self.stream.spawn(name))
        if name not in self.file.bought:
            self.file.keep_bought(name, buy(self.stream.spawn(name)))
        return self.file.bought[name]


__all__ = ["OFFSET", "START", "PlannedReleases", "Run", "Targets"]
