"""What the outputs of a model mean: classes, or targets between bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from skdp._checks.notices import LEAST_SIGNAL
from skdp._checks.weights import WeightReader
from skdp._training.offset import Means
from skdp._training.run import Targets


class Target(Protocol):
    """What is learned: how outputs are named, how targets become what a loss reads, and what is published of them.

    Outputs are described by a public value that has `n_outputs`, the number of outputs.

    Parameters
    ----------
    weights : WeightReader
        Of the rows.
    """

    weights: WeightReader

    parameter: ClassVar[str] = ""  # of an estimator, that names the outputs
    least_signal: ClassVar[float] = LEAST_SIGNAL  # below it rows are few
    fits_means: ClassVar[bool] = (
        True  # whether the loss is least where the mean of the predictions is that of the targets
    )
    starts_at_counts: ClassVar[bool] = False  # whether a first run starts at the log-odds of classes, by `counts`

    @property
    def named(self) -> Any:
        """The outputs that the constructor names, or None if they have to be read from the targets."""

    def assumed(self) -> Any:
        """Return the outputs to plan with where none are named and no target was read."""

    def n_of_step(self) -> int:
        """Return the number of outputs for which the sampling of a pipeline's step is chosen."""

    def resolve(self, y: Any, given: Any, fitted: Any) -> Any:
        """Return the public outputs, or None if they have to be read from the targets.

        `given` is what the call itself states about them, and `fitted` the estimator of earlier runs, None in the
        first one. Reads no more than the shape of `y`.
        """

    def report_read(self, model: Any) -> None:
        """Report and note that an estimator reads the outputs from the targets."""

    def loss_of(self, outputs: Any) -> tuple[str, float]:
        """Return the name of the loss of the outputs, and its limit, if it has one (`skdp._kernels.losses`)."""

    def means(self, outputs: Any) -> Means:
        """Return what is bought of the means of targets and predictions, if `fits_means`."""

    def encode(self, y: Any, sample_weight: Any, n_samples: int, outputs: Any) -> Targets:
        """Return the targets as the loss reads them; `outputs` of None are read from them."""

    def reader(self, outputs: Any) -> Callable[[Any, Any, int], tuple[Any, Any]]:
        """Return a reader of the targets and weights of a block of rows. It can be pickled."""

    def describe(self, outputs: Any) -> dict[str, str]:
        """Return the facts about the outputs that a checkpoint records."""

    def learned(self, outputs: Any) -> dict[str, Any]:
        """Return the attributes of a fitted estimator that describe the outputs."""


__all__ = ["Target"]
