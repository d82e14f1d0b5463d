"""What is decided about a fit by noisy gradient descent before its rows are read."""

from __future__ import annotations

from typing import Any, NamedTuple

from skdp._fitting.releases import Release, new_release
from skdp._random import SecretStream
from skdp._training.averaging import Averaging
from skdp._training.checkpoint import Checkpoint
from skdp._training.optimizers import Optimizer
from skdp._training.plan import DPSGDPlan
from skdp.accounting import DpEvent, compose
from skdp.base import Price
from skdp.preprocessing.weight_bound import WeightPurchase


class Targets(NamedTuple):
    """Targets and weights of the rows, checked, as the loss reads them.

    `outputs` is public: it has a number of outputs, `n_outputs`, and what predictions need beside the model, such as
    the classes. Weights are an array of shape (n,) of numbers in [0, 1], or 1.0. Where their bound is bought,
    `to_bound` has weights as they are, to be multiplied with `weights` as shares of it.
    """

    outputs: Any
    values: Any
    weights: Any
    to_bound: Any = None


class Run(NamedTuple):
    """A plan, and the other public constants that a run of it needs."""

    plan: DPSGDPlan
    shape: Any
    radius: float
    learning_rate: float
    optimizer: Optimizer
    averaging: Averaging


class Plan(NamedTuple):
    """Everything that is decided about a fit before its rows are read.

    `purchase` is what buys the bound on weights, if it is bought. `earlier` holds the releases of earlier runs, and
    `before` their steps and epochs, if the fit starts from them.
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
    purchase: WeightPurchase | None = None

    @property
    def event(self) -> DpEvent:
        return self.event_of(self.run.plan.n_steps)

    def event_of(self, n_steps: int) -> DpEvent:
        """What the first `n_steps` steps cost, with what is bought before them."""
        steps = self.run.plan.event_of(n_steps)
        if self.purchase is None:
            return steps
        return compose([self.purchase.event_at(self.run.plan.noise_multiplier), steps])

    @property
    def note(self) -> str:
        """Note of the charge, by which a resumed run finds it."""
        return "" if self.checkpoint is None else f"checkpoint {self.checkpoint.receipt}"

    def release(self, adjacency: str) -> Release:
        """Release that the charge pays for; a run with a checkpoint keeps its id when it resumes."""
        if self.checkpoint is None:
            return new_release(self.event, adjacency)
        return Release(self.checkpoint.receipt, self.event, adjacency)


__all__ = ["Plan", "Run", "Targets"]
