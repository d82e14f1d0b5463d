"""What is decided about a fit by noisy gradient descent before its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from skdp._checks.units import Units
from skdp._fit.releases import Release, new_release
from skdp._training.averaging import Averaging
from skdp._training.checkpoint import Checkpoint
from skdp._training.noise_stages import Stage
from skdp._training.optimizers import Optimizer
from skdp._training.plan import DPSGDPlan, event_of_steps
from skdp.accounting import DpEvent
from skdp.base import Price
from skdp.mechanisms.sampling import Sampling
from skdp.mechanisms.streams import SecretStream
from skdp.preprocessing.histograms.purchase import event_with

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
        return event_with(self.purchases.values(), lambda _: steps, noise_multiplier) if self.purchases else steps


class Run(NamedTuple):
    """A plan, the recipe that made it, and the other public constants that a run of it needs."""

    recipe: Any
    releases: PlannedReleases
    plan: DPSGDPlan
    shape: Any
    radius: float
    learning_rate: float
    optimizer: Optimizer
    averaging: Averaging


class Plan(NamedTuple):
    """Everything that is decided about a fit before its rows are read.

    `event` is that of the whole run. `earlier` holds the releases of earlier runs, and `before` their steps and epochs,
    if the fit starts from them.
    """

    run: Run
    outputs: Any
    n_public: int
    stream: SecretStream
    price: Price
    earlier: tuple[Release, ...]
    before: tuple[int, int]
    checkpoint: Checkpoint | None
    warm: bool
    event: DpEvent

    @property
    def purchases(self) -> Mapping[str, Any]:
        """The releases beside the steps."""
        return self.run.releases.purchases

    def event_of(self, n_steps: int) -> DpEvent:
        """Return the event of the first `n_steps` steps and of the releases beside them."""
        return self.run.releases.with_purchases(self.run.plan.event_of(n_steps), self.run.plan.noise_multiplier)

    @property
    def bought_first(self) -> list[str]:
        """Names of what is bought before the first step, and what steps depend on."""
        return [name for name in self.purchases if name != OFFSET]

    def bought(self, name: str, buy: Callable[[SecretStream], list[float]]) -> list[float]:
        """Return a purchase by its name: from the file of the run, or by a release made now.

        A file gets it at once: whatever ends the run from now on, the one that resumes does not buy again.
        """
        if self.checkpoint is None:
            return buy(self.stream.spawn(name))
        if name not in self.checkpoint.bought:
            self.checkpoint.keep_bought(name, buy(self.stream.spawn(name)))
        return self.checkpoint.bought[name]

    @property
    def note(self) -> str:
        """Note of the charge, by which a resumed run finds it."""
        return "" if self.checkpoint is None else f"checkpoint {self.checkpoint.receipt}"

    def release(self, adjacency: str, unit: str) -> Release:
        """Release that the charge pays for; a run with a checkpoint keeps its id when it resumes."""
        if self.checkpoint is None:
            return new_release(self.event, adjacency, unit)
        return Release(self.checkpoint.receipt, self.event, adjacency, unit)


__all__ = ["OFFSET", "START", "Plan", "PlannedReleases", "Run", "Targets"]
