"""What the outputs of a model mean: classes, or targets between bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skdp._checks.notices import LEAST_SIGNAL
from skdp._training.offset import Means, OutcomeCounts
from skdp._training.run import Targets


class Task:
    """What is learned: how outputs are named, how targets become what a loss reads, and what is published of them.

    Outputs are described by a public value that has `n_outputs`, the number of outputs.

    Parameters
    ----------
    model : GradientEstimator
        Its constructor parameters are read, and what was learned of the outputs is set.
    """

    parameter = ""  # of the model, that names the outputs
    least_signal = LEAST_SIGNAL  # below it rows are few
    fits_means = True  # whether the loss is least where the mean of the predictions is that of the targets
    starts_at_counts = False  # whether a first run starts at the log-odds of classes, which it counts

    def __init__(self, model: Any) -> None:
        self.model = model

    def named(self) -> Any:
        """Return the outputs that the constructor names, or None if they have to be read from the targets."""
        raise NotImplementedError

    def assumed(self) -> Any:
        """Return the outputs to plan with where none are named and no target was read."""
        raise NotImplementedError

    def n_of_step(self) -> int:
        """Return the number of outputs for which the sampling of a pipeline's step is chosen."""
        raise NotImplementedError

    def resolve(self, y: Any, named: Any, *, warm: bool) -> Any:
        """Return the public outputs, or None if they have to be read from the targets.

        `named` is what the call itself says of them. Reads no more than the shape of `y`.
        """
        raise NotImplementedError

    def check(self, outputs: Any) -> None:
        """Refuse parameters that do not fit the outputs."""

    def loss_of(self, outputs: Any) -> tuple[str, float]:
        """Return the name of the loss of the outputs, and its limit, if it has one (`skdp._kernels.losses`)."""
        raise NotImplementedError

    def means(self, outputs: Any) -> Means:
        """Return what is bought of the means of targets and predictions, if `fits_means`."""
        raise NotImplementedError

    def counts(self, outputs: Any) -> OutcomeCounts:
        """Return what is counted before the first step, if `starts_at_counts`."""
        raise NotImplementedError

    def encode(self, y: Any, sample_weight: Any, n_samples: int, outputs: Any) -> Targets:
        """Return the targets as the loss reads them; `outputs` of None are read from them: report that leak."""
        raise NotImplementedError

    def reader(self, outputs: Any) -> Callable[[Any, Any, int], tuple[Any, Any]]:
        """Return a reader of the targets and weights of a block of rows. It can be pickled."""
        raise NotImplementedError

    def describe(self, outputs: Any) -> dict[str, str]:
        """Return the facts about the outputs that a checkpoint records."""
        raise NotImplementedError

    def publish(self, outputs: Any) -> None:
        """Publish the outputs."""
        raise NotImplementedError


__all__ = ["Task"]
