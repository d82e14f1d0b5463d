"""What is decided about a fit by noisy gradient descent before its rows are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from skdp._checks.groups import Units
from skdp._checks.leaks import Leak
from skdp._dpsgd.checkpoint import Checkpoint
from skdp._dpsgd.loop import Averaging, Optimizer
from skdp._dpsgd.plan import DPSGDPlan, Stage, event_of_steps
from skdp.accounting import DpEvent, GaussianDpEvent, compose
from skdp.base.budget import Release, releases_of
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.sampling import Sampling


class EarlierRuns(NamedTuple):
    """The runs on which the current parameters of an estimator depend, and what the next one must have in common.

    Attributes
    ----------
    releases : tuple of Release
    counts : (int, int)
        Steps and epochs.
    before_last : (int, int)
        Those of all runs but the last.
    leaks : tuple of Leak or None
        None if they were not kept.
    delta : float
    adjacency, unit, group_name : str
    """

    releases: tuple[Release, ...]
    counts: tuple[int, int]
    before_last: tuple[int, int]
    leaks: tuple[Leak, ...] | None
    delta: float
    adjacency: str
    unit: str
    group_name: str

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return those of a fitted estimator."""
        learned = estimator.__dict__
        return cls(
            releases_of(estimator), (estimator.n_steps_, estimator.n_iter_), estimator._fitted_before,
            learned.get("_fitted_leaks"), estimator.delta_, estimator.adjacency_, estimator.privacy_unit_,
            learned.get("_fitted_group_name", ""),
        )  # fmt: skip

    @property
    def event(self) -> DpEvent | None:
        """What the runs cost together, None if there are none."""
        return compose(release.event for release in self.releases) if self.releases else None

    def without_last(self) -> Self:
        """Return the runs before the last one, which was interrupted and goes on."""
        return self._replace(releases=self.releases[:-1], counts=self.before_last)

    def check(self, model: Any) -> None:
        """Reject a run for rows after one for groups, the other way round, by other groups or of other neighbors.

        `model` is the copy that learns: it keeps the name of the column of groups.
        """
        now, name = model.privacy_unit_, model.__dict__.get("_fitted_group_name", "")
        if self.unit != now:
            raise ValueError(
                f"earlier runs were private for a {self.unit}, and this one would be for a {now}: give groups to all "
                "runs or to none, or start again with fit and warm_start=False."
            )
        if self.group_name and name not in ("", self.group_name):
            raise ValueError(
                f"groups={name!r} differs from the {self.group_name!r} of earlier runs, and two kinds of groups have "
                "no joint price: give the same column to all runs, or start again with fit and warm_start=False."
            )
        if self.group_name:
            model._fitted_group_name = self.group_name
        if self.adjacency != model.adjacency:
            raise ValueError(
                f"adjacency={model.adjacency!r} differs from the {self.adjacency!r} of earlier runs, and two kinds of "
                "neighbours have no joint price: use the same, or start again with fit and warm_start=False."
            )


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
